"""Small forests whose answer is known, for tests of what is said and drawn of them."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import spinney as sp
from spinney.columns import Column
from spinney.forest.columns import NoisyColumn
from spinney.forest.plan import Shape, forest_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.columns import ColumnModel
from spinney.forest.release.file import released
from spinney.forest.release.model import ForestRelease
from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel
from spinney.grid.axes import column_axis
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import StageName
from spinney.release.card import Card

SCHEMA = sp.Schema(
    {
        "kind": sp.Category(["a", "b", "c", "d"]),
        "size": sp.Real(-2, 6),
        "free": sp.Category(["u", "v", "w"], nullable=True),
        "label": sp.Boolean(),
    }
)


def table(n_rows: int) -> pa.Table:
    """Size and label follow from kind; free depends on nothing and is null in a quarter of the rows."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, n_rows)
    free = rng.integers(0, 3, n_rows)
    return pa.table(
        {
            "kind": pa.array(np.array(list("abcd"))[kind]),
            "size": np.clip(kind + rng.normal(0, 0.3, n_rows), -2, 6),
            "free": pa.array(np.array(list("uvw"))[free], mask=rng.random(n_rows) < 0.25),
            "label": kind > 1,
        }
    )


@cache
def fitted(epsilon: str = "1", n_rows: int = 5000, **parameters: Any) -> sp.ForestSynthesizer:
    """A forest of `table`, by seeded noise."""
    model = sp.ForestSynthesizer(epsilon, **parameters)
    return model.fit(table(n_rows), SCHEMA, entropy=sp.UnsafeSeededEntropy(1))


def chain(n_columns: int, *, agreement: float = 0.4) -> ForestRelease:
    """A release of booleans, each of which agrees with the one before it, those further on less and less."""
    names = [f"column {index:03}" for index in range(n_columns)]
    halves = ColumnModel(
        np.arange(2.0), np.ones(2), np.zeros(2, dtype=np.bool_), np.full(2, 50.0), np.arange(2, dtype=np.int32), 2
    )
    columns = dict.fromkeys(names, halves)
    pairs = [(index, index + 1) for index in range(n_columns - 1)]
    tree = JunctionTree.covering([2] * n_columns, pairs)
    potentials = []
    for clique in tree.cliques:
        how = agreement * (1 - clique[0] / n_columns)
        pair = np.log([[0.5 + how, 0.5 - how], [0.5 - how, 0.5 + how]])
        potentials.append(pair if len(clique) == 2 else np.zeros(2))
    model = GraphModel(tree, tuple(potentials))
    card = Card(
        spinney_version=sp.__version__,
        synthesizer="ForestSynthesizer",
        parameters={"target": None},
        unit="replace-one",
        events=(),
        schema=sp.Schema({name: sp.Boolean() for name in names}),
        design={"structure": "tree"},
        n_rows=100,
        released=released(columns, model),
        frame="pyarrow",
    )
    looked_at = tuple((names[i], names[j]) for i, j in pairs)
    return ForestRelease(columns, model, card, looked_at=looked_at, noisy_total=100)


def exact_prepaid(
    *,
    n_trees: int = 0,
    n_one_way: int = 1,
    n_spikes: int = 0,
    n_choices: int = 0,
    n_pairs: int = 0,
    n_cliques: int = 0,
    epsilon: Fraction = Fraction(10**6),
    unit: Unit = Unit.REPLACE_ONE,
    entropy: Any = None,
) -> PrepaidMechanisms:
    """Mechanisms paid for with pure epsilon; so much of it, unless less is asked for, that no count gets any noise."""
    times: dict[StageName, int] = {
        "trees": n_trees,
        "one-way": n_one_way,
        "spikes": n_spikes,
        "selection": n_choices,
        "pairs": n_pairs,
        "cliques": n_cliques,
    }
    shape = Shape(times, {stage: Fraction(1, 6) for stage, number in times.items() if number}, {"trees": 48})
    plan = forest_plan(shape, epsilon=epsilon, delta=Fraction(0), unit=unit)
    return PrepaidMechanisms(plan, sp.Ledger(unit=unit), sp.UnsafeSeededEntropy(7) if entropy is None else entropy)


def noisy_column(column: Column, noisy_counts: list[int], *, noise_std: float = 1.0) -> NoisyColumn:
    """A column made by hand: leaves of about equal length, or one for each category; null, where it may be, last."""
    axis = column_axis("v", column).axis
    n_leaves = len(noisy_counts) - column.nullable
    if axis.kind == "category":
        first = axis.first + np.arange(n_leaves)
        stop = first + 1
    else:
        edges = np.linspace(axis.first, axis.last + 1, n_leaves + 1).astype(np.int64)
        first, stop = edges[:-1], edges[1:]
    if column.nullable:
        first, stop = np.append(first, axis.null_cell), np.append(stop, axis.null_cell + 1)
    return NoisyColumn(axis, first, stop, np.array(noisy_counts, dtype=np.int64), noise_std)


def model_of(lengths, weights, states, *, null=None, low=0.0) -> ColumnModel:
    """Leaves end to end from `low`, with a leaf of null of this weight after them."""
    length = np.array(lengths, dtype=np.float64)
    start = low + np.concatenate([[0.0], np.cumsum(length)[:-1]])
    is_null = np.zeros(len(length), dtype=np.bool_)
    weights, states = list(weights), list(states)
    if null is not None:
        start, length, is_null = np.append(start, 0.0), np.append(length, 0.0), np.append(is_null, True)
        weights.append(null)
        states.append(max(states) + 1)
    return ColumnModel(
        start, length, is_null, np.array(weights, dtype=np.float64), np.array(states, dtype=np.int32), max(states) + 1
    )
