"""Rounds: a richer structure than a tree, grown one table at a time where the model is furthest from the rows.

Every round draws rows from the model so far, compares how often states meet in them and in the private rows, and
chooses, by the exponential mechanism, the clique that is furthest off beyond what its own noise would be. It is then
measured, in boxes that the model expects to hold enough rows, and the model is fitted anew. A clique is open to
choice only while the junction tree of all of them stays small. How many rounds there are, and how much noise each
has, is settled beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.counting.states import GAP_STEPS, Clique, StateRows, true_distances
from spinney.forest.cliques import measure
from spinney.forest.design import Design
from spinney.forest.possible import Possible
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.graph.draw import draw_states
from spinney.graph.elimination import TreewidthBudget
from spinney.graph.estimate import Measurement
from spinney.graph.junction import JunctionTree
from spinney.graph.model import GraphModel
from spinney.progress import progress

# The junction tree of all cliques has no more cells than this.
_MOST_CELLS = 60_000
# Rows that are drawn from the model to compare it by, and cliques that are compared in a round.
_N_DRAWN = 60_000
_N_COMPARED = 200

# Between rounds an estimate need not be the best.
_STEPS = 40


class Refit(Protocol):
    """Fits the model to measurements, from the beginning: a start that knows some of them would believe them twice."""

    def __call__(self, measurements: Sequence[Measurement], *, steps: int) -> GraphModel: ...


def measure_rounds(
    rows: StateRows,
    measured: Sequence[Measurement],
    design: Design,
    prepaid: PrepaidMechanisms,
    refit: Refit,
    possible: Possible,
    *,
    total: float,
    least: float,
    rng: np.random.Generator,
) -> list[Measurement]:
    """The measurements and those of all rounds. `rng` draws from the model between rounds, which is no noise."""
    measurements = list(measured)
    noise_std = design.plan.noise_std("cliques")
    sensitivity = GAP_STEPS * prepaid.plan.unit.factor
    assert design.plan.choices is not None
    opening = _Opening(rows.sizes, design, [m.columns for m in measurements])
    for _ in progress(range(design.plan.choices.times), "growing the forest", unit="round"):
        model = refit(measurements, steps=_STEPS)
        cliques = opening.cliques(rng)
        drawn = draw_states(model, _N_DRAWN, rng)
        expected = [model_table(drawn, clique, rows.sizes, total) for clique in cliques]
        noise = np.array([_noise(table, noise_std, least) for table in expected])
        true_scores = true_distances(rows, cliques, expected) - np.rint(GAP_STEPS * noise).astype(np.int64)
        pick = prepaid.choice(true_scores, sensitivity=sensitivity)
        by = design.target if design.target in cliques[pick] else None
        table, mask = expected[pick], possible.table(cliques[pick])
        measurements.append(
            measure(rows, cliques[pick], table, prepaid, stage="cliques", least=least, by=by, possible=mask)
        )
        opening.close(cliques[pick])
    return measurements


class _Opening:
    """Pairs of columns, and with a target triples too, whose measurement keeps the junction tree small."""

    def __init__(self, sizes: Sequence[int], design: Design, measured: Sequence[Clique]) -> None:
        self._sizes, self._measured = sizes, [*measured]
        candidates: list[Clique] = list(combinations(design.measured, 2))
        if design.target is not None:
            candidates += [tuple(sorted((i, j, design.target))) for i, j in combinations(design.free, 2)]
        known = set(measured)
        self._candidates = [clique for clique in candidates if clique not in known]
        self._ruled = list(design.required)  # which the model's tree covers, measured or not
        self._room = TreewidthBudget(sizes, [*measured, *self._ruled], _MOST_CELLS)
        self._tree = JunctionTree.covering(sizes, [*measured, *self._ruled])
        self._fallback = tuple(design.measured[:2])

    def cliques(self, rng: np.random.Generator) -> list[Clique]:
        """Those to compare in a round, in random order."""
        opened: list[Clique] = []
        for place in rng.permutation(len(self._candidates)):
            clique = self._candidates[place]
            if self._tree.home(clique) is not None or self._room.has(clique):
                opened.append(clique)
            if len(opened) == _N_COMPARED:
                break
        return opened or self._again(rng)

    def _again(self, rng: np.random.Generator) -> list[Clique]:
        """Where no other fits, cliques that were measured before: a second measurement is still worth something."""
        several = [clique for clique in dict.fromkeys(self._measured) if len(clique) > 1] or [self._fallback]
        return [several[place] for place in rng.permutation(len(several))[:_N_COMPARED]]

    def close(self, clique: Clique) -> None:
        """A clique that was measured is no longer open, and others may not be either."""
        self._measured.append(clique)
        if clique in self._candidates:
            self._candidates.remove(clique)
        if self._room.add(clique):
            self._tree = JunctionTree.covering(self._sizes, [*self._measured, *self._ruled])


def model_table(drawn: NDArray[np.int32], clique: Clique, sizes: Sequence[int], total: float) -> NDArray[np.float64]:
    """The table that the model expects, by rows drawn from it."""
    shape = tuple(sizes[column] for column in clique)
    counts = _count(drawn, np.array(clique, dtype=np.int64), np.array(shape, dtype=np.int64)).reshape(shape)
    return np.asarray(counts * (total / drawn.shape[1]))


def _noise(expected: NDArray[np.float64], noise_std: float, least: float) -> float:
    """About how large the noise of a clique's boxes would be, all together: E|noise| for each."""
    n_boxes = min(expected.size, max(1.0, float(np.minimum(expected / least, 1).sum())))
    return math.sqrt(2 / math.pi) * noise_std * n_boxes


@compiled
def _count(drawn: NDArray[np.int32], clique: NDArray[np.int64], shape: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each cell of a clique's table was drawn, in C order."""
    counts = np.zeros(np.prod(shape), dtype=np.int64)
    for row in range(drawn.shape[1]):
        cell = 0
        for place in range(len(clique)):
            cell = cell * shape[place] + drawn[clique[place], row]
        counts[cell] += 1
    return counts
