"""Whatever a table is in, as a `Source`: recognised from the object (`kinds.py`), read by the engine that is asked for.

What the environment says of threads and memory is read first, so that an error about it comes before anything is spent.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw

from spinney.counting.spill import default_memory_limit
from spinney.errors import ParameterError
from spinney.machine import n_threads
from spinney.schema.schema import Schema, as_schema
from spinney.tables.engines.stream import StreamSource
from spinney.tables.kinds import ENGINES, table_kind
from spinney.tables.source import Source
from spinney.text import as_given, did_you_mean


def open_source(
    frame: Any,
    schema: Schema,
    *,
    engine: str | None = None,
    memory_limit: int | None = None,
    spill_folder: str | None = None,
    batch_bytes: int | None = None,
) -> Source:
    """The table behind the right engine, once it is known to have exactly the schema's columns, with fitting types.

    Args:
        frame: the table, in any kind that `kinds.py` lists.
        schema: what is public about it.
        engine: what reads it, where there is a choice.
        memory_limit: bytes that counted cells may take before they go to disk; `SPINNEY_MEMORY_LIMIT` where it is None.
        spill_folder: where they go then; the folder for temporary files where it is None.
        batch_bytes: how much of the table is read at a time, about; the engine's own measure where it is None.
    """
    n_threads()
    default_memory_limit()
    if engine is not None and (not isinstance(engine, str) or engine not in ENGINES):
        known, hint = ", ".join(map(repr, ENGINES)), did_you_mean(engine, ENGINES)
        raise ParameterError(f"engine={as_given(engine)} is not one of {known}; or leave it out{hint}")
    schema = as_schema(schema)
    frame = nw.to_native(frame, pass_through=True)
    kind = table_kind(frame)
    if engine is not None and engine not in kind.engines:
        fitting = " or ".join(map(repr, kind.engines))
        raise ParameterError(f"engine={engine!r} does not work with {kind.name}; leave it out, or use {fitting}")
    source = kind.opened_by(engine)(frame, schema, batch_bytes=batch_bytes)
    source = source.limited(memory_limit=memory_limit, spill_folder=spill_folder)
    return source.materialized() if engine == "memory" and isinstance(source, StreamSource) else source
