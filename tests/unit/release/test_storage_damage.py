"""Damaged, foreign and newer files: a clear error, never a wrong release."""

from __future__ import annotations

import io
import json
import zipfile
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import FileError
from support.in_one_test import in_one_test
from support.long import cases

MODELS = {
    "bins": sp.KDTreeSynthesizer(5, moments=False),
    "moments": sp.KDTreeSynthesizer(5),
    "forest": sp.ForestSynthesizer(5),
}


def written(kind, folder):
    """The bytes of a small release file and rows from it."""
    path = folder / "release"
    table = np.random.default_rng(0).random((300, 2))
    schema = sp.Schema({"a": sp.Real(0, 1), "b": sp.Real(0, 1)})
    model = MODELS[kind].fit(table, schema, entropy=sp.UnsafeSeededEntropy(1))
    model.save(path)
    return path.read_bytes(), model.sample(20, seed=1)


@pytest.fixture(scope="module", params=MODELS)
def whole(tmp_path_factory, request):
    return written(request.param, tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module", params=["bins", "moments"])
def tree(tmp_path_factory, request):
    return written(request.param, tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def forest(tmp_path_factory):
    return written("forest", tmp_path_factory.mktemp("forest"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "release.spinney"


def rewritten(raw: bytes, change) -> bytes:
    """The file with its card changed by a function, all checksums right."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    card = json.loads(members["card.json"])
    return zipped({**members, "card.json": json.dumps(change(card) or card)})


def zipped(members) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_truncated_files(whole, path):
    """Cut anywhere, a file is refused."""
    raw, _ = whole
    for length in {*range(0, len(raw), 37), *range(len(raw) - 150, len(raw))}:
        path.write_bytes(raw[:length])
        with pytest.raises(FileError, match="damaged"):
            sp.load(path)


def test_flipped_bits(whole, path):
    """A flipped bit is found out, or lies where it changes nothing of the release."""
    raw, rows = whole
    directory = raw.index(b"PK\x01\x02")
    refused = 0
    step = cases(4, 1)  # in the directory at the end every bit is tried, or every fourth byte and one bit of each
    for position in {*range(0, directory, 29), *range(directory, len(raw), step)}:
        for bit in range(8) if position >= directory and step == 1 else (position % 8,):
            damaged = bytearray(raw)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            try:
                loaded = sp.load(path)
            except FileError:
                refused += 1
            else:
                assert np.array_equal(loaded.sample(20, seed=1), rows), (position, bit)
    assert refused > len(raw) // 30


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x",
        b"PK\x05\x06" + 18 * b"\0",
        b"a,b\n1,2\n",
        zipped({"hello.txt": "hello"}),
        zipped({"card.json": "{}"}),
        zipped({"card.json": "{", "bins.arrow": b""}),
        zipped({"card.json": b"\xff\xfe", "bins.arrow": b""}),
        zipped({"card.json": "[]", "bins.arrow": b""}),
        zipped({"card.json": '{"format": "other"}', "bins.arrow": b""}),
    ],
    ids=["empty", "letter", "empty zip", "csv", "other zip", "no bins", "no json", "no text", "list", "other format"],
)
def test_foreign_files(content, path):
    """Anything else is called what it is: not a Spinney release."""
    path.write_bytes(content)
    with pytest.raises(FileError, match="is not a Spinney release"):
        sp.load(path)


@in_one_test("version", [5, 99, "3", None, 1.5])
def test_newer_versions(whole, path, version):
    """A file from the future names its version, ours, and the remedy."""
    path.write_bytes(rewritten(whole[0], lambda card: card.update(format_version=version)))
    with pytest.raises(FileError, match=r"format version .* reads up to 4; upgrade"):
        sp.load(path)


def every_entry(described, trail=()):
    """All paths into nested data."""
    entries = described.items() if isinstance(described, dict) else enumerate(described)
    for key, value in entries:
        yield (*trail, key)
        if isinstance(value, (dict, list)):
            yield from every_entry(value, (*trail, key))


def test_missing_entries(whole, path):
    """Any entry of the card that is taken away is missed, or is one that loading can do without."""
    raw, rows = whole
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        card = json.loads(archive.read("card.json"))
    refused = 0
    for *trail, last in list(every_entry(card)):

        def forget(described, trail=trail, last=last):
            for key in trail:
                described = described[key]
            del described[last]

        path.write_bytes(rewritten(raw, forget))
        try:
            loaded = sp.load(path)
        except FileError:
            refused += 1
        else:
            assert np.array_equal(loaded.sample(20, seed=1), rows), (trail, last)
    assert refused > 30


@in_one_test(
    "change",
    [
        lambda card: card.update(placement="somewhere"),
        lambda card: card.update(axes=[]),
        lambda card: card.update(axes=card["axes"][:1]),
        lambda card: card["axes"][0].update(bits="many"),
        lambda card: card["axes"][0].update(colour="red"),
        lambda card: card["card"].update(events=[{"event": "Miracle"}]),
        lambda card: card["card"]["schema"]["columns"]["a"].update(type="complex"),
        lambda card: card["card"]["schema"]["columns"].pop("a"),
        lambda card: card["card"].update(frame="excel"),
        lambda card: card["card"].update(released={"bins": 1}),
        lambda card: card["card"].update(released={"leaves": 1}),
        lambda card: card["card"]["events"][0].update(epsilon="1/0"),
        lambda card: card.update(kind="bins" if card["kind"] == "moments" else "moments"),
        lambda card: card.update(kind="points"),
        lambda card: card.update(kind="generator"),
        lambda card: card.update(kind="miracle"),
    ],
)
def test_inconsistent_contents(tree, path, change):
    """A card that contradicts itself or its bins is refused, not half believed."""

    refused(tree[0], path, change)


def refused(raw, path, change):
    def apply(card):
        change(card)

    path.write_bytes(rewritten(raw, apply))
    with pytest.raises(FileError, match="inconsistent"):
        sp.load(path)


@in_one_test(
    "change",
    [
        lambda card: card.update(looked_at=[["a", "z"]]),
        lambda card: card.update(looked_at=None),
        lambda card: card.update(noisy_total=-1),
        lambda card: card.update(noisy_total=True),
        lambda card: card.update(noisy_total="300"),
        lambda card: card["card"]["schema"]["columns"].pop("a"),
        lambda card: card["card"]["schema"]["columns"].update(c={"type": "boolean"}),
        lambda card: card["card"].update(frame="excel"),
        lambda card: card["card"].update(released={"leaves": 1, "cliques": 1}),
        lambda card: card["card"].update(released={"bins": 1}),
        lambda card: card["card"]["events"][0].update(epsilon="1/0"),
        lambda card: card["card"]["events"][0]["parts"][0].update(part="Miracle"),
        lambda card: card.update(kind="bins"),
        lambda card: card.update(kind="moments"),
        lambda card: card.update(kind="points"),
    ],
)
def test_inconsistent_forests(forest, path, change):
    """A card that contradicts itself, its leaves or its model is refused."""
    refused(forest[0], path, change)


def columns_of(leaves):
    return {name: leaves[name].to_pylist() for name in leaves.column_names}


LEAVES = {
    "a negative weight": lambda leaves: leaves["weights"].__setitem__(0, -1.0),
    "a weight that is none": lambda leaves: leaves["weights"].__setitem__(0, float("nan")),
    "an endless weight": lambda leaves: leaves["weights"].__setitem__(0, float("inf")),
    "a place that is none": lambda leaves: leaves["low"].__setitem__(0, float("nan")),
    "a negative length": lambda leaves: leaves["length"].__setitem__(0, -0.5),
    "an endless length": lambda leaves: leaves["length"].__setitem__(0, float("inf")),
    "a negative state": lambda leaves: leaves["states"].__setitem__(0, -1),
    "a gap between states": lambda leaves: leaves["states"].__setitem__(-1, 1000),
    "another column": lambda leaves: leaves["column"].__setitem__(0, "z"),
    "a leaf less": lambda leaves: [values.pop() for values in leaves.values()],
    "a column less": lambda leaves: leaves.pop("weights"),
}
CLIQUES = {
    "a table too short": lambda model: model["potentials"][0].pop(),
    "a table too long": lambda model: model["potentials"][0].append(0.0),
    "a clique less": lambda model: [values.pop() for values in model.values()],
    "a column that is not there": lambda model: model["clique"].__setitem__(0, [0, 7]),
    "a negative column": lambda model: model["clique"].__setitem__(0, [-2, 1]),
    "a column twice": lambda model: model["clique"].__setitem__(0, [0, 0]),
    "a potential that is none": lambda model: model["potentials"][0].__setitem__(0, float("nan")),
    "an endless potential": lambda model: model["potentials"][0].__setitem__(0, float("inf")),
    "nothing possible": lambda model: model.update(potentials=[[-float("inf")] * len(t) for t in model["potentials"]]),
}
DAMAGE = [("leaves.arrow", change) for change in LEAVES.values()] + [("model.arrow", c) for c in CLIQUES.values()]


@in_one_test(("member", "change"), DAMAGE, ids=[*LEAVES, *CLIQUES])
def test_forests_that_cannot_be(forest, path, member, change):
    """Leaves and potentials that no fit could have written are refused, not drawn from."""
    with zipfile.ZipFile(io.BytesIO(forest[0])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    table = pa.ipc.open_file(io.BytesIO(members[member])).read_all()
    changed = columns_of(table)
    path.write_bytes(zipped(members | {member: arrow(changed)}))
    assert np.array_equal(sp.load(path).sample(20, seed=1), forest[1])  # written again as it was, it is the same
    change(changed)
    path.write_bytes(zipped(members | {member: arrow(changed)}))
    with pytest.raises(FileError, match="inconsistent"):
        sp.load(path)


def arrow(columns) -> bytes:
    types = {"states": pa.int32(), "clique": pa.list_(pa.int32())}
    table = pa.table({name: pa.array(values, types.get(name)) for name, values in columns.items()})
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_bins_that_are_no_arrow(whole, path):
    """A right card with foreign bins is refused."""
    with zipfile.ZipFile(io.BytesIO(whole[0])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for member, foreign in product(members.keys() - {"card.json"}, (b"", b"ARROW1", b"\0" * 100)):
        path.write_bytes(zipped(members | {member: foreign}))
        with pytest.raises(FileError, match="inconsistent"):
            sp.load(path)


def test_missing_files_and_folders(tmp_path):
    """A path that is not there, or is a folder, is named."""
    with pytest.raises(FileError, match="there is no file"):
        sp.load(tmp_path / "absent")
    with pytest.raises(FileError, match="is not a file"):
        sp.load(tmp_path)


def test_unreadable_files(path, monkeypatch):
    """A file that the system does not hand out says why."""
    path.write_bytes(b"x")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FileError, match=r"cannot read .*Permission denied"):
        sp.load(path)


def test_file_errors_are_errors_of_the_operating_system_too(tmp_path):
    """Callers that catch OSError, or SpinneyError, catch these."""
    with pytest.raises(OSError, match="there is no file"):
        sp.load(tmp_path / "absent")
    with pytest.raises(sp.SpinneyError):
        sp.load(tmp_path / "absent")
