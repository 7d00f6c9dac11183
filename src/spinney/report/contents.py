"""What a report says, as plain data: one function makes it, and the page and the JSON are two renderings of it.

Everything comes from the release, which is public, and from what the holder states beside it: a title, a purpose, a
contact, a licence, a ledger. What is computed from the real table (`holder`) is handed in as plain numbers by whoever
may see it, and turns the report into one that must not be published.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from spinney.errors import ParameterError
from spinney.files import check_writable
from spinney.progress import waiting
from spinney.release.answers.bars import ErrorBars
from spinney.release.model import Release
from spinney.report.board import board_questions, released_in_words
from spinney.report.columns_part import columns_part, drawn_tables, persons_table
from spinney.report.described_part import model_part, schema_part
from spinney.report.evidence_part import evidence_part
from spinney.report.maps_part import maps_part
from spinney.report.pairs_part import pairs_part, report_bars
from spinney.report.promise_part import promise_part, together_part
from spinney.report.questions import nist_questions
from spinney.report.spending_part import UNKNOWN, account_part, budget_part
from spinney.shown import as_given

# One more whenever an entry of the JSON comes, goes or means something else, so that a program knows what to expect.
REPORT_VERSION = 3
HOLDER_ONLY = (
    "FOR THE HOLDER ONLY. This report holds figures that were computed from the real table without noise. Do not "
    "publish it, and do not choose parameters by it."
)
_LONGEST_TEXT = 4_000
_STATED = ("title", "purpose", "contact", "licence")


@dataclass(frozen=True, slots=True)
class ReportContents:
    """All parts of a report, each plain data. `to_dict` is the JSON twin of the page."""

    title: str
    released: str  # what was released, and for whom, in a sentence
    stated: Mapping[str, str | None]
    warnings: list[str]  # what voids the guarantee
    promise: Mapping[str, Any]
    account: Mapping[str, Any]
    budget: list[dict[str, Any]]
    model: Mapping[str, Any]
    columns: list[dict[str, Any]]
    columns_left_out: int
    pairs: Mapping[str, Any]
    maps: list[dict[str, Any]]
    remarks: list[str]
    utility: Any
    schema: list[dict[str, Any]]
    nist: list[dict[str, str]]
    board: list[dict[str, str]]
    evidence: Mapping[str, Any]
    holder: Mapping[str, Any] | None = None  # figures of the real table
    cuts: Mapping[str, list[Any]] = field(default_factory=dict, repr=False)  # what bars stand for; not part of the JSON

    @property
    def publishable(self) -> bool:
        """Whether the report holds nothing that was computed from the real table, and its guarantee is not void."""
        return self.holder is None and not self.warnings

    def __repr__(self) -> str:
        state = "publishable" if self.publishable else "NOT FOR PUBLICATION"
        return f"ReportContents({self.title!r}, {len(self.columns)} columns, {state})"

    def _repr_html_(self) -> str | None:
        from spinney.report.contents_fragment import contents_fragment

        return contents_fragment(self)

    def with_holder(self, figures: Mapping[str, Any]) -> ReportContents:
        """The same report beside figures of the real table: for the holder only."""
        return replace(self, holder=figures)

    def to_html(self) -> str:
        """The report as one page of HTML; MissingExtraError without jinja2 or matplotlib."""
        from spinney.report.page import report_html

        return report_html(self)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the report as the ending says, .html or .json, whole or not at all.

        Args:
            path: the file.
            overwrite: whether a file that is already there may be replaced.

        Raises:
            FileError: the file exists, or cannot be written.
        """
        from spinney.report.page import write_report

        write_report(self, path, overwrite=overwrite)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data."""
        head = {
            "report": "spinney",
            "report_version": REPORT_VERSION,
            "publishable": self.publishable,
            "notice": HOLDER_ONLY if self.holder is not None else None,
        }
        parts = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "cuts"}
        return head | {name: dict(part) if isinstance(part, Mapping) else part for name, part in parts.items()}


def released_report(release: Release, path: str | Path | None, *, overwrite: bool, **options: Any) -> ReportContents:
    """What `Release.report` gives: the contents, and a file where one is wanted, whose name is looked at first."""
    if path is not None:
        from spinney.report.page import check_report_path

        check_report_path(path)
        check_writable(path, overwrite=overwrite)
    contents = report_contents(release, **options)
    if path is not None:
        contents.save(path, overwrite=overwrite)
    return contents


@waiting("reading the release")
def report_contents(
    release: Release,
    *,
    ledger: Any = None,
    title: str | None = None,
    purpose: str | None = None,
    contact: str | None = None,
    licence: str | None = None,
    made: str | None = None,
    level: float = 0.95,
) -> ReportContents:
    """Everything that a report says about a release. Costs no epsilon.

    Args:
        release: what `sp.load` returns, or `release_` of a fitted model.
        ledger: the account that it was charged to, where it is to be shown.
        title: what the holder calls the table.
        purpose: what the table was collected and is released for, in the holder's words; by default what the ledger has
            of the charges of this release.
        contact: whom readers may ask.
        licence: under which terms the rows may be used.
        made: when the release was made, where that is on record elsewhere than in a ledger.
        level: the probability that intervals hold with.

    Raises:
        ParameterError: a text is no text or too long, or the level is not between 0 and 1.
    """
    stated = _stated(title=title, purpose=purpose, contact=contact, licence=licence)
    card = release.card
    bars = report_bars(release, level)
    drawn = drawn_tables(release) if _needs_rows(release, bars) else {}
    shown, evidence = columns_part(release, bars, drawn), evidence_part(release)
    account = account_part(card, ledger, evidence["digest"]) | {"made": made}
    together = None
    if ledger is not None:
        together = together_part(card, ledger, has_this=account["ledger"]["has_this"])
        purposes = dict.fromkeys(event["purpose"] for event in account["events"] if event["purpose"] != UNKNOWN)
        stated["purpose"] = stated["purpose"] or "; ".join(purposes) or None
    found: dict[str, Any] = {
        "stated": stated,
        "warnings": list(card.to_dict()["warnings"]),
        "promise": promise_part(card, together),
        "account": account,
        "budget": budget_part(card),
        "model": model_part(release),
        "columns": shown.columns,
        "columns_left_out": shown.n_left_out,
        "pairs": pairs_part(release, bars, drawn.get(persons_table(release) or "")),
        "maps": maps_part(release),
        "remarks": list(card.remarks),
        "utility": _utility(release),
        "schema": schema_part(release),
        "evidence": evidence,
    }
    found["released"] = released_in_words(found)
    found["nist"], found["board"] = nist_questions(found), board_questions(found)
    return ReportContents(title=stated["title"] or "Synthetic table", cuts=shown.cuts, **found)


def _needs_rows(release: Release, bars: ErrorBars) -> bool:
    """Whether something has to be told by synthetic rows; a forest whose columns all have bars needs none."""
    return release.kind != "forest" or not bars.columns or any(column.answers is None for column in bars.columns)


def _stated(**texts: Any) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in _STATED:
        text = texts[name]
        if text is not None and (not isinstance(text, str) or len(text) > _LONGEST_TEXT):
            raise ParameterError(
                f"{name}={as_given(text) if not isinstance(text, str) else '...'} is not a text of at most "
                f"{_LONGEST_TEXT:,} characters"
            )
        found[name] = text or None
    return found


def _utility(release: Release) -> Any:
    """Figures that may be published of how far the release is from the table, where they were measured and paid for."""
    measured = getattr(release, "utility", None)
    if measured is None:
        return None
    described = getattr(measured, "to_dict", None)
    found = (
        described() if callable(described) else measured if isinstance(measured, dict) else {"figures": str(measured)}
    )
    compared = getattr(measured, "compared", None)
    words = {"compared": compared, "remarks": list(getattr(measured, "remarks", ()))}
    return dict(found) | (words if isinstance(compared, str) else {})
