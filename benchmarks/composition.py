"""Noise that composed accounting asks for, against the textbook and zCDP; and what the sum and a choice take in time.

`python -m benchmarks composition` prints the table that docs/decisions/privacy.md quotes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from benchmarks.harness import Result, seconds
from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_delta, least_noise
from spinney.privacy.entropy import SystemEntropy
from spinney.privacy.mechanisms import GaussianTables, Part, Selections, TreeShapes
from spinney.privacy.noise.choices import choose
from spinney.tree.bins import decay_for
from spinney_paper.baselines.vector import least_variance, rho_from_delta

UNIT, DELTA = Unit.REPLACE_ONE, Fraction(1, 10**5)
EPSILONS = ("0.1", "1", "10")
N_TREES, LEVELS = 30, 24
# zCDP of a tree's shape times the squared scale: the best constant known, and by composing the pure cost of 6/scale.
BEST_RHO, TEXTBOOK_RHO = 1.94, 18.0


def trees(budget: Fraction) -> list[Part]:
    rate = Fraction(math.sqrt(budget / N_TREES / 5)).limit_denominator(10**9)
    return [TreeShapes(rate, decay_for(rate), LEVELS, N_TREES, "trees")]


def forest(budget: Fraction) -> list[Part]:
    """30 columns: a tenth for shapes, three tenths for one-ways, half for pairs and cliques, a tenth for choices."""
    rate = Fraction(math.sqrt(budget / 10 / N_TREES / 5)).limit_denominator(10**9)
    choice = Fraction(math.sqrt(budget / 10 / 28 * Fraction(5, 2))).limit_denominator(10**9)
    tables = [(30, Fraction(3, 10), "one-way"), (30, Fraction(1, 5), "pairs"), (28, Fraction(3, 10), "cliques")]
    return [
        TreeShapes(rate, decay_for(rate), LEVELS, N_TREES, "trees"),
        *(GaussianTables(2 * n / (budget * share), n, note) for n, share, note in tables),
        Selections(choice, 28, "selection"),
    ]


def least(plan: Callable[[Fraction], Sequence[Part]], epsilon: str) -> tuple[Part, ...]:
    parts = least_noise(plan, Fraction(epsilon), DELTA, UNIT)
    assert composed_delta(parts, Fraction(epsilon), UNIT) <= DELTA
    return parts


def run(*, is_quick: bool = False) -> list[Result]:  # noqa: ARG001  # small anyway
    results = []
    for epsilon in EPSILONS:
        (table,) = least(lambda budget: [GaussianTables(2 / budget, 1, "table")], epsilon)
        zcdp = math.sqrt(least_variance(Fraction(epsilon), DELTA, Fraction(2)))
        ratio = math.sqrt(table.variance) / zcdp
        results.append(Result(f"epsilon {epsilon}: noise on a table, against zCDP", ratio, 0.95, "x"))

        (shape,) = least(trees, epsilon)
        rho = float(rho_from_delta(Fraction(epsilon), DELTA)) / N_TREES
        scale = float(1 / shape.rate)
        results += [
            Result(f"epsilon {epsilon}: scale of 30 trees, against zCDP", scale / math.sqrt(BEST_RHO / rho), 0.9, "x"),
            Result(f"epsilon {epsilon}: the same, by pure cost", scale / math.sqrt(TEXTBOOK_RHO / rho), 0.3, "x"),
        ]
        # What a tree costs, as the mean of a Gaussian that costs as much: mu^2 = constant / scale^2.
        one_table = float(1 / table.variance) * 2
        results.append(Result(f"epsilon {epsilon}: mu^2 scale^2 of a tree", one_table * scale**2 / N_TREES, 3.5, ""))

    start = time.perf_counter()
    parts = [least(forest, epsilon) for epsilon in EPSILONS]
    results.append(Result("noise of a forest of 30 columns", (time.perf_counter() - start) / len(parts), 0.5, "s"))

    scores = np.random.default_rng(0).integers(0, 20_000, 50_000)
    entropy, rate = SystemEntropy(), Fraction(1, 100)
    assert scores[choose(scores, rate, entropy)] > 10_000
    took = min(seconds(lambda: choose(scores, rate, entropy)) for _ in range(20))
    results.append(Result("a choice out of 50,000", took * 1000, 3, "ms"))
    return results
