"""What a budget buys, in numbers: expected errors, the structure it affords, its side costs. PUBLIC.

Noise is known before anything is spent. What a model makes of its noisy counts, and how far a table is from
what the model can say, is not: a count as it was measured is off by its noise, an answer that the model gives
for the same question mostly by less, since all counts are fitted to each other, and one about columns that were
not counted together by more.

    errors                the noise of each stage, in rows and in per cent, and the answer to one example
    structure             what is counted together, and the smallest group of rows that shows
    forests and persons   tables of each stage, their columns and cells
    trees and grids       depth and leaves of evenly spread rows
    advice                what else is paid for, what would help, and what only the rows could tell
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import NormalDist
from typing import Any

from spinney.forest.design import Design
from spinney.forest.release.explain import Stage, stages
from spinney.forest.rules import Variables
from spinney.people.design import PeopleDesign
from spinney.privacy.mechanisms import DiscreteLaplaceCounts
from spinney.release.card import structure_in_words
from spinney.schema.schema import Schema
from spinney.synthesizers.paying import Partition, Rehearsal
from spinney.text import many
from spinney.tree.moments import leaf_noise_std

LEVEL = 0.95
# A question about this part of the rows, such as a category that a tenth of them have.
SHARE = 0.1
_NORMAL = NormalDist().inv_cdf((1 + LEVEL) / 2)
# P(|X| > t) = e^(-t / scale), and the standard deviation is sqrt(2) scale.
_LAPLACE = math.log(1 / (1 - LEVEL)) / math.sqrt(2)

# A leaf that is lost with no larger chance than this does not count.
_RARELY = 5e-4

# What a count of each stage is of, the plainest first.
COUNTED = {
    "classes": "a value of the target",
    "one-way": "one column",
    "places": "a region of a map",
    "pairs": "a column with the target",
    "cliques": "columns together",
    "workload": "a table that the call names",
    "leaves": "a leaf of the tree",
    "row one-way": "one column of rows",
    "row tables": "columns of rows together",
}


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """The noise on a count, as a standard deviation and as what 95 % of counts are within, in rows and of all rows."""

    stage: str
    what: str
    noise_std: float
    within_95: float
    n_rows: int

    @property
    def percent_95(self) -> float:
        """What 95 % of counts are within, in per cent of all rows."""
        return 100 * self.within_95 / self.n_rows

    def to_dict(self) -> dict[str, Any]:
        """The error as JSON-ready data."""
        return {
            "stage": self.stage,
            "what": self.what,
            "noise_std": _digits(self.noise_std),
            "within_95": _digits(self.within_95),
            "percent_95": _digits(self.percent_95),
        }


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """A question about a tenth of the rows, and the interval that 95 % of noisy answers lie in."""

    what: str
    n_rows: int
    noise_std: float
    within_95: float
    is_even: bool  # whether it takes rows to be spread evenly, as those of a tree have to be

    @property
    def expected(self) -> int:
        """A tenth of all rows."""
        return round(SHARE * self.n_rows)

    @property
    def interval(self) -> tuple[int, int]:
        """From, to: whole rows, none below 0 and none above all."""
        low, high = self.expected - self.within_95, self.expected + self.within_95
        return max(0, math.floor(low)), min(self.n_rows, math.ceil(high))

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON-ready data."""
        low, high = self.interval
        return {
            "what": self.what,
            "expected": self.expected,
            "low": low,
            "high": high,
            "noise_std": _digits(self.noise_std),
            "within_95": _digits(self.within_95),
            "percent_95": _digits(100 * self.within_95 / self.n_rows),
            "assumes_even_rows": self.is_even,
        }


def budget_stages(rehearsal: Rehearsal) -> tuple[Stage, ...]:
    """The stages of all that would be charged, with shares and noise, as a card would state them."""
    return stages(rehearsal.events, rehearsal.unit) if rehearsal.events else ()


