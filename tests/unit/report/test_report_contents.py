"""What a report says: the promise as odds, columns with error bars, the budget, questions with sources; never more."""

from __future__ import annotations

import json
import math
import re
from copy import copy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.privacy.accounts.rules import ChargeOnRecord
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import DiscreteLaplaceCounts, Event, NotPrivate, UnsafeEntropy, decimal
from spinney.release.answers.answer import STATEMENTS
from spinney.release.file import digest
from spinney.report.columns import maps_part
from spinney.report.page import report_contents
from spinney.report.parts import _delta_in_words, account_part, largest_belief, largest_guess, percent, together_part
from spinney.report.questions import SOURCES, board_questions, nist_questions
from support.reports import KINDS, Page, contents_of, golden, page_of
from support.small_forests import SCHEMA, fitted, table


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_release_has_a_report_as_plain_data(name: str) -> None:
    contents = contents_of(name)
    described = json.loads(json.dumps(contents.to_dict(), allow_nan=False))
    assert described["report"] == "spinney"
    assert described["columns"], "every kind shows distributions"
    assert {column["statement"] for column in described["columns"]} <= set(STATEMENTS)
    assert {pair["statement"] for pair in described["pairs"]["pairs"]} <= set(STATEMENTS)
    assert described["evidence"]["digest"] == digest(golden(name))
    assert described["evidence"]["problem"] is None
    assert "cuts" not in described


@pytest.mark.parametrize("name", KINDS)
def test_every_answer_has_a_source(name: str) -> None:
    contents = contents_of(name)
    for lines in (contents.nist, contents.board):
        assert len(lines) > 10
        assert {line["source"] for line in lines} <= set(SOURCES)
        assert all(line["question"].endswith("?") and line["answer"] for line in lines)


def test_odds_are_those_of_the_definition() -> None:
    """At epsilon 1 somebody is right 73.1 % of the time at most; figures are rounded up, never down."""
    assert largest_guess(Fraction(1)) == 0.7311
    assert math.e / (1 + math.e) <= largest_guess(Fraction(1)) < math.e / (1 + math.e) + 1e-4
    assert largest_guess(Fraction(0)) == 0.5
    assert largest_guess(Fraction(1), Fraction(1, 100)) > largest_guess(Fraction(1))
    assert largest_guess(Fraction(5000)) == 1.0
    assert percent(largest_guess(Fraction(1))) == "73.2 %"
    assert percent(largest_guess(Fraction(20))) == "practically 100 %"


@pytest.mark.parametrize(("epsilon", "odds", "is_bounded"), [("1", "2.72", True), ("15", "3,269,018", False)])
def test_an_epsilon_is_told_as_odds_and_a_large_one_is_left_to_judge(epsilon: str, odds: str, is_bounded: bool) -> None:
    table = np.random.default_rng(0).random((200, 2))
    contents = report_contents(sp.KDTreeSynthesizer(epsilon).fit(table, _unit_square()).release_)
    asked = {line["question"]: line for line in (*contents.nist, *contents.board)}
    said = asked["Is epsilon larger than it should be?"]
    assert f"Epsilon is {epsilon}: odds of 1 to 1 may become {odds} to 1" in said["answer"]
    assert "between about 0.1 and 10" in said["answer"]
    assert said["source"] == "computed"
    assert ("judge it" in said["answer"]) is not is_bounded
    assert ("bounds nothing" in contents.promise["headline"]) is not is_bounded
    risk = asked["How likely is it that somebody is recognised?"]["answer"]
    assert ("Practically always" in risk) is not is_bounded


def test_no_test_of_membership_beats_the_bound() -> None:
    """The best attack on randomised response, which is exactly epsilon-private, meets the bound and stays below it."""
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        tells_truth = math.exp(epsilon) / (1 + math.exp(epsilon))
        assert tells_truth <= largest_guess(epsilon) < tells_truth + 2e-4
        posterior = 0.1 * tells_truth / (0.1 * tells_truth + 0.9 * (1 - tells_truth))
        assert posterior <= largest_belief(0.1, epsilon) < posterior + 2e-4


