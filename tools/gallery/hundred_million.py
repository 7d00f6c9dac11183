"""A hundred million rows on a laptop, from what `python -m benchmarks.scale` measured."""

from __future__ import annotations

import json
from typing import Any

from tools.gallery.work import OTHER, OURS, REAL, ROOT, new_figure, save, table

_RESULTS = ROOT / "docs" / "scale" / "results.json"


def _figures() -> dict[str, Any]:
    return dict(json.loads(_RESULTS.read_text(encoding="utf-8"))["figures"])


def draw() -> None:
    """Time beside that of a query which reads the same columns, and peak memory."""
    found = _figures()
    figure, (left, middle, right) = new_figure(10, 2.8, ncols=3)
    files, forest = found["files"], found["forest"]
    for axes, title, bars in (
        (left, "tree, 100M x 5", (("query", files["query"], REAL), ("fit", files["fit"], OURS))),
        (
            middle,
            "forest, 100M x 20",
            (("query", forest["query"], REAL), ("fast", forest["fast"], OURS), ("high", forest["high"], OTHER)),
        ),
    ):
        names, heights = [bar[0] for bar in bars], [bar[1]["seconds"] for bar in bars]
        drawn = axes.bar(names, heights, color=[bar[2] for bar in bars], width=0.6)
        axes.bar_label(drawn, [f"{height:.1f} s" for height in heights])
        axes.set(title=title, ylabel="seconds", ylim=(0, max(heights) * 1.15))
    peaks = {"tree": files["peak"], "forest, fast": forest["fast"]["peak"], "forest, high": forest["high"]["peak"]}
    drawn = right.bar(list(peaks), list(peaks.values()), color=[OURS, OURS, OTHER], width=0.6)
    right.bar_label(drawn, [f"{peak:.2f}" for peak in peaks.values()])
    right.set(title="peak memory of the process", ylabel="GiB", ylim=(0, max(peaks.values()) * 1.15))
    save(figure, "hundred-million.svg")


def blocks() -> dict[str, str]:
    """What stands on the page, by the names of its places."""
    found = _figures()
    files, forest, duck, spark = found["files"], found["forest"], found["duckdb"], found["spark"]
    large = forest["rows"]
    lines = [
        (
            "tree",
            f"{found['rows']:,} x 5",
            "Parquet",
            files["fit"]["seconds"],
            files["query"]["seconds"],
            files["peak"],
        ),
        ("tree", f"{found['rows']:,} x 5", "DuckDB", duck["seconds"], duck["query"], duck["peak"]),
        ("tree", f"{spark['rows']:,} x 5", "Spark, two cores", spark["seconds"], spark["query"], spark["peak"]),
        *(
            (
                f"forest, {quality}",
                f"{large:,} x 20",
                f"Parquet, limit of {forest['limit']}",
                forest[quality]["seconds"],
                forest["query"]["seconds"],
                forest[quality]["peak"],
            )
            for quality in ("fast", "high")
        ),
    ]
    shown = [(*line[:3], *(f"{value:.1f}" for value in line[3:5]), f"{line[5]:.2f}") for line in lines]
    missed = [one for one in json.loads(_RESULTS.read_text())["results"] if one["measured"] > one["wanted"]]
    heads = ("model", "table", "read from", "fit, s", "a query of the same columns, s", "peak memory, GiB")
    return {
        "figures": table(heads, shown),
        "missed": "".join(
            f"- {one['what']}: {one['measured']:.2f} {one['unit']}, and at most {one['wanted']:g} was wanted.\n"
            for one in missed
        )
        or "No target is missed.\n",
    }
