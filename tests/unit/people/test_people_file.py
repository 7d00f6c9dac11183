"""Releases of persons in files: what comes back, and what is refused of a file that somebody may have made."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import FileError
from spinney.forest.release.columns import ColumnModel
from spinney.people import grow as synthetic
from spinney.people import rounds
from spinney.people.release.rows import learnt_schema, position_masks
from spinney.release.card import ContradictionError
from spinney.release.file import are_counts, to_arrow
from spinney.schema.linked import PeopleShape
from support.in_one_test import in_one_test


@pytest.fixture(scope="module")
def members(shop, tmp_path_factory):
    """The members of a file with a role, a panel, rules over positions, and tables in boxes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthetic, "_N_FITTED", 2000)
        patch.setattr(rounds, "_LAST_STEPS", 10)
        stated = shop.tables(steps=True, role="kind", rules=[sp.NeverAfter("kind", ["c"])])
        model = shop.fit(shop.frames, stated)
    path = tmp_path_factory.mktemp("people") / "a.spinney"
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path, members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    path.write_bytes(buffer.getvalue())
    return path


def with_card(members, change):
    card = json.loads(members["card.json"])
    change(card)
    return members | {"card.json": json.dumps(card).encode()}


def with_table(members, name, change):
    table = pa.ipc.open_file(pa.py_buffer(members[name])).read_all()
    columns = table.to_pydict()
    change(columns)
    kinds = {field.name: field.type for field in table.schema}
    return members | {name: to_arrow(pa.table({key: pa.array(lines, kinds[key]) for key, lines in columns.items()}))}


def test_a_file_is_the_release(members, tmp_path):
    """Loaded, saved again and loaded, it draws the same persons and holds the same bytes."""
    first = sp.load(written(tmp_path / "a", members))
    first.save(tmp_path / "b")
    second = sp.load(tmp_path / "b")
    one, other = (release.sample(100, seed=3, frame="pandas") for release in (first, second))
    assert all(frame.equals(other[name]) for name, frame in one.items())
    with zipfile.ZipFile(tmp_path / "b") as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == members
    assert second.kind == "people"
    assert second.card.unit == "replace-one-person"


def entry(card):
    """What the file says of persons and their rows."""
    return card["people"]


def _set(where, key, value):
    def change(card):
        where(card)[key] = value(where(card)[key]) if callable(value) else value

    return change


def rows_of(card):
    return entry(card)["rows"][0]


def field_of(card):
    return rows_of(card)["field"]


def a_table_more(card):
    rows_of(card)["tables"].append(rows_of(card)["tables"][0])


CARDS = {
    "states of another number": _set(
        lambda card: rows_of(card)["field"], "sizes", lambda sizes: [sizes[0] + 1, *sizes[1:]]
    ),
    "evidence of another number": _set(field_of, "evidence_sizes", lambda sizes: sizes[:-1]),
    "no role": _set(field_of, "role", None),
    "a total of nobody": _set(rows_of, "total", 0.0),
    "a total that is no number": _set(rows_of, "total", "1e5"),
    "an infinite total": _set(rows_of, "total", float("inf")),
    "correlations above one": _set(rows_of, "correlations", lambda numbers: [2.0, *numbers[1:]]),
    "correlations of other columns": _set(rows_of, "correlations", lambda numbers: numbers[1:]),
    "a table twice": a_table_more,
    "tables that are missing": _set(rows_of, "tables", lambda tables: tables[1:]),
    "a table of an unknown column": _set(lambda card: rows_of(card)["tables"][0], "own", [0, 99]),
    "no tables of rows": _set(entry, "rows", []),
    "frames of other tables": _set(entry, "frames", {"people": "pandas"}),
    "frames of no kind": _set(entry, "frames", lambda frames: dict.fromkeys(frames, "excel")),
    "another link": _set(lambda card: entry(card)["shape"]["rows"][0]["rows"], "steps", False),
    "another most": _set(lambda card: entry(card)["shape"]["rows"][0]["rows"], "most_rows", 30),
    "another column": _set(
        lambda card: entry(card)["shape"]["rows"][0]["schema"]["columns"], "kind", {"type": "boolean"}
    ),
    "no shape": _set(entry, "shape", {}),
    "another most on the card": _set(lambda card: card["card"]["people"]["rows"][0]["rows"], "most_rows", 65_535),
    "no rules on the card": _set(lambda card: card["card"]["people"]["rows"][0]["schema"], "rules", []),
    "promises to groups": _set(lambda card: card["card"], "groups", [{"persons": 2, "epsilon": "1/10", "delta": "0"}]),
    "a unit of rows": _set(lambda card: card["card"], "unit", "replace-one"),
}


