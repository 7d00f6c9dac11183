"""The page about persons shows what was measured, missed targets included; without results, how they are made."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from benchmarks.people.dependence import Breaches
from benchmarks.people.figures import Figures
from benchmarks.people.households import Households
from benchmarks.people.releases import Measured, Release
from benchmarks.people.results import SHOWN, Results

ROOT = Path(__file__).parents[2]


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool, with a page and results of its own."""
    spec = importlib.util.spec_from_file_location("people_page", ROOT / "tools" / "people_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PAGE", tmp_path / "people.md")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "people" / "results.json")
    (tmp_path / "people.md").write_text(f"before\n{module.START}old\n<!-- end of results -->\nafter\n")
    return module


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run: two seeds of a table, a rival, households, and times."""
    folder = tmp_path / "run"
    results = Results(folder)
    for seed, tv2 in ((0, 0.05), (1, 0.07)):
        figures = Figures(child_tv1=0.02, child_tv2=tv2, count=0.006, icc=0.05, transition=0.06, broken=Breaches())
        results.add(Measured(Release("cdnow", "linked", "5", seed), figures, 3.0, 1.0, "0.1.0"))
    results.add(Measured(Release("cdnow", "10-rows", "5", 0), Figures(0.03, 0.08), 2.0, 0.0, "0.1.0"))
    members = Households(0.999, 0.96, 0.97, 0.55, 0.01, 30.0)
    homes = Figures(0.01, 0.03, broken=Breaches(after_end=2), members=members)
    results.add(Measured(Release("homes", "linked", "5", 0), homes, 4.0, 1.0, "0.1.0"))
    (folder / "scale.json").write_text('{"fit": 41.25, "draw": 2.5, "peak": 1.5, "rows": 1003000}')
    return folder


def test_the_page_shows_the_results() -> None:
    """`make page` would change nothing."""
    command = [sys.executable, str(ROOT / "tools" / "people_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_without_results_the_page_says_how_to_make_them(page: ModuleType) -> None:
    """The section is there from the start, with the command."""
    page.main([])
    assert "python -m benchmarks.people" in page.PAGE.read_text()
    assert "old" not in page.PAGE.read_text()
    page.main(["--check"])


def test_a_run_is_taken_over_and_shown(page: ModuleType, run: Path) -> None:
    """Means over seeds, rivals beside them, households, breaches and times; figures that no method has are left out."""
    page.main(["--from", str(run)])
    text = page.PAGE.read_text()
    assert "| **linked** | 5 | 2 | 0.0200 | 0.0600 | 0.0060 | 0.050 | 0.0600 | 3.0 |" in text
    assert "| 10 rows | 5 | 1 | 0.0300 | 0.0800 |  |  |  | 2.0 |" in text
    assert "| **linked** | 5 | 0.999 | 0.960 | 0.970 | 0.550 | 0.010 |" in text
    assert "in 3 releases: orphans 0, bad counts 0, out of order 0, after end 2" in text
    assert "| 100,000 persons, a frame in memory | 1,003,000 | 41.2 | 2.5 | 1.50 |" in text
    assert "AUC" not in text.partition("**Targets.**")[0]
    assert json.loads(page.RESULTS.read_text())["versions"] == ["0.1.0"]


def test_missed_targets_are_named(page: ModuleType, run: Path) -> None:
    """Every target that was not reached stands there with what was wanted; those that were are only counted."""
    page.main(["--from", str(run)])
    text = page.PAGE.read_text()
    assert "- Missed: cdnow, epsilon 5: child_tv2 is 0.06, and was to be at most 0.046." in text
    assert "- Missed: homes, epsilon 5: broken is 2, and was to be at most 0." in text
    assert "Missed: homes, epsilon 5: other_sex" not in text


def test_a_stale_page_and_a_lost_marker_are_noticed(page: ModuleType, run: Path, tmp_path: Path) -> None:
    """A page that shows other figures is not accepted, nor one without markers, nor a folder without a run."""
    page.main(["--from", str(run)])
    page.PAGE.write_text(page.PAGE.read_text().replace("0.0600", "0.0500"))
    with pytest.raises(SystemExit, match="make page"):
        page.main(["--check"])
    page.PAGE.write_text("no markers")
    with pytest.raises(SystemExit, match="lost its markers"):
        page.main([])
    with pytest.raises(SystemExit, match=r"no results\.jsonl"):
        page.main(["--from", str(tmp_path / "nothing")])
    with pytest.raises(SystemExit, match="--from FOLDER"):
        page.main(["--what"])


def test_the_figures_are_those_of_the_benchmark(page: ModuleType) -> None:
    """No figure or fact about households is misspelt: it would stay empty for ever."""
    assert set(page._FIGURES) <= set(SHOWN)
    assert set(page._MEMBERS) <= set(Households.__dataclass_fields__)
