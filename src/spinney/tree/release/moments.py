"""A release of leaf moments: what the tree publishes by default for tables of few columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from spinney.errors import ParameterError
from spinney.privacy.budget import LARGEST_EPSILON, parse_fraction
from spinney.progress import waiting
from spinney.release.arrow import WHOLE, are_counts, from_arrow, numbers, to_arrow
from spinney.release.card import Card
from spinney.release.draws import checked_draws, draw_generators, refuse_parts_of_draws
from spinney.release.frames import check_frame_kind
from spinney.release.model import Members, Release
from spinney.release.options import explains_options
from spinney.release.parts import Part
from spinney.shown import as_given
from spinney.tree.bins import NoisyMoments
from spinney.tree.release.axes import axis_entries, check_nodes, lattice_from_entries
from spinney.tree.release.piece_values import ends_to_places, to_values
from spinney.tree.release.posterior import Stopping
from spinney.tree.release.reconstruct import FLAT, Floats, LeafDensity, box_shares, reconstruct
from spinney.tree.release.redraw import redrawn_count, redrawn_moments
from spinney.tree.release.remarks import tree_remarks
from spinney.tree.release.systematic import EvenRows
from spinney.tree.release.verification import verify_tree

if TYPE_CHECKING:
    from spinney.release.answers.answer import Answer
    from spinney.release.answers.question import Question
    from spinney.release.answers.trust import Trust
    from spinney.tree.release.answers.answering import TreeAnswers

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
        return reconstruct(self.moments, self._card.n_rows, self._card.row_count, self._stopping)

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
            placement: where rows lie in their leaf: "fitted" to its moments, "uniform" or "centre"; by default as it
                was fitted.
            draws: how many tables to draw, each from the released counts and sums with fresh noise, so that their
                spread carries the noise of the release; a list of so many tables. Without it, one table: the best
                single one, whose analyses know nothing of the noise.

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
        count = redrawn_count(self._card.row_count, rng)
        release.density = reconstruct(moments, self._card.n_rows, count, self._stopping)
        return release

    @explains_options
    def weighted_points(
        self, *, frame: str | None = None, placement: str | None = None
    ) -> tuple[Any, NDArray[np.float64]]:
        """The leaves as points with weights that add up to 1.

        Args:
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind that was fitted.
            placement: where the point of a leaf lies: "fitted" to its means, which is the default, or at its "centre".
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
        n_columns = len(self.schema.modelled)
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
        from spinney.tree.release.answers.answering import TreeAnswers

        card = self._card

        def refit(moments: NoisyMoments) -> LeafDensity:
            return reconstruct(moments, card.n_rows, card.row_count, self._stopping)

        return TreeAnswers(self.moments, self.schema, card.n_rows, card.planned_rows or 0, lambda: self.density, refit)

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
        return tree_remarks(self.moments, counts, self.schema.modelled)

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
