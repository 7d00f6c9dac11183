"""Cliques: boxes that tile a table of states, cut as finely as expectations allow and no finer."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.forest.cliques import box_labels, measure, outer
from support.slow_forests import rows_of, slow_table
from support.small_forests import exact_prepaid

FEW = settings(max_examples=60, derandomize=True, deadline=None)


@st.composite
def expectations(draw):
    """A table of one to five columns with what is expected of each cell, and perhaps a column of classes."""
    n_columns = draw(st.integers(1, 5))
    most = 6 if n_columns <= 3 else 3
    shape = draw(st.lists(st.integers(1, most), min_size=n_columns, max_size=n_columns))
    by = draw(st.one_of(st.none(), st.integers(0, len(shape) - 1)))
    cells = draw(st.lists(st.integers(0, 40), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    return np.array(cells, dtype=np.float64).reshape(shape), by


def boxes(labels):
    """The cells of each label, as a list of index tuples."""
    return [list(zip(*np.nonzero(labels == label), strict=True)) for label in range(labels.max() + 1)]


@FEW
@given(expectations(), st.sampled_from([0.0, 1.0, 7.0, 50.0, 1e6]))
def test_labels_are_a_partition_into_boxes(drawn, least):
    """Labels are numbered in the order of cells; each is a box; classes are never joined."""
    expected, by = drawn
    labels = box_labels(expected, least, by=by)
    assert labels.shape == expected.shape
    assert labels.dtype == np.int32
    _, first = np.unique(labels, return_index=True)
    assert sorted(set(labels.ravel().tolist())) == list(range(len(first)))
    assert (np.diff(first) > 0).all()
    for cells in boxes(labels):
        ranges = [range(min(side), max(side) + 1) for side in zip(*cells, strict=True)]
        assert sorted(cells) == list(product(*ranges))
        if by is not None:
            assert len(ranges[by]) == 1


@FEW
@given(expectations(), st.sampled_from([1.0, 7.0, 50.0]))
def test_boxes_hold_enough_and_could_not_be_halved(drawn, least):
    """Whatever was cut left `least` on both sides; whatever was not cut could not have been."""
    expected, by = drawn
    n_classes = 1 if by is None else expected.shape[by]
    labels = box_labels(expected, least, by=by)
    slices = [expected] if by is None else [expected.take([t], axis=by) for t in range(n_classes)]
    for cells in boxes(labels):
        held = sum(expected[cell] for cell in cells)
        whole = slices[0 if by is None else int(cells[0][by])]
        assert held >= least or len(cells) == whole.size
        for axis in range(expected.ndim):
            for at in {cell[axis] for cell in cells} - {min(cell[axis] for cell in cells)}:
                lower = sum(expected[cell] for cell in cells if cell[axis] < at)
                assert min(lower, held - lower) < least


@FEW
@given(expectations())
def test_a_tiny_least_leaves_every_cell_that_expects_rows(drawn):
    """Down to nothing at all, cells in which rows are expected stand alone."""
    expected, by = drawn
    labels = box_labels(expected + 1, 1e-12, by=by)
    assert labels.ravel().tolist() == list(range(expected.size))


def test_a_large_least_leaves_one_box_for_each_class():
    assert (box_labels(np.ones((4, 5)), 100.0) == 0).all()
    assert box_labels(np.ones((4, 3, 5)), 100.0, by=1).tolist() == [[[t] * 5 for t in range(3)]] * 4


def test_resolution_follows_what_is_expected():
    """A quarter of the table that expects nearly all rows gets nearly all boxes."""
    expected = np.full((8, 8), 0.1)
    expected[:4, :4] = 10.0
    labels = box_labels(expected, 10.0)
    assert len(np.unique(labels[:4, :4])) == 16
    assert len(np.unique(labels)) <= 19


@pytest.mark.parametrize("least", [0.0, 3.0, 1e9])
@pytest.mark.parametrize(("clique", "by"), [((0, 2), None), ((0, 1), 0), ((1, 2), 2), ((0, 1, 2), 1)])
def test_measurements_count_rows_by_box(clique, by, least):
    """Without noise each number is how many rows lie in its box; a table of single cells has no labels."""
    sizes = (3, 4, 5)
    rng = np.random.default_rng(0)
    rows = [tuple(int(rng.integers(0, size)) for size in sizes) for _ in range(200)]
    shape = [sizes[column] for column in clique]
    expected = rng.random(shape) * 5
    prepaid = exact_prepaid(n_cliques=1)
    measured = measure(rows_of(rows, sizes), clique, expected, prepaid, stage="cliques", least=least, by=by)
    true_table = slow_table(rows, clique, sizes)
    assert measured.columns == clique
    assert measured.noise_std == prepaid.plan.noise_std("cliques")
    assert measured.noisy.sum() == len(rows)
    if least == 0:
        assert measured.labels is None
        assert measured.noisy.tolist() == true_table.ravel().tolist()
    else:
        assert measured.labels.shape == true_table.shape
        for label, noisy in enumerate(measured.noisy):
            assert true_table[measured.labels == label].sum() == noisy


def test_a_product_of_shares():
    assert outer([np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])]).tolist() == [[3, 4, 5], [6, 8, 10]]
    assert outer([]).shape == ()
