"""A report: its contents as plain data, and the two renderings of them, a page of HTML and JSON. PUBLIC.

One function makes the contents; page, JSON and notebook render the same data. Everything comes from the release
and from what the holder states beside it. Figures of the real table are handed in as plain numbers and turn the
report into one that must not be published. The page is one file without scripts, whose content security policy
admits its own style sheet only.

    contents   `ReportContents`, and what goes into it
    page       writing .html and .json; how numbers and entries read
    drawings   which drawings a page has, and its table of contents
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from spinney.documents import Document, Documented, Facts, Table, finalized, template_environment
from spinney.errors import ParameterError
from spinney.files import check_writable, write_whole
from spinney.machine import load_optional
from spinney.progress import progress, waiting
from spinney.release.answers.answer import STATEMENTS
from spinney.release.release import Release
from spinney.report.columns import columns_part, drawn_for, maps_part, pairs_part, persons_table, report_bars
from spinney.report.parts import (
    UNKNOWN,
    account_part,
    budget_part,
    evidence_part,
    first_figure,
    model_part,
    percent,
    promise_part,
    schema_part,
    together_part,
)
from spinney.report.questions import board_questions, nist_questions, released_in_words
from spinney.text import as_given, json_text, many

# ------------------------------------------------------------------------------------------------------------- contents
# What a report says, as plain data: one function makes it, and the page and the JSON are two renderings of it.
#
# Everything comes from the release, which is public, and from what the holder states beside it: a title, a purpose, a
# contact, a licence, a ledger. What is computed from the real table (`holder`) is handed in as plain numbers by
# whoever may see it, and turns the report into one that must not be published.


# One more whenever an entry of the JSON comes, goes or means something else, so that a program knows what to expect.
REPORT_VERSION = 5
HOLDER_ONLY = (
    "FOR THE HOLDER ONLY. This report holds figures that were computed from the real table without noise. Do not "
    "publish it, and do not choose parameters by it."
)
_LONGEST_TEXT = 4_000
_STATED = ("title", "purpose", "contact", "licence")


@dataclass(frozen=True, slots=True)
class ReportContents(Documented):
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
    utility: Mapping[str, Any] | None
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

    def document(self) -> Document:
        """What is promised and what can be relied on, in short; the page itself is a file."""
        promise, together = self.promise, self.promise["together"]
        facts = [
            ("released", self.released),
            ("all releases", None if together is None else first_figure(together)),
            ("guarantee", promise["guarantee"]),
            ("odds", None if promise["guess"] is None else f"{percent(promise['guess'])} {promise['headline']}"),
            ("alone", promise["alone"]),
            ("may be published", "yes" if self.publishable else "no"),
        ]
        rows = [[one["name"], one["columns"], one["pairs"]] for one in statements(self)]
        table = Table("what to rely on", ("statement", "columns", "pairs"), rows, is_open=True)
        warnings = [*self.warnings, *([] if self.holder is None else [HOLDER_ONLY])]
        note = "save(path) writes the page as .html, or the same as .json."
        return Document(f"Report: {self.title}", [Facts(facts), table], warnings, note)

    def with_holder(self, figures: Mapping[str, Any]) -> ReportContents:
        """The same report beside figures of the real table: for the holder only."""
        return replace(self, holder=figures)

    def to_html(self) -> str:
        """The report as one page of HTML; MissingExtraError without jinja2 or matplotlib."""
        return report_html(self)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the report as the ending says, .html or .json, whole or not at all.

        Args:
            path: the file.
            overwrite: whether a file that is already there may be replaced.

        Raises:
            FileError: the file exists, or cannot be written.
            ParameterError: the ending is another one.
        """
        check_report_path(path)
        check_writable(path, overwrite=overwrite)
        is_json = str(path).lower().endswith(".json")
        write_whole(path, report_json(self) if is_json else report_html(self), overwrite=overwrite)

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
    drawn = drawn_for(release, bars)
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
        "utility": None  # figures that were measured and paid for, and may be published
        if (measured := release.utility) is None
        else measured.to_dict() | {"compared": measured.compared, "remarks": list(measured.remarks)},
        "schema": schema_part(release),
        "evidence": evidence,
    }
    found["released"] = released_in_words(found)
    found["nist"], found["board"] = nist_questions(found), board_questions(found)
    return ReportContents(title=stated["title"] or "Synthetic table", cuts=shown.cuts, **found)


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


