"""Events and parts: what was charged for what, as frozen data that an accountant can sum.

    field checks    every number is checked when an event or a part is made, by a mechanism or from a file
    old notes       the notes in which files of the first version hold what fields hold now
    stages          the closed set of names of what a charge is for
    parts           mechanisms that are paid for together, in the few numbers their privacy depends on
    events          charges, and brands, which void a guarantee; sums, lines and plain data of them

The rules that events and parts keep to:

1. Every number that an accountant, a verifier or a report needs is a field: epsilon, delta, the noise and its
   sensitivity, the stage, how often it measured (`times`), the column of private bounds.
2. A note is for people. It is shown and never read, so its words may change; the section on old notes alone
   reads the notes of files that were written before there were fields.
3. A field is checked when an event is made, by a mechanism or from a file, so an event that exists is one that
   sums may take in. A field of None claims nothing, and nothing is granted for it.
4. A charge carries an epsilon, and a delta where it is not pure. A brand carries none: no finite one would be
   true.
5. An event says what was charged for. Whether that is true in itself, and what was released, is for those who
   check (`composition.py`, claims of events; `release/verify.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Literal, get_args

from spinney.errors import BudgetError, ParameterError
from spinney.privacy.budget import LARGEST_BITS, LARGEST_EPSILON, Unit, parse_fraction
from spinney.text import brief, printable

# --------------------------------------------------------------------------------------------------------- field checks
# The numbers of events and parts, checked where these come to be.
#
# An event is believed by every sum that it enters, so nothing that is no budget may become one: a NaN that
# switches a limit off, a negative epsilon that earns budget back, a float, a number of a million digits.
# Whether an event was made by a mechanism or read from a file, it is made by its constructor, and its
# constructor asks here.


# No tree is deeper (`grid.lattice.MAX_DEPTH`), and no cutoff or decay larger (`tree.plan.LARGEST_SETTING`).
_LARGEST_LEVELS, _LARGEST_DECAY, _LARGEST_COUNT = 4096, 2**60, 2**40
_FEW_WORDS = 8
_TYPES: dict[str, Any] = {"text": str, "whole": int, "flag": bool, "list": (tuple, list)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What one field of an event, of a part or of an entry of a ledger has to be.

    Values are checked by these few numbers here, and on a server, whose table `fields` they become
    (`accounts/postgres.py`): nothing about a field is written down a second time.
    """

    kind: Literal["exact", "whole", "text", "flag", "list"]
    low: Fraction | int | None = None  # bounds of a number, of the length of a text or of a list
    high: Fraction | int | None = None
    ends: Literal["[]", "(]", "[)"] = "[]"  # whether the bounds themselves are allowed
    pattern: str | None = None  # what the whole of a text matches
    is_needed: bool = True
    otherwise: str  # what an error says of any other value

    def __call__(self, value: Any, name: str) -> Any:
        """The value, or an error that names the field; None where it may be left out."""
        if value is None and not self.is_needed:
            return None
        if self.kind == "exact":
            value = fraction(value, name)
            if value < 0 and name in ("epsilon", "delta"):
                raise BudgetError(f"{name}={brief(value)} is negative; what was spent cannot be earned back")
        elif not isinstance(value, _TYPES[self.kind]) or isinstance(value, bool) != (self.kind == "flag"):
            raise ParameterError(f"{name}={brief(value)} {self.otherwise}")
        is_matched = self.pattern is None or re.fullmatch(self.pattern, value, re.DOTALL) is not None
        if not is_matched or not self._is_within(len(value) if self.kind in ("text", "list") else value):
            raise ParameterError(f"{name}={brief(value)} {self.otherwise}")
        return value

    def _is_within(self, size: Any) -> bool:
        is_enough = self.low is None or size > self.low or (size == self.low and self.ends[0] == "[")
        return is_enough and (self.high is None or size < self.high or (size == self.high and self.ends[1] == "]"))


class Checked:
    """A frozen dataclass whose fields go through the checks of their names; whole numbers become fractions."""

    __slots__ = ()

    checks: ClassVar[Mapping[str, Field]]
    stages: ClassVar[tuple[str, ...]]  # that its kind can have, where it has one

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, check in fields_of(kind).items():
            object.__setattr__(self, name, check(getattr(self, name), name))


