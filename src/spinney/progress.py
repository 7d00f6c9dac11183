"""Progress for someone who waits: bars and lines on a terminal or in a notebook, after two seconds; else nothing.

Where nobody watches (a pipe, a log, a test) no bar is made and tqdm is not imported. A bar counts steps whose number is
known; a line says what is being done, and for how long. Both are kept moving by a thread, so that one long step does
not look like a process that hangs. Titles are ours: nothing of the table is in them.

A program that shows progress in its own way listens instead (`listening`): it is told the title, the steps that are
done and their number, and nothing is drawn.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, RLock, Thread
from typing import Any, Protocol, TypeVar
from uuid import uuid4

T = TypeVar("T")

# What is told the title, the steps that are done, and their number or None.
Listener = Callable[[str, int, int | None], object]

# Seconds before anything is shown, and between two drawings.
DELAY = 2.0
_EVERY = 0.5
# Seconds between two things that a listener is told of one bar.
_TOLD_EVERY = 0.2
# From here on numbers of steps are shortened: 12.3M.
_LARGE = 10_000


class Bar(Protocol):
    """What is told of steps that are done."""

    def update(self, n: int = 1) -> None: ...


class Begun(Bar, Protocol):
    """The same, until it is closed."""

    def close(self) -> None: ...


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell a listener of all progress in this process, in place of drawing it."""
    before = list(_LISTENERS)
    _LISTENERS[:] = [listener]
    try:
        yield
    finally:
        _LISTENERS[:] = before


def begin(title: str | Callable[[], str], *, total: int | None = None, unit: str = "step", spent: float = 0.0) -> Begun:
    """Begin a bar, or without a total a line with a clock, for whoever listens or watches."""
    if _LISTENERS:
        return Heard(title, total=total)
    return Shown(title, total=total, unit=unit, spent=spent)


def progress(steps: Sequence[T], title: str, *, unit: str) -> Iterable[T]:
    """The steps, with a bar if they take over two seconds and someone watches."""
    return _counted(steps, title, unit) if is_watched() else steps


def _counted(steps: Sequence[T], title: str, unit: str) -> Iterator[T]:
    with progress_bar(len(steps), title, unit=unit) as bar:
        for step in steps:
            yield step
            bar.update()


@contextmanager
def progress_bar(total: int, title: str, *, unit: str) -> Iterator[Bar]:
    """A bar to `update` by hand, under the same conditions."""
    if not is_watched():
        yield _Unseen()
        return
    shown = begin(title, total=total, unit=unit)
    try:
        yield shown
    finally:
        shown.close()


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """A line with a clock, while something takes over two seconds whose steps are not counted; also a decorator."""
    if not is_watched():
        yield
        return
    shown = begin(title)
    try:
        yield
    finally:
        shown.close()


def is_watched() -> bool:
    """Whether somebody listens, standard error is a terminal, or the process is behind a notebook."""
    if _LISTENERS or is_notebook():
        return True
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False


