"""What a worker leaves on disk while it runs: how far it is, that it should stop, and that it still is there.

    KEY.lock      held by the worker as long as it lives; whoever gets it knows that there is none
    KEY.progress  the title, the steps that are done, and their number
    KEY.cancel    somebody wants it to stop

Server and worker share nothing else, so that either may be killed, and a server that was started anew finds a worker of
the one before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from spinney.files import read_json

_EVERY = 0.25


class Traces:
    """The files of one worker, in the folder of its kind of work."""

    def __init__(self, folder: Path, key: str) -> None:
        self._progress = folder / f"{key}.progress"
        self._cancel = folder / f"{key}.cancel"
        self._lock = FileLock(folder / f"{key}.lock", mode=0o600)
        self._written = 0.0

    def take(self) -> bool:
        """Be the worker, or whoever knows that there is none; False where another is."""
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        return True

    def give_back(self) -> None:
        """Be it no longer."""
        self._lock.release()

    def tell(self, title: str, done: int, total: int | None) -> None:
        """Leave word of how far the work is, though not of every step."""
        if time.monotonic() - self._written < _EVERY and done not in (0, total):
            return
        self._written = time.monotonic()
        partial = self._progress.with_suffix(".partial")
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump({"title": title, "done": done, "total": total}, file)
        os.replace(partial, self._progress)

    def told(self) -> dict[str, Any]:
        """How far the work is."""
        try:
            found = read_json(self._progress.read_bytes())
        except (OSError, ValueError):
            return {"title": "starting", "done": 0, "total": None}
        return found if isinstance(found, dict) else {}

    def ask_to_stop(self) -> None:
        """Ask the worker to stop."""
        os.close(os.open(self._cancel, os.O_WRONLY | os.O_CREAT, 0o600))

    @property
    def should_stop(self) -> bool:
        """Whether somebody has asked the worker to stop."""
        return self._cancel.exists()

    def clear(self) -> None:
        """Remove what was left, before new work or after the old."""
        for path in (self._progress, self._cancel):
            path.unlink(missing_ok=True)


class Workers:
    """The workers that this server has started; those that have ended are taken leave of."""

    def __init__(self) -> None:
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, spec: dict[str, Any]) -> None:
        """Start a worker that outlives the server: what was paid for is not thrown away."""
        worker = subprocess.Popen(
            [sys.executable, "-P", "-m", "spinney.studio.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert worker.stdin is not None
        with worker.stdin:
            worker.stdin.write(json.dumps(spec).encode())
        self._started[name] = worker

    def is_alive(self, name: str) -> bool:
        """Whether a worker that this server has started still runs."""
        worker = self._started.get(name)
        if worker is None:
            return False
        if worker.poll() is None:
            return True
        del self._started[name]
        return False
