"""Pairs of columns: how strongly each depends on each other, the table of a chosen pair, maps and the graph."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from spinney.errors import ParameterError
from spinney.release.answers.answer import shown_label
from spinney.release.answers.bars import parts_of, weakest
from spinney.studio.releases.loaded import LEVEL, asked_columns, contents, loaded

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
    listed = [
        {
            "estimate": float(answer.estimate),
            "low": answer.low,
            "high": answer.high,
            "statement": answer.statement,
        }
        for answer in answers
    ]
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
