"""`sp.check` of persons: keys for the holder's eyes, none shown, whatever kind of table they come in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import InputError
from support.small_people import CUSTOMERS, FLAT, SALES, TABLES, shop


def said(findings) -> str:
    return " ".join(str(finding) for finding in findings)


@pytest.mark.parametrize("kind", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_whole_tables_have_no_faults(kind) -> None:
    tables = {name: kind(frame) for name, frame in shop().items()}
    found = sp.check(tables, TABLES, target="customers.churn")
    assert found.is_clean, str(found)
    assert found.n_persons == len(shop()["customers"])
    assert found.method == "linked"


def test_a_flat_table_counts_its_persons_and_what_is_cut() -> None:
    sales = shop()["sales"]
    found = sp.check(sales, sp.Schema(dict(FLAT), person="customer", most_rows=2))
    sizes = sales.groupby("customer").size()
    assert found.n_persons == len(sizes)
    (cut,) = [warning for warning in found.warnings if "most_rows=2" in warning.message]
    assert cut.n_rows == (sizes - 2).clip(lower=0).sum()


def test_keys_of_other_types_are_a_fault() -> None:
    tables = shop()
    tables["sales"]["customer"] = range(len(tables["sales"]))
    found = sp.check(tables, TABLES)
    assert "table 'sales': column 'customer' and column 'id' of table 'customers' have keys of different types" in said(
        found.faults
    )
    assert "whole numbers and strings; convert one of them (keys of CSV files are read as strings)" in said(
        found.faults
    )


def test_missing_keys_of_whole_numbers_are_a_fault() -> None:
    """pandas makes floats of them, of which no key is left to be counted."""
    sales = shop()["sales"].assign(customer=1.0)
    sales.loc[0, "customer"] = None
    assert "column 'customer' holds missing keys" in said(sp.check(sales, FLAT).faults)


def test_a_missing_key_column_is_told_once() -> None:
    found = sp.check(shop()["sales"].drop(columns="customer"), FLAT)
    assert len([fault for fault in found.faults if "'customer'" in fault.message]) == 1


def test_other_faults_are_found_beside_keys() -> None:
    """A value that is not listed, a wrong target and a repeated key are told at once."""
    tables = shop()
    tables["sales"].loc[0, "kind"] = "SECRET"
    tables["customers"].loc[0, "id"] = tables["customers"].loc[1, "id"]
    found = sp.check(tables, TABLES, target="customers.age2")
    told = said(found.faults)
    for words in ("customers.age2", "table 'sales': column 'kind'", "some key twice"):
        assert words in told
    assert "SECRET" not in str(found)


def test_all_tables_have_to_be_there() -> None:
    with pytest.raises(InputError, match="'sales' is missing"):
        sp.check({"customers": shop()["customers"]}, TABLES)
    with pytest.raises(InputError, match="'customers' and 'sales' is missing"):
        sp.check(shop()["customers"], TABLES)


def test_identifiers_that_repeat_are_warned_of() -> None:
    """In a plain schema, with how many rows do; unique ones are not."""
    sales = shop()["sales"].assign(receipt=range(len(shop()["sales"])))
    schema = sp.Schema({**SALES, "receipt": sp.Identifier()})
    (warning,) = sp.check(sales, schema).warnings
    assert warning.column == "customer"
    assert warning.n_rows == len(sales) - sales["customer"].nunique()
    assert "State whose rows they are" in warning.message


@pytest.mark.parametrize(
    ("person", "fault"),
    [
        ('column = "customer"', "most_rows is missing"),
        ('column = "customer"\nmost_rows = 20\norder = "hour"', "column 'hour' is not in the schema"),
        ('column = "customer"\nmost_rows = 20\nordre = "day"', "did you mean 'order'"),
        ('column = "amount"\nmost_rows = 20', "column 'amount' is of type real"),
    ],
)
def test_a_wrong_person_table_is_the_only_thing_told_of_persons(tmp_path, person: str, fault: str) -> None:
    """Whose rows they are is stated, if wrongly: nobody is told to state it, nor of a model of rows."""
    path = tmp_path / "sales.toml"
    path.write_text(f"{SALES.to_toml()}\n[person]\n{person}\n")
    found = sp.check(shop()["sales"], path)
    assert fault in said(found.faults)
    assert len(found.faults) == 1
    assert "State whose rows they are" not in str(found)
    assert "Method" not in str(found)


def test_a_key_that_is_a_number_is_told_to_be_an_identifier(tmp_path) -> None:
    path = tmp_path / "sales.toml"
    text = FLAT.to_toml().replace('type = "identifier"', 'type = "integer"')
    path.write_text(text)
    found = sp.check(shop()["sales"], path)
    assert said(found.faults) == "column 'customer' says whose row it is; write type = \"identifier\" and nothing else"
    assert "Method" not in str(found)


def test_private_bounds_of_persons_are_a_fault_and_no_note() -> None:
    """Nothing of persons is estimated, so nobody is told that it would be; of rows it is."""
    columns = {**SALES, "day": sp.Integer(bounds="private"), "kind": sp.Category(values="private")}
    found = sp.check(shop()["sales"], sp.Schema(columns, person="customer", most_rows=20))
    assert "column 'day' has bounds='private'" in said(found.faults)
    assert "privately" not in str(found)
    tables = sp.Tables({"customers": CUSTOMERS, "sales": sp.Schema(columns)}, links=TABLES.links)
    assert "privately" not in str(sp.check(shop(), tables))
    assert "Bounds of 'day' would be estimated privately" in str(sp.check(shop()["sales"], sp.Schema(columns)))


def test_parts_are_looked_at_together(tmp_path) -> None:
    """A person's rows may lie in several files."""
    sales = shop()["sales"]
    for number in range(3):
        sales.iloc[number::3].to_parquet(tmp_path / f"{number}.parquet", index=False)
    found = sp.check(str(tmp_path / "*.parquet"), FLAT)
    assert found.is_clean, str(found)
    assert found.n_persons == sales["customer"].nunique()


