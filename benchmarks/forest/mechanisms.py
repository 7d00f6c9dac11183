"""MST and AIM, built from the package mbi; imports nothing of ours, so that a Python without Spinney can run them.

What the mechanisms do follows their papers (McKenna, Miklau, Sheldon 2021; McKenna, Mullins, Sheldon, Miklau 2022) and
the settings of the authors' own programs: 5,000 steps of mirror descent for MST, 1,000 for every round of AIM, models
of at most 80 MB.

Under add-remove one row moves a table of counts by 1, in the Euclidean norm and in the sum of absolute values, and the
number of rows is estimated from the tables. Under replace-one it moves it by sqrt(2) and 2, and the number is public.
Noise is NumPy's: for comparison only.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Clique = tuple[str, ...]
Codes = NDArray[np.integer[Any]]  # (n_columns, n_rows)
Unit = Literal["add-remove", "replace-one"]

# How far one row moves a table of counts: the square of the Euclidean norm, which is the sum of absolute values too.
_STEPS = {"add-remove": 1.0, "replace-one": 2.0}


@dataclass(frozen=True, slots=True)
class Made:
    """What a mechanism made: rows as codes, or none where it was stopped; where it got to; and its time."""

    codes: Codes | None
    state: str
    seconds: float
    cpu_seconds: float


def make(
    name: str,
    codes: Codes,
    sizes: Sequence[int],
    *,
    epsilon: float,
    delta: float,
    unit: Unit,
    seed: int,
    limit: float,
) -> Made:
    """As many rows of one mechanism by name, "MST" or "AIM", stopped between two rounds once `limit` seconds are over.

    Args:
        name: which of the two.
        codes: the rows, every column a category.
        sizes: the number of categories by column.
        epsilon: the budget, with `delta`.
        delta: the failure probability.
        unit: what neighbouring tables are.
        seed: repeats the same noise.
        limit: seconds.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mbi's and JAX's own
        import jax

        jax.config.update("jax_enable_x64", True)
        import mbi

        names = tuple(f"c{i}" for i in range(len(sizes)))
        columns = {column: held.astype(np.int64) for column, held in zip(names, codes, strict=True)}
        data = mbi.Dataset(columns, mbi.Domain(names, tuple(sizes)))
        np.random.seed(seed)  # noqa: NPY002  mbi draws its rows from the global generator
        start, cpu_start = time.perf_counter(), time.process_time()
        run = _Run(data, zcdp_rho(epsilon, delta), np.random.default_rng(seed), start + limit, unit)
        rows = run.mst() if name == "MST" else run.aim()
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    if rows is None:
        return Made(None, run.state, seconds, cpu_seconds)
    drawn = np.stack([np.asarray(rows.data[column]) for column in names]).astype(np.uint16)
    return Made(drawn, run.state, seconds, cpu_seconds)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP implies (epsilon, delta), after Canonne, Kamath and Steinke (2020).

    delta = min over a > 1 of exp((a-1)(a rho - epsilon)) / (a-1) * (1 - 1/a)^a
    """
    orders = 1 + np.exp(np.linspace(-7, 9, 4000))
    # At every order delta grows with rho: solve for rho there, and take the order that allows most.
    logs = math.log(delta) + np.log(orders - 1) - orders * np.log1p(-1 / orders)
    return float(max((logs / (orders - 1) + epsilon) / orders))


class _Run:
    """One run of a mechanism: data, what is left of the budget, noise, the hour at which to stop."""

    def __init__(self, data: Any, rho: float, rng: np.random.Generator, deadline: float, unit: Unit) -> None:
        self._data, self._rho, self._rng, self._deadline = data, rho, rng, deadline
        self._step, self._has_public_total = _STEPS[unit], unit == "replace-one"
        self.state = ""

    # ------------------------------------------------------------------------------------------------------------ MST

    def mst(self) -> Any:
        """A third of the budget each for columns, for the choice of a spanning tree, and for its edges."""
        n_columns = len(self._data.domain)
        singles = [
            self._measured(self._data, (name,), self._deviation(self._rho / 3 / n_columns))
            for name in self._data.domain
        ]
        pooling = {
            m.clique[0]: _pooled(np.asarray(m.noisy_measurement) < 3 * m.stddev)
            for m in singles
            if (np.asarray(m.noisy_measurement) < 3 * m.stddev).any()
        }
        measurements = [m.compress(pooling, self._data.domain) for m in singles]
        data = self._data.compress(pooling)
        edges = self._spanning_tree(data, self._fit(data, measurements, steps=1000))
        if time.perf_counter() > self._deadline:
            self.state = "before the edges were measured"
            return None
        noise_std = self._deviation(self._rho / 3 / len(edges))
        measurements += [self._measured(data, edge, noise_std) for edge in edges]
        model = self._fit(data, measurements, steps=5000)
        self.state = f"{len(edges)} edges"
        return model.synthetic_data(rows=data.records).decompress(pooling)

    def _spanning_tree(self, data: Any, model: Any) -> list[Clique]:
        """Edges chosen one by one by the exponential mechanism, none closing a circle (Kruskal)."""
        gaps = {pair: _gap(data, model, pair) for pair in itertools.combinations(data.domain, 2)}
        n_edges = len(data.domain) - 1
        epsilon = math.sqrt(8 * self._rho / 3 / n_edges)
        part = {name: name for name in data.domain}
        edges: list[Clique] = []
        while len(edges) < n_edges:
            open_pairs = [pair for pair in gaps if part[pair[0]] != part[pair[1]]]
            first, second = self._chosen(open_pairs, [gaps[pair] for pair in open_pairs], epsilon, self._step)
            edges.append((first, second))
            old, new = part[second], part[first]
            part = {name: new if of == old else of for name, of in part.items()}
        return edges

    # ------------------------------------------------------------------------------------------------------------ AIM

    def aim(self) -> Any:
        """Rounds that each choose the worst pair or column, measure it and fit anew; noise falls as rounds teach less.

        A candidate weighs how many columns it shares with the workload, which is all pairs of at most 10,000 cells.
        """
        from mbi import junction_tree

        domain = self._data.domain
        workload = [pair for pair in itertools.combinations(domain, 2) if domain.size(pair) <= 10_000]
        candidates: list[Clique] = [(name,) for name in domain] + workload
        weight = {c: float(sum(len({*c} & {*pair}) for pair in workload)) for c in candidates}
        n_rounds = 16 * len(domain)
        noise_std = self._deviation(0.9 * self._rho / n_rounds)
        epsilon = math.sqrt(8 * 0.1 * self._rho / n_rounds)
        measurements = [self._measured(self._data, (name,), noise_std) for name in domain]
        spent = len(domain) * self._price(noise_std)
        model = self._fit(self._data, measurements, steps=1000)
        is_last, n_done = False, 0
        while not is_last:
            if time.perf_counter() > self._deadline:
                self.state = f"{n_done} rounds, {spent / self._rho:.0%} of the budget spent"
                return None
            if self._rho - spent < 2 * (self._price(noise_std) + epsilon**2 / 8):
                is_last = True
                noise_std = self._deviation(0.9 * (self._rho - spent))
                epsilon = math.sqrt(8 * 0.1 * (self._rho - spent))
            spent += self._price(noise_std) + epsilon**2 / 8
            held = {m.clique for m in measurements}
            allowed = [
                c
                for c in candidates
                if _is_within(c, held)
                or junction_tree.hypothetical_model_size(domain, [*held, c]) <= 80 * spent / self._rho
            ]
            bias = math.sqrt(2 / math.pi) * noise_std
            gains = [weight[c] * (_gap(self._data, model, c) - bias * domain.size(c)) for c in allowed]
            step = self._step * max(weight[c] for c in allowed)
            clique = self._chosen(allowed, gains, epsilon, step)
            before = _table(model, clique)
            measurements.append(self._measured(self._data, clique, noise_std))
            model = self._fit(self._data, measurements, steps=1000, start=model)
            n_done += 1
            learnt = np.abs(_table(model, clique) - before).sum()
            if learnt <= bias * domain.size(clique):
                noise_std, epsilon = noise_std / 2, epsilon * 2
        self.state = f"{n_done} rounds"
        return model.synthetic_data(rows=self._data.records)

    # --------------------------------------------------------------------------------------------------------- shared

    def _deviation(self, rho: float) -> float:
        """Gaussian noise that a table of counts takes for rho."""
        return math.sqrt(self._step / (2 * rho))

    def _price(self, noise_std: float) -> float:
        """What a table of counts with this noise costs, in rho."""
        return self._step / (2 * noise_std**2)

    def _measured(self, data: Any, clique: Clique, noise_std: float) -> Any:
        import mbi

        counts = np.asarray(data.project(clique).datavector(), dtype=np.float64)
        return mbi.LinearMeasurement(counts + self._rng.normal(0, noise_std, counts.size), clique, noise_std)

    def _fit(self, data: Any, measurements: Sequence[Any], *, steps: int, start: Any = None) -> Any:
        """The graphical model of the measurements, and of the number of rows where that is public."""
        from mbi import estimation

        total = float(data.records) if self._has_public_total else None
        return estimation.MirrorDescent().estimate(
            data.domain, list(measurements), known_total=total, iters=steps, warm_start=start
        )

    def _chosen(self, candidates: Sequence[Clique], scores: Iterable[float], epsilon: float, step: float) -> Clique:
        """The exponential mechanism, by Gumbel noise."""
        utilities = epsilon / (2 * step) * np.array(list(scores))
        return candidates[int(np.argmax(utilities + self._rng.gumbel(size=len(utilities))))]


def _gap(data: Any, model: Any, clique: Clique) -> float:
    """Sum of absolute differences between the true table and the model's."""
    return float(np.abs(np.asarray(data.project(clique).datavector()) - _table(model, clique)).sum())


def _table(model: Any, clique: Clique) -> NDArray[np.float64]:
    """The model's counts. Two columns that no measurements join are independent, which spares mbi a compilation."""
    import networkx

    joined = networkx.Graph()
    for measured in model.cliques:
        networkx.add_path(joined, measured)
    if len(clique) == 2 and not networkx.has_path(joined, *clique):
        first, second = (np.asarray(model.project((name,)).datavector()) for name in clique)
        return np.outer(first, second).ravel() / float(model.total)
    return np.asarray(model.project(clique).datavector())


def _is_within(clique: Clique, held: set[Clique]) -> bool:
    return any({*clique} <= {*other} for other in held)


def _pooled(is_rare: NDArray[np.bool_]) -> NDArray[np.int64]:
    """New numbers for values: the frequent ones in their order, then one for all rare ones."""
    return np.where(is_rare, (~is_rare).sum(), np.cumsum(~is_rare) - 1)
