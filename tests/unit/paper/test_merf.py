"""DP-MERF: an exact vector with the right noise, a card that says what was promised, a generator that learns."""

from __future__ import annotations

import json
import math
import sys
import zipfile
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import spinney as sp
from spinney.errors import FileError, InputError, MissingExtraError, ParameterError, SchemaError
from spinney.privacy.budget import Unit
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import NotPrivate
from spinney.release.points import Generator
from spinney_paper.baselines import merf, training
from spinney_paper.baselines.merf import DPMERF, FeatureLaw, read_vector, true_vector
from spinney_paper.baselines.vector import rho_from_delta
from support.goodness_of_fit import ACCEPT, REJECT

UNITS = (Unit.REPLACE_ONE, Unit.ADD_REMOVE)
SCHEMA = sp.Schema({"x": sp.Real(-10, 10), "is_red": sp.Boolean(), "y": sp.Integer(0, 100)})


def table(n_rows: int = 400, seed: int = 0) -> pl.DataFrame:
    """Red rows, about a third, lie elsewhere than the others."""
    rng = np.random.default_rng(seed)
    is_red = rng.random(n_rows) < 0.3
    y = np.rint(rng.normal(np.where(is_red, 30, 50), 5)).clip(0, 100).astype(np.int64)
    return pl.DataFrame({"x": rng.normal(np.where(is_red, 3.0, 0.0), 1), "is_red": is_red, "y": y})


@pytest.fixture
def untrained(monkeypatch):
    """Fits without training: what the training would have been given ends up in the returned dictionary."""
    given_to_training = {}

    def train(embedding, frequencies, class_shares, **options):
        given_to_training.update(embedding=embedding, frequencies=frequencies, shares=class_shares, **options)
        n_columns = frequencies.shape[1]
        return Generator(((np.ones((len(class_shares), n_columns)), np.zeros(n_columns)),), class_shares)

    monkeypatch.setattr(merf, "train_generator", train)
    monkeypatch.setattr(merf, "load", lambda _: None)
    return given_to_training


# --------------------------------------------------------------------------------------------- the exact vector


def test_the_vector_meets_its_slow_twin():
    """Counts in their unit, then cosines and sines of each class, rounded row by row."""
    rng = np.random.default_rng(1)
    rows, classes = rng.normal(size=(9, 3)), np.array([0, 2, 2, 0, 2, 0, 0, 2, 2])
    frequencies = rng.normal(size=(4, 3))
    law = FeatureLaw.of(4, Unit.REPLACE_ONE)
    expected = [law.count_unit * int((classes == c).sum()) for c in range(3)]
    for c in range(3):
        for wave in (math.cos, math.sin):
            for w in frequencies:
                phases = [sum(float(a) * float(b) for a, b in zip(w, x, strict=True)) for x in rows[classes == c]]
                expected.append(sum(round(2**20 * wave(phase)) for phase in phases))
    vector = true_vector(rows, classes, frequencies, n_classes=3, law=law)
    assert vector.dtype == np.int64
    assert vector[:3].tolist() == expected[:3] == [4 * law.count_unit, 0, 5 * law.count_unit]
    assert np.abs(vector - np.array(expected)).max() <= 1  # a last place of a cosine may tip a rounding


@pytest.mark.parametrize("unit", UNITS)
@given(data=st.data())
def test_no_neighbour_is_further_away_than_claimed(unit, data):
    """The squared distance of neighbouring vectors stays below the sensitivity that noise is made for."""
    number = st.floats(-1e6, 1e6)
    n_frequencies = data.draw(st.integers(1, 5))
    frequencies = np.array(data.draw(st.lists(number, min_size=n_frequencies, max_size=n_frequencies)))[:, None]
    law = FeatureLaw.of(n_frequencies, unit)

    def vector(x, c):
        return true_vector(np.array([[x]]), np.array([c]), frequencies, n_classes=2, law=law).astype(object)

    change = vector(data.draw(number), data.draw(st.integers(0, 1)))
    if unit is Unit.REPLACE_ONE:
        change = change - vector(data.draw(number), data.draw(st.integers(0, 1)))
    assert (change**2).sum() <= law.sensitivity_squared


