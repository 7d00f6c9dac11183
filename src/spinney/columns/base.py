"""The questions that every kind of column answers, so that no other room asks what kind it is.

`Column` holds the questions; one file for each kind holds all of its answers. A kind that lacks an answer
cannot be made (the questions are abstract), and one test asks all kinds in the registry everything. What users state
and read is public; a leading underscore marks what only the library asks, in whichever room. Whatever
needs numpy, pyarrow or narwhals is imported on use: stating a schema loads none of them.

    characters           texts of a schema hold whole characters only
    values in messages   what a user asks for, as a number and as a message shows it
    spelling             the marks and the date format of a CSV, for one column
    columns              `Column`: stating, reading, cells, writing, conditions, pictures
"""

from __future__ import annotations

import inspect
import math
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, time
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from spinney.errors import SchemaError, UnknownParameterError
from spinney.machine import lazily
from spinney.text import brief, did_you_mean, holds_rows

if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from spinney.columns.reading import Group, Physical, Reading
else:
    (pa,) = lazily("pyarrow")


# ----------------------------------------------------------------------------------------------------------- characters
# Texts of a schema: whole characters, which every file can hold.
#
# A Python string may hold half of a pair of surrogates, which UTF-8 cannot write. Such a string would be found out
# when a release is saved, after it was paid for, so it is refused where it is stated.


def check_characters(values: Iterable[Any], about: str = "") -> None:
    """Raise a SchemaError that begins with `about` if a text among some values holds half a character."""
    texts = [value for value in values if isinstance(value, str)]
    if _is_whole("".join(texts)):
        return
    half = next(text for text in texts if not _is_whole(text))
    raise SchemaError(f"{about}{brief(half)} holds half a character, which no file can hold; correct it")


