"""Samples in parts: `sample(n_rows, parts=k)`, for more rows than fit into memory, and folders of them. PUBLIC.

Every part can be drawn by itself, in any order and in any process: what it needs of the others follows from the
seed.

    part files    a folder of Parquet files, one a part, resumed where writing stopped
    parts         which rows and which random numbers a part has
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from hashlib import sha256
from operator import index
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.errors import FileError, ParameterError
from spinney.files import read_json, write_whole
from spinney.machine import threads
from spinney.progress import progress_bar
from spinney.schema.schema import Schema
from spinney.text import as_given

# ----------------------------------------------------------------------------------------------------------- part files
# A folder of Parquet files, one for each part of a sample, written as a stream and gone on with where it stopped.
#
# Every file says which part of which sample it is, in the notes of its footer: the digest of the release, the seed,
# the numbers of rows and parts, its own number, digests of what else was asked for, and versions. A digest of all
# bytes before the footer is there too. So a folder needs no list of its own, a file that is there is whole
# (`files.write_whole`) and is known to be the right one, as it was written, and what is missing is drawn. Nothing in
# the notes is of the private table. An empty `_SUCCESS`, as other engines write it, is put there last.
#
# While one part is written the next is drawn, so that two are in memory. A folder is locked while it is written to.


SUCCESS = "_SUCCESS"
FORMAT, FORMAT_VERSION = "spinney-sample", 2
_NOTES, _DIGEST = b"spinney", b"spinney-digest"
_AT_ONCE = 1 << 20  # rows of a row group
_LOOKED_AT = 4096  # values that tell whether others will be equal
_PIECE = 1 << 24  # bytes that are read at once
_INSTEAD = "name another folder, or allow it to be overwritten (overwrite=True, or --force)"
# How notes are called in errors; others are called by their names.
_IN_WORDS = {
    "version": "an earlier version of Spinney, whose parts cannot be compared with what was written",
    "release": "another release",
    "seed": "another seed",
    "stream": "another seed",
    "rows": "another number of rows",
    "parts": "another number of parts",
    "asked": "other conditions or another placement",
    "types": "other column types",
    "spinney": "another version of Spinney",
    "numpy": "another version of numpy",
}


def write_parts(
    folder: str | Path,
    sizes: Sequence[int],
    draw: Callable[[int], Any],
    identity: Mapping[str, Any],
    *,
    overwrite: bool = False,
) -> Path:
    """Write the parts that are not there yet.

    Args:
        folder: where to; made where it does not exist.
        sizes: how many rows each part has.
        draw: gives the table of a part.
        identity: what tells the sample from others, as JSON-ready data.
        overwrite: whether files of another sample may be replaced.
    """
    folder, notes = Path(folder).resolve(), _whole_notes(identity)
    _make(folder)
    with _locked(folder):
        for leftover in folder.glob(".part-*.parquet.*.partial"):  # of a process that was killed
            leftover.unlink(missing_ok=True)
        problem = _differs(folder, notes, sizes) or _damaged(folder)
        if problem is not None and overwrite:
            _remove(folder)
            problem = _differs(folder, notes, sizes)
        if problem is not None:
            raise FileError(problem)
        missing = [number for number in range(len(sizes)) if not (folder / part_name(number)).exists()]
        if missing:
            (folder / SUCCESS).unlink(missing_ok=True)
        _write(folder, missing, sizes, draw, notes)
        write_whole(folder / SUCCESS, b"", overwrite=True)
    return folder


def goes_on_in(folder: str | Path, sizes: Sequence[int], identity: Mapping[str, Any]) -> bool:
    """Whether a folder holds parts of this sample, by their notes, and nothing else."""
    folder = Path(folder)
    return bool(_parts_in(folder)) and _differs(folder, _whole_notes(identity), sizes) is None


def part_name(number: int) -> str:
    """The name of a part's file; names are in the order of parts."""
    return f"part-{number:06d}.parquet"


def seed_of(folder: str | Path) -> int | None:
    """The seed of a sample that lies in a folder, wholly or in part; None where there is none."""
    for file in _parts_in(Path(folder)):
        seed = (_notes_of(file) or {}).get("seed")
        return seed if type(seed) is int else None
    return None


