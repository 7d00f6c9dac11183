"""Growing a forest: from tables to measurements, and the model fitted to them. SENSITIVE up to the noise.

All private numbers go through mechanisms that were charged beforehand (`PrepaidMechanisms`); everything else is
a function of what they released.

    measurements    the released numbers as they left the mechanisms, for the file and for refits
    the fit         columns, structure, cliques and the model that they are joined into
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from spinney.counting.counts import CellCounts
from spinney.counting.joint import Clique
from spinney.counting.states import AnyCut, Cut, StateTables
from spinney.forest.cliques import CountedBoxes, Possible, measure, measure_stated, outer
from spinney.forest.columns import (
    NoisyColumn,
    NoisyPlace,
    beyond_gaps,
    column_model,
    part_spikes,
    place_model,
    possible_leaves,
    release_column,
    release_place,
    unmeasured,
    unmeasured_place,
)
from spinney.forest.design import (
    BOX_DEVIATIONS,
    MOST_STATES,
    PAIR_DEVIATIONS,
    AnyAxis,
    Design,
    Pair,
    choose_tree,
    first_tables,
    is_asked_again,
    pairs_of,
)
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.prior import PriorRows, reading_prior, use_prior, with_prior
from spinney.forest.release.columns import ColumnModel, likely_sentinels
from spinney.forest.release.fit import ReleasedProducts, noisy_total, one_way
from spinney.forest.release.measured import Kind, Measured, MeasuredColumn, MeasuredPiles
from spinney.forest.release.places import PlaceModel
from spinney.forest.rounds import measure_rounds
from spinney.forest.sums import release_products, tilt_fit
from spinney.graph.estimate import Measurement, estimate
from spinney.graph.model import GraphModel
from spinney.grid.axes import ColumnAxis, Parting, PlaceAxis
from spinney.grid.ruler import RootedRuler
from spinney.release.card import RowCount
from spinney.tables.source import Source

# --------------------------------------------------------------------------------------------------------- measurements
# The measurements of a fit: the numbers as they left the mechanisms, and what they are numbers of. RELEASED.
#
# Counts are those before small ones were cut, before anything was fitted to a total, and before a prior was
# used.


def kept_columns(
    noisy: Mapping[int, NoisyColumn | NoisyPlace], cuts: Sequence[AnyCut], partings: Mapping[int, Parting]
) -> tuple[MeasuredColumn | None, ...]:
    """For every column the counts that were released of it; None where nothing was counted."""
    return tuple(_kept(noisy.get(index), cut, partings.get(index)) for index, cut in enumerate(cuts))


def _kept(noisy: NoisyColumn | NoisyPlace | None, cut: AnyCut, parting: Parting | None) -> MeasuredColumn | None:
    if noisy is None or noisy.noise is None:
        return None
    if isinstance(noisy, NoisyPlace):
        leaf = np.arange(len(noisy.noisy_counts), dtype=np.int32)
        every = np.ones(len(leaf), dtype=np.bool_)
        return MeasuredColumn("place", noisy.noisy_counts, noisy.noise, leaf, every, given_depth=noisy.given_depth)
    assert isinstance(cut, Cut)
    leaf = (np.searchsorted(noisy.first, cut.first, side="right") - 1).astype(np.int32)
    possible: NDArray[np.bool_] = np.ones(len(leaf), dtype=np.bool_)
    if parting is not None:
        possible = possible_leaves(cut.axis, cut.first, parting)
    assert noisy.axis.kind != "ladder"  # which only bounds are found by
    kind: Kind = "codes" if noisy.levels is not None else noisy.axis.kind
    piles = None
    if noisy.noisy_spikes is not None and noisy.spike_noise is not None:
        parted = part_spikes(noisy)
        pile = np.full(len(leaf), -1, dtype=np.int32)  # of leaves that a prior cut further, none
        if parted.pile is not None and np.array_equal(parted.first, cut.first):
            pile = parted.pile
        piles = MeasuredPiles(noisy.noisy_spikes, noisy.spike_noise, pile)
    return MeasuredColumn(
        kind,
        noisy.noisy_counts,
        noisy.noise,
        leaf,
        possible,
        piles=piles,
        groups=noisy.noisy_groups,
        grain=noisy.grain,
    )


# -------------------------------------------------------------------------------------------------------------- the fit
# A fit in order: columns and places, structure, tables, the model of their states, and the tilt.


Floats = NDArray[np.float64]
Model = ColumnModel | PlaceModel
# For the columns of a forest: tables over a few columns, False where no row can be.
ZeroMaker = Callable[[Sequence[Model]], Sequence[tuple[Clique, NDArray[np.bool_]]]]
# A number that is a target is cut into no more states than this: every other column is counted with all of them.
_MOST_TARGET_STATES = 16
# A place has this many times the states of a column: it is two or three of them.
_PLACE_STATES = 2
# So has a list of categories: those of one state share all that the model says of them, which neighbours may and
# strangers should not. Not where rules join columns, whose tables are sized beforehand.
_CATEGORY_STATES = 2
# The most states that columns and places get, besides those that rules tell apart and null.
MOST_COLUMN_STATES, MOST_PLACE_STATES = _CATEGORY_STATES * MOST_STATES, _PLACE_STATES * MOST_STATES
# No more columns are counted together for their sentinels, and no more cells are in the table of their states.
_MOST_SENTINELS, _MOST_SENTINEL_CELLS = 4, 80_000
# Steps of the estimate.
_STEPS = 100
# How far the model keeps to independent columns where counts are noisy. With the target alone, each column tells of a
# small class by a few counts, and noise in them would be taken for the class.
_CAUTION = {"rounds": 0.5, "tree": 0.5, "target": 2.0, "independent": 1.0, "uniform": 1.0}


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """What was released: columns and places, a model over their states, and what was counted together."""

    columns: tuple[Model, ...]
    model: GraphModel
    cliques: tuple[Clique, ...]
    noisy_total: float
    products: ReleasedProducts | None = None  # of all other pairs
    from_prior: tuple[Clique, ...] = ()  # whose tables a prior gave, counted or not
    measured: Measured | None = None  # all counts as they left the mechanisms
    cuts: tuple[AnyCut, ...] = ()  # how columns and places are cut into states


def grow(
    table: Source,
    axes: Sequence[AnyAxis],
    design: Design,
    prepaid: PrepaidMechanisms,
    *,
    total: int | None,
    partings: Mapping[int, Parting],
    zeros: ZeroMaker,
    rng: np.random.Generator,
    classes: NoisyColumn | None = None,
    row_count: RowCount | None = None,
    prior: Source | None = None,
) -> Forest:
    """The forest of a table. `total` is the number of rows where that is public.

    `partings` say which cells of a column rules tell apart, `zeros` which states cannot meet.
    `rng` draws rows from the model between rounds, which is no noise. `classes` is the target, where it was counted.
    `row_count` is the noisy number of rows, where one was bought. `prior` holds public rows, of the same columns.
    """
    noisy = _release_columns(table, axes, design, prepaid, partings, classes)
    rows_total = float(total) if total is not None else _noisy_total(noisy.values(), row_count)
    prior = prior if design.has_prior else None
    raw, noisy = noisy, _with_prior(noisy, axes, prior, rows_total)
    columns, models, cuts = _column_states(axes, noisy, design, partings, rows_total)
    sizes = tuple(cut.n_states for cut in cuts)
    one_ways = [
        one_way(index, model, column.noise_std, are_codes=isinstance(column, NoisyColumn) and column.levels is not None)
        for index, (model, column) in enumerate(zip(models, columns, strict=True))
    ]
    masks = zeros(models)
    possible = Possible(sizes, masks)

    def fit(measurements: Sequence[Measurement], *, steps: int = _STEPS) -> GraphModel:
        return estimate(
            sizes,
            [*one_ways, *measurements],
            rows_total,
            cliques=design.required,
            zeros=masks,
            steps=steps,
            regularization=_CAUTION[design.structure],
        )

    with ExitStack() as stack:
        measurements: list[Measurement] = []
        if design.stated or design.has_prior or design.structure not in ("independent", "uniform"):
            rows = stack.enter_context(table.state_tables(cuts, is_asked_again=is_asked_again(design)))
            together = _sentinels(axes, models, columns, design, prepaid)
            rows.prepare([*first_tables(design), *([together.clique] if together else [])], keeps=True)
            shares = [column.state_weights() / max(float(column.weights.sum()), 1e-300) for column in models]
            measurements = measure_stated(rows, design.stated, shares, prepaid, possible, total=rows_total)
        if design.structure not in ("independent", "uniform"):
            measurements += _measure_cliques(rows, shares, design, prepaid, rows_total, possible, together)
            if design.structure == "rounds":
                least = BOX_DEVIATIONS * design.plan.noise_std("cliques")
                measurements = measure_rounds(
                    rows,
                    measurements,
                    design,
                    prepaid,
                    fit,
                    possible,
                    total=rows_total,
                    least=least,
                    shares=shares,
                    is_ordered=[isinstance(column, NoisyPlace) or column.is_ordered for column in columns],
                    rng=rng,
                )
        cliques = tuple(m.columns for m in measurements if len(m.columns) > 1)
        from_prior = (
            []
            if prior is None
            else use_prior(
                rows,
                PriorRows(_prior_tables(prior, cuts, design, cliques, stack), shares, possible, rows_total),
                design.measured,
                measurements,
                design.required,
                fit,
                prepaid,
                most_cells=design.stated_cells + design.effort.most_cells,
            )
        )
        model = fit([*measurements, *from_prior])
        products = None
        if "products" in design.plan.vectors:
            products = release_products(
                rows,
                models,
                [isinstance(column, NoisyColumn) and column.is_ordered for column in columns],
                model,
                cliques,
                prepaid,
                total=rows_total,
                effort=design.effort,
                rng=rng,
            )
    measured = Measured(
        kept_columns(raw, cuts, partings),
        tuple(m.counted for m in measurements if isinstance(m, CountedBoxes) and m.counted is not None),
        rows_total,
        row_count,
        _CAUTION[design.structure],
        _STEPS,
        None if products is None else tilt_fit(design.effort, len(products.tilt.pairs), design.plan),
        weights_rule="tails",
    )
    told = tuple(m.columns for m in from_prior)
    return Forest(tuple(models), model, cliques, rows_total, products, told, measured, tuple(cuts))


def _column_states(
    axes: Sequence[AnyAxis],
    noisy: Mapping[int, NoisyColumn | NoisyPlace],
    design: Design,
    partings: Mapping[int, Parting],
    rows_total: float,
) -> tuple[list[NoisyColumn | NoisyPlace], list[Model], list[AnyCut]]:
    """All columns and places, the models of them, and how they are cut into states."""
    most_states = design.states_of_columns(len(axes))
    joined = {column for clique in design.required for column in clique}
    columns: list[NoisyColumn | NoisyPlace] = []
    models: list[Model] = []
    cuts: list[AnyCut] = []
    for index, axis in enumerate(axes):
        if isinstance(axis, PlaceAxis):
            place = noisy.get(index) or unmeasured_place(axis)
            assert isinstance(place, NoisyPlace)
            regions, region_cut = place_model(place, total=rows_total, most_states=_PLACE_STATES * design.most_states)
            columns.append(place)
            models.append(regions)
            cuts.append(region_cut)
            continue
        column = noisy.get(index) or unmeasured(axis.axis, partings.get(index))
        assert isinstance(column, NoisyColumn)
        columns.append(column)
        is_stated = index in design.in_stated
        is_target = index == design.target and not is_stated and (column.is_ordered or column.levels is not None)
        if not column.is_ordered and index not in joined and not is_stated:
            most_states[index] *= _CATEGORY_STATES
        column_states, cut = column_model(
            column,
            total=rows_total,
            most_states=min(most_states[index], _MOST_TARGET_STATES) if is_target else most_states[index],
            is_stated=is_stated,
            parting=partings.get(index),
            cells=axis,
        )
        models.append(column_states)
        cuts.append(cut)
    return columns, models, cuts


def _release_columns(
    table: Source,
    axes: Sequence[AnyAxis],
    design: Design,
    prepaid: PrepaidMechanisms,
    partings: Mapping[int, Parting],
    classes: NoisyColumn | None,
) -> dict[int, NoisyColumn | NoisyPlace]:
    """All measured columns and places; the target as it was counted before, if it was."""
    noisy: dict[int, NoisyColumn | NoisyPlace] = {index: classes for index in design.looked_at if classes is not None}
    others = [index for index in design.measured if index not in noisy]
    lattices = [axes[index].lattice for index in others]
    rulers = [_rooted(axes[index], partings.get(index)) for index in others]
    for index, counts in zip(others, table.count_ruled(lattices, rulers), strict=True):
        axis = axes[index]
        if isinstance(axis, PlaceAxis):
            assert isinstance(counts, CellCounts)
            cutoff = design.plan.noise_std("places")
            noisy[index] = release_place(counts, axis, prepaid, cutoff=cutoff, n_fixed=design.n_fixed)
            continue
        cutoff = design.plan.noise_std("one-way")
        noisy[index] = release_column(
            counts,
            prepaid,
            ruler=axis.ruler,
            cutoff=cutoff,
            levels=axis.levels,
            parting=partings.get(index),
            grain=axis.grain if "grain" in design.plan.tables else None,
        )
    return dict(sorted(noisy.items()))


def _rooted(axis: AnyAxis, parting: Parting | None) -> RootedRuler | None:
    """The hierarchy that a column's tree is cut along, if it has one."""
    if isinstance(axis, PlaceAxis) or axis.ruler is None or axis.levels is not None:
        return None
    return RootedRuler(axis.ruler, np.zeros(1, dtype=np.int64) if parting is None else parting.first, axis.grain)


