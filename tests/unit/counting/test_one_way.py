"""One count is one walk in one direction: tables hand values to counting, and counting never calls back."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.counting.states import Cut
from spinney.grid.lattice import tree_lattice
from spinney.tables.open import open_source
from support.query_engines import DuckDBQueries

ROOT = Path(sp.__file__).parent
SCHEMA = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1), "k": sp.Integer(0, 9)})
N = 60_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(2)
    return pa.table({"x": rng.random(N), "y": rng.random(N), "k": rng.integers(0, 10, N)})


def steps(call: Callable[[], object]) -> set[tuple[str, str]]:
    """From which room of the house to which other one calls go, in all threads."""
    found: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        room = _room(frame.f_code.co_filename) if event == "call" else None
        if room is None:
            return
        caller = frame.f_back
        while caller is not None and _room(caller.f_code.co_filename) is None:
            caller = caller.f_back
        before = None if caller is None else _room(caller.f_code.co_filename)
        if before not in (None, room):
            found.add((before, room))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


@cache
def _room(file: str) -> str | None:
    return Path(file).relative_to(ROOT).parts[0] if Path(file).is_relative_to(ROOT) else None


@pytest.mark.parametrize("how", ["memory", "parquet", "csv", "spilled", "queries"])
def test_counting_never_calls_tables(table, tmp_path, how):
    """Cells and states: of a table in memory, of files, beyond the limit of memory, and by an engine's queries."""
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=N // 3)
    csv = tmp_path / "t.csv"
    table.to_pandas().to_csv(csv, index=False)
    sources = {
        "memory": lambda: open_source(table, SCHEMA),
        "parquet": lambda: open_source(tmp_path / "t.parquet", SCHEMA),
        "csv": lambda: open_source(csv, SCHEMA),
        "spilled": lambda: open_source(tmp_path / "t.parquet", SCHEMA, memory_limit=1 << 20),
        "queries": lambda: DuckDBQueries(table, SCHEMA),
    }
    lattice = tree_lattice(SCHEMA)
    cut = Cut(lattice.axes[2], np.arange(10), np.arange(10))

    def walk() -> None:
        source = sources[how]()
        assert source.count_cells(lattice).true_total() == N
        source.state_rows([cut])

    walk()  # whatever is compiled or imported is no step of the walk
    found = steps(walk)
    assert ("tables", "counting") in found
    assert ("counting", "tables") not in found
    assert not [step for step in found if step[0] in ("schema", "columns") and step[1] in ("tables", "counting")]
