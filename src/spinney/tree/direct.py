"""A bought answer: one or two sums over the rows of a table, with exact noise, charged to the ledger.

    count           how many rows meet conditions                         one number; a row changes it by 1
    proportion      rows that meet them, and rows among which             two numbers; a row changes each by 1 at most
    mean            how many rows, and the sum of a column on a public    two numbers, in steps that a row changes
                    grid of whole steps                                   by the same at most

One number takes discrete Laplace noise, two take sup-norm noise, which costs what the larger of them alone would.
Intervals follow from the noise law and nothing else, so they hold whatever the rows are. The table is counted after
the charge. Proof: direct.proof.md; the labels [step 1] ... are its steps.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.privacy.entropy import Entropy, UnsafeSeededEntropy, brand_unless_system
from spinney.privacy.ledger import Charge, DiscreteLaplaceCounts, LeafMoments, Ledger
from spinney.privacy.noise.discrete import SMALLEST_RATE, within_range
from spinney.privacy.noise.supnorm import sup_norm_noise

# Simulated noises behind an interval of a ratio, at least; more where the level asks for them.
_FEWEST_NOISES = 1_999
_MOST_NOISES = 1_000_000
_HALVINGS = 80


@dataclass(frozen=True, slots=True)
class Direct:
    """What is going to be bought, all of it public.

    Args:
        n_sums: 1 or 2.
        reach: by how much one row changes any of the sums at most, in their whole steps.
        unit_steps: the steps that are one row of the first sum; what an event states its sensitivity in.
        note: what the ledger says of it.
    """

    n_sums: int
    reach: int
    unit_steps: int
    note: str

    def rate(self, epsilon: Fraction) -> Fraction:
        return epsilon / self.reach

    def charge(self, epsilon: Fraction) -> Charge:
        if self.n_sums == 1:
            return DiscreteLaplaceCounts(epsilon, self.reach, self.note, stage="answer", times=1)
        return LeafMoments(epsilon, self.reach // self.unit_steps, self.note, stage="answer")


@dataclass(frozen=True, slots=True)
class NoisySums:
    """Sums with noise, in steps, and the rate of the noise per step. RELEASED."""

    noisy: tuple[int, ...]
    rate: Fraction

    def half_width(self, level: float) -> int:
        """The least t with P(|noise| > t) at most 1 - level, of a single sum: 2 a^(t+1) / (1 + a), a = exp(-rate)."""
        rate = float(self.rate)
        miss = math.log((1 - level) * (1 + math.exp(-rate)) / 2) * (1 + 1e-12)  # rounded towards a wider interval
        return max(0, math.ceil(-miss / rate) - 1)

    def ratio(self, level: float, *, low: float, high: float) -> tuple[float, float, float]:
        """The second sum over the first, and an interval that holds with probability `level` where it is in low..high.

        All ratios r for which |second - r first| is no larger than most of its noise can be [step 4]; the whole range
        where the first sum does not stand out from its noise.
        """
        first, second = self.noisy
        noises = self._simulated(level)
        rank = math.ceil(level * (len(noises) + 1)) - 1

        def excess(ratio: float) -> float:
            reach = np.partition(np.abs(noises[:, 1] - ratio * noises[:, 0]), rank)[rank]
            return abs(second - ratio * first) - float(reach)

        steepest = float(np.abs(noises[:, 0]).max())
        middle = min(max(second / first, low), high) if first > 0 else (low + high) / 2
        if first <= steepest:
            return middle, low, high
        ends = []
        for way in (-1.0, 1.0):
            near = second / first
            # |second - r first| outgrows the largest noise there, by more than rounding.
            far = near + way * (2 * (1 + abs(near)) * float(np.abs(noises).max()) + 1) / (first - steepest)
            for _ in range(_HALVINGS):
                half = (near + far) / 2
                near, far = (half, far) if excess(half) <= 0 else (near, half)
            ends.append(min(max(far, low), high))
        return middle, ends[0], ends[1]

    def _simulated(self, level: float) -> NDArray[np.float64]:
        """Fresh noises of the same law, repeatable from the released numbers: (n, 2)."""
        text = repr((self.noisy, self.rate)).encode()
        seed = int.from_bytes(hashlib.sha256(text).digest()[:8], "big")
        drawn = sup_norm_noise(self.rate, 2).draw(_n_noises(level), UnsafeSeededEntropy(seed))
        return drawn.astype(np.float64)


def _n_noises(level: float) -> int:
    return max(_FEWEST_NOISES, math.ceil(20 / (1 - level)))


def check_direct(direct: Direct, epsilon: Fraction, level: float) -> None:
    """Refuse, before anything is charged, noise that does not fit into whole numbers, and a level that is too high."""
    if direct.n_sums > 1 and _n_noises(level) > _MOST_NOISES:
        raise ParameterError(f"level={level} is too near 1 for a bought ratio; ask for at most 0.9999")
    if direct.rate(epsilon) < SMALLEST_RATE:
        raise ParameterError(f"epsilon={epsilon} asks for noise of a scale above 2^40; pay more for the answer")


def release_sums(
    count: Callable[[], Sequence[int]], *, direct: Direct, epsilon: Fraction, ledger: Ledger, entropy: Entropy
) -> NoisySums:
    """Sums of a table with noise. Charges `epsilon` first, then has them counted."""
    ledger.charge(direct.charge(epsilon))  # [step 1] charge before counting
    brand_unless_system(ledger, entropy, "answer")
    true_sums = np.array(count(), dtype=np.int64)  # [step 2]
    assert true_sums.shape == (direct.n_sums,)
    rate = direct.rate(epsilon)
    noise = sup_norm_noise(rate, direct.n_sums).draw(1, entropy)[0]
    noisy = within_range(true_sums + noise)  # [step 3]
    return NoisySums(tuple(int(number) for number in noisy), rate)
