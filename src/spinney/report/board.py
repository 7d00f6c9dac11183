"""What a disclosure review board asks before a table leaves the house, answered line by line.

Boards of statistical offices and hospitals differ in their forms and agree in what they want to know: what leaves, who
may be found in it, how detailed it is, what else is out there, who answers for it. The questions are in our own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spinney.report.promise_part import percent
from spinney.report.questions import (
    COMPUTED,
    DESIGN,
    NOT_KNOWN,
    STATED,
    Question,
    counted,
    estimated,
    listing,
    together_first,
)

# A list of more values than this is called long.
_LONG_LIST = 100
_NO_PILES = (
    "The released numbers give no warning of rows that pile up at a bound; none is given of zeros and of few values."
)


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
    alone = "." if promise["together"] is not None else ", in this release alone: others of the same people add to it."
    return f"{rows} The unit of protection is {promise['protected']}{alone}"


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
            _copied(found) if promise["is_private"] else "The guarantee is void, so this cannot be ruled out.",
            COMPUTED if not promise["is_private"] else DESIGN,
        ),
    ]


def _copied(found: Mapping[str, Any]) -> str:
    """What is in a release of the rows, what of it is exact, and what was not computed from them at all."""
    promise = found["promise"]
    exact = ""
    if promise["n_is_public"]:
        exact = (
            f" One number is exact: that of {promise['who']}, {promise['n']:,}, which the unit {promise['unit']} takes "
            "to be public."
        )
    stated = "the schema and the options of the call stand in it as the holder stated them"
    if estimated(found, "bounds") or estimated(found, "values"):
        stated += ", but for what is marked as estimated privately"
    prior = found["model"]["parameters"].get("prior")
    return (
        f"No row is copied, though a synthetic one may equal a real one by chance. Whatever was counted or summed over "
        f"rows has noise.{exact} Beside that, {stated}; whether these were public before is for the holder to say."
        + (f" A prior stood in for counts: {prior}." if prior else "")
    )


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
            f"{together_first(promise)}From this release alone: whoever holds both answers equally likely and knows "
            f"everything else guesses {promise['secret']} right at most {percent(promise['guess'])} of the time. "
            + (
                ""
                if promise["who"] == "persons" or not promise["groups"]
                else "Of somebody with several rows more can be found out, as the figures for groups say. "
            )
            + "No synthetic row is anybody's record. A match with a person can still be right, as what holds for a "
            "group holds for many in it: the guarantee bounds what their own data adds, not what can be guessed."
        )
    return [
        Question(
            topic,
            "Are there direct identifiers?",
            f"{', '.join(keys)}: made up afresh. {_keys_read(promise)} Whether another column identifies people is "
            "for the holder to say."
            if keys
            else "None of the columns is of type identifier; whether another one identifies people is for the "
            "holder to say.",
            COMPUTED if keys else NOT_KNOWN,
        ),
        Question(topic, "How likely is it that somebody is recognised?", risk, COMPUTED),
        Question(
            topic,
            "Which tables of others overlap with this one?",
            "Not known. The guarantee holds whatever tables others hold. Other releases that were made of the same "
            "people add to it.",
            NOT_KNOWN,
        ),
        Question(
            topic,
            "Are small or conspicuous groups protected?",
            f"Each of their {promise['who']} is protected as any other. "
            + (
                "What a group has in common is protected less, the larger it is, as the figures for groups say. "
                if promise["groups"]
                else "Nothing was measured of any group. "
            )
            + "Figures of small groups are the least accurate, and what looks like a rare person may be noise."
            if promise["is_private"]
            else "The guarantee is void: nobody is protected.",
            DESIGN if promise["is_private"] else COMPUTED,
        ),
    ]


def _keys_read(promise: Mapping[str, Any]) -> str:
    """What real identifiers are read for."""
    if promise["who"] == "persons":
        return "The real ones are read to tell whose rows are whose, and none of them is copied into the release."
    return "The real ones have no part in what was counted, and none of them is copied into the release."


def _detail(found: Mapping[str, Any]) -> list[Question]:
    topic, promise = "Detail", found["promise"]
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
            f"Places: {'; '.join(places)}. Regions are finer where noisy counts say that there are more "
            f"{promise['who']}."
            if places
            else "No columns are known to be a place.",
            COMPUTED,
        ),
        Question(
            topic,
            "Are extreme values cut off?",
            "Values beyond the bounds are moved to them. "
            + (f"Bounds of {listing(bounds)} were estimated privately, the others stated. " if bounds else "")
            + (" ".join(piles) if piles else _NO_PILES),
            COMPUTED,
        ),
        Question(
            topic,
            "Are there long lists of values, such as codes?",
            (f"{listing(long_lists)}." if long_lists else f"No list has more than {_LONG_LIST} values.")
            + (f" Values of {listing(values)} were estimated privately: rare ones are not listed." if values else ""),
            COMPUTED,
        ),
        Question(
            topic,
            "Which rules do rows obey?",
            f"{counted(rules, 'stated rule')}, listed with the schema. Every synthetic row obeys them, also where real "
            "ones do not. They cost no epsilon, as the holder vouches that they were known without looking at the rows."
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
    made = found["account"].get("made")
    who = "; ".join(whos) if whos else "Not known: no ledger was given that says it."
    if made and not whos:
        who = f"It was made on {made}. Who made it is not known: no ledger says it."
    left = "Not known: no ledger was given."
    if ledger is not None:
        left = "The ledger sets no limit."
        if ledger["remaining"] is not None:
            delta = "" if not ledger["delta_limit"] else f" and delta {ledger['remaining_delta']}"
            left = (
                f"Epsilon {ledger['remaining']}{delta} of the ledger's limit is left; its keepers can raise the limit."
            )
    return [
        Question(topic, "Who made the release, and when?", who, COMPUTED if whos or made else NOT_KNOWN),
        Question(topic, "How much more may be released of these people?", left, COMPUTED if ledger else NOT_KNOWN),
        Question(topic, "Whom does one ask?", contact or "Not stated (--contact).", STATED if contact else NOT_KNOWN),
        Question(
            topic,
            "Can the release be taken back?",
            "No: what was published stays so, and what it cost stays spent.",
            DESIGN,
        ),
        Question(
            topic,
            "What must readers be told?",
            "That rows are synthetic, the guarantee and its unit, that other releases of the same people add to it, "
            "and which figures are certified, calibrated, indicative or not supported.",
            DESIGN,
        ),
    ]
