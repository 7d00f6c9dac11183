"""Whether single rows make sense: what is equal, proportional, round, in order or a code in them. NOT PRIVATE.

Distances of columns do not see a single row: two amounts may be the same in most real rows and in no synthetic one
while both columns are right. These figures are what a person who reads rows looks at, counted in both tables:

    related    shares of rows in which two columns of one kind are equal, or one is a fixed percentage of the other
    grain      of columns in whole steps, the shares that are multiples of 10, 100 and 1000 steps; distinct values
    days       of dates, the shares on weekends and at the ends of months
    lags       how far the later of two ordered columns is from the earlier, and how often the order is broken
    codes      values far beyond all others, such as 98 for "unknown", alone and together in a row
    common     the commonest values of every column, with their shares in both tables
    rows       a few rows of both tables

What is looked at is chosen by looking at both tables: relations that only synthetic rows have are shown as well.
A column is taken once (`look`), so that tables of many columns are read once; `together` does the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spinney import documents
from spinney.columns import Column, Date, Datetime, Number, exact
from spinney.compiled import compiled
from spinney.metrics.reading import Distribution, Floats, Side, Tables, Truths
from spinney.schema.rules import AtMost, Rule
from spinney.schema.schema import Schema, SchemaLike
from spinney.text import cut, printable

HOLDER_ONLY = "FOR THE HOLDER ONLY"
N_SHOWN = 5  # rows of each table
N_COMMONEST = 20  # values of each column
MULTIPLES = (10, 100, 1000)
# A relation is shown where so many rows of either table hold it, well above what holds by chance.
LEAST_RELATED = 0.01
_ABOVE_CHANCE = 1.5
_HIGHEST_PERCENT = 200
# With fewer steps than this, neighbouring percentages of a number are hardly apart.
_FEWEST_STEPS = 1_000
_ROUNDING = 1e-9  # of a number, to be another or a percentage of it
_MOST_RELATED = 40  # columns of one kind
# Two dates are in order where so few real rows say otherwise.
_MOST_DISORDERED = 0.01
_MOST_CODES = 5  # values of one column
_FEWEST_CODED = 10  # rows of a code
_DAY = 86_400_000_000  # microseconds
_LONGEST, _LONGEST_IN_ROW = 60, 12  # characters of a value that are shown
_MOST_LINES = 60  # lines of a page of text, of one kind


Line = tuple[str, str, str, str]  # whose figure, which, real, synthetic


class Both(NamedTuple):
    """A figure of the real table, and of the synthetic one."""

    real: float
    synthetic: float


@dataclass(frozen=True, slots=True)
class Related:
    """Shares of all rows in which `column` is `percent` hundredths of `base`, neither of them null or 0."""

    column: str
    base: str
    percent: int  # 100 where the two are equal
    shares: Both

    def lines(self) -> list[Line]:
        """The figure as lines of a table."""
        relation = "" if self.percent == 100 else f"{self.percent} % of "
        return [(self.column, f"= {relation}{self.base}", *_percents_of(self.shares))]


@dataclass(frozen=True, slots=True)
class Grain:
    """A column in whole steps.

    Attributes:
        column: its name.
        step: what it comes in, such as 0.01.
        multiples: shares of its values that are multiples of so many steps; only of what is small beside the values.
        distinct: how many values occur, which grows with the number of rows.
    """

    column: str
    step: float
    multiples: Mapping[int, Both]
    distinct: Both

    def lines(self) -> list[Line]:
        """The figures as lines of a table."""
        found = [
            (self.column, f"multiples of {self.step * multiple:g}", *_percents_of(shares))
            for multiple, shares in self.multiples.items()
        ]
        return [*found, (self.column, "distinct values", *_numbers_of(self.distinct))]


@dataclass(frozen=True, slots=True)
class Days:
    """Shares of dates on a Saturday or Sunday, and on the last day of a month."""

    column: str
    weekends: Both
    month_ends: Both

    def lines(self) -> list[Line]:
        """The figures as lines of a table."""
        named = (("on weekends", self.weekends), ("at ends of months", self.month_ends))
        return [(self.column, name, *_percents_of(shares)) for name, shares in named]


@dataclass(frozen=True, slots=True)
class Lag:
    """`other` less `column`, in days of dates and times of a calendar.

    Attributes:
        column: the column that is never larger, or never later.
        other: the column that is never smaller.
        is_stated: whether a rule AtMost says so; otherwise nearly all real rows do.
        median: of the difference.
        most_90: what nine of ten differences are at most.
        most_99: the same of 99 in a hundred.
        longest: the largest difference.
        broken: the share of rows, null in neither column, that break the order.
    """

    column: str
    other: str
    is_stated: bool
    median: Both
    most_90: Both
    most_99: Both
    longest: Both
    broken: Both

    def lines(self) -> list[Line]:
        """The figures as lines of a table."""
        pair = f"{self.column} to {self.other}"
        named = (("median", self.median), ("90 %", self.most_90), ("99 %", self.most_99), ("longest", self.longest))
        found = [(pair, name, *_numbers_of(figures)) for name, figures in named]
        return [*found, (pair, "rows out of order", *_percents_of(self.broken))]


@dataclass(frozen=True, slots=True)
class Codes:
    """Rows with a code in each of the columns; of the synthetic table, for as many rows as the real one has.

    Attributes:
        columns: one, or several whose codes come together.
        values: the codes of the one column; none of several.
        rows: how many have them.
    """

    columns: tuple[str, ...]
    values: tuple[str, ...]
    rows: Both

    def lines(self) -> list[Line]:
        """The figure as a line of a table."""
        return [(", ".join(self.columns), ", ".join(self.values) or "in all of them", *_numbers_of(self.rows))]


class Common(NamedTuple):
    """A value of a column, None for null, and the shares of rows that have it."""

    value: str | None
    shares: Both


class _Figure(Protocol):
    def lines(self) -> list[Line]: ...


@dataclass(frozen=True, slots=True)
class Sense:
    """What a person who reads single rows would notice; not private.

    Attributes:
        related: equal and proportional columns, the most frequent first.
        grain: columns in whole steps.
        days: dates.
        lags: differences of ordered columns.
        codes: codes of single columns.
        together: codes that come together in several columns.
        common: the commonest values of each column in either table.
        rows: a few rows of the real table, and of the synthetic one, as texts by column; None is null.
    """

    related: Sequence[Related]
    grain: Sequence[Grain]
    days: Sequence[Days]
    lags: Sequence[Lag]
    codes: Sequence[Codes]
    together: Sequence[Codes]
    common: Mapping[str, Sequence[Common]] = field(repr=False)
    rows: Mapping[str, tuple[Sequence[str | None], Sequence[str | None]]] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data; a figure of both tables by "real" and "synthetic"."""
        found: dict[str, Any] = {
            name: [_plain(asdict(figure)) for figure in getattr(self, name)]
            for name in ("related", "grain", "days", "lags", "codes", "together")
        }
        found["common"] = {name: [_plain(one._asdict()) for one in values] for name, values in self.common.items()}
        found["rows"] = {
            side: [{name: texts[place][number] for name, texts in self.rows.items()} for number in range(n_rows)]
            for place, (side, n_rows) in enumerate(zip(("real", "synthetic"), self._n_shown, strict=True))
        }
        return found

    def tables(self) -> list[documents.Table]:
        """Relations, round numbers, dates, lags and codes as tables; what there is none of is left out."""
        titled: tuple[tuple[str, Sequence[_Figure]], ...] = (
            ("equal or proportional", self.related),
            ("round numbers", self.grain),
            ("dates", self.days),
            ("how far apart", self.lags),
            ("rows with codes", (*self.codes, *self.together)),
        )
        heads = ("column", "", "real", "synthetic")
        return [
            documents.Table(
                title,
                heads,
                [line for one in found for line in one.lines()],
                widths=(len(title) - 2, 0, 1, 1),
                most=_MOST_LINES,
            )
            for title, found in titled
            if found
        ]

    def row_tables(self) -> list[documents.Table]:
        """The few rows of either table, one table below the other; each column is a line."""
        found = []
        for place, title in enumerate((f"real rows, {HOLDER_ONLY}", "synthetic rows")):
            heads = ("column", *(str(number + 1) for number in range(self._n_shown[place])))
            rows = [[name, *(_shown(value) for value in texts[place])] for name, texts in self.rows.items()]
            widths = (len(title) - 2, *[1] * self._n_shown[place])
            found.append(documents.Table(title, heads, rows, widths=widths, most=_MOST_LINES))
        return found

    def common_tables(self) -> list[documents.Table]:
        """The commonest values of each column, with their shares in both tables."""
        return [
            documents.Table(
                f"commonest values of {name}",
                ("value", "real", "synthetic"),
                [(_shown(one.value, _LONGEST), *_percents_of(one.shares)) for one in values],
            )
            for name, values in self.common.items()
        ]

    def common_listing(self) -> documents.Listing:
        """The same for a page of text: all values of a column in a few lines."""
        caption = "commonest values, each with its share of the real|synthetic rows in %"
        entries = []
        for name, values in self.common.items():
            shown = [f"{_shown(value)}={100 * real:.2f}|{100 * drawn:.2f}" for value, (real, drawn) in values]
            entries.append(f"{printable(name)}: {', '.join(shown)}")
        return documents.Listing(caption, entries, most=_MOST_LINES)

    @property
    def _n_shown(self) -> tuple[int, int]:
        first = next(iter(self.rows.values()), ((), ()))
        return len(first[0]), len(first[1])


