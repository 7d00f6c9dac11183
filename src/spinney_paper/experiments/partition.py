"""How the tree partitions the plane, in the three stages of the supplement: fixed levels, adaptive splits, final bins.

The final bins are a release. The stage before it, every leaf before its count is noised, is the same tree grown once
more: the same seed, the same budget for decisions, and counts that cost so much that they come out true. Leaves without
rows are what is left of the square. Where an empty node happened to split, that shows in the final bins alone.

The rows are made up; no true count of real people may be drawn like this.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.release.release import Release
from spinney.synthesizers.partition import PaperTreeSynthesizer, PartitionSynthesizer
from spinney.synthesizers.tree import KDTreeSynthesizer
from spinney.tree.release.bins import BinnedRelease
from spinney.tree.release.geometry import bin_boxes
from spinney_paper.experiments.drawing import GREEN, GREY, INK, PRIVACY, new_figure, note, title
from spinney_paper.experiments.framework import Experiment, Inputs
from spinney_paper.experiments.mixtures import box_schema
from spinney_paper.experiments.results import Params, Record, Results, Task
from spinney_paper.experiments.trials import in_symbols
from spinney_paper.experiments.wording import markdown_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Points = NDArray[np.float64]  # (n, 2)
Box = tuple[float, float, float, float]  # left, bottom, right, top

_RULES = {"paper": "the paper's rule", "spinney": "PrivTree with bins"}
# At this epsilon a count is changed with a chance below e^-400.
_TRUE_COUNTS = 1000


def made_up_rows(n_rows: int) -> Points:
    """Four clouds of different size and one thin diagonal in the unit square."""
    rng = np.random.default_rng(2023)
    centres = np.array([[0.22, 0.74], [0.30, 0.62], [0.72, 0.30], [0.80, 0.82]])
    deviations = np.array([0.07, 0.025, 0.05, 0.015])
    which = rng.choice(5, size=n_rows, p=[0.3, 0.15, 0.25, 0.1, 0.2])
    rows = rng.normal(centres[which % 4], deviations[which % 4, None])
    along = rng.random(n_rows)
    diagonal = np.column_stack([0.1 + 0.5 * along, 0.08 + 0.3 * along]) + rng.normal(0, 0.012, (n_rows, 2))
    return np.clip(np.where(which[:, None] == 4, diagonal, rows), 0, 1)


def _tasks(params: Params) -> list[Task]:  # noqa: ARG001  # the common signature
    return [{"method": "rows"}, *({"method": method} for method in _RULES)]


def _run(params: Params, task: Task, inputs: Inputs) -> Record:
    rows = inputs.keep("rows", lambda: made_up_rows(params["n_rows"]))
    if task["method"] == "rows":
        shown = rows[: params["n_shown"]]
        return {"rows": [[round(float(x), 3), round(float(y), 3)] for x, y in shown]}
    schema = box_schema(2, 0, 1)
    settings: dict[str, Any] = {"rule": "privtree", "moments": False}
    if task["method"] != "spinney":
        settings = dict(params["paper_settings"])
    model = _tree(params["epsilon"], settings)
    plan = model.fit(rows, schema, ledger=False, entropy=UnsafeSeededEntropy(task["seed"])).plan_

    total = plan.decision_epsilon + _TRUE_COUNTS
    settings |= {"max_depth": plan.max_depth, "threshold": 1, "tree_share": Fraction(plan.decision_epsilon, total)}
    if task["method"] != "spinney":
        settings |= {"fixed_depth": plan.fixed_depth, "cutoff": plan.cutoff}
    twin = _tree(total, settings).fit(rows, schema, ledger=False, entropy=UnsafeSeededEntropy(task["seed"]))
    same = ("rule", "fixed_depth", "max_depth", "cutoff", "decay", "decision_rate")
    assert all(getattr(twin.plan_, name) == getattr(plan, name) for name in same)

    leaves = _boxes(twin.release_)
    return {
        "fixed_depth": plan.fixed_depth,
        "max_depth": plan.max_depth,
        "cutoff": plan.cutoff,
        "threshold": plan.threshold,
        "true_leaves": leaves,
        "empty_leaves": [[*box, 0] for box in gaps([_box(leaf) for leaf in leaves], plan.fixed_depth)],
        "final_bins": _boxes(model.release_),
    }


def _tree(epsilon: Any, settings: Mapping[str, Any]) -> PartitionSynthesizer:
    """The tree of settings in words, by the rule that they name."""
    others = {name: value for name, value in settings.items() if name != "rule"}
    if settings["rule"] == "paper":
        return PaperTreeSynthesizer(epsilon, **in_symbols(others))
    return KDTreeSynthesizer(epsilon, **others)


def _boxes(release: Release) -> list[list[float]]:
    """Left, bottom, right, top and count of every bin."""
    assert isinstance(release, BinnedRelease)
    boxes = bin_boxes(release.bins)
    corners = np.concatenate([boxes.low, boxes.low + boxes.length], axis=1)
    return [[*map(float, box), int(n)] for box, n in zip(corners, release.bins.noisy_counts, strict=True)]


def _box(leaf: list[float]) -> Box:
    left, bottom, right, top, _ = leaf
    return left, bottom, right, top


def gaps(leaves: list[Box], fixed_depth: int) -> list[Box]:
    """What halving leaves over: the largest nodes, but none above `fixed_depth`, that hold no leaf."""
    taken = set(leaves)
    found: list[Box] = []

    def visit(box: Box, inside: list[Box], depth: int) -> None:
        if box in taken:
            return
        if not inside and depth >= fixed_depth:
            found.append(box)
            return
        for half in halves(box, depth):
            visit(half, [one for one in inside if _is_in(one, half)], depth + 1)

    visit((0.0, 0.0, 1.0, 1.0), leaves, 0)
    return found


def halves(box: Box, depth: int) -> tuple[Box, Box]:
    """The two children of a node: cut at the middle, across x at even depths and across y at odd ones."""
    left, bottom, right, top = box
    if depth % 2 == 0:
        middle = (left + right) / 2
        return (left, bottom, middle, top), (middle, bottom, right, top)
    middle = (bottom + top) / 2
    return (left, bottom, right, middle), (left, middle, right, top)


def fixed_boxes(depth: int) -> list[Box]:
    """All nodes of one depth."""
    boxes: list[Box] = [(0.0, 0.0, 1.0, 1.0)]
    for level in range(depth):
        boxes = [half for box in boxes for half in halves(box, level)]
    return boxes


def _is_in(inner: Box, outer: Box) -> bool:
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


# ----------------------------------------------------------------------------------------------------- drawing


def _draw(results: Results) -> Figure:
    figure = new_figure(10.2, 7.4)
    rows = np.array(results.where(method="rows")[0]["rows"])
    for line, (method, name) in zip(figure.subplots(2, 3, sharex=True, sharey=True), _RULES.items(), strict=True):
        record = results.where(method=method)[0]
        start, adaptive, final = line
        n_fixed = 2 ** record["fixed_depth"]
        boxes = "one box" if n_fixed == 1 else f"{n_fixed} boxes"
        _outlines(start, fixed_boxes(record["fixed_depth"]))
        title(start, f"1. fixed levels (h = {record['fixed_depth']}): {boxes}")
        leaves = [*record["true_leaves"], *record["empty_leaves"]]
        _outlines(adaptive, [_box(leaf) for leaf in leaves])
        title(adaptive, f"2. adaptive splits (h′ = {record['max_depth']}): {len(leaves):,} leaves")
        _shades(final, record["final_bins"])
        title(final, f"3. bins with noisy count ≥ {record['threshold']}: {len(record['final_bins']):,}")
        for axes in (start, adaptive):
            axes.plot(
                *rows.T,
                linestyle="none",
                marker=".",
                markersize=2,
                markeredgewidth=0,
                color=GREEN,
                zorder=1,
                rasterized=True,
            )
        for axes in line:
            axes.set(aspect="equal", xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
            axes.tick_params(labelsize=7, colors=INK)
        start.set_ylabel(name, fontsize=11, color=INK)
    params = results.params
    note(
        figure,
        f"{params['n_rows']:,} made-up rows ({len(rows):,} drawn); ε = {params['epsilon']} in all, {PRIVACY}; "
        "final bins shaded by noisy density, white where nothing is released",
    )
    return figure


def _outlines(axes: Axes, boxes: list[Any]) -> None:
    from matplotlib.collections import PolyCollection

    axes.add_collection(
        PolyCollection([_corners(box) for box in boxes], facecolors="none", edgecolors=INK, linewidths=0.4, zorder=2)
    )


def _shades(axes: Axes, bins: list[list[float]]) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LogNorm

    density = [n / ((right - left) * (top - bottom)) for left, bottom, right, top, n in bins]
    axes.add_collection(
        PolyCollection(
            [_corners(box[:4]) for box in bins],
            array=np.array(density),
            cmap="YlGn",
            norm=LogNorm(),
            edgecolors=GREY,
            linewidths=0.25,
        )
    )


def _corners(box: Any) -> list[tuple[float, float]]:
    left, bottom, right, top = box
    return [(left, bottom), (right, bottom), (right, top), (left, top)]


# --------------------------------------------------------------------------------------------- table and verdict


def _facts(results: Results, method: str) -> dict[str, Any]:
    record = results.where(method=method)[0]
    areas = [(right - left) * (top - bottom) for left, bottom, right, top, _ in record["final_bins"]]
    total = sum(n for *_, n in record["final_bins"])
    by_size = sorted(zip(areas, (n for *_, n in record["final_bins"]), strict=True))
    half, seen = 0.0, 0
    for area, n in by_size:
        half, seen = half + area, seen + n
        if seen >= total / 2:
            break
    return {
        "leaves": len(record["true_leaves"]) + len(record["empty_leaves"]),
        "bins": len(record["final_bins"]),
        "smallest": min(areas, default=0.0),
        "largest": max(areas, default=0.0),
        "half": half,
        "total": total,
    }


def _table(results: Results) -> str:
    rows = []
    for method, name in _RULES.items():
        record, facts = results.where(method=method)[0], _facts(results, method)
        rows.append(
            [
                name,
                f"{record['fixed_depth']}, {record['max_depth']}",
                f"{facts['leaves']:,}",
                f"{facts['bins']:,}",
                f"{facts['smallest']:.2g} to {facts['largest']:.2g}",
                f"{facts['half']:.1%}",
                f"{facts['total']:,}",
            ]
        )
    return markdown_table(
        [
            "",
            "h, h′",
            "leaves",
            "final bins",
            "areas of bins",
            "area that holds half of the rows",
            "noisy total",
        ],
        rows,
    )


def _verdict(results: Results) -> str:
    paper, ours, n_rows = _facts(results, "paper"), _facts(results, "spinney"), results.params["n_rows"]
    finer = [who for who, facts in (("the paper's", paper), ("PrivTree's", ours)) if facts["half"] < 0.5]
    opening = {2: "Both partitions are", 1: f"Only {''.join(finer)} partition is", 0: "Neither partition is"}[
        len(finer)
    ]
    return (
        f"{opening} finer where rows are dense: half of the released rows lie in the smallest bins, on "
        f"{paper['half']:.1%} of the square by the paper's rule and {ours['half']:.1%} by PrivTree's. At the same ε "
        f"PrivTree releases {ours['bins']:,} bins against {paper['bins']:,}, and a noisy total of {ours['total']:,} "
        f"against {paper['total']:,} for {n_rows:,} rows."
    )


_COMMON = {"epsilon": "1", "paper_settings": {"rule": "paper", "fixed_depth": 4, "max_depth": 12}}

EXPERIMENTS = (
    Experiment(
        id="fig-partition",
        title="Data-dependent partition of the plane, in three stages",
        paper_says=(
            "Pictures of a partition in two dimensions (introduction and supplement F): data-independent levels, then "
            "splits that follow the data, then the bins that stay; partitioning is more refined where rows are dense. "
            "Data and settings are not stated."
        ),
        full=_COMMON | {"n_rows": 20_000, "n_shown": 4_000},
        quick=_COMMON | {"n_rows": 3_000, "n_shown": 500},
        tasks=_tasks,
        run=_run,
        draw=_draw,
        table=_table,
        verdict=_verdict,
    ),
)
