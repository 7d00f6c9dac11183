"""The benchmark of persons: figures of tables whose answers are known, made-up laws, and runs that go on."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.people import releases, scale
from benchmarks.people.__main__ import expanded, main
from benchmarks.people.dependence import Breaches, breaches, intraclass, transitions
from benchmarks.people.figures import Yardstick, numbered, row_counts
from benchmarks.people.homes import homes
from benchmarks.people.households import household_figures
from benchmarks.people.labels import area
from benchmarks.people.results import Cell, Results, cells, shown
from benchmarks.people.rivals import gaussian_delta, joined, k_fold, random_rows, rows_kept
from benchmarks.people.shop import CLOSE, KINDS, shop, shop_one, shop_ten
from benchmarks.people.tables import KEY, People, PeopleTable, cdnow, parted
from benchmarks.people.targets import lines

import spinney as sp
from spinney.errors import FileError, ParameterError
from spinney.privacy.composition import chain_deltas
from spinney.schema.linked import PeopleShape

COLUMNS = {"day": sp.Integer(0, 9), "kind": sp.Category(("a", "b"))}
PERSON_COLUMNS = {"sex": sp.Category(("f", "m")), "ill": sp.Category((0, 1))}


def people(persons: list[tuple[int, str, int]], rows: list[tuple[int, int, str]]) -> People:
    return People(
        pl.DataFrame(persons, schema=[KEY, "sex", "ill"], orient="row"),
        pl.DataFrame(rows, schema=[KEY, "day", "kind"], orient="row"),
    )


REAL = people(
    [(0, "f", 0), (1, "m", 1), (2, "f", 0), (3, "m", 1)],
    [(0, 0, "a"), (0, 9, "a"), (1, 0, "b"), (1, 9, "b"), (2, 0, "a")],
)
TABLE = PeopleTable("t", REAL, COLUMNS, most=2, order="day", person_columns=PERSON_COLUMNS, ends=("kind", ("b",)))


def test_the_intraclass_correlation_is_one_between_persons_and_that_of_a_model_in_between() -> None:
    person = np.repeat(np.arange(3), 2)
    assert intraclass(np.array([1.0, 1, 5, 5, 9, 9]), person) == 1.0
    # Means 2, 4: between = 4, within = 4, n0 = 2: (4 - 4) / (4 + 4).
    assert intraclass(np.array([0.0, 4, 2, 6]) / math.sqrt(2), np.array([0, 0, 1, 1])) == pytest.approx(-1 / 3)
    assert math.isnan(intraclass(np.array([1.0, 2, np.nan]), np.array([0, 1, 1])))
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(4_000), rng.integers(1, 9, 4_000))
    values = rng.normal(0, 0.3**0.5, 4_000)[person] + rng.normal(0, 0.7**0.5, len(person))
    assert intraclass(values, person) == pytest.approx(0.3, abs=0.03)
    assert intraclass(rng.permutation(values), person) == pytest.approx(0, abs=0.03)


def test_transitions_stay_within_a_person() -> None:
    cells = np.array([[1, 2, 3, 4, 5]], dtype=np.uint16)
    found = transitions(cells, np.array([0, 0, 1, 2, 2]))
    assert found.tolist() == [[1, 4], [2, 5]]


def test_figures_of_the_same_people_are_zero_and_those_of_others_are_known() -> None:
    """Half of the rows are moved to another kind, and every person with two rows loses one."""
    yardstick = Yardstick(TABLE, REAL, REAL)
    same = yardstick.figures_of_people(REAL)
    assert {same.child_tv1, same.child_tv2, same.parent_child, same.parent_tv2, same.parent_count} == {0.0}
    assert (same.count, same.icc, same.icc_values, same.transition) == (0, 0, 0, 0)
    fewer = People(REAL.persons, REAL.rows.filter(pl.col("day") == 0))
    found = yardstick.figures_of_people(fewer)
    assert found.child_tv1 == pytest.approx((2 / 5 + 1 / 15) / 2)  # days 3 : 2 against 3 : 0; kinds 3 : 2 against 2 : 1
    assert found.count == found.count_bins == pytest.approx(1 / 2)  # 0, 1, 2, 2 rows against 0, 1, 1, 1
    assert (found.parent_tv1, found.parent_most, found.parent_tv2) == (0, 0, 0)
    assert found.parent_count == pytest.approx(1 / 2)
    assert found.transition == 1.0
    assert REAL.persons is not None
    all_ill = People(REAL.persons.with_columns(ill=pl.lit(1)), REAL.rows)
    assert (yardstick.figures_of_people(all_ill).parent_tv1, yardstick.figures_of_people(all_ill).parent_most) == (
        0.25,
        0.5,
    )
    assert found.icc is None
    rows = yardstick.figures_of_rows(joined(REAL))
    assert (rows.child_tv2, rows.parent_child, rows.count, rows.broken) == (0, 0, None, None)
    turned = joined(REAL).with_columns(sex=pl.when(pl.col("sex") == "f").then(pl.lit("m")).otherwise(pl.lit("f")))
    # Rows are of f 3 : 2 and of day 3 : 2; pairs with sex are wrong, those with ill are right.
    assert yardstick.figures_of_rows(turned).parent_child == pytest.approx((1 / 5 + 1) / 4)


def test_persons_without_rows_count_and_numbers_follow_keys() -> None:
    shuffled = People(REAL.persons, REAL.rows[[4, 2, 0, 3, 1]])
    assert row_counts(shuffled).tolist() == [2, 2, 1, 0]
    assert numbered(shuffled).tolist() == [2, 1, 0, 1, 0]


def test_what_is_broken_is_counted() -> None:
    """An orphan, a person with three rows, one there twice, one too few, a day back, and a row after the end."""
    persons = [(0, "f", 0), (0, "f", 0), (1, "m", 1)]
    broken = people(persons, [(0, 5, "a"), (0, 4, "a"), (0, 6, "b"), (1, 1, "b"), (1, 2, "a"), (7, 1, "a")])
    found = breaches(broken, TABLE, 4)
    assert found == Breaches(orphans=1, bad_counts=3, out_of_order=1, after_end=1)
    assert breaches(People(REAL.persons, REAL.rows.filter(pl.col("kind") == "a")), TABLE, 4) == Breaches()
    holed = People(REAL.persons, REAL.rows.with_columns(kind=pl.when(pl.col("day") == 0).then("kind")))
    found = Yardstick(TABLE, REAL, REAL).figures_of_people(holed)
    assert found.broken is not None
    assert found.broken.nulls == 2
    assert found.child_tv1 == pytest.approx((2 / 5 + 1 / 15) / 2)
    table = PeopleTable("t", REAL, COLUMNS, most=9, order="day", first=("kind", ("a",)))
    flat = People(None, pl.DataFrame({KEY: [0, 0, 1, 2, 2], "day": 1, "kind": ["a", "b", "b", "a", "a"]}))
    assert breaches(flat, table, 3) == Breaches(bad_first=2)


def test_labels_are_learnt_from_the_rows_of_persons() -> None:
    """The kind of the rows tells the label where it should, and says nothing where labels were shuffled."""
    rng = np.random.default_rng(1)
    n = 600
    label = rng.integers(0, 2, n)
    persons = pl.DataFrame({KEY: np.arange(n), "sex": "f", "ill": label})
    person = np.repeat(np.arange(n), 3)
    kind = np.where(rng.random(3 * n) < 0.8, label[person], 1 - label[person])
    rows = pl.DataFrame({KEY: person, "day": rng.integers(0, 10, 3 * n), "kind": pl.Series(("a", "b")).gather(kind)})
    table = PeopleTable("t", REAL, COLUMNS, most=3, order="day", person_columns=PERSON_COLUMNS, target="ill")
    train, test = parted(People(persons, rows), 0.5, 0)
    assert area(train, test, table) > 0.8
    assert area(random_rows(train, 1, 0), test, table) > 0.65
    assert train.persons is not None
    shuffled = train.persons.with_columns(pl.col("ill").shuffle(seed=3))
    assert abs(area(People(shuffled, train.rows), test, table) - 0.5) < 0.12
    assert area(People(train.persons.with_columns(ill=pl.lit(0)), train.rows), test, table) == 0.5


def test_members_of_households_are_held_against_their_reference_person() -> None:
    rows = pl.DataFrame(
        {
            KEY: [0, 0, 0, 1, 1, 2, 2],
            "relation": ["reference", "partner", "child", "reference", "partner", "reference", "reference"],
            "age": [40, 42, 10, 30, 32, 50, 50],
            "sex": ["male", "female", "male", "male", "male", "female", "female"],
            "edu": [10, 12, 3, 14, 11, 1, 1],
        }
    )
    found = household_figures(rows)
    assert found.one_reference == pytest.approx(2 / 3)
    assert (found.other_sex, found.older_child, found.child_gap) == (0.5, 0, 30)
    assert found.ages == pytest.approx(1)
    assert found.schooling == pytest.approx(-1)


def test_made_up_tables_have_the_law_that_is_written_down() -> None:
    """Shares of the chain, tails of counts, ends, and dependence between members."""
    table = shop(4_000)
    counts = row_counts(table.people)
    assert (np.median(counts), counts.min()) == (4, 1)
    assert 6 < counts.mean() < 9
    assert np.quantile(counts, 0.99) > 40
    kinds = table.people.rows["kind"].to_numpy()
    person = table.people.rows[KEY].to_numpy()
    follows = np.flatnonzero((person[1:] == person[:-1]) & (kinds[1:] != CLOSE))
    same = (kinds[follows] == kinds[follows + 1]).mean()
    shuffled = kinds[np.random.default_rng(0).permutation(len(kinds))]
    assert same > (shuffled[1:] == shuffled[:-1]).mean() + 0.25
    assert breaches(table.people, table, 4_000) == Breaches()
    assert set(kinds) == {*KINDS, CLOSE}
    assert row_counts(shop_one(500).people).max() == 1
    assert 8.5 < row_counts(shop_ten(20_000).people).mean() < 11.5
    members = household_figures(homes(8_000).people.rows)
    assert members.one_reference == 1
    assert members.other_sex == pytest.approx(0.96, abs=0.01)
    assert members.ages == pytest.approx(0.97, abs=0.01)
    assert members.schooling == pytest.approx(0.59, abs=0.04)
    assert members.older_child == 0
    assert breaches(homes(500).people, homes(500), 500) == Breaches()


def test_persons_are_split_with_all_their_rows() -> None:
    table = shop(300)
    fitted, held_out = table.split(0)
    assert (len(fitted.keys()), len(held_out.keys())) == (240, 60)
    assert fitted.rows.height + held_out.rows.height == table.people.rows.height
    assert not set(fitted.rows[KEY]) & set(held_out.rows[KEY])
    again, other = table.split(0)[0], table.split(1)[0]
    assert again.keys().equals(fitted.keys())
    assert not other.keys().equals(fitted.keys())


def test_at_most_k_random_rows_of_a_person_stay() -> None:
    rows = pl.DataFrame({KEY: [0] * 10 + [1], "day": [*range(10), 5], "kind": "a"})
    kept = [random_rows(People(None, rows), 3, seed) for seed in range(40)]
    assert all(row_counts(one).tolist() in ([3, 1], [1, 3]) for one in kept)
    days = np.bincount(np.concatenate([one.rows.filter(pl.col(KEY) == 0)["day"].to_numpy() for one in kept]))
    assert (days > 0).all()
    assert days.sum() == 120


def test_noise_for_k_rows_is_that_of_a_mean_that_is_k_times_smaller() -> None:
    """Known: delta of a Gaussian of mean 1 at epsilon 1 is 0.1269; epsilons fall somewhat faster than 1 / k."""
    assert gaussian_delta(1.0, 1.0) == pytest.approx(0.12693674)
    assert k_fold(5.0, 1e-5, 1) == 5.0
    found = k_fold(5.0, 1e-5, 10)
    low, high = 0.01, 5.0
    for _ in range(60):
        mean = (low + high) / 2
        low, high = (low, mean) if gaussian_delta(5.0, mean) > 1e-5 else (mean, high)
    assert gaussian_delta(found, mean / 10) == pytest.approx(1e-5, rel=1e-6)
    assert 5 / 20 < found < 5 / 10
    # What is proved of a chain of ten neighbours comes to the same.
    grid = np.linspace(0, 8, 1_500)
    whole = chain_deltas(links_of(grid, mean / 10), grid, 10)
    assert np.interp(5.05, grid, whole) < 1e-5 < np.interp(4.9, grid, links_of(grid, mean))


def links_of(grid: np.ndarray, mean: float) -> np.ndarray:
    return np.array([gaussian_delta(epsilon, mean) for epsilon in grid])


def test_methods_are_named_and_unknown_ones_are_refused() -> None:
    assert expanded(["one-row", "k-rows", "mst-k-rows"])[:3] == ["one-row", "5-rows", "10-rows"]
    assert expanded(["mst-k-rows"])[-1] == "mst-50-rows"
    assert rows_kept("aim-10-rows") == ("aim", 10)
    for wrong in ("many-rows", "k", "0-rows", "privbayes-5-rows", "a-b-5-rows"):
        with pytest.raises(ParameterError, match="method"):
            rows_kept(wrong)
    with pytest.raises(FileError, match=r"cdnow_rows.parquet"):
        cdnow(Path("/nowhere"))


def test_a_run_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(releases.MADE, "shop", lambda: shop(400))
    releases._table.cache_clear()
    releases.yardstick_of.cache_clear()
    run = ["--out", str(tmp_path), "--only", "shop", "--epsilon", "5", "--seeds", "1", "--methods", "real", "one-row"]
    assert main(run) == 0
    assert "2 of 2 releases to measure" in capsys.readouterr().out
    assert main(run) == 0
    assert "0 of 2 releases to measure" in capsys.readouterr().out
    held = Results(tmp_path).read()
    assert [one.release.method for one in held] == ["real", "one-row"]
    assert held[0].figures.broken == Breaches()
    assert "one-row" in shown(cells(held))
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write(json.dumps(held[0].to_dict())[:40])
    assert len(Results(tmp_path).read()) == 2
    releases._table.cache_clear()
    releases.yardstick_of.cache_clear()


class Copier:
    """Stands in for a synthesizer of persons: draws the persons that it was given."""

    def __init__(self, epsilon: str, **options: str | None) -> None:
        self.options = {"epsilon": epsilon, **options}

    def fit(self, frames: dict[str, pl.DataFrame], tables: object, **_: object) -> Copier:
        self.frames = frames
        return self

    def sample(self, *, persons: int | None, seed: int, frame: str) -> dict[str, pl.DataFrame]:
        assert (persons, seed, frame) == (None, 0, "polars")
        return self.frames


def test_linked_persons_are_fitted_drawn_and_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A synthesizer that copies is right in everything."""
    monkeypatch.setitem(releases.MADE, "shop", lambda: shop(600))
    monkeypatch.setattr(sp, "LinkedSynthesizer", Copier, raising=False)
    releases._table.cache_clear()
    releases.yardstick_of.cache_clear()
    found = releases.measured(releases.Release("shop", "linked", "1", 0), None).figures
    assert (found.child_tv2, found.parent_child, found.count, found.icc, found.transition) == (0, 0, 0, 0, 0)
    assert found.broken == Breaches()
    releases._table.cache_clear()
    releases.yardstick_of.cache_clear()


