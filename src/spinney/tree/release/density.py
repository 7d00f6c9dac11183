"""From noisy leaf moments to a density: weights, means, and how rows spread inside a leaf. PUBLIC.

    weights    the nearest to the noisy counts that are not negative and add up to the total
    means      noisy means and the lean of neighbouring weights, weighted by their precision
    density    along an axis proportional to exp(alpha u) on [-1, 1], with the leaf's mean, and contracted to it

Each step is a function of arrays. Offsets u are in half-edges of the leaf; the prior for a mean is the lean
(`geometry`), with the variance 1/3 of a row that may lie anywhere. Sees released numbers only.

    posterior         leaves that barely stand out from the noise: posterior means, leaf by leaf
    reconstruction    weights, means, slopes and spreads of all leaves, and shares of boxes
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.grid.codes import split_axes
from spinney.release.card import RowCount
from spinney.tree.bins import NoisyMoments, leaf_cells
from spinney.tree.release.geometry import Boxes, Piles, bin_boxes, find_piles, shifts

# ------------------------------------------------------------------------------------------------------------ posterior
# What noisy moments say about a leaf when its rows barely stand out from the noise: posterior means, leaf by leaf.
#
# Weights fitted to a total and means divided by weights are good where leaves stand out. Where they do not, a mean
# may lie outside its leaf and noise looks like rows. There a leaf's count w and mean m get a posterior: w is 0 or
# evenly spread on a log scale, m anywhere in the leaf, and with noise z = (c - w, S - w m) of density exp(-max |z|)
# (in noise scales) the integral over m is a product,
#
#     p(c, S | w) = integral over rho > |c - w| of  exp(-rho)  product over axes of  |{m_a : |S_a - w m_a| <= rho}| / 2
#
# so it takes two sums, over w and rho. A leaf is a node that did not split, which is evidence as well: a node of many
# rows would hardly have stopped there. The chance that it stopped is a function of w and the public plan (`Stopping`)
# and weights every term. The mean of the posterior embedding is the best guess in every kernel norm at once; that is
# why the variance of m is kept too: rows spread over where the mean may lie.


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


# ------------------------------------------------------------------------------------------------------- reconstruction
# The density. Where leaves barely stand out from the noise, weights are posterior means, and in four columns
# and more means are too (`leaf_posterior`).


# No mean lies nearer to an edge than this: the density would be a spike on noise.
LARGEST_MEAN = 0.97
# Rows spread over at least this part of a leaf.
_NARROWEST = 0.2
# A count below this many standard deviations of its noise is treated as noise: most of space is empty.
_STANDS_OUT = 1.5
# The counts that do not stand out hold rows if their sum does, by this many standard deviations.
_HOLDS_ROWS = 2.0
# E[z; z > 1.5] for noise of standard deviation 1: 0.130 if it is Gaussian, 0.132 if it is Laplace.
_LIFTED = 0.13
# Where the mean count of a leaf is below this many standard deviations of its noise, a posterior says more than a fit;
# up to three columns only of weights, and only if it reads the decisions.
_FAINT = 5.0
# Below this slope the exponential law is uniform to more digits than a float has.
FLAT = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class LeafDensity:
    """A density over the leaves: weights, and along every axis a mean and a slope, spread over a part of the leaf."""

    boxes: Boxes
    weights: Floats  # (n_leaves,), adding up to the total
    means: Floats  # (n_leaves, n_axes), in half-edges
    slopes: Floats  # (n_leaves, n_axes): alpha of exp(alpha u)
    spread: Floats  # (n_leaves, n_axes): the part of the leaf that rows spread over; 1 where nothing was measured
    piles: Piles | None = None  # where axes have points


def reconstruct(
    moments: NoisyMoments, total: float | None, row_count: RowCount | None = None, stopping: Stopping | None = None
) -> LeafDensity:
    """The density that noisy moments suggest; `total` is the number of rows where that is public.

    `row_count` is a noisy number of rows, where one was bought; otherwise the leaves' counts alone tell it. `stopping`
    says how likely nodes were to become leaves, where that is to be taken as evidence too.
    """
    steps = moments.noisy_steps / moments.quantum
    noisy_counts, noisy_sums = steps[:, 0], steps[:, 1:]
    _, _, is_measured = leaf_cells(moments.codes, moments.depths, moments.lattice)
    variance = coordinate_variance(is_measured.sum(axis=1) + 1, float(moments.rate) * moments.quantum)
    if total is None:
        total = float(noisy_counts.sum())
        if row_count is not None:
            total = row_count.with_sum(total, float(variance.sum()))
        total = max(1.0, total)
    n_axes, signal = moments.lattice.n_axes, total / len(moments) / float(np.sqrt(variance).mean())
    posterior = None
    if signal < _FAINT and (n_axes > 3 or stopping is not None):
        posterior, weights = _posterior(moments, noisy_counts, noisy_sums, is_measured, total, stopping)
    else:
        weights = leaf_weights(noisy_counts, variance, total)
    # Of few columns a posterior tells weights alone; of many, rows spread over where a mean may lie.
    doubt = posterior if n_axes > 3 else None
    if doubt is not None:
        means = doubt.means.clip(-LARGEST_MEAN, LARGEST_MEAN)
    else:
        means = np.where(is_measured, leaf_means(weights, noisy_sums, 2 * shifts(moments, weights), variance), 0.0)
    piles = find_piles(moments, weights)
    means = means if piles is None else piles.moved(means).clip(-LARGEST_MEAN, LARGEST_MEAN)
    slopes = exponential_slopes(means)
    widest = widest_spread(n_axes, signal)
    part = automatic_spread(moments, weights, means, widest) if widest < 1 else 1.0
    spread = part if doubt is None else spread_with_doubt(part, slopes, doubt.variances)
    boxes = bin_boxes(moments)
    boxes = boxes if piles is None else piles.lifted(boxes, moments)
    return LeafDensity(boxes, weights, means, slopes, np.where(is_measured, spread, 1.0), piles)


def _posterior(
    moments: NoisyMoments,
    noisy_counts: Floats,
    noisy_sums: Floats,
    is_measured: NDArray[np.bool_],
    total: float,
    stopping: Stopping | None,
) -> tuple[LeafPosterior, Floats]:
    """The posterior of all leaves, and its expected rows as weights that add up to the total."""
    scale = 1 / (float(moments.rate) * moments.quantum)
    posterior = leaf_posterior(noisy_counts, noisy_sums, is_measured, scale, total, stopping)
    held = float(posterior.rows.sum())
    weights = posterior.rows * (total / held) if held > 0 else np.full(len(moments), total / len(moments))
    return posterior, weights


def spread_with_doubt(part: float, slopes: Floats, doubt: Floats) -> Floats:
    """The part f of a leaf with f^2 V = part^2 V + doubt: rows' own variance and that of their mean; at most 1."""
    return np.sqrt(np.minimum(part**2 + doubt / exponential_variances(slopes), 1.0))


