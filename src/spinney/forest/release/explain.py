"""Explanation: what a forest measured and how its budget was spent, from released numbers only.

Everything here is post-processing: columns and their leaves, the columns that were counted together and how strongly
the model says they depend on each other, the structure in words, and how the budget was spent. It costs nothing and may
be published with the release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from spinney.errors import ParameterError
from spinney.forest.release.budget_report import Stage, stages
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.leaf_bounds import leaf_ends
from spinney.forest.release.model import ForestRelease
from spinney.forest.release.place_model import PlaceModel
from spinney.forest.release.strength import strength
from spinney.forest.release.verification import stated_tables
from spinney.privacy.budget import Unit
from spinney.release.answers.bars import ErrorBars
from spinney.release.card import Card
from spinney.release.model import Release
from spinney.schema.rules import AtMost, clauses_of
from spinney.schema.table import Schema
from spinney.suggest import did_you_mean, listed

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
class Explanation:
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

    def bins(self, name: str) -> list[dict[str, Any]]:
        """The leaves of a column, null last: `low`, `high`, `is_null`, `state` and the `rows` expected there.

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
        return [
            {"low": low, "high": high, "is_null": bool(is_null), "state": int(state), "rows": float(expected)}
            for (low, high), is_null, state, expected in zip(
                leaf_ends(model, self.card.schema.as_drawn[name]), model.is_null, model.states, rows, strict=True
            )
        ]

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
            "columns": [asdict(column) for column in self.columns],
            "cliques": [asdict(clique) | {"columns": list(clique.columns)} for clique in self.cliques],
            "products": None if self.products is None else asdict(self.products),
        } | ({} if self.error_bars is None else {"error_bars": self.error_bars.to_dict()})

    def _repr_html_(self) -> str | None:
        from spinney.forest.release.explain_fragment import explanation_fragment

        return explanation_fragment(self)

    def __str__(self) -> str:
        from spinney.forest.release.explain_page import page

        return page(self)


def explain(release: Release, *, error_bars: bool = False) -> Explanation:
    """Explain a forest, on request with error bars; a ParameterError for a release of any other kind."""
    if not isinstance(release, ForestRelease):
        raise ParameterError(
            f"the release holds {release.card.contents}, not a forest; its card says all there is to explain"
        )
    card = release.card
    target = card.parameters.get("target")
    structure = str(card.plan.get("structure", "unknown"))
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
        rules=tuple(map(repr, card.schema.rules)),
        _leaves=leaves,
        products=_products(release, total),
        error_bars=release.error_bars() if error_bars else None,
    )


# ------------------------------------------------------------------------------------------------- columns, cliques


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
        found = column.leaf_ends(model.low[:, index], model.length[:, index])
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
    computed, drawn = {rule.column for rule in release.schema.derivations}, release.schema.as_drawn
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
        found.append(ExplainedColumn(name, column.type_name, n_leaves, n_states, null_share, name in computed))
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


# --------------------------------------------------------------------------------------------------------- structure


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
    if card.schema.rules:
        n_rules = len(card.schema.rules)
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
