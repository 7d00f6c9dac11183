"""Gathering persons: numbers for keys, rows sorted and cut by person, one row picked, and what is refused."""

from __future__ import annotations

import pickle
import tracemalloc
import uuid
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy.stats import chisquare

import spinney as sp
from spinney.columns.identifier import Key
from spinney.errors import InputError, SchemaError, SpinneyError
from spinney.schema.linked import PeopleShape
from spinney.tables.engines.memory import open_memory
from spinney.tables.persons import gather
from spinney.tables.source import HeldRows
from support.in_one_test import in_one_test

PERSONS = sp.Schema({"id": sp.Identifier(), "region": sp.Category(["west", "east"], nullable=True), "x": sp.Ignore()})
ROWS = sp.Schema({"who": sp.Identifier(), "day": sp.Integer(0, 99), "kind": sp.Category(["a", "b", "z"])})


def coins(seed=1):
    return np.random.default_rng(seed)


def linked(*, most=100, rows=ROWS, **options):
    links = [sp.Link("rows.who", "people.id", most=most, **options)]
    return PeopleShape.of(sp.Tables({"people": PERSONS, "rows": rows}, links=links))


def flat(*, most_rows=100, **options):
    return PeopleShape.of(sp.Schema(dict(ROWS), person="who", most_rows=most_rows, **options))


def people(ids=("p", "q", "r")):
    regions = ["west", None, "east", "west"][: len(ids)]
    return pd.DataFrame({"id": list(ids), "region": regions, "x": 0.5})


def rows(who="qpqqr", days=None, kinds=None):
    n = len(who)
    return pd.DataFrame({"who": list(who), "day": days or list(range(n)), "kind": kinds or ["a"] * n})


def days_of(gathered, table=0):
    """The days of each person, in order."""
    found = gathered.rows[table]
    days = found.table["day"].to_pylist()
    return [days[start:stop] for start, stop in zip(found.starts, found.starts[1:], strict=False)]


# ------------------------------------------------------------------------------------------------- what is gathered


def test_rows_follow_their_persons():
    """Row p of the persons and the rows from starts[p] on are one person, also one without rows."""
    for seed in range(6):
        gathered = gather({"people": people("pqrs"), "rows": rows()}, linked(order="day"), rng=coins(seed))
        regions = gathered.persons["region"].to_pylist()
        assert gathered.persons.column_names == ["region"]
        assert gathered.n_persons == 4
        assert sorted(zip(regions, days_of(gathered), strict=True), key=repr) == sorted(
            [("west", [1]), (None, [0, 2, 3]), ("east", [4]), ("west", [])], key=repr
        )


def test_a_flat_table_has_the_persons_of_its_keys():
    """Who has a row is a person."""
    gathered = gather(rows(), flat(order="day"), rng=coins())
    assert gathered.persons is None
    assert (gathered.n_persons, gathered.kind) == (3, "pandas")
    assert sorted(days_of(gathered)) == [[0, 2, 3], [1], [4]]


def test_numbers_of_persons_say_nothing_about_the_order_of_the_table():
    """The first of a table is anybody."""
    frame = rows("".join(map(chr, range(97, 107))))
    first = Counter(days_of(gather(frame, flat(order="day"), rng=coins(seed)))[0][0] for seed in range(400))
    assert chisquare([first[day] for day in range(10)]).pvalue > 1e-4


def test_an_order_keeps_the_first_rows():
    """Beyond the limit the later rows go, whichever came first in the table."""
    frame = rows("ppppqq", days=[9, 3, 5, 1, 8, 2])
    assert sorted(days_of(gather(frame, flat(order="day", most_rows=2), rng=coins()))) == [[1, 3], [2, 8]]