def test_what_is_stated_of_every_table_is_a_shape_of_persons() -> None:
    """Limits, orders, rules over positions and roles reach the synthesizer."""
    flat = PeopleTable("t", REAL, COLUMNS, most=9, order="day").described()
    assert isinstance(flat, sp.Schema)
    assert PeopleShape.of(flat).rows[0].most == 9
    (purchases,) = PeopleShape.of(shop(50).described()).rows
    assert (purchases.order, purchases.most, len(purchases.position_rules)) == ("day", 200, 1)
    (members,) = PeopleShape.of(homes(50).described()).rows
    assert (members.role, members.differences, members.steps) == ("relation", ("age",), True)
    assert len(members.position_rules) == 1


def test_the_rows_that_are_timed_are_about_ten_a_person_and_lie_in_many_files(tmp_path: Path) -> None:
    rows = scale.rows_of(2_000)
    assert 8.5 < rows.height / 2_000 < 11.5
    assert rows.columns == [KEY, *scale.COLUMNS]
    scale.write(2_000, tmp_path / "files")
    files = sorted((tmp_path / "files").glob("*.parquet"))
    assert len(files) == scale.N_FILES
    held = [pl.read_parquet(file) for file in files]
    assert pl.concat(held).sort(pl.all()).equals(rows.sort(pl.all()))
    busiest = rows.group_by(KEY).len().sort("len")[KEY][-1]
    assert sum((one[KEY] == busiest).any() for one in held) > 5


def test_what_is_worse_than_a_rival_or_broken_is_a_missed_target() -> None:
    def cell(table: str, method: str, tv: float, n_orphans: int = 0) -> Cell:
        means = {"child_tv1": tv, "child_tv2": tv, "icc": 0.0}
        return Cell(table, method, "5", 1, means, {"orphans": n_orphans})

    found = lines([cell("cdnow", "linked", 0.04, 2), cell("cdnow", "one-row", 0.2), cell("cdnow", "10-rows", 0.03)])
    missed = [line.what for line in found if line.is_missed]
    assert missed == [
        "cdnow, epsilon 5: broken",
        "cdnow, epsilon 5: TV1 of rows over 10-rows",
        "cdnow, epsilon 5: TV2 of rows over 10-rows",
    ]
    assert not any(
        line.is_missed for line in lines([cell("shop-one", "linked", 0.02), cell("shop-ten", "linked", 0.03)])
    )
    assert any(line.is_missed for line in lines([cell("shop-one", "linked", 0.02), cell("shop-ten", "linked", 0.04)]))
