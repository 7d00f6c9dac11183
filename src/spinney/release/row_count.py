"""A noisy number of rows: what is known of a table whose number of rows is private, and was counted with noise.

The noise is discrete Laplace of a known rate. Where a table is small for its epsilon, a released count may be far off,
or below 0, and a plan that took it for the number of rows would take the table for empty. What plans take is the number
to be expected: its mean given the noisy count, all numbers from 0 up being equally likely beforehand,

    (2 m + exp(-r m) / r) / (2 - exp(-r m)),     r the rate, m the noisy count, or 0 where that is below 0

which is 1 / r, the scale of the noise, where no rows show, and the count itself where it stands out. It is no number of
rows to draw: at a tiny epsilon the scale of the noise is millions. Where nothing else was counted, and the count is not
several standard deviations above 0, few rows are drawn, and a remark says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from spinney.release.entries import MOST_ROWS

# Where the plan on a card says what was counted.
NOISY_ROWS = "noisy_rows"
# A count stands out from so many standard deviations on: one of an empty table does so once in two thousand times.
_STANDS_OUT = 5.0
# So many rows are drawn at the most where a count says nothing.
_FEW_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class RowCount:
    """A noisy count of all rows, and the rate of its discrete Laplace noise. RELEASED."""

    noisy: int
    rate: Fraction

    @property
    def variance(self) -> float:
        """Of P(k) proportional to a^|k| with a = exp(-rate): 2a / (1 - a)^2."""
        rate = float(self.rate)
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    @property
    def noise_std(self) -> float:
        return math.sqrt(self.variance)

    @property
    def expected(self) -> int:
        """The number of rows that a plan is made for; at least 1, and no more than a table can have."""
        rate, seen = float(self.rate), float(max(self.noisy, 0))
        chance = math.exp(-rate * seen)
        return min(max(1, round((2 * seen + chance / rate) / (2 - chance))), MOST_ROWS)

    @property
    def stands_out(self) -> bool:
        """Whether the count says how many rows there are, noise aside."""
        return self.noisy >= _STANDS_OUT * self.noise_std

    @property
    def drawn(self) -> int:
        """How many rows a release has that counted nothing else: few, where the count may be noise alone."""
        return self.expected if self.stands_out else min(self.expected, _FEW_ROWS)

    def with_sum(self, total: float, variance: float) -> float:
        """The number of rows by this count and by another noisy one, each weighted by its precision."""
        precisions = 1 / max(self.variance, 1e-12), 1 / max(variance, 1e-12)
        return (self.noisy * precisions[0] + total * precisions[1]) / sum(precisions)


def noisy_rows_entry(count: RowCount | None) -> dict[str, int]:
    """What the plan on a card says of a count; nothing where none was bought."""
    return {} if count is None else {NOISY_ROWS: count.noisy}
