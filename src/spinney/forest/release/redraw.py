"""Models that might have been released: everything that was measured with fresh noise, and fitted again.

What the noise decided stays: tree shapes, leaves, states, boxes, which columns were counted together. Numbers are drawn
anew by the laws of their noise, around one of two:

    model      what the released model says of every number: the truth is known to be the model, so the distance of
               redrawn models from it is what the noise does, the bias of cuts and projections included
    numbers    the numbers that were released: the noise once more, for rows whose spread is to carry it

and pass through all that a fit does to them (`refit`). The tilt by sums of products is fitted anew too, to redrawn
sums and by rows of the redrawn model, but only once it is asked for: it takes longer than all the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.measured import NoiseLaw, TiltFit
from spinney.forest.release.place_model import PlaceModel
from spinney.forest.release.products import ReleasedProducts
from spinney.forest.release.refit import Model, Numbers, Refitter
from spinney.forest.release.signs import signs
from spinney.graph.draw import draw_states
from spinney.graph.model import GraphModel
from spinney.graph.tilt import Pair
from spinney.graph.tilting import Evidence, Products, fit_tilt
from spinney.parallel import each, n_threads
from spinney.schema.column_axis import column_axes

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease

Around = Literal["model", "numbers"]

# Rows by which the products of the tilted model are known.
_N_DRAWN = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class Retilt:
    """How the tilt is fitted again: to sums of which the released ones are, or the model's, with fresh noise."""

    products: ReleasedProducts
    held: tuple[Pair, ...]  # pairs that were counted
    fit: TiltFit
    sums: tuple[Floats, ...]  # without the fresh noise

    def of(self, model: GraphModel, total: float, rng: np.random.Generator) -> ReleasedProducts:
        """Fresh sums, and the tilt of a model by them."""
        law = NoiseLaw("discrete gaussian", self.products.variance)
        sums = tuple(np.rint(table + law.draw(rng, table.shape)).astype(np.int64) for table in self.sums)
        tilt = self.products.tilt
        evidence = Evidence(
            groups=tilt.groups,
            functions=tuple(signs(number).astype(np.float64) for number in tilt.n_groups),
            products=Products(
                self.products.pairs,
                tuple(table.astype(np.float64) for table in sums),
                math.sqrt(self.products.variance),
            ),
            held=self.held,
            held_std=self.fit.held_std,
            total=total,
        )
        fitted = fit_tilt(model, evidence, n_drawn=self.fit.n_drawn, steps=self.fit.steps, rng=rng)
        return replace(self.products, sums=sums, tilt=fitted)


@dataclass(frozen=True, eq=False)
class Redrawn:
    """A model that might have been released: columns and places with their weights, and the law of their states."""

    columns: Mapping[str, ColumnModel]
    places: Mapping[str, PlaceModel]
    model: GraphModel
    total: float
    numbers: Numbers
    retilt: Retilt | None
    _stream: int  # starts the random numbers of the tilt

    @cached_property
    def products(self) -> ReleasedProducts | None:
        """Redrawn sums of products and the tilt by them; fitted when it is first asked for."""
        if self.retilt is None:
            return None
        return self.retilt.of(self.model, self.total, np.random.default_rng(self._stream))


class Redrawing:
    """Makes such models of one release; a ParameterError where its file does not hold what that takes."""

    def __init__(self, release: ForestRelease) -> None:
        measured = release.measured
        if measured is None:
            raise ParameterError(
                "this release does not hold its noisy counts, because it was saved by an earlier version of Spinney; "
                "sample(n_rows) works as before, and a new fit can be redrawn"
            )
        if release.card.parameters.get("prior") is not None:
            raise ParameterError(
                "a release that was fitted with a prior cannot be redrawn, because its file does not hold the prior's "
                "counts; fit without prior= for several draws"
            )
        self._release = release
        self.names = release.variables
        self.refitter = refitter(release)
        self._around: dict[Around, tuple[Numbers, tuple[Floats, ...]]] = {}

    def around(self, around: Around) -> tuple[Numbers, tuple[Floats, ...]]:
        """The numbers that fresh noise is added to, and the sums of products."""
        if around not in self._around:
            numbers = self.refitter.observed() if around == "numbers" else self.refitter.expected()
            products, sums = self._release.products, tuple[Floats, ...]()
            if products is not None:
                observed = tuple(table.astype(np.float64) for table in products.sums)
                sums = observed if around == "numbers" else _expected_sums(self.refitter, products)
            self._around[around] = numbers, sums
        return self._around[around]

    def draw(self, rng: np.random.Generator, around: Around) -> Redrawn:
        """One model."""
        numbers, sums = self.around(around)
        noisy = self.refitter.with_noise(numbers, rng)
        models, model = self.refitter.fit(noisy)
        named = dict(zip(self.names, models, strict=True))
        release, measured = self._release, self.refitter.measured
        retilt = None
        if release.products is not None and measured.tilt is not None:
            retilt = Retilt(release.products, release.counted_pairs, measured.tilt, sums)
        return Redrawn(
            {name: one for name, one in named.items() if isinstance(one, ColumnModel)},
            {name: one for name, one in named.items() if isinstance(one, PlaceModel)},
            model,
            self.refitter.total(noisy),
            noisy,
            retilt,
            int(rng.integers(2**63)),
        )

    def draws(self, generators: Sequence[np.random.Generator], around: Around) -> list[Redrawn]:
        """A model for each stream of random numbers, by all threads."""
        self.around(around)
        return each(lambda rng: self.draw(rng, around), generators, title="fitting redrawn models", unit="model")

    def one_by_one(
        self, generators: Sequence[np.random.Generator], around: Around
    ) -> Iterator[tuple[Redrawn, np.random.Generator]]:
        """The same, each with the random numbers that are left of its stream; no more at a time than threads make."""
        at_a_time = n_threads()
        for start in range(0, len(generators), at_a_time):
            here = generators[start : start + at_a_time]
            yield from zip(self.draws(here, around), here, strict=True)


def refitter(release: ForestRelease) -> Refitter:
    """What fits the model of a release to numbers, with its structure as it is."""
    assert release.measured is not None
    axes = column_axes(release.schema)
    models: list[Model] = []
    levels = {}
    for index, name in enumerate(release.variables):
        models.append(release.columns[name] if name in release.columns else release.places[name])
        column = release.measured.columns[index]
        if column is not None and column.kind == "codes":
            of_column = axes[name].levels
            assert of_column is not None
            levels[index] = of_column
    return Refitter(release.measured, tuple(models), release.model, levels, release.card.n_rows is not None)


def _expected_sums(refit: Refitter, products: ReleasedProducts) -> tuple[Floats, ...]:
    """The sums of products under the tilted model, by rows of it; the same in every process."""
    tilt = products.tilt
    states = draw_states(refit.model, _N_DRAWN, np.random.default_rng(0))
    weights = tilt.weights(states)
    weights *= refit.measured.total / weights.sum()
    groups = tilt.grouped(states)
    n_groups = tilt.n_groups
    return tuple(_sums_of(groups[i], groups[j], n_groups[i], n_groups[j], weights) for i, j in products.pairs)


def _sums_of(
    first: NDArray[np.uint8], second: NDArray[np.uint8], n_first: int, n_second: int, weights: Floats
) -> Floats:
    cells = first.astype(np.int64) * n_second + second
    table = np.bincount(cells, weights=weights, minlength=n_first * n_second).reshape(n_first, n_second)
    return np.asarray(signs(n_first) @ table @ signs(n_second).T, dtype=np.float64)
