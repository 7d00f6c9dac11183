"""Answer: an estimate, an interval, and what kind of statement the interval is. PUBLIC.

    certified        holds with the stated probability over the noise of the release, whatever the rows are
    calibrated       noise, placement and misfit, measured from the release's own numbers; rests on a model
    indicative       rests on more than was measured, the interval on a guess: read sign and size, test nothing
    not supported    the release does not know; there is no interval, unless one was forced

`print(answer)` is one line that may be quoted whole. Answers of a table are a sequence with labels, and a
frame.

    (first)               answers, their labels, and numbers as text
    standing              the statement that an analysis of draws can make
    trust                 verdicts on columns and pairs before anything is asked
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, get_args, overload

from spinney.documents import Document, Documented, Facts, Table
from spinney.errors import ParameterError
from spinney.machine import load_optional
from spinney.text import brief, did_you_mean

if TYPE_CHECKING:
    from spinney.release.release import Release


Statement = Literal["certified", "calibrated", "indicative", "not supported"]
STATEMENTS: tuple[Statement, ...] = get_args(Statement)
Truth = Literal["table", "population"]
TRUTHS: tuple[Truth, ...] = get_args(Truth)

# Digits of an end that are shown where an interval says how far they can be trusted.
_DIGITS = 3
_MOST_DIGITS = 20


@dataclass(frozen=True, slots=True)
class Answer(Documented):
    """What a release says about one number of the private table, or of the population that its rows are a sample of."""

    estimate: float
    low: float | None  # None where nothing is claimed
    high: float | None
    level: float
    statement: Statement
    why: str  # what the statement rests on, or why there is none
    of: Truth
    asked: str  # the question in words

    @property
    def has_interval(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def half_width(self) -> float | None:
        """Half the length of the interval; None where there is none."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    def __str__(self) -> str:
        estimate, interval = self.shown
        if not self.has_interval:
            return f"{estimate}   ({interval}, {self.statement}: {self.why})"
        whose = "" if self.of == "table" else ", of the population"
        return f"{estimate}   {interval} ({shown_level(self.level)}{whose}, {self.statement}: {self.why})"

    def document(self) -> Document:
        """The answer as notebooks show it: estimate, interval, and what kind of statement that is."""
        estimate, interval = self.shown
        facts = [
            ("estimate", estimate),
            (f"{shown_level(self.level)} interval", interval),
            ("statement", f"{self.statement}: {self.why}"),
            ("about", "the table" if self.of == "table" else "the population that its rows are a sample of"),
        ]
        return Document(self.asked or "Answer", [Facts(facts)])

    @property
    def numbers(self) -> tuple[str, str | None, str | None]:
        """The estimate and the ends of its interval as texts, with as many digits as the interval deserves."""
        if self.low is None or self.high is None:
            return shown_number(self.estimate), None, None
        digits = decimals(self.low, self.high)
        return shown_number(self.estimate, digits), shown_number(self.low, digits), shown_number(self.high, digits)

    @property
    def shown(self) -> tuple[str, str]:
        """The estimate and the interval as texts."""
        estimate, low, high = self.numbers
        return estimate, "no interval" if low is None else f"{low} to {high}"

    @property
    def digest(self) -> str:
        """SHA-256 of the answer as JSON, keys sorted: a ledger names an answer that it was charged for by this."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data for JSON, in which a mean of no rows is null."""
        return asdict(self) | {"estimate": None if math.isnan(self.estimate) else self.estimate}


