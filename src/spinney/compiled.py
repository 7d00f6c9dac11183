"""Compiled loops: numba without the interpreter lock, cached on disk where there is a place for it; and threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function as machine code, compiled on first use. Division follows IEEE, which lets loops become vectors."""
    return _compiled(function, fastmath=False)


def compiled_loosely(function: Function) -> Function:
    """The same, with sums in whatever order is fastest: for post-processing, where last digits do not matter."""
    return _compiled(function, fastmath=True)


def _compiled(function: Function, *, fastmath: bool) -> Function:
    try:
        return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)(function))
    except RuntimeError:
        # Neither the sources nor the home folder can be written to: compile anew in every process.
        return cast(Function, numba.njit(nogil=True, error_model="numpy", fastmath=fastmath)(function))


# Below this many items a thread takes longer to start than to work.
_FEW_ITEMS = 1 << 14


def by_threads(work: Callable[[slice], None], n_items: int) -> None:
    """Have threads work on all items, in slices of equal length: more of them than threads."""
    n_threads = os.cpu_count() or 1
    if n_items < _FEW_ITEMS or n_threads == 1:
        work(slice(0, n_items))
        return
    cuts = [n_items * share // (4 * n_threads) for share in range(4 * n_threads + 1)]
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, (slice(low, high) for low, high in pairwise(cuts))))
