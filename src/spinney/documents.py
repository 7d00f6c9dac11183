"""Documents: what a result says as a title, facts, tables and lists, and its two short renderings, text and HTML.

A result has one `document()`. `print` shows it as a page of text of at most a hundred characters a line, notebooks
show it as a piece of HTML. A piece is one element with its own small style sheet, which reaches nothing outside of
it, follows light and dark pages, holds no script and refers to nothing. Without jinja2 a notebook shows the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from spinney.errors import MissingExtraError
from spinney.machine import load_optional
from spinney.text import WIDTH, cut, more, printable, wrapped

MOST_LINES = 30
_LONGEST_FACT = 600
_LONGEST_TEXT = 4_000
_NAMES = 12  # characters of a fact's name
# A cell that is a number, with or without a unit, or stands for one that is missing.
_NUMBER = re.compile(r"-|[-−±]?[0-9][0-9,.e-]*( %)?")


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and texts; facts of nothing are left out. Of a tuple, each is a line of its own."""

    pairs: Sequence[tuple[str, Any]]

    def lines(self) -> list[str]:
        """Each fact beside its name, wrapped."""
        found = []
        for name, value in self.pairs:
            first, rest = f"  {name:<{_NAMES}}", " " * (_NAMES + 2)
            if isinstance(value, tuple):
                found += [f"{rest if place else first}{line}" for place, line in enumerate(value)]
            elif value not in (None, ""):
                found += wrapped(str(value), first, rest)
        return found

    def shown(self) -> dict[str, Any]:
        """The facts for the template."""
        texts = [(name, "; ".join(value) if isinstance(value, tuple) else value) for name, value in self.pairs]
        return {"facts": [(name, _short(value, _LONGEST_FACT)) for name, value in texts if value not in (None, "")]}


@dataclass(frozen=True, slots=True)
class Table:
    """A table, which notebooks fold away unless it is open.

    A page of text has its caption in place of the first head, and rows below it indented unless the two are the same.
    `widths` are the least widths of columns there; those
    above 0 hold numbers, which stand to the right.
    """

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]
    is_open: bool = False
    longest: int = 200  # characters of a cell that notebooks show
    widths: Sequence[int] = ()
    most: int = 40  # rows of a page of text
    note: str = ""

    def lines(self) -> list[str]:
        """Columns of equal width, the first of them cut where a line would be too long."""
        rows = [[printable(str(cell)) for cell in row] for row in self.rows[: self.most]]
        least = [*self.widths, *[0] * (len(self.heads) - len(self.widths))]
        columns = list(zip(self.heads, *rows, strict=True))
        widths = [max(abs(width), *map(len, column)) for width, column in zip(least, columns, strict=True)]
        widths[0] = max(abs(least[0]), *(len(row[0]) for row in rows)) if rows else abs(least[0])
        indent = 0 if self.caption == self.heads[0] else 2
        others = widths[1:] if least[-1] > 0 else widths[1:-1]  # words at the end of a line may be long
        widths[0] = min(WIDTH - 2 - indent - sum(2 + width for width in others), widths[0])

        def line(first: str, cells: Sequence[str]) -> str:
            sides = zip(cells, widths[1:], least[1:], strict=True)
            return "  ".join(
                [first, *(f"{cell:>{width}}" if to > 0 else f"{cell:<{width}}" for cell, width, to in sides)]
            )

        found = [line(f"  {printable(self.caption):<{widths[0] + indent}}", self.heads[1:])]
        found += [line(f"  {'':{indent}}{cut(row[0], widths[0]):<{widths[0]}}", row[1:]) for row in rows]
        return [*found, *more(len(self.rows) - len(rows)), *wrapped(self.note, "  ")]

    def shown(self) -> dict[str, Any]:
        """What notebooks show of its rows, and which of its columns are numbers."""
        rows = [[_short(cell, self.longest) for cell in row] for row in self.rows[:MOST_LINES]]
        numbers = [all(_NUMBER.fullmatch(row[place]) for row in rows) for place in range(len(self.heads))]
        return {
            "caption": self.caption,
            "heads": list(zip(self.heads, numbers, strict=True)),
            "rows": [list(zip(row, numbers, strict=True)) for row in rows],
            "more": max(0, len(self.rows) - MOST_LINES),
            "is_open": self.is_open,
        }


@dataclass(frozen=True, slots=True)
class Listing:
    """Lines below a caption, wrapped unless they are as they have to be read."""

    caption: str
    entries: Sequence[str]
    wraps: bool = True
    most: int | None = None  # of a page of text
    indent: int = 8  # of lines after the first of an entry

    def lines(self) -> list[str]:
        """The caption, and the entries below it."""
        found = wrapped(self.caption, "  ", "    ") if self.wraps else [f"  {self.caption}"]
        for entry in self.entries[: self.most]:
            found += wrapped(entry, "    ", " " * self.indent) if self.wraps else [f"    {entry}"]
        return found + more(len(self.entries) - (self.most or len(self.entries)))

    def shown(self) -> dict[str, Any]:
        """The same as a table of one column."""
        return Table(self.caption, (self.caption,), [[entry] for entry in self.entries]).shown()


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of text that only a page of text has."""

    text: str

    def lines(self) -> list[str]:
        """The lines as they are."""
        return self.text.splitlines()

    def shown(self) -> dict[str, Any]:
        """Nothing."""
        return {"rows": []}


Block = Facts | Table | Listing | Text


@dataclass(frozen=True, slots=True)
class Document:
    """What a result says.

    Attributes:
        title: what is shown.
        parts: facts, tables and lists, in their order; a page of text has an empty line where None stands.
        warnings: what voids a guarantee, or who may see it, which has to be read first.
        note: a sentence at the end.
    """

    title: str
    parts: Sequence[Block | None] = ()
    warnings: Sequence[str] = ()
    note: str = ""

    def text(self) -> str:
        """The document as a page of text."""
        lines = [line for one in self.warnings for line in wrapped(f"*** NOT PRIVATE *** {one}", "", " " * 20)]
        lines.append(self.title)
        for part in self.parts:
            lines += [""] if part is None else part.lines()
        lines += wrapped(self.note, "  ")
        return "\n".join(printable(line).rstrip() for line in lines)

    def html(self) -> str | None:
        """The document as a piece of HTML; None without jinja2. Of long tables the first rows, and how many more."""
        try:
            template = template_environment().get_template("fragment.html")
        except MissingExtraError:
            return None
        shown = [part.shown() for part in self.parts if part is not None]
        parts = [part for part in shown if part.get("facts") or part.get("rows")]
        return str(template.render(title=self.title, parts=parts, warnings=self.warnings, note=self.note))


def spaced(*parts: Block | None) -> list[Block | None]:
    """The parts that are there, an empty line before each but the first."""
    return [line for part in parts if part is not None for line in (None, part)][1:]


class Documented:
    """A result with a document, which notebooks show."""

    __slots__ = ()

    def document(self) -> Document:
        """What the result says: a title, facts and tables."""
        raise NotImplementedError

    def _repr_html_(self) -> str | None:
        return self.document().html()


class Printed(Documented):
    """A result whose document is its page of text as well: `print` shows it."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.document().text()


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
