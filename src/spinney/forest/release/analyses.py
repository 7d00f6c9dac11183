"""What was released of named regressions: noisy sums of products, as data and in a file.

Which sums there are follows from the schema and the formulas of the call, so a file holds the sums and the weights of
their columns alone, and what it says of them is checked against what was charged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.forest.release.formula import parse_formulas
from spinney.forest.release.regressors import Block, blocks_of
from spinney.privacy.budget import Unit, parse_fraction
from spinney.release.arrow import are_counts, from_arrow, lists, to_arrow
from spinney.release.card import Card

MEMBER = "analyses.arrow"
_SUMS = {"sums": (pa.list_(pa.int64()),)}


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedAnalyses:
    """Noisy sums of all blocks, in the order of their entries, and the variance of the noise on each."""

    blocks: tuple[Block, ...]
    sums: tuple[NDArray[np.int64], ...]
    variance: Fraction

    @property
    def n_sums(self) -> int:
        return sum(len(block.entries) for block in self.blocks)

    def sensitivity_squared(self, unit: Unit) -> int:
        """How far one person can move all sums, squared."""
        return sum(block.sensitivity_squared(unit) for block in self.blocks)

    def block_of(self, names: Sequence[str], nullable: Sequence[str]) -> int | None:
        """The block with all these columns that leaves out the rows where one of these is null, if there is one."""
        for place, block in enumerate(self.blocks):
            left_out = {column.name for column in block.columns if column.axis.nullable}
            if {*names} <= {*block.names} and left_out == {*nullable}:
                return place
        return None

    # --------------------------------------------------------------------------------------------------- files

    def entries(self) -> dict[str, Any]:
        """What stands beside the card."""
        return {"variance": str(self.variance), "weights": [list(block.units) for block in self.blocks]}

    def members(self) -> dict[str, bytes]:
        """One table: the sums of every block."""
        table = pa.table({"sums": pa.array([sums.tolist() for sums in self.sums], pa.list_(pa.int64()))})
        return {MEMBER: to_arrow(table)}


def analyses_from_members(
    card: Card, described: Mapping[str, Any], members: Mapping[str, bytes]
) -> ReleasedAnalyses | None:
    """Read what was written; ValueError where it is not that."""
    if "analyses" not in described:
        return None
    formulas = parse_formulas(card.parameters.get("analyses"), card.schema)
    if not formulas:
        raise ValueError("sums of analyses that the call does not name")
    plain, weights = blocks_of(formulas, card.schema, Unit.parse(card.unit)), described["analyses"]["weights"]
    blocks = tuple(block.weighing(units) for block, units in zip(plain, weights, strict=True))
    variance = parse_fraction(described["analyses"]["variance"], "variance")
    sums = tuple(lists(from_arrow(members[MEMBER], _SUMS), "sums", np.int64))
    if [len(block.entries) for block in blocks] != [len(part) for part in sums]:
        raise ValueError("other sums than those of the analyses that the call names")
    if not variance > 0 or not all(are_counts(part) for part in sums):
        raise ValueError("sums of analyses out of range")
    return ReleasedAnalyses(blocks, sums, variance)
