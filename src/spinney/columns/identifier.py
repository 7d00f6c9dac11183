"""Columns that are never read, identifiers and ignored ones, and the key of persons, which is only compared.

unread columns    what identifiers and ignored columns share
identifier        names of rows and people: generated for synthetic rows
ignore            columns of the table that the release does not have
key               an identifier that says whose row it is, compared and then forgotten
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from spinney.columns.base import PLAIN, AxisKind, Column, Spelling, check_characters
from spinney.errors import InputError, SchemaError
from spinney.machine import lazily
from spinney.text import brief

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    from numpy.typing import NDArray

    from spinney.columns import reading
    from spinney.columns.reading import Group
else:
    np, pa, pc, reading = lazily("numpy", "pyarrow", "pyarrow.compute", "spinney.columns.reading")


# ------------------------------------------------------------------------------------------------------- unread columns
# Columns whose values are never read: what they have in common is that most questions are never asked of them.


@dataclass(frozen=True, slots=True, repr=False)
class Unread(Column):
    """A column of any type in the table, of which nothing but its name is looked at."""

    _axis_kind: ClassVar[AxisKind] = "category"
    is_read: ClassVar[bool] = False
    _why_never_null: ClassVar[str]  # why `nullable` has no meaning

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if self.nullable is not False:
            raise SchemaError(f"{kind}: nullable={brief(self.nullable)} has no meaning here; {self._why_never_null}")
        if self.bits is not None:
            raise SchemaError(f"{kind}: bits={brief(self.bits)} has no meaning here; the values are not learnt")

    @property
    def _csv_type(self) -> Any:
        return pa.binary()  # nothing is made of it, so nothing can be wrong with it

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise SchemaError(f"a column of type {self.type_name} is never read, counted or drawn; leave it out")

    _accepts = _arrow_type = _spelling_remedy = property(_refuse)
    _converter = _from_strings = _cause = _read = _expression = _from_spark = _refuse
    _whole_range = _leaf_ends = _from_option = _drawn_range = _set_ticks = _refuse


# ----------------------------------------------------------------------------------------------------------- identifier
# Names of rows and people: never read, and generated for synthetic rows.


_DIGITS, _MOST_DIGITS = 6, 18


@dataclass(frozen=True, slots=True, repr=False)
class Identifier(Unread):
    """Names a row or a person: a customer number, an e-mail address. Its values are never read, and
    synthetic rows get new ones.

    Synthetic rows are numbered 1, 2, 3, ...; with a `prefix` they get strings, the number padded to `digits` or more.

    >>> Identifier(prefix="C-")  # C-000001, C-000002, ...
    Identifier(prefix='C-')

    Args:
        prefix: what every identifier begins with, which makes them strings; by default they are numbers.
        digits: how many digits the number after the prefix has at least.
        nullable: always False: every row gets an identifier.
        bits: always None: identifiers are not learnt.
    """

    type_name: ClassVar[str] = "identifier"
    _spark_cast: ClassVar[str] = "which an identifier does not need"
    _why_never_null: ClassVar[str] = "every row gets an identifier"

    prefix: str | None = field(default=None, kw_only=True)
    digits: int = field(default=_DIGITS, kw_only=True)

    def __post_init__(self) -> None:
        Unread.__post_init__(self)
        if self.prefix is not None and not isinstance(self.prefix, str):
            raise SchemaError(f"Identifier: prefix={brief(self.prefix)} is not a string such as 'C-'")
        check_characters([self.prefix], "Identifier: prefix ")
        if type(self.digits) is not int or not 1 <= self.digits <= _MOST_DIGITS:
            raise SchemaError(f"Identifier: digits={brief(self.digits)} is not a whole number in 1..{_MOST_DIGITS}")
        if self.prefix is None and self.digits != _DIGITS:
            raise SchemaError(
                f"Identifier: digits={self.digits} is the width of strings; give a prefix too, or leave it out"
            )

    @property
    def is_text(self) -> bool:
        return self.prefix is not None

    # ------------------------------------------------------------------------------------------------- writing

    @property
    def _fits_array(self) -> bool:
        return not self.is_text

    def _to_positions(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return numbers

    def _to_arrow(self, positions: NDArray[np.float64]) -> Any:
        return self._part_to_arrow(positions, first=0, n_rows=len(positions))

    @property
    def _longest_text(self) -> int:
        return 0 if self.prefix is None else len(self.prefix) + _MOST_DIGITS

    def _part_to_arrow(self, positions: NDArray[np.float64], *, first: int, n_rows: int) -> Any:
        numbers = np.arange(first + 1, first + len(positions) + 1)
        if self.prefix is None:
            return pa.array(numbers)
        digits = max(self.digits, len(str(n_rows)))
        return pa.array([f"{self.prefix}{number:0{digits}}" for number in numbers.tolist()], pa.string())

    @classmethod
    def _template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        """A type never says that it names people; templates of numbers and strings suggest it in a comment."""
        del kind, bounds
        return None


# --------------------------------------------------------------------------------------------------------------- ignore
# Columns that are in the table and shall not be in the release.


@dataclass(frozen=True, slots=True, repr=False)
class Ignore(Unread):
    """A column that is left out: its values are never read, and synthetic rows do not have it.

    >>> Ignore()
    Ignore()

    Args:
        nullable: always False: whether values are missing is not looked at.
        bits: always None: the values are not learnt.
    """

    type_name: ClassVar[str] = "ignore"
    _is_drawn: ClassVar[bool] = False
    _spark_cast: ClassVar[str] = "which a column that is ignored does not need"
    _why_never_null: ClassVar[str] = "the values are not looked at"
    _fits_array: ClassVar[bool] = True

    @classmethod
    def _template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        """No type says that a column is of no interest."""
        del kind, bounds
        return None

    _to_positions = _to_arrow = Unread._refuse


# ------------------------------------------------------------------------------------------------------------------ key
# The key of persons as it is read: an identifier whose values are compared, for equality and nothing else.
#
# Schemas state an `Identifier`; tables of persons are opened with a `Key` in its place. Keys are strings, whole
# numbers or bytes. No key is ever sorted, shown or kept.


_NOT_A_KEY = "keys are strings, whole numbers or bytes; convert the column"
_WHOLE_TYPES = ("byte", "short", "integer", "long", "decimal")


def keys_differ(one: Any, other: Any) -> str:
    """What is said of keys of two Arrow types, in words, and what to do about it."""

    def shown(kind: Any) -> str:
        return "strings" if reading.is_string(kind) else "whole numbers" if pa.types.is_integer(kind) else str(kind)

    hint = " (keys of CSV files are read as strings)" if reading.is_string(one) or reading.is_string(other) else ""
    return f"keys of different types, {shown(one)} and {shown(other)}; convert one of them{hint}"


@dataclass(frozen=True, slots=True, repr=False)
class Key(Identifier):
    """A column whose values say whose row it is."""

    is_read: ClassVar[bool] = True
    _spark_cast: ClassVar[str] = "for example to a string or a bigint"
    _spark_types: ClassVar[frozenset[str]] = frozenset({"string", "char", "varchar", "binary", *_WHOLE_TYPES})

    @property
    def is_text(self) -> bool:
        """True: strings stay as they are."""
        return True

    @property
    def _accepts(self) -> frozenset[Group]:
        return frozenset({"whole", "float", "other"})  # some of bytes, or of nulls alone, which `key_array` tells apart

    def _remedy(self, group: Group) -> str | None:  # noqa: ARG002
        return _NOT_A_KEY

    @property
    def _spelling_remedy(self) -> str:
        return "write each key in one way"

    @property
    def _arrow_type(self) -> Any:
        return pa.string()

    @property
    def _object_type(self) -> Any:
        """None: Arrow tells strings, whole numbers and bytes apart, and refuses a mixture."""
        return None

    def _converter(self) -> Callable[[Any], Any]:  # type: ignore[override]
        return _plain

    @property
    def _csv_type(self) -> Any:
        return pa.string()

    def _from_strings(self, strings: Any, spelling: Spelling = PLAIN) -> Any:  # noqa: ARG002
        return pc.if_else(reading.among(strings, list(reading.MISSING)), pa.scalar(None, pa.string()), strings)

    def _cause(self, text: str, spelling: Spelling) -> str:  # type: ignore[override]  # noqa: ARG002
        return "it is not UTF-8"

    def _from_spark(self, value: Any, kind: Any) -> Any:
        name = kind.typeName()
        if name in ("string", "char", "varchar"):
            return value.cast("string")  # without a collation, under which different strings are equal
        return value.cast("bigint") if name in _WHOLE_TYPES[:-1] else value

    def __repr__(self) -> str:
        return "Identifier()"


def key_array(values: Any) -> Any:
    """The keys of some rows as one Arrow array: of large strings, whole numbers or large bytes; null where missing."""
    array = reading.one_array(values)
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        array, kind = array.storage, kind.storage_type
    if pa.types.is_run_end_encoded(kind):
        array = pc.run_end_decode(array)
        kind = array.type
    if pa.types.is_binary_view(kind):
        array = array.cast(pa.large_binary())
        kind = array.type
    if reading.is_string(kind):
        texts = array.cast(pa.large_string())
        return pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        return array.cast(pa.int64())  # an error where it is no whole number of 64 bits
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return array.cast(pa.binary() if pa.types.is_fixed_size_binary(kind) else kind).cast(pa.large_binary())
    if pa.types.is_floating(kind):  # whole numbers, if some are missing, as pandas has them
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, kind), array)
    if pa.types.is_null(kind) or array.null_count or not len(array):
        return pa.nulls(len(array), pa.int64())
    raise InputError(_NOT_A_KEY)


def _plain(value: Any) -> Any:
    """One key of a column of Python objects."""
    if isinstance(value, str):
        return str.__str__(value)  # a subclass may have a __str__ of its own
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(_NOT_A_KEY)
    return value.__index__()
