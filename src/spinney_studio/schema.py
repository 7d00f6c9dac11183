"""The schema of a draft as a form and as text, and the look at the table that says whether it fits.

The text of the schema file is what counts; the form shows it and changes it. Faults come from the library and
are placed beside the fields that they are about. A look at the table spends nothing; its findings are FOR THE
HOLDER ONLY.

    schema form    rows of fields from a schema, and a schema from the fields
    faults         where a fault of the library is shown
    values         what a field holds, as TOML has it
    schema pages   the form, the text, downloads, and looks at the table
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
import tomli_w
from starlette.responses import Response

from spinney.columns.reading import type_name
from spinney.errors import SchemaError
from spinney.schema.persons import names_persons, suggested_keys, suggested_orders
from spinney.schema.plain import parse_toml
from spinney.synthesizers.check import Finding
from spinney.text import clipped
from spinney_studio.pages import Call, Pages, revision_of, told_until
from spinney_studio.workspace import OutdatedError, PageError, guessed_from_values, read_draft

# ---------------------------------------------------------------------------------------------------------- schema form
# A schema as a form: a row of fields for each column, and who the rows belong to.
#
# The text of the schema file is what counts; the form shows it and changes it. What the form has no field for (rules,
# places, hierarchies, time zones) stays as the text has it. Fields hold what was typed: the library reads it, and its
# faults are shown beside the fields that they are about.


KINDS = (
    ("real", "Number with decimals"),
    ("integer", "Whole number"),
    ("category", "Category: one of a list"),
    ("boolean", "Yes or no"),
    ("date", "Date"),
    ("datetime", "Date and time"),
    ("time", "Time of day"),
    ("identifier", "Identifier: never read"),
    ("ignore", "Leave the column out"),
)
BOUNDED = ("real", "integer", "date", "datetime", "time")
_OURS = ("type", "low", "high", "bounds", "values", "other", "nullable", "multiple_of")
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9_]*)")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
EXAMPLES = {
    "real": ("0", "100"),
    "integer": ("0", "120"),
    "date": ("1900-01-01", "2099-12-31"),
    "datetime": ("1900-01-01T00:00:00", "2099-12-31T23:59:59"),
    "time": ("00:00", "23:59"),
}


def stated_entries(text: str) -> dict[str, Any] | None:
    """The tables of a schema file; None where the text is no TOML, so that only a person can mend it."""
    try:
        found = parse_toml(text)
    except SchemaError:
        return None
    return found if isinstance(found.get("columns"), dict) else None


def column_rows(text: str, fields: Sequence[Sequence[str]]) -> list[dict[str, Any]] | None:
    """What the form shows of each column: those of the table first, then those that only the schema has."""
    entries = stated_entries(text)
    if entries is None:
        return None
    columns = entries["columns"]
    names = [name for name, _type in fields]
    told = {name: kind for name, kind in fields}  # noqa: C416  # pairs are lists here
    return [
        _row(name, columns.get(name), told.get(name)) for name in [*names, *(one for one in columns if one not in told)]
    ]


def _row(name: str, entry: Any, told: str | None) -> dict[str, Any]:
    entry = entry if isinstance(entry, Mapping) else {}
    kind = str(entry.get("type", ""))
    values = entry.get("values")
    is_listed = isinstance(values, list)
    return {
        "name": name,
        "told": told,
        "type": kind,
        "low": _text(entry.get("low")),
        "high": _text(entry.get("high")),
        "bounds": "private" if entry.get("bounds") == "private" else "stated",
        "values": "\n".join(_text(value) for value in values) if is_listed else "",
        "found": "private" if values == "private" else "listed",
        "other": _text(entry.get("other")),
        "nullable": entry.get("nullable") is True,
        "step": _text(entry.get("multiple_of")),
        "more": {key: value for key, value in entry.items() if key not in _OURS},
    }


def person_row(text: str) -> dict[str, str]:
    """What the form shows of whose rows they are."""
    entries = stated_entries(text) or {}
    entry = entries.get("person")
    entry = entry if isinstance(entry, Mapping) else {}
    return {name: _text(entry.get(name)) for name in ("column", "most_rows", "order")}


def suggestions(fields: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """Columns that by their names say whose row it is, and those by which rows might be sorted."""
    keys = [name for name, kind in fields if kind in ("string", "large_string") or kind.startswith(("int", "uint"))]
    dated = [name for name, kind in fields if kind.startswith(("date", "timestamp"))]
    numbers = [name for name, kind in fields if kind.startswith(("int", "uint", "double", "float"))]
    return {"keys": list(filter(names_persons, suggested_keys(keys))), "orders": [*dated, *suggested_orders(numbers)]}


def text_from_form(text: str, given: Mapping[str, str], fields: Sequence[Sequence[str]]) -> str:
    """The schema file that a form states, with what the form has no field for taken from the file as it was."""
    entries = stated_entries(text) or {"columns": {}}
    told = {name: kind for name, kind in fields}  # noqa: C416  # pairs are lists here
    columns = {}
    number = 0
    while f"c{number}.name" in given:
        row = {key: given.get(f"c{number}.{key}", "").strip() for key in ("type", "low", "high", "bounds", "values")}
        row |= {key: given.get(f"c{number}.{key}", "").strip() for key in ("found", "other", "nullable", "step")}
        name = given[f"c{number}.name"]
        columns[name] = _entry(row, entries["columns"].get(name), told.get(name, ""))
        number += 1
    kept = {key: value for key, value in entries.items() if key not in ("columns", "person")}
    person = _person(given, entries.get("person"))
    return tomli_w.dumps({"columns": columns, **kept, **({"person": person} if person else {})})


def _entry(row: Mapping[str, str], before: Any, told: str) -> dict[str, Any]:
    before = before if isinstance(before, Mapping) else {}
    kind = row["type"]
    entry: dict[str, Any] = {"type": kind} if kind else {}
    if kind in BOUNDED:
        if row["bounds"] == "private" and kind != "time":
            entry["bounds"] = "private"
        else:
            entry |= {end: _value(row[end], kind) for end in ("low", "high") if row[end]}
        if row["step"]:
            entry["multiple_of"] = _value(row["step"], "real")
    if kind == "category":
        if row["found"] == "private":
            entry["values"] = "private"
        elif row["values"] or "values_from" not in before:
            listed = _listed(row["values"], told)
            entry |= {"values": listed} if listed else {}
        entry |= {"other": _listed(row["other"], told)[0]} if row["other"] else {}
    if row["nullable"] and kind != "ignore":
        entry["nullable"] = True
    if before.get("type") == kind:
        entry |= {key: value for key, value in before.items() if key not in _OURS and key not in entry}
    return entry


def _person(given: Mapping[str, str], before: Any) -> dict[str, Any] | None:
    column = given.get("person.column", "").strip()
    if not column:
        return None
    kept = dict(before) if isinstance(before, Mapping) else {}
    for name in ("column", "most_rows", "order"):
        kept.pop(name, None)
    most, order = given.get("person.most_rows", "").strip(), given.get("person.order", "").strip()
    return {
        "column": column,
        **({"most_rows": _value(most, "integer")} if most else {}),
        **({"order": order} if order else {}),
        **kept,
    }


def with_private_blanks(text: str) -> str:
    """The schema with everything that was left blank to be estimated or found privately."""
    entries = stated_entries(text)
    if entries is None:
        return text
    for entry in entries["columns"].values():
        kind = entry.get("type")
        if kind in BOUNDED and kind != "time" and not {"low", "high", "bounds"} & set(entry):
            entry["bounds"] = "private"
        if kind == "category" and not {"values", "values_from"} & set(entry):
            entry["values"] = "private"
            entry.setdefault("other", "other")
    return tomli_w.dumps(entries)


def plain_fields(found: pa.Schema) -> list[list[str]]:
    """Names and types as drafts keep them."""
    return [[field.name, type_name(field.type)] for field in found]


# --------------------------------------------------------------------------------------------------------------- faults
# By column and field, where each fault of the library belongs.


def placed_faults(faults: Sequence[Any], rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[str]]]:
    """By the place of a column in the form, and by the field, what is wrong there."""
    placed: dict[str, dict[str, list[str]]] = {}
    for fault in faults:
        number = column_of(fault, rows)
        if number is not None:
            placed.setdefault(str(number), {}).setdefault(_field_of(str(fault), rows[number]), []).append(
                short_fault(str(fault), rows[number]["name"])
            )
    return placed


def column_of(fault: Any, rows: Sequence[Mapping[str, Any]]) -> int | None:
    """The place of the column that a fault is about; None where it is about none."""
    name = getattr(fault, "column", None)
    message = str(fault)
    for number, row in enumerate(rows):
        if row["name"] == name or (
            name is None and re.match(rf"column {re.escape(repr(row['name']))}(?![\w'])", message)
        ):
            return number
    return None


def fault_target(fault: Any, rows: Sequence[Mapping[str, Any]]) -> str:
    """The id of the field that a fault is about; empty where it is about none."""
    number = column_of(fault, rows)
    if number is None:
        return "person-column" if "[person]" in str(fault) or "person" in str(fault).split(":")[0] else ""
    return f"c{number}-{_field_of(str(fault), rows[number])}"


def _field_of(message: str, row: Mapping[str, Any]) -> str:
    """The field of a column that a message is about: that of the first word of it that names one."""
    kind, said = row["type"], short_fault(message, row["name"])
    if kind in BOUNDED and "multiple_of" in said.lower():
        return "step"
    if kind in BOUNDED and row["bounds"] == "stated":
        found = re.search(r"\b(low|high|bounds)\b", said, re.IGNORECASE)
        return "type" if found is None else "high" if found[1].lower() == "high" else "low"
    if kind == "category" and row["found"] == "listed" and re.search(r"\bvalues\b", said, re.IGNORECASE):
        return "values"
    return "type"


def short_fault(message: str, name: str) -> str:
    """What is said of a column where it stands beside it: without its name, and without the name of its class."""
    said = re.sub(r"^[A-Z][a-z]+: ", "", message.removeprefix(f"column {name!r}").lstrip(": "))
    return said[:1].upper() + said[1:]


# --------------------------------------------------------------------------------------------------------------- values
# Text of a field into values of a schema, and back.


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return "true" if value is True else "false" if value is False else str(value)


def _value(text: str, kind: str) -> Any:
    """What was typed, as TOML would have it; what is none of it stays a text, and the library says what is wrong."""
    if kind in ("date", "datetime", "time"):
        readers = {"date": date.fromisoformat, "datetime": datetime.fromisoformat, "time": time.fromisoformat}
        with suppress(ValueError):
            return readers[kind](text)
        return text
    if _WHOLE.fullmatch(text) and len(text) < 40:
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) and len(text) < 40 else text


def _listed(text: str, told: str) -> list[Any]:
    """Values, one a line: numbers where the table holds whole numbers and all of them are, and texts otherwise."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if told.startswith(("int", "uint")) and all(_WHOLE.fullmatch(line) for line in lines):
        return [int(line) for line in lines]
    return lines


