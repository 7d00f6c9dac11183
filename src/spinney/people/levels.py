"""Hidden levels: for each person and column, a plausible value of what the person's rows have in common. SENSITIVE.

Rows of a person are alike because of something that no column tells. It is told here by a level, drawn for each person
given their own rows: of a number, a place on a normal scale to which rows add their own chance, cut into a few bins; of
a category, a favourite. The level of a person is a function of their rows, of coins of their own and of released
numbers, so it is one more column of a table with one row a person (people.proof.md, derived columns). A level is drawn,
not computed: the mean of a few rows contains the rows themselves, and rows drawn from it would be too much alike.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.people.alike import ColumnLaw

Floats = NDArray[np.float64]

N_BINS = 8
# Places in a distribution function are kept this far from its ends.
_MARGIN = 1e-4


def draw_levels(
    states: NDArray[Any],
    starts: NDArray[np.int64],
    law: ColumnLaw,
    correlation: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """The level of every person in one column: a bin, or a state of the column (n_persons,). SENSITIVE.

    Args:
        states: of all rows in this column, in the order of persons.
        starts: where every person's rows begin, and the number of all rows.
        law: the released law of the states.
        correlation: the released correlation of two rows of a person.
        rng: coins of the persons.
    """
    levels = np.empty(len(starts) - 1, dtype=np.int64)
    if law.is_ordered:
        places = np.clip(law.places(), _MARGIN, 1 - _MARGIN)
        scores = np.array([NormalDist().inv_cdf(place) for place in places])
        _draw_bins(states, starts, scores, correlation, rng.standard_normal(len(levels)), levels)
    else:
        shares = np.maximum(law.shares, 1e-12)
        likeness = math.sqrt(correlation)
        gains = np.log1p(likeness / ((1 - likeness) * shares))
        _draw_favourites(states, starts, np.log(shares), gains, rng.random(len(levels)), levels)
    return levels


@compiled
def _draw_bins(
    states: NDArray[np.uint8],
    starts: NDArray[np.int64],
    scores: Floats,
    correlation: float,
    normals: Floats,
    levels: NDArray[np.int64],
) -> None:
    """Of m rows with a mean score x, the level is normal around k x, k = m r / (1 + (m - 1) r), of variance r (1-k)."""
    for person in range(levels.size):
        m = starts[person + 1] - starts[person]
        total = 0.0
        for row in range(starts[person], starts[person + 1]):
            total += scores[states[row]]
        share = m * correlation / (1 + (m - 1) * correlation) if m > 0 else 0.0
        mean = share * total / m if m > 0 else 0.0
        level = mean + math.sqrt(correlation * (1 - share)) * normals[person]
        place = 0.5 * (1 + math.erf(level / math.sqrt(2 * correlation)))
        levels[person] = min(int(N_BINS * place), N_BINS - 1)


@compiled
def _draw_favourites(
    states: NDArray[np.uint8],
    starts: NDArray[np.int64],
    log_shares: Floats,
    gains: Floats,
    coins: Floats,
    levels: NDArray[np.int64],
) -> None:
    """A favourite has a chance proportional to its share, times 1 + l / ((1 - l) share) for each row that has it."""
    n_states = log_shares.size
    chances = np.empty(n_states)
    for person in range(levels.size):
        chances[:] = log_shares
        for row in range(starts[person], starts[person + 1]):
            chances[states[row]] += gains[states[row]]
        top = chances.max()
        total = 0.0
        for state in range(n_states):
            chances[state] = math.exp(chances[state] - top)
            total += chances[state]
        left = coins[person] * total
        level = 0
        while level < n_states - 1 and left >= chances[level]:
            left -= chances[level]
            level += 1
        levels[person] = level