def test_the_sensitivity_is_reached():
    """Opposite rows of one class, and rows of two classes, are as far apart as claimed: it cannot be smaller."""
    frequencies = np.array([[1.0], [3.0]])
    law = FeatureLaw.of(2, Unit.REPLACE_ONE)
    first, opposite, other = (
        true_vector(np.array([[x]]), np.array([c]), frequencies, n_classes=2, law=law).astype(object)
        for x, c in ((0.0, 0), (math.pi, 0), (0.0, 1))
    )
    for change in (first - opposite, first - other):
        assert 0.999 < (change**2).sum() / law.sensitivity_squared <= 1
    alone = FeatureLaw.of(2, Unit.ADD_REMOVE)
    assert 0.999 < (first**2).sum() / alone.sensitivity_squared <= 1


def test_without_noise_the_means_come_back():
    """Reading the true vector gives each class's mean features, the shares and the number of rows."""
    rng = np.random.default_rng(2)
    rows, classes, frequencies = rng.normal(size=(50, 2)), rng.integers(0, 2, 50), rng.normal(size=(7, 2))
    for unit, n_rows in ((Unit.REPLACE_ONE, 50), (Unit.ADD_REMOVE, None)):
        law = FeatureLaw.of(7, unit)
        vector = true_vector(rows, classes, frequencies, n_classes=2, law=law)
        embedding, shares, total = read_vector(vector, n_classes=2, law=law, n_rows=n_rows)
        phases = rows @ frequencies.T
        features = np.hstack([np.cos(phases), np.sin(phases)]) / math.sqrt(7)
        assert total == 50
        np.testing.assert_allclose(shares, np.bincount(classes) / 50)
        for c in (0, 1):
            np.testing.assert_allclose(embedding[c], features[classes == c].mean(axis=0), atol=1e-6)


def test_classes_that_noise_wiped_out():
    """Negative counts leave a small share, counts are moved to a public total, and a private total is at least 1."""
    law = FeatureLaw.of(1, Unit.REPLACE_ONE)
    vector = np.array([-30 * law.count_unit, 110 * law.count_unit, 0, 0, 0, 0])
    _, shares, total = read_vector(vector, n_classes=2, law=law, n_rows=100)
    assert total == 100
    assert 0 < shares[0] < 0.0011
    assert shares.sum() == pytest.approx(1)
    moved = read_vector(np.array([40, 50, 0, 0, 0, 0]) * law.count_unit, n_classes=2, law=law, n_rows=100)[1]
    np.testing.assert_allclose(moved, [0.45, 0.55])
    assert read_vector(-np.abs(vector), n_classes=2, law=law, n_rows=None)[2] == 1


# --------------------------------------------------------------------------------------------- noise and promise


@pytest.mark.parametrize("unit", UNITS)
def test_the_noise_has_the_promised_scale(unit, seeded, untrained):
    """Noise on features is that of (1, 1e-5) at the unit's sensitivity; 0.7 or 1.3 times it is rejected."""
    frame = table(300)
    draws = []
    for seed in range(4):
        model = DPMERF("1", target="is_red", n_features=1000, bandwidth=5, unit=unit.value)
        model.fit(frame, SCHEMA, entropy=seeded(seed))
        classes = frame["is_red"].to_numpy().astype(int)
        rows = (frame.select("x", "y").to_numpy() - [0, 50]) / 5
        phases = rows @ untrained["frequencies"].T
        features = np.hstack([np.cos(phases), np.sin(phases)]) / math.sqrt(500)
        shares = untrained["shares"]
        for c in (0, 1):
            noisy_sum = untrained["embedding"][c] * model.release_.noisy_total * shares[c]
            draws.append((noisy_sum - features[classes == c].sum(axis=0)) * math.sqrt(500))
    noise = np.concatenate(draws)
    # In units of 1/sqrt(500): a row's features have norm sqrt(500), a table's two rows twice or sqrt(2) times that.
    sensitivity_squared = {Unit.REPLACE_ONE: 4, Unit.ADD_REMOVE: 2}[unit] * 500
    deviation = math.sqrt(sensitivity_squared / (2 * rho_from_delta(Fraction(1), Fraction(1, 100_000))))

    def p_value(scale):
        tail = stats.chi2(noise.size).cdf((noise**2).sum() / (scale * deviation) ** 2)
        return 2 * min(tail, 1 - tail)

    assert p_value(1) > ACCEPT
    assert p_value(0.7) < REJECT
    assert p_value(1.3) < REJECT