def test_the_budget_adds_up() -> None:
    for name in KINDS:
        shares = [stage["share"] for stage in contents_of(name).budget]
        assert not shares or sum(shares) == pytest.approx(1)


def test_bars_are_those_of_the_release() -> None:
    release = golden("v3-moments-mixed")
    bars = release.error_bars(["age"], pairs=False).columns[0]
    column = next(column for column in contents_of("v3-moments-mixed").columns if column["name"] == "age")
    assert bars.answers is not None
    assert [bar["estimate"] for bar in column["bars"]] == [answer.estimate for answer in bars.answers]
    assert [bar["low"] for bar in column["bars"]] == [answer.low for answer in bars.answers]
    assert column["statement"] == bars.statement


def test_what_has_no_error_bars_is_marked_and_still_shown() -> None:
    """Bins below a threshold know no intervals: their distribution is drawn, without any."""
    contents = contents_of("v3-tree-cube")
    for column in contents.columns:
        assert column["statement"] == "not supported"
        assert all(bar["low"] is None for bar in column["bars"])
        assert sum(bar["share"] for bar in column["bars"]) == pytest.approx(1)
        assert "threshold" in column["why"]


def test_rows_of_persons_are_shares_without_intervals() -> None:
    contents = contents_of("v3-people-linked")
    by_table = {column["key"]: column for column in contents.columns}
    assert by_table["birds.hatched"]["has_intervals"]
    rows = [column for column in contents.columns if column["key"].startswith("sightings.") and column["table"]]
    assert rows
    assert all(column["scale"] == "share" and not column["has_intervals"] for column in rows)
    assert contents.model["rows"]
    assert by_table["sightings.#"]["has_intervals"], "how many rows a person has is known"


def test_a_void_guarantee_is_no_guarantee() -> None:
    contents = contents_of("v3-grid-branded")
    assert contents.warnings
    assert not contents.publishable
    assert contents.promise["guess"] is None
    assert contents.promise["beliefs"] == []
    assert "void" in contents.nist[0]["answer"]


def test_seeded_noise_is_not_called_entropy() -> None:
    answers = " ".join(line["answer"] for line in contents_of("v3-forest-mixed").nist)
    assert "operating system" not in answers


def test_pairs_tell_dependence_from_independence() -> None:
    """Size and label follow from kind, and free from nothing: the heat map shows it."""
    pairs = report_contents(fitted(target="label").release_).pairs
    distances = {frozenset(pair["columns"]): pair["distance"] for pair in pairs["pairs"]}
    assert distances[frozenset(("kind", "size"))] > 0.4
    assert distances[frozenset(("free", "size"))] < 0.2
    assert pairs["n_counted"] == 5


def test_pairs_apart_depend_as_rows_do() -> None:
    """Six copies of one hidden column: what a spanning tree does not know of pairs is known from sums of products."""
    rng = np.random.default_rng(1)
    hidden = rng.integers(0, 2, 8000)
    names = [*"abcdef"]
    table = {name: np.where(rng.random(8000) < 0.4, hidden, rng.integers(0, 2, 8000)) for name in names}
    schema = sp.Schema({name: sp.Integer(0, 1) for name in names})
    model = sp.ForestSynthesizer("3", "1e-6", quality="fast")
    release = model.fit(pl.DataFrame(table), schema, entropy=sp.UnsafeSeededEntropy(1)).release_
    apart = [pair for pair in report_contents(release).pairs["pairs"] if not pair["counted"]]
    assert len(apart) > 5
    for pair in apart:
        first, second = (table[name] for name in pair["columns"])
        true = 2 * abs(np.mean(first * second) - first.mean() * second.mean())
        assert true > 0.06
        assert pair["distance"] == pytest.approx(true, abs=0.02)  # the spanning tree alone says 0.01 to 0.03


