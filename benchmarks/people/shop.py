"""A made-up shop, whose law is known: customers with hidden tastes and spending levels, and their purchases.

A customer has a region, an age and a plan, which are told, and three hidden things:

    level       N(0.3 z, 1), z the age in standard units: how much is spent
    taste       one of five kinds of goods; each region has a favourite
    activity    N(0.25 level, 1): the number of purchases is 1 + floor(exp(1.3 + 1.1 activity)), 200 at most:
                median 4, mean 7, one in a hundred above 50

    churn       logistic in -level, -activity, plan and taste: the label, partly visible in the purchases

Purchases lie on random days of a year. The kind of one is that of the purchase before (0.3), the taste (0.3), or one of
all (0.4): a Markov chain about a hidden taste. The channel is that before (0.5), or drawn by age. The amount
is lognormal: 3 + 0.6 level + a shift of the kind + 0.7 N(0, 1). One customer in twenty with two purchases or more
closes the account: the last row is of the kind "close" and costs nothing, and nothing follows it.

`shop-one` and `shop-ten` have as many persons and the same law, one with one row a person, the other with ten in the
mean: an error with many rows a person against the error that the same number of persons would have anyway.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

import spinney as sp
from benchmarks.people.tables import KEY, People, PeopleTable

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]

KINDS = ("food", "books", "garden", "clothes", "toys")
CLOSE = "close"
CHANNELS = ("online", "store", "phone")
REGIONS = ("north", "east", "south", "west")
PLANS = ("basic", "plus")
DAYS = 365
MOST = 200

_SHIFTS = np.array([-0.6, -0.2, 0.5, 0.4, 0.0])
_BASE = np.array([0.35, 0.2, 0.15, 0.2, 0.1])
_COLUMNS = {
    "day": sp.Integer(0, DAYS - 1),
    "kind": sp.Category((*KINDS, CLOSE)),
    "channel": sp.Category(CHANNELS),
    "amount": sp.Real(0, 5_000, multiple_of=0.01),
}
_PERSON_COLUMNS = {
    "region": sp.Category(REGIONS),
    "age": sp.Integer(18, 100),
    "plan": sp.Category(PLANS),
    "churn": sp.Category((0, 1)),
}


def shop(n_persons: int = 20_000, *, seed: int = 0) -> PeopleTable:
    """Customers and purchases, heavy-tailed counts."""
    return _table("shop", shop_people(n_persons, seed=seed))


def shop_one(n_persons: int = 20_000, *, seed: int = 0) -> PeopleTable:
    """One purchase a customer. Ten times as many are drawn, so that drawing adds no more error than with ten each."""
    return _table("shop-one", shop_people(n_persons, seed=seed, most=1), n_drawn=8 * n_persons)


def shop_ten(n_persons: int = 20_000, *, seed: int = 0) -> PeopleTable:
    """About ten purchases a customer."""
    return _table("shop-ten", shop_people(n_persons, seed=seed, start=1.65))


def shop_people(n_persons: int, *, seed: int = 0, most: int = MOST, start: float = 1.3) -> People:
    """Draw the law."""
    rng = np.random.default_rng([seed, 31])
    age = np.clip(np.rint(rng.normal(45, 15, n_persons)), 18, 100)
    z = (age - 45) / 15
    region = rng.choice(4, n_persons, p=[0.35, 0.3, 0.2, 0.15])
    plan = (rng.random(n_persons) < 0.25 + 0.1 * (region == 1)).astype(np.int64)
    level = rng.normal(0.3 * z, 1)
    taste = np.where(rng.random(n_persons) < 0.4, region, rng.choice(5, n_persons, p=_BASE))
    activity = rng.normal(0.25 * level, 1)
    counts = np.minimum(1 + np.floor(np.exp(start + 1.1 * activity)), most).astype(np.int64)
    logit = -0.9 - 0.8 * level - 0.5 * activity - 0.5 * plan + 0.6 * (taste == 4)
    churn = (rng.random(n_persons) < 1 / (1 + np.exp(-logit))).astype(np.int64)
    persons = pl.DataFrame(
        {
            KEY: np.arange(n_persons),
            "region": pl.Series(REGIONS).gather(region),
            "age": age.astype(np.int64),
            "plan": pl.Series(PLANS).gather(plan),
            "churn": churn,
        }
    )
    return People(persons, _purchases(rng, counts, taste, level, z))


def _purchases(rng: np.random.Generator, counts: Codes, taste: Codes, level: Numbers, z: Numbers) -> pl.DataFrame:
    """Rows of all persons, by person and day."""
    person = np.repeat(np.arange(len(counts)), counts)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    day = rng.integers(0, DAYS, len(person))
    day = day[np.lexsort((day, person))]
    kind = np.where(rng.random(len(person)) < 3 / 7, taste[person], rng.choice(5, len(person), p=_BASE))
    lean = 1 / (1 + np.exp(1.2 * z[person]))
    fresh = rng.random(len(person))
    channel = np.where(fresh < 0.75 * lean, 0, np.where(fresh < 0.9, 1, 2))
    is_first = np.zeros(len(person), np.bool_)
    is_first[starts] = True
    _carry(kind, ~is_first & (rng.random(len(person)) < 0.3), counts, starts)
    _carry(channel, ~is_first & (rng.random(len(person)) < 0.5), counts, starts)
    amount = np.exp(3 + 0.6 * level[person] + _SHIFTS[kind] + 0.7 * rng.normal(size=len(person)))
    ends = (starts + counts - 1)[(counts > 1) & (rng.random(len(counts)) < 0.05)]
    kind[ends], amount[ends] = len(KINDS), 0.0
    return pl.DataFrame(
        {
            KEY: person,
            "day": day,
            "kind": pl.Series((*KINDS, CLOSE)).gather(kind),
            "channel": pl.Series(CHANNELS).gather(channel),
            "amount": np.minimum(np.round(amount, 2), 5_000.0),
        }
    )


def _carry(values: Codes, is_kept: NDArray[np.bool_], counts: Codes, starts: Codes) -> None:
    """Where kept, the value of the row before; place by place, so that what was carried is carried on."""
    for place in range(1, int(counts.max(initial=1))):
        here = starts[counts > place] + place
        here = here[is_kept[here]]
        values[here] = values[here - 1]


def _table(name: str, people: People, *, n_drawn: int | None = None) -> PeopleTable:
    return PeopleTable(
        name,
        people,
        _COLUMNS,
        most=MOST if n_drawn is None else 1,
        order="day",
        person_columns=_PERSON_COLUMNS,
        target="churn",
        ends=("kind", (CLOSE,)),
        n_drawn=n_drawn,
    )