def _is_whole(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# --------------------------------------------------------------------------------------------------- values in messages
# Conditions on rows: values that users ask for, as numbers, and as messages show them.


_MOST_SHOWN = 80  # characters of what was asked for, in a message


def shown(value: Any) -> str:
    """A value for a message, shortened where it is long; of a table, or a column of one, the type alone."""
    if holds_rows(value):
        return f"<a {type(value).__name__}>"
    try:
        text = repr(value)
    except ValueError:  # which is what Python says of writing them out
        return "a number of thousands of digits"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def meant(value: Any, known: tuple[Any, ...]) -> str:
    """The end of a message: a value of the list that is spelt alike, also where the one is a number, the other not."""
    spelt = value if isinstance(value, str) else shown(value)
    same = [other for other in known if str(other) == spelt.strip()]
    return f"; did you mean {same[0]!r}?" if same else did_you_mean(spelt, known)


def if_whole(value: Any) -> int | None:
    """An exact number that is whole, as that; None of floats, which say by themselves what they are."""
    if isinstance(value, Rational):
        return int(value.numerator) if value.denominator == 1 else None
    is_small = isinstance(value, Decimal) and value.is_finite() and abs(value) < 2**63
    return int(value) if is_small and value == int(value) else None


def as_float(value: Any) -> float:
    """A number as a float, of whatever size."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def number_of_text(text: str) -> int | float | None:
    """A finite number, an exact integer where it is written as one; None if the string is not a number."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() else number


# ------------------------------------------------------------------------------------------------------------- spelling
# How the strings of a table spell values: the marks that were stated for a CSV file, for one of its columns.


@dataclass(frozen=True, slots=True)
class Spelling:
    """The marks of a CSV and the format of its dates; None is ISO 8601. In memory, everything is at its default."""

    decimal: str = "."
    delimiter: str = ","
    date_format: str | None = None


PLAIN = Spelling()


def option(name: str, value: str) -> str:
    """An option as it is said to the command and to the library."""
    word = "tab" if value == "\t" else shlex.quote(value)
    return f"--{name.replace('_', '-')} {word} (in Python: sp.CSV(path, {name}={value!r}))"


# -------------------------------------------------------------------------------------------------------------- columns
# `Column`, the questions in the order in which a table meets them:
#
#     stating      which options it has, as plain data and back
#     reading      which types of a table it accepts, its values from Arrow, Python objects, strings, engines
#     cells        how many whole numbers it counts, in what steps
#     writing      positions along its axis as values again
#     conditions   what a user or a command line asks of it
#     showing      labels, ticks, lines of a schema template


AxisKind = Literal["real", "integer", "category"]

MAX_BITS = 32
# Physical integers stay so far inside int64 that neither `value - low` nor a range rounded up to whole cells overflows.
LARGEST_WHOLE = 2**61


@dataclass(frozen=True, slots=True, repr=False)
class Column(ABC):
    """What all column types share. `bits` fixes the resolution of the column; by default the synthesizer chooses."""

    type_name: ClassVar[str]
    _axis_kind: ClassVar[AxisKind]  # how its values are cut into cells
    _describes: ClassVar[frozenset[Group]] = frozenset()  # the types of a table that only this kind can mean
    _spark_cast: ClassVar[str]  # how a Spark user makes such a column of strings
    is_read: ClassVar[bool] = True  # whether its values are looked at; what is not read is made afresh
    _is_drawn: ClassVar[bool] = True  # whether synthetic rows have it
    _compared_as: ClassVar[str | None] = None  # what a rule compares it with; None where values have no size

    nullable: bool = field(default=False, kw_only=True)
    bits: int | None = field(default=None, kw_only=True)

    def __new__(cls, *given: Any, **named: Any) -> Self:  # noqa: ARG004  # which `__init__` takes
        for name in named:
            if name not in cls.__dataclass_fields__:
                known = list(inspect.signature(cls).parameters)
                hint = did_you_mean(name, known)
                raise UnknownParameterError(
                    f"{name!r} is not an option of {cls.__name__}; it takes {', '.join(known)}{hint}"
                )
        return object.__new__(cls)

    def __post_init__(self) -> None:
        if self.bits is not None and not (type(self.bits) is int and 0 <= self.bits <= MAX_BITS):
            raise SchemaError(f"{type(self).__name__}: bits={brief(self.bits)} is not a whole number in 0..{MAX_BITS}")
        if not isinstance(self.nullable, bool):
            raise SchemaError(f"{type(self).__name__}: nullable={brief(self.nullable)} is not true or false")

    @property
    def is_text(self) -> bool:
        """Whether values are texts; everything else is a number underneath."""
        return False

    @property
    def is_whole(self) -> bool:
        """Whether values are whole numbers underneath, which a table of cells can count one by one."""
        return self._axis_kind != "real"

    @property
    def _also_reads(self) -> tuple[str, ...]:
        """Other columns that have to be read for this one; none, unless it is computed of them."""
        return ()

    def _combined(self, own: Physical, others: Mapping[str, Physical]) -> Physical:
        """What is counted of the column, where that is computed of its own values and of others. SENSITIVE."""
        del others
        return own

    def _combined_expression(self, own: Reading, others: Mapping[str, Reading]) -> Reading:
        """The same of expressions of an engine."""
        del others
        return own

    @property
    def listed(self) -> tuple[Any, ...]:
        """All possible values in physical order, where they can be listed; otherwise none."""
        return ()

    def _stated(self) -> dict[str, Any]:
        """The options that are not at their defaults. Decimals are told by themselves, without the step they mean."""
        options = {field.name: (getattr(self, field.name), field.default) for field in fields(self) if field.init}
        stated = {name: value for name, (value, default) in options.items() if value != default}
        if "decimals" in stated:
            del stated["multiple_of"]
        return stated

    def to_dict(self) -> dict[str, Any]:
        """The column as plain data for TOML and JSON; what is at its default is left out."""
        return {"type": self.type_name} | self._stated()

    def __repr__(self) -> str:
        """The call that makes the column."""
        shown = []
        by_themselves = dict(zip(("low", "high"), getattr(self, "_widest", None) or (), strict=False))
        for name, value in self._stated().items():
            if name in ("values", "hierarchy") and len(value) > 8:
                shown.append(f"{name}=<{len(value)} {'values' if name == 'values' else 'parents'}>")
            elif name not in by_themselves or value != by_themselves[name]:
                shown.append(f"{name}={value!r}" if not isinstance(value, (date, time)) else f"{name}={str(value)!r}")
        shown.sort(key=lambda part: not part.startswith(("low", "high", "values")))
        return f"{type(self).__name__}({', '.join(shown)})"

    # ------------------------------------------------------------------------------------------------- reading

    @property
    @abstractmethod
    def _accepts(self) -> frozenset[Group]:
        """Which types of a table can be meant by the column, strings aside, which are parsed."""

    def _remedy(self, group: Group) -> str | None:
        """What to do about a column of another type; None where nothing special can be said."""
        del group
        return None

    @property
    @abstractmethod
    def _arrow_type(self) -> Any:
        """The Arrow type that objects and strings become when they are read."""

    @property
    def _object_type(self) -> Any:
        """The same of Python objects; None where Arrow tells it from them."""
        return self._arrow_type

    @abstractmethod
    def _converter(self) -> Callable[[Any], Any]:
        """A function that makes a value of `_object_type` of a Python object that is not missing."""

    @abstractmethod
    def _from_strings(self, strings: Any, spelling: Spelling = PLAIN) -> Any:
        """An Arrow array of strings as one of `_arrow_type`, each value read by itself."""

    @property
    def _csv_type(self) -> Any:
        """What Arrow's CSV reader makes of the column: strings, unless values have one spelling each."""
        return pa.string()

    @property
    @abstractmethod
    def _spelling_remedy(self) -> str:
        """How strings of the column should be written."""

    @abstractmethod
    def _cause(self, text: str, spelling: Spelling) -> str:
        """Why one string of a CSV cannot be read, and what to do about it, without quoting it."""

    @abstractmethod
    def _read(self, values: Any) -> Physical:
        """A column of a table as numbers: a series, an Arrow array (of a fitting type) or a numpy array."""

    @abstractmethod
    def _expression(self, value: nw.Expr, dtype: Any, *, place: nw.Expr | None = None) -> Reading:
        """The same as expressions. `place` is where a value stands in a list that is too long to be compared with."""

    @property
    def _complaint(self) -> str:
        """What is the matter with a value that is there but cannot be read."""
        return f"some value cannot be read as {self.type_name}; clean the column or change its type"

    @abstractmethod
    def _from_spark(self, value: Any, kind: Any) -> Any:
        """A Spark column of a Spark type as what `_expression` expects: a number, a boolean or a string."""

    @property
    def _spark_types(self) -> frozenset[str]:
        """Spark types that `_from_spark` reads beside those that are told by `_accepts`."""
        return frozenset({"string", "char", "varchar"}) if self.is_text else frozenset()

    # -------------------------------------------------------------------------------------------- cells and back

    @abstractmethod
    def _whole_range(self) -> tuple[int, int] | None:
        """The first and last physical number, of what is whole underneath; in steps, all that rounds to a value."""

    @property
    def step(self) -> int:
        """How far neighbouring values are apart, of what is whole underneath."""
        return 1

    @property
    def spacing(self) -> Fraction | None:
        """How far neighbouring values are apart; None where values are dense."""
        return Fraction(self.step)

    @property
    @abstractmethod
    def _fits_array(self) -> bool:
        """Whether an array of numbers can hold the values."""

    @abstractmethod
    def _to_positions(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Positions along the axis of physical numbers, which are moved into the bounds."""

    @abstractmethod
    def _to_arrow(self, positions: NDArray[np.float64]) -> Any:
        """Values at positions along the axis, as an Arrow array; NaN is null."""

    def _part_to_arrow(self, positions: NDArray[np.float64], *, first: int, n_rows: int) -> Any:
        """The same of some of `n_rows` rows, from number `first` on, for columns to which the number of a row matters.

        Args:
            positions: of these rows.
            first: how many rows come before them.
            n_rows: how many there are in all.
        """
        del first, n_rows
        return self._to_arrow(positions)

    @property
    def _longest_text(self) -> int:
        """How many characters a value has at most, where values are strings."""
        return 0

    def _to_floats(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same as floats, NaN for null, of a column that an array can hold."""
        floats: NDArray[np.float64] = self._to_arrow(positions).cast(pa.float64()).to_numpy(zero_copy_only=False)
        return floats

    @abstractmethod
    def _leaf_ends(self, low: NDArray[np.float64], length: NDArray[np.float64]) -> list[tuple[Any, Any]]:
        """The lowest and the highest value of stretches of positions."""

    # ------------------------------------------------------------------------------------ conditions and pictures

    @abstractmethod
    def _from_option(self, text: str, *, name: str, option: str) -> Any:
        """A value that a command line asks for, as `where` takes it; a ParameterError names the column and option."""

    @property
    def _drawn_scale(self) -> float:
        """Units of a picture in one physical unit."""
        return 1.0

    @abstractmethod
    def _drawn_range(self) -> tuple[float, float]:
        """Where the column begins and ends in a picture."""

    @abstractmethod
    def _set_ticks(self, axis: Any) -> None:
        """Ticks of an axis of a picture, where matplotlib's own would not do."""

    @classmethod
    @abstractmethod
    def _template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        """The lines of a schema template for a column of this Arrow type; None where another kind is meant.

        `bounds(*blanks)` gives the lines for the bounds, by default these blanks.
        """
