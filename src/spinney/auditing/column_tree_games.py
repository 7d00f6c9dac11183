"""A game on the trees of columns: how deep a tree goes tells how many rows lie at its end."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.auditing.claims import PureClaim
from spinney.auditing.game import Coins, Floats, Game, Seen
from spinney.auditing.prepaid_plans import opened, plan_of
from spinney.auditing.tree_games import tail
from spinney.columns import Integer
from spinney.counting.counts import CellCounts
from spinney.forest.plan import TreeNoise
from spinney.privacy.budget import Unit
from spinney.privacy.parts import TreeShapes
from spinney.schema.column_axis import column_axis
from spinney.tree.calibration import worst_path_loss

_MANY = 200


@lru_cache(maxsize=2)
def _parted(n_roots: int, width: int) -> tuple[Any, NDArray[np.int64], list[list[int]]]:
    """A column cut into ranges from the beginning, and for each range where those that hold its first cell end."""
    column = column_axis("v", Integer(0, n_roots * width - 1))
    assert column.ruler is not None
    roots = np.arange(n_roots, dtype=np.int64) * width
    ends = np.append(roots[1:], column.ruler.n_cells)
    stops: list[list[int]] = [[int(end)] for end in ends]
    for root, path in zip(roots, stops, strict=True):
        while path[-1] - root > 1:
            path.append(int(column.ruler.cuts(np.array([root]), np.array([path[-1]]))[0]))
    return column, roots, stops


class ColumnTreeGame(Game):
    """How deep a column's tree goes at the rows: down to the cutoff, a decay a level. Many ranges, each with a coin."""

    family = "column trees"
    path = "forest.prepaid: PrepaidMechanisms.ranges"
    is_packed = True

    def __init__(self, noise: TreeNoise | TreeShapes, unit: Unit, *, n_levels: int = 5) -> None:
        self.unit, self._n_levels = unit, n_levels
        self._column, self._roots, self._stops = _parted(1024, 64)
        ruler = self._column.ruler
        levels = max(noise.levels, ruler.max_levels)
        self.claim = PureClaim(float(worst_path_loss(noise.rate, noise.decay, levels, unit)))
        tree = TreeNoise(noise.rate, noise.decay, levels, 1)
        self._plan = replace(plan_of([], unit), trees=tree)
        self.title = f"{n_levels} levels down to the cutoff"
        self._cutoff = _MANY
        self._rows = self._cutoff + max(n_levels - 2, 0) * noise.decay
        self._is_pair = unit.n_is_public

    @property
    def batch(self) -> int:
        return len(self._roots) // (2 if self._is_pair else 1)

    def play(self, coins: Coins) -> Seen:
        n = len(self._roots)
        rows = np.full(n, self._rows, dtype=np.int64)
        if self._is_pair:
            rows[0::2] = self._cutoff
            rows[0 : 2 * len(coins) : 2] += ~coins
            rows[1 : 2 * len(coins) : 2] += coins
        else:
            rows[: len(coins)] += coins
        codes = self._roots.astype(np.uint64)[:, None] << np.uint64(64 - self._column.axis.bits)
        counts = CellCounts(self._column.lattice, codes, rows)
        found = opened(self._plan).ranges(counts, self._column.ruler, cutoff=self._cutoff, roots=self._roots)
        ends = found.stop[np.searchsorted(found.first, self._roots)]
        depths = np.array([path.index(int(end)) for path, end in zip(self._stops, ends, strict=True)])
        ratios = self._ratios(depths)
        if self._is_pair:
            used = slice(0, 2 * len(coins))
            depths, ratios = depths[used], ratios[used]
            return Seen(np.column_stack([depths[1::2], depths[0::2]]).astype(np.float64), ratios[1::2] - ratios[0::2])
        return Seen(depths[: len(coins), None].astype(np.float64), ratios[: len(coins)])

    def _ratios(self, depths: NDArray[np.int64]) -> Floats:
        ratios = np.empty(len(depths))
        lengths = np.array([len(path) - 1 for path in self._stops])
        for place, length in ((place, length) for place in range(2) for length in np.unique(lengths)):
            starts = self._cutoff if self._is_pair and place == 0 else self._rows
            table = _path_ratios(starts, int(length), self._plan.trees, self._cutoff)
            here = (np.arange(len(depths)) % 2 == place) & (lengths == length)
            ratios[here] = table[depths[here]]
        return ratios


@lru_cache(maxsize=64)
def _path_ratios(rows: int, n_levels: int, noise: TreeNoise, cutoff: int) -> Floats:
    """By depth, ln of the chance that a path ends there with one row more, over that without."""
    logs, rate = np.zeros((2, n_levels + 1)), float(noise.rate)
    for more in range(2):
        before = 0.0
        for level in range(n_levels):
            score = max(rows + more - level * noise.decay, cutoff - noise.decay)
            logs[more, level] = before + math.log(float(tail(rate, score - cutoff)))
            before += math.log(float(tail(rate, cutoff - score + 1)))
        logs[more, -1] = before
    return np.asarray(logs[1] - logs[0])
