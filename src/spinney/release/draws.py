"""Several synthetic tables from one release, whose spread carries the noise: how many, and by which random numbers.

A table that is drawn from a release hides how far its noise carries. So each of several tables is drawn from a model
of its own, fitted to the released numbers with fresh noise of the same law. Draw k of a seed is the same table however
many there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.errors import ParameterError
from spinney.release.seeds import checked_seed
from spinney.shown import as_given

# Analyses of one table are wrong about their own error, and very many models take very long.
_MOST_DRAWS = 1_000
# What tells the streams of draws from all others that the same words may start: "draws" in ASCII.
_OURS = 0x6472617773
_N_WORDS = 4


def checked_draws(draws: Any) -> int:
    """How many tables to draw, at least two; a ParameterError otherwise."""
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 1:
        raise ParameterError(f"draws={as_given(draws)} is not a whole number of tables; 20 are enough for most")
    if draws == 1:
        raise ParameterError(
            "draws=1 is one table, which has no spread to read an error from; leave draws out for the best single "
            "table, or ask for draws=20"
        )
    if draws > _MOST_DRAWS:
        raise ParameterError(f"draws={int(draws):,} is more than {_MOST_DRAWS:,}; 20 are enough for most analyses")
    return int(draws)


def refuse_parts_of_draws(parts: Any) -> None:
    """Raise a ParameterError where several tables are asked for, and parts of each."""
    if parts is not None:
        raise ParameterError("draws and parts are both given; draw several tables, or one table in parts")


def draw_generators(seed: Any, n_draws: int) -> list[np.random.Generator]:
    """A stream of random numbers for each draw; of a generator a few words are drawn."""
    words = checked_seed(seed).bit_generator.random_raw(_N_WORDS).tolist()
    return [np.random.default_rng([_OURS, *words, draw]) for draw in range(n_draws)]
