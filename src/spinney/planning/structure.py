"""Which structure a plan affords: what is counted together, in how many tables and cells, or how deep a tree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spinney.forest.design import Design
from spinney.forest.variables import Variables
from spinney.people.design import PeopleDesign
from spinney.planning.expected import ExpectedError, are_even_rows_lost, even_leaves
from spinney.release.card import structure_in_words
from spinney.schema.table import Schema
from spinney.synthesizers.rehearsal import Partition, Rehearsal
from spinney.tree.plan import SplitPlan

# A group of fewer rows than so many standard deviations of the noise on its count can hardly be told from none.
SEEN_FROM = 4.0

# Structures of forests from the poorest to the richest.
_RICHER = ("uniform", "independent", "target", "tree", "rounds")


@dataclass(frozen=True, slots=True)
class Structure:
    """What a plan measures: its name, in a sentence, in numbers, and the smallest group of rows that shows."""

    name: str
    sentence: str
    numbers: Mapping[str, int] = field(default_factory=dict)
    smallest_group: int | None = None  # None where nothing is counted

    def to_dict(self) -> dict[str, Any]:
        """The structure as JSON-ready data."""
        return {
            "name": self.name,
            "sentence": self.sentence,
            "numbers": dict(self.numbers),
            "smallest_group": self.smallest_group,
        }


def structure_of(rehearsal: Rehearsal, errors: Sequence[ExpectedError]) -> Structure:
    """The structure of a rehearsed fit."""
    found = {error.stage: error.noise_std for error in errors}
    one = next((found[name] for name in ("one-way", "places", "leaves", "row one-way") if name in found), None)
    smallest = None if one is None else min(math.ceil(SEEN_FROM * one), rehearsal.n_rows)
    planned = rehearsal.planned
    if isinstance(planned, Partition):
        return _of_partition(planned, rehearsal.n_rows, smallest)
    if isinstance(planned, PeopleDesign):
        return _of_people(planned, smallest)
    return _of_forest(planned, rehearsal.schema, smallest)


def rank(rehearsal: Rehearsal) -> int:
    """How rich the structure of a forest is; all trees and grids are alike."""
    planned = rehearsal.planned
    if isinstance(planned, Partition):
        return 0
    return _RICHER.index(planned.persons.structure if isinstance(planned, PeopleDesign) else planned.structure)


def afforded(rehearsal: Rehearsal) -> str:
    """What the structure of a forest pays for, in a few words."""
    planned = rehearsal.planned
    assert not isinstance(planned, Partition)
    return structure_in_words(_RICHER[rank(rehearsal)]).partition(":")[0]


# ----------------------------------------------------------------------------------------------- forests and persons


def _of_forest(design: Design, schema: Schema, smallest: int | None) -> Structure:
    numbers = _forest_numbers(design, schema)
    return Structure(design.structure, _forest_sentence(design, numbers), numbers, smallest)


def _forest_numbers(design: Design, schema: Schema) -> dict[str, int]:
    """How many columns there are, how many tables of each stage, of how many columns and cells at the most."""
    numbers = {"columns": len(design.measured)}
    numbers |= {f"{stage} tables": noise.times for stage, noise in design.plan.tables.items()}
    largest = _largest_clique(design)
    if largest > 1 and (set(design.plan.tables) & {"pairs", "cliques"}):
        numbers |= {"columns together": largest, "cells of a table": _most_cells(design, schema, largest)}
        numbers["possible pairs"] = math.comb(len(design.measured), 2)
    return numbers


def _largest_clique(design: Design) -> int:
    with_target = design.target is not None and not design.has_plain_pairs
    return {
        "rounds": design.effort.largest_clique,
        "tree": 2 + with_target,
        "target": 2,
        "independent": 1,
        "uniform": 0,
    }[design.structure]


def _most_cells(design: Design, schema: Schema, largest: int) -> int:
    """How many cells a table of so many columns has at the most, where all columns have as many states as they may."""
    variables = Variables.of(schema)
    states = design.states_of_columns(len(variables.names))
    sizes = dict(enumerate(states))
    for column, number in variables.numbers.items():
        sizes[number] = variables.rules.sizes(states[number])[column]
    free = sorted((sizes[number] for number in design.measured if number != design.target), reverse=True)
    if design.target is not None and design.structure in ("tree", "target") and not design.has_plain_pairs:
        return math.prod(free[: largest - 1]) * sizes[design.target]
    every = sorted((sizes[number] for number in design.measured), reverse=True)
    return min(math.prod(every[:largest]), design.effort.most_cells)


def _forest_sentence(design: Design, numbers: Mapping[str, int]) -> str:
    if design.structure == "uniform":
        nothing = "uniform: the budget is too small to tell a count from noise, so nothing would be measured"
        return f"{nothing}, and rows would be spread evenly over the schema"
    parts = [structure_in_words(design.structure).partition(":")[0]]
    n_alone = len(design.measured) - len(design.places) - len(design.looked_at)
    if n_alone:
        parts.append(f"{_many(n_alone, 'column')} by {'itself' if n_alone == 1 else 'themselves'}")
    if design.places:
        parts.append(_many(len(design.places), "map"))
    if n_pairs := numbers.get("pairs tables"):
        with_what = "another" if design.has_plain_pairs else "the target"
        parts.append(f"{_many(n_pairs, 'table')} of a column with {with_what}")
    if n_cliques := numbers.get("cliques tables"):
        size, n_cells = numbers["columns together"], numbers["cells of a table"]
        if design.structure == "tree":
            what = _many(n_cliques, "pair") if size == 2 else f"{_many(n_cliques, 'triple')} with the target"
        else:
            what = f"{_many(n_cliques, 'table')} of up to {size} columns"
        parts.append(f"{what}, each of up to {n_cells:,} cells")
    if n_stated := numbers.get("workload tables"):
        parts.append(f"{_many(n_stated, 'table')} that the call names")
    if design.plan.products is not None:
        parts.append("all other pairs coarsely")
    return "; ".join(parts)


def _of_people(design: PeopleDesign, smallest: int | None) -> Structure:
    of_persons = _of_forest(design.persons, design.schema, smallest)
    row_tables = design.plan.weighted["row tables"].times
    n_levels = sum(len(rows.levels) for rows in design.rows)
    numbers = {
        **of_persons.numbers,
        "row columns": sum(len(rows.names) for rows in design.rows),
        "row tables": row_tables,
        "states of a row's column": design.most_row_states,
        "hidden levels": n_levels,
    }
    levels = f", with up to {_many(n_levels, 'hidden level')} of a person" if n_levels else ", without hidden levels"
    rows = f"{_many(row_tables, 'table')} of {_many(numbers['row columns'], 'column')} of rows{levels}"
    return Structure(of_persons.name, f"of persons: {of_persons.sentence}; of rows: {rows}", numbers, smallest)


# --------------------------------------------------------------------------------------------------- trees and grids


def _of_partition(planned: Partition, n_rows: int, smallest: int | None) -> Structure:
    plan, lattice = planned.plan, planned.lattice
    if not plan.has_moments and smallest is not None:
        smallest = max(smallest, plan.threshold)
    n_leaves = even_leaves(planned, n_rows)
    lost = f"{'cells' if plan.rule == 'grid' else 'leaves'} whose noisy count is below {plan.threshold:,} are lost"
    if are_even_rows_lost(planned, n_rows):
        lost += (
            f", and if the rows are spread evenly, that is so of many: they hold about {n_rows / n_leaves:,.0f} each"
        )
    if plan.rule == "grid":
        numbers = {"columns": lattice.n_axes, "cells": n_leaves, "threshold": plan.threshold}
        return Structure("grid", f"a grid of {_many(n_leaves, 'cell')}; {lost}", numbers, smallest)
    depth = _even_depth(plan, n_rows)
    numbers = {
        "columns": lattice.n_axes,
        "fixed depth": plan.fixed_depth,
        "largest depth": plan.max_depth,
        "depth of even rows": depth,
        "leaves of even rows": n_leaves,
    }
    sentence = (
        f"one tree over {_many(lattice.n_axes, 'column')}: about {_many(n_leaves, 'leaf')} at depth {depth} if the "
        f"rows are spread evenly, smaller ones where they crowd, down to depth {plan.max_depth}"
    )
    if plan.has_moments:
        return Structure("moments", f"{sentence}; leaves release counts and means", numbers, smallest)
    return Structure("bins", f"{sentence}; {lost}", numbers | {"threshold": plan.threshold}, smallest)


def _even_depth(plan: SplitPlan, n_rows: int) -> int:
    """The depth at which nodes of evenly spread rows no longer split as often as not."""
    depth = plan.fixed_depth
    while depth < plan.max_depth and plan.split_chance(n_rows >> depth, depth) > 0.5:
        depth += 1
    return depth


def _many(number: int, what: str) -> str:
    plural = {"leaf": "leaves"}.get(what, f"{what}s")
    return f"{number:,} {what if number == 1 else plural}"
