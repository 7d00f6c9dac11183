"""What a release of persons says of its rows, compared with the charges on its card."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney.forest.release.verification import verify_forest
from spinney.people.release.masks import check_masks
from spinney.people.release.paid_rows import check_row_totals, check_stages
from spinney.people.release.relative import persons_schema
from spinney.privacy.budget import Unit
from spinney.privacy.parts import VARIANCE_STEP, WeightedTables, units_variance
from spinney.release.contradictions import check
from spinney.release.spread import TableSum, check_spread

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
    forest = verify_forest(release.persons)
    check_stages(release, parts)
    check_row_totals(release)
    for rows in release.rows:
        measured = {table.clique for table in rows.tables}
        for clique in rows.field.tables():
            alone = len(clique.own) + len(clique.evidence) == 1 or (
                not clique.evidence and rows.field.role in clique.own
            )
            check(alone or clique in measured, "a field has a table that was not measured")
        check_masks(rows.field.masks, rows.shape, rows.schema, rows.columns, place=rows.layout.place)
    if release.row_variance is not None:
        needed = units_variance(weighted["row tables"].mean_squared, Unit.parse(release.card.unit)) if paid else None
        is_paid = needed is not None and 0 <= release.row_variance - needed < VARIANCE_STEP
        check(is_paid, "the tables of rows have other noise than was paid for")
    were = "table of rows was" if n_tables == 1 else "tables of rows were"
    counted = f"{n_tables} {were} measured, {paid} paid for, each with the noise of one row a person"
    return [*forest, counted]


def check_spread_of_rows(release: PeopleRelease) -> list[str]:
    """Tables of the rows of one table count about the same units, and differ by noise, or by more."""
    parts = [part for event in release.card.events for part in getattr(event, "parts", ())]
    paid = [part for part in parts if isinstance(part, WeightedTables) and part.stage == "row tables"]
    checks = []
    for rows in release.rows if paid else ():
        variance = float(units_variance(paid[0].mean_squared, Unit.parse(release.card.unit)))
        sums = [TableSum(float(t.noisy.sum(dtype=np.float64)), len(t.noisy) * variance) for t in rows.tables]
        checks += check_spread(sums, None, f"tables of rows{f' of {rows.shape.name!r}' if rows.shape.name else ''}")
    return checks
