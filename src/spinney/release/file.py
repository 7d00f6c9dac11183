"""The release file: archive, tables, kinds, and whether it holds its release and nothing else. PUBLIC.

A file from elsewhere is read as one that somebody may have made on purpose: sizes are checked before anything
is unpacked, every number before it is used, and the promise is worked out again from the charges. No pickle.

    tables as members    tables as members: Arrow IPC, read column by column after their sizes were checked
    kinds                the kinds of releases, and where each lives
    archive              the zip archive: save, load, digests, signatures inside
    completeness         whether anything stands in a file that is no part of its release
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.errors import FileError, ParameterError, SpinneyError
from spinney.files import full_version, read_json, write_json, write_whole
from spinney.progress import waiting
from spinney.release.card import Card
from spinney.release.release import STREAMS, Members, Release, Stream
from spinney.release.verify import verification
from spinney.text import as_given, brief

# ---------------------------------------------------------------------------------------------------- tables as members
# Tables as members of a release file: Arrow IPC, compressed by zstd, no time stamps.
#
# A file that others made may lie about every length in it, and Arrow believes lengths until it is told to check them.
# So what buffers would unpack to is added up from the messages before anything is unpacked; then only the columns
# that are wanted are read, of the types that are wanted, batch by batch, and each batch is validated in full before
# it is used. The footer of the file, which repeats where messages lie, is not read at all.


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
        return _read_table(pa.py_buffer(data).slice(len(_MAGIC)), columns)
    except (OSError, MemoryError, pa.ArrowException) as err:
        raise ValueError(f"a damaged table: {err}") from err


def _read_table(stream: pa.Buffer, columns: Mapping[str, Types]) -> pa.Table:
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


# ---------------------------------------------------------------------------------------------------------------- sizes


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


# ---------------------------------------------------------------------------------------------------------------- kinds
# Which kinds of releases there are, and where each lives: the one list that a new kind is added to.
#
# Kinds belong to the rooms that make them (`tree/release`, `forest/release`), which stand above this one; a file says
# which kind it holds, and only that one is imported.


KINDS = {
    "bins": ("spinney.tree.release.bins", "BinnedRelease"),
    "moments": ("spinney.tree.release.moments", "MomentsRelease"),
    "forest": ("spinney.forest.release.model", "ForestRelease"),
    "people": ("spinney.people.release.model", "PeopleRelease"),
    "points": ("spinney.release.points", "PointsRelease"),
    "generator": ("spinney.release.points", "GeneratorRelease"),
}
# Files that say no kind were written when there was one.
OLDEST = "bins"


def release_class(kind: str) -> type[Release]:
    """The class of a kind that a file is marked with."""
    module, name = KINDS[kind]
    found: type[Release] = getattr(import_module(module), name)
    return found


# -------------------------------------------------------------------------------------------------------------- archive
# The release file: a zip archive of `card.json` and what the kind of release adds (`bins.arrow`), and no
# pickle.
#
# Zip checks every byte by CRC, and all members open with everyday tools. Time stamps are fixed, so equal
# releases are equal files.
#
# A file that comes from elsewhere is read as one that somebody may have made on purpose: only the members of
# its kind are read, and no more of them than they are allowed to hold; every number is checked; and the promise
# of the card is worked out again from its events before anybody sees it (`release/verify`).


FORMAT = "spinney-release"
FORMAT_VERSION = 4

_CARD = "card.json"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_LARGEST_CARD = 2**26
# What vouches for all other members (`signature`). Readers pass over it, and it is no part of a digest.
_SIGNATURE = "signature.txt"
_LARGEST_SIGNATURE = 2**12
_MOST_MEMBERS = 16
_PIECE = 2**20
# The record at the end of a zip archive, and the mark of its variant for more than four gigabytes.
_END = struct.Struct("<4s4H2LH")
_END_MARK, _LARGE_MARK, _LARGE_SIZE = b"PK\5\6", b"PK\6\7", 20
_LIMITS = {_CARD: _LARGEST_CARD, _SIGNATURE: _LARGEST_SIGNATURE}
_PACKED = 1 << 0  # the flag of an encrypted member


def save(release: Release, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a release to one file, whole or not at all."""
    members = _members(release)
    write_whole(path, lambda file: _write(file, members), overwrite=overwrite)


def _write(file: IO[bytes], members: Members) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)


def digest(release: Release) -> str:
    """What tells a release from others: SHA-256 of all that its file holds, were it written now."""
    return _digest(_members(release))


def file_digest(path: str | Path) -> str:
    """SHA-256 of all members of a release file, as they are and in their order, a signature among them left out.

    Of a file that this version wrote it is the `digest` of its release; of an older one it stays what it was.
    """
    return _digest(_all_members(Path(path)))


def file_format(path: str | Path) -> int:
    """The format version that a release file states."""
    version: int = _read(Path(path), with_members=False)[1]["format_version"]
    return version


def embedded_signature(path: str | Path) -> bytes | None:
    """The signature inside a release file; None where it has none."""
    return _all_members(Path(path), with_signature=True).get(_SIGNATURE)


