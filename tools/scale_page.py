"""Puts the measured figures of `docs/explain/scale.md` between their markers, from `docs/scale/results.json`.

python tools/scale_page.py            write them into the page
python tools/scale_page.py --check    exit 1 if the page does not show what the results say

`python -m benchmarks.scale --folder FOLDER --out docs/scale/results.json` renews the results.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from results_page import START as MARKER
from results_page import put_results

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "explain" / "scale.md"
RESULTS = DOCS / "scale" / "results.json"
START = MARKER.format(tool="scale_page.py", results="docs/scale/results.json")
LARGE = 10**10

Record = Mapping[str, Any]


def results_part(record: Record) -> str:
    """All that stands between the markers."""
    figures = record["figures"]
    parts = [_judged(record["results"])]
    if "files" in figures:
        parts.append(_files(figures["files"]))
    if "model" in figures:
        parts.append(_model(figures["model"]))
    if "spark" in figures:
        parts.append(_spark(figures["spark"]))
    if "forest" in figures:
        parts.append(_forest(figures["forest"]))
    if "forest_spark" in figures:
        parts.append(_forest_spark(figures["forest_spark"]))
    if "peers" in figures:
        parts.append(_peers(figures["peers"]))
    return "\n".join(parts)


def _judged(results: list[Record]) -> str:
    lines = ""
    for line in results:
        verdict = "met" if line["measured"] <= line["wanted"] else "**missed**"
        measured, wanted = f"{line['measured']:.3g} {line['unit']}", f"{line['wanted']:.3g} {line['unit']}"
        lines += f"| {line['what']} | {measured} | at most {wanted} | {verdict} |\n"
    return f"| what | measured | wanted | |\n|---|---:|---:|---|\n{lines}"


def _files(found: Record) -> str:
    """The same comparison on the processors, which does not notice other programs."""
    query = found["query"]
    ours = ", ".join(
        f"{found[key]['seconds']:.1f} s ({found[key]['cpu']:.1f} s) {reader}"
        for key, reader in (("fit", "read by pyarrow"), ("polars", "read by polars"))
    )
    return (
        f"By wall clock (and by processor time, both cores together) polars' min and max took {query['seconds']:.1f} s "
        f"({query['cpu']:.1f} s), and fits took {ours}: in processor time "
        f"{found['fit']['cpu'] / query['cpu']:.1f} and {found['polars']['cpu'] / query['cpu']:.1f} times as much. "
        "These are the best of several rounds on either side. A process's first fit took "
        f"{found['fit']['first']:.1f} s, its first query {query['first']:.1f} s: this machine is slow to "
        "provide memory that was not used lately, and a fit needs more of it.\n"
    )


def _model(model: Record) -> str:
    lines = "".join(
        f"| {point['rows']:,} | {point['cells']:,} | {point['leaves']:,} | {point['seconds']:.2f} "
        f"| {point['cpu']:.2f} | {point['peak']:.2f} |\n"
        for point in model["points"]
    )
    start, a_row, a_cell = model["fitted"]
    return (
        "| rows | cells | leaves | fit, s | processor time, s | peak, GiB |\n"
        f"|---:|---:|---:|---:|---:|---:|\n{lines}\n"
        f"**A model, fitted to these lines:** processor-seconds = {start:.2g} + {1e9 * a_row:.1f} ns · rows + "
        f"{1e9 * a_cell:.1f} ns · cells. It is off by at most {100 * model['worst']:.0f} % on them, and says nothing "
        "about other columns, disks or processors.\n"
    )


def _spark(found: Record) -> str:
    core_seconds = 2 * found["seconds"] / found["rows"] * LARGE
    examples = ", ".join(f"{n} executors {core_seconds / (4 * n) / 60:.2g} minutes" for n in (10, 50, 200))
    return (
        f"**Spark.** {found['rows']:,} rows took {found['seconds']:.1f} s on two cores; a group-by of ready codes "
        f"takes {found['query']:.1f} s: {1e9 * 2 * found['seconds'] / found['rows']:.0f} core-nanoseconds a row. "
        f"At the same rate, 10 billion rows would take {core_seconds / 3600:.1f} core-hours; with four cores "
        f"each, {examples}. This is an extrapolation and was not measured: shuffles over a network and the transfer of "
        "cells to the driver are not included.\n"
    )


def _forest(found: Record) -> str:
    query, fast, high = found["query"], found["fast"], found["high"]
    return (
        f"**Forests**, {found['rows']:,} rows x 20 mixed columns in Parquet, `SPINNEY_MEMORY_LIMIT={found['limit']}`: "
        f"polars' counts of values and extremes took {query['seconds']:.1f} s ({query['cpu']:.1f} s of processors), "
        f"`fast` {fast['seconds']:.1f} s ({fast['cpu']:.1f} s), `high` {high['seconds']:.1f} s ({high['cpu']:.1f} s); "
        f"300,000 rows took {fast['small']:.1f} s and {high['small']:.1f} s, mostly for the model.\n"
    )


def _forest_spark(found: Record) -> str:
    core_seconds = 2 * found["seconds"] / found["rows"] * LARGE
    examples = ", ".join(f"{n} executors {core_seconds / (4 * n) / 60:.2g} minutes" for n in (10, 50, 200))
    return (
        f"**Forests by Spark.** {found['rows']:,} rows x 20 mixed columns took {found['seconds']:.0f} s on two cores, "
        f"Spark's own counts of the 20 columns {found['query']:.0f} s. At the same rate, 10 billion rows would take "
        f"{core_seconds / 3600:.1f} core-hours; with four cores each, {examples}. This is an extrapolation and was not "
        "measured.\n"
    )


def _peers(found: Record) -> str:
    if "seconds" not in found:
        return f"**Compared with others.** MST (mbi 2.0.0), 1 million rows x 5 columns: {found['note']}.\n"
    return (
        f"**Compared with others.** MST (mbi 2.0.0), 1 million rows x 5 columns in memory: {found['seconds']:.0f} s "
        f"({found['note']}); `KDTreeSynthesizer` on the same rows: {found['ours']:.2f} s. They make different "
        "models: MST cuts every column into 32 bins and measures pairs.\n"
    )


def main(arguments: list[str]) -> None:
    """Write the figures, or check them."""
    put_results(arguments, usage=__doc__, page=PAGE, results=RESULTS, start=START, part=results_part)


if __name__ == "__main__":
    main(sys.argv[1:])
