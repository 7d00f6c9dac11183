"""Progress is shown to whoever waits on a terminal or in a notebook, after a while, and to nobody else."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from spinney import progress as shown
from spinney.cli import tables
from support.terminals import SOON, behind_pipes, on_terminal

STEPS = SOON + "for step in shown.progress(range(8), 'doing things', unit='thing'): time.sleep(0.05)"
ONE_LONG_STEP = SOON + "with shown.waiting('doing one thing'): time.sleep(0.4)"
FIRST_STEP_IS_LONG = SOON + "for step in shown.progress(range(2), 'doing things', unit='thing'): time.sleep(0.3)"
TYPES = pa.schema([("a", pa.int64()), ("b", pa.string())])
HIGH = (
    SOON
    + """
import numpy as np, spinney as sp
rng = np.random.default_rng(0)
common = rng.normal(size=(3_000, 1))
table = common + rng.normal(size=(3_000, 6))
schema = sp.Schema({f"c{i}": sp.Real(-9, 9) for i in range(6)})
model = sp.ForestSynthesizer(10, quality="high").fit(table, schema)
model.sample(200_000)
"""
)


def test_steps_are_counted_on_a_terminal() -> None:
    out = on_terminal(STEPS)
    assert "doing things" in out
    assert "/8" in out


def test_one_long_step_is_told_with_a_clock() -> None:
    assert "doing one thing (00:00)" in on_terminal(ONE_LONG_STEP)


def test_a_bar_appears_before_its_first_step_is_done() -> None:
    """A round may take half a minute; nobody should wait for it in front of nothing."""
    assert "0/2" in on_terminal(FIRST_STEP_IS_LONG)


def test_a_terminal_without_a_size_is_drawn_on() -> None:
    """Containers and some editors hand out terminals of no lines and no columns."""
    assert "doing things" in on_terminal(STEPS, size=(0, 0))
    assert "doing one thing" in on_terminal(ONE_LONG_STEP, size=(0, 0))


def test_nothing_is_left_on_the_terminal() -> None:
    out = on_terminal(STEPS)
    assert out.endswith("\r")
    assert out.rstrip("\r").endswith(" " * 20)
    assert "\n" not in out


def test_what_is_quick_shows_nothing() -> None:
    quick = "import spinney.progress as shown\nfor step in shown.progress(range(8), 'x', unit='thing'): pass\n"
    assert on_terminal(quick + "with shown.waiting('y'): pass") == ""


def test_one_line_at_a_time() -> None:
    """What was begun last is shown; when it ends, the other is shown again, and the cursor never leaves the line."""
    nested = SOON + (
        "with shown.waiting('outer'):\n"
        "    time.sleep(0.2)\n"
        "    for _ in shown.progress(range(4), 'inner', unit='thing'): time.sleep(0.1)\n"
        "    time.sleep(0.2)\n"
    )
    out = on_terminal(nested)
    first, inner, last = out.index("outer"), out.index("inner"), out.rindex("outer")
    assert first < inner < last
    assert "outer" not in out[inner : out.rindex("inner")]
    assert "\x1b" not in out
    assert "\n" not in out


@pytest.mark.parametrize("code", [STEPS, ONE_LONG_STEP])
def test_nothing_is_printed_behind_pipes(code: str) -> None:
    """No bar is made, and tqdm is not even imported."""
    assert behind_pipes(code + "\nimport sys; print('tqdm' in sys.modules)") == ("False\n", "")


@pytest.mark.long
def test_rounds_of_high_quality_and_large_samples_are_shown() -> None:
    out = on_terminal(HIGH)
    assert "fitting the table (" in out
    assert "growing the forest" in out
    assert "round/s" in out
    assert "drawing rows (" in out
    assert behind_pipes(HIGH) == ("", "")


def test_writing_is_shown(tmp_path: Path) -> None:
    code = SOON + (
        "import pyarrow as pa\n"
        "from spinney.cli import tables\n"
        "class Slow(tables.pacsv.CSVWriter):\n"
        "    def write_table(self, table): time.sleep(0.05); super().write_table(table)\n"
        "tables.pacsv.CSVWriter, tables._AT_ONCE = Slow, 10\n"
        f"tables.write_table(pa.table({{'x': range(80)}}), {str(tmp_path / 'x.csv')!r}, overwrite=False)\n"
    )
    out = on_terminal(code)
    assert "writing rows" in out
    assert "/8" in out


@pytest.mark.parametrize("n_rows", [0, 3, 2500])
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_tables_written_in_parts_are_those_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_rows: int, name: str
) -> None:
    monkeypatch.setattr(tables, "_AT_ONCE", 1000)
    table = pa.table({"a": np.arange(n_rows), "b": [f"x,{i}" for i in range(n_rows)]}, schema=TYPES)
    tables.write_table(table, str(tmp_path / name), overwrite=False)
    read = pq.read_table if name.endswith("parquet") else pacsv.read_csv
    assert read(tmp_path / name).cast(TYPES) == table


def test_rows_that_are_counted_are_shown(tmp_path: Path) -> None:
    """The first pass over a CSV, which counts its rows, says so."""
    path = tmp_path / "t.csv"
    path.write_text("x\n" + "0.5\n" * 10)
    code = SOON + (
        "import spinney as sp\n"
        "from spinney.tables.engines import files\n"
        "count = files.count_csv\n"
        "files.count_csv = lambda *a, **k: (time.sleep(0.3), count(*a, **k))[1]\n"
        f"sp.check({str(path)!r}, sp.Schema({{'x': sp.Real(0, 1)}}))\n"
    )
    assert "counting rows (" in on_terminal(code)


# ------------------------------------------------------------------------------------------------------ notebooks


class Shell:
    """What IPython says it is."""

    def __init__(self, *names: str) -> None:
        self.config = dict.fromkeys(names)


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = types.SimpleNamespace(get_ipython=lambda: Shell("IPKernelApp"))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setattr(shown, "DELAY", 0.02)
    monkeypatch.setattr(shown, "_EVERY", 0.02)


def test_a_notebook_is_told_from_a_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not shown.is_notebook()
    for shell, expected in ((None, False), (Shell("TerminalIPythonApp"), False), (Shell("IPKernelApp"), True)):
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert shown.is_notebook() is expected
        assert shown.is_watched() is expected


@pytest.mark.usefixtures("notebook")
def test_a_notebook_without_widgets_shows_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard error of a kernel is no terminal; text appears below the cell all the same."""
    monkeypatch.setattr(shown, "find_spec", lambda _: None)
    import time

    with shown.waiting("doing one thing"):
        time.sleep(0.2)
    assert "doing one thing (00:00)" in capsys.readouterr().err


@pytest.mark.usefixtures("notebook")
def test_a_notebook_with_widgets_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    widget = types.ModuleType("tqdm.notebook")
    widget.tqdm = object()
    monkeypatch.setattr(shown, "find_spec", lambda _: object())
    monkeypatch.setitem(sys.modules, "tqdm.notebook", widget)
    assert shown._tqdm() is widget.tqdm


def test_a_terminal_never_looks_for_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setattr(shown, "find_spec", lambda _: pytest.fail("widgets were looked for outside a notebook"))
    from tqdm import tqdm

    assert shown._tqdm() is tqdm


@pytest.mark.parametrize("stderr", [None, types.SimpleNamespace(isatty=lambda: False)])
def test_a_process_without_standard_error_is_not_watched(monkeypatch: pytest.MonkeyPatch, stderr: object) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setattr(sys, "stderr", stderr)
    assert not shown.is_watched()
    assert list(shown.progress([1, 2], "x", unit="thing")) == [1, 2]
    with shown.progress_bar(2, "x", unit="thing") as bar:
        bar.update()
