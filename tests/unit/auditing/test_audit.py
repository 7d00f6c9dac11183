"""`sp.audit` and its result: what it takes, says and writes; and through worker processes."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.privacy.mechanisms import DiscreteLaplaceCounts
from spinney_audit.audit import AuditResult, audit, play_all
from spinney_audit.battery import FAMILIES, of_release, standard
from spinney_audit.game import Finding, Tally, Verdict, toss

GOLDEN = Path(__file__).parents[2] / "golden"


def verdict(bound: float, title: str = "a <cell>", *, could_miss: float = 1.5, ceiling: float = 5.0) -> Verdict:
    tally, finding = Tally(10, 10, 9, 1, 1, 9), Finding("epsilon", 1.0, bound, ceiling, could_miss)
    return Verdict("counts", title, "tree.grid", "add-remove", finding, 20, tally, "with", 0.5, 12.0, 0.4)


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


def test_games_that_could_not_have_failed_have_not_passed():
    """They are counted apart, in words, in the table, in JSON and on the page; and no game of them alone is a pass."""
    short, hopeless = verdict(0.0, could_miss=7.0), verdict(0.0, could_miss=np.inf, ceiling=0.9)
    alone = AuditResult((short, hopeless), 0.95, 1.0, "made-up games")
    assert not alone.passed
    assert not alone.failures
    assert "COULD NOT TELL" in str(alone)
    assert "passed" not in str(alone)
    assert "too short to tell" in str(alone)
    assert "could not have failed" in str(alone)
    assert 'class="could-not-tell"' in alone.to_html()
    described = json.loads(json.dumps(alone.to_dict(), allow_nan=False))
    assert (described["verdict"], described["passed"], described["could_not_tell"]) == ("could not tell", False, 2)
    assert [game["could_exceed"] for game in described["games"]] == [True, False]
    assert str(AuditResult.from_dict(described)) == str(alone)
    mixed = AuditResult((verdict(0.9), short), 0.95, 1.0, "made-up games")
    assert mixed.verdict == "passed in part"
    assert "1 of 2 games were too short to tell" in str(mixed)
    assert AuditResult((verdict(0.9),), 0.95, 1.0, "made-up games").verdict == "passed"


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


@pytest.mark.parametrize("name", ["grid-branded", "tree-cube", "moments-mixed", "forest-mixed", "people-flat"])
def test_the_whole_method_of_a_release_is_played_first(name):
    """At its epsilon, delta and unit, through the front door of its method, with as much time as all of its parts."""
    card = sp.load(GOLDEN / f"v3-{name}.spinney").card
    whole, *parts = of_release(card, FAMILIES)
    assert whole.family.startswith("whole")
    assert whole.unit == card.unit
    assert Fraction(whole.settings["epsilon"]) == card.epsilon
    assert Fraction(whole.settings.get("delta", 0)) == card.delta
    assert whole.weight >= sum(part.weight for part in parts)
    assert whole.make().path == f"{card.synthesizer}.fit"


@pytest.mark.parametrize("unit", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", ["0.3", "0.05"])
def test_a_whole_forest_of_a_small_epsilon_is_played_with_more_rows(unit, epsilon):
    """So many that its fits count columns, and columns together; and nobody waits for a fit of millions."""
    kinds = sp.Schema({name: sp.Category(("a", "b")) for name in "xyz"})
    rows = pa.table({name: ["a", "b"] * 20_000 for name in "xyz"})
    model = sp.ForestSynthesizer(epsilon, "1e-6", unit=unit, assumed_rows=40_000 if unit == "add-remove" else None)
    card = model.fit(rows, kinds).card_
    (whole,) = of_release(card, ["whole forest"])
    game = whole.make()
    assert len(game.play(toss(2)).outcomes) == 2
    assert game._fit(True).card_.plan["structure"] == "tree"
    tiny = replace(card, events=(DiscreteLaplaceCounts(Fraction(1, 10**9), 2, "rows", stage="rows"),))
    assert [part.family for part in of_release(tiny, FAMILIES)] == ["number of rows"]


def test_a_release_is_audited_at_its_own_epsilon(tmp_path):
    """The claim of its counts is what the release was charged for them."""
    rows = np.random.default_rng(0).random((200, 1))
    model = sp.GridSynthesizer("0.75", unit="add-remove", assumed_rows=200).fit(rows, sp.Schema({"x": sp.Real(0, 1)}))
    model.release_.save(tmp_path / "grid.spinney")
    result = sp.audit(tmp_path / "grid.spinney", seconds=1, families="counts", workers=1)
    (game,) = result.verdicts
    assert game.finding.tells
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
