"""A prior as people give it: a release or a public table over the same columns, opened before anything is spent.

Rows are drawn from a release, always the same ones. A path is that of a release if `save` wrote the file, otherwise of
a table, as `fit` reads it. Columns that the schema ignores may be in a prior or not: they are not read.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spinney.errors import ParameterError, SpinneyError, raise_alone
from spinney.release.model import Release
from spinney.release.storage import load
from spinney.schema.table import Schema
from spinney.synthesizers.fitted import FrontDoor
from spinney.tables.opening import open_source
from spinney.tables.outline import names_of, parts_of
from spinney.tables.source import Source

# Rows drawn from a release, and the seed that they are drawn with: a fit has the same prior every time.
_N_DRAWN = 100_000
_SEED = 0x5B1D


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Public rows, and what a card says of them."""

    source: Source
    described: dict[str, Any]

    def with_schema(self, schema: Schema) -> Source:
        """The rows under a schema with all bounds."""
        return self.source.with_schema(schema)


def opened_prior(prior: Any, stated: Schema) -> Prior | None:
    """The rows of a prior under a schema as it was stated; None without one, a ParameterError where they do not fit."""
    if prior is None:
        return None
    release = _release(prior)
    if release is not None and not release.card.is_private:
        raise ParameterError("prior: the release is not private, so its rows are as good as private ones; leave it out")
    described: dict[str, Any] = {"kind": "table"}
    frame = prior
    if release is not None:
        frame = release.sample(_N_DRAWN, seed=_SEED, frame="pyarrow")
        described = {"kind": "release", "guarantee": release.card.guarantee}
    try:
        source = open_source(frame, _of_columns(frame, stated).as_read)
        source = source.with_schema(stated.without_ignored().as_read)
        source.check_values()
        n_rows = source.n_rows
    except SpinneyError as err:
        raise_alone(ParameterError(f"prior: {err}. A prior has the columns and values of the schema."))
    if n_rows == 0:
        raise ParameterError("prior: the table has no rows; leave the prior out")
    return Prior(source, described | {"rows": n_rows})


def check_is_another(prior: Any, frame: Any) -> None:
    """Refuse the private table as its own prior, where it is the same object or path."""
    paths = [os.path.realpath(one) for one in (prior, frame) if isinstance(one, (str, os.PathLike))]
    if prior is not None and (prior is frame or (len(paths) == 2 and paths[0] == paths[1])):
        raise ParameterError("prior: this is the private table itself; a prior is public, so give another or none")


def _of_columns(frame: Any, stated: Schema) -> Schema:
    """The schema with those of its ignored columns that a table has. Where its names are not told, with none."""
    drawn = stated.without_ignored()
    if drawn is stated:
        return stated
    if isinstance(frame, np.ndarray):
        return stated if frame.ndim == 2 and frame.shape[1] == len(stated) else drawn
    names = set(names_of(parts_of(frame)[0]) or ())
    kept = {name: column for name, column in stated.items() if column.is_drawn or name in names}
    return Schema(kept, rules=stated.rules, places=stated.places)


def _release(prior: Any) -> Release | None:
    """The release that was given, fitted or in a file; None for a table."""
    if isinstance(prior, Release):
        return prior
    if isinstance(prior, FrontDoor):
        try:
            return prior._fitted()
        except SpinneyError as err:
            raise ParameterError(f"prior: {err}") from err
    if not isinstance(prior, (str, os.PathLike)) or not Path(prior).is_file() or not zipfile.is_zipfile(prior):
        return None
    try:
        return load(os.fspath(prior))
    except SpinneyError as err:
        raise ParameterError(f"prior: {err}") from err
