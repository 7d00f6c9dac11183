"""A card is believed as far as its own events bear it out: on load, and by `spinney verify`."""

from __future__ import annotations

import io
import json
import time
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import spinney as sp
from spinney.errors import FileError
from spinney.release.verify import verification
from support.command_line import spinney
from support.in_one_test import in_one_test

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.spinney"))


def fitted() -> dict[str, object]:
    """Releases of all kinds and units, bounds paid for among them."""
    rng = np.random.default_rng(1)
    table = np.column_stack([rng.beta(2, 5, 600), rng.random(600), rng.random(600) < 0.4])
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1), "z": sp.Boolean()})
    private = sp.Schema({"x": sp.Real(bounds="private"), "y": sp.Real(0, 1), "z": sp.Boolean()})
    known = sp.Schema({"x": sp.Real(0, 1, bits=0), "y": sp.Real(0, 1, bits=0), "z": sp.Boolean()})
    models = {
        "moments": (sp.KDTreeSynthesizer(2), schema),
        "moments, add-remove": (sp.KDTreeSynthesizer(2, unit="add-remove"), schema),
        "bins": (sp.KDTreeSynthesizer(2, moments=False), schema),
        "paper": (sp.PaperTreeSynthesizer(2), schema),
        "paper, add-remove": (sp.PaperTreeSynthesizer("1/3", unit="add-remove"), schema),
        "no levels": (sp.KDTreeSynthesizer(2, max_depth=3), schema),
        "grid": (sp.GridSynthesizer("0.7", bins=3), schema),
        "grid, add-remove": (sp.GridSynthesizer("0.7", bins=3, unit="add-remove"), schema),
        "private bounds": (sp.KDTreeSynthesizer(3, bounds_share="0.3"), private),
        "forest": (sp.ForestSynthesizer(2), schema),
        "forest, target": (sp.ForestSynthesizer(2, target="z"), schema),
        "forest, rounds": (sp.ForestSynthesizer(50, target="z", quality="high"), schema),
        "forest, pure": (sp.ForestSynthesizer(20, 0), schema),
        "forest, pure, add-remove": (sp.ForestSynthesizer(20, 0, unit="add-remove", target="z"), schema),
        "forest, add-remove": (sp.ForestSynthesizer(3, unit="add-remove"), schema),
        "forest, uniform": (sp.ForestSynthesizer("1e-5"), schema),
        "forest, only classes": (sp.ForestSynthesizer(6, target="z"), known),
        "forest, private bounds": (sp.ForestSynthesizer(6, bounds_share="0.3"), private),
    }
    return {name: model.fit(table, schema) for name, (model, schema) in models.items()}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("files")
    paths = {}
    for number, (name, model) in enumerate(fitted().items()):
        paths[name] = folder / f"{number}.spinney"
        model.save(paths[name])
    return paths


NAMES = [
    "moments",
    "moments, add-remove",
    "bins",
    "paper",
    "paper, add-remove",
    "no levels",
    "grid",
    "grid, add-remove",
    "private bounds",
    "forest",
    "forest, target",
    "forest, rounds",
    "forest, pure",
    "forest, pure, add-remove",
    "forest, add-remove",
    "forest, uniform",
    "forest, only classes",
    "forest, private bounds",
]


