"""The page about release files names all that is in them: kinds, members, entries, columns."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.people.release.model import PeopleRelease
from spinney.release.file import KINDS, save
from spinney.release.points import Generator, GeneratorRelease
from support.small_people import linked_model

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/release-file.md").read_text()
GOLDEN = sorted((ROOT / "tests/golden").glob("*.spinney"))


def is_named(name: str) -> bool:
    """Whether the page has a name in its type; numbered ones stand for all of their kind, so 7 is read as 0."""
    return f"`{re.sub(r'_[0-9]+$', '_0', name)}`" in PAGE


def names_in(archive: zipfile.ZipFile) -> set[str]:
    """Members, entries of the JSON down to the card's and an axis's, and the columns of Arrow files."""
    described = json.loads(archive.read("card.json"))
    names = {*archive.namelist(), *described, *described["card"]}
    names |= {name for axis in described.get("axes", ()) for name in axis}
    for event in described["card"]["events"]:
        names |= {event["event"], *event}
        names |= {name for part in event.get("parts", ()) for name in (part["part"], *part)}
    for member in archive.namelist():
        if member.endswith(".arrow"):
            names |= set(pa.ipc.open_file(pa.py_buffer(archive.read(member))).schema.names)
    return names


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_what_old_files_hold_is_on_the_page(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        assert [name for name in sorted(names_in(archive)) if not is_named(name)] == []


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_what_new_files_hold_is_on_the_page(path: Path, tmp_path: Path) -> None:
    """A release saved by this version may have entries that old files lack."""
    release = sp.load(path)
    save(release, tmp_path / "new")
    with zipfile.ZipFile(tmp_path / "new") as archive:
        assert [name for name in sorted(names_in(archive)) if not is_named(name)] == []
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{release.kind}`"))
        described = json.loads(archive.read("card.json"))
        added = set(described) - {"format", "format_version", "kind", "stream", "card"}
        assert [name for name in [*archive.namelist()[1:], *added] if f"`{name}`" not in row] == []


def test_every_kind_has_its_line_and_its_file() -> None:
    """A kind that no golden file shows, and that is not made below, would go unnoticed above."""
    assert [kind for kind in KINDS if f"| `{kind}`" not in PAGE] == []
    assert {sp.load(path).kind for path in GOLDEN} | {GeneratorRelease.kind, PeopleRelease.kind} == set(KINDS)


def test_persons_are_on_the_page(tmp_path: Path) -> None:
    path = tmp_path / "people.spinney"
    linked_model().save(path)
    with zipfile.ZipFile(path) as archive:
        of_people = json.loads(archive.read("card.json"))["people"]
        names = names_in(archive) | set(of_people) | {name for table in of_people["rows"] for name in table}
    assert [name for name in sorted(names) if not is_named(name)] == []
    assert {"row_leaves.arrow", "potentials", "correlations"} <= names


def test_a_generator_is_on_the_page() -> None:
    card = sp.load(GOLDEN[0]).card
    generator = Generator(((np.zeros((3, 1)), np.zeros(1)),), np.array([0.5, 0.5]))
    file = io.BytesIO()
    entries, members = GeneratorRelease(generator, card, target="x", noisy_total=1).to_members()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("card.json", json.dumps({"card": card.to_dict(), **entries}))
        for name, data in members.items():
            archive.writestr(name, data)
        assert [name for name in sorted(names_in(archive)) if not is_named(name)] == []
        assert {"shape", "values", "target", "generator.arrow"} <= names_in(archive)


def test_a_name_that_is_missing_would_be_noticed() -> None:
    assert is_named("noisy_sum_12")
    assert not is_named("colour")
