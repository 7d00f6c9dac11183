"""Picture, table and verdict of the two comparisons with Balog et al.; `rivals` says what is shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney_paper.experiments.drawing import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    band,
    log_axes,
    new_figure,
    note,
    title,
)
from spinney_paper.experiments.results import Floats, Results
from spinney_paper.experiments.wording import markdown_table, number, points, sentence_case, with_spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Published = list[dict[str, Any]]

_NAMES = {
    "balog1": "Balog et al. 1, random points",
    "balog1 leak": "Balog et al. 1, a part is public",
    "balog2": "Balog et al. 2, reduced set",
    "grid": "grid (paper's Algorithm 1)",
    "paper": "tree (paper's Algorithm 2)",
    "grid automatic": "grid, automatic settings",
    "paper automatic": "paper's tree, automatic settings",
    "spinney": "PrivTree with bins",
    "moments": "Spinney's default",
}
_RIVALS = ("balog1", "balog1 leak", "balog2")
_OURS = ("grid", "grid automatic", "paper", "paper automatic", "spinney", "moments")
DELTA = "1e-6"  # theirs, in all that was published and here
# Colour, marker, line.
_STYLES = {
    "balog1": (GREEN, "v", "-"),
    "balog1 leak": (GREY, "v", "-"),
    "balog2": (PURPLE, "D", "-"),
    "grid": (ORANGE, "o", "-"),
    "paper": (RED, "o", "-"),
    "grid automatic": (ORANGE, "o", ""),
    "paper automatic": (RED, "o", ""),
    "spinney": (SKY, "D", ""),
    "moments": (BLUE, "s", ""),
}
# Of repetitions, beyond which a published distance is called another one. One more run than ours has its own noise.
_DEVIATIONS = 3.0


def _theirs(published: Published, results: Results, method: str, epsilon: str) -> dict[str, Any] | None:
    """The published curve of a rival, where it is of the same table."""
    if results.params["n_rows"] != 100_000:
        return None
    wanted = {"n_axes": results.params["n_axes"], "method": method, "epsilon": epsilon}
    return next((one for one in published if all(one[name] == value for name, value in wanted.items())), None)


def _at_size(results: Results, method: str, epsilon: str, size: int) -> Floats:
    return results.values(f"mmd_{size}", method=method, epsilon=epsilon)


def _settings(results: Results, method: str, epsilon: str) -> list[tuple[float, Floats]]:
    """Mean number of points and all distances, for every setting of ours: of the grid widest bins first."""
    params = results.params
    if method == "grid":
        settings = [{"bins": bins} for bins in params["bins"]]
    else:
        settings = [
            {"fixed_depth": fixed, "max_depth": fixed + levels, "scale": scale}
            for fixed in params["fixed_depths"]
            for levels in params["levels"]
            for scale in params["scales"]
        ]
    return [
        (
            results.mean("n_bins", method=method, epsilon=epsilon, **setting),
            results.values("mmd", method=method, epsilon=epsilon, **setting),
        )
        for setting in settings
    ]


def _best(results: Results, method: str, epsilon: str) -> tuple[float, Floats]:
    """Number of points and distances where the mean distance is smallest; the automatic setting is one of ours."""
    if method in _RIVALS:
        sizes = results.params["sizes"][method]
        best = min(sizes, key=lambda size: float(_at_size(results, method, epsilon, size).mean()))
        return best, _at_size(results, method, epsilon, best)
    if method in ("grid", "paper"):
        found = [*_settings(results, method, epsilon), _best(results, f"{method} automatic", epsilon)]
        return min(found, key=lambda one: float(one[1].mean()))
    return (
        results.mean("n_bins", method=method, epsilon=epsilon),
        results.values("mmd", method=method, epsilon=epsilon),
    )


def draw(results: Results, published: Published) -> Figure:
    """A panel for each epsilon: distance over the size of the synthetic set."""
    epsilons = results.params["epsilons"]
    figure = new_figure(4.0 * len(epsilons), 4.9)
    panels = np.atleast_1d(figure.subplots(1, len(epsilons), sharey=True))
    for axes, epsilon in zip(panels, epsilons, strict=True):
        for method in _RIVALS:
            _draw_rival(axes, results, published, method, epsilon)
        for method in ("grid", "paper"):
            _draw_settings(axes, results, method, epsilon)
        for method in ("grid automatic", "paper automatic", "spinney", "moments"):
            size, values = _best(results, method, epsilon)
            color, marker, _ = _STYLES[method]
            if size > 0:
                axes.plot(
                    [size],
                    [values.mean()],
                    linestyle="",
                    marker="*" if method.endswith("automatic") else marker,
                    markersize=13 if method.endswith("automatic") else 9,
                    color=color,
                    markeredgecolor="white",
                    zorder=5,
                    label=_NAMES[method],
                )
        log_axes(axes, x="points in the synthetic set", y="RKHS distance" if epsilon == epsilons[0] else "")
        title(axes, f"ε = {epsilon}")
    handles, labels = panels[-1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(epsilons) + 1, frameon=False, fontsize=8)
    note(
        figure,
        f"{results.params['n_rows']:,} rows in {results.params['n_axes']} dimensions; Balog et al. (ε, {DELTA}), ours "
        "pure ε, unit replace-one; band: smallest to largest of all repetitions; crosses: published",
    )
    return figure


def _draw_settings(axes: Axes, results: Results, method: str, epsilon: str) -> None:
    """A mark for every setting, with the range of its repetitions; those of the grid are joined by bin width."""
    color, marker, line = _STYLES[method]
    found = [(size, values) for size, values in _settings(results, method, epsilon) if size > 0]
    sizes, means = [size for size, _ in found], np.array([values.mean() for _, values in found])
    reach = [[mean - v.min() for mean, (_, v) in zip(means, found, strict=True)]]
    reach += [[v.max() - mean for mean, (_, v) in zip(means, found, strict=True)]]
    axes.errorbar(
        sizes,
        means,
        yerr=np.abs(reach) if found else None,
        color=color,
        marker=marker,
        markersize=4,
        linestyle=line if method == "grid" else "",
        linewidth=1.2,
        elinewidth=0.8,
        label=_NAMES[method],
    )


def _draw_rival(axes: Axes, results: Results, published: Published, method: str, epsilon: str) -> None:
    sizes = results.params["sizes"][method]
    values = [_at_size(results, method, epsilon, size) for size in sizes]
    band(axes, sizes, values, label=_NAMES[method], style=_STYLES[method])
    theirs = _theirs(published, results, method, epsilon)
    if theirs:
        color = _STYLES[method][0]
        axes.plot(theirs["sizes"], theirs["mmd"], linestyle="", marker="x", color=color, markersize=7, zorder=4)


def table(results: Results, published: Published) -> str:
    """Best over sizes or settings, and the automatic settings, for every epsilon; published figures beside."""
    epsilons = results.params["epsilons"]
    rows = []
    for method in (*_RIVALS, *_OURS):
        is_best = method in (*_RIVALS, "grid", "paper")
        choice = "best over sizes" if method in _RIVALS else "best over settings" if is_best else "no choice"
        cells = []
        for epsilon in epsilons:
            size, values = _best(results, method, epsilon)
            cells.append(f"{with_spread(values)} ({_points(size)})")
        rows.append([_NAMES[method], choice, *cells])
        if method in _RIVALS:
            theirs = [_theirs(published, results, method, epsilon) for epsilon in epsilons]
            if all(theirs):
                best = [f"{number(one['best'])} ({_points(one['best_size'])})" for one in theirs if one]
                rows.append(["… as published", "best over sizes", *best])
    head = ["", "", *(f"ε = {epsilon}" for epsilon in epsilons)]
    return markdown_table(head, rows, n_names=2)


def _points(size: float) -> str:
    return "1 point" if round(size) == 1 else f"{size:,.0f} points"


def verdict(results: Results, published: Published) -> str:
    """Whether our rivals agree with their published curves, and who is nearer to the private rows."""
    return points([*_agreement(results, published), *_winners(results, published), *_apart(results)])


def _agreement(results: Results, published: Published) -> list[str]:
    """Published distances within three deviations of our repetitions; where the noise hardly shows, within 2 %."""
    sentences = []
    for method in _RIVALS:
        inside, total, furthest = 0, 0, 0.0
        for epsilon in results.params["epsilons"]:
            theirs = _theirs(published, results, method, epsilon)
            for size, value in zip(theirs["sizes"], theirs["mmd"], strict=True) if theirs else ():
                ours = _at_size(results, method, epsilon, size)
                off = abs(value - float(ours.mean()))
                spread = float(ours.std(ddof=1)) * math.sqrt(1 + 1 / len(ours))
                total += 1
                inside += off <= max(_DEVIATIONS * spread, 0.02 * value)
                furthest = max(furthest, off / value)
        if total:
            sentences.append(
                f"{_NAMES[method]}: {inside} of {total} published distances lie within {_DEVIATIONS:g} deviations of "
                f"our repetitions or 2 %, the furthest is {furthest:.0%} off."
            )
    return sentences


def _winners(results: Results, published: Published) -> list[str]:
    """Ours against the better of the two rivals that see no private row before the release, measured or published."""
    sentences = []
    is_published = _theirs(published, results, "balog1", results.params["epsilons"][0]) is not None
    size = "best size, measured here or published," if is_published else "best size"
    for method in _OURS:
        won: list[str] = []
        lost: list[str] = []
        for epsilon in results.params["epsilons"]:
            ours = float(_best(results, method, epsilon)[1].mean())
            rivals = [float(_best(results, name, epsilon)[1].mean()) for name in ("balog1", "balog2")]
            theirs = [_theirs(published, results, name, epsilon) for name in ("balog1", "balog2")]
            rival = min([*rivals, *(one["best"] for one in theirs if one)])
            (won if ours < rival else lost).append(f"{epsilon} ({number(ours)} against {number(rival)})")
        choice = " at its best setting" if method in ("grid", "paper") else ""
        beats = f"beats both rivals at their {size} at ε = {', '.join(won)}" if won else ""
        loses = f"does not at ε = {', '.join(lost)}" if won else f"beats the better rival at no ε: {', '.join(lost)}"
        outcome = " and ".join(part for part in (beats, loses if lost else "") if part)
        sentences.append(f"{sentence_case(_NAMES[method])}{choice} {outcome}.")
    return sentences


def _apart(results: Results) -> list[str]:
    """What the rivals' promise is, and how the one does that may publish a part of the private rows."""
    nearer = []
    for epsilon in results.params["epsilons"]:
        leak = float(_best(results, "balog1 leak", epsilon)[1].mean())
        ours = min(float(_best(results, method, epsilon)[1].mean()) for method in _OURS)
        if leak < ours:
            nearer.append(f"{epsilon} ({number(leak)} against {number(ours)})")
    at = f"is nearer than all of ours at ε = {', '.join(nearer)}" if nearer else "is nearer than all of ours at no ε"
    return [
        f"Not counted among the rivals: {_NAMES['balog1 leak']}. It is given rows of the private table, and {at}.",
        f"Balog et al. promise (ε, {DELTA}), ours ε alone.",
    ]
