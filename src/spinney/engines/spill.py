"""Counts of cells that do not fit into memory: sorted runs in temporary files, merged into one that is mapped.

The files have no name, so whatever happens (an error, Ctrl-C, a killed process) nothing stays behind. They lie in the
folder for temporary files (TMPDIR), belong to this process alone, and hold cell codes: as private as the table.
A mapped file takes no memory that others want: the system drops its pages when it needs them.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import FileError, ParameterError
from spinney.partition.counting import Counts, first_above, merge_counted
from spinney.partition.counts import CellCounts
from spinney.partition.zorder import Codes
from spinney.schema.lattice import Lattice

MEMORY_LIMIT = "SPINNEY_MEMORY_LIMIT"
_DEFAULT_LIMIT = 2 << 30
_SMALLEST_LIMIT = 1 << 20
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}

Counted = tuple[Codes, Counts]


def memory_limit() -> int:
    """Bytes that counted cells may take: `SPINNEY_MEMORY_LIMIT`, such as "500MB" or "8GiB"; 2 GiB unless told."""
    text = os.environ.get(MEMORY_LIMIT, "").strip()
    if not text:
        return _DEFAULT_LIMIT
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text, flags=re.IGNORECASE)
    if found is None or found[2].upper() not in _UNITS:
        raise ParameterError(f"{MEMORY_LIMIT}={text!r} is not an amount of memory; write for example 500MB or 8GiB")
    limit = int(float(found[1]) * _UNITS[found[2].upper()])
    if limit < _SMALLEST_LIMIT:
        raise ParameterError(f"{MEMORY_LIMIT}={text!r} is too little to count cells; give at least 1MiB")
    return limit


class SpilledRun:
    """One sorted run in two files without a name: codes and counts."""

    def __init__(self, n_words: int, count_type: np.dtype[Any]) -> None:
        self._n_words, self._count_type = n_words, count_type
        self._length = 0
        with _spilling():
            # Closed by `close`, or with the last reference.
            self._codes_file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
            self._counts_file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return "SpilledRun(sensitive)"

    def append(self, codes: Codes, counts: Counts) -> None:
        """Write cells that come after all those written before."""
        with _spilling():
            _write(self._codes_file, codes)
            _write(self._counts_file, counts.astype(self._count_type, copy=False))
        self._length += len(codes)

    def blocks(self, n_cells: int) -> Iterator[Counted]:
        """The cells again, so many at a time."""
        codes, counts = self.mapped()
        for start in range(0, self._length, n_cells):
            yield codes[start : start + n_cells].copy(), counts[start : start + n_cells].copy()

    def mapped(self) -> Counted:
        """All cells as arrays that are read from the files when they are looked at."""
        if not self._length:
            return np.empty((0, self._n_words), np.uint64), np.empty(0, self._count_type)
        shape = (self._length, self._n_words)
        with _spilling():
            codes = np.memmap(self._codes_file, dtype=np.uint64, mode="r+", shape=shape)
            counts = np.memmap(self._counts_file, dtype=self._count_type, mode="r+", shape=(self._length,))
        return np.asarray(codes), np.asarray(counts)

    def close(self) -> None:
        """Give the space back, once no mapped array is left."""
        self._codes_file.close()
        self._counts_file.close()


class _spilling:  # noqa: N801  # reads as a statement
    """Errors of the disk as ours."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, err: BaseException | None, trace: object) -> None:
        if isinstance(err, OSError):
            raise FileError(
                f"cells that do not fit into memory cannot be put into the temporary folder {tempfile.gettempdir()!r}: "
                f"{err.strerror or err}; set TMPDIR to a folder with more room, or {MEMORY_LIMIT} to more memory"
            ) from err


def _write(file: IO[bytes], array: NDArray[Any]) -> None:
    left = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    while left:
        left = left[file.write(left) :]


def merge_runs(lattice: Lattice, runs: Sequence[SpilledRun], *, n_bytes: int) -> CellCounts:
    """All runs as one, in a mapped file; holds about three times `n_bytes` while it merges."""
    count_type = np.dtype(np.int64) if any(run._count_type == np.int64 for run in runs) else np.dtype(np.int32)
    n_cells = max(1, n_bytes // (8 * lattice.n_words + 8) // len(runs))
    whole = SpilledRun(lattice.n_words, count_type)
    try:
        for codes, counts in _merged_blocks(runs, n_cells):
            whole.append(codes, counts)
        return CellCounts(lattice, *whole.mapped())
    finally:
        whole.close()


def _merged_blocks(runs: Sequence[SpilledRun], n_cells: int) -> Iterator[Counted]:
    """Cells in order. Up to the smallest last code of all blocks at hand, nothing is still to be read."""
    readers = [run.blocks(n_cells) for run in runs]
    heads = [next(reader, None) for reader in readers]
    while any(head is not None for head in heads):
        present = [head for head in heads if head is not None]
        bound = min((head[0][-1] for head in present), key=lambda code: tuple(code.tolist()))
        pieces = []
        for index, head in enumerate(heads):
            if head is None:
                continue
            codes, counts = head
            cut = first_above(codes, bound)
            if cut:
                pieces.append((codes[:cut], counts[:cut]))
            heads[index] = (codes[cut:], counts[cut:]) if cut < len(codes) else next(readers[index], None)
        yield _merge_all(pieces)


def _merge_all(pieces: list[Counted]) -> Counted:
    """Neighbours two by two, until one is left."""
    while len(pieces) > 1:
        pairs = [pieces[i : i + 2] for i in range(0, len(pieces), 2)]
        pieces = [merge_counted(*pair[0], *pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]
    return pieces[0]
