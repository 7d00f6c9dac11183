"""Rows with the column types of a given table: types are taken, values never."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.columns.reading import ColumnType
from spinney.errors import ParameterError
from spinney.release.frames import to_arrow
from spinney.release.release import Release
from support.error_chains import chain, told
from support.in_one_test import in_one_test

N = 400
SCHEMA = sp.Schema(
    {
        "id": sp.Identifier(prefix="C-"),
        "number": sp.Identifier(),
        "age": sp.Integer(0, 99),
        "income": sp.Real(0, 1000, nullable=True),
        "town": sp.Category(["Bonn", "Kiel", "Ulm"]),
        "code": sp.Category([3, 1, 2], nullable=True),
        "member": sp.Boolean(),
        "born": sp.Date("1900-01-01", "2026-12-31"),
        "seen": sp.Datetime("2020-01-01", "2026-12-31", nullable=True),
        "logged": sp.Datetime("2020-01-01", "2026-12-31", timezone="Europe/Paris"),
    }
)
# Of every column several Arrow types that hold it.
ARROW = {
    "id": [pa.string(), pa.large_string(), pa.string_view()],
    "number": [pa.int64(), pa.uint16(), pa.string(), pa.float32()],
    "age": [pa.int8(), pa.uint8(), pa.float32(), pa.float16(), pa.decimal128(2, 0), pa.string(), pa.int64()],
    "income": [pa.float32(), pa.float16(), pa.decimal128(7, 2), pa.decimal32(6, 2), pa.string(), pa.float64()],
    "town": [pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_string(), True), pa.string()],
    "code": [pa.dictionary(pa.int8(), pa.int16()), pa.dictionary(pa.uint8(), pa.string()), pa.int8(), pa.string()],
    "member": [pa.int8(), pa.float32(), pa.string(), pa.dictionary(pa.int8(), pa.bool_()), pa.bool_()],
    "born": [pa.date64(), pa.timestamp("s"), pa.timestamp("ns"), pa.string(), pa.date32()],
    "seen": [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("ns"), pa.string(), pa.timestamp("us")],
    "logged": [pa.timestamp("s", "UTC"), pa.timestamp("ns", "Europe/Paris"), pa.string()],
}
PANDAS = {
    "id": ["object", "str", "string[pyarrow]", "string[python]"],
    "number": ["int16", "Int64", "uint32[pyarrow]", "object"],
    "age": ["int8", "Int8", "uint8", "float32", "int8[pyarrow]", "object", "string"],
    "income": ["float32", "Float32", "float64", "double[pyarrow]", pd.ArrowDtype(pa.decimal128(9, 3)), "object"],
    "town": ["category", pd.CategoricalDtype(["Ulm", "secret"], ordered=True), "object", "string[pyarrow]"],
    "code": [pd.CategoricalDtype([1, 9]), pd.CategoricalDtype(["1", "9"]), "Int8", "float64", "object"],
    "member": ["bool", "boolean", "int8", "bool[pyarrow]", "object", "category"],
    "born": ["datetime64[ns]", "datetime64[s]", pd.ArrowDtype(pa.date32()), "object", "string"],
    "seen": ["datetime64[ns]", "datetime64[ms]", "datetime64[us]", pd.ArrowDtype(pa.timestamp("s")), "object"],
    "logged": [pd.DatetimeTZDtype("ns", "UTC"), pd.DatetimeTZDtype("s", "Europe/Paris"), "object"],
}
POLARS = {
    "id": [pl.String],
    "number": [pl.UInt16, pl.Int128, pl.String],
    "age": [pl.Int8, pl.UInt8, pl.Float32, pl.Decimal(5, 1), pl.String, pl.Int128],
    "income": [pl.Float32, pl.Float64, pl.Decimal(9, 2), pl.String],
    "town": [pl.Enum(["Ulm", "secret"]), pl.Categorical(), pl.String],
    "code": [pl.Int8, pl.Enum(["1", "secret"]), pl.String, pl.Float32],
    "member": [pl.Boolean, pl.Int8, pl.String],
    "born": [pl.Date, pl.Datetime("ms"), pl.String],
    "seen": [pl.Datetime("ms"), pl.Datetime("ns"), pl.String],
    "logged": [pl.Datetime("ms", "UTC"), pl.Datetime("us", "Europe/Paris"), pl.String],
}


def choices(table):
    """Types for all columns at once, so often that each of a column's types has its turn."""
    turns = range(max(map(len, table.values())))
    return [{name: kinds[turn % len(kinds)] for name, kinds in table.items()} for turn in turns]


