"""All faults of a schema file at once, and what is left of the schema without them.

`Schema.from_file` stops at the first fault, which is right for a program. Whoever fills in a template of thirty columns
wants to hear of all of them. So every column, rule and place, and whose rows they are, is read by itself, by the code
that reads them anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spinney.columns import Column
from spinney.errors import SchemaError
from spinney.schema.entries import column_from_dict
from spinney.schema.persons import key_in, options_from_dict
from spinney.schema.places import Place, check_places, place_from_dict, with_shapes
from spinney.schema.plain import check_plain, parse_toml, read_schema_text
from spinney.schema.rules import Rule, check_rules, rule_from_dict
from spinney.schema.table import ENTRIES, Schema, no_entry, schema_from_plain


@dataclass(frozen=True, slots=True)
class SchemaReading:
    """A schema file as far as it can be read."""

    schema: Schema | None  # the columns and rules that are right, if there is a column
    faults: tuple[str, ...]
    unread: frozenset[str] = frozenset()  # columns that the file names but describes wrongly
    states_person: bool = False  # whether there is a [person] table, even one that is not right


def read_schema(path: str | Path) -> SchemaReading:
    """The schema in a TOML file, with all that is wrong with it."""
    try:
        text = read_schema_text(path)
    except SchemaError as err:
        return SchemaReading(None, (str(err),))
    return read_stated(text, Path(path).parent)


def read_stated(text: str, folder: Path) -> SchemaReading:
    """The schema in the text of a schema file, with all that is wrong with it; files it names are in the folder."""
    try:
        described = parse_toml(text)
        return SchemaReading(schema_from_plain(with_shapes(described, folder), folder=folder), ())
    except SchemaError as err:
        first = str(err)
    try:
        described = parse_toml(text)
        check_plain(described)
    except SchemaError:
        return SchemaReading(None, (first,))  # no TOML, so there is nothing to take apart
    if not isinstance(described.get("columns"), Mapping) or not described["columns"]:
        return SchemaReading(None, (first,))
    faults: list[str] = []
    columns = _read_columns(described, folder, faults)
    unread = frozenset(described["columns"]) - set(columns)
    rules = _read_rules(described, columns, unread, faults)
    places = _read_places(described, columns, rules, unread, faults, folder)
    person = _read_person(described, columns, rules, unread, faults)
    schema = Schema(columns, rules=rules, places=places, **person) if columns else None
    return SchemaReading(schema, tuple(faults or [first]), unread, "person" in described)


def _read_columns(described: Mapping[str, Any], folder: Path, faults: list[str]) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    key = key_in(described)
    faults += [no_entry(entry) for entry in sorted(set(described) - set(ENTRIES))]
    for name, entry in described["columns"].items():
        try:
            columns |= Schema({name: column_from_dict(name, entry, folder=folder, is_key=name == key)})
        except SchemaError as err:
            faults.append(str(err))
    return columns


def _read_rules(
    described: Mapping[str, Any], columns: dict[str, Column], unread: frozenset[str], faults: list[str]
) -> list[Rule]:
    """The rules, if they are all right together. Those about columns that could not be read are passed over."""
    entries = described.get("rules", [])
    if not isinstance(entries, list):
        faults.append("rules is not a list of tables; write each rule as a table under [[rules]]")
        return []
    rules: list[Rule] = []
    for place, entry in enumerate(entries, start=1):
        try:
            rule = rule_from_dict(place, entry)
            if unread.isdisjoint(rule.columns):
                check_rules([rule], columns)
                rules.append(rule)
        except SchemaError as err:
            said = str(err)
            faults.append(said if said.startswith("rule ") else f"rule {place}: {said}")
    try:
        check_rules(rules, columns)
    except SchemaError as err:
        faults.append(str(err))
        return []
    return rules


def _read_places(
    described: Mapping[str, Any],
    columns: dict[str, Column],
    rules: list[Rule],
    unread: frozenset[str],
    faults: list[str],
    folder: Path,
) -> list[Place]:
    """The places that are right. Those of columns that could not be read are passed over."""
    entries = described.get("places", [])
    if not isinstance(entries, list):
        faults.append("places is not a list of tables; write each place as a table under [[places]]")
        return []
    places: list[Place] = []
    for number, entry in enumerate(entries, start=1):
        try:
            (whole,) = with_shapes({"places": [entry]}, folder)["places"]
            place = place_from_dict(number, whole)
            if unread.isdisjoint(place.columns):
                check_places([*places, place], columns, rules)
                places.append(place)
        except SchemaError as err:
            said = str(err).removeprefix("place 1: ")
            faults.append(said if said.startswith("place ") else f"place {number}: {said}")
    return places


def _read_person(
    described: Mapping[str, Any],
    columns: dict[str, Column],
    rules: list[Rule],
    unread: frozenset[str],
    faults: list[str],
) -> dict[str, Any]:
    """The options of a schema that say whose rows they are, if they are right. Unread columns are passed over."""
    if "person" not in described:
        return {}
    try:
        options = options_from_dict(described["person"])
        named = [options["person"], options.get("order"), options.get("role"), *options.get("differences", ())]
        if not columns or not unread.isdisjoint(named):
            return {}
        Schema(columns, rules=rules, **options)
    except SchemaError as err:
        faults.append(str(err))
        return {}
    except TypeError:  # of a list where a name should be
        faults.append("[person] takes names of columns: column, order and role are strings, differences is a list")
        return {}
    return options