def widest_spread(n_axes: int, signal: float) -> float:
    """The most of a leaf that rows may spread over; `signal` is its mean count in standard deviations of the noise.

    Up to three columns all of it: leaves are small, and gaps between them would show on a map. Beyond, clusters are
    finer than leaves, and rows drawn together around the mean are nearer to them; less so where leaves stand far out.
    """
    return 1.0 if n_axes <= 3 else min(max(signal / 28, 2 / 3), 0.85)


def leaf_weights(noisy_counts: Floats, variance: Floats, total: float) -> Floats:
    """Weights that are not negative and add up to the total, for counts that stand out and for the others apart.

    One projection of all counts would spread the noise of empty space over everything. What the others hold together is
    their sum, corrected for what noise alone took from it by lifting some empty leaves above the line; where that is
    no more than noise, they are taken for empty.
    """
    deviation = np.sqrt(variance)
    stands_out = noisy_counts > _STANDS_OUT * deviation
    others = ~stands_out
    held = float(noisy_counts[others].sum() + _LIFTED * deviation[others].sum())
    is_noise = held < _HOLDS_ROWS * math.sqrt(float(variance[others].sum()))
    held = (0.0 if is_noise else min(held, total)) if stands_out.any() else total
    weights = np.zeros_like(noisy_counts)
    for group, share in ((stands_out, total - held), (others, held)):
        if group.any() and share > 0:
            weights[group] = project_to_total(noisy_counts[group], share)
    return weights


