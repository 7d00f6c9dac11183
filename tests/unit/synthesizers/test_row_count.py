"""Rows that nobody counted for us: under add-remove their number is bought, first and once, or assumed, and said."""

from __future__ import annotations

import json
import warnings
import zipfile
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import spinney as sp
from spinney.errors import BudgetError, FileError, InputError, ParameterError, PrivacyWarning, SchemaWarning
from spinney.privacy.mechanisms import Charge, DiscreteLaplaceCounts
from spinney.release.card import RowCount
from spinney.release.verify import verification
from spinney.synthesizers import base
from spinney.tables.engines.stream import StreamSource
from support.in_one_test import in_one_test

SCHEMA = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1), "c": sp.Integer(0, 6)})
MODELS = {
    "forest": sp.ForestSynthesizer(2, unit="add-remove"),
    "forest, target": sp.ForestSynthesizer(2, unit="add-remove", target="c"),
    "forest, high": sp.ForestSynthesizer(2, unit="add-remove", quality="high"),
    "forest, pure": sp.ForestSynthesizer(2, 0, unit="add-remove"),
    "moments": sp.KDTreeSynthesizer(2, unit="add-remove"),
    "bins": sp.KDTreeSynthesizer(2, unit="add-remove", moments=False),
    "paper": sp.PaperTreeSynthesizer(2, unit="add-remove", t=1),
    "grid": sp.GridSynthesizer(2, unit="add-remove"),
    "grid, bins given": sp.GridSynthesizer(2, unit="add-remove", bins=4),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
ROWS = Fraction(2, 100)


def table(n, seed=0):
    return np.floor(np.random.default_rng(seed).random((n, 3)) * [1e6, 1e6, 6]) / [1e6, 1e6, 1]


def with_options(model, **options):
    return type(model)(**(model.get_params() | options))


def charges(events):
    return [event for event in events if isinstance(event, Charge)]


# ------------------------------------------------------------------------------------------------------- what is bought


@every_model
def test_the_count_is_the_first_charge_and_a_hundredth(model):
    """Rows are charged by themselves, before all else; with the rest it costs epsilon, to the last fraction."""
    ledger = sp.Ledger(limit=2, delta="1e-6", unit="add-remove")
    model.fit(table(3000), SCHEMA, ledger=ledger)
    first, *others = charges(ledger.events)
    assert first == DiscreteLaplaceCounts(ROWS, 1, "rows: how many there are", stage="rows", times=1)
    assert all(charge.stage != "rows" for charge in others if hasattr(charge, "stage"))
    assert ledger.spent == 2
    assert model.card_.epsilon == 2


@every_model
def test_the_plan_follows_the_noisy_count(model):
    """Tables of 30 rows and of 30,000 are released by other plans, unless nothing follows from the number of rows."""
    few, many = (with_options(model).fit(table(n), SCHEMA) for n in (30, 30_000))
    assert abs(many.card_.row_count.noisy - 30_000) < 3000
    assert abs(few.card_.row_count.noisy - 30) < 3000
    if isinstance(model, sp.ForestSynthesizer):
        assert few.design_ != many.design_
        assert abs(many.release_.noisy_total - 30_000) < 500
    elif model.get_params().get("bins") is None and model.get_params().get("moments") is not False:
        assert few.plan_ != many.plan_


@every_model
def test_a_number_that_is_given_is_not_bought(model):
    """With assumed_rows all of epsilon is for the release, and the design follows the number that was given."""
    given = with_options(model, assumed_rows=30_000).fit(table(30_000), SCHEMA)
    assert given.card_.row_count is None
    assert "noisy_rows" not in given.card_.plan
    assert all(getattr(charge, "stage", None) != "rows" for charge in charges(given.ledger_.events))
    assert given.card_.epsilon == 2
    assert "private; 30,000 assumed, not counted" in given.card_.essentials


@every_model
def test_a_public_number_is_not_bought(model):
    """Under replace-one the number of rows is known already."""
    public = with_options(model, unit="replace-one").fit(table(500), SCHEMA)
    assert public.card_.row_count is None
    assert public.card_.n_rows == 500


def test_a_fair_count_finds_the_structure():
    """A wrong guess of the number of rows makes a forest too plain; a bought count makes the one of a right guess."""
    rng = np.random.default_rng(3)
    n, names = 40_000, [f"c{i}" for i in range(6)]
    codes = np.cumsum(rng.integers(0, 2, (n, 6)), axis=1) % 16
    schema = sp.Schema({name: sp.Integer(0, 15) for name in names})

    def design(**options):
        return sp.ForestSynthesizer("0.3", unit="add-remove", **options).fit(codes, schema).design_

    right, wrong, bought = design(assumed_rows=n), design(assumed_rows=300), design()
    assert wrong.structure != right.structure
    assert (bought.structure, bought.most_states) == (right.structure, right.most_states)


@pytest.mark.parametrize("noisy", [-(10**6), -1, 0, 1])
def test_a_count_that_shows_no_rows_is_no_empty_table(monkeypatch, noisy):
    """However low the noise makes the count, the plan is for as many rows as the noise may hide, and rows are drawn."""
    monkeypatch.setattr(base, "release_rows", _stub(noisy))
    model = sp.ForestSynthesizer(2, unit="add-remove")
    model.fit(table(400), SCHEMA)
    assert model.card_.row_count == RowCount(noisy, ROWS)
    assert model.card_.row_count.expected >= 50
    assert len(model.sample()) > 0
    shown = f"{noisy:,}" if noisy >= 0 else f"about 0 ({noisy:,})"
    assert f"private; {shown} by a noisy count" in model.card_.essentials
    assert "as many rows are drawn as all noisy counts together say" in " ".join(model.card_.essentials.split())


def _stub(noisy):
    real = base.release_rows

    def release_rows(true_rows, *, epsilon, ledger, entropy):
        return RowCount(noisy, real(true_rows, epsilon=epsilon, ledger=ledger, entropy=entropy).rate)

    return release_rows


def test_delta_does_not_follow_the_count():
    """The default delta is 1e-6 whatever was counted, and of assumed_rows where that is given."""
    for n in (5, 40_000):
        assert sp.ForestSynthesizer(2, unit="add-remove").fit(table(n), SCHEMA).card_.delta == Fraction(1, 10**6)
    assumed = sp.ForestSynthesizer(2, unit="add-remove", assumed_rows=10**7).fit(table(50), SCHEMA)
    assert assumed.card_.delta == Fraction(1, 10**8)


def test_a_delta_above_one_over_the_counted_rows_is_told(monkeypatch):
    """The default delta of a large table whose size is private is too large, and both fit and card say so."""
    monkeypatch.setattr(base, "release_rows", _stub(30_000_000))
    model = sp.ForestSynthesizer(2, unit="add-remove")
    with pytest.warns(PrivacyWarning, match=r"delta=1e-06 is above one over the number of rows"):
        model.fit(table(400), SCHEMA)
    assert any("is above one over" in caution for caution in model.card_.cautions)


# -------------------------------------------------------------------------------------------------- before it is bought


@every_model
def test_values_that_cannot_be_read_cost_nothing(model):
    """A table with a missing value is refused before rows are paid for, whatever is counted first."""
    ledger = sp.Ledger(limit=2, delta="1e-6", unit="add-remove")
    broken = table(100)
    broken[7, 1] = np.nan
    with pytest.raises(InputError, match="'y'"):
        model.fit(broken, SCHEMA, ledger=ledger)
    assert ledger.events == ()


WRONG = {
    "threshold": (sp.KDTreeSynthesizer(1, unit="add-remove", threshold=-1), ParameterError),
    "bins": (sp.GridSynthesizer(1, unit="add-remove", bins=0), ParameterError),
    "too many empty bins": (sp.GridSynthesizer(1, unit="add-remove", bins=5000, threshold=1), BudgetError),
    "too deep": (sp.PaperTreeSynthesizer(1, unit="add-remove", h=9000, h_prime=9000), ParameterError),
    "quality": (sp.ForestSynthesizer(1, unit="add-remove", quality="best of all"), ParameterError),
    "placement": (sp.KDTreeSynthesizer(1, unit="add-remove", placement="nowhere"), ParameterError),
}


@pytest.mark.parametrize(("model", "kind"), WRONG.values(), ids=WRONG)
def test_what_can_work_for_no_table_costs_nothing(model, kind):
    """Parameters out of range, and plans that no number of rows makes possible, are refused before anything is paid."""
    ledger = sp.Ledger(limit=2, delta="1e-6", unit="add-remove")
    with pytest.raises(kind) as caught:
        model.fit(table(100), SCHEMA, ledger=ledger)
    assert "noisy count" not in str(caught.value)
    assert ledger.events == ()


def test_shares_leave_room_for_the_count():
    """Bounds may not take what the count and the release need."""
    schema = sp.Schema({"x": sp.Real(bounds="private")})
    ledger = sp.Ledger(limit=1, unit="add-remove")
    with pytest.raises(ParameterError, match=r"must be below 0\.99"):
        sp.KDTreeSynthesizer(1, unit="add-remove", bounds_share="0.99").fit(table(50)[:, :1], schema, ledger=ledger)
    assert ledger.events == ()


def test_a_list_that_so_few_rows_cannot_give_costs_the_count_alone():
    """Private values of a small table are refused once its size is known, and the error says what was spent."""
    frame = pl.DataFrame({"code": ["a", "b"] * 10})
    schema = sp.Schema({"code": sp.Category("private", other="?")})
    ledger = sp.Ledger(limit="0.1", delta="1e-6", unit="add-remove")
    model = sp.ForestSynthesizer("0.1", unit="add-remove", values_share="0.01")
    with pytest.raises(BudgetError, match=r"list the values\. The table has about .* rows by a noisy count"):
        model.fit(frame, schema, ledger=ledger)
    assert ledger.spent == Fraction(1, 1000)
    refused = sp.Ledger(limit="0.1", unit="add-remove")
    with pytest.raises(ParameterError, match="needs a delta"):
        with_options(model, delta=0).fit(frame, schema, ledger=refused)
    assert refused.events == ()


def test_private_values_and_bounds_come_after_the_count():
    """All three are bought one after the other, each with its own share of epsilon."""
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"code": rng.choice(["a", "b", "c"], 30_000), "x": rng.normal(size=30_000)})
    schema = sp.Schema({"code": sp.Category("private", other="?"), "x": sp.Real(bounds="private")})
    model = sp.ForestSynthesizer(1, unit="add-remove").fit(frame, schema)
    paid = {getattr(charge, "stage", "forest"): charge.epsilon for charge in charges(model.ledger_.events)}
    assert list(paid)[:3] == ["rows", "values", "bounds"]
    assert (paid["rows"], paid["values"], paid["bounds"]) == (Fraction(1, 100), Fraction(1, 10), Fraction(1, 10))
    assert model.card_.epsilon == 1
    assert [stage.name for stage in model.explain().stages][:3] == ["rows", "bounds", "values"]


