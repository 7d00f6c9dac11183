"""A value of a real column in steps is a whole cell, in answers and in rows, however its edges are rounded."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest

import spinney as sp
from spinney.forest.release.parts import parts_of

VALUES = np.arange(-508, -268) / 10  # in one part of ten of the column's bounds
N = 12_000


@cache
def release():
    """Tenths that a table has in single precision, in piles and thin runs."""
    rng = np.random.default_rng(4)
    chances = rng.exponential(size=len(VALUES)) ** 4
    rows = rng.choice(VALUES, N, p=chances / chances.sum()).astype(np.float32)
    model = sp.ForestSynthesizer(10, "1e-6", quality="fast")
    schema = sp.Schema({"index": sp.Real(-60, -20, decimals=1), "kind": sp.Category(["a", "b"])})
    frame = pl.DataFrame({"index": rows, "kind": rng.choice(["a", "b"], N)})
    return model.fit(frame, schema, entropy=sp.UnsafeSeededEntropy(3)).release_


def single():
    """Values that are leaves by themselves, and what these weigh."""
    leaves = release().columns["index"]
    alone = np.flatnonzero((leaves.length == 0) & (leaves.weights > 0))
    assert len(alone) > 20
    return [(round(float(leaves.low[leaf]), 1), float(leaves.weights[leaf])) for leaf in alone]


def test_a_value_is_the_range_around_it():
    """The estimate and the interval of a value are those of all that lies nearer to it than to any other."""
    for value, _ in single():
        one, around = (release().count(where={"index": asked}) for asked in (value, (value - 0.04, value + 0.04)))
        assert (one.estimate, (one.low, one.high), one.statement) == (
            around.estimate,
            (around.low, around.high),
            around.statement,
        )


def test_a_leaf_of_one_value_is_whole():
    """A value takes all of its leaf and touches no other."""
    for value, _ in single():
        (part,) = parts_of(release(), {"index": value}).values()
        assert np.count_nonzero(part.is_whole) == np.count_nonzero(part.touches) == 1
        assert part.leaves.low[part.is_whole] == pytest.approx(value)
        assert part.share.sum() == 1


def test_ranges_that_meet_add_up():
    """What lies up to a value and what lies from the next one on are all rows."""
    for value, _ in single():
        below, above = (
            release().count(where={"index": asked}).estimate for asked in ((None, value), (round(value + 0.1, 1), None))
        )
        assert below + above == pytest.approx(N, abs=0.02 * N)


def test_rows_and_answers_say_the_same():
    """Rows have every value as often as answers say."""
    drawn = release().sample(N, seed=1)["index"].round(1)
    for value, _ in single():
        answer = release().count(where={"index": value})
        assert answer.low - 10 <= (drawn == value).sum() <= answer.high + 10
    where = release().sample(50, seed=2, where={"index": single()[0][0]})["index"]
    assert (where == single()[0][0]).all()
