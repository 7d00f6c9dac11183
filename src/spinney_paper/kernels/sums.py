"""Gaussian kernel sums of weighted points, by four ways that agree to 1e-9 or better, and the choice of one.

Kernel metrics are sums over pairs of points. Term by term is exact in any dimension; Fourier space takes time
linear in the number of points, but needs finufft, at most three dimensions, and a box that is not too many
bandwidths wide; tiles win in many dimensions. A graphics card is used on request only. The points come from a
real table, so they are NOT PRIVATE.

    gpu       term by term with torch or cupy, in double precision
    points    weighted sets of points, read and checked once
    direct    term by term on all cores, each pair once
    fourier   non-uniform fast Fourier transforms, up to three dimensions
    tiles     products of matrices, from about twenty dimensions
    choice    which way a sum is taken
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.compiled import compiled
from spinney.errors import InputError, MissingExtraError, ParameterError, raise_alone, redacted
from spinney.machine import each, load_optional
from spinney.metrics.reading import Floats, read_shares, read_weights
from spinney.text import listed

# ------------------------------------------------------------------------------------------------------------------ gpu
# Gaussian kernel sums on a graphics card, term by term, in double precision.
#
# The same few array operations run under torch, cupy or numpy; whichever of the first two is installed and finds a
# card is used. Points travel there, sums come back. Differences of coordinates come first, as in `direct`; tiles of
# the kernel matrix are small enough to stay in a large card's cache. Agrees with `direct` to 1e-12; on request only.


_TILE = 2048


@dataclass(frozen=True, slots=True)
class Library:
    """What is needed of an array library beyond operators."""

    exp: Callable[[Any], Any]
    to_card: Callable[[Floats], Any]
    to_host: Callable[[Any], Floats]


def gpu_density_sums(weighted: WeightedSet, at: Floats, gamma: float) -> Floats:
    """The kernel density of a set at every point of `at`."""
    on = find_library()
    points, weights, places = map(on.to_card, (weighted.points, weighted.weights, at))
    parts = []
    for j in _tiles(len(at)):
        part = sum(weights[i] @ _kernel(on, points[i], places[j], gamma) for i in _tiles(len(weighted)))
        parts.append(on.to_host(part))
    return np.concatenate(parts)


def gpu_inner_sum(first: WeightedSet, second: WeightedSet, gamma: float) -> float:
    """The inner product of two kernel densities."""
    on = find_library()
    x, w, y, v = map(on.to_card, (first.points, first.weights, second.points, second.weights))
    total = 0.0
    for i in _tiles(len(first)):
        for j in _tiles(len(second)):
            total = total + w[i] @ _kernel(on, x[i], y[j], gamma) @ v[j]
    return float(total)


def gpu_square_sum(weighted: WeightedSet, gamma: float) -> float:
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


# --------------------------------------------------------------------------------------------------------------- points
# Weighted sets of points and the Gaussian kernel: what the kernel metrics read, checked once.
#
# A set is n points in d dimensions with weights. Points come as an array, a nested list or a table of numeric
# columns; of two tables the second is read in the column order of the first. Weights add up to 1, the paper's
# convention; `rkhs_distance` alone takes any.


@dataclass(frozen=True, slots=True)
class WeightedSet:
    """Points with weights, which may be negative where two sets are subtracted."""

    points: Floats  # (n, d)
    weights: Floats  # (n,)

    def __len__(self) -> int:
        return int(self.weights.size)

    def __sub__(self, other: WeightedSet) -> WeightedSet:
        """The signed set whose kernel density is the difference of the two."""
        return WeightedSet(np.concatenate([self.points, other.points]), np.concatenate([self.weights, -other.weights]))

    @property
    def n_axes(self) -> int:
        return int(self.points.shape[1])


def read_set(
    points: Any,
    weights: ArrayLike | None,
    argument: str,
    *,
    are_shares: bool = True,
    weights_argument: str | None = None,
) -> WeightedSet:
    """The points with equal weights 1/n or the given ones; `are_shares` asks for weights >= 0 that add up to 1."""
    values = read_points(points, argument)
    if not len(values):
        raise InputError(f"{argument} has no points; pass at least one")
    if weights is None:
        return WeightedSet(values, np.full(len(values), 1 / len(values)))
    name = weights_argument or f"{argument}_weights"
    return WeightedSet(values, (read_shares if are_shares else read_weights)(weights, len(values), name))


def read_pair(
    first: Any, second: Any, names: tuple[str, str], weights: tuple[Any, Any], *, are_shares: bool = True
) -> tuple[WeightedSet, WeightedSet]:
    """Two sets in the same space."""
    one = read_set(first, weights[0], names[0], are_shares=are_shares)
    two = read_set(_in_order_of(first, second, names), weights[1], names[1], are_shares=are_shares)
    if one.n_axes != two.n_axes:
        raise InputError(
            f"{names[1]} has {two.n_axes} columns where {names[0]} has {one.n_axes}; both must lie in the same space"
        )
    return one, two


def read_points(points: Any, argument: str) -> Floats:
    """An (n, d) array of finite floats; one dimension may come flat."""
    with redacted(lambda _: InputError(f"{argument} does not hold numbers alone; pass numeric columns")):
        values = np.asarray(
            points if _column_names(points) is None else nw.from_native(points, eager_only=True).to_numpy()
        )
        values = np.ascontiguousarray(values, dtype=np.float64)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] == 0:
        raise InputError(f"{argument} has shape {values.shape}; pass one row per point and one column per dimension")
    if not np.isfinite(values).all():
        raise InputError(f"{argument} holds a missing or non-finite value; clean it first")
    return values


def read_gamma(bandwidth: float | None, gamma: float | None) -> float:
    """The gamma of exp(-gamma ||x-y||^2), given as such or by the bandwidth sigma as 1/(2 sigma^2)."""
    if (bandwidth is None) == (gamma is None):
        raise ParameterError("give either bandwidth (sigma) or gamma = 1/(2 sigma^2), and not both")
    name, value = ("bandwidth", bandwidth) if gamma is None else ("gamma", gamma)
    try:
        number = float(value)  # type: ignore[arg-type]  # checked right here
    except (TypeError, ValueError):
        raise_alone(ParameterError(f"{name}={value!r} is not a number"))
    if not 0 < number < math.inf:
        raise ParameterError(f"{name}={value!r} is not a positive finite number")
    if gamma is not None:
        return number
    # Squares of floats this far out leave the range of floats.
    if not 1e-150 < number < 1e150:
        raise ParameterError(f"bandwidth={value!r} is outside 1e-150..1e150; scale the points")
    return 1 / (2 * number * number)


def _column_names(points: Any) -> list[str] | None:
    """Names of the columns of a table; None for anything else."""
    if isinstance(points, (np.ndarray, list, tuple)):
        return None
    try:
        return list(nw.from_native(points, eager_only=True).columns)
    except TypeError:
        return None
    except nw.exceptions.DuplicateError:
        raise_alone(InputError("a table has two columns of the same name; rename one"))


def _in_order_of(first: Any, second: Any, names: tuple[str, str]) -> Any:
    """The second table with its columns in the order of the first; anything else as it is."""
    one, two = _column_names(first), _column_names(second)
    if one is None or two is None or one == two:
        return second
    if set(one) != set(two):
        raise InputError(
            f"{names[1]} has columns {listed(two)} where {names[0]} has {listed(one)}; select the same columns of both"
        )
    return nw.from_native(second, eager_only=True).select(one).to_native()


# --------------------------------------------------------------------------------------------------------------- direct
# Gaussian kernel sums, term by term: exact in any dimension, with all cores, each pair once.
#
# Points are cut into compact blocks by halving along the widest axis. A pair of blocks is one tile of the kernel
# matrix, summed by a compiled loop whose inner loops run over one row of the tile and become vector instructions; the
# exponential is a polynomial for that reason. Tiles whose blocks are so far apart that every kernel value is below
# e^-60 are skipped, so tiny bandwidths cost little. Of a set against itself only the upper tiles are summed.
#
# Differences of coordinates are taken before anything else: no cancellation, however far from 0 the points lie. A sum
# misses the exact one by about 1e-15 times the sum of the absolute weights; results do not depend on the number of
# cores.


_BLOCK = 256
# e^-60 is 9e-27: what is skipped is far below rounding.
_SKIPPED = 60.0
_LOG2_E = math.log2(math.e)
_LN_2 = math.log(2.0)
# Added to a float, it leaves the nearest whole number in the lowest bits.
_TO_WHOLE = 1.5 * 2.0**52
_TAYLOR = tuple(1 / math.factorial(k) for k in range(13))
(_, _, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12) = _TAYLOR


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Points in an order in which every run of `_BLOCK` is compact, with the box around each run."""

    order: NDArray[np.intp]  # (n,)
    points: Floats  # (d, n)
    weights: Floats  # (n,)
    low: Floats  # (n_blocks, d)
    high: Floats  # (n_blocks, d)

    def __len__(self) -> int:
        return len(self.low)

    def size(self, block: int) -> int:
        return min(_BLOCK, len(self.weights) - block * _BLOCK)


