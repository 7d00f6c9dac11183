"""Fits of persons replayed on neighbouring tables: mechanisms are asked no more than one person apart.

The person who differs comes last; coins of all others are the same. Persons have few rows, many, more than are kept,
or none.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.counting import states as weighted
from spinney.people import (
    columns,
    grow,
    rounds,
)
from spinney.people import (
    columns as alike,
)
from spinney.people import (
    columns as derived,
)
from spinney.people import (
    columns as levels,
)
from spinney.people import (
    grow as synthetic,
)
from spinney.people.release import rows as evidence
from support.replay import coins_by_person, compare, held_in_file

N_PERSONS = 700
MOST = 6
CUSTOMERS = sp.Schema(
    {"id": sp.Identifier(), "region": sp.Category(["n", "s", "w"]), "age": sp.Integer(0, 99), "loyal": sp.Boolean()}
)
COLUMNS = {
    "customer": sp.Identifier(),
    "day": sp.Integer(0, 364),
    "amount": sp.Real(0, 100),
    "kind": sp.Category(["a", "b", "c"], nullable=True),
}
TABLES = sp.Tables(
    {"customers": CUSTOMERS, "orders": sp.Schema(COLUMNS)},
    links=[sp.Link("orders.customer", "customers.id", most=MOST, order="day")],
)
FLAT = sp.Schema(COLUMNS, person="customer", most_rows=MOST)
PANELS = {
    "steps": sp.Schema(COLUMNS, person="customer", most_rows=MOST, order="day", steps=True),
    "roles and differences": sp.Schema(
        {**COLUMNS, "kind": sp.Category(["a", "b", "c"])},
        person="customer",
        most_rows=MOST,
        order="day",
        role="kind",
        differences=["amount"],
    ),
}

# Rows of the last person: day, amount, kind.
LAST = [(3, 10.0, "a"), (20, 12.5, "a")]
OTHERS = {
    "many rows": [(day, 99.5, "c") for day in range(300, 300 + MOST)],
    "no rows": [],
    "one row": [(364, 100.0, None)],
    "more rows than are kept": [(day, 0.0, "b") for day in range(0, 40, 2)],
}


def people(rows, *, is_last_there=True, is_flat):
    """Persons whose rows are alike; the last one has the given rows, or is not there."""
    rng = np.random.default_rng(5)
    n_rows = rng.integers(1 if is_flat else 0, 9, N_PERSONS)
    owner = np.repeat(np.arange(N_PERSONS), n_rows)
    taste = rng.integers(0, 3, N_PERSONS)
    kind = np.where(rng.random(len(owner)) < 0.7, taste[owner], rng.integers(0, 3, len(owner)))
    drawn = {
        "customer": [f"c{number}" for number in owner.tolist()],
        "day": rng.integers(0, 365, len(owner)).tolist(),
        "amount": np.clip(20 * taste[owner] + rng.gamma(2, 5, len(owner)), 0, 100).round(1).tolist(),
        "kind": ["abc"[value] for value in kind.tolist()],
    }
    if is_last_there:
        for day, amount, value in rows:
            for name, cell in zip(drawn, ("last", day, amount, value), strict=True):
                drawn[name].append(cell)
    types = {"customer": pa.string(), "day": pa.int64(), "amount": pa.float64(), "kind": pa.string()}
    orders = pa.table({name: pa.array(values, types[name]) for name, values in drawn.items()})
    if is_flat:
        return orders
    persons = {
        "id": [f"c{number}" for number in range(N_PERSONS)],
        "region": ["nsw"[value] for value in taste.tolist()],
        "age": rng.integers(18, 90, N_PERSONS).tolist(),
        "loyal": (taste > 0).tolist(),
    }
    if is_last_there:
        # Another person altogether, wherever the rows are not those of the first table.
        cells = ("last", "n", 18, False) if rows == LAST else ("last", "w", 99, True)
        persons = {name: [*values, cell] for (name, values), cell in zip(persons.items(), cells, strict=True)}
    return {"customers": pa.table(persons), "orders": orders}


def fitting(shape, unit):
    def fit(frames):
        model = sp.LinkedSynthesizer(20, "1e-5", unit=unit, assumed_persons=N_PERSONS)
        with coins_by_person():
            model.fit(frames, shape, entropy=sp.UnsafeSeededEntropy(3))
        if not any("~" in name for name in model.card_.schema):
            raise RuntimeError("no level was drawn, so nothing of levels would be replayed")
        return model

    return fit


def contents(model):
    """What a file holds, and what is drawn."""
    drawn = model.sample(seed=1)
    frames = drawn if isinstance(drawn, dict) else {"": drawn}
    return held_in_file(model), {name: frame.to_pylist() for name, frame in frames.items()}


def neighbours(unit, *, is_flat):
    """One pair of tables and more: the first has a last person, or none where one is added."""
    others = [people(rows, is_flat=is_flat) for rows in OTHERS.values() if rows or not is_flat]
    return people(LAST, is_last_there=unit == "replace-one", is_flat=is_flat), *others


@pytest.mark.parametrize(
    ("is_flat", "unit"),
    [
        pytest.param(False, "replace-one", id="linked-replace-one"),
        pytest.param(True, "add-remove", id="flat-add-remove"),
        pytest.param(False, "add-remove", id="linked-add-remove", marks=pytest.mark.long),
        pytest.param(True, "replace-one", id="flat-replace-one", marks=pytest.mark.long),
    ],
)
def test_questions_move_by_one_person(is_flat, unit):
    """Tables in units, trees, choices, alikeness and all of the persons' own table: one person, with all their rows."""
    tightest = {}
    fit = fitting(FLAT if is_flat else TABLES, unit)
    for move in compare(fit, *neighbours(unit, is_flat=is_flat), contents=contents):
        assert move.is_within, move
        tightest[move.stage] = max(tightest.get(move.stage, 0.0), move.tightness)
    assert {"row trees", "row one-way", "row spikes", "alikeness", "row selection", "row tables"} <= set(tightest)
    assert tightest["one-way"] == tightest["row trees"] == 1
    assert min(tightest["row one-way"], tightest["row tables"]) > 0.9  # a smaller bound fails


