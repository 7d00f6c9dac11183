"""What a fit buys before its plan, and what protects a release after its charge. SENSITIVE rows are read.

A budget is shared from public quantities alone. Bounds and lists of values that the schema leaves open are then
found privately. From the first charge on, every error states what was charged and to which account, and a paid
release is written somewhere whatever fails, because fitting again is charged again.

    bounds                  estimated privately, or read off the data under a name that says so
    errors after a charge   what was charged, to which account, and what a second call would cost
    number of rows          public, guessed, or bought with a part of epsilon
    saving                  room that is reserved before the charge; where a release goes when its place fails
    shares                  how a budget is divided among all of this and the release
    rehearsal               the plan and the charges of a fit, from public quantities
    private lists           values of a column, found above a threshold
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from spinney.columns import Bounded, Category
from spinney.counting.counter import ValueCounts
from spinney.errors import (
    BudgetError,
    FileError,
    InputError,
    LedgerWarning,
    ParameterError,
    SchemaError,
    SpinneyError,
    raise_alone,
    redacted,
)
from spinney.forest.columns import check_rows, release_values, values_charge
from spinney.forest.design import Design
from spinney.grid.lattice import Lattice
from spinney.people.design import PeopleDesign
from spinney.privacy.budget import Unit, parse_share
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import Charge, Event, NotPrivate, decimal
from spinney.release.card import MOST_ROWS
from spinney.release.file import digest
from spinney.release.release import Release
from spinney.schema.linked import PeopleShape, Tables, schema_digest
from spinney.schema.schema import Schema
from spinney.synthesizers.validation import LedgerLike, checked_ledger, warn_caller
from spinney.tables.source import Source
from spinney.text import as_given
from spinney.tree.bought import figures_charge, ladder_lattice, release_bounds, widest_bounds
from spinney.tree.plan import SplitPlan, grid_plan

if TYPE_CHECKING:
    from spinney.synthesizers.method import AnySynthesizer


# --------------------------------------------------------------------------------------------------------------- bounds
# Bounds that the schema leaves open: estimated privately, or taken from the data under a name that says so.


def with_widest_bounds(schema: Schema) -> Schema:
    """The schema with generous public bounds where bounds are still to be found."""
    awaiting = {
        name: column for name, column in schema.items() if isinstance(column, Bounded) and not column.has_bounds
    }
    return schema._with_bounds({name: widest_bounds(column) for name, column in awaiting.items()})


def find_bounds(table: Source, epsilon: Fraction, ledger: Ledger, entropy: Entropy) -> dict[str, tuple[Any, Any]]:
    """Bounds of all columns that await some: paid-for ones, and those read off the data."""
    schema = table.schema
    found: dict[str, tuple[Any, Any]] = {}
    for name in schema._columns_awaiting_bounds("from-data-not-private"):
        found[name] = _data_derived_bounds(table, name)
    paid_for = schema._columns_awaiting_bounds("private")
    columns = {name: column for name in paid_for if isinstance(column := schema[name], Bounded)}
    ladders = [ladder_lattice(name, column) for name, column in columns.items()]
    # All columns in one pass where reading is dear.
    for (name, column), counts in zip(columns.items(), table.count_columns(ladders), strict=True):
        found[name] = release_bounds(counts, column, epsilon=epsilon / len(paid_for), ledger=ledger, entropy=entropy)
    return found


def bounds_charges(schema: Schema, epsilon: Fraction, unit: Unit) -> tuple[Charge, ...]:
    """What finding all private bounds is charged as, column by column."""
    names = schema._columns_awaiting_bounds("private")
    plans = [grid_plan(unit=unit, depth=0, epsilon=epsilon / len(names), threshold=1) for _ in names]
    return tuple(charge for name, plan in zip(names, plans, strict=True) for charge in plan.charges(name))


def _data_derived_bounds(table: Source, name: str) -> tuple[Any, Any]:
    """The column's own extremes. Not private; the caller has branded the ledger."""
    column = table.schema[name]
    assert isinstance(column, Bounded)
    low, high = table.true_extremes(name)
    # What does not fit is not quoted: it is the smallest or the largest value of the table.
    with redacted(lambda _: _beyond(name, column)):
        ends = column._from_extremes(low, high)
        try:
            column._with_bounds(*ends)
        except SchemaError:
            raise_alone(_beyond(name, column))
        return ends


