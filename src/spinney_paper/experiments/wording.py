"""Numbers and tables as Markdown, the same way on every page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, n_names: int = 1) -> str:
    """A table with its first columns, of names, to the left and numbers to the right."""
    lines = [_row(head), _row([*["---"] * n_names, *["---:"] * (len(head) - n_names)])]
    return "\n".join([*lines, *(_row(row) for row in rows)])


def number(value: float) -> str:
    """Three significant digits, without an exponent where that is short."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size < -5:
        return f"{value:.1e}"
    return f"{value:,.{max(0, 2 - size)}f}"


def sentence_case(text: str) -> str:
    """With a capital first letter; the rest stays."""
    return text[:1].upper() + text[1:]


def with_range(mean: float, low_high: tuple[float, float]) -> str:
    """A mean with the smallest and the largest value."""
    if not math.isfinite(mean):
        return "–"
    return f"{number(mean)} ({number(low_high[0])}–{number(low_high[1])})"


def with_spread(values: NDArray[np.float64]) -> str:
    """A mean with the standard deviation of its repetitions, to two digits."""
    mean, sd = float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0
    if sd <= 1e-9 * abs(mean):  # the same number every time, but for rounding
        return number(mean)
    return f"{number(mean)} ± {sd:.{max(0, 1 - math.floor(math.log10(sd)))}f}"


def points(sentences: Iterable[str]) -> str:
    """Findings one below the other; empty ones are left out."""
    return "\n".join(f"- {sentence}" for sentence in sentences if sentence)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
