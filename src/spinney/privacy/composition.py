"""What many mechanisms cost together: their privacy loss distributions, composed.

Each part of a release (`mechanisms.py`) is bounded by a pair of known distributions (P, Q): whatever two
neighbouring tables show of it is a function of one draw from P or from Q. The privacy loss ln P/Q, drawn under
P, is written down on a grid; parts are composed by convolving (`dp-accounting`), and delta at epsilon is read
off the sum. Rounding to the grid is a refinement, so it can only overstate the loss. Proof:
composition.proof.md.

    claims of events     what a charge from a file claims, worked out again
    composition          delta of all parts, and the least noise within (epsilon, delta)
    parts as losses      the loss distribution of each kind of part
    sizes                the step of the grid, and the work that composing takes
    guarantee            default delta, warnings, and the guarantee for somebody with several rows
    composed parts       that guarantee for parts that were paid for together
    Gaussian vectors     the same for one vector of sums
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from spinney.errors import BudgetError, ParameterError
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import (
    PERSON_STAGES,
    SMALLEST_COMPOSED_DELTA,
    Charge,
    ComposedRelease,
    DiscreteGaussianVector,
    Event,
    GaussianTables,
    GaussianVector,
    Part,
    PartitionSelection,
    Selections,
    TreeShapes,
    WeightedTables,
)
from spinney.privacy.noise.choices import keep_law
from spinney.privacy.noise.discrete import arb_fraction
from spinney.privacy.noise.gaussian import LARGEST_VARIANCE, SMALLEST_VARIANCE, delta_from_rho
from spinney.text import brief

# ----------------------------------------------------------------------------------------------------- claims of events
# What an event claims, worked out again from the numbers that it lists.
#
# A charge is checked where it is made. One that comes out of a file may say anything, so whoever reads a card
# asks here: the parts of a composed release are composed anew, and Gaussian noise is accounted for anew, both
# rounded as they were.


# No fit of ours makes more: ten stages of a table and six of persons' rows, of them one of trees of columns, one of
# trees of places and one of trees of rows, none of more than 64 levels. Composing takes time for each, and a file that
# somebody made to be slow is not worth it.
_MOST_PARTS = 16
_MOST_TREES = 3
_MOST_LEVELS = 64


def check_composed(event: ComposedRelease, unit: Unit) -> None:
    """Raise unless the parts of a composed release are within its epsilon and delta, in a unit."""
    trees = [part for part in event.parts if isinstance(part, TreeShapes)]
    if len(event.parts) > _MOST_PARTS or len(trees) > _MOST_TREES or any(part.levels > _MOST_LEVELS for part in trees):
        raise ParameterError("a composed release lists more parts than a fit makes")
    check_parts(event, unit)


def check_parts(charge: ComposedRelease, unit: Unit) -> None:
    """Refuse a composed charge whose parts cost more than it says, in a unit, or promise nothing in that unit.

    One row of a person moves weighted tables as far as another person does, also where rows are added or removed.
    """
    if not unit.is_person:
        for part in charge.parts:
            if isinstance(part, WeightedTables) or part.stage in PERSON_STAGES:
                raise ParameterError(
                    f"{charge.note!r} has a part of persons with many rows ({brief(part.note)}), and "
                    f"unit={unit.value!r} is of single rows; charge it to a ledger of unit={unit.of_persons.value!r}"
                )
    check_claim(charge.epsilon, charge.delta)
    if (work := composing_work(charge.parts, unit)) > LARGEST_WORK:
        raise BudgetError(
            f"the parts of {brief(charge.note)} take {work / LARGEST_WORK:.3g} times the work that composing may take: "
            "what they cost was not worked out; no fit charges such parts"
        )
    least = composed_delta(charge.parts, charge.epsilon, unit)
    if least > charge.delta:
        raise BudgetError(
            f"the parts of {charge.note!r} cost delta={float(least):.6g} at epsilon={charge.epsilon} in unit "
            f"{unit.value}, more than the {float(charge.delta):.6g} charged; take the parts that least_noise gives"
        )


def check_gaussian(event: DiscreteGaussianVector) -> None:
    """Raise unless noise of the variance hides the sensitivity within epsilon and delta."""
    if not SMALLEST_VARIANCE <= event.variance <= LARGEST_VARIANCE:
        raise ParameterError(f"variance={brief(event.variance)} is outside 2^-20..2^98")
    least = delta_from_rho(event.sensitivity_squared / (2 * event.variance), event.epsilon)
    if least > event.delta:
        raise BudgetError(
            f"the Gaussian noise of {event.note!r} gives delta={float(least):.6g} at epsilon={brief(event.epsilon)}, "
            f"more than the {float(event.delta):.6g} stated"
        )


def rows_found(epsilon: Fraction, delta: Fraction, unit: Unit) -> tuple[int, int]:
    """With how many rows a selection of values finds one as often as not, and in 999 of 1000 cases."""
    law = keep_law(epsilon, delta, unit)
    return law.rows_for(Fraction(1, 2)), law.rows_for(Fraction(999, 1000))


# ---------------------------------------------------------------------------------------------------------- composition
# The pairs (P, Q) by kind of part:
#
#     GaussianTables   discrete Gaussian against itself shifted by 1; twice under replace-one
#     TreeShapes       the envelope of all paths of decisions near the cutoff, and coins for those above; under
#                      replace-one, the same once more with P and Q exchanged
#     GaussianVector   a Gaussian of mean sqrt(mean_squared) against mean 0
#     WeightedTables   a Gaussian of mean sqrt(times mean_squared) against mean 0
#     Selections       a Gaussian of mean sqrt(times) mu against mean 0,
#                      mu = 2 Phi^-1(e^(epsilon/2) / (1+e^(epsilon/2)))
#
# Rounding to the grid is a refinement, so it can only overstate the loss: each value is split between its two
# neighbours on the grid such that the masses under P and under Q are both kept. Proof: composition.proof.md.


# Slack for floats: relative, absolute, and in epsilon (composition.proof.md, floats).
_RELATIVE_SLACK = 1e-3
_ABSOLUTE_SLACK = 1e-12
_EPSILON_SLACK = 1e-9
# Rounding to the grid may add this share to the variance of the total loss.
_ROUNDING_SHARE = 2.5e-4
_FEW = 1000  # with fewer losses than this the grid is no coarser: a single one may have few values
_LARGEST_GRID = 2**21
# Laws are cut where 12 standard deviations, or a chance of 2^-60, are passed; the rest counts as infinite loss.
_REACH = 12
_NEGLIGIBLE = 2.0**-60
# Decisions within so many decays of the cutoff go into the envelope, in at most so many blocks for each decay.
_N_NEAR = 6
_N_BLOCKS = 16
# Tails of less than this on either side of a law are cut: the lower is raised to what is kept, the upper is infinite.
_TAIL = 1e-20
# The search ends at this share of the best budget, and gives up after so many evaluations.
_CLOSE = 0.997
_AIM = 0.9985
_N_EVALUATIONS = 8
# Parts that take more work than this (`composing_work`) are refused: those of a fit take a tenth of it.
LARGEST_WORK = 5e6
_NORMAL = NormalDist()

Masses = NDArray[np.float64]
# First grid index, masses under P from there on, and the mass whose loss counts as infinite.
Losses = tuple[int, Masses, float]


def composed_delta(parts: Sequence[Part], epsilon: Fraction, unit: Unit) -> Fraction:
    """A delta, rounded up, for which all parts together are (epsilon, delta)-DP, however they build on each other."""
    if epsilon <= 0:
        raise ParameterError(f"epsilon={epsilon} is not positive; a release needs some budget")
    return _composed_delta(tuple(parts), epsilon, unit)


def composed_deltas(parts: Sequence[Part], epsilons: Masses, unit: Unit) -> Masses:
    """The same at many epsilons, in ascending order, 0 or more."""
    if not parts:
        return np.zeros_like(epsilons)
    found = np.asarray(_losses(tuple(parts), unit).get_delta_for_epsilon(epsilons * (1 - _EPSILON_SLACK)))
    deltas: Masses = np.maximum(found, 0.0) * (1 + _RELATIVE_SLACK) + _ABSOLUTE_SLACK
    return deltas


@lru_cache(maxsize=256)
def _composed_delta(parts: tuple[Part, ...], epsilon: Fraction, unit: Unit) -> Fraction:
    if not parts:
        return Fraction(0)
    delta = float(_losses(parts, unit).get_delta_for_epsilon(float(epsilon) * (1 - _EPSILON_SLACK)))
    return min(Fraction(1), Fraction(max(delta, 0.0) * (1 + _RELATIVE_SLACK) + _ABSOLUTE_SLACK))


@lru_cache(maxsize=4)  # each may be some ten megabytes
def _losses(parts: tuple[Part, ...], unit: Unit) -> Any:
    """The privacy loss distribution of all parts together."""
    step = _grid_step(parts, unit)
    whole = _composed(parts[0], step, unit)
    for part in parts[1:]:
        whole = whole.compose(_composed(part, step, unit))
    return whole


def least_noise(
    plan: Callable[[Fraction], Sequence[Part]], epsilon: Fraction, delta: Fraction, unit: Unit
) -> tuple[Part, ...]:
    """The parts of the largest budget, within about half a percent, that are certainly within (epsilon, delta).

    `plan(budget)` gives the parts for a budget in squared Gaussian means: `times * factor / variance` of the tables,
    `mean_squared` of a vector, `times * mean_squared` of weighted tables, and what amounts to it of the rest, add up to
    about the budget. Whatever is returned has passed `composed_delta`.
    """
    check_claim(epsilon, delta)
    wanted = _gaussian_mean(float(epsilon), float(delta)) ** 2
    budget, best, best_budget = wanted, None, 0.0
    for _ in range(_N_EVALUATIONS):
        parts = tuple(plan(Fraction(f"{budget:.9g}")))
        reached = composed_delta(parts, epsilon, unit)
        # A Gaussian that costs as much tells how far the budget is from the best one.
        ratio = wanted / _gaussian_mean(float(epsilon), float(reached)) ** 2 if reached < 1 else 0.25
        if reached <= delta and budget > best_budget:
            best, best_budget = parts, budget
            if ratio * _CLOSE <= 1:
                break
        budget *= min(max(ratio * _AIM, 0.25), 4.0)
    if best is None:
        raise BudgetError(
            f"no noise could be certified within epsilon={epsilon}, delta={float(delta):.3g}; "
            "ask for fewer releases or give a larger budget"
        )
    return best


def check_claim(epsilon: Fraction, delta: Fraction) -> None:
    """Refuse what composition cannot promise."""
    if epsilon <= 0:
        raise ParameterError(f"epsilon={epsilon} is not positive; a release needs some budget")
    if not SMALLEST_COMPOSED_DELTA <= delta < 1:
        raise ParameterError(
            f"delta={float(delta):.3g} is not between 1e-10 and 1; composed releases need one, say 1e-6"
        )


# ------------------------------------------------------------------------------------------------------ parts as losses


def _composed(part: Part, step: float, unit: Unit) -> Any:
    """The privacy loss distribution of a part, all its repetitions included."""
    if isinstance(part, Selections):
        return _gaussian(math.sqrt(part.times) * selection_mean(part.epsilon), step)
    if isinstance(part, GaussianVector | WeightedTables):
        return _gaussian(math.sqrt(part.times * part.mean_squared), step)
    if isinstance(part, GaussianTables):
        return _distribution(step, _shifted_gaussian(part.variance, step)).self_compose(part.times * unit.factor)
    with_row = _tree_shape(part, step, is_reversed=False)
    without_row = _tree_shape(part, step, is_reversed=True)
    if unit.of_rows is Unit.ADD_REMOVE:
        return _distribution(step, with_row, without_row).self_compose(part.times)
    return _distribution(step, with_row).compose(_distribution(step, without_row)).self_compose(part.times)


def _gaussian(mean: float, step: float) -> Any:
    """N(mean, 1) against N(0, 1), the mean rounded up."""
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution.from_gaussian_mechanism(
        1 / (mean * (1 + 1e-12)), value_discretization_interval=step, use_connect_dots=True
    )


def _distribution(step: float, *directions: Losses) -> Any:
    """The library's form of losses: one where both directions are alike, otherwise with the row and without it."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    both = [
        pld_pmf.DensePLDPmf(step, first, masses, infinite, pessimistic_estimate=True)
        for first, masses, infinite in map(_trimmed, directions)
    ]
    return privacy_loss_distribution.PrivacyLossDistribution(*both)


