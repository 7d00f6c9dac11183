"""KDTreeSynthesizer: an adaptive tree whose splits follow noisy counts.

Its leaves release moments (counts and means) or bins (counts above a threshold). Which of the two follows from public
quantities alone: the parameters, the number of columns, and how many leaves empty space is expected to make.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from numbers import Integral
from typing import Any

from spinney.errors import BudgetError, ParameterError
from spinney.privacy.budget import parse_length, parse_share
from spinney.schema.lattice import Lattice, tree_lattice
from spinney.synthesizers.base import PublicFacts
from spinney.synthesizers.binning import PartitionSynthesizer
from spinney.synthesizers.defaults import (
    moments_decay,
    moments_depths,
    moments_share,
    paper_cutoff,
    paper_depths,
    paper_threshold,
    privtree_depths,
    privtree_threshold,
)
from spinney.synthesizers.validation import parse_cutoff, parse_threshold
from spinney.tree.moments import check_leaves
from spinney.tree.plan import SplitPlan, TreeSettings, paper_plan, privtree_plan

_PAPER_TREE_SHARE = Fraction(1, 2)
_PRIVTREE_TREE_SHARE = Fraction(2, 5)
# A line of caution: beyond, a joint tree tells little in any case.
MOST_COLUMNS_WITH_MOMENTS = 8
_FOCUSES = ("density", "small-areas")
_SMALL_AREAS_SHARE = Fraction(1, 5)


class KDTreeSynthesizer(PartitionSynthesizer):
    """Synthetic rows from a KD-tree that splits at midpoints on cyclic axes, deeper where there are more rows.

    >>> import numpy as np, spinney as sp
    >>> table = np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = sp.KDTreeSynthesizer(epsilon="1").fit(table, sp.Schema({"x": sp.Real(-5, 5), "y": sp.Real(-5, 5)}))
    >>> model.sample(10).shape
    (10, 2)

    Args:
        epsilon: the whole budget, exact: a number or text such as "0.1" or "1/3".
        rule: "privtree" (noise that does not grow with depth) or "paper" (Algorithms 2 and 3).
        unit: "replace-one" (the number of rows is public) or "add-remove" (it is private).
        fixed_depth: levels that split whatever the data, the paper's h.
        max_depth: depth at which splitting ends, the paper's h'.
        largest_edge: s1, the largest edge a leaf may have, in units of the columns; another way to give fixed_depth.
        smallest_edge: s2, the edge at which splitting ends; another way to give max_depth.
        cutoff: a node splits if its noisy score is above this: tau in the paper, theta in PrivTree.
        threshold: leaves whose noisy count is below this are not released: t. Of leaves without moments.
        moments: whether leaves release their rows' means as well as their counts. All leaves are then released, so
            there is no threshold. By default they do, up to eight columns, under rule="privtree", unless a threshold or
            placement="tilted" asks for bins, or there would be too many leaves; False is bins in any case.
        focus: what should be most accurate: "density", the table as a whole, or "small-areas", how many rows lie
            in little boxes of a map, for which the shape of the tree gets a fifth of epsilon.
        tree_share: the part of epsilon for split decisions, epsilon' / epsilon; the rest is for the leaves.
        axes: "boxes" scales each column to its own bounds; "cube" makes all edges equal, as in the paper.
        bounds_share: the part of epsilon that pays for bounds="private" columns, if there are any.
        placement: where rows lie in their leaf: "fitted" to its moments, "uniform" or "centre"; in a bin "tilted".
        assumed_rows: a public guess of the number of rows, used for automatic values under "add-remove" only.
    """

    _in_column_units = ("largest_edge", "smallest_edge")

    def __init__(
        self,
        epsilon: Any = 1,
        *,
        rule: str = "privtree",
        unit: str = "replace-one",
        fixed_depth: int | None = None,
        max_depth: int | None = None,
        largest_edge: float | None = None,
        smallest_edge: float | None = None,
        cutoff: float | None = None,
        threshold: float | None = None,
        moments: bool | None = None,
        focus: str = "density",
        tree_share: Any = None,
        axes: str = "boxes",
        bounds_share: Any = "0.1",
        placement: str | None = None,
        assumed_rows: int = 10_000,
    ) -> None:
        self.epsilon = epsilon
        self.rule = rule
        self.unit = unit
        self.fixed_depth = fixed_depth
        self.max_depth = max_depth
        self.largest_edge = largest_edge
        self.smallest_edge = smallest_edge
        self.cutoff = cutoff
        self.threshold = threshold
        self.moments = moments
        self.focus = focus
        self.tree_share = tree_share
        self.axes = axes
        self.bounds_share = bounds_share
        self.placement = placement
        self.assumed_rows = assumed_rows

    def _design(self, facts: PublicFacts) -> tuple[Lattice, SplitPlan]:
        if self.rule not in ("privtree", "paper"):
            raise ParameterError(f"rule={self.rule!r} is not 'privtree' or 'paper'")
        if self.focus not in _FOCUSES:
            raise ParameterError(f"focus={self.focus!r} is not {' or '.join(map(repr, _FOCUSES))}")
        if self.focus != "density" and self.tree_share is not None:
            raise ParameterError(f"tree_share and focus={self.focus!r} exclude each other: a focus sets the share")
        wants_moments = self._wants_moments()
        lattice = tree_lattice(facts.schema, axes=self.axes)
        if wants_moments:
            return lattice, self._plan(lattice, facts, has_moments=True)
        if wants_moments is None and lattice.n_axes <= MOST_COLUMNS_WITH_MOMENTS:
            try:
                plan = self._plan(lattice, facts, has_moments=True)
                check_leaves(plan, lattice)
            except (BudgetError, ParameterError):
                pass  # a parameter that is wrong for bins too is named below
            else:
                return lattice, plan
        return lattice, self._plan(lattice, facts, has_moments=False)

    def _wants_moments(self) -> bool | None:
        """Whether leaves shall release their means too; None where it depends on the columns and the plan."""
        if self.moments is not None and not isinstance(self.moments, bool):
            raise ParameterError(f"moments={self.moments!r} is not True, False or None")
        if self.moments and self.rule == "paper":
            raise ParameterError("moments=True goes with rule='privtree'; the paper's leaves release counts alone")
        if self.moments and self.threshold is not None:
            raise ParameterError("threshold and moments=True exclude each other: with moments all leaves are released")
        if self.moments is not None:
            return self.moments
        if self.rule == "paper" or self.threshold is not None or self.placement == "tilted":
            return False
        return True if self.placement == "fitted" else None

    def _plan(self, lattice: Lattice, facts: PublicFacts, *, has_moments: bool) -> SplitPlan:
        is_paper = self.rule == "paper"
        fixed_depth, max_depth = self._depths(lattice, facts, has_moments=has_moments)
        share = _PAPER_TREE_SHARE if is_paper else _PRIVTREE_TREE_SHARE
        if has_moments:
            share = moments_share(facts.n_rows, facts.epsilon)
            if self.focus == "small-areas" or _half_are_lists(lattice):
                share = max(share, _SMALL_AREAS_SHARE)
        elif self.focus != "density":
            raise ParameterError(
                f"focus={self.focus!r} needs leaf moments, and this tree releases bins; raise tree_share and lower "
                "threshold instead"
            )
        if self.tree_share is not None:
            share = parse_share(self.tree_share, "tree_share")
        decision_epsilon = facts.epsilon * share if max_depth > fixed_depth else Fraction(0)
        count_epsilon = facts.epsilon - decision_epsilon

        if self.cutoff is not None:
            cutoff = parse_cutoff(self.cutoff)
        elif is_paper:
            cutoff = paper_cutoff(facts.n_rows, fixed_depth, max_depth, decision_epsilon, facts.unit)
        else:
            cutoff = 0
        if self.threshold is not None:
            threshold = parse_threshold(self.threshold)
        elif is_paper:
            threshold = paper_threshold(fixed_depth, count_epsilon)
        else:
            threshold = privtree_threshold(fixed_depth, count_epsilon, facts.unit)
        settings: TreeSettings = {
            "unit": facts.unit,
            "fixed_depth": fixed_depth,
            "max_depth": max_depth,
            "count_epsilon": count_epsilon,
            "cutoff": cutoff,
            "threshold": threshold,
        }
        if is_paper:
            return paper_plan(decision_epsilon=decision_epsilon, **settings)
        if not has_moments:
            return privtree_plan(decision_epsilon=decision_epsilon, **settings)
        factor = moments_decay(lattice.n_axes)
        plan = privtree_plan(decision_epsilon=decision_epsilon, decay_factor=factor, **settings)
        return replace(plan, has_moments=True)

    def _depths(self, lattice: Lattice, facts: PublicFacts, *, has_moments: bool) -> tuple[int, int]:
        """fixed_depth and max_depth: given as depths, given as edges, or automatic."""
        if self.rule == "paper":
            automatic = paper_depths(lattice, facts.n_rows, facts.epsilon)
        elif has_moments:
            automatic = moments_depths(lattice, facts.n_rows, facts.epsilon)
        else:
            automatic = privtree_depths(lattice)
        max_depth = _depth_on(lattice, self.max_depth, "max_depth", self.smallest_edge, "smallest_edge")
        fixed_depth = _depth_on(lattice, self.fixed_depth, "fixed_depth", self.largest_edge, "largest_edge")
        for name, depth in (("max_depth", max_depth), ("fixed_depth", fixed_depth)):
            if depth is not None and depth > lattice.depth and not facts.found_bounds:
                raise ParameterError(
                    f"{name}={depth} is not in 0..{lattice.depth}; set larger `bits` on the columns for deeper trees"
                )
        if max_depth is None:
            max_depth = max(automatic[1], fixed_depth or 0)
        if fixed_depth is None:
            fixed_depth = min(automatic[0], max_depth)
        if fixed_depth > max_depth:
            raise ParameterError(
                f"fixed_depth={fixed_depth} is above max_depth={max_depth}; lower one or raise the other"
            )
        return min(fixed_depth, lattice.depth), min(max_depth, lattice.depth)


def _half_are_lists(lattice: Lattice) -> bool:
    """Whether half of the columns or more are lists: those have no means, so the tree must tell their values apart."""
    return 2 * sum(axis.kind == "category" for axis in lattice.axes) >= lattice.n_axes


def _depth_on(lattice: Lattice, depth: Any, depth_name: str, edge: Any, edge_name: str) -> int | None:
    """The depth that was asked for, as such or as an edge length, or None."""
    if depth is not None and edge is not None:
        raise ParameterError(f"give {depth_name} or {edge_name}, not both")
    if edge is not None:
        try:
            return lattice.depth_for_edge(parse_length(edge, edge_name))
        except ParameterError as err:
            raise ParameterError(f"{edge_name}={edge}: {err}") from None
    if depth is None:
        return None
    if isinstance(depth, bool) or not isinstance(depth, Integral) or depth < 0:
        raise ParameterError(f"{depth_name}={depth!r} is not a whole number of levels")
    return int(depth)
