"""The way into the studio and to a draft: sessions, the first page, tables, uploads; and pages of jobs.

A draft begins from a table that was opened, sent, or made up. The token of an upload is checked before a byte
of its file is written. Nothing on these pages spends anything.

    entry pages   a link is exchanged for a session, once
    job pages     how far a release is, how it ended, whether it was charged
    upload        a form with one file, written to disk as it comes
    start pages   tables to choose from, drafts, and the made-up town
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from spinney.errors import FileError, SpinneyError
from spinney.machine import load_optional
from spinney.schema.template import schema_template
from spinney_studio.jobs import UNFINISHED, paid
from spinney_studio.pages import TOKEN, Call, Pages, check_token, told_until
from spinney_studio.schema import plain_fields
from spinney_studio.security import OPEN, UPLOAD, cookie_name
from spinney_studio.workspace import (
    CSV_FIELDS,
    DUCKDB_ENDINGS,
    TABLE_ENDINGS,
    LockedOutError,
    PageError,
    Workspace,
    described_table,
    folder_of,
    tidy_name,
    types,
)

# ---------------------------------------------------------------------------------------------------------- entry pages
# The way in: a link is exchanged for a session, once.


entry_pages = Pages()


@entry_pages.get(OPEN)
def enter(call: Call) -> Response:
    """Use up a link. The next page is named inside of this one, so that it is this studio that asks for it."""
    session = call.studio.doors.enter(call.query.get("key"))
    if session is None:
        raise LockedOutError(
            "This link was used before, or is of an earlier start of the studio. Each link opens the studio once. "
            "Press Enter in the terminal where the studio was started, and use the link that it shows then. Where a "
            "tab with the studio is open in this browser, go on there."
        )
    response = call.page("entered.html", title="Welcome")
    response.set_cookie(cookie_name(call.studio.port), session.key, httponly=True, samesite="strict", path="/")
    return response


# ------------------------------------------------------------------------------------------------------------ job pages
# Jobs: how far a release is, how it ended, and whether it was paid for.


job_pages = Pages()


@job_pages.get("/jobs/{key}")
def show(call: Call) -> Response:
    """A job as it stands."""
    job = call.studio.jobs.get(call.path["key"])
    going_on = job["state"] in UNFINISHED
    return call.page(
        "job.html",
        title=f"Release {job['name']}",
        job=job,
        going_on=going_on,
        progress=call.studio.jobs.progress(job["key"]) if going_on else {},
        is_stopping=going_on and call.studio.jobs.is_stopping(job["key"]),
        paid=paid(call.workspace, job),
    )


@job_pages.get("/jobs/{key}/events")
async def events(call: Call) -> Response:
    """How far a job is, as it goes on."""
    jobs, key = call.studio.jobs, call.path["key"]

    def look() -> dict[str, object]:
        job = jobs.get(key)
        return {**jobs.progress(key), "state": job["state"], "said": paid(call.workspace, job).sentence}

    return told_until(call.request, look, set(UNFINISHED))


@job_pages.post("/jobs/{key}/cancel")
def cancel(call: Call) -> Response:
    """Ask a job to stop; its page then says whether it had been charged."""
    call.studio.jobs.cancel(call.path["key"])
    return call.redirect(f"/jobs/{call.path['key']}")


@job_pages.post("/jobs/{key}/again")
def again(call: Call) -> Response:
    """A new draft that says what the draft of this job said; nothing is spent before it is confirmed anew."""
    draft = call.workspace.draft(call.path["key"])
    kept = {name: draft[name] for name in ("name", "table", "fields", "schema", "folder", "budget", "is_demo")}
    fresh = call.workspace.new_draft(**kept, revision=2)
    return call.redirect(f"/drafts/{fresh['key']}/schema")


# --------------------------------------------------------------------------------------------------------------- upload
# An upload: a form with one file, written to disk as it comes, bounded, readable by its owner alone.
#
# The token of the form comes before the file, and nothing is written before it was checked. A file that is cut off or
# too large is removed again.


ENDINGS = (*TABLE_ENDINGS, *DUCKDB_ENDINGS)
_LONGEST_FIELD = 1_000


class _Parts:
    """What the parser of a multipart form calls: fields are kept, the file goes to disk."""

    def __init__(self, request: Request, folder: Path) -> None:
        self._request, self._folder = request, folder
        self._header, self._value = b"", b""
        self._headers: dict[str, str] = {}
        self._field, self._text = "", b""
        self.file: IO[bytes] | None = None
        self.path: Path | None = None
        self.is_whole = False

    def on_part_begin(self) -> None:
        self._headers, self._header, self._value, self._text = {}, b"", b"", b""

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end][:_LONGEST_FIELD]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end][:_LONGEST_FIELD]

    def on_header_end(self) -> None:
        self._headers[self._header.decode("latin-1").lower()] = self._value.decode("utf-8", "replace")
        self._header, self._value = b"", b""

    def on_headers_finished(self) -> None:
        parse = load_optional("python_multipart.multipart", "an upload", extra="studio").parse_options_header
        _kind, options = parse(self._headers.get("content-disposition", ""))
        self._field = options.get(b"name", b"").decode("utf-8", "replace")
        name = options.get(b"filename")
        if name is None or self._field != "file":
            return
        check_token(self._request, self._request.state.form_token)
        if self.path is not None:
            raise PageError("One file can be sent at a time; put several into a folder that the studio can open.")
        self.path = _free_path(self._folder, name.decode("utf-8", "replace"))
        self.file = os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self.file is not None:
            self.file.write(data[start:end])
        elif len(self._text) < _LONGEST_FIELD:
            self._text += data[start:end]

    def on_part_end(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None
        elif self._field == TOKEN:
            self._request.state.form_token = self._text.decode("utf-8", "replace")

    def on_end(self) -> None:
        self.is_whole = True


async def received(request: Request, folder: Path) -> Path:
    """The file of an upload, in a folder; an error where it is none, or is not what the studio opens."""
    multipart = load_optional("python_multipart.multipart", "an upload", extra="studio")
    kind, options = multipart.parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or b"boundary" not in options:
        raise PageError("The studio could not read what was sent. Choose a file and send it again.")
    request.state.form_token = None
    parts = _Parts(request, folder)
    names = [name for name in dir(parts) if name.startswith("on_")]
    parser: Any = multipart.MultipartParser(options[b"boundary"], {name: getattr(parts, name) for name in names})
    try:
        async for chunk in request.stream():
            parser.write(chunk)
        parser.finalize()
        check_token(request, request.state.form_token)
        if parts.path is None or not parts.is_whole:
            raise PageError("No file came with the form; choose one and send it again.")
        if parts.path.stat().st_size == 0:
            raise PageError("The file is empty.")
    except BaseException as err:
        if parts.file is not None:
            parts.file.close()
        if parts.path is not None:
            parts.path.unlink(missing_ok=True)
        if isinstance(err, OSError) and not isinstance(err, FileError):
            raise PageError(f"The file cannot be kept in the workspace: {err.strerror}.") from None
        if isinstance(err, multipart.FormParserError):
            raise PageError("The upload was cut off. Choose the file and send it again.") from None
        raise
    return parts.path


def _free_path(folder: Path, given: str) -> Path:
    """A place for a file of this name: its own name, or that with a number."""
    base = given.replace("\\", "/").rpartition("/")[2]
    ending = next((ending for ending in ENDINGS if base.lower().endswith(ending)), None)
    if ending is None:
        raise PageError(
            f"A table is a file that ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}; this one does not."
        )
    stem = tidy_name(base[: -len(ending)])
    names = (f"{stem}{ending}" if n == 1 else f"{stem}-{n}{ending}" for n in range(1, 100_000))
    return next(path for path in (folder / name for name in names) if not path.exists())


# ---------------------------------------------------------------------------------------------------------- start pages
# The first page and the tables: browse the opened folder, send a file, or take the made-up town; then a draft
# begins.


start_pages = Pages(nav=("Start", "/"))

_SHOWN = 6


@start_pages.get("/")
def start(call: Call) -> Response:
    """Tables to choose from, drafts to go on with, jobs that run, and releases that were made."""
    jobs = call.studio.jobs.all()
    return call.page(
        "start.html",
        title="Start",
        drafts=[draft for draft in call.workspace.drafts() if not draft.get("job")],
        running=[job for job in jobs if job["state"] in UNFINISHED],
        ended=[job for job in jobs if job["state"] in ("failed", "cancelled", "interrupted")][:_SHOWN],
        releases=call.workspace.releases()[:_SHOWN],
        most_mib=call.studio.largest_upload >> 20,
        endings=",".join(ENDINGS),
    )


@start_pages.get("/tables")
def browse(call: Call) -> Response:
    """A folder of the root: folders to go into, and files that may be tables."""
    return _browsed(call, call.query.get("folder", ""))


def _browsed(call: Call, folder: str, *, faults: tuple[str, ...] = (), given: dict[str, str] | None = None) -> Response:
    root = call.workspace.root
    here = root.inside(folder)
    path = "" if here == root.folder else root.relative(here)
    listed = [
        one
        for one in root.listing(path, (*TABLE_ENDINGS, *DUCKDB_ENDINGS))
        if root.folder / one.path != call.workspace.folder
    ]
    parts = Path(path).parts
    return call.page(
        "tables.html",
        title="Choose a table",
        status=400 if faults else 200,
        folder=path,
        root=root.shown,
        trail=[("/".join(parts[: n + 1]), part) for n, part in enumerate(parts)],
        listed=listed,
        n_tables=sum(not one.is_folder for one in listed),
        faults=[{"message": fault, "at": ""} for fault in faults],
        given=given or {},
    )


@start_pages.post("/tables/open")
def open_table(call: Call) -> Response:
    """Begin a draft from what was named."""
    given = {name: call.text(name) for name in ("path", "table", *CSV_FIELDS)}
    try:
        draft = begin_draft(call.workspace, "root", given["path"], table=given["table"], csv=given)
    except SpinneyError as err:
        return _browsed(call, call.text("folder"), faults=(str(err),), given=given)
    return call.redirect(f"/drafts/{draft['key']}/schema")


@start_pages.post(UPLOAD, reads_form=False)
async def upload(call: Call) -> Response:
    """Keep a file in the workspace, and begin a draft from it."""
    folder = call.workspace.tables_folder
    path = await received(call.request, folder)
    if path.name.lower().endswith(DUCKDB_ENDINGS):
        return call.page("duckdb.html", title="Which table?", file=path.name)
    try:
        draft = await run_in_threadpool(begin_draft, call.workspace, "workspace", path.name, csv={})
    except SpinneyError as err:
        return call.page("uploaded.html", title="The file is here", file=path.name, status=400, fault=str(err))
    return call.redirect(f"/drafts/{draft['key']}/schema")


@start_pages.post("/tables/uploaded")
def open_uploaded(call: Call) -> Response:
    """Begin a draft from a file that was sent before, with what was said about it since."""
    path = call.text("path")
    given = {name: call.text(name) for name in CSV_FIELDS}
    try:
        draft = begin_draft(call.workspace, "workspace", path, table=call.text("table"), csv=given)
    except SpinneyError as err:
        return call.page("uploaded.html", title="The file is here", file=path, status=400, fault=str(err))
    return call.redirect(f"/drafts/{draft['key']}/schema")


@start_pages.post("/tables/town")
def town(call: Call) -> Response:
    """Write the made-up town into the workspace, and begin a draft from it, its schema filled in."""
    import pyarrow as pa
    import pyarrow.csv as pacsv

    from spinney.demo_data import make_town, town_schema
    from spinney.files import write_whole

    path = call.workspace.tables_folder / "town.csv"
    if not path.exists():
        points = make_town()
        table = pa.table({"x": points[:, 0], "y": points[:, 1]})
        write_whole(path, lambda file: pacsv.write_csv(table, file), overwrite=True)
    draft = begin_draft(call.workspace, "workspace", path.name, csv={}, schema=town_schema().to_toml(), is_demo=True)
    return call.redirect(f"/drafts/{draft['key']}/schema")


@start_pages.post("/drafts/{key}/remove")
def remove_draft(call: Call) -> Response:
    """Forget a draft."""
    call.workspace.remove_draft(call.path["key"])
    return call.redirect("/")


def begin_draft(
    workspace: Workspace,
    at: str,
    path: str,
    *,
    table: str = "",
    csv: dict[str, str],
    schema: str | None = None,
    is_demo: bool = False,
) -> dict[str, Any]:
    """A draft for a table: its columns by name and type, and a template of its schema."""
    described = described_table(workspace, at, path, table=table, csv=csv)
    found = types(workspace, described)
    return workspace.new_draft(
        name=described["name"],
        table=described,
        fields=plain_fields(found),
        schema=schema if schema is not None else schema_template(found),
        folder=str(folder_of(workspace, described)),
        budget={},
        is_demo=is_demo,
    )