def test_the_card_and_the_ledger(seeded, untrained):
    """(epsilon, delta) is charged once, and the card says so; a seed of noise brands, a seed of training does not."""
    ledger = Ledger(limit=3, delta="1e-4")
    model = DPMERF("0.5", delta="1e-6", target="is_red", n_features=20, seed=3).fit(table(), SCHEMA, ledger=ledger)
    card = model.card_
    assert (card.epsilon, card.delta) == (Fraction(1, 2), Fraction(1, 10**6))
    assert card.guarantee == "(0.5, 1e-06)-differential privacy, unit replace-one"
    assert ledger.spent == Fraction(1, 2)
    assert len(ledger.events) == 1
    assert card.n_rows == 400
    assert card.released == {"weights": model.release_.generator.n_weights}
    assert "is_red" in repr(model)
    branded = DPMERF(target="is_red", n_features=20).fit(table(), SCHEMA, entropy=seeded(0))
    assert not branded.card_.is_private
    hidden = DPMERF(target="is_red", n_features=20, unit="add-remove").fit(table(), SCHEMA)
    assert hidden.card_.n_rows is None
    assert len(hidden.sample(seed=0)) == hidden.release_.noisy_total != 0
    # An empty table is a neighbour like any other.
    empty = DPMERF(target="is_red", n_features=20, unit="add-remove").fit(table(0), SCHEMA)
    assert len(empty.sample(5, seed=0)) == 5


def test_default_bandwidths_come_from_the_bounds(untrained):
    """range sqrt(2 n_columns) / 6, for every column; numbers and mappings are taken as they are."""
    by_bounds = DPMERF(target="is_red", n_features=20).fit(table(), SCHEMA).card_.plan["bandwidths"]
    assert by_bounds == pytest.approx({"x": 20 / 3, "y": 100 / 3})
    assert DPMERF(target="is_red", bandwidth=2, n_features=20).fit(table(), SCHEMA).card_.plan["bandwidths"]["y"] == 2
    stated = {"x": 1.5, "y": 12.0}
    model = DPMERF(target="is_red", bandwidth=stated, n_features=20).fit(table(), SCHEMA)
    assert model.card_.plan["bandwidths"] == stated
    assert model.card_.is_private


def test_bandwidths_from_ten_rows_brand_the_release(untrained):
    """Columns of the same bounds share a median distance; the ten rows are left out; nothing is promised any more."""
    rng = np.random.default_rng(4)
    array = np.column_stack([rng.normal(size=(60, 2)), rng.normal(50, 20, 60), rng.integers(0, 2, 60)])
    schema = sp.Schema({"a": sp.Real(-9, 9), "b": sp.Real(-9, 9), "m": sp.Real(0, 100), "c": sp.Integer(0, 1)})
    model = DPMERF(50, target="c", bandwidth="from-data-not-private", n_features=20, seed=6).fit(array, schema)
    few = array[np.random.default_rng(6).permutation(60)[:10]]
    pairs = [(i, j) for i in range(10) for j in range(i)]
    alike = np.median([math.dist(few[i, :2], few[j, :2]) for i, j in pairs])
    found = model.card_.plan["bandwidths"]
    assert found == pytest.approx(
        {"a": alike, "b": alike, "m": np.median([abs(few[i, 2] - few[j, 2]) for i, j in pairs])}
    )
    assert any(isinstance(event, NotPrivate) for event in model.ledger_.events)
    assert not model.card_.is_private
    assert model.release_.noisy_total == 50
    with pytest.raises(InputError, match="sets 10 rows aside"):
        model.fit(array[:10], schema)


