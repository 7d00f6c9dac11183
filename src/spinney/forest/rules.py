"""What a forest models of a schema, and what its rules mean to the model, before anything is spent. PUBLIC.

rule tables    how rules part columns, which columns they join, and whether some row obeys all of them
variables      columns, places and rules in the order of the table
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError, SchemaError, raise_alone
from spinney.forest.cliques import check_cells, n_stated_states
from spinney.forest.design import AnyAxis, Clique
from spinney.forest.grow import MOST_COLUMN_STATES, MOST_PLACE_STATES, Model
from spinney.forest.release.columns import ColumnModel
from spinney.forest.release.conditions import Zeros, any_of, merged, possible_states
from spinney.graph.estimate import estimate
from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel
from spinney.grid.axes import ColumnAxis, Parting, column_axes, partings_of, place_axis
from spinney.schema.rules import AtMost, Clause, clauses_of, most_values
from spinney.schema.rules.base import ValueSet
from spinney.schema.schema import Schema

# ---------------------------------------------------------------------------------------------------------- rule tables
# RuleTables: what the rules of a schema mean to a forest, known before anything is spent.
#
# Columns of a rule share a table of the model, with a state for every part of a column that rules tell apart. So
# rules decide how columns are parted, which columns the model's tree has to join, and whether it stays small enough.
# Over the parts alone the model is tiny, and says exactly whether some row obeys all rules, and which values none can
# have.


# The tables of a model's tree that rules ask for have no more cells than this together.
_MOST_CELLS = 1_000_000
# Where rounds are to add tables of their own, rules leave room for them if they can.
_ROOM_FOR_ROUNDS = 30_000
# States of a column that rules are about, besides one for each part: never fewer, whatever the size of the tables.
_FEWEST_STATES = 4


@dataclass(frozen=True, slots=True, eq=False)
class RuleTables:
    """The rules of a schema with all bounds, over its modelled columns."""

    schema: Schema
    axes: tuple[ColumnAxis, ...]  # of the modelled columns, in order
    clauses: tuple[Clause, ...]
    partings: Mapping[int, Parting]
    cliques: tuple[Clique, ...]  # columns that rules join, those that follow from others first

    @classmethod
    def of(cls, schema: Schema, apart: Sequence[Clause] = ()) -> RuleTables:
        """The tables of a schema; a SchemaError where cells are too coarse for its rules.

        `apart` names further values that no others may share a state with.
        """
        modelled = schema._modelled
        axes = column_axes(schema)
        clauses = clauses_of(schema.rules, schema)
        places = {name: place for place, name in enumerate(modelled)}
        cliques = [tuple(places[name] for name in rule.columns) for rule in schema.rules if isinstance(rule, AtMost)]
        cliques += [tuple(places[name] for name in reversed(clause)) for clause in clauses if len(clause) > 1]
        parted = partings_of(schema, axes, apart=apart)
        return cls(
            schema,
            tuple(axes.values()),
            tuple(clauses),
            {places[name]: parting for name, parting in parted.items()},
            tuple(dict.fromkeys(cliques)),
        )

    def check(self) -> None:
        """Raise a SchemaError where the tables of the rules are too large, or no row obeys all rules."""
        self._check_size(self.sizes(_FEWEST_STATES), self.cliques)
        if self.clauses:
            self._parts_model()

    def _check_size(self, sizes: Sequence[int], cliques: Sequence[Clique]) -> None:
        tree = JunctionTree.covering(sizes, cliques)
        if tree.n_cells <= _MOST_CELLS:
            return
        names = list(self.schema._modelled)
        largest = max(tree.cliques, key=lambda clique: float(np.prod([float(sizes[column]) for column in clique])))
        listed = ", ".join(repr(names[column]) for column in largest)
        raise SchemaError(
            f"the rules join {len(largest)} columns into one table of more than {_MOST_CELLS:,} cells: {listed}; state "
            "fewer rules between them, coarser ranges, or derive one of the columns from another (sp.Derived)"
        )

    # ---------------------------------------------------------------------------------------------------- states

    def sizes(self, most_states: int) -> list[int]:
        """How many states every column has at most, where about so many are asked for."""
        sizes = []
        for place, column in enumerate(self.axes):
            axis, parting = column.axis, self.partings.get(place)
            n_parts = 1 if parting is None else parting.n_labels if axis.kind == "category" else len(parting.first)
            n_values = axis.last - axis.first + 1
            sizes.append(min(n_values, max(most_states, 2) + n_parts) + axis.nullable)
        return sizes

    def most_states(self, wanted: int, *, target: int | None, has_rounds: bool) -> dict[int, int]:
        """How many states to ask for of columns that rules join, where that is fewer than `wanted`.

        A column that is counted with a target is joined to it too.
        """
        if not self.cliques:
            return {}
        cliques = [clique if target is None else tuple({*clique, target}) for clique in self.cliques]
        joined = {column for clique in cliques for column in clique}
        most = wanted
        while most > _FEWEST_STATES:
            n_cells = JunctionTree.covering(self.sizes(most), cliques).n_cells
            if n_cells <= (_ROOM_FOR_ROUNDS if has_rounds and most > 2 * _FEWEST_STATES else _MOST_CELLS):
                break
            most //= 2
        self._check_size(self.sizes(most), cliques)
        return dict.fromkeys(joined, most) if most < wanted else {}

    # ----------------------------------------------------------------------------------------------------- parts

    def told_partings(self) -> dict[int, Parting]:
        """The partings, with what the rules together make impossible of each column."""
        if not self.clauses:
            return dict(self.partings)
        model, found = self._parts_model(), {}
        for place, parting in self.partings.items():
            law = model.marginal((place,)) > 0
            is_nullable = self.axes[place].axis.nullable
            found[place] = replace(parting, possible=law if is_nullable else np.append(law, False))
        return found

    def impossible(self) -> list[tuple[str, str]]:
        """Columns, and in words their values that no row can have."""
        if not self.clauses:
            return []
        model, found = self._parts_model(), []
        for place, (name, column) in enumerate(self.schema._modelled.items()):
            parting = self.partings.get(place)
            if parting is None:
                continue
            law = model.marginal((place,))
            gone = [part for part, label in enumerate(parting.labels) if not law[label] > 0]
            words = [parting.in_words(part, column) for part in gone]
            if column.nullable and not law[-1] > 0:
                words.append("null")
            found += [(name, word) for word in words]
        return found

    def _parts_model(self) -> GraphModel:
        """A model of parts alone, null last; a SchemaError where no row is possible."""
        names = list(self.schema._modelled)
        sizes = [self._n_labels(place) for place in range(len(names))]
        zeros = merged([*self._clause_masks(names), *self._order_masks(names)])
        self._check_size(sizes, [columns for columns, _ in zeros])
        try:
            return estimate(sizes, [], 1.0, zeros=zeros, steps=0)
        except ParameterError:
            raise_alone(
                SchemaError("the rules contradict each other: no row can obey all of them; take one out or correct it")
            )

    def _n_labels(self, place: int) -> int:
        parting = self.partings.get(place)
        return 1 if parting is None else parting.n_labels + self.axes[place].axis.nullable

    def _clause_masks(self, names: Sequence[str]) -> list[tuple[Clique, NDArray[np.bool_]]]:
        def inside(place: int, allowed: ValueSet) -> NDArray[np.bool_]:
            parting = self.partings[place]
            labels = parting.is_in[parting.sets.index(allowed)]
            return np.append(labels, allowed.has_null) if self.axes[place].axis.nullable else labels

        found = []
        for clause in self.clauses:
            columns = tuple(names.index(name) for name in clause)
            found.append((columns, any_of(map(inside, columns, clause.values()))))
        return found

    def _order_masks(self, names: Sequence[str]) -> list[tuple[Clique, NDArray[np.bool_]]]:
        """Parts that begin above what the larger columns of `AtMost` may reach are impossible."""
        found: list[tuple[Clique, NDArray[np.bool_]]] = []
        for name, most in most_values(self.schema.rules, self.schema).items():
            place = names.index(name)
            if place not in self.partings or name in self.schema._lags:
                continue
            parting = self.partings[place]
            possible = np.zeros(self._n_labels(place), dtype=np.bool_)
            for start, label in zip(parting.starts, parting.labels, strict=True):
                possible[label] |= start <= most
            if self.axes[place].axis.nullable:
                possible[-1] = True
            found.append(((place,), possible))
        return found


def impossible_values(schema: Schema) -> list[tuple[str, str]]:
    """Columns of a schema with all bounds, and in words the values that its rules make impossible."""
    return RuleTables.of(schema).impossible()


# ------------------------------------------------------------------------------------------------------------ variables
# Variables: what a forest models of a schema, in the order of the table: columns, places, rules between
# columns.


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
        rules, modelled, variables = RuleTables.of(schema), list(schema._modelled), schema._variables
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
        modelled, numbers = list(self.schema._modelled), [self.names.index(name) for name, _ in pairs]
        parted = {modelled[column]: parting for column, parting in self.rules.partings.items()}
        found = possible_states(self.schema.rules, self.schema, dict(pairs), parted)
        return [(tuple(numbers[column] for column in clique), possible) for clique, possible in found]