@pytest.mark.parametrize("unit", ["replace-one", pytest.param("add-remove", marks=pytest.mark.long)])
@pytest.mark.parametrize("schema", PANELS.values(), ids=PANELS)
def test_columns_made_of_rows_move_by_one_person(schema, unit):
    """First values, steps, differences to the first row and roles are a person's own."""
    first, *others = neighbours(unit, is_flat=True)
    if not schema["kind"].nullable:
        others = [other for other in others if not other["kind"].null_count]
    stages = set()
    for move in compare(fitting(schema, unit), first, *others, contents=contents):
        assert move.is_within, move
        stages.add(move.stage)
    assert {"row trees", "row tables", "alikeness"} <= stages


def renamed(frames, name_of):
    """The same tables with other keys."""

    def column(table, name):
        keys = pa.array([name_of(key) for key in table[name].to_pylist()])
        return table.set_column(table.schema.get_field_index(name), name, keys)

    if isinstance(frames, dict):
        return {"customers": column(frames["customers"], "id"), "orders": column(frames["orders"], "customer")}
    return column(frames, "customer")


@pytest.mark.parametrize("is_flat", [False, True], ids=["linked", "flat"])
def test_keys_are_told_apart_and_nothing_else(is_flat):
    """Other keys, in another order, of another length or type: no question moves, and the release is the same."""
    frames = people(LAST, is_flat=is_flat)
    numbers = {key: 10**12 - 7 * place for place, key in enumerate(keys_of(frames))}
    names = [numbers.__getitem__, lambda key: f"{'x' * (numbers[key] % 5)}{numbers[key]}"]
    fit = fitting(FLAT if is_flat else TABLES, "replace-one")
    moves = list(compare(fit, frames, *(renamed(frames, name_of) for name_of in names), contents=contents))
    assert moves
    assert all(move.is_within and max(move.moved) == 0 for move in moves)


def keys_of(frames):
    table, name = (frames["customers"], "id") if isinstance(frames, dict) else (frames, "customer")
    return dict.fromkeys(table[name].to_pylist())


