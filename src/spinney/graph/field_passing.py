"""Exact inference in a field, upward: compiled loops over blocks of rows, whose innermost index is the row.

From the leaves of the forest to its roots, each column's weights are multiplied by its children's messages and
divided by their sum; the sums multiply to Z. A message is the pair's factors times the child's weights.

Everything is in products, not logarithms. Log-factors are cut `floor` below the largest of their line, so that no
product vanishes; cells that far down have no rows. What masks exclude is exactly zero.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled_loosely
from spinney.graph.field_layout import Floats, Indices, Plan

States = NDArray[np.int32]

# Rows of a block: enough for full vectors, few enough for a block's weights to stay in the cache.
BLOCK = 64


class Masks(NamedTuple):
    """Tables of (evidence, own) with 0 where a state cannot be and 1 elsewhere, one after the other."""

    evidence: Indices
    own: Indices
    at: Indices
    is_possible: Floats


class Limits(NamedTuple):
    """What single rows are held to. Without clamps and limits the arrays are empty and `allowed_at` is -1."""

    clamps: States  # (n_own, n_rows), -1 where free, or (0, 0)
    allowed: NDArray[np.bool_]
    allowed_at: Indices  # (n_own,)
    allowed_step: Indices  # (n_own,): from one row to the next


@compiled_loosely
def factors_of(plan: Plan, potentials: Floats, evidence_sizes: Indices) -> tuple[Floats, Floats, float]:
    """Factors of all cells, the logarithms taken out of each line of each link, and those out of all other tables."""
    factors, lines, constant = np.empty_like(potentials), np.empty(plan.line_at[-1]), 0.0
    for column in range(len(plan.sizes)):
        constant += _exponentials(potentials, factors, plan.own_at[column], plan.widths[column], plan.floor)
        if plan.parents[column] >= 0:
            n_cells = plan.widths[column] * plan.sizes[plan.parents[column]]
            constant += _exponentials(potentials, factors, plan.pair_at[column], n_cells, plan.floor)
    for link in range(len(plan.link_own)):
        width = plan.widths[plan.link_own[link]]
        for state in range(evidence_sizes[plan.link_evidence[link]]):
            start = plan.link_at[link] + state * width
            lines[plan.line_at[link] + state] = _exponentials(potentials, factors, start, width, plan.floor)
    return factors, lines, constant


@compiled_loosely
def _exponentials(potentials: Floats, factors: Floats, start: int, n_cells: int, floor: float) -> float:
    largest: float = potentials[start]
    for cell in range(start, start + n_cells):
        largest = max(largest, potentials[cell])
    for cell in range(start, start + n_cells):
        factors[cell] = math.exp(max(potentials[cell] - largest, floor))
    return largest


@compiled_loosely
def upward(
    plan: Plan,
    masks: Masks,
    limits: Limits,
    factors: Floats,
    evidence: States,  # (n_evidence, n_rows)
    low: int,
    n: int,
    node: Floats,  # (cells of a row, BLOCK), written: weights of each column given all below it, that add up to 1
    message: Floats,  # (cells of messages, BLOCK), written
    role_law: Floats,  # (n_roles, BLOCK), written: the law of the role
    log_z: Floats,  # (BLOCK,), written: log Z without what was taken out of factors
    spare: Floats,  # (largest size, BLOCK)
) -> None:
    """Weights of all columns of some rows, from the leaves up."""
    for column in range(len(plan.sizes)):
        at, start = plan.node_at[column], plan.own_at[column]
        for cell in range(plan.widths[column]):
            line, factor = node[at + cell], factors[start + cell]
            for k in range(n):
                line[k] = factor
    for link in range(len(plan.link_own)):
        column, states = plan.link_own[link], evidence[plan.link_evidence[link]]
        at, width = plan.node_at[column], plan.widths[column]
        for cell in range(width):
            line, start = node[at + cell], plan.link_at[link] + cell
            for k in range(n):
                line[k] *= factors[start + states[low + k] * width]
    for column in range(len(plan.sizes)):
        if _possible(plan, masks, limits, evidence, column, low, n, spare):
            at, size = plan.node_at[column], plan.sizes[column]
            for cell in range(plan.widths[column]):
                line, possible = node[at + cell], spare[cell % size]
                for k in range(n):
                    line[k] *= possible[k]
    logs = np.zeros((plan.n_roles, n))
    for place in range(len(plan.order) - 1, -1, -1):
        _send(plan, plan.order[place], factors, n, node, message, logs, spare[0])
    _weigh_roles(plan, n, node, logs, role_law, log_z)


@compiled_loosely
def _send(
    plan: Plan, column: int, factors: Floats, n: int, node: Floats, message: Floats, logs: Floats, total: Floats
) -> None:
    """Divide a column's weights by their sum, for each role, and multiply the parent's by the message."""
    size, parent, one = plan.sizes[column], plan.parents[column], np.int64(1)
    for role in range(plan.n_roles):
        at = plan.node_at[column] + role * size
        for k in range(n):
            total[k] = 0.0
        for state in range(size):
            line = node[at + state]
            for k in range(n):
                total[k] += line[k]
        for k in range(n):
            logs[role, k] += math.log(total[k])
            total[k] = 1 / total[k]
        for state in range(size):
            line = node[at + state]
            for k in range(n):
                line[k] *= total[k]
        if parent < 0:
            continue
        n_above = plan.sizes[parent]
        for above in range(n_above):
            start = role * n_above + above
            sent = message[plan.message_at[column] + start]
            combine(node, at, size, factors, plan.pair_at[column] + start * size, one, sent, n)
            onto = node[plan.node_at[parent] + start]
            for k in range(n):
                onto[k] *= sent[k]


@compiled_loosely
def _weigh_roles(plan: Plan, n: int, node: Floats, logs: Floats, role_law: Floats, log_z: Floats) -> None:
    """The law of the role, out of its own weights and each copy's Z."""
    if plan.role < 0:
        for k in range(n):
            role_law[0, k], log_z[k] = 1.0, logs[0, k]
        return
    own = plan.node_at[plan.role]
    for k in range(n):
        largest = -1e300
        for role in range(plan.n_roles):
            if node[own + role, k] > 0:
                largest = max(largest, logs[role, k])
        total = 0.0
        for role in range(plan.n_roles):
            # A role that cannot be may have the largest Z.
            weight = node[own + role, k]
            role_law[role, k] = weight * math.exp(logs[role, k] - largest) if weight > 0 else 0.0
            total += role_law[role, k]
        for role in range(plan.n_roles):
            role_law[role, k] /= total
        log_z[k] = largest + math.log(total)


