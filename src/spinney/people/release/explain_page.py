"""An explanation of persons as a page to read: at most a hundred characters wide, the strongest dependences only."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from spinney.forest.release.explain_page import (
    WIDTH,
    budget_lines,
    clique_lines,
    column_lines,
    cut,
    more,
    product_lines,
    rule_lines,
    warning_lines,
)
from spinney.shown import printable

if TYPE_CHECKING:
    from spinney.people.release.explain import (
        ExplainedDependence,
        ExplainedRowColumn,
        ExplainedRows,
        PeopleExplanation,
    )
    from spinney.schema.people import RowsShape

_MOST_DEPENDENCES = 20
_MOST_COLUMNS = 40


def page(explanation: PeopleExplanation) -> str:
    """The whole page."""
    card, persons = explanation.card, explanation.persons
    lines = warning_lines(card)
    lines += [f"What was measured of persons and their rows (by {card.synthesizer}, spinney {card.spinney_version})"]
    lines += card.essentials.splitlines()
    lines += wrap(explanation.meaning, WIDTH, initial_indent=" " * 14, subsequent_indent=" " * 14)
    lines += ["", *budget_lines(explanation.stages)]
    lines += ["", f"  persons: {explanation.n_persons:,}"]
    lines += wrap(
        'A name that ends in # is a number of rows; "^x" is a person\'s first value of x, "~x" a hidden level.',
        WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
    )
    lines += column_lines(persons.columns)
    lines += ["", *clique_lines(persons.cliques, who="persons")]
    if persons.products is not None:
        lines += ["", *product_lines(persons.products)]
    if persons.rules:
        lines += ["", *rule_lines(persons.rules, who="person")]
    for rows in explanation.rows:
        lines += ["", *_rows(rows)]
    if persons.error_bars is not None:
        lines += ["", *str(persons.error_bars).splitlines()]
    return "\n".join(printable(line).rstrip() for line in lines)


def _rows(rows: ExplainedRows) -> list[str]:
    head = f"rows{_named(rows.shape)}: {_in_words(rows.shape)}"
    lines = wrap(head, WIDTH, initial_indent="  ", subsequent_indent="    ")
    lines.append(f"    persons with rows, a noisy number: {rows.persons_with_rows:,.0f}")
    lines += _columns(rows.columns)
    lines += ["", *_dependences(rows.dependences)]
    if rows.shape.schema.rules:
        lines += ["", *rule_lines([repr(rule) for rule in rows.shape.schema.rules])]
    return lines


def _named(shape: RowsShape) -> str:
    return f" of {shape.name}" if shape.name else ""


def _in_words(shape: RowsShape) -> str:
    said = [f"at most {shape.most:,} of a person, by {shape.key}"]
    if shape.order is not None:
        said.append(f"in the order of {shape.order}" + (", each a step after the last" if shape.steps else ""))
    else:
        said.append("in no order")
    if shape.role is not None:
        said.append(f"with the role {shape.role}")
    if shape.differences:
        said.append(f"{', '.join(shape.differences)} by differences from the first row")
    return ", ".join(said)


def _columns(columns: Sequence[ExplainedRowColumn]) -> list[str]:
    shown = columns[:_MOST_COLUMNS]
    width = min(WIDTH - 60, max(10, *(len(column.name) for column in shown)))
    head = f"{'type':<10}  {'leaves':>8}  {'states':>6}  {'correlation':>11}"
    lines = [f"  {f'{len(columns)} columns':<{width + 2}}  {head}"]
    for column in shown:
        level = "  with a hidden level" if column.has_level else ""
        lines.append(
            f"    {cut(column.name, width):<{width}}  {column.type:<10}  {column.n_leaves:>8,}  {column.n_states:>6,}  "
            f"{column.correlation:>11.2f}{level}"
        )
    lines += more(len(columns) - len(shown))
    lines += wrap(
        "correlation: of two rows of one person; 0 where they have no more in common than rows of two persons.",
        WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
    )
    return lines


def _dependences(dependences: Sequence[ExplainedDependence]) -> list[str]:
    if not dependences:
        return ["  no columns of rows were counted together, nor with anything that rows depend on"]
    shown = dependences[:_MOST_DEPENDENCES]
    width = min(WIDTH - 23, max(40, *(len(one.label) for one in shown)))
    return [
        f"  {'what rows depend on, strongest first':<{width + 2}}  {'distance':>8}  {'bits':>5}",
        *(f"    {cut(one.label, width):<{width}}  {one.distance:8.3f}  {one.bits:5.2f}" for one in shown),
        *more(len(dependences) - len(shown)),
    ]
