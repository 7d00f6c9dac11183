"""`check`: all faults of a schema and a table at once, free of charge. FOR THE HOLDER ONLY, NOT PRIVATE.

`fit` stops at the first fault; a check goes on and reports all of them. It charges nothing because nothing that
it finds may be published: findings count rows of the private table without noise. They quote no value.

    findings        faults and warnings as text, data and a notebook page
    keys            missing and repeated keys of persons, rows without a person, rows beyond the limit
    unstated keys   columns that look like the key of a person although the schema does not say so
    check           `check` itself: names, types, values, keys, shapes of places
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinney.columns import Boolean, Bounded, Category, Column, Identifier, Integer, Stepped
from spinney.columns.identifier import Key, keys_differ
from spinney.documents import Block, Document, Documented, Facts, Listing, Table
from spinney.errors import InputError, SchemaError, SpinneyError
from spinney.forest.relations import MOST_PAIRS, Sought
from spinney.forest.rules import impossible_values
from spinney.grid.axes import place_axis
from spinney.schema.linked import PeopleShape, RowsShape, Tables
from spinney.schema.persons import PersonRows, position_rules, suggested_keys, suggested_orders
from spinney.schema.rules import Related, Rule
from spinney.schema.rules.related import ratio_text
from spinney.schema.schema import Schema, SchemaLike, as_schema
from spinney.schema.template import SchemaReading, read_schema
from spinney.synthesizers.forest import ForestSynthesizer
from spinney.synthesizers.linked import LinkedSynthesizer
from spinney.synthesizers.method import AUTOMATIC, Choice, choose, make
from spinney.synthesizers.paying import with_few_values, with_widest_bounds
from spinney.synthesizers.validation import of_nobody
from spinney.tables.open import open_source
from spinney.tables.preview import names_of, parts_of
from spinney.tables.source import Source
from spinney.tables.tally import Tallies, Tally, by_name, rules_among
from spinney.text import as_given, brief, closest, did_you_mean, listed, many

# ------------------------------------------------------------------------------------------------------------- findings
# Findings: what a check of a schema and a table brought to light, as a page, as data and as a verdict.
#
# A fault is what `fit` would refuse. A warning is what `fit` would accept, though the holder may not mean it.
# Findings count rows of the private table, so they are for its holder alone, and their first line says so. They quote
# no value.


# Characters of a finding that notebooks show: it ends with the remedy.
_LONGEST = 1_000
FOR_THE_HOLDER = "For the holder only: this page describes the private table; do not publish it."


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault or warning."""

    message: str  # names the column or the rule, and the remedy
    column: str | None = None
    n_rows: int | None = None  # how many rows it is about, where that was counted

    def __str__(self) -> str:
        return self.message if self.n_rows is None else f"{self.message} ({many(self.n_rows, 'row')})"

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain data."""
        return {"column": self.column, "rows": self.n_rows, "message": self.message}


@dataclass(frozen=True, slots=True)
class Findings(Documented):
    """All that `check` found. FOR THE HOLDER ONLY: it describes the private table without noise."""

    faults: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    notes: tuple[str, ...]  # what follows from the schema alone
    n_rows: int | None  # None where rows could not be counted
    method: str | None  # which synthesizer the schema gets, or None where that cannot be said
    reason: str | None
    n_persons: int | None = None  # where rows belong to persons
    tables: Mapping[str, int | None] | None = None  # of linked tables, how many rows each has

    @property
    def is_clean(self) -> bool:
        """Whether there are no faults, so that `fit` would accept the table."""
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        """The findings as plain data for JSON."""
        return {
            "for": FOR_THE_HOLDER,
            "is_clean": self.is_clean,
            "rows": self.n_rows,
            "faults": [finding.to_dict() for finding in self.faults],
            "warnings": [finding.to_dict() for finding in self.warnings],
            "notes": list(self.notes),
            "method": self.method,
            "reason": self.reason,
            **({} if self.n_persons is None and self.tables is None else {"persons": self.n_persons}),
            **({} if self.tables is None else {"tables": dict(self.tables)}),
        }

    def document(self) -> Document:
        """The findings as notebooks show them. For the holder only."""
        facts = [
            ("verdict", "fit would accept this" if self.is_clean else "fit would refuse this"),
            ("rows", None if self.n_rows is None else f"{self.n_rows:,}"),
            ("persons", None if self.n_persons is None else f"{self.n_persons:,}"),
        ]
        for name, n_rows in (self.tables or {}).items():
            facts.append((f"rows of {name}", "not known" if n_rows is None else f"{n_rows:,}"))
        facts.append(("method", None if self.method is None else f"{self.method}: {self.reason}"))
        tables: list[Block] = [
            _table("fault", self.faults),
            _table("warning", self.warnings),
            Listing("notes", self.notes),
        ]
        return Document("Check of a table", [Facts(facts), *tables], [FOR_THE_HOLDER], "Nothing was charged.")

    def __str__(self) -> str:
        lines = [FOR_THE_HOLDER, ""]
        if self.n_rows is not None:
            of_persons = "" if self.n_persons is None else f" of {many(self.n_persons, 'person')}"
            lines.append(f"The table has {many(self.n_rows, 'row')}{of_persons}.")
        for name, n_rows in (self.tables or {}).items():
            lines.append(
                f"Table {name!r} has {'an unknown number of rows' if n_rows is None else many(n_rows, 'row')}."
            )
        if self.tables is not None and self.n_persons is not None:
            lines.append(f"There are {many(self.n_persons, 'person')}.")
        lines += _listed(
            self.faults, "fault", "fit would refuse " + ("the table" if self.tables is None else "the tables")
        )
        lines += _listed(self.warnings, "warning", "fit would accept this, but perhaps not as you intend")
        lines += self.notes
        if self.method is not None:
            lines.append(f"Method {self.method}: {self.reason}.")
        return "\n".join([*lines, "Nothing was charged."])


def _table(kind: str, found: Sequence[Finding]) -> Table:
    rows = [[one.message, "-" if one.n_rows is None else f"{one.n_rows:,}"] for one in found]
    return Table(many(len(rows), kind), (kind, "rows"), rows, is_open=True, longest=_LONGEST)


def _listed(findings: Sequence[Finding], kind: str, means: str) -> list[str]:
    if not findings:
        return [f"No {kind}s."]
    return [f"{many(len(findings), kind)}: {means}.", *(f"  - {finding}" for finding in findings)]


class Found:
    """Faults and warnings as they come together."""

    def __init__(self) -> None:
        self.faults: list[Finding] = []
        self.warnings: list[Finding] = []

    def fault(self, message: str, column: str | None = None, n_rows: int | None = None) -> None:
        """Something that `fit` would refuse."""
        self.faults.append(Finding(message, column, n_rows))

    def warn(self, message: str, column: str | None = None, n_rows: int | None = None) -> None:
        """Something that `fit` would accept, though the holder may not mean it."""
        self.warnings.append(Finding(message, column, n_rows))


# ----------------------------------------------------------------------------------------------------------------- keys
# Keys of persons, checked for the holder's eyes: missing and repeated ones, rows of nobody, rows beyond the limit.
#
# Keys are read once more, by themselves, and compared for equality; none is shown. Of a plain table, identifiers that
# repeat say that its rows may belong to persons, whom a guarantee for one row protects less. A stated key that never
# repeats seems to name rows; another column may be the key of persons that it should have been. Whether one is shows
# in its name, or in another column. One that belongs to the key, as a year of birth belongs to a person, is the same
# in all rows of a key, and jumps from key to key as it would between any two. One that sorts the rows of each key
# rises within them and starts anew with the next.


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


class KeyFindings(Found):
    """What keys brought to light. FOR THE HOLDER ONLY."""

    n_persons: int | None = None  # None where keys could not be read
    never_repeats = False  # whether every person of a flat table has one row


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
                found.fault(
                    f"{_at(shape.persons_name)}column {shape.key!r} holds some key twice, and a person has one row "
                    "there; drop the repeated rows, or swap child and parent of the link if this is the table of rows",
                    shape.key,
                    len(known) - len(distinct),
                )
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
            found.warn(
                f"{_at(rows.name)}some persons have more rows than {stated}={rows.most}, and the rest would be "
                "left out; a larger number adds no noise",
                rows.key,
                n_cut,
            )
    return found


# -------------------------------------------------------------------------------------------------------- unstated keys
# Columns whose values behave like the key of a person, or that name rows, in schemas that do not state it. The
# thresholds are those above. SENSITIVE: all of it is read off the rows.


@dataclass(frozen=True, slots=True)
class LikelyKeys:
    """What the rows say of columns that may be keys. FOR THE HOLDER ONLY."""

    of_rows: tuple[str, ...] = ()  # every row has a value of its own, so nobody has several
    of_persons: tuple[str, ...] = ()  # values repeat as those of the keys of persons do


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
    stated = () if identifiers is not None else [name for name in schema._identifiers if name != schema.person]
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
        found.fault(
            f"{_at(rows.name)}column {rows.key!r} and column {shape.key!r} of table {shape.persons_name!r} have "
            f"{keys_differ(keys.type, known.type)}",
            rows.key,
        )
        return keys
    is_known = pc.is_in(keys, value_set=known)
    n_orphans = len(keys) - int(pc.sum(is_known).as_py() or 0)
    if n_orphans:
        found.fault(
            f"{_at(rows.name)}column {rows.key!r} holds keys that table {shape.persons_name!r} does not have in "
            f"{shape.key!r}; drop these rows, or add their persons",
            rows.key,
            n_orphans,
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
        found.fault(told if key in told else f"{_at(table)}column {key!r}: {told}", key)
        return None
    if n_missing:
        found.fault(
            f"{_at(table)}column {key!r} holds missing keys, and every row must say whose it is; drop these rows "
            "or give them a key",
            key,
            n_missing if len(keys) else None,  # whole numbers with gaps come as floats, none of which are keys
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


# ---------------------------------------------------------------------------------------------------------------- check
# `check`: all faults of a schema and a table at once, for the holder's eyes, without charging anything.
#
# `fit` stops at the first fault, before anything is charged. Here a column that does not fit is set aside, and the
# others are looked at all the same: names first, then types, then values, in one pass over the table. Columns that
# the reader of a file stumbles over are found by reading halves of the columns again. The table is opened and read as
# `fit` does it.


def check(
    frame: Any,
    schema: SchemaLike | Tables,
    *,
    target: str | None = None,
    workload: Sequence[Sequence[str]] | None = None,
    analyses: Sequence[str] | None = None,
    method: str = AUTOMATIC,
    engine: str | None = None,
) -> Findings:
    """All that is wrong with a schema and a table, counted. FOR THE HOLDER ONLY: it describes the table without noise.

    Nothing is charged and nothing is released. The findings never quote a value of the table.

    >>> import numpy as np, spinney as sp
    >>> schema = sp.Schema({"age": sp.Integer(0, 99), "smoker": sp.Boolean()})
    >>> found = sp.check(np.array([[34, 1], [120, 0], [51, 7]]), schema)
    >>> found.is_clean, [(fault.column, fault.n_rows) for fault in found.faults]
    (False, [('smoker', 1)])

    Args:
        frame: any table that `fit` takes; of linked tables, a dictionary of them by name.
        schema: what is public about it: a `Schema`, a dictionary of columns, or the path of a schema file, of which all
            faults are listed; of linked tables, `sp.Tables`. Where rows belong to persons, keys are looked at too:
            missing and repeated ones, rows of nobody, and rows beyond `most_rows`.
        target: the column that the others are about, as for `synthesize`.
        workload: tables that are measured as stated, as for `synthesize`.
        analyses: linear regressions whose sums are measured, as for `synthesize`.
        method: "tree", "forest" or "grid", instead of what the schema suggests.
        engine: what reads the table, where there is a choice; see `fit`.

    Raises:
        ParameterError: `method` or `engine` is unknown.
        FileError: there is no such file, or it may not be read.
    """
    given = {"target": target, "workload": workload, "analyses": analyses}
    if isinstance(schema, Tables):
        return _check_tables(frame, schema, method, given, engine)
    return _Check(frame, _described(schema), engine).findings(method, given)


def _check_tables(frames: Any, tables: Tables, method: str, given: dict[str, Any], engine: str | None) -> Findings:
    """Every table by itself, then their keys."""
    by_name = frames if isinstance(frames, Mapping) else {}
    lacking = [name for name in tables if name not in by_name]
    if lacking:
        raise InputError(
            f"table {listed(lacking)} is missing; pass a table for every name of sp.Tables, in a dictionary"
        )
    options = {name: value for name, value in given.items() if value is not None}
    choice = choose(tables, options, method=method)
    faults, warnings, notes, n_rows = [], [], [], {}
    shape = None
    try:
        shape = PeopleShape.of(tables)
        LinkedSynthesizer(1, **options).check_shape(shape)
    except SpinneyError as err:
        faults.append(Finding(str(err)))
    for name, schema in tables.items():
        facts = next((link.rows for link in tables.links if link.child_table == name), None)
        one = _Check(by_name[name], SchemaReading(schema, ()), engine, facts)
        one.look(schema)
        faults += [_of_table(name, finding) for finding in one.faults]
        warnings += [_of_table(name, finding) for finding in one.warnings]
        notes += [f"Table {name!r}: {note}" for note in _notes(schema, of_persons=True)]
        n_rows[name] = one.n_rows
    keys = KeyFindings() if shape is None else check_keys(by_name, shape, engine)
    return Findings(
        faults=_once([*faults, *keys.faults]),
        warnings=_once([*warnings, *keys.warnings]),
        notes=tuple(notes),
        n_rows=None,
        method=choice.method,
        reason=choice.reason,
        n_persons=keys.n_persons,
        tables=n_rows,
    )


def _of_table(name: str, finding: Finding) -> Finding:
    return replace(finding, message=f"table {name!r}: {finding.message}")


def _described(schema: Any) -> SchemaReading:
    if isinstance(schema, (str, os.PathLike)):
        return read_schema(os.fspath(schema))
    return SchemaReading(as_schema(schema), ())


class _Check(Found):
    """One run of `check`: findings come together as the table is opened and read."""

    def __init__(
        self, frame: Any, described: SchemaReading, engine: str | None, facts: PersonRows | None = None
    ) -> None:
        self.frame = frame
        super().__init__()
        stated = None if described.schema is None else described.schema._person_rows
        self._never_null = {} if (rows := facts or stated) is None else rows.never_null
        self._described = described
        # Columns are read apart where one cannot be read; a table that is held would be read whole every time.
        self._engine = None if engine == "memory" else engine
        self.faults += [Finding(fault) for fault in described.faults]
        self._tallies = Tallies()
        self.notes: list[str] = []
        self._computed: set[str] = set()
        self.n_rows: int | None = None

    def findings(self, method: str, given: dict[str, Any]) -> Findings:
        schema = self._described.schema
        choice, notes, n_persons = None, [], None
        # Where [person] is stated and wrong, what holds for rows of nobody would mislead.
        is_half_stated = schema is not None and schema.person is None and self._described.states_person
        if schema is not None:
            choice = None if is_half_stated else self._choose(schema, method, given)
            notes = _notes(schema, of_persons=is_half_stated or schema.person is not None)
            if schema.person is None and not is_half_stated:
                self.faults += [Finding(of_nobody(rule), rule.column) for rule in position_rules(schema.rules)]
            self.look(schema)
            n_persons = None if is_half_stated else self._look_at_keys(schema)
        return Findings(
            faults=_once(self.faults),
            warnings=_once(self.warnings),
            notes=(*notes, *self.notes),
            n_rows=self.n_rows,
            method=None if choice is None else choice.method,
            reason=None if choice is None else choice.reason,
            n_persons=n_persons,
        )

    def look(self, schema: Schema) -> None:
        """Read the table and judge its columns."""
        self._computed = {rule.column for rule in schema._derivations} - {*schema._related}
        for source in self._open(schema):
            self._read(source, [one for rule in schema.rules for one in _counted(rule)])
            self._look_outside(source, schema)
        self._judge(schema)

    def _look_at_keys(self, schema: Schema) -> int | None:
        """Whose rows they are: how many persons there are where that is stated, and a warning where it should be."""
        is_whole = len(parts_of(self.frame)) == 1 or not self.faults
        if schema.person is None:
            if is_whole:
                self._look_at_identifiers(schema)
                self._look_for_keys(schema, never_repeats=False)
            return None
        if not is_whole or self.n_rows is None or isinstance(self.frame, pa.RecordBatchReader):
            return None
        try:
            found = check_keys({"": self.frame}, PeopleShape.of(schema), self._engine)
        except SchemaError:  # which was told before
            return None
        self.faults += found.faults
        self.warnings += found.warnings
        if found.never_repeats:
            self._look_for_keys(schema, never_repeats=True)
        return found.n_persons

    def _look_at_identifiers(self, schema: Schema) -> None:
        """Warn of identifiers that stand in more than one row, in a table whose rows are protected one by one."""
        is_streamed = isinstance(self.frame, (pa.RecordBatchReader, np.ndarray))
        if self.n_rows is None or self.n_rows > _MOST_ROWS or is_streamed:
            return
        for name in schema._identifiers:
            keys = _keys(self.frame, schema, name, self._engine, KeyFindings(), "")
            n_repeated = 0 if keys is None else len(keys) - len(pc.unique(keys))
            if n_repeated:
                self.warn(
                    f"column {name!r} is an identifier, and its values repeat: rows seem to belong to persons with "
                    "several rows, and the guarantee would be for one row. State whose rows they are: "
                    f"sp.Schema({{...}}, person={name!r}, most_rows=200), or in a schema file a table [person] with "
                    "column and most_rows",
                    name,
                    n_repeated,
                )

    def _look_for_keys(self, schema: Schema, *, never_repeats: bool) -> None:
        """Warn of a person that seems to be a row, and of columns that seem to be the key of persons."""
        if self.n_rows is None or (self.faults and not never_repeats):
            return
        person = schema.person
        likely = likely_keys(self.frame, schema, self._engine, self.n_rows).of_persons
        if person is None:
            likely = tuple(name for name in likely if not isinstance(schema[name], Identifier))  # which was told
        listed = " and ".join(map(repr, likely))
        repeat = f"{'columns' if len(likely) > 1 else 'column'} {listed}: values repeat as keys of persons do"
        remedy = (
            'make it of type "identifier" and state it as the person, so that the guarantee is for a person with all '
            "their rows"
        )
        if never_repeats:
            other = f"; {repeat}. If one of them says whose row it is, {remedy}" if likely else ""
            self.warn(
                f"column {person!r} is stated as the person, and its values never repeat: every person has one row, so "
                "it seems to name rows, and somebody with several rows would be protected for one of them "
                f"alone{other}",
                person,
            )
        elif person is None and likely:
            self.warn(
                f"{repeat}, and the guarantee would be for one row. If one of them says whose row it is, {remedy}",
                likely[0],
            )

    def fault(self, message: str, column: str | None = None, n_rows: int | None = None) -> None:
        # Columns that are computed are not read by a fit, so that nothing in them stops one.
        (self.warn if column in self._computed else super().fault)(message, column, n_rows)

    def _choose(self, schema: Schema, method: str, given: dict[str, Any]) -> Choice:
        """The method that `fit` would take; what it would refuse of the target or the schema is a fault."""
        schema = schema if schema.person is not None else schema._without_ignored()
        target = given["target"]
        if schema.person is None and target is not None and (not isinstance(target, str) or target not in schema):
            if not isinstance(target, str) or target not in self._described.unread:
                self.fault(f"target={as_given(target)} is not a column of the schema{did_you_mean(target, schema)}")
            given = {**given, "target": None}
        options = {name: value for name, value in given.items() if value is not None}
        choice = choose(schema, options, method=method)
        try:
            model: Any = make(choice.method, 1, options)
            if schema.person is not None:
                model.check_shape(PeopleShape.of(schema))
            else:
                model._check(schema)
            if isinstance(model, ForestSynthesizer):
                self._note_relations(model._sought(with_widest_bounds(with_few_values(schema))))
                for name, values in impossible_values(with_widest_bounds(with_few_values(schema))):
                    self.warn(f"column {name!r} can never be {values} under the rules; is that meant?", name)
        except SpinneyError as err:
            self.fault(str(err))
        return choice

    # ------------------------------------------------------------------------------------------- names and types

    def _open(self, schema: Schema) -> list[Source]:
        """The table behind its engine, with columns that do not fit set aside; parts that differ, each by itself."""
        parts = parts_of(self.frame)
        if len(parts) > 1:
            names = [frozenset(names_of(part) or ()) for part in parts]
            if len(set(names)) > 1:
                opened = [self._open_part(part, schema, names_of(part), label=f"{part!r}: ") for part in parts]
                return [source for source in opened if source is not None]
        source = self._open_part(self.frame, schema, None, label="")
        return [] if source is None else [source]

    def _open_part(self, part: Any, schema: Schema, names: list[str] | None, *, label: str) -> Source | None:
        try:
            source = self._source(part, schema)
            if not self._described.unread:
                return source
            problem = ""
        except InputError as err:  # the table itself is at fault; its names may be somebody's values
            self.fault(str(err))
            return None
        except SchemaError as err:
            problem = str(err)
        if isinstance(part, np.ndarray):
            names = list(schema)
        elif names is None:
            names = names_of(parts_of(part)[0])
        known = [*schema, *sorted(self._described.unread)]
        if names is None or set(known).isdisjoint(names):
            self.fault(problem)
            return None
        self._compare_names(names, known, label)
        columns = {name: schema[name] if name in schema else Identifier() for name in names}
        try:
            for name, message in self._misfits(part, columns, []).items():
                self.fault(message, name)
                columns[name] = Identifier()
            return self._source(part, Schema(columns))
        except (InputError, SchemaError) as err:
            self.fault(str(err))
            return None

    def _source(self, part: Any, schema: Schema) -> Source:
        return open_source(part, schema, engine=self._engine)

    def _compare_names(self, names: Sequence[str], known: Sequence[str], label: str) -> None:
        """Names on one side only, those that may be meant to be the same together."""
        missing = [name for name in known if name not in names]
        for name in names:
            if name in known:
                continue
            near = closest(name, missing)
            if near is None:
                rest = '; describe it, leave it out with type = "ignore", or drop it'
            else:
                missing.remove(near)
                rest = f", and {near!r} is in the schema but not in the table; if they are the same column, rename one"
            self.fault(f"{label}column {name!r} is in the table but not in the schema{rest}", name)
        for name in missing:
            self.fault(
                f"{label}column {name!r} is in the schema but not in the table; add it or take it out of the schema",
                name,
            )

    def _misfits(self, part: Any, columns: dict[str, Column], names: list[str]) -> dict[str, str]:
        """What is said of each column whose type does not fit, where only these names are looked at; [] means all."""
        looked_at = names or [name for name, column in columns.items() if column.is_read]
        try:
            self._source(part, Schema({name: c if name in looked_at else Identifier() for name, c in columns.items()}))
        except SchemaError as err:
            if len(looked_at) == 1:
                return {looked_at[0]: str(err)}
            middle = len(looked_at) // 2
            halves = (looked_at[:middle], looked_at[middle:])
            return {name: said for half in halves for name, said in self._misfits(part, columns, half).items()}
        return {}

    # --------------------------------------------------------------------------------------------------- values

    def _read(self, source: Source, rules: Sequence[Rule]) -> None:
        names = [name for name, column in source.schema.items() if column.is_read]
        try:
            self.n_rows = (self.n_rows or 0) + source.n_rows
        except InputError as err:  # a fault of the file, whichever columns are read
            self.fault(f"{err}. What comes after it in the file was not looked at.")
            return
        if not source.n_rows or not names:
            return
        read = self._tally(source, names, rules)
        together = [rule for rule in rules_among(rules, read.columns) if rule not in read.n_broken]
        if together:
            about = list(dict.fromkeys(name for rule in together for name in rule.columns))
            read.n_broken.update(source.tally(about, together).n_broken)
        self._tallies.add(read)

    def _tally(self, source: Source, names: list[str], rules: Sequence[Rule]) -> Tallies:
        """Tallies of all columns that can be read out of the table, in one pass if all can."""
        try:
            return source.tally(names, rules)
        except InputError as err:
            if len(names) == 1:
                self.fault(str(err), names[0])
                return Tallies()
        middle = len(names) // 2
        found = self._tally(source, names[:middle], rules)
        found.add(self._tally(source, names[middle:], rules))
        return found

    def _is_read(self, name: str, schema: Schema) -> bool:
        """Whether every value of a column so far has a cell."""
        tally = self._tallies.columns.get(name)
        return tally is not None and tally.complaint is None and (schema[name].nullable or not tally.n_missing)

    def _look_outside(self, source: Source, schema: Schema) -> None:
        """Count the rows that lie outside the shapes of places, if their columns can be read."""
        for place in schema.places:
            if place.within is None or not all(self._is_read(name, schema) for name in place.columns):
                continue
            axis = place_axis(place, schema)
            codes, counts = source.count_cells(axis.lattice).distinct()
            is_possible = axis.is_possible(codes, np.full(len(codes), axis.lattice.depth, dtype=np.int64))
            n_outside = int(counts[~is_possible].sum())
            if n_outside:
                self.warn(
                    f"rows of the place {place.label!r} lie outside its shape; they are counted with the region around "
                    "them or not at all, and no synthetic row lies there",
                    place.columns[0],
                    n_outside,
                )

    # ------------------------------------------------------------------------------------------------- judgement

    def _judge(self, schema: Schema) -> None:
        if self.n_rows == 0:
            self.fault("the table has no rows; there is nothing to release")
        for name, tally in by_name(self._tallies.columns, schema).items():
            self._judge_column(name, schema[name], tally)
        for rule, n_rows in self._tallies.n_broken.items():
            if isinstance(rule, Related):
                self._judge_ratio(rule, (self.n_rows or 0) - n_rows)
            elif n_rows and not any(self._tallies.columns[name].complaint for name in rule.columns):
                self.warn(
                    f"{rule!r} does not hold in some rows; all synthetic rows will obey it", rule.columns[0], n_rows
                )

    def _note_relations(self, sought: Sought) -> None:
        """Tell of columns that are too many for relations between them to be looked for."""
        if sought.too_many:
            self.notes.append(
                f"{listed(sought.too_many)} are of one kind, and make more than {MOST_PAIRS} pairs: whether some are "
                "equal, or fixed parts of each other, in many rows is not looked for; state those that are by "
                "sp.Related."
            )

    def _judge_ratio(self, rule: Related, n_rows: int) -> None:
        """How many rows have a ratio: that there are none may be a slip of whoever stated it."""
        if n_rows:
            self.notes.append(f"{rule.in_words()} in {n_rows:,} of {self.n_rows:,} rows.")
        else:
            (ratio,) = rule.ratios
            remedy = "correct it"
            if ratio > _LARGEST_LIKELY_RATIO:
                remedy = f"if {ratio_text(ratio)} is a percentage, state {ratio_text(ratio / 100)} in its place"
            self.warn(f"no row has a ratio that {rule!r} states; {remedy}, or leave it out", rule.column)

    def _judge_column(self, name: str, column: Column, tally: Tally) -> None:
        if tally.complaint is not None:
            told = tally.complaint if f"column {name!r}" in tally.complaint else f"column {name!r}: {tally.complaint}"
            self.fault(told, name, tally.n_wrong if tally.is_counted else None)
        if tally.n_missing and not column.nullable:
            why = self._never_null.get(name)
            remedy = "; declare it nullable or clean the table"
            remedy = remedy if why is None else f", and {why}; drop these rows, or give them a value"
            self.fault(f"column {name!r} holds a missing or non-finite value{remedy}", name, tally.n_missing)
        if isinstance(column, Bounded):
            outside = {f"below low={column.low}": tally.n_below, f"above high={column.high}": tally.n_above}
            for where, n_rows in outside.items():
                if n_rows:
                    self.warn(f"column {name!r}: values {where} would be moved to that bound", name, n_rows)
        if tally.n_off_step and isinstance(column, Stepped):
            step = f"multiple_of={column.multiple_of}, counted from {column._counted_from}"
            self.warn(f"column {name!r}: values between multiples ({step}) would be rounded", name, tally.n_off_step)
        if tally.n_other and isinstance(column, Category):
            self.warn(
                f"column {name!r}: rows have the value {brief(column.other)}, or one that is not listed and counts so",
                name,
                tally.n_other,
            )
        if tally.complaint is not None or (isinstance(column, Category) and not column.has_values):
            return
        if tally.n_missing == tally.n_rows:
            self.warn(f"column {name!r} holds no value at all", name)
        elif tally.n_rows > 1 and tally.ends is not None and tally.ends[0] == tally.ends[1]:
            self.warn(f"column {name!r} holds only one value", name)


# A ratio beyond this that no row has may have been stated in percent.
_LARGEST_LIKELY_RATIO = 10


def _counted(rule: Rule) -> Sequence[Rule]:
    """What is counted of a rule: each of several ratios by itself."""
    return rule.one_by_one() if isinstance(rule, Related) else [rule]


def _once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each message once: what is wrong with a whole file is told of every column that was looked for in it."""
    return tuple({finding.message: finding for finding in reversed(list(findings))}.values())[::-1]