@cache
def fields_of(kind: Any) -> dict[str, Field]:
    """The fields of a kind of event or of part, and what each has to be; its stages are those of the kind."""
    stages = getattr(kind, "stages", ())
    known = " or ".join(map(repr, stages))
    stage = replace(one_of(*stages), otherwise=f"is not one of {kind.__name__}, which has {known}")
    checks = {**kind.checks, "stage": optional(stage)}
    return {entry.name: checks[entry.name] for entry in fields(kind)}


def fraction(value: Any, name: str) -> Fraction:
    """An exact number of sane size: a Fraction or an int, and nothing that would have to be rounded or guessed."""
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
        raise ParameterError(f"{name}={brief(value)} is not an exact number; give a Fraction, such as Fraction('0.1')")
    if max(abs(value.numerator).bit_length(), value.denominator.bit_length()) > LARGEST_BITS:
        raise ParameterError(f"{name}={brief(value)} has too many digits; round it to a few")
    return Fraction(value)


def whole(low: int, high: int) -> Field:
    """A whole number in low..high; a boolean is none."""
    return Field(kind="whole", low=low, high=high, otherwise=f"is not a whole number in {low}..{high}")


def text(low: int, high: int) -> Field:
    """A string of so many characters."""
    return Field(kind="text", low=low, high=high, otherwise=f"is not a string of {low} to {high:,} characters")


def one_of(*known: str) -> Field:
    """One of a few words."""
    names = " or ".join(map(repr, known)) if len(known) < _FEW_WORDS else f"one of {', '.join(known)}"
    return Field(kind="text", pattern="|".join(known), otherwise=f"is not {names}")


def optional(field: Field) -> Field:
    """The same field, which may be None: it claims nothing then."""
    return replace(field, is_needed=False)


POSITIVE = Field(kind="exact", low=0, ends="(]", otherwise="is not positive")
SPENT_EPSILON = Field(
    kind="exact",
    low=0,
    high=LARGEST_EPSILON,
    ends="(]",
    otherwise="is not above 0 and at most 2^20; a charge costs something",
)
SPENT_DELTA = Field(kind="exact", low=0, high=1, ends="[)", otherwise="is 1 or more, which guarantees nothing")
_NOTE = text(0, 2**16)


# ------------------------------------------------------------------------------------------------------------ old notes
# What events said in their notes before they had fields for it. The only place where a note is read.
#
# Files of the first version, releases and ledgers, may have been written when the stage of a charge, how many trees
# or choices it paid for and the column of private bounds stood in its note alone. Such an event is an entry without
# `stage`. Only the exact words that a fit wrote are taken; any other note leaves the event without the claim. An
# entry that has `stage` is read by its fields, whatever its note says.


_TIMES = r"(?P<times>[1-9][0-9]{0,8})"
# By kind: what a note says whole, its groups being fields, and the fields that go without saying.
_OLD_EVENTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("SplitDecisions", "table: split decisions", {"stage": "splits", "times": 1}),
    ("SplitDecisions", rf"shapes of {_TIMES} column trees", {"stage": "trees"}),
    ("DiscreteLaplaceCounts", "table: leaf counts", {"stage": "leaves", "times": 1}),
    ("DiscreteLaplaceCounts", rf"(?P<stage>one-way|spikes|pairs|cliques): {_TIMES} tables", {}),
    ("DiscreteLaplaceCounts", r"bounds of (?P<column>.+): leaf counts", {"stage": "bounds", "times": 1}),
    ("DiscreteLaplaceCounts", r"classes: sizes of those of ('.*'|\".*\")", {"stage": "classes", "times": 1}),
    # Of the first forests.
    ("DiscreteLaplaceCounts", r"forest: sizes of the classes of ('.*'|\".*\")", {"stage": "classes", "times": 1}),
    ("LeafMoments", "table: leaf counts and means", {"stage": "leaves"}),
    ("Selection", rf"{_TIMES} choices of columns to look at together", {"stage": "selection"}),
)
_OLD_PARTS = {
    "TreeShapes": ("trees",),
    "GaussianTables": ("one-way", "spikes", "pairs", "cliques"),
    "Selections": ("selection",),
}


