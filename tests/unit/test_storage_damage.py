"""Damaged, foreign and newer files: a clear error, never a wrong release."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

import spinney as sp
from spinney.errors import FileError


@pytest.fixture(scope="module", params=["bins", "moments"])
def whole(tmp_path_factory, request):
    """The bytes of a small release file and rows from it."""
    path = tmp_path_factory.mktemp("whole") / "release"
    table = np.random.default_rng(0).random((300, 2))
    model = sp.KDTreeSynthesizer(5, moments=request.param == "moments").fit(
        table, sp.Schema({"a": sp.Real(0, 1), "b": sp.Real(0, 1)}), entropy=sp.UnsafeSeededEntropy(1)
    )
    model.save(path)
    return path.read_bytes(), model.sample(20, seed=1)


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
    for position in {*range(0, directory, 29), *range(directory, len(raw))}:
        for bit in range(8) if position >= directory else (position % 8,):
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


@pytest.mark.parametrize("version", [2, 99, "2", None, 1.5])
def test_newer_versions(whole, path, version):
    """A file from the future names its version, ours, and the remedy."""
    path.write_bytes(rewritten(whole[0], lambda card: card.update(format_version=version)))
    with pytest.raises(FileError, match=r"format version .* reads up to 1; upgrade"):
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


@pytest.mark.parametrize(
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
def test_inconsistent_contents(whole, path, change):
    """A card that contradicts itself or its bins is refused, not half believed."""

    def apply(card):
        change(card)

    path.write_bytes(rewritten(whole[0], apply))
    with pytest.raises(FileError, match="inconsistent"):
        sp.load(path)


def test_bins_that_are_no_arrow(whole, path):
    """A right card with foreign bins is refused."""
    with zipfile.ZipFile(io.BytesIO(whole[0])) as archive:
        card, (_, member) = archive.read("card.json"), archive.namelist()
    for bins in (b"", b"ARROW1", b"\0" * 100):
        path.write_bytes(zipped({"card.json": card, member: bins}))
        with pytest.raises(FileError, match="inconsistent"):
            sp.load(path)


def test_missing_files_and_folders(tmp_path):
    """A path that is not there, or is a folder, is named."""
    with pytest.raises(FileError, match="there is no file"):
        sp.load(tmp_path / "absent")
    with pytest.raises(FileError, match="cannot read"):
        sp.load(tmp_path)


def test_unreadable_files(path, monkeypatch):
    """A file that the system does not hand out says why."""
    path.write_bytes(b"x")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(zipfile, "ZipFile", refuse)
    with pytest.raises(FileError, match=r"cannot read .*Permission denied"):
        sp.load(path)


def test_file_errors_are_errors_of_the_operating_system_too(tmp_path):
    """Callers that catch OSError, or SpinneyError, catch these."""
    with pytest.raises(OSError, match="there is no file"):
        sp.load(tmp_path / "absent")
    with pytest.raises(sp.SpinneyError):
        sp.load(tmp_path / "absent")
