"""A conditional random field: the distribution of a row's own columns given its evidence. PUBLIC.

    P(own | evidence) = exp(sum of potentials of own columns, pairs and links) / Z(evidence)

The persons model draws rows from a field, given the person, the place of the row and earlier rows. Inference is
exact and compiled (`crf_inference`), so draws may be clamped without throwing rows away. Sees noisy numbers
only.

    field draw      rows from a field, independent given their evidence
    field           potentials and masks: sizes, expected tables, draws
    field arrays    a field as arrays and plain data for files, and back, all of it checked
    field fit       the field whose expected tables fit noisy tables, by proximal steps
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spinney.compiled import compiled, compiled_loosely
from spinney.errors import ParameterError
from spinney.graph.crf_inference import (
    BLOCK,
    Counted,
    FieldClique,
    FieldLayout,
    Floats,
    Indices,
    Masks,
    Pair,
    Plan,
    Rows,
    States,
    add_up,
    factors_of,
    sweep_of,
    upward,
)
from spinney.graph.estimate import Curvature, Point, checked_labels, descend, dot
from spinney.machine import by_slices, each

# ----------------------------------------------------------------------------------------------------------- field draw
# Rows drawn from a field: the role first, then roots of the forest, then each column given its parent.
#
# Rows are independent given evidence. Sharing out states evenly among rows of like evidence, as `draw` does for
# tables, would bring counts a little nearer to their expectation, but rows of one person would then avoid each
# other's states.


# Rows whose random numbers are held at once.
_AT_ONCE = 1 << 18


def clamps_of(sizes: Sequence[int], n_rows: int, clamp: Mapping[int, ArrayLike]) -> States:
    """Clamps as loops take them, -1 where free; raises where they fit neither columns nor rows."""
    clamps = np.full((len(sizes) if clamp else 0, n_rows if clamp else 0), -1, dtype=np.int32)
    for column, values in clamp.items():
        if not 0 <= column < len(sizes):
            raise ParameterError(f"clamp must name own columns, of 0..{len(sizes) - 1}, not {column}")
        states = np.asarray(values)
        is_fine = states.shape == (n_rows,) and states.dtype.kind in "iu"
        if not is_fine or (n_rows and not -1 <= states.min() <= states.max() < sizes[column]):
            raise ParameterError(
                f"clamp of own column {column} must be {n_rows} states, in 0..{sizes[column] - 1} or -1 where free"
            )
        clamps[column] = states
    return clamps


@compiled_loosely
def _draw(rows: Rows, uniform: Floats, first: int, low: int, high: int, states: States) -> None:
    """Write states of rows (n_own, n_rows) by uniform numbers (n_own, n_rows from `first` on)."""
    plan, factors, sweep = rows.plan, rows.factors, sweep_of(rows.plan)
    node, _, role_law, _, _ = sweep
    weights = np.empty(plan.largest)
    for start in range(low, high, BLOCK):
        n = min(BLOCK, high - start)
        upward(rows, start, n, sweep)
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


# ---------------------------------------------------------------------------------------------------------------- field
# A field: its potentials in one vector, and its masks.
#
# Own pairs form a forest, and any number of columns of the evidence hang on each own column. Given the
# evidence, inference in a forest is exact and takes one pass of messages for every row by itself. So rows are
# drawn without throwing any away, also where some of their columns are clamped.
#
# With a role, an own column that says what a row is, all other potentials depend on it too (`FieldLayout`).


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
    ) -> States:
        """States of own columns for each row, given its evidence (n_own, n_rows).

        A clamp beats masks, which are dropped where they leave a row nothing.

        Args:
            evidence: states of each row (n_evidence, n_rows).
            rng: draws the rows.
            clamp: own columns with states that are given (n_rows,), -1 where free; the others are drawn given them.
        """
        given = self.checked_evidence(evidence)
        n_own, n_rows = len(self.sizes), given.shape[1]
        clamps = clamps_of(self.sizes, n_rows, clamp or {})
        factors, _, _ = factors_of(self.plan, self.potentials, np.array(self.evidence_sizes, dtype=np.int64))
        rows = Rows(self.plan, self.packed, clamps, factors, given)
        states = np.empty((n_own, n_rows), dtype=np.int32)
        for first in range(0, n_rows, _AT_ONCE):
            last = min(first + _AT_ONCE, n_rows)
            uniform = rng.random((n_own, last - first))

            def draw(part: slice, first: int = first, uniform: Floats = uniform) -> None:
                low, high = first + part.start, first + part.stop
                _draw(rows, uniform, first, low, high, states)

            by_slices(draw, last - first)
        return states

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
        rows = Rows(plan, self.packed, clamps_of(self.sizes, n_rows, {}), factors, evidence)

        def part(low: int, high: int) -> tuple[Floats, float]:
            sums = np.zeros(n_cells)
            return sums, add_up(rows, weights, low, high, counted, sums)

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


# --------------------------------------------------------------------------------------------------------- field arrays
# A field as arrays and plain data, for files, and back.
#
# Potentials are one line: tables of own columns, of pairs and of links, each ascending and each in the shape that its
# clique has outside. Masks are one line of booleans. What is read may be forged, so everything is checked: lengths
# before anything is made of them, and numbers for being finite and of a size that a fit gives.


_MOST_COLUMNS = 10_000
_MOST_TABLES = 100_000
_LARGEST_SIZE = 1 << 20
_MOST_CELLS = 1 << 27
# No fit comes near: potentials differ by tens.
_LARGEST_POTENTIAL = 1e6


def field_to_arrays(field: Field) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays by name, one line each, and a description for JSON."""
    described = {
        "sizes": list(field.sizes),
        "evidence_sizes": list(field.evidence_sizes),
        "role": field.role,
        "pairs": [list(pair) for pair in field.pairs],
        "links": [list(link) for link in field.links],
        "masks": [[int(evidence), int(own)] for evidence, own, _ in field.masks],
    }
    arrays = {
        "potentials": np.concatenate([table.ravel() for table in field.tables().values()]),
        "possible": np.concatenate([np.empty(0, dtype=np.bool_), *(mask.ravel() for _, _, mask in field.masks)]),
    }
    return arrays, described


