"""Records of the studio: small JSON files that only their owner may read, each written whole or not at all."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from spinney.errors import FileError
from spinney.files import read_json, write_json, write_whole
from spinney.studio.errors import MissingPageError

_KEY = re.compile(r"[0-9a-f]{32}")
_OWNER_ONLY, _OWNER_FOLDER, _OTHERS = 0o600, 0o700, 0o077


def new_key() -> str:
    """A name for a record that nobody has used."""
    return token_hex(16)


def now() -> str:
    """The time, as records hold it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def private_folder(path: Path) -> Path:
    """A folder that only its owner may look into; made if it is not there, and refused if others may."""
    path.mkdir(mode=_OWNER_FOLDER, parents=True, exist_ok=True)
    if os.name == "posix":
        found = path.stat()
        if found.st_uid != os.getuid() or found.st_mode & _OTHERS:
            raise FileError(
                f"the folder {str(path)!r} is there, and is another's or open to others; the studio keeps tables and "
                "links in it: make it yours alone (chmod 700), or name another --workspace"
            )
    return path


def write_private(path: Path, content: bytes) -> None:
    """A file that only its owner may read, whole or not at all, in place of one that was there."""
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, _OWNER_ONLY))  # what replaces a file keeps its permissions
    write_whole(path, lambda file: file.write(content), overwrite=True)


class Records:
    """The records of one kind, each a file in a folder, by key."""

    def __init__(self, folder: Path, what: str) -> None:
        self._folder = private_folder(folder)
        self._what = what

    def all(self) -> list[dict[str, Any]]:
        """All records that can be read, the last changed first."""
        keys = [path.stem for path in self._folder.glob("*.json") if _KEY.fullmatch(path.stem)]
        found = []
        for key in keys:
            try:
                found.append(self.get(key))
            except (MissingPageError, FileError):
                continue
        return sorted(found, key=lambda one: str(one.get("changed", "")), reverse=True)

    def get(self, key: str) -> dict[str, Any]:
        """One record."""
        if not _KEY.fullmatch(key):
            raise MissingPageError(f"There is no such {self._what}.")
        try:
            content = (self._folder / f"{key}.json").read_bytes()
        except OSError:
            raise MissingPageError(f"There is no such {self._what}, or it was removed.") from None
        try:
            found = read_json(content) if content else None
        except ValueError as err:
            raise FileError(f"the record of a {self._what} is damaged: {err}") from None
        if not isinstance(found, dict):
            raise MissingPageError(f"There is no such {self._what}.")
        return found

    def put(self, key: str, record: dict[str, Any]) -> dict[str, Any]:
        """Keep a record, with the time of the change."""
        kept = {**record, "key": key, "changed": now()}
        write_private(self._folder / f"{key}.json", write_json(kept))
        return kept

    def remove(self, key: str) -> None:
        """Forget a record."""
        self.get(key)
        (self._folder / f"{key}.json").unlink(missing_ok=True)
