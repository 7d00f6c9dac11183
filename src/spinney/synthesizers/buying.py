"""A second opinion: a direct answer to one question, bought with exact noise on the private table.

A release answers everything at once, so that it answers some questions poorly or not at all. Where one of them matters,
part of what is left in the ledger buys an answer to it alone. The order is that of a fit: the question, names, types
and the ledger are checked, values are read to find those that cannot be counted, then the ledger is charged, and only
then are rows counted.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from spinney.columns import Column, Identifier
from spinney.errors import InputError, ParameterError
from spinney.privacy.budget import Unit, parse_epsilon
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger, decimal
from spinney.progress import waiting
from spinney.release.answers.answer import TRUTHS, Answer, Truth
from spinney.release.answers.grammar import ParsedQuestion, parse_question
from spinney.release.answers.question import check_level
from spinney.release.model import Release
from spinney.schema.table import Schema
from spinney.shown import as_given, printable
from spinney.synthesizers.asked_states import AskedColumn, asked_columns, true_sums
from spinney.synthesizers.charged import NO_ANSWER, record_outcome, started, told_of_charge
from spinney.synthesizers.validation import LedgerLike, checked_entropy, checked_ledger, warn_of_weak_promise
from spinney.tables.opening import open_source
from spinney.tables.outline import names_of, parts_of
from spinney.tables.source import Source
from spinney.tree.direct import Direct, NoisySums, check_direct, release_sums
from spinney.tree.release.answers.binomial import population_counts
from spinney.tree.release.answers.certified import Interval

_LONGEST_NOTE = 500


@waiting("buying an answer")
def buy_answer(
    release: Release,
    question: str,
    frame: Any,
    *,
    epsilon: Any,
    ledger: LedgerLike = None,
    level: float = 0.95,
    of: str = "table",
    engine: str | None = None,
    entropy: Entropy | None = None,
) -> Answer:
    """An answer to one question from the private table itself, with exact noise, paid for out of a ledger.

    The answer is certified: over the noise, its interval holds with probability `level`, whatever the rows are. Every
    call pays anew.

    Args:
        release: the release that the question was put to; its schema says what is public about the table.
        question: a count, a proportion or a mean, as `spinney ask` takes it: "mean(income) where age in 30..40".
        frame: the private table that was released, in any kind that `fit` takes.
        epsilon: what to pay, exact: a number or a string such as "0.05".
        ledger: the account of the people in the table, or its path or address; by default the ledger that
            SPINNEY_LEDGER names. There has to be one.
        level: the probability that the interval holds with.
        of: "table", or "population" where the rows are a sample of one: of counts, and of shares of all rows, where the
            number of rows is public (replace-one). The interval then also holds over the luck of sampling.
        engine: what reads the table, where there is a choice; see `fit`.
        entropy: leave it out. Tests and figures may pass `UnsafeSeededEntropy`, which brands the ledger.

    Raises:
        ParameterError: the question cannot be bought, or does not fit the release.
        SchemaError: the table does not have the question's columns, or they are of other types.
        InputError: a value cannot be read, or the table is another than the one released.
        BudgetError: the ledger has too little left.

    Everything is checked before the charge, and values are read once to find those that cannot be counted: what these
    checks refuse costs nothing. A table that cannot be read a second time, after the charge, is an InputError that says
    what was charged and to which account; an error that does not say so came before the charge.
    """
    if not isinstance(release, Release):
        raise ParameterError(f"release is a {type(release).__name__}, not a release; load one: sp.load(path)")
    account, source = started(checked_ledger(ledger), release.schema), checked_entropy(entropy)
    if account is None:
        raise ParameterError("ledger is missing; an answer is bought out of the account of the same people")
    price, level = parse_epsilon(epsilon), check_level(level)
    unit = _row_unit(release)
    asked = _checked_question(question, release.schema)
    truth = _checked_truth(of, asked, unit)
    columns = asked_columns(asked, release.schema)
    table = _open(frame, release.schema, asked, engine)
    n_rows = table.n_rows if unit.n_is_public else None
    direct = _direct(asked, columns, unit, has_public_total=_has_public_total(asked, release.schema, n_rows))
    noise_level = level if truth == "table" else 1 - (1 - level) / 2  # the other half is the sample's
    check_direct(direct, price, noise_level)
    account.require(price, unit=unit)
    if n_rows is not None and release.card.n_rows not in (None, n_rows):
        raise InputError(
            f"the table has {n_rows:,} rows, and the release is of a table of {release.card.n_rows:,}; an answer is "
            "bought of the table that was released"
        )
    warn_of_weak_promise(price, Fraction(0), n_rows)
    table.check_values()
    books = Ledger(limit=price, unit=unit, parent=account)
    with told_of_charge(books, account, NO_ANSWER):
        sums = release_sums(
            lambda: _counted(table, asked, columns, direct, unit),
            direct=direct,
            epsilon=price,
            ledger=books,
            entropy=source,
        )
        answer = _answer(asked, columns, sums, unit, n_rows, noise_level, price)
        if truth == "population":
            assert n_rows is not None
            answer = _of_population(answer, asked, n_rows, level)
    record_outcome(account, answer.digest, "answer")
    return answer


# ---------------------------------------------------------------------------------------------- before the charge


def _row_unit(release: Release) -> Unit:
    unit = Unit.parse(release.card.unit)
    if unit.is_person:
        raise ParameterError(
            f"the release protects persons with all their rows (unit {unit.value!r}), and a bought answer counts "
            "single rows; ask the release instead, which costs nothing: release.count(...), or `spinney ask`"
        )
    return unit


def _checked_question(question: Any, schema: Schema) -> ParsedQuestion:
    if not isinstance(question, str):
        raise ParameterError(f"question={as_given(question)} is not a string such as 'count where age in 30..40'")
    asked = parse_question(question, schema)
    if asked.by:
        raise ParameterError(
            f"{asked.text!r} cannot be bought; one number is bought at a time, so leave `by` out and say in `where` "
            "which cell you want"
        )
    if asked.kind not in ("count", "proportion", "mean"):
        raise ParameterError(
            f"{asked.text!r} cannot be bought; a count, a proportion or a mean can. Of a quantile, buy the share of "
            f"rows on one side of a value: proportion where {asked.column} <= VALUE"
        )
    if asked.kind == "count" and not asked.where:
        raise ParameterError("a count of all rows cannot be bought; say which rows: count where NAME = VALUE")
    both = [name for name in asked.where if name in (asked.given or {})]
    if both:
        raise ParameterError(f"column {both[0]!r} is in `where` and in `given`; leave it out of one of the two")
    return asked


def _checked_truth(of: Any, asked: ParsedQuestion, unit: Unit) -> Truth:
    """What the answer is about; a ParameterError where sampling cannot be accounted for by what is bought."""
    if of not in TRUTHS:
        raise ParameterError(f"of={as_given(of)} is not one of {', '.join(map(repr, TRUTHS))}")
    if of == "table":
        return "table"
    if asked.kind == "mean" or asked.given:
        raise ParameterError(
            "of='population' is for counts, and for proportions of all rows; what else is bought says nothing of how "
            "values vary from row to row. Leave it out, and add the error of sampling yourself"
        )
    if not unit.n_is_public:
        raise ParameterError(
            f"of='population' needs a public number of rows, and under {unit.value} it is private; leave it out"
        )
    return "population"


def _open(frame: Any, schema: Schema, asked: ParsedQuestion, engine: str | None) -> Source:
    """The table, of which only the question's columns are read."""
    names = None if isinstance(frame, np.ndarray) else names_of(parts_of(frame)[0])
    if names is None or set(schema).isdisjoint(names):  # names that may be somebody's values are for others to refuse
        names = list(schema)
    wanted: dict[str, Column] = {name: Identifier() for name in names}
    wanted |= {name: replace(schema[name], bits=None) for name in asked.columns}
    table = open_source(frame, Schema(wanted), engine=engine)
    return table.with_schema(Schema({name: wanted[name] for name in asked.columns}))


