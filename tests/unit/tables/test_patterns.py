"""Patterns mean what they mean to Python's glob, except that links lead nowhere twice."""

from __future__ import annotations

import glob
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.tables.paths import expand

FILES = [
    *("a.csv", "b.csv", "B.CSV", "a1.csv", "a[1].csv", ".hidden.csv", "a b.csv", "noend"),
    *("x/a.csv", "x/y/a.csv", "x/y/z/c.csv", "x/.git/a.csv", ".dot/a.csv", "x1/a.csv", "x1/.a.csv", "**x/a.csv"),
]
PARTS = ["**", "*", "x", "y", "?", "x*", "[xy]", ".*", ".dot", "**x", "..", ".", "x1", "nowhere", "*[!1]"]
LAST = ["*.csv", "a.csv", "?.csv", "*", "**", ".*", "a[[]1].csv", "[ab].csv", "[!a]*.csv", "*.CSV", "noend", ""]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("tree") / "1" / "2" / "3" / "4" / "top"  # two dots never lead out
    for name in FILES:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    (tree / "empty").mkdir()
    return tree


@pytest.mark.parametrize("root", ["", "./", "absolute"])
@settings(max_examples=300, derandomize=True, deadline=None)
@given(parts=st.lists(st.sampled_from(PARTS), max_size=4), last=st.sampled_from(LAST))
def test_without_links_as_glob_has_it(tree, root, parts, last):
    """The same files under the same names; glob gives a file several times where ** stands twice."""
    pattern = (f"{tree}/" if root == "absolute" else root) + "/".join([*parts, last])
    before = os.getcwd()
    os.chdir(tree)
    try:
        expected = {name for name in glob.glob(pattern, recursive=True) if os.path.isfile(name)}
        assert expand(pattern) == sorted(expected)
    finally:
        os.chdir(before)


def test_linked_folders_are_entered_once(tmp_path):
    """By their real name where they have one inside, and by a link where that is the only way."""
    for name in ("in/real/a.csv", "out/b.csv", "out/deep/c.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    inside = tmp_path / "in"
    os.symlink("real", inside / "alias")
    os.symlink("../out/deep", inside / "far-deep")
    os.symlink("../out", inside / "far")
    os.symlink("../../in", tmp_path / "out" / "back")
    os.symlink("loop", inside / "loop")
    os.symlink("nowhere", inside / "broken.csv")
    names = [os.path.relpath(name, inside) for name in expand(f"{inside}/**/*.csv")]
    assert sorted(map(os.path.basename, names)) == ["a.csv", "b.csv", "c.csv"]
    assert {"real/a.csv", "far/b.csv"} < set(names)


def test_links_that_lead_up_are_not_entered(tmp_path):
    """Neither into the folder itself nor into those around it, from however deep; a link that a pattern names is."""
    deep = tmp_path / "top" / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "t.csv").touch()
    (tmp_path / "outside.csv").touch()
    for index, target in enumerate((".", "..", "../..", "../../..", str(tmp_path), "/")):
        os.symlink(target, deep / f"up{index}")
    assert expand(f"{tmp_path}/top/**/*.csv") == [str(deep / "t.csv")]
    assert expand(f"{tmp_path}/top/**/up3/*.csv") == [str(deep / "up3" / "outside.csv")]


def test_many_links_cost_little(tmp_path, monkeypatch):
    """Folders that all link to each other are looked into once each."""
    scans = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda place: scans.append(place) or scan(place))
    names = [f"f{index}" for index in range(12)]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "t.csv").touch()
        for other in names:
            os.symlink(f"../{other}", tmp_path / name / f"to-{other}")
    assert len(expand(f"{tmp_path}/**/*.csv")) == 12
    assert len(scans) <= 2 * 13
