"""Rows of persons: what they are drawn given, what they have to obey, and how states become rows. PUBLIC.

The same functions serve private rows in a fit and synthetic rows in a draw; everything here follows from the
schema and from released numbers.

    evidence                  what a row is drawn given: its person, its place, the row before, the first row
    first tables              the tables that are measured in any case
    names of added columns    names of columns that a model of persons adds
    rows that obey rules      rows that obey the rules between their columns
    difference columns        columns that are learnt as differences from the row before or from the first
    masks                     states that are impossible in a row's place
    sample rows               states of rows, person by person
    released rows             one table of rows as it was released, and its draws
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, Integer, Real, whole_range
from spinney.errors import SchemaError
from spinney.forest.release.columns import ColumnModel, Floats, graded_leaves, origin_of
from spinney.forest.release.conditions import Zeros, feasible, possible_states, resample_above
from spinney.graph.crf import Field, Mask
from spinney.graph.crf_inference import FieldClique
from spinney.grid.axes import Parting, column_axes, column_axis, partings
from spinney.release.card import check
from spinney.schema.linked import PeopleShape, RowsShape
from spinney.schema.rules import AtMost, Clause, First, Implies, PositionRule, Rule, clauses_of
from spinney.schema.schema import Schema

# ------------------------------------------------------------------------------------------------------------- evidence
# Evidence: what a row is drawn given. The same functions serve private and synthetic rows.
#
# A row knows, in this order: the states of its person in all variables of the persons model; its place among the
# person's rows (the only one, the first, one between, the last); where rows have an order, the states of the row
# before; with a role, the states of the person's first row. Of what does not exist, such as the row before the first,
# there is a state of its own, the last.


AnyStates = NDArray[Any]

N_PLACES = 4
ONLY, FIRST, BETWEEN, LAST = range(N_PLACES)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that rows are drawn given: its kind, and the number of the variable or of the own column."""

    kind: str  # "person", "place", "before" or "anchor"
    number: int
    size: int


@dataclass(frozen=True)
class Layout:
    """All evidence of the rows of one table.

    Args:
        person_sizes: how many states every variable of a person has.
        own_sizes: how many states every column of a row has.
        has_before: for every column of a row, whether the row before is evidence of it.
        has_anchor: the same of the person's first row.
    """

    person_sizes: tuple[int, ...]
    own_sizes: tuple[int, ...]
    has_before: tuple[bool, ...]
    has_anchor: tuple[bool, ...]

    @cached_property
    def every(self) -> tuple[Evidence, ...]:
        """All of it, in order."""
        persons = [Evidence("person", number, size) for number, size in enumerate(self.person_sizes)]
        own = list(enumerate(self.own_sizes))
        before = [Evidence("before", number, size + 1) for number, size in own if self.has_before[number]]
        anchor = [Evidence("anchor", number, size + 1) for number, size in own if self.has_anchor[number]]
        return (*persons, Evidence("place", 0, N_PLACES), *before, *anchor)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many states each has."""
        return tuple(evidence.size for evidence in self.every)

    @property
    def place(self) -> int:
        """The number of the place among all evidence."""
        return len(self.person_sizes)


def row_evidence(
    evidence: Evidence, persons: AnyStates, own: AnyStates, person: NDArray[np.int64], starts: NDArray[np.int64]
) -> AnyStates:
    """The states (n_rows,) of one evidence, for rows that are all there.

    Args:
        evidence: which one.
        persons: states of persons (n_variables, n_persons).
        own: states of rows (n_columns, n_rows), in the order of persons, each person's from the first to the last.
        person: the person of every row.
        starts: where every person's rows begin, and the number of all rows.
    """
    if evidence.kind == "person":
        return np.asarray(persons[evidence.number][person])
    if evidence.kind == "place":
        return places(starts)
    line = own[evidence.number]
    none = evidence.size - 1
    dtype = np.uint8 if evidence.size <= 256 else np.uint16
    found = np.empty(len(line), dtype=dtype)
    is_first = np.zeros(len(line), dtype=np.bool_)
    is_first[starts[:-1][np.diff(starts) > 0]] = True
    if evidence.kind == "before":
        found[1:] = line[:-1]
    else:
        found[:] = line[starts[person]]
    found[is_first] = none
    return found


def places(starts: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The place of every row among those of its person."""
    found = np.full(int(starts[-1]), BETWEEN, dtype=np.uint8)
    n_rows = np.diff(starts)
    first, last = starts[:-1][n_rows > 0], starts[1:][n_rows > 0] - 1
    found[first] = FIRST
    found[last] = LAST
    found[first[first == last]] = ONLY
    return found


