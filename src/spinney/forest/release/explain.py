"""Explanation: what a forest measured and how its budget was spent, from released numbers only. PUBLIC.

Everything here is post-processing: it costs nothing and may be published with the release.

    budget report        the stages of all charges: share of the budget and noise
    strength             how strongly columns depend on each other
    explanation          columns, cliques, structure in words
    parts                the tables and lists of its document
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from spinney.documents import Block, Document, Facts, Listing, Printed, Table, Text, spaced
from spinney.errors import ParameterError
from spinney.forest.release.columns import ColumnModel, Floats, leaf_ends
from spinney.forest.release.model import ForestRelease
from spinney.forest.release.places import PlaceModel
from spinney.forest.release.verify import stated_tables
from spinney.privacy.budget import Unit
from spinney.privacy.composition import rows_found, selection_mean
from spinney.privacy.mechanisms import (
    TREE_COST,
    Charge,
    Choices,
    ComposedRelease,
    DiscreteLaplaceCounts,
    Event,
    GaussianTables,
    GaussianVector,
    LeafMoments,
    Mechanism,
    Part,
    PartitionSelection,
    Selections,
    Tables,
    Trees,
    WeightedTables,
    mechanisms_of,
)
from spinney.release.answers.bars import ErrorBars
from spinney.release.card import Card, structure_in_words
from spinney.release.release import Release
from spinney.schema.rules import AtMost, clauses_of
from spinney.schema.rules.related import ratio_text
from spinney.schema.schema import Schema
from spinney.text import WIDTH, cut, did_you_mean, listed, many

# -------------------------------------------------------------------------------------------------------- budget report
# How a budget was spent: the stages that a release was charged for, each with its share of the budget and its noise.
#
# Shares of pure charges are shares of epsilon. Stages that were charged together have no epsilon of their own; their
# shares are shares of the squared Gaussian means, which add up:
#
#     tables        times * factor / variance
#     sums          mean_squared
#     rows' tables  times * mean_squared
#     choices       times * mu^2,  mu of `composition.selection_mean`
#     tree shapes   times * factor * 1.65 rate^2, about what a Gaussian of the same loss has
#
# `factor` is how many counts of a table a row or a person changes: 2 under replace-one, 1 under add-remove. The noise
# of tables of persons' rows is told in persons, the unit of privacy there.


_BY_COLUMN = ("bounds", "values")
_FIRST = "rows"
_OTHER = "other"  # what claims no stage


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a release: how often it measured, its share of the budget, and its noise in words.

    `noise_std` is the standard deviation of the noise on a count, None where no count is released.
    """

    name: str
    times: int
    share: float
    noise_std: float | None
    noise: str


def stages(events: Sequence[Event], unit: Unit) -> tuple[Stage, ...]:
    """The stages of all charges, in the order in which they were paid for; shares of what was measured add up to 1."""
    charges = [event for event in events if isinstance(event, Charge)]
    whole = sum((charge.epsilon for charge in charges), Fraction(0))
    found: list[Stage] = []
    for charge in charges:
        share, paid = float(charge.epsilon / whole), mechanisms_of([charge])
        costs = [_squared_mean(part, unit) for part in charge.parts] if isinstance(charge, ComposedRelease) else [1.0]
        for mechanism, cost in zip(paid, costs, strict=True):
            noise_std, noise = _noise(mechanism, unit)
            name, times = mechanism.stage or _OTHER, mechanism.times or 1
            found.append(Stage(name, times, share * cost / sum(costs), noise_std, noise))
    return tuple(_columns_together(found))


def _columns_together(found: Sequence[Stage]) -> list[Stage]:
    """Bounds and values are paid for column by column, all alike; here they are a stage each. Rows come first."""
    together = [stage for stage in found if stage.name == _FIRST]
    for name in _BY_COLUMN:
        stages = [stage for stage in found if stage.name == name]
        if stages:
            together.append(replace(stages[0], times=len(stages), share=sum(stage.share for stage in stages)))
    return [*together, *(stage for stage in found if stage.name not in (*_BY_COLUMN, _FIRST))]


