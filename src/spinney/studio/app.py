"""The application: all pages behind the guard.

A module of pages is added by one line in `PAGES`; see `pages.py`.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from spinney.studio import (
    budget_pages,
    compare_pages,
    download_pages,
    entry_pages,
    job_pages,
    ledger_pages,
    question_pages,
    release_pages,
    schema_pages,
    start_pages,
)
from spinney.studio.errors import PageError
from spinney.studio.pages import Call, Pages, error_page
from spinney.studio.security import App, Guard, Receive, Scope, Send
from spinney.studio.studio import Studio

PAGES: tuple[Pages, ...] = (
    start_pages.pages,
    entry_pages.pages,
    schema_pages.pages,
    budget_pages.pages,
    job_pages.pages,
    question_pages.pages,
    download_pages.pages,
    release_pages.pages,
    compare_pages.pages,
    ledger_pages.pages,
)


def make_app(studio: Studio) -> App:
    """The application of a studio, as servers take it."""
    studio.nav = tuple(pages.nav for pages in PAGES if pages.nav is not None)
    routes: list[Any] = [route for pages in PAGES for route in pages.routes(studio)]
    static = StaticFiles(directory=str(files("spinney.studio").joinpath("static")))
    inner = Starlette(
        routes=[*routes, Mount("/static", static)],
        exception_handlers={404: _told(studio), 405: _told(studio), 400: _told(studio)},
    )

    def refuse(err: PageError) -> App:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await error_page(Call(studio, Request(scope)), err)(scope, receive, send)

        return answer

    return Guard(inner, doors=studio.doors, port=studio.port, refuse=refuse, largest_upload=studio.largest_upload)


def _told(studio: Studio) -> Any:
    def told(request: Request, err: Exception) -> Response:
        return error_page(Call(studio, request), err)

    return told
