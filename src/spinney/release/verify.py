"""What a release file promises, worked out again from what it lists. PUBLIC.

Epsilon and delta follow from the charges, and the contents have to be those that the charges pay for. A file
that lies with consistency cannot be told from a true one: that the noise was really drawn stands in no file.

    spread of totals    totals of tables agree neither better nor worse than their noise allows
    utility figures     figures of utility against their charge and each other
    verification        all of a release, in words
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from spinney.privacy.budget import Unit, parse_delta, parse_epsilon
from spinney.privacy.composition import check_composed, check_gaussian
from spinney.privacy.mechanisms import (
    Charge,
    ComposedRelease,
    DiscreteGaussianVector,
    DiscreteLaplaceCounts,
    LeafMoments,
    NotPrivate,
    PartitionSelection,
    decimal,
    mechanisms_of,
)
from spinney.release.card import NOISY_ROWS, Card, RowCount, check, same
from spinney.release.release import Release
from spinney.release.utility import GAP_STEPS, UTILITY, Utility, figure_weights, paid_figures, share_of_pure
from spinney.text import brief

# ----------------------------------------------------------------------------------------------------- spread of totals
# Whether released tables have the noise that is stated: their totals are of the same rows, so they differ by
# noise.
#
# Every table of a release counts all rows, so that the sum of its n noisy counts is off from the number of rows
# by noise of n times the variance of one. Over many tables the squares of these, in units of the stated
# variance, add up to about their number k; where noise is smaller than stated, to less. By Chernoff's bound a
# sum of k squares of standard normal numbers is at most x < k with probability at most
#
#     exp(-(x - k - k ln(x / k)) / 2).
#
# Of forests only too little noise is detected: rows that a rule leaves out of a table make its total differ by
# more. So a card that states several times the noise that its tables have is refused, whatever else was changed
# with it; one that states a little more is not.
#
# Where every row is in exactly one of the counts, too much noise is detected as well: with M(s) the expectation
# of e^(sZ) of the noise Z of one count, the noises of all add up to t or more, or to -t or less, with
# probability at most
#
#     2 exp(sum of ln M(s) - s t)      for every s > 0,
#
# so that their sum lies within `farthest`, the least such t over many s, except with probability `CHANCE`.


# A true file is refused once in so many times, or more rarely.
CHANCE = 1e-9
# Sums of a few Laplace draws lie near 0 more often than normal ones, by this factor a sum at most.
_LAPLACE = 1.8
_FEWEST = 4


@dataclass(frozen=True, slots=True)
class TableSum:
    """The sum of a table's noisy counts, and the variance of its noise as stated."""

    total: float
    variance: float
    is_gaussian: bool = True


def check_spread(sums: Sequence[TableSum], n_rows: float | None, what: str) -> list[str]:
    """Raise a ContradictionError where the tables agree better than their noise allows; say how many were compared.

    `n_rows` is the number that all of them count, where it is public; else their own mean stands for it.
    """
    if len(sums) < _FEWEST:
        return []
    dof = len(sums)
    if n_rows is None:
        weights = [1 / one.variance for one in sums]
        n_rows = sum(weight * one.total for weight, one in zip(weights, sums, strict=True)) / sum(weights)
        dof -= 1
    # Totals are whole: one is no further off than its distance and a half, which is never below that of smooth noise.
    squares = sum((abs(one.total - n_rows) + 0.5) ** 2 / one.variance for one in sums)
    allowance = sum(0.0 if one.is_gaussian else math.log(_LAPLACE) for one in sums)
    share = max(squares / dof, 1e-300)
    log_chance = -dof * (share - 1 - math.log(share)) / 2
    is_noisy = squares >= dof or log_chance + allowance > math.log(CHANCE)
    check(is_noisy, f"the totals of {len(sums)} {what} agree better than the noise that is stated for them allows")
    return [f"the totals of {len(sums)} {what} differ by at least as much as the noise stated for them lets expect"]


# ------------------------------------------------------------------------------------------------------------- too much

# At how many s the bound is looked for, and the part of the rate where they begin.
_N_SLOPES, _FIRST_SLOPE = 200, 1e-3


