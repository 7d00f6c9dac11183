"""Pages of releases: comparison, downloads, questions, the list, one release, its columns and pairs.

Pages show release files, which are PUBLIC, and what is on record about them. What takes long is worked out
beside the server (`background.py`), and the page says that it waits.

    compare pages    several releases side by side
    download pages   the file, its card, the report and its JSON twin
    rows             synthetic rows, sent while they are drawn
    question pages   questions and answers with error bars
    release pages    all releases, and ways to open another
    one release      its guarantee, its columns under a condition, its pairs
    pictures         its drawings, each at an address of its own
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, Response, StreamingResponse

from spinney.errors import FileError, ParameterError, SpinneyError
from spinney.schema.places import is_latitude, is_longitude
from spinney_studio import drawings
from spinney_studio.background import LARGEST_RELEASE, OpenedRelease
from spinney_studio.drawings import (
    answer,
    answers_picture,
    column_size,
    ledger_of,
    overview_of,
    patient,
    picture,
    picture_address,
    release_of,
    whole,
)
from spinney_studio.pages import TOKEN, Call, Pages, check_token
from spinney_studio.security import RELEASE_UPLOAD
from spinney_studio.views import (
    FORMATS,
    KINDS,
    PART_ROWS,
    STATED,
    LedgerAt,
    answered,
    built_question,
    checked_draw,
    columns_under,
    distances,
    overview,
    pair_table,
    pairs_shown,
    preview,
    promised_together,
    report_page,
    report_twin,
    shared_columns,
    verified,
)
from spinney_studio.workspace import BusyError, MissingPageError, PageError, TooLargeError, tidy_name

# -------------------------------------------------------------------------------------------------------- compare pages
# Several releases side by side: what each promises, every shared column of each, and how far apart they are.


compare_pages = Pages(nav=("Side by side", "/compare"))

_MOST = 4
_LONGEST_NAME = 500


@compare_pages.get("/compare")
@patient
def compare(call: Call) -> Response:
    """Choose releases, and see them beside each other."""
    wanted = list(dict.fromkeys(call.query.getlist("release")))
    if not wanted:
        return _chooser(call, [], "")
    try:
        opened = _opened(call, wanted)
    except PageError as err:
        return _chooser(call, wanted, str(err))
    found = [overview_of(call, one) for one in opened]
    shared = answer(call, "comparing schemas", shared_columns, tuple(one.at for one in opened))
    shown = [answer(call, f"counting every column of {one.name}", columns_under, *one.at, "") for one in opened]
    apart = [
        answer(call, "drawing rows to compare", distances, opened[0].at, other.at, is_slow=True) for other in opened[1:]
    ]
    return call.page(
        "compare.html",
        title="Side by side",
        releases=[{"opened": one, "it": it} for one, it in zip(opened, found, strict=True)],
        columns=[_column(name, opened, shown) for name in shared],
        apart=[{"name": one.name, **far} for one, far in zip(opened[1:], apart, strict=True)],
    )


def _opened(call: Call, wanted: list[str]) -> list[OpenedRelease]:
    if not 2 <= len(wanted) <= _MOST:
        raise PageError(f"Choose two to {_MOST} releases; {len(wanted)} were chosen.")
    shelf = call.studio.shelf
    found = [shelf.by_path(one) if "/" in one[:_LONGEST_NAME] else shelf.by_key(one) for one in wanted]
    if len({one.digest for one in found}) < len(found):
        raise PageError("Two of these files hold the same release; choose others to compare.")
    return found


def _chooser(call: Call, wanted: list[str], fault: str) -> Response:
    return call.page(
        "compare_choose.html",
        title="Side by side",
        status=400 if fault else 200,
        releases=call.studio.shelf.listed(),
        wanted=wanted,
        fault=fault,
    )


def _column(name: str, opened: list[OpenedRelease], shown: list[dict[str, Any]]) -> dict[str, Any]:
    """One column of every release: its picture and its numbers."""
    beside = []
    for one, found in zip(opened, shown, strict=True):
        number = next((n for n, column in enumerate(found["columns"]) if column["name"] == name), None)
        column = None if number is None else found["columns"][number]
        if column is None or not column["bars"]:
            beside.append({"column": None, "address": "", "size": (0, 0)})
            continue
        size = column_size(len(column["bars"]), column["bars_left_out"])
        beside.append({"column": column, "address": picture_address(one, f"column/{number}"), "size": size})
    return {"name": name, "beside": beside}


# ------------------------------------------------------------------------------------------------------- download pages
# What can be taken away of a release: rows, the file, the report and its JSON twin, the card.
#
# Rows are drawn by a process of their own and sent while they are drawn, so that however many there are, they fill no
# memory and hold nobody up. What is asked for is checked before the first of them is sent.


download_pages = Pages()

_ASKED = ("rows", "seed", "where", "balance")
_PIECE = 1 << 17
_LONGEST_CONDITION = 4_000
# The report states the hash of its one style sheet itself; what it states holds as well.
_STYLE_HASH = re.compile(r"style-src '(sha256-[A-Za-z0-9+/=]+)'")


@download_pages.get("/releases/{key}/downloads")
@patient
def downloads(call: Call) -> Response:
    """All that can be taken away."""
    return _page(call, release_of(call), {name: call.query.get(name, "") for name in _ASKED}, {})


def _page(call: Call, opened: OpenedRelease, given: dict[str, str], faults: dict[str, str]) -> Response:
    return call.page(
        "release_downloads.html",
        title=f"Downloads of {opened.name}",
        status=400 if faults else 200,
        opened=opened,
        it=overview_of(call, opened),
        given=given,
        form=call.query.get("form", "csv"),
        faults=faults,
        part_rows=PART_ROWS,
        stated={name: call.query.get(name, _on_record(opened, name)) for name in STATED},
        has_ledger=bool(opened.origin.get("ledger")),
        ledger=call.query.get("ledger", "with"),
    )


@download_pages.get("/releases/{key}/release.spinney")
def release_file(call: Call) -> Response:
    """The release file itself."""
    opened = release_of(call)
    name = f"{tidy_name(opened.name)}.spinney"
    return FileResponse(opened.path, filename=name, media_type="application/octet-stream")


@download_pages.get("/releases/{key}/card.txt")
@patient
def card(call: Call) -> Response:
    """The card as text."""
    opened = release_of(call)
    found = overview_of(call, opened)
    return _attached(found["card"] + "\n", f"{tidy_name(opened.name)}-card.txt", "text/plain; charset=utf-8")


@download_pages.get("/releases/{key}/report.html")
@patient
def report(call: Call) -> Response:
    """The report: one page that runs nothing, shown by itself or taken away."""
    opened = release_of(call)
    text = answer(call, "making the report", report_page, *opened.at, *_stated(call, opened), is_slow=True)
    if call.query.get("save") == "yes":
        return _attached(text, f"{tidy_name(opened.name)}-report.html", "text/html; charset=utf-8")
    return Response(text, media_type="text/html; charset=utf-8", headers={"content-security-policy": _policy(text)})


def _policy(text: str) -> str:
    """What a report may do: nothing, in a world of its own, in the style that it brings."""
    hashed = _STYLE_HASH.search(text)
    assert hashed is not None
    return (
        f"default-src 'none'; style-src '{hashed[1]}'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; sandbox"
    )


@download_pages.get("/releases/{key}/report.json")
@patient
def twin(call: Call) -> Response:
    """The report for programs."""
    opened = release_of(call)
    text = answer(call, "making the report", report_twin, *opened.at, *_stated(call, opened), is_slow=True)
    return _attached(text, f"{tidy_name(opened.name)}-report.json", "application/json")


def _on_record(opened: OpenedRelease, name: str) -> str:
    """What was said of a release when it was made."""
    return str(opened.origin.get("purpose") or "") if name == "purpose" else ""


def _stated(call: Call, opened: OpenedRelease) -> tuple[tuple[str, ...], str, LedgerAt | None]:
    """What a report says beside the release: texts, when it was made, and the ledger that paid, unless it is left out.

    A ledger that cannot be read is told, as a page that says it was given none would be wrong.
    """
    texts = tuple(call.query.get(name, _on_record(opened, name)).strip() for name in STATED)
    if any(len(text) > _LONGEST_CONDITION for text in texts):
        raise ParameterError(f"a text of a report has at most {_LONGEST_CONDITION:,} characters")
    made = str(opened.origin.get("made") or "")
    if call.query.get("ledger") == "without":
        return texts, made, None
    ledger, unread = ledger_of(call, opened)
    if unread:
        raise PageError(f"{unread} A report without the ledger can be made all the same: choose so on the page before.")
    return texts, made, ledger


def _attached(text: str, name: str, kind: str) -> Response:
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{_ascii(name)}"'})


def _ascii(name: str) -> str:
    return name.encode("ascii", "replace").decode().replace("?", "-").replace('"', "-")


# ----------------------------------------------------------------------------------------------------------------- rows
# Synthetic rows: checked before the first is sent, then drawn by a process of their own.


@download_pages.get("/releases/{key}/rows")
async def rows(call: Call) -> Response:
    """Synthetic rows, sent while they are drawn."""
    opened = await run_in_threadpool(release_of, call)
    given = {name: call.query.get(name, "") for name in _ASKED}
    form = call.query.get("form", "csv")
    if form not in FORMATS:
        raise ParameterError(f"form: rows come as {' or '.join(FORMATS)}")
    checked = await run_in_threadpool(_checked, call, opened, given)
    if checked["faults"]:
        return await run_in_threadpool(_page, call, opened, given, checked["faults"])
    if not call.studio.beside.drawing.acquire(blocking=False):
        raise BusyError(
            "Two downloads of rows are under way, which is as many as run at once. Try again when one is done."
        )
    stream = _drawn(call, {**checked, "path": opened.path, "digest": opened.digest, "form": form})
    try:
        first = await anext(stream)
    except StopAsyncIteration:
        first = b""
    name, kind = f"{tidy_name(opened.name)}-synthetic.{form}", FORMATS[form]
    if checked["is_several"]:
        name, kind = f"{tidy_name(opened.name)}-synthetic.zip", "application/zip"
    headers = {"content-disposition": f'attachment; filename="{_ascii(name)}"'}
    return StreamingResponse(_after(first, stream), media_type=kind, headers=headers)


def _checked(call: Call, opened: OpenedRelease, given: dict[str, str]) -> dict[str, Any]:
    asked = tuple(sorted(given.items()))
    found: dict[str, Any] = call.studio.beside.answer(
        "looking at what is asked", checked_draw, *opened.at, asked, wait=60
    )
    return found


async def _drawn(call: Call, asked: dict[str, Any]) -> AsyncIterator[bytes]:
    """What the process writes; it ends when whoever reads goes away. An error where it ends before all is written."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "spinney_studio.views",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    told = asyncio.create_task(process.stderr.read())
    try:
        process.stdin.write(json.dumps(asked).encode())
        process.stdin.close()
        while piece := await process.stdout.read(_PIECE):
            yield piece
        if await process.wait() != 0:
            message = (await told).decode(errors="replace").strip()
            raise PageError(message[-500:] if process.returncode == 1 and message else "The rows could not be drawn.")
    finally:
        call.studio.beside.drawing.release()
        if process.returncode is None:
            process.kill()
            await process.wait()
        told.cancel()


