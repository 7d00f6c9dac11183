"""Where the tables of a field lie: its own columns in a forest, the evidence that hangs on them, one vector of cells.

A field is a law of a row's *own* columns given its *evidence*. It has a table for each own column, for each pair of
the forest and for each link, which is a column of the evidence with an own column. With a *role*, an own column that
says what a row is, every table has its states too: R copies of the same forest, and a law over the copies.

Tables have two forms. Outside, axes are named by a clique: (role?, evidence?, own...), and (evidence, role) for the
role alone. Inside, the cells that one row needs lie side by side:

    own column      (R, states), or (R,) for the role
    pair            (R, states of the parent, states of the child), along the forest rooted at its first columns
    link            (evidence, R, states), or (evidence, R) to the role
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

from spinney.errors import ParameterError

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Pair = tuple[int, int]
Number = TypeVar("Number", bound=np.generic)
Home = tuple[str, int, int]  # "own", -1, column; "pair", parent, child; "link", evidence, column

# The names of axes inside, besides own columns: of the role's states and of the evidence.
_ROLE, _EVIDENCE = -1, -2


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
        return tuple(self._length(axis, clique.evidence) for axis in self._axes_outside(clique))

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
        inner, outer = self._axes_inside(self.home(clique)), self._axes_outside(clique)
        turned = np.transpose(table, [outer.index(axis) for axis in inner if axis in outer])
        here = tuple(slice(None) if axis in outer else None for axis in inner)
        return np.broadcast_to(turned[here], self.shape_inside(self.home(clique)))

    def outside(self, clique: FieldClique, cells: Floats) -> Floats:
        """A clique's table out of its home's: summed over the role where the clique is without."""
        inner, outer = self._axes_inside(self.home(clique)), self._axes_outside(clique)
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
        own = [_ROLE] if column == self.role else [_ROLE, column]
        if kind == "own":
            return own
        return [_EVIDENCE, *own] if kind == "link" else [_ROLE, first, column]

    def _axes_outside(self, clique: FieldClique) -> list[int]:
        others = list(self.others(clique))
        role = [_ROLE] if len(others) < len(clique.own) else []
        evidence = [_EVIDENCE] if clique.evidence else []
        return [*role, *evidence, *others] if others else [*evidence, *role]

    def _length(self, axis: int, evidence: tuple[int, ...]) -> int:
        if axis == _ROLE:
            return self.n_roles
        return self.evidence_sizes[evidence[0]] if axis == _EVIDENCE else self.sizes[axis]


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