def _has_public_total(asked: ParsedQuestion, schema: Schema, n_rows: int | None) -> bool:
    """Whether the number of rows that a proportion or a mean is of is public."""
    if n_rows is None or asked.given:
        return False
    is_of_all = asked.kind == "mean" and not asked.where and not schema[asked.column or ""].nullable
    return asked.kind == "proportion" or is_of_all


def _direct(asked: ParsedQuestion, columns: list[AskedColumn], unit: Unit, *, has_public_total: bool) -> Direct:
    note = printable(f"answer: {asked.text}")[:_LONGEST_NOTE]
    if asked.kind == "mean":
        reach = _grid_of(columns).reach * unit.factor
        return Direct(1 if has_public_total else 2, reach, _grid_of(columns).reach, note)
    return Direct(1 if asked.kind == "count" or has_public_total else 2, 1, 1, note)


def _grid_of(columns: list[AskedColumn]) -> Any:
    return next(column.grid for column in columns if column.grid is not None)


# ----------------------------------------------------------------------------------------------- after the charge


def _counted(
    table: Source, asked: ParsedQuestion, columns: list[AskedColumn], direct: Direct, unit: Unit
) -> tuple[int, ...]:
    """The sums that were paid for. SENSITIVE."""
    sums = table.sum_states([column.cut for column in columns], lambda rows: true_sums(rows, columns))
    n_given, n_where, total = sums.tolist()
    if asked.kind == "mean":
        return (total,) if direct.n_sums == 1 else (unit.factor * _grid_of(columns).reach * n_where, total)
    return (n_where,) if direct.n_sums == 1 else (n_given, n_where)


