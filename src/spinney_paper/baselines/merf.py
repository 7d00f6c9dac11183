"""DP-MERF (Harder, Adamczewski, Park 2021): noisy mean features of every class, and a generator trained to match them.

A row x adds to the sums of its class the features cos <w, x> and sin <w, x> of many public random frequencies w, and 1
to the count of its class. Counts and sums are whole numbers and one vector, released with one draw of discrete Gaussian
noise; the generator sees that vector alone. Why one draw covers both: merf.proof.md, whose steps are marked here.

What differs from the published code: no floating-point noise; counts and sums share one release instead of splitting
the budget, which takes a factor of 1.4 off the noise; the network works in units of the bandwidths, and its
normalisation is frozen before rows are drawn. Bandwidths are public, or ten rows are read under a name that says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Boolean, Bounded, Category, Integer
from spinney.errors import InputError, ParameterError, SchemaError
from spinney.privacy.budget import Unit, parse_fraction, parse_length
from spinney.privacy.mechanisms import NotPrivate
from spinney.release.points import GeneratorRelease, class_count, first_class
from spinney.schema.schema import Schema
from spinney.tables.frames import Table
from spinney.text import did_you_mean
from spinney_paper.baselines.base import Baseline, Budget, check_numeric, numeric_rows, whole_number
from spinney_paper.baselines.sums import feature_sums
from spinney_paper.baselines.training import load, train_generator
from spinney_paper.baselines.vector import least_variance, release_vector

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FROM_DATA = "from-data-not-private"

# Features are counted in units of 2^-20, whatever the table: far below any noise, and 2^31 rows fit.
_BITS = 20
# Phases stay finite, and so do their whole numbers: a bandwidth is no smaller part of a column's range than this.
_SMALLEST_BANDWIDTH = 1e-9
_ROWS_READ = 10
_MOST_CLASSES = 256
_N_CANDIDATES = 1024
# A class that noise has wiped out keeps this share, so that nothing is divided by 0.
_LEAST_SHARE = 1e-3
# A larger batch estimates the same slope at a higher price.
_LARGEST_BATCH = 4096


class DPMERF(Baseline):
    """Synthetic rows from a generator that was trained on noisy random Fourier features of a table with a target.

    Args:
        epsilon: the budget, exact: a number or text such as "0.1".
        delta: the chance that epsilon does not cover.
        target: the column to be predicted: Boolean, Category or Integer. The others are numbers without nulls.
        n_features: random features, an even number: half as many frequencies.
        n_steps: gradient steps of the training.
        batch_share: rows made in a step, as a share of the rows of the table (at most 4,096 rows).
        learning_rate: Adam's.
        bandwidth: the length over which rows count as alike, in units of the columns: one number or one per column.
            By default the median distance of rows whose columns spread over a sixth of their range:
            range · sqrt(2 n_columns) / 6. "from-data-not-private" reads it off ten rows as the published code does:
            columns of the same bounds share their median distance; the release is then branded as not private.
        noise: "least", as little as our accounting certifies for one release of everything, or "published": that of the
            published code, which releases class weights and features one after the other under an older accounting.
        unit: "replace-one" (the number of rows is public) or "add-remove" (it is private).
        seed: of the public frequencies and of the training. Noise has no seed.
    """

    def __init__(
        self,
        epsilon: Any = 1,
        *,
        target: str,
        delta: Any = "1e-5",
        n_features: int = 5000,
        n_steps: int = 4000,
        batch_share: Any = "0.5",
        learning_rate: Any = "0.01",
        bandwidth: float | Mapping[str, float] | str | None = None,
        noise: str = "least",
        unit: str = "replace-one",
        seed: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.target = target
        self.delta = delta
        self.n_features = n_features
        self.n_steps = n_steps
        self.batch_share = batch_share
        self.learning_rate = learning_rate
        self.bandwidth = bandwidth
        self.noise = noise
        self.unit = unit
        self.seed = seed

    def _check(self, schema: Schema) -> None:
        _check_target(schema, self.target)
        check_numeric(schema, "DP-MERF", besides=self.target)
        if whole_number(self.n_features, "n_features", at_least=2) % 2:
            raise ParameterError(f"n_features={self.n_features} is odd; features come in pairs of cosine and sine")
        whole_number(self.n_steps, "n_steps")
        if whole_number(self.seed, "seed", at_least=0) >= 2**63:
            raise ParameterError(f"seed={self.seed} does not fit into 63 bits, which JAX asks for; take a smaller one")
        if self.noise not in ("least", "published"):
            raise ParameterError(f"noise={self.noise!r} is not 'least' or 'published'")
        for name in ("batch_share", "learning_rate"):
            if not 0 < parse_fraction(getattr(self, name), name) <= 1:
                raise ParameterError(f"{name}={getattr(self, name)} is not above 0 and at most 1")
        _stated_bandwidths(None if self.bandwidth == FROM_DATA else self.bandwidth, schema, self.target)
        for library in ("jax", "optax"):
            load(library)  # what is not installed is missed before anything is spent

    def _release(self, table: Table, budget: Budget) -> GeneratorRelease:
        schema, unit = table.schema, budget.unit
        names = [name for name in schema if name != self.target]
        rows, classes = numeric_rows(table, names), _class_numbers(table, self.target)
        rng = np.random.default_rng(self.seed)
        if self.bandwidth == FROM_DATA:
            rows, classes, bandwidths = _set_aside(rows, classes, schema, names, budget, rng)
        else:
            bandwidths = _stated_bandwidths(self.bandwidth, schema, self.target)
        origin, candidates = _places(schema, names, rng)
        frequencies = rng.standard_normal((self.n_features // 2, len(names)))

        n_classes = class_count(schema, self.target)
        law = FeatureLaw.of(len(frequencies), unit)
        variance = least_variance(budget.epsilon, budget.delta, law.sensitivity_squared)
        if self.noise == "published":
            variance = max(variance, _published_variance(budget, law))
        noisy_vector = release_vector(
            true_vector((rows - origin) / bandwidths, classes, frequencies, n_classes=n_classes, law=law),
            sensitivity_squared=law.sensitivity_squared,
            variance=variance,
            epsilon=budget.epsilon,
            delta=budget.delta,
            ledger=budget.books,
            entropy=budget.entropy,
            what="class counts and mean features",
        )
        embedding, shares, total = read_vector(
            noisy_vector, n_classes=n_classes, law=law, n_rows=len(rows) if unit.n_is_public else None
        )
        batch = min(max(round(parse_fraction(self.batch_share, "batch_share") * total), 16), _LARGEST_BATCH)
        generator = train_generator(
            embedding,
            frequencies,
            shares,
            candidates=(candidates - origin) / bandwidths,
            n_steps=int(self.n_steps),
            batch=batch,
            learning_rate=float(parse_fraction(self.learning_rate, "learning_rate")),
            seed=int(self.seed),
        ).stretched(bandwidths, origin)
        plan = {
            "mechanism": "one discrete Gaussian vector",
            "noise_deviation": f"{math.sqrt(variance) / law.count_unit:.4g} rows",
            "n_features": int(self.n_features),
            "bandwidths": dict(zip(names, bandwidths.tolist(), strict=True)),
            "batch": batch,
        }
        card = self._card(table, budget.books, design=plan, released={"weights": generator.n_weights})
        return GeneratorRelease(generator, card, target=self.target, noisy_total=total)


# ------------------------------------------------------------------------------------------------- the vector


@dataclass(frozen=True, slots=True)
class FeatureLaw:
    """What one row can do to the vector: squared norm of its features, the unit of counts, and the sensitivity."""

    squared_norm: int  # of a row's whole-number features, at most
    count_unit: int  # what a row adds to its class count
    sensitivity_squared: Fraction

    @classmethod
    def of(cls, n_frequencies: int, unit: Unit) -> FeatureLaw:
        # [step 1] A pair (cos, sin) on the circle of radius 2^bits moves by less than 1 when it is rounded.
        squared_norm = n_frequencies * (2**_BITS + 1) ** 2
        count_unit = math.isqrt(squared_norm)  # [step 2] no row weighs more as a count than by its features
        # [step 3] Replaced within a class: (2 norms)^2. Between classes: two features, two counts, no more than that.
        n_norms = 4 if unit.of_rows is Unit.REPLACE_ONE else 2
        return cls(squared_norm, count_unit, Fraction(n_norms * squared_norm))


def _published_variance(budget: Budget, law: FeatureLaw) -> Fraction:
    """The noise of the published code: two releases of equal noise, by epsilon = rho + 2 sqrt(rho ln(1/delta)).

    Hence rho = (sqrt(ln(1/delta) + epsilon) - sqrt(ln(1/delta)))^2 for both together, half of it for the features.
    """
    log_odds = -math.log(budget.delta)
    rho = (math.sqrt(log_odds + float(budget.epsilon)) - math.sqrt(log_odds)) ** 2
    return law.sensitivity_squared / Fraction(rho)


def true_vector(rows: Floats, classes: Integers, frequencies: Floats, *, n_classes: int, law: FeatureLaw) -> Integers:
    """Counts of all classes in `law.count_unit`, then the features of each class, all whole numbers. SENSITIVE."""
    counts = np.bincount(classes, minlength=n_classes) * law.count_unit
    sums = [feature_sums(rows[classes == c], frequencies, _BITS) for c in range(n_classes)]
    return np.concatenate([counts, *sums]).astype(np.int64)


def read_vector(
    noisy_vector: Integers, *, n_classes: int, law: FeatureLaw, n_rows: int | None
) -> tuple[Floats, Floats, int]:
    """Mean features of every class (n_classes, n_features), class shares and the number of rows, out of noisy numbers.

    Where the number of rows is public, counts are first moved, all by the same amount, to add up to it.
    """
    counts = noisy_vector[:n_classes] / law.count_unit
    sums = noisy_vector[n_classes:].reshape(n_classes, -1) / 2.0**_BITS
    sums /= math.sqrt(sums.shape[1] / 2)  # in units in which a row's features have norm 1
    total = max(1.0, counts.sum()) if n_rows is None else float(n_rows)
    shares = np.maximum((counts + (total - counts.sum()) / n_classes) / total, _LEAST_SHARE)
    shares /= shares.sum()
    return sums / (total * shares[:, None]), shares, round(total)


def _class_numbers(table: Table, target: str) -> Integers:
    """The place of every row's class in the list of classes. SENSITIVE."""
    first, n_classes = first_class(table.schema, target), class_count(table.schema, target)
    classes: Integers = np.clip(table.physical(target).values, first, first + n_classes - 1) - first
    return classes


