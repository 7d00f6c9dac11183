"""Mutators that keep the shape of what they damage, so that inputs come past the first check.

A flipped byte in a zip archive ends at its checksum. So a release file is taken apart, one member is damaged, and a
sound archive is made of it again; JSON gets hostile values in the place of its own; text gets words of its format.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa

Other = Callable[[bytes], bytes]  # how bytes are mutated where nothing better is known
Mutator = Callable[[bytes, Random, Other], bytes]

HOSTILE: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        3,
        64,
        2**31,
        2**39,
        2**53 + 1,
        -(2**63),
        2**64,
        10**30,
        0.5,
        -0.0,
        1e308,
        5e-324,
    ),
    *(float("nan"), float("inf"), float("-inf"), "", " ", "0", "-1", "1/0", "1/3", "1e-99999999", "1e99999999", "NaN"),
    *("Infinity", "-50", "1" * 5000, "1/" + "9" * 5000, "0x10", "\x1b[31mred", "\u202egnp.exe", "\x00", "a" * 100_000),
    *("replace-one", "add-remove", "bins", "moments", "forest", "points", "generator", "real", "2020-01-01", "uniform"),
    *("one-way", "bounds", "one-way: 99 tables", "shapes of 99 column trees", "bounds of x: leaf counts"),
    *([], {}, [[]], [None], {"": ""}, [1, 2, 3], ["x"], {"x": 1}),
]


def mutate_bytes(data: bytes, rng: Random) -> bytes:
    """Bytes flipped, cut out, repeated or put in."""
    result = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        place = rng.randint(0, len(result))
        length = rng.choice((1, 1, 2, 4, 8, rng.randint(1, 64)))
        match rng.randint(0, 4):
            case 0:
                result[place : place + length] = rng.randbytes(length)
            case 1:
                del result[place : place + length]
            case 2:
                result[place:place] = result[place : place + length] * rng.choice((1, 2, 50))
            case 3:
                value = rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1, rng.getrandbits(16)))
                result[place : place + length] = (value % 2 ** (8 * min(length, 8))).to_bytes(min(length, 8), "little")
            case _:
                other = rng.randint(0, len(result))
                result[place : place + length] = result[other : other + length]
    return bytes(result)


def mutate_text(data: bytes, rng: Random, words: tuple[str, ...], other: Other) -> bytes:
    """A word of the format put in, a piece moved, or bytes mutated."""
    if rng.random() < 0.4:
        return other(data)
    place = rng.randint(0, len(data))
    if rng.random() < 0.7:
        length = rng.choice((0, 0, 1, rng.randint(0, 12)))
        word = rng.choice(words).encode(errors="surrogatepass")
        return data[:place] + word * rng.choice((1, 1, 1, 2, 500)) + data[place + length :]
    end = min(len(data), place + rng.randint(1, 40))
    target = rng.randint(0, len(data))
    return data[:target] + data[place:end] + data[target:]


def mutate_json(data: bytes, rng: Random, other: Other) -> bytes:
    """A hostile value in the place of another, a key or an item more or less, or bytes mutated."""
    if rng.random() < 0.15:
        return other(data)
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return other(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        document = _damaged(document, rng)
    text = json.dumps(document, ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.02:
        text = text.replace('"note"', "[" * 5000, 1)
    return text.encode(errors="surrogatepass")


def _damaged(document: Any, rng: Random) -> Any:
    """The document with one place changed, each place being about as likely."""
    if isinstance(document, dict) and document and rng.random() < 0.93:
        key = rng.choice(list(document))
        if rng.random() < 0.08:
            return {name: value for name, value in document.items() if name != key}
        if rng.random() < 0.05:
            return document | {rng.choice((key + "x", key.upper(), "")): document[key]}
        return document | {key: _damaged(document[key], rng)}
    if isinstance(document, list) and document and rng.random() < 0.9:
        place = rng.randrange(len(document))
        if rng.random() < 0.15:
            return document[:place] + document[place + 1 :]
        if rng.random() < 0.1:
            return document + document[place : place + 1] * rng.choice((1, 3, 200))
        return [*document[:place], _damaged(document[place], rng), *document[place + 1 :]]
    if isinstance(document, int) and not isinstance(document, bool) and rng.random() < 0.4:
        return document + rng.choice((-1, 1, 2, 1000))
    if isinstance(document, str) and rng.random() < 0.3:
        return document + rng.choice(("0", "x", "/2", "e9", "\x1b[2J", document))
    return rng.choice(HOSTILE)


def mutate_release(data: bytes, rng: Random, other: Other) -> bytes:
    """A release file with one member damaged and sound checksums; sometimes a damaged archive."""
    if rng.random() < 0.1:
        return other(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return other(data)
    if not members:
        return other(data)
    name = rng.choice(list(members))
    if name.endswith(".json"):
        members[name] = mutate_json(members[name], rng, other)
    elif rng.random() < 0.5:
        members[name] = _damaged_table(members[name], rng, other)
    else:
        members[name] = other(members[name])
    if rng.random() < 0.03:
        members[rng.choice(("extra.arrow", "../up.json", "card.json ", ""))] = members[name]
    sink = io.BytesIO()
    packing = zipfile.ZIP_DEFLATED if rng.random() < 0.1 else zipfile.ZIP_STORED
    with zipfile.ZipFile(sink, "w", packing) as archive:
        for member, content in members.items():
            archive.writestr(zipfile.ZipInfo(member), content, packing)
    return sink.getvalue()


def _damaged_table(data: bytes, rng: Random, other: Other) -> bytes:
    """An Arrow file that is sound, with hostile values or other types in a column; or without compression, damaged."""
    try:
        table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
        table.validate(full=True)
        place = rng.randrange(table.num_columns)
        values = table.column(place).to_pylist()
        if values and rng.random() < 0.7:
            for _ in range(rng.choice((1, 1, 3))):
                values[rng.randrange(len(values))] = rng.choice(
                    (-1, 0, 1, 2**31, -(2**62), None, float("nan"), float("inf"), 1e308, [], [0] * 9, "x", values[0])
                )
        elif values:
            values = values[: rng.randrange(len(values))]
            table = table.slice(0, len(values))
        kind = table.schema.field(place).type if rng.random() < 0.8 else None
        table = table.set_column(place, table.schema.names[place], pa.array(values, kind))
        sink = io.BytesIO()
        compression = rng.choice((None, "zstd", "lz4"))
        with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
            writer.write_table(table)
        written = sink.getvalue()
        return other(written) if compression is None and rng.random() < 0.5 else written
    except (pa.ArrowException, TypeError, ValueError, OverflowError, IndexError, OSError):
        return other(data)
