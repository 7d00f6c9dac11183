"""Real beside synthetic, as plain numbers for a report that only the holder sees. NOT PRIVATE.

The room of reports sees no tables: whoever may see them computes these figures here and hands them over. Columns are
compared as `compare` does it; the real rows are counted by the same values and ranges that the report has bars of; and
where there is a target of two values, classifiers are trained on synthetic rows and on real ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Column, whole_range
from spinney.errors import MissingExtraError, SpinneyError
from spinney.metrics.classify import train_on_synthetic
from spinney.metrics.comparison import compare
from spinney.release.reporting import Report
from spinney.schema.table import Schema
from spinney.tables.frames import Table, open_table

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
    is_null = ~np.isfinite(values) if physical.is_null is None else np.asarray(physical.is_null)
    present = values[~is_null]
    if column.axis_kind != "category" and getattr(column, "has_bounds", False):
        low, high = (column.low, column.high) if column.axis_kind == "real" else whole_range(column)  # type: ignore[attr-defined]
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
    except MissingExtraError as problem:
        return None, f"Classifiers were not trained: {problem}."
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