@pytest.fixture(scope="module")
def private():
    """A table that holds values of which the schema knows nothing, where it is not read."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "id": [f"person {i}" for i in range(N)],
            "number": np.arange(N) + 10**6,
            "age": rng.integers(0, 100, N),
            "income": np.where(rng.random(N) < 0.2, np.nan, rng.gamma(2, 100, N)),
            "town": rng.choice(["Bonn", "Kiel", "Ulm"], N),
            "code": pd.array(rng.choice([1, 2, 3, None], N), dtype="Int64"),
            "member": rng.random(N) < 0.5,
            "born": pd.Timestamp("1980-01-01") + pd.to_timedelta(rng.integers(0, 9000, N), "D"),
            "seen": pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 10**14, N), "us"),
            "logged": pd.Timestamp("2021-01-01", tz="Europe/Paris") + pd.to_timedelta(rng.integers(0, 10**14, N), "us"),
        }
    )


@pytest.fixture(scope="module")
def model(private):
    return sp.ForestSynthesizer(3).fit(private, SCHEMA, entropy=sp.UnsafeSeededEntropy(1))


@pytest.fixture(scope="module")
def plain(model):
    """The same rows in the types that Spinney chooses."""
    return model.sample(200, seed=4, frame="pyarrow")


@pytest.mark.parametrize("types", choices(ARROW), ids=lambda types: str(types["age"]))
def test_arrow_types_come_back(model, plain, types):
    """The rows have the schema that was given, and the values are those of the same draw, as far as types hold them."""
    wanted = pa.schema(list(types.items()))
    rows = model.sample(200, seed=4, like=wanted)
    assert rows.schema == wanted
    rows.validate(full=True)
    assert model.sample(200, seed=4, like=wanted.empty_table()).equals(rows)
    assert model.sample(0, like=wanted).schema == wanted
    for name in SCHEMA:
        assert rows[name].null_count == plain[name].null_count
    ages = rows["age"].cast(pa.float64()) if rows["age"].type != pa.string() else rows["age"].cast(pa.int64())
    assert ages.to_pylist() == plain["age"].to_pylist()
    assert [str(town) for town in rows["town"].to_pylist()] == plain["town"].to_pylist()


@pytest.mark.parametrize("types", choices(PANDAS), ids=lambda types: str(types["age"]))
def test_pandas_types_come_back(model, plain, types):
    """Every dtype is the one of the table that was given, but for categories, which are those of the schema."""
    like = pd.DataFrame({name: pd.Series([], dtype=dtype) for name, dtype in types.items()})
    rows = model.sample(200, seed=4, like=like)
    assert model.sample(200, seed=4, like=like.dtypes).equals(rows)
    for name, dtype in like.dtypes.items():
        found = rows[name].dtype
        if isinstance(dtype, pd.CategoricalDtype):
            listed = [False, True] if name == "member" else list(SCHEMA[name].values)
            assert [str(value) for value in found.categories] == [str(value) for value in listed]
            assert found.ordered == dtype.ordered
        else:
            assert found == dtype
        assert rows[name].isna().sum() == plain[name].null_count
        assert model.sample(0, like=like)[name].dtype == found
    assert rows["town"].tolist() == plain["town"].to_pylist()
    assert pd.to_numeric(rows["age"]).tolist() == plain["age"].to_pylist()


@pytest.mark.parametrize("types", choices(POLARS), ids=lambda types: str(types["age"]))
def test_polars_types_come_back(model, plain, types):
    """The same for polars; a Categorical becomes an Enum of the schema's values."""
    wanted = pl.Schema(types)
    rows = model.sample(200, seed=4, like=wanted)
    for like in (pl.DataFrame(schema=wanted), pl.LazyFrame(schema=wanted)):
        assert model.sample(200, seed=4, like=like).equals(rows)
    for name, dtype in wanted.items():
        if dtype.base_type() in (pl.Enum, pl.Categorical):
            assert rows[name].dtype == pl.Enum([str(value) for value in SCHEMA[name].values])
        else:
            assert rows[name].dtype == dtype
        assert rows[name].null_count() == plain[name].null_count
    assert rows["town"].to_list() == plain["town"].to_pylist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint16", ">i4"])
