"""Puts the figures of `docs/explain/fidelity.md` between their markers, and draws its picture.

Figures come from `docs/tables/results.json`, and those of AIM on adult from `benchmarks/tables/aim.json`.

python tools/tables_page.py                  write the tables and the picture
python tools/tables_page.py --from FOLDER    first take over what `python -m benchmarks.tables --out FOLDER` left there
python tools/tables_page.py --check          exit 1 if the page does not show what the results say
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from results_page import START as MARKER
from results_page import put_results

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explain" / "fidelity.md"
RESULTS = ROOT / "docs" / "tables" / "results.json"
PICTURE = ROOT / "docs" / "images" / "fidelity.svg"
AIM = ROOT / "benchmarks" / "tables" / "aim.json"
START = MARKER.format(tool="tables_page.py", results="docs/tables/results.json")

REAL = "real rows"
QUALITIES = ("fast", "high", "best")
RIVALS = ("MST, private quantiles", "MST, public bins", "AIM, private quantiles", "AIM, public bins")
ELSEWHERE = "AIM, run to completion elsewhere"
# Figures of a table's lines, with their heads and forms.
_FIGURES = {
    "tv1": ("TV1", ".4f"),
    "tv2": ("TV2", ".4f"),
    "tv3": ("TV3", ".3f"),
    "query": ("queries", ".4f"),
    "correlation": ("correlations", ".4f"),
    "auc_lr": ("AUC, logistic regression", ".3f"),
    "auc_xgb": ("AUC, XGBoost", ".3f"),
}
# A figure is worse than a rival's if it is so by a twentieth, or an AUC by this much.
_WORSE, _WORSE_AUC = 1.05, 0.004

Record = Mapping[str, Any]


class Cells:
    """Means by table, system, epsilon and whether the target was named."""

    def __init__(self, record: Record, aim: Record) -> None:
        self.tables: Record = record["tables"]
        self.epsilons = sorted({cell["epsilon"] for cell in record["cells"] if cell["epsilon"]}, key=float)
        self._held: dict[tuple[str, str, str, bool], Record] = {}
        # Releases without the number of rows told come last, and so stand.
        for cell in sorted(record["cells"], key=lambda cell: -cell["is_told_rows"]):
            key = (cell["table"], cell["system"], cell["epsilon"], cell["has_target"])
            self._held[key] = {name: pair[0] for name, pair in cell["figures"].items()} | {"note": cell["note"]}
        for cell in aim["cells"]:
            self._held[aim["table"], ELSEWHERE, cell["epsilon"], False] = cell["figures"]

    def figures(self, table: str, system: str, epsilon: str, *, is_named: bool = False) -> Record:
        """The means of one cell; empty where it was not measured."""
        return self._held.get((table, system, "" if system == REAL else epsilon, is_named), {})

    def systems(self, tables: Iterable[str]) -> list[str]:
        """Those measured on one of the tables, ours first and the real rows last."""
        there = {(table, system) for table, system, _, is_named in self._held if not is_named}
        known = (*QUALITIES, *RIVALS, ELSEWHERE, REAL)
        return [system for system in known if any((table, system) in there for table in tables)]


def results_part(record: Record, aim: Record) -> str:
    """All that stands between the markers."""
    cells = Cells(record, aim)
    names = list(cells.tables)
    parts = [
        f"![Total variation of pairs by epsilon, for every table and system](../images/{PICTURE.name})\n",
        _measured(record),
        _together(cells, names),
    ]
    for title, is_held in (("Tables tuned on", False), ("Tables held out", True)):
        those = [name for name in names if cells.tables[name]["is_held_out"] == is_held]
        if those:
            parts += [f"### {title}\n", *(_one_table(cells, name) for name in those)]
    parts += ["### The same releases in other figures\n", _columns(cells, names), _named(cells, names)]
    parts += [_lost(cells, names), _verdicts(record["targets"]), f"*{ELSEWHERE}:* {aim['source']}\n"]
    return "\n".join(part for part in parts if part)


def _measured(record: Record) -> str:
    """Which versions, and how many releases."""
    runs = {True: set[int](), False: set[int]()}
    for cell in record["cells"]:
        if cell["system"] != REAL:
            runs[cell["system"] in RIVALS].add(cell["n_runs"])
    texts = [
        f"{' or '.join(map(str, sorted(runs[is_rival])))} {whose}"
        for is_rival, whose in ((False, "of ours"), (True, "of rivals"))
        if runs[is_rival]
    ]
    told = {cell["is_told_rows"] for cell in record["cells"] if cell["system"] in QUALITIES}
    remark = " The true number of rows was told as `assumed_rows`." if told == {True} else ""
    return f"Measured with version {', '.join(record['versions'])}; releases a figure: {', '.join(texts)}.{remark}\n"


def _together(cells: Cells, names: Sequence[str]) -> str:
    """Geometric means over the tables that all of ours were measured on; rivals that were on all of them too."""

    def is_whole(name: str, system: str) -> bool:
        return all(cells.figures(name, system, epsilon).get("tv2") for epsilon in cells.epsilons)

    systems = cells.systems(names)
    ours = [system for system in systems if system in (*QUALITIES, REAL)]
    common = [name for name in names if all(is_whole(name, system) for system in ours)]
    if not common:
        return ""
    lines = ""
    for system in systems:
        if not all(is_whole(name, system) for name in common):
            continue
        figures = []
        for figure, (_, form) in _FIGURES.items():
            found = []
            for epsilon in [""] if system == REAL else cells.epsilons:
                held = [cells.figures(name, system, epsilon).get(figure) for name in common]
                found.append(_mean(figure, [value for value in held if value is not None], form))
            figures.append(" / ".join(found))
        lines += f"| {system} | {' | '.join(figures)} | {_seconds(cells, common, system)} |\n"
    title = f"**All {len(common)} tables together**" if len(common) > 1 else f"**{common[0]} alone**"
    return f"{title}: geometric means, of AUC means, and the median time; {_budgets(cells)}.\n\n{_head()}{lines}"


def _one_table(cells: Cells, name: str) -> str:
    about = cells.tables[name]
    size = f" ({about['rows']:,} rows, {about['columns']} columns)" if "rows" in about else ""
    lines = ""
    for system in cells.systems([name]):
        epsilons = [""] if system == REAL else cells.epsilons
        figures = [
            " / ".join(_shown(cells.figures(name, system, epsilon).get(figure), form) for epsilon in epsilons)
            for figure, (_, form) in _FIGURES.items()
        ]
        notes = {cells.figures(name, system, epsilon).get("note", "") for epsilon in epsilons}
        is_stopped = any(note.startswith("stopped") for note in notes)
        shown = f"{system} (stopped)" if is_stopped else system
        lines += f"| {shown} | {' | '.join(figures)} | {_seconds(cells, [name], system)} |\n"
    return f"**{name}**{size}, {_budgets(cells)}\n\n{_head()}{lines}"


def _columns(cells: Cells, names: Sequence[str]) -> str:
    """KS of the worst column and TV2 in quantile bins, at the middle budget."""
    epsilon = cells.epsilons[len(cells.epsilons) // 2]
    systems = [system for system in cells.systems(names) if system != ELSEWHERE]
    lines = ""
    for name in names:
        found = [cells.figures(name, system, epsilon) for system in systems]
        shown = (f"{_shown(one.get('worst_ks'), '.4f')} / {_shown(one.get('tv2_quantiles'), '.4f')}" for one in found)
        lines += f"| {name} | {' | '.join(shown)} |\n"
    head = f"| table | {' | '.join(systems)} |\n|---|{'---:|' * len(systems)}\n"
    return f"**KS of the worst column / TV2 in quantile bins**, ε = {epsilon}\n\n{head}{lines}"


def _named(cells: Cells, names: Sequence[str]) -> str:
    """What naming the target does for classifiers, at the middle budget."""
    epsilon = cells.epsilons[len(cells.epsilons) // 2]
    qualities = [quality for quality in QUALITIES if quality in cells.systems(names)]
    lines = ""
    for name in names:
        shown = []
        for quality in qualities:
            pairs = [cells.figures(name, quality, epsilon, is_named=is_named) for is_named in (False, True)]
            if not pairs[1]:
                continue
            areas = (" / ".join(_shown(one.get(which), ".3f") for which in ("auc_lr", "auc_xgb")) for one in pairs)
            shown.append(" → ".join(areas))
        if len(shown) == len(qualities):
            lines += f"| {name} | {' | '.join(shown)} |\n"
    if not lines:
        return ""
    head = f"| table | {' | '.join(qualities)} |\n|---|{'---:|' * len(qualities)}\n"
    title = f"**AUC of logistic regression / XGBoost, target not named → named**, ε = {epsilon}"
    return f"{title}\n\n{head}{lines}"


def _lost(cells: Cells, names: Sequence[str]) -> str:
    """Where the best quality that was measured is worse than a rival that got private quantiles."""
    ours = [system for system in cells.systems(names) if system in QUALITIES][-1:]
    text = ""
    for rival in ("MST, private quantiles", "AIM, private quantiles", ELSEWHERE):
        lost, n_cells = [], 0
        for name in names:
            for epsilon in cells.epsilons:
                theirs = cells.figures(name, rival, epsilon)
                mine = cells.figures(name, ours[0], epsilon) if ours else {}
                for figure, (head, _) in _FIGURES.items():
                    if theirs.get(figure) is None or mine.get(figure) is None:
                        continue
                    n_cells += 1
                    if _is_worse(figure, mine[figure], theirs[figure]):
                        lost.append(f"{name} at {epsilon}: {head}")
        if n_cells:
            which = f" ({'; '.join(lost)})" if lost else ""
            text += f"- {rival}: `{ours[0]}` is worse in {len(lost)} of {n_cells} figures{which}.\n"
    explained = "Worse is by more than a twentieth, of AUC by more than 0.004."
    return f"### Lost to rivals that were given private quantiles\n\n{explained}\n\n{text}" if text else ""


def _verdicts(lines: Sequence[Record]) -> str:
    """How many targets were met, and every one with its figure."""
    missed = [line for line in lines if not line["is_met"]]
    text = (
        f"### Targets\n\n{len(lines) - len(missed)} of the {len(lines)} targets of `benchmarks/tables/targets.py` that "
        "were measured are met.\n"
    )
    if not lines:
        return text
    text += "\n| what | measured | wanted | |\n|---|---:|---:|---|\n"
    for line in lines:
        sign = "at least" if line["is_floor"] else "at most"
        verdict = "met" if line["is_met"] else "**missed**"
        text += f"| {line['what']} | {line['measured']:.3g} {line['unit']} | {sign} {line['wanted']:g} | {verdict} |\n"
    return text


# ------------------------------------------------------------------------------------------------------------- figures


def _head() -> str:
    heads = ["system", *(head for head, _ in _FIGURES.values()), "time, s"]
    return f"| {' | '.join(heads)} |\n|---|{'---:|' * (len(heads) - 1)}\n"


def _budgets(cells: Cells) -> str:
    return f"ε = {' / '.join(cells.epsilons)}"


def _shown(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"


def _mean(figure: str, values: Sequence[float], form: str) -> str:
    if not values:
        return "–"
    if figure.startswith("auc"):
        return f"{mean(values):{form}}"
    return f"{math.exp(mean(math.log(max(value, 1e-9)) for value in values)):{form}}"


def _seconds(cells: Cells, names: Sequence[str], system: str) -> str:
    """The median over tables and budgets of the time to fit and to draw."""
    if system == REAL:
        return ""
    found = [
        held["fit_seconds"] + held["draw_seconds"]
        for name in names
        for epsilon in cells.epsilons
        if "fit_seconds" in (held := cells.figures(name, system, epsilon))
    ]
    return f"{median(found):.3g}" if found else "–"


def _is_worse(figure: str, mine: float, theirs: float) -> bool:
    return mine < theirs - _WORSE_AUC if figure.startswith("auc") else mine > _WORSE * theirs


# ------------------------------------------------------------------------------------------------------------- picture


def draw(record: Record, aim: Record, path: Path) -> None:
    """TV2 against epsilon, one panel a table, with the floor of real rows."""
    import numpy as np
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    from spinney.report.pictures import save_figure
    from spinney_paper.experiments.drawing import BLUE, GREEN, GREY, ORANGE, RED, band, log_axes, new_figure, title

    styles = {
        "fast": (ORANGE, "^", "-"),
        "high": (BLUE, "s", "-"),
        "best": (GREEN, "D", "-"),
        "MST, private quantiles": (RED, "o", "--"),
        ELSEWHERE: (RED, "x", ":"),
        REAL: (GREY, "", ":"),
    }
    cells = Cells(record, aim)
    names = list(cells.tables)
    n_across = min(4, len(names))
    n_down = math.ceil(len(names) / n_across)
    figure = new_figure(2.7 * n_across, 2.5 * n_down + 0.6)
    panels = figure.subplots(n_down, n_across, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        for system, style in styles.items():
            found = [cells.figures(name, system, epsilon).get("tv2") for epsilon in cells.epsilons]
            values = [np.array([] if value is None else [value]) for value in found]
            if any(len(value) for value in values):
                band(axes, cells.epsilons, values, label=system, style=style)
        log_axes(axes, x="ε", y="TV2")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        title(axes, f"{name}{' (held out)' if cells.tables[name]['is_held_out'] else ''}")
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    entries = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(entries.values(), entries.keys(), loc="outside upper center", ncols=len(entries), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(figure, path, overwrite=True)


# ---------------------------------------------------------------------------------------------------------------- page


def main(arguments: list[str]) -> None:
    """Write the tables, or check them."""
    if put_results(
        arguments,
        usage=__doc__,
        page=PAGE,
        results=RESULTS,
        start=START,
        part=lambda record: results_part(record, json.loads(AIM.read_text(encoding="utf-8"))),
        take_over=lambda folder: (folder / "tables.json").read_text(encoding="utf-8"),
    ):
        draw(*(json.loads(path.read_text(encoding="utf-8")) for path in (RESULTS, AIM)), PICTURE)


if __name__ == "__main__":
    main(sys.argv[1:])
