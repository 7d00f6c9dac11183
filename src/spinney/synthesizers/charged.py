"""Errors that come after a charge: each of them says what was paid, and to which account.

Whoever reads an error that says nothing of a charge takes it that nothing was charged, and asks again. The error that
leaves has neither a cause nor a context, since what went wrong was looking at private rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from spinney.errors import InputError, SpinneyError, raise_alone
from spinney.privacy.ledger import Ledger, decimal


@contextmanager
def told_of_charge(books: Ledger, account: Ledger, price: Fraction) -> Iterator[None]:
    """Add to errors that `price` was charged to `account`, once `books`, which are charged after it, have an event."""
    with _told(
        books, lambda: f"{charged_text(price, account)}, and no answer came of it; asking again is charged again"
    ):
        yield


@contextmanager
def told_of_fit(books: Ledger, account: Ledger | None) -> Iterator[None]:
    """Add to errors of a fit what was charged to the account that was given; without one nobody keeps count."""
    if account is None:
        yield
        return
    with _told(
        books, lambda: f"{charged_text(books.spent, account)}, and nothing was released; fitting again is charged again"
    ):
        yield


@contextmanager
def _told(books: Ledger, what_was_paid: Callable[[], str]) -> Iterator[None]:
    try:
        yield
    except BaseException as err:
        if not books.spent:
            raise
        paid = what_was_paid()
        if not isinstance(err, Exception):  # an interruption stays one
            err.add_note(paid)
            raise
        if isinstance(err, SpinneyError):
            raise_alone(type(err)(f"{err}; {paid}"))
        what = "out of memory" if isinstance(err, MemoryError) else f"an unexpected {type(err).__name__}"
        raise_alone(InputError(f"{what} while the rows were counted; {paid}"))


def charged_text(price: Fraction, account: Ledger) -> str:
    """What was paid, and to whom, in words."""
    path: Path | None = getattr(account, "path", None)
    return f"epsilon={decimal(price)} was charged to {'the ledger' if path is None else repr(str(path))}"
