"""`spinney compare`: how near a synthetic table is to the real one, for the holder, without charging anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.command import FILE, TABLE, Verb, json_option
from spinney.cli.csv_options import csv_options, take_csv

if TYPE_CHECKING:
    from spinney.schema.table import Schema


@click.command(
    cls=Verb,
    examples=(
        "spinney compare people.csv synthetic.csv --schema schema.toml",
        "spinney compare people.parquet synthetic.parquet --release people.spinney --ways 3",
        "spinney compare people.csv synthetic.csv --schema schema.toml --delimiter ';' --decimal ,",
        "spinney compare people.csv synthetic.csv --schema schema.toml --scale range --bins 32 --json",
        "spinney compare customers.parquet shop/customers.parquet --release shop.spinney --table customers",
    ),
)
@click.argument("real", type=TABLE)
@click.argument("synthetic", type=TABLE)
@click.option("--schema", "schema_path", type=FILE, metavar="FILE", help="The TOML file that describes both tables.")
@click.option(
    "--release",
    type=FILE,
    metavar="FILE",
    help="The release, whose schema is taken instead: needed where bounds were estimated privately.",
)
@click.option("--table", metavar="NAME", help="Which table of a release of linked tables the files are of.")
@click.option(
    "--ways",
    type=click.IntRange(1, 3),
    metavar="N",
    default=2,
    show_default=True,
    help="Up to how many columns are looked at together.",
)
@click.option(
    "--bins",
    type=click.IntRange(1),
    metavar="N",
    default=16,
    show_default=True,
    help="Bins per column, for total variations.",
)
@click.option(
    "--scale",
    type=click.Choice(["quantiles", "range"]),
    default="quantiles",
    show_default=True,
    help="Bins that hold equal shares of the real rows, or equal parts of the bounds.",
)
@csv_options
@json_option
def compare(
    real: str,
    synthetic: str,
    schema_path: str | None,
    release: str | None,
    table: str | None,
    ways: int,
    bins: int,
    scale: str,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Compare a SYNTHETIC table with the REAL one. For the holder only.

    The page is computed from the real table without noise: do not publish it, and do not choose parameters by it. It
    shows for every column the Kolmogorov-Smirnov distance (KS), the total variation (TV), the Wasserstein distance, how
    much of the ten commonest values comes back exactly and how far the share of exact zeros is off, and the total
    variation of pairs of columns. Nothing is charged, and nothing is released.

    Both tables are held in memory. CSV options describe REAL; SYNTHETIC is read as `spinney sample` writes it.
    """
    from spinney.cli.tables import read_all
    from spinney.metrics.comparison import compare as compare_tables

    if (schema_path is None) == (release is None):
        raise click.UsageError("give either --schema or --release, which say what the columns are")
    csv = take_csv(real, parameters)
    schema = _schema(schema_path, release, table)
    private = read_all(real, schema, csv)
    if release is not None:  # which has no columns that were ignored
        private = private.select([name for name in private.column_names if name in schema])
    found = compare_tables(
        private,
        read_all(synthetic, schema),
        schema,
        ways=ways,
        bins=bins,
        scale=scale,  # type: ignore[arg-type]  # click has checked it
    )
    click.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if as_json else str(found))


def _schema(schema_path: str | None, release: str | None, table: str | None) -> Schema:
    from spinney.people.release.model import PeopleRelease
    from spinney.release.storage import load
    from spinney.schema.table import Schema

    loaded = None if release is None else load(release)
    tables = loaded.shape.tables if isinstance(loaded, PeopleRelease) else {}
    if table is not None and table not in tables:
        known = f"the release has {', '.join(map(repr, tables))}" if len(tables) > 1 else "leave it out"
        raise click.UsageError(f"--table {table!r} is not a table of a release of linked tables; {known}")
    if tables:
        if len(tables) > 1 and table is None:
            raise click.UsageError(f"the release has several tables; say --table {' or --table '.join(tables)}")
        return tables[table or next(iter(tables))]
    if loaded is not None:
        return loaded.schema
    assert schema_path is not None
    return Schema.from_file(schema_path)
