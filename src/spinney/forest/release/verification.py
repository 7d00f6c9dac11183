"""What a forest says of its stages, tables and trees, compared with the charges on its card."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from spinney.columns import Category
from spinney.forest.release.measured_verification import check_measured
from spinney.forest.release.named import verify_analyses
from spinney.forest.release.plausible import check_structure, check_sums, check_totals
from spinney.forest.release.unmeasured import check_dependence, check_uniform
from spinney.privacy.budget import Unit, parse_epsilon, parse_share
from spinney.privacy.events import (
    Charge,
    ComposedRelease,
    DiscreteLaplaceCounts,
    Event,
    PartitionSelection,
    Selection,
    SplitDecisions,
)
from spinney.privacy.parts import (
    LARGEST_VECTOR,
    UNITS,
    VARIANCE_STEP,
    GaussianTables,
    GaussianVector,
    Part,
    Selections,
    TreeShapes,
    WeightedTables,
    vector_variance,
)
from spinney.privacy.stages import STAGES
from spinney.release.card import Card
from spinney.release.contradictions import bounds_of_a_column, check, near, same, spent_whole
from spinney.schema.column_axis import n_group_tables
from spinney.schema.lattice import needs_tree, tree_lattice
from spinney.schema.rules import Derivation
from spinney.schema.table import Schema
from spinney.tree.calibration import decay_for, is_within

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease

_STAGES = ("one-way", "spikes", "places", "workload", "pairs", "cliques")
# Where the plan says how much noise the decisions of trees have, of columns, of places and of rows of persons.
_SCALES = {
    "trees": "decision noise scale",
    "regions": "regions noise scale",
    "row trees": "row decision noise scale",
}
# And how much epsilon a choice has.
_CHOICES = {"prior": "epsilon of a choice for the prior", "row selection": "epsilon of a choice among rows"}
# Deviations and scales are rounded to three digits after the point in the plan of a forest.
_ROUNDED = 0.000_501
_CHOICE_ROUNDED = 0.000_000_501
_VECTOR_ROUNDED = 1e-8  # of the number itself


def verify_forest(release: ForestRelease) -> list[str]:
    """Every stage has the noise that the plan states, and no more tables were counted than were paid for."""
    card, plan, unit = release.card, release.card.plan, Unit.parse(release.card.unit)
    same(plan["unit"], card.unit, "the unit")
    times: Counter[str | None] = Counter()  # None: what claims no stage, and pays for none
    _once(card)
    has_charge = False
    for event in card.events:
        has_charge |= isinstance(event, Charge)
        if isinstance(event, ComposedRelease):
            for part in event.parts:
                _part(part, plan)
                times[part.stage] += part.times
        elif isinstance(event, DiscreteLaplaceCounts):
            times[event.stage] += _tables(event, card, unit)
        elif isinstance(event, SplitDecisions):
            times[event.stage] += _trees(event, card, unit)
        elif isinstance(event, Selection):
            times[event.stage] += event.times or 0
            _choices(event.epsilon / max(event.times or 1, 1), event.stage, plan)
    if plan["structure"] != "uniform":
        _all_paid_for(release, times)
    if any(f"{stage} noise" in plan for stage in _STAGES):  # beyond the classes of a target, if they were counted
        spent_whole(card)
    n_paid = times["workload"] + times["pairs"] + times["cliques"]
    check(len(release.looked_at) <= n_paid, "more tables were counted than were paid for")
    check(has_charge or plan["structure"] in ("uniform", "independent"), "no charge pays for what was released")
    check(card.n_rows is None or release.noisy_total == card.n_rows, "noisy_total and n_rows are not the same")
    total = release.noisy_total
    weights = {name: column.weights for name, column in release.columns.items()}
    weights |= {name: place.weights for name, place in release.places.items()}
    for name, of_leaves in weights.items():
        is_total = abs(float(of_leaves.sum()) - total) <= 1 + 1e-6 * total
        check(is_total, f"the leaves of {name!r} do not add up to noisy_total")
    check_totals(release)
    _only_what_was_counted(release)
    check_structure(release)
    check_sums(release, times["products"])
    from_prior = _prior(release, times["prior"])
    n_counted = len(release.looked_at)
    were = "table of several columns was" if n_counted == 1 else "tables of several columns were"
    counted = f"{n_counted} {were} counted, {n_paid} paid for, each with the noise stated"
    measured, named = check_measured(release), verify_analyses(release, unit)
    return [counted, *from_prior, *measured, *_products(release, unit), *named, *_found_values(card)]


def _only_what_was_counted(release: ForestRelease) -> None:
    """Tables are of the kind that the structure counts, and what was not counted follows from the schema."""
    structure, target = release.card.plan["structure"], release.card.parameters.get("target")
    stated = set() if structure == "uniform" else set(stated_tables(release.card))
    unstated = [names for names in release.looked_at if names not in stated]
    if structure in ("uniform", "independent"):
        check(not unstated, f"columns were counted together, which a forest of structure {structure} does not")
    if structure == "target":
        with_all = {target, *(release.card.parameters.get("stars") or ())}
        is_with_target = all(len(names) == 2 and with_all.intersection(names) for names in unstated)
        check(is_with_target, "columns were counted together without the target, and the structure is target")
    check_dependence(release)
    if structure == "uniform":
        counted = [event for event in release.card.events if isinstance(event, DiscreteLaplaceCounts)]
        classes = [event for event in counted if event.stage == "classes"]
        deviations = [math.sqrt(2) * event.sensitivity / float(event.epsilon) for event in classes]
        check_uniform(release, {str(target): deviation for deviation in deviations})


def stated_tables(card: Card) -> list[tuple[str, ...]]:
    """The tables of the call's workload, each as the columns of it that were not known, in the order of the schema."""
    described = card.parameters.get("workload") or []
    is_list = isinstance(described, list) and all(_is_names(names) for names in described)
    check(is_list, "the workload of the call is not a list of tables")
    variables = [name for name, place in card.schema.variables.items() if place is None]
    check({name for names in described for name in names} <= {*variables}, "the workload names what is no column")
    modelled = card.schema.modelled
    asked = {name for names in described for name in names}
    several = {name for name in asked if tree_lattice(Schema({name: modelled[name]})).axes[0].n_possible > 1}
    found = [tuple(name for name in variables if name in names and name in several) for names in described]
    return [names for names in found if names]


