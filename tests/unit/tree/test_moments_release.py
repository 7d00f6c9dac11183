"""Leaf moments through the front door: every column type, odd tables, files, and what is refused before a charge."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import BudgetError, ParameterError
from spinney.grid.lattice import tree_lattice
from spinney.privacy.mechanisms import LeafMoments, SplitDecisions
from spinney.privacy.noise.supnorm import sup_norm_noise
from spinney.release.card import ContradictionError
from spinney.release.verify import farthest, sup_norm_log_moment
from spinney.tree.moments import MAX_LEAVES, QUANTUM, check_leaves, release_moments
from spinney.tree.release.moments import MOMENT_PLACEMENTS, verify_tree
from support.handmade_leaves import counts_of_rows, moments_plan, release_by_hand

LINE = sp.Schema({"x": sp.Real(0, 1)})
SQUARE = sp.Schema({"x": sp.Real(0, 4), "y": sp.Real(-1, 1)})
LEAVES = {"00": (40, 10, -30), "01": (20, 0, 10), "10": (5, 4, 4), "110": (0, 0, 0), "111": (35, -30, 1)}


def tree(epsilon="4", **options):
    return sp.KDTreeSynthesizer(epsilon, **{"moments": True, **options})


@pytest.fixture(scope="module")
def fitted(square):
    points, schema = square
    return tree().fit(points, schema, entropy=sp.UnsafeSeededEntropy(3))


# ------------------------------------------------------------------------------------------------ what comes out


def test_every_column_comes_back_in_its_type_and_bounds(people) -> None:
    """Integers, dates, times with zones, categories, nulls: the same dtypes as the bins of a tree give, in bounds."""
    frame, schema = people
    rows = tree("8").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(1)).sample(3000, seed=1)
    plain = tree("8", moments=False).fit(frame, schema, entropy=sp.UnsafeSeededEntropy(1)).sample(3000, seed=1)
    assert rows.dtypes.to_dict() == plain.dtypes.to_dict()
    assert rows["height"].between(1, 2.5).all()
    assert rows["age"].between(0, 120).all()
    assert rows["born"].between(pd.Timestamp("1900-01-01"), pd.Timestamp("2020-12-31")).all()
    assert rows["seen"].dt.tz is not None
    assert set(rows["colour"]) <= {"red", "green", "blue"}
    assert set(rows["grade"]) <= {1, 2, 3, 5}
    assert 0.1 < rows["weight"].isna().mean() < 0.35
    assert 0.1 < rows["children"].isna().mean() < 0.35
    assert not rows["height"].isna().any()


def test_moments_follow_the_table(square, fitted) -> None:
    """Means of both columns are near the table's; nothing of the kind holds for the centre of the square."""
    points, _ = square
    rows = fitted.sample(seed=1)
    assert rows.shape == points.shape
    assert np.abs(rows.mean(axis=0) - points.mean(axis=0)).max() < 0.02
    assert np.abs(points.mean(axis=0) - 0.5).min() > 0.1


def test_whole_numbers_have_their_mean_too() -> None:
    """A lopsided column of days keeps its mean; so does one of small whole numbers."""
    rng = np.random.default_rng(2)
    days = rng.beta(2, 6, 4000) * 3650
    frame = pa.table(
        {
            "day": pa.array([date.fromordinal(date(2010, 1, 1).toordinal() + int(day)) for day in days]),
            "n": pa.array(rng.poisson(3, 4000).clip(0, 20)),
        }
    )
    schema = sp.Schema({"day": sp.Date("2010-01-01", "2019-12-31"), "n": sp.Integer(0, 20)})
    rows = tree("8").fit(frame, schema, entropy=sp.UnsafeSeededEntropy(4)).sample(seed=1)
    assert rows.schema.types == frame.schema.types
    for name in ("day", "n"):
        true, made = (
            np.asarray(table[name].cast(pa.int32() if name == "day" else pa.int64())).mean() for table in (frame, rows)
        )
        assert made == pytest.approx(true, abs=30 if name == "day" else 0.15)


