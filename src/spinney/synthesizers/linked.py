"""LinkedSynthesizer: persons with many rows, in one table or in several that are linked by keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from spinney.errors import InputError, ParameterError
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.people.design import PeopleDesign, people_design
from spinney.people.grow import GrownPeople, grow_people
from spinney.people.release.file import persons_card
from spinney.people.release.model import PeopleRelease
from spinney.people.release.rows import ReleasedRows, learnt_schema, persons_schema
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon
from spinney.privacy.composition import default_delta
from spinney.privacy.entropy import Entropy
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import UNITS
from spinney.progress import waiting
from spinney.release.card import ROW_TABLES, Card, RowCount, noisy_rows_entry, plan_entries
from spinney.schema.linked import PeopleShape, Tables
from spinney.schema.schema import SchemaLike, as_schema
from spinney.synthesizers.base import FrontDoor, PublicFacts, of_release, release_verb
from spinney.synthesizers.forest import checked_quality, released_forest
from spinney.synthesizers.paying import (
    ROWS_SHARE,
    Rehearsal,
    after_counting,
    checked_number,
    first_that_works,
    record_release,
    started,
    told_of_charge,
)
from spinney.synthesizers.validation import (
    LedgerLike,
    checked_entropy,
    checked_ledger,
    checked_rows,
    warn_of_weak_promise,
)
from spinney.tables.persons import PersonTables, gather
from spinney.text import as_given, did_you_mean_column
from spinney.tree.bought import release_rows

# Why there are none.
NO_FIGURES = (
    "figures of utility are measured of tables with one row a person: one person can move distances of tables of their "
    "rows by all rows that they have, which no useful noise hides"
)
_UNITS = {"replace-one": Unit.REPLACE_PERSON, "add-remove": Unit.ADD_REMOVE_PERSON}


@dataclass(eq=False, repr=False)
class LinkedSynthesizer(FrontDoor):
    """Synthetic persons with all their rows: customers with transactions, patients with visits, a panel.

    The promise is for a person with all their rows, however many they have: noise is that of one row a person. Rows
    depend on their person, on their place and on the rows before them; keys are made afresh.

    >>> import numpy as np, pandas as pd, spinney as sp
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"card": rng.integers(0, 2000, 9000), "amount": rng.gamma(2, 20, 9000).round(2)})
    >>> schema = sp.Schema({"card": sp.Identifier(), "amount": sp.Real(0, 1000)}, person="card", most_rows=50)
    >>> model = sp.LinkedSynthesizer(epsilon="1").fit(table, schema)
    >>> list(model.sample(persons=10))
    ['card', 'amount']

    Args:
        epsilon: the whole budget, exact: a number or text such as "0.1" or "1/3".
        delta: the failure probability of (epsilon, delta)-differential privacy, above 0. By default a tenth of one over
            the number of persons, at most 1e-6.
        target: the column of the persons table that the others are about: "customers.churn".
        quality: "fast", or "high" for more dependences between the columns of persons, at more time. Rows are modelled
            alike in both.
        unit: "replace-one" (the number of persons is public) or "add-remove" (it is private).
        assumed_persons: a public guess of the number of persons, for automatic values under "add-remove". By default
            persons are counted there with noise, for a hundredth of epsilon.
    """

    _elsewhere: ClassVar[Mapping[str, str]] = {"utility_share": NO_FIGURES}

    release_: PeopleRelease = field(init=False)
    design_: PeopleDesign = field(init=False)

    epsilon: Any = 1
    delta: Any = None
    _: KW_ONLY
    target: str | None = None
    quality: str = "fast"
    unit: str = "replace-one"
    assumed_persons: int | None = None

    @waiting("fitting persons and their rows")
    def fit(
        self,
        frames: Any,
        tables: Tables | SchemaLike,
        *,
        ledger: LedgerLike = None,
        entropy: Entropy | None = None,
        engine: str | None = None,
    ) -> Self:
        """Spend the budget on private tables.

        Args:
            frames: one table where `tables` is a schema with `person=`; otherwise a table for each name. Every table is
                of any kind that other synthesizers take: frames, paths of files, queries.
            tables: what is public: a schema that says whose rows they are, or `sp.Tables` with links.
            ledger: an account of the same persons to charge as well, of a unit for persons: a `Ledger`, or the path or
                address of one. By default the ledger that SPINNEY_LEDGER names, if any; False for none.
            entropy: a source of noise for tests; any but the default voids the guarantee, which the card says.
            engine: what reads the tables, where there is a choice.

        Raises:
            SchemaError, InputError, ParameterError, BudgetError: something does not fit; nothing was spent.
        """
        given, source = checked_ledger(ledger), checked_entropy(entropy)
        epsilon, unit, stated_delta, assumed = self._terms()
        shape = PeopleShape.of(tables if isinstance(tables, Tables) else as_schema(tables))
        account = started(given, shape)
        self._checked_target(shape)
        # Neither is noise. How many coins are used depends on private rows, so public draws are from another generator.
        coins, rng = (np.random.default_rng(source.words(8)) for _ in range(2))
        gathered = gather(frames, shape, engine=engine, rng=coins)
        shape = shape._without_ignored()
        if unit.n_is_public and gathered.n_persons == 0:
            raise InputError("the tables have no persons; there is nothing to release")
        n_persons = gathered.n_persons if unit.n_is_public else assumed
        delta = default_delta(n_persons or 1) if stated_delta is None else stated_delta
        warn_of_weak_promise(epsilon, delta, n_persons)
        books = Ledger(limit=epsilon, delta=delta, unit=unit, parent=account)
        books.require(epsilon, unit=unit, delta=delta)

        def rehearse(number: int, budget: Fraction) -> PeopleDesign:
            return self._design(shape, PublicFacts(persons_schema(shape), budget, delta, unit, number))

        with told_of_charge(books, account):
            row_count = None
            if n_persons is None:
                rest = epsilon * (1 - ROWS_SHARE)
                first_that_works(lambda number: rehearse(number, rest))
                row_count = release_rows(gathered.n_persons, epsilon=epsilon - rest, ledger=books, entropy=source)
                with after_counting(epsilon - rest, row_count.expected, what="persons"):
                    plan = rehearse(row_count.expected, rest)
            else:
                plan = rehearse(n_persons, epsilon)
            prepaid = PrepaidMechanisms(plan.plan, books, source)
            total = gathered.n_persons if unit.n_is_public else None
            grown = grow_people(gathered, plan, prepaid, total=total, coins=coins, rng=rng, row_count=row_count)
            self.design_ = plan
            self.release_ = self._released(gathered, shape, plan, grown, books, row_count)
        self.ledger_ = books if given is None else given
        record_release(account, self.release_)
        return self

    @of_release(PeopleRelease.sample)
    def sample(self) -> Any: ...  # type: ignore[override]  # persons are asked for, not rows

    explain = release_verb(PeopleRelease.explain)

    def check_shape(self, shape: PeopleShape) -> None:
        """Raise, as `fit` would, where persons and their rows cannot be modelled as stated. Nothing is read.

        Args:
            shape: persons and their rows.
        """
        self._checked_target(shape)
        shape = shape._without_ignored()
        persons_schema(shape)
        for rows in shape.rows:
            learnt_schema(rows)

    def planned(self, shape: PeopleShape, facts: PublicFacts) -> dict[str, Any]:
        """The plan that `fit` makes of public quantities, as a card has it. Nothing is read.

        Args:
            shape: persons and their rows.
            facts: number of persons, budget and unit.
        """
        plan = self._design(shape, facts)
        return plan_entries(plan.to_dict(), plan.plan.charges, facts.unit)

    def rehearsal(self, tables: Tables | SchemaLike, n_persons: int) -> Rehearsal:
        """What `fit` would do with tables of so many persons. Nothing is read, and nothing is charged.

        Args:
            tables: what is public about the tables, as for `fit`.
            n_persons: how many persons there are; under "add-remove" a public guess, as `assumed_persons` is.

        Raises:
            SchemaError, ParameterError, BudgetError: what `fit` would raise before it reads a row.
        """
        n_persons = checked_number(n_persons, "n_persons")
        epsilon, unit, stated_delta, _ = self._terms()
        shape = PeopleShape.of(tables if isinstance(tables, Tables) else as_schema(tables))
        self.check_shape(shape)
        delta = default_delta(n_persons) if stated_delta is None else stated_delta
        shape = shape._without_ignored()
        plan = self._design(shape, PublicFacts(persons_schema(shape), epsilon, delta, unit, n_persons))
        return Rehearsal(plan.schema, epsilon, delta, unit, n_persons, plan, plan.plan.charges)

    def _terms(self) -> tuple[Fraction, Unit, Fraction | None, int | None]:
        """The budget, the unit, a delta that was stated, and a guess of the number of persons."""
        self.quality = checked_quality(self.quality)
        epsilon = parse_epsilon(self.epsilon)
        if not isinstance(self.unit, str) or self.unit not in _UNITS:
            raise ParameterError(f"unit={as_given(self.unit)} is not {' or '.join(map(repr, _UNITS))}")
        stated_delta = None if self.delta is None else parse_delta(self.delta)
        if stated_delta == 0:
            raise ParameterError("delta=0: persons with many rows need a delta above 0, such as 1e-6; leave it out")
        return epsilon, _UNITS[self.unit], stated_delta, checked_rows(self.assumed_persons)

    def _design(self, shape: PeopleShape, facts: PublicFacts) -> PeopleDesign:
        """The plan of public quantities."""
        return people_design(
            shape,
            n_persons=facts.n_rows,
            epsilon=facts.epsilon,
            delta=facts.delta,
            unit=facts.unit,
            target=self._checked_target(shape),
            quality=self.quality,
        )

    def _checked_target(self, shape: PeopleShape) -> str | None:
        """The target as a column of the persons table."""
        if self.target is None:
            return None
        if shape.persons is None:
            raise ParameterError("target is a column of a table of persons, and there is none; leave it out")
        known = {f"{shape.persons_name}.{name}": name for name, column in shape.persons.items() if column.is_read}
        if not isinstance(self.target, str) or self.target not in known:
            raise ParameterError(
                f"target={as_given(self.target)} is not a column of persons, such as {next(iter(known), None)!r}"
                f"{did_you_mean_column(self.target, known)}"
            )
        name = known[self.target]
        computed = {rule.column for rule in shape.persons._derivations}
        placed = {column for place in shape.persons.places for column in place.columns}
        if name in computed or name in placed:
            raise ParameterError(f"target={self.target!r} is computed, or part of a place; choose another column")
        return name

    def _released(
        self,
        gathered: PersonTables,
        shape: PeopleShape,
        plan: PeopleDesign,
        grown: GrownPeople,
        books: Ledger,
        row_count: RowCount | None,
    ) -> PeopleRelease:
        described = {**plan.to_dict(), **noisy_rows_entry(row_count)}
        n_persons = gathered.n_persons if books.unit.n_is_public else None

        def card_of(contents: Mapping[str, int]) -> Card:
            return self._card_of(
                books, grown.schema, design=described, n_rows=n_persons, released=contents, frame=gathered.kind
            )

        names = grown.variables.names
        persons = released_forest(grown.persons, names, lambda contents: persons_card(card_of(contents), shape))
        rows = tuple(
            ReleasedRows(
                of_table.design.shape,
                of_table.columns,
                of_table.layout,
                of_table.field,
                tuple(of_table.tables),
                of_table.correlations,
                of_table.total / UNITS,
            )
            for of_table in grown.rows
        )
        whole = card_of({**persons.card.released, ROW_TABLES: sum(len(some.tables) for some in rows)})
        noise = plan.plan.weighted.get("row tables")
        variance = None if noise is None else noise.scale(books.unit)
        return PeopleRelease(
            whole, shape=shape, persons=persons, rows=rows, frames=gathered.kinds, row_variance=variance
        )
