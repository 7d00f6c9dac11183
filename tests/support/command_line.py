"""Runs the `spinney` command in this process, and checks what must hold of every run.

Tables made here hold a marker value and a marker text. No run may show them, whatever else it does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from spinney.cli.app import app

MARKERS = ("987654.321", "987654", "SECRET")
MARKER_ROW = "987654.321,30,red"

SCHEMA = """
[columns.x]
type = "real"
low = 0.0
high = 1.0

[columns.age]
type = "integer"
low = 0
high = 120

[columns.colour]
type = "category"
values = ["red", "green", "blue"]
"""


@dataclass(frozen=True)
class Run:
    """How a command ended and what it printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def spinney(*arguments: Any, stdin: str | bytes | None = None, markers: tuple[str, ...] = MARKERS) -> Run:
    """Run a command line. Fails on a traceback, on a marker in any output and on a missing message."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    run = Run(result.exit_code, result.stdout, result.stderr)
    shown = run.out + run.err
    assert "Traceback" not in shown
    assert not [marker for marker in markers if marker in shown], shown
    if run.status:
        assert run.err.strip(), "a failure without a message"
    return run


def people(n_rows: int = 500) -> str:
    """A CSV of people that fits SCHEMA, the marker row included."""
    rng = np.random.default_rng(5)
    rows = [f"{rng.beta(2, 5):.5f},{rng.integers(0, 90)},{rng.choice(['red', 'green'])}" for _ in range(n_rows - 1)]
    return "\n".join(["x,age,colour", MARKER_ROW, *rows]) + "\n"


def write_people(folder: Path, *, table: str | None = None, schema: str = SCHEMA) -> tuple[Path, Path]:
    """A table and its schema as files."""
    table_path, schema_path = folder / "people.csv", folder / "schema.toml"
    table_path.write_text(people() if table is None else table, encoding="utf-8")
    schema_path.write_text(schema, encoding="utf-8")
    return table_path, schema_path


def files_in(folder: Path) -> set[str]:
    """Names of everything in a folder, hidden files included."""
    return {path.name for path in folder.iterdir()}
