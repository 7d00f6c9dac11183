"""Compilation: told to whoever waits, done once, kept where there is a place, and done ahead by `spinney warm-up`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from spinney import compiled
from spinney import warm_up as warming
from spinney.errors import FileError
from support.command_line import spinney
from support.terminals import SOON, SOURCES, behind_pipes, on_terminal

# The smallest loops there are, and what was compiled of Spinney.
ONE_LOOP = """
import numpy as np
from spinney.graph.estimate import dot
from spinney.compiled import COMPILATIONS
dot(np.ones(3), np.ones(3))
"""
COUNTED = ONE_LOOP + "print(COMPILATIONS.n_done)"


def test_compilation_is_told_on_a_terminal_and_done_once(tmp_path: Path) -> None:
    first = on_terminal(SOON + ONE_LOOP, NUMBA_CACHE_DIR=str(tmp_path))
    assert "compiling once, loop 1; later runs start at once (00:0" in first
    assert on_terminal(SOON + ONE_LOOP, NUMBA_CACHE_DIR=str(tmp_path)) == ""


def test_compilation_is_silent_behind_pipes(tmp_path: Path) -> None:
    assert behind_pipes(SOON + COUNTED, NUMBA_CACHE_DIR=str(tmp_path)) == ("1\n", "")
    assert behind_pipes(SOON + COUNTED, NUMBA_CACHE_DIR=str(tmp_path)) == ("0\n", "")


def test_many_short_compilations_are_long_together(tmp_path: Path) -> None:
    """No loop takes two seconds by itself; the clock goes on from one to the next."""
    code = (
        """
import spinney.compiled as compiled
compiled.COMPILATIONS.seconds = 65.0
from spinney.compiled import compiled as loop
import spinney.progress as shown
shown._EVERY = 0.02
"""
        + ONE_LOOP
    )
    assert "compiling once, loop 1; later runs start at once (01:0" in on_terminal(code, NUMBA_CACHE_DIR=str(tmp_path))


def test_where_nothing_is_kept_the_remedy_is_told() -> None:
    """ "Later runs start at once" would be untrue there."""
    code = SOON + (
        "import numba.core.caching as caching\n"
        "class NoPlace:\n"
        "    def __init__(self, *_): raise RuntimeError('no locator available')\n"
        "caching.FunctionCache._impl_class = NoPlace\n"
    )
    out = on_terminal(code + ONE_LOOP)
    assert "compiling, loop 1; set NUMBA_CACHE_DIR" in out
    assert "later runs" not in out


def test_loops_of_others_are_not_counted() -> None:
    before = compiled.COMPILATIONS.n_done

    @numba.njit
    def theirs(x):
        return x + 1

    assert theirs(1) == 2
    assert compiled.COMPILATIONS.n_done == before


# ------------------------------------------------------------------------------------------------------- warm-up

FITS = """
import sys
import numpy as np, pandas as pd, spinney as sp
from numba.core import event
from spinney.compiled import COMPILATIONS

compiled = []
class Listener(event.Listener):
    def on_start(self, happening): compiled.append(happening.data["dispatcher"].py_func.__qualname__)
    def on_end(self, happening): pass
event.register("numba:compile", Listener())

rng = np.random.default_rng(0)
points = rng.normal(size=(30_000, 2))
square = sp.Schema({"x": sp.Real(-9, 9), "y": sp.Real(-9, 9)})
sp.KDTreeSynthesizer(1).fit(points, square).sample(100_000)
sp.KDTreeSynthesizer("1/3", unit="add-remove", moments=False).fit(points, square).sample()
sp.GridSynthesizer(1).fit(points, square).sample()
frame = pd.DataFrame({
    "age": rng.integers(0, 90, 5_000),
    "height": np.where(rng.random(5_000) < 0.1, np.nan, rng.normal(1.7, 0.1, 5_000)),
    "kind": rng.choice(["a", "b", "c"], 5_000),
    "label": rng.random(5_000) < 0.3,
})
schema = sp.Schema({
    "age": sp.Integer(0, 120), "height": sp.Real(0, 3, nullable=True), "kind": sp.Category(["a", "b", "c"]),
    "label": sp.Boolean(),
})
for options in ({}, {"target": "label"}, {"quality": "high"}, {"delta": 0}):
    model = sp.ForestSynthesizer(1, **options).fit(frame, schema)
    model.sample(70_000)
    model.sample(10, where={"label": True})