def _with_prior(
    noisy: dict[int, NoisyColumn | NoisyPlace], axes: Sequence[AnyAxis], prior: Source | None, total: float
) -> dict[int, NoisyColumn | NoisyPlace]:
    """The columns with what public rows tell of them; places as they are."""
    if prior is None:
        return noisy
    told, n_prior = dict(noisy), prior.n_rows
    alone = {index: axis for index in noisy if isinstance(axis := axes[index], ColumnAxis)}
    with reading_prior():
        counts = list(prior.count_columns([axis.lattice for axis in alone.values()]))
    for (index, axis), prior_counts in zip(alone.items(), counts, strict=True):
        column = noisy[index]
        assert isinstance(column, NoisyColumn)
        told[index] = with_prior(column, prior_counts, n_prior, total, axis.ruler)
    return told


def _prior_tables(
    prior: Source, cuts: Sequence[AnyCut], design: Design, cliques: Sequence[Clique], stack: ExitStack
) -> StateTables:
    """Tables of public rows, of all pairs and of what was counted together, for as long as the stack lasts."""
    with reading_prior():
        rows = stack.enter_context(prior.state_tables(cuts, is_asked_again=True))
        rows.prepare([*combinations(sorted(design.measured), 2), *cliques], keeps=True)
        return rows


