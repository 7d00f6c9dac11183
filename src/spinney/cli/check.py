"""`spinney check`: all faults of a schema and a table at once, for the holder, without charging anything."""

from __future__ import annotations

import json
from typing import Any

import click

from spinney.cli.command import FILE, TABLE, Verb, json_option
from spinney.cli.csv_options import csv_options
from spinney.cli.given import given_tables, tables_option


@click.command(
    cls=Verb,
    examples=(
        "spinney check people.csv --schema schema.toml",
        "spinney check adult.csv --schema adult.toml --target income",
        "spinney check people.csv --schema schema.toml --delimiter ';' --decimal , --date-format %d/%m/%Y",
        "spinney check 'trips/*.parquet' --schema trips.toml --json",
        "zcat people.csv.gz | spinney check - --schema schema.toml",
        "spinney check --tables shop.toml --target customers.churn",
    ),
)
@click.argument("table", type=TABLE, required=False)
@click.option("--schema", "schema_path", type=FILE, metavar="FILE", help="The TOML file that states what is public.")
@tables_option
@click.option("--target", metavar="NAME", help="The column that is to be predicted from the others, as for fit.")
@click.option(
    "--workload", multiple=True, metavar="NAME,NAME,...", help="Columns whose table is measured as stated, as for fit."
)
@click.option(
    "--analysis", multiple=True, metavar="FORMULA", help="A linear regression whose sums are measured, as for fit."
)
@click.option(
    "--method",
    type=click.Choice(["auto", "tree", "forest", "grid", "linked"]),
    default="auto",
    show_default=True,
    help="The method, as for fit.",
)
@click.option(
    "--engine",
    type=click.Choice(["polars", "duckdb", "spark", "memory"]),
    help="The library that reads Parquet files, instead of Spinney itself.",
)
@csv_options
@json_option
def check(
    table: str | None,
    schema_path: str | None,
    tables_path: str | None,
    target: str | None,
    workload: tuple[str, ...],
    analysis: tuple[str, ...],
    method: str,
    engine: str | None,
    as_json: bool,
    **parameters: Any,
) -> None:
    """List all faults of a schema and of TABLE at once. For the holder only.

    TABLE is what fit takes. The page counts rows of the private table without noise: do not publish it. It never
    quotes a value. Nothing is charged, and nothing is released.

    A fault is something that fit would refuse: a schema entry that is wrong, a column on one side only, a type that
    does not fit, a value that cannot be read, a missing value where none may be. A warning is something that fit would
    accept although you may not mean it: values outside the bounds, rows that break a rule, a column of one value. The
    exit status is 1 if there are faults, and 0 otherwise.

    Where rows belong to persons, by a table [person] in the schema or by the links of --tables, keys are looked at too:
    missing keys, persons with two rows in their own table, rows of nobody, and rows that are left out because a person
    has more than the stated number. Where no persons are stated, you are told if the values of an identifier repeat.
    """
    from spinney.cli.fit import start_spark, tables_of
    from spinney.errors import InputError
    from spinney.synthesizers.checking import check as check_table

    if engine == "spark":
        start_spark()
    private = given_tables(table, schema_path, tables_path, parameters)
    stated = tables_of(workload) or None
    named = list(analysis) or None
    found = check_table(
        private.frames(),
        private.stated() if schema_path is None else schema_path,
        target=target,
        workload=stated,
        analyses=named,
        method=method,
        engine=engine,
    )
    click.echo(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if as_json else str(found))
    if not found.is_clean:
        n_faults = len(found.faults)
        raise InputError(f"the check found {'1 fault' if n_faults == 1 else f'{n_faults} faults'}, listed above")
