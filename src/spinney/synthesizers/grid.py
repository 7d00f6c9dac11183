"""GridSynthesizer: the paper's Algorithm 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spinney.errors import ParameterError
from spinney.privacy.budget import parse_fraction, parse_length
from spinney.schema.lattice import Lattice, grid_lattice
from spinney.schema.table import Schema
from spinney.shown import as_given
from spinney.suggest import did_you_mean
from spinney.synthesizers.base import PublicFacts
from spinney.synthesizers.binning import PartitionSynthesizer
from spinney.synthesizers.defaults import grid_bins, grid_threshold
from spinney.synthesizers.validation import parse_threshold
from spinney.tree.plan import SplitPlan, grid_plan


class GridSynthesizer(PartitionSynthesizer):
    """Synthetic rows from a fixed grid: noise on every cell, cells below a threshold removed.

    Args:
        epsilon: the whole budget, exact: a number or text such as "0.1" or "1/3".
        bins: bins per column, one number or one per column name; columns with fewer values get one bin per value.
        bin_width: w, the width of a bin in units of the column, one number or one per column name; instead of bins.
        threshold: bins whose noisy count is below this are not released: t.
        unit: "replace-one" (the number of rows is public) or "add-remove" (it is private).
        bounds_share: the part of epsilon that pays for bounds="private" columns, if there are any.
        placement: where rows lie in their bin: "tilted", "uniform" or "centre".
        assumed_rows: a public guess of the number of rows, for automatic values under "add-remove". By default rows are
            counted there with noise, for a hundredth of epsilon; under "replace-one" their number is public.
        utility_share: the part of epsilon that pays for figures of utility, such as "0.02": how far the release is from
            the table, with exact noise, so that they may be published. By default none are measured.
    """

    _in_column_units = ("bin_width",)

    def __init__(
        self,
        epsilon: Any = 1,
        *,
        bins: int | Mapping[str, int] | None = None,
        bin_width: float | Mapping[str, float] | None = None,
        threshold: float | None = None,
        unit: str = "replace-one",
        bounds_share: Any = "0.1",
        placement: str | None = None,
        assumed_rows: int | None = None,
        utility_share: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.bins = bins
        self.bin_width = bin_width
        self.threshold = threshold
        self.unit = unit
        self.bounds_share = bounds_share
        self.placement = placement
        self.assumed_rows = assumed_rows
        self.utility_share = utility_share

    @property
    def _cells_follow_rows(self) -> bool:
        return self.bins is None and self.bin_width is None

    def _design(self, facts: PublicFacts) -> tuple[Lattice, SplitPlan]:
        if self.bins is not None and self.bin_width is not None:
            raise ParameterError("give bins or bin_width, not both")
        schema = facts.schema.modelled
        if self.bin_width is not None:
            lattice = grid_lattice(schema, width=_checked(self.bin_width, "bin_width", schema, is_whole=False))
        else:
            bins = self.bins if self.bins is not None else grid_bins(len(schema), facts.n_rows, facts.epsilon)
            lattice = grid_lattice(schema, bins=_checked(bins, "bins", schema, is_whole=True))
        if self.threshold is not None:
            threshold = parse_threshold(self.threshold)
        else:
            threshold = grid_threshold(lattice, facts.epsilon, facts.unit)
        plan = grid_plan(unit=facts.unit, depth=lattice.depth, epsilon=facts.epsilon, threshold=threshold)
        return lattice, plan


def _checked(value: Any, name: str, schema: Schema, *, is_whole: bool) -> Any:
    """A positive number, or a mapping of them that names the columns of the schema."""
    if isinstance(value, Mapping):
        for column in value:
            if column not in schema:
                hint = did_you_mean(column, [known for known in schema if known not in value])
                raise ParameterError(f"{name} names column {as_given(column)}, which is not in the schema{hint}")
        for column in schema:
            if column not in value:
                raise ParameterError(f"{name} does not name column {column!r}; give it an entry")
        return {
            column: _checked(item, f"{name}[{column!r}]", schema, is_whole=is_whole) for column, item in value.items()
        }
    if not is_whole:
        return parse_length(value, name)
    number = parse_fraction(value, name)
    if number <= 0 or number.denominator != 1:
        raise ParameterError(f"{name}={as_given(value)} is not a positive whole number")
    return int(number)
