"""ForestRelease: columns with their leaves, a joint model of their states, and draws. PUBLIC.

remarks        what leaves say about bounds and about columns of too few cells
the release    the release: draws, conditions, redrawn tables, answers, members of the file
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Column, whole_range
from spinney.errors import ParameterError, raise_alone
from spinney.forest.release.analyses import MEMBER, ReleasedAnalyses, check_analyses_weights
from spinney.forest.release.columns import ColumnModel, Floats, graded_leaves, with_law
from spinney.forest.release.conditions import (
    Restriction,
    asked_of_modelled,
    balanced,
    condition,
    feasible_of,
    follows_from_lag,
    grouped,
    of_modelled,
    part_starts,
    resample_above,
    wanted_shares,
)
from spinney.forest.release.days import move_to_days, on_asked_days, on_days, states_on_days
from spinney.forest.release.file import MEASURED_MEMBERS, forest_from_members, forest_members
from spinney.forest.release.fit import MEMBERS, Around, Redrawing, Redrawn, ReleasedProducts
from spinney.forest.release.grain import Steps
from spinney.forest.release.lags import Wanted, kept_rows, narrowed, settle
from spinney.forest.release.measured import Measured
from spinney.forest.release.places import PlaceModel
from spinney.forest.release.related import alternatives, codes_aside, without_codes
from spinney.forest.release.verify import check_model, check_spread_of_tables, unverified_of_forest, verify_forest
from spinney.graph.model import GraphModel, draw_states
from spinney.graph.tilted_draw import Factors, draw_tilted, draw_tilted_given, fitted_factors
from spinney.grid.axes import column_axes
from spinney.progress import progress, waiting
from spinney.release.answers.question import allowed, plain
from spinney.release.card import Card, Ranges, of_one_range, of_piles
from spinney.release.frames import numbers_of
from spinney.release.parts import Part, in_chunks
from spinney.release.release import (
    Members,
    Release,
    checked_draws,
    draw_generators,
    explains_options,
    refuse_parts_of_draws,
)
from spinney.schema.rules.base import ValueSet
from spinney.schema.schema import Schema
from spinney.text import did_you_mean

if TYPE_CHECKING:
    from spinney.forest.release.answers import ForestAnswers
    from spinney.forest.release.explain import Explanation
    from spinney.forest.release.regression import Regression
    from spinney.release.answers.answer import Answer, Trust
    from spinney.release.answers.question import Question


# -------------------------------------------------------------------------------------------------------------- remarks
# What a forest's leaves say about the schema: rows that pile up at a bound, and columns of too few cells.


def forest_remarks(columns: Mapping[str, ColumnModel], schema: Schema, structure: str) -> list[str]:
    """Remarks on all columns; none where nothing was measured, which the card says."""
    if structure == "uniform":
        return []
    remarks: list[str] = []
    for name, released in columns.items():
        rule = schema._related.get(name)
        column = schema._modelled[name] if rule is None else schema[name]
        if not isinstance(column, Bounded):
            continue
        model = released if rule is None else without_codes(released, rule, schema)
        held = ~model.is_null & (model.weights > 0)
        ranges = Ranges(model.low[held], model.length[held], model.weights[held])
        remarks += of_piles(name, column, ranges)
        if column.bits is not None:  # otherwise the leaves are as short as the budget allows
            remarks += of_one_range(name, column, ranges, "raise or leave out its bits")
    return remarks


# ---------------------------------------------------------------------------------------------------------- the release
# A release of a forest: columns with their leaves, and a model of the joint distribution of the columns'
# states.
#
# A row is drawn in three steps: states by the model, from the root of its tree outwards; a leaf inside each
# state; a value inside each leaf. Conditions enter the model before anything is drawn.


_BALANCE_TURNS = 10
_FACTORS_STREAM = 15


def steps_of(names: Sequence[str], measured: Measured | None) -> dict[str, Steps]:
    """Of columns whose steps were counted, what was counted of them."""
    if measured is None:
        return {}
    named = zip(names, measured.columns, strict=True)
    return {name: column.steps for name, column in named if column is not None and column.steps is not None}


class Prepared(NamedTuple):
    """What rows are drawn from: columns with the bounds of what is left of them, their leaves, and the model."""

    schema: dict[str, Column]
    columns: dict[str, ColumnModel]
    places: dict[str, PlaceModel]
    model: GraphModel
    held: tuple[int, ...] | None = None  # under conditions, the variables whose shares were asked for
    boxes: tuple[tuple[float, Prepared], ...] = ()  # disjoint conditions that rows are drawn by, and their weights
    wanted: Wanted | None = None  # conditions that rows are drawn for until enough of them meet these


class ForestRelease(Release):
    """Columns and places, a model over their states, and the card. Identifiers are not in it: they are generated."""

    kind = "forest"
    member_names = ("leaves.arrow", "model.arrow", "places.arrow", *MEMBERS, *MEASURED_MEMBERS, MEMBER)

    def __init__(
        self,
        columns: Mapping[str, ColumnModel],
        model: GraphModel,
        card: Card,
        *,
        looked_at: tuple[tuple[str, ...], ...],
        noisy_total: int,
        is_graded: bool = True,
        places: Mapping[str, PlaceModel] | None = None,
        products: ReleasedProducts | None = None,
        from_prior: tuple[tuple[str, ...], ...] = (),
        measured: Measured | None = None,
        analyses: ReleasedAnalyses | None = None,
        steps: Mapping[str, Steps] | None = None,
    ) -> None:
        super().__init__(card)
        self.columns = dict(columns)
        self.places = dict(places or {})  # by their labels
        self.model = model
        self.looked_at = looked_at  # the columns and places that were counted together
        self.noisy_total = noisy_total
        self.products = products  # of all pairs that were not counted, where they were released
        self.from_prior = from_prior  # whose tables a prior gave, counted or not
        self.measured = measured  # all counts as they left the mechanisms; None in files from before
        self._redrawn: dict[str, tuple[int, tuple[Redrawn, ...]]] = {}
        self.analyses = analyses  # the sums of regressions that were named before the fit
        # By column: rows in each class of the steps that its values come in, where they were counted.
        self.steps = steps_of(self.variables, measured) if steps is None else dict(steps)
        self.is_graded = is_graded  # whether long leaves are drawn from by size, as of late, or evenly

    @cached_property
    def finer_leaves(self) -> dict[str, tuple[ColumnModel, NDArray[np.int64]]]:
        """Of each column, the leaves that rows are drawn from, and which leaf each of them is a part of."""
        drawn = self.schema._as_drawn
        found = {
            name: graded_leaves(model, drawn[name]) if self.is_graded else (model, np.arange(len(model.low)))
            for name, model in self.columns.items()
        }
        for name, runs in self.schema._days.items():
            if name not in self.schema._lags:
                found[name] = on_days(*found[name], drawn[name], runs)
        axes = column_axes(self.schema) if self.steps else {}
        for name, steps in self.steps.items():
            model, leaf = found[name]
            found[name] = with_law(model, axes[name], steps), leaf
        return found

    @cached_property
    def drawn_columns(self) -> dict[str, ColumnModel]:
        """The columns as rows are drawn from them: with long leaves divided, and on their days alone."""
        return {name: finer for name, (finer, _) in self.finer_leaves.items()}

    @property
    def variables(self) -> list[str]:
        """What the model is over, in its order: columns by their names, places by their labels."""
        return list(self.schema._variables)

    # ------------------------------------------------------------------------------------------------- drawing

    @explains_options
    @waiting("drawing rows")
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
        if draws is not None:
            refuse_parts_of_draws(parts)
            return self._sample_draws(
                checked_draws(draws), n_rows, seed=seed, frame=frame, like=like, where=where, balance=balance
            )
        prepared = self.conditioned(where, balance)
        draw = in_chunks(partial(self._draw, prepared=prepared))
        asked, drawn = {"where": where, "balance": balance}, prepared.schema
        return self._sample(draw, n_rows, seed=seed, frame=frame, like=like, parts=parts, drawn=drawn, asked=asked)

    def _sample_draws(
        self, n_draws: int, n_rows: int | None, *, seed: Any, frame: str | None, **asked: Any
    ) -> list[Any]:
        """Tables, each from a model that might have been released."""
        self.conditioned(asked["where"], asked["balance"])  # what no model allows is refused as for one table
        n_rows = self._default_rows() if n_rows is None else n_rows
        generators = draw_generators(seed, n_draws)
        tables = []
        for number, (redrawn, rng) in enumerate(self._redrawing.one_by_one(generators, "numbers"), start=1):
            release = self._as_redrawn(redrawn)
            try:
                release.conditioned(asked["where"], asked["balance"])
            except ParameterError as problem:
                raise_alone(
                    ParameterError(
                        f"draw {number} of {n_draws}: {problem}; the released model meets these conditions so rarely "
                        "that a redrawn one does not"
                    )
                )
            tables.append(release.sample(n_rows, seed=rng, frame=frame, **asked))
        return tables

    def redrawn(self, n: int = 20, *, seed: int = 0, around: Around = "model") -> tuple[Redrawn, ...]:
        """Models that might have been released: all counts with fresh noise, and fitted again. Costs no epsilon.

        Args:
            n: how many models; 2 to 1,000.
            seed: repeats the same models; the first ones do not depend on `n`.
            around: what fresh noise is added to: what the "model" says of every count, for standard errors of its
                probabilities, or the "numbers" that were released, for draws of rows.

        Raises:
            ParameterError: an argument is out of range, the release was saved by an earlier version, or used a prior.
        """
        n = checked_draws(n)
        if around not in ("model", "numbers"):
            raise ParameterError(f"around={around!r} is not one of 'model', 'numbers'")
        known_seed, known = self._redrawn.get(around, (seed, ()))
        if known_seed != seed or len(known) < n:
            kept = known if known_seed == seed else ()
            known = (*kept, *self._redrawing.draws(draw_generators(seed, n)[len(kept) :], around))
            self._redrawn[around] = seed, known
        return known[:n]

    # ----------------------------------------------------------------------------------------------- questions

    @cached_property
    def _answering(self) -> ForestAnswers:
        from spinney.forest.release.answers import ForestAnswers

        return ForestAnswers(self)

    def _answer(self, questions: Sequence[Question], *, simultaneous: bool = False) -> list[Answer]:
        return self._answering.answer(questions, simultaneous=simultaneous)

    def _trust(self, columns: tuple[str, ...]) -> Trust:
        return self._answering.trust(columns)

    def _bar_starts(self, name: str, most: int, *, together: bool) -> list[Any] | None:
        from spinney.forest.release.answers import bar_starts

        return bar_starts(self, name, most, together=together)

    def _value_groups(self, name: str) -> list[list[Any]] | None:
        from spinney.forest.release.answers import value_groups

        return value_groups(self, name)

    def _counts_whole(self, by: Mapping[str, list[Any]]) -> bool:
        from spinney.forest.release.answers import counts_whole

        return self._counts_together(by) and counts_whole(self, self._answering, by)

    @cached_property
    def _redrawing(self) -> Redrawing:
        return Redrawing(self)

    def _as_redrawn(self, redrawn: Redrawn) -> ForestRelease:
        """A release of a redrawn model, to draw rows from."""
        release = ForestRelease(
            redrawn.columns,
            redrawn.model,
            self._card,
            looked_at=self.looked_at,
            noisy_total=round(redrawn.total),
            is_graded=self.is_graded,
            places=redrawn.places,
            products=redrawn.products,
            steps={name: replace(self.steps[name], noisy=noisy) for name, noisy in redrawn.grains.items()},
        )
        release.stream = self.stream
        return release

    def conditioned(self, where: Mapping[str, Any] | None, balance: Mapping[str, Any] | None) -> Prepared:
        """Columns and model under the conditions of a draw, which are checked."""
        for argument, given in (("where", where), ("balance", balance)):
            if given is not None and not isinstance(given, Mapping):
                raise ParameterError(f"{argument} is not a mapping from columns to what is wanted of them")
            for name in given or ():
                if name not in self.schema or not self.schema[name].is_read:
                    known = [column for column, kind in self.schema.items() if kind.is_read]
                    hint = did_you_mean(name, known)
                    raise ParameterError(f"{argument}: {name!r} is not a column that the model knows{hint}")
        for name in balance or ():
            if name in (where or ()):
                raise ParameterError(f"column {name!r} is in where and in balance; take it out of one")
        several = alternatives(where or {}, self.schema)
        if len(several) == 1:
            return self._prepared(self.drawn_columns, several[0], dict(balance or {}))
        if any(follows_from_lag(name, self.schema) for name in (*(where or ()), *(balance or ()))):
            alone = {
                name: wanted
                for name, wanted in (where or {}).items()
                if len(alternatives({name: wanted}, self.schema)) > 1
            }
            rest = {name: wanted for name, wanted in (where or {}).items() if name not in alone}
            return self._prepared(self.drawn_columns, rest, dict(balance or {}), by_rows=alone)
        return self._in_boxes(several, dict(balance or {}))

    def _in_boxes(self, several: Sequence[dict[str, Any]], balance: dict[str, Any]) -> Prepared:
        """Columns and models under each of some disjoint conditions, with as much weight as each has in the model."""
        boxes: list[tuple[float, Prepared]] = []
        problem = None
        for where in several:
            try:
                weight = self._answering.share_of(where)
                if weight > 0:
                    boxes.append((weight, self._prepared(self.drawn_columns, where, dict(balance))))
            except ParameterError as err:
                problem = err
        if not boxes:
            raise_alone(problem or ParameterError("where: no row can meet all these conditions together; ask for less"))
        first, common = boxes[0][1], self.schema._as_drawn
        near = [prepared.schema for _, prepared in boxes]
        for name in common:
            if all(schema[name] == near[0][name] for schema in near):
                common[name] = near[0][name]
        return first._replace(schema=common, boxes=tuple(boxes))

    def _prepared(
        self,
        drawn_from: Mapping[str, ColumnModel],
        where: dict[str, Any],
        balance: dict[str, Any],
        *,
        by_rows: Mapping[str, Any] | None = None,
    ) -> Prepared:
        """Columns and model under all rules and conditions; those in `by_rows` are looked at in drawn rows alone."""
        schema, columns, model = self.schema._as_drawn, dict(drawn_from), self.model
        places = dict(self.places)
        names = {name: place for place, name in enumerate(self.variables)}
        evidence: dict[int, Floats] = {}

        def take(name: str, cut: Restriction) -> None:
            schema[name], columns[name] = cut.column, cut.model
            evidence[names[name]] = evidence.get(names[name], 1.0) * cut.left

        starts = part_starts(self.schema) if where else {}
        of_lags = [name for name in (*where, *balance) if follows_from_lag(name, self.schema)]
        conditions, of_sums = self._conditions_on_rows({**where, **(by_rows or {})}, [*of_lags, *(by_rows or ())])
        for source, reached in of_sums.items():
            if reached.is_empty:
                raise ParameterError("where: no row can meet all these conditions together; ask for less")
            if not reached.has_null or not reached.ranges:
                model_left, left = columns[source].restrict_to_null(wanted=reached.has_null)
                take(source, Restriction(schema[source], model_left, left))
        for name, cut in states_on_days(self.schema, schema, columns).items():
            take(name, cut)
        asked = asked_of_modelled({name: one for name, one in where.items() if name not in of_lags}, self.schema)
        for name, several in asked.items():
            for wanted in several:
                if name in columns:
                    on_its = on_asked_days(name, wanted, self.schema)
                    take(name, condition(name, schema[name], columns[name], on_its, starts=starts.get(name, ())))
                    continue
                label, place = next((label, place) for label, place in places.items() if name in place.names)
                of_place = [schema[one] for one in place.names]
                schema[name], places[label], left = place.restricted(place.names.index(name), of_place, wanted)
                evidence[names[label]] = evidence.get(names[label], 1.0) * left
        nulls = [name for name, several in asked.items() if any(plain(wanted) in (None, [None]) for wanted in several)]
        lags = [lag for name, lag in self.schema._lags.items() if name not in of_sums or of_sums[name].ranges]
        try:
            # After conditions, whose ends are ends for other columns too.
            for name, cut in feasible_of(self.schema, schema, columns, asked=asked, nulls=nulls).items():
                take(name, cut)
            for name, cut in narrowed(lags, self.schema, schema, columns, of_sums, days=self.schema._days).items():
                if name not in nulls:
                    take(name, cut)
            model = model.given(evidence) if evidence else model
        except ParameterError:
            if not where:
                raise ParameterError(
                    "no row of this release obeys all rules; fit with a larger epsilon or fewer rules"
                ) from None
            raise ParameterError("where: no row can meet all these conditions together; ask for less") from None
        held = []
        # One column's shares move those of columns that depend on it, so several are fitted in turn.
        fitted = {name: wanted for name, wanted in balance.items() if name not in of_lags}
        for name, wished in [*fitted.items()] * (1 if len(fitted) < 2 else _BALANCE_TURNS):
            if any(name in place.names for place in places.values()):
                raise ParameterError(f"balance: column {name!r} is part of a place; balance categories or booleans")
            groups = grouped(name, wished, self.schema, schema, columns)
            law = model.marginal((names[groups.source],))
            columns[groups.source], weights = balanced(name, groups, law)
            model = model.given({names[groups.source]: weights})
            held.append(names[groups.source])
        every = {name: wanted_shares(name, self.schema[name], wished) for name, wished in balance.items()}
        wanted = Wanted(conditions, every) if of_lags else None  # conditions change the shares of other columns too
        shares_held = tuple(dict.fromkeys(held)) if where or balance else None
        return Prepared(schema, columns, places, model, shares_held, wanted=wanted)

    def _conditions_on_rows(
        self, where: Mapping[str, Any], names: Collection[str]
    ) -> tuple[dict[str, ValueSet], dict[str, ValueSet]]:
        """Conditions on some columns, and what they ask of those that are another one and a difference."""
        conditions = {name: allowed(name, self.schema[name], where[name]) for name in names if name in where}
        of_sums: dict[str, ValueSet] = {}
        for name, values in conditions.items():
            if follows_from_lag(name, self.schema):
                source, reached = of_modelled(name, values, self.schema, argument="where")
                of_sums[source] = of_sums.get(source, reached) & reached
        return conditions, of_sums

    def under_rules(self) -> tuple[dict[str, ColumnModel], GraphModel]:
        """Columns, with the leaves that were counted, and model as rows are drawn where no condition is given."""
        schema, columns, _, model, *_ = self._prepared(self.columns, {}, {})
        stated = self.schema._as_drawn
        for name in columns:
            if schema[name].is_whole and schema[name] != stated[name]:  # a cut column counts from a bound of its own
                shift = whole_range(schema[name])[0] - whole_range(stated[name])[0]
                columns[name] = replace(columns[name], low=columns[name].low + shift * ~columns[name].is_null)
        return columns, model

    def explain(self, *, error_bars: bool = False) -> Explanation:
        """What the forest knows of the table, and what it paid for that. Costs nothing.

        Args:
            error_bars: whether it also says how far columns and pairs may be off, which takes a few seconds.
        """
        from spinney.forest.release.explain import explain

        return explain(self, error_bars=error_bars)

    def regression(self, formula: str, *, level: float = 0.95, of: str = "table") -> Regression:
        """The coefficients of a linear regression that was named before the fit, with intervals. Costs no epsilon.

        So are all regressions among the columns of named ones that leave out the same rows.

        Args:
            formula: what is explained and by what, such as "hours ~ age + sex + education".
            level: the probability that each interval holds with.
            of: "table" for what least squares gives on the private table, "population" for what its rows were sampled
                from.

        Raises:
            ParameterError: the formula is wrong, or its columns were not named before the fit.
        """
        from spinney.forest.release.regression import named_regression

        return named_regression(self, formula, level=level, of=of)

    def _draw(
        self,
        n_rows: int,
        rng: np.random.Generator,
        *,
        part: Part | None = None,
        prepared: Prepared | None = None,
    ) -> Floats:
        return self.drawn(n_rows, rng, part=part, prepared=prepared)[1]

    def drawn(
        self,
        n_rows: int,
        rng: np.random.Generator,
        *,
        part: Part | None = None,
        prepared: Prepared | None = None,
    ) -> tuple[NDArray[np.int32], Floats]:
        """States of the variables (n_variables, n_rows), and positions along all columns (n_columns, n_rows)."""
        prepared = prepared or self._prepared(self.drawn_columns, {}, {})
        if prepared.boxes:
            return self._drawn_in_boxes(n_rows, rng, prepared)
        if prepared.wanted is not None:
            names, rows = prepared.wanted.columns, partial(self.drawn, prepared=prepared._replace(wanted=None))
            values_of = partial(numbers_of, names, schema=self.schema, drawn=prepared.schema)
            return kept_rows(rows, values_of, prepared.wanted, n_rows, rng)
        schema, columns, regions, model, held, *_ = prepared
        offsets = rng.random if part is None else part.offsets()
        # Without conditions, single columns and counted pairs are as the model has them.
        every = range(len(self.variables))
        if self.products is None:
            drawn = draw_states(model, n_rows, rng, offsets)
        elif held is not None:
            drawn = draw_tilted_given(model, self.products.tilt, self._factors, n_rows, rng, columns=held)
        else:
            drawn = draw_tilted(model, self.products.tilt, n_rows, rng, columns=every, pairs=self.counted_pairs)
        states = {name: drawn[place] for place, name in enumerate(self.variables)}
        places: dict[str, Floats] = {}
        for name in progress(self.variables, "drawing columns", unit="column"):
            if name in columns:
                places[name] = columns[name].draw(states[name], rng, offsets)
            else:
                place = regions[name]
                points = place.draw(states[name], [schema[one] for one in place.names], rng, offsets)
                places |= dict(zip(place.names, points, strict=True))
        with codes_aside(places, self.schema, schema, columns, rng) as (near, left):
            resample_above(places, states, self.schema._orders, near, left, rng)
        move_to_days(places, self.schema, schema)
        settle(places, states, list(self.schema._lags.values()), self.schema, schema, rng, days=self.schema._days)
        nothing = np.zeros(n_rows)
        return drawn, np.stack([places.get(name, nothing) for name in self.schema])

    def _drawn_in_boxes(
        self, n_rows: int, rng: np.random.Generator, prepared: Prepared
    ) -> tuple[NDArray[np.int32], Floats]:
        """Rows of disjoint conditions in random order, as many of each as fall to it by its weight."""
        weights = np.array([weight for weight, _ in prepared.boxes])
        found = []
        for number, (_, box) in zip(rng.multinomial(n_rows, weights / weights.sum()), prepared.boxes, strict=True):
            if not number:
                continue
            states, places = self.drawn(int(number), rng, prepared=box)
            for at, (name, column) in enumerate(prepared.schema.items()):
                if column.is_read and column.is_whole and column != box.schema[name]:
                    places[at] += whole_range(box.schema[name])[0] - whole_range(column)[0]
            found.append((states, places))
        order = rng.permutation(n_rows)
        states, places = (np.concatenate(every, axis=1)[:, order] for every in zip(*found, strict=True))
        return states, places

    @cached_property
    def _factors(self) -> Factors:
        """What draws under conditions are weighted by beside the tilt; the same in every process."""
        assert self.products is not None
        model = self._prepared(self.drawn_columns, {}, {}).model
        columns, rng = range(len(self.variables)), np.random.default_rng(_FACTORS_STREAM)
        return fitted_factors(model, self.products.tilt, rng, columns=columns, pairs=self.counted_pairs)

    @property
    def counted_pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of variables, by number, that share a counted table."""
        numbers = {name: number for number, name in enumerate(self.variables)}
        cliques = [sorted(numbers[name] for name in names) for names in self.looked_at]
        return tuple(sorted({pair for clique in cliques for pair in combinations(clique, 2)}))

    def _counts_together(self, names: Collection[str]) -> bool:
        if any(follows_from_lag(name, self.schema) for name in names):
            return False
        asked = set(names)
        for rule in reversed(self.schema._derivations):  # what is computed last may be computed of what is computed
            if rule.column in asked:
                asked = asked - {rule.column} | {*rule.sources, *({rule.column} & {*self.columns})}
        for label, place in self.places.items():
            if asked.intersection(place.names):
                asked = (asked - {*place.names}) | {label}
        read = {name for name in asked if name not in self.schema or self.schema[name].is_read}
        return len(read) <= 1 or any(read <= {*table} for table in self.looked_at)

    def _is_coarse(self, names: Collection[str]) -> bool:
        """Whether states of one of the columns are ranges: two values of it, or a leaf that has several."""
        for name in names:
            model = self.columns.get(name)
            if model is None:
                return True
            is_wide = (model.length > 1) if self.schema._as_drawn[name].is_whole else (model.length > 0)
            if model.n_states < len(model.low) or bool((is_wide & ~model.is_null).any()):
                return True
        return False

    @cached_property
    def _misfit_factor(self) -> float | None:
        from spinney.forest.release.misfit import Laws, Misfit

        return None if self.products is None else Misfit(self, Laws(self, n_redrawn=0)).factor

    def _remarks(self) -> list[str]:
        return forest_remarks(self.columns, self.schema, str(self._card.structure))

    def _noisy_total(self) -> int:
        return self.noisy_total

    def _require_contents(self) -> None:
        """A forest can always draw, were it evenly over all that is possible."""

    # ------------------------------------------------------------------------------------------------- files

    def verify_contents(self) -> list[str]:
        return verify_forest(self)

    def verify_model(self) -> list[str]:
        return [*check_model(self), *check_spread_of_tables(self), *check_analyses_weights(self)]

    def unverified(self) -> list[tuple[str, str]]:
        return unverified_of_forest(self)

    def to_members(self) -> tuple[dict[str, Any], Members]:
        return forest_members(self)

    @classmethod
    def from_members(cls, card: Card, described: Mapping[str, Any], members: Members) -> Self:
        return cls(card=card, **forest_from_members(card, described, members))
