"""A zoo of sabotaged spikes, the rows in single cells that column trees are counted with, beside the other forests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any
from unittest import mock

import numpy as np

import spinney as sp
from spinney.counting.counts import CellCounts
from spinney.forest import prepaid
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.grid.grain import Grain
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.mechanisms import ComposedRelease, GaussianTables
from spinney.privacy.noise.gaussian import discrete_gaussian
from support.sabotaged_forests import (
    ALWAYS,
    NEVER,
    UNITS_OF_ROWS,
    Check,
    Sabotage,
    other_ranges,
    released_for_neighbours,
    share_no_row,
    small_axes,
)


def spikes_share_no_row() -> float:
    """Cells in which rows may pile up: a row is in one of them at most, however the tree was cut."""
    for axis, unit, cutoff in product(small_axes(), UNITS_OF_ROWS, (ALWAYS, NEVER)):
        seen, _ = released_for_neighbours(axis, unit, cutoff)
        if axis.ruler is not None and not share_no_row(seen["spikes"], unit):
            return 0.0
    return 1.0


def steps_are_of_a_partition() -> float:
    """Classes of the steps of a column: every row is in one of them, whichever steps its value is a multiple of."""
    for axis, unit in product(small_axes(), UNITS_OF_ROWS):
        if axis.grain is not None:
            seen, n_rows = released_for_neighbours(axis, unit, ALWAYS)
            if seen["grain"][0].sum() != n_rows or not share_no_row(seen["grain"], unit):
                return 0.0
    return 1.0


def every_table_is_charged() -> float:
    """Noise is drawn for as many tables of each variance as the charge on the ledger says."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.random(300), rng.integers(0, 100, 300), rng.integers(0, 3, 300)])
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Integer(0, 99), "z": sp.Integer(0, 2)})
    drawn: Counter[Fraction] = Counter()

    def counted(variance: Fraction) -> Any:
        drawn[variance] += 1
        return discrete_gaussian(variance)

    ledger = sp.Ledger(limit=1, delta="1e-5")
    with mock.patch("spinney.forest.prepaid.discrete_gaussian", counted):
        sp.ForestSynthesizer(1).fit(table, schema, ledger=ledger, entropy=UnsafeSeededEntropy(1))
    (charge,) = (event for event in ledger.events if isinstance(event, ComposedRelease))
    charged: Counter[Fraction] = Counter()
    for part in charge.parts:
        if isinstance(part, GaussianTables):
            charged[part.variance] += part.times
    return float(drawn == charged)


# ------------------------------------------------------------------------------------------------ sabotage


def spikes_that_overlap() -> AbstractContextManager[Any]:
    """Every cell counts the rows of the next one's spike too."""
    return other_ranges(
        lambda found: replace(found, true_spikes=found.true_spikes + np.append(found.true_spikes[1:], 0))
    )


def spikes_at_both_ends() -> AbstractContextManager[Any]:
    """Every range has a spike at its beginning and one at its end, which are one and the same if it has one cell."""
    return other_ranges(lambda found: replace(found, true_spikes=np.repeat(found.true_spikes, 2)))


def _spikes_by(other: Callable[[PrepaidMechanisms, Any], Any]) -> AbstractContextManager[Any]:
    noisy_counts = PrepaidMechanisms.noisy_counts

    def changed(self: PrepaidMechanisms, true_counts: Any, stage: str) -> Any:
        return noisy_counts(self, true_counts, stage) if stage != "spikes" else other(self, true_counts)

    return mock.patch.object(PrepaidMechanisms, "noisy_counts", changed)


def spikes_for_nothing() -> AbstractContextManager[Any]:
    """Spikes get noise, that of one-way tables, but nobody takes them out of what was paid for."""

    def free(self: PrepaidMechanisms, true_counts: Any) -> Any:
        variance = self.plan.tables["one-way"].variance
        return true_counts + prepaid.discrete_gaussian(variance).draw(len(true_counts), self._entropy)

    return _spikes_by(free)


def spikes_counted_twice() -> AbstractContextManager[Any]:
    """Spikes are counted twice and averaged, for the price of once."""
    noisy_counts = PrepaidMechanisms.noisy_counts

    def averaged(self: PrepaidMechanisms, true_counts: Any) -> Any:
        once = noisy_counts(self, true_counts, "spikes")
        self._left["spikes"] += 1
        return (once + noisy_counts(self, true_counts, "spikes")) // 2

    return _spikes_by(averaged)


def steps_that_overlap() -> AbstractContextManager[Any]:
    """Every multiple of a step is counted, also where a larger one divides it, by which a row is in several classes."""
    rows_by = CellCounts.rows_by

    def nested(self: CellCounts, grain: Grain) -> Any:
        counts = rows_by(self, grain)
        for place in range(grain.n_values - 2, 0, -1):
            if grain.blocks[place] == grain.blocks[place + 1]:
                counts[place] += counts[place + 1]
        return counts

    return mock.patch.object(CellCounts, "rows_by", nested)


def steps_for_nothing() -> AbstractContextManager[Any]:
    """Steps get noise, that of one-way tables, but nobody takes them out of what was paid for."""
    noisy_counts = PrepaidMechanisms.noisy_counts

    def free(self: PrepaidMechanisms, true_counts: Any, stage: str) -> Any:
        if stage != "grain":
            return noisy_counts(self, true_counts, stage)
        variance = self.plan.tables["one-way"].variance
        return true_counts + prepaid.discrete_gaussian(variance).draw(len(true_counts), self._entropy)

    return mock.patch.object(PrepaidMechanisms, "noisy_counts", free)


SPIKE_CAGES: dict[str, tuple[Check, Sabotage]] = {
    "overlapping spikes": (spikes_share_no_row, spikes_that_overlap),
    "spikes at both ends": (spikes_share_no_row, spikes_at_both_ends),
    "steps that overlap": (steps_are_of_a_partition, steps_that_overlap),
    "steps for nothing": (every_table_is_charged, steps_for_nothing),
    "spikes for nothing": (every_table_is_charged, spikes_for_nothing),
    "spikes counted twice": (every_table_is_charged, spikes_counted_twice),
}
