"""Columns in parts that rules tell apart: every cell has the label of its values, and no value leaves its part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spinney as sp
from spinney.errors import SchemaError
from spinney.grid.axes import column_axis, partings
from spinney.schema.rules.base import ValueSet, parse_condition, universe, value_set
from spinney.tree.release.geometry import extent

COLUMNS = [
    (sp.Integer(0, 120), [(0, 14), (15, 17), 65]),
    (sp.Integer(-1000, 10**9), [(-5, 5), (10**6, None)]),
    (sp.Integer(0, 1000, multiple_of=50), [(0, 120), (150, 400), 1000]),
    (sp.Real(0, 1e6), [(0, 14.25), (14.25, 100), 1e5]),
    (sp.Real(-5, 5), [0, (0.1, 0.3), (-0.1, None)]),
    (sp.Real(0, 100, multiple_of=0.01), [(0, 0.29), (0.3, 9.99)]),
    (sp.Date("2000-01-01", "2030-12-31"), [("2000-01-01", "2009-12-31"), "2020-02-29"]),
    (sp.Datetime("2020-01-01", "2021-01-01"), [("2020-03-01T00:00", "2020-03-31T23:59:59")]),
    (sp.Time(), [("08:00", "17:59:59")]),
    (sp.Category([*"abcdefg"], nullable=True), [["a", "c"], ["c", "d", None], "g"]),
    (sp.Boolean(nullable=True), [True, [None, False]]),
]


def parted(column, stated):
    sets = [value_set(column, parse_condition(one, "it"), "it") for one in stated]
    axes = column_axis("v", column)
    return partings([{"v": one} for one in sets], {"v": column}, {"v": axes})["v"], axes, sets


@pytest.mark.parametrize(("column", "stated"), COLUMNS)
def test_what_lies_in_a_part_has_its_label(column, stated):
    """Places that are drawn anywhere in cells of a part become values of exactly the sets that its label says."""
    parting, cells, sets = parted(column, stated)
    rng = np.random.default_rng(0)
    stop = np.append(parting.first[1:], cells.axis.last + 1)
    first = np.concatenate([parting.first, stop - 1, *(rng.integers(parting.first, stop) for _ in range(200))])
    ends = np.maximum(first + 1, rng.integers(first, np.tile(stop, 202)) + 1)
    low, length = parting.fenced(first, *extent(cells.axis, first, ends))
    assert (parting.labels_at(low) == parting.labels_of(first)).all()
    for part in (0.0, 0.5, 1.0):
        places = low + part * length
        places = np.where(length > 0, np.minimum(places, np.nextafter(low + length, -np.inf)), low)
        physical = column._read(column._to_arrow(places))
        for one, expected in zip(sets, parting.is_in[:, parting.labels_of(first)], strict=True):
            assert (one.holds(physical.values.astype(np.float64)) == expected).all()


@pytest.mark.parametrize(("column", "stated"), COLUMNS)
def test_parts_begin_where_sets_begin_and_end(column, stated):
    """At public values, all of them at cells of their own, and neighbours differ."""
    parting, _, sets = parted(column, stated)
    assert parting.starts[0] == universe(column)[0]
    assert (np.diff(parting.first) > 0).all()
    assert (np.diff(parting.labels) != 0).all()
    for one in sets:
        assert {low for low, _ in one.ranges} <= set(parting.starts)


def test_single_precision_stays_with_the_end_that_was_stated():
    """A float of 32 bits next to 0.1 is counted as 0.1 on either side of a range."""
    column = sp.Real(0, 1000)
    for stated, inside in (((0, 0.1), True), ((0.1, 1000), True)):
        parting, cells, _ = parted(column, [stated])
        near = [np.float64(np.float32(0.1)), np.nextafter(np.float32(0.1), np.float32(0)), 0.1]
        found = [int((value - cells.axis.origin) * cells.axis.scale) for value in near]
        assert (parting.is_in[0, parting.labels_of(np.array(found))] == inside).all()


def test_cells_too_coarse_for_a_rule_are_refused():
    column = sp.Real(0, 1, bits=2)
    axes = {"v": column_axis("v", column)}
    with pytest.raises(SchemaError, match="'v': rules tell values apart that lie in one cell"):
        partings([{"v": ValueSet(((0.1, 0.11),))}, {"v": ValueSet(((0.12, 0.13),))}], {"v": column}, axes)


@given(st.integers(0, 2**32 - 1))
def test_random_ranges_of_reals(seed):
    """Whatever ends are stated, places of a part stay inside it to the last float."""
    rng = np.random.default_rng(seed)
    column = sp.Real(-10, 10) if rng.random() < 0.5 else sp.Real(-10, 10, multiple_of=float(rng.choice([0.1, 0.25])))
    ends = np.sort(np.round(rng.uniform(-9, 9, 4), int(rng.integers(0, 6))))
    if ends[1] == ends[2] or ends[0] == ends[1] or column.spacing is not None:
        ends = np.array([-5.0, -2.0, 1.0, 3.5])
    parting, cells, sets = parted(column, [(ends[0], ends[1]), (ends[2], ends[3])])
    first = rng.integers(0, cells.axis.last, 500)
    low, length = parting.fenced(first, *extent(cells.axis, first, first + 1))
    drawn = np.where(length > 0, np.minimum(low + rng.random(500) * length, np.nextafter(low + length, -np.inf)), low)
    values = column._to_floats(drawn)
    for one, expected in zip(sets, parting.is_in[:, parting.labels_of(first)], strict=True):
        assert (one.holds(values) == expected).all()
