"""`synthesize`: a private table in, a synthetic one out, in one call."""

from __future__ import annotations

from typing import Any

from spinney.schema.table import Schema
from spinney.synthesizers.tree import KDTreeSynthesizer


def synthesize(
    frame: Any, schema: Schema, *, epsilon: Any = 1, n_rows: int | None = None, seed: int | None = None, **options: Any
) -> Any:
    """Synthetic rows for a private table, by the default synthesizer.

    `options` go to `KDTreeSynthesizer`. Each call spends `epsilon` anew: keep a fitted model to sample from it often.
    """
    return KDTreeSynthesizer(epsilon, **options).fit(frame, schema).sample(n_rows, seed=seed)
