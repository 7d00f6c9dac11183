"""Scores files of rows with NIST's `sdnist`. Runs in the environment that has it, which has no Spinney.

`python score.py --data FOLDER --out SCORES.json ROWS.csv ...` writes one record for each file, with the figures that
`sdnist`'s report states: its own classes read, bin and compare the rows; only pictures and pages are left out, and the
scores of subsamples, which are the same for every file.

    k_marginal       0 to 1,000, higher is better: 1,000 (1 - mean total variation over pairs of columns); with PUMA
                     among the columns every pair is taken within areas, that is, as a triple with PUMA
    k_marginal_flat  the same without areas, where PUMA is among the columns
    areas            the score of each area
    columns          mean total variation of the pairs (or triples) that a column is part of; alone is its own
    inconsistent     rows that break a rule of `sdnist`, by group and altogether; rules says how many break which
    propensity       mean squared error of a decision tree that tells rows from real ones; 0 is best
    pearson, kendall mean absolute difference of correlations over pairs of columns
    matched          percent of the rows that are unique in the real table and occur among these
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sdnist.load import TestDatasetName

# First, for sdnist's rooms import each other in a circle.
from sdnist.report.dataset import Dataset  # isort: skip
from sdnist.metrics.inconsistency import Inconsistencies
from sdnist.metrics.kmarginal import KMarginal
from sdnist.metrics.pearson_correlation import PearsonCorrelationDifference
from sdnist.metrics.propensity import PropensityMSE
from sdnist.metrics.unique_exact_matches import unique_exact_matches
from sdnist.utils import SimpleLogger

LEFT_OUT = ("PUMA", "INDP")  # sdnist pairs all columns but these


def score(rows: Path, data: Path) -> dict[str, Any]:
    """All figures of one file."""
    with contextlib.redirect_stdout(io.StringIO()):
        read = Dataset(rows, SimpleLogger(), TestDatasetName.national2019, data, download=False)
        groups = read.config["k_marginal"]["group_features"]
        target, drawn = read.d_target_data, read.d_synthetic_data
        k_marginal = KMarginal(target, drawn, groups)
        found: dict[str, Any] = {
            "file": rows.name,
            "rows": len(drawn),
            "features": sorted(read.features),
            "k_marginal": float(k_marginal.compute_score()),
            "areas": {},
            "columns": _by_column(k_marginal, groups),
        }
        if groups:
            names = list(read.schema["PUMA"]["values"])
            found["areas"] = {names[int(area)]: round(float(value), 1) for area, value in k_marginal.scores.items()}
            found["k_marginal_flat"] = float(KMarginal(target, drawn, []).compute_score())
        found |= _inconsistent(read) | _correlations(read)
        with tempfile.TemporaryDirectory() as folder:
            propensity = PropensityMSE(read.t_target_data, read.t_synthetic_data, Path(folder))
            propensity.compute_score()
            found["propensity"] = float(propensity.pmse_score)
        _, found["matched"], _, found["unique"] = unique_exact_matches(read.c_target_data, read.c_synthetic_data)
    return found


def _by_column(k_marginal: KMarginal, groups: list[str]) -> dict[str, dict[str, float]]:
    """What each column adds to the distance: the mean over its pairs, and its own."""
    together: dict[str, list[float]] = {}
    for pair in k_marginal.marginal_pairs():
        distance = float(k_marginal.marginal_densities(k_marginal.td, groups + pair)[2].sum()) / 2
        for name in pair:
            together.setdefault(name, []).append(distance)
    alone = {
        name: float(k_marginal.marginal_densities(k_marginal.td, [name])[2].sum()) / 2
        for name in k_marginal.td.columns
        if name not in LEFT_OUT
    }
    return {
        name: {"together": round(float(np.mean(found)), 5), "alone": round(alone[name], 5)}
        for name, found in together.items()
    }


def _inconsistent(read: Dataset) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        checked = Inconsistencies(read.c_synthetic_data, Path(folder))
        checked.compute()
    by_rule, broken = {}, set()
    for rule in checked.report_data["age"]["inconsistencies"]:  # sdnist 2.4 lists the rules of all groups there
        by_rule[rule["inconsistency_name"]] = rule["inconsistency_violations"]
        broken |= set(rule["inconsistent_data_indexes"])
    groups = {
        each["Inconsistency Group"].lower(): each["Number of Records Inconsistent"]
        for each in checked.report_data["summary"]
    }
    return {"inconsistent": {"all": len(broken)} | groups, "rules": by_rule}


def _correlations(read: Dataset) -> dict[str, float]:
    """Over the columns that sdnist's report correlates."""
    names = sorted(read.config["correlation_features"])
    pearson = PearsonCorrelationDifference(read.t_target_data, read.t_synthetic_data, names)
    pearson.compute()
    kendall = read.t_synthetic_data[names].corr("kendall") - read.t_target_data[names].corr("kendall")
    apart = ~np.eye(len(names), dtype=bool)
    return {
        "pearson": float(np.nanmean(np.abs(pearson.pp_corr_diff.to_numpy()[apart]))),
        "kendall": float(np.nanmean(np.abs(kendall.to_numpy()[apart]))),
    }


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="+", type=Path, help="CSV files of rows, with N for not applicable")
    parser.add_argument("--data", type=Path, required=True, help="NIST's folder of excerpts")
    parser.add_argument("--out", type=Path, required=True, help="where the scores go, as JSON")
    options = parser.parse_args(arguments)
    pd.options.mode.chained_assignment = None
    found = []
    for rows in options.rows:
        found.append(score(rows, options.data))
        print(f"{rows.name}: k-marginal {found[-1]['k_marginal']:.1f}", flush=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
