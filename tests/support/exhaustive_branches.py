"""Every way that a mechanism can go, with its exact chance: the real code, run once for each branch.

Where a mechanism draws, a stand-in is told the chances and follows a script; what the script leaves open becomes
further scripts. Decisions of trees and choices by the exponential mechanism are drawn so; chances are computed from the
mathematics, by what the mechanism asks for (rate, scores), so less noise than was promised shows in the law.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np

from spinney.forest import prepaid
from spinney.tree import ranges as placed
from spinney.tree import ranges as ruled
from support.output_laws import tail

Law = dict[Hashable, float]
Pick = Callable[[Sequence[float]], int]


def law_of(run: Callable[[Pick], Hashable]) -> Law:
    """Chance of every outcome of `run`, which draws by `pick(chances)` alone."""
    law: dict[Hashable, float] = defaultdict(float)
    scripts: list[tuple[int, ...]] = [()]
    while scripts:
        script = scripts.pop()
        taken: list[int] = []
        chance = 1.0

        def pick(chances: Sequence[float], script: tuple[int, ...] = script, taken: list[int] = taken) -> int:
            nonlocal chance
            possible = [place for place, here in enumerate(chances) if here > 0]
            if len(taken) < len(script):
                choice = script[len(taken)]
            else:
                choice = possible[0]
                scripts.extend((*taken, other) for other in possible[1:])
            taken.append(choice)
            chance *= chances[choice]
            return choice

        outcome = run(pick)
        law[outcome] += chance
    return dict(law)


def choice_chances(scores: Sequence[int], rate: Fraction) -> list[float]:
    """The exponential mechanism: P(i) proportional to exp(rate * score)."""
    top = max(scores)
    weights = [math.exp(float(rate) * (int(score) - top)) for score in scores]
    return [weight / math.fsum(weights) for weight in weights]


@contextmanager
def branching(pick: Pick, *, cutoff: int = 0) -> Iterator[None]:
    """Decisions of trees and choices follow `pick`; tables get no noise, for they are not looked at."""

    def decide(true_scores: Any, rate: Fraction, _: Any) -> Any:
        """Noise that takes each score above the cutoff or not: P(X > cutoff - score)."""
        above = []
        for score in np.asarray(true_scores).tolist():
            gap = cutoff - score
            above.append(pick([tail(float(rate), -gap), tail(float(rate), gap + 1)]))
        return cutoff + np.array(above, dtype=np.int64)

    def choose(scores: Any, rate: Fraction, _: Any) -> int:
        return pick(choice_chances(np.asarray(scores).tolist(), rate))

    with (
        mock.patch.object(ruled, "add_noise", decide),
        mock.patch.object(placed, "add_noise", decide),
        mock.patch.object(prepaid, "choose", choose),
        mock.patch.object(prepaid, "add_noise", lambda counts, _rate, _entropy: counts),
    ):
        yield


def hockey_stick(law: Law, other: Law, epsilon: float) -> float:
    """The least delta for which `law` is within (epsilon, delta) of `other`: sum of max(0, p - e^epsilon q)."""
    return math.fsum(max(0.0, p - math.exp(epsilon) * other.get(outcome, 0.0)) for outcome, p in law.items())
