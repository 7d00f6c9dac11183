"""Tables of a forest, counted by Spark's executors: batches of states in, a vector of counts out, summed by Spark.

The states of rows are expressions, like cells, and are computed in the JVM. A function in Spark's own Python workers
counts those of its partition and hands over the numbers that are not 0; a group-by adds them up, and the driver gets
the sums. The function carries all that it needs. Where a worker has Spinney too, its compiled loops count;
elsewhere numpy does, and the numbers are the same. Workers need pyarrow and numpy, which Spark itself asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.counting.joint import LAYOUT, TableRequest

# Runs a query of Spark's, and says what for if it fails.
Run = Callable[[Any, str], pa.Table]
Batches = Iterator[Any]
Worker = Callable[[Batches], Batches]
# Rows that a worker counts, or packs, at once.
_AT_ONCE = 1 << 16


class SparkPasses:
    """Counts tables over a frame of states, a job for each pass. SENSITIVE.

    Args:
        states: a Spark data frame with a column for each column of the table, states moved down by `half`.
        dtype: of states.
        half: by how much they were moved.
        keeps: whether Spark keeps the states for later passes; they are computed again where it cannot.
        run: runs a job and gives its answer.
    """

    def __init__(self, states: Any, dtype: np.dtype[Any], half: int, *, keeps: bool, run: Run) -> None:
        self._states = states.persist() if keeps else states
        self._dtype, self._half, self._keeps, self._run = dtype.name, half, keeps, run
        self._n_passes = 0

    def __repr__(self) -> str:
        return "SparkPasses(sensitive)"

    def count(self, request: TableRequest) -> NDArray[np.int64]:
        """The vector of what is asked for, of all rows."""
        self._n_passes += 1
        counted = self._states.mapInArrow(table_worker(request, self._dtype, self._half), "cell bigint, n bigint")
        answer = self._run(
            counted.groupBy("cell").sum("n").toDF("cell", "n"), f"counting tables, pass {self._n_passes}"
        )
        sums = np.zeros(request.n_numbers, dtype=np.int64)
        sums[answer["cell"].to_numpy()] = answer["n"].to_numpy()
        return sums

    def parts(self) -> Iterator[NDArray[Any]]:
        """The states of all rows (n_columns, n_rows), some rows at a time."""
        n_columns, dtype = len(self._states.columns), self._dtype
        packed = self._states.mapInArrow(packing_worker(dtype, self._half), "n bigint, states binary")
        for row in packed.toLocalIterator():
            yield np.frombuffer(row["states"], dtype=dtype).reshape(n_columns, row["n"])

    def close(self) -> None:
        """Have Spark forget the states, if it still can."""
        if self._keeps:
            with suppress(Exception):
                self._states.unpersist()


def table_worker(request: TableRequest, dtype: str, half: int) -> Worker:
    """What a Spark worker runs over the states of its partition: the numbers of its vector that are not 0."""
    # Plain values only, and functions within this one: they travel by value, to workers that may not know Spinney.
    layout, sizes, cliques, groups = LAYOUT, request.sizes, request.cliques, request.groups
    n_numbers, gathered, plain = request.n_numbers, _gathering(dtype, half, _AT_ONCE), _plain_adding(request)

    def count(batches: Batches) -> Batches:
        import numpy as np
        import pyarrow as pa

        add = plain
        try:
            from spinney.counting import joint

            if layout == joint.LAYOUT:
                add = joint.TableRequest(sizes, cliques, groups).add
        except (ImportError, AttributeError):
            pass
        sums = np.zeros(n_numbers, dtype=np.int64)
        for states in gathered(batches):
            add(states, sums)
        found = np.flatnonzero(sums)
        yield pa.RecordBatch.from_arrays([pa.array(found), pa.array(sums[found])], names=["cell", "n"])

    return count


def packing_worker(dtype: str, half: int) -> Worker:
    """What a Spark worker runs to hand over the states of its partition, as bytes."""
    gathered = _gathering(dtype, half, _AT_ONCE)

    def pack(batches: Batches) -> Batches:
        import pyarrow as pa

        for states in gathered(batches):
            data = pa.array([states.tobytes()], type=pa.binary())
            yield pa.RecordBatch.from_arrays(
                [pa.array([states.shape[1]], type=pa.int64()), data], names=["n", "states"]
            )

    return pack


def _gathering(dtype: str, half: int, at_once: int) -> Callable[[Batches], Iterator[NDArray[Any]]]:
    """Batches as states (n_columns, n_rows), gathered into larger ones."""

    def gathered(batches: Batches) -> Iterator[NDArray[Any]]:
        import numpy as np

        def stacked(some: list[Any]) -> NDArray[Any]:
            n_columns, n_rows = some[0].num_columns, sum(batch.num_rows for batch in some)
            states, start = np.empty((n_columns, n_rows), dtype=dtype), 0
            for batch in some:
                for line, column in zip(states, batch.columns, strict=True):
                    shifted = column.to_numpy(zero_copy_only=False)
                    np.add(shifted, half, out=line[start : start + batch.num_rows], dtype=dtype, casting="unsafe")
                start += batch.num_rows
            return states

        waiting, n_waiting = [], 0
        for batch in batches:
            waiting.append(batch)
            n_waiting += batch.num_rows
            if n_waiting >= at_once:
                yield stacked(waiting)
                waiting, n_waiting = [], 0
        if n_waiting:
            yield stacked(waiting)

    return gathered


def _plain_adding(request: TableRequest) -> Callable[[NDArray[Any], NDArray[np.int64]], None]:
    """`request.add` in numpy alone."""
    cliques, widths, groups = request.cliques, request.widths, request.groups
    terms, starts = request.plain_terms

    def add_tables(states: NDArray[Any], sums: NDArray[np.int64]) -> None:
        import numpy as np

        if groups is not None:
            states = np.array([group[line] for group, line in zip(groups, states, strict=True)])
        start = 0
        for clique in cliques:
            cells, size = np.zeros(states.shape[1], dtype=np.int64), 1
            for column in clique:
                cells *= widths[column]
                cells += states[column]
                size *= widths[column]
            sums[start : start + size] += np.bincount(cells, minlength=size)
            start += size

    def add_terms(states: NDArray[Any], sums: NDArray[np.int64]) -> None:
        import numpy as np

        assert groups is not None
        n_set = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.int64)
        bits = {0: np.packbits(np.ones(states.shape[1], dtype=np.bool_))}
        for column, (group, line) in enumerate(zip(groups, states, strict=True)):
            for number in range(1, widths[column]):
                bits[starts[column] + number - 1] = np.packbits(group[line] == number)
        for place, slots in enumerate(terms or ()):
            both = bits[slots[0]]
            for slot in slots[1:]:
                both = both & bits[slot]
            sums[place] += n_set[both].sum()

    return add_tables if terms is None else add_terms
