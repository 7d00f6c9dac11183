"""`spinney verify` against what others hold: schemas, ledgers; and what it says that it did not check."""

from __future__ import annotations

import shutil
import zipfile

import numpy as np
import polars as pl
import pytest

import spinney as sp
from spinney.errors import FileError
from spinney.files import full_version
from support.command_line import SCHEMA, spinney, write_people
from support.forgeries import card, forged, settle

N_ROWS = 800


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A table, its schema, a ledger that was charged for its release, and the release."""
    folder = tmp_path_factory.mktemp("made")
    table, _ = write_people(folder)
    assert spinney("ledger", folder / "people.ledger", "--limit", 5, "--delta", "1e-5").status == 0
    out, ledger = folder / "people.spinney", folder / "people.ledger"
    told = ("--schema", folder / "schema.toml", "--epsilon", 1, "--out", out, "--ledger", ledger)
    assert spinney("fit", table, *told).status == 0
    return folder


def test_everything_that_was_compared_is_told(made):
    """Digests, version and commit, checks, and what was not checked with the reason, in words and as data."""
    run = spinney("verify", made / "people.spinney")
    described = spinney("verify", made / "people.spinney", "--json").json
    assert run.status == 0
    for entry in ("digest", "schema_digest", "spinney_version"):
        assert described[entry] in run.out
    assert described["spinney_version"] == full_version()
    assert full_version().endswith(str(described["commit"])) or described["commit"] is None
    assert {"what", "why"} == {key for other in described["not_checked"] for key in other}
    whats = " ".join(other["what"] for other in described["not_checked"])
    for wanted in ("noise was drawn", "schema", "ledger", "vouches", "bought answers"):
        assert wanted in whats
    assert len(described["digest"]) == 64


def test_the_digest_is_that_of_the_release(made):
    """A file that this version wrote has the digest of what it holds; one byte more or less has another."""
    from spinney.release.file import digest

    described = spinney("verify", made / "people.spinney", "--json").json
    assert described["digest"] == digest(sp.load(made / "people.spinney"))


# ---------------------------------------------------------------------------------------------------------- schemas


def test_the_stated_schema_is_that_of_the_release(made):
    run = spinney("verify", made / "people.spinney", "--schema", made / "schema.toml", "--json")
    assert run.status == 0
    assert run.json["schema"]["digest"] == run.json["schema_digest"]
    assert not any("schema" in other["what"] for other in run.json["not_checked"])


DIFFERENT = {
    "another bound": (SCHEMA.replace("high = 120", "high = 110"), "column 'age': high is 110 in the schema and 120"),
    "another list": (SCHEMA.replace('"blue"', '"black"'), "column 'colour': values is"),
    "another type": (SCHEMA.replace('"integer"', '"real"'), "column 'age'"),
    "another name": (SCHEMA.replace("columns.age", "columns.years"), "column 'years' is in the schema, and not in"),
    "a column less": (SCHEMA.partition("[columns.colour]")[0], "column 'colour' is in the release, and not in"),
    "private bounds": (
        SCHEMA.replace("low = 0.0\nhigh = 1.0", 'bounds = "private"'),
        "the schema asks for private bounds, and the release paid for none",
    ),
    "nulls": (SCHEMA.replace('"integer"', '"integer"\nnullable = true'), "column 'age': nullable is True"),
    "a rule": (SCHEMA + '\n[[rules]]\ntype = "at-most"\ncolumn = "x"\nother = "age"\n', "rules is"),
}


@pytest.mark.parametrize(("text", "words"), DIFFERENT.values(), ids=DIFFERENT)
def test_another_schema_is_told_apart(made, tmp_path, text, words):
    """With what differs, in words."""
    (tmp_path / "other.toml").write_text(text, encoding="utf-8")
    run = spinney("verify", made / "people.spinney", "--schema", tmp_path / "other.toml")
    assert run.status == 1
    assert "is not the schema of this release" in run.err
    assert words in run.err


def test_what_a_fit_fills_in_may_differ(tmp_path):
    """Private bounds, private lists and ignored columns: told, and taken for what they are."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "x": rng.normal(5, 1, N_ROWS),
            "kind": rng.choice(["a", "b"], N_ROWS),
            "note": ["SECRET"] * N_ROWS,
        }
    )
    columns = {"x": sp.Real(bounds="private"), "kind": sp.Category(values="private", other="else"), "note": sp.Ignore()}
    sp.Schema(columns).to_file(tmp_path / "schema.toml")
    sp.ForestSynthesizer(9).fit(frame, sp.Schema(columns)).save(tmp_path / "r.spinney")
    run = spinney("verify", tmp_path / "r.spinney", "--schema", tmp_path / "schema.toml", "--json")
    assert run.status == 0
    told = " ".join(run.json["schema"]["filled_in"])
    for words in ("'x': bounds found privately", "'kind': 3 values found privately", "'note' is ignored"):
        assert words in told

    def stated_after_all(members) -> None:
        """Bounds that were bought, passed off as stated, with the charge taken away."""
        events = card(members)["events"]
        card(members)["events"] = [event for event in events if event.get("stage") != "bounds"]
        settle(members)

    forged(tmp_path / "r.spinney", stated_after_all, tmp_path / "f.spinney")
    assert spinney("verify", tmp_path / "f.spinney", "--schema", tmp_path / "schema.toml").status == 1


