"""One release, and how its intervals did: figures by kind of question, truth, statement and level."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

import spinney as sp
from benchmarks.coverage.questions import Asked, Questions
from benchmarks.coverage.tables import Population, population
from benchmarks.coverage.truths import MEDIAN, Truth, interval_width, least_squares, truth
from spinney.errors import ParameterError
from spinney.forest.release.model import ForestRelease
from spinney.release.answers.answer import Answer
from spinney.release.model import Release

LEVELS = (0.8, 0.95, 0.99)
TRUTHS = ("table", "population")
STATEMENTS = ("auto", "certified")
REGRESSIONS = "regressions"
NARROW = 0.7


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
    asked = _questions(trial, here, release)
    held: dict[tuple[Any, ...], list[tuple[Answer, Truth]]] = defaultdict(list)
    times = []
    for key, answer, seconds, true in _answers(asked, here, private, release):
        held[(*key, answer.statement, answer.level)].append((answer, true))
        times.append(seconds)
    figures = tuple(figure_of(key, answers) for key, answers in held.items())
    return Outcome(trial, figures, fit_seconds, times[0], median(times[1:] or times), sp.__version__)


@lru_cache(maxsize=1)
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
        return questions.of_tree(trial.n_questions)
    assert isinstance(release, ForestRelease)
    together = [clique.columns for clique in release.explain().cliques]
    return questions.of_forest(together, trial.n_questions)


def _answers(
    asked: list[Asked], here: Population, private: pl.DataFrame, release: Release
) -> Iterator[tuple[tuple[str, str, str], Answer, float, Truth]]:
    """Every answer with its kind, the truth that it is about, what was wanted, and the seconds that it took."""
    frames = {"table": private, "population": here.frame}
    for one in asked:
        truths = {of: truth(one, frame, here.schema, n_rows=private.height) for of, frame in frames.items()}
        for of in TRUTHS:
            for wanted in STATEMENTS:
                for level in LEVELS:
                    start = time.perf_counter()
                    answer = _answer(release, one, level=level, of=of, statement=wanted)
                    if answer is not None:
                        yield (one.kind, of, wanted), answer, time.perf_counter() - start, truths[of]
    for formula in here.formulas:
        fits = {of: least_squares(formula, frame, here.schema) for of, frame in frames.items()}
        for of in TRUTHS:
            for level in LEVELS:
                start = time.perf_counter()
                found = release.regression(formula, of=of, level=level)  # type: ignore[attr-defined]  # of forests
                passed = time.perf_counter() - start
                for name, answer in found.items():
                    if name in fits[of]:
                        yield (REGRESSIONS, of, "auto"), answer, passed / len(found), fits[of][name]


def _answer(release: Release, asked: Asked, **options: Any) -> Answer | None:
    """An answer; None where a certified one was wanted and there is none."""
    found: Any
    try:
        if asked.statistic == "count":
            found = release.count(asked.where, **options)
        elif asked.statistic == "mean":
            found = release.mean(str(asked.column), where=asked.where or None, **options)
        else:
            found = release.quantile(str(asked.column), MEDIAN, where=asked.where or None, **options)
    except ParameterError:
        if options["statement"] == "certified":
            return None
        raise
    assert isinstance(found, Answer)
    return found


def figure_of(key: tuple[Any, ...], answers: list[tuple[Answer, Truth]]) -> Figure:
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