# --------------------------------------------------------------------------------------------------------- schema pages
# The schema as a form and as text, and the look at the table that says whether it fits.


schema_pages = Pages()

_LONGEST_SCHEMA = 2 << 20
# Seconds that a small table may take to be looked at before the page shows that it is being looked at.
_AT_ONCE = 2.5
_SCHEMA_ENDING = ".toml"


@schema_pages.get("/drafts/{key}/schema")
def show(call: Call) -> Response:
    """The form, with what is wrong beside its fields."""
    return _shown(call, call.workspace.draft(call.path["key"]))


def _shown(call: Call, draft: dict[str, Any], *, status: int = 200, outdated: str = "") -> Response:
    if draft.get("job"):
        return call.redirect(f"/jobs/{draft['key']}")
    rows = column_rows(draft["schema"], draft["fields"])
    if rows is None:
        return _text_shown(call, draft)
    reading = read_draft(call.workspace, draft)
    found = {"state": "none"} if reading.faults else call.studio.jobs.look("check", draft)
    faults, warnings = _findings(found)
    every: list[Any] = [*reading.faults, *faults]
    # A template that nobody has touched is full of blanks, which are no faults before somebody says that it is filled.
    is_fresh = draft["revision"] == 1 and not draft.get("is_demo")
    return call.page(
        "schema.html",
        title=f"Schema of {draft['name']}",
        status=status,
        draft=draft,
        rows=rows,
        kinds=KINDS,
        examples=EXAMPLES,
        person=person_row(draft["schema"]),
        suggested=suggestions(draft["fields"]),
        is_guessed=guessed_from_values(draft["table"]),
        is_fresh=is_fresh,
        n_blank=len(every) if is_fresh else 0,
        placed={} if is_fresh else placed_faults(every, rows),
        warned=placed_faults(warnings, rows),
        faults=[] if is_fresh else [{"message": clipped(str(one)), "at": fault_target(one, rows)} for one in every],
        warnings=[{"message": str(one), "at": fault_target(one, rows)} for one in warnings],
        check=found,
        is_whole=not every,
        outdated=outdated,
    )


