"""Leaf moments carry the noise that their plan states, and no other."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

import spinney as sp
from spinney.grid.codes import deinterleave
from spinney.grid.lattice import tree_lattice
from spinney.privacy.budget import Unit
from spinney.release.card import plan_entries
from spinney.tables.open import open_source
from spinney.tree.moments import release_moments
from spinney.tree.plan import SplitPlan
from support.goodness_of_fit import ACCEPT, REJECT
from support.handmade_leaves import nodes_of, sup_norms
from support.slow_trees import leaf_steps

SCHEMA = sp.Schema({"x": sp.Real(0, 1, bits=7), "y": sp.Integer(0, 127)})
UNITS = {"replace-one": 2, "add-remove": 1}


def fitted(unit: str, epsilon: str = "2"):
    """The noise in counts that the card states, 4,096 leaves of four cells each, and their noise.

    A few leaves have rows; noise is released steps less true ones.
    """
    cells = np.random.default_rng(5).integers(0, 26, size=(200, 2))
    table = np.stack([(cells[:, 0] + 0.5) / 128, cells[:, 1]], axis=1)
    plan = SplitPlan(
        "privtree", Unit.parse(unit), 12, 12, count_epsilon=Fraction(epsilon), threshold=1, has_moments=True
    )
    ledger = sp.Ledger(limit=epsilon, unit=unit)
    counts = open_source(table, SCHEMA).count_cells(tree_lattice(SCHEMA))
    released = release_moments(counts, plan=plan, ledger=ledger, entropy=sp.UnsafeSeededEntropy(9))
    of_leaf: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for x, y in cells.tolist():
        of_leaf.setdefault((x // 2, y // 2), []).append((x, y))
    first, _ = deinterleave(released.codes, released.depths, released.lattice)
    true_steps = [
        leaf_steps(of_leaf.get((x // 2, y // 2), []), node, released.lattice, released.quantum)
        for node, (x, y) in zip(nodes_of(released), first.tolist(), strict=True)
    ]
    assert len(of_leaf) > 50
    stated = plan_entries(plan.to_dict(), ledger.events, plan.unit)["count_noise_scale"]
    return stated, released, released.noisy_steps - np.array(true_steps)


def coordinate_cdf(x: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """P(|coordinate| < x) for density exp(-max) in k dimensions: uniform on a cube whose reach is gamma, k+1 parts."""
    return 1 - special.gammaincc(k + 1, x) + x / k * special.gammaincc(k, x)


@pytest.mark.parametrize("unit", UNITS)
def test_released_steps_have_the_stated_noise(unit: str) -> None:
    """Norms of leaves and sizes of all three coordinates fit at the scale of the card; 0.7x and 1.3x are rejected."""
    stated, released, noise = fitted(unit)
    assert stated == UNITS[unit] / 2
    assert released.rate == Fraction(2, UNITS[unit] * released.quantum)
    scale = stated * released.quantum

    def p_values(claimed: float) -> list[float]:
        norms = stats.kstest(sup_norms(noise), stats.gamma(3, scale=claimed).cdf).pvalue
        sizes = [stats.kstest(np.abs(noise[:, i]), lambda x: coordinate_cdf(x / claimed, 3)).pvalue for i in range(3)]
        return [float(norms), *map(float, sizes)]

    assert min(p_values(scale)) > ACCEPT
    assert max(p_values(0.7 * scale)) < REJECT
    assert max(p_values(1.3 * scale)) < REJECT


def test_leaves_with_and_without_rows_have_the_same_noise() -> None:
    """Two samples of one law; with half the noise on one side they would not be."""
    _, released, noise = fitted("replace-one")
    first, _ = deinterleave(released.codes, released.depths, released.lattice)
    could_hold_rows = (first[:, 0] < 26) & (first[:, 1] < 26)
    norms = [sup_norms(noise[part]).astype(float) for part in (could_hold_rows, ~could_hold_rows)]
    assert stats.ks_2samp(*norms).pvalue > ACCEPT
    assert stats.ks_2samp(norms[0] / 2, norms[1]).pvalue < REJECT


def test_coordinates_of_a_leaf_are_uncorrelated_and_leaves_independent() -> None:
    """No coordinate tells another one's sign, and no leaf its neighbour's size; a shared draw would be noticed."""
    _, _, noise = fitted("replace-one")
    assert stats.pearsonr(np.sign(noise[:, 0]), np.sign(noise[:, 1])).pvalue > ACCEPT
    assert stats.pearsonr(np.sign(noise[:, 1]), np.sign(noise[:, 2])).pvalue > ACCEPT
    assert stats.spearmanr(sup_norms(noise[1:]), sup_norms(noise[:-1])).pvalue > ACCEPT
    assert stats.spearmanr(np.abs(noise[:, 0]), np.abs(noise[:, 2])).pvalue < REJECT  # one reach for a whole leaf
