"""What a verb is given to look at: one table and its schema, or linked tables that a file names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.command import FILE, files_of
from spinney.cli.csv_options import CSV_NAMES, take_csv
from spinney.errors import FileError, SchemaError

if TYPE_CHECKING:
    from spinney.schema.people import Tables
    from spinney.schema.table import Schema
    from spinney.tables.csv.format import CSV

tables_option = click.option(
    "--tables",
    "tables_path",
    type=FILE,
    metavar="FILE",
    help="The TOML file that names linked tables, their schemas and the links between them; in place of TABLE and "
    "--schema.",
)


@dataclass(frozen=True, slots=True)
class Given:
    """Tables to be read, and what is public about them."""

    files: list[str]  # that are read; none where a table comes through a pipe
    stated: Callable[[], Schema | Tables]  # reads the schema
    frames: Callable[[], Any]  # what the library takes: a table, or linked ones by name
    schemas: Sequence[str] = ()  # files that a file of tables names


def given_tables(
    table: str | None,
    schema_path: str | None,
    tables_path: str | None,
    parameters: dict[str, Any],
    *,
    bounds_from_data: bool = False,
) -> Given:
    """What was named on the command line. CSV options, taken out of the parameters, are for all CSV files alike."""
    if tables_path is None:
        return _one_table(table, schema_path, parameters, bounds_from_data=bounds_from_data)
    for name, value in (("TABLE", table), ("--schema", schema_path)):
        if value is not None:
            raise click.UsageError(
                f"{name} and --tables are both given; {tables_path!r} names all tables and schemas, so leave one out"
            )
    if bounds_from_data:
        raise click.UsageError("--bounds-from-data-not-private is for one table; state the bounds of linked tables")
    from spinney.schema.people import Tables

    tables = Tables.from_file(tables_path)
    files = table_files(tables, tables_path)
    csv = _csv_of(files, parameters)
    every = [file for path in files.values() for file in _listed(path)]
    frames = {name: csv.get(name) or path for name, path in files.items()}
    return Given(every, lambda: tables, lambda: frames, _schema_files(tables_path))


def _schema_files(tables_path: str) -> list[str]:
    """The schema files that a file of tables names; it was read before, so it is what it should be."""
    from spinney.schema.plain import parse_toml, read_schema_text

    entries = parse_toml(read_schema_text(tables_path))["tables"].values()
    folder = Path(tables_path).parent
    return [str(folder / entry["schema"]) for entry in entries if isinstance(entry["schema"], str)]


def table_files(tables: Tables, tables_path: str) -> dict[str, str]:
    """Where every table is; a SchemaError where the file of tables does not say, a usage error where nothing is."""
    for name in tables:
        if name not in tables.files:
            raise SchemaError(
                f"table {name!r}: {tables_path!r} does not say where it is; add a line such as "
                f'file = "{name}.parquet" under [tables.{name}]'
            )
    for name, path in tables.files.items():
        try:
            _listed(path)
        except FileError as err:
            raise click.UsageError(f"table {name!r} in {tables_path!r}: {err}") from err
    return {name: tables.files[name] for name in tables}


def load_schema(path: str, *, bounds_from_data: bool) -> Schema:
    """The schema in a file; on request with bounds that it leaves out marked to be read off the data."""
    from spinney.columns import COLUMN_TYPES, Bounded
    from spinney.schema.plain import parse_toml, read_schema_text
    from spinney.schema.table import Schema, schema_from_plain

    if not bounds_from_data:
        return Schema.from_file(path)
    described = parse_toml(read_schema_text(path))
    columns = described.get("columns")
    entries = list(columns.values()) if isinstance(columns, dict) else []
    for entry in entries:
        kind = COLUMN_TYPES.get(str(entry.get("type"))) if isinstance(entry, dict) else None
        is_open = kind is not None and issubclass(kind, Bounded) and kind.widest is None
        if is_open and not entry.keys() & {"low", "high", "bounds"}:
            entry["bounds"] = "from-data-not-private"
    return schema_from_plain(described, folder=Path(path).parent)


def _one_table(
    table: str | None, schema_path: str | None, parameters: dict[str, Any], *, bounds_from_data: bool
) -> Given:
    from spinney.cli.tables import given_table

    for name, value in (("TABLE", table), ("--schema", schema_path)):
        if value is None:
            raise click.UsageError(
                f"{name} is missing; name a table and its schema, or linked tables with --tables FILE"
            )
    assert table is not None
    assert schema_path is not None
    csv = take_csv(table, parameters)
    files = _listed(table)

    def stated() -> Schema:
        return load_schema(schema_path, bounds_from_data=bounds_from_data)

    return Given(files, stated, lambda: given_table(table, csv))


def _listed(path: str) -> list[str]:
    from spinney.tables.paths.expanding import is_remote

    return [] if is_remote(path) else list(files_of(path))


def _csv_of(files: Mapping[str, str], parameters: dict[str, Any]) -> dict[str, CSV | None]:
    """How the CSV files among linked tables are written; those of other kinds take no such options."""
    from spinney.tables.paths.expanding import is_parquet

    said = {name: parameters.pop(name) for name in CSV_NAMES}
    of_csv = [name for name, path in files.items() if _listed(path) and not is_parquet(_listed(path)[0])]
    return {name: take_csv(files[name], dict(said)) for name in of_csv or files}
