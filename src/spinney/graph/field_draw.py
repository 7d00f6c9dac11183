"""Rows drawn from a field: the role first, then roots of the forest, then each column given its parent.

Rows are independent given evidence. Sharing out states evenly among rows of like evidence, as `draw` does for tables,
would bring counts a little nearer to their expectation, but rows of one person would then avoid each other's states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.compiled import compiled_loosely
from spinney.errors import ParameterError
from spinney.graph.field_layout import Floats, Plan
from spinney.graph.field_passing import BLOCK, Limits, Masks, States, upward
from spinney.parallel import by_slices

# Rows whose random numbers are held at once.
_AT_ONCE = 1 << 18


def limits_of(
    sizes: Sequence[int], n_rows: int, clamp: Mapping[int, ArrayLike], allowed: Mapping[int, ArrayLike]
) -> Limits:
    """Clamps and allowed states as loops take them; raises where they fit neither columns nor rows."""
    for column in (*clamp, *allowed):
        if not 0 <= column < len(sizes):
            raise ParameterError(f"clamp and allowed must name own columns, of 0..{len(sizes) - 1}, not {column}")
    clamps = np.full((len(sizes) if clamp else 0, n_rows if clamp else 0), -1, dtype=np.int32)
    for column, values in clamp.items():
        states = np.asarray(values)
        is_fine = states.shape == (n_rows,) and states.dtype.kind in "iu"
        if not is_fine or (n_rows and not -1 <= states.min() <= states.max() < sizes[column]):
            raise ParameterError(
                f"clamp of own column {column} must be {n_rows} states, in 0..{sizes[column] - 1} or -1 where free"
            )
        clamps[column] = states
    lines: list[NDArray[np.bool_]] = []
    at, step, n_flags = np.full(len(sizes), -1, dtype=np.int64), np.zeros(len(sizes), dtype=np.int64), 0
    for column, values in allowed.items():
        flags, size = np.asarray(values), sizes[column]
        if flags.dtype != np.bool_ or flags.shape not in {(size,), (n_rows, size)}:
            raise ParameterError(f"allowed of own column {column} must be booleans of ({size},) or ({n_rows}, {size})")
        if not flags.any(axis=-1).all():
            raise ParameterError(f"allowed of own column {column} leaves a row no state at all")
        at[column], step[column] = n_flags, size * (flags.ndim - 1)
        lines.append(flags.ravel())
        n_flags += flags.size
    return Limits(clamps, np.concatenate([np.empty(0, dtype=np.bool_), *lines]), at, step)


def draw_rows(
    plan: Plan, masks: Masks, limits: Limits, factors: Floats, evidence: States, rng: np.random.Generator
) -> States:
    """States of own columns (n_own, n_rows)."""
    n_own, n_rows = len(plan.sizes), evidence.shape[1]
    states = np.empty((n_own, n_rows), dtype=np.int32)
    for first in range(0, n_rows, _AT_ONCE):
        last = min(first + _AT_ONCE, n_rows)
        uniform = rng.random((n_own, last - first))

        def draw(part: slice, first: int = first, uniform: Floats = uniform) -> None:
            low, high = first + part.start, first + part.stop
            _draw(plan, masks, limits, factors, evidence, uniform, first, low, high, states)

        by_slices(draw, last - first)
    return states


@compiled_loosely
def _draw(
    plan: Plan,
    masks: Masks,
    limits: Limits,
    factors: Floats,
    evidence: States,
    uniform: Floats,  # (n_own, n_rows from `first` on)
    first: int,
    low: int,
    high: int,
    states: States,  # (n_own, n_rows), written
) -> None:
    node, message = np.empty((plan.n_nodes, BLOCK)), np.empty((plan.n_messages, BLOCK))
    spare, role_law, log_z = np.empty((plan.largest, BLOCK)), np.empty((plan.n_roles, BLOCK)), np.empty(BLOCK)
    weights = np.empty(plan.largest)
    for start in range(low, high, BLOCK):
        n = min(BLOCK, high - start)
        upward(plan, masks, limits, factors, evidence, start, n, node, message, role_law, log_z, spare)
        for k in range(n):
            row, role = start + k, 0
            if plan.role >= 0:
                for state in range(plan.n_roles):
                    weights[state] = role_law[state, k]
                role = _pick(weights, plan.n_roles, uniform[plan.role, row - first])
                states[plan.role, row] = role
            for column in plan.order:
                size, parent = plan.sizes[column], plan.parents[column]
                at = plan.node_at[column] + role * size
                if parent < 0:
                    for state in range(size):
                        weights[state] = node[at + state, k]
                else:
                    above = role * plan.sizes[parent] + states[parent, row]
                    given = plan.pair_at[column] + above * size
                    for state in range(size):
                        weights[state] = node[at + state, k] * factors[given + state]
                states[column, row] = _pick(weights, size, uniform[column, row - first])


@compiled_loosely
def _pick(weights: Floats, size: int, uniform: float) -> int:
    """A state with a chance in proportion to its weight; never one of weight 0."""
    total = 0.0
    for state in range(size):
        total += weights[state]
    rest, picked = uniform * total, -1
    for state in range(size):
        if weights[state] > 0:
            picked = state
            rest -= weights[state]
            if rest < 0:
                break
    return picked