@in_one_test("change", CARDS.values(), ids=CARDS)
def test_forged_cards_are_refused(members, tmp_path, change):
    """Fields, totals, tables, shapes and units that are not those of the release."""
    with pytest.raises(FileError, match=r"inconsistent contents|is damaged") as caught:
        sp.load(written(tmp_path / "a", with_card(members, change)))
    assert len(str(caught.value)) < 1000


def _first(name, value):
    def change(columns):
        columns[name][0] = value(columns[name][0]) if callable(value) else value

    return change


TABLES = {
    "potentials that are missing": ("row_fields.arrow", _first("potentials", lambda line: line[1:])),
    "potentials that are infinite": ("row_fields.arrow", _first("potentials", lambda line: [np.inf, *line[1:]])),
    "masks that are missing": ("row_fields.arrow", _first("possible", [])),
    "masks that allow everything": ("row_fields.arrow", _first("possible", lambda line: [1] * len(line))),
    "masks that allow nothing": ("row_fields.arrow", _first("possible", lambda line: [0] * len(line))),
    "masks that are turned around": ("row_fields.arrow", _first("possible", lambda line: line[::-1])),
    "flags that are none": ("row_fields.arrow", _first("possible", lambda line: [2, *line[1:]])),
    "labels beyond the boxes": ("row_tables.arrow", _first("labels", lambda line: [10**6] * max(len(line), 1))),
    "numbers that are missing": ("row_tables.arrow", _first("noisy", lambda line: line[1:])),
    "numbers out of range": ("row_tables.arrow", _first("noisy", lambda line: [2**62, *line[1:]])),
    "a number that has no absolute value": ("row_tables.arrow", _first("noisy", lambda line: [-(2**63), *line[1:]])),
    "leaves of another table": ("row_leaves.arrow", _first("table", 7)),
    "leaves of another column": ("row_leaves.arrow", _first("column", 9)),
    "a leaf outside of its column": ("row_leaves.arrow", _first("low", -1e9)),
    "a weight below nothing": ("row_leaves.arrow", _first("weights", -1.0)),
}


@in_one_test(("name", "change"), TABLES.values(), ids=TABLES)
def test_forged_tables_are_refused(members, tmp_path, name, change):
    """Every number of rows is checked before anything is drawn by it."""
    with pytest.raises(FileError, match="inconsistent contents"):
        sp.load(written(tmp_path / "a", with_table(members, name, change)))


def test_a_noisy_number_without_an_absolute_value_is_out_of_range():
    """-2^63 is its own absolute value in 64 bits, and below every bound that is compared with that alone."""
    assert are_counts(np.array([-(2**61), 0, 2**61]))
    assert not are_counts(np.array([-(2**63), 0]))
    assert not are_counts(np.array([0, 2**62]))


def test_masks_in_another_order_are_refused(members, tmp_path):
    """Masks are those of the rules, in their order: flags of one rule are not taken for those of another."""
    changed = with_card(members, _set(field_of, "masks", lambda masks: masks[::-1]))
    with pytest.raises(FileError, match="masks"):
        sp.load(written(tmp_path / "a", changed))


def test_states_that_join_what_rules_tell_apart_have_no_mask():
    """A leaf of a value after which nothing comes shares its state with no other, or rows could follow it."""
    stated = sp.Schema(
        {"who": sp.Identifier(), "day": sp.Integer(0, 9), "kind": sp.Category(["a", "b", "c"])},
        rules=[sp.NeverAfter("kind", ["c"])],
        person="who",
        most_rows=5,
        order="day",
    )
    rows = PeopleShape.of(stated).rows[0]

    def masks(states):
        zeros, ones = np.zeros(3), np.ones(3)
        model = ColumnModel(np.arange(3.0), ones, zeros > 0, ones, np.array(states, dtype=np.int32), max(states) + 1)
        return position_masks(rows, learnt_schema(rows), {"kind": model}, place=0)

    ((_, _, possible),) = masks([0, 0, 1])
    assert possible.tolist() == [[True, True], [True, False], [True, False], [True, True]]
    with pytest.raises(ContradictionError, match="'kind' joins"):
        masks([0, 1, 1])