def _squared_mean(part: Part, unit: Unit) -> float:
    if isinstance(part, GaussianTables):
        return part.times * unit.factor / float(part.variance)
    if isinstance(part, Selections):
        return part.times * selection_mean(part.epsilon) ** 2
    if isinstance(part, GaussianVector | WeightedTables):
        return part.times * float(part.mean_squared)
    return part.times * unit.factor * TREE_COST * float(part.rate) ** 2


def _noise(mechanism: Mechanism, unit: Unit) -> tuple[float | None, str]:
    """The standard deviation of the noise on a count, and the noise in words."""
    if isinstance(mechanism, DiscreteLaplaceCounts):
        noise_std = _laplace_deviation(float(mechanism.rate))
        return noise_std, f"discrete Laplace, standard deviation {noise_std:,.1f}"
    if isinstance(mechanism, Tables):
        noise_std, who = mechanism.noise_std(unit), " persons" if isinstance(mechanism, WeightedTables) else ""
        return noise_std, f"discrete Gaussian, standard deviation {noise_std:,.1f}{who}"
    if isinstance(mechanism, GaussianVector):
        reach, who = math.sqrt(1 / mechanism.mean_squared), "person" if unit.is_person else "row"
        return None, f"discrete Gaussian, {reach:,.1f} times how far one {who} moves the sums"
    if isinstance(mechanism, Trees):
        return None, f"decisions of scale {float(1 / mechanism.rate):,.1f}"
    if isinstance(mechanism, Choices):
        return None, f"exponential mechanism, range {float(mechanism.each):.3g} each"
    if isinstance(mechanism, PartitionSelection):
        half, most = rows_found(mechanism.epsilon, mechanism.delta, unit)
        return None, f"values found from about {half:,} rows on, nearly always from {most:,}"
    if isinstance(mechanism, LeafMoments):
        return None, f"sup-norm noise, of scale {float(1 / mechanism.rate):,.1f} rows"
    return None, type(mechanism).__name__


def _laplace_deviation(rate: float) -> float:
    """Standard deviation of P(k) proportional to exp(-rate |k|): sqrt(2a) / (1 - a) with a = exp(-rate)."""
    return math.sqrt(2) * math.exp(-rate / 2) / -math.expm1(-rate)


# ------------------------------------------------------------------------------------------------------------- strength
# How strongly columns depend on each other, by the law of their states. Sees released numbers only.
#
#     distance    total variation between the joint law and the product of its marginals: the share of rows that would
#                 have to move for the columns to be independent, from 0 to below 1
#     bits        the divergence of the two; for a pair, mutual information
#
# Given a further column, both are averages over its states. A model fitted to noisy tables holds some of the noise,
# so columns that are independent show a little of either.


@dataclass(frozen=True, slots=True)
class Strength:
    """How far columns are from independence."""

    distance: float
    bits: float


def strength(law: Floats, given: int | None = None) -> Strength:
    """How far the axes of a table of probabilities are from independence, given one of them or none."""
    joint = law[None] if given is None else np.moveaxis(law, given, 0)
    independent = _independent(joint)
    is_held = joint > 0
    ratio = np.divide(joint, independent, out=np.ones_like(joint), where=is_held)
    return Strength(
        distance=float(np.abs(joint - independent).sum() / 2),
        bits=max(0.0, float((joint * np.log2(ratio, out=np.zeros_like(ratio), where=is_held)).sum())),
    )


def _independent(joint: Floats) -> Floats:
    """The table with the same marginals in every layer of the first axis, its other axes independent there."""
    layers = joint.reshape(joint.shape[0], -1).sum(axis=1)
    shape = [-1, *[1] * (joint.ndim - 1)]
    product: Floats = layers.reshape(shape)
    for axis in range(1, joint.ndim):
        others = tuple(other for other in range(1, joint.ndim) if other != axis)
        marginal = joint.sum(axis=others, keepdims=True)
        weight = layers.reshape(shape)
        product = product * np.divide(marginal, weight, out=np.zeros_like(marginal), where=weight > 0)
    return product


# ---------------------------------------------------------------------------------------------------------- explanation
# The explanation itself: columns and their leaves, the columns that were counted together and how strongly the
# model says they depend on each other, the structure in words, and how the budget was spent. It costs nothing
# and may be published with the release.


