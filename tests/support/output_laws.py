"""Output laws of a release, computed from the mathematics and not from the source.

A release shows a set of bins: disjoint nodes with noisy counts at or above the threshold. Which nodes were
split stays hidden where nothing below them is released. So an output at a node is one of

    ("leaf", y)      the node was not split and its noisy count y passed
    (left, right)    the node was split, and not both children show nothing
    None             nothing: not split and not passed, or split and nothing on either side

Log-ratios of two tables combine along this grammar: the extremes over all outputs at a node follow from the
extremes at its children, and only the chance of `None` is a sum. No output is left out and none is sampled.

Only numbers (rates, depths, cutoff, decay, threshold) are taken from a `SplitPlan`. The formulas are

    P(X >= t) = a^t / (1+a),  t >= 1,     a = exp(-rate),     P(X >= t) = 1 - P(X >= 1-t) otherwise.

Every chance and its complement are computed as a tail of their own, so all keep full relative precision.
A table is the tuple of its counts in the 2^max_depth nodes of the deepest level, in code order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement, product
from typing import Any

from spinney.privacy.budget import Unit
from spinney.tree.plan import SplitPlan

Table = tuple[int, ...]
Mask = tuple[bool, ...]
Span = tuple[
    float, float, float
]  # least and largest log-ratio over outputs that show something; that of showing nothing

NO_OUTPUT: Span = (math.inf, -math.inf, 0.0)


def tail(rate: float, t: int) -> float:
    """P(X >= t) for discrete Laplace noise."""
    a = math.exp(-rate)
    return math.exp(-rate * t) / (1 + a) if t >= 1 else 1 - math.exp(-rate * (1 - t)) / (1 + a)


def mass(rate: float, k: int) -> float:
    """P(X = k) for discrete Laplace noise."""
    return math.tanh(rate / 2) * math.exp(-rate * abs(k))


class ReleaseLaw:
    """The law of one release: what each node does, and what a table shows."""

    def __init__(self, plan: SplitPlan, possible: Mask | None = None) -> None:
        self.plan = plan
        self.possible = (True,) * 2**plan.max_depth if possible is None else possible
        self.count_rate = float(plan.count_epsilon) / (2 if plan.unit is Unit.REPLACE_ONE else 1)
        self.decision_rate = float(plan.decision_rate)
        self._spans: dict[Any, Span] = {}
        self._nothing: dict[Any, float] = {}

    # ------------------------------------------------------------------------------------ what a node does

    def score(self, count: int, level: int) -> int:
        """What decision noise is added to, `level` levels below the last fixed one."""
        plan = self.plan
        return count if plan.rule == "paper" else max(count - level * plan.decay, plan.cutoff - plan.decay)

    def splits(self, count: int, depth: int) -> tuple[float, float]:
        """Chances that a node splits and that it does not."""
        if depth < self.plan.fixed_depth:
            return 1.0, 0.0
        if depth == self.plan.max_depth:
            return 0.0, 1.0
        gap = self.plan.cutoff - self.score(count, depth - self.plan.fixed_depth)
        return tail(self.decision_rate, gap + 1), tail(self.decision_rate, -gap)

    def passes(self, count: int) -> tuple[float, float]:
        """Chances that a leaf is released and that it is not."""
        gap = self.plan.threshold - count
        return tail(self.count_rate, gap), tail(self.count_rate, 1 - gap)

    def shows(self, count: int, y: int) -> float:
        """Chance that a leaf is released with the noisy count y."""
        return mass(self.count_rate, y - count)

    # ------------------------------------------------------------------------------------ log-ratios

    def nothing(self, table: Table, possible: Mask) -> float:
        """Chance that a subtree shows nothing."""
        if not any(possible):
            return 1.0
        key = (table, possible)
        if key not in self._nothing:
            depth, half = self._depth(table), len(table) // 2
            split, stay = self.splits(sum(table), depth)
            chance = stay * self.passes(sum(table))[1]
            if split:
                left = self.nothing(table[:half], possible[:half])
                chance += split * left * self.nothing(table[half:], possible[half:])
            self._nothing[key] = chance
        return self._nothing[key]

    def span(self, table: Table, other: Table, possible: Mask) -> Span:
        """Extremes of log P(output | table) / P(output | other) in one subtree."""
        if not any(possible):
            return NO_OUTPUT
        if table == other:
            return 0.0, 0.0, 0.0
        key = (table, other, possible)
        if key not in self._spans:
            self._spans[key] = self._span(table, other, possible)
        return self._spans[key]

    def _span(self, table: Table, other: Table, possible: Mask) -> Span:
        depth, half = self._depth(table), len(table) // 2
        count, other_count = sum(table), sum(other)
        (split, stay), (other_split, other_stay) = self.splits(count, depth), self.splits(other_count, depth)
        ratios = []
        if stay:
            # Past the larger of the two counts the ratio no longer changes with y.
            last = max(count, other_count, self.plan.threshold)
            here = math.log(stay / other_stay)
            counts = range(self.plan.threshold, last + 1)
            ratios += [here + math.log(self.shows(count, y) / self.shows(other_count, y)) for y in counts]
        if split:
            left = self.span(table[:half], other[:half], possible[:half])
            right = self.span(table[half:], other[half:], possible[half:])
            here = math.log(split / other_split)
            ratios.append(here + min(left[0] + right[0], left[0] + right[2], left[2] + right[0]))
            ratios.append(here + max(left[1] + right[1], left[1] + right[2], left[2] + right[1]))
        nothing = math.log(self.nothing(table, possible) / self.nothing(other, possible))
        return min(ratios), max(ratios), nothing

    def loss(self, table: Table, other: Table) -> float:
        """The largest absolute log-ratio over all outputs: the privacy loss between two tables."""
        least, largest, nothing = self.span(table, other, self.possible)
        return max(-least, largest, abs(nothing))

    def _depth(self, table: Table) -> int:
        return self.plan.max_depth - (len(table).bit_length() - 1)

    # ------------------------------------------------------------------------------------ whole laws

    def distribution(self, table: Table, *, cap: int, possible: Mask | None = None) -> dict[Any, float]:
        """Chance of every output; noisy counts from `threshold + cap - 1` up are shown as that number."""
        possible = self.possible if possible is None else possible
        if not any(possible):
            return {None: 1.0}
        depth, half, count = self._depth(table), len(table) // 2, sum(table)
        split, stay = self.splits(count, depth)
        last = self.plan.threshold + cap - 1
        chances: dict[Any, float] = {None: stay * self.passes(count)[1]}
        if stay:
            for y in range(self.plan.threshold, last):
                chances["leaf", y] = stay * self.shows(count, y)
            chances["leaf", last] = stay * tail(self.count_rate, last - count)
        if split:
            left = self.distribution(table[:half], cap=cap, possible=possible[:half])
            right = self.distribution(table[half:], cap=cap, possible=possible[half:])
            for (a, p), (b, q) in product(left.items(), right.items()):
                output = None if a is None and b is None else (a, b)
                chances[output] = chances.get(output, 0.0) + split * p * q
        return chances


def largest_ratio(law: dict[Any, float], other: dict[Any, float]) -> float:
    """Largest absolute log-ratio of two laws; infinite where one of them allows what the other rules out."""
    worst = 0.0
    for output in law.keys() | other.keys():
        p, q = law.get(output, 0.0), other.get(output, 0.0)
        if p and q:
            worst = max(worst, abs(math.log(p / q)))
        elif p or q:
            return math.inf
    return worst


# ---------------------------------------------------------------------------------------------- tables


def small_tables(possible: Mask, n_rows: int) -> Iterator[Table]:
    """All tables of `n_rows` rows."""
    cells = [cell for cell, is_possible in enumerate(possible) if is_possible]
    for rows in combinations_with_replacement(cells, n_rows):
        table = [0] * len(possible)
        for cell in rows:
            table[cell] += 1
        yield tuple(table)


def stacked_tables(n_cells: int, largest: int) -> Iterator[Table]:
    """Tables with rows in at most two cells: all pairs of counts, and one pair of cells per depth where two can part.

    Left and right are alike on a full lattice, so these stand for all pairs of cells.
    """
    seconds = [2**k for k in range(n_cells.bit_length() - 1)]
    for second, first_count, second_count in product(seconds, range(largest + 1), range(largest + 1)):
        table = [0] * n_cells
        table[0], table[second] = first_count, second_count
        yield tuple(table)


def neighbours(table: Table, unit: Unit, possible: Mask) -> Iterator[Table]:
    """Tables one row away: a row moved (replace-one) or a row gone (add-remove; adding is the same pair)."""
    cells = [cell for cell, is_possible in enumerate(possible) if is_possible]
    for source in cells:
        if not table[source]:
            continue
        fewer = [*table]
        fewer[source] -= 1
        if unit is Unit.ADD_REMOVE:
            yield tuple(fewer)
            continue
        for target in cells:
            if target != source:
                moved = [*fewer]
                moved[target] += 1
                yield tuple(moved)


def worst_loss(law: ReleaseLaw, tables: Iterator[Table]) -> float:
    """The largest privacy loss between any of the tables and any of its neighbours."""
    return max(law.loss(table, other) for table in tables for other in neighbours(table, law.plan.unit, law.possible))


def as_bins(output: Any, depth: int = 0, prefix: int = 0) -> tuple[tuple[int, int, int], ...]:
    """An output as a sorted set of (depth, prefix, noisy count)."""
    if output is None:
        return ()
    if output[0] == "leaf":
        return ((depth, prefix, output[1]),)
    left, right = (as_bins(part, depth + 1, 2 * prefix + bit) for bit, part in enumerate(output))
    return tuple(sorted(left + right))
