"""Joint trees on axes with pieces: rows, piles and questions in the units of the columns; files and forgeries."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

import spinney as sp
from spinney.errors import FileError
from spinney.grid.axes import joint_lattice
from spinney.grid.lattice import tree_lattice
from spinney.synthesizers import tree
from spinney.tree.release.geometry import ends_to_places, to_values, value_boxes
from support.in_one_test import in_one_test

N = 20_000
SCHEMA = sp.Schema(
    {"amount": sp.Real(0, 1e6), "loan": sp.Integer(0, 10**7, nullable=True), "day": sp.Date("1900-01-01", "2099-12-31")}
)


def spiky_table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    amount = np.where(rng.random(N) < 0.2, 0.0, rng.lognormal(-1, 1, N))
    loan = rng.choice([1000, 5000, 20_000, 50_000], N, p=[0.1, 0.2, 0.3, 0.4])
    day = np.datetime64("2016-03-01") + rng.integers(0, 90, N)
    return {"amount": amount, "loan": loan, "day": day.astype("datetime64[D]")}


@pytest.fixture(scope="module")
def real() -> dict[str, np.ndarray]:
    return spiky_table()


@pytest.fixture(scope="module")
def model(real) -> sp.KDTreeSynthesizer:
    import pyarrow as pa

    return sp.KDTreeSynthesizer(2).fit(pa.table(real), SCHEMA)


@pytest.fixture(scope="module")
def drawn(model) -> dict[str, np.ndarray]:
    table = model.sample(N, seed=1, frame="pyarrow")
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def largest_gap(one: np.ndarray, other: np.ndarray) -> float:
    places = np.concatenate([one, other])
    shares = [np.searchsorted(np.sort(each), places, side="right") / len(each) for each in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def test_generous_bounds_keep_the_shape(real, drawn) -> None:
    """An amount with a median below 1 under a bound of a million comes back in its shape, and so do its zeros."""
    assert largest_gap(real["amount"], drawn["amount"]) < 0.05
    assert abs((drawn["amount"] == 0).mean() - (real["amount"] == 0).mean()) < 0.01


def test_even_axes_lose_it(real, monkeypatch) -> None:
    """The measure above notices: with even axes neither the shape nor the zeros come back."""
    import pyarrow as pa

    monkeypatch.setattr(tree, "joint_lattice", tree_lattice)
    table = sp.KDTreeSynthesizer(2).fit(pa.table(real), SCHEMA).sample(N, seed=1, frame="pyarrow")
    amount = table["amount"].to_numpy()
    assert largest_gap(real["amount"], amount) > 0.1
    assert (amount == 0).mean() < 0.1


def test_round_amounts_come_back_as_they_are(real, drawn) -> None:
    """Most rows have one of the four values that all rows of the table have."""
    present = drawn["loan"][~np.isnan(drawn["loan"].astype(float))]
    kept = sum(min((present == value).mean(), (real["loan"] == value).mean()) for value in np.unique(real["loan"]))
    assert kept > 0.9


def test_months_come_back_under_the_bounds_of_the_template() -> None:
    """Two hundred years leave three months where they are, beside an amount of many sizes."""
    import pyarrow as pa

    table = {name: spiky_table()[name] for name in ("amount", "day")}
    schema = sp.Schema({name: SCHEMA[name] for name in table})
    rows = sp.KDTreeSynthesizer(2).fit(pa.table(table), schema).sample(N, seed=0, frame="pyarrow")
    months = rows["day"].to_numpy().astype("datetime64[M]")
    assert np.isin(months, np.unique(table["day"].astype("datetime64[M]"))).mean() > 0.8


def test_questions_agree_with_rows(model, drawn) -> None:
    """Expected counts of boxes are those of drawn rows, points included on the right side of each end."""
    first_of_march = float((np.datetime64("2016-03-01") - np.datetime64("1900-01-01")).astype(int))
    ends = [
        ([0, -np.inf, -np.inf], [1e-9, np.inf, np.inf]),
        ([1e-9, -np.inf, -np.inf], [1, np.inf, np.inf]),
        ([-np.inf, 50_000, -np.inf], [np.inf, 50_001, np.inf]),
        ([-np.inf, 1001, -np.inf], [np.inf, 50_000, np.inf]),
        ([-np.inf, -np.inf, first_of_march], [np.inf, np.inf, first_of_march + 31]),
    ]
    low, high = (np.array(end) for end in zip(*ends, strict=True))
    expected = model.release_.range_counts(low, high)
    days = (drawn["day"].astype("datetime64[D]") - np.datetime64("1900-01-01")).astype(float)
    rows = np.column_stack([drawn["amount"], drawn["loan"].astype(float), days])
    with np.errstate(invalid="ignore"):
        counted = [((rows >= a) & (rows < b)).all(axis=1).sum() for a, b in zip(low, high, strict=True)]
    is_present = ~np.isnan(rows).any(axis=1)
    assert is_present.mean() > 0.99
    np.testing.assert_allclose(expected, counted, atol=0.015 * N)


def test_places_and_values_are_each_others_inverse() -> None:
    """From values to places and back, between points and below and above all."""
    lattice = joint_lattice(SCHEMA)
    values = np.array([[0.37, 1234.0, 40_000.0], [123_456.7, 654_321.0, 5.0]])
    places, _ = ends_to_places(values, lattice)
    np.testing.assert_allclose(to_values(places.T.copy(), lattice).T, values, rtol=1e-6, atol=1)
    far, _ = ends_to_places(np.array([[-np.inf] * 3, [np.inf] * 3]), lattice)
    assert (far[0] <= 2**-10).all()
    np.testing.assert_array_equal(far[1], [axis.pieces.n_cells for axis in lattice.axes])


def test_boxes_of_a_picture_lie_inside_the_bounds(model) -> None:
    """In the units of the columns, one after the other."""
    release = model.release_
    boxes = value_boxes(release.density.boxes, release.moments.lattice, release.density.piles)
    assert (boxes.low[:, 0] >= 0).all()
    assert ((boxes.low + boxes.length)[:, 0] <= 1e6).all()
    assert (boxes.length >= 0).all()


def test_bins_draw_in_the_units_of_the_columns(real) -> None:
    """Without moments too: values inside the bounds, zeros and round amounts among them."""
    import pyarrow as pa

    model = sp.KDTreeSynthesizer(4, moments=False).fit(pa.table(real), SCHEMA)
    rows = model.sample(N, seed=2, frame="pyarrow")
    amount = rows["amount"].to_numpy()
    assert 0.1 < (amount == 0).mean() < 0.3
    assert 0 <= amount.min() <= amount.max() <= 1e6
    points, weights = model.weighted_points(frame="pyarrow")
    assert points.num_rows == len(weights)


def test_smooth_numbers_get_no_piles() -> None:
    """Where rows do not pile up, the release says so, and hardly any are drawn at the points of pieces."""
    values = np.random.default_rng(5).lognormal(6, 1, (50_000, 1)).clip(0, 1e6)
    rows = sp.KDTreeSynthesizer(1).fit(values, sp.Schema({"v": sp.Real(0, 1e6)})).sample(50_000, seed=0)
    release_values, counts = np.unique(rows, return_counts=True)
    assert counts[counts > 5].sum() < 0.05 * len(rows)
    assert len(release_values) > 40_000


# ----------------------------------------------------------------------------------------------------------- files


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "true.spinney")
    return tmp_path / "true.spinney"


def test_a_file_gives_the_same_rows(model, path) -> None:
    """Axes with pieces survive a file, which says what they are."""
    loaded = sp.load(path)
    assert loaded.moments.lattice == model.release_.moments.lattice
    assert loaded.sample(100, seed=4, frame="pyarrow").equals(model.sample(100, seed=4, frame="pyarrow"))


FORGERIES = {
    "starts out of order": lambda pieces: pieces["starts"].reverse(),
    "slots out of order": lambda pieces: pieces["slots"].reverse(),
    "no starts": lambda pieces: pieces.update(starts=[]),
    "too many": lambda pieces: pieces.update(starts=list(range(5000)), slots=list(range(5000)), points=[-1] * 5000),
    "of different numbers": lambda pieces: pieces["points"].pop(),
    "not whole": lambda pieces: pieces["starts"].__setitem__(3, 0.5),
    "no number": lambda pieces: pieces["starts"].__setitem__(3, "x"),
    "huge": lambda pieces: pieces.update(n_fine=2**70),
    "another unit": lambda pieces: pieces.update(unit="-1"),
    "a point elsewhere": lambda pieces: pieces["points"].__setitem__(5, pieces["n_fine"] - 1),
    "no node": lambda pieces: pieces["slots"].__setitem__(3, pieces["slots"][3] + 1),
    "a truth that is none": lambda pieces: pieces.update(has_points=1),
    "an entry more": lambda pieces: pieces.update(colour="red"),
    "another start": lambda pieces: pieces["starts"].__setitem__(20, pieces["starts"][20] + 1),
    "another zero": lambda pieces: pieces.update(zero=pieces["zero"] + 1),
}


@in_one_test("name", FORGERIES)
def test_forged_pieces_are_refused(path, tmp_path, name) -> None:
    """Pieces that cannot be, and pieces that are not those of the schema."""
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    card = json.loads(members["card.json"])
    FORGERIES[name](card["axes"][0]["pieces"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for member, content in (members | {"card.json": json.dumps(card).encode()}).items():
            archive.writestr(member, content)
    (tmp_path / "forged.spinney").write_bytes(buffer.getvalue())
    with pytest.raises(FileError):
        sp.load(tmp_path / "forged.spinney")