def direct_density_sums(weighted: WeightedSet, at: Floats, gamma: float) -> Floats:
    """sum_i w_i exp(-gamma ||x_i - y||^2) at every point y of `at`."""
    result = np.empty(len(at))
    targets = _cut(WeightedSet(at, np.zeros(len(at))))
    for block, values in enumerate(_columns(_cut(weighted), targets, gamma, is_symmetric=False)):
        result[targets.order[block * _BLOCK : block * _BLOCK + len(values)]] = values
    return result


def direct_inner_sum(first: WeightedSet, second: WeightedSet, gamma: float) -> float:
    """sum_i sum_j w_i v_j exp(-gamma ||x_i - y_j||^2)."""
    return _weighted(_cut(first), _cut(second), gamma, is_symmetric=False)


def direct_square_sum(weighted: WeightedSet, gamma: float) -> float:
    """The inner sum of a set with itself, each pair once."""
    blocks = _cut(weighted)
    return _weighted(blocks, blocks, gamma, is_symmetric=True)


def _weighted(sources: _Blocks, targets: _Blocks, gamma: float, *, is_symmetric: bool) -> float:
    columns = _columns(sources, targets, gamma, is_symmetric=is_symmetric)
    starts = range(0, len(targets.weights), _BLOCK)
    return math.fsum(
        float(values @ targets.weights[start : start + len(values)])
        for start, values in zip(starts, columns, strict=True)
    )


