"""NIST's benchmark: schemas from its dictionary, files as its scorer reads them, and what it says it lacks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest
from benchmarks.nist import __main__ as command
from benchmarks.nist import excerpt, scorer, settings
from benchmarks.nist.settings import SETTINGS, Setting

import spinney as sp
from spinney.errors import FileError

ROWS = """\
PUMA,AGEP,MSP,NPF,DENSITY,PINCP
01-01301,18,6,N,2731.2,0.0
06-07502,4,N,3,40000.5,N
01-01301,70,1,2,2731.2,-50.0
06-07502,33,2,4,40000.5,52000.0
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny excerpt in the shape of NIST's."""
    (tmp_path / "national").mkdir()
    (tmp_path / "national/national2019.csv").write_text(ROWS)
    described = {
        "PUMA": {"values": ["01-01301", "06-07502"]},
        "AGEP": {"min": 0, "max": 95},
        "MSP": {"values": ["N", "1", "2"]},
        "NPF": {"values": ["N", "2", "3", "4"]},
        "DENSITY": {"min": 16, "max": 52864},
        "PINCP": {"min": -9000, "max": 1000000},
    }
    (tmp_path / "national/national2019.json").write_text(json.dumps({"schema": described}))
    codes = {name: {"values": {"min": 0, "max": 9}} for name in described}
    codes["MSP"] = {"values": {"N": "child", "1": "married", "2": "apart", "6": "never"}}
    codes["PUMA"] = {"values": {"01-01301": "", "06-07502": "", "25-00503": ""}}
    (tmp_path / "data_dictionary.json").write_text(json.dumps(codes))
    return tmp_path


def test_columns_follow_from_the_dictionary_and_not_from_the_rows(folder: Path) -> None:
    """All codes that are listed, N as null, bounds that anyone could state."""
    rows, schema = excerpt.load(folder)
    assert schema["MSP"] == sp.Category(["1", "2", "6"], nullable=True)
    assert schema["PUMA"] == sp.Category(["01-01301", "06-07502"])
    assert schema["NPF"] == sp.Category(["2", "3", "4"], nullable=True)
    assert rows["MSP"].to_list() == ["6", None, "1", "2"]
    assert rows["PINCP"].to_list() == [0, None, -50, 52000]
    few, schema = excerpt.load(folder, ("AGEP", "MSP"))
    assert few.columns == list(schema) == ["AGEP", "MSP"]


def test_rows_are_written_as_the_scorer_reads_them(folder: Path, tmp_path: Path) -> None:
    """Null is N again."""
    rows, _ = excerpt.load(folder)
    excerpt.write(rows, tmp_path / "rows.csv")
    assert "06-07502,4,N,3,40000.5,N" in (tmp_path / "rows.csv").read_text()


def test_a_column_that_is_looked_up_follows_its_area(folder: Path, tmp_path: Path) -> None:
    """It is left out of the release and comes back by area, in its place."""
    setting = Setting("tiny, epsilon 5", None, epsilon="5", quality="fast", looked_up=("DENSITY",))
    (path,) = settings.releases(setting, folder, tmp_path, n_releases=1)
    drawn = pl.read_csv(path)
    assert drawn.columns == ["PUMA", "AGEP", "MSP", "NPF", "DENSITY", "PINCP"]
    assert {*drawn.select("PUMA", "DENSITY").unique().rows()} <= {("01-01301", 2731.2), ("06-07502", 40000.5)}


def test_rules_are_stated_where_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """`rules(columns)` of rules.py gives the rules of the schema."""
    columns = {"a": sp.Integer(0, 9), "b": sp.Integer(0, 9)}
    monkeypatch.setattr(settings, "has_rules", lambda: False)
    assert settings.stated(columns).rules == ()
    rule = sp.AtMost("a", "b")
    monkeypatch.setattr(settings, "has_rules", lambda: True)
    monkeypatch.setattr(settings, "import_module", lambda _: type("Rules", (), {"rules": lambda _: [rule]}))
    assert list(settings.stated(columns).rules) == [rule]


def test_settings_have_names_of_their_own() -> None:
    """No two write the same files."""
    assert len({setting.slug for setting in SETTINGS}) == len(SETTINGS)


def test_a_folder_without_the_excerpt_is_told_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The missing file and the name of NIST's folder; no environment is made."""
    monkeypatch.setattr(command, "scoring_python", lambda: pytest.fail("made an environment"))
    assert command.main(["--data", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert "has no data_dictionary.json" in told
    assert "diverse_communities_data_excerpts" in told


def test_what_the_scorer_needs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a fitting Python, which versions would do; a scorer that fails is named with its call."""
    monkeypatch.setattr(scorer, "ENVIRONMENT", tmp_path / "absent")
    monkeypatch.setattr(scorer, "_folders", lambda: [tmp_path])
    with pytest.raises(FileError, match=r"needs one of Python 3\.11"):
        scorer.scoring_python()
    with pytest.raises(FileError, match=r"the scorer failed.*score\.py"):
        scorer.scores(Path(sys.executable), [tmp_path / "rows.csv"], tmp_path, tmp_path / "out.json")


def test_scores_are_averaged_judged_and_kept(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole command with a scorer that says what it is told to."""
    told = iter([981.0, 984.0, 970.0, 971.0])

    def said(_python, files, _data, _out):
        base = {"features": ["AGEP", "MSP"], "inconsistent": {"all": 7}, "propensity": 0.001}
        return [{"file": path.name, "k_marginal": next(told), **base} for path in files]

    tiny = Setting("tiny, epsilon 1", ("AGEP", "MSP"), quality="fast", wanted=982)
    monkeypatch.setattr(command, "SETTINGS", (tiny,))
    monkeypatch.setattr(command, "scores", said)
    call = ["--data", str(folder), "--out", str(tmp_path / "out"), "--releases", "2", "--scorer", "python"]
    assert command.main(call) == 0
    record = json.loads((tmp_path / "out/nist.json").read_text())
    assert [one["k_marginal"] for one in record["settings"][0]["releases"]] == [981.0, 984.0]
    assert record["settings"][0]["columns"] == 2
    assert "982.5" in capsys.readouterr().out
    assert command.main(call) == 1, "a target that is missed fails"


def test_at_least_one_release(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--data", ".", "--releases", "0"])
    assert "at least one release" in capsys.readouterr().err
