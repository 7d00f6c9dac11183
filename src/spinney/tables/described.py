"""What can be told of a table from its names and types alone, compared with a schema. No value is looked at.

Messages name columns and kinds of types. The parameters of a type stay out: an Enum lists the values of its column, a
struct has fields that were keys of somebody's record, and a column of another library prints what it likes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import narwhals as nw

from spinney.columns import KINDS, Column
from spinney.columns.dtypes import group_of
from spinney.errors import SchemaError
from spinney.schema.table import Schema
from spinney.suggest import closest, listed

# Likely pairs of names that a message spells out.
_MOST_PAIRS = 3


def check_names(names: Sequence[Any], schema: Schema, *, index: Collection[Any] = ()) -> None:
    """Raise a SchemaError that names all columns of the one side that the other lacks, and which were likely meant.

    `index` holds the names of a pandas index, which is not a column.
    """
    _refuse_other_labels(names)
    extra = [name for name in names if name not in schema]
    lacking = [name for name in schema if name not in set(names)]
    if not extra and not lacking:
        return
    pairs = {name: meant for name in extra if (meant := closest(name, lacking)) is not None}
    if extra and len(extra) == len(names) and lacking and not pairs:
        raise SchemaError(
            f"the table has none of the schema's columns, {listed(lacking)}; name its columns as the schema does. Its "
            "own names are not shown here: in a CSV that was read without a header row they are values of a person "
            "(pandas: read_csv(..., header=None, names=[...]))"
        )
    told = []
    if extra:
        told.append(f"{_columns(extra)} in the table but not in the schema")
    if lacking:
        told.append(f"{_columns(lacking)} in the schema but not in the table")
    raise SchemaError(f"{', and '.join(told)}; {_remedy_of_names(extra, lacking, pairs, index)}")


def _refuse_other_labels(names: Sequence[Any]) -> None:
    """Refuse numbers, dates and tuples for names, as pandas has them: a pivot makes names of values."""
    kinds = {type(name).__name__ for name in names if not isinstance(name, str)}
    if "tuple" in kinds:
        raise SchemaError(
            "the table has column names of several levels; make them strings, for example "
            "frame.columns = ['_'.join(map(str, name)) for name in frame.columns]"
        )
    if kinds:
        raise SchemaError(
            f"the table has column names of type {', '.join(sorted(kinds))}, and a schema has strings; name the "
            "columns, for example frame.columns = list(schema)"
        )


def _columns(names: Sequence[str]) -> str:
    return f"column {listed(names)} is" if len(names) == 1 else f"columns {listed(names)} are"


def _remedy_of_names(
    extra: Sequence[str], lacking: Sequence[str], pairs: dict[str, str], index: Collection[Any]
) -> str:
    for name in lacking:
        if name in index:
            return f"{name!r} is the index of the table, not a column: pass frame.reset_index()"
    for name in extra:
        if name.startswith("Unnamed: "):  # what pandas calls a column without a name
            return f"{name!r} is an index that was written into a CSV: read that with index_col=0, or drop the column"
    if pairs:
        meant = ", ".join(f"{right!r} by {wrong!r}" for wrong, right in list(pairs.items())[:_MOST_PAIRS])
        return f"did you mean {meant}? Give both the same names, capitals and spaces included"
    if extra and lacking:
        return "give both the same names, capitals and spaces included"
    if extra:
        it = _it(extra)
        return f'describe {it}, leave {it} out with sp.Ignore() (type = "ignore"), or drop {it}'
    return f"add {_it(lacking)} or take {_it(lacking)} out of the schema"


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


# ------------------------------------------------------------------------------------------------------------ types


def fits(dtype: Any, column: Column) -> bool:
    """Whether values of this dtype can be meant by this column type, without looking at them."""
    group = group_of(dtype)
    # Strings are parsed, each by itself; columns of nulls alone are settled when their values are converted.
    return group in ("string", "unknown") or group in column.accepts


def misfit(name: str, dtype: Any, column: Column) -> SchemaError:
    """The error for a column whose type cannot be meant."""
    return type_error(name, kind_of(dtype), column, _remedy_of_types(dtype, column))


def type_error(name: str, kind: str, column: Column, remedy: str) -> SchemaError:
    """The error for a column of some kind, with what to do about it."""
    return SchemaError(
        f"column {name!r} has type {kind} in the table, which does not fit {column.type_name} ({column!r}); {remedy}"
    )


def kind_of(dtype: Any) -> str:
    """The name of a type without its parameters, except whether it has a time zone."""
    name = dtype.__name__ if isinstance(dtype, type) else type(dtype).__name__
    if isinstance(dtype, nw.Datetime):
        return f"{name} without a time zone" if dtype.time_zone is None else f"{name} with a time zone"
    return name


def _remedy_of_types(dtype: Any, column: Column) -> str:
    group = group_of(dtype)
    remedy = column.remedy(group)
    if remedy is not None:
        return remedy
    for kind in KINDS:
        if group in kind.describes:
            return f"describe it as {kind.__name__}, or convert the column"
    return "there is no column type for it: convert it to numbers or strings, or describe it as Ignore or Identifier"
