"""One of a list of values, which is public, or found privately: codes, names, classes.

    code lists     public lists of values in files
    hierarchies    which codes belong together, by prefixes or by stated parents
    category       the column

What is not in the list is refused, unless `other` names a value that stands for it. The list has the order of
its hierarchy, so that every group of codes is a range of places.
"""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real as AnyReal
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from spinney.columns.base import LARGEST_WHOLE, PLAIN, AxisKind, Column, Spelling, check_characters, meant, shown
from spinney.columns.boolean import Listed
from spinney.columns.bounded import SPACES, is_number
from spinney.columns.integer import WHOLE_CAST, WHOLE_REMEDY
from spinney.errors import InputError, ParameterError, SchemaError, raise_alone
from spinney.machine import lazily
from spinney.text import brief, did_you_mean

if TYPE_CHECKING:
    import narwhals as nw
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    from numpy.typing import NDArray

    from spinney.columns import reading
    from spinney.columns.reading import Group, Physical
else:
    nw, pa, pc, reading = lazily("narwhals", "pyarrow", "pyarrow.compute", "spinney.columns.reading")


# ----------------------------------------------------------------------------------------------------------- code lists
# Public lists of codes in files: one value a line, or the first column of a CSV below its header.
#
# A codebook is published once and used by many schemas. The list is read when the schema is, and from then on
# the column holds the values themselves, so that no release depends on a file. Errors name the file and the
# line.


LARGEST_FILE = 2**25
MOST_VALUES = 1_000_000
_MOST_DIGITS = 19  # of whole numbers up to 2^61


def read_code_list(path: Any, *, is_whole: bool) -> tuple[str, ...] | tuple[int, ...]:
    """The values in a file, as strings or as whole numbers; a SchemaError names the file and the line."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise SchemaError(f"Category: values_from={brief(path)} is not the path of a file")
    name = repr(os.fsdecode(path))
    lines: dict[Any, int] = {}
    for number, text in _entries(name, _text_of(Path(os.fsdecode(path)), name)):
        value = _whole(text, name, number) if is_whole else text
        if value in lines:
            raise SchemaError(f"line {number} of {name} repeats the value of line {lines[value]}; list each once")
        if len(lines) == MOST_VALUES:
            raise SchemaError(f"{name} lists more than {MOST_VALUES:,} values, which is too many for a category")
        lines[value] = number
    if not lines:
        raise SchemaError(f"{name} lists no values; write one a line")
    return tuple(lines)


def _text_of(path: Path, name: str) -> str:
    """The whole file, if it is a text file of a sane size. What is no plain file might never end, and is not opened."""
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
        content = b""
        if is_file:
            with path.open("rb") as file:
                content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as err:
        why = err.strerror if isinstance(err, OSError) and err.strerror else str(err)
        raise_alone(SchemaError(f"cannot read the values in {name}: {why}"))
    if not is_file:
        raise SchemaError(f"{name} is not a file, so values cannot be read from it")
    if len(content) > LARGEST_FILE:
        raise SchemaError(f"{name} is larger than {LARGEST_FILE >> 20} MiB, which is too large for a list of values")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = content.count(b"\n", 0, err.start) + 1
        raise_alone(SchemaError(f"line {line} of {name} is not UTF-8 text; save the list as UTF-8"))
    if "\0" in text:
        raise SchemaError(f"line {text.count(chr(10), 0, text.index(chr(0))) + 1} of {name} holds a NUL: it is no text")
    return text


def _entries(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Line numbers and values; empty lines at the end of the file are none."""
    found = _first_fields(name, text) if name.strip("'\"").lower().endswith(".csv") else _lines(text)
    for number, value in found:
        if not value:
            raise SchemaError(f"line {number} of {name} is empty; remove it, or fill it in")
        if value != value.strip():
            raise SchemaError(f"line {number} of {name} begins or ends with a space; remove it")
        yield number, value


def _lines(text: str) -> Iterator[tuple[int, str]]:
    lines = text.rstrip().replace("\r\n", "\n").split("\n")
    return enumerate(lines if text.strip() else [], start=1)


def _first_fields(name: str, text: str) -> Iterator[tuple[int, str]]:
    """The first fields of the rows below the header, with the lines on which rows end."""
    reader = csv.reader(io.StringIO(text.rstrip(), newline=""))
    try:
        next(reader, None)
        for row in reader:
            yield reader.line_num, row[0] if row else ""
    except csv.Error as err:
        raise_alone(SchemaError(f"line {reader.line_num} of {name} cannot be read as CSV: {err}"))


