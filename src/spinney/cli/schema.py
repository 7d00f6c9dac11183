"""`spinney schema`: what has to be stated about a table, as a template."""

from __future__ import annotations

from typing import IO

import click

from spinney.cli.verb import TABLE, Verb, check_output, force_option


@click.command(
    cls=Verb,
    examples=(
        "spinney schema people.csv --out schema.toml",
        "spinney schema people.parquet",
        "zcat people.csv.gz | spinney schema - --out schema.toml",
    ),
)
@click.argument("table", type=TABLE)
@click.option("--out", metavar="FILE", help="The template; by default it is printed.")
@force_option
def schema(table: str, out: str | None, force: bool) -> None:
    """Print a schema template for TABLE.

    TABLE is a CSV or Parquet file, or - for CSV on standard input. Names and types are filled in. Bounds, categories
    and nulls are left for a person to state from public knowledge: which values happen to be in the table is private.
    """
    from spinney.cli.tables import read_types
    from spinney.cli.template import schema_template
    from spinney.release.storage import write_whole

    if out is not None:
        check_output(out, force=force, inputs=[table])
    text = schema_template(read_types(table))
    if out is None:
        click.echo(text, nl=False)
        return

    def write(file: IO[bytes]) -> None:
        file.write(text.encode())

    write_whole(out, write, overwrite=force)
    click.echo(f"wrote {out}; state the bounds and lists that are missing, then: spinney fit --schema {out}")
