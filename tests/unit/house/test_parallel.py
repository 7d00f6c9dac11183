"""Threads: as many as this process may use, in one place; no result depends on how many there are."""

from __future__ import annotations

import ast
import os
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney import machine as cgroups
from spinney import machine as parallel
from spinney.errors import ParameterError
from spinney.machine import available_processors, by_slices, each, n_threads, threads
from support.sources import nodes

SOURCES = Path(__file__).parents[3] / "src"


@pytest.fixture
def ten_processors(monkeypatch):
    """A machine of ten processors that grants all of them."""
    monkeypatch.delenv("SPINNEY_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 10)
    monkeypatch.setattr(os, "process_cpu_count", lambda: 10, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(10)), raising=False)
    monkeypatch.setattr(parallel, "cpu_quota", lambda: None)


# ------------------------------------------------------------------------------------------------ how many there are


def test_the_environment_says_how_many(ten_processors, monkeypatch):
    """SPINNEY_THREADS is read each time; without it, all processors are used."""
    assert n_threads() == 10
    monkeypatch.setenv("SPINNEY_THREADS", " 3 ")
    assert n_threads() == 3
    monkeypatch.setenv("SPINNEY_THREADS", "40")
    assert n_threads() == 40
    monkeypatch.setenv("SPINNEY_THREADS", "")
    assert n_threads() == 10


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "2 threads", "100000", "00", "9" * 5000, "\u0663"])
def test_other_texts_are_refused(monkeypatch, text):
    """The error names the variable, what it holds, and what it may hold."""
    monkeypatch.setenv("SPINNEY_THREADS", text)
    with pytest.raises(ParameterError, match=r"SPINNEY_THREADS=.* is not a number of threads; write a whole number"):
        n_threads()


@pytest.mark.parametrize("make", [sp.KDTreeSynthesizer, sp.ForestSynthesizer, sp.GridSynthesizer])
def test_a_bad_number_is_refused_before_budget_is_spent(monkeypatch, make):
    """Whichever step would start threads first, the ledger is not charged."""
    monkeypatch.setenv("SPINNEY_THREADS", "all")
    ledger = sp.Ledger(limit=1, delta="1e-5")
    with pytest.raises(ParameterError, match="SPINNEY_THREADS"):
        make(1).fit(np.linspace(0, 1, 50)[:, None], sp.Schema({"x": sp.Real(0, 1)}), ledger=ledger)
    assert ledger.spent == 0


def test_the_least_of_all_limits_holds(ten_processors, monkeypatch):
    """The machine, what the process is bound to, what Python was told, and the container; never less than one."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 5, 7}, raising=False)
    assert available_processors() == 5
    monkeypatch.setattr(os, "process_cpu_count", lambda: 4, raising=False)
    assert available_processors() == 4
    monkeypatch.setattr(parallel, "cpu_quota", lambda: 2.5)
    assert available_processors() == 3
    monkeypatch.setattr(parallel, "cpu_quota", lambda: 0.1)
    assert available_processors() == 1


def test_a_system_that_tells_nothing_has_one_processor(ten_processors, monkeypatch):
    """Neither affinity nor a count, as on some systems."""
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    assert available_processors() == 1


# ------------------------------------------------------------------------------------------------------ containers


def machine(root: Path, groups: str, files: dict[str, str]) -> Path:
    """A file system with control groups."""
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


V1 = "5:memory:/docker/a\n4:cpu,cpuacct:/docker/a\n3:cpuset:/docker/a\n"
LARGEST = str((1 << 63) - 4096)
CASES = {
    "version 2, inside": (
        "0::/\n",
        {"sys/fs/cgroup/cpu.max": "150000 100000\n", "sys/fs/cgroup/memory.max": "1073741824\n"},
        (1.5, 1 << 30),
    ),
    "version 2, no limits": (
        "0::/\n",
        {"sys/fs/cgroup/cpu.max": "max 100000\n", "sys/fs/cgroup/memory.max": "max\n"},
        (None, None),
    ),
    "version 2, the group around it is narrower": (
        "0::/batch/job\n",
        {
            "sys/fs/cgroup/batch/job/cpu.max": "800000 100000",
            "sys/fs/cgroup/batch/cpu.max": "400000 100000",
            "sys/fs/cgroup/batch/job/memory.max": "max",
            "sys/fs/cgroup/batch/memory.high": "5000000",
        },
        (4.0, 5_000_000),
    ),
    "version 1, on the machine": (
        V1,
        {
            "sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.cfs_quota_us": "200000",
            "sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes": "4000000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": LARGEST,
        },
        (2.0, 4_000_000),
    ),
    "version 1, inside, where the path is not there": (
        V1,
        {
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "3000000",
        },
        (0.5, 3_000_000),
    ),
    "version 1, no limits": (
        V1,
        {
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": LARGEST,
        },
        (None, None),
    ),
    "numbers that no kernel writes": (
        "0::/\n",
        {"sys/fs/cgroup/cpu.max": "9" * 400 + " 100000\n", "sys/fs/cgroup/memory.max": "9" * 400},
        (None, None),
    ),
    "files that hold something else": (
        "0::/\n nonsense\n",
        {"sys/fs/cgroup/cpu.max": "many\n", "sys/fs/cgroup/memory.max": ""},
        (None, None),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_limits_of_a_container(tmp_path, name):
    """Processors and memory as control groups of either version state them."""
    groups, files, expected = CASES[name]
    root = machine(tmp_path, groups, files)
    assert (cgroups.cpu_quota(root), cgroups.memory_quota(root)) == expected


def test_a_system_without_control_groups_has_no_limits(tmp_path):
    """As on macOS and Windows."""
    assert cgroups.cpu_quota(tmp_path) is None
    assert cgroups.memory_quota(tmp_path) is None


def test_memory_is_that_of_the_machine_or_of_a_container_with_less(monkeypatch):
    """A machine that does not tell, such as Windows, has no limit but the container's."""
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__, raising=False)
    for quota, expected in ((None, 4_096_000), (10**6, 10**6), (10**9, 4_096_000)):
        monkeypatch.setattr(cgroups, "memory_quota", lambda quota=quota: quota)
        assert cgroups.total_memory.__wrapped__() == expected
    monkeypatch.delattr(os, "sysconf")
    assert cgroups.total_memory.__wrapped__() == 10**9


