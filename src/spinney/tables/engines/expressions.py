"""The lattice as expressions: the formulas of `cells.py` for engines whose rows stay where they are.

Values become numbers as each kind of column says (`columns/expressions.py`), and numbers become cells as in `cells.py`,
but as narwhals expressions, which Spark (or DuckDB, or polars) evaluates next to the rows. They use doubles and 64-bit
integers in the same operations as the compiled loops, so cells are equal to the last bit: engines.proof.md says why,
and tests/conformance checks it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from spinney.counting.states import AnyCut, Cut, RegionCut
from spinney.schema.lattice import Axis, Lattice
from spinney.schema.pieces import Pieces, piece_table

# Longer lists of categories are looked up in a small table; shorter ones are compared one by one.
MOST_COMPARED = 32
# A key of cells is a positive int64 with room for a sign.
_KEY_BITS = 62


def cell(axis: Axis, number: nw.Expr, is_missing: nw.Expr) -> nw.Expr:
    """The cell of a number, by the lattice's formula for the kind of axis; null's own cell where there is none."""
    return _or_null(axis, fine_cell(axis, number), is_missing)


def fine_cell(axis: Axis, number: nw.Expr) -> nw.Expr:
    """The cell of a number, or its fine cell where the axis has pieces; meaningless where there is no number."""
    if axis.kind == "real":
        first = axis.first if axis.pieces is None else 0
        position = (number - axis.origin) * axis.scale
        return position.clip(float(first), float(axis.n_fine - 1)).floor().cast(nw.Int64)
    if axis.kind == "ladder":
        return staircase(number.cast(nw.Float64), axis.edges, range(len(axis.edges) + 1))
    offset = number.clip(int(axis.low), int(axis.high)) - int(axis.low)
    return offset if axis.step == 1 else _quotient(offset, axis.step)


def piece_of(pieces: Pieces, fine: nw.Expr) -> nw.Expr:
    """The number of the piece that a fine cell belongs to."""
    return staircase(fine, pieces.starts[1:], range(len(pieces.starts)))


def piece_lists(pieces: Pieces) -> dict[str, list[int]]:
    """What `cell_in_piece` needs of a piece, to be looked up by its number."""
    table = piece_table(pieces)
    lists = {"start": table.starts, "slot": table.slots, "gain": table.gains, "width": table.widths}
    return {name: numbers.tolist() for name, numbers in lists.items()}


def cell_in_piece(axis: Axis, fine: nw.Expr, piece: Mapping[str, nw.Expr], is_missing: nw.Expr) -> nw.Expr:
    """The cell of a fine cell, as `cells.py` lays it out."""
    offset = ((fine - piece["start"]) * 2 + 1) * piece["gain"]
    return _or_null(axis, piece["slot"] + _quotient(offset, piece["width"] * 2), is_missing)


def _or_null(axis: Axis, place: nw.Expr, is_missing: nw.Expr) -> nw.Expr:
    if not axis.nullable:
        return place
    return nw.when(is_missing).then(nw.lit(axis.null_cell)).otherwise(place).cast(nw.Int64)


def _quotient(offset: nw.Expr, step: int | nw.Expr) -> nw.Expr:
    """The whole part of offset / step, offset >= 0, although engines divide whole numbers as doubles.

    offset - offset % step is q * step with q < 2^41; its quotient in doubles is within 2^-10 of q, whatever is rounded.
    """
    return ((offset - offset % step) / step + 0.5).floor().cast(nw.Int64)


def staircase(value: nw.Expr, edges: Sequence[float | int], steps: Sequence[int]) -> nw.Expr:
    """steps[k], k being how many of the ascending edges are <= value: a binary search spelled out."""
    if not edges:
        return nw.lit(int(steps[0]), nw.Int64)
    middle = len(edges) // 2
    below = staircase(value, edges[:middle], steps[: middle + 1])
    return (
        nw.when(value < edges[middle]).then(below).otherwise(staircase(value, edges[middle + 1 :], steps[middle + 1 :]))
    )


def state(cut: Cut, cell_number: nw.Expr) -> nw.Expr:
    """The state of a cell under a public cut; neighbours of equal state are one stair."""
    if is_every_cell(cut):
        return cell_number.clip(0, len(cut.first) - 1)
    is_new = np.append(True, np.diff(cut.states) != 0)
    return staircase(cell_number, cut.first[is_new][1:].tolist(), cut.states[is_new].tolist())


def is_every_cell(cut: Cut) -> bool:
    """Whether every cell is its own state, null's the last: a grid of many cells needs no search then."""
    n_stairs, n_cells = len(cut.first), cut.axis.last + 1
    every = np.arange(n_stairs)
    if n_stairs != n_cells + cut.axis.nullable or not np.array_equal(cut.states, every):
        return False
    return np.array_equal(cut.first[:n_cells], every[:n_cells]) and cut.first[-1] in (n_cells - 1, cut.axis.null_cell)


