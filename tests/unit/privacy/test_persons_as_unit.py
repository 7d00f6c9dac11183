"""Persons with all their rows as the unit of privacy: what parts, ledgers and cards say of them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import spinney as sp
from spinney.errors import ParameterError
from spinney.forest.release.explain import stages
from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_delta
from spinney.privacy.mechanisms import (
    PERSON_STAGES,
    UNITS,
    ComposedRelease,
    GaussianVector,
    Selections,
    TreeShapes,
    WeightedTables,
    event_to_dict,
    part_from_dict,
    part_line,
    units_variance,
)
from spinney.release.card import Card

PERSONS = [Unit.REPLACE_PERSON, Unit.ADD_REMOVE_PERSON]
TABLES = WeightedTables(Fraction(1, 100), 3, "row tables", stage="row tables")
PARTS = (
    TABLES,
    TreeShapes(Fraction(1, 20), 14, 20, 2, "row trees", stage="row trees"),
    Selections(Fraction(1, 10), 4, "row selection", stage="row selection"),
    GaussianVector(Fraction(1, 400), "alikeness", stage="alikeness"),
)


def composed(unit, parts=PARTS, epsilon=Fraction(2)):
    delta = max(composed_delta(parts, epsilon, unit), Fraction(1, 10**6))
    return ComposedRelease(epsilon, delta, parts, note="people")


def card(unit):
    """A card of persons, made by hand: what a release of them carries."""
    schema = sp.Schema({"x": sp.Real(0, 1)})
    release = sp.ForestSynthesizer(2, "1e-6").fit(np.full((4000, 1), 0.5), schema).release_
    n_persons = 4000 if unit.n_is_public else None
    parameters = {"unit": unit.of_rows.value, "assumed_persons": 5000}
    return replace(
        release.card, unit=unit.value, events=(composed(unit),), n_rows=n_persons, parameters=parameters, design={}
    )


def test_the_unit_of_a_person_is_that_of_a_row_at_heart():
    """What a person's replacement or addition moves is told by the same numbers as that of a row."""
    for person, row in zip(PERSONS, (Unit.REPLACE_ONE, Unit.ADD_REMOVE), strict=True):
        assert person.is_person
        assert not row.is_person
        assert (person.factor, person.n_is_public) == (row.factor, row.n_is_public)
        assert person.of_rows is row
        assert row.of_rows is row
        assert row.of_persons is person
        assert person.of_persons is person
        assert Unit.parse(person.value) is person
        assert composed_delta(PARTS, Fraction(1), person) == composed_delta(PARTS, Fraction(1), row)


@pytest.mark.parametrize("unit", PERSONS)
@pytest.mark.parametrize(
    "model",
    [sp.ForestSynthesizer, sp.KDTreeSynthesizer, sp.GridSynthesizer, sp.PaperTreeSynthesizer],
    ids=lambda kind: kind.__name__,
)
def test_models_of_rows_refuse_persons(model, unit):
    """A model whose noise hides one row cannot promise anything to persons, and says which one can."""
    with pytest.raises(ParameterError, match=r"fit sp\.LinkedSynthesizer\(unit='(replace-one|add-remove)'\)"):
        model(1, unit=unit.value).fit(np.full((50, 1), 0.5), sp.Schema({"x": sp.Real(0, 1)}))


@pytest.mark.parametrize("unit", PERSONS)
def test_an_account_of_persons_takes_no_charge_of_rows(unit, tmp_path):
    """Rows and persons are never added up: each error names the unit of the ledger that is needed."""
    account = sp.Ledger.create(tmp_path / "people.ledger", limit=4, delta="1e-3", unit=unit.value)
    with pytest.raises(ParameterError, match=rf"protects single rows .* unit='{unit.of_rows.value}'\)"):
        sp.ForestSynthesizer(1, unit=unit.of_rows.value).fit(
            np.full((50, 1), 0.5), sp.Schema({"x": sp.Real(0, 1)}), ledger=account
        )
    rows = sp.Ledger(limit=4, delta="1e-3", unit=unit.of_rows.value)
    with pytest.raises(ParameterError, match=rf"protects persons .* --unit {unit.value}`"):
        rows.require(Fraction(1), unit=unit)
    account.charge(composed(unit))
    again = sp.Ledger.open(tmp_path / "people.ledger")
    assert again.unit is unit
    assert again.events == (composed(unit),)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.stage)
