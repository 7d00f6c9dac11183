"""Weights of codes in a hierarchy, from noisy counts of all groups and codes. Sees released numbers only.

What a group holds is shared out among its children: their counts are fitted to the group's total, those that stand out
of the noise keep theirs, and the rest is even over the codes of all others. So a rare code costs its group no noise,
and what it holds stays among its siblings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.column_model import Floats
from spinney.schema.code_levels import CodeLevels

# A group or a code stands out above this many standard deviations of its noise.
STANDS_OUT = 3.0


def code_weights(
    levels: CodeLevels, noisy_groups: Sequence[Floats], noisy_codes: Floats, noise_std: float, total: float
) -> Floats:
    """What every code weighs, and null behind them where it was counted; they add up to `total`."""
    has_null = len(noisy_codes) > levels.n_codes
    null_weight = 0.0
    if has_null:  # counted with the coarsest groups and with the codes
        noisy_null = (float(noisy_groups[0][-1]) + float(noisy_codes[-1])) / 2
        null_weight = min(max(noisy_null, 0.0), total)
    held = np.array([total - null_weight])
    for level, noisy in enumerate((*noisy_groups, noisy_codes)):
        parents, sizes = levels.parents(level), levels.sizes(level)
        held = _shared_out(held, noisy[: len(parents)], parents, sizes, noise_std)
    return np.append(held, null_weight) if has_null else held


def _shared_out(
    held: Floats, noisy: Floats, parents: NDArray[np.int64], sizes: NDArray[np.int64], std: float
) -> Floats:
    """What groups hold, shared out among their children by noisy counts, which are fitted to what there is."""
    n_parents = len(held)
    lacking = held - np.bincount(parents, weights=noisy, minlength=n_parents)
    fitted = noisy + (lacking / np.bincount(parents, minlength=n_parents))[parents]
    is_out = (fitted > STANDS_OUT * std) & (held[parents] > 0)
    out = np.bincount(parents, weights=fitted * is_out, minlength=n_parents)
    n_rest = np.bincount(parents, weights=sizes * ~is_out, minlength=n_parents)
    rest = np.where(n_rest > 0, np.clip(held - out, 0.0, None), 0.0)
    scale = np.divide(held - rest, out, out=np.zeros_like(out), where=out > 0)
    each = np.divide(rest, n_rest, out=np.zeros_like(rest), where=n_rest > 0)
    return np.where(is_out, fitted * scale[parents], each[parents] * sizes)
