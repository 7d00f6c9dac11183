"""Synthetic persons as files: one for the table of their rows, or a folder with one for each of several tables."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.command import check_output, warn_of_brands, warn_of_none
from spinney.errors import FileError

if TYPE_CHECKING:
    import pyarrow as pa

    from spinney.people.release.model import PeopleRelease

FORMATS = ("parquet", "csv")
# What names of files are made of on no system, or on some.
_NOT_IN_NAMES = frozenset('/\\:*?"<>|')


def sample_people(
    release: str,
    out: str,
    *,
    persons: int | None,
    seed: int | None,
    where: Sequence[str],
    kind: str | None,
    force: bool,
) -> dict[str, Any]:
    """Draw persons and write all their tables, or none; says what was written."""
    from spinney.cli.tables import write_table
    from spinney.people.release.model import PeopleRelease
    from spinney.release.answers.options import parse_where
    from spinney.release.storage import load

    if not is_folder_name(out):
        if out != "-":
            check_output(out, force=force, inputs=[release])
        if kind is not None:
            raise click.UsageError("--format is for a folder of tables; the ending of --out says how a file is written")
    loaded = load(release)
    assert isinstance(loaded, PeopleRelease)
    files = _files(loaded, release, out, kind or FORMATS[0], force=force)
    asked = {"where": parse_where(where, loaded.asked_schema)} if where else {}
    warn_of_brands(loaded.card)
    warn_of_none("--persons", persons)
    drawn = loaded.sample(persons, seed=seed, frame="pyarrow", **asked)
    tables = drawn if isinstance(drawn, dict) else {"": drawn}
    if files is None:
        write_table(tables[""], out, overwrite=force)
    else:
        _write_all(tables, out, files, force=force)
    return {
        "out": out if files is None else {name: str(Path(out, file)) for name, file in files.items()},
        "persons": _n_persons(loaded, tables),
        "rows": {name: table.num_rows for name, table in tables.items()} if files else tables[""].num_rows,
    }


def wrote(described: Mapping[str, Any], out: str) -> str:
    """What was written, in a sentence."""
    many = f"{described['persons']:,} synthetic persons"
    if not isinstance(described["rows"], dict):
        return f"wrote {many} with {described['rows']:,} rows to {out}"
    tables = ", ".join(
        f"{os.path.basename(described['out'][name])} ({number:,} rows)" for name, number in described["rows"].items()
    )
    return f"wrote {many} to {out}: {tables}"


def is_folder_name(out: str) -> bool:
    """Whether --out names a folder."""
    return out.endswith(("/", os.sep)) or (out != "-" and Path(out).is_dir())


def _n_persons(loaded: PeopleRelease, tables: Mapping[str, pa.Table]) -> int:
    name = loaded.shape.persons_name
    if name is not None:
        return int(tables[name].num_rows)
    import pyarrow.compute as pc

    return int(pc.count_distinct(tables[""].column(loaded.shape.rows[0].key)).as_py())


def _files(loaded: PeopleRelease, release: str, out: str, kind: str, *, force: bool) -> dict[str, str] | None:
    """The file of every table; None where there is one table and --out is its file."""
    if loaded.shape.persons is None:
        if is_folder_name(out):
            raise click.UsageError(
                f"--out {out!r} is a folder, and the release has one table; name a .csv or .parquet file"
            )
        return None
    names = ", ".join(loaded.shape.tables)
    if not is_folder_name(out):
        raise click.UsageError(
            f"the release has several tables ({names}), and --out {out!r} is one file; name a folder, as in --out "
            "synthetic/, which gets a file for each"
        )
    files = {name: f"{_checked_name(name)}.{kind}" for name in loaded.shape.tables}
    if len({file.casefold() for file in files.values()}) < len(files):
        raise FileError("two tables of the release would have one file where capitals make no difference; use sp.load")
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise click.UsageError(f"{out!r} is a file; name a folder")
    if folder.is_dir():
        for file in files.values():
            check_output(str(folder / file), force=force, inputs=[release])
    else:
        check_output(str(folder.resolve()), force=force)
    return files


def _checked_name(name: str) -> str:
    """The name of a table, if a file can have it: a release may come from anywhere."""
    if not name.isprintable() or set(name) & _NOT_IN_NAMES or name != name.strip() or len(name.encode()) > 200:
        raise FileError(
            "a table of the release has a name that no file can have; draw it with sp.load(...).sample() instead"
        )
    return name


def _write_all(tables: Mapping[str, pa.Table], out: str, files: Mapping[str, str], *, force: bool) -> None:
    """Write all tables beside their place, then move them there, so that a failure leaves what was there before."""
    from spinney.cli.tables import write_table

    folder = Path(out).resolve()
    try:
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent))
    except OSError as err:
        raise FileError(f"cannot write to {str(folder.parent)!r}: {err.strerror or err}") from err
    try:
        for name, table in tables.items():
            write_table(table, str(beside / files[name]), overwrite=False)
        if not folder.exists():
            _as_any_folder(beside)
            os.rename(beside, folder)
            return
        _move(beside, folder, list(files.values()), force=force)
    except OSError as err:
        if isinstance(err, FileError):
            raise
        raise FileError(f"cannot write {str(folder)!r}: {err.strerror or err}") from err
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _move(beside: Path, folder: Path, files: Sequence[str], *, force: bool) -> None:
    """Put files into a folder that is there; where one cannot be put, those before go back."""
    old, moved = beside / "old", []
    old.mkdir()
    try:
        for file in files:
            if not force:
                check_output(str(folder / file), force=False)
            if (folder / file).exists():
                os.replace(folder / file, old / file)
            moved.append(file)
            os.replace(beside / file, folder / file)
    except BaseException:
        for file in moved:
            with suppress(OSError):
                (folder / file).unlink(missing_ok=True)
                if (old / file).exists():
                    os.replace(old / file, folder / file)
        raise


def _as_any_folder(folder: Path) -> None:
    """The permissions of any other new folder of this user."""
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(folder, 0o777 & ~umask)
