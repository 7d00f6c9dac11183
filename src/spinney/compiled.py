"""Compiled loops: numba without the interpreter lock, cached on disk where there is a place for it.

The first run on a machine compiles, which takes seconds; someone who waits is told so. `Compilations` hears of it from
numba's own events, so that calls of loops that are compiled cost nothing more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event
from numba.core.caching import NullCache

from spinney.progress import Begun, begin, is_watched

Function = TypeVar("Function", bound=Callable[..., Any])

# All loops of this process, as numba holds them.
LOOPS: list[Any] = []


def compiled(function: Function) -> Function:
    """The function as machine code, compiled on first use. Division follows IEEE, which lets loops become vectors."""
    return _compiled(function, fastmath=False)


def compiled_loosely(function: Function) -> Function:
    """The same, with sums in whatever order is fastest: for post-processing, where last digits do not matter."""
    return _compiled(function, fastmath=True)


def _compiled(function: Function, *, fastmath: bool) -> Function:
    try:
        loop = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=fastmath)(function)
    except RuntimeError:
        # Neither the sources nor the home folder can be written to: compile anew in every process.
        loop = numba.njit(nogil=True, error_model="numpy", fastmath=fastmath)(function)
    LOOPS.append(loop)
    return cast(Function, loop)


def is_cached(loop: Any) -> bool:
    """Whether what is compiled of a loop is kept for later runs."""
    return not isinstance(loop._cache, NullCache)


# ---------------------------------------------------------------------------------------------------- compilation


class Compilations(event.Listener):
    """Hears when loops of Spinney are compiled, counts them, and tells whoever waits."""

    def __init__(self) -> None:
        self.n_done = 0
        self.seconds = 0.0
        self._depth = 0  # loops are compiled while others are that call them; numba holds a lock meanwhile
        self._start = 0.0
        self._shown: Begun | None = None

    def on_start(self, happening: Any) -> None:
        if not _is_ours(happening):
            return
        self._depth += 1
        if self._depth > 1:
            return
        self._start = time.perf_counter()
        if is_watched():
            keeps = is_cached(happening.data["dispatcher"])
            # Loops take less than two seconds each, and all together far more.
            self._shown = begin(lambda: self._title(keeps), spent=self.seconds)

    def on_end(self, happening: Any) -> None:
        if not _is_ours(happening):
            return
        self._depth -= 1
        self.n_done += 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._start
            if self._shown is not None:
                self._shown.close()
                self._shown = None

    def _title(self, keeps: bool) -> str:
        if keeps:
            return f"compiling once, loop {self.n_done + 1}; later runs start at once"
        return f"compiling, loop {self.n_done + 1}; set NUMBA_CACHE_DIR to a folder that can be written to keep it"


def _is_ours(happening: Any) -> bool:
    return str(happening.data["dispatcher"].py_func.__module__).startswith("spinney.")


COMPILATIONS = Compilations()
event.register("numba:compile", COMPILATIONS)  # type: ignore[no-untyped-call]  # numba has few types
