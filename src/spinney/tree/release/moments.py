"""The release of leaf moments, the default of the tree for tables of few columns, and its checks. PUBLIC.

redraw                moments that might have been released: the same noise once more
remarks               what leaves say about bounds and about columns that are hardly cut
verification          noise, plan and leaves of a tree or a grid compared with the charges on the card
release of moments    the release: density, draws, answers, members of the file
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from spinney.columns import Bounded
from spinney.errors import ParameterError
from spinney.grid.codes import deinterleave
from spinney.privacy.budget import LARGEST_EPSILON, Unit, parse_fraction
from spinney.privacy.mechanisms import Charge, DiscreteLaplaceCounts, LeafMoments, SplitDecisions
from spinney.progress import waiting
from spinney.release.card import (
    Card,
    ContradictionError,
    Ranges,
    RowCount,
    bounds_of_a_column,
    check,
    check_frame_kind,
    ends_of,
    in_one_range,
    of_piles,
    same,
    spent_whole,
)
from spinney.release.file import WHOLE, are_counts, from_arrow, numbers, to_arrow
from spinney.release.parts import Part
from spinney.release.release import (
    Members,
    Release,
    checked_draws,
    draw_generators,
    explains_options,
    refuse_parts_of_draws,
)
from spinney.release.verify import farthest, laplace_log_moment, sup_norm_log_moment
from spinney.schema.schema import Schema
from spinney.text import as_given, brief
from spinney.tree.bins import NoisyBins, NoisyMoments, is_within, leaf_cells
from spinney.tree.release.certify import sup_norm
from spinney.tree.release.density import FLAT, Floats, LeafDensity, Stopping, box_shares, reconstruct
from spinney.tree.release.draw import EvenRows
from spinney.tree.release.geometry import (
    axis_entries,
    check_nodes,
    ends_to_places,
    lattice_from_entries,
    to_values,
    value_extent,
)

if TYPE_CHECKING:
    from spinney.release.answers.answer import Answer, Trust
    from spinney.release.answers.question import Question
    from spinney.tree.release.answers import TreeAnswers


# --------------------------------------------------------------------------------------------------------------- redraw
# Leaf moments that might have been released: the noisy ones with fresh noise of the same law.
#
# The tree stays as it is; all counts and sums, and a bought number of rows, get the noise once more, so that the
# spread of tables that are drawn from them carries what the first noise did. Noise is simulated by floats: this is
# what comes after a release, and protects no number.


def redrawn_moments(moments: NoisyMoments, rng: np.random.Generator) -> NoisyMoments:
    """The moments with fresh noise on top of what they have."""
    return replace(moments, noisy_steps=moments.noisy_steps + leaf_noise(moments, rng))


def redrawn_count(count: RowCount | None, rng: np.random.Generator) -> RowCount | None:
    """A bought number of rows with fresh noise."""
    if count is None:
        return None
    chance = -math.expm1(-float(count.rate))
    return replace(count, noisy=count.noisy + int(rng.geometric(chance)) - int(rng.geometric(chance)))


def leaf_noise(moments: NoisyMoments, rng: np.random.Generator) -> NDArray[np.int64]:
    """Fresh noise for all leaves (n_leaves, 1 + n_axes), in steps; 0 along axes that are not measured."""
    _, _, is_measured = leaf_cells(moments.codes, moments.depths, moments.lattice)
    is_noisy = np.column_stack([np.ones(len(moments), dtype=np.bool_), is_measured])
    n_numbers = is_noisy.sum(axis=1)
    noise = np.zeros(is_noisy.shape, dtype=np.int64)
    for n in np.unique(n_numbers).tolist():
        chosen = n_numbers == n
        drawn = sup_norm(float(moments.rate), n, (int(chosen.sum()), 1), rng)[:, :, 0]
        noise[is_noisy & chosen[:, None]] = drawn.T.ravel().astype(np.int64)
    return noise


# -------------------------------------------------------------------------------------------------------------- remarks
# What a tree's leaves say about the schema: rows that pile up at a bound, and columns that are hardly cut at all.


# A column is told by hardly more than one range where half of the rows lie in ranges this long, as a part of what
# holds the middle four fifths of them.
_HARDLY_CUT = 0.5
# What holds them is then a small part of the column, or it is not the bounds that are to blame; and most are in there.
_SMALL_PART = 0.25
_MOST = 0.5
_REMEDY = "tighten its bounds, or use a forest (method='forest')"


def tree_remarks(bins: NoisyBins | NoisyMoments, weights: NDArray[np.float64], schema: Schema) -> list[str]:
    """Remarks on all columns, from leaves with so many rows each."""
    first, size = deinterleave(bins.codes, bins.depths, bins.lattice)
    remarks: list[str] = []
    for index, axis in enumerate(bins.lattice.axes):
        column = schema[axis.name]
        if not isinstance(column, Bounded):
            continue
        start = np.maximum(first[:, index], axis.first)
        stop = np.minimum(first[:, index] + size[:, index], axis.last + 1)
        held = (stop > start) & (weights > 0)
        if held.any():
            ranges = Ranges(*value_extent(axis, start[held], stop[held]), weights[held])
            remarks += [*of_piles(axis.name, column, ranges), *_of_hardly_cut(axis.name, column, ranges)]
    return remarks


def _of_hardly_cut(name: str, column: Bounded, ranges: Ranges) -> Iterator[str]:
    """A remark where most rows lie in ranges as long as all that holds them."""
    by_length = np.argsort(ranges.length)
    middle = by_length[np.searchsorted(np.cumsum(ranges.weights[by_length]), ranges.weights.sum() / 2)]
    typical = ranges.length[middle]
    if typical <= (column.step if column.is_whole else 0):
        return
    low, high = (_quantile(ranges, share) for share in (0.1, 0.9))
    first, last = ends_of(column)
    if typical >= _HARDLY_CUT * (high - low) and high - low <= _SMALL_PART * (last - first):
        is_alike = (ranges.low <= ranges.low[middle]) & (ranges.low + ranges.length >= ranges.low[middle] + typical)
        share = float(ranges.weights[is_alike].sum() / ranges.weights.sum())
        if share >= _MOST:
            yield in_one_range(name, column, float(ranges.low[middle]), float(typical), share, _REMEDY)


def _quantile(ranges: Ranges, share: float) -> float:
    """The place below which this share of the rows lies, each range taken to be at its end on that side."""
    places = ranges.low if share < 1 / 2 else ranges.low + ranges.length
    order = np.argsort(places)
    below = np.cumsum(ranges.weights[order])
    return float(places[order][min(np.searchsorted(below, share * below[-1]), len(order) - 1)])


# --------------------------------------------------------------------------------------------------------- verification
# What a tree or a grid says of its noise, its plan and its leaves, compared with the charges on its card.


_LARGEST_DECAY = 2**60


def verify_tree(card: Card, depths: NDArray[np.int64], moments: NoisyMoments | None = None) -> list[str]:
    """The plan on the card is that of the events, and the leaves are those of the plan."""
    unit = Unit.parse(card.unit)
    spent_whole(card)
    charges = [event for event in card.events if isinstance(event, Charge) and not _is_for_figures(event)]
    for charge in charges:
        if isinstance(charge, (DiscreteLaplaceCounts, LeafMoments)):
            same(charge.sensitivity, unit.factor, f"the sensitivity of {charge.note!r}")
    _bounds(card, charges[:-1])
    counts = charges[-1] if charges else None
    kind = DiscreteLaplaceCounts if moments is None else LeafMoments
    if not isinstance(counts, kind) or sum(isinstance(charge, LeafMoments) for charge in charges) > 1:
        raise ContradictionError("no charge pays for what was released")
    check(counts.stage in (None, "leaves"), f"the last charge is for {counts.stage}, and leaves were released")
    check(isinstance(counts, LeafMoments) or counts.times in (None, 1), "leaves of more trees than one are charged for")
    rate, scale = counts.rate, float(1 / counts.rate)
    totals: list[str] = []
    if moments is not None:
        same(moments.rate * moments.quantum, rate, "the rate of the noise on leaves")
        totals = _check_total(card, moments, rate)
    what = "leaf counts" if moments is None else "leaf counts and means"
    checks = [f"{what}: noise of scale {scale:.6g} on the card, in the plan and in the leaves"]
    return checks + totals + _decisions(card, unit, depths)


def _is_for_figures(event: Charge) -> bool:
    """Whether a charge pays for figures of utility, which all kinds of releases have: `release.verification`."""
    return isinstance(event, LeafMoments) and event.stage == "utility"


def _bounds(card: Card, charges: Sequence[Charge]) -> None:
    """Counts that were paid for before the leaves are those of rows, or of magnitudes of columns in the schema."""
    counts = [c for c in charges if isinstance(c, DiscreteLaplaceCounts) and c.stage not in (None, "rows")]
    for charge in counts:
        bounds_of_a_column(charge, card)


def _check_total(card: Card, moments: NoisyMoments, rate: Fraction) -> list[str]:
    """All leaves are released and every row is in one of them, so their counts add up to all rows and their noise."""
    count = card.row_count
    if card.n_rows is None and count is None:
        return []
    total = float(moments.noisy_steps[:, 0].sum(dtype=np.float64)) / moments.quantum
    _, _, is_measured = leaf_cells(moments.codes, moments.depths, moments.lattice)
    sizes = np.bincount(1 + is_measured.sum(axis=1, dtype=np.int64)) if len(moments) else np.zeros(0, dtype=np.int64)
    leaves = [(int(n_axes), int(n)) for n_axes, n in enumerate(sizes) if n]

    def of_leaves(s: float) -> float:
        step = float(moments.rate)
        return sum(n * sup_norm_log_moment(step, n_axes, s / moments.quantum) for n_axes, n in leaves)

    if card.n_rows is not None:
        known, slack = card.n_rows, farthest(of_leaves, float(rate))
        what = f"n_rows={known}"
    else:
        assert count is not None
        known, bought = count.noisy, float(count.rate)
        slack = farthest(lambda s: of_leaves(s) + laplace_log_moment(bought, s), min(float(rate), bought))
        what = f"the noisy count of rows, {known}"
    is_likely = abs(total - known) <= slack
    check(is_likely, f"the counts of all leaves do not add up to about {what}: noise explains {slack:,.0f} at the most")
    return [
        f"the counts of all leaves add up to {what}, up to noise: {abs(total - known):,.0f} of {slack:,.0f} at most"
    ]


def _decisions(card: Card, unit: Unit, depths: NDArray[np.int64]) -> list[str]:
    plan = card.design
    is_grid = plan["rule"] == "grid"
    highest = _level(plan, "max_depth")
    lowest = highest if is_grid else _level(plan, "fixed_depth")
    check(lowest <= highest, "fixed_depth is above max_depth")
    if len(depths):
        check(lowest <= depths.min() and depths.max() <= highest, "leaves lie deeper or higher than the plan goes")
    found = [event for event in card.events if isinstance(event, SplitDecisions)]
    same(len(found), int(highest > lowest), "the number of charges for decisions")
    if not found:
        return []
    (event,) = found
    check(event.stage in (None, "splits"), f"the decisions are those of {event.stage}, and one tree was released")
    check(event.times in (None, 1), "decisions of more trees than one are charged for")
    same(event.rule, plan["rule"], "the rule")
    same(event.levels, highest - lowest, "the number of levels")
    scale = float(1 / event.rate)
    if event.rule == "paper":
        same(event.decay, None, "the decay")
        is_true = event.rate * unit.factor * event.levels <= event.epsilon
    else:
        check(event.decay in (None, plan["decay"]), "the decay of the decisions is not that of the plan")
        is_true = is_within(event.rate, _level(plan, "decay", least=1), event.levels, unit, event.epsilon)
    check(is_true, f"the decisions of {event.note!r} cost more than the epsilon stated for them")
    return [f"split decisions: {event.levels} levels of noise of scale {scale:.6g} cost no more than stated"]


def _level(plan: Any, name: str, *, least: int = 0) -> int:
    level = plan[name]
    check(type(level) is int and least <= level <= _LARGEST_DECAY, f"{name}={brief(level)} is not a whole number")
    return int(level)


# --------------------------------------------------------------------------------------------------- release of moments
# A release of leaf moments: what the tree publishes by default for tables of few columns.


MomentPlacement = Literal["fitted", "uniform", "centre"]
# Of a step of noise: below, draws would not fit into 64 bits.
SMALLEST_RATE = Fraction(1, 2**50)
# What is read as evidence about a leaf: its counts alone, or that its node did not split as well.
_EVIDENCE = ("counts", "decisions")
# Intervals from draws of a tree of more columns are not called calibrated.
_FEW_COLUMNS = 3
MOMENT_PLACEMENTS: tuple[MomentPlacement, ...] = ("fitted", "uniform", "centre")


class MomentsRelease(Release):
    """Noisy counts and means of all leaves, with their card; the density they suggest follows when it is needed."""

    kind = "moments"
    member_names = ("leaves.arrow",)

    def __init__(
        self, moments: NoisyMoments, card: Card, *, placement: str = "fitted", reads_decisions: bool = False
    ) -> None:
        super().__init__(card)
        self.moments = moments
        # Files of releases that were drawn from without it say nothing, and go on drawing what they drew.
        self._stopping = Stopping.by_plan(card.plan, moments.depths) if reads_decisions else None
        self.placement = check_moment_placement(placement)
        self._samplers: dict[str, EvenRows] = {}

    @cached_property
    def density(self) -> LeafDensity:
        """Weights, means and spread of all leaves, from released numbers alone."""
        return self._fitted(self.moments, self._card.row_count)

    def _fitted(self, moments: NoisyMoments, row_count: RowCount | None) -> LeafDensity:
        """The density that moments of these leaves suggest."""
        return reconstruct(moments, self._card.n_rows, row_count, self._stopping)

    @explains_options
    @waiting("drawing rows")
    def sample(
        self,
        n_rows: int | None = None,
        *,
        seed: int | np.random.Generator | None = None,
        frame: str | None = None,
        like: Any = None,
        parts: int | str | None = None,
        placement: str | None = None,
        draws: int | None = None,
    ) -> Any:
        """Synthetic rows, in the kind of table that was fitted. Costs no epsilon, however often.

        Args:
            n_rows: how many rows; by default as many as the private table had where that is public, else a noisy total.
            seed: repeats the same rows; the noise of the release is not affected. Rows are drawn by a stream of their
                own, so the seed may serve again for what is done with them; of a generator a few words are drawn.
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind of `like`, else the kind that was
                fitted.
            like: a table, or its `dtypes` or `schema`, whose column types the rows get; see `Release.sample`.
            parts: in how many parts to draw rows that memory does not hold, or "auto"; gives a `SampleParts`, see
                `Release.sample`.
            placement: where rows lie in their leaf or bin: "uniform" or "centre", "fitted" to the moments of a leaf,
                "tilted" in a bin; by default as it was fitted.
            draws: how many tables to draw from leaf moments, each from the released counts and sums with fresh noise,
                so that their spread carries the noise of the release; a list of so many tables. Without it, one table:
                the best single one, whose analyses know nothing of the noise.

        Raises:
            ParameterError: an option is unknown or out of range, or a type in `like` cannot hold what the schema
                allows.
        """
        where = self.placement if placement is None else check_moment_placement(placement)
        if draws is not None:
            refuse_parts_of_draws(parts)
            n_rows = self._default_rows() if n_rows is None else n_rows
            return [
                self._redrawn(rng).sample(n_rows, seed=rng, frame=frame, like=like, placement=where)
                for rng in draw_generators(seed, checked_draws(draws))
            ]
        draw, asked = partial(self._draw, placement=where), {"placement": where}
        return self._sample(draw, n_rows, seed=seed, frame=frame, like=like, parts=parts, asked=asked)

    def _redrawn(self, rng: np.random.Generator) -> MomentsRelease:
        """The release that the same counts and sums would be with fresh noise on top."""
        reads_decisions = self._stopping is not None
        moments = redrawn_moments(self.moments, rng)
        release = MomentsRelease(moments, self._card, placement=self.placement, reads_decisions=reads_decisions)
        release.stream = self.stream
        release.density = self._fitted(moments, redrawn_count(self._card.row_count, rng))
        return release

    @explains_options
    def weighted_points(
        self, *, frame: str | None = None, placement: str | None = None
    ) -> tuple[Any, NDArray[np.float64]]:
        """The release as points with weights that add up to 1, the paper's output.

        Args:
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind that was fitted.
            placement: where the point of a leaf or bin lies; by default "fitted" to the means of a leaf, and at the
                "centre" of a bin.
        """
        check_frame_kind(self.card.frame if frame is None else frame)
        density = _placed(self.density, check_moment_placement("fitted" if placement is None else placement))
        boxes = density.boxes
        points = boxes.low + boxes.length * (1 + density.means) / 2
        points = np.where(boxes.null_share == 1, np.nan, points)
        is_used = density.weights > 0
        weights = density.weights[is_used]
        values = to_values(np.ascontiguousarray(points[is_used].T), self.moments.lattice, density.piles)
        return self._points_frame((values, weights / weights.sum()), frame)

    def range_counts(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """Expected number of rows in boxes low <= x < high: arrays (n_boxes, n_columns) in units of the columns.

        For reals; whole numbers are counted from the column's low bound. Rows with a null lie in no box.

        Args:
            low: the low ends of the boxes, -inf where one has no end.
            high: their high ends.
        """
        n_columns = len(self.schema._modelled)
        try:
            ends = [np.atleast_2d(np.asarray(end, dtype=np.float64)) for end in (low, high)]
        except (TypeError, ValueError):
            raise ParameterError("low and high are not arrays of numbers") from None
        if ends[0].shape != ends[1].shape or ends[0].ndim != 2 or ends[0].shape[1] != n_columns:
            raise ParameterError(
                f"low and high have shapes {ends[0].shape} and {ends[1].shape}; give one row for each box and one "
                f"number for each of the {n_columns} columns"
            )
        if np.isnan(ends).any():
            raise ParameterError("low or high holds NaN; use -inf and inf where a box has no end")
        places = [ends_to_places(end, self.moments.lattice, self.density.piles) for end in ends]
        (first, lifted_first), (stop, lifted_stop) = places
        return box_shares(self.density, first, stop, (lifted_first, lifted_stop))

    @cached_property
    def _asked(self) -> TreeAnswers:
        from spinney.tree.release.answers import TreeAnswers

        return TreeAnswers(self)

    def _answer(self, questions: Sequence[Question], *, simultaneous: bool = False) -> list[Answer]:
        return self._asked.answer(questions, simultaneous=simultaneous)

    def _trust(self, columns: tuple[str, ...]) -> Trust:
        return self._asked.trust(columns)

    def _bar_starts(self, name: str, most: int, *, together: bool) -> list[Any] | None:
        del together
        return self._asked.bar_starts(name, most)

    def _holds_pair(self, pair: tuple[str, str]) -> bool:
        del pair  # leaves are of all columns
        return True

    def _draw(
        self,
        n_rows: int,
        rng: np.random.Generator,
        *,
        part: Part | None = None,
        placement: MomentPlacement | None = None,
    ) -> Floats:
        where = placement or self.placement
        if where not in self._samplers:
            self._samplers[where] = EvenRows(_placed(self.density, where))
        return to_values(self._samplers[where].draw(n_rows, rng, part=part), self.moments.lattice, self.density.piles)

    def _remarks(self) -> list[str]:
        counts = np.maximum(self.moments.noisy_steps[:, 0], 0).astype(np.float64)
        return tree_remarks(self.moments, counts, self.schema._modelled)

    def _noisy_total(self) -> int:
        return round(float(self.density.weights.sum()))

    def _require_contents(self) -> None:
        """Weights are fitted to a positive total, so there is always a leaf to draw from."""

    def verify_contents(self) -> list[str]:
        return verify_tree(self.card, self.moments.depths, self.moments)

    def unverified(self) -> list[tuple[str, str]]:
        return [
            (
                "the noise of counts and means of leaves",
                "its law is stated by the file itself, and one total tells little",
            )
        ]

    def _counts_together(self, names: Collection[str]) -> bool:
        """A tree counts all columns together; of more than three its leaves are too coarse to say so."""
        del names
        return len(self.schema) <= _FEW_COLUMNS

    def _is_coarse(self, names: Collection[str]) -> bool:
        """Leaves are boxes, in which the model guesses."""
        return len(names) > 1

    def to_members(self) -> tuple[dict[str, Any], Members]:
        moments = self.moments
        columns: dict[str, Any] = {f"code_{word}": moments.codes[:, word] for word in range(moments.lattice.n_words)}
        columns |= {"depth": moments.depths.astype(np.int32), "noisy_count": moments.noisy_steps[:, 0]}
        columns |= {f"noisy_sum_{axis}": moments.noisy_steps[:, 1 + axis] for axis in range(moments.lattice.n_axes)}
        described = {
            "placement": self.placement,
            **axis_entries(moments.lattice, self.card),
            "quantum": moments.quantum,
            "rate": str(moments.rate),
            "evidence": _EVIDENCE[self._stopping is not None],
        }
        return described, {"leaves.arrow": to_arrow(pa.table(columns))}

    @classmethod
    def from_members(cls, card: Card, described: Mapping[str, Any], members: Members) -> Self:
        lattice = lattice_from_entries(described, card)
        words = [f"code_{word}" for word in range(lattice.n_words)]
        sums = ["noisy_count", *(f"noisy_sum_{axis}" for axis in range(lattice.n_axes))]
        types = dict.fromkeys(words, (pa.uint64(),)) | {"depth": WHOLE} | dict.fromkeys(sums, WHOLE)
        table = from_arrow(members["leaves.arrow"], types)
        codes = np.column_stack([numbers(table, name, np.uint64) for name in words])
        depths = numbers(table, "depth", np.int64)
        steps = np.column_stack([numbers(table, name, np.int64) for name in sums])
        check_nodes(codes, depths, lattice)
        quantum, rate = described["quantum"], parse_fraction(described["rate"], "rate")
        if not len(steps) or not are_counts(steps):
            raise ValueError("leaves out of range")
        if type(quantum) is not int or not 1 <= quantum < 2**53 or not SMALLEST_RATE <= rate <= LARGEST_EPSILON:
            raise ValueError("noise out of range")
        if card.n_rows == 0:
            raise ValueError("rows out of range")
        if card.released != {"leaves": len(steps)}:
            raise ValueError("the card describes other leaves")
        moments = NoisyMoments(lattice, codes, depths, steps, quantum, rate)
        # Files of the first two versions read counts alone, and do not say so.
        evidence = described["evidence"] if described["format_version"] > 2 else _EVIDENCE[False]
        if evidence not in _EVIDENCE:
            raise ValueError(f"evidence is none of {', '.join(_EVIDENCE)}")
        return cls(moments, card, placement=described["placement"], reads_decisions=evidence == _EVIDENCE[True])


def check_moment_placement(placement: str) -> MomentPlacement:
    """The placement, or an error that lists the three."""
    for known in MOMENT_PLACEMENTS:
        if isinstance(placement, str) and placement == known:
            return known
    raise ParameterError(
        f"placement={as_given(placement)} is not one of {', '.join(map(repr, MOMENT_PLACEMENTS))}, which a release of "
        "leaf moments has; moments=False releases bins, which have others"
    )


def _placed(density: LeafDensity, placement: MomentPlacement) -> LeafDensity:
    """The density with rows at the centres of leaves, or anywhere in them, instead of where moments put them."""
    if placement == "fitted":
        return density
    flat: NDArray[np.float64] = np.full_like(density.means, FLAT)
    spread = np.full_like(density.spread, 1.0 if placement == "uniform" else 0.0)
    return replace(density, means=np.zeros_like(density.means), slopes=flat, spread=spread)
