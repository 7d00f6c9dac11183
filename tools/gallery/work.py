"""What the stories share: a folder to work in, commands that are run and kept as transcripts, pictures in one style."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "gallery"
PICTURES = ROOT / "docs" / "gallery" / "pictures"
LARGEST_PICTURE = 150_000  # bytes
REAL, OURS, OTHER = "#7d7d78", "#1f6f4a", "#c9a227"
_STYLE = {
    "axes.edgecolor": "#55554f",
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "sans-serif",
    "font.size": 9,
    "grid.color": "#e4e2dc",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "spinney",
}


@dataclass(frozen=True, slots=True)
class Work:
    """A story at work.

    Args:
        data: the folder of the public tables.
        folder: an empty folder, in which commands run.
    """

    data: Path
    folder: Path
    transcripts: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, name: str, command: str, *, lines: int | None = None) -> str:
        """Run `spinney ...` in the folder and keep what was typed and printed, up to so many lines."""
        arguments = shlex.split(command)
        arguments[0] = str(Path(sys.executable).parent / arguments[0])
        before = time.perf_counter()
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}
        done = subprocess.run(arguments, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        self.seconds[name] = round(time.perf_counter() - before, 1)
        if done.returncode:
            raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")
        printed = [re.sub(r" \(spinney [^)]*\)", "", line).rstrip() for line in done.stdout.splitlines()]
        if lines is not None and len(printed) > lines:
            printed = [*printed[:lines], "..."]
        self.transcripts[name] = "\n".join([f"$ {command}", *printed])
        return done.stdout


def new_figure(width: float, height: float, **subplots: Any) -> tuple[Figure, Any]:
    """A figure in the gallery's style, and its axes."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots(**subplots)


def save(figure: Figure, name: str) -> str:
    """Write a picture for the pages, and give its name; one that is too large is an error."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = PICTURES / name
    with mpl.rc_context(_STYLE):
        figure.savefig(path, metadata={"Date": None}, dpi=110)
    if path.stat().st_size > LARGEST_PICTURE:
        raise SystemExit(f"{name} has {path.stat().st_size:,} bytes, more than {LARGEST_PICTURE:,}")
    return name


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; all columns but the first are set right."""
    lines = ["|" + "|".join(f" {head} " for head in heads) + "|", "|---|" + "---:|" * (len(heads) - 1)]
    lines += ["|" + "|".join(f" {value} " for value in row) + "|" for row in rows]
    return "\n".join(lines) + "\n"


def console(transcript: str) -> str:
    """A transcript as a block of a page."""
    return f"```console\n{transcript}\n```\n"
