"""`spinney fit` spends epsilon once and leaves a release; its options are the library's parameters."""

from __future__ import annotations

import inspect
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.cli.fit import fit, given_parameters
from spinney.cli.tables import read_table
from spinney.errors import ParameterError
from spinney.synthesizers.method import AUTOMATIC, METHODS, make
from spinney.synthesizers.partition import PAPER_NAMES
from support.command_line import SCHEMA, files_in, people, spinney, write_people


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder / "people.spinney"


def test_a_csv_becomes_a_release(tmp_path: Path, out: Path) -> None:
    table, schema = write_people(tmp_path)
    run = spinney("fit", table, "--schema", schema, "--epsilon", "1", "--method", "tree", "--out", out)
    assert run.status == 0
    assert "1-differential privacy" in run.out
    assert "replace-one" in run.out
    assert "500 (public, under replace-one)" in run.out
    assert run.err == ""
    assert sp.load(out).card.epsilon == 1
    assert files_in(out.parent) == {"people.spinney"}


def test_parquet_and_standard_input_give_the_same_card(tmp_path: Path, out: Path) -> None:
    """Which format rows come in does not show in the card, noise aside."""
    table, schema = write_people(tmp_path)
    pq.write_table(pacsv.read_csv(table), tmp_path / "people.parquet")
    cards = []
    for source, stdin in ((table, None), (tmp_path / "people.parquet", None), ("-", people())):
        run = spinney(
            "fit", source, "--schema", schema, "--epsilon", "1/3", "--out", out, "--force", "--json", stdin=stdin
        )
        assert run.status == 0
        cards.append({name: value for name, value in run.json.items() if name != "released"})
    assert cards[0] == cards[1] == cards[2]
    assert cards[0]["epsilon"] == "1/3"


def test_epsilon_is_read_exactly(tmp_path: Path, out: Path) -> None:
    table, schema = write_people(tmp_path)
    run = spinney("fit", table, "--schema", schema, "--epsilon", "0.7", "--out", out, "--json")
    assert run.json["epsilon"] == "7/10"


def test_every_parameter_of_the_synthesizers_is_an_option() -> None:
    words = {symbol: word for word, symbol in PAPER_NAMES.items()}
    offered = {parameter.name for parameter in fit.params}
    assert {words.get(name, name) for name in inspect.signature(sp.PaperTreeSynthesizer).parameters} <= offered
    for synthesizer in (sp.KDTreeSynthesizer, sp.GridSynthesizer, sp.ForestSynthesizer):
        parameters = set(inspect.signature(synthesizer).parameters)
        assert parameters <= offered


@pytest.mark.parametrize(
    ("options", "parameter", "value"),
    [
        (["--unit", "add-remove"], "unit", "add-remove"),
        (["--rule", "privtree", "--max-depth", "5"], "max_depth", 5),
        (["--max-depth", "5"], "max_depth", 5),
        (["--rule", "paper", "--fixed-depth", "2"], "h", 2),
        (["--rule", "paper", "--max-depth", "9"], "h_prime", 9),
        (["--rule", "paper", "--largest-edge", "64"], "s1", "64"),
        (["--rule", "paper", "--smallest-edge", "8"], "s2", "8"),
        (["--rule", "paper", "--cutoff", "12.5"], "tau", "12.5"),
        (["--rule", "paper", "--threshold", "3"], "t", "3"),
        (["--threshold", "3"], "threshold", "3"),
        (["--tree-share", "1/4"], "tree_share", "1/4"),
        (["--placement", "centre"], "placement", "centre"),
        (["--bounds-share", "0.2"], "bounds_share", "0.2"),
        (["--unit", "add-remove", "--assumed-rows", "77"], "assumed_rows", 77),
        (["--target", "colour"], "target", "colour"),
        (["--delta", "1/1000"], "delta", "1/1000"),
        (["--quality", "high"], "quality", "high"),
        (["--method", "forest", "--bounds-share", "0.2"], "bounds_share", "0.2"),
        (["--method", "grid", "--bins", "4"], "bins", "4"),
        (["--method", "grid", "--bins", "x=4", "--bins", "age=2", "--bins", "colour=3"], "bins", None),
        (["--method", "grid", "--bin-width", "30"], "bin_width", "30"),
    ],
)
def test_options_reach_the_synthesizer(
    tmp_path: Path, out: Path, options: list[str], parameter: str, value: Any
) -> None:
    table, schema = write_people(tmp_path)
    run = spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", out, "--json", *options)
    assert run.status == 0, run.err
    expected = {"x": "4", "age": "2", "colour": "3"} if value is None else value
    assert run.json["parameters"][parameter] == expected


