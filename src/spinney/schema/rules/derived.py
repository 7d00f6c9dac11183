"""A column that follows from another: codes by a mapping, bands by cuts, parts of dates, shares, the same value.

It is neither read nor modelled: it is computed in synthetic rows, so it always holds and costs nothing. A condition on
it is a condition on its source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, time
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from spinney.columns import Bounded, Category, Column, Integer, Number
from spinney.columns.base import check_characters
from spinney.errors import SchemaError, raise_alone
from spinney.machine import lazily
from spinney.schema.rules.base import (
    Columns,
    Derivation,
    Places,
    ValueSet,
    before,
    check_name,
    physical_of,
    places_in_list,
    universe,
)
from spinney.schema.rules.base import (
    Number as Physical,
)
from spinney.schema.rules.calendar import (
    MONTHS,
    PARTS,
    check_arithmetic,
    products,
    runs_of_part,
    sets_of_part,
    share_text,
    slack_of,
    sources_of,
    spellings,
)
from spinney.text import brief, did_you_mean

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray
else:
    (np,) = lazily("numpy")


# Whole numbers of use have no more digits than this.
_LONGEST_NUMBER = 20


@dataclass(frozen=True, slots=True, repr=False)
class Derived(Derivation):
    """`column` follows from `source`: `Derived("sector", "industry", by={"0170": "farming", "7860": "education"})`.

    Numbers are cut into bands: `Derived("band", "income", cuts=[20_000, 50_000], labels=["low", "middle", "high"])`.
    A value at a cut belongs to the band above it. Dates have parts, `Derived("fiscal_year", "approved", part="year",
    starting="October")`, numbers have shares, `Derived("guaranteed", "approved", times="0.75")`, and with nothing
    stated the column has the value of its source: `Derived("billed", "paid")`.

    Args:
        column: the name of the column that is computed.
        source: the name of the column that it follows from; of several, a list of names.
        by: the value of `column` for each value of the source; of several sources, for each tuple of values.
        cuts: instead of `by`, where a band ends and the next begins, ascending.
        labels: the value of `column` in each band, one more than there are cuts.
        default: the value for all that `by` does not name. Without it, `by` names every value of the source.
        null: the value where the source is null; by default null.
        part: of a date or datetime, its "year", "quarter", "month" or "weekday", as a whole number (weekdays from 1 for
            Monday), or as one of the values of a category: "Monday", "Mon", "March", "Mar", "Q1", "2024".
        starting: the month in which years begin, such as "October"; years are named after the one in which they end.
        times: what a number is multiplied by, such as "0.75"; the product is rounded to the steps of `column`.
    """

    type_name: ClassVar[str] = "derived"

    column: str
    source: Any  # kept as a tuple of names
    by: Any = field(default=None, kw_only=True)  # kept as a tuple of pairs
    cuts: Any = field(default=None, kw_only=True)
    labels: Any = field(default=None, kw_only=True)
    default: Any = field(default=None, kw_only=True)
    null: Any = field(default=None, kw_only=True)
    part: str | None = field(default=None, kw_only=True)
    starting: str | None = field(default=None, kw_only=True)
    times: Any = field(default=None, kw_only=True)  # kept as text

    def __post_init__(self) -> None:
        names = (self.source,) if isinstance(self.source, str) else self.source
        if not isinstance(names, (list, tuple)) or not names:
            raise SchemaError(f"Derived: source={brief(self.source)} is not the name of a column, or a list of names")
        for name in (self.column, *names):
            check_name(self, name)
        if len(set(names)) != len(names):
            raise SchemaError("Derived: source names a column twice; name each once")
        object.__setattr__(self, "source", tuple(names))
        for option in ("default", "null"):
            object.__setattr__(self, option, self._values([getattr(self, option)], option)[0])
        stated = [name for name in ("by", "cuts", "part", "times") if getattr(self, name) is not None]
        if len(stated) > 1:
            raise SchemaError(f"Derived: column {self.column!r} takes one of by, cuts, part and times; keep one")
        if "by" not in stated and (len(self.source) > 1 or self.default is not None):
            what = stated[0] if stated else "its source alone"
            raise SchemaError(f"Derived: column {self.column!r} has {what}, which takes one source and no default")
        if "by" not in stated and "cuts" not in stated:
            self._check_words()
            return
        if self.cuts is None:
            if self.labels is not None:
                raise SchemaError(f"Derived: column {self.column!r} has labels without cuts; state where bands end")
            object.__setattr__(self, "by", self._pairs(self.by))
            return
        for option in ("cuts", "labels"):
            object.__setattr__(self, option, self._values(getattr(self, option), option))
        if not self.cuts or len(self.labels) != len(self.cuts) + 1:
            raise SchemaError(
                f"Derived: column {self.column!r} has {len(self.cuts)} cuts and {len(self.labels)} labels; give one "
                "cut or more, and one label more than cuts"
            )

    def _check_words(self) -> None:
        """What is stated of parts and shares makes sense by itself."""
        about = f"Derived: column {self.column!r}"
        if self.labels is not None:
            raise SchemaError(f"{about} has labels without cuts; state where bands end")
        if self.part is not None and self.part not in PARTS:
            raise SchemaError(f"{about}: part={brief(self.part)} is not one of {', '.join(PARTS)}")
        if self.starting is not None:
            if self.part not in ("year", "quarter"):
                raise SchemaError(
                    f"{about}: starting says when years begin; it goes with part='year' or part='quarter'"
                )
            if self.starting not in MONTHS:
                hint = did_you_mean(self.starting, MONTHS)
                raise SchemaError(f"{about}: starting={brief(self.starting)} is not a month such as 'October'{hint}")
        if self.times is not None:
            object.__setattr__(self, "times", share_text(self.times, about))

    def _values(self, listed: Any, option: str) -> tuple[Any, ...]:
        try:
            values = tuple(_plain(value) for value in ([object()] if isinstance(listed, (str, Mapping)) else listed))
        except TypeError:
            told = f"Derived: column {self.column!r}: {option}={brief(listed)} is not a list of values"
            raise_alone(SchemaError(told))
        check_characters(values, f"Derived: column {self.column!r}: {option}: ")
        return values

    def _pairs(self, by: Any) -> tuple[tuple[Any, Any], ...]:
        """A mapping, or a list of pairs as JSON and TOML hold it, as pairs of a key and a value."""
        if isinstance(by, Mapping):
            by = list(by.items())
        try:
            pairs = tuple((_key(key), _plain(value)) for key, value in by)
            is_fine = bool(pairs) and len({key for key, _ in pairs}) == len(pairs)
        except (TypeError, ValueError):
            is_fine = False
        if not is_fine:
            raise SchemaError(
                f"Derived: by of column {self.column!r} is not a mapping from values of the source, each once, to "
                "values of the column"
            )
        texts = [text for key, value in pairs for text in (value, *(key if isinstance(key, tuple) else (key,)))]
        check_characters(texts, f"Derived: by of column {self.column!r}: ")
        return pairs

    @property
    def sources(self) -> tuple[str, ...]:
        names: tuple[str, ...] = self.source
        return names

    def check(self, columns: Columns) -> None:
        if self.column in self.sources:
            raise SchemaError(f"Derived: column {self.column!r} is its own source; name another")
        column = columns[self.column]
        if self.is_arithmetic:
            check_arithmetic(self.column, self.sources[0], self.times, columns)
            self._check_null(columns)
            return
        for name in self.columns:
            if isinstance(kind := columns[name], Category) and not kind.has_values:
                raise SchemaError(f"Derived: column {name!r} has no list of values yet; list its values")
        if not column.listed and not isinstance(column, Number):
            raise SchemaError(
                f"Derived: column {self.column!r} is of type {column.type_name}; a category, a boolean, an integer or "
                "a real can be derived"
            )
        if self.cuts is None and self.part is None:
            self._check_mapping(columns)
        else:
            self.bands(columns)
        self._check_null(columns)

    @property
    def is_arithmetic(self) -> bool:
        """Whether the column is a share of its source, or has its value."""
        return self.by is None and self.cuts is None and self.part is None

    @property
    def share(self) -> float:
        """What a number is multiplied by, as a float."""
        return float(Fraction(self.times or 1))

    def _check_null(self, columns: Columns) -> None:
        column = columns[self.column]
        if self.null is not None:
            self._number(self.null, column)
        if not column.nullable and self.null is None:
            for name in self.sources:
                if columns[name].nullable:
                    raise SchemaError(
                        f"Derived: column {self.column!r} is null where {name!r} is; declare it nullable, or state "
                        "its value there as null"
                    )

    def _number(self, value: Any, column: Column, places: Places | None = None) -> Physical:
        """A value of the derived column as its physical number."""
        about = f"Derived: column {self.column!r}"
        if column.listed:
            place = (places_in_list(column) if places is None else places).get((type(value), value))
            if place is None:
                raise SchemaError(f"{about}: {brief(value)} is not a value of it{did_you_mean(value, column.listed)}")
            return place
        assert isinstance(column, Bounded)
        if not column.has_bounds:
            raise SchemaError(f"{about} is computed, so its bounds are not estimated; state them")
        number, (least, most) = physical_of(column, value, about), universe(column)
        if not least <= number <= most or (column.is_whole and column._aligned(number, up=True) != number):
            raise SchemaError(f"{about}: {brief(value)} is not within its bounds and steps; widen them")
        return number

    # --------------------------------------------------------------------------------------------------- mappings

    def _key_places(self, key: Any, sources: list[Column], known: list[Places]) -> tuple[int, ...]:
        """A key of the mapping as physical numbers of the sources."""
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != len(self.sources):
            raise SchemaError(
                f"Derived: by of column {self.column!r} has the key {brief(key)}, which is not one value for each of "
                f"{len(self.sources)} sources"
            )
        return tuple(self._place(*each) for each in zip(keys, self.sources, sources, known, strict=True))

    def _place(self, value: Any, name: str, source: Column, known: Places) -> int:
        about = f"Derived: by of column {self.column!r}"
        if isinstance(source, Integer):
            return int(physical_of(source, int(value) if _is_whole_text(value) else value, about))
        place = known.get((type(value), value))
        if place is None and isinstance(value, str) and not source.is_text:  # keys of TOML and JSON are strings
            place = {_spelt(other): at for (_, other), at in known.items()}.get(value)
        if place is None:
            hint = did_you_mean(value, source.listed)
            raise SchemaError(f"{about}: {brief(value)} is not a value of column {name!r}{hint}")
        return place

    def _check_mapping(self, columns: Columns) -> None:
        sources = [columns[name] for name in self.sources]
        for name, source in zip(self.sources, sources, strict=True):
            if not source.listed and not isinstance(source, Integer):
                raise SchemaError(
                    f"Derived: column {name!r} is of type {source.type_name}; by takes a category, a boolean or an "
                    "integer as source, and cuts take numbers, dates and times"
                )
        found = self._outcomes(columns)
        if self.default is not None:
            self._number(self.default, columns[self.column])
            return
        n_values = 1
        for source in sources:
            if isinstance(source, Integer) and not source.has_bounds:
                raise SchemaError(f"Derived: column {self.column!r} needs a default: its source has no bounds yet")
            step = source.step if isinstance(source, Integer) else 1
            least, most = universe(source)
            n_values *= (int(most) - int(least)) // step + 1
        if len(found) < n_values:
            missing = f"{n_values - len(found):,} of {n_values:,} values"
            raise SchemaError(
                f"Derived: by of column {self.column!r} leaves out {missing} of its source"
                f"{self._first_missing(found, sources)}; name them, or state a default"
            )

    def _first_missing(self, found: Mapping[tuple[int, ...], Any], sources: list[Column]) -> str:
        if len(sources) == 1 and sources[0].listed:
            return f", such as {next(v for place, v in enumerate(sources[0].listed) if (place,) not in found)!r}"
        return ""

    def _outcomes(self, columns: Columns) -> dict[tuple[int, ...], Physical]:
        """The physical number of the column for each combination of its sources' that `by` names."""
        found: dict[tuple[int, ...], Physical] = {}
        sources, column = [columns[name] for name in self.sources], columns[self.column]
        known, outcomes = [places_in_list(source) for source in sources], places_in_list(column)
        for key, value in self.by:
            places = self._key_places(key, sources, known)
            if places in found:
                raise SchemaError(f"Derived: by of column {self.column!r} names {brief(key)} twice; name it once")
            found[places] = self._number(value, column, outcomes)
        return found

    def outcomes(self, columns: Columns) -> tuple[Physical | None, Physical | None, dict[tuple[int, ...], Physical]]:
        """Physical numbers of the column: by default, where a source is null, and for what `by` names."""
        column = columns[self.column]
        default, null = (None if v is None else self._number(v, column) for v in (self.default, self.null))
        return default, null, self._outcomes(columns)

    # ------------------------------------------------------------------------------------------------------ bands

    def bands(self, columns: Columns) -> tuple[list[Physical], list[Physical]]:
        """Where bands begin, and the physical numbers of their labels; of a part of dates, its runs."""
        name = self.sources[0]
        source, column = columns[name], columns[self.column]
        if self.part is not None:
            starts, parts = runs_of_part(name, source, self.part, self.starting, f"Derived: column {self.column!r}")
            known = {part: self._part_number(part, column) for part in dict.fromkeys(parts)}
            begins: list[Physical] = [*starts[1:]]
            return begins, [known[part] for part in parts]
        if not isinstance(source, Bounded):
            raise SchemaError(
                f"Derived: column {name!r} is of type {source.type_name}, which has no order; give by, a mapping"
            )
        cuts = [
            physical_of(source, cut, f"Derived: cuts of column {self.column!r}: column {name!r}") for cut in self.cuts
        ]
        if any(lower >= upper for lower, upper in pairwise(cuts)):
            raise SchemaError(f"Derived: cuts of column {self.column!r} are not ascending; put them in order")
        return cuts, [self._number(label, column) for label in self.labels]

    def _part_number(self, part: int, column: Column) -> Physical:
        """The physical number of a part of dates: the number itself, or a value of a list that is spelt like it."""
        if isinstance(column, Integer):
            return self._number(part, column)
        if not column.listed:
            raise SchemaError(
                f"Derived: column {self.column!r} is of type {column.type_name}; parts of dates are integers or values "
                "of a category"
            )
        spelt = spellings(str(self.part), part)
        value = next((one for one in spelt if (type(one), one) in places_in_list(column)), None)
        if value is None:
            raise SchemaError(
                f"Derived: column {self.column!r} has no value for {self.part} {part}; list "
                f"{' or '.join(map(repr, spelt))}"
            )
        return self._number(value, column)

    # --------------------------------------------------------------------------------------------- rows and sets

    def numbers(self, sources: list[NDArray[Any]], columns: Columns) -> NDArray[np.float64]:
        """The column's physical numbers where those of its sources are these; NaN is null."""
        is_null = np.logical_or.reduce([np.isnan(numbers) for numbers in sources])
        null = np.nan if self.null is None else self._number(self.null, columns[self.column])
        if self.is_arithmetic:
            source, column = columns[self.sources[0]], columns[self.column]
            return np.where(is_null, null, products(np.where(is_null, 0.0, sources[0]), source, column, self.times))
        if self.cuts is not None or self.part is not None:
            cuts, labels = self.bands(columns)
            found = np.array(labels, dtype=np.float64)[np.searchsorted(np.array(cuts), sources[0], side="right")]
            return np.where(is_null, null, found)
        outcomes = self._outcomes(columns)
        default = np.nan if self.default is None else self._number(self.default, columns[self.column])
        code = np.zeros(len(is_null), dtype=np.int64)
        keys = np.zeros(len(outcomes), dtype=np.int64)
        for place, numbers in enumerate(sources):
            known = np.array([key[place] for key in outcomes], dtype=np.int64)
            values, inverse = np.unique(known, return_inverse=True)
            at = np.minimum(np.searchsorted(values, np.where(is_null, values[0], numbers)), len(values) - 1)
            at = np.where(values[at] == numbers, at, len(values))  # what no key names is one more
            code, keys = code * (len(values) + 1) + at, keys * (len(values) + 1) + inverse
        order = np.argsort(keys)
        at = np.minimum(np.searchsorted(keys[order], code), len(keys) - 1)
        found = np.where(
            keys[order][at] == code, np.array(list(outcomes.values()), dtype=np.float64)[order][at], default
        )
        return np.where(is_null, null, found)

    def compute(self, arrays: Mapping[str, pa.Array], columns: Columns, drawn: pa.Array | None) -> pa.Array:
        del drawn
        sources = []
        for name in self.sources:
            physical = columns[name]._read(arrays[name])
            values = np.asarray(physical.values, dtype=np.float64)
            sources.append(values if physical.is_null is None else np.where(physical.is_null, np.nan, values))
        column = columns[self.column]
        return column._to_arrow(column._to_positions(self.numbers(sources, columns)))

    def holds(self, rows: Mapping[str, NDArray[Any]], schema: Columns) -> NDArray[Any]:
        expected = self.numbers([rows[name] for name in self.sources], schema)
        if self.times is not None:  # a table may have rounded otherwise
            source = rows[self.sources[0]]
            is_far = np.abs(rows[self.column] - source * self.share) > slack_of(schema[self.column])
            return np.asarray(
                np.where(
                    np.isnan(source),
                    (expected == rows[self.column]) | (np.isnan(expected) & np.isnan(rows[self.column])),
                    ~is_far & ~np.isnan(rows[self.column]),
                )
            )
        return np.asarray((expected == rows[self.column]) | (np.isnan(expected) & np.isnan(rows[self.column])))

    def groups(self, columns: Columns) -> list[tuple[Physical | None, ValueSet]]:
        """For each value of the column (None is null), the values of its one source with which it has that."""
        if len(self.sources) > 1:
            raise SchemaError(
                f"column {self.column!r} follows from several columns, {', '.join(map(repr, self.sources))}; state the "
                "condition on these"
            )
        source = columns[self.sources[0]]
        least, most = universe(source)
        default = None if self.default is None else self._number(self.default, columns[self.column])
        ranges: dict[Physical, list[tuple[Physical, Physical]]] = {}
        if self.is_arithmetic:
            places = ((at, ValueSet(((at, at),))) for at in range(len(columns[self.column].listed)))
            return [(at, self.preimage(one, columns)) for at, one in places] + self._null_group(columns)
        if self.part is not None:
            self.bands(columns)  # which says what is wrong
            parts = sets_of_part(source, self.part, self.starting)
            found_parts = {self._part_number(part, columns[self.column]): group for part, group in parts}
            return [*found_parts.items(), *self._null_group(columns)]
        if self.cuts is not None:
            cuts, labels = self.bands(columns)
            for label, low, high in zip(labels, [least, *cuts], [*map(before, cuts), most], strict=True):
                if max(low, least) <= min(high, most):
                    ranges.setdefault(label, []).append((max(low, least), min(high, most)))
        else:
            for (place,), outcome in self._outcomes(columns).items():
                ranges.setdefault(outcome, []).append((place, place))
            named = ValueSet.of(pair for pairs in ranges.values() for pair in pairs)
            if default is not None and (others := named.outside(source).ranges):
                ranges.setdefault(default, []).extend(others)
        found: dict[Physical | None, ValueSet] = {number: ValueSet.of(pairs) for number, pairs in ranges.items()}
        for null, group in self._null_group(columns):
            found[null] = found.get(null, ValueSet()) | group
        return list(found.items())

    def _null_group(self, columns: Columns) -> list[tuple[Physical | None, ValueSet]]:
        """The value of the column where its source is null, if it ever is."""
        if not columns[self.sources[0]].nullable:
            return []
        return [(self.null_number(columns), ValueSet(has_null=True))]

    def null_number(self, columns: Columns) -> Physical | None:
        """The physical number of the column where a source is null; None is null."""
        return None if self.null is None else self._number(self.null, columns[self.column])

    def preimage(self, wanted: ValueSet, columns: Columns) -> ValueSet:
        if self.is_arithmetic:
            source, column = columns[self.sources[0]], columns[self.column]
            null = self.null_number(columns)
            is_null = wanted.has_null if null is None else null in wanted
            found = sources_of(wanted, source, column, self.times)
            return ValueSet(found.ranges, is_null and source.nullable)
        groups = self.groups(columns)
        parts = [part for number, part in groups if (wanted.has_null if number is None else number in wanted)]
        has_null = any(part.has_null for part in parts)
        return ValueSet.of((pair for part in parts for pair in part.ranges), has_null=has_null)

    def to_dict(self) -> dict[str, Any]:
        source: Any = self.sources[0] if len(self.sources) == 1 else list(self.sources)
        described: dict[str, Any] = {"type": self.type_name, "column": self.column, "source": source}
        if self.by is None and self.cuts is None:
            stated = {"part": self.part, "starting": self.starting, "times": self.times}
            described |= {name: value for name, value in stated.items() if value is not None}
        elif self.cuts is not None:
            described |= {"cuts": list(self.cuts), "labels": list(self.labels)}
        elif len(self.sources) == 1:
            described["by"] = {_spelt(key): value for key, value in self.by}
        else:
            described["by"] = [[list(key), value] for key, value in self.by]
        stated = {"default": self.default, "null": self.null}
        return described | {name: value for name, value in stated.items() if value is not None}

    def __repr__(self) -> str:
        source = self.sources[0] if len(self.sources) == 1 else list(self.sources)
        if self.cuts is not None:
            how = f", cuts={list(self.cuts)!r}, labels={list(self.labels)!r}"
        elif self.by is None:
            how = ""
        else:
            how = f", by={dict(self.by)!r}" if len(self.by) <= 8 else f", by=<{len(self.by)} values>"
        words = {"part": self.part, "starting": self.starting, "times": self.times}
        stated = words | {"default": self.default, "null": self.null}
        more = "".join(f", {name}={value!r}" for name, value in stated.items() if value is not None)
        return f"Derived({self.column!r}, {source!r}{how}{more})"


def _plain(value: Any) -> Any:
    """A value in Python's own types; a TypeError where it is none that a column can have."""
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    if value is not None and not isinstance(value, (str, int, float, date, time)):
        raise TypeError
    return value


def _key(key: Any) -> Any:
    return tuple(_plain(part) for part in key) if isinstance(key, (list, tuple)) else _plain(key)


def _spelt(key: Any) -> str:
    """A key as TOML and JSON hold it."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def _is_whole_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_NUMBER and value.strip().lstrip("-").isdecimal()
