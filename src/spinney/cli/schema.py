"""`spinney schema`: what has to be stated about a table, as a template."""

from __future__ import annotations

import shlex
from typing import IO, TYPE_CHECKING, Any

import click

from spinney.cli.command import TABLE, Verb, check_output, files_of, force_option
from spinney.cli.csv_options import as_options, csv_options, take_csv
from spinney.shown import printable

if TYPE_CHECKING:
    import pyarrow as pa

# Columns of strings that are looked at, each in a pass of its own.
_MOST_TEXTS = 8


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

    Beside the template, the terminal says which columns name rows, and which repeat as keys of persons do. That comes
    from the rows: it is for the holder alone, and is not written into the template.
    """
    from spinney.cli.tables import given_table
    from spinney.files import write_whole
    from spinney.schema.template import schema_template
    from spinney.tables.typed import file_types

    csv = take_csv(table, parameters)
    if out == "-":
        out = None
    if out is not None:
        check_output(out, force=force, inputs=files_of(table))
    given = given_table(table, csv)  # what comes through a pipe is read once, and held
    types = file_types(given)
    if csv is not None and csv.date_format is not None and not any(map(_is_day_or_time, types.types)):
        click.secho(
            "caution: no column matches the format of --date-format; look at a line of the file",
            err=True,
            fg="yellow",
        )
    text = schema_template(types, private_bounds=private_bounds)
    for line in _for_the_holder(given, types):
        click.secho(line, err=True, fg="yellow")
    if out is None:
        click.echo(text, nl=False)
        return

    def write(file: IO[bytes]) -> None:
        file.write(text.encode())

    write_whole(out, write, overwrite=force)
    then = f"spinney fit {shlex.quote(table)} --schema {shlex.quote(out)} {as_options(csv)}..."
    click.echo(f"wrote {out}; check it, fill in the blanks, then run: {then}")


def _for_the_holder(table: Any, types: pa.Schema) -> list[str]:
    """What rows say of keys, on the terminal alone: the template is made of names and types, and may be published."""
    import pyarrow as pa

    from spinney.columns import Boolean, Column, Identifier, Integer
    from spinney.columns.arrow import is_string
    from spinney.errors import SpinneyError
    from spinney.schema.person_names import suggested_keys
    from spinney.schema.table import Schema
    from spinney.synthesizers.checking_keys import likely_keys
    from spinney.tables.opening import open_source

    columns: dict[str, Column] = {}
    for one in types:
        is_whole, is_boolean = pa.types.is_integer(one.type), pa.types.is_boolean(one.type)
        columns[one.name] = Integer(bounds="private") if is_whole else Boolean() if is_boolean else Identifier()
    texts = [one.name for one in types if is_string(one.type)]
    texts = list(dict.fromkeys([*suggested_keys(texts), *texts]))[:_MOST_TEXTS]
    try:
        schema = Schema(columns)
        n_rows = open_source(table, Schema(dict.fromkeys(columns, Identifier()))).n_rows
        found = likely_keys(table, schema, None, n_rows, identifiers=texts)
    except SpinneyError:  # a table that cannot be read has a template all the same
        return []
    lines = [
        *(
            f"  {name!r} has another value in every row, so it is no key of persons with several rows"
            for name in found.of_rows
        ),
        *(
            f"  {name!r} repeats as keys of persons do: if it says whose row it is, state it in [person]"
            for name in found.of_persons
        ),
    ]
    head = "for your eyes only, as rows were looked at; none of it is in the template:"
    return [printable(line) for line in ([head, *lines] if lines else [])]


def _is_day_or_time(kind: Any) -> bool:
    from pyarrow.types import is_date, is_timestamp

    return bool(is_date(kind) or is_timestamp(kind))
