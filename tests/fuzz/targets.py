"""What is fuzzed: for each kind of input, seeds, a mutator, and what is done with an input.

An input may be refused by a SpinneyError or taken. Anything else is a finding: another exception, a crash of the
process, more than a few seconds or gigabytes, a message that quotes a value of a private table.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl

import spinney as sp
from fuzz.mutators import Mutator, mutate_bytes, mutate_json, mutate_release, mutate_text
from spinney.cli.command import message
from spinney.errors import SpinneyError
from spinney.grid.lattice import tree_lattice
from spinney.privacy.budget import Unit
from spinney.privacy.mechanisms import DiscreteLaplaceCounts
from spinney.release.answers.grammar import parse_balance, parse_where
from spinney.tables.open import open_source
from spinney_paper.baselines import BalogAlgorithm2

# Stands for somebody's value in every table; no message may hold it.
SECRET = "zqxj"
_SCRATCH = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir())


class Leak(Exception):
    """A message holds what stands for somebody's value."""


@dataclass(frozen=True, slots=True)
class Target:
    """One kind of hostile input. `dictionary` holds words that a mutator may put in."""

    name: str
    seeds: Callable[[], list[bytes]]
    run: Callable[[bytes], None]
    mutate: Mutator
    dictionary: tuple[str, ...] = ()

    def check(self, data: bytes) -> bool:
        """Whether the input was taken; anything but a clean refusal is raised."""
        try:
            self.run(data)
        except SpinneyError as err:
            told = message(err)
            assert told.strip(), "an error without a message"
            assert len(told) < 20_000, "an error that repeats its input"
            return False
        return True


# ------------------------------------------------------------------------------------------------- release files


def _release_seeds() -> list[bytes]:
    """A small release of every kind."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "x": rng.random(80),
            "n": rng.integers(0, 9, 80),
            "c": rng.choice(["a", "b"], 80),
            "b": rng.random(80) < 0.3,
        }
    )
    numbers = sp.Schema({"x": sp.Real(0, 1), "n": sp.Integer(0, 9)})
    mixed = sp.Schema({**numbers, "c": sp.Category(["a", "b"]), "b": sp.Boolean(nullable=True)})
    models = [
        (sp.KDTreeSynthesizer("1"), numbers),
        (sp.KDTreeSynthesizer("1", moments=False, unit="add-remove"), numbers),
        (sp.PaperTreeSynthesizer("1"), numbers),
        (sp.GridSynthesizer("1"), numbers),
        (sp.ForestSynthesizer("9", 0), mixed),
        (sp.ForestSynthesizer("9", target="b"), mixed),
        (sp.ForestSynthesizer("99"), mixed),
        (BalogAlgorithm2("1", delta="1e-6", n_features=10, n_points=5, n_steps=2), sp.Schema({"x": sp.Real(0, 1)})),
    ]
    seeds = []
    for seed, (model, schema) in enumerate(models):
        entropy = sp.UnsafeSeededEntropy(seed) if seed % 2 else None
        model.fit(frame.select(list(schema)), schema, entropy=entropy)
        path = _SCRATCH / f"seed-{os.getpid()}.spinney"
        model.save(path, overwrite=True)
        seeds.append(path.read_bytes())
        path.unlink()
    return seeds


def _run_release(data: bytes) -> None:
    release = sp.load(_written(data, "fuzz.spinney"))
    str(release.card), repr(release), release.card.to_json()
    release.sample(16, seed=1)
    if hasattr(release, "explain"):
        str(release.explain())


# -------------------------------------------------------------------------------------------------- ledger files


def _ledger_seeds() -> list[bytes]:
    events: list[dict[str, Any]] = [
        {"event": "DiscreteLaplaceCounts", "epsilon": "1/2", "sensitivity": 2, "note": "counts"},
        {"event": "LeafMoments", "epsilon": "1/3", "sensitivity": 2, "note": "leaves"},
        {"event": "Selection", "epsilon": "1/9", "note": "4 choices"},
        {"event": "SplitDecisions", "epsilon": "1/9", "rule": "privtree", "rate": "1/8", "levels": 4, "note": "splits"}
        | {"stage": "trees", "times": 3, "decay": 2},
        {"event": "DiscreteLaplaceCounts", "epsilon": "1/9", "sensitivity": 2, "note": "bounds of x: leaf counts"},
        {"event": "DiscreteLaplaceCounts", "epsilon": "1/9", "sensitivity": 2, "note": "n"}
        | {"stage": "bounds", "times": 1, "column": "x"},
        {"event": "NotPrivate", "note": "bounds were read off the data"},
        {"event": "UnsafeEntropy", "note": "noise from a seeded generator"},
    ]
    account = {"format": "spinney-ledger", "format_version": 1, "unit": "replace-one", "limit": "2", "delta": "1e-6"}
    forest = sp.ForestSynthesizer("9", "1e-6").fit(
        np.random.default_rng(0).random((300, 2)), sp.Schema({"x": sp.Real(0, 1), "y": sp.Real(0, 1)})
    )
    composed = forest.card_.to_dict()["events"]
    accounts = [account | {"events": events}, account | {"limit": "20", "events": composed}, account | {"events": []}]
    return [*(json.dumps(each).encode() for each in accounts), *_database_seeds()]


def _database_seeds() -> list[bytes]:
    """Ledgers as databases: two populations, a request, a charge."""
    path = Path(_written(b"", "fuzz.seed.ledger"))
    path.unlink()
    ledger = sp.Ledger.create(path, limit=2, delta="1e-6")
    ledger.charge(DiscreteLaplaceCounts(Fraction(1, 2), 2, "counts"))
    small = path.read_bytes()
    ledger.request("0.5", purpose="more")
    ledger.set_limits(3, why="agreed")
    return [small, path.read_bytes()]


def _run_ledger(data: bytes) -> None:
    account = sp.Ledger.open(_written(data, "fuzz.ledger"))
    assert account.spent >= 0
    assert account.spent_delta >= 0
    repr(account), account.remaining, account.remaining_delta
    account.require(account.spent + 1, unit=Unit.parse(account.unit))


# ------------------------------------------------------------------------------------------------------- schemas


_SCHEMA_WORDS = (
    *("[columns.x]\n", "[[rules]]\n", 'type = "real"\n', 'type = "integer"\n', 'type = "category"\n', "low = 0\n"),
    *(
        'type = "date"\n',
        'type = "datetime"\n',
        'type = "boolean"\n',
        'type = "identifier"\n',
        "high = 9\n",
        "bits = 3\n",
    ),
    *(
        'bounds = "private"\n',
        "nullable = true\n",
        "multiple_of = 0.1\n",
        'values = ["a", "b"]\n',
        'timezone = "UTC"\n',
    ),
    *(
        "inf",
        "nan",
        "1e400",
        "-0.0",
        "9" * 400,
        "[" * 300,
        "1979-05-27",
        "1979-05-27T07:32:00Z",
        '"""',
        "'''",
        "\\u0000",
    ),
)


