"""Sampling rows from a release: how many, which, repeatable by seed, and in which table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.tree.release import bins as placement
from spinney.tree.release.geometry import bin_boxes
from support.command_line import spinney

LINE = sp.Schema({"x": sp.Real(0, 8)})


def tree(square, moments):
    points, schema = square
    return sp.KDTreeSynthesizer("2", moments=moments).fit(points, schema, entropy=sp.UnsafeSeededEntropy(1))


@pytest.fixture(scope="module")
def binned(square):
    return tree(square, moments=False)


@pytest.fixture(scope="module", params=["moments", "bins"])
def fitted(square, binned, request):
    return binned if request.param == "bins" else tree(square, moments=True)


def test_a_seed_repeats_the_rows(fitted):
    """The same seed gives the same rows, another seed others, and no seed others still."""
    rows = fitted.sample(500, seed=3)
    assert np.array_equal(rows, fitted.sample(500, seed=3))
    assert np.array_equal(rows, fitted.sample(500, seed=np.random.default_rng(3)))
    assert not np.array_equal(rows, fitted.sample(500, seed=4))
    assert not np.array_equal(fitted.sample(500), fitted.sample(500))


@pytest.mark.parametrize("n_cores", [1, 3])
def test_rows_do_not_depend_on_the_number_of_cores(binned, monkeypatch, n_cores):
    """Random streams are cut by rows, not by threads."""
    rows = binned.sample(300_000, seed=3)
    assert len(rows) > 2 * placement._STREAM_ROWS
    monkeypatch.setenv("SPINNEY_THREADS", str(n_cores))
    assert np.array_equal(rows, binned.sample(300_000, seed=3))


def test_rows_leave_no_state_behind(fitted):
    """Sampling touches neither numpy's global generator nor the release."""
    np.random.seed(0)  # noqa: NPY002 - the global generator must stay where it is
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = fitted.sample(10, seed=1)
    fitted.sample(10, seed=2)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert np.array_equal(first, fitted.sample(10, seed=1))


def test_the_number_of_rows_follows_the_table_where_it_is_public(square, fitted):
    """Under replace-one a sample has as many rows as the private table, by default."""
    assert len(fitted.sample()) == len(square[0])


def test_the_number_of_rows_follows_the_noisy_total_where_it_is_private(square):
    """Under add-remove a sample has as many rows as the noisy counts add up to, by default."""
    points, schema = square
    model = sp.KDTreeSynthesizer("2", unit="add-remove", moments=False).fit(points, schema)
    assert len(model.sample()) == model.release_.bins.noisy_total
    model = sp.KDTreeSynthesizer("2", unit="add-remove").fit(points, schema)
    moments, bought = model.release_.moments, model.card_.plan["noisy_rows"]
    both = [moments.noisy_steps[:, 0].sum() / moments.quantum, bought]
    assert min(both) - 1 <= len(model.sample()) <= max(both) + 1


@pytest.mark.parametrize("kind", ["numpy", "pyarrow", "pandas", "polars"])
def test_no_rows_are_a_table_too(fitted, kind):
    """Asking for 0 rows gives an empty table with the right columns and types."""
    empty, full = fitted.sample(0, frame=kind), fitted.sample(5, frame=kind)
    assert len(empty) == 0
    assert type(empty) is type(full)
    if kind == "pyarrow":
        assert empty.schema == full.schema
    elif kind == "numpy":
        assert empty.shape == (0, 2)
    else:
        assert list(empty.dtypes) == list(full.dtypes)


@pytest.mark.parametrize("n_rows", [-1, 1.5, True, "10", np.nan])
def test_bad_numbers_of_rows(fitted, n_rows):
    """n_rows is a whole number of rows."""
    with pytest.raises(ParameterError, match="n_rows="):
        fitted.sample(n_rows)
    assert len(fitted.sample(np.int64(3))) == 3


def test_more_rows_than_memory_can_hold(fitted):
    """They are refused before anything is allocated, with what to do instead."""
    with pytest.raises(ParameterError, match=r"n_rows=1,000,000,000,000: .* GiB.*draw them in parts of [1-9]0*"):
        fitted.sample(10**12)
    with pytest.raises(ParameterError, match="draw them in parts"):
        fitted.release_.sample(10**12, frame="pyarrow")


def test_memory_is_that_of_the_machine_or_the_container(fitted, square, tmp_path, monkeypatch):
    """Two columns of floats at 32 bytes a value; what fits is drawn, and nothing is spent on rows that do not."""
    monkeypatch.setattr("spinney.release.release.total_memory", lambda: 640_000)
    assert len(fitted.sample(10_000, seed=1)) == 10_000
    with pytest.raises(ParameterError, match=r"take about 0\.0 GiB.*parts of 5,000 rows"):
        fitted.sample(10_001)
    ledger = sp.Ledger(limit=1)
    with pytest.raises(ParameterError, match="n_rows=10,001"):
        sp.synthesize(*square, epsilon=1, n_rows=10_001, ledger=ledger)
    assert ledger.spent == 0
    fitted.save(tmp_path / "r.spinney")
    run = spinney("sample", tmp_path / "r.spinney", "--rows", "10001", "--out", tmp_path / "x.csv")
    assert run.status != 0
    assert "draw them in parts" in run.err
    monkeypatch.setattr("spinney.release.release.total_memory", lambda: None)
    assert len(fitted.sample(10_001, seed=1)) == 10_001


@pytest.mark.parametrize("seed", [-1, "abc", 1.5])
def test_bad_seeds(fitted, seed):
    """A seed is a non-negative whole number, and is named when it is not."""
    with pytest.raises(ParameterError, match="seed="):
        fitted.sample(1, seed=seed)


