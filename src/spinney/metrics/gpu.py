"""Gaussian kernel sums on a graphics card, term by term, in double precision.

The same few array operations run under torch, cupy or numpy; whichever of the first two is installed and finds a card
is used. Points travel there, sums come back. Differences of coordinates come first, as in `direct`; tiles of the
kernel matrix are small enough to stay in a large card's cache. Agrees with `direct` to 1e-12; on request only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.errors import MissingExtraError

if TYPE_CHECKING:
    from spinney.metrics.points import Floats, WeightedSet

_TILE = 2048


@dataclass(frozen=True, slots=True)
class Library:
    """What is needed of an array library beyond operators."""

    exp: Callable[[Any], Any]
    to_card: Callable[[Floats], Any]
    to_host: Callable[[Any], Floats]


def density_sums(weighted: WeightedSet, at: Floats, gamma: float) -> Floats:
    """The kernel density of a set at every point of `at`."""
    on = find_library()
    points, weights, places = map(on.to_card, (weighted.points, weighted.weights, at))
    parts = []
    for j in _tiles(len(at)):
        part = sum(weights[i] @ _kernel(on, points[i], places[j], gamma) for i in _tiles(len(weighted)))
        parts.append(on.to_host(part))
    return np.concatenate(parts)


def inner_sum(first: WeightedSet, second: WeightedSet, gamma: float) -> float:
    """The inner product of two kernel densities."""
    on = find_library()
    x, w, y, v = map(on.to_card, (first.points, first.weights, second.points, second.weights))
    total = 0.0
    for i in _tiles(len(first)):
        for j in _tiles(len(second)):
            total = total + w[i] @ _kernel(on, x[i], y[j], gamma) @ v[j]
    return float(total)


def square_sum(weighted: WeightedSet, gamma: float) -> float:
    """The squared norm of a kernel density, each pair of tiles once."""
    on = find_library()
    x, w = on.to_card(weighted.points), on.to_card(weighted.weights)
    total = 0.0
    for i in _tiles(len(weighted)):
        for j in _tiles(len(weighted), start=i.start):
            tile = w[i] @ _kernel(on, x[i], x[j], gamma) @ w[j]
            total = total + (tile if i.start == j.start else 2 * tile)
    return float(total)


def find_library() -> Library:
    """Torch or cupy with a card, or an error that says what is missing."""
    for find in (_torch, _cupy):
        try:
            return find()
        except Exception:  # noqa: S112  (not installed, or its driver is missing: the other may do)
            continue
    raise MissingExtraError("method='gpu' needs torch or cupy and a CUDA card; use method='auto'")


def _torch() -> Library:
    torch = import_module("torch")
    torch.zeros(1, device="cuda")  # raises without a card
    return Library(torch.exp, lambda array: torch.asarray(array, device="cuda"), lambda tensor: tensor.cpu().numpy())


def _cupy() -> Library:
    cupy = import_module("cupy")
    cupy.zeros(1)  # raises without a card
    return Library(cupy.exp, cupy.asarray, cupy.asnumpy)


def _tiles(n_points: int, *, start: int = 0) -> Iterator[slice]:
    return (slice(first, min(first + _TILE, n_points)) for first in range(start, n_points, _TILE))


def _kernel(on: Library, x: Any, y: Any, gamma: float) -> Any:
    """exp(-gamma ||x_i - y_j||^2) for all i and j."""
    squares = 0.0
    for axis in range(x.shape[1]):
        steps = x[:, axis, None] - y[None, :, axis]
        squares = squares + steps * steps
    return on.exp(-gamma * squares)
