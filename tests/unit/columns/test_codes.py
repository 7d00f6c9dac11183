"""Categories with a value for all others, lists from files, and hierarchies of codes: what can be stated of them."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spinney as sp
from spinney.columns.category import group_starts
from spinney.errors import InputError, ParameterError, SchemaError
from spinney.grid.axes import column_axis
from spinney.tables.frames import open_table
from support.error_chains import chain


def places(values, column) -> list:
    """Where values stand in a column's list; None for null."""
    read = open_table(pd.DataFrame({"v": values}), sp.Schema({"v": column})).physical("v")
    return [None if read.is_null is not None and read.is_null[i] else int(v) for i, v in enumerate(read.values)]


# ------------------------------------------------------------------------------------------------------------- other


def test_unlisted_values_count_as_other():
    """`other` joins the list at its end, or stays where it is listed; null stays null."""
    assert places(["a", "x", "b", ""], sp.Category(["a", "b"], other="rest")) == [0, 2, 1, 2]
    assert places(["a", "x"], sp.Category(["rest", "a"], other="rest")) == [1, 0]
    assert places([7, 3, 1], sp.Category([7, 1], other=0)) == [0, 2, 1]
    assert places(["a", None, "x"], sp.Category(["a"], other="z", nullable=True)) == [0, None, 1]
    coded = pa.table({"v": pa.array(["a", "x", None, "a"]).dictionary_encode()})
    read = open_table(coded, sp.Schema({"v": sp.Category(["a"], other="z", nullable=True)})).physical("v")
    assert read.values.tolist()[:2] == [0, 1]
    assert read.is_null.tolist() == [False, False, True, False]


def test_without_other_unlisted_values_are_refused():
    """As before; the message tells of the option and quotes nothing."""
    with pytest.raises(InputError, match="other=") as caught:
        places(["a", "secret"], sp.Category(["a"]))
    assert "secret" not in str(caught.value)


def test_other_takes_values_of_the_column_s_type_only():
    """A number with a fraction is no code of whole numbers, whatever stands for the others."""
    with pytest.raises(InputError, match="column 'v'"):
        places([1.0, 2.5], sp.Category([1], other=0))


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (["a"], {"other": 1}, "other=1 is of another type than the values, strings"),
        ([1], {"other": "x"}, "other='x' is of another type than the values, whole numbers"),
        ([1], {"other": True}, "other=True is not a string or a whole number"),
        (["a"], {"other": 1.5}, "other=1.5 is not a string or a whole number"),
        ([1], {"other": 2**62}, "beyond"),
        ("secret", {}, "must be a list such as"),
        ("private", {"values_from": "x"}, 'give either values_from or values="private", not both'),
        (["a"], {"values_from": "x"}, "give either values or values_from, not both"),
        ("private", {"hierarchy": {"a": "b"}}, "lists the values, so they need not be found"),
    ],
)
def test_contradictions_are_named(values, options, message):
    """Every wrong combination has an error of its own."""
    with pytest.raises(SchemaError, match=message):
        sp.Category(values, **options)


def test_the_schema_file_has_the_same_spellings(tmp_path):
    """`other`, "private" and `hierarchy` go through TOML and back; a misspelt option is named."""
    schema = sp.Schema(
        {
            "a": sp.Category(["x", "y"], other="z"),
            "b": sp.Category("private"),
            "c": sp.Category("private", other=-1, nullable=True),
            "d": sp.Category(["A01", "A02", "B01"], hierarchy=[1]),
            "e": sp.Category([101, 102, 201], hierarchy={101: "x", "102": "x", 201: "y"}),
        }
    )
    schema.to_file(tmp_path / "schema.toml")
    assert sp.Schema.from_file(tmp_path / "schema.toml") == schema
    assert sp.Schema.from_dict(schema.to_dict()) == schema
    with pytest.raises(SchemaError, match="did you mean 'other'"):
        sp.Schema.from_dict({"columns": {"a": {"type": "category", "values": ["x"], "othr": "y"}}})
    with pytest.raises(SchemaError, match="did you mean 'hierarchy'"):
        sp.Schema.from_dict({"columns": {"a": {"type": "category", "values": ["x"], "hierachy": [1]}}})


def test_reprs_are_short():
    """Ten thousand codes and their parents are counted, not printed."""
    codes = [f"{i:05d}" for i in range(10_000)]
    column = sp.Category(codes, other="other", hierarchy={code: code[:2] for code in codes})
    assert repr(column) == "Category(values=<10001 values>, other='other', hierarchy=<10000 parents>)"
    assert repr(sp.Category("private")) == "Category(values='private', other='other')"
    assert eval(repr(sp.Category(["a"], other="b")), vars(sp)) == sp.Category(["a"], other="b")


