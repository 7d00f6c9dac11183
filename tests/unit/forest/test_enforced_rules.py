"""Rules in rows: which states can meet, what is within reach, and larger values drawn anew above smaller ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.columns import Real, whole_range
from spinney.errors import ParameterError
from spinney.forest.release.columns import ColumnModel
from spinney.forest.release.conditions import condition, deal_above, feasible, possible_states, resample_above
from spinney.grid.axes import column_axis, partings
from spinney.release.frames import to_frame
from spinney.schema.rules import clauses_of

FEW = settings(max_examples=60, derandomize=True, deadline=None)


def model_of(column, n_leaves, rng) -> ColumnModel:
    """A column of leaves of about equal length with random weights, in states of one or two leaves; null apart."""
    if isinstance(column, Real):
        edges = np.linspace(column.low, column.high, n_leaves + 1)
    elif isinstance(column, (sp.Category, sp.Boolean)):
        edges = np.arange(1.0 + (len(column.values) if isinstance(column, sp.Category) else 2))
    else:
        low, high = whole_range(column)
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
    first = whole_range(column)[0] if not isinstance(column, (sp.Category, sp.Boolean)) else 0
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
    ((pair, possible),) = possible_states([sp.AtMost("small", "large")], schema, models, {})
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
    ((pair, possible),) = possible_states([rule], schema, models, parted([rule], schema))
    assert pair == (0, 1)
    if is_turned:
        possible = possible.T
    says = [False, True, False, True, False] if values else [False, False, False, False, True]
    *numbers, null = possible
    assert null.tolist() == says
    assert all(row.tolist() == [not said for said in says] for row in numbers)


def parted(rules, schema):
    """How rules part the columns."""
    axes = {name: column_axis(name, column) for name, column in schema.items()}
    return partings(clauses_of(rules, schema), schema, axes)


def test_values_that_say_so_are_told_apart():
    """Those of each rule from all others, and null from everything without being asked."""
    schema = {"a": sp.Real(0, 1, nullable=True), "b": sp.Boolean(nullable=True), "c": sp.Category([5, 6, 7, 8])}
    found = parted([sp.EmptyWhen("a", "c", [7, 5]), sp.EmptyWhen("b", "c", [6])], schema)
    five, six, seven, eight = found["c"].labels_of(np.arange(4))
    assert five == seven != six != eight != five
    assert all(found[name].n_labels == 1 for name in "ab")
    assert parted([sp.EmptyWhen("a", "b")], schema)["b"].n_labels == 1


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
    "far numbers": (
        sp.Integer(10**18, 10**18 + 100),
        sp.Integer(10**18 - 50, 10**18 + 60, nullable=True),
        sp.Integer(10**18 - 10, 10**18 + 70),
    ),
    "wide numbers": (sp.Integer(-(2**60), 2**61), sp.Integer(-(2**61), 2**61 - 5), sp.Integer(1 - 2**61, 2**61 - 3)),
    "wide numbers and reals": (sp.Integer(-(2**60), 2**61), sp.Real(-1e300, 1e18), sp.Integer(-(2**61), 2**61 - 3)),
    "reals and their multiples": (sp.Real(0, 5), sp.Real(0, 5, multiple_of=0.1), sp.Real(0, 6, nullable=True)),
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
    """Rows as a table shows them, as exact physical numbers by column, NaN for null."""
    table = to_frame(np.stack([places[name] for name in schema]), sp.Schema(schema), "pyarrow")
    found = {}
    for name, column in schema.items():
        values = table[name].to_pylist()
        numbers = [np.nan if value is None else column.physical(value) for value in values]
        found[name] = np.array(numbers, dtype=object)
    return found


def holds(rule, rows):
    """Whether a rule of AtMost holds in each row, without rounding."""
    pairs = zip(rows[rule.column], rows[rule.other], strict=True)
    return np.array([a != a or b != b or a <= b for a, b in pairs])


def same(rows, others):
    return [str(number) for number in rows] == [str(number) for number in others]


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("columns", KINDS.values(), ids=KINDS)
def test_rows_obey_at_most(columns, rules):
    """Columns cut to what is within reach, then dealt out again: as a table shows them, all rows obey."""
    assert sum(n_broken(columns, rules, seed) for seed in range(4)) > 100  # otherwise nothing was tried


def n_broken(columns, rules, seed):
    """How many rows broke a rule before they were made to obey."""
    rng = np.random.default_rng(seed)
    schema = dict(zip("abc", columns, strict=True))
    sp.Schema(schema, rules=rules)  # such rules can be obeyed
    models = {name: model_of(column, int(rng.integers(2, 9)), rng) for name, column in schema.items()}
    for name, (column, cut, left) in feasible(rules, schema, models).items():
        assert (left > 0).any()
        schema[name], models[name] = column, cut
        models[f"{name} left"] = left
    n = 600
    states, places = {}, {}
    for name in schema:
        held = np.flatnonzero(models.get(f"{name} left", np.ones(models[name].n_states)) > 0)
        states[name] = rng.choice(held, n).astype(np.int32)
        places[name] = models[name].draw(states[name], rng)
    before = {name: values.copy() for name, values in places.items()}
    broken = ~np.all([holds(rule, physical(before, schema)) for rule in rules], axis=0)
    resample_above(places, states, rules, schema, models, rng)
    rows = physical(places, schema)
    for rule in rules:
        assert holds(rule, rows).all()
    for name in schema:
        assert np.array_equal(np.isnan(places[name]), np.isnan(before[name]))
    # The smallest of all is dealt out, and never drawn anew: every state keeps its values.
    smallest = physical(before, schema)["a"]
    for state in np.unique(states["a"]):
        of_state = states["a"] == state
        assert same(sorted(rows["a"][of_state], key=str), sorted(smallest[of_state], key=str))
    return int(broken.sum())


def two_columns(n, seed):
    """Two columns that always lie in the same quarter: half of the rows break a rule that no two quarters break."""
    rng = np.random.default_rng(seed)
    leaves = ColumnModel(
        np.arange(4) * 25.0,
        np.full(4, 25.0),
        np.zeros(4, dtype=np.bool_),
        np.ones(4),
        np.arange(4, dtype=np.int32),
        4,
    )
    schema, models = dict.fromkeys("ab", sp.Integer(0, 99)), dict.fromkeys("ab", leaves)
    states = dict.fromkeys("ab", rng.integers(0, 4, n).astype(np.int32))
    return schema, models, states, {name: np.floor(leaves.draw(states[name], rng)) for name in "ab"}


def test_states_keep_the_values_that_were_drawn_for_them():
    """Where half of the rows break a rule inside their state, both columns hold what they held, but for few rows."""
    schema, models, states, places = two_columns(20_000, seed=1)
    before = {name: values.copy() for name, values in places.items()}
    resample_above(places, states, [sp.AtMost("a", "b")], schema, models, np.random.default_rng(2))
    assert (places["a"] <= places["b"]).all()
    assert (before["a"] > before["b"]).mean() > 0.45
    moved = {
        name: np.abs(np.bincount(places[name].astype(int), minlength=100) - np.bincount(before[name].astype(int))).sum()
        for name in "ab"
    }
    assert moved["a"] == 0
    assert moved["b"] < 0.01 * 20_000  # drawn anew, it was a quarter of the rows
    again = {name: values.copy() for name, values in before.items()}
    resample_above(again, states, [sp.AtMost("a", "b")], schema, models, np.random.default_rng(2))
    assert all(np.array_equal(again[name], places[name]) for name in "ab")


def test_all_ways_to_deal_are_equally_likely():
    """Of three values and three rows that need 0, 0 and 2, those that need nothing get the others in either order."""
    found = {}
    for seed in range(400):
        places = np.array([5.0, 1.0, 0.0])
        rng = np.random.default_rng(seed)
        assert deal_above(places, np.array([-np.inf, 0.0, 1.0]), np.zeros(3, np.int32), rng) == 1
        found[tuple(places)] = found.get(tuple(places), 0) + 1
    assert set(found) == {(5, 0, 1), (0, 5, 1), (1, 0, 5), (0, 1, 5)}
    assert min(found.values()) > 70


def test_rows_without_a_value_share_what_is_left():
    """Nothing is high enough for two rows; the third has all that it needs, and no value is lost."""
    places = np.array([1.0, 2.0, 3.0, np.nan])
    deal_above(places, np.array([9.0, 3.0, 7.0, -np.inf]), np.zeros(4, np.int32), np.random.default_rng(0))
    assert places[1] == 3
    assert sorted(places[[0, 2]].tolist()) == [1, 2]
    assert np.isnan(places[3])


def test_a_value_drawn_anew_comes_from_its_own_state():
    """Above the smaller value by the state's weights; where the state ends below, it is the smaller value itself."""
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
        resample_above(places, states, rules, schema, {"a": b, "b": b}, np.random.default_rng(0))
        return places["b"]

    own = raised(5, 0)
    assert (own >= 5).all()
    assert (own < 10).all()
    assert set(np.floor(own)) == {5, 6, 7, 8, 9}
    above = raised(15, 1)
    assert (above >= 15).all()
    assert abs((above >= 20).mean() - 3 / 3.5) < 0.03
    assert set(np.floor(raised(15, 0))) == {15}
    assert set(np.floor(raised(27, 1))) == {27}


