"""Names of rows and people: never read, and generated for synthetic rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns.base import Column, show
from spinney.columns.characters import check_characters
from spinney.columns.unread import Unread
from spinney.errors import SchemaError
from spinney.shown import brief

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_DIGITS, _MOST_DIGITS = 6, 18


@dataclass(frozen=True, slots=True)
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
    spark_cast: ClassVar[str] = "which an identifier does not need"
    why_never_null: ClassVar[str] = "every row gets an identifier"

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

    def to_dict(self) -> dict[str, Any]:
        described = Column.to_dict(self)
        if self.prefix is not None:
            described["prefix"] = self.prefix
        if self.digits != _DIGITS:
            described["digits"] = self.digits
        return described

    # ------------------------------------------------------------------------------------------------- writing

    @property
    def fits_array(self) -> bool:
        return not self.is_text

    def to_positions(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return numbers

    def to_arrow(self, positions: NDArray[np.float64]) -> Any:
        return self.part_to_arrow(positions, first=0, n_rows=len(positions))

    @property
    def longest_text(self) -> int:
        return 0 if self.prefix is None else len(self.prefix) + _MOST_DIGITS

    def part_to_arrow(self, positions: NDArray[np.float64], *, first: int, n_rows: int) -> Any:
        import numpy as np
        import pyarrow as pa

        numbers = np.arange(first + 1, first + len(positions) + 1)
        if self.prefix is None:
            return pa.array(numbers)
        digits = max(self.digits, len(str(n_rows)))
        return pa.array([f"{self.prefix}{number:0{digits}}" for number in numbers.tolist()], pa.string())

    @classmethod
    def template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        """A type never says that it names people; templates of numbers and strings suggest it in a comment."""
        del kind, bounds
        return None

    def __repr__(self) -> str:
        return show(self)
