"""Sums and derived columns: computed in every row, by every synthesizer, and residuals read by every engine."""

from __future__ import annotations

import json
import zipfile

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.errors import FileError, InputError, ParameterError, SchemaError
from spinney.tables.engines.memory import MemorySource
from spinney.tables.frames import open_table
from support.query_engines import DuckDBQueries, PolarsQueries

N = 4000
CENTS = sp.Real(0, 1000, multiple_of=0.01)
COLUMNS = {
    "fare": CENTS,
    "tip": CENTS,
    "total": sp.Real(-5, 2005, multiple_of=0.01),
    "hours": sp.Integer(0, 100),
    "band": sp.Category(["short", "long"]),
}
BAND = sp.Derived("band", "hours", cuts=[40], labels=["short", "long"])
RESIDUAL = sp.Sum("total", ["fare", "tip"], residual=sp.Real(-5, 5, multiple_of=0.01))
EXACT = sp.Schema(COLUMNS, rules=[BAND, sp.Sum("total", ["fare", "tip"])])
NEARLY = sp.Schema(COLUMNS, rules=[BAND, RESIDUAL])


@pytest.fixture(scope="module")
def trips() -> pd.DataFrame:
    """Totals with an extra of 50 cents in half of the rows."""
    rng = np.random.default_rng(0)
    fare, tip = rng.integers(250, 9000, N), rng.integers(0, 900, N)
    hours = rng.integers(0, 101, N)
    total = fare + tip + 50 * rng.integers(0, 2, N)
    return pd.DataFrame(
        {
            "fare": fare / 100,
            "tip": tip / 100,
            "total": total / 100,
            "hours": hours,
            "band": np.where(hours < 40, "short", "long"),
        }
    )


def cents(numbers) -> np.ndarray:
    found = np.asarray(numbers, dtype=np.float64) * 100
    assert np.abs(found - np.rint(found)).max() < 1e-6
    return np.rint(found).astype(np.int64)


def gaps(rows) -> np.ndarray:
    return cents(rows["total"]) - cents(rows["fare"]) - cents(rows["tip"])


@pytest.mark.parametrize(
    "model", [sp.ForestSynthesizer("2"), sp.KDTreeSynthesizer("2"), sp.GridSynthesizer("2", bins=4)]
)
def test_every_row_adds_up(model, trips, tmp_path):
    """In memory, and in CSV and Parquet files that were written and read back; bands follow from hours."""
    model.fit(trips, EXACT)
    for frame in ("pandas", "polars", "pyarrow"):
        assert not gaps(model.sample(500, frame=frame)).any()
    rows = model.sample(5000, frame="pyarrow", seed=1)
    pacsv.write_csv(rows, tmp_path / "rows.csv")
    pq.write_table(rows, tmp_path / "rows.parquet")
    for back in (pacsv.read_csv(tmp_path / "rows.csv"), pq.read_table(tmp_path / "rows.parquet")):
        assert not gaps(back).any()
        assert (np.asarray(back["band"]) == np.where(np.asarray(back["hours"]) < 40, "short", "long")).all()
    assert rows.column_names == list(COLUMNS)
    model.save(tmp_path / "model.spinney")
    assert (
        sp.load(tmp_path / "model.spinney")
        .sample(100, seed=2, frame="pyarrow")
        .equals(model.sample(100, seed=2, frame="pyarrow"))
    )


def test_arrays_add_up_too(trips):
    schema = sp.Schema(
        {"a": CENTS, "b": CENTS, "c": sp.Real(0, 2000, multiple_of=0.01)}, rules=[sp.Sum("c", ["a", "b"])]
    )
    array = sp.KDTreeSynthesizer("1").fit(trips[["fare", "tip", "total"]].to_numpy(), schema).sample(300)
    assert (np.rint(array * 100) @ [1, 1, -1] == 0).all()
    points, weights = sp.KDTreeSynthesizer("1").fit(array, schema).weighted_points()
    assert points.shape == (len(weights), 3)


