"""A release of a forest: columns with their leaves, and a model of the joint distribution of the columns' states.

A row is drawn in three steps: states by the model, from the root of its tree outwards; a leaf inside each state; a
value inside each leaf. Conditions enter the model before anything is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.columns import Column, whole_range
from spinney.errors import ParameterError
from spinney.forest.release.asked import plain
from spinney.forest.release.balance import balanced, grouped
from spinney.forest.release.column_model import ColumnModel, Floats
from spinney.forest.release.conditions import condition
from spinney.forest.release.derived import asked_of_modelled, part_starts
from spinney.forest.release.graded import graded
from spinney.forest.release.place_file import place_entries, places_from_members, regions_table
from spinney.forest.release.place_model import PlaceModel
from spinney.forest.release.products import MEMBERS, ReleasedProducts, products_from_members
from spinney.forest.release.remarks import forest_remarks
from spinney.forest.release.restrict import Restriction
from spinney.forest.release.rules import feasible, resample_above
from spinney.forest.release.verification import verify_forest
from spinney.graph.draw import draw_states
from spinney.graph.model import GraphModel
from spinney.graph.tilted_draw import Factors, draw_tilted, draw_tilted_given, fitted_factors
from spinney.progress import progress, waiting
from spinney.release.arrow import FLOAT, from_arrow, lists, numbers, to_arrow
from spinney.release.card import Card
from spinney.release.entries import MOST_ROWS
from spinney.release.model import Members, Release
from spinney.release.options import explains_options
from spinney.schema.rules import AtMost, in_order
from spinney.suggest import did_you_mean

if TYPE_CHECKING:
    from spinney.forest.release.explain import Explanation


# The columns of the two tables in a file.
_LEAVES = {
    "column": (pa.dictionary(pa.int32(), pa.string()), pa.string()),
    **dict.fromkeys(("low", "length", "weights"), FLOAT),
    "is_null": (pa.bool_(),),
    "states": (pa.int32(),),
}
_CLIQUES = {"clique": (pa.list_(pa.int32()),), "potentials": (pa.list_(pa.float64()),)}
_FIELDS = ("low", "length", "is_null", "weights", "states")
_WIDEST = 32
_BALANCE_TURNS = 10
_FACTORS_STREAM = 15
# How rows lie in a leaf: evenly, which is all that older files know, or graded by size where it is long.
_WITHIN_LEAVES = ("even", "graded")


class Prepared(NamedTuple):
    """What rows are drawn from: columns with the bounds of what is left of them, their leaves, and the model."""

    schema: dict[str, Column]
    columns: dict[str, ColumnModel]
    places: dict[str, PlaceModel]
    model: GraphModel
    held: tuple[int, ...] | None = None  # under conditions, the variables whose shares were asked for


class ForestRelease(Release):
    """Columns and places, a model over their states, and the card. Identifiers are not in it: they are generated."""

    kind = "forest"
    member_names = ("leaves.arrow", "model.arrow", "places.arrow", *MEMBERS)

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
    ) -> None:
        super().__init__(card)
        self.columns = dict(columns)
        self.places = dict(places or {})  # by their labels
        self.model = model
        self.looked_at = looked_at  # the columns and places that were counted together
        self.noisy_total = noisy_total
        self.products = products  # of all pairs that were not counted, where they were released
        self.from_prior = from_prior  # whose tables a prior gave, counted or not
        self.is_graded = is_graded  # whether long leaves are drawn from by size, as of late, or evenly

    @cached_property
    def _drawn_from(self) -> dict[str, ColumnModel]:
        """The columns as rows are drawn from them."""
        if not self.is_graded:
            return self.columns
        drawn = self.schema.as_drawn
        return {name: graded(model, drawn[name]) for name, model in self.columns.items()}

    @property
    def variables(self) -> list[str]:
        """What the model is over, in its order: columns by their names, places by their labels."""
        return list(self.schema.variables)

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
        where: Mapping[str, Any] | None = None,
        balance: Mapping[str, Any] | None = None,
    ) -> Any:
        """Synthetic rows, in the kind of table that was fitted. Costs no epsilon, however often.

        Args:
            n_rows: how many rows; by default as many as the private table had where that is public, else a noisy total.
            seed: repeats the same rows; the noise of the release is not affected. Rows are drawn by a stream of their
                own, so the seed may serve again for what is done with them; of a generator a few words are drawn.
            frame: "pandas", "polars", "pyarrow" or "numpy"; by default the kind of `like`, else the kind that was
                fitted.
            like: a table, or its `dtypes` or `schema`, whose column types the rows get; see `Release.sample`.
            where: conditions that every row meets, by column: a value, a range `(low, high)` with both ends (None:
                no end), a list of values, or None for null.
            balance: shares of the values of a category or a boolean, by column: a mapping from values to shares that
                add up to 1, or for two values the share of the second.

        Raises:
            ParameterError: an option is unknown or out of range, no row can meet the conditions, or a type in `like`
                cannot hold what the schema allows.
        """
        prepared = self._conditioned(where, balance)
        draw = partial(self._draw, prepared=prepared)
        return self._sample(draw, n_rows, seed=seed, frame=frame, like=like, drawn=prepared.schema)

    def _conditioned(self, where: Mapping[str, Any] | None, balance: Mapping[str, Any] | None) -> Prepared:
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
        return self._prepared(self._drawn_from, dict(where or {}), dict(balance or {}))

    def _prepared(
        self, drawn_from: Mapping[str, ColumnModel], where: dict[str, Any], balance: dict[str, Any]
    ) -> Prepared:
        """Columns and model under all rules and conditions."""
        rules, schema, columns, model = self.schema.rules, self.schema.as_drawn, dict(drawn_from), self.model
        places = dict(self.places)
        names = {name: place for place, name in enumerate(self.variables)}
        evidence: dict[int, Floats] = {}

        def take(name: str, cut: Restriction) -> None:
            schema[name], columns[name] = cut.column, cut.model
            evidence[names[name]] = evidence.get(names[name], 1.0) * cut.left

        starts = part_starts(self.schema) if where else {}
        asked = asked_of_modelled(where, self.schema)
        for name, several in asked.items():
            for wanted in several:
                if name in columns:
                    take(name, condition(name, schema[name], columns[name], wanted, starts=starts.get(name, ())))
                    continue
                label, place = next((label, place) for label, place in places.items() if name in place.names)
                of_place = [schema[one] for one in place.names]
                schema[name], places[label], left = place.restricted(place.names.index(name), of_place, wanted)
                evidence[names[label]] = evidence.get(names[label], 1.0) * left
        nulls = [name for name, several in asked.items() if any(plain(wanted) is None for wanted in several)]
        try:
            # After conditions, whose ends are ends for other columns too.
            for name, cut in feasible(rules, schema, columns, asked=asked, nulls=nulls).items():
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
        for name, shares in [*balance.items()] * (1 if len(balance) < 2 else _BALANCE_TURNS):
            if any(name in place.names for place in places.values()):
                raise ParameterError(f"balance: column {name!r} is part of a place; balance categories or booleans")
            groups = grouped(name, shares, self.schema, schema, columns)
            law = model.marginal((names[groups.source],))
            columns[groups.source], weights = balanced(name, groups, law)
            model = model.given({names[groups.source]: weights})
            held.append(names[groups.source])
        return Prepared(schema, columns, places, model, tuple(dict.fromkeys(held)) if where or balance else None)

    def under_rules(self) -> tuple[dict[str, ColumnModel], GraphModel]:
        """Columns, with the leaves that were counted, and model as rows are drawn where no condition is given."""
        schema, columns, _, model, _ = self._prepared(self.columns, {}, {})
        for name in in_order(self.schema.rules, AtMost):
            if schema[name].is_whole:  # a cut column counts from a bound of its own
                shift = whole_range(schema[name])[0] - whole_range(self.schema.as_drawn[name])[0]
                columns[name] = replace(columns[name], low=columns[name].low + shift * ~columns[name].is_null)
        return columns, model

    def explain(self) -> Explanation:
        """What the forest knows of the table, and what it paid for that. Costs nothing."""
        from spinney.forest.release.explain import explain

        return explain(self)

    def _draw(self, n_rows: int, rng: np.random.Generator, *, prepared: Prepared | None = None) -> Floats:
        schema, columns, regions, model, held = prepared or self._prepared(self._drawn_from, {}, {})
        drawn = self._draw_states(model, held, n_rows, rng)
        states = {name: drawn[place] for place, name in enumerate(self.variables)}
        places: dict[str, Floats] = {}
        for name in progress(self.variables, "drawing columns", unit="column"):
            if name in columns:
                places[name] = columns[name].draw(states[name], rng)
            else:
                place = regions[name]
                points = place.draw(states[name], [schema[one] for one in place.names], rng)
                places |= dict(zip(place.names, points, strict=True))
        resample_above(places, states, self.schema.rules, schema, columns, rng)
        nothing = np.zeros(n_rows)
        return np.stack([places.get(name, nothing) for name in self.schema])

    def _draw_states(
        self, model: GraphModel, held: tuple[int, ...] | None, n_rows: int, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """States of rows; without conditions, single columns and counted pairs are as the model has them."""
        if self.products is None:
            return draw_states(model, n_rows, rng)
        tilt = self.products.tilt
        if held is not None:
            return draw_tilted_given(model, tilt, self._factors, n_rows, rng, columns=held)
        columns = range(len(self.variables))
        return draw_tilted(model, tilt, n_rows, rng, columns=columns, pairs=self.counted_pairs)

    @cached_property
    def _factors(self) -> Factors:
        """What draws under conditions are weighted by beside the tilt; the same in every process."""
        assert self.products is not None
        model = self._prepared(self._drawn_from, {}, {}).model
        columns, rng = range(len(self.variables)), np.random.default_rng(_FACTORS_STREAM)
        return fitted_factors(model, self.products.tilt, rng, columns=columns, pairs=self.counted_pairs)

    @property
    def counted_pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of variables, by number, that share a counted table."""
        numbers = {name: number for number, name in enumerate(self.variables)}
        cliques = [sorted(numbers[name] for name in names) for names in self.looked_at]
        return tuple(sorted({pair for clique in cliques for pair in combinations(clique, 2)}))

    def _remarks(self) -> list[str]:
        return forest_remarks(self.columns, self.schema.modelled, str(self._card.plan.get("structure")))

    def _noisy_total(self) -> int:
        return self.noisy_total

    def _require_contents(self) -> None:
        """A forest can always draw, were it evenly over all that is possible."""

    # ------------------------------------------------------------------------------------------------- files

    def verify_contents(self) -> list[str]:
        return verify_forest(self)

    def to_members(self) -> tuple[dict[str, Any], Members]:
        leaves = pa.table(
            {
                "column": pa.array(
                    [name for name, column in self.columns.items() for _ in column.states], pa.string()
                ).dictionary_encode(),
                **{field: _joined(list(self.columns.values()), field) for field in _FIELDS},
            }
        )
        potentials = pa.table(
            {
                "clique": pa.array([list(clique) for clique in self.model.tree.cliques], pa.list_(pa.int32())),
                "potentials": pa.array([table.ravel() for table in self.model.potentials], pa.list_(pa.float64())),
            }
        )
        entries: dict[str, Any] = {
            "looked_at": [list(names) for names in self.looked_at],
            "noisy_total": self.noisy_total,
            "within_leaves": _WITHIN_LEAVES[self.is_graded],
        }
        members = {"leaves.arrow": to_arrow(leaves), "model.arrow": to_arrow(potentials)}
        if self.from_prior:
            entries["from_prior"] = [list(names) for names in self.from_prior]
        if self.products is not None:
            entries["products"] = self.products.entries()
            members |= self.products.members()
        if not self.places:
            return entries, members
        entries["places"] = place_entries(self.places)
        return entries, members | {"places.arrow": to_arrow(regions_table(self.places))}

    @classmethod
    def from_members(cls, card: Card, described: Mapping[str, Any], members: Members) -> Self:
        columns = _columns(from_arrow(members["leaves.arrow"], _LEAVES), card)
        places = places_from_members(card.schema, described, members)
        models = {
            name: columns[name] if place is None else places[name] for name, place in card.schema.variables.items()
        }
        sizes = tuple(model.n_states for model in models.values())
        table = from_arrow(members["model.arrow"], _CLIQUES)
        cliques = [tuple(clique.tolist()) for clique in lists(table, "clique", np.int64)]
        if any(not 0 <= column < len(sizes) for clique in cliques for column in clique):
            raise ValueError("a clique of columns that are not those of the card")
        if any(len(clique) > _WIDEST for clique in cliques):
            raise ValueError("a clique of more columns than a table can have")
        potentials = [
            values.reshape([sizes[column] for column in clique])
            for clique, values in zip(cliques, lists(table, "potentials", np.float64), strict=True)
        ]
        model = GraphModel.from_parts(sizes, cliques, potentials)
        if not (np.isfinite(model.log_partition) and np.isfinite(model.calibrated.beliefs).all()):
            raise ValueError("a model that leaves nothing possible")
        looked_at, noisy_total = _looked_at(described["looked_at"], models), described["noisy_total"]
        if type(noisy_total) is not int or not 0 <= noisy_total <= MOST_ROWS:
            raise ValueError("a total that is not a number of rows")
        names = list(models)
        if any(model.tree.home([names.index(name) for name in group]) is None for group in looked_at):
            raise ValueError("columns were counted together of which the model has no table")
        if "products" in described and described["format_version"] < 3:
            raise ValueError("products in a file of a version that had none")
        products = products_from_members(described, members, sizes)
        if card.released != released(columns, model, places, products):
            raise ValueError("the card describes another forest")
        # Files of the first version say nothing of it.
        within = described["within_leaves"] if described["format_version"] > 1 else _WITHIN_LEAVES[False]
        if within not in _WITHIN_LEAVES:
            raise ValueError(f"within_leaves is none of {', '.join(_WITHIN_LEAVES)}")
        is_graded = _WITHIN_LEAVES.index(within) == 1
        return cls(
            columns,
            model,
            card,
            looked_at=looked_at,
            noisy_total=noisy_total,
            is_graded=is_graded,
            places=places,
            products=products,
            from_prior=_looked_at(described.get("from_prior", []), models),
        )


