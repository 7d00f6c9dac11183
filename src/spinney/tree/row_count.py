"""A bought row count: how many rows a table has, with noise, charged to the ledger.

Under add-remove the number of rows is private, and nearly every automatic value follows from it. So a small part of
epsilon buys a noisy count before a plan is made, and the plan may depend on it: the count is one number that a row
changes by one. Proof: row_count.proof.md; the labels [step 1] ... are its steps.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from spinney.privacy.entropy import Entropy, brand_unless_system
from spinney.privacy.ledger import DiscreteLaplaceCounts, Ledger
from spinney.privacy.noise.discrete import add_noise
from spinney.release.row_count import RowCount


def release_rows(true_rows: int, *, epsilon: Fraction, ledger: Ledger, entropy: Entropy) -> RowCount:
    """The number of rows with discrete Laplace noise. Charges `epsilon` first, and needs a unit that adds or removes.

    A row in place of another leaves the number as it is, so under replace-one there is nothing to buy.
    """
    assert not ledger.unit.n_is_public
    sensitivity = ledger.unit.factor
    who = "persons" if ledger.unit.is_person else "rows"
    charge = DiscreteLaplaceCounts(epsilon, sensitivity, f"{who}: how many there are", stage="rows", times=1)
    ledger.charge(charge)  # [step 1] charge before noise
    brand_unless_system(ledger, entropy, "rows")
    rate = epsilon / sensitivity
    noisy = add_noise(np.array([true_rows], dtype=np.int64), rate, entropy)  # [step 2]
    return RowCount(int(noisy[0]), rate)