def test_computed_columns_are_never_read(trips):
    """Whatever is in them: nothing is charged for them, and nothing of them is looked at."""
    odd = trips.assign(total="private", band=[object()] * N)
    released = sp.ForestSynthesizer("1").fit(odd, EXACT, entropy=sp.UnsafeSeededEntropy(1)).release_
    plain = sp.ForestSynthesizer("1").fit(trips, EXACT, entropy=sp.UnsafeSeededEntropy(1)).release_
    assert released.to_members() == plain.to_members()
    assert list(released.columns) == ["fare", "tip", "hours"]


@pytest.mark.parametrize("model", [sp.ForestSynthesizer("5"), sp.KDTreeSynthesizer("5")])
def test_residuals_are_modelled(model, trips):
    """The difference lies in its bounds in every row; a forest finds the half of the rows that have an extra."""
    found = gaps(model.fit(trips, NEARLY).sample(4000, seed=1))
    assert np.abs(found).max() <= 500
    if isinstance(model, sp.ForestSynthesizer):
        assert np.isin(found, [0, 50]).mean() > 0.9
        assert abs((found == 50).mean() - 0.5) < 0.1
        assert "of its residual" in str(model.explain())


def test_every_engine_reads_the_same_residual(trips, tmp_path):
    """Under the same noise the release is the same to the last byte."""
    table = pa.Table.from_pandas(trips)
    pacsv.write_csv(table, tmp_path / "trips.csv")
    pq.write_table(table, tmp_path / "trips.parquet", row_group_size=700)
    connection = duckdb.connect()
    sources = {
        "pandas": trips,
        "polars": pl.from_arrow(table),
        "csv": str(tmp_path / "trips.csv"),
        "parquet": str(tmp_path / "trips.parquet"),
        "lazy": pl.scan_parquet(tmp_path / "trips.parquet"),
        "duckdb": connection.from_arrow(table),
        "stream": table.to_reader(max_chunksize=999),
        "strings": trips.assign(total=trips.total.astype(str)),
    }
    members = {}
    for name, source in sources.items():
        model = sp.ForestSynthesizer("1", "1e-6").fit(source, NEARLY, entropy=sp.UnsafeSeededEntropy(7))
        members[name] = model.release_.to_members()
    assert all(found == members["pandas"] for found in members.values())


@pytest.mark.parametrize("engine", [PolarsQueries, DuckDBQueries])
def test_queries_read_the_same_residual(engine, trips, monkeypatch):
    """Rows that stay with an engine, as those of Spark do."""
    table = pa.Table.from_pandas(trips)

    def members(source):
        monkeypatch.setattr("spinney.synthesizers.base.open_source", lambda *_, **__: source)
        model = sp.ForestSynthesizer("1", "1e-6").fit(None, NEARLY, entropy=sp.UnsafeSeededEntropy(7))
        return model.release_.to_members()

    assert members(engine(table, NEARLY._as_read)) == members(MemorySource(open_table(table, NEARLY._as_read)))


@pytest.mark.parametrize("model", [sp.ForestSynthesizer("1"), sp.KDTreeSynthesizer("1")])
def test_a_missing_part_is_told_as_its_own(model, tmp_path):
    """By every engine: the error names the part, not the total that comes before it; a CSV tells the line."""
    table = pd.DataFrame({"t": [3.0] * 50, "f": [1.0] * 50, "g": [1.5] * 50})
    table.loc[5, "f"] = np.nan
    columns = {"t": sp.Real(-5, 30), "f": sp.Real(0, 10), "g": sp.Real(0, 10)}
    schema = sp.Schema(columns, rules=[sp.Sum("t", ["f", "g"], residual=sp.Real(-5, 5))])
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    for source in (table, pl.from_pandas(table), tmp_path / "t.parquet", pl.scan_parquet(tmp_path / "t.parquet")):
        with pytest.raises(InputError, match="column 'f' holds a missing"):
            model.fit(source, schema)
    with pytest.raises(InputError, match="line 7, column 'f' holds a missing"):
        model.fit(tmp_path / "t.csv", schema)
    for engine in (PolarsQueries, DuckDBQueries):
        with pytest.raises(InputError, match="column 'f' holds a missing"):
            engine(pa.Table.from_pandas(table), schema._as_read).check_values()


