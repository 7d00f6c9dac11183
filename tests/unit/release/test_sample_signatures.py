"""What `help`, editors and type checkers see of `sample` and `weighted_points`, and what a wrong option is told."""

from __future__ import annotations

import inspect

import pytest

import spinney as sp
from spinney.errors import NotFittedError, ParameterError
from spinney.forest.release.model import ForestRelease
from spinney.release.points import GeneratorRelease, PointsRelease
from spinney.release.release import Release
from spinney.tree.release.bins import BinnedRelease
from spinney.tree.release.moments import MomentsRelease

COMMON = ["n_rows", "seed", "frame", "like", "parts"]
OPTIONS = {
    Release: COMMON,
    PointsRelease: COMMON,
    GeneratorRelease: COMMON,
    BinnedRelease: [*COMMON, "placement"],
    MomentsRelease: [*COMMON, "placement", "draws"],
    ForestRelease: [*COMMON, "where", "balance", "draws"],
    sp.KDTreeSynthesizer: [*COMMON, "placement", "draws"],
    sp.GridSynthesizer: [*COMMON, "placement", "draws"],
    sp.ForestSynthesizer: [*COMMON, "where", "balance", "draws"],
}
KINDS = pytest.mark.parametrize("kind", OPTIONS, ids=lambda kind: kind.__name__)


@KINDS
def test_sample_names_its_options(kind):
    """Every option stands in the signature, by keyword alone except the number of rows, and none hides behind `**`."""
    parameters = inspect.signature(kind.sample).parameters
    assert list(parameters) == ["self", *OPTIONS[kind]]
    assert all(parameter.default is None for name, parameter in parameters.items() if name != "self")
    assert parameters["n_rows"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {parameters[name].kind for name in OPTIONS[kind][1:]} == {inspect.Parameter.KEYWORD_ONLY}
    assert all(parameter.annotation is not inspect.Parameter.empty for parameter in list(parameters.values())[1:])


@KINDS
def test_sample_and_weighted_points_explain_their_options(kind):
    """`help(...)` says what each option does."""
    for method in (kind.sample, kind.weighted_points):
        explained = inspect.getdoc(method).split("Args:\n")[1]
        for name in list(inspect.signature(method).parameters)[1:]:
            assert f"    {name}: " in explained


@KINDS
def test_points_have_a_placement_where_rows_have_one(kind):
    """`weighted_points` names its options too."""
    expected = ["self", "frame", *(["placement"] if "placement" in OPTIONS[kind] else [])]
    assert list(inspect.signature(kind.weighted_points).parameters) == expected


@pytest.mark.parametrize("kind", [sp.KDTreeSynthesizer, sp.GridSynthesizer, sp.ForestSynthesizer])
def test_a_model_that_is_not_fitted_says_so_whatever_is_asked(kind):
    """Before `fit` there is no release whose options could be listed."""
    for ask in (kind().sample, lambda: kind().sample(colour="red"), lambda: kind().weighted_points(colour="red")):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            ask()


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("conditions", "; did you mean 'where'?"),
        ("random_state", "; did you mean 'seed'?"),
        ("n", "; did you mean 'n_rows'?"),
        ("dtypes", "; did you mean 'like'?"),
        ("balanse", "; did you mean 'balance'?"),
    ],
)
def test_a_forest_explains_options_of_other_libraries(square, wrong, hint):
    """The model and its release say the same, before anything is drawn."""
    model = sp.ForestSynthesizer(1).fit(*square)
    for holder in (model, model.release_):
        with pytest.raises(ParameterError) as caught:
            holder.sample(5, **{wrong: 1})
        assert str(caught.value).startswith(f"sample() has no option {wrong!r} for a release of ")
        assert str(caught.value).endswith(f"its options are {', '.join(OPTIONS[ForestRelease])}{hint}")


def test_other_mistakes_are_those_of_any_call(square):
    """Too many positional arguments stay a TypeError."""
    with pytest.raises(TypeError, match="positional argument"):
        sp.GridSynthesizer(1).fit(*square).sample(5, 7)
