"""The values of a column as numbers, which is what every kind of column makes of what it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Physical:
    """One column as numbers: reals as floats with NaN for null, everything else as int64 with a null mask."""

    values: NDArray[Any]
    is_null: NDArray[np.bool_] | None = None