# -------------------------------------------------------------------------------------------------------- from files


def test_lists_from_files(tmp_path):
    """One value a line, or the first column of a CSV below its header; the column holds the list from then on."""
    (tmp_path / "codes.txt").write_bytes(b"\xef\xbb\xbfA01\r\nA02\nB 1\n\n")
    (tmp_path / "codes.csv").write_text('code,name\nA01,"one, first"\n"A,2",two\n')
    (tmp_path / "numbers.txt").write_text("3\n-1\n10\n")
    assert sp.Category(values_from=tmp_path / "codes.txt") == sp.Category(["A01", "A02", "B 1"])
    assert sp.Category(values_from=str(tmp_path / "codes.csv"), other="x") == sp.Category(["A01", "A,2"], other="x")
    assert sp.Category(values_from=tmp_path / "numbers.txt", other=0) == sp.Category([3, -1, 10], other=0)
    assert sp.Category(values_from=tmp_path / "numbers.txt").values == ("3", "-1", "10")


def test_paths_start_in_the_folder_of_the_schema_file(tmp_path, monkeypatch):
    """Wherever the program runs; plain data, which may be anybody's, name no file."""
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "codes.txt").write_text("a\nb\n")
    (tmp_path / "schema.toml").write_text('[columns.v]\ntype = "category"\nvalues_from = "lists/codes.txt"\n')
    monkeypatch.chdir(os.sep)
    schema = sp.Schema.from_file(tmp_path / "schema.toml")
    assert schema["v"] == sp.Category(["a", "b"])
    assert "values_from" not in schema.to_toml()
    found = sp.check(pd.DataFrame({"v": ["a", "b"]}), tmp_path / "schema.toml")
    assert found.is_clean
    with pytest.raises(SchemaError, match="only a schema file may"):
        sp.Schema.from_dict({"columns": {"v": {"type": "category", "values_from": str(tmp_path / "lists/codes.txt")}}})
    monkeypatch.chdir(tmp_path)
    assert sp.Schema.from_toml((tmp_path / "schema.toml").read_text()) == schema


def test_check_lists_faults_of_lists_with_the_others(tmp_path):
    """A list that is missing is one fault among others, with the column's name."""
    (tmp_path / "schema.toml").write_text(
        '[columns.v]\ntype = "category"\nvalues_from = "gone.txt"\n[columns.w]\ntype = "integer"\nlow = 5\nhigh = 1\n'
    )
    faults = [
        fault.message for fault in sp.check(pd.DataFrame({"v": ["a"], "w": [1]}), tmp_path / "schema.toml").faults
    ]
    assert any("column 'v': cannot read the values in" in fault and "No such file" in fault for fault in faults)
    assert any("column 'w'" in fault for fault in faults)


def _make(path, content) -> str:
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "lists no values"),
        (b"\n\n", "lists no values"),
        (b"a\n\nb\n", "line 2 of .* is empty"),
        (b"a\nb\na\n", "line 3 of .* repeats the value of line 1"),
        (b"a\n b\n", "line 2 of .* begins or ends with a space"),
        (b"a\n\xff\xfe\n", "line 2 of .* is not UTF-8 text"),
        (b"a\nb\0c\n", "line 2 of .* holds a NUL"),
    ],
)
def test_faults_of_a_list_are_told_by_file_and_line(tmp_path, content, message):
    """Empty, doubled, spaced, foreign: each with its line."""
    path = _make(tmp_path / "codes.txt", content)
    with pytest.raises(SchemaError, match=message) as caught:
        sp.Category(values_from=path)
    assert "codes.txt" in str(caught.value)
    assert chain(caught.value) == [caught.value]