def _schema_seeds() -> list[bytes]:
    column = sp.Schema(
        {
            "x": sp.Real(0, 1, multiple_of=0.25),
            "n": sp.Integer(0, 9, nullable=True, bits=3),
            "s": sp.Date("2020-01-01", "2020-12-31"),
            "e": sp.Date("2020-01-01", "2020-12-31", nullable=True),
            "t": sp.Datetime("2020-01-01", "2020-12-31", timezone="UTC"),
            "c": sp.Category(["a", "b"]),
            "k": sp.Category([1, 2]),
            "b": sp.Boolean(),
            "i": sp.Identifier(),
            "p": sp.Real(bounds="private"),
        },
        rules=[sp.AtMost("s", "e"), sp.EmptyWhen("e", "c", ["a"])],
    )
    return [column.to_toml().encode(), b'[columns.x]\ntype = "real"\nlow = 0\nhigh = 1\n', b""]


def _run_schema(data: bytes) -> None:
    schema = sp.Schema.from_file(_written(data, "fuzz.toml"))
    repr(schema)
    assert sp.Schema.from_dict(schema.to_dict()) == schema
    assert sp.Schema.from_toml(schema.to_toml()) == schema


# ----------------------------------------------------------------------------------------------------------- CSV


_CSV_SCHEMA = sp.Schema(
    {
        "real": sp.Real(0, 9, nullable=True),
        "whole": sp.Integer(0, 9),
        "day": sp.Date("2020-01-01", "2020-12-31", nullable=True),
        "moment": sp.Datetime("2020-01-01", "2020-12-31"),
        "is": sp.Boolean(nullable=True),
        "kind": sp.Category(["a", "b", "c d"], nullable=True),
        "id": sp.Identifier(prefix="p"),
    }
)
_CSV_WORDS = (
    '"',
    '""',
    "\n",
    "\r\n",
    "\r",
    ",",
    ";",
    "\t",
    "\ufeff",
    "\x00",
    "NA",
    "nan",
    "1e999",
    "2020-01-31",
    "1,5",
)


