"""What a tree or a grid says of its noise, its plan and its leaves, compared with the charges on its card."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.privacy.budget import Unit, parse_fraction
from spinney.privacy.events import Charge, DiscreteLaplaceCounts, LeafMoments, SplitDecisions
from spinney.release.card import Card
from spinney.release.contradictions import ContradictionError, bounds_of_a_column, check, near, same, spent_whole
from spinney.release.spread import farthest, laplace_log_moment, sup_norm_log_moment
from spinney.shown import brief
from spinney.tree.bins import NoisyMoments, leaf_cells
from spinney.tree.calibration import is_within

_LARGEST_DECAY = 2**60


def verify_tree(card: Card, depths: NDArray[np.int64], moments: NoisyMoments | None = None) -> list[str]:
    """The plan on the card is that of the events, and the leaves are those of the plan."""
    unit, plan = Unit.parse(card.unit), card.plan
    spent_whole(card)
    charges = [event for event in card.events if isinstance(event, Charge) and not _is_for_figures(event)]
    for charge in charges:
        if isinstance(charge, (DiscreteLaplaceCounts, LeafMoments)):
            same(charge.sensitivity, unit.factor, f"the sensitivity of {charge.note!r}")
    _bounds(card, charges[:-1])
    counts = charges[-1] if charges else None
    kind = DiscreteLaplaceCounts if moments is None else LeafMoments
    if not isinstance(counts, kind) or sum(isinstance(charge, LeafMoments) for charge in charges) > 1:
        raise ContradictionError("no charge pays for what was released")
    check(counts.stage in (None, "leaves"), f"the last charge is for {counts.stage}, and leaves were released")
    check(isinstance(counts, LeafMoments) or counts.times in (None, 1), "leaves of more trees than one are charged for")
    rate = counts.epsilon / counts.sensitivity
    same(plan["unit"], card.unit, "the unit")
    same(parse_fraction(plan["count_epsilon"], "count_epsilon"), counts.epsilon, "the epsilon of leaf counts")
    scale = float(1 / rate)
    near(scale, plan["count_noise_scale"], "the scale of the noise on counts", slack=1e-9 * scale)
    totals: list[str] = []
    if moments is not None:
        same(moments.rate * moments.quantum, rate, "the rate of the noise on leaves")
        totals = _check_total(card, moments, rate)
    what = "leaf counts" if moments is None else "leaf counts and means"
    checks = [f"{what}: noise of scale {scale:.6g} on the card, in the plan and in the leaves"]
    return checks + totals + _decisions(card, unit, depths)


def _is_for_figures(event: Charge) -> bool:
    """Whether a charge pays for figures of utility, which all kinds of releases have: `release.verification`."""
    return isinstance(event, LeafMoments) and event.stage == "utility"


def _bounds(card: Card, charges: Sequence[Charge]) -> None:
    """Counts that were paid for before the leaves are those of rows, or of magnitudes of columns in the schema."""
    counts = [c for c in charges if isinstance(c, DiscreteLaplaceCounts) and c.stage not in (None, "rows")]
    for charge in counts:
        bounds_of_a_column(charge, card)


def _check_total(card: Card, moments: NoisyMoments, rate: Fraction) -> list[str]:
    """All leaves are released and every row is in one of them, so their counts add up to all rows and their noise."""
    count = card.row_count
    if card.n_rows is None and count is None:
        return []
    total = float(moments.noisy_steps[:, 0].sum(dtype=np.float64)) / moments.quantum
    _, _, is_measured = leaf_cells(moments.codes, moments.depths, moments.lattice)
    sizes = np.bincount(1 + is_measured.sum(axis=1, dtype=np.int64)) if len(moments) else np.zeros(0, dtype=np.int64)
    leaves = [(int(n_axes), int(n)) for n_axes, n in enumerate(sizes) if n]

    def of_leaves(s: float) -> float:
        step = float(moments.rate)
        return sum(n * sup_norm_log_moment(step, n_axes, s / moments.quantum) for n_axes, n in leaves)

    if card.n_rows is not None:
        known, slack = card.n_rows, farthest(of_leaves, float(rate))
        what = f"n_rows={known}"
    else:
        assert count is not None
        known, bought = count.noisy, float(count.rate)
        slack = farthest(lambda s: of_leaves(s) + laplace_log_moment(bought, s), min(float(rate), bought))
        what = f"the noisy count of rows, {known}"
    is_likely = abs(total - known) <= slack
    check(is_likely, f"the counts of all leaves do not add up to about {what}: noise explains {slack:,.0f} at the most")
    return [
        f"the counts of all leaves add up to {what}, up to noise: {abs(total - known):,.0f} of {slack:,.0f} at most"
    ]


def _decisions(card: Card, unit: Unit, depths: NDArray[np.int64]) -> list[str]:
    plan = card.plan
    is_grid = plan["rule"] == "grid"
    highest = _level(plan, "max_depth")
    lowest = highest if is_grid else _level(plan, "fixed_depth")
    check(lowest <= highest, "fixed_depth is above max_depth")
    if len(depths):
        check(lowest <= depths.min() and depths.max() <= highest, "leaves lie deeper or higher than the plan goes")
    found = [event for event in card.events if isinstance(event, SplitDecisions)]
    same(len(found), int(highest > lowest), "the number of charges for decisions")
    if not found:
        return []
    (event,) = found
    check(event.stage in (None, "splits"), f"the decisions are those of {event.stage}, and one tree was released")
    check(event.times in (None, 1), "decisions of more trees than one are charged for")
    same(event.rule, plan["rule"], "the rule")
    same(event.levels, highest - lowest, "the number of levels")
    same(parse_fraction(plan["decision_epsilon"], "decision_epsilon"), event.epsilon, "the epsilon of decisions")
    scale = float(1 / event.rate)
    near(scale, plan["decision_noise_scale"], "the scale of the noise on decisions", slack=1e-9 * scale)
    if event.rule == "paper":
        same(event.decay, None, "the decay")
        is_true = event.rate * unit.factor * event.levels <= event.epsilon
    else:
        check(event.decay in (None, plan["decay"]), "the decay of the decisions is not that of the plan")
        is_true = is_within(event.rate, _level(plan, "decay", least=1), event.levels, unit, event.epsilon)
    check(is_true, f"the decisions of {event.note!r} cost more than the epsilon stated for them")
    return [f"split decisions: {event.levels} levels of noise of scale {scale:.6g} cost no more than stated"]


def _level(plan: Any, name: str, *, least: int = 0) -> int:
    level = plan[name]
    check(type(level) is int and least <= level <= _LARGEST_DECAY, f"{name}={brief(level)} is not a whole number")
    return int(level)
