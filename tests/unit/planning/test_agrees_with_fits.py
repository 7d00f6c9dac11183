"""A plan promises what a fit then states: the same charges, the same noise, the same entries on the card."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import spinney as sp
from spinney.columns import Column
from spinney.privacy.mechanisms import Brand
from spinney.synthesizers.method import make
from support.long import IS_LONG
from support.small_people import FLAT, TABLES, shop

# The examples that are written down in every run, and many more in the long one.
EXAMPLES = settings(max_examples=12) if IS_LONG else settings(phases=[Phase.explicit])
EPSILONS = st.sampled_from(["0.02", "0.3", "1", "5"])
UNITS = st.sampled_from(["replace-one", "add-remove"])


def charged(model) -> tuple:
    """What a fit with seeded noise charged, without the brand of its seed."""
    return tuple(event for event in model.card_.events if not isinstance(event, Brand))


def seeded() -> sp.UnsafeSeededEntropy:
    return sp.UnsafeSeededEntropy(5)


def as_table(columns: dict[str, Column], n_rows: int) -> np.ndarray:
    """Rows with every kind of value that the columns have; booleans come out half and half."""
    rng = np.random.default_rng(1)
    made = []
    for column in columns.values():
        if isinstance(column, sp.Real):
            made.append(rng.uniform(column.low, column.high, n_rows))
        elif isinstance(column, sp.Integer):
            made.append(rng.integers(column.low, column.high + 1, n_rows))
        else:
            made.append(rng.integers(0, 2 if isinstance(column, sp.Boolean) else len(column.listed), n_rows))
    return np.column_stack([np.asarray(values, dtype=float) for values in made])


MIXED = st.lists(
    st.one_of(
        st.builds(lambda n: sp.Category(list(range(n))), st.integers(2, 6)),
        st.builds(lambda n: sp.Integer(0, n), st.integers(1, 500)),
        st.just(sp.Boolean()),
        st.builds(lambda high: sp.Real(0, high), st.sampled_from([1, 1000])),
    ),
    min_size=1,
    max_size=5,
).map(lambda drawn: {f"column{number}": column for number, column in enumerate(drawn)})
MEASURED = st.lists(st.builds(lambda high: sp.Real(0, high, bits=6), st.integers(1, 9)), min_size=1, max_size=3).map(
    lambda drawn: {f"column{number}": column for number, column in enumerate(drawn)}
)


# A table of every kind of column, for what is looked at in every run.
EVERY_KIND = {
    "column0": sp.Category([0, 1, 2]),
    "column1": sp.Integer(0, 300),
    "column2": sp.Boolean(),
    "column3": sp.Real(0, 1000),
}
CUBE = {"column0": sp.Real(0, 3, bits=6), "column1": sp.Real(0, 8, bits=6)}


def agree(plan, model) -> None:
    """The plan's charges, noise and entries are those of the card."""
    card = model.card_
    assert plan.events == charged(model)
    assert plan.card.plan == card.plan
    assert plan.card.guarantee.split(",")[0] == card.guarantee.split(",")[0] or not card.is_private
    assert (plan.card.epsilon, plan.card.delta) == (card.epsilon, card.delta)


@EXAMPLES
@example(quality="fast", columns=EVERY_KIND, epsilon="1", unit="add-remove", n_rows=40)
@example(quality="high", columns=EVERY_KIND, epsilon="5", unit="replace-one", n_rows=900)
@given(
    quality=st.sampled_from(["fast", "high"]),
    columns=MIXED,
    epsilon=EPSILONS,
    unit=UNITS,
    n_rows=st.sampled_from([40, 900]),
)
def test_forests(quality, columns, epsilon, unit, n_rows):
    """Every forest is charged as it was planned, at every quality, pure or with a delta, whatever it can afford."""
    schema = sp.Schema(columns)
    options = {} if unit == "replace-one" else {"assumed_rows": n_rows}
    delta = 0 if n_rows == 40 else None
    plan = sp.plan(schema, n_rows, epsilon, method="forest", quality=quality, unit=unit, delta=delta)
    model = sp.ForestSynthesizer(epsilon, delta, quality=quality, unit=unit, **options)
    model.fit(as_table(columns, n_rows), schema, entropy=seeded())
    agree(plan, model)
    assert plan.structure.name == model.design_.structure
    for error in plan.errors:
        stated = next(stage for stage in model.release_.explain().stages if stage.name == error.stage)
        assert error.noise_std == stated.noise_std


@EXAMPLES
@example(columns={"column0": sp.Category([0, 1, 2]), "column1": sp.Integer(0, 300)}, epsilon="5")
@given(columns=MIXED, epsilon=st.sampled_from(["1", "5"]))
def test_forests_with_a_target(columns, epsilon):
    """With classes of about the same size, the plan of a forest with a target is the one that is fitted."""
    schema = sp.Schema(columns | {"label": sp.Boolean()})
    plan = sp.plan(schema, 800, epsilon, target="label", utility_share="0.05")
    model = sp.ForestSynthesizer(epsilon, target="label", utility_share="0.05")
    model.fit(as_table(dict(schema), 800), schema, entropy=seeded())
    assert plan.events == charged(model)
    assert plan.structure.name == model.design_.structure


