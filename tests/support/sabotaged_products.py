"""A zoo of sabotaged products of pairs: each sums, groups or accounts for something else than the proof says.

The check runs the real `release_products` on small tables and compares what neighbours' sums differ by with the
sensitivity that their noise was asked for with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from spinney.counting.states import StateRows
from spinney.forest import sums as under_test
from spinney.forest.design import EFFORTS
from spinney.forest.plan import Shape, forest_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release import fit
from spinney.forest.release.columns import ColumnModel
from spinney.forest.release.fit import ReleasedProducts
from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel
from spinney.graph.tilt import Evidence, Tilt
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.ledger import Ledger
from support.sabotaged_forests import UNITS_OF_ROWS, Check, Sabotage
from support.slow_forests import Row, rows_of

SIZES = (3, 4, 2, 5)
COUNTED = [(0, 1)]
# With so many rows every state is a group of its own; with so few, columns have two groups.
MANY, FEW = 1e9, 3.0

Sums = NDArray[np.int64]


def columns_of(sizes: Sequence[int], weights: Sequence[Sequence[float]] | None = None) -> list[ColumnModel]:
    """Columns with one leaf to a state."""
    return [
        ColumnModel(
            np.arange(float(size)),
            np.ones(size),
            np.zeros(size, dtype=np.bool_),
            np.asarray(1.0 + np.arange(size) if weights is None else weights[number], dtype=np.float64),
            np.arange(size, dtype=np.int32),
            size,
        )
        for number, size in enumerate(sizes)
    ]


def even_model(sizes: Sequence[int], cliques: Sequence[tuple[int, ...]] = ()) -> GraphModel:
    """A model in which every row is as common as any other."""
    tree = JunctionTree.covering(list(sizes), list(cliques))
    return GraphModel(tree, tuple(np.zeros([sizes[column] for column in clique]) for clique in tree.cliques))


def opened(unit: Unit) -> PrepaidMechanisms:
    """Mechanisms of a plan with a vector."""
    shares = {"one-way": Fraction(1, 4), "cliques": Fraction(1, 4), "products": Fraction(1, 2)}
    shape = Shape({"one-way": len(SIZES), "cliques": 1}, shares)
    plan = forest_plan(shape, epsilon=Fraction(1), delta=Fraction(1, 10**5), unit=unit)
    return PrepaidMechanisms(plan, Ledger(unit=unit), UnsafeSeededEntropy(1))


def release_of(rows: StateRows, unit: Unit, total: float) -> ReleasedProducts | None:
    return under_test.release_products(
        rows,
        columns_of(rows.sizes),
        [True] * len(rows.sizes),
        even_model(rows.sizes, COUNTED),
        COUNTED,
        opened(unit),
        total=total,
        effort=replace(EFFORTS["fast"], most_sums=10_000, n_drawn=50, steps=1),
        rng=np.random.default_rng(0),
    )


@contextmanager
def _watched() -> Iterator[list[tuple[Sums, int]]]:
    """True sums as they are handed over for noise, with the sensitivity stated; no tilt is fitted."""
    seen: list[tuple[Sums, int]] = []

    def note(_: PrepaidMechanisms, true_sums: Sums, sensitivity_squared: int) -> Sums:
        seen.append((np.array(true_sums), sensitivity_squared))
        return true_sums

    def no_tilt(_: Any, evidence: Evidence, **__: Any) -> Tilt:
        singles = tuple(np.zeros(len(group)) for group in evidence.groups)
        return Tilt(evidence.groups, singles, (), (), 0.0)

    with mock.patch.object(PrepaidMechanisms, "noisy_sums", note), mock.patch.object(fit, "fit_tilt", no_tilt):
        yield seen


def handed_over(rows: Sequence[Row], unit: Unit, total: float) -> tuple[Sums, int, tuple[bytes, ...]]:
    """What `release_products` asks noise for: sums, their sensitivity, and the groups that they are of."""
    with _watched() as seen:
        released = release_of(rows_of(rows, SIZES), unit, total)
    ((sums, squared),) = seen
    assert released is not None
    return sums, squared, tuple(group.tobytes() for group in released.tilt.groups)


# ------------------------------------------------------------------------------------------------ check


def neighbours_are_within_the_sensitivity() -> float:
    """For all rows of small tables, in both units, with one group to a state and with two groups to a column.

    Groups and sensitivity are the same whatever the rows are.
    """
    every = list(product(*map(range, SIZES)))
    others: list[Row] = [(0, 3, 1, 4), (2, 0, 0, 4), (2, 0, 0, 4)]
    for unit, total in product(UNITS_OF_ROWS, (MANY, FEW)):
        found = [handed_over([*others, row], unit, total) for row in every]
        before = handed_over(others, unit, total)
        public = {(sums.size, squared, groups) for sums, squared, groups in (*found, before)}
        if len(public) > 1:
            return 0.0
        after = np.array([sums for sums, _, _ in found])
        compared = [before[0]] if unit is Unit.ADD_REMOVE else list(after)
        if max(int(((after - sums) ** 2).sum(axis=1).max()) for sums in compared) > before[1]:
            return 0.0
    return 1.0


# ------------------------------------------------------------------------------------------------ sabotage


def unclipped_functions() -> AbstractContextManager[Any]:
    """Functions that are the numbers of groups, about their middle: further from 0 than 1."""

    def numbers(n_groups: int) -> Sums:
        return np.stack([2 * np.arange(n_groups) - n_groups + 1] * (n_groups - 1)).reshape(n_groups - 1, n_groups)

    return mock.patch.object(under_test, "signs", numbers)


def a_pair_twice() -> AbstractContextManager[Any]:
    """The sums of the last pair are handed over twice, and accounted for once."""
    original = under_test._true_sums

    def twice(*arguments: Any) -> list[Sums]:
        sums = original(*arguments)
        return [*sums, sums[-1]]

    return mock.patch.object(under_test, "_true_sums", twice)


def groups_from_private_counts() -> AbstractContextManager[Any]:
    """Groups of equal numbers of true rows, where released weights belong."""
    original = under_test.release_products

    def peeking(rows: StateRows, columns: Any, *arguments: Any, **options: Any) -> Any:
        true_weights = [rows.true_table((number,)).astype(np.float64) for number in range(len(columns))]
        changed = [replace(column, weights=true) for column, true in zip(columns, true_weights, strict=True)]
        return original(rows, changed, *arguments, **options)

    return mock.patch.object(under_test, "release_products", peeking)


def one_pair_not_accounted_for() -> AbstractContextManager[Any]:
    original = under_test.sensitivity_squared
    return mock.patch.object(
        under_test, "sensitivity_squared", lambda sizes, pairs, unit: original(sizes, pairs[1:], unit)
    )


def a_replaced_row_moves_as_far_as_a_new_one() -> AbstractContextManager[Any]:
    original = under_test.sensitivity_squared
    return mock.patch.object(
        under_test, "sensitivity_squared", lambda sizes, pairs, _: original(sizes, pairs, Unit.ADD_REMOVE)
    )


def both_groups_always_change() -> AbstractContextManager[Any]:
    """A replaced row is taken to change every group: where one of a pair stays, the pair moves further."""
    from spinney.forest.release import fit as of_signs

    moves = of_signs._moves
    return mock.patch.object(of_signs, "_moves", lambda first, second: (0, moves(first, second)[1]))


PRODUCT_CAGES: dict[str, tuple[Check, Sabotage]] = {
    "unclipped functions": (neighbours_are_within_the_sensitivity, unclipped_functions),
    "a pair twice": (neighbours_are_within_the_sensitivity, a_pair_twice),
    "groups from private counts": (neighbours_are_within_the_sensitivity, groups_from_private_counts),
    "one pair not accounted for": (neighbours_are_within_the_sensitivity, one_pair_not_accounted_for),
    "the sensitivity of the other unit": (
        neighbours_are_within_the_sensitivity,
        a_replaced_row_moves_as_far_as_a_new_one,
    ),
    "all groups are taken to change": (neighbours_are_within_the_sensitivity, both_groups_always_change),
}
