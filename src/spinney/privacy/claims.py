"""What an event claims, worked out again from the numbers that it lists.

A charge is checked where it is made. One that comes out of a file may say anything, so whoever reads a card asks here:
the parts of a composed release are composed anew, and Gaussian noise is accounted for anew, both rounded as they were.
"""

from __future__ import annotations

from fractions import Fraction

from spinney.errors import BudgetError, ParameterError
from spinney.privacy.budget import Unit
from spinney.privacy.events import ComposedRelease, DiscreteGaussianVector
from spinney.privacy.ledger import check_parts
from spinney.privacy.noise.gaussian import LARGEST_VARIANCE, SMALLEST_VARIANCE, delta_from_rho
from spinney.privacy.noise.partitions import keep_law
from spinney.privacy.parts import TreeShapes
from spinney.shown import brief

# No fit of ours makes more: ten stages of a table and six of persons' rows, of them one of trees of columns, one of
# trees of places and one of trees of rows, none of more than 64 levels. Composing takes time for each, and a file that
# somebody made to be slow is not worth it.
_MOST_PARTS = 16
_MOST_TREES = 3
_MOST_LEVELS = 64


def check_composed(event: ComposedRelease, unit: Unit) -> None:
    """Raise unless the parts of a composed release are within its epsilon and delta, in a unit."""
    trees = [part for part in event.parts if isinstance(part, TreeShapes)]
    if len(event.parts) > _MOST_PARTS or len(trees) > _MOST_TREES or any(part.levels > _MOST_LEVELS for part in trees):
        raise ParameterError("a composed release lists more parts than a fit makes")
    check_parts(event, unit)


def check_gaussian(event: DiscreteGaussianVector) -> None:
    """Raise unless noise of the variance hides the sensitivity within epsilon and delta."""
    if not SMALLEST_VARIANCE <= event.variance <= LARGEST_VARIANCE:
        raise ParameterError(f"variance={brief(event.variance)} is outside 2^-20..2^98")
    least = delta_from_rho(event.sensitivity_squared / (2 * event.variance), event.epsilon)
    if least > event.delta:
        raise BudgetError(
            f"the Gaussian noise of {event.note!r} gives delta={float(least):.6g} at epsilon={brief(event.epsilon)}, "
            f"more than the {float(event.delta):.6g} stated"
        )


def rows_found(epsilon: Fraction, delta: Fraction, unit: Unit) -> tuple[int, int]:
    """With how many rows a selection of values finds one as often as not, and in 999 of 1000 cases."""
    law = keep_law(epsilon, delta, unit)
    return law.rows_for(Fraction(1, 2)), law.rows_for(Fraction(999, 1000))