def _whole(text: str, name: str, number: int) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        raise SchemaError(
            f"line {number} of {name} is not a whole number, and the values are numbers because `other` is one; write "
            "`other` as a string for a list of strings"
        )
    return int(text)


# ---------------------------------------------------------------------------------------------------------- hierarchies
# Hierarchies of codes: which codes are siblings, by what they begin with or by the parents that were stated.
#
#     hierarchy=[1, 3]                              "A01.1" belongs to "A01", and that to "A"
#     hierarchy={"01101": "Alabama", ...}           a code belongs to its parent, which may have a parent itself
#
# A code that is a parent of others heads its own group. `other` belongs to no group. The list of a column is put into
# the order of its hierarchy: groups in the order of their first codes, so that every group is a range of places.


Hierarchy = tuple[int, ...] | tuple[tuple[str, str], ...]
Branch = tuple[str | None, ...]

_MOST_LEVELS = 16


def parse_hierarchy(given: Any) -> Hierarchy:
    """A hierarchy as a column keeps it: lengths of prefixes, or pairs of a code and its parent."""
    if isinstance(given, Mapping):
        given = tuple(given.items())
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or not given:
        raise SchemaError(
            f"Category: hierarchy={brief(given)} is not a list of prefix lengths such as [1, 3] or a mapping from "
            "values to their parents"
        )
    if all(type(length) is int for length in given):
        is_ascending = list(given) == sorted(set(given))
        if given[0] < 1 or not is_ascending or len(given) > _MOST_LEVELS:
            raise SchemaError(
                f"Category: hierarchy={brief(list(given))} is not a list of at most {_MOST_LEVELS} ascending numbers "
                "of characters such as [1, 3]"
            )
        return tuple(given)
    if not all(isinstance(pair, tuple) and len(pair) == 2 and all(map(_is_label, pair)) for pair in given):
        raise SchemaError("Category: hierarchy maps values to parents, and both must be strings or whole numbers")
    check_characters((label for pair in given for label in pair), "Category: hierarchy: ")
    return tuple((str(child), str(parent)) for child, parent in given)


def hierarchy_to_plain(hierarchy: Hierarchy) -> list[int] | dict[str, str]:
    """A hierarchy as TOML and JSON have it."""
    lengths = [length for length in hierarchy if isinstance(length, int)]
    return lengths or {pair[0]: pair[1] for pair in hierarchy if isinstance(pair, tuple)}


def in_hierarchy_order(values: Sequence[Any], hierarchy: Hierarchy, other: Any) -> tuple[Any, ...]:
    """The values so that every group is a range; `other` is the last."""
    groups = _group_numbers(_paths(values, hierarchy, other))
    places = sorted(range(len(values)), key=lambda place: (values[place] == other, groups[place]))
    return tuple(values[place] for place in places)


def group_starts(values: Sequence[Any], hierarchy: Hierarchy, other: Any) -> list[list[int]]:
    """For every level, coarse to fine, the places but the first at which a group begins, of values in that order."""
    groups = _group_numbers(_paths(values, hierarchy, other))
    return [
        [place for place in range(1, len(groups)) if groups[place][level] != groups[place - 1][level]]
        for level in range(len(groups[0]))
    ]


def _paths(values: Sequence[Any], hierarchy: Hierarchy, other: Any) -> list[Branch]:
    """The groups of every value, coarse to fine, as many for each: what is in no more groups is one by itself."""
    lengths = [length for length in hierarchy if isinstance(length, int)]
    prefixes: list[Branch] = [tuple(str(value)[:length] for length in lengths) for value in values]
    paths = prefixes if lengths else _ancestors(values, dict(_pairs(hierarchy)))
    n_levels = max(map(len, paths))
    return [
        (None,) * n_levels if value == other else (*path, *[str(value)] * (n_levels - len(path)))
        for value, path in zip(values, paths, strict=True)
    ]


def _ancestors(values: Sequence[Any], parents: Mapping[str, str]) -> list[Branch]:
    """The chain of parents of every value, the value itself last where it is a parent."""
    labels = [str(value) for value in values]
    known, heads = {*labels, *parents.values()}, set(parents.values())
    for child in parents:
        if child not in known:
            raise SchemaError(
                f"Category: hierarchy names {brief(child)}, which is neither a value nor a parent of one"
                f"{did_you_mean(child, known)}"
            )
    return [_chain(label, parents, heads) for label in labels]