@pytest.mark.parametrize(
    ("trail", "value", "message"),
    [
        (("card", "schema", "columns", "tip", "multiple_of"), 2.0**63, "the steps of part 'tip' are too long"),
        (("within_leaves",), "sorted", "within_leaves is none of even, graded"),
        (("within_leaves",), [], "within_leaves is none of even, graded"),
    ],
)
def test_forged_files_are_refused(trips, tmp_path, trail, value, message):
    """When they are loaded, and not when rows are drawn of them; the error says what is wrong."""
    sp.ForestSynthesizer("1").fit(trips, EXACT).release_.save(tmp_path / "a.spinney")
    with zipfile.ZipFile(tmp_path / "a.spinney") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    card = entry = json.loads(members["card.json"])
    for name in trail[:-1]:
        entry = entry[name]
    assert trail[-1] in entry
    entry[trail[-1]] = value
    with zipfile.ZipFile(tmp_path / "b.spinney", "w") as archive:
        for name, content in (members | {"card.json": json.dumps(card).encode()}).items():
            archive.writestr(name, content)
    with pytest.raises(FileError, match=message):
        sp.load(tmp_path / "b.spinney")


@pytest.mark.parametrize("engine", [PolarsQueries, DuckDBQueries])
def test_queries_count_what_breaks_a_rule(engine):
    """As a table in memory does, whatever the rule."""
    rng = np.random.default_rng(1)
    columns = {
        "a": sp.Integer(0, 9, nullable=True),
        "b": sp.Category(["x", "y", "z"], nullable=True),
        "c": sp.Category(["u", "v"], nullable=True),
        "d": sp.Real(0, 9, nullable=True),
        "e": sp.Integer(-50, 50, nullable=True),
        "f": sp.Category([1, 2]),
    }
    rules = [
        sp.AtMost("d", "a"),
        sp.EmptyWhen("a", "b", ["x"]),
        sp.EmptyWhen("a", "d"),
        sp.Implies({"a": [(2, 5), None]}, {"b": ["x", None], "d": (1.5, 6)}),
        sp.Implies({"f": 1, "d": (None, 3)}, {"c": "u"}),
        sp.Derived("c", "b", by={"x": "u"}, default="v"),
        sp.Derived("c", "a", cuts=[3, 6], labels=["u", "v", "u"], null="v"),
        sp.Derived("f", ["b", "c"], by={("x", "u"): 1, ("y", "v"): 2}, default=1, null=2),
        sp.Sum("e", {"a": 2, "d": -1}, residual=sp.Real(-3, 3, nullable=True)),
        sp.Sum("e", ["a"]),
    ]
    n = 3000
    table = pa.table(
        {
            "a": pa.array(rng.integers(-2, 12, n), mask=rng.random(n) < 0.1),
            "b": pa.array(rng.choice(["x", "y", "z"], n), mask=rng.random(n) < 0.1),
            "c": pa.array(rng.choice(["u", "v"], n), mask=rng.random(n) < 0.1),
            "d": pa.array(np.round(rng.uniform(-1, 10, n)), mask=rng.random(n) < 0.1),
            "e": pa.array(rng.integers(-3, 12, n), mask=rng.random(n) < 0.1),
            "f": pa.array(rng.integers(1, 3, n)),
        }
    )
    schema = sp.Schema(columns)
    held = MemorySource(open_table(table, schema)).tally(list(columns), rules).n_broken
    found = engine(table, schema).tally(list(columns), rules).n_broken
    assert found == held
    assert min(held.values()) > 0


# ----------------------------------------------------------------------------------------------------- conditions


