"""What can go wrong, in a handful of classes that a caller may catch, and errors of other libraries as ours.

Every message names the argument, its value when that value is public, and the remedy. A value that came out of
the private table never appears: the column is named instead. That holds for the errors of other libraries too:
`redacted` replaces them, and `raise_alone` keeps them out of the chain of causes.

    classes        errors and warnings, all but warnings under `SpinneyError`
    redaction      `redacted`, inside which the code of other libraries runs on private rows
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn


class SpinneyError(Exception):
    """Base of every error that Spinney raises on purpose."""


class ParameterError(SpinneyError, ValueError):
    """A parameter of a synthesizer, a sampler or a command is out of range."""


class UnknownParameterError(ParameterError, TypeError):
    """A synthesizer has no parameter of this name. The message says which it has, or who has this one."""


class SchemaError(SpinneyError, ValueError):
    """The schema is incomplete, contradictory, or does not describe the table at hand."""


class InputError(SpinneyError, ValueError):
    """The table cannot be read under its schema. Names the column, never a value."""


class BudgetError(SpinneyError, ValueError):
    """A charge would exceed the budget, or the budget is too small for what was asked."""


class NotFittedError(SpinneyError, AttributeError):
    """A result was asked for before `fit`."""


class FileError(SpinneyError, OSError):
    """A file is missing, damaged, foreign or from a newer version, or cannot be written where it was wanted."""


class MissingExtraError(SpinneyError, ImportError):
    """An optional dependency is needed for this and is not installed."""


class SpinneyWarning(UserWarning):
    """The base class of all warnings that Spinney gives."""


class PrivacyWarning(SpinneyWarning):
    """The promise that was asked for is weaker than it looks: its epsilon or its delta is too large."""


class LedgerWarning(SpinneyWarning):
    """What was charged is on record, and something that should stand beside it could not be recorded."""


class SchemaWarning(SpinneyWarning):
    """What was released suggests that the schema does not describe the table as it was meant to."""


class ParameterWarning(SpinneyWarning):
    """A parameter has a value that is no longer there, and another one is taken for it."""


# Each time, not once for each line of a program: every fit has a promise of its own. Filters of the user come first.
warnings.simplefilter("always", SpinneyWarning, append=True)


def raise_alone(problem: SpinneyError) -> NoReturn:
    """Raise an error without the one that is being handled, whose message may quote private values.

    `raise ... from None` only hides the other error: it stays in `__context__`, where loggers and debuggers find it.
    """
    try:
        raise problem from None
    finally:
        problem.__context__ = None


# ------------------------------------------------------------------------------------------------------------ redaction
# Errors of other libraries as ours, without what they say.
#
# pandas, polars, Arrow, DuckDB, Spark, and objects inside a column quote values of the table in their messages.
# Whatever runs their code on private rows does so inside `redacted`: the caller states the error that takes the
# place of theirs, and that error has neither a cause nor a context, where a logger would find the other one.


@contextmanager
def redacted(told: Callable[[BaseException], SpinneyError | None], *, at: str | None = None) -> Iterator[None]:
    """Replace errors of other libraries by what `told` makes of them; where it makes None, they pass.

    Our own errors pass, and so do a lack of memory and an interruption.

    Args:
        told: our error, given theirs. It may look at the class of the error, not at its message.
        at: where we are, such as "column 'age'"; goes before the message of our own errors about the table too.
    """
    try:
        yield
    except (InputError, SchemaError) as err:
        if at is None:
            raise
        placed = type(err)(f"{at}: {err}")
        placed.__dict__.update(err.__dict__)
        raise_alone(placed)
    except (SpinneyError, MemoryError):
        raise
    except BaseException as err:
        name = type(err).__name__
        if name == "InterruptException":  # what DuckDB makes of Ctrl-C
            _interrupt()
        # A panic of a compiled engine is no Exception, and quotes what it stumbled over all the same.
        if not isinstance(err, Exception) and name != "PanicException":
            raise
        problem = told(err)
        if problem is None:
            raise
        raise_alone(problem)


def _interrupt() -> NoReturn:
    interruption = KeyboardInterrupt()
    try:
        raise interruption from None
    finally:
        interruption.__context__ = None
