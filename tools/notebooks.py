"""Makes the notebooks under `docs/notebooks/` from the Python files beside them.

python tools/notebooks.py                run every source in a kernel and write its notebook, outputs included
python tools/notebooks.py NAME ...       some of them, such as first-release
python tools/notebooks.py --check        exit 1 if the cells of a notebook are not those of its source

A source is Python that any editor reads: `# %%` begins a cell of code, and `# %% [markdown]` a cell of text, the lines
of which are comments. Each notebook runs in an empty folder. Noise comes from the operating system, so outputs differ
from run to run; nothing compares them. Needs nbclient and ipykernel.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "notebooks"
LARGEST = 400_000  # bytes of a notebook
SECONDS = 120  # that a cell may take
_MARK, _TEXT = "# %%", "# %% [markdown]"
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook, without its outputs."""

    kind: str  # "code" or "markdown"
    text: str


def sources(folder: Path = FOLDER) -> list[Path]:
    """The sources in a folder, in the order of their names."""
    return sorted(folder.glob("*.py"))


def cells_of(source: str) -> list[Cell]:
    """The cells of a source, in their order; what stands before the first mark is the source's own docstring."""
    cells: list[tuple[str, list[str]]] = []
    for line in source.splitlines():
        if line.startswith(_MARK):
            if line not in (_MARK, _TEXT):
                raise ValueError(f"{line!r} begins no cell; write {_MARK!r} or {_TEXT!r}")
            cells.append(("markdown" if line == _TEXT else "code", []))
        elif cells:
            cells[-1][1].append(line)
    return [Cell(kind, _text_of(lines) if kind == "markdown" else "\n".join(lines).strip()) for kind, lines in cells]


def _text_of(lines: list[str]) -> str:
    """Comments as Markdown."""
    if any(line and line != "#" and not line.startswith("# ") for line in lines):
        raise ValueError(f"a cell of text has lines that are no comments: {lines}")
    return "\n".join(line[2:] for line in lines).strip()


def notebook_of(source: Path) -> nbformat.NotebookNode:
    """The notebook of a source, not yet run."""
    cells = []
    for number, cell in enumerate(cells_of(source.read_text(encoding="utf-8"))):
        make = nbformat.v4.new_markdown_cell if cell.kind == "markdown" else nbformat.v4.new_code_cell
        cells.append(make(cell.text, id=f"cell-{number}"))
    return nbformat.v4.new_notebook(cells=cells, metadata=_METADATA)


def run(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook with the outputs of its cells, run in a new kernel and an empty folder, with the sources at hand.

    Raises:
        CellExecutionError: a cell failed.
    """
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "SPINNEY_LEDGER")}
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    os.environ.pop("SPINNEY_LEDGER", None)
    try:
        with TemporaryDirectory() as folder:
            resources = {"metadata": {"path": folder}}
            NotebookClient(notebook, timeout=SECONDS, record_timing=False, resources=resources).execute()
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})
    for cell in notebook.cells:
        cell.metadata.clear()
    notebook.metadata = nbformat.from_dict(_METADATA)
    return notebook


def complaints(notebook: nbformat.NotebookNode) -> list[str]:
    """What the cells of a notebook wrote to standard error, such as warnings."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.text for output in outputs if output.get("name") == "stderr"]


def faults(source: Path) -> list[str]:
    """What is wrong with the committed notebook of a source: other cells, none that ran, an error, or its size."""
    path = source.with_suffix(".ipynb")
    if not path.exists():
        return [f"{path.name} is missing"]
    notebook: Any = nbformat.read(path, as_version=4)
    found = []
    if [Cell(cell.cell_type, cell.source) for cell in notebook.cells] != cells_of(source.read_text(encoding="utf-8")):
        found.append(f"the cells of {path.name} are not those of {source.name}")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if not all(cell.execution_count for cell in code) or not any(cell.outputs for cell in code):
        found.append(f"{path.name} was not run")
    if any(output.output_type == "error" for cell in code for output in cell.outputs):
        found.append(f"a cell of {path.name} failed")
    found += [f"a cell of {path.name} complains: {text}" for text in complaints(notebook)]
    if path.stat().st_size > LARGEST:
        found.append(f"{path.name} has {path.stat().st_size:,} bytes, more than {LARGEST:,}")
    return found


def main() -> None:
    """Make the notebooks, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a notebook; by default all of them")
    parser.add_argument("--check", action="store_true", help="only say whether notebooks and sources agree")
    given = parser.parse_args()
    known = {source.stem: source for source in sources()}
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"there is no {unknown[0]!r}; the notebooks are {', '.join(known)}")
    chosen = [known[name] for name in given.names or known]
    if not given.check:
        for source in chosen:
            notebook = run(notebook_of(source))
            nbformat.write(notebook, source.with_suffix(".ipynb"))
            print(f"wrote {source.with_suffix('.ipynb').relative_to(ROOT)}")  # noqa: T201
    wrong = [fault for source in chosen for fault in faults(source)]
    if wrong:
        sys.exit("\n".join([*wrong, "run `python tools/notebooks.py`"]))


if __name__ == "__main__":
    main()
