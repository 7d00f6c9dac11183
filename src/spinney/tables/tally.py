"""Tallies: what is the matter with the values of each column, counted, for the eyes of the holder alone.

A mechanism stops at the first value that it cannot count. Whoever prepares a table wants to hear of all of them, of all
columns, after one pass. So every column is read by itself, by the code that mechanisms read it with; where that
refuses it, the values that are to blame are searched for among its distinct ones. Tallies of parts of a table add up.
Nothing here quotes a value, and nothing here is private: tallies never go into a release.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinney.columns import Bounded, Category, Column, Stepped
from spinney.columns.reading import Physical, one_array
from spinney.errors import InputError
from spinney.schema.rules import PositionRule, Rule
from spinney.schema.schema import Schema
from spinney.tables.frames import Table
from spinney.text import Sensitive

# How often a column is read again to find the values that are to blame; where there are more, they are not counted.
_MOST_READINGS = 5_000
# A real is taken for a multiple where it is this near, in steps: a table may hold floats of 32 bits.
OFF_STEP = 1e-3
# Beyond this many steps floats are too far apart to tell.
FARTHEST_STEP = 2.0**40


@dataclass(frozen=True, slots=True, repr=False)
class Tally(Sensitive):
    """What some rows hold in one column. SENSITIVE."""

    n_rows: int = 0
    n_missing: int = 0  # null, NaN or infinite
    n_below: int = 0  # below the stated bounds
    n_above: int = 0
    n_off_step: int = 0  # between two multiples of `multiple_of`
    n_other: int = 0  # counted as the category's `other`
    n_wrong: int = 0  # there is a value, but none that the schema allows
    complaint: str | None = None  # what is wrong with those values
    is_counted: bool = True  # whether all wrong values were found
    ends: tuple[float, float] | None = None  # the smallest and the largest number, if there is one

    def __add__(self, other: Tally) -> Tally:
        ends = [one.ends for one in (self, other) if one.ends is not None]
        numbers = [entry.name for entry in fields(Tally) if entry.name.startswith("n_")]
        return Tally(
            **{name: getattr(self, name) + getattr(other, name) for name in numbers},
            complaint=self.complaint or other.complaint,
            is_counted=self.is_counted and other.is_counted,
            ends=(min(low for low, _ in ends), max(high for _, high in ends)) if ends else None,
        )


@dataclass(slots=True, repr=False)
class Tallies(Sensitive):
    """Tallies of several columns, and how many rows break each rule. SENSITIVE."""

    columns: dict[str, Tally] = field(default_factory=dict)
    n_broken: Counter[Rule] = field(default_factory=Counter)

    def add(self, other: Tallies) -> None:
        for name, tally in other.columns.items():
            self.columns[name] = self.columns.get(name, Tally()) + tally
        for rule, n_rows in other.n_broken.items():
            self.n_broken[rule] += n_rows


def rules_among(rules: Iterable[Rule], names: Iterable[str]) -> list[Rule]:
    """The rules that are about these columns only, and about single rows."""
    known = set(names)
    return [rule for rule in rules if known.issuperset(rule.columns) and not isinstance(rule, PositionRule)]


def tally_table(table: Table, names: Iterable[str], rules: Sequence[Rule]) -> Tallies:
    """Tallies of a table in memory, or of a piece of one."""
    tallies = Tallies()
    numbers: dict[str, NDArray[np.float64]] = {}
    about = {name for rule in rules for name in rule.columns}
    for name in names:
        column = table.schema[name]
        if not column.is_read:
            continue
        try:
            physical = table.unplaced().physical(name)
        except InputError:
            tallies.columns[name] = _tally_faulty(table, name)
            continue
        tallies.columns[name] = _tally(physical, column)
        if name in about:
            numbers[name] = np.where(physical.is_missing, np.nan, physical.values.astype(np.float64))
    for rule in rules_among(rules, numbers):
        tallies.n_broken[rule] = int(np.count_nonzero(~rule.holds(numbers, table.schema)))
    return tallies


def bounds_of(column: Column) -> tuple[Any, Any] | None:
    """The stated bounds as physical numbers, where there are any."""
    if not isinstance(column, Bounded) or not column.has_bounds:
        return None
    return column.physical(column.low), column.physical(column.high)


def place_of_other(column: Column) -> int | None:
    """Where in its list a category has the value that stands for all others, if there is one beside the others."""
    if not isinstance(column, Category) or column.other is None or not column.has_values:
        return None
    return column.listed.index(column.other)


def _tally(physical: Physical, column: Column) -> Tally:
    present = physical.values[~physical.is_missing]
    is_single = present.dtype == np.float32
    if present.dtype.kind == "f":
        present = present.astype(
            np.float64
        )  # or bounds would be rounded to the narrow type that they are compared with
    bounds = bounds_of(column)
    return Tally(
        n_rows=len(physical.values),
        n_missing=len(physical.values) - len(present),
        n_below=0 if bounds is None else int(np.count_nonzero(present < bounds[0])),
        n_above=0 if bounds is None else int(np.count_nonzero(present > bounds[1])),
        n_off_step=_n_off_step(present, column, is_single=is_single),
        n_other=0 if (place := place_of_other(column)) is None else int(np.count_nonzero(present == place)),
        ends=(present.min().item(), present.max().item()) if len(present) else None,
    )


def _n_off_step(present: NDArray[Any], column: Column, *, is_single: bool) -> int:
    """How many numbers are no multiples; of reals, by more than a float is off."""
    if not isinstance(column, Stepped) or column.multiple_of is None:
        return 0
    if column.is_whole:
        return int(np.count_nonzero((present - column._phase) % column.step))
    with np.errstate(over="ignore"):
        steps = present / float(column.multiple_of)
    steps = steps[np.abs(steps) < FARTHEST_STEP]
    # Single precision misses a number by a 2^24th of it.
    slack = np.maximum(OFF_STEP, np.abs(steps) * 2.0**-24) if is_single else OFF_STEP
    return int(np.count_nonzero(np.abs(steps - np.rint(steps)) > slack))


def _tally_faulty(table: Table, name: str) -> Tally:
    """The tally of a column that cannot be read as it is: of its wrong values, and of the others."""
    column, complaint = table.schema[name], _complaint(table, name)
    values = None
    try:
        values = one_array(table.raw(name))
        wrong = _wrong_values(values, table, name)
    except Exception:  # whatever objects in the column raise may quote them; it cannot be taken apart
        wrong = None
    if values is None or wrong is None:
        return Tally(table.n_rows, complaint=complaint, is_counted=False)
    is_wrong = pc.is_in(values, value_set=wrong)
    n_wrong = pc.sum(is_wrong).as_py() or 0
    good = _read(values.filter(pc.invert(is_wrong)), table, name)
    return _tally(good, column) + Tally(n_rows=n_wrong, n_wrong=n_wrong, complaint=complaint)


def _complaint(table: Table, name: str) -> str:
    """What a fit would say of the column."""
    try:
        table.physical(name)
    except InputError as err:
        return str(err).removeprefix(f"column {name!r}: ")
    return "some value cannot be read"


def _wrong_values(values: Any, table: Table, name: str) -> Any | None:
    """The distinct values that cannot be read, or None where there are too many to look for."""
    wrong: list[Any] = []
    waiting = [pc.unique(values.drop_null())]
    for _ in range(_MOST_READINGS):
        if not waiting:
            return pa.concat_arrays(wrong) if wrong else values[:0]
        some = waiting.pop()
        try:
            _read(some, table, name)
        except InputError:
            if len(some) == 1:
                wrong.append(some)
            else:
                waiting += [some[: len(some) // 2], some[len(some) // 2 :]]
    return None


def _read(values: Any, table: Table, name: str) -> Physical:
    """Some values of a column, read as the table reads it."""
    column = Schema({name: table.schema[name]})
    return Table(table.kind, len(values), column, lambda _: values).physical(name)


def by_name(tallies: Mapping[str, Tally], names: Iterable[str]) -> dict[str, Tally]:
    """The tallies in the order of some names."""
    return {name: tallies[name] for name in names if name in tallies}