def test_coins_and_public_draws_do_not_share_a_generator():
    """How many coins are used depends on private rows, and so would public draws that come after them."""
    seen = {"coins": set(), "public": set()}

    def watched(name, what):
        room = grow if what == "coins" else synthetic
        original = getattr(room, name)

        def call(*args, **options):
            given = [*args, *options.values()]
            seen[what].update(id(value) for value in given if isinstance(value, np.random.Generator))
            return original(*args, **options)

        return mock.patch.object(room, name, call)

    watches = [("two_rows", "coins"), ("draw_levels", "coins"), ("draw_states", "public"), ("draw_rows", "public")]
    with ExitStack() as stack:
        for name, what in watches:
            stack.enter_context(watched(name, what))
        fitting(TABLES, "replace-one")(people(LAST, is_flat=False))
    assert len(seen["coins"]) == len(seen["public"]) == 1
    assert seen["coins"].isdisjoint(seen["public"])


# ------------------------------------------------------------------------------------------------ sabotage


def _weights(rule):
    """Weighted rows whose units follow another rule."""
    original = weighted.WeightedRows.__init__

    def init(self, starts, units):
        original(self, starts, units)
        self.true_units = np.repeat(rule(np.diff(starts), units), np.diff(starts)).astype(np.int64)

    return mock.patch.object(weighted.WeightedRows, "__init__", init)


def weights_forgotten():
    return _weights(lambda n_rows, units: np.full(len(n_rows), units))


def weights_to_the_nearest():
    return _weights(lambda n_rows, units: np.ceil(units / np.maximum(n_rows, 1)))


def weights_by_the_most_of_all():
    """Every row counts as one of the person's with the most rows: told by others."""
    return _weights(lambda n_rows, units: np.full(len(n_rows), 3 * units // max(n_rows.max() + n_rows[-1], 1)))


def before_across_persons():
    """The row before a person's first is the last of the person before."""
    original = evidence.row_evidence

    def across(asked, persons, own, person, starts):
        found = original(asked, persons, own, person, starts)
        if asked.kind == "before":
            found[:] = np.roll(own[asked.number], 1)
        return found

    return mock.patch("spinney.people.rounds.row_evidence", across)


def trees_on_all_rows():
    """Trees grown on all rows, a person's as often as they have them."""
    original = derived.held_rows

    def held(gathered, rows):
        found, made = original(gathered, rows)
        return derived.HeldRows(found.source, found.starts, found.source), made

    return mock.patch.object(grow, "held_rows", held)


def alikeness_said_to_move_less():
    told = alike.sensitivity_squared
    return mock.patch.object(alike, "sensitivity_squared", lambda *of: told(*of) // 64)


def scores_said_to_move_less():
    return mock.patch.object(rounds, "UNITS", rounds.UNITS // 16)


def levels_by_ranks_among_persons():
    """The level of a number is the person's rank among all, by the mean of their rows."""
    original = grow.draw_levels

    def by_rank(states, starts, law, correlation, rng):
        drawn = original(states, starts, law, correlation, rng)
        if not law.is_ordered:
            return drawn
        sums = np.add.reduceat(np.append(states.astype(float), 0.0), starts[:-1])
        n_rows = np.diff(starts)
        means = np.where(n_rows > 0, sums / np.maximum(n_rows, 1), 0.0)
        ranks = np.argsort(np.argsort(means, kind="stable"), kind="stable")
        return ranks * levels.N_BINS // len(means)

    return mock.patch.object(grow, "draw_levels", by_rank)


@contextmanager
def a_total_of_rows():
    """Fields are fitted to the true number of units of all rows."""
    original = columns.persons_with_rows
    held = []

    def remember(self, starts, units):
        init(self, starts, units)
        held.append(float(self.true_units.sum()))

    init = weighted.WeightedRows.__init__
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(weighted.WeightedRows, "__init__", remember))
        stack.enter_context(mock.patch.object(grow, "persons_with_rows", lambda noisy: original(noisy) * 0 + held[-1]))
        yield


SABOTAGES = [
    weights_forgotten,
    weights_to_the_nearest,
    weights_by_the_most_of_all,
    before_across_persons,
    trees_on_all_rows,
    alikeness_said_to_move_less,
    scores_said_to_move_less,
    levels_by_ranks_among_persons,
    a_total_of_rows,
]


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda sabotage: sabotage.__name__)
def test_sabotage_is_caught(sabotage):
    """A question that moves too far, or a release that is not the same: some neighbour shows each mistake."""
    fit = fitting(TABLES, "replace-one")
    with sabotage():
        try:
            moves = compare(fit, *neighbours("replace-one", is_flat=False), contents=contents)
            assert all(move.is_within for move in moves)
        except AssertionError:
            return
    pytest.fail("nothing was noticed")