def region(cut: RegionCut, cells: Sequence[nw.Expr]) -> nw.Expr:
    """The state of a row's cells under the public cut of a place: the nodes of the lattice, walked down from the root.

    A node is asked only where states differ in it, so there are about as many comparisons as states.
    """
    lattice, stairs, states = cut.lattice, cut.first.tolist(), cut.states.tolist()

    def walk(depth: int, start: int, first: tuple[int, ...], begin: int, end: int) -> nw.Expr:
        """The state of a row in the node at `depth` that begins at `start`, where stairs begin..end apply."""
        if end - begin == 1:
            return nw.lit(int(states[begin]), nw.Int64)
        axis, bit = lattice.order[depth]
        middle = start + (1 << (lattice.depth - depth - 1))
        upper = (*first[:axis], first[axis] + (1 << (lattice.axes[axis].bits - 1 - bit)), *first[axis + 1 :])
        at = bisect_left(stairs, middle, begin, end)
        # The upper half begins with the stair that reaches into it.
        reach = at if at < end and stairs[at] == middle else at - 1
        below, above = walk(depth + 1, start, first, begin, at), walk(depth + 1, middle, upper, reach, end)
        return nw.when(cells[axis] < upper[axis]).then(below).otherwise(above)

    return walk(0, 0, (0,) * lattice.n_axes, 0, len(stairs))


# ---------------------------------------------------------------------------------------------------------- keys


def key_layout(lattice: Lattice) -> list[list[int]]:
    """Which axes share a key: as few keys as their order allows, each of at most 62 bits, at least one."""
    return packed_layout([axis.bits for axis in lattice.axes])


def packed_layout(bits: Sequence[int]) -> list[list[int]]:
    """Which of several whole numbers of so many bits share one, as `key_layout` says."""
    layout: list[list[int]] = [[]]
    n_bits = 0
    for index, n_more in enumerate(bits):
        if n_bits + n_more > _KEY_BITS:
            layout.append([])
            n_bits = 0
        layout[-1].append(index)
        n_bits += n_more
    return layout


def bits_of_cut(cut: AnyCut) -> int:
    """Bits of the cell of a column, or of the state of a place."""
    return cut.axis.bits if isinstance(cut, Cut) else max(1, (cut.n_states - 1).bit_length())


def key(lattice: Lattice, indices: Sequence[int], cells: Sequence[nw.Expr]) -> nw.Expr:
    """The cells of some axes as one whole number, the first axis in its highest bits."""
    return packed([axis.bits for axis in lattice.axes], indices, cells)


def packed(bits: Sequence[int], indices: Sequence[int], numbers: Sequence[nw.Expr]) -> nw.Expr:
    """Some of several whole numbers, which have so many bits, as one, the first in its highest bits."""
    number = numbers[indices[0]]
    for index in indices[1:]:
        number = number * (1 << bits[index]) + numbers[index]
    return number


def cells_of_keys(lattice: Lattice, keys: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The cells (n, n_axes) that keys stand for."""
    cells = np.empty((len(keys[0]), lattice.n_axes), dtype=np.int64)
    for indices, packed in zip(key_layout(lattice), keys, strict=True):
        rest = packed
        for index in reversed(indices):
            bits = lattice.axes[index].bits
            cells[:, index] = rest & ((1 << bits) - 1)
            rest = rest >> bits
    return cells