def _findings(found: dict[str, Any]) -> tuple[list[Finding], list[Finding]]:
    """Faults and warnings of a look at the table, as the library gave them."""
    if found["state"] == "failed":
        return [Finding(found["error"])], []
    findings = found.get("found") or {"faults": [], "warnings": []}
    return tuple(  # type: ignore[return-value]  # two of them
        [Finding(one["message"], one["column"], one["rows"]) for one in findings[kind]]
        for kind in ("faults", "warnings")
    )


@schema_pages.post("/drafts/{key}/schema")
def save(call: Call) -> Response:
    """Keep what the form says; look at the table where that was asked for and the schema can be read."""
    draft = call.workspace.draft(call.path["key"])
    fields = {name: value for name, value in call.form.items() if isinstance(value, str)}
    text = text_from_form(draft["schema"], fields, draft["fields"])
    if call.text("do") == "private":
        text = with_private_blanks(text)
    return _kept(call, draft, text, looks=call.text("do") != "save")


@schema_pages.get("/drafts/{key}/schema/text")
def show_text(call: Call) -> Response:
    """The schema file, to be edited by hand."""
    return _text_shown(call, call.workspace.draft(call.path["key"]))


def _text_shown(call: Call, draft: dict[str, Any]) -> Response:
    if draft.get("job"):
        return call.redirect(f"/jobs/{draft['key']}")
    root = call.workspace.root
    return call.page(
        "schema_text.html",
        title=f"Schema of {draft['name']} as text",
        draft=draft,
        faults=[{"message": fault, "at": "schema"} for fault in read_draft(call.workspace, draft).faults],
        files=[root.relative(path) for path in root.find(_SCHEMA_ENDING)],
        n_lines=min(60, draft["schema"].count("\n") + 4),
    )


