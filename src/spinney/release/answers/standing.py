"""Standing: what kind of statement an analysis of drawn rows can be, and how far its intervals are widened for that.

Draws carry the noise of the release. What they cannot carry is how far the model is from the rows where columns were
not counted together: that error does not shrink with epsilon, and in trials neither sums of products that agree with
the model nor many counted pairs told regressions that were right from regressions whose signs were wrong. So an
analysis of columns that no one counted table holds is *not supported*, and has no interval unless one is forced.

Of columns that were counted together in ranges of values, or as boxes of a tree, draws lack how they depend on each
other inside of these, which does not shrink with epsilon either: *indicative*, and eight times the spread.

Forced intervals are widened by 1.5 c: c is how far the model still is from the sums of products that a forest measured
of all other pairs, in units of their noise, and 1 at least. Where no such sums were measured, c is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from spinney.errors import ParameterError
from spinney.shown import brief
from spinney.suggest import did_you_mean

if TYPE_CHECKING:
    from spinney.release.model import Release

# How much wider than the spread of draws intervals are at least where columns were not counted together.
_SAFETY = 1.5
# And where they were counted together in ranges: with 6 slopes of California at epsilon 5 held 0.83 of the time, with 8
# those of five tables 0.97 at least.
_OF_RANGES = 8.0
# A measured factor that is below this is no more than the noise of measuring it.
_NOTABLE = 1.05


@dataclass(frozen=True, slots=True)
class Standing:
    """The statement that intervals from draws are, and why."""

    statement: Literal["calibrated", "indicative", "not supported"]
    why: str
    widening: float = 1.0  # of the standard deviation between draws


TOGETHER = Standing("calibrated", "all columns of the analysis were counted together, and draws carry the noise")
COARSE = Standing(
    "indicative",
    "the columns were counted together, in states that are ranges of values: what they do inside of these is the "
    f"model's guess, and intervals are {_OF_RANGES:g} times as wide as the draws say; read sign and size, test nothing",
    _OF_RANGES,
)
UNKNOWN = Standing(
    "not supported",
    "draws carry the noise of the release, not how far its model is from the rows; give release= and columns= to find "
    "out whether these columns were counted together",
)


def standing_of(release: Release, columns: Sequence[str] | None) -> Standing:
    """The standing of an analysis of these columns, by default of all; a ParameterError where one is no column."""
    names = checked_columns(release, columns)
    if not release._counts_together(names):
        return apart(release._misfit_factor)
    return TOGETHER if len(names) < 2 or not release._is_coarse(names) else COARSE


def apart(factor: float | None) -> Standing:
    """The standing of columns that were not all counted together, by how far the model is off there; None: unknown."""
    found = "nothing measured how wrong"
    if factor is not None:
        found = f"by the release's own sums of products the model is off {factor:.2g} times as far as their noise"
        if factor < _NOTABLE:
            found = "sums of products of pairs, with which the model agrees, do not show it"
    return Standing(
        "not supported",
        f"columns of the analysis were not all counted together, so that draws may agree and be wrong, in sign too; "
        f"{found}; name the regression before the fit (analyses=), or the columns (workload=)",
        _SAFETY * max(factor or 1.0, 1.0),
    )


def checked_columns(release: Release, columns: Sequence[str] | None) -> list[str]:
    """The columns that an analysis looks at, each one of the release's."""
    known = list(release.schema)
    if columns is None:
        return known
    if isinstance(columns, str):
        raise ParameterError(f"columns={brief(columns)} is text; give a list of columns: [{brief(columns)}]")
    for name in columns:
        if name not in known:
            raise ParameterError(f"columns: {brief(name)} is not a column of the release{did_you_mean(name, known)}")
    if not len(columns):
        raise ParameterError("columns is empty; name those that the analysis looks at, or leave it out")
    return list(dict.fromkeys(columns))
