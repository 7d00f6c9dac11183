"""Tables of rows that are measured in any case, before any is chosen. PUBLIC.

With a role every column with it; columns with a hidden level with that, and with the number of the person's rows. All
others cost a choice, so a file has as many choices as it has tables beyond these.
"""

from __future__ import annotations

from collections.abc import Sequence

from spinney.graph.field import FieldClique
from spinney.people.release.evidence import Layout


def first_cliques(
    layout: Layout, role: int | None, count: int, levels: Sequence[tuple[int, int]]
) -> list[tuple[FieldClique, int | None]]:
    """What is measured in any case, and the axis along which half is expected to be even: levels lie in tails.

    Args:
        layout: what rows may depend on.
        role: the column that says what a row is.
        count: the evidence that is the number of a person's rows.
        levels: evidence that is a hidden level, and its column.
    """
    found: list[tuple[FieldClique, int | None]] = []
    if role is not None:
        others = [column for column in range(len(layout.own_sizes)) if column != role]
        found += [(FieldClique((), (role, column)), None) for column in others]
    # A column in which rows of a person are not alike does not depend on how many there are: that is the person's own.
    counts = [(count, column) for _, column in levels]
    for evidence, column in (*counts, *levels):
        if layout.sizes[evidence] > 1:
            with_role = () if role in (None, column) else (role,)
            even = None if evidence == count else -1
            found.append((FieldClique((evidence,), (*with_role, column)), even))
    return found
