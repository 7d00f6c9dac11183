"""Results of a run: one JSON line a release, appended as soon as it is there; means over seeds, and a table of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.people.dependence import Breaches
from benchmarks.people.figures import Figures
from benchmarks.people.households import Households
from benchmarks.people.releases import Measured, Release

SHOWN = (
    *(
        "child_tv1",
        "child_tv2",
        "parent_child",
        "parent_tv1",
        "parent_tv2",
        "parent_count",
        "count",
        "icc",
        "icc_values",
    ),
    *("transition", "auc", "fit_seconds"),
)
MEMBERS = tuple(Households.__dataclass_fields__)


class Results:
    """A folder's file of results."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "results.jsonl"

    def read(self) -> list[Measured]:
        """Everything so far, a line that was cut off left out."""
        if not self._path.is_file():
            return []
        lines = self._path.read_text(encoding="utf-8").splitlines()
        return [found for line in lines if (found := _parsed(line)) is not None]

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


@dataclass(frozen=True, slots=True)
class Cell:
    """All seeds of a release: the means of figures, and how much was broken in all of them."""

    table: str
    method: str
    epsilon: str
    n_runs: int
    means: dict[str, float]
    n_broken: dict[str, int]


def cells(found: Iterable[Measured]) -> list[Cell]:
    """Means over seeds, in the order of their first release."""
    groups: dict[tuple[str, str, str], list[Measured]] = defaultdict(list)
    for one in found:
        groups[one.release.table, _named(one.release), one.release.epsilon].append(one)
    return [Cell(*key, len(those), _means(those), _broken(those)) for key, those in groups.items()]


def shown(cells: Sequence[Cell]) -> str:
    """A table for people; what is broken, and members of households, in lines of their own."""
    names = [name.removesuffix("_seconds").replace("parent", "person").replace("child_", "") for name in SHOWN]
    lines = [f"{'table':<10}{'eps':>4}  {'method':<14}{'n':>3}" + "".join(f"{name:>14}" for name in names)]
    lines += [
        f"{cell.table:<10}{cell.epsilon:>4}  {cell.method:<14}{cell.n_runs:>3}"
        + "".join(f"{_number(cell.means.get(name)):>14}" for name in SHOWN)
        for cell in cells
    ]
    for cell in cells:
        if any(name in cell.means for name in MEMBERS):
            said = ", ".join(f"{name.replace('_', ' ')} {cell.means[name]:.3f}" for name in MEMBERS)
            lines.append(f"{cell.table}, {cell.method}, epsilon {cell.epsilon or '-'}: {said}")
        if any(cell.n_broken.values()):
            said = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in cell.n_broken.items() if n)
            lines.append(f"{cell.table}, {cell.method}, epsilon {cell.epsilon or '-'}: BROKEN: {said}")
    return "\n".join(lines)


def _named(release: Release) -> str:
    return release.method if release.quality == "fast" else f"{release.method} {release.quality}"


def _means(those: Sequence[Measured]) -> dict[str, float]:
    held: dict[str, list[float]] = defaultdict(list)
    for one in those:
        figures = one.figures.to_dict()
        members = figures.pop("members") or {}
        figures.pop("broken")
        times = {"fit_seconds": one.fit_seconds, "draw_seconds": one.draw_seconds}
        for name, value in {**figures, **members, **times}.items():
            if value is not None:
                held[name].append(value)
    return {name: mean(values) for name, values in held.items()}


def _broken(those: Sequence[Measured]) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for one in those:
        for name, number in (one.figures.to_dict()["broken"] or {}).items():
            found[name] += number
    return dict(found)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _parsed(line: str) -> Measured | None:
    try:
        held: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return None
    figures = held.pop("figures")
    broken, members = figures.pop("broken"), figures.pop("members")
    return Measured(
        release=Release(**held.pop("release")),
        figures=Figures(
            **figures,
            broken=None if broken is None else Breaches(**broken),
            members=None if members is None else Households(**members),
        ),
        **held,
    )
