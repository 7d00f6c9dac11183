"""The page of error bars shows what was measured: shares by statement, kind and table, what is off, and rows."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from benchmarks.coverage.results import LAYOUT, to_json
from benchmarks.coverage.tables import HELD_OUT
from benchmarks.coverage.trials import Outcome, Rows, Tally, Trial

ROOT = Path(__file__).parents[2]


def script(*arguments: object, folder: Path = ROOT / "tools") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "coverage_page.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_page", ROOT / "tools" / "coverage_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def a_tally(kind: str, statement: str, n_held: int, n_flat: int = 0, asked: str = "auto") -> Tally:
    return Tally(kind, asked, "table", statement, 0.95, 20, 20, n_held, 1, n_held - 3, n_flat, 0, 1.5)


def a_record() -> dict[str, Any]:
    """What six releases each of two tables left: ranges hold on one of them and not on the other."""
    outcomes = []
    for table, n_held in (("adult", 19), ("kdd99_10pct", 12)):
        for repetition in range(6):
            tallies = (
                a_tally("ranges", "calibrated", n_held),
                a_tally("ranges", "naive", 10, asked="naive"),
                a_tally("values", "certified", 19),
                a_tally("quantiles", "indicative", 19, n_flat=2),
                Tally("means", "auto", "table", "not supported", 0.95, 5, *(0,) * 6, None),
            )
            asked = (("ranges", "auto", "calibrated", "count where age in 20..29", 1.5),)
            rows = (Rows("age", 10, 9, 8, 5, 4, 1.25, "count where age in 90..120: 0 rows", 2.0),)
            trial = Trial(table, "replace-one", "1", repetition)
            outcomes.append(Outcome(trial, tallies, rows, asked, 1.0, 2.0, "1"))
    record: dict[str, Any] = json.loads(to_json(outcomes))
    return record


def test_cells_that_do_not_hold_are_bold_counted_and_named(page: ModuleType) -> None:
    text = page.results_part(a_record())
    assert "| ranges | 0.95 | **0.60** |" in text
    assert "| calibrated | 0.93 to 0.97 | 2 | 0 | 1 | 0 | 0 |" in text
    named = (
        "| kdd99_10pct, replace-one, ε = 1 | ranges | fails | **0.600** | `count where age in 20..29` 6 of 6, at +1.5 |"
    )
    assert named in text
    assert "| adult | kdd99_10pct (held out) |" in text


def test_intervals_of_no_width_and_answers_without_one_are_shown(page: ModuleType) -> None:
    text = page.results_part(a_record())
    assert "| indicative | at least 0.85 | 2 | 0 | 2 | 0 | 24 |" in text
    assert "| quantiles | fails, 12 of no width |" in text
    assert "| means | 60 | 0% | 0% | 0% | 100% | 0% |" in text


def test_rows_are_shown_against_certified_ranges(page: ModuleType) -> None:
    text = page.results_part(a_record())
    rows = "| adult, replace-one, ε = 1 | 60 | 0.900 | 0.800 of 30 | 0.800 | age 0.90 | age 1.25 | age 1.25 |"
    assert f"{rows} `count where age in 90..120: 0 rows` |" in text


def test_results_are_taken_over_and_stale_pages_noticed(tmp_path: Path) -> None:
    """`--from` brings new results into the page; a page that shows others is not accepted, nor one without markers."""
    for folder in ("tools", "docs/explain", "docs/coverage", "new"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("tools/coverage_page.py", "docs/explain/error-bars.md"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "new/coverage.json").write_text(json.dumps(a_record()))
    tools = tmp_path / "tools"
    assert script("--from", tmp_path / "new", folder=tools).returncode == 0
    text = tmp_path / "docs/explain/error-bars.md"
    assert "**0.60**" in text.read_text()
    assert script("--check", folder=tools).returncode == 0
    text.write_text(text.read_text().replace("**0.60**", "0.93"))
    assert "make page" in script("--check", folder=tools).stderr
    text.write_text("no markers")
    assert "lost its markers" in script(folder=tools).stderr
    assert "--from FOLDER" in script("--what", folder=tools).stderr


def test_results_of_an_older_layout_are_refused(tmp_path: Path) -> None:
    """They are not taken over, and what was there stays."""
    for folder in ("tools", "docs/coverage", "old"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tools/coverage_page.py").write_text((ROOT / "tools/coverage_page.py").read_text())
    (tmp_path / "old/coverage.json").write_text(json.dumps({"versions": ["0.1.0"], "cells": []}))
    (tmp_path / "docs/coverage/results.json").write_text("as it was")
    found = script("--from", tmp_path / "old", folder=tmp_path / "tools")
    assert found.returncode == 1
    assert f"has layout 1, and this page shows layout {LAYOUT}" in found.stderr
    assert (tmp_path / "docs/coverage/results.json").read_text() == "as it was"


def test_the_page_shows_the_results() -> None:
    assert script("--check").returncode == 0
    record = json.loads((ROOT / "docs/coverage/results.json").read_text())
    assert record["layout"] == LAYOUT
    assert set(record["held_out"]) <= set(HELD_OUT)
