"""The page for users of R is executed by R, where R and reticulate are installed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/how-to/r.md"
SNIPPETS = re.findall(r"<!-- runs: R -->\n```r\n(.*?)```", PAGE.read_text(), re.DOTALL)


def has_reticulate() -> bool:
    """Whether R is on this machine, with the package that calls Python."""
    asked = ["Rscript", "-e", "if (!requireNamespace('reticulate', quietly = TRUE)) quit(status = 1)"]
    return shutil.which("Rscript") is not None and subprocess.run(asked, check=False, timeout=60).returncode == 0


@pytest.mark.long
def test_snippets_run_in_r(tmp_path):
    """Both ways end with a data frame of R, and a release that Python loads."""
    if not has_reticulate():
        pytest.skip("R with the package reticulate was not found")
    assert len(SNIPPETS) == 2, "the pattern finds both ways"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "RETICULATE_PYTHON": sys.executable}
    for number, text in enumerate(SNIPPETS):
        folder = tmp_path / str(number)
        folder.mkdir()
        command = ["Rscript", "--vanilla", "-e", text]
        run = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300)
        assert run.returncode == 0, run.stderr
        assert (folder / "people.spinney").is_file()