def test_parts_of_persons_are_not_charged_for_rows(part):
    """Another row of a person moves a table of shares as far as another person does: more than one added row may."""
    for unit in (Unit.REPLACE_ONE, Unit.ADD_REMOVE):
        account = sp.Ledger(limit=4, delta="1e-3", unit=unit)
        with pytest.raises(ParameterError, match=f"charge it to a ledger of unit='{unit.of_persons.value}'"):
            account.charge(composed(unit, (part,)))
        assert account.events == ()


def test_parts_of_persons_survive_the_file():
    """Every new part is written and read back, and stands on one line of an account."""
    for part in PARTS:
        assert part_from_dict(event_to_dict(part)) == part
        assert part.stage in PERSON_STAGES
        assert part.note in part_line(part)
    assert part_line(TABLES).startswith("3 tables of persons' rows: row tables (discrete Gaussian on units")
    with pytest.raises(ParameterError, match="is not one of WeightedTables"):
        WeightedTables(Fraction(1), 1, "no", stage="one-way")


@pytest.mark.parametrize("unit", PERSONS)
def test_the_budget_is_told_in_persons(unit):
    """The noise of weighted tables is stated in persons, not in units of which nobody has heard."""
    found = {stage.name: stage for stage in stages([composed(unit)], unit)}
    assert set(found) == {part.stage for part in PARTS}
    assert sum(stage.share for stage in found.values()) == pytest.approx(1)
    assert found["row tables"].noise_std == pytest.approx(10 * unit.factor**0.5)
    assert found["row tables"].noise.endswith("persons")
    assert "one person moves" in found["alikeness"].noise
    assert units_variance(Fraction(1, 100), unit) == 100 * unit.factor * UNITS**2 + 4


@pytest.mark.parametrize("unit", PERSONS)
def test_the_card_speaks_of_persons(unit):
    """Who is protected, how many persons, groups of persons; the number of rows is private either way."""
    shown = " ".join(str(card(unit)).split())
    told = "replaced by any other" if unit.n_is_public else "added or removed"
    assert f"unit one person with all their rows, {told} ({unit.value})" in shown
    assert "several persons together: 2 persons: epsilon" in shown
    counted = "4,000 (public, under replace-one)" if unit.n_is_public else "private; 5,000 assumed, not counted"
    assert f"persons {counted}" in shown
    assert "rows private, as their number is the persons' own" in shown
    assert card(unit).n_persons == (4000 if unit.n_is_public else None)


@pytest.mark.parametrize("unit", PERSONS)
def test_the_card_of_persons_survives_the_file(unit):
    """Files say n_persons where persons are the unit, and have no number of rows."""
    described = card(unit).to_dict()
    assert "n_rows" not in described
    assert [set(group) for group in described["groups"]] == [{"persons", "epsilon", "delta"}] * 3
    again = Card.from_dict(described)
    assert again.to_dict() == described
    with pytest.raises(KeyError):
        Card.from_dict(described | {"unit": unit.of_rows.value})


def test_cautions_speak_of_persons():
    """A delta above one over the number of persons is told as that."""
    weak = replace(
        card(Unit.REPLACE_PERSON), n_rows=10, events=(replace(composed(Unit.REPLACE_PERSON), delta=Fraction(1, 5)),)
    )
    assert any(
        "above one over the number of persons (1/10): publishing a few whole persons" in c for c in weak.cautions
    )


@pytest.mark.parametrize(
    ("is_thorough", "message"),
    [
        (False, "the card states unit as 'replace-one', and its events give 'replace-one-person'"),
        (True, "the unit is 'replace-one-person', and a release of kind 'forest' is of another"),
    ],
    ids=["plan left", "plan too"],
)
def test_a_forest_of_rows_cannot_pass_for_one_of_persons(is_thorough, message, tmp_path):
    """A file whose unit was changed by hand to that of persons is refused, in one place or in all: it hides rows."""
    from unit.release.test_verification import forged

    schema = sp.Schema({"x": sp.Real(0, 1)})
    sp.ForestSynthesizer(2, "1e-6").fit(np.full((400, 1), 0.5), schema).save(tmp_path / "rows.spinney")

    def promote(entries):
        described = entries["card"]
        described["unit"] = described["parameters"]["unit"] = "replace-one-person"
        described["n_persons"] = described.pop("n_rows")
        if is_thorough:
            described["plan"]["unit"] = "replace-one-person"

    with pytest.raises(sp.SpinneyError, match=message):
        sp.load(forged(tmp_path / "rows.spinney", promote, tmp_path / "forged"))
