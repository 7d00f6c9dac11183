"""Progress bars that appear only when someone is waiting: on a terminal, after two seconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def progress(steps: Sequence[T], title: str, *, unit: str) -> Iterable[T]:
    """The steps, with a bar on standard error if they take over two seconds and it is a terminal."""
    from tqdm import tqdm

    bar: Iterable[T] = tqdm(steps, desc=title, unit=unit, delay=2, disable=None, leave=False)
    return bar


def progress_bar(total: int, title: str, *, unit: str) -> Any:
    """A bar to `update` by hand, under the same conditions; a context manager."""
    from tqdm import tqdm

    return tqdm(total=total, desc=title, unit=unit, unit_scale=True, delay=2, disable=None, leave=False)
