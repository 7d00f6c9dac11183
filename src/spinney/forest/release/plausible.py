"""Numbers of a forest's file that follow from each other but for noise of a known size, or that name what it is.

A total and a bought count of rows are of one table, and so are a total and sums of signs over all rows: they differ by
noise, and by more than many standard deviations of it in no file that a fit wrote. The structure is one that a design
can have, with the stages that it counts, and what a vector of sums was charged for is there.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.privacy.events import DiscreteLaplaceCounts
from spinney.release.contradictions import check
from spinney.shown import brief

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease

_STRUCTURES = ("rounds", "tree", "target", "independent", "uniform")
# Noise beyond so many standard deviations is drawn once in 10^15 times or more rarely, be it Laplace or Gaussian.
MOST_DEVIATIONS = 25.0
# Leaves that were counted, beside those in the file: some are joined before they are written.
_MORE_LEAVES = 4096


def check_structure(release: ForestRelease) -> None:
    """The plan names a structure that a forest can have, and has the tables of this one."""
    card, plan = release.card, release.card.plan
    structure, target = plan["structure"], card.parameters.get("target")
    known = isinstance(structure, str) and structure in _STRUCTURES
    check(known, f"structure {brief(structure)} is none of {', '.join(_STRUCTURES)}")
    has_cliques, has_pairs = "cliques noise" in plan, "pairs noise" in plan
    is_joined = structure in ("rounds", "tree")
    check(has_cliques == is_joined, f"a forest of structure {structure} has other tables than the plan")
    with_target = target is not None and (is_joined or structure == "target")
    check(has_pairs == with_target, f"a forest of structure {structure} has other tables of the target than the plan")
    is_slow = structure != "rounds" or card.parameters.get("quality", "high") != "fast"
    check(is_slow, "columns were chosen in rounds, which quality='fast' does not do")


def check_totals(release: ForestRelease) -> None:
    """The total is that of the noisy count, but for noise; where nothing else was counted, it follows from it."""
    count, total = release.card.row_count, release.noisy_total
    if count is None:
        return
    if release.card.plan["structure"] == "uniform" and not _classes(release):
        # Releases from before took the number that plans take.
        is_told = any(abs(total - number) <= 1 + 1e-6 * number for number in (count.drawn, count.expected))
        check(is_told, f"noisy_total is {total}, and the noisy count of rows gives {count.drawn}")
        return
    slack = MOST_DEVIATIONS * count.noise_std + slack_of_total(release)
    check(abs(total - count.noisy) <= slack, f"noisy_total is {total}, and the noisy count of rows is {count.noisy}")


def check_sums(release: ForestRelease, n_charged: int) -> None:
    """What a vector was charged for is there; no sum of signs is larger than the number of rows, but for noise."""
    products = release.products
    if products is None:
        sizes = release.model.tree.sizes
        several = [number for number, size in enumerate(sizes) if size > 1]
        missing = set(combinations(several, 2)).difference(release.counted_pairs)
        check(not (n_charged and missing), "a vector of sums was charged for, and the file holds none")
        return
    slack = MOST_DEVIATIONS * math.sqrt(products.variance) + slack_of_total(release)
    largest = max((int(np.abs(sums).max()) for sums in products.sums if sums.size), default=0)
    check(largest <= release.noisy_total + slack, "a sum of signs is larger than the number of rows and noise allow")


def slack_of_total(release: ForestRelease) -> float:
    """By how much the columns' sums may be off: nothing where the number of rows is public."""
    if release.card.n_rows is not None:
        return 0.0
    plan = release.card.plan
    deviations = [_number(plan.get(f"{stage} noise", 0.0)) for stage in ("one-way", "places")] + _classes(release)
    n_leaves = max(len(model.states) for model in release.columns.values()) if release.columns else 0
    n_regions = max(len(place.states) for place in release.places.values()) if release.places else 0
    count = release.card.row_count
    bought = 0.0 if count is None else count.noise_std
    return MOST_DEVIATIONS * (max(deviations) * math.sqrt(n_leaves + n_regions + _MORE_LEAVES) + bought) + 1.0


def _classes(release: ForestRelease) -> list[float]:
    """The standard deviation of the sizes of the target's classes, where they were counted by themselves."""
    counted = [event for event in release.card.events if isinstance(event, DiscreteLaplaceCounts)]
    classes = [event for event in counted if event.stage == "classes"]
    return [math.sqrt(2) * event.sensitivity / float(event.epsilon) for event in classes]


def _number(value: Any) -> float:
    check(isinstance(value, (int, float)) and not isinstance(value, bool), f"{brief(value)} is no standard deviation")
    return float(value)
