"""Which files a path means, and that no file is read twice. File names are PUBLIC.

    repeated files          one file by two names, and one table in two forms
    files of lazy tables    what polars, DuckDB, pyarrow and Spark report of the files that they read
    patterns                glob, with linked folders followed once at most
    files of a path         a file, a folder, a pattern such as "trips/*.parquet", or a list of paths

A file that is read twice counts each of its rows twice, and the guarantee for one row would not hold.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from spinney.errors import FileError, ParameterError

# ------------------------------------------------------------------------------------------------------- repeated files
# One file by two names: each of its rows would be counted twice, and a guarantee for one row would not hold.
#
# Two names are one file where device and inode agree, whatever links lead there. Two files of one folder are taken
# for one table in two forms where their names differ in nothing but the ending and upper or lower case, such as
# `people.csv` beside `people.csv.gz`. Equal contents in files of other names cannot be noticed here. File names are
# public.


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


# ------------------------------------------------------------------------------------------------- files of lazy tables
# Which files a lazy table reads, if its library reports them, so that one file by two names is noticed there
# too.
#
# polars reports the files of a plan, DuckDB the text of a query, pyarrow the files of a dataset, Spark those of
# a data frame. Each list is what one reader made of one pattern or list. Nothing is read but names; a library
# that does not report them is trusted, which `docs/limitations.md` says.


_TEXT = r"'(?:[^']|'')*'"
_IDENTIFIER = r'"(?:[^"]|"")*"'
_COMMENT = re.compile(r"/\*.*?\*/|--[^\n]*", re.DOTALL)
# Where a query names files: FROM 'x', JOIN 'x', read_csv('x'), parquet_scan(['x', 'y']). DuckDB 1 writes FROM "x".
_FILES = re.compile(
    rf"(?:\b(?:from|join)\s+|\b(?:read_\w+|\w+_scan)\s*\(\s*)"
    rf"(\[\s*{_TEXT}(?:\s*,\s*{_TEXT})*\s*\]|{_TEXT}|{_IDENTIFIER})",
    re.IGNORECASE,
)


def refuse_repeated_reads(reads: Iterable[Sequence[str]]) -> None:
    """Raise if one reader reads a file twice, or two readers the same file by different names.

    A query that reads a file twice by one name, such as a join of a table with itself, says so on purpose.
    """
    names: set[str] = set()
    for read in reads:
        local = [local_path(name) for name in read]
        refuse_repeats(local)
        names.update(local)
    refuse_links(sorted(names))


def local_path(name: str) -> str:
    """The path behind an address of this machine; other addresses and paths as they are."""
    return unquote(urlsplit(name).path) if name.lower().startswith("file:/") else name


def polars_reads(frame: Any) -> list[list[str]]:
    """Files of each scan in the plan of a LazyFrame."""
    reads: list[list[str]] = []
    try:
        plan = frame._ldf.visit()
        waiting = [plan.get_node()]
        while waiting:
            plan.set_node(waiting.pop())
            waiting += plan.get_inputs()
            try:
                paths = getattr(plan.view_current_node(), "paths", None)
            except NotImplementedError:  # a step that polars does not describe
                continue
            if paths:
                reads.append([os.fspath(path) for path in paths])
    except Exception:  # versions differ in what they tell
        return reads
    return reads


def duckdb_reads(relation: Any) -> list[list[str]]:
    """Files that DuckDB finds for each pattern, or list of patterns, that the query behind a relation reads."""
    import duckdb

    reads: list[list[str]] = []
    try:
        query = _COMMENT.sub(" ", str(relation.sql_query()))
        named = re.findall(rf"{_TEXT}|{_IDENTIFIER}", query)
        if not named:
            return reads
        with duckdb.connect(":memory:") as connection:
            for texts in _FILES.findall(query):
                quoted = re.findall(rf"{_TEXT}|{_IDENTIFIER}", texts)
                patterns = [text[1:-1].replace(text[0] * 2, text[0]) for text in quoted]
                reads.append([name for pattern in patterns for name in _found(connection, pattern)])
            # However else a query may name a file: in a list that it makes, or as an identifier.
            others = [text[1:-1].replace(text[0] * 2, text[0]) for text in named]
            reads += [[name] for name in others if os.path.isfile(name)]
    except Exception:  # not every relation has a text
        return reads
    return reads


def _found(connection: Any, pattern: str) -> list[str]:
    """Files on this machine that a pattern means to DuckDB."""
    if "://" in pattern:
        return []
    return [name for (name,) in connection.execute("SELECT file FROM glob(?)", [pattern]).fetchall()]


def dataset_reads(dataset: Any) -> list[list[str]]:
    """Files of a pyarrow dataset, with those of all datasets that it is made of in one list."""
    return [_dataset_files(dataset)]


def _dataset_files(dataset: Any) -> list[str]:
    children = getattr(dataset, "children", None)
    if children is not None:
        return [name for child in children for name in _dataset_files(child)]
    if not hasattr(dataset, "files"):  # in memory
        return []
    files, system = dataset.files, dataset.filesystem
    while type(system).__name__ == "SubTreeFileSystem":
        files = [os.path.join(system.base_path, name) for name in files]
        system = system.base_fs
    is_local = type(system).__name__ == "LocalFileSystem"
    return [name if is_local else f"{system.type_name}://{name}" for name in files]


def spark_reads(frame: Any) -> list[list[str]]:
    """Files behind a Spark data frame, by one name each."""
    try:
        return [sorted(frame.inputFiles())]
    except Exception:  # a server may not tell
        return []


# ------------------------------------------------------------------------------------------------------------- patterns
# Files that a pattern means, in the manner of Python's glob, with linked folders followed once at most.
#
# `*`, `?` and `[...]` match within a name, `**` stands for any number of folders, and names that begin with a dot are
# matched only by parts that do. A file comes once, however often the pattern fits it. The walk of `**` enters a
# folder once, by whatever name it is found first: real folders before linked ones, and a link to a folder that
# contains the link never. So it ends wherever links lead.


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


# ------------------------------------------------------------------------------------------------------ files of a path
# Which files a path means: a file, a folder of them, a pattern such as "trips/*.parquet", or a list of paths.
#
# Files of a folder or a pattern are taken in the order of their names and paths of a list in the order given,
# so that every pass sees the rows in the same order. No file may be read twice (`refuse_repeats`). File names
# are public; they stand in messages, values never do.


PARQUET_ENDINGS = (".parquet", ".pq")
CSV_ENDINGS = (".csv", ".csv.gz")

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def is_parquet(path: str) -> bool:
    """Whether a file name says Parquet."""
    return path.lower().endswith(PARQUET_ENDINGS)


def is_pattern(path: str) -> bool:
    """Whether a path stands for the files that match it; a file that is really called `a[1].csv` is itself."""
    return glob.has_magic(path) and not os.path.exists(path)


def is_remote(path: str) -> bool:
    """Whether a path is an address on another machine."""
    return "://" in path


def list_files(path: Paths) -> tuple[str, ...]:
    """The files that a path or a list of paths means, all of one kind, none of them twice; raises if there is none."""
    if isinstance(path, (str, os.PathLike)):
        place = os.fsdecode(path)
        found, what = _files_at(place), repr(place)
    else:
        if not path:
            raise ParameterError("the list of paths is empty; name at least one file")
        places = [os.fsdecode(each) for each in path]
        _refuse_what_is_no_path(places)
        found, what = [name for place in places for name in _files_at(place)], "the list of paths"
    if len({is_parquet(name) for name in found}) > 1:
        # Both kinds side by side are more often one table twice than two halves of one.
        raise ParameterError(f"{what} matches both CSV and Parquet files; give files of one kind only")
    refuse_repeats(found)
    return tuple(found)


def _refuse_what_is_no_path(places: Sequence[str]) -> None:
    """Raise where an entry of a list is no path, without quoting it: it may be a cell of a table."""
    for number, place in enumerate(places, 1):
        if (
            place.lower().endswith((*PARQUET_ENDINGS, *CSV_ENDINGS))
            or os.path.lexists(place)
            or (is_pattern(place) and expand(place))
        ):
            continue
        raise FileError(
            f"path {number} of the list is no file, folder or pattern of files on this machine; a list holds the paths "
            f"of files that end in {' or '.join((*CSV_ENDINGS, *PARQUET_ENDINGS))}"
        )


def _files_at(place: str) -> list[str]:
    """The files that one path means."""
    if is_remote(place):
        raise ParameterError(
            f"{place!r} is an address; give a file on this machine by its path, without 'file://'"
            if place.lower().startswith("file:")
            else f"{place!r} is on another machine; open it with polars.scan_parquet, DuckDB or Spark and pass that "
            "instead"
        )
    if is_pattern(place):
        found = expand(place)
        if not found:
            raise FileError(f"no file matches {place!r}" + ("" if os.path.isabs(place) else f" in {os.getcwd()!r}"))
        return _known(place, found)
    if os.path.isdir(place):
        return _in_folder(place)
    if not os.path.exists(place):
        raise FileError(f"{place!r} does not exist")
    if not os.path.isfile(place):
        raise FileError(
            f"{place!r} is a pipe or a device, which can be read once only; save what comes out of it as a file"
        )
    return _known(place, [place])


def _in_folder(folder: str) -> list[str]:
    """Tables directly in a folder. Names that begin with a dot or an underline are other programs' notes."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError as err:
        raise FileError(f"the folder {folder!r} cannot be read: {err.strerror or err}") from err
    found = [
        name
        for name in names
        if not name.startswith((".", "_")) and name.lower().endswith((*PARQUET_ENDINGS, *CSV_ENDINGS))
    ]
    if not found:
        raise FileError(
            f"the folder {folder!r} holds no file that ends in {' or '.join((*PARQUET_ENDINGS, *CSV_ENDINGS))}; "
            f"for files in folders inside it, give a pattern such as {str(Path(folder) / '**' / '*.parquet')!r}"
        )
    return [os.path.join(folder, name) for name in found]


def _known(place: str, found: list[str]) -> list[str]:
    """The files, if their endings say what is in them."""
    for name in found:
        if not name.lower().endswith((*PARQUET_ENDINGS, *CSV_ENDINGS)):
            among = "" if name == place else f", among the files of {place!r},"
            raise ParameterError(
                f"{name!r}{among} does not end in {' or '.join((*CSV_ENDINGS, *PARQUET_ENDINGS))}; "
                "rename or leave it out"
            )
    return found
