"""A forest in a release file: its columns' leaves, its model, and what else it holds, written and read.

What is read is checked number by number: leaves lie where values can, cliques are of columns of the card, and what was
counted together has a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Column, whole_range
from spinney.forest.release.analyses import ReleasedAnalyses, analyses_from_members
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.measured_file import measured_entries, measured_from_members, measured_members
from spinney.forest.release.place_file import place_entries, places_from_members, regions_table
from spinney.forest.release.place_model import PlaceModel
from spinney.forest.release.products import ReleasedProducts, products_from_members
from spinney.graph.model import GraphModel
from spinney.release.arrow import FLOAT, from_arrow, lists, numbers, to_arrow
from spinney.release.card import Card
from spinney.release.entries import MOST_ROWS

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease

# The columns of the two tables in a file.
_LEAVES = {
    "column": (pa.dictionary(pa.int32(), pa.string()), pa.string()),
    **dict.fromkeys(("low", "length", "weights"), FLOAT),
    "is_null": (pa.bool_(),),
    "states": (pa.int32(),),
}
_CLIQUES = {"clique": (pa.list_(pa.int32()),), "potentials": (pa.list_(pa.float64()),)}
_FIELDS = ("low", "length", "is_null", "weights", "states")
_WIDEST = 32
# How rows lie in a leaf: evenly, which is all that older files know, or graded by size where it is long.
_WITHIN_LEAVES = ("even", "graded")


def forest_members(release: ForestRelease) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a file holds of a forest besides the card."""
    leaves = pa.table(
        {
            "column": pa.array(
                [name for name, column in release.columns.items() for _ in column.states], pa.string()
            ).dictionary_encode(),
            **{field: _joined(list(release.columns.values()), field) for field in _FIELDS},
        }
    )
    potentials = pa.table(
        {
            "clique": pa.array([list(clique) for clique in release.model.tree.cliques], pa.list_(pa.int32())),
            "potentials": pa.array([table.ravel() for table in release.model.potentials], pa.list_(pa.float64())),
        }
    )
    entries: dict[str, Any] = {
        "looked_at": [list(names) for names in release.looked_at],
        "noisy_total": release.noisy_total,
        "within_leaves": _WITHIN_LEAVES[release.is_graded],
    }
    members = {"leaves.arrow": to_arrow(leaves), "model.arrow": to_arrow(potentials)}
    if release.from_prior:
        entries["from_prior"] = [list(names) for names in release.from_prior]
    if release.measured is not None:
        entries["measured"] = measured_entries(release.measured, release.variables)
        members |= measured_members(release.measured)
    if release.products is not None:
        entries["products"] = release.products.entries()
        members |= release.products.members()
    if release.analyses is not None:
        entries["analyses"] = release.analyses.entries()
        members |= release.analyses.members()
    if not release.places:
        return entries, members
    entries["places"] = place_entries(release.places)
    return entries, members | {"places.arrow": to_arrow(regions_table(release.places))}


def forest_from_members(card: Card, described: Mapping[str, Any], members: Mapping[str, bytes]) -> dict[str, Any]:
    """Read what was written, as `ForestRelease` takes it; ValueError where it is not a forest."""
    columns = _columns(from_arrow(members["leaves.arrow"], _LEAVES), card)
    places = places_from_members(card.schema, described, members)
    models = {name: columns[name] if place is None else places[name] for name, place in card.schema.variables.items()}
    sizes = tuple(model.n_states for model in models.values())
    table = from_arrow(members["model.arrow"], _CLIQUES)
    cliques = [tuple(clique.tolist()) for clique in lists(table, "clique", np.int64)]
    if any(not 0 <= column < len(sizes) for clique in cliques for column in clique):
        raise ValueError("a clique of columns that are not those of the card")
    if any(len(clique) > _WIDEST for clique in cliques):
        raise ValueError("a clique of more columns than a table can have")
    potentials = [
        values.reshape([sizes[column] for column in clique])
        for clique, values in zip(cliques, lists(table, "potentials", np.float64), strict=True)
    ]
    model = GraphModel.from_parts(sizes, cliques, potentials)
    if not (np.isfinite(model.log_partition) and np.isfinite(model.calibrated.beliefs).all()):
        raise ValueError("a model that leaves nothing possible")
    looked_at, noisy_total = _looked_at(described["looked_at"], models), described["noisy_total"]
    if type(noisy_total) is not int or not 0 <= noisy_total <= MOST_ROWS:
        raise ValueError("a total that is not a number of rows")
    names = list(models)
    if any(model.tree.home([names.index(name) for name in group]) is None for group in looked_at):
        raise ValueError("columns were counted together of which the model has no table")
    if "products" in described and described["format_version"] < 3:
        raise ValueError("products in a file of a version that had none")
    products = products_from_members(described, members, sizes)
    analyses = analyses_from_members(card, described, members)
    if card.released != released(columns, model, places, products, analyses):
        raise ValueError("the card describes another forest")
    # Files of the first version say nothing of it.
    within = described["within_leaves"] if described["format_version"] > 1 else _WITHIN_LEAVES[False]
    if within not in _WITHIN_LEAVES:
        raise ValueError(f"within_leaves is none of {', '.join(_WITHIN_LEAVES)}")
    is_graded = _WITHIN_LEAVES.index(within) == 1
    return {
        "columns": columns,
        "model": model,
        "looked_at": looked_at,
        "noisy_total": noisy_total,
        "is_graded": is_graded,
        "places": places,
        "products": products,
        "from_prior": _looked_at(described.get("from_prior", []), models),
        "analyses": analyses,
        "measured": measured_from_members(card, described, members, models, model),
    }


