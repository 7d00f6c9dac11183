"""What pages of releases share: the release that an address names, waiting for work beside the server, pictures."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from spinney.errors import ParameterError, SpinneyError
from spinney.privacy.ledger import Ledger
from spinney.studio.errors import MissingPageError
from spinney.studio.pages import Call, Page
from spinney.studio.releases.beside import StillWorking
from spinney.studio.releases.described import overview
from spinney.studio.releases.opened import OpenedRelease
from spinney.studio.releases.pictures import POLICY
from spinney.studio.releases.reported import LedgerAt

_PICTURE_WAIT = 120.0  # seconds; a picture comes late rather than not at all


def patient(page: Callable[[Call], Response]) -> Page:
    """A page that says what it waits for where that takes long, and asks again by itself."""

    @wraps(page)
    def shown(call: Call) -> Response:
        try:
            return page(call)
        except StillWorking as err:
            return call.page("waiting.html", title="One moment", status=202, work=err.title, seconds=round(err.seconds))

    return shown


def release_of(call: Call) -> OpenedRelease:
    """The release that the address of a page names."""
    return call.studio.shelf.by_key(call.path["key"])


def overview_of(call: Call, opened: OpenedRelease) -> dict[str, Any]:
    """What is known of a release without working anything out."""
    found: dict[str, Any] = call.studio.beside.answer("reading the release", overview, *opened.at)
    return found


def ledger_of(call: Call, opened: OpenedRelease) -> tuple[LedgerAt | None, str]:
    """The ledger that paid for a release, as its job has it; or none, and why it cannot be read where there is one."""
    key = opened.origin.get("job")
    try:
        said = call.workspace.job(str(key))["ledger"] if key else None
    except MissingPageError:
        said = None
    if said is None:
        return None, ""
    try:
        account = Ledger.open(said["place"], population=said["population"])
        return (said["place"], said["population"], account.head), ""
    except SpinneyError as err:
        return None, f"The ledger that paid for this release cannot be read: {err}"


def answer(call: Call, title: str, work: Callable[..., Any], *arguments: Any, is_slow: bool = False) -> Any:
    """What came of some work beside the server."""
    return call.studio.beside.answer(title, work, *arguments, is_slow=is_slow)


def picture(call: Call, work: Callable[..., str], *arguments: Any, is_slow: bool = False) -> Response:
    """A drawing as a file of its own, which a browser may keep: its address holds all that it follows from."""
    drawn = call.studio.beside.answer("drawing", work, *arguments, is_slow=is_slow, wait=_PICTURE_WAIT)
    headers = {"content-security-policy": POLICY, "cache-control": "private, max-age=31536000, immutable"}
    return Response(drawn, media_type="image/svg+xml", headers=headers)


def picture_address(opened: OpenedRelease, name: str, **query: Any) -> str:
    """Where a picture of a release is."""
    asked = urlencode({key: value for key, value in query.items() if value not in ("", None, False)})
    return f"/releases/{opened.digest}/{name}.svg" + (f"?{asked}" if asked else "")


def whole(text: str | None, name: str, most: int = 10_000) -> int:
    """A small whole number of an address."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 6 or int(text) > most:
        raise ParameterError(f"{name} is not a whole number up to {most:,}")
    return int(text)
