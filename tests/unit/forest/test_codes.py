"""Hierarchies of codes in a forest: groups are counted, rare codes stay among their siblings, conditions still hold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import spinney as sp
from spinney.forest.columns import NoisyColumn, pool_siblings, release_column, spread_codes
from spinney.forest.release.measured import NoiseLaw
from spinney.grid.axes import column_axis
from spinney.grid.ruler import code_levels
from spinney.release.card import ContradictionError
from spinney.release.verify import verification
from spinney.tables.engines.memory import MemorySource
from spinney.tables.frames import open_table

LETTERS = [chr(65 + i) for i in range(12)]
CODES = [f"{letter}{group}{code:02d}" for letter in LETTERS for group in range(5) for code in range(20)]
COLUMN = sp.Category(CODES, hierarchy=[1, 2], nullable=True)
SCHEMA = sp.Schema({"code": COLUMN, "sick": sp.Boolean(), "age": sp.Integer(0, 99)})


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Half of the letters have a common code and a tail of rare ones; whether one is sick depends on the letter."""
    rng = np.random.default_rng(1)
    n = 40_000
    letter = rng.choice(6, n, p=[0.3, 0.25, 0.2, 0.15, 0.06, 0.04])
    rest = np.where(rng.random(n) < 0.4, 7, rng.integers(0, 100, n))
    code = np.array(CODES, dtype=object)[100 * letter + rest]
    code[rng.random(n) < 0.05] = None
    sick = rng.random(n) < np.where(letter % 2 == 0, 0.9, 0.1)
    return pd.DataFrame({"code": code, "sick": sick, "age": rng.integers(0, 99, n)})


@pytest.fixture(scope="module")
def model(table) -> sp.ForestSynthesizer:
    return sp.ForestSynthesizer(1, "1e-6").fit(table, SCHEMA, entropy=sp.UnsafeSeededEntropy(4))


def shares(codes: pd.Series, length: int) -> pd.Series:
    return codes.dropna().str[:length].value_counts(normalize=True)


def total_variation(one: pd.Series, other: pd.Series) -> float:
    return float(one.sub(other, fill_value=0).abs().sum() / 2)


def test_groups_come_back_closer_than_without_a_hierarchy(table, model):
    """Letters and subgroups by a wide margin, codes no worse; letters without rows get next to none."""
    flat = sp.ForestSynthesizer(1, "1e-6").fit(
        table, sp.Schema(dict(SCHEMA) | {"code": sp.Category(CODES, nullable=True)}), entropy=sp.UnsafeSeededEntropy(4)
    )
    ours, theirs = model.sample(seed=1).code, flat.sample(seed=1).code
    distance = {
        length: [total_variation(shares(table.code, length), shares(drawn, length)) for drawn in (ours, theirs)]
        for length in (1, 2, 4)
    }
    assert distance[1][0] < 0.01 < distance[1][1]
    assert distance[2][0] < 0.5 * distance[2][1]
    assert distance[4][0] < distance[4][1]
    assert ours.dropna().str[0].isin(LETTERS[6:]).mean() < 0.005
    assert abs(ours.isna().mean() - 0.05) < 0.005


def test_what_depends_on_a_group_is_kept_for_its_rare_codes(table, model):
    """Rare codes of a letter share a state with their siblings, not with all rare codes."""
    drawn = model.sample(seed=2)
    for letter, sick in zip(LETTERS[:4], (0.9, 0.1, 0.9, 0.1), strict=True):
        rare = drawn[drawn.code.str.startswith(letter, na=False) & ~drawn.code.isin([f"{letter}007"])]
        assert len(rare) > 1000
        assert abs(rare.sick.mean() - sick) < 0.08, letter


def test_every_level_is_paid_for(model, tmp_path):
    """Five one-way tables for three columns; a card that pays for fewer is refused."""
    model.save(tmp_path / "codes.spinney")
    release = sp.load(tmp_path / "codes.spinney")
    assert release.schema == model.schema_
    assert release.schema["code"].hierarchy == (1, 2)
    verification(release)
    (charge,) = [event for event in release.card.events if hasattr(event, "parts")]
    (one_way,) = [part for part in charge.parts if part.stage == "one-way"]
    assert one_way.times == 5
    assert release.sample(100, seed=3).equals(model.sample(100, seed=3))
    parts = tuple(replace(part, times=4) if part.stage == "one-way" else part for part in charge.parts)
    events = tuple(replace(charge, parts=parts) if event is charge else event for event in release.card.events)
    release.card = replace(release.card, events=events)
    with pytest.raises(ContradictionError, match="fewer columns were paid for"):
        release.verify_contents()


def test_conditions_reach_single_codes(model):
    """A code inside a leaf of many can be asked for, balanced, excluded with its group, and is drawn evenly."""
    wanted = ["A007", "A013", "L419"]
    drawn = model.sample(900, seed=1, where={"code": wanted})
    assert set(drawn.code) <= set(wanted)
    assert (drawn.code == "A007").mean() > 0.9
    even = model.sample(900, seed=1, balance={"code": dict.fromkeys(wanted[:2], 0.5)})
    assert abs((even.code == "A013").mean() - 0.5) < 0.01
    assert model.sample(50, seed=1, where={"code": None}).code.isna().all()
    rare = model.sample(20_000, seed=5, where={"code": [f"A2{i:02d}" for i in range(20)]}).code
    assert rare.nunique() == 20
    bins = model.release_.explain().bins("code")
    assert sum(entry["rows"] for entry in bins) == pytest.approx(40_000, rel=1e-6)


def test_a_hierarchical_column_may_be_the_target(table):
    """Its groups are its classes then."""
    drawn = sp.ForestSynthesizer(1, "1e-6", target="code").fit(table, SCHEMA).sample(2000, seed=1)
    assert drawn.code.dropna().str[0].isin(LETTERS[:6]).mean() > 0.98


