"""Fields fitted to noisy tables: exact ones are met, noise is weighed, boxes and masks are kept, starts help."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.errors import ParameterError
from spinney.graph.crf import Field, FieldMeasurement, fit_field
from spinney.graph.crf_inference import FieldClique
from support.slow_fields import random_evidence, random_field
from support.strategies import MODEST

TOTAL = 10_000.0


def measured(
    field: Field, evidence: np.ndarray, weights: np.ndarray, noise_std: float, rng: np.random.Generator | None = None
) -> list[FieldMeasurement]:
    """All tables of a field, with normal noise if there is a generator."""
    cliques = list(field.tables())
    found = []
    for clique, table in zip(cliques, field.expected_tables(cliques, evidence, weights / weights.sum()), strict=True):
        noise = 0.0 if rng is None else rng.normal(0, noise_std, table.size)
        found.append(FieldMeasurement(clique.evidence, clique.own, TOTAL * table.ravel() + noise, noise_std))
    return found


def distance(one: Field, other: Field, evidence: np.ndarray, weights: np.ndarray) -> float:
    """The largest total variation between the tables of all the first field's cliques."""
    cliques, shares = list(one.tables()), weights / weights.sum()
    pairs = zip(
        one.expected_tables(cliques, evidence, shares), other.expected_tables(cliques, evidence, shares), strict=True
    )
    return max(float(np.abs(a - b).sum()) / 2 for a, b in pairs)


def fitted(truth: Field, tables: list[FieldMeasurement], evidence: np.ndarray, weights: np.ndarray, **how) -> Field:
    sizes, evidence_sizes = truth.sizes, truth.evidence_sizes
    return fit_field(sizes, evidence_sizes, tables, evidence, weights, TOTAL, role=truth.role, masks=truth.masks, **how)


@MODEST
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_exact_tables_are_met(seed: int, role: bool, masks: bool) -> None:
    """A field whose tables were measured without error is found, with any forest, links, role and masks."""
    rng = np.random.default_rng(seed)
    truth = random_field(rng, role=role, masks=masks)
    evidence, weights = random_evidence(rng, truth, 60), rng.random(60)
    found = fitted(truth, measured(truth, evidence, weights, 0.1), evidence, weights, steps=100)
    assert distance(truth, found, evidence, weights) < 2e-3


def chain(rng: np.random.Generator) -> tuple[Field, np.ndarray, np.ndarray]:
    """Three columns in a chain, two columns of evidence, skewed."""
    slope = np.linspace(-1, 1, 6)
    tables = {
        FieldClique((), (0,)): np.linspace(-2, 1, 6),
        FieldClique((), (1,)): np.linspace(1, -1, 6),
        FieldClique((), (2,)): np.zeros(6),
        FieldClique((), (0, 2)): 2 * np.outer(slope, slope),
        FieldClique((), (1, 2)): -2 * np.outer(slope, slope),
        FieldClique((0,), (0,)): 1.5 * np.outer(np.linspace(-1, 1, 4), slope),
        FieldClique((1,), (2,)): np.outer(np.linspace(-1, 1, 3), slope),
    }
    truth = Field.of([6, 6, 6], [4, 3], tables)
    return truth, np.array([rng.integers(0, 4, 2000), rng.integers(0, 3, 2000)]), rng.random(2000) + 0.1


def test_noise_is_weighed() -> None:
    """The fit comes nearer to the truth than the noisy tables, and nearer with less noise; negative numbers too."""
    rng = np.random.default_rng(0)
    truth, evidence, weights = chain(rng)
    cliques = list(truth.tables())
    exact = truth.expected_tables(cliques, evidence, weights / weights.sum())
    distances = []
    for noise_std in (10.0, 50.0, 250.0):
        tables = measured(truth, evidence, weights, noise_std, rng)
        assert noise_std < 50 or any((m.noisy < 0).any() for m in tables)
        found = fitted(truth, tables, evidence, weights)
        raw = np.mean(
            [np.abs(m.noisy - TOTAL * t.ravel()).sum() / 2 / TOTAL for m, t in zip(tables, exact, strict=True)]
        )
        fit = np.mean(
            [
                np.abs(a - b).sum() / 2
                for a, b in zip(found.expected_tables(cliques, evidence, weights / weights.sum()), exact, strict=True)
            ]
        )
        assert fit < 0.85 * raw
        distances.append(fit)
    assert distances[0] < 0.5 * distances[1] < 0.5 * distances[2]


