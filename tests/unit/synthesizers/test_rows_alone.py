"""Synthesizers that protect rows refuse schemas whose rows belong to persons, before anything is read or spent."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import SchemaError

COLUMNS = {"card": sp.Identifier(), "kind": sp.Category(["a", "b"]), "amount": sp.Real(0, 1)}
FLAT = sp.Schema(COLUMNS, person="card", most_rows=9)
LINKED = sp.Tables(
    {"cards": sp.Schema({"id": sp.Identifier(), "x": sp.Boolean()}), "rows": sp.Schema(COLUMNS)},
    links=[sp.Link("rows.card", "cards.id", most=9)],
)


@pytest.mark.parametrize(
    "make", [sp.ForestSynthesizer, sp.KDTreeSynthesizer, sp.GridSynthesizer, sp.PaperTreeSynthesizer]
)
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (FLAT, "the schema states person='card', and {} protects rows, not persons; use sp.LinkedSynthesizer"),
        (LINKED, "{} takes one table; model linked tables with sp.LinkedSynthesizer"),
        (
            sp.Schema(COLUMNS, rules=[sp.First("kind", ["a"])]),
            r"First\('kind', \['a'\]\) is about the rows of a person, .* use sp.LinkedSynthesizer",
        ),
    ],
    ids=["flat", "linked", "position"],
)
def test_rows_of_persons_are_refused(make, schema, said):
    """The error names the synthesizer of persons; the table, which could not even be opened, was not touched."""
    ledger = sp.Ledger(limit="1", delta="1e-6")
    with pytest.raises(SchemaError, match=said.format(make.__name__)):
        make(epsilon="1").fit(object(), schema, ledger=ledger)
    assert ledger.spent == 0


RULES = [sp.First("kind", ["a"], only=True), sp.Implies({"kind": ["b"]}, {"amount": (0, 0.5)})]
ROWS = pa.table({"card": [1, 1, 2], "kind": ["b", "a", "b"], "amount": [0.1, 0.2, 0.9]})


@pytest.mark.parametrize(
    "hold", [ROWS.to_pandas, pl.from_arrow(ROWS).lazy, lambda: ROWS], ids=["pandas", "lazy", "arrow"]
)
def test_check_counts_rules_of_rows_alone(hold):
    """A rule about positions is counted for no row, and told as what persons would obey."""
    found = sp.check(hold(), sp.Schema(COLUMNS, rules=RULES, person="card", most_rows=9))
    told = [*found.faults, *found.warnings]
    assert sum("Implies" in finding.message for finding in told) == 1
    assert not any("First" in finding.message for finding in told)
    assert "The rows of every synthetic person would obey the rule about positions, at no cost." in found.notes


def test_check_refuses_rules_of_positions_without_persons():
    """What a fit would refuse is a fault."""
    found = sp.check(ROWS, sp.Schema(COLUMNS, rules=RULES))
    assert any("First('kind', ['a'], only=True) is about the rows of a person" in it.message for it in found.faults)
