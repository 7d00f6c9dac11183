"""The first page: what was begun here, what was released, and a table to begin with."""

from __future__ import annotations

from starlette.responses import Response

from spinney.studio.pages import Call, Pages

pages = Pages(nav=("Start", "/"))


@pages.get("/")
def start(call: Call) -> Response:
    """Tables to choose from, drafts to go on with, and releases that were made."""
    return call.page("start.html", title="Start", drafts=call.workspace.drafts(), releases=call.workspace.releases())
