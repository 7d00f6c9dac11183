"""Pages of a release: which there are, what one promises, its columns under a condition, its pairs."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from spinney.errors import FileError, ParameterError, SpinneyError
from spinney.schema.place_names import is_latitude, is_longitude
from spinney.studio.errors import MissingPageError, PageError, TooLargeError
from spinney.studio.pages import TOKEN, Call, Pages, check_token
from spinney.studio.releases import pictures
from spinney.studio.releases.conditioned import columns_under, preview
from spinney.studio.releases.described import overview, verified
from spinney.studio.releases.opened import LARGEST_RELEASE, OpenedRelease
from spinney.studio.releases.paired import pair_table, pairs_shown
from spinney.studio.releases.reported import promised_together
from spinney.studio.security import RELEASE_UPLOAD
from spinney.studio.view_parts import (
    answer,
    ledger_of,
    overview_of,
    patient,
    picture,
    picture_address,
    release_of,
    whole,
)

pages = Pages(nav=("Releases", "/releases"))

_LONGEST = 2_000  # characters of a condition or a question


@pages.get("/releases")
def listed(call: Call) -> Response:
    """All releases, and ways to open another."""
    return _opener(call)


@pages.get("/releases/at")
def at_path(call: Call) -> Response:
    """Open a release by its path in the folder."""
    text = call.query.get("path", "")
    try:
        opened = call.studio.shelf.by_path(text)
    except (PageError, FileError) as err:
        return _opener(call, fault=str(err), given=text)
    return call.redirect(f"/releases/{opened.digest}")


@pages.post(RELEASE_UPLOAD, reads_form=False)
async def upload(call: Call) -> Response:
    """Take in a release file that was handed over."""
    from starlette.concurrency import run_in_threadpool
    from starlette.datastructures import UploadFile

    async with call.request.form(max_files=1, max_fields=10) as form:
        check_token(call.request, form.get(TOKEN))
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            return _opener(call, upload_fault="Choose a release file first: its name ends in .spinney.")
        content = await file.read(LARGEST_RELEASE + 1)
        name = file.filename
    if len(content) > LARGEST_RELEASE:
        raise TooLargeError(
            f"At most {LARGEST_RELEASE >> 20} MiB can be handed in; put it into the folder and open it."
        )

    def check(path: str, digest: str) -> Any:
        return call.studio.beside.answer("reading the release", overview, path, digest, wait=120)

    try:
        opened = await run_in_threadpool(call.studio.shelf.take_in, name, content, check)
    except FileError as err:
        return _opener(call, upload_fault=str(err))
    return call.redirect(f"/releases/{opened.key}")


def _opener(call: Call, *, fault: str = "", given: str = "", upload_fault: str = "") -> Response:
    status = 400 if fault or upload_fault else 200
    return call.page(
        "releases.html",
        title="Releases",
        status=status,
        releases=call.studio.shelf.listed(),
        root=str(call.workspace.root.folder),
        fault=fault,
        given=given,
        upload_fault=upload_fault,
    )


# ---------------------------------------------------------------------------------------------------------- one release


@pages.get("/releases/{key}")
@patient
def show(call: Call) -> Response:
    """What a release promises, whether its file holds what it says, and where the budget went."""
    opened = release_of(call)
    found = overview_of(call, opened)
    ledger, unread = ledger_of(call, opened)
    problem, checked, together = "", None, None
    try:
        if ledger is not None:
            together = answer(call, "reading the ledger", promised_together, *opened.at, ledger)
    except SpinneyError as err:
        unread = str(err)
    try:
        checked = answer(call, "verifying the release", verified, *opened.at, is_slow=True)
    except FileError as err:
        problem = str(err)
    return call.page(
        "release.html",
        title=opened.name,
        opened=opened,
        it=found,
        checked=checked,
        problem=problem,
        together=together,
        unread=unread,
        belief=picture_address(opened, "belief"),
        budget=picture_address(opened, "budget"),
        maps=[
            {
                "columns": columns,
                "is_geographic": is_longitude(columns[0]) and is_latitude(columns[1]),
                "address": picture_address(opened, f"map/{number}"),
            }
            for number, columns in enumerate(found["maps"])
        ],
    )


@pages.get("/releases/{key}/columns")
@patient
def columns(call: Call) -> Response:
    """Every column with error bars, among all rows or those that meet a condition, and a few rows drawn under it."""
    opened, where = release_of(call), call.query.get("where", "").strip()
    found = overview_of(call, opened)
    try:
        if len(where) > _LONGEST:
            raise ParameterError(f"where: a condition has at most {_LONGEST:,} characters")
        shown = answer(call, "counting every column", columns_under, *opened.at, where)
        rows = answer(call, "drawing a few rows", preview, *opened.at, where)
    except ParameterError as err:
        return _columns_page(call, opened, found, where=where, shown=None, rows=None, fault=str(err))
    return _columns_page(call, opened, found, where=where, shown=shown, rows=rows)


def _columns_page(
    call: Call, opened: OpenedRelease, found: dict[str, Any], *, where: str, shown: Any, rows: Any, fault: str = ""
) -> Response:
    drawn = [
        {
            "address": picture_address(opened, f"column/{number}", where=where),
            "size": pictures.column_size(len(column["bars"]), column["bars_left_out"]),
        }
        for number, column in enumerate(shown["columns"] if shown else ())
    ]
    return call.page(
        "release_columns.html",
        title=f"Columns of {opened.name}",
        status=400 if fault else 200,
        opened=opened,
        it=found,
        where=where,
        known=shown,
        rows=rows,
        pictures=drawn,
        fault=fault,
    )


@pages.get("/releases/{key}/pairs")
@patient
def pairs(call: Call) -> Response:
    """How strongly columns depend on each other, and the table of a chosen pair."""
    opened = release_of(call)
    found = overview_of(call, opened)
    shown = answer(call, "looking at all pairs", pairs_shown, *opened.at, is_slow=True)
    first, second = call.query.get("first", ""), call.query.get("second", "")
    chosen, fault = None, ""
    if first or second:
        try:
            chosen = answer(call, "counting the pair", pair_table, *opened.at, first, second)
        except ParameterError as err:
            fault = str(err)
    return call.page(
        "release_pairs.html",
        title=f"Pairs of {opened.name}",
        status=400 if fault else 200,
        opened=opened,
        it=found,
        known=shown,
        choices=[("", "choose"), *((one["name"], one["name"]) for one in found["fields"])],
        first=first,
        second=second,
        chosen=chosen,
        fault=fault,
        drawn=picture_address(opened, "pair", first=first, second=second),
        graph=picture_address(opened, "graph"),
        uncertainty=picture_address(opened, "uncertainty"),
    )


# ------------------------------------------------------------------------------------------------------------- pictures


@pages.get("/releases/{key}/column/{number}.svg")
def column_picture(call: Call) -> Response:
    """One column."""
    number, where = whole(call.path["number"], "the number of a column"), call.query.get("where", "").strip()
    opened = release_of(call)
    shown = call.studio.beside.answer("counting", columns_under, *opened.at, where, wait=120)
    if number >= len(shown["columns"]) or not shown["columns"][number]["bars"]:
        raise MissingPageError("There is no drawing of this column.")
    return picture(call, pictures.column_picture, *opened.at, where, number)


@pages.get("/releases/{key}/pair.svg")
def pair_picture(call: Call) -> Response:
    """The table of two columns."""
    wanted = call.query.get("first", ""), call.query.get("second", "")
    return picture(call, pictures.pair_picture, *release_of(call).at, *wanted)


@pages.get("/releases/{key}/map/{number}.svg")
def map_picture(call: Call) -> Response:
    """A map."""
    opened, number = release_of(call), whole(call.path["number"], "the number of a map")
    found = call.studio.beside.answer("reading the release", overview, *opened.at, wait=120)
    if number >= len(found["maps"]):
        raise MissingPageError("There is no such map.")
    return picture(call, pictures.map_picture, *opened.at, number)


@pages.get("/releases/{key}/{which}.svg")
def drawing(call: Call) -> Response:
    """The promise, the budget, the graph, or how well pairs are known."""
    opened, which = release_of(call), call.path["which"]
    if which in ("belief", "budget"):
        return picture(call, pictures.overview_picture, *opened.at, which)
    if which in ("graph", "uncertainty"):
        return picture(call, pictures.contents_picture, *opened.at, which, is_slow=True)
    raise MissingPageError("There is no such picture.")
