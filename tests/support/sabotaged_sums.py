"""A zoo of sabotaged vectors of sums, beside the other forests: each with one mistake in its noise or its account."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from spinney.errors import BudgetError
from spinney.forest.plan import ForestPlan, Shape, forest_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.privacy import mechanisms
from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_deltas
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import ComposedRelease, GaussianVector
from support.gaussian_pairs import largest_deltas, moved_sums
from support.sabotaged_forests import Check, Sabotage

DELTA = Fraction(1, 10**5)
EPSILONS = np.linspace(0, 8, 33)


def sums_plan(unit: Unit, *, epsilon: Fraction = Fraction(10), share: Fraction = Fraction(9, 10)) -> ForestPlan:
    """One table, and a vector that has most of a large budget, so that its noise is narrow."""
    shares = {"one-way": 1 - share, "products": share}
    return forest_plan(Shape({"one-way": 1}, shares), epsilon=epsilon, delta=DELTA, unit=unit)


def opened(unit: Unit) -> tuple[PrepaidMechanisms, Ledger]:
    plan = sums_plan(unit)
    ledger = Ledger(limit=plan.epsilon, delta=plan.delta, unit=unit)
    return PrepaidMechanisms(plan, ledger, UnsafeSeededEntropy(1)), ledger


@contextmanager
def watched_noise() -> Iterator[list[tuple[Fraction, int]]]:
    """Variances that noise was asked for, and how many draws of each."""
    drawn: list[tuple[Fraction, int]] = []

    class Watched:
        def __init__(self, variance: Fraction) -> None:
            self.variance = variance

        def draw(self, n: int, _: Any) -> Any:
            drawn.append((self.variance, n))
            return np.zeros(n, dtype=np.int64)

    with mock.patch("spinney.forest.prepaid.discrete_gaussian", Watched):
        yield drawn


# ------------------------------------------------------------------------------------------------ checks


def sums_once() -> float:
    """The vector that was paid for can be had once."""
    prepaid, _ = opened(Unit.REPLACE_ONE)
    prepaid.noisy_sums(np.zeros(3, dtype=np.int64), 3)
    try:
        prepaid.noisy_sums(np.zeros(3, dtype=np.int64), 3)
    except BudgetError:
        return 1.0
    return 0.0


def sums_tell_no_more_than_was_charged() -> float:
    """By the exact law of the noise that is drawn, on sums that one row moves as far as it can."""
    for unit in (Unit.REPLACE_ONE, Unit.ADD_REMOVE):
        for n_sums in (1, 2, 10):
            prepaid, ledger = opened(unit)
            with watched_noise() as drawn:
                prepaid.noisy_sums(np.zeros(n_sums, dtype=np.int64), unit.factor**2 * n_sums)
            (charge,) = (event for event in ledger.events if isinstance(event, ComposedRelease))
            parts = [part for part in charge.parts if isinstance(part, GaussianVector)]
            if [n for _, n in drawn] != [n_sums]:
                return 0.0
            pair = moved_sums(float(drawn[0][0]), unit.factor, n_sums)
            if (largest_deltas(pair, EPSILONS) > composed_deltas(parts, EPSILONS, unit)).any():
                return 0.0
    return 1.0


# ------------------------------------------------------------------------------------------------ sabotage


def sums_handed_out_twice() -> AbstractContextManager[Any]:
    """Prepaid mechanisms that look whether there is something left, and take nothing out."""
    return mock.patch.object(PrepaidMechanisms, "_take", lambda self, stage: self._left[stage])


def no_variance_for_rounding() -> AbstractContextManager[Any]:
    """The variance that continuous noise would need, given to discrete noise."""
    return mock.patch.object(mechanisms, "vector_variance", lambda mean_squared, squared: squared / mean_squared)


def _variance_by(other: Callable[[GaussianVector, int], Fraction]) -> AbstractContextManager[Any]:
    return mock.patch.object(GaussianVector, "variance", other)


def distance_not_squared() -> AbstractContextManager[Any]:
    """The distance that a row moves the sums by, where its square belongs."""
    return _variance_by(lambda self, squared: mechanisms.vector_variance(self.mean_squared, math.isqrt(squared)))


def noise_of_one_sum() -> AbstractContextManager[Any]:
    """The same noise however many sums there are."""
    variance = GaussianVector.variance
    return _variance_by(lambda self, _: variance(self, 1))


def half_the_noise() -> AbstractContextManager[Any]:
    variance = GaussianVector.variance
    return _variance_by(lambda self, squared: variance(self, squared) / 4)


def one_draw_for_all() -> AbstractContextManager[Any]:
    """Every sum gets the same noise, so that differences of sums have none."""

    def shared(self: PrepaidMechanisms, true_sums: Any, sensitivity_squared: int) -> Any:
        from spinney.forest import prepaid

        noise = prepaid.discrete_gaussian(self.plan.vectors["products"].variance(sensitivity_squared))
        return true_sums + noise.draw(1, self._entropy)

    return mock.patch.object(PrepaidMechanisms, "noisy_sums", shared)


SUM_CAGES: dict[str, tuple[Check, Sabotage]] = {
    "sums handed out twice": (sums_once, sums_handed_out_twice),
    "no variance for rounding": (sums_tell_no_more_than_was_charged, no_variance_for_rounding),
    "a distance that is not squared": (sums_tell_no_more_than_was_charged, distance_not_squared),
    "the noise of one sum": (sums_tell_no_more_than_was_charged, noise_of_one_sum),
    "half the noise of sums": (sums_tell_no_more_than_was_charged, half_the_noise),
    "one draw for all sums": (sums_tell_no_more_than_was_charged, one_draw_for_all),
}
