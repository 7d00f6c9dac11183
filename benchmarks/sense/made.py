"""Made tables whose rows are full of relations, as registers have them. Each is drawn from its seed.

    loans      guaranteed loans to small firms, 16 columns: three amounts of which one is equal to another in 77 % of
               the rows and one is a round percentage of it in most, all in round numbers; three counts of people; a
               term in months that tells the outcome; two dates on weekdays, the later at the end of a month
    credit     card holders, 11 columns: three counts of late payments that share a code, an income whose bound is
               100,000 times its median, a smooth age, a ratio with a pile just below 1, a binary outcome
    grants     held out, in place of loans: euros and cents, another order of columns, shares of a third and of tenths,
               lags of a lognormal law, payments on the 1st or the 15th, quarters in place of months
    claims     held out, in place of credit: codes at the lower end, two groups of columns with codes of their own, a
               rate with a pile at a third, sums insured in steps of 2,500

Bounds are round, and up to four times too wide: what somebody states who has never seen the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

import spinney as sp
from spinney.columns import Column
from spinney.schema.rules import Rule

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]
_EPOCH = np.datetime64("1970-01-01")


class Made(NamedTuple):
    """Rows, what is public about them, and the rules between columns that a careful holder would state."""

    frame: pl.DataFrame
    columns: Mapping[str, Column]
    rules: Sequence[Rule]
    target: str


def loans(n_rows: int) -> Made:
    """Loans with a public guarantee."""
    rng = np.random.default_rng(101)
    size = rng.normal(0, 1, n_rows)  # of the firm
    approved = _rounded(rng, np.exp(11 + 0.9 * size + rng.normal(0, 0.8, n_rows)).clip(500, 5_000_000))
    is_revolving = rng.random(n_rows) < 0.3
    drawn = _rounded(rng, approved * rng.beta(4, 1.5, n_rows), (1, 0.35, 0.2), least=1)
    paid_out = np.where(rng.random(n_rows) < np.where(is_revolving, 0.55, 0.865), approved, drawn)
    percents = rng.choice((50, 75, 80, 85, 90, 0), n_rows, p=(0.36, 0.2, 0.09, 0.14, 0.09, 0.12))
    other = (approved * rng.uniform(0.2, 0.95, n_rows)).astype(np.int64)
    guaranteed = np.where(percents > 0, np.rint(approved * percents / 100).astype(np.int64), other)
    # A third of the terms are of loans that fail, and those end in any month; others run for whole years.
    fails = rng.random(n_rows) < _logistic(-1.8 - 0.6 * size + 1.2 * is_revolving)
    whole_years = 12 * rng.choice(
        (1, 3, 5, 7, 10, 15, 20, 25), n_rows, p=(0.02, 0.06, 0.2, 0.43, 0.15, 0.04, 0.06, 0.04)
    )
    any_month = rng.gamma(3.2, 12, n_rows).astype(np.int64).clip(1, 320)
    is_whole = rng.random(n_rows) < np.where(fails, 0.04, 0.9)
    term = np.where(is_whole, whole_years, any_month)
    employees = np.floor(np.exp(1.3 + 0.8 * size) * (rng.pareto(1.8, n_rows) + 0.3)).clip(0, 9_999).astype(np.int64)
    created = np.where(rng.random(n_rows) < 0.3, np.floor(rng.lognormal(1, 1.1, n_rows)) + 1, 0)
    created[rng.permutation(n_rows)[: round(n_rows * 0.00076)]] = 8_800
    kept = np.where(rng.random(n_rows) < 0.45, np.minimum(employees, np.floor(rng.pareto(1.2, n_rows) * 4 + 1)), 0)
    start = _weekday(rng.integers(7_305, 16_071, n_rows))  # 1990 to 2013
    end = start + np.rint(rng.gamma(3.2, 30, n_rows)).astype(np.int64) + 3
    end = np.where(rng.random(n_rows) < 0.7, _month_end(end), end)
    frame = {
        "approved": approved,
        "paid_out": paid_out,
        "guaranteed": guaranteed,
        "employees": employees,
        "jobs_created": created.astype(np.int64),
        "jobs_kept": kept.astype(np.int64),
        "term": term,
        "approved_on": _dates(start),
        "paid_on": _dates(np.maximum(_weekday_before(end), start)),
        "state": _codes("S", rng.choice(50, n_rows, p=_zipf(50))),
        "sector": _codes("", np.minimum(rng.choice(20, n_rows, p=_zipf(20)) + (size > 1), 19)),
        "is_new": rng.random(n_rows) < _logistic(-0.6 - 0.7 * size),
        "area": _one_of(rng, ("urban", "rural", "unknown"), n_rows, (0.55, 0.15, 0.3)),
        "is_revolving": is_revolving,
        "franchise": rng.random(n_rows) < 0.06,
        "failed": fails,
    }
    columns: dict[str, Column] = {
        **dict.fromkeys(("approved", "paid_out", "guaranteed"), sp.Integer(0, 20_000_000)),
        "employees": sp.Integer(0, 40_000),
        "jobs_created": sp.Integer(0, 20_000),
        "jobs_kept": sp.Integer(0, 20_000),
        "term": sp.Integer(0, 600),
        **dict.fromkeys(("approved_on", "paid_on"), sp.Date("1980-01-01", "2029-12-31")),
        "state": sp.Category(tuple(f"S{number}" for number in range(50))),
        "sector": sp.Category(tuple(str(number) for number in range(20))),
        "area": sp.Category(("urban", "rural", "unknown")),
        **dict.fromkeys(("is_new", "is_revolving", "franchise", "failed"), sp.Boolean()),
    }
    rules = [
        sp.Related("paid_out", "approved"),
        sp.Related("guaranteed", "approved", ratios=["0.5", "0.75", "0.8", "0.85", "0.9"]),
        sp.AtMost("guaranteed", "approved"),
        sp.AtMost("approved_on", "paid_on"),
    ]
    return Made(pl.DataFrame(frame), {name: columns[name] for name in frame}, rules, "failed")


def credit(n_rows: int) -> Made:
    """Card holders, and who falls behind."""
    rng = np.random.default_rng(102)
    strain = rng.normal(0, 1, n_rows)
    income = np.exp(8.6 - 0.15 * strain + rng.normal(0, 0.6, n_rows))
    income = _rounded(rng, income, (1, 0.44, 0.165), least=1).clip(0, 3_000_000)
    late = [rng.poisson(np.exp(rate + 0.9 * strain - 0.9)).clip(0, 13) for rate in (-0.3, -1.2, -1.4)]
    coded = rng.permutation(n_rows)[: round(n_rows * 209 / 120_000)]
    for count in late:
        count[coded] = 98
    usage = np.where(rng.random(n_rows) < 0.09, 0, rng.beta(0.5 * np.exp(0.9 * strain), 1.2, n_rows))
    usage = np.where(rng.random(n_rows) < 0.069, 0.9999999, usage.round(9))
    usage = np.where(rng.random(n_rows) < 0.02, rng.pareto(0.6, n_rows).clip(0, 50_000) + 1, usage)
    falls = -4.4 + strain + 0.7 * np.minimum(late[0], 4) + 1.1 * np.minimum(late[2], 3) + 1.2 * (usage > 0.8)
    debts = np.where(rng.random(n_rows) < 0.2, np.rint(rng.lognormal(6, 1.3, n_rows)), rng.gamma(1.5, 0.25, n_rows))
    frame = {
        "late_payer": rng.random(n_rows) < _logistic(falls),
        "usage": usage,
        "age": np.rint(rng.normal(52 - 3 * strain, 14)).clip(18, 105).astype(np.int64),
        "late_30": late[0],
        "debt_ratio": debts,
        "income": income,
        "open_lines": rng.negative_binomial(3, 0.26, n_rows).clip(0, 60),
        "late_90": late[2],
        "mortgages": rng.poisson(0.3 + 0.6 * (income > 6_000), n_rows).clip(0, 20),
        "late_60": late[1],
        "dependents": rng.poisson(0.75, n_rows).clip(0, 12),
    }
    columns: dict[str, Column] = {
        "late_payer": sp.Boolean(),
        "usage": sp.Real(0, 100_000),
        "age": sp.Integer(0, 120),
        **dict.fromkeys(("late_30", "late_60", "late_90"), sp.Integer(0, 100)),
        "debt_ratio": sp.Real(0, 1_000_000),
        "income": sp.Integer(0, 540_000_000),
        "open_lines": sp.Integer(0, 100),
        "mortgages": sp.Integer(0, 60),
        "dependents": sp.Integer(0, 50),
    }
    return Made(pl.DataFrame(frame), {name: columns[name] for name in frame}, [], "late_payer")


def grants(n_rows: int) -> Made:
    """Grants to farms, held out."""
    rng = np.random.default_rng(203)
    size = rng.gamma(2, 1, n_rows)
    budget = (2_500 * np.ceil(np.exp(2 + 0.5 * size + rng.normal(0, 0.5, n_rows)))).clip(2_500, 900_000)
    budget = np.where(rng.random(n_rows) < 0.85, budget, (budget * rng.uniform(0.8, 1, n_rows)).round(2))
    spent = np.where(rng.random(n_rows) < 0.58, budget, (budget * rng.beta(9, 1, n_rows)).round(2))
    share = rng.choice((10, 25, 33, 40, 60, 0), n_rows, p=(0.1, 0.25, 0.1, 0.3, 0.1, 0.15))
    own = np.where(share > 0, budget * share / 100, budget * rng.uniform(0.05, 0.7, n_rows)).round(2)
    stops = rng.random(n_rows) < _logistic(-2.2 + 0.35 * size)
    quarters = np.where(
        stops, rng.integers(1, 30, n_rows), rng.choice((4, 8, 12, 20, 28), n_rows, p=(0.1, 0.3, 0.3, 0.2, 0.1))
    )
    start = _weekday(rng.integers(14_610, 19_723, n_rows))  # 2010 to 2023
    end = start + np.rint(rng.lognormal(4.2, 0.7, n_rows)).astype(np.int64).clip(1, 1_500)
    end = np.where(rng.random(n_rows) < 0.5, _first_or_fifteenth(end), _weekday(end))
    hectares = np.exp(2.5 + 0.6 * size + rng.normal(0, 0.6, n_rows)).clip(0, 9_000).round(1)
    cattle = np.where(rng.random(n_rows) < 0.4, np.floor(rng.pareto(1.5, n_rows) * 30), 0)
    frame = {
        "stopped": stops,
        "filed_on": _dates(start),
        "decided_on": _dates(end),
        "quarters": quarters,
        "own_share": own,
        "spent": spent,
        "budget": budget,
        "hectares": hectares,
        "cattle": cattle.clip(0, 5_000).astype(np.int64),
        "helpers": rng.poisson(0.8 * size).clip(0, 60),
        "region": _codes("R", rng.choice(13, n_rows, p=_zipf(13))),
        "kind": _one_of(rng, ("barn", "fence", "machine", "water"), n_rows, (0.4, 0.1, 0.3, 0.2)),
        "organic": rng.random(n_rows) < 0.2,
    }
    columns: dict[str, Column] = {
        **dict.fromkeys(("own_share", "spent", "budget"), sp.Real(0, 3_000_000, multiple_of=0.01)),
        **dict.fromkeys(("filed_on", "decided_on"), sp.Date("2005-01-01", "2034-12-31")),
        "quarters": sp.Integer(0, 80),
        "hectares": sp.Real(0, 20_000, multiple_of=0.1),
        "cattle": sp.Integer(0, 10_000),
        "helpers": sp.Integer(0, 200),
        "region": sp.Category(tuple(f"R{number}" for number in range(13))),
        "kind": sp.Category(("barn", "fence", "machine", "water")),
        **dict.fromkeys(("stopped", "organic"), sp.Boolean()),
    }
    rules = [
        sp.Related("spent", "budget"),
        sp.Related("own_share", "budget", ratios=["0.1", "0.25", "0.33", "0.4", "0.6"]),
        sp.AtMost("spent", "budget"),
        sp.AtMost("filed_on", "decided_on"),
    ]
    return Made(pl.DataFrame(frame), {name: columns[name] for name in frame}, rules, "stopped")


def claims(n_rows: int) -> Made:
    """Insured persons and their claims, held out."""
    rng = np.random.default_rng(204)
    risk = rng.normal(0, 1, n_rows)
    counts = {
        name: rng.poisson(np.exp(rate + 0.7 * risk - 0.4)).clip(0, 20)
        for name, rate in (("thefts", -1.5), ("crashes", -0.5))
    }
    stays = {name: rng.geometric(0.15, n_rows).clip(1, 90) for name in ("days_in", "days_off")}
    order = rng.permutation(n_rows)
    for group, code, share in ((counts, -9, 0.0022), (stays, 999, 0.0035)):
        chosen, order = np.split(order, [round(n_rows * share)])
        for values in group.values():
            values[chosen] = code
    insured = (2_500 * np.ceil(np.exp(3 + rng.normal(0, 0.7, n_rows)))).astype(np.int64).clip(2_500, 2_000_000)
    wage = _rounded(rng, np.exp(10.3 - 0.1 * risk + rng.normal(0, 0.45, n_rows)), (1, 0.7, 0.4), least=1)
    rate = np.where(rng.random(n_rows) < 0.11, 0.3333333, rng.beta(2, 4, n_rows).round(7))
    frame = {
        "age": rng.integers(18, 91, n_rows),
        "wage": wage,
        "insured": insured,
        "rate": rate,
        **counts,
        **stays,
        "score": rng.normal(600 - 80 * risk, 40).round(1).clip(300, 850),
        "cancelled": rng.random(n_rows) < _logistic(-2.8 + 1.4 * risk + 0.8 * (rate < 0.2)),
    }
    columns: dict[str, Column] = {
        "age": sp.Integer(0, 120),
        "wage": sp.Integer(0, 1_000_000_000),
        "insured": sp.Integer(0, 10_000_000),
        "rate": sp.Real(0, 10),
        **dict.fromkeys(counts, sp.Integer(-10, 100)),
        **dict.fromkeys(stays, sp.Integer(0, 1_000)),
        "score": sp.Real(0, 1_000, multiple_of=0.1),
        "cancelled": sp.Boolean(),
    }
    return Made(pl.DataFrame(frame), {name: columns[name] for name in frame}, [], "cancelled")


# Each with its rows to fit and its rows to test on.
MADE: dict[str, tuple[Callable[[int], Made], int, int]] = {
    "loans": (loans, 240_000, 60_000),
    "credit": (credit, 120_000, 30_000),
    "grants": (grants, 160_000, 40_000),
    "claims": (claims, 90_000, 30_000),
}


def _rounded(
    rng: np.random.Generator, values: Floats, shares: Sequence[float] = (1, 0.985, 0.89), *, least: int = 100
) -> Numbers:
    """Whole numbers of which the last two shares are hundreds and thousands, never 0."""
    draw = rng.random(len(values))
    steps = np.select([draw < shares[2], draw < shares[1]], [1_000, 100], 1)
    found = np.rint(values / steps) * steps
    return np.where(found > 0, found, np.maximum(steps, least)).astype(np.int64)


def _logistic(x: Any) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


def _zipf(size: int) -> Floats:
    shares = 1 / np.arange(1, size + 1)
    return shares / shares.sum()


def _codes(letter: str, numbers: Numbers) -> list[str]:
    return [f"{letter}{number}" for number in numbers]


def _one_of(rng: np.random.Generator, values: Sequence[str], n_rows: int, shares: Sequence[float]) -> NDArray[np.str_]:
    return np.array(values)[rng.choice(len(values), n_rows, p=shares)]


def _dates(days: Numbers) -> NDArray[np.datetime64]:
    return _EPOCH + days.astype("timedelta64[D]")


def _weekday(days: Numbers) -> Numbers:
    """The day itself, or the Monday after a weekend."""
    day = (days + 3) % 7  # of the week, from Monday
    return days + np.where(day >= 5, 7 - day, 0)


def _weekday_before(days: Numbers) -> Numbers:
    """The day itself, or the Friday before a weekend."""
    return days - np.maximum((days + 3) % 7 - 4, 0)


def _month_end(days: Numbers) -> Numbers:
    """The last day of the month."""
    following = _dates(days).astype("datetime64[M]") + 1
    return (following.astype("datetime64[D]") - _EPOCH).astype(np.int64) - 1


def _first_or_fifteenth(days: Numbers) -> Numbers:
    """The 15th of the month, or the first of the next, whichever comes first, or the Monday after it."""
    month = _dates(days).astype("datetime64[M]")
    middle = (month.astype("datetime64[D]") - _EPOCH).astype(np.int64) + 14
    following = ((month + 1).astype("datetime64[D]") - _EPOCH).astype(np.int64)
    return _weekday(np.where(days <= middle, middle, following))
