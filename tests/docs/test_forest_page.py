"""The forest's pages follow from their results: measured tables from a file, the table of epsilons from a run."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.forest.__main__ import TABLES
from benchmarks.forest.tables import DESCRIPTIONS
from benchmarks.forest.trials import Setting

import spinney as sp

ROOT = Path(__file__).parents[2]


def script(name: str, *arguments, folder: Path = ROOT / "tools"):
    return subprocess.run([sys.executable, folder / name, *arguments], capture_output=True, text=True, check=False)


def module(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def a_trial(table: str, *, repetition: int = 0, tv2: float = 0.04, delta: str = "1e-5") -> dict:
    setting = {"epsilon": "1", "delta": delta, "quality": "fast"}
    figures = {"worst_ks": 0.03, "ks": 0.02, "tv1": 0.01, "tv2": tv2, "area": 0.9, "fit_seconds": 0.5}
    return {"table": table, "setting": setting, "repetition": repetition, **figures}


def a_line(what: str, mean: float, wanted: float | None = None, *, is_floor: bool = False, unit: str = "") -> dict:
    return {"what": what, "mean": mean, "wanted": wanted, "is_floor": is_floor, "unit": unit}


RECORD = {
    "trials": [
        a_trial("adult", tv2=0.04),
        a_trial("adult", repetition=1, tv2=0.06),
        a_trial("covtype", delta="0"),
        a_trial("adult", tv2=0.9),  # the one beside others' systems, of the same repetition
    ],
    "table": [
        a_line("adult, epsilon 1, fast: TV2", 0.05, 0.043),
        a_line("adult, epsilon 1, fast: AUC of 4", 0.9, 0.89, is_floor=True),
        a_line("adult, real rows: AUC of 4", 0.917),
        a_line("adult, epsilon 1, MST: TV2", 0.0444),
        a_line("adult, epsilon 1, MST: time over ours", 138.0, 100.0, unit="x", is_floor=True),
    ],
}


def test_the_page_shows_what_the_results_say():
    """docs/explain/forest.md follows from docs/forest/results.json."""
    done = script("forest_page.py", "--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_the_table_of_epsilons_is_what_comes_out():
    """docs/how-to/choosing-epsilon.md shows what the command that it names makes."""
    done = script("epsilon_table.py", "--check")
    assert done.returncode == 0, done.stderr


def test_tables_of_epsilons_agree_to_the_digit_but_for_distances():
    """A distance may be off by a tenth; a structure, a noise or a missing line may not."""
    agree = module("epsilon_table").agree
    shown = "| 1,000 | 1 | tree | 33 | 32 | 0.300 | 0.100 | 0.200 |\n"
    assert agree(shown, shown.replace("0.300", "0.310"))
    assert not agree(shown, shown.replace("0.300", "0.350"))
    assert agree(shown, shown.replace("0.200", "0.215"))
    assert not agree(shown, shown.replace("0.200", "0.250"))
    assert not agree(shown, shown.replace("33", "34"))
    assert not agree(shown, shown.replace("tree", "target"))
    assert not agree(shown, shown * 2)
    assert not agree("", shown)


def test_means_deviations_and_held_out_tables():
    """Repetitions are averaged, each once; tables nothing was tuned on stand apart; the real rows' area is beside."""
    text = module("forest_page").results_part(RECORD)
    tuned, held_out = text.split("**Tables held out.**")
    adult = next(line for line in tuned.splitlines() if line.startswith("| adult | epsilon 1, fast | 2 |"))
    assert "| 0.0300 ± 0.0000 | 0.0200 ± 0.0000 | 0.0100 ± 0.0000 | 0.0500 ± 0.0141 |" in adult
    assert adult.endswith("| 0.900 ± 0.000 | 0.50 ± 0.00 | 0.917 |")
    expected = "| covtype | pure epsilon 1, fast | 1 | 0.0300 | 0.0200 | 0.0100 | 0.0400 |  |  | 0.900 | 0.50 |  |"
    assert expected in held_out
    heads = next(line for line in tuned.splitlines() if line.startswith("| table"))
    assert heads.count("|") == expected.count("|")
    assert "| adult, epsilon 1, MST: TV2 | 0.0444  |" in text


def test_a_missed_target_is_said():
    """Targets are counted, and every missed one is named with what was wanted."""
    text = module("forest_page").results_part(RECORD)
    assert "2 of 3" in text
    assert "Missed: adult, epsilon 1, fast: TV2 is 0.05, and was to be at most 0.043." in text


def test_the_page_names_settings_and_held_out_tables_as_the_benchmark_does():
    """What the page leaves to the benchmark's words is the benchmark's still."""
    page = module("forest_page")
    assert {name for name in TABLES if DESCRIPTIONS[name].is_held_out} == set(page.HELD_OUT)
    for setting in (Setting("1"), Setting("0.1", "0", "high")):
        described = {"epsilon": setting.epsilon, "delta": setting.delta, "quality": setting.quality}
        assert page._setting({"setting": described}) == str(setting)


def test_results_are_taken_over_and_stale_pages_noticed(tmp_path):
    """`--from` brings new results into the page; a page that shows others is not accepted, nor one without markers."""
    tools = tmp_path / "tools"
    for folder in ("tools", "docs/explain", "docs/forest", "new"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("forest_page.py", "results_page.py"):
        (tools / name).write_text((ROOT / "tools" / name).read_text())
    page = tmp_path / "docs/explain/forest.md"
    page.write_text((ROOT / "docs/explain/forest.md").read_text())
    (tmp_path / "new/forest.json").write_text(json.dumps(RECORD))
    assert script("forest_page.py", "--from", tmp_path / "new", folder=tools).returncode == 0
    assert "pure epsilon 1" in page.read_text()
    assert script("forest_page.py", "--check", folder=tools).returncode == 0
    page.write_text(page.read_text().replace("0.0500", "0.0300"))
    stale = script("forest_page.py", "--check", folder=tools)
    assert stale.returncode == 1
    assert "make page" in stale.stderr
    page.write_text("no markers")
    assert "lost its markers" in script("forest_page.py", folder=tools).stderr


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.name)
def test_example_schemas_can_be_read(path):
    """Every schema that is shipped as an example is a schema."""
    assert len(sp.Schema.from_file(path)) > 1
