"""What the process beside the server works out of a release, as plain data, and the rows it draws. PUBLIC.

Functions here take a path, a digest and plain arguments, so that `background.py` can send them to its processes
and remember their results. Templates and drawings render what they return. What a release cannot answer is
taken from synthetic rows of a fixed seed and marked "not supported".

    conditions      columns, counts and preview rows under a condition
    distributions   the bars of every column among the rows that meet it
    preview rows    drawn rows that meet it, as text
    description     guarantee, card, charges, schema, and what can be asked about
    answers         questions from a form or as text, and their answers
    pairs           dependence, heat map, and the table of a pair
    comparison      how far releases are from each other
    reports         the report of a release as a page and as JSON
    downloads       which rows a form asks for, and in how many parts
    draw rows       the process that writes them to standard output
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, Listed
from spinney.columns.bounded import Number
from spinney.errors import ParameterError, SpinneyError
from spinney.forest.release.model import ForestRelease
from spinney.people.release.model import PeopleRelease
from spinney.privacy.ledger import Ledger
from spinney.release.answers.answer import Answer, shown_label, shown_level
from spinney.release.answers.ask import answers_to
from spinney.release.answers.bars import ColumnBars, bar_cells, parts_of, ranges_of, weakest
from spinney.release.answers.grammar import parse_balance, parse_conditions, parse_question, parse_where
from spinney.release.card import MOST_ROWS
from spinney.release.file import check_contents
from spinney.release.file import digest as digest_of
from spinney.release.provenance import find_charge
from spinney.release.release import Release
from spinney.report.columns import (
    MOST_COLUMNS_SHOWN,
    columns_part,
    described_bars,
    drawn_for,
    from_rows,
    mapped_columns,
)
from spinney.report.page import MEANINGS, ReportContents, report_contents, report_html, report_json
from spinney.report.parts import account_part, budget_part, promise_part, schema_part, together_part
from spinney.synthesizers.verify import verified_numbers
from spinney_studio.background import LEVEL, asked_columns, contents, loaded, takes_conditions

# ----------------------------------------------------------------------------------------------------------- conditions
# The columns of a release under a condition: how many rows meet it, every column among them, rows drawn under it.
#
# Counts with their intervals are answers of the release (`release.table`). Where it gives none, the distribution is
# taken from synthetic rows of a fixed seed, as a report does, and is marked "not supported".


# Of preview rows and of rows that stand for columns without error bars.
SEED = 0
PREVIEW_ROWS = 12
_CONDITIONED_ROWS = 20_000
_CONDITIONED_PERSONS = 2_000
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
    return {
        "columns": found[:MOST_COLUMNS_SHOWN],
        "left_out": max(0, len(found) - MOST_COLUMNS_SHOWN),
        **_kept(release, wanted),
    }


def preview(path: str, digest: str, where: str) -> dict[str, Any]:
    """A few synthetic rows under a condition, the same ones at every call."""
    release = loaded(path, digest)
    wanted = conditions(release, where)
    tables = _drawn(release, wanted, PREVIEW_ROWS if takes_conditions(release) else _CONDITIONED_ROWS)
    return {
        "seed": SEED,
        "picked_from": None if takes_conditions(release) or not wanted else _CONDITIONED_ROWS,
        "tables": [_shown(name, table) for name, table in tables.items()],
    }


# -------------------------------------------------------------------------------------------------------- distributions
# The bars of every column among the rows that meet a condition, or among all rows.


def _all_columns(release: Release) -> dict[str, Any]:
    bars = release.error_bars(level=LEVEL, pairs=False)
    shown = columns_part(release, bars, drawn_for(release, bars))
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
            drawn = _drawn(release, wanted, _CONDITIONED_ROWS) if drawn is None else drawn
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


# --------------------------------------------------------------------------------------------------------- preview rows
# Synthetic rows that meet a condition, and the first of them as texts.


def _drawn(release: Release, wanted: Mapping[str, Any], n_rows: int) -> dict[str, pa.Table]:
    """Synthetic rows under a condition, by table."""
    asked: dict[str, Any] = {"where": dict(wanted)} if wanted else {}
    if isinstance(release, PeopleRelease):
        rows = release.sample(min(n_rows, _CONDITIONED_PERSONS), seed=SEED, frame="pyarrow", **asked)
        return dict(rows) if isinstance(rows, dict) else {"": rows}
    if takes_conditions(release):
        return {"": release.sample(n_rows, seed=SEED, frame="pyarrow", **asked)}
    return {"": meeting(release.sample(n_rows, seed=SEED, frame="pyarrow"), wanted)}


def meeting(table: pa.Table, wanted: Mapping[str, Any]) -> pa.Table:
    """The rows of a table that meet a condition."""
    import pyarrow.compute as pc

    for name, value in wanted.items():
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if value is None:
            is_met = column.is_null()
        elif isinstance(value, tuple):
            is_met = pa.chunked_array([pa.array([True] * table.num_rows)])
            for end, compare in zip(value, (pc.greater_equal, pc.less_equal), strict=True):
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


# ---------------------------------------------------------------------------------------------------------- description
# What a release says of itself, as plain data: promise, card, charges, schema, and what can be asked about.


MOST_VALUES = 60
_PLAIN_NAME = r"[\w.#-]+"
_WORDS = ("and", "by", "where", "given", "in", "is", "not")


def overview(path: str, digest: str) -> dict[str, Any]:
    """All that is known of a release without working anything out."""
    release = loaded(path, digest)
    card = release.card
    return {
        "digest": digest,
        "release_digest": digest_of(release),
        "kind": release.kind,
        "is_people": isinstance(release, PeopleRelease),
        "is_forest": isinstance(release, ForestRelease),
        "takes_conditions": takes_conditions(release),
        "contents": card.contents,
        "synthesizer": card.synthesizer,
        "made_by": card.spinney_version,
        "n_rows": card.n_rows,
        "n_drawn": _default_rows(release),
        "target": card.parameters.get("target"),
        "warnings": list(card.to_dict()["warnings"]),
        "remarks": list(card.remarks),
        "promise": promise_part(card),
        "events": account_part(card)["events"],
        "budget": budget_part(card),
        "schema": schema_part(release),
        "fields": [
            field(name, holder.schema[own]) for name, (holder, own) in asked_columns(release).items()
        ],
        "maps": mapped_columns(release),
        "card": str(card),
    }  # fmt: skip


def field(name: str, column: Column) -> dict[str, Any]:
    """A column as whoever writes a condition has to know it."""
    values = [str(value) for value in column.listed] if isinstance(column, Listed) else []
    bounds, some = None, None
    if isinstance(column, Bounded) and column.has_bounds:
        bounds = shown_label((column.low, column.high))
        some = _some(column)
    return {
        "name": name,
        "type": column.type_name,
        "values": values[:MOST_VALUES],
        "values_left_out": max(0, len(values) - MOST_VALUES),
        "bounds": bounds,
        "nullable": column.nullable,
        "has_mean": isinstance(column, Number) or column.type_name == "boolean",
        "example": _example(name, values, some),
    }


def quoted(name: str) -> str:
    """A name or a value as conditions and questions take it: in quotes where it holds more than letters and digits."""
    is_plain = re.fullmatch(_PLAIN_NAME, name) and name.lower() not in _WORDS
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def _some(column: Bounded) -> str:
    """The middle of a column's range, for an example."""
    first, last = column._first_and_last()
    ends = [
        first + (last - first) * share // 4 if column.is_whole else first + (last - first) * share / 4
        for share in (1, 2)
    ]
    low, high = (column.logical(column._aligned(end, up=True) if column.is_whole else end) for end in ends)
    return shown_label((low, high))