def test_within_reach_is_the_range_that_rules_leave():
    """A start above every end goes, an end below every start goes, nulls stay."""
    schema = {"start": sp.Integer(0, 100), "end": sp.Integer(-20, 50, nullable=True)}
    models = {name: model_of(column, 10, np.random.default_rng(1)) for name, column in schema.items()}
    cut = feasible([sp.AtMost("start", "end")], schema, models)
    assert set(cut) == {"start", "end"}
    column, start, left = cut["start"]
    assert (column.low, column.high) == (0, 50)
    assert ((start.low + start.length)[start.length > 0] <= 51).all()
    assert left[-1] == 0
    assert left[0] == 1
    column, end, left = cut["end"]
    assert (column.low, column.high) == (0, 50)
    assert end.length[~end.is_null].sum() == 51
    assert left[-1] == 1
    assert end.weights[end.is_null] == models["end"].weights[models["end"].is_null]
    assert feasible([sp.EmptyWhen("end", "start")], schema, models) == {}


def cut_to(schema, where, **options):
    """What is within reach of columns a, b and c in a chain, some of them under conditions."""
    rng = np.random.default_rng(0)
    models = {name: model_of(column, 6, rng) for name, column in schema.items()}
    models = {name: model.weighing(np.ones(len(model.states))) for name, model in models.items()}
    near = dict(schema)
    for name, wanted in where.items():
        near[name], models[name], _ = condition(name, schema[name], models[name], wanted)
    return feasible(RULES["chain"], near, models, asked=where, **options)


