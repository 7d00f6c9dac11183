"""Release: a finished, public model. Sampling from it costs nothing, however often.

What was released may be bins (`binned`), weighted points (`points`) or a generator (`generator`). All have a card, draw
rows and go into a file in the same way; a kind says what a draw is and which members its file has.
"""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from spinney.cgroups import total_memory
from spinney.columns import Column
from spinney.errors import ParameterError
from spinney.privacy.events import DiscreteGaussianVector
from spinney.progress import waiting
from spinney.release.answers.asking import Asking
from spinney.release.card import Card
from spinney.release.contradictions import check
from spinney.release.entries import MOST_ROWS
from spinney.release.frames import check_frame_kind, to_frame
from spinney.release.options import explains_options
from spinney.release.parts import Part, SampleParts, checked_parts, hashed
from spinney.release.remarks import of_assumed_rows, of_counted_rows
from spinney.release.reporting import Report, report_of
from spinney.release.seeds import Stream, row_generator
from spinney.release.utility import Utility
from spinney.schema.table import Schema
from spinney.shown import as_given

if TYPE_CHECKING:
    from spinney.release.like import Like

Members = dict[str, bytes]

# Rows are drawn in memory: more than this fit into few machines, and a card may say any number.
_MOST_UNASKED = 2**31
# Bytes that a value takes while it is drawn: 10 to 26 were measured, by kind of release and of table, and the rest is a
# margin for all else that is in memory. Parts that are recommended leave room for what is made of them.
BYTES_A_VALUE = 32
_BYTES_OF_PARTS = 64


