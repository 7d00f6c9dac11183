"""The first page and the tables: browse what was opened, send a file, or take the made-up town; then a draft begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from spinney.errors import SpinneyError
from spinney.schema.template import schema_template
from spinney.studio.jobs import UNFINISHED
from spinney.studio.pages import Call, Pages
from spinney.studio.places import DUCKDB_ENDINGS, TABLE_ENDINGS
from spinney.studio.schema_form import plain_fields
from spinney.studio.security import UPLOAD
from spinney.studio.tables import CSV_FIELDS, described_table, folder_of, types
from spinney.studio.upload import ENDINGS, received
from spinney.studio.workspace import Workspace

pages = Pages(nav=("Start", "/"))

_SHOWN = 6


@pages.get("/")
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


@pages.get("/tables")
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


@pages.post("/tables/open")
def open_table(call: Call) -> Response:
    """Begin a draft from what was named."""
    given = {name: call.text(name) for name in ("path", "table", *CSV_FIELDS)}
    try:
        draft = begin_draft(call.workspace, "root", given["path"], table=given["table"], csv=given)
    except SpinneyError as err:
        return _browsed(call, call.text("folder"), faults=(str(err),), given=given)
    return call.redirect(f"/drafts/{draft['key']}/schema")


@pages.post(UPLOAD, reads_form=False)
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


@pages.post("/tables/uploaded")
def open_uploaded(call: Call) -> Response:
    """Begin a draft from a file that was sent before, with what was said about it since."""
    path = call.text("path")
    given = {name: call.text(name) for name in CSV_FIELDS}
    try:
        draft = begin_draft(call.workspace, "workspace", path, table=call.text("table"), csv=given)
    except SpinneyError as err:
        return call.page("uploaded.html", title="The file is here", file=path, status=400, fault=str(err))
    return call.redirect(f"/drafts/{draft['key']}/schema")


@pages.post("/tables/town")
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


@pages.post("/drafts/{key}/remove")
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
