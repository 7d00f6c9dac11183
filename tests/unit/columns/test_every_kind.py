"""Every kind of column answers every question: one list of examples, and one test for each question.

A new kind is added to `spinney.columns.KINDS` and to `EXAMPLES` here. The tests then read its values from everything
that may hold them, count them, write them back, ask for them and draw them.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.cli.conditions import parse_where
from spinney.columns import COLUMN_TYPES, KINDS, Bounded, Column, Listed, whole_range
from spinney.columns.dtypes import group_of
from spinney.columns.objects import convert_objects
from spinney.columns.spelling import PLAIN
from spinney.errors import InputError, ParameterError, SchemaError
from spinney.release.frames import positions_of, to_frame
from spinney.schema.lattice import tree_lattice
from spinney.schema.template import schema_template
from spinney.tables.csv.reader import read_csv
from spinney.tables.described import fits, misfit
from spinney.tables.engines.memory import count_cells
from spinney.tables.frames import open_table
from spinney.tree.bounds import ladder_lattice, widest_bounds

BERLIN, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata")


@dataclass(frozen=True)
class Example:
    """A column, some of its values in ascending physical order, and what they are everywhere else."""

    column: Column
    values: list[Any]
    physical: list[Any]
    texts: list[str]  # as a CSV or a command line may spell them
    wrong: list[Any]  # objects and strings that are none
    others: list[Any] = ()  # other objects that mean the first value


EXAMPLES: dict[type[Column], list[Example]] = {
    sp.Real: [
        Example(
            sp.Real(-2, 2), [-2.0, 0.5, 1.25], [-2.0, 0.5, 1.25], ["-2.0", "0.5", "1.25"], ["abc"], [-2, Decimal(-2)]
        ),
        Example(sp.Real(0, 1, multiple_of=0.1), [0.0, 0.3, 1.0], [0.0, 0.3, 1.0], ["0", "0.3", "1"], ["1,2"], [False]),
    ],
    sp.Integer: [
        Example(
            sp.Integer(-5, 20), [-5, 0, 20], [-5, 0, 20], ["-5", "0", "20"], ["1.5", 1.5, "x"], [-5.0, Decimal(-5)]
        ),
        Example(sp.Integer(0, 100, multiple_of=50), [0, 50, 100], [0, 50, 100], ["0", "50", "1e2"], [0.5], [0.0]),
    ],
    sp.Boolean: [
        Example(sp.Boolean(), [False, True], [0, 1], ["false", "true"], ["perhaps", 2], [0, 0.0, np.bool_(False)]),
    ],
    sp.Date: [
        Example(
            sp.Date("1960-01-01", "1979-12-31"),
            [date(1960, 1, 1), date(1970, 1, 1), date(1979, 12, 31)],
            [-3653, 0, 3651],
            ["1960-01-01", "1970-01-01", "1979-12-31"],
            ["1960-13-01", 3, datetime(1970, 1, 1, tzinfo=UTC)],
            [datetime(1960, 1, 1, 23), np.datetime64("1960-01-01T12")],
        ),
        Example(
            sp.Date("2020-01-06", "2020-12-31", multiple_of=7),
            [date(2020, 1, 6), date(2020, 1, 13), date(2020, 12, 28)],
            [18267, 18274, 18624],
            ["2020-01-06", "2020-01-13", "2020-12-28"],
            ["06/01/2020"],
        ),
    ],
    sp.Datetime: [
        Example(
            sp.Datetime("1960-01-01", "1979-12-31"),
            [datetime(1960, 1, 1), datetime(1970, 1, 1, 0, 0, 1, 5)],
            [-3653 * 86_400_000_000, 1_000_005],
            ["1960-01-01T00:00:00", "1970-01-01 00:00:01.000005"],
            ["yesterday", date(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)],
            [pd.Timestamp("1960-01-01"), np.datetime64("1960-01-01")],
        ),
        Example(
            sp.Datetime("1960-01-01", "1979-12-31", timezone="Europe/Berlin"),
            [datetime(1970, 1, 1, 1, tzinfo=BERLIN), datetime(1970, 1, 1, 2, tzinfo=BERLIN)],
            [0, 3_600_000_000],
            ["1970-01-01T01:00:00+01:00", "1970-01-01T01:00:00Z"],
            ["1970-01-01T01:00:00", datetime(1970, 1, 1)],
            [datetime(1970, 1, 1, tzinfo=UTC)],
        ),
        Example(
            sp.Datetime("1969-06-01", "1970-12-31", timezone="Asia/Kolkata", multiple_of=3600),
            [datetime(1970, 1, 1, tzinfo=KOLKATA), datetime(1970, 1, 1, 6, tzinfo=KOLKATA)],
            [-19_800_000_000, 1_800_000_000],
            ["1970-01-01T00:00:00+05:30", "1970-01-01T00:30:00Z"],
            ["1970-01-01"],
        ),
    ],
    sp.Time: [
        Example(
            sp.Time("08:00", "18:00"),
            [time(8), time(8, 0, 1), time(17, 59, 59, 999999)],
            [28_800_000_000, 28_801_000_000, 64_799_999_999],
            ["08:00", "08:00:01", "17:59:59.999999"],
            ["8 o'clock", "25:00", "08:00+01:00", "08:00.5", 8, datetime(1970, 1, 1, 8), time(8, tzinfo=UTC)],
            [time(8, fold=1)],
        ),
        Example(
            sp.Time(multiple_of=900),
            [time(0), time(0, 15), time(23, 45)],
            [0, 900_000_000, 85_500_000_000],
            ["00:00", " 00:15:00 ", "23:45:00.0"],
            ["24:00", "0015"],
        ),
    ],
    sp.Category: [
        Example(sp.Category(["low", "", "c d"]), ["low", "", "c d"], [0, 1, 2], ["low", "", "c d"], ["lo", 5], []),
        Example(sp.Category([7, 1, 5]), [7, 1, 5], [0, 1, 2], ["7", "1", "5"], ["2", 2, "x"], [7.0, Decimal(7)]),
    ],
    sp.Identifier: [
        Example(sp.Identifier(), [1, 2], [1, 2], ["1", "2"], []),
        Example(sp.Identifier(prefix="C-"), ["C-000001"], [1], ["C-000001"], []),
    ],
    sp.Ignore: [Example(sp.Ignore(), [], [], [], [])],
}
ALL = [example for examples in EXAMPLES.values() for example in examples]
READ = [example for example in ALL if example.column.is_read]
QUESTIONS = sorted(Column.__abstractmethods__)


def named(example: Example) -> str:
    return repr(example.column)


every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type_name)
every_column = pytest.mark.parametrize("example", ALL, ids=named)
every_read_column = pytest.mark.parametrize("example", READ, ids=named)
with_nulls = pytest.mark.parametrize("nullable", [False, True])


def check_physical(found: Any, expected: list[Any], *, n_nulls: int = 0) -> None:
    """Numbers as expected, with nulls at the end."""
    n_values = len(expected)
    assert found.values[:n_values].tolist() == expected
    is_null = ~np.isfinite(found.values) if found.is_null is None else found.is_null
    assert is_null.tolist() == [False] * n_values + [True] * n_nulls


# ------------------------------------------------------------------------------------------------------- registry


def test_examples_of_all_kinds():
    """Every kind in the registry has examples here, and is at the public door by its own name."""
    assert set(EXAMPLES) == set(KINDS)
    assert list(COLUMN_TYPES.values()) == list(KINDS)
    for kind in KINDS:
        assert getattr(sp, kind.__name__) is kind
        assert all(type(example.column) is kind for example in EXAMPLES[kind])


def test_there_are_questions():
    """The questions that have no common answer are abstract; there are many."""
    assert len(QUESTIONS) > 15
    assert {"read", "reading", "from_strings", "to_arrow", "template", "whole_range"} <= set(QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_forgotten_answer_is_noticed(question):
    """A kind that lacks one answer cannot be made; with it, it can."""
    answers = {name: lambda *_: None for name in QUESTIONS if name != question}
    forgetful = type("Forgetful", (Column,), answers)
    with pytest.raises(TypeError, match=question):
        forgetful()
    complete = type("Complete", (Column,), answers | {question: lambda *_: None})
    assert complete().nullable is False


@every_kind
def test_every_kind_says_what_it_is(kind):
    """Class-wide answers are there and make sense."""
    assert not inspect.isabstract(kind)
    assert COLUMN_TYPES[kind.type_name] is kind
    assert kind.axis_kind in ("real", "integer", "category")
    assert kind.spark_cast
    assert kind.__doc__
    if issubclass(kind, Bounded):
        smallest, largest = kind.rungs
        assert smallest < largest
        assert kind.compared_as
        assert kind.reach
    else:
        assert kind.compared_as is None


def test_no_two_kinds_claim_a_type():
    """What a type of a table can only mean is said by one kind."""
    claims = [group for kind in KINDS for group in kind.describes]
    assert len(claims) == len(set(claims))


def test_importing_kinds_is_light():
    """Stating columns loads none of the libraries that reading needs."""
    code = (
        "import sys, json, spinney.columns\n"
        "print(json.dumps([n for n in ('numpy', 'pyarrow', 'narwhals', 'pandas', 'numba') if n in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


# -------------------------------------------------------------------------------------------------------- stating


@every_column
def test_plain_data_and_back(example):
    """A column survives TOML, and its repr is the call that makes it."""
    schema = sp.Schema({"x": example.column})
    assert sp.Schema.from_toml(schema.to_toml()) == schema
    assert sp.Schema.from_dict(schema.to_dict()) == schema
    assert eval(repr(example.column), vars(sp) | {kind.__name__: kind for kind in KINDS}) == example.column


def arrow_of(example: Example, values: list[Any]) -> pa.Array:
    return pa.array(values, example.column.arrow_type)


def types_of(column: Column) -> list[pa.DataType]:
    """The Arrow type of the column, alone and in a dictionary where a template may meet it."""
    return [column.arrow_type, pa.dictionary(pa.int32(), column.arrow_type)]


@every_kind
def test_templates_of_its_own_type(kind):
    """A template for the type that values have says the kind, and is valid once bounds are paid for or listed."""
    told = set()
    for example in EXAMPLES[kind]:
        if not example.column.is_read:
            assert kind.template(pa.int64(), lambda *blanks: blanks) is None
            continue
        for arrow_type in types_of(example.column):
            text = schema_template(pa.schema([("x", arrow_type)]), private_bounds=True)
            text = text.replace('# values = ["", ""]', 'values = ["", "a"]')
            told.add(sp.Schema.from_toml(text)["x"].type_name)
            blank = schema_template(pa.schema([("x", arrow_type)]))
            assert "[columns.x]" in blank
    if kind is sp.Category:  # numbers may be codes, which the template of integers says
        assert told == {"category", "integer"}
    else:
        assert told == ({kind.type_name} if kind.is_read else set())


def test_templates_of_other_types():
    """A type that no kind has lists all kinds."""
    text = schema_template(pa.schema([("x", pa.duration("s"))]))
    assert all(name in text for name in COLUMN_TYPES)


# -------------------------------------------------------------------------------------------------------- reading


@every_read_column
def test_objects(example):
    """Python objects, and other objects that mean the same, become the physical numbers; what is none is refused."""
    column = replace(example.column, nullable=True)
    array = convert_objects([*example.values, None, float("nan")], column)
    assert array.type == column.arrow_type
    check_physical(column.read(array), example.physical, n_nulls=2)
    for other in example.others:
        check_physical(column.read(convert_objects([other], column)), example.physical[:1])
    for wrong in example.wrong:
        if not isinstance(wrong, str):
            with pytest.raises(InputError):
                column.read(convert_objects([wrong], column))


@every_read_column
def test_strings(example):
    """Strings become the same numbers; spellings of "missing" are null; what cannot be read is refused."""
    column = replace(example.column, nullable=True)
    spelt = [*example.texts, "NA", None]
    check_physical(column.read(column.from_strings(pa.array(spelt, pa.string()))), example.physical, n_nulls=2)
    assert column.from_strings(pa.array([], pa.string())).type == column.arrow_type
    assert column.from_strings(pa.chunked_array([pa.array(example.texts)])).type == column.arrow_type
    for wrong in example.wrong:
        if isinstance(wrong, str):
            with pytest.raises((InputError, pa.ArrowInvalid)):
                column.read(column.from_strings(pa.array([wrong])))
            cause = column.cause(wrong, PLAIN)
            assert len(cause) > 10
            assert wrong not in cause.split()
    assert "write" in column.spelling_remedy


@every_read_column
def test_csv(example, tmp_path):
    """A CSV file gives the same numbers."""
    schema = sp.Schema({"x": example.column, "row": sp.Integer(0, 9)})
    path = tmp_path / "table.csv"
    path.write_text("x,row\n" + "".join(f'"{text}",{row}\n' for row, text in enumerate(example.texts)))
    table = open_table(read_csv(str(path), schema), schema)
    check_physical(table.physical("x"), example.physical)
    for wrong in example.wrong:
        if isinstance(wrong, str):
            path.write_text(f'x,row\n"{wrong}",1\n')
            with pytest.raises(InputError, match="line 2, column 'x'"):
                sp.KDTreeSynthesizer("1").fit(sp.CSV(path), schema)


@every_read_column
@pytest.mark.parametrize("library", ["pandas", "pandas objects", "polars", "pyarrow", "strings"])
def test_frames(example, library):
    """Every library's table gives the same numbers, with nulls among them."""
    column = replace(example.column, nullable=True)
    table = pa.table({"x": arrow_of(example, [*example.values, None])})
    frame: Any = table
    if library == "pandas":
        frame = table.to_pandas()
    elif library == "pandas objects":
        frame = pd.DataFrame({"x": pd.Series([*example.values, None], dtype=object)})
    elif library == "polars":
        frame = pl.from_arrow(table)
    elif library == "strings":
        frame = pl.DataFrame({"x": [*example.texts, None]})
    opened = open_table(frame, sp.Schema({"x": column}))
    check_physical(opened.physical("x"), example.physical, n_nulls=1)