def _is_names(names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)


def _products(release: ForestRelease, unit: Unit) -> list[str]:
    """Sums are of pairs that no table holds, with as much noise as their vector needs for what it was charged."""
    products = release.products
    if products is None:
        return []
    check(bool(products.pairs), "a tilt was fitted, and no sums of products were released")
    charged = [part for event in release.card.events for part in getattr(event, "parts", ())]
    vectors = [part for part in charged if isinstance(part, GaussianVector)]
    vectors = [part for part in vectors if part.stage == "products"]
    is_paid = len(vectors) == 1
    check(is_paid, "sums of products were released, and no charge pays for them")
    counted = set(release.counted_pairs)
    check(not counted.intersection(products.pairs), "products were summed of a pair whose table was counted")
    others = set(products.tilt.pairs).difference(products.pairs)
    check(others <= counted, "the tilt has factors of a pair that was neither counted nor summed")
    check(products.n_sums <= LARGEST_VECTOR, "more sums of products were released than a vector can have")
    needed = vector_variance(vectors[0].mean_squared, products.sensitivity_squared(unit))
    check(products.variance >= needed, "the sums of products have less noise than what was charged for them needs")
    is_rounded = products.variance - needed < VARIANCE_STEP
    check(is_rounded, "the sums of products have more noise than what was charged for them needs")
    n_sums, n_pairs = products.n_sums, len(products.pairs)
    return [f"{n_sums} sums of products of {n_pairs} pairs were released as one vector, with the noise it was paid for"]


def _prior(release: ForestRelease, n_paid: int) -> list[str]:
    """Tables of a prior are there where the call gave one; what was not counted was decided by choices paid for."""
    described = release.card.parameters.get("prior")
    is_told = isinstance(described, dict) and described.get("kind") in ("table", "release")
    check(described is None or is_told, "what the card says of the prior is not what a fit writes")
    check(is_told or not (release.from_prior or n_paid), "tables come from a prior, and the call gave none")
    chosen = set(release.from_prior).difference(release.looked_at)
    check(len(chosen) <= n_paid, "more tables come from the prior than choices were paid for")
    check(all(len(names) == 2 for names in chosen), "a table that is not of a pair comes from the prior alone")
    if described is None:
        return []
    n_chosen = f"{len(chosen)} {'pair' if len(chosen) == 1 else 'pairs'}"
    return [f"{n_chosen} that no table counts came from the prior, and {n_paid} private choices of them were paid for"]


