"""The release card: the promise and its price, for people and for programs."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

import spinney as sp
from spinney.files import full_version
from spinney.privacy.mechanisms import DiscreteGaussianVector, UnsafeEntropy
from spinney.release.card import Card


@pytest.fixture(scope="module")
def model(people):
    frame, schema = people
    return sp.KDTreeSynthesizer("1/3", threshold=4, tree_share="0.4").fit(frame, schema)


def test_the_card_survives_json(model):
    """What `to_json` writes `from_dict` reads: events, fractions, dates and zones included."""
    card = Card.from_dict(json.loads(model.card_.to_json()))
    assert card.to_dict() == model.card_.to_dict()
    assert card.schema == model.schema_
    assert card.epsilon == Fraction(1, 3)
    assert card.events == model.card_.events


def test_the_card_tells_a_program_everything(model):
    """Promise, price, parameters, plan, schema and sizes are plain JSON data."""
    described = json.loads(model.card_.to_json())
    assert described["epsilon"] == "1/3"
    assert described["is_private"] is True
    assert described["unit"] == "replace-one"
    assert described["synthesizer"] == "KDTreeSynthesizer"
    assert described["spinney_version"] == full_version()
    assert described["parameters"].keys() == model.get_params().keys()
    assert described["parameters"]["threshold"] == described["plan"]["threshold"] == 4
    assert described["released"] == {"bins": len(model.release_.bins)}
    assert described["schema"]["columns"].keys() == set(model.schema_)
    assert sum(Fraction(event["epsilon"]) for event in described["events"]) == Fraction(1, 3)


def test_the_card_tells_a_person_the_promise(model):
    """The printed card states the guarantee, the price of each part, every column, and what is not promised."""
    text = str(model.card_)
    assert "1/3 (about 0.3333)-differential privacy (pure), unit replace-one" in text
    assert "split decisions" in text
    assert "leaf counts" in text
    assert "1,500 (public, under replace-one)" in text
    assert "Not covered" in text
    for name in model.schema_:
        assert name in text


@pytest.mark.parametrize("structure", ["rounds", "tree", "target", "independent", "uniform"])
def test_a_forests_structure_is_shown_in_words(model, structure):
    """People read what was measured, never the bare name "tree", which is a method too; programs read the name."""
    card = replace(model.card_, design={"structure": structure})
    (line,) = (line.split(maxsplit=1) for line in str(card).splitlines() if "structure" in line)
    assert line[0] == "structure"
    assert " " in line[1]
    assert json.loads(card.to_json())["plan"] == {"structure": structure}


def test_a_structure_of_a_later_version_is_shown_by_its_name(model):
    """A name that this version has no words for is shown as it is."""
    assert "  structure   lattice" in str(replace(model.card_, design={"structure": "lattice"})).splitlines()


def test_a_card_with_an_earlier_spelling_of_a_parameter_loads(model):
    """Parameters are a record: `focus="small areas"`, now spelt "small-areas", is read and kept as it was written."""
    described = json.loads(model.card_.to_json())
    described["parameters"]["focus"] = "small areas"
    card = Card.from_dict(described)
    assert card.parameters["focus"] == "small areas"
    assert card.to_dict() == described
    assert str(card) == str(model.card_)


def test_a_pure_card_does_not_speak_of_delta(model):
    """Programs read a delta of 0; people read "pure"."""
    assert model.card_.delta == 0
    assert json.loads(model.card_.to_json())["delta"] == "0"
    assert "delta" not in str(model.card_)


def test_a_card_with_delta_promises_the_pair(model):
    """The promise, the price of the charge, the repr and the JSON all name delta; a brand still voids it."""
    event = DiscreteGaussianVector(Fraction(1), Fraction(1, 10**6), Fraction(4), Fraction(200), note="sums")
    card = replace(model.card_, events=(event,))
    assert card.guarantee == "(1, 1e-06)-differential privacy, unit replace-one"
    assert card.guarantee in str(card)
    assert "(1, 1e-06)  sums" in str(card)
    assert repr(card).startswith("Card(epsilon=1, delta=1e-06, unit=")
    again = Card.from_dict(json.loads(card.to_json()))
    assert (again.delta, again.events) == (Fraction(1, 10**6), (event,))
    assert replace(card, events=(event, UnsafeEntropy(note="seeded"))).guarantee == "none: see the warning"


def test_cards_from_before_delta_are_read(model):
    """The entry follows from the events, so a card without it is the same card."""
    described = model.card_.to_dict()
    del described["delta"]
    assert Card.from_dict(described).to_dict() == model.card_.to_dict()


@pytest.mark.parametrize(
    ("epsilon", "shown"),
    [("0.1", "0.1-diff"), (2, "2-diff"), ("1/3", r"1/3 (about 0.3333)-diff"), ("0.125", "0.125-diff")],
)
def test_epsilon_is_shown_as_people_write_it(square, epsilon, shown):
    """Short decimals as decimals, other fractions exactly with a hint."""
    assert shown in str(sp.GridSynthesizer(epsilon).fit(*square).card_)


@pytest.mark.parametrize(
    ("value", "plain"),
    [(Fraction(1, 3), "1/3"), ({"x": 3, "y": 4}, {"x": 3, "y": 4}), (None, None), ("0.5", "0.5")],
)
def test_parameters_are_shown_as_given(square, value, plain):
    """Parameters of any type become JSON data that reads the same."""
    name = "bins" if isinstance(value, dict) else "threshold" if value is None else "epsilon"
    model = sp.GridSynthesizer(**{name: value}).fit(*square)
    assert json.loads(model.card_.to_json())["parameters"][name] == plain


def test_reprs_are_short(model):
    """Results show their size and budget on one line."""
    n_bins = len(model.release_.bins)
    assert repr(model.release_.bins) == f"NoisyBins({n_bins} bins on {len(model.schema_)} axes)"
    assert repr(model.card_) == f"Card(epsilon=1/3 (about 0.3333), unit='replace-one', {n_bins} bins)"
    assert repr(model.release_).startswith("BinnedRelease(Card(")


@pytest.mark.parametrize(
    "groups",
    [
        [],
        [{"rows": 2, "epsilon": "1/10", "delta": "0"}],
        [{"rows": n, "epsilon": "1/10", "delta": "0"} for n in (2, 5, 10)],
        "none",
    ],
)
def test_promises_to_groups_are_those_of_the_events(square, groups):
    """A card that promises more to a person with several rows than its charges give is not read."""
    table, schema = square
    card = sp.KDTreeSynthesizer(2).fit(table, schema).card_
    stated = card.to_dict()["groups"]
    assert [group["rows"] for group in stated] == [2, 5, 10]
    card.check_groups(stated)
    with pytest.raises(ValueError, match="promises groups of rows"):
        card.check_groups(groups)
