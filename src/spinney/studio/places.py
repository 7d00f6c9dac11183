"""Paths inside the folder that the user has opened: nothing outside of it is listed, read or written.

A path comes out of a form as text, relative to the root. It is resolved, links included, and has to lie in the root
then; a link that leads out of it does not exist for the studio.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from spinney.studio.errors import MissingPageError, PageError

TABLE_ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq")
DUCKDB_ENDINGS = (".duckdb", ".ddb")
LEDGER_ENDING = ".ledger"
_PATTERN = "*?["
_MOST_LISTED = 2_000
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Listed:
    """An entry of a folder, as it is offered."""

    name: str
    path: str  # relative to the root
    is_folder: bool
    size: int  # bytes


class Root:
    """The folder that the user has opened."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).resolve()
        if not self.folder.is_dir():
            raise PageError(f"{str(folder)!r} is not a folder; name one with --root")

    @property
    def shown(self) -> str:
        """The folder as people name it."""
        home = Path.home()
        return f"~/{self.folder.relative_to(home).as_posix()}" if home in self.folder.parents else str(self.folder)

    def inside(self, path: str) -> Path:
        """What a path of a form means, if that lies in the root; else an error that says so."""
        if "\0" in path:
            raise PageError("A path cannot hold this character.")
        try:
            found = (self.folder / path).resolve()
        except (OSError, RuntimeError):
            raise MissingPageError(f"{path!r} cannot be looked at.") from None
        if found != self.folder and self.folder not in found.parents:
            raise PageError(
                f"{path!r} is outside of the folder that this studio was opened for, {self.shown}. "
                "Start it with --root to open another folder."
            )
        return found

    def relative(self, path: Path) -> str:
        """A path in the root as forms carry it."""
        return path.relative_to(self.folder).as_posix()

    def is_inside(self, path: Path) -> bool:
        """Whether a path, links resolved, lies in the root."""
        try:
            return self.folder in path.resolve().parents
        except (OSError, RuntimeError):
            return False

    def listing(self, path: str, endings: tuple[str, ...]) -> list[Listed]:
        """Folders, and files of these endings, in a folder of the root; hidden ones and links that lead out are not."""
        folder = self.inside(path)
        if not folder.is_dir():
            raise MissingPageError(f"There is no folder {path!r}.")
        found = []
        for entry in _entries(folder):
            place = Path(entry.path)
            is_folder = entry.is_dir()
            if entry.name.startswith(".") or not (is_folder or entry.name.lower().endswith(endings)):
                continue
            if not self.is_inside(place):
                continue
            size = 0 if is_folder else entry.stat().st_size
            found.append(Listed(entry.name, self.relative(folder) + "/" + entry.name, is_folder, size))
        found = [Listed(one.name, one.path.removeprefix("./"), one.is_folder, one.size) for one in found]
        return sorted(found, key=lambda one: (not one.is_folder, one.name.lower()))[:_MOST_LISTED]

    def find(self, ending: str) -> list[Path]:
        """Files of an ending in the root and the folders below it, as far down as people look."""
        return sorted(path for path in _walk(self.folder, _DEEPEST) if path.name.endswith(ending))[:_MOST_LISTED]

    def table(self, path: str) -> str:
        """A file, a folder or a pattern as the library takes it, of which all files lie in the root."""
        from spinney.tables.paths.expanding import list_files

        parts = Path(path).parts
        if ".." in parts:
            raise PageError(f"{path!r} goes up with '..'; name a file, a folder or a pattern below the opened folder.")
        n_fixed = len(parts) if (self.folder / path).exists() else _first_pattern(parts)
        full = str(Path(self.inside(os.path.join("", *parts[:n_fixed])), *parts[n_fixed:]))
        for file in list_files(full):
            self.inside(file)
        return full


def _first_pattern(parts: tuple[str, ...]) -> int:
    """Which part of a path is the first with a sign of a pattern; behind its end where there is none."""
    return next((n for n, part in enumerate(parts) if set(part) & set(_PATTERN)), len(parts))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as err:
        raise PageError(f"The folder cannot be listed: {err.strerror}.") from None


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = _entries(folder)
    except PageError:
        return
    for entry in entries:
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        if entry.is_file():
            yield Path(entry.path)
        elif depth and entry.is_dir():
            yield from _walk(Path(entry.path), depth - 1)
