"""Release, score, print beside NIST's figures, and fail where a full run misses."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import benchmarks.nist as about
from benchmarks.harness import measured
from benchmarks.nist.excerpt import check_folder
from benchmarks.nist.scorer import scores, scoring_python
from benchmarks.nist.settings import DELTA, SETTINGS, Setting, has_rules, releases
from spinney.errors import SpinneyError
from spinney.progress import progress

N_RELEASES = 5
_LEFT_OUT = ("file", "features")


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        check_folder(options.data)
        python = options.scorer or scoring_python()
        chosen = [setting for setting in SETTINGS if not options.only or setting.slug in options.only]
        record = measure(chosen, options.data, python, n_releases=options.releases)
    except SpinneyError as err:
        print(f"error: {err}", file=sys.stderr)
        return 1
    print(table(record))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "nist.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(
            f"figures are in {options.out / 'nist.json'}; `python tools/nist_page.py --from {options.out}` shows them"
        )
    return int(
        any(one["wanted"] is not None and _mean(one, "k_marginal") < one["wanted"] for one in record["settings"])
    )


def measure(chosen: Sequence[Setting], data: Path, python: Path, *, n_releases: int) -> dict[str, Any]:
    """Every setting with the scores of its releases."""
    found = []
    for setting in progress(chosen, "settings", unit="setting"):
        with tempfile.TemporaryDirectory(prefix="spinney-nist-") as folder:
            start = time.perf_counter()
            files = list(releases(setting, data, Path(folder), n_releases=n_releases))
            seconds = (time.perf_counter() - start) / n_releases
            scored = scores(python, files, data, Path(folder) / "scores.json")
        found.append(
            {
                "name": setting.name,
                "columns": len(scored[0]["features"]),
                "epsilon": setting.epsilon,
                "quality": setting.quality,
                "looked_up": list(setting.looked_up),
                "wanted": setting.wanted,
                "seconds": seconds,
                "releases": [{key: one[key] for key in one if key not in _LEFT_OUT} for one in scored],
            }
        )
        print(f"{setting.name}: k-marginal {_mean(found[-1], 'k_marginal'):.1f}", flush=True)
    return {"measured": measured(), "delta": DELTA, "has_rules": has_rules(), "settings": found}


def table(record: dict[str, Any]) -> str:
    """For the terminal."""
    lines = [f"{'setting':<50} {'k-marginal':>16} {'wanted':>7} {'break a rule':>13} {'propensity':>11}"]
    for one in record["settings"]:
        values = [release["k_marginal"] for release in one["releases"]]
        spread = f" ({stdev(values):.1f})" if len(values) > 1 else ""
        broken = mean(release["inconsistent"]["all"] for release in one["releases"])
        wanted = "" if one["wanted"] is None else f"{one['wanted']:g}"
        lines.append(
            f"{one['name']:<50} {mean(values):>9.1f}{spread:>7} {wanted:>7} {broken:>13,.0f} "
            f"{_mean(one, 'propensity'):>11.4f}"
        )
    return "\n".join(lines)


def _mean(one: dict[str, Any], key: str) -> float:
    return mean(release[key] for release in one["releases"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.nist",
        description=about.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    slugs = [setting.slug for setting in SETTINGS]
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="NIST's folder of excerpts")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the figures go, as nist.json")
    parser.add_argument("--releases", type=_at_least_one, default=N_RELEASES, metavar="N", help="releases a setting")
    parser.add_argument("--only", nargs="+", choices=slugs, metavar="NAME", help=f"which of {', '.join(slugs)}")
    parser.add_argument("--scorer", type=Path, metavar="PYTHON", help="a Python of your own that has sdnist 2.4")
    return parser


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("make at least one release")
    return number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
