"""AuditResult: every game with its claim and its lower bound, as text, data and a page."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spinney.auditing.claims import POWER, TELLING
from spinney.auditing.game import Verdict
from spinney.auditing.runner import verdict_from_dict, verdict_to_dict

HEADS = ("family", "neighbours", "unit", "by", "claim", "bound", "could miss", "coins", "seconds", "result")
PASSED, IN_PART, NOTHING, FAILED = "passed", "passed in part", "could not tell", "failed"
UNCHARGED = "nothing to test"


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
    def verdict(self) -> str:
        """What the audit comes to: "failed", "could not tell", "passed in part", "passed" or "nothing to test".

        A game whose bound stays below its claim has passed only if it would have caught a leak of four times its claim.
        There are no games of a release that was charged nothing.
        """
        if not self.verdicts:
            return UNCHARGED
        if self.failures:
            return FAILED
        if len(self.open) == len(self.verdicts):
            return NOTHING
        return IN_PART if self.open else PASSED

    @property
    def passed(self) -> bool:
        """Whether no lower bound exceeds its claim, and at least one game could have told if one should have."""
        return self.verdict in (PASSED, IN_PART)

    @cached_property
    def open(self) -> tuple[Verdict, ...]:
        """The games that were too short to tell: a leak of four times their claim could have gone unseen."""
        return tuple(verdict for verdict in self.verdicts if not verdict.finding.tells)

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
            "verdict": self.verdict,
            "passed": self.passed,
            "could_not_tell": len(self.open),
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
        if not self.verdicts:
            return "\n".join(self.summary())
        rows = [HEADS, *(cells(verdict) for verdict in self.verdicts)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(HEADS))]
        lines = [_line(row, widths) for row in rows]
        return "\n".join([*lines, "", *self.summary()])

    def summary(self) -> list[str]:
        """What it comes to, in sentences."""
        if self.verdict == UNCHARGED:
            return [
                f"No game was played on {self.of}: it was charged nothing, so its epsilon is 0, and it should hold "
                "nothing of the table but what was stated.",
                f"{UNCHARGED}: `spinney verify` checks what the file holds, and `spinney audit` without a release "
                "plays against the mechanisms.",
            ]
        what = "rows drawn from releases" if self.black_box else "noisy numbers"
        said = [
            f"{len(self.verdicts)} games on {self.of}, looking at {what}, in {self.seconds:.0f} seconds.",
            f"All bounds hold together with a confidence of {self.confidence:.0%}.",
            "A leak below `could miss` could have gone unseen, and so could any that the guesses do not see in full; "
            f"one above it that they see in full is found in {POWER:.0%} of audits.",
            *self._of_the_whole(),
        ]
        if self.open:
            longest = max(verdict.seconds_to_tell for verdict in self.open)
            said.append(
                f"{len(self.open)} of {len(self.verdicts)} games were too short to tell: each could have missed a leak "
                f"of {TELLING:g} times its claim. Each needs longer here, at least up to {_rounded(longest)} seconds."
            )
        if self.failures:
            names = ", ".join(f"{verdict.family} ({verdict.title}, {verdict.unit})" for verdict in self.failures)
            return [
                *said,
                f"FAILED: the lower bound exceeds the claim of {names}. Do not publish what this code releases.",
            ]
        if self.verdict == NOTHING:
            return [*said, "COULD NOT TELL: no game had the coins to show a leak; give more --seconds."]
        n_passed = len(self.verdicts) - len(self.open)
        which = f"{n_passed} of {len(self.verdicts)} games" if self.open else "all games"
        return [*said, f"{self.verdict}: the bounds of {which} stay below their claims. That is no proof of privacy."]

    def _of_the_whole(self) -> list[str]:
        """What the games of whole fits came to, which come nearest to what a release promises."""
        said = []
        for verdict in self.verdicts:
            if not verdict.family.startswith("whole"):
                continue
            finding = verdict.finding
            unseen = "any leak" if math.isinf(finding.could_miss) else f"up to {finding.could_miss:.3g}"
            said.append(
                f"{verdict.family} ({verdict.title}, {verdict.unit}): {finding.currency} is at least "
                f"{finding.bound:.3g} of {finding.claim:.3g}, and could have been missed: {unseen}; {outcome(verdict)}."
            )
        if not said:
            said.append("No whole fit was played: these games are about parts of a fit, each by itself.")
        return said


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
        "any leak" if math.isinf(finding.could_miss) else f"{finding.could_miss:.3f}",
        f"{verdict.n_coins:,}",
        f"{verdict.seconds:.1f}",
        outcome(verdict),
    )


def outcome(verdict: Verdict) -> str:
    """What one game came to, in a word or two."""
    if verdict.finding.exceeds:
        return "EXCEEDED"
    if verdict.finding.tells:
        return "below the claim"
    return "too short to tell" if verdict.finding.could_exceed else "could not have failed"


def _rounded(seconds: float) -> str:
    """A number of seconds to two digits, rounded up."""
    unit = 10 ** max(math.floor(math.log10(max(seconds, 1))) - 1, 0)
    return f"{math.ceil(seconds / unit) * unit:,.0f}"


def _line(row: Iterable[str], widths: list[int]) -> str:
    padded = [
        text.ljust(width) if place < 4 or place == len(HEADS) - 1 else text.rjust(width)
        for place, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
