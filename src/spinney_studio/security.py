"""What every request passes before a page sees it, what every answer carries, and who may come in.

    Host            has to be this studio's own name and port: another name that leads here is refused
                    (DNS rebinding)
    Sec-Fetch-Site  other sites, and other ports of this machine, may not ask for anything but to open a link
    Origin          of an unsafe method has to be this studio, by this header or, where a browser hides it, by
                    the one above; a form carries the token of its session as well
    Cookie          one, HttpOnly and SameSite=Strict, which a link was exchanged for; without it there is no
                    page
    Content-Length  bounded; what is streamed is counted as it comes

Answers may hold nothing but what this server sends: no script or style inside a page, nothing from elsewhere,
no frame around it; they are not stored by browsers and tell other sites nothing. The first part exchanges links
for sessions; the second is the guard.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from secrets import token_urlsafe
from threading import Lock
from typing import Any

from spinney_studio.workspace import LockedOutError, PageError, RefusedError, TooLargeError

# ------------------------------------------------------------------------------------------------------------- sessions
# Who may come in: links that open the studio once, and the sessions that they are exchanged for.
#
# A link is for the person at the terminal. The first browser that follows it gets a session, and the link is used up,
# so that a link in a history, a log or a list of processes opens nothing. Links and sessions live in memory only: a
# studio that was started anew lets nobody in who has not its new link.


_BYTES = 32


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that came in, and the token that its forms carry."""

    key: str = field(default_factory=lambda: token_urlsafe(_BYTES))
    form_token: str = field(default_factory=lambda: token_urlsafe(_BYTES))

    def has_form_token(self, given: str | None) -> bool:
        """Whether a form carries the token of this session."""
        return is_same(self.form_token, given)


class Doors:
    """Links that are not used up, and sessions that are open."""

    def __init__(self) -> None:
        self._links: list[str] = []
        self._sessions: list[Session] = []
        self._lock = Lock()

    def new_link(self) -> str:
        """A token that opens the studio once."""
        token = token_urlsafe(_BYTES)
        with self._lock:
            self._links.append(token)
        return token

    def enter(self, token: str | None) -> Session | None:
        """A new session for a token that was not used before, which is used up by this; else None."""
        with self._lock:
            kept = [link for link in self._links if not is_same(link, token)]
            if len(kept) == len(self._links):
                return None
            self._links = kept
            session = Session()
            self._sessions.append(session)
            return session

    def session(self, key: str | None) -> Session | None:
        """The session that a cookie names."""
        found = None
        for session in self._sessions:  # all of them are compared, whichever it is
            if is_same(session.key, key):
                found = session
        return found


def is_same(secret: str, given: str | None) -> bool:
    """Whether a secret is what was given, in a time that does not depend on where they differ."""
    return compare_digest(secret.encode(), (given or "").encode("utf-8", "surrogatepass"))


# ---------------------------------------------------------------------------------------------------------------- guard
# The guard: checks of every request in the order of the table above, and headers of every answer.


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NAMES = ("127.0.0.1", "localhost")
OPEN = "/open"
STATIC = "/static/"
_SAFE = ("GET", "HEAD")
LARGEST_FORM = 4 << 20  # bytes, of any form but an upload

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def cookie_name(port: int) -> str:
    """The name of the one cookie. Cookies do not tell ports apart, so the name does."""
    return f"spinney-studio-{port}"


class Guard:
    """An application behind these checks. `refuse` makes the page that says what is wrong."""

    def __init__(
        self, app: App, *, doors: Doors, port: int, refuse: Callable[[PageError], App], largest_upload: int
    ) -> None:
        self._app = app
        self._doors = doors
        self._port = port
        self._refuse = refuse
        self._largest_upload = largest_upload

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # a socket is closed without an answer
        guarded = _with_headers(send)
        try:
            session = self._admitted(scope)
            most = self._most_bytes(scope)
        except PageError as err:
            await self._refuse(err)(scope, receive, guarded)
            return
        scope.setdefault("state", {})["session"] = session
        await self._app(scope, _bounded(receive, most), guarded)

    def _admitted(self, scope: Scope) -> Session | None:
        """The session of a request; an error where it may not be answered."""
        headers = _headers(scope)
        host = headers.get("host", "")
        if host not in {f"{name}:{self._port}" for name in NAMES}:
            raise RefusedError(
                f"This studio answers at http://127.0.0.1:{self._port} only; another name was asked for. "
                "Use the link that the terminal shows."
            )
        path = scope["path"]
        if scope["method"] not in _SAFE:
            self._check_origin(headers, host)
        elif path != OPEN and headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise RefusedError("Another site has asked for this page. Open it from within the studio.")
        if path == OPEN or path.startswith(STATIC):
            return None
        session = self._doors.session(_cookie(headers, cookie_name(self._port)))
        if session is None:
            raise LockedOutError(
                "This browser has no session with the studio, or the studio was started anew since. Use the link that "
                "the terminal shows; press Enter there for a new one. Drafts and releases are kept."
            )
        return session

    @staticmethod
    def _check_origin(headers: dict[str, str], host: str) -> None:
        # Browsers that are told to send no referrer send no origin with a form; they say then that it is the same one.
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        is_ours = origin == f"http://{host}" and site in (None, "same-origin")
        if not is_ours and not (origin == "null" and site == "same-origin"):
            raise RefusedError(
                "This form was not sent by a page of this studio, so nothing was done. Go back, load the page again, "
                "and send it from there."
            )

    def _most_bytes(self, scope: Scope) -> int:
        most = self._largest_upload if scope["path"] in UPLOADS else LARGEST_FORM
        length = _headers(scope).get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > most:
            raise TooLargeError(f"At most {most >> 20:,} MiB can be sent at once, and this is more.")
        return most


UPLOAD = "/tables/upload"
RELEASE_UPLOAD = "/releases/upload"
UPLOADS = (UPLOAD, RELEASE_UPLOAD)


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _cookie(headers: dict[str, str], name: str) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return None if found is None else found.value


def _with_headers(send: Send) -> Send:
    """An answer with the headers of every answer; those that a page states itself, such as a policy, stay."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            stated = {name.lower() for name, _ in message.get("headers", ())}
            ours = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in stated]
            message["headers"] = [*message.get("headers", ()), *ours]
        await send(message)

    return sending


def _bounded(receive: Receive, most: int) -> Receive:
    """What is sent to us, counted: where it is more than was allowed, the page is told so."""
    n_bytes = 0

    async def receiving() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b"") or b"")
        if n_bytes > most:
            raise TooLargeError(f"At most {most >> 20:,} MiB can be sent at once, and this is more.")
        return message

    return receiving
