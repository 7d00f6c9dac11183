"""What was released of all pairs at once, and the tilt that follows from it: as data, and in a file.

A file holds the group and the log-factor of every state, and for every pair the log-factors of its groups and, where no
table was counted, its noisy sums. How many sums there are, and which noise they need, follows from groups and pairs, so
both are checked against what was charged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.forest.release.signs import MOST_PAIRS, n_sums, sensitivity_squared
from spinney.graph.tilt import MOST_GROUPS, Groups, Pair, Tilt
from spinney.privacy.budget import Unit, parse_fraction
from spinney.release.arrow import FLOAT, are_counts, from_arrow, lists, numbers, to_arrow

MEMBERS = ("groups.arrow", "products.arrow")

_GROUPS = {"variable": (pa.int32(),), "group": (pa.int32(),), "factor": FLOAT}
_PAIRS = {
    "pair": (pa.list_(pa.int32()),),
    "factors": (pa.list_(pa.float64()),),
    "sums": (pa.list_(pa.int64()),),
}
# Log-factors beyond this leave the range of floats when they are added up.
_LARGEST_FACTOR = 500.0


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedProducts:
    """Noisy sums of products of pairs (`signs`), the variance of their noise, and the tilt that was fitted to them."""

    pairs: tuple[Pair, ...]  # those that were summed
    sums: tuple[NDArray[np.int64], ...]  # for each pair (n_groups of the first - 1, n_groups of the second - 1)
    variance: Fraction
    tilt: Tilt

    @property
    def n_sums(self) -> int:
        return n_sums(self.tilt.n_groups, self.pairs)

    def sensitivity_squared(self, unit: Unit) -> int:
        """How far one person can move all sums, squared."""
        return sensitivity_squared(self.tilt.n_groups, self.pairs, unit)

    # --------------------------------------------------------------------------------------------------- files

    def entries(self) -> dict[str, Any]:
        """What stands beside the card."""
        return {"variance": str(self.variance), "log_mean": self.tilt.log_mean}

    def members(self) -> dict[str, bytes]:
        """Two tables: states with their groups and factors, pairs with their factors and sums."""
        tilt = self.tilt
        owner = [np.full(len(group), number, dtype=np.int32) for number, group in enumerate(tilt.groups)]
        states = pa.table(
            {
                "variable": pa.array(np.concatenate(owner)),
                "group": pa.array(np.concatenate(tilt.groups).astype(np.int32)),
                "factor": pa.array(np.concatenate(tilt.singles)),
            }
        )
        sums = dict(zip(self.pairs, self.sums, strict=True))
        nothing = np.empty(0, dtype=np.int64)
        pairs = pa.table(
            {
                "pair": pa.array([list(pair) for pair in tilt.pairs], pa.list_(pa.int32())),
                "factors": pa.array([table.ravel() for table in tilt.tables], pa.list_(pa.float64())),
                "sums": pa.array([sums.get(pair, nothing).ravel() for pair in tilt.pairs], pa.list_(pa.int64())),
            }
        )
        return dict(zip(MEMBERS, (to_arrow(states), to_arrow(pairs)), strict=True))


def products_from_members(
    described: Mapping[str, Any], members: Mapping[str, bytes], sizes: Sequence[int]
) -> ReleasedProducts | None:
    """Read what was written, for variables of so many states; ValueError where it is not that."""
    if "products" not in described:
        return None
    entries = described["products"]
    variance = parse_fraction(entries["variance"], "variance")
    log_mean = entries["log_mean"]
    if type(log_mean) is not float or not abs(log_mean) <= _LARGEST_FACTOR:
        raise ValueError("log_mean is not a number of the size that it can have")
    states, pairs = (from_arrow(members[name], kinds) for name, kinds in zip(MEMBERS, (_GROUPS, _PAIRS), strict=True))
    groups, singles = _states(states, sizes)
    n_groups = [int(group.max()) + 1 for group in groups]
    if pairs.num_rows > MOST_PAIRS:
        raise ValueError("more pairs of columns than products are made of")
    numbered: list[Pair] = []
    tables, sums = [], {}
    columns = [
        lists(pairs, name, dtype) for name, dtype in (("pair", np.int64), ("factors", np.float64), ("sums", np.int64))
    ]
    for columns_of_pair, factors, of_pair in zip(*columns, strict=True):
        pair = _pair(columns_of_pair, len(sizes))
        i, j = pair
        if not (np.abs(factors) <= _LARGEST_FACTOR).all() or not are_counts(of_pair):
            raise ValueError("factors or sums of a pair out of range")
        tables.append(factors.reshape(n_groups[i], n_groups[j]))
        if len(of_pair):
            sums[pair] = of_pair.reshape(n_groups[i] - 1, n_groups[j] - 1)
        numbered.append(pair)
    if len(set(numbered)) != len(numbered):
        raise ValueError("a pair of columns twice")
    tilt = Tilt(groups, singles, tuple(numbered), tuple(tables), log_mean)
    return ReleasedProducts(tuple(sums), tuple(sums.values()), variance, tilt)


def _states(table: pa.Table, sizes: Sequence[int]) -> tuple[tuple[Groups, ...], tuple[NDArray[np.float64], ...]]:
    """Groups and factors of the states of every variable."""
    variable, group = numbers(table, "variable", np.int64), numbers(table, "group", np.int64)
    factor = numbers(table, "factor", np.float64)
    if not np.array_equal(variable, np.repeat(np.arange(len(sizes)), sizes)):
        raise ValueError("groups of states that are not those of the model")
    ends = np.cumsum(sizes)[:-1]
    groups = np.split(group, ends)
    for of_variable in groups:
        # The size first: a number in a file must not decide how much memory is taken.
        if of_variable.max() >= MOST_GROUPS or not np.array_equal(
            np.unique(of_variable), np.arange(of_variable.max() + 1)
        ):
            raise ValueError("groups of states that do not follow each other")
    if not (np.abs(factor) <= _LARGEST_FACTOR).all():
        raise ValueError("factors of states out of range")
    return tuple(of_variable.astype(np.uint8) for of_variable in groups), tuple(np.split(factor, ends))


def _pair(columns: NDArray[np.int64], n_variables: int) -> Pair:
    if len(columns) != 2 or not 0 <= columns[0] < columns[1] < n_variables:
        raise ValueError("a pair that is not one of two variables, in order")
    return int(columns[0]), int(columns[1])
