"""Persons with rows in two tables, replayed on neighbours: all of them together move what one person may."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.counting.states import WeightedRows
from spinney.people import columns as alike
from spinney.people import columns as derived
from spinney.people import design, grow, rounds
from spinney.people import grow as synthetic
from spinney.synthesizers import linked
from support.replay import coins_by_person, compare, failures

N_PERSONS = 400
PERSONS = sp.Schema(
    {"id": sp.Identifier(), "region": sp.Category(["west", "east"]), "age": sp.Real(0, 100), "churn": sp.Boolean()}
)
ROWS = {
    "who": sp.Identifier(),
    "day": sp.Integer(0, 364),
    "kind": sp.Category(["a", "b", "c"]),
    "amount": sp.Real(0, 200),
}
VISITS = {"who": sp.Identifier(), "minutes": sp.Real(0, 60), "by": sp.Category(["u", "v"], nullable=True)}

# What the last person may be: their columns, then their rows (day, kind, amount), then their visits (minutes, by).
MANY = ("east", 99.0, True), [(5 * k % 365, "abc"[k % 3], 3.0 * k) for k in range(40)], [(59.0, None)] * 7
NONE = ("west", 0.5, False), [], []
ALIKE = ("west", 50.0, True), [(7, "c", 199.5)] * 30, [(0.0, "u")] * 2
ONE = ("east", 20.0, False), [(364, "a", 0.0)], [(60.0, "v")]

LINKED = {
    "linked": {"order": "day"},
    "in no order": {"order": None},
    "a panel": {"order": "day", "steps": True, "differences": ["amount"]},
    "with roles": {"order": "day", "role": "kind"},
    "with rules over positions": {"order": "day", "steps": True, "rules": [sp.NeverAfter("kind", ["c"])]},
}
# A person's units divided by this many rows would round up.
MOST = 22
UNIT = pytest.mark.parametrize("unit", ["replace-one", "add-remove"])


@pytest.fixture(autouse=True)
def _few_synthetic_rows(monkeypatch):
    """Fields are fitted by few rows and in few steps: what mechanisms are asked is the same kind of question."""
    monkeypatch.setattr(design, "_PERSONS_FOR_LEVELS", 1.0)  # levels for as few persons as there are here
    monkeypatch.setattr(synthetic, "_N_FITTED", 600)
    monkeypatch.setattr(synthetic, "_MOST_PERSONS", 400)
    monkeypatch.setattr(rounds, "_STEPS", 5)
    monkeypatch.setattr(rounds, "_LAST_STEPS", 5)


def tables(*lasts):
    """Tables in which persons' rows are alike and follow each other; the last person is as it is said, or missing."""
    rng = np.random.default_rng(0)
    n_rows, n_visits = 1 + rng.poisson(2, N_PERSONS), rng.poisson(1, N_PERSONS)
    who, visitor = np.repeat(np.arange(N_PERSONS), n_rows), np.repeat(np.arange(N_PERSONS), n_visits)
    taste, region = rng.integers(0, 3, N_PERSONS), rng.integers(0, 2, N_PERSONS)
    kind = np.where(rng.random(len(who)) < 0.8, taste[who], rng.integers(0, 3, len(who)))
    persons = [
        (("west", "east")[r], a, bool(c))
        for r, a, c in zip(region, rng.normal(40 + 20 * region, 9).clip(0, 99), taste > 1, strict=True)
    ]
    rows = [
        (int(w), int(d), "abc"[k], float(a))
        for w, d, k, a in zip(
            who,
            rng.integers(0, 365, len(who)),
            kind,
            (10 * taste[who] + rng.gamma(2, 9, len(who))).round(),
            strict=True,
        )
    ]
    visits = [
        (int(w), float(m), b)
        for w, m, b in zip(visitor, rng.random(len(visitor)) * 60, ["u"] * len(visitor), strict=False)
    ]
    for number, (of_person, of_rows, of_visits) in enumerate(lasts, start=N_PERSONS):
        persons.append(of_person)
        rows += [(number, *row) for row in of_rows]
        visits += [(number, *row) for row in of_visits]
    return {
        "people": _table(
            {"id": None, "region": pa.string(), "age": pa.float64(), "churn": pa.bool_()}, enumerate(persons)
        ),
        "rows": _table({"who": pa.int64(), "day": pa.int64(), "kind": pa.string(), "amount": pa.float64()}, rows),
        "visits": _table({"who": pa.int64(), "minutes": pa.float64(), "by": pa.string()}, visits),
    }


def _table(types, rows):
    lines = [(row[0], *row[1]) if isinstance(row[1], tuple) else row for row in rows]
    return pa.table(
        {name: pa.array([row[place] for row in lines], of) for place, (name, of) in enumerate(types.items())}
    )


def fitting(unit, *, target=None, rules=(), **options):
    """A fit of two tables of rows, that of visits always in no order."""
    stated = sp.Tables(
        {"people": PERSONS, "rows": sp.Schema(ROWS, rules=list(rules)), "visits": sp.Schema(VISITS)},
        links=[
            sp.Link("rows.who", "people.id", most=MOST, **options),
            sp.Link("visits.who", "people.id", most=3),
        ],
    )

    def fit(frames):
        with coins_by_person():
            model = sp.LinkedSynthesizer(8, "1e-5", unit=unit, assumed_persons=N_PERSONS, target=target)
            return model.fit(frames, stated, entropy=sp.UnsafeSeededEntropy(3))

    return fit


