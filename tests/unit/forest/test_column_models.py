"""Columns as forests release them: draws from leaves, and what is left in a range, in a list, without nulls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.forest.release.columns import joined
from support.small_forests import model_of

FEW = settings(max_examples=50, derandomize=True, deadline=None)


@st.composite
def models(draw):
    """A column of whole lengths, a few states, some leaves without weight, perhaps null."""
    n_leaves = draw(st.integers(1, 8))
    lengths = draw(st.lists(st.integers(1, 5), min_size=n_leaves, max_size=n_leaves))
    weights = draw(st.lists(st.integers(0, 9), min_size=n_leaves, max_size=n_leaves))
    cuts = draw(st.lists(st.booleans(), min_size=n_leaves - 1, max_size=n_leaves - 1))
    states = np.concatenate([[0], np.cumsum(cuts)]).astype(int)
    return model_of(lengths, weights, states, null=draw(st.one_of(st.none(), st.integers(0, 5))))


def places_of(model, rng, n=400):
    """Many places of rows that have each state in turn."""
    return {state: model.draw(np.full(n, state, dtype=np.int32), rng) for state in range(model.n_states)}


# ------------------------------------------------------------------------------------------------------ columns


@FEW
@given(models(), st.integers(0, 2**32 - 1))
def test_draws_lie_in_leaves_of_their_state_by_weight(model, seed):
    """Leaves of a state have their shares to within a row; by length where none weighs anything; null is NaN."""
    inside = model.inside()
    sums = np.bincount(model.states, weights=inside, minlength=model.n_states)
    assert sums == pytest.approx(np.ones(model.n_states))
    for state, places in places_of(model, np.random.default_rng(seed)).items():
        own = np.flatnonzero(model.states == state)
        for leaf in own:
            low, stop = model.low[leaf], model.low[leaf] + model.length[leaf]
            is_here = np.isnan(places) if model.is_null[leaf] else (places >= low) & (places < stop)
            assert abs(is_here.sum() - 400 * inside[leaf]) <= 1
            assert is_here.any() or inside[leaf] < 1 / 400


@FEW
@given(models(), st.integers(-3, 40), st.integers(0, 12), st.integers(0, 2**32 - 1))
def test_a_range_keeps_what_lies_in_it(model, low, length, seed):
    """What is left of a state is the share of its rows inside, and draws of the cut column lie inside."""
    cut, left = model.restrict_to_range(low, low + length)
    rng = np.random.default_rng(seed)
    for state, places in places_of(model, rng, 4000).items():
        inside = ((places >= low) & (places < low + length)).mean()
        assert left[state] == pytest.approx(inside, abs=0.06)
        if left[state] > 0:
            drawn = cut.draw(np.full(50, state, dtype=np.int32), rng)
            assert ((drawn >= low) & (drawn < low + length)).all()


@FEW
@given(models(), st.booleans())
def test_nulls_and_all_else_are_complements(model, wanted):
    cut, left = model.restrict_to_null(wanted=wanted)
    _, other = model.restrict_to_null(wanted=not wanted)
    assert left + other == pytest.approx(np.ones(model.n_states))
    drawn = [cut.draw(np.full(20, s, dtype=np.int32), np.random.default_rng(0)) for s in np.flatnonzero(left > 0)]
    assert all((np.isnan(places) == wanted).all() for places in drawn)


@FEW
@given(models(), st.lists(st.integers(0, 30), min_size=1, max_size=4, unique=True), st.integers(0, 2**32 - 1))
def test_some_whole_places(model, wanted, seed):
    """Only those that were listed are drawn, each where it lies, and what is left adds up."""
    cut, left = joined([model.restrict_to_range(place, place + 1) for place in sorted(wanted)])
    assert left == pytest.approx(sum(model.restrict_to_range(place, place + 1)[1] for place in wanted))
    for state in np.flatnonzero(left > 1e-12):
        drawn = cut.draw(np.full(60, state, dtype=np.int32), np.random.default_rng(seed))
        assert set(np.floor(drawn).tolist()) <= set(wanted)


def test_one_real_number_is_all_that_is_drawn():
    """The leaf that holds it has all the weight, the last end included; beyond the ends there is nothing."""
    model = model_of([2, 2], [3, 5], [0, 1], null=2)
    for place, state in ((0.0, 0), (1.5, 0), (2.0, 1), (4.0, 1)):
        cut, left = model.restrict_to_point(place)
        assert left.tolist() == [float(state == 0), float(state == 1), 0.0]
        assert (cut.draw(np.full(9, state, dtype=np.int32), np.random.default_rng(0)) == place).all()
    below = model_of([2, 2], [3, 5], [0, 1], null=2, low=-9.0)
    assert below.restrict_to_point(-5.0)[1].tolist() == [0.0, 1.0, 0.0]
    assert not model.restrict_to_point(4.1)[1].any()
    assert not model.restrict_to_point(-0.1)[1].any()


def test_an_unlikely_condition_is_met_all_the_same():
    """Where all that is left of a state weighs nothing, its shape is by length."""
    model = model_of([4, 4], [0, 0], [0, 0])
    cut, left = model.restrict_to_range(2, 6)
    assert left.tolist() == [0.5]
    drawn = cut.draw(np.zeros(200, dtype=np.int32), np.random.default_rng(0))
    assert ((drawn >= 2) & (drawn < 6)).all()
    assert abs((drawn < 4).mean() - 0.5) < 0.01
