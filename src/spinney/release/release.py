"""Release: a finished, public model. Sampling from it costs nothing, however often. PUBLIC.

What is released may be bins, moments, weighted points, a generator, a forest or persons. All have a card, draw
rows and go into a file in the same way; a kind says what a draw is and which members its file has.

    options           methods that list their options, and errors that explain a wrong one
    reports           what a report is to those who ask a release for one
    seeds             how the seed of a draw becomes its generator
    several draws     several tables from one release, whose spread carries the noise
    the base class    the base class of all kinds
"""

from __future__ import annotations

import inspect
import secrets
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, TypeVar, cast, get_args

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Column
from spinney.errors import ParameterError
from spinney.machine import total_memory
from spinney.privacy.mechanisms import DiscreteGaussianVector
from spinney.progress import waiting
from spinney.release.answers.ask import Asking
from spinney.release.card import MOST_ROWS, Card, check, check_frame_kind, of_assumed_rows, of_counted_rows
from spinney.release.frames import to_frame
from spinney.release.parts import Part, SampleParts, checked_parts, hashed
from spinney.release.utility import Utility
from spinney.schema.schema import Schema
from spinney.text import as_given, did_you_mean

if TYPE_CHECKING:
    from spinney.release.answers.asked import Replies
    from spinney.release.frames import Like
    from spinney.release.provenance import VerificationReport
    from spinney.release.verify import Verification


# -------------------------------------------------------------------------------------------------------------- options
# Signatures that list their options, and errors that explain a wrong one.
#
# `sample` and `weighted_points` name every option, so that `help`, editors and type checkers know them. Python's own
# message for an unknown one says neither which there are nor which was meant; `explains_options` does. It also lets
# `num_rows`, as other libraries call it, stand for `n_rows`.


F = TypeVar("F", bound=Callable[..., Any])

# What other libraries call the options of `sample`.
_ELSEWHERE = {"n": "n_rows", "size": "n_rows", "count": "n_rows", "random_state": "seed", "conditions": "where"}
_ELSEWHERE |= {"output_format": "frame", "as_frame": "frame", "dtypes": "like", "schema": "like"}
_OF_MOMENTS = "; several draws are for forests and for trees with moments, whose noise can be drawn again"
_OF_PERSONS = "; persons are drawn with all their rows: say how many with `persons`"
_ROWS = ("n_rows", "num_rows", "rows", "n", "size", "count")
_OF_FORESTS = "; conditions are for forests: fit with sp.ForestSynthesizer, or filter the rows"


def explains_options(method: F) -> F:
    """A decorator: an option that the method lacks raises a ParameterError that lists its options.

    The signature stays that of the method. Its class says by `_contents()` what the release holds.
    """
    known = [name for name in inspect.signature(method).parameters if name != "self"]

    @wraps(method)
    def checked(self: Any, *arguments: Any, **options: Any) -> Any:
        if "n_rows" in known and "num_rows" in options:
            given = arguments[0] if arguments else options.pop("n_rows", None)
            arguments = (one_number_of_rows(given, options), *arguments[1:])
        if not options.keys() <= set(known):
            contents = "persons" if "persons" in known else self._contents()
            _refuse_unknown(method.__name__, contents, options, known)
        return method(self, *arguments, **options)

    return cast(F, checked)


def one_number_of_rows(n_rows: Any, options: dict[str, Any]) -> Any:
    """The number of rows, which may also be given as `num_rows`; takes that out of the options."""
    other = options.pop("num_rows", None)
    if n_rows is not None and other is not None:
        raise ParameterError("n_rows and num_rows are both given, and mean the same; give n_rows")
    return other if n_rows is None else n_rows