def expected_errors(rehearsal: Rehearsal, found: Sequence[Stage]) -> tuple[ExpectedError, ...]:
    """The noise on the counts of every stage that releases counts, in the order of `COUNTED`."""
    by_name = {stage.name: stage for stage in found}
    of_laplace = {event.stage for event in rehearsal.events if isinstance(event, DiscreteLaplaceCounts)}
    errors = []
    for name, what in COUNTED.items():
        if name not in by_name:
            continue
        noise_std, factor = by_name[name].noise_std, _LAPLACE if name in of_laplace else _NORMAL
        if noise_std is None and isinstance(rehearsal.planned, Partition):
            noise_std = leaf_noise_std(rehearsal.planned.plan, rehearsal.planned.lattice)
        if noise_std is not None:
            errors.append(ExpectedError(name, _named(rehearsal, what), noise_std, factor * noise_std, rehearsal.n_rows))
    return tuple(errors)


def expected_answer(rehearsal: Rehearsal, errors: Sequence[ExpectedError]) -> ExpectedAnswer | None:
    """The answer to a count of a tenth of the rows; None where nothing is counted, or a threshold takes part of it."""
    who = "persons" if rehearsal.unit.is_person else "rows"
    found = {error.stage: error for error in errors}
    if isinstance(rehearsal.planned, Partition):
        if are_even_rows_lost(rehearsal.planned, rehearsal.n_rows):
            return None
        n_leaves = max(1.0, SHARE * even_leaves(rehearsal.planned, rehearsal.n_rows))
        noise_std = math.sqrt(n_leaves) * found["leaves"].noise_std
        what = f"how many {who} lie in a box that holds a tenth of them"
        return ExpectedAnswer(what, rehearsal.n_rows, noise_std, _NORMAL * noise_std, is_even=True)
    one = next((found[name] for name in ("one-way", "places", "row one-way") if name in found), None)
    if one is None:
        return None
    what = f"how many {who} have a value that a tenth of them have"
    return ExpectedAnswer(what, rehearsal.n_rows, one.noise_std, one.within_95, is_even=False)


def even_leaves(planned: Partition, n_rows: int) -> int:
    """About how many leaves there are if rows are spread evenly; of a grid, how many cells."""
    if planned.plan.rule == "grid":
        return math.prod(axis.n_possible for axis in planned.lattice.axes)
    return max(1, round(planned.plan.expected_leaves(n_rows)))


def are_even_rows_lost(planned: Partition, n_rows: int) -> bool:
    """Whether a threshold takes noisy leaves of evenly spread rows more often than once in a few thousand times."""
    plan = planned.plan
    if plan.has_moments:
        return False
    missing = n_rows // even_leaves(planned, n_rows) - plan.threshold
    return missing < 0 or math.exp(-float(plan.count_rate) * missing) / 2 > _RARELY


def _named(rehearsal: Rehearsal, what: str) -> str:
    planned = rehearsal.planned
    return "a cell of the grid" if isinstance(planned, Partition) and planned.plan.rule == "grid" else what


def _digits(value: float) -> float:
    return float(f"{value:.6g}")


# ------------------------------------------------------------------------------------------------------------ structure
# Which structure a plan affords: what is counted together, in how many tables and cells, or how deep a tree.


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
        return asdict(self)


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


# -------------------------------------------------------------------------------------------------- forests and persons
# Structures of forests and of models of persons: tables of each stage, and the largest of them.


def _of_forest(design: Design, schema: Schema, smallest: int | None) -> Structure:
    """How many columns there are, how many tables of each stage, of how many columns and cells at the most."""
    numbers = {"columns": len(design.measured)}
    numbers |= {f"{stage} tables": design.plan.times(stage) for stage in design.plan.tables}
    with_target = design.target is not None and not design.has_plain_pairs
    of_structure = {"rounds": 3, "tree": 2 + with_target, "target": 2, "independent": 1, "uniform": 0}
    largest = of_structure[design.structure]
    if largest > 1 and (set(design.plan.tables) & {"pairs", "cliques"}):
        numbers |= {"columns together": largest, "cells of a table": _most_cells(design, schema, largest)}
        numbers["possible pairs"] = math.comb(len(design.measured), 2)
    return Structure(design.structure, _forest_sentence(design, numbers), numbers, smallest)


