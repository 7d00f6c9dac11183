"""A release of persons in a file: written, read, and compared with the charges on its card. PUBLIC.

Which trees, tables and vectors there are follows from the columns, so everything that is read can be checked
against the columns, the charges and the forest of persons.

    charges of rows    trees, tables and vectors of rows against their charges; totals that have to agree
    members            members for leaves, fields and tables of rows
    verification       what of a release of persons its file bears out
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.forest.release.columns import ColumnModel
from spinney.forest.release.file import columns_from_leaves, forest_members, leaf_fields
from spinney.forest.release.measured import slack_of_total
from spinney.forest.release.verify import verify_forest
from spinney.graph.crf import field_from_arrays, field_to_arrays
from spinney.graph.crf_inference import FieldClique
from spinney.grid.axes import ColumnAxis, column_axes
from spinney.people.release.rows import (
    MeasuredRows,
    ReleasedRows,
    anchors,
    check_masks,
    count_name,
    first_cliques,
    learnt_schema,
    level_name,
    persons_schema,
    row_layout,
)
from spinney.privacy.budget import Unit, parse_fraction
from spinney.privacy.mechanisms import (
    LARGEST_VECTOR,
    UNITS,
    TreeShapes,
    WeightedTables,
)
from spinney.release.card import FRAME_KINDS, MOST_ROWS, ROW_TABLES, Card, check
from spinney.release.file import FLOAT, are_counts, from_arrow, lists, numbers, to_arrow
from spinney.release.verify import TableSum, check_spread
from spinney.schema.linked import PeopleShape, RowsShape

if TYPE_CHECKING:
    from spinney.forest.release.model import ForestRelease
    from spinney.people.release.model import PeopleRelease


# ------------------------------------------------------------------------------------------------------ charges of rows
# What a release holds of rows, compared with what was paid for it, and with what it holds of persons.
#
# Which trees, tables and vectors there are follows from the columns, so a charge that lacks one of them does not pay
# for the release. Rows of all tables, leaves and persons are the same ones: their numbers differ by noise of a known
# size.


# Gaussian noise beyond so many standard deviations is drawn once in 10^18 times.
_MOST_DEVIATIONS = 9.0
# Leaves of noise are emptied: each of them held no more persons than so many standard deviations.
_EMPTIED = 4.0


def check_stages(release: PeopleRelease) -> None:
    """Raise a ContradictionError where trees, columns, alikeness, choices or tables of rows were not paid for."""
    paid = release.card.stages
    times = Counter({stage: mechanism.times or 0 for stage, mechanism in paid.items()})
    levels = row_trees.levels if isinstance(row_trees := paid.get("row trees"), TreeShapes) else math.inf
    axes = [axis for rows in release.rows for axis in column_axes(rows.schema).values()]
    trees = [axis.max_levels for axis in axes if axis.ruler is not None]
    check(times["row trees"] >= len(trees), "fewer trees of rows were paid for than columns have one")
    check(levels >= max(trees, default=0), "fewer levels of the trees of rows were paid for than their columns have")
    check(times["row spikes"] >= len(trees), "fewer tables of spikes of rows were paid for than columns have a tree")
    n_one_way = sum(axis.n_tables for axis in axes)
    check(times["row one-way"] >= n_one_way, "fewer columns of rows were paid for than were counted")
    check(times["alikeness"] == 1, "how alike rows of a person are was not paid for, or more than once")
    n_tables = sum(len(rows.tables) for rows in release.rows)
    check(n_tables <= times["row tables"], "more tables of rows were measured than were paid for")
    n_chosen = sum(_n_chosen(release, rows) for rows in release.rows)
    check(n_chosen <= times["row selection"], "fewer choices among rows were paid for than tables were chosen")


def check_row_totals(release: PeopleRelease) -> None:
    """Raise a ContradictionError where leaves, tables or persons of a table of rows are of another number of them."""
    for rows in release.rows:
        what = f"rows of {rows.shape.name!r}" if rows.shape.name else "rows"
        units = rows.total * UNITS
        for name, column in rows.columns.items():
            is_total = abs(float(column.weights.sum()) - units) <= 1 + 1e-6 * units
            check(is_total, f"the leaves of {name!r} do not add up to the total of {what}")
        noise_std = release.card.noise_std("row one-way") * math.sqrt(_fewest_counts(rows))
        for table in rows.tables:
            counted = float(table.noisy.sum(dtype=np.float64)) / UNITS
            of_table = release.card.noise_std("row tables") * math.sqrt(len(table.noisy))
            slack = _MOST_DEVIATIONS * math.hypot(noise_std, of_table) + 1
            check(abs(counted - rows.total) <= slack, f"a table of {what} counts other rows than their total says")
        fewest, most = _persons_with_rows(release, rows)
        slack = _MOST_DEVIATIONS * noise_std + 1
        is_possible = fewest * (1 - rows.shape.most / UNITS) - slack <= rows.total <= most + slack
        check(is_possible, f"the total of {what} is not one that the numbers of rows of the persons allow")


def _n_chosen(release: PeopleRelease, rows: ReleasedRows) -> int:
    """How many tables were measured that a choice led to."""
    variables = release.persons.variables
    levels = [(level_name(rows.shape.name, name), own) for own, name in enumerate(rows.names)]
    found = [(variables.index(level), own) for level, own in levels if level in variables]
    count = variables.index(count_name(rows.shape.name))
    first = {clique for clique, _ in first_cliques(rows.layout, rows.field.role, count, found)}
    return sum(table.clique not in first for table in rows.tables)


def _fewest_counts(rows: ReleasedRows) -> int:
    """How many noisy numbers the total was added up from, by the column that has the fewest."""
    axes = column_axes(rows.schema)
    return min(_n_counts(axes[name], len(model.low)) for name, model in rows.columns.items())


def _n_counts(axis: ColumnAxis, n_leaves: int) -> int:
    """Where codes have a hierarchy, neighbours may be one leaf; the coarsest groups were counted for their sum."""
    return n_leaves if axis.levels is None else len(axis.levels.starts[0]) + 1


def _persons_with_rows(release: PeopleRelease, rows: ReleasedRows) -> tuple[float, float]:
    """How many persons have rows, at the least and at the most: noise in the persons' own numbers is allowed for."""
    persons, count = release.persons, release.persons.columns[count_name(rows.shape.name)]
    total = float(persons.noisy_total)
    fewest = most = total
    if release.shape.persons is not None:  # position 0 is that of no rows
        fewest = float(count.weights[count.low >= 1].sum())
        most = float(count.weights[count.low + count.length > 1].sum())
    noise_std = release.card.noise_std("one-way")
    n_leaves = len(count.low)
    slack = slack_of_total(persons)
    if release.shape.persons is not None:
        slack += noise_std * (_MOST_DEVIATIONS * math.sqrt(n_leaves) + _EMPTIED * n_leaves)
    return fewest - slack, most + slack


