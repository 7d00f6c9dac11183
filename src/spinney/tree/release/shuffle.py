"""A random order of many items, in parts that fit into a cache.

Every item is dealt to one of the parts at random, as cards are dealt to players, and every part is shuffled by itself:
all orders are equally likely (Rao 1961, Sandelius 1962). Shuffling all items at once makes the same promise, but
reaches all over memory at every step and cannot be divided among threads.

Dealing and shuffling go by streams of random numbers, one for each part. How many there are depends on the number of
items alone, so a seed gives the same order on any number of cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.parallel import each

# Items in a part: a column of numbers of this length, and the order of its rows, fit into a core's own cache.
PART_ITEMS = 1 << 16
# Parts grow beyond this many: dealing writes to all of them at once.
MOST_PARTS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Items that take the places first, first + 1, ... in an order that `places` draws."""

    first: int
    items: NDArray[Any]  # whole numbers, ascending
    stream: np.random.Generator

    @property
    def span(self) -> slice:
        """Where the part lies among all places."""
        return slice(self.first, self.first + self.items.size)

    def places(self) -> NDArray[np.int64]:
        """A place for every item, counted from the first of the part. Draws anew at every call."""
        return _shuffled(self.stream.random(self.items.size))


def deal(
    n_items: int, rng: np.random.Generator, *, part_items: int | None = None, most_parts: int = MOST_PARTS
) -> list[Part]:
    """The items 0, 1, ..., n - 1 in parts, each item in a part at random; parts may differ in size, or be empty.

    There are about `part_items` in a part, `PART_ITEMS` unless told, or more where parts would be too many.
    """
    whole = np.int32 if n_items < 2**31 else np.int64
    n_parts = min(max(-(-n_items // (part_items or PART_ITEMS)), 1), most_parts)
    streams = rng.spawn(n_parts)
    if n_parts == 1:
        return [Part(0, np.arange(n_items, dtype=whole), streams[0])]
    # Stream k deals the k-th run of items; in each part, items of an earlier run come before those of a later one.
    starts = np.linspace(0, n_items, n_parts + 1).astype(np.int64)
    chosen = each(lambda stream, length: stream.integers(0, n_parts, length, dtype=np.uint16), streams, np.diff(starts))
    counts = np.stack(each(lambda parts: _counts(parts, n_parts), chosen), axis=1)  # (part, run)
    ends = np.cumsum(counts).reshape(counts.shape)
    next_places = np.ascontiguousarray((ends - counts).T)
    items = np.empty(n_items, dtype=whole)
    each(lambda run: _hand_out(int(starts[run]), chosen[run], next_places[run], items), range(n_parts))
    firsts = np.concatenate([[0], ends[:, -1]])
    return [Part(int(a), items[a:b], stream) for a, b, stream in zip(firsts, firsts[1:], streams, strict=False)]


@compiled
def _counts(parts: NDArray[np.uint16], n_parts: int) -> NDArray[np.int64]:
    counts = np.zeros(n_parts, dtype=np.int64)
    for i in range(parts.size):
        counts[parts[i]] += 1
    return counts


@compiled
def _hand_out(first: int, parts: NDArray[np.uint16], next_places: NDArray[np.int64], items: NDArray[Any]) -> None:
    """Put the items first, first + 1, ... at the next places of their parts."""
    for i in range(parts.size):
        items[next_places[parts[i]]] = first + i
        next_places[parts[i]] += 1


@compiled
def _shuffled(uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """The numbers below n in random order, from n uniform numbers: each takes the seat of an earlier one or its own."""
    order = np.empty(uniforms.size, dtype=np.int64)
    for i in range(uniforms.size):
        seat = np.int64(uniforms[i] * (i + 1))
        order[i] = order[seat]
        order[seat] = i
    return order