# --------------------------------------------------------------------------------------------- rows


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_rows_are_valid(kind, untrained):
    """Names, types, bounds and values of the schema, in the kind of table that was fitted; seeds repeat."""
    schema = sp.Schema(
        {
            "x": sp.Real(-1, 1),
            "grade": sp.Category(["good", "fair", "poor"]),
            "y": sp.Integer(-3, 3),
            "z": sp.Real(5, 6),
        }
    )
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "x": rng.uniform(-2, 2, 90),  # outside the bounds too
            "grade": rng.choice(["good", "fair", "poor"], 90, p=[0.6, 0.3, 0.1]),
            "y": rng.integers(-3, 4, 90),
            "z": rng.uniform(5, 6, 90),
        }
    )
    given_frame = {"pandas": frame, "polars": pl.from_pandas(frame), "pyarrow": pl.from_pandas(frame).to_arrow()}[kind]
    model = DPMERF(100, target="grade", n_features=20).fit(given_frame, schema)
    rows = model.sample(5000, seed=1)
    assert type(rows) is type(given_frame)
    rows = pl.DataFrame(rows) if kind == "pandas" else pl.from_arrow(rows) if kind == "pyarrow" else rows
    assert rows.columns == ["x", "grade", "y", "z"]
    assert rows["y"].dtype == pl.Int64
    assert rows["x"].is_between(-1, 1).all()
    assert rows["y"].is_between(-3, 3).all()
    assert rows["z"].is_between(5, 6).all()
    shares = rows["grade"].value_counts(normalize=True)
    shares = dict(zip(shares["grade"], shares["proportion"], strict=True))
    assert shares["good"] == pytest.approx((frame["grade"] == "good").mean(), abs=0.06)
    assert set(shares) <= {"good", "fair", "poor"}
    again = model.sample(5000, seed=1, frame="polars")
    assert again.equals(rows.with_columns(pl.col("grade").cast(pl.String)))


def test_rows_follow_the_layers():
    """Affine, max(0, ·), affine; the class marks come after the noise; stretching scales what comes out."""
    generator = Generator(
        ((np.array([[1.0, -1.0], [10.0, 0.0]]), np.array([0.0, 0.5])), (np.array([[2.0], [3.0]]), np.array([1.0]))),
        np.array([0.5, 0.5]),
    )
    noise, classes = np.array([[2.0], [-2.0], [-2.0]]), np.array([0, 0, 1])
    assert generator.n_noise == 1
    np.testing.assert_allclose(generator.rows(classes, noise)[:, 0], [5.0, 1 + 3 * 2.5, 1 + 2 * 8 + 3 * 2.5])
    stretched = generator.stretched(np.array([10.0]), np.array([-7.0]))
    np.testing.assert_allclose(stretched.rows(classes, noise), generator.rows(classes, noise) * 10 - 7)


def test_files(tmp_path, untrained):
    """A saved generator draws the same rows; a file whose parts do not fit each other is refused."""
    model = DPMERF(target="is_red", n_features=20).fit(table(), SCHEMA)
    path = tmp_path / "merf.spinney"
    model.save(path)
    release = sp.load(path)
    assert release.sample(100, seed=2).equals(model.sample(100, seed=2))
    with pytest.raises(ParameterError, match="no weighted points"):
        release.weighted_points()
    with pytest.raises(ParameterError, match=r"has no option 'placement'.*its options are n_rows, seed, frame"):
        release.sample(3, placement="tilted")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for change in ({"target": "x"}, {"target": "y"}, {"noisy_total": -1}, {"noisy_total": None}):
        described = json.loads(members["card.json"]) | change
        damaged = tmp_path / "damaged.spinney"
        with zipfile.ZipFile(damaged, "w") as archive:
            archive.writestr("card.json", json.dumps(described))
            archive.writestr("generator.arrow", members["generator.arrow"])
        with pytest.raises(FileError, match="inconsistent"):
            sp.load(damaged)


