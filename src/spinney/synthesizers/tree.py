"""KDTreeSynthesizer: an adaptive tree whose splits follow noisy counts.

Its leaves release moments (counts and means) or bins (counts above a threshold). Which of the two follows from public
quantities alone: the parameters, the number of columns, and how many leaves empty space is expected to make.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from spinney.errors import BudgetError, ParameterError
from spinney.grid.axes import joint_lattice
from spinney.grid.lattice import Lattice
from spinney.privacy.budget import parse_share
from spinney.synthesizers.base import PublicFacts
from spinney.synthesizers.partition import PAPER_NAMES, PartitionSynthesizer
from spinney.synthesizers.validation import (
    check_depth,
    moments_decay,
    moments_depths,
    moments_share,
    parse_depth,
    parse_threshold,
    privtree_depths,
    privtree_threshold,
)
from spinney.text import as_given
from spinney.tree.moments import check_leaves
from spinney.tree.plan import SplitPlan, privtree_plan

_TREE_SHARE = Fraction(2, 5)  # of bins
# A line of caution: beyond, a joint tree tells little in any case.
MOST_COLUMNS_WITH_MOMENTS = 8
_FOCUSES = ("density", "small-areas")
_SMALL_AREAS_SHARE = Fraction(1, 5)


@dataclass(eq=False, repr=False)
class KDTreeSynthesizer(PartitionSynthesizer):
    """Synthetic rows from a KD-tree that splits at midpoints on cyclic axes, deeper where there are more rows.

    Splits follow PrivTree's rule, whose noise does not grow with depth. `PaperTreeSynthesizer` follows the paper's.

    >>> import numpy as np, spinney as sp
    >>> table = np.random.default_rng(0).normal(size=(1000, 2))
    >>> model = sp.KDTreeSynthesizer(epsilon="1").fit(table, sp.Schema({"x": sp.Real(-5, 5), "y": sp.Real(-5, 5)}))
    >>> model.sample(10).shape
    (10, 2)

    Args:
        epsilon: the whole budget, exact: a number or text such as "0.1" or "1/3".
        unit: "replace-one" (the number of rows is public) or "add-remove" (it is private).
        moments: whether leaves release their rows' means as well as their counts. All leaves are then released, so
            there is no threshold. By default they do, up to eight columns, unless a threshold or placement="tilted"
            asks for bins, or there would be too many leaves; False is bins in any case.
        threshold: leaves whose noisy count is below this are not released. Of leaves without moments.
        focus: what should be most accurate: "density", the table as a whole, or "small-areas", how many rows lie
            in little boxes of a map, for which the shape of the tree gets a fifth of epsilon.
        tree_share: the part of epsilon for split decisions; the rest is for the leaves.
        max_depth: depth at which splitting ends; by default that of single cells.
        bounds_share: the part of epsilon that pays for bounds="private" columns, if there are any.
        placement: where rows lie in their leaf: "fitted" to its moments, "uniform" or "centre"; in a bin "tilted".
        assumed_rows: a public guess of the number of rows, for automatic values under "add-remove". By default rows are
            counted there with noise, for a hundredth of epsilon; under "replace-one" their number is public.
        utility_share: the part of epsilon that pays for figures of utility, such as "0.02": how far the release is from
            the table, with exact noise, so that they may be published. By default none are measured.
    """

    _elsewhere: ClassVar[Mapping[str, str]] = {
        "rule": "it always follows PrivTree's rule; sp.PaperTreeSynthesizer follows the paper's",
        "axes": "sp.PaperTreeSynthesizer has it",
        **{
            name: f"it is `{symbol}` of sp.PaperTreeSynthesizer"
            for name, symbol in PAPER_NAMES.items()
            if name not in ("max_depth", "threshold")
        },
    }

    epsilon: Any = 1
    _: KW_ONLY
    unit: str = "replace-one"
    moments: bool | None = None
    threshold: float | None = None
    focus: str = "density"
    tree_share: Any = None
    max_depth: int | None = None
    bounds_share: Any = "0.1"
    placement: str | None = None
    assumed_rows: int | None = None
    utility_share: Any = None

    def _design(self, facts: PublicFacts) -> tuple[Lattice, SplitPlan]:
        if not isinstance(self.focus, str) or self.focus not in _FOCUSES:
            raise ParameterError(f"focus={as_given(self.focus)} is not {' or '.join(map(repr, _FOCUSES))}")
        if self.focus != "density" and self.tree_share is not None:
            raise ParameterError(f"tree_share and focus={self.focus!r} exclude each other: a focus sets the share")
        wants_moments = self._wants_moments()
        lattice = joint_lattice(facts.schema._modelled)
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
            raise ParameterError(f"moments={as_given(self.moments)} is not True, False or None")
        if self.moments and self.threshold is not None:
            raise ParameterError("threshold and moments=True exclude each other: with moments all leaves are released")
        if self.moments is not None:
            return self.moments
        placement = self.placement if isinstance(self.placement, str) else None  # any other is refused later
        if self.threshold is not None or placement == "tilted":
            return False
        return True if placement == "fitted" else None

    def _plan(self, lattice: Lattice, facts: PublicFacts, *, has_moments: bool) -> SplitPlan:
        fixed_depth, max_depth = self._depths(lattice, facts, has_moments=has_moments)
        share = self._share(lattice, facts, has_moments=has_moments)
        decision_epsilon = facts.epsilon * share if max_depth > fixed_depth else Fraction(0)
        count_epsilon = facts.epsilon - decision_epsilon
        if self.threshold is None:
            threshold = privtree_threshold(fixed_depth, count_epsilon, facts.unit)
        else:
            threshold = parse_threshold(self.threshold)
        plan = privtree_plan(
            unit=facts.unit,
            fixed_depth=fixed_depth,
            max_depth=max_depth,
            decision_epsilon=decision_epsilon,
            decay_factor=moments_decay(lattice.n_axes) if has_moments else Fraction(1),
            count_epsilon=count_epsilon,
            cutoff=0,
            threshold=threshold,
        )
        return replace(plan, has_moments=True) if has_moments else plan

    def _share(self, lattice: Lattice, facts: PublicFacts, *, has_moments: bool) -> Fraction:
        """The part of epsilon for the shape of the tree."""
        share = _TREE_SHARE
        if has_moments:
            share = moments_share(facts.n_rows, facts.epsilon)
            if self.focus == "small-areas" or _half_are_lists(lattice) or _has_pieces(lattice):
                share = max(share, _SMALL_AREAS_SHARE)
        elif self.focus != "density":
            raise ParameterError(
                f"focus={self.focus!r} needs leaf moments, and this tree releases bins; raise tree_share and lower "
                "threshold instead"
            )
        return share if self.tree_share is None else parse_share(self.tree_share, "tree_share")

    def _depths(self, lattice: Lattice, facts: PublicFacts, *, has_moments: bool) -> tuple[int, int]:
        """How many levels split whatever the data, and where splitting ends."""
        if has_moments:
            fixed_depth, max_depth = moments_depths(lattice, facts.n_rows, facts.epsilon)
        else:
            fixed_depth, max_depth = privtree_depths(lattice)
        if self.max_depth is not None:
            max_depth = parse_depth(self.max_depth, "max_depth")
            if not facts.found_bounds:
                check_depth(max_depth, "max_depth", lattice)
        max_depth = min(max_depth, lattice.depth)
        return min(fixed_depth, max_depth), max_depth


def _half_are_lists(lattice: Lattice) -> bool:
    """Whether half of the columns or more are lists: those have no means, so the tree must tell their values apart."""
    return 2 * sum(axis.kind == "category" for axis in lattice.axes) >= lattice.n_axes


def _has_pieces(lattice: Lattice) -> bool:
    """Whether a column has pieces: its values may pile up, and the tree must tell piles from what lies around them."""
    return any(axis.pieces is not None for axis in lattice.axes)
