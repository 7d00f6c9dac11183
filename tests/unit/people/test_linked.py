"""Persons with many rows from tables in to tables out: keys, counts, rules, conditions, and tables at the edge."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import BudgetError, InputError, ParameterError, SchemaError
from spinney.people import design, rounds
from spinney.people import grow as synthetic
from spinney.synthesizers import linked
from spinney.tables import persons as people


@pytest.fixture(autouse=True)
def _fields_of_few_rows(monkeypatch):
    """Fields are fitted by fewer rows, and in fewer steps, than is usual: tables here are small."""
    monkeypatch.setattr(synthetic, "_N_FITTED", 3000)
    monkeypatch.setattr(synthetic, "_MOST_PERSONS", 2000)
    monkeypatch.setattr(rounds, "_STEPS", 10)
    monkeypatch.setattr(rounds, "_LAST_STEPS", 20)


def check_keys(drawn, count=None):
    """Every row has its person, keys are new, and a person's rows are together and as many as were asked for."""
    persons, rows = drawn["customers"], drawn["transactions"]
    assert persons["id"].is_unique
    assert set(rows["customer"]) <= set(persons["id"])
    if count is not None:
        n_rows = rows.groupby("customer").size().reindex(persons["id"], fill_value=0)
        assert n_rows.between(*count).all()


# ------------------------------------------------------------------------------------------------ what is drawn


def test_tables_come_out_as_they_went_in(shop, fitted):
    """As many persons, columns in order, keys that fit, days that ascend, dependences within persons."""
    drawn = fitted.sample(seed=1)
    check_keys(drawn, (0, 20))
    assert [list(frame) for frame in drawn.values()] == [list(shop.customers), list(shop.transactions)]
    assert len(drawn["customers"]) == len(shop.customers)
    rows = drawn["transactions"]
    assert (rows.groupby("customer", sort=False)["day"].diff().dropna() >= 0).all()
    assert len(rows) == pytest.approx(len(shop.transactions), rel=0.2)
    before = rows.groupby("customer")["kind"].shift()
    assert (rows["kind"] == before)[before.notna()].mean() > 0.42  # a third if rows were nobody's; 0.66 in truth


def test_seeds_repeat(fitted):
    """The same seed gives the same persons and rows, another one others."""
    one, again, other = (fitted.sample(seed=seed) for seed in (4, 4, 5))
    for name, frame in one.items():
        assert frame.equals(again[name])
        assert not frame.equals(other[name])


@pytest.mark.parametrize("count", [(5, 9), (0, 0), 3])
def test_conditions_on_persons(fitted, count):
    """Regions and numbers of rows are those asked for, and rows are as many."""
    drawn = fitted.sample(200, seed=1, where={"customers.region": "west", "transactions.#": count})
    assert len(drawn["customers"]) == 200
    assert (drawn["customers"]["region"] == "west").all()
    check_keys(drawn, count if isinstance(count, tuple) else (count, count))


def test_conditions_that_cannot_be_are_refused(fitted):
    """Columns of rows, unknown ones, and numbers of rows beyond the most."""
    for where, message in [
        ({"transactions.kind": "a"}, "'transactions.kind' is a column of rows"),
        ({"customers.regoin": "west"}, "is not a column of persons; did you mean"),
        ({"region": "west"}, "is not a column of persons"),
        ({"transactions.#": (30, 40)}, "transactions.#"),
        ([], "where is not a mapping"),
    ]:
        with pytest.raises(ParameterError, match=message):
            fitted.sample(10, where=where)
    for persons in (-1, 1.5, True, "ten"):
        with pytest.raises(ParameterError, match="persons"):
            fitted.sample(persons)


def test_no_persons_are_two_empty_tables(fitted):
    """Nobody is drawn, with the columns that there would be."""
    drawn = fitted.sample(0)
    assert [len(frame) for frame in drawn.values()] == [0, 0]


FRAMES = {
    "pandas": (lambda frame: frame, pd.DataFrame),
    "polars": (pl.from_pandas, pl.DataFrame),
    "pyarrow": (lambda frame: pa.Table.from_pandas(frame, preserve_index=False), pa.Table),
}


