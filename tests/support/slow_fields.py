"""The slow twin of fields: for one row at a time, the whole joint table of own columns, one axis a column."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from spinney.graph.crf import Field, Mask
from spinney.graph.crf_inference import FieldClique

Floats = NDArray[np.float64]


def axes_of(clique: FieldClique, role: int | None) -> list[int | str]:
    """Names of the axes of a clique's table: own columns by number, the evidence by "e"."""
    others: list[int | str] = [column for column in clique.own if column != role]
    evidence: list[int | str] = ["e"] if clique.evidence else []
    own_role: list[int | str] = [role] if role in clique.own and role is not None else []
    return [*own_role, *evidence, *others] if others else [*evidence, *own_role]


def joint_of_row(
    field: Field,
    row: Floats,
    clamp: Mapping[int, int] | None = None,
) -> tuple[Floats, float]:
    """Probabilities of all states of a row with this evidence (one axis an own column), and log Z."""
    sizes, role = field.sizes, field.role
    log_weights = np.zeros(sizes)
    for clique, table in field.tables().items():
        axes, cells = axes_of(clique, role), table
        if clique.evidence:
            cells, axes = np.take(table, row[clique.evidence[0]], axis=axes.index("e")), [a for a in axes if a != "e"]
        ordered = sorted(axes)  # type: ignore[type-var]
        cells = np.transpose(cells, [axes.index(axis) for axis in ordered])
        log_weights = log_weights + cells.reshape([size if c in axes else 1 for c, size in enumerate(sizes)])
    weights = np.exp(log_weights)
    for column, size in enumerate(sizes):
        possible = possible_states(field.masks, row, column, size, clamp or {})
        weights = weights * possible.reshape([size if c == column else 1 for c in range(len(sizes))])
    return weights / weights.sum(), float(np.log(weights.sum()))


def possible_states(
    masks: tuple[Mask, ...],
    row: Floats,
    column: int,
    size: int,
    clamp: Mapping[int, int],
) -> NDArray[np.bool_]:
    """States that a column of a row may have: a clamp beats masks."""
    if clamp.get(column, -1) >= 0:
        return np.arange(size) == clamp[column]
    masked = np.ones(size, dtype=bool)
    for evidence, own, table in masks:
        if own == column:
            masked &= table[int(row[evidence])]
    return masked if masked.any() else ~masked


def slow_table(field: Field, clique: FieldClique, evidence: NDArray[np.int64], weights: Floats) -> Floats:
    """The expected table of a clique, row by row."""
    found = np.zeros(field.shape(clique))
    axes = axes_of(clique, field.role)
    for row, weight in zip(evidence.T, weights, strict=True):
        joint, _ = joint_of_row(field, row)
        own = [axis for axis in axes if axis != "e"]
        cells = joint.sum(axis=tuple(c for c in range(joint.ndim) if c not in own))
        cells = np.transpose(cells, [sorted(own).index(axis) for axis in own])  # type: ignore[type-var]
        if clique.evidence:
            index: list[int | slice] = [slice(None)] * found.ndim
            index[axes.index("e")] = int(row[clique.evidence[0]])
            found[tuple(index)] += weight * cells
        else:
            found += weight * cells
    return found


def random_field(rng: np.random.Generator, *, role: bool = False, masks: bool = False, spread: float = 1.0) -> Field:
    """A field of a few columns, a random forest and random links."""
    n_own, n_evidence = int(rng.integers(1, 6)), int(rng.integers(0, 4))
    sizes = rng.integers(1, 4, n_own).tolist()
    evidence_sizes = rng.integers(1, 4, n_evidence).tolist()
    named = int(rng.integers(n_own)) if role else None
    shapes = Field.of(sizes, evidence_sizes, {}, role=named)
    front = () if named is None else (named,)
    cliques = [FieldClique((), (*front, c)) if c != named else FieldClique((), (c,)) for c in range(n_own)]
    roots = list(range(n_own))
    for second in rng.permutation(n_own).tolist():
        for first in rng.permutation(n_own).tolist():
            if named in (first, second) or roots[first] == roots[second] or rng.random() < 0.4:
                continue
            pair = tuple(sorted((first, second)))
            cliques.append(FieldClique((), (*(front if rng.random() < 0.7 else ()), *pair)))
            roots = [roots[first] if root == roots[second] else root for root in roots]
    for e in range(n_evidence):
        linked = [c for c in range(n_own) if rng.random() < 0.4]
        cliques += [FieldClique((e,), (c,) if c == named or rng.random() < 0.3 else (*front, c)) for c in linked]
    tables = {clique: rng.normal(0, spread, shapes.shape(clique)) for clique in cliques}
    found = []
    if masks:
        for e in range(n_evidence):
            c = int(rng.integers(n_own))
            found.append((e, c, rng.random((evidence_sizes[e], sizes[c])) < 0.6))
    return Field.of(sizes, evidence_sizes, tables, role=named, masks=found)


def random_evidence(rng: np.random.Generator, field: Field, n_rows: int) -> NDArray[np.int64]:
    """Evidence of any states."""
    lines = [rng.integers(0, size, n_rows) for size in field.evidence_sizes]
    return np.array(lines, dtype=np.int64).reshape(len(lines), n_rows)


def all_cliques(field: Field) -> list[FieldClique]:
    """Every clique that the field could have a table of."""
    n_own, role = len(field.sizes), field.role
    others = [c for c in range(n_own) if c != role]
    fronts: list[tuple[int, ...]] = [()] if role is None else [(), (role,)]
    found = [] if role is None else [FieldClique((), (role,))]
    found += [FieldClique((), (*front, c)) for front in fronts for c in others]
    found += [FieldClique((), (*front, a, b)) for front in fronts for a in others for b in others if a < b]
    for e in range(len(field.evidence_sizes)):
        found += [] if role is None else [FieldClique((e,), (role,))]
        found += [FieldClique((e,), (*front, c)) for front in fronts for c in others]
    return found
