"""A table of every kind of column, with rules and a place, for forests that are counted where the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import spinney as sp

N = 4_000
KINDS = ("open", "closed", "lost", "new")

SCHEMA = sp.Schema(
    {
        "height": sp.Real(1, 2.5, nullable=True),
        "age": sp.Integer(0, 120),
        "visits": sp.Integer(0, 50, nullable=True),
        "born": sp.Date("1900-01-01", "2020-12-31"),
        "left": sp.Date("1900-01-01", "2050-12-31", nullable=True),
        "kind": sp.Category(KINDS),
        "north": sp.Real(0, 10),
        "east": sp.Real(0, 10),
        "label": sp.Boolean(),
    },
    rules=[sp.AtMost("born", "left"), sp.EmptyWhen("left", "kind", ("open",))],
    places=[sp.Place("north", "east")],
)


def rows(n_rows: int = N, *, seed: int = 0) -> pa.Table:
    """Rows in which everything depends on age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, n_rows)
    kind = rng.choice(4, n_rows, p=[0.4, 0.3, 0.2, 0.1])
    born = np.datetime64("2020-01-01") - (365 * age).astype("timedelta64[D]")
    return pa.table(
        {
            "height": pa.array(rng.normal(1.5 + age / 500, 0.1, n_rows), mask=rng.random(n_rows) < 0.1),
            "age": age,
            "visits": pa.array(age // 3, mask=rng.random(n_rows) < 0.2),
            "born": born,
            "left": pa.array(born + rng.integers(0, 9_000, n_rows), mask=kind == 0),
            "kind": pa.array([KINDS[place] for place in kind]),
            "north": np.clip(age / 12 + rng.normal(0, 1, n_rows), 0, 10),
            "east": rng.random(n_rows) * 10,
            "label": age > rng.integers(0, 100, n_rows),
        }
    )


def without_rules() -> sp.Schema:
    """The same columns by themselves."""
    return sp.Schema(dict(SCHEMA))


def with_private_parts() -> sp.Schema:
    """Bounds and a list of values that are found privately."""
    columns = dict(SCHEMA)
    columns["age"], columns["kind"] = sp.Integer(bounds="private"), sp.Category(values="private", other="else")
    return sp.Schema(columns)


def members(model: sp.ForestSynthesizer) -> tuple[Any, ...]:
    """All that a release is made of but the kind of frame, and rows that meet a condition."""
    release = model.release_
    drawn = release.sample(50, seed=1, where={"label": True}, frame="pyarrow")
    card = {key: value for key, value in release.card.to_dict().items() if key != "frame"}
    return card, release.to_members(), drawn.to_pydict()
