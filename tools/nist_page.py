"""Puts the scores of `docs/explain/nist.md` between their markers, from `docs/nist/results.json` and NIST's figures.

python tools/nist_page.py                  write the tables into the page
python tools/nist_page.py --from FOLDER    first take over what `python -m benchmarks.nist --out FOLDER` left there
python tools/nist_page.py --check          exit 1 if the page does not show what the results say
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from results_page import START as MARKER
from results_page import put_results

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explain" / "nist.md"
RESULTS = ROOT / "docs" / "nist" / "results.json"
PUBLISHED = ROOT / "benchmarks" / "nist" / "published.json"
START = MARKER.format(tool="nist_page.py", results="docs/nist/results.json")

_HEAD = """\
| rows of | columns | ε | releases | k-marginal | break a rule: age | work | housing | propensity | matched, % |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|
"""
_N_WORST = 6

Record = Mapping[str, Any]


def results_part(record: Record, published: Record) -> str:
    """All that stands between the markers."""
    rules = "with NIST's rules stated in the schema" if record["has_rules"] else "without stating NIST's rules"
    lines = "".join(_line(one) for one in record["settings"])
    parts = [f"**Ours**, δ = {record['delta']}, {rules}; mean ± standard deviation over releases.\n\n{_HEAD}{lines}"]
    theirs = "".join(_published(report) for report in published["reports"])
    parts.append(
        f"**Published by NIST**, one release each ({published['source']}, scored with {published['scorer']}).\n\n"
        f"{_HEAD}{theirs}"
    )
    parts += [_columns(one) for one in record["settings"] if one["wanted"] is not None]
    parts.append(_rules(record["settings"]))
    parts.append(_verdicts(record["settings"]))
    return "\n".join(parts)


def _line(one: Record) -> str:
    found = one["releases"]
    figures = [
        _figure([each["k_marginal"] for each in found], ".1f"),
        *(f"{mean(each['inconsistent'][group] for each in found):,.0f}" for group in ("age", "work", "housing")),
        f"{mean(each['propensity'] for each in found):.4f}",
        f"{mean(each['matched'] for each in found):.2f}",
    ]
    name = one["name"].replace(f", epsilon {one['epsilon']}", "")
    return f"| Spinney: {name} | {one['columns']} | {one['epsilon']} | {len(found)} | {' | '.join(figures)} |\n"


def _published(report: Record) -> str:
    broken = " | ".join(f"{report['inconsistent'][group]:,}" for group in ("age", "work", "housing"))
    epsilon = report["epsilon"] or "not DP"
    return (
        f"| {report['system']} ({report['library']}) | {report['columns']} | {epsilon} | 1 | {report['k_marginal']} | "
        f"{broken} | {report['propensity']} | {report['matched']} |\n"
    )


def _columns(one: Record) -> str:
    """Which columns lose most of the score of a setting."""
    together, alone = defaultdict(list), defaultdict(list)
    for release in one["releases"]:
        for name, found in release["columns"].items():
            together[name].append(found["together"])
            alone[name].append(found["alone"])
    worst = sorted(together, key=lambda name: -mean(together[name]))[:_N_WORST]
    lines = "".join(f"| {name} | {mean(together[name]):.3f} | {mean(alone[name]):.4f} |\n" for name in worst)
    return f"**Where {one['name']} loses.**\n\n| column | mean TV of its pairs | its own TV |\n|---|---:|---:|\n{lines}"


def _rules(settings: Sequence[Record]) -> str:
    """Which rules are broken most, over all settings."""
    broken: dict[str, list[str]] = defaultdict(list)
    names = list(dict.fromkeys(name for one in settings for each in one["releases"] for name in each["rules"]))
    for name in names:
        for one in settings:
            broken[name].append(f"{mean(each['rules'].get(name, 0) for each in one['releases']):,.0f}")
    if not names:
        return "**Rules.** No row breaks one.\n"
    heads = " | ".join(one["name"].replace("columns", "col.").replace("epsilon ", "ε ") for one in settings)
    lines = "".join(f"| {name} | {' | '.join(found)} |\n" for name, found in broken.items())
    return f"**Rows that break each rule.**\n\n| rule | {heads} |\n|---|{'---:|' * len(settings)}\n{lines}"


def _verdicts(settings: Sequence[Record]) -> str:
    text = "**Targets.**"
    for one in settings:
        if one["wanted"] is not None:
            reached = mean(each["k_marginal"] for each in one["releases"])
            verdict = "met" if reached >= one["wanted"] else "missed"
            text += f"\n- {one['name']}: {reached:.1f}, and {one['wanted']:g} is wanted: {verdict}."
    return text + "\n"


def _figure(values: Sequence[float], form: str) -> str:
    return f"{mean(values):{form}}" + (f" ± {stdev(values):{form}}" if len(values) > 1 else "")


def main(arguments: list[str]) -> None:
    """Write the tables, or check them."""
    put_results(
        arguments,
        usage=__doc__,
        page=PAGE,
        results=RESULTS,
        start=START,
        part=lambda record: results_part(record, json.loads(PUBLISHED.read_text(encoding="utf-8"))),
        take_over=lambda folder: (folder / "nist.json").read_text(encoding="utf-8"),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
