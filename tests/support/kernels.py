"""Runs cells in the kernel of a notebook, and hands back the notebook as it would be saved."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import nbformat
from nbclient import NotebookClient

SOURCES = Path(__file__).parents[2] / "src"


def in_kernel(*cells: str, folder: Path) -> list[list[nbformat.NotebookNode]]:
    """The outputs that a notebook keeps of each cell, run one after the other in a new kernel."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    with patch.dict(os.environ, PYTHONPATH=str(SOURCES)):
        NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell.outputs for cell in notebook.cells]