def _answer(
    asked: ParsedQuestion,
    columns: list[AskedColumn],
    sums: NoisySums,
    unit: Unit,
    n_rows: int | None,
    level: float,
    price: Fraction,
) -> Answer:
    """What the noisy sums say."""
    is_alone = len(sums.noisy) == 1
    if asked.kind == "mean":
        grid = _grid_of(columns)
        if is_alone:
            assert n_rows is not None
            scale = grid.reach * max(n_rows, 1)
            parts = [(sums.noisy[0] + t) / scale for t in (0, -sums.half_width(level), sums.half_width(level))]
        else:
            ends = 1 / unit.factor
            parts = [unit.factor * part for part in sums.ratio(level, low=-ends, high=ends)]
        middle, low, high = (grid.centre + grid.half * min(max(part, -1.0), 1.0) for part in parts)
        low, high = low - grid.slack, high + grid.slack
    elif is_alone:
        most = float("inf") if n_rows is None else n_rows
        width = sums.half_width(level)
        parts = [min(max(sums.noisy[0] + t, 0), most) for t in (0, -width, width)]
        whole = 1 if asked.kind == "count" else max(most, 1)
        middle, low, high = (part / whole for part in parts)
    else:
        middle, low, high = sums.ratio(level, low=0.0, high=1.0)
    why = f"bought for epsilon={decimal(price)}, exact noise on this answer alone"
    return Answer(float(middle), float(low), float(high), level, "certified", why, "table", asked.text)


def _of_population(answer: Answer, asked: ParsedQuestion, n_rows: int, level: float) -> Answer:
    """The answer of a population of which the rows are independent draws: a miss is shared by noise and sampling."""
    assert answer.low is not None
    assert answer.high is not None
    scale = max(n_rows, 1) if asked.kind == "proportion" else 1
    counted = Interval(answer.low * scale, answer.high * scale)
    low, high = population_counts(counted, max(n_rows, 1), (1 - level) / 2)
    why = f"{answer.why}, and the sample, its rows being independent"
    return replace(answer, low=low / scale, high=high / scale, level=level, of="population", why=why)
