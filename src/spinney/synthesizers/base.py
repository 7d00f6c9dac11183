"""What every synthesizer does around its mechanism: check, pay for bounds, count, release, write the card.

The order is the promise. Parameters, names and types are checked and the ledger is asked for the whole budget
before any row is looked at. Rows are then encoded, which finds unreadable values before anything is charged.
Only then does a mechanism charge the ledger and read counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

from spinney.engines.opening import open_source
from spinney.errors import InputError, ParameterError
from spinney.partition.kdtree import check_size, release_tree
from spinney.partition.moments import check_leaves, release_moments
from spinney.partition.plan import SplitPlan
from spinney.privacy.budget import Unit, parse_epsilon, parse_share
from spinney.privacy.entropy import Entropy, SystemEntropy
from spinney.privacy.ledger import Ledger, NotPrivate
from spinney.release.binned import BinnedRelease
from spinney.release.model import Release
from spinney.release.moments import MomentsRelease, check_moment_placement
from spinney.release.placement import check_placement
from spinney.schema.lattice import Lattice
from spinney.schema.table import Schema
from spinney.synthesizers.bounds import find_bounds, with_widest_bounds
from spinney.synthesizers.front_door import FrontDoor
from spinney.synthesizers.settings import checked_rows


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """All that a plan may depend on."""

    schema: Schema
    epsilon: Fraction  # what is left for the release itself
    unit: Unit
    n_rows: int  # the number of rows where it is public, otherwise a public guess
    found_bounds: bool = False  # whether bounds came to light on the way; then depths are cut to what the lattice has


class Synthesizer(FrontDoor, ABC):
    """Common part of the grid and the tree. Subclasses say which lattice and plan follow from public facts."""

    epsilon: Any
    unit: str
    bounds_share: Any
    placement: str | None
    assumed_rows: int

    _in_column_units: ClassVar[tuple[str, ...]] = ()  # parameters that are lengths

    plan_: SplitPlan

    @abstractmethod
    def _design(self, facts: PublicFacts) -> tuple[Lattice, SplitPlan]:
        """The lattice and the plan, from public facts only; raises on parameters out of range."""

    def fit(
        self,
        frame: Any,
        schema: Schema,
        *,
        ledger: Ledger | None = None,
        entropy: Entropy | None = None,
        engine: str | None = None,
    ) -> Self:
        """Spend epsilon on a private table.

        Args:
            frame: a pandas, polars or pyarrow table, a numeric numpy array with the schema's columns in order, or what
                need not fit into memory: the path of Parquet or CSV files, a polars LazyFrame, a DuckDB relation, a
                Spark DataFrame, an Ibis table, a Dask frame.
            schema: what is public about the table.
            ledger: an account shared by several releases of the same people; by default a new one limited to epsilon.
            entropy: leave it out. Tests and figures may pass `UnsafeSeededEntropy`, which brands the release.
            engine: what reads the table, where there is a choice: "polars", "duckdb" or "spark" for Parquet files,
                "memory" to read the table once and hold it. Releases do not depend on it.
        """
        epsilon, unit = parse_epsilon(self.epsilon), Unit.parse(self.unit)
        bounds_share, assumed_rows = parse_share(self.bounds_share, "bounds_share"), checked_rows(self.assumed_rows)
        table = open_source(frame, schema, engine=engine)
        self._refuse_forest_only(schema)
        if unit.n_is_public and table.n_rows == 0:  # under add-remove an empty table is a neighbour like any other
            raise InputError("the table has no rows; there is nothing to release")
        self._refuse_lengths_without_bounds(schema)
        entropy = SystemEntropy() if entropy is None else entropy
        books = Ledger(limit=epsilon, unit=unit, parent=ledger)  # one fit never spends more than its own epsilon
        books.require(epsilon, unit=unit)

        n_rows = table.n_rows if unit.n_is_public else assumed_rows
        bounds_epsilon = epsilon * bounds_share if schema.columns_awaiting_bounds("private") else Fraction(0)
        facts = PublicFacts(with_widest_bounds(schema), epsilon - bounds_epsilon, unit, n_rows)
        lattice, plan = self._design(facts)
        if self.placement is not None:
            (check_moment_placement if plan.has_moments else check_placement)(self.placement)
        # A plan that cannot work, whatever the bounds, is refused before any row is read.
        if plan.has_moments:
            check_leaves(plan, lattice)
        else:
            check_size(plan)
        if schema.awaits_bounds:
            # Unreadable values of all columns come to light before any column's bounds are paid for.
            table.check_values()
        if schema.has_data_derived_bounds:
            books.brand(NotPrivate(note="bounds were read off the data"))
        if schema.awaits_bounds:
            table = table.with_schema(find_bounds(table, bounds_epsilon, books, entropy))
            lattice, plan = self._design(replace(facts, schema=table.schema, found_bounds=True))
        counts = table.count_cells(lattice)
        release: Release
        if plan.has_moments:
            moments = release_moments(counts, plan=plan, ledger=books, entropy=entropy)
            card = self._card(table, books, plan=plan.to_dict(), released={"leaves": len(moments)})
            release = MomentsRelease(moments, card, placement=self.placement or "fitted")
        else:
            bins = release_tree(counts, plan=plan, ledger=books, entropy=entropy)
            card = self._card(table, books, plan=plan.to_dict(), released={"bins": len(bins)})
            release = BinnedRelease(bins, card, placement=self.placement or "tilted")
        self.release_, self.plan_, self.ledger_ = release, plan, books if ledger is None else ledger
        return self

    def _refuse_lengths_without_bounds(self, schema: Schema) -> None:
        """Lengths in units of the columns wait for their bounds: until these are found nobody can tell if they fit."""
        for name in self._in_column_units:
            if getattr(self, name) is not None and schema.awaits_bounds:
                raise ParameterError(
                    f"{name} is measured in units of the columns, and some bounds are still to be found; "
                    "state them, or give a number of levels or bins instead"
                )
