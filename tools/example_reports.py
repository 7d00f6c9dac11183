"""Makes the reports under `docs/examples/`: of Adult, and of a map of road accidents.

python tools/example_reports.py --data FOLDER    fit both tables anew, at epsilon 1, and write their reports

FOLDER holds `adult.parquet`, whose column `is_test` marks rows that are not fitted, and `uk_accidents.parquet` with
columns `lng` and `lat`. Noise comes from the operating system, so every run gives other reports.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

import spinney as sp

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "examples"
LARGEST = 3_000_000  # bytes of a page


def adult(data: Path) -> Path:
    """A forest of the training rows of Adult, with income as its target."""
    table = pq.read_table(data / "adult.parquet")
    is_test = table.column("is_test").cast("bool")
    schema = sp.Schema.from_file(ROOT / "examples" / "adult.toml")
    model = sp.ForestSynthesizer(epsilon="1", target="income").fit(
        table.filter(pc.invert(is_test)).drop_columns(["is_test"]), schema
    )
    return _write(
        model,
        "adult.html",
        title="Adult, census income of 1994",
        purpose="An example of a report on a mixed table with a target.",
        licence="The table: UCI Machine Learning Repository, CC BY 4.0.",
    )


def accidents(data: Path) -> Path:
    """A tree of longitude and latitude, drawn as a map."""
    table = pq.read_table(data / "uk_accidents.parquet")
    schema = sp.Schema({"lng": sp.Real(-9, 3), "lat": sp.Real(49, 61)})
    model = sp.KDTreeSynthesizer(epsilon="1").fit(table.select(["lng", "lat"]), schema)
    return _write(
        model,
        "accidents.html",
        title="Road accidents in Great Britain",
        purpose="An example of a report on coordinates.",
    )


def _write(model: sp.ForestSynthesizer | sp.KDTreeSynthesizer, name: str, **stated: str) -> Path:
    OUT.mkdir(exist_ok=True)
    model.report(OUT / name, overwrite=True, **stated)
    size = (OUT / name).stat().st_size
    if size > LARGEST:
        raise SystemExit(f"{name} has {size:,} bytes, more than {LARGEST:,}")
    return OUT / name


def main() -> None:
    """Make both reports."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the two tables")
    data = parser.parse_args().data
    for path in (adult(data), accidents(data)):
        print(f"wrote {path.relative_to(ROOT)}, {path.stat().st_size:,} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
