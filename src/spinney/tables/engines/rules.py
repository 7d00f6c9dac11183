"""Whether rows break a rule, as expressions: what `Rule.holds` says of numbers, for engines that answer queries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

import narwhals as nw

from spinney.schema.rules import AtMost, Clause, Derived, Rule, Sum
from spinney.schema.rules.values import ValueSet, universe
from spinney.schema.table import Schema

# A column as a number, and whether it is missing.
Numbers = Mapping[str, tuple[nw.Expr, nw.Expr]]


def breaks(rule: Rule, numbers: Numbers, schema: Schema) -> nw.Expr:
    """Whether a row breaks a rule."""
    if isinstance(rule, AtMost):
        (value, is_missing), (other, is_other_missing) = (numbers[name] for name in rule.columns)
        return ~is_missing & ~is_other_missing & (value > other)
    if isinstance(rule, Sum):
        return _is_no_sum(rule, numbers, schema)
    if isinstance(rule, Derived):
        return _is_not_derived(rule, numbers, schema)
    return reduce(or_, [~_obeys(clause, numbers, schema) for clause in rule.clauses(schema)])


def _obeys(clause: Clause, numbers: Numbers, schema: Schema) -> nw.Expr:
    return reduce(or_, [_is_in(*numbers[name], allowed, schema, name) for name, allowed in clause.items()])


def _is_in(value: nw.Expr, is_missing: nw.Expr, allowed: ValueSet, schema: Schema, name: str) -> nw.Expr:
    """Whether a value is in a set; those beyond the bounds count as the nearer bound."""
    least, most = universe(schema[name])
    inside = nw.lit(False)
    points = [low for low, high in allowed.ranges if low == high and least < low < most]
    if points:
        inside = value.is_in(points)
    for low, high in allowed.ranges:
        if low == high and least < low < most:
            continue
        is_here = value >= low if low > least else nw.lit(True)
        inside = inside | (is_here & (value <= high) if high < most else is_here)
    return (~is_missing & inside) | is_missing if allowed.has_null else ~is_missing & inside


def _is_no_sum(rule: Sum, numbers: Numbers, schema: Schema) -> nw.Expr:
    total, is_total_missing = numbers[rule.column]
    total = total.cast(nw.Float64)
    gap = rule.difference(total, {name: numbers[name][0].cast(nw.Float64) for name in rule.sources})
    low, high, part = rule.allowed(schema)
    slack = total.abs() * part
    is_missing = reduce(or_, [numbers[name][1] for name in rule.sources])
    is_off = is_missing | (gap < low - slack) | (gap > high + slack)
    is_wrongly_missing = ~is_missing if rule.residual is None else nw.lit(False)
    return nw.when(is_total_missing).then(is_wrongly_missing).otherwise(is_off)


def _is_not_derived(rule: Derived, numbers: Numbers, schema: Schema) -> nw.Expr:
    """Whether the column is another value than its source's group has."""
    value, is_missing = numbers[rule.column]
    if len(rule.sources) > 1:
        return _is_not_derived_of_several(rule, numbers, schema)
    name = rule.sources[0]
    is_broken = nw.lit(False)
    for number, group in rule.groups(schema):
        is_here = _is_in(*numbers[name], group, schema, name)
        is_other = ~is_missing if number is None else is_missing | (value != number)
        is_broken = is_broken | (is_here & is_other)
    return is_broken


def _is_not_derived_of_several(rule: Derived, numbers: Numbers, schema: Schema) -> nw.Expr:
    value, is_missing = numbers[rule.column]
    default, null, outcomes = rule.outcomes(schema)
    is_named, is_right = nw.lit(False), nw.lit(False)
    for places, number in outcomes.items():
        is_here = nw.lit(True)
        for name, place in zip(rule.sources, places, strict=True):
            is_here = is_here & (numbers[name][0] == place)
        is_named = is_named | is_here
        is_right = is_right | (is_here & ~is_missing & (value == number))
    if default is not None:
        is_right = is_right | (~is_named & ~is_missing & (value == default))
    is_source_missing = reduce(or_, [numbers[name][1] for name in rule.sources])
    is_right_null = is_missing if null is None else ~is_missing & (value == null)
    return ~nw.when(is_source_missing).then(is_right_null).otherwise(is_right)