def test_pairs_of_a_tree_come_from_rows() -> None:
    rng = np.random.default_rng(0)
    x = rng.random(4000)
    table = np.stack([x, x, rng.random(4000)], axis=1)
    schema = sp.Schema({name: sp.Real(0, 1) for name in "abc"})
    release = sp.KDTreeSynthesizer("4").fit(table, schema, entropy=sp.UnsafeSeededEntropy(1)).release_
    distances = {tuple(pair["columns"]): pair["distance"] for pair in report_contents(release).pairs["pairs"]}
    assert distances["a", "b"] > 3 * distances["a", "c"]


def test_a_map_holds_all_rows_where_they_are() -> None:
    rng = np.random.default_rng(0)
    points = np.stack([rng.normal(-1, 0.05, 5000), rng.normal(52, 0.05, 5000)], axis=1)
    schema = sp.Schema({"lon": sp.Real(-9, 3), "lat": sp.Real(49, 61)})
    release = sp.KDTreeSynthesizer("2").fit(points, schema, entropy=sp.UnsafeSeededEntropy(1)).release_
    (drawn,) = maps_part(release)
    cells = np.array([line.split() for line in drawn["cells"]], dtype=float)
    assert drawn["is_geographic"]
    assert drawn["aspect"] == pytest.approx(1 / math.cos(math.radians(55)))
    assert cells.sum() == pytest.approx(5000, rel=0.05)
    row, across = np.unravel_index(cells.argmax(), cells.shape)
    assert -1.5 < -9 + 12 * across / cells.shape[1] < -0.5, "west to east"
    assert 51.5 < 49 + 12 * row / cells.shape[0] < 52.5, "south to north"


def test_places_are_maps() -> None:
    maps = contents_of("v3-forest-places").maps
    assert {tuple(drawn["columns"]) for drawn in maps} >= {("lon", "lat")}


def test_who_and_when_are_not_known_without_a_ledger() -> None:
    account = contents_of("v3-forest-mixed").account
    assert account["ledger"] is None
    assert {event["who"] for event in account["events"]} == {"not known"}


def test_a_ledger_says_what_is_left_and_whether_it_paid(tmp_path: Path) -> None:
    ledger = sp.Ledger.create(tmp_path / "people.ledger", limit=3, delta="1e-4")
    model = sp.KDTreeSynthesizer("1").fit(np.random.default_rng(0).random((500, 2)), _unit_square(), ledger=ledger)
    contents = report_contents(model.release_, ledger=ledger)
    described = contents.to_dict()["account"]["ledger"]
    assert described["has_this"]
    assert (described["limit"], described["spent"], described["remaining"]) == ("3", "1", "2")
    assert (described["other_charges"], described["other_epsilon"]) == (0, "0")
    tuned = next(line for line in contents.nist if line["question"].startswith("Were parameters tuned"))
    assert "The ledger holds no other fit of the same people; of fits that were not charged" in tuned["answer"]
    page = Page(contents.to_html()).text
    assert "from the release and a ledger" in page
    assert "from the release alone" not in page
    other = sp.Ledger(limit=3)
    assert not model.report(ledger=other).to_dict()["account"]["ledger"]["has_this"]


def test_the_first_figure_is_of_all_releases_on_the_ledger(tmp_path: Path) -> None:
    """Two releases at epsilon 1 promise 2 together; the page says so before it says what one of them promises."""
    ledger = sp.Ledger.create(tmp_path / "people.ledger", limit=3, delta="1e-4", population="patients")
    table, schema = np.random.default_rng(0).random((300, 2)), _unit_square()
    first, second = (sp.KDTreeSynthesizer("1").fit(table, schema, ledger=ledger) for _ in range(2))
    for model in (first, second):
        contents = report_contents(model.release_, ledger=ledger)
        together = contents.promise["together"]
        assert (together["epsilon"], together["guess"]) == ("2", largest_guess(Fraction(2)))
        assert together["population"] == "patients"
        text = Page(contents.to_html()).text
        of_all, of_one = percent(largest_guess(Fraction(2))), percent(largest_guess(Fraction(1)))
        assert -1 < text.index(of_all) < text.index(of_one), "what all promise comes first"
        asked = {line["question"]: line for line in (*contents.nist, *contents.board)}
        of_people = asked["How likely is it that somebody is recognised?"]["answer"]
        assert -1 < of_people.index(of_all) < of_people.index(of_one)
        assert of_all in asked["What do all releases of these people promise together?"]["answer"]
        fragment = contents._repr_html_()
        assert fragment is not None
        assert -1 < fragment.index(of_all) < fragment.index(of_one)