@pytest.mark.parametrize("options", [{"delta": 0}, {"unit": "add-remove", "assumed_rows": 40_000}, {"quality": "high"}])
def test_other_promises(table, options):
    """Pure epsilon, private numbers of rows, rounds: the same column, the same checks."""
    fitted = sp.ForestSynthesizer(2, **({"delta": "1e-6"} | options)).fit(table, SCHEMA)
    verification(fitted.release_)
    assert abs(fitted.release_.noisy_total - 40_000) < 2_000
    assert total_variation(shares(table.code, 1), shares(fitted.sample(seed=1).code, 1)) < 0.03


def test_a_column_that_a_rule_names_is_counted_code_by_code(table):
    """A rule tells single values apart, so groups of them cannot stand for a value."""
    schema = sp.Schema(
        {"code": sp.Category(CODES, hierarchy=[1]), "note": sp.Integer(0, 9, nullable=True)},
        rules=[sp.EmptyWhen("note", "code", ["A007", "B013"])],
    )
    frame = pd.DataFrame({"code": table.code.fillna("C007"), "note": 1.0})
    frame.loc[frame.code.isin(["A007", "B013"]), "note"] = None
    model = sp.ForestSynthesizer(1, "1e-6").fit(frame, schema)
    drawn = model.sample(5000, seed=1)
    assert (drawn.note.isna() == drawn.code.isin(["A007", "B013"])).all()
    verification(model.release_)


# ------------------------------------------------------------------------------------------------- released numbers


def noisy(counts, starts, *, std=1.0, null=None) -> NoisyColumn:
    """A column of codes with exact counts in place of noisy ones."""
    codes = [f"{i:03d}" for i in range(len(counts))]
    axis = column_axis("v", sp.Category(codes, nullable=null is not None)).axis
    levels = code_levels(len(counts), starts)
    first = np.arange(len(counts))
    groups = [levels.sums(np.array(counts), level) for level in range(len(levels.starts))]
    if null is not None:
        counts, first = [*counts, null], np.append(first, axis.null_cell)
        groups[0] = np.append(groups[0], null)
    return NoisyColumn(axis, first, first + 1, np.array(counts), std, levels=levels, noisy_groups=tuple(groups))


def test_what_stands_out_keeps_its_count_and_the_rest_is_even():
    """Inside a group rare codes share what is left of the group, and of no other."""
    column, weights = spread_codes(noisy([100, 1, 2, 0, 2, 2, 0, 0], [[4]]), 107.0)
    assert column.first.tolist() == [0, 1, 4]
    assert weights == pytest.approx([100, 3, 4])


def test_null_is_counted_with_the_groups():
    """It has a leaf of its own, and codes share the rest."""
    column, weights = spread_codes(noisy([50, 60, 20, 10], [[2]], null=30), 170.0)
    assert weights.sum() == pytest.approx(170)
    assert weights[-1] == pytest.approx(30)
    assert column.is_null.tolist() == [False, False, False, False, True]


@pytest.mark.parametrize("total", [0.0, 1.0, 500.0])
def test_weights_add_up_whatever_was_counted(total):
    """Negative counts, nothing that stands out, a total that is far off."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        counts = rng.normal(0, 40, 60).astype(np.int64)
        _, weights = spread_codes(noisy(counts.tolist(), [[20, 40], [5, 20, 40, 41]], std=40.0), total)
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(total, abs=1e-6)


def test_pools_follow_the_hierarchy():
    """The heaviest codes are alone; every other state is a range of whole groups, without them."""
    counts = [500, 3, 3, 3, 400, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6]
    column, weights = spread_codes(noisy(counts, [[8], [4, 8, 12]]), float(sum(counts)))
    states = pool_siblings(column, weights, 6)
    by_code = {int(first): int(state) for first, state in zip(column.first, states, strict=True)}
    assert by_code[0] not in [state for first, state in by_code.items() if first != 0]
    assert by_code[1] != by_code[5] != by_code[8] != by_code[12]
    assert states.max() + 1 <= 6
    two = pool_siblings(column, weights, 2)
    assert two.max() + 1 == 2


class Watched:
    """Mechanisms that release nothing and remember what they were given."""

    class plan:
        noise_std = staticmethod(lambda stage: 1.0)
        noise_law = staticmethod(lambda stage: NoiseLaw("discrete laplace", Fraction(1)))

    def __init__(self) -> None:
        self.tables: list[np.ndarray] = []

    def noisy_counts(self, true_counts, stage):
        assert stage == "one-way"
        self.tables.append(true_counts)
        return true_counts


def tables_of(codes) -> list[np.ndarray]:
    axis = column_axis("code", COLUMN)
    counts = MemorySource(open_table(pd.DataFrame({"code": codes}), sp.Schema({"code": COLUMN}))).count_cells(
        axis.lattice
    )
    watched = Watched()
    release_column(counts, watched, ruler=axis.ruler, cutoff=1.0, levels=axis.levels)
    return watched.tables


@pytest.mark.parametrize("other", ["A001", "A107", "L419", None])
def test_a_row_is_in_one_group_of_a_level_at_the_most(other):
    """Another row in the place of one changes two counts of every table by one, and tables are those paid for."""
    before, after = tables_of(["A000", "B007", None]), tables_of(["A000", other, None])
    assert len(before) == len(after) == column_axis("code", COLUMN).n_tables == 3
    for one, two in zip(before, after, strict=True):
        assert one.shape == two.shape
        assert one.sum() <= 3
        assert np.abs(one - two).sum() <= 2
        assert np.abs(one - two).max() <= 1