def test_a_rare_class_changes_the_plan_as_it_changes_the_fit():
    """With a guess of the size of the rare class, the plan is that of a table which has such a class."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 5, (3000, 4)), np.arange(3000) < 10])
    schema = sp.Schema({f"c{number}": sp.Category(range(5)) for number in range(4)} | {"label": sp.Boolean()})
    model = sp.ForestSynthesizer(1, target="label").fit(table, schema, entropy=seeded())
    assert sp.plan(schema, 3000, 1, target="label", class_size=10).events == charged(model)
    assert model.design_.structure == "target" != sp.plan(schema, 3000, 1, target="label").structure.name


@pytest.mark.parametrize(
    "options",
    [{}, {"moments": False}, {"rule": "paper"}, {"method": "grid"}, {"focus": "small-areas"}, {"utility_share": "0.1"}],
    ids=str,
)
@EXAMPLES
@example(columns=CUBE, epsilon="1", unit="add-remove")
@example(columns=CUBE, epsilon="0.3", unit="replace-one")
@given(columns=MEASURED, epsilon=EPSILONS, unit=UNITS)
def test_trees_and_grids(options, columns, epsilon, unit):
    """Trees by every rule and grids are charged and laid out as they were planned."""
    schema, n_rows = sp.Schema(columns), 400
    plan = sp.plan(schema, n_rows, epsilon, unit=unit, **{"method": "tree", **options})
    given_options = {name: value for name, value in options.items() if name != "method"} | {"unit": unit}
    given_options |= {} if unit == "replace-one" else {"assumed_rows": n_rows}
    method = options.get("method", "tree")
    model = make(method, epsilon, given_options)
    model.fit(as_table(columns, n_rows), schema, entropy=seeded())
    assert plan.events == charged(model)
    assert all(model.card_.plan[name] == value for name, value in plan.card.plan.items())


@pytest.mark.parametrize(
    ("epsilon", "unit"), [pytest.param("1", "replace-one", marks=pytest.mark.long), ("8", "add-remove")]
)
def test_persons(epsilon, unit):
    """Linked tables and one table of persons' rows are charged as they were planned; the plan is for persons."""
    tables = shop(300)
    options = {} if unit == "replace-one" else {"assumed_persons": 300}
    plan = sp.plan(TABLES, 300, epsilon, unit=unit, target="customers.churn")
    model = sp.LinkedSynthesizer(epsilon, unit=unit, target="customers.churn", **options)
    model.fit(tables, TABLES, entropy=seeded())
    agree(plan, model)
    assert plan.who == "persons"
    assert plan.errors[-1].stage == "row tables"
    assert plan.errors[-1].noise_std == pytest.approx(model.design_.plan.noise_std("row tables"), rel=1e-9)


def test_one_table_of_persons():
    """Without a table of persons as well."""
    sales = shop(300)["sales"]
    n_persons = sales["customer"].nunique()
    model = sp.LinkedSynthesizer("2").fit(sales, FLAT, entropy=seeded())
    agree(sp.plan(FLAT, n_persons, "2"), model)


def test_what_is_found_on_the_way_is_charged_as_planned():
    """Private bounds and lists of values cost what the plan says; what follows from them is said not to be known."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"amount": rng.gamma(2, 20, 4000), "code": rng.choice(["a", "b", "c"], 4000)})
    columns = {"amount": sp.Real(bounds="private"), "code": sp.Category(values="private", other="rest")}
    plan = sp.plan(columns, 4000, 4)
    model = sp.ForestSynthesizer(4).fit(frame, columns, entropy=seeded())
    n_before = 2
    assert plan.events[:n_before] == charged(model)[:n_before]
    assert sum(event.epsilon for event in charged(model)) == plan.card.epsilon == Fraction(4)
    assert {cost.stage for cost in plan.costs} == {"bounds", "values"}
    assert all(any(name in sentence for sentence in plan.unknown) for name in ("'amount'", "'code'"))


def test_nothing_to_measure_is_nothing_to_charge():
    """A budget that tells nothing from noise plans nothing, and a fit charges nothing."""
    schema = sp.Schema({f"c{number}": sp.Category(range(9)) for number in range(5)})
    plan = sp.plan(schema, 30, "0.01")
    model = sp.ForestSynthesizer("0.01").fit(np.zeros((30, 5), dtype=int), schema, entropy=seeded())
    assert plan.events == charged(model) == ()
    assert plan.structure.name == "uniform"
    assert plan.answer is None
    assert not plan.errors
