"""Published figures of utility beside the true distances: how near they are, and how often their intervals hold.

Every release is a fit of its own, with noise from the system. The true distance is that of the private table from the
very rows that the figures are about, drawn again from the release by its seed and compared cell by cell.

    python -m benchmarks.utility_figures --data FOLDER [--only national,adult] [--releases 20] [--share 0.02]

FOLDER holds `adult.parquet`, and `nist_crc`, the folder of excerpts that NIST publishes with the Collaborative Research
Cycle.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import polars as pl
from numpy.typing import NDArray

import spinney as sp
from benchmarks.forest import tables
from benchmarks.nist import excerpt
from spinney.counting import states as distances
from spinney.release.utility import GAP_STEPS, NAMES
from spinney.synthesizers import utility

WANTED = 0.005  # half the width of the interval of the mean over pairs
_EXCERPTS = ("nist_crc", "nist_crc/diverse_communities_data_excerpts", ".")


def national(folder: Path) -> tuple[pl.DataFrame, sp.Schema]:
    """NIST's national excerpt, all columns."""
    places = [folder / name for name in _EXCERPTS if (folder / name / "data_dictionary.json").is_file()]
    return excerpt.load(places[0] if places else folder)


def adult(folder: Path) -> tuple[pl.DataFrame, sp.Schema]:
    """The census extract of 1994."""
    table = tables.load("adult", folder)
    return table.frame, table.schema


TABLES: dict[str, Callable[[Path], tuple[pl.DataFrame, sp.Schema]]] = {"national": national, "adult": adult}


def fitted(
    frame: pl.DataFrame, schema: sp.Schema, *, epsilon: str, share: str, delta: str | None
) -> tuple[sp.Release, NDArray[np.float64]]:
    """A release, and the true distances behind its figures, which the benchmark alone looks at."""
    seen: list[NDArray[np.int64]] = []
    honest = distances.true_figures

    def watched(*given: object) -> NDArray[np.int64]:
        seen.append(honest(*given))  # type: ignore[arg-type]
        return seen[-1]

    with mock.patch.object(utility, "true_figures", watched):
        model = sp.ForestSynthesizer(epsilon, delta, utility_share=share).fit(frame, schema)
    return model.release_, seen[0] / (2 * GAP_STEPS * frame.height)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", default=",".join(TABLES), help="tables, with commas between them")
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--share", default="0.02", help="the part of the budget that the figures get")
    parser.add_argument("--delta", default=None, help="0 for a pure release")
    asked = parser.parse_args()
    for name in asked.only.split(","):
        frame, schema = TABLES[name](asked.data)
        print(f"{name}: {frame.height:,} rows, {frame.width} columns, epsilon {asked.epsilon}, share {asked.share}")
        print(f"  {'release':>7}  " + "  ".join(f"{figure:^30}" for figure in NAMES))
        print(f"  {'':>7}  " + "  ".join(f"{'true':>7} {'published, 95 %':>22}" for _ in NAMES))
        held, errors, halves = [], [], []
        for number in range(1, asked.releases + 1):
            release, true = fitted(frame, schema, epsilon=asked.epsilon, share=asked.share, delta=asked.delta)
            assert release.utility is not None
            figures = [*release.utility]
            cells = [
                f"{one:7.4f} {figure.estimate:7.4f} {figure.low:6.4f}-{figure.high:6.4f}"
                for one, figure in zip(true, figures, strict=True)
            ]
            print(f"  {number:>7}  " + "  ".join(f"{cell:>30}" for cell in cells), flush=True)
            held.append([figure.low <= one <= figure.high for one, figure in zip(true, figures, strict=True)])
            errors.append([abs(figure.estimate - one) for one, figure in zip(true, figures, strict=True)])
            halves.append([(figure.high - figure.low) / 2 for figure in figures])
        for place, figure_name in enumerate(NAMES):
            n_held, error = sum(line[place] for line in held), np.mean([line[place] for line in errors])
            half = np.mean([line[place] for line in halves])
            summary = f"{n_held} of {len(held)} intervals hold; mean error {error:.4f}, half width {half:.4f}"
            print(f"  {figure_name:<14} {summary}")
        half = float(np.mean([line[2] for line in halves]))
        verdict = "met" if half <= WANTED else "missed"
        print(f"  the mean over pairs within {WANTED} (95 %): half width {half:.4f}, {verdict}")


if __name__ == "__main__":
    main()
