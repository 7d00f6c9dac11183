"""Numbers as tables have them, under generous round bounds: what a forest or a tree keeps of shapes, piles and zeros.

    python -m benchmarks.columns --data FOLDER [--releases 5] [--epsilons 1 0.1] [--tables adult nyc_taxi]
    python -m benchmarks.columns --data FOLDER --method tree [--even]
    python -m benchmarks.columns --data FOLDER --method pure-forest

FOLDER holds the tables as Parquet files. A tree, and a pure forest, get a few columns of each table at a time, and are
asked for one more measure, the mean over pairs of columns; with `--even` the axes of a tree are even ones, as if all
columns had stated bits. For every table and epsilon, over several releases, of the worst column:

    KS       largest distance between the distribution functions of real and drawn values
    kept     how much of the ten commonest values comes back at exactly these values, where they hold a tenth of the
             rows or more: the sum of min(drawn, real) over them, against the sum of real
    zeros    how far the share of exact zeros is off, of columns of floats
    far      the Wasserstein distance in standard deviations of the real column, which sees how far away a wrong row
             lies; the mean over columns

Drawn values are compared in the type of the real column. Bounds are powers of ten, three to thirty times too wide;
they are read off the table, as a benchmark may. Targets of forests are asserted at epsilon 1.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import spinney as sp
from benchmarks.harness import Result
from spinney import metrics
from spinney.grid.lattice import tree_lattice
from spinney.synthesizers import tree

TABLES = ("adult", "creditcard", "nyc_taxi", "diamonds", "credit_default_uci", "bank_additional", "census_income")
LEFT_OUT = {"row_id", "is_test"}
DELTA = "1e-6"
MOST_KS, LEAST_KEPT, MOST_ZEROS = 0.03, 0.9, 0.01
_FEW_VALUES = 20  # whole numbers of no more values are categories


def run(
    folder: Path, *, tables: Sequence[str] = TABLES, epsilons: Sequence[str] = ("1", "0.1"), n_releases: int = 5
) -> list[Result]:
    """Print a line for each table and epsilon; results are those that have a target."""
    results = []
    heads = (("worst KS", 31), ("least kept", 31), ("zeros off by", 31), ("far", 0))
    print(f"  {'table':<20} {'epsilon':>7}  {''.join(head.ljust(width) for head, width in heads)}")
    for name in tables:
        table = _plain(pq.read_table(folder / f"{name}.parquet"))
        schema = generous_schema(table)
        numbers = sp.Schema(
            {column: kind for column, kind in schema.items() if isinstance(kind, (sp.Real, sp.Integer))}
        )
        for epsilon in epsilons:
            found = _measured(table, schema, numbers, epsilon, n_releases)
            worst = {
                what: (max if what != "kept" else min)(by.items(), key=lambda item: item[1])
                for what, by in found.items()
            }
            shown = "  ".join(f"{value:.3f} {column:<24}" for column, value in worst.values())
            print(f"  {name:<20} {epsilon:>7}  {shown}", flush=True)
            if epsilon == "1":
                results += [
                    Result(f"{name}: worst KS ({worst['KS'][0]})", worst["KS"][1], MOST_KS, ""),
                    Result(f"{name}: least kept ({worst['kept'][0]})", worst["kept"][1], LEAST_KEPT, "", is_floor=True),
                    Result(f"{name}: zeros off by ({worst['zeros'][0]})", worst["zeros"][1], MOST_ZEROS, ""),
                ]
    return results


# Columns of one tree, by the table that has them.
TREES = (
    ("adult", ("age", "capital-gain", "hours-per-week")),
    ("creditcard", ("Amount",)),
    ("creditcard", ("Time", "V1", "Amount")),
    ("creditcard", ("Time", "V1", "V2", "V3", "V4", "V5", "V6", "Amount")),
    ("nyc_taxi", ("fare_amount", "tip_amount")),
    ("nyc_taxi", ("duration_s", "trip_distance", "fare_amount", "tip_amount", "tolls_amount", "total_amount")),
    ("diamonds", ("carat", "price")),
    ("diamonds", ("carat", "depth", "table", "x", "y", "z", "price")),
    ("credit_default_uci", ("LIMIT_BAL", "PAY_AMT1")),
    ("credit_default_uci", ("LIMIT_BAL", "AGE", "BILL_AMT1", "PAY_AMT1", "PAY_AMT2")),
    ("bank_additional", ("age", "duration", "euribor3m", "nr.employed", "cons.conf.idx")),
    ("census_income", ("age", "wage per hour", "capital gains", "dividends from stocks")),
    ("california_housing", ("total_rooms", "median_income", "median_house_value")),
    ("uber_pickups_nyc", ("lon", "lat")),
)


def run_trees(
    folder: Path,
    make: Callable[[str], sp.KDTreeSynthesizer | sp.ForestSynthesizer],
    *,
    epsilons: Sequence[str],
    n_releases: int,
) -> None:
    """Print a line for each set of columns and epsilon: the worst column by each measure, and pairs."""
    for name, columns in TREES:
        table = pq.read_table(folder / f"{name}.parquet", columns=list(columns))
        schema = generous_schema(table, few_values=0)
        for epsilon in epsilons:
            found: dict[str, list[float]] = defaultdict(list)
            started = time.perf_counter()
            for seed in range(n_releases):
                drawn = make(epsilon).fit(table, schema).sample(seed=seed, frame="pyarrow")
                shares = metrics.common_values_kept(table, drawn, schema).values()
                found["KS"].append(max(metrics.ks_distance(table, drawn, schema).values()))
                found["kept"].append(float(np.mean(list(shares) or [np.nan])))
                found["zeros"].append(max(metrics.zeros_off(table, drawn, schema).values(), default=0.0))
                found["pairs"].append(pair_distance(table, drawn))
            shown = "  ".join(f"{what} {np.mean(each):.3f}" for what, each in found.items())
            elapsed = (time.perf_counter() - started) / n_releases
            print(f"  {name:<20} {len(columns)} columns, epsilon {epsilon:>4}:  {shown}  {elapsed:.2f} s", flush=True)


def pair_distance(real: pa.Table, drawn: pa.Table, *, n_bins: int = 16) -> float:
    """Total variation of pairs of columns on quantile bins, piles being bins of their own; the mean over pairs."""
    places, sizes = [], []
    for name in real.column_names:
        kind = real[name].to_numpy().dtype
        values, others = (table[name].to_numpy().astype(kind).astype(np.float64) for table in (real, drawn))
        common, counts = np.unique(values, return_counts=True)
        piles = common[counts > len(values) / n_bins]
        edges = np.quantile(values, np.arange(1, n_bins) / n_bins, method="lower")
        edges = np.unique(np.concatenate([edges, piles, np.nextafter(piles, np.inf)]))
        places.append([np.searchsorted(edges, each, side="right") for each in (values, others)])
        sizes.append(len(edges) + 1)
    distances = []
    for first, second in combinations(range(len(sizes)), 2):
        shares = [
            np.bincount(one * sizes[second] + other, minlength=sizes[first] * sizes[second]) / len(one)
            for one, other in zip(places[first], places[second], strict=True)
        ]
        distances.append(float(np.abs(shares[0] - shares[1]).sum() / 2))
    return float(np.mean(distances)) if distances else float("nan")


def _measured(
    table: pa.Table, schema: sp.Schema, numbers: sp.Schema, epsilon: str, n_releases: int
) -> dict[str, dict[str, float]]:
    """Means over releases, by measure and column; columns that a measure says nothing about are left out."""
    found: dict[str, dict[str, list[float]]] = {what: defaultdict(list) for what in ("KS", "kept", "zeros", "far")}
    real = table.select(list(numbers))
    floats = {name for name, column in numbers.items() if isinstance(column, sp.Real)}
    for seed in range(n_releases):
        rows = sp.ForestSynthesizer(epsilon, DELTA).fit(table, schema).sample(seed=seed, frame="pyarrow")
        drawn = rows.select(list(numbers))
        zeros = metrics.zeros_off(real, drawn, numbers)
        measured = {
            "KS": metrics.ks_distance(real, drawn, numbers),
            "kept": metrics.common_values_kept(real, drawn, numbers),
            "zeros": {name: off for name, off in zeros.items() if name in floats},
            "far": {"mean": float(np.mean([_far(real[name], drawn[name]) for name in numbers]))},
        }
        for what, by in measured.items():
            for name, value in by.items():
                found[what][name].append(value)
    for what, nothing in (("kept", 1.0), ("zeros", 0.0)):
        if not found[what]:
            found[what]["-"] = [nothing]
    return {what: {name: float(np.mean(each)) for name, each in by.items()} for what, by in found.items()}


def _far(real: pa.ChunkedArray, drawn: pa.ChunkedArray) -> float:
    """The Wasserstein distance of two columns of numbers in standard deviations of the real one."""
    shares = (np.arange(2000) + 0.5) / 2000
    values, others = (each.drop_null().to_numpy().astype(np.float64) for each in (real, drawn))
    gap = np.abs(np.quantile(values, shares) - np.quantile(others, shares)).mean()
    return float(gap / values.std()) if values.std() else 0.0


def generous_schema(table: pa.Table, *, few_values: int = _FEW_VALUES) -> sp.Schema:
    """Bounds that are powers of ten, and the values of whatever is not a number of many values."""
    return sp.Schema({name: _column(table[name], few_values) for name in table.column_names})


def _column(values: pa.ChunkedArray, few_values: int) -> sp.Column:
    nullable = values.null_count > 0
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        return sp.Category(sorted(values.drop_null().unique().to_pylist()), nullable=nullable)
    numbers = values.drop_null().to_numpy()
    if numbers.dtype.kind != "f" and len(np.unique(numbers)) <= few_values:
        return sp.Category(np.unique(numbers).tolist(), nullable=nullable)
    low = -_generous(float(numbers.min())) if numbers.min() < 0 else 0.0
    kind = sp.Real if numbers.dtype.kind == "f" else sp.Integer
    return kind(low, _generous(float(numbers.max())), nullable=nullable)


def _generous(extreme: float) -> float:
    """A power of ten between three and thirty times as large."""
    return float(10.0 ** math.ceil(math.log10(max(abs(extreme), 1e-9)) + 0.5))


def _plain(table: pa.Table) -> pa.Table:
    """Without numbers of rows, and without dictionaries."""
    table = table.select([name for name in table.column_names if name not in LEFT_OUT])
    for index, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(index, field.name, table[field.name].cast(field.type.value_type))
    return table


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder with the tables as Parquet files")
    parser.add_argument("--releases", type=int, default=5, help="releases of each table and epsilon")
    parser.add_argument("--epsilons", nargs="+", default=["1", "0.1"])
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--method", default="forest", choices=["forest", "tree", "pure-forest"])
    parser.add_argument("--even", action="store_true", help="of trees: even axes, as before there were pieces")
    given = parser.parse_args(arguments)
    if given.method != "forest":
        if given.even:
            tree.joint_lattice = tree_lattice  # type: ignore[attr-defined]
        make = sp.KDTreeSynthesizer if given.method == "tree" else partial(sp.ForestSynthesizer, delta=0)
        run_trees(given.data, make, epsilons=given.epsilons, n_releases=given.releases)
        return 0
    results = run(given.data, tables=given.tables, epsilons=given.epsilons, n_releases=given.releases)
    print(*results, sep="\n")
    return int(any(not result.is_met for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
