"""What a file holds of columns, places and their dependence beyond what was counted: it has to follow from the schema.

A forest that says that nothing was measured costs nothing, so nothing of the table may be in it. Leaves are those that
the schema gives, with weights in proportion to their cells, and the model is the one that even columns give. The same
holds for dependence: columns share a table of the model where they were counted together or a rule joins them, and
what a rule alone joins is independent but for the states that cannot meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.even_leaves import even_leaves, leaf_places, null_levels
from spinney.forest.release.place_model import PlaceModel
from spinney.forest.release.rules import Zeros, possible_states
from spinney.graph.estimate import Measurement, estimate
from spinney.graph.junction import JunctionTree
from spinney.release.contradictions import check
from spinney.schema.column_axis import ColumnAxis, column_axes
from spinney.schema.parting import Parting, partings
from spinney.schema.rules import clauses_of
from spinney.schema.table import Schema

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease

# The steps of a fit, which is repeated here, and by how much its shares may come out otherwise on another machine.
_STEPS, _CAUTION = 100, 1.0
_SHARES_SLACK = 1e-4
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
    parted = partings(clauses_of(schema.rules, schema), schema, axes)
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
    parted = partings(clauses_of(schema.rules, schema), schema, column_axes(schema))
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
    return bool(is_whole) and _is_share(place.weights, place.sizes(), total)


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
