"""The page of evidence shows what was measured, missed sabotage included."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
GAME = {
    "family": "counts",
    "unit": "add-remove",
    "title": "a cell",
    "currency": "epsilon",
    "claim": 1.0,
    "bound": 0.98,
    "ratio": 0.98,
    "coins": 1000,
    "seconds": 3.0,
    "processor_seconds": 1.5,
}
CAUGHT = {
    "zoo": "trees",
    "sabotage": "half noise",
    "caught": True,
    "game": "counts: a cell",
    "bound": 1.9,
    "claim": 1.0,
    "seconds": 1.0,
    "sound_is_flagged": False,
}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool, with a page and results of its own."""
    spec = importlib.util.spec_from_file_location("audit_page", ROOT / "tools" / "audit_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PAGE", tmp_path / "evidence.md")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "audit" / "results.json")
    sections = [module.START.format(name=name) + "old\n" + module.END.format(name=name) for name in module.SECTIONS]
    (tmp_path / "evidence.md").write_text("before\n" + "\n".join(sections) + "\nafter\n")
    return module


def test_the_page_shows_the_results() -> None:
    """`make page` would change nothing."""
    command = [sys.executable, str(ROOT / "tools" / "audit_page.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_results_are_of_every_family_and_every_sabotage() -> None:
    """What is stored is a whole run of both: nothing of it was left out."""
    from spinney_audit.battery import FAMILIES
    from support.audit_zoo import ZOO

    stored = json.loads((ROOT / "docs" / "audit" / "results.json").read_text())
    assert {game["family"] for game in stored["audit"]["games"]} == set(FAMILIES)
    assert {(entry["zoo"], entry["sabotage"]) for entry in stored["zoo"]} == {
        (zoo, name) for zoo, cages in ZOO.items() for name in cages
    }


def test_the_page_says_what_games_could_have_missed(page: ModuleType) -> None:
    """Where the results have it: otherwise it says that they do not."""
    audit = {"passed": True, "seconds": 1.0, "processor_seconds": 1.0}
    telling, short = GAME | {"could_miss": 1.234, "tells": True}, GAME | {"could_miss": None, "tells": False}
    shown = "\n".join(page.games({"audit": audit | {"games": [telling, short | {"family": "tables"}]}}))
    assert "| could miss |" in shown
    assert "| 1.234 |" in shown
    assert "| any leak |" in shown
    assert "1 of the 2 games could have missed" in shown
    old = "\n".join(page.games({"audit": audit | {"games": [GAME, short]}}))
    assert "older than" in old
    assert "could miss |" not in old


def test_runs_are_taken_over_and_shown(page: ModuleType, tmp_path: Path) -> None:
    """The best game of a family, caught and missed sabotage, and what no game can see."""
    worse = GAME | {"title": "another cell", "bound": 0.5, "ratio": 0.5}
    audit = {"passed": True, "seconds": 120.4, "processor_seconds": 230.1, "games": [worse, GAME]}
    missed = CAUGHT | {"sabotage": "sly", "caught": False, "bound": 0.5}
    unseen = {"zoo": "trees", "sabotage": "late", "caught": None, "why": "only the order"}
    (tmp_path / "audit.json").write_text(json.dumps(audit))
    (tmp_path / "zoo.json").write_text(json.dumps([CAUGHT, missed, unseen]))
    page.main(["--from", str(tmp_path / "audit.json"), str(tmp_path / "zoo.json")])
    text = page.PAGE.read_text()
    assert "| counts | add-remove | a cell | epsilon | 1.000 | 0.980 | 0.98 | 1,000 | 1.5 |" in text
    assert "another cell" not in text
    assert "catch 1 of the 2 that leak" in text
    assert "| trees: sly | missed by counts: a cell | 0.50 | 1.00 | 1.0 |" in text
    assert "no game can see it: only the order" in text
    page.main(["--check"])
    page.PAGE.write_text(text.replace("0.980", "0.990"))
    with pytest.raises(SystemExit, match="make page"):
        page.main(["--check"])
    page.PAGE.write_text("no markers")
    with pytest.raises(SystemExit, match="lost its markers"):
        page.main([])
