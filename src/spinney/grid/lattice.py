"""Lattice: how rows become cells, as plain data that every engine can translate. PUBLIC.

Each column is an axis of cells numbered from 0. The bits of a row's cell numbers, interleaved axis by axis with
the most significant first, are its *cell code*; a node of the tree at depth k is a k-bit prefix of a code.
`order` spells the interleaving out: bit i of a code is bit `order[i].bit` (from the top) of axis
`order[i].axis`.

    axis kind    cell of a value v
    real         floor((v - origin) * scale), moved into first..last
    integer      (v moved into low..high, minus low) // step
    category     position of v in the public list
    ladder       how many of the fixed `edges` are <= v

An axis with `pieces` is not even: what its kind's formula gives is a fine cell, of which piece k has those from
`starts[k]` on, `widths[k]` in number, and lays them over `gains[k]` cells (`pieces.py`):

    cell         slots[k] + floor((2 (fine - starts[k]) + 1) gains[k] / (2 widths[k]))

Cells of a column with `multiple_of` lie around its multiples. A nullable axis spends its top bit on the null
flag: null is cell 2^(bits-1), values lie below. Cells that no row can have (past the end of a list, outside the
stated bounds of a cube, the rest of the null half) are public knowledge and get no noise.

    lattice     `Axis` and `Lattice`
    building    lattices of trees, cubes and grids
    ladders     fixed magnitudes, for bounds that are estimated privately
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from spinney.columns import MAX_BITS, Column, Real, exact, whole_range
from spinney.errors import ParameterError, SchemaError
from spinney.schema.schema import Schema
from spinney.text import as_given

if TYPE_CHECKING:
    from spinney.grid.pieces import Pieces


AxisKind = Literal["real", "integer", "category", "ladder"]

# Codes longer than this are allowed but pointless; the limit keeps tables of per-depth laws small.
MAX_DEPTH = 4096

# Shorter ranges than this overflow when divided into 2^32 cells.
_SHORTEST = 1e-290
_LONGEST = 1e290
_FLOAT_STEPS = 2.0**50
_TOO_MANY = 2.0**40


class SplitStep(NamedTuple):
    """One bit of a code: which axis it cuts, and which bit of that axis it is, counted from the top."""

    axis: int
    bit: int


@dataclass(frozen=True, slots=True)
class Axis:
    """One column's cells. `first` and `last` are the cells that a non-null value can have."""

    name: str
    kind: AxisKind
    bits: int
    first: int
    last: int
    nullable: bool = False
    low: float | int = 0
    high: float | int = 0
    origin: float = 0.0  # real: where cell 0 starts; differs from low on a cube only
    scale: float = 1.0  # real: cells per unit
    step: int = 1  # integer: values per cell
    edges: tuple[float, ...] = ()  # ladder
    pieces: Pieces | None = None  # real and integer: where fine cells go

    @property
    def value_bits(self) -> int:
        return self.bits - self.nullable

    @property
    def null_cell(self) -> int:
        """The cell of a null, or -1 where the column has none."""
        return 1 << (self.bits - 1) if self.nullable else -1

    @property
    def n_possible(self) -> int:
        """How many cells some row can have."""
        n_values = self.last - self.first + 1 if self.pieces is None else self.pieces.n_possible
        return n_values + self.nullable

    @property
    def is_full(self) -> bool:
        """Whether every cell is possible."""
        return self.n_possible == 1 << self.bits

    @property
    def edge(self) -> float:
        """Length of the whole axis in units of the column, cells outside the bounds included; of pieces, in cells."""
        if self.pieces is not None:
            return float(1 << self.value_bits)
        if self.kind == "real":
            return (1 << self.value_bits) / self.scale
        if self.kind == "integer":
            return float((1 << self.value_bits) * self.step)
        return float(1 << self.value_bits)

    @property
    def n_leading(self) -> int:
        """How many bits come before the first round; the null flag is one of them."""
        n_bits = 0 if self.pieces is None else self.pieces.n_leading
        return n_bits + self.nullable if n_bits else 0

    @property
    def n_fine(self) -> int:
        """How many cells the formula of the axis's kind has, before pieces lay them out anew."""
        return self.last + 1 if self.pieces is None else self.pieces.n_fine


