"""Columns made of one person's rows: how many there are, first values, steps and differences."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from spinney.errors import SchemaError
from spinney.people.columns import held_rows
from spinney.people.release.rows import _absolute, difference_column, learnt_schema, made_columns, persons_schema
from spinney.schema.linked import PeopleShape
from spinney.tables.persons import gather

COLUMNS = {
    "who": sp.Identifier(),
    "day": sp.Integer(0, 100),
    "level": sp.Real(-5, 5),
    "on": sp.Date("2020-01-01", "2020-12-31"),
}


def shape(**options):
    return PeopleShape.of(sp.Schema(COLUMNS, person="who", **({"most_rows": 4, "order": "day"} | options)))


def held(frame, of):
    gathered = gather(frame, of, rng=np.random.default_rng(0))
    return held_rows(gathered.rows[0], of.rows[0])


def frame(who, days, levels=None, on=None):
    n = len(who)
    return pd.DataFrame(
        {
            "who": list(who),
            "day": np.array(days, dtype=np.int64),
            "level": np.array([0.0] * n if levels is None else levels),
            "on": pd.to_datetime([date(2020, 3, 1)] * n if on is None else on),
        }
    )


def by_person(found, name):
    """The values of a learnt column, person by person, in an order that says nothing."""
    physical = found.source.table.physical(name)
    values = [
        None if physical.is_null is not None and physical.is_null[row] else value
        for row, value in enumerate(physical.values.tolist())
    ]
    values = [None if isinstance(value, float) and np.isnan(value) else value for value in values]
    return [values[a:b] for a, b in zip(found.starts[:-1], found.starts[1:], strict=True)]


def test_steps_are_differences_to_the_row_before():
    """The first row of every person is null, and no step crosses persons."""
    found, made = held(frame("ppqqr", [10, 13, 50, 95, 7]), shape(steps=True))
    assert sorted(map(str, by_person(found, "day"))) == sorted(map(str, [[None, 3], [None, 45], [None]]))
    assert sorted(made["^day"].to_pylist()) == [7, 10, 50]
    assert sorted(made["#"].to_pylist()) == [1, 2, 2]


def test_differences_are_to_the_first_row():
    """Of numbers and of days; values outside of the bounds count as the nearer one."""
    found, made = held(
        frame(
            "pppq",
            [1, 2, 3, 4],
            levels=[1.0, 3.5, -99.0, 2.0],
            on=[date(2020, 5, 1), date(2020, 5, 3), date(2020, 4, 1), date(2020, 1, 1)],
        ),
        shape(differences=["level", "on"]),
    )
    assert sorted(map(str, by_person(found, "level"))) == sorted(map(str, [[None, 2.5, -6.0], [None]]))
    assert sorted(map(str, by_person(found, "on"))) == sorted(map(str, [[None, 2, -30], [None]]))
    assert sorted(made["^on"].to_pylist()) == [date(2020, 1, 1), date(2020, 5, 1)]


def test_numbers_of_rows_are_cut_as_rows_are():
    """A person with more rows than are kept has as many as are kept, in every column that is made of them."""
    found, made = held(frame("pppppppq", range(8)), shape(most_rows=3))
    assert sorted(made["#"].to_pylist()) == [1, 3]
    assert sorted(found.n_rows.tolist()) == [1, 3]
    assert found.one.n_rows == 2


def test_persons_without_rows_have_no_first_value():
    """Null, also where nobody has a row at all."""
    persons = sp.Schema({"id": sp.Identifier(), "x": sp.Boolean()})
    tables = sp.Tables(
        {"people": persons, "rows": sp.Schema(COLUMNS)},
        links=[sp.Link("rows.who", "people.id", most=4, order="day", steps=True, differences=["level"])],
    )
    of = PeopleShape.of(tables)
    people = pd.DataFrame({"id": ["p", "q", "r"], "x": [True, False, True]})
    for who, days in (("qq", [4, 9]), ("", [])):
        gathered = gather({"people": people, "rows": frame(who, days)}, of, rng=np.random.default_rng(0))
        found, made = held_rows(gathered.rows[0], of.rows[0])
        assert sorted(map(str, made["rows.^day"].to_pylist())) == sorted(["None", "None", "4" if who else "None"])
        assert made["rows.^level"].null_count == (2 if who else 3)
        assert made["rows.#"].to_pylist().count(0) == (2 if who else 3)
        assert found.one.n_rows == (1 if who else 0)


def test_ranges_of_made_columns_are_public():
    """Whatever the rows are: numbers of rows from one, or none where there are persons without, to the most."""
    made = made_columns(shape(steps=True, differences=["level"]))
    assert made["#"] == sp.Integer(1, 4)
    assert made["^day"] == sp.Integer(0, 100)
    learnt = learnt_schema(shape(steps=True, differences=["level"]).rows[0])
    assert (learnt["day"].low, learnt["day"].high, learnt["day"].nullable) == (0, 100, True)
    assert (learnt["level"].low, learnt["level"].high) == (-10, 10)
    assert "who" not in learnt


def test_names_that_are_taken_are_refused():
    """A stated column of persons cannot have the name of one that is made."""
    persons = sp.Schema({"id": sp.Identifier(), "rows.#": sp.Integer(0, 4)})
    of = sp.Tables({"people": persons, "rows": sp.Schema(COLUMNS)}, links=[sp.Link("rows.who", "people.id", most=4)])
    with pytest.raises(SchemaError, match="has a name that Spinney gives"):
        persons_schema(PeopleShape.of(of))


def test_differences_of_columns_that_may_be_null_are_refused():
    """A missing value has no difference."""
    columns = COLUMNS | {"level": sp.Real(0, 1, nullable=True)}
    with pytest.raises(SchemaError, match="differences: column 'level' may be null"):
        sp.Schema(columns, person="who", most_rows=4, differences=["level"])


@pytest.mark.parametrize("steps", [True, False])
def test_values_come_back_from_their_differences(steps):
    """First values and differences give the rows that they were taken from, within the bounds."""
    starts, days = np.array([0, 3, 3, 5]), np.array([4.0, 10.0, 99.0, 7.0, 8.0])
    first = np.array([4.0, 4.0, 4.0, 7.0, 7.0])
    before = np.array([4.0, 4.0, 10.0, 7.0, 7.0])
    learnt = sp.Integer(0 if steps else -100, 100, nullable=True)
    differences = days - (before if steps else first) - (0 if steps else -100)
    differences[[0, 3]] = np.nan
    found = _absolute(differences + 0.3, first + 0.5, starts, sp.Integer(0, 100), learnt, steps=steps)
    assert found.tolist() == days.tolist()


def test_steps_of_multiples_are_multiples():
    """A step that lies within half a multiple of none is none, so that nothing goes back."""
    column, learnt = sp.Integer(0, 350, multiple_of=50), sp.Integer(0, 350, multiple_of=50, nullable=True)
    starts, first = np.array([0, 4]), np.full(4, 125.0)  # positions count from -25: the value is 100
    differences = np.array([np.nan, 3.0, 25.0 + 26.0, 49.0])  # -22, 26 and 24: none, one, none
    found = _absolute(differences, first, starts, column, learnt, steps=True)
    assert found.tolist() == [125.0, 125.0, 175.0, 175.0]


@pytest.mark.parametrize("column", [sp.Integer(10, 110), sp.Real(10, 110)])
def test_a_history_that_would_run_past_the_bound_begins_earlier_and_keeps_its_steps(column):
    """Clamped, all of its later rows would be one value; one that is longer than the bounds allow is clamped still."""
    is_real = isinstance(column, sp.Real)
    learnt = difference_column(column, grows=True)
    starts = np.array([0, 3, 6, 8])
    origin = 10.0 if is_real else 0.0  # positions of whole numbers count from the lower bound
    first = np.repeat([origin + 90, origin + 20, origin + 50], [3, 3, 2])
    differences = np.array([0.0, 20, 30, 0, 5, 5, 0, 150])
    found = _absolute(differences, first, starts, column, learnt, steps=True) - origin
    assert found.tolist() == [50, 70, 100, 20, 25, 30, 0, 100]
