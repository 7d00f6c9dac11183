"""What the fuzzer found stays found: the corpus, and some mutations of it, are refused cleanly or taken.

`make fuzz` looks for more. An input in `corpus/TARGET/` broke something once, or reaches code that few others reach.
"""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney as sp
from fuzz.__main__ import CORPUS, MOST_SECONDS_AN_INPUT, NAMES
from fuzz.targets import TARGETS, _conditioned, forget_files, mutated
from spinney.errors import SpinneyError

N_MUTATIONS = {"release": 250, "ledger": 400, "schema": 1500, "csv": 400, "condition": 400}


@cache
def inputs(name: str) -> list[bytes]:
    """Seeds, and what the fuzzer kept."""
    return [*TARGETS[name].seeds(), *(path.read_bytes() for path in sorted((CORPUS / name).glob("*")))]


@pytest.fixture(autouse=True)
def _tidy():
    yield
    forget_files()


def test_every_kind_of_input_is_fuzzed():
    """The runner, the targets and the corpus speak of the same kinds."""
    assert set(NAMES) == set(TARGETS) == set(N_MUTATIONS)
    assert {path.name for path in CORPUS.iterdir()} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_seeds_are_taken(name):
    """At least half of what a target starts from is sound, or its mutations would all end at the first check."""
    taken = [TARGETS[name].check(data) for data in TARGETS[name].seeds()]
    assert sum(taken) * 2 >= len(taken)


@pytest.mark.parametrize("name", NAMES)
def test_the_corpus_is_refused_cleanly_or_taken(name):
    """No input that was kept crashes, hangs, leaks or raises anything but a SpinneyError."""
    for data in inputs(name):
        start = time.monotonic()
        TARGETS[name].check(data)
        assert time.monotonic() - start < MOST_SECONDS_AN_INPUT


@pytest.mark.parametrize("name", NAMES)
def test_mutations_are_refused_cleanly_or_taken(name):
    """The same of mutations, and of mutations of these; most are refused, and a few are taken."""
    rng, target, known = Random(f"mutations of {name}"), TARGETS[name], list(inputs(name))
    outcomes = []
    for _ in range(N_MUTATIONS[name]):
        data = mutated(target, rng.choice(known), rng)
        outcomes.append(target.check(data))
        if outcomes[-1]:
            known.append(data)
    assert set(outcomes) == {True, False}


PLAIN = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9), st.dates(), st.datetimes()),
    st.sampled_from([10**400, -(2**63), 5e-324, float("nan"), "2020-02-30", "UTC", "real", "category", "\x1b[2J"]),
)
NESTED = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
OPTIONS = st.dictionaries(
    st.sampled_from(
        ["type", "low", "high", "bits", "nullable", "bounds", "values", "multiple_of", "timezone", "prefix"]
    ),
    NESTED | st.sampled_from(["real", "integer", "date", "datetime", "boolean", "category", "identifier", "private"]),
)


@settings(max_examples=400, derandomize=True, deadline=None)
@given(columns=st.dictionaries(st.text(max_size=4), OPTIONS, max_size=3), rules=NESTED)
def test_any_description_of_a_schema_is_refused_cleanly_or_taken(columns, rules):
    """Whatever plain data a schema is made from."""
    with contextlib.suppress(SpinneyError):
        sp.Schema.from_dict({"columns": columns, "rules": rules} if rules else {"columns": columns})


ODD = st.sampled_from(
    [
        *(
            np.int64(3),
            np.float32(0.5),
            np.True_,
            np.str_("a"),
            np.datetime64("2020-03-01"),
            np.array([1, 2]),
            Decimal(1),
        ),
        *(date(2020, 3, 1), datetime(2020, 3, 1, tzinfo=UTC), b"a", {1}, range(3), object(), float("inf"), (0.2, 0.4)),
    ]
)
WANTED = NESTED | ODD | st.lists(PLAIN | ODD, max_size=3) | st.tuples(PLAIN | ODD, PLAIN | ODD)


@settings(max_examples=400, derandomize=True, deadline=None)
@given(
    where=st.dictionaries(st.sampled_from("xncbdz"), WANTED, max_size=2),
    balance=st.dictionaries(st.sampled_from("cb"), WANTED, max_size=1),
)
def test_any_condition_is_refused_cleanly_or_kept(where, balance):
    """Whatever Python values are asked of columns."""
    try:
        rows = _conditioned().sample(3, seed=0, where=where, balance=balance)
    except SpinneyError:
        return
    assert len(rows) == 3