def _noisy_total(columns: Iterable[NoisyColumn | NoisyPlace], row_count: RowCount | None) -> float:
    """The number of rows by the columns' sums and a bought count; places may leave rows out."""
    every = list(columns)
    counted = [column for column in every if isinstance(column, NoisyColumn)] or every
    return noisy_total([column.noisy_sum for column in counted], row_count)


def _measure_cliques(
    rows: StateTables,
    shares: list[Floats],
    design: Design,
    prepaid: PrepaidMechanisms,
    total: float,
    possible: Possible,
    together: Sentinels | None,
) -> list[Measurement]:
    """Noisy tables of the columns that are counted together."""
    target = design.target

    def counted(clique: Clique, expected: Floats, stage: str, by: int | None = None) -> Measurement:
        least = {"pairs": PAIR_DEVIATIONS, "cliques": BOX_DEVIATIONS}[stage] * design.plan.noise_std(stage)
        mask = possible.table(clique)
        return measure(rows, clique, expected, prepaid, stage=stage, least=least, by=by, possible=mask)

    def independent(pair: Clique) -> Floats:
        return possible.shared_out(pair, total * outer([shares[place] for place in pair]))

    alone = [*(share[None, :] for share in shares), np.array([total])]

    def with_sentinels(expected: Floats) -> Measurement:
        assert together is not None
        least, clique = BOX_DEVIATIONS * design.plan.noise_std("cliques"), together.clique
        by = target if target in clique else None
        mask, flags = possible.table(clique), together.flags
        wanted = possible.shared_out(clique, expected)
        return measure(
            rows, clique, wanted, prepaid, stage="cliques", least=least, by=by, possible=mask, sentinels=flags
        )

    def tree(columns: Sequence[int], predicted: Sequence[Floats], by: int | None) -> list[Pair]:
        """Pairs that join the columns; one fewer than are paid for where there is a table of sentinels."""
        required, joined = pairs_of(design.required, target), pairs_of(design.stated, target)
        inside: list[Pair] = []
        if together is not None:  # which joins its columns: of the pairs among them all but one are left to choose
            inside = choose_tree(rows, together.columns, predicted, prepaid, by=by, most=len(together.columns) - 2)
            joined = [*joined, *pairs_of([together.columns])]
        return [*inside, *choose_tree(rows, columns, predicted, prepaid, required=required, joined=joined, by=by)]

    if target is None:
        first = [] if together is None else [with_sentinels(total * outer([shares[c] for c in together.clique]))]
        if design.structure == "rounds":
            return first
        return [*first, *(counted(pair, independent(pair), "cliques") for pair in tree(design.measured, alone, None))]
    measured: list[Measurement] = []
    given: list[Floats] = [np.ones((1, 1))] * len(shares)
    for star, column in star_pairs((target, *design.stars), design.free):
        pair = (min(star, column), max(star, column))
        # A small class may lie where the others do not, in the tails: half of it is expected there.
        even = {column: (shares[column] + 1 / len(shares[column])) / 2, star: shares[star]}
        measured.append(counted(pair, total * outer([even[place] for place in pair]), "pairs", star))
        if star == target:
            joint = _spread(measured[-1], independent(pair))
            given[column] = _rows_of_one(joint if target < column else joint.T, shares[column])
    classes = total * shares[target]
    if together is not None:
        expected = classes
        for column in together.columns:
            expected = expected[..., None] * given[column].reshape(len(classes), *[1] * (expected.ndim - 1), -1)
        measured.append(with_sentinels(expected.transpose(np.argsort([target, *together.columns]))))
    if design.structure == "tree":
        by = None if design.has_plain_pairs else target
        predicted = alone if by is None else [*given, classes]
        for i, j in tree(design.free, predicted, by):
            expected = np.einsum("t,ti,tj->tij", classes, given[i], given[j])
            clique = tuple(sorted((i, j) if by is None else (i, j, target)))
            if by is None:
                turned = expected.sum(axis=0).transpose(np.argsort([i, j]))
            else:
                turned = expected.transpose(np.argsort([target, i, j]))
            measured.append(counted(clique, possible.shared_out(clique, turned), "cliques", by))
    return measured


