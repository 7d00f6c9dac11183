"""One release, and how its intervals did: tallies by kind of question, statement and level, and rows against ranges."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import spinney as sp
from benchmarks.coverage.questions import Pool, Question
from benchmarks.coverage.tables import Population, Private, drawn_persons, population
from benchmarks.coverage.truths import Truth, Truths, columns_of, end_of, interval_width, least_squares
from spinney.errors import ParameterError

LEVEL = 0.95
NARROW = 0.7
# Rows of a release are held against certified ranges of this level.
ROWS_LEVEL = 0.99
ROWS_ASIDE = 2.576  # standard deviations of drawing that a count of drawn rows may be off, at that level
# Kinds whose certified intervals are asked for, as well as whatever an answer says by itself.
CERTIFIED_KINDS = (
    *("values", "ranges", "tails", "codes", "means", "means with codes", "quantiles", "outer quantiles"),
    *("range by value, together", "other pairs, together", "shares, together", "means by value, together"),
    *("means in a range, together", "quantiles by value, together", "boxes of two", "boxes of all"),
)
REGRESSIONS, OTHER_REGRESSIONS = "regressions named", "regressions from draws"
DRAWS = 10


class Bars(NamedTuple):
    """An interval and what it calls itself; the ends are None where nothing is claimed."""

    low: float | None
    high: float | None
    statement: str
    level: float


@dataclass(frozen=True, slots=True)
class Trial:
    """A release to be made; two that are equal are one."""

    table: str
    unit: str
    epsilon: str
    repetition: int
    scale: float = 1.0  # of the number of questions
    quality: str = "fast"

    def __str__(self) -> str:
        return f"{self.table}, {self.unit}, epsilon {self.epsilon}, release {self.repetition + 1}"


@dataclass(frozen=True, slots=True)
class Tally:
    """All intervals of a release that share a kind of question, a statement and a level."""

    kind: str
    asked: str  # "auto", "certified", or "naive": one drawn table taken for the real one
    of: str
    statement: str  # what the answers call themselves
    level: float
    n: int  # answers, with an interval or without
    n_barred: int
    n_held: int
    n_below: int  # of those that missed, with the truth below the interval
    n_narrow: int  # held of those of 0.7 times the length
    n_flat: int  # of no width
    n_flat_missed: int
    width: float | None  # median, in widths of the table's own interval

    @property
    def key(self) -> tuple[str, str, str, str, float]:
        return self.kind, self.asked, self.of, self.statement, self.level


@dataclass(frozen=True, slots=True)
class Rows:
    """Drawn rows of a column against certified ranges of the same release."""

    column: str
    n: int
    n_inside: int  # where the luck of drawing is allowed for
    n_strictly: int
    n_tails: int  # of the ranges, those that end at a bound
    n_tails_inside: int
    spread: float  # standard deviation of drawn values over that of the table's
    worst: str
    worst_off: float  # how far outside, in half-widths

    @property
    def is_held(self) -> bool:
        return self.n == self.n_inside


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial gave. Every question by name: [kind, asked, statement, text, how far off in half-widths]."""

    trial: Trial
    tallies: tuple[Tally, ...]
    rows: tuple[Rows, ...]
    questions: tuple[tuple[str, str, str, str, float], ...]
    fit_seconds: float
    seconds: float
    version: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Judged(NamedTuple):
    """An answer with its question and the truth."""

    question: Question
    asked: str
    of: str
    bars: Bars
    truth: Truth


def run(trial: Trial, folder: Path | None, *, most_rows: int, most_drawn_from: int = 0) -> Outcome:
    """Make a release, and ask it everything."""
    here, pool = _population(trial.table, folder, most_rows)
    private = here.sample(trial.repetition)
    start = time.perf_counter()
    release = _fitted(trial, here, private)
    fit_seconds = time.perf_counter() - start
    truths = Truths(private.asked, here.schema)
    together = getattr(release, "_counts_together", None) if here.people is None else release.persons._counts_together
    judged = list(
        _judged(release, pool.part(trial.repetition, trial.scale, _by_asked(here, release, together)), here, truths)
    )
    if here.people is None:
        drawn = release.sample(private.asked.height, seed=trial.repetition, frame="polars")
        judged += _naive(judged, Truths(drawn, here.schema))
        judged += _regressions(
            here, release, private.asked, trial.repetition if trial.repetition < most_drawn_from else None
        )
    else:
        drawn = drawn_persons(here, release.sample(private.asked.height, seed=trial.repetition, frame="polars"))
    rows = tuple(_rows(release, pool, truths, Truths(drawn, here.schema)))
    groups: dict[tuple[Any, ...], list[Judged]] = defaultdict(list)
    for one in judged:
        groups[one.question.kind, one.asked, one.of, one.bars.statement, one.bars.level].append(one)
    tallies = tuple(tally(key, answers) for key, answers in groups.items())
    questions = tuple(
        (one.question.kind, one.asked, one.bars.statement, one.question.text, round(_off(one.bars, one.truth.value), 2))
        for one in judged
        if one.of == "table" and one.bars.level == LEVEL and one.asked != "naive" and one.bars.low is not None
    )
    return Outcome(trial, tallies, rows, questions, fit_seconds, time.perf_counter() - start, sp.__version__)


