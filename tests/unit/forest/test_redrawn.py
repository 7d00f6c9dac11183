"""Models that might have been released, and tables drawn from them: repeatable, under conditions, refused in time."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import spinney as sp
from golden import make
from spinney.errors import ParameterError
from support import one_factor, small_forests


@pytest.fixture(scope="module")
def release():
    return small_forests.fitted().release_


# ------------------------------------------------------------------------------------------------------ models


@pytest.mark.parametrize("around", ["model", "numbers"])
def test_redrawn_models_keep_what_noise_decided(release, around):
    """Leaves, states and tables are those of the release; weights and laws are not, and add up as they did."""
    for redrawn in release.redrawn(3, around=around):
        assert redrawn.model.tree.cliques == release.model.tree.cliques
        assert list(redrawn.columns) == list(release.columns)
        for name, column in redrawn.columns.items():
            of_release = release.columns[name]
            assert column.states.tolist() == of_release.states.tolist()
            assert column.low.tolist() == of_release.low.tolist()
            assert column.weights.sum() == pytest.approx(5000)
            assert np.abs(column.weights - of_release.weights).max() > 1
        gaps = [
            np.abs(found - law).max() for found, law in zip(redrawn.model.beliefs, release.model.beliefs, strict=True)
        ]
        assert max(gaps) > 1e-3


def test_redrawn_models_repeat_by_seed_and_do_not_depend_on_their_number(release):
    """The first three of five are those of three."""
    release._redrawn.clear()
    few = release.redrawn(3, seed=4)
    many = release.redrawn(5, seed=4)
    assert many[:3] == few  # kept, not made again
    release._redrawn.clear()
    for found, again in zip(many, release.redrawn(5, seed=4), strict=True):
        assert found.model.vector.tolist() == again.model.vector.tolist()
    other = release.redrawn(3, seed=5)
    assert other[0].model.vector.tolist() != few[0].model.vector.tolist()
    assert len({tuple(redrawn.model.vector.tolist()) for redrawn in many}) == 5


def test_the_two_ways_of_redrawing_have_two_centres():
    """Around the model, counts are the model's but for noise; around the numbers, those that were released."""
    release = small_forests.fitted("0.3").release_
    measured = release.measured
    place = next(place for place, table in enumerate(measured.tables) if table.labels is None)
    table = measured.tables[place]
    wanted = {
        "model": measured.total * release.model.marginal(table.columns).ravel(),
        "numbers": table.noisy.astype(float),
    }
    for around, centre in wanted.items():
        drawn = np.stack([redrawn.numbers.tables[place] for redrawn in release.redrawn(200, around=around)])
        error = (drawn.mean(axis=0) - centre) / (table.noise.std / np.sqrt(200))
        assert np.abs(error).max() < 4.5
        assert (drawn - centre).std() == pytest.approx(table.noise.std, rel=0.1)
    assert np.abs(wanted["model"] - wanted["numbers"]).max() > table.noise.std


def test_where_the_number_of_rows_is_private_it_is_redrawn_too():
    """By what columns add up to, and by the count that was bought."""
    table, schema = make.mixed_table()
    model = sp.ForestSynthesizer("1", unit="add-remove", assumed_rows=None)
    release = model.fit(table, schema, entropy=sp.UnsafeSeededEntropy(2)).release_
    assert release.measured.row_count is not None
    totals = np.array([redrawn.total for redrawn in release.redrawn(40, around="numbers")])
    assert totals.std() > 1
    assert abs(totals.mean() - release.measured.total) < 5 * totals.std() / np.sqrt(40) + 1
    for redrawn in release.redrawn(3, around="numbers"):
        for column in redrawn.columns.values():
            assert column.weights.sum() == pytest.approx(redrawn.total)


def test_sums_of_products_are_redrawn_with_their_tilt():
    """Fresh noise on the sums, and another tilt, when it is asked for."""
    release = one_factor.fitted().release_
    assert release.products is not None
    first, second = release.redrawn(2, around="numbers")
    deviation = float(release.products.variance) ** 0.5
    for redrawn in (first, second):
        assert redrawn.products.pairs == release.products.pairs
        noise = np.concatenate(
            [(new - old).ravel() for new, old in zip(redrawn.products.sums, release.products.sums, strict=True)]
        )
        assert 0.8 < noise.std() / deviation < 1.2
    assert first.products.tilt.tables[0].tolist() != second.products.tilt.tables[0].tolist()
    around_model = release.redrawn(2)[0]
    assert around_model.products.n_sums == release.products.n_sums


# ------------------------------------------------------------------------------------------------------ tables


def test_several_draws_are_a_list_of_tables(release):
    """In the kind of table that is asked for, each of so many rows, no two alike; numpy, pandas, polars and pyarrow."""
    for frame, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        tables = release.sample(30, draws=3, seed=1, frame=frame)
        assert isinstance(tables, list)
        assert [type(table) for table in tables] == [kind] * 3
        assert [len(table) for table in tables] == [30] * 3
        assert not any(one.equals(other) for one, other in combinations(tables, 2))
    assert [len(table) for table in release.sample(draws=2)] == [5000] * 2
    like = release.sample(5, frame="pandas").astype({"label": object})
    assert [table["label"].dtype for table in release.sample(5, draws=2, like=like)] == [object] * 2


