"""Trains DP-MERF's generator on a released embedding. Sees nothing private.

The embedding holds, for every class, the mean of cos(w·x) and sin(w·x) over its rows, for many public frequencies w. A
step draws a batch of classes and noise, lets the network make rows of them, embeds these in the same way and moves the
network's weights to bring the two embeddings together:

    loss = || embedding - embedding of the batch ||^2,     Adam, batch normalisation as in the published code.

At the end the normalisation is frozen at the statistics of one large batch and folded into the layers, so that rows are
drawn one by one. Needs JAX and optax: spinney[baselines].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.machine import load_optional
from spinney.progress import progress
from spinney.release.points import Floats, Generator, class_marks

N_NOISE = 10
_STEPS_PER_CALL = 100
_FROZEN_AT = 1 << 14
_TINY = 1e-5  # added to variances, as every library of networks does

# Taylor's coefficients of sin(u)/u and cos(u) in u^2: off by less than 1e-7 for |u| <= pi/2.
_SIN = [(-1) ** i / math.factorial(2 * i + 1) for i in range(6)]
_COS = [(-1) ** i / math.factorial(2 * i) for i in range(7)]


def train_generator(
    embedding: Floats,
    frequencies: Floats,
    class_shares: Floats,
    *,
    candidates: Floats,
    n_steps: int,
    batch: int,
    learning_rate: float,
    seed: int,
) -> Generator:
    """The generator whose rows, embedded, come near the released embedding.

    Args:
        embedding: for every class the mean features of its rows (n_classes, 2 n_frequencies), cosines first, so
            scaled that a row's features have norm 1.
        frequencies: (n_frequencies, n_columns), public.
        class_shares: positive, adding up to 1.
        candidates: points, one of which the rows are about before training: the densest by the embedding. Where no
            real row is within a few bandwidths of any, nothing pulls and nothing is learnt.
        n_steps: gradient steps.
        batch: rows made in each step.
        learning_rate: Adam's.
        seed: repeats the same training.
    """
    jax = load("jax")
    n_columns = frequencies.shape[1]
    sizes = (N_NOISE + len(class_shares) - 1, 4 * n_columns, 2 * n_columns, n_columns)
    start, advance = _programs(batch, learning_rate)
    rng, key = np.random.default_rng(seed), jax.random.key(seed)
    network = _first_network(sizes, rng)
    network[-1]["offsets"] += np.float32(_densest(candidates, embedding, frequencies, class_shares))
    state = (network, start(network))
    turns = np.float32(frequencies.T / (2 * math.pi))
    goal = (np.float32(embedding), turns, np.float32(class_shares))
    for done in progress(range(0, n_steps, _STEPS_PER_CALL), "training the generator", unit="x 100 steps"):
        state = advance(state, goal, key, done, min(done + _STEPS_PER_CALL, n_steps))
        jax.block_until_ready(state)
    return _frozen(state[0], class_shares, rng)


def _densest(candidates: Floats, embedding: Floats, frequencies: Floats, class_shares: Floats) -> Floats:
    """The candidate with the largest product of its features and those of all rows, a noisy kernel density."""
    phases = candidates @ frequencies.T
    densities = np.hstack([np.cos(phases), np.sin(phases)]) @ (class_shares @ embedding)
    densest: Floats = candidates[np.argmax(densities)]
    return densest


def load(module: str) -> Any:
    """A library of the extra, or an error that names the extra."""
    return load_optional(module, "this rival system", extra="baselines")


@lru_cache(maxsize=8)
def _programs(batch: int, learning_rate: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The optimiser's start, and many steps at once; compiled once per shape."""
    jax, jnp, optax = load("jax"), load("jax.numpy"), load("optax")
    optimiser, waves = optax.adam(learning_rate), _waves(jax, jnp)

    def fresh(key: Any, shares: Any) -> tuple[Any, Any]:
        """Classes as one mark in a row (batch, n_classes), and the network's input."""
        class_key, noise_key = jax.random.split(key)
        marks = jax.nn.one_hot(jax.random.categorical(class_key, jnp.log(shares), shape=(batch,)), len(shares))
        return marks, jnp.concatenate([jax.random.normal(noise_key, (batch, N_NOISE)), marks[:, 1:]], axis=1)

    def run(network: Any, values: Any) -> Any:
        """The network's rows; each normalisation uses the means and variances of its batch."""
        for layer in network[:-1]:
            values = values @ layer["weights"] + layer["offsets"]
            mean, variance = values.mean(axis=0), values.var(axis=0)
            values = (values - mean) / jnp.sqrt(variance + _TINY) * layer["gain"] + layer["shift"]
            values = jnp.maximum(values, 0)
        return values @ network[-1]["weights"] + network[-1]["offsets"]

    def loss(network: Any, goal: Any, key: Any) -> Any:
        embedding, turns, shares = goal
        marks, inputs = fresh(key, shares)
        cosines, sines = waves(jnp.matmul(run(network, inputs), turns, precision="highest"))
        by_class = (marks / (batch * shares)).T / math.sqrt(turns.shape[1])
        made = jnp.concatenate([by_class @ cosines, by_class @ sines], axis=1)
        return jnp.sum((embedding - made) ** 2)

    def advance(state: Any, goal: Any, key: Any, first: Any, last: Any) -> Any:
        def step(i: Any, state: Any) -> Any:
            network, memory = state
            slope = jax.grad(loss)(network, goal, jax.random.fold_in(key, i))
            change, memory = optimiser.update(slope, memory)
            return optax.apply_updates(network, change), memory

        return jax.lax.fori_loop(first, last, step, state)

    return optimiser.init, jax.jit(advance)


