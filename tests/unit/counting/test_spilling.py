"""Cells that do not fit into memory go to disk and come back the same; nothing stays there, whatever happens."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import spinney as sp
from spinney.counting import spill
from spinney.counting.counter import CellCounter
from spinney.counting.sorting import RadixBuckets
from spinney.counting.spill import MEMORY_LIMIT, default_memory_limit
from spinney.errors import FileError, InputError, ParameterError
from spinney.grid.lattice import tree_lattice
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.schema.schema import Schema
from spinney.tables.engines.memory import axis_columns, count_cells
from spinney.tables.engines.stream import StreamSource
from spinney.tables.frames import open_table
from spinney.tables.source import Batch, prefetch
from support.cell_counts import same_cells

SCHEMA = sp.Schema({f"x{i}": sp.Real(0, 1) for i in range(3)})
WIDE = sp.Schema({f"x{i}": sp.Real(0, 1, bits=8) for i in range(11)})  # two words
N_ROWS = 400_000


def rows_of(kind: str, n_columns: int = 3, n_rows: int = N_ROWS) -> np.ndarray:
    rng = np.random.default_rng(5)
    rows = rng.random((n_rows, n_columns))
    return np.floor(rows * 8) / 8 if kind == "repeated" else rows


def streamed(
    rows: np.ndarray,
    schema: Schema = SCHEMA,
    *,
    n_batches: int = 7,
    memory_limit: int | None = 1 << 20,
    spill_folder: Path | None = None,
) -> StreamSource:
    """A table in batches, under a limit that 400,000 cells pass."""

    def pieces(chosen: Schema) -> Iterator[Batch]:
        place = [list(schema).index(name) for name in chosen]
        yield from prefetch((part[:, place] for part in np.array_split(rows, n_batches)), chosen)

    folder = None if spill_folder is None else str(spill_folder)
    return StreamSource("numpy", schema, pieces, lambda: len(rows), memory_limit=memory_limit, spill_folder=folder)


@pytest.fixture
def spilled() -> Iterator[mock.Mock]:
    with mock.patch.object(spill.SpilledRuns, "add", autospec=True, side_effect=spill.SpilledRuns.add) as append:
        yield append


@pytest.mark.parametrize(("kind", "n_columns"), [("scattered", 3), ("repeated", 3), ("scattered", 11)])
def test_spilled_counts_are_the_counts(tmp_path: Path, spilled: mock.Mock, kind: str, n_columns: int) -> None:
    """The cells of a table in batches, through files, are those of the table in memory. Few cells need no file."""
    schema = SCHEMA if n_columns == 3 else WIDE
    rows = rows_of(kind, n_columns, N_ROWS if n_columns == 3 else 100_000)
    lattice = tree_lattice(schema)
    assert lattice.n_words == (1 if n_columns == 3 else 2)
    found = streamed(rows, schema, spill_folder=tmp_path).count_cells(lattice)
    assert spilled.called == (kind == "scattered")
    expected = count_cells(open_table(rows, schema), lattice)
    assert same_cells(found, expected)
    assert not os.listdir(tmp_path)


def test_several_lattices_share_the_limit(spilled: mock.Mock) -> None:
    """Columns counted in one pass, each within its part of the limit."""
    rows = rows_of("scattered")
    lattices = [tree_lattice(Schema({name: SCHEMA[name]})) for name in SCHEMA]
    for lattice, found in zip(lattices, streamed(rows).count_columns(lattices), strict=True):
        expected = count_cells(open_table(rows, SCHEMA), lattice)
        assert same_cells(found, expected)
    assert spilled.called


@pytest.mark.parametrize("moments", [True, False])
def test_a_release_does_not_depend_on_where_cells_were_held(spilled: mock.Mock, moments: bool) -> None:
    """The same noise gives the same release, bit by bit, from files, from a buffer and from a table in memory."""
    rows = rows_of("scattered")

    def released(table: object) -> list[bytes]:
        with mock.patch("spinney.synthesizers.base.open_source", return_value=table):
            model = sp.KDTreeSynthesizer(1, moments=moments).fit(None, SCHEMA, entropy=UnsafeSeededEntropy(3))
        found = model.release_.moments if moments else model.release_.bins
        values = found.noisy_steps if moments else found.noisy_counts
        return [found.codes.tobytes(), found.depths.tobytes(), values.tobytes()]

    from_files = released(streamed(rows))
    assert spilled.called
    spilled.reset_mock()
    from_buffer = released(streamed(rows, memory_limit=1 << 30))
    assert not spilled.called
    assert from_files == from_buffer == released(streamed(rows, n_batches=1, memory_limit=1 << 30))


def files_open_in(folder: Path) -> int:
    """How many files of this process lie in a folder, nameless ones too. Other tests' files come and go."""
    n_open = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            n_open += os.readlink(descriptor).startswith(f"{folder}/")
    return n_open


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="open files are listed on Linux")
def test_many_runs_need_few_files(tmp_path: Path, spilled: mock.Mock) -> None:
    """A table of many columns, each in many runs, opens one file for each column at a time, and two more."""
    rows = rows_of("scattered")
    lattices = [tree_lattice(Schema({name: SCHEMA[name]})) for name in SCHEMA]
    n_open = []
    for found in streamed(rows, spill_folder=tmp_path).count_columns(lattices):
        n_open.append(files_open_in(tmp_path))
        assert found.true_total() == len(rows)
    assert 0 < max(n_open) <= len(lattices) + 2 < spilled.call_count / 2
    found = None
    assert files_open_in(tmp_path) == 0


