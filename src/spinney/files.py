"""Files that appear whole or not at all.

A file is written next to its place and moved there when complete, so a reader sees all of it or none, and a failure
leaves what was there before.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

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
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(partial, 0o666 & ~umask)
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
        raise FileError(f"{str(path)!r} exists; choose another name or say that it may be overwritten")
    if not path.parent.is_dir():
        raise FileError(f"the folder {str(path.parent)!r} does not exist; make it first")
    try:
        with tempfile.TemporaryFile(
            dir=path.parent
        ):  # asking for permission says too little: the disk may be read-only
            pass
    except OSError as err:
        raise FileError(f"the folder {str(path.parent)!r} cannot be written to: {err.strerror or err}") from err
