"""The way in: a link is exchanged for a session, once."""

from __future__ import annotations

from starlette.responses import Response

from spinney.studio.errors import LockedOutError
from spinney.studio.pages import Call, Pages
from spinney.studio.security import OPEN, cookie_name

pages = Pages()


@pages.get(OPEN)
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
