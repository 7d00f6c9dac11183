"""Regressions that were named before the fit: found among what was released, and compared with what was charged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.errors import ParameterError
from spinney.forest.release.formula import parse_formula
from spinney.forest.release.moments_fit import fit_moments
from spinney.forest.release.plausible_analyses import check_analyses_sums
from spinney.forest.release.regression import Regression, regress
from spinney.forest.release.regressor_weights import spreads_of
from spinney.privacy.budget import Unit
from spinney.privacy.parts import LARGEST_VECTOR, VARIANCE_STEP, GaussianVector, vector_variance
from spinney.release.answers.answer import TRUTHS
from spinney.release.answers.question import check_level
from spinney.release.contradictions import check
from spinney.shown import brief

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


def named_regression(release: ForestRelease, text: str, *, level: float, of: str) -> Regression:
    """A regression from the sums that were measured for it; a ParameterError where they were not."""
    level, schema = check_level(level), release.schema
    if of not in TRUTHS:
        raise ParameterError(f"of={brief(of)} is not one of {', '.join(map(repr, TRUTHS))}")
    formula = parse_formula(text, schema, argument="formula")
    named = release.analyses
    place = None
    if named is not None:
        place = named.block_of(formula.columns, [name for name in formula.columns if schema[name].nullable])
    if named is None or place is None:
        stated = release.card.parameters.get("analyses") or []
        if stated and named is None:
            raise ParameterError(
                "the analyses of the call were not measured: the table has too few rows for the budget to measure "
                "anything; fit with a larger epsilon"
            )
        there = f"those named are {', '.join(map(repr, stated))}" if stated else "none was named"
        raise ParameterError(
            f"formula: {brief(text)} was not named before the fit, and {there}; fit again with analyses=[{brief(text)}]"
            ", or run it on draws with sp.analyse, which has intervals only where one counted table holds the columns"
        )
    block, n_public = named.blocks[place], release.card.n_rows
    moments = fit_moments(block, named.sums[place], variance=float(named.variance), n_rows=n_public)
    n_rows = max(1, round(float(moments.matrix[0, 0])))
    truth = next(one for one in TRUTHS if one == of)
    spreads = spreads_of(block, release.columns)
    return regress(formula, block, moments, spreads, level=level, of=truth, n_rows=n_rows, frame=release.card.frame)


def verify_analyses(release: ForestRelease, unit: Unit) -> list[str]:
    """The sums of named regressions are those that the call names, with as much noise as was charged for."""
    analyses, charged = (
        release.analyses,
        [part for event in release.card.events for part in getattr(event, "parts", ())],
    )
    vectors = [part for part in charged if isinstance(part, GaussianVector) and part.stage == "analyses"]
    check(bool(vectors) == (analyses is not None), "sums of analyses and a charge for them do not go together")
    if analyses is None:
        return []
    check(len(vectors) == 1, "the sums of analyses were charged more than once")
    check(analyses.n_sums <= LARGEST_VECTOR, "more sums of analyses were released than a vector can have")
    needed = vector_variance(vectors[0].mean_squared, analyses.sensitivity_squared(unit))
    check(analyses.variance >= needed, "the sums of analyses have less noise than what was charged for them needs")
    is_rounded = analyses.variance - needed < VARIANCE_STEP
    check(is_rounded, "the sums of analyses have more noise than what was charged for them needs")
    check_analyses_sums(release)
    return [f"{analyses.n_sums} sums of named analyses were released as one vector, with the noise it was paid for"]
