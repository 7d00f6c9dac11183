"""Geometry of a released tree: where its bins lie, in cells, in places and in the units of the columns. PUBLIC.

Reals keep their unit; every other column is measured in whole values above the low bound, a bin of k values
being k long. Along an axis with pieces everything is measured in places (`grid/pieces.py`), and becomes values
at the very end. Numbers that come out of a file are checked here before compiled loops use them.

    axes in a file     the lattice as JSON-ready data, and nodes checked against it
    boxes and leans    boxes of bins, and how the density leans inside them
    piles              rows at the round values that pieces begin at
    piece values       places to values, and values to places
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import MAX_BITS, Column, Real, whole_range
from spinney.compiled import compiled
from spinney.grid.axes import joint_lattice
from spinney.grid.codes import Codes, deinterleave, possible_nodes, split_axes
from spinney.grid.lattice import Axis, Lattice
from spinney.grid.pieces import Pieces, PlaceTable, in_points, place_table, to_places
from spinney.release.card import Card, check
from spinney.schema.schema import Schema
from spinney.tree.bins import NoisyBins, NoisyMoments

# ------------------------------------------------------------------------------------------------------- axes in a file
# The lattice of a release as JSON-ready data, and the nodes of a release checked against it.
#
# Loops over cells and codes are compiled and look nothing up twice, so what comes out of a file is measured here
# first: axes against the columns that they are of, nodes against the lattice.


# Ladders serve private bounds only and never reach a release; pieces are written where there are any.
_FIELDS = [name for name in Axis.__dataclass_fields__ if name not in ("edges", "pieces")]
_PIECE_FIELDS = list(Pieces.__dataclass_fields__)
_LISTS = ("starts", "slots", "points")
_WHOLE = ("bits", "first", "last", "step")
# The synthesizer whose axes may have pieces, and what files say of axes without them where the schema would give some.
_WITH_PIECES, _EVEN = "KDTreeSynthesizer", "even"
_FULL_WORD = np.uint64(2**64 - 1)


def axis_entries(lattice: Lattice, card: Card) -> dict[str, Any]:
    """What a file says of the axes: all of them, and whether they are even where the schema would give others."""
    entries: dict[str, Any] = {"axes": axes_to_list(lattice)}
    if card.synthesizer == _WITH_PIECES and lattice.axes != joint_lattice(card.schema._modelled).axes:
        entries["cells"] = _EVEN
    return entries


def lattice_from_entries(described: Mapping[str, Any], card: Card) -> Lattice:
    """Read what `axis_entries` gave; a ValueError unless axes that may have pieces are those of the schema.

    Files of the first version have no pieces, and say nothing of it; saved again, they say that their cells are even.
    """
    schema = card.schema._modelled
    is_even = described["format_version"] == 1 or described.get("cells") == _EVEN
    if card.synthesizer != _WITH_PIECES or is_even:
        return axes_from_list(described["axes"], schema)
    lattice = joint_lattice(schema)
    for axis, entry in zip(lattice.axes, described["axes"], strict=True):
        what = "cells" if axis.pieces is None else "pieces"
        check(
            _is_written(entry, _axis_to_dict(axis)), f"the {what} of column {axis.name!r} are not those of its schema"
        )
    return lattice


def _is_written(entry: Any, axis: dict[str, Any]) -> bool:
    """Whether an entry of a file is an axis as it is written: True is not 1 there, and 2.0 is not 2."""
    return json.dumps(entry, sort_keys=True) == json.dumps(axis, sort_keys=True)


def axes_to_list(lattice: Lattice) -> list[dict[str, Any]]:
    """All axes in order."""
    return [_axis_to_dict(axis) for axis in lattice.axes]


def _axis_to_dict(axis: Axis) -> dict[str, Any]:
    described = {name: getattr(axis, name) for name in _FIELDS}
    if axis.pieces is not None:
        pieces = {name: getattr(axis.pieces, name) for name in _PIECE_FIELDS}
        unit = None if axis.pieces.unit is None else str(axis.pieces.unit)
        described["pieces"] = pieces | {"unit": unit} | {name: list(pieces[name]) for name in _LISTS}
    return described


def axes_from_list(described: Any, schema: Schema) -> Lattice:
    """Even axes as `axes_to_list` gave them for these columns; ValueError where they are not that."""
    if not isinstance(described, list) or not all(isinstance(axis, dict) for axis in described):
        raise ValueError("axes are a list of entries")
    for axis in described:
        check("pieces" not in axis, "a column has pieces, and cells of this release are even")
        check(set(axis) == set(_FIELDS), "an axis with other entries than ours")
    axes = tuple(Axis(**axis) for axis in described)
    if [axis.name for axis in axes] != list(schema):
        raise ValueError("axes of other columns than the schema's")
    for axis in axes:
        if not _is_possible(axis, schema[axis.name]):
            raise ValueError(f"the axis of column {axis.name!r} does not fit the column")
    return Lattice(axes)


def _is_possible(axis: Axis, column: Column) -> bool:
    """Whether an axis can be of a column: its kind, its cells and its bounds."""
    if not column.is_read or any(type(getattr(axis, name)) is not int for name in _WHOLE):
        return False
    if axis.nullable is not column.nullable or not column.nullable <= axis.bits <= MAX_BITS + 1 or axis.step < 1:
        return False
    if not 0 <= axis.first <= axis.last < 1 << axis.value_bits:
        return False
    numbers = (axis.low, axis.high, axis.origin, axis.scale)
    if any(isinstance(number, bool) or not isinstance(number, (int, float)) for number in numbers):
        return False
    if isinstance(column, Real):
        is_of_column = (axis.kind, axis.low, axis.high) == ("real", column.low, column.high)
        return is_of_column and math.isfinite(axis.origin) and 0 < axis.scale < math.inf and math.isfinite(axis.edge)
    low, high = whole_range(column)
    is_of_column = (axis.kind, axis.low, axis.high, axis.first) == (column._axis_kind, low, high, 0)
    is_of_column &= axis.step == 1 or axis.kind == "integer"
    return is_of_column and axis.n_fine == -(-(high - low + 1) // axis.step)


def check_nodes(codes: Codes, depths: NDArray[np.int64], lattice: Lattice) -> None:
    """Raise a ValueError unless these are nodes of the lattice that rows can be in, in order, none inside another."""
    if not len(codes):
        return
    if depths.min() < 0 or depths.max() > lattice.depth:
        raise ValueError("nodes deeper than the lattice")
    masks = _masks(depths, lattice.n_words)
    if (codes & ~masks).any():
        raise ValueError("nodes with bits beyond their depth")
    if not (_is_before(codes[:-1], codes[1:]) & ((codes[1:] & masks[:-1]) != codes[:-1]).any(axis=1)).all():
        raise ValueError("nodes out of order, or inside each other")
    if not possible_nodes(codes, depths, lattice).all():
        raise ValueError("nodes where no row can be")


def _masks(depths: NDArray[np.int64], n_words: int) -> Codes:
    """Words with the first bits set, as many as the depth (n, n_words)."""
    n_bits = np.clip(depths[:, None] - 64 * np.arange(n_words), 0, 64)
    return np.where(n_bits == 0, np.uint64(0), _FULL_WORD << (64 - np.maximum(n_bits, 1)).astype(np.uint64))


def _is_before(codes: Codes, others: Codes) -> NDArray[np.bool_]:
    """Whether each code is smaller than the other, by its first word that differs."""
    result = np.zeros(len(codes), dtype=np.bool_)
    is_open = np.ones(len(codes), dtype=np.bool_)
    for word in range(codes.shape[1]):
        result |= is_open & (codes[:, word] < others[:, word])
        is_open &= codes[:, word] == others[:, word]
    return result


# ------------------------------------------------------------------------------------------------------ boxes and leans
# Boxes of bins, and how the density leans inside them.
#
# The lean of a bin along an axis follows from released counts alone: the last split along that axis divides a
# node into the half that holds the bin, with count c_own, and its sibling with c_sib. As in finite-volume
# schemes the density is taken as linear across the two, which moves the mean of the half toward the sibling by
#
#     edge * (c_sib / c_own - 1) / 12,        limited to a third of the edge.


Matrix = NDArray[np.float64]  # (n_bins, n_axes)

LARGEST_SHIFT = 1 / 3
# How much of its first cell a point takes up in places: next to nothing.
POINT_LENGTH = 2.0**-10


@dataclass(frozen=True, slots=True)
class Boxes:
    """Per bin and axis: low end and length of the values inside, and the share of rows that are null."""

    low: Matrix
    length: Matrix
    null_share: Matrix


def bin_boxes(bins: NoisyBins | NoisyMoments) -> Boxes:
    """The boxes of all bins, cut to what rows can have."""
    first, size = deinterleave(bins.codes, bins.depths, bins.lattice)
    shape = (len(bins), bins.lattice.n_axes)
    low, length, null_share = np.empty(shape), np.empty(shape), np.zeros(shape)
    for index, axis in enumerate(bins.lattice.axes):
        start = np.maximum(first[:, index], axis.first)
        stop = np.minimum(first[:, index] + size[:, index], axis.last + 1)
        if axis.nullable:
            holds_null = (first[:, index] <= axis.null_cell) & (first[:, index] + size[:, index] > axis.null_cell)
            # A bin that holds both: rows are uniform over its possible cells, of which null is one.
            n_value_cells = np.maximum(stop - start, 0)
            null_share[:, index] = np.where(holds_null, 1 / (n_value_cells + 1), 0)
            stop = np.maximum(stop, start)
        low[:, index], length[:, index] = extent(axis, start, stop)
    return Boxes(low, length, null_share)


def extent(axis: Axis, start: NDArray[np.int64], stop: NDArray[np.int64]) -> tuple[Matrix, Matrix]:
    """Cells start..stop-1 in the units of the column, or, where the axis has pieces, in places: low end and length."""
    if axis.pieces is not None:
        first, size = to_places(axis.pieces, start, stop - start)
        is_point = in_points(axis.pieces, start, stop)
        return first.astype(np.float64), np.where(is_point, POINT_LENGTH, size.astype(np.float64))
    if axis.kind == "real":
        low = np.maximum(axis.origin + start / axis.scale, axis.low)
        high = np.minimum(axis.origin + stop / axis.scale, axis.high)
        # The cells together end at the high bound; adding rounded widths must not stop short of it.
        high = np.where(stop == axis.last + 1, axis.high, high)
        return low, np.maximum(high - low, 0)
    n_values = int(axis.high) - int(axis.low) + 1
    begin, end = np.minimum(start * axis.step, n_values), np.minimum(stop * axis.step, n_values)
    return begin.astype(np.float64), (end - begin).astype(np.float64)


def shifts(bins: NoisyBins | NoisyMoments, counts: NDArray[Any]) -> Matrix:
    """How far the mean of each bin leans along each axis, in edges: between -1/3 and 1/3."""
    lattice = bins.lattice
    is_blind = blind_splits(lattice)
    before = np.concatenate([[0], np.cumsum(counts)])
    shift: Matrix = _shifts(bins.codes, bins.depths, before, split_axes(lattice), is_blind, lattice.n_axes)
    if not lattice.is_full:
        shift *= _both_halves_possible(bins)
    return shift


def blind_splits(lattice: Lattice) -> NDArray[np.bool_]:
    """Of which splits the halves lie not side by side: values and nulls, points and what lies behind them."""
    found = []
    for step in lattice.order:
        axis = lattice.axes[step.axis]
        is_at_points = axis.pieces is not None and step.bit - axis.nullable == axis.pieces.point_bit
        found.append((axis.nullable and step.bit == 0) or is_at_points)
    return np.array(found or [False])


def _both_halves_possible(bins: NoisyBins | NoisyMoments) -> NDArray[np.bool_]:
    """Where the sibling across the last split holds values at all; otherwise there is nothing to lean on."""
    first, size = deinterleave(bins.codes, bins.depths, bins.lattice)
    is_possible = np.ones(first.shape, dtype=np.bool_)
    for index, axis in enumerate(bins.lattice.axes):
        start = first[:, index] ^ size[:, index]
        is_possible[:, index] = (start <= axis.last) & (start + size[:, index] > axis.first)
    return is_possible


@compiled
def _shifts(
    codes: Codes,
    depths: NDArray[np.int64],
    before: NDArray[Any],
    order: NDArray[np.int64],
    is_blind: NDArray[np.bool_],
    n_axes: int,
) -> Matrix:
    n, n_words = codes.shape
    shift = np.zeros((n, n_axes))
    half = np.empty(n_words, dtype=np.uint64)
    for i in range(n):
        seen = 0
        done = np.zeros(n_axes, dtype=np.bool_)
        for position in range(depths[i] - 1, -1, -1):
            axis = order[position]
            if done[axis]:
                continue
            done[axis] = True
            seen += 1
            if not is_blind[position]:
                word, bit = position >> 6, np.uint64(1) << np.uint64(63 - (position & 63))
                is_upper = (codes[i, word] & bit) != 0
                # Start of the upper half of the node that this split divides.
                for w in range(n_words):
                    half[w] = codes[i, w] if w <= word else np.uint64(0)
                half[word] = codes[i, word] & ~((bit << np.uint64(1)) - np.uint64(1)) | bit
                middle = _position(codes, half)
                half[word] ^= bit
                start = _position(codes, half)
                half[word] |= bit
                stop = _position_after(codes, half, word, bit)
                lower, upper = before[middle] - before[start], before[stop] - before[middle]
                own, sibling = (upper, lower) if is_upper else (lower, upper)
                lean = min((sibling / own - 1) / 12, LARGEST_SHIFT) if own > 0 else 0.0
                shift[i, axis] = -lean if is_upper else lean
            if seen == n_axes:
                break
    return shift


@compiled
def _is_less(code: NDArray[np.uint64], other: NDArray[np.uint64]) -> bool:
    for word in range(code.size):
        if code[word] != other[word]:
            return bool(code[word] < other[word])
    return False


@compiled
def _position(codes: Codes, node: NDArray[np.uint64]) -> int:
    """How many codes come before the node."""
    low, high = 0, codes.shape[0]
    while low < high:
        middle = (low + high) // 2
        if _is_less(codes[middle], node):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _position_after(codes: Codes, node: NDArray[np.uint64], word: int, bit: np.uint64) -> int:
    """How many codes come before the end of the node whose last bit is `bit` of `word`."""
    end = node.copy()
    carry = bit
    for w in range(word, -1, -1):
        total = end[w] + carry
        overflows = total < end[w]
        end[w] = total
        if not overflows:
            return int(_position(codes, end))
        carry = np.uint64(1)
    return int(codes.shape[0])


# ---------------------------------------------------------------------------------------------------------------- piles
# Piles: how many rows of a leaf lie at the round values that its pieces begin at, where the leaf does not tell.
#
# A leaf that holds whole pieces knows nothing of their points. What other leaves of the release say about them is
# taken for it: along an axis, the share q of points in what lies in points or behind them. In such a leaf the point
# of a piece of length L takes up the first q L of its places and all else the rest, which moves a mean by q L / 2 up:
#
#     in half-edges of a leaf of m pieces, q / m
#
# These places lie one length of the axis further up than others, so that a place alone says which value it is.


Floats = NDArray[np.float64]

# Before leaves say anything: a quarter, believed as much as so large a part of all rows.
_USUAL_SHARE, _BELIEF = 0.25, 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Piles:
    """Which leaves hold whole pieces with points, along which axes, how many, and the share of points on each axis."""

    n_pieces: Floats  # (n_leaves, n_axes): 0 where a leaf holds none
    shares: Floats  # (n_axes,)

    def moved(self, means: Floats) -> Floats:
        """Means in half-edges, in places where points take up their share."""
        is_held = self.n_pieces > 0
        return np.where(is_held, means + self.shares / np.where(is_held, self.n_pieces, 1), means)

    def unmoved(self, means: Floats) -> Floats:
        """The same means in places where points take up none: what `moved` was given."""
        is_held = self.n_pieces > 0
        return np.where(is_held, means - self.shares / np.where(is_held, self.n_pieces, 1), means)

    def along(self, index: int) -> Piles:
        """The same of one axis alone."""
        return Piles(self.n_pieces[:, [index]], self.shares[[index]])

    def lifted(self, boxes: Boxes, moments: NoisyMoments) -> Boxes:
        """Boxes of leaves with whole pieces, one length of the axis further up."""
        lengths = np.array([0 if axis.pieces is None else axis.pieces.n_cells for axis in moments.lattice.axes])
        return replace(boxes, low=np.where(self.n_pieces > 0, boxes.low + lengths, boxes.low))


def find_piles(moments: NoisyMoments, weights: Floats) -> Piles | None:
    """What the leaves say about points; None where no axis has any."""
    lattice = moments.lattice
    if not any(axis.pieces is not None and axis.pieces.has_points for axis in lattice.axes):
        return None
    first, size = deinterleave(moments.codes, moments.depths, lattice)
    n_pieces, shares = np.zeros(first.shape), np.zeros(lattice.n_axes)
    belief = _BELIEF * max(float(weights.sum()), 1.0)
    for index, axis in enumerate(lattice.axes):
        if axis.pieces is None or not axis.pieces.has_points:
            continue
        start, stop = first[:, index], np.minimum(first[:, index] + size[:, index], axis.pieces.n_cells)
        is_value, is_point = start < stop, in_points(axis.pieces, start, stop)
        n_held = (stop - start) / axis.pieces.piece_length
        n_pieces[:, index] = np.where(is_value & ~is_point & (n_held >= 1), n_held, 0)
        at_points = float(weights[is_value & is_point & (n_held < 1)].sum())
        behind = float(weights[is_value & ~is_point & (n_held < 1)].sum())
        shares[index] = (at_points + _USUAL_SHARE * belief) / (at_points + behind + belief)
    return Piles(n_pieces, shares)


# --------------------------------------------------------------------------------------------------------- piece values
# Values from places along axes with pieces, and places from values: the last step of a draw, the first of a question.
#
# Inside a piece the two are linear in each other. A point is one value, at the very beginning of its piece; and where
# cells are as fine as fine cells or finer, values are multiples of the unit, as people write them.


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
