"""What a release file promises, worked out again from what it lists; every number that stands twice, compared.

A card's epsilon and delta are the sums of its events, and each event has to be true in itself: the parts of a composed
release cost no more than it says, decisions of a rate are within their epsilon, Gaussian noise of a variance is within
epsilon and delta. Then the events have to be those of what was released: the noise that the contents name, the plan on
the card, the depth of the leaves, how many tables were counted.

A file that lies with consistency cannot be told from a true one: that the noise was really drawn stands in no file.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.partition.bins import NoisyMoments
from spinney.partition.calibration import decay_for, is_within
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon, parse_fraction
from spinney.privacy.claims import check_composed, check_gaussian
from spinney.privacy.events import (
    Charge,
    ComposedRelease,
    DiscreteGaussianVector,
    DiscreteLaplaceCounts,
    LeafMoments,
    NotPrivate,
    Selection,
    SplitDecisions,
    decimal,
)
from spinney.privacy.parts import GaussianTables, Selections, TreeShapes
from spinney.release.binned import BinnedRelease
from spinney.release.card import Card
from spinney.release.forest import ForestRelease
from spinney.release.model import Release
from spinney.release.moments import MomentsRelease
from spinney.release.spending import number_in
from spinney.schema.columns import Identifier
from spinney.schema.lattice import needs_tree, tree_lattice
from spinney.schema.table import Schema
from spinney.shown import brief

_LARGEST_DECAY = 2**60
_STAGES = ("one-way", "pairs", "cliques")


class ContradictionError(ValueError):
    """Two recordings of a number in a file are not the same, or an event is not true in itself."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked, in words, and the guarantee that it arrives at."""

    guarantee: str
    checks: tuple[str, ...]


def verification(release: Release) -> Verification:
    """Work the promise of a release out again; a ValueError says what does not hold."""
    card, unit = release.card, Unit.parse(release.card.unit)
    checks = [_total(card), _call(card)]
    is_branded = any(isinstance(event, NotPrivate) for event in card.events)
    _check(is_branded or not card.schema.has_data_derived_bounds, "bounds were read off the data, and no event says so")
    for event in card.events:
        if isinstance(event, ComposedRelease):
            check_composed(event, unit)
            checks.append(f"{event.note}: {len(event.parts)} parts, composed anew, cost no more than it states")
        elif isinstance(event, DiscreteGaussianVector):
            check_gaussian(event)
            checks.append(f"{event.note}: Gaussian noise of its variance is within its epsilon and delta")
        elif isinstance(event, (DiscreteLaplaceCounts, LeafMoments)):
            _check(event.sensitivity % unit.factor == 0, f"{event.note}: its sensitivity is not one of unit {unit}")
    if isinstance(release, (BinnedRelease, MomentsRelease)):
        checks += _tree(release, unit)
    elif isinstance(release, ForestRelease):
        checks += _forest(release, unit)
    else:
        _check(any(isinstance(event, DiscreteGaussianVector) for event in card.events), "no charge pays for it")
    return Verification(card.guarantee, tuple(checks))


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ContradictionError(otherwise)


def _same(found: Any, stated: Any, what: str) -> None:
    _check(type(found) is type(stated) and found == stated, f"{what} is {brief(stated)} here and {brief(found)} there")


def _near(found: float, stated: Any, what: str, *, slack: float) -> None:
    is_near = isinstance(stated, (int, float)) and not isinstance(stated, bool) and abs(found - stated) <= slack
    _check(is_near, f"{what} is {brief(stated)} in the plan and {found:.6g} by the events")


# ------------------------------------------------------------------------------------------------- the card


def _total(card: Card) -> str:
    """Epsilon and delta are sums of events by construction; `Card.from_dict` compares them with what was stated."""
    n_charges = sum(isinstance(event, Charge) for event in card.events)
    charges = "1 charge" if n_charges == 1 else f"{n_charges} charges"
    return f"{charges} on the card, adding up to epsilon {decimal(card.epsilon)}, delta {decimal(card.delta)}"


def _call(card: Card) -> str:
    """No more was spent than the call asked for, as far as the call says numbers."""
    parameters = card.parameters
    if "unit" in parameters:
        _same(parameters["unit"], card.unit, "the unit")
    asked = {"epsilon": parse_epsilon, "delta": parse_delta}
    for name, parse in asked.items():
        try:
            limit = parse(parameters[name], name)
        except (KeyError, ValueError):
            continue
        _check(getattr(card, name) <= limit, f"the events cost more {name} than the call asked for")
    return f"unit {card.unit}, and the number of rows {'stated' if card.n_rows is not None else 'kept private'} with it"


