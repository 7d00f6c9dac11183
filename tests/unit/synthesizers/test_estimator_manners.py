"""Manners of a scikit-learn estimator: parameters, clones, reprs, and not being fitted."""

from __future__ import annotations

import inspect
import re
from fractions import Fraction

import pytest
from sklearn.base import clone

import spinney as sp
from spinney.errors import NotFittedError, ParameterError
from support.handmade_leaves import noisy_numbers
from support.in_one_test import in_one_test

KINDS = [sp.KDTreeSynthesizer, sp.PaperTreeSynthesizer, sp.GridSynthesizer, sp.ForestSynthesizer]
CHANGED = {
    sp.KDTreeSynthesizer: {"epsilon": "1/3", "moments": False, "max_depth": 7, "tree_share": "0.3"},
    sp.PaperTreeSynthesizer: {"epsilon": "1/3", "h": 2, "h_prime": 7, "tau": 3, "t": 2, "tree_share": "0.3"},
    sp.GridSynthesizer: {"epsilon": Fraction(1, 7), "bins": {"x": 3, "y": 4}, "threshold": 2, "unit": "add-remove"},
    sp.ForestSynthesizer: {"epsilon": "1/3", "delta": Fraction(1, 10**7), "target": "x", "quality": "high"},
}
# Where the model keeps what it decided before it read a row.
PLANS = dict.fromkeys(KINDS, "plan_") | {sp.ForestSynthesizer: "design_"}
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@each_kind
def test_every_argument_is_a_parameter(kind):
    """get_params returns the constructor's arguments, and nothing is changed on the way in."""
    model = kind(**CHANGED[kind])
    names = set(inspect.signature(kind).parameters)
    assert set(model.get_params()) == names
    assert set(model.get_params(deep=False)) == names
    for name, value in CHANGED[kind].items():
        assert model.get_params()[name] is value


@each_kind
def test_the_constructor_checks_nothing(kind):
    """Nonsense is stored as it is and refused by fit, as scikit-learn asks."""
    assert kind(epsilon="nonsense").epsilon == "nonsense"


@each_kind
def test_clones_are_equal_and_unfitted(kind, square):
    """sklearn's clone copies parameters and drops results."""
    points, schema = square
    model = kind(**CHANGED[kind]).fit(points, schema)
    copied = clone(model)
    assert copied is not model
    assert copied.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copied.sample(1)


@each_kind
def test_set_params(kind):
    """set_params changes parameters, returns the model, and lists the known ones where a name is unknown."""
    model = kind()
    assert model.set_params(epsilon=5, bounds_share="0.3") is model
    assert (model.epsilon, model.bounds_share) == (5, "0.3")
    with pytest.raises(ParameterError, match=rf"'depth' is not a parameter of {kind.__name__}; it has .*epsilon"):
        model.set_params(depth=3)


@each_kind
def test_unknown_parameters_are_named_with_what_there_is(kind):
    """A misspelt name is refused like Python's own TypeError, but says what was meant."""
    for error in (TypeError, ParameterError):
        with pytest.raises(error, match=rf"'epsilom' is not a parameter of {kind.__name__}; .* did you mean 'epsilon'"):
            kind(epsilom=3)
    with pytest.raises(TypeError):
        kind(1, 2, 3, 4)
    assert str(inspect.signature(kind)).startswith("(epsilon")


MOVED = {
    "rule": "sp.PaperTreeSynthesizer follows the paper's",
    "fixed_depth": "it is `h` of sp.PaperTreeSynthesizer",
    "largest_edge": "it is `s1` of sp.PaperTreeSynthesizer",
    "smallest_edge": "it is `s2` of sp.PaperTreeSynthesizer",
    "cutoff": "it is `tau` of sp.PaperTreeSynthesizer",
    "axes": "sp.PaperTreeSynthesizer has it",
}


