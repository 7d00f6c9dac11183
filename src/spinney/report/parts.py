"""The parts of a report as plain data: description, evidence, guarantee and spending. All of it is PUBLIC.

Each part is one function from a release, and from a ledger where one is stated, to dicts and lists; `page.py`
renders them. All figures of the guarantee are rounded up, so that none promises more than there is. What a
ledger records of other releases is reported as sums only, since these and who made them are no business of this
report's readers.

    described part   schema, rules, graph of a forest, rows of persons
    evidence part    digests, versions, checks, and the commands that repeat them
    guarantee part   what is guaranteed to whom, as odds, for this release and for all on a ledger
    spending part    every stage with its share and noise, and who charged it
"""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from spinney.columns import Column
from spinney.files import full_version
from spinney.forest.release.explain import REASONS, Explanation, explain, stages
from spinney.forest.release.model import ForestRelease
from spinney.people.release.model import PeopleRelease
from spinney.privacy.accounts.rules import ChargeOnRecord
from spinney.privacy.accounts.verifying import composed_together
from spinney.privacy.budget import Unit
from spinney.privacy.composition import GROUPS
from spinney.privacy.ledger import Ledger
from spinney.privacy.mechanisms import Brand, Event, brands, decimal, event_lines, event_to_dict
from spinney.release.card import Card, guarantee_in_words, structure_in_words
from spinney.release.file import FORMAT_VERSION, digest
from spinney.release.release import Release
from spinney.release.verify import verification
from spinney.report.columns import plain, tables_of
from spinney.schema.linked import schema_digest
from spinney.schema.schema import Schema
from spinney.text import brief

# ------------------------------------------------------------------------------------------------------- described part
# What a release is made of, as plain data: the schema as a table, rules, the graph of a forest, rows of persons.


MOST_CLIQUES = 300
ESTIMATED = "estimated privately"
_MOST_VALUES = 12
_TOLD_ELSEWHERE = ("utility", "prior")
_LONGEST_VALUES = 160


def schema_part(release: Release) -> list[dict[str, Any]]:
    """Every table of a release with its columns, rules and places: stated by the holder, or estimated privately."""
    most = {rows.name: rows.most for rows in release.shape.rows} if isinstance(release, PeopleRelease) else {}
    found = {} if isinstance(release, PeopleRelease) else release.card._found_privately
    return [_table(name, schema, most.get(name), found) for name, schema in tables_of(release).items()]


def _table(name: str, schema: Schema, most_rows: int | None, found: Mapping[str, str]) -> dict[str, Any]:
    return {
        "table": name or None,
        "most_rows": most_rows,  # of one person, in a table of rows
        "n_columns": len(schema),
        "columns": [_column(column, of_column, found.get(column)) for column, of_column in schema.items()],
        "rules": [repr(rule) for rule in schema._without_found().rules],
        "relations": schema._found_relations,
        "places": [
            {"columns": list(place.columns), "within": None if place.within is None else repr(place.within)}
            for place in schema.places
        ],
    }


def _column(name: str, column: Column, found: str | None) -> dict[str, Any]:
    low, high = getattr(column, "low", None), getattr(column, "high", None)
    return {
        "name": name,
        "type": column.type_name,
        "low": plain(low),
        "high": plain(high),
        "n_values": len(column.listed) or None,
        "listed": _values(column),
        "nullable": column.nullable,
        "stated": repr(column),
        "source": _source(column, found),
    }


def _source(column: Column, found: str | None) -> str:
    """Who says what the bounds and values of a column are."""
    if found is not None:
        return f"{found} {ESTIMATED}"
    return "bounds read off the data" if "from-data" in repr(column) else "stated"


def _values(column: Column) -> str | None:
    if not column.listed:
        return None
    text = ", ".join(map(str, column.listed[:_MOST_VALUES]))
    more = len(column.listed) - _MOST_VALUES
    text = text if len(text) <= _LONGEST_VALUES else f"{text[:_LONGEST_VALUES]}…"
    return text + (f" and {more:,} more" if more > 0 else "")