def _beyond(name: str, column: Bounded) -> InputError:
    return InputError(f"column {name!r} goes beyond {column._reach}; state its bounds")


# ------------------------------------------------------------------------------------------------ errors after a charge
# What comes after a charge: errors, each of which says what was paid and to which account, and what it paid for.
#
# Whoever reads an error that says nothing of a charge takes it that nothing was charged, and asks again. The error
# that leaves has neither a cause nor a context, since what went wrong was looking at private rows.


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
        warn_caller([f"the charge is on record, and the digest of the {what}, {found}, is not: {err}"], LedgerWarning)


def charged_text(epsilon: Fraction, delta: Fraction, account: Ledger | None, numbers: Sequence[int] = ()) -> str:
    """What was paid, and to whom, in words."""
    amount = f"epsilon={decimal(epsilon)}" + (f" with delta={decimal(delta)}" if delta else "")
    if account is None:
        return f"{amount} was spent (no ledger was given, so no record has it)"
    place = "the ledger" if account.address is None else repr(account.address)
    entries = f" ({'entry' if len(numbers) == 1 else 'entries'} {', '.join(map(str, numbers))})" if numbers else ""
    return f"{amount} was charged to {place}{entries}"


# ------------------------------------------------------------------------------------------------------- number of rows
# The number of rows that automatic values follow from: public, given as a guess, or bought with a part of epsilon.
#
# Under replace-one it is public. Under add-remove it is private: with `assumed_rows` a public guess stands in for it,
# and without one a noisy count is bought before the plan is made. Until then parameters and budgets are tried on
# tables of several sizes, so that what can work for none of them is refused before anything is spent.


PlanT = TypeVar("PlanT")

# Sizes of tables that a plan is tried on where the number of rows is not known yet; the likeliest first.
_SIZES = (10_000, 100, 10_000_000)


def first_that_works(rehearse: Callable[[int], PlanT]) -> PlanT:
    """The plan for the first size that has one; where none has, what is said of the first."""
    problem: BudgetError | ParameterError | None = None
    for n_rows in _SIZES:
        try:
            return rehearse(n_rows)
        except (BudgetError, ParameterError) as err:
            problem = problem or err
    assert problem is not None
    raise problem


@contextmanager
def after_counting(epsilon: Fraction, n_rows: int, *, what: str = "rows") -> Iterator[None]:
    """Say of a budget or a plan that a table of the counted size cannot have that the count is paid for.

    `what` was counted, and is what an argument names that saves counting.
    """
    try:
        yield
    except (BudgetError, ParameterError) as err:
        raise type(err)(
            f"{err}. The table has about {n_rows:,} {what} by a noisy count, on which epsilon={float(epsilon):g} was "
            f"spent; give that number as assumed_{what}, and none is spent on counting again"
        ) from err


# --------------------------------------------------------------------------------------------------------------- saving
# Keeping what was paid for: room for a release is held before anything is charged, and no release is thrown away.
#
# A release that cannot be written after its charge would be lost, and fitting again is charged again. So a few
# megabytes are reserved where it is to lie before the table is read, and given back when it is written. Where it
# cannot be written even so, it goes to the folder for temporary files, and the error says where it is and what was
# charged.


# Releases of most tables are smaller.
_ROOM = 1 << 23


def reserved(out: str | Path) -> IO[bytes]:
    """A few megabytes in the folder of a file that is to be written, until this is closed; a FileError without room.

    The file that holds them has no name, so nothing is left of it, however the process ends.
    """
    folder = Path(out).resolve().parent
    held = None
    try:
        held = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # whoever asked for it closes it
        _reserve(held.fileno())
    except OSError as err:
        if held is not None:
            held.close()
        raise FileError(
            f"there is no room for {str(out)!r}: {_ROOM >> 20} MiB cannot be written to {str(folder)!r} "
            f"({err.strerror or err}); free some, or choose another folder; nothing was charged"
        ) from err
    return held


def _reserve(descriptor: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, _ROOM)
        return
    os.write(descriptor, bytes(_ROOM))


