"""Work beside the server: once for all who ask, told where it takes long, and survived where its process ends."""

import os
import time

import pytest

from spinney.errors import ParameterError
from spinney_studio.background import Beside, EndedError, StillWorking
from spinney_studio.workspace import PageError


def waits(seconds):
    time.sleep(seconds)
    return os.getpid()


def fails(kind):
    if kind == "ours":
        raise ParameterError("age: what was asked for")
    raise ZeroDivisionError("a private value")


def ends():
    os._exit(1)


@pytest.fixture(scope="module")
def beside():
    return Beside()


def test_work_runs_in_another_process_once(beside):
    found = beside.answer("working", waits, 0.0, wait=60)
    assert found != os.getpid()
    tasks = [beside.ask("working", waits, 0.0) for _ in range(3)]
    assert len({id(task) for task in tasks}) == 1


def test_what_takes_long_is_told_and_found_later(beside):
    with pytest.raises(StillWorking, match="working"):
        beside.answer("working", waits, 0.6, wait=0.05)
    assert beside.answer("working", waits, 0.6, wait=60)


def test_errors_of_ours_keep_their_words_and_others_say_their_kind_alone(beside):
    with pytest.raises(ParameterError, match="what was asked for"):
        beside.answer("working", fails, "ours", wait=60)
    with pytest.raises(PageError) as told:
        beside.answer("working", fails, "other", wait=60)
    assert "ZeroDivisionError" in str(told.value)
    assert "private" not in str(told.value)


def test_a_process_that_ends_is_told_and_started_anew(beside):
    with pytest.raises(EndedError):
        beside.answer("working", ends, wait=60)
    assert beside.answer("working", waits, 0.01, wait=60)
