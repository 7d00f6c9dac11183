"""Errors of other libraries as ours, without what they say.

pandas, polars, Arrow, DuckDB, Spark, and objects inside a column quote values of the table in their messages. Whatever
runs their code on private rows does so inside `redacted`: the caller states what is told instead, and the error that
leaves has neither a cause nor a context, where a logger would find the other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from spinney.errors import InputError, SchemaError, SpinneyError, raise_alone


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
