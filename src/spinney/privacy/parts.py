"""Parts of a composed release: what a mechanism does, in the few numbers that its privacy depends on.

A pure charge carries its own epsilon. Parts carry none: they are paid for together (`composition`), which costs far
less than the sum of what each would cost alone. They are frozen, hashable and JSON-ready, and stand in the ledger's
`ComposedRelease` so that anybody can do the sum again.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

from spinney.errors import ParameterError

# Laws of a wider Gaussian have too many values to be written down one by one; budgets of use stay far below.
LARGEST_COMPOSED_VARIANCE = Fraction(2**36)
SMALLEST_COMPOSED_VARIANCE = Fraction(1, 2**10)
LARGEST_TIMES = 2**16
# Shapes of a tree lose about as much as a Gaussian of this squared mean, times rate^2, for each row that changes. It
# steers how a budget is shared and certifies nothing.
TREE_COST = 1.65


@dataclass(frozen=True, slots=True)
class GaussianTables:
    """`times` tables of counts, the cells of each sharing no row, with discrete Gaussian noise on every count."""

    variance: Fraction
    times: int
    note: str

    what: ClassVar[str] = "tables"

    def __post_init__(self) -> None:
        _check_times(self.times)
        if not SMALLEST_COMPOSED_VARIANCE <= self.variance <= LARGEST_COMPOSED_VARIANCE:
            raise ParameterError(
                f"variance={float(self.variance):.6g} is outside 2^-10..2^36; "
                "give a larger epsilon or release fewer tables"
            )

    @property
    def law(self) -> str:
        return f"discrete Gaussian, variance {float(self.variance):.6g}"


@dataclass(frozen=True, slots=True)
class TreeShapes:
    """Which nodes split in `times` PrivTrees, each with `levels` levels of decisions of a rate and a decay."""

    rate: Fraction
    decay: int
    levels: int
    times: int
    note: str

    what: ClassVar[str] = "tree shapes"

    def __post_init__(self) -> None:
        _check_times(self.times)
        if self.rate <= 0:
            raise ParameterError(f"rate={self.rate} is not positive; decisions need noise of some scale")
        if not _is_count(self.decay) or not _is_count(self.levels):
            raise ParameterError(f"decay={self.decay!r} and levels={self.levels!r} must be whole numbers from 1 on")

    @property
    def law(self) -> str:
        return f"{self.levels} levels, scale {float(1 / self.rate):.6g}, decay {self.decay}"


@dataclass(frozen=True, slots=True)
class Selections:
    """`times` choices by the exponential mechanism, each `epsilon`-bounded-range: log-ratios span at most epsilon.

    With P(i) proportional to exp(rate * score) and scores that a row changes by at most D, epsilon = 2 * rate * D.
    """

    epsilon: Fraction
    times: int
    note: str

    what: ClassVar[str] = "selections"

    def __post_init__(self) -> None:
        _check_times(self.times)
        if self.epsilon <= 0:
            raise ParameterError(f"epsilon={self.epsilon} is not positive; a selection needs some budget")

    @property
    def law(self) -> str:
        return f"exponential mechanism, range {float(self.epsilon):.6g}"


Part = GaussianTables | TreeShapes | Selections
_PARTS: dict[str, type[Part]] = {kind.__name__: kind for kind in (GaussianTables, TreeShapes, Selections)}
_FRACTIONS = ("variance", "rate", "epsilon")


def part_line(part: Part) -> str:
    """A part as a line of an account: how many of what, by which law, and what for."""
    return f"{part.times} {part.what}: {part.note} ({part.law})"


def part_to_dict(part: Part) -> dict[str, Any]:
    """A part as JSON-ready data; fractions become text."""
    described: dict[str, Any] = {"part": type(part).__name__}
    for field in fields(part):
        value = getattr(part, field.name)
        described[field.name] = str(value) if isinstance(value, Fraction) else value
    return described


def part_from_dict(described: dict[str, Any]) -> Part:
    """Read what `part_to_dict` wrote. A kind of part that is not known cannot be accounted for and is refused."""
    name = described["part"]
    if name not in _PARTS:
        raise ParameterError(f"part={name!r} of a composed release is not known to this Spinney; upgrade it")
    kind = _PARTS[name]
    values = {field.name: described[field.name] for field in fields(kind)}
    for key in _FRACTIONS:
        if key in values:
            values[key] = Fraction(values[key])
    return kind(**values)


def _check_times(times: int) -> None:
    if not _is_count(times) or times > LARGEST_TIMES:
        raise ParameterError(f"times={times!r} is not a whole number in 1..{LARGEST_TIMES}")


def _is_count(value: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
