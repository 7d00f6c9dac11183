"""The number of rows that automatic values follow from: public, given as a guess, or bought with a part of epsilon.

Under replace-one it is public. Under add-remove it is private: with `assumed_rows` a public guess stands in for it, and
without one a noisy count is bought before the plan is made. Until then parameters and budgets are tried on tables of
several sizes, so that what can work for none of them is refused before anything is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import TypeVar

from spinney.errors import BudgetError, ParameterError

PlanT = TypeVar("PlanT")

# Sizes of tables that a plan is tried on where the number of rows is not known yet; the likeliest first.
_SIZES = (10_000, 100, 10_000_000)


def first_that_works(rehearse: Callable[[int], PlanT]) -> PlanT:
    """The plan for the first size that has one; where none has, what is said of the first."""
    problem: BudgetError | ParameterError | None = None
    for n_rows in _SIZES:
        try:
            return rehearse(n_rows)
        except (BudgetError, ParameterError) as err:
            problem = problem or err
    assert problem is not None
    raise problem


@contextmanager
def after_counting(epsilon: Fraction, n_rows: int, *, what: str = "rows") -> Iterator[None]:
    """Say of a budget or a plan that a table of the counted size cannot have that the count is paid for.

    `what` was counted, and is what an argument names that saves counting.
    """
    try:
        yield
    except (BudgetError, ParameterError) as err:
        raise type(err)(
            f"{err}. The table has about {n_rows:,} {what} by a noisy count, on which epsilon={float(epsilon):g} was "
            f"spent; give that number as assumed_{what}, and none is spent on counting again"
        ) from err
