"""Tables with many rows a person: frames, what a careful holder states about them, and their split by persons.

Bounds are public and round: what a column means, not what its values are. Lengths of studies and first years of
leagues are known; scores that pile up to hundreds are whole numbers; money comes in cents. `most` is a generous round
limit on the rows of a person. In `nafld` the file repeats columns: `hdl` holds what `chol` does, and `dbp` what `sbp`
does. All four stay, so that figures can be compared with those measured before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import spinney as sp
from spinney.columns import Column
from spinney.errors import FileError

KEY = "person"
PERSONS, ROWS = "persons", "rows"  # names of the two tables of a link

_YES_NO = sp.Category((0, 1))
_LAB = sp.Integer(0, 500, nullable=True)


@dataclass(frozen=True, slots=True)
class People:
    """Persons and their rows, by key; without a table of persons, a person is who has a row."""

    persons: pl.DataFrame | None
    rows: pl.DataFrame

    def keys(self) -> pl.Series:
        """Every person once."""
        return self.rows[KEY].unique(maintain_order=True) if self.persons is None else self.persons[KEY]

    def only(self, keys: pl.Series) -> People:
        """These persons with all their rows."""
        chosen = keys.to_frame(KEY)
        persons = None if self.persons is None else self.persons.join(chosen, on=KEY, how="semi")
        return People(persons, self.rows.join(chosen, on=KEY, how="semi"))


@dataclass(frozen=True, slots=True)
class PeopleTable:
    """People, and what is stated about them."""

    name: str
    people: People
    row_columns: Mapping[str, Column]
    most: int
    order: str
    person_columns: Mapping[str, Column] = field(default_factory=dict)
    steps: bool = False
    role: str | None = None
    differences: tuple[str, ...] = ()
    target: str | None = None  # a column of persons
    ends: tuple[str, tuple[Any, ...]] | None = None  # a column and the values that no row follows
    first: tuple[str, tuple[Any, ...]] | None = None  # a column and the values that the first row alone has
    unmeasured: tuple[str, ...] = ()  # columns of rows that figures and rivals leave out
    n_drawn: int | None = None  # persons to draw, where they are not as many as were fitted

    @property
    def rows_schema(self) -> sp.Schema:
        """What figures are about: columns of rows, without key."""
        return sp.Schema({name: held for name, held in self.row_columns.items() if name not in self.unmeasured})

    @property
    def persons_schema(self) -> sp.Schema | None:
        return sp.Schema(dict(self.person_columns)) if self.person_columns else None

    def described(self) -> sp.Schema | sp.Tables:
        """What `sp.LinkedSynthesizer` is told."""
        rules: list[Any] = []
        if self.first is not None:
            rules.append(sp.First(self.first[0], list(self.first[1]), only=True))
        if self.ends is not None:
            rules.append(sp.NeverAfter(self.ends[0], list(self.ends[1])))
        columns = {KEY: sp.Identifier(), **self.row_columns}
        link: dict[str, Any] = {
            "order": self.order,
            "steps": self.steps,
            "role": self.role,
            "differences": self.differences,
        }
        if not self.person_columns:
            return sp.Schema(columns, rules=rules, person=KEY, most_rows=self.most, **link)
        return sp.Tables(
            {
                PERSONS: sp.Schema({KEY: sp.Identifier(), **self.person_columns}),
                ROWS: sp.Schema(columns, rules=rules),
            },
            links=[sp.Link(f"{ROWS}.{KEY}", f"{PERSONS}.{KEY}", most=self.most, **link)],
        )

    def split(self, seed: int) -> tuple[People, People]:
        """Four fifths of the persons to fit and one fifth to test, at random, with all their rows."""
        return parted(self.people, 0.8, seed)


def parted(people: People, share: float, seed: int) -> tuple[People, People]:
    """Persons in two parts, at random."""
    keys = people.keys()
    order = np.random.default_rng([seed, 1]).permutation(len(keys))
    n_first = int(share * len(keys))
    return people.only(keys[order[:n_first]]), people.only(keys[order[n_first:]])


def cdnow(folder: Path) -> PeopleTable:
    """Purchases of customers of a music shop in 1997 and 1998: day since the first, discs, price."""
    columns = {
        "day": sp.Integer(0, 545),
        "cds": sp.Integer(1, 200),
        "dollars": sp.Real(0, 2_000, multiple_of=0.01),
    }
    rows = _read(folder, "cdnow_rows").with_columns(pl.col("dollars").round(2))
    return PeopleTable("cdnow", People(None, rows), columns, most=250, order="day")


def lahman(folder: Path) -> PeopleTable:
    """Players of baseball and their seasons; the label is a weight of at least 195 pounds."""
    persons = _read(folder, "lahman_persons").with_columns(pl.col("birth", "height").cast(pl.Int64))
    person_columns = {
        "birth": sp.Integer(1800, 2010, nullable=True),
        "height": sp.Integer(36, 96, nullable=True),
        "bats": sp.Category(("R", "L", "B", "?")),
        "throws": sp.Category(("R", "L", "?")),
        "usa": _YES_NO,
        "heavy": _YES_NO,
    }
    columns = {
        "year": sp.Integer(1871, 2024),
        "league": sp.Category(("NL", "AL", "other")),
        "G": sp.Integer(0, 200),
        "AB": sp.Integer(0, 800),
        "H": sp.Integer(0, 300),
        "HR": sp.Integer(0, 100),
        "SB": sp.Integer(0, 200),
        "BB": sp.Integer(0, 300),
    }
    people = People(persons, _read(folder, "lahman_rows"))
    return PeopleTable(
        "lahman", people, columns, most=40, order="year", person_columns=person_columns, steps=True, target="heavy"
    )


def nafld(folder: Path) -> PeopleTable:
    """Patients of a liver study and days with laboratory results; the label is death."""
    person_columns = {
        "age": sp.Integer(18, 110),
        "male": _YES_NO,
        "weight": sp.Real(0, 300, multiple_of=0.1, nullable=True),
        "bmi": sp.Real(0, 100, nullable=True),
        "futime": sp.Integer(0, 10_000),
        "status": _YES_NO,
    }
    labs = ("chol", "hdl", "sbp", "dbp")
    columns = {
        "days": sp.Integer(-10_000, 10_000),
        **dict.fromkeys(labs, _LAB),
        "smoke": sp.Category(("yes", "no", "?")),
    }
    persons = _read(folder, "nafld_persons").with_columns(pl.col("weight").round(1))
    people = People(persons, _read(folder, "nafld_rows").with_columns(pl.col(*labs).cast(pl.Int64)))
    return PeopleTable("nafld", people, columns, most=200, order="days", person_columns=person_columns, target="status")


FILES: dict[str, Callable[[Path], PeopleTable]] = {"cdnow": cdnow, "lahman": lahman, "nafld": nafld}


def _read(folder: Path, name: str) -> pl.DataFrame:
    for path in (folder / "people" / f"{name}.parquet", folder / f"{name}.parquet"):
        if path.is_file():
            return pl.read_parquet(path)
    raise FileError(f"there is no {name}.parquet in {str(folder)!r} or its folder people; leave the table out (--only)")