@lru_cache(maxsize=64)
def _population(name: str, folder: Path | None, most_rows: int) -> tuple[Population, Pool]:
    here = population(name, folder, most_rows=most_rows)
    return here, Pool(here)


def _fitted(trial: Trial, here: Population, private: Private) -> Any:
    if here.people is not None:
        linked = sp.LinkedSynthesizer(trial.epsilon, "1e-6", quality=trial.quality, unit=trial.unit)
        return linked.fit(private.given, here.people.described()).release_
    if here.is_tree:
        return sp.KDTreeSynthesizer(trial.epsilon, unit=trial.unit).fit(private.given, here.schema).release_
    named: dict[str, Any] = {"analyses": list(here.formulas)} if here.formulas else {}
    model = sp.ForestSynthesizer(trial.epsilon, delta="1e-6", unit=trial.unit, quality=trial.quality, **named)
    return model.fit(private.given, here.schema).release_


def _by_asked(here: Population, release: Any, together: Any) -> Any:
    """Whether columns were counted together, by the names that questions give them."""
    if here.people is None:
        return together
    return lambda names: together([release.askable[name] for name in names])


# ------------------------------------------------------------------------------------------------------------ answers


def _judged(release: Any, questions: Sequence[Question], here: Population, truths: Truths) -> Iterator[Judged]:
    """Every answer: as it comes, certified where that can be, and of the population for every fourth question."""
    population = Truths(here.frame, here.schema, n_rows=truths.height)
    for place, question in enumerate(questions):
        truth = truths.of(question)
        if math.isnan(truth.value):
            continue
        ways = [("auto", "table", LEVEL, truth)]
        if question.kind in CERTIFIED_KINDS and place % 2 == 0:
            ways.append(("certified", "table", LEVEL, truth))
        if question.kind == "values":
            ways.append(("certified", "table", 0.99, truth))
        if place % 4 == 0:
            ways.append(("auto", "population", LEVEL, population.of(question)))
        for asked, of, level, true in ways:
            bars = _answer(release, question, level=level, of=of, statement=asked)
            if bars is not None and not math.isnan(true.value):
                yield Judged(question, asked, of, bars, true)


def _answer(release: Any, question: Question, **options: Any) -> Bars | None:
    """An answer; None where a certified one is asked for and there is none, or nothing meets the conditions."""
    where: Any = question.where or None
    try:
        if question.statistic == "count":
            found = release.count(where, **options)
        elif question.statistic == "proportion":
            found = release.proportion(question.where, given=question.given, **options)
        elif question.statistic == "mean":
            found = release.mean(question.column, where=where, **options)
        else:
            found = release.quantile(question.column, question.at, where=where, **options)
    except ParameterError:
        return None if options["statement"] == "certified" else Bars(None, None, "refused", options["level"])
    return Bars(found.low, found.high, found.statement, found.level)


def _naive(judged: Iterable[Judged], drawn: Truths) -> list[Judged]:
    """Intervals of one drawn table that is taken for the real one."""
    found = []
    for one in judged:
        if one.asked == "auto" and one.of == "table":
            value, error = drawn.of(one.question)
            if not math.isnan(value):
                half = interval_width(error, LEVEL) / 2
                found.append(one._replace(asked="naive", bars=Bars(value - half, value + half, "naive", LEVEL)))
    return found


def _regressions(here: Population, release: Any, frame: pl.DataFrame, seed: int | None) -> Iterator[Judged]:
    """Coefficients of regressions that were named before the fit, and from draws of others as `sp.analyse` has them."""
    for formula in here.formulas:
        true = least_squares(formula, frame, here.schema)
        found = release.regression(formula, level=LEVEL)
        for name in found.keys() & true.keys():
            one = found[name]
            bars = Bars(one.low, one.high, one.statement, one.level)
            yield Judged(_coefficient(REGRESSIONS, name, formula), "auto", "table", bars, true[name])
    if seed is None or not here.other_formulas:
        return
    tables = release.sample(frame.height, draws=DRAWS, seed=seed, frame="polars")
    for formula in here.other_formulas:
        true = least_squares(formula, frame, here.schema)
        drawn = [least_squares(formula, table, release.schema) for table in tables]
        values, variances = (
            [{name: part(found[name]) for name in sorted(found)} for found in drawn]
            for part in (lambda found: found.value, lambda found: found.error**2)
        )
        options: dict[str, Any] = {"release": release, "columns": columns_of(formula), "level": LEVEL}
        found = sp.combine(values, variances, of="table", n_drawn=frame.height, **options)
        low, high = (getattr(found, end) or {} for end in ("low", "high"))
        for name in true.keys() & drawn[0].keys():
            bars = Bars(low.get(name), high.get(name), found.statement, found.level)
            yield Judged(_coefficient(OTHER_REGRESSIONS, name, formula), "auto", "table", bars, true[name])


