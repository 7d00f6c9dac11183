"""Products in a file: what is refused of them, damaged, hostile or forged, and what `verify` compares with charges."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import spinney as sp
from spinney.errors import FileError
from spinney.forest.release.fit import MOST_PAIRS
from spinney.release.file import to_arrow
from spinney.release.verify import verification
from support import one_factor
from support.command_line import spinney
from support.in_one_test import in_one_test


@pytest.fixture(scope="module")
def members(tmp_path_factory) -> dict[str, bytes]:
    """The members of a release with products; one column has a single state in no sum, as known ones have."""
    path = tmp_path_factory.mktemp("products") / "a.spinney"
    one_factor.fitted().release_.save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path: Path, members: dict[str, bytes]) -> Path:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    path.write_bytes(buffer.getvalue())
    return path


def refused(path: Path, members: dict[str, bytes], match: str = "inconsistent contents") -> str:
    """The message with which a file is refused, at the price of less than 200 MB."""
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=match) as caught:
            sp.load(written(path, members))
        assert tracemalloc.get_traced_memory()[1] < 2e8
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < 1000
    return str(caught.value)


def table_of(members: dict[str, bytes], name: str) -> dict[str, list]:
    return pa.ipc.open_file(pa.py_buffer(members[name])).read_all().to_pydict()


KINDS = {
    "variable": pa.int32(),
    "group": pa.int32(),
    "factor": pa.float64(),
    "pair": pa.list_(pa.int32()),
    "factors": pa.list_(pa.float64()),
    "sums": pa.list_(pa.int64()),
}


def with_table(members: dict[str, bytes], name: str, change) -> dict[str, bytes]:
    """The members with the columns of a table changed."""
    columns = table_of(members, name)
    change(columns)
    table = pa.table({key: pa.array(values, KINDS.get(key)) for key, values in columns.items()})
    return members | {name: to_arrow(table)}


def with_card(members: dict[str, bytes], change) -> dict[str, bytes]:
    described = json.loads(members["card.json"])
    change(described)
    return members | {"card.json": json.dumps(described).encode()}


# ------------------------------------------------------------------------------------------------------- damaged


ENTRIES = {
    "none": lambda d: d.update(products=None),
    "a list": lambda d: d.update(products=[]),
    "nothing in it": lambda d: d.update(products={}),
    "no variance": lambda d: d["products"].pop("variance"),
    "no mean": lambda d: d["products"].pop("log_mean"),
    "a variance that is a number": lambda d: d["products"].update(variance=3),
    "a variance that hangs": lambda d: d["products"].update(variance="1e99999999"),
    "a negative variance": lambda d: d["products"].update(variance="-5"),
    "a variance of nothing": lambda d: d["products"].update(variance="0"),
    "a variance that is none": lambda d: d["products"].update(variance="nan"),
    "a mean that is a text": lambda d: d["products"].update(log_mean="0"),
    "a mean that is whole": lambda d: d["products"].update(log_mean=0),
    "a mean that is true": lambda d: d["products"].update(log_mean=True),
    "a mean beyond floats": lambda d: d["products"].update(log_mean=1e9),
}


@in_one_test("change", ENTRIES.values(), ids=ENTRIES)
def test_entries_that_no_products_have(members, tmp_path, change):
    """Types, signs and sizes are looked at."""
    refused(tmp_path / "x", with_card(members, change))


def put(name, place, value):
    def change(columns):
        columns[name][place] = value

    return change


def twice(columns):
    for values in columns.values():
        values.append(values[0])


def without_last(columns):
    for values in columns.values():
        values.pop()


GROUPS = {
    "a variable too many": put("variable", -1, 8),
    "a variable below none": put("variable", 0, -1),
    "variables in another order": lambda c: c["variable"].reverse(),
    "a state too many": twice,
    "a state too few": without_last,
    "a group below none": put("group", 0, -1),
    "a gap between groups": put("group", -1, 7),
    "more groups than there may be": lambda c: c.update(group=[2**30] * len(c["group"])),
    "a factor that is none": put("factor", 0, float("nan")),
    "an endless factor": put("factor", 0, float("-inf")),
    "a factor beyond floats": put("factor", 0, 501.0),
    "another type": lambda c: c.update(group=[]) or c.update(variable=[]) or c.update(factor=[]),
}
PAIRS = {
    "one column": put("pair", 0, [1]),
    "three columns": put("pair", 0, [0, 1, 2]),
    "a column with itself": put("pair", 0, [1, 1]),
    "a pair the other way round": put("pair", 0, [1, 0]),
    "a column that is none": put("pair", 0, [0, 8]),
    "a column below none": put("pair", 0, [-1, 2]),
    "a pair twice": twice,
    "a factor too few": lambda c: c["factors"][0].pop(),
    "no factors": put("factors", 0, []),
    "a factor that is none": lambda c: c["factors"][0].__setitem__(0, float("nan")),
    "a factor beyond floats": lambda c: c["factors"][0].__setitem__(0, -600.0),
    "a sum too few": lambda c: c["sums"][0].pop(),
    "a sum too many": lambda c: c["sums"][0].append(0),
    "a sum beyond count": lambda c: c["sums"][0].__setitem__(0, 2**61 + 1),
    "the smallest number there is": lambda c: c["sums"][0].__setitem__(0, -(2**63)),
    "no sums where there were some": put("sums", 0, []),
    "a pair left out": without_last,
    "more pairs than there can be": lambda c: [c[key].extend(c[key][:1] * MOST_PAIRS) for key in c],
}


@pytest.mark.parametrize("change", GROUPS.values(), ids=GROUPS)
def test_groups_that_no_release_has(members, tmp_path, change):
    """Every state has one group and one factor, and groups follow each other."""
    refused(tmp_path / "x", with_table(members, "groups.arrow", change))


@in_one_test("change", PAIRS.values(), ids=PAIRS)
def test_pairs_that_no_release_has(members, tmp_path, change):
    """Pairs of two columns, in order, once each, with as many factors and sums as their groups ask for."""
    if change is without_last:  # the last is a counted pair, which a tilt may leave alone
        assert sp.load(written(tmp_path / "x", with_table(members, "products.arrow", change)))
        return
    refused(tmp_path / "x", with_table(members, "products.arrow", change))


@pytest.mark.parametrize("name", ["groups.arrow", "products.arrow"])
@pytest.mark.parametrize("content", [None, b"", b"ARROW1\0\0", b"x" * 100])
def test_members_that_are_missing_or_no_tables(members, tmp_path, name, content):
    """Refused, and so is a table of other columns or types, or with nulls."""
    others = {key: value for key, value in members.items() if key != name}
    refused(tmp_path / "x", others if content is None else others | {name: content})
    table = pa.ipc.open_file(pa.py_buffer(members[name])).read_all()
    refused(tmp_path / "x", members | {name: to_arrow(table.drop_columns(table.column_names[0]))})
    nulls = table.set_column(0, table.column_names[0], pa.nulls(len(table), table.schema.field(0).type))
    refused(tmp_path / "x", members | {name: to_arrow(nulls)})


def test_extreme_factors_still_draw(members, tmp_path):
    """The largest that a file may hold, all of one sign: rows are drawn, and none is impossible."""
    for value in (-500.0, 500.0):

        def change(columns, value=value):
            columns["factors"] = [[value] * len(factors) for factors in columns["factors"]]

        release = sp.load(written(tmp_path / "x", with_table(members, "products.arrow", change)))
        assert len(release.sample(50, seed=1)) == 50


# -------------------------------------------------------------------------------------------------------- forged


def composed(described) -> dict:
    return next(event for event in described["card"]["events"] if event["event"] == "ComposedRelease")


def vector(described) -> dict:
    return next(part for part in composed(described)["parts"] if part["part"] == "GaussianVector")


def test_what_is_verified(members, tmp_path):
    """The page of `verify` names sums and pairs."""
    path = written(tmp_path / "a.spinney", members)
    products = sp.load(path).products
    line = f"{products.n_sums} sums of products of {len(products.pairs)} pairs were released as one vector"
    assert any(line in check for check in verification(sp.load(path)).checks)
    assert line in spinney("verify", path).out


def test_less_or_more_noise_than_was_charged_for(members, tmp_path):
    """By a hundredth of the variance, which follows from the charge."""
    release = sp.load(written(tmp_path / "a", members))
    variance = release.products.variance
    for factor, says in ((Fraction(99, 100), "less"), (Fraction(101, 100), "more")):
        forged = with_card(members, lambda d, v=variance * factor: d["products"].update(variance=str(v)))
        refused(tmp_path / "b", forged, f"{says} noise than what was charged")


def test_sums_of_a_pair_that_was_counted(members, tmp_path):
    """One is paid for by its table, and is not to be had again by the vector."""

    def change(columns):
        place = next(place for place, sums in enumerate(columns["sums"]) if not sums)
        groups = table_of(members, "groups.arrow")
        i, j = columns["pair"][place]
        sizes = [
            max(group for group, owner in zip(groups["group"], groups["variable"], strict=True) if owner == column)
            for column in (i, j)
        ]
        columns["sums"][place] = [0] * (sizes[0] * sizes[1])

    forged = with_table(members, "products.arrow", change)
    n_sums = sum(map(len, table_of(forged, "products.arrow")["sums"]))
    forged = with_card(
        forged, lambda d: (d["card"]["released"].update(sums=n_sums), d["products"].update(variance="1e12"))
    )
    refused(tmp_path / "x", forged, "whose table was counted")


def test_factors_of_a_pair_that_was_not_measured(members, tmp_path):
    """Sums that were taken out of the file leave factors from nowhere."""
    forged = with_table(members, "products.arrow", put("sums", 0, []))
    n_sums = sum(map(len, table_of(forged, "products.arrow")["sums"]))
    forged = with_card(forged, lambda d: d["card"]["released"].update(sums=n_sums))
    refused(tmp_path / "x", forged, "neither counted nor summed")


def test_a_tilt_without_sums(members, tmp_path):
    """No factors without a measurement."""

    def change(columns):
        kept = [place for place, sums in enumerate(columns["sums"]) if not sums]
        for name in columns:
            columns[name] = [columns[name][place] for place in kept]

    forged = with_card(with_table(members, "products.arrow", change), lambda d: d["card"]["released"].update(sums=0))
    refused(tmp_path / "x", forged, "no sums of products were released")


def test_another_number_of_sums_on_the_card(members, tmp_path):
    """The card says how many were released."""
    refused(tmp_path / "x", with_card(members, lambda d: d["card"]["released"].update(sums=1)), "another forest")
    refused(tmp_path / "x", with_card(members, lambda d: d["card"]["released"].pop("sums")), "another forest")


def test_sums_without_a_charge(members, tmp_path):
    """A card whose plan and charge never speak of a vector."""

    def change(described):
        composed(described)["parts"].remove(vector(described))
        described["card"]["plan"].pop("products mean squared")

    refused(tmp_path / "x", with_card(members, change), "no charge pays for them")


def test_a_release_that_leaves_the_sums_out(members, tmp_path):
    """What was paid for is there: without sums and factors, the file is refused, though it would tell less."""
    kept = {name: content for name, content in members.items() if name not in ("groups.arrow", "products.arrow")}

    def change(described):
        del described["products"], described["card"]["released"]["sums"], described["measured"]["fit"]["tilt"]

    kept = with_card(kept, change)
    refused(tmp_path / "x", kept, "a vector of sums was charged for, and the file holds none")


def test_sums_beyond_the_number_of_rows(members, tmp_path):
    """A row adds -1 or 1 to a sum, so that none is larger than the number of rows, but for noise."""
    for size, is_refused in ((6_000, False), (60_000, True), (-60_000, True)):

        def change(columns, size=size):
            columns["sums"] = [[size] * len(values) for values in columns["sums"]]

        changed = with_table(members, "products.arrow", change)
        if is_refused:
            refused(tmp_path / "x", changed, "a sum of signs is larger than the number of rows and noise allow")
        else:
            sp.load(written(tmp_path / "x", changed))


def test_sums_are_whole_numbers_within_reach(members):
    """Nothing in the two tables but groups, factors and noisy sums: as many as the card says."""
    columns = table_of(members, "products.arrow")
    assert set(columns) == {"pair", "factors", "sums"}
    assert set(table_of(members, "groups.arrow")) == {"variable", "group", "factor"}
    described = json.loads(members["card.json"])
    assert sum(map(len, columns["sums"])) == described["card"]["released"]["sums"]
    assert max(np.abs(sums).max() for sums in columns["sums"] if sums) < 2 * 6000
