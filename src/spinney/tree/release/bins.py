"""The release of noisy bins, which the grid and the paper's tree publish, and how rows lie inside bins. PUBLIC.

placement          rows inside bins: centre, uniform or tilted
release of bins    the release: draws, weighted points, members of the file
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.errors import ParameterError
from spinney.grid.lattice import Lattice
from spinney.machine import each
from spinney.progress import waiting
from spinney.release.card import Card, check_frame_kind
from spinney.release.file import LARGEST_COUNT, WHOLE, from_arrow, numbers, to_arrow
from spinney.release.parts import Part
from spinney.release.release import Members, Release, explains_options
from spinney.text import as_given
from spinney.tree.bins import NoisyBins
from spinney.tree.release.geometry import (
    Boxes,
    Matrix,
    axis_entries,
    bin_boxes,
    check_nodes,
    lattice_from_entries,
    shifts,
    to_values,
)
from spinney.tree.release.moments import tree_remarks, verify_tree

# ------------------------------------------------------------------------------------------------------------ placement
# Rows inside bins: centre, uniform or tilted.
#
# A placement gives every bin and axis an interval and a slope: a row lies at `low + length * v`, v with density 1 +
# slope (v - 1/2) on [0, 1]. `centre` has length 0, `uniform` slope 0. `tilted` follows the lean of the density
# (geometry.shifts): up to a sixth of the edge a slope over the whole edge has that mean; beyond, a triangle on the
# side of the sibling, as long as the mean asks for.


Placement = Literal["centre", "uniform", "tilted"]
PLACEMENTS: tuple[Placement, ...] = ("centre", "uniform", "tilted")

# Rows per independent random stream: a constant, so that a seed gives the same rows on any number of cores.
_STREAM_ROWS = 1 << 17
_STEEPEST = 1 / 6


def check_placement(placement: str) -> Placement:
    """The placement, or an error that lists the three."""
    for known in PLACEMENTS:
        if isinstance(placement, str) and placement == known:
            return known
    raise ParameterError(f"placement={as_given(placement)} is not one of {', '.join(map(repr, PLACEMENTS))}")


def mean_points(bins: NoisyBins, placement: Placement) -> Matrix:
    """The mean of every bin (n_bins, n_axes); NaN where the bin is null along an axis."""
    boxes = bin_boxes(bins)
    lean = shifts(bins, bins.noisy_counts) if placement == "tilted" else 0.0
    points = boxes.low + boxes.length * (0.5 + lean)
    return np.where(boxes.null_share == 1, np.nan, points)


class RowSampler:
    """Draws rows from bins. What depends on the bins alone is computed once; after that only rows cost time."""

    def __init__(self, bins: NoisyBins, placement: Placement) -> None:
        boxes = bin_boxes(bins)
        self._laws = _laws(boxes, shifts(bins, bins.noisy_counts) if placement == "tilted" else None, placement)
        self._null_share = np.ascontiguousarray(boxes.null_share.T)
        self._is_nullable = [axis.nullable for axis in bins.lattice.axes]
        self._cumulative = np.cumsum(bins.noisy_counts) / bins.noisy_counts.sum()
        steps = np.arange(2 * len(bins)) / (2 * len(bins))
        self._guide = np.searchsorted(self._cumulative, steps, side="right").astype(np.int32)

    def draw(self, n_rows: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Rows as positions along each axis (n_axes, n_rows), in random order; NaN is null.

        Bins are picked by their noisy counts, independently for each row.
        """
        rows = np.empty((len(self._laws), n_rows))
        starts = range(0, n_rows, _STREAM_ROWS)
        streams = rng.spawn(len(starts))
        parts = [rows[:, start : start + _STREAM_ROWS] for start in starts]
        each(self._fill, parts, streams, title="drawing rows")
        return rows

    def _fill(self, rows: NDArray[np.float64], stream: np.random.Generator) -> None:
        """Rows of one random stream."""
        chosen = _choose(stream.random((rows.shape[1],)), self._cumulative, self._guide)
        for axis, positions in enumerate(rows):
            stream.random(out=positions)
            if self._is_nullable[axis]:
                _set_nulls(chosen, self._null_share[axis], positions)
            _place(chosen, self._laws[axis], positions)


