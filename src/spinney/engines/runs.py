"""Runs: cells of a table that comes in batches, counted within a limit of memory.

Codes are collected in one buffer. Where it can hold all rows it is sorted once, in place, and that is all. Otherwise a
full buffer becomes a run of distinct cells with counts. Runs of about equal length are merged, so that no cell is moved
often: where rows repeat their cells, runs stay short. Once runs take a quarter of the limit, they go to disk.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from spinney.engines.frames import Table
from spinney.engines.memory import axis_columns, encode_rows
from spinney.engines.spill import SpilledRun, merge_runs
from spinney.partition.counts import CellCounts
from spinney.partition.sorting import counts_type
from spinney.partition.zorder import Codes
from spinney.schema.lattice import Lattice

# Batches whose codes are being made while the next one is read.
_MOST_PENDING = 2


class Runs:
    """Counts of all rows so far, under a limit in bytes."""

    def __init__(self, lattice: Lattice, *, n_rows: int, limit: int) -> None:
        self.lattice = lattice
        self._quarter = limit // 4
        self._count_type = counts_type(n_rows)
        cell_bytes = 8 * lattice.n_words + self._count_type.itemsize
        self._holds_all = n_rows * cell_bytes <= limit
        self._capacity = n_rows if self._holds_all else max(1, self._quarter // cell_bytes)
        self._codes = self._new_buffer()
        self._n_used = 0
        self._pending: deque[Future[None]] = deque()
        self._held: list[CellCounts] = []
        self._spilled: list[SpilledRun] = []

    def __repr__(self) -> str:
        return "Runs(sensitive)"

    def add(self, batch: Table, pool: ThreadPoolExecutor) -> None:
        """Have the codes of a batch made by another thread. Errors of values may come with a later batch."""
        start = 0
        while start < batch.n_rows:
            if self._n_used == self._capacity:
                self._count()
                self._codes = self._new_buffer()
            n_rows = min(batch.n_rows - start, self._capacity - self._n_used)
            here = self._codes[self._n_used : self._n_used + n_rows]
            self._pending.append(pool.submit(_encode, batch, self.lattice, start, here))
            self._n_used += n_rows
            start += n_rows
        self._settle(_MOST_PENDING)

    def finish(self) -> None:
        """Wait for the last codes; raises what is wrong with the last rows."""
        self._settle(0)

    def merged(self) -> CellCounts:
        """All counts together."""
        self._count()
        if not self._spilled:
            while len(self._held) > 1:
                self._merge_last()
            return self._held[0]
        self._spill()
        return merge_runs(self.lattice, self._spilled, n_bytes=self._quarter)

    def close(self) -> None:
        """Forget all rows; what `merged` gave stays."""
        for run in self._spilled:
            run.close()
        self._spilled.clear()
        self._held.clear()

    def _new_buffer(self) -> Codes:
        return np.empty((self._capacity, self.lattice.n_words), dtype=np.uint64)

    def _settle(self, n_left: int) -> None:
        while len(self._pending) > n_left:
            self._pending.popleft().result()

    def _count(self) -> None:
        """What the buffer holds becomes a run."""
        self._settle(0)
        counts = CellCounts.from_codes(self.lattice, self._codes[: self._n_used])
        counts.true_counts = counts.true_counts.astype(self._count_type, copy=False)
        self._codes, self._n_used = self._codes[:0], 0
        self._held.append(counts)
        if not self._holds_all and sum(map(_n_bytes, self._held)) > self._quarter:
            self._spill()
        while len(self._held) > 1 and 2 * len(self._held[-1].true_counts) > len(self._held[-2].true_counts):
            self._merge_last()

    def _merge_last(self) -> None:
        last = self._held.pop()
        self._held[-1] = self._held[-1].merge(last)

    def _spill(self) -> None:
        while self._held:
            counts = self._held.pop()
            if len(counts.true_counts):
                self._spilled.append(SpilledRun(self.lattice.n_words, self._count_type))
                self._spilled[-1].append(counts.true_codes, counts.true_counts)


def _encode(batch: Table, lattice: Lattice, first_row: int, codes: Codes) -> None:
    encode_rows(axis_columns(batch, lattice), lattice, first_row, codes)


def _n_bytes(counts: CellCounts) -> int:
    return counts.true_codes.nbytes + counts.true_counts.nbytes
