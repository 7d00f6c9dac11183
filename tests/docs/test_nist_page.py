"""The page of NIST's scores shows what was measured, beside what NIST publishes; nothing here needs the scorer."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def script(*arguments: object, folder: Path = ROOT / "tools") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "nist_page.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("nist_page", ROOT / "tools" / "nist_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def a_release(k_marginal: float, *, rules: dict[str, int] | None = None) -> dict:
    return {
        "k_marginal": k_marginal,
        "inconsistent": {"all": 30, "age": 10, "work": 0, "housing": 20},
        "rules": rules or {},
        "propensity": 0.002,
        "matched": 14.5,
        "columns": {"AGEP": {"together": 0.05, "alone": 0.015}, "SEX": {"together": 0.01, "alone": 0.001}},
    }


def a_record(*values: float, wanted: float | None = 982, rules: dict[str, int] | None = None) -> dict:
    setting = {
        "name": "10 columns, epsilon 1, high",
        "columns": 10,
        "epsilon": "1",
        "wanted": wanted,
        "releases": [a_release(value, rules=rules) for value in values],
    }
    return {"delta": "1e-6", "has_rules": False, "settings": [setting]}


PUBLISHED = json.loads((ROOT / "benchmarks/nist/published.json").read_text())


def test_the_page_shows_what_the_results_say() -> None:
    """docs/explain/nist.md follows from docs/nist/results.json, of at least five releases a setting."""
    done = script("--check")
    assert done.returncode == 0, done.stderr
    stored = json.loads((ROOT / "docs/nist/results.json").read_text())
    assert min(len(one["releases"]) for one in stored["settings"]) >= 5


def test_means_targets_and_published_figures() -> None:
    """Releases are averaged with their spread, targets judged, and NIST's figures stand in the same columns."""
    text = page().results_part(a_record(978.0, 980.0), PUBLISHED)
    assert "| Spinney: 10 columns, high | 10 | 1 | 2 | 979.0 ± 1.4 | 10 | 0 | 20 | 0.0020 | 14.50 |" in text
    assert "| AIM (smartnoise-synth) | 10 | 1 | 1 | 976 | 1,201 | 0 | 144 | 0.002 | 14.11 |" in text
    assert "- 10 columns, epsilon 1, high: 979.0, and 982 is wanted: missed." in text
    assert "| AGEP | 0.050 | 0.0150 |" in text
    assert "No row breaks one." in text
    assert "without stating NIST's rules" in text
    assert ": met." in page().results_part(a_record(983.0), PUBLISHED)
    broken = page().results_part(a_record(978.0, 980.0, rules={"child_MSP": 3}), PUBLISHED)
    assert "| child_MSP | 3 |" in broken


def test_results_are_taken_over_and_stale_pages_noticed(tmp_path: Path) -> None:
    """`--from` brings new results into the page; a page that shows others is not accepted, nor one without markers."""
    for folder in ("tools", "docs/explain", "docs/nist", "benchmarks/nist", "new"):
        (tmp_path / folder).mkdir(parents=True)
    for name in (
        "tools/nist_page.py",
        "tools/results_page.py",
        "docs/explain/nist.md",
        "benchmarks/nist/published.json",
    ):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "new/nist.json").write_text(json.dumps(a_record(978.0)))
    tools = tmp_path / "tools"
    assert script("--from", tmp_path / "new", folder=tools).returncode == 0
    text = tmp_path / "docs/explain/nist.md"
    assert "978.0" in text.read_text()
    assert script("--check", folder=tools).returncode == 0
    text.write_text(text.read_text().replace("978.0", "988.0"))
    assert "make page" in script("--check", folder=tools).stderr
    text.write_text("no markers")
    assert "lost its markers" in script(folder=tools).stderr
    assert "--from FOLDER" in script("--what", folder=tools).stderr