# ----------------------------------------------------------------------------------------------------------------- page
# The page of a report: its contents and its drawings in one file of HTML without scripts, and the same as JSON.
#
# Templates escape whatever they are given; what is not printable, such as marks that turn the direction of
# reading, is shown as an escape. The only text that is not escaped is of our own making: drawings and the style
# sheet, whose hash the page's content security policy holds, so that nothing else can style the page and
# nothing at all can run in it.


ENDINGS = (".html", ".json")
# Columns that are drawn; the rest stand in tables. A page of so many stays well below three megabytes.
MOST_DRAWN = 48
_FIGURE_WORDS = {
    "one-way mean": "how far single columns are off, on average",
    "one-way worst": "how far the worst column is off",
    "two-way mean": "how far pairs of columns are off, on average",
    "two-way worst": "how far the worst pair is off",
}
LARGEST = 3_000_000  # bytes
_LONGEST = 4_000  # characters of a text
_FEW_DRAWN, _SHORT = 12, 80  # of a page that would be larger
_MOST_REASONS = 8
_MOST_DIGITS = 10**15  # numbers from here on are shown as they come

MEANINGS = {
    "certified": "holds with the stated probability over the noise of the release, whatever the rows of the table are",
    "calibrated": "allows for noise, for where rows lie in their boxes and for misfit; rests on a model",
    "indicative": "widened by what was found, and known to be wrong at times: read signs and sizes, test nothing",
    "not supported": "the release does not know: the figure comes from the model, and has no interval",
}


def check_report_path(path: str | Path) -> None:
    """Raise unless a report can be written as the ending says: before any work, also where a library is missing."""
    if not str(path).lower().endswith(ENDINGS):
        raise ParameterError(f"report {str(path)!r} does not end in {' or '.join(ENDINGS)}")
    if str(path).lower().endswith(".html"):
        for module in ("jinja2", "matplotlib.figure"):
            load_optional(module, "a page", extra="report", otherwise="write a .json file")


def report_json(contents: ReportContents) -> str:
    """The report for programs: everything that the page says."""
    return json_text(contents.to_dict()) + "\n"


def report_html(contents: ReportContents) -> str:
    """The report as one page; MissingExtraError without jinja2 or matplotlib.

    A page that would be too large, as names of thousands of characters make it, is made again with fewer drawings and
    texts cut short.
    """
    text = _rendered(contents, MOST_DRAWN, _LONGEST)
    return text if len(text.encode()) <= LARGEST else _rendered(contents, _FEW_DRAWN, _SHORT)


def _rendered(contents: ReportContents, most_drawn: int, longest: int) -> str:
    markup = load_optional("markupsafe", "a report", extra="report").Markup
    environment = template_environment().overlay(finalize=lambda value: finalized(value, longest))
    ours = {
        "rounded": rounded,
        "percent": percent,
        "flat": _flat,
        "apart": _apart,
        "counted": many,
        "moment": _moment,
    }
    environment.filters = environment.filters | ours
    style = files("spinney.report").joinpath("templates/style.css").read_text("utf-8")
    hashed = b64encode(sha256(style.encode()).digest()).decode()
    found = drawings(contents, most_drawn)
    return str(
        environment.get_template("report.html").render(
            it=contents,
            holder_only=HOLDER_ONLY,
            drawings=_marked(found, markup),
            reals=reals_of(contents),
            sections=_sections(contents, found),
            statements=statements(contents),
            figure_words=_FIGURE_WORDS,
            reasons=list(dict.fromkeys(column["why"] for column in contents.columns if column["why"]))[:_MOST_REASONS],
            style=markup(style),
            style_hash=f"sha256-{hashed}",
        )
    )


def rounded(value: float, digits: int | None = 0) -> str:
    """A number as people read it: thousands apart; with digits=None as short as it can be said."""
    if digits is None:
        return f"{value:.4g}"
    if not math.isfinite(value):
        return str(value)
    text = f"{value:,.{digits}f}"
    return text.removeprefix("-") if float(text.replace(",", "")) == 0 else text


def _apart(value: Any) -> Any:
    """A bound as people read it: thousands of a large number apart, and nothing rounded; years stay as they are."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{value:,}" if is_number and 10_000 <= abs(value) < _MOST_DIGITS else value


def _flat(entries: Mapping[str, Any], before: str = "", depth: int = 0) -> dict[str, str]:
    """Entries and entries of entries, by their full names, as texts."""
    found: dict[str, str] = {}
    for name, value in entries.items():
        if isinstance(value, Mapping) and depth < 3:
            found |= _flat(value, f"{before}{name}, ", depth + 1)
        else:
            text = _entry(value)
            found[f"{before}{name}"] = text if len(text) <= 300 else f"{text[:300]}…"
    return found


def _entry(value: Any) -> str:
    """An entry as people read it: yes and no, and lists without brackets."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_entry(part)}" for name, part in value.items())
    if isinstance(value, list):
        between = "; " if any(isinstance(part, (list, Mapping)) for part in value) else ", "
        return between.join(map(_entry, value)) or "none"
    return str(value)


