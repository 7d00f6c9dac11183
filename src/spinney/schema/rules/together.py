"""All rules of a schema together: whether they go with the columns and with each other, and what rows must obey.

Conditions on a column that is derived become conditions on its source, so what is left is about columns that are
modelled. Which combinations of rules can be kept exactly is decided here, and the others are refused with the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spinney.columns import Bounded, Column
from spinney.errors import SchemaError
from spinney.schema.rules.at_most import AtMost
from spinney.schema.rules.base import Clause, Derivation, Rule
from spinney.schema.rules.empty_when import EmptyWhen
from spinney.schema.rules.order import in_order, least_values
from spinney.schema.rules.positions import PositionRule
from spinney.schema.rules.sums import Sum
from spinney.schema.rules.values import ValueSet
from spinney.suggest import did_you_mean


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
        if rules.count(rule) > 1:
            raise SchemaError(f"{rule!r} is stated twice; state it once")
    empties = [rule for rule in rules if isinstance(rule, EmptyWhen)]
    for empty in empties:
        if sum(empty.column == another.column for another in empties) > 1:
            raise SchemaError(f"EmptyWhen: column {empty.column!r} has two rules that say when it is empty; keep one")
    in_order(rules, EmptyWhen)
    _check_derivations(rules, columns)
    for name, least in least_values(rules, columns).items():
        column = columns[name]
        assert isinstance(column, Bounded)
        if column.has_bounds and least > column.ends()[1]:
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
    in_order(rules, Derivation)
    for rule in rules:
        kind = type(rule).__name__
        for name in rule.columns:
            if name in derived and isinstance(rule, (AtMost, PositionRule)):
                raise SchemaError(f"{kind}: column {name!r} is computed from others; state the rule about these")
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


def _check_larger(rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
    """A column that is drawn above another is told apart by other rules as null or not, never by its values."""
    larger = {rule.other: rule for rule in rules if isinstance(rule, AtMost)}
    for clause in clauses_of(rules, columns):
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
    found: list[Clause] = []
    for rule in rules:
        for stated in rule.clauses(columns):
            clause: Clause = {}
            waiting = list(stated.items())
            while waiting:
                name, allowed = waiting.pop(0)
                if name in derived:
                    derivation = derived[name]
                    waiting.append((derivation.sources[0], derivation.preimage(allowed, columns)))
                else:
                    clause[name] = clause.get(name, ValueSet()) | allowed
            if any(allowed.has_all(columns[name]) for name, allowed in clause.items()):
                continue
            clause = {name: allowed for name, allowed in clause.items() if not allowed.is_empty}
            if not clause:
                raise SchemaError(f"{rule!r} cannot be obeyed by any row; correct it")
            if clause not in found:
                found.append(clause)
    return found
