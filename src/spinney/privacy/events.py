"""Events: what was charged for what, as frozen data.

The rules that everything in this file, and the parts of a composed release (`parts`), keep to:

1. Every number that an accountant, a verifier or a report needs is a field: epsilon, delta, the noise and its
   sensitivity, the stage, how often it measured (`times`), the column of private bounds.
2. A note is for people. It is shown and never read, so its words may change; `old_notes` alone reads the notes of
   files that were written before there were fields.
3. A field is checked when an event is made (`guard`), by a mechanism or from a file, so an event that exists is one
   that sums may take in. A field of None claims nothing, and nothing is granted for it.
4. A charge carries an epsilon, and a delta where it is not pure. A brand carries none: no finite one would be true.
5. An event says what was charged for. Whether that is true in itself, and what was released, is for those who check
   (`claims`, `release.verification`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, ClassVar

from spinney.errors import ParameterError
from spinney.privacy import guard
from spinney.privacy.budget import parse_fraction
from spinney.privacy.old_notes import fields_in_old_event
from spinney.privacy.parts import Part, part_from_dict, part_line, part_to_dict
from spinney.privacy.stages import STAGES, StageName
from spinney.shown import brief, printable

_MOST_PARTS = 256
# Characters of a fraction that people are shown.
_LONGEST_SHOWN = 40


def _parts(value: Any, name: str) -> tuple[Part, ...]:
    parts = tuple(value) if isinstance(value, (tuple, list)) else ()
    if not 1 <= len(parts) <= _MOST_PARTS or not all(isinstance(part, Part) for part in parts):
        raise ParameterError(f"{name} is not a list of 1 to {_MOST_PARTS} parts such as GaussianTables")
    return parts


_CHECKS: dict[str, guard.Check] = {
    "epsilon": guard.spent_epsilon,
    "delta": guard.spent_delta,
    "sensitivity": guard.whole(1, guard.LARGEST_COUNT),
    "sensitivity_squared": guard.positive,
    "variance": guard.positive,
    "rate": guard.positive,
    "levels": guard.whole(0, guard.LARGEST_LEVELS),
    "rule": guard.one_of("privtree", "paper"),
    "parts": _parts,
    "note": guard.text,
    "stage": guard.optional(guard.one_of(*STAGES)),
    "times": guard.optional(guard.whole(1, guard.LARGEST_COUNT)),
    "decay": guard.optional(guard.whole(1, guard.LARGEST_DECAY)),
    "column": guard.optional(guard.text),
}
# What an event claims beyond what it costs; files from before there were such fields have them in notes.
_CLAIMS = ("stage", "times", "decay", "column")


class _Checked:
    """What makes an event refuse numbers that are none."""

    __slots__ = ()

    def __post_init__(self) -> None:
        guard.check_fields(self, _CHECKS)


class _Staged(_Checked):
    """An event of a stage, which has to be one of its kind."""

    __slots__ = ()

    def __post_init__(self) -> None:
        guard.check_fields(self, _CHECKS)
        guard.check_stage(self)


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceCounts(_Staged):
    """Counts of `times` tables released with discrete Laplace noise of ratio exp(-epsilon / sensitivity).

    `column` is the one whose bounds or classes were counted.
    """

    epsilon: Fraction
    sensitivity: int
    note: str
    stage: StageName | None = field(default=None, kw_only=True)
    times: int | None = field(default=None, kw_only=True)
    column: str | None = field(default=None, kw_only=True)

    stages: ClassVar[tuple[StageName, ...]] = (
        "rows",
        "bounds",
        "classes",
        "one-way",
        "spikes",
        "places",
        "workload",
        "pairs",
        "cliques",
        "leaves",
        "answer",
    )


@dataclass(frozen=True, slots=True)
class LeafMoments(_Staged):
    """Counts and sums of offsets in [-1, 1], of leaves that share no row, with one vector of noise for each leaf.

    The one vector of a bought answer is charged as that of one leaf; its numbers may both be counts. So is that of
    utility figures, whose numbers are distances.

    The noise is even over cubes, of ratio exp(-epsilon / sensitivity) for each unit of the largest coordinate.
    """

    epsilon: Fraction
    sensitivity: int
    note: str
    stage: StageName | None = field(default=None, kw_only=True)

    stages: ClassVar[tuple[StageName, ...]] = ("leaves", "answer", "utility")


@dataclass(frozen=True, slots=True)
class SplitDecisions(_Staged):
    """All noisy decisions of `times` trees together, each of `levels` levels.

    `rate` is 1/scale of the noise in each, `decay` what the privtree rule takes off a count for each level.
    """

    epsilon: Fraction
    rule: str
    rate: Fraction
    levels: int
    note: str
    stage: StageName | None = field(default=None, kw_only=True)
    times: int | None = field(default=None, kw_only=True)
    decay: int | None = field(default=None, kw_only=True)

    stages: ClassVar[tuple[StageName, ...]] = ("splits", "trees", "regions")


@dataclass(frozen=True, slots=True)
class DiscreteGaussianVector(_Checked):
    """Whole numbers of a squared L2 sensitivity released with discrete Gaussian noise of a variance."""

    epsilon: Fraction
    delta: Fraction
    sensitivity_squared: Fraction
    variance: Fraction
    note: str


@dataclass(frozen=True, slots=True)
class Selection(_Staged):
    """`times` choices out of public lists by the exponential mechanism, of `epsilon` in all and the same each.

    A choice with P(i) proportional to exp(rate * score), of scores that a row changes by at most D, costs 2 * rate * D.
    """

    epsilon: Fraction
    note: str
    stage: StageName | None = field(default=None, kw_only=True)
    times: int | None = field(default=None, kw_only=True)

    stages: ClassVar[tuple[StageName, ...]] = ("selection", "prior")


@dataclass(frozen=True, slots=True)
class PartitionSelection(_Staged):
    """The values of `column` that enough rows have: each kept with a probability that its number of rows decides.

    The law follows from epsilon, delta and the unit (`noise.partitions`).
    """

    epsilon: Fraction
    delta: Fraction
    note: str
    stage: StageName | None = field(default=None, kw_only=True)
    column: str | None = field(default=None, kw_only=True)

    stages: ClassVar[tuple[StageName, ...]] = ("values",)


@dataclass(frozen=True, slots=True)
class ComposedRelease(_Checked):
    """Several mechanisms paid for together: within (epsilon, delta) as a whole, by `composition.composed_delta`."""

    epsilon: Fraction
    delta: Fraction
    parts: tuple[Part, ...]
    note: str


@dataclass(frozen=True, slots=True)
class NotPrivate(_Checked):
    """Something was taken from the data without noise. No guarantee survives this event."""

    note: str


@dataclass(frozen=True, slots=True)
class UnsafeEntropy(_Checked):
    """Noise came from a seeded generator: anyone who knows the seed can subtract it."""

    note: str


Charge = (
    DiscreteLaplaceCounts
    | LeafMoments
    | SplitDecisions
    | DiscreteGaussianVector
    | Selection
    | PartitionSelection
    | ComposedRelease
)
Brand = NotPrivate | UnsafeEntropy
Event = Charge | Brand
_EVENTS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        DiscreteLaplaceCounts,
        LeafMoments,
        SplitDecisions,
        DiscreteGaussianVector,
        Selection,
        PartitionSelection,
        ComposedRelease,
        NotPrivate,
        UnsafeEntropy,
    )
}
_FRACTIONS = ("epsilon", "delta", "rate", "sensitivity_squared", "variance")


def total_epsilon(events: Iterable[Event]) -> Fraction:
    """The sum of all charges."""
    return sum((event.epsilon for event in events if isinstance(event, Charge)), Fraction(0))


def total_delta(events: Iterable[Event]) -> Fraction:
    """The sum of the deltas of all charges."""
    return sum((delta_of(event) for event in events), Fraction(0))


def delta_of(event: Event) -> Fraction:
    """An event's delta; 0 for what is pure."""
    if isinstance(event, DiscreteGaussianVector | PartitionSelection | ComposedRelease):
        return event.delta
    return Fraction(0)