def _part(part: Part, plan: Any) -> None:
    if isinstance(part, GaussianTables) and part.stage is not None:
        near(math.sqrt(part.variance), plan[f"{part.stage} noise"], f"the noise of {part.stage}", slack=_ROUNDED)
    if isinstance(part, TreeShapes) and part.stage is not None:
        near(float(1 / part.rate), plan[_SCALES[part.stage]], "the noise of decisions", slack=_ROUNDED)
    if isinstance(part, WeightedTables) and part.stage is not None:
        moved = Unit.parse(plan["unit"]).factor * UNITS**2
        noise_std = math.sqrt(vector_variance(part.mean_squared, moved)) / UNITS
        near(noise_std, plan[f"{part.stage} noise"], f"the noise of {part.stage}", slack=_ROUNDED)
    if isinstance(part, Selections):
        _choices(part.epsilon, part.stage, plan)
    if isinstance(part, GaussianVector) and part.stage is not None:
        mean_squared = float(part.mean_squared)
        stated = plan.get(f"{part.stage} mean squared")
        near(mean_squared, stated, "the squared mean of the sums", slack=_VECTOR_ROUNDED * mean_squared)


def _choices(epsilon: Fraction, stage: str | None, plan: Any) -> None:
    """The epsilon of one choice is that of the plan, where the plan says it: files from before do not."""
    stated = _CHOICES.get(stage or "", "epsilon of a choice")
    if stated in plan:
        near(float(epsilon), plan[stated], f"the {stated}", slack=_CHOICE_ROUNDED)


def _once(card: Card) -> None:
    """The classes of a target are counted once, where there is a target; the bounds of a column once."""
    counted = [event for event in card.events if isinstance(event, DiscreteLaplaceCounts)]
    classes = [event for event in counted if event.stage == "classes"]
    if classes:
        check(isinstance(card.parameters.get("target"), str), "classes were counted, and the call names no target")
        check(len(classes) == 1 and classes[0].times == 1, "the classes of the target were counted more than once")
    found = Counter(event.column for event in counted if event.stage == "bounds")
    check(all(times == 1 for times in found.values()), "the bounds of a column were paid for more than once")


def _found_values(card: Card) -> list[str]:
    """Lists that were found privately: of categories with a value for all others, once each, for the share stated."""
    found = [event for event in card.events if isinstance(event, PartitionSelection)]
    if not found:
        return []
    for event in found:
        column = card.schema.get(event.column or "")
        is_open = isinstance(column, Category) and column.other is not None
        check(event.stage == "values" and is_open, "values were found of what is no category with an `other`")
    check(len({event.column for event in found}) == len(found), "the values of a column were found more than once")
    if {"epsilon", "values_share"} <= card.parameters.keys():
        stated = parse_epsilon(card.parameters["epsilon"]) * parse_share(
            card.parameters["values_share"], "values_share"
        )
        same(sum((event.epsilon for event in found), Fraction(0)), stated, "the epsilon that values were found with")
    columns = "1 column" if len(found) == 1 else f"{len(found)} columns"
    return [f"the values of {columns} were found privately, once each, for the share of the call"]


