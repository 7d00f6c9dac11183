"""Remarks: released numbers tell of bounds that are too narrow and of columns that are told too coarsely."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from spinney.errors import SchemaWarning
from spinney.release.card import Ranges, of_one_range, of_piles
from support.command_line import spinney

N = 20_000


def table() -> pd.DataFrame:
    """Ages of which many are above 65, ratios of which most are below 1."""
    rng = np.random.default_rng(1)
    return pd.DataFrame({"age": rng.normal(45, 20, N).clip(0, 120).astype(int), "ratio": rng.gamma(0.3, 1, N)})


def remarks(schema: dict[str, sp.Real | sp.Integer], method: str, epsilon: float = 1) -> list[str]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", SchemaWarning)
        sp.synthesize(table()[list(schema)], schema, epsilon=epsilon, method=method)
    return [str(warning.message) for warning in told if warning.category is SchemaWarning]


@pytest.mark.parametrize("method", ["tree", "forest"])
def test_a_bound_that_is_too_narrow(method):
    """A sixth of the rows lie beyond the bound: the remark names column, bound and remedy. Wide bounds have none."""
    found = remarks({"age": sp.Integer(0, 65)}, method)
    assert len(found) == 1
    assert found[0].startswith("column 'age': 1")
    assert found[0].endswith("% of the rows lie at its upper bound. Values beyond a bound are moved to it; if there "
                             "may be larger ones, raise high=65. If 65 is a code, such as that of a missing value, "
                             "make it null and declare the column nullable")  # fmt: skip
    assert not remarks({"age": sp.Integer(0, 130)}, method)


def test_a_lower_bound_that_is_too_narrow():
    """Likewise from below, unless the bound is a number's 0, where amounts pile up anyway."""
    found = remarks({"age": sp.Integer(30, 130)}, "forest")
    assert len(found) == 1
    assert "lie at its lower bound" in found[0]
    assert "if there may be smaller ones, lower low=30. If 30 is a code" in found[0]
    low = Ranges(np.array([0.0, 1.0]), np.array([1.0, 999.0]), np.array([50.0, 50.0]))
    assert not list(of_piles("x", sp.Integer(0, 999), low))
    assert list(of_piles("x", sp.Integer(1, 1000), low))


def test_a_column_that_is_told_coarsely():
    """A grid over generous bounds has all rows in its first bin; a forest along a ruler has not."""
    schema = {"ratio": sp.Real(0, 1e6), "age": sp.Integer(0, 130)}
    found = remarks(schema, "grid")
    assert [remark for remark in found if remark.startswith("column 'ratio': 100% of the rows lie in one range, 0 to")]
    assert not remarks(schema, "forest")
    found = remarks({"ratio": sp.Real(0, 1e6, bits=3)}, "forest")
    assert len(found) == 1
    assert found[0].endswith("hardly tells where in it; raise or leave out its bits")


def test_what_is_no_pile():
    """Few values, times of day, and an end that is no denser than what lies next to it."""
    even = Ranges(np.arange(100.0), np.ones(100), np.full(100, 10.0))
    assert not list(of_piles("x", sp.Integer(1, 100), even))
    top = Ranges(np.arange(10.0), np.ones(10), np.array([1.0] * 9 + [50.0]))
    assert not list(of_piles("x", sp.Integer(1, 10), top))
    day = Ranges(np.array([0.0, 43.2e9]), np.array([43.2e9, 43.2e9]), np.array([1.0, 1.0]))
    assert not list(of_piles("x", sp.Time(), day))
    nothing = Ranges(np.zeros(0), np.zeros(0), np.zeros(0))
    assert not list(of_piles("x", sp.Real(0, 1), nothing))
    assert not list(of_one_range("x", sp.Real(0, 1), nothing, "remedy"))
    points = Ranges(np.array([0.25, 0.5]), np.zeros(2), np.array([3.0, 1.0]))
    assert not list(of_one_range("x", sp.Real(0, 1), points, "remedy"))


def test_card_file_and_explanation(tmp_path):
    """The card shows remarks, as text and as data; a file's own are not believed but found anew."""
    with pytest.warns(SchemaWarning, match="upper bound"):
        model = sp.ForestSynthesizer(1).fit(table()[["age"]], {"age": sp.Integer(0, 65)})
    release = model.release_
    assert len(release.card.remarks) == 1
    assert "remark      column 'age'" in str(release.card)
    assert release.card.to_dict()["remarks"] == list(release.card.remarks)
    assert release.explain().to_dict()["remarks"] == list(release.card.remarks)
    release.save(tmp_path / "r.spinney")
    assert sp.load(tmp_path / "r.spinney").card.remarks == release.card.remarks


def test_warnings_as_errors_lose_nothing():
    """A remark comes after the release is held: where it is raised, what was paid for is still there."""
    model = sp.ForestSynthesizer(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SchemaWarning)
        with pytest.raises(SchemaWarning, match="upper bound"):
            model.fit(table()[["age"]], {"age": sp.Integer(0, 65)})
    assert model.ledger_.spent == 1
    assert len(model.sample(10)) == 10


def test_command_line(tmp_path):
    """`spinney fit` tells of it on standard error, and goes on."""
    table()[["age"]].to_csv(tmp_path / "t.csv", index=False)
    sp.Schema({"age": sp.Integer(0, 65)}).to_file(tmp_path / "s.toml")
    out = tmp_path / "r.spinney"
    told = spinney("fit", tmp_path / "t.csv", "--schema", tmp_path / "s.toml", "--epsilon", "1", "--out", out)
    assert told.status == 0
    assert "caution: column 'age'" in told.err