@every_read_column
def test_types_that_fit(example):
    """The column's own type fits; of all other types, those that do not fit are refused with something to do."""
    column = example.column
    own = nw.from_native(pa.table({"x": arrow_of(example, example.values)}), eager_only=True)["x"].dtype
    assert fits(own, column)
    moment = nw.Datetime("us")
    dtypes = [
        nw.Float32(),
        nw.Int8(),
        nw.UInt64(),
        nw.Boolean(),
        nw.Date(),
        moment,
        nw.Datetime("us", "UTC"),
        nw.Time(),
    ]
    refused = [dtype for dtype in dtypes if not fits(dtype, column)]
    assert refused
    for dtype in refused:
        assert group_of(dtype) not in column.accepts
        message = str(misfit("x", dtype, column))
        assert message.startswith("column 'x' has type ")
        assert any(word in message for word in ("describe it as", "convert", "name the zone", "leave timezone out"))


@every_read_column
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_expressions(example, library):
    """An engine's expressions give the same numbers as Arrow, mark what is missing, and what is wrong."""
    column = replace(example.column, nullable=True)
    held = example.values if isinstance(column, Listed) else example.physical
    frame: Any = pl.DataFrame({"x": [*held, None]})
    if library == "pandas":
        frame = frame.to_pandas(use_pyarrow_extension_array=True)
    wrapped = nw.from_native(frame, eager_only=True)
    reading = column.reading(nw.col("x"), wrapped["x"].dtype)
    found = wrapped.select(n=reading.number, m=reading.is_missing, w=reading.is_wrong)
    assert found["n"].to_list()[:-1] == example.physical
    assert found["m"].to_list() == [False] * len(held) + [True]
    assert not any(found["w"].to_list())
    assert column.complaint.startswith("some value ")


