"""Keys of persons, checked for the holder's eyes: missing and repeated ones, rows of nobody, rows beyond the limit.

Keys are read once more, by themselves, and compared for equality; none is shown. Of a plain table, identifiers that
repeat say that its rows may belong to persons, whom a guarantee for one row protects less. A stated key that never
repeats seems to name rows; another column may be the key of persons that it should have been. Whether one is shows in
its name, or in another column. One that belongs to the key, as a year of birth belongs to a person, is the same in all
rows of a key, and jumps from key to key as it would between any two. One that sorts the rows of each key rises within
them and starts anew with the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinney.columns import Boolean, Category, Column, Identifier, Integer
from spinney.columns.key import Key, keys_differ
from spinney.errors import SpinneyError
from spinney.schema.people import PeopleShape, RowsShape
from spinney.schema.person_names import suggested_keys, suggested_orders
from spinney.schema.table import Schema
from spinney.synthesizers.findings import Finding
from spinney.tables.opening import open_source
from spinney.tables.outline import names_of, parts_of

# Keys are held in memory; of longer tables, identifiers that repeat are not looked for.
_MOST_ROWS = 20_000_000
# Keys of persons are looked for in tables of up to so many rows; they have so many values, and so many rows each.
_MOST_COMPARED = 2_000_000
_FEWEST_KEYS = 50
_ROWS_EACH = (1.2, 100)
# A column with this many values may belong to a key; it agrees within keys so often, and hardly elsewhere.
_MOST_ATTRIBUTES = 100
_AGREES, _BY_CHANCE, _JUMPS = 0.99, 0.9, 0.3
_RISES, _STARTS_ANEW = 0.5, 0.1

Codes = NDArray[np.int64]


@dataclass(slots=True)
class KeyFindings:
    """What keys brought to light. FOR THE HOLDER ONLY."""

    faults: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    n_persons: int | None = None  # None where keys could not be read
    never_repeats: bool = False  # whether every person of a flat table has one row


def check_keys(frames: Mapping[str, Any], shape: PeopleShape, engine: str | None) -> KeyFindings:
    """What is wrong with the keys of tables, by name; of a flat table the name is empty."""
    found = KeyFindings()
    known = None
    if shape.persons is not None and shape.persons_name is not None and shape.key is not None:
        known = _keys(frames[shape.persons_name], shape.persons, shape.key, engine, found, shape.persons_name)
        if known is not None:
            distinct = pc.unique(known)
            found.n_persons = len(distinct)
            if len(distinct) < len(known):
                message = (
                    f"{_at(shape.persons_name)}column {shape.key!r} holds some key twice, and a person has one row "
                    "there; drop the repeated rows, or swap child and parent of the link if this is the table of rows"
                )
                found.faults.append(Finding(message, shape.key, len(known) - len(distinct)))
            known = distinct
    for rows in shape.rows:
        keys = _keys(frames[rows.name], rows.schema, rows.key, engine, found, rows.name)
        if keys is None:
            continue
        if shape.persons is not None:
            if known is None:
                continue
            keys = _of_somebody(keys, known, rows, shape, found)
        counts = _counts(keys)
        if shape.persons is None:
            found.n_persons = len(counts)
            found.never_repeats = len(counts) > 1 and int(counts.max()) == 1
        n_cut = int(np.maximum(counts - rows.most, 0).sum())
        if n_cut:
            stated = "most_rows" if shape.persons is None else "most"
            found.warnings.append(
                Finding(
                    f"{_at(rows.name)}some persons have more rows than {stated}={rows.most}, and the rest would be "
                    "left out; a larger number adds no noise",
                    rows.key,
                    n_cut,
                )
            )
    return found


def repeated_identifiers(frame: Any, schema: Schema, engine: str | None, n_rows: int | None) -> list[Finding]:
    """Warnings of identifiers that stand in more than one row, in a table whose rows are protected one by one."""
    found: list[Finding] = []
    if n_rows is None or n_rows > _MOST_ROWS or isinstance(frame, (pa.RecordBatchReader, np.ndarray)):
        return found
    for name in schema.identifiers:
        keys = _keys(frame, schema, name, engine, KeyFindings(), "")
        if keys is None:
            continue
        n_repeated = len(keys) - len(pc.unique(keys))
        if n_repeated:
            found.append(
                Finding(
                    f"column {name!r} is an identifier, and its values repeat: rows seem to belong to persons with "
                    "several rows, and the guarantee would be for one row. State whose rows they are: "
                    f"sp.Schema({{...}}, person={name!r}, most_rows=200), or in a schema file a table [person] with "
                    "column and most_rows",
                    name,
                    n_repeated,
                )
            )
    return found


# -------------------------------------------------------------------------------------- keys that nobody has stated


@dataclass(frozen=True, slots=True)
class LikelyKeys:
    """What the rows say of columns that may be keys. FOR THE HOLDER ONLY."""

    of_rows: tuple[str, ...] = ()  # every row has a value of its own, so nobody has several
    of_persons: tuple[str, ...] = ()  # values repeat as those of the keys of persons do


def warnings_of_keys(
    frame: Any, schema: Schema, engine: str | None, n_rows: int, *, never_repeats: bool
) -> list[Finding]:
    """Warnings of a stated person that seems to be a row, and of columns that seem to be the key of persons."""
    person = schema.person
    likely = likely_keys(frame, schema, engine, n_rows).of_persons
    if person is None:
        likely = tuple(name for name in likely if not isinstance(schema[name], Identifier))  # which was told
    listed = " and ".join(map(repr, likely))
    repeat = f"{'columns' if len(likely) > 1 else 'column'} {listed}: values repeat as keys of persons do"
    remedy = (
        'make it of type "identifier" and state it as the person, so that the guarantee is for a person with all their '
        "rows"
    )
    if never_repeats:
        other = f"; {repeat}. If one of them says whose row it is, {remedy}" if likely else ""
        return [
            Finding(
                f"column {person!r} is stated as the person, and its values never repeat: every person has one row, so "
                "it seems to name rows, and somebody with several rows would be protected for one of them "
                f"alone{other}",
                person,
            )
        ]
    if person is None and likely:
        return [
            Finding(
                f"{repeat}, and the guarantee would be for one row. If one of them says whose row it is, {remedy}",
                likely[0],
            )
        ]
    return []


def likely_keys(
    frame: Any, schema: Schema, engine: str | None, n_rows: int, *, identifiers: Iterable[str] | None = None
) -> LikelyKeys:
    """Columns of whole numbers, and identifiers, that name rows or seem to name persons. SENSITIVE: of the rows.

    Args:
        frame: the table.
        schema: its columns; those without bounds or values are looked at too.
        engine: what reads it.
        n_rows: how many rows it has; a long table is not looked at.
        identifiers: those that are looked at, some of which may be none; by default all but the stated person.
    """
    if not _FEWEST_KEYS <= n_rows <= _MOST_COMPARED or isinstance(frame, pa.RecordBatchReader):
        return LikelyKeys()
    stated = () if identifiers is not None else [name for name in schema.identifiers if name != schema.person]
    try:
        numbers = _numbers(frame, schema, engine)
    except SpinneyError:  # which is told as a fault of the table
        return LikelyKeys()
    wholes = [name for name in numbers if isinstance(schema[name], Integer)]
    candidates = {name: numbers[name] for name in wholes if name not in set(suggested_orders(wholes))}
    for name in stated if identifiers is None else identifiers:
        keys = _keys(frame, schema, name, engine, KeyFindings(), "")
        if keys is not None and len(keys) == n_rows:
            codes = keys.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
            candidates[name] = codes.astype(np.int64)
    every = numbers | candidates
    attributes = {name: codes for name, codes in every.items() if 2 <= len(np.unique(codes)) <= _MOST_ATTRIBUTES}
    # A plural counts: "households".
    by_name = {*stated, *(name for name in suggested_keys(candidates) if not name.lower().endswith("s"))}
    of_rows, of_persons = [], []
    for name, codes in candidates.items():
        n_keys = len(np.unique(codes))
        if n_keys == n_rows:
            of_rows.append(name)
        elif n_keys >= _FEWEST_KEYS and _ROWS_EACH[0] <= n_rows / n_keys <= _ROWS_EACH[1]:
            belongs = any(_belongs(other, codes) for own, other in attributes.items() if own != name)
            if name in by_name or belongs or any(_is_sorted_by(other, codes, n_keys) for other in numbers.values()):
                of_persons.append(name)
    return LikelyKeys(tuple(of_rows), tuple(of_persons))


def _numbers(frame: Any, schema: Schema, engine: str | None) -> dict[str, Codes]:
    """Columns of whole numbers and of few values, as whole numbers; null is one of its own."""
    read: dict[str, Column] = {
        name: replace(column, nullable=True)
        for name, column in schema.items()
        if isinstance(column, (Integer, Boolean)) or (isinstance(column, Category) and column.has_values)
    }
    if not read:
        return {}
    every: dict[str, Column] = {name: read.get(name, Identifier()) for name in schema}
    held = open_source(frame, Schema(every), engine=engine).with_schema(Schema(read)).held_rows()
    found = {}
    for name in read:
        values, is_null = held.numbers(name)
        codes = values.astype(np.int64)
        found[name] = codes if is_null is None else np.where(is_null, np.iinfo(np.int64).min, codes)
    return found


def _belongs(attribute: Codes, codes: Codes) -> bool:
    """Whether a column is the same in all rows of a key, and as different between keys as it is anywhere."""
    order = np.argsort(codes, kind="stable")
    keys, values = codes[order], attribute[order]
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    sizes = np.diff(np.r_[starts, len(keys)])
    firsts = values[starts]
    is_later = np.ones(len(keys), dtype=np.bool_)
    is_later[starts] = False
    agrees = float((values == np.repeat(firsts, sizes))[is_later].mean())
    # A band of a number agrees within its values too, and changes as seldom as there are bands.
    jumps = float((firsts[1:] != firsts[:-1]).mean())
    return agrees >= _AGREES and _by_chance(values) <= _BY_CHANCE and jumps >= _JUMPS * (1 - _by_chance(firsts))


def _is_sorted_by(other: Codes, codes: Codes, n_keys: int) -> bool:
    """Whether the rows of each key stand together, sorted by another column."""
    is_same, steps = codes[1:] == codes[:-1], np.sign(other[1:].astype(np.float64) - other[:-1])
    if 1 + int((~is_same).sum()) != n_keys:
        return False
    within, between = steps[is_same], steps[~is_same]
    return bool(
        (within >= 0).mean() >= _AGREES and (within > 0).mean() >= _RISES and (between < 0).mean() >= _STARTS_ANEW
    )


def _by_chance(values: Codes) -> float:
    """How often two of the values are equal."""
    shares = np.unique(values, return_counts=True)[1] / len(values)
    return float((shares**2).sum())


def _of_somebody(keys: Any, known: Any, rows: RowsShape, shape: PeopleShape, found: KeyFindings) -> Any:
    """The keys that the table of persons has; faults where some are not there."""
    if not len(keys):
        return keys
    if keys.type != known.type:
        found.faults.append(
            Finding(
                f"{_at(rows.name)}column {rows.key!r} and column {shape.key!r} of table {shape.persons_name!r} have "
                f"{keys_differ(keys.type, known.type)}",
                rows.key,
            )
        )
        return keys
    is_known = pc.is_in(keys, value_set=known)
    n_orphans = len(keys) - int(pc.sum(is_known).as_py() or 0)
    if n_orphans:
        found.faults.append(
            Finding(
                f"{_at(rows.name)}column {rows.key!r} holds keys that table {shape.persons_name!r} does not have in "
                f"{shape.key!r}; drop these rows, or add their persons",
                rows.key,
                n_orphans,
            )
        )
    return keys.filter(is_known)


def _keys(
    frame: Any, schema: Schema, key: str, engine: str | None, found: KeyFindings, table: str
) -> pa.ChunkedArray | None:
    """All keys that are there; None where they cannot be read, which is a fault, or are not there, which was told."""
    try:
        names = list(schema) if isinstance(frame, np.ndarray) else names_of(parts_of(frame)[0])
        if names is not None and key not in names:
            return None
        read = {name: Key() if name == key else Identifier() for name in names or schema}
        source = open_source(frame, Schema(read), engine=engine).with_schema(Schema({key: Key()}))
        keys, n_missing = source.held_rows().keys_and_missing()
    except SpinneyError as err:
        told = str(err)
        found.faults.append(Finding(told if key in told else f"{_at(table)}column {key!r}: {told}", key))
        return None
    if n_missing:
        found.faults.append(
            Finding(
                f"{_at(table)}column {key!r} holds missing keys, and every row must say whose it is; drop these rows "
                "or give them a key",
                key,
                n_missing if len(keys) else None,  # whole numbers with gaps come as floats, none of which are keys
            )
        )
    return keys


def _counts(keys: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """How many rows each person has, in no order that says anything."""
    if not len(keys):
        return np.zeros(0, dtype=np.int64)
    codes = keys.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return np.bincount(codes).astype(np.int64)


def _at(table: str) -> str:
    return f"table {table!r}: " if table else ""
