"""Moments of a block from its noisy sums: one consistent matrix of products, and the law of the noise in it.

Numbers count from -1 to 1 here, values and the constant 1. Sums repeat each other: the values of a category add up to
the constant. Weighted least squares under that makes one matrix of them, over the constant, the numbers and all values
but the first, and takes noise out. Its entries q have the noise (B'PB)^-1 where the measured sums are B q and a known
part, and P has the inverse variances of their noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.regressors import Block

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMoments:
    """A symmetric matrix of sums of products over kept slots, and where each free number q stands in it.

    With triples (number, row, column): matrix[row, column] += q[number], and what is known.
    """

    kept: Whole  # the slots of the block that the matrix is over, ascending
    matrix: Floats  # (n_kept, n_kept)
    number: Whole
    row: Whole
    column: Whole
    law: Floats  # (n_free, n_free): the covariance of the free numbers

    @property
    def n_free(self) -> int:
        return len(self.law)

    def gradients(self, columns: Floats) -> Floats:
        """The gradients in all free numbers of the product of the matrix with a vector (n_kept, n_free)."""
        places = self.row * self.n_free + self.number
        found = np.bincount(places, weights=columns[self.column], minlength=len(self.kept) * self.n_free)
        return np.asarray(found, dtype=np.float64).reshape(len(self.kept), self.n_free)


def fit_moments(block: Block, sums: Whole, *, variance: float, n_rows: int | None) -> NoisyMoments:
    """The matrix of a block; `n_rows` is public where the block does not count rows."""
    firsts = {start for start, column in zip(block.starts, block.columns, strict=True) if not column.is_number}
    kept = [slot for slot in range(block.n_slots) if slot not in firsts]
    free: dict[tuple[int, int], int] = {}
    for entry in block.entries:
        if entry.first not in firsts and entry.second not in firsts:
            free[entry.first, entry.second] = len(free)
    counted, known = np.zeros((len(block.entries), len(free))), np.zeros(len(block.entries))
    for place, entry in enumerate(block.entries):
        for sign_i, i in _spelt(entry.first, firsts, block):
            for sign_j, j in _spelt(entry.second, firsts, block):
                pair = (min(i, j), max(i, j))
                if pair in free:
                    counted[place, free[pair]] += sign_i * sign_j
                else:  # the number of rows, which is public
                    known[place] += sign_i * sign_j * (n_rows or 0)
    units = np.array([float(block.weights[entry.first] * block.weights[entry.second]) for entry in block.entries])
    precise = counted * (units**2 / variance)[:, None]
    law = np.asarray(np.linalg.inv(counted.T @ precise), dtype=np.float64)
    found = law @ (precise.T @ (sums.astype(np.float64) / units - known))
    numbers, rows, columns = _places(block, free, kept)
    matrix = np.zeros((len(kept), len(kept)))
    np.add.at(matrix, (rows, columns), found[numbers])
    if (0, 0) not in free:
        matrix[0, 0] = float(n_rows or 0)
    return NoisyMoments(np.array(kept), matrix, numbers, rows, columns, law)


def _spelt(slot: int, firsts: set[int], block: Block) -> list[tuple[int, int]]:
    """A slot as a sum of kept ones, with signs: the first value of a column is the constant less its other values."""
    if slot not in firsts:
        return [(1, slot)]
    n_values = block.columns[block.owner[slot]].n_slots
    return [(1, 0), *((-1, other) for other in range(slot + 1, slot + n_values))]


def _places(block: Block, free: dict[tuple[int, int], int], kept: list[int]) -> tuple[Whole, Whole, Whole]:
    """Where in the matrix each free number stands; the square of a value is the value."""
    at = {slot: place for place, slot in enumerate(kept)}
    triples = []
    for (i, j), number in free.items():
        triples.append((number, at[i], at[j]))
        if i != j:
            triples.append((number, at[j], at[i]))
        if i == 0 and j > 0 and not block.columns[block.owner[j]].is_number:
            triples.append((number, at[j], at[j]))
    numbers, rows, columns = np.array(triples, dtype=np.int64).T
    return numbers, rows, columns