def _most_cells(design: Design, schema: Schema, largest: int) -> int:
    """How many cells a table of so many columns has at the most, where all columns have as many states as they may."""
    variables = Variables.of(schema)
    n_columns = max(len(variables.names), *(number + 1 for number in design.measured))  # hidden levels come last
    states = design.states_of_columns(n_columns)
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
        parts.append(f"{many(n_alone, 'column')} by {'itself' if n_alone == 1 else 'themselves'}")
    if design.places:
        parts.append(many(len(design.places), "map"))
    if n_pairs := numbers.get("pairs tables"):
        with_what = "another" if design.has_plain_pairs else "the target"
        parts.append(f"{many(n_pairs, 'table')} of a column with {with_what}")
    if n_cliques := numbers.get("cliques tables"):
        size, n_cells = numbers["columns together"], numbers["cells of a table"]
        if design.structure == "tree":
            what = many(n_cliques, "pair") if size == 2 else f"{many(n_cliques, 'triple')} with the target"
        else:
            what = f"{many(n_cliques, 'table')} of up to {size} columns"
        parts.append(f"{what}, each of up to {n_cells:,} cells")
    if n_stated := numbers.get("workload tables"):
        parts.append(f"{many(n_stated, 'table')} that the call names")
    if "relations" in design.plan.vectors:
        parts.append("columns of one kind that may be equal, or fixed parts of each other")
    if "products" in design.plan.vectors:
        parts.append("all other pairs coarsely")
    return "; ".join(parts)


def _of_people(design: PeopleDesign, smallest: int | None) -> Structure:
    of_persons = _of_forest(design.persons, design.schema, smallest)
    row_tables = design.plan.times("row tables")
    n_levels = sum(len(rows.levels) for rows in design.rows)
    numbers = {
        **of_persons.numbers,
        "row columns": sum(len(rows.names) for rows in design.rows),
        "row tables": row_tables,
        "states of a row's column": design.most_row_states,
        "hidden levels": n_levels,
    }
    levels = f", with up to {many(n_levels, 'hidden level')} of a person" if n_levels else ", without hidden levels"
    rows = f"{many(row_tables, 'table')} of {many(numbers['row columns'], 'column')} of rows{levels}"
    return Structure(of_persons.name, f"of persons: {of_persons.sentence}; of rows: {rows}", numbers, smallest)


# ------------------------------------------------------------------------------------------------------ trees and grids
# Structures of trees and grids: how deep evenly spread rows are split.


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
        return Structure("grid", f"a grid of {many(n_leaves, 'cell')}; {lost}", numbers, smallest)
    depth = plan.fixed_depth  # evenly spread rows: down to where nodes no longer split as often as not
    while depth < plan.max_depth and plan.split_chance(n_rows >> depth, depth) > 0.5:
        depth += 1
    numbers = {
        "columns": lattice.n_axes,
        "fixed depth": plan.fixed_depth,
        "largest depth": plan.max_depth,
        "depth of even rows": depth,
        "leaves of even rows": n_leaves,
    }
    sentence = (
        f"one tree over {many(lattice.n_axes, 'column')}: about {many(n_leaves, 'leaf')} at depth {depth} if the "
        f"rows are spread evenly, smaller ones where they crowd, down to depth {plan.max_depth}"
    )
    if plan.has_moments:
        return Structure("moments", f"{sentence}; leaves release counts and means", numbers, smallest)
    return Structure("bins", f"{sentence}; {lost}", numbers | {"threshold": plan.threshold}, smallest)


# --------------------------------------------------------------------------------------------------------------- advice
# What a plan spends on other things, what would help, and what nobody can know before the rows are seen.