# Why columns were counted together.
REASONS = {
    "stated": "stated in the workload",
    "target": "with the target",
    "star": "counted with every column",
    "rule": "named by a rule",
    "chosen": "chosen",
    "round": "chosen in a round",
    "prior": "taken from the prior, by a private choice",
}


# A column or a place, with the rows expected in each leaf.
Leaves = Mapping[str, tuple[ColumnModel | PlaceModel, Floats]]


@dataclass(frozen=True, slots=True)
class ExplainedColumn:
    """A column or a place as it was released. Identifiers and computed columns have neither leaves nor states."""

    name: str
    type: str
    n_leaves: int
    n_states: int
    null_share: float | None  # None where the column is never null; of a place, where any of its columns is
    is_computed: bool = False  # by a rule, from other columns; a sum with a residual has the leaves of its residual
    ratios: str | None = None  # of a related column, in words: each has a leaf of its own


@dataclass(frozen=True, slots=True)
class ExplainedClique:
    """Columns that were counted together, and how strongly they depend on each other, given the target or nothing."""

    columns: tuple[str, ...]
    given: str | None
    distance: float
    bits: float
    reason: str  # a key of REASONS

    @property
    def label(self) -> str:
        """The columns in words."""
        return " and ".join(self.columns) + ("" if self.given is None else f" given {self.given}")


@dataclass(frozen=True, slots=True)
class ExplainedProducts:
    """The vector of sums of products: of all pairs that no table holds, coarsely."""

    n_pairs: int
    n_sums: int
    groups: Mapping[str, int]  # into how many groups the states of each column or place were put
    noise_std: float  # of the noise on one sum
    standard_error: float  # of the mean of one product, which is between -1 and 1


@dataclass(frozen=True, slots=True, eq=False)
class Explanation(Printed):
    """What a forest knows and what that cost. `print` is meant to be read, `to_dict` to be parsed."""

    card: Card
    structure: str
    meaning: str
    target: str | None
    n_rows: int  # the public number of rows, or a noisy one
    columns: tuple[ExplainedColumn, ...]  # a place stands where its first column does
    cliques: tuple[ExplainedClique, ...]  # the strongest first
    stages: tuple[Stage, ...]
    rules: tuple[str, ...]  # that every row obeys, at no cost
    _leaves: Leaves = field(repr=False)
    products: ExplainedProducts | None = None  # of all other pairs, where they were summed
    error_bars: ErrorBars | None = None  # of columns and pairs, where they were asked for
    relations: tuple[str, ...] = ()  # in words: columns that are fixed parts of others, as was found privately

    def bins(self, name: str) -> list[dict[str, Any]]:
        """The leaves of a column, null last: `low`, `high`, `is_null`, `state` and the `rows` expected there.

        Of a related column, a leaf of a ratio says it as `ratio`, and has no ends.

        Reals lie in low <= value < high, without the step of a `multiple_of`, or at `low` where both ends are the same;
        of all else, both ends are included. Null has no ends. A rule that one column is at most another may still move
        rows up as they are drawn. Of a place, which is named as "lon, lat", the first three are lists with an entry for
        each column.
        """
        if name not in self._leaves:
            raise ParameterError(
                f"{name!r} is not a column that the forest learnt; take one of {listed(self._leaves)}"
                f"{did_you_mean(name, self._leaves)}"
            )
        model, rows = self._leaves[name]
        if isinstance(model, PlaceModel):
            return _regions(model, rows)
        found = [
            {"low": low, "high": high, "is_null": bool(is_null), "state": int(state), "rows": float(expected)}
            for (low, high), is_null, state, expected in zip(
                leaf_ends(model, self.card.schema._as_drawn[name]), model.is_null, model.states, rows, strict=True
            )
        ]
        rule = self.card.schema._related.get(name)
        ratios = {} if rule is None else dict(zip(rule.codes(self.card.schema), rule.ratios, strict=True))
        for leaf in found:
            if leaf["low"] in ratios:
                leaf |= {"low": None, "high": None, "ratio": ratio_text(ratios[leaf["low"]])}
        return found

    def to_dict(self) -> dict[str, Any]:
        """The explanation as JSON-ready data, without bins."""
        return {
            "guarantee": self.card.guarantee,
            "warnings": self.card.to_dict()["warnings"],
            "cautions": self.card.cautions,
            "remarks": list(self.card.remarks),
            "structure": self.structure,
            "meaning": self.meaning,
            "target": self.target,
            "n_rows": self.n_rows,
            "noisy_rows": None if self.card.row_count is None else self.card.row_count.noisy,
            "assumed_rows": self.card.assumed_rows,
            "stages": [asdict(stage) for stage in self.stages],
            "rules": list(self.rules),
            "relations": list(self.relations),
            "columns": [asdict(column) for column in self.columns],
            "cliques": [asdict(clique) | {"columns": list(clique.columns)} for clique in self.cliques],
            "products": None if self.products is None else asdict(self.products),
        } | ({} if self.error_bars is None else {"error_bars": self.error_bars.to_dict()})

    def document(self) -> Document:
        """The structure in words, where the budget went, and what was counted together, the strongest first."""
        card = self.card
        facts = [fact for fact in card.facts if fact[0] != "structure"]
        return Document(
            f"What the forest measured (by {card.synthesizer}, spinney {card.spinney_version})",
            spaced(
                Facts([*facts, ("structure", structure_in_words(self.structure)), ("", self.meaning)]),
                budget_table(self.stages),
                column_table(self.columns),
                clique_table(self.cliques),
                None if self.products is None else product_list(self.products),
                rule_list(self.rules) if self.rules else None,
                Listing("relations between columns, found privately", self.relations) if self.relations else None,
                None if self.error_bars is None else Text(str(self.error_bars)),
            ),
            warnings=card.to_dict()["warnings"],
        )


