"""What a forest file says of its measurements, tables and trees, compared with the charges on its card. PUBLIC.

Three questions: are raw counts of the laws that were paid for, does the model follow from them, and does
everything that was not measured follow from the schema. A ContradictionError names the first thing that does
not.

    measurements          laws, weights of leaves and the model, fitted again from raw counts
    unmeasured            columns, places and dependence beyond what was counted
    stages and charges    stages, tables, trees and choices against the charges
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Category
from spinney.forest.release.analyses import verify_analyses
from spinney.forest.release.columns import ColumnModel, Floats, even_leaves, leaf_places, null_levels
from spinney.forest.release.conditions import Zeros, possible_states
from spinney.forest.release.fit import refitter
from spinney.forest.release.measured import (
    MeasuredColumn,
    NoiseLaw,
    check_structure,
    check_sums,
    check_totals,
)
from spinney.forest.release.places import PlaceModel
from spinney.graph.estimate import Measurement, estimate
from spinney.graph.junction import JunctionTree
from spinney.grid.axes import ColumnAxis, Parting, column_axes, n_group_tables, partings_of
from spinney.grid.lattice import halving_axis, needs_tree
from spinney.privacy.budget import Unit, parse_epsilon, parse_share
from spinney.privacy.mechanisms import (
    LARGEST_VECTOR,
    DiscreteLaplaceCounts,
    GaussianVector,
    PartitionSelection,
    SplitDecisions,
    Tables,
    Trees,
    mechanisms_of,
)
from spinney.release.card import Card, ContradictionError, bounds_of_a_column, check, check_variance, same, spent_whole
from spinney.release.verify import CHANCE, TableSum, check_spread, farthest, laplace_log_moment
from spinney.schema.rules import Derivation
from spinney.schema.schema import Schema
from spinney.tree.bins import decay_for, is_within

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


# --------------------------------------------------------------------------------------------------------- measurements
# What a forest says that it measured, compared with its charges, its leaves and its model.
#
# Laws of noise are those that were paid for. Weights of leaves follow from raw counts, and the model from
# weights and tables, by what a fit does (`Refitter`): a file whose model is another one was changed after it
# was made. The tilt by sums of products was fitted by drawn rows, so it is not made again.


# By how much weights, as parts of the total, and shares of cells may come out otherwise on another machine: a fit stops
# on its way, and where it stops hangs on the last digits of sums.
_WEIGHTS_SLACK = 1e-6
_SHARES_SLACK = 1e-4
_STD_SLACK = 1e-9


def check_measured(release: ForestRelease) -> list[str]:
    """Raw counts have the noise that was paid for, and leaves weigh what raw counts say."""
    measured = release.measured
    if measured is None:
        return []
    _check_noise(release)
    names, total = release.variables, measured.total
    several = [tuple(names[number] for number in t.columns) for t in measured.tables if len(t.columns) > 1]
    check(several == list(release.looked_at), "the tables in the file are not those that were counted together")
    check(release.card.n_rows is None or total == release.card.n_rows, "the total is not the number of rows")
    _check_rows(release)
    if not _has_prior(release):
        refit = refitter(release)
        numbers = refit.observed()
        is_total = abs(refit.total(numbers) - total) <= _WEIGHTS_SLACK * total
        check(is_total, "the total is not the one that the counts give")
        for name, model, wanted in zip(names, refit.models, refit.columns(numbers), strict=True):
            is_same = bool(np.abs(model.weights - wanted.weights).max() <= _WEIGHTS_SLACK * total)
            check(is_same, f"the leaves of {name!r} do not weigh what their counts give")
    n_counts = sum(len(column.noisy) for column in measured.columns if column is not None)
    n_boxes = sum(len(table.noisy) for table in measured.tables)
    n_steps = sum(len(c.grain.noisy) for c in measured.columns if c is not None and c.grain is not None)
    steps = f", {n_steps} of steps" if n_steps else ""
    return [f"{n_counts} raw counts of leaves{steps} and {n_boxes} of boxes have the noise that was paid for"]


def check_model(release: ForestRelease) -> list[str]:
    """The model is the one that a fit to the counts in the file gives."""
    if release.measured is None or _has_prior(release):
        return []
    refit = refitter(release)
    _, wanted = refit.fit(refit.observed())
    is_same = wanted.tree.cliques == release.model.tree.cliques
    is_same = is_same and all(
        bool(np.abs(found - law).max() <= _SHARES_SLACK)
        for found, law in zip(release.model.beliefs, wanted.beliefs, strict=True)
    )
    check(is_same, "the model is not the one that the counts in the file give")
    return ["the model was fitted again to the counts in the file, and is the same"]


def check_spread_of_tables(release: ForestRelease) -> list[str]:
    """Columns and tables all count the same rows, and differ by their noise."""
    if release.measured is None:
        return []
    sums = [_sum(column.noisy, column.noise) for column in release.measured.columns if _is_of_all(column)]
    grains = [column.grain for column in release.measured.columns if column is not None]
    sums += [_sum(grain.noisy, grain.noise) for grain in grains if grain is not None]
    sums += [_sum(table.noisy, table.noise) for table in release.measured.tables]
    return check_spread(sums, release.card.n_rows, "columns and tables")


def unverified_of_forest(release: ForestRelease) -> list[tuple[str, str]]:
    """What of a forest nothing else in its file bears out."""
    found = []
    if release.measured is None:
        found.append(
            ("the noise of counts, and that the model follows from them", "files of that version hold no counts")
        )
    elif _has_prior(release):
        found.append(("that weights and model follow from the counts", "the rows of the prior are not in the file"))
    if release.products is not None:
        found.append(("the factors of pairs that no table holds", "they were fitted by drawn rows"))
    if release.measured is not None and any(
        one is not None and one.grain is not None for one in release.measured.columns
    ):
        found.append(("in which steps the values of columns come", "nothing else in the file was counted by steps"))
    if release.card.schema is not release.card.schema._without_found():
        found.append(("the relations that were found", "the sums by which they were chosen are not in the file"))
    told = "laws of noise are stated by the file itself; totals tell much less noise than stated, and no more"
    return [*found, ("noise that is smaller than stated by little", told)]


def _is_of_all(column: MeasuredColumn | None) -> TypeGuard[MeasuredColumn]:
    """Whether every row is in one of the counted leaves; of places, those outside a shape are not."""
    return column is not None and column.kind != "place"


def _sum(noisy: NDArray[np.int64], law: NoiseLaw) -> TableSum:
    return TableSum(float(noisy.sum(dtype=np.float64)), len(noisy) * law.std**2, law.law == "discrete gaussian")


def _check_rows(release: ForestRelease) -> None:
    """Every row is in one leaf of each column, so raw counts add up to a public number of rows, but for noise.

    Of n discrete Gaussian draws of variance parameter v, ln M(s) is at most n v s^2 / 2 (Canonne and others 2020), so
    that the least bound over s is sqrt(2 n v ln(2 / chance)).
    """
    n_rows = release.card.n_rows
    if n_rows is None or release.measured is None:
        return
    for name, column in zip(release.variables, release.measured.columns, strict=True):
        if not _is_of_all(column):
            continue
        tables = [(column.noisy, column.noise, "counts")]
        if column.grain is not None:
            tables.append((column.grain.noisy, column.grain.noise, "steps"))
        for noisy, noise, what in tables:
            slack = _slack_of_sum(len(noisy), noise)
            is_likely = abs(float(noisy.sum(dtype=np.float64)) - n_rows) <= slack
            about = f"do not add up to about n_rows={n_rows}: noise explains {slack:,.0f}"
            check(is_likely, f"the {what} of {name!r} {about}")


def _slack_of_sum(n: int, noise: NoiseLaw) -> float:
    """By how much a sum of n counts is off at most."""
    scale = float(noise.scale)
    if noise.law == "discrete gaussian":
        return math.sqrt(2 * n * scale * math.log(2 / CHANCE))
    return farthest(lambda s: n * laplace_log_moment(scale, s), scale)


def _check_noise(release: ForestRelease) -> None:
    """Every count has noise of a law that its stage was charged for, and no more tables are there than were paid."""
    assert release.measured is not None
    paid = _paid(release)
    used: Counter[tuple[str, NoiseLaw]] = Counter((table.stage, table.noise) for table in release.measured.tables)
    for column in release.measured.columns:
        if column is None:
            continue
        stage = "places" if column.kind == "place" else "one-way"
        is_class = (stage, column.noise) not in paid and column.kind != "place"
        used["classes" if is_class else stage, column.noise] += 1 + len(column.groups)
        if column.piles is not None:
            used["spikes", column.piles.noise] += 1
        if column.grain is not None:
            used["grain", column.grain.noise] += 1
    for (stage, law), times in used.items():
        check((stage, law) in paid, f"counts of {stage} have other noise than was paid for")
        check(times <= paid[stage, law], f"more counts of {stage} are in the file than were paid for")
    for stage, what in (("spikes", "piles"), ("grain", "steps of columns")):
        n_used, n_paid = (sum(counts[key] for key in counts if key[0] == stage) for counts in (used, paid))
        check(n_used == n_paid, f"{what} were paid for whose counts are not in the file")
    tilt = release.measured.tilt
    if tilt is not None:
        held = [law.std for stage, law in paid if stage == "cliques"]
        is_held = any(abs(tilt.held_std - std) <= _STD_SLACK * std for std in held)
        check(is_held, "the tilt was fitted with other noise of tables than was paid for")


def _paid(release: ForestRelease) -> Counter[tuple[str, NoiseLaw]]:
    """How many tables of each stage and law the charges paid for."""
    paid: Counter[tuple[str, NoiseLaw]] = Counter()
    unit = Unit.parse(release.card.unit)
    for mechanism in mechanisms_of(release.card.events):
        if isinstance(mechanism, Tables) and mechanism.stage is not None:
            paid[mechanism.stage, NoiseLaw.of(mechanism, unit)] += mechanism.times or 0
    return paid


def _has_prior(release: ForestRelease) -> bool:
    """Whether public rows had their say in weights and model, which the file does not hold."""
    return release.card.parameters.get("prior") is not None


# ----------------------------------------------------------------------------------------------------------- unmeasured
# What a file holds of columns, places and their dependence beyond what was counted: it has to follow from the schema.
#
# A forest that says that nothing was measured costs nothing, so nothing of the table may be in it. Leaves are those
# that the schema gives, with weights in proportion to their cells, and the model is the one that even columns give.
# The same holds for dependence: columns share a table of the model where they were counted together or a rule joins
# them, and what a rule alone joins is independent but for the states that cannot meet.


# The steps of a fit, which is repeated here, and by how much its shares may come out otherwise on another machine.
_STEPS, _CAUTION = 100, 1.0
_SLACK = 1e-6
# As many cells as the tables of rules have at most, with room for columns of their own.
_MOST_CELLS = 4_000_000
# States of the columns that a rule joins, together; a fit makes a few for each, and one for each part that rules name.
_MOST_STATES = 2_000


def check_dependence(release: ForestRelease) -> None:
    """Every table of the model was counted, came from a prior, or is one that a rule asks for.

    In the last case it says which states can meet, and nothing else.
    """
    names, tree = release.variables, release.model.tree
    told = [*release.looked_at, *release.from_prior]
    counted = [tuple(sorted(names.index(name) for name in group)) for group in told]
    masks = _masks(release)
    explained = JunctionTree.covering(tree.sizes, [*counted, *(columns for columns, _ in masks)])
    for clique, potentials in zip(tree.cliques, release.model.potentials, strict=True):
        is_explained = any(set(clique) <= set(other) for other in explained.cliques)
        listed = ", ".join(repr(names[column]) for column in clique)
        check(is_explained, f"the model joins {listed}, which no rule joins and which were not counted together")
        if len(clique) > 1 and not any(set(group) <= set(clique) for group in counted):
            impossible = _impossible(clique, potentials.shape, masks)
            is_even = _is_independent(potentials, impossible)
            check(is_even, f"the model says how {listed} depend on each other, and they were not counted together")


def check_uniform(release: ForestRelease, counted: Mapping[str, float]) -> None:
    """Columns, places and model are those of the schema alone, but for columns counted with noise of this deviation."""
    schema = release.schema
    axes = column_axes(schema)
    parted = partings_of(schema, axes)
    for name, column in release.columns.items():
        is_even = name in counted or _is_even(column, axes[name], parted.get(name), release.noisy_total)
        check(is_even, f"nothing was measured, and the leaves of {name!r} are not those that the schema gives")
    for name, place in release.places.items():
        is_even = _is_even_place(place, release.noisy_total)
        check(is_even, f"nothing was measured, and the regions of {name!r} are not those that the schema gives")
    _check_model(release, counted)


def _masks(release: ForestRelease) -> Zeros:
    """The states that rules allow to meet, with columns numbered among all variables."""
    schema: Schema = release.schema
    parted = partings_of(schema)
    numbers = [release.variables.index(name) for name in release.columns]
    found = possible_states(schema.rules, schema, release.columns, parted)
    return [(tuple(numbers[column] for column in clique), possible) for clique, possible in found]


def _impossible(clique: tuple[int, ...], shape: tuple[int, ...], masks: Zeros) -> NDArray[np.bool_]:
    """The cells of a table where some rule lets no row be."""
    found = np.zeros(shape, dtype=np.bool_)
    for columns, possible in masks:
        if set(columns) <= set(clique):
            sizes = [size if column in columns else 1 for column, size in zip(clique, shape, strict=True)]
            found |= ~possible.reshape(sizes)
    return found


def _is_independent(potentials: Floats, impossible: NDArray[np.bool_]) -> bool:
    """Whether potentials are sums of one number for each state, and infinite at most where no row can be."""
    is_finite = np.isfinite(potentials)
    if sum(potentials.shape) > _MOST_STATES or (~is_finite & ~impossible).any():
        return False
    values = np.where(is_finite, potentials, 0.0)
    left = values - _nearest_sum(values, is_finite)
    return bool(np.abs(left[is_finite]).max(initial=0.0) <= _SLACK * (1 + np.abs(values).max()))


def _nearest_sum(values: Floats, is_finite: NDArray[np.bool_]) -> Floats:
    """The sum of one number for each state that is nearest to a table where that is finite, by least squares."""
    n_axes, ends = values.ndim, np.cumsum([0, *values.shape])
    others = [tuple(axis for axis in range(n_axes) if axis != kept) for kept in range(n_axes)]
    weights = is_finite.astype(np.float64)
    system = np.zeros((ends[-1], ends[-1]))
    for one in range(n_axes):
        system[ends[one] : ends[one + 1], ends[one] : ends[one + 1]] = np.diag(weights.sum(axis=others[one]))
        for two in range(one + 1, n_axes):
            together = weights.sum(axis=tuple(axis for axis in range(n_axes) if axis not in (one, two)))
            system[ends[one] : ends[one + 1], ends[two] : ends[two + 1]] = together
            system[ends[two] : ends[two + 1], ends[one] : ends[one + 1]] = together.T
    sums = np.concatenate([values.sum(axis=rest) for rest in others])
    found = np.linalg.lstsq(system, sums, rcond=1e-12)[0]
    total = np.zeros(values.shape)
    for axis in range(n_axes):
        total += found[ends[axis] : ends[axis + 1]].reshape([-1 if axis == one else 1 for one in range(n_axes)])
    return total


def _is_even(column: ColumnModel, cells: ColumnAxis, parting: Parting | None, total: int) -> bool:
    """Whether leaves lie as the schema has them, each with the weight of its cells or, where rules part it, none."""
    axis = cells.axis
    first, stop = even_leaves(axis, parting)
    is_null = np.equal(first, axis.null_cell)
    if len(first) != len(column.low) or (is_null != column.is_null).any():
        return False
    places = leaf_places(axis, first, stop, parting=parting, cells=cells)
    if not all(
        np.allclose(found, wanted, rtol=1e-9) for found, wanted in zip((column.low, column.length), places, strict=True)
    ):
        return False
    reach = (stop - first).astype(np.float64)
    if parting is not None:
        reach = np.where(column.weights > 0, reach, 0.0)
    return _is_share(column.weights, reach, total)


def _is_even_place(place: PlaceModel, total: int) -> bool:
    is_whole = (place.depths == null_levels(place.axis)).all()
    return bool(is_whole) and _is_share(place.weights, place.reach(), total)


def _is_share(weights: Floats, reach: Floats, total: int) -> bool:
    """Whether weights are in proportion to what leaves reach over."""
    wanted = weights.sum() * reach / max(float(reach.sum()), 1e-300)
    return bool(np.abs(weights - wanted).max() <= _SLACK * max(total, 1))


def _check_model(release: ForestRelease, counted: Mapping[str, float]) -> None:
    """The shares of states are those that a fit to even columns has."""
    tree, masks = release.model.tree, _masks(release)
    check(tree.n_cells <= _MOST_CELLS, "the model has more cells than a forest of which nothing was measured")
    models: dict[str, ColumnModel | PlaceModel] = {**release.columns, **release.places}
    one_ways = []
    for index, name in enumerate(release.variables):
        model = models[name]
        n_held = np.bincount(model.states, weights=model.weights > 0, minlength=model.n_states)
        deviation = max(counted.get(name, 0.0), 1.0) * np.sqrt(np.maximum(n_held, 1.0))
        one_ways.append(Measurement((index,), model.state_weights(), deviation))
    total = float(max(release.noisy_total, 1))
    wanted = estimate(tree.sizes, one_ways, total, zeros=masks, steps=_STEPS, regularization=_CAUTION)
    for index, name in enumerate(release.variables):
        gap = np.abs(release.model.marginal((index,)) - wanted.marginal((index,))).max()
        check(bool(gap <= _SHARES_SLACK), f"nothing was measured, and the states of {name!r} have shares of their own")


# --------------------------------------------------------------------------------------------------- stages and charges
# What a forest says of its stages, tables and trees, compared with the charges on its card.


# Beyond the classes of a target, if they were counted.
_COUNTED = ("one-way", "spikes", "grain", "places", "workload", "pairs", "cliques")


def verify_forest(release: ForestRelease) -> list[str]:
    """Charges are true in themselves, and no more tables were counted than were paid for."""
    card, unit = release.card, Unit.parse(release.card.unit)
    same(card.design["rule"], "forest", "the rule")
    _once(card)
    paid = mechanisms_of(card.events)
    again = Counter(mechanism.stage for mechanism in paid if mechanism.stage not in (None, "bounds", "values"))
    check(max(again.values(), default=0) <= 1, "a stage was paid for more than once")
    times: Counter[str | None] = Counter()  # None: what claims no stage, and pays for none
    for mechanism in paid:
        if isinstance(mechanism, DiscreteLaplaceCounts):
            _check_counts(mechanism, card, unit)
        elif isinstance(mechanism, SplitDecisions):
            _check_trees(mechanism, card, unit)
        times[mechanism.stage] += mechanism.times or 0
    structure = card.design["structure"]
    if structure != "uniform":
        _all_paid_for(release, times)
    if any(isinstance(mechanism, Tables) and mechanism.stage in _COUNTED for mechanism in paid):
        spent_whole(card)
    n_paid = times["workload"] + times["pairs"] + times["cliques"]
    check(len(release.looked_at) <= n_paid, "more tables were counted than were paid for")
    found = [rule for rule in card.schema._related.values() if rule.found]
    is_paid = bool(times["relations"] and times["ratios"]) or not found
    check(is_paid, "relations between columns were found, and no charge pays for that")
    check(bool(paid) or structure in ("uniform", "independent"), "no charge pays for what was released")
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
    structure, target = release.card.structure, release.card.parameters.get("target")
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
        deviation = release.card.noise_std("classes")
        check_uniform(release, {str(target): deviation} if deviation else {})


def stated_tables(card: Card) -> list[tuple[str, ...]]:
    """The tables of the call's workload, each as the columns of it that were not known, in the order of the schema."""
    described = card.parameters.get("workload") or []
    is_list = isinstance(described, list) and all(_is_names(names) for names in described)
    check(is_list, "the workload of the call is not a list of tables")
    variables = [name for name, place in card.schema._variables.items() if place is None]
    check({name for names in described for name in names} <= {*variables}, "the workload names what is no column")
    modelled = card.schema._modelled
    asked = {name for names in described for name in names}
    several = {name for name in asked if halving_axis(name, modelled[name]).n_possible > 1}
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
    vector = release.card.stages.get("products")
    if not isinstance(vector, GaussianVector):
        raise ContradictionError("sums of products were released, and no charge pays for them")
    counted = set(release.counted_pairs)
    check(not counted.intersection(products.pairs), "products were summed of a pair whose table was counted")
    others = set(products.tilt.pairs).difference(products.pairs)
    check(others <= counted, "the tilt has factors of a pair that was neither counted nor summed")
    check(products.n_sums <= LARGEST_VECTOR, "more sums of products were released than a vector can have")
    check_variance(products.variance, vector, products.sensitivity_squared(unit), "sums of products")
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
    stated = stated_tables(card)
    check(times["workload"] == len(stated), "the tables of the workload were not paid for, each once")
    is_counted = all(names in release.looked_at for names in stated if len(names) > 1)
    check(is_counted, "a table of the workload was not counted")
    modelled = card.schema._modelled
    alone = [name for name, place in card.schema._variables.items() if place is None]
    axes = [halving_axis(name, modelled[name]) for name in alone]
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
    paid = [mechanism for mechanism in mechanisms_of(card.events) if isinstance(mechanism, Trees)]
    is_deep = all(tree.levels >= depths.get(tree.stage or "trees", 0) for tree in paid)
    check(is_deep, "fewer levels of the trees were paid for than their columns have")
    # Releases from before there were rulers have no spikes.
    is_paid = "spikes" not in card.stages or times["spikes"] >= len(trees)
    check(is_paid, "fewer tables of spikes were paid for than columns have a tree")
    # Releases from before version 4 have no grain, and one with a grain has that of every column.
    with_grain = [name for name, axis in column_axes(card.schema).items() if name in alone and axis.grain is not None]
    is_paid = "grain" not in card.stages or times["grain"] == len(with_grain)
    check(is_paid, "other numbers of tables of steps were paid for than columns have steps")
    # A rule joins its columns without a choice, those of derivations aside.
    n_ruled = sum(len(rule.columns) - 1 for rule in card.schema.rules if not isinstance(rule, Derivation))
    is_chosen = times["selection"] + n_ruled >= times["cliques"]
    check(is_chosen, "fewer choices were paid for than tables were chosen")


