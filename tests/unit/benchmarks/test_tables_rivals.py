"""Rivals get the rows as codes in a file and give codes back, which become rows again; mbi is not needed here."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.tables import rivals
from benchmarks.tables.coding import Coding
from benchmarks.tables.releases import Release, yardstick_of

import spinney as sp
from spinney.errors import FileError
from spinney.metrics import ks_distance
from spinney.tables.frames import open_table

SCHEMA = sp.Schema(
    {
        "x": sp.Real(-100, 100, nullable=True),
        "price": sp.Real(0, 1, multiple_of=0.25),
        "k": sp.Integer(0, 1_000_000),
        "few": sp.Integer(0, 3),
        "kind": sp.Category(("a", "b", "c"), nullable=True),
        "code": sp.Category((7, 9)),
        "is": sp.Boolean(),
    }
)


def rows() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    n_rows = 2_000
    return pl.DataFrame(
        {
            "x": [None if rng.random() < 0.1 else float(v) for v in rng.normal(0, 3, n_rows)],
            "price": rng.integers(0, 5, n_rows) / 4,
            "k": np.where(rng.random(n_rows) < 0.5, 0, rng.integers(100, 5_000, n_rows)),
            "few": rng.integers(0, 4, n_rows),
            "kind": [(None, "a", "b", "c")[i] for i in rng.integers(0, 4, n_rows)],
            "code": rng.choice([7, 9], n_rows),
            "is": rng.random(n_rows) < 0.3,
        }
    )


@pytest.mark.parametrize("bins", ["quantiles", "public"])
def test_rows_come_back_in_their_bins(bins: str) -> None:
    """What is coded and decoded has the same codes again, the schema's types, and the same nulls."""
    real = rows()
    coding = Coding(real, SCHEMA, bins)
    assert (coding.codes.max(axis=1) < np.array(coding.sizes)).all()
    back = coding.rows(coding.codes, seed=0)
    open_table(back, SCHEMA)
    assert back["kind"].equals(real["kind"])
    assert back["code"].cast(pl.Int64).equals(real["code"].cast(pl.Int64))
    assert back["is"].equals(real["is"])
    assert back["few"].equals(real["few"])
    assert back["x"].null_count() == real["x"].null_count()
    assert np.array_equal(Coding(back, SCHEMA, bins).codes, coding.codes) or bins == "quantiles"


def test_private_quantiles_are_a_gift_and_public_bins_are_not() -> None:
    """Half of k lies at 0 and the rest below 5,000 of 1,000,000: quantiles keep both, equal bins neither."""
    real = rows()
    found = {}
    for bins in ("quantiles", "public"):
        coding = Coding(real, SCHEMA, bins)
        found[bins] = ks_distance(real, coding.rows(coding.codes, seed=0), SCHEMA)["k"]
    assert found["quantiles"] < 0.02
    assert found["public"] > 0.4


def test_a_bin_without_rows_reaches_to_its_neighbours() -> None:
    """Two values that pile up leave a bin between them, into which a noisy system may put rows."""
    frame = pl.DataFrame({"x": [1.0] * 50 + [5.0] * 50})
    schema = sp.Schema({"x": sp.Real(0, 10)})
    coding = Coding(frame, schema, "quantiles")
    every = np.arange(coding.sizes[0], dtype=np.uint16)[None, :]
    values = coding.rows(np.repeat(every, 20, axis=1), seed=0)["x"].to_numpy()
    assert values.min() == 1
    assert values.max() == 5
    assert np.isfinite(values).all()
    assert ((values > 1) & (values < 5)).any()


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A worker that gives back what it got, or was stopped where it is AIM, in place of one with mbi."""
    package = tmp_path / "benchmarks" / "tables"
    package.mkdir(parents=True)
    (package / "worker.py").write_text(
        "import json, sys\n"
        "import numpy as np\n"
        "with np.load(sys.argv[1]) as held:\n"
        "    codes, options = held['codes'], json.loads(str(held['options']))\n"
        "assert options['unit'] == 'add-remove' and options['delta'] == 1e-5\n"
        "report = np.array(json.dumps({'state': '3 rounds', 'seconds': 2.0, 'cpu_seconds': 1.0}))\n"
        "assert options['epsilon'] < 10\n"
        "np.savez(sys.argv[2], report=report, **({} if options['name'] == 'AIM' else {'codes': codes}))\n"
    )
    monkeypatch.setattr(rivals, "ROOT", tmp_path)
    return Path(sys.executable)


def test_a_rival_is_scored_like_ours_and_one_that_was_stopped_says_so(echo: Path) -> None:
    release = Release("adult", "MST, private quantiles", "1", 0)
    found = rivals.measured(release, None, python=echo, limit=60, has_areas=False)
    assert (found.fit_seconds, found.note) == (2.0, "3 rounds")
    assert found.figures is not None
    assert found.figures.tv1_quantiles < 0.01, "the rows that it got are the rows that were fitted"
    stopped = rivals.measured(Release("adult", "AIM, public bins", "1", 0), None, python=echo, limit=60)
    assert stopped.figures is None
    assert stopped.note == "stopped after 2 s: 3 rounds"
    yardstick_of.cache_clear()


def test_a_worker_that_fails_is_named(echo: Path) -> None:
    with pytest.raises(FileError, match="MST failed in"):
        rivals.measured(Release("adult", "MST, public bins", "10", 0), None, python=echo, limit=60)
    yardstick_of.cache_clear()


def test_a_python_without_mbi_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be run"):
        rivals.check_python(tmp_path / "python")
    bare = tmp_path / "bare"
    bare.write_text("#!/bin/sh\nexit 1\n")
    bare.chmod(0o755)
    with pytest.raises(FileError, match="has no mbi"):
        rivals.check_python(bare)


def test_every_budget_of_every_rival_is_asked_for() -> None:
    found = rivals.rivals(["adult", "skin"], ["1", "10"], ["MST, public bins"], n_runs=2, unit="replace-one")
    assert len(set(found)) == 8
    assert {release.unit for release in found} == {"replace-one"}
    assert not any(release.has_target for release in found)
