"""How a run ends: the exit status and the one message, decided here for every verb.

    0    done
    1    a failed run: values do not fit the schema, the budget does not suffice, a file cannot be read or written
    2    a wrong call: a bad option or parameter, a schema that does not describe the table's columns, a missing input,
         an output that exists
    3    an audit that had too little time to tell anything
    130  interrupted

A user's mistake never shows a traceback. A bug in Spinney shows one only on request, because the values in a traceback
may be private.
"""

from __future__ import annotations

import json
import os
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from spinney.errors import LedgerWarning, ParameterError, PrivacyWarning, SchemaError, SchemaWarning, SpinneyError
from spinney.shown import clipped, printable

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


def report(err: BaseException, arguments: Sequence[str]) -> None:
    """Print the message on standard error, as text or, where the command line asks for it, as one line of JSON."""
    told = message(err, may_charge=bool(set(CHARGING) & set(arguments[:1])))
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(err)
    if "--json" in arguments:
        click.echo(json.dumps({"error": told}), err=True)
        return
    click.secho("error: ", err=True, nl=False, fg="red")
    click.echo(printable(told, keep="\n"), err=True)
    if isinstance(err, click.UsageError) and err.ctx is not None:
        click.echo(f"for usage, run: {err.ctx.command_path} --help", err=True)


@contextmanager
def told_warnings() -> Iterator[None]:
    """Print what the library warns of as one line on standard error, when it happens; other warnings as usual."""
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, (PrivacyWarning, LedgerWarning, SchemaWarning)):
                click.secho(f"caution: {message}", err=True, fg="yellow")
            else:
                show_others(message, category, *place, **more)

        for ours in (PrivacyWarning, LedgerWarning, SchemaWarning):
            warnings.simplefilter("always", ours)
        warnings.showwarning = show
        yield
