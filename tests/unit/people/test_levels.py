"""Alikeness and hidden levels: the correlation of rows within persons is found, and comes back in rows drawn by it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from spinney.forest.plan import ForestPlan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.people.columns import N_BINS, ColumnLaw, Compared, draw_levels, release_alikeness, two_rows
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import GaussianVector

N_PERSONS, N_STATES = 30_000, 16
EVEN = ColumnLaw(np.full(N_STATES, 1 / N_STATES), is_ordered=True)
KINDS = ColumnLaw(np.array([0.5, 0.3, 0.2]), is_ordered=False)


def mechanisms(mean_squared=Fraction(1, 4)):
    unit = Unit.REPLACE_PERSON
    plan = ForestPlan(unit, Fraction(1), Fraction(0), {"alikeness": GaussianVector(mean_squared, "alikeness")}, ())
    return PrepaidMechanisms(plan, Ledger(unit=unit), UnsafeSeededEntropy(0))


def numbers(correlation, n_rows, rng):
    """States of a normal number of which rows of a person share some, even over all rows."""
    person = np.repeat(np.arange(len(n_rows)), n_rows)
    shared = rng.standard_normal(len(n_rows))[person]
    own = rng.standard_normal(len(person))
    value = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
    return np.minimum(N_STATES * norm.cdf(value), N_STATES - 1).astype(np.uint8)


def kinds(correlation, n_rows, rng):
    """A favourite of each person, and with some chance anything."""
    person = np.repeat(np.arange(len(n_rows)), n_rows)
    favourite = rng.choice(3, len(n_rows), p=KINDS.shares)[person]
    is_own = rng.random(len(person)) < np.sqrt(correlation)
    return np.where(is_own, favourite, rng.choice(3, len(person), p=KINDS.shares)).astype(np.uint8)


@pytest.mark.parametrize("correlation", [0.0, 0.2, 0.6])
def test_the_correlation_within_persons_is_found(correlation):
    """Of a number and of a category, whatever numbers of rows persons have; persons with one row say nothing."""
    rng = np.random.default_rng(1)
    n_rows = rng.integers(0, 7, N_PERSONS)
    starts = np.concatenate([[0], np.cumsum(n_rows)])
    states = np.stack([numbers(correlation, n_rows, rng), kinds(correlation, n_rows, rng)])
    ((of_number, of_kind),) = release_alikeness([two_rows(states, starts, rng)], [[EVEN, KINDS]], mechanisms())
    of_ranks = 6 / math.pi * math.asin(correlation / 2)  # products of places are those of ranks
    assert of_number == pytest.approx(of_ranks, abs=0.03)
    assert of_kind == pytest.approx(correlation, abs=0.03)


def test_too_few_persons_are_not_alike():
    """Where the noisy number of persons with two rows does not stand out, no column has a correlation."""
    nobody = Compared(np.zeros((2, 3), np.uint8), np.zeros((2, 3), np.uint8))
    ((of_number, of_kind),) = release_alikeness([nobody], [[EVEN, KINDS]], mechanisms())
    assert of_number == of_kind == 0


@pytest.mark.parametrize("correlation", [0.15, 0.5])
@pytest.mark.parametrize("n_rows", [0, 1, 2, 12])
def test_levels_are_plausible_values(n_rows, correlation):
    """However many rows a person has, levels have one law, and rows given levels are as alike as the rows were."""
    rng = np.random.default_rng(2)
    each = np.full(N_PERSONS, n_rows)
    starts = np.concatenate([[0], np.cumsum(each)])
    states = numbers(correlation, each, rng)
    levels = draw_levels(states, starts, EVEN, correlation, rng)
    assert np.bincount(levels, minlength=N_BINS) / N_PERSONS == pytest.approx(np.full(N_BINS, 1 / N_BINS), rel=0.1)
    if n_rows:
        # The mean of a row's score in every level, over which new rows of a person would be drawn.
        score = norm.ppf((states[starts[:-1]] + 0.5) / N_STATES)
        means = np.array([score[levels == level].mean() for level in range(N_BINS)])
        # Bins and states lose some of it.
        assert 0.75 * correlation < means.var() < correlation


@pytest.mark.parametrize("n_rows", [0, 1, 5])
def test_favourites_have_the_law_of_the_column(n_rows):
    """A favourite is drawn from what a person's rows say of it: over all persons its law is the column's."""
    rng = np.random.default_rng(3)
    each = np.full(N_PERSONS, n_rows)
    starts = np.concatenate([[0], np.cumsum(each)])
    states = kinds(0.36, each, rng)
    levels = draw_levels(states, starts, KINDS, 0.36, rng)
    assert chisquare(np.bincount(levels, minlength=3), N_PERSONS * KINDS.shares).pvalue > 1e-4
    if n_rows:
        agree = (states[starts[:-1]] == levels).mean()
        assert agree == pytest.approx(0.6 + 0.4 * (KINDS.shares**2).sum(), abs=0.01)


def test_levels_of_a_person_are_their_own():
    """The same coins and rows give the same level, whoever else has rows."""

    class Fixed:
        def standard_normal(self, n):
            return np.linspace(-1, 1, 5)[:n]

    states = np.array([3, 9, 9, 1, 15, 0], dtype=np.uint8)
    starts = np.array([0, 2, 2, 3, 5, 6])
    every = draw_levels(states, starts, EVEN, 0.4, Fixed())
    assert every[:4].tolist() == draw_levels(states[:5], starts[:5], EVEN, 0.4, Fixed()).tolist()
