"""Utility figures: how far a release is from the private table, with exact noise. RELEASED.

What is compared are tables of one column and of two: how the rows of the table are spread over public states of
the columns, and how rows drawn from the release are. The distance of two tables is half the sum of absolute
differences of their counts, over the number of rows: the total variation distance, 0 where they are alike and 1
where they share nothing. Where the number of rows is private, counts are compared with those of the released
number of rows, so that a wrong number counts as a distance too.

Of the tables of one column, and of those of two, the mean and the largest distance are measured. Each is a
whole number of steps that one unit of privacy moves by few (`tree/utility.proof.md`); with a delta its noise is
discrete Gaussian, a part of the composed charge, and in a pure release sup-norm noise with a charge of its own.
An interval follows from the law of the noise and the rounding to steps and nothing else: it is certified.

    (first)              the figures, one by one and together
    entries of a card    the figures as a card has them, and the charge that pays for them
    laws of the noise    half-widths of intervals
    what was charged     the epsilon that a call asked for
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist
from typing import Any

from spinney.documents import Document, Documented, Facts
from spinney.privacy.budget import Unit, parse_epsilon, parse_share
from spinney.privacy.mechanisms import Event, GaussianVector, LeafMoments, mechanisms_of
from spinney.text import brief, many

# Where the plan on a card has the figures.
UTILITY = "utility"
# Distances are counted in these parts of a row, in both tables: `counting.state_tables`.
GAP_STEPS = 1 << 10
NAMES = ("one-way mean", "one-way worst", "two-way mean", "two-way worst")
# How precisely figures are measured beside each other where noise is Gaussian: most people ask for the mean over pairs.
WEIGHTS = (1, 1, 2, 1)
# What a release may be compared by.
MOST_DRAWN = 1 << 20
MOST_PAIRS = 2_000
LEVEL = 0.95

_FIGURES = "0: alike; 1: nothing in common. The figures have noise of their own and may be published."
_ENTRIES = ("noisy", "columns", "pairs", "cells", "of_rows", "drawn_rows", "seed", "sampling")
_MOST_COLUMNS = 100_000
_MOST_CELLS = 1 << 26
_LARGEST_NOISY = 1 << 61
_MOST_ROWS = 1 << 40


def figure_reach(unit: Unit) -> int:
    """By how many steps one unit of privacy moves a figure at most: GAP_STEPS for each count that it changes."""
    return GAP_STEPS * unit.factor


def weights_of(n_figures: int) -> tuple[int, ...]:
    """What the figures of a Gaussian vector are multiplied by; there are two where there is one column."""
    return WEIGHTS[:n_figures]


def figures_reach_squared(n_figures: int, unit: Unit) -> int:
    """By how much one unit of privacy moves the weighted figures at most, in squared Euclidean distance."""
    return sum((weight * figure_reach(unit)) ** 2 for weight in weights_of(n_figures))


@dataclass(frozen=True, slots=True)
class UtilityFigure:
    """One figure: an estimate, the standard deviation of its noise, and an interval that is certified."""

    name: str
    estimate: float
    noise_std: float
    low: float
    high: float
    level: float
    statement: str = "certified"

    def __str__(self) -> str:
        return (
            f"{self.name:<14} {self.estimate:.4f}   {self.low:.4f} to {self.high:.4f} "
            f"({100 * self.level:g} %, {self.statement}; noise of standard deviation {self.noise_std:.4f})"
        )


@dataclass(frozen=True, slots=True)
class Utility(Documented):
    """All figures of a release, by name: `utility["two-way mean"]`. `print` is meant to be read."""

    figures: tuple[UtilityFigure, ...]
    n_columns: int  # tables of one column that were compared: columns and places of more than one state
    n_pairs: int  # tables of two
    n_rows: int  # the rows that counts were compared for
    drawn_rows: int  # rows that were drawn from the release for it
    seed: int  # by this
    sampling: tuple[float, ...]  # by how much drawn rows are off the model's own law at most, on average

    def __getitem__(self, name: str) -> UtilityFigure:
        return {figure.name: figure for figure in self.figures}[name]

    def __iter__(self) -> Iterator[UtilityFigure]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def __str__(self) -> str:
        return "\n".join([self.compared, *map(str, self.figures), *self.remarks])

    def document(self) -> Document:
        """The figures as notebooks show them."""
        facts = [
            ("utility", self.compared),
            ("figures", tuple(map(str, self.figures))),
            ("remarks", tuple(self.remarks)),
        ]
        return Document("How far a release is from the private table", [Facts(facts)], note=_FIGURES)

    @property
    def compared(self) -> str:
        """What the figures are of, in words."""
        columns = many(self.n_columns, "column")
        if self.n_pairs:
            columns += f" and {many(self.n_pairs, 'pair')}"
        return (
            f"total variation distance of tables of {columns}, between the private table and {self.drawn_rows:,} rows "
            f"drawn with seed {self.seed}, whose own sampling error is {self.sampling[-1]:.4f} at most on average"
        )

    @property
    def remarks(self) -> list[str]:
        """What a reader has to know of these very figures: which of them are of the same distance."""
        same = []
        if self.n_columns == 1:
            same.append("there is one column")
        if self.n_pairs == 1:
            same.append("there is one pair")
        said = [f"{one}, so its mean and its worst are the same distance: they differ by noise alone" for one in same]
        one_way = self["one-way mean"].estimate > self["one-way worst"].estimate and self.n_columns > 1
        two_way = self.n_pairs > 1 and self["two-way mean"].estimate > self["two-way worst"].estimate
        if one_way or two_way:
            said.append("a mean that is above its worst is so by noise: rely on the intervals")
        return said

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data for JSON."""
        return asdict(self) | {"figures": [asdict(figure) for figure in self.figures], "sampling": list(self.sampling)}