def _example(name: str, values: list[str], some: str | None) -> str:
    if values:
        return f"{quoted(name)} = {quoted(values[0])}"
    return f"{quoted(name)} in {some}" if some else f"{quoted(name)} = null"


def _default_rows(release: Any) -> int | None:
    """How many rows, or persons, are drawn where nobody says; None where that is more than is drawn unasked."""
    try:
        return int(release.card.n_rows) if release.card.n_rows is not None else int(release._default_rows())
    except SpinneyError:
        return None


def verified(path: str, digest: str) -> dict[str, Any]:
    """What `spinney verify` finds in a file: its checks, and what no file can show; a FileError says what is wrong."""
    release = loaded(path, digest)
    guarantee, checks, others = verified_numbers(path, release)
    plain, not_plain = check_contents(path, release)
    return {"guarantee": guarantee, "checks": [*checks, *plain], "not_checked": [*others, *not_plain]}


# -------------------------------------------------------------------------------------------------------------- answers
# Answers to questions in the language of `spinney ask`, as a page shows them, and questions put together by a form.


KINDS = {
    "count": "how many rows",
    "proportion": "which share of the rows",
    "mean": "the mean of a column",
    "median": "the median of a column",
    "quantile": "a quantile of a column",
}
_OF_COLUMN = ("mean", "median", "quantile")


