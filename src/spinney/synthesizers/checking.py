"""`check`: all faults of a schema and a table at once, for the holder's eyes, without charging anything.

`fit` stops at the first fault, before anything is charged. Here a column that does not fit is set aside, and the others
are looked at all the same: names first, then types, then values, in one pass over the table. Columns that the reader of
a file stumbles over are found by reading halves of the columns again. The table is opened and read as `fit` does it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from spinney.columns import Bounded, Category, Column, Identifier, Stepped
from spinney.errors import InputError, SchemaError, SpinneyError
from spinney.forest.rule_tables import impossible_values
from spinney.schema.people import PeopleShape, Tables
from spinney.schema.persons import PersonRows, position_rules
from spinney.schema.place_axis import place_axis
from spinney.schema.reading import SchemaReading, read_schema
from spinney.schema.rules import Rule
from spinney.schema.table import Schema, SchemaLike, as_schema
from spinney.shown import as_given, brief
from spinney.suggest import closest, did_you_mean, listed
from spinney.synthesizers.bounds import with_widest_bounds
from spinney.synthesizers.checking_keys import KeyFindings, check_keys, repeated_identifiers, warnings_of_keys
from spinney.synthesizers.findings import Finding, Findings
from spinney.synthesizers.linked import LinkedSynthesizer
from spinney.synthesizers.method import AUTOMATIC, Choice, choose, make
from spinney.synthesizers.validation import of_nobody
from spinney.synthesizers.values import with_few_values
from spinney.tables.opening import open_source
from spinney.tables.outline import names_of, parts_of
from spinney.tables.source import Source
from spinney.tables.tally import Tallies, Tally, by_name, rules_among


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


class _Check:
    """One run of `check`: findings come together as the table is opened and read."""

    def __init__(
        self, frame: Any, described: SchemaReading, engine: str | None, facts: PersonRows | None = None
    ) -> None:
        self.frame = frame
        stated = None if described.schema is None else described.schema.person_rows
        self._never_null = {} if (rows := facts or stated) is None else rows.never_null
        self._described = described
        # Columns are read apart where one cannot be read; a table that is held would be read whole every time.
        self._engine = None if engine == "memory" else engine
        self.faults = [Finding(fault) for fault in described.faults]
        self.warnings: list[Finding] = []
        self._tallies = Tallies()
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
            notes=tuple(notes),
            n_rows=self.n_rows,
            method=None if choice is None else choice.method,
            reason=None if choice is None else choice.reason,
            n_persons=n_persons,
        )

    def look(self, schema: Schema) -> None:
        """Read the table and judge its columns."""
        self._computed = {rule.column for rule in schema.derivations}
        for source in self._open(schema):
            self._read(source, schema.rules)
            self._look_outside(source, schema)
        self._judge(schema)

    def _look_at_keys(self, schema: Schema) -> int | None:
        """Whose rows they are: how many persons there are where that is stated, and a warning where it should be."""
        is_whole = len(parts_of(self.frame)) == 1 or not self.faults
        if schema.person is None:
            if is_whole:
                self.warnings += repeated_identifiers(self.frame, schema, self._engine, self.n_rows)
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

    def _look_for_keys(self, schema: Schema, *, never_repeats: bool) -> None:
        """Warn of a person that seems to be a row, and of columns that seem to be the key of persons."""
        if self.n_rows is not None and (never_repeats or not self.faults):
            self.warnings += warnings_of_keys(
                self.frame, schema, self._engine, self.n_rows, never_repeats=never_repeats
            )

    def _fault(self, message: str, column: str | None = None, n_rows: int | None = None) -> None:
        # Columns that are computed are not read by a fit, so that nothing in them stops one.
        (self.warnings if column in self._computed else self.faults).append(Finding(message, column, n_rows))

    def _warn(self, message: str, column: str | None = None, n_rows: int | None = None) -> None:
        self.warnings.append(Finding(message, column, n_rows))

    def _choose(self, schema: Schema, method: str, given: dict[str, Any]) -> Choice | None:
        """The method that `fit` would take, unless the target or the schema is not for it."""
        if schema.person is not None:
            return self._choose_persons(schema, method, given)
        schema = schema.without_ignored()
        target = given["target"]
        if target is not None and (not isinstance(target, str) or target not in schema):
            if not isinstance(target, str) or target not in self._described.unread:
                self._fault(f"target={as_given(target)} is not a column of the schema{did_you_mean(target, schema)}")
            given = {**given, "target": None}
        options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        choice = choose(schema, options, method=method)
        try:
            model: Any = make(choice.method, 1, options)
            model._check(schema)
            if choice.method == "forest":
                for name, values in impossible_values(with_widest_bounds(with_few_values(schema))):
                    self._warn(f"column {name!r} can never be {values} under the rules; is that meant?", name)
        except SpinneyError as err:
            self._fault(str(err))
        return choice

    def _choose_persons(self, schema: Schema, method: str, given: dict[str, Any]) -> Choice:
        options = {name: value for name, value in given.items() if value is not None}
        choice = choose(schema, options, method=method)
        try:
            LinkedSynthesizer(1, **options).check_shape(PeopleShape.of(schema))
        except SpinneyError as err:
            self._fault(str(err))
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
            self._fault(str(err))
            return None
        except SchemaError as err:
            problem = str(err)
        if isinstance(part, np.ndarray):
            names = list(schema)
        elif names is None:
            names = names_of(parts_of(part)[0])
        known = [*schema, *sorted(self._described.unread)]
        if names is None or set(known).isdisjoint(names):
            self._fault(problem)
            return None
        self._compare_names(names, known, label)
        columns = {name: schema[name] if name in schema else Identifier() for name in names}
        try:
            for name, message in self._misfits(part, columns, []).items():
                self._fault(message, name)
                columns[name] = Identifier()
            return self._source(part, Schema(columns))
        except (InputError, SchemaError) as err:
            self._fault(str(err))
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
            self._fault(f"{label}column {name!r} is in the table but not in the schema{rest}", name)
        for name in missing:
            self._fault(
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
            self._fault(f"{err}. What comes after it in the file was not looked at.")
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
                self._fault(str(err), names[0])
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
                self._warn(
                    f"rows of the place {place.label!r} lie outside its shape; they are counted with the region around "
                    "them or not at all, and no synthetic row lies there",
                    place.columns[0],
                    n_outside,
                )

    # ------------------------------------------------------------------------------------------------- judgement

    def _judge(self, schema: Schema) -> None:
        if self.n_rows == 0:
            self._fault("the table has no rows; there is nothing to release")
        for name, tally in by_name(self._tallies.columns, schema).items():
            self._judge_column(name, schema[name], tally)
        for rule, n_rows in self._tallies.n_broken.items():
            if n_rows and not any(self._tallies.columns[name].complaint for name in rule.columns):
                self._warn(
                    f"{rule!r} does not hold in some rows; all synthetic rows will obey it", rule.columns[0], n_rows
                )

    def _judge_column(self, name: str, column: Column, tally: Tally) -> None:
        if tally.complaint is not None:
            told = tally.complaint if f"column {name!r}" in tally.complaint else f"column {name!r}: {tally.complaint}"
            self._fault(told, name, tally.n_wrong if tally.is_counted else None)
        if tally.n_missing and not column.nullable:
            why = self._never_null.get(name)
            remedy = "; declare it nullable or clean the table"
            remedy = remedy if why is None else f", and {why}; drop these rows, or give them a value"
            self._fault(f"column {name!r} holds a missing or non-finite value{remedy}", name, tally.n_missing)
        if isinstance(column, Bounded):
            outside = {f"below low={column.low}": tally.n_below, f"above high={column.high}": tally.n_above}
            for where, n_rows in outside.items():
                if n_rows:
                    self._warn(f"column {name!r}: values {where} would be moved to that bound", name, n_rows)
        if tally.n_off_step and isinstance(column, Stepped):
            step = f"multiple_of={column.multiple_of}, counted from {column.counted_from}"
            self._warn(f"column {name!r}: values between multiples ({step}) would be rounded", name, tally.n_off_step)
        if tally.n_other and isinstance(column, Category):
            self._warn(
                f"column {name!r}: rows have the value {brief(column.other)}, or one that is not listed and counts so",
                name,
                tally.n_other,
            )
        if tally.complaint is not None or (isinstance(column, Category) and not column.has_values):
            return
        if tally.n_missing == tally.n_rows:
            self._warn(f"column {name!r} holds no value at all", name)
        elif tally.n_rows > 1 and tally.ends is not None and tally.ends[0] == tally.ends[1]:
            self._warn(f"column {name!r} holds only one value", name)


def _once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each message once: what is wrong with a whole file is told of every column that was looked for in it."""
    return tuple({finding.message: finding for finding in reversed(list(findings))}.values())[::-1]


