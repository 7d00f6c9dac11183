"""A plan for people: as a page of text, as a piece of HTML for notebooks, and several plans side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from textwrap import wrap
from typing import TYPE_CHECKING

from spinney.fragments import Lines, fragment
from spinney.privacy.ledger import decimal
from spinney.report.promise_part import percent
from spinney.report.spending_part import STAGES
from spinney.shown import printable

if TYPE_CHECKING:
    from spinney.planning.expected import ExpectedError
    from spinney.planning.plan import Plan

_WIDTH = 100
_NOTHING = "nothing was read, and nothing was spent"
_TITLE = 12


def plan_text(plan: Plan) -> str:
    """One plan as a page."""
    promise = plan.promise
    lines = [f"Plan for {plan.n_rows:,} {plan.who} at epsilon {decimal(plan.epsilon)}: {_NOTHING}"]
    lines += _wrapped("method", f"{plan.method}: {plan.reason}")
    lines += _wrapped("guarantee", promise["guarantee"])
    if promise["guess"] is not None:
        lines += _wrapped("", f"{percent(promise['guess'])} {promise['headline']}")
    for sentence in promise["in_words"][2:]:
        lines += _wrapped("", sentence)
    for caution in plan.card.cautions:
        lines += _wrapped("caution", caution)
    lines += _wrapped("structure", plan.structure.sentence)
    if plan.errors:
        lines.append(f"  {'noise of a count, in ' + plan.who:<40} {'std':>12} {'95 % within':>14} {'of all':>9}")
        lines += [_error_line(error) for error in plan.errors]
    if plan.answer is not None:
        lines += _wrapped("question", f"{plan.answer.what}: {_answer(plan)}")
    if plan.structure.smallest_group is not None:
        seen = f"fewer than about {plan.structure.smallest_group:,} {plan.who}"
        lines += _wrapped("smallest", f"a group of {seen} is hardly told from none")
    if plan.budget:
        lines.append("  budget")
        for stage in plan.budget:
            lines += wrap(
                f"{100 * stage.share:5.1f} %  {STAGES.get(stage.name, stage.name)}"
                f"{f', {stage.times} times' if stage.times > 1 else ''}: {stage.noise}",
                _WIDTH,
                initial_indent="    ",
                subsequent_indent=" " * 13,
            )
    for cost in plan.costs:
        lines += _wrapped("costs", f"{cost.what}, {100 * cost.share:.1f} % of the budget; {cost.remedy}")
    for hint in plan.hints:
        lines += _wrapped("would help", hint)
    for what in plan.unknown:
        lines += _wrapped("not known", what)
    return "\n".join(printable(line) for line in lines)


def plans_text(plans: Sequence[Plan]) -> str:
    """Several plans side by side, a column for each epsilon; what is common to all above and below."""
    if not plans:
        return "no plans"
    first = plans[0]
    lines = [f"Plans for {first.n_rows:,} {first.who}: {_NOTHING}"]
    lines += _wrapped("method", f"{first.method}: {first.reason}")
    table = _side_by_side(plans)
    widths = [max(len(row[place]) for row in table) for place in range(len(plans) + 1)]
    for row in table:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        lines.append("  " + "  ".join(cells).rstrip())
    for title, some in (
        ("would help", [plan.hints for plan in plans]),
        ("not known", [plan.unknown for plan in plans]),
    ):
        for sentence in dict.fromkeys(chain.from_iterable(some)):
            lines += _wrapped(title, sentence)
    return "\n".join(printable(line) for line in lines)


def plan_fragment(plan: Plan) -> str | None:
    """A piece of HTML for one plan; None without jinja2."""
    promise = plan.promise
    facts = {
        "method": f"{plan.method}: {plan.reason}",
        "guarantee": promise["guarantee"],
        "odds": None if promise["guess"] is None else f"{percent(promise['guess'])} {promise['headline']}",
        "caution": "; ".join(plan.card.cautions),
        "structure": plan.structure.sentence,
        "question": "" if plan.answer is None else f"{plan.answer.what}: {_answer(plan)}",
        "would help": "; ".join(plan.hints),
        "not known": "; ".join(plan.unknown),
    }
    errors = [
        [error.what, _number(error.noise_std), _number(error.within_95), _percent(error)] for error in plan.errors
    ]
    budget = [
        [f"{100 * stage.share:.1f} %", STAGES.get(stage.name, stage.name), stage.times, stage.noise]
        for stage in plan.budget
    ]
    costs = [[cost.what, f"{100 * cost.share:.1f} %", cost.remedy] for cost in plan.costs]
    return fragment(
        f"Plan for {plan.n_rows:,} {plan.who} at epsilon {decimal(plan.epsilon)}",
        facts,
        warnings=plan.card.to_dict()["warnings"],
        tables=[
            Lines(
                f"noise of a count, in {plan.who}",
                ("of", "standard deviation", "95 % within", "of all"),
                errors,
                is_open=True,
            ),
            Lines("where the budget would go", ("share", "what", "times", "noise"), budget),
            Lines("what else is paid for", ("what", "share", "what would save it"), costs),
        ],
        note=f"A plan sees no table: {_NOTHING}.",
    )


def plans_fragment(plans: Sequence[Plan]) -> str | None:
    """A piece of HTML for several plans; None without jinja2."""
    if not plans:
        return None
    first, (heads, *rows) = plans[0], _side_by_side(plans)
    return fragment(
        f"Plans for {first.n_rows:,} {first.who}",
        {"method": f"{first.method}: {first.reason}"},
        tables=[Lines("side by side", heads, rows, is_open=True)],
        note=f"A plan sees no table: {_NOTHING}.",
    )


def _side_by_side(plans: Sequence[Plan]) -> list[list[str]]:
    """The heads, then a line for each quantity that any of the plans has."""
    table = [["epsilon", *(decimal(plan.epsilon) for plan in plans)]]
    table.append(["delta", *(decimal(plan.delta) if plan.delta else "0" for plan in plans)])
    guesses = [plan.promise["guess"] for plan in plans]
    table.append(["right at most", *("-" if guess is None else percent(guess) for guess in guesses)])
    table.append(["structure", *(plan.structure.name for plan in plans)])
    named = dict.fromkeys((error.stage, error.what) for plan in plans for error in plan.errors)
    for stage, what in named:
        found = [next((error for error in plan.errors if error.stage == stage), None) for plan in plans]
        table.append([f"{what}, ±", *("-" if error is None else _number(error.within_95) for error in found)])
    table.append(
        [
            "a tenth of them, ±",
            *_of_each(None if plan.answer is None else _number(plan.answer.within_95) for plan in plans),
        ]
    )
    groups = [plan.structure.smallest_group for plan in plans]
    table.append(["smallest group", *_of_each(None if group is None else f"{group:,}" for group in groups)])
    return table


def _of_each(values: Iterable[str | None]) -> list[str]:
    return ["-" if value is None else value for value in values]


def _error_line(error: ExpectedError) -> str:
    return f"    {error.what:<38} {_number(error.noise_std):>12} {_number(error.within_95):>14} {_percent(error):>9}"


def _percent(error: ExpectedError) -> str:
    return f"{error.percent_95:.3g} %"


def _answer(plan: Plan) -> str:
    assert plan.answer is not None
    low, high = plan.answer.interval
    even = ", if the rows are spread evenly" if plan.answer.is_even else ""
    return f"{plan.answer.expected:,}, and noise puts 95 % of answers from {low:,} to {high:,}{even}"


def _number(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _wrapped(title: str, text: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=f"  {title:<{_TITLE}}", subsequent_indent=" " * (_TITLE + 2))
