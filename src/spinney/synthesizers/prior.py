"""A prior as people give it: a release or a public table over the same columns, opened before anything is spent.

Rows are drawn from a release, always the same ones. A path is that of a release if `save` wrote the file, otherwise of
a table, as `fit` reads it. Rows are held in memory where they fit, since they are looked at again once budget is spent.
Columns that the schema ignores may be in a prior or not: they are not read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spinney.errors import ParameterError, SpinneyError, raise_alone
from spinney.release.model import Release
from spinney.release.storage import load
from spinney.schema.table import Schema
from spinney.synthesizers.fitted import FrontDoor
from spinney.tables.engines.stream import StreamSource
from spinney.tables.opening import open_source
from spinney.tables.outline import files_read, names_of, parts_of
from spinney.tables.source import Source

# Rows drawn from a release, and the seed that they are drawn with: a fit has the same prior every time.
_N_DRAWN = 100_000
_SEED = 0x5B1D
# What a value takes that is held, about.
_BYTES = 32
_ARCHIVE = b"PK\3\4"  # which a release begins with, even where its end is lost


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
        source = _held(source.with_schema(stated.without_ignored().as_read))
        source.check_values()
        n_rows = source.n_rows
    except SpinneyError as err:
        raise_alone(ParameterError(f"prior: {err}. A prior has the columns and values of the schema."))
    if n_rows == 0:
        raise ParameterError("prior: the table has no rows; leave the prior out")
    if release is None:
        return Prior(source, described | {"rows": n_rows})
    total = release.card.n_rows if release.card.n_rows is not None else release._noisy_total()
    return Prior(source, described | {"rows": max(1, total), "drawn": n_rows})


def check_is_another(prior: Any, frame: Any) -> None:
    """Refuse the private table as its own prior, where it is the same object or they share a file, by whatever name."""
    if prior is not None and (prior is frame or files_read(prior) & files_read(frame)):
        raise ParameterError(
            "prior: this is the private table itself, or shares a file with it; a prior is public, so give another or "
            "none"
        )


def _held(source: Source) -> Source:
    """The rows in memory where they fit: a file that changes once budget is spent would cost it."""
    if not isinstance(source, StreamSource) or source.n_rows * len(source.schema) * _BYTES > source.memory_limit:
        return source
    return source.materialized()


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
    if not isinstance(prior, (str, os.PathLike)) or not _is_archive(Path(prior)):
        return None
    try:
        return load(os.fspath(prior))
    except SpinneyError as err:
        raise ParameterError(f"prior: {err}") from err


def _is_archive(path: Path) -> bool:
    """Whether a file is a release, or what is left of one."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return path.suffix == ".spinney" or file.read(len(_ARCHIVE)) == _ARCHIVE
