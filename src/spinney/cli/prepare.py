"""The verbs before a fit: `check`, `plan` and `schema`. None of them charges anything.

`plan` reads no table. `schema` prints a template that is made of names and types and may be published; `check`,
and what `schema` reports of keys, read the rows and are FOR THE HOLDER ONLY.

    check    all faults of a schema and a table at once
    plan     what epsilon buys for a table of a given schema and size
    schema   what has to be stated about a table, as a template
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.command import (
    FILE,
    ROWS,
    TABLE,
    Verb,
    as_options,
    caution,
    check_output,
    csv_options,
    files_of,
    force_option,
    given_tables,
    json_option,
    option,
    show,
    tables_option,
    take_csv,
)
from spinney.cli.fit import as_option, given_parameters, with_parameters
from spinney.text import many, printable

if TYPE_CHECKING:
    import pyarrow as pa


# ---------------------------------------------------------------------------------------------------------------- check
# `spinney check`: all faults of a schema and a table at once, for the holder, without charging anything.


@click.command(cls=Verb)
@click.argument("table", type=TABLE, required=False)
@option("--schema FILE", "The TOML file that states what is public.", name="schema_path", type=FILE)
@tables_option
@option("--target NAME", "The column that is to be predicted from the others, as for fit.")
@option("--workload NAME,NAME,...", "Columns whose table is measured as stated, as for fit.", multiple=True)
@option("--analysis FORMULA", "A linear regression whose sums are measured, as for fit.", multiple=True)
@option("--method auto|tree|forest|grid|linked", "The method, as for fit.", default="auto")
@option("--engine polars|duckdb|spark|memory", "The library that reads Parquet files, instead of Spinney itself.")
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

    Examples:
        spinney check people.csv --schema schema.toml
        spinney check adult.csv --schema adult.toml --target income
        spinney check people.csv --schema schema.toml --delimiter ';' --decimal , --date-format %d/%m/%Y
        spinney check 'trips/*.parquet' --schema trips.toml --json
        zcat people.csv.gz | spinney check - --schema schema.toml
        spinney check --tables shop.toml --target customers.churn
    """
    from spinney.cli.fit import start_spark, tables_of
    from spinney.errors import InputError
    from spinney.synthesizers.check import check as check_table

    if engine == "spark":
        start_spark()
    private = given_tables(table, schema_path, tables_path, parameters)
    found = check_table(
        private.frames(),
        private.stated() if schema_path is None else schema_path,
        target=target,
        workload=tables_of(workload) or None,
        analyses=list(analysis) or None,
        method=method,
        engine=engine,
    )
    show(found, as_json=as_json)
    if not found.is_clean:
        raise InputError(f"the check found {many(len(found.faults), 'fault')}, listed above")


# ----------------------------------------------------------------------------------------------------------------- plan
# `spinney plan`: what epsilon buys for a table of a given schema and size, before anything is read or spent.


@click.command(cls=Verb)
@click.argument("schema_path", type=FILE, metavar="SCHEMA", required=False)
@option(
    "--tables FILE",
    "The TOML file that describes linked tables, in place of SCHEMA. The tables themselves are not opened.",
    name="tables_path",
    type=FILE,
)
@option("--rows N", "How many rows the table has, as you state it.", name="n_rows", type=ROWS)
@option(
    "--persons N",
    "How many persons there are, in place of --rows, where the schema says whose rows they are.",
    name="n_persons",
    type=ROWS,
)
@option(
    "--epsilon NUMBER",
    "The total privacy budget, as an exact number such as 1, 0.1 or 1/3. Repeat it to compare several.",
    required=True,
    multiple=True,
)
@option(
    "--class-size N",
    "Forest with --target: a guess of how many rows its second largest class has. Default: no class is rare.",
    type=ROWS,
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

    Examples:
        spinney plan adult.toml --rows 48842 --epsilon 1 --target income
        spinney plan adult.toml --rows 48842 --epsilon 0.1 --epsilon 1 --epsilon 10
        spinney plan adult.toml --rows 48842 --epsilon 1 --quality high --utility-share 0.02
        spinney plan town.toml --rows 1e5 --epsilon 1 --method grid --bins 20
        spinney plan visits.toml --persons 2000 --epsilon 1 --json | jq .errors
        spinney plan --tables shop.toml --persons 2000 --epsilon 1
    """
    from spinney.planning.plan import Plans, plan_of
    from spinney.schema.linked import Tables
    from spinney.schema.schema import Schema
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
    show(found[0] if len(found) == 1 else Plans(found), as_json=as_json)


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


# --------------------------------------------------------------------------------------------------------------- schema
# `spinney schema`: what has to be stated about a table, as a template.


# Columns of strings that are looked at, each in a pass of its own.
_MOST_TEXTS = 8


@click.command(cls=Verb)
@click.argument("table", type=TABLE)
@option("--out FILE", "The template file. Default, and for -: print it.")
@option("--private-bounds", "Let fit estimate the bounds privately, using part of epsilon.")
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

    Examples:
        spinney schema people.csv --out schema.toml
        spinney schema places.csv --private-bounds --out schema.toml
        spinney schema people.parquet
        spinney schema people.csv --delimiter ';' --decimal , --date-format %d/%m/%Y --out schema.toml
        spinney schema people.csv --no-header --names age,town,income --out schema.toml
        zcat people.csv.gz | spinney schema - --out schema.toml
    """
    from spinney.cli.tables import given_table
    from spinney.files import write_whole
    from spinney.schema.template import schema_template
    from spinney.tables.preview import file_types

    csv = take_csv(table, parameters)
    if out == "-":
        out = None
    if out is not None:
        check_output(out, force=force, inputs=files_of(table))
    given = given_table(table, csv)  # what comes through a pipe is read once, and held
    types = file_types(given)
    if csv is not None and csv.date_format is not None and not any(map(_is_day_or_time, types.types)):
        caution("no column matches the format of --date-format; look at a line of the file")
    text = schema_template(types, private_bounds=private_bounds)
    for line in _for_the_holder(given, types):
        click.secho(line, err=True, fg="yellow")
    if out is None:
        click.echo(text, nl=False)
        return

    write_whole(out, text, overwrite=force)
    then = f"spinney fit {shlex.quote(table)} --schema {shlex.quote(out)} {as_options(csv)}..."
    click.echo(f"wrote {out}; check it, fill in the blanks, then run: {then}")


def _for_the_holder(table: Any, types: pa.Schema) -> list[str]:
    """What rows say of keys, on the terminal alone: the template is made of names and types, and may be published."""
    import pyarrow as pa

    from spinney.columns import Boolean, Column, Identifier, Integer
    from spinney.columns.reading import is_string
    from spinney.errors import SpinneyError
    from spinney.schema.persons import suggested_keys
    from spinney.schema.schema import Schema
    from spinney.synthesizers.check import likely_keys
    from spinney.tables.open import open_source

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