def _percents_of(shares: Both) -> tuple[str, str]:
    return f"{100 * shares.real:.2f} %", f"{100 * shares.synthetic:.2f} %"


def _numbers_of(figures: Both) -> tuple[str, str]:
    return f"{figures.real:,.6g}", f"{figures.synthetic:,.6g}"


def _shown(value: str | None, longest: int = _LONGEST_IN_ROW) -> str:
    """A value as a cell; - of a null."""
    return "-" if value is None else cut(printable(value), longest)


def _plain(value: Any) -> Any:
    if isinstance(value, Both):
        return value._asdict()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    return list(value) if isinstance(value, tuple) else value


def sense(real: Any, synthetic: Any, schema: SchemaLike) -> Sense:
    """What a person who reads single rows of both tables would notice. Not private.

    Args:
        real: the real table.
        synthetic: the synthetic one.
        schema: describes both; all bounds filled in, as in a release's `schema`.
    """
    tables = Tables(real, synthetic, schema)
    places = shown_places(tables)
    return together(tables, tables.by_column(lambda _, column, sides: look(column, sides, places)))


# ------------------------------------------------------------------------------------------------------- single columns


@dataclass(frozen=True, slots=True)
class Looked:
    """One column of both tables: what is shown of it, and its rows for what is seen of several.

    Attributes:
        values: of a number or a date, both tables row by row; nan is null. Numbers count in steps, where they have any.
        distributions: the values of either table as they are.
        common: the commonest values.
        shown: texts of a few rows of either table.
    """

    values: tuple[Floats, Floats] | None
    distributions: tuple[Distribution, Distribution]
    common: Sequence[Common]
    shown: tuple[Sequence[str | None], Sequence[str | None]]


