"""No release of persons' rows tells more than it is charged for: laws written out for all person-level neighbours.

Weighted tables, rows that stay by chance, trees on one random row, choices, alikeness, and all of them one after the
other, in both units. Then the same laws with one mistake in each, which the same comparison must catch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest

from spinney.counting.states import WeightedRows
from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_deltas
from spinney.privacy.mechanisms import (
    GaussianTables,
    GaussianVector,
    Selections,
    TreeShapes,
    WeightedTables,
    units_variance,
    vector_variance,
)
from support.gaussian_pairs import gaussian_deltas, largest_deltas, moved_sums, vector_pair
from support.person_laws import (
    EPSILONS,
    UNITS_OF_PERSONS,
    Database,
    Law,
    Record,
    added,
    choice_law,
    deltas,
    kept_at_random,
    mixed,
    neighbours,
    noisy,
    one_row,
    records,
    shape_law,
    two_rows,
    units_of,
    worst_deltas,
)

BOTH = pytest.mark.parametrize("unit", UNITS_OF_PERSONS, ids=str)
ROUND_OFF = 1e-12
MEAN = Fraction(1)
ROOM = 40


def charged(parts, unit):
    return composed_deltas(parts, EPSILONS, unit)


def tables(times: int = 1, mean_squared: Fraction = MEAN) -> WeightedTables:
    return WeightedTables(mean_squared, times, "row tables", stage="row tables")


# ------------------------------------------------------------------------------------------------ weighted tables


@BOTH
@pytest.mark.parametrize("mean_squared", [Fraction(1, 4), Fraction(1), Fraction(6)], ids=str)
@pytest.mark.parametrize("units", [3, 4, 5, 6])
def test_a_weighted_table_tells_no_more_than_its_part(units, mean_squared, unit):
    """However a person's units are spread over two cells, added, removed or replaced; and less noise tells more."""
    variance = units_variance(mean_squared, unit, units)
    assert variance == unit.factor * units**2 / mean_squared + 4
    pairs = list(neighbours(records(2, 4, least_rows=0), unit, [()]))
    allowed = charged([tables(1, mean_squared)], unit)

    def law(variance):
        return lambda database: {None: noisy(added((units_of(r, units, 2) for r in database), 2), variance, ROOM)}

    assert (worst_deltas(law(variance), pairs) <= allowed + ROUND_OFF).all()
    assert (worst_deltas(law((variance - 4) * Fraction(7, 10)), pairs) > allowed + 1e-3).any()


@BOTH
def test_a_person_spread_over_three_cells(unit):
    """No spread of a person's units is worse than all of them in one cell: moves in all directions, three cells."""
    units, allowed = 4, charged([tables()], unit)
    variance = float(units_variance(MEAN, unit, units))
    contributions = {units_of(record, units, 3) for record in records(3, 4, least_rows=0)}
    moves = {tuple(a - b for a, b in zip(x, y, strict=True)) for x in contributions for y in contributions}
    if not unit.n_is_public:
        moves = contributions
    farthest = max(sum(step**2 for step in move) for move in moves)
    assert farthest == unit.factor * units**2
    for move in {tuple(sorted(map(abs, move))) for move in moves}:
        assert (largest_deltas(vector_pair(variance, move), EPSILONS) <= allowed + ROUND_OFF).all()


@BOTH
@pytest.mark.parametrize("times", [1, 2, 5])
def test_several_tables_add_up(times, unit):
    """The worst person: all in one cell of each of several tables, and in another one when replaced."""
    units = 4
    variance = float(units_variance(MEAN / times, unit, units))
    pair = moved_sums(variance, units, unit.factor * times)
    found, part = largest_deltas(pair, EPSILONS), tables(times, MEAN / times)
    assert (found <= charged([part], unit) + ROUND_OFF).all()
    assert (charged([part], unit) >= gaussian_deltas(1.0, EPSILONS)).all()
    if times > 1:
        assert (found > charged([tables(times - 1, MEAN / times)], unit)).any()


# ------------------------------------------------------------------------------------------------ coins


@BOTH
@pytest.mark.parametrize("most", [1, 2])
def test_rows_that_stay_by_chance_cost_nothing(most, unit):
    """Which rows stay is a coin of each person: the mixture tells no more than the table of one of its outcomes."""
    units = 4
    variance = units_variance(MEAN, unit, units)
    common = [(), *(((r),) for r in records(2, 3)), ((0, 1, 1), (0, 0, 1))]

    def law(database: Database) -> Law:
        return mixed(
            database,
            lambda record: kept_at_random(record, most),
            lambda kept: {None: noisy(added((units_of(r, units, 2) for r in kept), 2), variance, ROOM)},
        )

    found = worst_deltas(law, neighbours(records(2, 3), unit, common))
    assert (found <= charged([tables()], unit) + ROUND_OFF).all()
    assert found[0] > 0.1  # so that something was compared


