"""What every fitted model shows, whatever is behind the door: its card, its schema, rows, a file.

Spinney's synthesizers and the rival systems in `baselines` stand behind the same door: `fit` leaves `release_` and
`ledger_`, and all the rest follows from the release.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.errors import NotFittedError, SchemaError
from spinney.privacy.ledger import Ledger
from spinney.release.card import Card
from spinney.release.model import Release
from spinney.release.options import explains_options
from spinney.release.reporting import Report
from spinney.schema.rules import Derivation
from spinney.schema.table import Schema
from spinney.synthesizers.parameters import Parameters
from spinney.tables.frames import Table
from spinney.tables.source import Source
from spinney.version import full_version


class FrontDoor(Parameters):
    """A model in the scikit-learn manner: `__init__` stores, `fit` validates and spends, results end in `_`."""

    release_: Release
    ledger_: Ledger

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle holds: of a ledger a statement, which cannot be charged and says not where it is."""
        ledger = self.__dict__.get("ledger_")
        return self.__dict__ if ledger is None else self.__dict__ | {"ledger_": ledger.statement()}

    @property
    def card_(self) -> Card:
        """What was promised and what it cost."""
        return self._fitted().card

    @property
    def schema_(self) -> Schema:
        """The schema with all bounds filled in."""
        return self._fitted().card.schema

    @explains_options
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

        Args:
            n_rows: how many rows; by default as many as the private table had where that is public, else a noisy total.
            seed: repeats the same rows; the noise of the release is not affected. Rows are drawn by a stream of their
                own, so the seed may serve again for what is done with them; of a generator a few words are drawn.
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind of `like`, else the kind that was
                fitted.
            like: a table, or its `dtypes` or `schema`, whose column types the rows get; see `Release.sample`.
            parts: in how many parts to draw rows that memory does not hold, or "auto"; gives a `SampleParts`, see
                `Release.sample`.
        """
        return self._fitted().sample(n_rows, seed=seed, frame=frame, like=like, parts=parts)

    @explains_options
    def weighted_points(self, *, frame: str | None = None) -> tuple[Any, NDArray[np.float64]]:
        """The release as points and weights, where it has such a form.

        Args:
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind that was fitted.
        """
        return self._fitted().weighted_points(frame=frame)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release to one file, whole or not at all.

        Args:
            path: the file; `sp.load` reads it.
            overwrite: whether a file that is already there may be replaced.

        Raises:
            FileError: the file exists, or cannot be written.
        """
        self._fitted().save(path, overwrite=overwrite)

    def report(self, path: str | Path | None = None, **options: Any) -> Report:
        """A page for whoever signs the release off, as `.html` or `.json`; `Release.report` lists the options.

        Args:
            path: a file that ends in .html or .json; by default none is written.
            **options: ledger, title, purpose, contact, licence, level and overwrite.
        """
        return self._fitted().report(path, **options)

    def _repr_html_(self) -> str | None:
        from spinney.synthesizers.fragment import synthesizer_fragment

        card = self.card_ if hasattr(self, "release_") else None
        return synthesizer_fragment(type(self).__name__, self.get_params(), card)

    def _contents(self) -> str:
        """What was released, in words."""
        return self._fitted().card.contents

    def _fitted(self) -> Release:
        try:
            return self.release_
        except AttributeError:
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit(frame, schema) first"
            ) from None

    def _refuse_forest_only(self, schema: Schema, *, computes: bool = False) -> None:
        """Identifiers are made, rules are kept and shapes followed by the forest alone. Trees and grids compute too."""
        system = type(self).__name__
        for name in schema.identifiers:
            raise SchemaError(
                f"column {name!r} is an identifier, and {system} cannot generate identifiers; drop the column or use "
                "ForestSynthesizer"
            )
        for name in schema.columns_awaiting_values:
            raise SchemaError(
                f'column {name!r} has values="private", and {system} cannot find values privately; list them or use '
                "ForestSynthesizer"
            )
        for rule in schema.rules:
            if not (computes and isinstance(rule, Derivation)):
                raise SchemaError(f"{system} cannot enforce {rule!r}; drop the rules or use ForestSynthesizer")
        for place in schema.places:
            if place.within is not None:
                raise SchemaError(
                    f"{system} cannot keep the place {place.label!r} within its shape; leave out `within` or use "
                    "ForestSynthesizer"
                )

    def _card(
        self,
        table: Source | Table,
        ledger: Ledger,
        *,
        plan: Mapping[str, Any],
        released: Mapping[str, int],
        schema: Schema | None = None,
    ) -> Card:
        """The card of a release of `table` that `ledger` paid for, with the stated schema, by default the table's."""
        return Card(
            spinney_version=full_version(),
            synthesizer=type(self).__name__,
            parameters={name: self._on_card(name, value) for name, value in self.get_params().items()},
            unit=ledger.unit.value,
            events=ledger.events,
            schema=table.schema if schema is None else schema,
            plan=plan,
            n_rows=table.n_rows if ledger.unit.n_is_public else None,
            released=released,
            frame=table.kind,
        )

    def _on_card(self, name: str, value: Any) -> Any:  # noqa: ARG002 - some parameters are described in words
        """A parameter as a card states it."""
        return _plain(value)


def _plain(value: Any) -> Any:
    """A parameter as JSON-ready data; of an array, or a list that stands for one, its shape alone."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if np.ndim(value):
        return f"array of shape {np.shape(value)}"
    return str(value)