def test_a_precise_table_beats_a_noisy_one() -> None:
    """Two measurements of one column: the fit follows the precise one."""
    precise = FieldMeasurement((), (0,), np.array([7000.0, 3000.0]), 1.0)
    noisy = FieldMeasurement((), (0,), np.array([2000.0, 8000.0]), 500.0)
    for order in ([precise, noisy], [noisy, precise]):
        found = fit_field([2], [], order, np.empty((0, 1), dtype=int), np.ones(1), TOTAL)
        table = found.expected(FieldClique((), (0,)), np.empty((0, 1), dtype=int), np.ones(1))
        np.testing.assert_allclose(table, [0.7, 0.3], atol=2e-3)


def test_boxes_share_their_number() -> None:
    """Cells with one label are fitted in sum and are alike within, also across states of the evidence."""
    labels = np.array([[0, 0, 1, 1], [0, 0, 2, 2], [3, 3, 3, 3]], dtype=np.int32)
    evidence, weights = np.array([[0, 1, 2]]), np.array([0.25, 0.25, 0.5])
    noisy = np.array([3500.0, 500.0, 1000.0, 5000.0])
    found = fit_field([4], [3], [FieldMeasurement((0,), (0,), noisy, 5.0, labels)], evidence, weights, TOTAL)
    table = TOTAL * found.expected(FieldClique((0,), (0,)), evidence, weights)
    np.testing.assert_allclose(np.bincount(labels.ravel(), weights=table.ravel()), noisy, atol=20)
    np.testing.assert_allclose(table[2], 1250, atol=1)
    np.testing.assert_allclose(table[0, 0], table[0, 1])


def test_what_the_evidence_fixes_is_not_fitted() -> None:
    """Noise in the sums over own states, which no field can change, does not move the rest."""
    rng = np.random.default_rng(1)
    truth, evidence, weights = chain(rng)
    tables = measured(truth, evidence, weights, 1.0)
    shifted = [
        FieldMeasurement(m.evidence, m.own, m.noisy + np.repeat([300.0, -100, 50, 200], 6), m.noise_std)
        if m.evidence == (0,)
        else FieldMeasurement(m.evidence, m.own, m.noisy + 77.0, m.noise_std)
        for m in tables
    ]
    found, moved = (fitted(truth, kind, evidence, weights) for kind in (tables, shifted))
    assert distance(found, moved, evidence, weights) < 1e-3


def test_a_role_carries_dependence_that_no_pair_has() -> None:
    """Evidence and own column agree for one role and disagree for the other: triples are fitted."""
    triple = np.array([[[5.0, 1.0], [1.0, 5.0]], [[1.0, 5.0], [5.0, 1.0]]])  # role, evidence, own
    evidence, weights = np.array([[0, 1]]), np.ones(2)
    tables = [
        FieldMeasurement((), (1,), np.array([5000.0, 5000.0]), 5.0),
        FieldMeasurement((0,), (1, 0), TOTAL * triple.ravel() / triple.sum(), 5.0),
    ]
    found = fit_field([2, 2], [2], tables, evidence, weights, TOTAL, role=1)
    table = found.expected(FieldClique((0,), (1, 0)), evidence, weights / 2)
    np.testing.assert_allclose(table, triple / triple.sum(), atol=2e-3)
    assert found.expected(FieldClique((0,), (1,)), evidence, weights).shape == (2, 2)
    drawn = found.draw(np.zeros((1, 6000), dtype=int), np.random.default_rng(0))
    assert abs(np.mean(drawn[0] == drawn[1]) - 5 / 6) < 0.03


