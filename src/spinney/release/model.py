"""Release: a finished, public model. Sampling from it costs nothing, however often."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.partition.bins import NoisyBins
from spinney.release.card import Card
from spinney.release.frames import check_frame_kind, to_frame
from spinney.release.placement import RowSampler, check_placement, mean_points
from spinney.schema.table import Schema


class Release:
    """Noisy bins with their card. `sp.load` returns one, and a fitted synthesizer holds one in `release_`."""

    def __init__(self, bins: NoisyBins, card: Card, *, placement: str = "tilted") -> None:
        self.bins = bins
        self.card = card
        self.placement = check_placement(placement)
        self._samplers: dict[str, RowSampler] = {}

    def __repr__(self) -> str:
        return f"Release({self.card.n_bins} bins, {self.card!r})"

    @property
    def schema(self) -> Schema:
        """What was public about the table, bounds included."""
        return self.card.schema

    def sample(
        self,
        n_rows: int | None = None,
        *,
        seed: int | np.random.Generator | None = None,
        placement: str | None = None,
        frame: str | None = None,
    ) -> Any:
        """Synthetic rows, in the kind of table that was fitted.

        Args:
            n_rows: how many; by default as many as the private table had where that is public, else the noisy total.
            seed: repeats the same rows; the noise of the release is not affected.
            placement: "centre", "uniform" or "tilted"; by default the synthesizer's.
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind that was fitted.
        """
        where = self.placement if placement is None else check_placement(placement)
        kind = check_frame_kind(frame or self.card.frame)
        if n_rows is None:
            n_rows = self.card.n_rows if self.card.n_rows is not None else self.bins.noisy_total
        if isinstance(n_rows, bool) or not isinstance(n_rows, (int, np.integer)) or n_rows < 0:
            raise ParameterError(f"n_rows={n_rows!r} is not a whole number of rows")
        if n_rows > 0:
            self._require_bins()
        try:
            rng = np.random.default_rng(seed)
        except (TypeError, ValueError):
            raise ParameterError(f"seed={seed!r} is not a non-negative whole number") from None
        if n_rows == 0:
            return to_frame(np.empty((self.bins.lattice.n_axes, 0)), self.schema, kind)
        if where not in self._samplers:
            self._samplers[where] = RowSampler(self.bins, where)
        return to_frame(self._samplers[where].draw(int(n_rows), rng), self.schema, kind)

    def weighted_points(
        self, *, placement: str = "centre", frame: str | None = None
    ) -> tuple[Any, NDArray[np.float64]]:
        """The paper's output Q: one point per bin and weights that add up to 1.

        Points are bin centres; with `placement="tilted"` they lean toward the denser neighbour.
        """
        where = check_placement(placement)
        kind = check_frame_kind(frame or self.card.frame)
        self._require_bins()
        points = np.ascontiguousarray(mean_points(self.bins, where).T)
        weights = self.bins.noisy_counts / self.bins.noisy_counts.sum()
        return to_frame(points, self.schema, kind), weights

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release to one file, whole or not at all."""
        from spinney.release.storage import save

        save(self, path, overwrite=overwrite)

    def _require_bins(self) -> None:
        if not len(self.bins):
            raise ParameterError(
                "the release has no bins: every noisy count fell below the threshold; "
                "fit again with a larger epsilon or a lower threshold"
            )
