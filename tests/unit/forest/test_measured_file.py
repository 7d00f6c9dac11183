"""What a file says that was measured: what is refused of it, damaged, hostile or forged, and what older files lack."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import FileError, ParameterError
from spinney.forest.release.file import MEASURED_MEMBERS
from spinney.release.file import to_arrow
from support.command_line import spinney
from support.in_one_test import in_one_test


@pytest.fixture(scope="module")
def members(tmp_path_factory) -> dict[str, bytes]:
    """The members of a release with piles, codes in a hierarchy, a target, and tables in boxes."""
    rng = np.random.default_rng(4)
    n = 4000
    codes = [f"{letter}{number}" for letter in "ABCD" for number in range(12)]
    frame = pd.DataFrame(
        {
            "gain": np.where(rng.random(n) < 0.6, 0, rng.lognormal(7, 1, n).round(-2).clip(0, 5000)).astype(int),
            "code": rng.choice(codes, n, p=np.repeat([0.1, 0.05, 0.25, 0.6], 12) / 12),
            "group": rng.choice([*"abc"], n),
        }
    )
    columns = {
        "gain": sp.Integer(0, 5000),
        "code": sp.Category(codes, hierarchy=[1]),
        "group": sp.Category([*"abc"]),
    }
    path = tmp_path_factory.mktemp("measured") / "a.spinney"
    model = sp.ForestSynthesizer("3", "1e-6", target="group")
    model.fit(frame, sp.Schema(columns), entropy=sp.UnsafeSeededEntropy(2)).release_.save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path: Path, members: dict[str, bytes]) -> Path:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    path.write_bytes(buffer.getvalue())
    return path


def refused(path: Path, members: dict[str, bytes]) -> str:
    """The message with which a file is refused, at the price of less than 200 MB."""
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="inconsistent contents") as caught:
            sp.load(written(path, members))
        assert tracemalloc.get_traced_memory()[1] < 2e8
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < 1000
    return str(caught.value)


def with_table(members: dict[str, bytes], name: str, change) -> dict[str, bytes]:
    """The members with the columns of a table changed, of the types that they have."""
    table = pa.ipc.open_file(pa.py_buffer(members[name])).read_all()
    columns = table.to_pydict()
    change(columns)
    kinds = {field.name: field.type for field in table.schema}
    return members | {name: to_arrow(pa.table({key: pa.array(lines, kinds[key]) for key, lines in columns.items()}))}


def with_card(members: dict[str, bytes], change) -> dict[str, bytes]:
    described = json.loads(members["card.json"])
    change(described)
    return members | {"card.json": json.dumps(described).encode()}


def put(name: str, row: int, place: int, value: int):
    """Sets one number of one list."""

    def change(columns):
        columns[name][row][place] = value

    return change


def moved(name: str, row: int):
    """Takes five hundred rows from the largest number of one list to the smallest."""

    def change(columns):
        numbers = columns[name][row]
        largest, smallest = int(np.argmax(numbers)), int(np.argmin(numbers))
        numbers[largest] -= 500
        numbers[smallest] += 500

    return change


def cut(name: str, row: int):
    """Takes the last number off a list."""

    def change(columns):
        columns[name][row] = columns[name][row][:-1]

    return change


# ------------------------------------------------------------------------------------------------------ forged tables


def test_the_file_of_these_tests_is_read(members, tmp_path):
    """And holds what is forged below."""
    measured = sp.load(written(tmp_path / "a.spinney", members)).measured
    assert [column.kind for column in measured.columns] == ["integer", "codes", "category"]
    assert (measured.columns[0].piles.pile >= 0).any()
    assert measured.tables[0].labels is None
    assert measured.tables[-1].labels is not None


COUNTS = {
    "a count raised": (put("noisy", 0, 0, 10_000), "do not add up"),
    "a count of a code raised": (put("noisy", 1, 40, 5_000), "do not add up"),
    "rows moved from leaf to leaf": (moved("noisy", 0), "do not weigh"),
    "rows moved from code to code": (moved("noisy", 1), "do not weigh"),
    "a count of a group moved": (put("noisy_groups", 1, 0, 3_000), "do not weigh"),
    "a pile moved": (lambda c: c["noisy_piles"][0].__setitem__(max(c["pile"][0]), 0), "do not weigh"),
    "a count beyond range": (put("noisy", 0, 0, 2**62), "out of range"),
    "a pile beyond range": (put("noisy_piles", 0, 0, -(2**63)), "out of range"),
    "a count fewer": (cut("noisy", 0), "not made of"),
    "a group fewer": (cut("noisy_groups", 1), "hierarchy"),
    "a leaf fewer": (cut("leaf", 0), "not made of"),
    "a leaf of none": (put("leaf", 0, 0, 2), "not made of"),
    "a leaf below": (put("leaf", 0, 0, -1), "not made of"),
    "a leaf far beyond": (put("leaf", 0, -1, 2**31 - 1), "not made of"),
    "a pile fewer": (cut("pile", 0), "do not lie"),
    "a pile of no number": (put("pile", 0, 0, 2**31 - 1), "do not lie"),
    "a pile at the wrong leaf": (put("pile", 0, -1, 0), "do not lie"),
    "all leaves impossible": (lambda c: c["impossible"].__setitem__(2, [0, 1, 2]), "out of range"),
    "an impossible leaf of none": (lambda c: c["impossible"].__setitem__(2, [3]), "exclude"),
    "a leaf that rules leave": (lambda c: c["impossible"].__setitem__(2, [1]), "do not weigh"),
    "no counts of a column": (lambda c: [lines.pop() for lines in c.values()], ""),
}


@in_one_test("what", COUNTS)
def test_forged_counts_are_refused(what, members, tmp_path):
    """Leaves are made of what was counted, and weigh what that gives."""
    change, told = COUNTS[what]
    assert told in refused(tmp_path / "a.spinney", with_table(members, "counts.arrow", change))


TABLES = {
    "a box of no number": (put("labels", -1, 0, 2**31 - 1), "do not follow"),
    "a box below none": (put("labels", -1, 0, -2), "do not follow"),
    "a label fewer": (cut("labels", -1), "not one of its columns' states"),
    "a count fewer": (cut("noisy", -1), "do not follow"),
    "a count beyond range": (put("noisy", 0, 0, 2**62), "not one of its columns' states"),
    "a column of none": (put("columns", 0, 1, 9), "not those of the card"),
    "a column twice": (put("columns", 0, 1, 0), "not those of the card"),
    "a table twice": (lambda c: [lines.append(lines[0]) for lines in c.values()], ""),
    "no table": (lambda c: [lines.clear() for lines in c.values()], ""),
}


@pytest.mark.parametrize("what", TABLES)
def test_forged_tables_are_refused(what, members, tmp_path):
    """Boxes are of the cells of states, and tables those that were counted."""
    change, told = TABLES[what]
    assert told in refused(tmp_path / "a.spinney", with_table(members, "tables.arrow", change))


def entry(*path, value):
    """Sets one entry of what was measured."""

    def change(described):
        here = described["measured"]
        for step in path[:-1]:
            here = here[step]
        here[path[-1]] = value

    return change


ENTRIES = {
    "less noise than charged": (entry("columns", 0, "noise", "scale", value="1"), "other noise than was paid"),
    "another law": (entry("columns", 0, "noise", "law", value="discrete laplace"), ""),
    "no law": (entry("tables", 0, "noise", "law", value="none"), "no mechanism has"),
    "noise beyond range": (entry("tables", 0, "noise", "scale", value="1e60"), "no mechanism has"),
    "noise of nothing": (entry("tables", 0, "noise", "scale", value="0"), "no mechanism has"),
    "noise of piles": (entry("columns", 0, "noise of piles", "scale", value="7"), "other noise than was paid"),
    "noise of a table": (entry("tables", 0, "noise", "scale", value="7"), "other noise than was paid"),
    "another kind": (entry("columns", 0, "kind", value="real"), "not of the kind"),
    "a kind of none": (entry("columns", 1, "kind", value=["codes"]), "not of the kind"),
    "an unknown column": (entry("columns", 0, "variable", value="x"), ""),
    "a column twice": (entry("columns", 1, "variable", value="gain"), "twice"),
    "a stage of none": (entry("tables", 0, "stage", value="leaves"), "stage"),
    "another total": (entry("total", value=4001.0), "out of range"),
    "a total of nan": (lambda d: d["measured"].__setitem__("total", "nan"), "out of range"),
    "steps without end": (entry("fit", "steps", value=10**9), "out of range"),
    "no regularization": (entry("fit", "regularization", value=0.0), "out of range"),
    "half a table more": (lambda d: d["measured"]["tables"].append(d["measured"]["tables"][0]), ""),
    "no entries": (lambda d: d["measured"].clear(), "there is no"),
    "a list": (lambda d: d.__setitem__("measured", []), ""),
}


@in_one_test("what", ENTRIES)
def test_forged_entries_are_refused(what, members, tmp_path):
    """Laws are those of the charges, and everything has a sane size."""
    change, told = ENTRIES[what]
    assert told in refused(tmp_path / "a.spinney", with_card(members, change))


@pytest.mark.parametrize("name", MEASURED_MEMBERS)
def test_missing_and_damaged_members_are_refused(name, members, tmp_path):
    """What the card names has to be there, and whole."""
    refused(tmp_path / "a.spinney", {key: content for key, content in members.items() if key != name})
    refused(tmp_path / "a.spinney", members | {name: members[name][: len(members[name]) // 2]})
    refused(tmp_path / "a.spinney", members | {name: to_arrow(pa.table({"noisy": [[0.5]]}))})


def test_a_model_that_its_counts_do_not_give_is_refused(members, tmp_path):
    """`verify` fits the model again: one that was changed afterwards, with leaves as they were, does not pass."""
    path = written(tmp_path / "a.spinney", members)
    assert spinney("verify", path).status == 0
    assert "fitted again" in spinney("verify", path).out

    def move(columns):
        columns["potentials"][0][0] += 0.3

    forged = written(tmp_path / "b.spinney", with_table(members, "model.arrow", move))
    told = spinney("verify", forged)
    assert told.status == 1
    assert "the model is not the one that the counts in the file give" in told.err


# ------------------------------------------------------------------------------------------------------ older files


def test_files_from_before_load_and_draw_but_are_not_redrawn(members, tmp_path):
    """They hold no counts; the same seed draws the same rows, and several draws are refused with what to do."""
    older = {name: content for name, content in members.items() if name not in MEASURED_MEMBERS}
    older = with_card(older, lambda described: described.pop("measured"))
    older = with_card(older, lambda described: described["card"].update(spinney_version="0.0.1"))
    before = sp.load(written(tmp_path / "a.spinney", older))
    now = sp.load(written(tmp_path / "b.spinney", members))
    assert before.measured is None
    now.steps.clear()  # which counts say too
    assert before.sample(50, seed=1).equals(now.sample(50, seed=1))
    for ask in (lambda: before.sample(5, draws=3), lambda: before.redrawn(3)):
        with pytest.raises(ParameterError, match="earlier version of Spinney"):
            ask()
    assert spinney("verify", tmp_path / "a.spinney").status == 0
