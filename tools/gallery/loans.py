"""A bank's card holders and who defaults: a forest of 24 columns with a target."""

from __future__ import annotations

import shutil
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from tools.gallery.work import EXAMPLES, OURS, REAL, Work, console, new_figure, save, table

import spinney as sp
from spinney.metrics import compare, train_on_synthetic

_TARGET = "default"
_CLASSIFIERS = ["Logistic Regression", "GBM"]
_STATES = range(-2, 5)
_BILLS = [f"BILL_AMT{month}" for month in range(1, 7)]
_QUANTILES = np.linspace(0.02, 0.98, 49)
_DRAWN = {"LIMIT_BAL": "credit limit", "BILL_AMT1": "last bill", "PAY_AMT1": "last payment", "AGE": "age"}


def measure(work: Work) -> dict[str, Any]:
    """Fit four fifths of the rows, and compare what is drawn with them and with those that were held out."""
    table_ = pl.read_parquet(work.data / "credit_default_uci.parquet")
    table_ = table_.rename({"default.payment.next.month": _TARGET}).sample(fraction=1.0, shuffle=True, seed=7)
    fitted, unseen = table_[: int(0.8 * table_.height)], table_[int(0.8 * table_.height) :]
    fitted.write_parquet(work.folder / "credit.parquet")
    shutil.copy(EXAMPLES / "credit.toml", work.folder)
    work.run("check", f"spinney check credit.parquet --schema credit.toml --target {_TARGET}")
    options = f"--epsilon 1 --target {_TARGET} --quality high"
    work.run("plan", f"spinney plan credit.toml --rows {fitted.height} {options}", lines=60)
    work.run("fit", f"spinney fit credit.parquet --schema credit.toml {options} --out credit.spinney")
    work.run("sample", f"spinney sample credit.spinney --rows {fitted.height} --out synthetic.parquet")
    work.run(
        "ask", 'spinney ask credit.spinney "proportion where default = 1 given PAY_0 = 2" "mean(LIMIT_BAL) by SEX"'
    )
    schema = sp.Schema.from_file(work.folder / "credit.toml")
    drawn = pl.read_parquet(work.folder / "synthetic.parquet")
    compared = compare(fitted, drawn, schema)
    rates = _rates(fitted, drawn, sp.load(work.folder / "credit.spinney"))
    _draw_rates(rates)
    _draw_columns(fitted, drawn)
    worst_pairs = sorted(compared.pairs.items(), key=lambda pair: -pair[1])[:5]
    auc = {
        name: train_on_synthetic(unseen, rows, schema, target=_TARGET, classifiers=_CLASSIFIERS)
        for name, rows in (("synthetic", drawn), ("real", fitted))
    }
    return {
        "rows": fitted.height,
        "unseen": unseen.height,
        "auc": {name: {each: float(value) for each, value in found.items()} for name, found in auc.items()},
        "rates": rates,
        "ks": {"mean": compared.mean_ks, "worst": list(compared.worst_ks)},
        "pairs": {
            "mean": float(np.mean(list(compared.pairs.values()))),
            "worst": [[*pair, value] for pair, value in worst_pairs],
        },
        "bills": [_neighbours(rows) for rows in (fitted, drawn)],
        "odd": [_odd(rows) for rows in (fitted, drawn)],
    }


def _rates(fitted: pl.DataFrame, drawn: pl.DataFrame, release: Any) -> list[dict[str, Any]]:
    """Who defaults, by the state of the last payment: real, synthetic, and as the release answers."""
    found = []
    for state in _STATES:
        answer = release.proportion({_TARGET: 1}, given={"PAY_0": state})
        shares = [float(rows.filter(pl.col("PAY_0") == state)[_TARGET].mean() or 0.0) for rows in (fitted, drawn)]
        found.append(
            {
                "state": state,
                "rows": fitted.filter(pl.col("PAY_0") == state).height,
                "real": shares[0],
                "synthetic": shares[1],
                "answer": [float(answer.estimate), float(answer.low), float(answer.high)],
            }
        )
    return found


def _neighbours(rows: pl.DataFrame) -> float:
    """Mean rank correlation of the bills of two successive months."""
    pairs = pairwise(_BILLS)
    return float(np.mean([rows.select(pl.corr(one, two, method="spearman")).item() for one, two in pairs]))


