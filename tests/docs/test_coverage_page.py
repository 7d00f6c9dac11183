"""The page of error bars shows what was measured: shares and widths by table and budget, and what is off in bold."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from benchmarks.coverage.tables import HELD_OUT

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


def a_cell(table: str, kind: str, statement: str, coverage: float | None, **changes: Any) -> dict[str, Any]:
    return {
        "table": table,
        "epsilon": "1",
        "kind": kind,
        "of": "table",
        "wanted": "auto",
        "statement": statement,
        "level": 0.95,
        "n_releases": 20,
        "n_answers": 200,
        "coverage": coverage,
        "coverage_error": 0.01,
        "narrow_coverage": coverage,
        "width": 1.5,
    } | changes


def a_record() -> dict[str, Any]:
    cells = [
        a_cell("adult", "one column", "certified", 0.96, n_answers=100),
        a_cell("adult", "one column", "calibrated", 0.94, n_answers=100),
        a_cell("adult", "one column", "certified", 0.97, wanted="certified", narrow_coverage=0.81),
        a_cell("adult", "one column", "naive", 0.84, wanted="naive"),
        a_cell("covtype", "one column", "calibrated", 0.80),
        a_cell("covtype", "pairs apart", "calibrated", 0.95, n_answers=150),
        a_cell("covtype", "pairs apart", "not supported", None, n_answers=50, width=None),
        a_cell("adult", "other regressions", "indicative", 0.5),
    ]
    seconds = {"fit": 1.0, "first_answer": 0.5, "answer": 0.012}
    return {"versions": ["1"], "held_out": ["covtype"], "releases": 40, "seconds": seconds, "cells": cells}


def test_shares_are_pooled_and_what_is_off_is_bold(page: ModuleType) -> None:
    """Certified and calibrated answers are one figure; a share far below its aim stands out."""
    text = page.results_part(a_record())
    assert "| adult | 0.84 | 0.95, 1.5 |" in text
    assert "| covtype (held out) | – | **0.80**, 1.5 |" in text


def test_answers_without_a_statement_are_told(page: ModuleType) -> None:
    """What is not supported is a share of its own; unnamed regressions are shown although they are indicative."""
    text = page.results_part(a_record())
    assert "| covtype (held out) | – | 0.95, 1.5 + 25% |" in text
    assert "| adult | – | 0.50, 1.5 |" in text


def test_certified_intervals_have_a_table_of_their_own(page: ModuleType) -> None:
    text = page.results_part(a_record())
    assert "| Forests: counts of one column | 200 | 0.970 | 0.810 | 0.970 (adult, ε = 1) |" in text


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
    assert "**0.80**, 1.5" in text.read_text()
    assert script("--check", folder=tools).returncode == 0
    text.write_text(text.read_text().replace("**0.80**", "0.93"))
    assert "make page" in script("--check", folder=tools).stderr
    text.write_text("no markers")
    assert "lost its markers" in script(folder=tools).stderr
    assert "--from FOLDER" in script("--what", folder=tools).stderr


def test_the_page_shows_the_results() -> None:
    assert script("--check").returncode == 0
    record = json.loads((ROOT / "docs/coverage/results.json").read_text())
    assert set(record["held_out"]) <= set(HELD_OUT)
