"""`spinney sample`: synthetic rows, or persons with all their rows, from a release. Costs no epsilon.

Drawing is post-processing, so it may be repeated however often. Outputs are checked before anything is drawn,
and each file is written whole or not at all. The first part writes the tables of persons; the second is the
verb, which writes one file, a folder of parts, or several draws.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from spinney.cli.command import (
    FILE,
    ROWS,
    Verb,
    check_output,
    force_option,
    json_option,
    option,
    options,
    tell,
    warn_of_brands,
    warn_of_none,
)
from spinney.errors import FileError

if TYPE_CHECKING:
    import pyarrow as pa

    from spinney.people.release.model import PeopleRelease


# -------------------------------------------------------------------------------------------------------------- persons
# Synthetic persons as files: one for the table of their rows, or a folder with one for each of several tables.


class Wrote(NamedTuple):
    """What a draw wrote: as JSON-ready data, and in a sentence."""

    described: dict[str, Any]
    sentence: str


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
) -> Wrote:
    """Draw persons and write all their tables, or none."""
    from spinney.cli.tables import write_table
    from spinney.people.release.model import PeopleRelease
    from spinney.release.answers.grammar import parse_where
    from spinney.release.file import load

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
    n_persons, rows = _n_persons(loaded, tables), {name: table.num_rows for name, table in tables.items()}
    drawn_persons = f"wrote {n_persons:,} synthetic persons"
    if files is None:
        described = {"out": out, "persons": n_persons, "rows": rows[""]}
        return Wrote(described, f"{drawn_persons} with {rows['']:,} rows to {out}")
    paths = {name: str(Path(out, file)) for name, file in files.items()}
    listed = ", ".join(f"{files[name]} ({number:,} rows)" for name, number in rows.items())
    return Wrote({"out": paths, "persons": n_persons, "rows": rows}, f"{drawn_persons} to {out}: {listed}")


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
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(beside, 0o777 & ~umask)  # as any other new folder of this user
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


# --------------------------------------------------------------------------------------------------------------- sample
# The verb, and rows of one table as a file, a folder of parts, or several files. Costs no epsilon, however
# often.


# Where the number of a table goes in the name of its file.
_DRAW = "{draw}"
# "tilted" is of releases of bins, "fitted" of releases of leaf moments.
_INSTEAD = {
    "--persons": "say --rows, the number of rows",
    "--format": "the ending of --out says how a file is written",
}
PLACEMENTS = "tilted|fitted|uniform|centre"


@click.command(cls=Verb)
@click.argument("release", type=FILE)
@option(
    "--rows N",
    "The number of rows, such as 10000, 1_000_000 or 1e9. Default: that of the private table if it is public, "
    "otherwise the noisy total.",
    type=ROWS,
)
@option(
    "--persons N",
    "Persons: the number of persons, who come with all their rows. Default: that of the private tables if it is "
    "public, otherwise a noisy number.",
    type=ROWS,
)
@option(
    "--out FILE",
    "A .csv or .parquet file, - for CSV on standard output, or a folder (its name ends in /) for Parquet files "
    "that are written one after the other. With --draws, {draw} in the name is the number of the table. Linked "
    "tables go to a folder, a file each.",
    required=True,
)
@option("--seed N", "A seed, to draw the same rows again. It does not affect the noise of the release.", type=int)
@option(
    "--where NAME=WANTED",
    "Forest, persons: draw only rows, or persons, that meet this condition. WANTED is a value, LOW..HIGH, A,B,C "
    "or null. May be repeated.",
    multiple=True,
)
@force_option
@json_option
@options(
    option(
        "--balance NAME=SHARES",
        "Forest: draw rows in which the values of a category or boolean have these shares. SHARES is the share of "
        "the second of two values, or A:SHARE,B:SHARE. May be repeated.",
        multiple=True,
    ),
    option(
        "--draws N",
        "Forest, tree with moments: draw this many tables, one file each, whose spread carries the noise.",
        type=int,
    ),
    option(
        "--parts N",
        "How many files a folder gets. Default: as many as keep memory below 1 GiB. The rows depend on it.",
        type=int,
    ),
    option(
        f"--placement {PLACEMENTS}", "Tree, grid: where rows lie in their leaf. Default: as the release was fitted."
    ),
    option(
        f"--format {'|'.join(FORMATS)}",
        "Persons of linked tables: how the file of each table is written. Default: parquet.",
        name="kind",
    ),
    group="Balanced rows, several draws, parts",
)
def sample(
    release: str,
    rows: int | None,
    persons: int | None,
    out: str,
    seed: int | None,
    placement: str | None,
    where: tuple[str, ...],
    balance: tuple[str, ...],
    draws: int | None,
    parts: int | None,
    kind: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Draw synthetic rows from RELEASE.

    The output is written whole or not at all.

    A release of a forest can draw rows under conditions. --where "age=30..40" asks for a range of numbers, dates or
    times, both ends included (30.. and ..40 have one end), --where "state=CA,NV" for any of several values, and --where
    "end=null" for missing values. Dates and times are in ISO format (2024-01-31), booleans are true or false, and a
    value that contains a comma is put in double quotes. Every row meets all conditions. --balance "Class=0.5" draws the
    second of two values in half of the rows, and --balance "kind=a:0.2,b:0.8" gives each value its share.

    An analysis of one table does not know of the noise, and its standard errors are too small. --draws 20 draws twenty
    tables, each from the released counts with fresh noise: run the analysis on each, and combine the results with
    sp.combine.

    Rows are drawn in memory. For more than fit there, let --out be a folder, as in --out people/: it gets one Parquet
    file after the other, each whole or not at all, and an empty file _SUCCESS at the end. All of them together are as
    good as one sample. If the command is stopped, run it again: it keeps the files that are there and goes on. A folder
    that holds another sample is refused; --force replaces it.

    A release of persons draws persons with all their rows: --persons says how many. Conditions are on persons: --where
    "customers.region=west" on a column of theirs, --where "transactions.#=5..50" on how many rows they have ("#" where
    there is one table). Linked tables are written to a folder, one file for each, all of them or none; keys fit.

    Examples:
        spinney sample people.spinney --rows 10000 --out synthetic.parquet
        spinney sample people.spinney --rows 10000 --seed 7 --out synthetic.csv
        spinney sample people.spinney --rows 5 --out -
        spinney sample adult.spinney --rows 1000 --where "sex=Female" --where "age=30..40" --out women.csv
        spinney sample people.spinney --where "state=CA,NV" --where "end=null" --out open.parquet
        spinney sample cards.spinney --balance "Class=0.5" --out balanced.parquet
        spinney sample people.spinney --balance "kind=a:0.2,b:0.8" --out -
        spinney sample adult.spinney --draws 20 --out "rows-{draw}.parquet"
        spinney sample people.spinney --rows 1e9 --seed 7 --out people/
        spinney sample shop.spinney --persons 500 --where customers.region=west --seed 1 --out shop/
        spinney sample visits.spinney --persons 500 --where "#=5..50" --out visits.csv
    """
    from spinney.cli.tables import check_table_name
    from spinney.release.file import kind_of

    if out != "-" and not is_folder_name(out):
        check_table_name(out, "--out")
    if kind_of(release) == "people":
        _refuse_of_rows({"--rows": rows, "--placement": placement, "--balance": balance, "--draws": draws})
        if parts is not None:
            raise click.UsageError("--parts is for releases of rows, and persons are drawn in memory; leave it out")
        wrote = sample_people(release, out, persons=persons, seed=seed, where=where, kind=kind, force=force)
    else:
        for name, value in (("--persons", persons), ("--format", kind)):
            if value is not None:
                raise click.UsageError(f"{name} is for releases of persons, and this one is of rows; {_INSTEAD[name]}")
        drawing = Drawing(rows, seed, placement, where, balance)
        if is_folder_name(out):
            if draws is not None:
                raise click.UsageError("--draws writes one file for each table, and --out is a folder; leave out one")
            wrote = sample_folder(release, out, drawing, parts=parts, force=force)
        elif parts is not None:
            raise click.UsageError(
                f"--parts writes Parquet files to a folder, and --out {out!r} names none; let its name end in a slash"
            )
        elif draws is not None:
            wrote = sample_files(release, out, draws, drawing, force=force)
        else:
            wrote = sample_file(release, out, drawing, force=force)
    if out != "-":
        tell(wrote.described, wrote.sentence, as_json=as_json)


