"""Numbers as tables have them, under generous round bounds: what a forest keeps of their shape, piles and zeros.

    python -m benchmarks.columns --data FOLDER [--releases 5] [--epsilons 1 0.1] [--tables adult nyc_taxi]

FOLDER holds the tables as Parquet files. For every table and epsilon, over several releases, of the worst column:

    KS       largest distance between the distribution functions of real and drawn values
    kept     how much of the ten commonest values comes back at exactly these values, where they hold a tenth of the
             rows or more: the sum of min(drawn, real) over them, against the sum of real
    zeros    how far the share of exact zeros is off, of columns of floats

Drawn values are compared in the type of the real column. Bounds are powers of ten, three to thirty times too wide;
they are read off the table, as a benchmark may. Targets are asserted at epsilon 1.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import spinney as sp
from benchmarks.harness import Result
from spinney import metrics

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
    print(f"  {'table':<20} {'epsilon':>7}  worst KS                       least kept                     zeros off by")
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


def _measured(
    table: pa.Table, schema: sp.Schema, numbers: sp.Schema, epsilon: str, n_releases: int
) -> dict[str, dict[str, float]]:
    """Means over releases, by measure and column; columns that a measure says nothing about are left out."""
    found: dict[str, dict[str, list[float]]] = {what: defaultdict(list) for what in ("KS", "kept", "zeros")}
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
        }
        for what, by in measured.items():
            for name, value in by.items():
                found[what][name].append(value)
    for what, nothing in (("kept", 1.0), ("zeros", 0.0)):
        if not found[what]:
            found[what]["-"] = [nothing]
    return {what: {name: float(np.mean(each)) for name, each in by.items()} for what, by in found.items()}


def generous_schema(table: pa.Table) -> sp.Schema:
    """Bounds that are powers of ten, and the values of whatever is not a number of many values."""
    return sp.Schema({name: _column(table[name]) for name in table.column_names})


def _column(values: pa.ChunkedArray) -> sp.Column:
    nullable = values.null_count > 0
    if not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        return sp.Category(sorted(values.drop_null().unique().to_pylist()), nullable=nullable)
    numbers = values.drop_null().to_numpy()
    if numbers.dtype.kind != "f" and len(np.unique(numbers)) <= _FEW_VALUES:
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
    given = parser.parse_args(arguments)
    results = run(given.data, tables=given.tables, epsilons=given.epsilons, n_releases=given.releases)
    print(*results, sep="\n")
    return int(any(not result.is_met for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