class Answers(Documented, Sequence[Answer]):
    """Answers of the cells of a table: a sequence, the values that each cell stands for in `labels`."""

    def __init__(
        self,
        by: Sequence[str],
        labels: Sequence[tuple[Any, ...]],
        answers: Sequence[Answer],
        *,
        frame: str = "pyarrow",
        simultaneous: bool = False,
    ) -> None:
        if len(labels) != len(answers):
            raise ValueError(f"{len(labels)} labels for {len(answers)} answers")
        self.by = tuple(by)
        self.labels = tuple(labels)
        self.simultaneous = simultaneous
        self._answers = tuple(answers)
        self._frame = frame

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    @overload
    def __getitem__(self, index: int) -> Answer: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Answer]: ...

    def __getitem__(self, index: int | slice) -> Answer | Sequence[Answer]:
        return self._answers[index]

    def __repr__(self) -> str:
        return f"Answers({len(self)} cells by {', '.join(self.by)})"

    def __str__(self) -> str:
        shown = [", ".join(map(shown_label, label)) for label in self.labels]
        widest = max(map(len, shown), default=0)
        return "\n".join(f"{label:<{widest}}   {answer}" for label, answer in zip(shown, self, strict=True))

    def document(self) -> Document:
        """The cells as notebooks show them."""
        labels = [", ".join(map(shown_label, label)) for label in self.labels]
        rows = [[label, *answer.shown, answer.statement] for label, answer in zip(labels, self, strict=True)]
        facts = [
            ("cells", f"{len(rows):,}"),
            ("intervals", "all hold at once" if self.simultaneous else "each by itself"),
            ("because", "; ".join(dict.fromkeys(f"{answer.statement}: {answer.why}" for answer in self))),
        ]
        by = ", ".join(self.by)
        level = f"{shown_level(self[0].level)} interval" if rows else "interval"
        table = Table("cells", (by, "estimate", level, "statement"), rows, is_open=True)
        return Document(f"Answers by {by}", [Facts(facts), table])

    def cell(self, *label: Any) -> Answer:
        """The answer of one cell, named by its values in the order of `by`.

        Args:
            label: a value or a range of each column in `by`.

        Raises:
            ParameterError: the table has no such cell.
        """
        if label not in self.labels:
            raise ParameterError(f"the table by {', '.join(self.by)} has no cell {label!r}; `labels` lists its cells")
        return self._answers[self.labels.index(label)]

    def to_dict(self) -> list[dict[str, Any]]:
        """All cells as plain data for JSON: the values of `by` as text, then the fields of the answer."""
        return [
            dict(zip(self.by, map(shown_label, label), strict=True)) | answer.to_dict()
            for label, answer in zip(self.labels, self, strict=True)
        ]

    def to_frame(self, kind: str | None = None) -> Any:
        """The cells as a table: the columns of `by`, then estimate, low, high, statement and why.

        Args:
            kind: "pandas", "polars" or "pyarrow"; by default the kind that was fitted. Ranges become strings.

        Raises:
            ParameterError: the kind is unknown, or is "numpy", which cannot hold strings beside numbers.
        """
        import pyarrow as pa

        from spinney.release.card import check_frame_kind

        wanted = self._frame if kind is None else check_frame_kind(kind)
        if wanted == "numpy":
            if kind is not None:
                raise ParameterError("frame='numpy' cannot hold statements beside numbers; ask for 'pyarrow'")
            wanted = "pyarrow"
        columns = {name: label_column([label[place] for label in self.labels]) for place, name in enumerate(self.by)}
        for name, type_ in (("estimate", pa.float64()), ("low", pa.float64()), ("high", pa.float64())):
            columns[name] = pa.array([getattr(answer, name) for answer in self], type_)
        columns |= {name: pa.array([getattr(answer, name) for answer in self]) for name in ("statement", "why")}
        table = pa.table(columns)
        if wanted == "pyarrow":
            return table
        library = load_optional(wanted, f"frame={wanted!r}", otherwise="ask for frame='pyarrow'")
        return library.from_arrow(table) if wanted == "polars" else table.to_pandas()


def label_column(values: Sequence[Any]) -> Any:
    """The values of a column of labels as an Arrow array; ranges, which Arrow does not know, as strings."""
    import pyarrow as pa

    is_plain = not any(isinstance(value, (tuple, list)) for value in values)
    return pa.array(values if is_plain else [None if value is None else shown_label(value) for value in values])


def shown_label(value: Any) -> str:
    """A value, a range or a list of values as people write them: "3", "30..40", "null"."""
    if value is None:
        return "null"
    if isinstance(value, tuple) and len(value) == 2:
        return "..".join("" if end is None else str(end) for end in value)
    return ", ".join(map(shown_label, value)) if isinstance(value, list) else str(value)


def decimals(low: float, high: float) -> int:
    """How many digits after the point the ends of an interval deserve: three of its length."""
    length = high - low
    if not 0 < length < math.inf:
        return 4 if length == 0 and low != round(low) else 0
    return max(0, _DIGITS - 1 - math.floor(math.log10(length)))


def shown_number(number: float, digits: int | None = None) -> str:
    """A number for people: thousands apart, and as many digits after the point as it deserves."""
    if not math.isfinite(number):
        return str(number)
    if digits is None:
        return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
    return f"{number:,.{min(digits, 15)}f}"


def shown_level(level: float) -> str:
    """A probability in per cent, with as many digits as it takes to tell it from 100 %: 95 %, 99.9 %, 99.99999 %."""
    percent = 100 * Decimal(repr(float(level)))
    for digits in range(6, _MOST_DIGITS):
        text = f"{percent:.{digits}g}"
        if abs(Decimal(text) - percent) <= abs(100 - percent) / 100:
            break
    return f"{Decimal(text).normalize():f} %"


# ------------------------------------------------------------------------------------------------------------- standing
# Standing: what kind of statement an analysis of drawn rows can be, and how far its intervals are widened for
# that.
#
# Draws carry the noise of the release. They cannot carry how far the model is from the rows where columns were
# not counted together: that error does not shrink with epsilon. In trials, neither sums of products that agree
# with the model nor many counted pairs distinguished right regressions from regressions whose signs were wrong.
# So an analysis of columns that no single counted table holds is *not supported*, and has no interval unless
# one is forced.
#
# Of columns that were counted together in ranges of values, or as boxes of a tree, draws lack how they depend
# on each other inside of these, which does not shrink with epsilon either: *indicative*, and eight times the
# spread.
#
# Forced intervals are widened by 1.5 c: c is how far the model still is from the sums of products that a forest
# measured of all other pairs, in units of their noise, and 1 at least. Where no such sums were measured, c is
# not known.