def test_without_an_order_any_rows_stay_in_any_order():
    """All ordered pairs of three rows are equally likely, for each person by itself."""
    frame = pa.Table.from_pandas(rows("pppqqq", days=[0, 1, 2, 10, 11, 12]))
    seen = Counter()
    for seed in range(1800):
        first, second = sorted(days_of(gather(frame, flat(most_rows=2), rng=coins(seed))))
        seen[tuple(first), tuple(second)] += 1
    assert len(seen) == 36
    assert chisquare(list(seen.values())).pvalue > 1e-4


def test_ties_are_broken_by_coins():
    """Of equal days either row is first."""
    frame = rows("ppp", days=[5, 5, 1], kinds=["a", "b", "z"])
    kinds = Counter(
        tuple(gather(frame, flat(order="day", most_rows=2), rng=coins(seed)).rows[0].table["kind"].to_pylist())
        for seed in range(400)
    )
    assert set(kinds) == {("z", "a"), ("z", "b")}
    assert 120 < kinds["z", "a"] < 280


def test_rules_of_positions_decide_among_equals():
    """What comes first is first, and what nothing follows is last, before any coin is asked."""
    rules = [sp.First("kind", ["b"]), sp.NeverAfter("kind", ["z"])]
    frame = rows("pppp", days=[5, 5, 5, 7], kinds=["z", "a", "b", "b"])
    for seed in range(8):
        gathered = gather(frame, flat(order="day", rules=rules), rng=coins(seed))
        assert gathered.rows[0].table["kind"].to_pylist() == ["b", "a", "z", "b"]
        unordered = gather(frame, flat(rules=rules[:1]), rng=coins(seed))
        assert unordered.rows[0].table["kind"].to_pylist()[:2] == ["b", "b"]


def test_one_row_of_every_person_is_picked_evenly():
    """Each kept row is as likely as the others, and persons without rows have none."""
    frames = {"people": people("pqrs"), "rows": rows("pppq", days=[0, 1, 2, 3])}
    seen = Counter()
    for seed in range(900):
        found = gather(frames, linked(order="day", most=2), rng=coins(seed)).rows[0]
        days = found.table["day"].to_numpy()
        assert len(found.one) == 2
        seen[tuple(sorted(days[found.one]))] += 1
    assert set(seen) == {(0, 3), (1, 3)}
    assert chisquare(list(seen.values())).pvalue > 1e-4


def test_what_stays_of_a_person_does_not_depend_on_others():
    """The law of p's rows is the same whether q has no row, or many."""
    law = {}
    for others in ("", "qqqqqqqqqq"):
        frame = pa.Table.from_pandas(rows("ppp" + others))
        seen = Counter()
        for seed in range(600):
            seen[tuple(min(days_of(gather(frame, flat(most_rows=2), rng=coins(seed)))))] += 1
        law[others] = [seen[pair] for pair in ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1))]
    assert all(chisquare(counts).pvalue > 1e-4 for counts in law.values())


def test_two_tables_of_rows_have_the_same_persons():
    """Person p is the same in all tables."""
    links = [sp.Link("rows.who", "people.id", most=9, order="day"), sp.Link("more.who", "people.id", most=9)]
    shape = PeopleShape.of(sp.Tables({"people": PERSONS, "rows": ROWS, "more": ROWS}, links=links))
    frames = {"people": people(), "rows": rows("ppqr"), "more": pl.from_pandas(rows("qqqp"))}
    gathered = gather(frames, shape, rng=coins())
    assert gathered.kinds == {"people": "pandas", "rows": "pandas", "more": "polars"}
    counts = [found.counts.tolist() for found in gathered.rows]
    assert sorted(zip(*counts, strict=True)) == [(1, 0), (1, 3), (2, 1)]


