"""An explanation as a page to read: at most a hundred characters wide, the strongest dependences only."""

from __future__ import annotations

from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING

from spinney.forest.release.explain import REASONS
from spinney.release.card import structure_in_words
from spinney.shown import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinney.forest.release.budget_report import Stage
    from spinney.forest.release.explain import ExplainedClique, ExplainedColumn, ExplainedProducts, Explanation
    from spinney.release.card import Card

WIDTH = 100
_MOST_CLIQUES = 20
_MOST_COLUMNS = 40
_MOST_RULES = 40
_MEASURED = {
    "rows": "count",
    "trees": "tree",
    "regions": "tree",
    "selection": "choice",
    "prior": "choice",
    "analyses": "vector",
    "products": "vector",
    "utility": "vector",
    "bounds": "column",
    "values": "column",
    "row trees": "tree",
    "alikeness": "vector",
    "row selection": "choice",
}  # of a stage; of the others, tables


def page(explanation: Explanation) -> str:
    """The whole page."""
    card = explanation.card
    title = f"  structure   {structure_in_words(explanation.structure)}"
    lines = warning_lines(card)
    lines += [f"What the forest measured (by {card.synthesizer}, spinney {card.spinney_version})"]
    lines += [line for line in card.essentials.splitlines() if not line.startswith("  structure")]
    lines.append(title)
    lines += wrap(explanation.meaning, WIDTH, initial_indent=" " * 14, subsequent_indent=" " * 14)
    lines += ["", *budget_lines(explanation.stages)]
    lines += ["", *column_lines(explanation.columns)]
    lines += ["", *clique_lines(explanation.cliques)]
    if explanation.products is not None:
        lines += ["", *product_lines(explanation.products)]
    if explanation.rules:
        lines += ["", *rule_lines(explanation.rules)]
    if explanation.error_bars is not None:
        lines += ["", *str(explanation.error_bars).splitlines()]
    return "\n".join(printable(line).rstrip() for line in lines)


def warning_lines(card: Card) -> list[str]:
    """What voids the guarantee, first of all."""
    return [
        line
        for warning in card.to_dict()["warnings"]
        for line in wrap(f"*** NOT PRIVATE *** {warning}", WIDTH, subsequent_indent=" " * 20)
    ]


def budget_lines(stages: Sequence[Stage]) -> list[str]:
    """How the budget was spent, a line for each stage."""
    if not stages:
        return ["  nothing was measured, and nothing was spent"]
    width = min(40, max(len(stage.name) for stage in stages))
    return [
        "  how the budget was spent",
        *(
            f"    {cut(stage.name, width):<{width}}  {100 * stage.share:5.1f} %  {_measured(stage):>12}  {stage.noise}"
            for stage in stages
        ),
    ]


def _measured(stage: Stage) -> str:
    return f"{stage.times:,} {_MEASURED.get(stage.name, 'table')}{'' if stage.times == 1 else 's'}"


def column_lines(columns: Sequence[ExplainedColumn]) -> list[str]:
    """The columns and how each was divided."""
    shown = columns[:_MOST_COLUMNS]
    width = min(WIDTH - 44, max(10, *(len(column.name) for column in shown)))
    lines = [f"  {f'{len(columns)} columns':<{width + 2}}  {'type':<10}  {'leaves':>8}  {'states':>6}  {'null':>7}"]
    for column in shown:
        name = f"    {cut(column.name, width):<{width}}  {column.type:<10}"
        if not column.n_leaves:
            lines.append(f"{name}  {'computed' if column.is_computed else 'generated'}")
            continue
        null = "" if column.null_share is None else f"{100 * column.null_share:.1f} %"
        residual = "  of its residual" if column.is_computed else ""
        lines.append(f"{name}  {column.n_leaves:>8,}  {column.n_states:>6,}  {null:>7}{residual}")
    return [*lines, *more(len(columns) - len(shown))]


def clique_lines(cliques: Sequence[ExplainedClique], *, who: str = "rows") -> list[str]:
    """The columns that were counted together, the strongest first."""
    if not cliques:
        return ["  no columns were counted together"]
    shown = cliques[:_MOST_CLIQUES]
    last = max(len(REASONS[clique.reason]) for clique in shown)
    width = min(WIDTH - 4 - 2 * 3 - 8 - 5 - last, max(31, *(len(clique.label) for clique in shown)))
    n_counted = sum(clique.reason != "prior" for clique in cliques)
    from_prior = f", {len(cliques) - n_counted:,} from the prior" if n_counted < len(cliques) else ""
    head = f"{n_counted:,} {'set' if n_counted == 1 else 'sets'} counted{from_prior}, strongest first"
    return [
        f"  {head:<{width + 2}}  {'distance':>8}  {'bits':>5}  why",
        *(
            f"    {_label(clique, width):<{width}}  {clique.distance:8.3f}  {clique.bits:5.2f}  "
            f"{REASONS[clique.reason]}"
            for clique in shown
        ),
        *more(len(cliques) - len(shown)),
        *wrap(
            f"distance: the share of {who} that would have to change for the columns to be independent, in the model. "
            "Noise adds to it, the more, the smaller epsilon is.",
            WIDTH,
            initial_indent="  ",
            subsequent_indent="  ",
        ),
    ]


def product_lines(products: ExplainedProducts) -> list[str]:
    """The vector of sums of all other pairs."""
    pairs = "1 other pair" if products.n_pairs == 1 else f"all {products.n_pairs:,} other pairs"
    sums = "1 sum" if products.n_sums == 1 else f"{products.n_sums:,} sums"
    by_number: dict[int, list[str]] = {}
    for name, n_groups in products.groups.items():
        by_number.setdefault(n_groups, []).append(name)
    lines = [
        f"  {pairs}, in {sums} of products",
        f"    standard error of a mean product, which is between -1 and 1: {products.standard_error:.4f}",
    ]
    for n_groups, names in sorted(by_number.items(), reverse=True):
        shown = ", ".join(cut(name, 40) for name in names[:_MOST_COLUMNS])
        more = len(names) - _MOST_COLUMNS
        text = f"{n_groups} groups: {shown}{f' and {more:,} more' if more > 0 else ''}"
        lines += wrap(text, WIDTH, initial_indent="    ", subsequent_indent=" " * 8)
    return lines


def rule_lines(rules: Sequence[str], *, who: str = "row") -> list[str]:
    """The rules of the schema."""
    shown = rules[:_MOST_RULES]
    lines = [line for rule in shown for line in wrap(rule, WIDTH, initial_indent="    ", subsequent_indent=" " * 8)]
    return [f"  rules that every {who} obeys; they cost nothing", *lines, *more(len(rules) - len(shown))]


def _label(clique: ExplainedClique, width: int) -> str:
    """The columns in words; where they are too long, all names but short ones lose their ends."""
    names = [*clique.columns] if clique.given is None else [*clique.columns, clique.given]
    longest = max(map(len, names))
    label = clique.label
    while len(label) > width and longest > 8:
        longest -= 1
        shortened = [cut(name, longest) for name in names]
        given = None if clique.given is None else shortened.pop()
        label = replace(clique, columns=tuple(shortened), given=given).label
    return cut(label, width)


def more(n: int) -> list[str]:
    """What was left out, in a line."""
    return [f"    and {n:,} more"] if n > 0 else []


def cut(text: str, width: int) -> str:
    """A text that is no longer than this."""
    return text if len(text) <= width else text[: width - 1] + "…"
