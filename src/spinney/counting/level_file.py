"""States of rows in a temporary file, for passes over them that need not read the table again. SENSITIVE.

The file has no name, so nothing is left behind, whatever happens. It holds a byte for each row and column (two where a
column has more than 256 states), in the order in which threads hand them in. It is read, not mapped: what was counted
takes no memory. A disk that fills up is no error: the file is given up, and rows are read from the table again.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

# So much of the free disk is left alone.
_SPARE = 0.25


class LevelFile:
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

    def __repr__(self) -> str:
        return "LevelFile(sensitive)"

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
