"""Counted cells that would not fit on the driver: Spark keeps them, and they come over in parts.

A hash puts cells into buckets, which are of about the same size whatever the table holds; some buckets together are a
part that fits. What Spark keeps is ordered by bucket, so that a part is a look into a few blocks, not another count.

Executors are lost, and what they kept is then counted again. A data frame that gives other rows the second time would
have one person's row in two parts. So there are checksums of the buckets first (how many cells, and a hash over cells
and counts), and every part must agree with them to the last cell: engines.proof.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.tables.source import table_changed

# Runs a query of Spark's, and says what for if it fails.
Run = Callable[[Any, str], pa.Table]


@dataclass(frozen=True, slots=True)
class Part:
    """Neighbouring buckets, and what the checksums say of them. SENSITIVE."""

    first: int
    last: int
    n_cells: int
    hash: int

    def __repr__(self) -> str:
        return "Part(sensitive)"


class KeptCells(Protocol):
    """Counted cells that an engine keeps until `close`, in buckets. SENSITIVE."""

    def checksums(self) -> BucketChecksums:
        """What is in each bucket; counts the cells, if that has not been done."""

    def collect(self, part: Part) -> pa.Table:
        """The cells of a part (k0, k1, ..., n), if they are still those of the checksums."""

    def close(self) -> None:
        """Have the engine forget the cells."""


class PersistedCells:
    """Cells of one lattice, or of several (by `which`), that Spark keeps until `close`. SENSITIVE."""

    def __init__(self, answer: Any, *, n_buckets: int, functions: Any, run: Run) -> None:
        self._keys = [name for name in answer.columns if name.startswith("k")]
        self._n_buckets = n_buckets
        self._functions = functions
        self._run = run
        cell = ", ".join(self._keys)
        which = "CAST(which AS BIGINT)" if "which" in answer.columns else "0"
        self._kept = (
            answer.selectExpr(
                *self._keys,
                "n",
                f"xxhash64({cell}, n) AS h",
                f"{which} * {n_buckets} + pmod(xxhash64({cell}), {n_buckets}) AS b",
            )
            .sortWithinPartitions("b")
            .persist()
        )

    def __repr__(self) -> str:
        return "PersistedCells(sensitive)"

    def checksums(self) -> BucketChecksums:
        """What is in each bucket. The first job: it counts the cells, and Spark keeps them from then on."""
        expr = self._functions.expr
        sums = self._kept.groupBy("b").agg(
            expr("count(*) AS cells"),
            expr("sum(n) AS n"),
            expr("bit_xor(h) AS h"),
            expr("coalesce(max(CASE WHEN k0 < 0 THEN k0 END), 0) AS fault"),
        )
        answer = self._run(sums, "counting cells").sort_by("b")
        columns = (answer[name].to_numpy().astype(np.int64) for name in ("b", "cells", "n", "h", "fault"))
        return BucketChecksums(self._n_buckets, *columns)

    def collect(self, part: Part) -> pa.Table:
        """The cells of a part (k0, k1, ..., n), if they are still those of the checksums."""
        wanted = self._kept.filter(f"b BETWEEN {part.first} AND {part.last}").select(*self._keys, "n", "h")
        answer = self._run(wanted, "collecting cells")
        hashes = answer["h"].to_numpy()
        if answer.num_rows != part.n_cells or np.bitwise_xor.reduce(hashes, initial=0) != part.hash:
            raise table_changed()
        return answer.drop_columns("h")

    def close(self) -> None:
        """Have Spark forget the cells, if it still can."""
        with suppress(Exception):
            self._kept.unpersist()


class BucketChecksums:
    """Of every bucket: cells, rows, the hash, and the fault that a row without a cell has left. SENSITIVE."""

    def __init__(
        self,
        n_buckets: int,
        bucket: NDArray[np.int64],
        n_cells: NDArray[np.int64],
        n_rows: NDArray[np.int64],
        hashes: NDArray[np.int64],
        faults: NDArray[np.int64],
    ) -> None:
        self._n_buckets, self._bucket = n_buckets, bucket
        self._n_cells, self._n_rows, self._hashes = n_cells, n_rows, hashes
        self.faults = faults

    def __repr__(self) -> str:
        return "BucketChecksums(sensitive)"

    def n_rows(self, which: int) -> int:
        """Rows on a lattice."""
        return int(self._n_rows[self._of(which)].sum())

    def parts(self, which: int, most_cells: int) -> list[Part]:
        """The buckets of a lattice in parts of so many cells, or of one bucket where that has more."""
        return list(self._cut(self._of(which), most_cells))

    def _of(self, which: int) -> slice:
        start, stop = np.searchsorted(self._bucket, [which * self._n_buckets, (which + 1) * self._n_buckets])
        return slice(int(start), int(stop))

    def _cut(self, chosen: slice, most_cells: int) -> Iterator[Part]:
        start, n_cells = chosen.start, 0
        for at in range(chosen.start, chosen.stop):
            if at > start and n_cells + self._n_cells[at] > most_cells:
                yield self._part(start, at)
                start, n_cells = at, 0
            n_cells += int(self._n_cells[at])
        if start < chosen.stop:
            yield self._part(start, chosen.stop)

    def _part(self, start: int, stop: int) -> Part:
        return Part(
            int(self._bucket[start]),
            int(self._bucket[stop - 1]),
            int(self._n_cells[start:stop].sum()),
            int(np.bitwise_xor.reduce(self._hashes[start:stop])),
        )
