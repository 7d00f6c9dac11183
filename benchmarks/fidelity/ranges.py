"""Range queries: random boxes on maps, answered by Spinney's default and by three rivals at the same epsilon and unit.

A box has a random place, an area that is log-uniform within its class and a log-uniform aspect of 1/4 to 4 on the map
scaled to a square. As in Qardaji et al. the error of an answer is |answer - true| / max(true, n/1000). A cell is a map,
an epsilon and a class of areas; its error is the mean over boxes and runs, at least 0.0001 so that ratios exist.
Ratios are Spinney's error over a rival's, their geometric mean taken over cells. Spinney with focus="small-areas" is
measured beside its default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.fidelity.answers import Answers, Box, Corners, Floats, Points, RowAnswers, count_in_boxes
from benchmarks.fidelity.grids import adaptive_grid, uniform_grid
from benchmarks.fidelity.maps import Map
from benchmarks.fidelity.privtree import privtree
from spinney import KDTreeSynthesizer, Real, Schema
from spinney.privacy.entropy import Entropy, UnsafeSeededEntropy

EPSILONS = ("0.01", "0.1", "1")
SMALL = "0.01-0.1 %"
AREAS = {SMALL: (1e-4, 1e-3), "0.1-1 %": (1e-3, 1e-2), "1-10 %": (1e-2, 1e-1)}
N_BOXES = 400  # of each class
RIVALS = ("UG", "AG", "PrivTree")
OURS = "Spinney"
FOCUSED = "Spinney, small areas"

_SMALLEST_ERROR = 1e-4
_ROWS_PER_ROW = 10  # of a sample that stands for the release


@dataclass(frozen=True, slots=True)
class Cell:
    """Mean errors of all methods on one map, at one epsilon, for one class of areas."""

    map_name: str
    n_rows: int
    epsilon: str
    areas: str
    errors: dict[str, float]

    def ratio(self, rival: str) -> float:
        """Spinney's error over a rival's."""
        return self.errors[OURS] / self.errors[rival]

    def ratio_to_best(self) -> float:
        """Spinney's error over that of the best rival for this very cell."""
        return max(self.ratio(rival) for rival in RIVALS)

    def __str__(self) -> str:
        errors = "  ".join(f"{method} {self.errors[method]:8.4f}" for method in (*RIVALS, OURS))
        ratios = " / ".join(f"{self.ratio(rival):5.2f}" for rival in RIVALS)
        return f"  {self.map_name:<14} epsilon {self.epsilon:<5} {self.areas:<10}  {errors}   ratios {ratios}"


def spinney_focused(points: Points, box: Box, epsilon: Fraction, entropy: Entropy) -> Answers:
    """Spinney's tree with its focus on small areas."""
    return spinney_default(points, box, epsilon, entropy, focus="small-areas")


def spinney_default(
    points: Points, box: Box, epsilon: Fraction, entropy: Entropy, *, focus: str = "density"
) -> Answers:
    """Spinney's default tree. A release that cannot answer boxes itself is read off a sample of ten times n rows."""
    schema = Schema({name: Real(box.low[axis], box.high[axis]) for axis, name in enumerate(("x", "y"))})
    model = KDTreeSynthesizer(epsilon, focus=focus).fit(points, schema, entropy=entropy)
    if hasattr(model.release_, "range_counts"):
        return model.release_
    if model.card_.is_empty:
        return RowAnswers(np.empty((0, 2)), 0)
    return RowAnswers(model.sample(_ROWS_PER_ROW * len(points), seed=0), len(points))


METHODS: dict[str, Callable[[Points, Box, Fraction, Entropy], Answers]] = {
    "UG": uniform_grid,
    "AG": adaptive_grid,
    "PrivTree": privtree,
    OURS: spinney_default,
    FOCUSED: spinney_focused,
}


def random_boxes(box: Box, areas: tuple[float, float], n_boxes: int, seed: int) -> tuple[Corners, Corners]:
    """Lower and upper corners of boxes whose areas are between two parts of the map."""
    rng = np.random.default_rng(seed)
    area = np.exp(rng.uniform(*np.log(areas), n_boxes))
    aspect = np.exp(rng.uniform(-np.log(4), np.log(4), n_boxes))
    sides = np.stack([np.sqrt(area * aspect), np.sqrt(area / aspect)], axis=1)
    low = rng.random((n_boxes, 2)) * (1 - sides)
    return box.from_unit(low), box.from_unit(low + sides)


def relative_errors(answers: Floats, true_counts: Floats, n_rows: int) -> Floats:
    """|answer - true| / max(true, n/1000)."""
    return np.abs(answers - true_counts) / np.maximum(true_counts, n_rows / 1000)


def compare(maps: Iterable[Map], *, n_runs: int, n_boxes: int = N_BOXES) -> list[Cell]:
    """All cells of all maps, printed as they are made."""
    cells = []
    for place in maps:
        print(f"  {place.name}: {len(place.points):,} rows", flush=True)
        for epsilon in EPSILONS:
            for cell in _cells(place, epsilon, n_runs, n_boxes):
                print(cell, flush=True)
                cells.append(cell)
    return cells


def _cells(place: Map, epsilon: str, n_runs: int, n_boxes: int) -> list[Cell]:
    boxes = [random_boxes(place.box, areas, n_boxes, seed) for seed, areas in enumerate(AREAS.values())]
    low, high = (np.concatenate(corners) for corners in zip(*boxes, strict=True))
    n_rows = len(place.points)
    true_counts = count_in_boxes(place.points, low, high).astype(np.float64)
    means: dict[str, Floats] = {}
    for number, (method, release) in enumerate(METHODS.items()):
        errors = np.zeros(len(low))
        for run in range(n_runs):
            entropy = UnsafeSeededEntropy(1000 * number + run)
            answers = release(place.points, place.box, Fraction(epsilon), entropy).range_counts(low, high)
            errors += relative_errors(answers, true_counts, n_rows) / n_runs
        means[method] = errors.reshape(len(AREAS), n_boxes).mean(axis=1).clip(_SMALLEST_ERROR)
    return [
        Cell(place.name, n_rows, epsilon, areas, {method: float(mean[index]) for method, mean in means.items()})
        for index, areas in enumerate(AREAS)
    ]


def geometric_mean(values: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(values)))))


def summaries(cells: list[Cell]) -> list[str]:
    """Geometric means of the ratios by class of areas, by epsilon and by map: where Spinney is weak."""
    lines = []
    for title, key in (("areas", "areas"), ("epsilon", "epsilon"), ("map", "map_name")):
        for value in dict.fromkeys(getattr(cell, key) for cell in cells):
            those = [cell for cell in cells if getattr(cell, key) == value]
            ratios = "  ".join(f"{rival} {geometric_mean(c.ratio(rival) for c in those):5.2f}" for rival in RIVALS)
            best = geometric_mean(cell.ratio_to_best() for cell in those)
            lines.append(f"  {title} {value:<16} ratio to {ratios}  best of the three {best:5.2f}")
    for areas in dict.fromkeys(cell.areas for cell in cells):
        those = [cell for cell in cells if cell.areas == areas]
        ratio = geometric_mean(cell.errors[FOCUSED] / cell.errors[OURS] for cell in those)
        lines.append(f"  areas {areas:<16} focus='small-areas' over the default {ratio:5.2f}")
    return lines
