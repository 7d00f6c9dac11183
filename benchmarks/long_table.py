"""Counting, fitting and sampling a table of 10 million rows and 5 columns, and how the cost grows with rows."""

from __future__ import annotations

import numpy as np

import spinney as sp
from benchmarks.harness import Result, best_of, seconds
from spinney.grid.lattice import tree_lattice
from spinney.tables.engines.memory import count_cells
from spinney.tables.frames import open_table

N_ROWS, N_COLUMNS = 10_000_000, 5
SCHEMA = sp.Schema({f"x{i}": sp.Real(-6, 6) for i in range(N_COLUMNS)})


def mixture(n_rows: int) -> np.ndarray:
    """Ten Gaussian clusters: neither uniform nor degenerate."""
    rng = np.random.default_rng(0)
    centres = rng.normal(0, 2, (10, N_COLUMNS))
    rows = centres[rng.integers(0, 10, n_rows)]
    rows += rng.normal(0, 0.5, rows.shape)
    return rows.clip(-6, 6)


def run(*, is_quick: bool = False) -> list[Result]:
    n = N_ROWS // 100 if is_quick else N_ROWS
    table = mixture(n)
    lattice = tree_lattice(SCHEMA)
    model = sp.KDTreeSynthesizer(epsilon="1")
    model.fit(table[:100_000], SCHEMA).sample(10)  # compile

    counts = count_cells(open_table(table, SCHEMA), lattice)
    codes, n_rows = counts.distinct()
    assert n_rows.sum() == n
    assert (codes[1:, 0] > codes[:-1, 0]).all(), "codes are sorted and distinct"
    del counts

    extremes, counting, fitting = best_of(
        lambda: (table.min(0), table.max(0)),
        lambda: count_cells(open_table(table, SCHEMA), lattice),
        lambda: model.fit(table, SCHEMA),
    )
    moments = model.release_.moments
    noisy_total = moments.noisy_steps[:, 0].sum() / moments.quantum
    assert abs(noisy_total - n) < n / 100, f"noisy total {noisy_total}"

    rows = model.sample(n, seed=0)
    assert rows.shape == table.shape
    assert np.abs(rows.mean(0) - table.mean(0)).max() < 0.01 * np.sqrt(N_ROWS / n)
    assert np.abs(rows.std(0) - table.std(0)).max() < 0.02 * np.sqrt(N_ROWS / n)
    del rows
    rng = np.random.default_rng(0)
    uniforms, sampling = best_of(lambda: rng.random((n, N_COLUMNS)), lambda: model.sample(n, seed=0), rounds=3)
    return [
        Result("counting 10M x 5 cells, against numpy's min and max", counting / extremes, 1.5, "x"),
        Result("default fit of 10M x 5, against counting", fitting / counting, 4, "x"),
        Result("sampling 10M x 5 rows, against rng.random", sampling / uniforms, 6, "x"),
        *_growth(table, model),
    ]


def _growth(table: np.ndarray, model: sp.KDTreeSynthesizer) -> list[Result]:
    """Time per row over three decades, printed as a curve; linear means that it does not rise."""
    per_row = {}
    sizes = [size for size in (10_000, 100_000, 1_000_000, 10_000_000) if size <= len(table)]
    for n_rows in sizes:
        fitting = min(seconds(lambda: model.fit(table[:n_rows], SCHEMA)) for _ in range(3))  # noqa: B023
        n_leaves = model.card_.released["leaves"]
        sampling = min(seconds(lambda: model.sample(n_rows, seed=0)) for _ in range(3))  # noqa: B023
        per_row[n_rows] = fitting / n_rows
        print(
            f"  n = {n_rows:>10,}: fit {fitting:8.3f} s = {1e9 * fitting / n_rows:7.0f} ns a row, "
            f"{n_leaves:>7,} leaves; sample {1e9 * sampling / n_rows:5.0f} ns a row"
        )
    return [
        Result("fit time a row at 10M, against 1M (1 is linear)", per_row[sizes[-1]] / per_row[sizes[-2]], 1.5, "x"),
    ]