def test_sums_are_gathered_as_their_residuals():
    """What is modelled in the place of a computed column is what comes out."""
    schema = sp.Schema(
        {"who": sp.Identifier(), "a": sp.Integer(0, 9), "total": sp.Real(-2, 20), "b": sp.Integer(0, 9)},
        rules=[sp.Sum("total", ["a", "b"], residual=sp.Real(-2, 2))],
        person="who",
        most_rows=3,
    )
    shape = PeopleShape.of(schema)
    frame = pl.DataFrame({"who": [1, 1, 2], "a": [1, 2, 3], "total": [4, 4, 8], "b": [2, 2, 4]})
    table = gather(frame, shape, rng=coins()).rows[0].table
    assert sorted(zip(*(table[name].to_pylist() for name in ("a", "total", "b")), strict=True)) == [
        (1, 1.0, 2),
        (2, 0.0, 2),
        (3, 1.0, 4),
    ]
    open_memory(table, shape.rows[0].modelled).check_values()


def test_no_rows_are_no_persons():
    """An empty table is a table; whether that is an error, the unit of privacy says."""
    gathered = gather(rows("").astype({"day": int}), flat(order="day"), rng=coins())
    assert (gathered.n_persons, gathered.rows[0].starts.tolist(), len(gathered.rows[0].one)) == (0, [0], 0)
    lonely = gather({"people": people(), "rows": rows("").astype({"day": int})}, linked(), rng=coins())
    assert lonely.rows[0].counts.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "keys",
    [
        [uuid.UUID(int=7), uuid.UUID(int=7), uuid.UUID(int=8)],
        [2**62, 2**62, -1],
        [b"\xff", b"\xff", b"\x00"],
        ["NA", "NA", "ä"],
        [" a", " a", "a"],
    ],
    ids=["uuid", "large", "bytes", "NA", "blank"],
)
def test_keys_of_any_plain_kind_are_compared_as_they_are(keys):
    """Equal keys are one person, and nothing is made of them."""
    frame = pd.DataFrame({"who": pd.Series(keys, dtype=object), "day": [0, 1, 2], "kind": ["a"] * 3})
    assert sorted(days_of(gather(frame, flat(order="day"), rng=coins()))) == [[0, 1], [2]]


def test_what_is_gathered_is_neither_shown_nor_written():
    """It is as private as the table."""
    gathered = gather(rows(), flat(), rng=coins())
    for thing in (gathered, gathered.rows[0]):
        assert repr(thing) == f"{type(thing).__name__}(sensitive)"
        with pytest.raises(TypeError, match="sensitive"):
            pickle.dumps(thing)


# ---------------------------------------------------------------------------------------------------- what is refused

SECRET = "somebody@example.org"


def csv(tmp_path, frame, name="t.csv"):
    frame.to_csv(tmp_path / name, index=False)
    return tmp_path / name


@pytest.mark.parametrize("hold", ["pandas", "polars", "csv", "parquet"])
@pytest.mark.parametrize("missing", [None, ""])
def test_rows_without_a_key_are_refused(hold, missing, tmp_path):
    """A null or empty key is nobody's, in every kind of table."""
    frame = rows("ppp").assign(who=[SECRET, missing, SECRET])
    held = {
        "pandas": lambda: frame,
        "polars": lambda: pl.from_pandas(frame).lazy(),
        "csv": lambda: csv(tmp_path, frame),
        "parquet": lambda: frame.to_parquet(tmp_path / "t.parquet") or tmp_path / "t.parquet",
    }[hold]()
    with pytest.raises(InputError, match="column 'who' holds missing keys") as err:
        gather(held, flat(), rng=coins())
    assert SECRET not in str(err.value)


