"""Persons with many rows on the command line: fit, sample, card, verify, explain, ask, compare and check."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pandas as pd
import pytest

from spinney.cli import tables as cli_tables
from spinney.errors import ParameterError
from support.command_line import Run, files_in, spinney
from support.small_people import N_CUSTOMERS, flat_model, linked_model, shop, write_shop


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("linked") / "shop.spinney"
    linked_model().save(path)
    return path


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flat") / "sales.spinney"
    flat_model().save(path)
    return path


def refused(run: Run, *phrases: str) -> None:
    assert run.status == 2, run.err
    for phrase in phrases:
        assert phrase in run.err


# ----------------------------------------------------------------------------------------------------------- fit


def test_linked_tables_are_fitted_and_drawn(tmp_path: Path) -> None:
    """From files that a TOML file names to files whose keys fit."""
    tables, out = write_shop(tmp_path), tmp_path / "shop.spinney"
    run = spinney("fit", "--tables", tables, "--epsilon", "5", "--target", "customers.churn", "--out", out)
    assert run.status == 0, run.err
    assert "method linked: tables are linked to 'customers'" in run.out
    assert "one person with all their rows" in run.out
    folder = tmp_path / "synthetic"
    run = spinney(
        "sample", out, "--persons", "50", "--where", "customers.region=west", "--seed", "1", "--out", f"{folder}/"
    )
    assert run.status == 0, run.err
    assert "wrote 50 synthetic persons" in run.out
    assert files_in(folder) == {"customers.parquet", "sales.parquet"}
    customers, sales = (pd.read_parquet(folder / f"{name}.parquet") for name in ("customers", "sales"))
    assert len(customers) == 50
    assert set(customers["region"]) == {"west"}
    assert set(sales["customer"]) <= set(customers["id"])
    assert sales.groupby("customer")["day"].is_monotonic_increasing.all()


def test_a_schema_with_persons_is_fitted_as_such(tmp_path: Path) -> None:
    """The schema decides; rows of a person share a key in one file."""
    write_shop(tmp_path)
    out, rows = tmp_path / "sales.spinney", tmp_path / "rows.csv"
    run = spinney("fit", tmp_path / "sales.parquet", "--schema", tmp_path / "flat.toml", "--epsilon", "5", "--out", out)
    assert run.status == 0, run.err
    assert "method linked: the schema says whose rows they are, by column 'customer'" in run.out
    run = spinney("sample", out, "--persons", "30", "--seed", "1", "--out", rows, "--json")
    assert run.json["persons"] == 30
    drawn = pd.read_csv(rows)
    assert len(drawn) == run.json["rows"]
    assert drawn["customer"].nunique() == 30


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (["--tables", "TABLES", "--schema", "FLAT"], "--schema and --tables are both given"),
        (["SALES", "--tables", "TABLES"], "TABLE and --tables are both given"),
        (["SALES"], "--schema is missing"),
        (["--schema", "FLAT"], "TABLE is missing"),
        (["--tables", "TABLES", "--method", "forest"], "--method forest protects rows, and tables are linked"),
        (["--tables", "TABLES", "--workload", "age,region"], "--workload is not a parameter of a model of persons"),
        (["SALES", "--schema", "FLAT", "--assumed-rows", "10"], "say --assumed-persons"),
        (["SALES", "--schema", "ROWS", "--assumed-persons", "10"], "does not say whose rows they are"),
        (["SALES", "--schema", "ROWS", "--method", "linked"], "does not say whose rows they are"),
        (["--tables", "TABLES", "--target", "churn"], "did you mean 'customers.churn'"),
        (["--tables", "TABLES", "--delta", "0"], "need a delta above 0"),
        (["--tables", "TABLES", "--bounds-from-data-not-private"], "state the bounds"),
    ],
)
def test_wrong_fits_spend_nothing(tmp_path: Path, arguments: list[str], phrase: str) -> None:
    """Messages speak of options, and say what to type instead."""
    paths = {
        "TABLES": write_shop(tmp_path),
        "SALES": tmp_path / "sales.parquet",
        "FLAT": tmp_path / "flat.toml",
        "ROWS": tmp_path / "sales.toml",
    }
    before = files_in(tmp_path)
    words = [paths.get(word, word) for word in arguments]
    refused(spinney("fit", *words, "--epsilon", "1", "--out", tmp_path / "out.spinney"), phrase)
    assert files_in(tmp_path) == before


def test_files_of_tables_are_looked_for_first(tmp_path: Path) -> None:
    """A table that no file is stated for, or whose file is missing, is named."""
    tables = write_shop(tmp_path)
    whole = tables.read_text()
    tables.write_text(whole.replace('file = "sales.parquet"\n', ""))
    run = spinney("fit", "--tables", tables, "--epsilon", "1", "--out", tmp_path / "out.spinney")
    refused(run, "table 'sales'", 'file = "sales.parquet"')
    tables.write_text(whole.replace("customers.csv", "nowhere.csv"))
    refused(spinney("check", "--tables", tables), "table 'customers'", "nowhere.csv")


def test_options_of_csv_files_are_for_those_among_linked_tables(tmp_path: Path) -> None:
    """Other delimiters are said once; Parquet files have none."""
    tables = write_shop(tmp_path)
    shop()["customers"].to_csv(tmp_path / "customers.csv", index=False, sep=";")
    run = spinney("check", "--tables", tables, "--delimiter", ";")
    assert run.status == 0, run.out + run.err


def test_a_ledger_is_one_of_persons(tmp_path: Path) -> None:
    """A ledger of rows, or one without a delta, is refused with what to open instead; one of persons is charged."""
    tables, out, ledger = write_shop(tmp_path), tmp_path / "out.spinney", tmp_path / "people.ledger"
    fit = ("fit", "--tables", tables, "--epsilon", "1", "--out", out, "--ledger", ledger)
    spinney("ledger", ledger, "--limit", "2", "--delta", "1e-5")
    refused(spinney(*fit), "--unit replace-one-person")
    ledger.unlink()
    spinney("ledger", ledger, "--limit", "2", "--unit", "add-remove-person")
    run = spinney(*fit)
    assert run.status == 1
    assert "spinney ledger raise LEDGER --delta NUMBER" in run.err
    ledger.unlink()
    spinney("ledger", ledger, "--limit", "2", "--delta", "1e-5", "--unit", "replace-one-person")
    assert spinney(*fit).status == 0
    assert spinney("ledger", ledger, "--json").json["spent"] == "1"


# -------------------------------------------------------------------------------------------------------- sample


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        (["--rows", "5"], "say --persons"),
        (["--placement", "centre"], "--placement is for releases of rows"),
        (["--balance", "customers.churn=0.5"], "--balance is for releases of rows"),
        (["--draws", "3"], "--draws is for releases of rows"),
        (["--parts", "3"], "--parts is for releases of rows"),
        (["--where", "sales.kind=food"], "'sales.kind' is a column of rows"),
        (["--where", "customers.regoin=west"], "did you mean 'customers.region'"),
        (["--where", "region=west"], "'region' is not a column of the release; did you mean 'customers.region'"),
        (["--where", "#=5..10"], "'#' is not a column of the release; did you mean 'sales.#'"),
    ],
)
def test_what_is_asked_of_rows_is_refused(linked: Path, tmp_path: Path, options: list[str], phrase: str) -> None:
    refused(spinney("sample", linked, *options, "--out", f"{tmp_path}/new/"), phrase)
    assert not files_in(tmp_path)


def test_wrong_options_in_python_say_what_a_model_of_persons_takes() -> None:
    """What it holds is no help; the number that is asked for is of persons."""
    for model in (flat_model(), flat_model().release_):
        with pytest.raises(ParameterError) as caught:
            model.sample(rows=5)
        assert str(caught.value) == (
            "sample() has no option 'rows' for a release of persons; its options are persons, where, seed, frame; "
            "persons are drawn with all their rows: say how many with `persons`"
        )


def test_persons_are_not_asked_of_releases_of_rows(tmp_path: Path) -> None:
    import spinney as sp

    sp.GridSynthesizer(1).fit(shop()["sales"][["amount"]], {"amount": sp.Real(0, 500)}).save(tmp_path / "a.spinney")
    refused(spinney("sample", tmp_path / "a.spinney", "--persons", "5", "--out", tmp_path / "a.csv"), "say --rows")


def test_several_tables_need_a_folder_and_one_a_file(linked: Path, flat: Path, tmp_path: Path) -> None:
    refused(spinney("sample", linked, "--out", tmp_path / "a.csv"), "customers, sales", "name a folder")
    refused(spinney("sample", linked, "--out", "-"), "name a folder")
    refused(spinney("sample", flat, "--out", f"{tmp_path}/a/"), "name a .csv or .parquet file")
    refused(spinney("sample", flat, "--out", tmp_path / "a.csv", "--format", "csv"), "--format is for a folder")
    assert not files_in(tmp_path)
    assert spinney("sample", flat, "--persons", "3", "--out", "-").out.startswith('"customer","day"')


def test_tables_are_written_all_or_none(linked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is kept unless --force says otherwise, and kept too where the second table cannot be written."""
    folder = tmp_path / "out"
    sample = ("sample", linked, "--persons", "5", "--format", "csv", "--out", f"{folder}/")
    assert spinney(*sample, "--seed", "1").status == 0
    assert files_in(tmp_path) == {"out"}
    before = {name: (folder / name).read_bytes() for name in files_in(folder)}
    assert set(before) == {"customers.csv", "sales.csv"}
    refused(spinney(*sample), "--force")
    write = cli_tables.write_table

    def fail_on_sales(table: object, target: str, *, overwrite: bool) -> None:
        if "sales" in target:
            raise OSError(28, "No space left on device")
        write(table, target, overwrite=overwrite)

    with monkeypatch.context() as patch:
        patch.setattr(cli_tables, "write_table", fail_on_sales)
        assert spinney(*sample, "--force", "--seed", "2").status == 1
    assert {name: (folder / name).read_bytes() for name in files_in(folder)} == before
    assert files_in(tmp_path) == {"out"}
    assert spinney(*sample, "--force", "--seed", "2").status == 0
    assert (folder / "customers.csv").read_bytes() != before["customers.csv"]


