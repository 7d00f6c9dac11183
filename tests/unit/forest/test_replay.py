"""Fits replayed on neighbouring tables: mechanisms are asked no more than one row apart, and nothing else is seen."""

from __future__ import annotations

from contextlib import contextmanager
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.forest import columns, rounds
from spinney.forest import sums as products
from spinney.forest.release.formula import Block
from spinney.release.utility import figures_reach_squared
from spinney.synthesizers import forest, utility
from support.replay import compare, failures

SCHEMA = sp.Schema(
    {
        "kind": sp.Category(["a", "b", "c", "d"]),
        "size": sp.Real(-2, 6),
        "count": sp.Integer(0, 500),
        "free": sp.Category(["u", "v", "w"], nullable=True),
        "label": sp.Boolean(),
        "east": sp.Real(0, 8),
        "north": sp.Real(0, 8),
    },
    places=[sp.Place("east", "north")],
)
N_ROWS = 1000
LAST = {"kind": "a", "size": -1.5, "count": 3, "free": "u", "label": False, "east": 0.5, "north": 0.5}
OTHERS = [
    {"kind": "d", "size": 5.9, "count": 499, "free": None, "label": True, "east": 7.9, "north": 7.9},
    {"kind": "a", "size": 1.0, "count": 100, "free": "w", "label": False, "east": 0.5, "north": 7.0},
    {"kind": "b", "size": -2.0, "count": 0, "free": "v", "label": True, "east": 3.0, "north": 0.1},
]
MODELS = {
    "fast": {},
    "target": {"target": "label"},
    "rounds": {"quality": "high", "epsilon": 20},
    "analyses": {"analyses": ["size ~ kind + count", "label ~ size"]},
    "pure": {"delta": 0},
    "utility": {"utility_share": "0.1"},
    "pure utility": {"delta": 0, "utility_share": "0.1"},
}
FITS = pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
UNITS = pytest.mark.parametrize("unit", ["replace-one", "add-remove"])


@pytest.fixture(autouse=True)
def few_drawn():
    """Rows that figures of utility are about are drawn in a moment."""
    with mock.patch.object(utility, "MOST_DRAWN", 1 << 12):
        yield


