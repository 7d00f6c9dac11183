"""Certified answers are quick: products of noise go in blocks that one core does, with the same result."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from spinney.release.answers.ranks import product


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 0, 4), (129, 199, 199), (999, 100, 26), (999, 237, 474), (7, 90_000, 3)]
)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_blocks_give_the_product(shape: tuple[int, int, int], kind: type) -> None:
    n, k, m = shape
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(n, k)).astype(kind), rng.normal(size=(m, k)).astype(kind).T
    found = product(left, right)
    assert found.dtype == kind
    np.testing.assert_allclose(found, left @ right, rtol=0, atol=1e-9 if kind is np.float64 else 0.05)


def seconds(ask: Callable[[], object]) -> float:
    """Processor time of all threads, of the quickest of some calls after a first."""
    ask()
    taken = []
    for _ in range(5):
        start = time.process_time()
        ask()
        taken.append(time.process_time() - start)
    return min(taken)


def test_certified_means_and_quantiles_take_little_processor_time() -> None:
    """A fifth of a second of all cores together is ten times what they take; threads that waited took that."""
    rng = np.random.default_rng(0)
    x = rng.normal(50, 15, 20_000).clip(0, 100)
    frame = pd.DataFrame({"x": x, "y": (x + rng.normal(0, 10, 20_000)).clip(0, 100), "z": rng.random(20_000)})
    schema = sp.Schema({"x": sp.Real(0, 100), "y": sp.Real(0, 100), "z": sp.Real(0, 1)})
    for model in (sp.KDTreeSynthesizer("2", moments=True), sp.ForestSynthesizer("2")):
        release = model.fit(frame, schema, entropy=sp.UnsafeSeededEntropy(1)).release_
        where = {"z": (0.21, 0.83)} if isinstance(model, sp.KDTreeSynthesizer) else {"x": (21.5, 83.2)}
        for ask in (
            lambda: release.mean("x", where=where, statement="certified"),  # noqa: B023
            lambda: release.quantile("x", 0.5, where=where, statement="certified"),  # noqa: B023
        ):
            assert seconds(ask) < 0.2
