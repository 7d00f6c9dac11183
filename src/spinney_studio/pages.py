"""How pages are made: templates into HTML, addresses into functions, and progress of work as a stream.

A module of pages makes `Pages`, names its addresses, and is listed in `PAGES` of `server.py`. A page is a plain
function of a `Call`, which runs in a thread, so that reading a file delays nobody. Errors of the library reach
the reader with their message; of any other error only its kind, because a traceback may quote private values.

    rendering   templates, and how numbers, times and sizes read
    pages       `Call`, `Pages`, tokens of forms, and the page of an error
    streams     server-sent events until the work is over
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from spinney.documents import finalized
from spinney.errors import SpinneyError
from spinney.files import full_version
from spinney.machine import load_optional
from spinney.report.page import rounded as number
from spinney.report.parts import percent as at_most
from spinney.text import clipped, printable
from spinney_studio.workspace import MissingPageError, PageError, RefusedError

if TYPE_CHECKING:
    from spinney_studio.security import Session
    from spinney_studio.server import Studio
    from spinney_studio.workspace import Workspace


# ------------------------------------------------------------------------------------------------------------ rendering
# Templates into pages: everything that they are given is escaped, and what is not printable is shown as an escape.


@cache
def environment() -> Any:
    """Jinja with the studio's templates."""
    jinja2 = load_optional("jinja2", "the studio", extra="studio")
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("spinney_studio", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: finalized(value, 400_000),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "counted": counted,
        "moment": moment,
        "size": size,
        "percent": percent,
        "rounded": rounded,
        "kept": kept,
    }
    found.filters |= {"number": number, "at_most": at_most}  # as reports show figures
    found.globals["version"] = full_version()
    return found


