"""What a release holds of rows, compared with what was paid for it, and with what it holds of persons.

Which trees, tables and vectors there are follows from the columns, so a charge that lacks one of them does not pay for
the release. Rows of all tables, leaves and persons are the same ones: their numbers differ by noise of a known size.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from spinney.forest.release.plausible import slack_of_total
from spinney.people.release.first_tables import first_cliques
from spinney.people.release.names import count_name, level_name
from spinney.people.release.rows import ReleasedRows
from spinney.privacy.parts import UNITS, Part, TreeShapes
from spinney.release.contradictions import check
from spinney.schema.column_axis import ColumnAxis, column_axes

if TYPE_CHECKING:
    from spinney.people.release.model import PeopleRelease

# Gaussian noise beyond so many standard deviations is drawn once in 10^18 times.
_MOST_DEVIATIONS = 9.0
# Leaves of noise are emptied: each of them held no more persons than so many standard deviations.
_EMPTIED = 4.0


def check_stages(release: PeopleRelease, parts: Iterable[Part]) -> None:
    """Raise a ContradictionError where trees, columns, alikeness, choices or tables of rows were not paid for."""
    times: Counter[str | None] = Counter()
    levels = math.inf
    for part in parts:
        times[part.stage] += part.times
        if isinstance(part, TreeShapes) and part.stage == "row trees":
            levels = min(levels, part.levels)
    axes = [axis for rows in release.rows for axis in column_axes(rows.schema).values()]
    trees = [axis.max_levels for axis in axes if axis.ruler is not None]
    check(times["row trees"] >= len(trees), "fewer trees of rows were paid for than columns have one")
    check(levels >= max(trees, default=0), "fewer levels of the trees of rows were paid for than their columns have")
    check(times["row spikes"] >= len(trees), "fewer tables of spikes of rows were paid for than columns have a tree")
    n_one_way = sum(axis.n_tables for axis in axes)
    check(times["row one-way"] >= n_one_way, "fewer columns of rows were paid for than were counted")
    check(times["alikeness"] == 1, "how alike rows of a person are was not paid for, or more than once")
    n_tables = sum(len(rows.tables) for rows in release.rows)
    check(n_tables <= times["row tables"], "more tables of rows were measured than were paid for")
    n_chosen = sum(_n_chosen(release, rows) for rows in release.rows)
    check(n_chosen <= times["row selection"], "fewer choices among rows were paid for than tables were chosen")


def check_row_totals(release: PeopleRelease) -> None:
    """Raise a ContradictionError where leaves, tables or persons of a table of rows are of another number of them."""
    for rows in release.rows:
        what = f"rows of {rows.shape.name!r}" if rows.shape.name else "rows"
        units = rows.total * UNITS
        for name, column in rows.columns.items():
            is_total = abs(float(column.weights.sum()) - units) <= 1 + 1e-6 * units
            check(is_total, f"the leaves of {name!r} do not add up to the total of {what}")
        noise_std = _noise(release, "row one-way") * math.sqrt(_fewest_counts(rows))
        for table in rows.tables:
            counted = float(table.noisy.sum(dtype=np.float64)) / UNITS
            of_table = _noise(release, "row tables") * math.sqrt(len(table.noisy))
            slack = _MOST_DEVIATIONS * math.hypot(noise_std, of_table) + 1
            check(abs(counted - rows.total) <= slack, f"a table of {what} counts other rows than their total says")
        fewest, most = _persons_with_rows(release, rows)
        slack = _MOST_DEVIATIONS * noise_std + 1
        is_possible = fewest * (1 - rows.shape.most / UNITS) - slack <= rows.total <= most + slack
        check(is_possible, f"the total of {what} is not one that the numbers of rows of the persons allow")


def _n_chosen(release: PeopleRelease, rows: ReleasedRows) -> int:
    """How many tables were measured that a choice led to."""
    variables = release.persons.variables
    levels = [(level_name(rows.shape.name, name), own) for own, name in enumerate(rows.names)]
    found = [(variables.index(level), own) for level, own in levels if level in variables]
    count = variables.index(count_name(rows.shape.name))
    first = {clique for clique, _ in first_cliques(rows.layout, rows.field.role, count, found)}
    return sum(table.clique not in first for table in rows.tables)


def _noise(release: PeopleRelease, stage: str) -> float:
    """The standard deviation on one number of a stage, in persons; compared with the charges elsewhere."""
    return float(release.card.plan[f"{stage} noise"])


def _fewest_counts(rows: ReleasedRows) -> int:
    """How many noisy numbers the total was added up from, by the column that has the fewest."""
    axes = column_axes(rows.schema)
    return min(_n_counts(axes[name], len(model.low)) for name, model in rows.columns.items())


def _n_counts(axis: ColumnAxis, n_leaves: int) -> int:
    """Where codes have a hierarchy, neighbours may be one leaf; the coarsest groups were counted for their sum."""
    return n_leaves if axis.levels is None else len(axis.levels.starts[0]) + 1


def _persons_with_rows(release: PeopleRelease, rows: ReleasedRows) -> tuple[float, float]:
    """How many persons have rows, at the least and at the most: noise in the persons' own numbers is allowed for."""
    persons, count = release.persons, release.persons.columns[count_name(rows.shape.name)]
    total = float(persons.noisy_total)
    fewest = most = total
    if release.shape.persons is not None:  # position 0 is that of no rows
        fewest = float(count.weights[count.low >= 1].sum())
        most = float(count.weights[count.low + count.length > 1].sum())
    noise_std = float(release.card.plan.get("one-way noise", 0.0))
    n_leaves = len(count.low)
    slack = slack_of_total(persons)
    if release.shape.persons is not None:
        slack += noise_std * (_MOST_DEVIATIONS * math.sqrt(n_leaves) + _EMPTIED * n_leaves)
    return fewest - slack, most + slack
