"""What the verbs share: help, common options, tables and ledgers they are given, and how a run ends.

Verbs are thin. Whatever two of them need is here, so that one option has one spelling, one help text and one
check, and so that every output is checked before any work. Costly imports stay inside functions, so that
`--help` is quick.

    verbs            options spelt as help shows them, help of one screen, checks of outputs, what is printed
    csv options      `sp.CSV` on the command line
    exit             exit statuses, and the one message of an error
    inputs           one table and its schema, or linked tables that a file names
    ledger options   which ledger is charged, and what is recorded beside a charge
"""

from __future__ import annotations

import json
import os
import re
import shlex
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from spinney.errors import FileError, ParameterError, SchemaError, SpinneyError, SpinneyWarning
from spinney.text import clipped, json_text, printable

if TYPE_CHECKING:
    from spinney.privacy.accounts.shared import SharedLedger
    from spinney.release.card import Card
    from spinney.release.release import Release
    from spinney.schema.linked import Tables
    from spinney.schema.schema import Schema
    from spinney.tables.csv import CSV

    Command = Callable[..., Any]
    _Text = click.ParamType[str]
    _Whole = click.ParamType[int]
else:
    _Text = _Whole = click.ParamType  # which takes no parameter in older versions of click


# Of a number of rows: more than any sample has, and few enough to be written out.
_MOST_DIGITS = 30


class TablePath(_Text):
    """A file, a folder or a pattern of files, an address for Spark, a pipe, or - for standard input."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from spinney.tables.paths import is_remote

        place = str(value)
        if not is_remote(place):
            try:
                files_of(place)
            except FileError as err:
                self.fail(str(err), param, ctx)
        return place


def files_of(table: str) -> tuple[str, ...]:
    """The files that a TABLE means; none where it comes through a pipe."""
    from spinney.tables.paths import list_files

    return () if is_piped(table) else list_files(table)


def is_piped(table: str) -> bool:
    """Whether a table comes through a pipe, such as `-` or <(zcat table.csv.gz), and so can be read once only."""
    place = Path(table)
    return table == "-" or (place.exists() and not place.is_file() and not place.is_dir())


class RowCount(_Whole):
    """A whole number as people write large ones: 10000, 1_000_000, 1e9."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        with suppress(ArithmeticError):
            number = Decimal(str(value).strip())
            if number == number.to_integral_value() and number.adjusted() < _MOST_DIGITS:
                return int(number)
        raise click.BadParameter(f"{value!r} is not a whole number, such as 10000, 1_000_000 or 1e9", ctx, param)


TABLE = TablePath()
ROWS = RowCount()
FILE = click.Path(exists=True, dir_okay=False)


class Option(click.Option):
    """An option with its place in the help: the first screen, or a head of `--help-all`."""

    group: str | None = None


def option(spelling: str, text: str, *, name: str | None = None, **attributes: Any) -> Callable[[Command], Command]:
    """A decorator that gives a verb an option, spelt as its help shows it.

    Args:
        spelling: "--rows N" has a value, "--rule privtree|paper" one of some, "--force" and "--one/--no-one" have none.
        text: what it means.
        name: of the parameter of the verb, where it is not that of the option.
        **attributes: what else click takes; a default is shown, unless `show_default` says otherwise.
    """
    flags, _, value = spelling.partition(" ")
    if "|" in value and "type" not in attributes:
        attributes["type"] = click.Choice(value.split("|"))
    elif value:
        attributes["metavar"] = value
    elif "/" not in flags and "type" not in attributes:
        attributes["is_flag"] = True
    attributes.setdefault("show_default", attributes.get("default") is not None)
    names = [flags] if name is None else [flags, name]
    return click.option(*names, cls=Option, help=text, **attributes)


def options(*several: Callable[[Command], Command], group: str | None = None) -> Callable[[Command], Command]:
    """A decorator that gives a verb several options, in this order; those of a group stand under its head."""

    def decorate(command: Command) -> Command:
        n_before = len(getattr(command, "__click_params__", ()))
        reduce(lambda decorated, each: each(decorated), reversed(several), command)
        for added in getattr(command, "__click_params__", ())[n_before:]:
            added.group = added.group or group
        return command

    return decorate