def _refuse_unknown(verb: str, contents: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise where an option is not one of those that this kind of release has, and say which these are."""
    for name in given:
        if name not in known:
            hint = _OF_FORESTS if name in ("where", "balance") else did_you_mean(name, known)
            hint = _OF_MOMENTS if name == "draws" else hint
            if _ELSEWHERE.get(name) in known:
                hint = f"; did you mean {_ELSEWHERE[name]!r}?"
            if "persons" in known and name not in _ELSEWHERE:
                hint = did_you_mean(name, known)
            if "persons" in known and name in _ROWS:
                hint = _OF_PERSONS
            raise ParameterError(
                f"{verb}() has no option {name!r} for a release of {contents}; its options are {', '.join(known)}{hint}"
            )


# -------------------------------------------------------------------------------------------------------------- reports
# What a report is to those who ask a release for one; the room that makes reports is above, and is found on use.


class Report(Protocol):
    """What a report says, as plain data that can be shown or saved."""

    @property
    def publishable(self) -> bool:
        """Whether it holds nothing that was computed from the real table, and its guarantee is not void."""
        ...

    @property
    def cuts(self) -> Mapping[str, list[Any]]:
        """By column what each of its bars stands for."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data."""
        ...

    def to_html(self) -> str:
        """The report as one page."""
        ...

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write it as the ending says, .html or .json."""
        ...

    def with_holder(self, figures: Mapping[str, Any]) -> Report:
        """The same beside figures of the real table."""
        ...


# ---------------------------------------------------------------------------------------------------------------- seeds
# How the seed of a draw becomes the generator that draws it.
#
# A user's seed is often used twice: for the rows, and for what is done with them, a subsample or a shuffle. Were both
# to take the stream of `default_rng(seed)`, they would take the same numbers, and rows that were put in an order by a
# permutation would be put back by the next: the first thousand of a shuffle are then of one class. So rows have a
# stream of their own, which the first words of the seed's and a constant start. Of a generator the words are drawn,
# so its next draw gives other rows and what comes out of it afterwards has nothing to do with them.
#
# Releases from before took the seed's stream itself. Files say which of the two theirs is, and draw what they drew.


Stream = Literal["given", "own"]
STREAMS: tuple[Stream, ...] = get_args(Stream)

# What tells a stream for rows from all others that the same words may start: "spinney" in ASCII.
_OURS = 0x7370696E6E6579
_N_WORDS = 4


def checked_seed(seed: Any) -> np.random.Generator:
    """The generator of a seed as numpy has it, or a ParameterError."""
    with suppress(TypeError, ValueError):  # whose text may quote a table that was given by mistake
        return np.random.default_rng(seed)
    raise ParameterError(f"seed={as_given(seed)} is not a non-negative whole number")


def row_generator(seed: Any, stream: Stream) -> np.random.Generator:
    """What draws the rows of a seed, or a ParameterError."""
    given = checked_seed(seed)
    if stream == "given":
        return given
    return np.random.default_rng([_OURS, *given.bit_generator.random_raw(_N_WORDS).tolist()])


# -------------------------------------------------------------------------------------------------------- several draws
# Several synthetic tables from one release, whose spread carries the noise: how many, and by which random numbers.
#
# A table that is drawn from a release hides how far its noise carries. So each of several tables is drawn from a
# model of its own, fitted to the released numbers with fresh noise of the same law. Draw k of a seed is the same
# table however many there are.


# Analyses of one table are wrong about their own error, and very many models take very long.
_MOST_DRAWS = 1_000
# What tells the streams of draws from all others that the same words may start: "draws" in ASCII.
_OURS_OF_DRAWS = 0x6472617773


def checked_draws(draws: Any) -> int:
    """How many tables to draw, at least two; a ParameterError otherwise."""
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 1:
        raise ParameterError(f"draws={as_given(draws)} is not a whole number of tables; 20 are enough for most")
    if draws == 1:
        raise ParameterError(
            "draws=1 is one table, which has no spread to read an error from; leave draws out for the best single "
            "table, or ask for draws=20"
        )
    if draws > _MOST_DRAWS:
        raise ParameterError(f"draws={int(draws):,} is more than {_MOST_DRAWS:,}; 20 are enough for most analyses")
    return int(draws)


def refuse_parts_of_draws(parts: Any) -> None:
    """Raise a ParameterError where several tables are asked for, and parts of each."""
    if parts is not None:
        raise ParameterError("draws and parts are both given; draw several tables, or one table in parts")


def draw_generators(seed: Any, n_draws: int) -> list[np.random.Generator]:
    """A stream of random numbers for each draw; of a generator a few words are drawn."""
    words = checked_seed(seed).bit_generator.random_raw(_N_WORDS).tolist()
    return [np.random.default_rng([_OURS_OF_DRAWS, *words, draw]) for draw in range(n_draws)]


# ------------------------------------------------------------------------------------------------------- the base class
# The base class of all releases. All have a card, draw rows and go into a file in the same way; a kind says
# what a draw is and which members its file has.


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
    file: Path | None = None  # that it was read from
    _verified: Verification | None = None  # what was found when it was read
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
        return self.card.document(type(self).__name__).html()

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
        from spinney.release.file import save

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
        made: Report = import_module("spinney.report.page").released_report(
            self, path, overwrite=overwrite, ledger=ledger, level=level, **stated
        )
        return made

    def ask(
        self,
        *questions: str,
        level: float = 0.95,
        of: str = "table",
        certified: bool = False,
        force: bool = False,
        simultaneous: bool = False,
    ) -> Replies:
        """Answers to questions in words, such as "mean(income) by region where age in 30..40". Costs no epsilon.

        The language is that of `spinney ask`, and `print` shows the answers as the command does. Where some of several
        questions are refused, the others are answered, and `refused` says why.

        Args:
            questions: count, proportion, mean(COLUMN), median(COLUMN), quantile(COLUMN, SHARE), table or a regression,
                then `by` and columns, then `where` and conditions, one string each.
            level: the probability that an interval holds with.
            of: "table", or "population" where the rows are a sample of one.
            certified: whether to give certified intervals only, or an error where there is none.
            force: whether an interval is given where the release does not support one.
            simultaneous: whether all intervals of a table hold at once with this probability.

        Returns:
            A sequence of replies, each with its `question` and `answer`; `answer` of the whole where one was asked,
            `to_dict()`, `to_arrow()`.

        Raises:
            ParameterError: an option is wrong, or the only question is not understood or cannot be answered.
        """
        from spinney.release.answers.asked import ask

        options = {"certified": certified, "force": force, "simultaneous": simultaneous}
        return ask(self, questions, level=level, of=of, **options)

    def verify(
        self, *, schema: Any = None, ledger: Any = None, key: Any = None, signature: Any = None
    ) -> VerificationReport:
        """The guarantee worked out again from the charges, what was compared, and what could not be. Costs no epsilon.

        Of a release that was read by `sp.load` the file is looked at too. Read it again where you do not trust what
        happened since. No file can prove that the noise was really drawn. A large forest takes minutes.

        Args:
            schema: the schema that was stated beforehand, or linked tables, or a file of either: whether it is that of
                the release.
            ledger: a ledger or its place: whether it holds the charges of the release.
            key: the file of a public key, to check the signatures with.
            signature: the file of the signature; by default the one beside the file of the release, and the one inside.

        Returns:
            `guarantee`, `checks`, `not_checked`, `digest`; `print` it, `to_dict()`.

        Raises:
            FileError: something does not hold, or a file cannot be read.
            ParameterError: a signature is given without a key.
        """
        made: VerificationReport = import_module("spinney.synthesizers.verify").verify(
            self, schema=schema, ledger=ledger, key=key, signature=signature
        )
        return made

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
            from spinney.release.file import digest

            noted = int(seed) if isinstance(seed, (int, np.integer)) else None
            wanted = hashed(asked), None if types is None else hashed(types.in_words())
            return {"release": digest(self), "seed": noted, "asked": wanted[0], "types": wanted[1]}

        return SampleParts(part_rows, n_rows, n_parts, rng, described=described)

    def _types(self, like: Any, frame: str | None) -> Like:
        """The column types that `like` asks for."""
        from spinney.release.frames import read_like

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
