"""What is wanted of `linked`, beside what was measured: figures by table and epsilon, and ratios to its rivals.

Rivals are judged by one- and two-way tables of rows: `linked` is to be better than one random row a person and than
k-fold noise at every k, and so no worse than the best k chosen in hindsight. With ten rows a person it may be 1.5
times as far off as with one row of the same number of persons. Keys, counts, order and ends are never broken.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.forest.targets import Line, table
from benchmarks.people.releases import LINKED, NO_LEVELS, REAL
from benchmarks.people.results import Cell
from benchmarks.people.rivals import ONE_ROW

__all__ = ["Line", "lines", "table"]

# By table and epsilon.
WANTED: dict[tuple[str, str], dict[str, float]] = {
    ("cdnow", "5"): {"child_tv2": 0.046, "icc": 0.07, "transition": 0.07},
    ("cdnow", "1"): {"child_tv2": 0.078},
    ("lahman", "5"): {"child_tv2": 0.075, "icc": 0.10, "transition": 0.07},
    ("lahman", "1"): {"child_tv2": 0.124},
    ("nafld", "5"): {"child_tv2": 0.071, "icc": 0.06, "transition": 0.07},
    ("nafld", "1"): {"child_tv2": 0.107},
    ("shop", "5"): {"child_tv2": 0.033, "icc": 0.04, "transition": 0.04},
    ("shop", "1"): {"child_tv2": 0.054},
    ("homes", "5"): {"child_tv2": 0.039, "other_sex": 0.95, "schooling": 0.50, "ages": 0.9, "one_reference": 0.998},
}
_FLOORS = {"other_sex", "schooling", "ages", "one_reference"}
# The AUC that may be lost against real persons: areas themselves depend on the aggregates that were chosen.
AREA_LOSSES = {"lahman": 0.02, "nafld": 0.08, "shop": 0.01}
MANY_ROWS = 1.5
LEVELS_RATIO = 0.5
_DISTANCES = {"child_tv1": "TV1 of rows", "child_tv2": "TV2 of rows"}


def lines(cells: Sequence[Cell]) -> list[Line]:
    """One line for every target of which something was measured."""
    held = {(cell.table, cell.method, cell.epsilon): cell for cell in cells}
    found = []
    for (name, method, epsilon), cell in held.items():
        if method != LINKED:
            continue
        head = f"{name}, epsilon {epsilon}"
        for figure, limit in WANTED.get((name, epsilon), {}).items():
            if figure in cell.means:
                found.append(Line(f"{head}: {figure}", (cell.means[figure],), limit, is_floor=figure in _FLOORS))
        if "parent_most" in cell.means:
            wanted = round(cell.means["parent_most"], 4)
            found.append(Line(f"{head}: count, worst column of persons", (cell.means["count_bins"],), wanted))
        floor = held.get((name, REAL, ""))
        if name in AREA_LOSSES and floor is not None:
            wanted = round(floor.means["auc"] - AREA_LOSSES[name], 4)
            found.append(Line(f"{head}: auc", (cell.means["auc"],), wanted, is_floor=True))
        without = held.get((name, NO_LEVELS, epsilon))
        if without is not None and without.means.get("icc"):
            ratio = cell.means["icc"] / without.means["icc"]
            found.append(Line(f"{head}: icc over that without levels", (ratio,), LEVELS_RATIO, "x"))
        found.append(Line(f"{head}: broken", (float(sum(cell.n_broken.values())),), 0.0))
        found += _against_rivals(head, cell, cells)
        if name == "shop-ten":
            # A forest of one row a person knows no persons, and is told here for comparison.
            for other, wanted in ((LINKED, MANY_ROWS), (ONE_ROW, None)):
                one = held.get(("shop-one", other, epsilon))
                if one is not None:
                    found += [
                        Line(
                            f"{head}: {said} over {other} of shop-one",
                            (cell.means[what] / one.means[what],),
                            wanted,
                            "x",
                        )
                        for what, said in _DISTANCES.items()
                    ]
    return found


def _against_rivals(head: str, cell: Cell, cells: Sequence[Cell]) -> list[Line]:
    """Ratios to the best of the rivals, which is named."""
    rivals = [
        other
        for other in cells
        if (other.table, other.epsilon) == (cell.table, cell.epsilon) and other.method.endswith(("-row", "-rows"))
    ]
    if not rivals or cell.table == "shop-one":
        return []
    found = []
    for what, said in _DISTANCES.items():
        best = min(rivals, key=lambda other: other.means[what])
        found.append(Line(f"{head}: {said} over {best.method}", (cell.means[what] / best.means[what],), 1.0, "x"))
    return found
