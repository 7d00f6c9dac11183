"""A process of its own that draws rows and writes them to its standard output, part by part, as CSV or Parquet.

    python -m spinney.studio.releases.draw_rows < asked.json

It holds one part in memory, and waits while nobody reads on. Of linked tables it writes a zip archive with a file each.
An error of the library goes to standard error, before anything was written; whoever reads takes an end with another
status than 0 for rows that are not all there.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from spinney.errors import SpinneyError
from spinney.people.release.model import PeopleRelease
from spinney.studio.releases.loaded import loaded
from spinney.studio.releases.rows import drawing_options

_BUFFER = 1 << 18


class Counting:
    """A file that cannot be rewound, which knows how much was written: all that writers of Parquet files ask of it."""

    closed = False

    def __init__(self, target: IO[bytes]) -> None:
        self._target, self._n_bytes = target, 0

    def write(self, data: Any) -> int:
        self._n_bytes += len(data)
        return self._target.write(data)

    def tell(self) -> int:
        return self._n_bytes

    def flush(self) -> None:
        self._target.flush()


def write_rows(tables: Iterator[pa.Table], target: IO[bytes], form: str) -> None:
    """Write tables of one schema as one file."""
    first = next(tables)
    writer = pq.ParquetWriter if form == "parquet" else pacsv.CSVWriter
    with writer(Counting(target), first.schema) as file:
        file.write_table(first)
        for table in tables:
            file.write_table(table.cast(first.schema))


def draw(asked: dict[str, Any], target: IO[bytes]) -> None:
    """Draw what was asked for, and write it."""
    release = loaded(asked["path"], asked["digest"])
    options = drawing_options(release, asked["where"], asked["balance"])
    options |= {"seed": asked["seed"], "frame": "pyarrow"}
    if isinstance(release, PeopleRelease):
        drawn = release.sample(asked["rows"], **options)
        if isinstance(drawn, dict):
            _write_archive(drawn, target, asked["form"])
        else:
            write_rows(iter([drawn]), target, asked["form"])
        return
    n_parts = asked["parts"]
    if n_parts == 1:
        write_rows(iter([release.sample(asked["rows"], **options)]), target, asked["form"])
    else:
        write_rows(iter(release.sample(asked["rows"], parts=n_parts, **options)), target, asked["form"])


def _write_archive(tables: dict[str, pa.Table], target: IO[bytes], form: str) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, table in tables.items():
            plain = "".join(letter if letter.isalnum() or letter in "-_ ." else "-" for letter in name)
            with archive.open(f"{plain}.{form}", "w", force_zip64=True) as file:
                write_rows(iter([table]), file, form)


def main() -> int:
    """Read what is asked for, and draw it."""
    asked = json.load(sys.stdin)
    with open(sys.stdout.fileno(), "wb", buffering=_BUFFER, closefd=False) as target:
        try:
            draw(asked, target)
        except SpinneyError as err:
            sys.stderr.write(str(err))
            return 1
        except BrokenPipeError:
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
