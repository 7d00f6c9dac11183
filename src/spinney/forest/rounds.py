"""Rounds: a structure grown where the model is furthest from the rows. SENSITIVE up to the choices.

A turn draws rows from the model so far, compares them with the private rows, chooses a few cliques by the
exponential mechanism, measures them and fits the model again. How many rounds there are, and how much noise
each has, is settled beforehand.

    cliques open to choice    which cliques may be chosen, from public and released quantities
    rounds                    scores, choices and measurements, a turn at a time
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spinney.counting.joint import Clique, TableRequest
from spinney.counting.states import GAP_STEPS, StateTables, true_distances, true_interactions
from spinney.forest.cliques import Groups, Possible, centred_signs, group_states, measure, n_groups
from spinney.forest.design import Design, Parts
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.graph.estimate import Measurement
from spinney.graph.junction import JunctionTree, TreewidthBudget
from spinney.graph.model import GraphModel, draw_states
from spinney.machine import each
from spinney.progress import progress_bar

# ----------------------------------------------------------------------------------------------- cliques open to choice
# Opening: the cliques that rounds may choose from, all of public and released quantities.
#
# Pairs of columns, and later in a forest triples; with a target, triples with it from the beginning.
# A clique is open while the junction tree of all that were measured stays small enough with it.


# Pairs that are compared in a turn, and triples.
N_PAIRS = 1_500
N_TRIPLES = 1_500
# Triples are open after this share of the rounds: until then a pair can be what is missing.
_TRIPLES_FROM = 0.25


class Opening:
    """Cliques whose measurement keeps the junction tree small."""

    def __init__(self, sizes: Sequence[int], design: Design, measured: Sequence[Clique]) -> None:
        self._sizes, self._measured = sizes, [*measured]
        self._known = set(measured)
        self._columns, self._target, self._free = design.measured, design.target, design.free
        self._ruled = list(design.required)  # which the model's tree covers, measured or not
        most_cells = design.effort.most_cells + design.stated_cells
        self._room = TreewidthBudget(sizes, [*measured, *self._ruled], most_cells)
        self._tree = JunctionTree.covering(sizes, [*measured, *self._ruled])
        self._fallback = tuple(design.measured[:2])

    def cliques(self, rng: np.random.Generator, *, share: float) -> list[Clique]:
        """Those to compare in a turn at the end of which this share of all rounds is done, in random order."""
        opened = self._some(list(combinations(self._columns, 2)), N_PAIRS, rng)
        if self._target is not None:
            triples = [tuple(sorted((i, j, self._target))) for i, j in combinations(self._free, 2)]
            opened += self._some(triples, N_PAIRS, rng)
        if share >= _TRIPLES_FROM:
            opened += self._some(_triples(self._columns, rng), N_TRIPLES, rng)
        opened = list(dict.fromkeys(opened))
        return opened or self.again(rng)

    def _some(self, candidates: Sequence[Clique], most: int, rng: np.random.Generator) -> list[Clique]:
        opened: list[Clique] = []
        for place in rng.permutation(len(candidates)):
            clique = candidates[place]
            if clique not in self._known and self.has(clique):
                opened.append(clique)
            if len(opened) == most:
                break
        return opened

    def has(self, clique: Clique) -> bool:
        """Whether the tree is still small enough with this clique."""
        return self._tree.home(clique) is not None or self._room.has(clique)

    def growth(self, clique: Clique) -> float:
        """How much of the room that there is in all the tree would take up beyond what it has, with this clique."""
        if self._tree.home(clique) is not None:
            return 0.0
        return max(0.0, self._room.n_cells(clique) - self._tree.n_cells) / self._room.most_cells

    def again(self, rng: np.random.Generator) -> list[Clique]:
        """Where no other fits, cliques that were measured before: a second measurement is still worth something."""
        several = [clique for clique in dict.fromkeys(self._measured) if len(clique) > 1] or [self._fallback]
        return [several[place] for place in rng.permutation(len(several))[:N_TRIPLES]]

    def close(self, clique: Clique) -> None:
        """A clique that was measured is no longer open, and others may not be either."""
        self._measured.append(clique)
        self._known.add(clique)
        if self._room.add(clique):
            self._tree = JunctionTree.covering(self._sizes, [*self._measured, *self._ruled])


def _triples(columns: Sequence[int], rng: np.random.Generator) -> list[Clique]:
    """All sets of three columns, or a few thousand of them at random where there are more."""
    if math.comb(len(columns), 3) <= 2 * N_TRIPLES:
        return list(combinations(columns, 3))
    drawn = (rng.choice(columns, size=3, replace=False) for _ in range(2 * N_TRIPLES))
    return list(dict.fromkeys(tuple(sorted(int(column) for column in columns)) for columns in drawn))


# --------------------------------------------------------------------------------------------------------------- rounds
# Every turn draws rows from the model so far, compares how often states meet in them and in the private rows,
# and chooses, by the exponential mechanism, one after the other the cliques that are furthest off beyond what
# chance and their own noise would be. They are measured, in boxes that the model expects to hold enough rows,
# and the model is fitted anew. Cliques of one turn join different parts of the columns: the scores of others
# that lie within what was joined are out of date. A clique is open to choice only while the junction tree of
# all of them stays small.


Floats = NDArray[np.float64]

# Rows that are drawn from the model to compare it by.
_N_DRAWN = 60_000
# Between rounds an estimate need not be the best.
_STEPS = 40
# A clique that takes up all the room of the model has to be off by this share of the rows to be worth it.
_ROOM_PRICE = 0.1
# A table of three columns is cut into more boxes than its groups make, each with noise: to be worth that, its
# columns have to act together by so many times the noise of the groups' sums.
_INTERACTION_NOISE = 3.0
# Tables of drawn rows that a thread counts at a time.
_AT_ONCE = 256
# Of the columns, so many parts are rounds of the first turn, and of each later one.
_FIRST_TURN, _LATER_TURNS = 2, 4


class Refit(Protocol):
    """Fits the model to measurements, from the beginning: a start that knows some of them would believe them twice."""

    def __call__(self, measurements: Sequence[Measurement], *, steps: int) -> GraphModel: ...


def measure_rounds(
    rows: StateTables,
    measured: Sequence[Measurement],
    design: Design,
    prepaid: PrepaidMechanisms,
    refit: Refit,
    possible: Possible,
    *,
    total: float,
    least: float,
    shares: Sequence[Floats],
    is_ordered: Sequence[bool],
    rng: np.random.Generator,
) -> list[Measurement]:
    """The measurements and those of all rounds. `shares` are the released shares of every column's states.

    `rng` draws from the model between rounds, which is no noise.
    """
    measurements = list(measured)
    sensitivity = GAP_STEPS * prepaid.plan.unit.factor
    n_rounds = prepaid.n_left("cliques")
    opening = Opening(rows.sizes, design, [m.columns for m in measurements])

    @cache
    def coarse(n_columns: int) -> list[Groups]:
        """The group of every state, by released shares: the same in all turns, so that no table is counted twice."""
        states = zip(shares, is_ordered, strict=True)
        return [group_states(share, n_groups(n_columns), is_ordered=ordered) for share, ordered in states]

    with progress_bar(n_rounds, "growing the forest", unit="round") as bar:
        n_left = n_rounds
        while n_left:
            n_now = _n_of_turn(n_rounds, n_left, len(design.measured))
            model = refit(measurements, steps=_STEPS)
            drawn = draw_states(model, _N_DRAWN, rng)
            cliques = opening.cliques(rng, share=1 - (n_left - n_now) / n_rounds)
            room = np.array([opening.growth(clique) for clique in cliques])
            compared = _Compared(rows, drawn, design, coarse, total=total, least=least)
            prices = np.rint(GAP_STEPS * _ROOM_PRICE * total * room).astype(np.int64)
            true_scores = compared.true_scores(cliques) - prices
            turn = _Turn(cliques, len(rows.sizes), opening)
            chosen: list[Clique] = []
            while len(chosen) < n_now and (places := turn.places()) is not None:
                fits = partial(turn.fits_of, places)
                pick = prepaid.choice(true_scores[places], sensitivity=sensitivity, accepts=fits)
                chosen.append(turn.take(int(places[pick])))
            if not chosen:  # nothing fits any more, not even what was measured before
                break
            rows.prepare(chosen)  # all tables of a turn in one pass, where rows are not at hand
            for clique, table in zip(chosen, model_tables(drawn, chosen, rows.sizes, total), strict=True):
                by, mask = design.target if design.target in clique else None, possible.table(clique)
                measurements.append(
                    measure(rows, clique, table, prepaid, stage="cliques", least=least, by=by, possible=mask)
                )
            n_left -= len(chosen)
            bar.update(len(chosen))
    return measurements


def _n_of_turn(n_rounds: int, n_left: int, n_columns: int) -> int:
    """How many rounds share a look at the rows: more in the first turn, where all is still to be found."""
    return min(n_left, max(1, n_columns // (_FIRST_TURN if n_left == n_rounds else _LATER_TURNS)))


class _Turn:
    """Which of the cliques that were compared together can still be chosen."""

    def __init__(self, cliques: Sequence[Clique], n_columns: int, opening: Opening) -> None:
        self._cliques, self._opening = cliques, opening
        self._parts = Parts(n_columns)
        self._is_left = np.ones(len(cliques), dtype=np.bool_)

    def places(self) -> NDArray[np.int64] | None:
        """Places of cliques that join parts, or else of all that are left, some of which fit; None where none does."""
        numbers = self._parts.numbers
        left = np.flatnonzero(self._is_left)
        joining = [k for k in left.tolist() if len({int(numbers[column]) for column in self._cliques[k]}) > 1]
        for places in (np.array(joining, dtype=np.int64), left):
            if any(self.fits(int(place)) for place in places):
                return places
        return None

    def fits_of(self, places: NDArray[np.int64], index: int) -> bool:
        """Whether the clique at one of some places fits."""
        return self.fits(int(places[index]))

    def fits(self, place: int) -> bool:
        """Whether a clique is left and the model's tree is still small enough with it.

        Nothing is remembered of the question: which cliques are asked for while one is drawn follows the rows, and one
        that does not fit now may do so later.
        """
        return bool(self._is_left[place] and self._opening.has(self._cliques[place]))

    def take(self, place: int) -> Clique:
        """The clique at a place, which is measured now."""
        clique = self._cliques[place]
        self._is_left[place] = False
        for column in clique[1:]:
            self._parts.join((clique[0], column))
        self._opening.close(clique)
        return clique


class _Compared:
    """The model's rows beside the private ones.

    Pairs are compared by all their states. Larger cliques, triples or stated ones, are by a few groups of them, and
    only in what no fewer of their columns show: they would win for a pair that is off otherwise, at the price of a
    larger table.
    """

    def __init__(
        self,
        rows: StateTables,
        drawn: NDArray[np.int32],
        design: Design,
        coarse: Callable[[int], list[Groups]],  # of so many columns that are looked at together
        *,
        total: float,
        least: float,
    ) -> None:
        self._rows, self._drawn, self._coarse = rows, drawn, coarse
        self._total, self._least, self._noise_std = total, least, design.plan.noise_std("cliques")
        weights = [np.bincount(states, minlength=size) for states, size in zip(drawn, rows.sizes, strict=True)]
        self._weights = [np.asarray(weight, dtype=np.float64) for weight in weights]

    def true_scores(self, cliques: Sequence[Clique]) -> NDArray[np.int64]:
        """For every clique how far the model is off, less what chance and noise would show. SENSITIVE."""
        scores = np.empty(len(cliques), dtype=np.int64)
        for n_columns in {len(clique) for clique in cliques}:
            places = [k for k, clique in enumerate(cliques) if len(clique) == n_columns]
            some = [cliques[k] for k in places]
            scores[places] = self._true_gaps(some) if n_columns == 2 else self._true_interactions(some, n_columns)
        return scores

    def _true_gaps(self, pairs: Sequence[Clique]) -> NDArray[np.int64]:
        """How far the tables of pairs are off. SENSITIVE."""
        expected = model_tables(self._drawn, pairs, self._rows.sizes, self._total)
        public = [self._noise(table) + self._chance(table) for table in expected]
        return true_distances(self._rows, pairs, expected) - _steps(public)

    def _true_interactions(self, cliques: Sequence[Clique], n_columns: int) -> NDArray[np.int64]:
        """How far the model is off in what only all columns of a clique together show. SENSITIVE."""
        groups = self._coarse(n_columns)
        shares = [
            np.bincount(group, weight) / self._drawn.shape[1]
            for group, weight in zip(groups, self._weights, strict=True)
        ]
        functions = [centred_signs(share) for share in shares]
        spreads = [float((function**2 @ share).max()) for function, share in zip(functions, shares, strict=True)]
        expected = model_tables(self._drawn, cliques, self._rows.sizes, self._total, groups=groups)
        public = []
        for clique, table in zip(cliques, expected, strict=True):
            chance = math.sqrt(math.prod(spreads[column] for column in clique) * self._chance_variance(self._total))
            noise = _INTERACTION_NOISE * self._noise_std * math.sqrt(table.size)
            n_ways = math.prod(len(functions[column]) for column in clique)
            public.append(math.sqrt(2 * math.log(max(n_ways, 2))) * (chance + noise))  # about the most of so many
        return true_interactions(self._rows, cliques, expected, functions, groups) - _steps(public)

    def _noise(self, expected: Floats) -> float:
        """About how large the noise of a clique's boxes would be, all together: E|noise| for each."""
        n_boxes = min(expected.size, max(1.0, float(np.minimum(expected / self._least, 1).sum())))
        return math.sqrt(2 / math.pi) * self._noise_std * n_boxes

    def _chance(self, expected: Floats) -> float:
        """About how far rows would be from those of the model if they came from the same law: E|difference|."""
        by_chance = np.sqrt(2 / math.pi * self._chance_variance(expected))
        return float(np.minimum(by_chance, 2 * expected).sum())

    def _chance_variance(self, expected: Any) -> Any:
        """The variance of a count around what drawn rows have it to be, if rows come from the model's law."""
        return expected * (1 + self._total / self._drawn.shape[1])


def _steps(rows: Sequence[float]) -> NDArray[np.int64]:
    """Numbers of rows in the steps that gaps are counted in."""
    return np.rint(GAP_STEPS * np.asarray(rows, dtype=np.float64)).astype(np.int64)


def model_tables(
    drawn: NDArray[np.int32],
    cliques: Sequence[Clique],
    sizes: Sequence[int],
    total: float,
    *,
    groups: Sequence[NDArray[np.uint8]] | None = None,
) -> list[Floats]:
    """The tables that the model expects, of states or of groups of them, by rows drawn from it."""
    scale = total / drawn.shape[1]

    def counted(part: Sequence[Clique]) -> list[Floats]:
        request = TableRequest(sizes, part, groups)
        sums = np.zeros(request.n_numbers, dtype=np.int64)
        request.add(drawn, sums)
        return [np.asarray(table * scale) for table in request.tables(sums)]

    starts = range(0, len(cliques), _AT_ONCE)
    return [table for part in each(counted, [cliques[at : at + _AT_ONCE] for at in starts]) for table in part]
