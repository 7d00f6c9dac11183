"""Balog et al.'s algorithms: what they charge covers what a row can do, bad input costs nothing, files are whole."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import spinney as sp
from spinney.errors import (
    BudgetError,
    FileError,
    InputError,
    MissingExtraError,
    NotFittedError,
    ParameterError,
    SchemaError,
)
from spinney.privacy.mechanisms import DiscreteGaussianVector, UnsafeEntropy
from spinney.release.points import PointsRelease
from spinney_paper.baselines import BalogAlgorithm1, BalogAlgorithm2, balog
from spinney_paper.baselines.basis import make_basis
from spinney_paper.baselines.reduced_set import fit_weights
from spinney_paper.baselines.vector import classical_variance, least_variance
from spinney_paper.kernels import rkhs_distance

SMALL = {
    BalogAlgorithm1: {"n_points": 40, "bandwidth": 0.2},
    BalogAlgorithm2: {"n_points": 12, "n_features": 200, "bandwidth": 0.2, "n_steps": 20},
}
each_kind = pytest.mark.parametrize("kind", SMALL, ids=lambda kind: kind.__name__)
SQUARE = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})


class Spent(Exception):
    """Carries what a fit was about to release."""

    def __init__(self, true_sums, sensitivity_squared):
        super().__init__()
        self.true_sums, self.sensitivity_squared = true_sums, sensitivity_squared


def what_is_released(model, rows, schema, monkeypatch):
    """The true vector of a table and the squared sensitivity that it would be charged by."""

    def stop(true_sums, *, sensitivity_squared, **_):
        raise Spent(true_sums.astype(object), sensitivity_squared)

    with monkeypatch.context() as patched:
        patched.setattr(balog, "release_vector", stop)
        with pytest.raises(Spent) as caught:
            model.fit(rows, schema)
    return caught.value.true_sums, caught.value.sensitivity_squared


# ---------------------------------------------------------------------------------------------- sensitivity

row = st.tuples(st.floats(-0.5, 1.5), st.floats(-0.5, 1.5))


@each_kind
@settings(max_examples=40)
@given(rows=st.lists(row, min_size=1, max_size=6), other=row, bandwidth=st.sampled_from([0.01, 0.1, 1.0, 30.0]))
def test_neighbours_are_no_further_apart_than_charged(kind, rows, other, bandwidth):
    """Replacing a row moves the true vector by no more than the sensitivity that noise is made for, exactly."""
    model = kind(**{**SMALL[kind], "bandwidth": bandwidth})
    table = np.array(rows)
    neighbour = table.copy()
    neighbour[0] = other
    with pytest.MonkeyPatch.context() as patch:
        first, charged = what_is_released(model, table, SQUARE, patch)
        second, charged_too = what_is_released(model, neighbour, SQUARE, patch)
    assert charged == charged_too
    assert ((first - second) ** 2).sum() <= charged


def test_rows_at_far_points_use_up_the_reach(monkeypatch):
    """Algorithm 1: two rows at public points that do not see each other are √2 apart, beyond 0.7 times the charge."""
    points = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    model = BalogAlgorithm1(n_points=3, bandwidth=0.05, public_points=points)
    table = np.full((50, 2), 0.5)
    vectors = []
    for corner in points[:2]:
        table[0] = corner
        true_steps, charged = what_is_released(model, table, SQUARE, monkeypatch)
        vectors.append(true_steps)
    squared = ((vectors[0] - vectors[1]) ** 2).sum()
    assert charged * Fraction(7, 10) ** 2 < squared <= charged
    assert float(charged) == pytest.approx((2 * 2**20) ** 2, rel=1e-5)


def test_rows_of_opposite_phase_use_up_the_charge(monkeypatch):
    """Algorithm 2: with one frequency w, rows that are π/w apart are as far apart as was charged, to a millionth."""
    schema = sp.Schema({"x": sp.Real(-1000, 1000)})
    model = BalogAlgorithm2(n_features=2, n_points=1, bandwidth=1)
    frequency = np.random.default_rng([0, 1]).normal(size=(1, 1))[0, 0]
    first, charged = what_is_released(model, np.array([[0.0]]), schema, monkeypatch)
    second, _ = what_is_released(model, np.array([[math.pi / frequency]]), schema, monkeypatch)
    assert 1 - 1e-5 < ((first - second) ** 2).sum() / charged <= 1


def test_cosines_alone_would_exceed_the_charge():
    """The features of the published code, sqrt(2/J) cos(<w, x> + b), are longer than 1 for about half of all rows."""
    rng = np.random.default_rng(0)
    frequencies, offsets, rows = rng.normal(size=(200, 2)), rng.uniform(0, 2 * np.pi, 200), rng.normal(size=(500, 2))
    norms = np.linalg.norm(np.sqrt(2 / 200) * np.cos(3 * rows @ frequencies.T + offsets), axis=1)
    assert 0.3 < (norms > 1 + 1e-9).mean() < 0.7


def test_the_variance_is_the_textbooks_or_more(square):
    """2 ln(1.25/delta) D²/epsilon² up to epsilon 1; where that is too little, what the proof needs."""
    for epsilon in ("0.1", "1", "30"):
        (event,) = BalogAlgorithm1(epsilon, **SMALL[BalogAlgorithm1]).fit(*square).ledger_.events
        claim = (Fraction(epsilon), Fraction(1, 10**6), event.sensitivity_squared)
        assert event.variance == max(classical_variance(*claim), least_variance(*claim))
        assert (event.variance > classical_variance(*claim)) == (epsilon == "30")


@each_kind
def test_order_of_rows_does_not_matter(kind, square, seeded):
    """A shuffled table with the same noise gives the same release."""
    points, schema = square
    shuffled = points[np.random.default_rng(1).permutation(len(points))]
    first, second = (kind(**SMALL[kind]).fit(rows, schema, entropy=seeded(1)) for rows in (points, shuffled))
    assert (first.release_.weights == second.release_.weights).all()
    assert (first.release_.points == second.release_.points).all()


# ---------------------------------------------------------------------------------------------- quality, prefixes


@each_kind
def test_little_noise_gives_a_near_embedding(kind, square):
    """At a huge epsilon weighted points are near the table in the kernel's norm; at a tiny one they are not."""
    points, schema = square
    distances = []
    for epsilon in ("1000", "0.001"):
        model = kind(epsilon, **{**SMALL[kind], "n_points": 60}).fit(points, schema)
        where, weights = model.weighted_points()
        distances.append(rkhs_distance(points, where, synthetic_weights=weights, bandwidth=0.2))
    assert distances[0] < 0.1 < distances[1]


