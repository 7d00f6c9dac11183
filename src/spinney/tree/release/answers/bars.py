"""Where a tree cut a column: the values at which its leaves begin, so that bars cut as few leaves as can be."""

from __future__ import annotations

import numpy as np

from spinney.tree.release.answers.leaves import Floats


def spread_starts(least: Floats, most: int) -> list[float]:
    """Where at most so many ranges begin that hold about as many beginnings of leaves each. By geometry alone."""
    begins = np.sort(least[np.isfinite(least)])
    if not len(begins):
        return []
    places = np.linspace(0, len(begins), most + 1)[1:-1].astype(np.int64)
    return [float(start) for start in np.unique(begins[places]) if start > begins[0]]
