"""What the rival systems do around their mechanisms: the same door, the same order, the same card as our synthesizers.

Parameters, names and types are checked and the ledger is asked for the whole (epsilon, delta) before any row is looked
at; unreadable values come to light before anything is charged; then a mechanism charges and releases. Where a published
system does something that is not private (reads lengths off the data, trusts floating-point noise), the version here
does not, or brands its release.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Integer, Real
from spinney.errors import InputError, ParameterError, SchemaError
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.progress import waiting
from spinney.release.release import Release
from spinney.schema.schema import Schema, SchemaLike
from spinney.synthesizers.base import FrontDoor
from spinney.synthesizers.paying import record_release, started
from spinney.synthesizers.validation import (
    LedgerLike,
    checked_entropy,
    checked_ledger,
    rows_alone,
    warn_of_weak_promise,
)
from spinney.tables.engines.memory import check_values
from spinney.tables.frames import Table, open_table

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Budget:
    """What one fit may spend, on whose account, and where its noise comes from."""

    epsilon: Fraction
    delta: Fraction
    unit: Unit
    books: Ledger
    entropy: Entropy


class Baseline(FrontDoor, ABC):
    """Common part of the rival systems. A subclass checks what is public, then releases."""

    epsilon: Any
    delta: Any
    unit: str

    @abstractmethod
    def _check(self, schema: Schema) -> None:
        """Raise on parameters out of range and on columns that the system cannot take."""

    @abstractmethod
    def _release(self, table: Table, budget: Budget) -> Release:
        """Add up the rows, charge before noise meets a sum, and return what may be published."""

    @waiting("fitting the table")
    def fit(self, frame: Any, schema: SchemaLike, *, ledger: LedgerLike = None, entropy: Entropy | None = None) -> Self:
        """Spend (epsilon, delta) on a private table.

        Args:
            frame: a pandas, polars or pyarrow table, or a numeric numpy array with the schema's columns in order.
            schema: what is public about the table, all bounds stated: a `Schema`, the path of a schema file, or a
                dictionary of columns.
            ledger: an account shared by several releases of the same people: a `Ledger`, or the path or address of
                one. By default the ledger that SPINNEY_LEDGER names, if any; False for a new one for this fit.
            entropy: leave it out. Tests and figures may pass `UnsafeSeededEntropy`, which brands the release.
        """
        given, source = checked_ledger(ledger), checked_entropy(entropy)
        epsilon, delta, unit = parse_epsilon(self.epsilon), parse_delta(self.delta), Unit.parse_rows(self.unit)
        if delta == 0:
            raise ParameterError("delta=0 is not possible with Gaussian noise; give a small one such as '1e-6'")
        schema = rows_alone(schema, type(self).__name__)
        account = started(given, schema)
        table = open_table(frame, schema)
        self._refuse_forest_only(schema)
        if unit.n_is_public and table.n_rows == 0:
            raise InputError("the table has no rows; there is nothing to release")
        if schema._awaits_bounds or schema._has_data_derived_bounds:
            raise SchemaError(f"{type(self).__name__} needs stated bounds; give every column low and high")
        self._check(schema)
        warn_of_weak_promise(epsilon, delta, table.n_rows if unit.n_is_public else None)
        books = Ledger(limit=epsilon, delta=delta, unit=unit, parent=account)
        books.require(epsilon, unit=unit, delta=delta)
        check_values(table)
        self.release_ = self._release(table, Budget(epsilon, delta, unit, books, source))
        self.ledger_ = books if given is None else given
        record_release(account, self.release_)
        return self


def check_numeric(schema: Schema, system: str, *, besides: str | None = None) -> None:
    """Raise unless all columns, one aside, are numbers without nulls."""
    for name, column in schema.items():
        if name != besides and (not isinstance(column, (Real, Integer)) or column.nullable):
            raise SchemaError(f"column {name!r}: {system} takes numbers without nulls; leave the column out")


def numeric_rows(table: Table, names: list[str]) -> Floats:
    """The named columns of the table as numbers (n_rows, n_columns), moved into their bounds. SENSITIVE."""
    columns = []
    for name in names:
        column = table.schema[name]
        assert isinstance(column, Bounded)
        columns.append(np.clip(table.physical(name).values.astype(np.float64), column.low, column.high))
    return np.column_stack(columns)


def whole_number(value: Any, name: str, *, at_least: int = 1) -> int:
    """A count that was given as a parameter."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise ParameterError(f"{name}={value!r} is not a whole number of at least {at_least}")
    return int(value)
