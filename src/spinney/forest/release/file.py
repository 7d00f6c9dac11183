"""A forest in a release file: its columns' leaves, its model, and its measurements, written and read. PUBLIC.

Everything that is read is checked number by number, sizes first: a file from elsewhere may have been made on
purpose.

    measurements        raw counts, boxes and the law of their noise
    places              axes of places, and their regions as nodes of a lattice
    leaves and model    leaves, cliques and potentials, and all members together
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Column, whole_range
from spinney.forest.release.analyses import ReleasedAnalyses, analyses_from_members
from spinney.forest.release.columns import ColumnModel, Floats
from spinney.forest.release.fit import ReleasedProducts, products_from_members
from spinney.forest.release.measured import (
    Counts,
    Kind,
    Measured,
    MeasuredColumn,
    MeasuredGrain,
    MeasuredPiles,
    MeasuredTable,
    NoiseLaw,
    TiltFit,
    WeightsRule,
)
from spinney.forest.release.places import PlaceModel
from spinney.graph.model import GraphModel
from spinney.grid.axes import PlaceAxis, column_axes, place_axis_on
from spinney.grid.codes import Codes, Indices
from spinney.grid.grain import Grain
from spinney.grid.ruler import CodeLevels
from spinney.privacy.budget import LARGEST_EPSILON, parse_fraction
from spinney.privacy.mechanisms import Distribution
from spinney.release.card import MOST_ROWS, Card
from spinney.release.file import FLOAT, WHOLE, are_counts, from_arrow, lists, numbers, to_arrow
from spinney.schema.schema import Schema
from spinney.tree.bins import leaf_cells
from spinney.tree.release.geometry import axes_from_list, axes_to_list, check_nodes

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease


# --------------------------------------------------------------------------------------------------------- measurements
# What a forest measured, in a release file: laws and kinds beside the card, raw counts and boxes in two tables.
#
# Versions of Spinney from before there were these members ignore them, and files from before have none. What is read
# is checked against the columns and the model that the file holds: sizes first, so that no number in a file decides
# how much memory is taken.


MEASURED_MEMBERS = ("counts.arrow", "tables.arrow")

_INT32, _INT64 = (pa.list_(pa.int32()),), (pa.list_(pa.int64()),)
_COUNTS = {
    "noisy": _INT64,
    "leaf": _INT32,
    "impossible": _INT32,
    "noisy_piles": _INT64,
    "pile": _INT32,
    "noisy_groups": _INT64,
    "noisy_grain": _INT64,
}
_NOT_BEFORE_4 = ("noisy_grain",)
_TABLES = {"columns": _INT32, "labels": _INT32, "noisy": _INT64}
# The scales of noise that draws fit into 64 bits with, beside a count: variances and rates.
_SCALES: dict[Distribution, tuple[Fraction, Fraction]] = {
    "discrete gaussian": (Fraction(1, 2**20), Fraction(2**98)),
    "discrete laplace": (Fraction(1, 2**50), LARGEST_EPSILON),
}
_STAGES = ("workload", "pairs", "cliques")
# What a fit may have used; more would be a way to keep a reader busy.
_MOST_STEPS, _MOST_DRAWN, _MOST_CAUTION, _DEEPEST = 1_000, 1_000_000, 1_000.0, 64


def measured_entries(measured: Measured, names: Sequence[str]) -> dict[str, Any]:
    """What stands beside the card."""
    columns = []
    for name, column in zip(names, measured.columns, strict=True):
        if column is None:
            continue
        entry: dict[str, Any] = {"variable": name, "kind": column.kind, "noise": _law_entry(column.noise)}
        if column.piles is not None:
            entry["noise of piles"] = _law_entry(column.piles.noise)
        if column.grain is not None:
            entry["noise of grain"] = _law_entry(column.grain.noise)
        if column.kind == "place":
            entry["given_depth"] = column.given_depth
        columns.append(entry)
    tables = [
        {"stage": table.stage, "noise": _law_entry(table.noise)}
        | ({"doubtful": list(table.doubtful)} if table.doubtful else {})
        for table in measured.tables
    ]
    fit: dict[str, Any] = {"regularization": measured.regularization, "steps": measured.steps}
    if measured.weights_rule != "leaves":
        fit["is_near_counts"] = True
    if measured.weights_rule in ("sentinels", "tails"):
        fit["has_sentinels"] = True
    if measured.weights_rule == "tails":
        fit["has_tails"] = True
    if measured.tilt is not None:
        tilt = measured.tilt
        fit["tilt"] = {"n_drawn": tilt.n_drawn, "steps": tilt.steps, "held_std": tilt.held_std}
    return {"columns": columns, "tables": tables, "total": measured.total, "fit": fit}


def measured_members(measured: Measured) -> dict[str, bytes]:
    """Two tables, with a row for each counted column or place, and for each counted table."""
    columns = [column for column in measured.columns if column is not None]
    nothing = np.zeros(0, dtype=np.int64)
    piles, grains = [column.piles for column in columns], [column.grain for column in columns]
    counts = {
        "noisy": [column.noisy for column in columns],
        "leaf": [column.leaf for column in columns],
        "impossible": [np.flatnonzero(~column.possible) for column in columns],
        "noisy_piles": [nothing if of_column is None else of_column.noisy for of_column in piles],
        "pile": [nothing if of_column is None else of_column.pile for of_column in piles],
        "noisy_groups": [np.concatenate([nothing, *column.groups]) for column in columns],
        "noisy_grain": [nothing if grain is None else grain.noisy for grain in grains],
    }
    tables = {
        "columns": [np.array(table.columns) for table in measured.tables],
        "labels": [nothing if table.labels is None else table.labels for table in measured.tables],
        "noisy": [table.noisy for table in measured.tables],
    }
    found = [
        pa.table({name: pa.array(lines, kinds[name][0]) for name, lines in held.items()})
        for held, kinds in ((counts, _COUNTS), (tables, _TABLES))
    ]
    return {name: to_arrow(table) for name, table in zip(MEASURED_MEMBERS, found, strict=True)}


def measured_from_members(
    card: Card,
    described: Mapping[str, Any],
    members: Mapping[str, bytes],
    models: Mapping[str, ColumnModel | PlaceModel],
    model: GraphModel,
) -> Measured | None:
    """Read what was written of these columns and this model; ValueError where it is not that."""
    if "measured" not in described:
        return None
    entries = described["measured"]
    is_older = described["format_version"] < 4
    kinds = {name: of_column for name, of_column in _COUNTS.items() if not (is_older and name in _NOT_BEFORE_4)}
    counts, tables = (
        from_arrow(members[name], of) for name, of in zip(MEASURED_MEMBERS, (kinds, _TABLES), strict=True)
    )
    names = list(models)
    numbered = [names.index(entry["variable"]) for entry in entries["columns"]]
    if numbered != sorted(set(numbered)):
        raise ValueError("counts of a column twice, or out of order")
    lines = (
        dict(zip(kinds, line, strict=True))
        for line in zip(*(lists(counts, name, np.int64) for name in kinds), strict=True)
    )
    axes = column_axes(card.schema)
    columns: list[MeasuredColumn | None] = [None] * len(names)
    for number, entry, line in zip(numbered, entries["columns"], lines, strict=True):
        name = names[number]
        axis = axes.get(name)
        kind = "place" if isinstance(models[name], PlaceModel) or axis is None else axis.axis.kind
        levels = None if kind == "place" or axis is None else axis.levels
        if entry["kind"] != ("codes" if levels is not None else kind):
            raise ValueError(f"counts of {name!r} are not of the kind that it is")
        column = _column(name, entry, line, len(models[name].states), levels)
        grain = None if axis is None or is_older else _grain(name, entry, line["noisy_grain"], axis.grain)
        columns[number] = replace(column, grain=grain)
    read = zip(entries["tables"], *(lists(tables, name, np.int64) for name in _TABLES), strict=True)
    counted = tuple(_table(entry, *line, model=model) for entry, *line in read)
    fit = entries["fit"]
    steps, caution, total = fit["steps"], fit["regularization"], entries["total"]
    is_fit = type(steps) is int and 0 <= steps <= _MOST_STEPS and _is_number(caution, _MOST_CAUTION)
    if not is_fit or not _is_number(total, float(MOST_ROWS)) or round(total) != described["noisy_total"]:
        raise ValueError("what the model was fitted with is out of range")
    flags: dict[str, WeightsRule] = {"has_tails": "tails", "has_sentinels": "sentinels", "is_near_counts": "ranges"}
    rule: WeightsRule = next((rule for name, rule in flags.items() if fit.get(name) is True), "leaves")
    return Measured(tuple(columns), counted, total, card.row_count, caution, steps, _tilt_fit(fit, described), rule)


def _grain(name: str, entry: Mapping[str, Any], noisy: Counts, grain: Grain | None) -> MeasuredGrain | None:
    """Rows in each class of the steps of a column; ValueError where it has no such classes, or others."""
    if "noise of grain" not in entry:
        if len(noisy):
            raise ValueError(f"steps of {name!r} were counted, and no noise is stated for them")
        return None
    if grain is None or len(noisy) != grain.n_classes or not are_counts(noisy):
        raise ValueError(f"counts of {name!r} are not those of the steps that its values come in")
    return MeasuredGrain(noisy, _law(entry["noise of grain"]))


def _column(
    name: str, entry: Mapping[str, Any], line: Mapping[str, Counts], n_leaves: int, levels: CodeLevels | None
) -> MeasuredColumn:
    """The counts of a column; ValueError where its leaves are not made of what was counted."""
    noisy, leaf, impossible = line["noisy"], line["leaf"], line["impossible"]
    noisy_piles, pile, noisy_groups = line["noisy_piles"], line["pile"], line["noisy_groups"]
    kind: Kind = entry["kind"]
    n_counted = len(noisy)
    steps = np.diff(leaf)
    is_made = len(leaf) == n_leaves and n_counted > 0 and leaf[0] == 0 and leaf[-1] < n_counted and (steps >= 0).all()
    if kind == "codes":
        is_made = is_made and (steps > 0).all()
    elif kind == "place":
        is_made = is_made and n_counted == n_leaves and (steps == 1).all()
    else:
        is_made = is_made and leaf[-1] == n_counted - 1 and (steps <= 1).all()
    depth = entry.get("given_depth", 0)
    if not is_made or type(depth) is not int or not 0 <= depth <= _DEEPEST:
        raise ValueError(f"leaves of {name!r} are not made of those that were counted")
    possible = np.ones(n_leaves, dtype=np.bool_)
    if len(impossible) and not 0 <= impossible.min() <= impossible.max() < n_leaves:
        raise ValueError(f"leaves of {name!r} that rules exclude are not its leaves")
    possible[impossible] = False
    if not (possible.any() and are_counts(noisy) and are_counts(noisy_piles) and are_counts(noisy_groups)):
        raise ValueError(f"counts of {name!r} out of range")
    groups: tuple[Counts, ...] = ()
    if levels is not None:
        ends = np.cumsum([len(starts) for starts in levels.starts])
        n_null = n_counted - levels.n_codes
        if not 0 <= n_null <= 1 or len(noisy_groups) != ends[-1] + n_null:
            raise ValueError(f"counts of {name!r} are not those of its hierarchy")
        groups = tuple(np.split(noisy_groups, ends[:-1] + n_null))
    piles = None
    if "noise of piles" in entry:
        law = _law(entry["noise of piles"])
        piles = MeasuredPiles(noisy_piles, law, _piles(name, pile, leaf, n_counted, len(noisy_piles)))
    elif len(noisy_piles) or len(pile):
        raise ValueError(f"piles of {name!r} were counted, and no noise is stated for them")
    return MeasuredColumn(
        kind, noisy, _law(entry["noise"]), leaf.astype(np.int32), possible, piles, groups, given_depth=depth
    )


def _piles(name: str, pile: Counts, leaf: Counts, n_counted: int, n_piles: int) -> NDArray[np.int32]:
    """Which leaves are piles: the beginning of a counted leaf, by its number, or the end of one."""
    places = np.flatnonzero(pile >= 0)
    chosen = pile[places]
    is_fine = len(pile) == len(leaf) and n_counted <= n_piles <= n_counted + 1 and len(np.unique(chosen)) == len(chosen)
    if is_fine and len(chosen):
        rest = np.where(chosen < n_counted, places + 1, places - 1)
        is_fine = pile.min() >= -1 and pile.max() < n_piles and rest.min() >= 0 and rest.max() < len(leaf)
        is_fine = is_fine and bool((leaf[rest] == leaf[places]).all())
        is_fine = is_fine and bool(((chosen == leaf[places]) | (chosen >= n_counted)).all())
    if not is_fine:
        raise ValueError(f"piles of {name!r} do not lie in its leaves")
    return pile.astype(np.int32)


def _table(
    entry: Mapping[str, Any], columns: Counts, labels: Counts, noisy: Counts, *, model: GraphModel
) -> MeasuredTable:
    """A counted table; ValueError where its boxes are not of its cells, or the model has no such table."""
    tree = model.tree
    numbers = tuple(columns.tolist())
    if list(numbers) != sorted(set(numbers)) or not all(0 <= number < len(tree.sizes) for number in numbers):
        raise ValueError("a table was counted of columns that are not those of the card")
    if not numbers or tree.home(numbers) is None:
        raise ValueError("a table was counted of which the model has none")
    n_cells = math.prod(tree.sizes[number] for number in numbers)
    if not len(noisy) or not are_counts(noisy) or (len(labels) or len(noisy)) != n_cells:
        raise ValueError("a table was counted that is not one of its columns' states")
    if len(labels):
        is_box = labels.min() >= -1 and labels.max() == len(noisy) - 1
        if not is_box or len(np.unique(labels[labels >= 0])) != len(noisy):
            raise ValueError("boxes of a counted table that do not follow each other")
    stage = entry["stage"]
    if stage not in _STAGES:
        raise ValueError("a table was counted in no stage that there is")
    doubtful = entry.get("doubtful", [])
    is_boxes = isinstance(doubtful, list) and all(type(box) is int and 0 <= box < len(noisy) for box in doubtful)
    if not is_boxes or len(set(doubtful)) != len(doubtful):
        raise ValueError("boxes are doubtful that a counted table does not have")
    boxes = labels.astype(np.int32) if len(labels) else None
    return MeasuredTable(numbers, boxes, noisy, _law(entry["noise"]), stage, tuple(doubtful))


def _tilt_fit(fit: Mapping[str, Any], described: Mapping[str, Any]) -> TiltFit | None:
    if "products" not in described:  # of which less may be published than was paid for
        return None
    tilt = fit["tilt"]
    n_drawn, steps, held = tilt["n_drawn"], tilt["steps"], tilt["held_std"]
    is_whole = type(n_drawn) is int and type(steps) is int
    if not is_whole or not (1 <= n_drawn <= _MOST_DRAWN and 1 <= steps <= _MOST_STEPS and _is_number(held, 2.0**61)):
        raise ValueError("what the tilt was fitted with is out of range")
    return TiltFit(n_drawn, steps, held)


def _law_entry(law: NoiseLaw) -> dict[str, str]:
    return {"law": law.law, "scale": str(law.scale)}


def _law(entry: Mapping[str, Any]) -> NoiseLaw:
    scale = parse_fraction(entry["scale"], "scale")
    for law, (least, most) in _SCALES.items():
        if entry["law"] == law and least <= scale <= most:
            return NoiseLaw(law, scale)
    raise ValueError("noise of a law or a scale that no mechanism has")


def _is_number(value: Any, most: float) -> bool:
    return type(value) is float and 0 < value <= most


# --------------------------------------------------------------------------------------------------------------- places
# Places in a release file: their axes beside the card, and a table of regions as nodes of a lattice.
#
# A region is a node, so a file cannot say that one lies elsewhere than a tree could have put it: codes are checked
# against the lattice, the lattice against the columns, and all regions together against what is possible.


_REGIONS = {
    "place": (pa.dictionary(pa.int32(), pa.string()), pa.string()),
    "code": (pa.uint64(),),
    "depth": WHOLE,
    "weights": FLOAT,
    "states": (pa.int32(),),
}


def place_entries(places: Mapping[str, PlaceModel]) -> list[dict[str, Any]]:
    """What stands beside the card: which columns a place has, and how they are cut into cells."""
    return [{"columns": list(place.names), "axes": axes_to_list(place.axis.lattice)} for place in places.values()]


def regions_table(places: Mapping[str, PlaceModel]) -> pa.Table:
    """All regions of all places."""
    return pa.table(
        {
            "place": pa.array(
                [name for name, place in places.items() for _ in place.states], pa.string()
            ).dictionary_encode(),
            "code": pa.array(np.concatenate([place.codes[:, 0] for place in places.values()])),
            "depth": pa.array(np.concatenate([place.depths for place in places.values()]).astype(np.int32)),
            "weights": pa.array(np.concatenate([place.weights for place in places.values()])),
            "states": pa.array(np.concatenate([place.states for place in places.values()])),
        }
    )


def places_from_members(
    schema: Schema, described: Mapping[str, Any], members: Mapping[str, bytes]
) -> dict[str, PlaceModel]:
    """Read what was written of the schema's places; ValueError where it is not that."""
    entries = described.get("places", [])
    listed = [entry.get("columns") if isinstance(entry, dict) else None for entry in entries]
    variables = {name: place for name, place in schema._variables.items() if place is not None}
    if listed != [list(place.columns) for place in variables.values()]:
        raise ValueError("places that are not those of the card")
    if not variables:
        return {}
    table = from_arrow(members["places.arrow"], _REGIONS)
    owner = np.array(table["place"].combine_chunks().cast(pa.string()).to_pylist(), dtype=object)
    code, weights = numbers(table, "code", np.uint64), numbers(table, "weights", np.float64)
    depth, states = numbers(table, "depth", np.int64), numbers(table, "states", np.int32)
    places: dict[str, PlaceModel] = {}
    for (name, place), entry in zip(variables.items(), entries, strict=True):
        lattice = axes_from_list(entry["axes"], Schema({column: schema[column] for column in place.columns}))
        axis = place_axis_on(place, lattice, schema)
        here = np.flatnonzero(owner == name)
        codes = code[here][:, None]
        _check_regions(name, axis, codes, depth[here], weights[here], states[here])
        places[name] = PlaceModel.of_nodes(axis, codes, depth[here], weights[here], states[here])
    if sum(len(place.states) for place in places.values()) != len(owner):
        raise ValueError("regions of places that are not in the schema")
    return places