# ---------------------------------------------------------------------------------------------------------- passes


@pytest.fixture
def passes(monkeypatch):
    """How often a stream was read, and for what."""
    seen = []
    each = StreamSource._each

    def spy(self, names, what, work):
        seen.append(what)
        return each(self, names, what, work)

    monkeypatch.setattr(StreamSource, "_each", spy)
    return seen


PASSES = {"moments": 1, "bins": 1, "paper": 1, "grid": 2, "grid, bins given": 1, "forest": 3}


@pytest.mark.parametrize("name", PASSES)
def test_a_stream_is_read_no_more_often_than_said(tmp_path, passes, name):
    """Trees, and grids of stated bins, are read once, as without a count; grids of automatic bins are checked first."""
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table(dict(zip("xyc", table(2000).T, strict=True))), path)
    model = MODELS[name].fit(path, SCHEMA)
    assert abs(model.card_.row_count.noisy - 2000) < 3000
    assert len(passes) == PASSES[name]


def test_every_engine_counts_the_same_rows(tmp_path):
    """Memory, Parquet and CSV files, lazy frames and DuckDB give the same noisy count for the same noise."""
    duckdb = pytest.importorskip("duckdb")
    columns = pa.table(dict(zip("xyc", table(1500).T, strict=True)))
    pa.parquet.write_table(columns, tmp_path / "t.parquet")
    pa.csv.write_csv(columns, tmp_path / "t.csv")
    frames = [
        columns,
        tmp_path / "t.parquet",
        tmp_path / "t.csv",
        pl.from_arrow(columns).lazy(),
        duckdb.connect().from_arrow(columns),
    ]
    for model in (MODELS["forest, pure"], MODELS["moments"], MODELS["grid"]):
        fitted = [with_options(model).fit(frame, SCHEMA, entropy=sp.UnsafeSeededEntropy(4)) for frame in frames]
        assert len({one.card_.row_count.noisy for one in fitted}) == 1


