"""How many rows have each value of a column, whatever values there are. SENSITIVE: the values themselves are private.

Values come batch by batch as Arrow arrays of strings or whole numbers. Batches are counted by themselves and merged
when they have grown; what is held is what differs. Where that outgrows the limit of memory the column is no list of
codes, and it is refused, by name and without a number.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spinney.errors import InputError

# Distinct values of batches that are held before they are merged, at least.
_FEW = 1 << 17
# Merging holds what there is about this many times.
_COPIES = 4


class ValueCounts:
    """Distinct values in ascending order, strings by their bytes, and how many rows have each. Null is not counted."""

    __slots__ = ("true_counts", "true_values")

    def __init__(self, true_values: Any, true_counts: NDArray[np.int64]) -> None:
        self.true_values = true_values
        self.true_counts = true_counts

    def __repr__(self) -> str:
        return "ValueCounts(sensitive)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("ValueCounts holds private values and is never pickled")


class ValueCounter:
    """Adds up the values of a column; threads may add at the same time."""

    def __init__(self, name: str, *, memory_limit: int) -> None:
        self._name = name
        self._most_bytes = memory_limit // _COPIES
        self._parts: list[pa.Table] = []
        self._n_merged = 0
        self._lock = Lock()

    def __repr__(self) -> str:
        return "ValueCounter(sensitive)"

    def add(self, values: Any) -> None:
        """Count an Arrow array of strings or of whole numbers."""
        kind = pa.large_string() if pa.types.is_string(values.type) else values.type
        found = values.drop_null().cast(kind).value_counts()
        self.add_counts(found.field("values"), found.field("counts"))

    def add_counts(self, values: Any, counts: Any) -> None:
        """Add values that were counted elsewhere."""
        part = pa.table({"value": values, "n": counts.cast(pa.int64())})
        with self._lock:
            self._parts.append(part)
            if sum(part.num_rows for part in self._parts) > max(_FEW, 2 * self._n_merged):
                self._merge()

    def merged(self) -> ValueCounts:
        """All that was added."""
        with self._lock:
            table = self._merge()
        order = pc.sort_indices(table["value"])
        values, counts = table["value"].take(order).combine_chunks(), table["n"].take(order)
        return ValueCounts(values, np.asarray(counts.to_numpy()).astype(np.int64, copy=False))

    def _merge(self) -> pa.Table:
        if not self._parts:
            return pa.table({"value": pa.array([], pa.large_string()), "n": pa.array([], pa.int64())})
        grouped = pa.concat_tables(self._parts).group_by("value", use_threads=False).aggregate([("n", "sum")])
        whole = pa.table({"value": grouped["value"], "n": grouped["n_sum"]})
        if whole.nbytes > self._most_bytes:
            raise too_many_values(self._name)
        self._parts, self._n_merged = [whole], whole.num_rows
        return whole


def too_many_values(name: str) -> InputError:
    """The error for a column whose values differ so much that they do not fit into memory."""
    return InputError(
        f"column {name!r} has more different values than the limit of memory allows, so no list of them can be found; "
        "describe it as an identifier, list its values, or raise SPINNEY_MEMORY_LIMIT"
    )