def with_signature(path: str | Path, out: str | Path, signature: bytes, *, overwrite: bool) -> None:
    """Write a copy of a release file with a signature inside, all other members byte by byte as they are."""
    members = _all_members(Path(path)) | {_SIGNATURE: signature}
    write_whole(out, lambda file: _write(file, members), overwrite=overwrite)


def entries_unwritten(held: Members, release: Release) -> list[str]:
    """What a file holds otherwise than this version would write of its release: members, and entries of the card."""
    written = _members(release)
    found = [name for name in dict.fromkeys([*held, *written]) if name != _CARD and held.get(name) != written.get(name)]
    ours, theirs = read_json(written[_CARD]), read_json(held[_CARD])
    for within, one, other in (("", ours, theirs), ("card.", ours["card"], theirs["card"])):
        names = [name for name in dict.fromkeys([*one, *other]) if within or name != "card"]
        found += [f"{_CARD}: {within}{name}" for name in names if one.get(name) != other.get(name)]
    return found


def bytes_beside(path: str | Path) -> int | None:
    """By how many bytes a file is longer than its members need; None where it was packed in another way than ours."""
    plain = io.BytesIO()
    _write(plain, _all_members(Path(path), with_signature=True))
    content = Path(path).read_bytes()
    if content == plain.getvalue():
        return 0
    more = len(content) - len(plain.getvalue())
    return more if more > 0 else None


def _digest(members: Members) -> str:
    found = sha256()
    for name, data in members.items():
        found.update(f"{name} {len(data)} ".encode())
        found.update(data)
    return found.hexdigest()


def _all_members(path: Path, *, with_signature: bool = False) -> Members:
    """Everything that a release file holds, whatever its kind; a signature where it is asked for."""
    with _reading(path), path.open("rb") as file:
        _check_end(file)
        with zipfile.ZipFile(file) as archive:
            listed = _listed(archive)
            wanted = [name for name in listed if with_signature or name != _SIGNATURE]
            return {name: _content(archive, listed[name], _LIMITS.get(name)) for name in wanted}


def _members(release: Release) -> Members:
    """All that a file holds, the card first."""
    entries, members = release.to_members()
    described = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": release.kind,
        "stream": release.stream,
        "card": release.card.to_dict(),
        **entries,
    }
    return {_CARD: write_json(described), **members}


@waiting("loading the release")
def load(path: str | Path) -> Release:
    """Read a release file. The schema and the card are in it, and what the card promises is worked out again.

    Args:
        path: a file that `save` wrote.

    Raises:
        FileError: the file is missing, damaged, of a newer version, or contradicts itself.
        ParameterError: `path` is not a path.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ParameterError(f"load: path={as_given(path)} is not the path of a release, such as 'town.spinney'")
    path = Path(path)
    kind, described, members = _read(path, with_members=True)
    release = _release(path, kind, described, members)
    release.file = path
    return release


def kind_of(path: str | Path) -> str:
    """The kind of the release in a file; the rest of the file is not looked at. FileError where it is no release."""
    return _read(Path(path), with_members=False)[0].kind


def _read(path: Path, *, with_members: bool) -> tuple[type[Release], dict[str, Any], Members]:
    """The kind of a release, what its card says, and the members of its kind, if they are wanted."""
    with _reading(path), path.open("rb") as file:
        _check_end(file)
        with zipfile.ZipFile(file) as archive:
            listed = _listed(archive)
            described = read_json(_content(archive, listed[_CARD], _LARGEST_CARD))
            _check_format(path, described)
            kind = described.get("kind", OLDEST)
            if not isinstance(kind, str) or kind not in KINDS:
                raise FileError(f"{str(path)!r} is a Spinney release with inconsistent contents: unknown kind")
            wanted = release_class(kind)
            names = wanted.member_names if with_members else ()
            return wanted, described, {name: _content(archive, listed[name]) for name in names if name in listed}


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say of all that can be wrong with a file that it is no release, or damaged."""
    try:
        if path.exists() and not path.is_file():
            raise FileError(f"{str(path)!r} is not a file, so it cannot be a release")
        yield
    except SpinneyError:
        raise
    except FileNotFoundError:
        raise FileError(f"there is no file {str(path)!r}") from None
    except (zipfile.BadZipFile, zlib.error, LookupError, ValueError, EOFError, RuntimeError, struct.error) as err:
        raise FileError(f"{str(path)!r} is not a Spinney release, or is damaged: fetch or save it again") from err
    except OSError as err:
        raise FileError(f"cannot read {str(path)!r}: {err.strerror or err}") from err


def _release(path: Path, kind: type[Release], described: dict[str, Any], members: Members) -> Release:
    """The release of a file's contents, or a FileError that says what is wrong with them."""
    try:
        release = kind.from_members(Card.from_dict(described["card"]), described, members)
        # Files of the first two versions say nothing of it.
        release.stream = _stream(described["stream"]) if described["format_version"] > 2 else "given"
        release._verified = verification(release)
        if "groups" in described["card"]:  # which the first files do not have
            release.card.check_groups(described["card"]["groups"])
    except (
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        RecursionError,
        MemoryError,
        pa.ArrowException,
    ) as err:
        raise FileError(f"{str(path)!r} is a Spinney release with inconsistent contents: {_why(err, members)}") from err
    return release