def test_a_prefix_of_algorithm_1_is_the_fit_of_fewer_points(square, seeded):
    """The first coordinates, and so the weights, are those that the basis of the first points alone gives."""
    model = BalogAlgorithm1(**SMALL[BalogAlgorithm1]).fit(*square, entropy=seeded(2))
    whole, whole_weights = model.prefix(40)
    for n_points in (1, 7, 39, 40):
        points, weights = model.prefix(n_points)
        alone = make_basis(points, 1 / (2 * 0.2**2))
        rank = len(alone.kept)
        assert (points == whole[:n_points]).all()
        np.testing.assert_allclose(weights[alone.kept], alone.weights(model._coordinates[:rank]), rtol=1e-6, atol=1e-9)
        assert not np.delete(weights, alone.kept).any()
    assert not np.allclose(model.prefix(7)[1], whole_weights[:7])
    assert len(model.prefix(1000)[0]) == 40


def test_a_prefix_of_algorithm_2_refits_the_weights(square, seeded):
    """Weights of fewer points are the lasso's for these alone."""
    model = BalogAlgorithm2(**SMALL[BalogAlgorithm2], penalty="0.001").fit(*square, entropy=seeded(2))
    points, weights = model.prefix(5)
    expected = fit_weights(points, model._frequencies, model._target, penalty=0.001)
    assert (weights == expected).all()


