"""The rules of charges: what pays for one, what voids one, and what came of it.

A server keeps to the same rules by itself (`server/5-charges.sql`): tests compare the two.
"""

from __future__ import annotations

from dataclasses import replace

from spinney.errors import BudgetError, ParameterError
from spinney.privacy.accounts.chain import Entry
from spinney.privacy.accounts.fields import Charged, Fields
from spinney.privacy.accounts.state import Fit, Request, State, Table
from spinney.privacy.budget import LARGEST_BITS
from spinney.privacy.events import decimal
from spinney.shown import brief


def check_charge(state: State, charge: Charged, *, fit: str, user: str, request: int | None) -> Request | None:
    """Raise unless a charge may be made now; the request that pays for it, where one does."""
    population = state.population(charge.population)
    _check_place(state, charge)
    if population.moved_to is not None:
        raise BudgetError(
            f"the population {brief(population.name)} is closed here: it was moved to {population.moved_to}; "
            "charge it there"
        )
    begun = state.fits.get(fit, Fit(fit, population.name, user))
    population.room.check(*begun.counted_more(charge.epsilon, charge.delta), charge.unit)
    _check_fit(begun, charge, user=user, request=request)
    return check_request(state, request, fit, user, charge)


def _check_fit(begun: Fit, charge: Charged, *, user: str, request: int | None) -> None:
    """What was begun goes on with one population, one user and one request, and with numbers of a sane length."""
    if begun.charges and begun.request != request:
        raise ParameterError("the charges of one fit have one population, one user and one request")
    _check_own(begun, charge.population, user)
    for total in (begun.epsilon + charge.epsilon, begun.delta + charge.delta):
        if total.denominator.bit_length() > 4 * LARGEST_BITS:
            raise BudgetError("the sum of these charges has too many digits; charge amounts of a few digits")


def _check_own(begun: Fit, population: str, user: str) -> None:
    if (begun.population, begun.user) != (population, user):
        raise ParameterError("the entries of one fit have one population, one user and one request")
    if begun.is_ended:
        raise ParameterError("the fit of this entry has ended already")


def check_request(state: State, number: int | None, fit: str, user: str, charge: Charged) -> Request | None:
    """The request that pays for a charge, or None where none is needed; raise where it may not."""
    population = state.population(charge.population)
    if number is None:
        if population.approval:
            raise BudgetError(
                f"charges to the population {brief(population.name)} need an approved request, and none was named; "
                "ask for one (spinney ledger request), and name it once it is approved (fit --request NUMBER)"
            )
        return None
    request = state.requests.get(number)
    if request is None or request.population != population.name:
        raise BudgetError(f"request={number} is not one of the population {brief(population.name)}")
    if request.state in ("pending", "denied"):
        raise BudgetError(f"request={number} is {request.state}, and not approved")
    if request.fit not in (None, fit):
        raise BudgetError(f"request={number} has paid for a release already; ask for another")
    if request.user != user:
        raise BudgetError(f"request={number} was made by {brief(request.user)}, and is not {brief(user)}'s to use")
    if request.table not in (None, charge.table):
        raise BudgetError(f"request={number} is for the table {brief(request.table)}")
    if charge.purpose not in (None, request.purpose):
        raise BudgetError(
            f"request={number} is for the purpose {brief(request.purpose)}, and not for {brief(charge.purpose)}; "
            "leave the purpose out, or ask anew for this one"
        )
    _check_amounts(state, request, fit, charge)
    return request


def _check_amounts(state: State, request: Request, fit: str, charge: Charged) -> None:
    before = state.fits.get(fit)
    epsilon = charge.epsilon + (before.epsilon if before else 0)
    delta = charge.delta + (before.delta if before else 0)
    if epsilon > request.epsilon or delta > request.delta:
        raise BudgetError(
            f"request={request.number} is for epsilon={decimal(request.epsilon)}, delta={decimal(request.delta)}, and "
            f"epsilon={decimal(epsilon)}, delta={decimal(delta)} is asked of it"
        )


