"""Weighted rows: a person's units in every cell, against a slow count, and what lies in the first cells of leaves."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spinney as sp
from spinney.columns.reading import Physical
from spinney.counting.states import Cut, WeightedRows
from spinney.grid.axes import column_axes
from spinney.people.columns import _spike_pieces

PEOPLE = st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=7), min_size=1, max_size=8)


def weighted(people, units=1000):
    return WeightedRows(np.cumsum([0, *map(len, people)]), units)


@given(people=PEOPLE, units=st.integers(1, 50))
def test_tables_are_sums_of_floors(people, units):
    """Each of m rows adds floor(units / m) to its cell, and a person no more than their units to all."""
    slow = np.zeros((3, 4), dtype=int)
    for rows in people:
        for first, second in rows:
            slow[first, second] += units // len(rows)
    every = np.array([row for rows in people for row in rows], dtype=np.int64).reshape(-1, 2)
    found = weighted(people, units).true_table([every[:, 0], every[:, 1].astype(np.uint8)], [3, 4])
    assert found.dtype == np.int64
    assert found.tolist() == slow.ravel().tolist()
    assert found.sum() <= units * len(people)


AXIS = next(iter(column_axes(sp.Schema({"x": sp.Integer(0, 31, nullable=True)})).values())).axis


def pieces(people, cut, units=60):
    values = np.array([value for rows in people for value in rows], dtype=np.int64)
    return weighted(people, units).true_pieces(Physical(values, values < 0), cut)


@given(people=st.lists(st.lists(st.integers(-1, 31), max_size=5), min_size=1, max_size=6))
def test_pieces_of_a_column(people):
    """Units between public cuts, nulls in a piece of their own."""
    first = np.array([0, AXIS.first + 4, AXIS.first + 20, AXIS.null_cell])
    found = pieces(people, Cut(AXIS, first, np.arange(4)))
    slow = [0, 0, 0, 0]
    for rows in people:
        for value in rows:
            slow[3 if value < 0 else int(np.searchsorted([4, 20], value, side="right"))] += 60 // len(rows)
    assert found.tolist() == slow


@given(
    people=st.lists(st.lists(st.integers(0, 31), max_size=5), min_size=1, max_size=6),
    begins=st.lists(st.integers(0, 31), unique=True, max_size=8),
    data=st.data(),
)
def test_spikes_hold_the_rows_in_their_cells_and_no_others(people, begins, data):
    """Ranges that share no cell, in any order, next to each other or not: what lies between them is in none."""
    order = data.draw(st.permutations(begins))
    after = {begin: min([other for other in begins if other > begin], default=32) for begin in begins}
    ends = {begin: data.draw(st.integers(begin + 1, after[begin])) for begin in order}
    spikes = np.array([[AXIS.first + b for b in order], [AXIS.first + ends[b] for b in order]], dtype=np.int64)
    spikes = spikes.reshape(2, -1)
    found = pieces(people, _spike_pieces(AXIS, spikes))[: len(order)]
    slow = [sum(60 // len(rows) for rows in people for value in rows if b <= value < ends[b]) for b in order]
    assert found.tolist() == slow


def test_private_rows_are_not_shown_and_not_written():
    """Neither a repr nor a pickle."""
    assert repr(weighted([[(0, 0)]])) == "WeightedRows(sensitive)"
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(weighted([[(0, 0)]]))


def test_sums_that_would_not_be_exact_are_refused():
    """More persons than int64 holds units of."""
    with pytest.raises(OverflowError, match="too many persons"):
        WeightedRows(np.array([0, 1]), 1 << 60)
