"""One release, and how its intervals did: figures by kind of question, truth, statement and level."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import polars as pl

import spinney as sp
from benchmarks.coverage.questions import Asked, Questions, leaves_of
from benchmarks.coverage.tables import Population, population
from benchmarks.coverage.truths import Truth, columns_of, interval_width, least_squares, truth
from spinney.errors import ParameterError
from spinney.forest.release.model import ForestRelease
from spinney.release.answers.answer import Answer
from spinney.release.model import Release
from spinney.tree.release.moments import MomentsRelease

LEVEL = 0.95
TRUTHS = ("table", "population")
# Every question is asked of a truth, for a statement, at a level.
ASKED = (
    *(("table", "auto", level) for level in (0.8, LEVEL, 0.99)),
    ("table", "certified", LEVEL),
    ("population", "auto", LEVEL),
)
REGRESSIONS, OTHER_REGRESSIONS = "regressions", "other regressions"
NAIVE = "naive"
NARROW = 0.7
DRAWS = 20
# Draws take longer than all else: only so many releases of a cell are drawn from.
MOST_DRAWN_FROM = 3


Truths = Mapping[str, Truth]  # by what they are of: the table or the population
Fits = Mapping[str, Mapping[str, Mapping[str, Truth]]]  # by formula, truth and coefficient
Key = tuple[str, str, str]  # kind of question, truth, what was wanted


class Bars(NamedTuple):
    """An interval, what it calls itself and its level: the part of an answer that is judged."""

    low: float
    high: float
    statement: str
    level: float


@dataclass(frozen=True, slots=True)
class Trial:
    """A release to be made; two that are equal are one."""

    table: str
    epsilon: str
    repetition: int
    quality: str = "fast"
    unit: str = "replace-one"
    n_questions: int = 12

    def __str__(self) -> str:
        return f"{self.table}, epsilon {self.epsilon}, run {self.repetition + 1}"


@dataclass(frozen=True, slots=True)
class Figure:
    """All intervals of a release that share a kind of question, a truth, what was wanted and said, and a level."""

    kind: str
    of: str
    wanted: str  # "auto" or "certified"
    statement: str  # what the answers call themselves
    level: float
    n_answers: int
    n_held: int | None  # None where there are no intervals
    n_held_narrow: int | None  # of intervals of 0.7 times the length
    width: float | None  # median, in widths of the table's own interval


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial gave."""

    trial: Trial
    figures: tuple[Figure, ...]
    fit_seconds: float
    first_answer_seconds: float  # which has models fitted anew
    answer_seconds: float  # median of all others
    version: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def run(trial: Trial, folder: Path | None, *, most_rows: int) -> Outcome:
    """Make a release, and ask it everything."""
    here = _population(trial.table, folder, most_rows)
    private = here.sample(trial.repetition)
    start = time.perf_counter()
    release = _fitted(trial, here, private)
    fit_seconds = time.perf_counter() - start
    frames = {"table": private, "population": here.frame}
    asked = [(one, _truths(one, frames, here.schema)) for one in _questions(trial, here, release)]
    held: dict[tuple[Any, ...], list[tuple[Answer | Bars, Truth]]] = defaultdict(list)
    times = []
    for key, answer, seconds, true in _answers(asked, release):
        held[(*key, answer.statement, answer.level)].append((answer, true))
        times.append(seconds)
    others = here.other_formulas if trial.repetition < MOST_DRAWN_FROM else ()
    fits = {
        formula: {of: least_squares(formula, frame, here.schema) for of, frame in frames.items()}
        for formula in (*here.formulas, *others)
    }
    for key, answer, true in (
        *_named_regressions(here.formulas, fits, release),
        *_other_regressions(others, fits, release, private.height, trial.repetition),
        *_naive(asked, fits, here, release, trial.repetition),
    ):
        held[(*key, answer.statement, answer.level)].append((answer, true))
    figures = tuple(figure_of(key, answers) for key, answers in held.items())
    return Outcome(trial, figures, fit_seconds, times[0], median(times[1:] or times), sp.__version__)


@lru_cache(maxsize=32)
def _population(name: str, folder: Path | None, most_rows: int) -> Population:
    return population(name, folder, most_rows=most_rows)


def _fitted(trial: Trial, here: Population, private: pl.DataFrame) -> Release:
    if here.is_tree:
        return sp.KDTreeSynthesizer(trial.epsilon, unit=trial.unit).fit(private, here.schema).release_
    named: dict[str, Any] = {"analyses": list(here.formulas)} if here.formulas else {}
    model = sp.ForestSynthesizer(trial.epsilon, delta="1e-5", unit=trial.unit, quality=trial.quality, **named)
    return model.fit(private, here.schema).release_


def _questions(trial: Trial, here: Population, release: Release) -> list[Asked]:
    questions = Questions(here, trial.repetition)
    if here.is_tree:
        assert isinstance(release, MomentsRelease)
        return questions.of_tree(trial.n_questions, leaves_of(release))
    assert isinstance(release, ForestRelease)
    together = [clique.columns for clique in release.explain().cliques]
    return questions.of_forest(together, trial.n_questions)


