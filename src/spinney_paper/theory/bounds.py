"""How far binning and noise can move a kernel density: the paper's utility theorems for Algorithm 1.

The kernel is K(x, y) = exp(-‖x-y‖²/2σ²) and KD_P(x) the mean of K(x, p) over P; all bounds are on sup |KD_Q - KD_P|,
where Q holds bin centres weighted by released counts. A bound above 1 says nothing, as 0 <= KD <= 1.

The bandwidth σ enters through lengths only: a bin of width w looks to the kernel like one of width w/σ. The noise term
counts bins and does not see σ. The proofs in short, beta being `largest_noise` and all noises within it:

    rounding    a row moves by at most half a diagonal, w√d/2, and K is 1/(σ√e)-Lipschitz
    noise       the counts of K bins move by at most K·beta in total, and so does their sum: twice K·beta / (n - K·beta)
    threshold   with t = 2·beta every released bin truly holds t/2 rows or more, every removed one fewer than 3t/2
"""

from __future__ import annotations

import math

from spinney.errors import ParameterError
from spinney_paper.theory.checks import Noise, Number, not_negative, positive, whole
from spinney_paper.theory.noise import largest_noise

_LARGEST_LOG2 = 1000


def perturbation_bound(distance: Number, *, bandwidth: Number = 1.0) -> float:
    """Most that K(x, ·) changes when x moves by `distance`: min(1, distance / (σ√e)). Lemma 15."""
    moved = not_negative(distance, "distance") / positive(bandwidth, "bandwidth")
    return min(1.0, moved / math.sqrt(math.e))


def rounding_bound(bin_width: Number, *, n_columns: int, bandwidth: Number = 1.0) -> float:
    """Most that a kernel density changes when rows move to bin centres: min(1, w√d / (2σ√e)). Lemma 16.

    Printed with max, which is 1 or more and so says nothing.
    """
    half_diagonal = positive(bin_width, "bin_width") * math.sqrt(whole(n_columns, "n_columns", at_least=1)) / 2
    return perturbation_bound(half_diagonal, bandwidth=bandwidth)


def n_grid_bins(bin_width: Number, *, edge: Number, n_columns: int) -> int:
    """J: bins of width w that cover a cube of edge R in d columns, ceil(R/w)^d.

    Printed as (R/w)^d, which is meant for whole R/w.
    """
    ratio = positive(edge, "edge") / positive(bin_width, "bin_width")
    if whole(n_columns, "n_columns", at_least=1) * math.log2(ratio) > _LARGEST_LOG2:
        raise ParameterError(f"bin_width={bin_width} makes more than 2^{_LARGEST_LOG2} bins; give a larger bin_width")
    per_column = round(ratio) if math.isclose(ratio, round(ratio), rel_tol=1e-9) else math.ceil(ratio)
    return int(per_column**n_columns)


def worst_case_bound(
    n_rows: int,
    *,
    epsilon: Number,
    delta: Number,
    bin_width: Number,
    edge: Number,
    n_columns: int,
    bandwidth: Number = 1.0,
    factor: int = 2,
    noise: Noise = "discrete",
) -> float:
    """Most that Algorithm 1 with t = 0 moves the kernel density of any table, with probability 1 - delta. Theorem 3.

    2 J beta / (n - J beta) + w√d / (2σ√e), for n > J beta; J bins of width w cover the cube of edge R, beta is
    `largest_noise`.

    Printed with beta = 4/epsilon · log(1/delta) and any delta; the proof needs J <= 1/delta, and without it the
    statement is false. Here beta holds for every delta, and is no larger than the printed one where that is right.
    """
    n_bins = n_grid_bins(bin_width, edge=edge, n_columns=n_columns)
    beta = largest_noise(n_bins, epsilon=epsilon, delta=delta, factor=factor, noise=noise)
    error = noise_error(whole(n_rows, "n_rows", at_least=1), n_bins=n_bins, beta=beta)
    if error == math.inf:
        raise ParameterError(
            f"n_rows={n_rows} is not above {n_bins * beta:g}, the most noise that {n_bins:g} bins can bring in total; "
            "raise bin_width or epsilon"
        )
    return error + rounding_bound(bin_width, n_columns=n_columns, bandwidth=bandwidth)


def noise_error(n_rows: int, *, n_bins: int, beta: float, n_lost: float = 0.0) -> float:
    """Most that noise within beta moves the weights of `n_bins` released bins when `n_lost` rows are in none of them.

    (n_lost + 2 K beta) / (n - n_lost - K beta), or infinity where the noise could swallow all rows.
    """
    total = min(n_bins, 2**_LARGEST_LOG2) * beta  # more bins than a float can count swallow everything anyway
    left = n_rows - n_lost - total
    return (n_lost + 2 * total) / left if left > 0 else math.inf


def threshold_bound(
    n_rows: int,
    *,
    n_heavy_bins: int,
    n_light_rows: int,
    n_bins: int,
    epsilon: Number,
    delta: Number,
    bin_width: Number,
    n_columns: int,
    bandwidth: Number = 1.0,
    factor: int = 2,
    noise: Noise = "discrete",
) -> float:
    """Most that Algorithm 1 with t = 2 beta moves the kernel density, with probability 1 - delta. Theorem 5.

    (m + 2 M beta) / (n - m - M beta) + m/n + w√d / (2σ√e), for n > m + M beta; M bins hold t/2 rows or more, m rows lie
    in bins of fewer than 3t/2; t is `suggest_threshold` and beta `largest_noise`, for the same J and delta.

    M and m come from the private table: the value is for study, not for release. (For any other t, count bins of t -
    beta rows or more and rows in bins of fewer than t + beta.) Printed without the condition on n, where the right-hand
    side turns negative; and with t = 8/epsilon · log(1/delta) for J <= 1/delta, which is the same t at J = 1/delta.
    """
    beta = largest_noise(n_bins, epsilon=epsilon, delta=delta, factor=factor, noise=noise)
    n_rows = whole(n_rows, "n_rows", at_least=1)
    n_light_rows = whole(n_light_rows, "n_light_rows", at_least=0)
    if n_light_rows > n_rows:
        raise ParameterError(f"n_light_rows={n_light_rows} is above n_rows={n_rows}; it counts some of them")
    if (n_heavy_bins := whole(n_heavy_bins, "n_heavy_bins", at_least=0)) > n_bins:
        raise ParameterError(f"n_heavy_bins={n_heavy_bins} is above n_bins={n_bins}; it counts some of them")
    error = noise_error(n_rows, n_bins=n_heavy_bins, beta=beta, n_lost=n_light_rows)
    if error == math.inf:
        raise ParameterError(
            f"n_rows={n_rows} is not above n_light_rows + n_heavy_bins·beta = {n_light_rows + n_heavy_bins * beta:g}; "
            "raise bin_width or epsilon"
        )
    return error + n_light_rows / n_rows + rounding_bound(bin_width, n_columns=n_columns, bandwidth=bandwidth)
