"""The key of persons as it is read: an identifier whose values are compared, for equality and nothing else.

Schemas state an `Identifier`; tables of persons are opened with a `Key` in its place. Keys are strings, whole numbers
or bytes. No key is ever sorted, shown or kept.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns.identifier import Identifier
from spinney.columns.spelling import PLAIN, Spelling
from spinney.errors import InputError

if TYPE_CHECKING:
    from spinney.columns.dtypes import Group

_NOT_A_KEY = "keys are strings, whole numbers or bytes; convert the column"
_WHOLE_TYPES = ("byte", "short", "integer", "long", "decimal")


def keys_differ(one: Any, other: Any) -> str:
    """What is said of keys of two Arrow types, in words, and what to do about it."""
    import pyarrow as pa

    from spinney.columns.arrow import is_string

    def shown(kind: Any) -> str:
        return "strings" if is_string(kind) else "whole numbers" if pa.types.is_integer(kind) else str(kind)

    hint = " (keys of CSV files are read as strings)" if is_string(one) or is_string(other) else ""
    return f"keys of different types, {shown(one)} and {shown(other)}; convert one of them{hint}"


@dataclass(frozen=True, slots=True, repr=False)
class Key(Identifier):
    """A column whose values say whose row it is."""

    is_read: ClassVar[bool] = True
    spark_cast: ClassVar[str] = "for example to a string or a bigint"

    @property
    def is_text(self) -> bool:
        """True: strings stay as they are."""
        return True

    @property
    def accepts(self) -> frozenset[Group]:
        return frozenset({"whole", "float", "other"})  # some of bytes, or of nulls alone, which `key_array` tells apart

    def remedy(self, group: Group) -> str | None:  # noqa: ARG002
        return _NOT_A_KEY

    @property
    def arrow_type(self) -> Any:
        import pyarrow as pa

        return pa.string()

    @property
    def object_type(self) -> Any:
        """None: Arrow tells strings, whole numbers and bytes apart, and refuses a mixture."""
        return None

    def converter(self) -> Callable[[Any], Any]:  # type: ignore[override]
        return _plain

    @property
    def csv_type(self) -> Any:
        import pyarrow as pa

        return pa.string()

    def from_strings(self, strings: Any, spelling: Spelling = PLAIN) -> Any:  # noqa: ARG002
        import pyarrow as pa
        import pyarrow.compute as pc

        from spinney.columns.texts import MISSING, among

        return pc.if_else(among(strings, list(MISSING)), pa.scalar(None, pa.string()), strings)

    @property
    def spelling_remedy(self) -> str:
        return "write each key in one way"

    def cause(self, text: str, spelling: Spelling) -> str:  # type: ignore[override]  # noqa: ARG002
        return "it is not UTF-8"

    @property
    def spark_types(self) -> frozenset[str]:
        return frozenset({"string", "char", "varchar", "binary", *_WHOLE_TYPES})

    def from_spark(self, value: Any, kind: Any) -> Any:
        name = kind.typeName()
        if name in ("string", "char", "varchar"):
            return value.cast("string")  # without a collation, under which different strings are equal
        return value.cast("bigint") if name in _WHOLE_TYPES[:-1] else value

    def __repr__(self) -> str:
        return "Identifier()"


def key_array(values: Any) -> Any:
    """The keys of some rows as one Arrow array: of large strings, whole numbers or large bytes; null where missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from spinney.columns.arrow import is_string, one_array

    array = one_array(values)
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        array, kind = array.storage, kind.storage_type
    if pa.types.is_run_end_encoded(kind):
        array = pc.run_end_decode(array)
        kind = array.type
    if pa.types.is_binary_view(kind):
        array = array.cast(pa.large_binary())
        kind = array.type
    if is_string(kind):
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