def test_without_a_ledger_the_promise_is_of_one_release_alone() -> None:
    contents = contents_of("v3-moments-mixed")
    if not contents.promise["is_private"]:
        contents = report_contents(_tree("1"))
    promise = contents.promise
    assert promise["together"] is None
    assert "from this release alone" in promise["headline"]
    twice = percent(largest_guess(2 * Fraction(promise["epsilon"]), 2 * Fraction(promise["delta"])))
    assert f"after a second one like it, somebody may be right {twice} of the time" in promise["alone"]
    assert promise["alone"] in Page(contents.to_html()).text
    asked = {line["question"]: line for line in contents.nist}
    assert asked["What do all releases of these people promise together?"]["source"] == "not known"


def test_a_release_that_a_ledger_lacks_is_added_to_what_it_holds() -> None:
    release = _tree("1")
    ledger = sp.Ledger(limit=5)
    ledger.charge(DiscreteLaplaceCounts(Fraction(3), 2, "counts", stage="leaves"))
    together = report_contents(release, ledger=ledger).promise["together"]
    assert (together["epsilon"], together["has_this"]) == ("4", False)
    assert "not on the ledger" in together["in_words"][0]
    other_unit = report_contents(release, ledger=sp.Ledger(limit=5, unit="add-remove")).promise["together"]
    assert other_unit["guess"] is None
    assert "cannot be added up" in other_unit["warning"]
    branded = sp.Ledger(limit=5)
    branded.brand(NotPrivate("bounds read off the data"))
    void = report_contents(release, ledger=branded).promise["together"]
    assert (void["guess"], void["guarantee"]) == (None, None)
    assert "voids" in void["warning"]


def a_ledger(**entries: Any) -> Any:
    """A stand-in for an account: what it holds, without a file."""
    amounts = dict.fromkeys(("limit", "remaining", "delta_limit", "remaining_delta"))
    return SimpleNamespace(**{"unit": Unit.REPLACE_ONE, "spent_delta": Fraction(0), **amounts, **entries})


def a_record(event: Event, **entries: Any) -> ChargeOnRecord:
    """A charge for one event."""
    unknown = dict.fromkeys(("table", "purpose", "request", "release", "error"))
    known = {"number": 1, "time": "2024-05-01", "user": "ann", "population": "people", "epsilon": 1, "delta": 0}
    return ChargeOnRecord(**{**known, **unknown, "events": (event,), **entries})


def test_losses_that_compose_are_a_bound_only_where_all_was_settled_before() -> None:
    """The sum is the figure; the smaller one of composed losses is told beside it, with its condition."""
    release = golden("v3-forest-measured")
    events = tuple(event for event in release.card.events if not isinstance(event, UnsafeEntropy))
    card = replace(release.card, events=events)
    spent, delta = 3 * card.epsilon, 3 * card.delta
    ledger = a_ledger(events=events * 3, unit=Unit.parse(card.unit), spent=spent, spent_delta=delta)
    together = together_part(card, ledger, has_this=True)
    assert (together["epsilon"], together["guess"]) == (decimal(spent), largest_guess(spent, delta))
    composed = together["composed"]
    assert float(card.epsilon) < composed["epsilon"] < float(spent)
    assert composed["guess"] <= together["guess"]
    assert together["in_words"][-1].startswith("If all of them were settled before the first was made")


