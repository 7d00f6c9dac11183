"""From gathered rows to a released model of persons and their rows: all that a fit measures, in order. SENSITIVE.

    columns of rows      trees on one random row a person, weighted counts of leaves
    alikeness            how much two rows of a person have in common
    hidden levels        drawn for every person, where rows are alike
    persons              a forest over stated columns, numbers of rows, first values and levels
    rows                 a field given persons, places and earlier rows

Each step sees the private rows and what the steps before released; `PrepaidMechanisms` was paid for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Integer
from spinney.counting.states import StateRows
from spinney.counting.weighted import WeightedRows
from spinney.forest.columns import NoisyColumn
from spinney.forest.design import Design
from spinney.forest.grow import Forest, grow
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.column_model import ColumnModel
from spinney.forest.states import column_model
from spinney.forest.variables import Variables
from spinney.graph.field import Field, Mask
from spinney.people.alike import ColumnLaw, release_alikeness, two_rows
from spinney.people.columns import persons_with_rows, release_row_columns
from spinney.people.derived import HeldRows, held_rows
from spinney.people.design import PeopleDesign, RowsDesign, n_row_tables, with_levels_of
from spinney.people.levels import draw_levels
from spinney.people.release.evidence import Layout
from spinney.people.release.masks import position_masks
from spinney.people.release.names import count_name, level_name
from spinney.people.release.rows import MeasuredRows, row_layout, sorted_column
from spinney.people.rounds import RowsStart, grow_field
from spinney.people.row_tables import RowTables
from spinney.people.synthetic import SyntheticPersons
from spinney.privacy.parts import UNITS
from spinney.release.row_count import RowCount
from spinney.schema.table import Schema
from spinney.tables.engines.memory import MemorySource, open_memory
from spinney.tables.people import PersonTables

Floats = NDArray[np.float64]

# Two rows of a person are alike enough for a hidden level from this correlation on.
_LEAST_CORRELATION = 0.03


@dataclass(frozen=True, slots=True, eq=False)
class GrownRows:
    """What was released of one table of rows."""

    design: RowsDesign
    columns: dict[str, ColumnModel]
    noisy: list[NoisyColumn]
    layout: Layout
    field: Field
    tables: list[MeasuredRows]
    correlations: Floats
    total: float  # units of all rows


@dataclass(frozen=True, slots=True, eq=False)
class GrownPeople:
    """What was released of persons and their rows."""

    schema: Schema  # of persons, levels included
    variables: Variables
    design: Design
    persons: Forest
    rows: tuple[GrownRows, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """One table of rows on its way. SENSITIVE but for what was released."""

    design: RowsDesign
    held: HeldRows
    weighted: WeightedRows
    noisy: list[NoisyColumn]
    total: float
    models: list[ColumnModel]
    masks: list[Mask]  # with evidence 0 for the place
    states: StateRows

    def __repr__(self) -> str:
        return "_Rows(sensitive)"

    def laws(self) -> list[ColumnLaw]:
        """The released laws of the columns' states."""
        return [
            ColumnLaw(_shares(model.state_weights()), column.is_ordered)
            for model, column in zip(self.models, self.noisy, strict=True)
        ]


def grow_people(
    tables: PersonTables,
    design: PeopleDesign,
    prepaid: PrepaidMechanisms,
    *,
    total: int | None,
    coins: np.random.Generator,
    rng: np.random.Generator,
    row_count: RowCount | None = None,
) -> GrownPeople:
    """The model of gathered tables. `total` is the number of persons where that is public.

    `coins` are those of persons, and `rng` draws synthetic persons between steps. Neither is noise. They are two, as
    how many coins are used depends on private rows (people.proof.md, coins).
    """
    made: dict[str, pa.Array] = {}
    rows = []
    for gathered, of_table in zip(tables.rows, design.rows, strict=True):
        held, columns = held_rows(gathered, of_table.shape)
        made |= columns
        rows.append(_released_columns(held, of_table, design, prepaid))
    laws = [some.laws() for some in rows]
    compared = [two_rows(some.states.true_states, some.held.starts, coins) for some in rows]
    correlations = release_alikeness(compared, laws, prepaid)

    kept, sizes = [], []
    for some, of_states, of_columns in zip(rows, laws, correlations, strict=True):
        names = some.design.names
        alike = {
            name: place
            for place, name in enumerate(names)
            if name in some.design.levels and of_columns[place] >= _LEAST_CORRELATION
        }
        for name, place in alike.items():
            line = some.states.true_states[place]
            levels = draw_levels(line, some.held.starts, of_states[place], float(of_columns[place]), coins)
            is_bin = of_states[place].is_ordered
            made[level_name(some.design.shape.name, name)] = pa.array(levels if is_bin else levels.astype(str))
        kept.append(replace(some.design, levels=tuple(alike)))
        sizes.append({name: len(of_states[place].shares) for name, place in alike.items()})

    schema = with_levels_of(design.schema, kept, sizes)
    variables = Variables.of(schema)
    persons = open_memory(_persons_table(tables, made, schema.modelled), schema.modelled)
    forest_design = _without_levels(design, schema)
    forest = grow(
        persons,
        variables.axes,
        forest_design,
        prepaid,
        total=total,
        partings={variables.numbers[column]: it for column, it in variables.rules.told_partings().items()},
        zeros=variables.zeros,
        rng=rng,
        row_count=row_count,
    )
    grown = [
        _grown_rows(some, of_table, forest, persons, variables, prepaid, of_columns, rng)
        for some, of_table, of_columns in zip(rows, kept, correlations, strict=True)
    ]
    return GrownPeople(schema, variables, forest_design, forest, tuple(grown))