@contextmanager
def kept(synthesizer: AnySynthesizer, out: str | Path, ledger: Ledger | None) -> Iterator[None]:
    """What is done with a fitted release before it lies in its file: whatever fails, the release is not lost by it."""
    try:
        yield
    except BaseException as err:
        card = synthesizer.card_
        told = f"{charged_text(card.epsilon, card.delta, ledger)}, and {_kept(synthesizer, out)}"
        if not isinstance(err, Exception):  # an interruption stays one
            err.add_note(told)
            raise
        what = str(err) if isinstance(err, SpinneyError) else f"cannot write {str(out)!r}: {type(err).__name__}"
        raise_alone(FileError(f"{what}; {told}"))


def _kept(synthesizer: AnySynthesizer, out: str | Path) -> str:
    """Where a release is that could not be written to its place."""
    try:
        place = Path(tempfile.mkdtemp(prefix="spinney-")) / Path(out).name
        synthesizer.save(place)
    except Exception:
        return "the release is lost; fitting again is charged again"
    return f"the release is kept in {str(place)!r}: move it from there, as fitting again is charged again"


# --------------------------------------------------------------------------------------------------------------- shares
# How a budget is shared by what is found before a plan is made and by the release itself, from public quantities.


# The part of epsilon that buys a noisy count of rows. At epsilon 1 its standard deviation is 141 rows.
ROWS_SHARE = Fraction(1, 100)


@dataclass(frozen=True, slots=True)
class Shares:
    """Epsilon for a noisy count of rows, bounds, lists of values, with their delta, utility figures, and the rest."""

    rows: Fraction
    bounds: Fraction
    values: Fraction
    values_delta: Fraction
    utility: Fraction  # of a pure release; with a delta it is part of the rest, which is composed
    rest: Fraction
    rest_delta: Fraction


def shared_out(
    schema: Schema,
    *,
    epsilon: Fraction,
    delta: Fraction,
    bounds_share: Any,
    values_share: Any,
    counts_rows: bool,
    utility_share: Any = None,
) -> Shares:
    """The shares of one fit; what a schema leaves nothing to find for costs nothing."""
    of_bounds, of_values = parse_share(bounds_share, "bounds_share"), parse_share(values_share, "values_share")
    of_bounds *= bool(schema._columns_awaiting_bounds("private"))
    of_values *= bool(schema._columns_awaiting_values)
    of_rows = ROWS_SHARE * counts_rows
    wants_figures = utility_share is not None and not delta
    of_utility = parse_share(utility_share, "utility_share") if wants_figures else Fraction(0)
    if of_bounds + of_values + of_rows + of_utility >= 1:
        figures = f", utility_share={utility_share}" if wants_figures else ""
        raise ParameterError(
            f"bounds_share={bounds_share} and values_share={values_share}{figures} leave nothing for the release; "
            f"together they must be below {float(1 - of_rows):g}"
        )
    return Shares(
        epsilon * of_rows,
        epsilon * of_bounds,
        epsilon * of_values,
        delta * of_values,
        epsilon * of_utility,
        epsilon * (1 - of_rows - of_bounds - of_values - of_utility),
        delta * (1 - of_values),
    )


# ------------------------------------------------------------------------------------------------------------ rehearsal
# Rehearsal: what a fit would do, as far as that follows from public quantities. No table is needed for it.
#
# A fit makes its plan before it reads a row, and a rehearsal is that plan with everything that would be charged for,
# in the order in which a fit charges it. Where something is found on the way that a plan follows from (bounds, lists
# of values, the sizes of a target's classes), a public stand-in takes its place, and `stand_ins` says which.


@dataclass(frozen=True, slots=True)
class Partition:
    """The lattice of a joint tree or a grid, and the plan of its release."""

    lattice: Lattice
    plan: SplitPlan

    def to_dict(self) -> dict[str, Any]:
        """What of the plan no charge says, as JSON-ready data, for the card."""
        return self.plan.to_dict()


@dataclass(frozen=True, slots=True, eq=False)
class Rehearsal:
    """A plan that a fit would begin with, and all events that its card would have."""

    schema: Schema  # of rows, or of persons as they are learnt; stand-ins filled in
    epsilon: Fraction
    delta: Fraction
    unit: Unit
    n_rows: int  # or persons
    planned: Partition | Design | PeopleDesign
    events: tuple[Event, ...]
    stand_ins: tuple[str, ...] = ()  # what the plan follows from, and is not known yet