def test_tiny_pieces_wait_for_others() -> None:
    """Rows that come one by one are scattered together, and none of them stays behind."""
    runs = CellCounter(tree_lattice(SCHEMA), n_rows=3000)
    table = open_table(rows_of("scattered", n_rows=3000), SCHEMA)
    columns = axis_columns(table, runs.lattice)
    with mock.patch.object(RadixBuckets, "put", autospec=True, side_effect=RadixBuckets.put) as put:
        for row in range(3000):
            runs.add(columns, row, row + 1)
        assert same_cells(runs.merged(), count_cells(table, runs.lattice))
    assert put.call_count == 2  # once for each of the two
    runs.close()
    assert runs.merged().true_total() == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, InputError("no such luck")])
def test_nothing_is_left_when_reading_ends_early(tmp_path: Path, spilled: mock.Mock, error: BaseException) -> None:
    """Ctrl-C or an error in the middle, with runs on disk: no file has a name, and the space is given back."""
    rows = rows_of("scattered")

    def pieces(chosen: Schema) -> Iterator[Batch]:
        yield from prefetch(np.array_split(rows, 7)[:6], chosen)
        assert spilled.called
        assert not os.listdir(tmp_path), "files have no name even while they are used"
        raise error

    source = StreamSource("numpy", SCHEMA, pieces, lambda: N_ROWS, memory_limit=1 << 20, spill_folder=str(tmp_path))
    with mock.patch.object(spill.SpilledRuns, "close", autospec=True, side_effect=spill.SpilledRuns.close) as close:
        with pytest.raises(type(error) if isinstance(error, Exception) else KeyboardInterrupt):
            source.count_cells(tree_lattice(SCHEMA))
        assert close.call_count == 1
    assert not os.listdir(tmp_path)


def test_a_missing_value_in_the_last_batch_is_found_before_anything_is_charged() -> None:
    """Codes are made behind the reader's back; what is wrong with the last rows still comes out of the counting."""
    rows = rows_of("scattered")
    rows[-1, 1] = np.nan
    with pytest.raises(InputError, match="'x1'"):
        streamed(rows).count_columns([tree_lattice(SCHEMA)])


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    """The folder, the reason and both remedies are named, and no value."""
    with pytest.raises(FileError) as caught:
        streamed(rows_of("scattered"), spill_folder=tmp_path / "gone").count_cells(tree_lattice(SCHEMA))
    for part in (repr(str(tmp_path / "gone")), "No such file", "TMPDIR", MEMORY_LIMIT):
        assert part in str(caught.value)