def test_arrays_come_back_in_their_type(dtype):
    """An array, or a numpy dtype, gives its type to all columns."""
    schema = sp.Schema({"a": sp.Integer(0, 99), "b": sp.Boolean()})
    table = np.column_stack([np.arange(100), np.arange(100) % 2])
    model = sp.KDTreeSynthesizer(3).fit(table, schema)
    like = table.astype(dtype)
    rows = model.sample(50, seed=1, like=like)
    assert rows.dtype == np.dtype(dtype).newbyteorder("=")
    assert rows.shape == (50, 2)
    assert np.array_equal(rows, model.sample(50, seed=1))
    assert np.array_equal(model.sample(50, seed=1, like=like.dtype), rows)


def test_no_category_of_the_private_table_comes_out(model):
    """Categories, values and metadata of the table that is given appear nowhere in the rows."""
    secret = "a private town"
    categorical = pd.CategoricalDtype(["Kiel", secret])
    frames = [
        pd.DataFrame({name: pd.Series([], dtype=types[0]) for name, types in PANDAS.items()}).assign(
            town=pd.Series([], dtype=categorical)
        ),
        pl.DataFrame(schema={name: types[0] for name, types in POLARS.items()} | {"town": pl.Enum(["Kiel", secret])}),
        pl.DataFrame(schema={name: types[0] for name, types in POLARS.items()}).with_columns(
            town=pl.Series(dtype=pl.Categorical)
        ),
        pa.schema([(name, types[0]) for name, types in ARROW.items()], metadata={"note": secret}),
    ]
    pl.Series([secret]).cast(pl.Categorical)  # now in the list that Categoricals share
    for like in frames:
        rows = model.sample(50, like=like)
        if isinstance(rows, pd.DataFrame):
            assert list(rows["town"].cat.categories) == list(SCHEMA["town"].values)
        elif isinstance(rows, pl.DataFrame):
            assert rows["town"].dtype.categories.to_list() == list(SCHEMA["town"].values)
        else:
            assert secret not in str(rows.schema)
            assert rows["town"].chunk(0).dictionary.to_pylist() == list(SCHEMA["town"].values)


class Guarded(pd.DataFrame):
    """A table whose values cannot be looked at."""

    def __getitem__(self, key):
        raise AssertionError("a value was looked at")

    iloc = loc = values = iterrows = items = to_numpy = property(__getitem__)


def test_only_types_are_looked_at(model, private):
    """A table whose values cannot be read gives its types all the same."""
    rows = model.sample(20, like=Guarded(private))
    assert type(rows) is pd.DataFrame
    assert list(rows.dtypes) == list(private.dtypes)


def test_the_private_table_itself_gives_its_types(model, private):
    """`like=` is the table that was fitted; with `where` and `balance` too."""
    narrow = private.assign(age=private["age"].astype("int8"), town=private["town"].astype("category"))
    rows = model.sample(50, like=narrow, where={"town": "Ulm", "age": (10, 20)}, balance={"member": 0.5})
    assert rows["age"].dtype == np.int8
    assert rows["age"].between(10, 20).all()
    assert list(rows["town"].cat.categories) == ["Bonn", "Kiel", "Ulm"]
    assert set(rows["town"]) == {"Ulm"}
    assert list(rows.columns) == list(SCHEMA)