def _chain(label: str, parents: Mapping[str, str], heads: set[str]) -> Branch:
    chain = [label] if label in heads else []
    parent = parents.get(label)
    while parent is not None:
        chain.append(parent)
        if len(chain) > _MOST_LEVELS:
            raise SchemaError(
                f"Category: hierarchy has more than {_MOST_LEVELS} parents above {brief(label)}, or goes in a circle"
            )
        parent = parents.get(parent)
    return tuple(reversed(chain))


def _pairs(hierarchy: Hierarchy) -> list[tuple[str, str]]:
    pairs = [pair for pair in hierarchy if isinstance(pair, tuple)]
    seen: set[str] = set()
    for child, _ in pairs:
        if child in seen:
            raise SchemaError(f"Category: hierarchy gives {brief(child)} two parents; give it one")
        seen.add(child)
    return pairs


def _group_numbers(paths: Sequence[Branch]) -> list[tuple[int, ...]]:
    """Groups by number, in the order of their first values; a group is one of its level and of its own group."""
    numbers: list[dict[Branch, int]] = [{} for _ in paths[0]]
    return [
        tuple(known.setdefault(path[: level + 1], len(known)) for level, known in enumerate(numbers)) for path in paths
    ]


def _is_label(label: Any) -> bool:
    return type(label) in (str, int)


# ------------------------------------------------------------------------------------------------------------- category
# The column: places in its list underneath, and what is not in the list is refused or counted as `other`.


PRIVATE = "private"
_NOT_LISTED = (
    "some value is not in the schema's list of values; recode it, add it if the column's codebook has it, or count it "
    'as another value (other="other"), and mind capitals and spaces (pandas: .str.strip())'
)


