"""AuditResult: every game with its claim and its lower bound, as text, data and a page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spinney.auditing.game import Verdict
from spinney.auditing.runner import verdict_from_dict, verdict_to_dict

_HEADS = ("family", "neighbours", "unit", "by", "claim", "bound", "ratio", "coins", "seconds")


@dataclass(frozen=True)
class AuditResult:
    """What an audit found. `str()` of it is a table; nothing in it comes from a private table.

    Attributes:
        verdicts: the games, in order.
        confidence: with which all bounds hold together.
        seconds: how long everything took.
        of: what was audited: the standard battery, or a release by the name of its file.
        black_box: whether only rows drawn from releases were looked at.
    """

    verdicts: tuple[Verdict, ...]
    confidence: float
    seconds: float
    of: str
    black_box: bool = False

    @property
    def passed(self) -> bool:
        """Whether no lower bound exceeds its claim."""
        return not self.failures

    @cached_property
    def failures(self) -> tuple[Verdict, ...]:
        """The games whose mechanism does not keep its promise, at the stated confidence."""
        return tuple(verdict for verdict in self.verdicts if verdict.finding.exceeds)

    @cached_property
    def families(self) -> dict[str, Verdict]:
        """Of each family the game whose bound comes nearest to its claim, or exceeds it furthest."""
        best: dict[str, Verdict] = {}
        for verdict in self.verdicts:
            if verdict.family not in best or ratio_of(verdict) > ratio_of(best[verdict.family]):
                best[verdict.family] = verdict
        return best

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "of": self.of,
            "passed": self.passed,
            "confidence": self.confidence,
            "black_box": self.black_box,
            "seconds": round(self.seconds, 1),
            "processor_seconds": round(sum(verdict.processor_seconds for verdict in self.verdicts), 1),
            "games": [{**verdict_to_dict(verdict), "ratio": ratio_of(verdict)} for verdict in self.verdicts],
        }

    @classmethod
    def from_dict(cls, described: dict[str, Any]) -> AuditResult:
        """Read what `to_dict` wrote."""
        games = tuple(verdict_from_dict(game) for game in described["games"])
        return cls(games, described["confidence"], described["seconds"], described["of"], described["black_box"])

    def to_html(self) -> str:
        """The result as one self-contained page. Needs jinja2 and matplotlib."""
        from spinney.auditing.page import page

        return page(self)

    def _repr_html_(self) -> str:
        from spinney.auditing.page import table

        return table(self)

    def __str__(self) -> str:
        rows = [_HEADS, *(cells(verdict) for verdict in self.verdicts)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADS))]
        lines = [_line(row, widths) for row in rows]
        return "\n".join([*lines, "", *self.summary()])

    def summary(self) -> list[str]:
        """What it comes to, in sentences."""
        what = "rows drawn from releases" if self.black_box else "noisy numbers"
        said = [
            f"{len(self.verdicts)} games on {self.of}, looking at {what}, in {self.seconds:.0f} seconds.",
            f"All bounds hold together with a confidence of {self.confidence:.0%}.",
        ]
        if self.passed:
            return [*said, "passed: no lower bound exceeds its claim. That no game was won is no proof of privacy."]
        names = ", ".join(f"{verdict.family} ({verdict.title}, {verdict.unit})" for verdict in self.failures)
        return [*said, f"FAILED: the lower bound exceeds the claim of {names}. Do not publish what this code releases."]


def ratio_of(verdict: Verdict) -> float:
    """The bound over the claim."""
    return verdict.finding.bound / verdict.finding.claim if verdict.finding.claim > 0 else 0.0


def cells(verdict: Verdict) -> tuple[str, ...]:
    """A game as cells of a table."""
    finding = verdict.finding
    return (
        verdict.family,
        verdict.title,
        verdict.unit,
        finding.currency,
        f"{finding.claim:.3f}",
        f"{finding.bound:.3f}",
        f"{ratio_of(verdict):.2f}" + (" EXCEEDED" if finding.exceeds else ""),
        f"{verdict.n_coins:,}",
        f"{verdict.seconds:.1f}",
    )


def _line(row: Iterable[str], widths: list[int]) -> str:
    padded = [
        text.ljust(width) if place < 4 else text.rjust(width)
        for place, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
