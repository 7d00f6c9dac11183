"""Releases of weighted points and of generators, as other published algorithms give them. PUBLIC.

Neither has counts of cells, so neither answers questions with intervals; both draw rows and go into a file.

    generator    a small network that turns noise and a class into a row, as DP-MERF publishes
    points       points with weights of either sign, as Balog et al. publish
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.release.card import MOST_ROWS, Card
from spinney.release.file import FLOAT, from_arrow, lists, numbers, to_arrow
from spinney.release.frames import positions_of
from spinney.release.parts import Part
from spinney.release.release import Members, Release, explains_options
from spinney.schema.schema import Schema

# ------------------------------------------------------------------------------------------------------------ generator
# A release of a generator: a small network that turns noise and a class into a row, as DP-MERF publishes.
#
# The network was trained on released sums alone, so it is public with its weights. Drawing needs numpy and nothing of
# what it was trained with: affine layers with max(0, ·) between them. A row's class is drawn by the released shares;
# the network then gives the other columns, which are moved into the schema's bounds.


Floats = NDArray[np.float64]

# Rows that go through the network at once: their inner layers stay in cache.
_BLOCK = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Generator:
    """Affine layers with max(0, ·) between them; the input is Gaussian noise, then one mark per class but the first."""

    layers: tuple[tuple[Floats, Floats], ...]  # weights (n_in, n_out) and offsets (n_out,)
    class_shares: Floats  # (n_classes,), adding up to 1

    @property
    def n_noise(self) -> int:
        """How many Gaussian numbers a row is made from."""
        return int(self.layers[0][0].shape[0]) - len(self.class_shares) + 1

    @property
    def n_outputs(self) -> int:
        return int(self.layers[-1][0].shape[1])

    @property
    def n_weights(self) -> int:
        return sum(weights.size + offsets.size for weights, offsets in self.layers)

    def rows(self, classes: NDArray[np.int64], noise: Floats) -> Floats:
        """The rows (n, n_outputs) that these classes (n,) and this noise (n, n_noise) give."""
        values = np.hstack([noise, class_marks(classes, len(self.class_shares))])
        for depth, (weights, offsets) in enumerate(self.layers):
            values = (np.maximum(values, 0) if depth else values) @ weights + offsets
        return values

    def stretched(self, scale: Floats, origin: Floats) -> Generator:
        """The generator of origin + scale · row."""
        weights, offsets = self.layers[-1]
        return Generator((*self.layers[:-1], (weights * scale, offsets * scale + origin)), self.class_shares)


def class_marks(classes: NDArray[np.int64], n_classes: int) -> Floats:
    """1 in the column of a row's class; the first class has no column, so two classes are told by one number."""
    return np.equal(classes[:, None], np.arange(1, n_classes)).astype(np.float64)


class GeneratorRelease(Release):
    """A generator with its card. `target` is the column that holds the class."""

    kind = "generator"
    member_names = ("generator.arrow",)

    def __init__(self, generator: Generator, card: Card, *, target: str, noisy_total: int) -> None:
        super().__init__(card)
        self.generator = generator
        self.target = target
        self.noisy_total = noisy_total

    def _draw(self, n_rows: int, rng: np.random.Generator, *, part: Part | None = None) -> Floats:  # noqa: ARG002
        place = list(self.schema).index(self.target)
        values = np.empty((len(self.schema), n_rows))
        for start in range(0, n_rows, _BLOCK):
            here = values[:, start : start + _BLOCK]
            size = here.shape[1]
            shares = self.generator.class_shares
            classes = rng.choice(np.arange(len(shares)), size=size, p=shares / shares.sum())
            rows = self.generator.rows(classes, rng.standard_normal((size, self.generator.n_noise))).T
            here[:place], here[place + 1 :] = rows[:place], rows[place:]
            here[place] = first_class(self.schema, self.target) + classes
        return positions_of(values, self.schema)

    def _noisy_total(self) -> int:
        return self.noisy_total

    def _require_contents(self) -> None:
        """A generator can always draw."""

    def to_members(self) -> tuple[dict[str, Any], Members]:
        arrays = [self.generator.class_shares, *(array for layer in self.generator.layers for array in layer)]
        table = pa.table(
            {
                "shape": pa.array([list(array.shape) for array in arrays], pa.list_(pa.int64())),
                "values": pa.array([array.ravel() for array in arrays], pa.list_(pa.float64())),
            }
        )
        return {"target": self.target, "noisy_total": self.noisy_total}, {"generator.arrow": to_arrow(table)}

    @classmethod
    def from_members(cls, card: Card, described: Mapping[str, Any], members: Members) -> Self:
        types = {"shape": (pa.list_(pa.int64()),), "values": (pa.list_(pa.float64()),)}
        table = from_arrow(members["generator.arrow"], types)
        shapes = [shape.tolist() for shape in lists(table, "shape", np.int64)]
        if any(not 1 <= len(shape) <= 2 or min(shape) < 0 for shape in shapes):
            raise ValueError("arrays of impossible shapes")
        shares, *arrays = (
            values.reshape(shape) for shape, values in zip(shapes, lists(table, "values", np.float64), strict=True)
        )
        target, noisy_total = described["target"], described["noisy_total"]
        generator = Generator(tuple(zip(arrays[::2], arrays[1::2], strict=True)), shares)
        _check(generator, card, target)
        if type(noisy_total) is not int or not 0 <= noisy_total <= MOST_ROWS:
            raise ValueError("a total that is not a number of rows")
        return cls(generator, card, target=target, noisy_total=noisy_total)


def class_count(schema: Schema, target: str) -> int:
    """How many values the target can take."""
    first, last = _classes(schema, target)
    return last - first + 1


def first_class(schema: Schema, target: str) -> int:
    """The number that stands for the first class in a column of classes."""
    return _classes(schema, target)[0]


def _classes(schema: Schema, target: str) -> tuple[int, int]:
    """The numbers that stand for the first and the last class; ValueError where a column has none."""
    found = schema[target]._whole_range()
    if found is None:
        raise ValueError("a target without classes")
    return found


def _check(generator: Generator, card: Card, target: str) -> None:
    """Raise a ValueError unless the layers fit each other and the card."""
    shares, layers = generator.class_shares, generator.layers
    if not layers or shares.ndim != 1 or any(weights.ndim != 2 or offsets.ndim != 1 for weights, offsets in layers):
        raise ValueError("arrays of impossible shapes")
    arrays = [shares, *(array for layer in layers for array in layer)]
    if not all(np.isfinite(array).all() for array in arrays) or (shares < 0).any() or not shares.sum() > 0:
        raise ValueError("weights or shares out of range")
    widths = [weights.shape for weights, _ in layers]
    fits = all(offsets.shape == weights.shape[1:] for weights, offsets in layers)
    fits &= all(before[1] == after[0] for before, after in pairwise(widths))
    fits &= len(shares) == class_count(card.schema, target) and generator.n_noise >= 1
    if not fits or generator.n_outputs != len(card.schema) - 1 or card.released != {"weights": generator.n_weights}:
        raise ValueError("the card describes another generator")


# --------------------------------------------------------------------------------------------------------------- points
# A release of weighted points: what the algorithms of Balog et al. publish.
#
# Weights may be negative and need not add up to 1: they are those of a function near the private kernel
# density. Rows are drawn in proportion to the positive ones.


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