def fields_in_old_event(kind: str, described: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the note of an old event stands for; none where no fit wrote such a note."""
    note = described.get("note")
    for of_kind, words, told in _OLD_EVENTS if isinstance(note, str) else ():
        found = re.fullmatch(words, str(note), re.DOTALL) if of_kind == kind else None
        if found is not None:
            return told | {name: int(said) if name == "times" else said for name, said in found.groupdict().items()}
    return {}


def fields_in_old_part(kind: str, described: Mapping[str, Any]) -> dict[str, Any]:
    """The stage of an old part, which was the whole of its note."""
    note = described.get("note")
    return {"stage": note} if isinstance(note, str) and note in _OLD_PARTS.get(kind, ()) else {}


# --------------------------------------------------------------------------------------------------------------- stages
# The stages of a release: the closed set of names that say what a charge or a part of one was for.
#
#     rows        how many rows there are
#     bounds      the bounds of one column
#     values      the list of values of one column
#     classes     how many rows have each value of a forest's target
#     trees       the shapes of a forest's column trees
#     one-way     counts of every leaf and category, column by column
#     spikes      rows in the first cells of every leaf of a column tree, where round numbers lie
#     grain       rows in each class of a column's steps: round amounts, days of the week and ends of months
#     regions     the shapes of a forest's trees of places
#     places      counts of every region, place by place
#     workload    the tables that the call states
#     selection   which columns to look at together
#     pairs       every column with the target
#     cliques     the columns that were chosen, together
#     prior       where tables of a prior are used in place of what was not counted
#     analyses    sums over rows that the linear regressions named in the call follow from, one vector
#     products    sums over rows of products of functions of two columns, one vector
#     utility     how far what was released is from the table: distances of its tables of one and of two columns
#     splits      which nodes of one joint tree split
#     leaves      what is released of the leaves of a joint tree or a grid
#     answer      one answer that was bought beside a release
#
# Of a release of persons with many rows, besides those of its table of one row a person:
#
#     row trees       the shapes of column trees, grown on one random row of each person
#     row one-way     shares of every leaf and category of a column of rows
#     row spikes      shares in the first cells of every leaf of a column tree of rows
#     alikeness       how alike two random rows of a person are, column by column, one vector
#     row selection   which columns of rows to look at, with which others
#     row tables      the columns that were chosen, together
#
# An event names its stage in a field, and so do the parts of a composed release. None claims no stage: a charge of
# one's own, or an event of an old file whose note is not one that a fit wrote. Whoever asks for a stage does not get
# it then.


StageName = Literal[
    "rows",
    "bounds",
    "values",
    "classes",
    "relations",
    "ratios",
    "trees",
    "one-way",
    "spikes",
    "grain",
    "regions",
    "places",
    "workload",
    "selection",
    "pairs",
    "cliques",
    "prior",
    "analyses",
    "products",
    "utility",
    "splits",
    "leaves",
    "answer",
    "row trees",
    "row one-way",
    "row spikes",
    "alikeness",
    "row selection",
    "row tables",
]

STAGES: tuple[StageName, ...] = get_args(StageName)

# Laws of the noise on released counts: P(k) ~ exp(-k^2 / (2 scale)), or P(k) ~ exp(-scale |k|).
Distribution = Literal["discrete gaussian", "discrete laplace"]

# Stages of a release of persons with many rows: what they promise, they promise to persons.
PERSON_STAGES: tuple[StageName, ...] = STAGES[STAGES.index("row trees") :]


# ---------------------------------------------------------------------------------------------------------------- parts
# Parts of a composed release: what a mechanism does, in the few numbers that its privacy depends on.
#
# A pure charge carries its own epsilon. Parts carry none: they are paid for together (`composition.py`), which
# costs far less than the sum of what each would cost alone. They are frozen, hashable and JSON-ready, and stand
# in the ledger's `ComposedRelease` so that anybody can do the sum again. The rules of events hold for them:
# what an accountant needs is a field, and a note is for people.


# No delta below this is claimed: the sum is done in floats, and the slack for their round-off would take most of it.
SMALLEST_COMPOSED_DELTA = Fraction(1, 10**10)
# Laws of a wider Gaussian have too many values to be written down one by one; budgets of use stay far below.
LARGEST_COMPOSED_VARIANCE = Fraction(2**36)
SMALLEST_COMPOSED_VARIANCE = Fraction(1, 2**10)
LARGEST_TIMES = 2**16
# Decisions and choices of larger rates hardly differ from certain ones; beyond, their losses leave the range of floats.
LARGEST_COMPOSED_RATE = Fraction(32)
SMALLEST_COMPOSED_RATE = Fraction(1, 2**30)
# The squared mean of a vector of sums: what one table of these variances has.
SMALLEST_MEAN_SQUARED = 1 / LARGEST_COMPOSED_VARIANCE
LARGEST_MEAN_SQUARED = 1 / SMALLEST_COMPOSED_VARIANCE
# Discrete noise is a continuous Gaussian, rounded by chance within about this variance, up to a factor of less than
# 1 + 2^-90 for as many sums (composition.proof.md, vectors).
ROUNDING_VARIANCE = Fraction(4)
LARGEST_VECTOR = 2**20
# A person's rows count as so many whole units together, at most: with m rows, floor(UNITS / m) for each.
UNITS = 2**20
# Variances are rounded up to whole multiples of this.
VARIANCE_STEP = Fraction(1, 1 << 24)
# Shapes of a tree lose about as much as a Gaussian of this squared mean, times rate^2, for each row that changes. It
# steers how a budget is shared and certifies nothing.
TREE_COST = 1.65


_COMPOSED_RATE = Field(
    kind="exact",
    low=SMALLEST_COMPOSED_RATE,
    high=LARGEST_COMPOSED_RATE,
    otherwise="is outside 2^-30..32; give another epsilon or measure less",
)
_PART_FIELDS = {
    "variance": Field(
        kind="exact",
        low=SMALLEST_COMPOSED_VARIANCE,
        high=LARGEST_COMPOSED_VARIANCE,
        otherwise="is outside 2^-10..2^36; give a larger epsilon or release fewer tables",
    ),
    "mean_squared": Field(
        kind="exact",
        low=SMALLEST_MEAN_SQUARED,
        high=LARGEST_MEAN_SQUARED,
        otherwise="is outside 2^-36..2^10; give another epsilon or share",
    ),
    "rate": _COMPOSED_RATE,
    "epsilon": _COMPOSED_RATE,
    "decay": whole(1, _LARGEST_DECAY),
    "levels": whole(1, _LARGEST_LEVELS),
    "times": whole(1, LARGEST_TIMES),
    "note": _NOTE,
}


class _Part(Checked):
    __slots__ = ()

    checks = _PART_FIELDS


@dataclass(frozen=True, slots=True)
class GaussianTables(_Part):
    """`times` tables of counts, the cells of each sharing no row, with discrete Gaussian noise on every count."""

    variance: Fraction
    times: int
    note: str
    stage: StageName | None = field(default=None, kw_only=True)

    what: ClassVar[tuple[str, str]] = ("table", "tables")
    stages: ClassVar[tuple[StageName, ...]] = (
        "one-way",
        "spikes",
        "grain",
        "places",
        "workload",
        "pairs",
        "cliques",
    )
    distribution: ClassVar[Distribution] = "discrete gaussian"

    def scale(self, unit: Unit) -> Fraction:  # noqa: ARG002 - of the law of all counts alike
        """The variance parameter of the noise on a count."""
        return self.variance

    def noise_std(self, unit: Unit) -> float:
        """Standard deviation of the noise on a count, in rows."""
        return math.sqrt(self.scale(unit))

    @property
    def law(self) -> str:
        return f"discrete Gaussian, variance {float(self.variance):.6g}"


@dataclass(frozen=True, slots=True)
class TreeShapes(_Part):
    """Which nodes split in `times` PrivTrees, each with `levels` levels of decisions of a rate and a decay."""

    rate: Fraction
    decay: int
    levels: int
    times: int
    note: str
    stage: StageName | None = field(default=None, kw_only=True)

    what: ClassVar[tuple[str, str]] = ("tree shape", "tree shapes")
    stages: ClassVar[tuple[StageName, ...]] = ("trees", "regions", "row trees")

    @property
    def law(self) -> str:
        return f"{self.levels} levels, scale {float(1 / self.rate):.6g}, decay {self.decay}"


@dataclass(frozen=True, slots=True)
class Selections(_Part):
    """`times` choices by the exponential mechanism, each `epsilon`-bounded-range: log-ratios span at most epsilon.

    With P(i) proportional to exp(rate * score) and scores that a row changes by at most D, epsilon = 2 * rate * D.
    """

    epsilon: Fraction
    times: int
    note: str
    stage: StageName | None = field(default=None, kw_only=True)

    what: ClassVar[tuple[str, str]] = ("selection", "selections")
    stages: ClassVar[tuple[StageName, ...]] = ("selection", "prior", "row selection")

    @property
    def each(self) -> Fraction:
        """Epsilon of one choice."""
        return self.epsilon

    @property
    def law(self) -> str:
        return f"exponential mechanism, range {float(self.epsilon):.6g}"


@dataclass(frozen=True, slots=True)
class GaussianVector(_Part):
    """One vector of whole-number sums with discrete Gaussian noise, charged as N(mu, 1) against N(0, 1), mu^2 given.

    The noise on each sum has `vector_variance` at least, and there are at most 2^20. Which sums they are, how many and
    that variance may depend on what was released before: the pair that is charged does not.
    """

    mean_squared: Fraction
    note: str
    stage: StageName | None = field(default=None, kw_only=True)

    times: ClassVar[int] = 1
    what: ClassVar[tuple[str, str]] = ("vector of sums", "vectors of sums")
    stages: ClassVar[tuple[StageName, ...]] = ("relations", "ratios", "analyses", "products", "alikeness", "utility")

    def variance(self, sensitivity_squared: int) -> Fraction:
        """Variance of the noise on sums that one unit moves by this at most, in squared distance.

        The sums may be those that earlier releases suggest: the further one unit can move them, the more noise they
        get.
        """
        return rounded_up(vector_variance(self.mean_squared, sensitivity_squared))

    @property
    def law(self) -> str:
        return f"discrete Gaussian, squared mean {float(self.mean_squared):.6g}"


@dataclass(frozen=True, slots=True)
class WeightedTables(_Part):
    """`times` tables of rows of persons, in whole units, with discrete Gaussian noise on every cell.

    The cells of a table share no row, and there are at most 2^20. A person adds whole units, 0 or more to each cell and
    at most `UNITS` to all, so neighbours differ by at most sqrt(factor) UNITS in Euclidean norm. The noise has
    `units_variance` at least, and each table is charged as N(mu, 1) against N(0, 1), mu^2 = mean_squared.
    """

    mean_squared: Fraction
    times: int
    note: str
    stage: StageName | None = field(default=None, kw_only=True)

    what: ClassVar[tuple[str, str]] = ("table of persons' rows", "tables of persons' rows")
    stages: ClassVar[tuple[StageName, ...]] = ("row one-way", "row spikes", "row tables")
    distribution: ClassVar[Distribution] = "discrete gaussian"

    def scale(self, unit: Unit) -> Fraction:
        """The variance parameter of the noise on a cell, in squared units."""
        return rounded_up(units_variance(self.mean_squared, unit))

    def noise_std(self, unit: Unit) -> float:
        """Standard deviation of the noise on a cell, in persons."""
        return math.sqrt(self.scale(unit)) / UNITS

    @property
    def law(self) -> str:
        return f"discrete Gaussian on units of 2^-20 persons, squared mean {float(self.mean_squared):.6g} each"


Part = GaussianTables | TreeShapes | Selections | GaussianVector | WeightedTables
_PARTS: dict[str, type[Part]] = {kind.__name__: kind for kind in get_args(Part)}


def vector_variance(mean_squared: Fraction, sensitivity_squared: Fraction | int) -> Fraction:
    """The least variance of a `GaussianVector` whose sums a change of one unit moves by this squared distance at most.

    sensitivity_squared / mean_squared + 4, each of at most 2^20 sums being a whole number.
    """
    return sensitivity_squared / mean_squared + ROUNDING_VARIANCE


def units_variance(mean_squared: Fraction, unit: Unit, units: int = UNITS) -> Fraction:
    """The variance, in squared units, of the noise on each cell of `WeightedTables`: factor units^2 / mean_squared + 4.

    `units` is how many units a person is, at most.
    """
    return vector_variance(mean_squared, unit.factor * units**2)


def rounded_up(variance: Fraction) -> Fraction:
    """The variance that noise is drawn with: at or a little above the one that is needed, of a short denominator."""
    return math.ceil(variance / VARIANCE_STEP) * VARIANCE_STEP


def part_line(part: Part) -> str:
    """A part as a line of an account: how many of what, by which law, and what for."""
    return f"{part.times} {part.what[part.times > 1]}: {printable(part.note)} ({part.law})"


def part_from_dict(described: Any) -> Part:
    """Read a part that `event_to_dict` wrote. A kind that is not known cannot be accounted for and is refused."""
    if not isinstance(described, dict):
        raise ParameterError(f"a part is not a table of entries: {brief(described)}")
    name = described["part"]
    if not isinstance(name, str) or name not in _PARTS:
        raise ParameterError(f"part={brief(name)} of a composed release is not known to this Spinney; upgrade it")
    kind = _PARTS[name]
    if "stage" not in described:
        described = described | {"stage": None} | fields_in_old_part(name, described)
    return kind(**_values(kind, described))


def _values(kind: Any, described: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an event or a part, with exact numbers read from texts."""
    return {
        name: parse_fraction(described[name], name) if check.kind == "exact" else described[name]
        for name, check in fields_of(kind).items()
    }


# --------------------------------------------------------------------------------------------------------------- events
# What was charged for what: charges, and brands, which void a guarantee or make it conditional; their sums,
# their lines in an account, and their plain data.


MOST_LISTED = 256  # events of an entry, parts of a release
# Characters of a fraction that people are shown.
_LONGEST_SHOWN = 40

_EVENT_FIELDS = {
    "epsilon": SPENT_EPSILON,
    "delta": SPENT_DELTA,
    "sensitivity": whole(1, _LARGEST_COUNT),
    "sensitivity_squared": POSITIVE,
    "variance": POSITIVE,
    "rate": POSITIVE,
    "levels": whole(0, _LARGEST_LEVELS),
    "rule": one_of("privtree", "paper"),
    "parts": Field(
        kind="list",
        low=1,
        high=MOST_LISTED,
        otherwise=f"is not a list of 1 to {MOST_LISTED} parts such as GaussianTables",
    ),
    "note": _NOTE,
    "times": optional(whole(1, _LARGEST_COUNT)),
    "decay": optional(whole(1, _LARGEST_DECAY)),
    "column": optional(_NOTE),
}
# What an event claims beyond what it costs; files from before there were such fields have them in notes.
_CLAIMS = ("stage", "times", "decay", "column")


class _Event(Checked):
    __slots__ = ()

    checks = _EVENT_FIELDS


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceCounts(_Event):
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
        "grain",
        "places",
        "workload",
        "pairs",
        "cliques",
        "leaves",
        "answer",
    )
    distribution: ClassVar[Distribution] = "discrete laplace"

    @property
    def rate(self) -> Fraction:
        """1/scale of the noise on a count."""
        return self.epsilon / self.sensitivity

    def scale(self, unit: Unit) -> Fraction:  # noqa: ARG002 - of the law of all counts alike
        """The rate of the noise on a count."""
        return self.rate

    def noise_std(self, unit: Unit) -> float:  # noqa: ARG002
        """Standard deviation of the noise on a count, as plans state it: never below the true one."""
        return math.sqrt(2) / float(self.rate)


