"""Bad parameters: refused by name, before a row is read and before anything is charged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spinney as sp
from spinney.errors import BudgetError, ParameterError, SchemaError
from spinney.tables import frames

NAN, INF = float("nan"), float("inf")

# Parameters of all synthesizers (of the forest, all but the threshold): name, value, words of the message.
COMMON = [
    ("epsilon", 0, "positive"),
    ("epsilon", -1, "positive"),
    ("epsilon", NAN, "number"),
    ("epsilon", INF, "number"),
    ("epsilon", "abc", "number"),
    ("epsilon", None, "number"),
    ("epsilon", True, "number"),
    ("epsilon", 2**21, "outside"),
    ("unit", "person", "'replace-one' or 'add-remove'"),
    ("unit", None, "'replace-one' or 'add-remove'"),
    ("threshold", -1, r"0\.\.2\^60"),
    ("threshold", NAN, "number"),
    ("threshold", "many", "number"),
    ("threshold", 2**61, r"0\.\.2\^60"),
    ("bounds_share", 0, "between 0 and 1"),
    ("bounds_share", 1, "between 0 and 1"),
    ("bounds_share", "half", "number"),
    ("assumed_rows", 0, "positive whole number"),
    ("assumed_rows", 1.5, "positive whole number"),
    ("assumed_rows", True, "positive whole number"),
]
TREE = [
    ("placement", "middle", "'fitted', 'uniform', 'centre'"),
    ("placement", 1, "'fitted', 'uniform', 'centre'"),
    ("focus", "corners", "not 'density' or 'small-areas'"),
    ("focus", None, "not 'density' or 'small-areas'"),
    ("moments", "yes", "not True, False or None"),
    ("moments", 1, "not True, False or None"),
    ("max_depth", -1, "whole number of levels"),
    ("max_depth", "deep", "whole number of levels"),
    ("max_depth", 1.5, "whole number of levels"),
    ("max_depth", True, "whole number of levels"),
    ("max_depth", 10**6, r"0\.\.\d+; set larger `bits`"),
    ("tree_share", 0, "between 0 and 1"),
    ("tree_share", 1, "between 0 and 1"),
    ("tree_share", "abc", "number"),
]
PAPER = [
    ("placement", "middle", "'centre', 'uniform', 'tilted'"),
    ("placement", "fitted", "'centre', 'uniform', 'tilted'"),
    ("axes", "ball", "'boxes' or 'cube'"),
    ("axes", None, "'boxes' or 'cube'"),
    ("h", -1, "h=-1 is not a whole number of levels"),
    ("h", 1.5, "whole number of levels"),
    ("h", True, "whole number of levels"),
    ("h", 10**6, r"0\.\."),
    ("h_prime", -1, "h_prime=-1 is not a whole number of levels"),
    ("h_prime", "deep", "whole number of levels"),
    ("h_prime", 10**6, r"0\.\.\d+; set larger `bits`"),
    ("s1", 0, "positive"),
    ("s1", NAN, "number"),
    ("s1", "1e-200", "no bin edge as small"),
    ("s2", -1, "positive"),
    ("s2", "short", "number"),
    ("s2", 1e-30, "no bin edge as small"),
    ("tau", -1, r"tau=-1 is not in 0\.\.2\^60"),
    ("tau", NAN, "number"),
    ("tau", [1], "number"),
    ("t", -1, r"t=-1 is not in 0\.\.2\^60"),
    ("t", NAN, "number"),
    ("t", "many", "number"),
    ("t", 2**61, r"0\.\.2\^60"),
    ("tree_share", 0, "between 0 and 1"),
    ("tree_share", 1, "between 0 and 1"),
    ("tree_share", "abc", "number"),
]
GRID = [
    ("placement", "middle", "'centre', 'uniform', 'tilted'"),
    ("placement", "fitted", "'centre', 'uniform', 'tilted'"),
    ("placement", 1, "'centre', 'uniform', 'tilted'"),
    ("bins", 0, "positive whole number"),
    ("bins", -3, "positive whole number"),
    ("bins", 1.5, "positive whole number"),
    ("bins", True, "number"),
    ("bins", "many", "number"),
    ("bins", 2**33, "bins on column 'x'"),
    ("bins", {"x": 2}, "does not name column 'y'"),
    ("bins", {"x": 2, "y": 2, "z": 2}, "column 'z', which is not in the schema"),
    ("bins", {"x": 2, "y": 0}, "positive whole number"),
    ("bin_width", 0, "positive"),
    ("bin_width", -0.1, "positive"),
    ("bin_width", NAN, "number"),
    ("bin_width", "wide", "number"),
    ("bin_width", 1e-15, "raise bin_width"),
    ("bin_width", {"y": 0.1}, "does not name column 'x'"),
    ("bin_width", {"x": 0.1, "y": 0.1, "z": 1}, "column 'z', which is not in the schema"),
    ("bin_width", {"x": 0.1, "y": -1}, "positive"),
]
FOREST = [
    ("delta", -1, "negative"),
    ("delta", 1, "guarantees nothing"),
    ("delta", NAN, "number"),
    ("delta", "small", "number"),
    ("delta", [], "number"),
    ("delta", "1e-11", "between 1e-10 and 1"),
    ("quality", "better", "'fast' or 'high'"),
    ("quality", None, "'fast' or 'high'"),
    ("target", "z", "not a column of the schema"),
    ("target", 0, "not a column of the schema"),
]
CASES = [
    *((sp.KDTreeSynthesizer, *case) for case in COMMON + TREE),
    *((sp.PaperTreeSynthesizer, *case) for case in COMMON + PAPER if case[0] != "threshold"),
    *((sp.GridSynthesizer, *case) for case in COMMON + GRID),
    *((sp.ForestSynthesizer, *case) for case in COMMON + FOREST if case[0] != "threshold"),
]
BOTH = [
    (sp.KDTreeSynthesizer, {"moments": False, "placement": "middle"}, "'centre', 'uniform', 'tilted'"),
    (sp.KDTreeSynthesizer, {"moments": False, "placement": 1}, "'centre', 'uniform', 'tilted'"),
    (sp.KDTreeSynthesizer, {"moments": False, "placement": "fitted"}, "'centre', 'uniform', 'tilted'"),
    (sp.KDTreeSynthesizer, {"moments": True, "placement": "tilted"}, "'fitted', 'uniform', 'centre'"),
    (sp.KDTreeSynthesizer, {"focus": "small-areas", "tree_share": "0.3"}, "tree_share and focus='small-areas' exclude"),
    (sp.KDTreeSynthesizer, {"focus": "small-areas", "moments": False}, "focus='small-areas' needs leaf moments"),
    (sp.KDTreeSynthesizer, {"focus": "small-areas", "threshold": 3}, "focus='small-areas' needs leaf moments"),
    (sp.KDTreeSynthesizer, {"moments": True, "threshold": 3}, "threshold and moments=True exclude each other"),
    (sp.PaperTreeSynthesizer, {"h_prime": 3, "s2": 0.1}, "h_prime or s2, not both"),
    (sp.PaperTreeSynthesizer, {"h": 3, "s1": 0.1}, "h or s1, not both"),
    (sp.PaperTreeSynthesizer, {"h": 5, "h_prime": 3}, "h=5 is above h_prime=3"),
    (sp.PaperTreeSynthesizer, {"s1": 0.1, "s2": 0.5}, "h=.* is above h_prime="),
    (sp.GridSynthesizer, {"bins": 3, "bin_width": 0.1}, "bins or bin_width, not both"),
]

LENGTHS = {"s1", "s2", "bin_width"}


@pytest.fixture
def no_reading(monkeypatch):
    """Any look at a row is an error."""

    def refuse(self, name):
        raise AssertionError("a row was read")

    monkeypatch.setattr(frames.Table, "physical", refuse)


def attempt(model, schema, ledger, message):
    """Fit a small table, expecting a ParameterError and an untouched ledger; returns the message."""
    with pytest.raises(ParameterError, match=message) as caught:
        model.fit(np.random.default_rng(0).random((50, 2)), schema, ledger=ledger)
    assert ledger.events == ()
    return str(caught.value)


@pytest.mark.usefixtures("no_reading")
@pytest.mark.parametrize(("kind", "name", "value", "message"), CASES)
def test_bad_values_are_named(kind, name, value, message, square):
    """Each bad value names its argument; no row is read and no budget is spent."""
    assert name in attempt(kind(**{name: value}), square[1], sp.Ledger(limit=10, delta="1e-5"), message)


@pytest.mark.usefixtures("no_reading")
@pytest.mark.parametrize(("kind", "options", "message"), BOTH)
def test_contradictions_are_named(kind, options, message, square):
    """Two parameters that exclude each other are both named."""
    attempt(kind(**options), square[1], sp.Ledger(), message)


@pytest.mark.usefixtures("no_reading")
@pytest.mark.parametrize("bounds", ["private", "from-data-not-private"])
@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [case for case in CASES if case[2] not in (10**6, 2**33, 1e-30, 1e-15, "1e-200")],
)
def test_nothing_is_spent_on_bounds_for_bad_parameters(kind, name, value, message, bounds):
    """Where bounds are to come from the data, bad parameters are found before the data are read for them."""
    schema = sp.Schema({"x": sp.Real(bounds=bounds), "y": sp.Real(0, 1)})
    if name in LENGTHS:  # which are refused, good or bad, while bounds are to be found
        message = "measured in units"
    assert name in attempt(kind(**{name: value}), schema, sp.Ledger(), message)


@pytest.mark.usefixtures("no_reading")
@pytest.mark.parametrize("bounds", ["private", "from-data-not-private"])
@pytest.mark.parametrize(("kind", "options", "message"), [case for case in BOTH if "s1" not in case[1]])
def test_nothing_is_spent_on_bounds_for_contradictions(kind, options, message, bounds):
    """Nor for parameters that exclude each other."""
    schema = sp.Schema({"x": sp.Real(bounds=bounds), "y": sp.Real(0, 1)})
    if LENGTHS & set(options):
        message = "measured in units"
    attempt(kind(**options), schema, sp.Ledger(), message)


ANY = [sp.KDTreeSynthesizer, sp.PaperTreeSynthesizer, sp.ForestSynthesizer, sp.GridSynthesizer]


@pytest.mark.usefixtures("no_reading")
@pytest.mark.parametrize("kind", ANY)
@pytest.mark.parametrize("entropy", [3, "seed", np.random.default_rng(0), sp.UnsafeSeededEntropy])
def test_what_is_no_entropy_is_refused_before_anything_is_spent(kind, entropy, square):
    """A seed, or a generator of numpy's, makes no noise; the message says what to do instead."""
    ledger = sp.Ledger(limit=3, delta="1e-5")
    with pytest.raises(ParameterError, match=r"entropy is a \w+, not a source of noise; leave it out"):
        kind().fit(*square, ledger=ledger, entropy=entropy)
    assert ledger.events == ()


