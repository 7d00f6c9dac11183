"""Events say in fields what anybody may need to know of them. A note can say anything, and nothing follows from it."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import spinney as sp
from spinney.errors import FileError
from spinney.forest.release.explain import stages
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import (
    Brand,
    ComposedRelease,
    DiscreteLaplaceCounts,
    GaussianTables,
    Selections,
    SplitDecisions,
    TreeShapes,
    event_from_dict,
    event_to_dict,
)
from spinney.privacy.mechanisms import Selection as Choices
from spinney.release.verify import verification
from support.command_line import spinney
from support.in_one_test import in_one_test

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.spinney"))
SCHEMA = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(bounds="private"), "z": sp.Boolean()})
# Old words that lie, words of nobody, and no words.
LIES = [
    "shapes of 99 column trees",
    "cliques: 7 tables",
    "bounds of x: leaf counts",
    "pairs",
    "9 choices",
    "",
    "\x1b[2J",
]
MODELS = {
    "tree": sp.KDTreeSynthesizer(9, bounds_share="0.3"),
    "bins": sp.KDTreeSynthesizer(9, bounds_share="0.3", moments=False),
    "grid": sp.GridSynthesizer(9, bins=3, bounds_share="0.3"),
    "forest": sp.ForestSynthesizer(20, bounds_share="0.3", target="z"),
    "pure forest": sp.ForestSynthesizer(20, 0, bounds_share="0.3", target="z", quality="high"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.beta(2, 5, 600), rng.random(600), rng.random(600) < 0.4])
    for name, model in MODELS.items():
        model.fit(rows, SCHEMA).save(folder / f"{name}.spinney")
    return {name: folder / f"{name}.spinney" for name in MODELS}


def with_notes(events, words) -> tuple:
    """The same events with other notes, parts and all."""
    left = iter(words)
    found = []
    for event in events:
        parts = tuple(replace(part, note=next(left)) for part in getattr(event, "parts", ()))
        found.append(replace(event, note=next(left), **({"parts": parts} if parts else {})))
    return tuple(found)


def changed(path: Path, change, to: Path) -> Path:
    """A copy of a release file with another card."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    card = json.loads(members["card.json"])
    change(card["card"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in (members | {"card.json": json.dumps(card).encode()}).items():
            archive.writestr(name, content)
    to.write_bytes(buffer.getvalue())
    return to


def each(card):
    """Every event and part of a card's JSON that carries a stage or may."""
    for event in card["events"]:
        yield event
        yield from event.get("parts", ())


def said(release) -> dict[str, object]:
    """Everything that is made of the events of a release, but for brands, whose notes are shown in warnings."""
    found = {
        "verification": verification(release),
        "stages": stages(release.card.events, Unit.parse(release.card.unit)),
        "promise": (release.card.epsilon, release.card.delta, release.card.guarantee, release.card.groups),
    }
    if release.kind == "forest" and release.card.is_private:
        explanation = release.explain()
        found |= {"page": str(explanation), "explanation": explanation.to_dict(), "meaning": explanation.meaning}
    return found


@in_one_test("lie", LIES, ids=range(len(LIES)))
@in_one_test("name", MODELS)
def test_notes_may_be_scrambled(files, name, lie):
    """Stages, verification, promise and explanation are the same whatever the notes say."""
    release = sp.load(files[name])
    true = said(release)
    noted = iter(lambda: lie, None)
    object.__setattr__(release.card, "events", with_notes(release.card.events, noted))
    assert all(event.note == lie for event in release.card.events)
    assert said(release) == true


@pytest.mark.parametrize("name", MODELS)
def test_a_file_with_other_notes_is_the_same_release(files, tmp_path, name):
    """Also by way of a file: a note that keeps the old words and changes their number moves nothing."""

    def change(card):
        for place, entry in enumerate(each(card)):
            entry["note"] = LIES[place % len(LIES)]

    path = changed(files[name], change, tmp_path / "other notes")
    assert said(sp.load(path)) == said(sp.load(files[name]))
    one, other = (spinney("verify", file, "--json").json for file in (path, files[name]))
    for entry in ("guarantee", "is_private", "epsilon", "delta", "unit", "schema_digest"):
        assert one[entry] == other[entry]
    of_contents = [[check for check in found["checks"] if "archive" not in check] for found in (one, other)]
    assert of_contents[0] == of_contents[1]


# ------------------------------------------------------------------------------------------------ forged fields


def event(card, kind, stage) -> dict:
    return next(event for event in card["events"] if event["event"] == kind and event.get("stage") == stage)


def part(card, stage) -> dict:
    return next(part for event in card["events"] for part in event.get("parts", ()) if part["stage"] == stage)


LAPLACE = "DiscreteLaplaceCounts"
FORGED = {
    "more trees": ("pure forest", lambda c: event(c, "SplitDecisions", "trees").update(times=99)),
    "fewer trees": ("pure forest", lambda c: event(c, "SplitDecisions", "trees").update(times=1)),
    "no number of trees": ("pure forest", lambda c: event(c, "SplitDecisions", "trees").update(times=None)),
    "decisions of no stage": ("pure forest", lambda c: event(c, "SplitDecisions", "trees").update(stage=None)),
    "decisions of one tree": ("pure forest", lambda c: event(c, "SplitDecisions", "trees").update(stage="splits")),
    "another decay": ("pure forest", lambda c: event(c, "SplitDecisions", "trees").update(decay=1)),
    "more tables": ("pure forest", lambda c: event(c, LAPLACE, "one-way").update(times=99)),
    "fewer tables": ("pure forest", lambda c: event(c, LAPLACE, "one-way").update(times=1)),
    "no number of tables": ("pure forest", lambda c: event(c, LAPLACE, "one-way").update(times=None)),
    "tables of another stage": ("pure forest", lambda c: event(c, LAPLACE, "one-way").update(stage="cliques")),
    "tables of no stage": ("pure forest", lambda c: event(c, LAPLACE, "one-way").update(stage=None)),
    "tables of a tree": ("pure forest", lambda c: event(c, LAPLACE, "one-way").update(stage="leaves")),
    "fewer spikes": ("pure forest", lambda c: event(c, LAPLACE, "spikes").update(times=1)),
    "spikes of no stage": ("pure forest", lambda c: event(c, LAPLACE, "spikes").update(stage=None)),
    "fewer spikes in parts": ("forest", lambda c: part(c, "spikes").update(times=1)),
    "quieter spikes": ("forest", lambda c: c["plan"].update({"spikes noise": 0.5})),
    "classes of another column": ("pure forest", lambda c: event(c, LAPLACE, "classes").update(column="x")),
    "classes of no stage": ("pure forest", lambda c: event(c, LAPLACE, "classes").update(stage=None)),
    "fewer choices": ("pure forest", lambda c: event(c, "Selection", "selection").update(times=1)),
    "no number of choices": ("pure forest", lambda c: event(c, "Selection", "selection").update(times=None)),
    "choices of no stage": ("pure forest", lambda c: event(c, "Selection", "selection").update(stage=None)),
    "half a claim": ("pure forest", lambda c: event(c, "Selection", "selection").pop("stage")),
    "the other half": ("pure forest", lambda c: event(c, "Selection", "selection").pop("times")),
    "a stage that is none": ("pure forest", lambda c: event(c, "Selection", "selection").update(stage="refund")),
    "bounds of no column": ("pure forest", lambda c: event(c, LAPLACE, "bounds").update(column=None)),
    "bounds of a strange column": ("forest", lambda c: event(c, LAPLACE, "bounds").update(column="salary")),
    "bounds for two tables": ("forest", lambda c: event(c, LAPLACE, "bounds").update(times=2)),
    "parts of another stage": ("forest", lambda c: part(c, "one-way").update(stage="cliques")),
    "parts of no stage": ("forest", lambda c: part(c, "one-way").update(stage=None)),
    "shapes of no stage": ("forest", lambda c: part(c, "trees").update(stage=None)),
    "choices in parts of no stage": ("forest", lambda c: part(c, "selection").update(stage=None)),
    "a part whose stage is none": ("forest", lambda c: part(c, "trees").update(stage="refund")),
    "a part of another kind's stage": ("forest", lambda c: part(c, "trees").update(stage="pairs")),
    "leaves of another stage": ("bins", lambda c: event(c, LAPLACE, "leaves").update(stage="one-way")),
    "leaves that were bounds": ("bins", lambda c: event(c, LAPLACE, "leaves").update(stage="bounds", column="x")),
    "leaves of two trees": ("bins", lambda c: event(c, LAPLACE, "leaves").update(times=2)),
    "bounds of a strange column, tree": ("tree", lambda c: event(c, LAPLACE, "bounds").update(column="salary")),
    "bounds that were classes": ("tree", lambda c: event(c, LAPLACE, "bounds").update(stage="classes")),
    "splits of column trees": ("tree", lambda c: event(c, "SplitDecisions", "splits").update(stage="trees")),
    "splits of two trees": ("tree", lambda c: event(c, "SplitDecisions", "splits").update(times=2)),
    "another decay of one tree": ("tree", lambda c: event(c, "SplitDecisions", "splits").update(decay=1)),
    "bounds of a strange column, grid": ("grid", lambda c: event(c, LAPLACE, "bounds").update(column="salary")),
}


@in_one_test(("name", "change"), FORGED.values(), ids=FORGED)
def test_forged_fields_are_refused(files, tmp_path, name, change):
    """A field that disagrees with the plan, the schema or the noise is a contradiction, and true notes do not help."""
    with pytest.raises(FileError, match="inconsistent contents") as caught:
        sp.load(changed(files[name], change, tmp_path / "forged"))
    assert len(str(caught.value).partition("inconsistent contents: ")[2]) > 5


def cheaper(card, entry: dict, epsilon: Fraction) -> None:
    """A charge of less epsilon, and a card that adds up to what is left."""
    entry["epsilon"] = str(epsilon)
    total = str(sum((Fraction(event["epsilon"]) for event in card["events"] if "epsilon" in event), Fraction(0)))
    card["epsilon"] = card["parameters"]["epsilon"] = total


def shallow_trees(card) -> None:
    decisions = event(card, "SplitDecisions", "trees")
    decisions["levels"] = 1
    cheaper(card, decisions, 2 * Fraction(decisions["rate"]) * decisions["times"])


def free_choices(card) -> None:
    cheaper(card, event(card, "Selection", "selection"), Fraction(1, 10**6))


def classes_for_columns(card) -> None:
    """Two charges for next to nothing claim to have counted what one charge for all columns counted."""
    classes = event(card, LAPLACE, "classes")
    card["events"].insert(0, dict(classes, column=None))
    cheaper(card, card["events"][0], Fraction(1, 10**6))


def bounds_twice(card) -> None:
    card["events"].insert(0, dict(event(card, LAPLACE, "bounds")))
    cheaper(card, card["events"][0], Fraction(1, 10**6))


@pytest.mark.parametrize("change", [shallow_trees, free_choices, classes_for_columns, bounds_twice])
def test_a_forest_cannot_be_made_cheaper(files, tmp_path, change):
    """Charges that are lowered, or paid for by others, contradict the plan, although all sums are right."""
    with pytest.raises(FileError, match="inconsistent contents"):
        sp.load(changed(files["pure forest"], change, tmp_path / "forged"))


def test_classes_without_a_target_are_refused(files, tmp_path):
    """A call that names no target counted no classes."""

    def forget(card) -> None:
        card["parameters"]["target"] = None

    with pytest.raises(FileError, match="the call names no target"):
        sp.load(changed(files["pure forest"], forget, tmp_path / "forged"))


# ------------------------------------------------------------------------------------------------ old files


def as_written_before(card) -> None:
    """A card of today as one was written when events had no such fields: their notes still say it all."""
    for entry in each(card):
        for name in ("stage", "column", *(("times", "decay") if "event" in entry else ())):
            entry.pop(name, None)


@pytest.mark.parametrize("name", MODELS)
def test_notes_of_old_files_are_understood(files, tmp_path, name):
    """Without the fields, notes give the same stages, the same checks and the same explanation."""
    old = sp.load(changed(files[name], as_written_before, tmp_path / "old"))
    true = sp.load(files[name])
    assert said(old) == said(true)
    claims = [(getattr(event, "stage", None), getattr(event, "times", None)) for event in true.card.events]
    assert [(getattr(event, "stage", None), getattr(event, "times", None)) for event in old.card.events] == claims


OLD = {
    "a number of trees": ("pure forest", "shapes of", "shapes of 99 column trees"),
    "fewer trees": ("pure forest", "shapes of", "shapes of 1 column trees"),
    "words around the number": ("pure forest", "shapes of", "the shapes of 2 column trees"),
    "another digit": ("pure forest", "shapes of", "shapes of \u0662 column trees"),
    "more tables": ("pure forest", "one-way", "one-way: 99 tables"),
    "no number": ("pure forest", "one-way", "one-way"),
    "another word": ("pure forest", "one-way", "one-way: 3 pictures"),
    "other classes": ("pure forest", "classes", "classes"),
    "other choices": ("pure forest", "choices of columns", "choices"),
}


@pytest.mark.parametrize(("name", "words", "note"), OLD.values(), ids=OLD)
def test_old_notes_are_read_to_the_letter(files, tmp_path, name, words, note):
    """Words that no fit wrote claim nothing, and what then is not paid for is missed, as it was."""

    def change(card):
        as_written_before(card)
        found = [entry for entry in each(card) if words in entry["note"]]
        assert found, [entry["note"] for entry in each(card)]
        found[0]["note"] = note

    with pytest.raises(FileError, match="inconsistent contents"):
        sp.load(changed(files[name], change, tmp_path / "old"))


WRITTEN = [
    ({"event": "SplitDecisions", "note": "shapes of 12 column trees"}, {"stage": "trees", "times": 12}),
    ({"event": "SplitDecisions", "note": "table: split decisions"}, {"stage": "splits", "times": 1}),
    ({"event": "SplitDecisions", "note": "shapes of 012 column trees"}, {"stage": None, "times": None}),
    ({"event": "SplitDecisions", "note": "12"}, {"stage": None, "times": None}),
    ({"event": LAPLACE, "note": "cliques: 5 tables"}, {"stage": "cliques", "times": 5}),
    ({"event": LAPLACE, "note": "bounds of a: b\n: leaf counts"}, {"stage": "bounds", "column": "a: b\n"}),
    ({"event": LAPLACE, "note": 'classes: sizes of those of "it\'s"'}, {"stage": "classes", "times": 1}),
    ({"event": LAPLACE, "note": "forest: sizes of the classes of 'z'"}, {"stage": "classes", "times": 1}),
    ({"event": LAPLACE, "note": "bounds of x"}, {"stage": None, "column": None}),
    ({"event": LAPLACE, "note": "selection: 5 tables"}, {"stage": None, "times": None}),
    ({"event": LAPLACE, "note": "trees"}, {"stage": None}),
    ({"event": "LeafMoments", "note": "table: leaf counts and means"}, {"stage": "leaves"}),
    ({"event": "Selection", "note": "4 choices of columns to look at together"}, {"stage": "selection", "times": 4}),
    ({"event": "Selection", "note": "4 choices of columns to look at together."}, {"stage": None, "times": None}),
]


@in_one_test(("entry", "wanted"), WRITTEN, ids=[entry["note"] for entry, _ in WRITTEN])
def test_old_entries_of_a_ledger(entry, wanted):
    """An entry without fields is read by its note; written again, it has the fields, and reads back as itself."""
    numbers = {"epsilon": "1/2", "sensitivity": 2, "rule": "privtree", "rate": "1/8", "levels": 4}
    found = event_from_dict(numbers | entry)
    assert {name: getattr(found, name) for name in wanted} == wanted
    again = event_to_dict(found)
    assert event_from_dict(again) == found
    # With the field, the note is no longer read.
    assert event_from_dict(again | {"note": "cliques: 99 tables"}) == replace(found, note="cliques: 99 tables")


def test_a_charge_of_ones_own_claims_nothing():
    """A note that looks like an old one stays a note where the event was made without a stage."""
    for made in (
        DiscreteLaplaceCounts(Fraction(1), 2, "one-way: 3 tables"),
        SplitDecisions(Fraction(1), "privtree", Fraction(1, 8), 4, "shapes of 3 column trees"),
        Choices(Fraction(1), "3 choices of columns to look at together"),
    ):
        assert event_from_dict(event_to_dict(made)) == made
        assert made.stage is made.times is None
    own = (TreeShapes(Fraction(1, 30), 21, 20, 3, "trees"), GaussianTables(Fraction(900), 4, "pairs"))
    composed = ComposedRelease(Fraction(1), Fraction(1, 1000), (*own, Selections(Fraction(1, 20), 2, "selection")), "n")
    assert event_from_dict(event_to_dict(composed)) == composed
    assert [stage.name for stage in stages([composed], Unit.REPLACE_ONE)] == ["other"] * 3


GOLDEN_STAGES = {
    "v1-forest-mixed": [("classes", 1), ("trees", 5), ("one-way", 9), ("pairs", 9), ("cliques", 8), ("selection", 6)],
    "v1-forest-pure": [("trees", 3), ("one-way", 3), ("cliques", 5), ("selection", 5)],
}


@in_one_test("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_files_have_their_stages(path):
    """Every charge of the first files is of a stage, but for sums, which have none; forests tell them as ever."""
    card = sp.load(path).card
    charges = [event for event in card.events if not isinstance(event, (Brand, ComposedRelease))]
    charges += [part for event in card.events if isinstance(event, ComposedRelease) for part in event.parts]
    assert all(charge.stage in charge.stages for charge in charges if hasattr(charge, "stages"))
    if path.stem in GOLDEN_STAGES:
        found = stages(card.events, Unit.parse(card.unit))
        assert [(stage.name, stage.times) for stage in found] == GOLDEN_STAGES[path.stem]
