"""A direct answer to one question, bought from the private table with exact noise. SENSITIVE inside.

A release answers everything at once, so it answers a few questions poorly or not at all. Where one of them
matters, a part of what is left in the ledger buys an answer to it alone. The order is that of a fit: the
question, names, types and the ledger are checked, values are read to find those that cannot be counted, then
the ledger is charged, and only then are rows counted. Proof: `tree/direct.proof.md`.

    question states     what a question asks of every row, as public arrays; the true sums
    cells               the cells of a column that meet a condition
    states              how a column is cut, and the even grid of a mean
    buying              `buy_answer`, and its steps in order
    before the charge   everything that can be refused without a cost
    after the charge    the counted sums, and the answer that they give
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Boolean, Column, Identifier, Real, exact
from spinney.columns.bounded import Number
from spinney.counting.states import Cut, StateRows
from spinney.errors import InputError, ParameterError
from spinney.grid.axes import ColumnAxis, fine_axis
from spinney.grid.lattice import whole_axis
from spinney.privacy.budget import Unit, parse_epsilon
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import decimal
from spinney.progress import waiting
from spinney.release.answers.answer import TRUTHS, Answer, Truth
from spinney.release.answers.certify import Between, population_counts
from spinney.release.answers.grammar import ParsedQuestion, parse_question
from spinney.release.answers.question import allowed, check_level, never
from spinney.release.release import Release
from spinney.schema.schema import Schema
from spinney.synthesizers.paying import NO_ANSWER, record_outcome, started, told_of_charge
from spinney.synthesizers.validation import LedgerLike, checked_entropy, checked_ledger, warn_of_weak_promise
from spinney.tables.open import open_source
from spinney.tables.preview import names_of, parts_of
from spinney.tables.source import Source
from spinney.text import as_given, printable
from spinney.tree.bought import Direct, NoisySums, check_direct, release_sums
from spinney.tree.release.regions import cell_of

# ------------------------------------------------------------------------------------------------------ question states
# What a question asks of every row, as public states: which cells of its columns meet the conditions, and what each
# cell adds to a sum.
#
# A column is cut where its conditions begin and end, and for a mean into up to 1,024 even parts of the range that it
# is asked about, so that the engines read one small number for each row and column, as they do for a forest. All of
# this follows from the schema and the question; what rows add is looked up in these arrays, so that no row can add
# more.


Ranges = list[tuple[int, int]]  # first and last cells

# Parts of the range of a mean: half of one is a two-thousandth of the range.
_MOST_PARTS = 1 << 10
_MOST_CELLS = 1 << 40
_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The column of a mean in `n_parts` even parts, whose middles lie from `centre` - `half` to `centre` + `half`.

    Part i adds 2i - (n_parts - 1) steps, so from -`reach` to `reach`; a value is at most `slack` from the middle of its
    part.
    """

    n_parts: int
    centre: float
    half: float
    slack: float

    @property
    def reach(self) -> int:
        return self.n_parts - 1


@dataclass(frozen=True, slots=True, eq=False)
class AskedColumn:
    """One column of a question: how it is cut, and what each state means. Public."""

    cut: Cut
    meets_where: NDArray[np.bool_]  # (n_states,)
    meets_given: NDArray[np.bool_]
    steps: NDArray[np.int64] | None  # of the column of a mean: what a state adds
    grid: Grid | None


def asked_columns(question: ParsedQuestion, schema: Schema) -> list[AskedColumn]:
    """The columns of a question, or a ParameterError where one cannot be asked about in this way."""
    given: Mapping[str, Any] = question.given or {}
    columns = []
    for name in question.columns:
        column = schema[name]
        axis = _axis(name, column)
        columns.append(
            _asked(
                axis,
                where=_cells(name, column, axis, question.where[name]) if name in question.where else None,
                given=_cells(name, column, axis, given[name]) if name in given else None,
                mean_of=column if name == question.column else None,
            )
        )
    return columns


