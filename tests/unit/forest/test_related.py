"""Releases of columns that are fixed parts of others: rows, orders, files, and every engine the same."""

from __future__ import annotations

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.forest.release.related import Asked, alternatives, each_of
from spinney.release.answers.question import allowed
from spinney.tables.engines.memory import MemorySource
from spinney.tables.frames import open_table
from support.query_engines import DuckDBQueries, PolarsQueries

N = 6000
COLUMNS = {
    "kind": sp.Category(["shop", "farm"]),
    "approved": sp.Integer(0, 4_000_000, nullable=True),
    "paid": sp.Integer(0, 4_000_000),
    "covered": sp.Real(0, 3_000_000, multiple_of=0.01, nullable=True),
}
RULES = [
    sp.Related("paid", "approved", ratios=[1]),
    sp.Related("covered", "approved", ratios=["0.5", "0.75", "1/3"]),
]
SCHEMA = sp.Schema(COLUMNS, rules=RULES)
ORDERED = sp.Schema({**COLUMNS, "approved": sp.Integer(0, 4_000_000)}, rules=[RULES[0], sp.AtMost("paid", "approved")])


def nearest(ratio: float, base) -> np.ndarray:
    return np.floor(ratio * np.asarray(base) * 100 + 0.5 + 1e-9) / 100


def made(n: int, seed: int, *, nulls: bool = True) -> pa.Table:
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n)
    approved = np.round(np.exp(rng.normal(10 + kind, 1, n)) / 100).astype(np.int64) * 100
    approved[rng.random(n) < 0.05] = 0
    paid = np.where(rng.random(n) < 0.7, approved, np.round(approved * rng.uniform(0.1, 1, n))).astype(np.int64)
    part = rng.choice([0.5, 0.75, 1 / 3, 0.0], n, p=[0.4, 0.2, 0.2, 0.2])
    covered = np.where(part > 0, nearest(part, approved), np.round(approved * rng.uniform(0, 1, n), 2))
    is_null = rng.random(n) < 0.05 if nulls else np.zeros(n, dtype=bool)
    return pa.table(
        {
            "kind": np.where(kind == 1, "farm", "shop"),
            "approved": pa.array(approved, mask=is_null),
            "paid": paid,
            "covered": pa.array(covered, mask=rng.random(n) < 0.1),
        }
    )


@pytest.fixture(scope="module")
def loans() -> pa.Table:
    return made(N, 0)


def shares(rows: pa.Table) -> list[float]:
    """The shares of rows with each ratio, nulls and zeros left out."""
    approved, paid, covered = (rows[name].to_numpy().astype(np.float64) for name in ("approved", "paid", "covered"))
    held = (approved > 0) & (paid > 0)
    found = [float((held & (paid == approved)).mean())]
    return found + [
        float((np.abs(covered - nearest(part, approved)) < 1e-6)[approved > 0].sum() / len(approved))
        for part in (0.5, 0.75, 1 / 3)
    ]


def test_ratios_come_back(loans):
    """In as many rows as there are, where without the rule they are lost; a larger noise is no excuse at epsilon 3."""
    model = sp.ForestSynthesizer("3", "1e-6").fit(loans, SCHEMA)
    rows = model.sample(seed=1, frame="pyarrow")
    assert rows.schema.names == list(COLUMNS)
    assert np.abs(np.array(shares(rows)) - shares(loans)).max() < 0.03
    without = (
        sp.ForestSynthesizer("3", "1e-6", relations="stated")
        .fit(loans, sp.Schema(COLUMNS))
        .sample(seed=1, frame="pyarrow")
    )
    assert shares(without)[0] < shares(loans)[0] - 0.2


def test_rows_keep_orders_beside_ratios(loans):
    """Rows with a code obey by their ratio, and values of their own are dealt out as ever."""
    table = made(N, 1, nulls=False)
    table = table.set_column(2, "paid", pa.array(np.minimum(table["paid"].to_numpy(), table["approved"].to_numpy())))
    model = sp.ForestSynthesizer("3", "1e-6").fit(table, ORDERED)
    for asked in (None, {"approved": (20_000, 60_000)}, {"kind": "farm"}):
        rows = model.sample(3000, seed=2, frame="pyarrow", where=asked)
        paid, approved = rows["paid"].to_numpy(), rows["approved"].to_numpy()
        assert (paid <= approved).all()
        assert (paid == approved).mean() > 0.6
        assert (paid < approved).any()


def test_files_draw_the_same_rows(loans, tmp_path):
    model = sp.ForestSynthesizer("1", "1e-6").fit(loans, SCHEMA)
    model.save(tmp_path / "loans.spinney")
    back = sp.load(tmp_path / "loans.spinney")
    assert back.sample(500, seed=3, frame="pyarrow").equals(model.sample(500, seed=3, frame="pyarrow"))
    back.verify(schema=SCHEMA)  # raises where card and numbers contradict each other
    assert "Related('paid', 'approved', ratios=[1])" in str(back.card)