@dataclass(frozen=True, slots=True)
class LeafMoments(_Event):
    """Counts and sums of offsets in [-1, 1], of leaves that share no row, with one vector of noise for each leaf.

    The one vector of a bought answer is charged as that of one leaf; its numbers may both be counts. So is that of
    utility figures, whose numbers are distances.

    The noise is even over cubes, of ratio exp(-epsilon / sensitivity) for each unit of the largest coordinate.
    """

    epsilon: Fraction
    sensitivity: int
    note: str
    stage: StageName | None = field(default=None, kw_only=True)

    times: ClassVar[int] = 1
    stages: ClassVar[tuple[StageName, ...]] = ("leaves", "answer", "utility")

    @property
    def rate(self) -> Fraction:
        """1/scale of the noise on a leaf."""
        return self.epsilon / self.sensitivity


@dataclass(frozen=True, slots=True)
class SplitDecisions(_Event):
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
class DiscreteGaussianVector(_Event):
    """Whole numbers of a squared L2 sensitivity released with discrete Gaussian noise of a variance."""

    epsilon: Fraction
    delta: Fraction
    sensitivity_squared: Fraction
    variance: Fraction
    note: str

    stage: ClassVar[None] = None
    times: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Selection(_Event):
    """`times` choices out of public lists by the exponential mechanism, of `epsilon` in all and the same each.

    A choice with P(i) proportional to exp(rate * score), of scores that a row changes by at most D, costs 2 * rate * D.
    """

    epsilon: Fraction
    note: str
    stage: StageName | None = field(default=None, kw_only=True)
    times: int | None = field(default=None, kw_only=True)

    stages: ClassVar[tuple[StageName, ...]] = ("selection", "prior")

    @property
    def each(self) -> Fraction:
        """Epsilon of one choice."""
        return self.epsilon / (self.times or 1)


