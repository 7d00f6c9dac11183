"""The columns of a release under a condition: how many rows meet it, every column among them, rows drawn under it.

Counts with their intervals are answers of the release (`release.table`). Where it gives none, the distribution is taken
from synthetic rows of a fixed seed, as a report does, and is marked "not supported".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from spinney.columns import Column
from spinney.errors import ParameterError
from spinney.people.release.model import PeopleRelease
from spinney.release.answers.bars import ColumnBars, bar_cells, ranges_of
from spinney.release.answers.where import parse_conditions
from spinney.release.model import Release
from spinney.report.columns_part import MOST_COLUMNS, columns_part, described_bars, drawn_tables, from_rows
from spinney.studio.releases.loaded import LEVEL, asked_columns, loaded, takes_conditions

if TYPE_CHECKING:
    import pyarrow as pa

# Of preview rows and of rows that stand for columns without error bars.
SEED = 0
PREVIEW_ROWS = 12
_DRAWN = 20_000
_DRAWN_PERSONS = 2_000
_MOST_SHOWN = 30  # columns of a preview


def conditions(release: Release, text: str) -> dict[str, Any]:
    """What a text asks of columns; a ParameterError points at what is wrong with it."""
    return parse_conditions(text, release.asked_schema, what="where") if text.strip() else {}


@lru_cache(maxsize=64)
def columns_under(path: str, digest: str, where: str) -> dict[str, Any]:
    """Every column's distribution among the rows that meet a condition, and the share of rows that do."""
    release = loaded(path, digest)
    wanted = conditions(release, where)
    if not wanted:
        return _all_columns(release)
    found = _columns_among(release, wanted)
    return {"columns": found[:MOST_COLUMNS], "left_out": max(0, len(found) - MOST_COLUMNS), **_kept(release, wanted)}


def preview(path: str, digest: str, where: str) -> dict[str, Any]:
    """A few synthetic rows under a condition, the same ones at every call."""
    release = loaded(path, digest)
    wanted = conditions(release, where)
    tables = _drawn(release, wanted, PREVIEW_ROWS if takes_conditions(release) else _DRAWN)
    return {
        "seed": SEED,
        "picked_from": None if takes_conditions(release) or not wanted else _DRAWN,
        "tables": [_shown(name, table) for name, table in tables.items()],
    }


# ------------------------------------------------------------------------------------------------------- distributions


def _all_columns(release: Release) -> dict[str, Any]:
    bars = release.error_bars(level=LEVEL, pairs=False)
    needs_rows = release.kind != "forest" or not bars.columns or any(one.answers is None for one in bars.columns)
    shown = columns_part(release, bars, drawn_tables(release) if needs_rows else {})
    return {"columns": shown.columns, "left_out": shown.n_left_out, "count": None, "share": None}


def _columns_among(release: Release, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    drawn: dict[str, pa.Table] | None = None
    found = []
    for name, (holder, own) in asked_columns(release).items():
        column = holder.schema[own]
        bars = _bars_among(release, name, holder, own, wanted)
        if bars.answers is not None:
            total = sum(max(answer.estimate, 0.0) for answer in bars.answers)
            described, _ = described_bars(bars, total)
        else:
            drawn = _drawn(release, wanted, _DRAWN) if drawn is None else drawn
            described, _ = from_rows(_table_of(drawn, release), own, column, bars.refusal, None)
        found.append({"key": name, "table": None, "name": name, "type": column.type_name} | described)
    return found


def _bars_among(release: Release, name: str, holder: Release, own: str, wanted: Mapping[str, Any]) -> ColumnBars:
    """A column's counts among the rows that meet a condition, with an interval each."""
    others = {other: value for other, value in wanted.items() if other != name}
    try:
        cells = bar_cells(holder, own)
        if name in wanted:
            cells = within(holder.schema[own], cells, wanted[name])
        return ColumnBars(name, release.table({name: cells}, where=others or None, level=LEVEL))
    except ParameterError as problem:
        return ColumnBars(name, None, str(problem))


def within(column: Column, cells: list[Any], wanted: Any) -> list[Any]:
    """The values and ranges of a column, cut to what a condition asks of it."""
    if isinstance(wanted, list):
        return list(wanted)
    if not isinstance(wanted, tuple):
        return [wanted]
    return list(ranges_of(column, cells, wanted)) or [wanted]


def _kept(release: Release, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """How many rows meet a condition, and which share of all; None where the release gives no answers."""
    try:
        count, share = release.count(wanted, level=LEVEL), release.proportion(wanted, level=LEVEL)
    except ParameterError as problem:
        return {"count": None, "share": None, "refusal": str(problem)}
    return {"count": count.to_dict(), "share": share.to_dict(), "refusal": ""}


# ---------------------------------------------------------------------------------------------------------------- rows


def _drawn(release: Release, wanted: Mapping[str, Any], n_rows: int) -> dict[str, pa.Table]:
    """Synthetic rows under a condition, by table."""
    asked: dict[str, Any] = {"where": dict(wanted)} if wanted else {}
    if isinstance(release, PeopleRelease):
        rows = release.sample(min(n_rows, _DRAWN_PERSONS), seed=SEED, frame="pyarrow", **asked)
        return dict(rows) if isinstance(rows, dict) else {"": rows}
    if takes_conditions(release):
        return {"": release.sample(n_rows, seed=SEED, frame="pyarrow", **asked)}
    return {"": meeting(release.sample(n_rows, seed=SEED, frame="pyarrow"), wanted)}


def meeting(table: pa.Table, wanted: Mapping[str, Any]) -> pa.Table:
    """The rows of a table that meet a condition."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, value in wanted.items():
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if value is None:
            is_met = column.is_null()
        elif isinstance(value, tuple):
            ends = [
                (end, pc.greater_equal if low else pc.less_equal) for end, low in zip(value, (True, False), strict=True)
            ]
            is_met = pa.chunked_array([pa.array([True] * table.num_rows)])
            for end, compare in ends:
                if end is not None:
                    is_met = pc.and_(is_met, compare(column, pa.scalar(end, column.type)))
        else:
            listed = value if isinstance(value, list) else [value]
            is_met = pc.is_in(column, value_set=pa.array(listed, column.type))
        table = table.filter(pc.fill_null(is_met, False))
    return table


def _table_of(drawn: Mapping[str, pa.Table], release: Release) -> pa.Table | None:
    name = (release.shape.persons_name or "") if isinstance(release, PeopleRelease) else ""
    return drawn.get(name)


def _shown(name: str, table: pa.Table) -> dict[str, Any]:
    """The first rows of a table as texts."""
    names = table.column_names[:_MOST_SHOWN]
    rows = table.slice(0, PREVIEW_ROWS).select(names).to_pylist()
    return {
        "name": name,
        "columns": names,
        "left_out": len(table.column_names) - len(names),
        "rows": [[None if row[column] is None else _text(row[column]) for column in names] for row in rows],
    }


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
