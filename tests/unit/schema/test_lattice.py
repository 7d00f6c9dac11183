"""The lattice of a tree: cells, bits, order, depth and edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spinney as sp
from spinney.columns.reading import Physical
from spinney.counting.counts import AxisCells
from spinney.errors import ParameterError, SchemaError
from spinney.grid.lattice import Lattice, tree_lattice


def cells(axis, values, is_null=None):
    """Cell numbers of physical values, by the engine's loops."""
    dtype = np.float64 if axis.kind == "real" else np.int64
    found = np.empty(len(values), dtype=np.int64)
    mask = None if is_null is None else np.array(is_null)
    n_bad = AxisCells(Physical(np.array(values, dtype=dtype), mask), axis).fill(0, len(values), found)
    assert n_bad == 0
    return found.tolist()


def only_axis(column, **options):
    return tree_lattice(sp.Schema({"v": column}), **options).axes[0]


def test_real_cells_at_the_edges():
    """Cells are half open, the last one closed; values outside the bounds fall into the edge cells."""
    axis = only_axis(sp.Real(-1, 1, bits=3))
    inside = [-1, math.nextafter(-0.75, -1), -0.75, 0, math.nextafter(1, 0), 1]
    assert cells(axis, inside) == [0, 0, 1, 4, 7, 7]
    assert cells(axis, [-1.0001, -1e300, 1.0001, 1e300, 1.7e308]) == [0, 0, 7, 7, 7]


def test_far_values_are_clamped_not_null():
    """A finite value so far outside that its position overflows is still a value."""
    axis = only_axis(sp.Real(0, 1e-9, nullable=True))
    assert cells(axis, [1e308, -1e308]) == [axis.last, axis.first]
    assert cells(axis, [math.nan, math.inf]) == [axis.null_cell] * 2


def test_integers_get_one_cell_per_value_where_bits_allow():
    """A short integer range uses only the bits that it needs."""
    axis = only_axis(sp.Integer(-2, 3))
    assert (axis.bits, axis.step, axis.first, axis.last) == (3, 1, 0, 5)
    assert cells(axis, [-9, -2, 0, 3, 2**62]) == [0, 0, 2, 5, 5]
    assert not axis.is_full


def test_integers_share_cells_in_equal_steps_where_bits_do_not():
    """A long range is cut into equal runs of values; the last run may be shorter."""
    axis = only_axis(sp.Integer(0, 9, bits=2))
    assert (axis.step, axis.last, axis.bits) == (3, 3, 2)
    assert cells(axis, range(10)) == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]