@pytest.mark.parametrize("n_columns", [1, 9])
def test_moments_are_asked_for_by_name(n_columns: int) -> None:
    """Plan, release and card agree on what a tree gives with and without them."""
    schema = sp.Schema({f"c{i}": sp.Real(0, 1) for i in range(n_columns)})
    for moments, kind in ((True, "moments"), (False, "bins")):
        model = tree(1, moments=moments).fit(np.full((20, n_columns), 0.3), schema)
        assert model.plan_.has_moments == moments
        assert model.release_.kind == kind
        assert ("leaves" in model.card_.released) == moments


@pytest.mark.parametrize(
    ("options", "has_moments"),
    [
        ({}, True),
        ({"placement": "uniform"}, True),
        ({"placement": "fitted"}, True),
        ({"max_depth": 12, "tree_share": "0.3"}, True),
        ({"unit": "add-remove"}, True),
        ({"moments": False}, False),
        ({"threshold": 5}, False),
        ({"placement": "tilted"}, False),
        ({"epsilon": Fraction(1, 2**30), "tree_share": "4095/4096"}, False),
    ],
    ids=str,
)
def test_by_default_leaves_release_moments_where_nothing_speaks_for_bins(square, options, has_moments) -> None:
    """Up to eight columns, without a threshold, and where leaves can all be released."""
    model = sp.KDTreeSynthesizer(**{"epsilon": 1, **options}).fit(*square)
    assert model.plan_.has_moments == has_moments
    assert model.release_.kind == ("moments" if has_moments else "bins")
    assert model.card_.parameters["moments"] is options.get("moments")


@pytest.mark.parametrize(("n_columns", "has_moments"), [(1, True), (8, True), (9, False), (64, False)])
def test_the_default_follows_the_number_of_columns(n_columns: int, has_moments: bool) -> None:
    """Eight columns have moments and nine bins, unless a placement asks for moments; rows come out of both."""
    schema = sp.Schema({f"c{i}": sp.Real(0, 1) for i in range(n_columns)})
    table = np.full((20, n_columns), 0.3)
    assert sp.KDTreeSynthesizer(9).fit(table, schema).plan_.has_moments == has_moments
    if n_columns < 64:
        assert sp.KDTreeSynthesizer(9, placement="fitted").fit(table, schema).release_.kind == "moments"


def test_the_focus_is_a_share(square) -> None:
    """Small areas give the tree a fifth of epsilon, where it has not more already; what is spent is the same."""
    wide, narrow = (sp.KDTreeSynthesizer(10, focus=focus).fit(*square) for focus in ("density", "small-areas"))
    assert narrow.plan_.decision_epsilon == 2 > wide.plan_.decision_epsilon
    assert narrow.ledger_.spent == wide.ledger_.spent == 10
    small = sp.KDTreeSynthesizer("0.001", focus="small-areas").fit(*square).plan_
    assert small.decision_epsilon >= Fraction(1, 5000)
    lists = {name: sp.Category(["a", "b", "c"]) for name in ("k", "l")}
    table = pa.table({name: ["a", "b", "c"] * 4000 for name in lists} | {"x": [0.5] * 12_000, "y": [0.1] * 12_000})
    for n_reals, share in ((1, 2), (2, 2), (3, 1)):
        schema = sp.Schema(lists | {name: sp.Real(0, 1) for name in ("x", "y", "z")[:n_reals]})
        plan = sp.KDTreeSynthesizer(10).fit(table.append_column("z", table["x"]).select(list(schema)), schema).plan_
        assert plan.decision_epsilon == share
    with pytest.raises(ParameterError, match="raise tree_share"):
        sp.KDTreeSynthesizer(focus="small-areas", moments=False).fit(*square)