@dataclass(frozen=True)
class Lattice:
    """The axes of a table in column order."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        if self.depth > MAX_DEPTH:
            raise SchemaError(
                f"the lattice has {self.depth} bits over {len(self.axes)} columns, more than {MAX_DEPTH}; "
                "set smaller `bits` on some columns"
            )

    @property
    def n_axes(self) -> int:
        return len(self.axes)

    @cached_property
    def depth(self) -> int:
        """Bits of a full cell code: the deepest possible tree."""
        return sum(axis.bits for axis in self.axes)

    @property
    def n_words(self) -> int:
        """64-bit words that hold one code, left-aligned."""
        return max(1, -(-self.depth // 64))

    @cached_property
    def order(self) -> tuple[SplitStep, ...]:
        """The cyclic axis order: one bit of every axis per round, axes that have run out left aside.

        Leading bits of axes with pieces come before the first round.
        """
        leading = [axis.n_leading for axis in self.axes]
        steps = [SplitStep(index, bit) for index, n_bits in enumerate(leading) for bit in range(n_bits)]
        rounds = max((axis.bits for axis in self.axes), default=0)
        steps += [
            SplitStep(index, done + n_bits)
            for done in range(rounds)
            for index, (axis, n_bits) in enumerate(zip(self.axes, leading, strict=True))
            if done + n_bits < axis.bits
        ]
        return tuple(steps)

    @cached_property
    def is_full(self) -> bool:
        """Whether every code is possible."""
        return all(axis.is_full for axis in self.axes)

    def bits_at(self, depth: int) -> list[int]:
        """How many bits of each axis a prefix of `depth` bits fixes."""
        used = [0] * self.n_axes
        for step in self.order[:depth]:
            used[step.axis] += 1
        return used

    def depth_for_edge(self, edge: float) -> int:
        """The smallest depth at which every bin edge is at most `edge`, in units of the columns.

        With d axes of length R this is d * log2(R / edge), the paper's h for s1 and h' for s2.
        """
        for depth in range(self.depth + 1):
            used = self.bits_at(depth)
            if all(axis.edge / 2 ** max(0, n - axis.nullable) <= edge for axis, n in zip(self.axes, used, strict=True)):
                return depth
        raise ParameterError(f"no bin edge as small as {edge:g} exists on this lattice; raise `bits` on the columns")


# ------------------------------------------------------------------------------------------------------------- building


# Bits of a column that is a tree by itself, unless it states its own.
_BITS_ALONE = 20
# Columns of no more possible cells than this are not cut by a tree of their own: every cell is a leaf.
_FEW_CELLS = 32


def needs_tree(axis: Axis) -> bool:
    """Whether a column of a forest is cut by a tree: numbers, dates and times of more than a few possible cells."""
    return axis.kind != "category" and has_many_cells(axis)


def has_many_cells(axis: Axis) -> bool:
    """Whether a column of a forest has more possible cells than are well looked at by themselves."""
    return axis.n_possible > _FEW_CELLS


def tree_lattice(schema: Schema, *, axes: str = "boxes", least_bits: int = 4) -> Lattice:
    """The lattice of a tree: powers of two on every real axis.

    Columns without stated `bits` get 60 / (number of columns), between `least_bits` and 20. Integers and dates get no
    more than they need for one cell per value, categories exactly that. `axes="cube"` makes all edges as long as the
    longest, centred, as the paper does.
    """
    bits = min(_BITS_ALONE, max(least_bits, 60 // len(schema)))
    is_text = isinstance(axes, str)
    if is_text and axes == "boxes":
        stated = {name: bits if column.bits is None else column.bits for name, column in schema.items()}
        return Lattice(tuple(halving_axis(name, column, bits=stated[name]) for name, column in schema.items()))
    if not is_text or axes != "cube":
        raise ParameterError(f"axes={as_given(axes)} is not 'boxes' or 'cube'")
    reals: dict[str, Real] = {}
    for name, column in schema.items():
        if not isinstance(column, Real) or column.nullable:
            raise SchemaError(f"axes='cube' needs real columns without nulls, and column {name!r} is not; use 'boxes'")
        reals[name] = column
    return Lattice(_cube_axes(reals, bits))


def halving_axis(name: str, column: Column, *, bits: int | None = None) -> Axis:
    """A column in up to 2^bits equal cells, which halve its range again and again; those of steps lie around them.

    By default there are as many bits as the column states, or as one by itself has in a tree.
    """
    if bits is None:
        bits = _BITS_ALONE if column.bits is None else column.bits
    if isinstance(column, Real):
        return _even_axis(name, column, max_cells=1 << bits)
    return whole_axis(name, column, max_cells=1 << bits)


def real_axis(name: str, column: Real, *, n_cells: int, width: float | None = None) -> Axis:
    """`n_cells` equal cells over the bounds; with `width`, cells of that width starting at the low bound."""
    value_bits = max(0, (n_cells - 1).bit_length())
    return Axis(
        name=name,
        kind="real",
        bits=value_bits + column.nullable,
        first=0,
        last=n_cells - 1,
        nullable=column.nullable,
        low=column.low,
        high=column.high,
        origin=column.low,
        scale=n_cells / _length(name, column) if width is None else 1 / width,
    )


def _even_axis(name: str, column: Real, *, max_cells: int) -> Axis:
    """`max_cells` equal cells; with `multiple_of`, as many or fewer around multiples, so that draws round inside them.

    Steps so fine that floats cannot tell such cells apart are left to the rounding.
    """
    if column.multiple_of is None:
        return real_axis(name, column, n_cells=max_cells)
    first, last = (exact(end) for end in column._multiples)
    step = exact(column.multiple_of)
    n_steps = round((last - first) / step) + 1
    per_cell = -(-n_steps // max_cells)
    width = float(step * per_cell)
    if not are_floats_apart(width, column):
        return real_axis(name, column, n_cells=max_cells)
    axis = real_axis(name, column, n_cells=-(-n_steps // per_cell), width=width)
    return replace(axis, origin=float(first - step / 2))


def are_floats_apart(width: float, column: Real) -> bool:
    """Whether floats tell cells of this width apart, wherever in the column they lie."""
    largest = max(abs(column.low), abs(column.high))
    return bool(_SHORTEST < width < _LONGEST and largest + width / 2 < width * _FLOAT_STEPS)


def _length(name: str, column: Real) -> float:
    """The range high - low, where floats can divide it into cells."""
    length: float = column.high - column.low
    if not _SHORTEST < length < math.inf:
        raise SchemaError(f"column {name!r}: the bounds {column.low}..{column.high} are too close or too far apart")
    return length


def whole_axis(name: str, column: Column, step: int | None = None, *, max_cells: int = 1 << MAX_BITS) -> Axis:
    """Cells of `step` whole values each, from the first value up; by default, of so many that `max_cells` are enough.

    Categories have one cell each, however many there are.
    """
    if not column.is_read:
        raise SchemaError(f"column {name!r} is of type {column.type_name}, which has no cells; leave it out")
    low, high = whole_range(column)
    if step is None:
        # What rounds to one value stays in one cell.
        fewest = -(-(high - low + 1) // (column.step * max_cells)) * column.step
        step = 1 if column._axis_kind == "category" else fewest
    n_cells = -(-(high - low + 1) // step)
    return Axis(
        name=name,
        kind=column._axis_kind,
        bits=(n_cells - 1).bit_length() + column.nullable,
        first=0,
        last=n_cells - 1,
        nullable=column.nullable,
        low=low,
        high=high,
        step=step,
    )


def _cube_axes(columns: Mapping[str, Real], bits: int) -> tuple[Axis, ...]:
    edge = max(_length(name, column) for name, column in columns.items())
    axes = []
    for name, column in columns.items():
        n_bits = column.bits if column.bits is not None else bits
        scale = (1 << n_bits) / edge
        origin = (column.low + column.high) / 2 - edge / 2
        first, last = (
            min(max(math.floor((bound - origin) * scale), 0), (1 << n_bits) - 1) for bound in (column.low, column.high)
        )
        axes.append(
            Axis(name, "real", n_bits, first, last, low=column.low, high=column.high, origin=origin, scale=scale)
        )
    return tuple(axes)


def grid_lattice(
    schema: Schema, *, bins: int | Mapping[str, int] | None = None, width: float | Mapping[str, float] | None = None
) -> Lattice:
    """The lattice of a grid: `bins` equal bins per column, or bins of a given `width` from the low bound up.

    Columns with fewer values than bins get one bin per value. A mapping sets single columns; it must name them all.
    """
    axes = []
    for name, column in schema.items():
        n_bins = _for_column(bins, name, "bins")
        edge = _for_column(width, name, "bin_width")
        if isinstance(column, Real):
            if edge is not None:
                n_bins = max(1, math.ceil(round(min(_length(name, column) / edge, _TOO_MANY), 9)))
            assert n_bins is not None
            n_cells = _checked_bins(name, int(n_bins))
            if edge is None:
                axes.append(_even_axis(name, column, max_cells=n_cells))
            else:
                axes.append(real_axis(name, column, n_cells=n_cells, width=edge))
            continue
        step = None
        if edge is not None and column._axis_kind == "integer":
            low, high = whole_range(column)
            step = min(max(1, round(edge)), high - low + 1)
            n_bins = -(-(high - low + 1) // step)
        n_bins = 1 << MAX_BITS if n_bins is None else n_bins
        axes.append(whole_axis(name, column, step, max_cells=_checked_bins(name, int(n_bins))))
    return Lattice(tuple(axes))


def _for_column(value: float | Mapping[str, float] | None, name: str, argument: str) -> float | None:
    if not isinstance(value, Mapping):
        return value
    if name not in value:
        raise ParameterError(f"{argument} does not name column {name!r}; give it an entry")
    return value[name]


def _checked_bins(name: str, n_bins: int) -> int:
    if not 1 <= n_bins <= 1 << MAX_BITS:
        raise ParameterError(
            f"{n_bins:g} bins on column {name!r} is not in 1..2^{MAX_BITS}; lower bins or raise bin_width"
        )
    return n_bins


# -------------------------------------------------------------------------------------------------------------- ladders


def ladder_axis(name: str, *, nullable: bool, smallest: int, largest: int) -> Axis:
    """A fixed ladder of magnitudes 2^smallest .. 2^largest for both signs, with 0 between: public for any column."""
    rungs = [2.0**i for i in range(smallest, largest + 1)]
    edges = tuple([-r for r in reversed(rungs)] + [0.0] + rungs)
    n_cells = len(edges) + 1
    return Axis(
        name=name,
        kind="ladder",
        bits=(n_cells - 1).bit_length() + nullable,
        first=0,
        last=n_cells - 1,
        nullable=nullable,
        edges=edges,
    )