def test_draws_repeat_by_seed_and_do_not_depend_on_their_number(release):
    """Table k of a seed is the same however many there are; without a seed every call draws others."""
    few = release.sample(40, draws=2, seed=9, frame="pandas")
    many = release.sample(40, draws=4, seed=9, frame="pandas")
    pd.testing.assert_frame_equal(few[0], many[0])
    pd.testing.assert_frame_equal(few[1], many[1])
    assert not release.sample(40, draws=2, frame="pandas")[0].equals(release.sample(40, draws=2, frame="pandas")[0])
    generator = np.random.default_rng(3)
    first, second = (release.sample(40, draws=2, seed=generator, frame="pandas") for _ in range(2))
    assert not first[0].equals(second[0])


def test_one_table_is_what_it_was(release):
    """Asking for several draws changes nothing about the best single one."""
    before = release.sample(50, seed=1, frame="pandas")
    release.sample(50, seed=1, draws=2)
    pd.testing.assert_frame_equal(before, release.sample(50, seed=1, frame="pandas"))


def test_every_draw_meets_the_conditions(release):
    """`where` in all rows, `balance` in shares."""
    tables = release.sample(200, draws=4, seed=2, frame="pandas", where={"size": (0.5, 2.5)}, balance={"label": 0.5})
    for table in tables:
        assert table["size"].between(0.5, 2.5).all()
        assert table["label"].mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("name", "rows"), [("places", make.places_table), ("rules", make.forest_table)], ids=lambda value: str(value)[:8]
)
def test_draws_obey_places_and_rules(name, rows):
    """Shapes of places and rules between columns hold in every draw."""
    table, schema = rows()
    release = sp.ForestSynthesizer("3", "1e-6").fit(table, schema, entropy=sp.UnsafeSeededEntropy(3)).release_
    for drawn in release.sample(300, draws=3, seed=1, frame="pandas"):
        if name == "places":
            seen = drawn.dropna()
            assert seen["lon"].between(5, 15).all()
            assert seen["lat"].between(46, 54).all()
            assert (drawn["n"] % 3 == 0).all()
        else:
            both = drawn.dropna(subset=["eggs"])
            assert (both["eggs"] <= both["age"]).all()


def test_the_spread_of_draws_is_that_of_the_noise():
    """Shares of a column differ by about the noise of their counts, far more than tables of one model do."""
    release = small_forests.fitted("0.1").release_

    def spread(tables) -> np.ndarray:
        return np.stack(
            [table["kind"].value_counts(normalize=True).reindex([*"abcd"]).to_numpy() for table in tables]
        ).std(axis=0, ddof=1)

    noise = release.measured.columns[0].noise.std / 5000
    draws = spread(release.sample(5000, draws=30, seed=3, frame="pandas"))
    alone = spread(release.sample(5000, seed=seed, frame="pandas") for seed in range(30))
    # Other tables of the same column, and the known total, take some of it away.
    assert 0.3 < (draws / noise).mean() < 1.2
    assert (draws > 3 * alone).all()


# ------------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize("draws", [0, -3, 2.5, "20", True, 10**9])
def test_wrong_numbers_of_draws_are_refused(release, draws):
    """By a sentence that says what is enough."""
    for ask in (lambda: release.sample(5, draws=draws), lambda: release.redrawn(draws)):
        with pytest.raises(ParameterError, match="20 are enough"):
            ask()


def test_one_draw_is_refused_with_what_to_do(release):
    """One table has no spread."""
    with pytest.raises(ParameterError, match=r"draws=1 is one table.*leave draws out.*draws=20"):
        release.sample(5, draws=1)


def test_wrong_centres_and_conditions_are_refused(release):
    """As they are for one table."""
    with pytest.raises(ParameterError, match="around='rows' is not one of"):
        release.redrawn(3, around="rows")
    for where in ({"size": (7, 8)}, {"no": 1}):
        with pytest.raises(ParameterError) as alone:
            release.sample(5, where=where)
        with pytest.raises(ParameterError) as together:
            release.sample(5, where=where, draws=3)
        assert str(alone.value) == str(together.value)


def test_a_release_with_a_prior_is_not_redrawn():
    """Its file does not hold the counts of public rows."""
    model = sp.ForestSynthesizer("1", prior=small_forests.table(500))
    release = model.fit(small_forests.table(1000), small_forests.SCHEMA, entropy=sp.UnsafeSeededEntropy(1)).release_
    with pytest.raises(ParameterError, match="fitted with a prior cannot be redrawn"):
        release.sample(5, draws=3)


def test_bins_have_no_draws():
    """They hold no counts of empty leaves; the error says what does."""
    points, schema = make.reals(2)
    model = sp.KDTreeSynthesizer("1", moments=False).fit(points, schema, entropy=sp.UnsafeSeededEntropy(1))
    for one in (model, model.release_):
        with pytest.raises(ParameterError, match="several draws are for forests and for trees with moments"):
            one.sample(5, draws=3)
