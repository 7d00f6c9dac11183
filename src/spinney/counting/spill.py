"""Temporary files of what memory cannot hold: states of rows, and sorted runs of counted cells. SENSITIVE.

    state file      states of rows, for passes that need not read the table again
    spilled runs    the limit of memory, sorted runs on disk, and their merging into one that is mapped

The files have no name, so whatever happens (an error, Ctrl-C, a killed process) nothing stays behind. They lie
in the folder for temporary files (TMPDIR), belong to this process alone, and are as private as the table.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from threading import Lock
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts
from spinney.counting.sorting import Counts, first_above, merge_counted
from spinney.errors import FileError, ParameterError, redacted
from spinney.grid.codes import Codes
from spinney.grid.lattice import Lattice
from spinney.machine import memory_quota
from spinney.text import Sensitive

# ----------------------------------------------------------------------------------------------------------- state file
# States of rows in a temporary file, for passes over them that need not read the table again.
#
# The file holds a byte for each row and column (two where a column has more than 256 states), in the order in
# which threads hand them in. It is read, not mapped: what was counted takes no memory. A disk that fills up is
# no error: the file is given up, and rows are read from the table again.


# So much of the free disk is left alone.
_SPARE = 0.25


class LevelFile(Sensitive):
    """Blocks of states (n_columns, n_rows). Threads may write, or read, at once.

    Args:
        n_columns: how many columns there are.
        dtype: of their states.
        folder: where the file is; None: the folder for temporary files.
    """

    def __init__(self, n_columns: int, dtype: np.dtype[Any], *, folder: str | None = None) -> None:
        self._n_columns, self._dtype = n_columns, dtype
        self._file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115  # closed by `close`
        self._lock = Lock()
        self._blocks: list[tuple[int, int]] = []  # where a block begins, and how many rows it has
        self._n_bytes = 0
        self.is_given_up = False

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """What `read` can be asked for: where a block begins, and how many rows it has; none if it was given up."""
        return [] if self.is_given_up else self._blocks

    def append(self, states: NDArray[Any]) -> None:
        """Write the states of some rows; where that fails, the file is given up."""
        if self.is_given_up:
            return
        with self._lock:
            start = self._n_bytes
            self._n_bytes += states.nbytes
            self._blocks.append((start, states.shape[1]))
        data = np.ascontiguousarray(states).data.cast("B")
        try:
            while data:
                n_written = os.pwrite(self._file.fileno(), data, start)
                data, start = data[n_written:], start + n_written
        except OSError:  # the disk is full
            self._give_up()

    def read(self, block: tuple[int, int]) -> NDArray[Any]:
        """The states of a block."""
        start, n_rows = block
        states = np.empty((self._n_columns, n_rows), dtype=self._dtype)
        data = states.data.cast("B")
        while data:
            n_read = os.preadv(self._file.fileno(), [data], start)
            if not n_read:
                raise OSError("the temporary file is shorter than what was written")
            data, start = data[n_read:], start + n_read
        return states

    def _give_up(self) -> None:
        """Do without: the space is given back at once. Others may still write, so that the file is not closed."""
        self.is_given_up = True
        with suppress(OSError):
            self._file.truncate(0)

    def close(self) -> None:
        """Give the space back."""
        self._file.close()
        self._blocks = []


def level_file(n_rows: int, n_columns: int, dtype: np.dtype[Any], *, folder: str | None = None) -> LevelFile | None:
    """A file for the states of so many rows; None where the disk has no room for it."""
    try:
        free = shutil.disk_usage(folder or tempfile.gettempdir()).free
        if n_rows * n_columns * dtype.itemsize > (1 - _SPARE) * free:
            return None
        return LevelFile(n_columns, dtype, folder=folder)
    except OSError:
        return None


# --------------------------------------------------------------------------------------------------------- spilled runs
# Counts of cells that do not fit into memory: sorted runs in temporary files, merged into one that is mapped.
#
# A mapped file takes no memory that others want: the system drops its pages when it needs them.


MEMORY_LIMIT = "SPINNEY_MEMORY_LIMIT"
_DEFAULT_LIMIT = 2 << 30
_SMALLEST_LIMIT = 1 << 20
_LEAST_STATED = 10**6  # of what the environment may say
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}

Counted = tuple[Codes, Counts]


def default_memory_limit() -> int:
    """Bytes that counted cells may take: `SPINNEY_MEMORY_LIMIT`, such as "500MB" or "8GiB".

    Without it, 2 GiB, or half of what the container grants where that is less.
    """
    text = os.environ.get(MEMORY_LIMIT, "").strip()
    if not text:
        granted = memory_quota()
        return _DEFAULT_LIMIT if granted is None else max(_SMALLEST_LIMIT, min(_DEFAULT_LIMIT, granted // 2))
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text, flags=re.IGNORECASE)
    if found is None or found[2].upper() not in _UNITS:
        raise ParameterError(f"{MEMORY_LIMIT}={text!r} is not an amount of memory; write for example 500MB or 8GiB")
    limit = int(float(found[1]) * _UNITS[found[2].upper()])
    if limit < _LEAST_STATED:
        raise ParameterError(f"{MEMORY_LIMIT}={text!r} is too little to count cells; give at least 1MB")
    return limit


class SpilledRuns(Sensitive):
    """Sorted runs, one after the other, in one file without a name, in `folder` or that for temporary files."""

    def __init__(self, n_words: int, count_type: np.dtype[Any], *, folder: str | None = None) -> None:
        self._n_words, self.count_type, self.folder = n_words, count_type, folder
        self._starts: list[int] = []  # in the file: codes, then counts, up to a multiple of 8 bytes
        self._lengths: list[int] = []
        self._n_bytes = 0
        with redacted_spill(folder):
            self._file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115  # closed by `close`

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, codes: Codes, counts: Counts) -> None:
        """Write a run."""
        counts = counts.astype(self.count_type, copy=False)
        rest = np.zeros(-counts.nbytes % 8, dtype=np.uint8)
        with redacted_spill(self.folder):
            for array in (codes, counts, rest):
                _write(self._file, array)
        self._starts.append(self._n_bytes)
        self._lengths.append(len(counts))
        self._n_bytes += codes.nbytes + counts.nbytes + rest.nbytes

    def blocks(self, n_cells: int) -> list[Iterator[Counted]]:
        """The cells of every run again, so many at a time."""
        with redacted_spill(self.folder):
            whole = np.memmap(self._file, dtype=np.uint8, mode="r", shape=(self._n_bytes,))
        return [
            self._blocks(whole, start, length, n_cells)
            for start, length in zip(self._starts, self._lengths, strict=True)
        ]

    def _blocks(self, whole: NDArray[np.uint8], start: int, length: int, n_cells: int) -> Iterator[Counted]:
        middle = start + 8 * self._n_words * length
        codes = whole[start:middle].view(np.uint64).reshape(length, self._n_words)
        counts = whole[middle : middle + self.count_type.itemsize * length].view(self.count_type)
        for first in range(0, length, n_cells):
            yield codes[first : first + n_cells].copy(), counts[first : first + n_cells].copy()

    def close(self) -> None:
        """Give the space back, once no block is left to read."""
        self._file.close()


class _MergedRun:
    """One run that is written block by block, in two files without a name, and mapped in the end."""

    def __init__(self, n_words: int, count_type: np.dtype[Any], *, folder: str | None) -> None:
        self._n_words, self._count_type, self._folder = n_words, count_type, folder
        self._length = 0
        with redacted_spill(folder):
            self._codes_file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115  # closed by `close`
            self._counts_file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115

    def append(self, codes: Codes, counts: Counts) -> None:
        """Write cells that come after all those written before."""
        with redacted_spill(self._folder):
            _write(self._codes_file, codes)
            _write(self._counts_file, counts.astype(self._count_type, copy=False))
        self._length += len(codes)

    def mapped(self) -> Counted:
        """All cells as arrays that are read from the files when they are looked at."""
        if not self._length:
            return np.empty((0, self._n_words), np.uint64), np.empty(0, self._count_type)
        with redacted_spill(self._folder):
            codes = np.memmap(self._codes_file, dtype=np.uint64, mode="r+", shape=(self._length, self._n_words))
            counts = np.memmap(self._counts_file, dtype=self._count_type, mode="r+", shape=(self._length,))
        return np.asarray(codes), np.asarray(counts)

    def close(self) -> None:
        """Give the space back, once no mapped array is left."""
        self._codes_file.close()
        self._counts_file.close()


def redacted_spill(folder: str | None) -> AbstractContextManager[None]:
    """Errors of the disk as ours; all others pass."""
    return redacted(lambda err: _no_room(err, folder or tempfile.gettempdir()) if isinstance(err, OSError) else None)


def _no_room(err: OSError, folder: str) -> FileError:
    return FileError(
        f"cells that do not fit into memory cannot be put into the temporary folder {folder!r}: "
        f"{err.strerror or type(err).__name__}; set {MEMORY_LIMIT} to more memory, or TMPDIR to a folder with more room"
    )


def _write(file: IO[bytes], array: NDArray[Any]) -> None:
    left = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    while left:
        left = left[file.write(left) :]


def merge_runs(lattice: Lattice, runs: SpilledRuns, *, n_bytes: int) -> CellCounts:
    """All runs as one, in mapped files; holds about three times `n_bytes` while it merges."""
    n_cells = max(1, n_bytes // (8 * lattice.n_words + 8) // len(runs))
    whole = _MergedRun(lattice.n_words, runs.count_type, folder=runs.folder)
    try:
        for codes, counts in _merged_blocks(runs.blocks(n_cells)):
            whole.append(codes, counts)
        return CellCounts(lattice, *whole.mapped())
    finally:
        whole.close()


def _merged_blocks(readers: Sequence[Iterator[Counted]]) -> Iterator[Counted]:
    """Cells in order. Up to the smallest last code of all blocks at hand, nothing is still to be read."""
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