def test_bad_placement_and_frame(fitted):
    """Misspelt options list what there is."""
    own = "'fitted', 'uniform', 'centre'" if fitted.release_.kind == "moments" else "'centre', 'uniform', 'tilted'"
    with pytest.raises(ParameterError, match=f"placement='middle' is not one of {own}"):
        fitted.sample(1, placement="middle")
    with pytest.raises(ParameterError, match=r"frame='excel' is not one of"):
        fitted.sample(1, frame="excel")
    with pytest.raises(ParameterError, match="frame='excel'"):
        fitted.weighted_points(frame="excel")
    for falsy in ([], "", 0, False):
        with pytest.raises(ParameterError, match=r"frame=.* is not one of 'pandas', 'polars'"):
            fitted.sample(1, frame=falsy)
        with pytest.raises(ParameterError, match=r"frame=.* is not one of"):
            fitted.weighted_points(frame=falsy)
    with pytest.raises(ParameterError, match=r"frame=<a DataFrame> is not one of"):
        fitted.sample(1, frame=pl.DataFrame({"x": ["a cell"]}))


def test_num_rows_is_the_number_of_rows(square, fitted):
    """As other libraries call it, in a model, in a release and in one call; both names at once are refused."""
    assert np.array_equal(fitted.sample(num_rows=7, seed=1), fitted.sample(7, seed=1))
    assert len(fitted.release_.sample(num_rows=0)) == 0
    assert len(fitted.sample(5, num_rows=None)) == 5
    assert len(sp.synthesize(*square, num_rows=4)) == 4
    for both in (lambda: fitted.sample(5, num_rows=5), lambda: sp.synthesize(*square, n_rows=5, num_rows=5)):
        with pytest.raises(ParameterError, match="n_rows and num_rows are both given"):
            both()
    with pytest.raises(ParameterError, match="n_rows='4' is not a whole number"):
        sp.synthesize(*square, num_rows="4")


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("n_row", "; did you mean 'n_rows'?"),
        ("n", "; did you mean 'n_rows'?"),
        ("random_state", "; did you mean 'seed'?"),
        ("placment", "; did you mean 'placement'?"),
        ("where", "; conditions are for forests: fit with sp.ForestSynthesizer, or filter the rows"),
        ("colour", ""),
    ],
)
def test_unknown_options_list_the_options(fitted, wrong, hint):
    """What this kind of release has, and what was probably meant."""
    with pytest.raises(ParameterError) as caught:
        fitted.sample(5, **{wrong: 1})
    told = str(caught.value)
    assert told.startswith(f"sample() has no option {wrong!r} for a release of ")
    draws = "" if isinstance(fitted.release_, placement.BinnedRelease) else ", draws"
    assert told.endswith(f"; its options are n_rows, seed, frame, like, parts, placement{draws}{hint}")
    with pytest.raises(ParameterError, match=r"weighted_points\(\) has no .*; its options are frame, placement"):
        fitted.weighted_points(**{wrong: 1})


def test_the_kind_of_table_can_be_chosen(fitted):
    """Any supported kind of table holds the same rows."""
    rows = fitted.sample(50, seed=1)
    assert type(fitted.sample(50, seed=1, frame="pyarrow")) is pa.Table
    assert type(fitted.sample(50, seed=1, frame="polars")) is pl.DataFrame
    frame = fitted.sample(50, seed=1, frame="pandas")
    assert type(frame) is pd.DataFrame
    assert list(frame.columns) == ["x", "y"]
    assert np.array_equal(frame.to_numpy(), rows)


def test_an_array_cannot_hold_text_or_dates(people):
    """Asking for an array of texts names the column."""
    frame, schema = people
    model = sp.KDTreeSynthesizer(10).fit(frame[["colour"]], sp.Schema({"colour": schema["colour"]}))
    with pytest.raises(ParameterError, match="frame='numpy' cannot hold a column of type category"):
        model.sample(3, frame="numpy")


def test_every_row_lies_in_a_released_bin(binned):
    """No row comes from where nothing was released."""
    boxes = bin_boxes(binned.release_.bins)
    low, high = boxes.low - 1e-12, boxes.low + boxes.length + 1e-12
    for where in ("tilted", "uniform", "centre"):
        for row in binned.sample(300, seed=5, placement=where):
            assert ((low <= row) & (row <= high)).all(axis=1).any()


def test_bins_are_picked_by_their_noisy_counts(release_of):
    """A bin with three times the count gets three times the rows; one that was not released gets none."""
    release = release_of(LINE, {"00": 100, "10": 300})
    rows = release.sample(40_000, seed=1)["x"].to_numpy()
    in_first, in_second = (rows < 2).sum(), ((rows >= 4) & (rows <= 6)).sum()
    assert in_first + in_second == 40_000
    # 6 standard deviations of a binomial; equal shares would be 115 away.
    assert abs(in_first - 10_000) < 6 * np.sqrt(40_000 * 0.25 * 0.75)


def test_a_release_without_bins_says_so(release_of):
    """Where every count fell below the threshold there is nothing to sample; 0 rows are still possible."""
    release = release_of(LINE, {})
    assert len(release.sample(0)) == 0
    for ask in (lambda: release.sample(1), release.sample, release.weighted_points):
        with pytest.raises(ParameterError, match="no bins"):
            ask()


def test_synthesize_is_fit_and_sample_in_one(people):
    """One call from a private table to a synthetic one of the same columns and kind."""
    frame, schema = people
    rows = sp.synthesize(frame, schema, epsilon="3", n_rows=20, seed=1, rule="paper")
    assert isinstance(rows, pd.DataFrame)
    assert list(rows.columns) == list(schema)
    assert len(rows) == 20