def rendered(template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """A page; its policy and all other headers come from `security`."""
    return HTMLResponse(environment().get_template(template).render(**context), status_code=status)


def kept(value: Any) -> Any:
    """What a field holds, escaped and otherwise as it is: it comes back with the form, and has to be the same then."""
    markupsafe = load_optional("markupsafe", "the studio", extra="studio")
    return markupsafe.escape("" if value is None else str(value))


def counted(number: int, what: str) -> str:
    """A number of things in words: 1 row, 2,000 rows."""
    return f"1 {what}" if number == 1 else f"{number:,} {what}s"


def moment(text: str) -> str:
    """A time on record as people read it, in the time of this machine."""
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%d %B %Y, %H:%M").lstrip("0")
    except ValueError:
        return text


def size(n_bytes: int) -> str:
    """The size of a file as people read it."""
    for unit, one in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if n_bytes >= one:
            return f"{n_bytes / one:.1f} {unit}"
    return f"{n_bytes} bytes"


def percent(share: float, digits: int = 1) -> str:
    """A share as people read it."""
    return f"{100 * share:.{digits}f} %"


def rounded(value: float) -> str:
    """A number as people read it: whole where it is large, and with two digits where it is small."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2g}"


# ---------------------------------------------------------------------------------------------------------------- pages
# How a page is added:
#
#     pages = Pages()
#
#     @pages.get("/releases/{name}")
#     def show(call: Call) -> Response:
#         release = call.workspace.release(call.path["name"])
#         return call.page("release.html", title=release.name, release=release)
#
#     @pages.post("/releases/{name}/forget")
#     def forget(call: Call) -> Response:  # the token of the form was checked before
#         ...
#         return call.redirect("/releases")
#
# A page that streams may be a coroutine. A page raises a `PageError`, or any error of the library, and the
# reader gets a page with its message.


TOKEN = "form_token"  # noqa: S105  # the name of a field
_MOST_FIELDS = 20_000


@dataclass(frozen=True, slots=True)
class Call:
    """One request as a page sees it."""

    studio: Studio
    request: Request
    form: FormData = field(default_factory=FormData)  # of a post, without files

    @property
    def workspace(self) -> Workspace:
        return self.studio.workspace

    @property
    def session(self) -> Session:
        found: Session = self.request.state.session
        return found

    @property
    def path(self) -> Mapping[str, str]:
        """What stands in the braces of the address."""
        return self.request.path_params

    @property
    def query(self) -> QueryParams:
        return self.request.query_params

    def text(self, name: str, default: str = "") -> str:
        """A field of the form, without spaces around it."""
        value = self.form.get(name, default)
        return value.strip() if isinstance(value, str) else default

    def page(self, template: str, *, title: str, status: int = 200, **context: Any) -> Response:
        """A page made from a template, which also knows `form_token`, `path`, `nav` and `shown`, for paths."""
        session = getattr(self.request.state, "session", None)
        return rendered(
            template,
            status=status,
            title=title,
            nav=self.studio.nav,
            shown=self.workspace.shown,
            path=self.request.url.path,
            form_token="" if session is None else session.form_token,
            **context,
        )

    def redirect(self, path: str) -> Response:
        """Go on to another page of the studio."""
        return RedirectResponse(quote(path, safe="/?&=#%"), status_code=303)


Page = Callable[[Call], Any]


class Pages:
    """Addresses, and the functions that answer at them."""

    def __init__(self, *, nav: tuple[str, str] | None = None) -> None:
        """Begin without addresses. `nav` is an entry of the navigation: what it says, and where it leads."""
        self.nav = nav
        self._listed: list[tuple[str, str, Page, bool]] = []

    def get(self, path: str) -> Callable[[Page], Page]:
        """Answer at an address."""
        return self._add(path, "GET", reads_form=False)

    def post(self, path: str, *, reads_form: bool = True) -> Callable[[Page], Page]:
        """Take a form. With reads_form=False the page reads the body itself, and has to check the form's token."""
        return self._add(path, "POST", reads_form=reads_form)

    def routes(self, studio: Studio) -> list[Route]:
        """The addresses, answered for one studio."""
        return [
            Route(path, _endpoint(studio, page, reads_form=reads_form), methods=[method])
            for path, method, page, reads_form in self._listed
        ]

    def _add(self, path: str, method: str, *, reads_form: bool) -> Callable[[Page], Page]:
        def add(page: Page) -> Page:
            self._listed.append((path, method, page, reads_form))
            return page

        return add


def _endpoint(studio: Studio, page: Page, *, reads_form: bool) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        try:
            form = await _checked_form(request) if reads_form else FormData()
            call = Call(studio, request, form)
            found = await page(call) if iscoroutinefunction(page) else await run_in_threadpool(page, call)
            assert isinstance(found, Response)
            return found
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as err:  # a traceback may quote private values: it goes nowhere
            return error_page(Call(studio, request), err)

    return answer


async def _checked_form(request: Request) -> FormData:
    """The fields of a form that carries the token of its session; files are taken by the upload alone."""
    form = await request.form(max_files=0, max_fields=_MOST_FIELDS)
    check_token(request, form.get(TOKEN))
    return form


def check_token(request: Request, given: Any) -> None:
    """Raise unless a form carries the token of its session."""
    if not request.state.session.has_form_token(given if isinstance(given, str) else None):
        raise RefusedError(
            "The form was made for another session, so nothing was done. Go back, load the page again, and send it "
            "from there."
        )


def revision_of(call: Call) -> int:
    """The revision of the draft that a form was made from."""
    given = call.text("revision")
    if not given.isascii() or not given.isdigit() or len(given) > 9:
        raise PageError("The form is not whole. Load the page again, and send it from there.")
    return int(given)


def error_page(call: Call, err: Exception) -> Response:
    """What the reader is told of an error: our own message, and of any other error its kind alone."""
    title, status = "This cannot be done", 400
    if isinstance(err, HTTPException):
        is_missing = err.status_code in (404, 405)
        err = (
            MissingPageError("Nothing is at this address. Start from the first page.")
            if is_missing
            else PageError("The studio could not read what was sent. Go back and try again.")
        )
    if isinstance(err, PageError):
        title, status = err.title, err.status
    if isinstance(err, SpinneyError):
        message = clipped(printable(str(err)))
    elif isinstance(err, MemoryError):
        title, status, message = "Out of memory", 500, "This machine has too little memory for that."
    else:
        title, status = "Something went wrong", 500
        message = (
            f"An unexpected {type(err).__name__}, which is a bug in Spinney. Nothing else is told of it, because it "
            "might quote private values. Drafts and releases are kept."
        )
    return call.page("error.html", title=title, status=status, message=message)


# -------------------------------------------------------------------------------------------------------------- streams
# Progress in a page that is open: server-sent events, one whenever something has changed, until the work is over.


_LOOKS_EVERY = 0.5
_QUIET = 15.0  # seconds after which an empty line says that the server is still there


def told_until(request: Request, look: Callable[[], dict[str, Any]], going_on: set[str]) -> StreamingResponse:
    """A stream of what `look` gives, as long as its state is one of those that go on; the last one ends it."""

    async def stream() -> AsyncIterator[str]:
        last, waited = None, 0.0
        while not await request.is_disconnected():
            found = await run_in_threadpool(look)
            if found != last:
                last, waited = found, 0.0
                yield f"data: {json.dumps(_public(found))}\n\n"
            if found.get("state") not in going_on:
                return
            await asyncio.sleep(_LOOKS_EVERY)
            waited += _LOOKS_EVERY
            if waited >= _QUIET:
                waited = 0.0
                yield ": still there\n\n"

    return StreamingResponse(stream(), media_type="text/event-stream")


def _public(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found.get(name) for name in ("state", "title", "done", "total", "said")}
