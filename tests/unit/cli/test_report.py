"""`spinney report`: a page and its twin, for everybody or, beside the real table, for the holder only."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import spinney as sp
from support.command_line import files_in, spinney
from support.reports import GOLDEN, Page
from support.small_forests import fitted, table
from support.small_people import TABLES, shop


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release, and the table that it was made from."""
    path = tmp_path_factory.mktemp("report")
    fitted(target="label").save(path / "forest.spinney")
    pq.write_table(table(5000), path / "real.parquet")
    return path


def test_a_page_and_its_twin(folder: Path, tmp_path: Path) -> None:
    page, twin = tmp_path / "r.html", tmp_path / "r.json"
    run = spinney(
        *("report", folder / "forest.spinney", "--out", page, "--out", twin, "--title", "<i>My</i> table"),
        *("--licence", "CC BY", "--purpose", "teaching", "--contact", "ann@example.org"),
    )
    assert run.status == 0
    assert run.out == f"wrote {page} (do not publish)\nwrote {twin} (do not publish)\n", "its noise was seeded"
    described = json.loads(twin.read_text())
    assert described["title"] == "<i>My</i> table"
    assert described["stated"]["licence"] == "CC BY"
    found = Page(page.read_text())
    assert "<i>My</i> table" in found.title
    assert "i" not in found.tags
    assert "CC BY" in found.text
    assert "ann@example.org" in found.text
    again = spinney("report", folder / "forest.spinney", "--out", page)
    assert again.status == 2
    assert "--force" in again.err
    assert spinney("report", folder / "forest.spinney", "--out", page, "--force").status == 0


def test_programs_get_json() -> None:
    run = spinney("report", GOLDEN / "v3-points.spinney", "--json")
    assert run.status == 0
    assert run.json["report"] == "spinney"
    assert run.json["publishable"] is False


def test_a_ledger_is_shown(tmp_path: Path) -> None:
    sp.Ledger.create(tmp_path / "l.ledger", limit=2)
    run = spinney("report", GOLDEN / "v3-points.spinney", "--json", "--ledger", tmp_path / "l.ledger")
    assert run.json["account"]["ledger"]["limit"] == "2"
    assert run.json["account"]["ledger"]["has_this"] is False
    assert "names users of the ledger" in run.err