@pytest.mark.usefixtures("no_reading")
@pytest.mark.parametrize("kind", ANY)
@pytest.mark.parametrize(
    ("ledger", "told"),
    [
        ("x.ledger", "there is no ledger 'x.ledger'"),
        (Path("x.ledger"), "there is no ledger 'x.ledger'"),
        (3, "ledger is a int, not a Ledger or the path or address of one; leave it out"),
    ],
)
def test_what_is_no_ledger_is_refused(kind, ledger, told, square):
    """A path has to be that of a ledger file; nothing is read, and no file is made."""
    with pytest.raises(sp.SpinneyError, match=told):
        kind().fit(*square, ledger=ledger)
    assert not Path("x.ledger").exists()


@pytest.mark.usefixtures("no_reading")
@pytest.mark.parametrize(
    ("name", "value"),
    [("n_rows", -1), ("n_rows", 2.5), ("n_rows", True), ("n_rows", "10"), ("seed", -1), ("seed", "x"), ("seed", 1.5)],
)
def test_one_call_spends_nothing_on_rows_it_could_not_draw(name, value, square):
    """What sampling would refuse is refused before the table is fitted."""
    ledger = sp.Ledger(limit=3)
    with pytest.raises(ParameterError, match=f"{name}="):
        sp.synthesize(*square, epsilon=1, ledger=ledger, **{name: value})
    assert ledger.events == ()


