"""Files whose numbers cannot be of one fit: totals far from a noisy count, structures that no design has."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from spinney.errors import FileError

SCHEMA = sp.Schema({name: sp.Integer(0, 15) for name in "abcde"})


def table(n: int = 3_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 16, n)
    return pd.DataFrame({name: np.clip(first + rng.integers(-1, 2, n), 0, 15) for name in SCHEMA})


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("files") / "tree.spinney"
    model = sp.ForestSynthesizer(2, unit="add-remove").fit(table(), SCHEMA)
    assert model.card_.plan["structure"] == "tree"
    model.save(path)
    return path


def forged(path: Path, change) -> Path:
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    described = json.loads(members["card.json"])
    change(described)
    members["card.json"] = json.dumps(described).encode()
    other = path.with_name("forged.spinney")
    with zipfile.ZipFile(other, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return other


def with_plan(path: Path, name: str, value) -> Path:
    return forged(path, lambda described: described["card"]["plan"].__setitem__(name, value))


@pytest.mark.parametrize(
    "structure", ["bogus", {}, None, 1e308, [], True, "rounds", "independent", "uniform", "target"]
)
def test_a_structure_that_this_forest_does_not_have(path, structure):
    """Neither a name that is none, nor one that has other tables than the plan, or takes another quality."""
    with pytest.raises(FileError, match="inconsistent contents"):
        sp.load(with_plan(path, "structure", structure))
    assert sp.load(with_plan(path, "structure", "tree")).card.plan["structure"] == "tree"


@pytest.mark.parametrize("off_by", [10**9, -(10**6), 10**5])
def test_a_noisy_count_that_is_far_from_the_total(path, off_by):
    """Both are of one table, and differ by noise."""
    noisy = sp.load(path).card.plan["noisy_rows"]
    with pytest.raises(FileError, match=r"noisy_total is .* and the noisy count of rows is"):
        sp.load(with_plan(path, "noisy_rows", noisy + off_by))


def test_where_rows_alone_were_counted_the_total_follows_from_their_count(path):
    """Were it by the rule of releases from before, which took the number that plans take."""
    wide = sp.Schema({f"c{i}": sp.Integer(0, 999) for i in range(60)})
    rows = np.random.default_rng(0).integers(0, 999, (120, 60))
    model = sp.ForestSynthesizer("0.1", unit="add-remove").fit(rows, wide)
    assert model.card_.plan["structure"] == "uniform"
    uniform = path.with_name("uniform.spinney")
    model.save(uniform)
    assert sp.load(uniform).noisy_total == model.card_.row_count.drawn
    noisy = 10**9
    with pytest.raises(FileError, match="the noisy count of rows gives"):
        sp.load(with_plan(uniform, "noisy_rows", noisy))


@pytest.mark.parametrize(
    "options", [{}, {"target": "a"}, {"quality": "high"}, {"delta": 0}, {"workload": [("a", "b")]}]
)
@pytest.mark.parametrize("unit", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", ["0.00001", "0.1", "2"])
def test_honest_files_load(tmp_path, options, unit, epsilon):
    """Of every structure and budget, of few rows and of many."""
    for n in (1, 2_000):
        sp.ForestSynthesizer(epsilon, unit=unit, **options).fit(table(n), SCHEMA).save(tmp_path / f"{n}.spinney")
        assert sp.load(tmp_path / f"{n}.spinney").verify_contents()
