"""ForestSynthesizer: many and mixed columns, by small trees and tables joined into one model.

A caller may state a prior and a workload. Both are checked before anything is charged, because an error after a
charge costs budget. The mechanism itself is in `forest/` (`forest/prepaid.proof.md`).

    prior      a release or a public table over the same columns, as public rows
    workload   stated lists of columns whose tables are to be measured
    forest     the parameters, the plan and the release of a forest
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.counting.joint import Clique
from spinney.errors import ParameterError, ParameterWarning, SchemaError, SpinneyError, raise_alone
from spinney.forest.columns import release_classes
from spinney.forest.design import EFFORTS, Design, design
from spinney.forest.grow import Forest, grow
from spinney.forest.plan import class_sizes_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.relations import Sought, find_relations
from spinney.forest.release.analyses import ReleasedAnalyses
from spinney.forest.release.columns import ColumnModel
from spinney.forest.release.file import released
from spinney.forest.release.formula import blocks_of, parse_formulas
from spinney.forest.release.model import ForestRelease
from spinney.forest.release.places import PlaceModel
from spinney.forest.rules import RuleTables, Variables
from spinney.forest.sums import release_analyses, weighted_blocks
from spinney.grid.axes import column_axis
from spinney.privacy.budget import Unit, parse_share
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import Charge
from spinney.release.card import Card, noisy_rows_entry
from spinney.release.file import load
from spinney.release.release import Release
from spinney.release.utility import figures_reach_squared, weights_of
from spinney.schema.rules import Related
from spinney.schema.schema import Schema
from spinney.synthesizers.base import FrontDoor, PublicFacts, Synthesizer, of_release, release_verb
from spinney.synthesizers.paying import with_few_values, with_widest_bounds
from spinney.synthesizers.utility import with_utility
from spinney.synthesizers.validation import warn_caller
from spinney.tables.engines.stream import StreamSource
from spinney.tables.open import open_source
from spinney.tables.preview import files_read, names_of, parts_of
from spinney.tables.source import Source
from spinney.text import as_given, did_you_mean, listed

# ---------------------------------------------------------------------------------------------------------------- prior
# A prior as people give it: a release or a public table over the same columns, opened before anything is spent.
#
# Rows are drawn from a release, always the same ones. A path is that of a release if `save` wrote the file, otherwise
# of a table, as `fit` reads it. Rows are held in memory where they fit, since they are looked at again once budget is
# spent. Columns that the schema ignores may be in a prior or not: they are not read.


# Rows drawn from a release, and the seed that they are drawn with: a fit has the same prior every time.
_N_DRAWN = 100_000
_SEED = 0x5B1D
# What a value takes that is held, about.
_BYTES = 32
_ARCHIVE = b"PK\3\4"  # which a release begins with, even where its end is lost


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Public rows, and what a card says of them."""

    source: Source
    described: dict[str, Any]

    def with_schema(self, schema: Schema) -> Source:
        """The rows under a schema with all bounds."""
        return self.source.with_schema(schema)


def opened_prior(prior: Any, stated: Schema) -> Prior | None:
    """The rows of a prior under a schema as it was stated; None without one, a ParameterError where they do not fit."""
    if prior is None:
        return None
    release = _release(prior)
    if release is not None and not release.card.is_private:
        raise ParameterError("prior: the release is not private, so its rows are as good as private ones; leave it out")
    described: dict[str, Any] = {"kind": "table"}
    frame = prior
    if release is not None:
        frame = release.sample(_N_DRAWN, seed=_SEED, frame="pyarrow")
        described = {"kind": "release", "guarantee": release.card.guarantee}
    try:
        source = open_source(frame, _of_columns(frame, stated)._as_read)
        source = _held(source.with_schema(stated._without_ignored()._as_read))
        source.check_values()
        n_rows = source.n_rows
    except SpinneyError as err:
        raise_alone(ParameterError(f"prior: {err}. A prior has the columns and values of the schema."))
    if n_rows == 0:
        raise ParameterError("prior: the table has no rows; leave the prior out")
    if release is None:
        return Prior(source, described | {"rows": n_rows})
    total = release.card.n_rows if release.card.n_rows is not None else release._noisy_total()
    return Prior(source, described | {"rows": max(1, total), "drawn": n_rows})