# ------------------------------------------------------------------------------------------------------ what is said


@every_model
def test_the_card_the_file_and_its_verification_tell_of_the_count(model, tmp_path):
    """The noisy number stands in the plan and in words; a file keeps it, and says that it was paid for once."""
    model.fit(table(3000), SCHEMA).save(tmp_path / "r")
    release = sp.load(tmp_path / "r")
    noisy = release.card.plan["noisy_rows"]
    assert noisy == model.card_.row_count.noisy
    assert f"private; {noisy:,} by a noisy count, of standard deviation 70.7" in release.card.essentials
    assert "rows: how many there are" in str(release.card)
    assert any("counted once, with noise of standard deviation 70.7" in line for line in verification(release).checks)
    if isinstance(model, sp.ForestSynthesizer):
        described = release.explain().to_dict()
        assert (described["noisy_rows"], described["assumed_rows"]) == (noisy, None)
        assert described["stages"][0]["name"] == "rows"
        assert "1 count" in str(release.explain())


def rows_event(card):
    return next(event for event in card["events"] if event.get("stage") == "rows")


FORGED = {
    "no number": lambda card: card["plan"].pop("noisy_rows"),
    "a number that is none": lambda card: card["plan"].update(noisy_rows="many"),
    "a number without end": lambda card: card["plan"].update(noisy_rows=2**70),
    "a number that was assumed": lambda card: card["parameters"].update(assumed_rows=5000),
    "of another stage": lambda card: rows_event(card).update(stage="leaves"),
    "for another sensitivity": lambda card: rows_event(card).update(sensitivity=2),
    "more than once": lambda card: rows_event(card).update(times=2),
    "not paid for": lambda card: (card["events"].remove(rows_event(card)), card.update(epsilon="99/50")),
    "twice": lambda card: (card["events"].append(rows_event(card)), card.update(epsilon="101/50")),
}


