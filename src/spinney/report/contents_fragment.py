"""A report as a notebook shows it: what is promised and what can be relied on; the page itself is a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.fragments import Lines, fragment
from spinney.report.page import statements
from spinney.report.promise_part import first_figure, percent

if TYPE_CHECKING:
    from spinney.report.contents import ReportContents


def contents_fragment(contents: ReportContents) -> str | None:
    """A piece of HTML; None without jinja2."""
    from spinney.report.contents import HOLDER_ONLY

    promise = contents.promise
    together = promise["together"]
    facts = {
        "released": contents.released,
        "all releases": None if together is None else first_figure(together),
        "guarantee": promise["guarantee"],
        "odds": None if promise["guess"] is None else f"{percent(promise['guess'])} {promise['headline']}",
        "alone": promise["alone"],
        "may be published": "yes" if contents.publishable else "no",
    }
    rows = [[one["name"], one["columns"], one["pairs"]] for one in statements(contents)]
    return fragment(
        f"Report: {contents.title}",
        facts,
        warnings=[*contents.warnings, *([] if contents.holder is None else [HOLDER_ONLY])],
        tables=[Lines("what to rely on", ("statement", "columns", "pairs"), rows, is_open=True)],
        note="save(path) writes the page as .html, or the same as .json.",
    )
