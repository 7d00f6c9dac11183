"""The gallery and the page on peers show what was measured, and what they state is what was fitted."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import spinney as sp

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "docs" / "gallery"
SCHEMAS = {"london": "city", "credit": "loans", "players": "players", "seasons": "players"}


def script(*arguments: object, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_pages_show_what_the_results_say() -> None:
    """No figure and no transcript of the gallery is typed by hand."""
    done = script("-m", "tools.gallery", "--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("schema", "page"), SCHEMAS.items())
def test_every_bound_has_its_reason(schema: str, page: str) -> None:
    """Each column of the schemas that were fitted stands in the table of the page that says why."""
    stated = sp.Schema.from_file(ROOT / "examples" / "gallery" / f"{schema}.toml")
    _, _, reasons = (GALLERY / f"{page}.md").read_text().partition("## What is public")
    reasons = reasons.partition("\n## ")[0]
    assert stated
    assert not [name for name in stated if f"`{name}`" not in reasons]


def test_linked_tables_are_read() -> None:
    """The file that links players and seasons describes both."""
    assert list(sp.Tables.from_file(ROOT / "examples/gallery/baseball.toml")) == ["players", "seasons"]


@pytest.mark.parametrize("schema", ["london.toml", "credit.toml", "baseball.toml"])
def test_what_was_fitted_can_be_planned(schema: str) -> None:
    """The schemas of the gallery have plans, those of linked tables with hidden levels too."""
    path = ROOT / "examples" / "gallery" / schema
    stated = sp.Tables.from_file(path) if schema == "baseball.toml" else sp.Schema.from_file(path)
    assert sp.plan(stated, 20_000).epsilon == 1


def test_pictures_are_shown_and_small() -> None:
    """Each picture is on a page, and none is larger than a page should load."""
    text = "".join(page.read_text() for page in GALLERY.glob("*.md"))
    shown = set(re.findall(r"\]\(pictures/([\w.-]+)\)", text))
    assert shown == {path.name for path in (GALLERY / "pictures").iterdir()}
    assert max((GALLERY / "pictures" / name).stat().st_size for name in shown) <= 150_000


def test_figures_of_peers_follow_from_the_results(tmp_path: Path) -> None:
    """`--check` passes, a changed result is noticed, and so is a page without its markers."""
    assert script("tools/peers_page.py", "--check").returncode == 0
    needed = [
        *("tools/peers_page.py", "docs/explain/peers.md", "docs/tables/results.json", "docs/nist/results.json"),
        *("docs/scale/results.json", "benchmarks/tables/aim.json", "benchmarks/nist/published.json"),
        *(f"docs/paper/results/{name}.json" for name in ("tab-fraud-tree", "tab-fraud-dpmerf")),
        *(f"docs/paper/results/{name}.json" for name in ("fig-grid-vs-balog", "fig-tree-vs-balog")),
    ]
    for name in needed:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    assert script("tools/peers_page.py", "--check", folder=tmp_path).returncode == 0
    results = tmp_path / "docs/scale/results.json"
    held = json.loads(results.read_text())
    held["figures"]["peers"]["seconds"] += 100
    results.write_text(json.dumps(held))
    assert "make page" in script("tools/peers_page.py", "--check", folder=tmp_path).stderr
    assert script("tools/peers_page.py", folder=tmp_path).returncode == 0
    assert script("tools/peers_page.py", "--check", folder=tmp_path).returncode == 0
    (tmp_path / "docs/explain/peers.md").write_text("nothing")
    assert "lost a marker" in script("tools/peers_page.py", folder=tmp_path).stderr