def table(last=None):
    """Columns that depend on each other; the last row is as it is said, or missing."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, N_ROWS)
    free = rng.integers(0, 4, N_ROWS)
    count = rng.integers(0, 25, N_ROWS) * 10 + 40 * kind
    east = rng.integers(0, 8, N_ROWS)
    columns = {
        "kind": [*np.array(list("abcd"))[kind].tolist()],
        "size": np.clip(kind + rng.normal(0, 0.3, N_ROWS), -2, 6).round(1).tolist(),
        "count": count.tolist(),
        "free": [None if value == 3 else "uvw"[value] for value in free.tolist()],
        "label": (kind > 1).tolist(),
        "east": (east + rng.random(N_ROWS)).tolist(),
        "north": (east // 2 + rng.random(N_ROWS)).tolist(),
    }
    if last is not None:
        columns = {name: [*values, last[name]] for name, values in columns.items()}
    kinds = {"kind": pa.string(), "free": pa.string(), "label": pa.bool_(), "count": pa.int64()}
    return pa.table({name: pa.array(values, kinds.get(name, pa.float64())) for name, values in columns.items()})


def fitting(options, unit):
    model = {"epsilon": 8, "delta": "1e-5", "unit": unit, "assumed_rows": N_ROWS} | options
    return lambda frame: sp.ForestSynthesizer(**model).fit(frame, SCHEMA, entropy=sp.UnsafeSeededEntropy(3))


def neighbours(unit):
    return OTHERS if unit == "replace-one" else [None]


@FITS
@UNITS
def test_questions_move_by_what_was_paid_for(options, unit):
    """Tables, trees, choices and sums: one row moves none of them further than its mechanism was told."""
    stages, tightest = set(), {}
    for move in compare(fitting(options, unit), table(LAST), *map(table, neighbours(unit))):
        assert move.is_within, move
        stages.add(move.stage)
        tightest[move.method] = max(tightest.get(move.method, 0.0), move.tightness)
    assert {"trees", "one-way", "spikes", "regions", "places"} <= stages
    assert tightest["noisy_counts"] == tightest["ranges"] == tightest["regions"] == 1  # so that a smaller bound fails
    if "analyses" in options:
        assert "analyses" in stages
    if "utility_share" in options:
        assert "utility" in stages
        method = "noisy_figures" if options.get("delta") == 0 else "noisy_sums"
        assert tightest[method] > 0.1  # the largest distances move by much of what they may
    if options.get("quality") == "high":
        assert {"selection", "cliques"} <= stages


@UNITS
def test_every_stage_of_a_forest_is_replayed(unit):
    """The models of these tests together ask all kinds of mechanisms, choices and sums of products among them."""
    found = set()
    for options in MODELS.values():
        found |= {move.stage for move in compare(fitting(options, unit), table(LAST), table(neighbours(unit)[0]))}
    wanted = {"classes", "trees", "one-way", "spikes", "regions", "places", "selection", "pairs", "cliques"}
    assert wanted | {"analyses", "products"} <= found


# ------------------------------------------------------------------------------------------------ sabotage


def sums_said_to_move_less():
    """Sums of regressions that are told a part of how far a row moves them."""
    told = Block.sensitivity_squared
    return mock.patch.object(Block, "sensitivity_squared", lambda self, unit: told(self, unit) // 8)


def products_said_to_move_less():
    """Sums of products that are told a part of how far a row moves them."""
    told = products.sensitivity_squared
    return mock.patch.object(products, "sensitivity_squared", lambda *shape: told(*shape) // 8)


def scores_said_to_move_less():
    """Choices that are told a part of how far a row moves scores."""
    return mock.patch.object(rounds, "GAP_STEPS", rounds.GAP_STEPS // 16)


def counts_that_hold_rows_twice():
    """Tables of columns whose cells share rows."""
    original = columns._all_cells

    def shared(counts, axis):
        first, stop, true_counts = original(counts, axis)
        return first, stop, true_counts + np.roll(true_counts, 1)

    return mock.patch.object(columns, "_all_cells", shared)


def figures_said_to_move_less():
    """Figures of utility whose noise is asked for as if a row moved them by a quarter of what it does."""
    return mock.patch.object(forest, "figures_reach_squared", lambda *of: figures_reach_squared(*of) // 64)


@contextmanager
def a_total_that_is_not_released():
    """A forest under add-remove that takes the true number of rows for its total."""
    original = forest.grow

    def with_total(source, *args, total, **options):
        return original(source, *args, total=source.n_rows, **options)

    with mock.patch.object(forest, "grow", with_total):
        yield


def caught(sabotage, options, unit):
    """Whether some neighbour shows the mistake: by a question, or by a release that differs."""
    with sabotage():
        try:
            return bool(failures(compare(fitting(options, unit), table(LAST), *map(table, neighbours(unit)))))
        except AssertionError:
            return True


CAGES = {
    "sums": (sums_said_to_move_less, "analyses", "replace-one"),
    "products": (products_said_to_move_less, "fast", "replace-one"),
    "scores": (scores_said_to_move_less, "rounds", "replace-one"),
    "figures": (figures_said_to_move_less, "utility", "replace-one"),
    "cells that share rows": (counts_that_hold_rows_twice, "fast", "add-remove"),
    "a true total": (a_total_that_is_not_released, "fast", "add-remove"),
}


@pytest.mark.parametrize(("sabotage", "model", "unit"), CAGES.values(), ids=CAGES)
def test_sabotage_is_caught(sabotage, model, unit):
    """A sensitivity that is told too small, cells that share rows, a number that no mechanism put out."""
    assert caught(sabotage, MODELS[model], unit)