def person_of_rows(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The person of every row."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


# --------------------------------------------------------------------------------------------------------- first tables
# Tables of rows that are measured in any case, before any is chosen. PUBLIC.
#
# With a role every column with it; columns with a hidden level with that, and with the number of the person's rows.
# All others cost a choice, so a file has as many choices as it has tables beyond these.


def first_cliques(
    layout: Layout, role: int | None, count: int, levels: Sequence[tuple[int, int]]
) -> list[tuple[FieldClique, int | None]]:
    """What is measured in any case, and the axis along which half is expected to be even: levels lie in tails.

    Args:
        layout: what rows may depend on.
        role: the column that says what a row is.
        count: the evidence that is the number of a person's rows.
        levels: evidence that is a hidden level, and its column.
    """
    found: list[tuple[FieldClique, int | None]] = []
    if role is not None:
        others = [column for column in range(len(layout.own_sizes)) if column != role]
        found += [(FieldClique((), (role, column)), None) for column in others]
    # A column in which rows of a person are not alike does not depend on how many there are: that is the person's own.
    counts = [(count, column) for _, column in levels]
    for evidence, column in (*counts, *levels):
        if layout.sizes[evidence] > 1:
            with_role = () if role in (None, column) else (role,)
            even = None if evidence == count else -1
            found.append((FieldClique((evidence,), (*with_role, column)), even))
    return found


# ----------------------------------------------------------------------------------------------- names of added columns
# Names of the columns that a model of persons has beside those that were stated.
#
#     transactions.#          how many rows of a table a person has
#     transactions.^day       the first value of a column whose later values are learnt as differences
#     transactions.~amount    a hidden level: what a person's rows have in common in a column
#
# A flat table has no name, and its names begin with the mark.


_COUNT, _FIRST, _LEVEL = "#", "^", "~"


def count_name(table: str) -> str:
    """The number of rows that a person has of a table."""
    return column_name(table, _COUNT)


def first_name(table: str, column: str) -> str:
    """The first value that a person has of a column."""
    return column_name(table, f"{_FIRST}{column}")


def level_name(table: str, column: str) -> str:
    """The hidden level of a person in a column."""
    return column_name(table, f"{_LEVEL}{column}")


def refuse_taken(stated: Iterable[str], made: Iterable[str]) -> None:
    """Raise a SchemaError where a stated column has a name that a model of persons gives itself."""
    taken = set(made)
    for name in stated:
        if name in taken:
            raise SchemaError(
                f"column {name!r} of the persons table has a name that Spinney gives to what it learns of persons' "
                "rows; rename the column"
            )


def column_name(table: str | None, name: str) -> str:
    return f"{table}.{name}" if table else name


# ------------------------------------------------------------------------------------------------- rows that obey rules
# Rows that obey the rules between their own columns. PUBLIC.
#
# A field knows nothing of rules such as `Implies`, so rows that break one are drawn again, which is the field's law
# given that the rules hold. Where that takes too long, the columns of the rules get a combination of states that
# obeys, and the others are drawn given it.


States = NDArray[np.int32]

# So often is a row drawn again before its states are put together.
_TRIES = 30
# So many combinations are tried for a row at a time, and so often.
_TRIED, _ROUNDS = 64, 200


def draw_obeying(
    field: Field, evidence: States, rng: np.random.Generator, clamp: Mapping[int, Any], zeros: Zeros
) -> States:
    """States of rows (n_columns, n_rows) given their evidence, none of which the zeros make impossible.

    Args:
        field: the law of rows.
        evidence: states of each row (n_evidence, n_rows).
        rng: draws the rows.
        clamp: own columns whose states are given (n_rows,).
        zeros: which combinations of states of own columns are possible; see `possible_states`.
    """
    own = field.draw(evidence, rng, clamp=clamp)
    broken = _broken(own, zeros)
    for _ in range(_TRIES):
        if not len(broken):
            return own
        given = {column: states[broken] for column, states in clamp.items()}
        own[:, broken] = field.draw(evidence[:, broken], rng, clamp=given)
        broken = broken[_broken(own[:, broken], zeros)]
    if len(broken):
        columns = sorted({column for clique, _ in zeros for column in clique})
        for row in broken.tolist():
            _put_together(field, evidence[:, row], own[:, row], columns, clamp.keys(), zeros, rng)
        given = {column: states[broken] for column, states in clamp.items()}
        given |= {column: own[column, broken] for column in columns}
        own[:, broken] = field.draw(evidence[:, broken], rng, clamp=given)
    return own


def _broken(own: States, zeros: Zeros) -> NDArray[np.int64]:
    """The rows that have an impossible combination of states."""
    return np.flatnonzero(~_obey(own, zeros))


def _obey(own: States, zeros: Zeros) -> NDArray[np.bool_]:
    """Whether rows have no impossible combination of states."""
    found = np.ones(own.shape[1], dtype=np.bool_)
    for clique, possible in zeros:
        found &= possible[tuple(own[column] for column in clique)]
    return found


def _put_together(
    field: Field,
    evidence: NDArray[np.int32],
    row: NDArray[np.int32],
    columns: Sequence[int],
    fixed: Any,
    zeros: Zeros,
    rng: np.random.Generator,
) -> None:
    """Write states into one row that obey, are possible in its place, and are as near to its own as it goes."""
    free = [column for column in columns if column not in fixed]
    masks = [(column, possible[evidence[number]]) for number, column, possible in field.masks]
    tried = np.repeat(row[:, None], _TRIED, axis=1)
    for n_changed in range(_ROUNDS):
        tried[:] = row[:, None]
        # A few columns change at first, and more of them where that does not help.
        share = min(1.0, (1 + n_changed // 10) / max(len(free), 1))
        for column in free:
            changes = rng.random(_TRIED) < share
            tried[column, changes] = rng.integers(field.sizes[column], size=int(changes.sum()))
        obeys = _obey(tried, zeros)
        for column, possible in masks:
            obeys &= possible[tried[column]]
        if obeys.any():
            row[:] = tried[:, np.flatnonzero(obeys)[0]]
            return


# --------------------------------------------------------------------------------------------------- difference columns
# Relative columns: those in which later rows of a person are learnt as differences. Public.
#
# Where rows are steps of a history, the column that orders them is learnt as its first value, a column of the
# person, and as what it grows by from row to row. A column of differences is learnt as its first value and as
# how far later rows are from that.


def relative_columns(rows: RowsShape) -> tuple[str, ...]:
    """The relative columns of a table: the order, where rows are steps, and differences."""
    return (*((rows.order,) if rows.steps and rows.order else ()), *rows.differences)


def learnt_schema(rows: RowsShape) -> Schema:
    """The columns of a row as they are learnt, without its key: relative ones as differences, null in the first row."""
    columns = {name: column for name, column in rows.schema.items() if name != rows.key}
    relative = relative_columns(rows)
    rules = [rule for rule in rows.schema.rules if not isinstance(rule, PositionRule)]
    for rule in rules:
        for name in rule.columns:
            if name in relative:
                raise SchemaError(
                    f"column {name!r} is learnt by differences between rows, so that no rule of single rows can hold "
                    f"for it; take out {rule!r}, or steps and differences"
                )
    for name in relative:
        columns[name] = difference_column(columns[name], grows=rows.steps and name == rows.order)
    return Schema(columns, rules=rules)


def difference_column(column: Column, *, grows: bool) -> Column:
    """The type of differences between two values of a column."""
    assert isinstance(column, Bounded)
    if isinstance(column, Real):
        reach = float(column.high) - float(column.low)
        return Real(0.0 if grows else -reach, reach, multiple_of=column.multiple_of, nullable=True)
    low, high = whole_range(column)
    return Integer(0 if grows else low - high, high - low, multiple_of=column.step, nullable=True)


def made_columns(shape: PeopleShape) -> dict[str, Column]:
    """What is made of persons' rows before anything is released: numbers of rows, and first values."""
    made: dict[str, Column] = {}
    for rows in shape.rows:
        made[count_name(rows.name)] = Integer(0 if shape.persons is not None else 1, rows.most)
        for name in relative_columns(rows):
            made[first_name(rows.name, name)] = replace(rows.schema[name], nullable=shape.persons is not None)
    return made


def anchors(shape: PeopleShape, target: str | None = None) -> list[str]:
    """The columns of persons that all others are counted with: numbers of rows, and a target.

    Those that can have one value only say nothing.
    """
    made = made_columns(shape)
    columns = {count_name(rows.name): made[count_name(rows.name)] for rows in shape.rows}
    if target is not None and shape.persons is not None:
        columns[target] = shape.persons[target]
    return [name for name, column in columns.items() if not column_axis(name, column).is_known]


def persons_schema(shape: PeopleShape) -> Schema:
    """The columns of a person as they are learnt: stated ones, numbers of rows, first values."""
    made = made_columns(shape)
    if shape.persons is None:
        return Schema(made)
    stated = {name: column for name, column in shape.persons.items() if name != shape.key}
    refuse_taken(stated, [*made, *(level_name(rows.name, name) for rows in shape.rows for name in rows.modelled)])
    rules = [rule for rows in shape.rows for rule in _first_rules(rows)]
    return Schema({**stated, **made}, rules=[*shape.persons.rules, *rules], places=shape.persons.places)


def _first_rules(rows: RowsShape) -> list[Rule]:
    """Who has no rows has no first value, and who has some has one."""
    count = count_name(rows.name)
    found: list[Rule] = []
    for name in relative_columns(rows):
        column, first = rows.schema[name], first_name(rows.name, name)
        assert isinstance(column, Bounded)
        found += [Implies({count: 0}, {first: None}), Implies({count: (1, None)}, {first: (column.low, column.high)})]
    return found


# ---------------------------------------------------------------------------------------------------------------- masks
# Masks: which states of a row's columns are impossible in its place among a person's rows. PUBLIC.
#
# A relative column is null in the first row and in no other. Rules over positions say which values a first row has,
# and which none has that another follows. Masks follow from what was stated and from the leaves of the columns, so
# those of a file are worked out again.


def told_apart(rows: RowsShape, schema: Schema) -> list[Clause]:
    """The values that rules over positions are about, which share no state with others. `schema` is as learnt."""
    return [{rule.column: rule.says(schema[rule.column])} for rule in rows.position_rules]


def position_masks(rows: RowsShape, schema: Schema, models: Mapping[str, ColumnModel], *, place: int) -> list[Mask]:
    """The masks of one table of rows, of which `place` is the number of the evidence.

    Args:
        rows: the table.
        schema: its columns as they are learnt.
        models: the released columns, all of them, in order.
        place: the number of the evidence that is a row's place.
    """
    numbers = {name: number for number, name in enumerate(models)}
    found: list[Mask] = []
    for name in relative_columns(rows):
        is_null = _states(models[name], models[name].is_null, name)
        possible = np.empty((N_PLACES, len(is_null)), dtype=np.bool_)
        possible[[ONLY, FIRST]], possible[[BETWEEN, LAST]] = is_null, ~is_null
        found.append((place, numbers[name], possible))
    parted = _partings(rows, schema) if rows.position_rules else {}
    for rule in rows.position_rules:
        model, parting = models[rule.column], parted[rule.column]
        inside = parting.is_in[parting.sets.index(rule.says(schema[rule.column]))]
        is_meant = _states(model, inside[parting.labels_at(model.low)] & ~model.is_null, rule.column)
        possible = np.ones((N_PLACES, len(is_meant)), dtype=np.bool_)
        if isinstance(rule, First):
            possible[[ONLY, FIRST]] = is_meant
            possible[[BETWEEN, LAST]] = ~is_meant | (not rule.only)
        else:
            possible[[FIRST, BETWEEN]] = ~is_meant
        found.append((place, numbers[rule.column], possible))
    return found


def check_masks(
    masks: Sequence[Mask], rows: RowsShape, schema: Schema, models: Mapping[str, ColumnModel], *, place: int
) -> None:
    """Raise a ContradictionError where masks are not those that follow from the table and its leaves."""
    wanted = position_masks(rows, schema, models, place=place)
    is_same = [mask[:2] for mask in masks] == [mask[:2] for mask in wanted] and all(
        np.array_equal(possible, needed) for (_, _, possible), (_, _, needed) in zip(masks, wanted, strict=True)
    )
    check(is_same, "masks are not those that rules over positions and differences give")


def _partings(rows: RowsShape, schema: Schema) -> dict[str, Parting]:
    clauses = [*clauses_of(schema.rules, schema), *told_apart(rows, schema)]
    return partings(clauses, schema, column_axes(schema))


def _states(model: ColumnModel, leaves: NDArray[np.bool_], name: str) -> NDArray[np.bool_]:
    """The states whose leaves are marked: all leaves of a state are, or none."""
    held = np.bincount(model.states, minlength=model.n_states)
    marked = np.bincount(model.states, weights=leaves, minlength=model.n_states)
    check(bool(((marked == 0) | (marked == held)).all()), f"a state of {name!r} joins values that are told apart")
    return np.asarray((marked == held) & (held > 0))


# ---------------------------------------------------------------------------------------------------------- sample rows
# Rows of synthetic persons: states drawn from a field, person by person, position by position. PUBLIC.


@dataclass(frozen=True, slots=True, eq=False)
class SampledRows:
    """States of rows in the order of persons, their evidence, and their weights: a person's add up to one."""

    own: States  # (n_columns, n_rows)
    evidence: States  # (n_evidence, n_rows)
    weights: NDArray[np.float64]  # (n_rows,)

    @property
    def n_persons(self) -> int:
        """How many persons the rows are of."""
        return round(float(self.weights.sum()))


def draw_rows(
    field: Field,
    layout: Layout,
    persons: NDArray[Any],
    starts: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    sorted_by: int | None = None,
    zeros: Zeros | None = None,
) -> States:
    """States of all rows (n_columns, n_rows) of persons with these states (n_variables, n_persons).

    `zeros` say which states of a row's own columns can meet.
    `sorted_by` is a column whose states ascend within every person. Where a row depends on its place, or on the one
    before, rows are drawn twice: once for the column that they are sorted by, and again given it.
    """
    used = {evidence for evidence, _ in field.links}
    follows = any(layout.every[number].kind in ("before", "anchor") for number in used)
    person = person_of_rows(starts)

    def draw(clamp: Mapping[int, States]) -> States:
        if follows:
            return _draw_in_turn(field, layout, persons, starts, rng, clamp, zeros or [])
        evidence = np.zeros((len(layout.every), len(person)), dtype=np.int32)
        evidence[: len(persons)] = persons[:, person]
        evidence[layout.place] = places(starts)
        return draw_obeying(field, evidence, rng, clamp, zeros or [])

    own = draw({})
    if sorted_by is None:
        return own
    order = np.lexsort([own[sorted_by], person])
    if not follows and layout.place not in used and not field.masks:
        return np.asarray(own[:, order])
    return draw({sorted_by: own[sorted_by][order]})


def all_evidence(layout: Layout, persons: NDArray[Any], own: NDArray[Any], starts: NDArray[np.int64]) -> States:
    """All evidence (n_evidence, n_rows) of rows that are all there."""
    person = person_of_rows(starts)
    found = np.empty((len(layout.every), int(starts[-1])), dtype=np.int32)
    for number, evidence in enumerate(layout.every):
        found[number] = row_evidence(evidence, persons, own, person, starts)
    return found


def _draw_in_turn(
    field: Field,
    layout: Layout,
    persons: NDArray[Any],
    starts: NDArray[np.int64],
    rng: np.random.Generator,
    clamp: Mapping[int, States],
    zeros: Zeros,
) -> States:
    """First rows of all persons, then second ones, and so on, each given the row before and the first."""
    n_rows = np.diff(starts)
    own = np.zeros((len(layout.own_sizes), int(starts[-1])), dtype=np.int32)
    row_places = places(starts)
    order = np.argsort(-n_rows, kind="stable")  # so that persons with a row at each position come first
    n_with = np.searchsorted(-n_rows[order], -np.arange(int(n_rows.max(initial=0))), side="left")
    for position, n_here in enumerate(n_with):
        here = order[:n_here]
        at = starts[here] + position
        evidence = np.zeros((len(layout.every), n_here), dtype=np.int32)
        evidence[: len(persons)] = persons[:, here]
        evidence[layout.place] = row_places[at]
        for number, one in enumerate(layout.every):
            if one.kind == "before":
                evidence[number] = own[one.number, at - 1] if position else one.size - 1
            elif one.kind == "anchor":
                evidence[number] = own[one.number, starts[here]] if position else one.size - 1
        given = {column: states[at] for column, states in clamp.items()}
        own[:, at] = draw_obeying(field, evidence, rng, given, zeros)
    return own


# -------------------------------------------------------------------------------------------------------- released rows
# What was released of one table of rows: leaves of its columns, a field over their states, and how rows are
# drawn.


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRows:
    """A table of rows as it left the mechanism."""

    clique: FieldClique
    labels: NDArray[np.int32] | None  # the box of every cell, in the table's shape; None: every cell is one
    noisy: NDArray[np.int64]  # in units


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """One table of rows. Columns are as they are learnt: relative ones are differences."""

    shape: RowsShape
    columns: dict[str, ColumnModel]
    layout: Layout
    field: Field
    tables: tuple[MeasuredRows, ...]
    correlations: Floats  # of two rows of a person, by column
    total: float  # persons with rows, a noisy number

    @cached_property
    def schema(self) -> Schema:
        """The columns as they are learnt."""
        return learnt_schema(self.shape)

    @cached_property
    def names(self) -> list[str]:
        """The columns of the field, in order."""
        return list(self.schema._modelled)

    @property
    def sorted_by(self) -> int | None:
        """The column that ascends within a person, where it is drawn like the others."""
        column = sorted_column(self.shape)
        return None if column is None else self.names.index(column)

    @cached_property
    def _drawn_from(self) -> dict[str, ColumnModel]:
        drawn = self.schema._as_drawn
        return {name: graded_leaves(model, drawn[name])[0] for name, model in self.columns.items()}

    @cached_property
    def _possible(self) -> Zeros:
        """Which states of a row's columns can meet, by the rules between them."""
        schema, rules = self.schema, self.schema.rules
        parted = partings(clauses_of(rules, schema), schema, column_axes(schema))
        return possible_states(rules, schema, self.columns, parted)

    def draw(
        self,
        persons: NDArray[np.int32],
        starts: NDArray[np.int64],
        firsts: dict[str, Floats],
        rng: np.random.Generator,
    ) -> Floats:
        """Positions of all rows (n_columns, n_rows), along the columns of the shape's schema.

        Args:
            persons: states of the persons' variables.
            starts: where every person's rows begin, and the number of all rows.
            firsts: positions of the first values of relative columns, by person.
            rng: draws the rows.
        """
        own = draw_rows(self.field, self.layout, persons, starts, rng, sorted_by=self.sorted_by, zeros=self._possible)
        states = {name: own[place] for place, name in enumerate(self.names)}
        schema, columns = self.schema._as_drawn, dict(self._drawn_from)
        rules = self.schema.rules
        for name, cut in feasible(rules, schema, columns, asked={}, nulls=[]).items():
            schema[name], columns[name] = cut.column, cut.model
        places = {name: columns[name].draw(states[name], rng) for name in self.names}
        resample_above(places, states, rules, schema, columns, rng)
        person = person_of_rows(starts)
        if self.sorted_by is not None:
            name = self.names[self.sorted_by]
            places[name] = places[name][np.lexsort([places[name], person])]
            _make_room(places, rules, schema, name)
        stated = self.shape.schema
        for name in relative_columns(self.shape):
            steps = self.shape.steps and name == self.shape.order
            places[name] = _absolute(
                places[name], firsts[name][person], starts, stated[name], schema[name], steps=steps
            )
        nothing = np.zeros(int(starts[-1]))
        return np.stack([places.get(name, nothing) for name in stated])


def row_layout(shape: RowsShape, own_sizes: Sequence[int], person_sizes: Sequence[int]) -> Layout:
    """What rows of a table may depend on, by the numbers of states of its columns and of its persons' variables.

    Of the column that rows are sorted by, neither the row before nor the first says anything: it is sorted anyway.
    """
    related = [name != sorted_column(shape) for name in learnt_schema(shape)._modelled]
    before = tuple(shape.order is not None and is_related for is_related in related)
    anchor = tuple(shape.role is not None and is_related for is_related in related)
    return Layout(tuple(person_sizes), tuple(own_sizes), before, anchor)


def sorted_column(shape: RowsShape) -> str | None:
    """The column that ascends within a person, where it is drawn like the others."""
    return None if shape.steps else shape.order


def _make_room(places: dict[str, Floats], rules: Sequence[Rule], schema: Mapping[str, Column], name: str) -> None:
    """Move columns that a rule wants below or above a sorted one to it, where sorting took it past them."""
    for is_below, bound in ((True, np.minimum), (False, np.maximum)):
        moved = [name]
        for at in moved:
            ends = [rule.columns if is_below else rule.columns[::-1] for rule in rules if isinstance(rule, AtMost)]
            for other in (one for one, end in ends if end == at and one not in moved):
                limit = places[at] + origin_of(schema[at]) - origin_of(schema[other])
                places[other] = np.where(np.isnan(limit), places[other], bound(places[other], limit))
                moved.append(other)


def _absolute(
    differences: Floats, first: Floats, starts: NDArray[np.int64], column: Column, learnt: Column, *, steps: bool
) -> Floats:
    """Positions of values of which the first is given and later ones by differences, within the column's bounds.

    A history that would run past the upper bound begins earlier, as far as there is room, and keeps its steps.
    """
    n_rows = np.diff(starts)
    begin = starts[:-1][n_rows > 0]
    assert isinstance(column, Bounded)
    by = differences
    if not isinstance(column, Real):
        # Positions are of all that rounds to a multiple: a step of none, in fifties, is not one of minus ten.
        by = learnt.step * np.floor((np.floor(by) + whole_range(learnt)[0] + learnt.step // 2) / learnt.step)
    by = np.where(np.isnan(by), 0.0, by)
    by[begin] = 0.0
    if steps:
        summed = np.cumsum(by)
        by = summed - np.repeat(summed[begin], n_rows[n_rows > 0])
    low, high = (float(column.low), float(column.high)) if isinstance(column, Real) else _position_range(column)
    values = first + by if isinstance(column, Real) else np.floor(first) + by
    if steps:
        last = starts[1:][n_rows > 0] - 1
        values -= np.repeat(np.maximum(values[last] - high, 0.0), n_rows[n_rows > 0])
    return np.asarray(np.clip(values, low, high))


def _position_range(column: Column) -> tuple[float, float]:
    """The first and last position of a column of whole numbers."""
    low, high = whole_range(column)
    return 0.0, float(high - low)