@pytest.mark.usefixtures("no_reading")
def test_a_cube_needs_reals(square):
    """axes="cube" with a column that has no place in a cube names the column, whatever its bounds."""
    for column in (sp.Integer(0, 9), sp.Integer(bounds="private"), sp.Real(0, 1, nullable=True)):
        ledger = sp.Ledger()
        with pytest.raises(SchemaError, match="column 'odd'"):
            sp.PaperTreeSynthesizer(axes="cube").fit(
                square[0], sp.Schema({"x": sp.Real(0, 1), "odd": column}), ledger=ledger
            )
        assert ledger.events == ()


@pytest.mark.usefixtures("no_reading")
@pytest.mark.parametrize(
    "model",
    [
        sp.GridSynthesizer(1, bins=2**20, threshold=1),
        sp.PaperTreeSynthesizer(1, h=40, h_prime=40, t=1),
        sp.PaperTreeSynthesizer("0.01", h=30, h_prime=40, tau=0, t=1),
    ],
)
def test_a_flood_of_empty_bins_is_refused(model, square):
    """A plan that would release billions of empty bins is refused before it is charged, with the remedy."""
    ledger = sp.Ledger()
    with pytest.raises(BudgetError, match=r"empty bins .*raise the threshold"):
        model.fit(*square, ledger=ledger)
    assert ledger.events == ()


def test_numpy_numbers_are_numbers(square):
    """Parameters from numpy, as a parameter search hands them over, mean what Python's own do."""
    model = sp.KDTreeSynthesizer(
        np.float64(0.5),
        max_depth=np.int32(6),
        threshold=np.float32(3),
        tree_share=np.float64(0.3),
    ).fit(*square)
    same = sp.KDTreeSynthesizer("0.5", max_depth=6, threshold=3, tree_share="0.3").fit(*square)
    assert model.plan_ == same.plan_
    paper = sp.PaperTreeSynthesizer(1, h=np.int64(2), h_prime=np.int32(6), tau=np.float64(9.5), t=np.float32(3))
    assert paper.fit(*square).plan_ == sp.PaperTreeSynthesizer(1, h=2, h_prime=6, tau="9.5", t=3).fit(*square).plan_
    grid = sp.GridSynthesizer(1, bins=np.int64(3), assumed_rows=np.int64(50)).fit(*square)
    assert grid.plan_ == sp.GridSynthesizer(1, bins=3, assumed_rows=50).fit(*square).plan_
