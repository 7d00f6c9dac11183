"""A line of text that is read from left to right, whose errors point at the place.

    where: 'ages' is not a column of the release; did you mean 'age'?
      mean(income) where ages in 30..40
                         ^^^^

Questions and conditions are typed by hand, names of columns may hold spaces, signs and quotes, and a message that says
what is wrong without saying where makes people search. Names are found by the schema, the longest that fits; one that
is not found that way is put in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NoReturn

from spinney.errors import ParameterError
from spinney.shown import printable
from spinney.suggest import did_you_mean_column

QUOTES = "\"'"
# Characters of the line that are shown to either side of the place.
_AROUND = 60
_WORD = re.compile(r"[^\s=<>!(),]+")


class Line:
    """A text, and what is read from it at a place."""

    def __init__(self, text: str, *, what: str) -> None:
        self.text = text
        self.what = what  # the beginning of messages: "--where", or "where"

    def skip(self, at: int) -> int:
        """The first place from `at` on that is no space."""
        while at < len(self.text) and self.text[at].isspace():
            at += 1
        return at

    def refuse(self, problem: str, start: int, stop: int | None = None) -> NoReturn:
        """Raise a ParameterError that points at a part of the text."""
        raise ParameterError(f"{problem}\n{self._pointer(start, start + 1 if stop is None else stop)}")

    def word(self, at: int) -> str:
        """The letters, digits and signs from a place on, up to a space, a bracket, a comma or a comparison."""
        found = _WORD.match(self.text, at)
        return found.group() if found else ""

    def keyword(self, at: int, *words: str) -> tuple[str, int] | None:
        """Which of some words stands at a place, in small letters, and where it ends; capitals do not matter."""
        for word in words:
            end = at + len(word)
            after = self.text[end : end + 1]
            if self.text[at:end].lower() == word and (not after or after.isspace() or after in "(" + QUOTES):
                return word, end
        return None

    def quoted(self, at: int) -> tuple[str, int]:
        """What is in the quotes that begin at a place, and where they end. A doubled quote is one inside."""
        mark, start, found = self.text[at], at, []
        while True:
            end = self.text.find(mark, at + 1)
            if end < 0:
                self.refuse(f"{self.what}: the quote is not closed", start)
            found.append(self.text[at + 1 : end])
            if self.text[end + 1 : end + 2] != mark:
                return mark.join(found), end + 1
            at = end + 1

    def name(self, at: int, known: Iterable[str], *, before: str) -> tuple[str, int]:
        """The column that is named at a place, and where its name ends.

        `before` is a pattern of what may follow a name. Raises a ParameterError where no column is named.
        """
        ends = [(name, at + len(name)) for name in known if self.text.startswith(name, at) and name]
        fits = [(name, end) for name, end in ends if re.compile(before).match(self.text, end)]
        if fits:
            return max(fits, key=lambda fit: len(fit[0]))
        if self.text[at : at + 1] in QUOTES and at < len(self.text):
            name, end = self.quoted(at)
        else:
            name = self.word(at)
            end = at + len(name)
        if name not in known or not re.compile(before).match(self.text, end):
            hint = did_you_mean_column(name, known)
            self.refuse(
                f"{self.what}: {name!r} is not a column of the release{hint}", at, max(end, at + 1) if name else None
            )
        return name, end

    def _pointer(self, start: int, stop: int) -> str:
        """The text around a place, and a line below with marks under it."""
        first, last = max(0, start - _AROUND), min(len(self.text), stop + _AROUND)
        before, here = printable(self.text[first:start]), printable(self.text[start:stop])
        cut = "…" if first else ""
        shown = cut + before + here + printable(self.text[stop:last]) + ("…" if last < len(self.text) else "")
        return f"  {shown}\n  {' ' * len(cut + before)}{'^' * max(1, len(here))}"
