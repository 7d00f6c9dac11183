"""README and docs are executed: a snippet that does not run is a bug."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spinney.cli.town import make_town

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"(?:<!-- runs: (?P<runs>[^>]+?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)```", re.DOTALL)


def snippets(language: str) -> list:
    """All marked snippets of a language, as pytest parameters."""
    found = []
    for page in PAGES:
        for index, match in enumerate(FENCE.finditer(page.read_text())):
            if match["runs"] and match["language"] == language:
                name = f"{page.relative_to(ROOT)}#{index}"
                found.append(pytest.param(match["text"], id=name))
    return found


@pytest.mark.parametrize("text", snippets("python"))
def test_python_snippets_run(text, tmp_path):
    """Every Python snippet runs in an empty folder with warnings as errors."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("text", snippets("sh"))
def test_shell_snippets_run(text, tmp_path):
    """Every marked shell snippet runs in a folder that holds nothing but town.csv."""
    lines = ["x,y", *(f"{x},{y}" for x, y in make_town())]
    (tmp_path / "town.csv").write_text("\n".join(lines) + "\n")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["bash", "-eu", "-c", text],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "synthetic.parquet").stat().st_size > 0


def test_every_python_snippet_is_marked():
    """No Python snippet escapes execution."""
    for page in PAGES:
        for match in FENCE.finditer(page.read_text()):
            assert match["language"] != "python" or match["runs"], f"an unmarked snippet in {page.name}"


def test_the_readme_has_snippets():
    """The markers are found at all: a wrong pattern would make the tests above pass on nothing."""
    names = [parameter.id for language in ("python", "sh") for parameter in snippets(language)]
    assert sum(name.startswith("README.md") for name in names) == 2