def _notes(schema: Schema, *, of_persons: bool) -> list[str]:
    """What follows from the schema alone. Of persons nothing is estimated: that it should be is a fault."""
    notes = []
    if not of_persons and (private := schema._columns_awaiting_bounds("private")):
        notes.append(f"Bounds of {', '.join(map(repr, private))} would be estimated privately, using part of epsilon.")
    if not of_persons and (private := schema._columns_awaiting_values):
        notes.append(
            f"Values of {', '.join(map(repr, private))} would be found privately, using part of epsilon and delta."
        )
    computed = [rule.column for rule in schema._derivations if rule.column not in schema._related]
    if computed:
        notes.append(f"Computed from other columns, at no cost: {', '.join(map(repr, computed))}.")
    of_positions = position_rules(schema.rules)
    if n_rules := len(schema.rules) - len(schema._derivations) - len(of_positions):
        obeyed = "the rule" if n_rules == 1 else f"all {n_rules} rules"
        notes.append(f"Every synthetic row would obey {obeyed}, at no cost.")
    if schema.person is not None and of_positions:
        obeyed = "the rule" if len(of_positions) == 1 else f"all {len(of_positions)} rules"
        notes.append(f"The rows of every synthetic person would obey {obeyed} about positions, at no cost.")
    if schema._has_data_derived_bounds:
        notes.append('Bounds would be read off the data (bounds="from-data-not-private"), which voids the guarantee.')
    return notes