# ------------------------------------------------------------------------------------------------- what is public


def _check_target(schema: Schema, target: Any) -> None:
    if not isinstance(target, str) or target not in schema:
        raise SchemaError(f"target={target!r} is not a column of the schema{did_you_mean(target, schema)}")
    column = schema[target]
    if not isinstance(column, (Boolean, Category, Integer)) or column.nullable:
        raise SchemaError(f"target={target!r} is not a Boolean, Category or Integer column without nulls")
    if not 2 <= class_count(schema, target) <= _MOST_CLASSES:
        raise SchemaError(f"target={target!r} has {class_count(schema, target)} values; DP-MERF takes 2 to 256")
    if len(schema) == 1:
        raise SchemaError(f"the schema has no column beside the target {target!r}")


def _places(schema: Schema, names: list[str], rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The middle of the box, and public points where a training may start: nearest to 0, the middle, anywhere."""
    low, high = (np.array([float(getattr(schema[name], end)) for name in names]) for end in ("low", "high"))
    middle = low + (high - low) / 2
    anywhere = low + (high - low) * rng.random((_N_CANDIDATES, len(names)))
    return middle, np.vstack([np.clip(0.0, low, high), middle, anywhere])


def _stated_bandwidths(bandwidth: Any, schema: Schema, target: str) -> Floats:
    """One length per column beside the target, from public facts."""
    names = [name for name in schema if name != target]
    ranges = np.array([_range(name, schema[name]) for name in names])
    if bandwidth is None:
        return np.where(ranges > 0, ranges, 1.0) * math.sqrt(2 * len(names)) / 6
    lengths = _parsed_lengths(bandwidth, names)
    for name, length, reach in zip(names, lengths, ranges, strict=True):
        if not _SMALLEST_BANDWIDTH * reach <= length < math.inf:
            raise ParameterError(
                f"bandwidth={length:g} on column {name!r} is below a billionth of its range, so that no two values are "
                "alike; give the distance at which they are"
            )
    return lengths


def _parsed_lengths(bandwidth: Any, names: list[str]) -> Floats:
    if not isinstance(bandwidth, Mapping):
        if isinstance(bandwidth, str) and not bandwidth[:1].isdigit():
            raise ParameterError(f"bandwidth={bandwidth!r} is not a number, a number per column or {FROM_DATA!r}")
        return np.full(len(names), parse_length(bandwidth, "bandwidth"))
    for name in bandwidth:
        if name not in names:
            hint = did_you_mean(name, names)
            raise ParameterError(f"bandwidth names {name!r}, which is not a column beside the target{hint}")
    for name in names:
        if name not in bandwidth:
            raise ParameterError(f"bandwidth does not name column {name!r}; give it an entry")
    return np.array([parse_length(bandwidth[name], f"bandwidth[{name!r}]") for name in names])


def _range(name: str, column: Any) -> float:
    reach = float(column.high) - float(column.low)
    if not math.isfinite(reach):
        raise SchemaError(f"column {name!r}: the range from {column.low} to {column.high} is not a finite number")
    return reach


# ------------------------------------------------------------------------------------------------- not private


def _set_aside(
    rows: Floats, classes: Integers, schema: Schema, names: list[str], budget: Budget, rng: np.random.Generator
) -> tuple[Floats, Integers, Floats]:
    """All rows but ten, and bandwidths from those ten. Not private, as the brand says."""
    if len(rows) <= _ROWS_READ:
        raise InputError(f"bandwidth={FROM_DATA!r} sets {_ROWS_READ} rows aside; the table has no more than these")
    budget.books.brand(NotPrivate(note=f"bandwidths were read off {_ROWS_READ} rows"))
    order = rng.permutation(len(rows))
    few, rest = rows[order[:_ROWS_READ]], order[_ROWS_READ:]
    bounds = [(column.low, column.high) for column in map(schema.__getitem__, names) if isinstance(column, Bounded)]
    bandwidths = np.empty(len(names))
    for group in set(bounds):
        alike = [i for i, pair in enumerate(bounds) if pair == group]
        least = _SMALLEST_BANDWIDTH * (group[1] - group[0])
        bandwidths[alike] = max(_median_distance(few[:, alike]), least)
    return rows[rest], classes[rest], bandwidths


def _median_distance(points: Floats) -> float:
    """Median over all pairs; the mean where that is 0, and 1 where all points are one."""
    first, second = np.triu_indices(len(points), 1)
    distances = np.sqrt(((points[first] - points[second]) ** 2).sum(axis=1))
    return float(np.median(distances)) or float(distances.mean()) or 1.0
