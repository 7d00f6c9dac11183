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
    without = sp.ForestSynthesizer("3", "1e-6").fit(loans, sp.Schema(COLUMNS)).sample(seed=1, frame="pyarrow")
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


def test_conditions_on_values_are_told_where_they_go(loans):
    """Null is a condition like any other; of values the error names the base, and nothing wrong is answered."""
    model = sp.ForestSynthesizer("2", "1e-6").fit(loans, SCHEMA)
    rows = model.sample(200, seed=1, frame="pyarrow", where={"covered": None})
    assert rows["covered"].null_count == 200
    for ask in (
        lambda: model.sample(10, where={"paid": (0, 100)}),
        lambda: model.release_.count(where={"paid": (0, 100)}),
        lambda: model.release_.mean("paid"),
    ):
        with pytest.raises(ParameterError, match="told by two columns"):
            ask()


def test_remarks_do_not_take_codes_for_values_at_a_bound(loans):
    model = sp.ForestSynthesizer("2", "1e-6").fit(loans, SCHEMA)
    assert not [remark for remark in model.release_.card.remarks if "'paid'" in remark]