@in_one_test("name", ["forest", "forest, pure", "moments", "grid"])
@in_one_test("change", FORGED.values(), ids=FORGED)
def test_forged_counts_are_refused(tmp_path, name, change):
    """A file whose count was not paid for, paid for twice or left out is refused."""
    MODELS[name].fit(table(3000), SCHEMA).save(tmp_path / "r", overwrite=True)
    with zipfile.ZipFile(tmp_path / "r") as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    described = json.loads(members["card.json"])
    change(described["card"])
    with zipfile.ZipFile(tmp_path / "forged", "w") as archive:
        for member, content in (members | {"card.json": json.dumps(described).encode()}).items():
            archive.writestr(member, content)
    with pytest.raises(FileError, match="inconsistent contents"):
        sp.load(tmp_path / "forged")


@pytest.mark.parametrize("name", ["forest", "moments", "grid"])
@pytest.mark.parametrize(("assumed", "is_told"), [(400, True), (3000, False), (5000, False), (60_000, True)])
def test_a_guess_that_is_far_off_is_told(name, assumed, is_told):
    """Where the released counts say less than half or more than twice the rows assumed, fit and card remark on it.

    Bins below the threshold are not released, so that too few rows in a grid mean nothing.
    """
    is_told &= name != "grid" or assumed < 4000
    model = with_options(MODELS[name], assumed_rows=assumed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table(4000), SCHEMA)
    told = [str(one.message) for one in caught if issubclass(one.category, SchemaWarning)]
    assert any(f"assumed_rows={assumed} was given" in one for one in told) is is_told
    assert any(f"assumed_rows={assumed} was given" in remark for remark in model.card_.remarks) is is_told


def test_a_release_of_nothing_says_nothing_of_a_guess():
    """Where the budget was too small to count anything, no total speaks against the guess."""
    model = sp.ForestSynthesizer("0.0001", unit="add-remove", assumed_rows=500).fit(table(4000), SCHEMA)
    assert model.release_.card.plan["structure"] == "uniform"
    assert not any("assumed_rows" in remark for remark in model.card_.remarks)


def test_a_release_of_nothing_still_knows_its_rows():
    """With a bought count, an even release draws about as many rows as the noisy count makes likely."""
    wide = sp.Schema({f"c{i}": sp.Integer(0, 999) for i in range(60)})
    rows = np.random.default_rng(0).integers(0, 999, (120, 60))
    model = sp.ForestSynthesizer("0.1", unit="add-remove").fit(rows, wide)
    assert model.release_.card.plan["structure"] == "uniform"
    assert model.release_.noisy_total == model.card_.row_count.drawn == len(model.sample())
    assert model.release_.verify_contents()


@pytest.mark.parametrize(
    ("noisy", "drawn"), [(-(10**7), 1_000), (0, 1_000), (3 * 10**7, 1_000), (8 * 10**7, 80_000_000)]
)
def test_a_count_that_is_all_noise_does_not_decide_how_many_rows_are_drawn(monkeypatch, noisy, drawn):
    """At epsilon 1e-5 its noise has a standard deviation of 14 million; below five of them few rows are drawn."""
    monkeypatch.setattr(base, "release_rows", _stub(noisy))
    model = sp.ForestSynthesizer("0.00001", unit="add-remove").fit(table(400), SCHEMA)
    assert model.card_.plan["structure"] == "uniform"
    assert model.release_.noisy_total == pytest.approx(drawn, rel=0.01)
    is_told = any("does not stand out of its noise" in remark for remark in model.card_.remarks)
    assert is_told is (drawn == 1_000)


def test_a_count_of_a_small_table_is_what_is_drawn():
    """Near its noise, too: few rows are never more than the count makes likely."""
    count = RowCount(300, Fraction(1, 100))
    assert not count.stands_out
    assert count.drawn == count.expected < 400