# ------------------------------------------------------------------------------------------------------------- drawings
# Which drawings a page has, by what they show, and what stands beside them.


def drawings(contents: ReportContents, most_drawn: int = MOST_DRAWN) -> dict[str, Any]:
    """All drawings of a report as SVG, by what they show."""
    from spinney.report.draw import (
        belief_drawing,
        budget_drawing,
        column_drawing,
        graph_drawing,
        map_drawing,
        pairs_drawing,
        utility_drawing,
    )

    pairs, reals = contents.pairs, reals_of(contents)
    drawn = [column if column["bars"] and place < most_drawn else None for place, column in enumerate(contents.columns)]
    graph = contents.model["graph"]
    is_square = len(pairs["names"]) > 2 and bool(pairs["pairs"])
    has_shares = any(pair["share"] is not None for pair in pairs["pairs"])
    has_graph = graph is not None and bool(graph["lines"])
    return {
        "belief": belief_drawing(contents.promise) if contents.promise["is_private"] else "",
        "budget": budget_drawing(contents.budget) if contents.budget else "",
        "columns": [
            None if column is None else column_drawing(column, f"c{number}", reals.get(column["key"]))
            for number, column in enumerate(progress(drawn, "drawing columns", unit="column"), 1)
        ],
        "utility": utility_drawing(contents.utility["figures"]) if contents.utility else "",
        "maps": [map_drawing(one, f"map{number}") for number, one in enumerate(contents.maps)],
        "dependence": pairs_drawing("dependence", pairs["names"], pairs["pairs"]) if is_square else "",
        "uncertainty": pairs_drawing("uncertainty", pairs["names"], pairs["pairs"]) if is_square and has_shares else "",
        "graph": graph_drawing(graph) if has_graph else "",
        "holder": [
            pairs_drawing("distance", table["drawn"], table["pairs"], f"holder{number}") if table["pairs"] else ""
            for number, table in enumerate((contents.holder or {"tables": []})["tables"])
        ],
    }


def _moment(text: str) -> str:
    """A time of a ledger without parts of seconds; other words as they are."""
    return re.sub(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?Z$", r"\1 \2 UTC", text)


def reals_of(contents: ReportContents) -> Mapping[str, Any]:
    """By column what the real table holds for each bar; nothing of a report that may be published."""
    found: dict[str, Any] = {column["key"]: None for column in contents.columns}
    return found | dict((contents.holder or {}).get("bars", {}))


def _marked(found: Any, markup: Any) -> Any:
    if isinstance(found, dict):
        return {name: _marked(value, markup) for name, value in found.items()}
    if isinstance(found, list):
        return [_marked(value, markup) for value in found]
    return markup(found) if found else found


def _sections(contents: ReportContents, found: Mapping[str, Any]) -> list[dict[str, str]]:
    """What stands in the table of contents."""
    every = [
        ("promise", "Promise", True),
        ("known", "What to rely on", True),
        ("columns", "Columns", True),
        ("maps", "Map", bool(contents.maps)),
        ("pairs", "Pairs", bool(contents.pairs["pairs"])),
        ("graph", "Dependences", bool(found["graph"])),
        ("rows", "Rows of persons", bool(contents.model["rows"])),
        ("utility", "Utility" if contents.utility is not None else "Utility (not measured)", True),
        ("holder", "Real beside synthetic", contents.holder is not None),
        ("budget", "Budget", True),
        ("schema", "Schema", True),
        ("nist", "NIST SP 800-226", True),
        ("board", "Review board", True),
        ("check", "How to check", True),
    ]
    return [{"id": name, "name": said} for name, said, is_there in every if is_there]


def statements(contents: ReportContents) -> list[dict[str, Any]]:
    """How many columns and pairs carry each kind of statement."""
    return [
        {
            "name": name,
            "means": MEANINGS[name],
            "columns": sum(column["statement"] == name for column in contents.columns),
            "pairs": sum(pair["statement"] == name and pair["is_looked_at"] for pair in contents.pairs["pairs"]),
        }
        for name in STATEMENTS
    ]
