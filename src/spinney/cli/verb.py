"""What the verbs share: help that ends with examples, common options, and the check of an output before any work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from spinney.release.card import Card

TABLE = click.Path(exists=True, dir_okay=False, allow_dash=True)
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

    if any(source != "-" and os.path.exists(path) and os.path.samefile(source, path) for source in inputs):
        raise click.UsageError(f"--out {path!r} is also an input; choose another name")
    if Path(path).is_file() and not force:
        raise click.UsageError(
            f"{path!r} exists; choose another name" + (", or say --force to overwrite it" if can_force else "")
        )
    try:
        check_writable(path, overwrite=force)
    except FileError as err:
        raise click.UsageError(str(err)) from err


def warn_of_brands(card: Card) -> None:
    """Say loudly, on standard error, what voids the guarantee of a release."""
    for warning in card.to_dict()["warnings"]:
        click.secho(f"*** NOT PRIVATE *** {warning}", err=True, fg="red", bold=True)