# ----------------------------------------------------------------------------------------------------- cells and back


@every_read_column
@with_nulls
def test_cells(example, nullable):
    """Values of a column have cells of its axis, in order, and null has its own."""
    column = replace(example.column, nullable=nullable, bits=None)
    schema = sp.Schema({"x": column})
    table = open_table(pa.table({"x": arrow_of(example, [*example.values, *([None] if nullable else [])])}), schema)
    lattice = tree_lattice(schema)
    assert lattice.axes[0].kind == column.axis_kind
    assert count_cells(table, lattice).true_total() == len(example.values) + nullable
    if column.is_whole:
        first, last = whole_range(column)
        assert first <= min(example.physical) <= max(example.physical) <= last
        assert column.spacing == column.step >= 1
    else:
        assert column.whole_range() is None


@every_read_column
@with_nulls
@pytest.mark.parametrize("kind", ["pyarrow", "pandas", "polars", "numpy"])
def test_there_and_back(example, nullable, kind):
    """Numbers become positions, and positions the values that came in, of the type that came in."""
    column = replace(example.column, nullable=nullable)
    schema = sp.Schema({"x": column})
    positions = positions_of(np.array([example.physical], dtype=np.float64), schema)
    if nullable:
        positions = np.append(positions, [[np.nan]], axis=1)
    if kind == "numpy" and not column.fits_array:
        with pytest.raises(ParameterError, match="cannot hold a column of type"):
            to_frame(positions, schema, kind)
        return
    frame = to_frame(positions, schema, kind)
    if kind == "numpy":
        assert frame[: len(example.values), 0].tolist() == [float(value) for value in example.values]
        return
    opened = open_table(frame, schema)
    check_physical(opened.physical("x"), example.physical, n_nulls=int(nullable))
    if kind == "pyarrow":
        assert frame["x"].type == column.arrow_type
        assert frame["x"].to_pylist()[: len(example.values)] == example.values