@pytest.mark.parametrize("n_rows", [1, 300])
def test_the_default_looks_at_no_row(n_rows: int) -> None:
    """Tables as unlike as can be, of one public size, are released by one plan, bounds found or stated."""
    one, other = np.full((n_rows, 2), 0.001), np.random.default_rng(1).random((n_rows, 2))
    for unit in ("replace-one", "add-remove"):
        assumed = {} if unit == "replace-one" else {"assumed_rows": n_rows}  # or a noisy count would tell them apart
        plans = [sp.KDTreeSynthesizer(1, unit=unit, **assumed).fit(table, SQUARE).plan_ for table in (one, other)]
        assert plans[0] == plans[1]
        assert plans[0].has_moments


def test_a_budget_too_small_for_moments_is_spent_on_bins(square) -> None:
    """Where sums would drown beyond the range of numbers counts may still be released, and their errors are theirs."""
    share = {"tree_share": "4095/4096"}
    model = sp.KDTreeSynthesizer(Fraction(1, 2**30), **share).fit(*square)
    assert model.release_.kind == "bins"
    with pytest.raises(ParameterError, match="max_depth=99 is not in"):
        sp.KDTreeSynthesizer(1, max_depth=99).fit(*square)


def test_the_ledger_and_the_card_say_what_was_paid_for(square, fitted) -> None:
    """Two charges that add up to epsilon, leaves on the card, and a scale of noise that is that of the release."""
    decisions, leaves = fitted.card_.events[:2]
    assert isinstance(decisions, SplitDecisions)
    assert isinstance(leaves, LeafMoments)
    assert decisions.epsilon + leaves.epsilon == Fraction(4)
    assert leaves.sensitivity == 2
    moments = fitted.release_.moments
    assert moments.rate == leaves.epsilon / 2 / QUANTUM
    assert fitted.card_.released == {"leaves": len(moments)}
    assert fitted.card_.plan["leaves"] == "moments"
    assert "threshold" not in fitted.card_.plan
    assert "leaf counts and means" in str(fitted.card_)


def test_a_private_number_of_rows_stays_private(square) -> None:
    """Under add-remove no card tells it; samples have a noisy number of rows; an empty table is a table."""
    points, schema = square
    model = tree("2", unit="add-remove").fit(points, schema, entropy=sp.UnsafeSeededEntropy(5))
    assert model.card_.n_rows is None
    n_rows = len(model.sample(seed=1))
    noisy = model.release_.moments.noisy_steps[:, 0].sum() / QUANTUM
    bought = model.card_.plan["noisy_rows"]
    assert min(noisy, bought) - 1 <= n_rows <= max(noisy, bought) + 1
    assert n_rows == pytest.approx(len(points), rel=0.2)
    empty = tree("2", unit="add-remove").fit(points[:0], schema, entropy=sp.UnsafeSeededEntropy(6))
    assert len(empty.sample(10, seed=1)) == 10


def test_a_private_number_of_rows_shapes_nothing() -> None:
    """Under add-remove, if no count is bought, tables of 2 and 20,000 rows have the same plan and the same lattice."""
    trees = (tree("1", unit="add-remove", assumed_rows=10_000).fit(np.full((n, 2), 0.3), SQUARE) for n in (2, 20_000))
    small, large = trees
    assert small.plan_ == large.plan_
    assert small.release_.moments.lattice == large.release_.moments.lattice


def test_noise_is_fresh_in_every_fit(square) -> None:
    """Two fits of one table share neither counts nor sums; with a seed, which brands the card, they share all."""
    one, other = (tree(max_depth=4).fit(*square).release_ for _ in range(2))
    assert (one.moments.noisy_steps != other.moments.noisy_steps).mean() > 0.9
    assert one.card.is_private
    one, other = (tree(max_depth=4).fit(*square, entropy=sp.UnsafeSeededEntropy(1)).release_ for _ in range(2))
    assert np.array_equal(one.moments.noisy_steps, other.moments.noisy_steps)
    assert not one.card.is_private


