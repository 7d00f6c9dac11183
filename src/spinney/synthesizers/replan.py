"""The plan that a call makes of what its card states, to compare with the plan on the card.

Automatic values (depths, thresholds, noise of every stage) follow from public quantities: the schema, the number of
rows, the budget and the parameters. All of these stand on the card, so the plan can be made again. A card whose budget
was lowered, and whose plan was not, is found out. Plans change from version to version, so this holds for a card of
this version, commit included; of others it only says whether the plan is the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from spinney.errors import FileError
from spinney.forest.release.model import ForestRelease
from spinney.people.release.model import PeopleRelease
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon
from spinney.privacy.events import Charge, DiscreteLaplaceCounts, LeafMoments, PartitionSelection
from spinney.privacy.promise import default_delta
from spinney.release.card import Card
from spinney.release.contradictions import ContradictionError, check
from spinney.release.model import Release
from spinney.release.row_count import NOISY_ROWS
from spinney.release.utility import UTILITY
from spinney.release.verification import verification
from spinney.shown import brief
from spinney.synthesizers.base import PublicFacts, Synthesizer
from spinney.synthesizers.forest import ForestSynthesizer
from spinney.synthesizers.grid import GridSynthesizer
from spinney.synthesizers.linked import LinkedSynthesizer
from spinney.synthesizers.paper_tree import PaperTreeSynthesizer
from spinney.synthesizers.tree import KDTreeSynthesizer
from spinney.synthesizers.utility_check import check_figures
from spinney.version import full_version

_SYNTHESIZERS: dict[str, type[Synthesizer[Any]]] = {
    kind.__name__: kind for kind in (KDTreeSynthesizer, GridSynthesizer, PaperTreeSynthesizer, ForestSynthesizer)
}
# Noise that is found by search may come out otherwise on another machine, by less than this part of it.
_SLACK = 0.01
_WHAT = "that the plan is the one that such a call makes"


def verified_numbers(path: str, release: Release) -> tuple[str, list[str], list[dict[str, str]]]:
    """The guarantee of a release worked out again, what was checked, in words, and what was not and why.

    The model is fitted again to the numbers that the release holds, which may take long.

    Args:
        path: where it was read from, for the error.
        release: what was read.

    Raises:
        FileError: the numbers contradict each other.
    """
    try:
        found = verification(release, refits=True)
        planned, unplanned = check_plan(release)
        compared, not_compared = check_figures(release)
    except ContradictionError as err:
        raise FileError(f"{path!r} is a Spinney release with inconsistent contents: {err}") from err
    others = [*unplanned, *not_compared, *({"what": one.what, "why": one.why} for one in found.not_checked)]
    return found.guarantee, [*found.checks, *planned, *compared], others


def check_plan(release: Release) -> tuple[list[str], list[dict[str, str]]]:
    """What was compared, in words, and what was not and why; ContradictionError where this version plans otherwise."""
    card = release.card
    kind = _SYNTHESIZERS.get(card.synthesizer)
    if kind is None and not isinstance(release, PeopleRelease):
        return [], [{"what": _WHAT, "why": f"plans of {brief(card.synthesizer)} are not made again"}]
    try:
        wanted = _plan(kind, release)
    except Exception:  # parameters of a file may be anything, and what they lead to says nothing else
        wanted = None
    difference = "no plan can be made of its parameters" if wanted is None else _difference(wanted, card.plan)
    if difference is None:
        return ["the plan was made again from the call, the schema and the number of rows, and is the same"], []
    if card.spinney_version == full_version():
        check(False, f"the plan is not the one that such a call makes: {difference}")
    why = f"it was made by spinney {card.spinney_version}, and this version plans otherwise ({difference})"
    return [], [{"what": _WHAT, "why": why}]


def _plan(kind: type[Synthesizer[Any]] | None, release: Release) -> Mapping[str, Any]:
    """The plan of the call on a card, as its entries."""
    card = release.card
    if isinstance(release, PeopleRelease):
        return LinkedSynthesizer(**card.parameters).planned(release.shape, _facts(card))
    assert kind is not None
    model = kind(**card.parameters)
    facts = _facts(card)
    if not isinstance(model, ForestSynthesizer):
        return dict(model._design(facts)[1].to_dict())  # type: ignore[attr-defined]
    if not isinstance(release, ForestRelease):
        raise ValueError("a forest is the maker of what is none")
    class_size = None
    if model._counts_classes(facts.schema):
        columns = () if release.measured is None else release.measured.columns
        counted = columns[release.variables.index(str(model.target))]
        if counted is None:
            raise ValueError("the sizes of the target's classes are not in the file")
        class_size = float(np.sort(counted.noisy)[-2])
    design = model._design(facts, class_size=class_size)
    return {"structure": design.structure, **design.plan.to_dict()}


def _facts(card: Card) -> PublicFacts:
    """What the plan followed from: all that was charged for something else was charged before."""
    unit, counted = Unit.parse(card.unit), card.row_count
    n_rows = card.n_rows if card.n_rows is not None else (counted.expected if counted else card.assumed_rows)
    spent = [event for event in card.events if isinstance(event, Charge) and not _is_before(event)]
    epsilon = sum((event.epsilon for event in spent), Fraction(0))
    delta = sum((getattr(event, "delta", Fraction(0)) for event in spent), Fraction(0))
    if not spent:  # nothing was worth its noise: what the call left for it
        stated = card.parameters.get("delta", 0)
        epsilon = parse_epsilon(card.parameters["epsilon"]) - card.epsilon
        delta = (default_delta(n_rows or 1) if stated is None else parse_delta(stated)) - card.delta
    facts = PublicFacts(card.schema, epsilon, delta, unit, n_rows or 1, row_count=counted)
    has_bounds = any(isinstance(event, DiscreteLaplaceCounts) and event.stage == "bounds" for event in card.events)
    return replace(facts, found_bounds=has_bounds)


def _is_before(event: Charge) -> bool:
    """Whether a charge is for what a plan follows from, or for what it does not plan."""
    if isinstance(event, DiscreteLaplaceCounts):
        return event.stage in ("rows", "bounds", "classes")
    return isinstance(event, PartitionSelection) or (isinstance(event, LeafMoments) and event.stage == "utility")


def _difference(wanted: Mapping[str, Any], stated: Mapping[str, Any]) -> str | None:
    """The first entry that differs, in words."""
    stated = {name: value for name, value in stated.items() if name not in (NOISY_ROWS, UTILITY)}
    for name in dict.fromkeys([*wanted, *stated]):
        one, other = wanted.get(name), stated.get(name)
        if isinstance(one, float) and isinstance(other, (int, float)) and not isinstance(other, bool):
            is_same = math.isclose(one, other, rel_tol=_SLACK, abs_tol=1e-6)
        else:
            is_same = one == other
        if not is_same:
            return f"{name} would be {brief(one)} and is {brief(other)}"
    return None