@each_kind
def test_results_before_fit(kind):
    """Asking an unfitted model names the remedy."""
    for ask in (lambda m: m.prefix(1), lambda m: m.sample(1), lambda m: m.weighted_points(), lambda m: m.card_):
        with pytest.raises(NotFittedError, match=f"this {kind.__name__} is not fitted yet"):
            ask(kind())


# ---------------------------------------------------------------------------------------------- bad input


def refused(error, match, model, frame=None, schema=SQUARE, ledger=None):
    """The fit raises, and nothing is on the ledger."""
    ledger = sp.Ledger(limit=10, delta="0.1") if ledger is None else ledger
    before = ledger.spent, ledger.spent_delta
    frame = np.full((5, len(schema)), 0.5) if frame is None else frame
    with pytest.raises(error, match=match):
        model.fit(frame, schema, ledger=ledger)
    assert (ledger.spent, ledger.spent_delta) == before
    assert not hasattr(model, "release_")


BAD = {
    "delta 0": ({"delta": 0}, ParameterError, "delta=0"),
    "delta 1": ({"delta": 1}, ParameterError, "delta=1"),
    "tiny delta": ({"delta": "1e-310"}, ParameterError, "delta"),
    "epsilon 0": ({"epsilon": 0}, ParameterError, "epsilon=0"),
    "tiny epsilon": ({"epsilon": "1e-8"}, ParameterError, "epsilon=1e-8 is too small"),
    "add-remove": ({"unit": "add-remove"}, ParameterError, "unit='add-remove'"),
    "no such unit": ({"unit": "rows"}, ParameterError, "unit='rows'"),
    "no points": ({"n_points": 0}, ParameterError, "n_points=0"),
    "half a point": ({"n_points": 1.5}, ParameterError, "n_points=1.5"),
    "bandwidth 0": ({"bandwidth": 0}, ParameterError, "bandwidth=0"),
    "endless bandwidth": ({"bandwidth": 1e200}, ParameterError, r"bandwidth=1e\+200 is outside"),
    "vanishing bandwidth": ({"bandwidth": "1e-200"}, ParameterError, "bandwidth=1e-200 is outside"),
    "text for bandwidth": ({"bandwidth": "wide"}, ParameterError, "bandwidth='wide'"),
    "negative seed": ({"seed": -1}, ParameterError, "seed=-1"),
    "seed of text": ({"seed": "a", "public_points": [[0.5, 0.5]] * 50}, ParameterError, "seed='a'"),
    "few public points": ({"public_points": np.zeros((3, 2))}, ParameterError, r"shape \(3, 2\)"),
    "thin public points": ({"public_points": np.zeros((50, 1))}, ParameterError, r"shape \(50, 1\)"),
    "flat public points": ({"public_points": np.zeros(50)}, ParameterError, r"shape \(50,\)"),
    "endless public points": ({"public_points": np.full((50, 2), np.inf)}, ParameterError, "not finite"),
    "text for public points": ({"public_points": [["a", "b"]] * 50}, ParameterError, "public_points are not"),
    "ragged public points": ({"public_points": [[1.0], [1.0, 2.0]]}, ParameterError, "public_points are not"),
}


@each_kind
@pytest.mark.parametrize(("change", "error", "match"), BAD.values(), ids=BAD)
def test_bad_parameters_cost_nothing(kind, change, error, match):
    """Each is refused by name before anything is charged."""
    refused(error, match, kind(**{**SMALL[kind], **change}))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"n_features": 201}, "n_features=201 is odd"),
        ({"n_features": 0}, "n_features=0"),
        ({"n_steps": 0}, "n_steps=0"),
        ({"step": 0}, "step=0"),
        ({"penalty": -1}, "penalty=-1"),
    ],
)
def test_bad_parameters_of_algorithm_2(change, match):
    """Features come in pairs; steps and penalties are positive."""
    refused(ParameterError, match, BalogAlgorithm2(**{**SMALL[BalogAlgorithm2], **change}))