def _all_paid_for(release: ForestRelease, times: Counter[str | None]) -> None:
    """Every stage of the plan, every column and place, every tree and every choice has a charge."""
    card = release.card
    for entry in card.plan:
        stage = _stage_of(entry)
        check(stage is None or times[stage] > 0, f"no charge pays for {stage}, which the plan has")
    stated = stated_tables(card)
    check(times["workload"] == len(stated), "the tables of the workload were not paid for, each once")
    is_counted = all(names in release.looked_at for names in stated if len(names) > 1)
    check(is_counted, "a table of the workload was not counted")
    for stage in ("analyses", "products", "utility"):
        n_vectors = int(f"{stage} mean squared" in card.plan)
        check(times[stage] == n_vectors, f"the vector of {stage} that the plan has was not paid for, or more than once")
    modelled = card.schema.modelled
    alone = [name for name, place in card.schema.variables.items() if place is None]
    axes = [tree_lattice(Schema({name: modelled[name]})).axes[0] for name in alone]
    places = [place.axis for place in release.places.values() if not place.axis.is_known]
    n_tables = sum(axis.n_possible > 1 for axis in axes) + n_group_tables(card.schema)
    check(times["one-way"] + times["classes"] >= n_tables, "fewer columns were paid for than were counted")
    trees = [axis for axis in axes if needs_tree(axis)]
    check(times["trees"] >= len(trees), "fewer trees were paid for than columns have one")
    is_paid = min(times["regions"], times["places"]) >= len(places)
    check(is_paid, "fewer places were paid for than were counted")
    depths = {
        "trees": max((axis.value_bits for axis in trees), default=0),
        "regions": max((place.max_levels for place in places), default=0),
    }
    paid = [level for event in card.events for level in _levels(event)]
    is_deep = all(level >= depths.get(stage or "trees", 0) for stage, level in paid)
    check(is_deep, "fewer levels of the trees were paid for than their columns have")
    # Releases from before there were rulers have no spikes.
    has_spikes = "spikes noise" in card.plan
    is_paid = not has_spikes or times["spikes"] >= len(trees)
    check(is_paid, "fewer tables of spikes were paid for than columns have a tree")
    # A rule joins its columns without a choice, those of derivations aside.
    n_ruled = sum(len(rule.columns) - 1 for rule in card.schema.rules if not isinstance(rule, Derivation))
    is_chosen = times["selection"] + n_ruled >= times["cliques"]
    check(is_chosen, "fewer choices were paid for than tables were chosen")


def _stage_of(entry: str) -> str | None:
    """The stage whose noise an entry of a plan states; None where it states none."""
    by_entry = {name: stage for stage, name in (*_SCALES.items(), *_CHOICES.items())} | {
        "epsilon of a choice": "selection"
    }
    known = [stage for stage in STAGES if entry in (f"{stage} noise", f"{stage} mean squared")]
    return known[0] if known else by_entry.get(entry)


def _levels(event: Event) -> list[tuple[str | None, int]]:
    """The levels of trees that a charge paid for, with their stages."""
    if isinstance(event, ComposedRelease):
        return [(part.stage, part.levels) for part in event.parts if isinstance(part, TreeShapes)]
    return [(event.stage, event.levels)] if isinstance(event, SplitDecisions) else []


def _tables(event: DiscreteLaplaceCounts, card: Card, unit: Unit) -> int:
    """How many tables a pure charge paid for: of a stage of the plan, of the target's classes or of bounds."""
    stage, times = event.stage, event.times or 0
    if stage is None:
        return 0
    same(event.sensitivity, times * unit.factor, f"the sensitivity of {times} tables of {stage}")
    if stage in _STAGES:
        deviation = math.sqrt(2) * event.sensitivity / float(event.epsilon)
        near(deviation, card.plan[f"{stage} noise"], f"the noise of {stage}", slack=_ROUNDED)
    elif stage == "rows":  # which all kinds of releases have: `release.verification`
        return 0
    elif stage == "classes":
        check(event.column in (None, card.parameters.get("target")), "classes were counted of another than the target")
    else:
        bounds_of_a_column(event, card)
    return times


def _trees(event: SplitDecisions, card: Card, unit: Unit) -> int:
    """The trees of a pure forest share one charge, those of its places another, which says how many they are."""
    n_trees = event.times or 0
    check(event.stage in _SCALES, "the decisions of a forest are not said to be those of its column trees")
    check(1 <= n_trees <= len(card.schema), f"{n_trees} trees were paid for, of {len(card.schema)} columns")
    check(event.decay in (None, decay_for(event.rate)), "the decay of the decisions is not the one for their rate")
    near(float(1 / event.rate), card.plan[_SCALES[str(event.stage)]], "the noise of decisions", slack=_ROUNDED)
    each = event.epsilon / n_trees
    is_true = is_within(event.rate, decay_for(event.rate), event.levels, unit, each)
    check(event.rule == "privtree" and is_true, f"the decisions of {event.note!r} cost more than stated for them")
    return n_trees