@dataclass(frozen=True, slots=True)
class PartitionSelection(_Event):
    """The values of `column` that enough rows have: each kept with a probability that its number of rows decides.

    The law follows from epsilon, delta and the unit (`noise.choices`).
    """

    epsilon: Fraction
    delta: Fraction
    note: str
    stage: StageName | None = field(default=None, kw_only=True)
    column: str | None = field(default=None, kw_only=True)

    times: ClassVar[int] = 1
    stages: ClassVar[tuple[StageName, ...]] = ("values",)


@dataclass(frozen=True, slots=True)
class ComposedRelease(_Event):
    """Several mechanisms paid for together: within (epsilon, delta) as a whole, by `composition.composed_delta`."""

    epsilon: Fraction
    delta: Fraction
    parts: tuple[Part, ...]
    note: str

    def __post_init__(self) -> None:
        Checked.__post_init__(self)
        if not all(isinstance(part, Part) for part in self.parts):
            raise ParameterError(f"parts {_EVENT_FIELDS['parts'].otherwise}")
        object.__setattr__(self, "parts", tuple(self.parts))


@dataclass(frozen=True, slots=True)
class NotPrivate(_Event):
    """Something was taken from the data without noise. No guarantee survives this event."""

    note: str


@dataclass(frozen=True, slots=True)
class UnsafeEntropy(_Event):
    """Noise came from a seeded generator: anyone who knows the seed can subtract it."""

    note: str


