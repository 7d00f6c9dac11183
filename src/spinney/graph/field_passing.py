"""Exact inference in a field, for blocks of rows at once: compiled loops whose innermost index is the row.

Upward, from the leaves of the forest to its roots, each column's weights are multiplied by its children's messages
and divided by their sum; the sums multiply to Z. A message is the pair's factors times the child's weights. Downward,
the parent's law over the message, called its ratio, times factors and weights is the law of the pair. Factors are the
same for all rows, so the tables of pairs need only the sum over rows of ratio times weights.

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


class Counted(NamedTuple):
    """Tables that are added up besides those of own columns and of pairs in the forest, and where."""

    evidence: Indices  # (n_links,)
    own: Indices
    at: Indices
    paths: Indices  # own pairs outside of the forest: columns on the way from one to the other, or only the two
    path_starts: Indices
    path_at: Indices
    is_apart: NDArray[np.bool_]  # no way in the forest: given evidence and role, the two are independent


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
    size, parent = plan.sizes[column], plan.parents[column]
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
            sent, start = message[plan.message_at[column] + role * n_above + above], role * n_above + above
            for k in range(n):
                sent[k] = 0.0
            for state in range(size):
                line, factor = node[at + state], factors[plan.pair_at[column] + start * size + state]
                for k in range(n):
                    sent[k] += factor * line[k]
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
def _downward(
    plan: Plan,
    factors: Floats,
    n: int,
    node: Floats,
    message: Floats,  # in: messages; out: ratios
    role_law: Floats,  # times the rows' weights
    law: Floats,  # like node, written: each column's law times the row's weight
) -> None:
    if plan.role >= 0:
        for role in range(plan.n_roles):
            line, known = law[plan.node_at[plan.role] + role], role_law[role]
            for k in range(n):
                line[k] = known[k]
    for column in plan.order:
        size, parent, at = plan.sizes[column], plan.parents[column], plan.node_at[column]
        for role in range(plan.n_roles):
            if parent < 0:
                for state in range(size):
                    line, weights, known = law[at + role * size + state], node[at + role * size + state], role_law[role]
                    for k in range(n):
                        line[k] = weights[k] * known[k]
                continue
            n_above = plan.sizes[parent]
            for above in range(n_above):
                ratio = message[plan.message_at[column] + role * n_above + above]
                known = law[plan.node_at[parent] + role * n_above + above]
                for k in range(n):
                    ratio[k] = known[k] / ratio[k]
            for state in range(size):
                line, weights = law[at + role * size + state], node[at + role * size + state]
                for k in range(n):
                    line[k] = 0.0
                for above in range(n_above):
                    start = role * n_above + above
                    ratio, factor = (
                        message[plan.message_at[column] + start],
                        factors[plan.pair_at[column] + start * size + state],
                    )
                    for k in range(n):
                        line[k] += factor * ratio[k]
                for k in range(n):
                    line[k] *= weights[k]


@compiled_loosely
def add_up(
    plan: Plan,
    masks: Masks,
    limits: Limits,
    factors: Floats,
    evidence: States,
    weights: Floats,
    low: int,
    high: int,
    counted: Counted,
    sums: Floats,  # (n_cells,), written
) -> float:
    """Add expected tables of some rows to sums; returns the sum of weights times log Z, less what factors lack."""
    n_cells = plan.widths.sum()
    node, law = np.empty((n_cells, BLOCK)), np.empty((n_cells, BLOCK))
    n_messages = 0
    for column in plan.order:
        if plan.parents[column] >= 0:
            n_messages += plan.n_roles * plan.sizes[plan.parents[column]]
    message, spare = np.empty((n_messages, BLOCK)), np.empty((plan.sizes.max(), BLOCK))
    role_law, log_z, value = np.empty((plan.n_roles, BLOCK)), np.empty(BLOCK), 0.0
    for start in range(low, high, BLOCK):
        n = min(BLOCK, high - start)
        upward(plan, masks, limits, factors, evidence, start, n, node, message, role_law, log_z, spare)
        for k in range(n):
            value += weights[start + k] * log_z[k]
            for role in range(plan.n_roles):
                role_law[role, k] *= weights[start + k]
        _downward(plan, factors, n, node, message, role_law, law)
        _add_own(plan, n, node, message, law, sums)
        for link in range(len(counted.own)):
            column, states = counted.own[link], evidence[counted.evidence[link]]
            at, width = plan.node_at[column], plan.widths[column]
            for cell in range(width):
                line, onto = law[at + cell], counted.at[link] + cell
                for k in range(n):
                    sums[onto + states[start + k] * width] += line[k]
        for path in range(len(counted.path_at)):
            columns = counted.paths[counted.path_starts[path] : counted.path_starts[path + 1]]
            if counted.is_apart[path]:
                _add_apart(plan, n, columns[0], columns[1], role_law, law, sums[counted.path_at[path] :])
            else:
                _add_path(plan, factors, n, columns, node, message, law, sums[counted.path_at[path] :])
    for column in plan.order:
        if plan.parents[column] >= 0:
            at = plan.pair_at[column]
            for cell in range(at, at + plan.widths[column] * plan.sizes[plan.parents[column]]):
                sums[cell] *= factors[cell]
    return value


@compiled_loosely
def _add_own(plan: Plan, n: int, node: Floats, message: Floats, law: Floats, sums: Floats) -> None:
    """Tables of own columns, and of pairs without their factors."""
    for column in range(len(plan.sizes)):
        at, start = plan.node_at[column], plan.own_at[column]
        for cell in range(plan.widths[column]):
            line, total = law[at + cell], 0.0
            for k in range(n):
                total += line[k]
            sums[start + cell] += total
        if plan.parents[column] < 0:
            continue
        size, n_above = plan.sizes[column], plan.sizes[plan.parents[column]]
        for above in range(plan.n_roles * n_above):
            ratio, below = message[plan.message_at[column] + above], at + above // n_above * size
            for state in range(size):
                line, total = node[below + state], 0.0
                for k in range(n):
                    total += ratio[k] * line[k]
                sums[plan.pair_at[column] + above * size + state] += total


@compiled_loosely
def _add_apart(plan: Plan, n: int, first: int, second: int, role_law: Floats, law: Floats, sums: Floats) -> None:
    """The table (R, first, second) of two columns that are independent given evidence and role."""
    n_first, n_second, scaled = plan.sizes[first], plan.sizes[second], np.empty(n)
    for role in range(plan.n_roles):
        for state in range(n_first):
            line, known = law[plan.node_at[first] + role * n_first + state], role_law[role]
            for k in range(n):
                scaled[k] = line[k] / known[k] if known[k] > 0 else 0.0
            for other in range(n_second):
                line, total = law[plan.node_at[second] + role * n_second + other], 0.0
                for k in range(n):
                    total += scaled[k] * line[k]
                sums[(role * n_first + state) * n_second + other] += total


@compiled_loosely
def _add_path(
    plan: Plan, factors: Floats, n: int, columns: Indices, node: Floats, message: Floats, law: Floats, sums: Floats
) -> None:
    """The table (R, first, last) of two columns: laws of the pairs on the way, over those of columns between."""
    n_first, n_last = plan.sizes[columns[0]], plan.sizes[columns[-1]]
    for role in range(plan.n_roles):
        for k in range(n):
            joint = np.eye(n_first)
            for state in range(n_first):
                joint[state, state] = law[plan.node_at[columns[0]] + role * n_first + state, k]
            for step in range(len(columns) - 1):
                here, there = columns[step], columns[step + 1]
                n_here, n_there = plan.sizes[here], plan.sizes[there]
                onward, goes_down = np.zeros((n_first, n_there)), plan.parents[there] == here
                child = there if goes_down else here
                size, n_above = plan.sizes[child], plan.sizes[plan.parents[child]]
                for state in range(n_here):
                    known = law[plan.node_at[here] + role * n_here + state, k]
                    if known <= 0:
                        continue
                    for other in range(n_there):
                        above, below = (state, other) if goes_down else (other, state)
                        start = role * n_above + above
                        share = message[plan.message_at[child] + start, k] / known
                        share *= factors[plan.pair_at[child] + start * size + below]
                        share *= node[plan.node_at[child] + role * size + below, k]
                        for first in range(n_first):
                            onward[first, other] += joint[first, state] * share
                joint = onward
            for first in range(n_first):
                for last in range(n_last):
                    sums[(role * n_first + first) * n_last + last] += joint[first, last]