frame.to_csv(sys.argv[1], index=False)
sp.ForestSynthesizer(1).fit(sys.argv[1], schema)
print(compiled, COMPILATIONS.n_done)
"""


def warm_up(*options: str, cache: Path, folder: Path) -> str:
    """What `spinney warm-up` prints, run in a folder that it might leave something in."""
    done = subprocess.run(
        [sys.executable, "-m", "spinney", "warm-up", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES), "NUMBA_CACHE_DIR": str(cache), "TMPDIR": str(folder)},
    )
    assert done.stderr == ""
    assert list(folder.iterdir()) == [], "a warm-up leaves nothing behind but the cache"
    return done.stdout


@pytest.fixture
def warmed(tmp_path: Path) -> tuple[Path, dict[str, object]]:
    """A cache that was empty before a warm-up, and what that printed.

    `make test` warms up while it lints, and says where; otherwise it is done here, which takes most of a minute.
    """
    cache, folder = tmp_path / "cache", tmp_path / "folder"
    folder.mkdir()
    given = os.environ.get("SPINNEY_WARMED")
    if given is None:
        return cache, json.loads(warm_up("--json", cache=cache, folder=folder))
    shutil.copytree(Path(given) / "cache", cache)
    report = json.loads((Path(given) / "report.json").read_text())
    assert report["cache"] == str(Path(given) / "cache")
    return cache, report | {"cache": str(cache)}


@pytest.mark.long
def test_a_second_warm_up_finds_everything(tmp_path: Path, warmed: tuple[Path, dict[str, object]]) -> None:
    cache, _ = warmed
    again = warm_up(cache=cache, folder=tmp_path / "folder")
    assert "everything was compiled before; nothing had to be done" in again
    assert f"the cache is in {cache}, which can be written to" in again


def test_after_a_warm_up_a_fresh_process_compiles_nothing(
    tmp_path: Path, warmed: tuple[Path, dict[str, object]]
) -> None:
    """From an empty cache: trees, grids, forests of both qualities, their rows, and files."""
    cache, first = warmed
    assert first["compiled"] > 50
    assert first["found"] == 0
    assert first["cache"] == str(cache)

    code = FITS.replace("sys.argv[1]", repr(str(tmp_path / "t.csv")))
    assert behind_pipes(code, NUMBA_CACHE_DIR=str(cache)) == ("[] 0\n", "")


def test_a_warm_up_that_finds_everything_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "_steps", lambda _: [])
    run = spinney("warm-up")
    assert run.status == 0
    assert "everything was compiled before; nothing had to be done" in run.out


def test_a_warm_up_that_could_keep_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "is_cached", lambda _: False)
    with pytest.raises(FileError, match="set NUMBA_CACHE_DIR to a folder that can"):
        warming.warm_up()
    run = spinney("warm-up")
    assert run.status == 1
    assert "NUMBA_CACHE_DIR" in run.err


# ------------------------------------------------------------------------------------------ read-only installations


@pytest.fixture
def locked_sources(tmp_path: Path) -> Path:
    """The package in a place where no cache can be made.

    Tests may run as root, whom no permissions stop. So a file stands where each `__pycache__` folder would be, which
    stops everybody: the folder cannot be made, as on a read-only disk.
    """
    place = tmp_path / "site-packages"
    shutil.copytree(SOURCES / "spinney", place / "spinney", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [place / "spinney", *(one for one in (place / "spinney").rglob("*") if one.is_dir())]:
        (folder / "__pycache__").touch()
    return place


def test_a_read_only_installation_keeps_its_cache_where_it_is_told(locked_sources: Path, tmp_path: Path) -> None:
    settings = {
        "PYTHONPATH": str(locked_sources),
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    where = "\nimport spinney; print(spinney.__file__)"
    expected = f"{locked_sources / 'spinney' / '__init__.py'}\n"
    assert behind_pipes(COUNTED + where, **settings) == (f"1\n{expected}", "")
    assert list((tmp_path / "cache").rglob("*.nbi"))
    assert behind_pipes(COUNTED + where, **settings) == (f"0\n{expected}", "")


def test_a_read_only_installation_without_any_cache_works(locked_sources: Path, tmp_path: Path) -> None:
    """Neither the sources nor a home can be written to: loops are compiled in every process, and warm-up says so."""
    (tmp_path / "home").touch()
    settings = {
        "PYTHONPATH": str(locked_sources),
        "NUMBA_CACHE_DIR": "",
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "home"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    for _ in range(2):
        assert behind_pipes(COUNTED, **settings) == ("1\n", "")
    done = behind_pipes(
        "from spinney.warm_up import warm_up\n"
        "from spinney.errors import FileError\n"
        "try: warm_up()\n"
        "except FileError as err: print(err)\n",
        **settings,
    )
    assert "set NUMBA_CACHE_DIR" in done[0]