def built_question(given: Mapping[str, str]) -> str:
    """The question that a form puts together; a ParameterError says which of its fields is missing.

    Args:
        given: `kind`, `column`, `share`, `by`, `cells` and `where`, as far as they were filled in.
    """
    kind, column, by, where = (given.get(name, "").strip() for name in ("kind", "column", "by", "where"))
    if kind not in KINDS:
        raise ParameterError(f"kind: choose one of {', '.join(KINDS)}")
    text = kind
    if kind in _OF_COLUMN:
        if not column:
            raise ParameterError("column: choose the column whose " + kind + " is wanted")
        share = f", {given.get('share', '').strip() or '0.5'}" if kind == "quantile" else ""
        text += f"({quoted(column)}{share})"
    if by and kind == "proportion":
        raise ParameterError("by: a share takes no groups; ask for the number of rows by them instead")
    if by:
        cells = given.get("cells", "").strip()
        text += f" by {quoted(by)}" + (f" ({cells.strip('()')})" if cells else "")
    if kind == "proportion" and not where:
        raise ParameterError("where: a share needs a condition, such as age in 30..40")
    return text + (f" where {where}" if where else "")


@lru_cache(maxsize=128)
def answered(
    path: str,
    digest: str,
    text: str,
    level: float,
    population: bool = False,
    certified: bool = False,
    simultaneous: bool = False,
) -> dict[str, Any]:
    """What a release says to a question; a ParameterError points at what is wrong with it."""
    release = loaded(path, digest)
    question = parse_question(text, release.asked_schema)
    options = {
        "level": level,
        "of": "population" if population else "table",
        "statement": "certified" if certified else "auto",
        "force": False,
    }
    found = answers_to(release, question, options, simultaneous=simultaneous)
    by: list[str] = []
    cells: list[tuple[tuple[str, ...], Answer]] = []
    held = False
    if isinstance(found, Answer):
        cells.append(((), found))
    else:
        by, held = list(found.by), found.simultaneous
        cells += [(tuple(map(shown_label, label)), one) for label, one in zip(found.labels, found, strict=True)]
    reasons = list(dict.fromkeys(answer.why for _, answer in cells))
    kinds = list(dict.fromkeys(answer.statement for _, answer in cells))
    return {
        "question": question.text,
        "by": by,
        "level": shown_level(level),
        "simultaneous": held,
        "of": options["of"],
        "reasons": reasons,
        "statements": [{"name": kind, "means": MEANINGS[kind]} for kind in kinds],
        "cells": [_cell(label, answer, reasons) for label, answer in cells],
    }


def _cell(label: tuple[str, ...], answer: Answer, reasons: list[str]) -> dict[str, Any]:
    estimate, low, high = answer.numbers
    shown = {"shown": estimate, "shown_low": low, "shown_high": high}
    return {"label": list(label), **_figures(answer), **shown, "reason": reasons.index(answer.why) + 1}


def _figures(answer: Answer) -> dict[str, Any]:
    """An answer as drawings take it."""
    ends = {"low": answer.low, "high": answer.high}
    return {"estimate": float(answer.estimate), **ends, "statement": answer.statement}


