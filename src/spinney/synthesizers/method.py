"""Which synthesizer a table gets where no method is named, and `synthesize`, which takes that choice.

One joint tree shows a few columns of measurements best, and its guarantee is pure. It cannot follow many
columns, nor amounts of every size and the piles in them as well as trees of single columns do; categories have
no means for its leaves to release, and identifiers, rules and targets are the forest's alone. A schema that
says whose rows they are, and linked tables, get a model of persons and nothing else. Options that only one
method knows choose that method. The choice follows from the schema and the options alone, so it reveals nothing
about the data.

    choice       the table of methods, and the rules above
    messages     refusals of options, each naming the method that has the option
    synthesize   a private table in, a synthetic one out, in one call
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from spinney.columns import Bounded
from spinney.errors import ParameterError
from spinney.grid.axes import columns_with_pieces
from spinney.release.release import checked_number_of_rows, checked_seed, one_number_of_rows
from spinney.schema.linked import PeopleShape, Tables
from spinney.schema.schema import Schema, SchemaLike, as_schema
from spinney.synthesizers.forest import ForestSynthesizer
from spinney.synthesizers.linked import NO_FIGURES, LinkedSynthesizer
from spinney.synthesizers.partition import PAPER_NAMES, GridSynthesizer, PaperTreeSynthesizer
from spinney.synthesizers.paying import lost_with_errors
from spinney.synthesizers.tree import MOST_COLUMNS_WITH_MOMENTS, KDTreeSynthesizer
from spinney.synthesizers.validation import LedgerLike
from spinney.text import as_given, closest, did_you_mean

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
    by_schema = _by_schema(as_schema(schema)._without_ignored(), options.get("target"))
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
    for name in schema._identifiers:
        return Choice("forest", f"column {name!r} is an identifier")
    if any(rule._needs_forest for rule in schema.rules):
        return Choice("forest", "the schema has rules")
    for place in schema.places:
        if place.within is not None:
            return Choice("forest", f"the place {place.label!r} lies within a shape")
    schema = schema._modelled
    for name, column in schema.items():
        if column._axis_kind == "category":
            return Choice("forest", f"column {name!r} is a category")
    if len(schema) > MOST_COLUMNS_WITH_MOMENTS:
        return Choice("forest", f"{len(schema)} columns are more than {MOST_COLUMNS_WITH_MOMENTS}")
    for name, column in schema.items():
        if isinstance(column, Bounded) and not column.has_bounds:
            return Choice("forest", f"the bounds of column {name!r} are not stated")
    for name in columns_with_pieces(schema):
        what = "spans orders of magnitude" if schema[name]._compared_as == "numbers" else "spans a calendar"
        return Choice("forest", f"column {name!r} {what}")
    how_many = "one column" if len(schema) == 1 else f"{len(schema)} columns"
    return Choice("tree", f"{how_many} of measurements, no categories, identifiers, rules or target")


# ------------------------------------------------------------------------------------------------------------- messages
# Refusals: which method an option belongs to, and what to type instead.


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


# ----------------------------------------------------------------------------------------------------------- synthesize
# `synthesize`: a private table in, a synthetic one out, in one call.


def synthesize(
    frame: Any,
    schema: SchemaLike | Tables,
    *,
    epsilon: Any = 1,
    n_rows: int | None = None,
    persons: int | None = None,
    seed: int | None = None,
    ledger: LedgerLike = None,
    method: str = AUTOMATIC,
    engine: str | None = None,
    **options: Any,
) -> Any:
    """Synthetic rows for a private table, by the synthesizer that suits its schema.

    Up to eight columns that are all measurements (coordinates, scores, small whole numbers), times or booleans get a
    `KDTreeSynthesizer`, whose promise is pure epsilon. Amounts, dates, categories, identifiers, rules, a target or more
    columns get a `ForestSynthesizer`, whose promise is (epsilon, delta), with a delta of at most 1e-6 and a tenth of
    one over the number of rows; `delta=0` makes that pure too. A schema that says whose rows they are (`person=`), and
    `sp.Tables`, get a `LinkedSynthesizer`, whose promise is for a person with all their rows. Each call spends anew:
    keep a fitted model to sample from it often.

    >>> import numpy as np, spinney as sp
    >>> schema = sp.Schema({"age": sp.Integer(0, 99), "kind": sp.Category([1, 2, 3])})
    >>> table = np.random.default_rng(0).integers(1, 4, (1000, 2))
    >>> sp.synthesize(table, schema, epsilon="1", target="kind", n_rows=10).shape
    (10, 2)

    Args:
        frame: a pandas, polars or pyarrow table, a numeric numpy array with the schema's columns in order, the path of
            Parquet or CSV files or a list of paths, a pyarrow dataset or RecordBatchReader, or a table of another
            engine; see `fit`. With `sp.Tables`, a dictionary of such tables by name.
        schema: what is public about the table: a `Schema`, the path of a schema file, or a dictionary of columns; of
            linked tables, `sp.Tables`.
        epsilon: the whole budget, exact: a number or text such as "0.1" or "1/3".
        n_rows: how many rows; by default as many as the private table had where that is public, else a noisy total.
            `num_rows` means the same. Rows of persons come with their persons: give `persons` there.
        persons: how many persons, each with all their rows, where the schema says whose rows they are; by default as
            many as there were where that is public, else a noisy number.
        seed: repeats the rows of one and the same release; every call makes a new one.
        ledger: an account shared by several releases of the same people; see `fit`.
        method: "tree", "forest" or "grid", instead of what the schema suggests; "linked" is the one for persons.
        engine: what reads the table, where there is a choice; see `fit`.
        options: parameters of the synthesizer. Those that only the forest knows (target, delta, quality, workload,
            analyses, prior) or only the tree (rule, moments, threshold, ...) choose it. rule="paper" makes the tree a
            `PaperTreeSynthesizer`, whose h, h', s1, s2, tau and t are fixed_depth, max_depth, largest_edge,
            smallest_edge, cutoff and threshold here.
    """
    # Nothing is spent on a call that could not draw its rows.
    n_rows = one_number_of_rows(n_rows, options)
    stated = schema if isinstance(schema, Tables) else as_schema(schema)
    of_persons = whose_rows(stated)
    number = n_rows if of_persons is None else persons
    if of_persons is not None and n_rows is not None:
        raise ParameterError(f"n_rows: {of_persons}, and persons are drawn with all their rows; say persons=...")
    if of_persons is None and persons is not None:
        raise ParameterError(
            "persons: the schema does not say whose rows they are; say n_rows=..., or state the column of persons, "
            "sp.Schema({...}, person='customer', most_rows=200)"
        )
    if number is not None:
        checked_number_of_rows(number, n_columns=_n_columns(stated))
    checked_seed(seed)
    choice = choose(stated, options, method=method)
    model: Any = make(choice.method, epsilon, options)  # which takes tables where tables were given
    model.fit(frame, stated, ledger=ledger, engine=engine)
    with lost_with_errors(model, ledger):
        return model.sample(number, seed=seed)


def _n_columns(stated: Any) -> int:
    """How many columns synthetic tables have."""
    if isinstance(stated, Tables) or stated.person is not None:
        return sum(len(schema) for schema in PeopleShape.of(stated)._without_ignored().tables.values())
    return len(stated._without_ignored())
