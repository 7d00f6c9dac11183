"""Release files that somebody made on purpose: refused with a reason, soon, and without a crash.

What could take the process down is tried in a process of its own.
"""

from __future__ import annotations

import io
import json
import random
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import FileError, ParameterError, SpinneyError
from spinney.release import file as arrow_module
from spinney.release.file import FLOAT, WHOLE, from_arrow, to_arrow
from support.in_one_test import in_one_test
from support.long import cases

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.spinney"))
KINDS = {"bins": "v1-tree-mixed", "moments": "v1-moments-mixed", "forest": "v1-forest-mixed", "points": "v1-points"}
each_kind = pytest.mark.parametrize("kind", KINDS)


def members_of(kind: str) -> dict[str, bytes]:
    path = next(path for path in GOLDEN if path.stem == KINDS[kind])
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members, *, method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members.items() if isinstance(members, dict) else members:
            archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "release.spinney"


def changed_card(kind: str, change) -> bytes:
    members = members_of(kind)
    card = json.loads(members["card.json"])
    change(card)
    return zipped(members | {"card.json": json.dumps(card)})


def refused(path: Path, content: bytes, match: str = "inconsistent|damaged|not a Spinney release") -> str:
    """The message with which a file is refused, within five seconds."""
    path.write_bytes(content)
    start = time.process_time()
    with pytest.raises(FileError, match=match) as caught:
        sp.load(path)
    assert time.process_time() - start < 5
    assert len(str(caught.value)) < 1000
    return str(caught.value)


# ------------------------------------------------------------------------------------------------ the archive


def test_a_small_archive_cannot_fill_the_memory(path):
    """Members that unpack to gigabytes are refused by what they say, and by what they are where they lie."""
    members = members_of("bins")
    for name in members:
        bomb = zipped(members | {name: b" " * 2**28}, method=zipfile.ZIP_DEFLATED)
        assert len(bomb) < 2**20
        refused(path, bomb)
        # The same with a directory that says the member is short.
        honest = struct.pack("<L", 2**28)
        assert bomb.count(honest) >= 1
        refused(path, bomb.replace(honest, struct.pack("<L", 1000)))


@each_kind
def test_a_packed_archive_still_loads(path, kind):
    """Somebody's tool may have packed the members again; that is no harm."""
    path.write_bytes(zipped(members_of(kind), method=zipfile.ZIP_DEFLATED))
    assert sp.load(path).kind == kind


def test_odd_archives(path):
    """A member twice, thousands of members, a comment, odd methods, no card."""
    members = members_of("bins")
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = zipped([*members.items(), ("card.json", members["card.json"])])
    refused(path, twice, "damaged")
    refused(path, zipped(members | {f"x{i}": b"" for i in range(5000)}), "damaged")
    refused(path, zipped(members, method=zipfile.ZIP_BZIP2), "damaged")
    refused(path, zipped(members | {"bins.arrow": b""}), "inconsistent")
    refused(path, zipped({name: content for name, content in members.items() if name != "bins.arrow"}), "inconsistent")
    raw = zipped(members)
    encrypted = bytearray(raw)
    for at in (raw.index(b"PK\3\4") + 6, raw.index(b"PK\1\2") + 8):
        encrypted[at] |= 1
    refused(path, bytes(encrypted), "damaged")
    path.write_bytes(zipped(members | {"../../evil": b"x", "notes.txt": b"x"}))
    assert sp.load(path).kind == "bins"  # what is not of its kind is not read
    assert not (path.parent.parent / "evil").exists()


CARDS = {
    "nested without end": b"[" * 200_000,
    "tables without end": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "digits without end": b'{"format": ' + b"9" * 50_000 + b"}",
    "an entry twice": b'{"format": "spinney-release", "format": "spinney-release", "format_version": 1}',
    "NaN": b'{"format": "spinney-release", "format_version": NaN}',
    "Infinity": b'{"format": "spinney-release", "format_version": 1e999}',
}


@pytest.mark.parametrize("card", CARDS.values(), ids=CARDS)
def test_cards_that_are_no_json(path, card):
    """Depth, digits, doubles and constants end in a FileError."""
    refused(path, zipped(members_of("bins") | {"card.json": card}), "damaged")


# ------------------------------------------------------------------------------------------------ numbers


def prior(**entries):
    """A card whose call had this prior."""
    return lambda c: c["card"]["parameters"].update(prior=entries)