def test_hostile_paths(tmp_path, monkeypatch):
    """Folders, loops of links, pipes, endless files and lists beyond measure are refused without being read."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**40)
    for path, message in {
        tmp_path: "^'[^:]*' is not a file",
        tmp_path / "loop": "cannot read the values in .*: Too many levels",
        tmp_path / "pipe": "^'[^:]*' is not a file",
        "/dev/zero": "is not a file",
        tmp_path / "large": "larger than 32 MiB",
        tmp_path / "none": "No such file",
        "a\0b": "cannot read the values",
        "": "is not the path of a file",
        5: "is not the path of a file",
    }.items():
        with pytest.raises(SchemaError, match=message):
            sp.Category(values_from=path)
    monkeypatch.setattr("spinney.columns.category.MOST_VALUES", 100)
    with pytest.raises(SchemaError, match="more than 100 values"):
        sp.Category(values_from=_make(tmp_path / "many.txt", b"\n".join(b"%d" % i for i in range(200))))
    with pytest.raises(SchemaError, match=r"line 2 of .* is not a whole number"):
        sp.Category(values_from=_make(tmp_path / "mixed.txt", b"1\nx\n"), other=0)
    with pytest.raises(SchemaError, match=r"line 2 of .* cannot be read as CSV"):
        sp.Category(values_from=_make(tmp_path / "bad.csv", b'a\n"' + b"x" * 200_000 + b'"\n'))


# ------------------------------------------------------------------------------------------------------ hierarchies


def test_prefixes_put_the_list_into_order():
    """Groups in the order of their first codes, codes as listed, `other` last and in no group."""
    column = sp.Category(["B01", "A01.1", "other", "A02", "B02", "A01.2"], other="other", hierarchy=[1, 3])
    assert column.values == ("B01", "B02", "A01.1", "A01.2", "A02", "other")
    assert group_starts(column.values, column.hierarchy, "other") == [[2, 5], [1, 2, 4, 5]]
    assert sp.Category(column.values, other="other", hierarchy=[1, 3]) == column


def test_parents_put_the_list_into_order():
    """Parents may have parents, need not be listed, and head their own group where they are."""
    parents = {"A01.1": "A01", "A01": "A", "A02": "A", "B01": "B"}
    column = sp.Category(["A02", "B01", "A01.1", "C", "A01"], hierarchy=parents)
    assert column.values == ("A02", "A01.1", "A01", "B01", "C")
    assert group_starts(column.values, column.hierarchy, None) == [[3, 4], [1, 3, 4]]
    assert sp.Category(column.values, hierarchy=dict(column.hierarchy)) == column


def test_prefixes_and_parents_that_say_the_same_are_the_same():
    """Two ways to state one tree."""
    codes = [f"{a}{b:02d}" for a in "ABC" for b in range(20)]
    by_prefix = sp.Category(codes, hierarchy=[1])
    by_parent = sp.Category(codes, hierarchy={code: code[0] for code in codes})
    for one, two in zip(
        group_starts(by_prefix.values, by_prefix.hierarchy, None),
        group_starts(by_parent.values, by_parent.hierarchy, None),
        strict=True,
    ):
        assert one == two


@pytest.mark.parametrize(
    ("hierarchy", "message"),
    [
        ([], "is not a list of prefix lengths"),
        ("1", "is not a list of prefix lengths"),
        (3, "is not a list of prefix lengths"),
        ([3, 1], "ascending"),
        ([0, 1], "ascending"),
        ([1, 1], "ascending"),
        ([True], "maps values to parents"),
        ([1, "a"], "maps values to parents"),
        ({}, "is not a list of prefix lengths"),
        ({"A01": None}, "both must be strings or whole numbers"),
        ({"A03": "A"}, "names 'A03', which is neither a value nor a parent of one"),
        ({"A01": "A", "A": "A01"}, "goes in a circle"),
        ({"A01": "A01"}, "goes in a circle"),
    ],
)
def test_wrong_hierarchies_are_refused(hierarchy, message):
    """Each with what is meant instead."""
    with pytest.raises(SchemaError, match=message):
        sp.Category(["A01", "A02", "B01"], hierarchy=hierarchy)


def test_levels_that_say_nothing_are_not_counted():
    """One group, groups of one code each, the same groups twice: none of them is a table."""
    codes = [f"X{a}{b:02d}" for a in "ABC" for b in range(20)]
    assert column_axis("v", sp.Category(codes)).n_tables == 1
    assert column_axis("v", sp.Category(codes, hierarchy=[1])).n_tables == 1
    assert column_axis("v", sp.Category(codes, hierarchy=[2])).n_tables == 2
    assert column_axis("v", sp.Category(codes, hierarchy=[1, 2, 4, 9])).n_tables == 2
    assert column_axis("v", sp.Category(codes[:30], hierarchy=[2])).n_tables == 1  # few values need no groups


def test_a_value_is_found_among_tens_of_thousands_at_once():
    """Conditions look values up; none walks through the list."""
    codes = [f"{i:05d}" for i in range(50_000)]
    column = sp.Category(codes)
    assert [column._place_of(code, name="v", argument="where") for code in codes] == list(range(50_000))
    assert column._from_option("49999", name="v", option="--where") == "49999"
    with pytest.raises(ParameterError, match="is not a value of column 'v'") as caught:
        column._place_of("nothing of the kind", name="v", argument="where")
    assert len(str(caught.value)) < 200
    assert np.array_equal(np.array(column.values), np.array(codes))