def test_nothing_shows_a_row() -> None:
    """What is printed of a fitted model, its release and its moments holds no value and no count of the table."""
    table = np.repeat([[0.123456789, 0.987654321]], 4321, axis=0)
    model = tree("1").fit(table, sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)}))
    release = model.release_
    shown = f"{model!r} {release!r} {release.moments!r} {release.card!r} {model.plan_!r} {model.ledger_!r}"
    assert not any(private in shown for private in ("0.1234", "0.9876", "4321"))
    assert "4321" in release.card.to_json()  # the number of rows is public here, and that is the only place


# ------------------------------------------------------------------------------------------------ odd tables

ODD = {
    "one row": np.array([[0.3]]),
    "all rows equal": np.full((300, 1), 0.3),
    "at the edges": np.array([[0.0], [1.0]] * 50),
    "out of bounds": np.array([[-7.0], [9.0]] * 50),
}


@pytest.mark.parametrize("table", ODD.values(), ids=ODD)
@pytest.mark.parametrize("epsilon", ["0.001", "1", "1000"])
def test_odd_tables_of_one_column(table, epsilon) -> None:
    """They are released like any other, and rows lie within the bounds."""
    model = tree(epsilon).fit(table, LINE, entropy=sp.UnsafeSeededEntropy(7))
    rows = model.sample(50, seed=1)
    assert rows.shape == (50, 1)
    assert ((rows >= 0) & (rows <= 1)).all()
    points, weights = model.weighted_points()
    assert weights.sum() == pytest.approx(1)
    assert ((points >= 0) & (points <= 1)).all()


def test_equal_rows_come_back_near_where_they_were() -> None:
    """With a large budget a thousand equal rows are all but one point."""
    rows = tree("100").fit(np.full((1000, 2), 0.3), sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})).sample(seed=1)
    assert np.median(np.abs(rows - 0.3)) < 0.01


def test_columns_of_one_value() -> None:
    """A column with a single possible value, and a table of nothing else, have leaves without offsets."""
    schema = sp.Schema({"i": sp.Integer(4, 4), "c": sp.Category(["only"])})
    frame = pa.table({"i": [4] * 30, "c": ["only"] * 30})
    rows = tree().fit(frame, schema).sample(5, seed=1)
    assert rows.to_pydict() == {"i": [4] * 5, "c": ["only"] * 5}


def test_columns_of_nulls_alone() -> None:
    """Nulls are drawn where all rows had them."""
    frame = pa.table({"x": pa.array([None] * 500, type=pa.float64())})
    rows = tree("20").fit(frame, sp.Schema({"x": sp.Real(0, 1, nullable=True)})).sample(200, seed=1)
    assert rows["x"].null_count > 150


def test_no_rows_and_one_row(fitted) -> None:
    """Numbers of rows from none."""
    assert fitted.sample(0).shape == (0, 2)
    assert fitted.sample(1, seed=1).shape == (1, 2)


def test_private_bounds_leave_the_rest_to_moments(square) -> None:
    """Bounds that are paid for come first, and all charges together are epsilon."""
    schema = sp.Schema({"x": sp.Real(bounds="private"), "y": sp.Real(0, 1)})
    model = tree("4").fit(square[0], schema, entropy=sp.UnsafeSeededEntropy(9))
    assert model.release_.kind == "moments"
    assert model.ledger_.spent == 4


# ------------------------------------------------------------------------------------------------ options


@pytest.mark.parametrize("placement", MOMENT_PLACEMENTS)
def test_placements(placement) -> None:
    """Fitted rows have the leaf's mean, uniform ones fill it, centred ones are its centre; points likewise."""
    release = release_by_hand(sp.Schema({"x": sp.Real(0, 2)}), {"0": (60, 30), "1": (40, -20)})
    rows = release.sample(1000, seed=1, placement=placement)[:, 0]
    points, weights = release.weighted_points(placement=placement)
    assert weights == pytest.approx([0.6, 0.4])
    means = [0.75, 1.25] if placement == "fitted" else [0.5, 1.5]
    assert points[:, 0] == pytest.approx(means, abs=1e-3)
    for i, mean in enumerate(means):
        inside = rows[np.floor(rows) == i]
        assert len(inside) == pytest.approx((600, 400)[i], abs=1)
        assert inside.mean() == pytest.approx(mean, abs=0.01)
        width = {"fitted": release.density.spread[i, 0], "uniform": 1.0, "centre": 0.0}[placement]
        assert np.ptp(inside) <= width + 1e-9
        assert np.ptp(inside) >= 0.98 * width
    assert release.density.spread.min() == 1, "gaps between the leaves of few columns would show on a map"