# --------------------------------------------------------------------------------------------- training


def test_it_learns_where_classes_lie():
    """With a generous budget, rows of each class come out about where they went in; the same seeds, the same rows."""
    pytest.importorskip("optax")
    frame = table(1500)
    settings = {
        "target": "is_red",
        "n_features": 200,
        "n_steps": 600,
        "batch_share": "0.1",
        "bandwidth": {"x": 2, "y": 12},
    }
    model = DPMERF(20, **settings).fit(frame, SCHEMA)
    rows = model.sample(4000, seed=0)
    for is_red in (False, True):
        real, made = (t.filter(pl.col("is_red") == is_red) for t in (frame, rows))
        assert made["x"].mean() == pytest.approx(real["x"].mean(), abs=0.5)
        assert made["y"].mean() == pytest.approx(real["y"].mean(), abs=3)
        assert 0.5 < made["x"].std() / real["x"].std() < 1.5
    assert rows["is_red"].mean() == pytest.approx(frame["is_red"].mean(), abs=0.04)


def test_training_repeats_and_starts_where_rows_are():
    """A seed gives the same network; the start is the candidate that the embedding finds densest."""
    pytest.importorskip("optax")
    rng = np.random.default_rng(7)
    frequencies = rng.normal(size=(40, 2))
    phases = rng.normal([30, -8], 0.3, size=(200, 2)) @ frequencies.T
    embedding = np.tile((np.hstack([np.cos(phases), np.sin(phases)]) / math.sqrt(40)).mean(axis=0), (2, 1))
    candidates = np.array([[0.0, 0.0], [30.5, -8.5], [-30.0, 8.0]])
    call = {"candidates": candidates, "n_steps": 130, "batch": 20, "learning_rate": 0.01}
    shares = np.array([0.25, 0.75])
    first, again, other = (training.train_generator(embedding, frequencies, shares, **call, seed=s) for s in (1, 1, 2))
    for one, two, three in zip(first.layers, again.layers, other.layers, strict=True):
        assert (one[0] == two[0]).all()
        assert (one[1] == two[1]).all()
        assert not (one[0] == three[0]).any()
    rows = first.rows(rng.integers(0, 2, 500), rng.normal(size=(500, first.n_noise)))
    np.testing.assert_allclose(rows.mean(axis=0), [30, -8], atol=0.5)


def test_fast_waves_are_cosine_and_sine():
    """To a millionth, with the slopes that calculus gives."""
    jax = pytest.importorskip("jax")
    waves = training._waves(jax, jax.numpy)
    turns = np.linspace(-40, 40, 10_001, dtype=np.float32)
    angles = 2 * np.pi * turns.astype(np.float64)
    cosines, sines = waves(turns)
    np.testing.assert_allclose(cosines, np.cos(angles), atol=1e-6)
    np.testing.assert_allclose(sines, np.sin(angles), atol=1e-6)
    (_, _), (down, up) = jax.jvp(waves, (turns,), (np.ones_like(turns),))
    np.testing.assert_allclose(down, -2 * np.pi * np.sin(angles), atol=1e-5)
    np.testing.assert_allclose(up, 2 * np.pi * np.cos(angles), atol=1e-5)