def _csv_seeds() -> list[bytes]:
    header = "real,whole,day,moment,is,kind,id\n"
    rows = [
        f"0.5,3,2020-01-31,2020-01-31T12:00:00,true,a,{SECRET}1",
        f'1e-3, 4 ,,2020-02-01 00:00:00,,"c d","{SECRET}2"',
        f"NA,5.0,2020-02-29,2020-02-29T10:00:00.5,0,b,{SECRET}3",
    ]
    bad = f"{SECRET}4,3,2020-01-31,{SECRET}5,true,{SECRET}6,x"
    texts = [header + "\n".join(rows) + "\n", header + "\n".join([*rows, bad]), header, header + rows[0] + "\r\n" + bad]
    return [text.encode() for text in texts] + [texts[0].encode("utf-16"), texts[0].replace(",", ";").encode()]


def _run_csv(data: bytes) -> None:
    header = data.split(b"\n", 1)[0]
    try:
        source = open_source(_written(data, "fuzz.csv"), _CSV_SCHEMA)
        source.check_values()
        counts = source.count_cells(tree_lattice(sp.Schema({"real": _CSV_SCHEMA["real"]})))
        assert int(counts.distinct()[1].sum()) == source.n_rows
    except SpinneyError as err:
        # Names of columns are public.
        if SECRET.encode() not in header and SECRET in f"{err}{err.__cause__}{err.__context__}":
            raise Leak("a value of the table in an error") from err
        raise


# ---------------------------------------------------------------------------------------------------- conditions


_CONDITION_WORDS = (
    "x=",
    "n=",
    "c=",
    "b=",
    "d=",
    "..",
    "null",
    "true",
    "0.5",
    "a:",
    "b:",
    '"',
    "1e400",
    "-inf",
    "2020-06-01",
)


@cache
def _conditioned() -> Any:
    rng = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + rng.integers(0, 300, 200)
    frame = pl.DataFrame(
        {
            "x": rng.random(200),
            "n": rng.integers(0, 9, 200),
            "c": rng.choice(["a", "b"], 200),
            "b": rng.random(200) < 0.5,
        }
    ).with_columns(d=pl.Series(days))
    schema = sp.Schema(
        {
            "x": sp.Real(0, 1, multiple_of=0.01),
            "n": sp.Integer(0, 9),
            "c": sp.Category(["a", "b"]),
            "b": sp.Boolean(nullable=True),
            "d": sp.Date("2020-01-01", "2020-12-31"),
        }
    )
    return sp.ForestSynthesizer("9").fit(frame, schema).release_


def _condition_seeds() -> list[bytes]:
    texts = ["x=0.1..0.5", "c=a,b\nn=3", "b=null", "d=2020-01-01..2020-06-30", "=c=a:0.2,b:0.8", "=b=0.5", 'c="a"']
    wanted = [{"x": [0.1, 0.5], "c": ["a"]}, {"n": 3, "b": None}, {"d": "2020-03-01", "b": 1}]
    return [text.encode() for text in texts] + [json.dumps(each).encode() for each in wanted]


def _run_condition(data: bytes) -> None:
    """Lines of --where, or after an equals sign of --balance; or the `where` of Python as JSON."""
    release = _conditioned()
    text = data.decode(errors="surrogateescape")
    try:
        where = json.loads(text)
    except (ValueError, RecursionError):
        lines = text.split("\n")
        conditions = parse_where([line for line in lines if not line.startswith("=")], release.schema)
        shares = parse_balance([line[1:] for line in lines if line.startswith("=")], release.schema)
        release.sample(4, seed=0, where=conditions, balance=shares)
        return
    release.sample(4, seed=0, where=where)


# --------------------------------------------------------------------------------------------------------- helpers


def _written(data: bytes, name: str) -> Path:
    """The input as a file, in memory where there is such a place; each process has its own."""
    path = _SCRATCH / f"{os.getpid()}-{name}"
    path.write_bytes(data)
    return path


def forget_files() -> None:
    """Remove what `_written` left."""
    for path in _SCRATCH.glob(f"{os.getpid()}-fuzz.*"):
        path.unlink(missing_ok=True)


def _worded(words: tuple[str, ...]) -> Mutator:
    return lambda data, rng, other: mutate_text(data, rng, words, other)


TARGETS = {
    target.name: target
    for target in (
        Target("release", _release_seeds, _run_release, mutate_release),
        Target("ledger", _ledger_seeds, _run_ledger, mutate_json),
        Target("schema", _schema_seeds, _run_schema, _worded(_SCHEMA_WORDS), _SCHEMA_WORDS),
        Target("csv", _csv_seeds, _run_csv, _worded(_CSV_WORDS), _CSV_WORDS),
        Target("condition", _condition_seeds, _run_condition, _worded(_CONDITION_WORDS), _CONDITION_WORDS),
    )
}


def mutated(target: Target, data: bytes, rng: Random) -> bytes:
    """A mutation that needs no fuzzer."""
    return target.mutate(data, rng, lambda old: mutate_bytes(old, rng))
