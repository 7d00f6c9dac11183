"""Puts the measured tables of `docs/explain/people.md` between their markers, from `docs/people/results.json`.

python tools/people_page.py                  write the tables into the page
python tools/people_page.py --from FOLDER    first take over what `python -m benchmarks.people --out FOLDER` left there
python tools/people_page.py --check          exit 1 if the page does not show what the results say

Without results, the page says how they are made.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from results_page import START as MARKER
from results_page import put_results

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explain" / "people.md"
RESULTS = ROOT / "docs" / "people" / "results.json"
START = MARKER.format(tool="people_page.py", results="docs/people/results.json")
NO_RESULTS = """\
No results are stored yet.
`python -m benchmarks.people --data FOLDER --out RESULTS` measures them, and `python tools/people_page.py --from RESULTS` puts them here.
"""  # noqa: E501  # one sentence a line

# Figures of a cell, with their heads and forms.
_FIGURES = {
    "child_tv1": ("rows TV1", ".4f"),
    "child_tv2": ("rows TV2", ".4f"),
    "parent_child": ("persons x rows", ".4f"),
    "parent_tv2": ("persons TV2", ".4f"),
    "count": ("number of rows", ".4f"),
    "icc": ("ICC off by", ".3f"),
    "transition": ("transitions", ".4f"),
    "auc": ("AUC", ".3f"),
    "fit_seconds": ("fit, s", ".1f"),
}
_MEMBERS = {
    "one_reference": "one reference person",
    "other_sex": "partner of the other sex",
    "ages": "correlation of ages",
    "schooling": "correlation of schooling",
    "older_child": "child older than reference person",
}
_NAMES = {"linked": "**linked**", "no-levels": "without hidden levels", "real": "real persons", "one-row": "one row"}
# Beside the figures of releases.
_FILES = {"scale": "scale.json", "large": "large.json", "large-spark": "large-spark.json"}

Record = Mapping[str, Any]


def record_of(folder: Path) -> dict[str, Any]:
    """What a run left in its folder, as means over seeds with what was wanted of them."""
    sys.path.insert(0, str(ROOT))
    from benchmarks.harness import measured
    from benchmarks.people.results import Results, cells
    from benchmarks.people.targets import lines

    if not (folder / "results.jsonl").is_file():
        sys.exit(f"{folder} has no results.jsonl; python -m benchmarks.people --out {folder} makes it")
    found = Results(folder).read()
    held = cells(found)
    return {
        "measured": measured(),
        "versions": sorted({one.version for one in found}),
        "cells": [
            {
                "table": cell.table,
                "method": cell.method,
                "epsilon": cell.epsilon,
                "n_runs": cell.n_runs,
                "means": cell.means,
                "n_broken": cell.n_broken,
            }
            for cell in held
        ],
        "lines": [
            {
                "what": line.what,
                "measured": line.mean,
                "wanted": line.wanted,
                "unit": line.unit,
                "is_floor": line.is_floor,
            }
            for line in lines(held)
        ],
        "scale": {
            task: json.loads((folder / name).read_text(encoding="utf-8"))
            for task, name in _FILES.items()
            if (folder / name).is_file()
        },
    }


# --------------------------------------------------------------------------------------------------------------- tables


def results_part(record: Record | None) -> str:
    """All that stands between the markers."""
    if record is None:
        return NO_RESULTS
    cells = record["cells"]
    parts = [_table(name, cells) for name in dict.fromkeys(cell["table"] for cell in cells)]
    parts += [part for part in (_households(cells), _broken(cells), _times(record["scale"])) if part]
    parts.append(_verdicts(record["lines"]))
    return "\n".join(parts)


def _table(name: str, cells: Sequence[Record]) -> str:
    """All methods on one table. Figures that nothing was measured of have no column."""
    those = [cell for cell in cells if cell["table"] == name]
    shown = {key: head for key, head in _FIGURES.items() if any(cell["means"].get(key) is not None for cell in those)}
    heads = ["method", "epsilon", "releases", *(head for head, _ in shown.values())]
    lines = "".join(
        f"| {_named(cell)} | {cell['epsilon']} | {cell['n_runs']} | "
        + " | ".join(_figure(cell["means"].get(key), form) for key, (_, form) in shown.items())
        + " |\n"
        for cell in those
    )
    return f"**{name}**\n\n| {' | '.join(heads)} |\n|---|{'---:|' * (len(heads) - 1)}\n{lines}"


def _households(cells: Sequence[Record]) -> str:
    those = [cell for cell in cells if any(key in cell["means"] for key in _MEMBERS)]
    if not those:
        return ""
    heads = ["method", "epsilon", *_MEMBERS.values()]
    lines = "".join(
        f"| {_named(cell)} | {cell['epsilon']} | "
        + " | ".join(_figure(cell["means"].get(key), ".3f") for key in _MEMBERS)
        + " |\n"
        for cell in those
    )
    return f"**Members of households**\n\n| {' | '.join(heads)} |\n|---|{'---:|' * (len(heads) - 1)}\n{lines}"


def _broken(cells: Sequence[Record]) -> str:
    """What keys, counts, order and ends broke, in all releases together."""
    ours = [cell for cell in cells if cell["n_broken"] and cell["method"] != "real"]
    if not ours:
        return ""
    total: dict[str, int] = {}
    for cell in ours:
        for what, number in cell["n_broken"].items():
            total[what] = total.get(what, 0) + number
    listed = ", ".join(f"{what.replace('_', ' ')} {number:,}" for what, number in total.items())
    return f"**Broken** keys, counts, order and ends, in {sum(cell['n_runs'] for cell in ours)} releases: {listed}.\n"


def _times(scale: Mapping[str, Record]) -> str:
    said = {
        "scale": "100,000 persons, a frame in memory",
        "large": "1,000,000 persons, Parquet files",
        "large-spark": "1,000,000 persons, Spark local[2]",
    }
    lines = "".join(
        f"| {said[task]} | {took['rows']:,} | {took['fit']:.1f} | {took['draw']:.1f} | {took['peak']:.2f} |\n"
        for task, took in scale.items()
    )
    if not lines:
        return ""
    head = "| what | rows x 8 columns | fit, s | draw, s | peak, GiB |\n|---|---:|---:|---:|---:|\n"
    return f"**Time and memory**\n\n{head}{lines}"


def _verdicts(lines: Sequence[Record]) -> str:
    """How many targets were met, and every one that was not."""
    judged = [line for line in lines if line["wanted"] is not None]
    missed = [line for line in judged if not _is_met(line)]
    text = (
        f"**Targets.** {len(judged) - len(missed)} of {len(judged)} stated in `benchmarks/people/targets.py` were met."
    )
    for line in missed:
        sign = "at least" if line["is_floor"] else "at most"
        unit = f" {line['unit']}".rstrip()
        text += f"\n- Missed: {line['what']} is {line['measured']:.4g}{unit}, and was to be {sign} {line['wanted']:g}."
    return text + "\n"


def _is_met(line: Record) -> bool:
    measured, wanted = float(line["measured"]), float(line["wanted"])
    return measured >= wanted if line["is_floor"] else measured <= wanted


def _named(cell: Record) -> str:
    return _NAMES.get(cell["method"], cell["method"].replace("-rows", " rows"))


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else f"{value:{form}}"


# ---------------------------------------------------------------------------------------------------------------- page


def main(arguments: list[str]) -> None:
    """Write the tables, or check them."""
    put_results(
        arguments,
        usage=__doc__,
        page=PAGE,
        results=RESULTS,
        start=START,
        part=results_part,
        take_over=lambda folder: json.dumps(record_of(folder), indent=1) + "\n",
    )


if __name__ == "__main__":
    main(sys.argv[1:])
