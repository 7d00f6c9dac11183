"""Places in a release file: their axes beside the card, and a table of regions as nodes of a lattice.

A region is a node, so a file cannot say that one lies elsewhere than a tree could have put it: codes are checked
against the lattice, the lattice against the columns, and all regions together against what is possible.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from spinney.forest.release.place_model import PlaceModel
from spinney.release.arrow import FLOAT, WHOLE, from_arrow, numbers
from spinney.schema.place_axis import PlaceAxis, place_axis_on
from spinney.schema.table import Schema
from spinney.schema.zorder import Codes, Indices
from spinney.tree.bins import leaf_cells
from spinney.tree.release.axes import axes_from_list, axes_to_list, check_nodes

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
    variables = {name: place for name, place in schema.variables.items() if place is not None}
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
