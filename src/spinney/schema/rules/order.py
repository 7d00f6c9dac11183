"""Columns in the order in which rules need them, and the least and the largest values that orderings leave to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from typing import Any

from spinney.columns import Bounded, Column
from spinney.errors import SchemaError
from spinney.schema.rules.at_most import AtMost
from spinney.schema.rules.base import Derivation, Rule
from spinney.schema.rules.sums import Sum


def in_order(rules: Iterable[Rule], kind: Any) -> list[str]:
    """The columns of one kind of rule, each after those it depends on.

    For AtMost a column comes after all that are at most it; for EmptyWhen, after the one that says when it is empty;
    for a Derivation, after its sources.
    """
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for rule in rules:
        if isinstance(rule, kind):
            then, *first = reversed(rule.columns) if kind is AtMost else rule.columns
            sorter.add(then, *first)
    try:
        return list(sorter.static_order())
    except CycleError as err:
        circle = " -> ".join(repr(name) for name in err.args[1])
        names = dict.fromkeys(type(rule).__name__ for rule in rules if isinstance(rule, kind))
        raise SchemaError(f"{' and '.join(names)}: the rules run in a circle, {circle}; leave one out") from None


def derivations_in_order(rules: Sequence[Rule]) -> list[Derivation]:
    """The derivations, each after those that compute its sources."""
    by_column = {rule.column: rule for rule in rules if isinstance(rule, Derivation)}
    return [by_column[name] for name in in_order(rules, Derivation) if name in by_column]


def widened(columns: Mapping[str, Column], found: Mapping[str, Any], rules: Sequence[Rule]) -> dict[str, Column]:
    """The columns, with bounds that were found (paid for, or read off the data) wide enough for rows to obey all rules.

    Noise may put the bounds of a start above those of its end. Stated bounds stay: they agree among themselves.
    """
    result: dict[str, Any] = dict(columns)
    names = [name for name in found if isinstance(columns[name], Bounded)]
    unfound = result | {name: replace(result[name], low=None, high=None, bounds="private") for name in names}
    for name, most in most_values(rules, unfound).items():
        if name in names and result[name].ends()[0] > most:
            result[name] = replace(result[name], low=result[name].logical(result[name].aligned(most, up=False)))
    for name, least in least_values(rules, result).items():
        if name in names and result[name].ends()[1] < least:
            result[name] = replace(result[name], high=result[name].logical(least))
    for rule in derivations_in_order(rules):
        ends = rule.ends(result) if isinstance(rule, Sum) and not set(rule.sources).isdisjoint(found) else None
        if ends is not None:  # a sum ends where its parts do
            total = result[rule.column]
            low, high = min(ends[0], total.ends()[0]), max(ends[1], total.ends()[1])
            result[rule.column] = replace(total, low=total.logical(low), high=total.logical(high))
    return result


def least_values(rules: Sequence[Rule], columns: Mapping[str, Any]) -> dict[str, Fraction]:
    """The least value (physical) that known bounds and the AtMost rules leave to a column, where there is a least.

    A row of least values obeys all AtMost rules: so they can be kept where each is within its column's bounds.
    """
    least: dict[str, Fraction] = {}
    for name in in_order(rules, AtMost):
        column = columns[name]
        below = [rule.column for rule in rules if isinstance(rule, AtMost) and rule.other == name]
        floors = [least[smaller] for smaller in below if smaller in least]
        floors += [column.ends()[0]] if column.has_bounds else []
        if floors:
            least[name] = column.aligned(max(floors), up=True)
    return least


def most_values(rules: Sequence[Rule], columns: Mapping[str, Any]) -> dict[str, Fraction]:
    """The same from above: the largest value that known bounds and the AtMost rules leave to a column."""
    most: dict[str, Fraction] = {}
    for name in reversed(in_order(rules, AtMost)):
        column = columns[name]
        above = [rule.other for rule in rules if isinstance(rule, AtMost) and rule.column == name]
        ceilings = [most[other] for other in above if other in most]
        ceilings += [column.ends()[1]] if column.has_bounds else []
        if ceilings:
            most[name] = column.aligned(min(ceilings), up=False)
    return most