@schema_pages.post("/drafts/{key}/schema/text")
def save_text(call: Call) -> Response:
    """Keep a schema file that was typed, or one of the opened folder."""
    draft = call.workspace.draft(call.path["key"])
    chosen = call.text("file")
    if call.text("do") == "file":
        if not chosen:
            raise PageError("Choose a schema file, or edit the text.")
        if not chosen.lower().endswith(_SCHEMA_ENDING):
            raise PageError(f"A schema is a file that ends in {_SCHEMA_ENDING}.")
        path = call.workspace.root.inside(chosen)
        return _kept(call, draft, _read_text(path), looks=False, folder=str(path.parent))
    text = call.form.get("schema", "")
    assert isinstance(text, str)
    if len(text) > _LONGEST_SCHEMA:
        raise PageError("This is too long for a schema.")
    return _kept(call, draft, text.replace("\r\n", "\n"), looks=call.text("do") != "save")


def _read_text(path: Path) -> str:
    from spinney.schema.plain import read_schema_text

    return read_schema_text(path)


@schema_pages.get("/drafts/{key}/schema.toml")
def download(call: Call) -> Response:
    """The schema file."""
    draft = call.workspace.draft(call.path["key"])
    return Response(
        draft["schema"],
        media_type="application/toml",
        headers={"content-disposition": 'attachment; filename="schema.toml"'},
    )


@schema_pages.post("/drafts/{key}/check")
def look(call: Call) -> Response:
    """Look at the table again."""
    draft = call.workspace.draft(call.path["key"])
    _look(call, draft)
    return call.redirect(f"/drafts/{draft['key']}/schema")


@schema_pages.get("/drafts/{key}/check/events")
async def events(call: Call) -> Response:
    """How far the look at the table is, as it goes on."""
    draft = call.workspace.draft(call.path["key"])
    return told_until(call.request, lambda: call.studio.jobs.look("check", draft), {"running"})


def _kept(call: Call, draft: dict[str, Any], text: str, *, looks: bool, folder: str | None = None) -> Response:
    revision = revision_of(call)
    try:
        changed = call.workspace.change_draft(
            draft["key"], revision, schema=text, folder=draft["folder"] if folder is None else folder
        )
    except OutdatedError as err:
        return _shown(call, call.workspace.draft(draft["key"]), status=err.status, outdated=str(err))
    if looks and not read_draft(call.workspace, changed).faults:
        _look(call, changed)
    return call.redirect(f"/drafts/{draft['key']}/schema")


def _look(call: Call, draft: dict[str, Any]) -> None:
    """Begin to look at the table; a small one is looked at before the page is shown."""
    call.studio.jobs.start_look("check", draft)
    end = monotonic() + _AT_ONCE
    while monotonic() < end and call.studio.jobs.look("check", draft)["state"] == "running":
        sleep(0.05)