# --------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"epsilon": 0}, ParameterError, "epsilon=0"),
        ({"delta": 0}, ParameterError, "delta=0"),
        ({"target": "z"}, SchemaError, "target='z' is not a column"),
        ({"target": "x"}, SchemaError, "target='x' is not a Boolean"),
        ({"target": "y"}, SchemaError, "column 'is_red': DP-MERF takes numbers"),
        ({"n_features": 21}, ParameterError, "n_features=21 is odd"),
        ({"n_features": 0}, ParameterError, "n_features=0"),
        ({"n_steps": 1.5}, ParameterError, "n_steps=1.5"),
        ({"batch_share": 0}, ParameterError, "batch_share=0"),
        ({"batch_share": "2"}, ParameterError, "batch_share=2"),
        ({"learning_rate": -1}, ParameterError, "learning_rate=-1"),
        ({"seed": -1}, ParameterError, "seed=-1"),
        ({"seed": 2**63}, ParameterError, "seed=9223372036854775808 does not fit"),
        ({"target": ["is_red"]}, SchemaError, "is not a column"),
        ({"bandwidth": 0}, ParameterError, "bandwidth=0"),
        ({"bandwidth": "from-data"}, ParameterError, "'from-data-not-private'"),
        ({"bandwidth": {"x": 1}}, ParameterError, "does not name column 'y'"),
        ({"bandwidth": {"x": 1, "y": 1, "is_red": 1}}, ParameterError, "names 'is_red'"),
        ({"bandwidth": {"x": 1, "y": "1e-12"}}, ParameterError, "on column 'y' is below a billionth"),
        ({"unit": "person"}, ParameterError, "unit='person'"),
    ],
)
def test_bad_parameters_cost_nothing(parameters, error, message, untrained):
    """Named, before anything is charged."""
    ledger = Ledger(limit=10, delta="1e-3")
    with pytest.raises(error, match=message):
        DPMERF(**{"target": "is_red", "n_features": 20} | parameters).fit(table(50), SCHEMA, ledger=ledger)
    assert not ledger.events
    assert not untrained


def test_bad_tables_cost_nothing(untrained):
    """Missing values, nullable columns, texts, unknown bounds, targets of one value or of too many."""
    ledger = Ledger(limit=10, delta="1e-3")

    def fit(frame, schema, target="is_red"):
        return DPMERF(target=target, n_features=20).fit(frame, schema, ledger=ledger)

    columns = dict(SCHEMA)
    missing = table(50).with_columns(x=pl.when(pl.col("y") > 0).then(None).otherwise(pl.col("x")))
    with pytest.raises(InputError, match="column 'x' holds a missing"):
        fit(missing, SCHEMA)
    with pytest.raises(InputError, match="no rows"):
        fit(table(0), SCHEMA)
    for column in (sp.Real(-10, 10, nullable=True), sp.Category([1, 2])):
        with pytest.raises(SchemaError, match="column 'x': DP-MERF takes numbers without nulls"):
            fit(table(50).with_columns(x=pl.lit(1)), sp.Schema(columns | {"x": column}))
    with pytest.raises(SchemaError, match="stated bounds"):
        fit(table(50), sp.Schema(columns | {"x": sp.Real(bounds="private")}))
    with pytest.raises(SchemaError, match="target='is_red' is not a Boolean"):
        fit(table(50), sp.Schema(columns | {"is_red": sp.Boolean(nullable=True)}))
    with pytest.raises(SchemaError, match="column 'x': the range"):
        fit(table(50), sp.Schema(columns | {"x": sp.Real(-1.7e308, 1.7e308)}))
    counts = table(50).with_columns(is_red=pl.lit(0))
    for high, n_values in ((0, 1), (256, 257)):
        with pytest.raises(SchemaError, match=f"target='is_red' has {n_values} values"):
            fit(counts, sp.Schema(columns | {"is_red": sp.Integer(0, high)}))
    with pytest.raises(SchemaError, match="no column beside the target"):
        fit(table(50).select("is_red"), sp.Schema({"is_red": sp.Boolean()}))
    assert not ledger.events


def test_the_extra_is_missed_before_anything_is_spent(monkeypatch):
    """Without JAX or optax the error names the extra and the ledger stays empty."""
    ledger = Ledger(limit=10, delta="1e-3")
    for library in ("jax", "optax"):
        with monkeypatch.context() as without:
            if library == "optax":
                pytest.importorskip("jax")
            without.setitem(sys.modules, library, None)
            with pytest.raises(MissingExtraError, match=f"pip install {library}, or .* extra 'baselines'"):
                DPMERF(target="is_red").fit(table(50), SCHEMA, ledger=ledger)
    assert not ledger.events
