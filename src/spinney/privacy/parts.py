"""Parts of a composed release: what a mechanism does, in the few numbers that its privacy depends on.

A pure charge carries its own epsilon. Parts carry none: they are paid for together (`composition`), which costs far
less than the sum of what each would cost alone. They are frozen, hashable and JSON-ready, and stand in the ledger's
`ComposedRelease` so that anybody can do the sum again. The rules of `events` hold for them: what an accountant needs is
a field, and a note is for people.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, ClassVar

from spinney.errors import ParameterError
from spinney.privacy import guard
from spinney.privacy.budget import Unit, parse_fraction
from spinney.privacy.old_notes import fields_in_old_part
from spinney.privacy.stages import STAGES, StageName
from spinney.shown import brief, printable

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
    rate = guard.positive(value, name)
    if not SMALLEST_COMPOSED_RATE <= rate <= LARGEST_COMPOSED_RATE:
        raise ParameterError(f"{name}={brief(rate)} is outside 2^-30..32; give another epsilon or measure less")
    return rate


def _composed_variance(value: Any, name: str) -> Fraction:
    variance = guard.fraction(value, name)
    if not SMALLEST_COMPOSED_VARIANCE <= variance <= LARGEST_COMPOSED_VARIANCE:
        raise ParameterError(
            f"{name}={brief(variance)} is outside 2^-10..2^36; give a larger epsilon or release fewer tables"
        )
    return variance


def _mean_squared(value: Any, name: str) -> Fraction:
    mean_squared = guard.positive(value, name)
    if not SMALLEST_MEAN_SQUARED <= mean_squared <= LARGEST_MEAN_SQUARED:
        raise ParameterError(f"{name}={brief(mean_squared)} is outside 2^-36..2^10; give another epsilon or share")
    return mean_squared


_CHECKS: dict[str, guard.Check] = {
    "variance": _composed_variance,
    "mean_squared": _mean_squared,
    "rate": _composed_rate,
    "epsilon": _composed_rate,
    "decay": guard.whole(1, guard.LARGEST_DECAY),
    "levels": guard.whole(1, guard.LARGEST_LEVELS),
    "times": guard.whole(1, LARGEST_TIMES),
    "note": guard.text,
    "stage": guard.optional(guard.one_of(*STAGES)),
}


class _Checked:
    """What makes a part refuse numbers that are none."""

    __slots__ = ()

    def __post_init__(self) -> None:
        guard.check_fields(self, _CHECKS)
        guard.check_stage(self)


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
