"""A field as arrays and plain data, for files, and back.

Potentials are one line: tables of own columns, of pairs and of links, each ascending and each in the shape that its
clique has outside. Masks are one line of booleans. What is read may be forged, so everything is checked: lengths
before anything is made of them, and numbers for being finite and of a size that a fit gives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.graph.field import Field, Mask
from spinney.graph.field_layout import FieldClique, FieldLayout

__all__ = ["field_from_arrays", "field_to_arrays"]

_MOST_COLUMNS = 10_000
_MOST_TABLES = 100_000
_LARGEST_SIZE = 1 << 20
_MOST_CELLS = 1 << 27
# No fit comes near: potentials differ by tens.
_LARGEST_POTENTIAL = 1e6


def field_to_arrays(field: Field) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays by name, one line each, and a description for JSON."""
    described = {
        "sizes": list(field.sizes),
        "evidence_sizes": list(field.evidence_sizes),
        "role": field.role,
        "pairs": [list(pair) for pair in field.pairs],
        "links": [list(link) for link in field.links],
        "masks": [[int(evidence), int(own)] for evidence, own, _ in field.masks],
    }
    arrays = {
        "potentials": np.concatenate([table.ravel() for table in field.tables().values()]),
        "possible": np.concatenate([np.empty(0, dtype=np.bool_), *(mask.ravel() for _, _, mask in field.masks)]),
    }
    return arrays, described


def field_from_arrays(arrays: Mapping[str, NDArray[Any]], described: Any) -> Field:
    """The field that was written; ValueError or KeyError where it is none."""
    if not isinstance(described, Mapping):
        raise ValueError("a field that is not described by entries")
    sizes, evidence_sizes = (_sizes(described[name], name) for name in ("sizes", "evidence_sizes"))
    role = described["role"]
    if not sizes or (role is not None and not _is_index(role, len(sizes))):
        raise ValueError("a field without own columns, or with a role that is none of them")
    pairs = _indices(described["pairs"], len(sizes), len(sizes), "pairs")
    links, masked = (_indices(described[name], len(evidence_sizes), len(sizes), name) for name in ("links", "masks"))
    layout = FieldLayout(sizes, evidence_sizes, role, pairs, links)  # refuses circles and what is there twice
    if list(pairs) != sorted(pairs) or list(links) != sorted(links):
        raise ValueError("pairs or links of a field that are not ascending")
    potentials = _line(arrays["potentials"], np.float64, layout.n_cells, "potentials")
    if not (np.abs(potentials) <= _LARGEST_POTENTIAL).all():
        raise ValueError("potentials of a field that are out of range")
    n_flags = sum(evidence_sizes[evidence] * sizes[own] for evidence, own in masked)
    possible = _line(arrays["possible"], np.bool_, n_flags, "masks")
    masks: list[Mask] = []
    at = 0
    for evidence, own in masked:
        shape = (evidence_sizes[evidence], sizes[own])
        masks.append((evidence, own, possible[at : at + math.prod(shape)].reshape(shape)))
        at += math.prod(shape)
    tables = _tables(layout, potentials)
    return Field.of(sizes, evidence_sizes, tables, role=role, masks=masks)


def _tables(layout: FieldLayout, potentials: NDArray[np.float64]) -> dict[FieldClique, NDArray[np.float64]]:
    """The line of potentials cut into tables."""
    tables, at = {}, 0
    for clique in layout.cliques():
        shape = layout.shape(clique)
        tables[clique] = potentials[at : at + math.prod(shape)].reshape(shape)
        at += math.prod(shape)
    return tables


def _sizes(value: Any, name: str) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > _MOST_COLUMNS:
        raise ValueError(f"{name} of a field is not a list of sizes")
    if not all(_is_index(size, _LARGEST_SIZE + 1) and size > 0 for size in value):
        raise ValueError(f"{name} of a field are not numbers of states")
    return tuple(value)


def _indices(value: Any, n_first: int, n_second: int, name: str) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list) or len(value) > _MOST_TABLES:
        raise ValueError(f"{name} of a field are not a list")
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise ValueError(f"{name} of a field are not pairs of columns")
    if not all(_is_index(pair[0], n_first) and _is_index(pair[1], n_second) for pair in value):
        raise ValueError(f"{name} of a field are of columns that it has not")
    return tuple((pair[0], pair[1]) for pair in value)


def _is_index(value: Any, n: int) -> bool:
    return type(value) is int and 0 <= value < n


def _line(values: Any, kind: type, length: int, name: str) -> NDArray[Any]:
    line = np.asarray(values)
    if length > _MOST_CELLS or line.dtype != kind or line.shape != (length,):
        raise ValueError(f"{name} of a field are not {length} numbers of their kind")
    return line
