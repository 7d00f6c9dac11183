"""A tiny run of every command that contributors are shown, and the made-up tables that those read.

`TINY` has the arguments of each, in a folder where `data` holds tables and `out` is free; what follows a bar is run
after it, so that figures reach the page that shows them. `FAST` are those that take a second or two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
from benchmarks.forest.tables import DESCRIPTIONS
from benchmarks.nist.excerpt import TEN
from numpy.typing import NDArray

import spinney as sp
from spinney.columns import Category, Column

N_ROWS = 1_500

TINY: dict[str, tuple[str, ...]] = {
    "benchmarks": ("--quick",),
    "benchmarks.audit_zoo": ("--seconds 1 --only shape --out out/zoo.json",),
    "benchmarks.codes": ("--releases 1",),
    "benchmarks.columns": (
        "--data data --releases 1 --epsilons 1 --tables diamonds",
        "--data data --releases 1 --epsilons 1 --method tree",
    ),
    "benchmarks.coverage": ("--data data --out out/coverage --quick",),
    "benchmarks.duckdb_counting": ("--folder out --rows 20_000",),
    "benchmarks.fidelity": ("--quick --out out/fidelity",),
    "benchmarks.forest": ("--quick --out out/forest | tools/forest_page.py --from out/forest",),
    "benchmarks.ledger_load": ("--folder out/ledgers --postgres none --charges 20 --processes 4",),
    "benchmarks.nist": (
        "--data data/nist_crc --out out/nist --releases 1 --only 10-columns-epsilon-1-fast --scorer data/scorer"
        " | tools/nist_page.py --from out/nist",
    ),
    "benchmarks.nist.rules": ("--data data/nist_crc --releases 1",),
    "benchmarks.people": (
        "--data data --out out/people --only cdnow --epsilon 1 --seeds 1 --methods linked real one-row 10-rows"
        " | tools/people_page.py --from out/people",
    ),
    "benchmarks.places": ("--data data --releases 1 --epsilons 1 --tables uk_accidents",),
    "benchmarks.regressions": ("--data data --releases 1 --only diamonds",),
    "benchmarks.sampling": ("--folder out --rows 50_000",),
    "benchmarks.scale": (
        "--folder out/scale --rows 20_000 --only files cells model duckdb --out docs/scale/results.json"
        " | tools/scale_page.py | tools/peers_page.py",
        "--folder out/scale --rows 20_000 --only forest",
        "--folder out/scale --rows 20_000 --only spark peers",
        "--folder out/scale --rows 20_000 --only forest_spark",
    ),
    "benchmarks.sense": ("--out out/sense --quick",),
    "benchmarks.tables": (
        "--data data --out out/tables --only diamonds --epsilon 1 --quality fast --target none --runs 1"
        " --distances-only | tools/tables_page.py --from out/tables",
    ),
    "benchmarks.utility_figures": ("--data data --releases 1 --only adult,national",),
    "benchmarks.wide_tree": ("",),
    "tools.gallery": ("--data data --only city", "--data data --only loans", "--data data --only players", "--check"),
    "tools.website": ("",),
    "tools/audit_page.py": ("", "--check"),
    "tools/cli_page.py": ("", "--check"),
    "tools/coverage_page.py": ("", "--check"),
    "tools/epsilon_table.py": ("--check",),
    "tools/example_reports.py": ("--data data",),
    "tools/forest_page.py": ("", "--check"),
    "tools/nist_page.py": ("", "--check"),
    "tools/notebooks.py": ("", "--check"),
    "tools/paper_page.py": ("", "--check"),
    "tools/peers_page.py": ("", "--check"),
    "tools/people_page.py": ("", "--check"),
    "tools/same_results.py": ("--against HEAD --only asked-tree-2-add",),
    "tools/scale_page.py": ("", "--check"),
    "tools/tables_page.py": ("", "--check"),
    "tools/walk.py": ("",),
}  # fmt: skip

FAST: dict[str, tuple[str, ...]] = {
    "benchmarks": ("startup --quick",),
    "benchmarks.ledger_load": ("--folder out/few --postgres none --charges 4 --processes 2",),
}

ELSEWHERE: dict[str, str] = {
    "benchmarks.forest.limits": "a process that benchmarks.forest starts",
    "benchmarks.people.scale": "a process that benchmarks.people starts",
    "benchmarks.scale.child": "a process that benchmarks.scale starts",
    "benchmarks.tables.worker": "a process of the environment that has mbi, which is not ours",
    "benchmarks.nist.score": "a process of the environment that has sdnist, which is not ours",
    "tools/image_test.py": "builds an image, where a container engine works; `make image-test`",
    "tools/other_versions.py": "makes environments; tests/unit/house/test_other_versions.py looks at its parts",
    "tools/wheel_test.py": "makes an environment from nothing; `make wheel-test`",
}

# What stands in for `sdnist`: scores of the right form for every file of rows.
_SCORER = """#!/usr/bin/env python3
import json, sys
out = sys.argv[sys.argv.index("--out") + 1]
rows = sys.argv[sys.argv.index("--out") + 2 :]
found = {"rows": 1, "features": ["AGEP", "SEX"], "k_marginal": 900.0, "areas": {}, "columns": {}, "rules": {}}
found |= {"inconsistent": dict.fromkeys(("all", "age", "work", "housing"), 0), "propensity": 0.1, "matched": 1.0}
json.dump([found | {"file": name} for name in rows], open(out, "w"))
"""


def tiny_data(folder: Path) -> None:
    """Made-up tables with the columns of those that benchmarks read, under their names."""
    (folder / "people").mkdir(parents=True)
    _described(folder)
    _maps(folder)
    _people(folder / "people")
    _excerpt(folder / "nist_crc")
    (folder / "scorer").write_text(_SCORER)
    (folder / "scorer").chmod(0o755)


def _drawn(column: Column, rng: np.random.Generator, n_rows: int) -> NDArray[np.generic]:
    """Values between the bounds, or of the list."""
    if isinstance(column, Category):
        return np.array(column.listed)[rng.integers(0, len(column.listed), n_rows)]
    assert isinstance(column, sp.Integer | sp.Real)
    low, high = float(column.low), float(column.high)
    values = low + (high - low) * rng.beta(1.2, 6, n_rows)
    if isinstance(column, sp.Integer):
        return np.round(values).astype(np.int64)
    return np.round(values, 1) if column.multiple_of is not None else values


def _frame(columns: Mapping[str, Column], *, seed: int = 0, n_rows: int = N_ROWS) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame({name: _drawn(column, rng, n_rows) for name, column in columns.items()})


def _described(folder: Path) -> None:
    """Every table of `benchmarks.forest.tables`, with a target and what schemas of the examples want besides."""
    root = Path(__file__).parents[2] / "examples"
    for seed, (name, one) in enumerate(DESCRIPTIONS.items()):
        more = {
            "adult": dict(sp.Schema.from_file(root / "adult.toml")) | {"is_test": sp.Category((0, 1))},
            "diamonds": {"color": sp.Category(("D", "E", "F")), "cut": sp.Category(("Ideal", "Good", "Fair"))},
            "credit_default_uci": dict.fromkeys(("SEX", "EDUCATION", "MARRIAGE"), sp.Category((1, 2))),
            "creditcard": {"Time": sp.Integer(0, 200_000)},
            "census_income": {"row_id": sp.Integer(0, 10**6), "sex": sp.Category(("Male", "Female"))},
            "nyc_taxi": {"RateCodeID": sp.Integer(0, 100), "VendorID": sp.Category((1, 2))},
        }.get(name, {})
        target = {one.target: sp.Category((*one.positives, "rest" if isinstance(one.positives[0], str) else 3))}
        _frame(target | dict(one.columns) | more, seed=seed).write_parquet(folder / f"{name}.parquet")


def _maps(folder: Path) -> None:
    city = {"lng": sp.Real("-0.51", "0.33"), "lat": sp.Real("51.29", "51.69")}
    _frame(city, n_rows=4 * N_ROWS).write_parquet(folder / "uk_accidents.parquet")
    around = {"lon": sp.Real("-74.2", "-73.8"), "lat": sp.Real("40.5", "40.9"), "count": sp.Integer(1, 3)}
    _frame(around).write_parquet(folder / "uber_pickups_nyc.parquet")


def _people(folder: Path) -> None:
    """Persons by key, with one to six rows each."""
    rng = np.random.default_rng(1)
    n = 400
    keys = np.repeat(np.arange(n), rng.integers(1, 7, n))
    day = rng.integers(0, 545, len(keys))
    cdnow = {"person": keys, "day": np.sort(day), "cds": rng.integers(1, 9, len(keys))}
    prices = np.round(rng.lognormal(3, 1, len(keys)), 2).clip(0, 1_999)
    pl.DataFrame(cdnow | {"dollars": prices}).write_parquet(folder / "cdnow_rows.parquet")
    player = {
        "birth": sp.Integer(1850, 1990), "height": sp.Integer(60, 80), "bats": sp.Category(("R", "L", "B", "?")),
        "throws": sp.Category(("R", "L", "?")), "usa": sp.Category((0, 1)), "heavy": sp.Category((0, 1)),
    }  # fmt: skip
    persons = _frame(player, seed=2, n_rows=n).with_columns(pl.Series("person", np.arange(n)))
    persons.write_parquet(folder / "lahman_persons.parquet")
    season = {"league": sp.Category(("NL", "AL", "other")), "G": sp.Integer(0, 160), "AB": sp.Integer(200, 600)}
    season |= {"H": sp.Integer(50, 190), **{name: sp.Integer(0, 40) for name in ("HR", "SB", "BB")}}
    rows = _frame(season, seed=3, n_rows=len(keys))
    years = 1900 + np.arange(len(keys)) - np.searchsorted(keys, keys)
    rows.with_columns(pl.Series("person", keys), pl.Series("year", years)).write_parquet(folder / "lahman_rows.parquet")


def _excerpt(folder: Path) -> None:
    """NIST's files: rows as text with "N" for none, the dictionary, and what is said of the excerpt."""
    codes = {
        "PUMA": [f"01-0130{number}" for number in range(4)], "SEX": ["1", "2"], "MSP": ["N", "1", "6"],
        "RAC1P": ["1", "2"], "HOUSING_TYPE": ["1", "2", "3"], "OWN_RENT": ["0", "1", "2"],
        "EDU": ["N", *map(str, range(1, 13))], "PINCP_DECILE": ["N", *map(str, range(10))], "DVET": ["N", "1"],
        "DEYE": ["1", "2"], "NPF": ["N", "2", "3", "4"], "INDP": ["N", "0170", "8680"],
        "INDP_CAT": ["N", *map(str, range(19))], "NOC": ["N", "0", "1", "2"],
    }  # fmt: skip
    assert set(TEN) <= {*codes, "AGEP"}
    rng = np.random.default_rng(4)
    rows = {name: rng.choice(values, N_ROWS) for name, values in codes.items()}
    rows["AGEP"] = rng.integers(0, 90, N_ROWS).astype(str)
    rows["DENSITY"] = np.array(["100.5", "2000.0", "30.0", "900.0"])[[int(code[-1]) for code in rows["PUMA"]]]
    rows["PINCP"] = rng.integers(0, 100_000, N_ROWS).astype(str)
    (folder / "national").mkdir(parents=True)
    pl.DataFrame(rows).write_csv(folder / "national/national2019.csv")
    described = {name: {"values": codes.get(name, [])} for name in rows}
    (folder / "national/national2019.json").write_text(json.dumps({"schema": described}))
    dictionary = {name: {"values": dict.fromkeys(codes.get(name, []), "")} for name in rows}
    (folder / "data_dictionary.json").write_text(json.dumps(dictionary))
