"""What is measured of persons and of their rows, decided from public quantities before any row is read.

The persons are a forest of their own; their rows are tables beside it. Both are one composed charge, and a
delta is needed.

    noise plan    the noise of every stage of rows, beside that of the forest of persons
    design        what rows are learnt as, which levels persons may get, numbers of states
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from spinney.columns import Category, Column, Integer
from spinney.errors import BudgetError, SchemaError
from spinney.forest.design import EFFORTS, MOST_STATES, Design, Effort, design
from spinney.forest.plan import (
    ForestPlan,
    Shape,
    parts_of,
    plan_of_parts,
)
from spinney.forest.rules import RuleTables, Variables
from spinney.grid.axes import column_axes
from spinney.people.columns import N_BINS
from spinney.people.release.rows import anchors, learnt_schema, level_name, persons_schema, told_apart
from spinney.privacy.budget import Unit
from spinney.privacy.composition import least_noise
from spinney.privacy.mechanisms import LARGEST_VECTOR, Part, StageName
from spinney.schema.linked import PeopleShape, RowsShape
from spinney.schema.schema import Schema

# ----------------------------------------------------------------------------------------------------------- noise plan
# The noise of a model of persons: a forest of persons and tables of their rows, paid for together.
#
#     row trees       a PrivTree for each numeric column of rows, on one random row a person: its shape alone
#     row one-way     units in all leaves and categories, column by column
#     row spikes      units in the first cells of every leaf, where round numbers lie
#     alikeness       how much two rows of a person have in common, one vector
#     row selection   what rows depend on, one exponential mechanism a choice
#     row tables      units of a few columns of rows and what they depend on
#
# All of it and the forest's own stages are one composed charge. A delta is needed.


# The part of the budget that rows get; the persons have the rest.
ROWS_SHARE = Fraction(55, 100)
# How rows share theirs, before those of stages that a table does not have are given to the others.
_SHARES: dict[StageName, Fraction] = {
    "row trees": Fraction(7, 100),
    "row one-way": Fraction(17, 100),
    "row spikes": Fraction(2, 100),
    "alikeness": Fraction(3, 100),
    "row selection": Fraction(7, 100),
    "row tables": Fraction(64, 100),
}


def people_plan(rows: Shape, *, epsilon: Fraction, delta: Fraction, unit: Unit) -> Callable[[Shape], ForestPlan]:
    """Gives the plan with the least noise, for the shape of the forest of persons, that costs (epsilon, delta)."""

    def plan_of(shape: Shape) -> ForestPlan:
        def parts(budget: Fraction) -> tuple[Part, ...]:
            of_persons = parts_of(shape, budget * (1 - ROWS_SHARE), unit)
            return (*of_persons, *parts_of(rows, budget * ROWS_SHARE, unit))

        composed = least_noise(parts, epsilon, delta, unit)
        return plan_of_parts(composed, epsilon=epsilon, delta=delta, unit=unit, note="persons and their rows")

    return plan_of


# --------------------------------------------------------------------------------------------------------------- design
# The richest design whose noise leaves something to see, for about so many persons.


# Rounds for each column of rows, besides what levels that are not drawn leave to them.
_ROUNDS_A_COLUMN = 1.0
# A level is worth its noise if there are so many standard deviations of it in persons; so are tables of rows.
_PERSONS_FOR_LEVELS = 150.0
# There are as many states of a row's column as leave so many standard deviations to a cell of a table of two.
_STATE_DEVIATIONS = 8.0
_FEWEST_STATES = 8


@dataclass(frozen=True, slots=True, eq=False)
class RowsDesign:
    """One table of rows: what it is learnt as, and the levels that persons may get for it."""

    shape: RowsShape
    schema: Schema  # as rows are learnt
    rules: RuleTables
    levels: tuple[str, ...]  # columns that persons may have a hidden level of

    @property
    def names(self) -> list[str]:
        """The columns, in order."""
        return list(self.schema._modelled)

    @property
    def role(self) -> int | None:
        """The number of the column that says what a row is."""
        return None if self.shape.role is None else self.names.index(self.shape.role)


@dataclass(frozen=True, slots=True, eq=False)
class PeopleDesign:
    """A plan, the forest of persons that it is a plan of, and the tables of rows."""

    shape: PeopleShape
    persons: Design  # with all levels that there may be
    schema: Schema  # of persons, with numbers of rows and first values, without levels
    rows: tuple[RowsDesign, ...]
    most_row_states: int

    @property
    def plan(self) -> ForestPlan:
        """The noise of everything."""
        return self.persons.plan

    def to_dict(self) -> dict[str, str]:
        """What of the plan no charge says, as JSON-ready data, for the card."""
        return self.persons.to_dict()


def people_design(
    shape: PeopleShape,
    *,
    n_persons: int,
    epsilon: Fraction,
    delta: Fraction,
    unit: Unit,
    target: str | None = None,
    quality: str = "fast",
) -> PeopleDesign:
    """The richest design whose noise leaves something to see of about so many persons.

    `target` is a column of the persons table that all others are about.
    """
    schema = persons_schema(shape)
    rows = tuple(_rows_design(of_table) for of_table in shape.rows)
    for tables in (Variables.of(schema).rules, *(of_table.rules for of_table in rows)):
        tables.check()
    plan_of = people_plan(_rows_shape(rows), epsilon=epsilon, delta=delta, unit=unit)
    for with_levels in (True, False):
        if not with_levels:
            rows = tuple(replace(of_table, levels=()) for of_table in rows)
        whole = with_levels_of(schema, rows)
        persons = persons_design(
            whole,
            shape,
            n_persons=n_persons,
            epsilon=epsilon,
            delta=delta,
            unit=unit,
            target=target,
            effort=EFFORTS[quality],
            plan_of=plan_of,
        )
        plan = persons.plan
        if not plan.weighted:
            continue
        stage = next((stage for stage in ("cliques", "one-way") if stage in plan.tables), "row tables")
        if not with_levels or n_persons >= _PERSONS_FOR_LEVELS * plan.noise_std(stage):
            break
    if not persons.plan.weighted:
        raise BudgetError(
            f"epsilon={float(epsilon):g} is too small for {n_persons:,} persons: no count would stand out of its "
            "noise; give a larger epsilon"
        )
    return PeopleDesign(shape, persons, schema, rows, _most_states(persons.plan, n_persons))


def with_levels_of(schema: Schema, rows: Sequence[RowsDesign], sizes: Sequence[dict[str, int]] | None = None) -> Schema:
    """The columns of a person with hidden levels. `sizes` says how many states each level of a category has."""
    columns: dict[str, Column] = dict(schema)
    for place, of_table in enumerate(rows):
        for name in of_table.levels:
            n_states = 2 if sizes is None else sizes[place][name]
            columns[level_name(of_table.shape.name, name)] = level_column(of_table.schema[name], n_states)
    return Schema(columns, rules=schema.rules, places=schema.places)


def level_column(column: Column, n_states: int) -> Column:
    """The type of a level: a bin of a number, a state of a category."""
    if column._axis_kind == "category":
        return Category(tuple(str(state) for state in range(n_states)))
    return Integer(0, N_BINS - 1)


def persons_design(
    schema: Schema,
    shape: PeopleShape,
    *,
    n_persons: int,
    epsilon: Fraction,
    delta: Fraction,
    unit: Unit,
    target: str | None,
    effort: Effort,
    plan_of: Callable[[Shape], ForestPlan],
) -> Design:
    """The design of the forest of persons. All columns are counted with the number of rows, and with a target."""
    variables = Variables.of(schema)
    numbers = [variables.names.index(name) for name in anchors(shape, target)]
    plan = design(
        variables.axes,
        n_rows=n_persons,
        epsilon=epsilon,
        delta=delta,
        unit=unit,
        target=numbers[0] if numbers else None,
        required=[tuple(variables.numbers[column] for column in clique) for clique in variables.rules.cliques],
        effort=effort,
        stars=numbers[1:],
        has_plain_pairs=True,
        has_grain=False,
        plan_of=plan_of,
    )
    anchor = None if plan.target is None else list(schema._modelled).index(variables.names[plan.target])
    fewer = variables.rules.most_states(plan.most_states, target=anchor, has_rounds=plan.structure == "rounds")
    return replace(plan, fewer_states={variables.numbers[column]: states for column, states in fewer.items()})


def _rows_design(rows: RowsShape) -> RowsDesign:
    schema = learnt_schema(rows)
    for name, column in column_axes(schema).items():
        n_cells = column.axis.last - column.axis.first + 1 + column.axis.nullable
        if column.ruler is None and n_cells > LARGEST_VECTOR:
            raise SchemaError(
                f"column {name!r} has more than {LARGEST_VECTOR - 1:,} values, and a column of persons' rows cannot; "
                "list fewer of them, such as the groups that they are in"
            )
    apart = told_apart(rows, schema)
    return RowsDesign(rows, schema, RuleTables.of(schema, apart), tuple(schema._modelled) if rows.most > 1 else ())


def _rows_shape(rows: Sequence[RowsDesign]) -> Shape:
    """How much there is to measure of all tables of rows together, and how they share their part of the budget."""
    axes = [axis for of_table in rows for axis in of_table.rules.axes]
    trees = [axis.max_levels for axis in axes if axis.ruler is not None]
    n_tables = sum(n_row_tables(of_table) for of_table in rows)
    times: dict[StageName, int] = {
        "row trees": len(trees),
        "row one-way": sum(axis.n_tables for axis in axes),
        "row spikes": len(trees),
        "alikeness": 1,
        "row selection": n_tables,
        "row tables": n_tables,
    }
    used = sum(_SHARES[stage] for stage, number in times.items() if number)
    return Shape(times, {stage: share / used for stage, share in _SHARES.items()}, {"row trees": max(trees, default=0)})


def n_row_tables(rows: RowsDesign) -> int:
    """How many tables are measured of a table of rows: columns with numbers of rows, levels and a role, and rounds."""
    n_columns = len(rows.names)
    n_rounds = math.ceil(_ROUNDS_A_COLUMN * n_columns) + 1
    return 2 * n_columns + n_rounds + (0 if rows.role is None else n_columns - 1)


def _most_states(plan: ForestPlan, n_persons: int) -> int:
    resolution = math.sqrt(n_persons / (_STATE_DEVIATIONS * plan.noise_std("row tables")))
    return min(max(1 << math.ceil(math.log2(max(resolution, 1))), _FEWEST_STATES), MOST_STATES)