def test_python_objects_are_those_of_the_column(model):
    """pandas' object columns hold Python's own values, None for null."""
    rows = model.sample(200, seed=4, like=pd.DataFrame({name: pd.Series([], dtype=object) for name in SCHEMA}))
    kinds = {name: {type(value) for value in rows[name]} for name in rows}
    assert kinds["born"] == {date}
    assert kinds["seen"] <= {datetime, type(None)}
    assert kinds["age"] == {int}
    assert kinds["income"] == {float, type(None)}
    assert kinds["member"] == {bool}


def test_strings_can_be_read_back(model):
    """Columns that come out as strings are strings that Spinney reads under the same schema."""
    rows = model.sample(200, seed=4, like=pa.schema([(name, pa.string()) for name in SCHEMA]))
    again = sp.ForestSynthesizer(3).fit(rows, SCHEMA)
    assert again.card_.n_rows == 200


def test_times_are_rounded_down_also_before_1970():
    """A coarser unit never moves a datetime forward."""
    schema = sp.Schema({"t": sp.Datetime("1950-01-01", "1960-01-01")})
    table = pd.DataFrame({"t": pd.date_range("1950-01-01", "1959-12-31", 500).as_unit("us")})
    model = sp.KDTreeSynthesizer(3).fit(table, schema)
    fine = model.sample(100, seed=1, like=pa.schema([("t", pa.timestamp("us"))]))["t"].to_numpy()
    coarse = model.sample(100, seed=1, like=pa.schema([("t", pa.timestamp("s"))]))["t"].to_numpy()
    assert (fine != coarse).any()
    assert ((fine - coarse >= np.timedelta64(0)) & (fine - coarse < np.timedelta64(1, "s"))).all()


@in_one_test(
    ("name", "kind", "message"),
    [
        ("age", pa.list_(pa.int8()), "nested, and the rows will have whole numbers there; give it an integer"),
        ("age", pa.date32(), "the rows will have whole numbers there"),
        ("age", pa.dictionary(pa.int8(), pa.int8()), "the schema lists no categories of it; give it a type without"),
        ("age", pa.bool_(), "the rows will have whole numbers there"),
        ("age", pa.decimal128(3, 2), r"holds -9\.\.9, and the schema allows 0\.\.99; give it more digits"),
        ("number", pa.int8(), r"int8, which holds -128\.\.127, and the schema allows 1\.\.200; give it a wider"),
        ("income", pa.int64(), "the rows will have real numbers there; give it a float or string type"),
        ("income", pa.decimal128(5, 2), r"holds -999\.99\.\.999\.99, and the schema allows 0\.0\.\.1000\.0"),
        ("town", pa.int8(), "the rows will have strings there"),
        ("town", pa.dictionary(pa.int8(), pa.int8()), "the rows will have strings there"),
        ("born", pa.timestamp("us", "UTC"), "the rows will have dates there; .* without a time zone"),
        ("seen", pa.date32(), "the rows will have datetimes without a time zone there"),
        ("seen", pa.timestamp("us", "UTC"), "datetimes without a time zone there; give it a datetime type without one"),
        ("logged", pa.timestamp("us"), "datetimes with a time zone there; give it a datetime type with one"),
        ("born", pa.time32("s"), "the rows will have dates there"),
        ("member", pa.struct([("SECRET", pa.int8())]), "nested, and the rows will have booleans there"),
    ],
    ids=str,
)
def test_types_that_do_not_fit_are_refused(model, plain, name, kind, message):
    """The column, the type and the remedy are named, before a row is drawn; what a type lists is not."""
    like = plain.schema.set(plain.schema.get_field_index(name), pa.field(name, kind))
    with pytest.raises(ParameterError, match=f"like gives column '{name}' the type .*{message}") as caught:
        model.sample(200, like=like)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        (sp.Integer(0, 200), "int8", r"holds -128\.\.127, and the schema allows 0\.\.200; give it a wider integer"),
        (sp.Integer(-1, 200), "uint8", r"holds 0\.\.255, and the schema allows -1\.\.200"),
        (sp.Integer(0, 2**25), "float32", r"holds exactly -16777216\.\.16777216"),
        (sp.Real(0, 1e39), "float32", r"holds .*e\+38, and the schema allows 0\.0\.\.1e\+39; give it a wider float"),
        (sp.Integer(0, 9, nullable=True), "int8", "holds no nulls, and by the schema there may be nulls; .* 'Int64'"),
        (sp.Boolean(nullable=True), "bool", "holds no nulls, .*; give it a type that does, such as 'boolean'"),
        (sp.Date("1500-01-01", "2000-01-01"), "datetime64[ns]", "begins in 1677 and ends in 2262"),
        (sp.Integer(0, 9), "timedelta64[s]", "the rows will have whole numbers there"),
        (sp.Integer(0, 9), pd.PeriodDtype("D"), "unknown, and the rows will have whole numbers there"),
    ],
    ids=str,
)
def test_bounds_decide_whether_a_type_fits(release_of, column, kind, message):
    """What the schema allows counts, not what a draw happens to hold; the release cannot even be drawn from."""
    release = release_of(sp.Schema({"x": column}), {})
    with pytest.raises(ParameterError, match=f"like gives column 'x' the type .*{message}"):
        release.sample(1, like=pd.Series({"x": pd.Series([], dtype=kind).dtype}, dtype=object))


