"""Rules in rows: which states can meet, what is within reach, and larger values drawn anew above smaller ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.release.columns import ColumnModel
from spinney.release.frames import to_frame
from spinney.release.obey import possible_pairs, raise_above, told_apart, within_reach
from spinney.schema.columns import Real
from spinney.schema.lattice import integer_bounds

FEW = settings(max_examples=60, derandomize=True, deadline=None)


def model_of(column, n_leaves, rng) -> ColumnModel:
    """A column of leaves of about equal length with random weights, in states of one or two leaves; null apart."""
    if isinstance(column, Real):
        edges = np.linspace(column.low, column.high, n_leaves + 1)
    elif isinstance(column, (sp.Category, sp.Boolean)):
        edges = np.arange(1.0 + (len(column.values) if isinstance(column, sp.Category) else 2))
    else:
        low, high = integer_bounds(column)
        edges = np.unique(np.linspace(0, high - low + 1, n_leaves + 1).astype(np.int64)).astype(np.float64)
    low, length = edges[:-1], np.diff(edges)
    states = np.arange(len(low)) // 2
    is_null = np.zeros(len(low), dtype=np.bool_)
    if column.nullable:
        low, length, is_null = np.append(low, 0.0), np.append(length, 0.0), np.append(is_null, True)
        states = np.append(states, states.max() + 1)
    weights = np.maximum(rng.integers(-2, 9, len(low)), 0).astype(np.float64)
    return ColumnModel(low, length, is_null, weights, states.astype(np.int32), int(states.max()) + 1)


def values_in(model, column, state):
    """Whole values that a state holds, None for null."""
    first = integer_bounds(column)[0] if not isinstance(column, (sp.Category, sp.Boolean)) else 0
    held = set()
    for leaf in np.flatnonzero(model.states == state):
        if model.is_null[leaf]:
            held.add(None)
        else:
            held |= {first + place for place in range(int(model.low[leaf]), int(model.low[leaf] + model.length[leaf]))}
    return held


# ------------------------------------------------------------------------------------------------------ states


@FEW
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans(), st.booleans())
def test_states_that_can_meet(seed, small_null, large_null, is_turned):
    """Of whole numbers, exactly those of which some values obey AtMost; in the order of the columns."""
    rng = np.random.default_rng(seed)
    low, other_low = (int(number) for number in rng.integers(-5, 6, 2))
    schema = {
        "small": sp.Integer(low, low + 9, nullable=small_null),
        "large": sp.Integer(other_low, other_low + 12, nullable=large_null),
    }
    names = ["large", "small"] if is_turned else ["small", "large"]
    models = {name: model_of(schema[name], int(rng.integers(1, 7)), rng) for name in names}
    ((pair, possible),) = possible_pairs([sp.AtMost("small", "large")], schema, models)
    assert pair == (0, 1)
    assert possible.shape == tuple(models[name].n_states for name in names)
    for i, j in product(range(models["small"].n_states), range(models["large"].n_states)):
        smaller = values_in(models["small"], schema["small"], i)
        larger = values_in(models["large"], schema["large"], j)
        can_meet = any(a is None or b is None or a <= b for a in smaller for b in larger)
        assert (possible[j, i] if is_turned else possible[i, j]) == can_meet


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("values", [["b", "d"], None])
def test_states_that_go_with_null(values, is_turned):
    """Null goes with the listed values, or with null, and nothing else does."""
    rng = np.random.default_rng(0)
    schema = {"end": sp.Integer(0, 9, nullable=True), "status": sp.Category([*"abcd"], nullable=True)}
    names = ["status", "end"] if is_turned else ["end", "status"]
    models = {name: model_of(schema[name], 4, rng) for name in names}
    # Values that the rule tells apart are states of their own.
    status = models["status"]
    models["status"] = ColumnModel(
        status.low, status.length, status.is_null, status.weights, np.arange(5, dtype=np.int32), 5
    )
    rule = sp.EmptyWhen("end", "status", values)
    ((pair, possible),) = possible_pairs([rule], schema, models)
    assert pair == (0, 1)
    if is_turned:
        possible = possible.T
    says = [False, True, False, True, False] if values else [False, False, False, False, True]
    *numbers, null = possible
    assert null.tolist() == says
    assert all(row.tolist() == [not said for said in says] for row in numbers)


def test_values_that_say_so_are_told_apart():
    schema = {"a": sp.Real(0, 1, nullable=True), "b": sp.Boolean(nullable=True), "c": sp.Category([5, 6, 7])}
    rules = [sp.EmptyWhen("a", "c", [7, 5]), sp.EmptyWhen("b", "c", [6]), sp.AtMost("a", "x")]
    found = told_apart(rules, schema)
    assert {name: places.tolist() for name, places in found.items()} == {"c": [0, 1, 2]}
    assert told_apart([sp.EmptyWhen("a", "b")], schema) == {}


# ------------------------------------------------------------------------------------------------------ rows

KINDS = {
    "whole numbers": (sp.Integer(0, 100), sp.Integer(-50, 60), sp.Integer(-10, 70)),
    "null": (sp.Integer(0, 100, nullable=True), sp.Integer(0, 60, nullable=True), sp.Integer(0, 120, nullable=True)),
    "reals": (sp.Real(-1, 1), sp.Real(-3, 0.5), sp.Real(-2, 2)),
    "reals and whole numbers": (sp.Integer(0, 9), sp.Real(0.5, 8.5), sp.Integer(2, 12)),
    "multiples": (
        sp.Integer(0, 100, multiple_of=7),
        sp.Integer(0, 90, multiple_of=10),
        sp.Integer(0, 120, multiple_of=25),
    ),
    "real multiples": (
        sp.Real(0, 5, multiple_of=0.1),
        sp.Real(0, 5, multiple_of=0.25, nullable=True),
        sp.Real(0, 5, multiple_of=0.5),
    ),
    "dates": (
        sp.Date("2020-01-01", "2020-03-01"),
        sp.Date("2019-06-01", "2020-02-01", nullable=True),
        sp.Date("2020-01-15", "2021-01-01"),
    ),
    "moments": (
        sp.Datetime("2020-01-01", "2020-03-01"),
        sp.Datetime("2019-06-01", "2020-02-01", nullable=True),
        sp.Datetime("2020-01-15", "2021-01-01"),
    ),
}
RULES = {
    "chain": [sp.AtMost("a", "b"), sp.AtMost("b", "c")],
    "two below one": [sp.AtMost("a", "c"), sp.AtMost("b", "c")],
    "one below two": [sp.AtMost("a", "b"), sp.AtMost("a", "c")],
    "all": [sp.AtMost("a", "b"), sp.AtMost("b", "c"), sp.AtMost("a", "c")],
}


def physical(places, schema):
    """Rows as a table shows them, as physical numbers by column, NaN for null."""
    table = to_frame(np.stack([places[name] for name in schema]), sp.Schema(schema), "pyarrow")
    found = {}
    for name, column in schema.items():
        values = table[name].to_pylist()
        found[name] = np.array([np.nan if value is None else float(column.physical(value)) for value in values])
    return found


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("columns", KINDS.values(), ids=KINDS)
def test_rows_obey_at_most(columns, rules):
    """Columns cut to what is within reach, then raised: as a table shows them, all rows obey."""
    assert sum(n_raised(columns, rules, seed) for seed in range(4)) > 100  # otherwise nothing was tried


def n_raised(columns, rules, seed):
    """How many rows broke a rule before they were made to obey."""
    rng = np.random.default_rng(seed)
    schema = dict(zip("abc", columns, strict=True))
    sp.Schema(schema, rules=rules)  # such rules can be obeyed
    models = {name: model_of(column, int(rng.integers(2, 9)), rng) for name, column in schema.items()}
    for name, (cut, left) in within_reach(rules, schema, models).items():
        assert (left > 0).any()
        models[name] = cut
        models[f"{name} left"] = left
    n = 600
    states, places = {}, {}
    for name in schema:
        held = np.flatnonzero(models.get(f"{name} left", np.ones(models[name].n_states)) > 0)
        states[name] = rng.choice(held, n).astype(np.int32)
        places[name] = models[name].draw(states[name], rng)
    before = {name: values.copy() for name, values in places.items()}
    broken = ~np.all([rule.holds(physical(before, schema), schema) for rule in rules], axis=0)
    raise_above(places, states, rules, schema, models, rng)
    rows = physical(places, schema)
    for rule in rules:
        assert rule.holds(rows, schema).all()
    for name in schema:
        assert np.array_equal(np.isnan(places[name]), np.isnan(before[name]))
    # Rows that obeyed keep their values.
    assert all(np.array_equal(rows[n][~broken], physical(before, schema)[n][~broken], equal_nan=True) for n in schema)
    # The smallest of all is never touched.
    first = physical(before, schema)["a"]
    assert np.array_equal(rows["a"], first, equal_nan=True)
    return int(broken.sum())


def test_a_raised_value_comes_from_its_own_state_if_that_reaches():
    """Above the smaller value by the state's weights; else by the column's; else it is the smaller value itself."""
    schema = {"a": sp.Integer(0, 29), "b": sp.Integer(0, 29)}
    b = ColumnModel(
        np.array([0.0, 10.0, 20.0]),
        np.array([10.0, 10.0, 5.0]),
        np.zeros(3, dtype=np.bool_),
        np.array([1.0, 1.0, 3.0]),
        np.array([0, 1, 1], dtype=np.int32),
        2,
    )
    rules = [sp.AtMost("a", "b")]
    n = 4000

    def raised(least, state):
        places = {"a": np.full(n, float(least)), "b": np.zeros(n)}
        states = {"a": np.zeros(n, dtype=np.int32), "b": np.full(n, state, dtype=np.int32)}
        raise_above(places, states, rules, schema, {"a": b, "b": b}, np.random.default_rng(0))
        return places["b"]

    own = raised(5, 0)
    assert (own >= 5).all()
    assert (own < 10).all()
    assert set(np.floor(own)) == {5, 6, 7, 8, 9}
    above = raised(15, 0)
    assert (above >= 15).all()
    assert abs((above >= 20).mean() - 3 / 3.5) < 0.03
    assert set(np.floor(raised(27, 1))) == {27}


def test_within_reach_is_the_range_that_rules_leave():
    """A start above every end goes, an end below every start goes, nulls stay."""
    schema = {"start": sp.Integer(0, 100), "end": sp.Integer(-20, 50, nullable=True)}
    models = {name: model_of(column, 10, np.random.default_rng(1)) for name, column in schema.items()}
    cut = within_reach([sp.AtMost("start", "end")], schema, models)
    assert set(cut) == {"start", "end"}
    start, left = cut["start"]
    assert ((start.low + start.length)[start.length > 0] <= 51).all()
    assert left[-1] == 0
    assert left[0] == 1
    end, left = cut["end"]
    kept = ~end.is_null & (end.length > 0)
    assert (end.low[kept] >= 20).all()
    assert left[-1] == 1
    assert end.weights[end.is_null] == models["end"].weights[models["end"].is_null]
    assert within_reach([sp.EmptyWhen("end", "start")], schema, models) == {}
