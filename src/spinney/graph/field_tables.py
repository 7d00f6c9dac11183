"""Expected tables of rows under a field: compiled loops downward from the roots, over the blocks of `field_passing`.

The parent's law over a message, called its ratio, times the pair's factors and the child's weights is the law of the
pair. Factors are the same for all rows, so tables of pairs need only the sum over rows of ratio times weights.

Two own columns in different trees are independent given evidence and role. Laws of two with others between them are
products of laws of the pairs on the way, over those of the columns between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled_loosely
from spinney.graph.field_layout import Floats, Indices, Plan
from spinney.graph.field_passing import BLOCK, Limits, Masks, States, combine, upward


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
    node, law = np.empty((plan.n_nodes, BLOCK)), np.empty((plan.n_nodes, BLOCK))
    message, spare = np.empty((plan.n_messages, BLOCK)), np.empty((plan.largest, BLOCK))
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
                ratios, start = plan.message_at[column] + role * n_above, role * n_above * size + state
                combine(message, ratios, n_above, factors, plan.pair_at[column] + start, size, line, n)
                for k in range(n):
                    line[k] *= weights[k]


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
            _add_products(ratio, node, below, size, n, sums, plan.pair_at[column] + above * size)


@compiled_loosely
def _add_products(one: Floats, lines: Floats, first: int, n_lines: int, n: int, sums: Floats, at: int) -> None:
    """Add the products of one line with some others, four at a time."""
    n_fours = n_lines - n_lines % 4
    for i in range(0, n_fours, 4):
        a, b, c, d = lines[first + i], lines[first + i + 1], lines[first + i + 2], lines[first + i + 3]
        p, q, r, s = 0.0, 0.0, 0.0, 0.0
        for k in range(n):
            p += one[k] * a[k]
            q += one[k] * b[k]
            r += one[k] * c[k]
            s += one[k] * d[k]
        sums[at + i] += p
        sums[at + i + 1] += q
        sums[at + i + 2] += r
        sums[at + i + 3] += s
    for i in range(n_fours, n_lines):
        line, total = lines[first + i], 0.0
        for k in range(n):
            total += one[k] * line[k]
        sums[at + i] += total


@compiled_loosely
def _add_apart(plan: Plan, n: int, first: int, second: int, role_law: Floats, law: Floats, sums: Floats) -> None:
    """The table (R, first, second) of two columns that are independent given evidence and role."""
    n_first, n_second, scaled = plan.sizes[first], plan.sizes[second], np.empty(n)
    for role in range(plan.n_roles):
        for state in range(n_first):
            line, known = law[plan.node_at[first] + role * n_first + state], role_law[role]
            for k in range(n):
                scaled[k] = line[k] / known[k] if known[k] > 0 else 0.0
            below, at = plan.node_at[second] + role * n_second, (role * n_first + state) * n_second
            _add_products(scaled, law, below, n_second, n, sums, at)


@compiled_loosely
def _add_path(
    plan: Plan, factors: Floats, n: int, columns: Indices, node: Floats, message: Floats, law: Floats, sums: Floats
) -> None:
    """The table (R, first, last) of two columns: laws of the pairs on the way, over those of columns between."""
    n_first, n_last = plan.sizes[columns[0]], plan.sizes[columns[-1]]
    for role in range(plan.n_roles):
        for k in range(n):
            joint = np.zeros((n_first, n_first))
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
