"""The server of the studio: on this machine only, on a port of its own, with a link that opens it once.

The link goes to the browser in a small file that only its owner may read, because the arguments of a program
can be seen by everybody on the machine. There is no log of requests, and what goes wrong in a page is reported
there.

    studio   one running studio: workspace, sessions, port, navigation
    app      all pages behind the guard
    server   the socket, the link, the browser, and the end
"""

from __future__ import annotations

import os
import socket
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from spinney.errors import FileError, ParameterError
from spinney.machine import load_optional
from spinney_studio import budget, ledger, release, schema, start
from spinney_studio.background import Beside, Shelf
from spinney_studio.jobs import UNFINISHED, Jobs
from spinney_studio.ledger import KnownLedgers
from spinney_studio.pages import Call, Pages, error_page
from spinney_studio.security import App, Doors, Guard, Receive, Scope, Send
from spinney_studio.workspace import PageError, Workspace, write_private

# --------------------------------------------------------------------------------------------------------------- studio
# What one running studio is: its workspace, its doors, its port, and the entries of its navigation.


LARGEST_UPLOAD = 2 << 30  # bytes; larger tables are opened where they are


@dataclass(slots=True)
class Studio:
    """One running studio."""

    workspace: Workspace
    port: int
    ledger: str | None = None  # the one that is offered first
    doors: Doors = field(default_factory=Doors)
    nav: tuple[tuple[str, str], ...] = ()
    largest_upload: int = LARGEST_UPLOAD
    jobs: Jobs = field(init=False)
    beside: Beside = field(default_factory=Beside)
    shelf: Shelf = field(init=False)
    ledgers: KnownLedgers = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.workspace)
        self.shelf = Shelf(self.workspace)
        self.ledgers = KnownLedgers(self.workspace, self.ledger)

    def new_link(self) -> str:
        """An address that opens the studio once."""
        return f"http://127.0.0.1:{self.port}/open?key={self.doors.new_link()}"


# ------------------------------------------------------------------------------------------------------------------ app
# The application: all pages behind the guard.
#
# A module of pages is added by one entry in `PAGES`; `pages.py` says how a page is made.


PAGES: tuple[Pages, ...] = (
    start.start_pages,
    start.entry_pages,
    schema.schema_pages,
    budget.budget_pages,
    start.job_pages,
    release.question_pages,
    release.download_pages,
    release.release_pages,
    release.compare_pages,
    ledger.ledger_pages,
)


def make_app(studio: Studio) -> App:
    """The application of a studio, as servers take it."""
    studio.nav = tuple(pages.nav for pages in PAGES if pages.nav is not None)
    routes: list[Any] = [route for pages in PAGES for route in pages.routes(studio)]
    static = StaticFiles(directory=str(files("spinney_studio").joinpath("static")))
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


# --------------------------------------------------------------------------------------------------------------- server
# The server: a socket that only this machine can reach, and a link in the terminal that opens it once.


HOST = "127.0.0.1"
_OPENER = "open.html"


def listening(port: int, host: str = HOST) -> socket.socket:
    """A socket that only this machine can reach, on a free port where 0 is asked for."""
    if host != HOST:
        raise ParameterError(f"host={host!r}: the studio can be reached from this machine only, at {HOST}")
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((host, port))
        opened.listen()  # from here on nobody is turned away, though the first may wait for a moment
    except (OSError, OverflowError) as err:
        opened.close()
        reason = getattr(err, "strerror", None) or "there is no such port"
        raise FileError(f"port {port} cannot be used: {reason}; choose another --port, or leave it out") from None
    return opened


def serve(
    workspace: Workspace,
    *,
    port: int = 0,
    ledger: str | None = None,
    opens_browser: bool = True,
    say: Callable[[str], object] = print,
) -> None:
    """Serve a workspace until somebody ends it with Ctrl-C."""
    uvicorn = load_optional("uvicorn", "the studio", extra="studio")
    os.environ["PYTHONSAFEPATH"] = "1"  # a module that lies beside a table is not one of ours, in no process of ours
    workspace.hold()
    bound = listening(port)
    studio = Studio(workspace, bound.getsockname()[1], ledger)
    config = uvicorn.Config(
        make_app(studio),
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=2,
    )
    say(f"The studio for {workspace.root.folder} keeps its files in {workspace.folder}.")
    say(f"Open it in a browser of this machine, once, with this link:\n\n  {studio.new_link()}\n")
    say("Press Enter for another link, and Ctrl-C to end it.")
    if opens_browser:
        _open_browser(studio)
    if sys.stdin is not None and sys.stdin.isatty():
        Thread(target=_more_links, args=(studio, say), daemon=True, name="spinney studio links").start()
    try:
        uvicorn.Server(config).run(sockets=[bound])
    finally:
        bound.close()
        if any(job["state"] in UNFINISHED for job in studio.jobs.all()):
            say("A release is still being made; it goes on, and is there when you start the studio again.")
        (workspace.folder / _OPENER).unlink(missing_ok=True)
        workspace.give_back()


def _open_browser(studio: Studio) -> None:
    link = escape(studio.new_link())
    page = (
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={link}"><title>Studio</title>'
    )
    opener = studio.workspace.folder / _OPENER
    write_private(opener, f'{page}<p><a href="{link}">Open the studio</a></p>\n'.encode())
    Thread(target=webbrowser.open, args=(Path(opener).as_uri(),), daemon=True, name="spinney studio browser").start()


def _more_links(studio: Studio, say: Callable[[str], object]) -> None:
    for _line in sys.stdin:
        say(f"\n  {studio.new_link()}\n")