def test_the_placement_of_a_fit_is_that_of_its_rows(square) -> None:
    """Given once to the synthesizer, it need not be given again; a sample may still choose another."""
    points, schema = square
    model = tree(placement="centre").fit(points, schema, entropy=sp.UnsafeSeededEntropy(3))
    assert np.array_equal(model.sample(99, seed=1), model.sample(99, seed=1, placement="centre"))
    assert not np.array_equal(model.sample(99, seed=1), model.sample(99, seed=1, placement="fitted"))


def test_unknown_placements_and_options_are_named(fitted) -> None:
    """What is not there is an error that lists what is."""
    for bad in ("tilted", "somewhere"):
        with pytest.raises(ParameterError, match=r"placement=.*'fitted', 'uniform', 'centre'"):
            fitted.sample(5, placement=bad)
    with pytest.raises(
        ParameterError,
        match=r"sample\(\) has no option 'colour' for .* leaves; its options are n_rows, seed, .*parts, placement",
    ):
        fitted.sample(5, colour="red")
    with pytest.raises(ParameterError, match="'colour'"):
        fitted.weighted_points(colour="red")


def test_range_counts() -> None:
    """Rows in boxes: leaves inside count whole, leaves outside not at all, and nothing is lost at the borders."""
    release = release_by_hand(SQUARE, LEAVES)
    whole = release.range_counts([[0, -1], [0, -1], [2, -1], [0, 5]], [[4, 1], [2, 1], [4, 1], [4, 6]])
    assert whole == pytest.approx([100, 60, 40, 0], abs=1e-4)
    assert release.range_counts([0, -1], [4, 1]).shape == (1,)
    x, y = release.sample(20_000, seed=1).T
    share = release.range_counts([[0.5, -0.9]], [[2.5, 0.1]]).item()
    assert 100 * ((x >= 0.5) & (x < 2.5) & (y >= -0.9) & (y < 0.1)).mean() == pytest.approx(share, abs=0.5)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ([[0]], [[1]]),
        ([[0, 0, 0]], [[1, 1, 1]]),
        ([[0, 0]], [[1, 1], [2, 2]]),
        ([[0, np.nan]], [[1, 1]]),
        ([["a", "b"]], [["c", "d"]]),
        (np.zeros((1, 2, 2)), np.ones((1, 2, 2))),
        ([[0, 0], [0]], [[1, 1], [1, 1]]),
    ],
)
def test_boxes_of_another_shape_are_refused(low, high) -> None:
    """A box has two ends of one number for each column."""
    with pytest.raises(ParameterError, match=r"low (and|or) high"):
        release_by_hand(SQUARE, LEAVES).range_counts(low, high)


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"threshold": 5}, ParameterError, "threshold and moments=True exclude each other"),
        ({"moments": "yes"}, ParameterError, "moments='yes' is not True, False or None"),
        ({"moments": 1}, ParameterError, "moments=1 is not True, False or None"),
        ({"placement": "tilted"}, ParameterError, "placement='tilted' is not one of .*moments=False"),
        (
            {"epsilon": Fraction(1, 2**30), "tree_share": "4095/4096"},
            ParameterError,
            "above 2.40; give a larger epsilon or a smaller tree_share",
        ),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_bad_plans_are_refused_before_any_charge(square, options, error, message) -> None:
    """The ledger is untouched, and no row was read: a table of nonsense gives the same error."""
    ledger = sp.Ledger(limit=10)
    nonsense = np.full_like(square[0], np.nan)
    for table in (square[0], nonsense):
        with pytest.raises(error, match=message):
            tree(**options).fit(table, square[1], ledger=ledger)
    assert ledger.events == ()


