"""What a release of persons says of its rows, compared with the charges on its card."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.forest.release.verification import verify_forest
from spinney.people.release.relative import persons_schema
from spinney.privacy.parts import WeightedTables
from spinney.release.contradictions import check
from spinney.schema.rules import PositionRule

if TYPE_CHECKING:
    from spinney.people.release.model import PeopleRelease


def verify_people(release: PeopleRelease) -> list[str]:
    """The forest of persons is what was paid for, and so are the tables of rows."""
    persons = persons_schema(release.shape)
    stated = release.persons.schema
    is_same = all(name in stated and stated[name] == column for name, column in persons.items())
    check(is_same, "the persons have other columns than the tables")
    parts = [part for event in release.card.events for part in getattr(event, "parts", ())]
    weighted = {part.stage: part for part in parts if isinstance(part, WeightedTables)}
    paid = weighted["row tables"].times if "row tables" in weighted else 0
    n_tables = sum(len(rows.tables) for rows in release.rows)
    check(n_tables <= paid, "more tables of rows were measured than were paid for")
    for rows in release.rows:
        measured = {table.clique for table in rows.tables}
        for clique in rows.field.tables():
            alone = len(clique.own) + len(clique.evidence) == 1 or (
                not clique.evidence and rows.field.role in clique.own
            )
            check(alone or clique in measured, "a field has a table that was not measured")
        rules = [rule for rule in rows.shape.schema.rules if isinstance(rule, PositionRule)]
        check(len(rows.field.masks) >= len(rules), "rules over positions are not those of the field")
    counted = f"{n_tables} tables of rows were measured, {paid} paid for, each with the noise of one row a person"
    return [*verify_forest(release.persons), counted]