def _check_counts(event: DiscreteLaplaceCounts, card: Card, unit: Unit) -> None:
    """A pure charge pays for tables of a stage, for the target's classes or for bounds."""
    stage, times = event.stage, event.times or 0
    if stage is None:
        return
    same(event.sensitivity, times * unit.factor, f"the sensitivity of {times} tables of {stage}")
    if stage == "classes":
        check(event.column in (None, card.parameters.get("target")), "classes were counted of another than the target")
    elif stage not in (*_COUNTED, "rows"):  # which all kinds of releases have: `release.verify`
        bounds_of_a_column(event, card)


def _check_trees(event: SplitDecisions, card: Card, unit: Unit) -> None:
    """The trees of a pure forest share one charge, those of its places another, which says how many they are."""
    n_trees = event.times or 0
    check(event.stage in ("trees", "regions"), "the decisions of a forest are not said to be those of its column trees")
    check(1 <= n_trees <= len(card.schema), f"{n_trees} trees were paid for, of {len(card.schema)} columns")
    check(event.decay in (None, decay_for(event.rate)), "the decay of the decisions is not the one for their rate")
    each = event.epsilon / n_trees
    is_true = is_within(event.rate, decay_for(event.rate), event.levels, unit, each)
    check(event.rule == "privtree" and is_true, f"the decisions of {event.note!r} cost more than stated for them")