def test_frames_come_out_as_they_went_in(shop, fitted):
    """Table by table, or in the kind that is asked for; the same rows in each."""
    frames = {"customers": FRAMES["polars"][0](shop.customers), "transactions": FRAMES["pyarrow"][0](shop.transactions)}
    drawn = shop.fit(frames, shop.tables()).sample(seed=1)
    assert isinstance(drawn["customers"], pl.DataFrame)
    assert isinstance(drawn["transactions"], pa.Table)
    same = shop.fit(shop.frames, shop.tables()).sample(seed=1)
    assert drawn["transactions"].to_pandas()["amount"].tolist() == same["transactions"]["amount"].tolist()
    for kind, (_, of) in FRAMES.items():
        assert all(isinstance(frame, of) for frame in fitted.sample(5, seed=1, frame=kind).values())


# ------------------------------------------------------------------------------------------------ tables at the edge


def test_a_flat_table(shop):
    """One frame with keys of its own, each on all rows of a synthetic person."""
    drawn = shop.fit(shop.transactions, shop.flat()).sample(300, seed=1)
    assert list(drawn) == list(shop.transactions)
    assert drawn["customer"].nunique() == 300
    assert drawn["customer"].groupby((drawn["customer"] != drawn["customer"].shift()).cumsum()).ngroups == 300


EDGES = {
    "in order": {},
    "in no order": {"order": None},
    "steps and differences": {"steps": True, "differences": ["amount"]},
    "roles": {"role": "kind"},
    "one row at most": {"most": 1},
}


@pytest.mark.parametrize("options", EDGES.values(), ids=EDGES)
def test_a_table_without_rows(shop, options):
    """Persons who have no rows get none, or a few by noise: not a twentieth of what others have."""
    drawn = shop.fit(shop.with_rows(shop.transactions[:0]), shop.tables(**options)).sample(seed=1)
    check_keys(drawn)
    assert len(drawn["customers"]) == len(shop.customers)
    assert len(drawn["transactions"]) < len(shop.transactions) / 20


@pytest.mark.parametrize("options", EDGES.values(), ids=EDGES)
def test_everybody_has_one_row(shop, options):
    """And gets one, with values within bounds."""
    rows = shop.transactions.drop_duplicates("customer")
    persons = shop.customers[shop.customers["id"].isin(rows["customer"])]
    drawn = shop.fit({"customers": persons, "transactions": rows}, shop.tables(**options)).sample(seed=1)
    check_keys(drawn)
    assert drawn["transactions"]["customer"].is_unique or len(drawn["transactions"]) < 1.1 * len(rows)
    assert drawn["transactions"]["day"].between(0, 364).all()
    assert drawn["transactions"]["amount"].between(0, 500).all()


def test_nobody_at_all(shop):
    """Under replace-one there is nothing to release; under add-remove that is private, and noise is released."""
    frames = {"customers": shop.customers[:0], "transactions": shop.transactions[:0]}
    with pytest.raises(InputError, match="the tables have no persons"):
        shop.fit(frames, shop.tables())
    drawn = shop.fit(frames, shop.tables(), unit="add-remove", assumed_persons=1000).sample(seed=1)
    check_keys(drawn)
    assert len(drawn["customers"]) < 100


def test_tables_of_one_column_and_one_row_each(shop):
    """Flat tables with a single column, of which nothing or one row a person is known."""
    one = {"customer": sp.Identifier(), "kind": sp.Category(["a", "b", "c"])}
    known = {"customer": sp.Identifier(), "kind": sp.Category(["a"])}
    rows = shop.transactions[["customer", "kind"]]
    assert set(shop.fit(rows, shop.flat(columns=one, order=None)).sample(50, seed=1)["kind"]) == {"a", "b", "c"}
    assert len(shop.fit(rows, shop.flat(columns=one, order=None, most_rows=1)).sample(50, seed=1)) == 50
    drawn = shop.fit(rows.assign(kind="a"), shop.flat(columns=known, order=None)).sample(50, seed=1)
    assert (drawn["kind"] == "a").all()


