"""Examples of every kind of column: some values, and what they are as numbers, texts and other objects.

A new kind is added to `spinney.columns.KINDS` and to `EXAMPLES` here. `tests/unit/columns/test_every_kind.py` then
states its columns and reads its values from everything that may hold them; `test_every_kind_drawn.py` counts them,
writes them back, asks for them and draws them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spinney as sp
from spinney.columns import KINDS, Column

BERLIN, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata")


@dataclass(frozen=True)
class Example:
    """A column, some of its values in ascending physical order, and what they are everywhere else."""

    column: Column
    values: list[Any]
    physical: list[Any]
    texts: list[str]  # as a CSV or a command line may spell them
    wrong: list[Any]  # objects and strings that are none
    others: list[Any] = ()  # other objects that mean the first value


EXAMPLES: dict[type[Column], list[Example]] = {
    sp.Real: [
        Example(
            sp.Real(-2, 2), [-2.0, 0.5, 1.25], [-2.0, 0.5, 1.25], ["-2.0", "0.5", "1.25"], ["abc"], [-2, Decimal(-2)]
        ),
        Example(sp.Real(0, 1, multiple_of=0.1), [0.0, 0.3, 1.0], [0.0, 0.3, 1.0], ["0", "0.3", "1"], ["1,2"], [False]),
    ],
    sp.Integer: [
        Example(
            sp.Integer(-5, 20), [-5, 0, 20], [-5, 0, 20], ["-5", "0", "20"], ["1.5", 1.5, "x"], [-5.0, Decimal(-5)]
        ),
        Example(sp.Integer(0, 100, multiple_of=50), [0, 50, 100], [0, 50, 100], ["0", "50", "1e2"], [0.5], [0.0]),
    ],
    sp.Boolean: [
        Example(sp.Boolean(), [False, True], [0, 1], ["false", "true"], ["perhaps", 2], [0, 0.0, np.bool_(False)]),
    ],
    sp.Date: [
        Example(
            sp.Date("1960-01-01", "1979-12-31"),
            [date(1960, 1, 1), date(1970, 1, 1), date(1979, 12, 31)],
            [-3653, 0, 3651],
            ["1960-01-01", "1970-01-01", "1979-12-31"],
            ["1960-13-01", 3, datetime(1970, 1, 1, tzinfo=UTC)],
            [datetime(1960, 1, 1, 23), np.datetime64("1960-01-01T12")],
        ),
        Example(
            sp.Date("2020-01-06", "2020-12-31", multiple_of=7),
            [date(2020, 1, 6), date(2020, 1, 13), date(2020, 12, 28)],
            [18267, 18274, 18624],
            ["2020-01-06", "2020-01-13", "2020-12-28"],
            ["06/01/2020"],
        ),
    ],
    sp.Datetime: [
        Example(
            sp.Datetime("1960-01-01", "1979-12-31"),
            [datetime(1960, 1, 1), datetime(1970, 1, 1, 0, 0, 1, 5)],
            [-3653 * 86_400_000_000, 1_000_005],
            ["1960-01-01T00:00:00", "1970-01-01 00:00:01.000005"],
            ["yesterday", date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)],
            [pd.Timestamp("1960-01-01"), np.datetime64("1960-01-01")],
        ),
        Example(
            sp.Datetime("1960-01-01", "1979-12-31", timezone="Europe/Berlin"),
            [datetime(1970, 1, 1, 1, tzinfo=BERLIN), datetime(1970, 1, 1, 2, tzinfo=BERLIN)],
            [0, 3_600_000_000],
            ["1970-01-01T01:00:00+01:00", "1970-01-01T01:00:00Z"],
            ["1970-01-01T01:00:00", datetime(1970, 1, 1)],
            [datetime(1970, 1, 1, tzinfo=UTC)],
        ),
        Example(
            sp.Datetime("1969-06-01", "1970-12-31", timezone="Asia/Kolkata", multiple_of=3600),
            [datetime(1970, 1, 1, tzinfo=KOLKATA), datetime(1970, 1, 1, 6, tzinfo=KOLKATA)],
            [-19_800_000_000, 1_800_000_000],
            ["1970-01-01T00:00:00+05:30", "1970-01-01T00:30:00Z"],
            ["1970-01-01"],
        ),
    ],
    sp.Time: [
        Example(
            sp.Time("08:00", "18:00"),
            [time(8), time(8, 0, 1), time(17, 59, 59, 999999)],
            [28_800_000_000, 28_801_000_000, 64_799_999_999],
            ["08:00", "08:00:01", "17:59:59.999999"],
            ["8 o'clock", "25:00", "08:00+01:00", "08:00.5", 8, datetime(1970, 1, 1, 8), time(8, tzinfo=UTC)],
            [time(8, fold=1)],
        ),
        Example(
            sp.Time(multiple_of=900),
            [time(0), time(0, 15), time(23, 45)],
            [0, 900_000_000, 85_500_000_000],
            ["00:00", " 00:15:00 ", "23:45:00.0"],
            ["24:00", "0015"],
        ),
    ],
    sp.Category: [
        Example(sp.Category(["low", "", "c d"]), ["low", "", "c d"], [0, 1, 2], ["low", "", "c d"], ["lo", 5], []),
        Example(sp.Category([7, 1, 5]), [7, 1, 5], [0, 1, 2], ["7", "1", "5"], ["2", 2, "x"], [7.0, Decimal(7)]),
    ],
    sp.Identifier: [
        Example(sp.Identifier(), [1, 2], [1, 2], ["1", "2"], []),
        Example(sp.Identifier(prefix="C-"), ["C-000001"], [1], ["C-000001"], []),
    ],
    sp.Ignore: [Example(sp.Ignore(), [], [], [], [])],
}
ALL = [example for examples in EXAMPLES.values() for example in examples]
READ = [example for example in ALL if example.column.is_read]


def named(example: Example) -> str:
    return repr(example.column)


every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type_name)
every_column = pytest.mark.parametrize("example", ALL, ids=named)
every_read_column = pytest.mark.parametrize("example", READ, ids=named)
with_nulls = pytest.mark.parametrize("nullable", [False, True])


def check_physical(found: Any, expected: list[Any], *, n_nulls: int = 0) -> None:
    """Numbers as expected, with nulls at the end."""
    n_values = len(expected)
    assert found.values[:n_values].tolist() == expected
    is_null = ~np.isfinite(found.values) if found.is_null is None else found.is_null
    assert is_null.tolist() == [False] * n_values + [True] * n_nulls


def arrow_of(example: Example, values: list[Any]) -> pa.Array:
    return pa.array(values, example.column._arrow_type)
