"""Frames out: positions along the axes become typed columns in the kind of table that came in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Column
from spinney.errors import ParameterError
from spinney.extras import load_optional
from spinney.release.parts import Part
from spinney.schema.table import Schema
from spinney.shown import brief

Columns = Mapping[str, Column]

FRAME_KINDS = ("pandas", "polars", "pyarrow", "numpy")


def check_frame_kind(kind: str) -> str:
    """The kind of frame, or an error that lists them."""
    if not isinstance(kind, str) or kind not in FRAME_KINDS:
        given = brief(kind) if isinstance(kind, str) else f"<a {type(kind).__name__}>"  # a table would show its rows
        raise ParameterError(f"frame={given} is not one of {', '.join(map(repr, FRAME_KINDS))}")
    return kind


def to_frame(
    positions: NDArray[np.float64],
    schema: Schema,
    kind: str,
    *,
    drawn: Columns | None = None,
    part: Part | None = None,
    given: Mapping[str, pa.Array] | None = None,
) -> Any:
    """Rows given by positions as a table of the given kind; NaN is null.

    Columns with `multiple_of` move to the nearest multiple. Identifiers are numbered, whatever their positions. Columns
    that rules compute are computed of the others.

    Args:
        positions: of all columns, or of those that are modelled (n_axes, n_rows).
        schema: the columns of the table.
        kind: one of `FRAME_KINDS`.
        drawn: the columns that positions count from, by name, where these are not the schema's own.
        part: which rows of a larger sample these are, where they are not all.
        given: the values of some columns, by name, in place of what is drawn.
    """
    columns = schema.as_drawn if drawn is None else drawn
    if kind == "numpy" and not schema.derivations and not given and (part is None or not schema.identifiers):
        return _to_array(positions, columns)
    library = None
    if kind not in ("pyarrow", "numpy"):
        library = load_optional(kind, f"frame={kind!r}", otherwise="ask for frame='pyarrow'")
    table = pa.table({**_arrays(positions, schema, columns, part), **(given or {})})
    if kind == "numpy":
        return _computed_array(table, schema)
    if library is None:
        return table
    if kind == "polars":
        return library.from_arrow(table)
    # By the schema, not by the rows drawn: a nullable column has the same dtype in every sample.
    nullable = {pa.int64(): library.Int64Dtype(), pa.bool_(): library.BooleanDtype()}
    return library.DataFrame(
        {
            name: table[name].to_pandas(types_mapper=nullable.get if column.nullable else None, date_as_object=False)
            for name, column in schema.items()
        }
    )


def _arrays(positions: NDArray[np.float64], schema: Schema, columns: Columns, part: Part | None) -> dict[str, pa.Array]:
    """The values of all columns, those that are computed after those that they follow from."""
    rules = {rule.column: rule for rule in schema.derivations}
    is_whole = len(positions) == len(schema)
    given = list(schema) if is_whole else list(schema.modelled)
    first, n_rows = (0, positions.shape[1]) if part is None else (part.first, part.n_rows)
    drawn = {
        name: columns[name].part_to_arrow(positions[place], first=first, n_rows=n_rows)
        for place, name in enumerate(given)
        if name not in rules or rules[name].modelled is not None
    }
    arrays = {name: array for name, array in drawn.items() if name not in rules}
    for name, rule in rules.items():
        arrays[name] = rule.compute(arrays, schema, drawn.get(name))
    return {name: arrays[name] for name in schema}


def _computed_array(table: pa.Table, schema: Schema) -> NDArray[np.float64]:
    """A table with computed columns as floats (n_rows, n_columns), NaN for null."""
    for column in schema.values():
        _check_array(column)
    floats = [table[name].cast(pa.float64()).to_numpy() for name in schema]
    return np.stack([np.asarray(column, dtype=np.float64) for column in floats], axis=1)


def positions_of(values: NDArray[np.float64], schema: Schema) -> NDArray[np.float64]:
    """Positions of rows given by numbers (n_columns, n_rows): reals as they are, whole numbers above the low bound.

    Categories are given by their place in the list. What lies outside the bounds is moved to the nearer one.
    """
    numbers = np.asarray(values, dtype=np.float64)
    return np.stack([column.to_positions(numbers[index]) for index, column in enumerate(schema.values())])


def _to_array(positions: NDArray[np.float64], columns: Columns) -> NDArray[np.float64]:
    """All columns as floats (n_rows, n_axes), which is what a numeric array held on the way in."""
    array = positions
    for index, column in enumerate(columns.values()):
        _check_array(column)
        array[index] = column.to_floats(array[index])
    return array.T


def _check_array(column: Column) -> None:
    if not column.fits_array:
        raise ParameterError(f"frame='numpy' cannot hold a column of type {column.type_name}; ask for 'pyarrow'")