def test_more_values_than_indices():
    """A dictionary whose indices are too small for the list is refused."""
    schema = sp.Schema({"x": sp.Category(list(range(300)))})
    model = sp.ForestSynthesizer(1).fit(pa.table({"x": list(range(300))}), schema)
    with pytest.raises(ParameterError, match="numbers end at 127, and the schema lists 300 values"):
        model.sample(5, like=pa.schema([("x", pa.dictionary(pa.int8(), pa.int64()))]))


def test_a_field_without_nulls_is_kept_or_refused(model, plain):
    """Arrow fields say whether nulls are allowed: of a column without nulls it is kept."""
    strict = pa.schema([pa.field(f.name, f.type, nullable=SCHEMA[f.name].nullable) for f in plain.schema])
    assert model.sample(10, like=strict).schema == strict
    wrong = strict.set(strict.get_field_index("income"), pa.field("income", pa.float64(), nullable=False))
    with pytest.raises(ParameterError, match=r"column 'income' .* holds no nulls, .*; make the field nullable"):
        model.sample(10, like=wrong)


def test_whole_steps_of_reals_fit_into_integers(release_of):
    """A real that comes in whole steps may become an integer; others may not."""
    like = pa.schema([("x", pa.int16())])
    rows = release_of(sp.Schema({"x": sp.Real(0, 100, multiple_of=5)}), {"0": 10}).sample(50, like=like)
    assert all(value % 5 == 0 for value in rows["x"].to_pylist())
    with pytest.raises(ParameterError, match="real numbers"):
        release_of(sp.Schema({"x": sp.Real(0, 100, multiple_of=0.5)}), {"0": 10}).sample(50, like=like)


def test_the_kind_of_table_follows_like(model, plain, private):
    """`like` decides the kind of table, and `frame` may only say the same."""
    assert type(model.sample(5, like=plain)) is pa.Table
    assert type(model.sample(5, like=plain, frame="pyarrow")) is pa.Table
    with pytest.raises(ParameterError, match="frame='polars' contradicts like, whose types are those of pandas"):
        model.sample(5, like=private, frame="polars")
    with pytest.raises(ParameterError, match="frame='excel' is not one of"):
        model.sample(5, like=private, frame="excel")


def test_columns_must_be_there(model, private):
    """A missing column is named; columns that the schema lacks are left out."""
    assert "other" not in model.sample(5, like=private.assign(other=1)).columns
    with pytest.raises(ParameterError, match=r"like has no column 'age', .*; did you mean 'Age'"):
        model.sample(5, like=private.rename(columns={"age": "Age"}))
    twice = pd.concat([private, private], axis=1)
    with pytest.raises(ParameterError, match="like: the table has two columns of the same name"):
        model.sample(5, like=twice)