def farthest(log_moments: Callable[[float], float], rate: float) -> float:
    """How far from 0 a sum of symmetric noises lies at the most, except with probability `CHANCE`.

    Args:
        log_moments: the sum of ln M(s) of all of them, for s between 0 and `rate`.
        rate: where their moments end.
    """
    slopes = rate * np.geomspace(_FIRST_SLOPE, 0.99, _N_SLOPES)
    return min((log_moments(float(s)) - math.log(CHANCE / 2)) / float(s) for s in slopes)


def laplace_log_moment(rate: float, s: float) -> float:
    """Ln M(s) of discrete Laplace noise: (1-a)^2 / ((1 - a e^s) (1 - a e^-s)) with a = e^-rate."""
    return 2 * math.log(-math.expm1(-rate)) - math.log(-math.expm1(s - rate)) - math.log(-math.expm1(-s - rate))


def sup_norm_log_moment(rate: float, n_axes: int, s: float) -> float:
    """Ln of the expectation of exp(s z_1), for 0 < s < rate: how far sums of first coordinates may lie from 0.

    The noise is that of `privacy.noise.supnorm`. The sum of e^(sz) over -r..r is sinh(s(r + 1/2)) / sinh(s/2), so that

        E exp(s z_1) = (e^(s/2) F(a e^s) - e^(-s/2) F(a e^-s)) / (2 sinh(s/2) G(a)),

    F the sum over r of (2r+1)^(k-1) x^r, and G that of (2r+1)^k x^r.
    """
    above, below = _power_sum(n_axes - 1, s - rate), _power_sum(n_axes - 1, -s - rate)
    whole = _power_sum(n_axes, -rate)
    spread = -math.expm1(below - above - s)
    return max(0.0, above + s / 2 + math.log(spread) - math.log(2 * math.sinh(s / 2)) - whole)


def _power_sum(n_axes: int, log_ratio: float) -> float:
    """Ln of the sum over r of (2r+1)^k e^(r log_ratio)."""
    numbers = eulerian(n_axes)
    return math.log(sum(b * math.exp(j * log_ratio) for j, b in enumerate(numbers))) - (n_axes + 1) * math.log(
        -math.expm1(log_ratio)
    )


@lru_cache(maxsize=64)
def eulerian(n_axes: int) -> tuple[int, ...]:
    """b_0, ..., b_k with the sum over r of (2r+1)^k x^r = (b_0 + ... + b_k x^k) / (1 - x)^(k+1)."""
    numbers = [1]
    for n in range(1, n_axes + 1):
        pairs = zip([*numbers, 0], [0, *numbers], strict=True)
        numbers = [(2 * j + 1) * below + (2 * (n - j) + 1) * above for j, (below, above) in enumerate(pairs)]
    return tuple(numbers)


# ------------------------------------------------------------------------------------------------------ utility figures
# Figures of utility in a file, compared with the charge that pays for them, with the call and with each other.


# Noise beyond so many standard deviations is drawn once in 10^9 times or more rarely, be it sup-norm or Gaussian.
_MOST_DEVIATIONS = 25.0


def verify_utility(release: Release) -> list[str]:
    """Figures are there where a charge pays for them and the call asked for them, and are possible but for noise."""
    card, figures = release.card, release.card.utility
    is_asked = card.parameters.get("utility_share") is not None
    n_paid = sum(mechanism.stage == "utility" for mechanism in mechanisms_of(card.events))
    check(is_asked or not n_paid, "figures of utility were paid for, and the call did not ask for them")
    if figures is None:
        # Nothing was released to compare with the table, or no column has more than one state.
        is_nothing = card.is_empty or not _has_columns(release)
        check(not n_paid or is_nothing, "figures of utility were paid for, and the card has none")
        is_uniform = card.structure == "uniform"
        is_told = not is_asked or n_paid > 0 or is_uniform or is_nothing
        check(is_told, "the call asks for figures of utility, and no charge pays for them")
        return []
    check(n_paid == 1, "figures of utility are there, and not one charge pays for them")
    charge = paid_figures(card.events)
    if isinstance(charge, LeafMoments):
        unit = Unit.parse(card.unit)
        same(charge.sensitivity, unit.factor, "the sensitivity of the figures of utility")
        asked = share_of_pure(card.parameters)
        check(
            asked is None or charge.epsilon == asked, "the figures of utility cost another part than the call asked for"
        )
    else:
        check(bool(card.delta), "figures of utility are part of a composed charge, and the release is pure")
    n_rows = card.n_rows if card.n_rows is not None else max(1, release._noisy_total())
    same(figures.n_rows, n_rows, "the number of rows that figures of utility are of")
    check(figures.n_columns <= len(card.schema), "figures of utility are of more columns than there are")
    _check_order(figures)
    _check_range(release, figures)
    deviation = figures["two-way mean" if figures.n_pairs else "one-way mean"].noise_std
    noise = f"noise of standard deviation {deviation:.3g} by the charge that pays for them"
    return [f"{len(figures)} figures of utility: {noise}"]