def test_columns_of_nulls_and_hierarchies(shop):
    """A column that is null in every row comes out null; codes in a hierarchy are learnt by their groups too."""
    codes = [f"{letter}{digit}" for letter in "pq" for digit in range(6)]
    columns = {
        "note": sp.Real(0, 1, nullable=True),
        "word": sp.Category(["u", "v"], nullable=True),
        "code": sp.Category(codes, hierarchy=[1]),
    }
    code = np.where(shop.transactions["kind"] == "a", "p3", "q1")
    rows = shop.transactions.assign(note=np.nan, word=None, code=code)
    drawn = shop.fit(shop.with_rows(rows), shop.tables(rows=columns)).sample(seed=1)["transactions"]
    assert drawn[["note", "word"]].isna().mean().min() > 0.97
    assert drawn["code"].isin(["p3", "q1"]).mean() > 0.85


def test_two_tables_of_rows(shop):
    """Each with keys of the same persons."""
    visits = pd.DataFrame({"who": np.repeat(shop.customers["id"], 2), "minutes": 5.0})
    of_visits = sp.Schema({"who": sp.Identifier(), "minutes": sp.Real(0, 60)})
    stated = sp.Tables(
        {**shop.tables(), "visits": of_visits},
        links=[*shop.tables().links, sp.Link("visits.who", "customers.id", most=5)],
    )
    drawn = shop.fit(shop.frames | {"visits": visits}, stated).sample(seed=1, where={"visits.#": 2})
    check_keys(drawn)
    assert (drawn["visits"].groupby("who").size() == 2).all()
    assert set(drawn["visits"]["who"]) == set(drawn["customers"]["id"])


# ------------------------------------------------------------------------------------------------ rules


def obeyed(shop, rules, columns, rows, holds, **options):
    frames = shop.with_rows(rows)
    drawn = shop.fit(frames, shop.tables(rows=columns, rules=rules, **options)).sample(2000, seed=1)["transactions"]
    assert len(drawn) > 4000
    assert holds(drawn).all()
    return drawn


@pytest.mark.parametrize("options", [{}, {"order": None}, {"role": "kind"}], ids=["in order", "in no order", "role"])
def test_implications_hold_in_every_row(shop, options):
    """Two of them about the same columns: no row breaks one, though the field knows nothing of rules."""
    fee = np.where(shop.transactions["kind"] == "a", 1.0, shop.transactions["day"] % 10)
    fee = np.where((shop.transactions["kind"] != "c") & (fee > 6), 6.0, fee)
    drawn = obeyed(
        shop,
        [sp.Implies({"kind": "a"}, {"fee": (0, 3)}), sp.Implies({"fee": (7, 10)}, {"kind": "c"})],
        {"fee": sp.Real(0, 10)},
        shop.transactions.assign(fee=fee),
        lambda rows: ((rows["kind"] != "a") | (rows["fee"] <= 3)) & ((rows["fee"] < 7) | (rows["kind"] == "c")),
        **options,
    )
    assert drawn["kind"].value_counts(normalize=True)["a"] == pytest.approx(
        (shop.transactions["kind"] == "a").mean(), abs=0.08
    )


def test_limits_and_sums_hold_in_every_row(shop):
    """Also where the column that rows are sorted by has to stay below another."""
    rows = shop.transactions
    rows = rows.assign(due=rows["day"] + rows["day"] % 9, fee=1.5, total=rows["amount"] + 1.5)
    obeyed(
        shop,
        [sp.AtMost("day", "due"), sp.Sum("total", ["amount", "fee"])],
        {"due": sp.Integer(0, 400), "fee": sp.Real(0, 10), "total": sp.Real(0, 600)},
        rows,
        lambda found: (found["day"] <= found["due"]) & ((found["total"] - found["amount"] - found["fee"]).abs() < 1e-6),
    )