def _coefficient(kind: str, name: str, formula: str) -> Question:
    return Question(kind, "coefficient", f"{name} of {formula}")


# --------------------------------------------------------------------------------------------------------------- rows


def _rows(release: Any, pool: Pool, truths: Truths, drawn: Truths) -> Iterator[Rows]:
    """For every ordered column, and every place: drawn rows in many ranges, against certified ones of the release."""
    asked = {(name,): list(ranges(pool, name)) for name in pool.ordered}
    for place in release.schema.places:
        x, y = (asked[name,] for name in place.columns)
        asked[place.columns] = [along | across for along in x for across in y]
    for columns, wheres in asked.items():
        n_inside = n_strictly = n = n_tails = n_tails_inside = 0
        bounds = {
            name: {*pool.condition(name, *map(end_of, (pool.columns[name].low, pool.columns[name].high)))[name]}
            for name in columns
        }
        worst, worst_off = "", 0.0
        for where in wheres:
            question = Question("rows", "count", where=where)
            bars = _answer(release, question, level=ROWS_LEVEL, of="table", statement="certified")
            if bars is None or bars.low is None or bars.high is None:
                continue
            value, error = drawn.of(question)
            luck = ROWS_ASIDE * max(error, 1.0)
            half = max((bars.high - bars.low) / 2, 0.5)
            off = max(bars.low - luck - value, value - bars.high - luck, 0.0) / half
            n, n_inside, n_strictly = n + 1, n_inside + (off == 0), n_strictly + (bars.low <= value <= bars.high)
            if all(bounds[name].intersection(where[name]) for name in columns):
                n_tails, n_tails_inside = n_tails + 1, n_tails_inside + (off == 0)
            if off > worst_off:
                worst_off = off
                true = truths.of(question).value
                worst = f"{question.text}: {value:,.0f} rows, {bars.low:,.0f} to {bars.high:,.0f}, truth {true:,.0f}"
        spread = max(float(np.nanstd(drawn.columns[name]) / np.nanstd(truths.columns[name])) for name in columns)
        yield Rows(", ".join(columns), n, n_inside, n_strictly, n_tails, n_tails_inside, spread, worst, worst_off)


def ranges(pool: Pool, name: str) -> Iterator[dict[str, Any]]:
    """Tails on both sides, what lies between round numbers, and what lies around codes far out."""
    marks = pool.ruler(name)
    low, high = marks[0], marks[-1]
    column = pool.columns[name]
    outer = (
        {high - (high - low) * share for share in (0.01, 0.001, 0.0001)} if not isinstance(column, sp.Date) else set()
    )
    inner = marks[1:-1]
    chosen = inner[:: -(-len(inner) // 7)] if inner else []
    for mark in {*chosen, *outer}:
        if low < mark < high:
            yield pool.condition(name, mark, high)
    # Columns that go on to the left as well have tails there.
    yield from (pool.condition(name, low, mark) for mark in chosen[:3])
    for first, last in pairwise(chosen):
        yield pool.condition(name, first, last)
    for code in pool.codes.get(name, ()):
        around = max(1.0, 0.02 * abs(code))
        yield pool.condition(name, max(low, code - around), min(high, code + around))


# -------------------------------------------------------------------------------------------------------------- tally


def _off(bars: Bars, truth: float) -> float:
    """How far the truth is from the middle, in half-widths: more than 1 is a miss, its sign the side."""
    assert bars.low is not None
    assert bars.high is not None
    middle, half = (bars.low + bars.high) / 2, (bars.high - bars.low) / 2
    slack = 1e-9 * max(1.0, abs(truth))
    return float(np.clip((truth - middle) / (half + slack), -99, 99))


def tally(key: tuple[Any, ...], answers: Sequence[Judged]) -> Tally:
    kind, asked, of, statement, level = key
    barred = [one for one in answers if one.bars.low is not None]
    offs = [_off(one.bars, one.truth.value) for one in barred]
    flat = [_is_flat(one.bars) for one in barred]
    widths = [
        (one.bars.high - one.bars.low) / interval_width(one.truth.error, level)  # type: ignore[operator]
        for one in barred
        if one.truth.error > 0
    ]
    return Tally(
        *(kind, asked, of, statement, level, len(answers), len(barred)),
        n_held=sum(abs(off) <= 1 for off in offs),
        n_below=sum(off < -1 for off in offs),
        n_narrow=sum(abs(off) <= NARROW for off in offs),
        n_flat=sum(flat),
        n_flat_missed=sum(is_flat and abs(off) > 1 for is_flat, off in zip(flat, offs, strict=True)),
        width=median(widths) if widths else None,
    )


def _is_flat(bars: Bars) -> bool:
    assert bars.low is not None
    assert bars.high is not None
    return bars.high - bars.low <= 1e-9 * max(1.0, abs(bars.low))
