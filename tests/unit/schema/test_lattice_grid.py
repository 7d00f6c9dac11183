"""The lattice of a grid: bins by number and by width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spinney as sp
from spinney.errors import ParameterError, SchemaError
from spinney.grid.lattice import grid_lattice


def only_axis(column, **options):
    return grid_lattice(sp.Schema({"v": column}), **options).axes[0]


@pytest.mark.parametrize("bins", [1, 2, 3, 7, 8, 100])
def test_bins_divide_a_real_column_equally(bins):
    """Any number of bins is allowed; codes that are left over are impossible."""
    axis = only_axis(sp.Real(2, 5), bins=bins)
    assert (axis.first, axis.last) == (0, bins - 1)
    assert 1 / axis.scale == pytest.approx(3 / bins)
    assert 2**axis.bits >= bins > 2**axis.bits // 2 or bins == 1


def test_columns_with_fewer_values_get_one_bin_per_value():
    """Bins are never finer than values."""
    assert only_axis(sp.Integer(0, 4), bins=100).last == 4
    assert only_axis(sp.Boolean(), bins=100).last == 1
    assert only_axis(sp.Category(range(9)), bins=2).last == 8


def test_integer_bins_hold_equal_runs():
    """Ten values in four bins: three each, the last one shorter."""
    axis = only_axis(sp.Integer(0, 9), bins=4)
    assert (axis.step, axis.last) == (3, 3)


def test_widths_that_divide_the_range():
    """A width that divides the range gives range / width bins, in spite of binary rounding."""
    for length, width, bins in ((1, 0.1, 10), (0.3, 0.1, 3), (1, 0.5, 2), (3, 3, 1), (1.1, 0.1, 11)):
        axis = only_axis(sp.Real(0, length), width=width)
        assert axis.last + 1 == bins, (length, width)
        assert axis.scale == 1 / width


def test_widths_that_do_not_divide_the_range():
    """The last bin reaches past the high bound, from the low bound up in equal widths."""
    axis = only_axis(sp.Real(10, 11), width=0.3)
    assert axis.last + 1 == 4
    assert (axis.origin, axis.scale) == (10, 1 / 0.3)
    assert only_axis(sp.Real(0, 1), width=5).last == 0


@given(st.integers(1, 500), st.integers(1, 600))
def test_integer_widths_are_kept(n_values, width):
    """A width of w values means w values in every bin, save the last."""
    axis = only_axis(sp.Integer(0, n_values - 1), width=width)
    assert axis.step == min(width, n_values)
    assert axis.last + 1 == -(-n_values // width)


def test_mappings_set_single_columns():
    """One number per column name, for bins as for widths."""
    schema = sp.Schema({"a": sp.Real(0, 1), "b": sp.Real(0, 1)})
    assert [axis.last + 1 for axis in grid_lattice(schema, bins={"b": 2, "a": 5}).axes] == [5, 2]
    assert [axis.last + 1 for axis in grid_lattice(schema, width={"b": 0.5, "a": 0.2}).axes] == [5, 2]


@pytest.mark.parametrize(("argument", "name"), [("bins", "bins"), ("width", "bin_width")])
def test_a_mapping_that_misses_a_column(argument, name):
    """The column that was forgotten is named."""
    schema = sp.Schema({"a": sp.Real(0, 1), "b": sp.Real(0, 1)})
    with pytest.raises(ParameterError, match=f"{name} does not name column 'b'"):
        grid_lattice(schema, **{argument: {"a": 1}})


def test_too_many_bins():
    """More than 2^32 bins on one column is a slip, whether asked for by number or by width."""
    for options in ({"bins": 2**33}, {"width": 1e-12}, {"width": 1e-299}):
        with pytest.raises(ParameterError, match="bins on column 'v'"):
            only_axis(sp.Real(0, 1), **options)
    with pytest.raises(ParameterError, match="bins on column 'v'"):
        only_axis(sp.Integer(0, 2**40), width=1)


def test_ranges_that_floats_cannot_measure():
    """Bounds whose difference overflows name the column."""
    with pytest.raises(SchemaError, match="column 'v'"):
        only_axis(sp.Real(-1e308, 1e308), width=1)
