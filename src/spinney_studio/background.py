"""Work on releases beside the server: the processes, the releases they hold, and the list of all releases.

What takes longer than a page may is worked out in a process of its own and remembered by what was asked. A
release is known by the digest of its file, so that a file that changes is another release, and nothing worked
out of it is served for it.

    processes   two processes, one queue each, answers by what was asked
    loaded      inside the process: a file is read once, as long as its digest holds
    releases    release files of the workspace, of the opened folder, and handed in
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from spinney.errors import FileError, SpinneyError
from spinney.forest.release.model import ForestRelease
from spinney.people.release.model import PeopleRelease
from spinney.release.file import file_digest, load
from spinney.release.release import Release
from spinney_studio.workspace import RELEASE_ENDING, MissingPageError, PageError, Workspace, write_private

if TYPE_CHECKING:
    from spinney.report.page import ReportContents


# ------------------------------------------------------------------------------------------------------------ processes
# Processes beside the server: what takes longer than a page may is worked out there, once, and remembered by
# what was asked.
#
# There are two, so that a question does not wait for a report. Work is a function of a module and plain
# arguments; its result is stored, and a second request for the same work while it is under way waits for the
# same result. The end of a process, for example where memory is short, is reported to whoever waits, and the
# process is started anew for the next.


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
        return type(err)(str(err))
    except TypeError:
        return SpinneyError(str(err))


# --------------------------------------------------------------------------------------------------------------- loaded
# Releases in the process beside the server: a file is read once, and only as long as it is the one that was opened.


LEVEL = 0.95
_MOST = 6  # releases, and contents of reports, that are kept in memory


@lru_cache(maxsize=_MOST)
def loaded(path: str, digest: str) -> Release:
    """The release in a file; a FileError where it is damaged, contradicts itself, or is another one by now."""
    if file_digest(path) != digest:
        raise FileError(f"{path!r} was changed since it was opened; open it again")
    return load(path)


@lru_cache(maxsize=_MOST)
def contents(path: str, digest: str) -> ReportContents:
    """What a report says of a release, pairs and maps included; of many columns this takes seconds."""
    from spinney.report.page import report_contents

    return report_contents(loaded(path, digest), level=LEVEL)


@lru_cache(maxsize=_MOST)
def maps(path: str, digest: str) -> list[dict[str, Any]]:
    """The maps of a release."""
    from spinney.report.columns import maps_part

    return maps_part(loaded(path, digest))


def asked_columns(release: Release) -> dict[str, tuple[Release, str]]:
    """The columns that can be asked about: by the name in questions, what holds each and how it is called there."""
    if isinstance(release, PeopleRelease):
        return {name: (release.persons, own) for name, own in release.askable.items()}
    return {name: (release, name) for name, column in release.schema.items() if column.is_read}


def takes_conditions(release: Release) -> bool:
    """Whether rows can be drawn under a condition; of others, rows that meet it are picked out."""
    return isinstance(release, (ForestRelease, PeopleRelease))


# ------------------------------------------------------------------------------------------------------------- releases
# Which release files there are: those of the workspace, those in the opened folder, and those that were handed
# in.
#
# A release is known by the digest of its file, which names its pages, its pictures and what was worked out of
# it; one in the workspace also by its name. A file that somebody changes is another release.


_DIGEST = re.compile(r"[0-9a-f]{64}")
LARGEST_RELEASE = 256 << 20  # bytes of a file that is handed in


@dataclass(frozen=True, slots=True)
class OpenedRelease:
    """A release file that can be read."""

    key: str  # how addresses name it: its name in the workspace, or its digest
    name: str
    path: str
    shown_path: str
    digest: str
    origin: dict[str, Any]

    @property
    def at(self) -> tuple[str, str]:
        """What functions beside the server take."""
        return self.path, self.digest


class Shelf:
    """The releases of one studio."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._lock = Lock()
        self._digests: dict[tuple[str, int, int], str] = {}
        self._paths: dict[str, Path] = {}

    def by_key(self, key: str) -> OpenedRelease:
        """A release by its name in the workspace, or by the digest of its file, wherever in the folder that is."""
        if not _DIGEST.fullmatch(key):
            found = self._workspace.release(key)
            return self._opened(found.path, key, found.origin)
        path = self._paths.get(key)
        if path is None or not path.is_file() or self._digest(path) != key:
            every = [one.path for one in self._workspace.releases()] + self._workspace.root.find(RELEASE_ENDING)
            path = next((place for place in every if self._known_digest(place) == key), None)
        if path is None:
            raise MissingPageError(
                "No release in the opened folder has this digest any more. Open it again by its path."
            )
        return self._opened(path, key, {})

    def by_path(self, text: str) -> OpenedRelease:
        """A release by its path in the opened folder; an error says why it is none."""
        if not text.strip():
            raise PageError("Name a release file: a path that ends in .spinney, in the opened folder.")
        path = self._workspace.root.inside(text.strip())
        if path.is_dir() or not path.is_file():
            what = "is a folder" if path.is_dir() else "does not exist"
            raise PageError(f"{text!r} {what}; name a release file, which spinney fit has written.")
        return self._opened(path, self._digest(path), {})

    def listed(self) -> list[dict[str, Any]]:
        """All releases that can be chosen: those of the workspace first, then those in the folder."""
        ours = self._workspace.releases()
        found = [
            {"name": one.name, "key": one.name, "path": None, "made": one.origin.get("made"), "origin": one.origin}
            for one in ours
        ]
        known = {one.path.resolve() for one in ours}
        for path in self._workspace.root.find(RELEASE_ENDING):
            if path.resolve() not in known:
                where = self._workspace.root.relative(path)
                found.append({"name": path.stem, "key": None, "path": where, "made": None, "origin": {}})
        return found

    def take_in(self, name: str, content: bytes, check: Callable[[str, str], Any]) -> OpenedRelease:
        """Put a release that was handed in into the workspace, unless it is there; a FileError where it is none.

        Args:
            name: what the file was called.
            content: what it holds.
            check: reads a file by its path and digest, and raises where it is no release.
        """
        held = self._workspace.releases_folder / f".{self._workspace.free_release_name(name)}.incoming"
        try:
            write_private(held, content)
            try:
                digest = self._digest(held)
                check(str(held), digest)
            except FileError as err:
                raise FileError(str(err).replace(repr(str(held)), repr(name))) from None
            for one in self._workspace.releases():
                if self._known_digest(one.path) == digest:
                    return self._opened(one.path, one.name, one.origin)
            free = self._workspace.free_release_name(name.removesuffix(RELEASE_ENDING))
            held.rename(self._workspace.releases_folder / f"{free}{RELEASE_ENDING}")
        finally:
            held.unlink(missing_ok=True)
        return self.by_key(free)

    def _opened(self, path: Path, key: str, origin: dict[str, Any]) -> OpenedRelease:
        digest = self._digest(path)
        with self._lock:
            self._paths[digest] = path
        root = self._workspace.root
        shown = root.relative(path) if root.is_inside(path) else str(path)
        return OpenedRelease(key, path.stem, str(path), shown, digest, origin)

    def _digest(self, path: Path) -> str:
        stat = path.stat()
        mark = str(path), stat.st_mtime_ns, stat.st_size
        with self._lock:
            known = self._digests.get(mark)
        if known is None:
            known = file_digest(path)
            with self._lock:
                self._digests[mark] = known
        return known

    def _known_digest(self, path: Path) -> str | None:
        try:
            return self._digest(path)
        except (FileError, OSError):
            return None