def test_nobody_is_drawn_with_a_word(flat: Path, linked: Path, tmp_path: Path) -> None:
    """No persons are a table without rows, which a typing error may be behind."""
    for release, out in ((flat, "-"), (flat, tmp_path / "a.csv"), (linked, f"{tmp_path}/b/")):
        run = spinney("sample", release, "--persons", "0", "--out", out)
        assert run.status == 0
        assert "caution: --persons 0 asks for no rows" in run.err
    assert "caution" not in spinney("sample", flat, "--persons", "1", "--out", "-").err


def test_the_number_of_rows_is_a_condition(flat: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    assert spinney("sample", flat, "--persons", "20", "--where", "#=3..5", "--seed", "1", "--out", out).status == 0
    assert pd.read_parquet(out).groupby("customer").size().between(3, 5).all()


# ------------------------------------------------------------------------------- card, verify, explain, picture


def test_the_card_speaks_of_persons(linked: Path) -> None:
    run = spinney("card", linked)
    assert f"persons     {N_CUSTOMERS} (public" in run.out
    assert "rows        private" in run.out
    assert "rows of 'sales', at most 20 of a person, in the order of 'day'" in run.out
    described = spinney("card", linked, "--json").json
    assert described["n_persons"] == N_CUSTOMERS
    assert [table["name"] for table in described["people"]["rows"]] == ["sales"]
    assert "in persons (95 %)" in spinney("card", linked, "--error-bars").out


def test_a_release_of_persons_is_verified(linked: Path, flat: Path) -> None:
    for release in (linked, flat):
        run = spinney("verify", release)
        assert run.status == 0, run.err
        assert "tables of rows were measured" in run.out


def test_persons_are_explained(linked: Path, tmp_path: Path) -> None:
    """A page, JSON and a picture."""
    picture = tmp_path / "graph.svg"
    run = spinney("explain", linked, "--picture", picture)
    assert run.out == f"{linked_model().explain()}\nwrote {picture}\n"
    assert "<svg" in picture.read_text()
    assert spinney("explain", linked, "--json").json == json.loads(json.dumps(linked_model().explain().to_dict()))


def test_pictures_of_persons(linked: Path, tmp_path: Path) -> None:
    refused(spinney("picture", linked, "--out", tmp_path / "a.svg"), "spinney explain --picture")
    assert spinney("picture", linked, "--error-bars", "--out", tmp_path / "a.svg").status == 0


# ----------------------------------------------------------------------------------------------------- questions


def test_questions_about_persons_have_error_bars(linked: Path, flat: Path) -> None:
    real = shop()
    run = spinney("ask", linked, "count by customers.region", "mean(customers.age)", "--level", "0.9999", "--json")
    count, mean = run.json["answers"]
    sizes = real["customers"].groupby("region").size()
    for cell in count["cells"]:
        assert cell["low"] <= sizes[cell["customers.region"]] <= cell["high"]
        assert cell["asked"].startswith("count where customers.region = ")
    assert mean["answer"]["low"] <= real["customers"]["age"].mean() <= mean["answer"]["high"]
    options = ("--level", "0.9999", "--json")
    answer = spinney("ask", flat, "proportion where # in 1..2", *options).json["answers"][0]["answer"]
    assert answer["low"] <= real["sales"].groupby("customer").size().le(2).mean() <= answer["high"]
    assert spinney("ask", linked, "mean(customers.age) where sales.# >= 3").status == 0


@pytest.mark.parametrize(
    "question", ["mean(sales.amount)", "count where sales.kind = food", "table by sales.kind", "median(sales.day)"]
)
def test_questions_about_rows_are_refused(linked: Path, question: str) -> None:
    refused(spinney("ask", linked, question), "is a column of rows", "'sales.#'", "sample()")


def test_answers_of_persons_are_not_bought(linked: Path, tmp_path: Path) -> None:
    write_shop(tmp_path)
    ledger = tmp_path / "a.ledger"
    spinney("ledger", ledger, "--limit", "2")
    run = spinney("ask", linked, "count", "--buy", "0.1", "--table", tmp_path / "customers.csv", "--ledger", ledger)
    refused(run, "this release is of persons")


def test_regressions_of_persons_are_refused(linked: Path) -> None:
    refused(spinney("ask", linked, "regression customers.age ~ customers.churn"), "persons")


# ------------------------------------------------------------------------------------------------ compare, check


def test_tables_are_compared_one_by_one(linked: Path, flat: Path, tmp_path: Path) -> None:
    write_shop(tmp_path)
    spinney("sample", linked, "--seed", "1", "--out", f"{tmp_path}/out/")
    pair = (tmp_path / "sales.parquet", tmp_path / "out" / "sales.parquet", "--release", linked)
    refused(spinney("compare", *pair), "say --table customers or --table sales")
    refused(spinney("compare", *pair, "--table", "orders"), "'orders'")
    assert "amount" in spinney("compare", *pair, "--table", "sales").out
    spinney("sample", flat, "--seed", "1", "--out", tmp_path / "flat.parquet")
    run = spinney("compare", tmp_path / "sales.parquet", tmp_path / "flat.parquet", "--release", flat)
    assert run.status == 0, run.err


def test_keys_are_checked_for_the_holder(tmp_path: Path) -> None:
    """Missing and repeated keys, rows of nobody and rows that are left out are counted; no key is shown."""
    tables = shop()
    tables["customers"] = pd.concat([tables["customers"], tables["customers"].head(2)])
    sales = pd.concat([tables["sales"], tables["sales"].head(3).assign(customer="SECRET of nobody")])
    busy = pd.concat([sales.head(1)] * 30)
    tables["sales"] = pd.concat([sales, busy, sales.head(4).assign(customer=None)])
    run = spinney("check", "--tables", write_shop(tmp_path, tables))
    assert run.status == 1
    said = " ".join(run.out.split())
    for phrase in (
        "There are 600 persons.",
        "table 'customers': column 'id' holds some key twice, and a person has one row there; drop the repeated rows",
        "(2 rows)",
        "table 'sales': column 'customer' holds missing keys",
        "or give them a key (4 rows)",
        "does not have in 'id'; drop these rows, or add their persons (3 rows)",
        "some persons have more rows than most=20",
    ):
        assert phrase in said
    found = spinney("check", "--tables", tmp_path / "shop.toml", "--json").json
    assert found["persons"] == N_CUSTOMERS
    assert found["tables"]["customers"] == N_CUSTOMERS + 2


def test_a_plain_schema_is_told_that_identifiers_repeat(tmp_path: Path) -> None:
    write_shop(tmp_path)
    run = spinney("check", tmp_path / "sales.parquet", "--schema", tmp_path / "sales.toml")
    assert run.status == 0
    assert "column 'customer' is an identifier, and its values repeat" in run.out
    assert "person='customer'" in run.out
    run = spinney("check", tmp_path / "customers.csv", "--schema", tmp_path / "customers.toml")
    assert "repeat" not in run.out
    run = spinney("check", tmp_path / "sales.parquet", "--schema", tmp_path / "flat.toml")
    assert run.status == 0
    n_persons = shop()["sales"]["customer"].nunique()
    assert f"rows of {n_persons} persons." in run.out
    assert "repeat" not in run.out


# ------------------------------------------------------------------------------------------------ inputs are kept


def test_no_input_is_overwritten(tmp_path: Path, linked: Path) -> None:
    """Neither a schema that the file of tables names, nor the release that is drawn from, whatever --force says."""
    tables = write_shop(tmp_path)
    schema = next(path for path in tmp_path.glob("*.toml") if path != Path(tables))
    before = schema.read_text()
    refused(spinney("fit", "--tables", tables, "--epsilon", "1", "--out", schema, "--force"), "is also an input")
    assert schema.read_text() == before
    folder = tmp_path / "drawn"
    folder.mkdir()
    release = folder / "sales.parquet"
    release.write_bytes(linked.read_bytes())
    refused(spinney("sample", release, "--persons", "5", "--out", f"{folder}/", "--force"), "is also an input")
    assert release.read_bytes() == linked.read_bytes()


def test_persons_that_memory_does_not_hold_are_refused(linked: Path, tmp_path: Path) -> None:
    """By their number, and by their rows, before any row is drawn; parts are not offered, as there are none."""
    run = spinney("sample", linked, "--persons", "100000000000", "--out", f"{tmp_path}/x/")
    assert "ask for fewer persons at a time" in run.err
    assert "parts" not in run.err
    with mock.patch("spinney.people.release.model.total_memory", return_value=200_000):
        run = spinney("sample", linked, "--persons", "600", "--where", "sales.#=5..20", "--out", f"{tmp_path}/x/")
    assert "ask for fewer persons at a time" in run.err
    assert not (tmp_path / "x").exists()
