"""Tables of a forest, counted by Spark's executors: batches of states in, a vector of counts out, summed by Spark.

The cells of rows are expressions, computed in the JVM. Functions in Spark's own Python workers look up their states
under public cuts, count those of a partition, and hand over the numbers that are not 0; a group-by adds them up, and
the driver gets the sums. The functions carry all that they need. Where a worker has Spinney too, its compiled loops
count; elsewhere numpy does, and the numbers are the same. Workers need pyarrow and numpy, which Spark itself asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.counting.joint import LAYOUT, TableRequest
from spinney.counting.states import AnyCut, Cut, states_array

# Runs a query of Spark's, and says what for if it fails.
Run = Callable[[Any, str], pa.Table]
Batches = Iterator[Any]
Worker = Callable[[Batches], Batches]
# Rows that a worker counts, or packs, at once.
_AT_ONCE = 1 << 16
# Up to this many cells of a column, a table from cell to state travels to the workers.
_LOOKUP_CELLS = 1 << 16


class SparkPasses:
    """Counts tables over a frame of states, a job for each pass. SENSITIVE.

    Args:
        cells: a Spark data frame with a column for each cut: the cell of a column, or the state of a place.
        cuts: how columns are cut into states.
        keeps: whether Spark keeps the states for later passes; they are computed again where it cannot.
        run: runs a job and gives its answer.
    """

    def __init__(self, cells: Any, cuts: Sequence[AnyCut], *, keeps: bool, run: Run) -> None:
        dtype = states_array(cuts, 0).true_states.dtype
        kind = "tinyint" if dtype == np.uint8 else "smallint"
        types = ", ".join(f"s{which} {kind}" for which in range(len(cuts)))
        states = cells.mapInArrow(state_worker(cuts, dtype), types)
        self._kept = states.persist() if keeps else None
        self._states = states if self._kept is None else self._kept
        self._dtype, self._run = dtype.name, run
        self._n_passes = 0

    def __repr__(self) -> str:
        return "SparkPasses(sensitive)"

    def count(self, request: TableRequest) -> NDArray[np.int64]:
        """The vector of what is asked for, of all rows."""
        self._n_passes += 1
        counted = self._states.mapInArrow(table_worker(request, self._dtype), "cell bigint, n bigint")
        answer = self._run(
            counted.groupBy("cell").sum("n").toDF("cell", "n"), f"counting tables, pass {self._n_passes}"
        )
        sums = np.zeros(request.n_numbers, dtype=np.int64)
        sums[answer["cell"].to_numpy()] = answer["n"].to_numpy()
        return sums

    def parts(self) -> Iterator[NDArray[Any]]:
        """The states of all rows (n_columns, n_rows), some rows at a time."""
        n_columns, dtype = len(self._states.columns), self._dtype
        packed = self._states.mapInArrow(packing_worker(dtype), "n bigint, states binary")
        for row in packed.toLocalIterator():
            yield np.frombuffer(row["states"], dtype=dtype).reshape(n_columns, row["n"])

    def close(self) -> None:
        """Have Spark forget the states, if it still can."""
        if self._kept is not None:
            with suppress(Exception):
                self._kept.unpersist()


def state_worker(cuts: Sequence[AnyCut], dtype: np.dtype[Any]) -> Worker:
    """What a Spark worker runs to find states of cells; those of places are there already. States get a sign."""
    finders = [_plain_finder(cut, dtype) for cut in cuts]
    signed = f"i{dtype.itemsize}"

    def find(batches: Batches) -> Batches:
        import numpy as np
        import pyarrow as pa

        for batch in batches:
            found = []
            for column, (first, states, lookup) in zip(batch.columns, finders, strict=True):
                cells = column.to_numpy(zero_copy_only=False)
                if lookup is not None:
                    cells = lookup[cells]
                elif states is not None:
                    cells = states[np.searchsorted(first, cells, side="right") - 1]
                found.append(pa.array(cells.astype(signed)))
            yield pa.RecordBatch.from_arrays(found, names=[f"s{which}" for which in range(len(found))])

    return find


def _plain_finder(cut: AnyCut, dtype: np.dtype[Any]) -> tuple[Any, Any, Any]:
    """Stairs and their states, and a table from cells to states where there are few; of a place, nothing."""
    if not isinstance(cut, Cut):
        return None, None, None
    if 1 << cut.axis.bits > _LOOKUP_CELLS:
        return cut.first, cut.states.astype(dtype), None
    ends = np.append(cut.first[1:], 1 << cut.axis.bits)
    return None, None, np.repeat(cut.states, ends - cut.first).astype(dtype)


def table_worker(request: TableRequest, dtype: str) -> Worker:
    """What a Spark worker runs over the states of its partition: the numbers of its vector that are not 0."""
    # Plain values only, and functions within this one: they travel by value, to workers that may not know Spinney.
    layout, sizes, cliques, groups = LAYOUT, request.sizes, request.cliques, request.groups
    n_numbers, gathered, plain = request.n_numbers, _gathering(dtype, _AT_ONCE), _plain_adding(request)

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


def packing_worker(dtype: str) -> Worker:
    """What a Spark worker runs to hand over the states of its partition, as bytes."""
    gathered = _gathering(dtype, _AT_ONCE)

    def pack(batches: Batches) -> Batches:
        import pyarrow as pa

        for states in gathered(batches):
            data = pa.array([states.tobytes()], type=pa.binary())
            yield pa.RecordBatch.from_arrays(
                [pa.array([states.shape[1]], type=pa.int64()), data], names=["n", "states"]
            )

    return pack


def _gathering(dtype: str, at_once: int) -> Callable[[Batches], Iterator[NDArray[Any]]]:
    """Batches as states (n_columns, n_rows), gathered into larger ones."""

    def gathered(batches: Batches) -> Iterator[NDArray[Any]]:
        import numpy as np

        def stacked(some: list[Any]) -> NDArray[Any]:
            n_columns, n_rows = some[0].num_columns, sum(batch.num_rows for batch in some)
            states, start = np.empty((n_columns, n_rows), dtype=dtype), 0
            for batch in some:
                for line, column in zip(states, batch.columns, strict=True):
                    stored = column.to_numpy(zero_copy_only=False)  # with a sign, for Spark has no others
                    line[start : start + batch.num_rows] = stored.astype(dtype)
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