def field_from_arrays(arrays: Mapping[str, NDArray[Any]], described: Any) -> Field:
    """The field that was written; ValueError or KeyError where it is none."""
    if not isinstance(described, Mapping):
        raise ValueError("a field that is not described by entries")
    sizes, evidence_sizes = (_sizes(described[name], name) for name in ("sizes", "evidence_sizes"))
    role = described["role"]
    if not sizes or (role is not None and not _is_index(role, len(sizes))):
        raise ValueError("a field without own columns, or with a role that is none of them")
    pairs = _indices(described["pairs"], len(sizes), len(sizes), "pairs")
    links, masked = (_indices(described[name], len(evidence_sizes), len(sizes), name) for name in ("links", "masks"))
    layout = FieldLayout(sizes, evidence_sizes, role, pairs, links)  # refuses circles and what is there twice
    if list(pairs) != sorted(pairs) or list(links) != sorted(links):
        raise ValueError("pairs or links of a field that are not ascending")
    potentials = _line(arrays["potentials"], np.float64, layout.n_cells, "potentials")
    if not (np.abs(potentials) <= _LARGEST_POTENTIAL).all():
        raise ValueError("potentials of a field that are out of range")
    n_flags = sum(evidence_sizes[evidence] * sizes[own] for evidence, own in masked)
    possible = _line(arrays["possible"], np.bool_, n_flags, "masks")
    masks: list[Mask] = []
    at = 0
    for evidence, own in masked:
        shape = (evidence_sizes[evidence], sizes[own])
        masks.append((evidence, own, possible[at : at + math.prod(shape)].reshape(shape)))
        at += math.prod(shape)
    tables = _tables(layout, potentials)
    return Field.of(sizes, evidence_sizes, tables, role=role, masks=masks)


def _tables(layout: FieldLayout, potentials: NDArray[np.float64]) -> dict[FieldClique, NDArray[np.float64]]:
    """The line of potentials cut into tables."""
    tables, at = {}, 0
    for clique in layout.cliques():
        shape = layout.shape(clique)
        tables[clique] = potentials[at : at + math.prod(shape)].reshape(shape)
        at += math.prod(shape)
    return tables


def _sizes(value: Any, name: str) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > _MOST_COLUMNS:
        raise ValueError(f"{name} of a field is not a list of sizes")
    if not all(_is_index(size, _LARGEST_SIZE + 1) and size > 0 for size in value):
        raise ValueError(f"{name} of a field are not numbers of states")
    return tuple(value)


def _indices(value: Any, n_first: int, n_second: int, name: str) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list) or len(value) > _MOST_TABLES:
        raise ValueError(f"{name} of a field are not a list")
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise ValueError(f"{name} of a field are not pairs of columns")
    if not all(_is_index(pair[0], n_first) and _is_index(pair[1], n_second) for pair in value):
        raise ValueError(f"{name} of a field are of columns that it has not")
    return tuple((pair[0], pair[1]) for pair in value)