def test_the_longest_integer_range_does_not_overflow():
    """From -2^61 to 2^61 the ends have the first and the last cell."""
    axis = only_axis(sp.Integer(-(2**61), 2**61))
    assert cells(axis, [-(2**61), 0, 2**61, 2**63 - 1, -(2**63)]) == [0, axis.last // 2, axis.last, axis.last, 0]


@pytest.mark.parametrize(("n_values", "bits"), [(1, 0), (2, 1), (3, 2), (5, 3), (8, 3), (9, 4)])
def test_categories_take_the_bits_they_need(n_values, bits):
    """Lists that are no power of two leave impossible cells, which the axis knows."""
    axis = only_axis(sp.Category(range(n_values)))
    assert (axis.bits, axis.last, axis.n_possible) == (bits, n_values - 1, n_values)
    assert axis.is_full == (n_values == 2**bits)


def test_category_ignores_bits():
    """Values of a list are never merged, whatever `bits` says."""
    assert only_axis(sp.Category(range(20), bits=1)).n_possible == 20


def test_null_has_a_flag_of_its_own():
    """The top bit of a nullable axis says null; all values lie below, and one cell above."""
    axis = only_axis(sp.Real(0, 1, bits=2, nullable=True))
    assert (axis.bits, axis.value_bits, axis.null_cell, axis.last) == (3, 2, 4, 3)
    assert cells(axis, [0.99, math.nan]) == [3, 4]
    assert axis.n_possible == 5
    assert not axis.is_full
    integer = only_axis(sp.Integer(0, 3, nullable=True))
    assert cells(integer, [3, 0], is_null=[False, True]) == [3, integer.null_cell]
    assert only_axis(sp.Category(["only"], nullable=True)).bits == 1
    assert only_axis(sp.Boolean()).null_cell == -1


def test_order_is_cyclic_and_skips_axes_that_have_run_out():
    """One bit of every axis per round, most significant first."""
    lattice = tree_lattice(sp.Schema({"a": sp.Real(0, 1, bits=1), "b": sp.Real(0, 1, bits=3), "c": sp.Boolean()}))
    assert [tuple(step) for step in lattice.order] == [(0, 0), (1, 0), (2, 0), (1, 1), (1, 2)]
    assert lattice.depth == 5
    assert [lattice.bits_at(depth) for depth in (0, 1, 3, 5)] == [[0, 0, 0], [1, 0, 0], [1, 1, 1], [1, 3, 1]]


@pytest.mark.parametrize("n_columns", [1, 2, 3, 7, 29, 70])
def test_default_bits_shrink_with_the_number_of_columns(n_columns):
    """More columns get fewer bits each, never fewer than enough for a few cuts; words hold the whole code."""
    lattice = tree_lattice(sp.Schema({f"c{i}": sp.Real(0, 1) for i in range(n_columns)}))
    bits = {axis.bits for axis in lattice.axes}
    assert len(bits) == 1
    assert lattice.depth == n_columns * bits.pop()
    assert 64 * (lattice.n_words - 1) < lattice.depth <= 64 * lattice.n_words


def test_stated_bits_win():
    """The automatic resolution is for columns that state none."""
    lattice = tree_lattice(sp.Schema({"a": sp.Real(0, 1, bits=5), "b": sp.Real(0, 1, bits=9)}))
    assert [axis.bits for axis in lattice.axes] == [5, 9]


def test_an_absurdly_deep_lattice_is_refused():
    """Thousands of bits are a slip; the message says where to cut."""
    with pytest.raises(SchemaError, match="smaller `bits`"):
        tree_lattice(sp.Schema({f"c{i}": sp.Real(0, 1, bits=32) for i in range(200)}))


@pytest.mark.parametrize("bounds", [(-1e308, 1e308), (0, 5e-324)])
@pytest.mark.parametrize("axes", ["boxes", "cube"])
def test_ranges_that_floats_cannot_divide(bounds, axes):
    """Bounds too close or too far apart name the column instead of overflowing."""
    with pytest.raises(SchemaError, match=r"column 'v': the bounds .* too close or too far"):
        tree_lattice(sp.Schema({"v": sp.Real(*bounds)}), axes=axes)


# ------------------------------------------------------------------------------------------------------ cube


def test_cube_axes_have_one_edge_and_know_their_bounds():
    """All edges are as long as the longest; a shorter column sits in the middle between impossible cells."""
    schema = sp.Schema({"long": sp.Real(0, 8, bits=3), "short": sp.Real(10, 12, bits=3)})
    long, short = tree_lattice(schema, axes="cube").axes
    assert long.edge == short.edge == 8
    assert (long.first, long.last, long.is_full) == (0, 7, True)
    assert short.origin == 7  # centred: 11 is in the middle of 7..15
    assert short.first == 3
    assert cells(short, [0, 10, 10.99, 11, 12, 99]) == [3, 3, 3, 4, 5, 5]
    assert not short.is_full


def test_cube_needs_plain_reals():
    """Nulls and whole values have no place in the paper's cube; the column is named."""
    for column in (sp.Integer(0, 9), sp.Real(0, 1, nullable=True), sp.Category(["a"])):
        with pytest.raises(SchemaError, match="column 'odd'"):
            tree_lattice(sp.Schema({"x": sp.Real(0, 1), "odd": column}), axes="cube")
    with pytest.raises(ParameterError, match="axes='ball'"):
        tree_lattice(sp.Schema({"x": sp.Real(0, 1)}), axes="ball")


# ----------------------------------------------------------------------------------------------------- edges


@pytest.mark.parametrize("n_columns", [1, 2, 5])
@pytest.mark.parametrize("power", [0, 1, 3, 7])
def test_depth_for_edge_is_the_papers_formula(n_columns, power):
    """On d axes of length R the depth for edge s is d * log2(R / s), and one more level for a hair less."""
    length = 24.0
    lattice = tree_lattice(sp.Schema({f"c{i}": sp.Real(0, length, bits=9) for i in range(n_columns)}), axes="cube")
    edge = length / 2**power
    assert lattice.depth_for_edge(edge) == n_columns * math.log2(length / edge)
    assert lattice.depth_for_edge(edge * 0.999) == n_columns * (power + 1)


def test_depth_for_edge_counts_bits_of_values_only():
    """The null flag cuts no length."""
    plain, nullable = (
        tree_lattice(sp.Schema({"v": sp.Real(0, 8, bits=4, nullable=is_nullable)})) for is_nullable in (False, True)
    )
    assert nullable.depth_for_edge(1) == plain.depth_for_edge(1) + 1


def test_an_edge_below_the_cells_is_refused():
    """The smallest cell is as small as it gets; the remedy is more bits."""
    lattice = tree_lattice(sp.Schema({"v": sp.Real(0, 1, bits=3)}))
    assert lattice.depth_for_edge(1 / 8) == 3
    with pytest.raises(ParameterError, match="`bits`"):
        lattice.depth_for_edge(1 / 9)


def test_an_empty_lattice_still_has_a_word():
    """A table of one single-valued column has codes of no bits, held in one word."""
    lattice = tree_lattice(sp.Schema({"v": sp.Category(["only"])}))
    assert (lattice.depth, lattice.n_words, lattice.order, lattice.is_full) == (0, 1, (), True)
    assert isinstance(lattice, Lattice)