@dataclass(frozen=True, slots=True, repr=False)
class Category(Listed):
    """One of a list of values, all strings or all whole numbers. The order of the list is kept by the tree.

    >>> Category(["low", "middle", "high"])
    Category(values=('low', 'middle', 'high'))

    Args:
        values: every value that the column may take, whether or not it occurs; "private" finds the common ones
            privately, using part of epsilon and delta, in a forest only.
        other: the value that stands for all that are not in the list, which it joins; by default such values are
            refused. With values="private" it is "other" unless stated; a whole number means that values are numbers.
        values_from: the path of a file that lists the values, one a line, or in the first column of a CSV below its
            header; instead of `values`. They are strings, unless `other` is a whole number.
        hierarchy: which values belong together: lengths of prefixes such as [1, 3], or a mapping from values to their
            parents. The list is put into the order of the hierarchy, and rare values of a forest share the noise of
            their group.
        nullable: whether values may be missing.
        bits: the resolution of the column, 2^bits cells; by default the synthesizer chooses.
    """

    type_name: ClassVar[str] = "category"
    _axis_kind: ClassVar[AxisKind] = "category"
    _spark_cast: ClassVar[str] = WHOLE_CAST
    _spelling_remedy: ClassVar[str] = WHOLE_REMEDY

    values: tuple[str, ...] | tuple[int, ...] | Literal["private"] = ()
    other: str | int | None = field(default=None, kw_only=True)
    values_from: Any = field(default=None, kw_only=True)  # None once the file has been read
    hierarchy: Hierarchy | None = field(default=None, kw_only=True)
    _places: dict[Any, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        Column.__post_init__(self)
        other = self.other.item() if type(self.other).__module__ == "numpy" else self.other  # type: ignore[union-attr]
        if other is not None and type(other) not in (str, int):
            raise SchemaError(f"Category: other={brief(other)} is not a string or a whole number")
        check_characters([other], "Category: other ")
        object.__setattr__(self, "other", other)
        if self.hierarchy is not None:
            object.__setattr__(self, "hierarchy", parse_hierarchy(self.hierarchy))
        if isinstance(self.values, str) and self.values == PRIVATE:
            self._await_values()
        else:
            object.__setattr__(self, "values", self._stated_values())
        object.__setattr__(self, "values_from", None)
        object.__setattr__(self, "_places", {value: place for place, value in enumerate(self.listed)})

    def _await_values(self) -> None:
        if self.values_from is not None:
            raise SchemaError('Category: give either values_from or values="private", not both')
        if self.hierarchy is not None and not isinstance(self.hierarchy[0], int):
            raise SchemaError(
                'Category: a mapping as hierarchy lists the values, so they need not be found; give values="private" '
                "lengths of prefixes, or list the values"
            )
        if self.other is None:
            object.__setattr__(self, "other", "other")

    def _stated_values(self) -> tuple[Any, ...]:
        """The list in the order in which places count, `other` in it."""
        if self.values_from is not None:
            if not isinstance(self.values, tuple) or self.values:
                raise SchemaError("Category: give either values or values_from, not both")
            listed = read_code_list(self.values_from, is_whole=type(self.other) is int)
            object.__setattr__(self, "values", listed)
        if isinstance(self.values, str) or not hasattr(self.values, "__iter__"):
            raise SchemaError("Category: values must be a list such as ['red', 'green'], or \"private\"")
        given: tuple[Any, ...] = tuple(self.values)
        values = tuple(value.item() if type(value).__module__ == "numpy" else value for value in given)
        if not values:
            raise SchemaError("Category: values is empty; list every value that the column may take")
        if not (all(type(v) is str for v in values) or all(type(v) is int for v in values)):
            raise SchemaError(
                "Category: values must be all strings or all whole numbers; use Boolean() for true and false, and "
                "nullable=True for missing values"
            )
        check_characters(values, "Category: value ")
        known = set(values)
        if len(known) != len(values):
            raise SchemaError("Category: values repeats a value; list each once")
        if self.other is not None and self.other not in known:
            values += (self.other,)
            if type(self.other) is not type(values[0]):
                kind = "strings" if isinstance(values[0], str) else "whole numbers"
                raise SchemaError(f"Category: other={brief(self.other)} is of another type than the values, {kind}")
        if any(type(v) is int and abs(v) > LARGEST_WHOLE for v in values):
            raise SchemaError("Category: values holds a number beyond ±2^61; write such numbers as strings")
        return values if self.hierarchy is None else in_hierarchy_order(values, self.hierarchy, self.other)

    @property
    def has_values(self) -> bool:
        """Whether the list is there; one that is to be found holds `other` alone until then."""
        return self.values != PRIVATE

    def _with_values(self, values: Sequence[Any]) -> Category:
        """The same column with the list that was found, which is released, hence public from here on."""
        return replace(self, values=(*values, self.other))

    @property
    def is_text(self) -> bool:
        return isinstance(self.listed[0], str)

    @property
    def _longest_text(self) -> int:
        return max(map(len, self.listed)) if self.is_text else 0

    @property
    def listed(self) -> tuple[Any, ...]:
        return (self.other,) if isinstance(self.values, str) else self.values

    def to_dict(self) -> dict[str, Any]:
        described = Column.to_dict(self)
        if self.has_values:
            described["values"] = list(self.values)
        if self.hierarchy is not None:
            described["hierarchy"] = hierarchy_to_plain(self.hierarchy)
        return described

    # ------------------------------------------------------------------------------------------------- reading

    @property
    def _accepts(self) -> frozenset[Group]:
        # A column of floats may be all null, whatever is meant by it.
        return frozenset({"float"}) if self.is_text else frozenset({"float", "whole"})

    def _remedy(self, group: Group) -> str | None:
        if group != "whole":
            return None
        return "list the values as numbers, Category([1, 2]), or convert the column to strings (pandas: .astype(str))"

    @property
    def _fits_array(self) -> bool:
        return not self.is_text

    @property
    def _arrow_type(self) -> Any:
        return pa.string() if self.is_text else pa.int64()

    def _converter(self) -> Callable[[Any], Any]:
        return _text if self.is_text else reading.whole

    def _from_strings(self, strings: Any, spelling: Spelling = PLAIN) -> Any:
        return reading.without_missing(strings, self) if self.is_text else reading.whole_texts(strings, self, spelling)

    def _cause(self, text: str, spelling: Spelling) -> str:
        if not self.is_text:
            is_numeric = is_number(text.strip(), spelling)
            what = "it is a number that the schema does not list" if is_numeric else "it is not a number"
            return f"{what}; add it to the list of values or recode the column"
        values = {str(value) for value in self.listed}
        if text in reading.MISSING:
            return "it is empty or spells a missing value; declare the column nullable or list the value"
        if text.strip(SPACES) in values:
            return "it has spaces before or after a value that the schema lists; remove them"
        if text.strip().casefold() in {value.casefold() for value in values}:
            return "it differs from a value that the schema lists in upper and lower case only; recode the column"
        return (
            "it is not in the schema's list of values; recode it, or add it to the list if the column's codebook has it"
        )

    def _keys(self, values: Any) -> Any:
        """A column of a table as an Arrow array of its strings or whole numbers, before they are looked up."""
        return reading.strings_of(values) if self.is_text else reading.whole_numbers(values)

    def _read(self, values: Any) -> Physical:
        """Places in the schema's list. A column that was stored as a list of its own and places in that stays so."""
        stored = reading.one_array(values, decode=False)
        is_coded = self.is_text and pa.types.is_dictionary(stored.type)
        known = self._keys(stored.dictionary if is_coded else stored)
        found, is_missing = pc.index_in(known, value_set=pa.array(self.listed, type=known.type)), known.is_null()
        if self.other is not None:
            found = pc.if_else(is_missing, found, pc.fill_null(found, self._places[self.other]))
        if is_coded:
            numbers = pc.fill_null(
                pc.if_else(is_missing, reading.MISSING_CODE, found.cast(pa.int64())), reading.UNLISTED_CODE
            )
            physical = reading.looked_up(stored.indices, numbers)
            if physical is None:
                raise InputError(_NOT_LISTED)
            return physical
        if found.null_count > (pc.sum(is_missing).as_py() or 0):
            raise InputError(_NOT_LISTED)
        return reading.with_mask(found)

    def _lookup_key(self, value: nw.Expr, dtype: Any) -> nw.Expr:
        """What a value is looked up by: its text or its whole number."""
        if self.is_text:
            return value
        number = reading.whole_expression(value, dtype)
        return nw.when(~number.is_missing & ~number.is_wrong).then(number.number)

    def _expression(self, value: nw.Expr, dtype: Any, *, place: nw.Expr | None = None) -> reading.Reading:
        if self.is_text and dtype.is_float():  # nulls alone, or nothing that can be meant
            is_number = value.is_finite().fill_null(False)
            return reading.Reading(nw.when(is_number).then(0).otherwise(0).cast(nw.Int64), ~is_number, is_number)
        number = None if self.is_text else reading.whole_expression(value, dtype)
        is_missing = value.is_null() if number is None else number.is_missing
        if place is None:
            key = self._lookup_key(value, dtype)
            place = nw.lit(-1)
            for index in reversed(range(len(self.listed))):
                place = nw.when(key == self.listed[index]).then(nw.lit(index)).otherwise(place)
        found = place.cast(nw.Int64).fill_null(-1)
        if self.other is None:
            return reading.Reading(found, is_missing, ~is_missing & (found < 0))
        is_wrong = nw.lit(False) if number is None else ~is_missing & number.is_wrong
        return reading.Reading(nw.when(found < 0).then(self._places[self.other]).otherwise(found), is_missing, is_wrong)

    @property
    def _complaint(self) -> str:
        if self.other is None:
            return _NOT_LISTED
        return f"some value is not {'a string' if self.is_text else 'a whole number'}; clean the column"

    def _from_spark(self, value: Any, kind: Any) -> Any:
        return reading.plain(value, kind)

    # ------------------------------------------------------------------------------------ writing and asking

    def _to_arrow(self, positions: NDArray[np.float64]) -> Any:
        steps, is_null = reading.whole_steps(positions, len(self.listed))
        return pa.array(self.listed).take(pa.array(steps, mask=is_null))

    def _place_of(self, value: Any, *, name: str, argument: str) -> int:
        if isinstance(value, (str, AnyReal)) and not isinstance(value, bool) and value in self._places:
            return self._places[value]
        hint = meant(value, self.listed)
        raise ParameterError(f"{argument}: {shown(value)} is not a value of column {name!r}{hint}")

    def _from_option(self, text: str, *, name: str, option: str) -> Any:
        spelt = {str(value): value for value in self.listed}
        for spelling in (text, text.strip()):
            if spelling in spelt:
                return spelt[spelling]
        hint = did_you_mean(text, spelt)
        raise ParameterError(f"{option}: {text!r} is not a value of column {name!r}{hint}")

    @classmethod
    def _template(cls, kind: Any, bounds: Callable[..., Sequence[str]]) -> list[str] | None:
        del bounds
        if not reading.is_string(kind):
            return None
        return [
            'type = "category"',
            '# values = ["", ""]  # every value that the column can have, whether or not it occurs',
            '# other = "other"  # counts what is not listed as this value, instead of refusing it',
            '# if it names a row or a person: type = "identifier" and nothing else',
        ]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(
            "some value is not a string; list the values as numbers, Category([1, 2]), or convert the column to strings"
        )
    return str.__str__(value)  # a subclass may have a __str__ of its own
