"""Synthetic persons that a field is fitted by: what rows depend on is taken from what the release itself draws.

A field is a law of rows given evidence. The law of the evidence is not measured: it is that of persons drawn from the
forest that was released, and of rows drawn from the field so far. So it costs no budget, and what is fitted agrees with
what is drawn in the end. Persons differ more than the rows of one of them do: many persons are taken, and of each a few
rows.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from spinney.forest.grow import Forest
from spinney.forest.release.column_model import ColumnModel
from spinney.graph.draw import draw_states
from spinney.graph.field import Field
from spinney.graph.tilted_draw import draw_tilted
from spinney.people.release.evidence import Layout, person_of_rows
from spinney.people.release.sample_rows import SampledRows, all_evidence, draw_rows

# Rows that a field is fitted by, and how many of them are of one person at most.
_N_FITTED, _ROWS_A_PERSON = 24_000, 2
# Rows that are drawn for that, and persons, at most.
_MOST_DRAWN, _MOST_PERSONS = 400_000, 24_000


class SyntheticPersons:
    """Persons drawn from a forest once, whose rows are drawn anew from every field.

    Args:
        forest: of persons.
        count: the number of the variable that says how many rows they have.
        least: the fewest rows that a person has; what is drawn counts from there.
        most: the most.
        layout: what rows may depend on.
        sorted_by: the column that ascends within a person, where it is drawn like the others.
        rng: draws everything.
    """

    def __init__(
        self,
        forest: Forest,
        *,
        count: int,
        least: int,
        most: int,
        layout: Layout,
        sorted_by: int | None,
        rng: np.random.Generator,
    ) -> None:
        self._layout, self._sorted_by, self._rng = layout, sorted_by, rng
        persons, column = _drawn_persons(forest, rng), forest.columns[count]
        assert isinstance(column, ColumnModel)
        n_rows = np.clip(least + np.floor(column.draw(persons[count], rng)), 0, most).astype(np.int64)
        is_used = (n_rows > 0) & (np.cumsum(n_rows) <= _MOST_DRAWN)
        is_used &= np.cumsum(np.minimum(n_rows, _ROWS_A_PERSON)) <= _N_FITTED
        if not is_used.any():  # a single person may have more rows than that, and all may have none
            is_used[np.argmax(n_rows)] = True
            n_rows = np.maximum(n_rows, 1)
        self._persons, n_rows = persons[:, is_used], n_rows[is_used]
        self._starts = np.concatenate([[0], np.cumsum(n_rows)]).astype(np.int64)

    def rows(self, field: Field | None) -> SampledRows:
        """Some of the persons' rows, drawn from a field; without one, their own states are all the first."""
        starts, layout = self._starts, self._layout
        if field is None:
            own = np.zeros((len(layout.own_sizes), int(starts[-1])), dtype=np.int32)
        else:
            own = draw_rows(field, layout, self._persons, starts, self._rng, sorted_by=self._sorted_by)
        kept = self._a_few()
        n_kept = np.minimum(np.diff(starts), _ROWS_A_PERSON)
        evidence = all_evidence(layout, self._persons, own, starts)
        return SampledRows(own[:, kept], evidence[:, kept], np.repeat(1 / n_kept, n_kept))

    def _a_few(self) -> NDArray[np.int64]:
        """The numbers of a few random rows of every person, in the order of persons."""
        person = person_of_rows(self._starts)
        order = np.lexsort([self._rng.random(len(person)), person])
        rank = np.arange(len(person)) - self._starts[:-1][person]
        return np.asarray(order[rank < _ROWS_A_PERSON])


def _drawn_persons(forest: Forest, rng: np.random.Generator) -> NDArray[np.int32]:
    """States of persons, as they are drawn from the release too."""
    if forest.products is None:
        return draw_states(forest.model, _MOST_PERSONS, rng)
    pairs = sorted({pair for clique in forest.cliques for pair in combinations(sorted(clique), 2)})
    columns = range(len(forest.columns))
    return draw_tilted(forest.model, forest.products.tilt, _MOST_PERSONS, rng, columns=columns, pairs=pairs)
