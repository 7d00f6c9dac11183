"""A release of noisy bins: what the grid and the tree publish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.release.arrow import LARGEST_COUNT, WHOLE, from_arrow, numbers, to_arrow
from spinney.release.card import Card
from spinney.release.model import Members, Release
from spinney.schema.lattice import Lattice
from spinney.tree.bins import NoisyBins
from spinney.tree.release.axes import axes_from_list, axes_to_list, check_nodes
from spinney.tree.release.placement import RowSampler, check_placement, mean_points
from spinney.tree.release.verification import verify_tree


class BinnedRelease(Release):
    """Noisy bins with their card."""

    kind = "bins"
    member_names = ("bins.arrow",)
    options = ("placement",)
    point_options = ("placement",)

    def __init__(self, bins: NoisyBins, card: Card, *, placement: str = "tilted") -> None:
        super().__init__(card)
        self.bins = bins
        self.placement = check_placement(placement)
        self._samplers: dict[str, RowSampler] = {}

    def _drawing(self, *, placement: str | None = None) -> dict[str, Any]:
        return {"placement": self.placement if placement is None else check_placement(placement)}

    def _draw(self, n_rows: int, rng: np.random.Generator, **options: Any) -> NDArray[np.float64]:
        where = options["placement"]
        if where not in self._samplers:
            self._samplers[where] = RowSampler(self.bins, where)
        return self._samplers[where].draw(n_rows, rng)

    def _weighted_points(self, *, placement: str = "centre") -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        where = check_placement(placement)
        self._require_contents()
        weights = self.bins.noisy_counts / self.bins.noisy_counts.sum()
        return np.ascontiguousarray(mean_points(self.bins, where).T), weights

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

    def to_members(self) -> tuple[dict[str, Any], Members]:
        described = {"placement": self.placement, "axes": axes_to_list(self.bins.lattice)}
        return described, {"bins.arrow": _bins_to_arrow(self.bins)}

    @classmethod
    def from_members(cls, card: Card, described: Mapping[str, Any], members: Members) -> Self:
        lattice = axes_from_list(described["axes"], card.schema)
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
        raise ValueError("counts that add up to more than can be")
    return NoisyBins(lattice, codes, depths, noisy_counts)
