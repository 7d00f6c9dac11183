"""Sums of named regressions that no table has, weights and noise that do not follow: refused when read or verified."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import FileError
from spinney.forest.release.model import ForestRelease
from spinney.release.card import ContradictionError
from spinney.release.file import to_arrow

SCHEMA = sp.Schema(
    {
        "h": sp.Integer(10, 59),
        "k": sp.Category(["a", "b", "c"]),
        "m": sp.Boolean(),
        "z": sp.Real(1, 9),
        "s": sp.Integer(0, 500, multiple_of=50),
        "t": sp.Real(0, 10, multiple_of=0.5),
        "q": sp.Integer(0, 9, nullable=True),
    }
)
N_ROWS = 3_000


def table(n: int = N_ROWS) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "h": rng.integers(30, 60, n),
            "k": rng.choice(["a", "b", "c"], n),
            "m": rng.random(n) < 0.2,
            "z": rng.normal(8, 1, n),
            "s": rng.integers(0, 4, n) * 50,
            "t": rng.integers(15, 21, n) / 2,
            "q": pd.array(rng.integers(0, 10, n), dtype="Int64").copy(),
        }
    ).assign(q=lambda frame: frame["q"].mask(rng.random(n) < 0.1))


Contents = dict[str, bytes]


def contents(folder: Path, formulas: list[str], **options: Any) -> Contents:
    path = folder / "honest.spinney"
    sp.ForestSynthesizer(analyses=formulas, **{"epsilon": 5} | options).fit(table(), SCHEMA).save(path)
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    return contents(tmp_path_factory.mktemp("honest"), ["h ~ k + m"])


@pytest.fixture(scope="module")
def of_numbers(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    return contents(tmp_path_factory.mktemp("numbers"), ["h ~ z + s"])


def written(folder: Path, members: Contents) -> Path:
    path = folder / "forged.spinney"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return path


def with_card(members: Contents, change: Any) -> Contents:
    described = json.loads(members["card.json"])
    change(described)
    return members | {"card.json": json.dumps(described).encode()}


def with_sums(members: Contents, change: Any) -> Contents:
    sums = pa.ipc.open_file(pa.py_buffer(members["analyses.arrow"])).read_all()["sums"].to_pylist()
    changed = pa.array([[change(value) for value in block] for block in sums], pa.list_(pa.int64()))
    return members | {"analyses.arrow": to_arrow(pa.table({"sums": changed}))}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda _: -(2**63), "out of range"),
        (lambda _: 2**60, "larger than the number of rows"),
        (lambda _: 0, "do not add up"),
        (lambda value: -value, "negative that is of squares"),
        (lambda value: value // 2, "do not add up"),
    ],
)
def test_sums_that_no_table_has_are_not_read(members: Contents, tmp_path: Path, change: Any, says: str) -> None:
    with pytest.raises(FileError, match=says):
        sp.load(written(tmp_path, with_sums(members, change)))


@pytest.mark.parametrize("change", [lambda _: 0, lambda value: value // 3])
def test_moments_of_numbers_are_those_of_their_counts(of_numbers: Contents, tmp_path: Path, change: Any) -> None:
    """Without a category nothing adds up to the constant, and the counts of the columns' leaves tell."""
    with pytest.raises(FileError, match="not of a column with the counts in the file"):
        sp.load(written(tmp_path, with_sums(of_numbers, change)))


@pytest.mark.parametrize("factor", [Fraction(1, 2), Fraction(19, 10), Fraction(1_000_001, 1_000_000)])
def test_noise_is_what_the_charge_gives(members: Contents, tmp_path: Path, factor: Fraction) -> None:
    for stage in ("analyses", "products"):

        def change(described: Any, stage: str = stage) -> None:
            described[stage]["variance"] = str(Fraction(described[stage]["variance"]) * factor)

        with pytest.raises(FileError, match=f"the sums of {stage} have (less|more) noise"):
            sp.load(written(tmp_path, with_card(members, change)))