def checked_number(n_rows: Any, name: str = "n_rows") -> int:
    """How many rows or persons there are, as somebody states it; a ParameterError where that is no such number."""
    if isinstance(n_rows, bool) or not isinstance(n_rows, Integral) or not 1 <= int(n_rows) <= MOST_ROWS:
        raise ParameterError(f"{name}={as_given(n_rows)} is not a whole number from 1 to {MOST_ROWS:,}")
    return int(n_rows)


def events_before(schema: Schema, shares: Shares, unit: Unit) -> tuple[Event, ...]:
    """What a fit charges before its plan: figures of utility that are paid for by themselves, lists, bounds."""
    found: list[Event] = []
    if schema._has_data_derived_bounds:
        found.append(NotPrivate(note="bounds were read off the data"))
    if shares.utility:
        found.append(figures_charge(shares.utility, unit))
    private = schema._columns_awaiting_values
    each = {"epsilon": shares.values / max(1, len(private)), "delta": shares.values_delta / max(1, len(private))}
    found += [values_charge(name, **each) for name in private]
    return (*found, *bounds_charges(schema, shares.bounds, unit))


def awaited(schema: Schema) -> tuple[str, ...]:
    """What of a schema is found by a fit, in words."""
    found = []
    if columns := schema._columns_awaiting_bounds("private"):
        found.append(f"bounds of {', '.join(map(repr, columns))}")
    if columns := schema._columns_awaiting_bounds("from-data-not-private"):
        found.append(f"bounds of {', '.join(map(repr, columns))}, which would be read off the data")
    if columns := schema._columns_awaiting_values:
        found.append(f"values of {', '.join(map(repr, columns))}")
    return tuple(found)


# -------------------------------------------------------------------------------------------------------- private lists
# Lists of values that the schema leaves to be found, privately and for a share of the budget.
#
# Counts of values are SENSITIVE, and so are the values themselves until the threshold has been passed.


def check_private_values(schema: Schema, n_rows: int, *, epsilon: Fraction, delta: Fraction, unit: Unit) -> None:
    """Refuse a budget that finds nothing, before anything is spent; `epsilon` and `delta` are for all lists."""
    private = schema._columns_awaiting_values
    for name in private:
        if not delta:
            raise ParameterError(
                f'column {name!r}: values="private" needs a delta, and delta is 0; leave delta out, or list the values'
            )
        check_rows(name, n_rows, epsilon=epsilon / len(private), delta=delta / len(private), unit=unit)


def with_few_values(schema: Schema) -> Schema:
    """The schema with a public stand-in for every list that is still to be found: a plan is tried on it."""
    return schema._with_values({name: [_stand_in(schema[name])] for name in schema._columns_awaiting_values})


def count_private_values(table: Source) -> dict[str, ValueCounts]:
    """How many rows have each value, of all columns whose list is to be found. SENSITIVE, and so are the values."""
    return {name: table.count_values(name) for name in table.schema._columns_awaiting_values}


def find_values(
    counts: Mapping[str, ValueCounts],
    schema: Schema,
    *,
    epsilon: Fraction,
    delta: Fraction,
    ledger: Ledger,
    entropy: Entropy,
) -> dict[str, Any]:
    """The private lists of the columns that were counted; the budget is shared evenly by them."""
    private = schema._columns_awaiting_values
    found: dict[str, tuple[Any, ...]] = {}
    for name in private:
        column = schema[name]
        assert isinstance(column, Category)
        found[name] = release_values(
            counts[name],
            name,
            column,
            epsilon=epsilon / len(private),
            delta=delta / len(private),
            ledger=ledger,
            entropy=entropy,
        )
    return found


def without_values(lists: Mapping[str, Any], schema: Schema) -> list[str]:
    """What to warn of, once the release is kept: columns of whose values none was found."""
    return [
        f"column {name!r}: no value was common enough to be found, so all rows count as "
        f"{getattr(schema[name], 'other', None)!r}; its part of the budget is spent: list the values, or raise "
        "values_share"
        for name, found in lists.items()
        if not found
    ]


def _stand_in(column: Any) -> Any:
    return f"not {column.other}" if column.is_text else column.other - 1 if column.other > 0 else column.other + 1
