"""Round places of calendars and clocks: what a day, an hour and a year have in common with a round number."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

SECOND = 10**6
_PARTS = (7 * 86_400, 86_400, 43_200, 21_600, 10_800, 3600, 1800, 900, 300, 60, 30, 15, 5, 1)
# In microseconds, longest first: weeks, days, parts of a day, of an hour, of a minute, of a second.
CLOCK_STEPS = (*(SECOND * seconds for seconds in _PARTS), 100_000, 10_000, 1000, 100, 10, 1)
# Months that begin a century, a decade, a year, a quarter, a month.
_EVERY = (1200, 120, 12, 3, 1)


def month_starts(low: date, high: date) -> tuple[list[date], ...]:
    """First days of centuries, decades, years, quarters and months after `low`, up to `high`."""
    first, last = low.year * 12 + low.month, high.year * 12 + high.month - 1
    return tuple(
        [date(month // 12, month % 12 + 1, 1) for month in range(first + -first % every, last + 1, every)]
        for every in _EVERY
    )


def divisors(step: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """The sizes that are whole numbers of steps, in steps."""
    return tuple(size // step for size in sizes if size % step == 0)
