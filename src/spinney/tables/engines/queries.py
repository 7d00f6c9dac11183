"""The questions to a source as queries over a lazy frame: group-bys whose answers are counts. SENSITIVE.

    expressions    the lattice's formulas, bit for bit those of the compiled loops
    keys           cells of several axes as whole numbers of at most 62 bits
    rules          whether rows break a rule
    queries        `Rows`: builds the queries and reads their answers

An engine runs the queries; nothing here looks at a row. A row that cannot be read falls into a group of its
own, below all cells, which names the column: finding it costs no pass over the table.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Category, Column, Stepped
from spinney.columns.identifier import Key
from spinney.columns.reading import Physical, Reading
from spinney.counting.counts import CellCounts, missing
from spinney.counting.states import AnyCut, Cut, RegionCut, StateRows
from spinney.errors import InputError
from spinney.grid.codes import interleave
from spinney.grid.lattice import Axis, Lattice
from spinney.grid.pieces import Pieces, piece_table
from spinney.schema.rules import AtMost, Clause, Derived, OnlyOn, Related, Rule, Sum
from spinney.schema.rules.base import ValueSet, universe
from spinney.schema.rules.calendar import slack_of
from spinney.schema.rules.related import quotient, steps_expression
from spinney.schema.schema import Schema, parts_first
from spinney.tables.source import HeldRows
from spinney.tables.tally import FARTHEST_STEP, OFF_STEP, Tallies, Tally, bounds_of, place_of_other
from spinney.text import Sensitive

# ---------------------------------------------------------------------------------------------------------- expressions
# The lattice as expressions: the formulas of `counting/counts.py` for engines whose rows stay where they are.
#
# Values become numbers as each kind of column says (`columns/reading.py`), and numbers become cells as in
# `counting/counts.py`, but as narwhals expressions, which Spark (or DuckDB, or polars) evaluates next to the
# rows. They use doubles and 64-bit integers in the same operations as the compiled loops, so cells are equal to
# the last bit: engines.proof.md says why, and tests/conformance checks it.


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
    return offset if axis.step == 1 else quotient(offset, axis.step)


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
    return _or_null(axis, piece["slot"] + quotient(offset, piece["width"] * 2), is_missing)


def _or_null(axis: Axis, place: nw.Expr, is_missing: nw.Expr) -> nw.Expr:
    if not axis.nullable:
        return place
    return nw.when(is_missing).then(nw.lit(axis.null_cell)).otherwise(place).cast(nw.Int64)


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


# ----------------------------------------------------------------------------------------------------------------- keys


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


# ---------------------------------------------------------------------------------------------------------------- rules
# Whether rows break a rule, as expressions: what `Rule.holds` says of numbers, for engines that answer queries.


# A column as a number, and whether it is missing.
Numbers = Mapping[str, tuple[nw.Expr, nw.Expr]]


def breaks(rule: Rule, numbers: Numbers, schema: Schema) -> nw.Expr:
    """Whether a row breaks a rule."""
    if isinstance(rule, AtMost):
        (value, is_missing), (other, is_other_missing) = (numbers[name] for name in rule.columns)
        return ~is_missing & ~is_other_missing & (value > other)
    if isinstance(rule, Sum):
        return _is_no_sum(rule, numbers, schema)
    if isinstance(rule, Derived):
        return _is_not_derived(rule, numbers, schema)
    if isinstance(rule, OnlyOn):
        value, is_missing = numbers[rule.column]
        least, most = universe(schema[rule.column])
        runs = rule.runs(schema[rule.column])
        ends = [int(runs.first[0]) - 1, *runs.last.tolist()]
        return ~is_missing & (value >= least) & (value <= most) & (value > staircase(value, runs.first.tolist(), ends))
    if isinstance(rule, Related):
        return _has_no_ratio(rule, numbers, schema)
    return reduce(or_, [~_obeys(clause, numbers, schema) for clause in rule.clauses(schema)])


def _obeys(clause: Clause, numbers: Numbers, schema: Schema) -> nw.Expr:
    return reduce(or_, [_is_in(*numbers[name], allowed, schema, name) for name, allowed in clause.items()])


def _is_in(value: nw.Expr, is_missing: nw.Expr, allowed: ValueSet, schema: Schema, name: str) -> nw.Expr:
    """Whether a value is in a set; those beyond the bounds count as the nearer bound."""
    least, most = universe(schema[name])
    inside = nw.lit(False)
    points = [low for low, high in allowed.ranges if low == high and least < low < most]
    if points:
        inside = value.is_in(points)
    for low, high in allowed.ranges:
        if low == high and least < low < most:
            continue
        is_here = value >= low if low > least else nw.lit(True)
        inside = inside | (is_here & (value <= high) if high < most else is_here)
    return (~is_missing & inside) | is_missing if allowed.has_null else ~is_missing & inside


def _is_no_sum(rule: Sum, numbers: Numbers, schema: Schema) -> nw.Expr:
    total, is_total_missing = numbers[rule.column]
    total = total.cast(nw.Float64)
    gap = rule.difference(total, {name: numbers[name][0].cast(nw.Float64) for name in rule.sources})
    low, high, part = rule.allowed(schema)
    slack = total.abs() * part
    is_missing = reduce(or_, [numbers[name][1] for name in rule.sources])
    is_off = is_missing | (gap < low - slack) | (gap > high + slack)
    is_wrongly_missing = ~is_missing if rule.residual is None else nw.lit(False)
    return nw.when(is_total_missing).then(is_wrongly_missing).otherwise(is_off)


def _has_no_ratio(rule: Related, numbers: Numbers, schema: Schema) -> nw.Expr:
    found = [Reading(*numbers[name], nw.lit(False)) for name in rule.columns]
    steps, base_steps = (steps_expression(schema[name], one) for name, one in zip(rule.columns, found, strict=True))
    has_ratio = rule.place_expression(steps, base_steps, schema) < len(rule.ratios)
    return found[0].is_missing | found[1].is_missing | ~has_ratio


def _is_not_derived(rule: Derived, numbers: Numbers, schema: Schema) -> nw.Expr:
    """Whether the column is another value than its source's group has."""
    value, is_missing = numbers[rule.column]
    if len(rule.sources) > 1:
        return _is_not_derived_of_several(rule, numbers, schema)
    name = rule.sources[0]
    if rule.part is not None or (rule.is_arithmetic and not schema[name].listed):
        return _is_not_computed(rule, numbers, schema)
    is_broken = nw.lit(False)
    for number, group in rule.groups(schema):
        is_here = _is_in(*numbers[name], group, schema, name)
        is_other = ~is_missing if number is None else is_missing | (value != number)
        is_broken = is_broken | (is_here & is_other)
    return is_broken


