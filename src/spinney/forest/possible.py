"""Which cells of a clique's table rows can have, by the rules; what is expected in the others goes to these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spinney.counting.joint import Clique

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Turns of fitting a table to the sums of its axes: expectations need not be exact.
_FITTINGS = 5


class Possible:
    """Tables of a few columns that are False where no row can be. Public, given the columns' states."""

    def __init__(self, sizes: Sequence[int], masks: Sequence[tuple[Clique, Mask]]) -> None:
        self._sizes = tuple(sizes)
        self._masks = list(masks)

    def table(self, clique: Clique) -> Mask | None:
        """The cells of a clique (columns ascending) that its rules leave; None where they leave all."""
        inside = [(columns, mask) for columns, mask in self._masks if set(columns) <= set(clique)]
        if not inside:
            return None
        found = np.ones([self._sizes[column] for column in clique], dtype=np.bool_)
        for columns, mask in inside:
            found &= mask.reshape([self._sizes[column] if column in columns else 1 for column in clique])
        return found

    def shared_out(self, clique: Clique, expected: Floats) -> Floats:
        """What is expected of independent columns, where rules leave only some cells: sums of axes are kept, nearly."""
        mask = self.table(clique)
        if mask is None or mask.all():
            return expected
        table = np.where(mask, expected, 0.0)
        for _ in range(_FITTINGS):
            for axis in range(table.ndim):
                others = tuple(other for other in range(table.ndim) if other != axis)
                wanted, held = expected.sum(axis=others, keepdims=True), table.sum(axis=others, keepdims=True)
                table = table * np.divide(wanted, held, out=np.zeros_like(held), where=held > 0)
        return table