@pytest.mark.parametrize("like", [{"age": "int8"}, "pandas", 7, pd.Series([1, 2]), pd.Series(["a"], dtype=object)])
def test_other_things_have_no_types(model, like):
    """What is no table is refused by its kind, without a value."""
    with pytest.raises(ParameterError, match=r"like is a \w+, which has no column types; pass a pandas, polars or"):
        model.sample(5, like=like)


@pytest.mark.parametrize(
    ("like", "message"),
    [
        (np.zeros((3, 3)), r"of shape \(3, 3\), and the rows will have 2 columns"),
        (np.zeros((3, 2), dtype="M8[s]"), "not of numbers"),
        (np.dtype("O"), "not of numbers"),
        (np.dtype("longdouble"), "up to 64 bits"),
    ],
    ids=str,
)
def test_arrays_that_say_too_little(square, like, message):
    """An array has as many columns as the schema, of numbers."""
    with pytest.raises(ParameterError, match=f"like is an array .*{message}"):
        sp.GridSynthesizer(1).fit(*square).sample(5, like=like)


@pytest.mark.parametrize("kind", [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.string()])
def test_times_of_day_are_cast_too(kind):
    """Down to the unit of the type; nulls stay."""
    table = pa.table({"t": pa.array([86_399_999_999, None, 1], pa.time64("us"))})
    cast = to_arrow(table, {"t": ColumnType(kind, kind)}, {"t": None})["t"]
    assert cast.type == kind
    assert cast.null_count == 1
    assert str(cast[0]).startswith("23:59:59")
    assert str(cast[2]).startswith("00:00:00")


def test_a_lazy_frame_that_cannot_be_planned_is_refused_without_its_rows(model, tmp_path):
    """polars quotes the line that it stumbled over; the error that leaves names the class of polars' error alone."""
    path = tmp_path / "t.ndjson"
    path.write_text('{"a": "Kowalski" 1}\n')
    with pytest.raises(ParameterError, match=r"like: .* polars raised \w+") as caught:
        model.sample(5, like=pl.scan_ndjson(path))
    assert "Kowalski" not in told(caught.value)
    assert chain(caught.value) == [caught.value]


@pytest.mark.parametrize(
    ("name", "kind", "named"),
    [
        ("age", pa.decimal128(5, -2), r"decimal128\(5, -2\), which holds multiples of 100"),
        ("number", pa.decimal128(5, -2), r"decimal128\(5, -2\), which holds multiples of 100"),
        ("town", pa.dictionary(pa.int8(), pa.string_view()), "categorical of string_view, to which pyarrow cannot"),
        ("code", pa.dictionary(pa.int8(), pa.float16()), "categorical of halffloat, to which pyarrow cannot"),
        ("town", pa.dictionary(pa.int8(), pa.dictionary(pa.int8(), pa.string())), "categorical of categorical of"),
    ],
    ids=str,
)
def test_types_that_arrow_cannot_cast_to_are_refused_before_drawing(model, monkeypatch, name, kind, named):
    """Which casts a library lacks is found out by casting no rows; the column and its type are named."""
    monkeypatch.setattr(Release, "_require_contents", lambda _: pytest.fail("rows were drawn"))
    like = pa.schema([(other, kind if other == name else ARROW[other][0]) for other in SCHEMA])
    with pytest.raises(ParameterError, match=f"like gives column '{name}' the type {named}") as caught:
        model.sample(5, like=like)
    assert chain(caught.value) == [caught.value]


def test_a_polars_decimal_longer_than_polars_takes_has_no_type(model):
    """A schema may state it, and no column can have it."""
    like = pl.from_arrow(pa.schema([(name, pa.decimal256(76, 10)) for name in SCHEMA]).empty_table())
    with pytest.raises(ParameterError, match="like gives column 'id' the type unknown"):
        model.sample(5, like=like)