# -------------------------------------------------------------------------------------------------------------- members
# A release of persons in a file: the members of its forest of persons, and three for all tables of rows.
#
# What is read is checked number by number: leaves lie where values can, a field is one over the states of its columns
# and of what they depend on, and every table that was measured has the shape of its columns.


MEMBERS = ("row_leaves.arrow", "row_fields.arrow", "row_tables.arrow")

_LEAVES = {
    "table": (pa.int32(),),
    "column": (pa.int32(),),
    **dict.fromkeys(("low", "length", "weights"), FLOAT),
    "is_null": (pa.bool_(),),
    "states": (pa.int32(),),
}
_FIELDS = {"potentials": (pa.list_(pa.float64()),), "possible": (pa.list_(pa.int8()),)}
_TABLES = {"labels": (pa.list_(pa.int32()),), "noisy": (pa.list_(pa.int64()),)}
_MOST_CELLS = 1 << 24


def people_members(release: PeopleRelease) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What a file holds of persons and their rows besides the card."""
    entries, members = forest_members(release.persons)
    fields = [field_to_arrays(rows.field) for rows in release.rows]
    described = [
        {
            "field": of_field,
            "correlations": [float(number) for number in rows.correlations],
            "total": float(rows.total),
            "tables": [
                {"evidence": list(table.clique.evidence), "own": list(table.clique.own)} for table in rows.tables
            ],
        }
        for rows, (_, of_field) in zip(release.rows, fields, strict=True)
    ]
    entries["people"] = {"shape": release.shape.to_dict(), "frames": release.frames, "rows": described}
    if release.row_variance is not None:
        entries["people"]["row_variance"] = str(release.row_variance)
    columns = [
        (place, number, model)
        for place, rows in enumerate(release.rows)
        for number, model in enumerate(rows.columns.values())
    ]
    leaves = {
        "table": np.concatenate([np.full(len(model.low), place, np.int32) for place, _, model in columns]),
        "column": np.concatenate([np.full(len(model.low), number, np.int32) for _, number, model in columns]),
        **{field: np.concatenate([getattr(model, field) for _, _, model in columns]) for field in leaf_fields()},
    }
    measured = [table for rows in release.rows for table in rows.tables]
    nothing = np.zeros(0, dtype=np.int32)
    found = (
        pa.table(leaves),
        _listed(
            _FIELDS,
            {
                "potentials": [arrays["potentials"] for arrays, _ in fields],
                "possible": [arrays["possible"].astype(np.int8) for arrays, _ in fields],
            },
        ),
        _listed(
            _TABLES,
            {
                "labels": [nothing if table.labels is None else table.labels.ravel() for table in measured],
                "noisy": [table.noisy for table in measured],
            },
        ),
    )
    return entries, members | {name: to_arrow(table) for name, table in zip(MEMBERS, found, strict=True)}


def people_from_members(card: Card, described: Mapping[str, Any], members: Mapping[str, bytes]) -> dict[str, Any]:
    """Read what was written, as `PeopleRelease` takes it; ValueError where it is no release of persons."""
    from spinney.forest.release.model import ForestRelease

    of_people = described["people"]
    shape = PeopleShape.from_dict(of_people["shape"])
    if described["card"].get("people", of_people["shape"]) != of_people["shape"]:
        raise ValueError("the card states other tables than those of the release")
    frames = of_people["frames"]
    if not isinstance(frames, dict) or set(frames) != set(shape.tables):
        raise ValueError("frames are not of the tables of the release")
    if not all(isinstance(kind, str) and kind in FRAME_KINDS for kind in frames.values()):
        raise ValueError("frames of no known kind")
    persons = ForestRelease.from_members(persons_card(card, shape), described, dict(members))
    leaves = from_arrow(members["row_leaves.arrow"], _LEAVES)
    fields, tables = from_arrow(members["row_fields.arrow"], _FIELDS), from_arrow(members["row_tables.arrow"], _TABLES)
    entries = of_people["rows"]
    if not isinstance(entries, list) or len(entries) != len(shape.rows) or fields.num_rows != len(shape.rows):
        raise ValueError("rows of other tables than those of the release")
    of_table = numbers(leaves, "table", np.int64)
    if len(of_table) and not 0 <= of_table.min() <= of_table.max() < len(shape.rows):
        raise ValueError("leaves of a table that there is none of")
    potentials, possible = lists(fields, "potentials", np.float64), lists(fields, "possible", np.int64)
    measured = list(zip(lists(tables, "labels", np.int64), lists(tables, "noisy", np.int64), strict=True))
    rows, at = [], 0
    for place, (of_shape, entry) in enumerate(zip(shape.rows, entries, strict=True)):
        columns = _columns(leaves.filter(pa.array(of_table == place)), of_shape)
        arrays = {"potentials": potentials[place], "possible": _flags(possible[place])}
        of_measured = measured[at : at + len(_list(entry["tables"]))]
        at += len(of_measured)
        rows.append(_rows(of_shape, columns, entry, arrays, of_measured, persons))
    if at != len(measured) or card.released.get(ROW_TABLES) != at:
        raise ValueError("the card describes other tables of rows")
    stated = of_people.get("row_variance")  # files from before have none
    variance = None if stated is None else parse_fraction(stated, "row_variance")
    return {"shape": shape, "persons": persons, "rows": tuple(rows), "frames": frames, "row_variance": variance}


def persons_card(card: Card, shape: PeopleShape) -> Card:
    """The card of the forest of persons: all that is promised, and what was released of persons alone.

    Its target is the first of the columns that all others are counted with, and the rest of them are its stars.
    """
    released = {what: number for what, number in card.released.items() if what != ROW_TABLES}
    named = card.parameters.get("target")
    found = anchors(shape, target_column(shape, named) if named is not None else None)
    parameters = {**card.parameters, "target": found[0] if found else None, "stars": found[1:]}
    return replace(card, released=released, parameters=parameters, remarks=())


def target_column(shape: PeopleShape, target: Any) -> str:
    """The column of the persons table that a target names; ValueError where there is none."""
    known = {f"{shape.persons_name}.{name}": name for name, column in (shape.persons or {}).items() if column.is_read}
    if not isinstance(target, str) or target not in known:
        raise ValueError("a target that is no column of persons")
    return known[target]


def _rows(
    shape: RowsShape,
    columns: dict[str, ColumnModel],
    entry: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    measured: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    persons: ForestRelease,
) -> ReleasedRows:
    layout = row_layout(shape, [model.n_states for model in columns.values()], persons.model.tree.sizes)
    names = list(columns)
    role = None if shape.role is None else names.index(shape.role)
    field = field_from_arrays(arrays, entry["field"])
    if field.sizes != layout.own_sizes or field.evidence_sizes != layout.sizes or field.role != role:
        raise ValueError("a field of other columns than those of its table")
    correlations = np.array(_list(entry["correlations"]), dtype=np.float64)
    if correlations.shape != (len(names),) or not ((correlations >= 0) & (correlations < 1)).all():
        raise ValueError("correlations that are none of the columns")
    total = entry["total"]
    if type(total) is not float or not 0 < total <= MOST_ROWS:
        raise ValueError("a number of persons that is none")
    cliques = [FieldClique(_whole(it["evidence"]), _whole(it["own"])) for it in entry["tables"]]
    if len(set(cliques)) != len(cliques):
        raise ValueError("a table of rows that was measured twice")
    tables = [
        _measured(clique, field.shape(clique), *numbers) for clique, numbers in zip(cliques, measured, strict=True)
    ]
    return ReleasedRows(shape, columns, layout, field, tuple(tables), correlations, total)


def _measured(
    clique: FieldClique, shape: tuple[int, ...], labels: NDArray[np.int64], noisy: NDArray[np.int64]
) -> MeasuredRows:
    """A table as it was measured; ValueError where boxes and numbers are not those of its cells."""
    n_cells = math.prod(shape)
    if n_cells > _MOST_CELLS or not 0 < len(noisy) <= min(n_cells, LARGEST_VECTOR):
        raise ValueError("a table of rows of another size than its columns have")
    if not are_counts(noisy):
        raise ValueError("a noisy number out of range")
    if not len(labels):
        if len(noisy) != n_cells:
            raise ValueError("a table of rows of another size than its columns have")
        return MeasuredRows(clique, None, noisy)
    if len(labels) != n_cells or len(np.unique(labels)) != len(noisy) or labels.min() or labels.max() >= len(noisy):
        raise ValueError("boxes that are not those of a table of rows")
    return MeasuredRows(clique, labels.astype(np.int32).reshape(shape), noisy)


def _columns(leaves: pa.Table, shape: RowsShape) -> dict[str, ColumnModel]:
    schema = learnt_schema(shape)
    names = list(schema._modelled)
    place = numbers(leaves, "column", np.int64)
    if not len(place) or not 0 <= place.min() <= place.max() < len(names):
        raise ValueError("leaves of columns that are not in the schema")
    return columns_from_leaves(leaves, place, {name: schema._modelled[name] for name in names})


def _listed(types: Mapping[str, Any], lines: Mapping[str, Sequence[NDArray[Any]]]) -> pa.Table:
    return pa.table({name: pa.array(list(lines[name]), types[name][0]) for name in types})


def _flags(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not np.isin(values, (0, 1)).all():
        raise ValueError("flags that are neither 0 nor 1")
    return values.astype(np.bool_)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("an entry of the rows of persons is not a list")
    return value


def _whole(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(number) is int for number in value):
        raise ValueError("columns of a table of rows that are not numbers")
    return tuple(value)


# --------------------------------------------------------------------------------------------------------- verification
# What a release of persons says of its rows, compared with the charges on its card.


def verify_people(release: PeopleRelease) -> list[str]:
    """The forest of persons is what was paid for, and so are the tables of rows."""
    persons = persons_schema(release.shape)
    stated = release.persons.schema
    is_same = all(name in stated and stated[name] == column for name, column in persons.items())
    check(is_same, "the persons have other columns than the tables")
    row_tables = release.card.stages.get("row tables")
    paid = 0 if row_tables is None else row_tables.times or 0
    n_tables = sum(len(rows.tables) for rows in release.rows)
    forest = verify_forest(release.persons)
    check_stages(release)
    check_row_totals(release)
    for rows in release.rows:
        measured = {table.clique for table in rows.tables}
        for clique in rows.field.tables():
            alone = len(clique.own) + len(clique.evidence) == 1 or (
                not clique.evidence and rows.field.role in clique.own
            )
            check(alone or clique in measured, "a field has a table that was not measured")
        check_masks(rows.field.masks, rows.shape, rows.schema, rows.columns, place=rows.layout.place)
    if release.row_variance is not None:
        unit = Unit.parse(release.card.unit)
        is_paid = isinstance(row_tables, WeightedTables) and release.row_variance == row_tables.scale(unit)
        check(is_paid, "the tables of rows have other noise than was paid for")
    were = "table of rows was" if n_tables == 1 else "tables of rows were"
    counted = f"{n_tables} {were} measured, {paid} paid for, each with the noise of one row a person"
    return [*forest, counted]


def check_spread_of_rows(release: PeopleRelease) -> list[str]:
    """Tables of the rows of one table count about the same units, and differ by noise, or by more."""
    checks = []
    for rows in release.rows:
        variance = (release.card.noise_std("row tables") * UNITS) ** 2
        sums = [TableSum(float(t.noisy.sum(dtype=np.float64)), len(t.noisy) * variance) for t in rows.tables]
        checks += check_spread(sums, None, f"tables of rows{f' of {rows.shape.name!r}' if rows.shape.name else ''}")
    return checks
