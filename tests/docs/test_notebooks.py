"""The notebooks run, and are what their sources say."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NAMES = ("first-release", "mixed-table")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "tools" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look their annotations up
    spec.loader.exec_module(module)
    return module


def test_all_sources_are_known(tool: ModuleType) -> None:
    assert tuple(source.stem for source in tool.sources()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_run_and_agree_with_their_sources(tool: ModuleType, name: str) -> None:
    """No cell fails or warns, and the committed notebook has the same cells and was run."""
    source = FOLDER / f"{name}.py"
    assert tool.faults(source) == []
    done = tool.run(tool.notebook_of(source))
    assert tool.complaints(done) == []
    saved = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    kinds = [[_kinds(cell) for cell in notebook.cells] for notebook in (done, saved)]
    assert kinds[0] == kinds[1], "the same cells show pictures, tables and text"


def _kinds(cell: nbformat.NotebookNode) -> list[str]:
    """What a cell shows; an empty display, which a bar leaves, is nothing."""
    outputs = [one for one in cell.get("outputs", []) if one.get("data", True)]
    return [" ".join(sorted(one.get("data", {one.get("name"): 0}))) for one in outputs]


def test_other_cells_are_noticed(tool: ModuleType, tmp_path: Path) -> None:
    """A changed, moved or lost cell, a notebook that was not run or failed, and one that is missing."""
    source = tmp_path / "first-release.py"
    shutil.copy(FOLDER / source.name, source)
    assert tool.faults(source) == ["first-release.ipynb is missing"]
    path = source.with_suffix(".ipynb")
    shutil.copy(FOLDER / path.name, path)
    assert tool.faults(source) == []

    text = source.read_text()
    for changed in (text.replace("seed=7", "seed=8"), text.replace("Draw rows", "Rows"), text + "\n# %%\n1\n"):
        assert changed != text
        source.write_text(changed)
        assert tool.faults(source) == ["the cells of first-release.ipynb are not those of first-release.py"]
    source.write_text(text)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[-1].outputs = [nbformat.v4.new_output("error", ename="ValueError", evalue="", traceback=[])]
    nbformat.write(notebook, path)
    assert tool.faults(source) == ["a cell of first-release.ipynb failed"]
    nbformat.write(tool.notebook_of(source), path)
    assert tool.faults(source) == ["first-release.ipynb was not run"]


def test_a_cell_that_fails_or_warns_is_noticed(tool: ModuleType) -> None:
    codes = ("import warnings; warnings.warn('old', UserWarning)", "1 / 0")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in codes])
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        tool.run(notebook)
    (complaint,) = tool.complaints(notebook)
    assert "UserWarning: old" in complaint


def test_marks_and_comments(tool: ModuleType) -> None:
    """Text before the first mark is not a cell; a wrong mark, or code in a cell of text, is refused."""
    cells = tool.cells_of('"""Why."""\n\n# %% [markdown]\n# # Title\n#\n# text\n\n# %%\na = 1\n\na\n')
    assert cells == [tool.Cell("markdown", "# Title\n\ntext"), tool.Cell("code", "a = 1\n\na")]
    with pytest.raises(ValueError, match="begins no cell"):
        tool.cells_of("# %% [text]\n# a\n")
    with pytest.raises(ValueError, match="no comments"):
        tool.cells_of("# %% [markdown]\na = 1\n")