def _is_not_computed(rule: Derived, numbers: Numbers, schema: Schema) -> nw.Expr:
    """Whether the column is another part of a date, or another product, than its source has."""
    (value, is_missing), (source, is_source_missing) = (numbers[name] for name in rule.columns)
    null = rule.null_number(schema)
    if rule.part is not None:
        starts, labels = rule.bands(schema)
        is_other = value != staircase(source, starts, [int(label) for label in labels])
    elif rule.times is None:
        is_other = value != source
    else:
        product = source.cast(nw.Float64) * rule.share
        is_other = (value.cast(nw.Float64) - product).abs() > slack_of(schema[rule.column])
    is_other_than_null = ~is_missing if null is None else is_missing | (value != null)
    return nw.when(is_source_missing).then(is_other_than_null).otherwise(is_missing | is_other)


def _is_not_derived_of_several(rule: Derived, numbers: Numbers, schema: Schema) -> nw.Expr:
    value, is_missing = numbers[rule.column]
    default, null, outcomes = rule.outcomes(schema)
    is_named, is_right = nw.lit(False), nw.lit(False)
    for places, number in outcomes.items():
        is_here = nw.lit(True)
        for name, place in zip(rule.sources, places, strict=True):
            is_here = is_here & (numbers[name][0] == place)
        is_named = is_named | is_here
        is_right = is_right | (is_here & ~is_missing & (value == number))
    if default is not None:
        is_right = is_right | (~is_named & ~is_missing & (value == default))
    is_source_missing = reduce(or_, [numbers[name][1] for name in rule.sources])
    is_right_null = is_missing if null is None else ~is_missing & (value == null)
    return ~nw.when(is_source_missing).then(is_right_null).otherwise(is_right)


