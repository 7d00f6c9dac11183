"""Columns that are fixed parts of others: ratios as they are stated, exact steps, codes, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import SchemaError
from spinney.schema.rules.related import parse_ratio, ratio_text
from spinney.tables.frames import open_table

WHOLE = sp.Integer(0, 1_000_000)
CENTS = sp.Real(-50, 2000, multiple_of=0.01)


def related(ratios, column=WHOLE, base=WHOLE) -> sp.Schema:
    return sp.Schema({"x": column, "y": base}, rules=[sp.Related("x", "y", ratios=ratios)])


@pytest.mark.parametrize(
    ("stated", "ratio"),
    [
        (1, Fraction(1)),
        (0.75, Fraction(3, 4)),
        ("0.1", Fraction(1, 10)),
        (" 1/3 ", Fraction(1, 3)),
        (Decimal("1.25"), Fraction(5, 4)),
        (Fraction(2, 7), Fraction(2, 7)),
    ],
)
def test_ratios_are_what_is_written(stated, ratio):
    """A tenth is a tenth, and a ratio is written and read back as itself."""
    assert parse_ratio(stated) == ratio
    assert parse_ratio(ratio_text(ratio)) == ratio


@pytest.mark.parametrize(
    "stated", [0, -1, "0", "-0.5", "abc", "1/0", True, None, float("nan"), float("inf"), 1e300, "1e5", [1]]
)
def test_what_is_no_ratio_is_refused(stated):
    with pytest.raises(SchemaError, match="is not a ratio of 'x' to 'y'"):
        sp.Related("x", "y", ratios=[stated])


@pytest.mark.parametrize("ratios", [[], "0.5", {}, 1])
def test_ratios_are_a_list(ratios):
    with pytest.raises(SchemaError, match="is not a list such as"):
        sp.Related("x", "y", ratios=ratios)


def test_a_ratio_is_listed_once_and_few_are():
    with pytest.raises(SchemaError, match=r"the ratio 0\.5 is listed twice"):
        sp.Related("x", "y", ratios=["0.5", "1/2"])
    with pytest.raises(SchemaError, match="33 ratios of 'x' are more than 32"):
        sp.Related("x", "y", ratios=[f"0.{place:02}" for place in range(1, 34)])


def slow_place(x, y, ratios, step_x, step_y) -> int:
    """Which ratio holds, in fractions: the step of x nearest to ratio times y, halves upwards."""
    for place, ratio in enumerate(ratios):
        nearest = floor(ratio * y * step_y / step_x + Fraction(1, 2))
        if x and y and nearest == x:
            return place
    return len(ratios)


@pytest.mark.parametrize(
    ("column", "base"),
    [
        (WHOLE, WHOLE),
        (sp.Integer(0, 10**6, multiple_of=50), WHOLE),
        (WHOLE, sp.Integer(-500, 10**6, multiple_of=25)),
        (CENTS, CENTS),
        (CENTS, sp.Integer(0, 1000)),
        (sp.Integer(-3000, 3000), sp.Real(-2000, 2000, multiple_of=0.5)),
    ],
)
def test_codes_are_read_as_fractions_say(column, base):
    """Whole numbers and cents, of equal steps and others, positive and negative: none is rounded on the way."""
    rng = np.random.default_rng(1)
    schema = related([1, "0.75", "1/3", "0.3"], column, base)
    (rule,) = schema.rules
    step_x = Fraction(column.step) if column.is_whole else column.spacing
    step_y = Fraction(base.step) if base.is_whole else base.spacing
    (first, last), (least, most) = (
        (int(low / step), int(high / step)) for (low, high), step in ((column._ends(), step_x), (base._ends(), step_y))
    )
    y = rng.integers(least, most + 1, 3000)
    ratio = rng.choice([Fraction(1), Fraction(3, 4), Fraction(1, 3), Fraction(3, 10), Fraction(2, 3)], 3000)
    x = [floor(one * int(steps) * step_y / step_x + Fraction(1, 2)) for one, steps in zip(ratio, y, strict=True)]
    x = np.clip(np.array(x) + rng.choice([0, 0, 0, 1, -1], 3000), first, last)
    x[:5], y[3:8] = 0, 0
    expected = [slow_place(int(a), int(b), rule.ratios, step_x, step_y) for a, b in zip(x, y, strict=True)]
    assert rule.place_of(x, y, schema).tolist() == expected
    assert len(set(expected)) == 5
    physical = {
        "x": x * column.step if column.is_whole else np.array([float(int(n) * step_x) for n in x]),
        "y": y * base.step if base.is_whole else np.array([float(int(n) * step_y) for n in y]),
    }
    found = open_table(pa.table(physical), schema._as_read).physical("x").values
    codes = np.array([*rule.codes(schema), 0])
    assert np.array_equal(found, np.where(np.array(expected) < 4, codes[expected], physical["x"]))


def test_values_beyond_the_bounds_are_no_codes():
    """They are moved to the bounds, as everywhere, and so are not taken for what lies beyond these."""
    schema = related([1, "0.5"], sp.Integer(0, 100), sp.Integer(0, 1000))
    table = open_table(pa.table({"x": [101, 102, 500, 50, None], "y": [7, 7, 7, 100, 3]}), nullable(schema)._as_read)
    physical = table.physical("x")
    assert physical.values[:4].tolist() == [100, 100, 100, 102]
    assert physical.is_null.tolist() == [False, False, False, False, True]


def nullable(schema: sp.Schema) -> sp.Schema:
    columns = {name: sp.Integer(column.low, column.high, nullable=True) for name, column in schema.items()}
    return sp.Schema(columns, rules=schema.rules)


def test_rows_are_computed_exactly():
    """The nearest step of ratio times base, for every code, and the value itself where there is none."""
    schema = nullable(related([1, "0.75", "1/3"], sp.Integer(0, 100), sp.Integer(0, 100)))
    (rule,) = schema.rules
    drawn = pa.array([101, 102, 103, 42, None, 101])
    base = pa.array([80, 50, 20, 9, 9, 100])
    found = rule.compute({"y": base}, schema, drawn)
    assert found.to_pylist() == [80, 38, 7, 42, None, 100]


def test_what_is_modelled_has_a_step_for_each_ratio():
    schema = related([1, "0.5"], CENTS, CENTS)
    assert schema._modelled["x"] == sp.Real(-50, 2000.02, multiple_of=0.01)
    assert schema["x"] == CENTS
    assert isinstance(schema.rules[0].read_as(schema), sp.Real)
    assert schema._modelled["y"] == CENTS


def test_a_rule_is_written_and_read():
    """As plain data and as TOML."""
    schema = related([1, "0.75", "1/3"])
    assert sp.Schema.from_toml(schema.to_toml()) == schema
    assert repr(schema.rules[0]) == "Related('x', 'y', ratios=[1, '0.75', '1/3'])"
    text = '[columns.x]\ntype = "integer"\nlow = 0\nhigh = 9\n[columns.y]\ntype = "integer"\nlow = 0\nhigh = 9\n'
    stated = '[[rules]]\ntype = "related"\ncolumn = "x"\nbase = "y"\nratios = [1, "0.75"]\n'
    assert sp.Schema.from_toml(text + stated).rules == (sp.Related("x", "y", ratios=[1, 0.75]),)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"x": sp.Category(["a", "b"])}, "column 'x' is of type category; numbers that come in steps have ratios"),
        ({"y": sp.Date("2020-01-01", "2021-01-01")}, "column 'y' is of type date"),
        ({"x": sp.Real(0, 1)}, "column 'x' is a real without steps; state its multiple_of"),
        ({"x": sp.Integer(bounds="private")}, "column 'x' has no bounds yet"),
        ({"y": sp.Integer(bounds="private")}, "column 'y' has no bounds yet"),
        ({"x": sp.Integer(0, 9, bits=2)}, "column 'x' states its bits"),
        ({"x": sp.Integer(0, 2**50)}, "column 'x' has too many steps"),
        ({"y": sp.Integer(0, 2**60)}, "cannot be compared in whole numbers of 64 bits"),
        ({"y": sp.Identifier()}, "column 'y' is of type identifier"),
    ],
)
def test_columns_that_have_no_ratios_are_refused(columns, told):
    with pytest.raises(SchemaError, match=told):
        sp.Schema({"x": WHOLE, "y": WHOLE, **columns}, rules=[sp.Related("x", "y", ratios=[1, "0.333"])])


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ([sp.Related("x", "y"), sp.Related("y", "x")], "itself computed|in a circle"),
        ([sp.Related("x", "y"), sp.Related("z", "x")], "the base 'x' of 'z' is itself computed; relate 'z' to 'y'"),
        ([sp.Related("x", "y"), sp.Related("x", "z")], "computed by two rules"),
        ([sp.Related("x", "y"), sp.AtMost("x", "z")], "can be compared with that alone"),
        ([sp.Related("x", "y", ratios=[1, 2]), sp.AtMost("x", "y")], "does not hold for all ratios"),
        ([sp.Related("x", "y"), sp.Implies({"x": (0, 3)}, {"z": (0, 9)})], "told by two columns"),
        ([sp.Related("x", "y"), sp.Sum("z", ["x"], residual=sp.Real(0, 1, multiple_of=1))], "is itself computed"),
    ],
)
def test_rules_that_do_not_go_together_are_refused(rules, told):
    with pytest.raises(SchemaError, match=told):
        sp.Schema({"x": WHOLE, "y": WHOLE, "z": sp.Integer(0, 2_000_000)}, rules=rules)


def test_a_column_is_not_related_to_itself():
    with pytest.raises(SchemaError, match="'x' is named twice"):
        sp.Related("x", "x")


def test_orders_that_ratios_keep_are_taken():
    sp.Schema({"x": WHOLE, "y": WHOLE}, rules=[sp.Related("x", "y", ratios=[1, "0.5"]), sp.AtMost("x", "y")])
    sp.Schema(
        {"x": sp.Integer(0, 300), "y": sp.Integer(0, 100)},
        rules=[sp.Related("x", "y", ratios=[1, 3]), sp.AtMost("y", "x")],
    )
    with pytest.raises(SchemaError, match="within the bounds"):
        sp.Schema(
            {"x": sp.Integer(0, 90), "y": sp.Integer(0, 100)},
            rules=[sp.Related("x", "y", ratios=[1, 3]), sp.AtMost("y", "x")],
        )


def test_rows_of_persons_have_no_ratios():
    with pytest.raises(SchemaError, match="ratios are kept in a single table"):
        sp.Schema(
            {"x": WHOLE, "y": WHOLE, "who": sp.Identifier()}, rules=[sp.Related("x", "y")], person="who", most_rows=5
        )


def test_trees_refuse_ratios():
    with pytest.raises(SchemaError, match="cannot enforce Related"):
        sp.KDTreeSynthesizer("1").fit(pa.table({"x": [1, 2], "y": [1, 4]}), related([1]))
