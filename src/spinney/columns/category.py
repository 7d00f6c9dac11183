"""One of a public list of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real as AnyReal
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns.base import LARGEST_WHOLE, AxisKind, Column, show
from spinney.columns.integer import WHOLE_CAST, WHOLE_REMEDY
from spinney.columns.listed import Listed
from spinney.columns.number import SPACES, is_number
from spinney.columns.spelling import PLAIN, Spelling
from spinney.errors import InputError, ParameterError, SchemaError
from spinney.suggest import did_you_mean

if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np
    from numpy.typing import NDArray

    from spinney.columns.dtypes import Group
    from spinney.columns.expressions import Reading
    from spinney.columns.physical import Physical

_NOT_LISTED = (
    "some value is not in the schema's list of values; recode it, or add it if the column's codebook has it, and mind "
    "capitals and spaces (pandas: .str.strip())"
)


@dataclass(frozen=True, slots=True)
class Category(Listed):
    """One of a public list of values, all text or all whole numbers. The order of the list is kept by the tree.

    >>> Category(["low", "middle", "high"])
    Category(values=('low', 'middle', 'high'))

    Args:
        values: every value that the column may take, whether or not it occurs.
        nullable: whether values may be missing.
        bits: the resolution of the column, 2^bits cells; by default the synthesizer chooses.
    """

    type_name: ClassVar[str] = "category"
    axis_kind: ClassVar[AxisKind] = "category"
    spark_cast: ClassVar[str] = WHOLE_CAST

    values: tuple[str, ...] | tuple[int, ...] = ()

    def __post_init__(self) -> None:
        Column.__post_init__(self)
        if isinstance(self.values, str) or not hasattr(self.values, "__iter__"):
            raise SchemaError("Category: values must be a list such as ['red', 'green']")
        given: tuple[Any, ...] = tuple(self.values)
        values = tuple(value.item() if type(value).__module__ == "numpy" else value for value in given)
        if not values:
            raise SchemaError("Category: values is empty; list every value that the column may take")
        if not (all(type(v) is str for v in values) or all(type(v) is int for v in values)):
            raise SchemaError(
                "Category: values must be all strings or all whole numbers; use Boolean() for true and false, and "
                "nullable=True for missing values"
            )
        if any(type(v) is int and abs(v) > LARGEST_WHOLE for v in values):
            raise SchemaError("Category: values holds a number beyond ±2^61; write such numbers as strings")
        if len(set(values)) != len(values):
            raise SchemaError("Category: values repeats a value; list each once")
        object.__setattr__(self, "values", values)

    @property
    def is_text(self) -> bool:
        return isinstance(self.values[0], str)

    @property
    def listed(self) -> tuple[Any, ...]:
        return self.values

    def to_dict(self) -> dict[str, Any]:
        return Column.to_dict(self) | {"values": list(self.values)}

    # ------------------------------------------------------------------------------------------------- reading

    @property
    def accepts(self) -> frozenset[Group]:
        # A column of floats may be all null, whatever is meant by it.
        return frozenset({"float"}) if self.is_text else frozenset({"float", "whole"})

    def remedy(self, group: Group) -> str | None:
        if group != "whole":
            return None
        return "list the values as numbers, Category([1, 2]), or convert the column to strings (pandas: .astype(str))"

    @property
    def fits_array(self) -> bool:
        return not self.is_text

    @property
    def arrow_type(self) -> Any:
        import pyarrow as pa

        return pa.string() if self.is_text else pa.int64()

    def converter(self) -> Callable[[Any], Any]:
        from spinney.columns.objects import whole

        return _text if self.is_text else whole

    def from_strings(self, strings: Any, spelling: Spelling = PLAIN) -> Any:
        from spinney.columns.texts import whole_texts, without_missing

        return without_missing(strings, self) if self.is_text else whole_texts(strings, self, spelling)

    @property
    def spelling_remedy(self) -> str:
        return WHOLE_REMEDY

    def cause(self, text: str, spelling: Spelling) -> str:
        from spinney.columns.texts import MISSING

        if not self.is_text:
            is_numeric = is_number(text.strip(), spelling)
            what = "it is a number that the schema does not list" if is_numeric else "it is not a number"
            return f"{what}; add it to the list of values or recode the column"
        values = [str(value) for value in self.values]
        if text in MISSING:
            return "it is empty or spells a missing value; declare the column nullable or list the value"
        if text.strip(SPACES) in values:
            return "it has spaces before or after a value that the schema lists; remove them"
        if text.strip().casefold() in {value.casefold() for value in values}:
            return "it differs from a value that the schema lists in upper and lower case only; recode the column"
        return (
            "it is not in the schema's list of values; recode it, or add it to the list if the column's codebook has it"
        )

    def read(self, values: Any) -> Physical:
        """Places in the schema's list. A column that was stored as a list of its own and places in that stays so."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from spinney.columns.arrow import one_array, strings_of, whole_numbers, with_mask

        stored = one_array(values, decode=False)
        is_coded = self.is_text and pa.types.is_dictionary(stored.type)
        own = stored.dictionary if is_coded else stored
        known = strings_of(own) if self.is_text else whole_numbers(own)
        found, is_missing = pc.index_in(known, value_set=pa.array(self.values, type=known.type)), known.is_null()
        if is_coded:
            found = found.take(stored.indices)
            is_missing = pc.fill_null(is_missing.take(stored.indices), True)
        if found.null_count > (pc.sum(is_missing).as_py() or 0):
            raise InputError(_NOT_LISTED)
        return with_mask(found)

    def lookup_key(self, value: nw.Expr, dtype: Any) -> nw.Expr:
        """What a value is looked up by: its text or its whole number."""
        import narwhals as nw

        from spinney.columns.expressions import whole

        if self.is_text:
            return value
        number = whole(value, dtype)
        return nw.when(~number.is_missing & ~number.is_wrong).then(number.number)

    def reading(self, value: nw.Expr, dtype: Any, *, place: nw.Expr | None = None) -> Reading:
        import narwhals as nw

        from spinney.columns.expressions import Reading, whole

        if self.is_text and dtype.is_float():  # nulls alone, or nothing that can be meant
            is_number = value.is_finite().fill_null(False)
            return Reading(nw.when(is_number).then(0).otherwise(0).cast(nw.Int64), ~is_number, is_number)
        is_missing = value.is_null() if self.is_text else whole(value, dtype).is_missing
        if place is None:
            key = self.lookup_key(value, dtype)
            place = nw.lit(-1)
            for index in reversed(range(len(self.values))):
                place = nw.when(key == self.values[index]).then(nw.lit(index)).otherwise(place)
        number = place.cast(nw.Int64).fill_null(-1)
        return Reading(number, is_missing, ~is_missing & (number < 0))

    @property
    def complaint(self) -> str:
        return _NOT_LISTED

    def from_spark(self, value: Any, kind: Any) -> Any:
        from spinney.columns.spark import plain

        return plain(value, kind)

    # ------------------------------------------------------------------------------------ writing and asking

    def to_arrow(self, positions: NDArray[np.float64]) -> Any:
        import pyarrow as pa

        from spinney.columns.steps import whole_steps

        steps, is_null = whole_steps(positions, len(self.values))
        return pa.array(self.values).take(pa.array(steps, mask=is_null))

    def place_of(self, value: Any, *, name: str, argument: str) -> int:
        from spinney.columns.conditions import meant, shown

        known: tuple[Any, ...] = self.values
        if isinstance(value, (str, AnyReal)) and not isinstance(value, bool) and value in known:
            return known.index(value)
        raise ParameterError(f"{argument}: {shown(value)} is not a value of column {name!r}{meant(value, known)}")

    def from_option(self, text: str, *, name: str, option: str) -> Any:
        for spelling in (text, text.strip()):
            for value in self.values:
                if str(value) == spelling:
                    return value
        hint = did_you_mean(text, map(str, self.values))
        raise ParameterError(f"{option}: {text!r} is not a value of column {name!r}{hint}")

    @classmethod
    def template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        from spinney.columns.arrow import is_string

        del bounds
        if not is_string(kind):
            return None
        return [
            'type = "category"',
            '# values = ["", ""]  # every value that the column can have, whether or not it occurs',
            '# if it names a row or a person: type = "identifier" and nothing else',
        ]

    def __repr__(self) -> str:
        return show(self)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(
            "some value is not a string; list the values as numbers, Category([1, 2]), or convert the column to strings"
        )
    return str.__str__(value)  # a subclass may have a __str__ of its own
