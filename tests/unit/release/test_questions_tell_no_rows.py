"""A private table that was given to a release by mistake is in no error: neither in its text nor in what led to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import spinney as sp

MARKS = ("ZZSECRET77", "987654.321")
DOORS: dict[str, Callable[[Any, Any], Any]] = {
    "the ledger of a verification": lambda release, table: release.verify(ledger=table),
    "the schema of a verification": lambda release, table: release.verify(schema=table),
    "a column": lambda release, table: release.mean(table),
    "the column of a table": lambda release, table: release.mean(table["x"]),
    "ends of a range": lambda release, table: release.count({"x": (table, table)}),
    "a list of values": lambda release, table: release.count({"c": [table]}),
    "a value": lambda release, table: release.count({"c": table["c"]}),
    "a value of a sample": lambda release, table: release.sample(5, where={"c": [table["c"]]}),
    "a question": lambda release, table: release.ask(table),
    "what an answer is of": lambda release, table: release.ask("count", of=table),
    "a seed": lambda release, table: release.sample(5, seed=table),
    "a quality": lambda release, table: sp.synthesize(table, release.schema, epsilon=1, method="forest", quality=table),
}


@pytest.fixture(scope="module")
def release():
    rows = pd.DataFrame({"x": np.arange(400.0) % 10, "c": ["a", "b"] * 200})
    schema = sp.Schema({"x": sp.Real(0, 10), "c": sp.Category(["a", "b"])})
    model = sp.ForestSynthesizer(1, "1e-6", quality="fast")
    return model.fit(rows, schema, entropy=sp.UnsafeSeededEntropy(0)).release_


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("door", DOORS)
def test_a_table_in_the_wrong_place_is_not_quoted(release, door, frame):
    """The error is ours, and no value stands in it or in the errors behind it."""
    with pytest.raises(sp.SpinneyError) as caught:
        DOORS[door](release, frame({"x": [987654.321, 2.0], "c": ["ZZSECRET77", "a"]}))
    error: BaseException | None = caught.value
    while error is not None:
        assert not any(mark in str(error) for mark in MARKS)
        error = error.__cause__ or error.__context__
