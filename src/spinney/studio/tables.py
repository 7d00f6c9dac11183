"""Tables that a draft is about: where they are, and what the library is given to read.

A draft names a table by plain data: files in the root or in the workspace (a path, a folder or a pattern, with what was
said about a CSV), or a table in a DuckDB file. Whatever opens it checks again that it lies where it may.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from spinney.errors import InputError
from spinney.extras import load_optional
from spinney.redacted import redacted
from spinney.studio.errors import PageError
from spinney.studio.places import DUCKDB_ENDINGS, Root
from spinney.studio.workspace import Workspace
from spinney.tables.csv.format import CSV
from spinney.tables.paths.expanding import is_parquet, list_files
from spinney.tables.typed import file_types

# How a CSV may be written, as forms name it.
CSV_FIELDS = ("delimiter", "decimal", "encoding", "date_format")
# A view of a DuckDB file, or a name that is a path, might read other files or the network.
_NOTHING_ELSE = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}
# Of a large CSV, no more than this is looked at to guess types: some tens of megabytes.
MOST_BLOCKS = 4


def described_table(
    workspace: Workspace, at: str, path: str, *, table: str = "", csv: Mapping[str, str]
) -> dict[str, Any]:
    """A table as drafts name it; an error where there is none, or where it may not be opened."""
    place = workspace.root.folder if at == "root" else workspace.tables_folder
    said = {name: value for name, value in csv.items() if name in CSV_FIELDS and value}
    described = {"at": at, "path": path, "table": table, "csv": said, "name": _name(path, table)}
    if not path and not table:
        raise PageError("Choose a file, a folder or a pattern of files.")
    if is_duckdb(path):
        if not table:
            raise PageError("A DuckDB file holds several tables; say which by its name.")
        if said:
            raise PageError("Delimiter, decimal mark, encoding and date format are for CSV files; leave them empty.")
        return described
    files = list_files(Root(place).table(path))
    if said and is_parquet(files[0]):
        raise PageError("Delimiter, decimal mark, encoding and date format are for CSV files; leave them empty.")
    return described


def is_duckdb(path: str) -> bool:
    """Whether a file name says DuckDB."""
    return path.lower().endswith(DUCKDB_ENDINGS)


def opened(workspace: Workspace, table: Mapping[str, Any]) -> Any:
    """What the library is given to read."""
    root = Root(workspace.root.folder if table["at"] == "root" else workspace.tables_folder)
    if is_duckdb(table["path"]):
        return _duckdb_table(root.inside(table["path"]), table["table"])
    path = root.table(table["path"])
    csv = dict(table["csv"])
    if not csv:
        return path
    if csv.get("delimiter") in ("tab", "\\t"):
        csv["delimiter"] = "\t"
    return CSV(path, **csv)


def types(workspace: Workspace, table: Mapping[str, Any]) -> pa.Schema:
    """Names and types of the columns; of a CSV guessed from the values at its beginning."""
    frame = opened(workspace, table)
    if isinstance(frame, (str, CSV)):
        return file_types(frame, most_blocks=MOST_BLOCKS)
    with redacted(lambda err: InputError(f"the types of the table cannot be told ({type(err).__name__})")):
        found: pa.Schema = frame.limit(0).arrow().schema
    return found


def guessed_from_values(table: Mapping[str, Any]) -> bool:
    """Whether the types of a table are guesses, because its files say none."""
    return not is_duckdb(table["path"]) and not is_parquet(table["path"])


def folder_of(workspace: Workspace, table: Mapping[str, Any]) -> Path:
    """The folder in which a schema looks for files that it names."""
    root = workspace.root.folder if table["at"] == "root" else workspace.tables_folder
    place = root / table["path"]
    return place if place.is_dir() else place.parent if place.parent.is_dir() else root


def _duckdb_table(path: Path, name: str) -> Any:
    duckdb = load_optional("duckdb", "a DuckDB file")
    if not path.is_file():
        raise PageError(f"There is no file {path.name!r}.")
    with redacted(
        lambda err: PageError(f"{path.name!r} has no table {name!r} that can be read ({type(err).__name__}).")
    ):
        connection = duckdb.connect(str(path), read_only=True, config=_NOTHING_ELSE)
        return connection.table(name)


def _name(path: str, table: str) -> str:
    base = table or Path(path).name or path
    return base.split(".")[0].replace("*", "").strip("-_ ") or "table"
