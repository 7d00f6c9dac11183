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
from numpy.typing import NDArray

from spinney.counting.joint import LAYOUT, TableRequest
from spinney.counting.states import AnyCut, Cut, states_array
from spinney.tables.engines.expressions import bits_of_cut
from spinney.tables.engines.spark_batches import Batches, Run, Worker, chained, gathering, unpacking

# Up to this many cells of a column, a table from cell to state travels to the workers.
_LOOKUP_CELLS = 1 << 16


class SparkPasses:
    """Counts tables over a frame of states, a job for each pass. SENSITIVE.

    Args:
        cells: a Spark data frame of packed numbers, one for each cut: the cell of a column, or the state of a place.
        cuts: how columns are cut into states.
        keeps: whether Spark keeps the states for later passes; they are computed again where it cannot.
        run: runs a job and gives its answer.
    """

    def __init__(self, cells: Any, cuts: Sequence[AnyCut], *, keeps: bool, run: Run) -> None:
        dtype = states_array(cuts, 0).true_states.dtype
        self._dtype, self._n_columns, self._run = dtype.name, len(cuts), run
        self._find, self._states, self._kept = state_worker(cuts, dtype), cells, None
        if keeps:
            kind = "tinyint" if dtype == np.uint8 else "smallint"
            types = ", ".join(f"s{which} {kind}" for which in range(len(cuts)))
            self._states = self._kept = cells.mapInArrow(self._find, types).persist()
        self._n_passes = 0

    def __repr__(self) -> str:
        return "SparkPasses(sensitive)"

    def count(self, request: TableRequest) -> NDArray[np.int64]:
        """The vector of what is asked for, of all rows."""
        self._n_passes += 1
        counted = self._map(table_worker(request, self._dtype), "cell bigint, n bigint")
        answer = self._run(
            counted.groupBy("cell").sum("n").toDF("cell", "n"), f"counting tables, pass {self._n_passes}"
        )
        sums = np.zeros(request.n_numbers, dtype=np.int64)
        sums[answer["cell"].to_numpy()] = answer["n"].to_numpy()
        return sums

    def parts(self) -> Iterator[NDArray[Any]]:
        """The states of all rows (n_columns, n_rows), some rows at a time."""
        for row in self._map(packing_worker(self._dtype), "n bigint, states binary").toLocalIterator():
            yield np.frombuffer(row["states"], dtype=self._dtype).reshape(self._n_columns, row["n"])

    def close(self) -> None:
        """Have Spark forget the states, if it still can."""
        if self._kept is not None:
            with suppress(Exception):
                self._kept.unpersist()

    def _map(self, worker: Worker, types: str) -> Any:
        """What a worker makes of states: of those that Spark keeps, or as it finds them."""
        return self._states.mapInArrow(worker if self._kept is not None else chained(self._find, worker), types)


def state_worker(cuts: Sequence[AnyCut], dtype: np.dtype[Any]) -> Worker:
    """What a Spark worker runs to find states of packed cells; of places they are there. States get a sign."""
    finders = [_plain_finder(cut, dtype) for cut in cuts]
    signed, unpack, gathered = f"i{dtype.itemsize}", unpacking([bits_of_cut(cut) for cut in cuts]), gathering()

    def find(batches: Batches) -> Batches:
        import numpy as np
        import pyarrow as pa

        names = [f"s{which}" for which in range(len(finders))]
        for columns in gathered(batches):
            found = []
            for place, column in enumerate(columns):
                for which, cells in unpack(place, column):
                    first, states, lookup = finders[which]
                    here = cells  # of a place: its states
                    if lookup is not None:
                        here = lookup[cells]
                    elif states is not None:
                        here = states[np.searchsorted(first, cells, side="right") - 1]
                    found.append(pa.array(here.astype(signed)))
            yield pa.RecordBatch.from_arrays(found, names=names)

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
    n_numbers, stacked, plain = request.n_numbers, _stacking(dtype), _plain_adding(request)

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
        for states in stacked(batches):
            add(states, sums)
        found = np.flatnonzero(sums)
        yield pa.RecordBatch.from_arrays([pa.array(found), pa.array(sums[found])], names=["cell", "n"])

    return count


def packing_worker(dtype: str) -> Worker:
    """What a Spark worker runs to hand over the states of its partition, as bytes."""
    stacked = _stacking(dtype)

    def pack(batches: Batches) -> Batches:
        import pyarrow as pa

        for states in stacked(batches):
            data = pa.array([states.tobytes()], type=pa.binary())
            yield pa.RecordBatch.from_arrays(
                [pa.array([states.shape[1]], type=pa.int64()), data], names=["n", "states"]
            )

    return pack


def _stacking(dtype: str) -> Callable[[Batches], Iterator[NDArray[Any]]]:
    """Batches as states (n_columns, n_rows), gathered into larger ones. They have a sign, for Spark has no others."""
    gathered = gathering()

    def stacked(batches: Batches) -> Iterator[NDArray[Any]]:
        import numpy as np

        for columns in gathered(batches):
            states = np.empty((len(columns), len(columns[0])), dtype=dtype)
            for line, column in zip(states, columns, strict=True):
                line[:] = column.astype(dtype)
            yield states

    return stacked


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