def _trimmed(losses: Losses) -> Losses:
    """Losses without their negligible tails: the lower is raised to the first that is kept, the upper is infinite."""
    first, masses, infinite = losses
    start = int(np.searchsorted(np.cumsum(masses), _TAIL))
    n_cut = int(np.searchsorted(np.cumsum(masses[::-1]), _TAIL))
    kept = masses[start : len(masses) - n_cut].copy()
    kept[0] += masses[:start].sum()
    return first + start, kept, infinite + float(masses[len(masses) - n_cut :].sum())


def on_grid(losses: Masses, masses: Masses, step: float) -> tuple[int, Masses]:
    """Losses on multiples of `step`: each is split between its neighbours, keeping its mass under P and under Q.

    Mass m at loss l between k step and (k+1) step leaves w m at the lower, with w e^(-k step) + (1-w) e^(-(k+1) step)
    = e^-l.
    """
    below = np.floor(losses / step).astype(np.int64)
    lower_share = (np.expm1((below + 1) * step - losses) / math.expm1(step)).clip(0, 1)
    first = int(below.min())
    n = int(below.max()) - first + 2
    spread = np.zeros(n)
    spread += np.bincount(below - first, masses * lower_share, n)
    spread += np.bincount(below - first + 1, masses * (1 - lower_share), n)
    return first, spread


