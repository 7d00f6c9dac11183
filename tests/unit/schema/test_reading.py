"""All faults of a schema file at once, and what is left of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import spinney as sp
from spinney.schema.template import read_schema

GOOD = """
[columns.age]
type = "integer"
low = 0
high = 120
"""
FAULTY = """
colour = 3

[columns.age]
type = "integer"
low = 0

[columns.kind]
type = "categories"

[columns.height]
type = "real"
low = 0
high = 3

[columns.born]
type = "date"
low = "2020-01-01"
high = "2019-01-01"

[columns.weight]
type = "real"
low = 0
high = 300
hihg = 4

[columns.rest]
type = "category"
values = []

[[rules]]
type = "at-most"
column = "height"

[[rules]]
type = "at-most"
column = "height"
other = "nothing"

[[rules]]
type = "at-most"
column = "height"
other = "age"

[[rules]]
type = "empty-when"
column = "height"
other = "height"
"""


@pytest.fixture
def read(tmp_path: Path):
    def read_text(text: str):
        path = tmp_path / "schema.toml"
        path.write_text(text)
        return read_schema(path)

    return read_text


def test_a_right_file_is_the_schema(read) -> None:
    reading = read(GOOD)
    assert reading.schema == sp.Schema.from_toml(GOOD)
    assert reading.faults == ()


def test_every_column_and_every_rule_is_told(read) -> None:
    """Five columns, three rules and an entry are wrong, each in its own way; the rest is kept."""
    reading = read(FAULTY)
    said = [
        "no entry 'colour'",
        "column 'age': Integer: high is missing",
        "column 'kind': type 'categories' is not one of",
        "column 'born': Date: low=2020-01-01 is not below high=2019-01-01",
        "column 'weight': 'hihg' is not an option",
        "column 'rest': Category: values is empty",
        "rule 1: other is missing",
        "rule 2: AtMost: column 'nothing' is not in the schema",
        "rule 4: EmptyWhen: 'height' is named twice",
    ]
    assert len(reading.faults) == len(said)
    for fault, phrase in zip(reading.faults, said, strict=True):
        assert phrase in fault
    assert list(reading.schema) == ["height"]
    assert reading.unread == {"age", "kind", "born", "weight", "rest"}


def test_rules_that_contradict_each_other_are_told(read) -> None:
    rule = '[[rules]]\ntype = "at-most"\ncolumn = "{}"\nother = "{}"\n'
    columns = GOOD + GOOD.replace("age", "older")
    reading = read(columns + rule.format("age", "older") + rule.format("older", "age"))
    assert len(reading.faults) == 1
    assert "circle" in reading.faults[0]
    assert reading.schema.rules == ()


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("[columns.x\n", "not valid TOML"),
        ("", "needs a table named columns"),
        ("columns = 3", "needs a table named columns"),
        ("[columns]", "no columns"),
        ("rules = 3\n" + GOOD, "rules is not a list"),
        ('[columns.""]\ntype = "boolean"', "column name ''"),
    ],
)
def test_files_without_a_schema_in_them(read, text: str, phrase: str) -> None:
    reading = read(text)
    assert len(reading.faults) == 1
    assert phrase in reading.faults[0]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert "cannot read the schema" in read_schema(tmp_path / "none.toml").faults[0]
