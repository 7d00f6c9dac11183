"""Nothing sensitive leaves: no value of the private table in any file, repr, card, error or pickle of a model."""

from __future__ import annotations

import ast
import io
import pickle
import struct
import traceback
import zipfile
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spinney as sp
from spinney.counting.states import Cut
from spinney.errors import SpinneyError
from spinney.forest.prepaid import PrepaidMechanisms
from spinney.grid.lattice import tree_lattice
from spinney.tables.engines.memory import count_cells, state_rows
from spinney.tables.frames import open_table
from support.error_chains import chain
from support.handmade_leaves import noisy_numbers, noisy_part
from support.in_one_test import in_one_test
from support.sources import nodes

N = 400
SCHEMA = {
    "real": sp.Real(0, 1),
    "number": sp.Integer(0, 2**50),
    "day": sp.Date("1900-01-01", "2099-12-31"),
    "moment": sp.Datetime("1900-01-01", "2099-12-31", timezone="UTC"),
    "colour": sp.Category(["red", "green"]),
}


@pytest.fixture(scope="module")
def secret() -> pd.DataFrame:
    """Values that nothing public could equal by chance."""
    rng = np.random.default_rng(99)
    return pd.DataFrame(
        {
            "real": rng.random(N),
            "number": rng.integers(2**45, 2**50, N),
            "day": [date(1931, 1, 2) + timedelta(days=int(d)) for d in rng.integers(0, 20_000, N)],
            "moment": [
                datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(m)) for m in rng.integers(1e14, 1e15, N)
            ],
            "colour": rng.choice(["red", "green"], N),
        }
    )