def shown_places(tables: Tables) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which few rows of either table are shown: drawn once, with the same seed."""
    found = []
    for table in tables.both:
        n_rows = min(N_SHOWN, table.n_rows)
        found.append(np.sort(np.random.default_rng(0).choice(table.n_rows, n_rows, replace=False)))
    return found[0], found[1]


def look(column: Column, sides: tuple[Side, Side], places: tuple[NDArray[np.int64], NDArray[np.int64]]) -> Looked:
    """What is noticed of one column, given the rows that are shown."""
    real, synthetic = (side.distribution for side in sides)
    shown = [
        [None if side.is_null[place] else text(column, side.values[place]) for place in chosen]
        for side, chosen in zip(sides, places, strict=True)
    ]
    values = None
    if _has_size(column):
        values = _sized(column, sides[0]), _sized(column, sides[1])
    return Looked(values, (real, synthetic), _common(column, real, synthetic), (shown[0], shown[1]))


def text(column: Column, value: Any) -> str:
    """A physical value as a person writes it."""
    if column.listed:
        return str(column.listed[int(value)])
    logical = column.logical(value)  # type: ignore[attr-defined]
    return f"{logical:.10g}" if isinstance(logical, float) else str(logical)


def _has_size(column: Column) -> bool:
    """Whether it is a number or lies in a calendar."""
    return isinstance(column, (Number, Date, Datetime))


def _step(column: Column) -> float | None:
    """What a number counts in; None of floats without steps, and of dates."""
    if not isinstance(column, Number):
        return None
    stated = getattr(column, "multiple_of", None)
    if stated is not None:
        return float(exact(stated))
    return 1.0 if column.is_whole else None


def _sized(column: Column, side: Side) -> Floats:
    """Numbers in steps, days of dates, days with a fraction of moments; nan is null."""
    values = side.values.astype(np.float64)
    step = _step(column)
    if step is not None:
        with np.errstate(invalid="ignore", over="ignore"):
            values = np.rint(values / step)
    elif isinstance(column, Datetime):
        values = _local(column, side.values) / _DAY
    return np.where(side.is_null, np.nan, values)


def _local(column: Datetime, values: NDArray[Any]) -> NDArray[np.int64]:
    """Microseconds of moments as clocks of their time zone show them."""
    if column.timezone is None:
        return values.astype(np.int64)
    import pyarrow as pa
    import pyarrow.compute as pc

    moments = pa.array(values.astype(np.int64), pa.timestamp("us", column.timezone))
    return np.asarray(pc.local_timestamp(moments).cast(pa.int64()))


def _common(column: Column, real: Distribution, synthetic: Distribution) -> list[Common]:
    """The commonest values of either table, null among them."""
    found: dict[Any, None] = {}
    for one in (real, synthetic):
        found |= dict.fromkeys(one.values[np.argsort(-one.shares, kind="stable")[:N_COMMONEST]].tolist())
    places = np.array(list(found), dtype=real.values.dtype)
    shares = zip(real.share_of(places).tolist(), synthetic.share_of(places).tolist(), strict=True)
    listed = [Common(text(column, value), Both(*both)) for value, both in zip(places.tolist(), shares, strict=True)]
    if real.null or synthetic.null:
        listed.append(Common(None, Both(real.null, synthetic.null)))
    return sorted(listed, key=lambda one: -max(one.shares))[:N_COMMONEST]


# ----------------------------------------------------------------------------------------------------- columns together


def together(tables: Tables, looked: Mapping[str, Looked]) -> Sense:
    """What is noticed of a table, given what was looked at of each of its columns."""
    schema = tables.schema
    codes, has_code = _codes(schema, looked)
    return Sense(
        sorted(_related(schema, looked), key=lambda one: -max(one.shares)),
        list(_grains(schema, looked)),
        list(_days(schema, looked)),
        list(_lags(schema, tables.rules, looked)),
        codes,
        _codes_together(has_code),
        {name: one.common for name, one in looked.items()},
        {name: one.shown for name, one in looked.items()},
    )


def _related(schema: Schema, looked: Mapping[str, Looked]) -> Iterator[Related]:
    """Pairs of columns of one kind that are equal in part of the rows, or in a fixed proportion."""
    kinds: dict[Any, list[str]] = {}
    for name, one in looked.items():
        if one.values is not None:
            kind = schema[name]._compared_as, _step(schema[name]), getattr(schema[name], "timezone", None)
            kinds.setdefault(kind, []).append(name)
    for (compared, step, _), names in kinds.items():
        is_number = compared == "numbers"
        for first, second in combinations(names[:_MOST_RELATED], 2):
            base, column = sorted((first, second), key=lambda name: -_size(looked[name]))
            pairs = zip(_values(looked[column]), _values(looked[base]), strict=True)
            found = [_percents(x, y, is_number, step is not None) for x, y in pairs]
            n_rows = [len(x) for x in _values(looked[base])]
            shares, chances = (np.stack([side[part] for side in found]) / np.c_[n_rows] for part in (0, 1))
            if shares[:, 100].max() >= LEAST_RELATED:
                laws = zip(looked[column].distributions, looked[base].distributions, strict=True)
                chances[:, 100] = [_chance(x, y, is_number=is_number) for x, y in laws]
            is_shown = (shares >= np.maximum(LEAST_RELATED, _ABOVE_CHANCE * chances)).any(axis=0)
            for percent in np.flatnonzero(is_shown).tolist():
                yield Related(column, base, percent, Both(*shares[:, percent].tolist()))


def _values(one: Looked) -> tuple[Floats, Floats]:
    assert one.values is not None
    return one.values


def _size(one: Looked) -> float:
    """The mean size of the real values."""
    values = np.abs(_values(one)[0])
    return 0.0 if np.isnan(values).all() else float(np.nanmean(values))


def _chance(x: Distribution, y: Distribution, *, is_number: bool) -> float:
    """The share of rows in which two independent columns would be equal, but for zeros of numbers."""
    kept = (x.values != 0) | (not is_number)
    return float((x.shares[kept] * y.share_of(x.values[kept])).sum())


@compiled
def _percents(x: Any, y: Any, is_number: bool, has_steps: bool) -> Any:
    """In how many rows x is so many hundredths of y, rounded to a whole step, and in how many it would be by chance.

    100 stands for equality, whose chance is left at 0. Chance puts x anywhere between the nearest two half hundredths.
    """
    counts, chances = np.zeros(_HIGHEST_PERCENT + 1), np.zeros(_HIGHEST_PERCENT + 1)
    for row in range(len(x)):
        a, b = x[row], y[row]
        if np.isnan(a) or np.isnan(b) or (is_number and (a == 0.0 or b == 0.0)):
            continue
        if a == b:
            counts[100] += 1.0
            continue
        if not is_number or (has_steps and abs(b) < _FEWEST_STEPS):
            continue
        ratio = 100.0 * a / b
        if not 0.5 <= ratio < _HIGHEST_PERCENT + 0.5:
            continue
        percent = int(ratio + 0.5)
        if percent == 100:
            continue
        room = 0.5 if has_steps else _ROUNDING * abs(b)
        chances[percent] += 200.0 * room / abs(b)
        if abs(a - percent * b / 100.0) <= room:
            counts[percent] += 1.0
    return counts, chances


def _grains(schema: Schema, looked: Mapping[str, Looked]) -> Iterator[Grain]:
    for name, one in looked.items():
        step = _step(schema[name])
        if step is None:
            continue
        sides = [values[~np.isnan(values)] for values in _values(one)]
        if any(not len(values) for values in sides):
            continue
        reach = float(np.quantile(np.abs(sides[0]), 0.9))
        multiples = {
            multiple: Both(*(float((values % multiple == 0).mean()) for values in sides))
            for multiple in MULTIPLES
            if multiple <= reach
        }
        yield Grain(name, step, multiples, Both(*(float(len(found.values)) for found in one.distributions)))


def _days(schema: Schema, looked: Mapping[str, Looked]) -> Iterator[Days]:
    for name, one in looked.items():
        if not isinstance(schema[name], (Date, Datetime)):
            continue
        sides = [np.floor(values[~np.isnan(values)]).astype(np.int64) for values in _values(one)]
        if any(not len(days) for days in sides):
            continue
        weekends = [float(((days + 3) % 7 >= 5).mean()) for days in sides]  # 1970-01-01 was a Thursday
        yield Days(name, Both(*weekends), Both(*(float(_is_month_end(days).mean()) for days in sides)))


def _is_month_end(days: NDArray[np.int64]) -> Truths:
    following = (days + 1).astype("datetime64[D]")
    return np.asarray(following == following.astype("datetime64[M]").astype("datetime64[D]"))


def _lags(schema: Schema, rules: Sequence[Rule], looked: Mapping[str, Looked]) -> Iterator[Lag]:
    """Columns that a rule orders, and dates that nearly all real rows order."""
    stated = [rule.columns for rule in rules if isinstance(rule, AtMost)]
    for column, other in stated:
        if column in looked and other in looked and looked[column].values is not None:
            yield from _lag(schema, looked, column, other, is_stated=True)
    dates = [name for name in looked if isinstance(schema[name], (Date, Datetime))]
    for first, second in combinations(dates, 2):
        is_one_kind = schema[first]._compared_as == schema[second]._compared_as
        if not is_one_kind or (first, second) in stated or (second, first) in stated:
            continue
        orders = [
            lag for pair in ((first, second), (second, first)) for lag in _lag(schema, looked, *pair, is_stated=False)
        ]
        yield from [lag for lag in orders if lag.broken.real <= _MOST_DISORDERED and lag.longest.real > 0][:1]


def _lag(schema: Schema, looked: Mapping[str, Looked], column: str, other: str, *, is_stated: bool) -> Iterator[Lag]:
    units = [_step(schema[name]) or 1.0 for name in (column, other)]
    room = _ROUNDING if schema[column]._compared_as == "numbers" else 0.0  # steps of a cent are no exact floats
    sides = []
    for smaller, larger in zip(_values(looked[column]), _values(looked[other]), strict=True):
        ends = smaller * units[0], larger * units[1]
        differences = ends[1] - ends[0]
        differences[np.abs(differences) <= room * np.abs(ends[1])] = 0.0
        sides.append(differences[~np.isnan(differences)])
    if all(len(differences) for differences in sides):
        figures = [[*np.quantile(one, (0.5, 0.9, 0.99, 1)).tolist(), float((one < 0).mean())] for one in sides]
        yield Lag(column, other, is_stated, *(Both(*figure) for figure in zip(*figures, strict=True)))


# ---------------------------------------------------------------------------------------------------------------- codes


def _codes(schema: Schema, looked: Mapping[str, Looked]) -> tuple[list[Codes], dict[str, tuple[Truths, Truths]]]:
    """Columns with codes, and which rows of either table hold one."""
    found, rows = [], {}
    for name, one in looked.items():
        column = schema[name]
        if not isinstance(column, Number):
            continue
        n_rows = len(_values(one)[0])
        codes = code_values(one.distributions[0], n_rows)
        if not len(codes):
            continue
        in_steps = np.rint(codes / (_step(column) or 1.0)) if _step(column) else codes
        both = [np.isin(values, in_steps) for values in _values(one)]
        rows[name] = both[0], both[1]
        found.append(Codes((name,), tuple(text(column, code) for code in codes), _n_rows(both)))
    return found, rows


def _n_rows(both: Sequence[Truths]) -> Both:
    """How many real rows, and how many synthetic ones for as many rows as there are real ones."""
    return Both(float(both[0].sum()), float(both[1].mean() * len(both[0])))


def code_values(real: Distribution, n_rows: int) -> NDArray[Any]:
    """The codes of a column: few values with many rows each, behind a gap that is wider than 99 % of the others.

    Args:
        real: the column.
        n_rows: how many rows there are.
    """
    for values, shares in ((real.values, real.shares), (-real.values[::-1], real.shares[::-1])):
        most = min(_MOST_CODES, len(values) - 3)  # what is left has three values, or the rest is no distribution
        if most < 1:
            continue
        gaps = [values[-count] - values[-count - 1] for count in range(1, most + 1)]
        count = int(np.argmax(gaps)) + 1
        up_to = np.cumsum(shares[:-count]) / shares[:-count].sum()
        low, high = (values[np.searchsorted(up_to, share)] for share in (0.005, 0.995 - 1e-12))
        if gaps[count - 1] > high - low and n_rows * shares[-count:].sum() >= _FEWEST_CODED * count:
            codes = values[-count:]
            return np.asarray(codes if values is real.values else -codes[::-1])
    return real.values[:0]


def _codes_together(rows: Mapping[str, tuple[Truths, Truths]]) -> list[Codes]:
    """Groups of columns whose codes stand in the same real rows, at least half of them."""
    groups: list[list[str]] = []
    for name, (held, _) in rows.items():
        for group in groups:
            others = rows[group[0]][0]
            if (held & others).sum() >= min(held.sum(), others.sum()) / 2:
                group.append(name)
                break
        else:
            groups.append([name])
    found = []
    for group in groups:
        if len(group) > 1:
            both = [np.logical_and.reduce([rows[name][side] for name in group]) for side in (0, 1)]
            found.append(Codes(tuple(group), (), _n_rows(both)))
    return found
