"""Files that appear whole or not at all, and JSON that is read with care.

A file is written next to its place and moved there when complete, so a reader sees all of it or none, and a failure
leaves what was there before. A file that replaces another keeps its permissions: what only its owner could read stays
so. JSON that others may have written is read strictly: no entry twice, no NaN, no nesting without end.
"""

from __future__ import annotations

import json
import math
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn

from spinney.errors import FileError, SpinneyError


def write_whole(path: str | Path, write: Callable[[IO[bytes]], object], *, overwrite: bool) -> None:
    """Let `write` fill a new file that appears at `path`, or where a link there leads, complete or not at all."""
    path = Path(path).resolve()
    check_writable(path, overwrite=overwrite)
    try:
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    except OSError as err:
        raise FileError(f"cannot write {str(path)!r}: {err.strerror or err}") from err
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        _settle_permissions(partial, path if overwrite else None)
        if overwrite:
            os.replace(partial, path)
        else:
            try:
                os.link(partial, path)  # fails if someone made the file meanwhile; a rename would not
            except FileExistsError:
                check_writable(path, overwrite=False)
            except OSError:
                os.replace(partial, path)  # a file system without hard links
        _settle_folder(path.parent)
    except OSError as err:
        if isinstance(err, SpinneyError):
            raise
        raise FileError(f"cannot write {str(path)!r}: {err.strerror or err}") from err
    finally:
        Path(partial).unlink(missing_ok=True)


def _settle_permissions(partial: str, replaced: Path | None) -> None:
    """Give a new file the permissions of what it replaces, or those of any other new file of this user.

    Owner and group are kept where that is allowed. Where the group cannot be kept, no other group gets its rights.
    """
    before = os.stat(replaced) if replaced is not None and replaced.exists() else None
    if before is None:
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(partial, 0o666 & ~umask)
        return
    mode, now = stat.S_IMODE(before.st_mode) & 0o777, os.stat(partial)
    if os.name == "posix" and before.st_uid != now.st_uid:
        with suppress(OSError):
            os.chown(partial, before.st_uid, -1)
    if os.name == "posix" and before.st_gid != now.st_gid:
        try:
            os.chown(partial, -1, before.st_gid)
        except OSError:
            mode &= ~0o070
    os.chmod(partial, mode)


def _settle_folder(folder: Path) -> None:
    """Have the new name itself on disk, where folders can be synchronised."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_writable(path: str | Path, *, overwrite: bool) -> None:
    """Raise if a file cannot be put at `path`; meant to be called before any budget is spent."""
    path = Path(path).resolve()
    if path.is_dir():
        raise FileError(f"{str(path)!r} is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise FileError(f"{str(path)!r} is a device or a pipe, which cannot be replaced by a file; choose another name")
    if path.exists() and not overwrite:
        raise FileError(
            f"{str(path)!r} exists; choose another name, or allow it to be overwritten (overwrite=True, or --force)"
        )
    if not path.parent.is_dir():
        raise FileError(f"the folder {str(path.parent)!r} does not exist; make it first")
    try:
        with tempfile.TemporaryFile(
            dir=path.parent
        ):  # asking for permission says too little: the disk may be read-only
            pass
    except OSError as err:
        raise FileError(f"the folder {str(path.parent)!r} cannot be written to: {err.strerror or err}") from err


# ------------------------------------------------------------------------------------------------------------ JSON

# More lists and tables than this are no card and no account; they would take many times the size of their text.
_MOST_BRACKETS = 2**21
_LONGEST_NUMBER = 1_000
_DEEPEST = 64


def write_json(data: Any) -> bytes:
    """Data as the bytes of a JSON file."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False).encode()


def read_json(content: bytes) -> Any:
    """The data in a JSON file; a ValueError says in a few words why it is none."""
    if content.count(b"[") + content.count(b"{") > _MOST_BRACKETS:
        raise ValueError("it has too many lists and tables")
    try:
        data = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_entries,
            parse_float=_finite,
            parse_int=_of_sane_length,
            parse_constant=_no_constant,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None
    except json.JSONDecodeError as err:
        raise ValueError(f"line {err.lineno} is not JSON") from None
    _check_depth(data)
    if b"\\ud" in content.lower():  # an escape may say half a character, which no file can hold
        try:
            json.dumps(data, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it holds half a character") from None
    return data


def _check_depth(data: Any) -> None:
    """Raise a ValueError where data are nested so deeply that showing them might fail."""
    level = [data]
    for _ in range(_DEEPEST):
        level = [
            item
            for holder in level
            if isinstance(holder, (dict, list))
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return
    raise ValueError("it is nested too deeply")


def _entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of entries; one that stands twice would mean one thing here and another elsewhere."""
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("an entry stands in it twice")
    return entries


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number in it is too large")
    return number


def _of_sane_length(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError("a number in it is too long")
    return int(text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
