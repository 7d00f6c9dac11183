"""Which way a kernel sum is taken: term by term, by tiles in many dimensions, or in Fourier space in few.

All give the same number to 1e-9 or better. Fourier space needs finufft, at most three dimensions, and a box that is
not too many bandwidths wide; its cost does not depend on the number of pairs. A graphics card is used on request only.
"""

from __future__ import annotations

from spinney.errors import ParameterError
from spinney.metrics import direct, fourier, gpu, tiles
from spinney.metrics.points import Floats, WeightedSet

METHODS = ("auto", "direct", "fourier", "gpu")

# Rough costs in units of one kernel value: a point spread over 13^d neighbours, one frequency, one call.
_SPREAD = 13
_FREQUENCY = 60
_CALL = 3_000_000


def density_sums(weighted: WeightedSet, at: Floats, gamma: float, method: str) -> Floats:
    """The kernel density of a set at every point of `at`."""
    if method == "gpu":
        return gpu.density_sums(weighted, at, gamma)
    frequencies = _choose([weighted.points, at], len(weighted) * len(at), gamma, method)
    if frequencies is None:
        return direct.density_sums(weighted, at, gamma)
    return fourier.density_sums(weighted, at, frequencies)


def inner_sum(first: WeightedSet, second: WeightedSet, gamma: float, method: str) -> float:
    """The inner product of two kernel densities in the kernel's Hilbert space."""
    if method == "gpu":
        return gpu.inner_sum(first, second, gamma)
    frequencies = _choose([first.points, second.points], len(first) * len(second), gamma, method)
    if frequencies is None:
        take = tiles.inner_sum if _prefers_tiles(first, method) else direct.inner_sum
        return take(first, second, gamma)
    return fourier.inner_sum(first, second, frequencies)


def square_sum(weighted: WeightedSet, gamma: float, method: str) -> float:
    """The squared norm of a kernel density."""
    if method == "gpu":
        return gpu.square_sum(weighted, gamma)
    frequencies = _choose([weighted.points], len(weighted) ** 2 // 2, gamma, method)
    if frequencies is None:
        take = tiles.square_sum if _prefers_tiles(weighted, method) else direct.square_sum
        return take(weighted, gamma)
    return fourier.square_sum(weighted, frequencies)


def _prefers_tiles(weighted: WeightedSet, method: str) -> bool:
    """Whether there are many dimensions, and nobody asked for a sum term by term."""
    return method == "auto" and weighted.n_axes > tiles.MANY_AXES


def _choose(boxes: list[Floats], n_pairs: int, gamma: float, method: str) -> fourier.Frequencies | None:
    if method not in METHODS:
        raise ParameterError(f"method={method!r} is not one of {', '.join(map(repr, METHODS))}")
    n_axes = boxes[0].shape[1]
    if method == "direct" or n_pairs == 0:
        return None
    if method == "auto" and (n_axes > fourier.MAX_AXES or n_pairs < _CALL or not fourier.is_installed()):
        return None
    frequencies = fourier.plan(boxes, gamma)
    if method == "fourier":
        if frequencies is None:
            raise ParameterError(
                f"method='fourier' is for up to {fourier.MAX_AXES} dimensions and boxes of not too many bandwidths; "
                "use method='auto'"
            )
        return frequencies
    if frequencies is None:
        return None
    n_points = sum(len(points) for points in boxes)
    cost = n_points * _SPREAD**n_axes + frequencies.n_all * _FREQUENCY + _CALL
    return frequencies if cost < n_pairs else None
