"""Which synthesizer a table gets where nobody names one: the tree for a few measurements, the forest for all else.

One joint tree shows a few columns of measurements best, and its promise is pure. It cannot follow many columns, nor
amounts of every size and the piles in them as well as trees of single columns do; categories have no means for its
leaves to release, and identifiers, rules and targets are the forest's alone. Options that only one of the two knows ask
for it. A schema that says whose rows they are, and linked tables, get a model of persons and nothing else. The choice
is made by the schema and the options, so it tells nothing of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from spinney.columns import Bounded
from spinney.errors import ParameterError
from spinney.schema.joint_axis import columns_with_pieces
from spinney.schema.people import Tables
from spinney.schema.rules import Derivation
from spinney.schema.table import Schema, SchemaLike, as_schema
from spinney.shown import as_given
from spinney.suggest import closest, did_you_mean
from spinney.synthesizers.forest import ForestSynthesizer
from spinney.synthesizers.grid import GridSynthesizer
from spinney.synthesizers.linked import NO_FIGURES, LinkedSynthesizer
from spinney.synthesizers.paper_tree import PAPER_NAMES, PaperTreeSynthesizer
from spinney.synthesizers.tree import MOST_COLUMNS_WITH_MOMENTS, KDTreeSynthesizer

AnySynthesizer = KDTreeSynthesizer | PaperTreeSynthesizer | ForestSynthesizer | GridSynthesizer | LinkedSynthesizer

AUTOMATIC = "auto"
METHODS: dict[str, type[AnySynthesizer]] = {
    "tree": KDTreeSynthesizer,
    "forest": ForestSynthesizer,
    "grid": GridSynthesizer,
    "linked": LinkedSynthesizer,
}
# Options of a call: parameters in words. `rule="paper"` makes the tree the paper's, which has symbols for some.
_RULES = ("privtree", "paper")
_WORDS = {symbol: word for word, symbol in PAPER_NAMES.items()}
_OF_PRIVTREE = frozenset(KDTreeSynthesizer().get_params()) - {"epsilon"} | {"rule"}
_OF_PAPER = frozenset(_WORDS.get(name, name) for name in PaperTreeSynthesizer().get_params()) - {"epsilon"} | {"rule"}
_KNOWN = {
    "tree": _OF_PRIVTREE | _OF_PAPER,
    "forest": frozenset(ForestSynthesizer().get_params()) - {"epsilon"},
    "grid": frozenset(GridSynthesizer().get_params()) - {"epsilon"},
    "linked": frozenset(LinkedSynthesizer().get_params()) - {"epsilon"},
}
_OF_ROWS = [method for method in METHODS if method != "linked"]
# What every method has, so that it is not among the options; a misspelt one is.
_OF_ALL = ("epsilon", "n_rows", "persons", "seed", "ledger", "method", "engine")
# What other libraries call them.
_ELSEWHERE = {"eps": "epsilon", "budget": "epsilon", "random_state": "seed", "size": "n_rows"}


@dataclass(frozen=True, slots=True)
class Choice:
    """A method and, in a few words, why it was taken."""

    method: str
    reason: str


def make(method: str, epsilon: Any, options: Mapping[str, Any]) -> AnySynthesizer:
    """The synthesizer of a method and of options that `choose` has taken; None stands for one that was not given."""
    given = {name: value for name, value in options.items() if value is not None}
    rule = given.pop("rule", None) if method == "tree" else None
    if rule == "paper":
        return PaperTreeSynthesizer(epsilon, **{PAPER_NAMES.get(name, name): value for name, value in given.items()})
    return METHODS[method](epsilon, **given)


def default_synthesizer(
    schema: SchemaLike | Tables, *, target: str | None = None
) -> type[KDTreeSynthesizer | ForestSynthesizer | LinkedSynthesizer]:
    """The synthesizer for a table, by its schema.

    LinkedSynthesizer for a schema that says whose rows they are, and for linked tables. Of others, KDTreeSynthesizer
    for up to eight columns that are all measurements, small whole numbers, times or booleans, without identifiers,
    rules or places within a shape, and with no target; ForestSynthesizer for anything else.
    """
    if whose_rows(schema) is not None:
        return LinkedSynthesizer
    assert not isinstance(schema, Tables)
    choice = _by_schema(as_schema(schema).without_ignored(), target)
    return KDTreeSynthesizer if choice.method == "tree" else ForestSynthesizer


def whose_rows(schema: SchemaLike | Tables) -> str | None:
    """In a few words, what says that rows belong to persons; None where every row is protected by itself."""
    if isinstance(schema, Tables):
        return f"tables are linked to {schema.links[0].parent_table!r}"
    person = as_schema(schema).person
    return None if person is None else f"the schema says whose rows they are, by column {person!r}"


def choose(
    schema: SchemaLike | Tables,
    options: Mapping[str, Any],
    *,
    method: str = AUTOMATIC,
    spelt: Callable[..., str] | None = None,
) -> Choice:
    """The method for a table: the one that was named, the only one that knows all options, or that of the schema.

    `options` are parameters besides epsilon; None stands for one that was not given. `spelt` says how the caller writes
    a parameter, alone or with a value, for messages to speak the caller's language.
    """
    say = _as_keyword if spelt is None else spelt
    for name in options:
        if not any(name in known for known in _KNOWN.values()):
            meant = _ELSEWHERE.get(name) or closest(name, frozenset(_OF_ALL).union(*_KNOWN.values()))
            hint = "" if meant is None else f"; did you mean {say(meant)}?"
            raise ParameterError(f"{say(name)} is not a parameter of any method; {_takes(say)}{hint}")
    if not isinstance(method, str) or (method != AUTOMATIC and method not in METHODS):
        raise ParameterError(
            f"{say('method', method)} is not one of {', '.join((AUTOMATIC, *METHODS))}{did_you_mean(method, METHODS)}"
        )
    given = [name for name in options if options[name] is not None]
    reason = whose_rows(schema)
    if reason is not None:
        _refuse_of_rows(method, given, reason, say)
        return Choice("linked", reason if method == AUTOMATIC else "it was requested")
    assert not isinstance(schema, Tables)
    _refuse_of_persons(method, given, say)
    by_schema = _by_schema(as_schema(schema).without_ignored(), options.get("target"))
    if method != AUTOMATIC:
        _refuse_foreign(method, given, say)
        choice = Choice(method, "it was requested")
    else:
        choice = _by_options(given, by_schema, say)
    if choice.method == "tree":
        _refuse_other_rule(options.get("rule"), given, say)
    return choice


def _by_options(given: Collection[str], by_schema: Choice, say: Callable[..., str]) -> Choice:
    """The choice of the schema, unless options are for the other method alone."""
    for name in given:
        if name not in _KNOWN["tree"] | _KNOWN["forest"]:
            raise ParameterError(
                f"{say(name)} is for the grid, which is never chosen automatically; add {say('method', 'grid')}"
            )
    of_tree = [name for name in given if name not in _KNOWN["forest"]]
    of_forest = [name for name in given if name not in _KNOWN["tree"]]
    if of_tree and of_forest:
        raise ParameterError(
            f"{_listed(of_tree, say)} {_is(of_tree)} for the tree and {_listed(of_forest, say)} for the forest; "
            "leave out one or the other"
        )
    for method, names in (("tree", of_tree), ("forest", of_forest)):
        if names and by_schema.method != method:
            return Choice(method, f"{_listed(names, say)} {_is(names)} for it")
    return by_schema


def _by_schema(schema: Schema, target: Any) -> Choice:
    """The choice that follows from what is public about the table; a wrong target is refused on the way."""
    if target is not None:
        if not isinstance(target, str) or target not in schema:
            hint = did_you_mean(target, schema)
            raise ParameterError(f"target={as_given(target)} is not a column of the schema{hint}")
        return Choice("forest", f"there is a target, {target!r}")
    for name in schema.identifiers:
        return Choice("forest", f"column {name!r} is an identifier")
    if any(not isinstance(rule, Derivation) for rule in schema.rules):
        return Choice("forest", "the schema has rules")
    for place in schema.places:
        if place.within is not None:
            return Choice("forest", f"the place {place.label!r} lies within a shape")
    schema = schema.modelled
    for name, column in schema.items():
        if column.axis_kind == "category":
            return Choice("forest", f"column {name!r} is a category")
    if len(schema) > MOST_COLUMNS_WITH_MOMENTS:
        return Choice("forest", f"{len(schema)} columns are more than {MOST_COLUMNS_WITH_MOMENTS}")
    for name, column in schema.items():
        if isinstance(column, Bounded) and not column.has_bounds:
            return Choice("forest", f"the bounds of column {name!r} are not stated")
    for name in columns_with_pieces(schema):
        what = "spans orders of magnitude" if schema[name].compared_as == "numbers" else "spans a calendar"
        return Choice("forest", f"column {name!r} {what}")
    how_many = "one column" if len(schema) == 1 else f"{len(schema)} columns"
    return Choice("tree", f"{how_many} of measurements, no categories, identifiers, rules or target")


# ---------------------------------------------------------------------------------------------------------- messages


def _refuse_of_rows(method: str, given: Collection[str], reason: str, say: Callable[..., str]) -> None:
    """Refuse a method and options that protect rows, where rows belong to persons."""
    if method not in (AUTOMATIC, "linked"):
        raise ParameterError(
            f"{say('method', method)} protects rows, and {reason}; leave it out, or say {say('method', 'linked')}"
        )
    for name in given:
        if name == "assumed_rows":
            raise ParameterError(f"{say(name)} is for tables of rows, and {reason}; say {say('assumed_persons')}")
        if name == "utility_share":
            raise ParameterError(f"{say(name)}: {NO_FIGURES}, and {reason}; leave it out")
        if name not in _KNOWN["linked"]:
            raise ParameterError(
                f"{say(name)} is not a parameter of a model of persons, and {reason}; leave it out. It takes "
                f"{_listed(sorted(_KNOWN['linked']), say)}"
            )


def _refuse_of_persons(method: str, given: Collection[str], say: Callable[..., str]) -> None:
    """Refuse the method of persons and its options, where nothing says whose rows they are."""
    what = say("method", method) if method == "linked" else None
    if what is None and "assumed_persons" in given:
        what = say("assumed_persons")
    if what is not None:
        raise ParameterError(
            f"{what} is for persons with many rows, and the schema does not say whose rows they are; state the column "
            "of persons in the schema (person and most_rows), or leave it out"
        )


def _refuse_foreign(method: str, given: Collection[str], say: Callable[..., str]) -> None:
    """Refuse an option that a method does not know, and say whose it is."""
    for name in given:
        if name not in _KNOWN[method]:
            others = " or ".join(say("method", other) for other in _OF_ROWS if name in _KNOWN[other])
            raise ParameterError(f"{say(name)} is for {others}, not for {say('method', method)}")


def _refuse_other_rule(rule: Any, given: Collection[str], say: Callable[..., str]) -> None:
    """Refuse options of the tree that its rule does not have, and say which rule does."""
    if rule is not None and (not isinstance(rule, str) or rule not in _RULES):
        raise ParameterError(f"rule={as_given(rule)} is not {' or '.join(map(repr, _RULES))}")
    known, other = (_OF_PAPER, "privtree") if rule == "paper" else (_OF_PRIVTREE, "paper")
    for name in given:
        if name not in known:
            remedy = f"add {say('rule', other)}" if rule is None else f"say {say('rule', other)}"
            raise ParameterError(f"{say(name)} is for the tree by {say('rule', other)}; {remedy}, or leave it out")


def _takes(say: Callable[..., str]) -> str:
    return "; ".join(f"the {method} takes {_listed(sorted(known), say)}" for method, known in _KNOWN.items())


def _listed(names: Collection[str], say: Callable[..., str]) -> str:
    *others, last = map(say, names)
    return f"{', '.join(others)} and {last}" if others else last


def _is(names: Collection[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _as_keyword(name: str, value: Any = None) -> str:
    return name if value is None else f"{name}={as_given(value)}"
