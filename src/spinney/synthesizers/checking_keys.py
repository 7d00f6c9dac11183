"""Keys of persons, checked for the holder's eyes: missing and repeated ones, rows of nobody, rows beyond the limit.

Keys are read once more, by themselves, and compared for equality; none is shown. Of a plain table, identifiers that
repeat say that its rows may belong to persons, whom a guarantee for one row protects less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spinney.columns import Identifier
from spinney.columns.key import Key, keys_differ
from spinney.errors import SpinneyError
from spinney.schema.people import PeopleShape, RowsShape
from spinney.schema.table import Schema
from spinney.synthesizers.findings import Finding
from spinney.tables.opening import open_source
from spinney.tables.outline import names_of, parts_of

# Keys are held in memory; of longer tables, identifiers that repeat are not looked for.
_MOST_ROWS = 20_000_000


@dataclass(slots=True)
class KeyFindings:
    """What keys brought to light. FOR THE HOLDER ONLY."""

    faults: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    n_persons: int | None = None  # None where keys could not be read


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