def test_cube_axes_reach_the_synthesizer(tmp_path: Path, out: Path) -> None:
    """A cube needs real columns; the option is refused by the library where there are others."""
    cube = ("--rule", "paper", "--axes", "cube")
    table, schema = write_people(tmp_path, table="x\n0.5\n", schema="[columns.x]\ntype='real'\nlow=0\nhigh=1\n")
    run = spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", out, *cube, "--json")
    assert run.json["parameters"]["axes"] == "cube"
    table, schema = write_people(tmp_path)
    assert spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", tmp_path / "o", *cube).status == 2


def test_options_not_given_keep_the_library_default() -> None:
    for method, synthesizer in METHODS.items():
        assert make(method, "1", given_parameters({})).get_params() == synthesizer("1").get_params()


def test_the_methods_are_those_of_the_library() -> None:
    (option,) = (parameter for parameter in fit.params if parameter.name == "method")
    assert list(option.type.choices) == [AUTOMATIC, *METHODS]


def test_a_column_name_may_hold_an_equals_sign() -> None:
    made = make("grid", "1", given_parameters({"bins": ("a=b=3", "c=4")}))
    assert made.get_params()["bins"] == {"a=b": "3", "c": "4"}


def test_mixed_bins_are_refused() -> None:
    with pytest.raises(ParameterError, match="NAME=NUMBER"):
        given_parameters({"bins": ("3", "c=4")})


# ------------------------------------------------------------------------------------------- which method it is

NUMBERS = SCHEMA.split("[columns.colour]", maxsplit=1)[0]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ([], "method forest: column 'colour' is a category"),
        (["--target", "age"], "method forest: there is a target, 'age'"),
        (["--rule", "paper"], "method tree: --rule is for it"),
        (["--method", "tree"], "method tree: it was requested"),
        (["--method", "grid"], "method grid: it was requested"),
    ],
)
def test_the_method_is_told_with_its_reason(tmp_path: Path, out: Path, options: list[str], line: str) -> None:
    table, schema = write_people(tmp_path)
    run = spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", out, *options)
    assert run.status == 0, run.err
    assert run.out.splitlines()[0] == line
    method = sp.PaperTreeSynthesizer if "paper" in options else METHODS[line.split()[1].rstrip(":")]
    assert sp.load(out).card.synthesizer == method.__name__


def test_numbers_get_a_tree(tmp_path: Path, out: Path) -> None:
    table, schema = write_people(tmp_path, table="x,age\n0.5,30\n0.25,40\n", schema=NUMBERS)
    run = spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", out)
    assert run.out.startswith("method tree: 2 columns")
    run = spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", out, "--quality", "fast", "--force")
    assert run.out.startswith("method forest: --quality is for it")


def test_a_forest_promises_epsilon_and_delta(tmp_path: Path, out: Path) -> None:
    table, schema = write_people(tmp_path)
    common = ["fit", table, "--schema", schema, "--epsilon", "1", "--out", out, "--force"]
    assert "(1, 1e-06)-differential privacy" in spinney(*common).out
    assert "1-differential privacy (pure)" in spinney(*common, "--delta", "0").out


