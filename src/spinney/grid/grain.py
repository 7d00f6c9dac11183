"""Grain: in which steps people write the values of a column, as public classes of its cells. PUBLIC.

People write amounts as multiples of 10, 100 or 1000, and make dates fall on weekdays and ends of months. A grain says
of every cell of a column, which holds one value, which class it is in; how many rows each class has is one table, whose
cells share no row (`forest/columns`). Rows are then drawn in these steps (`forest/release/grain`).

    grain           classes of cells, how many cells of each lie before others, and the n-th of them
    numbers         decade of the number x the largest of 1, 5, 10, 50, ... that divides it
    days            day of the week x the first, the last or another day of the month

All of it follows from the schema, so nothing here costs epsilon.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled

# ---------------------------------------------------------------------------------------------------------------- grain


Cells = NDArray[np.int64]
Floats = NDArray[np.float64]
# Finds the classes of cells; needs numpy alone, so that workers without Spinney can run it.
Classifier = Callable[[Cells], Cells]


@dataclass(frozen=True, slots=True, eq=False)
class Grain(ABC):
    """Classes 0, 1, ... of the cells of one axis; where it is nullable, null is a class of its own, the last.

    A class lies in a *block* (a decade, a place in the month) and in a *pool* (a step, a day of the week). Where pools
    are nested, they are steps in ascending order, each a multiple of the one before.
    """

    is_nested: ClassVar[bool]

    n_cells: int  # each holds one value
    nullable: bool
    blocks: Cells  # (n_values,): of every class but null
    pools: Cells  # (n_values,)

    @property
    def n_values(self) -> int:
        """How many classes values have."""
        return len(self.blocks)

    @property
    def n_classes(self) -> int:
        """How many classes there are, with null."""
        return self.n_values + self.nullable

    @abstractmethod
    def classes(self, cells: Cells) -> Cells:
        """The class of each cell; cells from `n_cells` on are null."""

    @abstractmethod
    def classifier(self) -> Classifier:
        """The same, by numpy alone."""

    @abstractmethod
    def before(self, cells: Cells) -> Cells:
        """How many cells of each class lie before some cells, counted from a place of the class (n, n_values).

        Differences are how many lie between two cells; a number itself may be below 0.
        """

    @abstractmethod
    def nth(self, classes: Cells, ranks: Cells) -> Cells:
        """The cell of a class before which `before` counts so many."""


# -------------------------------------------------------------------------------------------------------------- numbers
# Numbers: decade of |x| by the largest of 1, 5, 10, 50, ..., 10^6 units that divides x; 0 is a class of its own.
#
# A cell holds the k-th multiple of a step s = mantissa x 10^p. A round number g x 10^p divides k s where g / gcd(g,
# mantissa) divides k, so that steps of 25 cents are told by multiples of 2 (50 cents), 4 (1.00), 20 (5.00) of them.
# Each of these divides the next. A class has the multiples of a step g in a decade [near, far) that the next larger
# step, g x ratio, does not divide.


_LARGEST_POWER = 6


@dataclass(frozen=True, slots=True, eq=False)
class NumberGrain(Grain):
    """Cell `zero + k` holds the k-th multiple of the column's step."""

    is_nested: ClassVar[bool] = True

    zero: int
    decades: Cells  # (n_decades,): the least |k| of each, ascending from 1 on
    steps: Cells  # (n_steps,): ascending from 1 on, each divides the next
    starts: Cells  # (n_decades + 1,): the first class of each decade, which has as many steps as classes
    near: Cells  # (n_values,): of every class but 0: its decade, [near, far)
    far: Cells
    step: Cells
    ratio: Cells  # 0 where there is no larger step

    def classes(self, cells: Cells) -> Cells:
        found = np.empty(len(cells), dtype=np.int64)
        _number_classes(cells, self.zero, self.n_cells, self.decades, self.steps, self.starts, self.n_values, found)
        return found

    def classifier(self) -> Classifier:
        zero, n_cells, decades, steps, starts = self.zero, self.n_cells, self.decades, self.steps, self.starts
        n_values = self.n_values

        def classes(cells: Cells) -> Cells:
            import numpy as np

            size = np.abs(cells - zero)
            decade = np.searchsorted(decades, size, side="right") - 1
            found = np.where(size == 0, 0, starts[np.maximum(decade, 0)])
            rows = np.flatnonzero((size > 0) & (cells < n_cells))
            for number, step in enumerate(steps[1:], start=1):
                rows = rows[size[rows] % step == 0]
                rows = rows[starts[decade[rows]] + number < starts[decade[rows] + 1]]
                found[rows] += 1
            return np.where(cells >= n_cells, n_values, found)

        return classes

    def before(self, cells: Cells) -> Cells:
        number = (cells - self.zero)[:, None]
        size = np.where(number > 0, number, 1 - number)
        below = self._below(np.clip(size, self.near, self.far)) - self._below(self.near)
        found = np.where(number > 0, below, -below)
        found[:, 0] = number[:, 0] > 0
        return found

    def nth(self, classes: Cells, ranks: Cells) -> Cells:
        step, ratio, near = self.step[classes], self.ratio[classes], self.near[classes]
        is_above = ranks >= 0
        rank = np.where(is_above, ranks, -1 - ranks) + self._below(self.near)[classes]
        # Of 0, 1, 2, ... those that the ratio does not divide come in runs of ratio - 1.
        multiple = np.where(ratio > 0, rank + rank // np.maximum(ratio - 1, 1) + 1, rank)
        number = np.where(is_above, 1, -1) * multiple * step
        return np.where(near == 0, self.zero, self.zero + number)

    def _below(self, sizes: Cells) -> Cells:
        """How many multiples of a class's step, but not of the next, lie in [0, size)."""
        above = np.where(self.ratio > 0, -(-sizes // (self.step * np.maximum(self.ratio, 1))), 0)
        return np.asarray(-(-sizes // self.step) - above)


def number_grain(n_cells: int, zero: int, mantissa: int, *, nullable: bool) -> NumberGrain:
    """The grain of multiples of a step of `mantissa` times a power of ten; `zero` may lie outside the axis."""
    most = max(abs(zero), abs(n_cells - 1 - zero), 1)
    steps = sorted({g // math.gcd(g, mantissa) for power in range(_LARGEST_POWER + 1) for g in _round(power)})
    decades, power = [1], 10
    while (least := -(-power // mantissa)) <= most:
        if least > decades[-1]:
            decades.append(least)
        power *= 10
    lines, starts = [(0, 1, 1, 0, 0, 0)], [1]  # near, far, step, ratio, block, pool
    for number, (near, far) in enumerate(zip(decades, [*decades[1:], most + 1], strict=True), start=1):
        fitting = [step for step in steps if step < far]
        ratios = [above // step for step, above in pairwise(fitting)]
        lines += [
            (near, far, step, ratio, number, pool)
            for pool, (step, ratio) in enumerate(zip(fitting, [*ratios, 0], strict=True), start=1)
        ]
        starts.append(len(lines))
    near, far, step, ratio, block, pool = np.array(lines, dtype=np.int64).T
    return NumberGrain(
        n_cells,
        nullable,
        block,
        pool,
        zero,
        np.array(decades, dtype=np.int64),
        np.array(steps, dtype=np.int64),
        np.array(starts, dtype=np.int64),
        near,
        far,
        step,
        ratio,
    )


def _round(power: int) -> tuple[int, ...]:
    """A power of ten, and half of the next one but for the last."""
    return (10**power,) if power == _LARGEST_POWER else (10**power, 5 * 10**power)


@compiled
def _number_classes(
    cells: Cells, zero: int, n_cells: int, decades: Cells, steps: Cells, starts: Cells, n_values: int, found: Cells
) -> None:
    for i in range(cells.size):
        if cells[i] >= n_cells:
            found[i] = n_values
            continue
        size = abs(cells[i] - zero)
        if size == 0:
            found[i] = 0
            continue
        decade = 0
        while decade + 1 < decades.size and decades[decade + 1] <= size:
            decade += 1
        number, n_steps = 0, starts[decade + 1] - starts[decade]
        while number + 1 < n_steps and size % steps[number + 1] == 0:
            number += 1
        found[i] = starts[decade] + number


# ----------------------------------------------------------------------------------------------------------------- days
# Days: day of the week, Monday first, by the first, the last or another day of the month.


_FIRST, _LAST, _OTHER = 0, 1, 2
_WEEK = 7
_FIRST_MONDAY = 4  # 1970-01-05, in days since 1970


@dataclass(frozen=True, slots=True, eq=False)
class DayGrain(Grain):
    """Cell c is the day `first + c` since 1970."""

    is_nested: ClassVar[bool] = False

    table: NDArray[np.int8]  # (n_cells + 1,): the class of every cell, and of null
    places: tuple[Cells, ...]  # of every class: its cells, ascending

    def classes(self, cells: Cells) -> Cells:
        return self.table[np.minimum(cells, self.n_cells)].astype(np.int64)

    def classifier(self) -> Classifier:
        table, n_cells = self.table, self.n_cells

        def classes(cells: Cells) -> Cells:
            import numpy as np

            return table[np.minimum(cells, n_cells)].astype(np.int64)

        return classes

    def before(self, cells: Cells) -> Cells:
        return np.stack([np.searchsorted(places, cells) for places in self.places], axis=1).astype(np.int64)

    def nth(self, classes: Cells, ranks: Cells) -> Cells:
        found = np.empty(len(classes), dtype=np.int64)
        for number, places in enumerate(self.places):
            here = classes == number
            found[here] = places[ranks[here]]
        return found


def day_grain(n_cells: int, first: int, *, nullable: bool) -> DayGrain:
    """The grain of as many days from `first` on, a day since 1970."""
    days = np.arange(first, first + n_cells, dtype=np.int64).view("datetime64[D]")
    month = days.astype("datetime64[M]")
    is_first = days == month.astype("datetime64[D]")
    is_last = (days + 1).astype("datetime64[M]") != month
    place = np.where(is_first, _FIRST, np.where(is_last, _LAST, _OTHER))
    weekday = (np.arange(first, first + n_cells) - _FIRST_MONDAY) % _WEEK
    n_values = 3 * _WEEK
    table = np.append(3 * weekday + place, n_values).astype(np.int8)
    places = tuple(np.flatnonzero(table == number).astype(np.int64) for number in range(n_values))
    blocks, pools = np.arange(n_values) % 3, np.arange(n_values) // 3
    return DayGrain(n_cells, nullable, blocks, pools, table, places)
