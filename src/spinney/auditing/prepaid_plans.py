"""What games on a forest's parts share: plans of single parts, their mechanisms, and tables of made-up rows.

Whatever a forest draws comes from `PrepaidMechanisms`, so that is what its games call, with plans of the parts that
they are about. Such a plan charges nothing: the account of an audit is nobody's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from spinney.counting.states import StateRows
from spinney.forest.plan import ForestPlan, nothing, plan_of_parts
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import SystemEntropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.parts import Part


def opened(plan: ForestPlan, times: int | None = None) -> PrepaidMechanisms:
    """The mechanisms of a plan, on an account of their own; each of its stages as often as `times` says."""
    if times is not None:
        plan = replace(
            plan,
            tables={stage: replace(noise, times=times) for stage, noise in plan.tables.items()},
            weighted={stage: replace(noise, times=times) for stage, noise in plan.weighted.items()},
            trees=None if plan.trees is None else replace(plan.trees, times=times),
            choices=None if plan.choices is None else replace(plan.choices, times=times),
            charges=(),
        )
    return PrepaidMechanisms(plan, Ledger(unit=plan.unit), SystemEntropy())


def plan_of(parts: Sequence[Part], unit: Unit) -> ForestPlan:
    """A plan of these parts and nothing else. It charges nothing: the account of an audit is nobody's."""
    if not parts:
        return nothing(Fraction(1), Fraction(1, 2), unit)
    plan = plan_of_parts(parts, epsilon=Fraction(1), delta=Fraction(1, 2), unit=unit, note="audit")
    return replace(plan, charges=())


def rows_of(rows: Sequence[Sequence[int]], sizes: Sequence[int]) -> StateRows:
    """Rows of states, as engines hold them."""
    return StateRows(np.array(rows, dtype=np.uint8).reshape(len(rows), len(sizes)).T.copy(), tuple(sizes))