# How much wider than the spread of draws intervals are at least where columns were not counted together.
_SAFETY = 1.5
# And where they were counted together in ranges: with 6 slopes of California at epsilon 5 held 0.83 of the time, with 8
# those of five tables 0.97 at least.
_OF_RANGES = 8.0
# A measured factor that is below this is no more than the noise of measuring it.
_NOTABLE = 1.05


@dataclass(frozen=True, slots=True)
class Standing:
    """The statement that intervals from draws are, and why."""

    statement: Literal["calibrated", "indicative", "not supported"]
    why: str
    widening: float = 1.0  # of the standard deviation between draws


TOGETHER = Standing("calibrated", "all columns of the analysis were counted together, and draws carry the noise")
COARSE = Standing(
    "indicative",
    "the columns were counted together, in states that are ranges of values: what they do inside of these is the "
    f"model's guess, and intervals are {_OF_RANGES:g} times as wide as the draws say; read sign and size, test nothing",
    _OF_RANGES,
)
UNKNOWN = Standing(
    "not supported",
    "draws carry the noise of the release, not how far its model is from the rows; give release= and columns= to find "
    "out whether these columns were counted together",
)


def standing_of(release: Release, columns: Sequence[str] | None) -> Standing:
    """The standing of an analysis of these columns, by default of all; a ParameterError where one is no column."""
    names = checked_columns(release, columns)
    if not release._counts_together(names):
        return apart(release._misfit_factor)
    return TOGETHER if len(names) < 2 or not release._is_coarse(names) else COARSE


def apart(factor: float | None) -> Standing:
    """The standing of columns that were not all counted together, by how far the model is off there; None: unknown."""
    found = "nothing measured how wrong"
    if factor is not None:
        found = f"by the release's own sums of products the model is off {factor:.2g} times as far as their noise"
        if factor < _NOTABLE:
            found = "sums of products of pairs, with which the model agrees, do not show it"
    return Standing(
        "not supported",
        f"columns of the analysis were not all counted together, so that draws may agree and be wrong, in sign too; "
        f"{found}; name the regression before the fit (analyses=), or the columns (workload=)",
        _SAFETY * max(factor or 1.0, 1.0),
    )


def checked_columns(release: Release, columns: Sequence[str] | None) -> list[str]:
    """The columns that an analysis looks at, each one of the release's."""
    known = list(release.schema)
    if columns is None:
        return known
    if isinstance(columns, str):
        raise ParameterError(f"columns={brief(columns)} is text; give a list of columns: [{brief(columns)}]")
    for name in columns:
        if name not in known:
            raise ParameterError(f"columns: {brief(name)} is not a column of the release{did_you_mean(name, known)}")
    if not len(columns):
        raise ParameterError("columns is empty; name those that the analysis looks at, or leave it out")
    return list(dict.fromkeys(columns))


# ---------------------------------------------------------------------------------------------------------------- trust
# Trust: what an analysis of some columns can expect from a release, before anything is asked.
#
# A verdict for every column and every pair among them: the statement that an answer about them can carry, why,
# and what to do where that is not enough. It is public like the release; looking costs nothing.


@dataclass(frozen=True, slots=True)
class Verdict:
    """What answers about one column, a pair or a group can be called at best, why, and what to do instead."""

    columns: tuple[str, ...]
    statement: Statement
    why: str
    instead: str = ""  # empty where nothing better can be had, or is needed

    def __str__(self) -> str:
        return f"{', '.join(self.columns)}: {self.statement}, {self.why}" + (f"; {self.instead}" * bool(self.instead))


@dataclass(frozen=True, slots=True)
class Trust:
    """Verdicts on single columns, on pairs, and on all columns together. `print` is meant to be read."""

    columns: tuple[str, ...]
    verdicts: tuple[Verdict, ...]
    together: Verdict  # on an analysis of all columns at once
    measures: Mapping[str, float] = field(default_factory=dict)  # numbers behind the verdicts, by name

    @property
    def statement(self) -> Statement:
        """The weakest statement among all verdicts: what can be said of every answer about these columns."""
        return max((verdict.statement for verdict in (*self.verdicts, self.together)), key=STATEMENTS.index)

    def of(self, *columns: str) -> Verdict:
        """The verdict on a column or on a pair, in any order; that on all columns where none is of its own.

        Args:
            columns: one or more of the columns that were asked about.
        """
        for verdict in self.verdicts:
            if set(verdict.columns) == set(columns):
                return verdict
        return self.together

    def __str__(self) -> str:
        lines = [f"together: {self.together}", *map(str, self.verdicts)]
        lines += [f"{name}: {value:.4g}" for name, value in self.measures.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The verdicts as plain data for JSON."""
        return asdict(self) | {"measures": dict(self.measures), "statement": self.statement}
