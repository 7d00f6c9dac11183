"""All that a schema may state at once, kept by every row of a forest: steps, identifiers, rules, under `where` too."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import spinney as sp
from spinney.engines.frames import open_table
from spinney.errors import ParameterError

N = 3000
SCHEMA = sp.Schema(
    {
        "id": sp.Identifier(prefix="C-"),
        "paid": sp.Integer(0, 1000, multiple_of=50),
        "due": sp.Integer(0, 1000, multiple_of=20),
        "rate": sp.Real(0, 5, multiple_of=0.25),
        "cap": sp.Real(0, 5, multiple_of=0.5, nullable=True),
        "status": sp.Category(["open", "new", "shut"]),
    },
    rules=[
        sp.AtMost("paid", "due"),
        sp.AtMost("rate", "cap"),
        sp.EmptyWhen("cap", "status", ["open", "new"]),
    ],
)
PAID = {0: 0.4, 50: 0.3, 100: 0.2, 1000: 0.1}


@pytest.fixture(scope="module")
def model() -> sp.ForestSynthesizer:
    """A forest fitted to rows of which some break the rules, and whose identifiers are marked."""
    rng = np.random.default_rng(0)
    rate = rng.integers(0, 5, N) * 0.25
    frame = pl.DataFrame(
        {
            "id": [f"SECRET{row}" for row in range(N)],
            "paid": rng.choice(list(PAID), N, p=list(PAID.values())),
            "due": rng.integers(0, 1001, N),
            "rate": rate,
            "cap": [None if rng.random() < 0.5 else value + 0.3 for value in rate],
            "status": rng.choice(SCHEMA["status"].values, N),
        }
    )
    return sp.ForestSynthesizer("3", delta="1e-5").fit(frame, SCHEMA, entropy=sp.UnsafeSeededEntropy(2))


def test_rules_are_kept_where_nothing_was_measured():
    """With a budget for nothing rows are even over what is possible, and a truth value still says what is empty."""
    schema = sp.Schema(
        {"end": sp.Integer(0, 500, nullable=True), "is_open": sp.Boolean()},
        rules=[sp.EmptyWhen("end", "is_open", [True])],
    )
    frame = pl.DataFrame({"end": [None, 7], "is_open": [True, False]}, schema={"end": pl.Int64, "is_open": pl.Boolean})
    model = sp.ForestSynthesizer("0.01").fit(frame, schema)
    assert model.design_.structure == "uniform"
    rows = model.sample(400, seed=1)
    assert (rows["end"].is_null() == rows["is_open"]).all()
    assert model.sample(50, seed=1, where={"is_open": False})["is_open"].any() is False
    assert model.sample(50, seed=1, where={"is_open": True})["end"].null_count() == 50
    assert abs(model.sample(400, seed=1, balance={"is_open": 0.25})["is_open"].mean() - 0.25) < 0.01


def obeys(rows: pl.DataFrame) -> bool:
    """Whether all rows hold what the schema states."""
    table = open_table(rows, SCHEMA)
    numbers = {}
    for name in list(SCHEMA)[1:]:
        physical = table.physical(name)
        numbers[name] = np.where(False if physical.is_null is None else physical.is_null, np.nan, physical.values)
        step = getattr(SCHEMA[name], "multiple_of", None)
        if step and (numbers[name][~np.isnan(numbers[name])] % step).any():
            return False
    is_named = rows["id"].to_list() == [f"C-{row:06}" for row in range(1, len(rows) + 1)]
    return is_named and all(rule.holds(numbers, SCHEMA).all() for rule in SCHEMA.rules)


def test_every_row_obeys(model):
    """No row breaks a rule, leaves a step or shows an identifier; breaking one value by hand is noticed."""
    rows = model.sample(2000, seed=1)
    assert obeys(rows)
    assert not obeys(rows.with_columns(paid=pl.lit(1000, pl.Int64)))
    assert not obeys(rows.with_columns(rate=pl.col("rate") + 0.1))
    assert not obeys(rows.with_columns(cap=pl.col("cap").fill_null(5.0)))


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        ({"paid": (0, 100)}, {0, 50, 100}),
        ({"paid": (10, 60)}, {50}),
        ({"paid": 50}, {50}),
        ({"paid": [0, 100]}, {0, 100}),
        ({"rate": (0.25, 0.6)}, {0.25, 0.5}),
        ({"rate": 0.75}, {0.75}),
    ],
    ids=str,
)
def test_conditions_are_about_multiples(model, where, wanted):
    """A condition means the values that come out, not those that were drawn before rounding."""
    rows = model.sample(500, seed=2, where=where)
    (name,) = where
    assert set(rows[name].to_list()) == wanted
    assert obeys(rows)


def test_a_condition_at_the_edge_keeps_its_share(model):
    """The first and the last multiple of a range weigh what they weigh without the condition."""
    shares = model.sample(4000, seed=3, where={"paid": (0, 100)})["paid"].value_counts(normalize=True)
    everywhere = model.sample(4000, seed=3).filter(pl.col("paid") <= 100)["paid"].value_counts(normalize=True)
    both = shares.join(everywhere, on="paid")
    assert len(both) == 3
    assert (both["proportion"] - both["proportion_right"]).abs().max() < 0.05


@pytest.mark.parametrize("where", [{"paid": 30}, {"paid": [30, 70]}, {"paid": (51, 99)}, {"rate": 0.3}], ids=str)
def test_conditions_between_multiples(model, where):
    """A condition that no multiple meets is an error that names the column."""
    (name,) = where
    with pytest.raises(ParameterError, match=f"where: column '{name}' (is never|cannot be)"):
        model.sample(5, seed=0, where=where)


def test_identifiers_leave_no_trace(model, tmp_path):
    """The release file knows that there is an identifier, and none of its values."""
    path = tmp_path / "r.spinney"
    model.save(path)
    assert b"SECRET" not in path.read_bytes()
    again = sp.load(path)
    assert again.schema == SCHEMA
    assert again.sample(50, seed=4).equals(model.sample(50, seed=4))