def check_folder(folder: str | Path, *, overwrite: bool) -> None:
    """Raise a FileError where a folder cannot be one of parts; what it holds is compared only when rows are written."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{str(folder)!r} is a file; name a folder for the parts")
    if not folder.exists() and not folder.resolve().parent.is_dir():
        raise FileError(f"the folder {str(folder.resolve().parent)!r} does not exist; make it first")
    if folder.is_dir() and not overwrite:
        _check_strangers(folder)


# -------------------------------------------------------------------------------------------------------------- writing


def _write(
    folder: Path, missing: Sequence[int], sizes: Sequence[int], draw: Callable[[int], Any], notes: Mapping[str, Any]
) -> None:
    """Draw and write, one part each at a time; a part that is being written when something fails is given up."""
    n_done = sum(sizes) - sum(sizes[number] for number in missing)
    bars = progress_bar(sum(sizes), "drawing rows", unit="row")
    with _told_of_parts(folder, len(sizes)), bars as bar, threads(1) as writer:
        bar.update(n_done)
        under_way = None
        for number in missing:
            table, noted = _as_arrow(draw(number)), json.dumps(_notes_of_part(notes, number)).encode()
            table = table.replace_schema_metadata({**(table.schema.metadata or {}), _NOTES: noted})
            if under_way is not None:
                under_way[0].result()
                bar.update(under_way[1])
            under_way = writer.submit(_write_part, folder / part_name(number), table), sizes[number]
            del table
        if under_way is not None:
            under_way[0].result()


@contextmanager
def _told_of_parts(folder: Path, n_parts: int) -> Iterator[None]:
    """Say of an interruption how many parts are there, for those that are whole stay, and how to go on."""
    try:
        yield
    except KeyboardInterrupt as err:
        n_there = len(_parts_in(folder))
        err.add_note(
            f"{n_there:,} of {n_parts:,} parts are there, whole, in {str(folder)!r}; run the same again to go on"
        )
        raise


def _write_part(file: Path, table: pa.Table) -> None:
    # Values that are hardly ever equal would fill a dictionary that is then thrown away, and cannot be compressed.
    repeated = [name for name in table.column_names if _repeats(table[name])]
    compression = {name: "snappy" if name in repeated else "none" for name in table.column_names}

    def write(target: IO[bytes]) -> None:
        sink = _Hashing(target)
        with pq.ParquetWriter(sink, table.schema, use_dictionary=repeated, compression=compression) as writer:
            writer.write_table(table, row_group_size=_AT_ONCE)
            # All columns are written by now, and the footer, which holds this, is not.
            writer.add_key_value_metadata({_DIGEST: json.dumps(sink.digest).encode()})

    write_whole(file, write, overwrite=True)


class _Hashing:
    """A file that is written to, and the digest of what was written."""

    closed = False

    def __init__(self, target: IO[bytes]) -> None:
        self._target, self._found, self._n_bytes = target, sha256(), 0

    def write(self, data: Any) -> int:
        self._found.update(data)
        self._n_bytes += len(data)
        return self._target.write(data)

    def tell(self) -> int:
        return self._n_bytes

    def flush(self) -> None:
        self._target.flush()

    @property
    def digest(self) -> dict[str, Any]:
        """How many bytes there are so far, and the digest of all of them."""
        return {"bytes": self._n_bytes, "sha256": self._found.hexdigest()}


def _repeats(column: pa.ChunkedArray) -> bool:
    """Whether values of a column are equal so often that its first ones tell."""
    if not pa.types.is_floating(column.type):
        return True
    first = column.slice(0, _LOOKED_AT)
    return len(first.unique()) <= len(first) / 2


def _as_arrow(frame: Any) -> pa.Table:
    """A part as an Arrow table, whichever types were asked for."""
    if isinstance(frame, pa.Table):
        return frame
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    if hasattr(frame, "columns"):
        return pa.Table.from_pandas(frame, preserve_index=False)
    raise ParameterError("like is an array, which has no names of columns; leave it out, or pass a table")


def _whole_notes(identity: Mapping[str, Any]) -> dict[str, Any]:
    """What all parts of a sample say in their notes."""
    return {"format": FORMAT, "version": FORMAT_VERSION, **identity, **_versions()}


def _notes_of_part(notes: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {**notes, "part": number}


def _versions() -> dict[str, str]:
    """What the rows of a seed depend on beside the release."""
    from importlib.metadata import version

    return {name: version(name) for name in ("spinney", "numpy")}


# -------------------------------------------------------------------------------------------------------- what is there


def _make(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        raise FileError(f"{str(folder)!r} is a file; name a folder for the parts") from None
    except FileNotFoundError:
        raise FileError(f"the folder {str(folder.parent)!r} does not exist; make it first") from None
    except OSError as err:
        raise FileError(f"cannot make the folder {str(folder)!r}: {err.strerror or err}") from err


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The folder, for this process alone, where the system can lock folders."""
    if os.name != "posix":
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as err:  # some network folders know no locks
            if err.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise FileError(
                    f"another process is writing parts to {str(folder)!r}; wait for it, or choose another folder"
                ) from None
        yield
    finally:
        os.close(descriptor)


