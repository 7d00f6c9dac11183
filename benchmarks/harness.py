"""Timing and reporting shared by all benchmarks.

Machines are noisy, so what counts is a ratio of two best times taken in turns within one run, never a time alone,
except where the target is a time.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from spinney.files import full_version


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table: what was measured, what was wanted."""

    what: str
    measured: float
    wanted: float
    unit: str
    is_floor: bool = False  # whether more is better

    @property
    def is_met(self) -> bool:
        return self.measured >= self.wanted if self.is_floor else self.measured <= self.wanted

    def __str__(self) -> str:
        sign = ">=" if self.is_floor else "<="
        verdict = "ok" if self.is_met else "MISSED"
        return f"{self.what:<66} {self.measured:>9.3g} {self.unit:<10} wanted {sign} {self.wanted:<8g} {verdict}"


def measured() -> str:
    """When and with what figures are made: the date of the commit that runs, or today's, and its version."""
    git = shutil.which("git")
    command = [git, "log", "-1", "--format=%cs"]
    day = "" if git is None else subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    ).stdout.strip()  # fmt: skip
    return f"{day or datetime.now(UTC).date().isoformat()} {full_version()}"


def seconds(action: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def best_of(*actions: Callable[[], object], rounds: int = 5) -> list[float]:
    """Best time of each action over several rounds, taken in turns so that slow spells hit all alike."""
    best = [float("inf")] * len(actions)
    for _ in range(rounds):
        for index, action in enumerate(actions):
            best[index] = min(best[index], seconds(action))
    return best
