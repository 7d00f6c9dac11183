"""All that a schema may state at once, kept by every row of a forest: steps, identifiers, rules, under `where` too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.tables.frames import open_table

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


# ------------------------------------------------------------------------------------------- conditions and rules

DAY, SECOND = 86_400_000_000, 1_000_000
CHAINS = {
    "dates": (sp.Date("2015-01-01", "2030-12-31"), 900),
    "moments": (sp.Datetime("2015-01-01", "2030-12-31"), 900 * DAY + SECOND + 1),
    "whole numbers": (sp.Integer(-100, 4000), 700),
    "far numbers": (sp.Integer(10**18, 10**18 + 4000), 700),
    "steps": (sp.Integer(0, 4000, multiple_of=25), 700),
    "reals": (sp.Real(0, 4000), 700.0),
    "cents": (sp.Real(0, 40, multiple_of=0.01), 7.0),
}


@pytest.fixture(scope="module", params=CHAINS.values(), ids=CHAINS)
def chain(request) -> tuple[sp.Release, tuple[list, list, list]]:
    """a <= b <= c, of which b may be null, each some way above the one before; and twenty values of each in order.

    The ways begin at nothing, so that rows with all three nearby are common, and the budget is large: what the tests
    ask for has rows in any such release. Values are the quantiles of many rows, which hardly depend on their seed.
    """
    column, gap = request.param
    rng = np.random.default_rng(1)
    low, high = (column.physical(end) for end in (column.low, column.high))
    n = 4000

    def numbers(share):
        if isinstance(column, sp.Real):
            return low + (high - low) * share
        return low + np.array([int((high - low) * part) for part in share])

    a = numbers(0.6 * rng.random(n))
    b = a + (gap * rng.random(n)).astype(a.dtype)
    c = b + (gap * rng.random(n)).astype(a.dtype)
    schema = sp.Schema(
        {
            "a": column,
            "b": replace(column, nullable=True),
            "c": column,
            "is_open": sp.Boolean(),
        },
        rules=[sp.AtMost("a", "b"), sp.AtMost("b", "c"), sp.AtMost("a", "c"), sp.EmptyWhen("b", "is_open", [True])],
    )
    is_open = rng.random(n) < 0.3
    kinds = {"date": pa.int32(), "datetime": pa.int64()}

    def arrow(values, mask=None):
        made = pa.array(values, mask=mask, type=kinds.get(column.type_name))
        types = {"date": pa.date32(), "datetime": pa.timestamp("us")}
        return made.cast(types[column.type_name]) if column.type_name in types else made

    table = pa.table({"a": arrow(a), "b": arrow(b, is_open), "c": arrow(c), "is_open": is_open})
    release = sp.ForestSynthesizer(10, "1e-5").fit(table, schema, entropy=sp.UnsafeSeededEntropy(3)).release_
    rows = release.sample(4000, seed=4)
    seen = (sorted(rows[name].drop_null().to_pylist()) for name in ("a", "b", "c"))
    return release, tuple(values[len(values) // 40 :: len(values) // 20] for values in seen)


def meets(value, wanted) -> bool:
    """Whether a value is what was asked for."""
    if wanted is None or value is None:
        return value is wanted
    if isinstance(wanted, tuple):
        return wanted[0] <= value <= wanted[1]
    return value in wanted if isinstance(wanted, list) else value == wanted


@pytest.mark.parametrize(
    "ask",
    [
        lambda _, __, c: {"c": c[6]},
        lambda _, __, c: {"c": (c[3], c[6])},
        lambda _, __, c: {"c": (c[0], c[1])},
        lambda _, b, __: {"b": (b[3], b[4])},
        lambda _, b, c: {"b": b[5], "c": (c[4], c[7])},
        lambda _, __, c: {"a": (c[2], c[4]), "c": (c[3], c[5])},
        lambda _, __, c: {"a": (c[2], c[6]), "b": None, "c": (c[3], c[5])},
        lambda _, __, c: {"c": (c[3], c[6]), "is_open": True},
        lambda _, __, c: {"c": (c[3], c[6]), "is_open": False},
    ],
    ids=["c is", "c in", "c in the least", "b in", "b and c", "a and c", "b null", "open", "not open"],
)
@pytest.mark.parametrize("balance", [{}, {"is_open": 0.5}], ids=["as it is", "balanced"])
def test_rows_meet_conditions_and_rules(chain, ask, balance):
    """Both, in every row; a share that a condition rules out is an error."""
    release, values = chain
    where = ask(*values)
    if balance and ("is_open" in where or "b" in where):
        with pytest.raises(ParameterError, match=r"in where and in balance|never occurs in the model"):
            release.sample(10, where=where, balance=balance)
        return
    rows = release.sample(500, seed=4, where=where, balance=balance).to_pylist()
    assert len(rows) == 500
    for row in rows:
        assert all(meets(row[name], wanted) for name, wanted in where.items())
        assert row["a"] <= row["c"]
        assert (row["b"] is None) == row["is_open"]
        assert row["b"] is None or row["a"] <= row["b"] <= row["c"]
    if balance:
        assert abs(np.mean([row["is_open"] for row in rows]) - 0.5) < 0.02


def test_lists_meet_rules_too(chain):
    release, (_, b, c) = chain
    if isinstance(release.schema["c"], sp.Real):  # reals are not listed
        with pytest.raises(ParameterError, match="where"):
            release.sample(3, seed=4, where={"c": [c[4], c[9]]})
        return
    rows = release.sample(300, seed=4, where={"c": [c[4], c[9]], "b": [b[4], b[9]]}).to_pylist()
    assert {row["c"] for row in rows} <= {c[4], c[9]}
    assert {row["b"] for row in rows} == {b[4], b[9]}
    assert all(row["a"] <= row["b"] <= row["c"] for row in rows)


def test_conditions_that_no_row_can_meet(chain):
    """A smaller value above a larger one is refused before a row is drawn."""
    release, (a, b, c) = chain
    assert c[2] < a[14]
    with pytest.raises(ParameterError, match="no row can meet all these conditions together; ask for less"):
        release.sample(5, where={"a": a[14], "c": c[2]})
    with pytest.raises(ParameterError, match="no row can meet all these conditions together; ask for less"):
        release.sample(5, where={"b": b[8], "is_open": True})
