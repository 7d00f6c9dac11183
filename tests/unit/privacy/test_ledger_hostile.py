"""Numbers that are none, in events and in ledger files: refused by name, before any sum believes them."""

from __future__ import annotations

import json
import math
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import spinney as sp
from spinney.errors import BudgetError, FileError, ParameterError, SpinneyError
from spinney.privacy.budget import Unit, parse_delta, parse_epsilon, parse_fraction
from spinney.privacy.mechanisms import (
    STAGES,
    ComposedRelease,
    DiscreteGaussianVector,
    DiscreteLaplaceCounts,
    GaussianTables,
    GaussianVector,
    LeafMoments,
    NotPrivate,
    Selection,
    Selections,
    SplitDecisions,
    TreeShapes,
    UnsafeEntropy,
    event_to_dict,
)
from support.command_line import spinney
from support.in_one_test import in_one_test
from support.old_ledgers import write_version_1

ONE, HALF = Fraction(1), Fraction(1, 2)
PART = GaussianTables(Fraction(400), 2, "tables")
VALID = {
    DiscreteLaplaceCounts: {
        "epsilon": HALF,
        "sensitivity": 2,
        "note": "n",
        "stage": "bounds",
        "times": 1,
        "column": "x",
    },
    LeafMoments: {"epsilon": HALF, "sensitivity": 2, "note": "n", "stage": "leaves"},
    SplitDecisions: {
        "epsilon": HALF,
        "rule": "privtree",
        "rate": Fraction(1, 8),
        "levels": 4,
        "note": "n",
        "stage": "trees",
        "times": 3,
        "decay": 2,
    },
    DiscreteGaussianVector: {
        "epsilon": HALF,
        "delta": Fraction(1, 10**6),
        "sensitivity_squared": ONE,
        "variance": Fraction(400),
        "note": "n",
    },
    Selection: {"epsilon": HALF, "note": "n", "stage": "selection", "times": 3},
    ComposedRelease: {"epsilon": ONE, "delta": Fraction(1, 1000), "parts": (PART,), "note": "n"},
    NotPrivate: {"note": "n"},
    UnsafeEntropy: {"note": "n"},
    GaussianTables: {"variance": Fraction(400), "times": 2, "note": "n", "stage": "pairs"},
    TreeShapes: {"rate": Fraction(1, 8), "decay": 2, "levels": 4, "times": 2, "note": "n", "stage": "trees"},
    Selections: {"epsilon": Fraction(1, 8), "times": 2, "note": "n", "stage": "selection"},
    GaussianVector: {"mean_squared": Fraction(1, 8), "note": "n", "stage": "products"},
}
# Fields that an event may leave out, and then claims nothing.
CLAIMS = {DiscreteLaplaceCounts: ("times", "column"), SplitDecisions: ("times", "decay"), Selection: ("times",)}
NO_FRACTIONS = [
    math.nan,
    math.inf,
    0.5,
    True,
    "0.5",
    None,
    Decimal("0.5"),
    Fraction(-1, 2),
    -1,
    Fraction(1, 2**5000),
    Fraction(2**5000),
]
NO_WHOLES = [math.nan, 2.0, True, "2", None, -1, 2**70, Fraction(2)]
NO_TEXTS = [None, 5, b"n", ["n"], "n" * 10**6]
WRONG = {
    "epsilon": [*NO_FRACTIONS, 0, Fraction(0)],
    "delta": [*NO_FRACTIONS, 1, Fraction(3, 2)],
    "rate": [*NO_FRACTIONS, 0],
    "variance": [*NO_FRACTIONS, 0],
    "mean_squared": [*NO_FRACTIONS, 0, Fraction(1, 2**36 + 1), 2**10 + 1],
    "sensitivity_squared": [*NO_FRACTIONS[:-1], 0],
    "sensitivity": [*NO_WHOLES, 0],
    "levels": NO_WHOLES,
    "decay": [*NO_WHOLES, 0],
    "times": [*NO_WHOLES, 0],
    "rule": ["grid", "", None, ["privtree"]],
    "parts": [(), None, "parts", (1,), (PART, None), [PART] * 10_000],
    "note": NO_TEXTS,
    "column": NO_TEXTS,
    "stage": ["", "refund", "Pairs", 5, True, ["pairs"], {"pairs": 1}, "pairs" * 10**5],
}
CASES = [
    (kind, name, value)
    for kind, given in VALID.items()
    for name in given
    for value in WRONG[name]
    if value is not None or name not in CLAIMS.get(kind, ())
]


