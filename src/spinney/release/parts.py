"""Samples in parts: `sample(n_rows, parts=k)`, for more rows than fit into memory.

Every part can be drawn by itself, in any order and in any process: what it needs of the others follows from the seed.
There are two ways in which parts together stay as good as one sample:

    rows that have numbers   a tree's row i of n follows from i, so parts share out the numbers: of every k consecutive
                             ones each part takes one, which a keyed hash decides. Together they are the rows that one
                             sample of the same seed has.
    offsets                  a forest shares out states systematically from a random offset on. The k parts take offsets
                             a k-th apart, in an order of its own for every column, so their roundings cancel out.
                             Parts of few rows are cut out of a draw of more (`in_chunks`), of which that is true.

Releases whose rows are independent of each other give every part a stream of its own, and need no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from hashlib import sha256
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.compiled import compiled
from spinney.errors import ParameterError
from spinney.schema.table import Schema
from spinney.shown import as_given

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
        from spinney.release.part_files import write_parts

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
        from spinney.release.part_files import goes_on_in

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
    a_row = sum(_VALUE_BYTES + _CHARACTER_BYTES * column.longest_text for column in schema.values())
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
