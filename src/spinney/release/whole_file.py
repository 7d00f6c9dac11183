"""Whether a release file holds its release and nothing else: what `spinney verify` and `spinney sign` look at."""

from __future__ import annotations

from spinney.errors import FileError
from spinney.release.model import Release
from spinney.release.storage import bytes_beside, entries_unwritten, members_unread
from spinney.version import full_version

_MOST_DIFFERENCES = 20


def check_contents(path: str, release: Release) -> tuple[list[str], list[dict[str, str]]]:
    """Nothing stands in the file that is no part of the release; a FileError where something does."""
    unread = members_unread(path, release)
    if unread:
        raise FileError(f"{path!r} holds members that are no part of the release, such as {unread[0]!r}")
    checks, others = [], []
    unwritten = entries_unwritten(path, release)
    version = release.card.spinney_version
    if unwritten and version == full_version():
        shown = ", ".join(unwritten[:_MOST_DIFFERENCES])
        raise FileError(f"{path!r} holds what this version would not write of its release: {shown}")
    if unwritten:
        why = f"spinney {version} wrote it, and this version writes {', '.join(unwritten[:3])} otherwise"
        others.append({"what": "that all of the card follows from the contents", "why": why})
    else:
        checks.append("every member, and every entry of the card, is what this version writes of the release")
    more = bytes_beside(path)
    if more == 0:
        checks.append("nothing stands in the archive beside its members")
    elif more is not None and version == full_version():
        raise FileError(
            f"{path!r} has {more:,} bytes that belong to none of its members; load it and save it again if you trust it"
        )
    else:
        why = "the archive was not written by Spinney as it is now"
        others.append({"what": "what stands in the archive beside its members", "why": why})
    return checks, others
