"""Warming up: every compiled loop runs once on made-up tables, so that later runs find it compiled.

numba compiles a loop for the types that it meets: floats of 32 or 64 bits, arrays in rows or in columns, arrays
that may not be written to. So the tables come in the kinds in which real ones come. Their rows are random, the
ledgers are thrown away, and no file is left behind but the cache. The paper's rival systems and kernel
distances are left out.

    warm_up           runs the steps and counts what was compiled
    steps             fits, draws, files and metrics that meet every loop
    made-up tables    numbers, mixed columns with rules, and codes of two words
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from spinney import metrics
from spinney.columns import Boolean, Category, Column, Date, Identifier, Integer, Real
from spinney.compiled import COMPILATIONS, LOOPS, is_cached
from spinney.counting.sorting import block_sums, first_above, merge_counted, rows_before
from spinney.errors import FileError, SchemaWarning
from spinney.progress import progress
from spinney.release.file import load
from spinney.schema.places import Place
from spinney.schema.rules import AtMost, EmptyWhen
from spinney.schema.schema import Schema
from spinney.synthesizers.forest import ForestSynthesizer
from spinney.synthesizers.linked import LinkedSynthesizer
from spinney.synthesizers.partition import GridSynthesizer, PaperTreeSynthesizer
from spinney.synthesizers.tree import KDTreeSynthesizer
from spinney.text import many
from spinney.tree.release.moments import MomentsRelease

_N_ROWS = 6_000
_N_LARGE = 600_000
_N_DRAWN = 70_000
_EPSILON = 20  # nobody is in these tables


@dataclass(frozen=True, slots=True)
class Warmth:
    """What a warm-up did, and where its results are kept."""

    n_compiled: int  # loops that had to be compiled, each for every combination of types that it met
    n_found: int  # those that were read from the cache
    seconds: float  # of compilation
    folder: str  # where the cache is

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data for JSON."""
        return {"compiled": self.n_compiled, "found": self.n_found, "seconds": self.seconds, "cache": self.folder}

    def __str__(self) -> str:
        if self.n_compiled == 0:
            done = "everything was compiled before; nothing had to be done"
        else:
            done = f"compiled {many(self.n_compiled, 'loop')} in {self.seconds:.0f} s"
        return f"{done}\nthe cache is in {self.folder}, which can be written to"


