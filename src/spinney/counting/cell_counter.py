"""CellCounter: cells of a table that comes in parts, counted within a limit of memory.

Threads make codes and put them into one buffer. Where it can hold all rows, that is all. Otherwise a full buffer
becomes a run of distinct cells with counts. Runs of about equal length are merged, so that no cell is moved
often: where rows repeat their cells, runs stay short. Once runs take a quarter of the limit, they go to disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

import numpy as np

from spinney.counting.cells import AxisCells, encode_rows
from spinney.counting.counts import CellCounts
from spinney.counting.merging import counts_type, merge_counted
from spinney.counting.radix import PART, RadixBuckets
from spinney.counting.spill import Counted, SpilledRuns, merge_runs
from spinney.schema.lattice import Lattice
from spinney.schema.zorder import Codes


class CellCounter:
    """Counts of all rows so far.

    Args:
        lattice: what the rows are counted on.
        n_rows: how many rows there will be, at most.
        memory_limit: bytes that they may take; beyond, they go to disk. None: whatever they take.
        spill_folder: where they go then; None: the folder for temporary files.
    """

    def __init__(
        self, lattice: Lattice, *, n_rows: int, memory_limit: int | None = None, spill_folder: str | None = None
    ) -> None:
        self.lattice = lattice
        self._quarter = 0 if memory_limit is None else memory_limit // 4
        self._spill_folder = spill_folder
        self._count_type = counts_type(n_rows)
        word_bytes = 8 * lattice.n_words
        # While codes are put in order, each is held twice, those of several words with their place; while cells are
        # counted, three times.
        row_bytes = 2 * word_bytes + (8 if lattice.n_words > 1 else 0)
        self._holds_all = memory_limit is None or row_bytes * n_rows <= memory_limit
        most = max(1, self._quarter // (3 * word_bytes + self._count_type.itemsize))
        self._capacity = n_rows if self._holds_all else most
        self._buffer = RadixBuckets(self._capacity, lattice.n_words)
        self._most = max(1, min(PART, self._capacity))  # codes that are scattered at once
        self._waiting: list[Codes] = []
        self._n_waiting = 0
        self._n_used = 0
        self._n_writing = 0
        self._turn = Condition()
        self._held: list[Counted] = []
        self._spilled: SpilledRuns | None = None

    def __repr__(self) -> str:
        return "CellCounter(sensitive)"

    def add(self, columns: list[AxisCells], start: int, stop: int) -> None:
        """Count rows start..stop of columns. Threads may do so at once."""
        for first in range(start, stop, self._most):
            codes = np.empty((min(self._most, stop - first), self.lattice.n_words), dtype=np.uint64)
            encode_rows(columns, self.lattice, first, codes)
            self.put(codes)

    def put(self, codes: Codes) -> None:
        """Count rows by their codes. Few of them wait for others: small parts are slow to concatenate."""
        if 2 * len(codes) < self._most:
            with self._turn:
                self._waiting.append(codes)
                self._n_waiting += len(codes)
                if self._n_waiting < self._most:
                    return
                waiting, self._waiting, self._n_waiting = self._waiting, [], 0
            codes = np.concatenate(waiting)
        for first in range(0, len(codes), self._most):
            part = codes[first : first + self._most]
            with self._room(len(part)):
                self._buffer.put(part)

    def merged(self) -> CellCounts:
        """All counts together; nothing is left here."""
        if self._waiting:
            self._buffer.put(np.concatenate(self._waiting))
            self._waiting, self._n_waiting = [], 0
        if self._holds_all:
            return CellCounts.of_rows(self.lattice, self._buffer)
        self._count()
        if self._spilled is None:
            self._merge_held()
            return CellCounts(self.lattice, *self._held.pop())
        self._spill()
        return merge_runs(self.lattice, self._spilled, n_bytes=self._quarter)

    def close(self) -> None:
        """Forget all rows; what `merged` gave stays."""
        if self._spilled is not None:
            self._spilled.close()
            self._spilled = None
        self._held.clear()
        self._waiting, self._n_waiting = [], 0
        self._buffer = RadixBuckets(0, self.lattice.n_words)

    @contextmanager
    def _room(self, n_codes: int) -> Iterator[None]:
        """Room in the buffer for so many codes; a full one is counted first, once nobody writes into it."""
        with self._turn:
            while self._n_used + n_codes > self._capacity:
                if self._n_writing:
                    self._turn.wait()
                else:
                    self._count()
            self._n_used += n_codes
            self._n_writing += 1
        try:
            yield
        finally:
            with self._turn:
                self._n_writing -= 1
                self._turn.notify_all()

    def _count(self) -> None:
        """What the buffer holds becomes a run."""
        codes, counts = CellCounts.of_rows(self.lattice, self._buffer).distinct()
        self._n_used = 0
        self._held.append((codes, counts.astype(self._count_type, copy=False)))
        if sum(codes.nbytes + counts.nbytes for codes, counts in self._held) > self._quarter:
            self._spill()
        while len(self._held) > 1 and 2 * len(self._held[-1][0]) > len(self._held[-2][0]):
            self._merge_last()

    def _merge_last(self) -> None:
        last = self._held.pop()
        self._held[-1] = merge_counted(*self._held[-1], *last)

    def _merge_held(self) -> None:
        while len(self._held) > 1:
            self._merge_last()

    def _spill(self) -> None:
        """Put what is held on disk, as one run."""
        self._merge_held()
        if self._spilled is None:
            self._spilled = SpilledRuns(self.lattice.n_words, self._count_type, folder=self._spill_folder)
        if self._held:
            self._spilled.add(*self._held.pop())
