"""Which files a path means: a file, a folder of them, a pattern such as "trips/*.parquet", or a list of paths.

Files of a folder or a pattern are taken in the order of their names and paths of a list in the order given, so that
every pass sees the rows in the same order. No file may be read twice (`repeats.py`). File names are public; they stand
in messages, values never do.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from spinney.errors import FileError, ParameterError
from spinney.tables.paths.patterns import expand
from spinney.tables.paths.repeats import refuse_repeats

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz")

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def is_parquet(path: str) -> bool:
    """Whether a file name says Parquet."""
    return path.lower().endswith(PARQUET)


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
        if place.lower().endswith((*PARQUET, *CSV)) or os.path.lexists(place) or (is_pattern(place) and expand(place)):
            continue
        raise FileError(
            f"path {number} of the list is no file, folder or pattern of files on this machine; a list holds the paths "
            f"of files that end in {' or '.join((*CSV, *PARQUET))}"
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
    found = [name for name in names if not name.startswith((".", "_")) and name.lower().endswith((*PARQUET, *CSV))]
    if not found:
        raise FileError(
            f"the folder {folder!r} holds no file that ends in {' or '.join((*PARQUET, *CSV))}; for files in folders "
            f"inside it, give a pattern such as {str(Path(folder) / '**' / '*.parquet')!r}"
        )
    return [os.path.join(folder, name) for name in found]


def _known(place: str, found: list[str]) -> list[str]:
    """The files, if their endings say what is in them."""
    for name in found:
        if not name.lower().endswith((*PARQUET, *CSV)):
            among = "" if name == place else f", among the files of {place!r},"
            raise ParameterError(
                f"{name!r}{among} does not end in {' or '.join((*CSV, *PARQUET))}; rename or leave it out"
            )
    return found