@pytest.fixture(scope="module")
def workers():
    """A forest with codes, their sectors and groups of these, and bands of hours."""
    rng = np.random.default_rng(0)
    code = rng.choice(["11", "12", "21", "99", None], N, p=[0.4, 0.2, 0.2, 0.1, 0.1])
    columns = {
        "code": sp.Category(["11", "12", "21", "99"], nullable=True),
        "sector": sp.Category(["farm", "shop", "none"]),
        "is_farm": sp.Boolean(),
        "hours": sp.Integer(0, 100),
        "band": sp.Category(["short", "middle", "long"]),
    }
    rules = [
        sp.Derived("sector", "code", by={"11": "farm", "12": "farm"}, default="shop", null="none"),
        sp.Derived("is_farm", "sector", by={"farm": True}, default=False),
        sp.Derived("band", "hours", cuts=[20, 60], labels=["short", "middle", "long"]),
        sp.Implies({"is_farm": True}, {"band": ["middle", "long"]}),
    ]
    table = pd.DataFrame({"code": code, "hours": rng.integers(0, 101, N)})
    table = table.assign(sector="farm", is_farm=True, band="short")
    return sp.ForestSynthesizer("5").fit(table[list(columns)], sp.Schema(columns, rules=rules))


def test_rules_about_derived_columns_hold(workers):
    rows = workers.sample(5000, seed=1)
    is_farm = rows.code.isin(["11", "12"])
    assert (rows.is_farm == is_farm).all()
    assert (rows.sector == np.where(is_farm, "farm", np.where(rows.code.isna(), "none", "shop"))).all()
    assert (rows.band == np.select([rows.hours < 20, rows.hours < 60], ["short", "middle"], "long")).all()
    assert not (is_farm & (rows.hours < 20)).any()
    assert 0.4 < is_farm.mean() < 0.75


@pytest.mark.parametrize(
    "where",
    [
        {"sector": "farm"},
        {"sector": ["farm", "none"]},
        {"is_farm": False},
        {"band": "middle"},
        {"band": ["middle", "long"], "hours": (10, 30)},
        {"sector": "shop", "code": ["21", "11"]},
    ],
)
def test_conditions_on_derived_columns(workers, where):
    """Are conditions on their sources, and may be joined with conditions on these."""
    rows = workers.sample(800, seed=1, where=where)
    for name, wanted in where.items():
        if isinstance(wanted, tuple):
            assert rows[name].between(*wanted).all()
        else:
            assert rows[name].isin(wanted if isinstance(wanted, list) else [wanted]).all()


def test_ranges_without_an_end_of_derived_numbers():
    """Reach as far as the column does."""
    columns = {"code": sp.Category(["x", "y", "z"]), "rank": sp.Integer(1, 3)}
    schema = sp.Schema(columns, rules=[sp.Derived("rank", "code", by={"x": 1, "y": 2, "z": 3})])
    table = pd.DataFrame({"code": ["x", "y", "z"] * 400, "rank": [1, 2, 3] * 400})
    model = sp.ForestSynthesizer("5").fit(table, schema)
    assert set(model.sample(200, seed=1, where={"rank": (2, None)}).code) == {"y", "z"}
    assert set(model.sample(200, seed=1, where={"rank": (None, 2)}).code) == {"x", "y"}
    with pytest.raises(ParameterError, match="is never"):
        model.sample(200, where={"rank": (4, None)})


@pytest.mark.parametrize(
    "balance",
    [{"sector": {"farm": 0.2, "shop": 0.5, "none": 0.3}}, {"is_farm": 0.25}, {"band": {"short": 0.5, "long": 0.5}}],
)
def test_balanced_derived_columns(workers, balance):
    """Values of the source that lead to one value keep their proportions."""
    rows = workers.sample(4000, seed=1, balance=balance)
    for name, shares in balance.items():
        wanted = shares if isinstance(shares, dict) else {True: shares, False: 1 - shares}
        found = rows[name].value_counts(normalize=True)
        assert all(abs(found.get(value, 0) - share) < 0.02 for value, share in wanted.items())
    if "is_farm" in balance:
        farm = rows.code[rows.is_farm]
        assert abs((farm == "11").mean() - 2 / 3) < 0.06


