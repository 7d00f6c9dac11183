"""What columns share whose possible values are a short public list: booleans and categories."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spinney.columns.base import Column
from spinney.shown import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MANY_TICKS = 20


@dataclass(frozen=True, slots=True)
class Listed(Column):
    """A column whose physical numbers are places in the list of all its values."""

    @abstractmethod
    def place_of(self, value: Any, *, name: str, argument: str) -> int:
        """The place of a value that a condition asks for; a ParameterError says where it was asked for."""

    def whole_range(self) -> tuple[int, int] | None:
        return 0, len(self.listed) - 1

    def to_positions(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        from spinney.columns.steps import whole_positions

        return whole_positions(numbers, self)

    def leaf_ends(self, low: NDArray[np.float64], length: NDArray[np.float64]) -> list[tuple[Any, Any]]:
        from spinney.columns.steps import whole_ends

        return [(self.listed[first], self.listed[last]) for first, last in whole_ends(low, length, self)]

    def drawn_range(self) -> tuple[float, float]:
        return 0, len(self.listed)

    def set_ticks(self, axis: Any) -> None:
        labels = [printable(str(value).lower() if isinstance(value, bool) else str(value)) for value in self.listed]
        stride = -(-len(labels) // _MANY_TICKS)
        # Values are not formulas: a $ in them is a $.
        places = [place + 0.5 for place in range(len(labels))]
        axis.set_ticks(places[::stride], labels=labels[::stride], parse_math=False)
