"""ForestSynthesizer: many and mixed columns, by small trees and tables joined into one model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.errors import ParameterError, SchemaError
from spinney.forest.analyses import release_analyses, weighted_blocks
from spinney.forest.columns import release_classes
from spinney.forest.design import EFFORTS, Design, design
from spinney.forest.grow import grow
from spinney.forest.plan import class_sizes_plan
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.forest.release.column_model import ColumnModel
from spinney.forest.release.explain import Explanation
from spinney.forest.release.forest_file import released
from spinney.forest.release.formula import parse_formulas
from spinney.forest.release.model import ForestRelease
from spinney.forest.release.place_model import PlaceModel
from spinney.forest.release.regressors import Block, blocks_of
from spinney.forest.rule_tables import RuleTables
from spinney.forest.variables import Variables
from spinney.privacy.budget import Unit, parse_share
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Charge, Ledger
from spinney.release.options import explains_options
from spinney.release.row_count import noisy_rows_entry
from spinney.release.utility import figures_reach_squared, weights_of
from spinney.schema.column_axis import column_axis
from spinney.schema.table import Schema
from spinney.shown import as_given
from spinney.suggest import did_you_mean
from spinney.synthesizers.base import PublicFacts, Synthesizer
from spinney.synthesizers.bounds import with_widest_bounds
from spinney.synthesizers.prior import Prior, check_is_another, opened_prior
from spinney.synthesizers.utility import with_utility
from spinney.synthesizers.values import with_few_values
from spinney.synthesizers.workload import checked_workload, read_once
from spinney.tables.source import Source

Quality = Literal["fast", "high", "best"]
QUALITIES: tuple[Quality, ...] = ("fast", "high", "best")


# The part of epsilon for the sizes of the target's classes, which decide what else is worth measuring.
_CLASSES_SHARE = Fraction(1, 25)
# Columns beside stated tables have as few states as this where there is no more room.
_FEWEST_STATES = 2


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
        quality: "fast"; "high" for more pairs of columns than a tree has, and for triples, which takes seconds for
            fifteen columns and a minute for a hundred; or "best" for more still, up to five columns together, in a
            model several times as large and slow.
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
    """

    release_: ForestRelease
    design_: Design

    _pays_before_counting = True
    _prior: Prior | None = None  # opened, while a fit is under way

    def __init__(
        self,
        epsilon: Any = 1,
        delta: Any = None,
        *,
        target: str | None = None,
        quality: str = "fast",
        workload: Sequence[Sequence[str]] | None = None,
        analyses: Sequence[str] | None = None,
        analyses_share: Any = "0.25",
        prior: Any = None,
        unit: str = "replace-one",
        bounds_share: Any = "0.1",
        values_share: Any = "0.1",
        assumed_rows: int | None = None,
        utility_share: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target = target
        self.quality = quality
        self.workload = workload
        self.analyses = analyses
        self.analyses_share = analyses_share
        self.prior = prior
        self.unit = unit
        self.bounds_share = bounds_share
        self.values_share = values_share
        self.assumed_rows = assumed_rows
        self.utility_share = utility_share

    @explains_options
    def sample(
        self,
        n_rows: int | None = None,
        *,
        seed: int | np.random.Generator | None = None,
        frame: str | None = None,
        like: Any = None,
        parts: int | str | None = None,
        where: Mapping[str, Any] | None = None,
        balance: Mapping[str, Any] | None = None,
        draws: int | None = None,
    ) -> Any:
        """Synthetic rows, in the kind of table that was fitted. Costs no epsilon, however often.

        Args:
            n_rows: how many rows; by default as many as the private table had where that is public, else a noisy total.
            seed: repeats the same rows; the noise of the release is not affected. Rows are drawn by a stream of their
                own, so the seed may serve again for what is done with them; of a generator a few words are drawn.
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind of `like`, else the kind that was
                fitted.
            like: a table, or its `dtypes` or `schema`, whose column types the rows get; see `Release.sample`.
            parts: in how many parts to draw rows that memory does not hold, or "auto"; gives a `SampleParts`, see
                `Release.sample`.
            where: conditions that every row meets, by column: a value, a range `(low, high)` with both ends (None:
                no end), a list of values, or None for null.
            balance: shares of the values of a category or a boolean, by column: a mapping from values to shares that
                add up to 1, or for two values the share of the second.
            draws: how many tables to draw, each from a model of its own, fitted to the released counts with fresh
                noise, so that their spread carries the noise of the release; a list of so many tables. Without it, one
                table: the best single one, whose analyses know nothing of the noise.

        Raises:
            ParameterError: an option is unknown or out of range, no row can meet the conditions, or a type in `like`
                cannot hold what the schema allows.
        """
        self._fitted()
        asked: dict[str, Any] = {"where": where, "balance": balance, "draws": draws, "parts": parts}
        return self.release_.sample(n_rows, seed=seed, frame=frame, like=like, **asked)

    def explain(self, *, error_bars: bool = False) -> Explanation:
        """What was looked at together and why, the columns' bins, and the shares of the budget.

        Args:
            error_bars: whether it also says how far columns and pairs may be off, which takes a few seconds.
        """
        self._fitted()
        return self.release_.explain(error_bars=error_bars)

    def _on_card(self, name: str, value: Any) -> Any:
        if name == "workload" and value is not None:
            return [list(table) for table in value]
        if name == "analyses" and value is not None:
            return list(value)
        if name == "prior" and self._prior is not None:
            return self._prior.described
        return super()._on_card(name, value)

    def _check(self, schema: Schema) -> None:
        if not isinstance(self.quality, str) or self.quality not in QUALITIES:
            raise ParameterError(f"quality={as_given(self.quality)} is not 'fast', 'high' or 'best'")
        if not any(column.is_read for column in schema.values()):
            raise SchemaError("all columns are identifiers, which are generated; there is nothing to learn")
        RuleTables.of(with_widest_bounds(with_few_values(schema))).check()
        parse_share(self.analyses_share, "analyses_share")
        self._check_target(schema)
        self._check_workload(schema)
        self._blocks(with_widest_bounds(schema), Unit.parse_rows(self.unit))

    def _settle(self) -> None:
        self.workload = read_once(self.workload)

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
        if not schema[self.target].is_read:
            raise ParameterError(f"target={self.target!r} is an identifier, which is never read; choose another column")
        for rule in schema.derivations:
            if rule.column == self.target:
                sources = " or ".join(map(repr, rule.sources))
                raise ParameterError(f"target={self.target!r} is computed from others; choose {sources} instead")
        for place in schema.places:
            if self.target in place.columns:
                raise ParameterError(
                    f"target={self.target!r} is part of the place {place.label!r}, which cannot be a target; choose "
                    "another column, or take the place out of the schema"
                )

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

    def _blocks(self, schema: Schema, unit: Unit) -> tuple[Block, ...]:
        """The sums of the named regressions, or a ParameterError where there can be none."""
        return blocks_of(parse_formulas(self.analyses, schema), schema, unit)

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

    def _design(self, facts: PublicFacts, class_size: float | None = None) -> Design:
        variables = Variables.of(facts.schema)
        rules, names, modelled = variables.rules, variables.names, list(facts.schema.modelled)
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
            utility_share=self._composed_share(facts),
        )
        target = None if plan.target is None else modelled.index(names[plan.target])
        fewer = rules.most_states(plan.most_states, target=target, has_rounds=plan.structure == "rounds")
        plan = replace(plan, fewer_states={variables.numbers[column]: states for column, states in fewer.items()})
        if not plan.stated:
            return plan
        return self._with_room(plan, variables)

    def _composed_share(self, facts: PublicFacts) -> Fraction | None:
        """The part of a composed budget for figures of utility; a pure one has paid for them by themselves."""
        if self.utility_share is None or not facts.delta:
            return None
        return parse_share(self.utility_share, "utility_share")

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
            prior=None if self._prior is None else self._prior.with_schema(schema.as_read),
        )
        models = dict(zip(names, forest.columns, strict=True))
        columns = {name: model for name, model in models.items() if isinstance(model, ColumnModel)}
        analyses = None
        if plan.plan.analyses is not None:
            formulas, n_rows = parse_formulas(self.analyses, schema), forest.noisy_total
            blocks = blocks_of(formulas, schema, ledger.unit)
            analyses = release_analyses(
                table, weighted_blocks(blocks, formulas, columns, prepaid, n_rows=n_rows), prepaid
            )
        places = {name: model for name, model in models.items() if isinstance(model, PlaceModel)}
        described = {"structure": plan.structure, **plan.plan.to_dict(), **noisy_rows_entry(facts.row_count)}
        contents = released(columns, forest.model, places, forest.products, analyses)
        card = self._card(table, ledger, plan=described, released=contents, schema=schema)
        looked_at = tuple(tuple(names[column] for column in clique) for clique in forest.cliques)
        self.design_ = plan
        noisy_total = round(forest.noisy_total)
        release = ForestRelease(
            columns,
            forest.model,
            card,
            looked_at=looked_at,
            noisy_total=noisy_total,
            places=places,
            products=forest.products,
            from_prior=tuple(tuple(names[column] for column in clique) for clique in forest.from_prior),
            measured=forest.measured,
            analyses=analyses,
        )
        if self._paid_figures is not None:
            return with_utility(release, table, forest.cuts, self._paid_figures.noisy_figures)
        if plan.plan.utility is None:
            return release

        def noisy_figures(true: NDArray[np.int64]) -> NDArray[np.int64]:
            weighted = true * np.array(weights_of(len(true)))
            return prepaid.noisy_sums(weighted, figures_reach_squared(len(true), ledger.unit), "utility")

        return with_utility(release, table, forest.cuts, noisy_figures)
