"""Figures of utility with noise: how far a release is from the table, as whole numbers that a row moves by few steps.

    [step 1]  charge, first of all
    [step 2]  the release is made, and rows are drawn from it with a public seed: from here on it is fixed
    [step 3]  distances of its tables from those of the table are counted: of each set the mean and the largest
    [step 4]  noise

A pure release pays with a charge of its own, for sup-norm noise, which costs what one of the figures alone would. One
with a delta pays with a vector of its composed charge, whose Gaussian noise is several times as narrow. Proof:
utility.proof.md, whose steps these are; steps 2 and 3 are in `synthesizers/utility.py` and `counting/distances.py`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from spinney.errors import BudgetError
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import Entropy, brand_unless_system
from spinney.privacy.ledger import LeafMoments, Ledger
from spinney.privacy.noise.discrete import within_range
from spinney.privacy.noise.supnorm import sup_norm_noise
from spinney.release.utility import figure_reach

Figures = NDArray[np.int64]

NOTE = "utility: distances of the release from the table"


def figures_charge(epsilon: Fraction, unit: Unit) -> LeafMoments:
    """What figures that are paid for by themselves are charged as."""
    return LeafMoments(epsilon, unit.factor, NOTE, stage="utility")


class PaidFigures:
    """Noise for one vector of figures, charged when this object is made."""

    def __init__(self, epsilon: Fraction, ledger: Ledger, entropy: Entropy) -> None:
        unit = ledger.unit
        ledger.charge(figures_charge(epsilon, unit))  # [step 1]
        brand_unless_system(ledger, entropy, "utility")
        self.unit, self._entropy = unit, entropy
        self._rate = epsilon / figure_reach(unit)
        self._is_left = True

    def noisy_figures(self, true_figures: Figures) -> Figures:
        """The figures with noise, once. A unit of privacy moves each of them by `figure_reach` at most."""
        if not self._is_left:
            raise BudgetError("the figures of utility were paid for once")
        self._is_left = False
        noise = sup_norm_noise(self._rate, len(true_figures)).draw(1, self._entropy)[0]
        return within_range(true_figures + noise)  # [step 4]

    def __repr__(self) -> str:
        return f"PaidFigures({'1 left' if self._is_left else 'used'})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("figures are paid for where they are used")