def is_notebook() -> bool:
    """Whether the code runs in the kernel of a notebook. Imports nothing."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if get_shell is None else get_shell()
    return shell is not None and "IPKernelApp" in getattr(shell, "config", ())


class _Unseen:
    def update(self, n: int = 1) -> None:
        """Nobody watches."""


class Heard:
    """A bar that a listener is told of: when it begins, every now and then, and again when one inside of it ended."""

    def __init__(self, title: str | Callable[[], str], *, total: int | None = None) -> None:
        self._title = title if callable(title) else lambda: title
        self._total, self._done, self._told = total, 0, 0.0
        with _LOCK:
            _HEARD.append(self)
            self._tell()

    def update(self, n: int = 1) -> None:
        """Count steps; the listener hears of them, but not of each."""
        with _LOCK:
            self._done += n
            if _HEARD[-1] is self and time.monotonic() - self._told >= _TOLD_EVERY:
                self._tell()

    def close(self) -> None:
        """End, and go back to the bar that this one is inside of."""
        with _LOCK:
            _HEARD.remove(self)
            if _HEARD:
                _HEARD[-1]._tell()

    def _tell(self) -> None:
        self._told = time.monotonic()
        for listener in _LISTENERS:
            listener(self._title(), self._done, self._total)


class Shown:
    """A bar, or without a total a line with a clock, drawn by a thread of its own until it is closed.

    Whoever waits sees one at a time, in one line of the terminal: the last that was begun of those that take long.
    """

    def __init__(
        self, title: str | Callable[[], str], *, total: int | None = None, unit: str = "step", spent: float = 0.0
    ) -> None:
        """Begin. `spent` are the seconds that the same work has taken before, and count as waited for."""
        self._title = title if callable(title) else lambda: title
        self._is_over = Event()
        self._n_undrawn = 0
        self._is_drawn = False
        options: dict[str, Any] = {"total": total, "unit": unit, "unit_scale": (total or 0) >= _LARGE}
        if total is None:
            options = {"bar_format": "{desc} ({elapsed})"}
        from tqdm import tqdm

        self._bar = tqdm(
            desc=self._title(),
            delay=DELAY,
            position=0,
            mininterval=0,
            miniters=0,
            leave=False,
            disable=False,
            **options,
            **_place(),
        )
        self._bar.start_t -= spent
        with _LOCK:
            _OPEN.append(self)
        first = max(DELAY - spent, _EVERY / 2)
        self._thread = Thread(target=self._keep_moving, args=(first,), name="spinney progress", daemon=True)
        self._thread.start()

    def update(self, n: int = 1) -> None:
        """Count steps; the thread draws them."""
        with _LOCK:
            self._n_undrawn += n

    def close(self) -> None:
        """End, and leave the terminal as it was."""
        self._is_over.set()
        self._thread.join()
        with _LOCK:
            _OPEN.remove(self)
            self._bar.disable = not self._is_drawn
            self._bar.close()

    def _keep_moving(self, first: float) -> None:
        wait = first
        while not self._is_over.wait(wait):
            wait = _EVERY
            with _LOCK:
                self._draw()

    def _draw(self) -> None:
        place = _OPEN.index(self)
        if any(other._is_drawn for other in _OPEN[place + 1 :]):
            return
        for other in _OPEN[:place]:
            if other._is_drawn and not self._is_drawn:
                other._bar.clear()
        self._is_drawn = True
        n, self._n_undrawn = self._n_undrawn, 0
        self._bar.set_description_str(self._title(), refresh=False)
        self._bar.update(n)


# All that are not closed, in the order in which they were begun.
_OPEN: list[Shown] = []
_HEARD: list[Heard] = []
_LISTENERS: list[Listener] = []
_LOCK = RLock()


class _BelowCell:
    """A file for tqdm: what it writes last stands below the cell of a notebook, and nothing of it is saved.

    Text on standard error would stay in the saved notebook, line by line, and a closed widget leaves its first text
    there. A display that is updated in place and emptied at the end leaves nothing to be seen. A cell has one for all
    its bars.
    """

    encoding = "utf-8"

    def __init__(self) -> None:
        self._cell: int | None = None
        self._name = self._line = ""

    def write(self, text: str) -> None:
        """Show the text in place of what was shown before; blanks show nothing."""
        line, shell = text.strip(), sys.modules["IPython"].get_ipython()
        if line == self._line:
            return
        is_first = self._cell != shell.execution_count
        if is_first:
            self._cell, self._name = shell.execution_count, f"spinney-{uuid4().hex}"
        self._line = line
        data = {"text/plain": line} if line else {}
        shell.display_pub.publish(data, transient={"display_id": self._name}, update=not is_first)

    def flush(self) -> None:
        """Everything is shown as soon as it is written."""


_BELOW_CELL = _BelowCell()


def _place() -> dict[str, Any]:
    """Where a bar is drawn, and how wide: below a cell, or on a terminal.

    Some terminals, such as those of containers, say that they have no size: tqdm would draw nothing there.
    """
    if is_notebook():
        return {"file": _BELOW_CELL, "ncols": 80}
    with suppress(OSError, ValueError, AttributeError):
        if not all(os.get_terminal_size(sys.stderr.fileno())):
            return {"ncols": 80, "nrows": 24}
    return {}
