"""What people ask first, of one column and of two, as a pool that is the same in every run.

Ranges begin and end on round numbers, tails lie beyond round numbers near the 0.9, 0.99, 0.999 and 0.9999 points, and
pairs are asked about one by one. A release is asked a part of the pool; releases take turns, so that all of it is
asked, and a question that fails in every release stands out.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

import spinney as sp
from benchmarks.coverage.tables import Population, is_listed
from benchmarks.coverage.truths import DAY_ZERO, coded, end_of
from spinney.columns import Bounded, Column
from spinney.columns.base import shown

Where = dict[str, Any]

# How many questions of a kind a release is asked, before `--questions` scales them.
PER_RELEASE = {
    "values": 20,
    "ranges": 15,
    "tails": 16,
    "codes": 6,
    "means": 12,
    "means with codes": 3,
    "quantiles": 12,
    "outer quantiles": 8,
    "range by value, apart": 30,
    "range by value, together": 16,
    "other pairs, apart": 16,
    "other pairs, together": 12,
    "shares, apart": 8,
    "shares, together": 8,
    "means by value, apart": 10,
    "means by value, together": 12,
    "means in a range, apart": 6,
    "means in a range, together": 8,
    "quantiles by value, apart": 10,
    "quantiles by value, together": 12,
    "quantiles of few values by value, apart": 8,
    "quantiles of few values by value, together": 10,
    "boxes of two": 20,
    "boxes of all": 16,
    "means in boxes": 10,
    "boxes around rows": 10,
    "means around rows": 16,
}
_FEW_VALUES = 30  # of a whole number, for a quantile to lie on a jump


@dataclass(frozen=True)
class Question:
    """One question of a kind: a count, a share, a mean or a quantile."""

    kind: str
    statistic: str  # "count", "proportion", "mean" or "quantile"
    column: str | None = None
    where: Where = field(default_factory=dict)
    given: Where = field(default_factory=dict)
    at: float = 0.5  # of quantiles

    @property
    def text(self) -> str:
        """The question in words, which is its name in results."""
        of = "" if self.column is None else f"({self.column}{f', {self.at:g}' if self.statistic == 'quantile' else ''})"
        parts = [
            f"{word} {_in_words(where)}" for word, where in (("where", self.where), ("given", self.given)) if where
        ]
        return " ".join([self.statistic + of, *parts])

    @property
    def columns(self) -> tuple[str, ...]:
        own = () if self.column is None else (self.column,)
        return tuple(dict.fromkeys((*own, *self.where, *self.given)))


class Pool:
    """All questions about a population, and the part of them that a release is asked."""

    def __init__(self, population: Population) -> None:
        self._population = population
        self._rng = np.random.default_rng([population.seed, 5])
        self.codes = population.codes
        self.columns: dict[str, Column] = {
            name: column
            for name, column in population.schema.items()
            if population.frame[name].drop_nulls().n_unique() > 1
        }
        self.listed = [name for name, column in self.columns.items() if is_listed(column)]
        self.ordered = [name for name, column in self.columns.items() if isinstance(column, Bounded)]
        self.numbers = [name for name in self.ordered if isinstance(self.columns[name], sp.Real | sp.Integer)]
        self.values = {name: numbers_of(population, name) for name in self.ordered}
        self.one: dict[str, list[Question]] = {}
        for question in self._of_one_column():
            self.one.setdefault(question.kind, []).append(question)
        self.pairs = {pair: list(self._of_pair(*pair)) for pair in combinations(self.columns, 2)}
        self.boxes = {kind: list(make()) for kind, make in self._boxes().items()} if population.is_tree else {}

    def part(self, repetition: int, scale: float, together: Callable[[Sequence[str]], bool]) -> list[Question]:
        """The questions of one release; `together` says which columns it counted together."""
        asked = [question for kind, pool in self.one.items() for question in _turn(pool, repetition, _n(kind, scale))]
        if self.boxes:
            return asked + [
                question for kind, pool in self.boxes.items() for question in _turn(pool, repetition, _n(kind, scale))
            ]
        for is_together in (False, True):
            pairs = [pair for pair in self.pairs if together(pair) == is_together]
            order = np.random.default_rng([self._population.seed, is_together]).permutation(len(pairs))
            by_kind: dict[str, list[list[Question]]] = {}
            for place in order:
                of_pair: dict[str, list[Question]] = {}
                for question in self.pairs[pairs[place]]:
                    of_pair.setdefault(question.kind, []).append(question)
                for kind, questions in of_pair.items():
                    by_kind.setdefault(f"{kind}, {'together' if is_together else 'apart'}", []).append(questions)
            for kind, lists in by_kind.items():
                n, first = _n(kind, scale), repetition * _n(kind, scale)
                # Pairs take turns, and of each pair its questions do.
                for number in range(first, first + min(n, sum(map(len, lists)))):
                    own = lists[number % len(lists)]
                    found = own[(number // len(lists)) % len(own)]
                    asked.append(Question(kind, found.statistic, found.column, found.where, found.given, found.at))
        return list({(question.kind, question.text): question for question in asked}.values())

    # ----------------------------------------------------------------------------------------------- one column

    def _of_one_column(self) -> Iterator[Question]:
        for name in self.listed:
            for value in listed_values(self.columns[name]):
                yield Question("values", "count", where={name: value})
        for name in self.ordered:
            if self._is_short(name):
                for value in self._rng.choice(np.unique(self.values[name]), 4):
                    yield Question("values", "count", where={name: self._value(name, value)})
            for _ in range(6):
                yield Question("ranges", "count", where={name: self._range(name)})
            for threshold in self.thresholds(name):
                yield Question("tails", "count", where={name: (self._value(name, threshold), self.columns[name].high)})
        for name in self.numbers:
            codes = self.codes.get(name, ())
            for code in codes:
                yield Question("codes", "count", where={name: code})
                others = self.values[name][self.values[name] != code]
                ends = sorted((round(float(np.median(others) + code) / 2), code))
                yield Question("codes", "count", where={name: (ends[0], ends[1])})
            yield Question("means with codes" if codes else "means", "mean", name)
            for at in (0.1, 0.25, 0.5, 0.75, 0.9):
                yield Question("quantiles", "quantile", name, at=at)
            for at in (0.01, 0.99):
                yield Question("outer quantiles", "quantile", name, at=at)

    def thresholds(self, name: str) -> list[float]:
        """Round numbers near outer points of a column, and one on the way to its upper bound, ascending."""
        values, column = self.values[name], self.columns[name]
        low, high = end_of(column.low), end_of(column.high)
        points = [*np.quantile(values, (0.9, 0.99, 0.999, 0.9999)), float((values.max() + high) / 2)]
        step = self._step(name)
        found = {_round_near(point, step, is_date=isinstance(column, sp.Date)) for point in points}
        return sorted(point for point in found if low < point < high)

    def ruler(self, name: str) -> list[float]:
        """Round numbers from one bound to the other, closer together where most values are."""
        values, column = self.values[name], self.columns[name]
        low, high = end_of(column.low), end_of(column.high)
        middle = float(np.median(values))
        reach = max(high - middle, middle - low)
        marks = {low, high}
        size = max(self._step(name), reach / 1e7)
        while size < reach:
            for factor in (1, 2, 5):
                marks |= {middle + factor * size, middle - factor * size}
            size *= 10
        marks |= {float(np.quantile(values, at)) for at in (0.1, 0.3, 0.7, 0.9, 0.97, 0.99, 0.997, 0.999)}
        is_date = isinstance(column, sp.Date)
        return sorted(
            {low, high} | {_round_near(mark, self._step(name), is_date=is_date) for mark in marks if low < mark < high}
        )

    def condition(self, name: str, low: float, high: float) -> Where:
        """A range as a condition on a column, in values of the column."""
        return {name: (self._value(name, low), self._value(name, high))}

    # -------------------------------------------------------------------------------------------------- two columns

    def _of_pair(self, first: str, second: str) -> Iterator[Question]:
        ordered = [name for name in (first, second) if name in self.ordered]
        if len(ordered) == 1:
            (number,) = ordered
            (listed,) = {first, second} - {number}
            for _ in range(4):
                where = {number: self._range(number), listed: self._common(listed)}
                yield Question("range by value", "count", where=where)
            yield Question(
                "shares", "proportion", where={listed: self._common(listed)}, given={number: self._range(number)}
            )
            if number in self.numbers:
                few = " of few values" if self._is_short(number) else ""
                for at in (0.5, 0.25, 0.5, 0.9):
                    given = {listed: self._common(listed)}
                    yield Question("means by value", "mean", number, given)
                    yield Question(f"quantiles{few} by value", "quantile", number, given, at=at)
        elif ordered:
            for _ in range(3):
                yield Question("other pairs", "count", where={name: self._range(name) for name in (first, second)})
            for a, b in ((first, second), (second, first)):
                if a in self.numbers:
                    yield Question("means in a range", "mean", a, {b: self._range(b)})
        else:
            for _ in range(3):
                yield Question("other pairs", "count", where={name: self._common(name) for name in (first, second)})
            yield Question(
                "shares", "proportion", where={first: self._common(first)}, given={second: self._common(second)}
            )

    def _boxes(self) -> dict[str, Callable[[], Iterator[Question]]]:
        def of_two() -> Iterator[Question]:
            for pair in self.pairs:
                for _ in range(max(2, 60 // len(self.pairs))):
                    yield Question("boxes of two", "count", where={name: self._range(name) for name in pair})

        def of_all() -> Iterator[Question]:
            for _ in range(60):
                yield Question(
                    "boxes of all", "count", where={name: self._range(name, least=6) for name in self.ordered}
                )

        def means() -> Iterator[Question]:
            for _ in range(30):
                name, other = (str(one) for one in self._rng.choice(self.ordered, 2, replace=False))
                yield Question("means in boxes", "mean", name, {other: self._range(other)})

        def around() -> Iterator[Question]:
            for _ in range(30):
                yield Question("boxes around rows", "count", where=self._around())

        def means_around() -> Iterator[Question]:
            for _ in range(30):
                where = self._around()
                for name in where:
                    yield Question("means around rows", "mean", name, where)

        return {
            "boxes of two": of_two,
            "boxes of all": of_all,
            "means in boxes": means,
            "boxes around rows": around,
            "means around rows": means_around,
        }

    def _around(self) -> Where:
        """A box of two columns between round numbers, from a few streets to half a country, around a row."""
        names = [str(one) for one in self._rng.choice(self.ordered, 2, replace=False)]
        width = float(self._rng.choice((0.02, 0.06, 0.2, 0.5)))
        row = int(self._rng.integers(min(len(self.values[name]) for name in names)))
        where: Where = {}
        for name in names:
            step, column = self._step(name), self.columns[name]
            low, high = np.quantile(self.values[name], (0.05, 0.95))
            size = max(step, _round_step(float(high - low) * width))
            grain = max(step, round(size / 2 / step) * step) if step else size / 2
            start = round((self.values[name][row] - size / 2) / grain) * grain
            ends = np.clip([start, start + size - step], end_of(column.low), end_of(column.high))
            where |= self.condition(name, *map(float, ends))
        return where

    def _common(self, name: str) -> Any:
        """A value of a category, the more likely the more rows have it, and sometimes a rare one."""
        counts = self._population.frame[name].drop_nulls().value_counts().sort(name)
        weights = np.sqrt(counts["count"].to_numpy().astype(np.float64))
        return counts[name].to_list()[self._rng.choice(len(weights), p=weights / weights.sum())]

    def _range(self, name: str, *, least: int = 1) -> tuple[Any, Any]:
        """A range between two round numbers, among those that cut the middle nine tenths into about twelve."""
        low, high = np.quantile(self.values[name], (0.05, 0.95))
        step, is_date = self._step(name), isinstance(self.columns[name], sp.Date)
        size = 30.5 if is_date else max(step, _round_step((high - low) / 12))
        marks = np.arange(np.floor(low / size), np.ceil(high / size) + 1) * size
        marks = marks if len(marks) > least else np.array([low, high])
        first = int(self._rng.integers(0, max(1, len(marks) - least)))
        last = int(self._rng.integers(first + least, max(first + least + 1, len(marks)))) if len(marks) > 1 else first
        ends = [
            float(
                np.clip(
                    marks[min(place, len(marks) - 1)], *map(end_of, (self.columns[name].low, self.columns[name].high))
                )
            )
            for place in (first, last)
        ]
        if is_date:
            ends = [_round_near(end, 1, is_date=True) for end in ends]
            return self._value(name, ends[0]), self._value(name, max(ends[0], ends[1] - 1))
        # "20 to 29", where values come in steps.
        return self._value(name, ends[0]), self._value(name, max(ends[0], ends[1] - step) if step else ends[1])

    def _is_short(self, name: str) -> bool:
        column = self.columns[name]
        return isinstance(column, sp.Integer) and len(np.unique(self.values[name])) <= _FEW_VALUES

    def _step(self, name: str) -> float:
        column = self.columns[name]
        return float(getattr(column, "multiple_of", None) or (0 if isinstance(column, sp.Real) else 1))

    def _value(self, name: str, number: float) -> Any:
        """A number as the column has it."""
        column = self.columns[name]
        if isinstance(column, sp.Date):
            return DAY_ZERO + datetime.timedelta(days=round(number))
        return round(number) if isinstance(column, sp.Integer) else round(float(number), 9)


def numbers_of(population: Population, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    values = coded(population.frame[name], population.schema[name])
    return values[~np.isnan(values)]


def listed_values(column: Column) -> list[Any]:
    return [False, True] if isinstance(column, sp.Boolean) else list(getattr(column, "listed", ()))


def _round_step(size: float) -> float:
    """1, 2 or 5 times a power of ten, next to a size."""
    if size <= 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(size))
    return float(power * min((1, 2, 5, 10), key=lambda factor: abs(factor * power - size)))


def _round_near(point: float, step: float, *, is_date: bool) -> float:
    """A number of two digits near a point; of dates, the first day of its month."""
    if is_date:
        return end_of((DAY_ZERO + datetime.timedelta(days=round(point))).replace(day=1))
    if point == 0:
        return 0.0
    size = 10.0 ** (np.floor(np.log10(abs(point))) - 1)
    found = round(point / max(size, step or size)) * max(size, step or size)
    return float(round(found / step) * step) if step else float(found)


def _turn(pool: Sequence[Question], repetition: int, n: int) -> list[Question]:
    """As many of a pool as a release is asked; the next release goes on behind them."""
    order = np.random.default_rng([len(pool), 7]).permutation(len(pool))
    return [pool[order[(repetition * n + place) % len(pool)]] for place in range(min(n, len(pool)))]


def _n(kind: str, scale: float) -> int:
    return max(1, round(PER_RELEASE.get(kind, 8) * scale))


def _in_words(where: Mapping[str, Any]) -> str:
    return " and ".join(
        f"{name} in {shown(wanted[0])}..{shown(wanted[1])}"
        if isinstance(wanted, tuple)
        else f"{name} = {shown(wanted)}"
        for name, wanted in where.items()
    )
