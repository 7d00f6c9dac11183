"""Findings: what a check of a schema and a table brought to light, as a page, as data and as a verdict.

A fault is what `fit` would refuse. A warning is what `fit` would accept, though the holder may not mean it. Findings
count rows of the private table, so they are for its holder alone, and their first line says so. They quote no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FOR_THE_HOLDER = "For the holder only: this page describes the private table; do not publish it."


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault or warning."""

    message: str  # names the column or the rule, and the remedy
    column: str | None = None
    n_rows: int | None = None  # how many rows it is about, where that was counted

    def __str__(self) -> str:
        return self.message if self.n_rows is None else f"{self.message} ({rows(self.n_rows)})"

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain data."""
        return {"column": self.column, "rows": self.n_rows, "message": self.message}


@dataclass(frozen=True, slots=True)
class Findings:
    """All that `check` found. FOR THE HOLDER ONLY: it describes the private table without noise."""

    faults: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    notes: tuple[str, ...]  # what follows from the schema alone
    n_rows: int | None  # None where rows could not be counted
    method: str | None  # which synthesizer the schema gets, or None where that cannot be said
    reason: str | None
    n_persons: int | None = None  # where rows belong to persons
    tables: Mapping[str, int | None] | None = None  # of linked tables, how many rows each has

    @property
    def is_clean(self) -> bool:
        """Whether there are no faults, so that `fit` would accept the table."""
        return not self.faults

    def to_dict(self) -> dict[str, Any]:
        """The findings as plain data for JSON."""
        return {
            "for": FOR_THE_HOLDER,
            "is_clean": self.is_clean,
            "rows": self.n_rows,
            "faults": [finding.to_dict() for finding in self.faults],
            "warnings": [finding.to_dict() for finding in self.warnings],
            "notes": list(self.notes),
            "method": self.method,
            "reason": self.reason,
        } | self._of_persons()

    def _of_persons(self) -> dict[str, Any]:
        if self.n_persons is None and self.tables is None:
            return {}
        return {"persons": self.n_persons} | ({} if self.tables is None else {"tables": dict(self.tables)})

    def _repr_html_(self) -> str | None:
        from spinney.synthesizers.fragment import findings_fragment

        return findings_fragment(self)

    def __str__(self) -> str:
        lines = [FOR_THE_HOLDER, ""]
        if self.n_rows is not None:
            of_persons = "" if self.n_persons is None else f" of {persons(self.n_persons)}"
            lines.append(f"The table has {rows(self.n_rows)}{of_persons}.")
        for name, n_rows in (self.tables or {}).items():
            lines.append(f"Table {name!r} has {'an unknown number of rows' if n_rows is None else rows(n_rows)}.")
        if self.tables is not None and self.n_persons is not None:
            lines.append(f"There are {persons(self.n_persons)}.")
        lines += _listed(
            self.faults, "fault", "fit would refuse " + ("the table" if self.tables is None else "the tables")
        )
        lines += _listed(self.warnings, "warning", "fit would accept this, but perhaps not as you intend")
        lines += self.notes
        if self.method is not None:
            lines.append(f"Method {self.method}: {self.reason}.")
        return "\n".join([*lines, "Nothing was charged."])


def rows(number: int) -> str:
    """A number of rows in words."""
    return "1 row" if number == 1 else f"{number:,} rows"


def persons(number: int) -> str:
    """A number of persons in words."""
    return "1 person" if number == 1 else f"{number:,} persons"


def _listed(findings: Sequence[Finding], kind: str, means: str) -> list[str]:
    if not findings:
        return [f"No {kind}s."]
    many = "" if len(findings) == 1 else "s"
    return [f"{len(findings)} {kind}{many}: {means}.", *(f"  - {finding}" for finding in findings)]