def _spent_whole(card: Card) -> None:
    """Trees, grids and forests spend what the call gave them, to the last fraction: a charge that is gone is missed."""
    if "epsilon" in card.parameters:
        _same(card.epsilon, parse_epsilon(card.parameters["epsilon"]), "the epsilon of the call")


# ------------------------------------------------------------------------------------------------- trees and grids


def _tree(release: BinnedRelease | MomentsRelease, unit: Unit) -> list[str]:
    """The plan on the card is that of the events, and the leaves are those of the plan."""
    card, plan = release.card, release.card.plan
    _spent_whole(card)
    charges = [event for event in card.events if isinstance(event, Charge)]
    for charge in charges:
        if isinstance(charge, (DiscreteLaplaceCounts, LeafMoments)):
            _same(charge.sensitivity, unit.factor, f"the sensitivity of {charge.note!r}")
    counts = charges[-1] if charges else None
    kind = LeafMoments if isinstance(release, MomentsRelease) else DiscreteLaplaceCounts
    if not isinstance(counts, kind) or sum(isinstance(charge, LeafMoments) for charge in charges) > 1:
        raise ContradictionError("no charge pays for what was released")
    rate = counts.epsilon / counts.sensitivity
    _same(plan["unit"], card.unit, "the unit")
    _same(parse_fraction(plan["count_epsilon"], "count_epsilon"), counts.epsilon, "the epsilon of leaf counts")
    scale = float(1 / rate)
    _near(scale, plan["count_noise_scale"], "the scale of the noise on counts", slack=1e-9 * scale)
    if isinstance(release, MomentsRelease):
        moments = release.moments
        _same(moments.rate * moments.quantum, rate, "the rate of the noise on leaves")
        _check(_is_likely(moments, rate, card.n_rows), "the counts of all leaves do not add up to about n_rows")
        depths: NDArray[np.int64] = moments.depths
    else:
        depths = release.bins.depths
    checks = [f"{counts.note}: noise of scale {scale:.6g} on the card, in the plan and in the leaves"]
    return checks + _decisions(card, unit, depths)


def _is_likely(moments: NoisyMoments, rate: Fraction, n_rows: int | None) -> bool:
    """Whether all counts add up to a number of rows within fifty deviations of their noise, or there is no number."""
    if n_rows is None:
        return True
    total = float(moments.noisy_steps[:, 0].sum(dtype=np.float64)) / moments.quantum
    deviation = (moments.lattice.n_axes + 2) * math.sqrt(len(moments)) / float(rate)
    return abs(total - n_rows) <= 50 * deviation + 1


def _decisions(card: Card, unit: Unit, depths: NDArray[np.int64]) -> list[str]:
    plan = card.plan
    is_grid = plan["rule"] == "grid"
    highest = _level(plan, "max_depth")
    lowest = highest if is_grid else _level(plan, "fixed_depth")
    _check(lowest <= highest, "fixed_depth is above max_depth")
    if len(depths):
        _check(lowest <= depths.min() and depths.max() <= highest, "leaves lie deeper or higher than the plan goes")
    found = [event for event in card.events if isinstance(event, SplitDecisions)]
    _same(len(found), int(highest > lowest), "the number of charges for decisions")
    if not found:
        return []
    (event,) = found
    _same(event.rule, plan["rule"], "the rule")
    _same(event.levels, highest - lowest, "the number of levels")
    _same(parse_fraction(plan["decision_epsilon"], "decision_epsilon"), event.epsilon, "the epsilon of decisions")
    scale = float(1 / event.rate)
    _near(scale, plan["decision_noise_scale"], "the scale of the noise on decisions", slack=1e-9 * scale)
    if event.rule == "paper":
        is_true = event.rate * unit.factor * event.levels <= event.epsilon
    else:
        is_true = is_within(event.rate, _level(plan, "decay", least=1), event.levels, unit, event.epsilon)
    _check(is_true, f"the decisions of {event.note!r} cost more than the epsilon stated for them")
    return [f"{event.note}: {event.levels} levels of noise of scale {scale:.6g} cost no more than stated"]