def _shifted_gaussian(variance: Fraction, step: float) -> Losses:
    """A count with discrete Gaussian noise against the count next to it: at x the loss is (1 - 2x) / (2 variance)."""
    v = float(variance)
    reach = math.ceil(_REACH * math.sqrt(v)) + 1
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    masses = np.exp(-x * x / (2 * v))
    first, spread = on_grid((1 - 2 * x) / (2 * v), masses / masses.sum(), step)
    return first, spread, 2 * math.exp(-reach * reach / (2 * v))


def _tree_shape(part: TreeShapes, step: float, *, is_reversed: bool) -> Losses:
    """One path of a tree, with the row against without it or the reverse.

    The decisions near the cutoff by the envelope of what can be seen of them; those above, from x on, as coins that
    fail with chance a^(x+jD) / (1+a) and a^(x+jD-1) / (1+a). Of coins too rare to matter the total variation counts as
    infinite loss.
    """
    rate = float(part.rate)
    first, spread, x = _lower_decisions(rate, part.decay, step, is_reversed=is_reversed)
    for level in range(part.levels):
        chance = math.exp(-rate * (x + part.decay * level)) / (1 + math.exp(-rate))
        if chance < _NEGLIGIBLE:
            return first, spread, (part.levels - level) * chance * math.expm1(rate)
        sides, losses = _coin(chance, -rate, is_reversed=is_reversed)
        start, masses = on_grid(losses, sides, step)
        tossed = np.zeros(len(spread) + len(masses) - 1)
        for i in np.flatnonzero(masses):  # at most four
            tossed[i : i + len(spread)] += masses[i] * spread
        first, spread = first + start, tossed
    return first, spread, 0.0


