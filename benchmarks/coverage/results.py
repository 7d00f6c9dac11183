"""Results of a run, one JSON line a release, and what they say: cells, each with its verdict.

A cell is a table, a unit, an epsilon, a kind of question and what its answers call themselves. Answers of one release
share its noise, so a share of intervals that held has the standard error of a ratio of sums over releases, and at least
that of as many independent intervals of the nominal level. What is judged, at 95 %:

    certified      fails if the share is below the level, at 1 in 20 over all certified cells together (Holm)
    calibrated     is off if the share is outside 93-97 % by more than two standard errors, each cell by itself:
                   of cells that lie just at an edge, one in 44 is said to be off by chance; those that remain off over
                   all calibrated cells together (Holm, 1 in 20) fail, and a run with more than that share fails too
    indicative     likewise, if fewer than 85 % hold
    no width       fails wherever an interval that is not certified has none
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist, median
from typing import Any

from benchmarks.coverage.tables import HELD_OUT
from benchmarks.coverage.trials import LEVEL, ROWS_LEVEL, Outcome, Rows, Tally, Trial

LAYOUT = 2
# The shares of intervals that statements aim at, at 95 %.
AIMS = {"certified": (LEVEL, 1.0), "calibrated": (0.93, 0.97), "indicative": (0.85, 1.0)}
_CLEARLY = 2.0  # standard errors
_ALTOGETHER = 0.05  # chance of a false alarm over all cells of a statement
_FEWEST = 5  # releases with such intervals, for a share to be judged
_WORST, _WORST_OF_OTHERS = 20, 3


class Results:
    """A folder's file of results."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "results.jsonl"

    def read(self) -> list[Outcome]:
        """Everything so far, a line that was cut off left out."""
        if not self._path.is_file():
            return []
        lines = self._path.read_text(encoding="utf-8").splitlines()
        return [found for line in lines if (found := _parsed(line)) is not None]

    def add(self, outcome: Outcome) -> None:
        """One more line, on the disk when this returns."""
        so_far = self._path.read_bytes()[-1:] if self._path.is_file() else b""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(("\n" if so_far not in (b"", b"\n") else "") + json.dumps(outcome.to_dict()) + "\n")

    def missing(self, wanted: Iterable[Trial]) -> list[Trial]:
        """Those that are not in the file yet."""
        done = {found.trial for found in self.read()}
        return [trial for trial in wanted if trial not in done]


def _parsed(line: str) -> Outcome | None:
    try:
        parts = json.loads(line)
    except json.JSONDecodeError:
        return None
    return Outcome(
        trial=Trial(**parts.pop("trial")),
        tallies=tuple(Tally(**one) for one in parts.pop("tallies")),
        rows=tuple(Rows(**one) for one in parts.pop("rows")),
        questions=tuple(map(tuple, parts.pop("questions"))),
        **parts,
    )


# ----------------------------------------------------------------------------------------------------------- a share


@dataclass(frozen=True, slots=True)
class Share:
    """A share of intervals that held, and its standard error by releases."""

    value: float
    error: float  # of a ratio of sums over releases
    n: int
    n_releases: int

    def below(self, aim: float) -> float:
        """By how many standard errors the share is less than an aim, at least those of independent intervals."""
        return (aim - self.value) / self._error_at(aim)

    def above(self, aim: float) -> float:
        return (self.value - aim) / self._error_at(aim)

    def _error_at(self, aim: float) -> float:
        return max(self.error, math.sqrt(max(aim * (1 - aim), 1e-9) / self.n))


def share_of(ns: Sequence[int], held: Sequence[int]) -> Share | None:
    """The share over all releases together; None without an interval."""
    pairs = [(n, good) for n, good in zip(ns, held, strict=True) if n]
    total = sum(n for n, _ in pairs)
    if not total:
        return None
    share = sum(good for _, good in pairs) / total
    n_releases = len(pairs)
    squares = sum((good - share * n) ** 2 for n, good in pairs)
    error = math.sqrt(squares * n_releases / max(n_releases - 1, 1)) / total
    return Share(share, error, total, n_releases)


# -------------------------------------------------------------------------------------------------------------- cells


