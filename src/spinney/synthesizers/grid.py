"""GridSynthesizer: the paper's Algorithm 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spinney.errors import ParameterError
from spinney.partition.plan import SplitPlan, grid_plan
from spinney.privacy.budget import parse_fraction
from spinney.schema.lattice import Lattice, grid_lattice
from spinney.synthesizers.automatic import grid_bins, grid_threshold
from spinney.synthesizers.base import PublicFacts, Synthesizer
from spinney.synthesizers.tree import released_from


class GridSynthesizer(Synthesizer):
    """Synthetic rows from a fixed grid: noise on every cell, cells below a threshold removed.

    Args:
        epsilon: the whole budget, exact: a number or text such as "0.1" or "1/3".
        bins: bins per column, one number for all or one per column name; columns with fewer values get one bin per value.
        bin_width: w, the width of a bin in units of the column, one number or one per column name; instead of bins.
        threshold: bins whose noisy count is below this are not released: t.
        unit: "replace-one" (the number of rows is public) or "add-remove" (it is private).
        bounds_share: the part of epsilon that pays for bounds="private" columns, if there are any.
        placement: where rows lie in their bin: "tilted", "uniform" or "centre".
        assumed_rows: a public guess of the number of rows, used for automatic values under "add-remove" only.
    """

    def __init__(
        self,
        epsilon: Any = 1,
        *,
        bins: int | Mapping[str, int] | None = None,
        bin_width: float | Mapping[str, float] | None = None,
        threshold: float | None = None,
        unit: str = "replace-one",
        bounds_share: Any = "0.1",
        placement: str = "tilted",
        assumed_rows: int = 10_000,
    ) -> None:
        self.epsilon = epsilon
        self.bins = bins
        self.bin_width = bin_width
        self.threshold = threshold
        self.unit = unit
        self.bounds_share = bounds_share
        self.placement = placement
        self.assumed_rows = assumed_rows

    def _design(self, facts: PublicFacts) -> tuple[Lattice, SplitPlan]:
        if self.bins is not None and self.bin_width is not None:
            raise ParameterError("give bins or bin_width, not both")
        if self.bin_width is not None:
            lattice = grid_lattice(facts.schema, width=_checked(self.bin_width, "bin_width", facts, is_whole=False))
        else:
            bins = self.bins if self.bins is not None else grid_bins(len(facts.schema), facts.n_rows, facts.epsilon)
            lattice = grid_lattice(facts.schema, bins=_checked(bins, "bins", facts, is_whole=True))
        if self.threshold is not None:
            threshold = released_from(self.threshold)
        else:
            threshold = grid_threshold(lattice, facts.n_rows, facts.epsilon, facts.unit)
        plan = grid_plan(unit=facts.unit, depth=lattice.depth, epsilon=facts.epsilon, threshold=threshold)
        return lattice, plan


def _checked(value: Any, name: str, facts: PublicFacts, *, is_whole: bool) -> Any:
    """A positive number, or a mapping of them that names columns of the schema."""
    if isinstance(value, Mapping):
        for column in value:
            if column not in facts.schema:
                raise ParameterError(f"{name} names column {column!r}, which is not in the schema")
        return {
            column: _checked(item, f"{name}[{column!r}]", facts, is_whole=is_whole) for column, item in value.items()
        }
    number = parse_fraction(value, name)
    if number <= 0 or (is_whole and number.denominator != 1):
        raise ParameterError(f"{name}={value!r} is not a positive {'whole ' if is_whole else ''}number")
    return int(number) if is_whole else float(number)