def test_the_purpose_on_the_ledger_answers_every_question_about_it(tmp_path: Path) -> None:
    sp.Ledger.create(tmp_path / "people.ledger", limit=3)
    ledger = sp.Ledger.open(tmp_path / "people.ledger", purpose="beds per ward")
    model = sp.KDTreeSynthesizer("1").fit(np.random.default_rng(0).random((300, 2)), _unit_square(), ledger=ledger)
    release = model.release_
    ledger = sp.Ledger.open(tmp_path / "people.ledger")
    ledger.record_release(digest(release))
    contents = report_contents(release, ledger=ledger)
    asked = {line["question"]: line for line in (*contents.nist, *contents.board)}
    for question in ("For which purpose?", "What was collected, from whom, and for which purpose?"):
        assert "beds per ward" in asked[question]["answer"]
        assert asked[question]["source"] == "stated by the holder"
    assert contents.account["events"][0]["purpose"] == "beds per ward"
    assert report_contents(release, ledger=ledger, purpose="teaching").stated["purpose"] == "teaching"


@pytest.mark.parametrize(("n_rows", "delta"), [(96_000, "1e-6"), (20_000_000, "1e-6"), (300, "1e-6")])
def test_delta_is_not_called_small_where_it_is_not(n_rows: int, delta: str) -> None:
    """What the definition alone allows: each of n rows published with probability delta, so one of them with this."""
    said = _delta_in_words(Fraction(delta), n_rows, "rows", is_exact=True)
    least_one = 1 - (1 - float(delta)) ** n_rows
    shown = re.search(r"at least one with (less than )?([\d.]+) %", said)
    assert shown is not None
    assert least_one <= float(shown[2]) / 100 < least_one + 0.00101
    assert "far below one." not in said
    assert ("above it, which is too large" in said) is (float(delta) * n_rows > 1)
    assert "may be exceeded" not in said, "a delta is no probability with which a bound is exceeded"


def test_what_is_exact_in_a_release_is_said_to_be() -> None:
    """Under replace-one the number of rows is in the release as it is; under add-remove it is not."""
    asked = {line["question"]: line["answer"] for line in report_contents(_tree("1")).board}
    assert "One number is exact: that of rows, 300" in asked["Does any real row leave?"]
    asked = {line["question"]: line["answer"] for line in report_contents(_tree("1", unit="add-remove")).board}
    assert "One number is exact" not in asked["Does any real row leave?"]
    assert "300" not in asked["Does any real row leave?"]


@pytest.mark.parametrize("name", KINDS)
def test_no_sentence_promises_what_can_be_false(name: str) -> None:
    """Sentences that an opponent took apart, and what stands in their place."""
    contents = contents_of(name)
    said = " ".join([json.dumps(contents.to_dict(), ensure_ascii=False), Page(page_of(name)).text])
    for false in (
        "No row, exact count or exact sum",
        "was public already",
        "far below one.",
        "proves nothing",
        "and at no cost.",
        "The schema is public",
        "Bounded for everybody alike",
        "whatever an attacker knows",
        "none is smaller because",
        "dressed up as known",
        "Every mechanism has a proof",
        "with which the bound may be exceeded",
        "may fail with a probability",
    ):
        assert false not in said, false
    for line in (*contents.nist, *contents.board):
        if " % of the time" in line["answer"]:
            assert "equally likely" in line["answer"], "odds hold for two answers that are equally likely beforehand"


def test_what_is_said_of_persons_is_about_persons() -> None:
    """Keys are read, as rows belong to persons by them; there is no target; groups have deltas; bars count persons."""
    contents = contents_of("v3-people-linked")
    answers = {line["question"]: line["answer"] for line in [*contents.board, *contents.nist]}
    assert "never read" not in answers["Are there direct identifiers?"]
    assert "whose rows are whose" in answers["Are there direct identifiers?"]
    assert not any("target" in stage["what"] for stage in contents.budget)
    page = " ".join(Page(page_of("v3-people-linked")).texts)
    assert "Persons by value or range" in page
    assert "Rows by value or range" not in page
    assert "share of persons that would have to move" in " ".join(page.split())
    with_delta = [group for group in contents.promise["groups"] if group["delta"] and not group["is_empty"]]
    for group in with_delta:
        assert (
            f"{group['size']}: epsilon {group['epsilon']:g}, delta {group['delta']:g}"
            in answers["What is promised to groups?"]
        )


