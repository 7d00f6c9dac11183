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

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
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


Check = Callable[[Any, str], Any]

# No tree is deeper (`grid.lattice.MAX_DEPTH`), and no cutoff or decay larger (`tree.plan.LARGEST_SETTING`).
LARGEST_LEVELS = 4096
LARGEST_DECAY = 2**60
LARGEST_COUNT = 2**40
_LONGEST_NOTE = 2**16
_FEW_WORDS = 8


def check_fields(thing: Any, checks: Mapping[str, Check]) -> None:
    """Put every field of a frozen dataclass through the check of its name; whole numbers become fractions."""
    for each in fields(thing):
        object.__setattr__(thing, each.name, checks[each.name](getattr(thing, each.name), each.name))


def fraction(value: Any, name: str) -> Fraction:
    """An exact number of sane size: a Fraction or an int, and nothing that would have to be rounded or guessed."""
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
        raise ParameterError(f"{name}={brief(value)} is not an exact number; give a Fraction, such as Fraction('0.1')")
    if max(abs(value.numerator).bit_length(), value.denominator.bit_length()) > LARGEST_BITS:
        raise ParameterError(f"{name}={brief(value)} has too many digits; round it to a few")
    return Fraction(value)


def positive(value: Any, name: str) -> Fraction:
    """An exact number above 0."""
    number = fraction(value, name)
    if number <= 0:
        raise ParameterError(f"{name}={brief(number)} is not positive")
    return number


def spent_epsilon(value: Any, name: str) -> Fraction:
    """The epsilon of a charge: above 0, and no more than a release may cost."""
    epsilon = fraction(value, name)
    if epsilon < 0:
        raise BudgetError(f"{name}={brief(epsilon)} is negative; what was spent cannot be earned back")
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise ParameterError(f"{name}={brief(epsilon)} is not above 0 and at most 2^20; a charge costs something")
    return epsilon


def spent_delta(value: Any, name: str) -> Fraction:
    """The delta of a charge: 0 or more, below 1."""
    delta = fraction(value, name)
    if delta < 0:
        raise BudgetError(f"{name}={brief(delta)} is negative; what was spent cannot be earned back")
    if delta >= 1:
        raise ParameterError(f"{name}={brief(delta)} is 1 or more, which guarantees nothing")
    return delta


