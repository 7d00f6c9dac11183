"""Every column's released distribution: bars with error bars, or what synthetic rows say where there are none.

Error bars come from `release.error_bars()`. Bins below a threshold, points, long lists and the rows of persons have
none: their distribution is taken from synthetic rows, drawn with a fixed seed so that a release has one report, and is
marked "not supported". All of it is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from spinney.columns import Bounded, Column, Listed
from spinney.errors import SpinneyError
from spinney.people.release.model import PeopleRelease
from spinney.release.answers.bars import ColumnBars, ErrorBars, ranges_from
from spinney.release.answers.bars_page import shown_bar
from spinney.release.model import Release
from spinney.schema.table import Schema

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

# Columns that are listed, bars of each, and rows that stand for a column without error bars.
MOST_COLUMNS = 400
MOST_BARS = 40
_DRAWN_ROWS = 50_000
_DRAWN_PERSONS = 4_000
_DRAWN_BARS = 12
_ALL_VALUES = 40  # of a list that is shown in its own order


@dataclass(frozen=True, slots=True)
class Shown:
    """The distributions as plain data, and by column what each bar stands for, with which real rows can be counted."""

    columns: list[dict[str, Any]]
    cuts: Mapping[str, list[Any]]
    n_left_out: int


def columns_part(release: Release, bars: ErrorBars, drawn: Mapping[str, pa.Table]) -> Shown:
    """The distributions of all columns, table by table of a release of persons."""
    found: list[dict[str, Any]] = []
    cuts: dict[str, list[Any]] = {}
    with_bars = {column.name: column for column in bars.columns}
    total = float(bars.n_rows)
    for table, schema in tables_of(release).items():
        for name, column in schema.items():
            if not column.is_read:
                continue
            key = f"{table}.{name}" if table else name
            own = with_bars.get(name) if table in ("", persons_table(release)) and not _is_row(release, table) else None
            if own is not None and own.answers is not None:
                described, labels = described_bars(own, total)
            else:
                why = bars.refusal if own is None else own.refusal
                if _is_row(release, table):
                    why = "a release of persons has no error bars of their rows"
                described, labels = from_rows(drawn.get(table), name, column, why, _scale(release, total))
            cuts[key] = labels
            found.append({"key": key, "table": table or None, "name": name, "type": column.type_name} | described)
    if isinstance(release, PeopleRelease):
        for name, own in with_bars.items():
            if name not in {one["name"] for one in found if own.answers is not None and one["has_intervals"]}:
                described, _ = described_bars(own, total) if own.answers is not None else ({}, [])
                if described:
                    found.append({"key": name, "table": None, "name": name, "type": "rows of a person"} | described)
    return Shown(found[:MOST_COLUMNS], cuts, max(0, len(found) - MOST_COLUMNS))


def tables_of(release: Release) -> dict[str, Schema]:
    """The schemas of a release by table; of one table the name is empty."""
    return dict(release.shape.tables) if isinstance(release, PeopleRelease) else {"": release.schema}


def persons_table(release: Release) -> str | None:
    """The name of the table of persons, where there is one."""
    return release.shape.persons_name if isinstance(release, PeopleRelease) else None


def _is_row(release: Release, table: str) -> bool:
    return isinstance(release, PeopleRelease) and table != release.shape.persons_name


def drawn_tables(release: Release) -> dict[str, pa.Table]:
    """Synthetic rows by table, for what has no error bars; none where nothing can be drawn."""
    with suppress(SpinneyError):
        if isinstance(release, PeopleRelease):
            n_persons = release.card.n_rows if release.card.n_rows is not None else _DRAWN_PERSONS
            rows = release.sample(min(n_persons, _DRAWN_PERSONS), seed=0, frame="pyarrow")
            return dict(rows) if isinstance(rows, dict) else {"": rows}
        return {"": release.sample(_DRAWN_ROWS, seed=0, frame="pyarrow")}
    return {}


def _scale(release: Release, total: float) -> float | None:
    """The number of rows that shares of synthetic rows are told in; None where it is private or of another thing."""
    if isinstance(release, PeopleRelease):
        return None
    if release.card.n_rows is not None:
        return float(release.card.n_rows)
    return total or None


# ---------------------------------------------------------------------------------------------------- one column


def described_bars(column: ColumnBars, total: float) -> tuple[dict[str, Any], list[Any]]:
    """A column that has error bars, as plain data, and what each bar stands for; shares are those of a total."""
    assert column.answers is not None
    every = [(label, answer) for (label,), answer in zip(column.answers.labels, column.answers, strict=True)]
    is_list = not any(isinstance(label, tuple) for label, _ in every)
    if len(every) > _ALL_VALUES and is_list:
        every.sort(key=lambda bar: -bar[1].estimate)
    shown = every[:MOST_BARS]
    bars = [
        {
            "label": shown_bar(label),
            **_ends(label),
            "estimate": float(answer.estimate),
            "low": answer.low,
            "high": answer.high,
            "share": float(answer.estimate) / total if total else None,
            "statement": answer.statement,
        }
        for label, answer in shown
    ]
    reasons = {answer.why: None for _, answer in every if answer.statement == "not supported"}
    return {
        "statement": column.statement,
        "has_intervals": any(bar["low"] is not None for bar in bars),
        "simultaneous": bool(column.answers.simultaneous) and len(every) > 1,
        "bars": bars,
        "bars_left_out": len(every) - len(shown),
        "scale": "rows",
        "why": "; ".join(reasons),
    }, [label for label, _ in shown]


def from_rows(
    table: pa.Table | None, name: str, column: Column, why: str, scale: float | None
) -> tuple[dict[str, Any], list[Any]]:
    """What synthetic rows say of a column, without intervals."""
    empty: dict[str, Any] = {
        "statement": "not supported",
        "has_intervals": False,
        "simultaneous": False,
        "bars": [],
        "bars_left_out": 0,
        "scale": "rows" if scale else "share",
        "why": why,
    }
    if table is None or name not in table.column_names or not table.num_rows:
        return empty, []
    values = table.column(name).combine_chunks()
    labels, shares, left_out = _shares(values, column)
    bars = [
        {
            "label": shown_bar(label),
            **_ends(label),
            "estimate": float(share * scale) if scale else float(share),
            "low": None,
            "high": None,
            "share": float(share),
            "statement": "not supported",
        }
        for label, share in zip(labels, shares, strict=True)
    ]
    return empty | {"bars": bars, "bars_left_out": left_out}, labels


def _shares(values: Any, column: Column) -> tuple[list[Any], list[float], int]:
    """Values or ranges of a column, and the share of rows in each."""
    import numpy as np

    labels, place, n_left_out = placed(values, column)
    counts = np.bincount(place[place >= 0], minlength=len(labels))
    return labels, [float(count) / len(values) for count in counts], n_left_out


def placed(values: Any, column: Column) -> tuple[list[Any], NDArray[np.int64], int]:
    """Values or ranges of a column, which of them each row has, -1 for none, and how many values have no place."""
    import numpy as np
    import pyarrow.compute as pc

    if isinstance(column, Listed) or not isinstance(column, Bounded) or not column.has_bounds:
        counted = {item["values"]: item["counts"] for item in pc.value_counts(values).to_pylist()}
        order = sorted(counted, key=lambda value: -counted[value])
        if isinstance(column, Listed) and len(column.listed) <= _DRAWN_BARS:
            order = [*column.listed, *([None] if column.nullable else [])]
        shown = order[:_DRAWN_BARS]
        places = {value: place for place, value in enumerate(shown)}
        found = np.array([places.get(value, -1) for value in values.to_pylist()], dtype=np.int64)
        return shown, found, len(order) - len(shown)
    is_null = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    physical = np.array([float(column.physical(value)) for value in values.drop_null().to_pylist()])
    # Even ranges over where nearly all rows are: bounds may be generous.
    first, last = np.quantile(physical, [0.005, 0.995]) if len(physical) else column.first_and_last()
    starts = [first + (last - first) * place / _DRAWN_BARS for place in range(1, _DRAWN_BARS)]
    labels = list(ranges_from(column, starts))
    edges = [float(column.physical(label[0] if isinstance(label, tuple) else label)) for label in labels]
    found = np.full(len(values), len(labels) if column.nullable else -1, dtype=np.int64)
    found[~is_null] = np.clip(np.searchsorted(edges, physical, side="right") - 1, 0, len(labels) - 1)
    return [*labels, *([None] if column.nullable else [])], found, 0


def _ends(label: Any) -> dict[str, Any]:
    """What a bar stands for, in data that JSON holds."""
    if isinstance(label, tuple):
        return {"from": plain(label[0]), "to": plain(label[1])}
    return {"value": plain(label)}


def plain(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return [plain(item) for item in value] if isinstance(value, Sequence) else str(value)