def test_rules_among_persons(shop):
    """Limits and derived columns in the table of persons."""
    persons = shop.customers.assign(since=shop.customers["age"] // 2)
    stated = shop.tables(persons={"since": sp.Integer(0, 120)}, person_rules=[sp.AtMost("since", "age")])
    drawn = shop.fit(shop.frames | {"customers": persons}, stated).sample(seed=1)["customers"]
    assert (drawn["since"] <= drawn["age"]).all()


@pytest.mark.parametrize(
    "options",
    [{}, {"steps": True}, {"role": "relation"}, {"role": "relation", "steps": True, "differences": ["amount"]}],
    ids=["in order", "steps", "role", "all"],
)
def test_rules_over_positions_hold_for_everybody(shop, options):
    """No row after a death, exactly one reference person, who comes first, and days in order: no violation at all."""
    rows = shop.transactions
    is_first, is_last = ~rows.duplicated("customer"), ~rows.duplicated("customer", keep="last")
    rows = rows.assign(
        event=np.where(is_last & (rows["day"] % 2 == 0), "death", "visit"),
        relation=np.where(is_first, "reference", np.where(rows["day"] % 3 == 0, "partner", "child")),
    )
    columns = {"event": sp.Category(["visit", "death"]), "relation": sp.Category(["reference", "partner", "child"])}
    rules = [sp.NeverAfter("event", ["death"]), sp.First("relation", ["reference"], only=True)]
    drawn = shop.fit(shop.with_rows(rows), shop.tables(rows=columns, rules=rules, **options)).sample(2000, seed=1)
    check_keys(drawn)
    found = drawn["transactions"]
    is_first, is_last = ~found.duplicated("customer"), ~found.duplicated("customer", keep="last")
    assert not ((found["event"] == "death") & ~is_last).any()
    assert ((found["relation"] == "reference") == is_first).all()
    assert (found.groupby("customer", sort=False)["day"].diff().dropna() >= 0).all()
    assert found["day"].between(0, 364).all()
    assert (found["event"] == "death").mean() == pytest.approx((rows["event"] == "death").mean(), abs=0.06)


def test_rules_that_no_row_obeys_are_refused_before_anything_is_spent(shop):
    """Of rows and of persons."""
    rules = [sp.Implies({"kind": ["a", "b"]}, {"fee": (0, 3)}), sp.Implies({"kind": ["b", "c"]}, {"fee": (7, 9)})]
    rules += [sp.Implies({"fee": (0, 6)}, {"kind": "b"}), sp.Implies({"fee": (6, 10)}, {"kind": "b"})]
    ledger = sp.Ledger(10, delta="1e-4", unit="replace-one-person")
    with pytest.raises(SchemaError):
        shop.fit(
            shop.with_rows(shop.transactions.assign(fee=1.0)),
            shop.tables(rows={"fee": sp.Real(0, 10)}, rules=rules),
            ledger=ledger,
        )
    assert ledger.spent == 0


# ------------------------------------------------------------------------------------------------ what is refused


def test_budgets_that_are_too_small_are_refused_before_anything_is_spent(shop):
    """A tiny epsilon, a delta of nothing, and a number that was bought: told in persons."""
    ledger = sp.Ledger(10, delta="1e-3", unit="replace-one-person")
    for options, problem, message in [
        ({"epsilon": "0.000000001"}, BudgetError, "too small for 500 persons"),
        ({"delta": 0}, ParameterError, "delta=0: persons with many rows need a delta above 0"),
        ({"quality": "poor"}, ParameterError, "is not 'fast' or 'high'"),
        ({"unit": "rows"}, ParameterError, "is not 'replace-one' or 'add-remove'"),
        ({"target": "region"}, ParameterError, "is not a column of persons, such as 'customers.region'"),
        ({"target": "transactions.kind"}, ParameterError, "is not a column of persons"),
    ]:
        with pytest.raises(problem, match=message):
            shop.fit(shop.frames, shop.tables(), ledger=ledger, **options)
    assert ledger.spent == 0
    assert ledger.events == ()
    nobody = {"customers": shop.customers[:0], "transactions": shop.transactions[:0]}
    with pytest.raises(BudgetError, match=r"about [\d,]+ persons by a noisy count.*as assumed_persons"):
        shop.fit(nobody, shop.tables(), unit="add-remove")


def test_a_target_needs_a_table_of_persons(shop):
    """A flat table has none."""
    with pytest.raises(ParameterError, match="there is none; leave it out"):
        shop.fit(shop.transactions, shop.flat(), target="kind")


def test_arrays_have_no_keys(shop):
    """Numbers in an array cannot say whose rows they are."""
    with pytest.raises(InputError, match="cannot hold the keys of persons; pass a data frame"):
        shop.fit(shop.with_rows(shop.transactions.to_numpy()), shop.tables())


@pytest.mark.parametrize("unit", ["replace-one", "add-remove"])
def test_one_composed_charge_and_one_ledger(shop, unit):
    """All tables of a person are one charge, in a unit of persons; ledgers of rows are refused, and say why."""
    ledger = sp.Ledger(20, delta="1e-3", unit=f"{unit}-person" if unit == "add-remove" else "replace-one-person")
    model = shop.fit(shop.frames, shop.tables(), unit=unit, ledger=ledger)
    assert model.ledger_ is ledger
    assert ledger.spent == 8
    assert model.card_.epsilon == 8
    assert model.card_.unit.endswith("person")
    assert model.card_.n_rows == (500 if unit == "replace-one" else None)
    counted = [event.note for event in model.card_.events if getattr(event, "stage", None) == "rows"]
    assert counted == ([] if unit == "replace-one" else ["persons: how many there are"])
    of_rows = sp.Ledger(20, delta="1e-3", unit=unit)
    with pytest.raises(ParameterError, match="protects persons with all their rows and the ledger single rows"):
        shop.fit(shop.frames, shop.tables(), unit=unit, ledger=of_rows)
    assert of_rows.spent == 0


def test_a_fit_that_fails_after_the_charge_is_paid_for(shop, monkeypatch):
    """Noise may have been seen: the ledger keeps the charge, once, and the model is not fitted."""

    def broken(*_, **__):
        raise MemoryError

    monkeypatch.setattr(linked, "grow_people", broken)
    ledger = sp.Ledger(20, delta="1e-3", unit="replace-one-person")
    with pytest.raises(InputError, match=r"out of memory .* epsilon=8 with delta=1e-05 was charged to the ledger"):
        shop.fit(shop.frames, shop.tables(), ledger=ledger)
    assert ledger.spent == 8


def test_cards_tell_persons_and_no_rows(shop, fitted):
    """No number on the card, in the plan or in the design is that of the rows, or of persons with rows."""
    secret = {len(shop.transactions), shop.transactions["customer"].nunique()}
    text = str(fitted.card_) + repr(fitted.card_.to_dict()) + repr(fitted.design_) + repr(fitted)
    assert "500" in text
    for number in secret:
        assert str(number) not in text
        assert f"{number:,}" not in text


def test_columns_of_too_many_values_are_refused_before_anything_is_spent(shop, monkeypatch):
    """A table of units is a vector of up to 2^20 sums."""
    monkeypatch.setattr(design, "LARGEST_VECTOR", 50)
    codes = sp.Category([f"c{number}" for number in range(60)])
    ledger = sp.Ledger(20, delta="1e-3", unit="replace-one-person")
    with pytest.raises(SchemaError, match="column 'code' has more than 49 values"):
        shop.fit(shop.with_rows(shop.transactions.assign(code="c1")), shop.tables(rows={"code": codes}), ledger=ledger)
    assert ledger.spent == 0


def test_more_persons_than_have_numbers_are_refused(shop, monkeypatch):
    """Before anything is spent, and without a number of persons."""
    monkeypatch.setattr(people, "_MOST_PERSONS", 100)
    with pytest.raises(InputError, match="there are more than 100 persons; split them"):
        shop.fit(shop.frames, shop.tables())


def test_columns_of_persons_depend_on_each_other_whatever_their_numbers_of_rows():
    """A strong dependence between two columns comes back, although all columns are counted with numbers of rows."""
    rng = np.random.default_rng(0)
    n = 6_000
    age, n_rows = rng.integers(0, 120, n), rng.geometric(0.05, n)
    died = rng.random(n) < np.where(age >= 108, 0.6, 0.03)
    patients = pd.DataFrame({"id": np.arange(n), "age": age, "died": died})
    visits = pd.DataFrame({"patient": np.repeat(np.arange(n), n_rows), "ward": rng.random(n_rows.sum()) < 0.3})
    tables = sp.Tables(
        {
            "patients": {"id": sp.Identifier(), "age": sp.Integer(0, 120), "died": sp.Boolean()},
            "visits": {"patient": sp.Identifier(), "ward": sp.Boolean()},
        },
        links=[sp.Link("visits.patient", "patients.id", most=200)],
    )
    model = sp.LinkedSynthesizer("5", delta="1e-6")
    model.fit({"patients": patients, "visits": visits}, tables, entropy=sp.UnsafeSeededEntropy(1))
    drawn = model.sample(seed=1)["patients"]
    shares = drawn.groupby(drawn["age"] >= 108)["died"].mean()
    assert shares[True] == pytest.approx(0.6, abs=0.15)
    assert shares[False] < 0.05
