"""Evidence: what a row is drawn given. The same functions serve private and synthetic rows.

A row knows, in this order: the states of its person in all variables of the persons model; its place among the
person's rows (the only one, the first, one between, the last); where rows have an order, the states of the row before;
with a role, the states of the person's first row. Of what does not exist, such as the row before the first, there is a
state of its own, the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

States = NDArray[Any]

N_PLACES = 4
ONLY, FIRST, BETWEEN, LAST = range(N_PLACES)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that rows are drawn given: its kind, and the number of the variable or of the own column."""

    kind: str  # "person", "place", "before" or "anchor"
    number: int
    size: int


@dataclass(frozen=True)
class Layout:
    """All evidence of the rows of one table.

    Args:
        person_sizes: how many states every variable of a person has.
        own_sizes: how many states every column of a row has.
        has_before: for every column of a row, whether the row before is evidence of it.
        has_anchor: the same of the person's first row.
    """

    person_sizes: tuple[int, ...]
    own_sizes: tuple[int, ...]
    has_before: tuple[bool, ...]
    has_anchor: tuple[bool, ...]

    @cached_property
    def every(self) -> tuple[Evidence, ...]:
        """All of it, in order."""
        persons = [Evidence("person", number, size) for number, size in enumerate(self.person_sizes)]
        own = list(enumerate(self.own_sizes))
        before = [Evidence("before", number, size + 1) for number, size in own if self.has_before[number]]
        anchor = [Evidence("anchor", number, size + 1) for number, size in own if self.has_anchor[number]]
        return (*persons, Evidence("place", 0, N_PLACES), *before, *anchor)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many states each has."""
        return tuple(evidence.size for evidence in self.every)

    @property
    def place(self) -> int:
        """The number of the place among all evidence."""
        return len(self.person_sizes)


def row_evidence(
    evidence: Evidence, persons: States, own: States, person: NDArray[np.int64], starts: NDArray[np.int64]
) -> States:
    """The states (n_rows,) of one evidence, for rows that are all there.

    Args:
        evidence: which one.
        persons: states of persons (n_variables, n_persons).
        own: states of rows (n_columns, n_rows), in the order of persons, each person's from the first to the last.
        person: the person of every row.
        starts: where every person's rows begin, and the number of all rows.
    """
    if evidence.kind == "person":
        return np.asarray(persons[evidence.number][person])
    if evidence.kind == "place":
        return places(starts)
    line = own[evidence.number]
    none = evidence.size - 1
    dtype = np.uint8 if evidence.size <= 256 else np.uint16
    found = np.empty(len(line), dtype=dtype)
    is_first = np.zeros(len(line), dtype=np.bool_)
    is_first[starts[:-1][np.diff(starts) > 0]] = True
    if evidence.kind == "before":
        found[1:] = line[:-1]
    else:
        found[:] = line[starts[person]]
    found[is_first] = none
    return found


def places(starts: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The place of every row among those of its person."""
    found = np.full(int(starts[-1]), BETWEEN, dtype=np.uint8)
    n_rows = np.diff(starts)
    first, last = starts[:-1][n_rows > 0], starts[1:][n_rows > 0] - 1
    found[first] = FIRST
    found[last] = LAST
    found[first[first == last]] = ONLY
    return found


def person_of_rows(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The person of every row."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def layout(
    person_sizes: Sequence[int],
    own_sizes: Sequence[int],
    *,
    has_order: bool,
    role: int | None,
    unrelated: Sequence[int] = (),
) -> Layout:
    """The evidence of rows. Of `unrelated` columns the row before says nothing: what orders rows is sorted anyway."""
    n_own = len(own_sizes)
    before = tuple(has_order and column not in unrelated for column in range(n_own))
    anchor = tuple(role is not None and column not in unrelated for column in range(n_own))
    return Layout(tuple(person_sizes), tuple(own_sizes), before, anchor)
