"""The environment in which `sdnist` runs, made on first use, and the call of it.

`sdnist` 2.4 asks for exact, old versions of numpy and pandas, for which there are no builds beyond Python 3.11. Spinney
and the scorer share files of rows only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from spinney.errors import FileError

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parents[1] / ".venv-nist"
VERSIONS = ("3.11", "3.10", "3.9")
_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")


def scoring_python() -> Path:
    """The Python that has `sdnist`; its environment is made anew if it is older than its list of versions."""
    lock, ready = HERE / "requirements.lock", ENVIRONMENT / ".ready"
    inside = ENVIRONMENT / "bin" / "python"
    if ready.is_file() and ready.stat().st_mtime >= lock.stat().st_mtime:
        return inside
    python = _found(_folders())
    if python is None:
        raise FileError(
            f"sdnist 2.4 needs one of Python {', '.join(VERSIONS)}, and none is on PATH or among those of pyenv; "
            "install one, or name one of your own that has sdnist with --scorer"
        )
    print(f"making {ENVIRONMENT.name} with {python.name}, about 600 MB, once ...", flush=True)
    for command in ([python, "-m", "venv", "--clear", ENVIRONMENT], [inside, *_PIP, "--requirement", lock]):
        done = subprocess.run([*map(str, command)], check=False)
        if done.returncode:
            raise FileError(f"{ENVIRONMENT.name} could not be made; the lines above say why")
    ready.touch()
    return inside


def scores(python: Path, rows: Sequence[Path], data: Path, out: Path) -> list[dict[str, Any]]:
    """What the scorer says of files of rows."""
    command = [python, HERE / "score.py", "--data", data.resolve(), "--out", out, *rows]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*map(str, command)], env=environment, stdout=sys.stderr, check=False)
    if done.returncode:
        raise FileError(f"the scorer failed; the lines above say why. It was called as: {' '.join(map(str, command))}")
    found: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))
    return found


def _found(folders: Iterable[str | Path]) -> Path | None:
    """The first Python of a fitting version that really runs; shims of pyenv may be there and not run."""
    places = list(folders)
    for version in VERSIONS:
        for python in (Path(folder) / f"python{version}" for folder in places):
            asked = [str(python), "-c", "import ensurepip, venv"]
            if python.is_file() and subprocess.run(asked, capture_output=True, check=False).returncode == 0:
                return python
    return None


def _folders() -> list[str | Path]:
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return [*os.environ.get("PATH", "").split(os.pathsep), *sorted(pyenv.glob("*/bin"), reverse=True)]