# ---------------------------------------------------------------------------------------------------------------- pairs
# Pairs of columns: how strongly each depends on each other, the table of a chosen pair, maps and the graph.


MOST_PARTS = 8
_SHADES = 10  # of a heat map, besides none


def pairs_shown(path: str, digest: str) -> dict[str, Any]:
    """All pairs as a report lists them, and those of the heat map by its rows, each with a shade from 0 to 10."""
    found = contents(path, digest)
    pairs, graph = found.pairs, found.model["graph"]
    return {
        "pairs": pairs,
        "heat": heat_rows(pairs["names"], {tuple(one["columns"]): one for one in pairs["pairs"]}, "distance"),
        "graph": graph if graph is not None and graph["lines"] else None,
        "cliques": found.model["cliques"],
        "target": found.model["target"],
        "has_rows": bool(found.model["rows"]),
        "who": found.promise["who"],
    }


def heat_rows(names: list[str], found: dict[tuple[str, ...], Any], figure: str) -> list[dict[str, Any]]:
    """The lower half of a heat map: for every column but the first, the columns before it."""
    known = [one[figure] for one in found.values() if one[figure] is not None]
    largest = max(known, default=0.0) or 1.0
    rows = []
    for place, name in enumerate(names[1:], 1):
        cells = []
        for other in names[:place]:
            one = found.get((other, name)) or found.get((name, other))
            value = None if one is None else one[figure]
            shade = None if value is None else round(_SHADES * (value / largest) ** 0.5)
            cells.append({"columns": (other, name), "value": value, "shade": shade, "pair": one})
        rows.append({"name": name, "cells": cells})
    return rows


@lru_cache(maxsize=64)
def pair_table(path: str, digest: str, first: str, second: str) -> dict[str, Any]:
    """How many rows each part of one column shares with each part of another, with intervals.

    Raises:
        ParameterError: a column is unknown, both are the same, or the release gives no answers about them.
    """
    release = loaded(path, digest)
    known = asked_columns(release)
    for name in (first, second):
        if name not in known:
            raise ParameterError(f"there is no column {name!r} that can be asked about")
    if first == second:
        raise ParameterError("a pair is of two columns; choose another second one")
    cells = {name: parts_of(*known[name], MOST_PARTS) for name in (first, second)}
    answers = release.table(cells, level=LEVEL)
    n_across = len(cells[second])
    listed = [_figures(answer) for answer in answers]
    rows = [listed[start : start + n_across] for start in range(0, len(listed), n_across)]
    return {
        "columns": [first, second],
        "down": [shown_label(cell) for cell in cells[first]],
        "across": [shown_label(cell) for cell in cells[second]],
        "cells": rows,
        "statement": weakest(answers),
        "reasons": list(dict.fromkeys(answer.why for answer in answers))[:4],
        "level": LEVEL,
    }


# ----------------------------------------------------------------------------------------------------------- comparison
# Several releases side by side: how far their columns and pairs are from each other, by synthetic rows.
#
#     total variation    the share of rows that would have to move for two tables of counts to be alike
#
# Rows are drawn with fixed seeds, and are cut into parts that hold about as many of the first release's rows each.
# Two draws of one release differ too: that distance is told as well, and what is not above it says nothing.


_DRAWN, _DRAWN_PERSONS = 20_000, 4_000
_PARTS = 6
_MOST_COLUMNS = 24

Opened = tuple[str, str]  # a path and a digest


def shared_columns(opened: tuple[Opened, ...]) -> list[str]:
    """The columns that all releases have, by name and type, in the order of the first."""
    schemas = [_schema(loaded(*one)) for one in opened]
    return [name for name, kind in schemas[0].items() if all(schema.get(name) == kind for schema in schemas[1:])]


