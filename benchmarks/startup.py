"""How long a person waits before anything happens: `import spinney` and `spinney --help`, process start included."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.harness import Result, best_of


def run(*, is_quick: bool = False) -> list[Result]:
    def call(*arguments: str) -> None:
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    importing, helping = best_of(
        lambda: call("-c", "import spinney"), lambda: call("-m", "spinney", "--help"), rounds=1 if is_quick else 7
    )
    return [
        Result("import spinney", importing, 0.25, "s"),
        Result("spinney --help", helping, 0.5, "s"),
    ]