def test_too_many_columns_are_refused_before_any_charge() -> None:
    """The noise has a longest vector; what does not fit is said in time."""
    ledger = sp.Ledger(limit=10)
    schema = sp.Schema({f"c{i}": sp.Boolean() for i in range(64)})
    with pytest.raises(ParameterError, match="up to 63 columns, and there are 64"):
        tree().fit(np.zeros((5, 64)), schema, ledger=ledger)
    assert ledger.events == ()


def test_the_limit_of_leaves_is_one_of_plans() -> None:
    """A plan of as many leaves passes, one level more does not."""
    levels, lattice = int(np.log2(MAX_LEAVES)), tree_lattice(SQUARE)
    check_leaves(moments_plan((levels, levels)), lattice)
    with pytest.raises(BudgetError, match=r"8.4e\+06 leaves of empty space"):
        check_leaves(moments_plan((levels + 1, levels + 1)), lattice)


def test_a_budget_that_is_too_small_is_not_touched(square) -> None:
    """A shared account with too little left raises, and nothing is spent."""
    ledger = sp.Ledger(limit=1)
    with pytest.raises(BudgetError):
        tree("2").fit(*square, ledger=ledger)
    assert ledger.spent == 0


def test_a_plan_of_counts_alone_is_refused_unpaid():
    """Leaf moments are charged as what they are, or not released."""
    plan = replace(moments_plan((0, 2)), has_moments=False)
    ledger = sp.Ledger(limit=plan.epsilon)
    counts = counts_of_rows([(0, 0)], tree_lattice(sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})))
    with pytest.raises(ParameterError, match="has_moments"):
        release_moments(counts, plan=plan, ledger=ledger, entropy=sp.UnsafeSeededEntropy(1))
    assert not ledger.events


# ------------------------------------------------------------------------------------------------------- the total


@pytest.mark.parametrize("unit", ["replace-one", "add-remove"])
def test_a_number_of_rows_that_the_leaves_do_not_bear_out_is_refused(square, unit) -> None:
    """Half or one and a half times the rows, public or bought; what a fit wrote passes, and says how near it is."""
    points, schema = square
    release = tree("40", unit=unit).fit(points, schema).release_
    assert any("counts of all leaves add up to" in line for line in release.verify_contents())
    for share in (0.5, 1.5):
        card = release.card
        if unit == "replace-one":
            changed = replace(card, n_rows=round(share * card.n_rows))
        else:
            changed = replace(card, design={**card.design, "noisy_rows": round(share * card.row_count.noisy)})
        with pytest.raises(ContradictionError, match="do not add up to about"):
            verify_tree(changed, release.moments.depths, release.moments)


@pytest.mark.parametrize(("rate", "n_axes"), [(Fraction(1, 2), 1), (Fraction(1, 2), 4), (Fraction(1, 3000), 3)])
def test_sums_of_noise_stay_within_their_bound_and_not_far_within(rate, n_axes) -> None:
    """The moment of the law is that of its draws, and not that of 0.7 or 1.3 times the noise; the bound is tight."""
    noise = sup_norm_noise(rate, n_axes)
    drawn = noise.draw(60_000, sp.UnsafeSeededEntropy(5))[:, 0]
    s = 0.3 * float(rate)
    found = np.log(np.exp(s * drawn).mean())
    for scale, holds in ((1.0, True), (0.7, False), (1.3, False)):
        assert (abs(sup_norm_log_moment(float(rate), n_axes, s * scale) - found) < 0.1 * found) == holds
    slack = farthest(lambda s: 100 * sup_norm_log_moment(float(rate), n_axes, s), float(rate))
    deviation = np.sqrt(100 * noise.variance())
    assert 6 * deviation < slack < 7.5 * deviation
