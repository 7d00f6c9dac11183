"""What a disclosure review board asks before a table leaves the house, answered line by line.

Boards of statistical offices and hospitals differ in their forms and agree in what they want to know: what leaves, who
may be found in it, how detailed it is, what else is out there, who answers for it. The questions are in our own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spinney.report.promise_part import percent
from spinney.report.questions import COMPUTED, DESIGN, NOT_KNOWN, STATED, Question, counted, estimated, listing

# A list of more values than this is called long.
_LONG_LIST = 100


def board_questions(found: Mapping[str, Any]) -> list[dict[str, str]]:
    """The questions of a board, as plain data; `found` holds the other parts of a report."""
    lines = [*_what_leaves(found), *_identification(found), *_detail(found), *_decision(found)]
    return [line.to_dict() for line in lines]


def released_in_words(found: Mapping[str, Any]) -> str:
    """What was released and for whom, without a word of modelling: what stands below the title."""
    schema, promise = found["schema"], found["promise"]
    n_columns = sum(len(table["columns"]) for table in schema)
    tables = "a private table" if len(schema) == 1 else f"{len(schema):,} private tables"
    rows = (
        f"Anybody who holds this release can draw synthetic rows from it, in place of {tables} with "
        f"{counted(n_columns, 'column')}."
    )
    if not promise["is_private"]:
        return f"{rows} Nothing is promised to those in the {'table' if len(schema) == 1 else 'tables'}."
    return f"{rows} The unit of protection is {promise['protected']}."


def _what_leaves(found: Mapping[str, Any]) -> list[Question]:
    topic, schema, promise = "What leaves", found["schema"], found["promise"]
    n_columns = sum(len(table["columns"]) for table in schema)
    purpose, licence = found["stated"]["purpose"], found["stated"]["licence"]
    return [
        Question(
            topic,
            "What is released?",
            f"A model of {counted(len(schema), 'table')}, {counted(n_columns, 'column')}: "
            f"{found['model']['contents']}. Rows drawn from it are synthetic.",
            COMPUTED,
        ),
        Question(topic, "For which purpose?", purpose or "Not stated (--purpose).", STATED if purpose else NOT_KNOWN),
        Question(topic, "Under which licence?", licence or "Not stated (--licence).", STATED if licence else NOT_KNOWN),
        Question(
            topic,
            "Does any real row leave?",
            "No row, exact count or exact sum of the table is in the release; "
            "what it says of the schema was public already"
            + (", or estimated privately." if estimated(found, "bounds") or estimated(found, "values") else ".")
            if promise["is_private"]
            else "The guarantee is void, so this cannot be ruled out.",
            COMPUTED if not promise["is_private"] else DESIGN,
        ),
    ]


def _identification(found: Mapping[str, Any]) -> list[Question]:
    topic, promise = "Who may be found", found["promise"]
    keys = [
        f"{table['table']}.{column['name']}" if table["table"] else column["name"]
        for table in found["schema"]
        for column in table["columns"]
        if column["type"] == "identifier"
    ]
    risk = "The guarantee is void: assume that anybody in the table can be found."
    if promise["is_private"] and not promise["is_bounded"]:
        risk = (
            f"Practically always: somebody who knows everything else may find out {promise['secret']}, as the "
            "guarantee bounds nothing. What stands against it is not in this report."
        )
    elif promise["is_private"]:
        risk = (
            f"Bounded for everybody alike: whatever an attacker knows, {promise['secret']} is guessed right at most "
            f"{percent(promise['guess'])} of the time. No record is anybody's, so matching rows to persons proves "
            "nothing."
        )
    return [
        Question(
            topic,
            "Are there direct identifiers?",
            f"{', '.join(keys)}: made up afresh, never copied."
            if keys
            else "None of the columns is of type identifier; whether another one identifies people is for the "
            "holder to say.",
            COMPUTED if keys else NOT_KNOWN,
        ),
        Question(topic, "How likely is it that somebody is recognised?", risk, COMPUTED),
        Question(
            topic,
            "Which tables of others overlap with this one?",
            "Not known. The guarantee holds whatever others hold, which is why none needs to be listed.",
            NOT_KNOWN,
        ),
        Question(
            topic,
            "Are small or conspicuous groups protected?",
            "As everybody else is. Their figures are the least "
            "accurate, and what looks like a rare person may be noise.",
            DESIGN,
        ),
    ]


def _detail(found: Mapping[str, Any]) -> list[Question]:
    topic = "Detail"
    columns = [column for table in found["schema"] for column in table["columns"]]
    long_lists = [column["name"] for column in columns if (column["n_values"] or 0) > _LONG_LIST]
    places = [", ".join(place["columns"]) for table in found["schema"] for place in table["places"]]
    places += [", ".join(drawn["columns"]) for drawn in found["maps"] if ", ".join(drawn["columns"]) not in places]
    bounds, values = estimated(found, "bounds"), estimated(found, "values")
    rules = sum(len(table["rules"]) for table in found["schema"])
    piles = [remark for remark in found["remarks"] if "bound" in remark]
    return [
        Question(
            topic,
            "How fine is geography?",
            f"Places: {'; '.join(places)}. Regions are as small as noise allows; "
            "none is smaller because somebody lives there."
            if places
            else "No columns are known to be a place.",
            COMPUTED,
        ),
        Question(
            topic,
            "Are extreme values cut off?",
            "Values beyond the bounds are moved to them. "
            + (f"Bounds of {listing(bounds)} were estimated privately, the others stated. " if bounds else "")
            + (" ".join(piles) if piles else "No pile of rows at a bound stands out."),
            COMPUTED,
        ),
        Question(
            topic,
            "Are there long lists of values, such as codes?",
            (f"{listing(long_lists)}." if long_lists else f"No list has more than {_LONG_LIST} values.")
            + (f" Values of {listing(values)} were estimated privately: rare ones are left out." if values else ""),
            COMPUTED,
        ),
        Question(
            topic,
            "Which rules do rows obey?",
            f"{counted(rules, 'stated rule')}, listed with the schema: public, and at no cost."
            if rules
            else "None were stated.",
            STATED if rules else COMPUTED,
        ),
    ]


def _decision(found: Mapping[str, Any]) -> list[Question]:
    topic, ledger = "Answering for it", found["account"]["ledger"]
    contact = found["stated"]["contact"]
    told = [
        [event[name] for name in ("who", "when") if event[name] != NOT_KNOWN] for event in found["account"]["events"]
    ]
    whos = list(dict.fromkeys(", ".join(parts) for parts in told if parts))
    who = "; ".join(whos) if whos else "Not known: no ledger was given that says it."
    left = "Not known: no ledger was given."
    if ledger is not None:
        left = "There is no limit." if ledger["remaining"] is None else f"Epsilon {ledger['remaining']} is left."
    return [
        Question(topic, "Who made the release, and when?", who, COMPUTED if whos else NOT_KNOWN),
        Question(topic, "How much more may be released of these people?", left, COMPUTED if ledger else NOT_KNOWN),
        Question(topic, "Whom does one ask?", contact or "Not stated (--contact).", STATED if contact else NOT_KNOWN),
        Question(
            topic,
            "Can the release be taken back?",
            "No: what was published stays so. Its cost stays on the ledger.",
            DESIGN,
        ),
        Question(
            topic,
            "What must readers be told?",
            "That rows are synthetic, the guarantee and its unit, and which "
            "figures are certified, calibrated, indicative or not supported: this page says all of it.",
            DESIGN,
        ),
    ]