PureCharge = DiscreteLaplaceCounts | LeafMoments | SplitDecisions | Selection
Charge = PureCharge | DiscreteGaussianVector | PartitionSelection | ComposedRelease
Brand = NotPrivate | UnsafeEntropy
Event = Charge | Brand
# What one stage draws its noise by: a charge of its own, or a part of one.
Mechanism = PureCharge | DiscreteGaussianVector | PartitionSelection | Part
Tables = DiscreteLaplaceCounts | GaussianTables | WeightedTables
Trees = SplitDecisions | TreeShapes
Choices = Selection | Selections
_EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in (*get_args(Charge), *get_args(Brand))}


def mechanisms_of(events: Iterable[Event]) -> tuple[Mechanism, ...]:
    """The mechanisms that events paid for: of those that were paid for together, each."""
    found: list[Mechanism] = []
    for event in events:
        if isinstance(event, ComposedRelease):
            found += event.parts
        elif isinstance(event, Charge):
            found.append(event)
    return tuple(found)


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


def event_to_dict(event: Event | Part) -> dict[str, Any]:
    """An event, or a part of one, as JSON-ready data; fractions become text."""
    described: dict[str, Any] = {"part" if isinstance(event, Part) else "event": type(event).__name__}
    for entry in fields(event):
        value = getattr(event, entry.name)
        described[entry.name] = str(value) if isinstance(value, Fraction) else value
    if isinstance(event, ComposedRelease):
        described["parts"] = [event_to_dict(part) for part in event.parts]
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
    values = _values(kind, described)
    if kind is ComposedRelease:
        if not isinstance(values["parts"], list):
            raise ParameterError("parts is not a list")
        values["parts"] = tuple(part_from_dict(part) for part in values["parts"])
    return kind(**values)
