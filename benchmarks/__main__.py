"""Run every benchmark, print measured against wanted, and fail where one is missed.

    python -m benchmarks [NAME ...] [--quick]

With `--quick` each is small, and nothing is judged: that it works is all that is shown.
"""

from __future__ import annotations

import argparse
import importlib
import sys

ALL = ("startup", "noise", "composition", "wide_tree", "long_table", "metrics", "utility")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ALL)}; all unless told")
    parser.add_argument("--quick", action="store_true", help="small runs, which judge nothing")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in ALL]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(ALL)}")
    results = []
    for name in given.names or ALL:
        print(f"{name} ...", flush=True)
        results += importlib.import_module(f"benchmarks.{name}").run(is_quick=given.quick)
    print()
    for result in results:
        print(result)
    missed = sum(not result.is_met for result in results)
    print(f"\n{len(results) - missed} of {len(results)} targets met")
    if given.quick:
        print("quick: small runs show that it works and judge nothing")
        return 0
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