@pytest.mark.parametrize("kind", VALID)
def test_the_numbers_below_are_refused_for_one_reason_each(kind):
    """Without the change an event can be made, and whole numbers become exact."""
    made = kind(**VALID[kind])
    assert all(getattr(made, name) == value for name, value in VALID[kind].items())
    if "epsilon" in VALID[kind]:
        assert type(kind(**VALID[kind] | {"epsilon": 1}).epsilon) is Fraction


@in_one_test(
    ("kind", "name", "value"), CASES, ids=[f"{kind.__name__}-{name}-{str(value)[:12]}" for kind, name, value in CASES]
)
def test_events_refuse_numbers_that_are_none(kind, name, value):
    """NaN, floats, booleans, text, negative, endless and absurdly long numbers never become a charge."""
    with pytest.raises((ParameterError, BudgetError), match=name) as caught:
        kind(**VALID[kind] | {name: value})
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("kind", [kind for kind, given in VALID.items() if "stage" in given])
def test_a_stage_is_one_that_its_kind_can_have(kind):
    """A choice is no table, and leaves are no column trees; a kind without a claim is one too."""
    for stage in STAGES:
        if stage in kind.stages:
            assert kind(**VALID[kind] | {"stage": stage}).stage == stage
        else:
            with pytest.raises(ParameterError, match="stage="):
                kind(**VALID[kind] | {"stage": stage})
    nothing = dict.fromkeys(["stage", *CLAIMS.get(kind, ())])
    assert kind(**VALID[kind] | nothing).stage is None


def test_only_events_can_be_charged():
    """What merely looks like a charge is none: its epsilon was never checked."""

    class Refund:
        epsilon, note = math.nan, "n"

    ledger = sp.Ledger(limit=1)
    for wrong in (Refund(), NotPrivate(note="n"), None, Fraction(1)):
        with pytest.raises(ParameterError, match="is not a charge"):
            ledger.charge(wrong)
    for wrong in (Refund(), DiscreteLaplaceCounts(HALF, 2, "n")):
        with pytest.raises(ParameterError, match="is not a brand"):
            ledger.brand(wrong)
    assert ledger.events == ()


@pytest.mark.parametrize("epsilon", [math.nan, 0.5, "0.5", True, None, Fraction(-1)])
def test_questions_are_exact_too(epsilon):
    """`require` with a NaN would be answered yes, whatever the limit."""
    with pytest.raises(ParameterError, match="epsilon="):
        sp.Ledger(limit=1).require(epsilon, unit=Unit.REPLACE_ONE)
    with pytest.raises(ParameterError, match="delta="):
        sp.Ledger(limit=1, delta="0.5").require(HALF, unit=Unit.REPLACE_ONE, delta=epsilon)


@pytest.mark.parametrize(
    "text",
    ["1e-99999999", "1e99999999", "9" * 5000, "1/" + "9" * 5000, "0." + "0" * 5000 + "1", "1" * 10**6, 10**5000],
    ids=range(7),
)
def test_absurd_numbers_are_refused_at_once(text):
    """Neither a hang nor a raw error, however the number is written; the message does not repeat it in full."""
    start = time.perf_counter()
    for parse in (parse_fraction, parse_epsilon, parse_delta):
        with pytest.raises(ParameterError) as caught:
            parse(text, "limit")
        assert len(str(caught.value)) < 400
    with pytest.raises(ParameterError):
        sp.Ledger(limit=text)
    assert time.perf_counter() - start < 1


