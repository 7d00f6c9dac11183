"""A private table, or a part of it, given for any argument by mistake: refused by name, and nothing of it is told."""

from __future__ import annotations

import traceback

import numpy as np
import pandas as pd
import polars as pl
import pytest

import spinney as sp
from spinney.errors import ParameterError, SpinneyError
from spinney.text import as_given
from support.in_one_test import in_one_test

SECRET = "SECRET"
N = 40


def table() -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(N) / N, "y": np.arange(N) % 7, "e": [f"{SECRET}{i}" for i in range(N)]})


MEASURED = sp.Schema({"x": sp.Real(0, 1), "y": sp.Integer(0, 6)})
MIXED = sp.Schema({**MEASURED, "e": sp.Category(["q"], other="o")})
WRONG = {
    "a table": table(),
    "a polars table": pl.from_pandas(table()),
    "a column": table()["e"],
    "an array": table()["e"].to_numpy(),
    "a list of cells": table()["e"].tolist(),
    "a short list of cells": table()["e"].tolist()[:1],
    "rows": table()[["e", "y"]].to_numpy().tolist(),
    "tables in a list": [table()],
    "columns in a list": [table()["e"]],
    "columns in lists": [[table()["e"]]],
    "cells in lists": [table()["e"].tolist()],
    "a dictionary": table().to_dict(),
    "a set": set(table()["e"]),
    "one name in a list": ["y"],
    "nothing in a dictionary": {},
}
MODELS = [sp.ForestSynthesizer, sp.KDTreeSynthesizer, sp.PaperTreeSynthesizer, sp.GridSynthesizer]
NAMES = [(model, name) for model in MODELS for name in model().get_params()]


def told(err: BaseException) -> str:
    """All that a logger would write of an error."""
    return "".join(traceback.format_exception(err)).split("Traceback")[-1] + str(err)


@in_one_test(("model", "name"), NAMES, ids=[f"{model.__name__}-{name}" for model, name in NAMES])
def test_no_parameter_of_a_synthesizer_tells_cells(model, name):
    """Errors are ours, come before anything is spent and quote no cell; neither does the model's repr."""
    frame = table() if model is sp.ForestSynthesizer else table()[["x", "y"]]
    schema = MIXED if model is sp.ForestSynthesizer else MEASURED
    for kind, value in WRONG.items():
        ledger = sp.Ledger(limit=10, delta="0.01")
        fitted = model(**{name: value})
        assert SECRET not in repr(fitted) or kind == "a short list of cells", kind
        if name == "prior" and kind in ("a table", "a polars table"):
            continue
        with pytest.raises(SpinneyError) as caught:
            fitted.fit(frame, schema, ledger=ledger)
        assert SECRET not in told(caught.value), kind
        assert len(str(caught.value)) < 600, kind
        assert ledger.spent == 0


@pytest.mark.parametrize(
    "name", ["epsilon", "n_rows", "seed", "method", "engine", "target", "rule", "delta", "quality", "workload", "unit"]
)
def test_synthesize_tells_no_cells(name):
    """In the call that does it all, too."""
    for kind, value in WRONG.items():
        with pytest.raises(SpinneyError) as caught:
            sp.synthesize(table(), MIXED, **{name: value})
        assert SECRET not in told(caught.value), kind


@pytest.mark.parametrize("value", [["y"], {}, table()["e"], 5], ids=["list", "dict", "series", "number"])
def test_a_target_that_is_no_name_is_refused(value):
    """By `fit`, `synthesize` and `check` alike."""
    with pytest.raises(ParameterError, match="target="):
        sp.ForestSynthesizer(target=value).fit(table(), MIXED)
    with pytest.raises(ParameterError, match="target="):
        sp.synthesize(table(), MIXED, target=value)
    assert any("target=" in fault.message for fault in sp.check(table(), MIXED, target=value).faults)


def test_arguments_in_a_message():
    """Numbers, names and dates in short; all else by its type."""
    assert as_given("x" * 1000).startswith("'xxx")
    assert len(as_given("x" * 1000)) < 100
    assert as_given(np.float64(0.5)) == repr(np.float64(0.5))
    assert as_given(None) == "None"
    assert as_given(["y"]) == "<a list>"
    assert as_given(table()["e"]) == "<a Series>"


class Changing(list):
    """A list that says something else each time after the first that it is read."""

    def __init__(self, first, then):
        super().__init__(first)
        self.then, self.times = then, 0

    def __iter__(self):
        self.times += 1
        return super().__iter__() if self.times == 1 else iter(self.then)


@pytest.mark.parametrize("then", [[("x", "e")], [("nope",)], []])
def test_a_workload_is_read_once(then):
    """What is checked is what is counted and what the card says, even if the list changes meanwhile."""
    workload = Changing([Changing(["x", "y"], ["y", "e"])], then)
    model = sp.ForestSynthesizer("5", workload=workload).fit(table(), MIXED)
    assert workload.times == 1
    assert model.card_.parameters["workload"] == [["x", "y"]]
    assert ("x", "y") in model.release_.looked_at
    assert model.release_.verify_contents()
