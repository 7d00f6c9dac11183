"""Variables: what a forest models of a schema, in the order of the table: columns, places, rules between columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spinney.forest.design import AnyAxis
from spinney.forest.grow import MOST_COLUMN_STATES, MOST_PLACE_STATES, Model
from spinney.forest.release.column_model import ColumnModel
from spinney.forest.release.rules import Zeros, possible_states
from spinney.forest.rule_tables import RuleTables
from spinney.forest.structure import Clique
from spinney.forest.workload import check_cells, n_stated_states
from spinney.schema.place_axis import place_axis
from spinney.schema.table import Schema


@dataclass(frozen=True, slots=True, eq=False)
class Variables:
    """What a forest models: columns, places, and rules between columns that are in no place."""

    schema: Schema
    names: list[str]
    axes: list[AnyAxis]
    rules: RuleTables
    numbers: Mapping[int, int]  # from a modelled column to the variable that it is, where it is one by itself

    @classmethod
    def of(cls, schema: Schema) -> Variables:
        rules, modelled, variables = RuleTables.of(schema), list(schema.modelled), schema.variables
        axes: list[AnyAxis] = []
        numbers: dict[int, int] = {}
        for number, (name, place) in enumerate(variables.items()):
            if place is None:
                numbers[modelled.index(name)] = number
                axes.append(rules.axes[modelled.index(name)])
            else:
                axes.append(place_axis(place, schema))
        return cls(schema, list(variables), axes, rules, numbers)

    def most_pair_cells(self, in_stated: frozenset[int], target: str | None) -> int:
        """The most cells that a table of two columns has, or of two and the target, however many rows there are."""
        sizes, most_states = [MOST_PLACE_STATES] * len(self.names), self.rules.sizes(MOST_COLUMN_STATES)
        for column, number in self.numbers.items():
            is_stated = number in in_stated
            sizes[number] = (
                n_stated_states(self.names[number], self.rules.axes[column]) if is_stated else most_states[column]
            )
        with_target = 1 if target is None else sizes[self.names.index(target)]
        return math.prod(sorted(sizes)[-2:]) * with_target

    def stated_cells(
        self, stated: Sequence[Clique], states: Sequence[int], *, required: Sequence[Clique] = (), target: int | None
    ) -> int:
        """How many cells the model has for stated tables and rules; a ParameterError where they are too many.

        `states` is about how many states other columns have. With a target, all these are counted with it.
        """
        sizes, in_stated = list(states), {column for clique in stated for column in clique}
        for column, number in self.numbers.items():
            if number in in_stated:
                sizes[number] = n_stated_states(self.names[number], self.rules.axes[column])
            else:
                sizes[number] = self.rules.sizes(sizes[number])[column]
        with_target = () if target is None else (target,)
        return check_cells(self.names, sizes, [tuple({*clique, *with_target}) for clique in (*stated, *required)])

    def zeros(self, models: Sequence[Model]) -> Zeros:
        """The states that the rules allow to meet, with columns numbered among all variables."""
        named = zip(self.names, models, strict=True)
        pairs = [(name, model) for name, model in named if isinstance(model, ColumnModel)]
        modelled, numbers = list(self.schema.modelled), [self.names.index(name) for name, _ in pairs]
        parted = {modelled[column]: parting for column, parting in self.rules.partings.items()}
        found = possible_states(self.schema.rules, self.schema, dict(pairs), parted)
        return [(tuple(numbers[column] for column in clique), possible) for clique, possible in found]
