"""The server: on this machine only, on a port of its own, with a link in the terminal that opens it once.

The link goes to the browser in a small file that only its owner may read, because the arguments of a program can be
seen by everybody on the machine. There is no log of requests, and what goes wrong in a page is told there.
"""

from __future__ import annotations

import os
import socket
import sys
import webbrowser
from collections.abc import Callable
from html import escape
from pathlib import Path
from threading import Thread

from spinney.errors import FileError, ParameterError
from spinney.extras import load_optional
from spinney.studio.app import make_app
from spinney.studio.jobs import UNFINISHED
from spinney.studio.records import write_private
from spinney.studio.studio import Studio
from spinney.studio.workspace import Workspace

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
