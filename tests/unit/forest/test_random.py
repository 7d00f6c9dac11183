"""Any schema, any small table: a forest is fitted, saved, loaded and drawn from, and every row keeps to it."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.errors import SchemaError
from spinney.tables.frames import open_table

DAY, MOMENT = date(2020, 1, 1), datetime(2020, 1, 1)
ZONES = [None, "UTC", "Asia/Tokyo"]


@st.composite
def numbers(draw, nullable):
    """A number whose bounds hold a multiple of its step, where it has one."""
    bits = draw(st.one_of(st.none(), st.integers(1, 8)))
    if draw(st.booleans()):
        low = draw(st.integers(-50, 50))
        step = draw(st.one_of(st.none(), st.integers(1, 9)))
        high = low + draw(st.integers(0 if step is None else step, 200))
        return sp.Integer(low, high, multiple_of=step, nullable=nullable, bits=bits)
    low = draw(st.integers(-20, 20)) / 4
    step = draw(st.sampled_from([None, 0.25, 0.1, 3.0]))
    length = draw(st.integers(1, 100)) / 4 + (step or 0)
    return sp.Real(low, low + length, multiple_of=step, nullable=nullable, bits=bits)


@st.composite
def columns(draw):
    """A column of any type."""
    nullable = draw(st.booleans())
    kind = draw(st.sampled_from(["number", "number", "date", "moment", "truth", "text", "code", "identifier"]))
    if kind == "number":
        return draw(numbers(nullable))
    if kind == "date":
        first = DAY + timedelta(days=draw(st.integers(-500, 500)))
        return sp.Date(first, first + timedelta(days=draw(st.integers(0, 900))), nullable=nullable)
    if kind == "moment":
        first = MOMENT + timedelta(microseconds=draw(st.integers(-(10**12), 10**12)))
        last = first + timedelta(microseconds=draw(st.integers(0, 10**10)))
        zone = draw(st.sampled_from(ZONES))
        return sp.Datetime(first.isoformat(), last.isoformat(), nullable=nullable, timezone=zone)
    if kind == "truth":
        return sp.Boolean(nullable=nullable)
    if kind == "identifier":
        return sp.Identifier(prefix=draw(st.sampled_from([None, "P-"])))
    n_values = draw(st.integers(1, 12))
    values = [f"v{i}" for i in range(n_values)] if kind == "text" else [7 * i - 20 for i in range(n_values)]
    return sp.Category(values, nullable=nullable)


@st.composite
def schemas(draw):
    """Two to six columns, and those of some random rules that the schema accepts."""
    drawn = {f"c{i}": draw(columns()) for i in range(draw(st.integers(1, 5)))}
    drawn["last"] = draw(st.one_of(numbers(draw(st.booleans())), st.just(sp.Boolean(nullable=True))))
    rules = []
    names = list(drawn)
    for _ in range(draw(st.integers(0, 4))):
        pair = draw(st.permutations(names))[:2]
        if len(pair) < 2:
            break
        other = drawn[pair[1]]
        values = None
        if isinstance(other, sp.Category):
            values = [other.values[0]]
        elif isinstance(other, sp.Boolean):
            values = draw(st.sampled_from([None, [True]]))
        rule = draw(st.sampled_from([sp.AtMost(*pair), sp.EmptyWhen(*pair, values)]))
        try:
            sp.Schema(drawn, rules=[*rules, rule])
        except SchemaError:
            continue
        rules.append(rule)
    return sp.Schema(drawn, rules=rules)


def some_table(schema, n_rows, rng):
    """Rows that may lie outside the bounds, off the multiples and against the rules; identifiers are secrets."""
    table = {}
    for name, column in schema.items():
        if isinstance(column, sp.Identifier):
            table[name] = pa.array([f"SECRET{row}" for row in range(n_rows)])
            continue
        kind = None
        if isinstance(column, sp.Category):
            values = [
                column.values[int(i)] for i in rng.integers(0, len(column.values), n_rows) ** 2 % len(column.values)
            ]
        elif isinstance(column, sp.Boolean):
            values = (rng.random(n_rows) < 0.8).tolist()
        else:
            low, high = (float(column.physical(end)) for end in (column.low, column.high))
            drawn = low + (rng.beta(1, 3, n_rows) * 1.2 - 0.1) * (high - low)
            values = drawn.tolist() if isinstance(column, sp.Real) else np.rint(drawn).astype(np.int64).tolist()
            if isinstance(column, sp.Date):
                values = pa.array(values, pa.int32()).cast(pa.date32()).to_pylist()
            elif isinstance(column, sp.Datetime):
                kind = pa.timestamp("us", column.timezone)
        if column.nullable:
            values = [None if rng.random() < 0.2 else value for value in values]
        table[name] = pa.array(values, kind)
    return pa.table(table)


def check(rows, schema, n_rows):
    """Types, bounds, lists, nulls, multiples, numbers of rows, identifiers and rules."""
    assert rows.column_names == list(schema)
    assert rows.num_rows == n_rows
    numbers = {}
    for name, column in schema.items():
        values = rows[name].to_pylist()
        if isinstance(column, sp.Identifier):
            made = range(1, n_rows + 1)
            assert values == (list(made) if column.prefix is None else [f"P-{number:06}" for number in made])
            continue
        present = [value for value in values if value is not None]
        assert column.nullable or len(present) == n_rows
        if isinstance(column, sp.Category):
            assert set(present) <= set(column.values)
        elif isinstance(column, sp.Boolean):
            assert set(present) <= {True, False}
        else:
            assert all(column.low <= value <= column.high for value in present)
            step = getattr(column, "multiple_of", None)
            if step is not None:
                assert all((Fraction(str(value)) / Fraction(str(step))).denominator == 1 for value in present)
        physical = open_table(rows.select([name]), sp.Schema({name: column})).physical(name)
        is_null = np.zeros(n_rows, dtype=bool) if physical.is_null is None else physical.is_null
        numbers[name] = np.where(is_null, np.nan, np.asarray(physical.values, dtype=np.float64))
    for rule in schema.rules:
        assert rule.holds(numbers, schema).all(), rule


@settings(max_examples=30, derandomize=True, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(schemas(), st.data())
def test_whatever_is_stated_is_kept(tmp_path_factory, schema, data):
    """Fitted, saved and loaded, drawn with and without conditions: all that the schema states holds of every row."""
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    names = [name for name, column in schema.items() if not isinstance(column, sp.Identifier)]
    model = sp.ForestSynthesizer(
        data.draw(st.sampled_from(["1/100", "1", "30"])),
        data.draw(st.sampled_from([0, 0, "1e-5"])),
        target=data.draw(st.sampled_from([None, *names])),
        quality=data.draw(st.sampled_from(["fast", "fast", "high"])),
        unit=data.draw(st.sampled_from(["replace-one", "add-remove"])),
        assumed_rows=200,
    )
    n_rows = data.draw(st.sampled_from([1, 40, 300]))
    model.fit(some_table(schema, n_rows, rng), schema, entropy=sp.UnsafeSeededEntropy(seed))
    path = tmp_path_factory.mktemp("random") / "release"
    model.save(path)
    loaded = sp.load(path)
    n_drawn = data.draw(st.sampled_from([0, 1, 150]))
    rows = model.sample(n_drawn, seed=1)
    check(rows, schema, n_drawn)
    assert loaded.sample(n_drawn, seed=1).equals(rows)
    assert model.sample(seed=1).num_rows == (n_rows if model.unit == "replace-one" else model.release_.noisy_total)
    assert b"SECRET" not in path.read_bytes()
    if n_drawn:
        # What was drawn can be asked for: a value of a row is possible.
        name = data.draw(st.sampled_from(names))
        wanted = rows[name].to_pylist()[0]
        again = loaded.sample(20, seed=2, where={name: wanted})
        check(again, schema, 20)
        assert again[name].to_pylist() == [wanted] * 20


def test_the_check_would_notice():
    """Values off their steps, outside their bounds or against a rule are not let through."""
    schema = sp.Schema(
        {"a": sp.Integer(0, 9, multiple_of=3), "b": sp.Real(0, 1, nullable=True), "c": sp.Real(0, 1)},
        rules=[sp.AtMost("b", "c")],
    )
    good = {"a": [3], "b": [0.5], "c": [0.75]}
    check(pa.table(good), schema, 1)
    check(pa.table(good | {"b": pa.array([None], pa.float64())}), schema, 1)
    for bad in ({"a": [4]}, {"a": [12]}, {"b": [-0.1]}, {"c": [0.25]}, {"c": pa.array([None], pa.float64())}):
        with pytest.raises(AssertionError):
            check(pa.table(good | bad), schema, 1)


def test_rows_that_nearly_all_break_a_rule():
    """Where the rows have no value that a rule leaves to a column, rows are still drawn, and obey."""
    schema = sp.Schema(
        {"most": sp.Real(0, 1), "part": sp.Real(0, 24, multiple_of=3.0)}, rules=[sp.AtMost("part", "most")]
    )
    model = sp.ForestSynthesizer(5).fit(pa.table({"most": [0.5] * 500, "part": [12.0] * 500}), schema)
    check(model.sample(50, seed=1), schema, 50)
