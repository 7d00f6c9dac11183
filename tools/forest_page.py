"""Puts the measured tables of `docs/explain/forest.md` between their markers, from `docs/forest/results.json`.

python tools/forest_page.py                  write the tables into the page
python tools/forest_page.py --from FOLDER    first take over what `python -m benchmarks.forest --out FOLDER` left there
python tools/forest_page.py --check          exit 1 if the page does not show what the results say
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from results_page import START as MARKER
from results_page import put_results

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "explain" / "forest.md"
RESULTS = DOCS / "forest" / "results.json"
START = MARKER.format(tool="forest_page.py", results="docs/forest/results.json")
# Tables that nothing was tuned on. Checked against the benchmark's own descriptions by a test.
HELD_OUT = ("census_income", "covtype", "kdd99_10pct")

# Figures of a trial, with their heads; what a record does not hold is left empty.
_FIGURES = {
    "worst_ks": ("KS, worst", ".4f"),
    "ks": ("KS, mean", ".4f"),
    "tv1": ("TV1", ".4f"),
    "tv2": ("TV2", ".4f"),
    "tv1_equal": ("TV1, equal bins", ".4f"),
    "tv2_equal": ("TV2, equal bins", ".4f"),
    "area": ("AUC", ".3f"),
    "fit_seconds": ("fit, s", ".2f"),
}
_HEADS = ("table", "setting", "runs", *(head for head, _ in _FIGURES.values()), "AUC of real rows")
_HEAD = f"| {' | '.join(_HEADS)} |\n|---|---|{'---:|' * (len(_HEADS) - 2)}\n"

Record = Mapping[str, Any]


def results_part(record: Record) -> str:
    """All that stands between the markers."""
    trials = _without_repeats(record["trials"])
    tables = list(dict.fromkeys(trial["table"] for trial in trials))
    tuned, held_out = ([name for name in tables if (name in HELD_OUT) == is_held] for is_held in (False, True))
    parts = []
    for title, names in (("Tables that the forest was tuned on", tuned), ("Tables held out", held_out)):
        if names:
            lines = "".join(_lines_of(name, trials, record["table"]) for name in names)
            parts.append(f"**{title}.**\n\n{_HEAD}{lines}")
    heads = tuple(f"{name}, {_setting(trial)}: " for name in tables for trial in trials if trial["table"] == name)
    others = [line for line in record["table"] if not line["what"].startswith((*heads, *_real(tables)))]
    if others:
        listed = "".join(f"| {line['what']} | {line['mean']:.3g} {line['unit']} |\n" for line in others)
        parts.append(f"**Time, memory, and others' systems.**\n\n| what | measured |\n|---|---:|\n{listed}")
    parts.append(_verdicts(record["table"]))
    return "\n".join(parts)


def _lines_of(name: str, trials: Sequence[Record], lines: Iterable[Record]) -> str:
    """The lines of one table, one for each setting."""
    real = next((line["mean"] for line in lines if line["what"].startswith(_real([name]))), None)
    written = ""
    for setting in dict.fromkeys(_setting(trial) for trial in trials if trial["table"] == name):
        those = [trial for trial in trials if trial["table"] == name and _setting(trial) == setting]
        figures = [
            _figure([trial[key] for trial in those if trial.get(key) is not None], form)
            for key, (_, form) in _FIGURES.items()
        ]
        reference = "" if real is None else f"{real:.3f}"
        written += f"| {name} | {setting} | {len(those)} | {' | '.join(figures)} | {reference} |\n"
    return written


def _without_repeats(trials: Iterable[Record]) -> list[Record]:
    """Trials, each once: what runs beside others' systems repeats one."""
    first: dict[tuple[str, str, int], Record] = {}
    for trial in trials:
        first.setdefault((trial["table"], _setting(trial), trial["repetition"]), trial)
    return list(first.values())


def _setting(trial: Record) -> str:
    """A setting in the benchmark's words."""
    setting = trial["setting"]
    return f"{'pure ' if setting['delta'] == '0' else ''}epsilon {setting['epsilon']}, {setting['quality']}"


def _real(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name}, real rows: AUC" for name in names)


def _figure(values: Sequence[float], form: str) -> str:
    if not values:
        return ""
    spread = f" ± {stdev(values):{form}}" if len(values) > 1 else ""
    return f"{mean(values):{form}}{spread}"


def _verdicts(lines: Iterable[Record]) -> str:
    """How many targets were met, and every one that was not."""
    judged = [line for line in lines if line["wanted"] is not None]
    missed = [line for line in judged if not _is_met(line)]
    text = (
        f"**Targets.** {len(judged) - len(missed)} of {len(judged)} stated in `benchmarks/forest/targets.py` were met."
    )
    for line in missed:
        sign = "at least" if line["is_floor"] else "at most"
        text += f"\n- Missed: {line['what']} is {line['mean']:.4g}, and was to be {sign} {line['wanted']:g}."
    return text + "\n"


def _is_met(line: Record) -> bool:
    measured, wanted = float(line["mean"]), float(line["wanted"])
    return measured >= wanted if line["is_floor"] else measured <= wanted


def main(arguments: list[str]) -> None:
    """Write the tables, or check them."""
    put_results(
        arguments,
        usage=__doc__,
        page=PAGE,
        results=RESULTS,
        start=START,
        part=results_part,
        take_over=lambda folder: (folder / "forest.json").read_text(encoding="utf-8"),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
