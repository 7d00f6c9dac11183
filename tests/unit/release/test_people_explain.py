"""What a release of persons says of itself, and which questions it answers."""

from __future__ import annotations

import json

import pytest

import spinney as sp
from spinney.errors import ParameterError
from support.small_people import FLAT, N_CUSTOMERS, flat_model, linked_model, shop


def test_an_explanation_tells_persons_and_rows() -> None:
    """The number of persons, how alike their rows are, hidden levels, dependences, and where the budget went."""
    found = linked_model().explain()
    assert found.n_persons == N_CUSTOMERS
    (sales,) = found.rows
    assert sales.shape.name == "sales"
    columns = {column.name: column for column in sales.columns}
    assert set(columns) == {"day", "amount", "kind"}
    assert columns["kind"].correlation > 0.15, "kinds go by the customer's taste"
    assert columns["amount"].correlation < 0.15
    assert any(dependence.columns == ("kind",) and dependence.on for dependence in sales.dependences)
    assert {"one-way", "row one-way", "alikeness", "row tables"} <= {stage.name for stage in found.stages}
    assert sum(stage.share for stage in found.stages) == pytest.approx(1)
    json.dumps(found.to_dict())


def test_an_explanation_is_a_page() -> None:
    page = str(linked_model().explain())
    assert max(map(len, page.splitlines())) <= 130
    for words in (
        f"persons: {N_CUSTOMERS}",
        "rows of sales: at most 20 of a person",
        "correlation",
        "what rows depend on",
    ):
        assert words in page
    assert "counted with every column" in page
    assert str(linked_model().explain()) == page, "a release has one explanation"
    flat = str(flat_model().explain())
    assert "rows: at most 20 of a person, by customer, in the order of day" in flat


def test_an_explanation_outlives_a_file(tmp_path) -> None:
    linked_model().save(tmp_path / "a.spinney")
    loaded = sp.load(tmp_path / "a.spinney")
    assert str(loaded.explain()) == str(linked_model().explain())
    assert str(loaded.card) == str(linked_model().card_)


def test_questions_are_about_persons() -> None:
    release = linked_model().release_
    customers = shop()["customers"]
    answer = release.count({"customers.region": "west"}, level=0.9999)
    assert answer.low <= (customers["region"] == "west").sum() <= answer.high
    assert release.proportion({"customers.churn": True}, given={"customers.region": "west"}).estimate < 1
    assert release.table(["customers.region"]).by == ("customers.region",)
    assert release.trust(["customers.age", "sales.#"])
    bars = release.error_bars(["customers.age"], pairs=False)
    assert bars.who == "persons"
    assert [column.name for column in release.error_bars(pairs=False).columns] == ["age", "region", "churn", "sales.#"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda release: release.mean("sales.amount"),
        lambda release: release.count({"sales.kind": "food"}),
        lambda release: release.table("sales.kind"),
        lambda release: release.trust(["sales.amount"]),
        lambda release: release.error_bars(["sales.amount"]),
    ],
)
def test_questions_about_rows_are_refused(ask) -> None:
    with pytest.raises(ParameterError, match=r"is a column of rows, .*'sales.#', the number of their rows"):
        ask(linked_model().release_)


@pytest.mark.parametrize("column", ["sales.~amount", "age", "customers.id", "customers.agee"])
def test_hidden_and_unknown_columns_are_not_asked(column: str) -> None:
    with pytest.raises(ParameterError, match="there is no column"):
        linked_model().release_.count({column: 1})


def test_a_card_names_the_columns_of_rows() -> None:
    card = str(flat_model().card_)
    for name, column in FLAT.items():
        assert f"{name:<22} {column!r}" in card