async def _after(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        if first:
            yield first
        async for piece in rest:
            yield piece
    finally:
        await rest.aclose()  # type: ignore[attr-defined]  # a generator, which ends its process


# ------------------------------------------------------------------------------------------------------- question pages
# Questions to a release, in the language of `spinney ask` or put together by a form; answers with error bars.


question_pages = Pages()

_LONGEST = 2_000
_BUILT = ("kind", "column", "share", "by", "cells", "where")
_LEVELS = ("0.9", "0.95", "0.99", "0.999")


@question_pages.get("/releases/{key}/questions")
@patient
def questions(call: Call) -> Response:
    """A question, and what the release says."""
    opened = release_of(call)
    found = overview_of(call, opened)
    given = {name: call.query.get(name, "") for name in ("q", "level", *_BUILT)}
    switches = {name: call.query.get(name) == "yes" for name in ("population", "certified", "simultaneous")}
    text, faults, said = given["q"].strip(), {}, None
    if given["kind"]:
        try:
            text = built_question(given)
        except ParameterError as err:
            faults = _placed(str(err), _BUILT, "kind")
    if text and not faults:
        try:
            level = _level(given["level"])
            said = answer(call, "working out the answer", answered, *_asked(call, text, level, switches))
        except ParameterError as err:
            faults = _placed(str(err), ("level",), "q")
    level_text = given["level"] or "0.95"
    return call.page(
        "release_questions.html",
        title=f"Questions to {opened.name}",
        status=400 if faults else 200,
        opened=opened,
        it=found,
        text=text,
        given=given,
        level=level_text,
        levels=_LEVELS,
        switches=switches,
        faults=faults,
        said=said,
        kinds=[("", "choose"), *KINDS.items()],
        measured=[("", "choose"), *((one["name"], one["name"]) for one in found["fields"] if one["has_mean"])],
        groups=[("", "all together"), *((one["name"], one["name"]) for one in found["fields"])],
        drawn=picture_address(
            opened, "answers", q=text, level=level_text, **{name: on and "yes" for name, on in switches.items()}
        ),
    )


@question_pages.get("/releases/{key}/answers.svg")
def drawn(call: Call) -> Response:
    """The answers to a question, drawn."""
    switches = {name: call.query.get(name) == "yes" for name in ("population", "certified", "simultaneous")}
    asked = _asked(call, call.query.get("q", ""), _level(call.query.get("level", "")), switches)
    return picture(call, answers_picture, *asked)


def _asked(call: Call, text: str, level: float, switches: dict[str, bool]) -> tuple[Any, ...]:
    if len(text) > _LONGEST:
        raise ParameterError(f"a question has at most {_LONGEST:,} characters")
    return (*release_of(call).at, text, level, switches["population"], switches["certified"], switches["simultaneous"])


def _level(text: str) -> float:
    try:
        level = float(text or "0.95")
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise ParameterError("level: a probability is a number between 0 and 1, such as 0.95")
    return level


def _placed(message: str, names: tuple[str, ...], otherwise: str) -> dict[str, str]:
    """A fault beside its field: that which the message begins with, or another."""
    name, colon, rest = message.partition(": ")
    return {name: rest} if colon and name in names else {otherwise: message}


# -------------------------------------------------------------------------------------------------------- release pages
# Which releases there are, and ways to open another: by its path, or handed over.


release_pages = Pages(nav=("Releases", "/releases"))


@release_pages.get("/releases")
def listed(call: Call) -> Response:
    """All releases, and ways to open another."""
    return _opener(call)


@release_pages.get("/releases/at")
def at_path(call: Call) -> Response:
    """Open a release by its path in the folder."""
    text = call.query.get("path", "")
    try:
        opened = call.studio.shelf.by_path(text)
    except (PageError, FileError) as err:
        return _opener(call, fault=str(err), given=text)
    return call.redirect(f"/releases/{opened.digest}")


@release_pages.post(RELEASE_UPLOAD, reads_form=False)
async def upload(call: Call) -> Response:
    """Take in a release file that was handed over."""
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
# What a release guarantees, its columns under a condition, and its pairs.


@release_pages.get("/releases/{key}")
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


@release_pages.get("/releases/{key}/columns")
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
            "size": drawings.column_size(len(column["bars"]), column["bars_left_out"]),
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


@release_pages.get("/releases/{key}/pairs")
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
# The drawings of a release, each at an address that holds all that it follows from.


@release_pages.get("/releases/{key}/column/{number}.svg")
def column_picture(call: Call) -> Response:
    """One column."""
    number, where = whole(call.path["number"], "the number of a column"), call.query.get("where", "").strip()
    opened = release_of(call)
    shown = call.studio.beside.answer("counting", columns_under, *opened.at, where, wait=120)
    if number >= len(shown["columns"]) or not shown["columns"][number]["bars"]:
        raise MissingPageError("There is no drawing of this column.")
    return picture(call, drawings.column_picture, *opened.at, where, number)


@release_pages.get("/releases/{key}/pair.svg")
def pair_picture(call: Call) -> Response:
    """The table of two columns."""
    wanted = call.query.get("first", ""), call.query.get("second", "")
    return picture(call, drawings.pair_picture, *release_of(call).at, *wanted)


@release_pages.get("/releases/{key}/map/{number}.svg")
def map_picture(call: Call) -> Response:
    """A map."""
    opened, number = release_of(call), whole(call.path["number"], "the number of a map")
    found = call.studio.beside.answer("reading the release", overview, *opened.at, wait=120)
    if number >= len(found["maps"]):
        raise MissingPageError("There is no such map.")
    return picture(call, drawings.map_picture, *opened.at, number)


@release_pages.get("/releases/{key}/{which}.svg")
def drawing(call: Call) -> Response:
    """The promise, the budget, the graph, or how well pairs are known."""
    opened, which = release_of(call), call.path["which"]
    if which in ("belief", "budget"):
        return picture(call, drawings.overview_picture, *opened.at, which)
    if which in ("graph", "uncertainty"):
        return picture(call, drawings.contents_picture, *opened.at, which, is_slow=True)
    raise MissingPageError("There is no such picture.")