def check_is_another(prior: Any, frame: Any) -> None:
    """Refuse the private table as its own prior, where it is the same object or they share a file, by whatever name."""
    if prior is not None and (prior is frame or files_read(prior) & files_read(frame)):
        raise ParameterError(
            "prior: this is the private table itself, or shares a file with it; a prior is public, so give another or "
            "none"
        )


def _held(source: Source) -> Source:
    """The rows in memory where they fit: a file that changes once budget is spent would cost it."""
    if not isinstance(source, StreamSource) or source.n_rows * len(source.schema) * _BYTES > source.memory_limit:
        return source
    return source.materialized()


def _of_columns(frame: Any, stated: Schema) -> Schema:
    """The schema with those of its ignored columns that a table has. Where its names are not told, with none."""
    drawn = stated._without_ignored()
    if drawn is stated:
        return stated
    if isinstance(frame, np.ndarray):
        return stated if frame.ndim == 2 and frame.shape[1] == len(stated) else drawn
    names = set(names_of(parts_of(frame)[0]) or ())
    kept = {name: column for name, column in stated.items() if column._is_drawn or name in names}
    return Schema(kept, rules=stated.rules, places=stated.places)


def _release(prior: Any) -> Release | None:
    """The release that was given, fitted or in a file; None for a table."""
    if isinstance(prior, Release):
        return prior
    if isinstance(prior, FrontDoor):
        try:
            return prior._fitted()
        except SpinneyError as err:
            raise ParameterError(f"prior: {err}") from err
    if not isinstance(prior, (str, os.PathLike)) or not _is_archive(Path(prior)):
        return None
    try:
        return load(os.fspath(prior))
    except SpinneyError as err:
        raise ParameterError(f"prior: {err}") from err


