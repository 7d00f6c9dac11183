"""Progress is shown to whoever waits on a terminal or in a notebook, after a while, and to nobody else."""

from __future__ import annotations

import ast
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from spinney import progress as shown
from spinney.cli import tables
from support.kernels import in_kernel
from support.terminals import SOON, behind_pipes, on_terminal

STEPS = SOON + "for step in shown.progress(range(8), 'doing things', unit='thing'): time.sleep(0.05)"
ONE_LONG_STEP = SOON + "with shown.waiting('doing one thing'): time.sleep(0.4)"
FIRST_STEP_IS_LONG = SOON + "for step in shown.progress(range(2), 'doing things', unit='thing'): time.sleep(0.3)"
NESTED = """
with shown.waiting('outer'):
    time.sleep(0.2)
    for _ in shown.progress(range(4), 'inner', unit='thing'): time.sleep(0.1)
    time.sleep(0.2)
"""
# A fit that takes a while.
FIT = """
import numpy as np, spinney as sp
class Slow(sp.KDTreeSynthesizer):
    def _release(self, *given, **more):
        time.sleep(0.3)
        return super()._release(*given, **more)
model = Slow(1).fit(np.random.default_rng(0).random((100, 2)), sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)}))
print("done")
"""
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
    out = on_terminal(SOON + NESTED)
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


def test_a_notebook_is_told_from_a_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not shown.is_notebook()
    for shell, expected in ((None, False), (Shell("TerminalIPythonApp"), False), (Shell("IPKernelApp"), True)):
        monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert shown.is_notebook() is expected
        assert shown.is_watched() is expected


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """What a notebook keeps of three cells that take long; their displays are written down as they are published."""
    return in_kernel(
        SOON
        + "shell, seen = get_ipython(), []\n"
        + "publish = shell.display_pub.publish\n"
        + "shell.display_pub.publish = lambda data, **more: (seen.append((data, more)), publish(data, **more))",
        FIT,
        "print('before')" + NESTED + "'a value'",
        "seen",
        folder=tmp_path_factory.mktemp("kernel"),
    )


def published(saved: list[list[Any]]) -> list[tuple[str, str, bool]]:
    """Every line that was shown below a cell, by the name of its display, and whether it took the place of another."""
    seen = ast.literal_eval(saved[-1][0]["data"]["text/plain"])
    return [
        (data.get("text/plain", ""), more["transient"]["display_id"], more["update"])
        for data, more in seen
        if "display_id" in (more.get("transient") or {})
    ]


def test_a_notebook_shows_a_fit_that_takes_long(saved: list[list[Any]]) -> None:
    """Standard error of a kernel is no terminal; lines appear below the cell all the same, in place of each other."""
    lines = published(saved)
    assert any("fitting the table (00:00)" in line for line, _, _ in lines)
    assert any("inner:" in line and "/4" in line for line, _, _ in lines)
    assert [update for _, _, update in lines].count(False) == len({name for _, name, _ in lines}) == 2, "one for a cell"


def test_a_saved_notebook_keeps_nothing_of_bars(saved: list[list[Any]]) -> None:
    """Neither text nor a widget: an empty display, and what the cell itself says."""
    assert [[output["output_type"] for output in outputs] for outputs in saved[1:3]] == [
        ["display_data", "stream"],
        ["stream", "display_data", "execute_result"],
    ]
    assert saved[1][0]["data"] == saved[2][1]["data"] == {}
    assert saved[1][1] == {"output_type": "stream", "name": "stdout", "text": "done\n"}
    last = {name: line for line, name, _ in published(saved)}
    assert set(last.values()) == {""}


@pytest.mark.parametrize("stderr", [None, types.SimpleNamespace(isatty=lambda: False)])
def test_a_process_without_standard_error_is_not_watched(monkeypatch: pytest.MonkeyPatch, stderr: object) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setattr(sys, "stderr", stderr)
    assert not shown.is_watched()
    assert list(shown.progress([1, 2], "x", unit="thing")) == [1, 2]
    with shown.progress_bar(2, "x", unit="thing") as bar:
        bar.update()