TREE = {"rate": Fraction(1, 2), "decay": 2, "cutoff": 1, "levels": 2}


def tree_part(levels: int = 2) -> TreeShapes:
    return TreeShapes(TREE["rate"], TREE["decay"], levels, 1, "row trees", stage="row trees")


def tree_law(database: Database) -> Law:
    """The shape of a tree over four cells, grown on one random row a person."""

    def shown(rows: tuple[Record, ...]) -> Law:
        counts = np.bincount([row[0] for row in rows if row], minlength=4)
        return {shape: np.array(chance) for shape, chance in shape_law(counts.tolist(), **TREE).items()}

    return mixed(database, one_row, shown)


@BOTH
def test_trees_on_one_random_row(unit):
    """Shapes of trees are those of a table of one row a person; records without rows are neighbours too."""
    common = [(), ((0,),), ((0, 1), (3,)), ((0, 0, 3), (0, 2), (1,)), ((2,), (2,), (2, 3), (3,))]
    found = worst_deltas(tree_law, neighbours(records(4, 3, least_rows=0), unit, common))
    assert (found <= charged([tree_part()], unit) + ROUND_OFF).all()
    assert found[0] > 0.1


@BOTH
def test_choices_by_scores_in_units(unit):
    """Scores |T - e|_1 of three tables move by factor * units at most; half that sensitivity would be caught."""
    units, part = 4, Selections(Fraction(1), 1, "row selection", stage="row selection")
    cells = [lambda row: row % 2, lambda row: row // 2, lambda row: int(row in (0, 3))]
    common = [(), ((0,),), ((0, 3), (1, 2, 2))]

    def law(sensitivity: int) -> Callable[[Database], Law]:
        def of(database: Database) -> Law:
            scores = []
            for cell, expected in zip(cells, ((1, 3), (6, 0), (0, 0)), strict=True):
                sums = added((units_of(tuple(cell(row) for row in r), units, 2) for r in database), 2)
                scores.append(sum(abs(a - e) for a, e in zip(sums, expected, strict=True)))
            return dict(enumerate(map(np.array, choice_law(scores, part.epsilon, sensitivity))))

        return of

    pairs = list(neighbours(records(4, 3, least_rows=0), unit, common))
    assert (worst_deltas(law(unit.factor * units), pairs) <= charged([part], unit) + ROUND_OFF).all()
    assert (worst_deltas(law(unit.factor * units // 4), pairs) > charged([part], unit) + 1e-3).any()


def alikeness(pair: tuple[int, ...], units: int, places: list[float]) -> tuple[int, int]:
    """What two rows add: the product of their places, in units, and one person."""
    if not pair:
        return 0, 0
    return round(units * places[pair[0]] * places[pair[1]]), units


@BOTH
def test_alikeness_of_two_random_rows(unit):
    """One column, places from -1 to 1: the sum of products and the number of persons, mixed over which two rows."""
    units, places = 3, [-1.0, 0.4, 1.0]
    squared = units**2 * (2 if unit.factor == 1 else 5)
    part = GaussianVector(MEAN, "alikeness", stage="alikeness")
    common = [(), ((0, 2, 2),), ((0, 2), (1, 1, 2))]

    def law(squared: int) -> Callable[[Database], Law]:
        variance = vector_variance(MEAN, squared)

        def shown(pairs: tuple[Record, ...]) -> Law:
            return {None: noisy(added((alikeness(p, units, places) for p in pairs), 2), variance, ROOM)}

        return lambda database: mixed(database, two_rows, shown)

    pairs = list(neighbours(records(3, 3), unit, common))
    assert (worst_deltas(law(squared), pairs) <= charged([part], unit) + ROUND_OFF).all()
    assert (worst_deltas(law(units**2 // 2), pairs) > charged([part], unit) + 1e-3).any()


# ------------------------------------------------------------------------------------------------ one after the other


def stages_law(unit: Unit, units: int, most: int) -> tuple[Callable[[Database], Law], list]:
    """A tree decides about cells, a choice about the table, and the table is shown; rows stay by chance before.

    A row is two bits. The tree is over the first bit, on one random row of those that stay; the choice is between the
    table of the leaves and that of the second bit; what is chosen is counted in units.
    """
    parts = [
        TreeShapes(Fraction(1, 2), 2, 1, 1, "row trees", stage="row trees"),
        Selections(Fraction(1, 2), 1, "row selection", stage="row selection"),
        tables(),
    ]
    variance = units_variance(MEAN, unit, units)

    def outcomes(record: Record) -> list:
        found = []
        for chance, kept in kept_at_random(record, most):
            found += [(chance * once, (kept, row)) for once, row in one_row(kept)]
        return found

    def shown(contributions) -> Law:
        counts = np.bincount([row[0] // 2 for _, row in contributions if row], minlength=2)
        law: Law = {}
        for shape, chance in shape_law(counts.tolist(), rate=Fraction(1, 2), decay=2, cutoff=1, levels=1).items():
            leaf = (lambda row: 0) if shape is None else (lambda row: row // 2)
            sums = [
                added((units_of(tuple(cell(row) for row in kept), units, 2) for kept, _ in contributions), 2)
                for cell in (leaf, lambda row: row % 2)
            ]
            expected = (2, 0) if shape is None else (1, 1)
            scores = [sum(abs(a - e) for a, e in zip(table, expected, strict=True)) for table in sums]
            for place, picked in enumerate(choice_law(scores, Fraction(1, 2), unit.factor * units)):
                law[shape, place] = chance * picked * noisy(sums[place], variance, 3 * units)
        return law

    return lambda database: mixed(database, outcomes, shown), parts


@BOTH
def test_everything_one_after_the_other(unit):
    """Coins, tree, choice and table together are within the composed delta; the table alone is not all of it."""
    law, parts = stages_law(unit, units=3, most=1)
    pairs = list(neighbours(records(4, 2, least_rows=0), unit, [(), ((0, 3),)]))
    found = worst_deltas(law, pairs)
    assert (found <= charged(parts, unit) + ROUND_OFF).all()
    assert (found > charged(parts[:2], unit)).any()


# ------------------------------------------------------------------------------------------------ zoo


U = 5
PERSONS = Unit.REPLACE_PERSON
VARIANCE = units_variance(MEAN, PERSONS, U)
COMMON: list[Database] = [(), ((0,), (1,)), ((0, 1), (0, 1)), ((0,), (0, 0), (1, 1))]
PAIRS = list(neighbours(records(2, 3), PERSONS, COMMON))


def table_law(contribution: Callable[[Record], tuple[int, ...]], variance: Fraction = VARIANCE):
    def law(database: Database) -> Law:
        return {None: noisy(added(map(contribution, database), 2), variance, 80)}

    return law


def weights_forgotten(record: Record):
    return tuple((U * np.bincount(record, minlength=2)).tolist())


def rounded_weights(record: Record):
    return tuple((round(U / len(record)) * np.bincount(record, minlength=2)).tolist())


def clipped_in_name_only(record: Record):
    return tuple((U // min(len(record), 1) * np.bincount(record, minlength=2)).tolist())


def sampled_of_the_table(database: Database) -> Law:
    """Two rows of the table, of whoever, each counted as a person."""
    rows = tuple(row for record in database for row in record)

    def shown(kept: tuple[Record, ...]) -> Law:
        return {None: noisy(added(map(weights_forgotten, kept), 2), VARIANCE, 80)}

    return mixed((rows,), lambda all_rows: kept_at_random(all_rows, 2), shown)


def ranks_among_persons(database: Database) -> Law:
    """A person's cell is whether they have as many rows as anybody: told by others' rows."""
    most = max(map(len, database))
    return {None: noisy(added(((U, 0) if len(r) == most else (0, U) for r in database), 2), VARIANCE, 80)}


def rows_as_a_public_total(database: Database) -> Law:
    law = table_law(lambda record: units_of(record, U, 2))(database)
    return {sum(map(len, database)): law[None]}


def coins_by_the_rows_of_others(database: Database) -> Law:
    """Which row of each person is looked at follows from how many rows the first person has."""
    at = len(database[0]) % 2
    return {None: noisy(added((units_of((r[at % len(r)],), U, 2) for r in database), 2), VARIANCE, 80)}


def lag_across_persons(database: Database) -> Law:
    """A row is told by whether it is another than the row before, which may be another person's."""
    before, contributions = 0, []
    for record in database:
        changes = []
        for row in record:
            changes.append(int(row != before))
            before = row
        contributions.append(units_of(tuple(changes), U, 2))
    return {None: noisy(added(contributions, 2), VARIANCE, 80)}


def alikeness_without_noise(database: Database) -> Law:
    """The share of persons whose two rows agree, as it is."""

    def shown(pairs: tuple[Record, ...]) -> Law:
        return {sum(len(set(pair)) == 1 for pair in pairs): np.array(1.0)}

    return mixed(database, two_rows, shown)


def levels_by_true_shares(database: Database) -> Law:
    """A person's level is whether their first row is the most common value, by the true counts of all rows."""
    rows = [row for record in database for row in record]
    top = int(2 * sum(rows) >= len(rows))
    return {None: noisy(added(((U, 0) if r[0] == top else (0, U) for r in database), 2), VARIANCE, 80)}


ONE_TABLE = [tables()]
ZOO = {
    "weights forgotten": (table_law(weights_forgotten), ONE_TABLE),
    "weights to the nearest": (table_law(rounded_weights), ONE_TABLE),
    "the number of rows is cut, rows are not": (table_law(clipped_in_name_only), ONE_TABLE),
    "no variance for rounding": (
        table_law(lambda record: units_of(record, 3, 2), units_variance(Fraction(6), PERSONS, 3) - 4),
        [tables(1, Fraction(6))],
    ),
    "charged as counts that move by one": (
        table_law(lambda record: units_of(record, U, 2)),
        [GaussianTables(VARIANCE, 1, "one-way", stage="one-way")],
    ),
    "rows sampled of the table": (sampled_of_the_table, ONE_TABLE),
    "ranks among persons": (ranks_among_persons, ONE_TABLE),
    "the number of rows as a public total": (rows_as_a_public_total, ONE_TABLE),
    "coins by the rows of others": (coins_by_the_rows_of_others, ONE_TABLE),
    "the row before is another person's": (lag_across_persons, ONE_TABLE),
    "alikeness without noise": (alikeness_without_noise, [GaussianVector(MEAN, "alikeness", stage="alikeness")]),
    "levels by true shares": (levels_by_true_shares, ONE_TABLE),
}


@pytest.mark.parametrize(("law", "parts"), ZOO.values(), ids=ZOO)
def test_sabotage_is_caught(law, parts):
    """Each law with one mistake in it tells more than it is charged for, on some pair of neighbours."""
    assert (worst_deltas(law, PAIRS) > charged(parts, PERSONS) + 1e-4).any()


def test_the_cage_lets_the_right_one_pass():
    """The same pairs, noise and charge, without a mistake."""
    right = table_law(lambda record: units_of(record, U, 2))
    assert (worst_deltas(right, PAIRS) <= charged(ONE_TABLE, PERSONS) + ROUND_OFF).all()


def test_one_coin_for_everybody_is_no_mistake():
    """A coin that all persons share, and that no record decides, is fixed like any other: it costs nothing."""

    def law(database: Database) -> Law:
        halves = [added((units_of((r[-at],), U, 2) for r in database), 2) for at in (0, 1)]
        return {None: sum(noisy(sums, VARIANCE, 80) for sums in halves) / 2}

    assert (worst_deltas(law, PAIRS) <= charged(ONE_TABLE, PERSONS) + ROUND_OFF).all()


def test_weights_before_the_cut_waste_units_and_tell_nothing():
    """Dividing by the rows that a person had before some were cut gives less than a person has: safe, and a loss."""
    right = table_law(lambda record: tuple((U // len(record) * np.bincount(record[:1], minlength=2)).tolist()))
    assert (worst_deltas(right, PAIRS) <= charged(ONE_TABLE, PERSONS) + ROUND_OFF).all()


# ------------------------------------------------------------------------------------------------ weights in the code


def test_the_weights_of_the_code_are_those_of_the_laws():
    """`WeightedRows` gives every person the units that the laws above were written for, at any number of units."""
    for units in (3, 5, 2**20):
        for database in combinations_with_replacement(records(2, 3, least_rows=0), 3):
            starts = np.cumsum([0, *map(len, database)])
            lines = np.array([row for record in database for row in record], dtype=np.uint8)
            found = WeightedRows(starts, units).true_table([lines], [2])
            assert tuple(found.tolist()) == added((units_of(r, units, 2) for r in database), 2)


def test_floors_never_exceed_a_person():
    """m times floor(U / m) is at most U for every m; to the nearest it would exceed it for about half of them."""
    units, m = 2**20, np.arange(1, 65536)
    assert (m * (units // m) <= units).all()
    assert 0.4 < (m * np.rint(units / m) > units).mean() < 0.6
    assert math.isclose((m * (units // m)).min() / units, 1 - 65535 / units, rel_tol=0.1)


def test_what_two_laws_tell_apart_is_symmetric_in_what_is_shown():
    """The checker itself: laws with different labels are told apart for certain, equal ones not at all."""
    one, other = {0: np.array([0.5, 0.5])}, {1: np.array([0.5, 0.5])}
    assert (deltas(one, other) == 1).all()
    assert (deltas(one, one) == 0).all()
