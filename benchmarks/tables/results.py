"""The results of a run: one JSON line a release, appended as soon as it is measured, and their means.

A run that was interrupted goes on where it stopped: what the file holds is not measured again. A line that was cut off
by the interruption is left out. Means over repetitions are what pages and targets are made of.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from benchmarks.tables.figures import Figures
from benchmarks.tables.releases import Measured, Release

SECONDS = ("fit_seconds", "draw_seconds", "cpu_seconds")


class Results:
    """A folder's file of results."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "results.jsonl"

    def read(self) -> list[Measured]:
        """Everything measured so far, in the order in which it was."""
        if not self._path.is_file():
            return []
        return [found for line in self._path.read_text(encoding="utf-8").splitlines() if (found := _parsed(line))]

    def add(self, measured: Measured) -> None:
        """One more line, on the disk when this returns."""
        held = self._path.read_bytes() if self._path.is_file() else b""
        is_cut_off = bool(held) and not held.endswith(b"\n")
        with self._path.open("a", encoding="utf-8") as file:
            file.write(("\n" if is_cut_off else "") + json.dumps(measured.to_dict()) + "\n")

    def missing(self, wanted: Iterable[Release]) -> list[Release]:
        """Those that are not in the file yet."""
        done = {found.release for found in self.read()}
        return [release for release in wanted if release not in done]


def _parsed(line: str) -> Measured | None:
    try:
        held = json.loads(line)
    except json.JSONDecodeError:
        return None
    figures = held.pop("figures")
    return Measured(
        release=Release(**held.pop("release")), figures=None if figures is None else Figures(**figures), **held
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """All repetitions of a release: of every figure the mean and the standard deviation, which one alone has not."""

    table: str
    system: str
    epsilon: str
    has_target: bool
    unit: str
    is_told_rows: bool
    n_runs: int
    figures: dict[str, tuple[float, float | None]]  # seconds included
    note: str = ""

    def mean(self, figure: str) -> float | None:
        """The mean of a figure, where there is one."""
        return self.figures[figure][0] if figure in self.figures else None


def cells(found: Iterable[Measured]) -> list[Cell]:
    """The cells of all that was measured, in the order of their first release."""
    groups: dict[tuple[Any, ...], list[Measured]] = defaultdict(list)
    for one in found:
        release = one.release
        key = (release.table, release.system, release.epsilon, release.has_target, release.unit, release.is_told_rows)
        groups[key].append(one)
    return [Cell(*key, *_summary(those)) for key, those in groups.items()]


def _summary(those: Sequence[Measured]) -> tuple[int, dict[str, tuple[float, float | None]], str]:
    values: dict[str, list[float]] = defaultdict(list)
    for one in those:
        held = {name: getattr(one, name) for name in SECONDS} | (asdict(one.figures) if one.figures else {})
        for name, value in held.items():
            if value is not None:
                values[name].append(value)
    figures = {name: (mean(held), stdev(held) if len(held) > 1 else None) for name, held in values.items()}
    notes = dict.fromkeys(one.note for one in those if one.note)
    return len(those), figures, "; ".join(notes)


def to_json(found: Sequence[Measured], **more: Any) -> str:
    """Versions, whatever else is given, and cells, one cell a line, to five digits."""
    held = {"versions": sorted({one.version for one in found}), **more}
    heads = "".join(f"{json.dumps(name)}: {json.dumps(value)},\n" for name, value in held.items())
    lines = ",\n".join(json.dumps(_rounded(cell)) for cell in cells(found))
    return f'{{{heads}"cells": [\n{lines}\n]}}\n'


def _rounded(cell: Cell) -> dict[str, Any]:
    figures = {
        name: [None if value is None else float(f"{value:.5g}") for value in pair]
        for name, pair in cell.figures.items()
    }
    return asdict(cell) | {"figures": figures}


def from_json(text: str) -> tuple[list[str], list[Cell]]:
    """Versions and cells, as `to_json` wrote them."""
    held = json.loads(text)
    return held["versions"], [
        Cell(**(one | {"figures": {name: tuple(pair) for name, pair in one["figures"].items()}}))
        for one in held["cells"]
    ]
