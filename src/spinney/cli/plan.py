"""`spinney plan`: what epsilon buys for a table of a given schema and size, before anything is read or spent."""

from __future__ import annotations

from typing import Any

import click

from spinney.cli.command import FILE, ROWS, Verb, json_option
from spinney.cli.fit import as_option, given_parameters, with_parameters
from spinney.shown import json_text


@click.command(
    cls=Verb,
    examples=(
        "spinney plan adult.toml --rows 48842 --epsilon 1 --target income",
        "spinney plan adult.toml --rows 48842 --epsilon 0.1 --epsilon 1 --epsilon 10",
        "spinney plan adult.toml --rows 48842 --epsilon 1 --quality high --utility-share 0.02",
        "spinney plan town.toml --rows 1e5 --epsilon 1 --method grid --bins 20",
        "spinney plan visits.toml --persons 2000 --epsilon 1 --json | jq .errors",
        "spinney plan --tables shop.toml --persons 2000 --epsilon 1",
    ),
)
@click.argument("schema_path", type=FILE, metavar="SCHEMA", required=False)
@click.option(
    "--tables",
    "tables_path",
    type=FILE,
    metavar="FILE",
    help="The TOML file that describes linked tables, in place of SCHEMA. The tables themselves are not opened.",
)
@click.option("--rows", "n_rows", type=ROWS, metavar="N", help="How many rows the table has, as you state it.")
@click.option(
    "--persons",
    "n_persons",
    type=ROWS,
    metavar="N",
    help="How many persons there are, in place of --rows, where the schema says whose rows they are.",
)
@click.option(
    "--epsilon",
    required=True,
    multiple=True,
    metavar="NUMBER",
    help="The total privacy budget, as an exact number such as 1, 0.1 or 1/3. Repeat it to compare several.",
)
@click.option(
    "--class-size",
    type=ROWS,
    metavar="N",
    help="Forest with --target: a guess of how many rows its second largest class has. Default: no class is rare.",
)
@with_parameters
@json_option
def plan(
    schema_path: str | None,
    tables_path: str | None,
    n_rows: int | None,
    n_persons: int | None,
    epsilon: tuple[str, ...],
    class_size: int | None,
    method: str,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Say what epsilon buys for a table described by SCHEMA. No table is read, and nothing is spent.

    The page shows the method and why it is chosen, the guarantee as odds, what would be counted together, how far
    counts would be off, where the budget would go, and what only the rows can tell. A fit of as many rows with the same
    options states the same noise on its card, except for what it finds on the way: private bounds, private values, the
    sizes of a target's classes.

    With --unit add-remove the number of rows is private; then --rows stands for --assumed-rows. All other options are
    those of fit.
    """
    from spinney.planning.plan import Plans, plan_of
    from spinney.schema.people import Tables
    from spinney.schema.table import Schema
    from spinney.synthesizers.method import whose_rows

    if (schema_path is None) == (tables_path is None):
        raise click.UsageError("name one SCHEMA, or linked tables with --tables FILE")
    stated = Tables.from_file(tables_path) if tables_path is not None else Schema.from_file(str(schema_path))
    number = _one_number(n_rows, n_persons, of_persons=whose_rows(stated) is not None)
    given = given_parameters(parameters)
    found = [
        plan_of(stated, number, each, method=method, class_size=class_size, options=given, spelt=as_option)
        for each in epsilon
    ]
    shown = found[0] if len(found) == 1 else Plans(found)
    click.echo(json_text(shown.to_dict()) if as_json else str(shown))


def _one_number(n_rows: int | None, n_persons: int | None, *, of_persons: bool) -> int:
    if n_rows is not None and n_persons is not None:
        raise click.UsageError("--rows and --persons are both given; name one of them")
    if n_persons is not None and not of_persons:
        raise click.UsageError("--persons: the schema does not say whose rows they are; say --rows N")
    number = n_persons if n_rows is None else n_rows
    if number is None:
        raise click.UsageError(f"{'--persons' if of_persons else '--rows'} is missing; say how many there are")
    if of_persons and n_persons is None:
        raise click.UsageError("--rows: the schema says whose rows they are, so plan for persons; say --persons N")
    return number