@every_column
def test_arrays(example):
    """A numeric array is refused where the column cannot be in one, and only there."""
    schema = sp.Schema({"x": example.column})
    if example.column.fits_array:
        open_table(np.zeros((1, 1)), schema)
    else:
        with pytest.raises(SchemaError, match="numeric array"):
            open_table(np.zeros((1, 1)), schema)


@every_read_column
def test_leaves(example):
    """The ends of leaves are told in the column's own values."""
    positions = positions_of(np.array([example.physical], dtype=np.float64), sp.Schema({"x": example.column}))[0]
    length = np.full(len(positions), 1.0 if example.column.is_whole else 1e-9)
    ends = example.column.leaf_ends(positions, length)
    assert [low for low, _ in ends] == example.values
    if example.column.is_whole:
        assert [high for _, high in ends] == example.values


@pytest.mark.parametrize("synthesizer", [sp.KDTreeSynthesizer, sp.ForestSynthesizer])
def test_all_kinds_through_a_synthesizer(synthesizer):
    """A table of all kinds, with nulls and private bounds, is fitted and drawn, and comes back in its own types."""
    columns, arrays, rows = {}, {}, 400
    chosen = READ if synthesizer is sp.ForestSynthesizer else READ[:8]
    for index, example in enumerate(chosen):
        nullable = index % 2 == 0
        values = (example.values + [None] * nullable) * rows
        columns[f"x{index}"] = replace(example.column, nullable=nullable)
        arrays[f"x{index}"] = arrow_of(example, values[:rows])
    table = pa.table(arrays)
    model = synthesizer("20").fit(table, sp.Schema(columns))
    drawn = model.sample(50, seed=1, frame="pyarrow")
    assert drawn.schema.types == table.schema.types
    for name, column in columns.items():
        if not column.nullable:
            assert drawn[name].null_count == 0


