"""The page of fidelity shows what was measured, tables held out apart, and says what is lost and missed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from benchmarks.forest.tables import DESCRIPTIONS
from benchmarks.tables.releases import REAL
from benchmarks.tables.rivals import RIVALS

from spinney.synthesizers.forest import QUALITIES

ROOT = Path(__file__).parents[2]
AIM = json.loads((ROOT / "benchmarks/tables/aim.json").read_text())


def script(*arguments: object, folder: Path = ROOT / "tools") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "tables_page.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tables_page", ROOT / "tools" / "tables_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def a_cell(table: str, system: str, epsilon: str, *, has_target: bool = False, is_told: bool = False, **figures: float):
    held = {
        "tv1": 0.01,
        "tv2": 0.04,
        "tv3": 0.1,
        "query": 0.003,
        "correlation": 0.04,
        "auc_lr": 0.9,
        "auc_xgb": 0.91,
        "worst_ks": 0.02,
        "tv2_quantiles": 0.05,
        "fit_seconds": 1.0,
        "draw_seconds": 0.5,
    } | figures
    return {
        "table": table,
        "system": system,
        "epsilon": epsilon,
        "has_target": has_target,
        "unit": "add-remove",
        "is_told_rows": is_told,
        "n_runs": 1 if system in RIVALS else 3,
        "figures": {name: [value, None] for name, value in held.items()},
        "note": "",
    }


def a_record() -> dict:
    cells = []
    for table in ("adult", "skin"):
        cells.append(a_cell(table, REAL, "", tv2=0.015))
        for epsilon, tv2 in (("0.1", 0.08), ("1", 0.04), ("10", 0.02)):
            cells.append(a_cell(table, "high", epsilon, tv2=tv2))
            cells.append(a_cell(table, "high", epsilon, has_target=True, auc_xgb=0.93))
            cells.append(a_cell(table, "MST, private quantiles", epsilon, tv2=0.035, fit_seconds=99.5))
    return {
        "versions": ["0.1.0"],
        "tables": {"adult": {"is_held_out": False, "rows": 48842, "columns": 15}, "skin": {"is_held_out": True}},
        "targets": [
            {"what": "adult: TV2", "measured": 0.04, "wanted": 0.028, "is_floor": False, "unit": "", "is_met": False},
            {"what": "adult: AUC", "measured": 0.91, "wanted": 0.9, "is_floor": True, "unit": "", "is_met": True},
        ],
        "cells": cells,
    }


def test_the_page_shows_what_the_results_say() -> None:
    """docs/explain/fidelity.md follows from docs/tables/results.json, and its picture is there."""
    done = script("--check")
    assert done.returncode == 0, done.stderr
    assert (ROOT / "docs/images/fidelity.svg").is_file()


def test_committed_results_know_which_tables_are_held_out(page: ModuleType) -> None:
    stored = json.loads((ROOT / "docs/tables/results.json").read_text())
    assert stored["tables"]
    for name, about in stored["tables"].items():
        assert about["is_held_out"] == DESCRIPTIONS[name].is_held_out
    assert set(QUALITIES) <= set(page.QUALITIES)
    assert set(page.RIVALS) == set(RIVALS)
    assert page.REAL == REAL


def test_every_system_has_one_line_a_table_and_held_out_tables_stand_apart(page: ModuleType) -> None:
    text = page.results_part(a_record(), AIM)
    tuned, held_out = text.split("### Tables held out")
    assert "**adult** (48,842 rows, 15 columns), ε = 0.1 / 1 / 10" in tuned
    line = "| high | 0.0100 / 0.0100 / 0.0100 | 0.0800 / 0.0400 / 0.0200 |"
    assert line in tuned.split("**adult**")[1]
    assert line in held_out
    assert "| real rows | 0.0100 | 0.0150 |" in held_out
    assert "**skin**" not in tuned
    assert "AIM, run to completion elsewhere | 0.0299 / 0.0112 / 0.0091 | 0.0812 / 0.0379 / 0.0264 |" in tuned
    assert "releases a figure: 3 of ours, 1 of rivals" in text
    mst = next(line for line in held_out.splitlines() if line.startswith("| MST"))
    assert mst.endswith("| 100 |")


def test_all_tables_together_are_those_on_which_every_system_ran(page: ModuleType) -> None:
    """Geometric means: of 0.04 and 0.01 it is 0.02."""
    record = a_record()
    record["cells"] += [a_cell("skin", "fast", epsilon, tv2=0.01) for epsilon in ("0.1", "1", "10")]
    text = page.results_part(record, AIM)
    assert "**skin alone**" in text
    record["cells"] += [a_cell("adult", "fast", epsilon, tv2=0.04) for epsilon in ("0.1", "1", "10")]
    text = page.results_part(record, AIM)
    together = text.split("### Tables tuned on")[0]
    assert "**All 2 tables together**" in together
    assert "| fast | 0.0100 / 0.0100 / 0.0100 | 0.0200 / 0.0200 / 0.0200 |" in together


def test_naming_the_target_is_shown_beside_not_naming_it(page: ModuleType) -> None:
    assert "| adult | 0.900 / 0.910 → 0.900 / 0.930 |" in page.results_part(a_record(), AIM)


def test_what_is_lost_to_a_rival_is_counted_and_named(page: ModuleType) -> None:
    """High has 0.08 and 0.04 where MST has 0.035; 0.02 is better, and equal figures are not lost."""
    text = page.results_part(a_record(), AIM)
    line = next(line for line in text.splitlines() if line.startswith("- MST, private quantiles"))
    assert "worse in 4 of 42 figures" in line
    assert "adult at 0.1: TV2; adult at 1: TV2; skin at 0.1: TV2; skin at 1: TV2" in line


def test_releases_that_were_told_their_rows_give_way(page: ModuleType) -> None:
    record = a_record()
    record["cells"].append(a_cell("adult", "high", "1", is_told=True, tv2=0.001))
    assert page.results_part(record, AIM) == page.results_part(a_record(), AIM)


def test_a_rival_that_was_stopped_is_said(page: ModuleType) -> None:
    record = a_record()
    stopped = a_cell("skin", "AIM, public bins", "1") | {"figures": {"fit_seconds": [9.0, None]}, "note": "stopped"}
    stopped["figures"]["draw_seconds"] = [0.0, None]
    record["cells"].append(stopped)
    assert "| AIM, public bins (stopped) | – / – / – |" in page.results_part(record, AIM)


def test_targets_are_listed_with_their_verdicts(page: ModuleType) -> None:
    text = page.results_part(a_record(), AIM)
    assert "1 of the 2 targets" in text
    assert "| adult: TV2 | 0.04  | at most 0.028 | **missed** |" in text
    assert "| adult: AUC | 0.91  | at least 0.9 | met |" in text


def test_results_are_taken_over_and_stale_pages_noticed(tmp_path: Path) -> None:
    """`--from` brings new results into the page; a page that shows others is not accepted, nor one without markers."""
    for folder in ("tools", "docs/explain", "docs/tables", "docs/images", "benchmarks/tables", "new"):
        (tmp_path / folder).mkdir(parents=True)
    own = ("tools/tables_page.py", "docs/explain/fidelity.md", "benchmarks/tables/aim.json")
    for name in (*own, "tools/results_page.py"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "new/tables.json").write_text(json.dumps(a_record()))
    tools = tmp_path / "tools"
    assert script("--from", tmp_path / "new", folder=tools).returncode == 0
    assert (tmp_path / "docs/images/fidelity.svg").read_text().startswith("<?xml")
    text = tmp_path / "docs/explain/fidelity.md"
    assert "0.0800 / 0.0400 / 0.0200" in text.read_text()
    assert script("--check", folder=tools).returncode == 0
    text.write_text(text.read_text().replace("0.0800", "0.0700"))
    assert "make page" in script("--check", folder=tools).stderr
    text.write_text("no markers")
    assert "lost its markers" in script(folder=tools).stderr
    assert "--from FOLDER" in script("--what", folder=tools).stderr