def model_part(release: Release) -> dict[str, Any]:
    """What kind of model it is, and what was counted together, the strongest dependence first."""
    card = release.card
    prior = card._prior_in_words()
    described: dict[str, Any] = {
        "kind": release.kind,
        "synthesizer": card.synthesizer,
        "contents": _contents(card.released),
        "is_empty": card.is_empty,
        "target": card.parameters.get("target"),
        "structure": None,
        "meaning": _MEANINGS.get(release.kind, f"The release holds {card.contents}."),
        "cliques": [],
        "cliques_left_out": 0,
        "graph": None,
        "rows": [],
        "parameters": _entries_in_words(card.parameters) | ({} if prior is None else {"prior": prior}),
        "plan": _entries_in_words(card.plan),
    }
    if isinstance(release, PeopleRelease):
        people = release.explain()
        described |= _of_forest(people.persons) | {"meaning": people.meaning}
        described["rows"] = [table.to_dict() for table in people.rows]
    elif isinstance(release, ForestRelease):
        explanation = explain(release)
        described |= _of_forest(explanation) | {"meaning": explanation.meaning}
    return described


def _contents(released: Mapping[str, int]) -> str:
    """What was released: 1 table, 12 leaves."""
    return ", ".join(f"{count:,} {_one(what) if count == 1 else what}" for what, count in released.items())


def _one(what: str) -> str:
    """One of them: leaf of leaves, table of rows of tables of rows."""
    first, space, rest = what.partition(" ")
    return {"leaves": "leaf"}.get(first, first.removesuffix("s")) + space + rest


