"""Which code this is: the version, and the commit that it was built from, where that is known.

A wheel carries the commit in a file that its build wrote (`tools/commit_hook.py`). A checkout has it in its `.git`
folder, which is read without running git. Whether files were changed since that commit is not looked at. Nothing is
read when Spinney is imported: only cards and `spinney --version` ask.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path

COMMIT_FILE = "_commit.txt"
_DIGITS = 12
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
# Beside the sources of a checkout.
_PROJECT = "pyproject.toml"
_LARGEST = 1 << 24
_MOST_REFS = 10


@cache
def full_version() -> str:
    """The version with the commit, such as 0.1.0+g3f2a9c1d04be; without one where no commit is known."""
    version: str = import_module("spinney").__version__  # the door, which stands above all rooms
    found = commit()
    return version if found is None else f"{version}+g{found[:_DIGITS]}"


def commit(package: Path | None = None) -> str | None:
    """The commit of the code in a folder, by default of this one; None where nothing tells it.

    Args:
        package: the folder of the package.
    """
    package = Path(__file__).resolve().parent if package is None else package
    try:
        if (package / COMMIT_FILE).is_file():
            return _checked((package / COMMIT_FILE).read_text(encoding="ascii"))
        checkout = package.parent.parent
        is_checkout = package.parent.name == "src" and (checkout / _PROJECT).is_file()
        return _head(checkout / ".git") if is_checkout else None
    except (OSError, ValueError):  # of a folder that is half there, or not ours to read
        return None


def commit_of(version: str) -> str | None:
    """The commit that a version names, such as that of a card; None where it names none."""
    found = re.search(r"\+g([0-9a-f]{7,64})$", version)
    return None if found is None else found.group(1)


def _head(git: Path) -> str | None:
    """What is checked out in a git folder, or in the one that a file of a further work tree points to."""
    if git.is_file():
        git = (git.parent / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()).resolve()
    shared = git
    if (git / "commondir").is_file():
        shared = (git / (git / "commondir").read_text(encoding="utf-8").strip()).resolve()
    reference = (git / "HEAD").read_text(encoding="utf-8").strip()
    for _ in range(_MOST_REFS):
        if not reference.startswith("ref:"):
            return _checked(reference)
        name = reference.removeprefix("ref:").strip()
        if ".." in Path(name).parts or Path(name).is_absolute():
            return None
        loose = [folder / name for folder in (git, shared) if (folder / name).is_file()]
        if not loose:
            return _packed(shared, name)
        reference = loose[0].read_text(encoding="utf-8").strip()
    return None


def _packed(git: Path, name: str) -> str | None:
    """A reference that git has put into its one file of many."""
    packed = git / "packed-refs"
    if not packed.is_file() or packed.stat().st_size > _LARGEST:
        return None
    for line in packed.read_text(encoding="utf-8").splitlines():
        found, _, known = line.partition(" ")
        if known == name:
            return _checked(found)
    return None


def _checked(text: str) -> str | None:
    return text.strip() if _COMMIT.fullmatch(text.strip()) else None