COLUMNS = {
    "text": (sp.Category(["a", "b"]), ["a", "b"], SchemaError, "column 'y': .* takes numbers"),
    "truth": (sp.Boolean(), [True, False], SchemaError, "column 'y': .* takes numbers"),
    "nullable": (sp.Real(0, 1, nullable=True), [0.5, 0.5], SchemaError, "column 'y': .* without nulls"),
    "private bounds": (sp.Real(bounds="private"), [0.5, 0.5], SchemaError, "needs stated bounds"),
    "bounds from data": (sp.Real(bounds="from-data-not-private"), [0.5, 0.5], SchemaError, "needs stated bounds"),
    "absurd bounds": (sp.Real(0, 1e200), [0.5, 0.5], SchemaError, "column 'y': a bound beyond"),
    "missing value": (sp.Real(0, 1), [0.5, None], InputError, "column 'y' holds a missing"),
    "not a number": (sp.Real(0, 1), [0.5, math.nan], InputError, "column 'y' holds a missing"),
    "infinite value": (sp.Real(0, 1), [0.5, math.inf], InputError, "column 'y' holds a missing"),
    "fractions": (sp.Integer(0, 5), [0.5, 1.0], InputError, "column 'y': some value is not a whole number"),
}


@each_kind
@pytest.mark.parametrize(("column", "values", "error", "match"), COLUMNS.values(), ids=COLUMNS)
def test_unfit_columns_cost_nothing(kind, column, values, error, match):
    """Columns that the algorithms cannot take, and values that do not fit, are refused by column name."""
    schema = sp.Schema({"x": sp.Real(0, 1), "y": column})
    refused(error, match, kind(**SMALL[kind]), pl.DataFrame({"x": [0.1, 0.2], "y": values}), schema)


@each_kind
def test_empty_tables_and_accounts_cost_nothing(kind):
    """No rows, no budget left, or no delta allowed: refused before a row is read."""
    model = kind("1", **SMALL[kind])
    refused(InputError, "no rows", model, np.empty((0, 2)))
    ledger = sp.Ledger(limit=10, delta="1e-6")
    kind("1", **SMALL[kind]).fit(np.full((5, 2), 0.5), SQUARE, ledger=ledger)
    unreadable = np.full((5, 2), np.nan)  # an error about the budget shows that no value was looked at
    refused(BudgetError, "delta", model, unreadable, ledger=ledger)
    refused(BudgetError, "epsilon", model, unreadable, ledger=sp.Ledger(limit="0.5", delta="1e-6"))
    refused(BudgetError, "delta", model, unreadable, ledger=sp.Ledger(limit=10))


@each_kind
def test_a_missing_library_costs_nothing(kind, monkeypatch):
    """Without scipy or scikit-learn the fit names the extra, and nothing is charged."""

    def absent(module):
        raise MissingExtraError(f"{module} is not installed")

    monkeypatch.setattr(balog, "load", absent)
    refused(MissingExtraError, "is not installed", kind(**SMALL[kind]), np.full((5, 2), np.nan))


@each_kind
def test_values_outside_the_bounds_are_moved_to_them(kind, seeded):
    """As everywhere in Spinney: a value beyond a bound counts as that bound."""
    table = np.random.default_rng(3).normal(0.5, 1, (300, 2))
    first, second = (
        kind(**SMALL[kind]).fit(rows, SQUARE, entropy=seeded(4)).release_.weights for rows in (table, table.clip(0, 1))
    )
    assert (first == second).all()


@each_kind
def test_columns_of_one_value(kind):
    """A box without extent has a default bandwidth all the same."""
    schema = sp.Schema({"v": sp.Integer(3, 3)})
    model = kind(1000, n_points=2, **({"n_features": 20} if kind is BalogAlgorithm2 else {}))
    rows = model.fit(np.full((1000, 1), 3), schema).sample(5, seed=0)
    assert (rows == 3).all()


# ---------------------------------------------------------------------------------------------- card and file