def _waves(jax: Any, jnp: Any) -> Any:
    """Cosine and sine of angles in turns: by half-angle series without branches, ten times as fast as calls."""

    def waves(turns: Any) -> tuple[Any, Any]:
        half = math.pi * (turns - jnp.round(turns))  # within ±pi/2
        square = half * half
        sine, cosine = half * _series(_SIN, square), _series(_COS, square)
        return 1 - 2 * sine * sine, 2 * sine * cosine

    def slopes(places: Any, moves: Any) -> tuple[Any, Any]:
        cosines, sines = with_slopes(places[0])
        angles = 2 * math.pi * moves[0]
        return (cosines, sines), (-sines * angles, cosines * angles)

    with_slopes = jax.custom_jvp(waves)
    with_slopes.defjvp(slopes)
    return with_slopes


def _series(coefficients: list[float], x: Any) -> Any:
    total = coefficients[-1]
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def _first_network(sizes: tuple[int, ...], rng: np.random.Generator) -> list[dict[str, NDArray[np.float32]]]:
    """Weights and offsets uniform within ±1/sqrt(n_in), normalisations that change nothing."""
    network: list[dict[str, NDArray[np.float32]]] = []
    for n_in, n_out in pairwise(sizes):
        reach = 1 / math.sqrt(n_in)
        layer = {"weights": rng.uniform(-reach, reach, (n_in, n_out)), "offsets": rng.uniform(-reach, reach, n_out)}
        if len(network) < len(sizes) - 2:
            layer |= {"gain": np.ones(n_out), "shift": np.zeros(n_out)}
        network.append({name: array.astype(np.float32) for name, array in layer.items()})
    return network


def _frozen(network: list[dict[str, Any]], class_shares: Floats, rng: np.random.Generator) -> Generator:
    """The generator whose normalisations keep the means and variances that they see in one large batch."""
    classes = rng.choice(len(class_shares), size=_FROZEN_AT, p=class_shares / class_shares.sum())
    values = np.hstack([rng.standard_normal((_FROZEN_AT, N_NOISE)), class_marks(classes, len(class_shares))])
    layers = []
    for layer in network:
        parts = {name: np.asarray(array, dtype=np.float64) for name, array in layer.items()}
        weights, offsets = parts["weights"], parts["offsets"]
        if "gain" in parts:
            values = values @ weights + offsets
            mean, gain = values.mean(axis=0), parts["gain"] / np.sqrt(values.var(axis=0) + _TINY)
            values = np.maximum((values - mean) * gain + parts["shift"], 0)
            weights, offsets = weights * gain, (offsets - mean) * gain + parts["shift"]
        layers.append((weights, offsets))
    return Generator(tuple(layers), class_shares)