@pytest.mark.parametrize("hold", ["pandas", "polars", "csv", "parquet"])
def test_an_order_that_is_missing_is_not_told_to_be_nullable(hold, tmp_path):
    """Which an order cannot be: the remedy is one that helps, and the check of a table says the same."""
    frame = rows("ppp").assign(day=pd.array([1, None, 3], dtype="Int64"))
    held = {
        "pandas": lambda: frame,
        "polars": lambda: pl.from_pandas(frame).lazy(),
        "csv": lambda: csv(tmp_path, frame),
        "parquet": lambda: frame.to_parquet(tmp_path / "t.parquet") or tmp_path / "t.parquet",
    }[hold]()
    helps = "holds a missing or non-finite value, and rows without a place have no order; drop these rows"
    with pytest.raises(InputError, match=f"column 'day'.* {helps}"):
        gather(held, flat(order="day"), rng=coins())
    schema = sp.Schema(dict(ROWS), person="who", most_rows=9, order="day")
    assert [helps in fault.message for fault in sp.check(held, schema).faults] == [True]
    differences = "it is learnt by differences, which a missing value has none of"
    with pytest.raises(InputError, match=differences):
        gather(held, flat(differences=["day"]), rng=coins())
    tables = {"people": people(), "rows": frame}
    with pytest.raises(InputError, match=f"table 'rows': column 'day' {helps}"):
        gather(tables, linked(order="day"), rng=coins())
    stated = sp.Tables({"people": PERSONS, "rows": ROWS}, links=[sp.Link("rows.who", "people.id", most=9, order="day")])
    assert [helps in fault.message for fault in sp.check(tables, stated).faults] == [True]
    with pytest.raises(InputError, match="declare it nullable"):
        gather(held, flat(), rng=coins())


@pytest.mark.parametrize("is_chunked", [False, True])
def test_keys_of_any_layout_are_compared(is_chunked):
    """Runs of equal keys and views of bytes are strings, whole numbers or bytes like any other."""
    frame = pa.Table.from_pandas(rows("ppqqr"))

    def n_persons(keys):
        keys = pa.chunked_array([keys.slice(0, 2), keys.slice(2)]) if is_chunked else keys
        return gather(frame.set_column(0, "who", keys), flat(), rng=coins()).n_persons

    texts, numbers = pa.array(list("ppqqr")), pa.array([7, 7, 8, 8, 9])
    for keys in (texts, numbers, texts.cast(pa.binary())):
        assert n_persons(pc.run_end_encode(keys)) == 3
    assert n_persons(pa.array([b"p", b"p", b"q", b"q", b"r"], pa.binary_view())) == 3
    with pytest.raises(InputError, match="keys are strings, whole numbers or bytes"):
        n_persons(pc.run_end_encode(pa.array([0.5, 0.5, 1.5, 1.5, 2.5])))


@in_one_test(
    ("frames", "said"),
    [
        ({"people": people(["p", "q", SECRET, SECRET])}, "table 'people': column 'id' holds some key twice"),
        (
            {"rows": rows("pqr").assign(who=["p", "q", SECRET])},
            "table 'rows': column 'who' holds keys that table 'people' does not have in 'id'",
        ),
        (
            {"rows": rows("pqr").assign(who=[1, 2, 3])},
            "table 'rows': its column 'who' and column 'id' of table 'people' have keys of different types, "
            "whole numbers and strings; convert one of them \\(keys of CSV files are read as strings\\)",
        ),
        ({"rows": rows("pqr").assign(who=[0.5, 1.5, 2.5])}, "table 'rows': column 'who': keys are strings"),
        ({"rows": rows("pqr").assign(who=[1, None, 2])}, "table 'rows': column 'who' holds missing keys"),
        (
            {"rows": rows("pqr").assign(who=pd.to_datetime(["2020-01-01"] * 3))},
            "table 'rows': column 'who' has type Datetime .* fit identifier .*; keys are strings",
        ),
        (
            {"rows": rows("pqr").assign(who=pd.Series([1, SECRET, 2], dtype=object))},
            "table 'rows': column 'who': some key cannot be read",
        ),
        (
            {"rows": rows("pqr").assign(who=pd.Series([(1,), (SECRET,), 2], dtype=object))},
            "table 'rows': column 'who': keys are strings, whole numbers or bytes",
        ),
        ({"rows": rows("pqr").drop(columns="who")}, "table 'rows': column 'who' is in the schema but not in the table"),
        ({"rows": rows("pqr").assign(kind=["a", "b", SECRET])}, "table 'rows': column 'kind': some value is not"),
        ({"rows": rows("pqr").assign(day=[1, None, 3])}, "table 'rows': column 'day' holds a missing"),
        ({"rows": np.zeros((3, 3))}, "table 'rows': an array of numbers cannot hold the keys"),
        ({"orders": rows("pqr")}, "there is no table 'orders' in sp.Tables"),
        ({"rows": 7}, "table 'rows': an int is not a table"),
    ],
)
def test_tables_that_do_not_fit_are_refused(frames, said):
    """The error names the table and the column, and no key."""
    with pytest.raises(SpinneyError, match=said) as err:
        gather({"people": people(), "rows": rows()} | frames, linked(order="day"), rng=coins())
    assert isinstance(err.value, (InputError, SchemaError))
    assert SECRET not in str(err.value)
    assert err.value.__context__ is None