def project_to_total(noisy_counts: Floats, total: float) -> Floats:
    """The nearest weights w >= 0 with sum w = total: all counts lowered (or raised) alike, and cut at 0."""
    falling = np.sort(noisy_counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    is_above = falling > excess
    is_above[0] = True  # as it is before rounding: the total is positive
    n_positive = int(np.flatnonzero(is_above)[-1]) + 1
    weights: Floats = np.maximum(noisy_counts - excess[n_positive - 1], 0.0)
    return weights


def coordinate_variance(n_coordinates: NDArray[np.int64], rate: float) -> Floats:
    """Variance of one coordinate of noise with density proportional to exp(-rate max |z|) in k dimensions."""
    return (n_coordinates + 1) * (n_coordinates + 2) / (3 * rate**2)


def leaf_means(weights: Floats, noisy_sums: Floats, lean: Floats, variance: Floats) -> Floats:
    """Means in half-edges: (lean v + (S/w)/3) / (v + 1/3), v = variance / w^2 being the noise of the mean S/w."""
    w = np.maximum(weights, 1e-9)[:, None]
    noise = variance[:, None] / w**2
    means: Floats = (lean * noise + noisy_sums / w / 3) / (noise + 1 / 3)
    return means.clip(-LARGEST_MEAN, LARGEST_MEAN)


def exponential_slopes(means: Floats) -> Floats:
    """Alpha with coth(alpha) - 1/alpha = mean: the exponential density on [-1, 1] of that mean."""
    m = np.abs(means)
    alpha = np.maximum(m * (3 - m * m) / (1 - m * m), FLAT)
    for _ in range(4):  # Newton; the start is right within 5 %
        alpha = np.maximum(alpha - (_mean_of(alpha) - m) / exponential_variances(alpha), FLAT)
    slopes: Floats = np.copysign(alpha, means)
    return slopes


def exponential_variances(slopes: Floats) -> Floats:
    """Variance of the density proportional to exp(alpha u) on [-1, 1]: 1/alpha^2 - 1/sinh(alpha)^2."""
    alpha = np.maximum(np.abs(slopes), FLAT)
    series = 1 / 3 - alpha**2 / 15
    large = np.minimum(alpha, 300.0)
    with np.errstate(over="ignore"):
        return np.where(alpha < 0.02, series, 1 / large**2 - 1 / np.sinh(large) ** 2)


def _mean_of(alpha: Floats) -> Floats:
    return np.where(alpha < 0.02, alpha / 3 - alpha**3 / 45, 1 / np.tanh(np.maximum(alpha, FLAT)) - 1 / alpha)


def automatic_spread(moments: NoisyMoments, weights: Floats, means: Floats, widest: float) -> float:
    """The part f of a leaf that rows spread over, from leaves that are siblings.

    Were two siblings one leaf, with its mean and the exponential law spread over a part f, its rows would have variance
    f^2 V. What the siblings show is B between them and f^2 V' / 4 inside, in half-edges of the one leaf. Hence
    f^2 = B / (V - V'/4), added up over all pairs by their weight.
    """
    first, second = _sibling_pairs(moments)
    if not len(first):
        return widest
    axis = split_axes(moments.lattice)[moments.depths[first] - 1]
    # Halves of a list of categories, or values and nulls, do not lie side by side.
    _, _, is_measured = leaf_cells(moments.codes, moments.depths, moments.lattice)
    is_ordered = is_measured[first, axis] & is_measured[second, axis]
    first, second, axis = first[is_ordered], second[is_ordered], axis[is_ordered]
    w1, w2 = weights[first], weights[second]
    both = np.maximum(w1 + w2, 1e-9)
    m1, m2 = means[first, axis], means[second, axis]
    x1, x2 = (m1 - 1) / 2, (m2 + 1) / 2
    mean = np.clip((w1 * x1 + w2 * x2) / both, -LARGEST_MEAN, LARGEST_MEAN)
    between = w1 * w2 / both**2 * (x2 - x1) ** 2
    inside = (
        w1 * exponential_variances(exponential_slopes(m1)) + w2 * exponential_variances(exponential_slopes(m2))
    ) / both
    whole = exponential_variances(exponential_slopes(mean))
    room = float((both * (whole - inside / 4)).sum())
    if room <= 0:
        return widest
    return min(widest, max(_NARROWEST, math.sqrt(float((both * between).sum()) / room)))


def _sibling_pairs(moments: NoisyMoments) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Neighbours in the order of codes that are the two halves of one node."""
    codes, depths = moments.codes, moments.depths
    if len(moments) < 2:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    same = (depths[1:] == depths[:-1]) & (depths[1:] > 0)
    rows = np.arange(len(same))
    word, offset = np.divmod(np.maximum(depths[:-1] - 1, 0), 64)
    bit = np.uint64(1) << (63 - offset).astype(np.uint64)
    joined = codes[:-1].copy()
    joined[rows, word] |= bit
    is_lower = (codes[:-1][rows, word] & bit) == 0
    first = np.flatnonzero(same & is_lower & (joined == codes[1:]).all(axis=1))
    return first, first + 1


def box_shares(density: LeafDensity, low: Floats, high: Floats, lifted: tuple[Floats, Floats] | None = None) -> Floats:
    """Expected rows in boxes (n_boxes, n_axes): the weight of every leaf times its shares along all axes.

    `lifted` are the same ends as the places further up that leaves with piles have (`piles`).
    """
    boxes = density.boxes
    half = np.maximum(boxes.length / 2, 1e-300)
    centre = boxes.low + half + half * density.means * (1 - density.spread)
    reach = np.maximum(half * density.spread, 1e-300)
    low, high = np.atleast_2d(low), np.atleast_2d(high)
    both_low, both_high = (np.stack(ends) for ends in zip((low, high), lifted or (low, high), strict=True))
    is_lifted = np.zeros(centre.shape, dtype=np.bool_) if density.piles is None else density.piles.n_pieces > 0
    present, which = 1 - boxes.null_share, is_lifted.astype(np.int64)
    return _box_shares(both_low, both_high, density.weights, centre, reach, density.slopes, present, which)


@compiled
def _box_shares(
    low: Floats,
    high: Floats,
    weights: Floats,
    centre: Floats,
    reach: Floats,
    slopes: Floats,
    present: Floats,
    lifted: NDArray[np.int64],
) -> Floats:
    _, n_boxes, n_axes = low.shape
    rows = np.zeros(n_boxes)
    for box in range(n_boxes):
        for leaf in range(weights.size):
            share = weights[leaf]
            for axis in range(n_axes):
                c, r, which = centre[leaf, axis], reach[leaf, axis], lifted[leaf, axis]
                u1, u2 = max((low[which, box, axis] - c) / r, -1.0), min((high[which, box, axis] - c) / r, 1.0)
                if share == 0 or u1 >= u2:
                    share = 0.0
                    break
                if u1 > -1.0 or u2 < 1.0:
                    alpha = slopes[leaf, axis]
                    whole = np.expm1(2 * alpha)
                    share *= (np.expm1(alpha * (u2 + 1)) - np.expm1(alpha * (u1 + 1))) / whole
                share *= present[leaf, axis]
            rows[box] += share
    return rows
