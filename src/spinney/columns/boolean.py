"""Booleans, and what they share with categories: a short public list of all values.

listed columns    a physical number is a place in the list of all values
boolean           true or false
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real as AnyReal
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns.base import PLAIN, AxisKind, Column, Spelling, shown
from spinney.errors import InputError, ParameterError
from spinney.machine import lazily
from spinney.text import printable

if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    from numpy.typing import NDArray

    from spinney.columns import reading
    from spinney.columns.reading import Group, Physical
else:
    np, pa, pc, reading = lazily("numpy", "pyarrow", "pyarrow.compute", "spinney.columns.reading")


# ------------------------------------------------------------------------------------------------------- listed columns
# What columns share whose possible values are a short public list: booleans and categories.


_MANY_TICKS = 20


@dataclass(frozen=True, slots=True, repr=False)
class Listed(Column):
    """A column whose physical numbers are places in the list of all its values."""

    @abstractmethod
    def _place_of(self, value: Any, *, name: str, argument: str) -> int:
        """The place of a value that a condition asks for; a ParameterError says where it was asked for."""

    def _whole_range(self) -> tuple[int, int] | None:
        return 0, len(self.listed) - 1

    def _to_positions(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return reading.whole_positions(numbers, self)

    def _leaf_ends(self, low: NDArray[np.float64], length: NDArray[np.float64]) -> list[tuple[Any, Any]]:
        return [(self.listed[first], self.listed[last]) for first, last in reading.whole_ends(low, length, self)]

    def _drawn_range(self) -> tuple[float, float]:
        return 0, len(self.listed)

    def _set_ticks(self, axis: Any) -> None:
        labels = [printable(str(value).lower() if isinstance(value, bool) else str(value)) for value in self.listed]
        stride = -(-len(labels) // _MANY_TICKS)
        # Values are not formulas: a $ in them is a $.
        places = [place + 0.5 for place in range(len(labels))]
        axis.set_ticks(places[::stride], labels=labels[::stride], parse_math=False)


# -------------------------------------------------------------------------------------------------------------- boolean
# True or false; numbers are read where they are 0 or 1.


_SPELT = {"true": True, "false": False}
_NOT_A_BOOLEAN = (
    "some value is neither true nor false; convert the column first (pandas: .map({'yes': True, 'no': False}))"
)


@dataclass(frozen=True, slots=True, repr=False)
class Boolean(Listed):
    """True or false.

    Args:
        nullable: whether values may be missing.
        bits: the resolution of the column, 2^bits cells; by default the synthesizer chooses.
    """

    type_name: ClassVar[str] = "boolean"
    _axis_kind: ClassVar[AxisKind] = "integer"
    _describes: ClassVar[frozenset[Group]] = frozenset({"boolean"})
    _spark_cast: ClassVar[str] = 'for example with expr("try_cast(column AS boolean)")'
    listed: ClassVar[tuple[Any, ...]] = (False, True)
    _accepts: ClassVar[frozenset[Group]] = frozenset({"float", "whole", "boolean"})
    _fits_array: ClassVar[bool] = True
    _spelling_remedy: ClassVar[str] = (
        "write true or false, or convert the column first (pandas: .map({'yes': True, 'no': False}))"
    )
    _complaint: ClassVar[str] = _NOT_A_BOOLEAN

    @property
    def _arrow_type(self) -> Any:
        return pa.bool_()

    @property
    def _csv_type(self) -> Any:
        return self._arrow_type

    def _converter(self) -> Callable[[Any], Any]:
        def boolean(value: Any) -> bool:
            if not (isinstance(value, (bool, np.bool_, AnyReal)) and value in (0, 1)):
                raise InputError(_NOT_A_BOOLEAN)
            return bool(value)

        return boolean

    def _from_strings(self, strings: Any, spelling: Spelling = PLAIN) -> Any:
        del spelling
        present = reading.without_missing(strings, self)
        is_true = reading.among(present, reading.TRUE)
        is_known = pc.or_(pc.or_(is_true, present.is_null()), reading.among(present, reading.FALSE))
        if not pc.all(is_known, min_count=0).as_py():
            raise InputError(_NOT_A_BOOLEAN)
        return pc.if_else(present.is_null(), pa.scalar(None, pa.bool_()), is_true)

    def _cause(self, text: str, spelling: Spelling) -> str:
        del text, spelling
        return "it is neither true nor false; write true and false, or 1 and 0"

    def _read(self, values: Any) -> Physical:
        array = reading.one_array(values)
        if pa.types.is_boolean(array.type):
            return reading.with_mask(array.cast(pa.int8()))
        numbers = reading.with_mask(reading.whole_numbers(values))
        if ((numbers.values != 0) & (numbers.values != 1)).any():
            raise InputError(_NOT_A_BOOLEAN)
        return numbers

    def _expression(self, value: nw.Expr, dtype: Any, *, place: nw.Expr | None = None) -> reading.Reading:
        del place
        found = reading.whole_expression(value, dtype)
        is_odd = (found.number != 0) & (found.number != 1)
        return reading.Reading(found.number, found.is_missing, found.is_wrong | (~found.is_missing & is_odd))

    def _from_spark(self, value: Any, kind: Any) -> Any:
        return reading.plain(value, kind)

    def _to_arrow(self, positions: NDArray[np.float64]) -> Any:
        return reading.whole_array(positions, self).cast(self._arrow_type)

    def _place_of(self, value: Any, *, name: str, argument: str) -> int:
        """A boolean may also be given as 1 or 0, or as it is spelt."""
        meant = _SPELT.get(value.strip().lower()) if isinstance(value, str) else value
        if isinstance(meant, AnyReal) and meant in (0, 1):
            return int(meant == 1)
        raise ParameterError(f"{argument}: {shown(value)} is not a value of column {name!r}; use True or False")

    def _from_option(self, text: str, *, name: str, option: str) -> Any:
        text = text.strip()
        known = _SPELT | {"1": True, "0": False}
        if text.lower() not in known:
            raise ParameterError(f"{option}: column {name!r} takes true or false, not {text!r}")
        return known[text.lower()]

    @classmethod
    def _template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        del bounds
        return ['type = "boolean"'] if pa.types.is_boolean(kind) else None
