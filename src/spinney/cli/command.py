"""What the verbs share: help that ends with examples, common options, and the check of an output before any work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.shown import printable

if TYPE_CHECKING:
    from spinney.release.card import Card

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
        from spinney.errors import FileError
        from spinney.tables.paths.expanding import is_remote

        place = str(value)
        if not is_remote(place):
            try:
                files_of(place)
            except FileError as err:
                self.fail(str(err), param, ctx)
        return place


def files_of(table: str) -> tuple[str, ...]:
    """The files that a TABLE means; none where it comes through a pipe."""
    from spinney.tables.paths.expanding import list_files

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


class Verb(click.Command):
    """A command with examples: `--help` ends with them and the reference page shows the same ones."""

    def __init__(self, *args: Any, examples: Sequence[str], **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Examples"):
            for line in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


force_option = click.option("--force", is_flag=True, help="Overwrite the output if it exists.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, errors included.")


def check_output(path: str, *, force: bool, inputs: Sequence[str] = (), can_force: bool = True) -> None:
    """Raise a usage error unless a file can be put at `path`. Verbs call this before they read or spend anything."""
    from spinney.errors import FileError
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


def warn_of_none(option: str, number: int | None) -> None:
    """Say on standard error, where no rows are asked for, that there will be none."""
    if number == 0:
        click.secho(
            f"caution: {option} 0 asks for no rows; what is written has columns and no rows", err=True, fg="yellow"
        )


def warn_of_brands(card: Card) -> None:
    """Say loudly, on standard error, what voids the guarantee of a release."""
    for warning in card.to_dict()["warnings"]:
        click.secho(f"*** NOT PRIVATE *** {printable(warning)}", err=True, fg="red", bold=True)