def neighbours(unit, *others):
    """A table and its neighbours: the last person is another one, or is not there and comes."""
    if unit == "replace-one":
        return [tables(person) for person in (MANY, *others)]
    return [tables(), *(tables(person) for person in (MANY, *others))]


def tightest(moves):
    found = {}
    for move in moves:
        found[move.stage] = max(found.get(move.stage, 0.0), move.tightness)
    return found


ROW_STAGES = {"row trees", "row one-way", "row spikes", "alikeness", "row selection", "row tables"}


@UNIT
@pytest.mark.parametrize("options", LINKED.values(), ids=LINKED)
def test_questions_about_persons_move_by_what_was_paid_for(options, unit):
    """In order or not, panels, roles: a person with many rows, with rows that are all alike, or without any."""
    moves = list(compare(fitting(unit, **options), *neighbours(unit, ALIKE, NONE)))
    assert failures(moves) == []
    found = tightest(moves)
    assert ROW_STAGES | {"one-way", "trees", "pairs"} <= set(found)
    # A smaller bound on units would fail: some person is all in one cell, and another one in another.
    assert found["row one-way"] > 0.999
    assert found["row tables"] > 0.999
    assert found["row trees"] == 1


@UNIT
def test_a_target_of_persons(unit):
    """Columns counted with a target, and with numbers of rows as stars, are tables of persons."""
    moves = list(compare(fitting(unit, order="day", target="people.churn"), *neighbours(unit, ALIKE)))
    assert failures(moves) == []
    assert tightest(moves)["pairs"] == 1


def test_hidden_levels_are_among_what_is_replayed():
    """Persons of these tables get levels, drawn from their rows."""
    made = fitting("replace-one", order="day")(tables(MANY)).release_.persons.schema
    assert {"rows.#", "visits.#", "rows.~kind", "rows.~amount"} <= set(made)


# ------------------------------------------------------------------------------------------------ sabotage


def cells_that_share_rows():
    """Tables whose cells count a row twice."""
    original = WeightedRows.true_table

    def shared(self, lines, sizes):
        table = original(self, lines, sizes)
        return table + np.roll(table, 1)

    return mock.patch.object(WeightedRows, "true_table", shared)


def alikeness_of_all_pairs():
    """Products of all pairs of rows, where a person with many has many."""

    def every(states, starts, rng):
        del rng
        found = [(i, j) for begin, end in pairwise(starts.tolist()) for i in range(begin, end) for j in range(begin, i)]
        first, second = np.array(found).T
        return alike.Compared(states[:, first], states[:, second])

    return mock.patch.object(grow, "two_rows", every)


def levels_by_the_true_law():
    """Levels drawn by the shares of states among private rows."""
    original = grow.draw_levels

    def true_law(states, starts, law, correlation, rng):
        shares = np.bincount(states, minlength=len(law.shares)) ** 2.0
        shares /= max(shares.sum(), 1)
        return original(states, starts, alike.ColumnLaw(shares, law.is_ordered), correlation, rng)

    return mock.patch.object(grow, "draw_levels", true_law)


@contextmanager
def the_number_of_rows_on_the_card():
    """A card that tells how many rows there are."""
    original = linked.LinkedSynthesizer._released

    def told(self, gathered, *args):
        release = original(self, gathered, *args)
        release.card = replace(
            release.card, design={**release.card.design, "rows": sum(map(len, (r.table for r in gathered.rows)))}
        )
        return release

    with mock.patch.object(linked.LinkedSynthesizer, "_released", told):
        yield


def counts_that_are_not_cut():
    """Numbers of rows of a person that are ranks among all persons."""
    original = derived.held_rows

    def ranked(gathered, rows):
        held, made = original(gathered, rows)
        ranks = np.searchsorted(np.sort(np.diff(gathered.starts)), np.diff(gathered.starts)) % (rows.most + 1)
        return held, made | {name: pa.array(ranks) for name in made if name.endswith("#")}

    return mock.patch.object(grow, "held_rows", ranked)


ZOO = {
    "cells that share rows": (cells_that_share_rows, "row one-way"),
    "alikeness of all pairs of rows": (alikeness_of_all_pairs, "alikeness"),
    "levels by the true law": (levels_by_the_true_law, "pairs"),
    "the number of rows on the card": (the_number_of_rows_on_the_card, None),
    "ranks among persons": (counts_that_are_not_cut, "one-way"),
}


@pytest.mark.parametrize(("sabotage", "stage"), ZOO.values(), ids=ZOO)
def test_sabotage_is_caught(sabotage, stage):
    """By the stage that it spoils, or by a release that differs though all mechanisms answered the same."""
    found = set()
    for unit, table, neighbour in (
        ("add-remove", tables(MANY), tables()),
        ("replace-one", tables(MANY, ONE, ONE), tables(NONE, ONE, ONE)),
    ):
        with sabotage():
            try:
                found |= {move.stage for move in failures(compare(fitting(unit, order="day"), table, neighbour))}
            except AssertionError:
                found.add(None)
        if stage in found:
            return
    assert stage in found