@pytest.mark.parametrize("name", MOVED)
def test_parameters_that_moved_say_where_they_are(name):
    """The tree has eleven parameters; those of the paper's tree are that of its own class."""
    for ask in (lambda: sp.KDTreeSynthesizer(**{name: 3}), lambda: sp.KDTreeSynthesizer().set_params(**{name: 3})):
        with pytest.raises(ParameterError, match=f"'{name}' is not a parameter of KDTreeSynthesizer; .*{MOVED[name]}"):
            ask()
    assert len(inspect.signature(sp.KDTreeSynthesizer).parameters) == 11


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("fixed_depth", "the paper's name for it is `h`"),
        ("max_depth", "the paper's name for it is `h_prime`"),
        ("threshold", "the paper's name for it is `t`"),
        ("cutoff", "the paper's name for it is `tau`"),
        ("rule", "it always follows the paper's rule"),
        ("moments", "sp.KDTreeSynthesizer has it"),
        ("focus", "sp.KDTreeSynthesizer has it"),
    ],
)
def test_the_papers_tree_speaks_the_papers_language(name, told):
    """Words that another class has for a symbol are answered with the symbol."""
    with pytest.raises(ParameterError, match=f"'{name}' is not a parameter of PaperTreeSynthesizer; {told}"):
        sp.PaperTreeSynthesizer(**{name: 3})


@each_kind
def test_every_parameter_is_documented(kind):
    """The docstring has an entry for every argument, and none for others."""
    docstring = inspect.getdoc(kind)  # without indentation, which Python 3.13 no longer keeps
    documented = set(re.findall(r"^ {4}(\w+):", docstring, flags=re.MULTILINE))
    assert documented == set(inspect.signature(kind).parameters)


@each_kind
def test_repr_shows_what_was_changed(kind):
    """The repr is the call that makes the model, without the defaults."""
    assert repr(kind()) == f"{kind.__name__}()"
    model = kind(**CHANGED[kind])
    assert eval(repr(model), {"Fraction": Fraction, kind.__name__: kind}).get_params() == model.get_params()


@each_kind
@in_one_test(
    "ask",
    [
        lambda model: model.sample(3),
        lambda model: model.weighted_points(),
        lambda model: model.save("nowhere"),
        lambda model: model.card_,
        lambda model: model.schema_,
    ],
    ids=["sample", "weighted_points", "save", "card_", "schema_"],
)
def test_results_before_fit(kind, ask):
    """Asking an unfitted model names the model and the remedy."""
    with pytest.raises(NotFittedError, match=rf"this {kind.__name__} is not fitted yet; call fit"):
        ask(kind())


@each_kind
def test_fit_returns_the_model_and_leaves_parameters_alone(kind, square):
    """fit adds results that end in an underscore and changes nothing else."""
    points, schema = square
    model = kind(**CHANGED[kind])
    before = model.get_params()
    assert model.fit(points, schema) is model
    assert model.get_params() == before
    assert {name for name in vars(model) if name not in before} == {"ledger_", PLANS[kind], "release_"}
    assert model.schema_ == schema


@each_kind
def test_fit_leaves_the_table_and_the_schema_alone(kind, people):
    """Neither rows nor columns nor the schema are changed by a fit."""
    frame, schema = people
    names = ["height", "age", "colour"]
    table, columns = frame[names].copy(), sp.Schema({name: schema[name] for name in names})
    before = columns.to_toml()
    kind(19).fit(table, columns).sample(5)
    assert table.equals(frame[names])
    assert columns.to_toml() == before


@each_kind
def test_a_failed_fit_keeps_the_last_release(kind, square):
    """A refused second fit does not leave a half-fitted model."""
    points, schema = square
    model = kind(1).fit(points, schema)
    release = model.release_
    with pytest.raises(ParameterError):
        model.set_params(epsilon=0).fit(points, schema)
    assert model.release_ is release


@each_kind
def test_each_fit_spends_anew(kind, square):
    """Two fits have two ledgers of their own, and different noise."""
    points, schema = square
    model = kind(1)
    first, first_ledger = model.fit(points, schema).release_, model.ledger_
    second = model.fit(points, schema).release_
    assert model.ledger_ is not first_ledger
    assert noisy_numbers(first).tolist() != noisy_numbers(second).tolist()
