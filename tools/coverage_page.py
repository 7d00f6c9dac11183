"""Puts the tables of `docs/explain/error-bars.md` between their markers, from `docs/coverage/results.json`.

python tools/coverage_page.py                  write the tables
python tools/coverage_page.py --from FOLDER    first take over what `python -m benchmarks.coverage --out FOLDER` left
python tools/coverage_page.py --check          exit 1 if the page does not show what the results say
"""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explain" / "error-bars.md"
RESULTS = ROOT / "docs" / "coverage" / "results.json"
START = "<!-- results: written by tools/coverage_page.py from docs/coverage/results.json; run `make page` -->\n"
END = "<!-- end of results -->"

LAYOUT = 2  # of benchmarks/coverage/results.py
LEVEL = 0.95
AIMS = {"certified": "at least 0.95", "calibrated": "0.93 to 0.97", "indicative": "at least 0.85"}
ASIDE = ("naive", "not supported", "refused")
_MOST_NAMED = 40

Cell = Mapping[str, Any]


def checked(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record, if it is of the layout that this page shows."""
    if record.get("layout") != LAYOUT:
        sys.exit(
            f"docs/coverage/results.json has layout {record.get('layout', 1)}, and this page shows layout {LAYOUT}; "
            "run `python -m benchmarks.coverage` anew and take its results over with --from FOLDER"
        )
    return record


def results_part(record: Mapping[str, Any]) -> str:
    """All that stands between the markers."""
    cells = [cell for cell in record["cells"] if cell["level"] == LEVEL and cell["of"] == "table"]
    parts = [_measured(record), _verdicts(cells), *(_statement(cells, statement, record) for statement in AIMS)]
    parts += [_without(cells), _other_levels(record["cells"]), _rows(record["rows"]), _values(record["values"])]
    return "\n".join(part for part in parts if part)


def _measured(record: Mapping[str, Any]) -> str:
    fewest, most = record["releases_a_cell"]
    return (
        f"Measured with version {', '.join(record['versions'])}, {fewest} to {most} releases a table, unit and "
        f"epsilon, {record['releases']:,} in all.\n"
        f"Tables: {', '.join(record['tables'])}.\n"
        f"Tables that nobody looked at before: {', '.join(record['held_out']) or 'none in this run'}.\n"
        f"A release with all its questions took {record['seconds']:.0f} s in the median.\n"
    )


def _verdicts(cells: Sequence[Cell]) -> str:
    """How many cells there are of each statement, and how many do not hold what it says."""
    lines = ""
    for statement, aim in AIMS.items():
        counts = Counter(cell["verdict"] for cell in cells if cell["statement"] == statement)
        judged = sum(counts.values()) - counts["not judged"]
        flat = sum(cell["flat"] for cell in cells if cell["statement"] == statement)
        lines += (
            f"| {statement} | {aim} | {judged:,} | {counts['off']:,} | {counts['fails']:,} | "
            f"{counts['not judged']:,} | {flat:,} |\n"
        )
    head = "| statement | aim | cells judged | off | fail | too few releases | intervals of no width |\n"
    return f"**What is said, and how many cells do not hold it**\n\n{head}|---|---|---:|---:|---:|---:|---:|\n{lines}"


def _statement(cells: Sequence[Cell], statement: str, record: Mapping[str, Any]) -> str:
    """One statement: its kinds of questions, the same by table, and the cells that do not hold, named."""
    own = [cell for cell in cells if cell["statement"] == statement and sum(cell["n"])]
    if not own:
        return ""
    kinds = list(dict.fromkeys((cell["kind"], cell["asked"]) for cell in own))
    lines = matrix = ""
    tables = [name for name in record["tables"] if any(cell["table"] == name for cell in own)]
    for kind, asked in sorted(kinds, key=lambda one: (one[1], one[0])):
        here = [cell for cell in own if (cell["kind"], cell["asked"]) == (kind, asked)]
        name = f"{kind}{' (asked for)' if asked == 'certified' else ''}"
        naive = [cell for cell in cells if cell["kind"] == kind and cell["statement"] == "naive"]
        least = min(here, key=_held)
        lines += (
            f"| {name} | {sum(sum(cell['n']) for cell in here):,} | {_shown(here)} | {_narrow(here):.3f} | "
            f"{_width(here)} | {_pooled(naive)} | {_held(least):.2f} of {sum(least['n'])}, {_place(least)} |\n"
        )
        shown = [_shown([cell for cell in here if cell["table"] == table], 2) for table in tables]
        matrix += f"| {name} | {' | '.join(shown)} |\n"
    columns = "| | intervals | held | of 0.7 times the width | width | naive | the lowest cell |\n"
    held_out = [f"{name} (held out)" if name in record["held_out"] else name for name in tables]
    text = f"**{statement.capitalize()}**, aim: {AIMS[statement]}\n\n{columns}|---|{'---:|' * 5}---|\n{lines}\n"
    text += f"**{statement.capitalize()}, by table**\n\n| | {' | '.join(held_out)} |\n"
    text += f"|---|{'---:|' * len(tables)}\n{matrix}"
    return text + _named(own, statement)


def _named(cells: Sequence[Cell], statement: str) -> str:
    """The cells that are off or fail, the lowest first, with the questions that missed most."""
    bad = sorted((cell for cell in cells if cell["verdict"] in ("off", "fails")), key=_held)
    if not bad:
        return ""
    lines = ""
    for cell in bad[:_MOST_NAMED]:
        worst = "; ".join(f"`{text}` {missed} of {n}, at {off:+.1f}" for text, missed, n, off in cell["worst"][:2])
        flat = f", {cell['flat']} of no width" if cell["flat"] else ""
        lines += f"| {_place(cell)} | {cell['kind']} | {cell['verdict']}{flat} | {_shown([cell])} | {worst} |\n"
    left = f"\n{len(bad) - _MOST_NAMED:,} more are in the results.\n" if len(bad) > _MOST_NAMED else ""
    head = "| | kind | | held | questions that missed most, and where in half-widths the truth lies |\n"
    return f"\n**{statement.capitalize()} cells that do not hold**\n\n{head}|---|---|---|---:|---|\n{lines}{left}"


def _without(cells: Sequence[Cell]) -> str:
    """Which answers have no interval."""
    lines = ""
    asked = [cell for cell in cells if cell["asked"] == "auto"]
    for kind in sorted({cell["kind"] for cell in asked}):
        own = [cell for cell in asked if cell["kind"] == kind]
        n = {
            statement: sum(cell["n_answers"] for cell in own if cell["statement"] == statement) for statement in _said()
        }
        total = sum(n.values())
        if total:
            lines += f"| {kind} | {total:,} | {' | '.join(f'{n[statement] / total:.0%}' for statement in _said())} |\n"
    head = f"| | answers | {' | '.join(_said())} |\n|---|{'---:|' * (1 + len(_said()))}\n"
    return f"**What answers call themselves**\n\n{head}{lines}"


def _said() -> tuple[str, ...]:
    return (*AIMS, *(word for word in ASIDE if word != "naive"))


def _other_levels(cells: Sequence[Cell]) -> str:
    """Certified counts of single values at 99 %, and what is said of the population."""
    certified = [cell for cell in cells if cell["level"] == 0.99 and cell["of"] == "table"]
    population = [cell for cell in cells if cell["of"] == "population" and cell["statement"] in AIMS]
    text = f"Certified counts of single values hold {_shown(certified, 3)} at 99 %.\n" if certified else ""
    for statement in AIMS:
        own = [cell for cell in population if cell["statement"] == statement]
        if any(sum(cell["n"]) for cell in own):
            text += f"Of the population, {statement} intervals hold {_shown(own, 3)} at 95 %.\n"
    return text


def _rows(found: Iterable[Mapping[str, Any]]) -> str:
    lines = ""
    for one in found:
        inside, strictly = (one[name] / max(1, one["n"]) for name in ("inside", "strictly"))
        tails = f"{one['tails_inside'] / max(1, one['tails']):.3f} of {one['tails']:,}"
        column, spread = one["widest"]
        worst = f"`{one['worst'][0]}`" if one["worst"] else ""
        lines += (
            f"| {_place(one)} | {one['n']:,} | {inside:.3f} | {tails} | {strictly:.3f} | "
            f"{one['least'][0]} {one['least'][1]:.2f} | {column} {spread:.2f} | "
            f"{one['narrowest'][0]} {one['narrowest'][1]:.2f} | {worst} |\n"
        )
    if not lines:
        return ""
    head = (
        "| | ranges | inside | of tails | without the luck of drawing | lowest column | widest column | "
        f"narrowest column | furthest outside |\n|---|{'---:|' * 4}---|---|---|---|\n"
    )
    return (
        "**Drawn rows against certified ranges of the same release**, 99 %, aimed at 99 of 100\n\n"
        "A count of drawn rows may be off by the luck of drawing, 2.6 of its standard deviations; the column "
        "*without* does not allow for that.\n"
        "Tails are ranges that end at a bound.\n"
        "Widest and narrowest: the standard deviation of drawn values in units of the private table's, of the one "
        f"release that is widest and in the median of releases.\n\n{head}{lines}"
    )


def _values(found: Iterable[Mapping[str, Any]]) -> str:
    lines = ""
    for one in found:
        scatter = "–" if one["dispersion"] is None else f"{one['dispersion']:.2f} ± {one['dispersion_error']:.2f}"
        worst = "; ".join(f"`{text}` {missed} of {n}" for text, missed, n in one["worst"][:2] if missed)
        lines += (
            f"| {one['unit']}, ε = {one['epsilon']}{', asked for' if one['asked'] == 'certified' else ''} | "
            f"{one['n_values']:,} | {one['held'] / one['n']:.3f} of {one['n']:,} | {scatter} | {worst} |\n"
        )
    if not lines:
        return ""
    head = "| | values | held | dispersion | values that missed most |\n|---|---:|---:|---:|---|\n"
    return (
        "**Certified counts, value by value**\n\n"
        "The dispersion is 1 where all values hold equally often, and more where luck is fixed for a value.\n\n"
        f"{head}{lines}"
    )


# ------------------------------------------------------------------------------------------------------------- figures


def _held(cell: Cell) -> float:
    return float(sum(cell["held"]) / max(1, sum(cell["n"])))


def _pooled(cells: Sequence[Cell], digits: int = 3) -> str:
    n = sum(sum(cell["n"]) for cell in cells)
    return f"{sum(sum(cell['held']) for cell in cells) / n:.{digits}f}" if n else "–"


def _shown(cells: Sequence[Cell], digits: int = 3) -> str:
    """The share of all cells together, bold where one of them is off or fails."""
    text = _pooled(cells, digits)
    return f"**{text}**" if any(cell["verdict"] in ("off", "fails") for cell in cells) else text


def _narrow(cells: Sequence[Cell]) -> float:
    return float(sum(cell["narrow"] for cell in cells) / max(1, sum(sum(cell["n"]) for cell in cells)))


def _width(cells: Sequence[Cell]) -> str:
    """The median over cells, weighted by their intervals, in widths of the private table's own interval."""
    pairs = sorted((cell["width"], sum(cell["n"])) for cell in cells if cell["width"] is not None)
    half, passed = sum(n for _, n in pairs) / 2, 0
    for width, n in pairs:
        passed += n
        if passed >= half:
            return f"{width:.1f}"
    return "–"


def _place(cell: Cell) -> str:
    return f"{cell['table']}, {cell['unit']}, ε = {cell['epsilon']}"


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
            checked(json.loads((Path(folder) / "coverage.json").read_text(encoding="utf-8")))
            RESULTS.parent.mkdir(exist_ok=True)
            shutil.copyfile(Path(folder) / "coverage.json", RESULTS)
        case [] | ["--check"]:
            pass
        case _:
            sys.exit(__doc__)
    text = PAGE.read_text(encoding="utf-8")
    made = with_results(text, checked(json.loads(RESULTS.read_text(encoding="utf-8"))))
    if arguments == ["--check"]:
        if made != text:
            sys.exit("docs/explain/error-bars.md does not show what the results say; run `make page`")
    else:
        PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