DATES = {name: sp.Date("2020-01-01", "2021-12-31") for name in ("asked", "given", "closed")}
ORDERS = [sp.AtMost("asked", "given"), sp.AtMost("given", "closed")]


@pytest.mark.parametrize("private", [False, True])
def test_differences_that_a_fit_models_are_told(tmp_path, private):
    """They follow from the stated orders and the bounds, also from bounds that were bought; others are refused."""
    rng, columns = np.random.default_rng(0), dict(DATES)
    if private:
        columns["given"] = sp.Date(bounds="private")
    days = np.cumsum([rng.integers(0, 300, 2000), *rng.integers(0, 90, (2, 2000))], axis=0)
    frame = pl.DataFrame({name: np.datetime64("2020-01-01") + held for name, held in zip(DATES, days, strict=True)})
    schema = sp.Schema(columns, rules=ORDERS)
    schema.to_file(tmp_path / "schema.toml")
    release = sp.ForestSynthesizer(2).fit(frame, schema).release_
    release.save(tmp_path / "r.spinney")
    assert all(rule.difference is not None for rule in release.schema.rules)
    run = spinney("verify", tmp_path / "r.spinney", "--schema", tmp_path / "schema.toml", "--json")
    assert run.status == 0, run.err
    for rule in ORDERS:
        said = f"{rule!r}: the difference is modelled, in the range that the bounds of both columns allow"
        assert said in run.json["schema"]["filled_in"]
        assert said in release.verify(schema=schema).checks
    within = sp.Integer(0, 400)
    for others in (
        [sp.AtMost(*rule.columns, difference=within) for rule in ORDERS],
        [ORDERS[0]],
        [sp.AtMost("given", "asked"), ORDERS[1]],
    ):
        with pytest.raises(FileError, match="rules is"):
            release.verify(schema=sp.Schema(columns, rules=others))
    narrow = sp.Schema({**columns, "closed": sp.Date("2020-01-01", "2021-06-30")}, rules=ORDERS)
    with pytest.raises(FileError, match="'closed': high is"):
        release.verify(schema=narrow)


def test_a_difference_that_was_stated_is_not_one_that_was_filled_in(tmp_path):
    """A release under a narrower difference is one of another schema than that which states none."""
    rng = np.random.default_rng(1)
    asked = np.datetime64("2020-01-01") + rng.integers(0, 300, 500)
    frame = pl.DataFrame({"asked": asked, "given": asked + rng.integers(0, 90, 500)})
    columns = {name: DATES[name] for name in frame.columns}
    stated = sp.Schema(columns, rules=[sp.AtMost("asked", "given", difference=sp.Integer(0, 400))])
    sp.Schema(columns, rules=ORDERS[:1]).to_file(tmp_path / "schema.toml")
    release = sp.ForestSynthesizer(2).fit(frame, stated).release_
    release.save(tmp_path / "r.spinney")
    assert release.verify(schema=stated)
    run = spinney("verify", tmp_path / "r.spinney", "--schema", tmp_path / "schema.toml")
    assert run.status == 1
    assert "rules is" in run.err