def warm_up() -> Warmth:
    """Compile everything that trees, grids, forests, their rows and the metrics need. Raises where nothing is kept."""
    if not all(map(is_cached, LOOPS)):
        raise FileError(
            f"compiled loops cannot be kept: neither {_package()!r} nor the home folder can be written to; "
            "set NUMBA_CACHE_DIR to a folder that can"
        )
    n_before, seconds_before, n_found_before = COMPILATIONS.n_done, COMPILATIONS.seconds, _n_found()
    with tempfile.TemporaryDirectory(prefix="spinney-warm-up-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)  # what is fitted here is made up
        for step in progress(_steps(Path(folder)), "warming up", unit="step"):
            step()
    return Warmth(
        n_compiled=COMPILATIONS.n_done - n_before,
        n_found=_n_found() - n_found_before,
        seconds=round(COMPILATIONS.seconds - seconds_before, 1),
        folder=_cache_folder(),
    )


def _n_found() -> int:
    return sum(sum(loop.stats.cache_hits.values()) for loop in LOOPS)


def _package() -> str:
    return str(Path(__file__).parent)


def _cache_folder() -> str:
    """The folder of the cache; beside the sources every folder has one of its own."""
    given, own = os.environ.get("NUMBA_CACHE_DIR"), Path(LOOPS[0]._cache.cache_path)
    if given and own.is_relative_to(Path(given)):
        return given
    return f"{_package()} (in its __pycache__ folders)" if own.is_relative_to(_package()) else str(own.parent)


# ---------------------------------------------------------------------------------------------------------------- steps


def _steps(folder: Path) -> list[Callable[[], None]]:
    points, numbers, mixed, wide = _points(), _numbers(), _mixed(), _wide()
    return [
        *(partial(_tree, (table, points[1]), folder) for table in _kinds_of_array(points[0])),
        partial(_tree, numbers, folder),
        partial(_tree, wide, folder),
        partial(_large_tree, points[1]),
        partial(_bins, points),
        partial(_bins, numbers),
        partial(_bins, wide),
        partial(_bounds, points),
        partial(_forest, mixed, folder),
        partial(_forest, numbers, folder),
        partial(_files, mixed, folder),
        _people,
        _merging,
        partial(_metrics, points),
    ]


def _kinds_of_array(points: Any) -> list[Any]:
    """The points in rows, in columns, in single precision, not to be written to, and as a table."""
    locked, locked_columns = points.copy(), np.asfortranarray(points)
    locked.setflags(write=False)
    locked_columns.setflags(write=False)
    single = points.astype(np.float32)
    return [
        points,
        np.asfortranarray(points),
        locked,
        locked_columns,
        single,
        np.asfortranarray(single),
        pa.table({"x": points[:, 0].copy(), "y": points[:, 1].copy()}),
        pa.table({"x": single[:, 0].copy(), "y": single[:, 1].copy()}),
    ]


def _tree(table: tuple[Any, Schema], folder: Path) -> None:
    n_columns = len(table[1])
    for options in ({"epsilon": "1/50"}, {"epsilon": 1, "unit": "add-remove"}, {"epsilon": _EPSILON}):
        model = KDTreeSynthesizer(**options).fit(*table, ledger=False)
        for placement in ("uniform", "centre"):
            model.sample(10, placement=placement, frame="pyarrow")
        model.save(folder / "tree.spinney", overwrite=True)
        release = load(folder / "tree.spinney")
        release.sample(100, frame="pyarrow")
        release.sample(100, frame="pyarrow", parts=2)[1]
        if isinstance(release, MomentsRelease):
            release.range_counts([[0.2] * n_columns], [[0.4] * n_columns])


def _large_tree(schema: Schema) -> None:
    """More rows than are counted, or drawn, at a time."""
    points = np.random.default_rng(4).beta(2, 5, (_N_LARGE, 2))
    for options in ({}, {"moments": False}):
        model = KDTreeSynthesizer(1, **options).fit(points, schema, ledger=False)  # type: ignore[arg-type]
        model.sample(_N_DRAWN)
    GridSynthesizer(1, bins=4).fit(points, schema, ledger=False).sample(_N_DRAWN)


def _bins(table: tuple[Any, Schema]) -> None:
    models = [
        KDTreeSynthesizer(_EPSILON, moments=False, threshold=1),
        PaperTreeSynthesizer(_EPSILON, t=1),
        GridSynthesizer(_EPSILON, bins=2, threshold=1),
        GridSynthesizer("1/50", bins=2, threshold=1),
    ]
    for model in models:
        model.fit(*table, ledger=False)
        if model.card_.is_empty:
            continue
        for placement in ("tilted", "uniform", "centre"):
            model.sample(100, placement=placement, frame="pyarrow")
        model.weighted_points(frame="pyarrow")


def _bounds(table: tuple[Any, Schema]) -> None:
    unknown = Schema({name: Real(bounds="private") for name in table[1]})
    KDTreeSynthesizer(1).fit(table[0], unknown, ledger=False).sample(100)


def _forest(table: tuple[Any, Schema], folder: Path) -> None:
    target = list(table[1])[-1]
    for options in ({}, {"target": target}, {"quality": "high"}, {"delta": 0}):
        model = ForestSynthesizer(1, **options).fit(*table, ledger=False)
        model.sample(10, where={target: True}, frame="pyarrow")
        model.save(folder / "forest.spinney", overwrite=True)
        load(folder / "forest.spinney").sample(_N_DRAWN, frame="pyarrow")


def _files(table: tuple[Any, Schema], folder: Path) -> None:
    """Files are read in pieces, of texts and of numbers."""
    frame, schema = table
    numbers = Schema({name: column for name, column in schema.items() if not isinstance(column, Category)})
    for name, chosen, model in (("mixed", schema, ForestSynthesizer(1)), ("numbers", numbers, KDTreeSynthesizer(1))):
        rows = frame.select(list(chosen))
        pq.write_table(rows, folder / f"{name}.parquet", row_group_size=_N_ROWS // 3)
        pacsv.write_csv(rows, folder / f"{name}.csv")
        for ending in ("parquet", "csv"):
            model.fit(folder / f"{name}.{ending}", chosen, ledger=False).sample(10)


def _people() -> None:
    """Persons with many rows: in order, and as steps with a role."""
    rng = np.random.default_rng(0)
    n_rows = rng.poisson(3, 3_000) + 1
    person = np.repeat(np.arange(3_000), n_rows)
    level = rng.normal(size=3_000)[person]
    kinds = ("head", "other", "guest")
    table = pa.table(
        {
            "person": person,
            "step": np.arange(len(person)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows),
            "amount": np.exp(2 + level + 0.5 * rng.normal(size=len(person))).clip(0, 999),
            "kind": np.array(kinds)[rng.integers(0, 3, len(person))],
        }
    )
    columns = {"person": Identifier(), "step": Integer(0, 60), "amount": Real(0, 1_000), "kind": Category(kinds)}
    for options in ({"order": "step"}, {"order": "step", "steps": True, "role": "kind"}):
        schema = Schema(columns, person="person", most_rows=60, **options)
        LinkedSynthesizer(_EPSILON).fit(table, schema, ledger=False).sample(seed=0)


def _merging() -> None:
    """What only tables need that are larger than memory, or than four bytes can count."""
    codes = np.arange(4, dtype=np.uint64).reshape(-1, 1)
    for counts in (np.ones(4, dtype=np.int32), np.ones(4, dtype=np.int64)):
        merge_counted(codes, counts, codes + np.uint64(2), counts)
        rows_before(counts, block_sums(counts), np.arange(4))
    first_above(codes, codes[2])


def _metrics(table: tuple[Any, Schema]) -> None:
    points, schema = table
    other = points[::-1].copy()
    metrics.total_variation(points, other, schema, ways=2)
    metrics.wasserstein(points, other, schema)
    metrics.compare(points, other, schema)


# ------------------------------------------------------------------------------------------------------- made-up tables


def _points() -> tuple[Any, Schema]:
    """Two columns of numbers, as an array in rows."""
    rng = np.random.default_rng(0)
    return rng.beta(2, 5, (_N_ROWS, 2)), Schema({"x": Real(0, 1), "y": Real(0, 1)})


def _numbers() -> tuple[Any, Schema]:
    """Numbers, days and booleans, some missing."""
    rng = np.random.default_rng(1)
    age = rng.integers(0, 100, _N_ROWS)
    is_gone = rng.random(_N_ROWS) < 0.1
    columns: dict[str, Column] = {
        "height": Real(1, 2.5, nullable=True),
        "age": Integer(0, 120),
        "visits": Integer(0, 50, nullable=True),
        "born": Date("1900-01-01", "2020-12-31"),
        "member": Boolean(),
    }
    table = pa.table(
        {
            "height": pa.array(np.where(is_gone, np.nan, rng.normal(1.7, 0.1, _N_ROWS)), from_pandas=True),
            "age": age,
            "visits": pa.array(age // 3, mask=is_gone),
            "born": pa.array((18_000 - 365 * age).astype(np.int32)).cast(pa.date32()),
            "member": rng.random(_N_ROWS) < 0.5,
        }
    )
    return table, Schema(columns)


def _mixed() -> tuple[Any, Schema]:
    """Columns of every kind, with rules between them."""
    table, numbers = _numbers()
    rng = np.random.default_rng(2)
    born, is_open = table["born"].to_numpy(), rng.random(_N_ROWS) < 0.3
    left = pa.array(born.astype("datetime64[D]") + rng.integers(0, 9_000, _N_ROWS), mask=is_open)
    kind = np.where(is_open, "open", rng.choice(["closed", "lost"], _N_ROWS))
    table = table.append_column("left", left).append_column("kind", pa.array(kind))
    table = table.append_column("grade", pa.array(rng.integers(1, 4, _N_ROWS)))
    columns = dict(numbers) | {
        "left": Date("1900-01-01", "2050-12-31", nullable=True),
        "kind": Category(("open", "closed", "lost")),
        "grade": Category((1, 2, 3)),
        "label": Boolean(),
    }
    table = table.append_column("label", pa.array(table["age"].to_numpy() > rng.integers(0, 100, _N_ROWS)))
    rules = [AtMost("born", "left"), EmptyWhen("left", "kind", ("open",))]
    return table, Schema(columns, rules=rules, places=[Place("height", "age")])


def _wide() -> tuple[Any, Schema]:
    """So many columns, so finely cut, that the code of a cell takes two words."""
    rng = np.random.default_rng(3)
    return rng.random((_N_ROWS, 5)), Schema({f"c{index}": Real(0, 1, bits=20) for index in range(5)})
