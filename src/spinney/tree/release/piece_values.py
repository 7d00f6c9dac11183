"""Values from places along axes with pieces, and places from values: the last step of a draw, the first of a question.

Inside a piece the two are linear in each other. A point is one value, at the very beginning of its piece; and where
cells are as fine as fine cells or finer, values are multiples of the unit, as people write them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.schema.lattice import Axis, Lattice
from spinney.schema.pieces import Pieces, PlaceTable, place_table
from spinney.tree.release.geometry import POINT_LENGTH, Boxes, extent
from spinney.tree.release.piles import Piles

Floats = NDArray[np.float64]


def to_values(rows: Floats, lattice: Lattice, piles: Piles | None = None) -> Floats:
    """Drawn places (n_axes, n_rows) as `to_frame` takes them. Where an axis has pieces, its row is overwritten."""
    for index, (axis, places) in enumerate(zip(lattice.axes, rows, strict=True)):
        if axis.pieces is not None:
            _set_values(axis, axis.pieces, places, _share(piles, index))
    return rows


def value_boxes(boxes: Boxes, lattice: Lattice, piles: Piles | None = None) -> Boxes:
    """Boxes in the units of the columns along all axes; a point has hardly any length."""
    if all(axis.pieces is None for axis in lattice.axes):
        return boxes
    low, length = boxes.low.copy(), boxes.length.copy()
    for index, axis in enumerate(lattice.axes):
        if axis.pieces is not None:
            lift = 0.0 if piles is None else np.where(piles.n_pieces[:, index] > 0, axis.pieces.n_cells, 0.0)
            begin, stop = (
                _numbers(axis, _fine_places(place_table(axis.pieces), end - lift))
                for end in (low[:, index], (low + length)[:, index])
            )
            low[:, index], length[:, index] = begin, np.maximum(stop - begin, 0)
    return Boxes(low, length, boxes.null_share)


def value_extent(axis: Axis, start: NDArray[np.int64], stop: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Cells start..stop-1 in the units of the column, whatever the axis: low end and length."""
    low, length = extent(axis, start, stop)
    if axis.pieces is None:
        return low, length
    table = place_table(axis.pieces)
    begin, end = (_numbers(axis, _fine_places(table, place)) for place in (low, low + length))
    if axis.kind != "real":  # in whole values, as on even axes
        begin, end = np.floor(begin), np.maximum(np.ceil(end), np.floor(begin) + 1)
    return begin, np.maximum(end - begin, 0)


def ends_to_places(values: Floats, lattice: Lattice, piles: Piles | None = None) -> tuple[Floats, Floats]:
    """Ends of boxes (n_boxes, n_axes) as places: what lies below them is what is smaller. And as those further up."""
    places, lifted = values.copy(), values.copy()
    for index, axis in enumerate(lattice.axes):
        if axis.pieces is not None:
            piece, inside, is_above = _places(axis, axis.pieces, values[:, index])
            table, share = place_table(axis.pieces), _share(piles, index)
            length = table.lengths[piece]
            behind = np.where(is_above, np.maximum(inside * length, POINT_LENGTH), 0.0)
            places[:, index] = table.slots[piece] + behind
            has_front = (table.points[piece] >= 0) & ~table.is_whole[piece]
            behind = np.where(is_above, share + (1 - share) * inside, 0.0) if share else inside
            lifted[:, index] = (
                axis.pieces.n_cells + table.slots[piece] + np.where(has_front, behind, inside * is_above) * length
            )
    return places, lifted


def _share(piles: Piles | None, index: int) -> float:
    return 0.0 if piles is None else float(piles.shares[index])


def _set_values(axis: Axis, pieces: Pieces, places: Floats, share: float) -> None:
    table = place_table(pieces)
    is_real = axis.kind == "real"
    front = np.where(table.points >= 0, _round_values(axis, pieces, table.points), np.nan)
    laws = np.stack([table.slots, table.lengths, table.starts, table.widths, front], axis=1)  # side by side
    # Pieces are whole numbers of the shortest, so the piece of a place is looked up by the shortest around it.
    of_shortest = table.among(np.arange(0, pieces.n_cells, pieces.piece_length))
    unit = (1.0, 1.0) if pieces.unit is None else (float(pieces.unit.numerator), float(pieces.unit.denominator))
    low, high = (axis.low, axis.high) if is_real else (0, int(axis.high) - int(axis.low) + 1)
    # A fine cell is worth so much, and begins so far up: reals by themselves, all else above the low bound.
    worth, origin = (1 / axis.scale, axis.origin) if is_real else (float(axis.step), 0.0)
    _fill_values(
        places,
        float(pieces.n_cells),
        pieces.piece_length,
        of_shortest,
        laws,
        table.is_whole,
        share,
        is_real,
        worth,
        origin,
        pieces.zero,
        unit,
        float(low),
        float(high),
    )


