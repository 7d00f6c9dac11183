"""Counted: noisy counts of boxes that share no row, and what they say of a sum over rows whatever the rows are.

A sum over rows of a function between `low` and `high` in every box lies between sum(low x true counts) and sum(high x
true counts). Noisy counts in their place are off by sums of noise of a known law, whose reach follows from that law
(`reach.proof.md`). Coefficients come from the geometry of
boxes alone, and the table is the earliest that holds the columns: which tables are counted later, and how they are cut,
may follow from its noise, but not the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.answers.parts import Part
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.measured import Counts, NoiseLaw
from spinney.release.answers.reach import NoiseSum

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


@dataclass(eq=False)
class Counted:
    """Noisy counts of boxes, the law of their noise, and which box holds which cell of the states or leaves."""

    variables: tuple[int, ...]
    noisy: Counts  # (n_boxes,)
    noise: NoiseLaw
    labels: NDArray[np.int64]  # a box for each cell, -1 for none; one axis for each variable
    by_leaf: bool  # whether cells are leaves of one variable, or states of several
    total: int | None  # the number of rows, where it is public

    @property
    def n_boxes(self) -> int:
        return len(self.noisy)

    def noise_of(self, line: Floats) -> NoiseSum:
        """The law of the noise of a sum over the boxes with these coefficients."""
        return NoiseSum([(self.noise, line)])

    def sums(self, lines: Floats) -> tuple[Floats, Floats]:
        """Noisy sums for lines of coefficients (n_lines, n_boxes), and the lines by which their noise goes."""
        centred, added = self.centred(lines)
        return centred @ self.noisy + added, centred

    def centred(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Lines of coefficients less what the public total explains, and what is to be added for that.

        All boxes together hold every row, so a constant may be taken off and its sum put back; with the mean of a line
        the noise is least. Where rules leave cells without a box, or the total is private, lines stay as they are.
        """
        if self.total is None or (self.labels < 0).any():
            return coefficients, np.zeros(len(coefficients))
        mean = coefficients.mean(axis=1)
        return coefficients - mean[:, None], mean * self.total

    def bounds(self, parts: Mapping[int, Part], *, shift: float | None = None) -> tuple[Floats, Floats]:
        """The least and the largest value in each box (2 x (n_boxes,)) of the indicator of the conditions.

        With a shift, of the indicator times the values of the column that has them, less the shift.
        """
        least, most = np.ones(()), np.ones(())
        value: tuple[Floats, Floats] | None = None
        for axis, variable in enumerate(self.variables):
            part = parts.get(variable)
            if part is None:
                low = high = np.ones(self.labels.shape[axis])
            else:
                low, high = self._ends(part, part.is_whole.astype(float), part.touches.astype(float))
                if shift is not None and part.values is not None:
                    value = self._values(part, shift, axis)
            least, most = np.multiply.outer(least, low), np.multiply.outer(most, high)
        if value is not None:
            # A row that may or may not be counted adds its value or nothing.
            sure, maybe = least > 0, most > 0
            low_value, high_value = np.broadcast_arrays(value[0], value[1], least)[:2]
            least = np.where(sure, low_value, np.where(maybe, np.minimum(low_value, 0.0), 0.0))
            most = np.where(sure, high_value, np.where(maybe, np.maximum(high_value, 0.0), 0.0))
        boxes = self.labels.ravel()
        low_box, high_box = np.full(self.n_boxes, np.inf), np.full(self.n_boxes, -np.inf)
        held = boxes >= 0
        np.minimum.at(low_box, boxes[held], least.ravel()[held])
        np.maximum.at(high_box, boxes[held], most.ravel()[held])
        return low_box, high_box

    def is_cut(self, parts: Mapping[int, Part]) -> bool:
        """Whether a box is neither wholly inside the conditions nor wholly outside."""
        least, most = self.bounds(parts)
        return bool((least < most).any())

    def _ends(self, part: Part, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Bounds of cells along one axis: of its leaves, or of all leaves of each state, weightless ones too."""
        if self.by_leaf:
            return low, high
        states, n_states = part.leaves.states, part.leaves.n_states
        least, most = np.full(n_states, np.inf), np.full(n_states, -np.inf)
        np.minimum.at(least, states, low)
        np.maximum.at(most, states, high)
        return least, most

    def _values(self, part: Part, shift: float, axis: int) -> tuple[Floats, Floats]:
        assert part.values is not None
        low = np.where(part.touches, part.values.low - shift, np.inf)
        high = np.where(part.touches, part.values.high - shift, -np.inf)
        low, high = self._ends(part, low, high)
        shape = [-1 if place == axis else 1 for place in range(self.labels.ndim)]
        return (
            np.where(np.isfinite(low), low, 0.0).reshape(shape),
            np.where(np.isfinite(high), high, 0.0).reshape(shape),
        )


def counted_for(release: ForestRelease, variables: tuple[int, ...]) -> Counted | None:
    """The noisy counts that hold all these variables: the leaves of one, or the earliest table of several."""
    measured = release.measured
    if measured is None or not variables:
        return None
    total = release.card.n_rows
    if len(variables) == 1:
        return _leaves(release, variables[0], total)
    table = next((table for table in measured.tables if set(variables) <= set(table.columns)), None)
    if table is None:
        return None
    shape = tuple(release.model.tree.sizes[variable] for variable in table.columns)
    n_cells = int(np.prod(shape))
    labels = np.arange(n_cells) if table.labels is None else table.labels.ravel().astype(np.int64)
    return Counted(table.columns, table.noisy, table.noise, labels.reshape(shape), False, total)


def _leaves(release: ForestRelease, variable: int, total: int | None) -> Counted | None:
    assert release.measured is not None
    column = release.measured.columns[variable]
    if column is None:
        return None
    labels = column.leaf.astype(np.int64)
    if column.kind == "codes":  # every code was counted, and is a leaf of what `leaves_counted` gives
        labels = np.arange(len(column.noisy))
    # A place may leave out rows beyond its shape, so that its regions do not hold all of them.
    return Counted((variable,), column.noisy, column.noise, labels, True, None if column.kind == "place" else total)


def leaves_counted(release: ForestRelease) -> dict[str, ColumnModel]:
    """Columns whose leaves were counted one value at a time, although the model has several in one leaf."""
    if release.measured is None:
        return {}
    return {
        name: release.columns[name].by_value()
        for name, column in zip(release.variables, release.measured.columns, strict=True)
        if column is not None and column.kind == "codes"
    }