@each_kind
def test_the_card_says_what_was_promised(kind, square):
    """The guarantee has its delta, one Gaussian vector was charged, and the plan is public."""
    ledger = sp.Ledger(limit=1, delta="1e-5")
    model = kind("0.1", **SMALL[kind]).fit(*square, ledger=ledger)
    card = model.card_
    assert card.is_private
    assert card.guarantee == "(0.1, 1e-06)-differential privacy, unit replace-one"
    (event,) = card.events
    assert isinstance(event, DiscreteGaussianVector)
    assert (event.epsilon, event.delta, event.note) == (Fraction(1, 10), Fraction(1, 10**6), "mean embedding")
    assert ledger.spent == Fraction(1, 10)
    assert ledger.spent_delta == Fraction(1, 10**6)
    assert model.ledger_ is ledger
    assert (card.synthesizer, card.n_rows) == (kind.__name__, 2000)
    assert card.released == {"points": len(model.release_.points)}
    assert card.plan["points"] == SMALL[kind]["n_points"]
    if kind is BalogAlgorithm1:
        assert 1 < card.plan["reach"] < 1.001


@each_kind
def test_unsafe_noise_brands_the_release(kind, square, seeded):
    """Seeded noise is repeatable and said so; other seeds, and no seed, give other noise."""
    models = [kind(**SMALL[kind]).fit(*square, entropy=entropy) for entropy in (seeded(1), seeded(1), seeded(2), None)]
    weights = [model.prefix(10)[1].tolist() for model in models]
    assert weights[0] == weights[1]
    assert weights[0] != weights[2] != weights[3]
    assert not models[0].card_.is_private
    assert any(isinstance(event, UnsafeEntropy) for event in models[0].card_.events)
    assert models[3].card_.is_private


@each_kind
def test_files_hold_the_whole_release(kind, square, tmp_path):
    """A loaded release has the same card and points, draws the same rows, and saves to the same bytes."""
    model = kind("0.5", **SMALL[kind]).fit(pl.DataFrame(square[0], schema=["x", "y"]), square[1])
    model.save(tmp_path / "a.spinney")
    loaded = sp.load(tmp_path / "a.spinney")
    assert isinstance(loaded, PointsRelease)
    assert str(loaded.card) == str(model.card_)
    assert loaded.card.to_dict() == model.card_.to_dict()
    assert (loaded.weights == model.release_.weights).all()
    assert loaded.sample(50, seed=1).equals(model.sample(50, seed=1))
    assert loaded.weighted_points()[0].equals(model.weighted_points()[0])
    loaded.save(tmp_path / "b.spinney")
    assert (tmp_path / "a.spinney").read_bytes() == (tmp_path / "b.spinney").read_bytes()


def points_release(points, weights, n_points=None):
    """A release of points made by hand."""
    card = sp.KDTreeSynthesizer(1).fit(np.full((9, 2), 0.5), SQUARE).card_
    released = {"points": len(points) if n_points is None else n_points}
    paid = DiscreteGaussianVector(Fraction(1), Fraction(1, 10), Fraction(1), Fraction(100), note="mean embedding")
    where, weights = np.array(points, dtype=float).reshape(-1, 2), np.array(weights, dtype=float)
    return PointsRelease(where, weights, replace(card, events=(paid,), released=released))


def test_rows_follow_the_positive_weights():
    """Points of negative weight are never drawn, others in proportion."""
    release = points_release([[0.1, 0.1], [0.5, 0.5], [0.9, 0.9]], [3, -2, 1])
    rows = release.sample(40_000, seed=0)
    assert set(rows[:, 0].tolist()) == {0.1, 0.9}
    assert abs((rows[:, 0] == 0.1).mean() - 0.75) < 0.02
    assert release.weighted_points()[1].tolist() == [3, -2, 1]


def test_a_release_without_positive_weights():
    """There is nothing to draw from, and the error says what there is; no rows at all may still be asked for."""
    for release in (points_release([[0.1, 0.1]], [-1]), points_release([], [])):
        with pytest.raises(ParameterError, match=r"no point of positive weight.*weighted_points"):
            release.sample(3)
        assert release.sample(0).shape == (0, 2)
        assert len(release.weighted_points()[1]) == len(release.points)


