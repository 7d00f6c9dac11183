"""Explanation of a release of persons: what was measured, and how the budget was spent. PUBLIC.

Everything here is post-processing of released numbers. The explanation of persons is that of their forest. For
rows it says how alike two rows of one person are, which columns have a hidden level, what rows depend on, and
which columns were counted together. How strong a dependence is follows from synthetic persons, drawn with a
fixed seed, so that a release has one explanation.

    explained    the explanation as data, and its document
    strength     what rows depend on, by synthetic persons
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.documents import Block, Document, Facts, Listing, Printed, Table, Text, spaced
from spinney.forest.release.explain import (
    ExplainedClique,
    Explanation,
    Stage,
    budget_table,
    clique_table,
    column_table,
    product_list,
    rule_list,
    strength,
)
from spinney.graph.crf_inference import FieldClique
from spinney.people.release.rows import (
    ReleasedRows,
    all_evidence,
    anchors,
    count_name,
    draw_rows,
    first_name,
    level_name,
    relative_columns,
)
from spinney.release.answers.bars import ErrorBars
from spinney.release.card import Card
from spinney.schema.linked import RowsShape

if TYPE_CHECKING:
    from spinney.people.release.model import PeopleRelease


# Persons by whose rows the strength of dependences is worked out.
_DRAWN = 5_000


@dataclass(frozen=True, slots=True)
class ExplainedRowColumn:
    """A column of rows as it was released."""

    name: str
    type: str
    n_leaves: int
    n_states: int
    correlation: float  # of two rows of a person, 0 where they have nothing in common; with noise
    has_level: bool  # whether persons have a hidden level of it


@dataclass(frozen=True, slots=True)
class ExplainedDependence:
    """Columns of a row that were counted together, or one that was counted with something that rows depend on."""

    columns: tuple[str, ...]
    on: str | None  # what a row depends on, in words; None for columns of the same row
    given: str | None  # the role, where there is one
    distance: float
    bits: float

    @property
    def label(self) -> str:
        """The dependence in words."""
        columns = " and ".join(self.columns) + ("" if self.on is None else f" on {self.on}")
        return columns + ("" if self.given is None else f" given {self.given}")


@dataclass(frozen=True, slots=True)
class ExplainedRows:
    """A table of rows: how they belong to persons, its columns, and what its rows depend on, the strongest first."""

    shape: RowsShape
    persons_with_rows: float  # a noisy number
    columns: tuple[ExplainedRowColumn, ...]
    dependences: tuple[ExplainedDependence, ...]

    def to_dict(self) -> dict[str, Any]:
        """The table as JSON-ready data."""
        shape = self.shape
        return {
            "table": shape.name or None,
            "person": shape.key,
            "most_rows": shape.most,
            "order": shape.order,
            "steps": shape.steps,
            "role": shape.role,
            "differences": list(shape.differences),
            "persons_with_rows": self.persons_with_rows,
            "rules": list(map(repr, shape.schema.rules)),
            "columns": [asdict(column) for column in self.columns],
            "dependences": [asdict(one) | {"columns": list(one.columns)} for one in self.dependences],
        }

    def parts(self) -> list[Block]:
        """The parts of a document on the table: how rows belong to persons, their columns, and what rows depend on."""
        with_rows = f"persons with rows, a noisy number: {self.persons_with_rows:,.0f}"
        found: list[Block] = [Listing(self._caption(), [with_rows])]
        columns = [
            [
                one.name,
                one.type,
                f"{one.n_leaves:,}",
                f"{one.n_states:,}",
                f"{one.correlation:.2f}",
                _level(one.has_level),
            ]
            for one in self.columns
        ]
        found.append(
            Table(
                f"{len(columns)} columns",
                ("column", "type", "leaves", "states", "correlation", ""),
                columns,
                widths=(-10, -10, 8, 6, 11),
                note="correlation: of two rows of one person; 0 where they have no more in common than rows of two "
                "persons.",
            )
        )
        rows = [[one.label, f"{one.distance:.3f}", f"{one.bits:.2f}"] for one in self.dependences]
        nothing = Text("  no columns of rows were counted together, nor with anything that rows depend on")
        heads, caption = ("columns", "distance", "bits"), "what rows depend on, strongest first"
        found.append(Table(caption, heads, rows, widths=(-40, 8, 5), most=20) if rows else nothing)
        return found + ([rule_list(list(map(repr, self.shape.schema.rules)))] if self.shape.schema.rules else [])

    def _caption(self) -> str:
        shape = self.shape
        said = [f"at most {shape.most:,} of a person, by {shape.key}"]
        if shape.order is not None:
            said.append(f"in the order of {shape.order}" + (", each a step after the last" if shape.steps else ""))
        else:
            said.append("in no order")
        if shape.role is not None:
            said.append(f"with the role {shape.role}")
        if shape.differences:
            said.append(f"{', '.join(shape.differences)} by differences from the first row")
        return f"rows{f' of {shape.name}' if shape.name else ''}: {', '.join(said)}"


def _level(has_level: bool) -> str:
    return "with a hidden level" if has_level else ""


@dataclass(frozen=True, slots=True, eq=False)
class PeopleExplanation(Printed):
    """What a release of persons knows and what that cost. `print` is meant to be read, `to_dict` to be parsed."""

    card: Card
    meaning: str
    persons: Explanation  # of the forest of persons, with numbers of rows, first values and hidden levels
    rows: tuple[ExplainedRows, ...]

    @property
    def n_persons(self) -> int:
        """The public number of persons, or a noisy one."""
        return self.persons.n_rows

    @property
    def stages(self) -> tuple[Stage, ...]:
        """How the budget was spent, of persons and of rows."""
        return self.persons.stages

    @property
    def error_bars(self) -> ErrorBars | None:
        """Of columns of persons, where they were asked for."""
        return self.persons.error_bars

    def to_dict(self) -> dict[str, Any]:
        """The explanation as JSON-ready data."""
        persons = self.persons.to_dict()
        shared = ("guarantee", "warnings", "cautions", "remarks", "stages")
        of_persons = ("structure", "rules", "columns", "cliques", "products", "error_bars")
        return {name: persons[name] for name in shared} | {
            "meaning": self.meaning,
            "target": self.card.parameters.get("target"),
            "n_persons": self.n_persons,
            "persons": {name: persons[name] for name in of_persons if name in persons},
            "rows": [table.to_dict() for table in self.rows],
        }

    def document(self) -> Document:
        """What was measured of persons, and then of each table of rows."""
        card, persons = self.card, self.persons
        names = 'A name that ends in # is a number of rows; "^x" is a person\'s first value of x, "~x" a hidden level.'
        return Document(
            f"What was measured of persons and their rows (by {card.synthesizer}, spinney {card.spinney_version})",
            spaced(
                Facts([*card.facts, ("", self.meaning)]),
                budget_table(self.stages),
                replace(
                    column_table(persons.columns),
                    caption=f"{len(persons.columns)} columns of persons: {self.n_persons:,}",
                    note=names,
                ),
                clique_table(persons.cliques, who="persons"),
                None if persons.products is None else product_list(persons.products),
                rule_list(persons.rules, who="person") if persons.rules else None,
                *(part for rows in self.rows for part in rows.parts()),
                None if persons.error_bars is None else Text(str(persons.error_bars)),
            ),
            warnings=card.to_dict()["warnings"],
        )


def explain_people(release: PeopleRelease, *, error_bars: bool = False) -> PeopleExplanation:
    """Explain a release of persons, on request with error bars of their columns."""
    forest = release.persons.explain()
    card = release.card
    named = card.parameters.get("target")
    stars = set(anchors(release.shape, release.askable.get(named) if isinstance(named, str) else None))
    cliques = tuple(_with_stars(clique, stars) for clique in forest.cliques)
    bars = release.error_bars() if error_bars else None
    persons = replace(forest, card=card, cliques=cliques, error_bars=bars)
    return PeopleExplanation(card, _meaning(release), persons, tuple(_rows(release)))


def _with_stars(clique: ExplainedClique, stars: set[str]) -> ExplainedClique:
    """The forest of persons has no target of its own: some columns were counted with all others."""
    is_star = clique.given is None and len(clique.columns) == 2 and not stars.isdisjoint(clique.columns)
    return replace(clique, reason="star") if is_star and clique.reason in ("target", "chosen", "round") else clique


def _rows(release: PeopleRelease) -> Iterator[ExplainedRows]:
    rng = np.random.default_rng(0)
    prepared = release.persons.conditioned({}, None)
    states, positions = release.persons.drawn(_DRAWN, rng, prepared=prepared)
    places = dict(zip(release.persons.schema, positions, strict=True))
    for rows in release.rows:
        starts = release.row_starts(rows, places, prepared.schema)
        own = draw_rows(rows.field, rows.layout, states, starts, rng, sorted_by=rows.sorted_by)
        evidence = all_evidence(rows.layout, states, own, starts)
        cliques = [table.clique for table in rows.tables]
        tables = rows.field.expected_tables(cliques, evidence, np.full(own.shape[1], 1 / max(own.shape[1], 1)))
        found = [_dependence(release, rows, *pair) for pair in zip(cliques, tables, strict=True)]
        yield ExplainedRows(
            rows.shape,
            float(rows.total),
            tuple(_columns(release, rows)),
            tuple(sorted(found, key=lambda one: -one.distance)),
        )


def _columns(release: PeopleRelease, rows: ReleasedRows) -> Iterator[ExplainedRowColumn]:
    for name, correlation in zip(rows.names, rows.correlations, strict=True):
        model = rows.columns[name]
        yield ExplainedRowColumn(
            name,
            rows.shape.schema[name].type_name,
            len(model.states),
            model.n_states,
            float(correlation),
            level_name(rows.shape.name, name) in release.persons.variables,
        )


def _dependence(
    release: PeopleRelease, rows: ReleasedRows, clique: FieldClique, law: np.ndarray[Any, np.dtype[np.float64]]
) -> ExplainedDependence:
    role = rows.field.role
    is_given = role is not None and role in clique.own and law.ndim == 3
    own = tuple(rows.names[column] for column in clique.own if not (is_given and column == role))
    on = _in_words(release, rows, clique.evidence[0]) if clique.evidence else None
    how = strength(law, 0 if is_given else None)
    given = None if role is None or not is_given else rows.names[role]
    return ExplainedDependence(own, on, given, how.distance, how.bits)


def _in_words(release: PeopleRelease, rows: ReleasedRows, number: int) -> str:
    """What a row depends on."""
    evidence = rows.layout.every[number]
    if evidence.kind == "place":
        return "its place among the person's rows"
    if evidence.kind == "before":
        return f"{rows.names[evidence.number]} of the row before"
    if evidence.kind == "anchor":
        return f"{rows.names[evidence.number]} of the person's first row"
    variable = release.persons.variables[evidence.number]
    for table in release.rows:
        of_table = f" of {table.shape.name}" if table.shape.name and len(release.rows) > 1 else ""
        if variable == count_name(table.shape.name):
            return f"the number of rows{of_table}"
        for name in table.names:
            if variable == level_name(table.shape.name, name):
                return f"the person's level of {name}{of_table}"
        for name in relative_columns(table.shape):
            if variable == first_name(table.shape.name, name):
                return f"the person's first {name}{of_table}"
    return f"the person's {variable}"


def _meaning(release: PeopleRelease) -> str:
    target = release.card.parameters.get("target")
    with_target = "" if target is None else f", and with the target, {target}"
    sentences = [
        f"Every column of persons was counted with the number of their rows{with_target}; then those that depend on "
        "each other most.",
        "Rows were counted by person, each row with its share of one person, and modelled given their person, their "
        "place and, where there is an order, the row before.",
    ]
    levels = {level_name(rows.shape.name, name) for rows in release.rows for name in rows.names}
    if not levels.isdisjoint(release.persons.variables):
        sentences.append("A hidden level is what a person's rows have in common in a column.")
    return " ".join(sentences)
