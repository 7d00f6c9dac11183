"""Real and synthetic tables side by side: a page of distances, and a report for the holder. NOT PRIVATE.

All figures are computed from the real table without noise, so every page and every piece of data says first
that it is for the holder of that table only. The distances themselves are in `distances.py`, the classifiers in
`classify.py`.

    comparison   `compare`: every column and the worst groups of columns on one page
    beside       `beside`: the report of a release with the real table next to it
    notebook     a comparison as HTML
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney import documents
from spinney.columns import Column, whole_range
from spinney.documents import Document, Documented, Facts
from spinney.errors import SpinneyError
from spinney.metrics.classify import train_on_synthetic
from spinney.metrics.distances import (
    DEFAULT_BINS,
    check_ways,
    kept_of,
    ks_of,
    mean_of,
    moments_of,
    transport_of,
    variation_of,
    variations,
    zeros_of,
)
from spinney.metrics.reading import Binned, Cutter, Scale, Side, Tables
from spinney.metrics.sense import Looked, Sense, look, shown_places, together
from spinney.release.release import Report
from spinney.schema.schema import Schema, SchemaLike
from spinney.tables.frames import Table, open_table
from spinney.text import aligned, printable

# ----------------------------------------------------------------------------------------------------------- comparison
# One page on how near a synthetic table is to the real one: every column, and columns together. NOT PRIVATE.
#
# `compare` computes all distances of `distances.py`. The page is for the holder of the real table: its figures
# are computed without noise.


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
_RANGE = "KS, TV and Wasserstein: 0 is alike, 1 is nothing in common"
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
class Comparison(Documented):
    """What `compare` found. `str()` of it is the page; not private.

    Attributes:
        columns: the distances of each column, by its name.
        pairs: the total variation of two columns together, by their names, where it was asked for.
        triples: the same of three columns.
        sense: what a person who reads single rows would notice, with rows of both tables; None where rows have weights.
    """

    columns: Mapping[str, ColumnComparison]
    pairs: Mapping[tuple[str, ...], float]
    triples: Mapping[tuple[str, ...], float]
    sense: Sense | None = None

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
            "sense": None if self.sense is None else self.sense.to_dict(),
        }

    def document(self) -> Document:
        """The comparison as notebooks show it: a warning first, then every column, the worst pairs, and single rows."""
        name, worst = self.worst_ks
        facts = [("KS over columns", f"mean {self.mean_ks:.4f}, worst {worst:.4f} ({name})")]
        tables = [documents.Table("columns, the worst first", HEADS, self.lines(), is_open=True)]
        for title, found in (("pairs", self.pairs), ("triples", self.triples)):
            if found:
                facts.append((f"TV over {title}", f"mean {mean_of(found):.4f} of {len(found):,}"))
                rows = [[", ".join(names), f"{found[names]:.4f}"] for names in worst_of(found)]
                tables.append(documents.Table(f"{title} that are furthest off", ("columns", "TV"), rows))
        if self.sense is not None:
            tables += [*self.sense.tables(), *self.sense.row_tables(), *self.sense.common_tables()]
        has_moments = any(column.spread is not None for column in self.columns.values())
        note = f"{_RANGE}; {MOMENTS}." if has_moments else f"{_RANGE}."
        return Document("Synthetic beside real rows", [Facts(facts), *tables], [NOT_PRIVATE], note)

    def __str__(self) -> str:
        name, worst = self.worst_ks
        lines = [NOT_PRIVATE, "", *aligned([HEADS, *self.lines()], right=range(1, len(HEADS))), ""]
        if any(column.spread is not None for column in self.columns.values()):
            lines.append(MOMENTS)
        lines.append(f"KS over columns: mean {self.mean_ks:.4f}, worst {worst:.4f} ({printable(name)})")
        for title, found in (("pairs", self.pairs), ("triples", self.triples)):
            if found:
                lines.append(f"TV of {len(found):,} {title}: mean {mean_of(found):.4f}; the worst are")
                lines += [f"  {found[names]:.4f}  {', '.join(map(printable, names))}" for names in worst_of(found)]
        if self.sense is not None:
            parts: list[documents.Block] = [*self.sense.tables(), self.sense.common_listing(), *self.sense.row_tables()]
            lines += [line.rstrip() for part in parts for line in ("", *part.lines())]
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

    places = shown_places(tables)

    def of_column(name: str, column: Column, sides: tuple[Side, Side]) -> tuple[ColumnComparison, Binned, Looked]:
        cells = cutter.cut(name, sides)
        found = ColumnComparison(
            ks_of(tables, column, sides),
            variation_of(cells, tables),
            transport_of(tables, column, sides, scale),
            kept_of(sides),
            zeros_of(column, sides),
            *moments_of(column, sides),
        )
        return found, cells, look(column, sides, places)

    both = tables.by_column(of_column)
    columns = {name: found for name, (found, _, _) in both.items()}
    cells = {name: binned for name, (_, binned, _) in both.items()}
    has_weights = real_weights is not None or synthetic_weights is not None
    sense = None if has_weights else together(tables, {name: looked for name, (_, _, looked) in both.items()})
    joint = {size: variations(tables, cells, size) if size <= min(ways, len(columns)) else {} for size in (2, 3)}
    return Comparison(columns, joint[2], joint[3], sense)


# --------------------------------------------------------------------------------------------------------------- beside
# Real beside synthetic, as plain numbers for a report that only the holder sees. NOT PRIVATE.
#
# The room of reports sees no tables: whoever may see them computes these figures here and hands them over. Columns
# are compared as `compare` does it; the real rows are counted by the same values and ranges that the report has bars
# of; and where there is a target of two values, classifiers are trained on synthetic rows and on real ones.


CLASSIFIERS = ("Logistic Regression", "GBM")
# Pairs are looked at up to so many columns, listed up to so many, and drawn up to so many columns.
MOST_PAIRED = 60
MOST_LISTED = 500
MOST_DRAWN = 30
# Rows that classifiers learn from and are tested on.
_MOST_TRAINED = 20_000


def beside(
    report: Report,
    real: Any,
    synthetic: Any,
    schema: Schema | Mapping[str, Schema],
    *,
    target: str | None = None,
    unseen: Any = None,
) -> Report:
    """The report of a release with the real table beside it: FOR THE HOLDER ONLY. Not private.

    Args:
        report: what `release.report()` gave.
        real: the real table; of linked ones a dictionary by name.
        synthetic: rows of the release, in the same form.
        schema: describes both, all bounds filled in, as in a release's `schema`; of linked tables by name.
        target: a column of two values that classifiers are to predict, with its table where there are several.
        unseen: real rows of the table of the target that the release has not seen; by default half of `real` tests.
    """
    is_one = isinstance(schema, Schema)
    schemas: Mapping[str, Schema] = {"": schema} if is_one else dict(schema)  # type: ignore[dict-item,arg-type]
    reals, drawn = ({"": real}, {"": synthetic}) if is_one else (dict(real), dict(synthetic))
    shares = [column["key"] for column in report.to_dict()["columns"] if column["scale"] == "share"]
    tables: list[dict[str, Any]] = []
    bars: dict[str, list[float]] = {}
    for name, table in reals.items():
        prefix = f"{name}." if name else ""
        own = None if target is None or not target.startswith(prefix) else target.removeprefix(prefix)
        tables.append(table_beside(table, drawn[name], schemas[name], name=name, target=own, unseen=unseen))
        bars |= real_bars(table, schemas[name], report.cuts, as_shares=shares, prefix=prefix)
    return report.with_holder({"tables": tables, "bars": bars})


def table_beside(
    real: Any, synthetic: Any, schema: Schema, *, name: str = "", target: str | None = None, unseen: Any = None
) -> dict[str, Any]:
    """Distances of columns and pairs, and classifiers where there is a target, as plain data. Not private.

    Args:
        real: the real table.
        synthetic: the synthetic one.
        schema: describes both; all bounds filled in, as in a release's `schema`.
        name: the name of the table, where there are several.
        target: a column of two values that classifiers are to predict.
        unseen: real rows that the release has not seen, to test classifiers on; by default half of `real`.
    """
    n_columns = sum(column.is_read for column in schema.values())
    found = compare(real, synthetic, schema, ways=2 if 2 <= n_columns <= MOST_PAIRED else 1)
    worst, ks = found.worst_ks
    order = sorted(found.pairs, key=lambda names: -found.pairs[names])
    drawn = list(found.columns)[:MOST_DRAWN]
    kept = [names for names in order if set(names) <= set(drawn)]
    kept += [names for names in order if not set(names) <= set(drawn)][: max(0, MOST_LISTED - len(kept))]
    trained, why = _trained(real, synthetic, schema, target, unseen)
    return {
        "table": name or None,
        "n_real": open_table(real, schema).n_rows,
        "n_synthetic": _n_rows(synthetic),
        "mean_ks": found.mean_ks,
        "worst_ks": {"column": worst, "ks": ks},
        "columns": [
            {"name": column, **asdict(figures)}
            for column, figures in sorted(found.columns.items(), key=lambda item: -item[1].ks)
        ],
        "drawn": drawn,
        "pairs": [
            {"columns": list(names), "total_variation": found.pairs[names]}
            for names in sorted(kept, key=lambda names: -found.pairs[names])
        ],
        "sense": None if found.sense is None else found.sense.to_dict(),
        "trained": trained,
        "not_trained": why,
    }


def real_bars(
    real: Any, schema: Schema, cuts: Mapping[str, Sequence[Any]], *, as_shares: Sequence[str] = (), prefix: str = ""
) -> dict[str, list[float]]:
    """How many real rows have each value, or lie in each range, of the bars of a report. Not private.

    Args:
        real: the real table.
        schema: describes it.
        cuts: by column what each of its bars stands for: a value, a range with both ends, or None for null.
        as_shares: columns whose bars are shares of the rows.
        prefix: what stands before the names of columns in `cuts`, such as "customers."
    """
    table = open_table(real, schema)
    found = {}
    for name, column in schema.items():
        labels = cuts.get(prefix + name)
        if labels and column.is_read:
            counts = _counts(table, name, column, labels)
            scale = max(table.n_rows, 1) if prefix + name in as_shares else 1
            found[prefix + name] = [float(count / scale) for count in counts]
    return found


def _counts(table: Table, name: str, column: Column, labels: Sequence[Any]) -> list[int]:
    physical = table.physical(name)
    values = np.asarray(physical.values)
    is_null = physical.is_missing
    present = values[~is_null]
    if column._axis_kind != "category" and getattr(column, "has_bounds", False):
        low, high = (column.low, column.high) if column._axis_kind == "real" else whole_range(column)  # type: ignore[attr-defined]
        present = np.clip(present, low, high)  # as a fit does
    return [int(is_null.sum()) if label is None else int(_holds(present, column, label).sum()) for label in labels]


def _holds(values: NDArray[Any], column: Column, label: Any) -> NDArray[np.bool_]:
    if isinstance(label, tuple):
        low, high = (column.physical(end) for end in label)  # type: ignore[attr-defined]
        return np.asarray((values >= low) & (values <= high))
    if column.listed:
        return np.asarray(values == column.listed.index(label))
    return np.asarray(values == column.physical(label))  # type: ignore[attr-defined]


def _trained(
    real: Any, synthetic: Any, schema: Schema, target: str | None, unseen: Any
) -> tuple[dict[str, Any] | None, str | None]:
    """Areas under the ROC of classifiers that learnt from synthetic and from real rows, or why there are none."""
    if target is None or target not in schema:
        return None, None
    rng = np.random.default_rng(0)
    order = rng.permutation(_n_rows(real))
    half = len(order) // 2
    learns, tests = real, unseen
    if unseen is None:
        learns, tests = _taken(real, order[:half]), _taken(real, order[half:])
    try:
        areas = [
            train_on_synthetic(_few(tests, rng), _few(rows, rng), schema, target=target, classifiers=CLASSIFIERS)
            for rows in (synthetic, learns)
        ]
    except SpinneyError as problem:
        return None, f"Classifiers were not trained: {problem}."
    note = (
        "Tested on rows that the release has not seen."
        if unseen is not None
        else "Tested on half of the rows, which the release has seen; the other half trained the classifiers of the "
        "second column."
    )
    return {"target": target, "note": note, "synthetic": areas[0], "real": areas[1]}, None


def _few(rows: Any, rng: np.random.Generator) -> Any:
    n_rows = _n_rows(rows)
    return rows if n_rows <= _MOST_TRAINED else _taken(rows, np.sort(rng.choice(n_rows, _MOST_TRAINED, replace=False)))


def _taken(rows: Any, places: NDArray[np.int64]) -> Any:
    """Some rows of a table of pyarrow, pandas, polars or numpy."""
    with suppress(AttributeError):
        return rows.take(places) if hasattr(rows, "schema") else rows.iloc[places]
    return rows[places]


def _n_rows(rows: Any) -> int:
    return int(rows.num_rows) if hasattr(rows, "num_rows") else len(rows)