def test_linked_tables_come_by_name():
    """One table is not two."""
    with pytest.raises(InputError, match=r"by name, \{'people': ..., 'rows': ...\}, and this is a DataFrame"):
        gather(rows(), linked(), rng=coins())
    with pytest.raises(InputError, match="table 'rows' is missing"):
        gather({"people": people()}, linked(), rng=coins())


def test_keys_of_several_types_in_several_files_are_refused(tmp_path):
    """Numbers in one file and strings in another are not the same persons."""
    rows("pq").to_parquet(tmp_path / "1.parquet")
    rows("pq").assign(who=[1, 2]).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(InputError, match="column 'who' holds keys of several types"):
        gather(tmp_path, flat(), rng=coins())


def test_keys_in_csv_files_are_text(tmp_path):
    """007 is not 7, in both tables."""
    persons = csv(tmp_path, people(["007", "7"]), "people.csv")
    frame = csv(tmp_path, rows("abc").assign(who=["7", "007", "007"]), "rows.csv")
    gathered = gather({"people": persons, "rows": frame}, linked(order="day"), rng=coins())
    assert sorted(days_of(gathered)) == [[0], [1, 2]]


def test_columns_are_checked_before_any_table_is_read(monkeypatch):
    """Names and types of all tables come first."""
    frames = {"people": people(), "rows": rows().drop(columns="day")}
    monkeypatch.setattr("spinney.tables.source.HeldRows.fill_from", None)
    with pytest.raises(SchemaError, match="table 'rows': column 'day'"):
        gather(frames, linked(order="day"), rng=coins())


def test_a_table_is_never_there_three_times():
    """Columns are forgotten here as they are handed out: beside the table given there are two at most, with indices."""
    n, names = 200_000, [f"x{place}" for place in range(8)]
    rng = coins()
    table = pa.table({"who": rng.integers(0, n // 10, n), **{name: rng.random(n) for name in names}})
    columns = {"who": sp.Identifier(), **{name: sp.Real(0, 1) for name in names}}
    shape = PeopleShape.of(sp.Schema(columns, person="who", most_rows=30, order="x0"))
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    gathered = gather(table, shape, rng=coins())
    peak = tracemalloc.get_traced_memory()[1] + pa.total_allocated_bytes() - before
    tracemalloc.stop()
    assert gathered.rows[0].table.num_rows == n
    assert peak < 2 * table.nbytes


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 1, 0)])
def test_keys_of_files_without_rows_take_no_others_place(order):
    """Threads fill batches in any order, and a batch without rows begins where the next one does."""
    rows = HeldRows(sp.Schema({"who": Key()}), 3)
    batches = [(0, pa.array([7])), (1, pa.array([], pa.int64())), (1, pa.array([8, 9]))]
    for number in order:
        start, keys = batches[number]
        rows.fill_keys(start, lambda keys=keys: keys)
    assert rows.keys().to_pylist() == [7, 8, 9]
