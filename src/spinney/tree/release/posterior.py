"""What noisy moments say about a leaf when its rows barely stand out from the noise: posterior means, leaf by leaf.

Weights fitted to a total and means divided by weights are good where leaves stand out. Where they do not, a mean may
lie outside its leaf and noise looks like rows. There a leaf's count w and mean m get a posterior: w is 0 or evenly
spread on a log scale, m anywhere in the leaf, and with noise z = (c - w, S - w m) of density exp(-max |z|) (in noise
scales) the integral over m is a product,

    p(c, S | w) = integral over rho > |c - w| of  exp(-rho)  product over axes of  |{m_a : |S_a - w m_a| <= rho}| / 2

so it takes two sums, over w and rho. A leaf is a node that did not split, which is evidence as well: a node of many
rows would hardly have stopped there. The chance that it stopped is a function of w and the public plan (`Stopping`)
and weights every term. The mean of the posterior embedding is the best guess in every kernel norm at once; that is why
the variance of m is kept too: rows spread over where the mean may lie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled

Floats = NDArray[np.float64]

# Points of the two sums: a step is then about a quarter of the noise's standard deviation.
_POINTS = 48
# Settings of a plan that could have been used are smaller.
_LARGEST = 2.0**62
# Chances that a leaf holds rows, of which the likeliest is taken.
_CHANCES = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])


@dataclass(frozen=True, slots=True, eq=False)
class Stopping:
    """How likely each node was to become a leaf, given its rows: P(noise <= min(edge - rows, reach)), Laplace noise."""

    edges: Floats  # (n_leaves,), in rows: a node of so many rows stops with chance 1/2
    reach: float  # the most that a score can lie below the cutoff, in rows
    rates: Floats  # (n_leaves,), 1 / scale of the noise on decisions; 0 where nothing was decided

    @classmethod
    def by_plan(cls, plan: Mapping[str, Any], depths: NDArray[np.int64]) -> Self:
        """What the plan on a card says about leaves of these depths; a ValueError where it is no plan of decisions."""
        if plan.get("rule") != "privtree" or "decision_noise_scale" not in plan:
            return cls(np.zeros(len(depths)), 0.0, np.zeros(len(depths)))
        names = ("fixed_depth", "max_depth", "cutoff", "decay", "decision_noise_scale")
        numbers = [plan.get(name) for name in names]
        if not all(type(number) in (int, float) and abs(number) < _LARGEST for number in numbers if number is not None):
            raise ValueError("the plan of the decisions is out of range")
        if None in numbers or plan["decision_noise_scale"] <= 0 or plan["decay"] <= 0:
            raise ValueError("the plan of the decisions is not complete")
        is_decided = (depths >= plan["fixed_depth"]) & (depths < plan["max_depth"])
        edges = plan["cutoff"] + (depths - plan["fixed_depth"]) * float(plan["decay"])
        return cls(edges, float(plan["decay"]), is_decided / float(plan["decision_noise_scale"]))


@dataclass(frozen=True, slots=True, eq=False)
class LeafPosterior:
    """Per leaf: the expected number of rows, and mean and variance of their mean along each axis in half-edges."""

    rows: Floats  # (n_leaves,)
    means: Floats  # (n_leaves, n_axes)
    variances: Floats  # (n_leaves, n_axes)


def leaf_posterior(
    noisy_counts: Floats,
    noisy_sums: Floats,
    is_measured: NDArray[np.bool_],
    scale: float,
    total: float,
    stopping: Stopping | None = None,
) -> LeafPosterior:
    """The posterior of every leaf; `scale` is 1/rate of the sup-norm noise, in rows.

    A leaf holds rows with a chance that is the same for all leaves and is itself taken from the noisy numbers. Without
    `stopping` the leaves are taken as given, whatever made them.
    """
    if stopping is None:
        stopping = Stopping(np.zeros(len(noisy_counts)), 0.0, np.zeros(len(noisy_counts)))
    empty, held, rows, means, squares = _integrals(
        noisy_counts / scale,
        noisy_sums / scale,
        is_measured,
        stopping.edges / scale,
        stopping.reach / scale,
        stopping.rates * scale,
    )
    held = held / math.log(max(2.0, total / scale))  # the log-even prior, from one noise scale to all rows
    likelihoods = np.log(np.outer(_CHANCES, held) + np.outer(1 - _CHANCES, empty) + 1e-300).sum(axis=1)
    chance = _CHANCES[int(np.argmax(likelihoods))]
    holds_rows = chance * held / (chance * held + (1 - chance) * empty + 1e-300)
    return LeafPosterior(holds_rows * rows * scale, means, np.maximum(squares - means**2, 0.0))


@compiled
def _integrals(
    counts: Floats, sums: Floats, is_measured: NDArray[np.bool_], edges: Floats, reach_below: float, rates: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Likelihood without rows and with rows, and given rows E[w], E[w m] / E[w], E[w m^2] / E[w]."""
    n_leaves, n_axes = sums.shape
    empty, held, rows = np.zeros(n_leaves), np.zeros(n_leaves), np.zeros(n_leaves)
    means, squares = np.zeros((n_leaves, n_axes)), np.zeros((n_leaves, n_axes))
    low, high = np.empty(n_axes), np.empty(n_axes)
    for leaf in range(n_leaves):
        n_measured = is_measured[leaf].sum()
        reach = n_measured + 2 + 6 * math.sqrt(n_measured + 2.0)
        # Noise that large is rare, but a leaf must not be left without any w that explains it.
        for axis in range(n_axes):
            if is_measured[leaf, axis]:
                reach = max(reach, abs(sums[leaf, axis]) - max(counts[leaf], 0.0) + 6)
        reach = max(reach, 6 - counts[leaf])
        d_rho = reach / _POINTS
        first = max(1.0, counts[leaf] - reach)
        d_w = max(counts[leaf] + reach - first, 1.0) / _POINTS
        for i in range(_POINTS):
            rho = (i + 0.5) * d_rho
            density = math.exp(-rho) * d_rho
            if abs(counts[leaf]) <= rho:
                is_inside = True
                for axis in range(n_axes):
                    is_inside &= not is_measured[leaf, axis] or abs(sums[leaf, axis]) <= rho
                if is_inside:
                    empty[leaf] += density * _stops(0.0, edges[leaf], reach_below, rates[leaf])
            for j in range(_POINTS):
                w = first + (j + 0.5) * d_w
                if abs(counts[leaf] - w) > rho:
                    continue
                p = density * d_w / w
                for axis in range(n_axes):
                    if is_measured[leaf, axis]:
                        low[axis] = max(-1.0, (sums[leaf, axis] - rho) / w)
                        high[axis] = min(1.0, (sums[leaf, axis] + rho) / w)
                        p *= max(high[axis] - low[axis], 0.0) / 2
                if p == 0:
                    continue
                p *= _stops(w, edges[leaf], reach_below, rates[leaf])
                held[leaf] += p
                rows[leaf] += p * w
                for axis in range(n_axes):
                    if is_measured[leaf, axis]:
                        a, b = low[axis], high[axis]
                        means[leaf, axis] += p * w * (a + b) / 2
                        squares[leaf, axis] += p * w * (a * a + a * b + b * b) / 3
        if rows[leaf] > 0:
            means[leaf] /= rows[leaf]
            squares[leaf] /= rows[leaf]
            rows[leaf] /= held[leaf]
    return empty, held, rows, means, squares


@compiled
def _stops(rows: float, edge: float, reach_below: float, rate: float) -> float:
    """Chance that a node of so many rows does not split, times 2; 1 where nothing was decided."""
    x = rate * min(edge - rows, reach_below)
    return float(2 - math.exp(-x) if x > 0 else math.exp(x))
