"""Compiled loops: numba without the interpreter lock, cached on disk where there is a place for it."""

from __future__ import annotations

from collections.abc import Callable
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
