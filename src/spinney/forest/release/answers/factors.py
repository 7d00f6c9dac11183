"""Factors and terms: a question as means, over rows, of products of functions of single columns.

A count is the mean of a product of indicators; a mean of a column is a ratio of two such means. What a question's error
follows from is its *influence*: what one row adds to the answer. For a ratio num / den that is (num's product - ratio x
den's product) / den, a sum of few terms, each a product of factors, one for a variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from spinney.forest.release.answers.parts import Leaves, Part
from spinney.forest.release.column_model import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A function of one variable's rows, leaf by leaf, and its means in each state."""

    part: Part
    shift: float | None = None  # values less this; None: an indicator

    def leaf_mean(self) -> Floats:
        """The mean of the function in each leaf."""
        values = self.part.values
        if self.shift is None or values is None:
            return self.part.share
        return np.where(self.part.share > 0, self.part.share * (values.mean - self.shift), 0.0)

    def leaf_square(self) -> Floats:
        """The mean of its square in each leaf."""
        values = self.part.values
        if self.shift is None or values is None:
            return self.part.share
        square = values.square - 2 * self.shift * values.mean + self.shift**2
        return np.where(self.part.share > 0, self.part.share * np.maximum(square, 0.0), 0.0)

    def of(self, leaves: Leaves) -> Floats:
        """The mean of the function in each state (n_states,), by the weights of these leaves."""
        return _per_state(leaves, self.leaf_mean())

    def square_of(self, leaves: Leaves) -> Floats:
        """The mean of its square in each state."""
        return _per_state(leaves, self.leaf_square())


Factors = Mapping[int, Factor]


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """What is asked for: the mean of one product over that of another, which is 1 where it has no factors."""

    above: Factors
    below: Factors

    @property
    def variables(self) -> tuple[int, ...]:
        return tuple(sorted({*self.above, *self.below}))


def _per_state(leaves: Leaves, numbers: Floats) -> Floats:
    sums = np.bincount(leaves.states, weights=leaves.inside() * numbers, minlength=leaves.n_states)
    return np.asarray(sums, dtype=np.float64)
