"""Answer: an estimate, an interval, and what kind of statement the interval is.

    certified        holds with the stated probability over the noise of the release, whatever the rows of the table are
    calibrated       noise, placement of rows and misfit, measured from the release's own numbers; rests on a model
    indicative       rests on more than was measured, and the interval on a guess: read sign and size, test nothing
    not supported    the release does not know; there is no interval, unless one was forced

`print(answer)` is one line that may be quoted whole. Answers of a table are a sequence with labels, and a frame.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Literal, get_args, overload

from spinney.errors import ParameterError
from spinney.extras import load_optional
from spinney.release.frames import check_frame_kind

Statement = Literal["certified", "calibrated", "indicative", "not supported"]
STATEMENTS: tuple[Statement, ...] = get_args(Statement)
Truth = Literal["table", "population"]
TRUTHS: tuple[Truth, ...] = get_args(Truth)

# Digits of an end that are shown where an interval says how far they can be trusted.
_DIGITS = 3
_MOST_DIGITS = 20


@dataclass(frozen=True, slots=True)
class Answer:
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
        if self.low is None or self.high is None:
            return f"{shown_number(self.estimate)}   (no interval, {self.statement}: {self.why})"
        digits = decimals(self.low, self.high)
        estimate, low, high = (shown_number(number, digits) for number in (self.estimate, self.low, self.high))
        whose = "" if self.of == "table" else ", of the population"
        return f"{estimate}   {low} to {high} ({shown_level(self.level)}{whose}, {self.statement}: {self.why})"

    def _repr_html_(self) -> str | None:
        from spinney.release.answers.fragment import answer_fragment

        return answer_fragment(self)

    @property
    def digest(self) -> str:
        """SHA-256 of the answer as JSON, keys sorted: a ledger names an answer that it was charged for by this."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data for JSON, in which a mean of no rows is null."""
        return asdict(self) | {"estimate": None if math.isnan(self.estimate) else self.estimate}


class Answers(Sequence[Answer]):
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

    def _repr_html_(self) -> str | None:
        from spinney.release.answers.fragment import answers_fragment

        return answers_fragment(self, [", ".join(map(shown_label, label)) for label in self.labels])

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
