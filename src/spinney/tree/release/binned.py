"""A release of noisy bins: what the grid and the tree publish."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.progress import waiting
from spinney.release.arrow import LARGEST_COUNT, WHOLE, from_arrow, numbers, to_arrow
from spinney.release.card import Card
from spinney.release.frames import check_frame_kind
from spinney.release.model import Members, Release
from spinney.release.options import explains_options
from spinney.release.parts import Part
from spinney.schema.lattice import Lattice
from spinney.tree.bins import NoisyBins
from spinney.tree.release.axes import axis_entries, check_nodes, lattice_from_entries
from spinney.tree.release.piece_values import to_values
from spinney.tree.release.placement import Placement, RowSampler, check_placement, mean_points
from spinney.tree.release.remarks import tree_remarks
from spinney.tree.release.verification import verify_tree


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
        return tree_remarks(self.bins, self.bins.noisy_counts.astype(np.float64), self.schema.modelled)

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