def _is_index(value: Any, n: int) -> bool:
    return type(value) is int and 0 <= value < n


def _line(values: Any, kind: type, length: int, name: str) -> NDArray[Any]:
    line = np.asarray(values)
    if length > _MOST_CELLS or line.dtype != kind or line.shape != (length,):
        raise ValueError(f"{name} of a field are not {length} numbers of their kind")
    return line


# ------------------------------------------------------------------------------------------------------------ field fit
# The field that fits noisy tables of rows whose evidence is known.
#
# As in `estimate`, a small loss is approached by proximal steps. Each step is the field p with the least
#
#     sum of (answer - noisy)^2 / (2 noise_std^2) + tau total E[KL(p || p0)]
#
# from the p0 of the step before, E being over the rows of the evidence by their weights. With one multiplier m
# for each noisy number, added to the potentials of its cells, the dual of a step is smooth, convex and
# unconstrained:
#
#     value       total E[log Z] - sum of m noisy + 1/2 sum of ridge m^2,    ridge = tau noise_std^2
#     gradient    answers - noisy + ridge m.
#
# Negative noisy numbers are taken as they are. The first p0 has independent columns, each with its one-way
# table. On tables of baseball seasons, lab visits and purchases, with noise of 10 to 150 out of 20,000, five
# such steps came 4 to 20 per cent nearer to the true two-way tables than one step, and than one step from
# potentials of 0.


# Proximal steps, fewer where there are too few steps downhill for each.
_ROUNDS = 5
_FEWEST_STEPS = 3
# The most that a step may move a potential, as in `estimate`.
_FARTHEST = 3.0
# A potential moves by one only for a gap of about so many (median) standard deviations. On real tables 0.25 to 0.5 was
# best in any noise, since many of their cells are empty; on smooth simulated ones 1.5 to 2.5.
_CAUTION = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class FieldMeasurement:
    """Noisy sums over the table of a clique: of every cell, or of cells with the same label."""

    evidence: tuple[int, ...]  # at most one
    own: tuple[int, ...]  # one or two, after the role where it is in
    noisy: Floats  # (n_labels,); without labels one per cell, in C order of the table's shape
    noise_std: float | Floats  # of the noise: one for all, or (n_labels,)
    labels: NDArray[np.int32] | None = None  # of the table's shape: the noisy number each cell adds to

    @property
    def clique(self) -> FieldClique:
        return FieldClique(tuple(self.evidence), tuple(self.own))

    def labels_of_cells(self, layout: FieldLayout) -> NDArray[np.int32]:
        """The label of every cell, of the table's shape; raises where the parts do not fit each other."""
        layout.check(self.clique)
        where = f"of the measurement of {self.clique}"
        return checked_labels(self.noisy, self.noise_std, self.labels, layout.shape(self.clique), where)


def fit_field(
    sizes: Sequence[int],
    evidence_sizes: Sequence[int],
    measurements: Sequence[FieldMeasurement],
    evidence: ArrayLike,
    weights: ArrayLike,
    total: float,
    *,
    role: int | None = None,
    masks: Sequence[Mask] = (),
    start: Field | None = None,
    steps: int = 50,
) -> Field:
    """The field whose expected tables for the rows of the evidence, in all `total`, fit the noisy numbers.

    Args:
        sizes: states of each own column.
        evidence_sizes: states of each column of the evidence.
        measurements: noisy tables. Those of two own columns, the role aside, are the forest's pairs.
        evidence: states of each row (n_evidence, n_rows).
        weights: of the rows (n_rows,), none negative; only their proportions matter.
        total: what every table adds up to.
        role: the own column that all others depend on, if any.
        masks: (evidence, own, table that is False where no row can be).
        start: a field of the same columns that was fitted to some of the same tables. It makes the way shorter by a
            few steps and leaves the goal where it is.
        steps: at most so many downhill; 25 are enough but for the least noise.
    """
    if not (math.isfinite(total) and total > 0):
        raise ParameterError(f"total={total} must be a positive number: what the tables add up to")
    if steps < 0:
        raise ParameterError(f"steps={steps} must not be negative")
    layout = FieldLayout.of(sizes, evidence_sizes, [m.clique for m in measurements], role=role)
    empty = Field(layout, np.zeros(layout.n_cells), tuple(masks))
    states = empty.checked_evidence(evidence)
    shares = checked_weights(weights, states.shape[1])
    if not shares.sum() > 0:
        raise ParameterError("weights must not all be zero, and evidence must have rows")
    states, shares = _distinct(empty, states, shares / shares.sum())
    targets = _Targets.of(layout, measurements, total, states, shares)
    potentials = _centre(layout, measurements)
    if measurements and steps:
        known = None if start is None else _potentials_of(start, layout)
        potentials = _fit(empty, targets, states, shares, potentials, known, steps)
    return Field(layout, potentials, tuple(masks))


