"""First tables: what a forest asks of its rows whatever the noise chooses, so that one pass counts all of it.

Without a target all pairs of columns are compared, by a tree once and by rounds in every turn, and the vector of all
other pairs is made of them. With a target these are compared given the target: tables of three, whose sums are the
pairs. Only tables of more columns that are chosen later are not among them.
"""

from __future__ import annotations

from itertools import combinations

from spinney.forest.design import Design
from spinney.forest.structure import Clique


def first_tables(design: Design) -> list[Clique]:
    """The columns of every table that is asked for in any case, in ascending order."""
    found: list[Clique] = [tuple(sorted(clique)) for clique in design.stated]
    target = design.target
    if design.structure in ("rounds", "tree"):
        if target is None or (design.structure == "tree" and design.has_plain_pairs):
            found += combinations(sorted(design.measured), 2)
        else:
            found += [tuple(sorted((*pair, target))) for pair in combinations(design.free, 2)]
    elif design.structure == "target":
        found += [tuple(sorted((column, target))) for column in design.free if target is not None]
    if design.has_prior:
        found += combinations(sorted(design.measured), 2)
    return list(dict.fromkeys(found))


def is_asked_again(design: Design) -> bool:
    """Whether more tables may be asked for later: rounds compare and choose larger ones, a turn at a time."""
    return design.structure == "rounds"
