"""`spinney audit`: its exit status tells whether a bound exceeds its claim, also of a sabotaged mechanism."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pytest

from spinney_audit import attacks
from spinney_audit import audit as runner
from spinney_audit import game as rules
from spinney_audit.game import Game, Verdict
from support.audit_zoo import ZOO, Caught
from support.command_line import files_in, spinney, write_people


def test_a_sound_library_passes(tmp_path: Path) -> None:
    """Exit status 0, a table, and a page where one is asked for."""
    page = tmp_path / "audit.html"
    run = spinney("audit", "--seconds", "2", "--family", "counts", "--workers", "1", "--out", page)
    assert run.status == 0
    assert "passed" in run.out
    assert page.read_text().startswith("<!DOCTYPE html>")
    again = spinney("audit", "--seconds", "2", "--out", page)
    assert again.status == 2
    assert "exists" in again.err


def test_a_release_that_was_charged_nothing_is_not_called_passed(tmp_path: Path) -> None:
    """Exit status 3, no advice that helps nobody, and a page and data that say so."""
    write_people(tmp_path)
    fitted = spinney(
        *("fit", tmp_path / "people.csv", "--schema", tmp_path / "schema.toml", "--method", "forest"),
        *("--epsilon", "1e-9", "--out", tmp_path / "tiny.spinney"),
    )
    assert fitted.status == 0, fitted.err
    page = tmp_path / "audit.html"
    run = spinney("audit", tmp_path / "tiny.spinney", "--out", page)
    assert run.status == 3
    assert "charged nothing" in run.out
    assert "charged nothing" in run.err
    assert "seconds" not in run.out + run.err
    assert "<table>" not in page.read_text()
    found = json.loads(spinney("audit", tmp_path / "tiny.spinney", "--json").out)
    assert (found["verdict"], found["passed"], found["games"]) == ("nothing to test", False, [])


@pytest.mark.parametrize("name", ["half noise on leaf counts", "same words in every release"])
def test_a_sabotaged_mechanism_fails(name: str) -> None:
    """Exit status 1, and JSON that says which game was won; so many coins for every game, however busy the machine."""
    entry = ZOO["trees"][name]
    assert isinstance(entry, Caught)

    def play(game: Game, *, error: float, **_: object) -> Verdict:
        return rules.run(game, seconds=600, error=error, most_coins=2_000)

    with entry.sabotage(), mock.patch.object(runner, "run", play):
        run = spinney("audit", "--seconds", "6", "--family", "counts", "--workers", "1", "--json")
    assert run.status == 1
    assert "exceeds its claim" in run.err
    found = json.loads(run.out)
    assert not found["passed"]
    assert any(game["exceeds"] for game in found["games"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--family", "tabels"], "did you mean 'tables'"),
        (["--seconds", "0"], "0"),
        (["--epsilon", "1"], "goes with --attacks"),
        (["--black-box", "--family", "counts"], "whole fits only"),
    ],
)
def test_wrong_calls(arguments: list[str], message: str) -> None:
    """Exit status 2 and a remedy."""
    run = spinney("audit", *arguments)
    assert run.status == 2
    assert message in run.err


def test_attacks_without_anonymeter_say_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is fitted, and nothing is written; a schema is asked for first."""
    table, schema = write_people(tmp_path)
    monkeypatch.setattr(attacks, "find_spec", lambda _: None)
    before = files_in(tmp_path)
    assert "--schema" in spinney("audit", "--attacks", table).err
    run = spinney("audit", "--attacks", table, "--schema", schema)
    assert run.status == 1
    assert "environment of its own" in run.err
    assert files_in(tmp_path) == before
