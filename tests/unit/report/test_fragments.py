"""What notebooks show: short, self-contained pieces of HTML for every object that people look at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import spinney as sp
from spinney.documents import MOST_LINES, Document, Table
from spinney.metrics import compare
from support.reports import KINDS, Page, contents_of, golden
from support.small_forests import SCHEMA, fitted, table
from support.small_people import TABLES


def shown(thing: Any) -> Page:
    text = thing._repr_html_()
    assert text is not None
    assert len(text) < 60_000
    assert "http" not in text
    page = Page(text)
    assert "script" not in page.tags
    assert not page.ids, "ids of two outputs of a notebook would be the same"
    return page


@pytest.mark.parametrize("name", KINDS)
def test_releases_and_cards(name: str) -> None:
    release = golden(name)
    for thing in (release, release.card):
        assert release.card.guarantee in shown(thing).text


def test_a_void_guarantee_is_loud() -> None:
    assert "NOT PRIVATE" in shown(golden("v3-grid-branded")).text


@pytest.mark.parametrize(
    "model",
    [
        sp.KDTreeSynthesizer("1"),
        sp.ForestSynthesizer("1", target="<b>label</b>"),
        sp.GridSynthesizer("1"),
        sp.PaperTreeSynthesizer("1"),
        sp.LinkedSynthesizer("1"),
    ],
)
def test_synthesizers_before_the_fit(model: Any) -> None:
    page = shown(model)
    assert f"{type(model).__name__}, not fitted yet" in page.text
    assert "epsilon" in page.text
    assert "b" not in page.tags


def test_a_prior_is_not_shown() -> None:
    """A table that is given as a parameter may be private by mistake: only its type is told."""
    text = sp.ForestSynthesizer("1", prior=np.array([[424242.0]]))._repr_html_()
    assert text is not None
    assert "424242" not in text
    assert "ndarray" in text


def test_synthesizers_after_the_fit() -> None:
    page = shown(fitted())
    assert "ForestSynthesizer, fitted" in page.text
    assert fitted().card_.guarantee in page.text


def test_schemas_and_linked_tables() -> None:
    assert "Schema of 4 columns" in shown(SCHEMA).text
    assert "2 linked tables" in shown(TABLES).text
    assert "amount" in shown(TABLES).text


def test_ledgers() -> None:
    ledger = sp.Ledger(limit="2", delta="1e-6")
    sp.KDTreeSynthesizer("1/2").fit(
        np.random.default_rng(0).random((300, 2)), sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)}), ledger=ledger
    )
    text = shown(ledger).text
    assert "epsilon 0.5" in text
    assert "epsilon 1.5" in text
    assert "events" in text
    assert "none" in shown(sp.Ledger()).text


def test_explanations() -> None:
    assert "What the forest measured" in shown(fitted(target="label").explain()).text
    explanation = golden("v3-people-linked").explain()  # type: ignore[attr-defined]
    assert "What was measured of persons" in shown(explanation).text


def test_answers() -> None:
    """One answer is shown with its interval, the cells of a table with theirs."""
    release = fitted(target="label").release_
    answer = release.count({"label": True})
    assert str(answer).split()[0] in shown(answer).text
    assert answer.statement in shown(answer).text
    answers = release.table({"label": [False, True]})
    assert "Answers by label" in shown(answers).text
    assert "True" in shown(answers).text


def test_comparisons_warn_first() -> None:
    """Figures of the real table are for its holder; every column is in the table at once, the worst first."""
    release, real = fitted(target="label").release_, table(5000)
    found = compare(real, release.sample(seed=1), release.schema)
    page = shown(found)
    assert page.text.index("NOT PRIVATE") < page.text.index("worst")
    assert found.sense is not None
    of_rows = [*found.sense.tables(), *found.sense.row_tables(), *found.sense.common_tables()]
    assert page.tags["details"] == 2 + len(of_rows)
    assert [row[0] for row in found.lines()] == sorted(found.columns, key=lambda name: -found.columns[name].ks)
    for row in found.lines():
        assert " ".join(row) in page.text
    worst = max(found.pairs, key=found.pairs.__getitem__)
    assert f"{', '.join(worst)} {found.pairs[worst]:.4f}" in page.text


def test_findings_of_a_check() -> None:
    """Faults and warnings with their remedies in full, for the holder, and no value of the table."""
    real = table(500)
    clean = shown(sp.check(real, SCHEMA))
    assert "fit would accept this" in clean.text
    assert "NOT PRIVATE" in clean.text
    findings = sp.check(real, sp.Schema({**SCHEMA, "<b>none</b>": sp.Boolean(), "size": sp.Real(-2, 1)}))
    page = shown(findings)
    assert "fit would refuse this" in page.text
    assert "1 fault" in page.text
    assert "b" not in page.tags
    for finding in (*findings.faults, *findings.warnings):
        assert finding.message in page.text
    assert findings.warnings[0].n_rows is not None
    assert f"{findings.warnings[0].n_rows:,}" in page.text


def test_published_figures() -> None:
    """The figures by themselves and on the card, with their certified intervals."""
    square = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    model = sp.KDTreeSynthesizer("2", utility_share="0.05").fit(np.random.default_rng(0).random((300, 2)), square)
    assert model.release_.utility is not None
    for page in (shown(model.release_.utility), shown(model.card_)):
        for figure in model.release_.utility:
            assert f"{figure.name} {figure.estimate:.4f} {figure.low:.4f} to {figure.high:.4f}" in page.text


def test_reports() -> None:
    """What is promised and what to rely on, in short; the contents are the page's. The holder's own says so."""
    report = replace(contents_of("v3-forest-mixed"), warnings=[])
    page = shown(report)
    assert "what to rely on" in page.text
    assert str(report.promise["guarantee"]) in page.text
    assert "NOT PRIVATE" not in page.text
    assert "NOT PRIVATE" in shown(contents_of("v3-forest-mixed")).text
    assert len(repr(report)) < 200
    assert "FOR THE HOLDER ONLY" in shown(report.with_holder({})).text
    assert "NOT FOR PUBLICATION" in repr(report.with_holder({}))


def test_numbers_stand_below_each_other() -> None:
    """A column of numbers is aligned at its end; one with a single word is not."""
    rows = [["a", "1,000", "3 %", "1"], ["b", "-", "±0.5 %", "one"]]
    text = Document("t", [Table("t", ("name", "n", "share", "mixed"), rows, is_open=True)]).html()
    assert text is not None
    assert "<details open>" in text
    assert text.count('class="spinney-number"') == 2 * (1 + len(rows))


def test_long_tables_are_cut() -> None:
    text = Document("t", [Table("many", ("n",), [[number] for number in range(100)])]).html()
    assert text is not None
    page = Page(text)
    assert f"and {100 - MOST_LINES} more" in page.text
    assert page.tags["tr"] == MOST_LINES + 1