def _refuse_of_rows(given: dict[str, Any]) -> None:
    """Refuse what can be asked of rows alone, where persons are drawn."""
    for name, value in given.items():
        if value is not None and value != ():
            remedy = "say --persons, the number of persons" if name == "--rows" else "leave it out"
            raise click.UsageError(
                f"{name} is for releases of rows, and this one draws persons with all their rows; {remedy}"
            )


@dataclass(frozen=True, slots=True)
class Drawing:
    """What the options ask of a draw of rows."""

    n_rows: int | None = None
    seed: int | None = None
    placement: str | None = None
    where: Sequence[str] = ()
    balance: Sequence[str] = ()

    def of(self, release: str) -> tuple[Any, dict[str, Any]]:
        """A release and the options of its draw; an error where its kind takes no such thing."""
        from spinney.forest.release.model import ForestRelease
        from spinney.release.answers.grammar import parse_balance, parse_where
        from spinney.release.file import load

        loaded: Any = load(release)
        is_forest = isinstance(loaded, ForestRelease)
        holds = f"this release holds {loaded.card.contents}"
        for name, given in (("--where", self.where), ("--balance", self.balance)):
            if given and not is_forest:
                raise click.UsageError(
                    f"{name} is for forests, and {holds}; fit the table with --method forest to use it"
                )
        if self.placement is not None and is_forest:
            raise click.UsageError(f"--placement is for trees and grids, and {holds} of a forest; leave it out")
        options: dict[str, Any] = {"frame": "pyarrow"}
        options |= {} if self.placement is None else {"placement": self.placement}
        if self.where:
            options["where"] = parse_where(self.where, loaded.schema)
        if self.balance:
            options["balance"] = parse_balance(self.balance, loaded.schema)
        warn_of_brands(loaded.card)
        return loaded, options