def test_a_reader_is_read_once() -> None:
    sales = pa.Table.from_pandas(pd.DataFrame(shop()["sales"]), preserve_index=False)
    found = sp.check(pa.RecordBatchReader.from_batches(sales.schema, sales.to_batches()), FLAT)
    assert found.is_clean, str(found)


PANEL = {
    "rownames": sp.Identifier(),
    "nr": sp.Integer(0, 20_000),
    "year": sp.Integer(60, 99),
    "race": sp.Category(["white", "black", "other"]),
    "wage": sp.Integer(0, 5_000),
    "band": sp.Integer(0, 9),
}


def panel() -> pd.DataFrame:
    """Several years of 400 persons, whose race stays; rows are numbered, and wages have bands."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 10, 400)
    of = np.repeat(np.arange(400), sizes)
    wage = rng.integers(100, 900, len(of))
    return pd.DataFrame(
        {
            "rownames": np.arange(1, len(of) + 1),
            "nr": 7 * rng.permutation(400)[of] + 3,
            "year": 68 + np.concatenate([np.arange(size) for size in sizes]),
            "race": np.array(["white", "black", "other"])[rng.choice(3, 400, p=[0.6, 0.3, 0.1])][of],
            "wage": wage,
            "band": wage // 100,
        }
    ).sample(frac=1, random_state=1)


def test_a_stated_person_that_never_repeats_is_told_with_the_key_that_does() -> None:
    found = sp.check(panel(), sp.Schema(PANEL, person="rownames", most_rows=10))
    assert found.is_clean
    (warning,) = [one for one in found.warnings if one.column == "rownames"]
    assert "its values never repeat" in warning.message
    assert "column 'nr': values repeat as keys of persons do" in warning.message
    for name in ("'wage'", "'year'", "'band'", "'race'"):
        assert name not in warning.message, "a column with bands, and one that is the same for many, are no keys"
    assert str(found).startswith("For the holder only")
    right = {**PANEL, "rownames": sp.Integer(1, 10_000), "nr": sp.Identifier()}
    assert not sp.check(panel(), sp.Schema(right, person="nr", most_rows=10)).warnings


def test_a_key_of_persons_that_is_stated_as_a_number_is_told() -> None:
    plain = {**PANEL, "rownames": sp.Ignore()}
    (warning,) = sp.check(panel(), sp.Schema(plain)).warnings
    assert warning.column == "nr"
    assert "the guarantee would be for one row" in warning.message


def test_a_key_shows_in_the_order_of_its_rows() -> None:
    """Rows that stand together by a column and rise in another within it; not those of a table sorted by amounts."""
    payments = panel().sort_values(["nr", "year"])[["nr", "year", "wage"]]
    stated = {name: PANEL[name] for name in payments}
    (warning,) = sp.check(payments, sp.Schema(stated)).warnings
    assert warning.column == "nr"
    by_wage = panel().sort_values("wage", kind="stable")[["nr", "year", "wage"]]
    assert not sp.check(by_wage, sp.Schema(stated)).warnings


def test_numbers_that_repeat_are_no_keys_where_nothing_belongs_to_them() -> None:
    table = panel()
    table["race"] = np.random.default_rng(0).permutation(table["race"])
    assert not sp.check(table, sp.Schema({**PANEL, "rownames": sp.Ignore()})).warnings
    named = {**PANEL, "rownames": sp.Ignore(), "customer": PANEL["nr"]}
    del named["nr"]
    (warning,) = sp.check(table.rename(columns={"nr": "customer"}), sp.Schema(named)).warnings
    assert warning.column == "customer", "by its name, and as it repeats"
