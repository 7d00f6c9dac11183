"""Exact inference in a conditional random field: compiled loops over blocks of rows. PUBLIC.

The field (`crf`) is a forest of own columns with evidence hanging on them. One sweep from the leaves to the
roots gives log Z of every row, and one sweep back gives the expected tables. The innermost index of all loops
is the row.

    field layout     where the tables of a field lie: cliques, roles, one vector of cells
    field passing    upward: messages, weights of columns and log Z
    field tables     downward: expected tables of own columns, of pairs and of columns further apart
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled_loosely
from spinney.errors import ParameterError

# --------------------------------------------------------------------------------------------------------- field layout
# Where the tables of a field lie: its own columns in a forest, the evidence that hangs on them, one vector of cells.
#
# A field is a law of a row's *own* columns given its *evidence*. It has a table for each own column, for each pair of
# the forest and for each link, which is a column of the evidence with an own column. With a *role*, an own column
# that says what a row is, every table has its states too: R copies of the same forest, and a law over the copies.
#
# Tables have two forms. Outside, axes are named by a clique: (role?, evidence?, own...), and (evidence, role) for the
# role alone. Inside, the cells that one row needs lie side by side:
#
#     own column      (R, states), or (R,) for the role
#     pair            (R, states of the parent, states of the child), along the forest rooted at its first columns
#     link            (evidence, R, states), or (evidence, R) to the role


Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Pair = tuple[int, int]
Number = TypeVar("Number", bound=np.generic)
Home = tuple[str, int, int]  # "own", -1, column; "pair", parent, child; "link", evidence, column

# The names of axes inside, besides own columns: of the role's states and of the evidence.
ROLE, EVIDENCE = -1, -2


@dataclass(frozen=True, slots=True, order=True)
class FieldClique:
    """Columns that share a table: at most one of the evidence, and one or two own ones.

    Where the field has a role, it may come first among the own columns, before one or two others; without it a table
    is summed over the role. Two own columns besides the role are ascending and have no evidence.
    """

    evidence: tuple[int, ...]
    own: tuple[int, ...]


class Plan(NamedTuple):
    """A layout as compiled loops take it. Arrays by column are (n_own,), those by link (n_links,)."""

    n_roles: int
    role: int  # -1 without
    order: Indices  # own columns besides the role, parents first
    parents: Indices  # -1 for roots
    sizes: Indices
    widths: Indices  # cells of a row: n_roles * size, or n_roles for the role
    node_at: Indices  # where those cells lie among all of a row
    message_at: Indices  # where messages to the parent lie
    own_at: Indices  # tables in the vector
    pair_at: Indices  # of the child's pair with its parent
    link_evidence: Indices
    link_own: Indices
    link_at: Indices
    line_at: Indices  # of each link among all states of all links' evidence
    n_nodes: int  # cells of a row
    n_messages: int  # cells of a row's messages
    largest: int  # of all sizes
    floor: float  # log-factors are cut this far below the largest, so that no product of them vanishes


@dataclass(frozen=True, slots=True)
class FieldLayout:
    """Sizes, role, pairs and links of a field, and where in one vector each table lies."""

    sizes: tuple[int, ...]
    evidence_sizes: tuple[int, ...]
    role: int | None
    pairs: tuple[Pair, ...]  # ascending, of columns other than the role
    links: tuple[Pair, ...]  # (evidence, own), ascending
    parents: tuple[int, ...] = field(init=False, compare=False, repr=False)
    order: tuple[int, ...] = field(init=False, compare=False, repr=False)
    trees: tuple[int, ...] = field(init=False, compare=False, repr=False)  # the root above each own column
    starts: dict[Home, int] = field(init=False, compare=False, repr=False)
    n_cells: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not self.sizes or any(size < 1 for size in (*self.sizes, *self.evidence_sizes)):
            raise ParameterError("sizes must be of at least one own column, and every size at least 1")
        if self.role is not None and not 0 <= self.role < len(self.sizes):
            raise ParameterError(f"role={self.role} must be an own column, one of 0..{len(self.sizes) - 1}")
        for evidence, own in self.links:
            self.check(FieldClique((evidence,), (own,)))
        for pair in self.pairs:
            self.check(FieldClique((), pair))
        if len(set(self.pairs)) < len(self.pairs) or len(set(self.links)) < len(self.links):
            raise ParameterError("pairs and links must be different ones")
        parents, order, trees = _rooted(len(self.sizes), self.pairs, self.role)
        homes: list[Home] = [("own", -1, column) for column in range(len(self.sizes))]
        homes += [("pair", parents[column], column) for column in order if parents[column] >= 0]
        homes += [("link", evidence, own) for evidence, own in sorted(self.links)]
        set_ = object.__setattr__
        set_(self, "parents", parents)
        set_(self, "order", order)
        set_(self, "trees", trees)
        ends = [0, *accumulate(math.prod(self.shape_inside(home)) for home in homes)]
        set_(self, "starts", dict(zip(homes, ends[:-1], strict=True)))
        set_(self, "n_cells", ends[-1])

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        evidence_sizes: Sequence[int],
        cliques: Iterable[FieldClique],
        *,
        role: int | None = None,
    ) -> FieldLayout:
        """The layout that has a table for each clique; raises where own pairs form a circle."""
        bare = cls(tuple(map(int, sizes)), tuple(map(int, evidence_sizes)), role, (), ())
        pairs, links = set(), set()
        for clique in cliques:
            bare.check(clique)
            others = bare.others(clique)
            if clique.evidence:
                links.add((clique.evidence[0], others[0] if others else clique.own[0]))
            elif len(others) == 2:
                pairs.add((others[0], others[1]))
        return cls(bare.sizes, bare.evidence_sizes, role, tuple(sorted(pairs)), tuple(sorted(links)))

    @property
    def n_roles(self) -> int:
        return 1 if self.role is None else self.sizes[self.role]

    def cliques(self) -> list[FieldClique]:
        """Own columns, pairs and links, each with the role where there is one: a clique for each table."""
        role = () if self.role is None else (self.role,)
        before = {own: () if own == self.role else role for own in range(len(self.sizes))}
        found = [FieldClique((), (*front, own)) for own, front in before.items()]
        found += [FieldClique((), (*role, *pair)) for pair in self.pairs]
        return found + [FieldClique((evidence,), (*before[own], own)) for evidence, own in self.links]

    def keeps_forest(self, pair: Sequence[int]) -> bool:
        """Whether a pair of own columns may join the field's: it closes no circle, and neither is the role."""
        first, second = pair
        return first != second and self.role not in pair and self.trees[first] != self.trees[second]

    def others(self, clique: FieldClique) -> tuple[int, ...]:
        """Own columns of a clique besides the role."""
        return tuple(column for column in clique.own if column != self.role)

    def check(self, clique: FieldClique) -> None:
        """Raise where a clique is not one that a field can have a table of."""
        others = self.others(clique)
        is_known = all(0 <= c < len(self.sizes) for c in clique.own)
        is_known &= all(0 <= e < len(self.evidence_sizes) for e in clique.evidence)
        if not is_known:
            raise ParameterError(
                f"{clique} must be of evidence in 0..{len(self.evidence_sizes) - 1} and own columns in "
                f"0..{len(self.sizes) - 1}"
            )
        is_fine = len(clique.own) > 0 and len(others) + len(clique.evidence) <= 2 and len(clique.evidence) <= 1
        is_fine &= list(others) == sorted(set(others)) and len(clique.own) - len(others) <= 1
        if not is_fine or (len(others) < len(clique.own) and clique.own[0] != self.role):
            raise ParameterError(
                f"{clique} must have one own column with at most one of the evidence, or two ascending own columns "
                "without; the role, where it is in, comes first"
            )

    def shape(self, clique: FieldClique) -> tuple[int, ...]:
        """Shape of the clique's table outside: (role?, evidence?, own...), or (evidence, role) for the role alone."""
        return tuple(self._length(axis, clique.evidence) for axis in self.axes(clique))

    def home(self, clique: FieldClique) -> Home:
        """The table inside that a clique's cells belong to, whether the layout has it or not."""
        others = self.others(clique)
        if len(others) == 2:
            first, second = others
            return ("pair", first, second) if self.parents[second] == first else ("pair", second, first)
        column = others[0] if others else clique.own[0]
        return ("link", clique.evidence[0], column) if clique.evidence else ("own", -1, column)

    def shape_inside(self, home: Home) -> tuple[int, ...]:
        evidence = (home[1],) if home[0] == "link" else ()
        return tuple(self._length(axis, evidence) for axis in self._axes_inside(home))

    def inside(self, clique: FieldClique, table: NDArray[Number]) -> NDArray[Number]:
        """A clique's table with the axes of its home: the same for every role where the clique is without."""
        inner, outer = self._axes_inside(self.home(clique)), self.axes(clique)
        turned = np.transpose(table, [outer.index(axis) for axis in inner if axis in outer])
        here = tuple(slice(None) if axis in outer else None for axis in inner)
        return np.broadcast_to(turned[here], self.shape_inside(self.home(clique)))

    def outside(self, clique: FieldClique, cells: Floats) -> Floats:
        """A clique's table out of its home's: summed over the role where the clique is without."""
        inner, outer = self._axes_inside(self.home(clique)), self.axes(clique)
        table = cells.reshape(self.shape_inside(self.home(clique)))
        table = table.sum(axis=tuple(place for place, axis in enumerate(inner) if axis not in outer))
        kept = [axis for axis in inner if axis in outer]
        return np.ascontiguousarray(np.transpose(table, [kept.index(axis) for axis in outer]))

    def plan(self) -> Plan:
        """All of it as compiled loops take it."""
        n_own = len(self.sizes)
        sizes = np.array(self.sizes, dtype=np.int64)
        widths = np.array([math.prod(self.shape_inside(("own", -1, c))) for c in range(n_own)], dtype=np.int64)
        to_parent = [self.n_roles * self.sizes[parent] if parent >= 0 else 0 for parent in self.parents]
        pairs = [self.starts.get(("pair", parent, c), -1) for c, parent in enumerate(self.parents)]
        links = sorted(self.links)
        # Every factor of a column's weight may be as small as the floor, and doubles go down to exp(-708).
        factors = Counter([parent for parent in self.parents if parent >= 0] + [own for _, own in links])
        n_factors = 1 + max(factors.values(), default=0)
        return Plan(
            n_roles=self.n_roles,
            role=-1 if self.role is None else self.role,
            order=np.array(self.order, dtype=np.int64),
            parents=np.array(self.parents, dtype=np.int64),
            sizes=sizes,
            widths=widths,
            node_at=np.cumsum([0, *widths[:-1]], dtype=np.int64),
            message_at=np.cumsum([0, *to_parent[:-1]], dtype=np.int64),
            own_at=np.array([self.starts["own", -1, c] for c in range(n_own)], dtype=np.int64),
            pair_at=np.array(pairs, dtype=np.int64),
            link_evidence=np.array([evidence for evidence, _ in links], dtype=np.int64),
            link_own=np.array([own for _, own in links], dtype=np.int64),
            link_at=np.array([self.starts[("link", *link)] for link in links], dtype=np.int64),
            line_at=np.cumsum([0, *(self.evidence_sizes[evidence] for evidence, _ in links)], dtype=np.int64),
            n_nodes=int(widths.sum()),
            n_messages=sum(to_parent),
            largest=max(self.sizes),
            floor=-min(100.0, 600.0 / n_factors),
        )

    def _axes_inside(self, home: Home) -> list[int]:
        kind, first, column = home
        own = [ROLE] if column == self.role else [ROLE, column]
        if kind == "own":
            return own
        return [EVIDENCE, *own] if kind == "link" else [ROLE, first, column]

    def axes(self, clique: FieldClique) -> list[int]:
        """The axes of a clique's table outside: own columns, `ROLE` and `EVIDENCE`."""
        others = list(self.others(clique))
        role = [ROLE] if len(others) < len(clique.own) else []
        evidence = [EVIDENCE] if clique.evidence else []
        return [*role, *evidence, *others] if others else [*evidence, *role]

    def _length(self, axis: int, evidence: tuple[int, ...]) -> int:
        if axis == ROLE:
            return self.n_roles
        return self.evidence_sizes[evidence[0]] if axis == EVIDENCE else self.sizes[axis]


