"""Rows and what is done with them may take the same seed: the one says nothing of the other."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import FileError

N_ROWS, N_KEPT = 4000, 800


def forest(*, only=None):
    rng = np.random.default_rng(5)
    kind = rng.choice(["a", "b", "c"], N_ROWS, p=[0.5, 0.3, 0.2])
    table = pa.table({"kind": kind, "size": rng.normal(10, 2, N_ROWS), "is_new": rng.random(N_ROWS) < 0.4})
    columns = {"kind": sp.Category(["a", "b", "c"]), "size": sp.Real(0, 20), "is_new": sp.Boolean()}
    names = list(columns) if only is None else [only]
    schema = sp.Schema({name: columns[name] for name in names})
    return sp.ForestSynthesizer(8, 0).fit(table.select(names), schema).release_


def tree(*, moments):
    rng = np.random.default_rng(6)
    table = np.column_stack([rng.choice(3, N_ROWS, p=[0.5, 0.3, 0.2]), rng.integers(0, 8, N_ROWS)])
    schema = sp.Schema({"kind": sp.Integer(0, 2), "size": sp.Integer(0, 7)})
    return sp.KDTreeSynthesizer(8, moments=moments).fit(table, schema).release_


RELEASES = {"forest": forest, "moments": lambda: tree(moments=True), "bins": lambda: tree(moments=False)}


@pytest.fixture(scope="module", params=RELEASES)
def release(request):
    return RELEASES[request.param]()


def kinds_of_a_subsample(release, seed, subsample):
    """The shares of the first column among all rows, and among those that a shuffle puts first."""
    rows = release.sample(N_ROWS, seed=seed, frame="pandas")["kind"]
    kept = rows.iloc[subsample.permutation(N_ROWS)[:N_KEPT]]
    return (one.value_counts(normalize=True).reindex(sorted(rows.unique()), fill_value=0) for one in (rows, kept))


@pytest.mark.parametrize("seed", [0, 7, 12345])
def test_a_subsample_by_the_same_seed_is_like_all_rows(release, seed):
    """A shuffle by `default_rng(seed)` after a draw by the same seed does not sort the rows by their values."""
    every, kept = kinds_of_a_subsample(release, seed, np.random.default_rng(seed))
    assert len(every) == 3
    assert np.abs(every - kept).max() < 0.08  # five standard errors


def test_a_generator_and_its_twin_are_apart(release):
    """Two generators of one seed, one for the rows and one for a shuffle, do not meet either."""
    every, kept = kinds_of_a_subsample(release, np.random.default_rng(3), np.random.default_rng(3))
    assert np.abs(every - kept).max() < 0.08
    rng = np.random.default_rng(3)
    every, kept = kinds_of_a_subsample(release, rng, rng)
    assert np.abs(every - kept).max() < 0.08


def test_the_test_above_can_fail():
    """Where rows take the seed's own stream, as releases of earlier files do, a subsample is of one class."""
    release = forest(only="kind")
    release.stream = "given"
    every, kept = kinds_of_a_subsample(release, 0, np.random.default_rng(0))
    assert np.abs(every - kept).max() > 0.3


def test_a_generator_goes_on(release):
    """A generator gives other rows with every draw, the same ones from the same state, whatever its algorithm."""
    for bits in (np.random.PCG64, np.random.MT19937, np.random.SFC64):
        one, other = np.random.Generator(bits(3)), np.random.Generator(bits(3))
        first, second = (release.sample(50, seed=one, frame="pandas") for _ in range(2))
        assert not first.equals(second)
        again = [release.sample(50, seed=other, frame="pandas") for _ in range(2)]
        assert first.equals(again[0])
        assert second.equals(again[1])
        assert one.integers(2**60) == other.integers(2**60)


def test_seeds_of_all_kinds_are_apart(release):
    """Large seeds, sequences and 0 each have rows of their own."""
    seeds = (0, 1, 2**32, 2**100, [3, 1], np.int64(5), np.random.SeedSequence(9))
    drawn = [release.sample(50, seed=seed, frame="pandas") for seed in seeds]
    assert not any(a.equals(b) for place, a in enumerate(drawn) for b in drawn[:place])


def test_a_file_says_how_seeds_become_rows(tmp_path):
    """Files keep the stream of their release, also when they are saved again; one that says nothing is refused."""
    release = tree(moments=True)
    for stream in ("own", "given"):
        release.stream = stream
        release.save(tmp_path / stream)
        loaded = sp.load(tmp_path / stream)
        assert np.array_equal(loaded.sample(40, seed=2), release.sample(40, seed=2))
        loaded.save(tmp_path / f"{stream} again")
        assert sp.load(tmp_path / f"{stream} again").stream == stream
    with zipfile.ZipFile(tmp_path / "own") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    described = json.loads(members["card.json"])
    assert described["stream"] == "own"
    for wrong, match in (({"stream": "another"}, "stream"), ({}, "there is no 'stream'")):
        entries = {name: value for name, value in described.items() if name != "stream"} | wrong
        with zipfile.ZipFile(tmp_path / "wrong", "w") as archive:
            for name, content in (members | {"card.json": json.dumps(entries).encode()}).items():
                archive.writestr(name, content)
        with pytest.raises(FileError, match=match):
            sp.load(tmp_path / "wrong")
