"""Which files a path means: a file, a folder of them, or a pattern such as "trips/*.parquet".

Files are taken in the order of their names, so that every pass sees the rows in the same order. File names are public;
they stand in messages, values never do.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path

from spinney.errors import FileError, ParameterError

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz")


def is_parquet(path: str) -> bool:
    """Whether a file name says Parquet."""
    return path.lower().endswith(PARQUET)


def is_pattern(path: str) -> bool:
    """Whether a path stands for the files that match it; a file that is really called `a[1].csv` is itself."""
    return glob.has_magic(path) and not os.path.exists(path)


def is_remote(path: str) -> bool:
    """Whether a path is an address on another machine."""
    return "://" in path


def list_files(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The files that a path means, all of one kind, in the order of their names; raises if there is none."""
    place = os.fspath(path)
    if is_remote(place):
        raise ParameterError(
            f"{place!r} is on another machine; open it with polars.scan_parquet, DuckDB or Spark and pass that instead"
        )
    if is_pattern(place):
        found = [name for name in sorted(glob.glob(place, recursive=True)) if os.path.isfile(name)]
        if not found:
            raise FileError(f"no file matches {place!r}" + ("" if os.path.isabs(place) else f" in {os.getcwd()!r}"))
        return _of_one_kind(place, _known(place, found))
    if os.path.isdir(place):
        return _of_one_kind(place, _in_folder(place))
    if not os.path.exists(place):
        raise FileError(f"{place!r} does not exist")
    return tuple(_known(place, [place]))


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


def _of_one_kind(place: str, found: list[str]) -> tuple[str, ...]:
    """Both kinds side by side are more often one table twice than two halves of one."""
    if len({is_parquet(name) for name in found}) > 1:
        raise ParameterError(
            f"{place!r} means both CSV and Parquet files; give a pattern for the one kind or the other"
        )
    return tuple(found)
