"""Theorem 6, corrected: what theorem 5 says when the rows are a Gaussian sample.

The rows are n independent draws of N(c, s²·1) in d columns; s belongs to the data, the bandwidth σ to the kernel. The
theorem bounds M (bins of t/2 rows or more) and m (rows in bins of fewer than 3t/2) and hands them to theorem 5.

The printed proof does not go through. Besides the exponent 2 for d in its condition, it asks for w > 7000 s and for
bins much narrower than s·√log n at once; it drops epsilon, takes the rows of a bin to be no nearer than its centre,
bounds a random number by its mean, and spends delta once where four events need a share. The statement here has the
printed shape and the following proof; each event fails with probability delta/4 at most.

    noise    all noises are within beta, theorem 5's event; t = 2 beta
    heavy    fewer than t/2 rows lie further than r from c, so a bin of t/2 rows meets that ball: M <= (2r/w + 2)^d
    light    every bin with a row within rho expects mu >= max(3t, 8 log(4J/delta)) rows and so holds mu/2 >= 3t/2
    outside  the rows in light bins are then further out than rho: m is a binomial count, bounded by Bernstein
"""

from __future__ import annotations

import math

from spinney.errors import ParameterError
from spinney_paper.theory.bounds import n_grid_bins, noise_error, rounding_bound
from spinney_paper.theory.checks import Noise, Number, chance, not_negative, positive, whole
from spinney_paper.theory.noise import largest_noise


def chernoff_tail(mean: Number, *, deviation: Number) -> float:
    """Bound on P(|Y - mean| > deviation·mean) for a sum Y of independent 0-1 variables.

    2 exp(-mean ((1+x) log(1+x) - x)); x is the deviation, any positive number. Lemma 14 prints 2 exp(-x² mean / 4),
    which is weaker up to x = 4 and false for large x.
    """
    x = positive(deviation, "deviation")
    return min(1.0, 2 * math.exp(-positive(mean, "mean") * ((1 + x) * math.log1p(x) - x)))


def norm_tail(radius: Number, *, n_columns: int) -> float:
    """P(‖Z‖ >= radius) for Z ~ N(0, 1) in d columns, exactly: a finite sum. Corollary 13 bounds it."""
    y, d = not_negative(radius, "radius") ** 2 / 2, whole(n_columns, "n_columns", at_least=1)
    if y == 0:
        return 1.0
    first = 0.0 if d % 2 == 0 else math.erfc(math.sqrt(y))
    powers = [k + (d % 2) / 2 for k in range(d // 2)]
    return min(1.0, first + sum(math.exp(p * math.log(y) - y - math.lgamma(p + 1)) for p in powers))


def norm_radius(tail: Number, *, n_columns: int) -> float:
    """A radius that ‖Z‖, Z ~ N(0, 1) in d columns, exceeds with probability `tail` at most. Remark 4.

    √(d + 2√(d·x) + 2x) with x = log(1/tail), after Laurent and Massart.
    """
    x, d = -math.log(chance(tail, "tail")), whole(n_columns, "n_columns", at_least=1)
    return math.sqrt(d + 2 * math.sqrt(d * x) + 2 * x)


def gaussian_heavy_bins(
    n_rows: int, *, threshold: Number, failure: Number, data_sd: Number, bin_width: Number, n_columns: int
) -> int:
    """Most bins of t/2 rows or more in a Gaussian sample, M, but for a chance `failure`. Lemma 27.

    (2r/w + 2)^d, r being the radius beyond which t/2 - √(t log(1/failure)) rows are expected (or, where that is less,
    `failure` rows: then none are there).
    """
    n_rows, half = whole(n_rows, "n_rows", at_least=1), positive(threshold, "threshold") / 2
    failure, s, w = chance(failure, "failure"), positive(data_sd, "data_sd"), positive(bin_width, "bin_width")
    expected = max(failure, half - math.sqrt(-2 * half * math.log(failure)))
    radius = s * norm_radius(expected / n_rows, n_columns=n_columns) if expected < n_rows else 0.0
    return int(math.floor(2 * radius / w + 2) ** n_columns)


def gaussian_light_rows(
    n_rows: int,
    *,
    threshold: Number,
    n_bins: int,
    failure: Number,
    data_sd: Number,
    bin_width: Number,
    n_columns: int,
) -> float:
    """Most rows of a Gaussian sample in bins of fewer than 3t/2 rows, m, but for a chance 2·`failure`. Lemma 28.

    n p + l/3 + √(l²/9 + 2 n p l), l = log(1/failure), p = P(‖X - c‖ >= rho); rho solves n (w / s√2π)^d exp(-(rho +
    w√d)² / 2s²) = max(3t, 8 log(J/failure)), the left side being the least that a bin with a row within rho expects.
    """
    n_rows, n_bins = whole(n_rows, "n_rows", at_least=1), whole(n_bins, "n_bins", at_least=1)
    s, w, d = positive(data_sd, "data_sd"), positive(bin_width, "bin_width"), whole(n_columns, "n_columns", at_least=1)
    log_failure = -math.log(chance(failure, "failure"))
    needed = max(3 * positive(threshold, "threshold"), 8 * (math.log(n_bins) + log_failure))
    log_excess = math.log(n_rows / needed) + d * math.log(w / (s * math.sqrt(2 * math.pi)))
    rho = s * math.sqrt(2 * max(0.0, log_excess)) - w * math.sqrt(d)
    outside = n_rows * norm_tail(max(0.0, rho) / s, n_columns=d)
    return min(float(n_rows), outside + log_failure / 3 + math.sqrt(log_failure**2 / 9 + 2 * outside * log_failure))


def gaussian_bound(
    n_rows: int,
    *,
    epsilon: Number,
    delta: Number,
    data_sd: Number,
    bin_width: Number,
    edge: Number,
    n_columns: int,
    bandwidth: Number = 1.0,
    factor: int = 2,
    noise: Noise = "discrete",
) -> float:
    """Most that Algorithm 1 moves the kernel density of a Gaussian sample, with probability 1 - delta. Theorem 6.

    Theorem 5's bound with M = `gaussian_heavy_bins` and m = `gaussian_light_rows`, for the threshold t =
    `suggest_threshold` at delta/4 (2 if that is less) and n > m + M·beta. The chance that the sample lies in the cube
    and the bound fails is at most delta. It tells something where bins are narrower than s/√d and still hold many rows
    near the middle.
    """
    failure = chance(delta, "delta") / 4
    n_bins = n_grid_bins(bin_width, edge=edge, n_columns=n_columns)
    beta = max(1.0, largest_noise(n_bins, epsilon=epsilon, delta=failure, factor=factor, noise=noise))
    about = {"threshold": 2 * beta, "failure": failure, "data_sd": data_sd, "bin_width": bin_width}
    n_heavy = min(n_bins, gaussian_heavy_bins(n_rows, n_columns=n_columns, **about))
    n_light = gaussian_light_rows(n_rows, n_bins=n_bins, n_columns=n_columns, **about)
    error = noise_error(n_rows, n_bins=n_heavy, beta=beta, n_lost=n_light)
    if error == math.inf:
        taken = n_light + min(n_heavy, n_rows) * beta
        raise ParameterError(
            f"n_rows={n_rows} is not above {taken:g}, the rows that light bins and noise can take; "
            "raise n_rows or epsilon, or choose bin_width nearer to a tenth of data_sd"
        )
    return error + n_light / n_rows + rounding_bound(bin_width, n_columns=n_columns, bandwidth=bandwidth)