# ----------------------------------------------------------------------------------------------------------- pools


def test_answers_come_in_the_order_of_the_items(monkeypatch):
    """Whoever is ready first; several iterables go side by side."""
    monkeypatch.setenv("SPINNEY_THREADS", "4")
    assert each(lambda i: threading.Event().wait(0.02 * (3 - i)) or i, range(4)) == [0, 1, 2, 3]
    assert each(pow, [2, 3], [5, 2], title="raising", unit="number") == [32, 9]
    assert each(str, []) == []
    with pytest.raises(ValueError, match="shorter"):
        each(pow, [1, 2], [3])


def test_threads_work_at_once(monkeypatch):
    """As many as are asked for: each waits until all have begun."""
    monkeypatch.setenv("SPINNEY_THREADS", "3")
    barrier = threading.Barrier(3, timeout=10)
    each(lambda _: barrier.wait(), range(3))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_has_not_begun_is_given_up(monkeypatch, error):
    """The first error leaves, and so does an interruption; the rest of the work is not done."""
    monkeypatch.setenv("SPINNEY_THREADS", "1")
    done = []

    def work(i: int) -> None:
        threading.Event().wait(0.05)
        done.append(i)
        if i == 1 and error is ValueError:
            raise ValueError("no")

    def block() -> None:
        with threads() as pool:
            under_way = [pool.submit(work, i) for i in range(20)]
            under_way[0].result()
            if error is KeyboardInterrupt:
                raise KeyboardInterrupt
            under_way[1].result()

    with pytest.raises(error):
        block()
    assert len(done) < 10
    if error is ValueError:
        done.clear()
        with pytest.raises(ValueError, match="no"):
            each(work, range(20))
        assert len(done) < 10


@pytest.mark.parametrize("n_items", [0, 1, 100, 100_003])
def test_slices_hold_every_item_once(monkeypatch, n_items):
    """Few items are one slice; many are cut."""
    monkeypatch.setenv("SPINNEY_THREADS", "3")
    seen, slices = np.zeros(n_items, dtype=int), []

    def work(part: slice) -> None:
        seen[part] += 1
        slices.append(part)

    by_slices(work, n_items)
    assert (seen == 1).all()
    assert len(slices) == (12 if n_items > 2**14 else 1)


# ----------------------------------------------------------------------------------------------- everywhere the same


def fitted(make, table: pa.Table, schema: sp.Schema) -> tuple[dict[str, bytes], list[dict[str, object]]]:
    model = make(2).fit(table, schema, entropy=sp.UnsafeSeededEntropy(4))
    return model.release_.to_members(), model.sample(30_000, seed=9).to_pylist()


@pytest.mark.parametrize("make", [sp.KDTreeSynthesizer, sp.ForestSynthesizer])
def test_neither_release_nor_rows_depend_on_the_number_of_threads(monkeypatch, make):
    """The same seeds give the same release, byte by byte, and the same rows, with one thread and with five."""
    rng = np.random.default_rng(1)
    table = pa.table({"x": rng.random(40_000), "y": rng.beta(2, 5, 40_000), "k": rng.integers(0, 5, 40_000)})
    schema = sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1), "k": sp.Integer(0, 4)})
    found = []
    for n in ("1", "5"):
        monkeypatch.setenv("SPINNEY_THREADS", n)
        found.append(fitted(make, table, schema))
    assert found[0] == found[1]


def test_nobody_else_counts_processors_or_makes_pools():
    """One file decides how many threads there are: no other names `cpu_count` or `ThreadPoolExecutor`."""
    home = SOURCES / "spinney" / "machine.py"
    own = {"cpu_count", "process_cpu_count", "sched_getaffinity", "ThreadPoolExecutor"}
    found = {path: _named_in(path.read_text(), own) for path in SOURCES.rglob("*.py")}
    assert {path: names for path, names in found.items() if names} == {home: own}


def _named_in(source: str, names: set[str]) -> set[str]:
    """Which of these names a source uses, takes from a module, or imports."""
    found = set()
    for node in nodes(source, names):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
    return found & names
