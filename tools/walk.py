"""What a count, a fit and a draw visit: how many of our files, and how often the walk steps from room to room.

python tools/walk.py    print the traces of docs/decisions/0026-the-second-house.md
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import spinney as sp
from spinney.schema.lattice import tree_lattice
from spinney.tables.engines.memory import count_cells
from spinney.tables.frames import open_table

ROOT = Path(sp.__file__).parent
N_ROWS = 2000


def walk(work: Callable[[], Any]) -> list[str]:
    """The files of the functions that are called, one after the other, in all threads."""
    visited: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            visited.append(str(path.relative_to(ROOT)))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return visited


def told(what: str, work: Callable[[], Any], rooms: tuple[str, ...] = ()) -> None:
    """Print how many files a piece of work visits."""
    work()  # what is imported and compiled on first use is no part of the walk
    visited = walk(work)
    line = f"{what}: {len(set(visited))} files"
    if rooms:
        among = [room for room in (path.partition("/")[0] for path in visited) if room in rooms]
        steps = sum(here != there for here, there in pairwise(among))
        line += f", {steps} steps between {' and '.join(rooms)}"
    sys.stdout.write(f"{line}\n")


def main() -> None:
    """Trace a count, fits and draws of small tables."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(N_ROWS), "y": rng.random(N_ROWS)})
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    table, lattice = open_table(frame, schema), tree_lattice(schema)
    told("one count", lambda: count_cells(table, lattice), ("tables", "counting"))
    mixed = frame.assign(c=rng.choice(["a", "b"], N_ROWS), d=pd.Timestamp("2020-01-01"))
    kinds = dict(schema) | {"c": sp.Category(["a", "b"]), "d": sp.Date("2019-01-01", "2021-01-01")}
    models: dict[str, tuple[Any, Any, Any]] = {
        "tree": (sp.KDTreeSynthesizer(1), frame, schema),
        "forest": (sp.ForestSynthesizer(1), mixed, sp.Schema(kinds)),
    }
    for name, (model, rows, known) in models.items():
        told(f"fit of a {name}", lambda model=model, rows=rows, known=known: model.fit(rows, known))  # type: ignore[misc]
        told(f"sample of a {name}", lambda model=model: model.sample(100))  # type: ignore[misc]


if __name__ == "__main__":
    main()