NUMBERS = {
    "a hang": lambda c: c["card"]["events"][0].update(epsilon="1e-99999999"),
    "NaN": lambda c: c["card"]["events"][0].update(epsilon="nan"),
    "a negative epsilon": lambda c: c["card"]["events"][0].update(epsilon="-1"),
    "a negative sensitivity": lambda c: c["card"]["events"][-2].update(sensitivity=-2),
    "no sensitivity": lambda c: c["card"]["events"][-2].update(sensitivity=0),
    "a note that is none": lambda c: c["card"]["events"][0].update(note=None),
    "rows beyond count": lambda c: c["card"].update(n_rows=2**41),
    "rows of a float": lambda c: c["card"].update(n_rows=800.0),
    "rows that are true": lambda c: c["card"].update(n_rows=True),
    "fewer rows than none": lambda c: c["card"].update(n_rows=-5),
    "no rows in a unit that states them": lambda c: c["card"].update(n_rows=None),
    "an unknown unit": lambda c: c["card"].update(unit="person"),
    "a unit that is none": lambda c: c["card"].update(unit=["replace-one"]),
    "a name that clears the screen": lambda c: c["card"].update(synthesizer="\x1b[2J"),
    "a version that is none": lambda c: c["card"].update(spinney_version=5),
    "parameters that are none": lambda c: c["card"].update(parameters=[]),
    "a prior that is none": lambda c: c["card"]["parameters"].update(prior=["table"]),
    "a prior of no kind": prior(rows=5),
    "a prior of another kind": prior(kind="rumour", rows=5),
    "a prior of fewer rows than none": prior(kind="table", rows=-1),
    "a prior with a list of rows": prior(kind="table", rows=[1]),
    "a prior of rows that are true": prior(kind="release", guarantee="1-differential privacy", rows=True),
    "a prior that says nothing of its guarantee": prior(kind="release", rows=5),
    "a prior that clears the screen": prior(kind="release", guarantee="\x1b[2J", rows=5),
    "a prior that turns the direction": prior(kind="release", guarantee="\u202e1", rows=5),
    "a prior with more to say": prior(kind="table", guarantee="1-differential privacy", rows=5),
    "a plan that is none": lambda c: c["card"].update(plan="privtree"),
    "a frame that is none": lambda c: c["card"].update(frame=["pandas"]),
    "events that are none": lambda c: c["card"].update(events={}),
    "an event that is none": lambda c: c["card"].update(events=[5]),
    "released that is none": lambda c: c["card"].update(released={"bins": "49"}),
    "a card that is none": lambda c: c.update(card=[]),
    "a kind that is none": lambda c: c.update(kind=["bins"]),
    "axes that are none": lambda c: c.update(axes="axes"),
    "an axis that is none": lambda c: c.update(axes=[5]),
    "a placement that is none": lambda c: c.update(placement=["tilted"]),
}


@in_one_test("change", NUMBERS.values(), ids=NUMBERS)
@in_one_test("kind", ["bins", "moments"])
def test_entries_that_no_release_has(path, kind, change):
    """Types, signs and sizes of all entries are looked at."""
    refused(path, changed_card(kind, change), "inconsistent")


AXES = {
    "negative bits": {"bits": -1},
    "more bits than cells": {"bits": 60},
    "a first cell below zero": {"first": -5},
    "a last cell beyond the bits": {"last": 2**40},
    "cells in the wrong order": {"first": 5, "last": 4},
    "no scale": {"scale": 0.0},
    "a negative scale": {"scale": -1.0},
    "no step": {"step": 0},
    "half a step": {"step": 0.5},
    "another kind": {"kind": "ladder"},
    "another bound": {"high": 1e9},
    "a bound that is true": {"low": True},
    "nullable against the schema": {"nullable": True},
    "another name": {"name": "width"},
}


@in_one_test("change", AXES.values(), ids=AXES)
@in_one_test("kind", ["bins", "moments"])
def test_axes_that_are_of_no_column(path, kind, change):
    """An axis is measured against the column that it is of before loops rely on it."""
    refused(path, changed_card(kind, lambda c: c["axes"][0].update(change)), "inconsistent")