# ---------------------------------------------------------------------------------------------------- entries of a card


def utility_of(design: Mapping[str, Any], events: Sequence[Event], unit: Unit) -> Utility | None:
    """The figures of a card; None where it has none. ValueError where the entry is not what a fit writes."""
    entry = design.get(UTILITY)
    if entry is None:
        return None
    _check_entry(entry)
    noisy, n_rows = entry["noisy"], entry["of_rows"]
    charge, weights = paid_figures(events), figure_weights(events, len(noisy))
    deviation, half = _noise(charge, len(noisy), unit)
    figures = []
    for place, (name, number, weight) in enumerate(zip(NAMES, noisy, weights, strict=False)):
        whole = 2 * GAP_STEPS * n_rows
        slack = entry["cells"][place // 2] / 2 + 1  # what rounding to steps may add or take away
        reach = (half / weight + slack) / whole
        estimate = number / (weight * whole)
        most = 1.0 if unit.n_is_public else math.inf
        middle, low, high = (min(max(value, 0.0), most) for value in (estimate, estimate - reach, estimate + reach))
        figures.append(UtilityFigure(name, middle, deviation / (weight * whole), low, high, LEVEL))
    return Utility(
        tuple(figures),
        entry["columns"],
        entry["pairs"],
        n_rows,
        entry["drawn_rows"],
        entry["seed"],
        tuple(entry["sampling"]),
    )


def paid_figures(events: Sequence[Event]) -> LeafMoments | GaussianVector:
    """The charge, or the part of one, that pays for figures; ValueError unless there is exactly one."""
    paid = [mechanism for mechanism in mechanisms_of(events) if mechanism.stage == "utility"]
    found = [mechanism for mechanism in paid if isinstance(mechanism, LeafMoments | GaussianVector)]
    if len(found) != 1:
        raise ValueError(f"figures of utility are there, and {len(found)} charges pay for them")
    return found[0]


def figure_weights(events: Sequence[Event], n_figures: int) -> tuple[int, ...]:
    """What the figures of a card were multiplied by before their noise was added."""
    return (1,) * n_figures if isinstance(paid_figures(events), LeafMoments) else weights_of(n_figures)


def _noise(charge: LeafMoments | GaussianVector, n_figures: int, unit: Unit) -> tuple[float, int]:
    """Deviation of the noise on a figure, weighted where it is Gaussian, and half the width of its interval."""
    if isinstance(charge, LeafMoments):
        rate = charge.epsilon / figure_reach(unit)
        return sup_norm_std(rate, n_figures), sup_norm_half_width(rate, n_figures, LEVEL)
    variance = charge.variance(figures_reach_squared(n_figures, unit))
    return math.sqrt(variance), gaussian_half_width(variance, LEVEL)


def _check_entry(entry: Any) -> None:
    """Raise a ValueError unless an entry has the numbers that a fit writes (`with_utility`)."""
    if not isinstance(entry, Mapping) or set(entry) != set(_ENTRIES):
        raise ValueError("the figures of utility have other entries than a fit writes")
    noisy, n_columns, n_pairs = entry["noisy"], entry["columns"], entry["pairs"]
    _check_whole(n_columns, 1, _MOST_COLUMNS, "columns")
    _check_whole(n_pairs, 0, min(math.comb(n_columns, 2), MOST_PAIRS), "pairs")
    if (n_pairs > 0) != (n_columns > 1):
        raise ValueError(f"figures of {n_columns} columns are of {n_pairs} pairs")
    n_sets = 2 if n_pairs else 1
    for name, length in (("noisy", 2 * n_sets), ("cells", n_sets), ("sampling", n_sets)):
        if not isinstance(entry[name], list) or len(entry[name]) != length:
            raise ValueError(f"the {name} of the figures of utility are not {length} numbers")
    for number in noisy:
        _check_whole(number, -_LARGEST_NOISY, _LARGEST_NOISY, "a noisy figure")
    for number in entry["cells"]:
        _check_whole(number, 2, _MOST_CELLS, "cells")
    for share in entry["sampling"]:
        if type(share) is not float or not 0 <= share <= 1e6:
            raise ValueError(f"sampling={brief(share)} is not the error of a sample")
    _check_whole(entry["of_rows"], 1, _MOST_ROWS, "of_rows")
    _check_whole(entry["drawn_rows"], 1, MOST_DRAWN, "drawn_rows")
    _check_whole(entry["seed"], 0, 0, "seed")


def _check_whole(value: Any, low: int, high: int, name: str) -> None:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name}={brief(value)} of the figures of utility is not a whole number from {low} to {high}")