def _potentials_of(start: Field, layout: FieldLayout) -> Floats:
    """The start's potentials in another layout; raises where that has other columns or lacks a table."""
    if (start.sizes, start.evidence_sizes, start.role) != (layout.sizes, layout.evidence_sizes, layout.role):
        raise ParameterError("start must be a field of columns with the same sizes and the same role")
    potentials = np.zeros(layout.n_cells)
    for clique, table in start.tables().items():
        home = layout.home(clique)
        if home not in layout.starts:
            raise ParameterError(f"start has a table of {clique}, which is not among the measurements")
        cells = layout.inside(clique, table).ravel()
        potentials[layout.starts[home] : layout.starts[home] + len(cells)] = cells
    return potentials


@dataclass(frozen=True, slots=True, eq=False)
class _Targets:
    """All measurements in one vector each, and which cells of the field add up to which number."""

    total: float
    noisy: Floats  # (n_labels,), moved to what the evidence allows
    noise_std: Floats  # (n_labels,)
    cells: Indices  # cells of the vector of potentials, one measurement after the other
    labels: Indices  # the number that each of these adds to
    n_cells: int

    @classmethod
    def of(
        cls,
        layout: FieldLayout,
        measurements: Sequence[FieldMeasurement],
        total: float,
        evidence: States,
        shares: Floats,
    ) -> _Targets:
        noisy, deviations, cells, labels, n_labels = [np.empty(0)], [np.empty(0)], [], [], 0
        for m in measurements:
            label = m.labels_of_cells(layout)
            inside = layout.inside(m.clique, label).ravel().astype(np.int64)
            deviation = np.broadcast_to(np.asarray(m.noise_std, dtype=np.float64), len(m.noisy))
            noisy.append(_with_margins(layout, m, label, deviation, total, evidence, shares))
            deviations.append(deviation)
            cells.append(layout.starts[layout.home(m.clique)] + np.arange(len(inside)))
            labels.append(inside + n_labels)
            n_labels += len(m.noisy)
        none = np.empty(0, dtype=np.int64)
        return cls(
            total,
            np.concatenate(noisy),
            np.concatenate(deviations),
            np.concatenate([none, *cells]),
            np.concatenate([none, *labels]),
            layout.n_cells,
        )

    def answers(self, sums: Floats) -> Floats:
        """The field's own numbers (n_labels,), from its expected tables."""
        return _gathered(sums, self.cells, self.labels, len(self.noisy)) * self.total

    def spread(self, values: Floats) -> Floats:
        """For every cell the sum of the values of its labels (n_cells,)."""
        return _gathered(values, self.labels, self.cells, self.n_cells)

    def multipliers(self, potentials: Floats, ridge: Floats) -> Floats:
        """Multipliers whose spread is near these potentials; tables measured twice share theirs by precision."""
        precision = self.spread(1 / ridge)
        shares = np.divide(potentials, precision, out=np.zeros_like(potentials), where=precision > 0)
        n_alike = np.bincount(self.labels, minlength=len(self.noisy))
        means: Floats = _gathered(shares, self.cells, self.labels, len(self.noisy)) / np.maximum(n_alike, 1) / ridge
        return means


def _with_margins(
    layout: FieldLayout,
    m: FieldMeasurement,
    label: NDArray[np.int32],
    deviation: Floats,
    total: float,
    evidence: States,
    shares: Floats,
) -> Floats:
    """The noisy numbers, moved by least squares to add up as the evidence does: no field can change that.

    Numbers of states of the evidence that share a label are only known together.
    """
    noisy = np.asarray(m.noisy, dtype=np.float64)
    if not m.evidence:
        known: Floats = np.ones(1)
        group = np.zeros(len(noisy), dtype=np.int64)
    else:
        place = m.evidence[0]
        counts = np.bincount(evidence[place], weights=shares, minlength=layout.evidence_sizes[place])
        others = layout.others(m.clique)
        lines = np.moveaxis(label, 1 if len(others) < len(m.own) and others else 0, 0).reshape(len(counts), -1)
        groups = np.arange(len(counts))
        group = np.zeros(len(noisy), dtype=np.int64)
        while True:  # the least state of the evidence among all that are tied by labels
            group[:] = len(counts)
            np.minimum.at(group, lines, np.broadcast_to(groups[:, None], lines.shape))
            tied = group[lines].min(axis=1)
            if (tied == groups).all():
                break
            groups = tied
        known = np.bincount(groups, weights=counts, minlength=len(counts)).astype(np.float64)
    group = np.minimum(group, len(known) - 1)
    variance = deviation**2
    excess = np.bincount(group, weights=noisy, minlength=len(known)) - total * known
    spread = np.bincount(group, weights=variance, minlength=len(known))
    moved: Floats = noisy - variance * (excess / np.where(spread > 0, spread, 1))[group]
    return moved


