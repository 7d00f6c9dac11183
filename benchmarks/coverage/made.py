"""Tables with known truth, whose dependences are those that models of two columns miss.

    waves      a category's share is a sine of the hour with one, two and three periods, of the month a bump;
               two clusters of points, zones like a chess board, a district that decides its region but for 1 %
    codes      numbers of visits with the code 98, and of days with 9999; amounts of a lognormal law whose bound is
               half a million; numbers of employees of a Pareto law; grades whose median jumps from group to group
    incidents  120,000 rows: kinds, units and priorities that change with the hour in fast waves, which few groups of
               hours cannot show, beside columns that depend plainly on wealth
    small      1,500 rows with rare values: where an answer may or may not be called certified
    sawtooth   held out: shares that rise and jump back, a product of weekday and hour, rings, codes at both ends

Every table is drawn anew from its seed, the same in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

import spinney as sp

Floats = NDArray[np.float64]
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Made(NamedTuple):
    """Rows, what is public about them, and the codes that stand far out in columns of numbers."""

    frame: pl.DataFrame
    schema: sp.Schema
    codes: Mapping[str, tuple[int, ...]]


def waves(n_rows: int) -> Made:
    rng = np.random.default_rng(1)
    hour = rng.choice(24, n_rows, p=_normed(1.2 + np.sin((np.arange(24) - 8) * np.pi / 12)))
    month = rng.integers(1, 13, n_rows)
    values: dict[str, Any] = {"hour": hour, "month": month}
    for n_periods in (1, 2, 3):
        wave = np.sin(2 * np.pi * n_periods * hour / 24)
        values[f"wave {n_periods}"] = _one_of(rng, np.stack([1 + 0.8 * wave, 1 - 0.8 * wave, 0 * wave + 1], axis=1))
    bump = np.exp(-(((month - 7) / 1.2) ** 2))
    values["ailment"] = _one_of(rng, np.stack([0.1 + 2 * bump, 0 * bump + 1, 0 * bump + 0.6, 1.1 - bump], axis=1))
    cluster = rng.random(n_rows) < 0.5
    values["x"] = np.where(cluster, rng.normal(30, 5, n_rows), rng.normal(70, 5, n_rows)).clip(0, 100).round(1)
    values["y"] = np.where(cluster, rng.normal(70, 5, n_rows), rng.normal(30, 5, n_rows)).clip(0, 100).round(1)
    east, north = rng.uniform(0, 8, (2, n_rows))
    is_white = (np.floor(east) + np.floor(north)) % 2 == 0
    values["east"], values["north"] = east.round(2), north.round(2)
    values["zone"] = np.where(rng.random(n_rows) < np.where(is_white, 0.85, 0.15), "white", "black")
    district = rng.choice(20, n_rows, p=_normed(1 / np.arange(1, 21)))
    region = np.where(rng.random(n_rows) < 0.01, rng.integers(0, 5, n_rows), district // 4)
    values["district"], values["region"] = _lettered("d", district), _lettered("r", region)
    columns: dict[str, Any] = {
        "hour": sp.Integer(0, 23),
        "month": sp.Integer(1, 12),
        **dict.fromkeys((f"wave {n_periods}" for n_periods in (1, 2, 3)), sp.Category(("a", "b", "c"))),
        "ailment": sp.Category(("a", "b", "c", "d")),
        **dict.fromkeys(("x", "y"), sp.Real(0, 100, multiple_of=0.1)),
        **dict.fromkeys(("east", "north"), sp.Real(0, 8, multiple_of=0.01)),
        "zone": sp.Category(("white", "black")),
        "district": sp.Category(tuple(f"d{number}" for number in range(20))),
        "region": sp.Category(tuple(f"r{number}" for number in range(5))),
    }
    return Made(pl.DataFrame(values).select(*columns), sp.Schema(columns), {})


def codes(n_rows: int) -> Made:
    rng = np.random.default_rng(2)
    group = rng.choice(5, n_rows, p=(0.4, 0.3, 0.15, 0.1, 0.05))
    visits = rng.geometric(0.6, n_rows).clip(1, 40) - 1
    visits[rng.random(n_rows) < 0.002] = 98
    days = rng.negative_binomial(1.5, 0.05, n_rows).clip(0, 400)
    days[rng.random(n_rows) < 0.004] = 9_999
    # Half of a group lies at or below its first grade, but for one row in a hundred: the median hangs on noise.
    grade = np.where(rng.random(n_rows) < 0.49, 11 - group, 13 - group) - rng.binomial(6, 0.25, n_rows)
    values = {
        "group": _lettered("g", group),
        "flag": rng.random(n_rows) < 0.2 + 0.1 * group,
        "visits": visits,
        "days": days,
        "amount": np.exp(rng.normal(5 + 0.5 * group, 1.2)).clip(0, 500_000).round(2),
        "employees": np.floor(rng.pareto(1.1, n_rows) * 3 + 1).clip(1, 10_000).astype(np.int64),
        "grade": grade.clip(0, 20),
        "years": rng.binomial(30, 0.1 + 0.1 * group).astype(np.int64),
        "kind": _one_of(rng, np.abs(np.sin(np.outer(visits % 7 + 1, np.arange(1, 7)))) + 0.05),
    }
    columns: dict[str, Any] = {
        "group": sp.Category(tuple(f"g{number}" for number in range(5))),
        "flag": sp.Boolean(),
        "visits": sp.Integer(0, 99),
        "days": sp.Integer(0, 10_000),
        "amount": sp.Real(0, 500_000, multiple_of=0.01),
        "employees": sp.Integer(0, 10_000),
        "grade": sp.Integer(0, 20),
        "years": sp.Integer(0, 50),
        "kind": sp.Category(tuple("abcdef")),
    }
    return Made(pl.DataFrame(values), sp.Schema(columns), {"visits": (98,), "days": (9_999,)})


def incidents(n_rows: int) -> Made:
    rng = np.random.default_rng(5)
    n_rows *= 4  # where noise is small, what a model misses is all the more
    hour, day = rng.integers(0, 24, n_rows), rng.integers(1, 32, n_rows)
    month, minute = rng.integers(1, 13, n_rows), rng.integers(0, 60, n_rows)
    wealth = rng.normal(0, 1, n_rows)
    values: dict[str, Any] = {"hour": hour, "day": day, "month": month, "minute": minute}
    for name, size, periods in (("kind", 12, (4, 1)), ("unit", 5, (5, 2)), ("priority", 4, (6, 3))):
        turns = 2 * np.pi * (periods[0] * hour / 24)[:, None], 2 * np.pi * (periods[1] * month / 12)[:, None]
        phases = rng.uniform(0, 2 * np.pi, (2, size))
        logits = 0.8 * np.cos(turns[0] + phases[0]) + 0.5 * np.cos(turns[1] + phases[1])
        values[name] = _one_of(rng, np.exp(logits - 0.15 * np.arange(size)))
    values["age"] = (45 + 12 * wealth + rng.normal(0, 8, n_rows)).clip(0, 99).astype(np.int64)
    values["income"] = np.exp(10 + 0.6 * wealth + rng.normal(0, 0.4, n_rows)).clip(0, 500_000).round()
    for name, size in (("school", 6), ("estate", 8), ("insurance", 4)):
        place = size * (0.5 + 0.28 * (wealth + rng.normal(0, 0.7, n_rows)))
        values[name] = [_LETTERS[one] for one in place.astype(np.int64).clip(0, size - 1)]
    sizes = (("kind", 12), ("unit", 5), ("priority", 4), ("school", 6), ("estate", 8), ("insurance", 4))
    columns: dict[str, Any] = {
        "hour": sp.Integer(0, 23),
        "day": sp.Integer(1, 31),
        "month": sp.Integer(1, 12),
        "minute": sp.Integer(0, 59),
        **{name: sp.Category(tuple(_LETTERS[:size])) for name, size in sizes[:3]},
        "age": sp.Integer(0, 120),
        "income": sp.Real(0, 500_000, multiple_of=1),
        **{name: sp.Category(tuple(_LETTERS[:size])) for name, size in sizes[3:]},
    }
    return Made(pl.DataFrame(values), sp.Schema(columns), {})


def small(n_rows: int) -> Made:
    rng = np.random.default_rng(3)
    n_rows = min(n_rows, 1_500)
    rare = rng.choice(12, n_rows, p=_normed(0.6 ** np.arange(12)))
    age = rng.normal(45, 15, n_rows).clip(0, 99).astype(np.int64)
    values = {
        "rare": _lettered("v", rare),
        "ward": _lettered("w", rng.choice(6, n_rows, p=(0.5, 0.3, 0.1, 0.05, 0.03, 0.02))),
        "age": age,
        "stay": rng.geometric(0.2, n_rows).clip(1, 365),
        "sex": np.where(rng.random(n_rows) < 0.5, "f", "m"),
        "ill": rng.random(n_rows) < np.exp(-(((age - 40) / 15) ** 2)),
    }
    columns: dict[str, Any] = {
        "rare": sp.Category(tuple(f"v{number}" for number in range(12))),
        "ward": sp.Category(tuple(f"w{number}" for number in range(6))),
        "age": sp.Integer(0, 120),
        "stay": sp.Integer(0, 400),
        "sex": sp.Category(("f", "m")),
        "ill": sp.Boolean(),
    }
    return Made(pl.DataFrame(values), sp.Schema(columns), {})


def sawtooth(n_rows: int) -> Made:
    rng = np.random.default_rng(4)
    hour, weekday = rng.integers(0, 24, n_rows), rng.integers(1, 8, n_rows)
    teeth = (hour % 6) / 5
    busy = 0.15 + 0.7 * ((weekday > 5) ^ (hour >= 12))
    angle, ring = rng.uniform(0, 2 * np.pi, n_rows), rng.integers(1, 4, n_rows)
    radius = 12 * ring + rng.normal(0, 1.5, n_rows)
    debt = np.exp(rng.normal(6, 1.6, n_rows)).round()
    debt[rng.random(n_rows) < 0.3] = 0
    score = rng.poisson(4 + 3 * (weekday % 3))
    score[rng.random(n_rows) < 0.003] = -9
    score[rng.random(n_rows) < 0.001] = 998
    values = {
        "hour": hour,
        "weekday": weekday,
        "tooth": _one_of(rng, np.stack([0.1 + teeth, 1.1 - teeth, 0 * teeth + 0.3], axis=1)),
        "busy": rng.random(n_rows) < busy,
        "u": (50 + radius * np.cos(angle)).clip(0, 100).round(1),
        "v": (50 + radius * np.sin(angle)).clip(0, 100).round(1),
        "ring": _lettered("ring ", ring),
        "debt": debt.clip(0, 1_000_000),
        "score": score.clip(-9, 998),
        "tariff": _one_of(rng, 0.1 + np.abs(np.sin(np.outer(hour + weekday, (0.5, 0.9, 1.3))))),
    }
    columns: dict[str, Any] = {
        "hour": sp.Integer(0, 23),
        "weekday": sp.Integer(1, 7),
        "tooth": sp.Category(("a", "b", "c")),
        "busy": sp.Boolean(),
        **dict.fromkeys(("u", "v"), sp.Real(0, 100, multiple_of=0.1)),
        "ring": sp.Category(("ring 1", "ring 2", "ring 3")),
        "debt": sp.Real(0, 1_000_000, multiple_of=1),
        "score": sp.Integer(-9, 999),
        "tariff": sp.Category(("a", "b", "c")),
    }
    return Made(pl.DataFrame(values), sp.Schema(columns), {"score": (-9, 998)})


MADE: dict[str, Callable[[int], Made]] = {
    "made waves": waves,
    "made codes": codes,
    "made incidents": incidents,
    "made small": small,
    "made sawtooth": sawtooth,
}


def _normed(weights: Floats) -> Floats:
    return weights / weights.sum()


def _lettered(letter: str, numbers: NDArray[Any]) -> list[str]:
    return [f"{letter}{number}" for number in numbers]


def _one_of(rng: np.random.Generator, weights: Floats) -> list[str]:
    """A letter for every row, drawn with the weights of its line."""
    ends = np.cumsum(weights, axis=1)
    places = (rng.random(len(weights))[:, None] * ends[:, -1:] > ends).sum(axis=1)
    return [_LETTERS[place] for place in places]
