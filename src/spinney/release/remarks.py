"""Remarks: what released numbers say about the schema and the call that a holder should hear of. Costs nothing.

    a pile at a bound     values beyond a bound are moved to it, so that a bound which is too narrow shows as a pile
    one range for many    a quarter of a column's rows or more lie in one range, and little tells where in it
    rows assumed          automatic values followed from a number of rows that released counts contradict
    rows counted          a noisy count of rows that does not stand out of its noise, and nothing else was counted

The first two may be right as they are: a score of 100 is often reached. So a remark says what it saw, and what to do if
it was not meant. A number's lower bound of 0, and the ends of a day, are where values pile up anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Time, whole_range
from spinney.release.card import Card

Floats = NDArray[np.float64]

# A pile at a bound is worth a remark from this share of the rows, if it is so many times as high as what is next to it.
_LEAST_PILE = 0.01
_TIMES_AS_HIGH = 3.0
# It lies within this part of the column's length, or is one value of more than a few.
_AT_THE_BOUND = 1e-3
_FEW_VALUES = 32
# A guess of the number of rows that is off by more than this factor is worth a remark.
_FAR_OFF = 2
# One range is worth a remark from this share of the rows.
_MOST_IN_ONE = 0.25


def of_assumed_rows(card: Card, noisy_total: Callable[[], int]) -> Iterator[str]:
    """A remark where automatic values followed from a number of rows that the released counts contradict."""
    assumed = card.assumed_rows
    if assumed is None or card.is_empty or card.plan.get("structure") == "uniform":  # of which nothing was counted
        return
    total = noisy_total()
    leaves_rows_out = "bins" in card.released  # those below the threshold, so a low total contradicts nothing
    if total > assumed * _FAR_OFF or (total < assumed / _FAR_OFF and not leaves_rows_out):
        yield (
            f"assumed_rows={assumed} was given, and the released counts add up to about {total:,} rows. Automatic "
            "values followed from the number that was given; leave assumed_rows out to have rows counted with noise, "
            "or give a number that is nearer"
        )


def of_counted_rows(card: Card, noisy_total: Callable[[], int]) -> Iterator[str]:
    """A remark where nothing but rows was counted, and their noisy count does not stand out of its noise."""
    count = card.row_count
    if count is None or count.stands_out or card.plan.get("structure") != "uniform":
        return
    yield (
        f"the noisy count of rows, {count.noisy:,}, does not stand out of its noise, of standard deviation "
        f"{count.noise_std:,.0f}, so it says nothing of how many rows there are. A sample has {noisy_total():,} rows "
        "unless another number is asked for; raise epsilon, or give assumed_rows"
    )


class Ranges(NamedTuple):
    """Where the rows of a column lie, as a release says it: ranges of positions, and how many rows are in each."""

    low: Floats
    length: Floats  # 0 of a single place
    weights: Floats


def of_piles(name: str, column: Bounded, ranges: Ranges) -> Iterator[str]:
    """A remark for each bound at which rows pile up."""
    first, last = ends_of(column)
    reach, total = last - first, float(ranges.weights.sum())
    if total <= 0 or reach <= 0 or (column.is_whole and reach <= _FEW_VALUES) or isinstance(column, Time):
        return
    near = max(reach * _AT_THE_BOUND, float(column.step) if column.is_whole else 0.0)
    ends = ranges.low + ranges.length
    for is_upper in (False, True):
        if not is_upper and column.compared_as == "numbers" and column.physical(column.low) == 0:
            continue
        is_there = ranges.low >= last - near if is_upper else ends <= first + near
        share = float(ranges.weights[is_there].sum()) / total
        inner = (last - 11 * near, last - near) if is_upper else (first + near, first + 11 * near)
        around = _share_within(ranges, *inner, without=is_there) / total / 10
        if share >= max(_LEAST_PILE, _TIMES_AS_HIGH * around):
            bound, at, more = ("upper", column.high, "larger") if is_upper else ("lower", column.low, "smaller")
            change = f"raise high={at}" if is_upper else f"lower low={at}"
            yield (
                f"column {name!r}: {share:.1%} of the rows lie at its {bound} bound. Values beyond a bound are moved "
                f"to it; if there may be {more} ones, {change}. If {at} is a code, such as that of a missing value, "
                "make it null and declare the column nullable"
            )


def of_one_range(name: str, column: Bounded, ranges: Ranges, remedy: str) -> Iterator[str]:
    """A remark where one range of several values holds a large share of the rows."""
    total = float(ranges.weights.sum())
    several = ranges.length > (column.step if column.is_whole else 0)
    if total <= 0 or not several.any():
        return
    place = int(np.argmax(np.where(several, ranges.weights, -1.0)))
    share = float(ranges.weights[place]) / total
    if share >= _MOST_IN_ONE:
        yield in_one_range(name, column, float(ranges.low[place]), float(ranges.length[place]), share, remedy)


def in_one_range(name: str, column: Bounded, low: float, length: float, share: float, remedy: str) -> str:
    """The remark that so many rows lie in one range of positions."""
    first, last = column.leaf_ends(np.array([low]), np.array([length]))[0]
    return (
        f"column {name!r}: {share:.0%} of the rows lie in one range, {_short(first)} to {_short(last)}, and the "
        f"release hardly tells where in it; {remedy}"
    )


def ends_of(column: Bounded) -> tuple[float, float]:
    """The first and the last position of a column; whole numbers count from the first."""
    if not column.is_whole:
        return float(column.low), float(column.high)
    low, high = whole_range(column)
    return 0.0, float(high - low + 1)


def _share_within(ranges: Ranges, low: float, high: float, *, without: NDArray[np.bool_]) -> float:
    """How many rows lie in low..high, ranges being even inside, those left out that lie at the bound."""
    start, stop = np.maximum(ranges.low, low), np.minimum(ranges.low + ranges.length, high)
    inside = np.where(
        ranges.length > 0,
        np.clip(stop - start, 0, None) / np.where(ranges.length > 0, ranges.length, 1),
        (ranges.low >= low) & (ranges.low < high),
    )
    return float((inside * ranges.weights)[~without].sum())


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
