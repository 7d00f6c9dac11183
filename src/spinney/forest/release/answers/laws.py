"""Laws: what the released model, and models that might have been released in its place, say of products of factors.

Tables of the states of a few variables are computed once for all models and kept. Where columns were not counted
together the model is tilted, which no table holds: a sample of its rows, weighted once, says what the tilt adds to the
model's own answer, so that only the difference has the error of a sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.answers.factors import Factor, Factors
from spinney.forest.release.answers.parts import Leaves
from spinney.forest.release.column_model import Floats
from spinney.forest.release.rules import feasible
from spinney.graph.draw import States
from spinney.graph.model import GraphModel
from spinney.graph.tilted_draw import weighted_states

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease

# Models that are fitted to redrawn noise; two hundred thousand rows of the tilted model.
N_REDRAWN = 20
_N_SAMPLED = 200_000
_SAMPLE_STREAM = 16
# Larger tables of states are not made; a product's mean is then that of a model under evidence.
_MOST_CELLS = 200_000
_MOST_KEPT = 20_000_000


class Laws:
    """The released model and redrawn ones, with the leaves of their columns; the released one is the first."""

    def __init__(self, release: ForestRelease, *, n_redrawn: int = N_REDRAWN) -> None:
        self._release = release
        self._n_redrawn = n_redrawn
        self._tables: dict[tuple[int, ...], Floats] = {}
        self._released: dict[tuple[int, ...], Floats] = {}
        self._n_kept = 0
        self._inside: dict[int, tuple[Floats, NDArray[np.int64]]] = {}
        self.names = release.variables
        self.total = float(release.card.n_rows if release.card.n_rows is not None else max(release.noisy_total, 1))

    @cached_property
    def _models(self) -> tuple[tuple[GraphModel, Sequence[Leaves]], ...]:
        release = self._release
        found = [(release.model, self.leaves)]
        if release.measured is not None and self._n_redrawn:
            for redrawn in release.redrawn(self._n_redrawn):
                every: dict[str, Leaves] = {**redrawn.columns, **redrawn.places}
                found.append((redrawn.model, [every[name] for name in self.names]))
        # What rules leave of states is left of them in every model.
        evidence = self._evidence
        return tuple((model.given(evidence) if evidence else model, leaves) for model, leaves in found)

    @cached_property
    def _evidence(self) -> dict[int, Floats]:
        release = self._release
        cuts = feasible(release.schema.rules, release.schema.as_drawn, release.drawn_columns)
        return {self.names.index(name): cut.left for name, cut in cuts.items()}

    @cached_property
    def leaves(self) -> list[Leaves]:
        """The leaves of all variables as they were released."""
        release = self._release
        return [release.columns[name] if name in release.columns else release.places[name] for name in self.names]

    @property
    def n_redrawn(self) -> int:
        return len(self._models) - 1

    def noise_std(self, variable: int) -> float:
        """The standard deviation of the noise on a variable's own counts; 1 where it has none."""
        measured = self._release.measured
        column = None if measured is None else measured.columns[variable]
        return 1.0 if column is None else column.noise.std

    def law(self, variables: tuple[int, ...]) -> Floats:
        """The released model's law of some variables, before the tilt."""
        if variables in self._tables:
            return np.asarray(self._tables[variables][0])
        found = self._released.get(variables)
        if found is None:
            found = self._models[0][0].marginal(variables)
            if self._n_kept + found.size <= _MOST_KEPT:
                self._released[variables] = found
                self._n_kept += found.size
        return found

    def is_small(self, variables: Sequence[int]) -> bool:
        """Whether a table of these variables is made."""
        sizes = self._release.model.tree.sizes
        return float(np.prod([float(sizes[variable]) for variable in variables])) <= _MOST_CELLS

    def _tables_of(self, variables: tuple[int, ...]) -> Floats:
        """The law of variables under every model (n_models, ...)."""
        found = self._tables.get(variables)
        if found is None:
            found = np.stack([model.marginal(variables) for model, _ in self._models])
            if self._n_kept + found.size <= _MOST_KEPT:
                self._tables[variables] = found
                self._n_kept += found.size
        return found

    def means(self, factors: Factors) -> Floats:
        """The mean of a product of factors under the released model, before the tilt, and under redrawn ones."""
        if not factors:
            return np.ones(len(self._models))
        variables = tuple(sorted(factors))
        lines = [self._per_state(variable, factors[variable].leaf_mean()) for variable in variables]
        if not self.is_small(variables):
            return self._by_evidence(variables, lines)
        found = self._tables_of(variables)
        for line in reversed(lines):
            found = np.einsum("m...i,mi->m...", found, line)
        return found

    def _per_state(self, variable: int, numbers: Floats) -> Floats:
        """The mean of a number of each leaf in each state under every model, by its weights (n_models, n_states)."""
        found = self._inside.get(variable)
        if found is None:
            every = [leaves[variable] for _, leaves in self._models]
            n_states = every[0].n_states
            states = np.concatenate([leaves.states + n_states * place for place, leaves in enumerate(every)])
            found = self._inside[variable] = np.stack([leaves.inside() for leaves in every]), states
        inside, states = found
        n_cells = len(self._models) * self.leaves[variable].n_states
        sums = np.bincount(states, weights=(inside * numbers).ravel(), minlength=n_cells)
        return np.asarray(sums, dtype=np.float64).reshape(len(self._models), -1)

    def _by_evidence(self, variables: tuple[int, ...], lines: Sequence[Floats]) -> Floats:
        """The same without a table, by what is left of a model under evidence that is not negative."""
        found = []
        for place, (model, _) in enumerate(self._models):
            shifts = [min(0.0, float(line[place].min())) for line in lines]
            assert sum(shift < 0 for shift in shifts) <= 1  # one column has values
            weights = [line[place] - shift for line, shift in zip(lines, shifts, strict=True)]
            mean = _left(model, dict(zip(variables, weights, strict=True)))
            for at, shift in enumerate(shifts):
                if shift < 0:
                    others = {v: w for k, (v, w) in enumerate(zip(variables, weights, strict=True)) if k != at}
                    mean += shift * _left(model, others)
            found.append(mean)
        return np.array(found)

    # ---------------------------------------------------------------------------------------------- the tilt

    @cached_property
    def _sample(self) -> tuple[States, Floats] | None:
        products = self._release.products
        if products is None:
            return None
        rng = np.random.default_rng(_SAMPLE_STREAM)
        columns, pairs = range(len(self.names)), self._release.counted_pairs
        drawn, weights = weighted_states(
            self._models[0][0], products.tilt, _N_SAMPLED, rng, columns=columns, pairs=pairs
        )
        return drawn, weights * _N_SAMPLED

    @property
    def sample(self) -> tuple[States, Floats] | None:
        """Rows of the model and their weights under the tilt, 1 on average; None without a tilt."""
        return self._sample

    def tilted(self, factors: Factors) -> tuple[float, float]:
        """What the tilt adds to the mean of a product under the released model, and the variance of that sample."""
        apart = any(pair not in self._together for pair in combinations(sorted(factors), 2))
        if not apart or self._sample is None:
            return 0.0, 0.0
        drawn, weights = self._sample
        product = weights - 1.0
        for variable, factor in factors.items():
            product *= factor.of(self.leaves[variable])[drawn[variable]]
        return float(product.mean()), float(product.var()) / len(product)

    def tilted_states(self, variable: int, lines: Mapping[int, Floats]) -> Floats:
        """What the tilt adds to the share of rows in each state of a variable, others weighing so much by state."""
        n_states = self.leaves[variable].n_states
        every = (variable, *lines)
        if self._sample is None or all(pair in self._together for pair in combinations(sorted(every), 2)):
            return np.zeros(n_states)
        drawn, weights = self._sample
        product = (weights - 1.0) / len(weights)
        for other, line in lines.items():
            product *= line[drawn[other]]
        return np.bincount(drawn[variable], weights=product, minlength=n_states).astype(np.float64)

    @cached_property
    def _together(self) -> frozenset[tuple[int, int]]:
        return frozenset(self._release.counted_pairs)

    def counted_with(self, variable: int) -> list[int]:
        """The variables that share a counted table with one."""
        return sorted({other for pair in self._together for other in pair if variable in pair} - {variable})

    def are_together(self, first: int, second: int) -> bool:
        """Whether two variables share a counted table."""
        return (min(first, second), max(first, second)) in self._together


def _left(model: GraphModel, weights: dict[int, Floats]) -> float:
    """The mean of a product of weights."""
    if any(not line.any() for line in weights.values()):
        return 0.0
    if not weights:
        return 1.0
    scale = {variable: float(line.max()) for variable, line in weights.items()}
    left = model.given({variable: line / scale[variable] for variable, line in weights.items()})
    return float(np.exp(left.log_partition - model.log_partition) * np.prod(list(scale.values())))


def states_of(factor: Factor, leaves: Leaves) -> tuple[Floats, Floats]:
    """The mean of a factor in each state, and its variance there."""
    mean = factor.of(leaves)
    return mean, np.maximum(factor.square_of(leaves) - mean**2, 0.0)
