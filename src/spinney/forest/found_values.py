"""Private lists of values: those of a column that enough rows have, charged to the ledger before they are told.

Every value is kept or dropped by a draw of its own (`privacy/noise/partitions.py`, with its proof). What is dropped is
counted as the column's `other`, so that no row is lost, and what is kept says nothing of how many rows there are.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa

from spinney.columns import Category
from spinney.columns.base import LARGEST_WHOLE
from spinney.counting.values import ValueCounts
from spinney.errors import BudgetError
from spinney.privacy.budget import Unit
from spinney.privacy.entropy import Entropy, brand_unless_system
from spinney.privacy.ledger import Ledger, PartitionSelection
from spinney.privacy.noise.partitions import keep_law

# Longer strings are texts and not codes; they count as `other`.
_LONGEST = 1024


def check_rows(name: str, n_rows: int, *, epsilon: Fraction, delta: Fraction, unit: Unit) -> None:
    """Raise where not even a value that all rows have would be found as often as not."""
    needed = keep_law(epsilon, delta, unit).rows_for(Fraction(1, 2))
    if n_rows < needed:
        raise BudgetError(
            f"column {name!r}: with epsilon={float(epsilon):.3g} and delta={float(delta):.3g} a value is found from "
            f"about {needed:,} rows on, and the table has about {n_rows:,}; raise values_share or epsilon, or list the "
            "values"
        )


def release_values(
    counts: ValueCounts,
    name: str,
    column: Category,
    *,
    epsilon: Fraction,
    delta: Fraction,
    ledger: Ledger,
    entropy: Entropy,
) -> tuple[Any, ...]:
    """The values of one column that are common enough, in ascending order. Charges `epsilon` and `delta` first."""
    law = keep_law(epsilon, delta, ledger.unit)
    ledger.charge(values_charge(name, epsilon=epsilon, delta=delta))
    brand_unless_system(ledger, entropy, "forest")
    is_kept = law.keep(counts.true_counts, entropy)
    kept = counts.true_values.filter(pa.array(is_kept)).to_pylist()
    return tuple(value for value in kept if value != column.other and _can_be_listed(value))


def values_charge(name: str, *, epsilon: Fraction, delta: Fraction) -> PartitionSelection:
    """What finding the values of one column is charged as."""
    return PartitionSelection(epsilon, delta, f"values of {name}", stage="values", column=name)


def _can_be_listed(value: str | int) -> bool:
    """Whether a schema may list a value: no number of more than 61 bits, and no book."""
    return len(value) <= _LONGEST if isinstance(value, str) else abs(value) <= LARGEST_WHOLE
