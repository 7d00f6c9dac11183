"""Fields against enumeration: log Z, tables of all cliques, the law of drawn rows, roles, masks and clamps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spinney.errors import ParameterError
from spinney.graph.crf import Field
from spinney.graph.crf_inference import FieldClique
from support.slow_fields import all_cliques, joint_of_row, random_evidence, random_field, slow_table
from support.strategies import MODEST

SEEDS = st.integers(0, 2**32)


@MODEST
@given(SEEDS, st.booleans(), st.booleans(), st.sampled_from([1.0, 8.0]))
def test_tables_and_log_z_are_those_of_enumeration(seed: int, role: bool, masks: bool, spread: float) -> None:
    """Every clique that a field could have a table of, in the forest or not, with and without the role."""
    rng = np.random.default_rng(seed)
    field = random_field(rng, role=role, masks=masks, spread=spread)
    evidence, weights = random_evidence(rng, field, 5), rng.random(5)
    cliques = all_cliques(field)
    for clique, table in zip(cliques, field.expected_tables(cliques, evidence, weights), strict=True):
        np.testing.assert_allclose(table, slow_table(field, clique, evidence, weights), atol=1e-10, err_msg=str(clique))
        assert np.isclose(table.sum(), weights.sum())
    logs = np.array([joint_of_row(field, row)[1] for row in evidence.T])
    _, found = field.add_up(field.potentials, field.checked_evidence(evidence), weights)
    np.testing.assert_allclose(found, logs @ weights, atol=1e-9)


@MODEST
@given(SEEDS, st.booleans(), st.booleans())
def test_tables_are_the_gradient_of_log_z(seed: int, role: bool, masks: bool) -> None:
    """A potential that rises a little raises the mean log Z by its cell's share."""
    rng = np.random.default_rng(seed)
    field = random_field(rng, role=role, masks=masks)
    evidence, weights = field.checked_evidence(random_evidence(rng, field, 7)), rng.random(7)
    sums, _ = field.add_up(field.potentials, evidence, weights)
    for cell in rng.choice(len(sums), min(len(sums), 10), replace=False):
        nudge = np.zeros(len(sums))
        nudge[cell] = 1e-4
        _, above = field.add_up(field.potentials + nudge, evidence, weights)
        _, below = field.add_up(field.potentials - nudge, evidence, weights)
        np.testing.assert_allclose((above - below) / 2e-4, sums[cell], atol=1e-6)


