"""How the seed of a draw becomes the generator that draws it.

A user's seed is often used twice: for the rows, and for what is done with them, a subsample or a shuffle. Were both to
take the stream of `default_rng(seed)`, they would take the same numbers, and rows that were put in an order by a
permutation would be put back by the next: the first thousand of a shuffle are then of one class. So rows have a stream
of their own, which the first words of the seed's and a constant start. Of a generator the words are drawn, so its next
draw gives other rows and what comes out of it afterwards has nothing to do with them.

Releases from before took the seed's stream itself. Files say which of the two theirs is, and draw what they drew.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from spinney.errors import ParameterError
from spinney.shown import as_given

Stream = Literal["given", "own"]
STREAMS: tuple[Stream, ...] = get_args(Stream)

# What tells a stream for rows from all others that the same words may start: "spinney" in ASCII.
_OURS = 0x7370696E6E6579
_N_WORDS = 4


def checked_seed(seed: Any) -> np.random.Generator:
    """The generator of a seed as numpy has it, or a ParameterError."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ParameterError(f"seed={as_given(seed)} is not a non-negative whole number") from None


def row_generator(seed: Any, stream: Stream) -> np.random.Generator:
    """What draws the rows of a seed, or a ParameterError."""
    given = checked_seed(seed)
    if stream == "given":
        return given
    return np.random.default_rng([_OURS, *given.bit_generator.random_raw(_N_WORDS).tolist()])
