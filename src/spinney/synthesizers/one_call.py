"""`synthesize`: a private table in, a synthetic one out, in one call."""

from __future__ import annotations

from typing import Any

from spinney.errors import ParameterError
from spinney.privacy.ledger import Ledger
from spinney.schema.table import Schema
from spinney.synthesizers.tree import KDTreeSynthesizer


def synthesize(
    frame: Any,
    schema: Schema,
    *,
    epsilon: Any = 1,
    n_rows: int | None = None,
    seed: int | None = None,
    ledger: Ledger | None = None,
    **options: Any,
) -> Any:
    """Synthetic rows for a private table, by the default synthesizer.

    `options` go to `KDTreeSynthesizer`. Each call spends `epsilon` anew: keep a fitted model to sample from it often.
    """
    unknown = sorted(set(options) - set(KDTreeSynthesizer().get_params()))
    if unknown:
        raise ParameterError(f"{unknown[0]!r} is not a parameter of synthesize or of KDTreeSynthesizer")
    return KDTreeSynthesizer(epsilon, **options).fit(frame, schema, ledger=ledger).sample(n_rows, seed=seed)