def _lower_decisions(rate: float, decay: int, step: float, *, is_reversed: bool) -> tuple[int, Masses, int]:
    """A law that tells no less than those decisions on any path that are below some x, and that x.

    Let E(x) be the largest delta, epsilon by epsilon, of all paths whose decisions are at x or below: at 0 that of the
    coin that splits. A path whose first decision is at x ends where it fails, and otherwise goes on at x - D or below.
    So with the chances f, s of failing and splitting, E(x) is the larger of E(x-1) and of
    max(0, f - e^epsilon f') + s E(x-D) at epsilon less ln s/s'. Blocks of x are taken together: one that fails at the
    lowest of them would have failed at another with a certain chance at least, and else goes on as well.
    """
    width = -(-decay // _N_BLOCKS)
    n_back = decay // width
    last = math.ceil((_N_NEAR + 4) * rate / step) + 1
    grid: Masses = step * np.arange(-last, last + 1, dtype=np.float64)

    sides, losses = _coin(math.exp(-rate) / (1 + math.exp(-rate)), rate, is_reversed=is_reversed)
    envelopes = [sum(side * np.maximum(0, -np.expm1(grid - loss)) for side, loss in zip(sides, losses, strict=True))]
    certain = math.exp(-rate * (width - 1))
    for block in range(_N_NEAR * n_back):
        chance = math.exp(-rate * (1 + block * width)) / (1 + math.exp(-rate))
        (fails, splits), (fail_loss, split_loss) = _coin(chance, -rate, is_reversed=is_reversed)
        rest = envelopes[max(block + 1 - n_back, 0)]
        deltas = certain * fails * np.maximum(0, -np.expm1(grid - fail_loss))
        deltas += (1 - certain) * fails * _after(rest, fail_loss, step) + splits * _after(rest, split_loss, step)
        envelopes.append(np.maximum(np.maximum(envelopes[-1], deltas), -np.expm1(grid)))
    return -last, _masses_of(envelopes[-1], grid, step), 1 + _N_NEAR * n_back * width


def _after(deltas: Masses, loss: float, step: float) -> Masses:
    """Deltas at epsilon less a loss, from those at the points of the grid, by the chords between them.

    Beyond its ends the grid is taken to go on as it ends: that is right at the upper, and the caller mends the lower.
    """
    n_steps = math.floor(loss / step)
    share = math.expm1((n_steps + 1) * step - loss) / math.expm1(step)
    places = np.arange(len(deltas)) - n_steps
    moved: Masses = share * deltas.take(places, mode="clip") + (1 - share) * deltas.take(places - 1, mode="clip")
    return moved


def _coin(chance: float, loss: float, *, is_reversed: bool) -> tuple[Masses, Masses]:
    """Masses and losses of the two sides of a coin, the first of this chance and loss.

    Under Q the first side has chance q = chance e^-loss, so that the other has the loss ln (1 - chance) / (1 - q).
    """
    other = chance * math.exp(-loss)
    losses = np.array([loss, math.log1p(chance * math.expm1(-loss) / (1 - other))])
    return (np.array([other, 1 - other]), -losses) if is_reversed else (np.array([chance, 1 - chance]), losses)


def _masses_of(deltas: Masses, grid: Masses, step: float) -> Masses:
    """The law on the grid with these deltas at its points, all of it within the grid.

    Delta is a sum of max(0, P - e^epsilon Q): where its slope in e^epsilon changes there is mass under Q.
    """
    slopes = np.diff(deltas) / (np.exp(grid[:-1]) * math.expm1(step))
    masses: Masses = np.maximum(np.diff(slopes, prepend=-1.0, append=0.0), 0) * np.exp(grid)
    return masses


@lru_cache(maxsize=256)
def selection_mean(epsilon: Fraction) -> float:
    """The mean mu, rounded up, of a Gaussian that hides no more than an epsilon-bounded-range choice.

    mu = 2 Phi^-1(e^(epsilon/2) / (1 + e^(epsilon/2))); certified by Phi(-mu/2) <= 1 / (1 + e^(epsilon/2)).
    """
    with flint.ctx.workprec(128):
        tail = 1 / (1 + arb_fraction(epsilon / 2).exp())
        root = (2 * tail).erfcinv()  # Phi(-mu/2) = erfc(mu / (2 sqrt 2)) / 2
        mean = float((2 * flint.arb(2).sqrt() * root).upper()) * (1 + 1e-12)
        if not (flint.arb(mean) / (2 * flint.arb(2).sqrt())).erfc() / 2 <= tail:
            raise BudgetError(f"epsilon={epsilon} of a selection is beyond what can be accounted for")
    return mean


# ---------------------------------------------------------------------------------------------------------------- sizes


def _grid_step(parts: Sequence[Part], unit: Unit) -> float:
    """A step so fine that splitting losses between neighbours adds little to the variance of their sum.

    A split adds at most step^2 / 4 to the variance of a loss. Any step gives a valid delta.
    """
    variance, n = _spread_of(parts, unit)
    widest = variance / 2 + 2 * _REACH * math.sqrt(variance)
    return max(math.sqrt(4 * _ROUNDING_SHARE * variance / max(n, _FEW)), widest / _LARGEST_GRID)


def composing_work(parts: Sequence[Part], unit: Unit) -> float:
    """About how many numbers composing takes, without doing it: points of grids, as often as they are gone through."""
    if not parts:
        return 0.0
    step, (variance, _) = _grid_step(parts, unit), _spread_of(parts, unit)
    work = len(parts) * (variance / 2 + 2 * _REACH * math.sqrt(variance)) / step
    for part in parts:
        if isinstance(part, GaussianTables):
            work += 4 * _REACH * math.sqrt(part.variance)
        elif isinstance(part, TreeShapes):
            rate = float(part.rate)
            n_blocks = (_N_NEAR + 1) * min(part.decay, _N_BLOCKS)
            work += 2 * (n_blocks + min(part.levels, 42 / (rate * part.decay))) * (_N_NEAR + 4) * rate / step
    return work


def _spread_of(parts: Sequence[Part], unit: Unit) -> tuple[float, int]:
    """The variance of the loss of all parts together, about, and of how many losses it is the sum."""
    variance, n = 0.0, 0
    for part in parts:
        if isinstance(part, GaussianTables):
            variance += part.times * unit.factor / float(part.variance)
            n += part.times * unit.factor
        elif isinstance(part, TreeShapes):
            rate = float(part.rate)
            n_coins = min(part.levels, 42 / (rate * part.decay)) + 1
            variance += part.times * unit.factor * min(rate, 2.0) ** 2
            n += math.ceil(part.times * unit.factor * n_coins)
        elif isinstance(part, GaussianVector | WeightedTables):
            variance += part.times * float(part.mean_squared)
            n += 1
        else:
            variance += part.times * selection_mean(part.epsilon) ** 2
            n += 1
    return variance, n


def _gaussian_delta(mean: float, epsilon: float) -> float:
    """The exact delta of N(mean, 1) against N(0, 1), in floats: it steers the search and certifies nothing."""
    below = _NORMAL.cdf(-mean / 2 - epsilon / mean)
    return _NORMAL.cdf(mean / 2 - epsilon / mean) - (math.exp(min(epsilon, 700.0)) * below if below else 0.0)


@lru_cache(maxsize=1024)
def _gaussian_mean(epsilon: float, delta: float) -> float:
    """The mean of a Gaussian of that delta."""
    low, high = -40.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _gaussian_delta(math.exp(middle), epsilon) < delta else (low, middle)
    return math.exp(low)


# ------------------------------------------------------------------------------------------------------------ guarantee
# What (epsilon, delta) means for people: how small delta has to be, what is too weak to count, and what
# somebody with several rows is guaranteed.
#
# The unit of a guarantee is one row, or one person with all their rows: then read persons for rows here.
# Between tables that differ in k rows lies a chain of k neighbours, and deltas at the factors gamma = e^epsilon
# of its links add up (composition.proof.md, groups):
#
#     delta_k(e1 + ... + ek)  =  delta(e1) + exp(e1) delta(e2) + ... + exp(e1 + ... + e(k-1)) delta(ek)
#
# for any e1, ..., ek. The smallest such sum is looked for on a grid. Pure charges cost a group k times their
# epsilon.


# No default is larger than this, however few the rows.
LARGEST_DEFAULT_DELTA = Fraction(1, 10**6)
# No default is smaller: composition claims none below.
_SMALLEST_DEFAULT_DELTA = Fraction(1, 10**10)
# Odds of e^20 are certainty for all purposes.
LARGEST_CREDIBLE_EPSILON = 20

GROUPS = (2, 5, 10)

# The grid of epsilons of a link: so many steps to the release's own epsilon, and so many in all.
_STEPS = 100
_N_GRID = 2500
_LARGEST_EXPONENT = 600.0  # of exp, in floats

Deltas = NDArray[np.float64]


def default_delta(n_rows: int) -> Fraction:
    """A tenth of one over the number of rows, rounded down to one digit, and at most 1e-6."""
    tenth = Decimal(1) / Decimal(10 * max(1, n_rows))
    digit = tenth.quantize(Decimal(1).scaleb(tenth.adjusted()), rounding=ROUND_FLOOR)
    return max(min(Fraction(digit), LARGEST_DEFAULT_DELTA), _SMALLEST_DEFAULT_DELTA)


def cautions(epsilon: Fraction, delta: Fraction, n_rows: int | None, *, who: str = "rows") -> list[str]:
    """What should be told about a promise that is weaker than it looks; `n_rows` is public, or a public guess.

    `who` is what they are: rows, or persons where these are protected with all their rows.
    """
    found = []
    if epsilon > LARGEST_CREDIBLE_EPSILON:
        found.append(
            f"epsilon={float(epsilon):g} is above {LARGEST_CREDIBLE_EPSILON}, which protects nobody in practice; "
            "useful values lie between about 0.1 and 10"
        )
    if n_rows and delta * n_rows > 1:
        found.append(
            f"delta={float(delta):g} is above one over the number of {who} (1/{n_rows:,}): publishing a few whole "
            f"{who} would satisfy such a guarantee; take delta={float(default_delta(n_rows)):g} or less"
        )
    return found


@dataclass(frozen=True, slots=True)
class GroupPromise:
    """The guarantee for a person with `n_rows` rows: (epsilon, delta), both rounded up. Delta 1 guarantees nothing."""

    n_rows: int
    epsilon: Fraction
    delta: Fraction

    def __str__(self) -> str:
        if self.delta >= 1:
            return "no guarantee"
        return f"epsilon {float(self.epsilon):g}" + (f", delta {float(self.delta):g}" if self.delta else "")


def group_promise(events: Iterable[Event], unit: Unit, n_rows: int) -> GroupPromise:
    """What all charges together promise to a person with `n_rows` rows.

    Epsilon at the delta of the release where there is one; otherwise the delta at `n_rows` times its epsilon.
    """
    epsilon, delta = Fraction(0), Fraction(0)
    for event in events:
        if isinstance(event, ComposedRelease) and event.delta:
            more = _group_of_parts(event.parts, event.epsilon, event.delta, unit, n_rows)
        elif isinstance(event, DiscreteGaussianVector) and event.delta:
            more = _group_of_vector(event, n_rows)
        elif isinstance(event, PartitionSelection):
            more = n_rows * event.epsilon, _chained_delta(event.epsilon, event.delta, n_rows)
        elif isinstance(event, Charge):
            more = n_rows * event.epsilon, Fraction(0)
        else:
            continue
        epsilon, delta = epsilon + more[0], delta + more[1]
    return GroupPromise(n_rows, _rounded_up(epsilon), min(Fraction(1), _rounded_up(delta)))


# ------------------------------------------------------------------------------------------------------- composed parts


@lru_cache(maxsize=64)
def _group_of_parts(
    parts: tuple[Part, ...], epsilon: Fraction, delta: Fraction, unit: Unit, n_rows: int
) -> tuple[Fraction, Fraction]:
    """Epsilon and delta of a group, from the losses of all parts together."""
    step = float(epsilon) / _STEPS
    n_grid = min(_N_GRID, int(_LARGEST_EXPONENT / step))
    if n_grid < 2 * _STEPS:  # an epsilon in the hundreds, which is no promise for one row either
        return n_rows * epsilon, Fraction(1)
    grid: Deltas = step * np.arange(n_grid, dtype=np.float64)
    group = chain_deltas(np.minimum(composed_deltas(parts, grid, unit), 1.0), grid, n_rows)
    within = np.flatnonzero(group <= float(delta))
    if len(within):
        return Fraction(float(grid[within[0]])), delta
    here = min(n_rows * _STEPS, n_grid - 1)
    return Fraction(float(grid[here])), Fraction(min(1.0, float(group[here])))


def chain_deltas(deltas: Deltas, grid: Deltas, n_links: int) -> Deltas:
    """The deltas of a chain of links, at the same points of the grid: by squaring, as powers are taken."""
    whole, power = None, deltas
    while n_links:
        if n_links & 1:
            whole = power if whole is None else _linked(whole, power, grid)
        n_links >>= 1
        if n_links:
            power = _linked(power, power, grid)
    assert whole is not None
    return whole


def _linked(first: Deltas, second: Deltas, grid: Deltas) -> Deltas:
    """The least first(e) + exp(e) second(rest) over all e on the grid, for each e + rest on it."""
    factors = np.exp(grid)
    best = np.ones_like(first)
    for place, (delta, factor) in enumerate(zip(first, factors, strict=True)):
        np.minimum(best[place:], delta + factor * second[: len(best) - place], out=best[place:])
    return best * (1 + 1e-9)  # for the rounding of floats


def _chained_delta(epsilon: Fraction, delta: Fraction, n_rows: int) -> Fraction:
    """The delta of k equal links at k epsilon: delta (1 + e^epsilon + ... + e^((k-1) epsilon)), rounded up."""
    if n_rows * epsilon > _LARGEST_EXPONENT:
        return Fraction(1)
    factors = sum(math.exp(float(link * epsilon)) for link in range(n_rows))
    return min(Fraction(1), delta * Fraction(factors * (1 + 1e-9)))


# ----------------------------------------------------------------------------------------------------- Gaussian vectors


def _group_of_vector(event: DiscreteGaussianVector, n_rows: int) -> tuple[Fraction, Fraction]:
    """Of sums that one row moves by D, k rows move them by k D at most: rho grows with k squared."""
    from spinney.privacy.noise.gaussian import delta_from_rho

    rho = n_rows**2 * event.sensitivity_squared / (2 * event.variance)
    # Where the tail of a Gaussian would have it, and on from there.
    reach = float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / float(event.delta)))
    for epsilon in (Fraction(reach * (90 + percent) / 100) for percent in range(30)):
        if delta_from_rho(rho, epsilon) <= event.delta:
            return epsilon, event.delta
    return n_rows * event.epsilon, delta_from_rho(rho, n_rows * event.epsilon)


def _rounded_up(value: Fraction) -> Fraction:
    """The number, or the next above it of three digits where it takes more than six."""
    shown = Fraction(f"{float(value):.6g}")
    if value in (0, shown):
        return value
    rough = Decimal(float(value)) * (1 + Decimal(10) ** -12)
    return Fraction(rough.quantize(Decimal(1).scaleb(rough.adjusted() - 2), rounding=ROUND_CEILING))
