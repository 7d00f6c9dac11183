"""An orthonormal basis of the functions that public points span, and how far a row can reach along it.

Balog et al.'s Algorithm 1 writes the private mean embedding in coordinates along

    e_1, e_2, ...:  Gram-Schmidt of K(z_1, .), K(z_2, .), ...,  skipping points whose remainder is nearly zero.

With K(z, z') over the points that are kept = R'R, R upper triangular, the coordinates of a function f are B f(z),
B = R^-T. A row x has f = K(x, .) of norm 1, so its coordinates have norm at most 1 - in exact arithmetic. Here B is
whatever floating point made of it: a public matrix, and `reach` bounds ||B f(z)|| for that very matrix:

    ||B f(z)||^2 <= largest eigenvalue of B K B' <= 1 + ||B K B' - I||

Frobenius norms, and a bound of the rounding in computing them, make this hold as computed. Where points are dense the
functions are nearly dependent, and B K B' is computed once more in extended precision, where the machine has one, to
keep the bound near 1. Proof: balog.proof.md, whose steps 2 to 4 are here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.progress import progress
from spinney_paper.baselines.sums import Floats, Integers, kernel_matrix
from spinney_paper.baselines.training import load

# Squared norm of a remainder that counts as zero, as published.
_NEARLY_ZERO = 1e-5
_BLOCK = 128
_ROUNDING = {kind: float(np.finfo(kind).eps) for kind in (np.float64, np.longdouble)}
# A reach above this is worth a slower, sharper look.
_LOOSE = 1.001


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """Coordinates along the functions that points span; all of it public."""

    kept: NDArray[np.int64]  # (rank,): which points, in order
    to_coordinates: Floats  # B, (rank, rank), lower triangular
    reach: float  # no row has coordinates of larger norm

    def rank_of(self, n_points: int) -> int:
        """How many functions the first `n_points` points span."""
        return int(np.searchsorted(self.kept, n_points))

    def coordinates(self, values: Integers) -> NDArray[np.longdouble]:
        """B v in extended precision, for values at the kept points; `slack` bounds the rounding."""
        rank = len(self.kept)
        long_values, coordinates = values.astype(np.longdouble), np.empty(rank, dtype=np.longdouble)
        for start in range(0, rank, _BLOCK):
            rows = self.to_coordinates[start : start + _BLOCK].astype(np.longdouble)
            coordinates[start : start + _BLOCK] = rows @ long_values
        return coordinates

    @property
    def slack(self) -> float:
        """Most that one of `coordinates` is off when all values are at most 1."""
        # [step 4] A sum of `rank` products and the conversion of its values: twice what they can be off.
        return (len(self.kept) + 2) * _ROUNDING[np.longdouble] * float(np.abs(self.to_coordinates).sum(axis=1).max())

    @property
    def stretch(self) -> float:
        """Most that B makes of a vector whose entries are all at most 1."""
        return math.sqrt(len(self.kept) * float((self.to_coordinates**2).sum()))

    def weights(self, coordinates: Floats) -> Floats:
        """Weights w of the kept points with sum_m w_m K(z_m, .) = sum_f coordinates_f e_f: B' coordinates."""
        rank = len(coordinates)
        return self.to_coordinates[:rank, :rank].T @ coordinates


@lru_cache(maxsize=1)
def _cached_basis(data: bytes, shape: tuple[int, int], gamma: float) -> Basis:
    return _make_basis(np.frombuffer(data).reshape(shape), gamma)


def make_basis(points: Floats, gamma: float) -> Basis:
    """The basis of the functions K(z, .) of points (n_points, n_columns); the last one made is kept."""
    return _cached_basis(np.ascontiguousarray(points).tobytes(), points.shape, gamma)


def _make_basis(points: Floats, gamma: float) -> Basis:
    n_points = len(points)
    factor = np.zeros((n_points, n_points))  # R over all points; row f is e_f at every point from its own on
    kept: list[int] = []
    for start in progress(range(0, n_points, _BLOCK), "orthonormal basis", unit="block"):
        stop = min(start + _BLOCK, n_points)
        rank = len(kept)
        rest = kernel_matrix(points[start:stop], points[start:], gamma)
        rest -= factor[:rank, start:stop].T @ factor[:rank, start:]
        for row in range(stop - start):
            if rest[row, row] <= _NEARLY_ZERO:
                continue
            function = rest[row] / math.sqrt(rest[row, row])
            function[:row] = 0.0
            factor[len(kept), start:] = function
            rest[row + 1 :] -= np.outer(function[row + 1 : stop - start], function)
            kept.append(start + row)
    selected = np.array(kept, dtype=np.int64)
    inverse = np.ascontiguousarray(_inverse(factor[: len(kept)][:, selected]).T)
    gram = kernel_matrix(points[selected], points[selected], gamma)
    doubt = _doubt(gram, points.shape[1])
    reach = _reach(inverse, gram, doubt, np.float64)
    if reach >= _LOOSE:
        reach = min(reach, _reach(inverse, gram, doubt, np.longdouble))
    return Basis(selected, inverse, reach)


def _inverse(upper: Floats) -> Floats:
    inverse, failed = load("scipy.linalg.lapack").dtrtri(upper, lower=0)
    assert not failed  # no diagonal entry is below the root of _NEARLY_ZERO
    return np.asarray(inverse)


def _doubt(gram: Floats, n_columns: int) -> float:
    """Most that all computed kernel values together are off, as a Frobenius norm."""
    # [step 2] exp(-E) with E right to (n_columns + 4) half units, and exp itself to eight of them.
    exponents = -np.log(np.where(gram > 0, gram, 1.0))
    half_units = gram * ((n_columns + 4) * exponents + 8)
    return _ROUNDING[np.float64] / 2 * float(np.linalg.norm(half_units))


def _reach(inverse: Floats, gram: Floats, doubt: float, precision: type[np.floating[Any]]) -> float:
    """The bound of the opening lines: the computed defect of B K B' and the most that it can be off.

    Rounding enters with the entries of K and with the two products, half a unit for each of `rank` terms (four times
    that is allowed for); both are carried to the result by ||B||^2.
    """
    rank = len(inverse)
    defect = 0.0
    for start in range(0, rank, _BLOCK):
        rows = inverse[start : start + _BLOCK].astype(precision)
        product = (rows @ gram.astype(precision)) @ inverse.astype(precision).T
        product[np.arange(len(rows)), start + np.arange(len(rows))] -= 1.0
        defect += float((product**2).sum())
    # [step 3] What the products and the entries of K can be off, on top of the defect as computed.
    doubt += 4 * rank * _ROUNDING[precision] * float(np.linalg.norm(gram))
    return math.sqrt(1.0 + math.sqrt(defect) + doubt * float((inverse**2).sum()))
