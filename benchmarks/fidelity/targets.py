"""What is known elsewhere and what is wanted, beside what was measured.

Distances in five columns: the best of Balog et al.'s two algorithms and of the paper's tree, with settings chosen in
hindsight. In two: the paper's grid, its settings chosen in hindsight. Small samples: 10,000 independent rows.
"""

from __future__ import annotations

import numpy as np

from benchmarks.fidelity.distances import Distances
from benchmarks.fidelity.ranges import RIVALS, SMALL, Cell, geometric_mean
from benchmarks.harness import Result

# Dimensions, epsilon.
BEST_DISTANCES = {
    (5, "0.01"): 0.195,
    (5, "0.1"): 0.068,
    (5, "1"): 0.0205,
    (5, "10"): 0.0177,
    (2, "0.01"): 0.033,
    (2, "0.1"): 0.0064,
    (2, "1"): 0.0014,
}
WANTED_DISTANCES = BEST_DISTANCES | {(5, "0.01"): 0.126, (5, "0.1"): 0.026, (5, "1"): 0.0044, (5, "10"): 0.0016}
BEST_FEW_ROWS, WANTED_FEW_ROWS = 0.009, 0.0046
WANTED_RATIOS = {"UG": 0.5, "AG": 0.75, "PrivTree": 0.85}
WANTED_TIME_RATIO = 2.0

Line = tuple[Result, float | None]  # what was measured, and the best elsewhere


def distance_lines(distances: Distances) -> list[Line]:
    lines: list[Line] = [
        (
            Result(f"RKHS distance, D = {key[0]}, epsilon {key[1]}", float(np.mean(found)), WANTED_DISTANCES[key], ""),
            BEST_DISTANCES[key],
        )
        for key, found in distances.releases.items()
    ]
    few = Result(
        "RKHS distance of 10,000 rows, D = 5, epsilon 1", float(np.mean(distances.few_rows)), WANTED_FEW_ROWS, ""
    )
    return [*lines, (few, BEST_FEW_ROWS)]


def range_lines(cells: list[Cell]) -> list[Line]:
    lines: list[Line] = [
        (Result(f"range queries, error over {rival}'s", geometric_mean(c.ratio(rival) for c in cells), wanted, "x"), 1)
        for rival, wanted in zip(RIVALS, WANTED_RATIOS.values(), strict=True)
    ]
    small = [cell.ratio_to_best() for cell in cells if cell.areas == SMALL]
    return [*lines, (Result("small areas, error over the best of the three", geometric_mean(small), 1, "x"), 1)]


def time_lines(ratio: float) -> list[Line]:
    return [(Result("fit time over that of the tree without moments", ratio, WANTED_TIME_RATIO, "x"), None)]


def table(lines: list[Line]) -> str:
    """Measured, best elsewhere, wanted, verdict; one line each."""
    rows = [f"{'what':<52} {'measured':>9} {'elsewhere':>10} {'wanted':>10}"]
    for result, elsewhere in lines:
        known = "" if elsewhere is None else f"{elsewhere:g}"
        verdict = "ok" if result.is_met else "MISSED"
        rows.append(
            f"{result.what:<52} {result.measured:>9.3g} {known:>10} {'<= ' + format(result.wanted, 'g'):>10} {verdict}"
        )
    return "\n".join(rows)
