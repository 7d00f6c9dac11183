"""What comes after a charge: errors, each of which says what was paid and to which account, and what it paid for.

Whoever reads an error that says nothing of a charge takes it that nothing was charged, and asks again. The error that
leaves has neither a cause nor a context, since what went wrong was looking at private rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction

from spinney.errors import InputError, SpinneyError, raise_alone
from spinney.privacy.ledger import Ledger, decimal
from spinney.release.model import Release
from spinney.release.storage import digest
from spinney.schema.digests import schema_digest
from spinney.schema.people import PeopleShape, Tables
from spinney.schema.table import Schema
from spinney.synthesizers.validation import warn_of_ledger


@contextmanager
def told_of_charge(books: Ledger, account: Ledger, price: Fraction) -> Iterator[None]:
    """Add to errors that `price` was charged to `account`, once `books`, which are charged after it, have an event."""
    with _told(
        books, lambda: f"{charged_text(price, account)}, and no answer came of it; asking again is charged again"
    ):
        try:
            yield
        except BaseException as err:
            with suppress(Exception):  # what went wrong first is what has to be told
                account.record_failure(type(err).__name__)
            raise


@contextmanager
def told_of_fit(books: Ledger, account: Ledger | None) -> Iterator[None]:
    """Add to errors of a fit what was charged to the account that was given; without one nobody keeps count.

    The account learns that the fit failed, by the kind of error alone.
    """
    if account is None:
        yield
        return
    with _told(
        books, lambda: f"{charged_text(books.spent, account)}, and nothing was released; fitting again is charged again"
    ):
        try:
            yield
        except BaseException as err:
            with suppress(Exception):  # what went wrong first is what has to be told
                account.record_failure(type(err).__name__)
            raise


def started(account: Ledger | None, stated: Schema | Tables | PeopleShape) -> Ledger | None:
    """The account for one release of a table about which so much is public; None where there is no account."""
    return None if account is None else account.start(schema=schema_digest(stated))


def record_release(account: Ledger | None, release: Release) -> None:
    """Record the release that was paid for, where an account is kept in a place."""
    if account is not None and account.address is not None:
        record_outcome(account, digest(release), "release")


def record_outcome(account: Ledger, found: str, what: str) -> None:
    """Record what was paid for, by its digest. It is worth more than its record: a warning says where that fails."""
    try:
        account.record_release(found)
    except SpinneyError as err:
        warn_of_ledger(f"the charge is on record, and the digest of the {what}, {found}, is not: {err}")


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
    place = "the ledger" if account.address is None else repr(account.address)
    return f"epsilon={decimal(price)} was charged to {place}"
