"""Versions name the commit they were built from, where it is known, without running git."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spinney.files import commit, commit_of, full_version

COMMIT = "3f2a9c1d04be5a6b7c8d9e0f1a2b3c4d5e6f7a8b"


def checkout(folder: Path) -> Path:
    """The package of a made-up checkout, without a git folder yet."""
    (folder / "src" / "spinney").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("", encoding="ascii")
    return folder / "src" / "spinney"


def test_a_wheel_carries_its_commit(tmp_path):
    (tmp_path / "_commit.txt").write_text(f"{COMMIT}\n", encoding="ascii")
    assert commit(tmp_path) == COMMIT
    (tmp_path / "_commit.txt").write_text("not a commit", encoding="ascii")
    assert commit(tmp_path) is None


def test_a_checkout_is_read_as_git_lays_it_out(tmp_path):
    """A branch in a file of its own, packed with others, a commit by itself, and a further work tree."""
    package, git = checkout(tmp_path), tmp_path / ".git"
    assert commit(package) is None
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
    assert commit(package) is None
    (git / "packed-refs").write_text(f"# pack-refs\n{COMMIT} refs/heads/main\n", encoding="ascii")
    assert commit(package) == COMMIT
    (git / "refs" / "heads" / "main").write_text(f"{'a' * 40}\n", encoding="ascii")
    assert commit(package) == "a" * 40
    (git / "HEAD").write_text(f"{'b' * 40}\n", encoding="ascii")
    assert commit(package) == "b" * 40
    other = checkout(tmp_path / "other")
    (git / "worktrees" / "other").mkdir(parents=True)
    (git / "worktrees" / "other" / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
    (git / "worktrees" / "other" / "commondir").write_text("../..\n", encoding="ascii")
    (tmp_path / "other" / ".git").write_text(f"gitdir: {git / 'worktrees' / 'other'}\n", encoding="ascii")
    assert commit(other) == "a" * 40


@pytest.mark.parametrize("head", ["", "ref: ../../secret", "ref: /etc/passwd", "\x00", "ref: refs/heads/none"])
def test_git_folders_that_are_none(tmp_path, head):
    package = checkout(tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head, encoding="utf-8")
    assert commit(package) is None


def test_packages_elsewhere_have_none(tmp_path):
    """A git folder around site-packages says nothing of what is installed there."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(COMMIT, encoding="ascii")
    (tmp_path / "lib" / "spinney").mkdir(parents=True)
    assert commit(tmp_path / "lib" / "spinney") is None


def test_versions_and_their_commits():
    assert commit_of(f"0.1.0+g{COMMIT[:12]}") == COMMIT[:12]
    assert commit_of("0.1.0") is None
    assert full_version().startswith("0.1.0")


def test_importing_asks_for_none():
    """Nothing is read until a card or `--version` asks."""
    code = "import sys, spinney; sys.exit('spinney.files' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
