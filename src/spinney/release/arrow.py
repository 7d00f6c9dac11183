"""Tables as members of a release file: Arrow IPC, compressed by zstd, no time stamps.

A file that others made may lie about every length in it, and Arrow believes lengths until it is told to check them. So
what buffers would unpack to is added up from the messages before anything is unpacked; then only the columns that are
wanted are read, of the types that are wanted, batch by batch, and each batch is validated in full before it is used.
The footer of the file, which repeats where messages lie, is not read at all.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Types = tuple[pa.DataType, ...]

WHOLE: Types = (pa.int32(), pa.int64())
FLOAT: Types = (pa.float64(),)
# Noisy counts are cut at ±2^61 (`privacy.discrete`).
LARGEST_COUNT = 2**61

_MAGIC = b"ARROW1\0\0"
_MOST_MESSAGES = 4096
_LARGEST_METADATA = 2**24
_MOST_ROWS = 2**31
# What a member may take in memory. The best that was measured for counts that are nearly all alike is 32 to 1.
_SMALL, _BEST_RATIO = 2**26, 50
# Message headers by their number in the format.
_DICTIONARY, _BATCH = 2, 3


def are_counts(values: NDArray[np.int64]) -> bool:
    """Whether noisy numbers are ones that a mechanism gives. Both ends are compared: -2^63 has no absolute value."""
    return not values.size or bool(values.min() >= -LARGEST_COUNT and values.max() <= LARGEST_COUNT)


def to_arrow(table: pa.Table) -> bytes:
    """The bytes of an Arrow IPC file; equal tables are equal bytes."""
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def from_arrow(data: bytes, columns: Mapping[str, Types]) -> pa.Table:
    """These columns of what `to_arrow` wrote, each of one of its types and without nulls; ValueError otherwise."""
    if not data.startswith(_MAGIC):
        raise ValueError("a member is not an Arrow file")
    try:
        return _read(pa.py_buffer(data).slice(len(_MAGIC)), columns)
    except (OSError, MemoryError, pa.ArrowException) as err:
        raise ValueError(f"a damaged table: {err}") from err


def _read(stream: pa.Buffer, columns: Mapping[str, Types]) -> pa.Table:
    _check_sizes(stream)
    with pa.ipc.open_stream(stream) as reader:
        schema = reader.schema
    for name, types in columns.items():
        if schema.names.count(name) != 1 or schema.field(name).type not in types:
            raise ValueError(f"a table without a column {name!r} of type {' or '.join(map(str, types))}")
    wanted = [schema.names.index(name) for name in columns]
    options = pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
    with pa.ipc.open_stream(stream, options=options) as reader:
        batches = [_checked(batch) for batch in reader]
    table = pa.Table.from_batches(batches, reader.schema).select(list(columns))
    if table.num_rows > _MOST_ROWS:
        raise ValueError("a table of more rows than any release has")
    return table


def is_arrow(data: bytes) -> bool:
    """Whether bytes are an Arrow file that can be read, whatever its columns are."""
    try:
        from_arrow(data, {})
    except ValueError:
        return False
    return True


def allowed_size(stored: int) -> int:
    """How large something may become that is stored in so many bytes."""
    return _SMALL + _BEST_RATIO * stored


def numbers(table: pa.Table, name: str, dtype: Any) -> NDArray[Any]:
    """A column as an array of its own."""
    return np.array(table[name].to_numpy(), dtype=dtype)


def lists(table: pa.Table, name: str, dtype: Any) -> list[NDArray[Any]]:
    """A column of lists as arrays."""
    found: list[NDArray[Any]] = []
    for chunk in table[name].chunks:
        ends, values = chunk.offsets.to_numpy(), np.array(chunk.values.to_numpy(zero_copy_only=False), dtype=dtype)
        found += [values[start:stop] for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]
    return found


def _checked(batch: pa.RecordBatch) -> pa.RecordBatch:
    batch.validate(full=True)
    for column in batch.columns:
        values = column.values if pa.types.is_list(column.type) else column
        if column.null_count or values.null_count:
            raise ValueError("a table with nulls")
        if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
            raise ValueError("a table with nulls")
    return batch


# ------------------------------------------------------------------------------------------------- sizes


def _check_sizes(stream: pa.Buffer) -> None:
    """ValueError where the buffers of a stream would unpack to more than `allowed_size`."""
    room = allowed_size(stream.size)
    try:
        for message in _messages(stream):
            room -= sum(_unpacked_sizes(message))
            if room < 0:
                raise ValueError("a table that unpacks to far more than it is stored in")
    except struct.error:
        raise ValueError("a table whose description is damaged") from None


def _messages(stream: pa.Buffer) -> Iterator[pa.ipc.Message]:
    reader = pa.ipc.MessageReader.open_stream(stream)
    for _ in range(_MOST_MESSAGES):
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        if message.metadata.size > _LARGEST_METADATA:
            raise ValueError("a table with a description of many megabytes")
        yield message
    raise ValueError("a table in too many pieces")


def _unpacked_sizes(message: pa.ipc.Message) -> Iterator[int]:
    """What each buffer of a message says that it unpacks to.

    The metadata is a flatbuffer: tables whose fields are found by a list of offsets (see `_Table`). A compressed
    buffer starts with its unpacked size, -1 where it was left as it is.
    """
    header = _Table.root(message.metadata.to_pybytes())
    kind, content = header.byte(1), header.table(2)
    if kind not in (_DICTIONARY, _BATCH) or content is None:
        return
    batch = content.table(1) if kind == _DICTIONARY else content
    if batch is None or batch.table(3) is None:  # not compressed, so that nothing unpacks
        return
    body = message.body
    for offset, length in batch.pairs(2):
        if length == 0:
            continue
        if offset < 0 or length < 8 or body is None or offset + length > body.size:
            raise ValueError("a buffer beyond its table")
        (size,) = struct.unpack("<q", body.slice(offset, 8).to_pybytes())
        if size < -1:
            raise ValueError("a buffer of negative size")
        yield max(size, 0)


class _Table:
    """A table of a flatbuffer: a place in its bytes, and another where the offsets of the fields are listed."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data, self._place = data, place
        self._fields = place - self._read("<i", place)
        self._size = self._read("<H", self._fields)

    @classmethod
    def root(cls, data: bytes) -> _Table:
        return cls(data, struct.unpack_from("<I", data)[0])

    def _read(self, form: str, place: int) -> int:
        if not 0 <= place <= len(self._data):
            raise struct.error
        return int(struct.unpack_from(form, self._data, place)[0])

    def _field(self, number: int) -> int | None:
        entry = 4 + 2 * number
        offset = self._read("<H", self._fields + entry) if entry < self._size else 0
        return self._place + offset if offset else None

    def byte(self, number: int) -> int:
        place = self._field(number)
        return 0 if place is None else self._read("<B", place)

    def table(self, number: int) -> _Table | None:
        place = self._field(number)
        return None if place is None else _Table(self._data, place + self._read("<I", place))

    def pairs(self, number: int) -> Iterator[tuple[int, int]]:
        """A list of pairs of long integers."""
        place = self._field(number)
        if place is None:
            return
        start = place + self._read("<I", place)
        for i in range(self._read("<I", start)):
            yield self._read("<q", start + 4 + 16 * i), self._read("<q", start + 12 + 16 * i)