def _parts_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.parquet")) if folder.is_dir() else []


def _check_strangers(folder: Path) -> None:
    """Raise a FileError where a folder holds anything that is no part of a sample."""
    for entry in sorted(folder.iterdir()):
        is_part = entry.name.startswith("part-") and entry.name.endswith(".parquet")
        if not (is_part or entry.name == SUCCESS or entry.name.endswith(".partial")):
            raise FileError(f"the folder {str(folder)!r} holds other files, such as {entry.name!r}; name an empty one")


def _notes_of(file: Path) -> dict[str, Any] | None:
    """Which sample a file is of; None where it is of none."""
    with suppress(OSError, ValueError, pa.ArrowException):
        notes = read_json((pq.read_schema(file).metadata or {})[_NOTES])
        if isinstance(notes, dict) and notes.get("format") == FORMAT:
            return notes
    return None


def _differs(folder: Path, notes: Mapping[str, Any], sizes: Sequence[int]) -> str | None:
    """Why a sample cannot go on in a folder, by the names, notes and columns of its files; None where it can."""
    try:
        _check_strangers(folder)
    except FileError as err:
        return str(err)
    schema = None
    for file in _parts_in(folder):
        found = _notes_of(file)
        if found is None:
            return f"{str(file)!r} is not a part of a sample, or is damaged; name another folder, or remove it"
        number = found.pop("part", None)
        if found != notes:
            key = next((key for key in (*_IN_WORDS, *notes) if found.get(key) != notes.get(key)), "format")
            return f"{str(folder)!r} holds parts of a sample of {_IN_WORDS.get(key, f'another {key}')}; {_INSTEAD}"
        is_part = type(number) is int and 0 <= number < len(sizes) and file.name == part_name(number)
        if not is_part or pq.read_metadata(file).num_rows != sizes[number]:
            return f"{str(file)!r} is not the part that its name says; remove it, and the same call draws it anew"
        columns = pq.read_schema(file).remove_metadata()
        if schema is not None and not columns.equals(schema):
            return f"{str(file)!r} has other columns than the parts before it; {_INSTEAD}"
        schema = columns
    return None


def _damaged(folder: Path) -> str | None:
    """Which part is not as it was written; None where all are. Reads all of them."""
    files = _parts_in(folder)
    with progress_bar(sum(file.stat().st_size for file in files), "checking parts", unit="B") as bar:
        for file in files:
            if not _is_as_written(file, bar.update):
                return f"{str(file)!r} is not as it was written; remove it, and the same call draws it anew"
    return None


