"""Samples in parts: each by itself, all together as good as one, in every kind of release and table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.release import parts as parts_module
from spinney.release.parts import Part, usual_parts
from spinney.release.points import PointsRelease
from support import small_forests
from support.in_one_test import in_one_test


def tree(square, moments):
    return sp.KDTreeSynthesizer("2", moments=moments).fit(*square, entropy=sp.UnsafeSeededEntropy(1)).release_


@pytest.fixture(scope="module")
def moments(square):
    return tree(square, moments=True)


@pytest.fixture(scope="module", params=["moments", "bins", "grid", "forest", "plain forest"])
def release(request, square, moments):
    if request.param == "moments":
        return moments
    if request.param == "bins":
        return tree(square, moments=False)
    if request.param == "grid":
        return sp.GridSynthesizer("2").fit(*square, entropy=sp.UnsafeSeededEntropy(1)).release_
    return small_forests.fitted(quality="fast" if request.param == "forest" else "high").release_


def lines(table):
    """The rows of an Arrow table in an order that depends on nothing but themselves."""
    return table.sort_by([(name, "ascending") for name in table.column_names])


def joined(drawn):
    return pa.concat_tables(list(drawn))


def test_parts_have_all_rows_and_sizes_that_differ_by_one_at_most(release):
    """103 rows in 4 parts are 26, 26, 26 and 25."""
    drawn = release.sample(103, seed=5, frame="pyarrow", parts=4)
    assert [part.num_rows for part in drawn] == [26, 26, 26, 25]
    assert (len(drawn), drawn.n_rows) == (4, 103)
    assert repr(drawn) == "SampleParts(103 rows in 4 parts)"


def test_a_part_is_the_same_by_itself_in_any_order_and_anew(release):
    """Whoever draws part 2 alone, or again, or last, gets what an iteration gives."""
    alone = release.sample(103, seed=5, frame="pyarrow", parts=4)[2]
    drawn = release.sample(103, seed=5, frame="pyarrow", parts=4)
    backwards = [drawn[number] for number in (3, 2, 1, 0)]
    assert alone.equals(backwards[1])
    assert joined(drawn).equals(joined(backwards[::-1]))
    assert drawn[-1].equals(drawn[3])


def test_seeds_and_numbers_of_parts_tell_samples_apart(release):
    """Another seed gives other rows; no seed gives others each time, but one object gives the same."""
    first, other = (joined(release.sample(200, seed=seed, frame="pyarrow", parts=3)) for seed in (1, 2))
    assert not lines(first).equals(lines(other))
    unseeded = release.sample(200, frame="pyarrow", parts=3)
    assert unseeded[1].equals(unseeded[1])
    assert not joined(unseeded).equals(joined(release.sample(200, frame="pyarrow", parts=3)))


def test_a_generator_gives_other_parts_each_time(release):
    """As with one sample, a generator moves on."""
    rng = np.random.default_rng(3)
    first, second = (joined(release.sample(100, seed=rng, frame="pyarrow", parts=2)) for _ in range(2))
    assert not lines(first).equals(lines(second))
    assert joined(release.sample(100, seed=np.random.default_rng(3), frame="pyarrow", parts=2)).equals(first)


@pytest.mark.parametrize(("n_rows", "n_parts"), [(1000, 1), (1000, 7), (200_003, 3), (999, 999)])
def test_the_parts_of_a_tree_have_the_rows_of_one_sample(moments, n_rows, n_parts):
    """All parts together are, in another order, the rows that one sample of the same seed has: to the last bit."""
    whole = moments.sample(n_rows, seed=8, frame="pyarrow")
    together = joined(moments.sample(n_rows, seed=8, frame="pyarrow", parts=n_parts))
    assert lines(together).equals(lines(whole))
    assert not together.equals(whole)


def test_each_part_of_a_tree_is_even_over_the_leaves(moments):
    """A part has its share of every quarter of the square to within a few rows; independent rows would not."""
    whole = moments.sample(40_000, seed=8, frame="numpy")
    expected = np.histogram2d(*whole.T, bins=8, range=[[0, 1]] * 2)[0] / 10
    for part in moments.sample(40_000, seed=8, frame="numpy", parts=10):
        gaps = np.histogram2d(*part.T, bins=8, range=[[0, 1]] * 2)[0] - expected
        spread = np.sqrt(np.mean(gaps**2) / np.mean(expected))
        assert spread < 0.6, "independent rows have about 1"


@pytest.mark.parametrize("quality", ["fast", "high"])
def test_few_rows_of_a_forest_are_cut_out_of_one_sample(quality):
    """Below half a million rows, all parts together are the rows that one sample of the same seed has, in order."""
    release = small_forests.fitted(quality=quality).release_
    together = joined(release.sample(2_000, seed=4, frame="pyarrow", parts=9))
    assert together.equals(release.sample(2_000, seed=4, frame="pyarrow"))


@pytest.mark.parametrize("n_parts", [20, 7])
def test_the_roundings_of_many_parts_of_a_forest_cancel_out(monkeypatch, n_parts):
    """Offsets that are a k-th apart keep counts of states within a row or so of the model.

    Parts that know nothing of each other are off by far more, and the test sees that.
    """
    monkeypatch.setattr(parts_module, "_CHUNK_ROWS", 500)
    release = small_forests.fitted(quality="high").release_
    kinds = ["a", "b", "c", "d"]

    def gap(tables):
        """How far counts of a column are from those of the model, on average over seeds."""
        found = pa.concat_tables(tables)["kind"].to_numpy(zero_copy_only=False)
        return np.array([(found == kind).sum() for kind in kinds])

    n_rows = 500 * n_parts + 137
    law = gap([release.sample(400_000, seed=0, frame="pyarrow")]) * (n_rows / 400_000)
    seeds = range(12)
    together = [gap(list(release.sample(n_rows, seed=s, frame="pyarrow", parts=n_parts))) - law for s in seeds]
    size = n_rows // n_parts
    apart = [
        gap([release.sample(size, seed=1000 * s + i, frame="pyarrow") for i in range(n_parts)])
        - law * (size * n_parts / n_rows)
        for s in seeds
    ]
    spreads = [float(np.sqrt(np.mean(np.square(gaps)))) for gaps in (together, apart)]
    assert spreads[0] < 0.9
    assert spreads[1] > 1.5 * spreads[0]


def test_conditions_hold_in_every_part():
    """`where` and `balance` are those of one sample."""
    release = small_forests.fitted().release_
    for part in release.sample(900, seed=1, frame="polars", parts=3, where={"kind": ["a", "b"], "size": (0, 1)}):
        assert set(part["kind"]) <= {"a", "b"}
        assert part["size"].is_between(0, 1).all()
    drawn = release.sample(900, seed=1, frame="polars", parts=3, balance={"label": 0.5})
    assert abs(pl.concat(list(drawn))["label"].sum() - 450) <= 5


def test_parts_come_in_the_kind_and_types_of_like(people):
    """Every part has the types of `like`, categories of the schema included, so parts can be put together."""
    table, schema = people
    release = sp.ForestSynthesizer("1").fit(table, schema, entropy=sp.UnsafeSeededEntropy(1)).release_
    drawn = list(release.sample(300, seed=1, parts=3, like=table))
    assert all(isinstance(part, pd.DataFrame) for part in drawn)
    assert all((part.dtypes == drawn[0].dtypes).all() for part in drawn)
    whole = release.sample(300, seed=1, like=table)
    assert (pd.concat(drawn).dtypes == whole.dtypes).all()


def test_identifiers_go_on_from_part_to_part():
    """No identifier stands in two parts, and all are as wide as in one sample."""
    schema = sp.Schema({"id": sp.Identifier(prefix="C-", digits=2), "no": sp.Identifier(), "x": sp.Real(0, 1)})
    table = pl.DataFrame({"id": ["?"] * 500, "no": [0] * 500, "x": np.linspace(0, 1, 500)})
    release = sp.ForestSynthesizer("1").fit(table, schema, entropy=sp.UnsafeSeededEntropy(1)).release_
    together = pl.concat(list(release.sample(101, seed=1, parts=4)))
    assert together["no"].to_list() == list(range(1, 102))
    assert together["id"].to_list() == release.sample(101, seed=1)["id"].to_list()
    numbers = [array[:, 0].tolist() for array in _numbered().sample(5, parts=2, frame="numpy")]
    assert numbers == [[1, 2, 3], [4, 5]]


def _numbered():
    schema = sp.Schema({"no": sp.Identifier(), "x": sp.Real(0, 1)})
    table = pl.DataFrame({"no": [0] * 500, "x": np.linspace(0, 1, 500)})
    return sp.ForestSynthesizer("1").fit(table, schema, entropy=sp.UnsafeSeededEntropy(1)).release_


def test_points_come_in_parts_too(square, moments):
    """Rows that are independent of each other need no more than a stream for each part."""
    release = PointsRelease(square[0], np.ones(len(square[0])), moments.card)
    drawn = release.sample(100, seed=1, frame="numpy", parts=3)
    assert [len(part) for part in drawn] == [34, 33, 33]
    assert not np.array_equal(drawn[1], drawn[2])


def test_synthesizers_pass_parts_on(square):
    """A fitted model draws what its release draws."""
    for model in (sp.KDTreeSynthesizer("1"), sp.GridSynthesizer("1"), sp.ForestSynthesizer("1")):
        model.fit(*square, entropy=sp.UnsafeSeededEntropy(1))
        assert np.array_equal(model.sample(10, seed=1, parts=2)[1], model.release_.sample(10, seed=1, parts=2)[1])


@in_one_test("wrong", [0, -1, True, 2.0, "many", 11, 2_000_000])
def test_wrong_numbers_of_parts_are_refused(release, wrong):
    """Before anything is drawn."""
    with pytest.raises(ParameterError, match="parts"):
        release.sample(10, parts=wrong)


def test_what_parts_cannot_do_is_said(moments, monkeypatch):
    """Several draws in parts, a slice, a part that is not there, a part that no memory holds."""
    for refusing in (moments, small_forests.fitted().release_):
        with pytest.raises(ParameterError, match="draws and parts are both given"):
            refusing.sample(10, parts=2, draws=3)
    drawn = moments.sample(10, parts=2)
    with pytest.raises(TypeError, match="one at a time"):
        drawn[0:1]
    with pytest.raises(IndexError, match="parts 0 to 1"):
        drawn[2]
    monkeypatch.setattr("spinney.release.release.total_memory", lambda: 640_000)
    with pytest.raises(ParameterError, match=r"parts: a part of 50,000 rows is drawn in memory.*parts of 5,000 rows"):
        moments.sample(100_000, parts=2)
    assert len(list(moments.sample(100_000, parts=20))) == 20


def test_no_rows_are_one_empty_part(moments):
    """A sample of no rows has a part, so that its columns are known."""
    (empty,) = moments.sample(0, parts="auto", frame="polars")
    assert empty.shape == (0, 2)


def test_the_usual_number_of_parts_follows_from_the_schema_alone():
    """Long texts make smaller parts; a billion rows of five reals come in some hundreds."""
    reals = sp.Schema({f"x{i}": sp.Real(0, 1) for i in range(5)})
    assert usual_parts(1000, reals) == 1
    assert 300 < usual_parts(10**9, reals) < 1200
    texts = sp.Schema({"x": sp.Category(["a" * 1000, "b"])})
    assert usual_parts(10**7, texts) > 50 * usual_parts(10**7, sp.Schema({"x": sp.Category(["a", "b"])}))


@pytest.mark.parametrize(("n_rows", "n_parts"), [(10, 1), (10, 3), (100, 7), (12, 12), (1000, 999)])
def test_parts_share_out_the_numbers_of_rows(n_rows, n_parts):
    """Every number from 0 on belongs to one part, and a part's come in order, one of every k."""
    parts = [Part(number, n_parts, n_rows, np.random.default_rng(5)) for number in range(n_parts)]
    taken = [part.row_numbers(np.arange(part.size, dtype=np.int32)) for part in parts]
    assert np.array_equal(np.sort(np.concatenate(taken)), np.arange(n_rows))
    for part, numbers in zip(parts, taken, strict=True):
        assert np.array_equal(numbers // n_parts, np.arange(part.size))
    assert [part.first for part in parts] == np.cumsum([0, *(part.size for part in parts[:-1])]).tolist()
