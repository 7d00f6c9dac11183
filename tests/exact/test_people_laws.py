"""What the code of persons' rows asks of its mechanisms, for all person-level neighbours on small databases.

`test_person_laws.py` writes the laws out from the mathematics. Here the sums, scores and vectors come from the code
itself, with a person of a few units, and their laws are compared with what is charged: tables of rows given the person,
the place, the row before and the first row; choices; alikeness; and one after the other with a tree and coins.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.counting.states import WeightedRows
from spinney.graph.crf_inference import FieldClique
from spinney.grid.axes import column_axes
from spinney.people import columns as alike
from spinney.people.columns import draw_levels, held_rows
from spinney.people.release.rows import Layout, places, row_evidence
from spinney.people.rounds import RowTables, true_scores
from spinney.privacy.composition import composed_deltas
from spinney.privacy.mechanisms import (
    GaussianVector,
    Selections,
    TreeShapes,
    WeightedTables,
    units_variance,
    vector_variance,
)
from spinney.schema.linked import PeopleShape
from spinney.tables.persons import GatheredRows
from support.gaussian_pairs import largest_deltas, vector_pair
from support.person_laws import (
    EPSILONS,
    UNITS_OF_PERSONS,
    choice_law,
    mixed,
    neighbours,
    noisy,
    one_row,
    records,
    shape_law,
    worst_deltas,
)

BOTH = pytest.mark.parametrize("unit", UNITS_OF_PERSONS, ids=str)
ROUND_OFF = 1e-12
MEAN = Fraction(1)
UNITS = 5
# Between two others, so that whoever comes before or after a person's rows is seen.
BESIDES = [((), ()), (((1, 2),), ((3,),)), (((0,),), ((0, 3, 3), ()))]


def databases(unit, of):
    """Pairs of databases that differ in one person, who has persons before and after."""
    for before, after in BESIDES:
        for one, other in neighbours(of, unit, [()]):
            yield (*before, *one, *after), (*before, *other, *after)


def charged(parts, unit):
    return composed_deltas(parts, EPSILONS, unit)


class Scripted:
    """Coins that are said beforehand, call after call."""

    def __init__(self, *calls):
        self._calls = list(calls)

    def random(self, n):
        drawn = np.array(self._calls.pop(0))
        assert len(drawn) == n
        return drawn


# ------------------------------------------------------------------------------------------------ tables of rows


@cache
def row_tables(database, role=None):
    """The code's tables: a row is two bits; a person has their number of rows, and a level by fixed coins."""
    rows = np.array([row for record in database for row in record], dtype=np.uint8)
    starts = np.cumsum([0, *map(len, database)])
    own = np.stack([rows // 2, rows % 2])
    law = alike.ColumnLaw(np.array([0.4, 0.6]), is_ordered=False)
    levels = draw_levels(own[0], starts, law, 0.5, Scripted([(0.3 + 0.4 * sum(record)) % 1 for record in database]))
    persons = np.stack([np.minimum(np.diff(starts), 2), levels])
    seen = Layout((3, 2), (2, 2), (True, True), (role is not None,) * 2)
    return RowTables(persons, own, starts, WeightedRows(starts, UNITS), seen, role=role), seen


def cliques_of(seen, role):
    with_role = () if role is None else (role,)
    own = [column for column in range(2) if column != role]
    found = [FieldClique((), (0, 1))]
    found += [FieldClique((number,), (*with_role, column)) for number in range(len(seen.every)) for column in own]
    return found


@BOTH
@pytest.mark.parametrize("role", [None, 0])
def test_every_table_of_rows_tells_no_more_than_its_part(role, unit):
    """Given the person, the place, the row before or the first row: by exact laws of all moves that a person makes."""
    variance = float(units_variance(MEAN, unit, UNITS))
    moves = set()
    for one, other in databases(unit, records(4, 3, least_rows=0)):
        (tables, seen), (moved, _) = row_tables(one, role), row_tables(other, role)
        for clique in cliques_of(seen, role):
            change = (tables.true_table(clique) - moved.true_table(clique)).ravel()
            assert np.abs(change).sum() <= unit.factor * UNITS
            moves.add(tuple(sorted(abs(step) for step in change.tolist() if step)))
    squares = [sum(step**2 for step in move) for move in moves]
    assert max(squares) == unit.factor * UNITS**2
    allowed = charged([WeightedTables(MEAN, 1, "row tables", stage="row tables")], unit)
    for move in (move for move in moves if 0 < len(move) <= 2):
        assert (largest_deltas(vector_pair(variance, move), EPSILONS) <= allowed + ROUND_OFF).all()


@BOTH
def test_choices_by_the_code_s_scores(unit):
    """Scores of all tables move by factor * units: the law of the choice is within its part, and half of it is not."""
    part = Selections(Fraction(1), 1, "row selection", stage="row selection")
    _, seen = row_tables(((0,),))
    cliques = cliques_of(seen, None)
    expected = [np.full([seen.sizes[n] for n in clique.evidence] + [2] * len(clique.own), 1.3) for clique in cliques]

    def law(sensitivity):
        def of(database):
            scores = true_scores(row_tables(database)[0], cliques, expected, noise_std=2.0, n_sampled=100, role=None)
            return dict(enumerate(map(np.array, choice_law(scores.tolist(), part.epsilon, sensitivity))))

        return of

    pairs = list(databases(unit, records(4, 2, least_rows=0)))
    assert (worst_deltas(law(unit.factor * UNITS), pairs) <= charged([part], unit) + ROUND_OFF).all()
    assert (worst_deltas(law(unit.factor * UNITS // 5), pairs) > charged([part], unit) + 1e-3).any()


def test_scores_hold_whatever_a_field_expects():
    """Infinite and missing expectations are public numbers like others: scores stay whole and far from an overflow."""
    tables, _ = row_tables(((0, 1), (3,)))
    clique = FieldClique((), (0, 1))
    for value in (np.nan, np.inf, -np.inf, 1e300, -1e300):
        (score,) = true_scores(tables, [clique], [np.full((2, 2), value)], noise_std=2.0, n_sampled=100, role=None)
        assert abs(int(score)) < 1 << 61


# ------------------------------------------------------------------------------------------------ alikeness


def compared(record):
    """What two rows of a person the code picks, by coins: chances, and both rows."""
    m = len(record)
    if m < 2:
        return [(1.0, ())]
    states, starts = np.array([record], dtype=np.uint8), np.array([0, m])
    found = []
    for first, second in product(range(m), range(m - 1)):
        coins = Scripted([(first + 0.5) / m], [(second + 0.5) / (m - 1)])
        pair = alike.two_rows(states, starts, coins)
        found.append((1 / (m * (m - 1)), (int(pair.first[0, 0]), int(pair.second[0, 0]))))
    return found


def test_two_different_rows_are_compared():
    """All ordered pairs of different rows, each as likely as the others; persons with one row or none are left out."""
    for m in range(2, 6):
        pairs = [pair for _, pair in compared(tuple(range(m)))]
        assert sorted(pairs) == sorted((i, j) for i, j in product(range(m), repeat=2) if i != j)
    states = np.array([[0, 1, 2, 3]], dtype=np.uint8)
    found = alike.two_rows(states, np.array([0, 1, 1, 3, 4]), np.random.default_rng(0))
    assert {*found.first[0].tolist(), *found.second[0].tolist()} == {1, 2}


@BOTH
@pytest.mark.parametrize("is_ordered", [True, False])
def test_alikeness_of_the_code(is_ordered, unit, monkeypatch):
    """The code's sums, mixed over which two rows are compared, are within their part; a smaller bound is caught."""
    monkeypatch.setattr(alike, "UNITS", 3)
    # States of no share at the ends of a law have places 0 and 1, the furthest that there are.
    laws = [alike.ColumnLaw(np.array([0.0, 1.0, 0.0]), is_ordered)]
    part = GaussianVector(MEAN, "alikeness", stage="alikeness")

    def law(squared):
        variance = vector_variance(MEAN, squared)

        def shown(pairs):
            rows = np.array([pair for pair in pairs if pair], dtype=np.uint8).reshape(-1, 2)
            sums = alike.true_alikeness(alike.Compared(rows[:, :1].T, rows[:, 1:].T), laws)
            return {None: noisy(tuple(sums.tolist()), variance, 40)}

        return lambda database: mixed(database, compared, shown)

    pairs = list(neighbours(records(3, 3), unit, [(), ((0, 2, 2), (1, 1))]))
    squared = alike.sensitivity_squared(1, unit)
    assert (worst_deltas(law(squared), pairs) <= charged([part], unit) + ROUND_OFF).all()
    assert (worst_deltas(law(squared // 4), pairs) > charged([part], unit) + 1e-3).any()


@BOTH
def test_alikeness_of_two_tables_adds_up(unit):
    """All that one person moves in two tables, in squares, is what the vector is told; some person moves nearly all."""
    laws = [alike.ColumnLaw(np.array([0.0, 0.5, 0.5, 0.0]), True), alike.ColumnLaw(np.array([0.5, 0.5]), False)]
    of = [(a, b, c, d) for a, b, c, d in product((0, 3), (0, 3), (0, 1), (0, 1))] + [None]

    def vector(record):
        rows = np.array([record] if record else np.zeros((0, 4)), dtype=np.uint8).reshape(-1, 4)
        pair = alike.Compared(rows[:, [0, 2]].T, rows[:, [1, 3]].T)
        return np.concatenate([alike.true_alikeness(pair, laws)] * 2) // alike.UNITS

    pairs = product(of, of) if unit.n_is_public else ((one, None) for one in of)
    moved = max(int(((vector(one) - vector(other)) ** 2).sum()) for one, other in pairs)
    told = 2 * alike.sensitivity_squared(2, unit) // alike.UNITS**2
    assert 0.5 * told <= moved <= told


# ------------------------------------------------------------------------------------------------ one after the other


SCHEMA = sp.Schema({"who": sp.Identifier(), "x": sp.Integer(0, 1), "y": sp.Integer(0, 1)}, person="who", most_rows=3)
(SHAPE,) = PeopleShape.of(SCHEMA).rows


@cache
def questions(contributions):
    """What is asked about persons whose rows, and one of them, are these: a tree's counts, and tables of both bits."""
    rows = [row for kept, _ in contributions for row in kept]
    starts = np.cumsum([0, *(len(kept) for kept, _ in contributions)])
    one = [
        start + kept.index(row[0]) for start, (kept, row) in zip(starts.tolist(), contributions, strict=False) if row
    ]
    table = pa.table(
        {name: pa.array([row >> bit & 1 for row in rows], pa.int64()) for name, bit in (("x", 1), ("y", 0))}
    )
    held, made = held_rows(GatheredRows(table, starts, np.array(one, dtype=np.int64)), SHAPE)
    assert made["#"].to_pylist() == [len(kept) for kept, _ in contributions]
    axes = list(column_axes(SHAPE.modelled).values())
    counts = next(iter(held.one.count_columns([axes[0].lattice])))
    codes, n_rows = counts.distinct()
    leaves = np.zeros(2, dtype=int)
    leaves[(codes[:, 0] >> np.uint64(63)).astype(int)] = n_rows
    own = np.stack([held.source.table.physical(name).values for name in ("x", "y")]).astype(np.uint8)
    seen = Layout((2,), (2, 2), (True, True), (False, False))
    persons = (held.n_rows > 1).astype(np.uint8)[None]
    return leaves.tolist(), RowTables(persons, own, starts, WeightedRows(starts, 3), seen, role=None), seen


@BOTH
def test_everything_one_after_the_other_by_the_code(unit):
    """A tree on one random row, a choice between two tables of rows, and the table: one mixture over all coins."""
    parts = [
        TreeShapes(Fraction(1, 2), 2, 1, 1, "row trees", stage="row trees"),
        Selections(Fraction(1, 2), 1, "row selection", stage="row selection"),
        WeightedTables(MEAN, 1, "row tables", stage="row tables"),
    ]
    variance = units_variance(MEAN, unit, 3)

    def outcomes(record):
        return [(chance, (record, row)) for chance, row in one_row(record)]

    def shown(contributions):
        leaves, tables, seen = questions(contributions)
        before = next(number for number, one in enumerate(seen.every) if one.kind == "before")
        law = {}
        for shape, chance in shape_law(leaves, rate=Fraction(1, 2), decay=2, cutoff=1, levels=1).items():
            cliques = [FieldClique((), (0, 1)), FieldClique((before,), (1,))]
            expected = [np.full((2, 2), 0.7), np.full((3, 2), 1.0 if shape is None else 0.2)]
            scores = true_scores(tables, cliques, expected, noise_std=1.0, n_sampled=100, role=None)
            for place, picked in enumerate(choice_law(scores.tolist(), Fraction(1, 2), unit.factor * 3)):
                table = tables.true_table(cliques[place])
                boxes = table.sum(axis=1)[:2] if shape is None else np.array([table[0, 0] + table[1, 1], table[0, 1]])
                law[shape, place] = chance * picked * noisy(tuple(boxes.tolist()), variance, 9)
        return law

    pairs = list(neighbours(records(4, 2, least_rows=0), unit, [((0, 3),)]))
    found = worst_deltas(lambda database: mixed(database, outcomes, shown), pairs)
    assert (found <= charged(parts, unit) + ROUND_OFF).all()
    assert found[0] > 0.2


# ------------------------------------------------------------------------------------------------ evidence


def test_no_evidence_crosses_persons():
    """Whatever the others' rows are, a person's evidence is the same: for all records beside two others."""
    seen = Layout((2,), (4, 2), (True, True), (True, True))
    kinds = {one.kind for one in seen.every}
    assert kinds == {"person", "place", "before", "anchor"}

    def evidence(database):
        rows = np.array([row for record in database for row in record], dtype=np.int64)
        starts = np.cumsum([0, *map(len, database)])
        own, person = np.stack([rows, rows % 2]), np.repeat(np.arange(len(database)), np.diff(starts))
        lines = [row_evidence(one, np.zeros((1, len(database)), int), own, person, starts) for one in seen.every]
        return np.stack(lines), starts

    for record in records(4, 3):
        alone, _ = evidence((record,))
        for before, after in BESIDES:
            found, starts = evidence((*before, record, *after))
            assert (found[:, starts[len(before)] : starts[len(before) + 1]] == alone).all()


def test_places_of_rows():
    """The only one, the first, those between, the last."""
    assert places(np.array([0, 1, 1, 3, 7])).tolist() == [0, 1, 3, 1, 2, 2, 3]
    assert [b - a for a, b in pairwise([0, 1, 1, 3, 7])] == [1, 0, 2, 4]
