"""Piles of rows at round numbers: parted from their leaves where they stand out, and drawn at these numbers."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.forest.columns import part_spikes
from spinney.forest.release.conditions import _drawn_above, feasible
from support.small_forests import model_of, noisy_column

FEW = settings(max_examples=60, derandomize=True, deadline=None)
N = 40_000


# ------------------------------------------------------------------------------------------------------ parting


@st.composite
def piled(draw):
    """A column of whole numbers with noisy counts of its leaves, of their first cells, and of the last cell of all."""
    n_leaves = draw(st.integers(1, 12))
    counts = draw(st.lists(st.integers(-20, 500), min_size=n_leaves, max_size=n_leaves))
    nullable = draw(st.booleans())
    column = noisy_column(sp.Integer(0, 99, nullable=nullable), counts + [70] * nullable, noise_std=5.0)
    end = column.axis.last + 1
    last = [end] if column.first[n_leaves - 1] < end - 1 else []
    spikes = np.stack([np.append(column.first, [at - 1 for at in last]), np.append(column.first + 1, last)])
    noisy = draw(st.lists(st.integers(-20, 600), min_size=spikes.shape[1], max_size=spikes.shape[1]))
    return replace(column, spikes=spikes.astype(np.int64), noisy_spikes=np.array(noisy), spike_std=10.0)


@FEW
@given(piled())
def test_parted_leaves_tile_the_same_and_hold_the_same(column):
    """No cell and no row is lost, whatever the noise; what stands out has a leaf of one cell, what does not, none."""
    parted = part_spikes(column)
    assert parted.spikes is None
    assert parted.noisy_counts.sum() == column.noisy_counts.sum()
    values, before = ~parted.is_null, ~column.is_null
    assert parted.first[values][0] == column.first[before][0]
    assert (parted.first[values][1:] == parted.stop[values][:-1]).all()
    assert parted.stop[values][-1] == column.stop[before][-1]
    assert (parted.stop > parted.first).all()
    assert parted.is_null.sum() == column.is_null.sum()
    for leaf, (first, stop, held) in enumerate(zip(column.first, column.stop, column.noisy_counts, strict=True)):
        is_pile = (parted.first == first) & (parted.stop == first + 1)
        if column.noisy_spikes[leaf] > 30 and held > 0 and stop - first > 1:
            assert parted.noisy_counts[is_pile] == min(column.noisy_spikes[leaf], held)
        elif stop - first > 2:
            assert not is_pile.any()
        inside = (parted.first >= first) & (parted.stop <= stop)
        assert parted.noisy_counts[inside].sum() == held
        assert held < 0 or (parted.noisy_counts[inside] >= 0).all()


def test_the_end_of_the_axis_is_parted_too():
    """After the first cells, from what they leave."""
    column = noisy_column(sp.Integer(0, 99), [100], noise_std=1.0)
    spikes = np.array([[0, 99], [1, 100]])
    column = replace(column, spikes=spikes, noisy_spikes=np.array([60, 70]), spike_std=2.0)
    parted = part_spikes(column)
    assert parted.first.tolist() == [0, 1, 99]
    assert parted.stop.tolist() == [1, 99, 100]
    assert parted.noisy_counts.tolist() == [60, 0, 40]


# ------------------------------------------------------------------------------------------------- whole forests


def amounts(n_rows=N):
    """Zeros, round amounts, values beyond the bound, and the rest over five orders of magnitude."""
    rng = np.random.default_rng(0)
    values = np.round(np.exp(rng.normal(3, 2, n_rows)), 2)
    kind = rng.random(n_rows)
    values[kind < 0.3] = 0.0
    values[(kind > 0.3) & (kind < 0.4)] = 50.0
    values[(kind > 0.4) & (kind < 0.45)] = 19.99
    values[(kind > 0.45) & (kind < 0.5)] = 1e9
    return values


@pytest.fixture(scope="module", params=["double", "single"])
def fitted(request):
    kind = np.float64 if request.param == "double" else np.float32
    rng = np.random.default_rng(1)
    paid = amounts().astype(kind)
    table = pa.table(
        {
            "paid": paid,
            "due": np.minimum(paid + rng.choice([0, 10, 25.5], N).astype(kind), kind(1e6)),
            "is_kept": rng.random(N) < 0.5,
        }
    )
    schema = sp.Schema(
        {"paid": sp.Real(0, 1e6), "due": sp.Real(0, 1e6), "is_kept": sp.Boolean()}, rules=[sp.AtMost("paid", "due")]
    )
    model = sp.ForestSynthesizer(1).fit(table, schema, entropy=sp.UnsafeSeededEntropy(3))
    return model.release_, kind


@pytest.mark.parametrize(("value", "share"), [(0.0, 0.3), (50.0, 0.1), (19.99, 0.05), (1e6, 0.05)])
def test_piles_come_back_at_their_number(fitted, value, share):
    """Exact zeros, round amounts and the upper bound, which values beyond it were moved to."""
    release, kind = fitted
    drawn = release.sample(N, seed=0, frame="pyarrow")["paid"].to_numpy()
    assert np.mean(drawn == value) == pytest.approx(share, abs=0.01)
    assert np.mean(drawn.astype(kind) == kind(value)) == pytest.approx(share, abs=0.01)


def test_the_rest_keeps_its_distribution(fitted):
    """Over all orders of magnitude, not only the largest: quantiles are close in ratio."""
    release, kind = fitted
    real = np.sort(np.minimum(amounts().astype(kind), 1e6))
    drawn = np.sort(release.sample(N, seed=0, frame="pyarrow")["paid"].to_numpy())
    for place in (0.52, 0.6, 0.7, 0.8, 0.9, 0.94):
        assert drawn[int(place * N)] == pytest.approx(real[int(place * N)], rel=0.15)


def test_rules_hold_among_piles(fitted):
    """Equal values obey `AtMost`, and are drawn where they pile up."""
    release, _ = fitted
    rows = release.sample(N, seed=1, frame="pyarrow")
    paid, due = rows["paid"].to_numpy(), rows["due"].to_numpy()
    assert (paid <= due).all()
    assert np.mean((paid == 0) & (due == 0)) > 0.02


def test_conditions_on_piles(fitted):
    """On a number that is one, on a range that holds one, on a number beside one that its cell stands for."""
    release, kind = fitted

    def drawn(wanted):
        return release.sample(500, seed=0, where={"paid": wanted}, frame="pyarrow")["paid"].to_numpy()

    assert (drawn(50.0) == 50.0).all()
    assert (drawn((49.9, 50.1)) == 50.0).mean() > 0.9
    assert (drawn(float(kind(19.99))) == float(kind(19.99))).all()
    between = drawn((60.0, 70.0))
    assert ((between >= 60) & (between <= 70)).all()
    assert len(np.unique(between)) > 50
    assert (drawn(61.2345678) == 61.2345678).all()
    assert (drawn((0, 0)) == 0).all()
    some = release.sample(500, seed=0, where={"paid": (0, 10)}, balance={"is_kept": 0.9}, frame="pyarrow")
    assert np.mean(some["is_kept"].to_numpy(zero_copy_only=False)) == pytest.approx(0.9, abs=0.02)


def test_piles_survive_a_file(fitted, tmp_path):
    """Saved and loaded, the same rows, bins and promises."""
    release, _ = fitted
    release.save(tmp_path / "f.spinney")
    loaded = sp.load(tmp_path / "f.spinney")
    assert loaded.sample(2000, seed=5, frame="pyarrow").equals(release.sample(2000, seed=5, frame="pyarrow"))
    zero = next(leaf for leaf in loaded.explain().bins("paid") if leaf["low"] == leaf["high"] == 0)
    assert zero["rows"] == pytest.approx(0.3 * N, rel=0.05)
    stages = {stage.name: stage for stage in loaded.explain().stages}
    assert stages["spikes"].times == 2
    assert stages["spikes"].share < stages["one-way"].share


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (sp.Datetime("2020-01-01", "2030-01-01"), datetime(2024, 3, 5, 9, 30)),
        (sp.Date("1900-01-01", "2100-01-01"), date(1970, 1, 1)),
        (sp.Integer(0, 10**13), 25_000_000),
        (sp.Integer(-(10**6), 10**6, multiple_of=25, nullable=True), -250),
    ],
    ids=repr,
)
def test_piles_of_every_ordered_kind(column, value):
    """A third of the rows at one value, the others anywhere between the bounds."""
    rng = np.random.default_rng(2)
    low, high = (int(column.physical(end)) for end in (column.low, column.high))
    numbers = low + (rng.random(5000) * (high - low)).astype(np.int64)
    kind = {"date": pa.date32(), "datetime": pa.timestamp("us")}.get(column.type_name, pa.int64())
    values = pa.array(numbers.astype(np.int32) if column.type_name == "date" else numbers).cast(kind).to_pylist()
    values = [value if chance < 1 / 3 else each for each, chance in zip(values, rng.random(5000), strict=True)]
    if column.nullable:
        values[::10] = [None] * 500
    model = sp.ForestSynthesizer(4).fit(
        pa.table({"v": pa.array(values, kind)}), sp.Schema({"v": column}), entropy=sp.UnsafeSeededEntropy(0)
    )
    drawn = model.sample(5000, seed=0, frame="pyarrow")["v"].to_pylist()
    assert drawn.count(value) / 5000 == pytest.approx(values.count(value) / 5000, abs=0.01)
    assert drawn.count(None) / 5000 == pytest.approx(values.count(None) / 5000, abs=0.01)
    if column.nullable:
        assert {each % 25 for each in drawn if each is not None} == {0}


def test_few_cells_of_reals_are_not_points():
    """A column of few bits has cells that are looked at one by one, and rows anywhere in them."""
    table = pa.table({"v": np.random.default_rng(0).random(3000)})
    for bits in (3, 8):
        model = sp.ForestSynthesizer(4).fit(table, sp.Schema({"v": sp.Real(0, 1, bits=bits)}))
        assert len(np.unique(model.sample(3000, seed=0, frame="pyarrow")["v"].to_numpy())) > 2900


# ------------------------------------------------------------------------------------------------------ models


def with_points(shift=0.0):
    """Leaves from 0 to 4 and from 6 to 9, and numbers alone at 5 and at 9.5."""
    column = model_of([4, 0, 3, 0], [40, 30, 20, 10], [0, 0, 1, 1])
    return replace(column, low=np.array([0.0, 5.0, 6.0, 9.5]) + shift)


def test_a_number_alone_comes_before_leaves_around_it():
    """Restricted to it, a column has nothing else; to a number inside a leaf, nothing but that."""
    cut, left = with_points().restrict_to_point(5.0)
    assert left.tolist() == pytest.approx([3 / 7, 0])
    assert (cut.draw(np.zeros(20, dtype=np.int32), np.random.default_rng(0)) == 5).all()
    cut, left = with_points().restrict_to_point(6.5)
    assert left.tolist() == [0, 1]
    assert (cut.draw(np.ones(20, dtype=np.int32), np.random.default_rng(0)) == 6.5).all()
    assert not with_points().restrict_to_point(4.5)[1].any()


def test_gaps_belong_to_the_number_inside():
    """The space that no leaf holds is filled by numbers alone; between two of them, half and half."""
    filled = with_points().filling_gaps(shortest=0.0)
    assert filled.low.tolist() == [0, 4, 6, 9]
    assert (filled.low + filled.length).tolist() == [4, 6, 9, 9.5]
    two = replace(with_points(), low=np.array([0.0, 5.0, 6.0, 9.5]), length=np.array([4.0, 0.0, 0.0, 0.0]))
    assert two.filling_gaps(shortest=0.0).low.tolist() == [0, 4, 5.5, 7.75]
    whole = model_of([5, 1, 5], [1, 1, 1], [0, 0, 0])
    whole = replace(whole, low=np.array([0.0, 5.0, 10.0]))
    assert whole.filling_gaps(shortest=1.0).length.tolist() == [5, 5, 5]


def test_a_number_alone_is_not_below_itself():
    """Drawn again at or above it, a larger value may be it, by its weight; above it, no longer."""
    model, rng = with_points(), np.random.default_rng(0)
    states = np.ones(4000, dtype=np.int32)
    drawn = _drawn_above(model, states, np.full(4000, 9.5), rng)
    assert (drawn == 9.5).all()
    drawn = _drawn_above(model, 0 * states, np.full(4000, 5.0), rng)
    assert (drawn == 5).all()
    drawn = _drawn_above(model, 0 * states, np.full(4000, 3.0), rng)
    assert np.mean(drawn == 5) == pytest.approx(0.75, abs=0.03)  # 30 against a quarter of 40
    drawn = _drawn_above(model, 0 * states, np.full(4000, np.nextafter(5, 9)), rng)
    assert (drawn > 5).all()


def test_bounds_that_meet_at_a_number_alone_leave_it():
    """A rule that leaves a column nothing but a number at which no row was seen draws that number."""
    high = replace(with_points(), weights=np.array([40.0, 0.0, 20.0, 0.0]))
    schema = sp.Schema({"a": sp.Real(0, 9.5), "b": sp.Real(0, 9.5)}, rules=[sp.AtMost("a", "b")])
    near = dict(schema) | {"a": replace(schema["a"], low=9.25)}
    cuts = feasible(schema.rules, near, {"a": with_points(), "b": high})
    assert cuts["b"].left.any()
    assert cuts["b"].column.low == 9.25
