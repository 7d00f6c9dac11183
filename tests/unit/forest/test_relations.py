"""Relations that nobody stated: found privately by two vectors, whose plan does not depend on what is found."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import floor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney as sp
from spinney.errors import FileError, ParameterError, SchemaError
from spinney.forest.relations import (
    _N_RESTS,
    _PERCENT,
    Sought,
    candidates,
    chosen_rules,
    pairs_that_stand_out,
    ratios_that_stand_out,
    true_pairs,
    true_percentages,
    true_rests,
)
from spinney.tables.engines.memory import MemorySource
from spinney.tables.frames import open_table
from spinney.tables.open import open_source
from support.query_engines import DuckDBQueries, PolarsQueries

AMOUNT = sp.Integer(0, 5_000_000)
SCHEMA = sp.Schema(
    {
        "approved": AMOUNT,
        "paid": AMOUNT,
        "covered": AMOUNT,
        "age": sp.Integer(0, 120),
        "hours": sp.Integer(0, 99),
        "kind": sp.Category(["a", "b"]),
    }
)
PAIRS = [("approved", "paid"), ("approved", "covered"), ("paid", "covered"), ("age", "hours")]


def loans(n: int, seed: int, *, related: bool = True) -> pa.Table:
    """Equal amounts in three quarters of the rows, fixed parts in most; ages and hours agree by chance, at 40."""
    rng = np.random.default_rng(seed)
    approved = 100 * rng.integers(10, 9000, n)
    paid = np.where(rng.random(n) < 0.75, approved, (approved * rng.uniform(0.1, 1, n)).astype(np.int64))
    part = rng.choice([0.5, 0.75, 0.9], n, p=[0.4, 0.3, 0.3])
    covered = np.where(rng.random(n) < 0.9, np.floor(part * approved + 0.5), approved * rng.uniform(0, 1, n))
    if not related:
        paid, covered = rng.permutation(paid), rng.permutation(covered)
    return pa.table(
        {
            "approved": approved,
            "paid": paid,
            "covered": covered.astype(np.int64),
            "age": np.clip(rng.normal(40, 12, n), 17, 90).astype(np.int64),
            "hours": np.where(rng.random(n) < 0.5, 40, rng.integers(1, 99, n)),
            "kind": rng.choice(["a", "b"], n),
        }
    )


def source(table: pa.Table) -> MemorySource:
    return MemorySource(open_table(table, SCHEMA._as_read))


def all_sums(table: pa.Table) -> list[np.ndarray]:
    """What both vectors are made of, for all pairs and columns."""
    held, names = source(table), ["approved", "paid", "covered", "age", "hours"]
    return [true_pairs(held, SCHEMA, PAIRS), true_percentages(held, SCHEMA, PAIRS), true_rests(held, SCHEMA, names)]


def test_candidates_are_columns_of_one_kind():
    """With many values, and in no rule or table that is about their values; types and steps are told apart."""
    assert set(candidates(SCHEMA)[0]) == set(combinations(list(SCHEMA)[:5], 2))
    cents, few = sp.Real(0, 100, multiple_of=0.01), sp.Integer(0, 9)
    fifties = sp.Integer(0, 10**6, multiple_of=50)
    mixed = sp.Schema({"a": AMOUNT, "b": cents, "c": few, "d": sp.Real(0, 9), "e": fifties})
    assert candidates(mixed) == ([], [])
    ruled = sp.Schema(dict(SCHEMA), rules=[sp.Derived("paid", "approved", times="0.5")])
    assert all(name in ("covered", "age", "hours") for pair in candidates(ruled)[0] for name in pair)
    assert not any("paid" in pair for pair in candidates(SCHEMA, ["paid"])[0])


def test_bases_of_stated_relations_stay_bases():
    """They are the second of each of their pairs, of which two bases make none; related columns have a base already."""
    stated = [sp.Related("covered", "approved", ratios=["0.5"]), sp.Related("hours", "age")]
    pairs, _ = candidates(sp.Schema(dict(SCHEMA), rules=stated))
    assert pairs == [("paid", "approved"), ("paid", "age")]
    computed = sp.Schema(dict(SCHEMA), rules=[stated[0], sp.Derived("paid", "approved", times="0.5")])
    assert candidates(computed)[0] == [("age", "hours")]


def test_kinds_of_too_many_columns_are_told():
    """Noise grows with the number of pairs: of many columns none is looked at, and check says what to do."""
    many = sp.Schema({f"c{place}": AMOUNT for place in range(17)} | {"x": sp.Real(0, 99, decimals=2)})
    pairs, too_many = candidates(many)
    assert pairs == []
    assert len(too_many) == 17
    table = pa.table({name: [0.5, 2.5] if name == "x" else [1, 2] for name in many})
    found = sp.check(table, many)
    assert any("more than 120 pairs" in note and "sp.Related" in note for note in found.notes)


def slow_percent(x: int, y: int) -> int | None:
    """The nearest percentage that x is of y, if x is the whole number nearest to that of y; in fractions."""
    if not x or not y or (x < 0) != (y < 0):
        return None
    percent = floor(Fraction(100 * x, y) + Fraction(1, 2))
    return percent if floor(Fraction(percent * y, 100) + Fraction(1, 2)) == x else None


def test_counts_are_those_of_fractions():
    """Of pairs, percentages and rests, row by row."""
    table = loans(400, 3)
    pairs, percentages, rests = all_sums(table)
    rows = {name: table[name].to_pylist() for name in table.column_names}
    for place, (first, second) in enumerate(PAIRS):
        found = [slow_percent(x, y) for x, y in zip(rows[first], rows[second], strict=True)]
        reverse = [slow_percent(y, x) for x, y in zip(rows[first], rows[second], strict=True)]
        parts = [sum(p in range(5, 100, 5) for p in one if p) * (first != "age") for one in (found, reverse)]
        equal = sum(x == y != 0 for x, y in zip(rows[first], rows[second], strict=True))
        assert pairs[place].tolist() == [equal, *parts]
        assert percentages[place].tolist() == [found.count(int(100 * ratio)) for ratio in _PERCENT]
    assert rests[0].tolist() == np.bincount(np.array(rows["approved"]) % _N_RESTS, minlength=_N_RESTS).tolist()
    assert pairs[0, 0] > 200
    assert pairs[1, 2] > 200


@pytest.mark.parametrize("engine", [PolarsQueries, DuckDBQueries, "parquet"])
def test_engines_count_the_same(engine, tmp_path):
    table = loans(300, 4)
    if engine == "parquet":
        pq.write_table(table, tmp_path / "loans.parquet", row_group_size=70)
        held = open_source(str(tmp_path / "loans.parquet"), SCHEMA._as_read)
    else:
        held = engine(table, SCHEMA._as_read)
    names = ["approved", "age"]
    assert np.array_equal(true_pairs(held, SCHEMA, PAIRS), true_pairs(source(table), SCHEMA, PAIRS))
    assert np.array_equal(true_percentages(held, SCHEMA, PAIRS[:2]), true_percentages(source(table), SCHEMA, PAIRS[:2]))
    assert np.array_equal(true_rests(held, SCHEMA, names), true_rests(source(table), SCHEMA, names))


def test_one_row_moves_the_sums_by_no_more_than_is_charged():
    """A row in the place of another, and a row less: in squared distance, as the proof says, and nearly as far."""
    rng, table = np.random.default_rng(5), loans(60, 5)
    odd = {"approved": [100, 200, 3, 1, 0], "paid": [100, 100, 3, 1, 2], "covered": [100, 50, 2, 1, 7]}
    odd |= {"age": [40, 40, 41, 1, 0], "hours": [40, 20, 40, 1, 9], "kind": ["a"] * 5}
    others = pa.concat_tables([loans(40, 6), pa.table(odd)])
    before, largest = all_sums(table), [0, 0, 0]
    for place in range(others.num_rows):
        at = int(rng.integers(table.num_rows))
        rest = pa.concat_tables([table.slice(0, at), table.slice(at + 1)])
        less, instead = all_sums(rest), all_sums(pa.concat_tables([rest, others.slice(place, 1)]))
        for kind, n_blocks in enumerate((len(PAIRS), len(PAIRS), 5)):
            assert ((before[kind] - less[kind]) ** 2).sum() <= n_blocks
            moved = int(((before[kind] - instead[kind]) ** 2).sum())
            assert moved <= 2 * n_blocks
            largest[kind] = max(largest[kind], moved)
    assert largest[0] > len(PAIRS)
    assert largest[2] == 10


@pytest.fixture(scope="module")
def released():
    return sp.ForestSynthesizer("1", "1e-6").fit(loans(20_000, 0), SCHEMA).release_


def test_relations_are_found_and_kept(released):
    """All of them and no others: as rules on the card, and in as many rows as in the table."""
    rules = released.schema._related
    assert {(rule.column, rule.base) for rule in rules.values()} == {("paid", "approved"), ("covered", "approved")}
    assert all(rule.found for rule in rules.values())
    assert set(rules["covered"].ratios) == {Fraction(1, 2), Fraction(3, 4), Fraction(9, 10)}
    rows, table = released.sample(seed=1, frame="pyarrow"), loans(20_000, 0)

    def share(frame, name, ratio):
        base = frame["approved"].to_numpy()
        return ((frame[name].to_numpy() == np.floor(ratio * base + 0.5)) & (base > 0)).mean()

    for name, ratio in (("paid", 1.0), ("covered", 0.5), ("covered", 0.75), ("covered", 0.9)):
        assert abs(share(rows, name, ratio) - share(table, name, ratio)) < 0.02
    for told in (released.card, released.explain()):
        assert "'paid' is equal to 'approved' in some rows" in str(told)
        assert "found=True" not in str(told)
    stages = {stage.name: stage for stage in released.explain().stages}
    assert {"relations", "ratios"} <= {*stages}
    assert stages["relations"].share == pytest.approx(0.01, abs=0.004)


def test_nothing_is_found_where_columns_agree_by_chance():
    """Ages equal hours in many rows, because many work 40; amounts that were shuffled agree by chance too."""
    for seed in range(3):
        table = loans(20_000, seed, related=False)
        assert (table["age"].to_numpy() == table["hours"].to_numpy()).sum() > 300
        assert not sp.ForestSynthesizer("1", "1e-6").fit(table, SCHEMA).release_.schema._related


def test_the_plan_does_not_depend_on_what_is_found():
    """All that is charged is the same to the last digit, whether columns are related or not."""
    cards = [
        sp.ForestSynthesizer("1", "1e-6").fit(loans(20_000, 1, related=related), SCHEMA).release_.card
        for related in (True, False)
    ]
    assert cards[0].schema._related
    assert not cards[1].schema._related
    assert cards[0].events == cards[1].events


def test_a_release_is_verified_with_what_it_found(released, tmp_path):
    """The plan is made again without the rules that were found, and the stated schema is that of the release."""
    released.save(tmp_path / "loans.spinney")
    back = sp.load(tmp_path / "loans.spinney")
    report = back.verify(schema=SCHEMA)
    assert any("the plan was made again" in check for check in report.checks)
    said = "'paid' is equal to 'approved' in some rows, which the release found privately"
    assert any(said in check for check in report.checks)
    assert back.sample(100, seed=2, frame="pyarrow").equals(released.sample(100, seed=2, frame="pyarrow"))
    with pytest.raises(FileError, match="rules"):
        back.verify(schema=sp.Schema(dict(SCHEMA), rules=[sp.Related("paid", "covered")]))


@pytest.mark.parametrize("options", [{"relations": "stated"}, {"delta": 0}])
def test_nothing_is_looked_for_where_it_is_not_asked_for_or_cannot_be(options):
    released = sp.ForestSynthesizer("1", **options).fit(loans(3000, 2), SCHEMA).release_
    assert not {"relations", "ratios"} & {str(stage) for stage in released.card.stages}
    assert not released.schema._related


def test_other_arguments_and_found_rules_are_refused():
    with pytest.raises(ParameterError, match="relations='all' is not 'find' or 'stated'"):
        sp.ForestSynthesizer("1", relations="all").fit(loans(50, 2), SCHEMA)
    with pytest.raises(SchemaError, match="leave found out to state it yourself"):
        sp.ForestSynthesizer("1").fit(
            loans(50, 2), sp.Schema(dict(SCHEMA), rules=[sp.Related("paid", "approved", found=True)])
        )


def test_noise_chance_and_neighbours_are_told_from_ratios():
    """The same count is a ratio where rests are spread, and chance where both columns lie at a few values."""
    counts, n_rows = np.zeros(len(_PERCENT)), 10_000.0
    counts[_PERCENT.index(1)] = 2500.0
    spread = np.full(_N_RESTS, n_rows / _N_RESTS)
    piles = np.zeros(_N_RESTS)
    piles[[10, 20]] = n_rows / 2
    found = ratios_that_stand_out(counts, (spread, spread), n_rows, 10.0, parts=True)
    assert found == {Fraction(1): 2500.0}
    assert not ratios_that_stand_out(counts, (piles, piles), n_rows, 10.0, parts=True)
    assert not ratios_that_stand_out(counts, (spread, spread), n_rows, 600.0, parts=True)
    counts[_PERCENT.index(Fraction(99, 100))] = 900.0
    assert Fraction(1) not in ratios_that_stand_out(counts, (spread, spread), n_rows, 10.0, parts=True)
    counts[:] = 0
    counts[_PERCENT.index(Fraction(1, 2))] = 2500.0
    assert ratios_that_stand_out(counts, (spread, spread), n_rows, 10.0, parts=True) == {Fraction(1, 2): 2500.0}
    assert not ratios_that_stand_out(counts, (spread, spread), n_rows, 10.0, parts=False)


def test_bases_have_values_of_their_own():
    """Of three columns that go together, the one that most rows agree with is the base of both others."""
    one, parts = {Fraction(1): 5000.0}, {Fraction(1, 2): 3000.0, Fraction(3, 4): 4000.0}
    found = {("approved", "paid"): one, ("covered", "approved"): parts, ("covered", "paid"): {Fraction(1, 2): 2000.0}}
    rules = chosen_rules(found, SCHEMA)
    assert {(rule.column, rule.base) for rule in rules} == {("paid", "approved"), ("covered", "approved")}
    ordered = sp.Schema(dict(SCHEMA), rules=[sp.AtMost("covered", "approved")])
    (kept,) = chosen_rules({("covered", "approved"): {Fraction(2): 9.0, Fraction(1, 2): 5.0}}, ordered)
    assert kept.ratios == (Fraction(1, 2),)
    assert not chosen_rules({("covered", "approved"): {Fraction(2): 9.0}}, ordered)


def test_stated_relations_keep_their_columns_and_bases():
    """A stated base is never a part of another column, however many rows say so, nor a related column a base."""
    stated = sp.Schema(dict(SCHEMA), rules=[sp.Related("covered", "approved", ratios=["0.5"])])
    half, one = {Fraction(1, 2): 4000.0}, {Fraction(1): 5000.0}
    (rule,) = chosen_rules({("approved", "hours"): half, ("paid", "approved"): one}, stated)
    assert (rule.column, rule.base) == ("paid", "approved")
    (rule,) = chosen_rules({("approved", "paid"): one, ("paid", "covered"): half}, stated)
    assert (rule.column, rule.base) == ("paid", "approved")
    assert not chosen_rules({("paid", "covered"): half}, stated)
    assert not chosen_rules({("covered", "paid"): half}, stated)
    noisy = np.array([[200.0, 300, 2000]])
    assert pairs_that_stand_out([("paid", "approved")], noisy, 20.0) == [("approved", "paid")]
    assert pairs_that_stand_out([("paid", "approved")], noisy, 20.0, ["approved"]) == [("paid", "approved")]
    assert not pairs_that_stand_out([("paid", "approved")], np.array([[0.0, 0, 2000]]), 20.0, ["approved"])


def test_what_is_stated_hides_nothing_that_has_the_same_base():
    """Rows with equal amounts are kept where the guarantee is stated, and the plan is that of the stated schema."""
    table = loans(20_000, 0)
    stated = sp.Schema(dict(SCHEMA), rules=[sp.Related("covered", "approved", ratios=["0.5", "0.75", "0.9"])])
    released = sp.ForestSynthesizer("1", "1e-6").fit(table, stated).release_
    rules = released.schema._related
    assert {(rule.column, rule.base, rule.found) for rule in rules.values()} == {
        ("covered", "approved", False),
        ("paid", "approved", True),
    }
    rows = released.sample(seed=1, frame="pyarrow")
    equal = [(one["paid"].to_numpy() == one["approved"].to_numpy()).mean() for one in (rows, table)]
    assert abs(equal[0] - equal[1]) < 0.02
    assert any("the plan was made again" in check for check in released.verify(schema=stated).checks)


def test_one_shared_code_is_no_relation():
    """Columns that are equal at one value alone say nothing of other rows, however many have it."""
    rng, n = np.random.default_rng(0), 20_000
    columns = {name: np.floor(rng.lognormal(4, 1, n)).astype(np.int64) for name in ("staff", "jobs")}
    coded = rng.random(n) < 0.1
    table = pa.table({name: np.where(coded, 999, values) for name, values in columns.items()})
    schema = sp.Schema(dict.fromkeys(columns, sp.Integer(0, 20_000)))
    released = sp.ForestSynthesizer("1", "1e-6").fit(table, schema).release_
    assert not released.schema._related
    rows = released.sample(seed=1, frame="pyarrow")
    both = [((one["staff"].to_numpy() == 999) & (one["jobs"].to_numpy() == 999)).mean() for one in (rows, table)]
    assert abs(both[0] - both[1]) < 0.02


def test_ratios_need_more_than_one_value():
    """The rows that one rest may explain are left out, of both columns, and so is their chance."""
    counts, n_rows = np.zeros(len(_PERCENT)), 10_000.0
    half = _PERCENT.index(Fraction(1, 2))
    spread, coded = np.full(_N_RESTS, n_rows / _N_RESTS), np.full(_N_RESTS, 0.9 * n_rows / _N_RESTS)
    base, part = coded.copy(), coded.copy()
    base[998] += 0.1 * n_rows
    part[499] += 0.1 * n_rows
    counts[half] = 0.1 * n_rows
    assert not ratios_that_stand_out(counts, (part, base), n_rows, 10.0, parts=True)
    assert ratios_that_stand_out(counts, (spread, spread), n_rows, 10.0, parts=True)
    counts[half] = 0.2 * n_rows
    assert ratios_that_stand_out(counts, (part, base), n_rows, 10.0, parts=True) == {Fraction(1, 2): 0.2 * n_rows}


def test_equal_rows_without_a_code_have_to_stand_out_of_chance():
    """A tenth of the rows have the code; of the others as many are equal as agree by chance, or half."""
    counts, n_rows, few = np.zeros(len(_PERCENT)), 10_000.0, np.zeros(_N_RESTS)
    few[1:41] = 0.9 * n_rows / 40
    few[999] = 0.1 * n_rows
    for share_of_others, is_relation in ((0.02, False), (0.5, True)):
        counts[_PERCENT.index(1)] = rows = (0.1 + share_of_others) * n_rows
        found = ratios_that_stand_out(counts, (few, few), n_rows, 10.0, parts=True)
        assert found == ({Fraction(1): rows} if is_relation else {})


def test_pairs_below_the_noise_are_left_alone():
    noisy = np.array([[900.0, 10, 20], [30.0, 700, 20], [20.0, 30, 10]])
    found = pairs_that_stand_out(PAIRS[:3], noisy, 20.0)
    assert set(map(frozenset, found)) == {frozenset(PAIRS[0]), frozenset(PAIRS[1])}
    assert ("approved", "covered") in found  # the first is a part of the second
    assert not pairs_that_stand_out(PAIRS[:3], noisy, 300.0)
    assert Sought.of(SCHEMA, ["approved", "paid"]).pairs


def test_columns_that_codes_would_give_other_cells_are_not_looked_at():
    """Far from 0, so few steps are halved without codes, and single cells with one: the plan would not know of them."""
    far = sp.Real(5_369_999_990, 5_370_000_000, multiple_of="0.01")
    assert not Sought.of(sp.Schema({"a": far, "b": far})).pairs
    near = sp.Real(0, 1_000_000, multiple_of="0.01")
    assert Sought.of(sp.Schema({"a": near, "b": near})).pairs == (("a", "b"),)