def explain(release: Release, *, error_bars: bool = False) -> Explanation:
    """Explain a forest, on request with error bars; a ParameterError for a release of any other kind."""
    if not isinstance(release, ForestRelease):
        raise ParameterError(
            f"the release holds {release.card.contents}, not a forest; its card says all there is to explain"
        )
    card = release.card
    target = card.parameters.get("target")
    structure = str(card.design.get("structure", "unknown"))
    spent = stages(card.events, Unit.parse(card.unit))
    total = card.n_rows if card.n_rows is not None else release.noisy_total
    leaves = _leaves(release, total)
    return Explanation(
        card=card,
        structure=structure,
        meaning=_meaning(structure, target, card, spent, has_products=release.products is not None),
        target=target,
        n_rows=total,
        columns=tuple(_columns(release, leaves, total)),
        cliques=tuple(_cliques(release, structure, target)),
        stages=spent,
        rules=tuple(map(repr, card.schema._without_found().rules)),
        relations=tuple(card.schema._found_relations),
        _leaves=leaves,
        products=_products(release, total),
        error_bars=release.error_bars() if error_bars else None,
    )


# ----------------------------------------------------------------------------------------------------- columns, cliques


def _leaves(release: ForestRelease, total: int) -> dict[str, tuple[ColumnModel | PlaceModel, Floats]]:
    """Every column's leaves, and every place's, and the rows expected in them, under the rules."""
    columns, model = release.under_rules()
    names = release.variables
    laws = model.marginals((place,) for place in range(len(names)))
    found: dict[str, tuple[ColumnModel | PlaceModel, Floats]] = {}
    for name, law in zip(names, laws, strict=True):
        here = columns[name] if name in columns else release.places[name]
        shown = release.columns[name] if name in columns else here
        found[name] = (shown, total * law[here.states] * here.inside())
    return found


def _regions(model: PlaceModel, rows: Floats) -> list[dict[str, Any]]:
    """The regions of a place, as `Explanation.bins` gives them."""
    ends = []
    for index, column in enumerate(model.axis.columns):
        found = column._leaf_ends(model.low[:, index], model.length[:, index])
        ends.append(
            [(None, None) if is_null else end for end, is_null in zip(found, model.is_null[:, index], strict=True)]
        )
    return [
        {
            "low": [end[0] for end in region],
            "high": [end[1] for end in region],
            "is_null": is_null,
            "state": int(state),
            "rows": float(expected),
        }
        for region, is_null, state, expected in zip(
            zip(*ends, strict=True), model.is_null.tolist(), model.states, rows, strict=True
        )
    ]