def chi_square(field: Field, row: np.ndarray, joint: np.ndarray, n_rows: int, **limits: dict) -> float:
    """The p-value of rows that were drawn with one evidence, by the joint law that they should have."""
    evidence = np.repeat(row[:, None], n_rows, axis=1)
    states = field.draw(evidence, np.random.default_rng(5), **limits)
    counts = np.bincount(np.ravel_multi_index(list(states), field.sizes), minlength=joint.size)
    expected = n_rows * joint.ravel()
    assert not counts[expected == 0].any()
    rare = expected < 5
    seen = np.append(counts[~rare], counts[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    keep = wanted > 0
    return float(stats.chisquare(seen[keep], wanted[keep]).pvalue) if keep.sum() > 1 else 1.0


@pytest.mark.parametrize("role", [False, True])
@pytest.mark.parametrize("masks", [False, True])
def test_rows_are_drawn_by_their_law(role: bool, masks: bool) -> None:
    """Also with clamps."""
    for seed in range(12):
        rng = np.random.default_rng(100 + seed)
        field = random_field(rng, role=role, masks=masks)
        row = random_evidence(rng, field, 1)[:, 0]
        joint, _ = joint_of_row(field, row)
        assert chi_square(field, row, joint, 20_000) > 1e-5
        n_own = len(field.sizes)
        clamp = {int(rng.integers(n_own)): 0}
        held, _ = joint_of_row(field, row, clamp)
        clamps = {c: np.full(20_000, state) for c, state in clamp.items()}
        assert chi_square(field, row, held, 20_000, clamp=clamps) > 1e-5


def test_a_wrong_law_is_rejected() -> None:
    """The test of drawn rows sees a pair's potentials that are a tenth weaker, and a role that is left out."""
    tables = {FieldClique((), (2, 0, 1)): 2 * np.stack([np.eye(3), -np.eye(3)])}
    field = Field.of([3, 3, 2], [], tables, role=2)
    joint, _ = joint_of_row(field, np.empty(0))
    assert chi_square(field, np.empty(0, dtype=int), joint, 20_000) > 1e-5
    weaker = Field.of([3, 3, 2], [], {clique: 0.9 * table for clique, table in tables.items()}, role=2)
    assert chi_square(weaker, np.empty(0, dtype=int), joint, 20_000) < 1e-5
    apart = joint.sum(axis=2, keepdims=True) * joint.sum(axis=(0, 1), keepdims=True)
    assert chi_square(field, np.empty(0, dtype=int), apart, 20_000) < 1e-5


def test_clamps_differ_from_row_to_row() -> None:
    """A clamp of -1 leaves a row free, and the rest follows from the others."""
    pair = np.array([[4.0, -4.0], [-4.0, 4.0]])
    field = Field.of([2, 2], [], {FieldClique((), (0, 1)): pair})
    n_rows = 4000
    clamp = np.where(np.arange(n_rows) % 2 == 0, 1, -1)
    states = field.draw(np.empty((0, n_rows), dtype=int), np.random.default_rng(0), clamp={0: clamp})
    assert (states[0, ::2] == 1).all()
    assert (states[1, ::2] == 1).mean() > 0.99
    assert 0.4 < states[0, 1::2].mean() < 0.6


def test_masks_that_leave_nothing_are_dropped_for_that_row() -> None:
    """No NaN, no state that cannot be in other rows, and clamps beat masks."""
    mask = np.array([[True, False], [False, False]])
    field = Field.of([2], [2], {FieldClique((), (0,)): [0.0, 1.0]}, masks=[(0, 0, mask)])
    evidence = np.array([[0, 1]])
    table = field.expected(FieldClique((0,), (0,)), evidence, np.ones(2))
    np.testing.assert_allclose(table, [[1.0, 0.0], [1 / (1 + np.e), np.e / (1 + np.e)]])
    states = field.draw(np.repeat(evidence, 500, axis=1), np.random.default_rng(0))
    assert (states[0, :500] == 0).all()
    assert 0 < states[0, 500:].mean() < 1
    assert (field.draw(evidence, np.random.default_rng(0), clamp={0: [1, 1]}) == 1).all()


def test_extreme_potentials_stay_finite() -> None:
    """Tables that contradict each other by thousands neither overflow nor vanish."""
    links = {FieldClique((e,), (0,)): 2000.0 * np.eye(3)[np.roll(np.arange(3), e)] for e in range(3)}
    field = Field.of([3, 3], [3, 3, 3], {**links, FieldClique((), (0, 1)): -3000.0 * np.eye(3)})
    evidence = np.array([[0, 1, 2], [1, 1, 0], [2, 0, 0]])
    for table in field.expected_tables(all_cliques(field), evidence, np.ones(3)):
        assert np.isfinite(table).all()
        assert np.isclose(table.sum(), 3)


def test_sums_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows drawn and tables added up with four threads are those of one, to the last digit."""
    rng = np.random.default_rng(3)
    field = Field.of(
        [4, 4], [4], {FieldClique((0,), (1,)): rng.normal(size=(4, 4)), FieldClique((), (0, 1)): np.eye(4)}
    )
    evidence = rng.integers(0, 4, (1, 50_000))
    found = []
    for n in ("1", "4"):
        monkeypatch.setenv("SPINNEY_THREADS", n)
        tables = field.expected_tables(all_cliques(field), evidence, np.ones(50_000))
        found.append((tables, field.draw(evidence, np.random.default_rng(1))))
    for one, four in zip(found[0][0], found[1][0], strict=True):
        np.testing.assert_array_equal(one, four)
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_no_rows_are_no_trouble() -> None:
    """Empty evidence gives empty rows and tables of zeros."""
    field = Field.of([2], [2], {FieldClique((0,), (0,)): np.zeros((2, 2))})
    assert field.draw(np.empty((1, 0), dtype=int), np.random.default_rng(0)).shape == (1, 0)
    assert not field.expected(FieldClique((0,), (0,)), np.empty((1, 0), dtype=int), np.empty(0)).any()


def test_circles_are_refused_and_foreseen() -> None:
    """`keeps_forest` says which pairs may join; those that may not are an error."""
    tables = {FieldClique((), (0, 1)): np.zeros((2, 2)), FieldClique((), (1, 2)): np.zeros((2, 2))}
    field = Field.of([2, 2, 2, 2], [], tables, role=3)
    assert not field.keeps_forest((0, 2))
    assert not field.keeps_forest((0, 3))
    assert not field.keeps_forest((1, 1))
    assert Field.of([2, 2, 2, 2], [], tables).keeps_forest((0, 3))
    with pytest.raises(ParameterError, match="circle"):
        Field.of([2, 2, 2, 2], [], {**tables, FieldClique((), (0, 2)): np.zeros((2, 2))})


@pytest.mark.parametrize(
    "clique",
    [
        FieldClique((), ()),
        FieldClique((), (1, 0)),
        FieldClique((), (0, 0)),
        FieldClique((), (0, 2)),
        FieldClique((0, 1), (0,)),
        FieldClique((0,), (0, 1)),
        FieldClique((2,), (0,)),
        FieldClique((), (3,)),
        FieldClique((), (-1,)),
    ],
)
def test_cliques_of_no_table_are_refused(clique: FieldClique) -> None:
    """Wrong order, too many columns, the role not in front, columns that are not there."""
    field = Field.of([2, 2, 2], [2, 2], {}, role=2)
    with pytest.raises(ParameterError, match="FieldClique"):
        field.expected(clique, np.zeros((2, 1), dtype=int), np.ones(1))


def test_bad_evidence_and_limits_are_refused() -> None:
    """States out of range, wrong shapes, negative weights."""
    field = Field.of([2], [2], {FieldClique((0,), (0,)): np.zeros((2, 2))})
    fine, rng, clique = np.zeros((1, 3), dtype=int), np.random.default_rng(0), FieldClique((), (0,))
    for evidence in (fine + 2, fine - 1, fine[0], fine.astype(float)):
        with pytest.raises(ParameterError, match="evidence"):
            field.draw(evidence, rng)
    for weights in (np.ones(2), -np.ones(3), np.full(3, np.nan)):
        with pytest.raises(ParameterError, match="weights"):
            field.expected(clique, fine, weights)
    for clamp in ({0: [0, 0]}, {0: [0, 0, 2]}, {0: [0, 0, -2]}, {1: [0, 0, 0]}):
        with pytest.raises(ParameterError, match="clamp"):
            field.draw(fine, rng, clamp=clamp)
