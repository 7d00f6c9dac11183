"""Runs Python behind a pseudo-terminal, or behind pipes, and hands back what was printed."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"
# Begins every script: things are shown after a twentieth of a second instead of two.
SOON = "import time, spinney.progress as shown\nshown.DELAY = shown._EVERY = 0.05\n"


def on_terminal(code: str, *, size: tuple[int, int] = (24, 100), **environment: str) -> str:
    """What a new Python prints on a terminal of so many lines and columns.

    Without the reset of colours at the end, which shows nothing: numba leaves it there where colorama is installed.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=theirs, stderr=theirs, stdin=theirs, env=_environment(environment)
    )
    os.close(theirs)
    printed, end = b"", time.monotonic() + 120
    while time.monotonic() < end:
        if not select.select([ours], [], [], 1)[0]:
            continue
        try:
            some = os.read(ours, 1 << 16)
        except OSError:  # the other side is closed
            break
        if not some:
            break
        printed += some
    os.close(ours)
    assert process.wait(timeout=60) == 0, printed.decode()
    return printed.decode().removesuffix("\x1b[0m")


def behind_pipes(code: str, **environment: str) -> tuple[str, str]:
    """What a new Python prints on standard output and standard error when neither is a terminal."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=_environment(environment)
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def _environment(more: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCES), **more}