def _truths(one: Asked, frames: Mapping[str, pl.DataFrame], schema: sp.Schema) -> Truths:
    return {of: truth(one, frame, schema, n_rows=frames["table"].height) for of, frame in frames.items()}


def _answers(asked: list[tuple[Asked, Truths]], release: Release) -> Iterator[tuple[Key, Answer, float, Truth]]:
    """Every answer with its kind, the truth that it is about, what was wanted, and the seconds that it took."""
    for one, truths in asked:
        for of, wanted, level in ASKED:
            start = time.perf_counter()
            answer = _answer(release, one, level=level, of=of, statement=wanted)
            if answer is not None:
                yield (one.kind, of, wanted), answer, time.perf_counter() - start, truths[of]


def _named_regressions(formulas: Iterable[str], fits: Fits, release: Release) -> Iterator[tuple[Key, Answer, Truth]]:
    for formula, (of, wanted, level) in product(formulas, ASKED):
        if wanted == "certified":
            continue
        found = release.regression(formula, of=of, level=level)  # type: ignore[attr-defined]  # of forests
        for name in found.keys() & fits[formula][of].keys():
            yield (REGRESSIONS, of, "auto"), found[name], fits[formula][of][name]


def _other_regressions(
    formulas: Sequence[str], fits: Fits, release: Release, n_rows: int, seed: int
) -> Iterator[tuple[Key, Bars, Truth]]:
    """Coefficients from draws, combined as `sp.analyse` combines them."""
    tables = release.sample(n_rows, draws=DRAWS, seed=seed, frame="polars") if formulas else []
    for formula in formulas:
        drawn = [least_squares(formula, table, release.schema) for table in tables]
        values, variances = (
            [{name: part(found[name]) for name in sorted(found)} for found in drawn]
            for part in (lambda found: found.value, lambda found: found.error**2)
        )
        options: dict[str, Any] = {"release": release, "columns": columns_of(formula), "level": LEVEL, "force": True}
        for of in TRUTHS:
            found = sp.combine(values, variances, of=of, n_drawn=n_rows, **options)
            for name in found.low.keys() & fits[formula][of].keys():
                bars = Bars(found.low[name], found.high[name], found.statement, found.level)
                yield (OTHER_REGRESSIONS, of, "auto"), bars, fits[formula][of][name]


def _naive(
    asked: list[tuple[Asked, Truths]], fits: Fits, here: Population, release: Release, seed: int
) -> Iterator[tuple[Key, Bars, Truth]]:
    """Intervals of one drawn table that is taken for the real one."""
    n_rows = here.frame.height
    drawn = release.sample(n_rows, seed=seed, frame="polars")
    found = [(one.kind, truth(one, drawn, here.schema, n_rows=n_rows), truths) for one, truths in asked]
    for formula, of_formula in fits.items():
        kind = REGRESSIONS if formula in here.formulas else OTHER_REGRESSIONS
        drawn_fit = least_squares(formula, drawn, here.schema)
        names = drawn_fit.keys() & of_formula["table"].keys() & of_formula["population"].keys()
        found += [(kind, drawn_fit[name], {of: of_formula[of][name] for of in TRUTHS}) for name in names]
    for (kind, estimate, truths), of in product(found, TRUTHS):
        if not math.isnan(estimate.value):
            half = interval_width(estimate.error, LEVEL) / 2
            bars = Bars(estimate.value - half, estimate.value + half, NAIVE, LEVEL)
            yield (kind, of, NAIVE), bars, truths[of]


def _answer(release: Release, asked: Asked, **options: Any) -> Answer | None:
    """An answer; None where a certified one was wanted and there is none."""
    found: Any
    try:
        if asked.statistic == "count":
            found = release.count(asked.where, **options)
        elif asked.statistic == "mean":
            found = release.mean(str(asked.column), where=asked.where or None, **options)
        else:
            found = release.quantile(str(asked.column), asked.at, where=asked.where or None, **options)
    except ParameterError:
        if options["statement"] == "certified":
            return None
        raise
    assert isinstance(found, Answer)
    return found


def figure_of(key: tuple[Any, ...], answers: Sequence[tuple[Answer | Bars, Truth]]) -> Figure:
    kind, of, wanted, statement, level = key
    bars = [(answer.low, answer.high, true) for answer, true in answers if answer.low is not None]
    if not bars:
        return Figure(kind, of, wanted, statement, level, len(answers), None, None, None)
    held = narrow = 0
    widths = []
    for low, high, true in bars:
        assert high is not None
        middle, half = (low + high) / 2, (high - low) / 2
        slack = 1e-9 * max(1.0, abs(true.value))
        held += abs(true.value - middle) <= half + slack
        narrow += abs(true.value - middle) <= NARROW * half + slack
        if true.error > 0:
            widths.append((high - low) / interval_width(true.error, level))
    width = median(widths) if widths else None
    return Figure(kind, of, wanted, statement, level, len(answers), held, narrow, width)