@pytest.fixture(scope="module")
def fares(tmp_path_factory) -> dict[str, bytes]:
    """The members of a file whose first axis has pieces."""
    rng = np.random.default_rng(5)
    table = {"fare": np.round(rng.exponential(25, 2000).clip(0, 1000), 2), "age": rng.random(2000)}
    schema = sp.Schema({"fare": sp.Real(0, 1000, multiple_of=0.01), "age": sp.Real(0, 1)})
    path = tmp_path_factory.mktemp("fares") / "fares.spinney"
    sp.KDTreeSynthesizer(2).fit(pa.table(table), schema).save(path)
    sp.load(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


PIECES = {
    "no pieces": lambda c: c["axes"][0].pop("pieces"),
    "another unit": lambda c: c["axes"][0]["pieces"].update(unit="1"),
    "cells of another width": lambda c: c["axes"][1].update(scale=2 * c["axes"][1]["scale"]),
    "of a synthesizer without": lambda c: c["card"].update(synthesizer="PaperTreeSynthesizer"),
    "of a version without": lambda c: c.update(format_version=1),
    "said to be even": lambda c: c.update(cells="even"),
}


@pytest.mark.parametrize("change", PIECES.values(), ids=PIECES)
def test_axes_are_those_that_the_schema_gives(path, fares, change):
    """Leaves on other axes would lie elsewhere: pieces are there, and those of the schema, or nowhere."""
    card = json.loads(fares["card.json"])
    change(card)
    refused(path, zipped(fares | {"card.json": json.dumps(card)}), "pieces|cells of column|inconsistent")


@pytest.mark.parametrize("kind", ["bins", "moments"])
def test_a_file_of_the_first_version_is_saved_again(path, kind):
    """Its axes have no pieces, which the new file says, and draws the same rows."""
    path.write_bytes(zipped(members_of(kind)))
    old = sp.load(path)
    again = path.with_name("again.spinney")
    old.save(again)
    rows = [release.sample(50, seed=1, frame="pyarrow") for release in (old, sp.load(again))]
    assert rows[0].equals(rows[1])


def test_more_rows_than_the_release_makes_likely(path):
    """A number of rows is believed as far as counts bear it out; what is left is not drawn without being asked for."""
    n_rows = json.loads(members_of("moments")["card.json"])["card"]["n_rows"]
    for wrong in (2**39, 3 * n_rows // 2, n_rows // 2):
        changed = changed_card("moments", lambda c, n=wrong: c["card"].update(n_rows=n))
        refused(path, changed, "add up to about n_rows")
    refused(path, changed_card("forest", lambda c: c["card"].update(n_rows=2**39)), "noisy_total")
    both = changed_card("forest", lambda c: (c["card"].update(n_rows=2**39), c.update(noisy_total=2**39)))
    refused(path, both, "do not add up to noisy_total")
    for n_rows in (2**39, 2**26):
        path.write_bytes(changed_card("bins", lambda c, n=n_rows: c["card"].update(n_rows=n)))
        with pytest.raises(ParameterError, match=r"sample\(n_rows=\.\.\.\)"):
            sp.load(path).sample()
        assert len(sp.load(path).sample(7)) == 7
    assert len(sp.load(next(file for file in GOLDEN if "tree-mixed" in file.name)).sample()) == 800


# ------------------------------------------------------------------------------------------------ Arrow


def test_columns_of_other_types(path):
    """Only the columns that a kind has, of the types that it has, and no nulls; columns beside them are not read."""
    members = members_of("bins")
    table = pa.ipc.open_file(pa.py_buffer(members["bins.arrow"])).read_all()
    for name, values in (
        ("noisy_count", pa.array([1.0] * 49)),
        ("noisy_count", pa.array([None] * 49, pa.int64())),
        ("noisy_count", pa.array([2**62] * 49)),
        ("noisy_count", pa.array(["1"] * 49)),
        ("noisy_count", pa.nulls(49)),
        ("depth", pa.array([3] * 49, pa.int8())),
        ("code_0", pa.array([-1] * 49)),
        ("code_0", pa.array([2**64 - 1] * 49, pa.uint64())),
        ("code_0", table["code_0"].take(list(range(48, -1, -1)))),
    ):
        other = table.set_column(table.column_names.index(name), name, values)
        refused(path, zipped(members | {"bins.arrow": to_arrow(other)}), "inconsistent")
    more = table.append_column("later", pa.array([{"a": [None, "x"]}] * 49))
    path.write_bytes(zipped(members | {"bins.arrow": to_arrow(more)}))
    assert len(sp.load(path).bins) == 49


def test_buffers_that_say_they_are_huge(path):
    """A buffer says what it unpacks to before it is unpacked; so does one that would keep its word."""
    members = members_of("bins")
    table = pa.table({"code_0": np.zeros(2**26, dtype=np.uint64), "depth": np.zeros(2**26, dtype=np.int32)})
    bomb = to_arrow(table.append_column("noisy_count", pa.array(np.zeros(2**26, dtype=np.int64))))
    assert len(bomb) < 2**18
    with pytest.raises(ValueError, match="far more than it is stored in"):
        from_arrow(bomb, {"code_0": (pa.uint64(),)})
    assert "far more" in refused(path, zipped(members | {"bins.arrow": bomb}), "inconsistent")
    small = to_arrow(pa.table({"x": np.arange(1000.0)}))
    length = struct.pack("<q", 8000)
    assert small.count(length) >= 1
    for lie in (2**62, 2**40, -5):
        with pytest.raises((ValueError, pa.ArrowException)):
            from_arrow(small.replace(length, struct.pack("<q", lie)), {"x": FLOAT})


def test_every_batch_is_read_and_checked():
    """A table in several batches is whole, and one in thousands is refused."""

    def pieces(n):
        sink = io.BytesIO()
        batch = pa.record_batch({"n": np.arange(3)})
        with pa.ipc.new_file(sink, batch.schema) as writer:
            for _ in range(n):
                writer.write_batch(batch)
        return sink.getvalue()

    assert from_arrow(pieces(4), {"n": WHOLE})["n"].to_pylist() == [0, 1, 2] * 4
    with pytest.raises(ValueError, match="too many pieces"):
        from_arrow(pieces(5000), {"n": WHOLE})


PROGRAM = """
import io, random, resource, sys, time, zipfile
from pathlib import Path
import numpy as np
import spinney as sp
resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
path, where, n_cases = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for golden in map(Path, sys.argv[4:]):
    print(golden.stem, flush=True)
    with zipfile.ZipFile(golden) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    rng = random.Random(7)
    slowest = 0.0
    names = [name for name in members if name.endswith(where)]
    for _ in range(n_cases):
        name = rng.choice(names)
        content = bytearray(members[name])
        for _ in range(rng.choice([1, 1, 2, 4])):
            at = rng.randrange(len(content))
            width = rng.choice([1, 4, 8])
            most = 2 ** (8 * width)
            value = rng.choice([rng.getrandbits(8 * width), 0, most - 1, most // 2, 2 ** (4 * width), 255])
            content[at:at + width] = value.to_bytes(width, "little")
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for other, data in members.items():
                archive.writestr(other, bytes(content) if other == name else data)
        path.write_bytes(buffer.getvalue())
        start = time.process_time()
        try:
            sp.load(path).sample(5, seed=1)
        except sp.SpinneyError:
            pass
        slowest = max(slowest, time.process_time() - start)
    assert slowest < 5, slowest
print("done")
"""


@pytest.mark.parametrize("where", [".arrow", ".json"])
@pytest.mark.parametrize("part", range(4))
def test_bytes_changed_at_random(tmp_path, part, where):
    """Lengths, offsets and counts of all kinds of files, spoilt with right checksums: our errors, and no crash."""
    files = [str(path) for path in GOLDEN[part::4]]
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path / "r"), where, str(cases(12, 250)), *files]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=1200)
    assert ended.returncode == 0, (ended.returncode, ended.stdout.split()[-1:], ended.stderr[-2000:])
    assert ended.stdout.split() == [*(path.stem for path in GOLDEN[part::4]), "done"]


