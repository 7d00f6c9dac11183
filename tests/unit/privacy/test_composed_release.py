"""What is paid for together: one charge that lists its parts, checked when it is made, and in an account believed."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

import spinney as sp
from spinney.errors import BudgetError, FileError, ParameterError
from spinney.privacy import composition
from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_delta, least_noise
from spinney.privacy.mechanisms import (
    ComposedRelease,
    DiscreteLaplaceCounts,
    GaussianTables,
    GaussianVector,
    Selection,
    Selections,
    TreeShapes,
    event_from_dict,
    event_line,
    event_lines,
    event_to_dict,
    total_delta,
    total_epsilon,
)
from spinney.release.card import Card
from support.command_line import spinney

ONE, DELTA = Fraction(1), Fraction(1, 10**5)
PARTS = (
    TreeShapes(Fraction(1, 30), 21, 20, 3, "trees"),
    GaussianTables(Fraction(700, 3), 4, "one-way", stage="one-way"),
    Selections(Fraction(1, 20), 2, "selection"),
    GaussianVector(Fraction(1, 300), "products", stage="products"),
)


def forest(epsilon=ONE, delta=DELTA, parts=PARTS) -> ComposedRelease:
    return ComposedRelease(Fraction(epsilon), Fraction(delta), parts, note="forest")


def described() -> dict:
    return json.loads(json.dumps(event_to_dict(forest())))


def test_one_charge_counts_once():
    """Epsilon and delta of the whole add up with other charges; those of the parts do not."""
    ledger = sp.Ledger(limit=2, delta="2e-5")
    ledger.charge(forest(), DiscreteLaplaceCounts(Fraction(1, 2), 2, "counts"), Selection(Fraction(1, 4), "choices"))
    assert (ledger.spent, ledger.spent_delta) == (Fraction(7, 4), DELTA)
    assert total_epsilon([forest()]) == 1
    assert total_delta([forest(), forest()]) == 2 * DELTA


@pytest.mark.parametrize("unit", [Unit.REPLACE_ONE, Unit.ADD_REMOVE])
def test_a_charge_below_the_cost_of_its_parts_is_refused(unit):
    """The least delta that can be claimed is taken, a hair less is not, and nothing is recorded."""
    half = Fraction(1, 2)
    least = composed_delta(PARTS, half, unit)
    ledger = sp.Ledger(limit=10, delta="0.1", unit=unit)
    with pytest.raises(BudgetError, match=r"parts of 'forest' cost delta=.* at epsilon=1/2 in unit .*least_noise"):
        ledger.charge(forest(half, least * Fraction(999_999, 10**6)))
    assert ledger.events == ()
    ledger.charge(forest(half, least))
    assert ledger.spent_delta == least


def test_the_unit_of_the_account_decides():
    """Parts that suffice where a row is added or removed do not where one is replaced."""
    parts = least_noise(lambda budget: [GaussianTables(1 / budget, 1, "t")], ONE, DELTA, Unit.ADD_REMOVE)
    sp.Ledger(limit=1, delta=DELTA, unit="add-remove").charge(forest(parts=parts))
    with pytest.raises(BudgetError, match="replace-one"):
        sp.Ledger(limit=1, delta=DELTA).charge(forest(parts=parts))


def test_parents_check_too_and_record_first():
    """Books inside an account: both hold the event; the account's limit on delta holds."""
    account = sp.Ledger(limit=5, delta=DELTA)
    sp.Ledger(limit=1, delta=DELTA, parent=account).charge(forest())
    assert account.events == (forest(),)
    books = sp.Ledger(limit=1, delta=DELTA, parent=account)
    with pytest.raises(BudgetError, match="delta=1e-05 does not fit"):
        books.charge(forest())
    assert books.events == ()


def test_a_pure_account_takes_no_composed_release():
    """A claim without delta cannot be composed, and a pure account has none to give."""
    with pytest.raises(ParameterError, match="delta=0"):
        sp.Ledger(limit=1).charge(forest(delta=0))
    with pytest.raises(BudgetError, match="does not fit: the ledger is pure"):
        sp.Ledger(limit=1).charge(forest())


# ------------------------------------------------------------------------------------------------ JSON