def _stream(value: Any) -> Stream:
    for known in STREAMS:
        if value == known:
            return known
    raise ValueError(f"stream is none of {', '.join(STREAMS)}")


def _why(err: Exception, members: Members) -> str:
    """What is wrong with the contents; errors of Python's own, which speak of our code, are told as what they mean."""
    if isinstance(err, KeyError) and err.args:
        return f"there is no {brief(err.args[0])}"
    damaged = next((name for name, content in members.items() if not is_arrow(content)), None)
    if damaged is not None:
        return f"the member {damaged!r} is damaged: {_in_short(err)}; fetch or save the file again"
    is_pythons = type(err) in (TypeError, AttributeError, IndexError) or str(err).startswith("zip()")
    if is_pythons:
        return (
            f"the member {_CARD!r} is damaged: an entry is of another type or length than a release has; fetch or save "
            "the file again"
        )
    return _in_short(err)


def _in_short(err: Exception) -> str:
    """What an error says, in one line of bearable length."""
    text = " ".join(str(err).split())
    return f"{text[:300]}…" if len(text) > 300 else text or type(err).__name__


def _check_format(path: Path, described: Any) -> None:
    if not isinstance(described, dict) or described.get("format") != FORMAT:
        raise FileError(f"{str(path)!r} is not a Spinney release")
    version = described.get("format_version")
    if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
        raise FileError(
            f"{str(path)!r} has format version {brief(version)}, and this version of Spinney reads up to "
            f"{FORMAT_VERSION}; "
            "upgrade it"
        )


# -------------------------------------------------------------------------------------------------------------- members


def _check_end(file: IO[bytes]) -> None:
    """Raise a BadZipFile where the archive lists more than a release has, before the list is read."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END.size - _LARGE_SIZE))
    tail = file.read()
    if len(tail) < _END.size:
        raise zipfile.BadZipFile("too short")
    mark, _, _, _, n_members, listing, _, comment = _END.unpack(tail[-_END.size :])
    is_large = tail.startswith(_LARGE_MARK) and len(tail) == _END.size + _LARGE_SIZE
    if mark != _END_MARK or comment or (is_large and size < 2**31):
        raise zipfile.BadZipFile("not an archive that Spinney writes")
    if n_members > _MOST_MEMBERS or listing > _PIECE:
        raise zipfile.BadZipFile("too many members")


def _listed(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by name; a BadZipFile where one stands twice, is encrypted or is packed in an odd way."""
    infos = archive.infolist()
    listed = {info.filename: info for info in infos}
    if len(listed) != len(infos):
        raise zipfile.BadZipFile("a member occurs twice")
    for info in infos:
        if info.flag_bits & _PACKED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise zipfile.BadZipFile("a member is encrypted, or packed in another way than ours")
    return listed


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int | None = None) -> bytes:
    """The bytes of a member, unless they are more than it says, or more than it may hold."""
    limit = allowed_size(info.compress_size) if most is None else min(most, _PIECE + 100 * info.compress_size)
    if info.file_size > limit:
        raise zipfile.BadZipFile("a member unpacks to far more than it is stored in")
    pieces, left = [], info.file_size + 1
    with archive.open(info) as member:
        while left > 0 and (piece := member.read(min(left, _PIECE))):
            pieces.append(piece)
            left -= len(piece)
    content = b"".join(pieces)
    if len(content) != info.file_size:
        raise zipfile.BadZipFile("a member is longer or shorter than it says")
    return content


# --------------------------------------------------------------------------------------------------------- completeness
# Whether a release file holds its release and nothing else: what `spinney verify` and `spinney sign` look at.


_MOST_DIFFERENCES = 20


def check_contents(path: str, release: Release) -> tuple[list[str], list[dict[str, str]]]:
    """Nothing stands in the file that is no part of the release; a FileError where something does."""
    held = _all_members(Path(path))
    unread = [name for name in held if name not in (_CARD, *release.member_names)]
    if unread:
        raise FileError(f"{path!r} holds members that are no part of the release, such as {unread[0]!r}")
    checks, others = [], []
    unwritten = entries_unwritten(held, release)
    version = release.card.spinney_version
    if unwritten and version == full_version():
        shown = ", ".join(unwritten[:_MOST_DIFFERENCES])
        raise FileError(f"{path!r} holds what this version would not write of its release: {shown}")
    if unwritten:
        why = f"spinney {version} wrote it, and this version writes {', '.join(unwritten[:3])} otherwise"
        others.append({"what": "that all of the card follows from the contents", "why": why})
    else:
        checks.append("every member, and every entry of the card, is what this version writes of the release")
    more = bytes_beside(path)
    if more == 0:
        checks.append("nothing stands in the archive beside its members")
    elif more is not None and version == full_version():
        raise FileError(
            f"{path!r} has {more:,} bytes that belong to none of its members; load it and save it again if you trust it"
        )
    else:
        why = "the archive was not written by Spinney as it is now"
        others.append({"what": "what stands in the archive beside its members", "why": why})
    return checks, others