class Release(Asking):
    """A released model with its card. `sp.load` returns one, and a fitted synthesizer holds one in `release_`.

    Args:
        card: the guarantee, the charges and the plan.
    """

    kind: ClassVar[str]  # what a file is marked with
    member_names: ClassVar[tuple[str, ...]]  # what it holds besides the card
    protects_persons: ClassVar[bool] = False  # whether persons with all their rows are its unit, rather than rows
    stream: Stream = "own"  # how seeds become rows; "given" of releases from before there was another

    def __init__(self, card: Card) -> None:
        self._card = card

    @cached_property
    def card(self) -> Card:
        """The guarantee, the charges and the plan, with remarks on what the released numbers say about the schema."""
        of_rows = [*of_assumed_rows(self._card, self._noisy_total), *of_counted_rows(self._card, self._noisy_total)]
        return replace(self._card, remarks=(*of_rows, *self._remarks()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.card!r})"

    def _repr_html_(self) -> str | None:
        from spinney.release.fragment import card_fragment

        return card_fragment(self.card, type(self).__name__)

    @property
    def schema(self) -> Schema:
        """What was public about the table, bounds included."""
        return self._card.schema

    @property
    def utility(self) -> Utility | None:
        """How far the release is from the private table: figures that were paid for, with exact noise; else None."""
        return self._card.utility

    @explains_options
    @waiting("drawing rows")
    def sample(
        self,
        n_rows: int | None = None,
        *,
        seed: int | np.random.Generator | None = None,
        frame: str | None = None,
        like: Any = None,
        parts: int | str | None = None,
    ) -> Any:
        """Synthetic rows, in the kind of table that was fitted. Costs no epsilon, however often.

        Releases of forests also take `where` and `balance`, those of trees and grids `placement`.

        Args:
            n_rows: how many rows; by default as many as the private table had where that is public, else a noisy total.
            seed: repeats the same rows; the noise of the release is not affected. Rows are drawn by a stream of their
                own, so the seed may serve again for what is done with them; of a generator a few words are drawn.
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind of `like`, else the kind that was
                fitted.
            like: a pandas, polars or pyarrow table or a numpy array, or its `dtypes` or `schema`: the rows come back in
                the same kind of table, with the same column types. Only types are looked at, never values.
            parts: for more rows than fit into memory: in how many parts to draw them, or "auto". Gives a `SampleParts`
                in place of a table: iterate over it for one table after another, ask it for `[3]`, or write all parts
                to files with `to_parquet(folder)`. Together they are as good as one sample.

        Raises:
            ParameterError: an option is unknown or out of range, or a type in `like` cannot hold what the schema
                allows.
        """
        return self._sample(self._draw, n_rows, seed=seed, frame=frame, like=like, parts=parts)

    @explains_options
    def weighted_points(self, *, frame: str | None = None) -> tuple[Any, NDArray[np.float64]]:
        """The released distribution as points and weights, where it has such a form.

        Released points come with the weights that were released. Releases of trees and grids also take `placement`.

        Args:
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind that was fitted.

        Raises:
            ParameterError: an option is unknown, or this kind of release has no points.
        """
        check_frame_kind(self.card.frame if frame is None else frame)
        raise ParameterError(f"a release of {self._contents()} has no weighted points; use sample() instead")

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release to one file, whole or not at all.

        Args:
            path: the file; `sp.load` reads it.
            overwrite: whether a file that is already there may be replaced.

        Raises:
            FileError: the file exists, or cannot be written.
        """
        from spinney.release.storage import save

        save(self, path, overwrite=overwrite)

    def report(
        self,
        path: str | Path | None = None,
        *,
        ledger: Any = None,
        title: str | None = None,
        purpose: str | None = None,
        contact: str | None = None,
        licence: str | None = None,
        level: float = 0.95,
        overwrite: bool = False,
    ) -> Report:
        """A page for whoever signs the release off: the promise in plain words, every column with error bars, the
        budget, the schema, and the questions of NIST SP 800-226 and of a review board. Costs no epsilon.

        Args:
            path: a file that ends in .html, which needs jinja2 and matplotlib, or in .json; by default none is written.
            ledger: the account that the release was charged to, to show who charged what and when.
            title: what the table is called; this and the following texts are shown as stated by the holder.
            purpose: what the table was collected and is released for.
            contact: whom readers may ask.
            licence: under which terms the rows may be used.
            level: the probability that intervals hold with.
            overwrite: whether a file that is already there may be replaced.

        Returns:
            What the report says, as plain data: `to_dict()`, `to_html()`, `save(path)`.

        Raises:
            FileError: the file exists, or cannot be written.
            MissingExtraError: a page was asked for, and jinja2 or matplotlib is missing.
            ParameterError: the ending is another one, a text is too long, or the level is not between 0 and 1.
        """
        stated = {"title": title, "purpose": purpose, "contact": contact, "licence": licence}
        return report_of(self, path, overwrite=overwrite, ledger=ledger, level=level, **stated)

    # ------------------------------------------------------------------------------------------------- drawing

    def _sample(
        self,
        draw: Callable[..., NDArray[np.float64]],
        n_rows: int | None,
        *,
        seed: int | np.random.Generator | None,
        frame: str | None,
        like: Any,
        parts: int | str | None,
        drawn: Mapping[str, Column] | None = None,
        asked: Mapping[str, Any] | None = None,
    ) -> Any:
        """Rows whose positions `draw` gives, which count from the low bounds of `drawn`, by default the schema's.

        What was `asked` of the draw tells samples in parts from each other.
        """
        types = None if like is None else self._types(like, frame)
        kind = "pyarrow" if types is not None else check_frame_kind(self.card.frame if frame is None else frame)
        if n_rows is None:
            n_rows = self._default_rows()
        if parts is None:
            n_rows, n_parts = checked_number_of_rows(n_rows, n_columns=len(self.schema)), 1
        else:
            n_rows = _checked_whole(n_rows)
            n_parts = checked_parts(parts, n_rows, self.schema)
            checked_number_of_rows(-(-n_rows // n_parts), n_columns=len(self.schema), of_part=True)
            seed = secrets.randbits(63) if seed is None else seed  # so that it can be noted
        rng = row_generator(seed, self.stream)
        if types is not None:
            types.check(n_rows)
        if n_rows:
            self._require_contents()

        def rows(size: int, rng: np.random.Generator, kind: str, part: Part | None) -> Any:
            if size == 0:
                table = to_frame(np.empty((len(self.schema), 0)), self.schema, kind)
            else:
                table = to_frame(draw(size, rng, part=part), self.schema, kind, drawn=drawn, part=part)
            return table if types is None else types.convert(table)

        if parts is None:
            return rows(n_rows, rng, kind, None)

        def part_rows(part: Part, for_file: bool) -> Any:
            return rows(part.size, part.own(), "pyarrow" if for_file else kind, part)

        def described() -> dict[str, Any]:
            from spinney.release.storage import digest

            noted = int(seed) if isinstance(seed, (int, np.integer)) else None
            wanted = hashed(asked), None if types is None else hashed(types.in_words())
            return {"release": digest(self), "seed": noted, "asked": wanted[0], "types": wanted[1]}

        return SampleParts(part_rows, n_rows, n_parts, rng, described=described)

    def _types(self, like: Any, frame: str | None) -> Like:
        """The column types that `like` asks for."""
        from spinney.release.like import read_like

        return read_like(like, self.schema, frame=frame)

    def _points_frame(
        self, points: tuple[NDArray[np.float64], NDArray[np.float64]], frame: str | None
    ) -> tuple[Any, NDArray[np.float64]]:
        """Positions (n_columns, n_points) as a table, and weights (n_points,)."""
        positions, weights = points
        return to_frame(positions, self.schema, check_frame_kind(self.card.frame if frame is None else frame)), weights

    def _default_rows(self) -> int:
        """As many rows as the private table had where that is public, else a noisy total; not without end."""
        n_rows = self.card.n_rows if self.card.n_rows is not None else self._noisy_total()
        if n_rows > self._most_unasked():
            raise ParameterError(
                f"the card says that the table had {n_rows:,} rows, more than are drawn without being asked for, or "
                "than the released counts make likely; say how many you want: sample(n_rows=...), or --rows"
            )
        return n_rows

    def _most_unasked(self) -> int:
        """More rows than this are drawn only where they are asked for."""
        return _MOST_UNASKED

    def _contents(self) -> str:
        """What was released, in words."""
        return self.card.contents

    # ------------------------------------------------------------------------------- what a kind says of itself

    @abstractmethod
    def _draw(self, n_rows: int, rng: np.random.Generator, *, part: Part | None = None) -> NDArray[np.float64]:
        """Positions of `n_rows` rows along the columns (n_columns, n_rows), as `to_frame` takes them.

        They may be a part of a larger sample, of which `rng` is the part's own; rows that are independent of each other
        need to know no more of it.
        """

    def _remarks(self) -> list[str]:
        """What the released numbers say about the schema; nothing, unless a kind looks at them."""
        return []

    def _counts_together(self, names: Collection[str]) -> bool:
        """Whether one counted table holds all these columns; nothing is known of it, unless a kind says so."""
        del names
        return False

    def _is_coarse(self, names: Collection[str]) -> bool:
        """Whether what was counted of columns together knows ranges of their values only."""
        del names
        return False

    @property
    def _misfit_factor(self) -> float | None:
        """How far the model is from what was measured of pairs apart, in units of the noise; None where unknown."""
        return None

    @abstractmethod
    def _noisy_total(self) -> int:
        """How many rows to draw where the true number is private."""

    @abstractmethod
    def _require_contents(self) -> None:
        """Raise if there is nothing to draw from."""

    def verify_contents(self) -> list[str]:
        """What was compared with the charges on the card, in words; ContradictionError where two numbers differ."""
        check(any(isinstance(event, DiscreteGaussianVector) for event in self.card.events), "no charge pays for it")
        return []

    def verify_model(self) -> list[str]:
        """What was fitted again to the numbers that the file holds, in words; nothing, unless a kind can do so."""
        return []

    def unverified(self) -> list[tuple[str, str]]:
        """What of the contents nothing else in the file bears out, and why: pairs of words."""
        return [
            (
                "the noise of the released numbers",
                "the file holds them once, and says of their noise what the card says",
            )
        ]

    @abstractmethod
    def to_members(self) -> tuple[dict[str, Any], Members]:
        """What a file holds besides the card: JSON-ready entries, and further members by name."""

    @classmethod
    @abstractmethod
    def from_members(cls, card: Card, described: Mapping[str, Any], members: Members) -> Self:
        """Read what `to_members` gave.

        Args:
            card: the card of the release.
            described: the JSON entries of the file.
            members: its other members, by name.

        Raises:
            KeyError, TypeError, ValueError: the file does not hold a release of this kind.
        """


def checked_number_of_rows(n_rows: Any, *, n_columns: int, of_part: bool = False) -> int:
    """How many rows to draw at once, or a ParameterError, where the memory of this machine would not hold them too."""
    rows = _checked_whole(n_rows)
    memory, needed = total_memory(), BYTES_A_VALUE * rows * n_columns
    if memory is not None and needed > memory:
        fitting = max(1, memory // (_BYTES_OF_PARTS * n_columns))
        size = 10 ** (len(str(fitting)) - 1)  # a round number below it
        what = f"n_rows={rows:,}: rows are drawn in memory, and so many"
        if of_part:
            what = f"parts: a part of {rows:,} rows is drawn in memory, and so many"
        raise ParameterError(
            f"{what} of {n_columns} columns take about {needed / 2**30:,.1f} GiB, of which this machine or container "
            f"has {memory / 2**30:,.1f}; draw them in parts of {fitting // size * size:,} rows or fewer: "
            "sample(n_rows, parts=...), or spinney sample --out FOLDER/"
        )
    return rows


def _checked_whole(n_rows: Any) -> int:
    """A number of rows, or a ParameterError."""
    if isinstance(n_rows, bool) or not isinstance(n_rows, (int, np.integer)) or n_rows < 0:
        raise ParameterError(f"n_rows={as_given(n_rows)} is not a whole number of rows")
    if n_rows > MOST_ROWS:
        size = int(n_rows).bit_length() - 1  # not its digits, which may be thousands
        raise ParameterError(f"n_rows is 2^{size} or more, and above 2^40 nothing is drawn at once; ask for fewer rows")
    return int(n_rows)
