"""Puts the tables of `docs/explain/error-bars.md` between their markers, from `docs/coverage/results.json`.

python tools/coverage_page.py                  write the tables
python tools/coverage_page.py --from FOLDER    first take over what `python -m benchmarks.coverage --out FOLDER` left
python tools/coverage_page.py --check          exit 1 if the page does not show what the results say
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explain" / "error-bars.md"
RESULTS = ROOT / "docs" / "coverage" / "results.json"
START = "<!-- results: written by tools/coverage_page.py from docs/coverage/results.json; run `make page` -->\n"
END = "<!-- end of results -->"

LEVEL = 0.95
# Kinds of questions in the order of the page, with their heads and the share of intervals that should hold.
KINDS = {
    "one column": ("Forests: counts of one column", (0.93, 0.97)),
    "pairs together": ("Forests: counts of two columns that were counted together", (0.93, 0.97)),
    "pairs apart": ("Forests: counts of two columns that were not counted together", (0.90, 0.98)),
    "means together": ("Forests: means given a column that was counted together with it", (0.90, 0.97)),
    "means apart": ("Forests: means given a column that was not counted together with it", (0.90, 0.98)),
    "regressions": ("Forests: regressions that were named before the fit", (0.93, 0.97)),
    "other regressions": ("Forests: other regressions with five to eight predictors, from 20 draws", None),
    "boxes": ("Trees: counts in boxes of all columns", (0.93, 0.97)),
    "quantiles": ("Quantiles of a column", (0.93, 0.97)),
    "means": ("Means of a column", (0.93, 0.97)),
}
INTERVALS = ("certified", "calibrated")
_CLEARLY = 2.0  # standard errors by which a share is said to be off

Cell = Mapping[str, Any]


def results_part(record: Mapping[str, Any]) -> str:
    """All that stands between the markers."""
    cells = [cell for cell in record["cells"] if cell["level"] == LEVEL]
    parts = [_measured(record), _certified(cells), _levels(record["cells"])]
    parts += [_kind(cells, kind, record["held_out"]) for kind in KINDS]
    return "\n".join(part for part in parts if part)


def _measured(record: Mapping[str, Any]) -> str:
    n_releases = sorted({cell["n_releases"] for cell in record["cells"] if cell["wanted"] == "naive"})
    seconds = record["seconds"]
    return (
        f"Measured with version {', '.join(record['versions'])}, {n_releases[0]} to {n_releases[-1]} releases a table "
        f"and epsilon, {record['releases']:,} in all.\n"
        f"Tables that nobody looked at before: {', '.join(record['held_out']) or 'none'}.\n"
        f"The median question took {1000 * seconds['answer']:.0f} ms.\n\n"
        "A cell of the tables below shows the share of 95 % intervals that held, and behind it their median width in "
        "units of the interval that the private table itself would give without noise.\n"
        "*Naive* is the share for intervals of one drawn table that is taken for the real one.\n"
        "Bold shares are off what is aimed at by more than two standard errors.\n"
        "Behind a plus sign stands the share of answers that call themselves indicative or not supported, which are "
        "left out of the first figures.\n"
    )


def _certified(cells: Sequence[Cell]) -> str:
    """Whether certified intervals hold, and whether narrower ones would."""
    lines = ""
    for kind in ("whole leaves", *KINDS):
        held = [
            cell
            for cell in cells
            if cell["kind"] == kind and cell["of"] == "table" and cell["wanted"] == "certified" and _has_bars(cell)
        ]
        if not held:
            continue
        least = min(held, key=lambda cell: cell["coverage"])
        name = KINDS[kind][0] if kind in KINDS else "Values of categories, and single leaves of trees"
        lines += (
            f"| {name} | {sum(cell['n_answers'] for cell in held):,} | {_pooled(held):.3f} | "
            f"{_pooled(held, 'narrow_coverage'):.3f} | {least['coverage']:.3f} ({least['table']}, "
            f"ε = {least['epsilon']}) |\n"
        )
    head = "| | intervals | held | of 0.7 times the width | the worst cell |\n|---|---:|---:|---:|---|\n"
    return f"**Certified intervals**, all tables and budgets, of the table, 95 %\n\n{head}{lines}"


def _levels(cells: Sequence[Cell]) -> str:
    """All tables together, at every level, and the population at one."""
    columns = [("table", level) for level in sorted({cell["level"] for cell in cells})] + [("population", LEVEL)]
    lines = ""
    for kind, (head, _) in KINDS.items():
        shown = []
        for of, level in columns:
            found = [cell for cell in _given(cells, kind, of) if cell["statement"] in INTERVALS]
            held = [cell for cell in found if cell["level"] == level and _has_bars(cell)]
            shown.append(f"{_pooled(held):.3f}" if held else "–")
        if any(text != "–" for text in shown):
            lines += f"| {head} | {' | '.join(shown)} |\n"
    heads = [f"{of}, {level:.0%}" for of, level in columns]
    head = f"| | {' | '.join(heads)} |\n|---|{'---:|' * len(heads)}\n"
    return f"**Certified and calibrated answers, all tables and budgets together**\n\n{head}{lines}"


def _kind(cells: Sequence[Cell], kind: str, held_out: Iterable[str]) -> str:
    """One kind of question: a line a table, and the figures by budget."""
    title, wanted = KINDS[kind]
    mine = [cell for cell in cells if cell["kind"] == kind and cell["of"] == "table"]
    if not mine:
        return ""
    epsilons = sorted({cell["epsilon"] for cell in mine}, key=float)
    lines = ""
    for table in dict.fromkeys(cell["table"] for cell in mine):
        shown = []
        for epsilon in epsilons:
            here = [cell for cell in mine if cell["table"] == table and cell["epsilon"] == epsilon]
            shown += [_naive(here), _shown(_given(here, kind, "table"), kind, wanted)]
        lines += f"| {table}{' (held out)' if table in held_out else ''} | {' | '.join(shown)} |\n"
    heads = [text for epsilon in epsilons for text in ("naive", f"ε = {epsilon}")]
    aim = f", aimed at {wanted[0]:.2f} to {wanted[1]:.2f}" if wanted else ""
    return f"**{title}**{aim}\n\n| table | {' | '.join(heads)} |\n|---|{'---:|' * len(heads)}\n{lines}"


def _shown(cells: Sequence[Cell], kind: str, wanted: tuple[float, float] | None) -> str:
    """Share and width of the intervals that are called certified or calibrated; of unnamed regressions, of all."""
    statements = (*INTERVALS, "indicative") if kind == "other regressions" else INTERVALS
    n_answers = sum(cell["n_answers"] for cell in cells)
    held = [cell for cell in cells if cell["statement"] in statements and _has_bars(cell)]
    others = n_answers - sum(cell["n_answers"] for cell in held)
    text = "–"
    if held:
        share, n_held = _pooled(held), sum(cell["n_answers"] for cell in held)
        errors = [cell["coverage_error"] or 0 for cell in held]
        error = max(sum(error**2 for error in errors) ** 0.5 / len(errors), (0.05 * 0.95 / n_held) ** 0.5)
        is_off = wanted is not None and not wanted[0] - _CLEARLY * error <= share <= wanted[1] + _CLEARLY * error
        widths = sorted((cell["width"], cell["n_answers"]) for cell in held if cell["width"] is not None)
        text = f"**{share:.2f}**" if is_off else f"{share:.2f}"
        text += f", {_weighted_median(widths):.1f}" if widths else ""
    return f"{text} + {others / n_answers:.0%}" if others and n_answers else text


def _naive(cells: Sequence[Cell]) -> str:
    found = [cell for cell in cells if cell["wanted"] == "naive" and _has_bars(cell)]
    return f"{_pooled(found):.2f}" if found else "–"


def _given(cells: Iterable[Cell], kind: str, of: str) -> list[Cell]:
    """What a user gets who wants no statement in particular."""
    return [cell for cell in cells if cell["kind"] == kind and cell["of"] == of and cell["wanted"] == "auto"]


def _has_bars(cell: Cell) -> bool:
    return cell["coverage"] is not None


def _pooled(cells: Sequence[Cell], figure: str = "coverage") -> float:
    return float(sum(cell[figure] * cell["n_answers"] for cell in cells) / sum(cell["n_answers"] for cell in cells))


def _weighted_median(pairs: Sequence[tuple[float, int]]) -> float:
    half, passed = sum(weight for _, weight in pairs) / 2, 0
    for value, weight in pairs:
        passed += weight
        if passed >= half:
            return value
    return pairs[-1][0]


# ---------------------------------------------------------------------------------------------------------------- page


def with_results(text: str, record: Mapping[str, Any]) -> str:
    """The page with the results in their place."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        sys.exit(f"docs/explain/error-bars.md has lost its markers: {START.strip()} and {END}")
    return f"{before}{START}\n{results_part(record)}\n{END}{after}"


def main(arguments: list[str]) -> None:
    """Write the tables, or check them."""
    match arguments:
        case ["--from", folder]:
            RESULTS.parent.mkdir(exist_ok=True)
            shutil.copyfile(Path(folder) / "coverage.json", RESULTS)
        case [] | ["--check"]:
            pass
        case _:
            sys.exit(__doc__)
    text = PAGE.read_text(encoding="utf-8")
    made = with_results(text, json.loads(RESULTS.read_text(encoding="utf-8")))
    if arguments == ["--check"]:
        if made != text:
            sys.exit("docs/explain/error-bars.md does not show what the results say; run `make page`")
    else:
        PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