def traces(frame: pd.DataFrame) -> set[bytes]:
    """The forms in which a value of the table might be written: as text and as 64-bit numbers."""
    found: set[bytes] = set()
    for value in frame["real"]:
        found |= {repr(value).encode(), f"{value:.9g}".encode(), struct.pack("<d", value), struct.pack(">d", value)}
    for value in frame["number"].tolist():
        found |= {str(value).encode(), struct.pack("<q", value), struct.pack(">q", value)}
    for value in frame["day"]:
        found |= {value.isoformat().encode(), repr(value).encode()}
    for value in frame["moment"]:
        micros = int((value - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
        found |= {value.isoformat().encode(), str(value).encode(), struct.pack("<q", micros), str(micros).encode()}
    return found


def leaks(haystack: bytes, needles: set[bytes]) -> list[bytes]:
    return [needle for needle in needles if needle in haystack]


def plain_bytes(column: pa.ChunkedArray) -> bytes:
    """The values one after the other, those of lists too, whatever encoding the file has."""
    while pa.types.is_list(column.type):
        column = column.combine_chunks().flatten()
    values = np.asarray(column)
    return "\n".join(values).encode() if values.dtype == object else values.tobytes()


def everything_public(model, path) -> dict[str, bytes]:
    """Whatever a fitted model writes, shows or carries, decompressed where it is compressed."""
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    columns = {}
    for member in members.keys() - {"card.json"}:
        table = pa.ipc.open_file(io.BytesIO(members[member])).read_all()
        columns |= {f"column {name} of {member}": plain_bytes(table[name]) for name in table.column_names}
    shown = [model, model.release_, model.card_, model.ledger_, model.ledger_.events]
    if isinstance(model, sp.ForestSynthesizer):
        shown += [model.release_.columns, model.release_.model, model.design_]
    else:
        shown += [noisy_part(model.release_), model.plan_]
    model.sample(3)  # what a release keeps for the next sample is searched too
    return {
        "file": path.read_bytes(),
        **members,
        **columns,
        "reprs": "\n".join(f"{thing!r}\n{thing!s}" for thing in shown).encode(),
        "card": model.card_.to_json().encode(),
        "attributes": repr(vars(model)).encode(),
        "pickle": pickle.dumps(model),
    }


MODELS = {
    "moments": sp.KDTreeSynthesizer(20),
    "bins": sp.KDTreeSynthesizer(20, moments=False),
    "paper": sp.PaperTreeSynthesizer(20, h=2, h_prime=12, tau=5, t=1),
    "grid": sp.GridSynthesizer(20, bins=4),
    "moments, add-remove": sp.KDTreeSynthesizer(20, unit="add-remove"),
    "bins, add-remove": sp.KDTreeSynthesizer(20, unit="add-remove", moments=False),
    "forest": sp.ForestSynthesizer(20),
    "forest, target": sp.ForestSynthesizer(20, target="colour"),
    "forest, numeric target, pure": sp.ForestSynthesizer(50, 0, target="number"),
    "forest, add-remove, high": sp.ForestSynthesizer(20, unit="add-remove", quality="high", assumed_rows=400),
}

KINDS = {
    "moments": sp.KDTreeSynthesizer,
    "bins": partial(sp.KDTreeSynthesizer, moments=False),
    "forest": sp.ForestSynthesizer,
}
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_no_training_value_in_anything_public(secret, tmp_path, model):
    """Files, columns, cards, reprs and pickles are searched for every value of the table, as text and as bytes."""
    needles = traces(secret)
    model.fit(secret, sp.Schema(SCHEMA))
    assert len(noisy_numbers(model.release_)) > 5
    for name, haystack in everything_public(model, tmp_path / "release").items():
        assert leaks(haystack, needles) == [], name


@each_kind
def test_the_search_finds_what_is_there(secret, tmp_path, kind):
    """Bounds read off the data are data: the same search finds them on the card."""
    schema = sp.Schema(SCHEMA | {"number": sp.Integer(bounds="from-data-not-private")})
    model = kind(5).fit(secret, schema)
    found = leaks(everything_public(model, tmp_path / "release")["card.json"], traces(secret))
    assert str(secret["number"].max()).encode() in found
    assert str(secret["number"].min()).encode() in found


@each_kind
def test_private_bounds_are_not_values(secret, tmp_path, kind):
    """Paid-for bounds are powers of two, not extremes of the data."""
    columns = {name: SCHEMA[name] for name in ("real", "colour")} | {
        "number": sp.Integer(bounds="private"),
        "day": sp.Date(bounds="private"),
        "moment": sp.Datetime(bounds="private", timezone="UTC"),
    }
    model = kind(50, bounds_share="0.5").fit(secret, sp.Schema(columns))
    for name, haystack in everything_public(model, tmp_path / "release").items():
        assert leaks(haystack, traces(secret)) == [], name


def test_sensitive_intermediates_have_no_telling_repr(secret):
    """The opened table and its counts say that they are sensitive and nothing else."""
    table = open_table(secret, sp.Schema(SCHEMA))
    counts = count_cells(table, tree_lattice(sp.Schema(SCHEMA)))
    assert repr(table) == "Table(pandas, sensitive)"
    assert repr(counts) == "CellCounts(sensitive)"


def test_rows_as_states_are_neither_shown_nor_pickled(secret):
    """What a forest holds of the rows says that it is sensitive; prepaid mechanisms show what is left and no noise."""
    schema = sp.Schema({"colour": SCHEMA["colour"]})
    axis = tree_lattice(schema).axes[0]
    rows = state_rows(open_table(secret[["colour"]], schema), [Cut(axis, np.arange(2), np.arange(2))])
    plan = sp.ForestSynthesizer(20).fit(secret, sp.Schema(SCHEMA)).design_.plan
    prepaid = PrepaidMechanisms(plan, sp.Ledger(limit=20, delta="1e-5"), sp.UnsafeSeededEntropy(7351))
    assert repr(rows) == "StateRows(sensitive)"
    left = {"trees": 4, "one-way": 5, "spikes": 4, "grain": 1, "cliques": 4, "selection": 4, "products": 1}
    assert repr(prepaid) == f"PrepaidMechanisms({left})"
    for private in (rows, prepaid):
        with pytest.raises(TypeError, match=r"never pickled|used where they were paid for"):
            pickle.dumps(private)


@pytest.mark.parametrize("quality", ["fast", "high"])
def test_a_fit_says_nothing_while_it_runs(secret, quality, caplog, capfd):
    """No log record, nothing printed but progress, which counts columns and rounds and never rows."""
    with caplog.at_level(0):
        sp.ForestSynthesizer(20, quality=quality, target="colour").fit(secret, sp.Schema(SCHEMA))
    printed = "".join(capfd.readouterr())
    assert not caplog.records
    assert leaks(printed.encode(), traces(secret)) == []
    assert str(N) not in printed


@in_one_test(
    ("values", "column"),
    [
        (["MARKER-7351", "red"], sp.Category(["red"])),
        ([73517351.5, 1.0], sp.Integer(0, 9)),
        ([73517351, 1], sp.Boolean()),
        ([73517351, 1], sp.Category([1, 2])),
        (pd.Series(["73517351 people", 1], dtype=object), sp.Integer(0, 9)),
        (pd.Series([73517351, {}], dtype=object), sp.Real(0, 9)),
        (pd.Series([date(7351, 7, 3), "x"], dtype=object), sp.Date("2020-01-01", "2021-01-01")),
        ([73517351.25, float("nan")], sp.Real(0, 1)),
        (["MARKER-7351", "x"], sp.Real(0, 1)),
        (pd.Series([b"MARKER-7351", b"x"], dtype=object), sp.Category(["red"])),
    ],
)
@in_one_test("kind", [sp.KDTreeSynthesizer, sp.ForestSynthesizer])
def test_errors_quote_no_values(values, column, kind):
    """Unreadable values are reported by column; the printed traceback, causes included, does not show them."""
    with pytest.raises(SpinneyError) as caught:
        kind().fit(pd.DataFrame({"it": values}), sp.Schema({"it": column}))
    shown = "".join(traceback.format_exception(caught.value, limit=0))
    assert "'it'" in shown
    assert "7351" not in shown
    assert chain(caught.value) == [caught.value]


def test_no_module_uses_pickle():
    """Nothing in the library reads or writes pickles, or anything else that runs code on loading."""
    assert pickles_in("import numpy, shelve\nfrom joblib.pool import x\nload(allow_pickle=True)") == {
        "joblib",
        "pickle",
        "shelve",
    }
    home = Path(sp.__file__).parents[1]
    sources = [path for name in ("spinney", "spinney_audit", "spinney_studio") for path in (home / name).rglob("*.py")]
    assert len(sources) > 200
    assert not {path: found for path in sources if (found := pickles_in(path.read_text(encoding="utf-8")))}


def pickles_in(source):
    """Libraries that read or write pickles, or code in another form, by which a source imports or asks for them."""
    forbidden, imported = {"pickle", "cPickle", "joblib", "dill", "cloudpickle", "shelve", "marshal"}, set()
    for node in nodes(source, forbidden):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.split(".")[0])
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            imported.add("pickle")
    return imported & forbidden
