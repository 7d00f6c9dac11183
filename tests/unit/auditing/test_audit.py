"""`sp.audit` and its result: what it takes, says and writes; and through worker processes."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import spinney as sp
from spinney.auditing.audit import audit
from spinney.auditing.battery import FAMILIES, of_release, standard
from spinney.auditing.claims import Finding, Tally
from spinney.auditing.game import Verdict, toss
from spinney.auditing.result import AuditResult
from spinney.auditing.runner import play_all
from spinney.errors import ParameterError

GOLDEN = Path(__file__).parents[2] / "golden"


def verdict(bound: float, title: str = "a <cell>") -> Verdict:
    tally = Tally(10, 10, 9, 1, 1, 9)
    return Verdict(
        "counts", title, "tree.grid", "add-remove", Finding("epsilon", 1.0, bound), 20, tally, "with", 0.5, 0.4
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seconds": 0}, "seconds=0 is not between"),
        ({"seconds": "long"}, "seconds='long' is not between"),
        ({"families": ["tabels"]}, "did you mean 'tables'"),
        ({"families": "counts", "black_box": True}, "whole fits only"),
        ({"workers": 0}, "workers=0 is not"),
        ({"release": GOLDEN / "v3-tree-cube.spinney", "black_box": True}, "leave release out"),
    ],
)
def test_wrong_calls_say_what_to_type(options, message):
    """Before anything is played."""
    with pytest.raises(ParameterError, match=message):
        audit(**options)


def test_a_short_audit_passes_and_can_be_kept():
    """Bounds beside claims, in both units, as text, data and a page; and read again from the data."""
    result = sp.audit(seconds=2, families="counts", workers=1)
    assert result.passed
    assert {game.unit for game in result.verdicts} == {"add-remove", "replace-one"}
    assert result.families["counts"].finding.bound > 0.5
    described = json.loads(json.dumps(result.to_dict()))
    assert str(AuditResult.from_dict(described)) == str(AuditResult.from_dict(result.to_dict()))
    assert "passed" in str(result)
    page = result.to_html()
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    )


def test_a_bound_above_its_claim_fails():
    """`passed` is False, the table marks the game, and names are escaped where they become HTML."""
    result = AuditResult((verdict(0.9), verdict(1.2, "a <script>")), 0.95, 1.0, "made-up games")
    assert not result.passed
    assert [failure.title for failure in result.failures] == ["a <script>"]
    assert "EXCEEDED" in str(result)
    assert "FAILED" in str(result)
    for page in (result.to_html(), result._repr_html_()):
        assert "<script>" not in page
        assert "&lt;script&gt;" in page


def test_workers_play_what_they_are_told():
    """Games in other processes come back in order, with the same claims."""
    specs = [spec for spec in standard(["counts", "tables"]) if spec.unit == "add-remove"][:3]
    verdicts = play_all(specs, seconds=3, workers=2)
    assert [(one.family, one.unit) for one in verdicts] == [(spec.family, spec.unit) for spec in specs]
    assert all(one.finding.claim > 0 and one.n_coins > 20 for one in verdicts)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("v3-*.spinney")), ids=lambda path: path.stem)
def test_every_release_has_games_of_its_own(path):
    """With the numbers of its charges and in its unit: claims add up to no more than the card's epsilon."""
    card = sp.load(path).card
    if path.stem == "v3-points":  # of a rival system, whose mechanism is not ours
        with pytest.raises(ParameterError, match="no charge"):
            of_release(card, FAMILIES)
        return
    specs = of_release(card, FAMILIES)
    assert {spec.unit for spec in specs} == {card.unit}
    for spec in specs:
        game = spec.make()
        if spec.maker not in ("products", "structure"):  # which take seconds to compile
            assert len(game.play(toss(4)).outcomes) == 4
        if hasattr(game.claim, "epsilon") and spec.family not in ("column trees", "selections"):
            assert 0 < game.claim.epsilon <= float(card.epsilon) + 1e-9


def test_a_release_is_audited_at_its_own_epsilon(tmp_path):
    """The claim of its counts is what the release was charged for them."""
    rows = np.random.default_rng(0).random((200, 1))
    model = sp.GridSynthesizer("0.75", unit="add-remove", assumed_rows=200).fit(rows, sp.Schema({"x": sp.Real(0, 1)}))
    model.release_.save(tmp_path / "grid.spinney")
    result = sp.audit(tmp_path / "grid.spinney", seconds=1, families="counts", workers=1)
    (game,) = result.verdicts
    assert Fraction(game.finding.claim).limit_denominator(1000) == Fraction(3, 4)
    assert "grid.spinney" in str(result)
    assert result.passed


@pytest.mark.parametrize("families", ["whole tree", "whole persons"])
def test_nothing_is_charged_to_the_ledger_of_this_machine(families, monkeypatch, tmp_path):
    """Fits of made-up tables are nobody's budget, whatever SPINNEY_LEDGER says."""
    ledger = sp.Ledger.create(tmp_path / "machine.ledger", limit=1000, delta="1e-3")
    monkeypatch.setenv("SPINNEY_LEDGER", str(tmp_path / "machine.ledger"))
    audit(seconds=1, families=families, workers=1)
    assert ledger.spent == 0