def _notes(schema: Schema, *, of_persons: bool) -> list[str]:
    """What follows from the schema alone. Of persons nothing is estimated: that it should be is a fault."""
    notes = []
    if not of_persons and (private := schema.columns_awaiting_bounds("private")):
        notes.append(f"Bounds of {', '.join(map(repr, private))} would be estimated privately, using part of epsilon.")
    if not of_persons and (private := schema.columns_awaiting_values):
        notes.append(
            f"Values of {', '.join(map(repr, private))} would be found privately, using part of epsilon and delta."
        )
    if computed := [rule.column for rule in schema.derivations]:
        notes.append(f"Computed from other columns, at no cost: {', '.join(map(repr, computed))}.")
    of_positions = position_rules(schema.rules)
    if n_rules := len(schema.rules) - len(computed) - len(of_positions):
        obeyed = "the rule" if n_rules == 1 else f"all {n_rules} rules"
        notes.append(f"Every synthetic row would obey {obeyed}, at no cost.")
    if schema.person is not None and of_positions:
        obeyed = "the rule" if len(of_positions) == 1 else f"all {len(of_positions)} rules"
        notes.append(f"The rows of every synthetic person would obey {obeyed} about positions, at no cost.")
    if schema.has_data_derived_bounds:
        notes.append('Bounds would be read off the data (bounds="from-data-not-private"), which voids the guarantee.')
    return notes
