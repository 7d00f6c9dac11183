"""`plan`: what a budget buys for a table of a given schema and size, before anything is read or spent. PUBLIC.

A plan begins where a fit begins: the same checks, the same choice of a method, the same plan and the same
charges, which a fit of as many rows then states on its card. No table is involved. What a plan cannot know, it
lists as not known. The first part renders plans as text and HTML; the second makes them (`Plan`, `Plans`,
`plan`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any, overload

from spinney.documents import Block, Document, Facts, Listing, Printed, Table
from spinney.errors import ParameterError
from spinney.forest.release.explain import Stage
from spinney.planning.expected import (
    Cost,
    ExpectedAnswer,
    ExpectedError,
    Structure,
    afforded,
    budget_stages,
    costs,
    expected_answer,
    expected_errors,
    hints,
    rank,
    structure_of,
    unknown,
)
from spinney.privacy.budget import parse_epsilon
from spinney.privacy.composition import LARGEST_CREDIBLE_EPSILON
from spinney.privacy.mechanisms import Event, decimal, event_to_dict
from spinney.progress import progress, waiting
from spinney.release.card import Card
from spinney.report.parts import STAGES, budget_part, percent, promise_part
from spinney.schema.linked import Tables
from spinney.schema.schema import Schema, SchemaLike, as_schema
from spinney.synthesizers.forest import checked_quality
from spinney.synthesizers.linked import LinkedSynthesizer
from spinney.synthesizers.method import AUTOMATIC, AnySynthesizer, Choice, choose, make, whose_rows
from spinney.synthesizers.paying import Rehearsal, checked_number

# ----------------------------------------------------------------------------------------------------------------- page
# A plan for people: one, and several side by side.


_NOTHING = "nothing was read, and nothing was spent"


def plan_document(plan: Plan) -> Document:
    """One plan: what a fit would guarantee, measure and pay for."""
    promise, group = plan.promise, plan.structure.smallest_group
    head = [
        ("method", f"{plan.method}: {plan.reason}"),
        ("guarantee", promise["guarantee"]),
        ("", None if promise["guess"] is None else f"{percent(promise['guess'])} {promise['headline']}"),
        *(("", sentence) for sentence in promise["in_words"][2:]),
        *(("caution", caution) for caution in plan.card.cautions),
        ("structure", plan.structure.sentence),
    ]
    errors = [
        [error.what, _number(error.noise_std), _number(error.within_95), f"{error.percent_95:.3g} %"]
        for error in plan.errors
    ]
    heads = ("of", "std", "95 % within", "of all")
    noise = Table(f"noise of a count, in {plan.who}", heads, errors, is_open=True, widths=(-38, 11, 13, 8))
    budget = [
        f"{100 * stage.share:5.1f} %  {STAGES.get(stage.name, stage.name)}"
        f"{f', {stage.times} times' if stage.times > 1 else ''}: {stage.noise}"
        for stage in plan.budget
    ]
    seen = None if group is None else f"a group of fewer than about {group:,} {plan.who} is hardly told from none"
    smallest = [("question", plan.answer and f"{plan.answer.what}: {_answer(plan.answer)}"), ("smallest", seen)]
    rest = [
        *(("costs", f"{cost.what}, {100 * cost.share:.1f} % of the budget; {cost.remedy}") for cost in plan.costs),
        *(("would help", hint) for hint in plan.hints),
        *(("not known", what) for what in plan.unknown),
    ]
    parts: list[Block] = [
        Facts(head),
        *([noise] if errors else []),
        Facts(smallest),
        *([Listing("budget", budget, indent=13)] if budget else []),
        Facts(rest),
    ]
    title = f"Plan for {plan.n_rows:,} {plan.who} at epsilon {decimal(plan.epsilon)}: {_NOTHING}"
    return Document(title, parts, plan.card.to_dict()["warnings"])


def plans_document(plans: Sequence[Plan]) -> Document:
    """Several plans side by side, a column for each epsilon; what is common to all above and below."""
    if not plans:
        return Document("no plans")
    first, (heads, *rows) = plans[0], _side_by_side(plans)
    rest = [
        (title, sentence)
        for title, some in (
            ("would help", [plan.hints for plan in plans]),
            ("not known", [plan.unknown for plan in plans]),
        )
        for sentence in dict.fromkeys(chain.from_iterable(some))
    ]
    table = Table(heads[0], heads, rows, is_open=True, widths=(0, *[1] * len(plans)))
    method = Facts([("method", f"{first.method}: {first.reason}")])
    return Document(f"Plans for {first.n_rows:,} {first.who}: {_NOTHING}", [method, table, Facts(rest)])


def _side_by_side(plans: Sequence[Plan]) -> list[list[str]]:
    """The heads, then a line for each quantity that any of the plans has; a dash where a plan does not have it."""

    def line(name: str, values: Iterable[str | None]) -> list[str]:
        return [name, *("-" if value is None else value for value in values)]

    def within(plan: Plan, stage: str) -> str | None:
        return next((_number(error.within_95) for error in plan.errors if error.stage == stage), None)

    guesses = [plan.promise["guess"] for plan in plans]
    groups = [plan.structure.smallest_group for plan in plans]
    named = dict.fromkeys((error.stage, error.what) for plan in plans for error in plan.errors)
    answers = [None if plan.answer is None else _number(plan.answer.within_95) for plan in plans]
    return [
        line("epsilon", (decimal(plan.epsilon) for plan in plans)),
        line("delta", (decimal(plan.delta) if plan.delta else "0" for plan in plans)),
        line("right at most", (None if guess is None else percent(guess) for guess in guesses)),
        line("structure", (plan.structure.name for plan in plans)),
        *(line(f"{what}, ±", (within(plan, stage) for plan in plans)) for stage, what in named),
        line("a tenth of them, ±", answers),
        line("smallest group", (None if group is None else f"{group:,}" for group in groups)),
    ]


def _answer(answer: ExpectedAnswer) -> str:
    low, high = answer.interval
    even = ", if the rows are spread evenly" if answer.is_even else ""
    return f"{answer.expected:,}, and noise puts 95 % of answers from {low:,} to {high:,}{even}"


def _number(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


# ----------------------------------------------------------------------------------------------------------------- plan
# `plan` and its results: one budget, or several side by side.


_MOST_PLANS = 12
# Where a plan is poor, so many times its epsilon are tried for a richer one.
_TIMES = (2, 4, 8)
# Below, noise is so wide that accounting for it takes seconds for each of them.
_LEAST_TRIED = Fraction(1, 1000)


@dataclass(frozen=True, slots=True, eq=False)
class Plan(Printed):
    """What a fit would do and how far its counts would be off. `print` it; `to_dict` is meant to be parsed.

    Attributes:
        method: "tree", "forest", "grid" or "linked".
        reason: why this method.
        structure: what is counted together, or how deep a tree goes, and the smallest group that shows.
        budget: the stages that the budget would go to, with their shares and their noise.
        errors: the noise on a count, of one column and of columns together.
        answer: a question about a tenth of the rows as an interval; None where nothing is counted.
        costs: what else is paid for, and what would save it.
        hints: what would bring more.
        unknown: what only the rows can tell.
        card: the guarantee and the charges, as the card of such a fit would have them.
    """

    method: str
    reason: str
    structure: Structure
    budget: tuple[Stage, ...]
    errors: tuple[ExpectedError, ...]
    answer: ExpectedAnswer | None
    costs: tuple[Cost, ...]
    hints: tuple[str, ...]
    unknown: tuple[str, ...]
    card: Card
    _rehearsal: Rehearsal

    @property
    def epsilon(self) -> Fraction:
        """The whole budget that the plan is for."""
        return self._rehearsal.epsilon

    @property
    def delta(self) -> Fraction:
        """The failure probability that the plan is for; 0 where the guarantee is pure."""
        return self._rehearsal.delta

    @property
    def n_rows(self) -> int:
        """How many rows, or persons, the plan is for."""
        return self._rehearsal.n_rows

    @property
    def who(self) -> str:
        """What is protected and counted: "rows" or "persons"."""
        return "persons" if self._rehearsal.unit.is_person else "rows"

    @property
    def events(self) -> tuple[Event, ...]:
        """All that would be charged, in the order of a fit."""
        return self._rehearsal.events

    @property
    def promise(self) -> dict[str, Any]:
        """The guarantee in words and as odds, as a report has it."""
        return promise_part(self.card)

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-ready data."""
        return {
            "spinney_version": self.card.spinney_version,
            "method": self.method,
            "reason": self.reason,
            "synthesizer": self.card.synthesizer,
            "parameters": dict(self.card.parameters),
            "who": self.who,
            "n_rows": self.n_rows,
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "unit": self.card.unit,
            "promise": self.promise,
            "structure": self.structure.to_dict(),
            "errors": [error.to_dict() for error in self.errors],
            "answer": None if self.answer is None else self.answer.to_dict(),
            "budget": budget_part(self.card),
            "costs": [cost.to_dict() for cost in self.costs],
            "hints": list(self.hints),
            "unknown": list(self.unknown),
            "cautions": self.card.cautions,
            "plan": self.card.plan,
            "events": [event_to_dict(event) for event in self.events],
        }

    def document(self) -> Document:
        """The plan for people."""
        return plan_document(self)

    def __repr__(self) -> str:
        return f"Plan({self.method}, epsilon={self.epsilon}, {self.n_rows:,} {self.who}: {self.structure.name})"


