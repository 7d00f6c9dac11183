"""A city's incidents on a map: road accidents in London, in one tree over longitude and latitude."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm
from matplotlib.ticker import MaxNLocator
from tools.gallery.work import EXAMPLES, OURS, REAL, Work, console, new_figure, save, table

import spinney as sp
from spinney.report.columns import released_boxes

_BOX = {"lng": (-0.52, 0.34), "lat": (51.28, 51.70)}
_KM = {"lng": 69.5, "lat": 111.2}  # kilometres of a degree at this latitude
_SIDES = (4.0, 2.0, 1.0, 0.5)
_SIZES = ((500, None), (100, 500), (20, 100), (1, 20))
_N_BUSIEST = 20


def measure(work: Work) -> dict[str, Any]:
    """Fit, draw, and compare counts of squares with those of the real rows and of other rows by chance."""
    rows = pl.read_parquet(work.data / "uk_accidents.parquet").select("lng", "lat")
    rows = rows.filter(*(pl.col(name).is_between(*_BOX[name]) for name in rows.columns))
    rows.write_csv(work.folder / "accidents.csv")
    shutil.copy(EXAMPLES / "london.toml", work.folder)
    work.run("check", "spinney check accidents.csv --schema london.toml")
    options = "--epsilon 1 --focus small-areas"
    work.run("plan", f"spinney plan london.toml --rows {rows.height} {options}")
    fit = f"spinney fit accidents.csv --schema london.toml {options} --out london.spinney"
    work.run("fit", fit)
    work.run("sample", f"spinney sample london.spinney --rows {rows.height} --out synthetic.parquet")
    question = "count where lng in -0.16..-0.06 and lat in 51.49..51.54"
    work.run("ask", f'spinney ask london.spinney "{question}"')
    work.run("picture", "spinney picture london.spinney --out partition.svg")
    release: Any = sp.load(work.folder / "london.spinney")
    drawn = pl.read_parquet(work.folder / "synthetic.parquet")
    chance = rows.sample(rows.height, with_replacement=True, seed=1)
    inside = (pl.col("lng").is_between(-0.16, -0.06)) & (pl.col("lat").is_between(51.49, 51.54))
    _draw_maps(rows, drawn, release)
    _draw_squares(rows, drawn)
    return {
        "rows": rows.height,
        "leaves": len(release.moments),
        "in_box": rows.filter(inside).height,
        "squares": [_square_errors(rows, drawn, chance, side) for side in _SIDES],
        "busiest": _busiest(rows, drawn, chance),
        "nowhere": _nowhere(rows, drawn),
    }


def _counts(rows: pl.DataFrame, side: float) -> np.ndarray:
    """How many rows lie in every square of this many kilometres."""
    edges = [np.arange(_BOX[name][0], _BOX[name][1] + side / _KM[name], side / _KM[name]) for name in ("lng", "lat")]
    return np.histogram2d(rows["lng"].to_numpy(), rows["lat"].to_numpy(), bins=edges)[0].ravel()


def _square_errors(rows: pl.DataFrame, drawn: pl.DataFrame, chance: pl.DataFrame, side: float) -> dict[str, Any]:
    real, synthetic, other = (_counts(each, side) for each in (rows, drawn, chance))
    groups = []
    for low, high in _SIZES:
        chosen = (real >= low) & ((real < high) if high else True)
        if chosen.sum() >= 5:
            off = [float(np.median(np.abs(each - real)[chosen] / real[chosen])) for each in (synthetic, other)]
            groups.append({"low": low, "high": high, "squares": int(chosen.sum()), "off": off[0], "chance": off[1]})
    return {"side": side, "groups": groups}


def _busiest(rows: pl.DataFrame, drawn: pl.DataFrame, chance: pl.DataFrame) -> dict[str, Any]:
    """How many of the busiest squares of a kilometre are the same."""
    tops = [set(np.argsort(-_counts(each, 1.0))[:_N_BUSIEST]) for each in (rows, drawn, chance)]
    return {"of": _N_BUSIEST, "found": len(tops[0] & tops[1]), "chance": len(tops[0] & tops[2])}


def _nowhere(rows: pl.DataFrame, drawn: pl.DataFrame) -> float:
    """The share of synthetic rows in squares of half a kilometre that hold no real one."""
    real, synthetic = _counts(rows, 0.5), _counts(drawn, 0.5)
    return float(synthetic[real == 0].sum() / synthetic.sum())


def _draw_maps(rows: pl.DataFrame, drawn: pl.DataFrame, release: Any) -> None:
    figure, (left, middle, right) = new_figure(10.5, 3.2, ncols=3, sharex=True, sharey=True)
    for axes, points, colour, title in (
        (left, rows, REAL, "real accidents"),
        (right, drawn, OURS, "synthetic accidents"),
    ):
        axes.scatter(points["lng"], points["lat"], s=0.25, c=colour, alpha=0.5, linewidths=0, rasterized=True)
        axes.set_title(f"{title}: {points.height:,}")
    _draw_leaves(middle, release)
    middle.set_title(f"what was released: {len(release.moments):,} leaves")
    for axes in (left, middle, right):
        axes.set_aspect(_KM["lat"] / _KM["lng"])
        axes.set(xlim=_BOX["lng"], ylim=_BOX["lat"], xlabel="longitude")
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.grid(visible=False)
    left.set_ylabel("latitude")
    middle.set_ylabel("")
    save(figure, "city-maps.svg")


def _draw_leaves(axes: Axes, release: Any) -> None:
    boxes, weights, _, _ = released_boxes(release, "lng", "lat")
    low, high = boxes.low, boxes.low + boxes.length
    corners = [low[:, 0], low[:, 1], high[:, 0], low[:, 1], high[:, 0], high[:, 1], low[:, 0], high[:, 1]]
    density = np.maximum(weights, 1e-9) / boxes.length.prod(axis=1)
    shown = np.maximum(density, np.quantile(density, 0.9) * 1e-3)
    polygons = PolyCollection(
        list(np.stack(corners, axis=1).reshape(-1, 4, 2)),
        array=shown,
        cmap="YlGn",
        norm=LogNorm(shown.min(), shown.max()),
        edgecolors="#20302a",
        linewidths=0.1,
        rasterized=True,
    )
    axes.add_collection(polygons)


def _draw_squares(rows: pl.DataFrame, drawn: pl.DataFrame) -> None:
    figure, every = new_figure(8.5, 3.6, ncols=2)
    for axes, side in zip(every, (2.0, 0.5), strict=True):
        real, synthetic = _counts(rows, side), _counts(drawn, side)
        most = max(real.max(), synthetic.max()) * 1.3
        seen = (real > 0) | (synthetic > 0)
        axes.plot([0.7, most], [0.7, most], color=REAL, linewidth=1)
        axes.scatter(
            np.maximum(real[seen], 0.7),
            np.maximum(synthetic[seen], 0.7),
            s=7,
            c=OURS,
            alpha=0.35,
            linewidths=0,
            rasterized=True,
        )
        axes.set(xscale="log", yscale="log", xlim=(0.6, most), ylim=(0.6, most))
        axes.set(xlabel="real accidents", title=f"squares of {side:g} km")
    every[0].set_ylabel("synthetic accidents")
    save(figure, "city-squares.svg")


def blocks(record: dict[str, Any]) -> dict[str, str]:
    """What stands on the page, by the names of its places."""
    found, typed, seconds = record["figures"], record["transcripts"], record["seconds"]
    rows = [
        (
            f"{one['side']:g} km",
            f"{group['low']} or more" if group["high"] is None else f"{group['low']} to {group['high'] - 1}",
            f"{group['squares']:,}",
            f"{group['off']:.0%}",
            f"{group['chance']:.0%}",
        )
        for one in found["squares"]
        for group in one["groups"]
    ]
    heads = ("side of a square", "accidents in it", "squares", "off by (median)", "by chance alone")
    busiest = found["busiest"]
    return {
        "table": f"The table has {found['rows']:,} accidents, each with a longitude and a latitude.\n",
        "check": console(typed["check"]),
        "plan": console(typed["plan"]),
        "fit": console("\n\n".join([typed["fit"], typed["sample"]]))
        + f"\nThe fit took {seconds['fit']:.0f} seconds with all loading, and released {found['leaves']:,} leaves.\n",
        "ask": console(typed["ask"]) + f"\nThe real table holds {found['in_box']:,} accidents there.\n",
        "squares": table(heads, rows)
        + f"\nOf the {busiest['of']} busiest squares of a kilometre, {busiest['found']} are among the {busiest['of']} "
        f"busiest of the synthetic rows; of rows that differ by chance alone it is {busiest['chance']}.\n"
        f"{found['nowhere']:.1%} of the synthetic accidents lie in squares of half a kilometre without a real one.\n",
    }
