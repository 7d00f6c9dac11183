"""From gathered rows to a released model of persons and their rows: all that a fit measures. SENSITIVE.

    columns of rows      trees on one random row a person, weighted counts of leaves
    alikeness            how much two rows of a person have in common
    hidden levels        drawn for every person, where rows are alike
    persons              a forest over stated columns, numbers of rows, first values and levels
    rows                 a field given persons, places and earlier rows

Each step sees the private rows and what the steps before released; `PrepaidMechanisms` was paid for all of
them. Parts of the chapter:

    synthetic persons    persons and rows drawn from the release, which fields are fitted by
    the fit              the fit itself
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Integer
from spinney.counting.states import StateRows, WeightedRows
from spinney.forest.columns import NoisyColumn, column_model
from spinney.forest.design import Design
from spinney.forest.grow import Forest, grow
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.columns import ColumnModel
from spinney.forest.release.fit import one_way
from spinney.forest.rules import Variables
from spinney.graph.crf import Field, Mask
from spinney.graph.model import draw_states
from spinney.graph.tilted_draw import draw_tilted
from spinney.people.columns import (
    ColumnLaw,
    HeldRows,
    draw_levels,
    held_rows,
    persons_with_rows,
    release_alikeness,
    release_row_columns,
    two_rows,
)
from spinney.people.design import PeopleDesign, RowsDesign, n_row_tables, with_levels_of
from spinney.people.release.rows import (
    Layout,
    MeasuredRows,
    SampledRows,
    all_evidence,
    count_name,
    draw_rows,
    level_name,
    person_of_rows,
    position_masks,
    row_layout,
    sorted_column,
)
from spinney.people.rounds import RowsStart, RowTables, grow_field
from spinney.privacy.mechanisms import UNITS
from spinney.release.card import RowCount
from spinney.schema.schema import Schema
from spinney.tables.engines.memory import MemorySource, open_memory
from spinney.tables.persons import PersonTables
from spinney.text import Sensitive

# ---------------------------------------------------------------------------------------------------- synthetic persons
# Synthetic persons that a field is fitted by: what rows depend on is taken from what the release itself draws.
#
# A field is a law of rows given evidence. The law of the evidence is not measured: it is that of persons drawn from
# the forest that was released, and of rows drawn from the field so far. So it costs no budget, and what is fitted
# agrees with what is drawn in the end. Persons differ more than the rows of one of them do: many persons are taken,
# and of each a few rows.


# Rows that a field is fitted by, and how many of them are of one person at most.
_N_FITTED, _ROWS_A_PERSON = 24_000, 2
# Rows that are drawn for that, and persons, at most.
_MOST_DRAWN, _MOST_PERSONS = 400_000, 24_000


class SyntheticPersons:
    """Persons drawn from a forest once, whose rows are drawn anew from every field.

    Args:
        forest: of persons.
        count: the number of the variable that says how many rows they have.
        least: the fewest rows that a person has; what is drawn counts from there.
        most: the most.
        layout: what rows may depend on.
        sorted_by: the column that ascends within a person, where it is drawn like the others.
        rng: draws everything.
    """

    def __init__(
        self,
        forest: Forest,
        *,
        count: int,
        least: int,
        most: int,
        layout: Layout,
        sorted_by: int | None,
        rng: np.random.Generator,
    ) -> None:
        self._layout, self._sorted_by, self._rng = layout, sorted_by, rng
        persons, column = _drawn_persons(forest, rng), forest.columns[count]
        assert isinstance(column, ColumnModel)
        n_rows = np.clip(least + np.floor(column.draw(persons[count], rng)), 0, most).astype(np.int64)
        is_used = (n_rows > 0) & (np.cumsum(n_rows) <= _MOST_DRAWN)
        is_used &= np.cumsum(np.minimum(n_rows, _ROWS_A_PERSON)) <= _N_FITTED
        if not is_used.any():  # a single person may have more rows than that, and all may have none
            is_used[np.argmax(n_rows)] = True
            n_rows = np.maximum(n_rows, 1)
        self._persons, n_rows = persons[:, is_used], n_rows[is_used]
        self._starts = np.concatenate([[0], np.cumsum(n_rows)]).astype(np.int64)

    def rows(self, field: Field | None) -> SampledRows:
        """Some of the persons' rows, drawn from a field; without one, their own states are all the first."""
        starts, layout = self._starts, self._layout
        if field is None:
            own = np.zeros((len(layout.own_sizes), int(starts[-1])), dtype=np.int32)
        else:
            own = draw_rows(field, layout, self._persons, starts, self._rng, sorted_by=self._sorted_by)
        kept = self._a_few()
        n_kept = np.minimum(np.diff(starts), _ROWS_A_PERSON)
        evidence = all_evidence(layout, self._persons, own, starts)
        return SampledRows(own[:, kept], evidence[:, kept], np.repeat(1 / n_kept, n_kept))

    def _a_few(self) -> NDArray[np.int64]:
        """The numbers of a few random rows of every person, in the order of persons."""
        person = person_of_rows(self._starts)
        order = np.lexsort([self._rng.random(len(person)), person])
        rank = np.arange(len(person)) - self._starts[:-1][person]
        return np.asarray(order[rank < _ROWS_A_PERSON])


def _drawn_persons(forest: Forest, rng: np.random.Generator) -> NDArray[np.int32]:
    """States of persons, as they are drawn from the release too."""
    if forest.products is None:
        return draw_states(forest.model, _MOST_PERSONS, rng)
    pairs = sorted({pair for clique in forest.cliques for pair in combinations(sorted(clique), 2)})
    columns = range(len(forest.columns))
    return draw_tilted(forest.model, forest.products.tilt, _MOST_PERSONS, rng, columns=columns, pairs=pairs)


# -------------------------------------------------------------------------------------------------------------- the fit
# The fit: columns of rows, alikeness, levels, the forest of persons, and a field for each table of rows.


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Rows(Sensitive):
    """One table of rows on its way. SENSITIVE but for what was released."""

    design: RowsDesign
    held: HeldRows
    weighted: WeightedRows
    noisy: list[NoisyColumn]
    total: float
    models: list[ColumnModel]
    masks: list[Mask]  # with evidence 0 for the place
    states: StateRows

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
    persons = open_memory(_persons_table(tables, made, schema._modelled), schema._modelled)
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
    planned = list(with_levels_of(design.schema, design.rows)._variables)
    numbers = {planned.index(name): number for number, name in enumerate(schema._variables)}
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
    one_ways = [
        one_way(place, model, column.noise_std, are_codes=column.levels is not None)
        for place, (model, column) in enumerate(zip(some.models, some.noisy, strict=True))
    ]
    masks = [(seen.place, column, possible) for _, column, possible in some.masks]
    count = variables.names.index(count_name(shape.name))
    start = RowsStart(seen, of_table.role, one_ways, count, levels, some.total, masks, sorted_by)
    number = variables.schema[count_name(shape.name)]
    assert isinstance(number, Integer)  # of rows: positions count from the fewest that a person has
    synthetic = SyntheticPersons(
        forest, count=count, least=int(number.low), most=shape.most, layout=seen, sorted_by=sorted_by, rng=rng
    )
    field, measured = grow_field(tables, start, prepaid, synthetic.rows, n_tables=n_row_tables(of_table))
    models = dict(zip(names, some.models, strict=True))
    return GrownRows(of_table, models, some.noisy, seen, field, measured, correlations, some.total)


def _shares(weights: Floats) -> Floats:
    return np.asarray(weights / max(float(weights.sum()), 1e-300))