def released(
    columns: Mapping[str, ColumnModel],
    model: GraphModel,
    places: Mapping[str, PlaceModel] | None = None,
    products: ReleasedProducts | None = None,
    analyses: ReleasedAnalyses | None = None,
) -> dict[str, int]:
    """How much was released, as a card says it."""
    n_leaves = sum(len(column.states) for column in columns.values())
    regions = {"regions": sum(len(place.states) for place in places.values())} if places else {}
    sums = {} if products is None else {"sums": products.n_sums}
    named = {} if analyses is None else {"sums of analyses": analyses.n_sums}
    return {"leaves": n_leaves, **regions, "cliques": len(model.tree.cliques), **sums, **named}


def leaf_fields() -> tuple[str, ...]:
    """What a file holds of every leaf."""
    return _FIELDS


def _joined(columns: Sequence[ColumnModel], field: str) -> pa.Array:
    """One field of all leaves, of columns that may be none."""
    kinds: dict[str, Any] = {"is_null": np.bool_, "states": np.int32}
    nothing: NDArray[Any] = np.empty(0, dtype=kinds.get(field, np.float64))
    return pa.array(np.concatenate([nothing, *(getattr(column, field) for column in columns)]))


def _looked_at(described: Any, columns: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Which columns were counted together; ValueError where they are not columns of the forest."""
    if not isinstance(described, list) or not all(isinstance(names, list) for names in described):
        raise ValueError("looked_at is not a list of lists")
    for names in described:
        if not all(isinstance(name, str) and name in columns for name in names) or not 2 <= len(set(names)) == len(
            names
        ):
            raise ValueError("columns were counted together that are not those of the card")
    return tuple(tuple(names) for names in described)


def _columns(leaves: pa.Table, card: Card) -> dict[str, ColumnModel]:
    """Read the columns' leaves; ValueError where they are not what a forest has."""
    encoded = leaves["column"].combine_chunks()
    encoded = encoded if pa.types.is_dictionary(encoded.type) else encoded.dictionary_encode()
    places, known = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
    if len(set(known)) != len(known):
        raise ValueError("a column by two names")
    modelled = card.schema.modelled
    wanted = {name: modelled[name] for name, place in card.schema.variables.items() if place is None}
    numbered = {known.index(name): number for number, name in enumerate(wanted) if name in known}
    found = columns_from_leaves(leaves, np.array([numbered.get(place, -1) for place in places.tolist()]), wanted)
    if sum(len(column.states) for column in found.values()) != len(places):
        raise ValueError("leaves of columns that are not in the schema")
    return found


def columns_from_leaves(
    leaves: pa.Table, places: NDArray[np.int64], wanted: Mapping[str, Column]
) -> dict[str, ColumnModel]:
    """Columns whose leaves stand in a table, each leaf with the number of its column among those that are wanted."""
    fields = [numbers(leaves, field, np.float64) for field in ("low", "length", "weights")]
    flags, groups = numbers(leaves, "is_null", np.bool_), numbers(leaves, "states", np.int32)
    columns: dict[str, ColumnModel] = {}
    for number, (name, column) in enumerate(wanted.items()):
        here = np.flatnonzero(places == number)
        low, length, weights = (field[here] for field in fields)
        is_null, states = flags[here], groups[here]
        is_fine = np.isfinite(low + length + weights) & (length >= 0) & (weights >= 0) & (states >= 0)
        is_fine &= is_null | _is_inside(low, length, column)
        if not len(here) or not is_fine.all() or len(np.unique(states)) != states.max() + 1:
            raise ValueError(f"leaves of column {name!r} out of range")
        if (is_null.any() and not column.nullable) or not np.isfinite(weights.sum()):
            raise ValueError(f"leaves of column {name!r} out of range")
        columns[name] = ColumnModel(low, length, is_null, weights, states, int(states.max()) + 1)
    return columns


def _is_inside(low: Floats, length: Floats, column: Column) -> NDArray[np.bool_]:
    """Whether leaves lie where values of a column can: reals are cut to their bounds later, all else is counted."""
    if not column.is_whole:
        return np.ones(len(low), dtype=np.bool_)
    first, last = whole_range(column)
    return np.asarray((low >= 0) & (low + length <= (last - first + 1) * (1 + 1e-9)))
