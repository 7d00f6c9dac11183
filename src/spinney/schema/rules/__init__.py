"""Rules between columns: public knowledge about which values may stand in one row.

    sp.Schema({...}, rules=[sp.AtMost("start", "end"),
                            sp.Implies({"age": (0, 14)}, {"marital": ["never", None]})])

A rule is a statement of the data owner, like a bound: it costs nothing, and it is never checked against the
private table. Every synthetic row obeys all rules, and so do the rows of a synthetic person. `RULES` is the
registry: a kind is a class that answers what `base.py` asks, and a line there.

    order                 columns in the order in which rules need them, and what orderings leave to them
    all rules together    whether a schema's rules can be kept together, and the clauses that every row obeys
    registry              kinds of rules by name, and rules from plain data
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from typing import Any

from spinney.columns import Bounded, Column
from spinney.errors import SchemaError
from spinney.schema.plain import at, check_options, typed
from spinney.schema.rules.base import Clause, Derivation, Rule, ValueSet, followed, universe
from spinney.schema.rules.calendar import OnlyOn, Runs
from spinney.schema.rules.compare import AtMost, EmptyWhen, First, Implies, NeverAfter, PositionRule
from spinney.schema.rules.derived import Derived
from spinney.schema.rules.lags import Elapsing, Lag, check_difference, lags_of, orders_of, with_differences
from spinney.schema.rules.related import Related
from spinney.schema.rules.sums import Sum
from spinney.text import did_you_mean

# ---------------------------------------------------------------------------------------------------------------- order
# Columns in the order in which rules need them, and the least and the largest values that orderings leave to them.


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


def derivations_in_order(rules: Sequence[Rule], columns: Mapping[str, Column]) -> list[Derivation]:
    """The derivations, each after those that compute its sources; columns that are another one and a difference too."""
    rules = [*rules, *lags_of(rules, columns)]
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
        if name in names and result[name]._ends()[0] > most:
            result[name] = replace(result[name], low=result[name].logical(result[name]._aligned(most, up=False)))
    for name, least in least_values(rules, result).items():
        if name in names and result[name]._ends()[1] < least:
            result[name] = replace(result[name], high=result[name].logical(least))
    for rule in derivations_in_order(rules, result):
        ends = rule.ends(result) if isinstance(rule, Sum) and not set(rule.sources).isdisjoint(found) else None
        if ends is not None:  # a sum ends where its parts do
            total = result[rule.column]
            low, high = min(ends[0], total._ends()[0]), max(ends[1], total._ends()[1])
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
        floors += [column._ends()[0]] if column.has_bounds else []
        if floors:
            least[name] = column._aligned(max(floors), up=True)
    return least


def most_values(rules: Sequence[Rule], columns: Mapping[str, Any]) -> dict[str, Fraction]:
    """The same from above: the largest value that known bounds and the AtMost rules leave to a column."""
    most: dict[str, Fraction] = {}
    for name in reversed(in_order(rules, AtMost)):
        column = columns[name]
        above = [rule.other for rule in rules if isinstance(rule, AtMost) and rule.column == name]
        ceilings = [most[other] for other in above if other in most]
        ceilings += [column._ends()[1]] if column.has_bounds else []
        if ceilings:
            most[name] = column._aligned(min(ceilings), up=False)
    return most


# --------------------------------------------------------------------------------------------------- all rules together
# All rules of a schema together: whether they go with the columns and with each other, and what rows must obey.
#
# Conditions on a column that is derived become conditions on its source, so what is left is about columns that are
# modelled. Which combinations of rules can be kept exactly is decided here, and the others are refused with the
# remedy.


def check_rules(rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    """Raise a SchemaError unless the rules are about these columns and can be kept together."""
    for rule in rules:
        kind = type(rule).__name__
        for name in rule.columns:
            if name not in columns:
                raise SchemaError(f"{kind}: column {name!r} is not in the schema{did_you_mean(name, columns)}")
            if not columns[name].is_read:
                unread = columns[name].type_name
                raise SchemaError(f"{kind}: column {name!r} is of type {unread}, which no rule can be about")
        rule.check(columns)
        if isinstance(rule, AtMost) and rule.difference is not None:
            check_difference(rule, columns)
        if rules.count(rule) > 1:
            raise SchemaError(f"{rule!r} is stated twice; state it once")
    empties = [rule for rule in rules if isinstance(rule, EmptyWhen)]
    for empty in empties:
        if sum(empty.column == another.column for another in empties) > 1:
            raise SchemaError(f"EmptyWhen: column {empty.column!r} has two rules that say when it is empty; keep one")
    in_order(rules, EmptyWhen)
    named = [rule.column for rule in rules if isinstance(rule, OnlyOn)]
    for name in named:
        if named.count(name) > 1:
            raise SchemaError(f"OnlyOn: column {name!r} has two rules that say on which days it lies; keep one")
    _check_derivations(rules, columns)
    for name, least in least_values(rules, columns).items():
        column = columns[name]
        assert isinstance(column, Bounded)
        if column.has_bounds and least > column._ends()[1]:
            raise SchemaError(
                f"AtMost: column {name!r} has no value as large as the columns below it need; "
                f"raise its high={column.high} or lower theirs"
            )
    _check_larger(rules, columns)


def _check_derivations(rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    """Every column is derived once, from columns that do not follow from it, and rules about it can be kept."""
    derived: dict[str, Derivation] = {}
    for rule in rules:
        if not isinstance(rule, Derivation):
            continue
        column = columns[rule.column]
        if rule.column in derived:
            raise SchemaError(f"column {rule.column!r} is computed by two rules; keep one")
        if isinstance(column, Bounded) and column.bounds != "stated":
            raise SchemaError(f"{type(rule).__name__}: column {rule.column!r} is computed; state its bounds")
        derived[rule.column] = rule
    lags = lags_of(rules, columns)
    in_order([*rules, *lags], Derivation)
    _check_lags(lags, rules, columns)
    for rule in rules:
        kind = type(rule).__name__
        for name in rule.columns:
            if name in derived and isinstance(rule, (AtMost, OnlyOn, PositionRule)):
                if isinstance(rule, AtMost) and isinstance(derived[name], Related):
                    _check_order_of_ratios(rule, derived[name], columns)
                    continue
                raise SchemaError(f"{kind}: column {name!r} is computed from others; state the rule about these")
            if name in derived and isinstance(rule, Related) and name != rule.column:
                raise SchemaError(
                    f"Related: the base {name!r} of {rule.column!r} is itself computed; relate {rule.column!r} to "
                    f"{derived[name].sources[0]!r} instead"
                )
            if name in derived and isinstance(rule, Sum) and rule.residual is not None and name != rule.column:
                raise SchemaError(
                    f"Sum: part {name!r} of {rule.column!r} is itself computed, so no residual can be measured; list "
                    "its own parts instead"
                )
        if not isinstance(rule, Derivation):
            try:
                clauses_of([rule, *derived.values()], columns)
            except SchemaError as err:
                raise SchemaError(str(err) if str(err).startswith(kind) else f"{kind}: {err}") from err


def _check_order_of_ratios(rule: AtMost, related: Any, columns: Mapping[str, Column]) -> None:
    """Refuse an order that rows with a ratio may break, for nobody looks at them again."""
    if set(rule.columns) != set(related.columns):
        raise SchemaError(
            f"AtMost: column {related.column!r} is a fixed part of {related.base!r} in some rows, and can be compared "
            f"with that alone; leave out {rule!r} or {related!r}"
        )
    if not related.keeps_order(rule.column, columns):
        raise SchemaError(
            f"{rule!r} does not hold for all ratios of {related!r}: of a base that is never negative, in the same "
            "steps, parts of up to 1 are at most as large, and larger ones within the bounds at least; correct the "
            "ratios, the bounds or the rule"
        )


def _check_lags(lags: Sequence[Lag], rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    """Every column is another one and a difference by one rule at most, and compared with no others."""
    on_days = {rule.column: rule for rule in rules if isinstance(rule, OnlyOn)}
    for lag in lags:
        gap = on_days[lag.column].runs(columns[lag.column]).longest_gap if lag.column in on_days else 0
        if lag.most - int(lag.difference.low) < gap:
            raise SchemaError(
                f"AtMost: the difference of {lag.column!r} and {lag.source!r} does not reach from one of the days of "
                f"{on_days[lag.column]!r} to the next; raise its high"
            )
    computed, stated = [lag.column for lag in lags], {(lag.source, lag.column) for lag in lags}
    for rule in rules:
        if not isinstance(rule, AtMost):
            continue
        both = next((name for name in rule.columns if name in computed and rule.columns not in stated), None)
        if both is not None or computed.count(rule.other) > 1:
            name = both or rule.other
            raise SchemaError(
                f"AtMost: column {name!r} is another one and a difference, and {rule!r} compares it with one more; "
                "leave out that rule, or the difference"
            )


def _check_larger(rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    """A column that is drawn above another is told apart by other rules as null or not, never by its values."""
    larger = {rule.other: rule for rule in rules if isinstance(rule, AtMost)}
    as_orders = [replace(rule, difference=None) if isinstance(rule, AtMost) else rule for rule in rules]
    for clause in clauses_of(as_orders, columns):
        for name in set(clause) & set(larger):
            values = ValueSet(clause[name].ranges)
            if not (values.is_empty or ValueSet(values.ranges, columns[name].nullable).has_all(columns[name])):
                raise SchemaError(
                    f"{larger[name]!r} and another rule about values of {name!r} cannot be kept together; state that "
                    "rule about null only, or replace AtMost by Implies over ranges of both columns"
                )


def clauses_of(rules: Sequence[Rule], columns: Mapping[str, Column]) -> list[Clause]:
    """What every row obeys, about modelled columns: in each clause, the value of some column is in that column's set.

    A SchemaError says that a clause cannot be obeyed, or is about a column that is a sum.
    """
    derived = {rule.column: rule for rule in rules if isinstance(rule, Derivation)}
    differences = {lag.column: lag.difference for lag in lags_of(rules, columns)}
    columns = {**columns, **differences}
    found: list[Clause] = []
    for rule in rules:
        for stated in rule.clauses(columns):
            clause: Clause = {}
            for told, wanted in stated.items():
                name, allowed = followed(told, wanted, derived, columns)
                if name in differences and allowed.ranges:  # rules say whether it is there, not what it is
                    allowed = ValueSet((universe(differences[name]),), allowed.has_null)
                clause[name] = clause.get(name, ValueSet()) | allowed
            if any(allowed.has_all(columns[name]) for name, allowed in clause.items()):
                continue
            clause = {name: allowed for name, allowed in clause.items() if not allowed.is_empty}
            if not clause:
                raise SchemaError(f"{rule!r} cannot be obeyed by any row; correct it")
            if clause not in found:
                found.append(clause)
    return found


# ------------------------------------------------------------------------------------------------------------- registry
# Kinds of rules by the names that files give them, and rules from plain data.


RULES: tuple[type[Rule], ...] = (AtMost, EmptyWhen, Implies, Derived, Sum, Related, First, NeverAfter, OnlyOn)
RULE_TYPES: dict[str, type[Rule]] = {kind.type_name: kind for kind in RULES}

__all__ = [
    "RULES",
    "RULE_TYPES",
    "AtMost",
    "Clause",
    "Derivation",
    "Derived",
    "Elapsing",
    "EmptyWhen",
    "First",
    "Implies",
    "Lag",
    "NeverAfter",
    "OnlyOn",
    "PositionRule",
    "Related",
    "Rule",
    "Runs",
    "Sum",
    "check_rules",
    "clauses_of",
    "derivations_in_order",
    "followed",
    "in_order",
    "lags_of",
    "least_values",
    "most_values",
    "orders_of",
    "rule_from_dict",
    "widened",
    "with_differences",
]


def rule_from_dict(place: int, entry: Any) -> Rule:
    """Read what `to_dict` wrote, or one [[rules]] table of a TOML file, the `place`-th."""
    about = f"rule {place}"
    kind, options = typed(entry, RULE_TYPES, about, "at-most")
    known = {field.name: field.default is MISSING for field in fields(kind)}  # type: ignore[arg-type]  # every kind of rule is a dataclass
    check_options(options, sorted(known), about, f"type {kind.type_name!r}")
    for name, is_needed in known.items():
        if is_needed and name not in options:
            raise SchemaError(f"{about}: {name} is missing; type {kind.type_name!r} takes {', '.join(known)}")
    with at(about):
        return kind(**options)
