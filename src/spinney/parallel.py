"""Threads: how many there are, and the pools in which all rooms work.

The number is `SPINNEY_THREADS`, or as many as this process may use: the processors of the machine, those that it is
bound to, and those that its container grants. No result depends on it: random streams and sums go by parts of the
work, never by threads. Work that has not begun is given up at the first error and at an interruption.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

from spinney.cgroups import cpu_quota
from spinney.errors import ParameterError
from spinney.progress import progress
from spinney.shown import brief

T = TypeVar("T")

THREADS = "SPINNEY_THREADS"
_MOST_THREADS = 1024
# Below this many items a thread takes longer to start than to work.
_FEW_ITEMS = 1 << 14


def n_threads() -> int:
    """How many threads work at once: `SPINNEY_THREADS`, or as many processors as this process may use."""
    text = os.environ.get(THREADS, "").strip()
    if not text:
        return available_processors()
    digits = text.lstrip("0") if text.isascii() and text.isdigit() else ""
    if not digits or len(digits) > len(str(_MOST_THREADS)) or int(digits) > _MOST_THREADS:
        raise ParameterError(
            f"{THREADS}={brief(text)} is not a number of threads; write a whole number from 1 to {_MOST_THREADS}, "
            "or leave it out to use all processors that this process may use"
        )
    return int(digits)


def available_processors() -> int:
    """How many processors this process may use: of the machine, of those that it is bound to, of its container."""
    counts = [os.cpu_count() or 1]
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on; heeds -X cpu_count
        counts.append(os.process_cpu_count() or 1)
    if hasattr(os, "sched_getaffinity"):
        counts.append(len(os.sched_getaffinity(0)))
    quota = cpu_quota()
    if quota is not None:
        counts.append(math.ceil(quota))
    return max(1, min(counts))


@contextmanager
def threads(n: int | None = None) -> Iterator[Executor]:
    """A pool of `n_threads()` threads, or of `n`, that gives up what has not begun when the block ends by an error."""
    with ThreadPoolExecutor(n_threads() if n is None else n, thread_name_prefix="spinney") as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def each(work: Callable[..., T], *items: Iterable[Any], title: str | None = None, unit: str = "part") -> list[T]:
    """What threads make of the items, in their order: `map`, with a progress bar where there is a title.

    Args:
        work: called for each item, by any thread; for several iterables, with one item of each.
        items: one iterable or several of equal length.
        title: what is being done, shown to someone who waits for long.
        unit: what an item is called in the bar.
    """
    every = list(zip(*items, strict=True))
    if len(every) == 1 or n_threads() == 1:  # a thread would do no more than this one
        waiting = every if title is None else progress(every, title, unit=unit)
        return [work(*item) for item in waiting]
    with threads() as pool:
        under_way = [pool.submit(work, *item) for item in every]
        shown = under_way if title is None else progress(under_way, title, unit=unit)
        return [future.result() for future in shown]


def by_slices(work: Callable[[slice], None], n_items: int) -> None:
    """Have threads work on all items, in slices of equal length: more of them than threads."""
    n = n_threads()
    if n_items < _FEW_ITEMS or n == 1:
        work(slice(0, n_items))
        return
    cuts = [n_items * share // (4 * n) for share in range(4 * n + 1)]
    each(work, [slice(low, high) for low, high in pairwise(cuts)])
