"""What is wrong with a value is told by line, column, kind of spelling and remedy, and never by the value."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import spinney as sp
from spinney.errors import InputError
from spinney.tables import csv_reader as csv_lines
from spinney.tables.csv import CSV

COLUMNS = {
    "r": sp.Real(0, 9, nullable=True),
    "i": sp.Integer(0, 9),
    "d": sp.Date("2000-01-01", "2030-01-01"),
    "m": sp.Datetime("2000-01-01", "2030-01-01"),
    "z": sp.Datetime("2000-01-01", "2030-01-01", timezone="UTC"),
    "b": sp.Boolean(),
    "c": sp.Category(["Ann", "Bob"]),
    "k": sp.Category([1, 2]),
}
GOOD = dict(
    zip(COLUMNS, ["1.5", "3", "2020-01-31", "2020-01-31T10:00", "2020-01-31T10:00Z", "1", "Ann", "2.0"], strict=True)
)
DAY_FIRST = "%d/%m/%Y"

BAD = [
    ("r", "1,593", "has a comma; remove thousands separators, and for decimal commas write decimal points"),
    ("r", "7.593,5", "has a comma"),
    ("r", "7,593,111", "has a thousands separator"),
    ("r", "7,593.5", "has a thousands separator"),
    ("r", "7'593.5", "has a thousands separator"),
    ("r", "7 593", "has a thousands separator"),
    ("r", "7\u202f593", "has a thousands separator"),
    ("r", "7593%", "has a percent sign"),
    ("r", "$7593", "has a currency sign"),
    ("r", "7593 €", "has a currency sign"),
    ("r", "EUR 7593", "has a currency sign"),
    ("r", "Zorro", "is not a number"),
    ("i", "7593%", "has a percent sign"),
    ("i", "75.93", "is not a whole number; use Real"),
    ("i", "7 593", "has a thousands separator"),
    ("i", "Zorro", "is not a number"),
    ("i", "", "holds a missing or non-finite value; declare it nullable"),
    ("d", "17/03/1993", "such as --date-format %d/%m/%Y"),
    ("d", "17.3.1993", "such as --date-format %d.%m.%Y"),
    ("d", "17-03-93", "such as --date-format %d-%m-%y"),
    ("d", "1993/03/17", "such as --date-format %Y/%m/%d"),
    ("d", "1993-02-30", "there is no such day"),
    ("d", "1993-03-17T10:00Z", "has a time zone, so its day is ambiguous"),
    ("m", "17/03/1993 17:17", "such as --date-format '%d/%m/%Y %H:%M'"),
    ("m", "1993-03-17T10:00+01:00", "has a time zone, and the schema states none"),
    ("z", "1993-03-17T10:00", "has no time zone, and the schema states one"),
    ("b", "Zorro", "is neither true nor false"),
    ("c", "Ann ", "has spaces before or after a value that the schema lists"),
    ("c", "\u00a0Ann", "has spaces before or after a value that the schema lists"),
    ("c", "aNN", "in upper and lower case only"),
    ("c", "Zorro", "is not in the schema's list of values"),
    ("c", "", "is empty or spells a missing value"),
    ("k", "7593", "is a number that the schema does not list"),
    ("k", "Zorro", "is not a number"),
]


def table(rows: list[dict[str, str]]) -> str:
    """A CSV with a blank line before every third row."""
    lines = [",".join(f'"{value}"' for value in row.values()) for row in rows]
    return (
        ",".join(COLUMNS) + "\n" + "".join("\n" * (number % 3 == 0) + line + "\n" for number, line in enumerate(lines))
    )


def line_of(row: int) -> int:
    """The line of a row in such a table."""
    return 2 + row + row // 3 + 1


@pytest.mark.parametrize("row", [0, 1, 700])
@pytest.mark.parametrize(("name", "value", "message"), BAD, ids=lambda part: str(part)[:20])
def test_a_bad_value_is_told_by_line_and_kind(tmp_path: Path, monkeypatch, name, value, message, row):
    """The first one of several, wherever blocks end; every engine that holds the table says the same."""
    monkeypatch.setattr(csv_lines, "BLOCK_BYTES", 1 << 12)
    rows = [dict(GOOD) for _ in range(row)] + [GOOD | {name: value}, dict(GOOD), GOOD | {name: value}]
    (tmp_path / "t.csv").write_text(table(rows), encoding="utf-8")
    for engine in (None, "memory") if row < 700 else (None,):
        ledger = sp.Ledger(limit=5, delta="1e-5")
        with pytest.raises(InputError) as caught:
            sp.ForestSynthesizer(1).fit(tmp_path / "t.csv", sp.Schema(COLUMNS), ledger=ledger, engine=engine)
        text = str(caught.value)
        assert f"t.csv': line {line_of(row)}, column '{name}'" in text
        assert message in text
        assert not value.strip() or value.strip() not in re.sub("Ann|--date-format|date_format", "", text)
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None
        assert ledger.spent == 0


def test_the_first_bad_column_of_a_line_is_told(tmp_path: Path):
    (tmp_path / "t.csv").write_text(table([GOOD | {"i": "x", "d": "y"}]))
    with pytest.raises(InputError, match="line 3, column 'i'"):
        sp.ForestSynthesizer(1).fit(tmp_path / "t.csv", sp.Schema(COLUMNS))


@pytest.mark.parametrize(
    ("csv", "text", "message"),
    [
        ({"delimiter": ";"}, "x\n1,5\n", "for decimal commas state --decimal ,"),
        ({"delimiter": ";", "decimal": ","}, "x\n1.5\n", "has a point, and decimal=',' was stated"),
        ({"delimiter": ";", "decimal": ","}, "x\n1.234,5\n", "has a point, and decimal=',' was stated"),
    ],
)
def test_decimal_marks_are_told(tmp_path: Path, csv, text, message):
    for column in (sp.Real(0, 9), sp.Integer(0, 9)):
        (tmp_path / "t.csv").write_text(text)
        with pytest.raises(InputError, match=f"line 2, column 'x'.*{message}"):
            sp.KDTreeSynthesizer(1).fit(CSV(tmp_path / "t.csv", **csv), sp.Schema({"x": column}))


def test_dates_that_do_not_match_their_format_are_told(tmp_path: Path):
    (tmp_path / "t.csv").write_text("d\n31/01/2024\n2024-01-31\n")
    with pytest.raises(InputError, match=r"line 3, column 'd'.*does not match date_format='%d/%m/%Y'"):
        sp.KDTreeSynthesizer(1).fit(
            CSV(tmp_path / "t.csv", date_format=DAY_FIRST), sp.Schema({"d": sp.Date("2000-01-01", "2030-01-01")})
        )
