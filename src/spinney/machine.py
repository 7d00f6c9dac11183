"""The machine: limits of processors and memory, optional libraries, and the threads in which all rooms work.

    control groups        limits of the machine or of the container that this process runs in
    optional libraries    imported on use, or named in an error that says what to type
    threads               how many there are, and the pools that every room works in

No result depends on the number of threads: random streams and sums go by parts of the work, never by threads.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from spinney.errors import MissingExtraError, ParameterError
from spinney.progress import progress
from spinney.text import brief

# ------------------------------------------------------------------------------------------------------- control groups
# Limits of the machine or container that this process runs in: processors and memory.
#
# Docker, Kubernetes and batch systems limit a process by control groups, of version 1 or 2, which neither
# `os.cpu_count` nor the size of the machine tells. A group may have limits of its own and lies within others that
# have theirs: the smallest holds. Where there are no control groups, or none can be read, only the machine limits.


# Version 1 writes "no limit" as the largest multiple of a page that a signed word can hold.
_BOUNDLESS = 1 << 60
# The numbers of the kernel are words of 64 bits; longer ones are none of its.
_LARGEST = 1 << 64


@cache
def cpu_quota(root: Path = Path("/")) -> float | None:
    """How many processors this process may keep busy, such as 1.5; None where there is no limit."""
    quotas = []
    for folder in _folders(root, "cpu"):
        found = _numbers(folder / "cpu.max")  # version 2: quota and period in one file
        if found is None:
            found = _numbers(folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us")
        if found is not None and len(found) == 2 and min(found) > 0:  # -1 is no quota
            quotas.append(found[0] / found[1])
    return min(quotas, default=None)


@cache
def memory_quota(root: Path = Path("/")) -> int | None:
    """How many bytes this process and those beside it in the container may take; None where there is no limit."""
    limits = []
    for folder in _folders(root, "memory"):
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            found = _numbers(folder / name)
            if found is not None and 0 < found[0] < _BOUNDLESS:
                limits.append(found[0])
    return min(limits, default=None)


@cache
def total_memory() -> int | None:
    """The bytes of memory of the machine, or of the container where that is less; None where nobody tells."""
    known = [memory_quota()]
    with suppress(AttributeError, OSError, ValueError):  # a system that is not POSIX, or does not say
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((size for size in known if size is not None and size > 0), default=None)


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's group and of all groups around it, of both versions.

    Inside a container the path may be one of the machine's, and not be there: the folder at the top is the container's.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return
    base = root / "sys/fs/cgroup"
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        tops = [base / controllers, base / controller] if controllers else [base, base / "unified"]
        group = PurePosixPath(path.lstrip("/"))
        for top in dict.fromkeys(tops):
            yield from (top / part for part in (group, *group.parents))


def _numbers(*files: Path) -> list[int] | None:
    """The whole numbers in files; None where there are none, or one is `max`, which is no limit."""
    try:
        found = [int(word) for file in files for word in file.read_text().split()]
    except (OSError, ValueError):
        return None
    return found if found and max(map(abs, found)) < _LARGEST else None


# --------------------------------------------------------------------------------------------------- optional libraries
# Optional libraries: imported on use, or named in an error that says what to type.
#
# The library itself is the first remedy, because `pip install NAME` works wherever Spinney came from: an index, a
# wheel or a checkout. The extra is the second: it holds the versions that Spinney is tested with. A module and its
# package may be called differently, and of some packages one build is wanted rather than another.


# Of each optional module: what pip calls it, and the extra of Spinney that brings it.
OPTIONAL = {
    "cryptography": ("cryptography", "sign"),
    "duckdb": ("duckdb", "duckdb"),
    "finufft": ("finufft", "metrics"),
    "jax": ("jax", "baselines"),
    "jinja2": ("jinja2", "report"),
    "markupsafe": ("jinja2", "report"),
    "matplotlib": ("matplotlib", "plot"),
    "optax": ("optax", "baselines"),
    "pandas": ("pandas", "pandas"),
    "polars": ("polars", "polars"),
    "psycopg": ("psycopg", "postgres"),
    "pyspark": ("pyspark", "spark"),
    "python_multipart": ("python-multipart", "studio"),
    "scipy": ("scipy", "baselines"),
    "starlette": ("starlette", "studio"),
    "uvicorn": ("uvicorn", "studio"),
    "sklearn": ("scikit-learn", "classify"),
    # The usual build for Linux brings hundreds of megabytes of CUDA.
    "xgboost": ("xgboost-cpu" if sys.platform == "linux" else "xgboost", "classify"),
}


def load_optional(module: str, what: str, *, extra: str | None = None, otherwise: str | None = None) -> Any:
    """A module of an optional library, or a MissingExtraError with the command that installs it.

    Args:
        module: what is imported, such as "sklearn.metrics".
        what: what needs it, as the subject of a sentence: "engine='polars'".
        extra: the extra that brings it, where that is not the one listed above.
        otherwise: what can be done instead, as in "leave engine out".
    """
    try:
        return import_module(module)
    except ImportError as err:
        package, usual = OPTIONAL[module.partition(".")[0]]
        rest = "" if otherwise is None else f", or {otherwise}"
        raise MissingExtraError(
            f"{what} needs {package}, which is not installed; pip install {package}, "
            f"or install Spinney with its extra {extra or usual!r}{rest}"
        ) from err


class _Lazy:
    """A module that is imported when something of it is asked for."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def lazily(*names: str) -> tuple[Any, ...]:
    """Modules that are imported on use, where that takes long: stating a schema loads no numpy."""
    return tuple(map(_Lazy, names))


# -------------------------------------------------------------------------------------------------------------- threads
# Threads: how many there are, and the pools in which all rooms work.
#
# The number is `SPINNEY_THREADS`, or as many as this process may use: the processors of the machine, those that
# it is bound to, and those that its container grants. No result depends on it: random streams and sums go by
# parts of the work, never by threads. Work that has not begun is given up at the first error and at an
# interruption.


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