def _rooted(
    n_own: int, pairs: Sequence[Pair], role: int | None
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Parent of each column (-1 for roots), columns besides the role with parents first, and the root above each."""
    neighbours: list[list[int]] = [[] for _ in range(n_own)]
    for first, second in pairs:
        neighbours[first].append(second)
        neighbours[second].append(first)
    parents, roots, order = [-1] * n_own, [-1] * n_own, []
    for root in range(n_own):
        if roots[root] >= 0:
            continue
        roots[root], waiting = root, [root]
        for column in waiting:
            if column != role:
                order.append(column)
            for other in neighbours[column]:
                if other == parents[column]:
                    continue
                if roots[other] >= 0:
                    raise ParameterError(
                        f"own pairs {sorted(pairs)} close a circle at columns {column} and {other}; the pairs of a "
                        "field must form a forest (ask `keeps_forest` before a pair is added)"
                    )
                roots[other], parents[other] = root, column
                waiting.append(other)
    return tuple(parents), tuple(order), tuple(roots)


# -------------------------------------------------------------------------------------------------------- field passing
# Exact inference in a field, upward: compiled loops over blocks of rows, whose innermost index is the row.
#
# From the leaves of the forest to its roots, each column's weights are multiplied by its children's messages and
# divided by their sum; the sums multiply to Z. A message is the pair's factors times the child's weights.
#
# Everything is in products, not logarithms. Log-factors are cut `floor` below the largest of their line, so that no
# product vanishes; cells that far down have no rows. What masks exclude is exactly zero.


States = NDArray[np.int32]

# Rows of a block: enough for full vectors, few enough for a block's weights to stay in the cache.
BLOCK = 64


class Masks(NamedTuple):
    """Tables of (evidence, own) with 0 where a state cannot be and 1 elsewhere, one after the other."""

    evidence: Indices
    own: Indices
    at: Indices
    is_possible: Floats


class Rows(NamedTuple):
    """Rows of a field: its plan, masks and factors, the rows' evidence, and what they are clamped to."""

    plan: Plan
    masks: Masks
    clamps: States  # (n_own, n_rows), -1 where free, or (0, 0)
    factors: Floats
    evidence: States  # (n_evidence, n_rows)


class Sweep(NamedTuple):
    """What one block of rows is worked out in."""

    node: Floats  # (cells of a row, BLOCK): weights of each column given all below it, that add up to 1
    message: Floats  # (cells of messages, BLOCK)
    role_law: Floats  # (n_roles, BLOCK): the law of the role
    log_z: Floats  # (BLOCK,): log Z without what was taken out of factors
    spare: Floats  # (largest size, BLOCK)


@compiled_loosely
def sweep_of(plan: Plan) -> Sweep:
    """Space for the blocks of a field, one after the other."""
    node, message = np.empty((plan.n_nodes, BLOCK)), np.empty((plan.n_messages, BLOCK))
    return Sweep(node, message, np.empty((plan.n_roles, BLOCK)), np.empty(BLOCK), np.empty((plan.largest, BLOCK)))


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
def upward(rows: Rows, low: int, n: int, sweep: Sweep) -> None:
    """Weights of all columns of `n` rows from `low` on, from the leaves up, written."""
    plan, _, _, factors, evidence = rows
    node, message, role_law, log_z, spare = sweep
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
        if _possible(rows, column, low, n, spare):
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
def _possible(rows: Rows, column: int, low: int, n: int, spare: Floats) -> bool:
    """Write which states of a column are possible (size, BLOCK); False where all are, and nothing is written.

    A clamp beats masks; where these leave a row nothing, they are dropped.
    """
    plan, masks, clamps, _, evidence = rows
    size, has_clamps = plan.sizes[column], len(clamps) > 0
    is_limited = has_clamps
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
        if has_clamps and clamps[column, low + k] >= 0:
            for state in range(size):
                spare[state, k] = 0.0
            spare[clamps[column, low + k], k] = 1.0
            continue
        n_left = 0.0
        for state in range(size):
            n_left += spare[state, k]
        if n_left == 0:
            for state in range(size):
                spare[state, k] = 1.0
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


# --------------------------------------------------------------------------------------------------------- field tables
# Expected tables of rows under a field: from the roots downward, over the blocks of the upward sweep.
#
# The parent's distribution over a message, called its ratio, times the pair's factors and the child's weights
# is the distribution of the pair. Factors are the same for all rows, so tables of pairs need only the sum over
# rows of ratio times weights.
#
# Two own columns in different trees are independent given evidence and role. Distributions of two columns with
# others between them are products of the distributions of the pairs on the way, over those of the columns
# between.


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
def add_up(rows: Rows, weights: Floats, low: int, high: int, counted: Counted, sums: Floats) -> float:
    """Add expected tables of some rows to sums; returns the sum of weights times log Z, less what factors lack."""
    plan, _, _, factors, evidence = rows
    sweep, law, value = sweep_of(plan), np.empty((plan.n_nodes, BLOCK)), 0.0
    node, message, role_law, log_z, _ = sweep
    for start in range(low, high, BLOCK):
        n = min(BLOCK, high - start)
        upward(rows, start, n, sweep)
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
