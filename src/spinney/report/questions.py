"""Questions that NIST SP 800-226 and disclosure review boards ask of a release, answered line by line. PUBLIC.

Every answer says where it comes from: stated by the holder, computed from the release, how Spinney works, or
not known. The questions are in our own words.

The first part follows the pyramid of NIST SP 800-226: epsilon and the unit of privacy on top, what may
undermine them below (mechanisms, sensitivity, utility and bias, several releases, security), how the data were
collected at the bottom, and the hazards it names, which are common ways to be wrong. The second part follows
the forms of review boards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spinney.report.parts import ESTIMATED, first_figure, percent
from spinney.text import many

STATED, COMPUTED, DESIGN, NOT_KNOWN = "stated by the holder", "computed", "how Spinney works", "not known"
SOURCES = (STATED, COMPUTED, DESIGN, NOT_KNOWN)


Line = tuple[str, str, str]  # a question, its answer, and where the answer comes from


def nist_questions(found: Mapping[str, Any]) -> list[dict[str, str]]:
    """The questions of the pyramid, from its top to its ground; `found` holds the other parts of a report."""
    return _answered(
        found,
        {
            "Privacy parameters": _parameters,
            "Unit of privacy": _unit,
            "Mechanisms": _mechanisms,
            "Utility and bias": _utility,
            "Several releases": _composition,
            "Trust model": lambda _: [_TRUST_MODEL],
            "Side channels": lambda _: [_SIDE_CHANNELS],
            "Access control": lambda _: [_ACCESS],
            "Data collection": _data_collection,
        },
    )


def _answered(
    found: Mapping[str, Any], topics: Mapping[str, Callable[[Mapping[str, Any]], list[Line]]]
) -> list[dict[str, str]]:
    """The questions of all topics, as plain data."""
    return [
        {"topic": topic, "question": question, "answer": answer, "source": source}
        for topic, answers_to in topics.items()
        for question, answer, source in answers_to(found)
    ]


def _parameters(found: Mapping[str, Any]) -> list[Line]:
    promise = found["promise"]
    if not promise["is_private"]:
        why = "None: the guarantee is void, as the top of this page says."
        return [("How strong is the guarantee?", why, COMPUTED)]
    guess = percent(promise["guess"])
    return [
        ("Which variant of differential privacy is it?", f"{promise['guarantee']}.", COMPUTED),
        (
            "What do the parameters mean for somebody in the table?",
            f"{together_first(promise)}From this release alone: an attacker who holds two answers equally likely and "
            "knows everything else "
            + (
                f"is right at most {guess} of the time, where a coin is right 50 % of the time. Who holds one answer "
                "likelier beforehand may be right more often."
                if promise["is_bounded"]
                else "may be right practically always: the guarantee means practically nothing."
            ),
            COMPUTED,
        ),
        (
            f"Is delta small against one over the number of {promise['who']}?",
            promise["delta_words"],
            COMPUTED,
        ),
        (
            "Is epsilon larger than it should be?",
            " ".join([promise["epsilon_words"], *(f"Caution: {caution}." for caution in promise["cautions"])]),
            COMPUTED,
        ),
        (
            "Can this epsilon be compared with that of another system?",
            f"Only with one for the same unit, {promise['unit']}, and the same kind of neighbours; the number alone "
            "says nothing.",
            DESIGN,
        ),
    ]


def _unit(found: Mapping[str, Any]) -> list[Line]:
    promise, schema = found["promise"], found["schema"]
    is_person = promise["who"] == "persons"
    groups = "; ".join(
        f"{group['size']}: "
        + (
            "nothing is promised"
            if group["is_empty"]
            else f"epsilon {group['epsilon']:g}" + (f", delta {group['delta']:g}" if group["delta"] else "")
        )
        for group in promise["groups"]
    )
    lines = [
        ("Who or what is protected?", f"{promise['protected'].capitalize()}.", COMPUTED),
        (
            "Can one person have several rows, and are they protected then?",
            "Yes: a person is protected with all their rows, up to the number that the schema states; further ones "
            "were left out before anything was counted. A person is whoever one value of the key stands for: somebody "
            "with two keys counts as two."
            if is_person
            else "The guarantee is for one row. "
            + (
                "If a person may have several, it is weaker for them, as the figures for groups say; whether that can "
                "happen is not known to the release."
                if promise["groups"]
                else "Epsilon is 0, so it is no weaker for a person with several."
                if promise["is_private"]
                else "It is void, as the top of this page says."
            ),
            COMPUTED if is_person else NOT_KNOWN,
        ),
        (
            "Is the number of rows or persons public?",
            f"{promise['who'].capitalize()}: {promise['n_in_words']}.",
            COMPUTED,
        ),
    ]
    if groups:
        lines.append(("What is promised to groups?", f"Group sizes: {groups}.", COMPUTED))
    if is_person:
        most = [str(table["most_rows"]) for table in schema if table["most_rows"]]
        limit = f"At most {' and '.join(most)} rows of a person were kept." if most else "As the schema states."
        lines.append(("How are contributions bounded?", limit, STATED))
    return lines


def _mechanisms(found: Mapping[str, Any]) -> list[Line]:
    model, ledger = found["model"], found["account"]["ledger"]
    noise = sorted({stage["noise"].partition(",")[0] for stage in found["budget"]})
    entropy = (
        "Spinney draws noise exactly, in whole numbers, from the operating system's entropy; a file cannot prove it."
    )
    if found["warnings"]:
        entropy = "Mind the warnings at the top: noise that somebody can repeat is none."
    bounds = [column for table in found["schema"] for column in table["columns"] if column["low"] is not None]
    from_data = any("from-data" in column["stated"] for table in found["schema"] for column in table["columns"])
    return [
        ("Which mechanism made the release?", f"{model['synthesizer']}: {model['meaning']}", COMPUTED),
        (
            "Which noise was added?",
            f"{'; '.join(noise) or 'None'}. {entropy}",
            COMPUTED,
        ),
        (
            "Is there a proof, and was the implementation tested against it?",
            "Mechanisms have proofs next to their code. Tests compute output distributions on tables that are small "
            "enough, compare all neighbours, and draw samples elsewhere. A release file cannot prove that this code "
            "was the one that ran.",
            DESIGN,
        ),
        (
            "Is the system interactive, so that answers may depend on earlier ones?",
            "Readers ask nothing of the real table: all was measured in one fit, whose steps and costs are listed. "
            "Later steps of a fit may follow from noisy results of earlier ones, which the accounting allows for. "
            "Answers that the holder buys later are charges of their own.",
            DESIGN,
        ),
        (
            "Are there floating-point attacks?",
            "Counts and sums are integers and get integer noise: no floating-point sample is added to them.",
            DESIGN,
        ),
        (
            "Where do bounds come from (sensitivity)?",
            "At least one bound was read off the data, which voids the guarantee."
            if from_data
            else f"{_bounds_in_words(len(bounds), estimated(found, 'bounds'))} Values beyond a bound are moved to it.",
            COMPUTED,
        ),
        (
            "Were parameters tuned on the private table?",
            f"No fit does so by itself. {_other_fits(ledger)}",
            COMPUTED if ledger is not None and ledger["has_this"] else NOT_KNOWN,
        ),
    ]


def _other_fits(ledger: Mapping[str, Any] | None) -> str:
    """Whether a ledger shows that the best of several fits may have been kept."""
    if ledger is None or not ledger["has_this"]:
        why = "no ledger was given" if ledger is None else "the ledger does not hold this release"
        return f"Whether the holder fitted several times and kept the best is not known: {why}."
    tuning, kept = ledger["tuning"], "whether the best of several was kept is for the holder to say"
    if tuning is None:  # a ledger without records
        if not ledger["other_charges"]:
            return "The ledger holds no other charge; of fits that were not charged to it, it knows nothing."
        others = many(ledger["other_charges"], "other charge")
        return f"The ledger holds {others}; {kept}, and what all of them cost is on it."
    of = "the same people" if tuning["table"] is None else f"the same table, {tuning['table']!r}"
    counts = [
        (tuning["releases"], "other release", f" of {of}"),
        (tuning["failed"], "charge", " of fits that failed"),
        (tuning["without_release"], "charge", " that no release is named for"),
    ]
    found = [many(number, what) + rest for number, what, rest in counts if number]
    if not found:
        return f"The ledger holds no other fit of {of}; of fits that were not charged to it, it knows nothing."
    return f"The ledger holds {', '.join(found)}; {kept}, and what all of them cost is on it."


def _bounds_in_words(n_bounds: int, names: Sequence[str]) -> str:
    columns = f"{many(n_bounds, 'column')} with bounds"
    if not names:
        return f"{columns}, as the schema states them; that they were not read off the table, the holder vouches for."
    rest = (
        f" The schema states those of {many(n_bounds - len(names), 'other column')}." if n_bounds > len(names) else ""
    )
    return f"{columns}. Estimated privately, at a cost that is listed: {listing(names)}.{rest}"


def estimated(found: Mapping[str, Any], what: str) -> list[str]:
    """Columns whose bounds or values were estimated privately, and not stated."""
    columns = [column for table in found["schema"] for column in table["columns"]]
    return [column["name"] for column in columns if column["source"] == f"{what} {ESTIMATED}"]


def listing(names: Sequence[str], most: int = 12) -> str:
    """A few names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _utility(found: Mapping[str, Any]) -> list[Line]:
    columns = found["columns"]
    kinds = Counter(column["statement"] for column in columns)
    pairs = Counter(pair["statement"] for pair in found["pairs"]["pairs"])
    utility = found["utility"]
    return [
        (
            "How accurate is the release, and is that known?",
            f"Columns by statement: {_kinds(kinds)}. Pairs of columns by statement: {_kinds(pairs)}. How far each may "
            "be off stands beside it; of more than two columns together this page says nothing.",
            COMPUTED,
        ),
        (
            "Was utility measured on the private table, and paid for?",
            "Yes: its figures stand on this page, and their cost is part of epsilon."
            if utility is not None
            else "Not measured.",
            COMPUTED,
        ),
        (
            "Which statistics are biased?",
            "Noisy counts are unbiased before they are fitted to each other; fitted ones, those below a threshold, and "
            "those moved up from below zero are not. Rare values suffer most. What an interval allows for, its kind of "
            "statement says.",
            DESIGN,
        ),
        (
            "Are small groups served worse than large ones?",
            "Yes: noise does not shrink with a group, so it is a larger part of a small count. Compare an estimate "
            "with its interval before you speak of a small group.",
            DESIGN,
        ),
        ("Was the table itself biased or incomplete?", "The release cannot say.", NOT_KNOWN),
    ]


