"""Slow twins of rulers: where a range is cut by the definition, and the law of the shapes of trees along it.

Numbers are Python's, ranges are pairs, and a tree is the set of its ranges. Only rate, cutoff and decay are taken from
a plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction

from support.output_laws import tail

Range = tuple[int, int]
Cutter = Callable[[int, int], int]
Shape = tuple[Range, ...]

_STEPS = sorted({part * 10**power for power in range(20) for part in (1, 2, 5)}, reverse=True)


def number_cuts(zero: int, unit: Fraction = Fraction(1)) -> Cutter:
    """The cut of a range of cells, the k-th of which after `zero` holds k units."""
    digits = unit
    while digits.denominator != 1 or digits.numerator % 10 == 0:
        digits = digits * 10 if digits.denominator != 1 else digits / 10

    def cut(low: int, high: int) -> int:
        begin, end = low - zero, high - zero
        if begin < 0 < end:
            return zero
        sign = 1 if begin >= 0 else -1
        near, far = sorted((abs(begin), abs(end)))
        near = max(near, 1)
        if far > 20 * near:
            tens = [k for k in range(near, far) if _is_power(k, digits.numerator) and begin < sign * k < end]
            if tens:
                # log(far near / k^2), whatever its sign, as a fraction: the larger of the quotient and its inverse.
                away = {k: max(Fraction(near * far, k * k), Fraction(k * k, near * far)) for k in tens}
                return zero + sign * min(tens, key=lambda k: (away[k], k))
        reach = max(1, (end - begin) // 4)
        window = range(begin + reach, end - reach + 1)
        middle = begin + (end - begin) // 2
        for step in _STEPS:
            round_ones = [k for k in window if k * digits.numerator % step == 0]
            if round_ones:
                return zero + min(round_ones, key=lambda k: (abs(k - middle), -k))
        return zero + middle

    return cut


def _is_power(k: int, digits: int) -> bool:
    """Whether k units are the first to reach a power of ten."""
    return any((k - 1) * digits < 10**power <= k * digits for power in range(len(str(k * digits))))


def shape_law(
    counts: Sequence[int], cutter: Cutter, *, max_levels: int, rate: float, cutoff: int, decay: int
) -> dict[Shape, float]:
    """Chance of every tree along a ruler: a range of two cells or more splits if its noisy score is above the cutoff.

    The score on level k is the larger of count - k decay and cutoff - decay.
    """

    def law(low: int, high: int, level: int) -> dict[Shape, float]:
        whole: Shape = ((low, high),)
        if high - low == 1 or level == max_levels:
            return {whole: 1.0}
        score = max(sum(counts[low:high]) - level * decay, cutoff - decay)
        shapes: dict[Shape, float] = defaultdict(float)
        shapes[whole] = tail(rate, score - cutoff)
        splits = tail(rate, cutoff - score + 1)
        cut = cutter(low, high)
        below, above = law(low, cut, level + 1), law(cut, high, level + 1)
        for left, p in below.items():
            for right, q in above.items():
                shapes[left + right] += splits * p * q
        return shapes

    return dict(law(0, len(counts), 0))
