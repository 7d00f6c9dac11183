"""Whether a charge fits: the one place where amounts meet limits.

What is enforced is basic composition, in exact fractions: the epsilons of all charges add up, and so do their deltas.
That holds also where each charge was chosen in view of what the earlier ones released (composition.proof.md, filters).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from spinney.errors import BudgetError, ParameterError
from spinney.privacy.budget import Unit
from spinney.privacy.events import decimal


@dataclass(frozen=True, slots=True)
class Room:
    """What may be spent and what was: in one unit, with limits or None where spending is only counted."""

    unit: Unit
    limit: Fraction | None
    delta_limit: Fraction | None
    spent: Fraction = Fraction(0)
    spent_delta: Fraction = Fraction(0)
    is_kept: bool = False  # in a file or on a server, where limits can be raised on record

    @property
    def is_overdrawn(self) -> bool:
        """Whether more is on record than the limits allow."""
        return (self.limit is not None and self.spent > self.limit) or (
            self.delta_limit is not None and self.spent_delta > self.delta_limit
        )

    def check(self, epsilon: Fraction, delta: Fraction, unit: Unit) -> None:
        """Raise unless this much more may be spent."""
        if unit is not self.unit:
            raise ParameterError(
                f"unit={unit.value!r} does not match the ledger's {self.unit.value!r}; budgets in different units do "
                f"not add up{_remedy(unit, self.unit)}"
            )
        if self.limit is not None and self.spent + epsilon > self.limit:
            raise BudgetError(
                f"epsilon={decimal(epsilon)} does not fit: {decimal(self.spent)} of {decimal(self.limit)} is spent; "
                f"{self._instead('--limit')}"
            )
        if self.delta_limit is not None and self.spent_delta + delta > self.delta_limit:
            if not self.delta_limit:
                remedy = "open a ledger with a delta, such as Ledger(limit=2, delta='1e-6')"
                if self.is_kept:
                    remedy = "have a delta allowed: spinney ledger raise LEDGER --delta ... --why ..."
                raise BudgetError(
                    f"delta={decimal(delta)} does not fit: the ledger is pure, with a delta of 0; fit with delta=0, or "
                    f"{remedy}"
                )
            raise BudgetError(
                f"delta={decimal(delta)} does not fit: {decimal(self.spent_delta)} of {decimal(self.delta_limit)} "
                f"is spent; {self._instead('--delta')}"
            )

    def _instead(self, option: str) -> str:
        """What to do where too little is left."""
        if not self.is_kept:
            return "ask for less"
        return f"ask for less, or have the limit raised: spinney ledger raise LEDGER {option} ... --why ..."


def _remedy(asked: Unit, kept: Unit) -> str:
    """What to do where one side protects rows and the other persons; nothing more is to be said of other units."""
    if asked.is_person == kept.is_person:
        return ""
    sides = ("persons with all their rows", "single rows")
    ours, others = sides if asked.is_person else sides[::-1]
    return (
        f": this charge protects {ours} and the ledger {others}; keep a ledger of its own for it, such as "
        f"sp.Ledger(limit=2, delta='1e-6', unit={asked.value!r}) or `spinney ledger FILE --limit 2 --delta 1e-6 "
        f"--unit {asked.value}`"
    )
