"""A release of weighted points: what the algorithms of Balog et al. publish.

Weights may be negative and need not add up to 1: they are those of a function near the private kernel density. Rows are
drawn in proportion to the positive ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.release.arrow import FLOAT, from_arrow, numbers, to_arrow
from spinney.release.card import Card
from spinney.release.frames import positions_of
from spinney.release.model import Members, Release
from spinney.release.options import explains_options
from spinney.release.parts import Part

Floats = NDArray[np.float64]


class PointsRelease(Release):
    """Points with weights of either sign, and their card."""

    kind = "points"
    member_names = ("points.arrow",)

    def __init__(self, points: Floats, weights: Floats, card: Card) -> None:
        super().__init__(card)
        self.points = points  # (n_points, n_columns), inside the schema's bounds
        self.weights = weights  # (n_points,)

    @explains_options
    def weighted_points(self, *, frame: str | None = None) -> tuple[Any, Floats]:
        """The released points with their weights, which may be negative and need not add up to 1.

        Args:
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind that was fitted.
        """
        return self._points_frame((positions_of(self.points.T, self.schema), self.weights.copy()), frame)

    def _draw(self, n_rows: int, rng: np.random.Generator, *, part: Part | None = None) -> Floats:  # noqa: ARG002
        positive = np.maximum(self.weights, 0.0)
        chosen = rng.choice(len(positive), size=n_rows, p=positive / positive.sum())
        return positions_of(self.points[chosen].T, self.schema)

    def _noisy_total(self) -> int:
        return len(self.points)

    def _require_contents(self) -> None:
        if not (self.weights > 0).any():
            raise ParameterError("the release has no point of positive weight to draw rows from; use weighted_points()")

    def to_members(self) -> tuple[dict[str, Any], Members]:
        columns = {f"x_{axis}": self.points[:, axis] for axis in range(self.points.shape[1])}
        return {}, {"points.arrow": to_arrow(pa.table(columns | {"weight": self.weights}))}

    @classmethod
    def from_members(cls, card: Card, described: Mapping[str, Any], members: Members) -> Self:  # noqa: ARG003
        names = [f"x_{axis}" for axis in range(len(card.schema))]
        table = from_arrow(members["points.arrow"], dict.fromkeys([*names, "weight"], FLOAT))
        points = np.column_stack([numbers(table, name, np.float64) for name in names])
        weights = numbers(table, "weight", np.float64)
        if card.released != {"points": len(points)} or not (np.isfinite(points).all() and np.isfinite(weights).all()):
            raise ValueError("the card describes other points")
        if np.maximum(weights, 0).sum() == np.inf:
            raise ValueError("weights that add up to more than is possible")
        return cls(points, weights, card)
