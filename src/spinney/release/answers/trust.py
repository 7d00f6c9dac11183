"""Trust: what an analysis of some columns can expect from a release, said before anything is asked.

A verdict for every column and every pair among them: the statement that an answer about them can carry, why, and what
to do where that is not enough. It is public like the release; looking costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from spinney.release.answers.answer import STATEMENTS, Statement


@dataclass(frozen=True, slots=True)
class Verdict:
    """What answers about one column, a pair or a group can be called at best, why, and what to do instead."""

    columns: tuple[str, ...]
    statement: Statement
    why: str
    instead: str = ""  # empty where nothing better can be had, or is needed

    def __str__(self) -> str:
        return f"{', '.join(self.columns)}: {self.statement}, {self.why}" + (f"; {self.instead}" * bool(self.instead))


@dataclass(frozen=True, slots=True)
class Trust:
    """Verdicts on single columns, on pairs, and on all columns together. `print` is meant to be read."""

    columns: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    together: Verdict  # on an analysis of all columns at once
    measures: Mapping[str, float] = field(default_factory=dict)  # numbers behind the verdicts, by name

    @property
    def statement(self) -> Statement:
        """The weakest statement among all verdicts: what can be said of every answer about these columns."""
        return max((verdict.statement for verdict in (*self.verdicts, self.together)), key=STATEMENTS.index)

    def of(self, *columns: str) -> Verdict:
        """The verdict on a column or on a pair, in any order; that on all columns where none is of its own.

        Args:
            columns: one or more of the columns that were asked about.
        """
        for verdict in self.verdicts:
            if set(verdict.columns) == set(columns):
                return verdict
        return self.together

    def __str__(self) -> str:
        lines = [f"together: {self.together}", *map(str, self.verdicts)]
        lines += [f"{name}: {value:.4g}" for name, value in self.measures.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The verdicts as plain data for JSON."""
        return asdict(self) | {"measures": dict(self.measures), "statement": self.statement}
