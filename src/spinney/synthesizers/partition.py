"""GridSynthesizer and PaperTreeSynthesizer: the paper's Algorithms 1, 2 and 3, and the base of all partitions.

All of them cut the space of the columns once and release the parts, as bins or as leaf moments. Grid and paper
tree draw discrete Laplace noise. Empty parts draw noise like all others, exactly (`tree/empty.proof.md`,
docs/errata.md). Proofs: `tree/grid.proof.md`, `tree/kdtree.proof.md`. For a table of your own take
`KDTreeSynthesizer`, whose noise does not grow with depth.

    partition    what grid, paper tree and KD-tree have in common
    grid         Algorithm 1: noise on every cell of a fixed grid
    paper tree   Algorithms 2 and 3, under the paper's own names
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar

from spinney.errors import ParameterError
from spinney.grid.lattice import Lattice, grid_lattice, tree_lattice
from spinney.privacy.budget import parse_fraction, parse_length, parse_share
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import Charge
from spinney.release.card import noisy_rows_entry
from spinney.schema.schema import Schema
from spinney.synthesizers.base import PublicFacts, Synthesizer, of_release
from spinney.synthesizers.paying import Partition
from spinney.synthesizers.utility import even_cuts, with_utility
from spinney.synthesizers.validation import (
    check_depth,
    grid_bins,
    grid_threshold,
    paper_cutoff,
    paper_depths,
    paper_threshold,
    parse_cutoff,
    parse_depth,
    parse_threshold,
)
from spinney.tables.source import Source
from spinney.text import as_given, did_you_mean
from spinney.tree.kdtree import check_size, release_tree
from spinney.tree.moments import check_leaves, release_moments
from spinney.tree.plan import SplitPlan, grid_plan, paper_plan
from spinney.tree.release.bins import BinnedRelease, check_placement
from spinney.tree.release.moments import MomentsRelease, check_moment_placement

# ------------------------------------------------------------------------------------------------------------ partition
# What grid and tree have in common: one partition of space, released as bins or as leaf moments.


class PartitionSynthesizer(Synthesizer[tuple[Lattice, SplitPlan]]):
    """Common part of the grid and the tree. Subclasses say which lattice and plan follow from public facts."""

    placement: str | None

    _in_column_units: ClassVar[tuple[str, ...]] = ()  # parameters that are lengths

    plan_: SplitPlan
    release_: BinnedRelease | MomentsRelease

    @of_release(MomentsRelease.sample)
    def sample(self) -> Any: ...

    @of_release(MomentsRelease.weighted_points)
    def weighted_points(self) -> Any: ...

    @abstractmethod
    def _design(self, facts: PublicFacts) -> tuple[Lattice, SplitPlan]:
        """The lattice and the plan, from public facts only; raises on parameters out of range."""

    def _check(self, schema: Schema) -> None:
        self._refuse_forest_only(schema, computes=True)
        # Lengths wait for the columns' bounds: until these are found nobody can tell if they fit.
        for name in self._in_column_units:
            if getattr(self, name) is not None and schema._awaits_bounds:
                raise ParameterError(
                    f"{name} is measured in units of the columns, and some bounds are not known yet; "
                    "state the bounds, or give a number of levels or bins instead"
                )

    def _rehearse(self, facts: PublicFacts) -> tuple[Lattice, SplitPlan]:
        lattice, plan = self._design(facts)
        if self.placement is not None:
            (check_moment_placement if plan.has_moments else check_placement)(self.placement)
        if plan.has_moments:
            check_leaves(plan, lattice)
        else:
            check_size(plan)
        return lattice, plan

    def _foreseen(
        self,
        facts: PublicFacts,  # noqa: ARG002
        rehearsed: tuple[Lattice, SplitPlan],
        class_size: float | None,  # noqa: ARG002 - of forests
    ) -> tuple[Partition, Sequence[Charge], Sequence[str]]:
        return Partition(*rehearsed), rehearsed[1].charges(), ()

    def _release(
        self,
        table: Source,
        facts: PublicFacts,
        ledger: Ledger,
        entropy: Entropy,
        rehearsed: tuple[Lattice, SplitPlan] | None,
    ) -> BinnedRelease | MomentsRelease:
        lattice, plan = self._design(facts) if rehearsed is None else rehearsed
        counts = table.count_cells(lattice)
        if facts.rows_epsilon:  # paid for once all cells were read; the lattice is the same for every number of rows
            facts, (_, plan) = self._count_rows(counts.true_total(), facts, ledger, entropy)
        described = plan.to_dict() | noisy_rows_entry(facts.row_count)
        release: BinnedRelease | MomentsRelease
        if plan.has_moments:
            moments = release_moments(counts, plan=plan, ledger=ledger, entropy=entropy)
            card = self._card(table, ledger, design=described, released={"leaves": len(moments)}, schema=facts.schema)
            release = MomentsRelease(moments, card, placement=self.placement or "fitted", reads_decisions=True)
        else:
            bins = release_tree(counts, plan=plan, ledger=ledger, entropy=entropy)
            card = self._card(table, ledger, design=described, released={"bins": len(bins)}, schema=facts.schema)
            release = BinnedRelease(bins, card, placement=self.placement or "tilted")
        self.plan_ = plan
        if self._paid_figures is None:
            return release
        return with_utility(release, table, even_cuts(facts.schema._modelled), self._paid_figures.noisy_figures)


# ----------------------------------------------------------------------------------------------------------------- grid
# GridSynthesizer: the paper's Algorithm 1.


@dataclass(eq=False, repr=False)
class GridSynthesizer(PartitionSynthesizer):
    """Synthetic rows from a fixed grid: noise on every cell, cells below a threshold removed.

    Args:
        epsilon: the whole budget, exact: a number or text such as "0.1" or "1/3".
        bins: bins per column, one number or one per column name; columns with fewer values get one bin per value.
        bin_width: w, the width of a bin in units of the column, one number or one per column name; instead of bins.
        threshold: bins whose noisy count is below this are not released: t.
        unit: "replace-one" (the number of rows is public) or "add-remove" (it is private).
        bounds_share: the part of epsilon that pays for bounds="private" columns, if there are any.
        placement: where rows lie in their bin: "tilted", "uniform" or "centre".
        assumed_rows: a public guess of the number of rows, for automatic values under "add-remove". By default rows are
            counted there with noise, for a hundredth of epsilon; under "replace-one" their number is public.
        utility_share: the part of epsilon that pays for figures of utility, such as "0.02": how far the release is from
            the table, with exact noise, so that they may be published. By default none are measured.
    """

    _in_column_units = ("bin_width",)

    epsilon: Any = 1
    _: KW_ONLY
    bins: int | Mapping[str, int] | None = None
    bin_width: float | Mapping[str, float] | None = None
    threshold: float | None = None
    unit: str = "replace-one"
    bounds_share: Any = "0.1"
    placement: str | None = None
    assumed_rows: int | None = None
    utility_share: Any = None

    @property
    def _cells_follow_rows(self) -> bool:
        return self.bins is None and self.bin_width is None

    def _design(self, facts: PublicFacts) -> tuple[Lattice, SplitPlan]:
        if self.bins is not None and self.bin_width is not None:
            raise ParameterError("give bins or bin_width, not both")
        schema = facts.schema._modelled
        if self.bin_width is not None:
            lattice = grid_lattice(schema, width=_checked(self.bin_width, "bin_width", schema, is_whole=False))
        else:
            bins = self.bins if self.bins is not None else grid_bins(len(schema), facts.n_rows, facts.epsilon)
            lattice = grid_lattice(schema, bins=_checked(bins, "bins", schema, is_whole=True))
        if self.threshold is not None:
            threshold = parse_threshold(self.threshold)
        else:
            threshold = grid_threshold(lattice, facts.epsilon, facts.unit)
        plan = grid_plan(unit=facts.unit, depth=lattice.depth, epsilon=facts.epsilon, threshold=threshold)
        return lattice, plan


def _checked(value: Any, name: str, schema: Schema, *, is_whole: bool) -> Any:
    """A positive number, or a mapping of them that names the columns of the schema."""
    if isinstance(value, Mapping):
        for column in value:
            if column not in schema:
                hint = did_you_mean(column, [known for known in schema if known not in value])
                raise ParameterError(f"{name} names column {as_given(column)}, which is not in the schema{hint}")
        for column in schema:
            if column not in value:
                raise ParameterError(f"{name} does not name column {column!r}; give it an entry")
        return {
            column: _checked(item, f"{name}[{column!r}]", schema, is_whole=is_whole) for column, item in value.items()
        }
    if not is_whole:
        return parse_length(value, name)
    number = parse_fraction(value, name)
    if number <= 0 or number.denominator != 1:
        raise ParameterError(f"{name}={as_given(value)} is not a positive whole number")
    return int(number)


# ----------------------------------------------------------------------------------------------------------- paper tree
# PaperTreeSynthesizer: the paper's Algorithms 2 and 3, under the paper's own names.
#
#     depth k < h          split
#     h <= k < h'          split where count + Lap(2 (h' - h) / epsilon') > tau
#     leaf                 released where count + Lap(2 / epsilon'') >= t
#
# with epsilon' for the decisions and epsilon'' for the counts, epsilon' + epsilon'' = epsilon.


_TREE_SHARE = Fraction(1, 2)

# What the paper's symbols are called elsewhere in the library and on the command line.
PAPER_NAMES = {
    "fixed_depth": "h",
    "max_depth": "h_prime",
    "largest_edge": "s1",
    "smallest_edge": "s2",
    "cutoff": "tau",
    "threshold": "t",
}


@dataclass(eq=False, repr=False)
class PaperTreeSynthesizer(PartitionSynthesizer):
    """Synthetic rows from the tree of the paper's Algorithms 2 and 3. Leaves release noisy counts, those below t none.

    >>> import numpy as np, spinney as sp
    >>> table = np.random.default_rng(0).normal(size=(1000, 2))
    >>> schema = sp.Schema({"x": sp.Real(-5, 5), "y": sp.Real(-5, 5)})
    >>> model = sp.PaperTreeSynthesizer(epsilon="2", h=4, h_prime=8, axes="cube", placement="centre").fit(table, schema)
    >>> points, weights = model.weighted_points()

    Args:
        epsilon: epsilon, the whole budget, exact: a number or text such as "0.1" or "1/3".
        unit: "replace-one" (the number of rows is public; the paper's) or "add-remove" (it is private).
        h: h, the number of levels that split whatever the data. By default two fewer than log2 of the number of bins
            that a grid would have.
        h_prime: h', the depth at which splitting ends. By default two more cuts of every axis than h.
        s1: s1, the largest edge that a leaf may have, in units of the columns; another way to give h.
        s2: s2, the edge at which splitting ends, in units of the columns; another way to give h'.
        tau: tau, the cutoff: between h and h' a node splits if its noisy count is above it. By default the lemma's,
            with which no empty node splits, except with a chance of 0.01.
        t: t, the threshold: leaves whose noisy count is below it are not released. By default 8 / epsilon'' log(2^h).
        tree_share: epsilon' / epsilon, the part of the budget for split decisions; the rest is for counts. By default
            one half.
        axes: "boxes" scales each column to its own bounds; "cube" makes all edges equal, as in the paper.
        bounds_share: the part of epsilon that pays for bounds="private" columns, if there are any.
        placement: where rows lie in their leaf: "tilted" (the default), "uniform" or, as in the paper, "centre".
        assumed_rows: a public guess of the number of rows, for automatic values under "add-remove". By default rows are
            counted there with noise, for a hundredth of epsilon; under "replace-one" their number is public.
    """

    _in_column_units = ("s1", "s2")
    _elsewhere: ClassVar[Mapping[str, str]] = {
        **{name: f"the paper's name for it is `{symbol}`" for name, symbol in PAPER_NAMES.items()},
        "rule": "it always follows the paper's rule; sp.KDTreeSynthesizer follows PrivTree's",
        "moments": "sp.KDTreeSynthesizer has it; the paper's leaves release counts alone",
        "focus": "sp.KDTreeSynthesizer has it",
    }

    epsilon: Any = 1
    _: KW_ONLY
    unit: str = "replace-one"
    h: int | None = None
    h_prime: int | None = None
    s1: float | None = None
    s2: float | None = None
    tau: float | None = None
    t: float | None = None
    tree_share: Any = None
    axes: str = "boxes"
    bounds_share: Any = "0.1"
    placement: str | None = None
    assumed_rows: int | None = None

    def _design(self, facts: PublicFacts) -> tuple[Lattice, SplitPlan]:
        lattice = tree_lattice(facts.schema._modelled, axes=self.axes)
        h, h_prime = self._depths(lattice, facts)
        share = _TREE_SHARE if self.tree_share is None else parse_share(self.tree_share, "tree_share")
        decision_epsilon = facts.epsilon * share if h_prime > h else Fraction(0)
        count_epsilon = facts.epsilon - decision_epsilon
        if self.tau is None:
            tau = paper_cutoff(facts.n_rows, h, h_prime, decision_epsilon, facts.unit)
        else:
            tau = parse_cutoff(self.tau, "tau")
        plan = paper_plan(
            unit=facts.unit,
            fixed_depth=h,
            max_depth=h_prime,
            decision_epsilon=decision_epsilon,
            count_epsilon=count_epsilon,
            cutoff=tau,
            threshold=paper_threshold(h, count_epsilon) if self.t is None else parse_threshold(self.t, "t"),
        )
        return lattice, plan

    def _depths(self, lattice: Lattice, facts: PublicFacts) -> tuple[int, int]:
        """H and h': given as depths, given as edges, or automatic."""
        automatic_h, automatic_h_prime = paper_depths(lattice, facts.n_rows, facts.epsilon)
        h_prime = _depth_on(lattice, self.h_prime, "h_prime", self.s2, "s2")
        h = _depth_on(lattice, self.h, "h", self.s1, "s1")
        if not facts.found_bounds:
            check_depth(h_prime, "h_prime", lattice)
            check_depth(h, "h", lattice)
        if h_prime is None:
            h_prime = max(automatic_h_prime, h or 0)
        if h is None:
            h = min(automatic_h, h_prime)
        if h > h_prime:
            raise ParameterError(f"h={h} is above h_prime={h_prime}; lower one or raise the other")
        return min(h, lattice.depth), min(h_prime, lattice.depth)


def _depth_on(lattice: Lattice, depth: Any, depth_name: str, edge: Any, edge_name: str) -> int | None:
    """The depth that was asked for, as such or as an edge length, or None."""
    if depth is not None and edge is not None:
        raise ParameterError(f"give {depth_name} or {edge_name}, not both")
    if edge is not None:
        try:
            return lattice.depth_for_edge(parse_length(edge, edge_name))
        except ParameterError as err:
            raise ParameterError(f"{edge_name}={as_given(edge)}: {err}") from None
    return None if depth is None else parse_depth(depth, depth_name)