def forged(path: Path, change, to: Path) -> Path:
    """A copy of a release file with its card changed, all checksums right."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    card = json.loads(members["card.json"])
    change(card)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in (members | {"card.json": json.dumps(card).encode()}).items():
            archive.writestr(name, content)
    to.write_bytes(buffer.getvalue())
    return to


def charges(card) -> list[dict]:
    return [event for event in card["card"]["events"] if "epsilon" in event]


def total(card) -> None:
    """Make the stated sums those of the events, so that only the events themselves can give a forgery away."""
    for name in ("epsilon", "delta"):
        card["card"][name] = str(sum((Fraction(event.get(name, 0)) for event in charges(card)), Fraction(0)))


@in_one_test("name", NAMES)
def test_what_a_fit_saves_is_verified(files, name):
    """Every kind, rule and unit: loads, says what was checked, and arrives at the guarantee on the card."""
    release = sp.load(files[name])
    found = verification(release)
    assert found.guarantee == release.card.guarantee
    run = spinney("verify", files[name])
    assert run.status == 0
    assert release.card.guarantee in run.out
    assert "the card and the released numbers agree" in run.out
    described = spinney("verify", files[name], "--json").json
    assert described["epsilon"] == str(release.card.epsilon)
    whole = [*found.checks, *release.verify_model()]
    assert described["checks"][: len(whole)] == whole
    assert "the plan was made again" in " ".join(described["checks"][len(whole) :])
    assert described["checks"][: len(found.checks)] == list(found.checks)


@in_one_test("path", GOLDEN, ids=lambda path: path.stem)
def test_old_files_are_verified(path):
    """Files of the first version hold what they promise, and their brands are told."""
    run = spinney("verify", path)
    assert run.status == 0
    assert "NOT PRIVATE" in run.err
    assert "none: see the warning" in run.out


STATED = {
    "a smaller epsilon": lambda c: c["card"].update(epsilon="1/1000"),
    "a larger epsilon": lambda c: c["card"].update(epsilon="1000"),
    "an epsilon of NaN": lambda c: c["card"].update(epsilon="nan"),
    "an epsilon that is a list": lambda c: c["card"].update(epsilon=["1"]),
    "another delta": lambda c: c["card"].update(delta="1/10000000"),
    "private, it says": lambda c: c["card"].update(is_private=not c["card"]["is_private"]),
    "a number for private": lambda c: c["card"].update(is_private=1),
    "warnings that do not follow": lambda c: c["card"].update(warnings=["all is well"]),
    "the other unit": lambda c: c["card"].update(
        unit="add-remove" if c["card"]["unit"] == "replace-one" else "replace-one"
    ),
    "the other unit, rows and all": lambda c: c["card"].update(
        {"unit": "add-remove", "n_rows": None}
        if c["card"]["unit"] == "replace-one"
        else {"unit": "replace-one", "n_rows": 600}
    ),
    "less than a row": lambda c: c["card"].update(n_rows=600 if c["card"]["n_rows"] is None else None),
    "a negative epsilon beside the others": lambda c: (
        c["card"]["events"].append({"event": "Selection", "epsilon": "-1/2", "note": "refund"}),
        total(c),
    ),
}


@in_one_test("change", STATED.values(), ids=STATED)
@in_one_test("name", ["moments", "grid, add-remove", "forest", "forest, pure, add-remove", "paper"])
def test_cards_that_state_other_than_their_events(files, tmp_path, name, change):
    """Epsilon, delta, unit, brands and rows are what the events give, or the file is refused, by the verb too."""
    path = forged(files[name], change, tmp_path / "forged")
    with pytest.raises(FileError, match="inconsistent contents"):
        sp.load(path)
    for verb in ("verify", "card"):
        run = spinney(verb, path)
        assert run.status == 1
        assert "inconsistent contents" in run.err


def cheaper(kind):
    """Say that one kind of event cost a thousandth."""

    def change(card):
        (event, *_) = [event for event in charges(card) if event["event"] == kind]
        event["epsilon"] = str(Fraction(event["epsilon"]) / 1000)
        total(card)

    return change


EVENTS = [
    ("moments", cheaper("LeafMoments")),
    ("moments", cheaper("SplitDecisions")),
    ("bins", cheaper("DiscreteLaplaceCounts")),
    ("bins", cheaper("SplitDecisions")),
    ("paper", cheaper("SplitDecisions")),
    ("paper, add-remove", cheaper("SplitDecisions")),
    ("grid", cheaper("DiscreteLaplaceCounts")),
    ("forest", cheaper("ComposedRelease")),
    ("forest, rounds", cheaper("ComposedRelease")),
    ("forest, pure", cheaper("SplitDecisions")),
    ("forest, pure", cheaper("DiscreteLaplaceCounts")),
]


@pytest.mark.parametrize(("name", "change"), EVENTS, ids=[f"{name}-{i}" for i, (name, _) in enumerate(EVENTS)])
def test_events_that_are_not_true_in_themselves(files, tmp_path, name, change):
    """A "0.001-DP" card above unchanged noise: the sums on the card are right, the events are not."""
    with pytest.raises(FileError, match="inconsistent contents"):
        sp.load(forged(files[name], change, tmp_path / "forged"))


def event(card, kind) -> dict:
    return next(event for event in card["card"]["events"] if event["event"] == kind)


def part(card, kind) -> dict:
    return next(part for part in event(card, "ComposedRelease")["parts"] if part["part"] == kind)


def plan(card) -> dict:
    return card["card"]["plan"]


TWICE = {
    "counts of another plan": ("bins", lambda c: plan(c).update(count_epsilon="1/2")),
    "noise of another plan": ("bins", lambda c: plan(c).update(count_noise_scale=1e9)),
    "decisions of another plan": ("bins", lambda c: plan(c).update(decision_epsilon="1/2")),
    "decision noise of another plan": ("bins", lambda c: plan(c).update(decision_noise_scale=1e9)),
    "a decay of nothing": ("bins", lambda c: plan(c).update(decay=0)),
    "fewer levels": ("bins", lambda c: event(c, "SplitDecisions").update(levels=1)),
    "leaves below the plan": (
        "bins",
        lambda c: (plan(c).update(max_depth=1), event(c, "SplitDecisions").update(levels=1)),
    ),
    "another rule": ("bins", lambda c: event(c, "SplitDecisions").update(rule="paper")),
    "a unit of another plan": ("bins", lambda c: plan(c).update(unit="add-remove")),
    "no plan": ("bins", lambda c: c["card"].update(plan={})),
    "a sensitivity of another unit": ("grid", lambda c: event(c, "DiscreteLaplaceCounts").update(sensitivity=1)),
    "a larger sensitivity": ("grid", lambda c: event(c, "DiscreteLaplaceCounts").update(sensitivity=4)),
    "no charge at all": ("grid", lambda c: (c["card"].update(events=[]), total(c))),
    "a charge for something else": (
        "grid",
        lambda c: c["card"].update(events=[{"event": "Selection", "epsilon": "7/10", "note": "choices"}]),
    ),
    "noise of other leaves": ("moments", lambda c: c.update(rate="1/7")),
    "another quantum": ("moments", lambda c: c.update(quantum=512)),
    "less noise on the leaves": ("moments", lambda c: plan(c).update(count_noise_scale=0.1)),
    "bounds of another unit": ("private bounds", lambda c: event(c, "DiscreteLaplaceCounts").update(sensitivity=1)),
    "wider noise than stated": ("forest", lambda c: part(c, "GaussianTables").update(variance="1000000")),
    "narrower noise than stated": ("forest", lambda c: part(c, "GaussianTables").update(variance="1")),
    "other noise in the plan": ("forest", lambda c: plan(c).update({"one-way noise": 0.001})),
    "calmer decisions": ("forest", lambda c: part(c, "TreeShapes").update(rate="1/1000000")),
    "fewer tables": ("forest, rounds", lambda c: [p.update(times=1) for p in event(c, "ComposedRelease")["parts"]]),
    "another total": ("forest", lambda c: c.update(noisy_total=5)),
    "no charge for a forest": ("forest", lambda c: (c["card"].update(events=[]), total(c))),
    "more trees": ("forest, pure", lambda c: event(c, "SplitDecisions").update(times=99)),
    "more than was asked for": ("grid", lambda c: c["card"]["parameters"].update(epsilon="0.1")),
    "another unit than was asked for": ("grid", lambda c: c["card"]["parameters"].update(unit="add-remove")),
}


@in_one_test(("name", "change"), TWICE.values(), ids=TWICE)
def test_numbers_that_stand_twice_agree(files, tmp_path, name, change):
    """Noise, depths, tables and totals stand in the card, in the plan and in the contents; none may differ."""
    with pytest.raises(FileError, match="inconsistent contents") as caught:
        sp.load(forged(files[name], change, tmp_path / "forged"))
    assert len(str(caught.value).partition("inconsistent contents: ")[2]) > 10  # and it says which


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.update(variance="1"),
        lambda e: e.update(epsilon="1/1000"),
        lambda e: e.update(delta="1/1000000000"),
        lambda e: e.update(sensitivity_squared="1e40"),
        lambda e: e.update(variance="1e200"),
    ],
)
def test_gaussian_noise_is_accounted_for_anew(tmp_path, change):
    """Sensitivity and variance give epsilon and delta, or the file is refused."""

    def apply(card):
        change(event(card, "DiscreteGaussianVector"))
        total(card)

    golden = next(path for path in GOLDEN if "points" in path.stem)
    with pytest.raises(FileError, match="inconsistent contents"):
        sp.load(forged(golden, apply, tmp_path / "forged"))


def test_more_parts_than_a_fit_makes(files, tmp_path):
    """Composing takes time for every part, so a file made to be slow is refused before it is."""

    def apply(card):
        composed = event(card, "ComposedRelease")
        composed["parts"] *= 10

    start = time.process_time()
    with pytest.raises(FileError, match="more parts than a fit makes"):
        sp.load(forged(files["forest"], apply, tmp_path / "forged"))
    assert time.process_time() - start < 3


def test_loading_again_costs_nothing(files):
    """The sum of a composed release is done once in a process."""
    sp.load(files["forest"])
    start = time.process_time()
    for _ in range(5):
        sp.load(files["forest"])
    assert time.process_time() - start < 1


# ------------------------------------------------------------------------------------------- charges that are gone


def without(*words: str):
    """A forgery that drops the charges whose note begins so, and lowers what the card states and the call asked for."""

    def change(card) -> None:
        events = card["card"]["events"]
        kept = [event for event in events if not event["note"].startswith(words)]
        assert len(kept) < len(events)
        card["card"]["events"] = kept
        total(card)

    return change


GONE = [
    ("private bounds", "bounds of"),
    ("forest, private bounds", "bounds of"),
    ("forest, target", "classes"),
    ("forest, pure, add-remove", "classes"),
    ("forest, pure", "one-way"),
    ("forest, pure", "shapes of"),
    ("forest, pure", "cliques"),
]


@pytest.mark.parametrize(
    ("name", "words", "lowers_the_call"),
    # Where the call is lowered too, nothing else in a file tells that bounds were paid for.
    [(*gone, False) for gone in GONE] + [(*gone, True) for gone in GONE[2:]],
)
def test_a_charge_that_is_gone_is_missed(files, tmp_path, name, words, lowers_the_call):
    """By the epsilon of the call; of a forest, also by what the plan, the columns and the tables ask for."""

    def change(card) -> None:
        without(words)(card)
        if lowers_the_call:
            card["card"]["parameters"]["epsilon"] = card["card"]["epsilon"]

    with pytest.raises(FileError, match="inconsistent"):
        sp.load(forged(files[name], change, tmp_path / "forged.spinney"))


@pytest.mark.parametrize("note", ["one-way", "trees"])
def test_fewer_tables_than_columns_are_noticed(files, tmp_path, note):
    """A composed charge that lists one table for all columns pays for one column."""

    def change(card) -> None:
        for part in charges(card)[-1]["parts"]:
            if part["note"] == note:
                part["times"] = 1

    with pytest.raises(FileError, match="fewer"):
        sp.load(forged(files["forest"], change, tmp_path / "forged.spinney"))


@pytest.mark.parametrize("model", [sp.KDTreeSynthesizer(2), sp.ForestSynthesizer(2)], ids=["tree", "forest"])
def test_bounds_off_the_data_cannot_lose_their_brand(tmp_path, model):
    """The schema remembers where bounds came from, so the event that says so must be there."""
    rows = np.random.default_rng(0).normal(size=(300, 2))
    schema = sp.Schema({"x": sp.Real(bounds="from-data-not-private"), "y": sp.Real(-9, 9)})
    model.fit(rows, schema).save(tmp_path / "true.spinney")

    def change(card) -> None:
        card["card"]["events"] = [event for event in card["card"]["events"] if event["event"] != "NotPrivate"]
        card["card"] |= {"is_private": True, "warnings": []}

    with pytest.raises(FileError, match="read off the data"):
        sp.load(forged(tmp_path / "true.spinney", change, tmp_path / "forged.spinney"))
