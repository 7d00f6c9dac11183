"""Rehearsal: what a fit would do, as far as that follows from public quantities. No table is needed for it.

A fit makes its plan before it reads a row, and a rehearsal is that plan with everything that would be charged for, in
the order in which a fit charges it. Where something is found on the way that a plan follows from (bounds, lists of
values, the sizes of a target's classes), a public stand-in takes its place, and `stand_ins` says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any

from spinney.errors import ParameterError
from spinney.forest.design import Design
from spinney.forest.found_values import values_charge
from spinney.people.design import PeopleDesign
from spinney.privacy.budget import Unit
from spinney.privacy.events import Event
from spinney.privacy.ledger import NotPrivate
from spinney.release.entries import MOST_ROWS
from spinney.schema.lattice import Lattice
from spinney.schema.table import Schema
from spinney.shown import as_given
from spinney.synthesizers.bounds import bounds_charges
from spinney.synthesizers.shares import Shares
from spinney.tree.plan import SplitPlan
from spinney.tree.utility import figures_charge


@dataclass(frozen=True, slots=True)
class Partition:
    """The lattice of a joint tree or a grid, and the plan of its release."""

    lattice: Lattice
    plan: SplitPlan


@dataclass(frozen=True, slots=True, eq=False)
class Rehearsal:
    """A plan that a fit would begin with, and all events that its card would have."""

    schema: Schema  # of rows, or of persons as they are learnt; stand-ins filled in
    epsilon: Fraction
    delta: Fraction
    unit: Unit
    n_rows: int  # or persons
    planned: Partition | Design | PeopleDesign
    events: tuple[Event, ...]
    stand_ins: tuple[str, ...] = ()  # what the plan follows from, and is not known yet


def checked_number(n_rows: Any, name: str = "n_rows") -> int:
    """How many rows or persons there are, as somebody states it; a ParameterError where that is no such number."""
    if isinstance(n_rows, bool) or not isinstance(n_rows, Integral) or not 1 <= int(n_rows) <= MOST_ROWS:
        raise ParameterError(f"{name}={as_given(n_rows)} is not a whole number from 1 to {MOST_ROWS:,}")
    return int(n_rows)


def events_before(schema: Schema, shares: Shares, unit: Unit) -> tuple[Event, ...]:
    """What a fit charges before its plan: figures of utility that are paid for by themselves, lists, bounds."""
    found: list[Event] = []
    if schema.has_data_derived_bounds:
        found.append(NotPrivate(note="bounds were read off the data"))
    if shares.utility:
        found.append(figures_charge(shares.utility, unit))
    private = schema.columns_awaiting_values
    each = {"epsilon": shares.values / max(1, len(private)), "delta": shares.values_delta / max(1, len(private))}
    found += [values_charge(name, **each) for name in private]
    return (*found, *bounds_charges(schema, shares.bounds, unit))


def awaited(schema: Schema) -> tuple[str, ...]:
    """What of a schema is found by a fit, in words."""
    found = []
    if columns := schema.columns_awaiting_bounds("private"):
        found.append(f"bounds of {', '.join(map(repr, columns))}")
    if columns := schema.columns_awaiting_bounds("from-data-not-private"):
        found.append(f"bounds of {', '.join(map(repr, columns))}, which would be read off the data")
    if columns := schema.columns_awaiting_values:
        found.append(f"values of {', '.join(map(repr, columns))}")
    return tuple(found)