def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    """No room for temporary files: the folder, the reason and both remedies are named, and no value."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with mock.patch.object(spill, "_write", side_effect=full), pytest.raises(FileError) as caught:
        streamed(rows_of("scattered"), spill_folder=tmp_path).count_cells(tree_lattice(SCHEMA))
    for part in (repr(str(tmp_path)), "No space left", "TMPDIR", MEMORY_LIMIT):
        assert part in str(caught.value)
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a disk that is always full is Linux's")
def test_a_disk_that_is_really_full() -> None:
    """The same with a device that refuses every byte."""
    with (
        open("/dev/full", "wb", buffering=0) as full,
        mock.patch.object(spill.tempfile, "TemporaryFile", return_value=full),
        pytest.raises(FileError, match="No space left"),
    ):
        streamed(rows_of("scattered")).count_cells(tree_lattice(SCHEMA))


@pytest.mark.parametrize(
    ("text", "n_bytes"),
    [("", 2 << 30), ("3GiB", 3 << 30), ("1.5 gb", 1_500_000_000), ("1MB", 10**6), ("2097152", 1 << 21)],
)
def test_the_limit_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, text: str, n_bytes: int) -> None:
    monkeypatch.setattr(spill, "memory_quota", lambda: None)
    monkeypatch.setenv(MEMORY_LIMIT, text)
    assert default_memory_limit() == n_bytes
    assert streamed(rows_of("scattered", n_rows=1), memory_limit=None).memory_limit == n_bytes


def test_a_limit_that_is_too_little_names_one_that_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEMORY_LIMIT, "999KB")
    with pytest.raises(ParameterError, match="'999KB' is too little to count cells; give at least 1MB"):
        default_memory_limit()


@pytest.mark.parametrize(("granted", "n_bytes"), [(64 << 30, 2 << 30), (1 << 30, 1 << 29), (1000, 1 << 20)])
def test_a_container_takes_half_of_its_memory(monkeypatch: pytest.MonkeyPatch, granted: int, n_bytes: int) -> None:
    """Unless the environment says otherwise; 2 GiB at most, and never so little that nothing can be counted."""
    monkeypatch.delenv(MEMORY_LIMIT, raising=False)
    monkeypatch.setattr(spill, "memory_quota", lambda: granted)
    assert default_memory_limit() == n_bytes
    monkeypatch.setenv(MEMORY_LIMIT, "3GiB")
    assert default_memory_limit() == 3 << 30


def test_a_fit_heeds_the_environment(spilled: mock.Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that was told nothing spills beyond `SPINNEY_MEMORY_LIMIT`; a bad limit is refused before it is read."""
    lattice = tree_lattice(SCHEMA)
    monkeypatch.setenv(MEMORY_LIMIT, "1GiB")
    streamed(rows_of("scattered"), memory_limit=None).count_cells(lattice)
    assert not spilled.called
    monkeypatch.setenv(MEMORY_LIMIT, "1MiB")
    streamed(rows_of("scattered"), memory_limit=None).count_cells(lattice)
    assert spilled.called
    monkeypatch.setenv(MEMORY_LIMIT, "little")
    ledger = sp.Ledger(limit=1)
    with pytest.raises(ParameterError, match=MEMORY_LIMIT):
        sp.KDTreeSynthesizer(1).fit(rows_of("scattered", n_rows=100), SCHEMA, ledger=ledger)
    assert ledger.spent == 0


def test_limits_go_with_the_source() -> None:
    """Through another schema, and through a table that is held."""
    source = streamed(rows_of("scattered", n_rows=10), spill_folder=Path("there"))
    for same in (source, source.with_schema(SCHEMA), source.materialized(), source.materialized().with_schema(SCHEMA)):
        assert (same.memory_limit, same.spill_folder) == (1 << 20, "there")
    moved = source.limited(memory_limit=5 << 20, spill_folder="elsewhere")
    assert (moved.memory_limit, moved.spill_folder) == (5 << 20, "elsewhere")
    assert source.spill_folder == "there"


@pytest.mark.parametrize("text", ["lots", "-1GB", "4 GBit", "10kB", "0"])
def test_a_limit_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(MEMORY_LIMIT, text)
    with pytest.raises(ParameterError, match=MEMORY_LIMIT):
        default_memory_limit()


def test_sensitive_things_show_nothing() -> None:
    assert repr(CellCounter(tree_lattice(SCHEMA), n_rows=1, memory_limit=1 << 20)) == "CellCounter(sensitive)"
    assert repr(Batch(7, lambda: None)) == "Batch(sensitive)"
    runs = spill.SpilledRuns(1, np.dtype(np.int32))
    assert repr(runs) == "SpilledRuns(sensitive)"
    runs.close()


_FIT = """
import re, resource, sys
import numpy as np
sys.path[:0] = {tests!r}
from test_spilling import SCHEMA, StreamSource, prefetch, tree_lattice
lattice = tree_lattice(SCHEMA)

def source(n_batches):
    def pieces(chosen):
        yield from prefetch((np.random.default_rng(seed).random((100_000, 3)) for seed in range(n_batches)), chosen)
    return StreamSource("numpy", SCHEMA, pieces, lambda: 100_000 * n_batches)

source(10).count_cells(lattice)  # threads, compiled loops, files
held = 1024 * int(re.search(r"VmData:\\s+(\\d+)", open("/proc/self/status").read())[1])
resource.setrlimit(resource.RLIMIT_DATA, (held + (48 << 20),) * 2)
counts = source(60).count_cells(lattice)
assert counts.true_total() == 6_000_000
print("counted", len(counts))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of data are Linux's")
@pytest.mark.parametrize(("limit", "fits"), [("8MiB", True), ("1GiB", False)])
def test_memory_stays_under_a_limit(tmp_path: Path, limit: str, fits: bool) -> None:
    """Six million cells take 72 MB: a process that may take 48 MB more counts them by files, and not without."""
    code = textwrap.dedent(_FIT).format(tests=[str(folder) for folder in Path(__file__).parents[:3]])
    environment = dict(os.environ) | {MEMORY_LIMIT: limit, "TMPDIR": str(tmp_path), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert ("counted 59" in done.stdout or "counted 6000000" in done.stdout) == fits, done.stderr
    assert fits or "MemoryError" in done.stderr, done.stderr
    assert not os.listdir(tmp_path)
