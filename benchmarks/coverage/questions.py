"""Questions that every release is asked: drawn from the population's own values, the same in every run of a seed.

Ranges begin and end at values of the file and hold a tenth to six tenths of its rows; values of categories are those
that at least one row in a hundred has. So no question is about next to nothing, where every interval holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from benchmarks.coverage.tables import Population
from spinney.columns import Bounded, Category, Column, Real
from spinney.columns.number import Number
from spinney.tree.release.moments import MomentsRelease
from spinney.tree.release.piece_values import to_values

Where = dict[str, Any]
Leaves = list[Where]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a kind: a count, a mean or a quantile."""

    kind: str
    statistic: str  # "count", "mean" or "quantile"
    column: str | None = None
    where: Where = field(default_factory=dict)
    at: float = 0.5  # of quantiles


class Questions:
    """Draws questions about a population."""

    def __init__(self, population: Population, seed: int) -> None:
        self._population = population
        self._rng = np.random.default_rng([seed, 13])
        self._columns: dict[str, Column] = {
            name: column for name, column in population.schema.items() if column.is_read and self._has_values(name)
        }

    def of_forest(self, together: Iterable[tuple[str, ...]], n: int) -> list[Asked]:
        """Questions about one column, and about pairs that were counted together or apart."""
        names = list(self._columns)
        pairs = {frozenset((a, b)) for clique in together for a in clique for b in clique if a != b}
        known = [tuple(sorted(pair)) for pair in pairs if pair <= set(names)]
        apart = [(a, b) for place, a in enumerate(names) for b in names[place + 1 :] if frozenset((a, b)) not in pairs]
        asked = [Asked("one column", "count", where=self._conditions([name])) for name in self._some(names, n)]
        values = [name for name in names if isinstance(self._columns[name], Category)]
        asked += [Asked("whole leaves", "count", where=self._conditions([name])) for name in self._some(values, n)]
        asked += self._of_columns([name for name in names if self._is_number(name)], n)
        for word, found in (("together", sorted(known)), ("apart", apart)):
            chosen = self._some(found, n)
            asked += [Asked(f"pairs {word}", "count", where=self._conditions(pair)) for pair in chosen]
            of_numbers = [(a, b) for pair in found for a, b in (pair, pair[::-1]) if self._is_number(a)]
            asked += [Asked(f"means {word}", "mean", a, self._conditions([b])) for a, b in self._some(of_numbers, n)]
        return asked

    def of_tree(self, n: int, leaves: Leaves) -> list[Asked]:
        """Counts in boxes of all columns and in single leaves, and quantiles and means of single columns."""
        names = list(self._columns)
        asked = [Asked("boxes", "count", where=self._conditions(names, least=0.3, most=0.9)) for _ in range(n)]
        asked += [Asked("whole leaves", "count", where=where) for where in self._some(leaves, n)]
        return asked + self._of_columns(names, n)

    def _of_columns(self, names: list[str], n: int) -> list[Asked]:
        """Quantiles and means of single columns, over all rows."""
        levels = self._rng.uniform(0.1, 0.9, n)
        of_columns = zip(self._some(names, n), levels, strict=False)
        asked = [Asked("quantiles", "quantile", name, at=round(float(at), 3)) for name, at in of_columns]
        return asked + [Asked("means", "mean", name) for name in names]

    # ------------------------------------------------------------------------------------------------ drawing

    def _some(self, items: list[Any], n: int) -> list[Any]:
        """As many of a list, each once unless there are too few."""
        if not items:
            return []
        order = [int(place) for _ in range(-(-n // len(items))) for place in self._rng.permutation(len(items))]
        return [items[place] for place in order[:n]]

    def _conditions(self, names: Iterable[str], *, least: float = 0.1, most: float = 0.6) -> Where:
        return {name: self._condition(name, least, most) for name in names}

    def _condition(self, name: str, least: float, most: float) -> Any:
        values = self._population.frame[name].drop_nulls()
        if isinstance(self._columns[name], Bounded):
            share = self._rng.uniform(least, most)
            start = self._rng.uniform(0, 1 - share)
            low, high = (values.quantile(at, interpolation="nearest") for at in (start, start + share))
            return _plain(low), _plain(high)
        counts = values.value_counts(sort=True)
        common = counts.filter(pl.col("count") >= 0.01 * values.len())[name].to_list()
        n_wanted = int(self._rng.integers(1, max(2, len(common))))
        chosen = [common[place] for place in self._rng.permutation(len(common))[:n_wanted]]
        return chosen[0] if len(chosen) == 1 else chosen

    def _is_number(self, name: str) -> bool:
        return isinstance(self._columns[name], Number)

    def _has_values(self, name: str) -> bool:
        return self._population.frame[name].drop_nulls().n_unique() > 1


def leaves_of(release: MomentsRelease) -> Leaves:
    """The leaves of a tree of reals as conditions; the upper end of a leaf belongs to the next, but for the last."""
    if any(not isinstance(column, Real) or column.multiple_of is not None for column in release.schema.values()):
        return []
    boxes, moments = release.density.boxes, release.moments
    low, high = (
        to_values(np.ascontiguousarray(ends.T), moments.lattice, release.density.piles)
        for ends in (boxes.low, boxes.low + boxes.length)
    )
    tops = [np.max(column) for column in high]
    found: Leaves = []
    for leaf in np.flatnonzero(~np.any(boxes.null_share > 0, axis=1)):
        ends = [(low[axis][leaf], high[axis][leaf], top) for axis, top in enumerate(tops)]
        values = [(float(a), float(b if b == top else np.nextafter(b, a))) for a, b, top in ends]
        found.append(dict(zip((axis.name for axis in moments.lattice.axes), values, strict=True)))
    return found


def _plain(value: Any) -> Any:
    """Whole numbers as such: a quantile of whole numbers is a float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
