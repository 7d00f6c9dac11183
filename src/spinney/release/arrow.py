"""Tables as members of a release file: Arrow IPC, compressed by zstd, no time stamps."""

from __future__ import annotations

import io

import pyarrow as pa


def to_arrow(table: pa.Table) -> bytes:
    """The bytes of an Arrow IPC file; equal tables are equal bytes."""
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def from_arrow(data: bytes) -> pa.Table:
    """Read what `to_arrow` wrote."""
    return pa.ipc.open_file(pa.py_buffer(data)).read_all()
