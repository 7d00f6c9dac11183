"""One file by two names: each of its rows would be counted twice, and a guarantee for one row would not hold.

Two names are one file where device and inode agree, whatever links lead there. Two files of one folder are taken for
one table in two forms where their names differ in nothing but the ending and upper or lower case, such as `people.csv`
beside `people.csv.gz`. Equal contents in files of other names cannot be noticed here. File names are public.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence

from spinney.errors import ParameterError

# Endings of one kind of table, and those that compression adds before or after them.
_KINDS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv", ".txt": "csv"} | dict.fromkeys(
    (".arrow", ".feather", ".ipc"), "arrow"
)
_COMPRESSED = frozenset(
    (".gz", ".gzip", ".bz2", ".bzip2", ".xz", ".zst", ".zstd", ".lz4", ".snappy", ".sz", ".br", ".brotli", ".zip", ".z")
)
_TWICE = "so that each row would be counted twice and the privacy guarantee would not hold"


def refuse_repeats(names: Sequence[str]) -> None:
    """Raise if one of the files that are read as one table is named twice, is there by two names or in two forms."""
    if len(names) < 2:
        return
    [(name, n_times)] = Counter(names).most_common(1)
    if n_times > 1:
        raise ParameterError(f"{name!r} is named twice, {_TWICE}; name it once")
    refuse_links(names)
    _refuse_forms(names)


def refuse_links(names: Iterable[str]) -> None:
    """Raise if two different names lead to one file."""
    first_names: dict[Hashable, str] = {}
    for name in names:
        first = first_names.setdefault(identity(name), name)
        if first != name:
            raise ParameterError(
                f"{first!r} and {name!r} are one file by two names, {_TWICE}; "
                "remove the link, or give a pattern or a list of paths that names only one of them"
            )


def identity(path: str) -> Hashable:
    """What is the same for all names of one file or folder; for one that cannot be asked, its address."""
    if "://" in path:
        return path
    try:
        status = os.stat(path)
    except OSError:
        return os.path.normcase(os.path.realpath(path))
    # Some file systems number no files.
    return (status.st_dev, status.st_ino) if status.st_ino else os.path.normcase(os.path.realpath(path))


def _refuse_forms(names: Sequence[str]) -> None:
    """Raise if two files look like one table in two forms."""
    folders: dict[str, str] = {}
    first_names: dict[tuple[str, str, str], str] = {}
    for name in names:
        for form in set(_forms(name, folders)):
            first = first_names.setdefault(form, name)
            if first != name:
                raise ParameterError(
                    f"{first!r} and {name!r} look like one table in two forms, {_TWICE}; remove one, or give a pattern "
                    "or a list of paths that names only one of them; if they hold different rows, rename one"
                )


def _forms(name: str, folders: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Folder, name without endings, and kind of table: of a file, and of what it is a link to. `folders` is kept."""
    for path in (name, os.path.realpath(name)) if os.path.islink(name) else (name,):
        folder, base = os.path.split(path)
        if folder not in folders:
            folders[folder] = folder if "://" in folder else os.path.normcase(os.path.realpath(folder))
        yield folders[folder], *_stem_and_kind(base)


def _stem_and_kind(base: str) -> tuple[str, str]:
    """`Trips.snappy.parquet` is ("trips", "parquet")."""
    stem, kind = base.lower(), ""
    while True:
        rest, ending = os.path.splitext(stem)
        if not rest or (ending not in _COMPRESSED and ending not in _KINDS):
            return stem, kind
        stem, kind = rest, _KINDS.get(ending, kind)
