"""What the tree of a place decides, shape by shape: as the definition says, and as private as was charged for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import spinney as sp
from spinney.errors import BudgetError
from spinney.forest.columns import release_place
from spinney.forest.plan import Shape, forest_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.grid.axes import place_axis
from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_delta
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.mechanisms import DiscreteLaplaceCounts, TreeShapes
from support.exhaustive_branches import branching, hockey_stick, law_of
from support.handmade_leaves import counts_of_rows
from support.output_laws import largest_ratio
from support.slow_places import code_of, shape_law

UNITS = pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE], ids=str)
CUTOFF = 1
CASES = {
    "square": ({"x": sp.Integer(0, 3), "y": sp.Integer(0, 1)}, None, 0),
    "fixed levels": ({"x": sp.Integer(0, 3), "y": sp.Integer(0, 1)}, None, 1),
    "not powers of two": ({"x": sp.Integer(0, 2), "y": sp.Integer(0, 2)}, None, 0),
    "nulls": ({"x": sp.Integer(0, 1, nullable=True), "y": sp.Integer(0, 1, nullable=True)}, None, 1),
    "mask": ({"x": sp.Integer(0, 3), "y": sp.Integer(0, 1)}, [[1, 1], [0, 1], [0, 0], [1, 0]], 0),
}
EVERY = pytest.mark.parametrize("case", CASES)


@cache
def setting(case):
    columns, mask, n_fixed = CASES[case]
    within = None if mask is None else np.array(mask, dtype=bool)
    schema = sp.Schema(columns, places=[sp.Place("x", "y", within=within)])
    axis = place_axis(schema.places[0], schema)
    cells = [[*range(one.first, one.last + 1), *([one.null_cell] if one.nullable else [])] for one in axis.lattice.axes]
    return axis, list(product(*cells)), n_fixed


def is_inside(case, cells):
    _, mask, _ = CASES[case]
    return mask is None or bool(mask[cells[0]][cells[1]])


def plan_of(axis, unit, *, delta=0, epsilon=2):
    shares = {"regions": Fraction(1, 2), "places": Fraction(1, 2)}
    shape = Shape({"regions": 1, "places": 1}, shares, {"regions": axis.max_levels})
    return forest_plan(shape, epsilon=Fraction(epsilon), delta=Fraction(delta), unit=unit)


def law_by_code(case, rows, plan, *, faster=1):
    """Chance of every shape that `release_place` gives a table of these cells."""
    axis, _, n_fixed = setting(case)
    counts = counts_of_rows(rows, axis.lattice)
    sound = plan.trees["regions"]
    regions = replace(sound, rate=sound.rate * faster)
    pure = replace(
        plan,
        noise={"regions": regions, "places": DiscreteLaplaceCounts(Fraction(10**6), 1, "places", times=1)},
        charges=(),
    )

    def run(pick):
        prepaid = PrepaidMechanisms(pure, sp.Ledger(unit=plan.unit), UnsafeSeededEntropy(0))
        with branching(pick, cutoff=CUTOFF):
            noisy = release_place(counts, axis, prepaid, cutoff=CUTOFF, n_fixed=n_fixed)
        return tuple(f"{int(code):064b}"[:depth] for code, depth in zip(noisy.codes[:, 0], noisy.depths, strict=True))

    return law_of(run)


def some_rows(cells, n, most):
    every = list(combinations_with_replacement(cells, n))
    return every[:: max(1, len(every) // most)]


@EVERY
@UNITS
def test_shapes_follow_the_law_of_their_decisions(case, unit):
    """Nulls, fixed levels and what is impossible decide nothing, and decisions count from the first one on the path."""
    axis, cells, n_fixed = setting(case)
    plan = plan_of(axis, unit)
    for rows in [[], *some_rows(cells, 2, 6), *some_rows(cells, 5, 3)]:
        found = Counter(code_of(row, axis.lattice) for row in rows)
        counts = {code_of(cell, axis.lattice): found[code_of(cell, axis.lattice)] for cell in cells
                  if is_inside(case, cell)}  # fmt: skip
        noise = {"rate": float(plan.trees["regions"].rate), "cutoff": CUTOFF, "decay": plan.trees["regions"].decay}
        expected = shape_law(counts, axis.lattice, n_fixed=n_fixed, **noise)
        law = law_by_code(case, list(rows), plan)
        if any(not is_inside(case, row) for row in rows):  # counted in nodes that reach beyond the shape
            assert set(law) == set(expected)
            continue
        assert law == pytest.approx(expected, abs=1e-12)


def neighbours_of(rows, cells, unit):
    for place in range(len(rows)):
        rest = [*rows[:place], *rows[place + 1 :]]
        yield from ([*rest, cell] for cell in cells) if unit is Unit.REPLACE_ONE else [rest]


@EVERY
@UNITS
def test_shapes_cost_no_more_than_was_charged(case, unit):
    """Pure and composed, rows outside the shape included; three times the rate is noticed."""
    axis, cells, _ = setting(case)
    plan, composed = plan_of(axis, unit), plan_of(axis, unit, delta="1e-3")

    pairs = [
        (tuple(rows), tuple(other))
        for n in (1, 3)
        for rows in some_rows(cells, n, 4)
        for other in list(neighbours_of(rows, cells, unit))[:9]
    ]

    def laws_of(plan):
        """The laws of both tables of every pair; a table has the same rows in any order."""

        @cache
        def law(rows):
            return law_by_code(case, list(rows), plan)

        return [tuple(law(tuple(sorted(rows))) for rows in pair) for pair in pairs]

    def worst(measure, laws):
        return max(measure(*ordered) for a, b in laws for ordered in ((a, b), (b, a)))

    assert 0 < worst(largest_ratio, laws_of(plan)) <= 1 + 1e-9
    regions = composed.trees["regions"]
    part = TreeShapes(regions.rate, regions.decay, regions.levels, 1, "regions")
    laws = laws_of(composed)
    for epsilon in ("1/10", "1/2"):
        allowed = float(composed_delta([part], Fraction(epsilon), unit))
        assert worst(lambda a, b, e=float(Fraction(epsilon)): hockey_stick(a, b, e), laws) <= allowed + 1e-9


def test_three_times_the_rate_is_noticed():
    axis, _, _ = setting("fixed levels")
    plan = plan_of(axis, Unit.REPLACE_ONE)
    here, there = [(0, 0)] * 3, [(0, 0), (0, 0), (3, 1)]
    laws = [law_by_code("fixed levels", rows, plan, faster=faster) for faster in (1, 3) for rows in (here, there)]
    assert largest_ratio(*laws[:2]) <= 1 + 1e-9
    assert largest_ratio(*laws[2:]) > 1


@UNITS
def test_a_row_is_in_one_region_at_most(unit, monkeypatch):
    """Counts of a table and its neighbours differ by one row, also where it lies outside the shape."""
    handed = []
    monkeypatch.setattr(PrepaidMechanisms, "noisy_counts", lambda _, counts, __: handed.append(counts) or counts)
    for case in CASES:
        axis, cells, n_fixed = setting(case)
        for cutoff in (-100, 100):
            handed.clear()
            rows = [cells[0], cells[0], cells[-1]]
            for table in (rows, *neighbours_of(rows, cells, unit)):
                prepaid = PrepaidMechanisms(plan_of(axis, unit), sp.Ledger(unit=unit), UnsafeSeededEntropy(2))
                release_place(counts_of_rows(table, axis.lattice), axis, prepaid, cutoff=cutoff, n_fixed=n_fixed)
            changes = [np.abs(there - handed[0]) for there in handed[1:] if len(there) == len(handed[0])]
            assert len(changes) == len(handed) - 1
            assert max(change.sum() for change in changes) <= unit.factor


def test_what_was_paid_for_can_be_had_once_and_no_deeper():
    axis, cells, _ = setting("square")
    counts = counts_of_rows(cells[:2], axis.lattice)
    prepaid = PrepaidMechanisms(plan_of(axis, Unit.REPLACE_ONE), sp.Ledger(), UnsafeSeededEntropy(1))
    release_place(counts, axis, prepaid, cutoff=1, n_fixed=0)
    with pytest.raises(BudgetError, match="paid for no more of 'regions'"):
        prepaid.regions(counts, axis, cutoff=1, n_fixed=0)
    with pytest.raises(BudgetError, match="paid for no more of 'places'"):
        prepaid.noisy_counts(np.array([1]), "places")
    plan = plan_of(axis, Unit.REPLACE_ONE)
    shallow = replace(
        plan, noise={**plan.noise} | {"regions": replace(plan.trees["regions"], levels=axis.max_levels - 1)}
    )
    with pytest.raises(BudgetError, match="deeper than what was paid for"):
        PrepaidMechanisms(shallow, sp.Ledger(), UnsafeSeededEntropy(1)).regions(counts, axis, cutoff=1, n_fixed=0)
