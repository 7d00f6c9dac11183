"""How deep tests look: as deep as minutes allow in `make test`, and deeper in `make test-long`.

Tests marked `long` are run by `make test-long` alone; others look at fewer cases in `make test`.
"""

from __future__ import annotations

import os

IS_LONG = os.environ.get("SPINNEY_LONG_TESTS") == "1"


def cases(short: int, long: int) -> int:
    """How many cases a test looks at: `short` of them in `make test`, `long` in `make test-long`."""
    return long if IS_LONG else short