def _columns(sources: _Blocks, targets: _Blocks, gamma: float, *, is_symmetric: bool) -> list[Floats]:
    """For each block of targets, the kernel sums at its points. Symmetric: blocks past the diagonal count twice."""

    def column(block: int) -> Floats:
        sums = np.zeros(targets.size(block))
        start = block * _BLOCK
        _fill_column(
            sources.points,
            sources.weights,
            sources.low,
            sources.high,
            targets.points[:, start : start + len(sums)],
            targets.low[block],
            targets.high[block],
            block if is_symmetric else -1,
            gamma,
            sums,
        )
        return sums

    if len(sources) * len(targets) <= 4:
        return [column(block) for block in range(len(targets))]
    return each(column, range(len(targets)), title="kernel sums", unit="block")


def _cut(weighted: WeightedSet) -> _Blocks:
    points = weighted.points
    order = np.arange(len(points))
    parts = [(0, len(points))]
    while parts:
        start, stop = parts.pop()
        if stop - start <= _BLOCK:
            continue
        here = order[start:stop]
        inside = points[here]
        widest = int(np.argmax(inside.max(axis=0) / 2 - inside.min(axis=0) / 2))
        n_left = -(-(stop - start) // _BLOCK) // 2 * _BLOCK
        order[start:stop] = here[np.argpartition(inside[:, widest], n_left)]
        parts += [(start, start + n_left), (start + n_left, stop)]
    starts = np.arange(0, len(points), _BLOCK)
    ordered = points[order]
    return _Blocks(
        order,
        np.ascontiguousarray(ordered.T),
        weighted.weights[order],
        np.minimum.reduceat(ordered, starts, axis=0),
        np.maximum.reduceat(ordered, starts, axis=0),
    )


@compiled
def _fill_column(
    x: Floats,  # (d, n)
    weights: Floats,  # (n,)
    low: Floats,  # (n_blocks, d)
    high: Floats,  # (n_blocks, d)
    y: Floats,  # (d, m)
    y_low: Floats,  # (d,)
    y_high: Floats,  # (d,)
    diagonal: int,
    gamma: float,
    sums: Floats,  # (m,)
) -> None:
    squares = np.empty(sums.size)
    for block in range(max(diagonal, 0), low.shape[0]):
        squared_gap = 0.0
        for axis in range(x.shape[0]):
            gap = max(0.0, low[block, axis] - y_high[axis], y_low[axis] - high[block, axis])
            squared_gap += gap * gap
        if gamma * squared_gap > _SKIPPED:
            continue
        factor = 2.0 if 0 <= diagonal < block else 1.0
        start = block * _BLOCK
        _add_tile(x, weights, start, min(start + _BLOCK, x.shape[1]), y, factor, -gamma * _LOG2_E, squares, sums)


@compiled
def _add_tile(
    x: Floats,
    weights: Floats,
    start: int,
    stop: int,
    y: Floats,
    factor: float,
    scale: float,
    squares: Floats,
    sums: Floats,
) -> None:
    """Add factor * weights[i] * 2^(scale ||x_i - y_j||^2) to sums[j], for i in start..stop."""
    n_axes, width = x.shape[0], sums.size
    for i in range(start, stop):
        first = x[0, i]
        for j in range(width):
            a = y[0, j] - first
            squares[j] = a * a
        for axis in range(1, n_axes - 1, 2):
            one, two = x[axis, i], x[axis + 1, i]
            for j in range(width):
                a = y[axis, j] - one
                b = y[axis + 1, j] - two
                squares[j] += a * a + b * b
        if n_axes % 2 == 0:
            last = x[n_axes - 1, i]
            for j in range(width):
                a = y[n_axes - 1, j] - last
                squares[j] += a * a
        weight = factor * weights[i]
        for j in range(width):
            # 2^z = 2^whole * e^r with |r| <= ln(2)/2, where thirteen Taylor terms reach 2e-16.
            z = max(squares[j] * scale, -1000.0)
            whole = z + _TO_WHOLE
            r = (z - (whole - _TO_WHOLE)) * _LN_2
            p = _C9 + r * (_C10 + r * (_C11 + r * _C12))
            p = _C5 + r * (_C6 + r * (_C7 + r * (_C8 + r * p)))
            p = 1.0 + r * (1.0 + r * (_C2 + r * (_C3 + r * (_C4 + r * p))))
            bits = np.float64(p).view(np.int64) + (np.float64(whole).view(np.int64) << 52)
            sums[j] += weight * np.int64(bits).view(np.float64)


# -------------------------------------------------------------------------------------------------------------- fourier
# Gaussian kernel sums in Fourier space: time linear in the number of points, for up to three dimensions.
#
# With distances in units of the bandwidth, the trapezoid rule for the Fourier integral of the kernel along one axis
# is
#
#     (h / sqrt(2 pi)) * sum_{|k| <= M} exp(-(h k)^2 / 2) exp(i h k r),        h = 2 pi / L.
#
# By Poisson's formula the whole sum over k is the kernel made periodic, sum_m exp(-(r + m L)^2 / 2). Let |r| <= R,
# and take L = R + T and h M >= T. The other periods add at most 2.01 exp(-T^2/2) and the frequencies left out at most
# erfc(T / sqrt 2); at T = 8 both together are below 3e-14 per axis. What the rule sums is itself a positive definite
# kernel, so a squared distance is a sum of squares and cannot turn out negative.
#
# The sums over points, F(k) = sum_i w_i exp(i h k x_i), are non-uniform fast Fourier transforms by finufft, asked for
# a relative 1e-12. A kernel mean comes out right to better than 1e-10 (in tests, 1e-12); with other weights than
# shares, times the sums of their absolute values.


MAX_AXES = 3

_TAIL = 8.0  # T above
_TOLERANCE = 1e-12
# Arrays of this many complex numbers, and a few times as many inside finufft, fit into ordinary memory.
_MOST_FREQUENCIES = 1 << 22
# Rounding in the transform grows with the number of frequencies along an axis.
_MOST_PER_AXIS = 1 << 18

Spectrum = NDArray[np.complex128]  # (2 M_1 + 1, ..., 2 M_d + 1)


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The frequencies that a kernel needs on a box of points."""

    centre: Floats  # (d,)
    sigma: float
    step: Floats  # (d,): h above, with lengths in units of sigma
    n_each: tuple[int, ...]  # odd: 2 M + 1

    @property
    def n_all(self) -> int:
        return math.prod(self.n_each)

    def kernel(self) -> Floats:
        """The kernel's own Fourier weights, an outer product over the axes."""
        factors = []
        for step, n_here in zip(self.step, self.n_each, strict=True):
            waves = step * (np.arange(n_here) - n_here // 2)
            factors.append(step / math.sqrt(2 * math.pi) * np.exp(-(waves**2) / 2))
        return reduce(np.multiply.outer, factors)

    def transform(self, weighted: WeightedSet) -> Spectrum:
        """F(k) = sum_i w_i exp(i h k x_i) for all k."""
        to_frequencies = _finufft(f"nufft{len(self.n_each)}d1")
        weights = weighted.weights.astype(np.complex128)
        shape = self.n_each if len(self.n_each) > 1 else self.n_each[0]
        return np.asarray(to_frequencies(*self._angles(weighted.points), weights, shape, eps=_TOLERANCE, isign=1))

    def evaluate(self, spectrum: Spectrum, at: Floats) -> Floats:
        """sum_k kernel(k) conj(F(k)) exp(i h k y) at every point y: the kernel density there."""
        to_points = _finufft(f"nufft{len(self.n_each)}d2")
        values = to_points(*self._angles(at), np.conj(spectrum) * self.kernel(), eps=_TOLERANCE, isign=1)
        return np.ascontiguousarray(values.real)

    def _angles(self, points: Floats) -> list[Floats]:
        """The products h x along each axis, between -pi and pi."""
        return [np.ascontiguousarray(column) for column in ((points - self.centre) * (self.step / self.sigma)).T]


def is_installed() -> bool:
    """Whether finufft can be imported."""
    return find_spec("finufft") is not None


def plan(boxes: list[Floats], gamma: float) -> Frequencies | None:
    """Frequencies for points inside the smallest box around all arrays; None where they would be too many."""
    low = np.min([points.min(axis=0) for points in boxes], axis=0)
    high = np.max([points.max(axis=0) for points in boxes], axis=0)
    if len(low) > MAX_AXES:
        return None
    sigma = 1 / math.sqrt(2 * gamma)
    with np.errstate(over="ignore"):
        period = (high - low) / sigma + _TAIL
    if not (period < _MOST_PER_AXIS).all():
        return None
    steps = 2 * math.pi / period
    n_each = tuple(2 * math.ceil(_TAIL / step) + 1 for step in steps)
    if math.prod(n_each) > _MOST_FREQUENCIES or max(n_each) > _MOST_PER_AXIS:
        return None
    return Frequencies(low + (high - low) / 2, sigma, steps, n_each)


def fourier_density_sums(weighted: WeightedSet, at: Floats, frequencies: Frequencies) -> Floats:
    """The kernel density of a set at every point of `at`."""
    return frequencies.evaluate(frequencies.transform(weighted), at)


def fourier_inner_sum(first: WeightedSet, second: WeightedSet, frequencies: Frequencies) -> float:
    """sum_k kernel(k) F(k) conj(G(k))."""
    f, g = frequencies.transform(first), frequencies.transform(second)
    return float(np.sum(frequencies.kernel() * (f.real * g.real + f.imag * g.imag)))


def fourier_square_sum(weighted: WeightedSet, frequencies: Frequencies) -> float:
    """sum_k kernel(k) |F(k)|^2, never negative."""
    f = frequencies.transform(weighted)
    return float(np.sum(frequencies.kernel() * (f.real**2 + f.imag**2)))


def _finufft(name: str) -> Any:
    return getattr(load_optional("finufft", "method='fourier'", otherwise="use method='direct'"), name)


# ---------------------------------------------------------------------------------------------------------------- tiles
# Kernel sums in many dimensions: squared distances as |x|^2 + |y|^2 - 2 x.y, tile by tile, by products of matrices.
#
# Beyond about twenty dimensions this is several times faster than term by term (`direct`). Taken around a common
# centre, it costs a few of the sixteen digits.


# From here on products of matrices win.
MANY_AXES = 20

_ROWS, _COLUMNS = 1000, 4000


def tiled_inner_sum(first: WeightedSet, second: WeightedSet, gamma: float) -> float:
    """The inner product of two kernel densities in the kernel's Hilbert space."""
    centre = first.points.mean(axis=0)
    one, two = _Side(first, centre, gamma), _Side(second, centre, gamma)
    return _in_parallel(len(first), lambda start: _block(one, start, two, 0, len(second), gamma))


def tiled_square_sum(weighted: WeightedSet, gamma: float) -> float:
    """The squared norm of a kernel density: the rows of a block against themselves, and twice against what follows."""
    side, n = _Side(weighted, weighted.points.mean(axis=0), gamma), len(weighted)

    def block(start: int) -> float:
        stop = min(start + _ROWS, n)
        return _block(side, start, side, start, stop, gamma) + 2 * _block(side, start, side, stop, n, gamma)

    return _in_parallel(n, block)


class _Side:
    """One of the two sets: points around the centre, gamma times their squared norms, weights."""

    def __init__(self, weighted: WeightedSet, centre: Floats, gamma: float) -> None:
        self.points = weighted.points - centre
        self.norms = gamma * (self.points**2).sum(axis=1)
        self.weights = weighted.weights


def _block(one: _Side, start: int, two: _Side, first: int, stop: int, gamma: float) -> float:
    """Weighted kernel sum of one block of rows of the one side against first..stop of the other."""
    rows, total = slice(start, start + _ROWS), 0.0
    for begin in range(first, stop, _COLUMNS):
        columns = slice(begin, min(begin + _COLUMNS, stop))
        tile = one.points[rows] @ two.points[columns].T
        tile *= 2 * gamma
        tile -= one.norms[rows, None]
        tile -= two.norms[columns]
        np.exp(np.minimum(tile, 0, out=tile), out=tile)
        total += float(one.weights[rows] @ tile @ two.weights[columns])
    return total


def _in_parallel(n: int, block: Callable[[int], float]) -> float:
    return math.fsum(each(block, range(0, n, _ROWS)))


# --------------------------------------------------------------------------------------------------------------- choice
# Which way a kernel sum is taken: term by term, by tiles in many dimensions, or in Fourier space in few.
#
# All give the same number to 1e-9 or better. The cost in Fourier space does not depend on the number of pairs;
# the constants below compare it with the cost term by term.


METHODS = ("auto", "direct", "fourier", "gpu")

# Rough costs in units of one kernel value: a point spread over 13^d neighbours, one frequency, one call.
_SPREAD = 13
_FREQUENCY = 60
_CALL = 3_000_000


def density_sums(weighted: WeightedSet, at: Floats, gamma: float, method: str) -> Floats:
    """The kernel density of a set at every point of `at`."""
    if method == "gpu":
        return gpu_density_sums(weighted, at, gamma)
    frequencies = _choose([weighted.points, at], len(weighted) * len(at), gamma, method)
    if frequencies is None:
        return direct_density_sums(weighted, at, gamma)
    return fourier_density_sums(weighted, at, frequencies)


def inner_sum(first: WeightedSet, second: WeightedSet, gamma: float, method: str) -> float:
    """The inner product of two kernel densities in the kernel's Hilbert space."""
    if method == "gpu":
        return gpu_inner_sum(first, second, gamma)
    frequencies = _choose([first.points, second.points], len(first) * len(second), gamma, method)
    if frequencies is None:
        take = tiled_inner_sum if _prefers_tiles(first, method) else direct_inner_sum
        return take(first, second, gamma)
    return fourier_inner_sum(first, second, frequencies)


def square_sum(weighted: WeightedSet, gamma: float, method: str) -> float:
    """The squared norm of a kernel density."""
    if method == "gpu":
        return gpu_square_sum(weighted, gamma)
    frequencies = _choose([weighted.points], len(weighted) ** 2 // 2, gamma, method)
    if frequencies is None:
        take = tiled_square_sum if _prefers_tiles(weighted, method) else direct_square_sum
        return take(weighted, gamma)
    return fourier_square_sum(weighted, frequencies)


def _prefers_tiles(weighted: WeightedSet, method: str) -> bool:
    """Whether there are many dimensions, and nobody asked for a sum term by term."""
    return method == "auto" and weighted.n_axes > MANY_AXES


def _choose(boxes: list[Floats], n_pairs: int, gamma: float, method: str) -> Frequencies | None:
    if method not in METHODS:
        raise ParameterError(f"method={method!r} is not one of {', '.join(map(repr, METHODS))}")
    n_axes = boxes[0].shape[1]
    if method == "direct" or n_pairs == 0:
        return None
    if method == "auto" and (n_axes > MAX_AXES or n_pairs < _CALL or not is_installed()):
        return None
    frequencies = plan(boxes, gamma)
    if method == "fourier":
        if frequencies is None:
            raise ParameterError(
                f"method='fourier' is for up to {MAX_AXES} dimensions and boxes of not too many bandwidths; "
                "use method='auto'"
            )
        return frequencies
    if frequencies is None:
        return None
    n_points = sum(len(points) for points in boxes)
    cost = n_points * _SPREAD**n_axes + frequencies.n_all * _FREQUENCY + _CALL
    return frequencies if cost < n_pairs else None