def test_an_empty_release_survives_its_file(tmp_path):
    """All weights 0 is a possible outcome of the lasso."""
    points_release([], []).save(tmp_path / "none.spinney")
    assert len(sp.load(tmp_path / "none.spinney").points) == 0


@pytest.mark.parametrize(
    "release",
    [
        points_release([[0.1, 0.1]], [1], n_points=2),
        points_release([[0.1, np.nan]], [1]),
        points_release([[0.1, 0.1]], [np.inf]),
    ],
    ids=["another number of points", "a point that is no number", "an endless weight"],
)
def test_inconsistent_files_are_refused(release, tmp_path):
    """A file whose points are not those of its card is not loaded."""
    release.save(tmp_path / "odd.spinney")
    with pytest.raises(FileError, match="inconsistent contents"):
        sp.load(tmp_path / "odd.spinney")


@pytest.mark.parametrize("ask", ["sample", "weighted_points"])
def test_points_have_no_placement(ask):
    """An option of bins is refused by name."""
    with pytest.raises(ParameterError, match=rf"{ask}\(\) has no option 'placement' for a release of 1 points"):
        getattr(points_release([[0.1, 0.1]], [1]), ask)(placement="centre")


# ---------------------------------------------------------------------------------------------- rows, manners


@each_kind
def test_rows_have_the_types_and_bounds_of_the_schema(kind):
    """Whole numbers come back whole, reals inside their bounds, in the frame that came in."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"age": rng.integers(18, 90, 800), "pay": rng.gamma(2, 900, 800)})
    schema = sp.Schema({"age": sp.Integer(18, 89), "pay": sp.Real(0, 10_000)})
    options = {name: value for name, value in SMALL[kind].items() if name != "bandwidth"}
    rows = kind(5, **options).fit(frame, schema).sample(seed=0)
    assert isinstance(rows, pd.DataFrame)
    assert len(rows) == 800
    assert rows["age"].dtype == np.int64
    assert rows["age"].between(18, 89).all()
    assert rows["age"].nunique() > 1
    assert rows["pay"].between(0, 10_000).all()


@each_kind
def test_estimator_manners(kind, square):
    """clone, get_params, set_params and repr work, arrays among the parameters too."""
    public = np.random.default_rng(6).random((50, 2))
    model = kind("0.5", **SMALL[kind], public_points=public)
    copy = clone(model)
    assert type(copy) is kind
    assert (copy.public_points == public).all()
    assert {**copy.get_params(), "public_points": 0} == {**model.get_params(), "public_points": 0}
    assert repr(model).startswith(f"{kind.__name__}(epsilon='0.5', n_points=")
    assert "public_points=<shape (50, 2)>" in repr(model)
    assert repr(kind()) == f"{kind.__name__}()"
    assert copy.fit(*square) is copy
    assert copy.card_.parameters["public_points"] == "array of shape (50, 2)"
    with pytest.raises(ParameterError, match="'width' is not a parameter"):
        model.set_params(width=1)


@each_kind
def test_public_points_may_be_a_list(kind, square):
    """Lists and frames stand for arrays; the card has their shape and not their numbers."""
    public = np.random.default_rng(7).random((40, 2))
    for given_points in (public.tolist(), pd.DataFrame(public)):
        model = kind(**SMALL[kind], public_points=given_points).fit(*square)
        assert model.card_.parameters["public_points"] == "array of shape (40, 2)"
        if kind is BalogAlgorithm1:
            assert (model.prefix(40)[0] == public).all()


@each_kind
def test_a_failed_fit_keeps_the_last_release(kind, square):
    """A refused second fit leaves release and prefixes as they were."""
    model = kind(**SMALL[kind]).fit(*square)
    release, weights = model.release_, model.prefix(9)[1]
    with pytest.raises(BudgetError):
        model.set_params(n_points=5).fit(*square, ledger=sp.Ledger(limit="0.1", delta="1e-6"))
    assert model.release_ is release
    assert (model.prefix(9)[1] == weights).all()