def test_every_engine_reads_the_same_codes(loans, tmp_path):
    """Under the same noise the release is the same to the last byte."""
    pacsv.write_csv(loans, tmp_path / "loans.csv")
    pq.write_table(loans, tmp_path / "loans.parquet", row_group_size=700)
    sources = {
        "pyarrow": loans,
        "pandas": loans.to_pandas(),
        "polars": pl.from_arrow(loans),
        "csv": str(tmp_path / "loans.csv"),
        "parquet": str(tmp_path / "loans.parquet"),
        "lazy": pl.scan_parquet(tmp_path / "loans.parquet"),
        "duckdb": duckdb.connect().from_arrow(loans),
        "stream": loans.to_reader(max_chunksize=999),
    }
    members = {}
    for name, source in sources.items():
        model = sp.ForestSynthesizer("1", "1e-6").fit(source, SCHEMA, entropy=sp.UnsafeSeededEntropy(7))
        members[name] = model.release_.to_members()
    assert all(found == members["pyarrow"] for found in members.values())


@pytest.mark.parametrize("engine", [PolarsQueries, DuckDBQueries])
def test_queries_read_the_same_codes(engine, loans, monkeypatch):
    """Rows that stay with an engine, as those of Spark do: cells, and how many rows have each ratio."""

    def members(source):
        monkeypatch.setattr("spinney.synthesizers.base.open_source", lambda *_, **__: source)
        model = sp.ForestSynthesizer("1", "1e-6").fit(None, SCHEMA, entropy=sp.UnsafeSeededEntropy(7))
        return model.release_.to_members()

    assert members(engine(loans, SCHEMA._as_read)) == members(MemorySource(open_table(loans, SCHEMA._as_read)))
    alone = [one for rule in RULES for one in rule.one_by_one()]
    names = list(COLUMNS)
    expected = MemorySource(open_table(loans, SCHEMA)).tally(names, alone).n_broken
    assert engine(loans, SCHEMA).tally(names, alone).n_broken == expected
    assert 0 < expected[alone[1]] < N


def test_check_tells_how_many_rows_have_each_ratio(loans):
    """The holder hears of every ratio, and of those that no row has; rows without one are no fault."""
    rules = [RULES[0], sp.Related("covered", "approved", ratios=["0.5", "0.77"])]
    found = sp.check(loans, sp.Schema(COLUMNS, rules=rules))
    assert not found.faults
    n_equal = round(shares(loans)[0] * N)
    assert f"'paid' is equal to 'approved' in {n_equal:,} of {N:,} rows." in found.notes
    assert any("50 % of 'approved' in" in note for note in found.notes)
    assert any(
        "no row has a ratio that Related('covered', 'approved', ratios=['0.77'])" in str(one.message)
        for one in found.warnings
    )


def test_check_knows_percentages_that_are_stated_as_ratios(loans):
    """Fifty for a half: no row has it, and the warning says what to state; a ratio of two is taken as meant."""
    rules = [sp.Related("covered", "approved", ratios=[50, 75, 2])]
    warnings = [str(one.message) for one in sp.check(loans, sp.Schema(COLUMNS, rules=rules)).warnings]
    for percent, ratio in ((50, "0.5"), (75, "0.75")):
        assert any(f"if {percent} is a percentage, state {ratio} in its place" in warning for warning in warnings)
    (other,) = [warning for warning in warnings if "ratios=[2]" in warning]
    assert "correct it, or leave it out" in other


@pytest.mark.parametrize(
    ("where", "n_least"),
    [
        ({"paid": (10_000, 30_000)}, 2),
        ({"covered": (5_000, 20_000.5)}, 4),
        ({"covered": (None, 9_000), "paid": (10_000, None), "kind": "farm"}, 8),
        ({"covered": None}, 1),
        ({"approved": (5_000, 40_000), "paid": (8_000, 16_000)}, 2),
    ],
)
def test_alternatives_are_disjoint_and_leave_no_row_out(where, n_least, loans):
    """Every row that meets the conditions meets exactly one alternative, and every other row none."""
    found = alternatives(where, SCHEMA)
    assert len(found) >= n_least

    def meets(conditions, rows) -> np.ndarray:
        met = np.ones(N, dtype=bool)
        for name, asked in conditions.items():
            physical = rows.physical(name)
            values = physical.values.astype(np.float64)
            values = values if physical.is_null is None else np.where(physical.is_null, np.nan, values)
            for one in each_of(asked):
                inside = one.allowed if isinstance(one, Asked) else allowed(name, SCHEMA[name], one)
                met &= inside.holds(values)
        return met

    expected = meets(where, open_table(loans, SCHEMA))
    modelled = open_table(loans, SCHEMA._as_read)
    assert np.array_equal(sum(meets(one, modelled).astype(int) for one in found), expected.astype(int))
    assert expected.any()


