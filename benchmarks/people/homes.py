"""Made-up households, whose law is known: members depend on the reference person, not on the one before.

    household     region; tenure, by the age of the reference person
    reference     age N(48, 17) within 18 and 95, sex even, schooling N(13, 3) within 0 and 20 years
    partner       in 5 of 9 households; of the other sex in 96 of 100, age that of the reference person + N(0, 4),
                  schooling 13 + 0.6 (s - 13) + N(0, 2.4)
    children      Poisson(1.2) with a partner, Poisson(0.5) without, where the reference person is between 20 and 60;
                  N(30, 5) years younger, at least 16, and left out from the age of 25
    others        in 4 of 100 households, of any age of adults

Income is lognormal with schooling and age, in hundreds, and 0 below the age of 16. The line number is the place of a
member in the household: reference person, partner, children, others.
"""

from __future__ import annotations

import numpy as np
import polars as pl

import spinney as sp
from benchmarks.people.tables import KEY, People, PeopleTable

REFERENCE, PARTNER, CHILD, OTHER = RELATIONS = ("reference", "partner", "child", "other")
SEXES = ("female", "male")
REGIONS = ("north", "east", "south", "west")
MOST = 16


def homes(n_persons: int = 20_000, *, seed: int = 0) -> PeopleTable:
    """Households and their members: a household is the unit that is protected."""
    columns = {
        "line": sp.Integer(1, MOST),
        "relation": sp.Category(RELATIONS),
        "age": sp.Integer(0, 110),
        "sex": sp.Category(SEXES),
        "edu": sp.Integer(0, 20),
        "income": sp.Integer(0, 5_000),
    }
    return PeopleTable(
        "homes",
        home_people(n_persons, seed=seed),
        columns,
        most=MOST,
        order="line",
        person_columns={"region": sp.Category(REGIONS), "tenure": sp.Category(("own", "rent"))},
        steps=True,
        role="relation",
        differences=("age",),
        first=("relation", (REFERENCE,)),
        unmeasured=("line",),
    )


def home_people(n_homes: int, *, seed: int = 0) -> People:
    """Draw the law."""
    rng = np.random.default_rng([seed, 37])
    home = np.arange(n_homes)
    age = np.clip(np.rint(rng.normal(48, 17, n_homes)), 18, 95)
    sex = rng.integers(0, 2, n_homes)
    edu = np.clip(np.rint(rng.normal(13, 3, n_homes)), 0, 20)
    has_partner = rng.random(n_homes) < 5 / 9
    partner_sex = np.where(rng.random(n_homes) < 0.96, 1 - sex, sex)
    partner_age = np.clip(np.rint(age + rng.normal(0, 4, n_homes)), 18, 95)
    partner_edu = np.clip(np.rint(13 + 0.6 * (edu - 13) + rng.normal(0, 2.4, n_homes)), 0, 20)
    n_children = rng.poisson(np.where(has_partner, 1.2, 0.5)) * ((age >= 20) & (age <= 60))
    parent = np.repeat(home, np.minimum(n_children, 10))
    child_age = np.rint(age[parent] - np.maximum(rng.normal(30, 5, len(parent)), 16))
    at_home = (child_age >= 0) & (child_age < 25)
    parent, child_age = parent[at_home], child_age[at_home]
    child_edu = np.clip(np.minimum(child_age - 5, np.rint(rng.normal(13, 3, len(parent)))), 0, 20)
    guest = home[rng.random(n_homes) < 0.04]
    members = (
        (home, 0, age, sex, edu),
        (home[has_partner], 1, partner_age[has_partner], partner_sex[has_partner], partner_edu[has_partner]),
        (parent, 2, child_age, rng.integers(0, 2, len(parent)), child_edu),
        (
            guest,
            3,
            rng.integers(18, 90, len(guest)),
            rng.integers(0, 2, len(guest)),
            np.clip(np.rint(rng.normal(12, 3, len(guest))), 0, 20),
        ),
    )
    frames = [
        pl.DataFrame(
            {
                KEY: of,
                "relation": [RELATIONS[code]] * len(of),
                "age": np.asarray(ages, np.int64),
                "sex": pl.Series(SEXES).gather(sexes),
                "edu": np.asarray(schooling, np.int64),
            }
        )
        for of, code, ages, sexes, schooling in members
    ]
    rows = pl.concat(frames).sort(KEY, maintain_order=True)
    ages, schooling = rows["age"].to_numpy(), rows["edu"].to_numpy()
    pay = np.exp(4.2 + 0.12 * schooling - 0.0006 * (ages - 50.0) ** 2 + rng.normal(0, 0.6, rows.height))
    rows = rows.with_columns(income=pl.Series(np.where(ages < 16, 0, np.minimum(np.rint(pay), 5_000)).astype(np.int64)))
    rows = rows.with_columns(line=pl.int_range(1, pl.len() + 1).over(KEY))
    owns = rng.random(n_homes) < np.clip((age - 15) / 60, 0, 0.85)
    persons = pl.DataFrame(
        {
            KEY: home,
            "region": pl.Series(REGIONS).gather(rng.choice(4, n_homes, p=[0.35, 0.3, 0.2, 0.15])),
            "tenure": pl.Series(("rent", "own")).gather(owns.astype(np.int64)),
        }
    )
    return People(persons, rows.select(KEY, "line", "relation", "age", "sex", "edu", "income"))