def brands(events: Iterable[Event]) -> list[Brand]:
    """The events that void the guarantee or make it conditional."""
    return [event for event in events if isinstance(event, Brand)]


def decimal(value: Fraction) -> str:
    """A fraction as people write it: exactly where a short decimal exists, otherwise as a fraction and a hint.

    Of a fraction too long to be read only the hint is shown, and how long it is; documents hold it in full.
    """
    text = f"{float(value):g}"
    if Fraction(text) == value:
        return text
    hint, exact = f"about {float(value):.4g}", str(value)
    return f"{exact} ({hint})" if len(exact) <= _LONGEST_SHOWN else f"{hint} (a fraction of {len(exact)} characters)"


def event_line(event: Event) -> str:
    """An event as a line of an account: the amount, or a dash where no amount would be true, and what it was for."""
    amount = "-" if isinstance(event, Brand) else decimal(event.epsilon)
    if delta_of(event):
        amount = f"({amount}, {decimal(delta_of(event))})"
    return f"{amount:>10}  {printable(event.note)}"


def event_lines(event: Event) -> list[str]:
    """An event as lines of an account: `event_line`, and below it the parts of what was paid for together."""
    parts = event.parts if isinstance(event, ComposedRelease) else ()
    return [event_line(event), *(f"{'':>10}    {part_line(part)}" for part in parts)]


def event_to_dict(event: Event) -> dict[str, Any]:
    """An event as JSON-ready data; fractions become text."""
    described: dict[str, Any] = {"event": type(event).__name__}
    for entry in fields(event):
        value = getattr(event, entry.name)
        described[entry.name] = str(value) if isinstance(value, Fraction) else value
    if isinstance(event, ComposedRelease):
        described["parts"] = [part_to_dict(part) for part in event.parts]
    return described


def event_from_dict(described: Any) -> Event:
    """Read what `event_to_dict` wrote; ParameterError or KeyError where it is not that."""
    if not isinstance(described, dict):
        raise ParameterError(f"an event is not a table of entries: {brief(described)}")
    kind = _EVENTS[described["event"]] if isinstance(described["event"], str) else None
    if kind is None:
        raise ParameterError(f"event={brief(described['event'])} is not the name of an event")
    if not any(name in described for name in _CLAIMS):
        described = described | dict.fromkeys(_CLAIMS) | fields_in_old_event(kind.__name__, described)
    values = {entry.name: described[entry.name] for entry in fields(kind)}
    for name in _FRACTIONS:
        if name in values:
            values[name] = parse_fraction(values[name], name)
    if kind is ComposedRelease:
        if not isinstance(values["parts"], list):
            raise ParameterError("parts is not a list")
        values["parts"] = tuple(part_from_dict(part) for part in values["parts"])
    return kind(**values)