@compiled
def _fill_values(
    places: Floats,
    n_cells: float,
    piece_length: int,
    of_shortest: NDArray[np.int64],
    laws: Floats,
    is_whole: NDArray[np.bool_],
    share: float,
    is_real: bool,
    worth: float,
    origin: float,
    zero: int,
    unit: tuple[float, float],
    low: float,
    high: float,
) -> None:
    """Places to values, in place; NaN stays."""
    for i in range(places.size):
        place = places[i]
        if np.isnan(place):
            continue
        is_lifted = place >= n_cells
        place -= n_cells if is_lifted else 0.0
        shortest = min(max(int(place) // piece_length, 0), of_shortest.size - 1)
        piece = of_shortest[shortest]
        slot, length, start, width, front = laws[piece]
        inside = (place - slot) / length
        has_front = not np.isnan(front)
        if has_front and (is_whole[piece] or inside < (share if is_lifted else POINT_LENGTH / length)):
            places[i] = front
            continue
        if has_front and is_lifted:
            inside = (inside - share) / (1 - share)
        fine = start + inside * width
        if is_real and width <= length:  # one of the multiples, as people write them
            cell = min(max(np.floor(fine), start), start + width - 1)
            value = (cell - zero) * unit[0] / unit[1]
        else:
            value = origin + fine * worth
        places[i] = min(max(value, low), high) + 0.0  # adding 0 unsigns 0


def _places(axis: Axis, pieces: Pieces, values: Floats) -> tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]:
    """The piece of every value, which part of what lies behind its point is smaller, and whether its point is."""
    table = place_table(pieces)
    if axis.kind == "real":
        fine = (np.clip(values, axis.low, axis.high) - axis.origin) * axis.scale
        fine = np.where(values > axis.high, pieces.n_fine, fine)
    else:
        fine = np.clip(values, 0, int(axis.high) - int(axis.low) + 1) / axis.step
    fine = np.clip(fine, 0, pieces.n_fine)
    # A point lies before the first fine cell of its piece.
    begins = np.where((table.points >= 0) & ~table.is_whole, table.points, table.starts)
    piece = np.maximum(np.searchsorted(begins, fine, side="right") - 1, 0)
    if axis.kind == "real":
        is_exact = (table.widths <= table.lengths)[piece]
        cells = np.floor(fine)
        cells += _round_values(axis, pieces, cells) < values
        fine = np.where(is_exact, cells, fine)
    inside = np.clip((fine - table.starts[piece]) / table.widths[piece], 0, 1)
    is_above = (table.points[piece] < 0) | (values > _round_values(axis, pieces, table.points)[piece])
    return piece, np.where(table.is_whole[piece], 1.0, inside), is_above


def _fine_places(table: PlaceTable, places: Floats) -> Floats:
    """Places in fine cells."""
    piece = table.among(places)
    inside = (places - table.slots[piece]) / table.lengths[piece]
    return table.starts[piece] + inside * table.widths[piece]


def _numbers(axis: Axis, fine: Floats) -> Floats:
    """Places in fine cells as values: reals in their unit, all else in whole values above the low bound."""
    if axis.kind == "real":
        return np.clip(axis.origin + fine / axis.scale, axis.low, axis.high)
    return np.clip(fine * axis.step, 0, int(axis.high) - int(axis.low) + 1)


def _round_values(axis: Axis, pieces: Pieces, cells: NDArray[Any]) -> Floats:
    """The round values of fine cells: 0.3, and not 0.30000000000000004."""
    if axis.kind != "real" or pieces.unit is None:
        return (cells * axis.step + pieces.offset).astype(np.float64)
    multiples = (cells - pieces.zero) * float(pieces.unit.numerator) / float(pieces.unit.denominator)
    return np.clip(multiples, axis.low, axis.high) + 0.0  # adding 0 unsigns 0
