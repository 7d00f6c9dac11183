"""What every synthesizer does around its mechanism: check, pay for bounds, release.

The order is the promise. Parameters, names and types are checked and the ledger is asked for the whole budget
before any row is looked at. Rows are then read, which finds unreadable values before anything is charged.
Only then does a mechanism charge the ledger and read counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Generic, Self, TypeVar

from spinney.errors import InputError, ParameterError
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon, parse_share
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger, NotPrivate
from spinney.privacy.promise import default_delta
from spinney.progress import waiting
from spinney.release.model import Release
from spinney.schema.table import Schema, SchemaLike, as_schema
from spinney.synthesizers.bounds import find_bounds, with_widest_bounds
from spinney.synthesizers.fitted import FrontDoor
from spinney.synthesizers.validation import (
    checked_entropy,
    checked_ledger,
    checked_rows,
    warn_of_schema,
    warn_of_weak_promise,
)
from spinney.synthesizers.values import check_private_values, find_values, with_few_values
from spinney.tables.opening import open_source
from spinney.tables.source import Source

PlanT = TypeVar("PlanT")


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """All that a plan may depend on."""

    schema: Schema  # as it was stated, bounds filled in; the table is read by its `as_read`
    epsilon: Fraction  # what is left for the release itself
    delta: Fraction  # 0 where the promise is pure
    unit: Unit
    n_rows: int  # the number of rows where it is public, otherwise a public guess
    found_bounds: bool = False  # whether bounds came to light on the way; then depths are cut to what the lattice has


class Synthesizer(FrontDoor, ABC, Generic[PlanT]):
    """Common part of grid, tree and forest. Subclasses check their own parameters, rehearse, and release."""

    epsilon: Any
    delta: Any = 0  # None: chosen by the number of rows
    unit: str
    bounds_share: Any
    values_share: Any = "0.1"  # of a forest; the others have no private lists
    assumed_rows: int

    # Whether the first count is read after the first charge, so that unreadable values must be looked for before.
    _pays_before_counting: ClassVar[bool] = False

    @abstractmethod
    def _check(self, schema: Schema) -> None:
        """Raise on parameters out of range and on columns that this synthesizer cannot take."""

    @abstractmethod
    def _rehearse(self, facts: PublicFacts) -> PlanT:
        """The plan that follows from public facts; raise where none can work. No row has been read."""

    @abstractmethod
    def _release(
        self, table: Source, facts: PublicFacts, books: Ledger, entropy: Entropy, rehearsed: PlanT | None
    ) -> Release:
        """Charge the books, count, and return what may be published. `rehearsed` is the plan of these very facts."""

    @waiting("fitting the table")
    def fit(
        self,
        frame: Any,
        schema: SchemaLike,
        *,
        ledger: Ledger | None = None,
        entropy: Entropy | None = None,
        engine: str | None = None,
    ) -> Self:
        """Spend the budget on a private table.

        Args:
            frame: a pandas, polars or pyarrow table, a numeric numpy array with the schema's columns in order, or what
                need not fit into memory: the path of Parquet or CSV files (a file, a folder, a pattern or a list of
                paths), a polars LazyFrame, a DuckDB relation, a Spark DataFrame, an Ibis table, a Dask frame, a pyarrow
                dataset. A pyarrow RecordBatchReader is read once and held. No file may be named twice.
            schema: what is public about the table: a `Schema`, the path of a schema file, or a dictionary of columns.
            ledger: an account shared by several releases of the same people; by default a new one for this fit.
            entropy: leave it out. Tests and figures may pass `UnsafeSeededEntropy`, which brands the release.
            engine: what reads the table, where there is a choice: "polars", "duckdb" or "spark" for Parquet files,
                "memory" to read the table once and hold it. Releases do not depend on it.
        """
        fitting = copy(self)  # parameters that are changed meanwhile, by whoever else holds the model, do not reach it
        fitting._fit(frame, schema, ledger, entropy, engine)
        for name, value in vars(fitting).items():
            if name.endswith("_"):
                setattr(self, name, value)
        warn_of_schema(self.release_.card.remarks)  # last: where warnings are errors, what was paid for is kept
        return self

    def _fit(
        self, frame: Any, schema: SchemaLike, ledger: Ledger | None, entropy: Entropy | None, engine: str | None
    ) -> None:
        ledger, source = checked_ledger(ledger), checked_entropy(entropy)
        epsilon, unit = parse_epsilon(self.epsilon), Unit.parse(self.unit)
        stated_delta = None if self.delta is None else parse_delta(self.delta)
        bounds_share, assumed_rows = parse_share(self.bounds_share, "bounds_share"), checked_rows(self.assumed_rows)
        values_share = parse_share(self.values_share, "values_share")
        schema = as_schema(schema)
        table = open_source(frame, schema.as_read, engine=engine)
        schema = schema.without_ignored()
        table = table.with_schema(schema.as_read)
        self._check(schema)
        if unit.n_is_public and table.n_rows == 0:  # under add-remove an empty table is a neighbour like any other
            raise InputError("the table has no rows; there is nothing to release")
        n_rows = table.n_rows if unit.n_is_public else assumed_rows
        delta = default_delta(n_rows) if stated_delta is None else stated_delta
        warn_of_weak_promise(epsilon, delta, n_rows)
        # One fit never spends more than its own budget.
        books = Ledger(limit=epsilon, delta=delta, unit=unit, parent=ledger)
        books.require(epsilon, unit=unit, delta=delta)

        bounds_share *= bool(schema.columns_awaiting_bounds("private"))
        values_share *= bool(schema.columns_awaiting_values)
        if bounds_share + values_share >= 1:
            raise ParameterError(
                f"bounds_share={self.bounds_share} and values_share={self.values_share} leave nothing for the release; "
                "together they must be below 1"
            )
        values_epsilon, values_delta = epsilon * values_share, delta * values_share
        check_private_values(schema, n_rows, epsilon=values_epsilon, delta=values_delta, unit=unit)
        bounds_epsilon = epsilon * bounds_share
        facts = PublicFacts(
            with_widest_bounds(with_few_values(schema)),
            epsilon - bounds_epsilon - values_epsilon,
            delta - values_delta,
            unit,
            n_rows,
        )
        rehearsed: PlanT | None = self._rehearse(facts)
        # Of a residual that is missing, counting could not tell which part is.
        has_residuals = any(rule.modelled is not None for rule in schema.derivations)
        if schema.awaits_bounds or self._pays_before_counting or has_residuals:
            table.check_values()
        if schema.has_data_derived_bounds:
            books.brand(NotPrivate(note="bounds were read off the data"))
        if schema.columns_awaiting_values:
            lists = find_values(table, epsilon=values_epsilon, delta=values_delta, ledger=books, entropy=source)
            schema = schema.with_values(lists)
            table = table.with_schema(schema.as_read)
            facts, rehearsed = replace(facts, schema=with_widest_bounds(schema)), None
        if schema.awaits_bounds:
            schema = schema.with_bounds(find_bounds(table, bounds_epsilon, books, source))
            table = table.with_schema(schema.as_read)
            facts, rehearsed = replace(facts, schema=schema, found_bounds=True), None
        self.release_ = self._release(table, facts, books, source, rehearsed)
        self.ledger_ = books if ledger is None else ledger
