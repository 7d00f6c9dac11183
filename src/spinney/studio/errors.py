"""What a page may answer instead of itself: each error has a status, and a message that may be shown."""

from __future__ import annotations

from spinney.errors import SpinneyError


class PageError(SpinneyError):
    """A request that cannot be answered as it was asked."""

    status = 400
    title = "This cannot be done"


class MissingPageError(PageError):
    """There is nothing at this address, or not any more."""

    status = 404
    title = "There is no such page"


class RefusedError(PageError):
    """The request does not come from a page of this studio, or without the key to it."""

    status = 403
    title = "This request was refused"


class LockedOutError(RefusedError):
    """The browser has not come through a link of this studio."""

    title = "Open the studio with its link"


class OutdatedError(PageError):
    """A form was filled in while what it is about was changed in another tab."""

    status = 409
    title = "This was changed in another tab"


class BusyError(PageError):
    """As much is under way as this machine should do at once."""

    status = 503
    title = "One moment"


class TooLargeError(PageError):
    """A form or a file is larger than the studio takes."""

    status = 413
    title = "This is too large"