def _fit(
    field: Field,
    targets: _Targets,
    evidence: States,
    shares: Floats,
    centre: Floats,
    start: Floats | None,
    steps: int,
) -> Floats:
    """Potentials after some proximal steps from the centre, the first of which may begin on the way to the start."""
    noise_std, noisy, total = targets.noise_std, targets.noisy, targets.total
    rounds = max(1, min(_ROUNDS, steps // _FEWEST_STEPS))
    ridge = _CAUTION * rounds / float(np.median(noise_std)) * noise_std**2
    # What is learnt of the curvature hardly changes from one proximal step to the next.
    curvature = Curvature(1 / (np.maximum(noisy, noise_std) + ridge))

    def dual(multipliers: Floats, potentials: Floats) -> tuple[float, Floats]:
        sums, log_partition = field.add_up(potentials, evidence, shares)
        pull = ridge * multipliers
        value = total * log_partition + dot(multipliers, pull / 2 - noisy)
        return value, targets.answers(sums) - noisy + pull

    def looked_at(multipliers: Floats) -> Point:
        potentials = centre + targets.spread(multipliers)
        return Point(multipliers, *dual(multipliers, potentials), potentials)

    none = np.zeros(len(noisy))
    point = looked_at(none)
    if start is not None:
        way = targets.multipliers(start - centre, ridge)
        point = min(point, *(looked_at(share * way) for share in (0.25, 0.5, 1.0)), key=lambda point: point.value)
    for turn in range(rounds):
        n_steps = steps * (turn + 1) // rounds - steps * turn // rounds
        point = descend(dual, point, curvature, n_steps, image=targets.spread, farthest=_FARTHEST)
        # Where this step ended is where the next one begins: what the field says there is known.
        pull = ridge * point.at
        point = Point(none, point.value - dot(point.at, pull / 2 - noisy), point.gradient - pull, point.image)
    return point.image


def _centre(layout: FieldLayout, measurements: Sequence[FieldMeasurement]) -> Floats:
    """Log-laws of own columns that were measured without evidence, given the role where it was measured too."""
    centre = np.zeros(layout.n_cells)
    alone = [m for m in measurements if not m.evidence and len(layout.others(m.clique)) < 2]
    # Later ones replace earlier ones: the most precise is last, those with the role after those without.
    for m in sorted(alone, key=lambda m: (len(m.own), -float(np.mean(m.noise_std)))):
        labels = m.labels_of_cells(layout)
        weights = np.maximum(m.noisy, np.asarray(m.noise_std) / 3)  # all possible, none negative
        n_alike = np.bincount(labels.ravel(), minlength=len(weights))
        table = layout.inside(m.clique, (weights / np.maximum(n_alike, 1))[labels])
        start = layout.starts[layout.home(m.clique)]
        cells = np.log(table / table.sum(axis=-1, keepdims=True)).ravel()
        centre[start : start + len(cells)] = cells
    return centre


def _distinct(field: Field, evidence: States, shares: Floats) -> tuple[States, Floats]:
    """Rows that differ in what the field sees of them, with the sums of their shares."""
    used = sorted({e for e, _ in field.links} | {e for e, _, _ in field.masks})
    if math.prod(field.evidence_sizes[e] for e in used) > 1 << 62:
        return evidence, shares
    codes = np.zeros(len(shares), dtype=np.int64)
    for e in used:
        codes = codes * field.evidence_sizes[e] + evidence[e]
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    sums: Floats = np.bincount(group, weights=shares).astype(np.float64)
    return np.ascontiguousarray(evidence[:, first]), sums


@compiled
def _gathered(values: Floats, places: Indices, onto: Indices, n: int) -> Floats:
    """Sums of values at places, by where they belong."""
    sums = np.zeros(n)
    for i in range(len(places)):
        sums[onto[i]] += values[places[i]]
    return sums
