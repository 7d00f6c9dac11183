"""Which release files there are: those of the workspace, those in the opened folder, and those that were handed in.

A release is known by the digest of its file, which names its pages, its pictures and what was worked out of it; one in
the workspace also by its name. A file that somebody changes is another release.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from spinney.errors import FileError
from spinney.release.storage import file_digest
from spinney.studio.errors import MissingPageError, PageError
from spinney.studio.records import write_private
from spinney.studio.workspace import RELEASE_ENDING, Workspace

_DIGEST = re.compile(r"[0-9a-f]{64}")
LARGEST_RELEASE = 256 << 20  # bytes of a file that is handed in


@dataclass(frozen=True, slots=True)
class OpenedRelease:
    """A release file that can be read."""

    key: str  # how addresses name it: its name in the workspace, or its digest
    name: str
    path: str
    shown_path: str
    digest: str
    origin: dict[str, Any]

    @property
    def at(self) -> tuple[str, str]:
        """What functions beside the server take."""
        return self.path, self.digest


class Shelf:
    """The releases of one studio."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = Lock()
        self._digests: dict[tuple[str, int, int], str] = {}
        self._paths: dict[str, Path] = {}

    def by_key(self, key: str) -> OpenedRelease:
        """A release by its name in the workspace, or by the digest of its file, wherever in the folder that is."""
        if not _DIGEST.fullmatch(key):
            found = self._workspace.release(key)
            return self._opened(found.path, key, found.origin)
        path = self._paths.get(key)
        if path is None or not path.is_file() or self._digest(path) != key:
            path = next((place for place in self._every() if self._known_digest(place) == key), None)
        if path is None:
            raise MissingPageError(
                "No release in the opened folder has this digest any more. Open it again by its path."
            )
        return self._opened(path, key, {})

    def by_path(self, text: str) -> OpenedRelease:
        """A release by its path in the opened folder; an error says why it is none."""
        if not text.strip():
            raise PageError("Name a release file: a path that ends in .spinney, in the opened folder.")
        path = self._workspace.root.inside(text.strip())
        if path.is_dir() or not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise PageError(f"{text!r} {what}; name a release file, which spinney fit has written.")
        return self._opened(path, self._digest(path), {})

    def listed(self) -> list[dict[str, Any]]:
        """All releases that can be chosen: those of the workspace first, then those in the folder."""
        ours = self._workspace.releases()
        found = [
            {"name": one.name, "key": one.name, "path": None, "made": one.origin.get("made"), "origin": one.origin}
            for one in ours
        ]
        known = {one.path.resolve() for one in ours}
        for path in self._workspace.root.find(RELEASE_ENDING):
            if path.resolve() not in known:
                where = self._workspace.root.relative(path)
                found.append({"name": path.stem, "key": None, "path": where, "made": None, "origin": {}})
        return found

    def take_in(self, name: str, content: bytes, check: Callable[[str, str], Any]) -> OpenedRelease:
        """Put a release that was handed in into the workspace, unless it is there; a FileError where it is none.

        Args:
            name: what the file was called.
            content: what it holds.
            check: reads a file by its path and digest, and raises where it is no release.
        """
        held = self._workspace.releases_folder / f".{self._workspace.free_release_name(name)}.incoming"
        try:
            write_private(held, content)
            try:
                digest = self._digest(held)
                check(str(held), digest)
            except FileError as err:
                raise FileError(str(err).replace(repr(str(held)), repr(name))) from None
            for one in self._workspace.releases():
                if self._known_digest(one.path) == digest:
                    return self._opened(one.path, one.name, one.origin)
            free = self._workspace.free_release_name(name.removesuffix(RELEASE_ENDING))
            held.rename(self._workspace.releases_folder / f"{free}{RELEASE_ENDING}")
        finally:
            held.unlink(missing_ok=True)
        return self.by_key(free)

    def _opened(self, path: Path, key: str, origin: dict[str, Any]) -> OpenedRelease:
        digest = self._digest(path)
        with self._lock:
            self._paths[digest] = path
        root = self._workspace.root
        shown = root.relative(path) if root.is_inside(path) else str(path)
        return OpenedRelease(key, path.stem, str(path), shown, digest, origin)

    def _digest(self, path: Path) -> str:
        stat = path.stat()
        mark = str(path), stat.st_mtime_ns, stat.st_size
        with self._lock:
            known = self._digests.get(mark)
        if known is None:
            known = file_digest(path)
            with self._lock:
                self._digests[mark] = known
        return known

    def _known_digest(self, path: Path) -> str | None:
        try:
            return self._digest(path)
        except (FileError, OSError):
            return None

    def _every(self) -> list[Path]:
        return [one.path for one in self._workspace.releases()] + self._workspace.root.find(RELEASE_ENDING)
