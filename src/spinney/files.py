"""Files that appear whole or not at all, JSON that is read with care, and the version of the code.

    whole files    `write_whole`: written beside their place and moved there when complete
    JSON           `read_json`: no entry twice, no NaN, no nesting without end
    version        the version, with the commit that it was built from

A reader of a file sees all of it or none, and a failure leaves what was there before. A file that replaces
another keeps its permissions: what only its owner could read stays so. JSON that others may have written is
read strictly, because a card or a ledger that two programs read differently proves nothing.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NoReturn

from spinney.errors import FileError, SpinneyError


def write_whole(path: str | Path, content: str | bytes | Callable[[IO[bytes]], object], *, overwrite: bool) -> None:
    """A new file that appears at `path`, or where a link there leads, complete or not at all; a function fills it."""
    path = Path(path).resolve()
    check_writable(path, overwrite=overwrite)
    try:
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    except OSError as err:
        raise FileError(f"cannot write {str(path)!r}: {err.strerror or err}") from err
    try:
        with os.fdopen(handle, "wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content.encode() if isinstance(content, str) else content)
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


# ----------------------------------------------------------------------------------------------------------------- JSON
# JSON that others may have written is read strictly: no entry twice, no NaN, no nesting without end.

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


# -------------------------------------------------------------------------------------------------------------- version
# Which code this is: the version, and the commit that it was built from, where that is known.
#
# A wheel carries the commit in a file that its build wrote (`tools/commit_hook.py`). A checkout has it in its
# `.git` folder, which is read without running git. Files that were changed since that commit are not looked
# for. Nothing is read when Spinney is imported: only cards and `spinney --version` ask.


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
