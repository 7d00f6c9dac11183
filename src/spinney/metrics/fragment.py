"""A comparison as a notebook shows it: a warning first, then every column and the pairs that are furthest off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.fragments import Lines, fragment
from spinney.metrics.comparison import HEADS, MOMENTS, NOT_PRIVATE, worst_of
from spinney.metrics.marginals import mean_of

if TYPE_CHECKING:
    from spinney.metrics.comparison import Comparison

_RANGE = "KS, TV and Wasserstein: 0 is alike, 1 is nothing in common"


def comparison_fragment(comparison: Comparison) -> str | None:
    """A piece of HTML; None without jinja2."""
    name, worst = comparison.worst_ks
    facts = {"KS over columns": f"mean {comparison.mean_ks:.4f}, worst {worst:.4f} ({name})"}
    tables = [Lines("columns, the worst first", HEADS, comparison.lines(), is_open=True)]
    for title, found in (("pairs", comparison.pairs), ("triples", comparison.triples)):
        if found:
            facts[f"TV over {title}"] = f"mean {mean_of(found):.4f} of {len(found):,}"
            rows = [[", ".join(names), f"{found[names]:.4f}"] for names in worst_of(found)]
            tables.append(Lines(f"{title} that are furthest off", ("columns", "TV"), rows))
    has_moments = any(column.spread is not None for column in comparison.columns.values())
    return fragment(
        "Synthetic beside real rows",
        facts,
        warnings=[NOT_PRIVATE],
        tables=tables,
        note=f"{_RANGE}; {MOMENTS}." if has_moments else f"{_RANGE}.",
    )
