"""MST and AIM on the same rows, budget and unit, built from the package mbi, which is not among our dependencies.

`pip install mbi==2.0.0` (it brings JAX) makes them available; without it they are left out, and that is said. What they
do is in `mechanisms.py`.

Both want categories, so every number is cut into the 32 bins by which marginals are scored: at quantiles, and, for
comparison with figures of others, into equal ones. That favours them: the bins follow the data, which costs them
nothing here and would cost a holder epsilon, and no resolution is lost in the score.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from benchmarks.forest import mechanisms
from benchmarks.forest.scores import Cut, Marginals

MISSING = "peers: skipped, for mbi is not installed; pip install mbi==2.0.0 (it brings JAX)"


@dataclass(frozen=True, slots=True)
class Peer:
    """One run: how long, on the wall and on the processors, and how far; no distances where it was stopped."""

    name: str
    seconds: float
    cpu_seconds: float
    tv1: float | None = None
    tv2: float | None = None
    note: str = ""
    cut: Cut = "quantiles"


def is_installed() -> bool:
    return find_spec("mbi") is not None


def run(
    name: str, marginals: Marginals, *, epsilon: float, delta: float, seed: int, limit: float, cut: Cut = "quantiles"
) -> Peer:
    """One mechanism by name, "MST" or "AIM", stopped between two rounds once `limit` seconds are over."""
    made = mechanisms.make(
        name,
        marginals.cells,
        marginals.sizes,
        epsilon=epsilon,
        delta=delta,
        unit="replace-one",
        seed=seed,
        limit=limit,
    )
    if made.codes is None:
        return Peer(name, made.seconds, made.cpu_seconds, note=f"stopped; {made.state}", cut=cut)
    found = marginals.distances(made.codes)
    return Peer(name, made.seconds, made.cpu_seconds, found.tv1, found.tv2, made.state, cut)