def whole(least: int, most: int) -> Check:
    """A check for whole numbers in least..most; a boolean is none."""

    def check(value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ParameterError(f"{name}={brief(value)} is not a whole number in {least}..{most}")
        return value

    return check


def text(value: Any, name: str) -> str:
    """A note or a name: a string, and no book."""
    if not isinstance(value, str) or len(value) > _LONGEST_NOTE:
        raise ParameterError(f"{name}={brief(value)} is not a string of at most {_LONGEST_NOTE} characters")
    return value


def optional(check: Check) -> Check:
    """The same check, passed by None too: a field that claims nothing."""

    def check_if_claimed(value: Any, name: str) -> Any:
        return None if value is None else check(value, name)

    return check_if_claimed


def check_stage(thing: Any) -> None:
    """The stage of an event or of a part is one that its kind can have, or None."""
    if thing.stage is not None and thing.stage not in thing.stages:
        known = " or ".join(map(repr, thing.stages))
        raise ParameterError(f"stage={brief(thing.stage)} is not one of {type(thing).__name__}, which has {known}")


def one_of(*known: str) -> Check:
    """A check for one of a few words."""

    def check(value: Any, name: str) -> str:
        if value not in known:
            names = " or ".join(map(repr, known)) if len(known) < _FEW_WORDS else f"one of {', '.join(known)}"
            raise ParameterError(f"{name}={brief(value)} is not {names}")
        return str(value)

    return check


# ------------------------------------------------------------------------------------------------------------ old notes
# What events said in their notes before they had fields for it. The only place where a note is read.
#
# Files of the first version, releases and ledgers, may have been written when the stage of a charge, how many trees
# or choices it paid for and the column of private bounds stood in its note alone. Such an event is an entry without
# `stage`. Only the exact words that a fit wrote are taken; any other note leaves the event without the claim. An
# entry that has `stage` is read by its fields, whatever its note says.


_NUMBER = r"([1-9][0-9]{0,8})"
_COLUMN_TREES = re.compile(rf"shapes of {_NUMBER} column trees")
_TABLES = re.compile(rf"(one-way|spikes|pairs|cliques): {_NUMBER} tables")
_CHOICES = re.compile(rf"{_NUMBER} choices of columns to look at together")
_BOUNDS = re.compile(r"bounds of (.+): leaf counts", re.DOTALL)
# The second form is of the first forests.
_CLASSES = re.compile(r"(?:classes: sizes of those|forest: sizes of the classes) of (?:'.*'|\".*\")", re.DOTALL)

_OLD_PARTS = {
    "TreeShapes": ("trees",),
    "GaussianTables": ("one-way", "spikes", "pairs", "cliques"),
    "Selections": ("selection",),
}


def fields_in_old_event(kind: str, described: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the note of an old event stands for; none where no fit wrote such a note."""
    note = described.get("note")
    if not isinstance(note, str):
        return {}
    if kind == "SplitDecisions":
        if note == "table: split decisions":
            return {"stage": "splits", "times": 1}
        found = _COLUMN_TREES.fullmatch(note)
        return {"stage": "trees", "times": int(found[1])} if found else {}
    if kind == "DiscreteLaplaceCounts":
        return _fields_of_counts(note)
    if kind == "LeafMoments":
        return {"stage": "leaves"} if note == "table: leaf counts and means" else {}
    if kind == "Selection":
        found = _CHOICES.fullmatch(note)
        return {"stage": "selection", "times": int(found[1])} if found else {}
    return {}


def _fields_of_counts(note: str) -> dict[str, Any]:
    if note == "table: leaf counts":
        return {"stage": "leaves", "times": 1}
    if found := _TABLES.fullmatch(note):
        return {"stage": found[1], "times": int(found[2])}
    if found := _BOUNDS.fullmatch(note):
        return {"stage": "bounds", "times": 1, "column": found[1]}
    return {"stage": "classes", "times": 1} if _CLASSES.fullmatch(note) else {}


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
    "trees",
    "one-way",
    "spikes",
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

# Stages of a release of persons with many rows: what they promise, they promise to persons.
PERSON_STAGES: tuple[StageName, ...] = (
    "row trees",
    "row one-way",
    "row spikes",
    "alikeness",
    "row selection",
    "row tables",
)


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


def _composed_rate(value: Any, name: str) -> Fraction:
    rate = positive(value, name)
    if not SMALLEST_COMPOSED_RATE <= rate <= LARGEST_COMPOSED_RATE:
        raise ParameterError(f"{name}={brief(rate)} is outside 2^-30..32; give another epsilon or measure less")
    return rate


def _composed_variance(value: Any, name: str) -> Fraction:
    variance = fraction(value, name)
    if not SMALLEST_COMPOSED_VARIANCE <= variance <= LARGEST_COMPOSED_VARIANCE:
        raise ParameterError(
            f"{name}={brief(variance)} is outside 2^-10..2^36; give a larger epsilon or release fewer tables"
        )
    return variance


def _mean_squared(value: Any, name: str) -> Fraction:
    mean_squared = positive(value, name)
    if not SMALLEST_MEAN_SQUARED <= mean_squared <= LARGEST_MEAN_SQUARED:
        raise ParameterError(f"{name}={brief(mean_squared)} is outside 2^-36..2^10; give another epsilon or share")
    return mean_squared


_CHECKS: dict[str, Check] = {
    "variance": _composed_variance,
    "mean_squared": _mean_squared,
    "rate": _composed_rate,
    "epsilon": _composed_rate,
    "decay": whole(1, LARGEST_DECAY),
    "levels": whole(1, LARGEST_LEVELS),
    "times": whole(1, LARGEST_TIMES),
    "note": text,
    "stage": optional(one_of(*STAGES)),
}


class _Checked:
    """What makes a part refuse numbers that are none."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self, _CHECKS)
        check_stage(self)


@dataclass(frozen=True, slots=True)
class GaussianTables(_Checked):
    """`times` tables of counts, the cells of each sharing no row, with discrete Gaussian noise on every count."""

    variance: Fraction
    times: int
    note: str
    stage: StageName | None = field(default=None, kw_only=True)

    what: ClassVar[tuple[str, str]] = ("table", "tables")
    stages: ClassVar[tuple[StageName, ...]] = ("one-way", "spikes", "places", "workload", "pairs", "cliques")

    @property
    def law(self) -> str:
        return f"discrete Gaussian, variance {float(self.variance):.6g}"


@dataclass(frozen=True, slots=True)
class TreeShapes(_Checked):
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
class Selections(_Checked):
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
    def law(self) -> str:
        return f"exponential mechanism, range {float(self.epsilon):.6g}"


@dataclass(frozen=True, slots=True)
class GaussianVector(_Checked):
    """One vector of whole-number sums with discrete Gaussian noise, charged as N(mu, 1) against N(0, 1), mu^2 given.

    The noise on each sum has `vector_variance` at least, and there are at most 2^20. Which sums they are, how many and
    that variance may depend on what was released before: the pair that is charged does not.
    """

    mean_squared: Fraction
    note: str
    stage: StageName | None = field(default=None, kw_only=True)

    times: ClassVar[int] = 1
    what: ClassVar[tuple[str, str]] = ("vector of sums", "vectors of sums")
    stages: ClassVar[tuple[StageName, ...]] = ("analyses", "products", "alikeness", "utility")

    @property
    def law(self) -> str:
        return f"discrete Gaussian, squared mean {float(self.mean_squared):.6g}"


@dataclass(frozen=True, slots=True)
class WeightedTables(_Checked):
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

    @property
    def law(self) -> str:
        return f"discrete Gaussian on units of 2^-20 persons, squared mean {float(self.mean_squared):.6g} each"


Part = GaussianTables | TreeShapes | Selections | GaussianVector | WeightedTables
_PARTS: dict[str, type[Part]] = {
    kind.__name__: kind for kind in (GaussianTables, TreeShapes, Selections, GaussianVector, WeightedTables)
}
_FRACTIONS = ("variance", "mean_squared", "rate", "epsilon")


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


def part_line(part: Part) -> str:
    """A part as a line of an account: how many of what, by which law, and what for."""
    return f"{part.times} {part.what[part.times > 1]}: {printable(part.note)} ({part.law})"


def part_to_dict(part: Part) -> dict[str, Any]:
    """A part as JSON-ready data; fractions become text."""
    described: dict[str, Any] = {"part": type(part).__name__}
    for entry in fields(part):
        value = getattr(part, entry.name)
        described[entry.name] = str(value) if isinstance(value, Fraction) else value
    return described


def part_from_dict(described: Any) -> Part:
    """Read what `part_to_dict` wrote. A kind of part that is not known cannot be accounted for and is refused."""
    if not isinstance(described, dict):
        raise ParameterError(f"a part is not a table of entries: {brief(described)}")
    name = described["part"]
    if not isinstance(name, str) or name not in _PARTS:
        raise ParameterError(f"part={brief(name)} of a composed release is not known to this Spinney; upgrade it")
    kind = _PARTS[name]
    if "stage" not in described:
        described = described | {"stage": None} | fields_in_old_part(name, described)
    values = {entry.name: described[entry.name] for entry in fields(kind)}
    for key in _FRACTIONS:
        if key in values:
            values[key] = parse_fraction(values[key], key)
    return kind(**values)


# --------------------------------------------------------------------------------------------------------------- events
# What was charged for what: charges, and brands, which void a guarantee or make it conditional; their sums,
# their lines in an account, and their plain data.


_MOST_PARTS = 256
# Characters of a fraction that people are shown.
_LONGEST_SHOWN = 40


def _parts(value: Any, name: str) -> tuple[Part, ...]:
    parts = tuple(value) if isinstance(value, (tuple, list)) else ()
    if not 1 <= len(parts) <= _MOST_PARTS or not all(isinstance(part, Part) for part in parts):
        raise ParameterError(f"{name} is not a list of 1 to {_MOST_PARTS} parts such as GaussianTables")
    return parts


_EVENT_CHECKS: dict[str, Check] = {
    "epsilon": spent_epsilon,
    "delta": spent_delta,
    "sensitivity": whole(1, LARGEST_COUNT),
    "sensitivity_squared": positive,
    "variance": positive,
    "rate": positive,
    "levels": whole(0, LARGEST_LEVELS),
    "rule": one_of("privtree", "paper"),
    "parts": _parts,
    "note": text,
    "stage": optional(one_of(*STAGES)),
    "times": optional(whole(1, LARGEST_COUNT)),
    "decay": optional(whole(1, LARGEST_DECAY)),
    "column": optional(text),
}
# What an event claims beyond what it costs; files from before there were such fields have them in notes.
_CLAIMS = ("stage", "times", "decay", "column")


class _CheckedEvent:
    """What makes an event refuse numbers that are none."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self, _EVENT_CHECKS)


class _Staged(_CheckedEvent):
    """An event of a stage, which has to be one of its kind."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self, _EVENT_CHECKS)
        check_stage(self)


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
class DiscreteGaussianVector(_CheckedEvent):
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

    The law follows from epsilon, delta and the unit (`noise.choices`).
    """

    epsilon: Fraction
    delta: Fraction
    note: str
    stage: StageName | None = field(default=None, kw_only=True)
    column: str | None = field(default=None, kw_only=True)

    stages: ClassVar[tuple[StageName, ...]] = ("values",)


@dataclass(frozen=True, slots=True)
class ComposedRelease(_CheckedEvent):
    """Several mechanisms paid for together: within (epsilon, delta) as a whole, by `composition.composed_delta`."""

    epsilon: Fraction
    delta: Fraction
    parts: tuple[Part, ...]
    note: str


@dataclass(frozen=True, slots=True)
class NotPrivate(_CheckedEvent):
    """Something was taken from the data without noise. No guarantee survives this event."""

    note: str


@dataclass(frozen=True, slots=True)
class UnsafeEntropy(_CheckedEvent):
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
_EVENT_FRACTIONS = ("epsilon", "delta", "rate", "sensitivity_squared", "variance")


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
    for name in _EVENT_FRACTIONS:
        if name in values:
            values[name] = parse_fraction(values[name], name)
    if kind is ComposedRelease:
        if not isinstance(values["parts"], list):
            raise ParameterError("parts is not a list")
        values["parts"] = tuple(part_from_dict(part) for part in values["parts"])
    return kind(**values)