def released(
    columns: Mapping[str, ColumnModel],
    model: GraphModel,
    places: Mapping[str, PlaceModel] | None = None,
    products: ReleasedProducts | None = None,
) -> dict[str, int]:
    """How much was released, as a card says it."""
    n_leaves = sum(len(column.states) for column in columns.values())
    regions = {"regions": sum(len(place.states) for place in places.values())} if places else {}
    sums = {} if products is None else {"sums": products.n_sums}
    return {"leaves": n_leaves, **regions, "cliques": len(model.tree.cliques), **sums}


def _joined(columns: Sequence[ColumnModel], field: str) -> pa.Array:
    """One field of all leaves, of columns that may be none."""
    kinds: dict[str, Any] = {"is_null": np.bool_, "states": np.int32}
    nothing: NDArray[Any] = np.empty(0, dtype=kinds.get(field, np.float64))
    return pa.array(np.concatenate([nothing, *(getattr(column, field) for column in columns)]))


def _looked_at(described: Any, columns: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Which columns were counted together; ValueError where they are not columns of the forest."""
    if not isinstance(described, list) or not all(isinstance(names, list) for names in described):
        raise ValueError("looked_at is not a list of lists")
    for names in described:
        if not all(isinstance(name, str) and name in columns for name in names) or not 2 <= len(set(names)) == len(
            names
        ):
            raise ValueError("columns were counted together that are not those of the card")
    return tuple(tuple(names) for names in described)


def _columns(leaves: pa.Table, card: Card) -> dict[str, ColumnModel]:
    """Read the columns' leaves; ValueError where they are not what a forest has."""
    encoded = leaves["column"].combine_chunks()
    encoded = encoded if pa.types.is_dictionary(encoded.type) else encoded.dictionary_encode()
    places, known = encoded.indices.to_numpy(), encoded.dictionary.to_pylist()
    if len(set(known)) != len(known):
        raise ValueError("a column by two names")
    fields = [numbers(leaves, field, np.float64) for field in ("low", "length", "weights")]
    flags, groups = numbers(leaves, "is_null", np.bool_), numbers(leaves, "states", np.int32)
    columns: dict[str, ColumnModel] = {}
    modelled = card.schema.modelled
    for name, place in card.schema.variables.items():
        if place is not None:
            continue
        column = modelled[name]
        here = np.flatnonzero(places == known.index(name)) if name in known else places[:0]
        low, length, weights = (field[here] for field in fields)
        is_null, states = flags[here], groups[here]
        is_fine = np.isfinite(low + length + weights) & (length >= 0) & (weights >= 0) & (states >= 0)
        is_fine &= is_null | _is_inside(low, length, column)
        if not len(here) or not is_fine.all() or len(np.unique(states)) != states.max() + 1:
            raise ValueError(f"leaves of column {name!r} out of range")
        if (is_null.any() and not column.nullable) or not np.isfinite(weights.sum()):
            raise ValueError(f"leaves of column {name!r} out of range")
        columns[name] = ColumnModel(low, length, is_null, weights, states, int(states.max()) + 1)
    if sum(len(column.states) for column in columns.values()) != len(places):
        raise ValueError("leaves of columns that are not in the schema")
    return columns


def _is_inside(low: Floats, length: Floats, column: Column) -> NDArray[np.bool_]:
    """Whether leaves lie where values of a column can: reals are cut to their bounds later, all else is counted."""
    if not column.is_whole:
        return np.ones(len(low), dtype=np.bool_)
    first, last = whole_range(column)
    return np.asarray((low >= 0) & (low + length <= (last - first + 1) * (1 + 1e-9)))
