"""Figures of utility in a file, compared with the charge that pays for them, with the call and with each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from spinney.privacy.budget import Unit
from spinney.privacy.events import ComposedRelease, LeafMoments
from spinney.release.contradictions import check, same
from spinney.release.utility import GAP_STEPS, UTILITY, Utility, figure_weights, paid_figures, share_of_pure

if TYPE_CHECKING:
    from spinney.release.model import Release

# Noise beyond so many standard deviations is drawn once in 10^9 times or more rarely, be it sup-norm or Gaussian.
_MOST_DEVIATIONS = 25.0


def verify_utility(release: Release) -> list[str]:
    """Figures are there where a charge pays for them and the call asked for them, and are possible but for noise."""
    card, figures = release.card, release.card.utility
    is_asked = card.parameters.get("utility_share") is not None
    n_paid = sum(_pays(event) for event in card.events)
    check(is_asked or not n_paid, "figures of utility were paid for, and the call did not ask for them")
    if figures is None:
        # Nothing was released to compare with the table, or no column has more than one state.
        is_nothing = card.is_empty or not _has_columns(release)
        check(not n_paid or is_nothing, "figures of utility were paid for, and the card has none")
        is_uniform = card.plan.get("structure") == "uniform"
        is_told = not is_asked or n_paid > 0 or is_uniform or is_nothing
        check(is_told, "the call asks for figures of utility, and no charge pays for them")
        return []
    check(n_paid == 1, "figures of utility are there, and not one charge pays for them")
    charge = paid_figures(card.events)
    if isinstance(charge, LeafMoments):
        unit = Unit.parse(card.unit)
        same(charge.sensitivity, unit.factor, "the sensitivity of the figures of utility")
        asked = share_of_pure(card.parameters)
        check(
            asked is None or charge.epsilon == asked, "the figures of utility cost another part than the call asked for"
        )
    else:
        check(bool(card.delta), "figures of utility are part of a composed charge, and the release is pure")
    n_rows = card.n_rows if card.n_rows is not None else max(1, release._noisy_total())
    same(figures.n_rows, n_rows, "the number of rows that figures of utility are of")
    check(figures.n_columns <= len(card.schema), "figures of utility are of more columns than there are")
    _check_order(figures)
    _check_range(release, figures)
    deviation = figures["two-way mean" if figures.n_pairs else "one-way mean"].noise_std
    noise = f"noise of standard deviation {deviation:.3g} by the charge that pays for them"
    return [f"{len(figures)} figures of utility: {noise}"]


def _check_order(figures: Utility) -> None:
    """Means are no larger than the worst, nor the worst column than the worst pair, but for noise."""

    def is_above(first: str, second: str) -> bool:
        one, other = figures[first], figures[second]
        slack = _MOST_DEVIATIONS * math.hypot(one.noise_std, other.noise_std) + 1e-3
        return one.estimate <= other.estimate + slack

    pairs = [("one-way mean", "one-way worst")]
    if figures.n_pairs:
        pairs += [("two-way mean", "two-way worst"), ("one-way worst", "two-way worst")]
    for first, second in pairs:
        check(is_above(first, second), f"the figure {first!r} is above {second!r} by more than noise")


def _check_range(release: Release, figures: Utility) -> None:
    """No figure is below 0, nor above 1 where the number of rows is public, but for noise."""
    noisy, whole = release.card.plan[UTILITY]["noisy"], 2 * GAP_STEPS * figures.n_rows
    weights = figure_weights(release.card.events, len(noisy))
    most = 1.0 if release.card.n_rows is not None else math.inf
    for figure, number, weight in zip(figures, noisy, weights, strict=True):
        slack = _MOST_DEVIATIONS * figure.noise_std + 1e-2
        is_possible = -slack <= number / (weight * whole) <= most + slack
        check(is_possible, f"the figure {figure.name!r} is no distance, even with its noise")


def _pays(event: object) -> int:
    if isinstance(event, LeafMoments):
        return int(event.stage == "utility")
    parts = event.parts if isinstance(event, ComposedRelease) else ()
    return sum(part.stage == "utility" for part in parts)


def _has_columns(release: Release) -> bool:
    """Whether some column has more than one value, so that there is something to compare."""
    from spinney.schema.lattice import tree_lattice
    from spinney.schema.table import Schema

    modelled = release.card.schema.modelled
    return any(tree_lattice(Schema({name: column})).axes[0].n_possible > 1 for name, column in modelled.items())
