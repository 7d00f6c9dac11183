"""Names by which columns are known to be one place: longitude and latitude, x and y, easting and northing.

Names are public, so a template may suggest a place by them, and a picture may know degrees from metres.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# Words of a name that go together; a third is taken where it is there.
_LONGITUDE, _LATITUDE = ("longitude", "lon", "lng", "long"), ("latitude", "lat", "lat", "lat")
_TOGETHER = [
    *zip(_LONGITUDE, _LATITUDE, strict=True),
    ("easting", "northing"),
    ("eastings", "northings"),
    ("xcoord", "ycoord", "zcoord"),
    ("x", "y", "z"),
]


def suggested_places(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Names of columns that are likely one place each, in the order in which they stand."""
    found: list[tuple[str, ...]] = []
    taken: set[str] = set()
    for name in names:
        if name in taken:
            continue
        for words in _TOGETHER:
            place = _beside(name, words, names)
            if place and taken.isdisjoint(place):
                found.append(place)
                taken.update(place)
                break
    return sorted(found, key=lambda place: min(map(names.index, place)))


def is_longitude(name: str) -> bool:
    """Whether a column is called longitude, or short for it."""
    return any(_word(word).search(name) for word in _LONGITUDE)


def is_latitude(name: str) -> bool:
    """Whether a column is called latitude, or short for it."""
    return any(_word(word).search(name) for word in _LATITUDE)


def _beside(name: str, words: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The columns that are called like this one, with each of the words in the place of the first; empty if none."""
    found = _word(words[0]).search(name)
    if found is None:
        return ()
    start, stop = found.span(1)
    called = [name, *(name[:start] + _in_case(word, name[start:stop]) + name[stop:] for word in words[1:])]
    there = [other for other in called if other in names]
    return tuple(there) if called[1] in there else ()


def _word(word: str) -> re.Pattern[str]:
    """The word between other letters' ends: in "pickup_x", "Start Lng" and "x1", not in "tax"."""
    return re.compile(rf"(?<![A-Za-z])({word})(?![A-Za-z])", re.IGNORECASE)


def _in_case(word: str, model: str) -> str:
    if model.isupper():
        return word.upper()
    return word.capitalize() if model[0].isupper() else word
