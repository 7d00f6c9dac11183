"""The schema as a form and as text, and the look at the table that says whether it fits."""

from __future__ import annotations

from pathlib import Path
from time import monotonic, sleep
from typing import Any

from starlette.responses import Response

from spinney.shown import clipped
from spinney.studio.errors import OutdatedError, PageError
from spinney.studio.pages import Call, Pages, revision_of
from spinney.studio.schema_form import (
    EXAMPLES,
    KINDS,
    column_rows,
    fault_target,
    person_row,
    placed_faults,
    suggestions,
    text_from_form,
    with_private_blanks,
)
from spinney.studio.stated import read_draft
from spinney.studio.streams import told_until
from spinney.studio.tables import guessed_from_values
from spinney.synthesizers.findings import Finding

pages = Pages()

_LONGEST_SCHEMA = 2 << 20
# Seconds that a small table may take to be looked at before the page shows that it is being looked at.
_AT_ONCE = 2.5
_SCHEMA_ENDING = ".toml"


@pages.get("/drafts/{key}/schema")
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


@pages.post("/drafts/{key}/schema")
def save(call: Call) -> Response:
    """Keep what the form says; look at the table where that was asked for and the schema can be read."""
    draft = call.workspace.draft(call.path["key"])
    fields = {name: value for name, value in call.form.items() if isinstance(value, str)}
    text = text_from_form(draft["schema"], fields, draft["fields"])
    if call.text("do") == "private":
        text = with_private_blanks(text)
    return _kept(call, draft, text, looks=call.text("do") != "save")


@pages.get("/drafts/{key}/schema/text")
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


@pages.post("/drafts/{key}/schema/text")
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


@pages.get("/drafts/{key}/schema.toml")
def download(call: Call) -> Response:
    """The schema file."""
    draft = call.workspace.draft(call.path["key"])
    return Response(
        draft["schema"],
        media_type="application/toml",
        headers={"content-disposition": 'attachment; filename="schema.toml"'},
    )


@pages.post("/drafts/{key}/check")
def look(call: Call) -> Response:
    """Look at the table again."""
    draft = call.workspace.draft(call.path["key"])
    _look(call, draft)
    return call.redirect(f"/drafts/{draft['key']}/schema")


@pages.get("/drafts/{key}/check/events")
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
