"""Releases in the process beside the server: a file is read once, and only as long as it is the one that was opened."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from spinney.errors import FileError
from spinney.forest.release.model import ForestRelease
from spinney.people.release.model import PeopleRelease
from spinney.release.model import Release
from spinney.release.storage import file_digest, load

if TYPE_CHECKING:
    from spinney.report.contents import ReportContents

LEVEL = 0.95
_MOST = 6  # releases, and contents of reports, that are kept in memory


@lru_cache(maxsize=_MOST)
def loaded(path: str, digest: str) -> Release:
    """The release in a file; a FileError where it is damaged, contradicts itself, or is another one by now."""
    if file_digest(path) != digest:
        raise FileError(f"{path!r} was changed since it was opened; open it again")
    return load(path)


@lru_cache(maxsize=_MOST)
def contents(path: str, digest: str) -> ReportContents:
    """What a report says of a release, pairs and maps included; of many columns this takes seconds."""
    from spinney.report.contents import report_contents

    return report_contents(loaded(path, digest), level=LEVEL)


@lru_cache(maxsize=_MOST)
def maps(path: str, digest: str) -> list[dict[str, Any]]:
    """The maps of a release."""
    from spinney.report.maps_part import maps_part

    return maps_part(loaded(path, digest))


def asked_columns(release: Release) -> dict[str, tuple[Release, str]]:
    """The columns that can be asked about: by the name in questions, what holds each and how it is called there."""
    if isinstance(release, PeopleRelease):
        return {name: (release.persons, own) for name, own in release.askable.items()}
    return {name: (release, name) for name, column in release.schema.items() if column.is_read}


def takes_conditions(release: Release) -> bool:
    """Whether rows can be drawn under a condition; of others, rows that meet it are picked out."""
    return isinstance(release, (ForestRelease, PeopleRelease))
