"""`spinney paper`: every figure through the command, clear errors, nothing done twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spinney.cli import other as verb
from spinney_paper.experiments import catalogue
from support.command_line import files_in, spinney
from support.toy_experiment import toy

ROOT = Path(__file__).parents[3]
MADE_UP = ["fig-partition", "fig-high-dim", "fig-scaling", "fig-uniform-mixture", "fig-size", "fig-variance"]


LONGER = [pytest.param(one, marks=pytest.mark.long) for one in MADE_UP[1:5]]


@pytest.mark.parametrize("one", [MADE_UP[0], *LONGER, MADE_UP[5]])
def test_every_figure_in_seconds(one, tmp_path):
    """Results, picture, table and verdict; a second call only draws again."""
    run = spinney("paper", one, "--quick", "--out", tmp_path / "made")
    assert run.status == 0, run.err
    assert files_in(tmp_path / "made") == {f"{one}.json", f"{one}.svg"}
    assert "| --- |" in run.out
    held = json.loads((tmp_path / "made" / f"{one}.json").read_text())
    assert held["is_quick"]
    picture = (tmp_path / "made" / f"{one}.svg").read_bytes()
    again = spinney("paper", one, "--quick", "--out", tmp_path / "made")
    assert "finished before; drawn again" in again.out
    assert (tmp_path / "made" / f"{one}.svg").read_bytes() == picture
    other = spinney("paper", one, "--out", tmp_path / "made")
    assert other.status == 1
    assert "a --quick run" in other.err
    assert "--force" in other.err


def test_the_list_names_all():
    """Ids and titles, in the order of the paper."""
    run = spinney("paper", "--list")
    assert run.status == 0
    assert [line.split()[0] for line in run.out.splitlines()] == list(catalogue.IDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name an experiment, or all: fig-partition"),
        (("fig-siez",), "'fig-siez' is not an experiment; choose one of fig-partition"),
        (("fig-size", "--out", "missing/place"), "the folder 'missing' does not exist"),
        (("fig-size", "--data", "nowhere"), "nowhere"),
    ],
)
def test_wrong_calls(arguments, message, tmp_path, monkeypatch):
    """A wrong call says what would be right, and leaves nothing behind."""
    monkeypatch.chdir(tmp_path)
    run = spinney("paper", *arguments)
    assert run.status == 2
    assert message in run.err
    assert files_in(tmp_path) == set()


def test_all_goes_on_where_data_are_missing(tmp_path, monkeypatch):
    """What lacks its data is skipped by name, the rest is made, and the end is a failure."""
    from spinney_paper.experiments.drawing import new_figure

    made = {"plain": toy(n=2), "fraud": toy(n=2, needs_fraud=True), "last": toy(n=3)}
    for name, one in made.items():
        object.__setattr__(one, "id", name)
        object.__setattr__(one, "draw", lambda _: new_figure(1, 1))
    monkeypatch.setattr(catalogue, "IDS", tuple(made))
    monkeypatch.setattr(catalogue, "experiment", made.__getitem__)
    out, data = tmp_path / "out", tmp_path / "data"
    data.mkdir()
    run = spinney("paper", "all", "--out", out, "--data", data)
    assert run.status == 1
    assert "does not hold creditcard.parquet" in run.err
    assert "error: 1 of 3 experiments were skipped: fraud" in run.err
    assert files_in(out) == {"plain.json", "plain.svg", "last.json", "last.svg"}
    alone = spinney("paper", "fraud", "--out", out, "--data", data)
    assert alone.status == 1
    assert "error: the folder" in alone.err


def test_force_begins_anew(tmp_path, monkeypatch):
    """--force replaces results and forgets what an interrupted run had done."""
    from spinney_paper.experiments.drawing import new_figure

    ran: list = []
    one = toy(ran, n=2)
    object.__setattr__(one, "draw", lambda _: new_figure(1, 1))
    monkeypatch.setattr(catalogue, "experiment", lambda _: one)
    assert spinney("paper", "toy", "--out", tmp_path).status == 0
    assert spinney("paper", "toy", "--out", tmp_path).status == 0
    assert ran == [0, 1]
    assert spinney("paper", "toy", "--out", tmp_path, "--force").status == 0
    assert ran == [0, 1, 0, 1]
    assert spinney("paper", "toy", "--out", tmp_path, "--quick", "--force").status == 0
    assert json.loads((tmp_path / "toy.json").read_text())["is_quick"]


def test_force_without_the_data_throws_nothing_away(tmp_path, monkeypatch):
    """What was done before an interruption is still there when the new run cannot begin."""
    monkeypatch.setattr(catalogue, "experiment", lambda _: toy(needs_fraud=True))
    kept = tmp_path / "toy.partial.jsonl"
    kept.write_text("what was done\n")
    run = spinney("paper", "toy", "--out", tmp_path, "--data", tmp_path, "--force")
    assert run.status == 1
    assert kept.read_text() == "what was done\n"


def test_an_interruption_says_that_work_is_kept(tmp_path, monkeypatch):
    """The next call of the same command goes on, and the message says so."""
    monkeypatch.setattr(catalogue, "experiment", lambda _: toy(n=3, stop_at=1))
    run = spinney("paper", "toy", "--out", tmp_path)
    assert run.status == 130
    assert "run the same command again to continue" in run.err
    assert files_in(tmp_path) == {"toy.partial.jsonl"}


def test_a_missing_extra_is_named_before_any_work(tmp_path, monkeypatch):
    """Without matplotlib nothing is computed, and the remedy is given."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    run = spinney("paper", "fig-size", "--quick", "--out", tmp_path)
    assert run.status == 1
    assert "pip install matplotlib, or install Spinney with its extra 'paper'" in run.err
    assert files_in(tmp_path) == set()


def test_the_verb_is_light():
    """The verb itself loads no experiment: `spinney --help` stays quick."""
    assert "Experiment" not in vars(verb)


# ---------------------------------------------------------------------------------------------------- the page


def page_script(*arguments, folder: Path = ROOT / "tools"):
    return subprocess.run(
        [sys.executable, folder / "paper_page.py", *arguments], capture_output=True, text=True, check=False
    )


def test_the_page_is_what_the_results_say():
    """docs/paper.md follows from docs/paper/results."""
    done = page_script("--check")
    assert done.returncode == 0, done.stderr


def test_every_result_has_its_picture():
    """No file of results without a picture, no quick run among them, none of an unknown experiment."""
    for path in (ROOT / "docs/paper/results").glob("*.json"):
        assert path.stem in catalogue.IDS
        assert (ROOT / "docs/paper" / f"{path.stem}.svg").exists()
        assert not json.loads(path.read_text())["is_quick"]
        assert path.stat().st_size < 400_000


def test_missing_results_are_said_and_stale_pages_noticed(tmp_path):
    """Without results the page can be made, and says so; a page of other results is not accepted."""
    tools, page = tmp_path / "tools", tmp_path / "docs/paper.md"
    for folder in (tools, page.parent):
        folder.mkdir()
    (tools / "paper_page.py").write_text((ROOT / "tools/paper_page.py").read_text())
    assert page_script(folder=tools).returncode == 0
    text = page.read_text()
    assert text.count("there is no committed result") == len(catalogue.IDS)
    assert page_script("--check", folder=tools).returncode == 0
    page.write_text(text + "more")
    stale = page_script("--check", folder=tools)
    assert stale.returncode == 1
    assert "make page" in stale.stderr
