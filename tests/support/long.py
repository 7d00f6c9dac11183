"""How deep tests look: as deep as minutes allow in `make test`, and deeper in `make test-long`.

Tests marked `long` are run by `make test-long` alone; others look at fewer cases in `make test`, by `cases` where they
count them themselves, and by `KEPT` where each case is a test. What is in `KEPT` took the most processor time of all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

IS_LONG = os.environ.get("SPINNEY_LONG_TESTS") == "1"


def cases(short: int, long: int) -> int:
    """How many cases a test looks at: `short` of them in `make test`, `long` in `make test-long`."""
    return long if IS_LONG else short


def spread(names: Sequence[str], n_kept: int) -> set[str]:
    """So many of the names, spread by the golden ratio, so that they differ in every parameter that they have."""
    order = sorted(range(len(names)), key=lambda place: place * 0.6180339887498949 % 1)
    return {names[place] for place in order[:n_kept]}


# Of tests with many cases, or long ones: how many cases `make test` runs; all others are long.
KEPT: dict[str, int] = {}