# ---------------------------------------------------------------------------------------------------- laws of the noise


def gaussian_half_width(variance: Fraction, level: float) -> int:
    """A t with P(|Z| > t) at most 1 - level, Z discrete Gaussian: P(Z >= t + 1) is at most P(N(0, variance) >= t)."""
    deviation = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(variance)
    return math.ceil(deviation * (1 + 1e-9))


def sup_norm_half_width(rate: Fraction, n_figures: int, level: float) -> int:
    """The least t with P(|Z_1| > t) at most 1 - level, Z sup-norm noise, rounded towards a wider interval."""
    low, high, most = 0, 1, (1 - level) * (1 - 1e-9)
    while sup_norm_tail(rate, n_figures, high) > most:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sup_norm_tail(rate, n_figures, middle) > most else (low, middle)
    return high


def sup_norm_tail(rate: Fraction, n_figures: int, t: int) -> float:
    """P(|Z_1| > t) of sup-norm noise in so many dimensions.

    Z is even on a cube of reach R, P(R = r) proportional to (2r+1)^k a^r, a = exp(-rate), so that
    P(|Z_1| > t) = sum over r > t of 2 (r - t) (2r+1)^(k-1) a^r, over the sum of (2r+1)^k a^r.
    """
    k, a = n_figures, float(rate)
    above = _sum([2 * (r - t) * (2 * r + 1) ** (k - 1) for r in range(t + 1, t + k + 2)], a)
    whole = _sum([(2 * r + 1) ** k for r in range(k + 1)], a)
    return math.exp(-a * (t + 1)) * above / whole


def sup_norm_std(rate: Fraction, n_figures: int) -> float:
    """Standard deviation of one coordinate: the root of E R (R + 1) / 3."""
    k, a = n_figures, float(rate)
    spread = _sum([r * (r + 1) * (2 * r + 1) ** k for r in range(k + 3)], a)
    return math.sqrt(spread / _sum([(2 * r + 1) ** k for r in range(k + 1)], a) / 3)


def _sum(values: list[int], rate: float) -> float:
    """The sum over s >= 0 of p(s) exp(-rate s), p the polynomial that has these values at 0, 1, ...

    Its forward differences d_j at 0 give it: the sum of d_j a^j / (1 - a)^(j + 1). They are whole numbers, and those of
    the polynomials here are positive.
    """
    total, differences, gap = 0.0, values, -math.expm1(-rate)
    for j in range(len(values)):
        total += differences[0] * math.exp(-rate * j) / gap ** (j + 1)
        differences = [after - before for before, after in pairwise(differences)]
    return total


# ----------------------------------------------------------------------------------------------------- what was charged


def share_of_pure(parameters: Mapping[str, Any]) -> Fraction | None:
    """The epsilon of a pure release's figures, as the call asked for it; None where it did not."""
    if parameters.get("utility_share") is None or "epsilon" not in parameters:
        return None
    return parse_epsilon(parameters["epsilon"]) * parse_share(parameters["utility_share"], "utility_share")