# Marks a run that asks for all of the help.
_WHOLE_HELP = "spinney.help-all"


def _show_all(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:  # noqa: ARG001  # click's signature
    if wanted and not ctx.resilient_parsing:
        ctx.meta[_WHOLE_HELP] = True
        click.echo(ctx.get_help())
        ctx.exit()


class Verb(click.Command):
    """A command whose docstring ends with examples, and whose help is one screen: `--help-all` shows the rest.

    The first screen has the first two paragraphs, options of no group, and some examples.
    """

    def __init__(self, name: str | None = None, **attributes: Any) -> None:
        text, _, examples = cleandoc(attributes.get("help") or "").partition("\nExamples:\n")
        super().__init__(name, **attributes | {"help": text.rstrip()})
        self.examples = tuple(re.sub(r"\n\s{8,}", " ", examples).replace("    ", "").splitlines())
        n_options = sum(isinstance(each, click.Option) for each in self.params)
        self.has_more = any(getattr(each, "group", None) for each in self.params)
        if self.has_more:
            what = f"Show all {n_options} options, more on what it does, and {len(self.examples)} examples."
            self.params += [
                Option(["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all, help=what)
            ]

    def _is_whole(self, ctx: click.Context) -> bool:
        return not self.has_more or _WHOLE_HELP in ctx.meta

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        paragraphs = (self.help or "").split("\n\n")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\n\n".join(paragraphs if self._is_whole(ctx) else paragraphs[:2]))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            group = getattr(each, "group", None)
            record = each.get_help_record(ctx) if isinstance(each, click.Option) else None
            if record is not None and (group is None or self._is_whole(ctx)):
                groups.setdefault(group or "Options", []).append(record)
        for head, records in groups.items():
            with formatter.section(head):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shown = self.examples if self._is_whole(ctx) else self.examples[:_N_EXAMPLES]
        with formatter.section("Examples"):
            for line in shown:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


# Examples on the first screen of the help.
_N_EXAMPLES = 4


force_option = option("--force", "Overwrite the output if it exists.")
json_option = option("--json", "Print JSON, errors included.", name="as_json")


def check_output(path: str, *, force: bool, inputs: Sequence[str] = (), can_force: bool = True) -> None:
    """Raise a usage error unless a file can be put at `path`. Verbs call this before they read or spend anything."""
    from spinney.files import check_writable

    if os.path.exists(path) and any(os.path.samefile(source, path) for source in inputs):
        raise click.UsageError(f"--out {path!r} is also an input; choose another name")
    if Path(path).is_file() and not force:
        raise click.UsageError(
            f"{path!r} exists; choose another name" + (", or say --force to overwrite it" if can_force else "")
        )
    try:
        check_writable(path, overwrite=force)
    except FileError as err:
        raise click.UsageError(str(err)) from err


def show(result: Any, *, as_json: bool, **more: Any) -> None:
    """Print a result of the library, as its text or as JSON with what else there is to tell."""
    click.echo(json_text(result.to_dict() | more) if as_json else printable(str(result), keep="\n"))


def tell(described: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print what was done, as text or as JSON."""
    click.echo(json_text(described) if as_json else printable(text, keep="\n"))


def caution(text: str, word: str = "caution") -> None:
    """Say on standard error what somebody should look at."""
    click.secho(f"{word}: {printable(text)}", err=True, fg="yellow")


def alarm(text: str) -> None:
    """Say loudly, on standard error, what must not be overlooked."""
    click.secho(printable(text), err=True, fg="red", bold=True)


def warn_of_none(option: str, number: int | None) -> None:
    """Say on standard error, where no rows are asked for, that there will be none."""
    if number == 0:
        caution(f"{option} 0 asks for no rows; what is written has columns and no rows")


def warn_of_brands(card: Card) -> None:
    """Say what voids the guarantee of a release."""
    for warning in card.to_dict()["warnings"]:
        alarm(f"*** NOT PRIVATE *** {warning}")


def load_release(path: str) -> Release:
    """The release in a file, and on standard error what voids its guarantee."""
    from spinney.release.file import load

    loaded = load(path)
    warn_of_brands(loaded.card)
    return loaded


def check_picture(path: str | None, *, force: bool, inputs: Sequence[str]) -> None:
    """Raise, before anything is read, where a picture is wanted and cannot be drawn or written."""
    if path is None:
        return
    from spinney.machine import load_optional
    from spinney.report.pictures import check_picture_name

    check_picture_name(path)
    load_optional("matplotlib.figure", "a picture")
    check_output(path, force=force, inputs=inputs)


# ---------------------------------------------------------------------------------------------------------- csv options
# The options of `sp.CSV` (delimiter, encoding, ...) on the command line, for every verb that reads a table.


CSV_NAMES = ("delimiter", "decimal", "encoding", "date_format", "no_header", "names")

csv_options = options(
    option("--delimiter CHARACTER", "CSV: the character between fields; write tab for a tab. Default: a comma."),
    option("--decimal MARK", "CSV: the decimal mark of numbers, a point or a comma. Default: a point."),
    option(
        "--encoding NAME",
        "CSV: the encoding, such as latin-1, cp1252 or utf-16. Default: UTF-8, or the encoding of the byte order mark.",
    ),
    option(
        "--date-format [NAME=]FORMAT",
        "CSV: the format of dates and times, such as %d/%m/%Y; with NAME=, the format of one column. Default: ISO "
        "8601, such as 2024-01-31.",
        multiple=True,
    ),
    option("--no-header", "CSV: the first line is a row, not a header; needs --names."),
    option(
        "--names NAME,NAME,...",
        "CSV: the names of all columns, in place of the header. Put a name that contains a comma in double quotes.",
    ),
    group="CSV files",
)


engine_option = option(
    "--engine polars|duckdb|spark|memory",
    "The library that reads Parquet files, instead of Spinney itself; memory reads the table once and keeps it in "
    "memory.",
)


def take_csv(table: str, parameters: dict[str, Any]) -> CSV | None:
    """How TABLE is written, taken out of the parameters of a verb; None where nothing was said."""
    from spinney.release.answers.grammar import csv_fields
    from spinney.tables.csv import CSV
    from spinney.tables.paths import is_parquet, is_remote

    said = {name: parameters.pop(name) for name in CSV_NAMES}
    given = {name: value for name, value in said.items() if value not in (None, (), False)}
    if not given:
        return None
    if is_remote(table) or (not is_piped(table) and is_parquet(files_of(table)[0])):
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ParameterError(f"{options}: only CSV files take this, and {table!r} is not CSV; leave it out")
    if "delimiter" in given:
        given["delimiter"] = {"tab": "\t", "\\t": "\t"}.get(given["delimiter"], given["delimiter"])
    if "names" in given:
        given["names"] = [name.strip() for name in csv_fields(given["names"])]
    if "date_format" in given:
        given["date_format"] = _formats(given["date_format"])
    return CSV(table, header=not given.pop("no_header", False), **given)


def as_options(csv: CSV | None) -> str:
    """What was said about a CSV, to be said to the next verb."""
    if csv is None:
        return ""
    default = type(csv)("")
    said = {"delimiter": csv.delimiter, "decimal": csv.decimal, "encoding": csv.encoding}
    words = [
        word for name, value in said.items() if value != getattr(default, name) for word in (f"--{name}", str(value))
    ]
    formats = csv.date_format or {}
    for text in [formats] if isinstance(formats, str) else [f"{name}={value}" for name, value in formats.items()]:
        words += ["--date-format", text]
    words += [] if csv.header else ["--no-header"]
    words += [] if csv.names is None else ["--names", ",".join(map(_quoted, csv.names))]
    return shlex.join(words) + " "


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',"') else name


def _formats(values: tuple[str, ...]) -> str | dict[str, str]:
    """("%d/%m/%Y",) is one format for all columns; ("born=%d/%m/%Y",) is one for a column."""
    if len(values) == 1 and "=" not in values[0]:
        return values[0]
    pairs = [value.partition("=") for value in values]
    if not all(name and date_format for name, _, date_format in pairs):
        raise ParameterError(f"--date-format takes one format, or NAME=FORMAT for every column; got {' '.join(values)}")
    return {name: date_format for name, _, date_format in pairs}


# ----------------------------------------------------------------------------------------------------------------- exit
# How a run ends: the exit status and the one message, decided here for every verb.
#
#     0    done
#     1    a failed run: values do not fit the schema, the budget is too small, a file cannot be read or written
#     2    a wrong call: a bad option or parameter, a schema that does not describe the table's columns, a missing
#          input, an output that exists
#     3    an audit that had too little time to tell anything
#     130  interrupted
#
# A user's mistake never shows a traceback. A bug in Spinney shows one only on request, because the values in a
# traceback may be private.


FAILED, WRONG_CALL, COULD_NOT_TELL, INTERRUPTED = 1, 2, 3, 130

# The verbs that can charge a ledger.
CHARGING = ("fit", "ask")

TRACEBACK_VARIABLE = "SPINNEY_TRACEBACK"

# The first class that fits decides.
_STATUS: tuple[tuple[type[BaseException], int], ...] = (
    (click.UsageError, WRONG_CALL),
    (ParameterError, WRONG_CALL),
    (SchemaError, WRONG_CALL),
    (click.Abort, INTERRUPTED),
    (KeyboardInterrupt, INTERRUPTED),
)


def exit_status(err: BaseException) -> int:
    """The exit status that an error leads to."""
    return next((status for kind, status in _STATUS if isinstance(err, kind)), FAILED)


def message(err: BaseException, *, may_charge: bool = False) -> str:
    """What the person at the keyboard is told; `may_charge` says whether the verb can charge a ledger."""
    if isinstance(err, click.ClickException):
        return clipped(err.format_message())
    if isinstance(err, SpinneyError):
        return clipped(str(err))
    if isinstance(err, (click.Abort, KeyboardInterrupt)):
        # click raises an error of its own in place of Ctrl-C; what was noted is on the one that it comes from.
        notes = [note for one in (err, err.__cause__) for note in getattr(one, "__notes__", ())]
        charged = "no finished output was written, though a ledger may have been charged"
        told = "; ".join(notes) or (charged if may_charge else "no output was written")
        return clipped(f"interrupted; {told}")
    if isinstance(err, MemoryError):
        return "out of memory; use a machine with more memory, or fit or draw fewer rows at a time"
    if isinstance(err, OSError) and err.strerror:
        return f"{err.filename or 'input or output'}: {err.strerror}"
    return (
        f"unexpected {type(err).__name__}, which is a bug in Spinney; run again with {TRACEBACK_VARIABLE}=1 "
        "to see the traceback, which may quote private values"
    )


def say_error(text: str) -> None:
    """An error on standard error."""
    click.secho("error: ", err=True, nl=False, fg="red")
    click.echo(printable(text, keep="\n"), err=True)


def report(err: BaseException, arguments: Sequence[str]) -> None:
    """Print the message on standard error, as text or, where the command line asks for it, as one line of JSON."""
    told = message(err, may_charge=bool(set(CHARGING) & set(arguments[:1])))
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(err)
    if "--json" in arguments:
        click.echo(json.dumps({"error": told}), err=True)
        return
    say_error(told)
    if isinstance(err, click.UsageError) and err.ctx is not None:
        click.echo(f"for usage, run: {err.ctx.command_path} --help", err=True)


@contextmanager
def told_warnings() -> Iterator[None]:
    """Print what the library warns of as one line on standard error, when it happens; other warnings as usual."""
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, SpinneyWarning):
                caution(str(message))
            else:
                show_others(message, category, *place, **more)

        warnings.simplefilter("always", SpinneyWarning)
        warnings.showwarning = show
        yield


# --------------------------------------------------------------------------------------------------------------- inputs
# What a verb is given to look at: one table and its schema, or linked tables that a file names.


tables_option = option(
    "--tables FILE",
    "The TOML file that names linked tables, their schemas and the links between them; in place of TABLE and --schema.",
    name="tables_path",
    type=FILE,
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
    from spinney.schema.linked import Tables

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
    from spinney.schema.schema import Schema, schema_from_plain

    if not bounds_from_data:
        return Schema.from_file(path)
    described = parse_toml(read_schema_text(path))
    columns = described.get("columns")
    entries = list(columns.values()) if isinstance(columns, dict) else []
    for entry in entries:
        kind = COLUMN_TYPES.get(str(entry.get("type"))) if isinstance(entry, dict) else None
        is_open = kind is not None and issubclass(kind, Bounded) and kind._widest is None
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
    from spinney.tables.paths import is_remote

    return [] if is_remote(path) else list(files_of(path))


def _csv_of(files: Mapping[str, str], parameters: dict[str, Any]) -> dict[str, CSV | None]:
    """How the CSV files among linked tables are written; those of other kinds take no such options."""
    from spinney.tables.paths import is_parquet

    said = {name: parameters.pop(name) for name in CSV_NAMES}
    of_csv = [name for name, path in files.items() if _listed(path) and not is_parquet(_listed(path)[0])]
    return {name: take_csv(files[name], dict(said)) for name in of_csv or files}


# ------------------------------------------------------------------------------------------------------- ledger options
# Options that name a ledger, and what is recorded beside a charge.


class LedgerPlace(_Text):
    """The path of a ledger, or the address of one on a PostgreSQL server."""

    name = "ledger"

    def __init__(self, *, exists: bool = True) -> None:
        self.exists = exists

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from spinney.privacy.accounts.shared import check_scheme, is_address

        place = str(value)
        check_scheme(place)  # before a file of that name is looked for: it may hold a password
        if not is_address(place):
            if Path(place).is_dir():
                self.fail(f"{place!r} is a folder; name a file in it", param, ctx)
            if self.exists and not Path(place).exists():
                self.fail(f"File {place!r} does not exist.", param, ctx)
        return place


LEDGER = LedgerPlace()
NEW_LEDGER = LedgerPlace(exists=False)

population_option = option(
    "--population NAME",
    "Whose budget it is, where the ledger holds several. Default: SPINNEY_POPULATION, or the only one.",
)

ledger_options = options(  # which `take_ledger` reads
    option(
        "--ledger LEDGER",
        "Charge this ledger, a file or postgresql://host/name; stop if too little of its budget is left. Default: "
        "the one that SPINNEY_LEDGER names, if any.",
        name="ledger_path",
        type=LEDGER,
    ),
    options(
        option("--no-ledger", "Charge no ledger, whatever SPINNEY_LEDGER says."),
        population_option,
        option(
            "--table NAME",
            "What the ledger calls the table; from its first charge on it belongs to one population.",
            name="table_name",
        ),
        option("--purpose TEXT", "What the release is for; it stays on record in the ledger."),
        option(
            "--request NUMBER",
            "The approved request that pays for the release; see `spinney ledger request`.",
            type=int,
        ),
        group="Ledger",
    ),
)
_DETAILS = {"population": "--population", "table_name": "--table", "purpose": "--purpose", "request": "--request"}


def take_ledger(parameters: dict[str, Any]) -> SharedLedger | Literal[False]:
    """The ledger that the options name, or else the machine's; False where there is none. They are taken out."""
    from spinney.privacy.accounts.shared import default_place
    from spinney.privacy.ledger import Ledger

    place, refuses = parameters.pop("ledger_path"), parameters.pop("no_ledger")
    details = {name: parameters.pop(name) for name in _DETAILS}
    if place is not None and refuses:
        raise click.UsageError("--ledger and --no-ledger contradict each other; give one of them")
    place = None if refuses else place or default_place()
    if place is None:
        for name, value in details.items():
            if value is not None:
                raise click.UsageError(f"{_DETAILS[name]} is for a ledger, and none is charged; name one with --ledger")
        return False
    details["table"] = details.pop("table_name")
    return Ledger.open(place, **details)