def _released_columns(held: HeldRows, of_table: RowsDesign, design: PeopleDesign, prepaid: PrepaidMechanisms) -> _Rows:
    """The columns of one table of rows, and the states of its rows."""
    weighted = WeightedRows(held.starts, UNITS)
    rules = of_table.rules
    partings = rules.told_partings()
    noisy = release_row_columns(held, weighted, rules.axes, partings, prepaid)
    total = persons_with_rows(noisy)
    models, cuts = [], []
    for place, (column, axis) in enumerate(zip(noisy, rules.axes, strict=True)):
        model, cut = column_model(
            column, total=total, most_states=design.most_row_states, parting=partings.get(place), cells=axis
        )
        models.append(model)
        cuts.append(cut)
    named = dict(zip(of_table.names, models, strict=True))
    masks = position_masks(of_table.shape, of_table.schema, named, place=0)
    return _Rows(of_table, held, weighted, noisy, total, models, masks, held.source.state_rows(cuts))


def _persons_table(tables: PersonTables, made: dict[str, pa.Array], schema: Schema) -> pa.Table:
    """One row a person: what is read of the stated columns, and what is made of their rows."""
    stated = {} if tables.persons is None else {name: tables.persons[name] for name in tables.persons.column_names}
    every = {**stated, **made}
    return pa.table({name: every[name] for name in schema})


def _without_levels(design: PeopleDesign, schema: Schema) -> Design:
    """The design of the forest for the levels that there are; what was paid for the others is left unused."""
    planned = list(with_levels_of(design.schema, design.rows).variables)
    numbers = {planned.index(name): number for number, name in enumerate(schema.variables)}
    was = design.persons
    return replace(
        was,
        measured=tuple(numbers[column] for column in was.measured if column in numbers),
        looked_at=tuple(numbers[column] for column in was.looked_at),
        target=None if was.target is None else numbers[was.target],
        required=tuple(tuple(numbers[column] for column in clique) for clique in was.required),
        fewer_states={numbers[column]: states for column, states in was.fewer_states.items() if column in numbers},
        places=tuple(numbers[column] for column in was.places),
        stars=tuple(numbers[column] for column in was.stars),
    )


def _grown_rows(
    some: _Rows,
    of_table: RowsDesign,
    forest: Forest,
    persons: MemorySource,
    variables: Variables,
    prepaid: PrepaidMechanisms,
    correlations: Floats,
    rng: np.random.Generator,
) -> GrownRows:
    """The field of one table of rows."""
    names, shape = of_table.names, of_table.shape
    own_sizes = tuple(model.n_states for model in some.models)
    person_sizes = forest.model.tree.sizes
    ascending = sorted_column(shape)
    sorted_by = None if ascending is None else names.index(ascending)
    seen = row_layout(shape, own_sizes, person_sizes)
    states = persons.state_rows(forest.cuts)
    tables = RowTables(
        states.true_states, some.states.true_states, some.held.starts, some.weighted, seen, role=of_table.role
    )
    levels = [(variables.names.index(level_name(shape.name, name)), names.index(name)) for name in of_table.levels]
    one_way = [
        (model.state_weights(), _state_std(model, column))
        for model, column in zip(some.models, some.noisy, strict=True)
    ]
    masks = [(seen.place, column, possible) for _, column, possible in some.masks]
    count = variables.names.index(count_name(shape.name))
    start = RowsStart(seen, of_table.role, one_way, count, levels, some.total, masks, sorted_by)
    least = _least_rows(variables, count)
    synthetic = SyntheticPersons(
        forest, count=count, least=least, most=shape.most, layout=seen, sorted_by=sorted_by, rng=rng
    )
    field, measured = grow_field(tables, start, prepaid, synthetic.rows, n_tables=n_row_tables(of_table))
    models = dict(zip(names, some.models, strict=True))
    return GrownRows(of_table, models, some.noisy, seen, field, measured, correlations, some.total)


def _state_std(model: ColumnModel, column: NoisyColumn) -> Floats:
    """The standard deviation of the units in every state, each as uncertain as the leaves it was added up from."""
    n_held = np.bincount(model.states, weights=model.weights > 0, minlength=model.n_states)
    if column.levels is not None:
        n_held = np.minimum(n_held, 2)
    return np.asarray(column.noise_std * np.sqrt(np.maximum(n_held, 1.0)))


def _least_rows(variables: Variables, count: int) -> int:
    """The fewest rows that a person has: positions count from there."""
    column = variables.schema[variables.names[count]]
    assert isinstance(column, Integer)
    return int(column.low)


def _shares(weights: Floats) -> Floats:
    return np.asarray(weights / max(float(weights.sum()), 1e-300))