def true_sums(rows: StateRows, columns: list[AskedColumn]) -> NDArray[np.int64]:
    """Rows that meet `given`, rows that meet `where` as well, and what those add up to in steps (3,). SENSITIVE."""
    n_given = n_where = total = 0
    for start in range(0, rows.n_rows, _AT_ONCE):
        states = rows.true_states[:, start : start + _AT_ONCE]
        is_given = np.ones(states.shape[1], dtype=np.bool_)
        is_here = is_given.copy()
        steps = np.zeros(states.shape[1], dtype=np.int64)
        for column, line in zip(columns, states, strict=True):
            is_given &= column.meets_given[line]
            is_here &= column.meets_where[line]
            if column.steps is not None:
                steps = column.steps[line]
        is_here &= is_given
        n_given += int(np.count_nonzero(is_given))
        n_where += int(np.count_nonzero(is_here))
        total += int(steps[is_here].sum())
    return np.array([n_given, n_where, total], dtype=np.int64)


# ---------------------------------------------------------------------------------------------------------------- cells
# Which cells of a column meet a condition. Public: this follows from the schema and the question alone.


def _axis(name: str, column: Column) -> ColumnAxis:
    """Cells of one value each, or as fine as floats and engines tell apart."""
    if isinstance(column, Real):
        return fine_axis(name, replace(column, bits=None))
    assert column.is_whole
    low, high = column._whole_range() or (0, 0)
    n_steps = -(-(high - low + 1) // column.step)
    size = column.step * -(-n_steps // _MOST_CELLS)
    return ColumnAxis(whole_axis(name, column, size), None)


def _cells(name: str, column: Column, axis: ColumnAxis, wanted: Any) -> Ranges:
    """The cells that meet a condition; a ParameterError where none does, or the condition makes no sense."""
    values = allowed(name, column, wanted)
    ranges = [(cell_of(axis.axis, low), cell_of(axis.axis, high)) for low, high in values.ranges]
    if isinstance(column, Real):
        ranges = [_rounded(axis, *cells, *map(float, ends)) for cells, ends in zip(ranges, values.ranges, strict=True)]
    found = [(first, last) for first, last in ranges if first <= last]
    found += [(axis.axis.null_cell, axis.axis.null_cell)] if values.has_null else []
    if not found:
        raise never(name, wanted)
    return found


def _rounded(axis: ColumnAxis, first: int, last: int, low: float, high: float) -> tuple[int, int]:
    """Cells lie around round values; one belongs to a range if its round value does, whatever floats are next to it."""
    cells = axis.axis
    if axis.unit is not None and axis.ruler is not None:
        zero = int(axis.ruler.zero)
        first += (first - zero) * axis.unit < exact(low) and first < cells.last and low > cells.low
        last -= (last - zero) * axis.unit > exact(high) and last > cells.first and high < cells.high
    return first, last


# --------------------------------------------------------------------------------------------------------------- states
# How each column of a question is cut into states, and the range that a mean is asked about. Public.


def _asked(axis: ColumnAxis, *, where: Ranges | None, given: Ranges | None, mean_of: Column | None) -> AskedColumn:
    cells = axis.axis
    starts = {0}
    for first, last in [*(where or ()), *(given or ())]:
        starts |= {first, last + 1}
    grid, edges = None, np.empty(0, dtype=np.int64)
    if mean_of is not None:
        first, last = _mean_range(cells.name, axis, where)
        grid, edges = _grid(mean_of, axis, first, last)
        starts |= {*edges.tolist(), last + 1}
    if cells.nullable:
        starts |= {cells.null_cell, cells.null_cell + 1}
    n_cells = 1 << cells.bits
    first_cells = np.array(sorted(start for start in starts if start < n_cells), dtype=np.int64)
    meets_where = _within(first_cells, where)
    steps = None
    if grid is not None:
        part = np.searchsorted(edges, first_cells, side="right") - 1
        is_here = (part >= 0) & (first_cells <= last)
        steps = np.where(is_here, 2 * part - grid.reach, 0)
        meets_where &= is_here  # a mean leaves nulls out
    return AskedColumn(
        Cut(cells, first_cells, np.arange(len(first_cells))), meets_where, _within(first_cells, given), steps, grid
    )


def _within(first_cells: NDArray[np.int64], ranges: Ranges | None) -> NDArray[np.bool_]:
    if ranges is None:
        return np.ones(len(first_cells), dtype=np.bool_)
    found = np.zeros(len(first_cells), dtype=np.bool_)
    for first, last in ranges:
        found |= (first_cells >= first) & (first_cells <= last)
    return found


def _mean_range(name: str, axis: ColumnAxis, where: Ranges | None) -> tuple[int, int]:
    """The first and the last cell that a mean can be of: the narrower, the less noise."""
    cells = axis.axis
    if where is None:
        return cells.first, cells.last
    first, last = min(start for start, _ in where), max(stop for _, stop in where)
    if first > cells.last:
        raise ParameterError(f"question: nulls of column {name!r} have no mean")
    return first, min(last, cells.last)


def _grid(column: Column, axis: ColumnAxis, first: int, last: int) -> tuple[Grid, NDArray[np.int64]]:
    cells = axis.axis
    if not isinstance(column, (Number, Boolean)):
        raise ParameterError(
            f"question: column {cells.name!r} is of type {column.type_name}, and a mean is bought of numbers and "
            "booleans; buy a count or a proportion"
        )
    n_cells = last - first + 1
    if n_cells == 1:
        raise ParameterError(
            f"question: the condition leaves column {cells.name!r} one value, so its mean is known; nothing is bought"
        )
    width = -(-n_cells // _MOST_PARTS)
    n_parts = -(-n_cells // width)
    length = 1 / cells.scale if isinstance(column, Real) else float(cells.step)
    step = float(column.spacing or 0)  # values of a step lie in the middle of its cell
    if isinstance(column, Real):
        middle = cells.origin + first / cells.scale + width * length / 2
    else:
        middle = float(cells.low + first * cells.step + column.step // 2) + (width * length - step) / 2
    half = (n_parts - 1) * width * length / 2
    grid = Grid(n_parts, middle + half, half, max(0.0, width * length - step) / 2)
    return grid, first + width * np.arange(n_parts, dtype=np.int64)


# --------------------------------------------------------------------------------------------------------------- buying
# Check, charge, count, answer: in this order, so that what cannot be answered is refused before it is charged.


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
    unit = Unit.parse(release.card.unit)
    if unit.is_person:
        raise ParameterError(
            f"the release protects persons with all their rows (unit {unit.value!r}), and a bought answer counts "
            "single rows; ask the release instead, which costs nothing: release.count(...), or `spinney ask`"
        )
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
        found = _interval(asked, columns, sums, unit, n_rows, noise_level)
        why = f"bought for epsilon={decimal(price)}, exact noise on this answer alone"
        if truth == "population":
            found = _of_population(found, asked, n_rows or 1, level)
            why += ", and the sample, its rows being independent"
    answer = Answer(found.estimate, found.low, found.high, level, "certified", why, truth, asked.text)
    record_outcome(account, answer.digest, "answer")
    return answer


# ---------------------------------------------------------------------------------------------------- before the charge


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


# ----------------------------------------------------------------------------------------------------- after the charge


def _counted(
    table: Source, asked: ParsedQuestion, columns: list[AskedColumn], direct: Direct, unit: Unit
) -> tuple[int, ...]:
    """The sums that were paid for. SENSITIVE."""
    sums = table.sum_states([column.cut for column in columns], lambda rows: true_sums(rows, columns))
    n_given, n_where, total = sums.tolist()
    if asked.kind == "mean":
        return (total,) if direct.n_sums == 1 else (unit.factor * _grid_of(columns).reach * n_where, total)
    return (n_where,) if direct.n_sums == 1 else (n_given, n_where)


def _interval(
    asked: ParsedQuestion,
    columns: list[AskedColumn],
    sums: NoisySums,
    unit: Unit,
    n_rows: int | None,
    level: float,
) -> Between:
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
        return Between(float(middle), float(low - grid.slack), float(high + grid.slack))
    if not is_alone:
        middle, low, high = sums.ratio(level, low=0.0, high=1.0)
        return Between(middle, low, high)
    most, width = math.inf if n_rows is None else n_rows, sums.half_width(level)
    middle, low, high = (float(min(max(sums.noisy[0] + t, 0), most)) for t in (0, -width, width))
    found = Between(middle, low, high)
    return found if asked.kind == "count" else found.over(n_rows)


def _of_population(found: Between, asked: ParsedQuestion, n_rows: int, level: float) -> Between:
    """The interval of a population of which the rows are independent draws: noise and sampling share a miss."""
    scale = n_rows if asked.kind == "proportion" else 1
    counted = replace(found, low=found.low * scale, high=found.high * scale)
    ends = population_counts(counted, n_rows, (1 - level) / 2)
    return replace(found, low=ends.low / scale, high=ends.high / scale)