def test_accuracy_is_told_of_pairs_too() -> None:
    """Columns that are certified one by one say nothing of pairs that are not."""
    contents = contents_of("v3-forest-mixed")
    answers = {line["question"]: line["answer"] for line in contents.nist}
    told = answers["How accurate is the release, and is that known?"]
    for pair in contents.pairs["pairs"]:
        assert pair["statement"] in told.partition("Pairs of columns")[2]


def test_of_a_release_that_spent_nothing_no_group_is_told_less() -> None:
    """Epsilon is 0 for any number of rows, and there are no figures for groups to point at."""
    contents = report_contents(sp.ForestSynthesizer("1e-9").fit(table(20), SCHEMA).release_)
    said = " ".join(line["answer"] for line in [*contents.board, *contents.nist])
    assert contents.promise["groups"] == []
    assert "figures for groups" not in said
    assert "it is weaker" not in said


def test_a_ledger_that_knows_more_is_shown_with_more() -> None:
    """Who charged and when are asked for by name, so a ledger that keeps records tells them."""
    charge = DiscreteLaplaceCounts(Fraction(1), 2, "counts", stage="leaves")
    card = replace(golden("v3-tree-cube").card, events=(charge,))
    records = [
        a_record(charge, user="ann <b>", time="2024-05-01", purpose="beds", release="ours"),
        a_record(charge, user="bob", time="2024-06-01", release="another"),
    ]
    ledger = a_ledger(events=(charge, charge, charge), charges=records, limit=Fraction(4), spent=Fraction(3))
    account = account_part(card, ledger, "ours")
    assert (account["events"][0]["who"], account["events"][0]["when"]) == ("ann <b>", "2024-05-01")
    described = account["ledger"]
    assert "bob" not in json.dumps(account), "who charged other releases is nobody's business"
    assert (described["other_charges"], described["other_releases"], described["without_release"]) == (2, 1, 0)
    assert described["other_epsilon"] == "2"
    found = contents_of("v3-tree-cube").to_dict() | {"account": account}
    asked = {line["question"]: line["answer"] for line in (*nist_questions(found), *board_questions(found))}
    assert asked["Who made the release, and when?"] == "ann <b>, 2024-05-01"
    assert "1 other release of the same people" in asked["Were parameters tuned on the private table?"]
    assert account["ledger"]["remaining"] is None
    assert account["ledger"]["has_this"]
    assert account_part(card, ledger, "a third")["events"][0]["who"] == "not known", "two charged the same"


def test_tuning_is_told_by_other_fits_of_the_same_table() -> None:
    """Of another table of the same people, and bought answers, are no fits of this one; those that failed are."""
    charge = DiscreteLaplaceCounts(Fraction(1), 2, "counts", stage="leaves")
    answer = DiscreteLaplaceCounts(Fraction(1), 1, "answer: count", stage="answer", times=1)
    card = replace(golden("v3-tree-cube").card, events=(charge,))

    records = [
        a_record(charge, release="ours", table="visits"),
        a_record(charge, release="theirs", table="stays"),
        a_record(charge, release="earlier", table="visits"),
        a_record(charge, table="visits", error="MemoryError"),
        a_record(answer, release="an answer", table="visits"),
    ]
    ledger = a_ledger(
        events=[event for one in records for event in one.events or ()], charges=records, spent=Fraction(5)
    )
    account = account_part(card, ledger, "ours")
    assert account["ledger"]["tuning"] == {"table": "visits", "releases": 1, "failed": 1, "without_release": 0}
    assert (account["ledger"]["other_releases"], account["ledger"]["bought_answers"]) == (2, 1)
    found = contents_of("v3-tree-cube").to_dict() | {"account": account}
    asked = {line["question"]: line["answer"] for line in nist_questions(found)}
    said = asked["Were parameters tuned on the private table?"]
    assert "1 other release of the same table, 'visits', 1 charge of fits that failed;" in said


