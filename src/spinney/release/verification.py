"""What a release file promises, worked out again from what it lists; every number that stands twice, compared.

A card's epsilon and delta are the sums of its events, and each event has to be true in itself: the parts of a composed
release cost no more than it says, decisions of a rate are within their epsilon, Gaussian noise of a variance is within
epsilon and delta. Then the events have to be those of what was released: the noise that the contents name, the plan on
the card, the depth of the leaves, how many tables were counted.

A file that lies with consistency cannot be told from a true one: that the noise was really drawn stands in no file.
"""

from __future__ import annotations

from dataclasses import dataclass

from spinney.privacy.budget import Unit, parse_delta, parse_epsilon
from spinney.privacy.claims import check_composed, check_gaussian
from spinney.privacy.events import (
    Charge,
    ComposedRelease,
    DiscreteGaussianVector,
    DiscreteLaplaceCounts,
    LeafMoments,
    NotPrivate,
    PartitionSelection,
    decimal,
)
from spinney.release.card import Card
from spinney.release.contradictions import check, same
from spinney.release.model import Release
from spinney.release.row_count import NOISY_ROWS, RowCount
from spinney.release.utility import UTILITY
from spinney.release.utility_verification import verify_utility
from spinney.shown import brief

# Noisy counts are cut there.
_LARGEST_NOISY = 2**61


@dataclass(frozen=True, slots=True)
class Unchecked:
    """What a file cannot show, and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}, because {self.why}"


# What no file shows, whoever made it.
_NEVER = (
    Unchecked("that noise was drawn, and from the system's entropy", "only the numbers with noise are in a file"),
    Unchecked("that the table was counted as stated", "the table is private, and no file holds it"),
    Unchecked("the notes of charges", "they are words for people, and no number is taken from them"),
    Unchecked(
        "other releases and bought answers of the same people", "their charges stand in a ledger, not in this file"
    ),
)


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked, in words, and the guarantee that it arrives at."""

    guarantee: str
    checks: tuple[str, ...]
    not_checked: tuple[Unchecked, ...] = ()


def verification(release: Release, *, refits: bool = False) -> Verification:
    """Work the promise of a release out again; a ValueError says what does not hold.

    Args:
        release: what was read.
        refits: whether to fit the model again to the numbers that the release holds, which may take long.
    """
    card, unit = release.card, Unit.parse(release.card.unit)
    is_fitting = unit.is_person == release.protects_persons
    check(is_fitting, f"the unit is {unit.value!r}, and a release of kind {release.kind!r} is of another")
    checks = [_total(card), _call(card), *_rows(card, unit)]
    is_branded = any(isinstance(event, NotPrivate) for event in card.events)
    check(is_branded or not card.schema.has_data_derived_bounds, "bounds were read off the data, and no event says so")
    for event in card.events:
        if isinstance(event, ComposedRelease):
            check_composed(event, unit)
            checks.append(f"a charge for {len(event.parts)} parts: composed anew, they cost no more than it states")
        elif isinstance(event, DiscreteGaussianVector):
            check_gaussian(event)
            checks.append("a charge for sums: Gaussian noise of its variance is within its epsilon and delta")
        elif isinstance(event, PartitionSelection):
            check(release.kind == "forest", "values were found privately, which is for forests alone")
        elif isinstance(event, (DiscreteLaplaceCounts, LeafMoments)):
            check(event.sensitivity % unit.factor == 0, f"{event.note}: its sensitivity is not one of unit {unit}")
    checks += release.verify_contents()
    checks += verify_utility(release)
    if refits:
        checks += release.verify_model()
    told = [Unchecked(what, why) for what, why in release.unverified()]
    if card.plan.get(UTILITY) is not None:
        told.append(Unchecked("the figures of utility themselves", "they compare the release with the private table"))
    return Verification(card.guarantee, tuple(checks), (*told, *_NEVER))


# ------------------------------------------------------------------------------------------------- the card


def _total(card: Card) -> str:
    """Epsilon and delta are sums of events by construction; `Card.from_dict` compares them with what was stated."""
    n_charges = sum(isinstance(event, Charge) for event in card.events)
    charges = "1 charge" if n_charges == 1 else f"{n_charges} charges"
    return f"{charges} on the card, adding up to epsilon {decimal(card.epsilon)}, delta {decimal(card.delta)}"


def _call(card: Card) -> str:
    """No more was spent than the call asked for, as far as the call says numbers."""
    parameters = card.parameters
    if "unit" in parameters:
        unit = Unit.parse(card.unit)  # a call for persons may say it by the name of the same for rows
        check(parameters["unit"] in (unit.value, unit.of_rows.value), "the unit is not the one that the call asked for")
    asked = {"epsilon": parse_epsilon, "delta": parse_delta}
    for name, parse in asked.items():
        try:
            limit = parse(parameters[name], name)
        except (KeyError, ValueError):
            continue
        check(getattr(card, name) <= limit, f"the events cost more {name} than the call asked for")
    who = "persons" if Unit.parse(card.unit).is_person else "rows"
    return (
        f"unit {card.unit}, and the number of {who} {'stated' if card.n_rows is not None else 'kept private'} with it"
    )


def _rows(card: Card, unit: Unit) -> list[str]:
    """A noisy number of rows was paid for, once, exactly where the call leaves the number to be counted."""
    counted = [event for event in card.events if isinstance(event, DiscreteLaplaceCounts) and event.stage == "rows"]
    assumed = "assumed_persons" if unit.is_person else "assumed_rows"
    if not counted:
        check(NOISY_ROWS not in card.plan, "the plan has a noisy number of rows, and no charge pays for it")
        is_given = unit.n_is_public or card.parameters.get(assumed, 1) is not None
        check(is_given, "the call leaves the rows to be counted, and no charge pays for that")
        return []
    check(not unit.n_is_public, "rows were counted with noise, and their number is public")
    check(card.parameters.get(assumed) is None, "rows were counted, and the call says how many to assume")
    check(len(counted) == 1 and counted[0].times == 1, "rows were counted more than once")
    same(counted[0].sensitivity, unit.factor, "the sensitivity of the number of rows")
    noisy = card.plan.get(NOISY_ROWS)
    check(type(noisy) is int and abs(noisy) <= _LARGEST_NOISY, f"{NOISY_ROWS}={brief(noisy)} is not a noisy count")
    deviation = RowCount(0, counted[0].epsilon).noise_std
    who = "persons" if unit.is_person else "rows"
    return [f"the number of {who}: counted once, with noise of standard deviation {deviation:,.6g}"]
