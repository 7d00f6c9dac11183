"""`Release.ask` and `Release.verify` say what the commands say, of every kind of release."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.release.release import Release
from support.command_line import spinney

GOLDEN = Path(__file__).parents[2] / "golden"
# A kind of release each, and a question that it answers; None where it answers none.
KINDS = {
    "v3-moments-mixed": "count",
    "v3-tree-mixed": None,
    "v3-forest-mixed": "count",
    "v3-people-flat": "count",
    "v3-people-linked": "count",
    "v3-points": None,
}


@pytest.fixture(scope="module")
def fitted():
    """A model with a ledger that was charged for it; no file."""
    rng = np.random.default_rng(0)
    table = pa.table({"age": rng.uniform(18, 90, 2_000), "score": rng.normal(50, 12, 2_000).clip(0, 100)})
    ledger = sp.Ledger(limit="2")
    schema = sp.Schema({"age": sp.Real(18, 90), "score": sp.Real(0, 100)})
    return sp.KDTreeSynthesizer("1").fit(table, schema, ledger=ledger), ledger


@pytest.mark.parametrize(("name", "question"), KINDS.items(), ids=KINDS)
def test_every_kind_says_what_the_command_says(name, question):
    """Word for word, and as data."""
    path = GOLDEN / f"{name}.spinney"
    release = sp.load(path)
    found = release.verify()
    assert str(found) + "\n" == spinney("verify", path).out
    assert found.to_dict() == spinney("verify", path, "--json").json
    if question is None:
        with pytest.raises(
            sp.errors.ParameterError, match=r"does not hold what error bars follow from|no interval follows"
        ):
            release.ask("count")
        return
    replies = release.ask(question, level=0.9)
    assert str(replies) + "\n" == spinney("ask", path, question, "--level", 0.9).out
    assert replies.to_dict() == spinney("ask", path, question, "--level", 0.9, "--json").json


def test_answers_are_those_of_the_methods(fitted):
    """One question, several, cells of a table, options, and a sequence of them all."""
    model, _ = fitted
    where = {"score": (40, 60)}
    assert model.ask("count where score in 40..60").answer == model.release_.count(where)
    certified = model.ask("count where score in 40..60", certified=True, level=0.8, of="table").answer
    assert certified == model.count(where, level=0.8, statement="certified")
    replies = model.ask("mean(score)", "count by age (18..40, 40..90)", simultaneous=True)
    assert [reply.question for reply in replies] == ["mean(score)", "count by age (18..40, 40..90)"]
    table = model.table({"age": [(18, 40), (40, 90)]}, simultaneous=True)
    assert list(replies[1].answer) == list(table)
    assert [reply.by for reply in replies[:2]] == [[], ["age"]]
    assert replies.to_arrow().column_names[:3] == ["question", "source", "age"]
    assert "estimate" in replies._repr_html_()
    assert "at once" in str(replies)
    with pytest.raises(sp.errors.ParameterError, match="2 questions were asked"):
        _ = replies.answer


def test_of_several_questions_some_may_be_refused(fitted):
    """The others are answered; a single one raises, and so do calls that ask nothing."""
    model, _ = fitted
    replies = model.ask("count", "mean(agee)")
    assert len(replies) == 1
    assert list(replies.refused) == ["mean(agee)"]
    assert "did you mean 'age'?" in replies.to_dict()["refused"]["mean(agee)"]
    assert "refused: " in str(replies)
    for wrong, words in (
        (("mean(agee)",), "did you mean 'age'"),
        ((), "there is no question"),
        ((["count"],), "a question is text"),
    ):
        with pytest.raises(sp.errors.ParameterError, match=words):
            model.ask(*wrong)
    for options in ({"level": 95}, {"of": "tabel"}, {"certified": "yes"}, {"simultaneous": 1}, {"force": 1}):
        with pytest.raises(sp.errors.ParameterError):
            model.ask("count", **options)


def test_a_model_is_verified_before_it_has_a_file(fitted, tmp_path):
    """By its schema and its ledger; what a file would show is named as not checked."""
    model, ledger = fitted
    found = model.verify(schema=model.schema_, ledger=ledger)
    told = " ".join(found.checks)
    assert "the schema given" in told
    assert "the ledger given holds these very charges: entries 1, 2" in told
    assert any("not read from a file" in other["why"] for other in found.not_checked)
    assert found.guarantee in str(found)
    assert "the released numbers agree" in found._repr_html_()
    model.save(tmp_path / "r.spinney")
    model.schema_.to_file(tmp_path / "s.toml")
    again = sp.load(tmp_path / "r.spinney").verify(schema=tmp_path / "s.toml")
    assert again.digest == found.digest
    assert again.to_dict()["schema"]["file"] == str(tmp_path / "s.toml")


def test_what_does_not_hold_is_an_error(fitted, tmp_path):
    """Another schema, another ledger, a key without a file, a signature without a key, a file that was exchanged."""
    model, _ = fitted
    other = sp.Schema({"age": sp.Real(0, 90), "score": sp.Real(0, 100)})
    with pytest.raises(sp.errors.FileError, match=r"low is 0\.0 in the schema and 18\.0 in the release"):
        model.verify(schema=other)
    with pytest.raises(sp.errors.FileError, match="the ledger given does not hold the charges"):
        model.verify(ledger=sp.Ledger(limit="1"))
    with pytest.raises(sp.errors.ParameterError, match="save the release, have it signed"):
        model.verify(key=tmp_path / "office.pub.pem")
    with pytest.raises(sp.errors.ParameterError, match="signature needs key"):
        model.verify(signature=tmp_path / "r.sig")
    with pytest.raises(sp.errors.ParameterError, match="neither a schema, nor linked tables"):
        model.verify(schema=3)
    model.save(tmp_path / "r.spinney")
    loaded = sp.load(tmp_path / "r.spinney")
    shutil.copy(GOLDEN / "v3-moments-mixed.spinney", tmp_path / "r.spinney")
    with pytest.raises(sp.errors.FileError):
        loaded.verify()


def test_a_signature_is_checked(fitted, tmp_path):
    """By the key of whoever signed the file."""
    pytest.importorskip("cryptography")
    model, _ = fitted
    model.save(tmp_path / "r.spinney")
    assert spinney("keygen", tmp_path / "office.pem").status == 0
    assert spinney("sign", tmp_path / "r.spinney", "--key", tmp_path / "office.pem").status == 0
    found = sp.load(tmp_path / "r.spinney").verify(key=tmp_path / "office.pub.pem")
    assert any("by the key" in check for check in found.checks)
    assert len(found.to_dict()["signatures"]) == 1


def test_the_verbs_of_a_model_are_those_of_its_release():
    """Every verb of a release that users call is one of each model, with its signature and its docstring."""
    ours = {
        name
        for name in dir(Release)
        if callable(getattr(Release, name)) and not name.startswith("_") and name not in _OF_KINDS
    }
    assert {"ask", "verify", "count", "table", "sample", "report"} <= ours
    models = (sp.KDTreeSynthesizer, sp.GridSynthesizer, sp.PaperTreeSynthesizer, sp.ForestSynthesizer)
    for model in (*models, sp.LinkedSynthesizer):
        assert ours <= set(dir(model)), model
        assert model.ask.__doc__ == Release.ask.__doc__
    with pytest.raises(sp.errors.NotFittedError, match="not fitted yet"):
        sp.GridSynthesizer(1).ask("count")


# What a kind of release says of itself to the library.
_OF_KINDS = {"from_members", "to_members", "unverified", "verify_contents", "verify_model"}
