"""Parameters as people give them, turned into the whole numbers that a plan is made of."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from spinney.errors import ParameterError
from spinney.partition.plan import LARGEST_SETTING
from spinney.privacy.budget import parse_fraction


def parse_cutoff(cutoff: Any) -> int:
    """The largest noisy score that does not split: integers are above a number where they are above its floor."""
    return _in_range(math.floor(parse_fraction(cutoff, "cutoff")), cutoff, "cutoff")


def parse_threshold(threshold: Any) -> int:
    """The smallest noisy count that is released: at least the threshold, and at least 1 (an empty bin says nothing)."""
    return max(1, _in_range(math.ceil(parse_fraction(threshold, "threshold")), threshold, "threshold"))


def _in_range(number: int, given: Any, name: str) -> int:
    if not 0 <= number < LARGEST_SETTING:
        raise ParameterError(f"{name}={given} is not in 0..2^60")
    return number


def checked_rows(n_rows: Any) -> int:
    if isinstance(n_rows, bool) or not isinstance(n_rows, Integral) or n_rows < 1:
        raise ParameterError(f"assumed_rows={n_rows!r} is not a positive whole number")
    return int(n_rows)