@lru_cache(maxsize=16)
def distances(first: Opened, other: Opened) -> dict[str, Any]:
    """How far the shared columns, and pairs of them, of one release are from those of another."""
    names = shared_columns((first, other))[:_MOST_COLUMNS]
    rows, again, theirs = _rows(loaded(*first), 0), _rows(loaded(*first), 1), _rows(loaded(*other), 2)
    cuts = {name: _Cut(rows[name]) for name in names}
    parts = [{name: cuts[name].parts(table[name]) for name in names} for table in (rows, again, theirs)]
    columns = [{"name": name, **_both((name,), parts, cuts)} for name in names]
    pairs: dict[tuple[str, ...], dict[str, Any]] = {
        pair: {"columns": list(pair), **_both(pair, parts, cuts)} for pair in combinations(names, 2)
    }
    listed = sorted(pairs.values(), key=lambda one: -one["distance"])
    return {
        "names": names,
        "columns": columns,
        "pairs": listed,
        "heat": heat_rows(names, pairs, "distance"),
        "drawn": len(next(iter(theirs.values()))) if theirs else 0,
    }


def _both(names: tuple[str, ...], parts: list[dict[str, NDArray[np.int64]]], cuts: dict[str, _Cut]) -> dict[str, float]:
    tables = [_counts([one[name] for name in names], [cuts[name].n_parts for name in names]) for one in parts]
    return {"distance": _apart(tables[0], tables[2]), "by_chance": _apart(tables[0], tables[1])}


