"""Runs the tests under other versions: every Python from 3.11 up on this machine, or the lowest dependencies allowed.

python tools/other_versions.py [TESTS ...]             every Python, each in its own .venv-3.N from requirements.lock
python tools/other_versions.py --lowest [TESTS ...]    the oldest Python, in .venv-lowest from requirements.lowest.lock

Pythons are searched for on PATH and among those of pyenv. One that is not found is named and skipped. The last lines
say which were run, and the exit status is 1 if the tests failed under one of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
_PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
_PYTEST = ("-m", "pytest", "-n", "2", "--dist", "worksteal")
# Old versions of libraries warn of newer ones that they depend on; that is not what the lowest run is for.
_IGNORED = ("-W", "ignore::DeprecationWarning", "-W", "ignore::FutureWarning")
_UNIT_TESTS = ("tests/unit",)


def find_python(version: str, folders: Iterable[str | Path]) -> Path | None:
    """The first Python of a version in some folders that really runs; shims of pyenv may be there and not run."""
    for folder in folders:
        python = Path(folder) / f"python{version}"
        if not python.is_file():
            continue
        asked = [str(python), "-c", "import ensurepip, sys, venv; print('.'.join(map(str, sys.version_info[:2])))"]
        try:
            answer = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if answer.returncode == 0 and answer.stdout.strip() == version:
            return python
    return None


def folders_with_pythons() -> list[str | Path]:
    """The folders of PATH, and those of the versions that pyenv installed."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return [*os.environ.get("PATH", "").split(os.pathsep), *sorted(pyenv.glob("*/bin"), reverse=True)]


def make_environment(python: Path, environment: Path, lock: Path) -> Path:
    """The Python of a virtual environment with what a lock file lists, made anew if it is older than the lock file."""
    inside, ready = environment / "bin" / "python", environment / ".ready"
    sources = (lock, ROOT / "pyproject.toml")
    if not ready.exists() or any(source.stat().st_mtime > ready.stat().st_mtime for source in sources):
        _run(python, "-m", "venv", "--clear", environment)
        _run(inside, *_PIP, "--requirement", lock)
        _run(inside, *_PIP, "--no-deps", "--editable", ROOT)
        ready.touch()
    return inside


def run_tests(python: Path, arguments: Sequence[str]) -> bool:
    """Whether the tests pass under a Python."""
    return subprocess.run([str(python), *_PYTEST, *arguments], cwd=ROOT, check=False).returncode == 0


def run_lowest(tests: Sequence[str]) -> int:
    """Run the unit tests with the lowest versions that pyproject.toml allows."""
    found = ((version, find_python(version, folders_with_pythons())) for version in VERSIONS)
    version, python = next(((version, python) for version, python in found if python), ("", None))
    if python is None:
        return _say(f"no Python of {', '.join(VERSIONS)} was found", 1)
    inside = make_environment(python, ROOT / ".venv-lowest", ROOT / "requirements.lowest.lock")
    has_passed = run_tests(inside, [*_IGNORED, *(tests or _UNIT_TESTS)])
    return _say(f"lowest versions under Python {version}: {_verdict(has_passed)}", int(not has_passed))


def run_all(tests: Sequence[str]) -> int:
    """Run all tests under every Python that is on this machine."""
    verdicts: dict[str, str] = {}
    for version in VERSIONS:
        python = find_python(version, folders_with_pythons())
        if python is None:
            verdicts[version] = "skipped, because it is not on this machine"
            continue
        _say(f"Python {version}: {python}")
        inside = make_environment(python, ROOT / f".venv-{version}", ROOT / "requirements.lock")
        verdicts[version] = _verdict(run_tests(inside, tests))
    for version, verdict in verdicts.items():
        _say(f"Python {version}: {verdict}")
    has_run = {verdict for verdict in verdicts.values() if not verdict.startswith("skipped")}
    return int(has_run != {_verdict(True)})


def _verdict(has_passed: bool) -> str:
    return "passed" if has_passed else "FAILED"


def _run(*words: str | Path) -> None:
    subprocess.run([str(word) for word in words], check=True)


def _say(line: str, status: int = 0) -> int:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    return status


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(run_lowest(given[1:]) if given[:1] == ["--lowest"] else run_all(given))