def test_entries_of_the_json_go_with_its_version() -> None:
    """Whoever adds, renames or removes an entry raises the version, and this list with it."""
    described = contents_of("v3-forest-mixed").to_dict()
    assert described["report_version"] == 5
    assert set(described) == {
        *("report", "report_version", "publishable", "notice", "title", "released", "stated", "warnings", "promise"),
        *("account", "budget", "model", "columns", "columns_left_out", "pairs", "maps", "remarks", "utility", "schema"),
        *("nist", "board", "evidence", "holder"),
    }


def test_what_was_found_privately_is_not_said_to_be_stated() -> None:
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"pay": rng.normal(30_000, 5_000, 5_000), "age": rng.integers(0, 90, 5_000)})
    schema = sp.Schema({"pay": sp.Real(bounds="private"), "age": sp.Integer(0, 90)})
    contents = report_contents(sp.ForestSynthesizer("2").fit(table, schema).release_)
    pay, age = contents.schema[0]["columns"]
    assert pay["source"] == "bounds estimated privately"
    assert age["source"] == "stated"
    asked = {line["question"]: line["answer"] for line in (*contents.nist, *contents.board)}
    assert "Estimated privately, at a cost that is listed: pay." in asked["Where do bounds come from (sensitivity)?"]
    assert "Bounds of pay were estimated privately" in asked["Are extreme values cut off?"]
    assert "found with noise" in contents.to_html()


def test_a_page_reads_as_words() -> None:
    """No data of Python among the parameters, boxes beside leaves, one pair without others, one of a thing."""
    contents, text = contents_of("v3-forest-measured"), Page(page_of("v3-forest-measured")).text
    assert "{'" not in text
    assert "noisy" not in contents.model["parameters"] | contents.model["plan"]
    assert not re.search(r"\b1 (tables|columns|cliques|leaves)\b", text)
    assert "spinney verify RELEASE --schema" in text
    assert "spinney audit RELEASE" in text
    points = np.random.default_rng(0).random((2000, 2)) * 90_000
    wide = sp.Schema({"x": sp.Real(0, 90_000), "y": sp.Real(0, 90_000)})
    release = sp.KDTreeSynthesizer("2").fit(points, wide, entropy=sp.UnsafeSeededEntropy(1)).release_
    contents = report_contents(release)
    text = Page(contents.to_html()).text
    assert contents.maps[0]["released"] == release.card.released["leaves"]
    assert "90,000" in text
    assert "other pairs" not in text
    assert "Utility (not measured)" in text
    assert "each by itself" in text


def test_utility_is_shown_where_it_was_measured() -> None:
    assert contents_of("v3-points").utility is None
    figure = {"name": "two-way mean", "estimate": 0.0417, "low": 0.04, "high": 0.05, "statement": "certified"}
    measured = {"figures": [figure | {"level": 0.95, "noise_std": 0.001}], "n_pairs": 3}
    utility = SimpleNamespace(to_dict=lambda: measured, compared="of <3> pairs", remarks=["by <noise>"])
    release = copy(golden("v3-points"))
    release.__class__ = type("Measured", (type(release),), {"utility": utility})
    contents = report_contents(release)
    assert "0.0417" in json.dumps(contents.to_dict()["utility"])
    page = Page(contents.to_html())
    for said in ("4.2 %", "Of <3> pairs", "By <noise>", figure["name"]):
        assert str(said) in page.text
    assert "Not measured" not in page.text


@pytest.mark.parametrize("stated", [{"title": 3}, {"purpose": "x" * 5000}, {"level": 2}])
def test_bad_options_are_refused(stated: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        report_contents(golden("v3-points"), **stated)  # type: ignore[arg-type]


def _tree(epsilon: str, **options: Any) -> sp.Release:
    table = np.random.default_rng(0).random((300, 2))
    return sp.KDTreeSynthesizer(epsilon, **options).fit(table, _unit_square()).release_


def _unit_square() -> sp.Schema:
    return sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
