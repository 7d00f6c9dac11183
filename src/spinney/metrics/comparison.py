"""One page on how near a synthetic table is to the real one: every column, and columns together. NOT PRIVATE.

`compare` asks all distances of `ordered.py` and `marginals.py`. The page is for the holder of the real table: its
figures are computed without noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from numpy.typing import ArrayLike

from spinney.columns import Column
from spinney.metrics.bins import Binned, Cutter, Scale
from spinney.metrics.marginals import DEFAULT_BINS, check_ways, mean_of, variation_of, variations
from spinney.metrics.ordered import kept_of, ks_of, moments_of, transport_of, zeros_of
from spinney.metrics.reading import Side, Tables
from spinney.schema.table import SchemaLike
from spinney.shown import printable

HEADS: tuple[str, ...] = (
    "column",
    "KS",
    "TV",
    "Wasserstein",
    "common values kept",
    "zeros off by",
    "mean off by",
    "spread",
)
_N_WORST = 5
MOMENTS = "mean off by: synthetic less real, in real standard deviations; spread: synthetic over real deviation"
NOT_PRIVATE = "For the holder of the real table only: these figures are computed from it without noise."


@dataclass(frozen=True, slots=True)
class ColumnComparison:
    """The distances of one column; None where a question does not apply to it.

    The last two see how far away wrong rows lie, which distances by rank do not.

    Attributes:
        ks: Kolmogorov-Smirnov distance.
        total_variation: total variation distance, in bins at the quantiles of the real column.
        wasserstein: Wasserstein-1 distance by rank: past how many of the real rows values are moved.
        common_values_kept: how much of the commonest values comes back at exactly these values.
        zeros_off: how far the share of exact zeros is off.
        mean_off: the difference of the means in standard deviations of the real column.
        spread: the synthetic standard deviation over the real one.
    """

    ks: float
    total_variation: float
    wasserstein: float
    common_values_kept: float | None
    zeros_off: float | None
    mean_off: float | None
    spread: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` found. `str()` of it is the page; not private.

    Attributes:
        columns: the distances of each column, by its name.
        pairs: the total variation of two columns together, by their names, where it was asked for.
        triples: the same of three columns.
    """

    columns: Mapping[str, ColumnComparison]
    pairs: Mapping[tuple[str, ...], float]
    triples: Mapping[tuple[str, ...], float]

    @property
    def worst_ks(self) -> tuple[str, float]:
        """The column with the largest KS distance, and the distance."""
        name = max(self.columns, key=lambda name: self.columns[name].ks)
        return name, self.columns[name].ks

    @property
    def mean_ks(self) -> float:
        """The mean KS distance over columns."""
        return mean_of({name: column.ks for name, column in self.columns.items()})

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data; choices of columns as lists."""
        return {
            "not_private": NOT_PRIVATE,
            "mean_ks": self.mean_ks,
            "worst_ks": dict(zip(("column", "ks"), self.worst_ks, strict=True)),
            "columns": {name: asdict(column) for name, column in self.columns.items()},
            "pairs": [{"columns": list(names), "total_variation": found} for names, found in self.pairs.items()],
            "triples": [{"columns": list(names), "total_variation": found} for names, found in self.triples.items()],
        }

    def _repr_html_(self) -> str | None:
        from spinney.metrics.fragment import comparison_fragment

        return comparison_fragment(self)

    def __str__(self) -> str:
        name, worst = self.worst_ks
        lines = [NOT_PRIVATE, "", *self._table(), ""]
        if any(column.spread is not None for column in self.columns.values()):
            lines.append(MOMENTS)
        lines.append(f"KS over columns: mean {self.mean_ks:.4f}, worst {worst:.4f} ({printable(name)})")
        for title, found in (("pairs", self.pairs), ("triples", self.triples)):
            if found:
                lines.append(f"TV of {len(found):,} {title}: mean {mean_of(found):.4f}; the worst are")
                lines += [f"  {found[names]:.4f}  {', '.join(map(printable, names))}" for names in worst_of(found)]
        return "\n".join(lines)

    def lines(self) -> list[tuple[str, ...]]:
        """The figures of each column as text, in the order of `HEADS`; the worst column first."""
        rows = []
        for name, column in sorted(self.columns.items(), key=lambda item: -item[1].ks):
            figures = (column.ks, column.total_variation, column.wasserstein)
            rare = (column.common_values_kept, column.zeros_off, column.mean_off, column.spread)
            shown = [f"{figure:.4f}" for figure in figures]
            rows.append((printable(name), *shown, *("-" if figure is None else f"{figure:.4f}" for figure in rare)))
        return rows

    def _table(self) -> list[str]:
        rows = [HEADS, *self.lines()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(HEADS))]
        return [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]


def worst_of(found: Mapping[tuple[str, ...], float]) -> list[tuple[str, ...]]:
    """The few choices of columns that are furthest off, the worst first."""
    return sorted(found, key=lambda names: -found[names])[:_N_WORST]


def compare(
    real: Any,
    synthetic: Any,
    schema: SchemaLike,
    *,
    ways: int = 2,
    bins: int | Mapping[str, int] = DEFAULT_BINS,
    scale: Scale = "quantiles",
    real_weights: ArrayLike | None = None,
    synthetic_weights: ArrayLike | None = None,
) -> Comparison:
    """All distances of columns, and of up to `ways` columns together, on one page. Not private.

    Args:
        real: the real table.
        synthetic: the synthetic one.
        schema: describes both; all bounds filled in, as in a release's `schema`.
        ways: up to how many columns are looked at together: 1, 2 or 3, or as many columns as there are.
        bins: bins per column that is not of categories, for total variations.
        scale: "quantiles" or "range", as for `total_variation` and `wasserstein`.
        real_weights: weights >= 0 of the rows that add up to 1; by default equal.
        synthetic_weights: the same for the synthetic rows.
    """
    tables = Tables(real, synthetic, schema, real_weights, synthetic_weights)
    check_ways(ways, 3)
    cutter = Cutter(tables, bins, scale)

    def of_column(name: str, column: Column, sides: tuple[Side, Side]) -> tuple[ColumnComparison, Binned]:
        cells = cutter.cut(name, sides)
        found = ColumnComparison(
            ks_of(tables, column, sides),
            variation_of(cells, tables),
            transport_of(tables, column, sides, scale),
            kept_of(sides),
            zeros_of(column, sides),
            *moments_of(column, sides),
        )
        return found, cells

    both = tables.by_column(of_column)
    columns = {name: found for name, (found, _) in both.items()}
    cells = {name: binned for name, (_, binned) in both.items()}
    together = {size: variations(tables, cells, size) if size <= min(ways, len(columns)) else {} for size in (2, 3)}
    return Comparison(columns, together[2], together[3])
