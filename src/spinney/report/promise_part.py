"""The promise of a release in plain words and plain numbers: what is promised to whom, as odds, and what is not.

Somebody wants to know whether a given person (or row) is in the table, both answers being equally likely beforehand.
Whatever else they know and however they compute, (epsilon, delta)-differential privacy bounds how often they are right:

    right at most (e^epsilon + delta) / (1 + e^epsilon) of the time

Under a pure guarantee the same holds for every single belief: odds grow by e^epsilon at most. All figures are rounded
up, so none promises more than there is.

One release says nothing of others that were made of the same people. What all of them promise together is worked out
from a ledger, by adding up what it was charged: that sum is a bound whatever was chosen in view of what. The smaller
figure of composed losses is a bound only where all releases were settled before the first of them, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from spinney.privacy.accounts.spending import composed_together
from spinney.privacy.budget import Unit
from spinney.privacy.ledger import brands, decimal, total_delta, total_epsilon
from spinney.privacy.promise import GROUPS
from spinney.release.card import Card, guarantee_in_words

# Beliefs before the release at which the largest ones after it are told.
BEFORE = (0.01, 0.1, 0.5, 0.9)
_LARGEST_EXPONENT = 700.0
_DIGITS = 4  # of a share; the last is rounded up
# Shares above this are certainty for all purposes.
_CERTAIN = 0.9995
# Useful epsilons lie between about these.
_USEFUL = (0.1, 10)

NOT_PROMISED = (
    "That nobody can learn anything: facts about groups, such as how income goes with age, are what a release is for, "
    "and they can be used to guess at people who were never in the table.",
    "That the synthetic rows are right in every respect: they carry noise, and know only what was measured.",
    "That side channels are closed: how long a fit took, or how much memory, is not covered.",
    "That the holder keeps the real table safe, or deleted what it should: no report can see that.",
    "That several releases together stay within this epsilon: their costs add up, and a ledger keeps the sum of those "
    "that are charged to it.",
    "That the schema and the call are harmless: names, bounds, lists of values, rules and options stand in the release "
    "as the holder stated them, where they are not marked as estimated privately. Whether they were known without "
    "looking at the rows, only the holder can say.",
)

_NEIGHBOURS = {
    Unit.REPLACE_ONE: ("one row", "the table with that row replaced by any other", "what a given row says"),
    Unit.ADD_REMOVE: ("one row", "the table without that row, or with one more", "whether a given row is in the table"),
    Unit.REPLACE_PERSON: (
        "one person with all their rows",
        "the tables with that person and all their rows replaced by any other person",
        "whether a given person, with all their rows, is in the tables, or somebody else in their place",
    ),
    Unit.ADD_REMOVE_PERSON: (
        "one person with all their rows",
        "the tables without that person and all their rows, or with one more person",
        "whether a given person, with all their rows, is in the tables",
    ),
}


def promise_part(card: Card, together: dict[str, Any] | None = None) -> dict[str, Any]:
    """Everything about the guarantee, as plain data; `together` is what `together_part` says of a ledger."""
    unit = Unit.parse(card.unit)
    who = "persons" if unit.is_person else "rows"
    protected, neighbour, secret = _NEIGHBOURS[unit]
    n_known = card.n_rows if card.n_rows is not None else None if card.row_count is None else card.row_count.expected
    found: dict[str, Any] = {
        "guarantee": card.guarantee,
        "is_private": card.is_private,
        "unit": card.unit,
        "who": who,
        "protected": protected,
        "neighbour": neighbour,
        "secret": secret,
        "epsilon": str(card.epsilon),
        "epsilon_number": _shown(card.epsilon),
        "delta": str(card.delta),
        "delta_number": _shown(card.delta),
        "n": n_known,
        "n_is_public": card.n_rows is not None,
        "n_in_words": card._rows_in_words(),
        "cautions": _cautions(card),
        "not_promised": list(NOT_PROMISED),
        "together": together,
    }
    if not card.is_private:
        return found | {
            "headline": None,
            "alone": None,
            "guess": None,
            "is_bounded": False,
            "epsilon_words": None,
            "beliefs": [],
            "groups": [],
            "delta_words": None,
            "in_words": [],
        }
    guess = largest_guess(card.epsilon, card.delta)
    found["guess"], found["is_bounded"] = guess, guess <= _CERTAIN
    found["epsilon_words"] = _epsilon_in_words(card.epsilon, card.delta)
    found["beliefs"] = [{"before": before, "after": largest_belief(before, card.epsilon)} for before in BEFORE]
    found["groups"] = [
        {
            "size": group.n_rows,
            "epsilon": _shown(group.epsilon),
            "delta": _shown(group.delta),
            "guess": 1.0 if group.delta >= 1 else largest_guess(group.epsilon, group.delta),
            "is_empty": group.delta >= 1,
        }
        for group in card.groups
    ]
    found["delta_words"] = _delta_in_words(card.delta, n_known, who, is_exact=card.n_rows is not None)
    found["headline"] = _headline("from this release alone", secret, card.epsilon, guess)
    found["alone"] = (
        f"This is about this release alone. Other releases that are made of the same {who} add to it: after a second "
        f"one like it, somebody may be right {percent(largest_guess(2 * card.epsilon, 2 * card.delta))} of the time."
    )
    found["in_words"] = _in_words(card, found)
    return found


def together_part(card: Card, ledger: Any, *, has_this: bool) -> dict[str, Any]:
    """What all releases that a ledger was charged for promise together to one of its population, as plain data.

    Args:
        card: the card of one of the releases.
        ledger: the account; of a database, one population of it.
        has_this: whether it holds the charges of that release; else they are added.
    """
    unit, charged = Unit.parse(card.unit), getattr(ledger, "unit", None)
    population = getattr(ledger, "population", None)
    events = tuple(getattr(ledger, "events", ()))
    found: dict[str, Any] = {
        "population": population,
        "has_this": has_this,
        "charges": len(events) + (0 if has_this else len(card.events)),
        "epsilon": None,
        "delta": None,
        "guarantee": None,
        "guess": None,
        "is_bounded": False,
        "composed": None,
        "headline": None,
        "warning": None,
        "in_words": [],
    }
    if charged is not None and Unit.parse(charged) is not unit:
        found["warning"] = (
            f"The ledger counts in the unit {Unit.parse(charged).value}, and this release is of the unit {unit.value}: "
            "what they promise together cannot be added up"
        )
        return found
    if brands((*events, *card.events)):
        found["warning"] = "A charge on the ledger voids the guarantee of its release, and so of all releases together"
        return found
    # What was spent counts charges of newer versions too, which are none of the events.
    spent, spent_delta = getattr(ledger, "spent", None), getattr(ledger, "spent_delta", None)
    epsilon = total_epsilon(events) if spent is None else Fraction(spent)
    delta = total_delta(events) if spent_delta is None else Fraction(spent_delta)
    if not has_this:
        epsilon, delta = epsilon + card.epsilon, delta + card.delta
    guess = largest_guess(epsilon, delta)
    found |= {
        "epsilon": decimal(epsilon),
        "delta": decimal(delta),
        "guarantee": guarantee_in_words(epsilon, delta, card.unit),
        "guess": guess,
        "is_bounded": guess <= _CERTAIN,
        "headline": _headline("from all releases on the ledger together", _NEIGHBOURS[unit][2], epsilon, guess),
    }
    of = "" if population is None else f" of {population!r}"
    more = "" if has_this else " This release is not on the ledger, and was added to it here."
    found["in_words"].append(
        f"The ledger{of} was charged epsilon {decimal(epsilon)}"
        f"{f' and delta {decimal(delta)}' if delta else ''} in all, by addition.{more} Releases that were not charged "
        "to it come on top."
    )
    composed = composed_together(events if has_this else (*events, *card.events), unit)
    if composed is not None and composed.epsilon is not None and composed.epsilon < epsilon:
        least = largest_guess(composed.epsilon, composed.delta)
        upper = math.ceil(float(composed.epsilon) * 1000) / 1000  # rounded up, as all figures are
        found["composed"] = {"epsilon": upper, "delta": decimal(composed.delta), "guess": least}
        found["in_words"].append(
            f"If all of them were settled before the first was made, their losses compose to epsilon "
            f"{upper:g} and delta {decimal(composed.delta)}: right at most {percent(least)}."
        )
    return found


def first_figure(together: Mapping[str, Any]) -> str:
    """What all releases on a ledger promise together, in a sentence."""
    if together["guess"] is None:
        return f"{together['warning']}."
    return f"{together['guarantee']}: {percent(together['guess'])} {together['headline']}"


def _headline(where_from: str, secret: str, epsilon: Fraction, guess: float) -> str:
    """What follows the figure: how often somebody is right, and from what."""
    who = f"who wants to find out {secret}, holds both answers equally likely and knows everything else"
    if guess <= _CERTAIN:
        return f"is how often, at most, somebody is right {where_from} {who}. A coin is right 50 % of the time."
    return f"is how often somebody may be right {where_from} {who}: {what_bounds_nothing(epsilon)} bounds nothing."


def largest_guess(epsilon: Fraction, delta: Fraction = Fraction(0)) -> float:
    """How often somebody is right at most who must tell two equally likely neighbours apart; rounded up."""
    ratio = math.exp(min(float(epsilon), _LARGEST_EXPONENT))
    return _up((ratio + min(1.0, float(delta))) / (1 + ratio))


def largest_belief(before: float, epsilon: Fraction) -> float:
    """The largest belief after a pure release, of one who believed it to `before`; rounded up."""
    ratio = math.exp(min(float(epsilon), _LARGEST_EXPONENT))
    return _up(before * ratio / (1 - before + before * ratio))


def _up(share: float) -> float:
    scale = float(10**_DIGITS)
    return min(1.0, math.ceil(share * scale - 1e-9) / scale)


def _shown(value: Fraction) -> float:
    return float(f"{float(value):.6g}")


def what_bounds_nothing(epsilon: Fraction) -> str:
    """What to blame where somebody may be right practically always: epsilon, or delta beside it."""
    return "this epsilon" if largest_guess(epsilon) > _CERTAIN else "this guarantee"


def _cautions(card: Card) -> list[str]:
    """Those of the card, and one of an epsilon that the card lets pass and readers should judge."""
    found = list(card.cautions)
    is_large = float(card.epsilon) > _USEFUL[1] or largest_guess(card.epsilon) > _CERTAIN
    if card.is_private and is_large and not any("epsilon" in caution for caution in found):
        found.insert(
            0,
            f"with an epsilon of {float(card.epsilon):g}, somebody who knows everything else may be right practically "
            "always, so the guarantee by itself protects hardly anybody; judge it by what else stands between readers "
            "and the people in the table, or ask for a smaller epsilon",
        )
    return found


def _epsilon_in_words(epsilon: Fraction, delta: Fraction) -> str:
    """Epsilon as a number, as odds, and beside values that are of use."""
    low, high = _USEFUL
    place = "below" if float(epsilon) < low else "above" if float(epsilon) > high else "between"
    where = "this one lies between them" if place == "between" else f"this one is {place}"
    return (
        f"Epsilon is {float(epsilon):g}: odds of 1 to 1 may become {_odds(epsilon)} to 1 at most"
        + (", where delta is left aside" if delta else "")
        + f". As a rule of thumb, useful values lie between about {low:g} and {high:g}, and the smaller, the stronger "
        f"is the promise; {where}."
    )


def _odds(epsilon: Fraction) -> str:
    if float(epsilon) > 30:
        return f"e^{float(epsilon):g}"
    ratio = math.exp(float(epsilon))
    digits = 4 if ratio < 1.01 else 2 if ratio < 100 else 0
    return f"{math.ceil(ratio * 10**digits - 1e-9) / 10**digits:,.{digits}f}"


def percent(share: float) -> str:
    """A share that was rounded up, in per cent, rounded up once more: 73.2 %."""
    if share > _CERTAIN:
        return "practically 100 %"
    return f"{math.ceil(share * 1000 - 1e-9) / 10:.1f} %"


def _in_words(card: Card, found: dict[str, Any]) -> list[str]:
    """The guarantee in a few sentences."""
    said = [
        f"Protected is {found['protected']}: everything in this release would have come out almost as likely from "
        f"{found['neighbour']}.",
        (
            f"Almost means: no set of outcomes is more than {_times(card.epsilon)} as likely under one table as under "
            f"the other, plus delta, {decimal(card.delta)}."
            if card.delta
            else f"Almost means: no outcome is more than {_times(card.epsilon)} as likely under one table as under the "
            "other."
        ),
    ]
    groups = [group for group in found["groups"] if not group["is_empty"]]
    if groups:
        of_people = found["who"] == "persons"
        whom = "several persons together" if of_people else "a person who has several rows"
        sizes = ", ".join(
            f"{group['size']} {'persons' if of_people else 'rows'}: "
            f"{'at most ' if group['guess'] <= _CERTAIN else ''}{percent(group['guess'])}"
            for group in groups
        )
        said.append(f"The guarantee is weaker for {whom}. The same figure for {sizes}.")
    if len(groups) < len(GROUPS):
        lost = [str(group["size"]) for group in found["groups"] if group["is_empty"]]
        if lost:
            said.append(f"For groups of {' and '.join(lost)} it promises nothing.")
    return said


def _times(epsilon: Fraction) -> str:
    ratio = math.exp(min(float(epsilon), _LARGEST_EXPONENT))
    if ratio > 1e6:
        return f"e^{float(epsilon):g} times"
    digits = 4 if ratio < 1.01 else 2 if ratio < 100 else 0
    return f"{math.ceil(ratio * 10**digits - 1e-9) / 10**digits:,.{digits}f} times"


def _delta_in_words(delta: Fraction, n_known: int | None, who: str, *, is_exact: bool) -> str:
    """Delta as what it adds, and what the definition alone would let a mechanism do with it."""
    if not delta:
        return "Delta is 0: the guarantee is pure."
    said = (
        f"Delta is {decimal(delta)}, about one in {float(1 / delta):,.0f}: so much may be added to the probability of "
        "any set of outcomes, beyond what epsilon allows."
    )
    if not n_known:
        return said
    expected = float(delta) * n_known
    number = f"the {n_known:,} {who}" if is_exact else f"about {n_known:,} {who}"
    whole = max(0.0, -math.expm1(n_known * math.log1p(-float(delta)))) if delta < 1 else 1.0
    said += (
        f" Times {number} it is {expected:.2g}. A mechanism that published each of them whole with a probability of "
        f"delta, and so at least one with {_chance(whole)}, would meet such a definition: that is why delta should be "
        "far below one over their number"
    )
    if expected > 1:
        return f"{said}. This one is above it, which is too large."
    return f"{said}. It is below it by a factor of {_short(1 / expected)}."


def _chance(share: float) -> str:
    return f"{math.ceil(share * 1000 - 1e-9) / 10:.1f} %" if share >= 0.001 else "less than 0.1 %"


def _short(factor: float) -> str:
    """Rounded down to two digits, as no promise may grow by rounding."""
    digits = 1 - math.floor(math.log10(factor))
    return f"{math.floor(factor * 10**digits + 1e-9) / 10**digits:,.{max(0, digits)}f}".removesuffix(".0")
