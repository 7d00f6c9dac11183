"""One of a list of values, which is public, or found privately: codes, names, classes.

What is not in the list is refused, unless `other` names a value that stands for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real as AnyReal
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from spinney.columns.base import LARGEST_WHOLE, AxisKind, Column, show
from spinney.columns.characters import check_characters
from spinney.columns.code_list import read_code_list
from spinney.columns.hierarchy import Hierarchy, hierarchy_to_plain, in_hierarchy_order, parse_hierarchy
from spinney.columns.integer import WHOLE_CAST, WHOLE_REMEDY
from spinney.columns.listed import Listed
from spinney.columns.number import SPACES, is_number
from spinney.columns.spelling import PLAIN, Spelling
from spinney.errors import InputError, ParameterError, SchemaError
from spinney.shown import brief
from spinney.suggest import did_you_mean

if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np
    from numpy.typing import NDArray

    from spinney.columns.dtypes import Group
    from spinney.columns.expressions import Reading
    from spinney.columns.physical import Physical

PRIVATE = "private"
_NOT_LISTED = (
    "some value is not in the schema's list of values; recode it, add it if the column's codebook has it, or count it "
    'as another value (other="other"), and mind capitals and spaces (pandas: .str.strip())'
)


@dataclass(frozen=True, slots=True)
class Category(Listed):
    """One of a list of values, all strings or all whole numbers. The order of the list is kept by the tree.

    >>> Category(["low", "middle", "high"])
    Category(values=('low', 'middle', 'high'))

    Args:
        values: every value that the column may take, whether or not it occurs; "private" finds the common ones
            privately, using part of epsilon and delta, in a forest only.
        other: the value that stands for all that are not in the list, which it joins; by default such values are
            refused. With values="private" it is "other" unless stated; a whole number means that values are numbers.
        values_from: the path of a file that lists the values, one a line, or in the first column of a CSV below its
            header; instead of `values`. They are strings, unless `other` is a whole number.
        hierarchy: which values belong together: lengths of prefixes such as [1, 3], or a mapping from values to their
            parents. The list is put into the order of the hierarchy, and rare values of a forest share the noise of
            their group.
        nullable: whether values may be missing.
        bits: the resolution of the column, 2^bits cells; by default the synthesizer chooses.
    """

    type_name: ClassVar[str] = "category"
    axis_kind: ClassVar[AxisKind] = "category"
    spark_cast: ClassVar[str] = WHOLE_CAST

    values: tuple[str, ...] | tuple[int, ...] | Literal["private"] = ()
    other: str | int | None = field(default=None, kw_only=True)
    values_from: Any = field(default=None, kw_only=True)  # None once the file has been read
    hierarchy: Hierarchy | None = field(default=None, kw_only=True)
    _places: dict[Any, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        Column.__post_init__(self)
        other = self.other.item() if type(self.other).__module__ == "numpy" else self.other  # type: ignore[union-attr]
        if other is not None and type(other) not in (str, int):
            raise SchemaError(f"Category: other={brief(other)} is not a string or a whole number")
        check_characters([other], "Category: other ")
        object.__setattr__(self, "other", other)
        if self.hierarchy is not None:
            object.__setattr__(self, "hierarchy", parse_hierarchy(self.hierarchy))
        if isinstance(self.values, str) and self.values == PRIVATE:
            self._await_values()
        else:
            object.__setattr__(self, "values", self._stated_values())
        object.__setattr__(self, "values_from", None)
        object.__setattr__(self, "_places", {value: place for place, value in enumerate(self.listed)})

    def _await_values(self) -> None:
        if self.values_from is not None:
            raise SchemaError('Category: give either values_from or values="private", not both')
        if self.hierarchy is not None and not isinstance(self.hierarchy[0], int):
            raise SchemaError(
                'Category: a mapping as hierarchy lists the values, so they need not be found; give values="private" '
                "lengths of prefixes, or list the values"
            )
        if self.other is None:
            object.__setattr__(self, "other", "other")

    def _stated_values(self) -> tuple[Any, ...]:
        """The list in the order in which places count, `other` in it."""
        if self.values_from is not None:
            if not isinstance(self.values, tuple) or self.values:
                raise SchemaError("Category: give either values or values_from, not both")
            listed = read_code_list(self.values_from, is_whole=type(self.other) is int)
            object.__setattr__(self, "values", listed)
        if isinstance(self.values, str) or not hasattr(self.values, "__iter__"):
            raise SchemaError("Category: values must be a list such as ['red', 'green'], or \"private\"")
        given: tuple[Any, ...] = tuple(self.values)
        values = tuple(value.item() if type(value).__module__ == "numpy" else value for value in given)
        if not values:
            raise SchemaError("Category: values is empty; list every value that the column may take")
        if not (all(type(v) is str for v in values) or all(type(v) is int for v in values)):
            raise SchemaError(
                "Category: values must be all strings or all whole numbers; use Boolean() for true and false, and "
                "nullable=True for missing values"
            )
        check_characters(values, "Category: value ")
        known = set(values)
        if len(known) != len(values):
            raise SchemaError("Category: values repeats a value; list each once")
        if self.other is not None and self.other not in known:
            values += (self.other,)
            if type(self.other) is not type(values[0]):
                kind = "strings" if isinstance(values[0], str) else "whole numbers"
                raise SchemaError(f"Category: other={brief(self.other)} is of another type than the values, {kind}")
        if any(type(v) is int and abs(v) > LARGEST_WHOLE for v in values):
            raise SchemaError("Category: values holds a number beyond ±2^61; write such numbers as strings")
        return values if self.hierarchy is None else in_hierarchy_order(values, self.hierarchy, self.other)

    @property
    def has_values(self) -> bool:
        """Whether the list is there; one that is to be found holds `other` alone until then."""
        return self.values != PRIVATE

    def with_values(self, values: Sequence[Any]) -> Category:
        """The same column with the list that was found, which is released, hence public from here on."""
        return replace(self, values=(*values, self.other))

    @property
    def is_text(self) -> bool:
        return isinstance(self.listed[0], str)

    @property
    def longest_text(self) -> int:
        return max(map(len, self.listed)) if self.is_text else 0

    @property
    def listed(self) -> tuple[Any, ...]:
        return (self.other,) if isinstance(self.values, str) else self.values

    def to_dict(self) -> dict[str, Any]:
        described = Column.to_dict(self) | {"values": list(self.values) if self.has_values else PRIVATE}
        if self.other is not None:
            described["other"] = self.other
        if self.hierarchy is not None:
            described["hierarchy"] = hierarchy_to_plain(self.hierarchy)
        return described

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
        values = {str(value) for value in self.listed}
        if text in MISSING:
            return "it is empty or spells a missing value; declare the column nullable or list the value"
        if text.strip(SPACES) in values:
            return "it has spaces before or after a value that the schema lists; remove them"
        if text.strip().casefold() in {value.casefold() for value in values}:
            return "it differs from a value that the schema lists in upper and lower case only; recode the column"
        return (
            "it is not in the schema's list of values; recode it, or add it to the list if the column's codebook has it"
        )

    def keys(self, values: Any) -> Any:
        """A column of a table as an Arrow array of its strings or whole numbers, before they are looked up."""
        from spinney.columns.arrow import strings_of, whole_numbers

        return strings_of(values) if self.is_text else whole_numbers(values)

    def read(self, values: Any) -> Physical:
        """Places in the schema's list. A column that was stored as a list of its own and places in that stays so."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from spinney.columns.arrow import MISSING_CODE, UNLISTED_CODE, looked_up, one_array, with_mask

        stored = one_array(values, decode=False)
        is_coded = self.is_text and pa.types.is_dictionary(stored.type)
        known = self.keys(stored.dictionary if is_coded else stored)
        found, is_missing = pc.index_in(known, value_set=pa.array(self.listed, type=known.type)), known.is_null()
        if self.other is not None:
            found = pc.if_else(is_missing, found, pc.fill_null(found, self._places[self.other]))
        if is_coded:
            numbers = pc.fill_null(pc.if_else(is_missing, MISSING_CODE, found.cast(pa.int64())), UNLISTED_CODE)
            physical = looked_up(stored.indices, numbers)
            if physical is None:
                raise InputError(_NOT_LISTED)
            return physical
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
        number = None if self.is_text else whole(value, dtype)
        is_missing = value.is_null() if number is None else number.is_missing
        if place is None:
            key = self.lookup_key(value, dtype)
            place = nw.lit(-1)
            for index in reversed(range(len(self.listed))):
                place = nw.when(key == self.listed[index]).then(nw.lit(index)).otherwise(place)
        found = place.cast(nw.Int64).fill_null(-1)
        if self.other is None:
            return Reading(found, is_missing, ~is_missing & (found < 0))
        is_wrong = nw.lit(False) if number is None else ~is_missing & number.is_wrong
        return Reading(nw.when(found < 0).then(self._places[self.other]).otherwise(found), is_missing, is_wrong)

    @property
    def complaint(self) -> str:
        if self.other is None:
            return _NOT_LISTED
        return f"some value is not {'a string' if self.is_text else 'a whole number'}; clean the column"

    def from_spark(self, value: Any, kind: Any) -> Any:
        from spinney.columns.spark import plain

        return plain(value, kind)

    # ------------------------------------------------------------------------------------ writing and asking

    def to_arrow(self, positions: NDArray[np.float64]) -> Any:
        import pyarrow as pa

        from spinney.columns.steps import whole_steps

        steps, is_null = whole_steps(positions, len(self.listed))
        return pa.array(self.listed).take(pa.array(steps, mask=is_null))

    def place_of(self, value: Any, *, name: str, argument: str) -> int:
        from spinney.columns.conditions import meant, shown

        if isinstance(value, (str, AnyReal)) and not isinstance(value, bool) and value in self._places:
            return self._places[value]
        hint = meant(value, self.listed)
        raise ParameterError(f"{argument}: {shown(value)} is not a value of column {name!r}{hint}")

    def from_option(self, text: str, *, name: str, option: str) -> Any:
        spelt = {str(value): value for value in self.listed}
        for spelling in (text, text.strip()):
            if spelling in spelt:
                return spelt[spelling]
        hint = did_you_mean(text, spelt)
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
            '# other = "other"  # counts what is not listed as this value, instead of refusing it',
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
