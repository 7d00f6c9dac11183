"""Codes: what a private list finds of 5,000 codes with a heavy tail, and what a hierarchy is worth.

    python -m benchmarks.codes [--releases 20] [--data FOLDER]

The list gets epsilon 0.2 and delta 1e-6 of 100,000 rows: under add-remove every code above 100 rows must be found in
every release, and none invented. With FOLDER, the industry codes of NIST's excerpt (`nist_crc`) are released with and
without their groups: total variation of codes and of groups, at epsilon 1, mean over a quarter of the releases.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import spinney as sp
from benchmarks.harness import Result

N_ROWS, N_CODES, EPSILON, DELTA = 100_000, 5_000, "0.2", "1e-6"
_COLUMNS = ("PUMA", "SEX", "INDP", "INDP_CAT", "EDU", "PINCP_DECILE")


def run(n_releases: int, folder: Path | None) -> list[Result]:
    results = [result for unit in ("add-remove", "replace-one") for result in private_list(unit, n_releases)]
    return results if folder is None else [*results, *hierarchy(folder / "nist_crc", max(1, n_releases // 4))]


def heavy_tail() -> pd.Series:
    """Codes whose frequencies fall like one over their rank."""
    rng = np.random.default_rng(3)
    weights = 1 / (np.arange(N_CODES) + 6) ** 1.1
    names = np.array([f"C{place:05d}" for place in rng.permutation(N_CODES)])
    return pd.Series(names[rng.choice(N_CODES, N_ROWS, p=weights / weights.sum())], name="code")


def private_list(unit: str, n_releases: int) -> list[Result]:
    """Misses and inventions over all releases; those of replace-one are shown, and the target is that of 200 rows."""
    codes = heavy_tail()
    counts = codes.value_counts()
    schema = sp.Schema({"code": sp.Category("private"), "kind": sp.Boolean()})
    table = pd.DataFrame({"code": codes, "kind": np.arange(N_ROWS) % 2 == 0})
    missed, found_rows, invented = {100: 0, 200: 0}, [], 0
    for _ in range(n_releases):
        # A share of a fifth of (1, 5e-6) is the budget that is meant.
        model = sp.ForestSynthesizer(1, "5e-6", unit=unit, values_share=EPSILON, assumed_rows=N_ROWS)
        found = set(model.fit(table, schema).schema_["code"].listed) - {"other"}
        for least in missed:
            missed[least] += len(set(counts[counts > least].index) - found)
        invented += len(found - set(counts.index))
        found_rows.append(counts[list(found)].sum() / N_ROWS)
    n_common = int((counts > 100).sum())
    print(
        f"  {unit:<12} of {n_common} codes above 100 rows {missed[100] / n_releases:.2f} are missed a release, "
        f"{missed[200] / n_releases:.2f} of those above 200; listed codes hold {np.mean(found_rows):.1%} of the rows"
    )
    least = 100 if unit == "add-remove" else 200
    return [
        Result(f"{unit}: codes above {least} rows missed, {n_releases} releases", missed[least], 0, ""),
        Result(f"{unit}: codes invented, {n_releases} releases", invented, 0, ""),
    ]


def hierarchy(folder: Path, n_releases: int) -> list[Result]:
    """Industry codes by themselves, and with their groups."""
    table = pd.read_csv(folder / "national" / "national2019.csv", dtype=str)[list(_COLUMNS)]
    parents = dict(zip(table["INDP"], "group " + table["INDP_CAT"], strict=True))
    listed = {name: sorted(table[name].unique()) for name in _COLUMNS}
    distances: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for is_grouped, found in distances.items():
        columns = {name: sp.Category(values) for name, values in listed.items()}
        if is_grouped:
            columns["INDP"] = sp.Category(listed["INDP"], hierarchy=parents)
        for seed in range(n_releases):
            drawn = sp.ForestSynthesizer(1, DELTA).fit(table, columns).sample(seed=seed)
            real, ours = table["INDP"], drawn["INDP"]
            found.append((_distance(real, ours), _distance(real.map(parents), ours.map(parents))))
    (codes, groups), (flat_codes, flat_groups) = (
        np.mean(distances[is_grouped], axis=0) for is_grouped in (True, False)
    )
    print(f"  industry codes {flat_codes:.3f}, with groups {codes:.3f}; groups {flat_groups:.3f}, counted {groups:.3f}")
    return [Result("industry groups: distance with the hierarchy against without", groups / flat_groups, 0.6, "x")]


def _distance(real: pd.Series, drawn: pd.Series) -> float:
    shares = [column.value_counts(normalize=True) for column in (real, drawn)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=20, help="releases of each kind")
    parser.add_argument("--data", type=Path, help="a folder that holds nist_crc")
    given = parser.parse_args(arguments)
    results = run(given.releases, given.data)
    print(*results, sep="\n")
    return int(any(not result.is_met for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