def _is_archive(path: Path) -> bool:
    """Whether a file is a release, or what is left of one."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return path.suffix == ".spinney" or file.read(len(_ARCHIVE)) == _ARCHIVE


# ------------------------------------------------------------------------------------------------------------- workload
# A workload as people state it: lists of columns whose tables are to be measured, checked by name and by kind.
#
# It is read once, since a list may be changed by whoever else holds it. What is no column is not quoted: whole
# columns or rows of a private table may have been given by mistake.


_MOST_COLUMNS = 5
_EXAMPLE = 'a list of tables such as [("age", "sex", "region"), ("income",)]'

_ORDINALS = ("first", "second", "third", "fourth", "fifth")

StatedTables = tuple[tuple[str, ...], ...]


def read_once(workload: Any) -> Any:
    """The workload as tuples that nobody can change; what is no list of lists stays, to be refused."""
    if not _is_list(workload):
        return workload
    return tuple(tuple(table) if _is_list(table) else table for table in workload)


def checked_workload(workload: Any, schema: Schema) -> StatedTables:
    """The stated tables, each as names of columns; a ParameterError where one cannot be measured."""
    if workload is None:
        return ()
    if not _is_list(workload):
        raise ParameterError(f"workload={as_given(workload)} is not {_EXAMPLE}")
    found: dict[frozenset[str], tuple[str, ...]] = {}
    for number, table in enumerate(workload, 1):
        names = _names(table, number, schema)
        if frozenset(names) in found:
            raise ParameterError(f"workload: the table of {_listed(names)} is stated twice; state it once")
        found[frozenset(names)] = names
    return tuple(found.values())


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _names(table: Any, number: int, schema: Schema) -> tuple[str, ...]:
    if isinstance(table, str):
        remedy = f"write ({table!r},)" if table in schema else f"a workload is {_EXAMPLE}"
        raise ParameterError(f"workload: table {number} is text, and a table is a list of columns; {remedy}")
    if not _is_list(table):
        kind = type(table).__name__
        raise ParameterError(f"workload: table {number} is a {kind}, not a list of columns; a workload is {_EXAMPLE}")
    names = tuple(table)
    if not 1 <= len(names) <= _MOST_COLUMNS:
        raise ParameterError(f"workload: a table of {len(names)} columns was stated; one has 1 to {_MOST_COLUMNS}")
    for place, name in zip(_ORDINALS, names, strict=False):
        if not isinstance(name, str) or name not in schema:
            hint = did_you_mean(name, schema) or f"; its columns are {listed(schema)}"
            raise ParameterError(f"workload: the {place} name of table {number} is not a column of the schema{hint}")
        if names.count(name) > 1:
            raise ParameterError(f"workload: column {name!r} is twice in the table of {_listed(names)}")
        _check_column(name, schema)
    return names


def _check_column(name: str, schema: Schema) -> None:
    """Refuse columns that have no states of their own."""
    _check_measured(name, schema, f"workload: column {name!r}", "leave it out", "state", "is measured as a whole")
    if name in schema._columns_awaiting_values:
        raise ParameterError(
            f'workload: column {name!r} has values="private", so how large its table is cannot be known before '
            "budget is spent; list its values, or leave it out"
        )


def _check_measured(name: str, schema: Schema, said: str, remedy: str, verb: str, why: str) -> None:
    """Refuse a column that is not measured by itself: one that is made, computed, or part of a place."""
    if not schema[name].is_read:
        raise ParameterError(f"{said} is an identifier, which is never read; {remedy}")
    for rule in schema._derivations:
        if rule.column == name:
            sources = " or ".join(map(repr, rule.sources))
            raise ParameterError(f"{said} is computed from others; {verb} {sources} instead")
    for place in schema.places:
        if name in place.columns:
            inside = f"{said} is part of the place {place.label!r}, which {why}"
            raise ParameterError(f"{inside}; {remedy}, or take the place out of the schema")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names))


# --------------------------------------------------------------------------------------------------------------- forest
# ForestSynthesizer: its parameters, its checks, its design from public facts, and its release.


QUALITIES = ("fast", "high")


def checked_quality(quality: Any) -> str:
    """The quality that a fit has. "best" was another one, no nearer to tables than "high", which is taken for it."""
    if isinstance(quality, str) and quality == "best":
        warn_caller(['quality="best" is no more, and "high" is taken for it; write quality="high"'], ParameterWarning)
        return "high"
    if not isinstance(quality, str) or quality not in QUALITIES:
        raise ParameterError(f"quality={as_given(quality)} is not 'fast' or 'high'")
    return quality


# The part of epsilon for the sizes of the target's classes, which decide what else is worth measuring.
_CLASSES_SHARE = Fraction(1, 25)
# Columns beside stated tables have as few states as this where there is no more room.
_FEWEST_STATES = 2


@dataclass(eq=False, repr=False)
class ForestSynthesizer(Synthesizer[Design]):
    """Synthetic rows for tables of many and mixed columns: numbers, categories, dates, nulls.

    Every column gets a tree of its own; pairs of columns, or triples with a target, are counted together where
    they depend on each other most; one model is fitted to all of it.

    >>> import numpy as np, spinney as sp
    >>> rng = np.random.default_rng(0)
    >>> table = np.column_stack([rng.normal(size=5000), rng.integers(0, 3, 5000), rng.integers(0, 2, 5000)])
    >>> schema = sp.Schema({"x": sp.Real(-9, 9), "kind": sp.Integer(0, 2), "label": sp.Boolean()})
    >>> model = sp.ForestSynthesizer(epsilon="1", target="label").fit(table, schema)
    >>> model.sample(10, where={"label": True}).shape
    (10, 3)

    Args:
        epsilon: the whole budget, exact: a number or text such as "0.1" or "1/3".
        delta: the failure probability of (epsilon, delta)-differential privacy; 0 gives pure epsilon, at the price of
            more noise. By default a tenth of one over the number of rows, at most 1e-6 (under "add-remove", of
            `assumed_rows`, and 1e-6 without).
        target: the column that the others are about: the label of a classifier, the outcome of a study.
        quality: "fast"; or "high" for more pairs of columns than a tree has, and for triples, which takes seconds for
            fifteen columns and a minute for a hundred.
        workload: tables that are measured as stated, each a list of 1 to 5 columns: [("age", "sex", "region")]. They
            take a fourth of the budget if there is one of them, half if there are three or more.
        analyses: linear regressions whose sums are measured, as formulas: ["hours ~ age + sex + education"]. They are
            answered by `release_.regression(...)` with intervals that hold, and take `analyses_share` of the budget.
        analyses_share: the part of the budget that the sums of `analyses` get, if there are any: twice the share makes
            the noise of coefficients smaller by a factor of about 1.4, and that of everything else larger.
        prior: public rows of the same columns, which are used where private choices say that they help: any table that
            `fit` takes, a fitted model, a release, or the path of one. It must be public, or a release: the guarantee
            does not cover it. What an earlier release of the same people cost adds to the cost of this one.
        unit: "replace-one" (the number of rows is public) or "add-remove" (it is private).
        bounds_share: the part of epsilon that pays for bounds="private" columns, if there are any.
        values_share: the part of epsilon and of delta that pays for values="private" columns, if there are any.
        assumed_rows: a public guess of the number of rows, for automatic values under "add-remove". By default rows are
            counted there with noise, for a hundredth of epsilon; under "replace-one" their number is public.
        utility_share: the part of the budget that pays for figures of utility, such as "0.02": how far the release is
            from the table, with exact noise, so that they may be published. By default none are measured.
        relations: "find" to look privately for columns of one kind that are equal, or fixed parts of each other, in
            many rows, with two hundredths of the budget; "stated" to keep those alone that the schema states.
    """

    release_: ForestRelease = field(init=False)
    design_: Design = field(init=False)

    _pays_before_counting = True
    _prior: Prior | None = field(init=False, default=None)  # opened, while a fit is under way

    epsilon: Any = 1
    delta: Any = None
    _: KW_ONLY
    target: str | None = None
    quality: str = "fast"
    workload: Sequence[Sequence[str]] | None = None
    analyses: Sequence[str] | None = None
    analyses_share: Any = "0.25"
    prior: Any = None
    unit: str = "replace-one"
    bounds_share: Any = "0.1"
    values_share: Any = "0.1"
    assumed_rows: int | None = None
    utility_share: Any = None
    relations: str = "find"

    @of_release(ForestRelease.sample)
    def sample(self) -> Any: ...

    explain = release_verb(ForestRelease.explain)
    regression = release_verb(ForestRelease.regression)

    def _on_card(self, name: str, value: Any) -> Any:
        if name == "workload" and value is not None:
            return [list(table) for table in value]
        if name == "analyses" and value is not None:
            return list(value)
        if name == "prior" and self._prior is not None:
            return self._prior.described
        return super()._on_card(name, value)

    def _check(self, schema: Schema) -> None:
        if not any(column.is_read for column in schema.values()):
            raise SchemaError("all columns are identifiers, which are generated; there is nothing to learn")
        RuleTables.of(with_widest_bounds(with_few_values(schema))).check()
        parse_share(self.analyses_share, "analyses_share")
        if not isinstance(self.relations, str) or self.relations not in ("find", "stated"):
            raise ParameterError(f"relations={as_given(self.relations)} is not 'find' or 'stated'")
        for rule in schema.rules:
            if isinstance(rule, Related) and rule.found:
                raise SchemaError(f"{rule!r}: a fit that found a rule says so; leave found out to state it yourself")
        self._check_target(schema)
        self._check_workload(schema)
        widest = with_widest_bounds(schema)
        blocks_of(parse_formulas(self.analyses, widest), widest, Unit.parse_rows(self.unit))  # refuses what has no sums

    def _settle(self) -> None:
        self.quality = checked_quality(self.quality)
        self.workload = read_once(self.workload)

    def _completed(self, schema: Schema) -> Schema:
        """With differences of dates and times in place of larger ones, but for columns that are named here."""
        tables = self.workload if self.workload is not None and _is_list(self.workload) else ()
        named = [self.target, *(name for table in tables if _is_list(table) for name in table)]
        return schema._with_differences([name for name in named if isinstance(name, str)])

    def _check_frame(self, frame: Any) -> None:
        check_is_another(self.prior, frame)

    def _open_others(self, stated: Schema) -> None:
        self._prior = opened_prior(self.prior, stated)

    def _check_target(self, schema: Schema) -> None:
        if self.target is None:
            return
        if not isinstance(self.target, str) or self.target not in schema:
            hint = did_you_mean(self.target, schema)
            raise ParameterError(f"target={as_given(self.target)} is not a column of the schema{hint}")
        said = f"target={self.target!r}"
        _check_measured(self.target, schema, said, "choose another column", "choose", "cannot be a target")

    def _check_workload(self, schema: Schema) -> None:
        """Refuse stated tables that cannot be measured, however few states all other columns have."""
        stated = checked_workload(self.workload, schema)
        if stated:
            variables = Variables.of(with_widest_bounds(with_few_values(schema)))
            names = variables.names
            tables = [tuple(names.index(name) for name in table) for table in stated]
            required = [tuple(variables.numbers[column] for column in clique) for clique in variables.rules.cliques]
            target = None if self.target is None else names.index(self.target)
            variables.stated_cells(tables, [_FEWEST_STATES] * len(names), required=required, target=target)

    def _rehearse(self, facts: PublicFacts) -> Design:
        """The design, as if no class of the target were rare: its plan is then the one that is taken most often."""
        if not self._counts_classes(facts.schema):
            return self._design(facts)
        return self._design(replace(facts, epsilon=facts.epsilon * (1 - _CLASSES_SHARE)), class_size=math.inf)

    def _foreseen(
        self, facts: PublicFacts, rehearsed: Design, class_size: float | None
    ) -> tuple[Design, Sequence[Charge], Sequence[str]]:
        if self.target is None or not self._counts_classes(facts.schema):
            return rehearsed, rehearsed.plan.charges, ()
        epsilon = facts.epsilon * _CLASSES_SHARE
        if class_size is not None:
            rehearsed = self._design(replace(facts, epsilon=facts.epsilon - epsilon), class_size=class_size)
        of_classes = class_sizes_plan(self.target, epsilon=epsilon, unit=facts.unit).charges
        unknown = () if class_size is not None else (f"how many rows have each value of {self.target!r}",)
        return rehearsed, (*of_classes, *rehearsed.plan.charges), unknown

    def _check_room(self, table: Source, facts: PublicFacts, rehearsed: Design) -> None:
        variables, effort = Variables.of(facts.schema), EFFORTS[self.quality]
        of_two = variables.most_pair_cells(rehearsed.in_stated, self.target)
        of_more = rehearsed.stated_cells + (effort.most_cells if effort.rounds_per_column else 0)
        table.check_tables(len(variables.names), max(of_two, of_more))

    def _counts_classes(self, schema: Schema) -> bool:
        """Whether the sizes of the target's classes are counted before all else."""
        return self.target is not None and column_axis(self.target, schema[self.target]).has_classes

    def _sought(self, schema: Schema) -> Sought:
        """The pairs of columns that are looked at for relations: those of no table or sum that the call states."""
        if self.relations != "find":
            return Sought((), ())
        stated = [name for table in checked_workload(self.workload, schema) for name in table]
        named = [column for formula in parse_formulas(self.analyses, schema) for column in formula.columns]
        return Sought.of(schema, [*stated, *named, *([] if self.target is None else [self.target])])

    def _design(self, facts: PublicFacts, class_size: float | None = None) -> Design:
        variables = Variables.of(facts.schema)
        rules, names, modelled = variables.rules, variables.names, list(facts.schema._modelled)
        stated = checked_workload(self.workload, facts.schema)
        plan = design(
            variables.axes,
            n_rows=facts.n_rows,
            epsilon=facts.epsilon,
            delta=facts.delta,
            unit=facts.unit,
            target=None if self.target is None else names.index(self.target),
            required=[tuple(variables.numbers[column] for column in clique) for clique in rules.cliques],
            effort=EFFORTS[self.quality],
            class_size=class_size,
            has_prior=self.prior is not None,
            analyses_share=parse_share(self.analyses_share, "analyses_share") if self.analyses else None,
            stated=[tuple(names.index(name) for name in table) for table in stated],
            n_sought=len(self._sought(facts.schema).pairs),
            # A pure budget has paid for figures of utility by themselves.
            utility_share=None
            if self.utility_share is None or not facts.delta
            else parse_share(self.utility_share, "utility_share"),
        )
        target = None if plan.target is None else modelled.index(names[plan.target])
        fewer = rules.most_states(plan.most_states, target=target, has_rounds=plan.structure == "rounds")
        plan = replace(plan, fewer_states={variables.numbers[column]: states for column, states in fewer.items()})
        if not plan.stated:
            return plan
        return self._with_room(plan, variables)

    def _with_room(self, plan: Design, variables: Variables) -> Design:
        """The design with as many states of the other columns as leave room for stated tables.

        That some do was found out before anything was spent.
        """
        states = plan.states_of_columns(len(variables.names))
        most = max(states)
        while True:
            fewer = [min(number, most) for number in states]
            try:
                n_cells = variables.stated_cells(plan.stated, fewer, required=plan.required, target=plan.target)
            except ParameterError:
                if most <= _FEWEST_STATES:
                    raise
                most = max(most // 2, _FEWEST_STATES)
                continue
            cut = {column: number for column, number in enumerate(fewer) if number < states[column]}
            return replace(plan, stated_cells=n_cells, fewer_states={**plan.fewer_states, **cut})

    def _release(
        self, table: Source, facts: PublicFacts, ledger: Ledger, entropy: Entropy, rehearsed: Design | None
    ) -> ForestRelease:
        schema = facts.schema
        variables = Variables.of(schema)
        names, axes = variables.names, variables.axes
        classes = None
        if self.target is not None and self._counts_classes(schema):
            epsilon = facts.epsilon * _CLASSES_SHARE
            lattice = axes[names.index(self.target)].lattice
            classes = release_classes(table, lattice, epsilon=epsilon, ledger=ledger, entropy=entropy)
            facts = replace(facts, epsilon=facts.epsilon - epsilon)
            rehearsed = self._design(facts, class_size=float(np.sort(classes.noisy_counts)[-2]))
        plan = self._design(facts) if rehearsed is None else rehearsed
        prepaid = PrepaidMechanisms(plan.plan, ledger, entropy)
        if "relations" in plan.plan.vectors:
            schema = find_relations(table, schema, self._sought(schema), prepaid, n_rows=facts.n_rows)
            table, variables = table.with_schema(schema._as_read), Variables.of(schema)
            names, axes = variables.names, variables.axes
        forest = grow(
            table,
            axes,
            plan,
            prepaid,
            total=table.n_rows if ledger.unit.n_is_public else None,
            partings={variables.numbers[column]: it for column, it in variables.rules.told_partings().items()},
            zeros=variables.zeros,
            rng=np.random.default_rng(entropy.words(4)),
            classes=classes,
            row_count=facts.row_count,
            prior=None if self._prior is None else self._prior.with_schema(schema._as_read),
        )
        analyses = None
        if "analyses" in plan.plan.vectors:
            formulas, n_rows = parse_formulas(self.analyses, schema), forest.noisy_total
            blocks = blocks_of(formulas, schema, ledger.unit)
            columns = column_models(names, forest)
            analyses = release_analyses(
                table, weighted_blocks(blocks, formulas, columns, prepaid, n_rows=n_rows), prepaid
            )
        described = {**plan.to_dict(), **noisy_rows_entry(facts.row_count)}
        self.design_ = plan
        release = released_forest(
            forest,
            names,
            lambda contents: self._card(table, ledger, design=described, released=contents, schema=schema),
            analyses,
        )
        if self._paid_figures is not None:
            return with_utility(release, table, forest.cuts, self._paid_figures.noisy_figures)
        if "utility" not in plan.plan.vectors:
            return release

        def noisy_figures(true: NDArray[np.int64]) -> NDArray[np.int64]:
            weighted = true * np.array(weights_of(len(true)))
            return prepaid.noisy_sums(weighted, figures_reach_squared(len(true), ledger.unit), "utility")

        return with_utility(release, table, forest.cuts, noisy_figures)


def column_models(names: Sequence[str], forest: Forest) -> dict[str, ColumnModel]:
    """The columns of a forest by their names, places left out."""
    models = zip(names, forest.columns, strict=True)
    return {name: model for name, model in models if isinstance(model, ColumnModel)}


def released_forest(
    forest: Forest,
    names: Sequence[str],
    card_of: Callable[[Mapping[str, int]], Card],
    analyses: ReleasedAnalyses | None = None,
) -> ForestRelease:
    """The release of a grown forest; `card_of` makes its card when it is known how much was released."""
    columns = column_models(names, forest)
    models = zip(names, forest.columns, strict=True)
    places = {name: model for name, model in models if isinstance(model, PlaceModel)}

    def named(cliques: Sequence[Clique]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(names[column] for column in clique) for clique in cliques)

    return ForestRelease(
        columns,
        forest.model,
        card_of(released(columns, forest.model, places, forest.products, analyses)),
        looked_at=named(forest.cliques),
        noisy_total=round(forest.noisy_total),
        places=places,
        products=forest.products,
        from_prior=named(forest.from_prior),
        measured=forest.measured,
        analyses=analyses,
    )
