"""The lattice of a release as JSON-ready data, and the nodes of a release checked against it.

Loops over cells and codes are compiled and look nothing up twice, so what comes out of a file is measured here first:
axes against the columns that they are of, nodes against the lattice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import MAX_BITS, Column, Real, whole_range
from spinney.privacy.budget import parse_fraction
from spinney.release.card import Card
from spinney.release.contradictions import check
from spinney.schema.joint_axis import joint_lattice
from spinney.schema.lattice import Axis, Lattice
from spinney.schema.pieces import Pieces
from spinney.schema.table import Schema
from spinney.schema.zorder import Codes, possible_nodes

# Ladders serve private bounds only and never reach a release; pieces are written where there are any.
_FIELDS = [name for name in Axis.__dataclass_fields__ if name not in ("edges", "pieces")]
_PIECE_FIELDS = list(Pieces.__dataclass_fields__)
_LISTS = ("starts", "slots", "points")
_MOST_PIECES = 1 << 12
_LARGEST = 1 << 62
_WHOLE = ("bits", "first", "last", "step")
# The synthesizer whose axes may have pieces, and what files say of axes without them where the schema would give some.
_WITH_PIECES, _EVEN = "KDTreeSynthesizer", "even"
_FULL_WORD = np.uint64(2**64 - 1)


def axis_entries(lattice: Lattice, card: Card) -> dict[str, Any]:
    """What a file says of the axes: all of them, and whether they are even where the schema would give others."""
    entries: dict[str, Any] = {"axes": axes_to_list(lattice)}
    if card.synthesizer == _WITH_PIECES and lattice.axes != joint_lattice(card.schema.modelled).axes:
        entries["cells"] = _EVEN
    return entries


def lattice_from_entries(described: Mapping[str, Any], card: Card) -> Lattice:
    """Read what `axis_entries` gave; a ValueError unless pieces are those that follow from the schema, and all there.

    Files of the first version have none, and say nothing of it; saved again, they say that their cells are even.
    """
    schema = card.schema.modelled
    lattice = axes_from_list(described["axes"], schema)
    is_even = described["format_version"] == 1 or described.get("cells") == _EVEN
    if card.synthesizer == _WITH_PIECES and not is_even:
        for axis, own in zip(lattice.axes, joint_lattice(schema).axes, strict=True):
            has_none = axis.pieces is None and own.pieces is None
            what = "the cells" if has_none else "the pieces"
            check(axis == own, f"{what} of column {axis.name!r} are not those of its schema")
        return lattice
    for axis in lattice.axes:
        check(axis.pieces is None, f"column {axis.name!r} has pieces, and cells of this release are even")
    return lattice


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
    """Read what `axes_to_list` gave for these columns; ValueError where it is not that."""
    if not isinstance(described, list) or any(
        not isinstance(axis, dict) or set(axis) - {"pieces"} != set(_FIELDS) for axis in described
    ):
        raise ValueError("an axis with other entries than ours")
    axes = tuple(
        Axis(**(axis | {"pieces": pieces_from_dict(axis["pieces"])} if "pieces" in axis else axis))
        for axis in described
    )
    if [axis.name for axis in axes] != list(schema):
        raise ValueError("axes of other columns than the schema's")
    for axis in axes:
        if not _is_possible(axis, schema[axis.name]):
            raise ValueError(f"the axis of column {axis.name!r} does not fit the column")
    return Lattice(axes)


def pieces_from_dict(described: Any) -> Pieces:
    """Pieces that can be drawn from; ValueError where numbers are missing, out of order or out of range."""
    if not isinstance(described, dict) or set(described) != set(_PIECE_FIELDS):
        raise ValueError("pieces with other entries than ours")
    lists = [described[name] for name in _LISTS]
    if not all(isinstance(numbers, list) and 1 <= len(numbers) <= _MOST_PIECES for numbers in lists):
        raise ValueError("pieces without numbers, or with too many")
    wholes = [described[name] for name in ("n_fine", "n_cells", "zero", "offset")]
    if any(type(number) is not int or abs(number) >= _LARGEST for number in (*wholes, *chain(*lists))):
        raise ValueError("pieces with a number that is not whole, or too large")
    if type(described["has_points"]) is not bool:
        raise ValueError("pieces that say neither that they have points nor that they have none")
    unit = None if described["unit"] is None else parse_fraction(described["unit"], "unit")
    if unit is not None and unit <= 0:
        raise ValueError("pieces with a unit that is not positive")
    n_fine, n_cells, zero, offset = wholes
    starts, slots, points = map(tuple, lists)
    if len({len(starts), len(slots), len(points)}) > 1 or starts[0] != 0 or slots[0] != 0:
        raise ValueError("pieces that do not begin at 0, or of different numbers")
    for begins, end in ((starts, n_fine), (slots, n_cells)):
        if any(low >= high for low, high in pairwise((*begins, end))):
            raise ValueError("pieces out of order")
    if any(
        not low <= point < high
        for low, high, point in zip(starts, (*starts[1:], n_fine), points, strict=True)
        if point != -1
    ):
        raise ValueError("a point outside its piece")
    if any(low % (high - low) or (high - low) & (high - low - 1) for low, high in pairwise((*slots, n_cells))):
        raise ValueError("pieces that are no nodes of a tree")
    return Pieces(n_fine, n_cells, starts, slots, points, described["has_points"], zero, unit, offset)


def _is_possible(axis: Axis, column: Column) -> bool:
    """Whether an axis can be of a column: its kind, its cells and its bounds."""
    if not column.is_read or any(type(getattr(axis, name)) is not int for name in _WHOLE):
        return False
    if axis.nullable is not column.nullable or not column.nullable <= axis.bits <= MAX_BITS + 1 or axis.step < 1:
        return False
    if not 0 <= axis.first <= axis.last < 1 << axis.value_bits:
        return False
    if axis.pieces is not None and (axis.first, axis.last, axis.pieces.n_cells) != (
        0,
        (1 << axis.value_bits) - 1,
        1 << axis.value_bits,
    ):
        return False
    numbers = (axis.low, axis.high, axis.origin, axis.scale)
    if any(isinstance(number, bool) or not isinstance(number, (int, float)) for number in numbers):
        return False
    if isinstance(column, Real):
        is_of_column = (axis.kind, axis.low, axis.high) == ("real", column.low, column.high)
        is_of_column &= axis.pieces is None or axis.pieces.unit is not None
        return is_of_column and math.isfinite(axis.origin) and 0 < axis.scale < math.inf and math.isfinite(axis.edge)
    low, high = whole_range(column)
    is_of_column = (axis.kind, axis.low, axis.high, axis.first) == (column.axis_kind, low, high, 0)
    is_of_column &= axis.step == 1 or axis.kind == "integer"
    is_of_column &= axis.pieces is None or axis.kind == "integer"
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