def test_tables_without_the_role_are_fitted_in_sum() -> None:
    """A field with a role meets tables that were measured over all roles, of columns, pairs and links."""
    rng = np.random.default_rng(4)
    tables = {
        FieldClique((), (2, 0)): rng.normal(size=(2, 3)),
        FieldClique((), (2, 0, 1)): rng.normal(size=(2, 3, 3)),
        FieldClique((0,), (2, 1)): rng.normal(size=(2, 2, 3)),
        FieldClique((0,), (2,)): rng.normal(size=(2, 2)),
    }
    truth = Field.of([3, 3, 2], [2], tables, role=2)
    evidence, weights = np.array([[0, 1]]), np.array([0.3, 0.7])
    cliques = [FieldClique((), (0,)), FieldClique((), (0, 1)), FieldClique((0,), (1,)), FieldClique((0,), (2,))]
    exact = truth.expected_tables(cliques, evidence, weights)
    measurements = [
        FieldMeasurement(clique.evidence, clique.own, TOTAL * table.ravel(), 1.0)
        for clique, table in zip(cliques, exact, strict=True)
    ]
    found = fit_field([3, 3, 2], [2], measurements, evidence, weights, TOTAL, role=2, steps=200)
    for one, other in zip(found.expected_tables(cliques, evidence, weights), exact, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


def test_masks_hold_against_noise() -> None:
    """A cell that cannot be stays empty although its noisy number says otherwise."""
    mask = np.array([[True, False, True], [True, True, True]])
    evidence, weights = np.array([[0, 1]]), np.ones(2)
    table = FieldMeasurement((0,), (0,), np.array([2000.0, 900, 2000, 3000, 1000, 1000]), 300.0)
    found = fit_field([3], [2], [table], evidence, weights, TOTAL, masks=[(0, 0, mask)])
    expected = found.expected(FieldClique((0,), (0,)), evidence, weights)
    assert expected[0, 1] == 0
    assert np.isfinite(expected).all()
    assert np.isclose(expected.sum(), 2)


def test_a_start_shortens_the_way_and_leaves_the_goal() -> None:
    """From a field fitted to all tables but one, few steps do; with many the end is the same as without."""
    rng = np.random.default_rng(2)
    truth, evidence, weights = chain(rng)
    tables = measured(truth, evidence, weights, 4.0, rng)
    start = fitted(truth, tables[:-1], evidence, weights, steps=60)
    goal = fitted(truth, tables, evidence, weights, steps=400)
    assert distance(goal, fitted(truth, tables, evidence, weights, steps=400, start=start), evidence, weights) < 2e-3
    far = distance(goal, fitted(truth, tables, evidence, weights, steps=4), evidence, weights)
    near = distance(goal, fitted(truth, tables, evidence, weights, steps=4, start=start), evidence, weights)
    assert near < 0.7 * far


def test_nothing_measured_or_no_steps_give_independent_columns() -> None:
    """Without tables all states are alike; without steps the one-way tables are all there is."""
    evidence, weights, clique = np.empty((0, 2), dtype=int), np.ones(2), FieldClique((), (0, 1))
    table = fit_field([2, 2], [], [], evidence, weights, TOTAL).expected(clique, evidence, weights)
    np.testing.assert_allclose(table, 0.5)
    one = FieldMeasurement((), (0,), np.array([7500.0, 2500.0]), 1.0)
    pair = FieldMeasurement((), (0, 1), np.array([7500.0, 0.0, 0.0, 2500.0]), 1.0)
    found = fit_field([2, 2], [], [one, pair], evidence, weights, TOTAL, steps=0)
    np.testing.assert_allclose(found.expected(clique, evidence, weights), [[0.75, 0.75], [0.25, 0.25]])


def test_starts_of_other_columns_or_tables_are_refused() -> None:
    """A start must have the same columns, and no table that was not measured."""
    evidence, weights = np.zeros((1, 1), dtype=int), np.ones(1)
    one = FieldMeasurement((), (0,), np.array([1.0, 2.0]), 1.0)
    for start in (
        Field.of([3], [2], {}),
        Field.of([2], [3], {}),
        Field.of([2], [2], {}, role=0),
        Field.of([2], [2], {FieldClique((0,), (0,)): np.zeros((2, 2))}),
    ):
        with pytest.raises(ParameterError, match="start"):
            fit_field([2], [2], [one], evidence, weights, TOTAL, start=start)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"total": 0.0}, "total"),
        ({"total": float("nan")}, "total"),
        ({"steps": -1}, "steps"),
        ({"weights": np.zeros(3)}, "weights"),
        ({"noisy": np.array([1.0, np.nan])}, "noisy"),
        ({"noisy": np.ones(3)}, "noisy"),
        ({"noise_std": 0.0}, "noise_std"),
        ({"noise_std": np.ones(3)}, "noise_std"),
        ({"labels": np.array([0, 2])}, "labels"),
        ({"labels": np.array([[0, 1]])}, "labels"),
        ({"masks": [(0, 0, np.ones((2, 3), dtype=bool))]}, "mask"),
        ({"masks": [(0, 0, np.ones((2, 2)))]}, "mask"),
    ],
)
def test_bad_arguments_are_refused(change: dict, word: str) -> None:
    """Each error names what is wrong."""
    kind = {"noisy": np.ones(2), "noise_std": 1.0, "labels": None, "total": TOTAL, "weights": np.ones(3)} | change
    m = FieldMeasurement((), (0,), kind.pop("noisy"), kind.pop("noise_std"), kind.pop("labels"))
    weights, total = kind.pop("weights"), kind.pop("total")
    with pytest.raises(ParameterError, match=word):
        fit_field([2], [2], [m], np.zeros((1, 3), dtype=int), weights, total, **kind)
