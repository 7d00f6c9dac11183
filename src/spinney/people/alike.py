"""Alikeness: how much two rows of one person have in common, column by column. SENSITIVE up to the noise.

Of every person with two rows and more, two random ones are compared: numbers by the product of their places in the
released law of the column, from -1 to 1; categories by whether they agree. The sums over persons, and how many persons
there are, are one vector with noise (people.proof.md, alikeness). What comes of it is a correlation within persons for
each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.forest.prepaid import PrepaidMechanisms
from spinney.privacy.budget import Unit
from spinney.privacy.parts import UNITS

Floats = NDArray[np.float64]

# A correlation above this is taken for it: levels would decide nearly everything.
_MOST = 0.97
# A sum over fewer persons than so many standard deviations of their noisy number says nothing.
_STANDS_OUT = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class ColumnLaw:
    """The released law of a column's states, in order where they have one."""

    shares: Floats  # (n_states,), adding up to 1
    is_ordered: bool

    def places(self) -> Floats:
        """The middle of every state in the distribution function, from 0 to 1."""
        return np.asarray(np.cumsum(self.shares) - self.shares / 2)


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """The states of two rows of some persons, in all columns (n_columns, n_persons). SENSITIVE."""

    first: NDArray[Any]
    second: NDArray[Any]

    def __repr__(self) -> str:
        return "Compared(sensitive)"


def two_rows(states: NDArray[Any], starts: NDArray[np.int64], rng: np.random.Generator) -> Compared:
    """Two random rows of every person that has two or more."""
    n_rows = np.diff(starts)
    has_two = n_rows > 1
    m, begin = n_rows[has_two], starts[:-1][has_two]
    first = np.minimum((rng.random(len(m)) * m).astype(np.int64), m - 1)
    second = (first + 1 + np.minimum((rng.random(len(m)) * (m - 1)).astype(np.int64), m - 2)) % m
    return Compared(states[:, begin + first], states[:, begin + second])


def sensitivity_squared(n_columns: int, unit: Unit) -> int:
    """How far one person moves all sums together, in squared units: numbers lie between -1 and 1, counts are 1."""
    return UNITS**2 * (n_columns + 1 if unit.factor == 1 else 4 * n_columns + 1)


def true_alikeness(compared: Compared, laws: Sequence[ColumnLaw]) -> NDArray[np.int64]:
    """The sums of all columns, and how many persons there are, in units. SENSITIVE."""
    sums = []
    for law, first, second in zip(laws, compared.first, compared.second, strict=True):
        if law.is_ordered:
            centred = 2 * law.places() - 1
            scaled = np.nan_to_num(np.clip(np.multiply.outer(centred, centred), -1, 1))
            products = np.rint(UNITS * scaled).astype(np.int64)
        else:
            products = UNITS * np.eye(len(law.shares), dtype=np.int64)
        sums.append(products[first, second].sum(dtype=np.int64))
    return np.array([*sums, UNITS * compared.first.shape[1]], dtype=np.int64)


def release_alikeness(
    compared: Sequence[Compared], laws: Sequence[Sequence[ColumnLaw]], prepaid: PrepaidMechanisms
) -> list[Floats]:
    """For each table of rows the correlation within persons of every column, from 0 to nearly 1."""
    unit = prepaid.plan.unit
    vector = np.concatenate([true_alikeness(some, of_table) for some, of_table in zip(compared, laws, strict=True)])
    sensitivity = sum(sensitivity_squared(len(of_table), unit) for of_table in laws)
    noisy = prepaid.noisy_sums(vector, sensitivity, "alikeness") / UNITS
    noise_std = float(prepaid.plan.vectors["alikeness"].variance(sensitivity)) ** 0.5 / UNITS
    found, at = [], 0
    for of_table in laws:
        sums, n_persons = noisy[at : at + len(of_table)], noisy[at + len(of_table)]
        at += len(of_table) + 1
        if n_persons < _STANDS_OUT * noise_std:
            found.append(np.zeros(len(of_table)))
            continue
        found.append(np.array([_correlation(law, s / n_persons) for law, s in zip(of_table, sums, strict=True)]))
    return found


def _correlation(law: ColumnLaw, mean: float) -> float:
    """The correlation that a mean product, or a share of persons whose rows agree, stands for."""
    if law.is_ordered:
        variance = float(law.shares @ (2 * law.places() - 1) ** 2)
        return float(np.clip(mean / max(variance, 1e-9), 0.0, _MOST))
    by_chance = float((law.shares**2).sum())
    return float(np.clip((mean - by_chance) / max(1 - by_chance, 1e-9), 0.0, _MOST))
