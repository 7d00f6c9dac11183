"""The base of every synthesizer: stored parameters, the verbs of a fitted model, and the order of a fit.

The order is the guarantee. Parameters, names and types are checked and the ledger is asked for the whole budget
before any row is read. Rows are then read, which finds unreadable values before anything is charged. Only then
does a mechanism charge the ledger and read counts. A count of rows (`tree/row_count.proof.md`), private lists
and private bounds are bought before the plan, because the plan follows from them.

    parameters       `get_params`, `set_params` and a repr, as scikit-learn has them
    fitted model     card, schema, rows, points, file and report of a release
    order of a fit   check, rehearse, pay, release; what a subclass has to supply
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import wraps
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar

import numpy as np

from spinney.documents import Document, Facts
from spinney.errors import InputError, NotFittedError, PrivacyWarning, SchemaError, SchemaWarning, UnknownParameterError
from spinney.files import full_version
from spinney.forest.design import Design
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon, parse_share
from spinney.privacy.composition import cautions, default_delta
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import Charge, NotPrivate
from spinney.progress import waiting
from spinney.release.card import MOST_ROWS, Card, RowCount
from spinney.release.release import Release
from spinney.schema.schema import Schema, SchemaLike
from spinney.synthesizers.paying import (
    Partition,
    Rehearsal,
    Shares,
    after_counting,
    awaited,
    check_private_values,
    checked_number,
    count_private_values,
    events_before,
    find_bounds,
    find_values,
    first_that_works,
    record_release,
    shared_out,
    started,
    told_of_charge,
    with_few_values,
    with_widest_bounds,
    without_values,
)
from spinney.synthesizers.validation import (
    LedgerLike,
    checked_entropy,
    checked_ledger,
    checked_rows,
    rows_alone,
    warn_caller,
    warn_of_weak_promise,
)
from spinney.tables.frames import Table
from spinney.tables.open import open_source
from spinney.tables.source import Source
from spinney.text import did_you_mean, is_typed
from spinney.tree.bought import PaidFigures, release_rows

# ----------------------------------------------------------------------------------------------------------- parameters
# Scikit-learn's parameter protocol in a few lines: `clone`, grid search and reprs work without depending on it.


# Lists and mappings of more than this are shown by their type alone: they may be columns of a table.
_MOST_SHOWN = 20


class Parameters:
    """Mixin for classes whose `__init__` stores its keyword arguments under their own names and does nothing else."""

    # Parameters that people may look for here, and where they are or what they are called.
    _elsewhere: ClassVar[Mapping[str, str]] = {}

    def __new__(cls, *given: Any, **named: Any) -> Self:  # noqa: ARG004  # which `__init__` stores
        cls._refuse_strangers(named)
        return super().__new__(cls)

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        signature = inspect.signature(cls.__init__)
        return {name: p.default for name, p in signature.parameters.items() if name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - part of the protocol, nothing nests here
        """The constructor's arguments and their present values.

        Args:
            deep: part of scikit-learn's protocol; nothing nests here, so it makes no difference.
        """
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments; a later `fit` uses them.

        Args:
            **params: the constructor's arguments, by name.

        Raises:
            ParameterError: there is no such argument.
        """
        self._refuse_strangers(params)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    @classmethod
    def _refuse_strangers(cls, given: Mapping[str, Any]) -> None:
        """Raise on a name that is not a parameter: say where it went, or what there is."""
        known = cls._defaults()
        for name in given:
            if name in known:
                continue
            hint = cls._elsewhere.get(name) or f"it has {', '.join(sorted(known))}{did_you_mean(name, known)}"
            raise UnknownParameterError(f"{name!r} is not a parameter of {cls.__name__}; {hint}")

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in self._defaults()}
        changed = [
            f"{name}={_shown(value)}"
            for name, value in values.items()
            if value is not self._defaults()[name] and _differs(value, self._defaults()[name])
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


def _shown(value: Any) -> str:
    """A parameter in the call that makes the model; of tables and arrays the shape alone, of long lists the type."""
    if _n_typed(value) <= _MOST_SHOWN:
        return repr(value)
    return f"<shape {value.shape}>" if hasattr(value, "shape") else f"<a {type(value).__name__}>"


def _n_typed(value: Any) -> float:
    """How many numbers and names a parameter is made of; infinitely many of tables, arrays and other objects."""
    if isinstance(value, Mapping):
        return sum(map(_n_typed, value)) + sum(map(_n_typed, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(_n_typed, value))
    return 1 if is_typed(value) else math.inf


def _differs(value: Any, default: Any) -> bool:
    """Whether a parameter was changed; tables and arrays, which compare element by element, always are."""
    if default is None:
        return value is not None
    try:
        return bool(value != default)
    except Exception:  # whatever a library says of comparing its tables with a number or a name
        return True


# --------------------------------------------------------------------------------------------------------- fitted model
# What every fitted model offers, whatever its mechanism: its card, its schema, rows, a file.
#
# Spinney's synthesizers and the rival systems in `spinney_paper.baselines` share this class: `fit` leaves
# `release_` and `ledger_`, and all the rest follows from the release.


P = ParamSpec("P")
T = TypeVar("T")


def release_verb(verb: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """A verb of a fitted model that its release answers, with the signature and docstring it has there."""

    @wraps(verb)
    def answered(self: Any, /, *given: P.args, **options: P.kwargs) -> T:
        wanted = {name: value for name, value in options.items() if value is not None}  # of another kind of release
        found: T = getattr(self._fitted(), verb.__name__)(*given, **wanted)
        return found

    return answered


def of_release(
    verb: Callable[Concatenate[Any, P], T],
) -> Callable[[Callable[..., Any]], Callable[Concatenate[Any, P], T]]:
    """`release_verb` as a decorator, for verbs that a kind of model has with options of its own."""
    return lambda _: release_verb(verb)


class FrontDoor(Parameters):
    """A model in the scikit-learn manner: `__init__` stores, `fit` validates and spends, results end in `_`."""

    release_: Release
    ledger_: Ledger

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or a pickle holds: of a ledger a statement, which cannot be charged and says not where it is."""
        ledger = self.__dict__.get("ledger_")
        return self.__dict__ if ledger is None else self.__dict__ | {"ledger_": ledger.statement()}

    @property
    def card_(self) -> Card:
        """What was promised and what it cost."""
        return self._fitted().card

    @property
    def schema_(self) -> Schema:
        """The schema with all bounds filled in."""
        return self._fitted().card.schema

    @of_release(Release.sample)
    def sample(self) -> Any: ...

    @of_release(Release.weighted_points)
    def weighted_points(self) -> Any: ...

    ask = release_verb(Release.ask)
    count = release_verb(Release.count)
    proportion = release_verb(Release.proportion)
    mean = release_verb(Release.mean)
    quantile = release_verb(Release.quantile)
    table = release_verb(Release.table)
    trust = release_verb(Release.trust)
    error_bars = release_verb(Release.error_bars)
    verify = release_verb(Release.verify)
    save = release_verb(Release.save)
    report = release_verb(Release.report)

    def _repr_html_(self) -> str | None:
        name = type(self).__name__
        if hasattr(self, "release_"):
            return self.card_.document(f"{name}, fitted").html()
        facts = Facts(
            [
                (parameter, value if _is_small(value) else f"<a {type(value).__name__}>")
                for parameter, value in self.get_params().items()
            ]
        )
        return Document(f"{name}, not fitted yet", [facts], note="fit(table, schema) spends epsilon, once.").html()

    def _fitted(self) -> Release:
        try:
            return self.release_
        except AttributeError:
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit(frame, schema) first"
            ) from None

    def _refuse_forest_only(self, schema: Schema, *, computes: bool = False) -> None:
        """Identifiers are made, rules are kept and shapes followed by the forest alone. Trees and grids compute too."""
        system = type(self).__name__
        for name in schema._identifiers:
            raise SchemaError(
                f"column {name!r} is an identifier, and {system} cannot generate identifiers; drop the column or use "
                "ForestSynthesizer"
            )
        for name in schema._columns_awaiting_values:
            raise SchemaError(
                f'column {name!r} has values="private", and {system} cannot find values privately; list them or use '
                "ForestSynthesizer"
            )
        for rule in schema.rules:
            if rule._needs_forest or not computes:
                raise SchemaError(f"{system} cannot enforce {rule!r}; drop the rules or use ForestSynthesizer")
        for place in schema.places:
            if place.within is not None:
                raise SchemaError(
                    f"{system} cannot keep the place {place.label!r} within its shape; leave out `within` or use "
                    "ForestSynthesizer"
                )

    def _card(
        self,
        table: Source | Table,
        ledger: Ledger,
        *,
        design: Mapping[str, Any],
        released: Mapping[str, int],
        schema: Schema | None = None,
    ) -> Card:
        """The card of a release of `table` that `ledger` paid for, with the stated schema, by default the table's."""
        n_rows = table.n_rows if ledger.unit.n_is_public else None
        schema = table.schema if schema is None else schema
        return self._card_of(ledger, schema, design=design, n_rows=n_rows, released=released, frame=table.kind)

    def _card_of(
        self,
        paid: Ledger | Rehearsal,
        schema: Schema,
        *,
        design: Mapping[str, Any],
        n_rows: int | None,
        released: Mapping[str, int],
        frame: str,
    ) -> Card:
        """The card of what was, or would be, paid for; `n_rows` is None where it is private."""
        return Card(
            spinney_version=full_version(),
            synthesizer=type(self).__name__,
            parameters={name: self._on_card(name, value) for name, value in self.get_params().items()},
            unit=paid.unit.value,
            events=paid.events,
            schema=schema,
            design=design,
            n_rows=n_rows,
            released=released,
            frame=frame,
        )

    def _on_card(self, name: str, value: Any) -> Any:  # noqa: ARG002 - some parameters are described in words
        """A parameter as a card states it."""
        return _plain(value)


def _plain(value: Any) -> Any:
    """A parameter as JSON-ready data; of an array, or a list that stands for one, its shape alone."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if np.ndim(value):
        return f"array of shape {np.shape(value)}"
    return str(value)


# ------------------------------------------------------------------------------------------------------- order of a fit
# What every synthesizer does around its mechanism: check, pay for bounds, release.
#
# What decides the plan comes first: a count of rows where their number is private and no guess is stated, then
# lists of values, then bounds.


PlanT = TypeVar("PlanT")


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """All that a plan may depend on."""

    schema: Schema  # as it was stated, bounds filled in; the table is read by its `_as_read`
    epsilon: Fraction  # what is left for the release itself
    delta: Fraction  # 0 where the promise is pure
    unit: Unit
    n_rows: int  # the number of rows where it is public, otherwise a public guess, or what a noisy count makes likely
    found_bounds: bool = False  # whether bounds came to light on the way; then depths are cut to what the lattice has
    row_count: RowCount | None = None  # the noisy count, where one was bought
    rows_epsilon: Fraction = Fraction(0)  # what is still to be spent on one; `n_rows` is a stand-in until then


class Synthesizer(FrontDoor, ABC, Generic[PlanT]):
    """Common part of grid, tree and forest. Subclasses check their own parameters, rehearse, and release."""

    epsilon: Any
    delta: Any = 0  # None: chosen by the number of rows
    unit: str
    bounds_share: Any
    values_share: Any = "0.1"  # of a forest; the others have no private lists
    assumed_rows: int | None
    utility_share: Any = None  # of trees, grids and forests; None: no figures

    # Whether the first count is read after the first charge, so that unreadable values must be looked for before.
    _pays_before_counting: ClassVar[bool] = False
    # What a noisy count of rows says about the promise, and what was not found, kept until all that was paid for is at
    # hand: between a charge and the release nothing warns, since a warning may be an error.
    _late_cautions: Sequence[str] = ()
    _late_remarks: Sequence[str] = ()
    # What figures of utility get their noise from, where they were paid for by themselves.
    _paid_figures: PaidFigures | None = None
    _late_record: Callable[[], None] = staticmethod(lambda: None)

    @property
    def _cells_follow_rows(self) -> bool:
        """Whether the number of rows decides which cells are counted, so that it must be known before."""
        return False

    @abstractmethod
    def _check(self, schema: Schema) -> None:
        """Raise on parameters out of range and on columns that this synthesizer cannot take."""

    def _completed(self, schema: Schema) -> Schema:
        """The schema with what the model takes from public bounds, where they are there; on the card it stands too."""
        return schema

    def _settle(self) -> None:
        """Read parameters that somebody else may change: what is checked, released and on the card is then the same."""

    def _check_frame(self, frame: Any) -> None:
        """Raise where a table cannot be the private one of these parameters. Nothing of it is read."""

    def _open_others(self, stated: Schema) -> None:
        """Open the tables that parameters hold, by the schema as it was stated; raise where one does not fit it."""

    @abstractmethod
    def _rehearse(self, facts: PublicFacts) -> PlanT:
        """The plan that follows from public facts; raise where none can work. No row has been read."""

    def _check_room(self, table: Source, facts: PublicFacts, rehearsed: PlanT) -> None:
        """Raise where the limit of memory leaves no room for what will be counted."""

    @abstractmethod
    def _release(
        self, table: Source, facts: PublicFacts, books: Ledger, entropy: Entropy, rehearsed: PlanT | None
    ) -> Release:
        """Charge the books, count, and return what may be published. `rehearsed` is the plan of these very facts."""

    @waiting("fitting the table")
    def fit(
        self,
        frame: Any,
        schema: SchemaLike,
        *,
        ledger: LedgerLike = None,
        entropy: Entropy | None = None,
        engine: str | None = None,
    ) -> Self:
        """Spend the budget on a private table.

        Args:
            frame: a pandas, polars or pyarrow table, a numeric numpy array with the schema's columns in order, or what
                need not fit into memory: the path of Parquet or CSV files (a file, a folder, a pattern or a list of
                paths), a polars LazyFrame, a DuckDB relation, a Spark DataFrame, an Ibis table, a Dask frame, a pyarrow
                dataset. A pyarrow RecordBatchReader is read once and held. No file may be named twice.
            schema: what is public about the table: a `Schema`, the path of a schema file, or a dictionary of columns.
            ledger: an account shared by several releases of the same people: a `Ledger`, or the path or address of
                one. By default the ledger that SPINNEY_LEDGER names, and without it a new one for this fit; False for a
                new one in any case.
            entropy: leave it out. Tests and figures may pass `UnsafeSeededEntropy`, which brands the release.
            engine: what reads the table, where there is a choice: "polars", "duckdb" or "spark" for Parquet files,
                "memory" to read the table once and hold it. Releases do not depend on it.
        """
        fitting = copy(self)  # parameters that are changed meanwhile, by whoever else holds the model, do not reach it
        fitting._settle()
        fitting._check_frame(frame)
        fitting._fit(frame, schema, ledger, entropy, engine)
        for name, value in vars(fitting).items():
            if name.endswith("_"):
                setattr(self, name, value)
        # Last: where warnings are errors, what was paid for is kept.
        fitting._late_record()
        warn_caller(fitting._late_cautions, PrivacyWarning)
        warn_caller([*fitting._late_remarks, *self.release_.card.remarks], SchemaWarning)
        return self

    def _fit(
        self, frame: Any, schema: SchemaLike, ledger: LedgerLike, entropy: Entropy | None, engine: str | None
    ) -> None:
        given, source = checked_ledger(ledger), checked_entropy(entropy)
        epsilon, unit, stated_delta, assumed_rows = self._terms()
        stated = rows_alone(schema, type(self).__name__)
        account = started(given, stated)
        table = open_source(frame, stated._as_read, engine=engine)
        schema = self._completed(stated._without_ignored())
        table = table.with_schema(schema._as_read)
        self._check(schema)
        self._open_others(stated)
        if unit.n_is_public and table.n_rows == 0:  # under add-remove an empty table is a neighbour like any other
            raise InputError("the table has no rows; there is nothing to release")
        n_rows = table.n_rows if unit.n_is_public else assumed_rows  # None: a noisy count is bought
        # Without a number the largest default, which no count may change: it is part of the promise.
        delta = default_delta(n_rows or 1) if stated_delta is None else stated_delta
        warn_of_weak_promise(epsilon, delta, n_rows)
        # One fit never spends more than its own budget.
        books = Ledger(limit=epsilon, delta=delta, unit=unit, parent=account)
        books.require(epsilon, unit=unit, delta=delta)

        shares, facts = self._prepared(schema, n_rows, epsilon=epsilon, delta=delta, unit=unit)
        first = self._rehearse_any(facts) if n_rows is None else self._rehearse(facts)
        self._check_room(table, facts, first)
        rehearsed: PlanT | None = first
        # Of a residual that is missing, counting could not tell which part is.
        has_residuals = any(rule.modelled_of(schema) is not None for rule in schema._derivations)
        pays_first = schema._awaits_bounds or self._pays_before_counting or has_residuals
        pays_first |= n_rows is None and self._cells_follow_rows
        pays_first |= shares.utility > 0
        if pays_first:
            table.check_values()
        if schema._has_data_derived_bounds:
            books.brand(NotPrivate(note="bounds were read off the data"))
        with told_of_charge(books, account):
            ready = self._paid_first(table, facts, books, source, schema, shares, rehearsed, counts_rows=pays_first)
            table, facts, rehearsed = ready
            self.release_ = self._release(table, facts, books, source, rehearsed)
        self.ledger_ = books if given is None else given
        self._late_record = lambda: record_release(account, self.release_)

    def rehearsal(self, schema: SchemaLike, n_rows: int, *, class_size: float | None = None) -> Rehearsal:
        """What `fit` would do with a table of so many rows. Nothing is read, and nothing is charged.

        Args:
            schema: what is public about the table, as for `fit`.
            n_rows: how many rows there are; under "add-remove" a public guess, as `assumed_rows` is.
            class_size: of a forest with a target that has classes, a guess of the size of the second largest, on which
                the plan depends; by default it is taken to be large.

        Raises:
            SchemaError, ParameterError, BudgetError: what `fit` would raise before it reads a row.
        """
        fitting = copy(self)
        fitting._settle()
        return fitting._rehearsal(rows_alone(schema, type(self).__name__), checked_number(n_rows), class_size)

    def _rehearsal(self, stated: Schema, n_rows: int, class_size: float | None) -> Rehearsal:
        epsilon, unit, stated_delta, _ = self._terms()
        schema = self._completed(stated._without_ignored())
        self._check(schema)
        delta = default_delta(n_rows) if stated_delta is None else stated_delta
        shares, facts = self._prepared(schema, n_rows, epsilon=epsilon, delta=delta, unit=unit)
        first = self._rehearse(facts)
        planned, charges, stand_ins = self._foreseen(facts, first, class_size)
        before = events_before(schema, shares, unit)
        return Rehearsal(
            facts.schema, epsilon, delta, unit, n_rows, planned, (*before, *charges), (*awaited(schema), *stand_ins)
        )

    @abstractmethod
    def _foreseen(
        self, facts: PublicFacts, rehearsed: PlanT, class_size: float | None
    ) -> tuple[Partition | Design, Sequence[Charge], Sequence[str]]:
        """What is planned, what it is charged as, and what the plan follows from that is not known yet."""

    def _terms(self) -> tuple[Fraction, Unit, Fraction | None, int | None]:
        """The budget, the unit, a delta that was stated, and a guess of the number of rows; shares are checked too."""
        epsilon, unit = parse_epsilon(self.epsilon), Unit.parse_rows(self.unit)
        stated_delta = None if self.delta is None else parse_delta(self.delta)
        assumed_rows = checked_rows(self.assumed_rows)
        for name in ("bounds_share", "values_share"):
            parse_share(getattr(self, name), name)
        if self.utility_share is not None:
            parse_share(self.utility_share, "utility_share")
        return epsilon, unit, stated_delta, assumed_rows

    def _prepared(
        self, schema: Schema, n_rows: int | None, *, epsilon: Fraction, delta: Fraction, unit: Unit
    ) -> tuple[Shares, PublicFacts]:
        """How the budget is shared, and what a plan may depend on; `n_rows` is None where it is to be counted."""
        shares = shared_out(
            schema,
            epsilon=epsilon,
            delta=delta,
            bounds_share=self.bounds_share,
            values_share=self.values_share,
            counts_rows=n_rows is None,
            utility_share=self.utility_share,
        )
        for_values = {"epsilon": shares.values, "delta": shares.values_delta}
        check_private_values(schema, n_rows or MOST_ROWS, unit=unit, **for_values)
        facts = PublicFacts(
            self._completed(with_widest_bounds(with_few_values(schema))),
            shares.rest,
            shares.rest_delta,
            unit,
            n_rows or 1,
            rows_epsilon=shares.rows,
        )
        return shares, facts

    def _paid_first(
        self,
        table: Source,
        facts: PublicFacts,
        books: Ledger,
        source: Entropy,
        schema: Schema,
        shares: Shares,
        rehearsed: PlanT | None,
        *,
        counts_rows: bool,
    ) -> tuple[Source, PublicFacts, PlanT | None]:
        """What is paid for before the release: figures of utility, a count of rows, private lists and bounds."""
        for_values = {"epsilon": shares.values, "delta": shares.values_delta}
        true_lists = count_private_values(table)  # before anything is paid for
        if shares.utility:
            self._paid_figures = PaidFigures(shares.utility, books, source)
        if counts_rows and facts.rows_epsilon > 0:
            facts, rehearsed = self._count_rows(table.n_rows, facts, books, source)
            with after_counting(shares.rows, facts.n_rows):
                check_private_values(schema, facts.n_rows, unit=facts.unit, **for_values)
        if schema._columns_awaiting_values:
            lists = find_values(true_lists, schema, ledger=books, entropy=source, **for_values)
            self._late_remarks, schema = without_values(lists, schema), schema._with_values(lists)
            table = table.with_schema(schema._as_read)
            facts, rehearsed = replace(facts, schema=self._completed(with_widest_bounds(schema))), None
        if schema._awaits_bounds:
            schema = self._completed(schema._with_bounds(find_bounds(table, shares.bounds, books, source)))
            table = table.with_schema(schema._as_read)
            facts, rehearsed = replace(facts, schema=schema, found_bounds=True), None
        return table, facts, rehearsed

    def _rehearse_any(self, facts: PublicFacts) -> PlanT:
        """The plan for some number of rows, where it is not known; raise where none works for any."""
        return first_that_works(lambda size: self._rehearse(replace(facts, n_rows=size)))

    def _count_rows(
        self, true_rows: int, facts: PublicFacts, books: Ledger, entropy: Entropy
    ) -> tuple[PublicFacts, PlanT]:
        """The facts with a noisy count of the rows, which is paid for, and the plan that follows from them."""
        count = release_rows(true_rows, epsilon=facts.rows_epsilon, ledger=books, entropy=entropy)
        self._late_cautions = cautions(Fraction(0), books.delta_limit or Fraction(0), count.expected)
        counted = replace(facts, n_rows=count.expected, row_count=count, rows_epsilon=Fraction(0))
        with after_counting(facts.rows_epsilon, count.expected):
            return counted, self._rehearse(counted)


def _is_small(value: Any) -> bool:
    """Whether a parameter is what somebody types, or a short list of such things."""
    if isinstance(value, (list, tuple)):
        return len(value) <= 20 and all(map(_is_small, value))
    if isinstance(value, Mapping):
        return len(value) <= 20 and all(_is_small(item) for pair in value.items() for item in pair)
    return is_typed(value)