def test_a_condition_is_an_end_for_the_others():
    """What is asked of the largest ends the smaller ones, what is asked of the smallest begins the larger ones."""
    schema = {name: sp.Integer(0, 99) for name in "abc"}
    ends = {name: (cut.column.low, cut.column.high) for name, cut in cut_to(schema, {"c": (20, 30)}).items()}
    assert ends == {"a": (0, 30), "b": (0, 30), "c": (20, 30)}
    ends = {name: (cut.column.low, cut.column.high) for name, cut in cut_to(schema, {"a": 40}).items()}
    assert ends == {"a": (40, 40), "b": (40, 99), "c": (40, 99)}


def test_lists_end_at_their_values():
    """Of the middle only 10 is left below 45, so nothing smaller may lie above 10."""
    schema = {name: sp.Integer(0, 99) for name in "abc"}
    cuts = cut_to(schema, {"b": [10, 50], "c": (0, 45)})
    ends = {name: (cut.column.low, cut.column.high) for name, cut in cuts.items()}
    assert ends == {"a": (0, 10), "b": (10, 10), "c": (10, 45)}


def test_a_middle_that_has_to_be_null():
    """With nothing between 50 and 10 the middle is null, or no row obeys; a null one says nothing of the others."""
    schema = {"a": sp.Integer(0, 99), "b": sp.Integer(0, 99, nullable=True), "c": sp.Integer(0, 99)}
    cuts = cut_to(schema, {"a": 50, "c": (0, 10)})
    assert set(cuts) == {"b"}
    assert (cuts["b"].left > 0).tolist() == [False] * (len(cuts["b"].left) - 1) + [True]
    assert cut_to(schema, {"a": 50, "b": None, "c": (0, 10)}, nulls=["b"]) == {}
    with pytest.raises(ParameterError, match="obey the rules"):
        cut_to(schema | {"b": sp.Integer(0, 99)}, {"a": 50, "c": (0, 10)})
