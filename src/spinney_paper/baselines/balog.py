"""Balog, Tolstikhin and Schoelkopf, ICML 2018: weighted points near the private table in the kernel's Hilbert space.

Both algorithms publish (epsilon, delta)-privately a vector that stands for the mean embedding of the rows: Algorithm 1
its coordinates along functions that public points span, Algorithm 2 its random features. All the rest is public work on
that vector. Noise is theirs in size, sigma = sensitivity sqrt(2 ln(1.25/delta)) / epsilon, and exact here: rows add
whole numbers (`sums`), noise is discrete Gaussian, and the sensitivity includes every rounding. Proof: balog.proof.md;
the labels [step 1] ... are its steps, some of them in `basis`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spinney.columns import Bounded
from spinney.errors import NotFittedError, ParameterError, SchemaError
from spinney.privacy.budget import Unit, parse_length
from spinney.privacy.noise.gaussian import LARGEST_VARIANCE
from spinney.release.points import PointsRelease
from spinney.release.release import Release
from spinney.schema.schema import Schema
from spinney.tables.frames import Table
from spinney_paper.baselines.base import Baseline, Budget, check_numeric, numeric_rows, whole_number
from spinney_paper.baselines.basis import make_basis
from spinney_paper.baselines.reduced_set import find_points, fit_weights
from spinney_paper.baselines.sums import Floats, Integers, bits_for, feature_sums, kernel_sums
from spinney_paper.baselines.training import load
from spinney_paper.baselines.vector import classical_variance, least_variance, release_vector

# Coordinates and features are released in steps of 2^-20 of a row, which is far below any noise.
_STEP_BITS = 20
# Within these, squared distances and phases are finite, and the proof's bounds of rounding hold.
_SHORTEST, _LONGEST = 1e-150, 1e150
_MOST_COLUMNS = 10_000


class _Balog(Baseline):
    """What both algorithms share: the kernel, the public points, and a sequence of points that may be cut short."""

    n_points: int
    bandwidth: float | None
    public_points: ArrayLike | None
    seed: int

    _points: Floats  # (n_points, n_columns), all that were found

    def _check(self, schema: Schema) -> None:
        if not Unit.parse_rows(self.unit).n_is_public:
            raise ParameterError(f"unit={self.unit!r} is not possible here: the mean embedding divides by the rows")
        check_numeric(schema, type(self).__name__)
        if len(schema) > _MOST_COLUMNS:
            raise SchemaError(f"{len(schema)} columns are more than {_MOST_COLUMNS}; leave some out")
        for name, low, high in zip(schema, *_box(schema), strict=True):
            if max(abs(low), abs(high)) > _LONGEST:
                raise SchemaError(f"column {name!r}: a bound beyond {_LONGEST:g} is too far out; rescale the column")
        whole_number(self.seed, "seed", at_least=0)
        self._gamma(schema)
        self._public_points(schema)

    def _gamma(self, schema: Schema) -> float:
        """1 / (2 bandwidth^2); by default the bandwidth is a twentieth of the longest column times sqrt(columns)."""
        bandwidth = self.bandwidth
        if bandwidth is None:
            low, high = _box(schema)
            bandwidth = (float((high - low).max()) or 1.0) * math.sqrt(len(schema)) / 20
        length = parse_length(bandwidth, "bandwidth")
        if not _SHORTEST <= length <= _LONGEST:
            raise ParameterError(f"bandwidth={bandwidth} is outside {_SHORTEST:g}..{_LONGEST:g}; rescale the columns")
        return 1 / (2 * length**2)

    def _public_points(self, schema: Schema) -> Floats:
        """The public points inside the bounds: those given, or normal ones around the middle of the box."""
        n_points = whole_number(self.n_points, "n_points")
        low, high = _box(schema)
        if self.public_points is None:
            rng = np.random.default_rng(whole_number(self.seed, "seed", at_least=0))
            points = rng.normal((low + high) / 2, (high - low) / 4, (n_points, len(schema)))
        else:
            try:
                points = np.asarray(self.public_points, dtype=np.float64)
            except (TypeError, ValueError):
                raise ParameterError("public_points are not an array of numbers; give one row for each point") from None
            if points.ndim != 2 or points.shape[1] != len(schema) or len(points) < n_points:
                raise ParameterError(
                    f"public_points of shape {points.shape} are not at least n_points={n_points} rows "
                    f"of {len(schema)} columns"
                )
            if not np.isfinite(points).all():
                raise ParameterError("public_points hold values that are not finite; leave those points out")
        return np.ascontiguousarray(np.clip(points[:n_points], low, high))

    @abstractmethod
    def _weights(self, n_points: int) -> Floats:
        """Weights of the first `n_points` points, from what was released."""

    def prefix(self, n_points: int) -> tuple[Floats, Floats]:
        """Points and weights of a shorter set from the same release: post-processing, at no further cost."""
        if not hasattr(self, "_points"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(frame, schema) first")
        n_points = min(whole_number(n_points, "n_points"), len(self._points))
        return self._points[:n_points], self._weights(n_points)

    def _noisy_mean(self, true_sums: Integers, reach: float, steps: float, n_rows: int, budget: Budget) -> Floats:
        """Sums in `steps` to a row, released and divided by the rows. `reach` bounds what one row adds, in rows."""
        # [step 7] Two rows differ. The last factor covers the rounding of `reach` itself.
        sensitivity_squared = Fraction(2 * reach * steps * (1 + 2.0**-40)) ** 2
        claim = (budget.epsilon, budget.delta, sensitivity_squared)
        # [step 8] The textbook's noise, or more where that is too little: it is proved for budgets up to 1.
        variance = max(classical_variance(*claim), least_variance(*claim))
        if variance > LARGEST_VARIANCE:
            raise ParameterError(
                f"epsilon={self.epsilon} is too small here: noise would not fit into 64 bits; take a larger one"
            )
        noisy_sums = release_vector(
            true_sums,
            sensitivity_squared=sensitivity_squared,
            variance=variance,
            epsilon=budget.epsilon,
            delta=budget.delta,
            ledger=budget.books,
            entropy=budget.entropy,
            what="mean embedding",
        )
        mean: Floats = noisy_sums / steps / n_rows
        return mean

    def _points_release(self, table: Table, budget: Budget, plan: dict[str, Any]) -> Release:
        points, weights = self.prefix(len(self._points))
        is_used = weights != 0
        card = self._card(table, budget.books, design=plan, released={"points": int(is_used.sum())})
        return PointsRelease(points[is_used], weights[is_used], card)


class BalogAlgorithm1(_Balog):
    """Algorithm 1: public points, reweighted by noisy coordinates of the private mean embedding.

    Args:
        epsilon: the budget, with delta.
        delta: the chance that the guarantee of epsilon alone fails.
        n_points: how many public points.
        bandwidth: sigma of the kernel exp(-||x-y||^2 / (2 sigma^2)), in units of the columns.
        public_points: points that anyone may see, for instance a publishable part of the table; by default random.
        seed: of the random public points; they are public, so it may be.
        unit: "replace-one", the only one in which a mean over rows makes sense.
    """

    def __init__(
        self,
        epsilon: Any = 1,
        *,
        delta: Any = "1e-6",
        n_points: int = 1000,
        bandwidth: float | None = None,
        public_points: ArrayLike | None = None,
        seed: int = 0,
        unit: str = "replace-one",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_points = n_points
        self.bandwidth = bandwidth
        self.public_points = public_points
        self.seed = seed
        self.unit = unit

    def _check(self, schema: Schema) -> None:
        super()._check(schema)
        load("scipy.linalg.lapack")  # what is not installed is missed before anything is spent

    def _release(self, table: Table, budget: Budget) -> Release:
        schema, n_rows = table.schema, table.n_rows
        gamma, bits = self._gamma(schema), bits_for(n_rows)
        points = self._public_points(schema)
        basis = make_basis(points, gamma)
        rank = len(basis.kept)

        true_sums = kernel_sums(numeric_rows(table, list(schema)), points[basis.kept], gamma, bits)  # [step 1]
        true_coordinates = basis.coordinates(true_sums) / 2.0**bits  # in rows
        true_steps = np.rint(true_coordinates * 2**_STEP_BITS).astype(np.int64)  # [step 5]
        # [step 6] What one row adds, with the rounding of its kernel values; and what rounding does to a total, in each
        # of two tables, is put on the two rows that differ.
        rounding = math.sqrt(rank) * (2.0**-_STEP_BITS / 2 + n_rows * basis.slack)
        reach = basis.reach + basis.stretch * 2.0**-bits + rounding
        coordinates = self._noisy_mean(true_steps, reach, 2.0**_STEP_BITS, n_rows, budget)
        self._points, self._basis, self._coordinates = points, basis, coordinates
        return self._points_release(table, budget, {"points": len(points), "rank": rank, "reach": reach})

    def _weights(self, n_points: int) -> Floats:
        rank = self._basis.rank_of(n_points)
        weights = np.zeros(n_points)
        weights[self._basis.kept[:rank]] = self._basis.weights(self._coordinates[:rank])
        return weights


class BalogAlgorithm2(_Balog):
    """Algorithm 2: noisy random features of the private table, and a reduced set of points that has nearly the same.

    Args:
        epsilon: the budget, with delta.
        delta: the chance that the guarantee of epsilon alone fails.
        n_points: how many points to find.
        n_features: how many random features, half of them cosines and half of them sines.
        bandwidth: sigma of the kernel exp(-||x-y||^2 / (2 sigma^2)), in units of the columns.
        public_points: where the search for each point starts; by default at random.
        n_steps: steps of Adam for each point.
        step: their size, in units of the columns; by default a sixteenth of the longest one.
        penalty: of the lasso that fits the weights; by default 100 / rows, as published.
        seed: of frequencies and random starts; both are public, so it may be.
        unit: "replace-one", the only one in which a mean over rows makes sense.
    """

    def __init__(
        self,
        epsilon: Any = 1,
        *,
        delta: Any = "1e-6",
        n_points: int = 300,
        n_features: int = 10_000,
        bandwidth: float | None = None,
        public_points: ArrayLike | None = None,
        n_steps: int = 100,
        step: float | None = None,
        penalty: float | None = None,
        seed: int = 0,
        unit: str = "replace-one",
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.n_points = n_points
        self.n_features = n_features
        self.bandwidth = bandwidth
        self.public_points = public_points
        self.n_steps = n_steps
        self.step = step
        self.penalty = penalty
        self.seed = seed
        self.unit = unit

    def _check(self, schema: Schema) -> None:
        super()._check(schema)
        if whole_number(self.n_features, "n_features", at_least=2) % 2:
            raise ParameterError(f"n_features={self.n_features} is odd; cosines and sines come in pairs")
        whole_number(self.n_steps, "n_steps")
        self._step(schema)
        self._penalty(1)
        load("sklearn.linear_model")  # what is not installed is missed before anything is spent

    def _step(self, schema: Schema) -> float:
        low, high = _box(schema)
        return parse_length((float((high - low).max()) or 1.0) / 16 if self.step is None else self.step, "step")

    def _penalty(self, n_rows: int) -> float:
        return parse_length(100 / n_rows if self.penalty is None else self.penalty, "penalty")

    def _release(self, table: Table, budget: Budget) -> Release:
        schema, n_rows = table.schema, table.n_rows
        n_frequencies = self.n_features // 2
        rng = np.random.default_rng([self.seed, 1])  # another stream than the public points'
        frequencies = rng.normal(size=(n_frequencies, len(schema))) * math.sqrt(2 * self._gamma(schema))
        starts = self._public_points(schema)

        bits = min(_STEP_BITS, bits_for(n_rows))
        true_sums = feature_sums(numeric_rows(table, list(schema)), frequencies, bits)  # [step 1]
        # [step 9] cos^2 + sin^2 = 1: a row has norm sqrt(F), and its 2 F numbers are off by at most one step each.
        reach = math.sqrt(n_frequencies) + math.sqrt(2 * n_frequencies) * 2.0**-bits
        noisy_mean = self._noisy_mean(true_sums, reach, 2.0**bits, n_rows, budget)
        target = noisy_mean / math.sqrt(n_frequencies)

        low, high = _box(schema)
        points = find_points(
            target,
            frequencies,
            starts,
            low=low,
            high=high,
            n_steps=self.n_steps,
            step=self._step(schema),
        )
        self._points, self._frequencies, self._target = points, frequencies, target
        self._lasso = self._penalty(n_rows)
        return self._points_release(table, budget, {"points": len(starts), "features": self.n_features})

    def _weights(self, n_points: int) -> Floats:
        return fit_weights(self._points[:n_points], self._frequencies, self._target, penalty=self._lasso)


def _box(schema: Schema) -> tuple[Floats, Floats]:
    """Low and high ends of all columns."""
    columns = [column for column in schema.values() if isinstance(column, Bounded)]
    return np.array([float(c.low) for c in columns]), np.array([float(c.high) for c in columns])
