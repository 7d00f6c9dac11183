"""Files of leaf moments: what a saved release holds, and which damaged ones are refused."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import FileError
from spinney.privacy.entropy import UnsafeSeededEntropy
from spinney.release.file import to_arrow
from spinney.tree.moments import QUANTUM
from spinney.tree.release.density import reconstruct
from spinney.tree.release.moments import MomentsRelease
from support.handmade_leaves import release_by_hand

LINE = sp.Schema({"x": sp.Real(0, 1)})
SQUARE = sp.Schema({"x": sp.Real(0, 4), "y": sp.Real(-1, 1)})
LEAVES = {"00": (40, 10, -30), "01": (20, 0, 10), "10": (5, 4, 4), "110": (0, 0, 0), "111": (35, -30, 1)}


def tree(epsilon="4", **options):
    return sp.KDTreeSynthesizer(epsilon, **{"moments": True, **options})


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "release.spinney"
    release_by_hand(SQUARE, LEAVES).save(path)
    return path


def table_of(data: bytes) -> pa.Table:
    return pa.ipc.open_file(pa.py_buffer(data)).read_all()


def rewritten(path, change_card=None, change_table=None) -> None:
    """The file with its card or its leaves changed, all checksums right."""
    with zipfile.ZipFile(path) as archive:
        card, leaves = json.loads(archive.read("card.json")), table_of(archive.read("leaves.arrow"))
    if change_card:
        change_card(card)
    if change_table:
        leaves = change_table(leaves)
        card["card"]["released"] = {"leaves": leaves.num_rows}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("card.json", json.dumps(card))
        archive.writestr("leaves.arrow", to_arrow(leaves))
    path.write_bytes(buffer.getvalue())


def test_a_loaded_release_is_the_same(saved) -> None:
    """Rows, points, boxes and fractions survive a file; unchanged, it can be written again byte for byte."""
    release, loaded = release_by_hand(SQUARE, LEAVES), sp.load(saved)
    assert isinstance(loaded, MomentsRelease)
    assert np.array_equal(loaded.sample(300, seed=2), release.sample(300, seed=2))
    for one, other in zip(loaded.weighted_points(), release.weighted_points(), strict=True):
        assert np.array_equal(one, other)
    assert loaded.range_counts([0, 0], [1, 1]) == release.range_counts([0, 0], [1, 1])
    assert (loaded.moments.rate, loaded.moments.quantum) == (release.moments.rate, release.moments.quantum)
    before = saved.read_bytes()
    rewritten(saved)
    assert np.array_equal(sp.load(saved).sample(300, seed=2), release.sample(300, seed=2))
    loaded.save(saved, overwrite=True)
    assert saved.read_bytes() == before


def with_column(name: str, values):
    return lambda table: table.set_column(table.column_names.index(name), name, pa.array(values))


@pytest.mark.parametrize(
    "change",
    [
        {"change_card": lambda card: card.update(quantum=0)},
        {"change_card": lambda card: card.update(quantum=1024.0)},
        {"change_card": lambda card: card.update(quantum=10**400)},
        {"change_card": lambda card: card.update(rate="0")},
        {"change_card": lambda card: card.update(rate="-1/2")},
        {"change_card": lambda card: card.update(rate="1/0")},
        {"change_card": lambda card: card.update(rate="1/1" + "0" * 400)},
        {"change_card": lambda card: card.update(rate="1" + "0" * 400)},
        {"change_card": lambda card: card.update(rate=float("inf"))},
        {"change_card": lambda card: card.update(rate=None)},
        {"change_card": lambda card: card.update(placement="tilted")},
        {"change_card": lambda card: card.update(axes=card["axes"][:1])},
        {"change_card": lambda card: card["card"].update(n_rows=0)},
        {"change_card": lambda card: card["card"].update(n_rows="many")},
        {"change_card": lambda card: card["card"].update(released={"bins": 5})},
        {"change_card": lambda card: card["card"].update(released={"leaves": 4})},
        {"change_table": lambda table: table.slice(0, 0)},
        {"change_table": lambda table: table.drop_columns(["noisy_sum_1"])},
        {"change_table": lambda table: table.drop_columns(["code_0"])},
        {"change_table": with_column("depth", [0, 0, 0, 0, -1])},
        {"change_table": with_column("depth", [2, 2, 2, 3, 99])},
        {"change_table": with_column("noisy_count", ["a", "b", "c", "d", "e"])},
    ],
)
def test_damaged_files_are_refused(saved, change) -> None:
    """A card and leaves that cannot belong together are not half believed."""
    rewritten(saved, **change)
    with pytest.raises(FileError, match=r"inconsistent|damaged"):
        sp.load(saved)


def test_nothing_private_is_in_the_file(tmp_path) -> None:
    """A file holds noisy steps, depths and codes; true counts are not among them."""
    table = np.full((77, 1), 0.3)
    path = tmp_path / "release"
    tree("1", max_depth=1).fit(table, LINE, entropy=sp.UnsafeSeededEntropy(1)).save(path)
    with zipfile.ZipFile(path) as archive:
        leaves = table_of(archive.read("leaves.arrow")).to_pydict()
    assert list(leaves) == ["code_0", "depth", "noisy_count", "noisy_sum_0"]
    assert 77 * QUANTUM not in leaves["noisy_count"]
    assert 0 not in leaves["noisy_count"]


def faint(path) -> None:
    """A release of so few rows that its decisions tell much, as a file."""
    rows = np.random.default_rng(3).normal([0.5, -0.5], 0.1, (400, 2))
    tree("0.1").fit(rows, SQUARE, entropy=UnsafeSeededEntropy(2)).save(path)


def without_evidence(card: dict) -> None:
    """A file as it was before there was such an entry."""
    del card["evidence"]
    card["format_version"] = 2


def test_a_file_says_whether_decisions_are_evidence(tmp_path) -> None:
    """New releases draw the same rows from a file; files that do not name decisions draw as before, saved again too."""
    path, again = tmp_path / "release.spinney", tmp_path / "again.spinney"
    faint(path)
    release = sp.load(path)
    read = release.density.weights
    assert not np.allclose(read, reconstruct(release.moments, 400).weights)
    rewritten(path, without_evidence)
    sp.load(path).save(again)
    for old in (path, again):
        assert np.array_equal(sp.load(old).density.weights, reconstruct(release.moments, 400).weights)


@pytest.mark.parametrize(
    "change",
    [
        lambda card: card.update(evidence="rows"),
        lambda card: card["card"]["plan"].update(decay="many"),
        lambda card: card["card"]["plan"].pop("cutoff"),
    ],
    ids=["evidence", "decay", "cutoff"],
)
def test_evidence_that_cannot_be_read_is_refused(tmp_path, change) -> None:
    """Evidence of an unknown kind, and decisions without a plan."""
    path = tmp_path / "release.spinney"
    faint(path)
    rewritten(path, change)
    with pytest.raises(FileError):
        sp.load(path)
