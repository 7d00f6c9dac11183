"""How far counts are expected to be off: the noise of each stage as a fit would draw it, in rows and in per cent.

Noise is known before anything is spent. What a model makes of its noisy counts, and how far a table is from what the
model can say, is not: a count as it was measured is off by its noise, an answer that the model gives for the same
question mostly by less, since all counts are fitted to each other, and one about columns that were not counted together
by more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from spinney.forest.release.budget_report import Stage, stages
from spinney.privacy.events import DiscreteLaplaceCounts
from spinney.synthesizers.rehearsal import Partition, Rehearsal
from spinney.tree.moments import leaf_noise_std

LEVEL = 0.95
# A question about this part of the rows, such as a category that a tenth of them have.
SHARE = 0.1
_NORMAL = NormalDist().inv_cdf((1 + LEVEL) / 2)
# P(|X| > t) = e^(-t / scale), and the standard deviation is sqrt(2) scale.
_LAPLACE = math.log(1 / (1 - LEVEL)) / math.sqrt(2)

# A leaf that is lost with no larger chance than this does not count.
_RARELY = 5e-4

# What a count of each stage is of, the plainest first.
COUNTED = {
    "classes": "a value of the target",
    "one-way": "one column",
    "places": "a region of a map",
    "pairs": "a column with the target",
    "cliques": "columns together",
    "workload": "a table that the call names",
    "leaves": "a leaf of the tree",
    "row one-way": "one column of rows",
    "row tables": "columns of rows together",
}


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """The noise on a count, as a standard deviation and as what 95 % of counts are within, in rows and of all rows."""

    stage: str
    what: str
    noise_std: float
    within_95: float
    n_rows: int

    @property
    def percent_95(self) -> float:
        """What 95 % of counts are within, in per cent of all rows."""
        return 100 * self.within_95 / self.n_rows

    def to_dict(self) -> dict[str, Any]:
        """The error as JSON-ready data."""
        return {
            "stage": self.stage,
            "what": self.what,
            "noise_std": _digits(self.noise_std),
            "within_95": _digits(self.within_95),
            "percent_95": _digits(self.percent_95),
        }


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """A question about a tenth of the rows, and the interval that 95 % of noisy answers lie in."""

    what: str
    n_rows: int
    noise_std: float
    within_95: float
    is_even: bool  # whether it takes rows to be spread evenly, as those of a tree have to be

    @property
    def expected(self) -> int:
        """A tenth of all rows."""
        return round(SHARE * self.n_rows)

    @property
    def interval(self) -> tuple[int, int]:
        """From, to: whole rows, none below 0 and none above all."""
        low, high = self.expected - self.within_95, self.expected + self.within_95
        return max(0, math.floor(low)), min(self.n_rows, math.ceil(high))

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON-ready data."""
        low, high = self.interval
        return {
            "what": self.what,
            "expected": self.expected,
            "low": low,
            "high": high,
            "noise_std": _digits(self.noise_std),
            "within_95": _digits(self.within_95),
            "percent_95": _digits(100 * self.within_95 / self.n_rows),
            "assumes_even_rows": self.is_even,
        }


def budget_stages(rehearsal: Rehearsal) -> tuple[Stage, ...]:
    """The stages of all that would be charged, with shares and noise, as a card would state them."""
    return stages(rehearsal.events, rehearsal.unit) if rehearsal.events else ()


def expected_errors(rehearsal: Rehearsal, found: Sequence[Stage]) -> tuple[ExpectedError, ...]:
    """The noise on the counts of every stage that releases counts, in the order of `COUNTED`."""
    by_name = {stage.name: stage for stage in found}
    errors = []
    for name, what in COUNTED.items():
        if name not in by_name:
            continue
        noise_std, factor = by_name[name].noise_std, _factor(rehearsal, name)
        if noise_std is None and isinstance(rehearsal.planned, Partition):
            noise_std = leaf_noise_std(rehearsal.planned.plan, rehearsal.planned.lattice)
        if noise_std is not None:
            errors.append(ExpectedError(name, _named(rehearsal, what), noise_std, factor * noise_std, rehearsal.n_rows))
    return tuple(errors)


def expected_answer(rehearsal: Rehearsal, errors: Sequence[ExpectedError]) -> ExpectedAnswer | None:
    """The answer to a count of a tenth of the rows; None where nothing is counted, or a threshold takes part of it."""
    who = "persons" if rehearsal.unit.is_person else "rows"
    found = {error.stage: error for error in errors}
    if isinstance(rehearsal.planned, Partition):
        if are_even_rows_lost(rehearsal.planned, rehearsal.n_rows):
            return None
        n_leaves = max(1.0, SHARE * even_leaves(rehearsal.planned, rehearsal.n_rows))
        noise_std = math.sqrt(n_leaves) * found["leaves"].noise_std
        what = f"how many {who} lie in a box that holds a tenth of them"
        return ExpectedAnswer(what, rehearsal.n_rows, noise_std, _NORMAL * noise_std, is_even=True)
    one = next((found[name] for name in ("one-way", "places", "row one-way") if name in found), None)
    if one is None:
        return None
    what = f"how many {who} have a value that a tenth of them have"
    return ExpectedAnswer(what, rehearsal.n_rows, one.noise_std, one.within_95, is_even=False)


def even_leaves(planned: Partition, n_rows: int) -> int:
    """About how many leaves there are if rows are spread evenly; of a grid, how many cells."""
    if planned.plan.rule == "grid":
        return math.prod(axis.n_possible for axis in planned.lattice.axes)
    return max(1, round(planned.plan.expected_leaves(n_rows)))


def are_even_rows_lost(planned: Partition, n_rows: int) -> bool:
    """Whether a threshold takes noisy leaves of evenly spread rows more often than once in a few thousand times."""
    plan = planned.plan
    if plan.has_moments:
        return False
    missing = n_rows // even_leaves(planned, n_rows) - plan.threshold
    return missing < 0 or math.exp(-float(plan.count_rate) * missing) / 2 > _RARELY


def _named(rehearsal: Rehearsal, what: str) -> str:
    planned = rehearsal.planned
    return "a cell of the grid" if isinstance(planned, Partition) and planned.plan.rule == "grid" else what


def _factor(rehearsal: Rehearsal, stage: str) -> float:
    """How many standard deviations 95 % of the noise is within."""
    of_laplace = {event.stage for event in rehearsal.events if isinstance(event, DiscreteLaplaceCounts)}
    return _LAPLACE if stage in of_laplace else _NORMAL


def _digits(value: float) -> float:
    return float(f"{value:.6g}")