def _columns(release: ForestRelease, leaves: Leaves, total: int) -> list[ExplainedColumn]:
    found = []
    related, drawn = release.schema._related, release.schema._as_drawn
    computed = {rule.column for rule in release.schema._derivations} - {*related}
    starts = {place.columns[0]: place for place in release.schema.places}
    of_places = {name for place in release.schema.places for name in place.columns}
    for name, column in release.schema.items():
        if name in of_places:
            if name in starts:
                found.append(_place(release, starts[name].label, leaves, total))
            continue
        n_leaves, n_states, null_share = 0, 0, None
        if name in leaves:
            model, rows = leaves[name]
            n_leaves, n_states = len(model.states), model.n_states
            if drawn[name].nullable:
                null_share = float(rows[model.is_null].sum() / total) if total else 0.0
        words = related[name].in_words() if name in related else None
        found.append(ExplainedColumn(name, column.type_name, n_leaves, n_states, null_share, name in computed, words))
    return found


def _place(release: ForestRelease, label: str, leaves: Leaves, total: int) -> ExplainedColumn:
    model, rows = leaves[label]
    assert isinstance(model, PlaceModel)
    null_share = None
    if any(release.schema[name].nullable for name in model.names):
        null_share = float(rows[model.is_null.any(axis=1)].sum() / total) if total else 0.0
    return ExplainedColumn(label, "place", len(model.states), model.n_states, null_share)


def _cliques(release: ForestRelease, structure: str, target: str | None) -> list[ExplainedClique]:
    """What was looked at, once each, the strongest first; of equal strength, in the order of measurement."""
    places = {name: place for place, name in enumerate(release.variables)}
    looked_at = list(dict.fromkeys([*release.looked_at, *release.from_prior]))
    laws = release.model.marginals([places[name] for name in names] for names in looked_at)
    ruled, stated = _ruled(release.schema), set(stated_tables(release.card))
    found = []
    for names, law in zip(looked_at, laws, strict=True):
        given = target if target in names and len(names) > 2 else None
        free = tuple(name for name in names if name != given)
        how = strength(law, None if given is None else names.index(given))
        if names in stated:
            reason = "stated"
        elif names not in release.looked_at:
            reason = "prior"
        elif given is None and target in names:
            reason = "target"
        elif structure == "rounds":
            reason = "round"
        else:
            reason = "rule" if any(set(free) <= columns for columns in ruled) else "chosen"
        found.append(ExplainedClique(free, given, how.distance, how.bits, reason))
    if structure != "uniform":  # of which nothing was counted
        alone = sorted(names for names in stated if len(names) == 1 and names not in looked_at)
        found += [ExplainedClique(names, None, 0.0, 0.0, "stated") for names in alone]
    return sorted(found, key=lambda clique: -clique.distance)


def _products(release: ForestRelease, total: int) -> ExplainedProducts | None:
    products = release.products
    if products is None:
        return None
    in_pairs = {column for pair in products.pairs for column in pair}
    groups = {
        name: n_groups
        for number, (name, n_groups) in enumerate(zip(release.variables, products.tilt.n_groups, strict=True))
        if number in in_pairs
    }
    noise_std = math.sqrt(products.variance)
    return ExplainedProducts(len(products.pairs), products.n_sums, groups, noise_std, noise_std / max(total, 1))


def _ruled(schema: Schema) -> list[set[str]]:
    """The sets of modelled columns that rules are about."""
    compared = [set(rule.columns) for rule in schema.rules if isinstance(rule, AtMost)]
    return compared + [set(clause) for clause in clauses_of(schema.rules, schema)]


# ------------------------------------------------------------------------------------------------------------ structure