def test_a_pure_ledger_says_how_a_forest_can_be_had(tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the table is read, both remedies are named; each of them works."""
    table, schema = write_people(tmp_path)
    common = ["fit", table, "--schema", schema, "--epsilon", "1", "--out", out, "--force", "--ledger"]
    pure, with_delta = tmp_path / "pure.ledger", tmp_path / "delta.ledger"
    spinney("ledger", pure, "--limit", "2")
    spinney("ledger", with_delta, "--limit", "2")
    spinney("ledger", "raise", with_delta, "--delta", "1e-6", "--why", "forests")
    with monkeypatch.context() as patched:
        patched.setattr("spinney.synthesizers.base.open_source", None)
        run = spinney(*common, pure)
    assert run.status == 1
    assert "--delta 0" in run.err
    assert "spinney ledger raise LEDGER --delta NUMBER --why TEXT" in run.err
    assert sp.Ledger.open(pure).spent == 0
    assert not out.exists()
    assert spinney(*common, pure, "--delta", "0").status == 0
    assert spinney(*common, with_delta).status == 0
    assert sp.Ledger.open(with_delta).spent_delta == Fraction(1, 10**6)
    assert "does not fit" in spinney(*common, with_delta).err, "its delta is spent"


# ----------------------------------------------------------------------------------------- what is not private


OPEN_SCHEMA = SCHEMA.replace("low = 0.0\nhigh = 1.0\n", "")


def test_missing_bounds_are_refused_without_the_flag(tmp_path: Path, out: Path) -> None:
    table, schema = write_people(tmp_path, schema=OPEN_SCHEMA)
    run = spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", out)
    assert run.status == 2
    assert "column 'x'" in run.err
    assert not out.exists()


def test_bounds_from_data_brand_everything(tmp_path: Path, out: Path) -> None:
    """The warning is on standard error of every verb that meets the release, and in the card."""
    table, schema = write_people(tmp_path, schema=OPEN_SCHEMA, table="x,age,colour\n0.25,30,red\n0.75,40,blue\n")
    flag = "--bounds-from-data-not-private"
    run = spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", out, flag, "--threshold", "0")
    assert run.status == 0
    assert "NOT PRIVATE" in run.err
    assert "1-differential privacy" not in run.out
    card = sp.load(out).card
    assert not card.is_private
    assert card.schema["x"].low == 0.25
    assert card.schema["age"].low == 0, "stated bounds stay"
    assert "NOT PRIVATE" in spinney("card", out).out
    assert spinney("card", out, "--json").json["is_private"] is False
    assert "NOT PRIVATE" in spinney("sample", out, "--rows", 0, "--out", "-").err


def test_the_flag_alone_brands_nothing(tmp_path: Path, out: Path) -> None:
    """Where all bounds are stated, nothing is read off the data and the guarantee holds."""
    table, schema = write_people(tmp_path)
    flag = "--bounds-from-data-not-private"
    run = spinney("fit", table, "--schema", schema, "--epsilon", "1", "--out", out, flag)
    assert run.status == 0
    assert run.err == ""
    assert sp.load(out).card.is_private


@pytest.mark.parametrize(
    "schema", ["not toml [", "", "[columns]\nx = 3\n", "[columns.x]\ntype = 'real'\nlow = 0\n", "[columns.x]\n"]
)
def test_the_flag_keeps_schema_errors(tmp_path: Path, out: Path, schema: str) -> None:
    table, path = write_people(tmp_path, schema=schema)
    for flags in ([], ["--bounds-from-data-not-private"]):
        run = spinney("fit", table, "--schema", path, "--epsilon", "1", "--out", out, *flags)
        assert run.status == 2
    assert not out.exists()


# ------------------------------------------------------------------------------------------------- reading CSV


def read(tmp_path: Path, text: str, **columns: Any) -> pa.Table:
    path = tmp_path / "t.csv"
    path.write_text(text)
    return read_table(str(path), sp.Schema(columns))


def test_text_that_looks_like_a_number_stays_text(tmp_path: Path) -> None:
    table = read(tmp_path, "id\n007\n7\n", id=sp.Category(["007", "7"]))
    assert table["id"].to_pylist() == ["007", "7"]


def test_whole_numbers_may_be_spelt_as_decimals(tmp_path: Path) -> None:
    """Other tools write 3.0 for 3 where a column has gaps."""
    table = read(tmp_path, "n,k\n3.0,1\n,2\n", n=sp.Integer(0, 9, nullable=True), k=sp.Integer(0, 9))
    assert table["n"].to_pylist() == [3.0, None]
    assert table["k"].type == pa.int64()


def test_large_integers_are_not_rounded(tmp_path: Path) -> None:
    table = read(tmp_path, "n\n9007199254740993\n", n=sp.Integer(0, 2**60))
    assert table["n"].to_pylist() == [2**53 + 1]


def test_empty_text_is_null_only_where_nulls_are_stated(tmp_path: Path) -> None:
    values = ["a", "NA"]
    text = "n,s\na,a\n,\nNA,NA\nnull,null\n"
    table = read(tmp_path, text, n=sp.Category(values, nullable=True), s=sp.Category(values))
    assert table["n"].to_pylist() == ["a", None, "NA", None], "a listed value is a value, however it is spelt"
    assert table["s"].to_pylist() == ["a", "", "NA", "null"]


def test_dates_and_times_are_iso(tmp_path: Path) -> None:
    schema = {
        "d": sp.Date("2000-01-01", "2030-01-01"),
        "m": sp.Datetime("2000-01-01", "2030-01-01"),
        "z": sp.Datetime("2000-01-01", "2030-01-01", timezone="Europe/London"),
    }
    table = read(tmp_path, "d,m,z\n2020-02-29,2020-01-01T10:00:00.5,2020-07-01T10:00:00+02:00\n", **schema)
    row = table.to_pylist()[0]
    assert str(row["d"]) == "2020-02-29"
    assert str(row["m"]) == "2020-01-01 10:00:00.500000"
    assert row["z"].isoformat() == "2020-07-01T09:00:00+01:00"
    table = read(tmp_path, "d,m,z\n2020-02-29 00:00:00,2020-01-01T10:00:00.123456789,2020-07-01T10:00:00Z\n", **schema)
    assert str(table.to_pylist()[0]["d"]) == "2020-02-29", "a day may be written with a time"


def test_quoted_fields_may_hold_commas_and_quotes(tmp_path: Path) -> None:
    table = read(tmp_path, 'c\n"a,b"\n"c""d"\n', c=sp.Category(["a,b", 'c"d']))
    assert table["c"].to_pylist() == ["a,b", 'c"d']


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path: Path) -> None:
    table = read(tmp_path, "\ufeffx,y\n1,2\n", x=sp.Real(0, 9), y=sp.Real(0, 9))
    assert table.column_names == ["x", "y"]


def test_compressed_csv_is_read(tmp_path: Path, out: Path) -> None:
    import gzip

    _, schema = write_people(tmp_path)
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(people().encode()))
    assert spinney("fit", path, "--schema", schema, "--epsilon", "1", "--out", out).status == 0


def test_what_sample_writes_fit_reads(tmp_path: Path, out: Path) -> None:
    """A round through CSV keeps every type, nulls included."""
    schema = sp.Schema(
        {
            "r": sp.Real(0, 1, nullable=True),
            "i": sp.Integer(0, 9, nullable=True),
            "c": sp.Category(["a", "b"], nullable=True),
            "b": sp.Boolean(nullable=True),
            "d": sp.Date("2000-01-01", "2010-01-01", nullable=True),
            "m": sp.Datetime("2000-01-01", "2010-01-01", timezone="Europe/Rome", nullable=True),
        }
    )
    halves = [0, None] * 25
    table = pa.table(
        {
            "r": pa.array(halves, pa.float64()),
            "i": pa.array(halves, pa.int64()),
            "c": pa.array(["a", None] * 25),
            "b": pa.array([True, None] * 25),
            "d": pa.array(halves, pa.int32()).cast(pa.date32()),
            "m": pa.array(halves, pa.int64()).cast(pa.timestamp("us", "Europe/Rome")),
        }
    )
    sp.KDTreeSynthesizer(epsilon=100).fit(table, schema).save(out)
    assert spinney("sample", out, "--rows", 200, "--seed", 1, "--out", tmp_path / "a.csv").status == 0
    assert spinney("sample", out, "--rows", 200, "--seed", 1, "--out", tmp_path / "a.parquet").status == 0
    from_csv = read_table(str(tmp_path / "a.csv"), schema)
    from_parquet = read_table(str(tmp_path / "a.parquet"), schema)
    assert from_csv.num_rows == 200
    assert from_csv.cast(from_parquet.schema).equals(from_parquet)
    assert all(column.null_count for column in from_parquet.columns)


def test_json_of_a_fit_is_the_card(tmp_path: Path, out: Path) -> None:
    table, schema = write_people(tmp_path)
    run = spinney("fit", table, "--schema", schema, "--epsilon", "2", "--out", out, "--json")
    assert json.loads(run.out) == spinney("card", out, "--json").json