def _odd(rows: pl.DataFrame) -> float:
    """The share of rows in which no bill exceeds the limit by more than a tenth."""
    within = [(pl.col(bill) <= pl.col("LIMIT_BAL") * 1.1) for bill in _BILLS]
    return float(rows.select(pl.all_horizontal(within).mean()).item())


def _draw_rates(rates: list[dict[str, Any]]) -> None:
    figure, axes = new_figure(7.5, 3.4)
    places = np.arange(len(rates))
    axes.bar(places - 0.2, [one["real"] for one in rates], 0.38, color=REAL, label="real rows")
    axes.bar(places + 0.2, [one["synthetic"] for one in rates], 0.38, color=OURS, label="synthetic rows")
    middles = np.array([one["answer"][0] for one in rates])
    low, high = (np.array([one["answer"][end] for one in rates]) for end in (1, 2))
    ends = np.clip([middles - low, high - middles], 0, None)
    axes.errorbar(places + 0.2, middles, yerr=ends, fmt="none", ecolor="#20302a", capsize=3, label="95 % interval")
    axes.set_xticks(places, [str(one["state"]) for one in rates])
    axes.set(xlabel="PAY_0, months behind with the last payment", ylabel="default next month", ylim=(0, 1))
    axes.legend(loc="upper left")
    save(figure, "loans-rates.svg")


def _draw_columns(fitted: pl.DataFrame, drawn: pl.DataFrame) -> None:
    figure, every = new_figure(9.5, 2.7, ncols=len(_DRAWN))
    for axes, (name, label) in zip(every, _DRAWN.items(), strict=True):
        for rows, colour, title, width in ((fitted, REAL, "real", 4.0), (drawn, OURS, "synthetic", 1.2)):
            heights = np.quantile(rows[name].to_numpy(), _QUANTILES)
            axes.plot(_QUANTILES, heights, color=colour, label=title, linewidth=width)
        axes.set(title=f"{label} ({name})", xlabel="share of rows below")
        if name != "AGE":
            axes.set_yscale("symlog", linthresh=1000)
    every[0].legend()
    save(figure, "loans-columns.svg")


def blocks(record: dict[str, Any]) -> dict[str, str]:
    """What stands on the page, by the names of its places."""
    found, typed, seconds = record["figures"], record["transcripts"], record["seconds"]
    areas = [
        (name, f"{found['auc']['synthetic'][name]:.3f}", f"{found['auc']['real'][name]:.3f}") for name in _CLASSIFIERS
    ]
    rates = [
        (
            one["state"],
            f"{one['rows']:,}",
            f"{one['real']:.1%}",
            f"{one['synthetic']:.1%}",
            f"{one['answer'][1]:.1%} to {one['answer'][2]:.1%}",
            "yes" if one["answer"][1] <= one["real"] <= one["answer"][2] else "no",
        )
        for one in found["rates"]
    ]
    heads = ("PAY_0", "real rows", "default, real", "synthetic", "the release's interval", "holds")
    worst = "".join(f"| {one}, {two} | {value:.3f} |\n" for one, two, value in found["pairs"]["worst"])
    name, value = found["ks"]["worst"]
    return {
        "table": f"{found['rows']:,} card holders are fitted, and {found['unseen']:,} are held out to test on.\n",
        "check": console(typed["check"]),
        "plan": console(typed["plan"]),
        "fit": console("\n\n".join([typed["fit"], typed["sample"]]))
        + f"\nThe fit took {seconds['fit']:.0f} seconds with all loading.\n",
        "ask": console(typed["ask"]),
        "auc": table(("AUC on unseen card holders", "trained on synthetic rows", "trained on real rows"), areas),
        "rates": table(heads, rates)
        + f"\n{sum(line[-1] == 'yes' for line in rates)} of these {len(rates)} intervals hold the real share; "
        "95 of a hundred should.\n",
        "shortfalls": f"Single columns are off by {found['ks']['mean']:.3f} on average (Kolmogorov-Smirnov), and the "
        f"worst, {name}, by {value:.3f}.\n"
        f"Pairs of columns are off by {found['pairs']['mean']:.3f} on average (total variation), and most so:\n\n"
        f"| pair | total variation |\n|---|---:|\n{worst}\n"
        f"Bills of two successive months have a rank correlation of {found['bills'][0]:.2f}, "
        f"and of {found['bills'][1]:.2f} in the synthetic rows.\n"
        f"All six bills lie within 110 % of the limit for {found['odd'][0]:.1%} of the real card holders, "
        f"and for {found['odd'][1]:.1%} of the synthetic ones.\n",
    }