# --------------------------------------------------------------------------------------------- bounds and conditions


@pytest.mark.parametrize("example", [e for e in READ if isinstance(e.column, Bounded)], ids=named)
def test_bounds_to_be_found(example):
    """Ladders of magnitudes give bounds that the column can have; so do the extremes of a table."""
    column = replace(example.column, low=None, high=None, bounds="private")
    axis = ladder_lattice("x", column).axes[0]
    assert axis.kind == "ladder"
    widest = column.with_bounds(*widest_bounds(column))
    assert widest.low < widest.high
    assert all(widest.physical(widest.low) <= number <= widest.physical(widest.high) for number in example.physical)
    from_data = replace(example.column, low=None, high=None, bounds="from-data-not-private")
    found = from_data.with_bounds(*from_data.from_extremes(example.physical[0], example.physical[-1]))
    assert found.physical(found.low) <= example.physical[0]
    assert found.physical(found.high) >= example.physical[-1]
    assert [column.logical(column.physical(value)) for value in example.values] == example.values
    assert [column.physical(column.limit(number)) for number in example.physical] == example.physical


@every_read_column
def test_conditions(example):
    """A value in Python and its text on a command line ask for the same physical number; nonsense is refused."""
    column = example.column
    schema = sp.Schema({"x": column})
    for value, text, number in zip(example.values, example.texts, example.physical, strict=True):
        asked = parse_where([f"x={text}"], schema)["x"]
        for wanted in (value, asked):
            if isinstance(column, Listed):
                assert column.place_of(wanted, name="x", argument="where") == number
            else:
                assert column.wanted(wanted, "x") == number
    with pytest.raises(ParameterError, match="where"):
        column.place_of(b"no", name="x", argument="where") if isinstance(column, Listed) else column.wanted(b"no", "x")