@dataclass(frozen=True, slots=True, eq=False)
class Sentinels:
    """Columns of which some states are sentinels, that are counted together: with the target, where there is one."""

    columns: Clique  # those that have sentinels
    clique: Clique  # and the target
    flags: tuple[NDArray[np.bool_], ...]  # for every column of the clique, which states are sentinels


def _sentinels(
    axes: Sequence[AnyAxis],
    models: Sequence[Model],
    noisy: Sequence[NoisyColumn | NoisyPlace],
    design: Design,
    prepaid: PrepaidMechanisms,
) -> Sentinels | None:
    """Up to four columns whose sentinels are about equally many; None where there are no two, or no table for them."""
    if design.structure not in ("tree", "rounds") or prepaid.n_left("cliques") < 2:
        return None
    target = () if design.target is None else (design.target,)
    flags: dict[int, NDArray[np.bool_]] = {}
    n_rows: dict[int, float] = {}
    for index in set(design.free).difference(design.in_stated):  # stated tables join their columns already
        axis, model, column = axes[index], models[index], noisy[index]
        if isinstance(axis, PlaceAxis) or isinstance(column, NoisyPlace) or not isinstance(model, ColumnModel):
            continue
        weights, likely = np.where(model.is_null, 0.0, model.weights), likely_sentinels(axis, model.low, model.length)
        is_beyond = beyond_gaps(model.low, model.length, weights, column.noise_std, likely) > 0
        if column.is_ordered and column.noise_std > 0 and is_beyond.any():
            flags[index] = model.per_state(is_beyond.astype(np.float64)) > 0
            n_rows[index] = float(weights[is_beyond].sum())
    by_size = sorted(flags, key=lambda index: (n_rows[index], index))
    for n_columns in range(min(len(by_size), _MOST_SENTINELS), 1, -1):
        starts = range(len(by_size) - n_columns + 1)
        start = min(starts, key=lambda first: n_rows[by_size[first + n_columns - 1]] / n_rows[by_size[first]])
        chosen = tuple(sorted(by_size[start : start + n_columns]))
        clique = tuple(sorted((*chosen, *target)))
        if math.prod(models[column].n_states for column in clique) <= _MOST_SENTINEL_CELLS:
            nothing = [np.zeros(models[column].n_states, dtype=np.bool_) for column in clique]
            which = [flags.get(column, other) for column, other in zip(clique, nothing, strict=True)]
            return Sentinels(chosen, clique, tuple(which))
    return None


def star_pairs(stars: Sequence[int], columns: Sequence[int]) -> list[tuple[int, int]]:
    """Each star with every other column, and with those stars that come after it."""
    return [
        (star, column)
        for place, star in enumerate(stars)
        for column in columns
        if column != star and column not in stars[:place]
    ]


def _spread(measurement: Measurement, expected: Floats) -> Floats:
    """A noisy table cell by cell: what a box holds, never less than nothing, goes to its cells as expected."""
    noisy = np.maximum(measurement.noisy, 0.0)
    if measurement.labels is None:
        return noisy.reshape(expected.shape)
    labels = measurement.labels.ravel()
    boxes = np.bincount(labels, weights=expected.ravel(), minlength=len(noisy))
    scale = np.divide(noisy, boxes, out=np.zeros_like(noisy), where=boxes > 0)
    return (expected.ravel() * scale[labels]).reshape(expected.shape)


def _rows_of_one(table: Floats, fallback: Floats) -> Floats:
    """Every row divided by its sum; the fallback in place of rows of nothing."""
    sums = table.sum(axis=1, keepdims=True)
    return np.where(sums > 0, table / np.where(sums > 0, sums, 1), fallback[None, :])
