"""The promise of a release in plain words and plain numbers: what is promised to whom, as odds, and what is not.

Somebody wants to know whether a given person (or row) is in the table, both answers being equally likely beforehand.
Whatever else they know and however they compute, (epsilon, delta)-differential privacy bounds how often they are right:

    right at most (e^epsilon + delta) / (1 + e^epsilon) of the time

Under a pure guarantee the same holds for every single belief: odds grow by e^epsilon at most. All figures are rounded
up, so none promises more than there is.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from spinney.privacy.budget import Unit
from spinney.privacy.ledger import decimal
from spinney.privacy.promise import GROUPS
from spinney.release.card import Card

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
    "That several releases together stay within this epsilon: their costs add up, and a ledger keeps the sum.",
    "That the schema is harmless: names, bounds, lists of values and rules stand in the release as the holder stated "
    "them, where they are not marked as estimated privately.",
)

_NEIGHBOURS = {
    Unit.REPLACE_ONE: ("one row", "the table with that row replaced by any other", "what a given row says"),
    Unit.ADD_REMOVE: ("one row", "the table without that row, or with one more", "whether a given row is in the table"),
    Unit.REPLACE_PERSON: (
        "one person with all their rows",
        "the tables with that person and all their rows replaced by any other person",
        "whether a given person, with all their rows, is in the tables",
    ),
    Unit.ADD_REMOVE_PERSON: (
        "one person with all their rows",
        "the tables without that person and all their rows, or with one more person",
        "whether a given person, with all their rows, is in the tables",
    ),
}


def promise_part(card: Card) -> dict[str, Any]:
    """Everything about the guarantee, as plain data."""
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
    }
    if not card.is_private:
        return found | {
            "headline": None,
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
    found["epsilon_words"] = _epsilon_in_words(card.epsilon)
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
    found["delta_words"] = _delta_in_words(card.delta, n_known, who)
    found["headline"] = (
        f"is how often, at most, somebody is right who wants to find out {secret}, holds both answers equally likely "
        "and knows everything else. A coin is right 50 % of the time."
        if found["is_bounded"]
        else f"is how often somebody may be right who wants to find out {secret}, holds both answers equally likely "
        f"and knows everything else: {what_bounds_nothing(card.epsilon)} bounds nothing."
    )
    found["in_words"] = _in_words(card, found)
    return found


def largest_guess(epsilon: Fraction, delta: Fraction = Fraction(0)) -> float:
    """How often somebody is right at most who must tell two equally likely neighbours apart; rounded up."""
    ratio = math.exp(min(float(epsilon), _LARGEST_EXPONENT))
    return _up((ratio + float(delta)) / (1 + ratio))


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


def _epsilon_in_words(epsilon: Fraction) -> str:
    """Epsilon as a number, as odds, and beside values that are of use."""
    low, high = _USEFUL
    place = "below" if float(epsilon) < low else "above" if float(epsilon) > high else "between"
    where = "this one lies between them" if place == "between" else f"this one is {place}"
    return (
        f"Epsilon is {float(epsilon):g}: odds of 1 to 1 may become {_odds(epsilon)} to 1 at most. Useful values lie "
        f"between about {low:g} and {high:g}, and the smaller, the stronger is the promise; {where}."
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
        f"Almost means: no outcome is more than {_times(card.epsilon)} as likely under one table as under the other"
        + (f", up to a failure probability (delta) of {decimal(card.delta)}." if card.delta else "."),
    ]
    groups = [group for group in found["groups"] if not group["is_empty"]]
    if groups:
        of_people = found["who"] == "persons"
        whom = "several persons together" if of_people else "a person who has several rows"
        sizes = ", ".join(
            f"{group['size']} {'persons' if of_people else 'rows'}: at most {percent(group['guess'])}"
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


def _delta_in_words(delta: Fraction, n_known: int | None, who: str) -> str:
    """Delta against the number of people."""
    if not delta:
        return "Delta is 0: the guarantee is pure, and never fails."
    chance = f"Delta is {decimal(delta)}, about one in {float(1 / delta):,.0f}: the probability with which the bound "
    chance += "may be exceeded."
    if not n_known:
        return chance
    expected = float(delta) * n_known
    verdict = "far below one" if expected <= 0.1 else "below one" if expected <= 1 else "above one, which is too large"
    return f"{chance} Times the {n_known:,} {who} it is {expected:.2g}, {verdict}."
