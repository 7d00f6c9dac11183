"""Rules between columns: public knowledge about which values may stand in one row, one kind of rule a file.

    sp.Schema({...}, rules=[sp.AtMost("start", "end"), sp.Implies({"age": (0, 14)}, {"marital": ["never", None]})])

A rule is a statement of the holder, like a bound: it costs nothing, and it is never checked against the private table.
Every synthetic row obeys all rules, and so do the rows of a synthetic person. `RULES` is the registry: a kind is a file
that answers what `base.py` asks, and a line there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from spinney.errors import SchemaError
from spinney.schema.rules.at_most import AtMost
from spinney.schema.rules.base import Clause, Derivation, Rule
from spinney.schema.rules.derived import Derived
from spinney.schema.rules.empty_when import EmptyWhen
from spinney.schema.rules.implies import Implies
from spinney.schema.rules.order import derivations_in_order, in_order, least_values, most_values, widened
from spinney.schema.rules.positions import First, NeverAfter, PositionRule
from spinney.schema.rules.sums import Sum
from spinney.schema.rules.together import check_rules, clauses_of
from spinney.shown import brief
from spinney.suggest import did_you_mean

RULES: tuple[type[Rule], ...] = (AtMost, EmptyWhen, Implies, Derived, Sum, First, NeverAfter)
RULE_TYPES: dict[str, type[Rule]] = {kind.type_name: kind for kind in RULES}

__all__ = [
    "RULES",
    "RULE_TYPES",
    "AtMost",
    "Clause",
    "Derivation",
    "Derived",
    "EmptyWhen",
    "First",
    "Implies",
    "NeverAfter",
    "PositionRule",
    "Rule",
    "Sum",
    "check_rules",
    "clauses_of",
    "derivations_in_order",
    "in_order",
    "least_values",
    "most_values",
    "rule_from_dict",
    "widened",
]


def rule_from_dict(place: int, entry: Any) -> Rule:
    """Read what `to_dict` wrote, or one [[rules]] table of a TOML file, the `place`-th."""
    if not isinstance(entry, Mapping) or "type" not in entry:
        raise SchemaError(f'rule {place}: the entry needs a type, for example type = "at-most"')
    options = dict(entry)
    kind: Any = RULE_TYPES.get(str(options.pop("type")))
    if kind is None:
        raise SchemaError(
            f"rule {place}: type {brief(entry['type'])} is not one of {', '.join(sorted(RULE_TYPES))}"
            f"{did_you_mean(entry['type'], RULE_TYPES)}"
        )
    known = {field.name: field.default is MISSING for field in fields(kind)}
    for name in sorted(set(options) - set(known)):
        raise SchemaError(
            f"rule {place}: {name!r} is not an option of type {kind.type_name!r}; it takes {', '.join(sorted(known))}"
            f"{did_you_mean(name, known)}"
        )
    for name, is_needed in known.items():
        if is_needed and name not in options:
            raise SchemaError(f"rule {place}: {name} is missing; type {kind.type_name!r} takes {', '.join(known)}")
    try:
        rule: Rule = kind(**options)
    except SchemaError as err:
        raise SchemaError(f"rule {place}: {err}") from err
    return rule
