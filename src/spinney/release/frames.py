"""Frames out: positions along the axes become typed columns in the kind of table that came in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.extras import load_optional
from spinney.schema.table import Schema
from spinney.shown import brief

FRAME_KINDS = ("pandas", "polars", "pyarrow", "numpy")


def check_frame_kind(kind: str) -> str:
    """The kind of frame, or an error that lists them."""
    if not isinstance(kind, str) or kind not in FRAME_KINDS:
        given = brief(kind) if isinstance(kind, str) else f"<a {type(kind).__name__}>"  # a table would show its rows
        raise ParameterError(f"frame={given} is not one of {', '.join(map(repr, FRAME_KINDS))}")
    return kind


def to_frame(positions: NDArray[np.float64], schema: Schema, kind: str) -> Any:
    """Rows given by positions (n_axes, n_rows) as a table of the given kind; NaN is null.

    Columns with `multiple_of` move to the nearest multiple. Identifiers are numbered, whatever their positions.
    """
    if kind == "numpy":
        return _to_array(positions, schema)
    library = None if kind == "pyarrow" else load_optional(kind, f"frame={kind!r}", otherwise="ask for frame='pyarrow'")
    table = pa.table({name: schema[name].to_arrow(positions[i]) for i, name in enumerate(schema)})
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


def positions_of(values: NDArray[np.float64], schema: Schema) -> NDArray[np.float64]:
    """Positions of rows given by numbers (n_columns, n_rows): reals as they are, whole numbers above the low bound.

    Categories are given by their place in the list. What lies outside the bounds is moved to the nearer one.
    """
    numbers = np.asarray(values, dtype=np.float64)
    return np.stack([column.to_positions(numbers[index]) for index, column in enumerate(schema.values())])


def _to_array(positions: NDArray[np.float64], schema: Schema) -> NDArray[np.float64]:
    """All columns as floats (n_rows, n_axes), which is what a numeric array held on the way in."""
    array = positions
    for index, column in enumerate(schema.values()):
        if not column.fits_array:
            raise ParameterError(f"frame='numpy' cannot hold a column of type {column.type_name}; ask for 'pyarrow'")
        array[index] = column.to_floats(array[index])
    return array.T
