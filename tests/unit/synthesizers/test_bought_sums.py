"""Sums of bought answers: no row moves them by more than is charged for, and their noise is what the proof says."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.counting.states import StateRows
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import DiscreteLaplaceCounts, LeafMoments
from spinney.release.answers.grammar import parse_question
from spinney.synthesizers import buy as buying
from spinney.synthesizers.buy import asked_columns, true_sums
from spinney.tables.open import open_source
from spinney.tree.bought import Direct, release_sums


@pytest.mark.parametrize(
    "question",
    [
        "count where age > 1",
        "proportion where age > 1 given sex = Male",
        "mean(age) where sex = Male",
        "mean(age) where age < 2",
    ],
)
def test_no_row_changes_a_sum_by_more_than_its_reach(question: str) -> None:
    """All neighbours of small tables of two columns, under both units, by enumeration; the bound is reached."""
    schema = sp.Schema({"age": sp.Integer(0, 2), "sex": sp.Category(["Male", "Female"])})
    asked = parse_question(question, schema)
    columns = asked_columns(asked, schema)
    reach = next((column.grid.reach for column in columns if column.grid is not None), 1)
    rows = [(age, sex) for age in (0, 1, 2) for sex in ("Male", "Female")]

    def sums(table: list[tuple[int, str]]) -> np.ndarray[Any, Any]:
        source = open_source(pa.table({"age": [a for a, _ in table], "sex": [s for _, s in table]}), schema)
        n_given, n_where, total = true_sums(
            source.with_schema(sp.Schema({name: schema[name] for name in asked.columns})).state_rows(
                [column.cut for column in columns]
            ),
            columns,
        )
        return np.array([n_given, n_where, total])

    of_row = {row: sums([row]) for row in rows}
    assert max(abs(of_row[row][:2]).max() for row in rows) == 1
    assert max(abs(of_row[row][2]) for row in rows) == (reach if asked.kind == "mean" else 0)
    together = sums(rows)
    assert (together == sum(of_row.values())).all()
    moved = [abs(of_row[a] - of_row[b]) for a in rows for b in rows]
    assert max(change[:2].max() for change in moved) == 1
    if asked.kind == "mean":
        assert max(change[2] for change in moved) == 2 * reach


@pytest.mark.parametrize(
    "question",
    [
        "count where age > 1",
        "proportion where age > 1",
        "proportion where age > 1 given sex = Male",
        "mean(age)",
        "mean(age) where sex = Male",
        "mean(age) where age < 2 and sex = Male",
    ],
)
@pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE])
def test_neighbours_differ_by_no_more_than_is_charged_for_and_by_no_less(question: str, unit: Unit) -> None:
    """The sup norm between released vectors of all neighbouring tables of up to three rows is the `reach` at most.

    Where it is less, noise would be wasted. With half the reach, as if replace-one were add-remove, the test fails.
    """
    schema = sp.Schema({"age": sp.Integer(0, 2), "sex": sp.Category(["Male", "Female"])})
    asked = parse_question(question, schema)
    columns = asked_columns(asked, schema)
    is_public = buying._has_public_total(asked, schema, 3 if unit.n_is_public else None)
    direct = buying._direct(asked, columns, unit, has_public_total=is_public)
    rows = [(age, sex) for age in (0, 1, 2) for sex in ("Male", "Female")]
    read = sp.Schema({name: schema[name] for name in asked.columns})

    def sums(table: tuple[tuple[int, str], ...]) -> np.ndarray[Any, Any]:
        frame = pa.table({"age": [a for a, _ in table], "sex": [s for _, s in table]})
        source = open_source(frame, schema).with_schema(read)
        return np.array(buying._counted(source, asked, columns, direct, unit))

    moved = [0]
    for first, second in product(rows, repeat=2):
        here = sums((first, second))
        if unit.n_is_public:
            moved += [int(abs(here - sums((first, other))).max()) for other in rows]
        else:
            moved.append(int(abs(here - sums((first,))).max()))
    assert max(moved) == direct.reach
    charge = direct.charge(Fraction(1))
    assert isinstance(charge, DiscreteLaplaceCounts if direct.n_sums == 1 else LeafMoments)
    assert direct.rate(Fraction(1)) == Fraction(1, max(moved))


def fits(noises: np.ndarray[Any, Any], rate: float) -> bool:
    """Whether whole numbers are discrete Laplace of a rate: their mean size is 2a / (1 - a^2) within five errors."""
    a = np.exp(-rate)
    expected, variance = 2 * a / (1 - a**2), 2 * a / (1 - a) ** 2
    error = np.sqrt((variance - expected**2) / len(noises))
    return bool(abs(np.abs(noises).mean() - expected) < 5 * error)


@pytest.mark.parametrize("reach", [1, 40])
def test_the_noise_of_one_number_is_discrete_laplace_of_the_rate_that_was_paid(reach: int) -> None:
    direct, entropy = Direct(1, reach, 1, "answer"), sp.UnsafeSeededEntropy(0)
    epsilon = Fraction(1, 2)
    noisy = [
        release_sums(lambda: (100,), direct=direct, epsilon=epsilon, ledger=sp.Ledger(), entropy=entropy).noisy[0]
        for _ in range(4000)
    ]
    noises = np.array(noisy) - 100
    assert fits(noises, 0.5 / reach)
    assert not fits(noises, 0.5 / reach * 1.3)
    assert not fits(noises, 0.5 / reach * 0.7)


def test_states_are_sensitive_and_sums_come_from_public_steps() -> None:
    """Coarse cells of trees do not make answers coarse."""
    schema = sp.Schema({"pay": sp.Real(0, 1000, nullable=True, bits=3)})
    columns = asked_columns(parse_question("mean(pay) where pay < 100", schema), schema)
    rows = StateRows(np.zeros((1, 7), dtype=np.uint16), (2,))
    assert true_sums(rows, columns)[1] == 7
    assert columns[0].steps is not None
    assert abs(columns[0].steps).max() == columns[0].grid.reach  # type: ignore[union-attr]
