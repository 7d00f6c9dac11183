"""Who may come in: links that open the studio once, and the sessions that they are exchanged for.

A link is for the person at the terminal. The first browser that follows it gets a session, and the link is used up, so
that a link in a history, a log or a list of processes opens nothing. Links and sessions live in memory only: a studio
that was started anew lets nobody in who has not its new link.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hmac import compare_digest
from secrets import token_urlsafe
from threading import Lock

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
