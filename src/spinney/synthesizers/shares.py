"""How a budget is shared by what is found before a plan is made and by the release itself, from public quantities."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spinney.errors import ParameterError
from spinney.privacy.budget import parse_share
from spinney.schema.table import Schema

# The part of epsilon that buys a noisy count of rows. At epsilon 1 its standard deviation is 141 rows.
ROWS_SHARE = Fraction(1, 100)


@dataclass(frozen=True, slots=True)
class Shares:
    """Epsilon for a noisy count of rows, bounds, lists of values, with their delta, utility figures, and the rest."""

    rows: Fraction
    bounds: Fraction
    values: Fraction
    values_delta: Fraction
    utility: Fraction  # of a pure release; with a delta it is part of the rest, which is composed
    rest: Fraction
    rest_delta: Fraction


def shared_out(
    schema: Schema,
    *,
    epsilon: Fraction,
    delta: Fraction,
    bounds_share: Any,
    values_share: Any,
    counts_rows: bool,
    utility_share: Any = None,
) -> Shares:
    """The shares of one fit; what a schema leaves nothing to find for costs nothing."""
    of_bounds, of_values = parse_share(bounds_share, "bounds_share"), parse_share(values_share, "values_share")
    of_bounds *= bool(schema.columns_awaiting_bounds("private"))
    of_values *= bool(schema.columns_awaiting_values)
    of_rows = ROWS_SHARE * counts_rows
    wants_figures = utility_share is not None and not delta
    of_utility = parse_share(utility_share, "utility_share") if wants_figures else Fraction(0)
    if of_bounds + of_values + of_rows + of_utility >= 1:
        figures = f", utility_share={utility_share}" if wants_figures else ""
        raise ParameterError(
            f"bounds_share={bounds_share} and values_share={values_share}{figures} leave nothing for the release; "
            f"together they must be below {float(1 - of_rows):g}"
        )
    return Shares(
        epsilon * of_rows,
        epsilon * of_bounds,
        epsilon * of_values,
        delta * of_values,
        epsilon * of_utility,
        epsilon * (1 - of_rows - of_bounds - of_values - of_utility),
        delta * (1 - of_values),
    )
