"""The release card: the guarantee, the charges and the plan of a release, for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from textwrap import wrap
from typing import Any

from spinney.privacy.budget import Unit, parse_fraction
from spinney.privacy.ledger import (
    Brand,
    DiscreteLaplaceCounts,
    Event,
    NotPrivate,
    brands,
    decimal,
    event_lines,
    event_to_dict,
    total_delta,
    total_epsilon,
)
from spinney.privacy.promise import GROUPS, GroupPromise, cautions, group_promise
from spinney.release.entries import checked_entries
from spinney.release.row_count import NOISY_ROWS, RowCount
from spinney.release.utility import UTILITY, Utility, utility_of
from spinney.schema.people import PeopleShape, RowsShape
from spinney.schema.places import Place
from spinney.schema.plain import jsonable
from spinney.schema.table import Schema
from spinney.shown import brief, json_text, printable

_LIMITS = "Not covered: side channels such as timing, and what other releases of the same people add."

_WIDTH = 100
# Promises for groups are worked out in floats and rounded up: on another machine they may come out a little otherwise.
_GROUPS_SLACK = Fraction(1, 20)
_UNITS = {
    Unit.REPLACE_ONE: "one row, replaced by any other (replace-one)",
    Unit.ADD_REMOVE: "one row, added or removed (add-remove)",
    Unit.REPLACE_PERSON: "one person with all their rows, replaced by any other (replace-one-person)",
    Unit.ADD_REMOVE_PERSON: "one person with all their rows, added or removed (add-remove-person)",
}
_ROW_TABLES = "tables of rows"
# How a forest's structure is shown. Files hold the short names, of which "tree" would be taken for the method.
_STRUCTURES = {
    "rounds": "groups of columns, chosen in rounds",
    "tree": "pairs of columns along a tree",
    "target": "every column with the target",
    "independent": "independent columns: none were measured together",
    "uniform": "uniform: the budget was too small; rows are spread evenly over columns that were not counted",
}


@dataclass(frozen=True, slots=True, eq=False)
class Card:
    """Everything about a release except its bins. `print(card)` is meant to be read; `to_dict` to be parsed."""

    spinney_version: str
    synthesizer: str
    parameters: Mapping[str, Any]
    unit: str
    events: tuple[Event, ...]
    schema: Schema
    plan: Mapping[str, Any]
    n_rows: int | None  # how many rows, or persons where they are the unit; None where that is private
    released: Mapping[str, int]  # how many of what, such as {"bins": 1234}
    frame: str
    remarks: tuple[str, ...] = ()  # what the released numbers say about the schema; of a file, found anew
    people: PeopleShape | None = None  # of persons, all tables as they were stated; of a file, found anew

    @property
    def epsilon(self) -> Fraction:
        """Total privacy loss of this release."""
        return total_epsilon(self.events)

    @property
    def delta(self) -> Fraction:
        """The failure probability of (epsilon, delta)-differential privacy; 0 for a pure release."""
        return total_delta(self.events)

    @property
    def n_bins(self) -> int:
        """How many bins were released; 0 for a release of something else."""
        return self.released.get("bins", 0)

    @property
    def contents(self) -> str:
        """What was released, in words."""
        return ", ".join(f"{count:,} {what}" for what, count in self.released.items())

    @property
    def is_empty(self) -> bool:
        return not any(self.released.values())

    @property
    def brands(self) -> list[Brand]:
        """What voids the guarantee or makes it conditional; empty for a release that is safe to publish."""
        return brands(self.events)

    @property
    def is_private(self) -> bool:
        return not self.brands

    @property
    def guarantee(self) -> str:
        """The guarantee in words."""
        if not self.is_private:
            return "none: see the warning"
        return guarantee_in_words(self.epsilon, self.delta, self.unit)

    @property
    def groups(self) -> tuple[GroupPromise, ...]:
        """The guarantee for a person with two, five or ten rows; empty if there is no guarantee for anybody.

        Where persons with all their rows are the unit, that for two, five or ten persons together.
        """
        if not self.is_private or not self.epsilon:
            return ()
        return tuple(group_promise(self.events, Unit.parse(self.unit), n_rows) for n_rows in GROUPS)

    @property
    def n_persons(self) -> int | None:
        """How many persons there are, where they are the unit and their number is public."""
        return self.n_rows if self._is_of_persons else None

    @property
    def _is_of_persons(self) -> bool:
        return Unit.parse(self.unit).is_person

    @property
    def _who(self) -> str:
        """What is counted and protected, in the plural."""
        return "persons" if self._is_of_persons else "rows"

    @property
    def row_count(self) -> RowCount | None:
        """The noisy number of rows or persons, where one was bought because the number is private."""
        noisy = self.plan.get(NOISY_ROWS)
        for event in self.events:
            if isinstance(event, DiscreteLaplaceCounts) and event.stage == "rows" and type(noisy) is int:
                return RowCount(noisy, event.epsilon / event.sensitivity)
        return None

    @property
    def utility(self) -> Utility | None:
        """How far the release is from the private table, where that was paid for; see `Utility`."""
        return utility_of(self.plan, self.events, Unit.parse(self.unit))

    @property
    def assumed_rows(self) -> int | None:
        """The guess of that number which automatic values followed from, where it is private and none was counted."""
        assumed = self.parameters.get(f"assumed_{self._who}")
        return assumed if self.n_rows is None and type(assumed) is int else None

    @property
    def planned_rows(self) -> int | None:
        """The number of rows that the release was planned for: public, bought for a charge of its own, or assumed.

        It has nothing to do with the noise of any other count.
        """
        counted = None if self.row_count is None else self.row_count.expected
        return self.n_rows or counted or self.assumed_rows

    @property
    def cautions(self) -> list[str]:
        """What makes the guarantee weaker than it looks: an epsilon or a delta that is too large."""
        return cautions(self.epsilon, self.delta, self.planned_rows, who=self._who)

    @property
    def essentials(self) -> str:
        """The most important facts about a release, in a few lines."""
        return "\n".join(self._essential_lines())

    def _essential_lines(self) -> list[str]:
        structure = self.plan.get("structure")
        groups = "; ".join(f"{group.n_rows} {self._who}: {group}" for group in self.groups)
        together = "the guarantee for several persons together"
        if not self._is_of_persons:
            together = "the guarantee is for one row; for a person with several rows it is weaker"
        lines = [
            f"  guarantee   {self.guarantee}",
            *_wrapped("alone", f"of this release alone; other releases of the same {self._who} add to it"),
            f"  unit        {_UNITS[Unit.parse(self.unit)]}",
            *(_wrapped("groups", f"{together}: {groups}") if groups else []),
            *(line for caution in self.cautions for line in _wrapped("caution", caution)),
            *(line for remark in self.remarks for line in _wrapped("remark", remark)),
            *_wrapped(self._who, self._rows_in_words()),
            *(_wrapped("rows", "private, as their number is the persons' own") if self._is_of_persons else []),
            *(_wrapped("prior", prior) if (prior := self._prior_in_words()) else []),
            *(line for what, count in self.released.items() for line in self._released_in_words(what, count)),
            *([f"  structure   {structure_in_words(str(structure))}"] if structure else []),
            *_utility_lines(self.utility),
        ]
        return [printable(line) for line in lines]

    def _released_in_words(self, what: str, count: int) -> list[str]:
        """How much of something was released. The cliques of a model are not the tables that it was fitted to."""
        is_even = self.plan.get("structure") == "uniform"
        if what == _ROW_TABLES:
            return _wrapped("row tables", f"{count:,} released, which the model of rows was fitted to")
        if what == "leaves" and is_even:
            return _wrapped("leaves", f"{count:,}, made from the schema: no column was divided by counts")
        if what != "cliques":
            return [f"  {what:<11} {count:,} released"]
        tables = "1 joint table of columns" if count == 1 else f"{count:,} joint tables of columns"
        if count == len(self.schema.modelled):  # a junction tree has as many cliques where no two columns are joined
            tables = "1 column" if count == 1 else f"{count:,} columns, each by itself"
        elif not is_even:
            tables += ", the cliques of a junction tree"
        rest = "fitted to all that was counted"
        if is_even:
            rest = "spread evenly: nothing was counted"
            for event in self.events:
                if isinstance(event, DiscreteLaplaceCounts) and event.stage == "classes":
                    rest = f"spread evenly, but for counts of {event.column!r}"
        return _wrapped("model", f"{tables}, {rest}")

    def _rows_in_words(self) -> str:
        if self.n_rows is not None:
            return f"{self.n_rows:,} (public, under replace-one)"
        if self.row_count is not None:
            count = self.row_count
            number = f"{count.noisy:,}" if count.noisy >= 0 else f"about 0 ({count.noisy:,})"
            return (
                f"private; {number} by a noisy count, of standard deviation {count.noise_std:,.1f}; by default, as "
                f"many {self._who} are drawn as all noisy counts together say"
            )
        return "private" if self.assumed_rows is None else f"private; {self.assumed_rows:,} assumed, not counted"

    def _prior_in_words(self) -> str | None:
        """What stood in for counts, and what the guarantee does not cover."""
        prior = self.parameters.get("prior")
        if not isinstance(prior, Mapping):
            return None
        if prior.get("kind") == "release":
            of_rows = f" of about {prior['rows']:,} rows" if "drawn" in prior else ""
            return (
                f"an earlier release{of_rows}, {prior['guarantee']}; if it is of the same people, what it cost adds "
                "to the cost of this one"
            )
        return f"a table of {prior['rows']:,} rows that was stated to be public; the guarantee does not cover them"

    def _groups_as_data(self) -> list[dict[str, Any]]:
        """The promises for several as JSON-ready data."""
        return [
            {self._who: group.n_rows, "epsilon": str(group.epsilon), "delta": str(group.delta)} for group in self.groups
        ]

    def to_dict(self) -> dict[str, Any]:
        """The card as JSON-ready data."""
        return {
            "spinney_version": self.spinney_version,
            "is_private": self.is_private,
            "warnings": [_warning(brand) for brand in self.brands],
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "unit": self.unit,
            "groups": self._groups_as_data(),
            "cautions": self.cautions,
            "remarks": list(self.remarks),
            "synthesizer": self.synthesizer,
            "parameters": dict(self.parameters),
            "events": [event_to_dict(event) for event in self.events],
            "plan": dict(self.plan),
            f"n_{self._who}": self.n_rows,
            "released": dict(self.released),
            "frame": self.frame,
            "schema": jsonable(self.schema.to_dict()),
        } | self._optional()

    def _optional(self) -> dict[str, Any]:
        """What only some cards have."""
        optional = {} if self.people is None else {"people": self.people.to_dict()}
        return optional | ({} if self.utility is None else {UTILITY: self.utility.to_dict()})

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Card:
        """Read what `to_dict` wrote; ValueError or KeyError where it is not that, or says other than its events do."""
        card = cls(**checked_entries(described))
        stated = {name: described[name] for name in ("is_private", "warnings") if name in described}
        stated |= {name: parse_fraction(described[name], name) for name in ("epsilon", "delta") if name in described}
        if UTILITY in described:
            stated[UTILITY] = described[UTILITY]
        for name, value in stated.items():
            if name == UTILITY:
                if card.utility is None or value != card.utility.to_dict():
                    raise ValueError("the card states other figures of utility than its plan and its events give")
                continue
            found = [_warning(brand) for brand in card.brands] if name == "warnings" else getattr(card, name)
            if type(value) is not type(found) or value != found:
                raise ValueError(f"the card states {name} as {brief(value)}, and its events give {brief(found)}")
        return card

    def check_groups(self, stated: Any) -> None:
        """Raise a ValueError where promises for several are not those of the events, but for the last digits.

        Of a file, after its events were found to be true: working them out takes as long as there are parts.
        """
        wanted = self._groups_as_data()
        is_same = isinstance(stated, list) and len(stated) == len(wanted)
        for group, found in zip(stated, wanted, strict=True) if is_same else ():
            is_same &= isinstance(group, dict) and group.keys() == found.keys() and group[self._who] == found[self._who]
            for name in ("epsilon", "delta") if is_same else ():
                value, least = parse_fraction(group[name], name), parse_fraction(found[name], name)
                is_same &= abs(value - least) <= _GROUPS_SLACK * least
        if not is_same:
            raise ValueError(f"the card promises groups of {self._who} other than what its events give")

    def to_json(self) -> str:
        return json_text(self.to_dict())

    def __str__(self) -> str:
        lines = [f"*** NOT PRIVATE *** {_warning(brand)}" for brand in self.brands]
        lines.append(f"Spinney release by {self.synthesizer} (spinney {self.spinney_version})")
        lines += self._essential_lines()
        lines.append("  charged")
        lines += [f"    {line}" for event in self.events for line in event_lines(event)]
        lines.append("  plan")
        lines += [f"    {name:<22} {value}" for name, value in self.plan.items() if name not in ("structure", UTILITY)]
        lines.append("  columns" if self.people is None else "  columns of persons, as they were learnt")
        lines += [f"    {name:<22} {column!r}" for name, column in self.schema.items()]
        if self.schema.rules:
            who = "row" if self.people is None else "person"
            lines.append(f"  rules that every synthetic {who} obeys, as they were stated")
            lines += [f"    {rule!r}" for rule in self.schema.rules]
        lines += [f"  place       {place.label}{_within(place)}" for place in self.schema.places]
        lines += [line for rows in (() if self.people is None else self.people.rows) for line in _rows_lines(rows)]
        lines.append(f"  {_LIMITS}")
        return "\n".join(printable(line) for line in lines)

    def _repr_html_(self) -> str | None:
        from spinney.release.fragment import card_fragment

        return card_fragment(self)

    def __repr__(self) -> str:
        state = "" if self.is_private else ", NOT PRIVATE"
        delta = f", delta={decimal(self.delta)}" if self.delta else ""
        return f"Card(epsilon={decimal(self.epsilon)}{delta}, unit={self.unit!r}, {self.contents}{state})"


def guarantee_in_words(epsilon: Fraction, delta: Fraction, unit: str) -> str:
    """A guarantee as people are shown it."""
    if delta:
        return f"({decimal(epsilon)}, {decimal(delta)})-differential privacy, unit {unit}"
    return f"{decimal(epsilon)}-differential privacy (pure), unit {unit}"


def structure_in_words(structure: str) -> str:
    """The structure of a forest as people are shown it."""
    return _STRUCTURES.get(structure, structure)


def _utility_lines(utility: Utility | None) -> list[str]:
    """The figures of utility, each on a line, below what they are of."""
    if utility is None:
        return []
    remarks = [line for remark in utility.remarks for line in _wrapped("", remark)]
    return [*_wrapped("utility", utility.compared), *(f"{'':>14}{figure}" for figure in utility), *remarks]


def _rows_lines(rows: RowsShape) -> list[str]:
    """A table of rows: how they belong to persons, and its columns."""
    facts = [f"at most {rows.most:,} of a person"]
    facts += [] if rows.order is None else [f"in the order of {rows.order!r}"]
    lines = [f"  rows{f' of {rows.name!r}' if rows.name else ''}, {', '.join(facts)}, by the key {rows.key!r}"]
    lines += [f"    {name:<22} {column!r}" for name, column in rows.schema.items()]
    return lines + [f"    {rule!r}, which every row obeys" for rule in rows.schema.rules]


def _within(place: Place) -> str:
    return "" if place.within is None else f", within {place.within!r}"


def _wrapped(title: str, text: str) -> list[str]:
    return wrap(text, _WIDTH, initial_indent=f"  {title:<11} ", subsequent_indent=" " * 14)


def _warning(brand: Brand) -> str:
    if isinstance(brand, NotPrivate):
        return f"{brand.note}: no privacy guarantee holds; for research on data that may be public"
    return f"{brand.note}: whoever knows the seed can remove it; for tests and figures"
