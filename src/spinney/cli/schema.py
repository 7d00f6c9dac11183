"""`spinney schema`: what has to be stated about a table, as a template."""

from __future__ import annotations

import shlex
from typing import IO, Any

import click

from spinney.cli.command import TABLE, Verb, check_output, files_of, force_option
from spinney.cli.csv_options import as_options, csv_options, take_csv


@click.command(
    cls=Verb,
    examples=(
        "spinney schema people.csv --out schema.toml",
        "spinney schema places.csv --private-bounds --out schema.toml",
        "spinney schema people.parquet",
        "spinney schema people.csv --delimiter ';' --decimal , --date-format %d/%m/%Y --out schema.toml",
        "spinney schema people.csv --no-header --names age,town,income --out schema.toml",
        "zcat people.csv.gz | spinney schema - --out schema.toml",
    ),
)
@click.argument("table", type=TABLE)
@click.option("--out", metavar="FILE", help="The template file. Default, and for -: print it.")
@click.option("--private-bounds", is_flag=True, help="Let fit estimate the bounds privately, using part of epsilon.")
@csv_options
@force_option
def schema(table: str, out: str | None, private_bounds: bool, force: bool, **parameters: Any) -> None:
    """Print a schema template for TABLE.

    TABLE is a CSV or Parquet file, a folder or a quoted pattern of such files, of which the first is read, or - for CSV
    on standard input. Names and types are filled in. Bounds, categories and nulls are for you to state from public
    knowledge, because the values that happen to be in the table are private. The template also explains how to state
    identifiers, steps, rules between columns and places.
    """
    from spinney.cli.tables import read_types
    from spinney.files import write_whole
    from spinney.schema.template import schema_template

    csv = take_csv(table, parameters)
    if out == "-":
        out = None
    if out is not None:
        check_output(out, force=force, inputs=files_of(table))
    types = read_types(table, csv)
    if csv is not None and csv.date_format is not None and not any(map(_is_day_or_time, types.types)):
        click.secho(
            "caution: no column matches the format of --date-format; look at a line of the file",
            err=True,
            fg="yellow",
        )
    text = schema_template(types, private_bounds=private_bounds)
    if out is None:
        click.echo(text, nl=False)
        return

    def write(file: IO[bytes]) -> None:
        file.write(text.encode())

    write_whole(out, write, overwrite=force)
    then = f"spinney fit {shlex.quote(table)} --schema {shlex.quote(out)} {as_options(csv)}..."
    click.echo(f"wrote {out}; check it, fill in the blanks, then run: {then}")


def _is_day_or_time(kind: Any) -> bool:
    from pyarrow.types import is_date, is_timestamp

    return bool(is_date(kind) or is_timestamp(kind))
