"""Short pieces of HTML that notebooks show for an object: a title, a few facts, a table; everything escaped.

A fragment is one element with its own small style sheet, which reaches nothing outside of it. It follows light and dark
pages, holds no script and refers to nothing. Without jinja2 there is none, and a notebook shows the text instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from spinney.errors import MissingExtraError
from spinney.machine import load_optional
from spinney.text import cut, printable

MOST_LINES = 30
_LONGEST_FACT = 600
_LONGEST_TEXT = 4_000
# A cell that is a number, with or without a unit, or stands for one that is missing.
_NUMBER = re.compile(r"-|[-−±]?[0-9][0-9,.e-]*( %)?")


@dataclass(frozen=True, slots=True)
class Lines:
    """A table of a fragment."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    is_open: bool = False  # shown at once; others are folded away until somebody opens them
    longest: int = 200  # characters of a cell that are shown


def fragment(
    title: str,
    facts: Mapping[str, Any],
    *,
    warnings: Sequence[str] = (),
    tables: Sequence[Lines] = (),
    note: str = "",
) -> str | None:
    """A piece of HTML for a notebook; None without jinja2. The first rows of long tables, and how many more there are.

    Args:
        title: what is shown.
        facts: a few names and values.
        warnings: what has to be seen first.
        tables: what stands below them, open or folded away.
        note: a sentence at the end.
    """
    try:
        template = template_environment().get_template("fragment.html")
    except MissingExtraError:
        return None
    return str(
        template.render(
            title=title,
            facts={name: _short(value, _LONGEST_FACT) for name, value in facts.items() if value not in (None, "")},
            warnings=warnings,
            tables=[_table(lines) for lines in tables if lines.rows],
            note=note,
        )
    )


def _table(lines: Lines) -> dict[str, Any]:
    """A table for the template: what is shown of its rows, and which of its columns are numbers."""
    rows = [[_short(cell, lines.longest) for cell in row] for row in lines.rows[:MOST_LINES]]
    numbers = [all(map(_NUMBER.fullmatch, column)) for column in zip(*rows, strict=True)]
    return {
        "caption": lines.caption,
        "heads": list(zip(lines.heads, numbers, strict=True)),
        "rows": [list(zip(row, numbers, strict=True)) for row in rows],
        "more": max(0, len(lines.rows) - MOST_LINES),
        "is_open": lines.is_open,
    }


@cache
def template_environment() -> Any:
    """Jinja with our templates, which escape everything; MissingExtraError without jinja2."""
    jinja2 = load_optional("jinja2", "a report", extra="report")
    return jinja2.Environment(
        loader=jinja2.PackageLoader("spinney", "report/templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def finalized(value: Any, longest: int = _LONGEST_TEXT) -> Any:
    """What a template shows of a value: what is not printable as an escape, no more than so many characters."""
    if isinstance(value, str) and not hasattr(value, "__html__"):  # which our own markup has
        return cut(printable(value), longest)
    return "" if value is None else value


def _short(value: Any, longest: int) -> str:
    text = str(value)
    return text if len(text) <= longest else f"{text[:longest]}…"
