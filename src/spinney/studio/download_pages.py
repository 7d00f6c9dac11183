"""What can be taken away of a release: rows, the file, the report and its JSON twin, the card.

Rows are drawn by a process of their own and sent while they are drawn, so that however many there are, they fill no
memory and hold nobody up. What is asked for is checked before the first of them is sent.
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

from spinney.errors import ParameterError
from spinney.studio.errors import BusyError, PageError
from spinney.studio.pages import Call, Pages
from spinney.studio.releases.opened import OpenedRelease
from spinney.studio.releases.reported import STATED, LedgerAt, report_page, report_twin
from spinney.studio.releases.rows import FORMATS, PART_ROWS, checked_draw
from spinney.studio.view_parts import answer, ledger_of, overview_of, patient, release_of
from spinney.studio.workspace import tidy_name

pages = Pages()

_ASKED = ("rows", "seed", "where", "balance")
_PIECE = 1 << 17
_LONGEST = 4_000
# The report states the hash of its one style sheet itself; what it states holds as well.
_STYLE_HASH = re.compile(r"style-src '(sha256-[A-Za-z0-9+/=]+)'")


@pages.get("/releases/{key}/downloads")
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


@pages.get("/releases/{key}/release.spinney")
def release_file(call: Call) -> Response:
    """The release file itself."""
    opened = release_of(call)
    name = f"{tidy_name(opened.name)}.spinney"
    return FileResponse(opened.path, filename=name, media_type="application/octet-stream")


@pages.get("/releases/{key}/card.txt")
@patient
def card(call: Call) -> Response:
    """The card as text."""
    opened = release_of(call)
    found = overview_of(call, opened)
    return _attached(found["card"] + "\n", f"{tidy_name(opened.name)}-card.txt", "text/plain; charset=utf-8")


@pages.get("/releases/{key}/report.html")
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


@pages.get("/releases/{key}/report.json")
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
    if any(len(text) > _LONGEST for text in texts):
        raise ParameterError(f"a text of a report has at most {_LONGEST:,} characters")
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


@pages.get("/releases/{key}/rows")
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
        "spinney.studio.releases.draw_rows",
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