def _meaning(
    structure: str, target: str | None, card: Card, spent: tuple[Stage, ...], *, has_products: bool = False
) -> str:
    """What was chosen to be counted, and why not more."""
    n_measured = sum(stage.times for stage in spent if stage.name in ("classes", "one-way", "places"))
    if n_measured == 0 and structure != "uniform":
        return "Every column has one possible value, so there was nothing to measure."
    has_pairs = any(stage.name == "pairs" for stage in spent)
    has_stated = any(stage.name == "workload" for stage in spent)
    counted_with = target if has_pairs or (structure == "uniform" and n_measured) else None
    sentences = [_said(structure, counted_with, n_measured, has_stated=has_stated)]
    if has_products:
        sentences.append("All other pairs were measured coarsely, in one vector of sums, by which rows are weighted.")
    elif structure == "tree" and not has_pairs:
        sentences.append("Other columns depend on each other only through this tree.")
    if card.parameters.get("quality") == "high" and structure in ("tree", "target") and n_measured > 2:
        sentences.append('quality="high" was requested, but the noise was too large for it.')
    n_stated = sum(stage.times for stage in spent if stage.name == "workload")
    if n_stated:
        tables = "table" if n_stated == 1 else f"{n_stated} tables"
        sentences.append(f"The {tables} of the workload {'was' if n_stated == 1 else 'were'} counted as stated.")
    if any(stage.name == "analyses" for stage in spent):
        n_named = len(card.parameters.get("analyses") or ())
        regressions = "regression" if n_named == 1 else f"{n_named} regressions"
        sentences.append(f"The sums of the {regressions} that the call names were measured: ask for `regression(...)`.")
    if card.parameters.get("prior") is not None and structure != "uniform":
        sentences.append("A prior was used where released counts or private choices spoke for it.")
    if n_rules := len(card.schema._without_found().rules):
        sentences.append(f"Every row obeys the schema's {'rule' if n_rules == 1 else f'{n_rules} rules'}, at no cost.")
    return " ".join(sentences)


def _said(structure: str, target: str | None, n_measured: int, *, has_stated: bool = False) -> str:
    if structure == "tree" and target is None:
        return (
            "Columns were counted in pairs that form a tree, chosen one by one where two columns depend on each other "
            "most."
        )
    if structure == "tree":
        return (
            f"Every column was counted with the target, {target}. Then pairs of columns that depend on each other "
            "most, beyond what the target explains, were counted together with it; the pairs form a tree."
        )
    if structure == "target":
        more = " The noise was too large to measure more." if n_measured > 2 else ""
        return (
            f"Every column was counted with the target, {target}, and with no other: given the target, columns are "
            f"independent (naive Bayes).{more}"
        )
    if structure == "rounds":
        first = "" if target is None else f"Every column was counted with the target, {target}. Then, round"
        return (
            f"{first or 'Round'} by round, the columns that the model so far described worst were counted together, "
            "and the model was fitted again."
        )
    if structure == "independent" and has_stated:
        return "Every column was counted on its own, and no columns were counted together beyond the workload."
    if structure == "independent":
        more = "the noise was too large to count any together" if n_measured > 1 else "there is only one column"
        return f"Every column was counted on its own, and columns are independent: {more}."
    if structure == "uniform":
        but = "" if target is None else f" but the sizes of the classes of the target, {target}"
        return (
            f"The budget was too small: no count could be told from noise, so no column was counted{but}. Rows are "
            "spread evenly over what the schema allows and say nothing about "
            f"{'the table' if target is None else 'any other column'}. Give a larger epsilon, more rows or fewer "
            "columns."
        )
    return f"The structure {structure!r} is not known to this version of Spinney."


# ---------------------------------------------------------------------------------------------------------------- parts
# The parts of the document of an explanation, of a forest and of persons: the strongest dependences only.


_MOST_CLIQUES = 20
_MOST_COLUMNS = 40
_MEASURED = {
    "rows": "count",
    "trees": "tree",
    "regions": "tree",
    "selection": "choice",
    "prior": "choice",
    "analyses": "vector",
    "relations": "vector",
    "ratios": "vector",
    "products": "vector",
    "utility": "vector",
    "bounds": "column",
    "values": "column",
    "row trees": "tree",
    "alikeness": "vector",
    "row selection": "choice",
}  # of a stage; of the others, tables