def _laws(boxes: Boxes, lean: Matrix | None, placement: Placement) -> NDArray[np.float64]:
    """Low end, length and slope of every axis and bin, side by side in memory: (n_axes, n_bins, 3)."""
    low, length, slope = boxes.low, boxes.length, np.zeros_like(boxes.low)
    if placement == "centre":
        low, length = low + length / 2, np.zeros_like(length)
    if lean is not None:
        reach = np.where(np.abs(lean) <= _STEEPEST, 1.0, 3 * (0.5 - np.abs(lean)))
        low = low + np.where(lean > 0, (1 - reach) * length, 0)
        length = length * reach
        slope = 12 * np.clip(lean, -_STEEPEST, _STEEPEST)
    return np.stack([low.T, length.T, slope.T], axis=-1)


@compiled
def _choose(
    uniforms: NDArray[np.float64], cumulative: NDArray[np.float64], guide: NDArray[np.int32]
) -> NDArray[np.int32]:
    """For every u the bin with cumulative[bin-1] <= u < cumulative[bin], by a guide table and a short walk."""
    chosen = np.empty(uniforms.size, dtype=np.int32)
    last = cumulative.size - 1
    for i in range(uniforms.size):
        index = guide[np.int64(uniforms[i] * guide.size)]
        while index < last and cumulative[index] <= uniforms[i]:
            index += 1
        chosen[i] = min(index, last)
    return chosen


@compiled
def _set_nulls(chosen: NDArray[np.int32], null_share: NDArray[np.float64], positions: NDArray[np.float64]) -> None:
    """Turn uniform numbers below the bin's null share into NaN and stretch the others over [0, 1) again, in place."""
    for i in range(chosen.size):
        share, u = null_share[chosen[i]], positions[i]
        positions[i] = np.nan if u < share else (u - share) / (1 - share)


@compiled
def _place(chosen: NDArray[np.int32], law: NDArray[np.float64], positions: NDArray[np.float64]) -> None:
    """Turn uniform numbers into positions along one axis, in place; without branches, so it compiles to vectors."""
    for i in range(chosen.size):
        index, u = chosen[i], positions[i]
        # Inverse of the distribution v + slope (v^2 - v) / 2, in the form that is stable as slope -> 0.
        slope = law[index, 2]
        start = 1 - 0.5 * slope
        v = 2 * u / (start + np.sqrt(max(start * start + 2 * slope * u, 0.0)))
        positions[i] = law[index, 0] + law[index, 1] * v


# ------------------------------------------------------------------------------------------------------ release of bins
# A release of noisy bins: what the grid and the tree publish.


