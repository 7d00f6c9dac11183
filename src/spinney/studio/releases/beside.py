"""Processes beside the server: what takes longer than a page may is worked out there, once, and kept by what was asked.

There are two, so that a question does not wait for a report. Work is a function of a module and plain arguments; what
it returns is kept, and who asks for the same while it is under way waits for the same. A process that ends, as one that
runs out of memory does, is told to whoever waits, and started anew for the next.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from time import monotonic
from typing import Any

from spinney.errors import SpinneyError
from spinney.studio.errors import PageError

_MOST_KEPT = 400
_ENDED = "The process that worked on this release ended, as happens where memory is short. Ask again, or ask for less."
_PATIENCE = 2.5  # seconds that a page waits before it says that it is waiting


class StillWorking(Exception):  # noqa: N818  # which is no error
    """Something is not ready yet; the page says what, and asks again."""

    def __init__(self, title: str, seconds: float) -> None:
        super().__init__(title)
        self.title, self.seconds = title, seconds


class EndedError(PageError):
    """The process beside the server ended before it had an answer."""

    status = 500
    title = "The work was cut off"


@dataclass(slots=True)
class Task:
    """Something that was asked for, and what came of it."""

    title: str
    work: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: Future[Any] = field(default_factory=Future)
    begun: float = field(default_factory=monotonic)


class Beside:
    """What is worked out beside the server."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Any, ...], Task] = OrderedDict()
        self._lock = Lock()
        self.drawing = Semaphore(2)  # downloads of rows, each with a process of its own
        self._quick, self._slow = _Lane("quick"), _Lane("slow")

    def ask(self, title: str, work: Callable[..., Any], *arguments: Any, is_slow: bool = False) -> Task:
        """Have something worked out, or find it: `arguments` are plain, and can be keys of a dictionary."""
        key = (work.__module__, work.__qualname__, *arguments)
        with self._lock:
            task = self._kept.get(key)
            if task is None or (task.future.done() and task.future.exception() is not None):
                task = Task(title, work, arguments)
                self._kept[key] = task
                (self._slow if is_slow else self._quick).put(task)
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return task

    def answer(
        self, title: str, work: Callable[..., Any], *arguments: Any, is_slow: bool = False, wait: float = _PATIENCE
    ) -> Any:
        """What came of some work; `StillWorking` where that takes longer than a page waits."""
        task = self.ask(title, work, *arguments, is_slow=is_slow)
        try:
            return task.future.result(timeout=wait)
        except TimeoutError:
            raise StillWorking(title, monotonic() - task.begun) from None


class _Lane:
    """One process, which does one thing after the other, and the thread that hands it out."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: SimpleQueue[Task] = SimpleQueue()
        self._thread: Thread | None = None
        self._process: tuple[Any, Connection] | None = None

    def put(self, task: Task) -> None:
        self._waiting.put(task)
        if self._thread is None:
            self._thread = Thread(target=self._hand_out, daemon=True, name=f"spinney studio {self._name}")
            self._thread.start()

    def _hand_out(self) -> None:
        while True:
            task = self._waiting.get()
            try:
                line = self._line()
                line.send((task.work, task.arguments))
                is_well, found = line.recv()
            except (EOFError, OSError):
                self._process = None
                is_well, found = False, EndedError(_ENDED)
            if is_well:
                task.future.set_result(found)
            else:
                task.future.set_exception(found)

    def _line(self) -> Connection:
        if self._process is None or not self._process[0].is_alive():
            spawning = get_context("spawn")
            ours, theirs = spawning.Pipe()
            process = spawning.Process(target=_work, args=(theirs,), daemon=True, name=f"spinney studio {self._name}")
            process.start()
            theirs.close()
            self._process = process, ours
        return self._process[1]


def _work(line: Connection) -> None:
    """In the process: work off what comes down the line, until the server is gone."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends it
    while True:
        try:
            work, arguments = line.recv()
        except (EOFError, OSError):
            return
        try:
            answer: tuple[bool, Any] = True, work(*arguments)
        except SpinneyError as err:
            answer = False, _plain(err)
        except MemoryError:
            answer = False, EndedError("This machine has too little memory for that. Ask for less.")
        except Exception as err:
            answer = False, PageError(f"An unexpected {type(err).__name__}, which is a bug in Spinney.")
        line.send(answer)


def _plain(err: SpinneyError) -> SpinneyError:
    """An error that can be sent: of one whose class takes more than its text, the text."""
    try:
        copy = type(err)(str(err))
    except TypeError:
        return SpinneyError(str(err))
    return copy