def budget_table(stages: Sequence[Stage]) -> Block:
    """How the budget was spent, a line for each stage."""
    if not stages:
        return Text("  nothing was measured, and nothing was spent")
    rows = [[stage.name, f"{100 * stage.share:.1f} %", _measured(stage), stage.noise] for stage in stages]
    return Table("how the budget was spent", ("stage", "share", "measured", "noise"), rows, widths=(0, 7, 12))


def _measured(stage: Stage) -> str:
    return many(stage.times, _MEASURED.get(stage.name, "table"))


def column_table(columns: Sequence[ExplainedColumn]) -> Table:
    """The columns and how each was divided."""
    rows = []
    for column in columns:
        leaves, states, null = f"{column.n_leaves:,}", f"{column.n_states:,}", _percent(column.null_share)
        is_apart = column.type in ("date", "datetime", "time")  # such a column is another one and a difference
        of_computed = "of its difference" if is_apart else "of its residual"
        how = of_computed if column.is_computed else "with ratios" if column.ratios else ""
        if not column.n_leaves:
            leaves, states, how = "", "", "computed" if column.is_computed else "generated"
        rows.append([column.name, column.type, leaves, states, null, how])
    heads = ("column", "type", "leaves", "states", "null", "")
    return Table(f"{len(columns)} columns", heads, rows, widths=(-10, -10, 8, 6, 7), most=_MOST_COLUMNS)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def clique_table(cliques: Sequence[ExplainedClique], *, who: str = "rows") -> Block:
    """The columns that were counted together, the strongest first."""
    if not cliques:
        return Text("  no columns were counted together")
    n_counted = sum(clique.reason != "prior" for clique in cliques)
    from_prior = f", {len(cliques) - n_counted:,} from the prior" if n_counted < len(cliques) else ""
    # What the other columns leave of a line.
    width = WIDTH - 4 - 2 * 3 - 8 - 5 - max(len(REASONS[clique.reason]) for clique in cliques[:_MOST_CLIQUES])
    rows = [[_label(one, width), f"{one.distance:.3f}", f"{one.bits:.2f}", REASONS[one.reason]] for one in cliques]
    return Table(
        f"{many(n_counted, 'set')} counted{from_prior}, strongest first",
        ("columns", "distance", "bits", "why"),
        rows,
        widths=(-31, 8, 5),
        most=_MOST_CLIQUES,
        note=f"distance: the share of {who} that would have to change for the columns to be independent, in the model. "
        "Noise adds to it, the more, the smaller epsilon is.",
    )


def product_list(products: ExplainedProducts) -> Listing:
    """The vector of sums of all other pairs."""
    pairs = "1 other pair" if products.n_pairs == 1 else f"all {products.n_pairs:,} other pairs"
    by_number: dict[int, list[str]] = {}
    for name, n_groups in products.groups.items():
        by_number.setdefault(n_groups, []).append(name)
    entries = [f"standard error of a mean product, which is between -1 and 1: {products.standard_error:.4f}"]
    for n_groups, names in sorted(by_number.items(), reverse=True):
        shown = ", ".join(cut(name, 40) for name in names[:_MOST_COLUMNS])
        n_more = len(names) - _MOST_COLUMNS
        entries.append(f"{n_groups} groups: {shown}{f' and {n_more:,} more' if n_more > 0 else ''}")
    return Listing(f"{pairs}, in {many(products.n_sums, 'sum')} of products", entries)


def rule_list(rules: Sequence[str], *, who: str = "row") -> Listing:
    """The rules of the schema."""
    return Listing(f"rules that every {who} obeys; they cost nothing", rules, most=_MOST_COLUMNS)


def _label(clique: ExplainedClique, width: int) -> str:
    """The columns in words; where they are too long, all names but short ones lose their ends."""
    names = [*clique.columns] if clique.given is None else [*clique.columns, clique.given]
    longest = max(map(len, names))
    label = clique.label
    while len(label) > width and longest > 8:
        longest -= 1
        shortened = [cut(name, longest) for name in names]
        given = None if clique.given is None else shortened.pop()
        label = replace(clique, columns=tuple(shortened), given=given).label
    return cut(label, width)
