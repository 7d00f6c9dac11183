"""What was asked of a column: in Python's own types, or, of a derived one, as values of its source."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from spinney.schema.rules.values import ValueSet


class Asked(NamedTuple):
    """What was asked of a derived column, and the values of its source that lead to it."""

    name: str
    wanted: Any
    allowed: ValueSet


def plain(wanted: Any) -> Any:
    """What was asked for in Python's own types; the nulls of pandas and numpy are None."""
    if isinstance(wanted, tuple):
        return tuple(plain(part) for part in wanted)
    if isinstance(wanted, (list, set, frozenset)):
        return [plain(part) for part in wanted]
    if isinstance(wanted, np.ndarray) and wanted.ndim == 0:
        wanted = wanted[()]
    if hasattr(wanted, "as_py"):  # a value of an Arrow table
        wanted = wanted.as_py()
    if type(wanted).__name__ in ("NAType", "NaTType") or (isinstance(wanted, np.datetime64) and np.isnat(wanted)):
        return None
    if isinstance(wanted, np.datetime64):
        moment = wanted.astype("datetime64[us]")
        return wanted if moment != wanted else moment.item()
    if isinstance(wanted, datetime) and hasattr(wanted, "to_pydatetime"):
        return wanted if getattr(wanted, "nanosecond", 0) else wanted.to_pydatetime()
    return wanted.item() if isinstance(wanted, np.generic) else wanted
