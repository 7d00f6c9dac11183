"""Files that a pattern means, in the manner of Python's glob, with linked folders followed once at most.

`*`, `?` and `[...]` match within a name, `**` stands for any number of folders, and names that begin with a dot are
matched only by parts that do. A file comes once, however often the pattern fits it. The walk of `**` enters a folder
once, by whatever name it is found first: real folders before linked ones, and a link to a folder that contains the link
never. So it ends wherever links lead.
"""

from __future__ import annotations

import fnmatch
import glob
import os
from collections import deque
from collections.abc import Iterator, Sequence

from spinney.tables.paths.repeats import identity

_ANY_DEPTH = "**"


def expand(pattern: str) -> list[str]:
    """The files that match a pattern, in the order of their names."""
    drive, rest = os.path.splitdrive(pattern)
    if os.altsep is not None:
        rest = rest.replace(os.altsep, os.sep)
    inner = rest.lstrip(os.sep)
    root = drive + rest[: len(rest) - len(inner)]
    parts: list[str] = []
    for part in inner.split(os.sep):
        if part and not (part == _ANY_DEPTH and parts[-1:] == [_ANY_DEPTH]):
            parts.append(part)
    if not parts or inner.endswith(os.sep):  # which only folders match
        return []
    return sorted({name for name in _matches(root, parts) if os.path.isfile(name)})


def _matches(folder: str, parts: Sequence[str]) -> Iterator[str]:
    """Whatever in a folder matches all parts of a pattern, one after the other."""
    part, rest = parts[0], parts[1:]
    if part == _ANY_DEPTH:
        for place in _folders_within(folder):
            if rest:
                yield from _matches(place, rest)
            else:
                yield from (os.path.join(place, name) for name in _matching(place, "*"))
        return
    for name in _matching(folder, part) if glob.has_magic(part) else [part]:
        path = os.path.join(folder, name)
        if not rest:
            yield path
        elif os.path.isdir(path):
            yield from _matches(path, rest)


def _matching(folder: str, part: str) -> list[str]:
    names = fnmatch.filter((entry.name for entry in _entries(folder)), part)
    return names if part.startswith(".") else [name for name in names if not name.startswith(".")]


def _folders_within(start: str) -> Iterator[str]:
    """A folder and all folders in it, hidden ones aside, each once."""
    seen = set()
    real, linked = deque([start]), deque[str]()
    while real or linked:
        place = real.popleft() if real else linked.popleft()
        here = identity(place or os.curdir)
        if here in seen:
            continue
        seen.add(here)
        yield place
        for entry in _entries(place):
            if entry.name.startswith(".") or not _is_folder(entry):
                continue
            path = os.path.join(place, entry.name)
            if not entry.is_symlink():
                real.append(path)
            elif not _leads_up(path, place):
                linked.append(path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder or leads to one; a link that leads to itself does not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _leads_up(link: str, folder: str) -> bool:
    """Whether a link in a folder leads to that folder or to one around it."""
    target, inner = os.path.realpath(link), os.path.realpath(folder)
    return inner == target or inner.startswith(os.path.join(target, ""))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder, in the order of names; nothing where it may not be read, as glob has it."""
    try:
        with os.scandir(folder or os.curdir) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
