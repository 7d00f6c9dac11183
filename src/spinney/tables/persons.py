"""Persons and their rows, gathered: what a model of persons is counted from.

Rows of any kind of table are read once and held. Each person gets a number, a person's rows are sorted and cut to the
stated number, and one of them is picked at random. What stays of a person depends on that person's rows and coins
alone, never on anybody else's (engines.proof.md). Keys are compared for equality and forgotten. Nothing here knows
about privacy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinney.columns.identifier import Key, keys_differ
from spinney.counting.counts import MissingValueError
from spinney.errors import InputError, raise_alone, redacted
from spinney.progress import waiting
from spinney.schema.linked import PeopleShape, RowsShape
from spinney.schema.rules import First, PositionRule
from spinney.schema.schema import Schema
from spinney.tables.frames import FrameKind
from spinney.tables.open import open_source
from spinney.tables.source import HeldRows, Source
from spinney.text import NeverPickled, did_you_mean, listed

_Numbers = NDArray[np.int64]

# Persons are numbered in four bytes; sums of all their units are then far from the end of int64, too.
_MOST_PERSONS = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GatheredRows(NeverPickled):
    """The rows of one table that stay, sorted by person, then by position. SENSITIVE."""

    table: pa.Table  # the columns of `RowsShape.modelled`
    starts: _Numbers  # (n_persons + 1,): rows of person p are starts[p] to starts[p + 1]
    one: _Numbers  # the number of one random row of every person that has any

    @property
    def counts(self) -> _Numbers:
        """How many rows each person has (n_persons,)."""
        return np.diff(self.starts)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PersonTables(NeverPickled):
    """Persons, numbered in an order that says nothing, and their rows. SENSITIVE."""

    n_persons: int
    kind: FrameKind  # what synthetic tables come back in
    kinds: Mapping[str, FrameKind]  # the same by name of the table
    persons: pa.Table | None  # the modelled columns of the table of persons; row p is person p
    rows: tuple[GatheredRows, ...]  # one for each table of rows, in the order of the shape


def gather(
    frames: Mapping[str, Any] | Any, shape: PeopleShape, *, engine: str | None = None, rng: np.random.Generator
) -> PersonTables:
    """Read all tables once and sort them by person.

    Of each person at most `most` rows stay: the first ones where there is an order, random ones otherwise. Rows that
    are equal in the order are in random order, but for those that rules put first or last.

    Args:
        frames: a table for each name of the shape; of a flat table, the table itself. In any kind that `open_source`
            takes, arrays aside. All of it is then in memory.
        shape: what is public about the tables, as it was stated, with ignored columns.
        engine: what reads the tables, where there is a choice.
        rng: the coins.

    Raises:
        InputError, SchemaError: a table does not fit the shape, has missing or repeated keys, or rows of nobody. Tables
            and columns are named, never a key.
    """
    given = _by_name(frames, shape)
    keys = {rows.name: rows.key for rows in shape.rows}
    if shape.persons_name is not None and shape.key is not None:
        keys[shape.persons_name] = shape.key
    sources: dict[str, Source] = {}
    for name, schema in shape.tables.items():
        with _in_table(name):
            sources[name] = _opened(given[name], schema, keys[name], engine)
    never_null = {rows.name: rows.facts.never_null for rows in shape.rows}
    held: dict[str, HeldRows] = {}
    for name, source in sources.items():
        with _in_table(name), _without_places(never_null.get(name, {})):
            held[name] = source.held_rows()
    kinds = {name: source.kind for name, source in sources.items()}
    with waiting("sorting rows by person"):
        return _gathered(held, shape, kinds, rng)


def _gathered(
    held: dict[str, HeldRows], shape: PeopleShape, kinds: dict[str, FrameKind], rng: np.random.Generator
) -> PersonTables:
    if shape.persons is None or shape.persons_name is None:
        (only,) = shape.rows
        keys = held[only.name].keys()
        known = pc.unique(keys)
        persons = None
    else:
        with _in_table(shape.persons_name):
            known = held[shape.persons_name].keys()
            if len(pc.unique(known)) < len(known):
                raise InputError(
                    f"column {shape.key!r} holds some key twice, and a person has one row there; drop the repeated "
                    "rows, or state the table's rows as rows of persons, with a link of its own"
                )
    if len(known) > _MOST_PERSONS:
        raise InputError(f"there are more than {_MOST_PERSONS:,} persons; split them into several tables")
    # Who comes first in a file says something; numbers of persons say nothing.
    row_of = rng.permutation(len(known))
    number_of = np.empty(len(known), dtype=np.int32)
    number_of[row_of] = np.arange(len(known), dtype=np.int32)
    if shape.persons is not None and shape.persons_name is not None:
        persons = held[shape.persons_name].arrow(list(shape.persons._modelled), row_of)
    rows = []
    for table in shape.rows:
        with _in_table(table.name):
            numbers = number_of[_places(held[table.name].keys(), known, table, shape)]
            rows.append(_sorted(held[table.name], table, numbers, len(known), rng))
    first = shape.rows[0].name if shape.persons_name is None else shape.persons_name
    return PersonTables(len(known), kinds[first], kinds, persons, tuple(rows))


def _places(keys: Any, known: Any, table: RowsShape, shape: PeopleShape) -> NDArray[np.int32]:
    """Where each key stands among the known ones."""
    if keys.type != known.type:
        if not len(keys):  # no rows, of no type
            return np.zeros(0, dtype=np.int32)
        raise InputError(
            f"its column {table.key!r} and column {shape.key!r} of table {shape.persons_name!r} have "
            f"{keys_differ(keys.type, known.type)}"
        )
    places = pc.index_in(keys, value_set=known)
    if places.null_count:
        raise InputError(
            f"column {table.key!r} holds keys that table {shape.persons_name!r} does not have in {shape.key!r}; drop "
            "these rows, or add their persons"
        )
    return np.asarray(places.to_numpy(), dtype=np.int32)


def _sorted(
    held: HeldRows, shape: RowsShape, numbers: NDArray[np.int32], n_persons: int, rng: np.random.Generator
) -> GatheredRows:
    """Rows by person and position, those beyond the limit left out, and one of each person."""
    # A random order first, which stable sorts keep among equals: coins by row, used for ties and for all else.
    shuffled: _Numbers = rng.permutation(len(numbers))
    by = [] if shape.order is None else [held.numbers(shape.order)[0]]
    rank = _rank(held, shape.position_rules)
    by += [] if rank is None else [rank]
    chosen = shuffled[np.lexsort([key[shuffled] for key in reversed([numbers, *by])])]
    counts = np.bincount(numbers, minlength=n_persons).astype(np.int64)
    kept = np.minimum(counts, shape.most)
    if (kept < counts).any():
        position = np.arange(len(chosen)) - np.repeat(np.cumsum(counts) - counts, counts)
        chosen = chosen[position < shape.most]
    starts = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    has_any = kept > 0
    one = starts[:-1][has_any] + rng.integers(kept[has_any])
    return GatheredRows(held.arrow(list(shape.modelled), chosen), starts, one)


def _rank(held: HeldRows, rules: Iterable[PositionRule]) -> NDArray[np.int8] | None:
    """Where rules want rows among those that are equal in the order: -1 first, 1 last; None without rules."""
    rank = None
    for rule in rules:
        values, is_null = held.numbers(rule.column)
        is_meant = rule.says(held.schema[rule.column]).holds(values)
        if is_null is not None:
            is_meant &= ~is_null
        rank = np.zeros(len(values), dtype=np.int8) if rank is None else rank
        rank[is_meant] = -1 if isinstance(rule, First) else 1
    return rank


# ------------------------------------------------------------------------------------------------------- opening


def _by_name(frames: Any, shape: PeopleShape) -> dict[str, Any]:
    """The tables by name, once they are known to be those of the shape."""
    names = list(shape.tables)
    if shape.persons is None:
        return {names[0]: frames}
    if not isinstance(frames, Mapping):
        raise InputError(
            f"linked tables are passed by name, {{{', '.join(f'{name!r}: ...' for name in names)}}}, and this is a "
            f"{type(frames).__name__}"
        )
    for name in frames:
        if name not in names:
            raise InputError(f"there is no table {name!r} in sp.Tables{did_you_mean(name, names)}")
    lacking = [name for name in names if name not in frames]
    if lacking:
        raise InputError(f"table {listed(lacking)} is missing; pass a frame for every table of sp.Tables")
    return dict(frames)


def _opened(frame: Any, schema: Schema, key: str, engine: str | None) -> Source:
    """A table whose names and types fit its schema, with its key to be read."""
    if isinstance(frame, np.ndarray):
        raise InputError("an array of numbers cannot hold the keys of persons; pass a data frame")
    read = dict(schema._as_read) | {key: Key()}
    source = open_source(frame, Schema(read), engine=engine)
    return source.with_schema(Schema({name: column for name, column in read.items() if column.is_read}))


@contextmanager
def _without_places(never_null: Mapping[str, str]) -> Iterator[None]:
    """Errors about missing values in columns that cannot be nullable say what helps."""
    try:
        yield
    except MissingValueError as err:
        why = never_null.get(err.column or "")
        if why is None:
            raise
        what = str(err).split("; ", 1)[0]
        raise_alone(InputError(f"{what}, and {why}; drop these rows, or give them a value"))


def _in_table(name: str) -> AbstractContextManager[None]:
    """Errors about a table begin with its name, where there are several."""
    return redacted(lambda _: None, at=f"table {name!r}" if name else None)
