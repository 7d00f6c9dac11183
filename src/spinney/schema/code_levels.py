"""Levels of a hierarchy of codes: groups that are ranges of a list, from coarse to fine, down to the single codes.

All of it follows from the schema. Groups are counted level by level, so that what codes have in common is known from a
few numbers and not from the sum of many. Levels that say nothing, of one group or of groups of one code each, are left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Cells = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CodeLevels:
    """Where groups begin in the list of codes, the first at 0: one array for each level, coarse to fine."""

    n_codes: int
    starts: tuple[Cells, ...]

    def sums(self, counts: Cells, level: int) -> Cells:
        """Counts of codes added up by group."""
        return np.add.reduceat(counts, self.starts[level])

    def parents(self, level: int) -> Cells:
        """For every group of a level, or every code where it is the last, the group of the level above that has it."""
        places = self.starts[level] if level < len(self.starts) else np.arange(self.n_codes)
        if level == 0:
            return np.zeros(len(places), dtype=np.int64)
        return np.searchsorted(self.starts[level - 1], places, side="right").astype(np.int64) - 1

    def sizes(self, level: int) -> Cells:
        """How many codes every group has; 1 each, where the level is that of the codes."""
        if level == len(self.starts):
            return np.ones(self.n_codes, dtype=np.int64)
        return np.diff(np.append(self.starts[level], self.n_codes))

    def cut(self, low: int, high: int) -> int:
        """Where a range of two codes or more is cut in two.

        At the coarsest level of which a group begins inside; of several, where one begins nearest to the middle.
        """
        middle = low + (high - low) // 2
        for starts in self.starts:
            inside = starts[np.searchsorted(starts, low, side="right") : np.searchsorted(starts, high)]
            if len(inside):
                return int(inside[np.argmin(np.abs(inside - middle))])
        return middle


def code_levels(n_codes: int, starts: Sequence[Sequence[int]]) -> CodeLevels:
    """The levels whose groups begin at `starts` and at 0."""
    kept: list[Cells] = []
    for places in starts:
        level = np.array([0, *places], dtype=np.int64)
        if 1 < len(level) < n_codes and not (kept and len(kept[-1]) == len(level)):
            kept.append(level)
    return CodeLevels(n_codes, tuple(kept))
