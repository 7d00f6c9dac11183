"""What can go wrong, in a handful of classes that a caller may catch.

Every message names the argument, its value when that value is public, and the remedy. A value that came out of the
private table never appears: the column is named instead.
"""

from __future__ import annotations

import warnings
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


class PrivacyWarning(UserWarning):
    """The promise that was asked for is weaker than it looks: its epsilon or its delta is too large."""


class LedgerWarning(UserWarning):
    """What was charged is on record, and something that should stand beside it could not be recorded."""


class SchemaWarning(UserWarning):
    """What was released suggests that the schema does not describe the table as it was meant to."""


# Each time, not once for each line of a program: every fit has a promise of its own. Filters of the user come first.
for _category in (PrivacyWarning, LedgerWarning, SchemaWarning):
    warnings.simplefilter("always", _category, append=True)


def raise_alone(problem: SpinneyError) -> NoReturn:
    """Raise an error without the one that is being handled, whose message may quote private values.

    `raise ... from None` only hides the other error: it stays in `__context__`, where loggers and debuggers find it.
    """
    try:
        raise problem from None
    finally:
        problem.__context__ = None
