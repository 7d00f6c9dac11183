"""Clocks and scales of the benchmark: seconds on the wall and on the processors, and the peak of memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def own_peak() -> float:
    """The most memory that this process has held, in GiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**20


def seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def times(action: Callable[[], Any]) -> tuple[float, float]:
    """Seconds on the wall and on the processors. The latter hardly notice who else is at work on the machine."""
    start, cpu_start = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - start, time.process_time() - cpu_start


def best(times: list[tuple[float, float]]) -> dict[str, float]:
    """The best of all rounds, and the first: a system may take long to hand out memory that nobody has used lately."""
    return {"seconds": min(wall for wall, _ in times), "cpu": min(cpu for _, cpu in times), "first": times[0][0]}
