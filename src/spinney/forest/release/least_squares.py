"""Least squares on noisy sums of products, and intervals of what follows from its coefficients.

With S and s the noisy sums of products of the predictors with each other and with the response, r(b) = s - S b is noise
alone at the true coefficients: linear in the noise of the sums, so that its law V(b) is known exactly, and quadratic in
b. The coefficients b and their covariance C settle at

    C = (S' W^-1 S + P)^-1,      b = C S' W^-1 s,      W = V(b) + sum_kl C_kl V_kl,

V_kl the part of V that goes with b_k b_l: the mean law of the noise over coefficients as uncertain as they are, and not
the law at the estimate alone. With little noise that gives the usual interval. P holds what is known of coefficients
before: a predictor explains no more than a few times the spread of the response. Where the sum of squares of a number
does not stand out of its noise, its equation and those of values that do not are left out, since noise would answer
them, and P alone speaks of its coefficient, so that the others can be told. A coefficient that hangs on P, or on a
value or a number that does not stand out, has no interval.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.moments_fit import NoisyMoments

Floats = NDArray[np.float64]

# The sum of squares of a predictor around its mean stands out of its noise from this many standard deviations on.
_STANDS_OUT = 4.0
# A coefficient of which more than this part of the variance is due to what is known before hangs on that.
_MOST_KNOWN = 0.25
# So does one that goes together with the coefficient of a predictor that does not stand out, by a squared correlation
# of more than this.
_MOST_HIDDEN = 0.25
_TURNS, _SETTLED = 200, 1e-4


class LeastSquares:
    """A regression: `places` of the predictors and of the response in the matrix of moments.

    `open_to` says how large each coefficient may well be, and `squares` what the sum of squares of its predictor around
    the mean is by what was released before, infinite where nothing is known, as of values; `quantile` is that of the
    normal law for the level of the intervals; `n_sampled` is the number of rows where they are a sample of a
    population, and None where they are all that is asked about.
    """

    def __init__(
        self,
        moments: NoisyMoments,
        places: list[int],
        response: int,
        *,
        open_to: Floats,
        squares: Floats,
        quantile: float,
        n_sampled: int | None,
    ) -> None:
        self._moments, self._places, self._response = moments, np.array(places), response
        self._known, self._quantile = np.diag(open_to**-2), quantile
        matrix = moments.matrix
        self._products, self._cross = matrix[np.ix_(places, places)], matrix[places, response]
        hides = [place > 0 and self._hides(place, most) for place, most in zip(places, squares, strict=True)]
        self._hidden = np.flatnonzero(hides)
        has_hidden_number = bool((hides & np.isfinite(squares)).any())
        self._told = np.flatnonzero(~(np.array(hides) & has_hidden_number))
        self._laws = self._laws_of_products()
        self._estimate, self._covariance = self._settled(np.zeros_like(self._products))
        if n_sampled is not None:
            b = self._estimate
            left = float(matrix[response, response] - 2 * b @ self._cross + b @ self._products @ b)
            values, vectors = np.linalg.eigh(self._products)
            sampling = max(left, 0.0) / n_sampled * (vectors * np.maximum(values, 0.0)) @ vectors.T
            _, self._covariance = self._settled(sampling)

    def estimate(self, weights: Floats) -> float:
        """A number that follows from the coefficients."""
        return float(weights @ self._estimate)

    def interval(self, weights: Floats) -> tuple[float, float] | None:
        """The two ends for a number that follows from the coefficients; None where it is not told from noise."""
        along = self._covariance @ weights
        variance = float(weights @ along)
        if float(along @ self._known @ along) > _MOST_KNOWN * variance:
            return None
        hidden = along[self._hidden] ** 2 / np.diag(self._covariance)[self._hidden]
        if hidden.max(initial=0.0) > _MOST_HIDDEN * variance:
            return None
        half = self._quantile * math.sqrt(variance)
        return self.estimate(weights) - half, self.estimate(weights) + half

    def _hides(self, place: int, most: float) -> bool:
        """Whether the sum of squares of a predictor around its mean is not told from its noise.

        `most` bounds it by a number of other noise: the sum's own noise may lift it above what it is told by.
        """
        matrix = self._moments.matrix
        around = np.zeros(len(matrix))
        around[place], around[0] = 1.0, -matrix[0, place] / matrix[0, 0]
        gradient = around @ self._moments.gradients(around)
        noise = math.sqrt(float(gradient @ self._moments.law @ gradient))
        return min(float(around @ matrix @ around), most) <= _STANDS_OUT * noise

    def _laws_of_products(self) -> Floats:
        """How the noise of rows' products with columns goes together: (rows, columns, rows, columns)."""
        moments, columns = self._moments, [*self._places, self._response]
        each = [moments.gradients(np.eye(len(moments.kept))[column])[self._places] for column in columns]
        gradients = np.stack(each, axis=1).reshape(-1, moments.n_free)
        n_rows, n_columns = len(self._places), len(columns)
        laws = gradients @ moments.law @ gradients.T
        return np.asarray(laws.reshape(n_rows, n_columns, n_rows, n_columns), dtype=np.float64)

    def _settled(self, sampling: Floats) -> tuple[Floats, Floats]:
        """Coefficients and their covariance, from one to the other."""
        n, products = len(self._places), self._products[self._told]
        b: Floats = np.zeros(n)
        covariance: Floats = np.zeros((n, n))
        for _ in range(_TURNS):
            columns = np.append(-b, 1.0)
            together = np.outer(columns, columns)
            together[:n, :n] += covariance
            law = np.einsum("kl,rksl->rs", together, self._laws) + sampling
            informed = products.T @ np.linalg.inv(law[np.ix_(self._told, self._told)])
            moved = np.asarray(np.linalg.inv(informed @ products + self._known), dtype=np.float64)
            b = moved @ (informed @ self._cross[self._told])
            before, covariance = np.diag(covariance), moved
            if np.abs(np.diag(moved) - before).max(initial=0.0) <= _SETTLED * np.diag(moved).max():
                break
        return b, covariance
