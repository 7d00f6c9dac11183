"""Vectors that threads add to at the same time, each to one of its own; in the end they are added up. SENSITIVE."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import LifoQueue
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray


class PartialSums:
    """Vectors of equal length, at most so many, made when they are needed.

    Args:
        length: of a vector.
        most: how many there may be; where all are taken, a thread waits for one. At least one.
        dtype: of their numbers, which the sum of all has to fit into.
    """

    def __init__(self, length: int, most: int, dtype: Any = np.int64) -> None:
        self._length, self._dtype, self._n_more, self._lock = length, dtype, max(1, most), Lock()
        self._free: LifoQueue[NDArray[Any]] = LifoQueue()
        self._all: list[NDArray[Any]] = []

    def __repr__(self) -> str:
        return "PartialSums(sensitive)"

    @contextmanager
    def one(self) -> Iterator[NDArray[Any]]:
        """A vector of one's own, for as long as the block lasts."""
        with self._lock:
            if self._free.empty() and self._n_more:
                self._n_more -= 1
                self._all.append(np.zeros(self._length, dtype=self._dtype))
                self._free.put(self._all[-1])
        mine = self._free.get()
        try:
            yield mine
        finally:
            self._free.put(mine)

    def total(self) -> NDArray[Any]:
        """The sum of all; nothing is left here."""
        total = self._all[0] if self._all else np.zeros(self._length, dtype=self._dtype)
        for other in self._all[1:]:
            total += other
        self._all = []
        return total