@pytest.fixture(scope="module")
def released(loans):
    return sp.ForestSynthesizer("2", "1e-6").fit(loans, SCHEMA).release_


def test_rows_under_conditions_on_values_meet_them(released, loans):
    """Rows of all alternatives, as many of each as fall to it: equal ones as often as in the table."""
    rows = released.sample(3000, seed=4, frame="pyarrow", where={"paid": (10_000, 30_000), "kind": "farm"})
    paid, approved = rows["paid"].to_numpy(), rows["approved"].to_numpy()
    assert ((paid >= 10_000) & (paid <= 30_000)).all()
    assert set(rows["kind"].to_pylist()) == {"farm"}
    real_paid, real_approved = loans["paid"].to_numpy(), loans["approved"].to_numpy()
    inside = (real_paid >= 10_000) & (real_paid <= 30_000) & (np.asarray(loans["kind"]) == "farm")
    assert abs((paid == approved).mean() - (real_paid == real_approved)[inside].mean()) < 0.1
    again = [released.sample(5, seed=1, where={"paid": (10_000, 30_000)}) for _ in range(2)]
    assert again[0].equals(again[1])
    assert released.sample(50, seed=1, frame="pyarrow", where={"covered": None})["covered"].null_count == 50


def test_questions_about_values_are_answered_from_parts(released, loans):
    """Counts, shares, means and medians, with intervals that hold the truth at a level where none should fail."""
    paid, kind = loans["paid"].to_numpy(), np.asarray(loans["kind"])
    inside = (paid >= 10_000) & (paid <= 30_000)
    asked = {"paid": (10_000, 30_000)}
    count = released.count(asked, level=0.9999)
    assert count.low <= inside.sum() <= count.high < N
    assert count.statement in ("certified", "calibrated")
    certain = released.count(asked, level=0.9999, statement="certified")
    assert certain.low <= inside.sum() <= certain.high
    assert certain.statement == "certified"
    assert released.proportion({"paid": (0, None)}).estimate == pytest.approx(1)
    share = released.proportion({"kind": "farm"}, given=asked, level=0.9999)
    assert share.low <= (kind == "farm")[inside].mean() <= share.high
    share = released.proportion(asked, given={"kind": "farm"}, level=0.9999)
    assert share.low <= inside[kind == "farm"].mean() <= share.high
    mean = released.mean("paid", where=asked, level=0.9999)
    assert 10_000 <= mean.low <= paid[inside].mean() <= mean.high <= 30_000
    of_base = released.mean("approved", where=asked, level=0.99)
    assert of_base.low is None or of_base.low > 5_000
    median = released.quantile("paid", 0.5, level=0.9999)
    assert median.low <= np.median(paid) <= median.high
    assert median.statement == "indicative"
    with pytest.raises(ParameterError, match="no quantile is certified"):
        released.quantile("paid", 0.5, statement="certified")
    with pytest.raises(ParameterError, match="counts, proportions and means"):
        released.quantile("approved", 0.5, where=asked)


def test_bars_of_a_related_column_are_those_of_its_values(released):
    """No bar is a code: the last one ends where the column does."""
    bars = str(released.error_bars(["paid"], pairs=False))
    assert "4000000" in bars
    assert "4000001" not in bars


def test_leaves_of_ratios_say_so(released):
    """An explanation names the ratio in place of ends that no value has."""
    leaves = released.explain().bins("covered")
    assert {leaf["ratio"] for leaf in leaves if "ratio" in leaf} == {"0.5", "0.75", "1/3"}
    assert all(leaf["low"] is None for leaf in leaves if "ratio" in leaf)
    assert "with ratios" in str(released.explain())


def test_remarks_do_not_take_codes_for_values_at_a_bound(loans):
    model = sp.ForestSynthesizer("2", "1e-6").fit(loans, SCHEMA)
    assert not [remark for remark in model.release_.card.remarks if "'paid'" in remark]


@pytest.mark.parametrize("seed", [1, 5])
def test_codes_hide_no_noise_far_out(seed):
    """Codes lie beyond the bounds and are no values: leaves of noise far out are no nearer to the column for them."""
    rng = np.random.default_rng(0)
    base, own = (np.minimum(np.rint(np.exp(rng.normal(2, 1, 20_000))) + 1, 400).astype(int) for _ in range(2))
    table = pl.DataFrame({"base": base, "x": np.where(rng.random(20_000) < 0.5, base, own), "k": base % 2})
    wide = sp.Integer(0, 1_000_000)
    schema = sp.Schema({"base": wide, "x": wide, "k": sp.Integer(0, 1)}, rules=[sp.Related("x", "base")])
    model = sp.ForestSynthesizer(1, "1e-6").fit(table, schema, entropy=sp.UnsafeSeededEntropy(seed))
    rows = model.sample(20_000, seed=1)
    assert rows["x"].max() < 10_000
    assert rows["x"].std() < 3 * table["x"].std()
