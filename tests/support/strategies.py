"""Lattices, rows and nodes for hypothesis to draw: discrete and real axes, nulls, cubes, codes wider than a word."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

import spinney as sp
from spinney.columns import Column
from spinney.grid.lattice import Axis, Lattice, grid_lattice, tree_lattice

MODEST = settings(max_examples=60, derandomize=True, deadline=None)


def columns(most_values: int = 6) -> st.SearchStrategy[Column]:
    """One column of a few cells."""
    nullable = st.booleans()
    return st.one_of(
        st.builds(lambda n, null: sp.Category(list(range(n)), nullable=null), st.integers(1, most_values), nullable),
        st.builds(lambda n, null: sp.Integer(5, 4 + n, nullable=null), st.integers(1, most_values), nullable),
        st.builds(lambda null: sp.Boolean(nullable=null), nullable),
        st.builds(lambda bits, null: sp.Real(-1, 1, bits=bits, nullable=null), st.integers(0, 2), nullable),
    )


def _named(drawn: list[Column]) -> sp.Schema:
    return sp.Schema({f"column{i}": column for i, column in enumerate(drawn)})


def small_lattices(most_depth: int = 9) -> st.SearchStrategy[Lattice]:
    """Lattices with few enough cells to go through them all."""
    trees = st.lists(columns(), min_size=1, max_size=3).map(lambda drawn: tree_lattice(_named(drawn)))
    grids = st.lists(columns(), min_size=1, max_size=3).map(lambda drawn: grid_lattice(_named(drawn), bins=3))
    cubes = st.lists(st.integers(1, 9), min_size=1, max_size=3).map(
        lambda edges: tree_lattice(_named([sp.Real(0, edge, bits=3) for edge in edges]), axes="cube")
    )
    return st.one_of(trees, grids, cubes).filter(lambda lattice: lattice.depth <= most_depth)


def wide_lattices() -> st.SearchStrategy[Lattice]:
    """Lattices of more than one word: up to forty columns, up to two hundred bits."""
    return (
        st.lists(columns(most_values=40), min_size=18, max_size=40)
        .map(lambda drawn: tree_lattice(_named(drawn)))
        .filter(lambda lattice: lattice.depth > 64)
    )


def any_lattices() -> st.SearchStrategy[Lattice]:
    return st.one_of(small_lattices(), wide_lattices())


def _cells(axis: Axis) -> st.SearchStrategy[int]:
    values = st.integers(axis.first, axis.last)
    return st.one_of(values, st.just(2 ** (axis.bits - 1))) if axis.nullable else values


@st.composite
def tables(draw: st.DrawFn, lattices: st.SearchStrategy[Lattice], most_rows: int = 12):
    """A lattice and rows on it; rows often share cells, as real ones do."""
    lattice = draw(lattices)
    distinct = draw(st.lists(st.tuples(*(_cells(axis) for axis in lattice.axes)), min_size=1, max_size=4))
    return lattice, draw(st.lists(st.sampled_from(distinct), max_size=most_rows))


@st.composite
def nodes(draw: st.DrawFn, lattices: st.SearchStrategy[Lattice]):
    """A lattice and nodes of it as (depth, prefix), possible or not."""
    lattice = draw(lattices)
    depths = draw(st.lists(st.integers(0, lattice.depth), min_size=1, max_size=6))
    return lattice, [(depth, draw(st.integers(0, 2**depth - 1))) for depth in depths]