def test_pieces_of_files_shuffled(path):
    """Members of one release in another: refused, or the same contents."""
    rng = random.Random(3)
    kinds = list(KINDS)
    for _ in range(60):
        one, other = rng.sample(kinds, 2)
        mixed = {**members_of(other), **members_of(one), "card.json": members_of(one)["card.json"]}
        swapped = rng.choice([name for name in mixed if name != "card.json"])
        mixed[swapped] = rng.choice(list(members_of(other).values()))
        path.write_bytes(zipped(mixed))
        try:
            sp.load(path).sample(3, seed=1)
        except SpinneyError:
            continue


def test_the_size_of_what_is_read_is_known_before():
    """The sizes that are added up are those of all buffers: a reader that skipped some would let them through."""
    texts = pa.array(["x"] * 100).dictionary_encode()
    table = pa.table({"a": np.arange(100), "b": pa.array([[1.0, 2.0]] * 100), "c": texts})
    stream = pa.py_buffer(to_arrow(table)).slice(8)
    sizes = [size for message in arrow_module._messages(stream) for size in arrow_module._unpacked_sizes(message)]
    assert sum(sizes) >= table.nbytes


@pytest.mark.parametrize(
    ("entry", "match"),
    [
        ({"type": "category", "values_from": "/etc/passwd"}, "values_from names a file"),
        ({"type": "category", "values": "private"}, "leaves a list of values to be found"),
        ({"type": "category", "values": ["a"], "other": 5}, "another type"),
        ({"type": "category", "values": ["a", "b"], "hierarchy": {"a": "a"}}, "circle"),
        ({"type": "category", "values": ["a", "b"], "hierarchy": [10**400]}, "hierarchy|digits|numbers"),
        ({"type": "category", "values": ["a"], "_places": {}}, "_places"),
    ],
)
def test_a_schema_in_a_file_opens_no_files_and_leaves_nothing_open(path, entry, match):
    """A release holds its lists itself, whatever it says, and hierarchies without end are refused."""

    def change(card) -> None:
        columns = card["card"]["schema"]["columns"]
        name = next(name for name, column in columns.items() if column["type"] == "category")
        columns[name] = entry

    refused(path, changed_card("forest", change), match)
