"""A census table before NIST's own scorer, from what `python -m benchmarks.nist` measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from tools.gallery.work import OTHER, OURS, REAL, ROOT, new_figure, save, table

_RESULTS = ROOT / "docs" / "nist" / "results.json"
_PUBLISHED = ROOT / "benchmarks" / "nist" / "published.json"
_N_WORST = 8
_TEN = 10  # the columns of NIST's demographic reports

Record = Mapping[str, Any]


def _settings() -> list[Record]:
    return list(json.loads(_RESULTS.read_text(encoding="utf-8"))["settings"])


def _published() -> list[Record]:
    return list(json.loads(_PUBLISHED.read_text(encoding="utf-8"))["reports"])


def _best(settings: Sequence[Record], *, is_whole: bool) -> Record:
    """The setting at epsilon 1 with the best score, of the ten columns or of all."""
    chosen = [one for one in settings if one["epsilon"] == "1" and (one["columns"] > _TEN) == is_whole]
    return max(chosen, key=_score)


def _score(one: Record) -> float:
    return mean(each["k_marginal"] for each in one["releases"])


def draw() -> None:
    """Scores beside those that NIST publishes, and what each column loses."""
    figure, (left, right) = new_figure(9.5, 3.6, ncols=2, width_ratios=(3, 2))
    settings = _settings()
    bars = [(f"Spinney, {one['name'].replace('epsilon', 'ε')}", _score(one), OURS) for one in settings]
    for each in _published():
        budget = f"ε {each['epsilon']}" if each["epsilon"] else "no guarantee"
        name = f"{each['system']}, {each['columns']} columns, {budget}"
        bars.append((name, each["k_marginal"], OTHER if each["epsilon"] else REAL))
    bars.sort(key=lambda bar: bar[1])
    left.barh([bar[0] for bar in bars], [bar[1] for bar in bars], color=[bar[2] for bar in bars], height=0.7)
    left.tick_params(axis="y", labelsize=7)
    left.set(xlim=(0, 1000), xlabel="k-marginal score, 1,000 is best")
    lost = _lost(_best(settings, is_whole=True))[::-1]
    right.barh([name for name, _ in lost], [value for _, value in lost], color=OURS, height=0.7)
    right.set(xlabel="mean total variation of its pairs", title="which columns lose most")
    save(figure, "census-scores.svg")


def _lost(one: Record) -> list[tuple[str, float]]:
    names = one["releases"][0]["columns"]
    found = {name: mean(each["columns"][name]["together"] for each in one["releases"]) for name in names}
    return sorted(found.items(), key=lambda item: -item[1])[:_N_WORST]


def blocks() -> dict[str, str]:
    """What stands on the page, by the names of its places."""
    settings, published = _settings(), _published()
    ours = [
        (
            one["name"],
            len(one["releases"]),
            f"{_score(one):.1f}",
            f"{mean(each['inconsistent']['all'] for each in one['releases']):,.0f}",
            f"{mean(each['propensity'] for each in one['releases']):.4f}",
        )
        for one in settings
    ]
    theirs = [
        (
            f"{each['system']} ({each['library']})",
            each["columns"],
            each["epsilon"] or "none",
            each["k_marginal"],
            f"{sum(each['inconsistent'].values()):,}",
        )
        for each in published
    ]
    ten, every = _best(settings, is_whole=False), _best(settings, is_whole=True)
    private = [each for each in published if each["epsilon"] == "1" and each["columns"] == _TEN]
    others = [each for each in published if not each["epsilon"] and each["columns"] > 20]
    rival, cart = (max(group, key=lambda each: each["k_marginal"]) for group in (private, others))
    wanted = [one for one in settings if one["wanted"] is not None and _score(one) < one["wanted"]]
    return {
        "ours": table(("release", "releases", "k-marginal", "rows that break a rule", "propensity"), ours),
        "published": table(("system", "columns", "epsilon", "k-marginal", "broken rules, added up"), theirs),
        "reading": f"With ten columns at epsilon 1 our best score is {_score(ten):.1f}; the best that NIST publishes "
        f"for the same columns and budget is {rival['k_marginal']}, by {rival['system']}.\n"
        f"With all columns our best is {_score(every):.1f}, and {cart['system']}, which promises nothing, "
        f"reaches {cart['k_marginal']} with {cart['columns']}.\n"
        + "".join(
            f"Our own target for “{one['name']}” was {one['wanted']:g}, and it is missed ({_score(one):.1f}).\n"
            for one in wanted
        ),
    }
