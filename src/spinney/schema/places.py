"""Places: two or three columns that are one thing, such as longitude and latitude.

    sp.Schema({...}, places=[sp.Place("lon", "lat")])

A forest cuts a place along both columns at once and draws it jointly. Like a bound, a place is a statement of
the data owner: it costs nothing and is never checked against the private table. So is the shape within which
its points lie.

    names of places    columns that their names suggest to be one place
    places             `Place`, its plain data and its checks
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spinney.columns import Bounded, Column
from spinney.columns.base import check_characters
from spinney.errors import SchemaError
from spinney.schema.plain import at, check_options
from spinney.schema.rules import Rule
from spinney.schema.shapes import Shape, as_shape, shape_from_file
from spinney.text import brief, did_you_mean

# ------------------------------------------------------------------------------------------------------ names of places
# Names by which columns are known to be one place: longitude and latitude, x and y, easting and northing.
#
# Names are public, so a template may suggest a place by them, and a picture may tell degrees from metres.


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


# --------------------------------------------------------------------------------------------------------------- places


_FEWEST, _MOST = 2, 3
_OPTIONS = ("columns", "within")


class Place:
    """Two or three ordered columns that are one thing: `Place("lon", "lat")`.

    Args:
        columns: the names of the columns, x before y. A column belongs to one place at most.
        within: where points may lie, if that is public: a polygon as a list of (x, y) points, several polygons (by the
            even-odd rule, so a ring inside another is a hole), GeoJSON, an array of booleans over the bounds with one
            axis for each column, or the path of a GeoJSON or .npy file. No synthetic point lies outside.
    """

    __slots__ = ("columns", "within")

    def __init__(self, *columns: str, within: Any = None) -> None:
        for name in columns:
            if not isinstance(name, str) or not name:
                raise SchemaError(f"Place: {brief(name)} is not the name of a column; write sp.Place('lon', 'lat')")
        check_characters(columns, "Place: ")
        if not _FEWEST <= len(columns) <= _MOST:
            raise SchemaError(f"Place takes two or three columns, and {len(columns)} are named; leave others out of it")
        if len(set(columns)) < len(columns):
            raise SchemaError(f"Place: a column of {', '.join(columns)} is named twice; name each once")
        self.columns: tuple[str, ...] = columns
        self.within: Shape | None = None if within is None else as_shape(within)
        if self.within is not None and self.within.n_axes != len(columns):
            what = f"{self.within!r} has {self.within.n_axes} dimensions"
            raise SchemaError(
                f"Place({self.label!r}): {what}, and the place has {len(columns)} columns; give one for each"
            )

    @property
    def label(self) -> str:
        """What the place is called: the names of its columns."""
        return ", ".join(self.columns)

    def to_dict(self) -> dict[str, Any]:
        """The place as plain data for TOML and JSON; a shape is written out."""
        described: dict[str, Any] = {"columns": list(self.columns)}
        return described if self.within is None else described | {"within": self.within.to_plain()}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Place):
            return NotImplemented
        return (self.columns, self.within) == (other.columns, other.within)

    def __hash__(self) -> int:
        return hash((self.columns, self.within))

    def __repr__(self) -> str:
        within = "" if self.within is None else f", within={self.within!r}"
        return f"Place({', '.join(map(repr, self.columns))}{within})"


def place_from_dict(number: int, entry: Any) -> Place:
    """Read what `to_dict` wrote, or one [[places]] table of a TOML file, the `number`-th. Opens no file."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("columns"), list):
        raise SchemaError(f'place {number}: the entry needs a list of columns, for example columns = ["lon", "lat"]')
    check_options(entry, _OPTIONS, f"place {number}", "a place")
    within = entry.get("within")
    if isinstance(within, str):
        raise SchemaError(
            f"place {number}: within is the path of a file, which is read from schema files only; use "
            "sp.Schema.from_file, or sp.Place(..., within=path)"
        )
    with at(f"place {number}"):
        return Place(*entry["columns"], within=within)


def with_shapes(described: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What a schema file says, with shapes in place of the names of their files, which are looked for in `folder`."""
    places = described.get("places")
    if not isinstance(places, list):
        return described
    read = [with_shape(number, entry, folder) for number, entry in enumerate(places, start=1)]
    return {**described, "places": read}


def with_shape(number: int, entry: Any, folder: Path) -> Any:
    """The `number`-th entry of [[places]], with its shape in place of the name of a file."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("within"), str):
        return entry
    with at(f"place {number}"):
        return {**entry, "within": shape_from_file(folder / entry["within"]).to_plain()}


def check_places(places: Sequence[Place], columns: Mapping[str, Column], rules: Sequence[Rule]) -> None:
    """Raise a SchemaError unless these columns can form the places, each in one, with no rule about any of them."""
    owner: dict[str, Place] = {}
    for place in places:
        for name in place.columns:
            if name in owner:
                raise SchemaError(
                    f"column {name!r} is in two places, {owner[name].label!r} and {place.label!r}; take it out of one"
                )
            owner[name] = place
        _check_place(place, columns)
    for rule in rules:
        for name in rule.columns:
            if name in owner:
                raise SchemaError(
                    f"{rule!r}: column {name!r} is part of the place {owner[name].label!r}, which rules cannot be "
                    "about; leave out the rule or the place"
                )


def _check_place(place: Place, columns: Mapping[str, Column]) -> None:
    """Raise a SchemaError unless these columns can be one place."""
    for name in place.columns:
        if name not in columns:
            raise SchemaError(
                f"Place({place.label!r}): column {name!r} is not in the schema{did_you_mean(name, columns)}"
            )
        column = columns[name]
        if not isinstance(column, Bounded):
            raise SchemaError(
                f"Place({place.label!r}): column {name!r} is of type {column.type_name}; a place is made of "
                "numbers, dates or times"
            )
        if place.within is not None and (column._compared_as != "numbers" or not column.has_bounds):
            remedy = "state its low and high" if column._compared_as == "numbers" else "a shape is one of numbers"
            raise SchemaError(f"Place({place.label!r}): within needs bounds of column {name!r}; {remedy}")
    if place.label in columns:
        raise SchemaError(f"Place({place.label!r}): a column has that name too; rename it")
    if place.within is not None:
        from spinney.grid.axes import place_axis

        raster = place_axis(place, columns).raster
        assert raster is not None
        if not raster.n_inside:
            raise SchemaError(
                f"Place({place.label!r}): {place.within!r} holds no point within the bounds of the columns; give x "
                "before y, in the units of the columns"
            )
