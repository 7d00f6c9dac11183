"""The page of a report: its contents and its drawings in one file of HTML without scripts, and the same as JSON.

Templates escape whatever they are given; what is not printable, such as marks that turn the direction of reading, is
shown as an escape. The only text that is not escaped is of our own making: drawings and the style sheet, whose hash the
page's content security policy holds, so that nothing else can style the page and nothing at all can run in it.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from spinney.errors import ParameterError
from spinney.extras import load_optional
from spinney.files import check_writable, write_whole
from spinney.fragments import finalized, template_environment
from spinney.progress import progress
from spinney.release.answers.answer import STATEMENTS
from spinney.report.contents import HOLDER_ONLY, ReportContents
from spinney.report.promise_part import percent
from spinney.report.questions import counted
from spinney.shown import json_text

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


def write_report(contents: ReportContents, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a report as its ending says, whole or not at all.

    Args:
        contents: what it says.
        path: a file that ends in .html or .json.
        overwrite: whether a file that is already there may be replaced.

    Raises:
        FileError: the file exists, or cannot be written.
        ParameterError: the ending is another one.
    """
    check_report_path(path)
    check_writable(path, overwrite=overwrite)
    is_json = str(path).lower().endswith(".json")
    text = report_json(contents) if is_json else report_html(contents)
    write_whole(path, lambda file: file.write(text.encode()), overwrite=overwrite)


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
        "counted": counted,
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
            utility_figures=utility_figures(contents),
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


# ----------------------------------------------------------------------------------------------------------- drawings


def drawings(contents: ReportContents, most_drawn: int = MOST_DRAWN) -> dict[str, Any]:
    """All drawings of a report as SVG, by what they show."""
    from spinney.report.draw_columns import column_drawing, utility_drawing
    from spinney.report.draw_graph import graph_drawing
    from spinney.report.draw_map import map_drawing
    from spinney.report.draw_overview import belief_drawing, budget_drawing
    from spinney.report.draw_pairs import dependence_drawing, distance_drawing, uncertainty_drawing

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
        "utility": utility_drawing(utility_figures(contents)) if utility_figures(contents) else "",
        "maps": [map_drawing(one, f"map{number}") for number, one in enumerate(contents.maps)],
        "dependence": dependence_drawing(pairs) if is_square else "",
        "uncertainty": uncertainty_drawing(pairs) if is_square and has_shares else "",
        "graph": graph_drawing(graph) if has_graph else "",
        "holder": [
            distance_drawing(table["drawn"], table["pairs"], f"holder{number}") if table["pairs"] else ""
            for number, table in enumerate((contents.holder or {"tables": []})["tables"])
        ],
    }


def _moment(text: str) -> str:
    """A time of a ledger without parts of seconds; other words as they are."""
    return re.sub(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?Z$", r"\1 \2 UTC", text)


def utility_figures(contents: ReportContents) -> list[dict[str, Any]]:
    """Figures of utility that have a name, an estimate and an interval; none where they are told otherwise."""
    figures = contents.utility.get("figures") if isinstance(contents.utility, Mapping) else None
    wanted = {"name", "estimate", "low", "high", "statement"}
    is_known = isinstance(figures, list) and all(isinstance(one, dict) and wanted <= set(one) for one in figures)
    return list(figures) if is_known and figures else []


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
