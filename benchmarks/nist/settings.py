"""What is released of the excerpt: columns, budget and quality, and which columns are looked up instead of modelled.

DENSITY is the population density of a PUMA, one published number for each of the twenty areas. Where it is looked up,
it is left out of the schema, and rows get the number of their area; as the Census Bureau's list is not at hand, the
numbers are read off the rows, as categories are elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import polars as pl

import spinney as sp
from benchmarks.nist.excerpt import TEN, load, write
from spinney.columns import Column
from spinney.privacy.entropy import UnsafeSeededEntropy

DELTA = "1e-6"
_AREA = "PUMA"
_RULES = "benchmarks.nist.rules"


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the table; `wanted` is the k-marginal score that it should reach."""

    name: str
    columns: tuple[str, ...] | None  # all if None, which scores pairs within areas
    epsilon: str = "1"
    quality: str = "high"
    target: str | None = None
    looked_up: tuple[str, ...] = ()
    wanted: float | None = None

    @property
    def slug(self) -> str:
        return self.name.replace(",", "").replace(" ", "-").replace(".", "_")


SETTINGS = (
    Setting("10 columns, epsilon 1, high", TEN, wanted=985),
    Setting("10 columns, epsilon 1, fast", TEN, quality="fast"),
    Setting("10 columns, epsilon 0.1, high", TEN, epsilon="0.1"),
    Setting("24 columns, epsilon 1, high", None, wanted=880),
    Setting("24 columns, epsilon 1, fast", None, quality="fast"),
    Setting("24 columns, density looked up, epsilon 1, high", None, looked_up=("DENSITY",)),
    Setting("24 columns, density looked up, epsilon 1, fast", None, quality="fast", looked_up=("DENSITY",)),
    Setting("24 columns, density looked up, epsilon 0.1, high", None, epsilon="0.1", looked_up=("DENSITY",)),
)


def has_rules() -> bool:
    """Whether NIST's rules are stated beside this file."""
    return find_spec(_RULES) is not None


def stated(columns: dict[str, Column]) -> sp.Schema:
    """The columns with NIST's rules over them: `rules(columns)` of `rules.py`, where the file is there."""
    return sp.Schema(columns, rules=import_module(_RULES).rules(columns) if has_rules() else ())


def releases(setting: Setting, data: Path, folder: Path, *, n_releases: int) -> Iterator[Path]:
    """Fit, draw as many rows as there are, and write them as the scorer reads them; one file a release."""
    rows, schema = load(data, setting.columns)
    kept = {name: column for name, column in schema.items() if name not in setting.looked_up}
    lists = [rows.select(_AREA, name).unique(_AREA) for name in setting.looked_up]
    for seed in range(n_releases):
        model = sp.ForestSynthesizer(setting.epsilon, DELTA, quality=setting.quality, target=setting.target)
        model.fit(rows.select(*kept), stated(kept), entropy=UnsafeSeededEntropy(seed))
        drawn: pl.DataFrame = model.sample(rows.height, seed=seed)
        for each in lists:
            drawn = drawn.join(each, on=_AREA, how="left")
        path = folder / f"{setting.slug}-{seed}.csv"
        write(drawn.select(rows.columns), path)
        yield path
