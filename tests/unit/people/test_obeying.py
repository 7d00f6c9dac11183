"""Rows that obey rules between their columns: the law given the rules, and rows put together where that is rare."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from spinney.graph.crf import Field
from spinney.graph.crf_inference import FieldClique
from spinney.people.release.rows import draw_obeying

N_ROWS = 6000


def field_of(pair, *, masks=()):
    """Two columns with a table between them, one without, and an evidence of two states."""
    tables = {
        FieldClique((), (0,)): np.zeros(3),
        FieldClique((), (1,)): np.zeros(3),
        FieldClique((), (2,)): np.zeros(2),
        FieldClique((), (0, 1)): pair,
    }
    return Field.of((3, 3, 2), (2,), tables, role=None, masks=list(masks))


def test_rows_have_the_law_given_that_they_obey():
    """Impossible pairs have no rows, and possible ones keep the field's proportions."""
    rng = np.random.default_rng(0)
    pair = rng.normal(0, 1, (3, 3))
    possible = np.array([[True, False, True], [False, True, True], [True, True, False]])
    own = draw_obeying(field_of(pair), np.zeros((1, N_ROWS), np.int32), rng, {}, [((0, 1), possible)])
    expected = np.exp(pair) * possible
    found = np.zeros((3, 3))
    np.add.at(found, (own[0], own[1]), 1)
    assert not found[~possible].any()
    assert chisquare(found[possible], N_ROWS * (expected / expected.sum())[possible]).pvalue > 1e-4


@pytest.mark.parametrize("clamped", [False, True])
def test_rows_that_a_field_would_never_draw_obey_too(clamped):
    """One combination of three columns alone is possible, in either place another one, and the field avoids both."""
    rng = np.random.default_rng(1)
    pair = np.zeros((3, 3))
    pair[[0, 2], [0, 2]] = -80.0
    possible = np.zeros((3, 3), dtype=np.bool_)
    possible[0, 0] = possible[2, 2] = True
    follows = np.array([[True, False], [True, True], [False, True]])  # the third column follows from the first
    mask = np.array([[True, True, False], [False, True, True]])  # of the second, by evidence
    evidence = rng.integers(0, 2, (1, 40)).astype(np.int32)
    clamp = {0: np.where(evidence[0] == 0, 0, 2).astype(np.int32)} if clamped else {}
    field = field_of(pair, masks=[(0, 1, mask)])
    own = draw_obeying(field, evidence, rng, clamp, [((0, 1), possible), ((0, 2), follows)])
    assert own[0].tolist() == own[1].tolist() == (2 * evidence[0]).tolist()
    assert own[2].tolist() == evidence[0].tolist()


def test_without_rules_rows_are_the_field_s_own():
    """The same draws, number by number."""
    field, evidence = field_of(np.zeros((3, 3))), np.zeros((1, 50), np.int32)
    one = draw_obeying(field, evidence, np.random.default_rng(2), {}, [])
    assert (one == field.draw(evidence, np.random.default_rng(2))).all()
