"""`spinney demo` goes the whole way on a made-up town and leaves its files, or nothing."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.cli import other as demo_module
from spinney.demo_data import DISTRICTS, EDGE, N_PEOPLE, district_shares, in_river, make_town
from support.command_line import Run, files_in, spinney

FILES = {"town.csv", "schema.toml", "town.spinney", "synthetic.parquet", "town.png"}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    folder = tmp_path_factory.mktemp("demo") / "town"
    return spinney("demo", "--out", folder), folder


def test_the_demo_leaves_its_files(shown: tuple[Run, Path]) -> None:
    run, folder = shown
    assert run.status == 0
    assert run.err == ""
    assert files_in(folder) == FILES
    assert files_in(folder.parent) == {"town"}
    assert (folder / "town.png").read_bytes().startswith(b"\x89PNG")
    assert pq.read_table(folder / "synthetic.parquet").num_rows == N_PEOPLE


def test_the_release_is_a_real_one(shown: tuple[Run, Path]) -> None:
    """Epsilon 1 by the operating system's randomness: no brand."""
    card = sp.load(shown[1] / "town.spinney").card
    assert card.is_private
    assert card.epsilon == 1
    assert str(card) in shown[0].out


def test_the_commands_shown_do_what_the_demo_did(shown: tuple[Run, Path], tmp_path: Path) -> None:
    """What is printed can be typed; run again elsewhere it succeeds."""
    run, folder = shown
    commands = re.findall(r"^\$ spinney (.*)$", run.out, flags=re.MULTILINE)
    assert [line.split()[0] for line in commands] == ["fit", "sample", "card"]
    for name in ("town.csv", "schema.toml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    for line in commands:
        again = spinney(*shlex.split(line.replace(str(folder), str(tmp_path))))
        assert again.status == 0, again.err
    assert files_in(tmp_path) == FILES - {"town.png"}


def test_the_comparison_is_computed(shown: tuple[Run, Path]) -> None:
    run, folder = shown
    table = pq.read_table(folder / "synthetic.parquet")
    synthetic = district_shares(np.column_stack([table["x"].to_numpy(), table["y"].to_numpy()]))
    true = district_shares(make_town())
    for name in DISTRICTS:
        assert re.search(rf"{name} +{true[name]:.1%} +{synthetic[name]:.1%}", run.out)
    assert "only because the town is made up" in run.out
    assert abs(true["old town"] - synthetic["old town"]) < 0.05


def test_existing_files_are_kept_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "town.csv").write_text("precious")
    run = spinney("demo", "--out", tmp_path)
    assert run.status == 2
    assert "--force" in run.err
    assert files_in(tmp_path) == {"town.csv"}
    (tmp_path / "other").write_text("kept")
    assert spinney("demo", "--out", tmp_path, "--force").status == 0
    assert files_in(tmp_path) == FILES | {"other"}
    assert (tmp_path / "town.csv").read_text() != "precious"


def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo_module, "_compare", interrupted)
    assert spinney("demo", "--out", tmp_path / "town").status == 130
    assert not files_in(tmp_path)


def test_the_demo_works_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    run = spinney("demo", "--out", tmp_path / "town")
    assert run.status == 0
    assert "No picture was drawn" in run.out
    assert "pip install matplotlib" in run.out
    assert files_in(tmp_path / "town") == FILES - {"town.png"}


def test_the_town_is_repeatable_and_dry() -> None:
    town = make_town()
    assert town.shape == (N_PEOPLE, 2)
    assert np.array_equal(town, make_town())
    assert not np.array_equal(town, make_town(seed=1))
    assert ((town >= 0) & (town <= EDGE)).all()
    assert in_river(town).mean() < 1e-3, "rounding may wet a foot"
    assert len(make_town(100)) == 100
