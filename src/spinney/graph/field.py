"""A conditional random field: the law of a row's own columns given its evidence.

    P(own | evidence) = exp(sum of potentials of own columns, pairs and links) / Z(evidence)

Own pairs form a forest, and any number of columns of the evidence hang on each own column. Given evidence, inference
in a forest is exact and is one pass of messages, for every row by itself. So rows are drawn with nothing thrown away,
also where some of their columns are clamped or held to a few states.

With a role, an own column that says what a row is, all other potentials depend on it too (see `field_layout`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.errors import ParameterError
from spinney.graph.field_draw import draw_rows, limits_of
from spinney.graph.field_layout import FieldClique, FieldLayout, Floats, Pair, Plan
from spinney.graph.field_passing import Masks, States, factors_of
from spinney.graph.field_tables import Counted, add_up
from spinney.parallel import each

__all__ = ["Field", "FieldClique", "Mask"]

Mask = tuple[int, int, NDArray[np.bool_]]  # evidence, own, and a table of both that is False where no row can be

# Rows that are added up in one go. Sums go by such parts, so that no result depends on the number of threads.
_PART = 1 << 12
_MOST_PARTS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Potentials of a field in one vector, and masks.

    A mask says which states of an own column cannot be, for every state of a column of the evidence. Where all masks
    of a column together leave a row no state, they are dropped for this column of this row.
    """

    layout: FieldLayout
    potentials: Floats  # (n_cells,)
    masks: tuple[Mask, ...] = ()
    plan: Plan = field(init=False, repr=False)
    packed: Masks = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if np.shape(self.potentials) != (self.layout.n_cells,) or not np.isfinite(self.potentials).all():
            raise ParameterError(f"potentials must be {self.layout.n_cells} finite numbers, one for each cell")
        object.__setattr__(self, "plan", self.layout.plan())
        object.__setattr__(self, "packed", _packed(self.layout, self.masks))

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        evidence_sizes: Sequence[int],
        tables: Mapping[FieldClique, ArrayLike],
        *,
        role: int | None = None,
        masks: Sequence[Mask] = (),
    ) -> Field:
        """The field with these tables of potentials, each of the shape that its clique has; all others are 0."""
        layout = FieldLayout.of(sizes, evidence_sizes, tables, role=role)
        potentials = np.zeros(layout.n_cells)
        for clique, values in tables.items():
            table = np.asarray(values, dtype=np.float64)
            if table.shape != layout.shape(clique):
                raise ParameterError(f"the table of {clique} must be of shape {layout.shape(clique)}")
            start = layout.starts[layout.home(clique)]
            cells = layout.inside(clique, table).ravel()
            potentials[start : start + len(cells)] += cells
        return cls(layout, potentials, tuple(masks))

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.layout.sizes

    @property
    def evidence_sizes(self) -> tuple[int, ...]:
        return self.layout.evidence_sizes

    @property
    def role(self) -> int | None:
        return self.layout.role

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Own pairs of the forest, ascending."""
        return self.layout.pairs

    @property
    def links(self) -> tuple[Pair, ...]:
        """Links (evidence, own), ascending."""
        return self.layout.links

    def keeps_forest(self, pair: Sequence[int]) -> bool:
        """Whether a pair of own columns may join the field's: it closes no circle, and neither is the role."""
        return self.layout.keeps_forest(pair)

    def shape(self, clique: FieldClique) -> tuple[int, ...]:
        """Shape of a clique's table: (role?, evidence?, own...), or (evidence, role) for the role alone."""
        self.layout.check(clique)
        return self.layout.shape(clique)

    def tables(self) -> dict[FieldClique, Floats]:
        """Potentials of all own columns, pairs and links: those of the layout's cliques."""
        found = {}
        for clique in self.layout.cliques():
            home = self.layout.home(clique)
            start, n_cells = self.layout.starts[home], math.prod(self.layout.shape_inside(home))
            found[clique] = self.layout.outside(clique, self.potentials[start : start + n_cells])
        return found

    def expected(self, clique: FieldClique, evidence: ArrayLike, weights: ArrayLike) -> Floats:
        """The table of a clique that these rows are expected to have; it adds up to the sum of the weights."""
        return self.expected_tables([clique], evidence, weights)[0]

    def expected_tables(self, cliques: Iterable[FieldClique], evidence: ArrayLike, weights: ArrayLike) -> list[Floats]:
        """Tables of many cliques in one pass, all exact.

        Two own columns without a way between them in the forest are independent given evidence and role, and cost as
        much as a pair of the forest. Those with other columns between them take states^3 steps a row and column.

        Args:
            cliques: any that the field could have a table of, whether it has or not.
            evidence: states of each row (n_evidence, n_rows).
            weights: of the rows (n_rows,), none negative.
        """
        layout, wanted = self.layout, list(cliques)
        for clique in wanted:
            layout.check(clique)
        extra = [c for c in dict.fromkeys(layout.home(clique) for clique in wanted) if c[0] != "own"]
        links = [home for home in extra if home[0] == "link"]
        others = [home for home in extra if home[0] == "pair" and home not in layout.starts]
        ends = np.cumsum([layout.n_cells, *(math.prod(layout.shape_inside(home)) for home in [*links, *others])])
        starts = layout.starts | dict(zip([*links, *others], ends[:-1].tolist(), strict=True))
        paths = [_path(layout, first, second) for _, first, second in others]
        counted = Counted(
            evidence=np.array([home[1] for home in links], dtype=np.int64),
            own=np.array([home[2] for home in links], dtype=np.int64),
            at=np.array([starts[home] for home in links], dtype=np.int64),
            paths=np.array([column for path in paths for column in path], dtype=np.int64),
            path_starts=np.cumsum([0, *map(len, paths)], dtype=np.int64),
            path_at=np.array([starts[home] for home in others], dtype=np.int64),
            is_apart=np.array([layout.trees[first] != layout.trees[second] for _, first, second in others], dtype=bool),
        )
        used = {home[1] for home in links}
        states = self.checked_evidence(evidence, used)
        sums, _ = self.add_up(
            self.potentials, states, checked_weights(weights, states.shape[1]), counted, int(ends[-1])
        )
        return [
            layout.outside(clique, sums[starts[home] : starts[home] + math.prod(layout.shape_inside(home))])
            for clique, home in ((clique, layout.home(clique)) for clique in wanted)
        ]

    def draw(
        self,
        evidence: ArrayLike,
        rng: np.random.Generator,
        *,
        clamp: Mapping[int, ArrayLike] | None = None,
        allowed: Mapping[int, ArrayLike] | None = None,
    ) -> States:
        """States of own columns for each row, given its evidence (n_own, n_rows).

        A clamp beats what is allowed, and both beat masks, which are dropped where they leave a row nothing.

        Args:
            evidence: states of each row (n_evidence, n_rows).
            rng: draws the rows.
            clamp: own columns with states that are given (n_rows,), -1 where free; the others are drawn given them.
            allowed: own columns with the states that each row may have, as a table of booleans (n_rows, states), or
                (states,) for all rows alike.
        """
        states = self.checked_evidence(evidence)
        limits = limits_of(self.sizes, states.shape[1], clamp or {}, allowed or {})
        factors, _, _ = factors_of(self.plan, self.potentials, np.array(self.evidence_sizes, dtype=np.int64))
        return draw_rows(self.plan, self.packed, limits, factors, states, rng)

    def add_up(
        self, potentials: Floats, evidence: States, weights: Floats, counted: Counted | None = None, n_cells: int = 0
    ) -> tuple[Floats, float]:
        """Expected tables under other potentials of this layout, and the sum of weights times log Z.

        Tables lie in one vector as potentials do, links only where they are counted: without `counted` those of the
        layout, and then log Z is whole.
        """
        plan, is_whole = self.plan, counted is None
        if counted is None:
            none = np.empty(0, dtype=np.int64)
            counted = Counted(
                plan.link_evidence, plan.link_own, plan.link_at, none, np.zeros(1, dtype=np.int64), none, none == 0
            )
            n_cells = self.layout.n_cells
        factors, lines, constant = factors_of(plan, potentials, np.array(self.evidence_sizes, dtype=np.int64))
        n_rows = evidence.shape[1]
        n_parts = max(1, min(_MOST_PARTS, n_rows // _PART))
        cuts = [n_rows * part // n_parts for part in range(n_parts + 1)]
        no_limits = limits_of(self.sizes, n_rows, {}, {})

        def part(low: int, high: int) -> tuple[Floats, float]:
            sums = np.zeros(n_cells)
            value = add_up(plan, self.packed, no_limits, factors, evidence, weights, low, high, counted, sums)
            return sums, value

        found = each(part, *zip(*pairwise(cuts), strict=True))
        sums, value = found[0]
        for more, other in found[1:]:
            sums += more
            value += other
        if is_whole:
            value += constant * float(weights.sum())
            for link, (e, own) in enumerate(zip(plan.link_evidence, plan.link_own, strict=True)):
                n_lines, at = self.evidence_sizes[e], plan.link_at[link]
                shares = sums[at : at + n_lines * plan.widths[own]].reshape(n_lines, -1).sum(axis=1)
                value += float((shares * lines[plan.line_at[link] : plan.line_at[link + 1]]).sum())
        return sums, value

    def checked_evidence(self, evidence: ArrayLike, used: Iterable[int] = ()) -> States:
        """The evidence as loops take it; raises where a state that links, masks or `used` columns need is none."""
        states = np.asarray(evidence)
        if states.ndim != 2 or len(states) != len(self.evidence_sizes) or states.dtype.kind not in "iu":
            raise ParameterError(f"evidence must be whole numbers of shape ({len(self.evidence_sizes)}, n_rows)")
        for place in {*used, *(e for e, _ in self.links), *(e for e, _, _ in self.masks)}:
            size = self.evidence_sizes[place]
            if states.shape[1] and not 0 <= states[place].min() <= states[place].max() < size:
                raise ParameterError(f"states of evidence {place} must be in 0..{size - 1}")
        return np.ascontiguousarray(states, dtype=np.int32)


def checked_weights(weights: ArrayLike, n_rows: int) -> Floats:
    """Weights of rows as loops take them; raises where they are none."""
    found = np.ascontiguousarray(weights, dtype=np.float64)
    if found.shape != (n_rows,) or not (np.isfinite(found).all() and (found >= 0).all()):
        raise ParameterError(f"weights must be {n_rows} numbers, one for each row of the evidence, none negative")
    return found


def _path(layout: FieldLayout, first: int, second: int) -> list[int]:
    """Columns on the way from one to the other in the forest, or only the two where there is none."""
    if layout.trees[first] != layout.trees[second]:
        return [first, second]
    above = [[first], [second]]
    for way in above:
        while layout.parents[way[-1]] >= 0:
            way.append(layout.parents[way[-1]])
    meeting = next(column for column in above[0] if column in above[1])
    up, down = (way[: way.index(meeting)] for way in above)
    return [*up, meeting, *reversed(down)]


def _packed(layout: FieldLayout, masks: Sequence[Mask]) -> Masks:
    """Masks as loops take them; raises where one is not a table of its columns."""
    tables = []
    for evidence, own, table in masks:
        layout.check(FieldClique((evidence,), (own,)))
        shape = (layout.evidence_sizes[evidence], layout.sizes[own])
        if np.shape(table) != shape or np.asarray(table).dtype != np.bool_:
            raise ParameterError(f"the mask of evidence {evidence} and own column {own} must be booleans of {shape}")
        tables.append(np.asarray(table, dtype=np.float64).ravel())
    return Masks(
        evidence=np.array([evidence for evidence, _, _ in masks], dtype=np.int64),
        own=np.array([own for _, own, _ in masks], dtype=np.int64),
        at=np.cumsum([0, *map(len, tables)], dtype=np.int64),
        is_possible=np.concatenate([np.empty(0), *tables]),
    )