def _is_as_written(file: Path, told: Callable[[int], Any]) -> bool:
    """Whether the bytes before a part's footer are those that it has a digest of."""
    with suppress(OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        noted, hashed = read_json(pq.read_metadata(file).metadata[_DIGEST]), sha256()
        left = noted["bytes"]
        with file.open("rb") as opened:
            while left > 0 and (piece := opened.read(min(left, _PIECE))):
                hashed.update(piece)
                told(len(piece))
                left -= len(piece)
        return bool(left == 0 and hashed.hexdigest() == noted["sha256"])
    return False


def _remove(folder: Path) -> None:
    """Remove the parts of another sample, and nothing else."""
    for file in _parts_in(folder):
        if _notes_of(file) is not None:
            file.unlink(missing_ok=True)
    (folder / SUCCESS).unlink(missing_ok=True)


# ---------------------------------------------------------------------------------------------------------------- parts
# There are two ways in which parts together stay as good as one sample:
#
#     rows that have numbers   a tree's row i of n follows from i, so parts share out the numbers: of every k
#                              consecutive ones each part takes one, which a keyed hash decides. Together they are
#                              the rows that one sample of the same seed has.
#     offsets                  a forest shares out states systematically from a random offset on. The k parts take
#                              offsets a k-th apart, in an order of its own for every column, so their roundings
#                              cancel out. Parts of few rows are cut out of a draw of more (`in_chunks`), of which
#                              that is true.
#
# Releases whose rows are independent of each other give every part a stream of its own, and need no more.


Floats = NDArray[np.float64]

MOST_PARTS = 1_000_000
# What tells the streams of parts from all others that the same words may start: "parts" in ASCII.
_OURS = 0x7061727473
_N_WORDS = 4
# What a part takes while it is drawn, where its size is not stated: a value takes up to 32 bytes beside its characters.
_PART_BYTES = 2**28
_VALUE_BYTES, _CHARACTER_BYTES = 32, 4
# Rows that are drawn at once where they are shared out systematically: the more, the less they are off by together.
_CHUNK_ROWS = 250_000


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One of the parts of a sample: which one, and what all of them share."""

    number: int  # from 0 on
    of: int  # how many parts there are
    n_rows: int  # of all parts
    shared: np.random.Generator  # never drawn from: every use copies it

    @property
    def size(self) -> int:
        """How many rows the part has: as many as the others, or one more."""
        return self.n_rows // self.of + (self.number < self.n_rows % self.of)

    @property
    def first(self) -> int:
        """How many rows there are in the parts before it."""
        return self.number * (self.n_rows // self.of) + min(self.number, self.n_rows % self.of)

    def same_for_all(self) -> np.random.Generator:
        """Random numbers that all parts get alike: those that one sample of the same seed begins with."""
        return deepcopy(self.shared)

    def own(self) -> np.random.Generator:
        """Random numbers of this part alone."""
        words = self.same_for_all().bit_generator.random_raw(_N_WORDS).tolist()
        return np.random.default_rng([_OURS, *words, self.number])

    def row_numbers(self, items: NDArray[Any]) -> NDArray[np.int64]:
        """The numbers, among the rows of all parts, of some rows of this one, ascending where those are.

        Of rows 0 to k - 1 of the whole each part has one as its row 0, of rows k to 2k - 1 as its row 1, and so on.
        """
        key = np.uint64(self.same_for_all().bit_generator.random_raw())
        return _row_numbers(items, key, self.number, self.of, self.n_rows)

    def offsets(self) -> Callable[[int], Floats]:
        """What systematic draws start from: a function that gives so many numbers in [0, 1), other ones at each call.

        At each call, those of k parts of one size are random numbers moved by 0, 1/k, ..., (k - 1)/k, in random order.
        """
        n_larger = self.n_rows % self.of
        place, k = (self.number, n_larger) if self.number < n_larger else (self.number - n_larger, self.of - n_larger)

        common = np.random.default_rng([_OURS, *self.same_for_all().bit_generator.random_raw(_N_WORDS).tolist()])

        def draw(size: int) -> Floats:
            larger, others = common.permutation(n_larger), common.permutation(self.of - n_larger)
            turn = (larger if self.number < n_larger else others)[place]
            return np.asarray((common.random(size) + turn / k) % 1.0)

        return draw


def in_chunks(draw: Callable[..., Floats]) -> Callable[..., Floats]:
    """A draw of parts that draws many rows at once, and cuts out parts where these have few.

    A sample that is no larger than that is drawn as one sample of the same seed is. The rows that were drawn last are
    kept, for the parts that come next are usually cut out of them too.
    """
    kept: dict[int, Floats] = {}

    def of_part(n_rows: int, rng: np.random.Generator, *, part: Part | None = None) -> Floats:
        n_chunks = 0 if part is None else max(part.n_rows // _CHUNK_ROWS, 1)
        if part is None or n_chunks >= part.of:
            return draw(n_rows, rng, part=part)
        chunk = part.number * n_chunks // part.of
        first, last = (replace(part, number=-(-one * part.of // n_chunks)).first for one in (chunk, chunk + 1))
        if chunk not in kept:
            kept.clear()
            whole = Part(chunk, n_chunks, part.n_rows, part.shared)
            if n_chunks == 1:
                kept[chunk] = draw(last - first, part.same_for_all())
            else:
                kept[chunk] = draw(last - first, whole.own(), part=whole)
        return np.array(kept[chunk][:, part.first - first : part.first - first + n_rows])

    return of_part


class SampleParts(Sequence[Any]):
    """The parts of a sample, each a table, drawn when it is asked for: `for table in parts`, or `parts[3]`.

    The same seed and number of parts give the same tables, in whatever order and process they are drawn. Nothing is
    kept: a part that is asked for again is drawn again.
    """

    def __init__(
        self,
        draw: Callable[[Part, bool], Any],
        n_rows: int,
        n_parts: int,
        rng: np.random.Generator,
        *,
        described: Callable[[], dict[str, Any]],
    ) -> None:
        self._draw = draw  # a part as a table; as an Arrow table where that is asked for
        self._n_rows, self._n_parts, self._described = n_rows, n_parts, described
        self._n_written = 0
        self._shared = deepcopy(rng)
        rng.bit_generator.random_raw(_N_WORDS)  # so that the next sample of a generator is another one

    def __len__(self) -> int:
        return self._n_parts

    def __repr__(self) -> str:
        return f"SampleParts({self._n_rows:,} rows in {self._n_parts:,} parts)"

    def __getitem__(self, number: Any) -> Any:
        """The table of one part, counted from 0, or from the end where the number is negative."""
        try:
            place = index(number)
        except TypeError:
            raise TypeError(f"parts are drawn one at a time: ask for parts[3], not for parts[{number}]") from None
        if not -self._n_parts <= place < self._n_parts:
            raise IndexError(f"part {place} is asked for, and there are parts 0 to {self._n_parts - 1}")
        return self._draw(self._part(place % self._n_parts), False)

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(self._n_parts))

    @property
    def n_rows(self) -> int:
        """How many rows all parts have together."""
        return self._n_rows

    @property
    def n_written(self) -> int:
        """How many parts the last `to_parquet` drew and wrote; the others were in the folder already."""
        return self._n_written

    def to_parquet(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write every part to a file of a folder, two parts in memory at a time; goes on where it was stopped.

        Files appear whole or not at all, and an empty file `_SUCCESS` when all of them are there.

        Args:
            folder: where the files go, `part-00000.parquet` and so on; it is made where it does not exist. Parts of the
                same sample that are there are kept and not drawn again.
            overwrite: whether the parts of another sample that are there may be replaced.

        Raises:
            FileError: the folder holds another sample or other files, or cannot be written to.
        """
        self._n_written = 0

        def draw(number: int) -> Any:
            self._n_written += 1
            return self._draw(self._part(number), True)

        return write_parts(folder, self._sizes(), draw, self._identity(), overwrite=overwrite)

    def goes_on_in(self, folder: str | Path) -> bool:
        """Whether a folder holds parts of this very sample, and nothing else.

        Args:
            folder: where parts may lie.
        """
        return goes_on_in(folder, self._sizes(), self._identity())

    def _sizes(self) -> list[int]:
        return [self._part(number).size for number in range(self._n_parts)]

    def _part(self, number: int) -> Part:
        return Part(number, self._n_parts, self._n_rows, self._shared)

    def _identity(self) -> dict[str, Any]:
        """What tells this sample from all others: nothing in it is of the private table."""
        words = deepcopy(self._shared).bit_generator.random_raw(_N_WORDS)
        stream = "".join(f"{word:016x}" for word in words.tolist())
        return {"rows": self._n_rows, "parts": self._n_parts, "stream": stream, **self._described()}


def hashed(described: Any) -> str:
    """A digest of what was asked for, which tells two samples apart and says nothing else."""
    return sha256(repr(described).encode()).hexdigest()


def checked_parts(parts: Any, n_rows: int, schema: Schema) -> int:
    """How many parts to draw so many rows in, or a ParameterError."""
    if isinstance(parts, str) and parts == "auto":
        return usual_parts(n_rows, schema)
    if isinstance(parts, bool) or not isinstance(parts, (int, np.integer)) or parts < 1:
        raise ParameterError(f"parts={as_given(parts)} is not a whole number of parts, nor 'auto'")
    if parts > MOST_PARTS:
        raise ParameterError(f"parts is above {MOST_PARTS:,}; ask for fewer and larger parts")
    if parts > max(n_rows, 1):
        raise ParameterError(f"parts={int(parts):,} are more than rows, of which there are {n_rows:,}; ask for fewer")
    return int(parts)


def usual_parts(n_rows: int, schema: Schema) -> int:
    """How many parts a sample has where nobody says: as many as the schema asks for, on any machine alike."""
    a_row = sum(_VALUE_BYTES + _CHARACTER_BYTES * column._longest_text for column in schema.values())
    return min(max(-(-n_rows * a_row // _PART_BYTES), 1), MOST_PARTS)


@compiled
def _row_numbers(items: NDArray[Any], key: np.uint64, number: int, n_parts: int, n_rows: int) -> NDArray[np.int64]:
    """Row j of a part is row j k + (number + h(j)) mod k of all, h a hash of j and the key (the last rounds of
    SplitMix64, Steele et al. 2014); among the rows that are left over when n is no multiple of k, mod their number.
    """
    numbers = np.empty(items.size, dtype=np.int64)
    n_whole = n_rows // n_parts
    for i in range(items.size):
        block = np.int64(items[i])
        width = n_parts if block < n_whole else n_rows - n_whole * n_parts
        h = key + np.uint64(block) * np.uint64(0x9E3779B97F4A7C15)
        h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        h ^= h >> np.uint64(31)
        numbers[i] = block * n_parts + (number + np.int64(h % np.uint64(width))) % width
    return numbers
