"""Release: a finished, public model. Sampling from it costs nothing, however often.

What was released may be bins (`binned`), weighted points (`points`) or a generator (`generator`). All have a card, draw
rows and go into a file in the same way; a kind says what a draw is and which members its file has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.privacy.events import DiscreteGaussianVector
from spinney.progress import waiting
from spinney.release.card import Card
from spinney.release.contradictions import check
from spinney.release.entries import MOST_ROWS
from spinney.release.frames import check_frame_kind, to_frame
from spinney.schema.table import Schema
from spinney.suggest import did_you_mean

Members = dict[str, bytes]

# What other libraries call the options of `sample`.
_ELSEWHERE = {"n": "n_rows", "size": "n_rows", "count": "n_rows", "random_state": "seed", "conditions": "where"}
_ELSEWHERE |= {"output_format": "frame", "as_frame": "frame"}
_OF_FORESTS = "; conditions are for forests: fit with sp.ForestSynthesizer, or filter the rows"
# Rows are drawn in memory: more than this fit into few machines, and a card may say any number.
_MOST_UNASKED = 2**31


class Release(ABC):
    """A released model with its card. `sp.load` returns one, and a fitted synthesizer holds one in `release_`."""

    kind: ClassVar[str]  # what a file is marked with
    member_names: ClassVar[tuple[str, ...]]  # what it holds besides the card
    options: ClassVar[tuple[str, ...]] = ()  # what `sample` takes besides n_rows, seed and frame
    point_options: ClassVar[tuple[str, ...] | None] = None  # of `weighted_points`, besides frame, where it has such

    def __init__(self, card: Card) -> None:
        self.card = card

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.card!r})"

    @property
    def schema(self) -> Schema:
        """What was public about the table, bounds included."""
        return self.card.schema

    @waiting("drawing rows")
    def sample(
        self,
        n_rows: int | None = None,
        *,
        seed: int | np.random.Generator | None = None,
        frame: str | None = None,
        **options: Any,
    ) -> Any:
        """Synthetic rows, in the kind of table that was fitted.

        Args:
            n_rows: how many; by default as many as the private table had where that is public, else a noisy total.
                `num_rows` means the same.
            seed: repeats the same rows; the noise of the release is not affected.
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind that was fitted.
            options: what this kind of release lets one choose: of bins, where rows lie in them (placement="tilted").
        """
        n_rows = one_number_of_rows(n_rows, options)
        self._refuse_unknown("sample", options, ("n_rows", "seed", "frame", *self.options))
        draw = self._drawing(**options)
        kind = check_frame_kind(frame or self.card.frame)
        if n_rows is None:
            n_rows = self._default_rows()
        n_rows, rng = checked_number_of_rows(n_rows), checked_seed(seed)
        if n_rows == 0:
            return to_frame(np.empty((len(self.schema), 0)), self.schema, kind)
        self._require_contents()
        return to_frame(self._draw(n_rows, rng, **draw), self._drawn_schema(**draw), kind)

    def weighted_points(self, *, frame: str | None = None, **options: Any) -> tuple[Any, NDArray[np.float64]]:
        """The released distribution as points and weights, where it has such a form.

        Bins give the paper's output Q, their centres with weights that add up to 1; with `placement="tilted"` points
        lean toward the denser neighbour. Released points come with the weights that were released.
        """
        kind = check_frame_kind(frame or self.card.frame)
        if self.point_options is None:
            raise ParameterError(f"a release of {self.card.contents} has no weighted points; use sample() instead")
        self._refuse_unknown("weighted_points", options, ("frame", *self.point_options))
        positions, weights = self._weighted_points(**options)
        return to_frame(positions, self.schema, kind), weights

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release to one file, whole or not at all."""
        from spinney.release.storage import save

        save(self, path, overwrite=overwrite)

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

    # ------------------------------------------------------------------------------- what a kind says of itself

    def _refuse_unknown(self, verb: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
        """Raise where an option is not one of those that this kind of release has, and say which these are."""
        for name in given:
            if name not in known:
                hint = _OF_FORESTS if name in ("where", "balance") else did_you_mean(name, known)
                if _ELSEWHERE.get(name) in known:
                    hint = f"; did you mean {_ELSEWHERE[name]!r}?"
                raise ParameterError(
                    f"{verb}() has no option {name!r} for a release of {self.card.contents}; "
                    f"its options are {', '.join(known)}{hint}"
                )

    def _drawing(self) -> dict[str, Any]:
        """The options of a draw, checked; none by default."""
        return {}

    @abstractmethod
    def _draw(self, n_rows: int, rng: np.random.Generator, **options: Any) -> NDArray[np.float64]:
        """Positions of `n_rows` rows along the columns (n_columns, n_rows), as `to_frame` takes them."""

    def _drawn_schema(self, **options: Any) -> Schema:  # noqa: ARG002
        """The columns from whose low bounds the positions of a draw count: the release's own, unless they were cut."""
        return self.schema

    @abstractmethod
    def _noisy_total(self) -> int:
        """How many rows to draw where the true number is private."""

    @abstractmethod
    def _require_contents(self) -> None:
        """Raise if there is nothing to draw from."""

    def _weighted_points(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Positions (n_columns, n_points) and weights (n_points,), where `point_options` says that there are such."""
        raise NotImplementedError

    def verify_contents(self) -> list[str]:
        """What was compared with the charges on the card, in words; ContradictionError where two numbers differ."""
        check(any(isinstance(event, DiscreteGaussianVector) for event in self.card.events), "no charge pays for it")
        return []

    @abstractmethod
    def to_members(self) -> tuple[dict[str, Any], Members]:
        """What a file holds besides the card: JSON-ready entries, and further members by name."""

    @classmethod
    @abstractmethod
    def from_members(cls, card: Card, described: Mapping[str, Any], members: Members) -> Self:
        """Read what `to_members` gave; KeyError, TypeError or ValueError where it is not that."""


def one_number_of_rows(n_rows: Any, options: dict[str, Any]) -> Any:
    """The number of rows, which may also be given as `num_rows`; takes that out of the options."""
    other = options.pop("num_rows", None)
    if n_rows is not None and other is not None:
        raise ParameterError("n_rows and num_rows are both given, and mean the same; give n_rows")
    return other if n_rows is None else n_rows


def checked_number_of_rows(n_rows: Any) -> int:
    """How many rows to draw, or a ParameterError."""
    if isinstance(n_rows, bool) or not isinstance(n_rows, (int, np.integer)) or n_rows < 0:
        raise ParameterError(f"n_rows={n_rows!r} is not a whole number of rows")
    if n_rows > MOST_ROWS:
        size = int(n_rows).bit_length() - 1  # not its digits, which may be thousands
        raise ParameterError(f"n_rows is 2^{size} or more, and above 2^40 nothing is drawn at once; ask for fewer rows")
    return int(n_rows)


def checked_seed(seed: Any) -> np.random.Generator:
    """What draws the rows, or a ParameterError."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ParameterError(f"seed={seed!r} is not a non-negative whole number") from None