def test_weights_are_chosen_again(members: Contents, tmp_path: Path) -> None:
    """Weights of two columns exchanged: were the sums possible with them, they do not follow from the columns."""
    release = sp.load(written(tmp_path, members))
    assert isinstance(release, ForestRelease)
    assert any("chosen again" in line for line in release.verify_model())
    honest = release.analyses
    assert honest is not None
    units = honest.blocks[0].units
    n_swapped = 0
    for first, second in [(0, 2), (0, 3), (2, 3)]:
        swapped = list(units)
        swapped[first], swapped[second] = units[second], units[first]
        if swapped != list(units):
            n_swapped += 1
            release.analyses = replace(honest, blocks=(honest.blocks[0].weighing(swapped),))
            with pytest.raises(ContradictionError, match="not those that the columns in the file give"):
                release.verify_model()
    assert n_swapped


@pytest.mark.parametrize("held", [1e-300, 1e9])
def test_what_the_tilt_was_fitted_with_is_what_was_paid_for(members: Contents, tmp_path: Path, held: float) -> None:
    forged = with_card(members, lambda described: described["measured"]["fit"]["tilt"].update(held_std=held))
    with pytest.raises(FileError, match="other noise of tables than was paid for"):
        sp.load(written(tmp_path, forged))


def test_piles_that_were_paid_for_are_there(members: Contents, tmp_path: Path) -> None:
    """Neither their noise alone can be left out, nor their counts with it."""

    def change(described: Any) -> None:
        for column in described["measured"]["columns"]:
            column.pop("noise of piles", None)

    forged = with_card(members, change)
    with pytest.raises(FileError, match="no noise is stated for them"):
        sp.load(written(tmp_path, forged))
    counts = pa.ipc.open_file(pa.py_buffer(members["counts.arrow"])).read_all()
    for name in ("noisy_piles", "pile"):
        nothing = pa.array([[]] * counts.num_rows, counts.schema.field(name).type)
        counts = counts.set_column(counts.schema.get_field_index(name), name, nothing)
    with pytest.raises(FileError, match=r"piles were paid for|do not weigh"):
        sp.load(written(tmp_path, forged | {"counts.arrow": to_arrow(counts)}))


@pytest.mark.parametrize("unit", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", ["0.05", "1", "20"])
@pytest.mark.parametrize("formulas", [["h ~ k + m + z + s + t"], ["h ~ q + k", "z ~ s", "m ~ z"]])
def test_honest_files_are_read_and_verified(tmp_path: Path, formulas: list[str], epsilon: str, unit: str) -> None:
    """Of numbers of all kinds, with and without nulls, whatever the noise."""
    members = contents(tmp_path, formulas, epsilon=epsilon, unit=unit, delta="1e-6", quality="fast")
    release = sp.load(written(tmp_path, members))
    assert isinstance(release, ForestRelease)
    checks = release.verify_model()
    assert any("chosen again" in line for line in checks) == (release.analyses is not None)


# ---------------------------------------------------------------------------------------------------- damaged files


@pytest.mark.parametrize(
    "change",
    [
        lambda described: described.update(measured=None),
        lambda described: described.update(measured=[]),
        lambda described: described.update(analyses=None),
        lambda described: described["measured"]["columns"].pop(),
        lambda described: described["analyses"]["weights"].pop(),
    ],
)
def test_entries_of_the_wrong_type_are_told_in_words_of_the_file(
    members: Contents, tmp_path: Path, change: Any
) -> None:
    """And not as what Python says of our code."""
    with pytest.raises(FileError, match=r"the member 'card\.json' is damaged: an entry is of another type or length"):
        sp.load(written(tmp_path, with_card(members, change)))


@pytest.mark.parametrize("name", ["counts.arrow", "analyses.arrow", "leaves.arrow"])
def test_a_damaged_table_is_named(members: Contents, tmp_path: Path, name: str) -> None:
    for content in (members[name][: len(members[name]) // 2], b"nothing"):
        with pytest.raises(FileError, match=f"the member {name!r} is damaged: .*fetch or save the file again"):
            sp.load(written(tmp_path, members | {name: content}))
