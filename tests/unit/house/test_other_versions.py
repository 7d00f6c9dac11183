"""Other versions: Pythons are found if they run; the lowest dependencies are those that pyproject.toml states."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("other_versions", ROOT / "tools/other_versions.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def put(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_python_counts_only_if_it_runs_and_is_that_version(tool, tmp_path):
    """A shim that fails, a file that is no program and a Python of another version are passed over."""
    put(tmp_path / "shims", "python3.12", "echo 'command not found' >&2; exit 127")
    put(tmp_path / "text", "python3.12", "").chmod(0o644)
    put(tmp_path / "other", "python3.12", "echo 3.11")
    good = put(tmp_path / "good", "python3.12", "echo 3.12")
    folders = [tmp_path / name for name in ("absent", "shims", "text", "other", "good")]
    assert tool.find_python("3.12", folders) == good
    assert tool.find_python("3.12", folders[:-1]) is None
    assert tool.find_python("3.13", folders) is None


def test_pyenvs_versions_are_looked_at_after_path(tool, tmp_path, monkeypatch):
    """What PATH offers comes first, then all that pyenv installed."""
    inside = tmp_path / "versions" / "3.12.1" / "bin"
    inside.mkdir(parents=True)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", os.pathsep.join(["/a", "/b"]))
    assert tool.folders_with_pythons() == ["/a", "/b", inside]


@pytest.mark.parametrize(
    ("passes", "status", "last"), [({"3.12": True}, 0, "passed"), ({"3.12": False}, 1, "FAILED"), ({}, 1, "")]
)
def test_the_last_lines_say_what_was_run(tool, monkeypatch, capsys, passes, status, last):
    """Each version has a line; one that is not found is skipped, and a run of none is a failure."""
    monkeypatch.setattr(tool, "find_python", lambda version, folders: Path(version) if version in passes else None)
    monkeypatch.setattr(tool, "make_environment", lambda python, environment, lock: python)
    monkeypatch.setattr(tool, "run_tests", lambda python, tests: passes[str(python)])
    assert tool.run_all([]) == status
    lines = capsys.readouterr().out.splitlines()[-len(tool.VERSIONS) :]
    said = dict(line.removeprefix("Python ").split(": ") for line in lines)
    assert list(said) == list(tool.VERSIONS)
    assert said["3.12"] == (last or said["3.11"])
    assert said["3.11"] == "skipped, because it is not on this machine"


def test_the_versions_are_those_that_the_package_names(tool):
    """Every version of the classifiers is run, and this one is among them."""
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert set(named) <= set(tool.VERSIONS)
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in tool.VERSIONS


def test_the_lowest_lock_file_holds_the_lowest_versions():
    """Each bound of pyproject.toml is met by its first release that installs: `>=1.4` by some 1.4.x."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    stated = [
        *project["project"]["dependencies"],
        *(bound for extra in ("plot", "metrics", "baselines") for bound in extras[extra]),
        *project["dependency-groups"]["test"],
    ]
    locked: dict[str, str] = {}
    for line in (ROOT / "requirements.lowest.lock").read_text().splitlines():
        name, version = line.partition(";")[0].strip().split("==")
        locked.setdefault(name, version)
    assert len(stated) > 20
    for bound in stated:
        name, least = re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", bound).groups()
        assert f"{locked[name]}.".startswith(f"{least}."), f"{bound}: {locked[name]}; run `make lock`"
