"""Results of a run: one JSON line a release, appended as soon as it is there, and the means over releases."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median, stdev
from typing import Any

from benchmarks.coverage.tables import HELD_OUT
from benchmarks.coverage.trials import Figure, Outcome, Trial


class Results:
    """A folder's file of results."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "results.jsonl"

    def read(self) -> list[Outcome]:
        """Everything so far, a line that was cut off left out."""
        if not self._path.is_file():
            return []
        lines = self._path.read_text(encoding="utf-8").splitlines()
        return [found for line in lines if (found := _parsed(line)) is not None]

    def add(self, outcome: Outcome) -> None:
        """One more line, on the disk when this returns."""
        held = self._path.read_bytes() if self._path.is_file() else b""
        is_cut_off = bool(held) and not held.endswith(b"\n")
        with self._path.open("a", encoding="utf-8") as file:
            file.write(("\n" if is_cut_off else "") + json.dumps(outcome.to_dict()) + "\n")

    def missing(self, wanted: Iterable[Trial]) -> list[Trial]:
        """Those that are not in the file yet."""
        done = {found.trial for found in self.read()}
        return [trial for trial in wanted if trial not in done]


def summary(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Means over releases: coverage with its standard error by releases, narrowed coverage, width, answers without."""
    groups: dict[tuple[Any, ...], list[Figure]] = defaultdict(list)
    for outcome in outcomes:
        for figure in outcome.figures:
            key = (outcome.trial.table, outcome.trial.epsilon, figure.kind, figure.of, figure.wanted)
            groups[(*key, figure.statement, figure.level)].append(figure)
    names = ("table", "epsilon", "kind", "of", "wanted", "statement", "level")
    return [dict(zip(names, key, strict=True)) | _means(figures) for key, figures in groups.items()]


def to_json(outcomes: Sequence[Outcome]) -> str:
    """The summary as a file that pages are made from, a line a cell."""
    lines = ",\n".join(json.dumps(_rounded(cell)) for cell in summary(outcomes))
    head = {
        "versions": sorted({outcome.version for outcome in outcomes}),
        "held_out": sorted({outcome.trial.table for outcome in outcomes} & set(HELD_OUT)),
        "releases": len(outcomes),
        "seconds": {
            name: round(median(getattr(outcome, f"{name}_seconds") for outcome in outcomes), 4)
            for name in ("fit", "first_answer", "answer")
            if outcomes
        },
    }
    return f'{json.dumps(head)[:-1]}, "cells": [\n{lines}\n]}}\n'


def shown(cells: Sequence[dict[str, Any]], *, level: float = 0.95) -> str:
    """A table for people, of one level."""
    lines = [
        f"{'table':<22}{'eps':>5}  {'kind':<18}{'of':<11}{'statement':<24}{'n':>6}{'held':>7}{'0.7x':>7}{'width':>7}"
    ]
    for cell in cells:
        if cell["level"] != level:
            continue
        said = cell["statement"] + (" (wanted)" if cell["wanted"] == "certified" else "")
        figures = [cell["coverage"], cell["narrow_coverage"], cell["width"]]
        numbers = "".join(f"{'-' if figure is None else f'{figure:.3f}':>7}" for figure in figures)
        lines.append(
            f"{cell['table']:<22}{cell['epsilon']:>5}  {cell['kind']:<18}{cell['of']:<11}{said:<24}"
            f"{cell['n_answers']:>6}{numbers}"
        )
    return "\n".join(lines)


def _means(figures: Sequence[Figure]) -> dict[str, Any]:
    barred = [figure for figure in figures if figure.n_held is not None]
    n_answers = sum(figure.n_answers for figure in figures)
    shares = [(figure.n_held or 0) / figure.n_answers for figure in barred]
    n_barred = sum(figure.n_answers for figure in barred)
    widths = [figure.width for figure in barred if figure.width is not None]
    return {
        "n_releases": len(figures),
        "n_answers": n_answers,
        "coverage": sum(figure.n_held or 0 for figure in barred) / n_barred if barred else None,
        "coverage_error": stdev(shares) / len(shares) ** 0.5 if len(shares) > 1 else None,
        "narrow_coverage": sum(figure.n_held_narrow or 0 for figure in barred) / n_barred if barred else None,
        "width": median(widths) if widths else None,
    }


def _rounded(cell: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in cell.items()}


def _parsed(line: str) -> Outcome | None:
    try:
        held = json.loads(line)
    except json.JSONDecodeError:
        return None
    figures = tuple(Figure(**figure) for figure in held.pop("figures"))
    return Outcome(trial=Trial(**held.pop("trial")), figures=figures, **held)
