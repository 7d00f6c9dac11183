"""What a forest measured, in a release file: laws and kinds beside the card, raw counts and boxes in two tables.

Versions of Spinney from before there were these members ignore them, and files from before have none. What is read is
checked against the columns and the model that the file holds: sizes first, so that no number in a file decides how much
memory is taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.forest.release.column_model import ColumnModel
from spinney.forest.release.measured import (
    Counts,
    Kind,
    Law,
    Measured,
    MeasuredColumn,
    MeasuredPiles,
    MeasuredTable,
    NoiseLaw,
    TiltFit,
)
from spinney.forest.release.place_model import PlaceModel
from spinney.graph.model import GraphModel
from spinney.privacy.budget import LARGEST_EPSILON, parse_fraction
from spinney.release.arrow import are_counts, from_arrow, lists, to_arrow
from spinney.release.card import Card
from spinney.release.entries import MOST_ROWS
from spinney.schema.code_levels import CodeLevels
from spinney.schema.column_axis import column_axes

MEASURED_MEMBERS = ("counts.arrow", "tables.arrow")

_INT32, _INT64 = (pa.list_(pa.int32()),), (pa.list_(pa.int64()),)
_COUNTS = {
    "noisy": _INT64,
    "leaf": _INT32,
    "impossible": _INT32,
    "noisy_piles": _INT64,
    "pile": _INT32,
    "noisy_groups": _INT64,
}
_TABLES = {"columns": _INT32, "labels": _INT32, "noisy": _INT64}
# The scales of noise that draws fit into 64 bits with, beside a count: variances and rates.
_SCALES: dict[Law, tuple[Fraction, Fraction]] = {
    "discrete gaussian": (Fraction(1, 2**20), Fraction(2**98)),
    "discrete laplace": (Fraction(1, 2**50), LARGEST_EPSILON),
}
_STAGES = ("workload", "pairs", "cliques")
# What a fit may have used; more would be a way to keep a reader busy.
_MOST_STEPS, _MOST_DRAWN, _MOST_CAUTION, _DEEPEST = 1_000, 1_000_000, 1_000.0, 64


def measured_entries(measured: Measured, names: Sequence[str]) -> dict[str, Any]:
    """What stands beside the card."""
    columns = []
    for name, column in zip(names, measured.columns, strict=True):
        if column is None:
            continue
        entry: dict[str, Any] = {"variable": name, "kind": column.kind, "noise": _law_entry(column.noise)}
        if column.piles is not None:
            entry["noise of piles"] = _law_entry(column.piles.noise)
        if column.kind == "place":
            entry["given_depth"] = column.given_depth
        columns.append(entry)
    tables = [{"stage": table.stage, "noise": _law_entry(table.noise)} for table in measured.tables]
    fit: dict[str, Any] = {"regularization": measured.regularization, "steps": measured.steps}
    if measured.is_near_counts:
        fit["is_near_counts"] = True
    if measured.tilt is not None:
        tilt = measured.tilt
        fit["tilt"] = {"n_drawn": tilt.n_drawn, "steps": tilt.steps, "held_std": tilt.held_std}
    return {"columns": columns, "tables": tables, "total": measured.total, "fit": fit}


def measured_members(measured: Measured) -> dict[str, bytes]:
    """Two tables, with a row for each counted column or place, and for each counted table."""
    columns = [column for column in measured.columns if column is not None]
    nothing = np.zeros(0, dtype=np.int64)
    piles = [column.piles for column in columns]
    counts = {
        "noisy": [column.noisy for column in columns],
        "leaf": [column.leaf for column in columns],
        "impossible": [np.flatnonzero(~column.possible) for column in columns],
        "noisy_piles": [nothing if of_column is None else of_column.noisy for of_column in piles],
        "pile": [nothing if of_column is None else of_column.pile for of_column in piles],
        "noisy_groups": [np.concatenate([nothing, *column.groups]) for column in columns],
    }
    tables = {
        "columns": [np.array(table.columns) for table in measured.tables],
        "labels": [nothing if table.labels is None else table.labels for table in measured.tables],
        "noisy": [table.noisy for table in measured.tables],
    }
    found = [
        pa.table({name: pa.array(lines, kinds[name][0]) for name, lines in held.items()})
        for held, kinds in ((counts, _COUNTS), (tables, _TABLES))
    ]
    return {name: to_arrow(table) for name, table in zip(MEASURED_MEMBERS, found, strict=True)}


def measured_from_members(
    card: Card,
    described: Mapping[str, Any],
    members: Mapping[str, bytes],
    models: Mapping[str, ColumnModel | PlaceModel],
    model: GraphModel,
) -> Measured | None:
    """Read what was written of these columns and this model; ValueError where it is not that."""
    if "measured" not in described:
        return None
    entries = described["measured"]
    counts, tables = (
        from_arrow(members[name], kinds) for name, kinds in zip(MEASURED_MEMBERS, (_COUNTS, _TABLES), strict=True)
    )
    names = list(models)
    numbered = [names.index(entry["variable"]) for entry in entries["columns"]]
    if numbered != sorted(set(numbered)):
        raise ValueError("counts of a column twice, or out of order")
    lines = zip(*(lists(counts, name, np.int64) for name in _COUNTS), strict=True)
    axes = column_axes(card.schema)
    columns: list[MeasuredColumn | None] = [None] * len(names)
    for number, entry, line in zip(numbered, entries["columns"], lines, strict=True):
        name = names[number]
        axis = axes.get(name)
        kind = "place" if isinstance(models[name], PlaceModel) or axis is None else axis.axis.kind
        levels = None if kind == "place" or axis is None else axis.levels
        if entry["kind"] != ("codes" if levels is not None else kind):
            raise ValueError(f"counts of {name!r} are not of the kind that it is")
        columns[number] = _column(name, entry, line, len(models[name].states), levels)
    read = zip(entries["tables"], *(lists(tables, name, np.int64) for name in _TABLES), strict=True)
    counted = tuple(_table(entry, *line, model=model) for entry, *line in read)
    fit = entries["fit"]
    steps, caution, total = fit["steps"], fit["regularization"], entries["total"]
    is_fit = type(steps) is int and 0 <= steps <= _MOST_STEPS and _is_number(caution, _MOST_CAUTION)
    if not is_fit or not _is_number(total, float(MOST_ROWS)) or round(total) != described["noisy_total"]:
        raise ValueError("what the model was fitted with is out of range")
    is_near = fit.get("is_near_counts") is True
    return Measured(tuple(columns), counted, total, card.row_count, caution, steps, _tilt_fit(fit, described), is_near)


def _column(
    name: str, entry: Mapping[str, Any], line: Sequence[Counts], n_leaves: int, levels: CodeLevels | None
) -> MeasuredColumn:
    """The counts of a column; ValueError where its leaves are not made of what was counted."""
    noisy, leaf, impossible, noisy_piles, pile, noisy_groups = line
    kind: Kind = entry["kind"]
    n_counted = len(noisy)
    steps = np.diff(leaf)
    is_made = len(leaf) == n_leaves and n_counted > 0 and leaf[0] == 0 and leaf[-1] < n_counted and (steps >= 0).all()
    if kind == "codes":
        is_made = is_made and (steps > 0).all()
    elif kind == "place":
        is_made = is_made and n_counted == n_leaves and (steps == 1).all()
    else:
        is_made = is_made and leaf[-1] == n_counted - 1 and (steps <= 1).all()
    depth = entry.get("given_depth", 0)
    if not is_made or type(depth) is not int or not 0 <= depth <= _DEEPEST:
        raise ValueError(f"leaves of {name!r} are not made of those that were counted")
    possible = np.ones(n_leaves, dtype=np.bool_)
    if len(impossible) and not 0 <= impossible.min() <= impossible.max() < n_leaves:
        raise ValueError(f"leaves of {name!r} that rules exclude are not its leaves")
    possible[impossible] = False
    if not (possible.any() and are_counts(noisy) and are_counts(noisy_piles) and are_counts(noisy_groups)):
        raise ValueError(f"counts of {name!r} out of range")
    groups: tuple[Counts, ...] = ()
    if levels is not None:
        ends = np.cumsum([len(starts) for starts in levels.starts])
        n_null = n_counted - levels.n_codes
        if not 0 <= n_null <= 1 or len(noisy_groups) != ends[-1] + n_null:
            raise ValueError(f"counts of {name!r} are not those of its hierarchy")
        groups = tuple(np.split(noisy_groups, ends[:-1] + n_null))
    piles = None
    if "noise of piles" in entry:
        law = _law(entry["noise of piles"])
        piles = MeasuredPiles(noisy_piles, law, _piles(name, pile, leaf, n_counted, len(noisy_piles)))
    elif len(noisy_piles) or len(pile):
        raise ValueError(f"piles of {name!r} were counted, and no noise is stated for them")
    return MeasuredColumn(
        kind, noisy, _law(entry["noise"]), leaf.astype(np.int32), possible, piles, groups, given_depth=depth
    )


def _piles(name: str, pile: Counts, leaf: Counts, n_counted: int, n_piles: int) -> NDArray[np.int32]:
    """Which leaves are piles: the beginning of a counted leaf, by its number, or the end of one."""
    places = np.flatnonzero(pile >= 0)
    chosen = pile[places]
    is_fine = len(pile) == len(leaf) and n_counted <= n_piles <= n_counted + 1 and len(np.unique(chosen)) == len(chosen)
    if is_fine and len(chosen):
        rest = np.where(chosen < n_counted, places + 1, places - 1)
        is_fine = pile.min() >= -1 and pile.max() < n_piles and rest.min() >= 0 and rest.max() < len(leaf)
        is_fine = is_fine and bool((leaf[rest] == leaf[places]).all())
        is_fine = is_fine and bool(((chosen == leaf[places]) | (chosen >= n_counted)).all())
    if not is_fine:
        raise ValueError(f"piles of {name!r} do not lie in its leaves")
    return pile.astype(np.int32)


def _table(
    entry: Mapping[str, Any], columns: Counts, labels: Counts, noisy: Counts, *, model: GraphModel
) -> MeasuredTable:
    """A counted table; ValueError where its boxes are not of its cells, or the model has no such table."""
    tree = model.tree
    numbers = tuple(columns.tolist())
    if list(numbers) != sorted(set(numbers)) or not all(0 <= number < len(tree.sizes) for number in numbers):
        raise ValueError("a table was counted of columns that are not those of the card")
    if not numbers or tree.home(numbers) is None:
        raise ValueError("a table was counted of which the model has none")
    n_cells = math.prod(tree.sizes[number] for number in numbers)
    if not len(noisy) or not are_counts(noisy) or (len(labels) or len(noisy)) != n_cells:
        raise ValueError("a table was counted that is not one of its columns' states")
    if len(labels):
        is_box = labels.min() >= -1 and labels.max() == len(noisy) - 1
        if not is_box or len(np.unique(labels[labels >= 0])) != len(noisy):
            raise ValueError("boxes of a counted table that do not follow each other")
    stage = entry["stage"]
    if stage not in _STAGES:
        raise ValueError("a table was counted in no stage that there is")
    return MeasuredTable(numbers, labels.astype(np.int32) if len(labels) else None, noisy, _law(entry["noise"]), stage)


def _tilt_fit(fit: Mapping[str, Any], described: Mapping[str, Any]) -> TiltFit | None:
    if "products" not in described:  # of which less may be published than was paid for
        return None
    tilt = fit["tilt"]
    n_drawn, steps, held = tilt["n_drawn"], tilt["steps"], tilt["held_std"]
    is_whole = type(n_drawn) is int and type(steps) is int
    if not is_whole or not (1 <= n_drawn <= _MOST_DRAWN and 1 <= steps <= _MOST_STEPS and _is_number(held, 2.0**61)):
        raise ValueError("what the tilt was fitted with is out of range")
    return TiltFit(n_drawn, steps, held)


def _law_entry(law: NoiseLaw) -> dict[str, str]:
    return {"law": law.law, "scale": str(law.scale)}


def _law(entry: Mapping[str, Any]) -> NoiseLaw:
    scale = parse_fraction(entry["scale"], "scale")
    for law, (least, most) in _SCALES.items():
        if entry["law"] == law and least <= scale <= most:
            return NoiseLaw(law, scale)
    raise ValueError("noise of a law or a scale that no mechanism has")


def _is_number(value: Any, most: float) -> bool:
    return type(value) is float and 0 < value <= most
