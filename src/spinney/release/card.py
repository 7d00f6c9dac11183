"""The release card: guarantee, charges, plan and remarks, for people and for programs. PUBLIC.

A card is made of released and public entries only, and its promise follows from its charges: epsilon and delta
are sums over events. Cards of files are checked entry by entry.

    entries in a file    what a file's card must be before a card is made of it
    row count            a noisy number of rows, and the numbers that follow from it
    plan                 its design, and the noise that follows from the charges
    card                 the card itself: guarantee, rows, cautions, text and data
    contradictions       comparisons that all checks of contents use
    remarks              what released numbers say about the schema and the call
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney.columns import Bounded, Time, whole_range
from spinney.documents import Document, Facts, Listing, Printed
from spinney.errors import ParameterError
from spinney.privacy.budget import Unit, parse_epsilon, parse_fraction
from spinney.privacy.composition import GROUPS, GroupPromise, cautions, group_promise
from spinney.privacy.mechanisms import (
    VARIANCE_STEP,
    Brand,
    Choices,
    DiscreteLaplaceCounts,
    Event,
    GaussianVector,
    LeafMoments,
    Mechanism,
    NotPrivate,
    PartitionSelection,
    SplitDecisions,
    Tables,
    Trees,
    WeightedTables,
    brands,
    decimal,
    event_from_dict,
    event_lines,
    event_to_dict,
    mechanisms_of,
    total_delta,
    total_epsilon,
    vector_variance,
)
from spinney.release.utility import UTILITY, Utility, utility_of
from spinney.schema.linked import PeopleShape, RowsShape
from spinney.schema.places import Place
from spinney.schema.plain import jsonable
from spinney.schema.schema import Schema
from spinney.text import brief, json_text, printable

# ---------------------------------------------------------------------------------------------------- entries in a file
# The entries of a card as a file has them, each checked for what it must be before a card is made of them.


# More rows than this were never in a table.
MOST_ROWS = 2**40
# What a card may list: bounds are one charge a column, all else a few.
_MOST_EVENTS = 20_000
_LONGEST_NAME = 200
_LONGEST_REMARK = 10_000
# The kinds of tables that rows come back in.
FRAME_KINDS = ("pandas", "polars", "pyarrow", "numpy")


def checked_entries(described: Any) -> dict[str, Any]:
    """What a card is made of; ValueError or KeyError where an entry is not what `Card.to_dict` writes."""
    if not isinstance(described, Mapping):
        raise ValueError("a card is not a table of entries")
    unit = Unit.parse(described["unit"])
    return {
        "spinney_version": _name(described["spinney_version"], "spinney_version"),
        "synthesizer": _name(described["synthesizer"], "synthesizer"),
        "parameters": _parameters(described["parameters"]),
        "unit": unit.value,
        "events": _events(described["events"]),
        "schema": _schema(described["schema"]),
        "design": _table(described["plan"], "plan"),
        "n_rows": _rows(described["n_persons" if unit.is_person else "n_rows"], unit),
        "released": _released(described["released"] if "released" in described else {"bins": described["n_bins"]}),
        "frame": check_frame_kind(described["frame"]),
        "remarks": _remarks(described.get("remarks", [])),
    }


def _schema(described: Any) -> Schema:
    """The schema of what was released: no column is ignored, every list of values is there, and no file is named."""
    schema = Schema.from_dict(described)
    if schema._columns_awaiting_values:
        raise ValueError("the schema of a release leaves a list of values to be found")
    if schema._without_ignored() is not schema:
        raise ValueError("the schema has columns that are ignored, which no release has")
    return schema


def _name(value: Any, name: str, *, longest: int = _LONGEST_NAME) -> str:
    """Words of ours: nothing that a terminal would obey."""
    if not isinstance(value, str) or len(value) > longest or not value.isprintable():
        raise ValueError(f"{name}={brief(value)} is not a name")
    return value


def _table(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not a table of entries")
    return value


def _parameters(described: Any) -> dict[str, Any]:
    """The parameters of the call. What a card shows of its prior is what a fit writes."""
    parameters = _table(described, "parameters")
    prior = parameters.get("prior")
    if prior is None:
        return parameters
    entries = {"kind": _name(_table(prior, "prior").get("kind"), "prior"), "rows": prior.get("rows")}
    if entries["kind"] == "release":
        entries["guarantee"] = _name(prior.get("guarantee"), "the prior's guarantee", longest=_LONGEST_REMARK)
        if "drawn" in prior:  # files from before state it as the number of rows
            entries["drawn"] = prior["drawn"]
    elif entries["kind"] != "table":
        raise ValueError(f"a prior of kind {brief(entries['kind'])} is neither a table nor a release")
    for n_rows in (entries["rows"], entries.get("drawn", 1)):
        if type(n_rows) is not int or not 1 <= n_rows <= MOST_ROWS:
            raise ValueError(f"{brief(n_rows)} is not the number of rows of a prior")
    if prior.keys() != entries.keys():
        raise ValueError("a prior has entries that no fit writes")
    return parameters


def _events(described: Any) -> tuple[Event, ...]:
    if not isinstance(described, list) or len(described) > _MOST_EVENTS:
        raise ValueError(f"events is not a list of at most {_MOST_EVENTS:,} entries")
    events = tuple(event_from_dict(event) for event in described)
    if total_delta(events) >= 1:
        raise ValueError("the deltas of all events add up to 1 or more, which guarantees nothing")
    return events


def _rows(n_rows: Any, unit: Unit) -> int | None:
    """The number of rows, or of persons, which a card states exactly where its unit makes it public."""
    who = "persons" if unit.is_person else "rows"
    if unit.n_is_public != (n_rows is not None):
        raise ValueError(f"n_{who}={brief(n_rows)} does not go with unit {unit.value!r}")
    if n_rows is not None and (type(n_rows) is not int or not 0 <= n_rows <= MOST_ROWS):
        raise ValueError(f"n_{who}={brief(n_rows)} is not a number of {who}")
    return n_rows


def check_frame_kind(kind: str) -> str:
    """The kind of frame, or an error that lists them."""
    if not isinstance(kind, str) or kind not in FRAME_KINDS:
        given = brief(kind) if isinstance(kind, str) else f"<a {type(kind).__name__}>"  # a table would show its rows
        raise ParameterError(f"frame={given} is not one of {', '.join(map(repr, FRAME_KINDS))}")
    return kind


def _remarks(described: Any) -> tuple[str, ...]:
    if not isinstance(described, list) or len(described) > _MOST_EVENTS:
        raise ValueError(f"remarks is not a list of at most {_MOST_EVENTS:,} entries")
    for remark in described:
        if not isinstance(remark, str) or len(remark) > _LONGEST_REMARK:
            raise ValueError(f"{brief(remark)} is not a remark")
    return tuple(described)


def _released(described: Any) -> dict[str, int]:
    for what, count in _table(described, "released").items():
        _name(what, "released")
        if type(count) is not int or not 0 <= count <= MOST_ROWS:
            raise ValueError(f"released: {brief(count)} is not a number of {what}")
    return dict(described)


# ------------------------------------------------------------------------------------------------------------ row count
# A noisy number of rows: what is known of a table whose number of rows is private, and was counted with noise.
#
# The noise is discrete Laplace of a known rate. Where a table is small for its epsilon, a released count may be far
# off, or below 0, and a plan that took it for the number of rows would take the table for empty. What plans take is
# the number to be expected: its mean given the noisy count, all numbers from 0 up being equally likely beforehand,
#
#     (2 m + exp(-r m) / r) / (2 - exp(-r m)),     r the rate, m the noisy count, or 0 where that is below 0
#
# which is 1 / r, the scale of the noise, where no rows show, and the count itself where it stands out. It is no
# number of rows to draw: at a tiny epsilon the scale of the noise is millions. Where nothing else was counted, and
# the count is not several standard deviations above 0, few rows are drawn, and a remark says so.


# Where the plan on a card says what was counted.
NOISY_ROWS = "noisy_rows"
# A count stands out from so many standard deviations on: one of an empty table does so once in two thousand times.
_STANDS_OUT = 5.0
# So many rows are drawn at the most where a count says nothing.
_FEW_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class RowCount:
    """A noisy count of all rows, and the rate of its discrete Laplace noise. RELEASED."""

    noisy: int
    rate: Fraction

    @property
    def variance(self) -> float:
        """Of P(k) proportional to a^|k| with a = exp(-rate): 2a / (1 - a)^2."""
        rate = float(self.rate)
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    @property
    def noise_std(self) -> float:
        return math.sqrt(self.variance)

    @property
    def expected(self) -> int:
        """The number of rows that a plan is made for; at least 1, and no more than a table can have."""
        rate, seen = float(self.rate), float(max(self.noisy, 0))
        chance = math.exp(-rate * seen)
        return min(max(1, round((2 * seen + chance / rate) / (2 - chance))), MOST_ROWS)

    @property
    def stands_out(self) -> bool:
        """Whether the count says how many rows there are, noise aside."""
        return self.noisy >= _STANDS_OUT * self.noise_std

    @property
    def drawn(self) -> int:
        """How many rows a release has that counted nothing else: few, where the count may be noise alone."""
        return self.expected if self.stands_out else min(self.expected, _FEW_ROWS)

    def with_sum(self, total: float, variance: float) -> float:
        """The number of rows by this count and by another noisy one, each weighted by its precision."""
        precisions = 1 / max(self.variance, 1e-12), 1 / max(variance, 1e-12)
        return (self.noisy * precisions[0] + total * precisions[1]) / sum(precisions)


def noisy_rows_entry(count: RowCount | None) -> dict[str, int]:
    """What the plan on a card says of a count; nothing where none was bought."""
    return {} if count is None else {NOISY_ROWS: count.noisy}


# ----------------------------------------------------------------------------------------------------------------- plan
# The plan on a card: what no charge says (the design: structure, depths, thresholds, a noisy number of rows), and the
# noise of every stage, which follows from the charges.


# How much noise decisions of trees have, of columns, of places and of persons' rows, and how much epsilon a choice has.
_SCALES = {
    "trees": "decision noise scale",
    "regions": "regions noise scale",
    "row trees": "row decision noise scale",
}
_CHOICES = {
    "selection": "epsilon of a choice",
    "row selection": "epsilon of a choice among rows",
    "prior": "epsilon of a choice for the prior",
}
# Tables whose noise stands elsewhere: charges of their own, which a plan does not divide among stages.
_ALONE = ("rows", "bounds", "classes")
_FIRST = (
    "structure",
    "rule",
    "unit",
    "max_depth",
    "count_epsilon",
    "count_noise_scale",
    "leaves",
    "threshold",
    "fixed_depth",
    "decision_epsilon",
    "cutoff",
    "decision_noise_scale",
    "decay",
)
# Entries that follow from charges, whether or not there are such charges.
_OF_CHARGES = re.compile(r"unit|(count|decision)_(epsilon|noise_scale)|.* (noise( scale)?|mean squared)|epsilon of .*")


# What a card states beside them, for readers without Spinney.
_PROMISE = ("is_private", "warnings", "epsilon", "delta")


def plan_entries(design: Mapping[str, Any], events: Sequence[Event], unit: Unit) -> dict[str, Any]:
    """A plan as a card shows it: its design, and the noise of its charges."""
    charged: dict[str, Any] = {}
    if (rule := design.get("rule")) is not None:
        paid = mechanisms_of(events)
        noise = _forest_noise(paid, unit) if rule == "forest" else _tree_noise(paid, is_grid=rule == "grid")
        charged = {"unit": unit.value, **noise}
    every = {**design, **charged}
    return {name: every[name] for name in dict.fromkeys((*_FIRST, *charged, *design)) if name in every}


def _forest_noise(paid: Sequence[Mechanism], unit: Unit) -> dict[str, Any]:
    tables = [one for one in paid if isinstance(one, Tables) and one.stage not in (None, *_ALONE)]
    tables.sort(key=lambda one: isinstance(one, WeightedTables))
    found: dict[str, Any] = {f"{one.stage} noise": round(one.noise_std(unit), 3) for one in tables}
    by_stage: dict[str | None, Mechanism] = {one.stage: one for one in paid}
    for stage, name in _SCALES.items():
        if isinstance(trees := by_stage.get(stage), Trees):
            found[name] = round(float(1 / trees.rate), 3)
    for stage, name in _CHOICES.items():
        if isinstance(choices := by_stage.get(stage), Choices):
            found[name] = round(float(choices.each), 6)
    vectors = [one for one in paid if isinstance(one, GaussianVector) and one.stage is not None]
    return found | {f"{one.stage} mean squared": float(f"{float(one.mean_squared):.9g}") for one in vectors}


def _tree_noise(paid: Sequence[Mechanism], *, is_grid: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    decisions = next((one for one in paid if isinstance(one, SplitDecisions)), None)
    for one in paid:
        if isinstance(one, DiscreteLaplaceCounts | LeafMoments) and one.stage in (None, "leaves"):
            found |= {"count_epsilon": str(one.epsilon), "count_noise_scale": float(1 / one.rate)}
    if not is_grid:
        found["decision_epsilon"] = "0" if decisions is None else str(decisions.epsilon)
    if decisions is not None:
        found["decision_noise_scale"] = float(1 / decisions.rate)
    return found


# ----------------------------------------------------------------------------------------------------------------- card
# The release card: the guarantee, the charges and the plan of a release, for people and for programs.


_LIMITS = "Not covered: side channels such as timing, and what other releases of the same people add."

# Promises for groups are worked out in floats and rounded up: on another machine they may come out a little otherwise.
_GROUPS_SLACK = Fraction(1, 20)
_UNITS = {
    Unit.REPLACE_ONE: "one row, replaced by any other (replace-one)",
    Unit.ADD_REMOVE: "one row, added or removed (add-remove)",
    Unit.REPLACE_PERSON: "one person with all their rows, replaced by any other (replace-one-person)",
    Unit.ADD_REMOVE_PERSON: "one person with all their rows, added or removed (add-remove-person)",
}
ROW_TABLES = "tables of rows"
# How a forest's structure is shown. Files hold the short names, of which "tree" would be taken for the method.
_STRUCTURES = {
    "rounds": "groups of columns, chosen in rounds",
    "tree": "pairs of columns along a tree",
    "target": "every column with the target",
    "independent": "independent columns: none were measured together",
    "uniform": "uniform: the budget was too small; rows are spread evenly over columns that were not counted",
}


@dataclass(frozen=True, slots=True, eq=False)
class Card(Printed):
    """Everything about a release except its bins. `print(card)` is meant to be read; `to_dict` to be parsed."""

    spinney_version: str
    synthesizer: str
    parameters: Mapping[str, Any]
    unit: str
    events: tuple[Event, ...]
    schema: Schema
    design: Mapping[str, Any]  # what of the plan no charge says; of a file, all of the plan that is not derived
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
    def plan(self) -> dict[str, Any]:
        """What was decided before any row was read, and the noise of every stage."""
        return plan_entries(self.design, self.events, Unit.parse(self.unit))

    @property
    def structure(self) -> Any:
        """What a forest counted together; None of other releases."""
        return self.design.get("structure")

    @property
    def stages(self) -> dict[str | None, Mechanism]:
        """The mechanism of every stage that was paid for."""
        return {mechanism.stage: mechanism for mechanism in mechanisms_of(self.events)}

    def noise_std(self, stage: str) -> float:
        """Standard deviation of the noise on a count of a stage, of rows of persons in persons; 0 where none is."""
        tables = self.stages.get(stage)
        return tables.noise_std(Unit.parse(self.unit)) if isinstance(tables, Tables) else 0.0

    @property
    def _found_privately(self) -> dict[str, str]:
        """By column what a fit found privately, and paid for: "bounds" or "values"."""
        found: dict[str, str] = {}
        for event in self.events:
            if isinstance(event, DiscreteLaplaceCounts) and event.stage == "bounds" and event.column is not None:
                found[event.column] = "bounds"
            elif isinstance(event, PartitionSelection) and event.column is not None:
                found[event.column] = "values"
        return found

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
        noisy, counted = self.design.get(NOISY_ROWS), self.stages.get("rows")
        if isinstance(counted, DiscreteLaplaceCounts) and type(noisy) is int:
            return RowCount(noisy, counted.rate)
        return None

    @property
    def utility(self) -> Utility | None:
        """How far the release is from the private table, where that was paid for; see `Utility`."""
        return utility_of(self.design, self.events, Unit.parse(self.unit))

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
        return "\n".join(map(printable, Facts(self.facts).lines()))

    @property
    def facts(self) -> list[tuple[str, Any]]:
        """The same as names and texts, in their order."""
        structure, utility = self.structure, self.utility
        together = "the guarantee for several persons together"
        if not self._is_of_persons:
            together = "the guarantee is for one row; for a person with several rows it is weaker"
        groups = "; ".join(f"{group.n_rows} {self._who}: {group}" for group in self.groups)
        of_utility: list[tuple[str, Any]] = []
        if utility is not None:
            remarks = [("", remark) for remark in utility.remarks]
            of_utility = [("utility", utility.compared), ("", tuple(map(str, utility))), *remarks]
        return [
            ("guarantee", self.guarantee),
            ("alone", f"of this release alone; other releases of the same {self._who} add to it"),
            ("unit", _UNITS[Unit.parse(self.unit)]),
            ("groups", groups and f"{together}: {groups}"),
            *(("caution", caution) for caution in self.cautions),
            *(("remark", remark) for remark in self.remarks),
            (self._who, self._rows_in_words()),
            ("rows", "private, as their number is the persons' own" if self._is_of_persons else None),
            ("prior", self._prior_in_words()),
            *(self._released_in_words(what, count) for what, count in self.released.items()),
            ("structure", structure and structure_in_words(str(structure))),
            *of_utility,
        ]

    def _released_in_words(self, what: str, count: int) -> tuple[str, str]:
        """How much of something was released. The cliques of a model are not the tables that it was fitted to."""
        is_even = self.structure == "uniform"
        if what == ROW_TABLES:
            return "row tables", f"{count:,} released, which the model of rows was fitted to"
        if what == "leaves" and is_even:
            return "leaves", f"{count:,}, made from the schema: no column was divided by counts"
        if what != "cliques":
            return what, f"{count:,} released"
        tables = "1 joint table of columns" if count == 1 else f"{count:,} joint tables of columns"
        if count == len(self.schema._modelled):  # a junction tree has as many cliques where no two columns are joined
            tables = "1 column" if count == 1 else f"{count:,} columns, each by itself"
        elif not is_even:
            tables += ", the cliques of a junction tree"
        rest = "fitted to all that was counted"
        if is_even:
            rest = "spread evenly: nothing was counted"
            if isinstance(classes := self.stages.get("classes"), DiscreteLaplaceCounts):
                rest = f"spread evenly, but for counts of {classes.column!r}"
        return "model", f"{tables}, {rest}"

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
            **self._promise(),
            "unit": self.unit,
            "groups": self._groups_as_data(),
            "cautions": self.cautions,
            "remarks": list(self.remarks),
            "synthesizer": self.synthesizer,
            "parameters": dict(self.parameters),
            "events": [event_to_dict(event) for event in self.events],
            "plan": self.plan,
            f"n_{self._who}": self.n_rows,
            "released": dict(self.released),
            "frame": self.frame,
            "schema": jsonable(self.schema.to_dict()),
        } | self._optional()

    def _promise(self) -> dict[str, Any]:
        """What the charges add up to."""
        warnings = [_warning(brand) for brand in self.brands]
        return dict(zip(_PROMISE, (self.is_private, warnings, str(self.epsilon), str(self.delta)), strict=True))

    def _optional(self) -> dict[str, Any]:
        """What only some cards have."""
        optional = {} if self.people is None else {"people": self.people.to_dict()}
        return optional | ({} if self.utility is None else {UTILITY: self.utility.to_dict()})

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> Card:
        """Read what `to_dict` wrote; ValueError or KeyError where it is not that, or says other than its events do."""
        card = cls(**checked_entries(described))
        derived = {**card._promise(), **card.plan, **card._optional()}
        stated = {name: described[name] for name in (*_PROMISE, UTILITY) if name in described}
        stated |= {name: value for name, value in card.design.items() if _OF_CHARGES.fullmatch(name)}
        # Files from before say nothing of choices.
        due = {name: None for name in card.plan if _OF_CHARGES.fullmatch(name) and name not in _CHOICES.values()}
        for name, value in (due | stated).items():
            if not _agrees(value, derived.get(name)):
                given = brief(derived.get(name))
                raise ContradictionError(f"the card states {name} as {brief(value)}, and its events give {given}")
        kept = {name: value for name, value in card.design.items() if not _OF_CHARGES.fullmatch(name)}
        return replace(card, design=kept)

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

    def document(self, title: str | None = None) -> Document:
        """The guarantee and the charges, the plan, and the columns; `title` says what the card is of."""
        people = self.people
        plan = [(name, value) for name, value in self.plan.items() if name not in ("structure", UTILITY)]
        columns = "columns" if people is None else "columns of persons, as they were learnt"
        who = "row" if people is None else "person"
        rules = Listing(
            f"rules that every synthetic {who} obeys, as they were stated",
            list(map(repr, self.schema._without_found().rules)),
            wraps=False,
        )
        relations = Listing("relations between columns that were found privately", self.schema._found_relations)
        return Document(
            title or f"Spinney release by {self.synthesizer} (spinney {self.spinney_version})",
            [
                Facts(self.facts),
                Listing("charged", [line for event in self.events for line in event_lines(event)], wraps=False),
                _named("plan", plan),
                _named(columns, [(name, repr(column)) for name, column in self.schema.items()]),
                *([rules] if self.schema._without_found().rules else []),
                *([relations] if self.schema._found_relations else []),
                Facts([("place", f"{place.label}{_within(place)}") for place in self.schema.places]),
                *(_rows_listing(rows) for rows in (() if people is None else people.rows)),
            ],
            warnings=[_warning(brand) for brand in self.brands],
            note=_LIMITS,
        )

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


def _named(caption: str, entries: Iterable[tuple[str, Any]], more: Sequence[str] = ()) -> Listing:
    """Names and what stands beside them, as they are."""
    return Listing(caption, [*(f"{name:<22} {value}" for name, value in entries), *more], wraps=False)


def _rows_listing(rows: RowsShape) -> Listing:
    """A table of rows: how they belong to persons, and its columns."""
    facts = [f"at most {rows.most:,} of a person"]
    facts += [] if rows.order is None else [f"in the order of {rows.order!r}"]
    caption = f"rows{f' of {rows.name!r}' if rows.name else ''}, {', '.join(facts)}, by the key {rows.key!r}"
    columns = [(name, repr(column)) for name, column in rows.schema.items()]
    return _named(caption, columns, [f"{rule!r}, which every row obeys" for rule in rows.schema.rules])


def _within(place: Place) -> str:
    return "" if place.within is None else f", within {place.within!r}"


def _warning(brand: Brand) -> str:
    if isinstance(brand, NotPrivate):
        return f"{brand.note}: no privacy guarantee holds; for research on data that may be public"
    return f"{brand.note}: whoever knows the seed can remove it; for tests and figures"


# ------------------------------------------------------------------------------------------------------- contradictions
# Comparisons of what a file says with what follows from it; every kind of release checks its contents with
# these.


def _agrees(stated: Any, derived: Any) -> bool:
    """Whether a file states what follows from its charges; floats up to their last digits."""
    if isinstance(stated, float) and isinstance(derived, float):
        return math.isclose(stated, derived, rel_tol=1e-6)
    return type(stated) is type(derived) and bool(stated == derived)


class ContradictionError(ValueError):
    """Two recordings of a number in a file are not the same, or an event is not true in itself."""


def check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ContradictionError(otherwise)


def same(found: Any, stated: Any, what: str) -> None:
    check(type(found) is type(stated) and found == stated, f"{what} is {brief(stated)} here and {brief(found)} there")


def check_variance(stated: Fraction, vector: GaussianVector, sensitivity_squared: int, what: str) -> None:
    """Sums have the noise that was charged for their vector, rounded up as it is drawn."""
    more = stated - vector_variance(vector.mean_squared, sensitivity_squared)
    check(more >= 0, f"the {what} have less noise than what was charged for them needs")
    check(more < VARIANCE_STEP, f"the {what} have more noise than what was charged for them needs")


def bounds_of_a_column(event: DiscreteLaplaceCounts, card: Card) -> None:
    """A charge beside those of what was released is one for the bounds of a column, once."""
    check(event.stage == "bounds", f"a charge is for {event.stage}, which this kind of release does not have")
    check(event.column in card.schema, f"bounds were paid for of {brief(event.column)}, which is not a column")
    same(event.times, 1, "the number of tables that bounds were paid for with")


def spent_whole(card: Card) -> None:
    """Trees, grids and forests spend what the call gave them, to the last fraction: a charge that is gone is missed."""
    if "epsilon" in card.parameters:
        same(card.epsilon, parse_epsilon(card.parameters["epsilon"]), "the epsilon of the call")


# -------------------------------------------------------------------------------------------------------------- remarks
# Remarks: what released numbers say about the schema and the call that the data owner should know. Costs
# nothing.
#
#     a pile at a bound     values beyond a bound are moved to it, so a bound that is too narrow shows as a pile
#     one range for many    a quarter of a column's rows or more lie in one range, and little says where in it
#     rows assumed          automatic values followed from a number of rows that released counts contradict
#     rows counted          a noisy count of rows that does not stand out of its noise, and no other counts
#
# The first two may be right as they are: a score of 100 is often reached. So a remark says what the numbers
# show, and what to do if it was not meant. A number's lower bound of 0, and the ends of a day, are where values
# pile up anyway.


Floats = NDArray[np.float64]

# A pile at a bound is worth a remark from this share of the rows, if it is so many times as high as what is next to it.
_LEAST_PILE = 0.01
_TIMES_AS_HIGH = 3.0
# It lies within this part of the column's length, or is one value of more than a few.
_AT_THE_BOUND = 1e-3
_FEW_VALUES = 32
# A guess of the number of rows that is off by more than this factor is worth a remark.
_FAR_OFF = 2
# One range is worth a remark from this share of the rows.
_MOST_IN_ONE = 0.25


def of_assumed_rows(card: Card, noisy_total: Callable[[], int]) -> Iterator[str]:
    """A remark where automatic values followed from a number of rows that the released counts contradict."""
    assumed = card.assumed_rows
    if assumed is None or card.is_empty or card.structure == "uniform":  # of which nothing was counted
        return
    total = noisy_total()
    leaves_rows_out = "bins" in card.released  # those below the threshold, so a low total contradicts nothing
    if total > assumed * _FAR_OFF or (total < assumed / _FAR_OFF and not leaves_rows_out):
        yield (
            f"assumed_rows={assumed} was given, and the released counts add up to about {total:,} rows. Automatic "
            "values followed from the number that was given; leave assumed_rows out to have rows counted with noise, "
            "or give a number that is nearer"
        )


def of_counted_rows(card: Card, noisy_total: Callable[[], int]) -> Iterator[str]:
    """A remark where nothing but rows was counted, and their noisy count does not stand out of its noise."""
    count = card.row_count
    if count is None or count.stands_out or card.structure != "uniform":
        return
    yield (
        f"the noisy count of rows, {count.noisy:,}, does not stand out of its noise, of standard deviation "
        f"{count.noise_std:,.0f}, so it says nothing of how many rows there are. A sample has {noisy_total():,} rows "
        "unless another number is asked for; raise epsilon, or give assumed_rows"
    )


class Ranges(NamedTuple):
    """Where the rows of a column lie, as a release says it: ranges of positions, and how many rows are in each."""

    low: Floats
    length: Floats  # 0 of a single place
    weights: Floats


def of_piles(name: str, column: Bounded, ranges: Ranges) -> Iterator[str]:
    """A remark for each bound at which rows pile up."""
    first, last = ends_of(column)
    reach, total = last - first, float(ranges.weights.sum())
    if total <= 0 or reach <= 0 or (column.is_whole and reach <= _FEW_VALUES) or isinstance(column, Time):
        return
    near = max(reach * _AT_THE_BOUND, float(column.step) if column.is_whole else 0.0)
    ends = ranges.low + ranges.length
    for is_upper in (False, True):
        if not is_upper and column._compared_as == "numbers" and column.physical(column.low) == 0:
            continue
        is_there = ranges.low >= last - near if is_upper else ends <= first + near
        share = float(ranges.weights[is_there].sum()) / total
        inner = (last - 11 * near, last - near) if is_upper else (first + near, first + 11 * near)
        around = _share_within(ranges, *inner, without=is_there) / total / 10
        if share >= max(_LEAST_PILE, _TIMES_AS_HIGH * around):
            bound, at, more = ("upper", column.high, "larger") if is_upper else ("lower", column.low, "smaller")
            change = f"raise high={at}" if is_upper else f"lower low={at}"
            yield (
                f"column {name!r}: {share:.1%} of the rows lie at its {bound} bound. Values beyond a bound are moved "
                f"to it; if there may be {more} ones, {change}. If {at} is a code, such as that of a missing value, "
                "make it null and declare the column nullable"
            )


def of_one_range(name: str, column: Bounded, ranges: Ranges, remedy: str) -> Iterator[str]:
    """A remark where one range of several values holds a large share of the rows."""
    total = float(ranges.weights.sum())
    several = ranges.length > (column.step if column.is_whole else 0)
    if total <= 0 or not several.any():
        return
    place = int(np.argmax(np.where(several, ranges.weights, -1.0)))
    share = float(ranges.weights[place]) / total
    if share >= _MOST_IN_ONE:
        yield in_one_range(name, column, float(ranges.low[place]), float(ranges.length[place]), share, remedy)


def in_one_range(name: str, column: Bounded, low: float, length: float, share: float, remedy: str) -> str:
    """The remark that so many rows lie in one range of positions."""
    first, last = column._leaf_ends(np.array([low]), np.array([length]))[0]
    return (
        f"column {name!r}: {share:.0%} of the rows lie in one range, {_short(first)} to {_short(last)}, and the "
        f"release hardly tells where in it; {remedy}"
    )


def ends_of(column: Bounded) -> tuple[float, float]:
    """The first and the last position of a column; whole numbers count from the first."""
    if not column.is_whole:
        return float(column.low), float(column.high)
    low, high = whole_range(column)
    return 0.0, float(high - low + 1)


def _share_within(ranges: Ranges, low: float, high: float, *, without: NDArray[np.bool_]) -> float:
    """How many rows lie in low..high, ranges being even inside, those left out that lie at the bound."""
    start, stop = np.maximum(ranges.low, low), np.minimum(ranges.low + ranges.length, high)
    inside = np.where(
        ranges.length > 0,
        np.clip(stop - start, 0, None) / np.where(ranges.length > 0, ranges.length, 1),
        (ranges.low >= low) & (ranges.low < high),
    )
    return float((inside * ranges.weights)[~without].sum())


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
