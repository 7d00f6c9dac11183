"""Utility figures of a fit: rows are drawn from the release, then its tables are compared with those of the table.

Which states columns are compared in follows from the schema and the release: a forest has states of its own, a tree or
a grid gets even parts of its columns. The drawn rows are read as the table is, so that rules, computed columns and
whatever else a draw does are part of what is compared. Proof: `tree/utility.proof.md`, whose steps are named here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from spinney.counting.joint import Clique
from spinney.counting.states import AnyCut, Cut, ExpectedTables, RegionCut, true_figures
from spinney.grid.lattice import halving_axis
from spinney.release.release import Release
from spinney.release.utility import MOST_DRAWN, MOST_PAIRS, UTILITY
from spinney.schema.schema import Schema
from spinney.tables.open import open_source
from spinney.tables.source import Source

R = TypeVar("R", bound=Release)
Figures = NDArray[np.int64]

# The seed that rows are drawn by, and how many values are drawn in all, and at once.
SEED = 0
_MOST_VALUES = 1 << 24
_MOST_AT_ONCE = 1 << 22
# A column is compared in no more states than this; states beyond are joined with their neighbours.
MOST_STATES = 64
# Parts that a column of a tree or a grid is cut into.
_N_PARTS = 16


def with_utility(release: R, table: Source, cuts: Sequence[AnyCut], noisy_figures: Callable[[Figures], Figures]) -> R:
    """The release with figures of utility on its card. `noisy_figures` was paid for, and is asked once.

    Where nothing was released, or no column has more than one state, there is nothing to compare.
    """
    cuts = [_coarse(cut) for cut in cuts if cut.n_states > 1]
    if not cuts or release.card.is_empty:
        return release
    n_rows = release.card.n_rows if release.card.n_rows is not None else max(1, release._noisy_total())
    drawn = n_drawn_rows(release)
    singles = [(column,) for column in range(len(cuts))]
    sets = [some for some in (singles, compared_pairs(len(cuts))) if some]
    shares = drawn_shares(release, cuts, [*singles, *(sets[1] if len(sets) > 1 else [])], drawn)  # [step 2]
    expected, sampling = [], []
    for some in sets:
        of_set = [shares.pop(0) for _ in some]
        expected.append(ExpectedTables(tuple(some), tuple(n_rows * table for table in of_set)))
        sampling.append(sum(sampling_error(table, drawn) for table in of_set) / len(of_set))
    with table.state_tables(cuts) as rows:
        rows.prepare([clique for some in expected for clique in some.cliques])
        noisy = noisy_figures(true_figures(rows, expected))  # [step 3], [step 4]
    entry: dict[str, object] = {  # the law of their noise follows from the events
        "noisy": noisy.tolist(),
        "columns": len(cuts),
        "pairs": len(sets[1]) if len(sets) > 1 else 0,
        "cells": [int(some.most_cells) for some in expected],
        "of_rows": n_rows,
        "drawn_rows": drawn,
        "seed": SEED,
        "sampling": [round(float(share), 6) for share in sampling],
    }
    changed = copy(release)
    changed._card = replace(release._card, design={**release._card.design, UTILITY: entry})
    changed.__dict__.pop("card", None)  # which remembers the card without them
    return changed


def n_drawn_rows(release: Release) -> int:
    """How many rows are drawn to compare a release by."""
    return min(MOST_DRAWN, max(_MOST_VALUES // len(release.schema), 1))


def compared_pairs(n_columns: int) -> list[Clique]:
    """All pairs of columns, or evenly spaced ones of their list where there are too many."""
    pairs: list[Clique] = list(combinations(range(n_columns), 2))
    if len(pairs) <= MOST_PAIRS:
        return pairs
    return [pairs[place * len(pairs) // MOST_PAIRS] for place in range(MOST_PAIRS)]


def drawn_shares(
    release: Release, cuts: Sequence[AnyCut], cliques: Sequence[Clique], n_rows: int
) -> list[NDArray[np.float64]]:
    """The shares of states in rows that are drawn from the release, table by table."""
    counts: list[NDArray[np.int64]] = []
    n_parts = -(-n_rows * len(release.schema) // _MOST_AT_ONCE)
    for part in release.sample(n_rows, seed=SEED, frame="pyarrow", parts=n_parts):
        source = open_source(part, release.schema._as_read)
        with source.state_tables(cuts) as rows:
            tables = rows.true_each(cliques, lambda _, table: table.copy())
        counts = tables if not counts else [a + b for a, b in zip(counts, tables, strict=True)]
    return [table / n_rows for table in counts]


def sampling_error(shares: NDArray[np.float64], n_rows: int) -> float:
    """The mean distance of a table of so many independent rows from the law that they are drawn from, at most."""
    return float(np.sqrt(shares * (1 - shares) / n_rows).sum()) / 2


def even_cuts(schema: Schema) -> list[Cut]:
    """Every column of a tree or a grid in even parts of its cells, a list in its values, and null."""
    cuts = []
    for name, column in schema.items():
        axis = halving_axis(name, column)
        n_cells = axis.last - axis.first + 1
        n_parts = min(n_cells, MOST_STATES if axis.kind == "category" else _N_PARTS)
        first = [axis.first + n_cells * part // n_parts for part in range(n_parts)]
        first = [0, *first[1:], *([axis.null_cell] if axis.nullable else [])]
        cuts.append(Cut(axis, np.array(first, dtype=np.int64), np.arange(len(first), dtype=np.int64)))
    return cuts


def _coarse(cut: AnyCut) -> AnyCut:
    """The cut with neighbouring states joined where it has more than `MOST_STATES`."""
    if cut.n_states <= MOST_STATES:
        return cut
    states = cut.states * MOST_STATES // cut.n_states
    return RegionCut(cut.lattice, cut.first, states) if isinstance(cut, RegionCut) else Cut(cut.axis, cut.first, states)
