"""Run every benchmark, print measured against wanted, and fail where one is missed."""

from __future__ import annotations

import importlib
import sys

ALL = ("startup", "noise", "composition", "wide_tree", "long_table", "metrics", "utility")


def main(names: list[str]) -> int:
    results = []
    for name in names or ALL:
        print(f"{name} ...", flush=True)
        results += importlib.import_module(f"benchmarks.{name}").run()
    print()
    for result in results:
        print(result)
    missed = sum(not result.is_met for result in results)
    print(f"\n{len(results) - missed} of {len(results)} targets met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