class BinnedRelease(Release):
    """Noisy bins with their card."""

    kind = "bins"
    member_names = ("bins.arrow",)

    def __init__(self, bins: NoisyBins, card: Card, *, placement: str = "tilted") -> None:
        super().__init__(card)
        self.bins = bins
        self.placement = check_placement(placement)
        self._samplers: dict[str, RowSampler] = {}

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
            placement: where rows lie in their bin: "tilted", "uniform" or "centre"; by default as it was fitted.
        """
        where = self.placement if placement is None else check_placement(placement)
        draw, asked = partial(self._draw, placement=where), {"placement": where}
        return self._sample(draw, n_rows, seed=seed, frame=frame, like=like, parts=parts, asked=asked)

    @explains_options
    def weighted_points(
        self, *, frame: str | None = None, placement: str | None = None
    ) -> tuple[Any, NDArray[np.float64]]:
        """The paper's output Q: the centres of bins, with weights that add up to 1.

        Args:
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind that was fitted.
            placement: where the point of a bin lies: at its "centre", which is the default, or with "tilted" nearer to
                the denser neighbour.
        """
        check_frame_kind(self.card.frame if frame is None else frame)
        where = check_placement("centre" if placement is None else placement)
        self._require_contents()
        weights = self.bins.noisy_counts / self.bins.noisy_counts.sum()
        points = to_values(np.ascontiguousarray(mean_points(self.bins, where).T), self.bins.lattice)
        return self._points_frame((points, weights), frame)

    def _draw(
        self,
        n_rows: int,
        rng: np.random.Generator,
        *,
        part: Part | None = None,  # noqa: ARG002
        placement: Placement | None = None,
    ) -> NDArray[np.float64]:
        where = placement or self.placement
        if where not in self._samplers:
            self._samplers[where] = RowSampler(self.bins, where)
        return to_values(self._samplers[where].draw(n_rows, rng), self.bins.lattice)

    def _no_answers(self) -> ParameterError:
        return ParameterError(
            "a release of bins holds no counts below its threshold, so no interval follows from it; fit with "
            "sp.KDTreeSynthesizer(..., moments=True), which releases all leaves, or count the rows of sample()"
        )

    def _remarks(self) -> list[str]:
        return tree_remarks(self.bins, self.bins.noisy_counts.astype(np.float64), self.schema._modelled)

    def _noisy_total(self) -> int:
        return self.bins.noisy_total

    def _most_unasked(self) -> int:
        """Bins below the threshold are missing from the total, and were they most of the table: not without end."""
        return min(super()._most_unasked(), max(2**24, 1000 * self.bins.noisy_total))

    def _require_contents(self) -> None:
        if not len(self.bins):
            raise ParameterError(
                "the release has no bins: every noisy count fell below the threshold; "
                "fit again with a larger epsilon or a lower threshold"
            )

    def verify_contents(self) -> list[str]:
        return verify_tree(self.card, self.bins.depths)

    def unverified(self) -> list[tuple[str, str]]:
        why = "counts below the threshold are not in the file, and nothing tells how much noise is on the others"
        return [("the noise of the released counts, and that no bin was taken away", why)]

    def to_members(self) -> tuple[dict[str, Any], Members]:
        described = {"placement": self.placement, **axis_entries(self.bins.lattice, self.card)}
        return described, {"bins.arrow": _bins_to_arrow(self.bins)}

    @classmethod
    def from_members(cls, card: Card, described: Mapping[str, Any], members: Members) -> Self:
        lattice = lattice_from_entries(described, card)
        bins = _bins_from_arrow(members["bins.arrow"], lattice)
        if card.released != {"bins": len(bins)}:
            raise ValueError("the card describes other bins")
        return cls(bins, card, placement=described["placement"])


def _bins_to_arrow(bins: NoisyBins) -> bytes:
    columns: dict[str, Any] = {f"code_{word}": bins.codes[:, word] for word in range(bins.lattice.n_words)}
    columns |= {"depth": bins.depths.astype(np.int32), "noisy_count": bins.noisy_counts}
    return to_arrow(pa.table(columns))


def _bins_from_arrow(data: bytes, lattice: Lattice) -> NoisyBins:
    names = [f"code_{word}" for word in range(lattice.n_words)]
    types = dict.fromkeys(names, (pa.uint64(),)) | {"depth": WHOLE, "noisy_count": WHOLE}
    table = from_arrow(data, types)
    codes = np.column_stack([numbers(table, name, np.uint64) for name in names])
    depths, noisy_counts = numbers(table, "depth", np.int64), numbers(table, "noisy_count", np.int64)
    check_nodes(codes, depths, lattice)
    if len(noisy_counts) and not (noisy_counts.min() >= 1 and noisy_counts.max() <= LARGEST_COUNT):
        raise ValueError("counts out of range")
    if noisy_counts.sum(dtype=np.float64) > LARGEST_COUNT:
        raise ValueError("counts that add up to more than is possible")
    return NoisyBins(lattice, codes, depths, noisy_counts)