class Plans(Printed, Sequence[Plan]):
    """Plans of one table at several epsilons, side by side. `print` it; `to_dict` is meant to be parsed."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._plans = tuple(plans)

    @overload
    def __getitem__(self, place: int) -> Plan: ...
    @overload
    def __getitem__(self, place: slice) -> Plans: ...
    def __getitem__(self, place: int | slice) -> Plan | Plans:
        return Plans(self._plans[place]) if isinstance(place, slice) else self._plans[place]

    def __iter__(self) -> Iterator[Plan]:
        return iter(self._plans)

    def __len__(self) -> int:
        return len(self._plans)

    def to_dict(self) -> dict[str, Any]:
        """The plans as JSON-ready data, in order."""
        return {"plans": [plan.to_dict() for plan in self]}

    def document(self) -> Document:
        """The plans for people, side by side."""
        return plans_document(self)

    def __repr__(self) -> str:
        return f"Plans({', '.join(map(repr, self))})"


@overload
def plan(schema: SchemaLike | Tables, n_rows: int, epsilon: list[Any] | tuple[Any, ...], **options: Any) -> Plans: ...
@overload
def plan(schema: SchemaLike | Tables, n_rows: int, epsilon: Any = 1, **options: Any) -> Plan: ...
def plan(
    schema: SchemaLike | Tables,
    n_rows: int,
    epsilon: Any = 1,
    *,
    method: str = AUTOMATIC,
    delta: Any = None,
    unit: str | None = None,
    target: str | None = None,
    quality: str | None = None,
    utility_share: Any = None,
    class_size: float | None = None,
    **options: Any,
) -> Plan | Plans:
    """What a budget buys for such a table: method, guarantee, structure, expected errors, where the budget goes.

    No table is read and nothing is spent. A fit of as many rows with the same parameters states the same charges and
    the same noise, but for what is found on the way (private bounds, private values, the sizes of a target's classes).

    >>> import spinney as sp
    >>> schema = sp.Schema({"age": sp.Integer(0, 99), "kind": sp.Category(["a", "b"]), "x": sp.Real(0, 1000)})
    >>> plan = sp.plan(schema, 10_000, 1)
    >>> plan.method, plan.structure.name
    ('forest', 'tree')

    Args:
        schema: what is public about the table: a `Schema`, the path of a schema file, or a dictionary of columns; of
            linked tables, `sp.Tables`.
        n_rows: how many rows the table has, as you state it; where the schema says whose rows they are, how many
            persons. With unit="add-remove" it stands for `assumed_rows` or `assumed_persons`.
        epsilon: the whole budget, exact: a number or text such as "0.1" or "1/3". A list of several gives `Plans`.
        method: "tree", "forest", "grid" or "linked", instead of what the schema suggests.
        delta: the failure probability, as the forest takes it; by default what a fit would take.
        unit: "replace-one" or "add-remove".
        target: the column that the others are about.
        quality: "fast" or "high".
        utility_share: the part of the budget for figures of utility.
        class_size: a guess of how many rows the target's second largest class has; by default no class is rare.
        options: other parameters of the synthesizer, as for `sp.synthesize`: workload, analyses, moments, bins, ...
            A prior is not opened; that there is one changes the plan.

    Raises:
        ParameterError, SchemaError, BudgetError: what `fit` would refuse before it reads a row.
    """
    stated = schema if isinstance(schema, Tables) else as_schema(schema)
    named = {"delta": delta, "unit": unit, "target": target, "quality": quality, "utility_share": utility_share}
    given = options | {name: value for name, value in named.items() if value is not None}
    asked: dict[str, Any] = {"method": method, "class_size": class_size, "options": given}
    if not isinstance(epsilon, (list, tuple)):
        with waiting("planning"):
            return plan_of(stated, n_rows, epsilon, **asked)
    if not 1 <= len(epsilon) <= _MOST_PLANS:
        raise ParameterError(f"epsilon is a list of {len(epsilon)}; give 1 to {_MOST_PLANS} of them")
    for each in epsilon:
        parse_epsilon(each)
    return Plans([plan_of(stated, n_rows, each, **asked) for each in progress(epsilon, "planning", unit="plan")])


def plan_of(
    stated: Schema | Tables,
    n_rows: Any,
    epsilon: Any,
    *,
    method: str = AUTOMATIC,
    class_size: Any = None,
    options: Mapping[str, Any],
    spelt: Callable[..., str] | None = None,
) -> Plan:
    """One plan; `spelt` says how the caller writes a parameter, for messages to speak the caller's language."""
    given = dict(options)
    parse_epsilon(epsilon)
    of_persons = whose_rows(stated) is not None
    n_rows = checked_number(n_rows, "n_rows" if spelt is None else spelt("persons" if of_persons else "rows"))
    choice = choose(stated, given, method=method, spelt=spelt)
    if "quality" in given:
        given["quality"] = checked_quality(given["quality"])
    assumed = "assumed_persons" if of_persons else "assumed_rows"
    if assumed in given:
        raise ParameterError(f"{assumed}: a plan takes the number of {assumed[8:]} for it; leave it out")
    if given.get("unit") == "add-remove":
        given[assumed] = n_rows
    if class_size is not None:
        if choice.method != "forest" or given.get("target") is None:
            raise ParameterError("class_size is of the classes of a forest's target; name a target, or leave it out")
        class_size = checked_number(class_size, "class_size")

    def rehearse(budget: Any) -> tuple[AnySynthesizer, Rehearsal]:
        model = make(choice.method, budget, given)
        if isinstance(model, LinkedSynthesizer):
            return model, model.rehearsal(stated, n_rows)
        assert not isinstance(stated, Tables)
        return model, model.rehearsal(stated, n_rows, class_size=class_size)

    model, rehearsal = rehearse(epsilon)
    richer = _richer(rehearsal, lambda budget: rehearse(budget)[1])
    return _described(choice, model, rehearsal, richer)


def _richer(rehearsal: Rehearsal, rehearse: Callable[[Fraction], Rehearsal]) -> tuple[str, ...]:
    """The smallest of a few larger epsilons that pays for a richer structure, in words; none where none does."""
    for times in _TIMES if rehearsal.epsilon >= _LEAST_TRIED else ():
        budget = rehearsal.epsilon * times
        if budget > LARGEST_CREDIBLE_EPSILON:
            break
        larger = rehearse(budget)
        if rank(larger) > rank(rehearsal):
            return (f"epsilon {decimal(budget)}, {times} times as much, would pay for {afforded(larger)}",)
    return ()


def _described(choice: Choice, model: AnySynthesizer, rehearsal: Rehearsal, richer: tuple[str, ...]) -> Plan:
    stages = budget_stages(rehearsal)
    errors = expected_errors(rehearsal, stages)
    structure = structure_of(rehearsal, errors)
    n_rows = rehearsal.n_rows if rehearsal.unit.n_is_public else None
    design = rehearsal.planned.to_dict()
    card = model._card_of(rehearsal, rehearsal.schema, design=design, n_rows=n_rows, released={}, frame="numpy")
    return Plan(
        choice.method,
        choice.reason,
        structure,
        stages,
        errors,
        expected_answer(rehearsal, errors),
        costs(stages),
        (*richer, *hints(rehearsal, structure)),
        unknown(rehearsal),
        card,
        rehearsal,
    )
