"""What figures of utility are of, worked out again from the release: columns, pairs, cells, drawn rows, sampling.

The noise of a figure follows from its charge (`release/utility_verification.py`), and its interval also from how many
cells were compared; what the figure means, from how many columns and pairs, and from how many rows were drawn. All of
that follows from the schema and the model. The sampling error is found again by drawing the same rows: streams of
random numbers may differ between machines in their last digits, so it is compared up to a small part of it. Like plans,
all of it holds for a card of this version, commit included; of others it is only said whether it is the same.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.counting.joint import Clique
from spinney.forest.release.model import ForestRelease
from spinney.progress import waiting
from spinney.release.contradictions import check
from spinney.release.model import Release
from spinney.release.seeds import row_generator
from spinney.release.utility import UTILITY
from spinney.shown import brief
from spinney.synthesizers.utility import (
    MOST_STATES,
    SEED,
    compared_pairs,
    drawn_shares,
    even_cuts,
    n_drawn_rows,
    sampling_error,
)
from spinney.version import full_version

_WHAT = "what the figures of utility are of"
_SLACK = 0.02
_AT_ONCE = 1 << 17


def check_figures(release: Release) -> tuple[list[str], list[dict[str, str]]]:
    """What was compared, in words, and what was not and why; ContradictionError where this version finds otherwise."""
    card = release.card
    entry = card.plan.get(UTILITY)
    if entry is None:
        return [], []
    difference = _difference(release, entry)
    if difference is None:
        return ["the columns, pairs, cells and drawn rows of the figures of utility, found again from the release"], []
    if card.spinney_version == full_version():
        check(False, f"the figures of utility are of something else than the release: {difference}")
    why = f"it was made by spinney {card.spinney_version}, and this version compares otherwise ({difference})"
    return [], [{"what": _WHAT, "why": why}]


def _difference(release: Release, entry: dict[str, Any]) -> str | None:
    """The first number that differs, in words."""
    sizes = _compared_sizes(release)
    pairs = compared_pairs(len(sizes))
    cells = [max(sizes, default=0), *([max(sizes[i] * sizes[j] for i, j in pairs)] if pairs else [])]
    wanted: dict[str, Any] = {
        "columns": len(sizes),
        "pairs": len(pairs),
        "cells": cells,
        "drawn_rows": n_drawn_rows(release),
    }
    for name, value in wanted.items():
        if entry[name] != value:
            return f"{name} would be {brief(value)} and is {brief(entry[name])}"
    for what, stated, found in zip(("columns", "pairs"), entry["sampling"], _sampling(release, pairs), strict=False):
        if not math.isclose(stated, found, rel_tol=_SLACK, abs_tol=2e-6):
            return f"the sampling error of {what} would be {found:.6f} and is {brief(stated)}"
    return None


def _compared_sizes(release: Release) -> list[int]:
    """How many states each compared column or place has; those with one are not compared."""
    if isinstance(release, ForestRelease):
        sizes = list(release.model.tree.sizes)
    else:
        sizes = [cut.n_states for cut in even_cuts(release.card.schema.modelled)]
    return [min(size, MOST_STATES) for size in sizes if size > 1]


@waiting("drawing the rows of figures of utility again")
def _sampling(release: Release, pairs: list[Clique]) -> list[float]:
    """The mean sampling error of tables of one column, and of two."""
    n_rows = n_drawn_rows(release)
    singles: list[Clique] = [(column,) for column in range(len(_compared_sizes(release)))]
    cliques = [*singles, *pairs]
    if isinstance(release, ForestRelease):
        shares = _state_shares(release, cliques, n_rows)
    else:
        cuts = [cut for cut in even_cuts(release.card.schema.modelled) if cut.n_states > 1]
        shares = drawn_shares(release, cuts, cliques, n_rows)
    errors = [sampling_error(table, n_rows) for table in shares]
    ends = [0, len(singles), *([len(cliques)] if pairs else [])]
    return [float(np.mean(errors[low:high])) for low, high in pairwise(ends)]


def _state_shares(release: ForestRelease, cliques: list[Clique], n_rows: int) -> list[NDArray[np.float64]]:
    """Shares of states among rows drawn from a forest: the states that its columns are compared in."""
    sizes = release.model.tree.sizes
    kept = [place for place, size in enumerate(sizes) if size > 1]
    counts = [np.zeros(math.prod(min(sizes[kept[column]], MOST_STATES) for column in clique)) for clique in cliques]
    rng = row_generator(SEED, release.stream)
    for begin in range(0, n_rows, _AT_ONCE):
        states, _ = release.drawn(min(_AT_ONCE, n_rows - begin), rng)
        coarse = [_coarse(states[place], sizes[place]) for place in kept]
        for place, clique in enumerate(cliques):
            codes = coarse[clique[0]]
            for column in clique[1:]:
                codes = codes * min(sizes[kept[column]], MOST_STATES) + coarse[column]
            counts[place] += np.bincount(codes, minlength=len(counts[place]))
    return [table / n_rows for table in counts]


def _coarse(states: NDArray[np.int32], n_states: int) -> NDArray[np.int64]:
    wide = states.astype(np.int64)
    return wide if n_states <= MOST_STATES else wide * MOST_STATES // n_states
