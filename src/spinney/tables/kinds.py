"""Kinds of tables: what a user may pass, and which file of `engines/` opens it.

A new engine is one file and one line here. The file states its `KINDS`: each recognises its objects by their class,
without importing the library that made them, and opens them as a `Source`. The first kind that recognises a table has
it, so the general ones come last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from spinney.errors import InputError
from spinney.schema.table import Schema
from spinney.tables.source import Source

# One line for each file of engines/, in the order in which they are asked.
_ENGINE_FILES = (
    "spinney.tables.engines.files",
    "spinney.tables.engines.polars",
    "spinney.tables.engines.duckdb",
    "spinney.tables.engines.spark",
    "spinney.tables.engines.ibis",
    "spinney.tables.engines.dask",
    "spinney.tables.engines.arrow",
    "spinney.tables.engines.memory",
)

_TABLES = (
    "a pandas, polars or pyarrow table, a numeric numpy array, the path of CSV or Parquet files (a file, a folder, a "
    "pattern or a list of paths), a polars LazyFrame, a DuckDB relation, a Spark DataFrame, an Ibis table, a Dask "
    "frame, a pyarrow dataset or a RecordBatchReader"
)


class Opener(Protocol):
    """Opens a table, once it is known to have exactly the schema's columns, with fitting types."""

    def __call__(self, frame: Any, schema: Schema, /, *, batch_bytes: int | None = None) -> Source:
        """A source; no row has been read.

        Args:
            frame: what the kind recognised.
            schema: what is public about the table.
            batch_bytes: how much of the table is read at a time, about; None for the engine's own measure.
        """


@dataclass(frozen=True, slots=True)
class TableKind:
    """One kind of table."""

    name: str  # with its article, as errors call it: "a polars LazyFrame"
    recognises: Callable[[Any], bool]
    open: Opener
    engines: tuple[str, ...]  # what may be asked for as `engine`; "memory" holds the batches of any other
    openers: Mapping[str, Opener] = field(default_factory=dict)  # for engines that open the table in another way


@cache
def table_kinds() -> tuple[TableKind, ...]:
    """All kinds, in the order in which they are asked."""
    return tuple(kind for name in _ENGINE_FILES for kind in import_module(name).KINDS)


def table_kind(frame: Any) -> TableKind | None:
    """What a table is in, by the class of the object; None where it is no table."""
    return next((kind for kind in table_kinds() if kind.recognises(frame)), None)


def engine_names() -> list[str]:
    """All engines that can be asked for."""
    return list(dict.fromkeys(engine for kind in table_kinds() for engine in kind.engines))


def made_by(*classes: str) -> Callable[[Any], bool]:
    """Recognises objects of classes such as "polars.LazyFrame": the library, a dot, the name. Imports nothing."""
    known = {tuple(name.split(".")) for name in classes}

    def recognises(frame: Any) -> bool:
        return any((cls.__module__.partition(".")[0], cls.__name__) in known for cls in type(frame).__mro__)

    return recognises


def not_a_table(frame: Any) -> InputError:
    """The error for an object that no kind recognises."""
    kind = type(frame).__name__
    return InputError(f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind} is not a table; pass {_TABLES}")
