"""What all charges of a population cost together: by addition, and by their loss distributions composed as one.

The sum is what limits are held to: it is a bound whatever was chosen in view of what (composition.proof.md, filters).
The composed figure is smaller where many Gaussian releases were made. It is a bound where the parts of all releases
were settled before the first of them, and is shown for information: nothing is refused or granted by it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from spinney.privacy.budget import Unit
from spinney.privacy.events import ComposedRelease, Event, total_delta, total_epsilon
from spinney.privacy.parts import LARGEST_TIMES, GaussianVector, Part

MOST_PARTS = 128
_STEPS = 2_000


@dataclass(frozen=True, slots=True)
class Together:
    """(epsilon, delta) of several composed releases taken as one, and of everything else by addition.

    `epsilon` is None where working it out would take too long; the sum of all charges holds all the same.
    """

    epsilon: Fraction | None
    delta: Fraction
    n_composed: int


def composed_together(events: Iterable[Event], unit: Unit) -> Together | None:
    """What events cost together; None where that is no less than their sum."""
    from spinney.privacy.composition import LARGEST_WORK, composing_work

    events = tuple(events)
    composed = [event for event in events if isinstance(event, ComposedRelease)]
    if len(composed) < 2:
        return None
    parts = _merged(part for event in composed for part in event.parts)
    if len(parts) > MOST_PARTS or composing_work(parts, unit) > LARGEST_WORK:
        return Together(None, total_delta(events), len(composed))
    epsilon = _least_epsilon(parts, total_epsilon(composed), total_delta(composed), unit)
    if epsilon is None:
        return None
    others = total_epsilon(events) - total_epsilon(composed)
    return Together(epsilon + others, total_delta(events), len(composed))


def _merged(parts: Iterable[Part]) -> list[Part]:
    """Parts of one law as one part with more repetitions: they compose alike, and faster."""
    times: dict[Part, int] = defaultdict(int)
    for part in parts:
        # A vector is one by its kind: repeated ones stay apart.
        alone = part if isinstance(part, GaussianVector) else replace(part, times=1, note="", stage=None)
        times[replace(alone, note="", stage=None)] += part.times
    merged: list[Part] = []
    for part, n in times.items():
        if isinstance(part, GaussianVector):
            merged += [part] * n
            continue
        merged += [replace(part, times=min(n - taken, LARGEST_TIMES)) for taken in range(0, n, LARGEST_TIMES)]
    return merged


def _least_epsilon(parts: list[Part], most: Fraction, delta: Fraction, unit: Unit) -> Fraction | None:
    """The smallest epsilon of a fine grid at which the parts together are certainly within delta."""
    from spinney.privacy.composition import composed_delta, composed_deltas

    grid = float(most) * np.arange(1, _STEPS + 1, dtype=np.float64) / _STEPS
    within = np.flatnonzero(composed_deltas(parts, grid, unit) <= float(delta))
    for place in within[:3]:
        epsilon = most * int(place + 1) / _STEPS
        if epsilon < most and composed_delta(parts, epsilon, unit) <= delta:
            return epsilon
    return None
