"""What a count, a fit, a draw, a question, a verification and a report visit: how many of our files, and how deep.

python tools/walk.py    print the traces of docs/decisions/rooms.md
"""

from __future__ import annotations

import io
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import spinney as sp
from spinney.cli.app import app
from spinney.grid.lattice import tree_lattice
from spinney.tables.engines.memory import count_cells
from spinney.tables.frames import open_table

ROOT = Path(sp.__file__).parent
N_ROWS = 2000


def walk(work: Callable[[], Any]) -> tuple[list[str], int]:
    """The files of the functions that are called, in order, in all threads, and the depth of the deepest stack."""
    visited: list[str] = []
    deepest = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            visited.append(str(path.relative_to(ROOT)))
            deepest = max(deepest, _depth(frame))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return visited, deepest


def _depth(frame: FrameType) -> int:
    """How many functions of ours are in progress, comprehensions and generators left out."""
    depth, here = 0, frame
    while here is not None:
        code = here.f_code
        depth += not code.co_name.startswith("<") and Path(code.co_filename).is_relative_to(ROOT)
        here = here.f_back  # type: ignore[assignment]
    return depth


def trace(what: str, work: Callable[[], Any], rooms: tuple[str, ...] = ()) -> None:
    """Print how many files a piece of work visits."""
    work()  # what is imported and compiled on first use is no part of the walk
    visited, deepest = walk(work)
    line = f"{what}: {len(set(visited))} files, {deepest} functions deep"
    if rooms:
        among = [room for room in (path.partition("/")[0] for path in visited) if room in rooms]
        steps = sum(here != there for here, there in pairwise(among))
        line += f", {steps} steps between {' and '.join(rooms)}"
    sys.stdout.write(f"{line}\n")


def main() -> None:
    """Trace a count, and what is done with small tables and their releases."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.random(N_ROWS), "y": rng.random(N_ROWS)})
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    table, lattice = open_table(frame, schema), tree_lattice(schema)
    trace("one count", lambda: count_cells(table, lattice), ("tables", "counting"))
    mixed = frame.assign(c=rng.choice(["a", "b"], N_ROWS), d=pd.Timestamp("2020-01-01"))
    kinds = dict(schema) | {"c": sp.Category(["a", "b"]), "d": sp.Date("2019-01-01", "2021-01-01")}
    models: dict[str, tuple[Any, Any, Any]] = {
        "tree": (sp.KDTreeSynthesizer(1), frame, schema),
        "forest": (sp.ForestSynthesizer(1), mixed, sp.Schema(kinds)),
    }
    for name, (model, rows, known) in models.items():
        trace(f"fit of a {name}", lambda model=model, rows=rows, known=known: model.fit(rows, known))  # type: ignore[misc]
        trace(f"sample of a {name}", lambda model=model: model.sample(100))  # type: ignore[misc]
        release = model.release_
        where = {"x": (0.2, 0.6)}
        trace(f"ask of a {name}", lambda release=release, where=where: release.mean("y", where=where))  # type: ignore[misc]
        with tempfile.TemporaryDirectory() as folder:
            file, page = Path(folder, "release.spinney"), Path(folder, "report.html")
            release.save(file)
            trace(f"verify of a {name}", lambda file=file: _call("verify", str(file)))  # type: ignore[misc]
            trace(  # type: ignore[misc]
                f"report of a {name}",
                lambda file=file, page=page: _call("report", str(file), "--out", str(page), "--force"),
            )


def _call(*words: str) -> None:
    """A command, as the command line runs it, without what it prints."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), suppress(SystemExit):
        app.main(args=list(words), standalone_mode=False)


if __name__ == "__main__":
    main()
