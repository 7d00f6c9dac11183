"""What comes after a charge: errors, each of which says what was paid and to which account, and what it paid for.

Whoever reads an error that says nothing of a charge takes it that nothing was charged, and asks again. The error that
leaves has neither a cause nor a context, since what went wrong was looking at private rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from typing import TYPE_CHECKING

from spinney.errors import InputError, SpinneyError, raise_alone
from spinney.privacy.ledger import Charge, Ledger, decimal
from spinney.release.model import Release
from spinney.release.storage import digest
from spinney.schema.digests import schema_digest
from spinney.schema.people import PeopleShape, Tables
from spinney.schema.table import Schema
from spinney.synthesizers.validation import LedgerLike, checked_ledger, warn_of_ledger

if TYPE_CHECKING:
    from spinney.synthesizers.method import AnySynthesizer

# What came of a charge where an error followed it, and what asking for it anew would mean.
NO_ANSWER = "no answer came of it; asking again is charged again"
NO_RELEASE = "nothing was released; fitting again is charged again"
RELEASE_LOST = "its release is lost with this error; fitting again is charged again"


@contextmanager
def told_of_charge(books: Ledger, account: Ledger | None, came_of_it: str = NO_RELEASE) -> Iterator[None]:
    """Add to every error what was charged before it, and to which account; nothing where nothing was.

    Args:
        books: the ledger of this fit or answer alone, which is charged after the account.
        account: the account that was given, or None: the budget is then spent, and on no record.
        came_of_it: what came of the charge, in words.
    """
    try:
        yield
    except BaseException as err:
        paid = _paid(books, account)
        if paid is None:
            raise
        with suppress(Exception):  # what went wrong first is what has to be told
            if account is not None:
                account.record_failure(type(err).__name__)
        told = f"{paid}, and {came_of_it}"
        if not isinstance(err, Exception):  # an interruption stays one
            err.add_note(told)
            raise
        if isinstance(err, SpinneyError):
            raise_alone(type(err)(f"{err}; {told}"))
        what = "out of memory" if isinstance(err, MemoryError) else f"an unexpected {type(err).__name__}"
        raise_alone(InputError(f"{what} while the rows were counted; {told}"))


@contextmanager
def lost_with_errors(model: AnySynthesizer, ledger: LedgerLike) -> Iterator[None]:
    """The same where one call fits and goes on: its release is in nobody's hands yet, so an error is the end of it."""
    books = Ledger(unit=model.card_.unit)
    books.charge(*(event for event in model.card_.events if isinstance(event, Charge)))
    account = checked_ledger(ledger)
    with told_of_charge(books, account, RELEASE_LOST):
        yield


def _paid(books: Ledger, account: Ledger | None) -> str | None:
    """What was charged, in words: what the account has on record, or else what the books say."""
    spent, numbers = (books.spent, books.spent_delta), tuple[int, ...]()
    if account is not None:
        with suppress(Exception):  # it may be out of reach by now
            on_record = account.paid()
            if on_record:
                spent = (
                    sum((each.epsilon for each in on_record), Fraction(0)),
                    sum((each.delta for each in on_record), Fraction(0)),
                )
                numbers = tuple(each.number for each in on_record)
    return charged_text(*spent, account, numbers) if any(spent) else None


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


def charged_text(epsilon: Fraction, delta: Fraction, account: Ledger | None, numbers: Sequence[int] = ()) -> str:
    """What was paid, and to whom, in words."""
    amount = f"epsilon={decimal(epsilon)}" + (f" with delta={decimal(delta)}" if delta else "")
    if account is None:
        return f"{amount} was spent (no ledger was given, so no record has it)"
    place = "the ledger" if account.address is None else repr(account.address)
    entries = f" ({'entry' if len(numbers) == 1 else 'entries'} {', '.join(map(str, numbers))})" if numbers else ""
    return f"{amount} was charged to {place}{entries}"