# Stages that a call or a schema may do without, and how.
_REMEDIES = {
    "bounds": "state the bounds in the schema, if they are public",
    "values": "list the values in the schema, if they are public",
    "utility": "leave utility_share out, or lower it; figures of utility are then missing, or noisier",
    "analyses": "name fewer regressions, or lower analyses_share",
    "workload": "name fewer tables, or tables of fewer columns",
    "prior": "leave the prior out",
    "classes": "leave the target out, if no column is to be predicted",
}
_WHAT = {
    "bounds": "private bounds",
    "values": "private lists of values",
    "utility": "figures of utility",
    "analyses": "sums of named regressions",
    "workload": "tables that the call names",
    "prior": "choices of where to use the prior",
    "classes": "sizes of the target's classes",
}
# So many columns, or more, make it worth telling what fewer would bring.
_MANY_COLUMNS = 6


@dataclass(frozen=True, slots=True)
class Cost:
    """A part of the budget that the rows do not get, and what would save it."""

    stage: str
    what: str
    share: float
    remedy: str

    def to_dict(self) -> dict[str, Any]:
        """The cost as JSON-ready data."""
        return {"stage": self.stage, "what": self.what, "share": float(f"{self.share:.6g}"), "remedy": self.remedy}


def costs(found: Sequence[Stage]) -> tuple[Cost, ...]:
    """What is paid for besides columns and their dependences."""
    return tuple(
        Cost(stage.name, _WHAT[stage.name], stage.share, _REMEDIES[stage.name])
        for stage in found
        if stage.name in _REMEDIES
    )


def hints(rehearsal: Rehearsal, structure: Structure) -> tuple[str, ...]:
    """What would bring more for the same table, the most effective first."""
    found = []
    planned, who = rehearsal.planned, "persons" if rehearsal.unit.is_person else "rows"
    if structure.name == "uniform":
        found.append(f"a larger epsilon, or more {who}: so far nothing is told from noise")
    if isinstance(planned, (Design, PeopleDesign)):
        n_columns = structure.numbers["columns"] + structure.numbers.get("row columns", 0)
        if n_columns >= _MANY_COLUMNS:
            less = "half the noise" if not rehearsal.delta else "about 0.7 times the noise"
            found.append(f"fewer columns: half of the {n_columns} would have {less}")
        if not rehearsal.delta:
            found.append("a delta, such as 1e-6: the noise of many counts grows more slowly with one")
        if structure.name == "tree" and isinstance(planned, Design) and not planned.effort.rounds_per_column:
            found.append('quality="high", if there are enough rows: more pairs, and groups of three, at more time')
        if structure.name in ("tree", "rounds") and isinstance(planned, Design) and not planned.stated:
            found.append(
                "a workload, if questions will be about some columns together: their table is then counted in any "
                "case, and answers about pairs that were not counted have wide intervals"
            )
    else:
        if are_even_rows_lost(planned, rehearsal.n_rows):
            found.append("a lower threshold, fewer bins or levels, or a larger epsilon: so far most leaves may be lost")
        if planned.lattice.n_axes > 1:
            found.append("fewer columns: every one divides the rows among more leaves")
    return tuple(found)


def unknown(rehearsal: Rehearsal) -> tuple[str, ...]:
    """What the plan follows from, or what the result depends on, and only the rows could tell."""
    found = [
        f"{what}: a stand-in takes its place, and a fit plans anew once it is found" for what in rehearsal.stand_ins
    ]
    planned, who = rehearsal.planned, "persons" if rehearsal.unit.is_person else "rows"
    if isinstance(planned, Partition):
        is_grid = planned.plan.rule == "grid"
        finer = "" if is_grid else ": crowded places are divided more finely than a plan can say"
        found.append(f"how the {who} are spread{finer}")
        found.append(f"how far the rows within a {'cell' if is_grid else 'leaf'} are from what is released of it")
    elif isinstance(planned, PeopleDesign) or planned.structure in ("tree", "rounds"):
        found.append("which columns depend on each other, and so which are counted together")
        found.append("how far the table is from what these tables can say: that error is not noise, and comes on top")
    else:
        found.append("how much columns depend on each other, of which nothing or little would be measured")
    if not rehearsal.unit.n_is_public:
        found.append(
            f"how many {who} there are: give this number as assumed_{who}, or a hundredth of epsilon pays for a noisy "
            "count, which the plan then follows"
        )
    return tuple(found)