# ------------------------------------------------------------------------------------------------ files


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of version 1, which anybody can write."""
    events = [DiscreteLaplaceCounts(HALF, 2, "counts"), ComposedRelease(**VALID[ComposedRelease])]
    return write_version_1(tmp_path / "people.ledger", limit="2", delta="1/10", events=events)


def rewrite(path: Path, change) -> None:
    described = json.loads(path.read_text())
    change(described)
    path.write_text(json.dumps(described))


ENTRIES = {
    "a refund": {"epsilon": "-50"},
    "NaN": {"epsilon": "nan"},
    "a NaN of JSON": {"epsilon": math.nan},
    "no end": {"epsilon": math.inf},
    "nothing": {"epsilon": "0"},
    "a hang": {"epsilon": "1e-99999999"},
    "a boolean": {"epsilon": True},
    "nothing at all": {"epsilon": None},
    "a division by zero": {"epsilon": "1/0"},
    "too much": {"epsilon": "1e200"},
    "too many digits": {"epsilon": "1/" + "9" * 1500},
    "a float for a whole number": {"sensitivity": 2.0},
    "a negative sensitivity": {"sensitivity": -2},
    "no sensitivity": {"sensitivity": None},
    "a note that is none": {"note": 5},
    "an endless note": {"note": "n" * 10**5},
    "a stage that is none": {"stage": "refund"},
    "a stage of another kind": {"stage": "selection"},
    "a stage of a list": {"stage": ["bounds"]},
    "no tables": {"times": 0},
    "a float of tables": {"times": 2.0},
    "more tables than there are": {"times": 10**30},
    "a column that is no name": {"column": 5},
    "an endless column": {"column": "c" * 10**5},
    "an unknown event": {"event": "Refund"},
    "an event that is no name": {"event": ["DiscreteLaplaceCounts"]},
}


@pytest.mark.parametrize("change", ENTRIES.values(), ids=ENTRIES)
def test_entries_that_no_ledger_wrote(path, change):
    """The file is refused, and the message names it and the entry; so does a charge on an account that was open."""
    ledger, before = sp.Ledger.open(path), path.read_text()
    rewrite(path, lambda described: described["events"][0].update(change))
    start = time.perf_counter()
    with pytest.raises(FileError, match=r"people\.ledger'.*(entry 1|not a number|too large)"):
        sp.Ledger.open(path)
    with pytest.raises(FileError, match=r"people\.ledger'"):
        ledger.charge(DiscreteLaplaceCounts(HALF, 2, "counts"))
    assert spinney("ledger", path).status == 1
    assert time.perf_counter() - start < 2
    path.write_text(before)
    ledger.charge(DiscreteLaplaceCounts(HALF, 2, "counts"))


PARTS = {
    "no noise": {"variance": "0"},
    "negative noise": {"variance": "-400"},
    "NaN": {"variance": "nan"},
    "no tables": {"times": 0},
    "fewer than none": {"times": -3},
    "half a table": {"times": 1.5},
    "too many": {"times": 2**70},
}


@pytest.mark.parametrize("change", PARTS.values(), ids=PARTS)
def test_parts_that_no_ledger_wrote(path, change):
    """Parts are entries like any other."""
    rewrite(path, lambda described: described["events"][1]["parts"][0].update(change))
    with pytest.raises(FileError, match="entry 2"):
        sp.Ledger.open(path)


WHOLES = {
    "a NaN limit": lambda d: d.update(limit="nan"),
    "a NaN limit of JSON": lambda d: d.update(limit=math.nan),
    "a negative limit": lambda d: d.update(limit="-1"),
    "no limit worth the name": lambda d: d.update(limit="0"),
    "a limit that hangs": lambda d: d.update(limit="1e-99999999"),
    "a list for a limit": lambda d: d.update(limit=[1]),
    "a delta above one": lambda d: d.update(delta="1.5"),
    "a delta below zero": lambda d: d.update(delta="-0.1"),
    "another unit": lambda d: d.update(unit="person"),
    "a unit that is none": lambda d: d.update(unit=["replace-one"]),
    "events that are none": lambda d: d.update(events={"0": d["events"][0]}),
    "events that are missing": lambda d: d.pop("events"),
    "an event that is none": lambda d: d.update(events=["DiscreteLaplaceCounts"]),
    "version zero": lambda d: d.update(format_version=0),
    "a version that is true": lambda d: d.update(format_version=True),
}


@in_one_test("change", WHOLES.values(), ids=WHOLES)
def test_accounts_that_no_ledger_wrote(path, change):
    """Limits, unit and the list of events are looked at as closely as the entries."""
    rewrite(path, change)
    with pytest.raises(FileError, match=r"people\.ledger'"):
        sp.Ledger.open(path)


TEXTS = {
    "nested without end": b"[" * 200_000,
    "tables without end": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a number without end": b'{"format": ' + b"9" * 100_000 + b"}",
    "an exponent without end": b'{"format": 1e999}',
    "an entry twice": b'{"format": "spinney-ledger", "format": "spinney-ledger"}',
    "bytes": bytes(range(256)),
    "zeros": b"\0" * 1000,
    "UTF-16": '{"format": "spinney-ledger"}'.encode("utf-16"),
    "brackets": b"[" + b"[]," * 2_200_000 + b"[]]",
}


@pytest.mark.parametrize("content", TEXTS.values(), ids=TEXTS)
def test_texts_that_are_no_account(path, content):
    """Depth, digits, doubles and bytes end in a FileError, and soon."""
    path.write_bytes(content)
    start = time.perf_counter()
    with pytest.raises(FileError, match="is not a Spinney ledger, or is damaged"):
        sp.Ledger.open(path)
    assert time.perf_counter() - start < 5


def test_sums_that_would_never_end(path):
    """Denominators without a common factor would make the sum of an account arbitrarily long."""
    entry = event_to_dict(DiscreteLaplaceCounts(HALF, 2, "counts"))
    entries = [entry | {"epsilon": f"1/{10**700 + 2 * k + 1}"} for k in range(3000)]
    rewrite(path, lambda described: described.update(events=entries))
    start = time.perf_counter()
    with pytest.raises(FileError, match="too many digits"):
        sp.Ledger.open(path)
    assert time.perf_counter() - start < 2


def test_a_file_larger_than_any_account(path):
    """Nothing is parsed of what cannot be a ledger."""
    with path.open("r+b") as file:
        file.truncate(2**33)
    with pytest.raises(FileError, match="too large for a ledger"):
        sp.Ledger.open(path)


def test_an_overdrawn_account_shows_it_and_takes_nothing(path):
    """More on record than the limit allows: nothing remains, never less than nothing, and every charge is refused."""
    rewrite(path, lambda described: described.update(limit="1/4", delta="1/2000"))
    ledger = sp.Ledger.open(path)
    assert (ledger.spent, ledger.remaining, ledger.remaining_delta) == (Fraction(3, 2), 0, 0)
    assert ledger.is_overdrawn
    assert "overdrawn" in repr(ledger)
    with pytest.raises(BudgetError, match=r"1\.5 of 0\.25 is spent"):
        ledger.charge(DiscreteLaplaceCounts(Fraction(1, 10**6), 2, "counts"))
    shown = spinney("ledger", path)
    assert "OVERDRAWN" in shown.out
    assert spinney("ledger", path, "--json").json["remaining"] == "0"


def test_a_limit_that_was_changed_by_hand_is_noticed(path):
    """An account that was open when its limit changed does not go on with the old one."""
    ledger = sp.Ledger.open(path)
    rewrite(path, lambda described: described.update(limit="1/4"))
    with pytest.raises(FileError, match="another limit or unit"):
        ledger.charge(DiscreteLaplaceCounts(Fraction(1, 10), 2, "counts"))


def test_notes_do_not_write_on_the_terminal(path):
    """Escapes, marks of direction and line breaks of a note are shown, not obeyed; JSON escapes them too."""
    note = "ok\x1b[2J\x9b2K\u202e\r\nspent 0 of 2"
    rewrite(path, lambda described: described["events"][0].update(note=note))
    for shown in (spinney("ledger", path).out, spinney("ledger", path, "--json").out):
        assert "\\x1b[2J" in shown or "\\u001b[2J" in shown
        assert all(c == "\n" or c.isprintable() for c in shown)
        assert not any(line.startswith("spent 0 of 2") for line in shown.splitlines())
    assert spinney("ledger", path, "--json").json["events"][0]["note"] == note


def test_hostile_files_raise_nothing_but_our_errors(path):
    """Any byte of an account may be changed: it opens, or the error is ours."""
    raw = path.read_bytes()
    for position in range(0, len(raw), 3):
        for byte in (0, 0x22, 0x2D, 0x39, 0x5B, 0xFF):
            path.write_bytes(raw[:position] + bytes([byte]) + raw[position + 1 :])
            try:
                ledger = sp.Ledger.open(path)
            except SpinneyError:
                continue
            assert ledger.spent > 0
            assert 0 <= ledger.spent_delta < 1