def _check_order(figures: Utility) -> None:
    """Means are no larger than the worst, nor the worst column than the worst pair, but for noise."""

    def is_above(first: str, second: str) -> bool:
        one, other = figures[first], figures[second]
        slack = _MOST_DEVIATIONS * math.hypot(one.noise_std, other.noise_std) + 1e-3
        return one.estimate <= other.estimate + slack

    pairs = [("one-way mean", "one-way worst")]
    if figures.n_pairs:
        pairs += [("two-way mean", "two-way worst"), ("one-way worst", "two-way worst")]
    for first, second in pairs:
        check(is_above(first, second), f"the figure {first!r} is above {second!r} by more than noise")


def _check_range(release: Release, figures: Utility) -> None:
    """No figure is below 0, nor above 1 where the number of rows is public, but for noise."""
    noisy, whole = release.card.design[UTILITY]["noisy"], 2 * GAP_STEPS * figures.n_rows
    weights = figure_weights(release.card.events, len(noisy))
    most = 1.0 if release.card.n_rows is not None else math.inf
    for figure, number, weight in zip(figures, noisy, weights, strict=True):
        slack = _MOST_DEVIATIONS * figure.noise_std + 1e-2
        is_possible = -slack <= number / (weight * whole) <= most + slack
        check(is_possible, f"the figure {figure.name!r} is no distance, even with its noise")


def _has_columns(release: Release) -> bool:
    """Whether some column has more than one value, so that there is something to compare."""
    from spinney.grid.lattice import halving_axis

    modelled = release.card.schema._modelled
    return any(halving_axis(name, column).n_possible > 1 for name, column in modelled.items())


# --------------------------------------------------------------------------------------------------------- verification
# A card's epsilon and delta are the sums of its events, and each event has to be true in itself: the parts of a
# composed release cost no more than it says, decisions of a rate are within their epsilon, Gaussian noise of a
# variance is within epsilon and delta. Then the events have to be those of what was released: the noise that
# the contents name, the plan on the card, the depth of the leaves, how many tables were counted.
#
# A file that lies with consistency cannot be told from a true one: that the noise was really drawn stands in no
# file.


# Noisy counts are cut there.
_LARGEST_NOISY = 2**61