def _check_regions(
    name: str, axis: PlaceAxis, codes: Codes, depths: Indices, weights: np.ndarray, states: np.ndarray
) -> None:
    """Raise a ValueError unless these are the regions of one tree over the place, in states that follow each other."""
    if not len(codes):
        raise ValueError(f"regions of place {name!r} are missing")
    check_nodes(codes, depths, axis.lattice)
    if not axis.is_possible(codes, depths).all():
        raise ValueError(f"regions of place {name!r} where no row can be")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and np.isfinite(weights.sum())):
        raise ValueError(f"regions of place {name!r} out of range")
    steps = np.diff(states.astype(np.int64))
    if states[0] != 0 or (steps < 0).any() or (steps > 1).any():
        raise ValueError(f"states of place {name!r} out of order")
    if not _is_whole(axis, codes, depths):
        raise ValueError(f"regions of place {name!r} leave out a part of it")


def _is_whole(axis: PlaceAxis, codes: Codes, depths: Indices) -> bool:
    """Whether regions make up all that is possible: no cell is left out, by the number of cells or of raster parts."""
    raster, has_null = axis.raster, axis.has_null(codes)
    if raster is None:
        _, size, _ = leaf_cells(codes, depths, axis.lattice)
        n_cells = sum(math.prod(sizes) for sizes in size.tolist())
        return bool(n_cells == math.prod(one.n_possible for one in axis.lattice.axes))
    begin, length = axis.value_cells(codes[~has_null], depths[~has_null])
    # Regions within one part count as what they are of it; others by the parts inside.
    share = np.minimum(1.0, length / (1 << np.array(raster.shifts))).prod(axis=1)
    held = float((raster.n_held(begin, length) * share).sum())
    return abs(held - raster.n_inside) <= 1e-6 * max(raster.n_inside, 1) + _rim(axis)


def _rim(axis: PlaceAxis) -> float:
    """By how many parts the last ones of an axis, which may be shorter than others, can be miscounted."""
    assert axis.raster is not None
    return float(sum(axis.raster.is_inside.size / n for n in axis.raster.is_inside.shape))


# ----------------------------------------------------------------------------------------------------- leaves and model
# The columns' leaves and the model. Leaves lie where values can, cliques are of columns of the card, and what
# was counted together has a table.


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
    models = {name: columns[name] if place is None else places[name] for name, place in card.schema._variables.items()}
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
    modelled = card.schema._modelled
    wanted = {name: modelled[name] for name, place in card.schema._variables.items() if place is None}
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