def test_schemas_of_persons_and_of_linked_tables(tmp_path):
    """A schema with a person, and a file of tables; one for rows is of another release."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(300), 2)
    frame = pl.DataFrame({"who": who, "v": rng.random(600)})
    schema = sp.Schema({"who": sp.Identifier(), "v": sp.Real(0, 1)}, person="who", most_rows=5)
    schema.to_file(tmp_path / "person.toml")
    sp.Schema({"who": sp.Identifier(), "v": sp.Real(0, 1)}).to_file(tmp_path / "rows.toml")
    sp.Schema({"who": sp.Identifier(), "v": sp.Real(0, 2)}, person="who", most_rows=5).to_file(tmp_path / "wide.toml")
    sp.LinkedSynthesizer(2).fit(frame, schema).save(tmp_path / "p.spinney")
    assert spinney("verify", tmp_path / "p.spinney", "--schema", tmp_path / "person.toml").status == 0
    for other in ("rows.toml", "wide.toml"):
        assert spinney("verify", tmp_path / "p.spinney", "--schema", tmp_path / other).status == 1


# ---------------------------------------------------------------------------------------------------------- ledgers


def test_a_ledger_that_was_charged(made):
    """Holds these very charges; that it was for this very file is not checked, and is told."""
    run = spinney("verify", made / "people.spinney", "--ledger", made / "people.ledger", "--json")
    assert run.status == 0
    (charge,) = spinney("ledger", made / "people.ledger", "--json").json["charges"]
    assert run.json["ledger"]["entries"] == [run.json["ledger"]["first_entry"]] == [charge["entry"]]
    assert run.json["ledger"]["times_held"] == 1
    assert any("names this very release" in check for check in run.json["checks"])
    assert not any("this very file" in other["what"] for other in run.json["not_checked"])


def test_a_release_that_nobody_paid_for_is_not_that_of_equal_charges(tmp_path):
    """A ledger that was charged for one release holds nothing for another of the same parameters."""
    rows = np.random.default_rng(0).random((500, 2))
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    sp.Ledger.create(tmp_path / "a.ledger", limit=2)
    sp.KDTreeSynthesizer(1).fit(rows, schema, ledger=tmp_path / "a.ledger").save(tmp_path / "paid.spinney")
    sp.KDTreeSynthesizer(1).fit(rows, schema, ledger=False).save(tmp_path / "unpaid.spinney")
    assert spinney("verify", tmp_path / "paid.spinney", "--ledger", tmp_path / "a.ledger").status == 0
    run = spinney("verify", tmp_path / "unpaid.spinney", "--ledger", tmp_path / "a.ledger")
    assert run.status == 1
    assert "does not hold the charges of this release" in run.err


def test_ledgers_of_others(made, tmp_path):
    """An empty one, one of another unit, one that was charged for something else, and what is no ledger."""
    for name, options in (("empty", ()), ("other", ("--unit", "add-remove"))):
        spinney("ledger", tmp_path / name, "--limit", 2, "--delta", "1e-5", *options)
        run = spinney("verify", made / "people.spinney", "--ledger", tmp_path / name)
        assert run.status == 1
        assert "does not hold the charges of this release" in run.err
    shutil.copy(made / "schema.toml", tmp_path / "none")
    assert spinney("verify", made / "people.spinney", "--ledger", tmp_path / "none").status == 1


def test_a_ledger_between_whose_charges_others_came(made):
    """Charges of a release need not follow each other; equal ones of another release are counted."""
    from spinney.privacy.ledger import Ledger
    from spinney.privacy.mechanisms import DiscreteLaplaceCounts
    from spinney.release.provenance import find_charge

    release = sp.load(made / "people.spinney")
    other = DiscreteLaplaceCounts(release.card.epsilon, 2, "another")
    ledger = Ledger()
    for event in release.card.events:
        ledger.charge(other)
        ledger.charge(event)
    assert find_charge(ledger, release).entries[0] == 2
    for _ in range(2):
        ledger.charge(*release.card.events)
    assert find_charge(ledger, release).n_runs >= 2
    assert find_charge(Ledger(), release) is None


# --------------------------------------------------------------------------------------------------------- contents

HIDDEN = {
    "a member more": lambda members: members.update({"rows.arrow": b"rows"}),
    "an entry more": lambda members: members["card.json"].update(rows=[1, 2, 3]),
    "an entry of the card more": lambda members: card(members).update(rows=[1, 2, 3]),
    "an entry of the plan more": lambda members: card(members)["plan"].update(rows=[1, 2, 3]),
    "a parameter more": lambda members: card(members)["parameters"].update(rows=[1, 2, 3]),
    "groups that are promised more": lambda members: [group.update(epsilon="1/9") for group in card(members)["groups"]],
    "cautions that are gone, and new ones": lambda members: card(members).update(cautions=["none"]),
}


@pytest.mark.parametrize("change", HIDDEN.values(), ids=HIDDEN)
def test_files_hold_their_release_and_nothing_else(made, tmp_path, change):
    """What is no part of a release may be a part of the table."""
    run = spinney("verify", forged(made / "people.spinney", change, tmp_path / "forged"))
    assert run.status == 1


@pytest.mark.parametrize("where", ["before", "between"])
def test_bytes_beside_the_members_are_found(made, tmp_path, where):
    """Readers of archives pass over them."""
    content = (made / "people.spinney").read_bytes()
    if where == "before":
        (tmp_path / "more").write_bytes(b"rows" + content)
    else:
        members = {}
        with zipfile.ZipFile(made / "people.spinney") as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(tmp_path / "more", "w") as archive:
            for name, data in members.items():
                info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                info.extra = b"\x99\x99\x04\x00rows"
                archive.writestr(info, data)
    run = spinney("verify", tmp_path / "more")
    assert run.status == 1
    assert "belong to none of its members" in run.err