def _level(plan: Any, name: str, *, least: int = 0) -> int:
    level = plan[name]
    _check(type(level) is int and least <= level <= _LARGEST_DECAY, f"{name}={brief(level)} is no whole number")
    return int(level)


# ------------------------------------------------------------------------------------------------- forests


def _forest(release: ForestRelease, unit: Unit) -> list[str]:
    """Every stage has the noise that the plan states, and no more tables were counted than were paid for."""
    card, plan = release.card, release.card.plan
    _same(plan["unit"], card.unit, "the unit")
    times: Counter[str] = Counter()
    has_charge = False
    for event in card.events:
        has_charge |= isinstance(event, Charge)
        if isinstance(event, ComposedRelease):
            for part in event.parts:
                _part(part, plan)
                times[part.note] += part.times
        elif isinstance(event, DiscreteLaplaceCounts):
            stage = event.note.partition(":")[0]
            if stage in _STAGES:
                deviation = math.sqrt(2) * event.sensitivity / float(event.epsilon)
                _near(deviation, plan[f"{stage} noise"], f"the noise of {stage}", slack=_ROUNDED)
            times[stage] += event.sensitivity // unit.factor
        elif isinstance(event, SplitDecisions):
            times["trees"] += _column_trees(event, card, unit)
        elif isinstance(event, Selection):
            times["selection"] += number_in(event.note)
    if plan["structure"] != "uniform":
        _all_paid_for(card, times)
    if any(f"{stage} noise" in plan for stage in _STAGES):  # beyond the classes of a target, if they were counted
        _spent_whole(card)
    n_paid = times["pairs"] + times["cliques"]
    _check(len(release.looked_at) <= n_paid, "more tables were counted than were paid for")
    _check(has_charge or plan["structure"] in ("uniform", "independent"), "no charge pays for what was released")
    _check(card.n_rows is None or release.noisy_total == card.n_rows, "noisy_total and n_rows are not the same")
    total = release.noisy_total
    for name, column in release.columns.items():
        is_total = abs(float(column.weights.sum()) - total) <= 1 + 1e-6 * total
        _check(is_total, f"the leaves of column {name!r} do not add up to noisy_total")
    n_counted = len(release.looked_at)
    return [f"{n_counted} tables of several columns were counted, {n_paid} paid for, each with the noise stated"]


# Deviations and scales are rounded to three digits after the point in the plan of a forest.
_ROUNDED = 0.000_501


def _part(part: GaussianTables | TreeShapes | Selections, plan: Any) -> None:
    if isinstance(part, GaussianTables) and part.note in _STAGES:
        _near(math.sqrt(part.variance), plan[f"{part.note} noise"], f"the noise of {part.note}", slack=_ROUNDED)
    if isinstance(part, TreeShapes):
        _near(float(1 / part.rate), plan["decision noise scale"], "the noise of decisions", slack=_ROUNDED)


def _all_paid_for(card: Card, times: Counter[str]) -> None:
    """Every stage of the plan, every column, every tree and every choice has a charge."""
    for stage in _STAGES:
        _check(f"{stage} noise" not in card.plan or times[stage] > 0, f"no charge pays for {stage}, which the plan has")
    modelled = {name: column for name, column in card.schema.items() if not isinstance(column, Identifier)}
    axes = [tree_lattice(Schema({name: column})).axes[0] for name, column in modelled.items()]
    n_columns = sum(axis.n_possible > 1 for axis in axes)
    _check(times["one-way"] + times["classes"] >= n_columns, "fewer columns were paid for than were counted")
    _check(times["trees"] >= sum(map(needs_tree, axes)), "fewer trees were paid for than columns have one")
    is_chosen = times["selection"] + len(card.schema.rules) >= times["cliques"]
    _check(is_chosen, "fewer choices were paid for than tables were chosen")


def _column_trees(event: SplitDecisions, card: Card, unit: Unit) -> int:
    """The trees of a pure forest share one charge; how many they are stands in its note."""
    n_trees = number_in(event.note)
    _check(1 <= n_trees <= len(card.schema), f"{event.note!r} is not a number of the schema's columns")
    _near(float(1 / event.rate), card.plan["decision noise scale"], "the noise of decisions", slack=_ROUNDED)
    each = event.epsilon / n_trees
    is_true = is_within(event.rate, decay_for(event.rate), event.levels, unit, each)
    _check(event.rule == "privtree" and is_true, f"the decisions of {event.note!r} cost more than stated for them")
    return n_trees