def _check_place(state: State, charge: Charged) -> None:
    """The table and the schema of a charge belong to its population."""
    bound = None
    if charge.table is not None:
        state.check_table(charge.table, charge.population)
        bound = state.tables.get(charge.table)
        if bound is not None and bound.schema is not None and charge.schema not in (None, bound.schema):
            raise ParameterError(
                f"table={brief(charge.table)} is bound to another schema; if this one is right, bind the table "
                "again (spinney ledger bind)"
            )
    other = state.schemas.get(charge.schema or "")
    if other not in (None, charge.population) and not (bound is not None and bound.is_bound):
        raise ParameterError(
            f"a table of the same schema was charged to the population {brief(other)}; if it is about other "
            f"people, name it and bind it first (spinney ledger bind LEDGER TABLE --population {charge.population})"
        )


# ------------------------------------------------------------------------------------------------- entries taken in


def take_charge(state: State, entry: Entry, fields: Fields) -> None:
    charge = fields.charged()
    fit = fields.key("fit")
    request: int | None = None if fields.is_missing("request") else fields.whole("request")
    key = _new_key(state, fields)
    population = state.population(charge.population)
    begun = state.fits.get(fit, Fit(fit, population.name, entry.user))
    paid_by = None
    if fields.flag("imported"):
        check_importing(state, population.name)
        if charge.unit is not population.room.unit:
            raise ParameterError("the unit of the charge does not match the ledger's; they do not add up")
        _check_fit(begun, charge, user=entry.user, request=request)
    else:
        paid_by = check_charge(state, charge, fit=fit, user=entry.user, request=request)
    more = begun.counted_more(charge.epsilon, charge.delta)
    room = replace(population.room, spent=population.room.spent + more[0])
    room = replace(room, spent_delta=room.spent_delta + more[1])
    state.populations[population.name] = replace(population, room=room)
    if charge.table is not None:
        state.tables.setdefault(charge.table, Table(charge.table, population.name, None, is_bound=False))
    if charge.schema is not None:
        state.schemas.setdefault(charge.schema, population.name)
    if paid_by is not None:
        state.requests[paid_by.number] = replace(paid_by, state="used", fit=fit)
    begun = replace(begun, epsilon=begun.epsilon + charge.epsilon, delta=begun.delta + charge.delta)
    state.fits[fit] = replace(begun, request=request, charges=(*begun.charges, entry))
    state.keys[key] = entry.number


def take_brand(state: State, entry: Entry, fields: Fields) -> None:
    """A brand is of a fit of the same user that has not ended, or begins one."""
    population = state.population(fields.name("population"))
    fit = fields.key("fit")
    fields.long_text("events")
    key = _new_key(state, fields)
    if fields.flag("imported"):
        check_importing(state, population.name)
    begun = state.fits.get(fit, Fit(fit, population.name, entry.user))
    _check_own(begun, population.name, entry.user)
    state.fits[fit] = replace(begun, n_brands=begun.n_brands + 1)
    state.keys[key] = entry.number


def _new_key(state: State, fields: Fields) -> str:
    key = fields.key("key")
    if key in state.keys:
        raise ParameterError(f"this charge or brand is on record already, as entry {state.keys[key]}")
    return key


def check_importing(state: State, population: str) -> None:
    """What is imported passes limits and approval, and can be added to the population that is being imported only."""
    if state.importing != population:
        raise ParameterError("what is imported follows the entry of its population, with nothing in between")


def _ending(state: State, entry: Entry, fields: Fields) -> Fit:
    begun = state.fits.get(fields.key("fit"))
    if begun is None or not begun.charges:
        raise ParameterError("nothing was charged for this fit")
    if begun.user != entry.user:
        raise ParameterError(f"the fit was charged by {brief(begun.user)}, who alone says what came of it")
    if begun.is_ended:
        raise ParameterError("what came of this fit is on record already")
    if fields.flag("imported"):
        check_importing(state, begun.population)
    return begun


def take_released(state: State, entry: Entry, fields: Fields) -> None:
    begun, digest = _ending(state, entry, fields), fields.digest("release")
    state.fits[begun.key] = replace(begun, release=digest)


def take_failed(state: State, entry: Entry, fields: Fields) -> None:
    begun, error = _ending(state, entry, fields), fields.name("error")
    state.fits[begun.key] = replace(begun, error=error)
