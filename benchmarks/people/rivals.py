"""What a holder can do without persons: few random rows of each, and today's forest, or MST and AIM, with more noise.

A table that differs in one person differs in k rows, where at most k random ones of each were kept. Under Gaussian
differential privacy a promise of mean mu for one row is one of k mu for k rows, so a rival is given the epsilon whose
mean is mu(epsilon, delta) / k, at the same delta: the noise of one row a person, k-fold. Forests keep that promise:
`spinney.privacy.composition.chain_deltas` of their parts, on a grid to 1.6 epsilon, is (epsilon, delta) within a
thousandth for k = 10, 20 and 50. One thing is a gift: the number of kept rows is private where persons are the unit,
and rivals are told it.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

import spinney as sp
from benchmarks.people.tables import KEY, People, PeopleTable
from benchmarks.tables.coding import Coding
from benchmarks.tables.rivals import run_mechanism
from spinney.errors import ParameterError
from spinney.privacy.entropy import UnsafeSeededEntropy

DELTA = "1e-5"
LIMIT = 1_800.0  # seconds for a release of mbi
ONE_ROW = "one-row"
K_ROWS = "k-rows"  # all of them
KS = (5, 10, 20, 50)
MECHANISMS = ("mst", "aim")

_NAME = re.compile(rf"((?P<system>{'|'.join(MECHANISMS)})-)?(one-row|(?P<k>[1-9][0-9]*)-rows)")


def rows_kept(method: str) -> tuple[str, int]:
    """What makes the rows, and how many rows a person: "one-row", "10-rows" or "mst-10-rows"."""
    found = _NAME.fullmatch(method)
    if found is None:
        raise ParameterError(
            f"method {method!r} is unknown; rivals are called one-row, 10-rows, mst-10-rows, aim-10-rows"
        )
    return found["system"] or "forest", int(found["k"] or 1)


def rival_rows(
    method: str, table: PeopleTable, fitted: People, epsilon: str, seed: int, *, mbi_python: Path | None = None
) -> pl.DataFrame:
    """As many rows as all fitted persons have, each with columns of a person."""
    system, k = rows_kept(method)
    kept = joined(random_rows(fitted, k, seed))
    schema = sp.Schema({**table.person_columns, **table.rows_schema})
    budget = k_fold(float(epsilon), float(DELTA), k)
    n_rows = fitted.rows.height if table.n_drawn is None else table.n_drawn
    if system == "forest":
        model = sp.ForestSynthesizer(f"{budget:.6g}", delta=DELTA, unit="replace-one")
        model.fit(kept.select(list(schema)), schema, entropy=UnsafeSeededEntropy(seed))
        return model.sample(n_rows, seed=seed, frame="polars")
    if mbi_python is None:
        raise ParameterError(f"{method} needs --mbi-python PATH, a Python of an environment that has mbi")
    coding = Coding(kept, schema, "public")
    options = {"name": system.upper(), "epsilon": budget, "delta": float(DELTA), "unit": "replace-one"}
    codes, report = run_mechanism(mbi_python, coding, {**options, "seed": seed, "limit": LIMIT}, LIMIT)
    if codes is None:
        raise ParameterError(f"{method} was stopped after {report['seconds']:.0f} s: {report['state']}")
    return coding.rows(codes, seed=seed)


def random_rows(people: People, k: int, seed: int) -> People:
    """At most k random rows of every person."""
    coins = np.random.default_rng([seed, 41]).permutation(people.rows.height)
    kept = people.rows[coins].filter(pl.int_range(pl.len()).over(KEY) < k)
    return People(people.persons, kept)


def joined(people: People) -> pl.DataFrame:
    """Rows with the columns of their persons. A person without rows is lost, as it is to every flat table."""
    if people.persons is None:
        return people.rows.drop(KEY)
    return people.rows.join(people.persons, on=KEY).drop(KEY)


@lru_cache
def k_fold(epsilon: float, delta: float, k: int) -> float:
    """The epsilon of a release whose noise is k-fold that of (epsilon, delta), at the same delta."""
    if k == 1:
        return epsilon
    mean = _root(lambda mu: gaussian_delta(epsilon, mu) - delta, 1e-6, 100.0) / k
    return _root(lambda e: delta - gaussian_delta(e, mean), 0.0, epsilon)


def gaussian_delta(epsilon: float, mean: float) -> float:
    """The delta at epsilon of N(mean, 1) against N(0, 1)."""
    above = _normal(-epsilon / mean + mean / 2)
    return above - math.exp(epsilon) * _normal(-epsilon / mean - mean / 2)


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _root(rising: object, low: float, high: float) -> float:
    """Where a rising function is 0, by halving."""
    assert callable(rising)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2