def test_bands_that_are_no_neighbours():
    """Whole numbers may be in several ranges, numbers without steps in one."""
    table = pd.DataFrame({"hours": np.arange(600) % 60, "band": "a"})
    rule = sp.Derived("band", "hours", cuts=[20, 40], labels=["a", "b", "c"])
    columns = {"hours": sp.Integer(0, 60), "band": sp.Category(["a", "b", "c"])}
    model = sp.ForestSynthesizer("5").fit(table, sp.Schema(columns, rules=[rule]))
    rows = model.sample(300, seed=1, where={"band": ["a", "c"]})
    assert set(rows.band) == {"a", "c"}
    assert not rows.hours.between(20, 39).any()
    model = sp.ForestSynthesizer("5").fit(table, sp.Schema({**columns, "hours": sp.Real(0, 60)}, rules=[rule]))
    with pytest.raises(ParameterError, match=r"where: \['a', 'c'\] of column 'band' is no single range"):
        model.sample(5, where={"band": ["a", "c"]})


def test_conditions_that_cannot_be_translated(workers, trips):
    with pytest.raises(ParameterError, match="where: column 'code' is never '21'"):
        workers.sample(5, where={"sector": "farm", "code": "21"})
    model = sp.ForestSynthesizer("1").fit(trips, NEARLY)
    with pytest.raises(ParameterError, match="where: column 'total' is a sum of 'fare', 'tip'; state the condition on"):
        model.sample(5, where={"total": (0, 5)})
    with pytest.raises(ParameterError, match="target='band' is computed from others; choose 'hours'"):
        sp.ForestSynthesizer("1", target="band").fit(trips, NEARLY)


def test_check_tells_of_computed_columns(trips):
    """Rows that differ are counted; what a fit would not read is no fault."""
    found = sp.check(trips.assign(band="odd"), EXACT)
    assert found.is_clean
    assert found.method == "forest" or found.method == "tree"
    told = {warning.column: warning.n_rows for warning in found.warnings}
    assert told["total"] == int((gaps(trips) != 0).sum())
    assert any("Computed from other columns, at no cost: 'band', 'total'" in note for note in found.notes)


def test_lists_and_bounds_that_are_found_go_with_rules():
    """A rule may say when a category is null whose list is found privately, but name none of its values."""
    rng = np.random.default_rng(0)
    n = 20_000
    flag = rng.random(n) < 0.5
    table = pd.DataFrame(
        {
            "skip": "s",
            "code": np.where(flag, None, rng.choice(["a", "b", "c"], n)),
            "flag": flag,
            "x": rng.integers(0, 400, n),
            "y": rng.integers(0, 9, n),
            "sum": 0,
        }
    )
    columns = {
        "skip": sp.Ignore(),
        "code": sp.Category(values="private", other="other", nullable=True),
        "flag": sp.Boolean(),
        "x": sp.Integer(bounds="private"),
        "y": sp.Integer(0, 9),
        "sum": sp.Integer(0, 10),
    }
    rules = [sp.Implies({"flag": True}, {"code": None}), sp.Sum("sum", ["x", "y"])]
    model = sp.ForestSynthesizer("3", "1e-6").fit(table, sp.Schema(columns, rules=rules))
    rows = model.sample(5000, seed=0)
    assert list(rows) == ["code", "flag", "x", "y", "sum"]
    assert not (rows.flag & rows.code.notna()).any()
    assert (rows["sum"] == rows.x + rows.y).all()
    assert {"a", "b", "c"} <= set(rows.code.dropna())
    for rule in (sp.Implies({"flag": True}, {"code": "a"}), sp.Derived("y", "code", by={"a": 1}, default=2, null=3)):
        with pytest.raises(SchemaError, match="'code' has no list of values yet"):
            sp.Schema(columns, rules=[rule])


def test_nothing_to_learn():
    schema = sp.Schema({"a": sp.Identifier(), "b": sp.Integer(0, 9)})
    assert list(schema._modelled) == ["b"]
    with pytest.raises(SchemaError, match="nothing to learn"):
        _ = sp.Schema({"a": sp.Identifier()})._modelled
