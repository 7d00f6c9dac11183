"""Rows that obey the rules between their own columns. PUBLIC.

A field knows nothing of rules such as `Implies`, so rows that break one are drawn again, which is the field's law given
that the rules hold. Where that takes too long, the columns of the rules get a combination of states that obeys, and the
others are drawn given it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.rules import Zeros
from spinney.graph.field import Field

States = NDArray[np.int32]

# So often is a row drawn again before its states are put together.
_TRIES = 30
# So many combinations are tried for a row at a time, and so often.
_TRIED, _ROUNDS = 64, 200


def draw_obeying(
    field: Field, evidence: States, rng: np.random.Generator, clamp: Mapping[int, Any], zeros: Zeros
) -> States:
    """States of rows (n_columns, n_rows) given their evidence, none of which the zeros make impossible.

    Args:
        field: the law of rows.
        evidence: states of each row (n_evidence, n_rows).
        rng: draws the rows.
        clamp: own columns whose states are given (n_rows,).
        zeros: which combinations of states of own columns are possible; see `possible_states`.
    """
    own = field.draw(evidence, rng, clamp=clamp)
    broken = _broken(own, zeros)
    for _ in range(_TRIES):
        if not len(broken):
            return own
        given = {column: states[broken] for column, states in clamp.items()}
        own[:, broken] = field.draw(evidence[:, broken], rng, clamp=given)
        broken = broken[_broken(own[:, broken], zeros)]
    if len(broken):
        columns = sorted({column for clique, _ in zeros for column in clique})
        for row in broken.tolist():
            _put_together(field, evidence[:, row], own[:, row], columns, clamp.keys(), zeros, rng)
        given = {column: states[broken] for column, states in clamp.items()}
        given |= {column: own[column, broken] for column in columns}
        own[:, broken] = field.draw(evidence[:, broken], rng, clamp=given)
    return own


def _broken(own: States, zeros: Zeros) -> NDArray[np.int64]:
    """The rows that have an impossible combination of states."""
    obeys = np.ones(own.shape[1], dtype=np.bool_)
    for clique, possible in zeros:
        obeys &= possible[tuple(own[column] for column in clique)]
    return np.flatnonzero(~obeys)


def _put_together(
    field: Field,
    evidence: NDArray[np.int32],
    row: NDArray[np.int32],
    columns: Sequence[int],
    fixed: Any,
    zeros: Zeros,
    rng: np.random.Generator,
) -> None:
    """Write states into one row that obey, are possible in its place, and are as near to its own as it goes."""
    free = [column for column in columns if column not in fixed]
    masks = [(column, possible[evidence[number]]) for number, column, possible in field.masks]
    tried = np.repeat(row[:, None], _TRIED, axis=1)
    for n_changed in range(_ROUNDS):
        tried[:] = row[:, None]
        # A few columns change at first, and more of them where that does not help.
        share = min(1.0, (1 + n_changed // 10) / max(len(free), 1))
        for column in free:
            changes = rng.random(_TRIED) < share
            tried[column, changes] = rng.integers(field.sizes[column], size=int(changes.sum()))
        obeys = np.ones(_TRIED, dtype=np.bool_)
        for clique, possible in zeros:
            obeys &= possible[tuple(tried[column] for column in clique)]
        for column, possible in masks:
            obeys &= possible[tried[column]]
        if obeys.any():
            row[:] = tried[:, np.flatnonzero(obeys)[0]]
            return