def _apart(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(abs(one - other).sum() / 2)


def _counts(places: list[NDArray[np.int64]], sizes: list[int]) -> NDArray[np.float64]:
    """Shares of rows by their parts (cells,)."""
    codes = np.ravel_multi_index(tuple(places), tuple(sizes))
    return np.asarray(np.bincount(codes, minlength=int(np.prod(sizes))) / max(len(codes), 1))


class _Cut:
    """How a column is cut: null, then values in order, or ranges that hold about as many rows each."""

    def __init__(self, values: NDArray[Any]) -> None:
        self._is_text = values.dtype.kind in "OU"
        if self._is_text:
            self._known = sorted({str(value) for value in values.tolist() if value is not None})
            self.n_parts = len(self._known) + 2  # null, and values that the first rows do not have
            return
        held = values[~np.isnan(values)]
        edges = np.quantile(held, np.linspace(0, 1, _PARTS + 1)[1:-1]) if len(held) else np.empty(0)
        self._edges = np.unique(edges)
        self.n_parts = len(self._edges) + 2

    def parts(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """The part that each value lies in (n_rows,)."""
        if self._is_text:
            places = {value: place for place, value in enumerate(self._known, 2)}
            return np.array([0 if value is None else places.get(str(value), 1) for value in values.tolist()])
        found = np.searchsorted(self._edges, values, side="right") + 1
        return np.where(np.isnan(values), 0, found).astype(np.int64)


def _schema(release: Release) -> dict[str, str]:
    columns: Mapping[str, Column] = release.schema
    if isinstance(release, PeopleRelease):
        columns = release.shape.persons or {}
    return {name: column.type_name for name, column in columns.items() if column.is_read}


def _rows(release: Release, seed: int) -> dict[str, NDArray[Any]]:
    """Synthetic rows by column: numbers as floats, with NaN for null, all else as objects."""
    if isinstance(release, PeopleRelease):
        drawn = release.sample(_DRAWN_PERSONS, seed=seed, frame="pyarrow")
        table = drawn[release.shape.persons_name] if isinstance(drawn, dict) else drawn
    else:
        table = release.sample(_DRAWN, seed=seed, frame="pyarrow")
    found: dict[str, NDArray[Any]] = {}
    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_temporal(column.type):
            column = column.cast(pa.int64() if column.type.bit_width == 64 else pa.int32())
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        if is_number:
            found[name] = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)
        else:
            found[name] = np.array(column.to_pylist(), dtype=object)
    return found


# -------------------------------------------------------------------------------------------------------------- reports
# The report of a release, as the studio shows it and hands it out: the page and its JSON twin.
#
# What the studio has on record of a release is used: the ledger that paid for it, and when it was made.


STATED = ("title", "purpose", "contact", "licence")
# Where the ledger of a release is, its population, and its head: what was worked out of it holds as long as that stays.
LedgerAt = tuple[str, str | None, str]


def report_page(path: str, digest: str, stated: tuple[str, ...], made: str, ledger: LedgerAt | None) -> str:
    """The report as one page; `stated` are the texts of `STATED`, in their order."""
    return report_html(_contents(path, digest, stated, made, ledger))


def report_twin(path: str, digest: str, stated: tuple[str, ...], made: str, ledger: LedgerAt | None) -> str:
    """The same as JSON."""
    return report_json(_contents(path, digest, stated, made, ledger))


def promised_together(path: str, digest: str, ledger: LedgerAt) -> dict[str, Any]:
    """What all releases on the ledger of a release promise together."""
    release, account = loaded(path, digest), Ledger.open(ledger[0], population=ledger[1])
    return together_part(release.card, account, has_this=find_charge(account, release) is not None)


@lru_cache(maxsize=4)
def _contents(path: str, digest: str, stated: tuple[str, ...], made: str, ledger: LedgerAt | None) -> ReportContents:
    if not any((*stated, made, ledger)):
        return contents(path, digest)
    texts = {name: text or None for name, text in zip(STATED, stated, strict=True)}
    account = None if ledger is None else Ledger.open(ledger[0], population=ledger[1])
    return report_contents(loaded(path, digest), level=LEVEL, ledger=account, made=made or None, **texts)


# ------------------------------------------------------------------------------------------------------------ downloads
# Rows to take away: what a form asks for, checked before anything is drawn, and how many parts it is drawn in.


FORMATS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
# Rows that are drawn at once: more are drawn in parts, one after the other, so that memory stays as it is.
PART_ROWS = 250_000
_LARGEST_SEED = 2**63


def checked_draw(path: str, digest: str, given: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """What is to be drawn, and what is wrong with it by field; `given` are `rows`, `seed`, `where` and `balance`."""
    release, asked = loaded(path, digest), dict(given)
    faults: dict[str, str] = {}
    n_rows = _whole(asked.get("rows", ""), "rows", MOST_ROWS, faults)
    seed = _whole(asked.get("seed", ""), "seed", _LARGEST_SEED - 1, faults)
    if n_rows is None and "rows" not in faults:
        n_rows = _usual(release, faults)
    options = _options(release, asked, faults)
    if not faults and isinstance(release, ForestRelease) and options:
        _check_together(release, options, faults)
    return {
        "faults": faults,
        "rows": n_rows,
        "seed": seed,
        "where": asked.get("where", "").strip(),
        "balance": asked.get("balance", "").strip(),
        "parts": parts_of_rows(n_rows or 0),
        "is_people": isinstance(release, PeopleRelease),
        "is_several": isinstance(release, PeopleRelease) and release.shape.persons is not None,
    }


def parts_of_rows(n_rows: int) -> int:
    """In how many parts so many rows are drawn."""
    return max(-(-n_rows // PART_ROWS), 1)


def drawing_options(release: Release, where: str, balance: str) -> dict[str, Any]:
    """Conditions and shares as `sample` takes them."""
    options: dict[str, Any] = {}
    if where:
        options["where"] = parse_where([where], release.asked_schema, what="where")
    if balance:
        options["balance"] = parse_balance(_lines(balance), release.schema, what="shares")
    return options


def _lines(balance: str) -> list[str]:
    return [line.strip() for line in balance.splitlines() if line.strip()]


def _options(release: Release, asked: Mapping[str, str], faults: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("where", "balance"):
        text = asked.get(name, "").strip()
        if not text:
            continue
        if name == "where" and not takes_conditions(release):
            faults[name] = "Rows can be drawn under a condition from forests and persons; this release is neither."
        elif name == "balance" and not isinstance(release, ForestRelease):
            faults[name] = "Shares can be chosen of forests only; this release is none."
        else:
            try:
                found |= drawing_options(release, text if name == "where" else "", text if name == "balance" else "")
            except SpinneyError as err:
                faults[name] = str(err)
    return found


def _check_together(release: ForestRelease, options: Mapping[str, Any], faults: dict[str, str]) -> None:
    try:
        release.conditioned(options.get("where"), options.get("balance"))
    except SpinneyError as err:
        faults["where" if "where" in options else "balance"] = str(err)


def _usual(release: Release, faults: dict[str, str]) -> int | None:
    """As many as the table had, where that is public, else a noisy number."""
    if isinstance(release, PeopleRelease):
        return None if release.card.n_rows is None else int(release.card.n_rows)
    try:
        return release._default_rows()
    except SpinneyError as err:
        faults["rows"] = str(err)
        return None


def _whole(text: str, name: str, most: int, faults: dict[str, str]) -> int | None:
    """A whole number of a field, such as 10000, 1_000_000 or 1e6; None where it is empty."""
    plain = text.strip().replace(",", "").replace("_", "").replace(" ", "")
    if not plain:
        return None
    try:
        number = int(plain) if plain.isascii() and plain.isdigit() and len(plain) < 25 else _scientific(plain)
    except (ValueError, OverflowError):
        faults[name] = "This is not a whole number; write one such as 10000 or 1e6."
        return None
    if not 0 <= number <= most:
        faults[name] = f"This is not between 0 and {most:,}."
        return None
    return number


def _scientific(text: str) -> int:
    number = float(text)
    if not number.is_integer():
        raise ValueError
    return int(number)


# ------------------------------------------------------------------------------------------------------------ draw rows
# A process of its own that draws rows and writes them to its standard output, part by part, as CSV or Parquet.
#
#     python -m spinney_studio.views < asked.json
#
# It holds one part in memory, and waits while nobody reads on. Of linked tables it writes a zip archive with a
# file each. An error of the library goes to standard error, before anything was written; whoever reads takes an
# end with another status than 0 for rows that are not all there.


_BUFFER = 1 << 18


class Counting:
    """A file that cannot be rewound, which knows how much was written: all that writers of Parquet files ask of it."""

    closed = False

    def __init__(self, target: IO[bytes]) -> None:
        self._target, self._n_bytes = target, 0

    def write(self, data: Any) -> int:
        self._n_bytes += len(data)
        return self._target.write(data)

    def tell(self) -> int:
        return self._n_bytes

    def flush(self) -> None:
        self._target.flush()


def write_rows(tables: Iterator[pa.Table], target: IO[bytes], form: str) -> None:
    """Write tables of one schema as one file."""
    first = next(tables)
    writer = pq.ParquetWriter if form == "parquet" else pacsv.CSVWriter
    with writer(Counting(target), first.schema) as file:
        file.write_table(first)
        for table in tables:
            file.write_table(table.cast(first.schema))


def draw(asked: dict[str, Any], target: IO[bytes]) -> None:
    """Draw what was asked for, and write it."""
    release = loaded(asked["path"], asked["digest"])
    options = drawing_options(release, asked["where"], asked["balance"])
    options |= {"seed": asked["seed"], "frame": "pyarrow"}
    if isinstance(release, PeopleRelease):
        drawn = release.sample(asked["rows"], **options)
        if isinstance(drawn, dict):
            _write_archive(drawn, target, asked["form"])
        else:
            write_rows(iter([drawn]), target, asked["form"])
        return
    n_parts = asked["parts"]
    if n_parts == 1:
        write_rows(iter([release.sample(asked["rows"], **options)]), target, asked["form"])
    else:
        write_rows(iter(release.sample(asked["rows"], parts=n_parts, **options)), target, asked["form"])


def _write_archive(tables: dict[str, pa.Table], target: IO[bytes], form: str) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, table in tables.items():
            plain = "".join(letter if letter.isalnum() or letter in "-_ ." else "-" for letter in name)
            with archive.open(f"{plain}.{form}", "w", force_zip64=True) as file:
                write_rows(iter([table]), file, form)


def main() -> int:
    """Read what is asked for, and draw it."""
    asked = json.load(sys.stdin)
    with open(sys.stdout.fileno(), "wb", buffering=_BUFFER, closefd=False) as target:
        try:
            draw(asked, target)
        except SpinneyError as err:
            sys.stderr.write(str(err))
            return 1
        except BrokenPipeError:
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