def _kinds(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "none"


def together_first(promise: Mapping[str, Any]) -> str:
    """What all releases on the ledger promise together, which comes before what this one does; empty without one."""
    together = promise["together"]
    return "" if together is None else f"{first_figure(together)} "


def _composition(found: Mapping[str, Any]) -> list[Line]:
    promise, ledger = found["promise"], found["account"]["ledger"]
    if ledger is None:
        kept = (
            "Is there a limit over all releases of this table?",
            "No ledger was given with this report, so it is not known what else was released.",
            NOT_KNOWN,
        )
    else:
        state = "holds every charge of this release" if ledger["has_this"] else "does not hold this release"
        of = "without a limit" if ledger["limit"] is None else f"of {ledger['limit']}"
        kept = (
            "Is there a limit over all releases of this table?",
            f"The ledger {state}: epsilon {ledger['spent']} {of} is spent. Of releases that were not charged to it, it "
            "knows nothing.",
            COMPUTED,
        )
    return [
        kept,
        (
            "What do all releases of these people promise together?",
            f"{together_first(promise).strip()} {' '.join(promise['together']['in_words'])}".strip()
            if promise["together"] is not None
            else f"Not known: no ledger was given. {promise['alone'] or ''}".strip(),
            NOT_KNOWN if promise["together"] is None else COMPUTED,
        ),
        (
            "Does drawing more rows, or asking more questions of the release, cost privacy?",
            "No: both are computed from what was released. An answer that the holder buys from the real table costs "
            "epsilon of its own.",
            DESIGN,
        ),
        (
            "Were releases made of overlapping tables, such as last month's?",
            "Not known to a release; costs for the same people add up.",
            NOT_KNOWN,
        ),
    ]


_TRUST_MODEL = (
    "Who sees the real rows?",
    "The holder, who runs Spinney: this is the central model. What is promised holds against all readers of the "
    "release.",
    DESIGN,
)
_SIDE_CHANNELS = (
    "Can time, memory or errors give something away?",
    "Timing and memory are not covered. Errors and logs of Spinney are written so that they hold no values of the "
    "table; tracebacks, which have to be asked for, may hold some, and are for the holder alone.",
    DESIGN,
)
_ACCESS = ("Who may read the real table, and how is it kept?", "Not known.", NOT_KNOWN)


def _data_collection(found: Mapping[str, Any]) -> list[Line]:
    purpose, question = found["stated"]["purpose"], "What was collected, from whom, and for which purpose?"
    if purpose:
        return [(question, f"The purpose, as stated: {purpose}", STATED)]
    return [(question, "No purpose was stated with this report or its ledger (--purpose).", NOT_KNOWN)]


# ---------------------------------------------------------------------------------------------------------------- board
# What a disclosure review board asks before a table leaves the house, answered line by line.
#
# Boards of statistical offices and hospitals differ in their forms and agree in what they want to know: what leaves,
# who may be found in it, how detailed it is, what else is out there, who answers for it. The questions are in our own
# words.


# A list of more values than this is called long.
_LONG_LIST = 100
_NO_PILES = (
    "The released numbers give no warning of rows that pile up at a bound; none is given of zeros and of few values."
)


def board_questions(found: Mapping[str, Any]) -> list[dict[str, str]]:
    """The questions of a board, as plain data; `found` holds the other parts of a report."""
    return _answered(
        found,
        {
            "What leaves": _what_leaves,
            "Who may be found": _identification,
            "Detail": _detail,
            "Answering for it": _decision,
        },
    )


def released_in_words(found: Mapping[str, Any]) -> str:
    """What was released and for whom, without a word of modelling: what stands below the title."""
    schema, promise = found["schema"], found["promise"]
    n_columns = sum(len(table["columns"]) for table in schema)
    tables = "a private table" if len(schema) == 1 else f"{len(schema):,} private tables"
    rows = (
        f"Anybody who holds this release can draw synthetic rows from it, in place of {tables} with "
        f"{many(n_columns, 'column')}."
    )
    if not promise["is_private"]:
        return f"{rows} Nothing is promised to those in the {'table' if len(schema) == 1 else 'tables'}."
    alone = "." if promise["together"] is not None else ", in this release alone: others of the same people add to it."
    return f"{rows} The unit of protection is {promise['protected']}{alone}"


def _what_leaves(found: Mapping[str, Any]) -> list[Line]:
    schema, promise = found["schema"], found["promise"]
    n_columns = sum(len(table["columns"]) for table in schema)
    purpose, licence = found["stated"]["purpose"], found["stated"]["licence"]
    return [
        (
            "What is released?",
            f"A model of {many(len(schema), 'table')}, {many(n_columns, 'column')}: "
            f"{found['model']['contents']}. Rows drawn from it are synthetic.",
            COMPUTED,
        ),
        ("For which purpose?", purpose or "Not stated (--purpose).", STATED if purpose else NOT_KNOWN),
        ("Under which licence?", licence or "Not stated (--licence).", STATED if licence else NOT_KNOWN),
        (
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


def _identification(found: Mapping[str, Any]) -> list[Line]:
    promise = found["promise"]
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
        (
            "Are there direct identifiers?",
            f"{', '.join(keys)}: made up afresh. {_keys_read(promise)} Whether another column identifies people is "
            "for the holder to say."
            if keys
            else "None of the columns is of type identifier; whether another one identifies people is for the "
            "holder to say.",
            COMPUTED if keys else NOT_KNOWN,
        ),
        ("How likely is it that somebody is recognised?", risk, COMPUTED),
        (
            "Which tables of others overlap with this one?",
            "Not known. The guarantee holds whatever tables others hold. Other releases that were made of the same "
            "people add to it.",
            NOT_KNOWN,
        ),
        (
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


def _detail(found: Mapping[str, Any]) -> list[Line]:
    promise = found["promise"]
    columns = [column for table in found["schema"] for column in table["columns"]]
    long_lists = [column["name"] for column in columns if (column["n_values"] or 0) > _LONG_LIST]
    places = [", ".join(place["columns"]) for table in found["schema"] for place in table["places"]]
    places += [", ".join(drawn["columns"]) for drawn in found["maps"] if ", ".join(drawn["columns"]) not in places]
    bounds, values = estimated(found, "bounds"), estimated(found, "values")
    rules = sum(len(table["rules"]) for table in found["schema"])
    relations = [relation for table in found["schema"] for relation in table["relations"]]
    told = f" Found privately, and paid for: {listing(relations)}." if relations else ""
    piles = [remark for remark in found["remarks"] if "bound" in remark]
    return [
        (
            "How fine is geography?",
            f"Places: {'; '.join(places)}. Regions are finer where noisy counts say that there are more "
            f"{promise['who']}."
            if places
            else "No columns are known to be a place.",
            COMPUTED,
        ),
        (
            "Are extreme values cut off?",
            "Values beyond the bounds are moved to them. "
            + (f"Bounds of {listing(bounds)} were estimated privately, the others stated. " if bounds else "")
            + (" ".join(piles) if piles else _NO_PILES),
            COMPUTED,
        ),
        (
            "Are there long lists of values, such as codes?",
            (f"{listing(long_lists)}." if long_lists else f"No list has more than {_LONG_LIST} values.")
            + (f" Values of {listing(values)} were estimated privately: rare ones are not listed." if values else ""),
            COMPUTED,
        ),
        (
            "Which rules do rows obey?",
            f"{many(rules, 'stated rule')}, listed with the schema. Every synthetic row obeys them, also where real "
            "ones do not. They cost no epsilon, as the holder vouches that they were known without looking at the rows."
            + told
            if rules
            else f"None were stated.{told}",
            STATED if rules else COMPUTED,
        ),
    ]


def _decision(found: Mapping[str, Any]) -> list[Line]:
    ledger = found["account"]["ledger"]
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
        ("Who made the release, and when?", who, COMPUTED if whos or made else NOT_KNOWN),
        ("How much more may be released of these people?", left, COMPUTED if ledger else NOT_KNOWN),
        ("Whom does one ask?", contact or "Not stated (--contact).", STATED if contact else NOT_KNOWN),
        (
            "Can the release be taken back?",
            "No: what was published stays so, and what it cost stays spent.",
            DESIGN,
        ),
        (
            "What must readers be told?",
            "That rows are synthetic, the guarantee and its unit, that other releases of the same people add to it, "
            "and which figures are certified, calibrated, indicative or not supported.",
            DESIGN,
        ),
    ]