# What no file shows, whoever made it.
_NEVER = (
    ("that noise was drawn, and from the system's entropy", "only the numbers with noise are in a file"),
    ("that the table was counted as stated", "the table is private, and no file holds it"),
    ("the notes of charges", "they are words for people, and no number is taken from them"),
    ("other releases and bought answers of the same people", "their charges stand in a ledger, not in this file"),
)


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked, in words, the guarantee that it arrives at, and what a file cannot show."""

    guarantee: str
    checks: tuple[str, ...]
    not_checked: tuple[Mapping[str, str], ...] = ()  # `what` and `why`


def verification(release: Release) -> Verification:
    """Work the promise of a release out again; a ValueError says what does not hold.

    `Release._verified` remembers it. `spinney verify` adds what takes long: `synthesizers/verify.py`.
    """
    card, unit = release.card, Unit.parse(release.card.unit)
    is_fitting = unit.is_person == release.protects_persons
    check(is_fitting, f"the unit is {unit.value!r}, and a release of kind {release.kind!r} is of another")
    checks = [_total(card), _call(card), *_rows(card, unit)]
    is_branded = any(isinstance(event, NotPrivate) for event in card.events)
    check(is_branded or not card.schema._has_data_derived_bounds, "bounds were read off the data, and no event says so")
    for event in card.events:
        if isinstance(event, ComposedRelease):
            check_composed(event, unit)
            checks.append(f"a charge for {len(event.parts)} parts: composed anew, they cost no more than it states")
        elif isinstance(event, DiscreteGaussianVector):
            check_gaussian(event)
            checks.append("a charge for sums: Gaussian noise of its variance is within its epsilon and delta")
        elif isinstance(event, PartitionSelection):
            check(release.kind == "forest", "values were found privately, which is for forests alone")
        elif isinstance(event, (DiscreteLaplaceCounts, LeafMoments)):
            check(event.sensitivity % unit.factor == 0, f"{event.note}: its sensitivity is not one of unit {unit}")
    checks += release.verify_contents()
    checks += verify_utility(release)
    others = release.unverified()
    if card.design.get(UTILITY) is not None:
        others.append(("the figures of utility themselves", "they compare the release with the private table"))
    return Verification(
        card.guarantee, tuple(checks), tuple({"what": what, "why": why} for what, why in (*others, *_NEVER))
    )


# ------------------------------------------------------------------------------------------------------------- the card


def _total(card: Card) -> str:
    """Epsilon and delta are sums of events by construction; `Card.from_dict` compares them with what was stated."""
    n_charges = sum(isinstance(event, Charge) for event in card.events)
    charges = "1 charge" if n_charges == 1 else f"{n_charges} charges"
    return f"{charges} on the card, adding up to epsilon {decimal(card.epsilon)}, delta {decimal(card.delta)}"


def _call(card: Card) -> str:
    """No more was spent than the call asked for, as far as the call says numbers."""
    parameters = card.parameters
    if "unit" in parameters:
        unit = Unit.parse(card.unit)  # a call for persons may say it by the name of the same for rows
        check(parameters["unit"] in (unit.value, unit.of_rows.value), "the unit is not the one that the call asked for")
    asked = {"epsilon": parse_epsilon, "delta": parse_delta}
    for name, parse in asked.items():
        try:
            limit = parse(parameters[name], name)
        except (KeyError, ValueError):
            continue
        check(getattr(card, name) <= limit, f"the events cost more {name} than the call asked for")
    who = "persons" if Unit.parse(card.unit).is_person else "rows"
    return (
        f"unit {card.unit}, and the number of {who} {'stated' if card.n_rows is not None else 'kept private'} with it"
    )


def _rows(card: Card, unit: Unit) -> list[str]:
    """A noisy number of rows was paid for, once, exactly where the call leaves the number to be counted."""
    counted = [event for event in card.events if isinstance(event, DiscreteLaplaceCounts) and event.stage == "rows"]
    assumed = "assumed_persons" if unit.is_person else "assumed_rows"
    if not counted:
        check(NOISY_ROWS not in card.design, "the plan has a noisy number of rows, and no charge pays for it")
        is_given = unit.n_is_public or card.parameters.get(assumed, 1) is not None
        check(is_given, "the call leaves the rows to be counted, and no charge pays for that")
        return []
    check(not unit.n_is_public, "rows were counted with noise, and their number is public")
    check(card.parameters.get(assumed) is None, "rows were counted, and the call says how many to assume")
    check(len(counted) == 1 and counted[0].times == 1, "rows were counted more than once")
    same(counted[0].sensitivity, unit.factor, "the sensitivity of the number of rows")
    noisy = card.design.get(NOISY_ROWS)
    check(type(noisy) is int and abs(noisy) <= _LARGEST_NOISY, f"{NOISY_ROWS}={brief(noisy)} is not a noisy count")
    deviation = RowCount(0, counted[0].epsilon).noise_std
    who = "persons" if unit.is_person else "rows"
    return [f"the number of {who}: counted once, with noise of standard deviation {deviation:,.6g}"]
