"""NIST's national excerpt of the American Community Survey of 2019: its rows, and what is public about its columns.

Everything stated here stands in the data dictionary that NIST publishes beside the rows: codes, and the least and the
largest values that a column may have. "N", not applicable, is null. INDP and PUMA are listed in the file that describes
the excerpt, `national2019.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

import spinney as sp
from spinney.columns import Column
from spinney.errors import FileError

TEN = ("AGEP", "SEX", "MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP_DECILE", "DVET", "DEYE")
_NUMBERS: dict[str, Column] = {
    "AGEP": sp.Integer(0, 99),
    "PINCP": sp.Integer(-20_000, 2_000_000, nullable=True),
    "POVPIP": sp.Integer(0, 501, nullable=True),
    "DENSITY": sp.Real(10, 100_000),
    "PWGTP": sp.Integer(0, 9_999),
    "WGTP": sp.Integer(0, 9_999),
}
_FILES = ("data_dictionary.json", "national/national2019.csv", "national/national2019.json")


def check_folder(folder: Path) -> None:
    """Raise unless the folder holds the national excerpt."""
    for name in _FILES:
        if not (folder / name).is_file():
            raise FileError(
                f"--data {str(folder)!r} has no {name}; name the folder diverse_communities_data_excerpts that NIST "
                "publishes with the Collaborative Research Cycle"
            )


def load(folder: Path, columns: tuple[str, ...] | None = None) -> tuple[pl.DataFrame, sp.Schema]:
    """The rows and their schema; all columns unless some are named."""
    check_folder(folder)
    described = json.loads((folder / "national/national2019.json").read_text(encoding="utf-8"))["schema"]
    dictionary = json.loads((folder / "data_dictionary.json").read_text(encoding="utf-8"))
    rows = pl.read_csv(folder / "national/national2019.csv", infer_schema=False)
    names = columns or tuple(rows.columns)
    schema = sp.Schema({name: _column(name, described[name], dictionary[name]) for name in names})
    return rows.select(_values(name, schema[name]) for name in names), schema


def write(rows: pl.DataFrame, path: Path) -> None:
    """Rows as the scorer reads them: "N" for null."""
    rows.write_csv(path, null_value="N")


def _column(name: str, described: dict[str, Any], dictionary: dict[str, Any]) -> Column:
    if name in _NUMBERS:
        return _NUMBERS[name]
    codes = dictionary.get("values") or {}
    # Codes that are listed one by one; INDP, PUMA and counts of persons are listed with the excerpt instead.
    listed = [*described["values"]] if name in ("PUMA", "INDP") or "min" in codes else [*codes]
    return sp.Category([str(code) for code in listed if str(code) != "N"], nullable="N" in map(str, listed))


def _values(name: str, column: Column) -> pl.Expr:
    value = pl.when(pl.col(name) != "N").then(pl.col(name)).alias(name)
    if name in _NUMBERS:
        return value.cast(pl.Float64).cast(pl.Float64 if isinstance(column, sp.Real) else pl.Int64)
    return value