@pytest.fixture(scope="module")
def charged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases of one table at epsilon 1, charged to one ledger, and another that is not on it."""
    path = tmp_path_factory.mktemp("charged")
    rows = np.random.default_rng(0).random((300, 2))
    np.savetxt(path / "rows.csv", rows, delimiter=",", header="x,y", comments="")
    columns = "".join(f'[columns.{name}]\ntype = "real"\nlow = 0\nhigh = 1\n' for name in "xy")
    (path / "s.toml").write_text(columns)
    sp.Ledger.create(path / "l.ledger", limit=3, population="patients")
    fit = ("fit", path / "rows.csv", "--schema", path / "s.toml", "--epsilon", "1")
    for name in "ab":
        paid = ("--ledger", path / "l.ledger", "--purpose", "beds per ward")
        assert spinney(*fit, *paid, "--out", path / f"{name}.spinney").status == 0
    assert spinney(*fit, "--out", path / "alone.spinney").status == 0
    return path


@pytest.mark.parametrize(("name", "epsilon"), [("a", "2"), ("b", "2"), ("alone", "3")])
def test_a_card_says_first_what_all_releases_on_the_ledger_promise(charged: Path, name: str, epsilon: str) -> None:
    path = charged / f"{name}.spinney"
    of_all = f"{epsilon}-differential privacy (pure), unit replace-one"
    run = spinney("card", path, "--ledger", charged / "l.ledger")
    assert run.status == 0
    assert run.out.startswith("All releases on the ledger together, population 'patients':")
    assert -1 < run.out.index(of_all) < run.out.index("This release alone:") < run.out.index("guarantee   1-diff")
    assert ("not on the ledger" in " ".join(run.out.split())) is (name == "alone"), (
        "an equal charge paid for another release"
    )
    found = spinney("card", path, "--json", "--ledger", charged / "l.ledger").json
    assert (found["together"]["epsilon"], found["epsilon"]) == (epsilon, "1")
    report = spinney("report", path, "--json", "--ledger", charged / "l.ledger").json
    assert report["promise"]["together"] == found["together"]
    assert report["account"]["ledger"]["has_this"] is (name != "alone")
    assert report["stated"]["purpose"] == (None if name == "alone" else "beds per ward")


def test_a_card_without_a_ledger_is_of_one_release_alone(charged: Path) -> None:
    run = spinney("card", charged / "a.spinney")
    assert "of this release alone; other releases of the same rows add to it" in run.out
    assert "together" not in spinney("card", charged / "a.spinney", "--json").json


def test_beside_the_real_table_it_is_for_the_holder_only(folder: Path, tmp_path: Path) -> None:
    page, twin = tmp_path / "holder.html", tmp_path / "holder.json"
    run = spinney(
        *("report", folder / "forest.spinney", "--out", page, "--out", twin, "--against", folder / "real.parquet")
    )
    assert run.status == 0
    assert "FOR THE HOLDER ONLY" in run.err
    assert "(do not publish)" in run.out
    described = json.loads(twin.read_text())
    assert described["publishable"] is False
    (compared,) = described["holder"]["tables"]
    assert compared["n_real"] == 5000
    assert sum(described["holder"]["bars"]["kind"]) == 5000
    assert compared["trained"]["target"] == "label"
    found = Page(page.read_text())
    assert found.title.startswith("FOR THE HOLDER ONLY")
    assert [name for name, times in found.ids.items() if times > 1] == []
    assert all(after <= before + 1 for before, after in zip(found.headings, found.headings[1:], strict=False))
    known = spinney("compare", folder / "real.parquet", folder / "real.parquet", "--release", folder / "forest.spinney")
    assert known.status == 0


def test_a_csv_is_read_as_it_is_written(folder: Path, tmp_path: Path) -> None:
    rows = table(50).to_pandas()
    rows.to_csv(tmp_path / "real.csv", sep=";", decimal=",", index=False)
    run = spinney(
        *("report", folder / "forest.spinney", "--json", "--against", tmp_path / "real.csv"),
        *("--delimiter", ";", "--decimal", ","),
    )
    assert run.status == 0
    assert run.json["holder"]["tables"][0]["n_real"] == 50


def test_linked_tables_are_named(tmp_path: Path) -> None:
    frames = shop(200)
    sp.LinkedSynthesizer("4").fit(frames, TABLES).save(tmp_path / "shop.spinney")
    for name, frame in frames.items():
        frame.to_parquet(tmp_path / f"{name}.parquet")
    run = spinney(
        *("report", tmp_path / "shop.spinney", "--json"),
        *("--against", f"customers={tmp_path / 'customers.parquet'}"),
        *("--against", f"sales={tmp_path / 'sales.parquet'}"),
    )
    assert run.status == 0
    assert [one["table"] for one in run.json["holder"]["tables"]] == ["customers", "sales"]
    assert sum(run.json["holder"]["bars"]["customers.region"]) == 200
    assert sum(run.json["holder"]["bars"]["sales.kind"]) == pytest.approx(1)
    wrong = spinney("report", tmp_path / "shop.spinney", "--json", "--against", tmp_path / "sales.parquet")
    assert wrong.status == 2
    assert "--against customers=TABLE" in wrong.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--out report.html"),
        (("--out", "report.pdf"), ".html or .json"),
        (("--json", "--unseen", "x.csv"), "--unseen is for --against"),
        (("--json", "--against", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_wrong_calls_write_nothing(
    options: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = spinney("report", GOLDEN / "v3-points.spinney", *options)
    assert run.status == 2
    assert said in run.err or said in run.out
    assert files_in(tmp_path) == set()