def _entries_in_words(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Entries of a call or a plan that have a value; what stands elsewhere on the page is left out."""
    found: dict[str, Any] = {}
    for name, value in entries.items():
        if value is None or name in _TOLD_ELSEWHERE:
            continue
        found[str(name)] = _entries_in_words(value) if isinstance(value, Mapping) else plain(value)
    return found


def _of_forest(explanation: Explanation) -> dict[str, Any]:
    cliques = [
        asdict(clique) | {"columns": list(clique.columns), "reason": REASONS.get(clique.reason, clique.reason)}
        for clique in explanation.cliques
    ]
    return {
        "structure": structure_in_words(explanation.structure),
        "cliques": cliques[:MOST_CLIQUES],
        "cliques_left_out": max(0, len(cliques) - MOST_CLIQUES),
        "graph": graph_part(explanation),
    }


@dataclass(frozen=True, slots=True)
class Line:
    """Two columns that were counted together, and how strongly they depend on each other."""

    first: str
    second: str
    distance: float

    def touches(self, name: str | None) -> bool:
        """Whether one end of it is this column."""
        return name in (self.first, self.second)


def graph_part(explanation: Explanation) -> dict[str, Any]:
    """The columns of a forest, its target, and the lines between columns that were counted together."""
    lines = [{"columns": [line.first, line.second], "distance": line.distance} for line in lines_between(explanation)]
    columns = [column.name for column in explanation.columns if column.n_leaves]
    return {"columns": columns, "target": explanation.target, "lines": lines}


def lines_between(explanation: Explanation) -> list[Line]:
    """All pairs of columns that were counted together, each by its strongest table, the strongest first."""
    found: dict[tuple[str, str], Line] = {}
    for clique in explanation.cliques:
        for pair in combinations(sorted(clique.columns), 2):
            found.setdefault(pair, Line(*pair, clique.distance))
    return list(found.values())


_MEANINGS: Mapping[str, str] = {
    "bins": "Space was divided into boxes, and the noisy number of rows in each was released where it is above a "
    "threshold. All columns were measured together.",
    "moments": "A tree divided space into boxes, more finely where there are more rows. Of every box the noisy number "
    "of rows and their noisy mean were released. All columns were measured together.",
    "points": "Points with weights were released, which together stand for the table's density.",
    "generator": "A generator of rows was trained on noisy sums, and released.",
}


# -------------------------------------------------------------------------------------------------------- evidence part
# How to check a release: what was verified here and now, digests, versions, and the commands that repeat it.


_COMMANDS = {
    "spinney verify RELEASE": "computes the guarantee again from the charges in the file",
    "spinney verify RELEASE --schema schema.toml --ledger people.ledger --key office.pub.pem": "also checks it against "
    "the schema that was stated beforehand, the ledger and the signature",
    "spinney audit RELEASE": "plays games against the code that made it, and sets what they find beside what is "
    "claimed",
    "spinney card RELEASE": "prints the card that this report is made from",
    "spinney report RELEASE --out report.html": "makes a page of the same release, digest included; add --ledger and "
    "what was stated",
    "spinney sample RELEASE --out rows.csv": "draws rows, at no cost, as often as you like",
}


def evidence_part(release: Release) -> dict[str, Any]:
    """Digests, versions and checks as plain data."""
    try:
        checks, problem = list((release._verified or verification(release)).checks), None
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as err:  # as `load` does
        checks, problem = [], f"it could not be verified: {brief(str(err))}"
    return {
        "digest": digest(release),
        "schema_digest": schema_digest(release.schema if release.card.people is None else release.card.people),
        "fitted_with": release.card.spinney_version,
        "reported_with": full_version(),
        "python": platform.python_version(),
        "format_version": FORMAT_VERSION,
        "checks": checks,
        "problem": problem,
        "commands": [{"command": command, "does": does} for command, does in _COMMANDS.items()],
    }


# ------------------------------------------------------------------------------------------------------- guarantee part
# The promise of a release in plain words and plain numbers: what is promised to whom, as odds, and what is not.
#
# Somebody wants to know whether a given person (or row) is in the table, both answers being equally likely
# beforehand. Whatever else they know and however they compute, (epsilon, delta)-differential privacy bounds how often
# they are right:
#
#     right at most (e^epsilon + delta) / (1 + e^epsilon) of the time
#
# Under a pure guarantee the same holds for every single belief: odds grow by e^epsilon at most. All figures are
# rounded up, so none promises more than there is.
#
# One release says nothing of others that were made of the same people. What all of them promise together is worked
# out from a ledger, by adding up what it was charged: that sum is a bound whatever was chosen in view of what. The
# smaller figure of composed losses is a bound only where all releases were settled before the first of them, and says
# so.


# Beliefs before the release at which the largest ones after it are told.
BEFORE = (0.01, 0.1, 0.5, 0.9)
_LARGEST_EXPONENT = 700.0
_FEW_DIGITS = math.log(1e6)  # of epsilon: a ratio above a million is said as a power
_DIGITS = 4  # of a share; the last is rounded up
# Shares above this are certainty for all purposes.
_CERTAIN = 0.9995
# Useful epsilons lie between about these.
_USEFUL = (0.1, 10)

NOT_PROMISED = (
    "That nobody can learn anything: facts about groups, such as how income goes with age, are what a release is for, "
    "and they can be used to guess at people who were never in the table.",
    "That the synthetic rows are right in every respect: they carry noise, and know only what was measured.",
    "That side channels are closed: how long a fit took, or how much memory, is not covered.",
    "That the holder keeps the real table safe, or deleted what it should: no report can see that.",
    "That several releases together stay within this epsilon: their costs add up, and a ledger keeps the sum of those "
    "that are charged to it.",
    "That the schema and the call are harmless: names, bounds, lists of values, rules and options stand in the release "
    "as the holder stated them, where they are not marked as estimated privately. Whether they were known without "
    "looking at the rows, only the holder can say.",
)

_NEIGHBOURS = {
    Unit.REPLACE_ONE: ("one row", "the table with that row replaced by any other", "what a given row says"),
    Unit.ADD_REMOVE: ("one row", "the table without that row, or with one more", "whether a given row is in the table"),
    Unit.REPLACE_PERSON: (
        "one person with all their rows",
        "the tables with that person and all their rows replaced by any other person",
        "whether a given person, with all their rows, is in the tables, or somebody else in their place",
    ),
    Unit.ADD_REMOVE_PERSON: (
        "one person with all their rows",
        "the tables without that person and all their rows, or with one more person",
        "whether a given person, with all their rows, is in the tables",
    ),
}


def promise_part(card: Card, together: dict[str, Any] | None = None) -> dict[str, Any]:
    """Everything about the guarantee, as plain data; `together` is what `together_part` says of a ledger."""
    unit = Unit.parse(card.unit)
    who = "persons" if unit.is_person else "rows"
    protected, neighbour, secret = _NEIGHBOURS[unit]
    n_known = card.n_rows if card.n_rows is not None else None if card.row_count is None else card.row_count.expected
    found: dict[str, Any] = {
        "guarantee": card.guarantee,
        "is_private": card.is_private,
        "unit": card.unit,
        "who": who,
        "protected": protected,
        "neighbour": neighbour,
        "secret": secret,
        "epsilon": str(card.epsilon),
        "epsilon_number": _shown(card.epsilon),
        "delta": str(card.delta),
        "delta_number": _shown(card.delta),
        "n": n_known,
        "n_is_public": card.n_rows is not None,
        "n_in_words": card._rows_in_words(),
        "cautions": _cautions(card),
        "not_promised": list(NOT_PROMISED),
        "together": together,
    }
    if not card.is_private:
        nothing = ("headline", "alone", "guess", "epsilon_words", "delta_words")
        return found | dict.fromkeys(nothing) | {"is_bounded": False, "beliefs": [], "groups": [], "in_words": []}
    guess = largest_guess(card.epsilon, card.delta)
    twice = percent(largest_guess(2 * card.epsilon, 2 * card.delta))
    found |= {
        "headline": _headline("from this release alone", secret, card.epsilon, guess),
        "alone": f"This is about this release alone. Other releases that are made of the same {who} add to it: after a "
        f"second one like it, somebody may be right {twice} of the time.",
        "guess": guess,
        "is_bounded": guess <= _CERTAIN,
        "epsilon_words": _epsilon_in_words(card.epsilon, card.delta),
        "delta_words": _delta_in_words(card.delta, n_known, who, is_exact=card.n_rows is not None),
        "beliefs": [{"before": before, "after": largest_belief(before, card.epsilon)} for before in BEFORE],
        "groups": [
            {
                "size": group.n_rows,
                "epsilon": _shown(group.epsilon),
                "delta": _shown(group.delta),
                "guess": 1.0 if group.delta >= 1 else largest_guess(group.epsilon, group.delta),
                "is_empty": group.delta >= 1,
            }
            for group in card.groups
        ],
    }
    return found | {"in_words": _in_words(card, found)}


def together_part(card: Card, ledger: Ledger, *, has_this: bool) -> dict[str, Any]:
    """What all releases that a ledger was charged for promise together to one of its population, as plain data.

    Args:
        card: the card of one of the releases.
        ledger: the account; of a database, one population of it.
        has_this: whether it holds the charges of that release; else they are added.
    """
    unit, population = Unit.parse(card.unit), getattr(ledger, "population", None)
    events = tuple(ledger.events)
    found: dict[str, Any] = {
        "population": population,
        "has_this": has_this,
        "charges": len(events) + (0 if has_this else len(card.events)),
        **dict.fromkeys(("epsilon", "delta", "guarantee", "guess", "composed", "headline", "warning")),
        "is_bounded": False,
        "in_words": [],
    }
    if ledger.unit is not unit:
        found["warning"] = (
            f"The ledger counts in the unit {ledger.unit.value}, and this release is of the unit {unit.value}: "
            "what they promise together cannot be added up"
        )
        return found
    if brands((*events, *card.events)):
        found["warning"] = "A charge on the ledger voids the guarantee of its release, and so of all releases together"
        return found
    # What was spent counts charges of newer versions too, which are none of the events.
    epsilon, delta = ledger.spent, ledger.spent_delta
    if not has_this:
        epsilon, delta = epsilon + card.epsilon, delta + card.delta
    guess = largest_guess(epsilon, delta)
    found |= {
        "epsilon": decimal(epsilon),
        "delta": decimal(delta),
        "guarantee": guarantee_in_words(epsilon, delta, card.unit),
        "guess": guess,
        "is_bounded": guess <= _CERTAIN,
        "headline": _headline("from all releases on the ledger together", _NEIGHBOURS[unit][2], epsilon, guess),
    }
    of = "" if population is None else f" of {population!r}"
    more = "" if has_this else " This release is not on the ledger, and was added to it here."
    found["in_words"].append(
        f"The ledger{of} was charged epsilon {decimal(epsilon)}"
        f"{f' and delta {decimal(delta)}' if delta else ''} in all, by addition.{more} Releases that were not charged "
        "to it come on top."
    )
    composed = composed_together(events if has_this else (*events, *card.events), unit)
    if composed is not None and composed.epsilon is not None and composed.epsilon < epsilon:
        least = largest_guess(composed.epsilon, composed.delta)
        upper = math.ceil(float(composed.epsilon) * 1000) / 1000  # rounded up, as all figures are
        found["composed"] = {"epsilon": upper, "delta": decimal(composed.delta), "guess": least}
        found["in_words"].append(
            f"If all of them were settled before the first was made, their losses compose to epsilon "
            f"{upper:g} and delta {decimal(composed.delta)}: right at most {percent(least)}."
        )
    return found


def first_figure(together: Mapping[str, Any]) -> str:
    """What all releases on a ledger promise together, in a sentence."""
    if together["guess"] is None:
        return f"{together['warning']}."
    return f"{together['guarantee']}: {percent(together['guess'])} {together['headline']}"


def _headline(where_from: str, secret: str, epsilon: Fraction, guess: float) -> str:
    """What follows the figure: how often somebody is right, and from what."""
    who = f"who wants to find out {secret}, holds both answers equally likely and knows everything else"
    if guess <= _CERTAIN:
        return f"is how often, at most, somebody is right {where_from} {who}. A coin is right 50 % of the time."
    what = "this epsilon" if largest_guess(epsilon) > _CERTAIN else "this guarantee"  # with its delta
    return f"is how often somebody may be right {where_from} {who}: {what} bounds nothing."


def largest_guess(epsilon: Fraction, delta: Fraction = Fraction(0)) -> float:
    """How often somebody is right at most who must tell two equally likely neighbours apart; rounded up."""
    ratio = math.exp(min(float(epsilon), _LARGEST_EXPONENT))
    return _up((ratio + min(1.0, float(delta))) / (1 + ratio))


def largest_belief(before: float, epsilon: Fraction) -> float:
    """The largest belief after a pure release, of one who believed it to `before`; rounded up."""
    ratio = math.exp(min(float(epsilon), _LARGEST_EXPONENT))
    return _up(before * ratio / (1 - before + before * ratio))


def _up(share: float) -> float:
    scale = float(10**_DIGITS)
    return min(1.0, math.ceil(share * scale - 1e-9) / scale)


def _shown(value: Fraction) -> float:
    return float(f"{float(value):.6g}")


def _cautions(card: Card) -> list[str]:
    """Those of the card, and one of an epsilon that the card lets pass and readers should judge."""
    found = list(card.cautions)
    is_large = float(card.epsilon) > _USEFUL[1] or largest_guess(card.epsilon) > _CERTAIN
    if card.is_private and is_large and not any("epsilon" in caution for caution in found):
        found.insert(
            0,
            f"with an epsilon of {float(card.epsilon):g}, somebody who knows everything else may be right practically "
            "always, so the guarantee by itself protects hardly anybody; judge it by what else stands between readers "
            "and the people in the table, or ask for a smaller epsilon",
        )
    return found


def _epsilon_in_words(epsilon: Fraction, delta: Fraction) -> str:
    """Epsilon as a number, as odds, and beside values that are of use."""
    low, high = _USEFUL
    place = "below" if float(epsilon) < low else "above" if float(epsilon) > high else "between"
    where = "this one lies between them" if place == "between" else f"this one is {place}"
    return (
        f"Epsilon is {float(epsilon):g}: odds of 1 to 1 may become {_odds(epsilon)} to 1 at most"
        + (", where delta is left aside" if delta else "")
        + f". As a rule of thumb, useful values lie between about {low:g} and {high:g}, and the smaller, the stronger "
        f"is the promise; {where}."
    )


def _odds(epsilon: Fraction, largest: float = 30) -> str:
    """What odds are multiplied by at most, rounded up; as a power of e beyond the largest epsilon."""
    if float(epsilon) > largest:
        return f"e^{float(epsilon):g}"
    ratio = math.exp(float(epsilon))
    digits = 4 if ratio < 1.01 else 2 if ratio < 100 else 0
    return f"{math.ceil(ratio * 10**digits - 1e-9) / 10**digits:,.{digits}f}"


def percent(share: float) -> str:
    """A share that was rounded up, in per cent, rounded up once more: 73.2 %."""
    if share > _CERTAIN:
        return "practically 100 %"
    return f"{math.ceil(share * 1000 - 1e-9) / 10:.1f} %"


def _in_words(card: Card, found: dict[str, Any]) -> list[str]:
    """The guarantee in a few sentences."""
    times = f"{_odds(card.epsilon, _FEW_DIGITS)} times"
    said = [
        f"Protected is {found['protected']}: everything in this release would have come out almost as likely from "
        f"{found['neighbour']}.",
        (
            f"Almost means: no set of outcomes is more than {times} as likely under one table as under "
            f"the other, plus delta, {decimal(card.delta)}."
            if card.delta
            else f"Almost means: no outcome is more than {times} as likely under one table as under the other."
        ),
    ]
    groups = [group for group in found["groups"] if not group["is_empty"]]
    if groups:
        of_people = found["who"] == "persons"
        whom = "several persons together" if of_people else "a person who has several rows"
        sizes = ", ".join(
            f"{group['size']} {'persons' if of_people else 'rows'}: "
            f"{'at most ' if group['guess'] <= _CERTAIN else ''}{percent(group['guess'])}"
            for group in groups
        )
        said.append(f"The guarantee is weaker for {whom}. The same figure for {sizes}.")
    if len(groups) < len(GROUPS):
        lost = [str(group["size"]) for group in found["groups"] if group["is_empty"]]
        if lost:
            said.append(f"For groups of {' and '.join(lost)} it promises nothing.")
    return said


def _delta_in_words(delta: Fraction, n_known: int | None, who: str, *, is_exact: bool) -> str:
    """Delta as what it adds, and what the definition alone would let a mechanism do with it."""
    if not delta:
        return "Delta is 0: the guarantee is pure."
    said = (
        f"Delta is {decimal(delta)}, about one in {float(1 / delta):,.0f}: so much may be added to the probability of "
        "any set of outcomes, beyond what epsilon allows."
    )
    if not n_known:
        return said
    expected = float(delta) * n_known
    number = f"the {n_known:,} {who}" if is_exact else f"about {n_known:,} {who}"
    whole = max(0.0, -math.expm1(n_known * math.log1p(-float(delta)))) if delta < 1 else 1.0
    said += (
        f" Times {number} it is {expected:.2g}. A mechanism that published each of them whole with a probability of "
        f"delta, and so at least one with {_chance(whole)}, would meet such a definition: that is why delta should be "
        "far below one over their number"
    )
    if expected > 1:
        return f"{said}. This one is above it, which is too large."
    return f"{said}. It is below it by a factor of {_short(1 / expected)}."


def _chance(share: float) -> str:
    return f"{math.ceil(share * 1000 - 1e-9) / 10:.1f} %" if share >= 0.001 else "less than 0.1 %"


def _short(factor: float) -> str:
    """Rounded down to two digits, as no promise may grow by rounding."""
    digits = 1 - math.floor(math.log10(factor))
    return f"{math.floor(factor * 10**digits + 1e-9) / 10**digits:,.{max(0, digits)}f}".removesuffix(".0")


# -------------------------------------------------------------------------------------------------------- spending part
# What was charged for what, by whom and when where a ledger records it, and where the budget went, stage by
# stage.
#
# A release knows its own events. Who charged them and when is recorded in a ledger that is a file or a database; one
# in memory has no records. Charges of other releases are reported as sums: these releases, and who made them, are no
# business of the readers of this one.


UNKNOWN = "not known"

STAGES = {
    "rows": "how many rows there are",
    "bounds": "bounds of columns",
    "values": "lists of values",
    "classes": "values of the target",
    "relations": "which columns are parts of others",
    "ratios": "which parts they are",
    "trees": "where columns are divided",
    "one-way": "every column by itself",
    "spikes": "round numbers and other piles",
    "grain": "steps that values come in",
    "regions": "where places are divided",
    "places": "regions of places",
    "workload": "tables that the call names",
    "selection": "choice of columns to count together",
    "pairs": "every column with the target",
    "cliques": "columns together",
    "prior": "where a prior stands in",
    "analyses": "sums of the regressions named",
    "products": "all other pairs, coarsely",
    "splits": "where the tree divides space",
    "leaves": "what the leaves hold",
    "answer": "an answer that was bought",
    "utility": "how far the release is from the table",
    "row trees": "where columns of rows are divided",
    "row one-way": "every column of rows by itself",
    "row spikes": "round numbers in rows",
    "alikeness": "how alike rows of one person are",
    "row selection": "choice of columns of rows to count together",
    "row tables": "columns of rows together",
    "other": "other",
}


def budget_part(card: Card) -> list[dict[str, Any]]:
    """Every stage with its share of the budget and its noise; one stage of several charges is one line."""
    found: dict[str, dict[str, Any]] = {}
    unit, of_persons = Unit.parse(card.unit), "every column of persons with how many rows they have"
    for stage in stages(card.events, unit) if card.epsilon else ():
        known = found.get(stage.name)
        if known is None:
            found[stage.name] = {
                "stage": stage.name,
                "what": of_persons if stage.name == "pairs" and unit.is_person else STAGES.get(stage.name, stage.name),
                "times": stage.times,
                "share": stage.share,
                "noise": stage.noise,
                "noise_std": stage.noise_std,
            }
        else:
            known["share"] += stage.share
            known["times"] += stage.times
    return list(found.values())


Records = Sequence[ChargeOnRecord]


def account_part(card: Card, ledger: Ledger | None = None, digest: str | None = None) -> dict[str, Any]:
    """The events of a release, and the account that they were charged to where one is given.

    Args:
        card: the card of the release.
        ledger: the account.
        digest: that of the release, by which a ledger that notes digests knows its charges from equal ones.
    """
    if ledger is None:
        return {"events": [_entry(event, None) for event in card.events], "ledger": None}
    records: Records | None = getattr(ledger, "charges", None)  # those of one in memory are not recorded
    kept = list(_kept(ledger.events, records or ()))
    has_this = _has_all(card.events, [event for event, record in kept if not _is_of_another(record, digest)])
    amounts = ("limit", "spent", "remaining", "delta_limit", "spent_delta", "remaining_delta")
    other_epsilon = max(ledger.spent - (card.epsilon if has_this else 0), Fraction(0))
    described = {
        "unit": ledger.unit.value,
        **{name: _number(getattr(ledger, name)) for name in amounts},
        "has_this": has_this,
        "other_charges": len(kept) - (len(card.events) if has_this else 0),
        "other_epsilon": _number(other_epsilon),
        **dict.fromkeys(("other_releases", "without_release", "bought_answers", "tuning")),
    }
    own = [_entry(event, _record_of(event, kept, digest)) for event in card.events]
    others = {} if records is None else _others(records, digest, has_this=has_this)
    return {"events": own, "ledger": described | others}


def _others(records: Records, digest: str | None, *, has_this: bool) -> dict[str, Any]:
    """What else a ledger with records holds, in sums."""
    named = [record.release for record in records]
    is_unnamed = has_this and digest not in named  # then a charge without a release is that of this one
    mine = [record for record in records if digest is not None and record.release == digest]
    table = mine[0].table if mine else None
    others = [record for record in records if record not in mine]
    answers = [record for record in others if _is_answer(record)]
    # Other fits of the same table, where charges name their tables, or of the same people.
    same = [one for one in others if one not in answers and (table is None or one.table == table)]
    failed = [record for record in same if record.error is not None]
    unnamed = [record for record in same if record.release is None and record not in failed]
    return {
        "other_releases": len(_digests(others)),
        "without_release": max(0, named.count(None) - is_unnamed),
        "bought_answers": len(answers),
        "tuning": {
            "table": table,
            "releases": len(_digests(same)),
            "failed": len(failed),
            "without_release": max(0, len(unnamed) - is_unnamed),
        },
    }


def _digests(records: Records) -> set[str]:
    """The releases that records name, bought answers left out."""
    return {record.release for record in records if record.release and not _is_answer(record)}


def _is_answer(record: ChargeOnRecord) -> bool:
    """Whether a charge is for an answer that was bought beside a release."""
    return bool(record.events) and all(getattr(event, "stage", None) == "answer" for event in record.events or ())


def _entry(event: Event, record: ChargeOnRecord | None) -> dict[str, Any]:
    """An event, and who charged it and when, where that is recorded."""
    return {
        "what": event.note or type(event).__name__,
        "lines": [line.strip() for line in event_lines(event)],
        "epsilon": _number(getattr(event, "epsilon", None)),
        "delta": _number(getattr(event, "delta", None)),
        "is_brand": isinstance(event, Brand),
        "who": UNKNOWN if record is None else record.user,
        "when": UNKNOWN if record is None else record.time,
        "purpose": UNKNOWN if record is None else record.purpose or UNKNOWN,
    }


def _kept(events: Sequence[Event], records: Records) -> Iterator[tuple[Event, ChargeOnRecord | None]]:
    """Every event of a ledger, with the record that says who charged it and when, or None."""
    told = [(event, record) for record in records for event in record.events or ()]
    yield from told
    left = [event for event, _ in told]
    for event in events:
        if event in left:
            left.remove(event)
        else:
            yield event, None


def _record_of(
    event: Event, kept: Sequence[tuple[Event, ChargeOnRecord | None]], digest: str | None
) -> ChargeOnRecord | None:
    """The record of an event of the release, where one record of a ledger, or one with its digest, holds it."""
    found = [record for other, record in kept if record is not None and other == event]
    named = [record for record in found if digest is not None and record.release == digest]
    return (named or found)[0] if len(named) == 1 or len(found) == 1 else None


def _is_of_another(record: ChargeOnRecord | None, digest: str | None) -> bool:
    """Whether a record names another release, or a fit that failed: equal charges of these paid for nothing here."""
    if record is None:
        return False
    return record.error is not None or (digest is not None and record.release not in (None, digest))


def _has_all(mine: Sequence[Event], events: Sequence[Event]) -> bool:
    """Whether a ledger holds every event of a release, as often as it has it."""
    left = [event_to_dict(event) for event in events]
    for event in mine:
        wanted = event_to_dict(event)
        if wanted not in left:
            return False
        left.remove(wanted)
    return True


def _number(value: Fraction | None) -> str | None:
    return None if value is None else decimal(value)
