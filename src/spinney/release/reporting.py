"""What a report is to those who ask a release for one; the room that makes reports is above, and is found on use."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from spinney.release.model import Release


class Report(Protocol):
    """What a report says, as plain data that can be shown or saved."""

    @property
    def publishable(self) -> bool:
        """Whether it holds nothing that was computed from the real table, and its guarantee is not void."""
        ...

    @property
    def cuts(self) -> Mapping[str, list[Any]]:
        """By column what each of its bars stands for."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data."""
        ...

    def to_html(self) -> str:
        """The report as one page."""
        ...

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write it as the ending says, .html or .json."""
        ...

    def with_holder(self, figures: Mapping[str, Any]) -> Report:
        """The same beside figures of the real table."""
        ...


def report_of(release: Release, path: str | Path | None, *, overwrite: bool, **options: Any) -> Report:
    """The report of a release, written to a file where one is named."""
    made: Report = import_module("spinney.report.contents").released_report(
        release, path, overwrite=overwrite, **options
    )
    return made
