"""The report of a release, as the studio shows it and hands it out: the page and its JSON twin."""

from __future__ import annotations

from functools import lru_cache

from spinney.report.contents import ReportContents, report_contents
from spinney.report.page import report_html, report_json
from spinney.studio.releases.loaded import LEVEL, contents, loaded

STATED = ("title", "purpose", "contact", "licence")


def report_page(path: str, digest: str, stated: tuple[str, ...]) -> str:
    """The report as one page; `stated` are the texts of `STATED`, in their order."""
    return report_html(_contents(path, digest, stated))


def report_twin(path: str, digest: str, stated: tuple[str, ...]) -> str:
    """The same as JSON."""
    return report_json(_contents(path, digest, stated))


@lru_cache(maxsize=4)
def _contents(path: str, digest: str, stated: tuple[str, ...]) -> ReportContents:
    if not any(stated):
        return contents(path, digest)
    texts = {name: text or None for name, text in zip(STATED, stated, strict=True)}
    return report_contents(loaded(path, digest), level=LEVEL, **texts)