@compiled_loosely
def _possible(
    plan: Plan, masks: Masks, limits: Limits, evidence: States, column: int, low: int, n: int, spare: Floats
) -> bool:
    """Write which states of a column are possible (size, BLOCK); False where all are, and nothing is written.

    A clamp beats what is allowed, which beats masks: where masks leave a row nothing of it, they are dropped.
    """
    size, has_clamps, allowed_at = plan.sizes[column], len(limits.clamps) > 0, limits.allowed_at[column]
    is_limited = has_clamps or allowed_at >= 0
    for mask in range(len(masks.own)):
        is_limited |= masks.own[mask] == column
    if not is_limited:
        return False
    for state in range(size):
        for k in range(n):
            spare[state, k] = 1.0
    for mask in range(len(masks.own)):
        if masks.own[mask] == column:
            states = evidence[masks.evidence[mask]]
            for state in range(size):
                for k in range(n):
                    spare[state, k] *= masks.is_possible[masks.at[mask] + states[low + k] * size + state]
    for k in range(n):
        if has_clamps and limits.clamps[column, low + k] >= 0:
            for state in range(size):
                spare[state, k] = 0.0
            spare[limits.clamps[column, low + k], k] = 1.0
            continue
        at = allowed_at + (low + k) * limits.allowed_step[column]
        n_left = 0.0
        for state in range(size):
            if allowed_at < 0 or limits.allowed[at + state]:
                n_left += spare[state, k]
        for state in range(size):
            is_allowed = allowed_at < 0 or limits.allowed[at + state]
            if n_left == 0:
                spare[state, k] = 1.0
            if not is_allowed:
                spare[state, k] = 0.0
    return True


@compiled_loosely
def combine(
    lines: Floats, first: int, n_lines: int, factors: Floats, at: int, step: int | np.int64, onto: Floats, n: int
) -> None:
    """The sum of some lines, each times a factor: four at a time, so that the sum is loaded and stored less often."""
    for k in range(n):
        onto[k] = 0.0
    n_fours = n_lines - n_lines % 4
    for i in range(0, n_fours, 4):
        a, b, c, d = lines[first + i], lines[first + i + 1], lines[first + i + 2], lines[first + i + 3]
        p, q = factors[at + i * step], factors[at + (i + 1) * step]
        r, s = factors[at + (i + 2) * step], factors[at + (i + 3) * step]
        for k in range(n):
            onto[k] += p * a[k] + q * b[k] + r * c[k] + s * d[k]
    for i in range(n_fours, n_lines):
        line, factor = lines[first + i], factors[at + i * step]
        for k in range(n):
            onto[k] += factor * line[k]
