"""Dependence between the members of a household, which no pair of columns of a row can see. NOT PRIVATE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from benchmarks.people.homes import CHILD, PARTNER, REFERENCE
from benchmarks.people.tables import KEY


@dataclass(frozen=True, slots=True)
class Households:
    """Shares and correlations; those between members are over households with exactly one reference person."""

    one_reference: float
    other_sex: float  # of partners
    ages: float  # correlation of reference person and partner
    schooling: float
    older_child: float  # share of children that are older than the reference person
    child_gap: float  # mean years between reference person and child


def household_figures(rows: pl.DataFrame) -> Households:
    """Of members of households, in any order."""
    rows = rows.with_columns(pl.col("relation", "sex").cast(pl.String))
    n_homes = rows[KEY].n_unique()
    anchors = rows.filter(pl.col("relation") == REFERENCE)
    anchors = anchors.filter(pl.len().over(KEY) == 1)
    joined = rows.join(anchors.select(KEY, "age", "sex", "edu"), on=KEY, suffix="_of")
    partners = joined.filter(pl.col("relation") == PARTNER)
    children = joined.filter(pl.col("relation") == CHILD)
    gaps = (children["age_of"] - children["age"]).to_numpy()
    return Households(
        one_reference=anchors.height / n_homes,
        other_sex=float((partners["sex"] != partners["sex_of"]).to_numpy().mean()),
        ages=_correlation(partners, "age"),
        schooling=_correlation(partners, "edu"),
        older_child=float((gaps < 0).mean()),
        child_gap=float(gaps.mean()),
    )


def _correlation(partners: pl.DataFrame, name: str) -> float:
    return float(np.corrcoef(partners[name].to_numpy(), partners[f"{name}_of"].to_numpy())[0, 1])