@every_read_column
def test_rows_under_a_condition(example):
    """A forest draws rows that have the value asked for, or lie in the range asked for."""
    rng = np.random.default_rng(0)
    values = [example.values[place] for place in rng.integers(0, len(example.values), 600)]
    table = pa.table({"x": arrow_of(example, values), "b": pa.array(rng.random(600) < 0.5)})
    schema = sp.Schema({"x": example.column, "b": sp.Boolean()})
    model = sp.ForestSynthesizer("50").fit(table, schema)
    value = example.values[1]
    drawn = model.sample(20, where={"x": value}, seed=0, frame="pyarrow")["x"].to_pylist()
    assert drawn == [value] * 20
    if isinstance(example.column, Bounded):
        low, high = example.values[0], example.values[1]
        drawn = model.sample(40, where={"x": (low, high)}, seed=0, frame="pyarrow")["x"].to_pylist()
        assert all(low <= one <= high for one in drawn)


# ------------------------------------------------------------------------------------------------------- pictures


@every_read_column
def test_pictures(example):
    """A picture has a range that holds all values, and ticks that can be drawn."""
    from matplotlib.figure import Figure

    low, high = example.column.drawn_range()
    assert low < high
    assert example.column.drawn_scale > 0
    figure = Figure()
    axes = figure.add_subplot()
    axes.set_xlim(low, high)
    example.column.set_ticks(axes.xaxis)
    figure.draw_without_rendering()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert any(labels)


# ----------------------------------------------------------------------------------------------------- identifiers


def test_identifiers_are_asked_nothing():
    """What is never read refuses every question about values, in words."""
    for name in QUESTIONS:
        if name in ("template", "fits_array", "to_positions", "to_arrow"):
            continue
        for column in (sp.Identifier(), sp.Ignore()):
            with pytest.raises(SchemaError, match=f"a column of type {column.type_name} is never read"):
                getattr(column, name)()
    for name in ("to_positions", "to_arrow"):
        with pytest.raises(SchemaError, match="a column of type ignore is never read"):
            getattr(sp.Ignore(), name)(np.zeros(2))
    assert sp.Identifier(prefix="C-").to_arrow(np.zeros(2)).to_pylist() == ["C-000001", "C-000002"]