def test_parts_survive_json():
    """Every part reads back as itself, fractions exactly, in order."""
    assert event_from_dict(described()) == forest()
    assert described()["parts"][1] == {
        "part": "GaussianTables",
        "variance": "700/3",
        "times": 4,
        "note": "one-way",
        "stage": "one-way",
    }
    assert described()["parts"][3] == {
        "part": "GaussianVector",
        "mean_squared": "1/300",
        "note": "products",
        "stage": "products",
    }


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"part": "FreeLunch"}, ParameterError),
        ({"times": 0}, ParameterError),
        ({"times": "4"}, ParameterError),
        ({"variance": "none"}, ValueError),
    ],
)
def test_parts_that_are_not_known_are_refused(change, error):
    """A part that this version cannot account for is no part; neither is one whose numbers make no sense."""
    event = described()
    event["parts"][1] |= change
    with pytest.raises(error):
        event_from_dict(event)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"mean_squared": "none"}, ValueError),
        ({"mean_squared": "0"}, ParameterError),
        ({"mean_squared": "-1/300"}, ParameterError),
        ({"mean_squared": "2000"}, ParameterError),
        ({"mean_squared": None}, ValueError),
        ({"mean_squared": ["1/300"]}, ValueError),
        ({"mean_squared": True}, ValueError),
        ({"mean_squared": "1/" + "9" * 5000}, ValueError),
        ({"stage": "cliques"}, ParameterError),
        ({"note": 7}, ParameterError),
    ],
)
def test_vectors_that_are_none_are_refused(change, error):
    """A squared mean that is no number in range, or the stage of another part: no event comes of it."""
    event = described()
    event["parts"][3] |= change
    with pytest.raises(error):
        event_from_dict(event)


def test_a_vector_without_a_squared_mean_is_refused():
    """Nothing is made up for an entry that is missing; an entry that means nothing for it is passed over."""
    event = described()
    event["parts"][3]["times"] = 5
    assert event_from_dict(event) == forest()
    del event["parts"][3]["mean_squared"]
    with pytest.raises(KeyError, match="mean_squared"):
        event_from_dict(event)


def test_an_account_with_an_unknown_part_does_not_open(tmp_path: Path):
    """A ledger that somebody changed is refused as a whole, and says which entry it is."""
    path = tmp_path / "people.ledger"
    sp.Ledger.create(path, limit=1, delta=DELTA).charge(forest())
    path.write_bytes(path.read_bytes().replace(b"TreeShapes", b"TreeSounds"))
    with pytest.raises(FileError, match="entry"):
        sp.Ledger.open(path)


def test_reading_an_account_does_not_do_the_sum_again(tmp_path: Path, monkeypatch):
    """What was checked when it was charged is believed when the account is opened again; files of releases are not."""
    path = tmp_path / "people.ledger"
    sp.Ledger.create(path, limit=2, delta="1e-4").charge(forest())

    def never(*given):
        raise AssertionError("composed again")

    monkeypatch.setattr(composition, "_composed_delta", never)
    again = sp.Ledger.open(path)
    assert again.events == (forest(),)
    again.charge(DiscreteLaplaceCounts(Fraction(1, 2), 2, "counts"))
    with pytest.raises(AssertionError, match="composed again"):
        again.charge(forest())


# ------------------------------------------------------------------------------------------------ for people


def test_lines_show_the_parts_below_the_charge():
    """One line with the pair that was paid, then one line a part: how many of what, for what, by which law."""
    first, *parts = event_lines(forest())
    assert first == event_line(forest())
    assert first.split() == ["(1,", "1e-05)", "forest"]
    assert [line.strip() for line in parts] == [
        "3 tree shapes: trees (20 levels, scale 30, decay 21)",
        "4 tables: one-way (discrete Gaussian, variance 233.333)",
        "2 selections: selection (exponential mechanism, range 0.05)",
        "1 vector of sums: products (discrete Gaussian, squared mean 0.00333333)",
    ]
    assert all(line.startswith(" " * 12) for line in parts)
    assert event_lines(Selection(Fraction(1, 4), "choices")) == ["      0.25  choices"]


def test_the_card_shows_the_parts(square):
    """Text and JSON of a card name every part; the card reads back."""
    card = replace(sp.GridSynthesizer(1).fit(*square).card_, events=(forest(),))
    assert card.guarantee == "(1, 1e-05)-differential privacy, unit replace-one"
    assert "\n    (1, 1e-05)  forest\n                  3 tree shapes: trees" in str(card)
    assert Card.from_dict(json.loads(card.to_json())).events == (forest(),)


def test_the_command_line_shows_the_parts(tmp_path: Path):
    """`spinney ledger` lists the parts below their charge, `--json` in full."""
    path = tmp_path / "people.ledger"
    sp.Ledger.create(path, limit=2, delta="1e-4").charge(forest())
    assert "3 tree shapes: trees" in spinney("ledger", path).out
    (event,) = spinney("ledger", path, "--json").json["events"]
    assert [part["part"] for part in event["parts"]] == [
        "TreeShapes",
        "GaussianTables",
        "Selections",
        "GaussianVector",
    ]