def summary(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """A dictionary a cell: sums of every release, the verdict, and the questions that missed most."""
    groups: dict[tuple[Any, ...], list[Tally]] = defaultdict(list)
    asked: dict[tuple[Any, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        place = (outcome.trial.table, outcome.trial.unit, outcome.trial.epsilon)
        for one in outcome.tallies:
            groups[(*place, *one.key)].append(one)
        for kind, way, statement, text, off in outcome.questions:
            asked[(*place, kind, way, "table", statement, LEVEL)][text].append(off)
    cells = [_cell(key, tallies) for key, tallies in groups.items()]
    _judge(cells)
    for cell in cells:
        key = tuple(cell[name] for name in _KEY)
        cell["worst"] = _worst(asked.get(key, {}), _WORST if cell["verdict"] != "ok" else _WORST_OF_OTHERS)
    return cells


_KEY = ("table", "unit", "epsilon", "kind", "asked", "of", "statement", "level")


def _cell(key: tuple[Any, ...], tallies: Sequence[Tally]) -> dict[str, Any]:
    widths = [one.width for one in tallies if one.width is not None]
    return dict(zip(_KEY, key, strict=True)) | {
        "n_answers": sum(one.n for one in tallies),
        "n": [one.n_barred for one in tallies],
        "held": [one.n_held for one in tallies],
        "below": sum(one.n_below for one in tallies),
        "narrow": sum(one.n_narrow for one in tallies),
        "flat": sum(one.n_flat for one in tallies),
        "flat_missed": sum(one.n_flat_missed for one in tallies),
        "width": median(widths) if widths else None,
    }


def _worst(asked: Mapping[str, Sequence[float]], most: int) -> list[tuple[str, int, int, float]]:
    """The questions that missed most: [text, times missed, times asked, mean place of the truth in half-widths]."""
    found = [
        (text, sum(abs(off) > 1 for off in offs), len(offs), round(sum(offs) / len(offs), 2))
        for text, offs in asked.items()
    ]
    return sorted((one for one in found if one[1]), key=lambda one: (-one[1], -abs(one[3]), one[0]))[:most]


def _judge(cells: Sequence[dict[str, Any]]) -> None:
    """Give every cell its verdict: ok, off, fails or not judged."""
    chances: dict[str, list[tuple[float, dict[str, Any]]]] = defaultdict(list)
    for cell in cells:
        cell["verdict"] = "not judged"
        statement = cell["statement"]
        share = share_of(cell["n"], cell["held"])
        if share is None or cell["level"] != LEVEL or cell["of"] != "table" or statement not in AIMS:
            continue
        if share.n_releases < _FEWEST:
            continue
        low, high = AIMS[statement]
        off = max(share.below(low), share.above(high) if high < 1 else 0.0)
        is_off = off > _CLEARLY and statement != "certified"
        cell["verdict"] = "off" if is_off else "ok"
        chances[statement].append((_chance(off, share.n_releases), cell))
        if statement != "certified" and cell["flat"]:
            cell["verdict"] = "fails"
    for listed in chances.values():
        listed.sort(key=lambda one: one[0])
        for place, (chance, cell) in enumerate(listed):
            if chance * (len(listed) - place) > _ALTOGETHER:
                break
            cell["verdict"] = "fails"


def _chance(off: float, n_releases: int) -> float:
    """Of a share so many standard errors off, by Student's law of one less than the releases."""
    from scipy.stats import t

    return float(t.sf(off, n_releases - 1)) if n_releases > 1 else 1 - NormalDist().cdf(off)


# ---------------------------------------------------------------------------------------------------- rows and values


def rows_summary(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """A dictionary a table, unit and epsilon: ranges whose drawn rows lie in the certified range, and spreads."""
    groups: dict[tuple[str, str, str], list[Rows]] = defaultdict(list)
    n_releases: Counter[tuple[str, str, str]] = Counter()
    for outcome in outcomes:
        if outcome.rows:
            key = (outcome.trial.table, outcome.trial.unit, outcome.trial.epsilon)
            groups[key] += outcome.rows
            n_releases[key] += 1
    found = []
    for key, rows in groups.items():
        n = sum(one.n for one in rows)
        by_column: dict[str, list[Rows]] = defaultdict(list)
        for one in rows:
            by_column[one.column].append(one)
        shares = {
            name: sum(one.n_inside for one in own) / max(1, sum(one.n for one in own))
            for name, own in by_column.items()
        }
        least = min(shares, key=lambda name: shares[name])
        spreads = {name: median(one.spread for one in own) for name, own in by_column.items()}
        outside = [one for one in rows if one.worst]
        widest = max(rows, key=lambda one: one.spread)
        found.append(
            dict(zip(("table", "unit", "epsilon"), key, strict=True))
            | {
                "level": ROWS_LEVEL,
                "n_releases": n_releases[key],
                "n": n,
                "inside": sum(one.n_inside for one in rows),
                "strictly": sum(one.n_strictly for one in rows),
                "tails": sum(one.n_tails for one in rows),
                "tails_inside": sum(one.n_tails_inside for one in rows),
                "least": [least, round(shares[least], 4)],
                "widest": [widest.column, round(widest.spread, 3)],
                "narrowest": [min(spreads, key=lambda name: spreads[name]), round(min(spreads.values()), 3)],
                "worst": [one.worst for one in sorted(outside, key=lambda one: -one.worst_off)[:3]],
            }
        )
    return found


def values_summary(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Certified counts of single values, value by value: whether some hold less often than luck of noise allows.

    The dispersion is the mean of (held - n p)² / (n p (1 - p)) over values and is 1 where all hold equally often.
    """
    groups: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for outcome in outcomes:
        trial = outcome.trial
        for kind, way, statement, text, off in outcome.questions:
            if kind == "values" and way in ("certified", "auto") and statement == "certified":
                groups[trial.unit, trial.epsilon, way][f"{trial.table}: {text}"].append(off)
    found = []
    for (unit, epsilon, way), asked in groups.items():
        shares = [(sum(abs(off) <= 1 for off in offs), len(offs), text) for text, offs in asked.items()]
        n, held = sum(times for _, times, _ in shares), sum(good for good, _, _ in shares)
        share = min(max(held / n, 0.5), 1 - 0.5 / n)
        often = [one for one in shares if one[1] >= 3]
        scatter = [(good - times * share) ** 2 / (times * share * (1 - share)) for good, times, _ in often]
        found.append(
            {
                "unit": unit,
                "epsilon": epsilon,
                "asked": way,
                "n_values": len(often),
                "n": n,
                "held": held,
                "dispersion": round(sum(scatter) / len(scatter), 3) if scatter else None,
                "dispersion_error": round(math.sqrt(2 / len(scatter)), 3) if scatter else None,
                "worst": [
                    [text, times - good, times]
                    for good, times, text in sorted(shares, key=lambda one: one[0] - one[1])[:3]
                ],
            }
        )
    return found


def to_json(outcomes: Sequence[Outcome]) -> str:
    """Everything that pages are made from: a line a cell."""
    lists = {"cells": summary(outcomes), "rows": rows_summary(outcomes), "values": values_summary(outcomes)}
    releases = Counter((one.trial.table, one.trial.unit, one.trial.epsilon) for one in outcomes)
    head = {
        "layout": LAYOUT,
        "versions": sorted({one.version for one in outcomes}),
        "tables": list(dict.fromkeys(one.trial.table for one in outcomes)),
        "held_out": [name for name in HELD_OUT if any(one.trial.table == name for one in outcomes)],
        "releases": len(outcomes),
        "releases_a_cell": [min(releases.values(), default=0), max(releases.values(), default=0)],
        "seconds": round(median(one.seconds for one in outcomes), 2) if outcomes else None,
    }
    text = json.dumps(head, ensure_ascii=False)[:-1]
    for name, items in lists.items():
        lines = ",\n".join(json.dumps(_rounded(item), ensure_ascii=False) for item in items)
        text += f', "{name}": [\n{lines}\n]'
    return text + "}\n"


def _rounded(cell: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in cell.items()}


# -------------------------------------------------------------------------------------------------------------- text


def shown(outcomes: Sequence[Outcome]) -> str:
    """What is off, the lowest share first, and how many cells there are of each statement; then rows and values."""
    cells, lines = summary(outcomes), []
    for statement in AIMS:
        own = [cell for cell in cells if cell["statement"] == statement and cell["verdict"] != "not judged"]
        counts = Counter(cell["verdict"] for cell in own)
        lines.append(f"{statement}: {len(own)} cells judged, {counts['off']} off, {counts['fails']} fail")
        lines += map(_line, sorted((cell for cell in own if cell["verdict"] != "ok"), key=_held))
    for one in rows_summary(outcomes):
        inside, strictly = (one[name] / max(1, one["n"]) for name in ("inside", "strictly"))
        tails = one["tails_inside"] / max(1, one["tails"])
        lines.append(
            f"rows: {inside:.3f} of {one['n']} ranges, {tails:.3f} of {one['tails']} tails "
            f"({strictly:.3f} of ranges without the luck of drawing) {one['table']}, "
            f"{one['unit']}, {one['epsilon']}; least {one['least']}, widest {one['widest']}, "
            f"narrowest {one['narrowest']}"
        )
        lines += [f"    {text}" for text in one["worst"]]
    lines += [f"values: {one}" for one in values_summary(outcomes)]
    return "\n".join(lines)


def _line(cell: Mapping[str, Any]) -> str:
    text = (
        f"  {cell['verdict']:<6}{_held(cell):.3f} of {sum(cell['n']):<5}{cell['table']}, {cell['unit']}, "
        f"{cell['epsilon']}: {cell['kind']} ({cell['asked']})"
    )
    if cell["flat"]:
        text += f", {cell['flat']} of no width"
    for question, missed, times, off in cell["worst"][:1]:
        text += f"; {question} missed {missed} of {times}, at {off:+.1f}"
    return text


def _held(cell: Mapping[str, Any]) -> float:
    return float(sum(cell["held"]) / max(1, sum(cell["n"])))