def test_more_tables_than_were_paid_for_are_refused(members, tmp_path):
    """A card whose charge pays for fewer tables of rows than the file holds."""

    def fewer(card):
        text = json.dumps(card)
        every = [part for event in card["card"]["events"] for part in event.get("parts", ())]
        parts = [part for part in every if part.get("stage") == "row tables"]
        assert parts
        for part in parts:
            part["times"] = 1
        assert text != json.dumps(card)

    with pytest.raises(FileError, match=r"row|paid|plan"):
        sp.load(written(tmp_path / "a", with_card(members, fewer)))


ROW_STAGES = {
    "row trees": "row decision noise scale",
    "row one-way": "row one-way noise",
    "row spikes": "row spikes noise",
    "alikeness": "alikeness mean squared",
    "row selection": "epsilon of a choice among rows",
    "row tables": "row tables noise",
}


@pytest.mark.parametrize("with_plan", [False, True], ids=["the plan as it was", "gone from the plan too"])
@pytest.mark.parametrize("stage", ROW_STAGES)
def test_stages_of_rows_that_nobody_paid_for_are_refused(members, tmp_path, stage, with_plan):
    """A charge without one of its parts costs less, and does not pay for what the file holds."""

    def unpaid(card):
        for event in card["card"]["events"]:
            if "parts" in event:
                kept = [part for part in event["parts"] if part["stage"] != stage]
                assert len(kept) == len(event["parts"]) - 1
                event["parts"] = kept
        if with_plan:
            del card["card"]["plan"][ROW_STAGES[stage]]

    with pytest.raises(FileError, match=r"paid|pays"):
        sp.load(written(tmp_path / "a", with_card(members, unpaid)))


def test_fewer_of_a_stage_than_the_columns_need_are_refused(members, tmp_path):
    """One tree, table of leaves or level of a tree less than the columns of rows have."""
    for stage, key in (
        ("row trees", "times"),
        ("row trees", "levels"),
        ("row one-way", "times"),
        ("row spikes", "times"),
    ):

        def fewer(card, stage=stage, key=key):
            parts = [part for event in card["card"]["events"] for part in event.get("parts", ())]
            next(part for part in parts if part["stage"] == stage)[key] -= 1

        with pytest.raises(FileError, match="were paid for than"):
            sp.load(written(tmp_path / "a", with_card(members, fewer)))


def _scaled(factor):
    def change(columns):
        columns["weights"] = [factor * weight for weight in columns["weights"]]

    return change


def test_totals_of_rows_are_those_of_leaves_tables_and_persons(members, tmp_path):
    """A number of persons with rows that leaves, tables or persons contradict, by itself or with the leaves."""
    fewer = with_card(members, _set(rows_of, "total", 3.0))
    with pytest.raises(FileError, match="do not add up to the total"):
        sp.load(written(tmp_path / "a", fewer))
    with pytest.raises(FileError, match="do not add up to the total"):
        sp.load(written(tmp_path / "a", with_table(members, "row_leaves.arrow", _scaled(1000))))
    both = with_card(members, _set(rows_of, "total", lambda total: total / 4))
    with pytest.raises(FileError, match="counts other rows"):
        sp.load(written(tmp_path / "a", with_table(both, "row_leaves.arrow", _scaled(1 / 4))))

    total = rows_of(json.loads(members["card.json"]))["total"]

    def all_tables(columns):
        columns["noisy"] = [[line[0] + round(3 * total * 2**20), *line[1:]] for line in columns["noisy"]]

    more = with_card(members, _set(rows_of, "total", lambda total: total * 4))
    more = with_table(with_table(more, "row_leaves.arrow", _scaled(4)), "row_tables.arrow", all_tables)
    with pytest.raises(FileError, match="numbers of rows of the persons"):
        sp.load(written(tmp_path / "a", more))


@pytest.mark.parametrize("name", ["row_leaves.arrow", "row_fields.arrow", "row_tables.arrow"])
def test_members_that_are_missing_are_told(members, tmp_path, name):
    """A file of persons has all its members."""
    with pytest.raises(FileError):
        sp.load(written(tmp_path / "a", {key: value for key, value in members.items() if key != name}))
