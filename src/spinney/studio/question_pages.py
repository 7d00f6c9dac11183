"""Questions to a release, in the language of `spinney ask` or put together by a form; answers with error bars."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from spinney.errors import ParameterError
from spinney.studio.pages import Call, Pages
from spinney.studio.releases.answering import KINDS, answered, built_question
from spinney.studio.releases.pictures import answers_picture
from spinney.studio.view_parts import answer, overview_of, patient, picture, picture_address, release_of

pages = Pages()

_LONGEST = 2_000
_BUILT = ("kind", "column", "share", "by", "cells", "where")
_LEVELS = ("0.9", "0.95", "0.99", "0.999")


@pages.get("/releases/{key}/questions")
@patient
def questions(call: Call) -> Response:
    """A question, and what the release says."""
    opened = release_of(call)
    found = overview_of(call, opened)
    given = {name: call.query.get(name, "") for name in ("q", "level", *_BUILT)}
    switches = {name: call.query.get(name) == "yes" for name in ("population", "certified", "simultaneous")}
    text, faults, said = given["q"].strip(), {}, None
    if given["kind"]:
        try:
            text = built_question(given)
        except ParameterError as err:
            faults = _placed(str(err), _BUILT, "kind")
    if text and not faults:
        try:
            level = _level(given["level"])
            said = answer(call, "working out the answer", answered, *_asked(call, text, level, switches))
        except ParameterError as err:
            faults = _placed(str(err), ("level",), "q")
    level_text = given["level"] or "0.95"
    return call.page(
        "release_questions.html",
        title=f"Questions to {opened.name}",
        status=400 if faults else 200,
        opened=opened,
        it=found,
        text=text,
        given=given,
        level=level_text,
        levels=_LEVELS,
        switches=switches,
        faults=faults,
        said=said,
        kinds=[("", "choose"), *KINDS.items()],
        measured=[("", "choose"), *((one["name"], one["name"]) for one in found["fields"] if one["has_mean"])],
        groups=[("", "all together"), *((one["name"], one["name"]) for one in found["fields"])],
        drawn=picture_address(
            opened, "answers", q=text, level=level_text, **{name: on and "yes" for name, on in switches.items()}
        ),
    )


@pages.get("/releases/{key}/answers.svg")
def drawn(call: Call) -> Response:
    """The answers to a question, drawn."""
    switches = {name: call.query.get(name) == "yes" for name in ("population", "certified", "simultaneous")}
    asked = _asked(call, call.query.get("q", ""), _level(call.query.get("level", "")), switches)
    return picture(call, answers_picture, *asked)


def _asked(call: Call, text: str, level: float, switches: dict[str, bool]) -> tuple[Any, ...]:
    if len(text) > _LONGEST:
        raise ParameterError(f"a question has at most {_LONGEST:,} characters")
    return (*release_of(call).at, text, level, switches["population"], switches["certified"], switches["simultaneous"])


def _level(text: str) -> float:
    try:
        level = float(text or "0.95")
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise ParameterError("level: a probability is a number between 0 and 1, such as 0.95")
    return level


def _placed(message: str, names: tuple[str, ...], otherwise: str) -> dict[str, str]:
    """A fault beside its field: that which the message begins with, or another."""
    name, colon, rest = message.partition(": ")
    return {name: rest} if colon and name in names else {otherwise: message}