def sample_file(release: str, out: str, drawing: Drawing, *, force: bool = False) -> Wrote:
    """Draw rows into a file."""
    from spinney.cli.tables import check_table_name, write_table

    if out != "-":
        check_table_name(out, "--out")
        check_output(out, force=force, inputs=[release])
    loaded, options = drawing.of(release)
    warn_of_none("--rows", drawing.n_rows)
    table = loaded.sample(drawing.n_rows, seed=drawing.seed, **options)
    write_table(table, out, overwrite=force)
    return Wrote({"out": out, "rows": table.num_rows}, f"wrote {table.num_rows:,} synthetic rows to {out}")


def sample_folder(release: str, out: str, drawing: Drawing, *, parts: int | None = None, force: bool = False) -> Wrote:
    """Draw rows into files of a folder, or those of them that are missing."""
    from spinney.release.parts import check_folder, seed_of

    try:
        check_folder(out, overwrite=force)
    except FileError as err:
        raise click.UsageError(str(err)) from err
    loaded, options = drawing.of(release)
    options["parts"] = "auto" if parts is None else parts
    begun = seed_of(out) if drawing.seed is None else None  # a sample whose seed nobody chose can go on too
    drawn = loaded.sample(drawing.n_rows, seed=drawing.seed if begun is None else begun, **options)
    if force and begun is not None and not drawn.goes_on_in(out):
        drawn = loaded.sample(drawing.n_rows, **options)  # what is there goes, and its seed with it
    drawn.to_parquet(out, overwrite=force)
    n_files, n_new, rows = len(drawn), drawn.n_written, f"{drawn.n_rows:,} synthetic rows"
    told = f"wrote {rows} to {n_files:,} files in {out}"
    if n_new == 0:
        told = f"nothing was drawn: all {n_files:,} files of {rows} were in {out} already"
    elif n_new < n_files:
        told += f", {n_files - n_new:,} of which were there already"
    return Wrote({"out": out, "rows": drawn.n_rows, "parts": n_files, "written": n_new}, told)


def sample_files(release: str, out: str, draws: int, drawing: Drawing, *, force: bool = False) -> Wrote:
    """Draw several tables, each into a file of its own.

    All tables are drawn before the first is written, and where one cannot be written, none is left that is new.
    """
    from spinney.cli.tables import check_table_name, write_table
    from spinney.release.release import checked_draws

    if _DRAW not in out:
        raise click.UsageError(
            f'--draws writes one file for each table; put {_DRAW} into --out, as in --out "rows-{_DRAW}.parquet"'
        )
    check_table_name(out, "--out")
    files = [out.replace(_DRAW, str(number)) for number in range(1, checked_draws(draws) + 1)]
    for file in files:
        check_output(file, force=force, inputs=[release])
    loaded, options = drawing.of(release)
    tables = loaded.sample(drawing.n_rows, seed=drawing.seed, draws=draws, **options)
    is_new = [not Path(file).exists() for file in files]
    n_written = 0
    try:
        for table, file in zip(tables, files, strict=True):
            write_table(table, file, overwrite=force)
            n_written += 1
    except BaseException:
        for file, new in zip(files[:n_written], is_new, strict=False):
            if new:
                Path(file).unlink(missing_ok=True)
        raise
    n_rows = tables[0].num_rows
    told = f"wrote {draws} tables of {n_rows:,} synthetic rows each to {files[0]} ... {files[-1]}"
    return Wrote({"out": files, "rows": n_rows, "draws": draws}, told)