# -------------------------------------------------------------------------------------------------------------- queries
# `Rows` builds the queries and reads their answers; an engine runs them.
#
# Of every column i of the schema, a frame has its value (ci), and a query its number (vi), whether it is
# missing (mi) and whether it is wrong (wi).


Frame = nw.LazyFrame[Any]
# A few public values as a frame that can be joined with the rows.
SmallFrame = Callable[[dict[str, list[Any]]], Frame]

# Cells that are taken apart at once: they take a word for each axis.
_AT_ONCE = 1 << 18
# What the columns of tallies say, by their first letters.
_TALLIED = dict(m="n_missing", w="n_wrong", b="n_below", a="n_above", o="n_off_step", u="n_other")  # noqa: C408
# Places in a list of so many values fit into a byte with a sign.
_FEW_VALUES = 1 << 7
_SMALLEST = {np.dtype(np.uint8): (nw.Int8, 1 << 7), np.dtype(np.uint16): (nw.Int16, 1 << 15)}


def plain(index: int) -> str:
    """What column `index` of a schema is called in a query: names of a table may hold dots, or differ by case alone."""
    return f"c{index}"


class Rows(Sensitive):
    """A lazy frame under a schema. Its columns are called `plain(0)`, ...; days and moments are whole numbers."""

    def __init__(
        self, frame: Frame, schema: Schema, small_frame: SmallFrame, index: Mapping[str, int] | None = None
    ) -> None:
        self._frame = frame
        self._schema = schema
        self._small_frame = small_frame
        # Columns keep the numbers that they were opened with, whichever of them are looked at.
        self._index = {name: place if index is None else index[name] for place, name in enumerate(schema)}
        self._dtypes = frame.collect_schema()

    def with_schema(self, schema: Schema) -> Rows:
        return Rows(self._frame, schema, self._small_frame, self._index)

    # ------------------------------------------------------------------------------------------------- queries

    def n_rows(self) -> Frame:
        """One row: how many rows there are (n)."""
        return self._frame.select(n=nw.len())

    def cell_counts(self, lattice: Lattice) -> Frame:
        """How many rows have each combination of keys: columns k0, k1, ..., n."""
        numbers, cells = self._cells_of(lattice.axes)
        layout = key_layout(lattice)
        keys = [key(lattice, indices, cells) for indices in layout]
        names = [f"k{index}" for index in range(len(keys))]
        keys[0] = self._or_fault(keys[0], [axis.name for axis in lattice.axes])
        packed = numbers.select(**dict(zip(names, keys, strict=True)))
        return packed.group_by(*names).agg(n=nw.len())

    def column_counts(self, lattices: Sequence[Lattice]) -> Frame:
        """Counts on several lattices of one key each, in one pass: columns which, k0, n."""
        numbers, cells = self._cells_of([axis for lattice in lattices for axis in lattice.axes])
        packed, places = {}, iter(cells)
        for which, lattice in enumerate(lattices):
            names = [axis.name for axis in lattice.axes]
            here = [next(places) for _ in names]
            packed[str(which)] = self._or_fault(key(lattice, range(len(names)), here), names)
        long = numbers.select(**packed).unpivot(on=list(packed), variable_name="which", value_name="k0")
        return long.group_by("which", "k0").agg(n=nw.len())

    def column_cells(self, axes: Sequence[Axis]) -> Frame:
        """The cells of all rows on some axes, packed as `packed_layout` says: columns p0, p1, ..., or faults."""
        numbers, cells = self._cells_of(axes)
        bits, chosen = [axis.bits for axis in axes], {}
        for place, indices in enumerate(packed_layout(bits)):
            names = [axes[index].name for index in indices]
            chosen[f"p{place}"] = self._or_fault(packed(bits, indices, cells), names)
        return numbers.select(**chosen)

    def value_counts(self, name: str) -> Frame:
        """How many rows have each value of a category: columns value, n; null is a value too."""
        column, index = self._schema[name], self._index[name]
        assert isinstance(column, Category)
        dtype = self._dtypes[plain(index)]
        key = column._lookup_key(nw.col(plain(index)), dtype)
        if column.is_text and dtype.is_float():  # nulls alone
            key = nw.when(nw.lit(False)).then(nw.lit(""))
        return self._frame.select(value=key).group_by("value").agg(n=nw.len())

    def bad_rows(self) -> Frame:
        """One row: of each column i, how many values are wrong (wi), and how many missing where none may be (mi)."""
        names = [name for name, column in self._schema.items() if column.is_read and not isinstance(column, Key)]
        counts = {}
        for name in names:
            index = self._index[name]
            counts[f"w{index}"] = nw.col(f"w{index}").cast(nw.Int64).sum()
            if not self._schema[name].nullable:
                counts[f"m{index}"] = nw.col(f"m{index}").cast(nw.Int64).sum()
        return self._numbers(names).select(**counts)

    def tallies(self, names: Sequence[str], rules: Sequence[Rule]) -> Frame:
        """One row: the tallies of some columns, to be read by `read_tallies`."""
        counts: dict[str, nw.Expr] = {"n": nw.len()}
        for name in names:
            index = self._index[name]
            value, is_missing = self._column(name)
            is_read = ~is_missing & ~nw.col(f"w{index}")
            flags = {"w": nw.col(f"w{index}"), "m": is_missing}
            bounds = bounds_of(self._schema[name])
            if bounds is not None:
                flags |= {"b": is_read & (value < bounds[0]), "a": is_read & (value > bounds[1])}
            if (is_off := _is_off_step(self._schema[name], value)) is not None:
                flags["o"] = is_read & is_off
            if (place := place_of_other(self._schema[name])) is not None:
                flags["u"] = is_read & (value == place)
            counts |= {f"{kind}{index}": _how_many(flag) for kind, flag in flags.items()}
            present = nw.when(is_read).then(value)
            counts |= {f"l{index}": present.min(), f"h{index}": present.max()}
        counts |= {f"r{place}": _how_many(self._breaks(rule)) for place, rule in enumerate(rules)}
        return self._numbers(names).select(**counts)

    def extremes(self, name: str) -> Frame:
        """One row: the smallest and the largest number of a column (low, high), null where there is none."""
        value, is_missing = self._column(name)
        present = nw.when(~is_missing).then(value)
        return self._numbers([name]).select(low=present.min(), high=present.max())

    def states(self, cuts: Sequence[AnyCut], dtype: np.dtype[Any]) -> Frame:
        """The states of all rows, to be read into `dtype`: columns s0, s1, ..., moved down to fit into signed bytes."""
        kind, half = _SMALLEST[dtype]
        numbers = self._numbers((name for cut in cuts for name in cut.names), cuts=cuts)
        places: dict[str, nw.Expr] = {}
        chosen: dict[str, nw.Expr] = {}
        for which, cut in enumerate(cuts):
            if not isinstance(cut, Cut):
                cells = {f"a{which}_{index}": axis for index, axis in enumerate(cut.lattice.axes)}
                places |= {name: cell(axis, *self._column(axis.name)) for name, axis in cells.items()}
                found = region(cut, [nw.col(name) for name in cells])
                chosen[f"s{which}"] = (found.cast(nw.Int64) - half).cast(kind)
                continue
            value, is_missing = self._column(cut.axis.name)
            if self._is_looked_up(cut.axis.name):
                here = nw.col(f"s{self._index[cut.axis.name]}")
                if cut.axis.nullable:
                    null_state = int(cut.states[np.searchsorted(cut.first, cut.axis.null_cell, side="right") - 1])
                    here = nw.when(is_missing).then(nw.lit(null_state)).otherwise(here)
                places[f"a{which}"], found = here, nw.col(f"a{which}")
            else:
                # A column of its own: written out, the cell would be computed anew at every stair.
                places[f"a{which}"], found = cell(cut.axis, value, is_missing), state(cut, nw.col(f"a{which}"))
            chosen[f"s{which}"] = (found.cast(nw.Int64) - half).cast(kind)
        return numbers.select(**places).select(**chosen)

    def cut_cells(self, cuts: Sequence[AnyCut]) -> Frame:
        """Of every cut of a column its cell, which is quick to compute, of a place its state: packed, p0, p1, ..."""
        numbers = self._numbers(name for cut in cuts for name in cut.names)
        cells: dict[str, nw.Expr] = {}
        found: list[nw.Expr] = []
        for which, cut in enumerate(cuts):
            axes = [cut.axis] if isinstance(cut, Cut) else cut.lattice.axes
            here = {f"a{which}_{index}": axis for index, axis in enumerate(axes)}
            cells |= {name: cell(axis, *self._column(axis.name)).cast(nw.Int64) for name, axis in here.items()}
            places = [nw.col(name) for name in here]
            found.append(places[0] if isinstance(cut, Cut) else region(cut, places))
        bits = [bits_of_cut(cut) for cut in cuts]
        chosen = {f"p{at}": packed(bits, indices, found) for at, indices in enumerate(packed_layout(bits))}
        return numbers.select(**cells).select(**chosen)

    def numbers_and_key(self) -> Frame:
        """All rows: every column as a number (vi), whether it is missing where it may be (mi), and the key (k)."""
        names = [name for name in parts_first(self._schema) if not isinstance(self._schema[name], Key)]
        chosen: dict[str, nw.Expr] = {}
        for name in names:
            index, column = self._index[name], self._schema[name]
            is_listed = 0 < len(column.listed) <= _FEW_VALUES
            chosen[f"v{index}"] = nw.col(f"v{index}").cast(nw.Int8) if is_listed else nw.col(f"v{index}")
            if column.nullable:
                chosen[f"m{index}"] = nw.col(f"m{index}")
        key = self._key
        if key is not None:
            chosen["k"] = nw.col("k")
        return self._numbers(names, also={} if key is None else {"k": key}).select(**chosen)

    @property
    def _key(self) -> nw.Expr | None:
        """What says whose row it is, if anything does."""
        keys = [self._index[name] for name, column in self._schema.items() if isinstance(column, Key)]
        return nw.col(plain(keys[0])) if keys else None

    # ------------------------------------------------------------------------------------------------- answers

    def read_numbers(self, rows: HeldRows, start: int, answer: pa.Table) -> None:
        """Fill in rows of what `numbers_and_key` answered, of which there are `start` before."""
        for name in rows.names:
            index, column = self._index[name], self._schema[name]
            values = np.asarray(answer[f"v{index}"].to_numpy())
            is_null = np.asarray(answer[f"m{index}"].to_numpy()) if column.nullable else None
            if is_null is not None and not column.is_whole:
                values, is_null = np.where(is_null, np.nan, values), None
            rows.fill(name, start, Physical(values, is_null))
        if "k" in answer.column_names:
            rows.fill_keys(start, answer["k"].combine_chunks)

    def read_cells(self, lattice: Lattice, answer: pa.Table) -> CellCounts:
        """CellCounts of what `cell_counts` answered, or an InputError that names the first unreadable column."""
        self.refuse_faults(_whole(answer, "k0"))
        n_keys = len(key_layout(lattice))
        codes = np.empty((answer.num_rows, lattice.n_words), dtype=np.uint64)
        start = 0
        for batch in answer.to_batches(max_chunksize=_AT_ONCE):
            keys = [_whole(batch, f"k{index}") for index in range(n_keys)]
            codes[start : start + len(batch)] = interleave(cells_of_keys(lattice, keys), lattice)
            start += len(batch)
        order = np.argsort(codes[:, 0]) if lattice.n_words == 1 else np.lexsort(codes.T[::-1])
        return CellCounts(lattice, codes[order], _whole(answer, "n")[order])

    def read_columns(self, lattices: Sequence[Lattice], answer: pa.Table) -> Iterable[CellCounts]:
        """One CellCounts for each lattice of what `column_counts` answered."""
        which = np.asarray(answer["which"].to_numpy()).astype(np.int64)
        self.refuse_faults(_whole(answer, "k0"))
        for index, lattice in enumerate(lattices):
            yield self.read_cells(lattice, answer.filter(pa.array(which == index)))

    def refuse_faults(self, keys: NDArray[np.int64]) -> None:
        """Raise an InputError that names the first unreadable column, if first keys say that there is one."""
        faults = keys[keys < 0]
        if len(faults):
            index, is_wrong = divmod(int(-faults.max()) - 1, 2)
            names = {place: name for name, place in self._index.items()}
            raise self._fault(names[index], is_missing=not is_wrong)

    def refuse_bad_rows(self, answer: pa.Table) -> None:
        """Raise an InputError that names the first column of which `bad_rows` counted any."""
        for name in parts_first(self._schema):
            index = self._index[name]
            for what in ("w", "m"):
                if f"{what}{index}" in answer.column_names and _whole(answer, f"{what}{index}").any():
                    raise self._fault(name, is_missing=what == "m")

    def read_tallies(self, names: Sequence[str], rules: Sequence[Rule], answer: pa.Table) -> Tallies:
        """What `tallies` answered."""
        found = {name: answer[name][0].as_py() for name in answer.column_names}
        tallies = Tallies()
        for name in names:
            index = self._index[name]
            low, high = found[f"l{index}"], found[f"h{index}"]
            numbers: dict[str, Any] = {number: found.get(f"{kind}{index}") or 0 for kind, number in _TALLIED.items()}
            tallies.columns[name] = Tally(
                n_rows=found["n"],
                complaint=self._schema[name]._complaint if numbers["n_wrong"] else None,
                ends=None if low is None else (low, high),
                **numbers,
            )
        tallies.n_broken.update({rule: found[f"r{place}"] or 0 for place, rule in enumerate(rules)})
        return tallies

    def read_states(self, rows: StateRows, answer: pa.Table) -> None:
        """Write what `states` answered into the rows, column by column."""
        _, half = _SMALLEST[rows.true_states.dtype]
        for which, row in enumerate(rows.true_states):
            shifted = answer[f"s{which}"].to_numpy()
            np.add(shifted, half, out=row, dtype=row.dtype, casting="unsafe")

    # ------------------------------------------------------------------------------------------------ building

    def _numbers(
        self, names: Iterable[str], *, cuts: Sequence[AnyCut] = (), also: Mapping[str, nw.Expr] | None = None
    ) -> Frame:
        """Some columns as numbers: vi, whether each is missing (mi) or wrong (wi), and looked-up states (si).

        `also` are expressions of the frame itself.
        """
        frame, chosen = self._frame, dict(also or {})
        cut_of = {cut.axis.name: cut for cut in cuts if isinstance(cut, Cut)}
        for name in dict.fromkeys(names):
            index, column = self._index[name], self._schema[name]
            value, dtype = nw.col(plain(index)), self._dtypes[plain(index)]
            place = None
            if self._is_looked_up(name):
                assert isinstance(column, Category)
                small: dict[str, list[Any]] = {
                    f"t{index}": list(column.listed),
                    f"p{index}": list(range(len(column.listed))),
                }
                if name in cut_of:
                    cut = cut_of[name]
                    at = np.searchsorted(cut.first, small[f"p{index}"], side="right") - 1
                    small[f"q{index}"] = cut.states[at].tolist()
                    chosen[f"s{index}"] = nw.col(f"q{index}")
                    if column.other is not None:
                        unlisted = small[f"q{index}"][column.listed.index(column.other)]
                        chosen[f"s{index}"] = chosen[f"s{index}"].fill_null(unlisted)
                frame = frame.with_columns(**{f"t{index}": column._lookup_key(value, dtype)}).join(
                    self._small_frame(small), on=f"t{index}", how="left"
                )
                place = nw.col(f"p{index}")
            reading = column._expression(value, dtype, place=place)
            if column._also_reads:
                reading = column._combined_expression(reading, self._readings(column._also_reads))
            chosen |= {f"v{index}": reading.number, f"m{index}": reading.is_missing, f"w{index}": reading.is_wrong}
        return frame.select(**chosen)

    def _readings(self, names: Iterable[str]) -> dict[str, Reading]:
        """Other columns, as one that is computed of them needs them."""
        places = {name: plain(self._index[name]) for name in names}
        return {
            name: self._schema[name]._expression(nw.col(place), self._dtypes[place]) for name, place in places.items()
        }

    def _is_looked_up(self, name: str) -> bool:
        column = self._schema[name]
        if not isinstance(column, Category) or len(column.listed) <= MOST_COMPARED:
            return False
        return not (column.is_text and self._dtypes[plain(self._index[name])].is_float())

    def _column(self, name: str) -> tuple[nw.Expr, nw.Expr]:
        """A column of `_numbers`, and whether it is missing."""
        index = self._index[name]
        return nw.col(f"v{index}"), nw.col(f"m{index}")

    def _breaks(self, rule: Rule) -> nw.Expr:
        """Whether a row breaks a rule, as `Rule.holds` says it."""
        return breaks(rule, {name: self._column(name) for name in rule.columns}, self._schema)

    def _cells_of(self, axes: Sequence[Axis]) -> tuple[Frame, list[nw.Expr]]:
        """Columns as numbers, and expressions of them for the cells of some axes."""
        numbers, cells = self._numbers(axis.name for axis in axes), []
        for index, axis in enumerate(axes):
            value, is_missing = self._column(axis.name)
            if axis.pieces is None:
                cells.append(cell(axis, value, is_missing))
                continue
            # Columns of their own: written out, a fine cell would be computed anew at every stair.
            lists = piece_lists(axis.pieces)
            fine, piece = f"f{index}", f"g{index}"
            numbers = numbers.with_columns(**{fine: fine_cell(axis, value)})
            numbers = numbers.with_columns(**{piece: piece_of(axis.pieces, nw.col(fine))})
            looked_up = {f"{name}{index}": numbers_of for name, numbers_of in lists.items()}
            small = self._small_frame({piece: list(range(len(axis.pieces.starts))), **looked_up})
            numbers = numbers.join(small, on=piece, how="left")
            found = {name: nw.col(f"{name}{index}") for name in lists}
            cells.append(cell_in_piece(axis, nw.col(fine), found, is_missing))
        return numbers, cells

    def _or_fault(self, packed: nw.Expr, names: Sequence[str]) -> nw.Expr:
        """The key of a row, or a negative number that says which column is the first that cannot be read, and why."""
        for name in reversed(names):
            index = self._index[name]
            packed = nw.when(nw.col(f"w{index}")).then(nw.lit(-2 * index - 2)).otherwise(packed)
            if not self._schema[name].nullable:
                packed = nw.when(nw.col(f"m{index}")).then(nw.lit(-2 * index - 1)).otherwise(packed)
        return packed.cast(nw.Int64)

    def _fault(self, name: str, *, is_missing: bool) -> InputError:
        if is_missing:
            return missing(name)
        return InputError(f"column {name!r}: {self._schema[name]._complaint}")


def bytes_of_cell(lattice: Lattice) -> int:
    """What a cell takes while `read_cells` is at work: keys, count, a hash; codes and counts twice; their order."""
    return 8 * (len(key_layout(lattice)) + 2 + 2 * lattice.n_words + 3)


def _is_off_step(column: Column, value: nw.Expr) -> nw.Expr | None:
    """Whether a number is no multiple, of a column in steps; the same formulas as for a table in memory."""
    if not isinstance(column, Stepped) or column.multiple_of is None:
        return None
    if column.is_whole:
        return (value - column._phase) % column.step != 0
    steps = value / float(column.multiple_of)
    return (steps.abs() < FARTHEST_STEP) & ((steps - steps.round()).abs() > OFF_STEP)


def _how_many(flag: nw.Expr) -> nw.Expr:
    return flag.cast(nw.Int64).sum()


def _whole(answer: pa.Table | pa.RecordBatch, name: str) -> NDArray[np.int64]:
    return np.asarray(answer[name].to_numpy(zero_copy_only=False)).astype(np.int64, copy=False)
