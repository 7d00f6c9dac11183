"""A slow twin of the trees of places: the law of their shapes, by recursion over sets of cells.

A node is the set of a place's possible cells that share a prefix of their code; codes are strings of bits. What decides
is taken from the definition: a node of two possible halves, below the fixed levels, at a bit that does not say null.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from support.output_laws import tail

Shape = tuple[str, ...]


def code_of(cells: tuple[int, ...], lattice: Any) -> str:
    """The code of a cell, bit by bit in the order of the lattice."""
    return "".join(str(cells[axis] >> (lattice.axes[axis].bits - 1 - bit) & 1) for axis, bit in lattice.order)


def shape_law(
    counts: Mapping[str, int], lattice: Any, *, n_fixed: int, rate: float, cutoff: int, decay: int
) -> dict[Shape, float]:
    """Chance of every tree over the possible cells, which are the keys of `counts`, by the prefixes of its leaves."""
    null_bits = [place for place, (axis, bit) in enumerate(lattice.order) if lattice.axes[axis].nullable and bit == 0]
    n_given = n_fixed + len(null_bits)

    def law(prefix: str, level: int) -> dict[Shape, float]:
        here = [code for code in counts if code.startswith(prefix)]
        depth = len(prefix)
        if depth == lattice.depth:
            return {(prefix,): 1.0}
        halves = [half for half in (prefix + "0", prefix + "1") if any(code.startswith(half) for code in here)]
        if len(halves) == 1:
            return law(halves[0], level)
        has_null = any(place < depth and prefix[place] == "1" for place in null_bits)
        shapes: dict[Shape, float] = defaultdict(float)
        splits, below = 1.0, level
        if depth not in null_bits and (has_null or depth >= n_given):
            score = max(sum(counts[code] for code in here) - level * decay, cutoff - decay)
            shapes[(prefix,)] = tail(rate, score - cutoff)
            splits, below = tail(rate, cutoff - score + 1), level + 1
        for left, p in law(halves[0], below).items():
            for right, q in law(halves[1], below).items():
                shapes[left + right] += splits * p * q
        return shapes

    return dict(law("", 0))
