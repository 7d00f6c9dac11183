"""The benchmark of public tables sees the errors it is there to see, goes on where it stopped, and judges."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.forest.scores import Marginals
from benchmarks.forest.tables import DESCRIPTIONS, BenchTable
from benchmarks.tables import __main__ as command
from benchmarks.tables import joint, queries, releases, results, targets
from benchmarks.tables.figures import Figures, Yardstick, correlation_error, correlations
from benchmarks.tables.releases import REAL, Measured, Release
from benchmarks.tables.results import Cell, Results

import spinney as sp
from spinney.synthesizers.forest import QUALITIES

SCHEMA = sp.Schema(
    {
        "x": sp.Real(-100, 100),
        "y": sp.Real(-100, 100),
        "a": sp.Category((0, 1)),
        "b": sp.Category((0, 1)),
        "parity": sp.Category((0, 1)),
    }
)
N_ROWS = 8_000


def rows(seed: int) -> pl.DataFrame:
    """y leans on x, and parity is a xor b, which no pair of columns shows."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 3, N_ROWS)
    a, b = rng.integers(0, 2, (2, N_ROWS))
    return pl.DataFrame({"x": x, "y": x + rng.normal(0, 1, N_ROWS), "a": a, "b": b, "parity": a ^ b})


@pytest.fixture(scope="module")
def yardstick() -> Yardstick:
    return Yardstick(BenchTable("toy", rows(0), SCHEMA, "parity", (1,)), 0)


def shuffled(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    return frame.with_columns(frame[column].shuffle(seed=7))


# --------------------------------------------------------------------------------------------- what the figures can see


def test_the_fitted_rows_in_another_order_are_at_no_distance(yardstick: Yardstick) -> None:
    assert all(value == pytest.approx(0, abs=1e-12) for value in yardstick.distances(yardstick.train[::-1]).values())


def test_a_bootstrap_has_the_errors_of_chance(yardstick: Yardstick) -> None:
    found = yardstick.distances(yardstick.resampled())
    assert 0 < found["tv1"] < found["tv2"] < found["tv3"] < 0.2
    assert 0 < found["query"] < 0.01
    assert 0 < found["correlation"] < 0.03


def test_a_shifted_column_is_seen_by_every_distance_of_columns(yardstick: Yardstick) -> None:
    """All of x a deviation up: KS of a normal moved by its deviation is 0.38, and a fifth of that is the mean."""
    found = yardstick.distances(yardstick.train.with_columns(pl.col("x") + 3))
    assert found["worst_ks"] == pytest.approx(0.383, abs=0.03)
    assert found["ks"] == pytest.approx(found["worst_ks"] / 5)
    assert found["tv1"] == pytest.approx(0.383 / 5, abs=0.01)
    assert found["tv1_quantiles"] == pytest.approx(0.383 / 5, abs=0.01)
    assert found["query"] > 0.02
    assert found["correlation"] == pytest.approx(0, abs=1e-9), "correlations do not see where a column lies"


def test_a_pair_that_was_torn_is_seen_where_single_columns_are_perfect(yardstick: Yardstick) -> None:
    """Shuffling y leaves every column as it is; its correlation with x, 0.95, is one of ten."""
    found = yardstick.distances(shuffled(yardstick.train, "y"))
    assert found["ks"] == found["tv1"] == found["tv1_quantiles"] == 0
    assert found["tv2"] > 0.05
    assert found["tv2_quantiles"] > 0.05
    assert found["query"] > 0.01
    assert found["correlation"] == pytest.approx(0.949 / 10, abs=0.01)


def test_a_broken_triple_is_seen_where_all_pairs_are_perfect(yardstick: Yardstick) -> None:
    """Parity is independent of each of its parents; drawn afresh it breaks one triple of ten, by a half."""
    chosen = yardstick.train
    fresh = np.random.default_rng(1).integers(0, 2, chosen.height)
    found = yardstick.distances(chosen.with_columns(pl.Series("parity", fresh)))
    chance = yardstick.distances(yardstick.resampled())
    assert found["tv1"] < chance["tv1"]
    assert found["tv2"] < chance["tv2"]
    assert found["tv3"] > 1.2 * chance["tv3"]
    assert found["query"] > 1.5 * chance["query"]
    lr, xgb = yardstick.areas(chosen.with_columns(pl.Series("parity", fresh)))
    assert abs(xgb - 0.5) < 0.05
    assert yardstick.areas(chosen)[1] > 0.99
    assert abs(lr - 0.5) < 0.05


def test_a_skewed_column_is_seen_in_quantile_bins_where_equal_bins_are_blind() -> None:
    """Mass near zero and a far tail: what moves inside the first equal bin moves between bins at quantiles."""
    rng = np.random.default_rng(0)
    near, far = rng.uniform(0, 1, 7_500), rng.uniform(1_000, 2_000, 500)
    table = BenchTable(
        "skewed",
        pl.DataFrame({"x": rng.permutation(np.concatenate([near, far])), "k": rng.integers(0, 2, 8_000)}),
        sp.Schema({"x": sp.Real(0, 10_000), "k": sp.Category((0, 1))}),
        "k",
        (1,),
    )
    stick = Yardstick(table, 0)
    is_near = pl.col("x").is_between(0.1, 1)
    moved = stick.train.with_columns(
        pl.when(is_near).then(0.1 + (pl.col("x") - 0.1) ** 3).otherwise(pl.col("x")).alias("x")
    )
    found = stick.distances(moved)
    assert found["tv1"] < 0.01
    assert found["tv1_quantiles"] > 0.1
    assert found["tv3"] is None, "a table of two columns has no triples"


def test_the_fold_of_real_rows_is_what_classifiers_can_reach(yardstick: Yardstick) -> None:
    figures = yardstick.figures(yardstick.train)
    assert figures.auc_xgb is not None
    assert figures.auc_xgb > 0.99
    assert yardstick.figures(yardstick.train, has_areas=False).auc_lr is None


# -------------------------------------------------------------------------------------------------------------- figures


def by_hand(real: np.ndarray, other: np.ndarray, columns: tuple[int, ...]) -> float:
    """The slow twin: dictionaries of joint bins."""
    first, second = (Counter(zip(*(cells[c].tolist() for c in columns), strict=True)) for cells in (real, other))
    n, m = real.shape[1], other.shape[1]
    return sum(abs(first[cell] / n - second[cell] / m) for cell in {*first, *second}) / 2


@pytest.mark.parametrize("most", [joint.MAX_COUNTED, 1], ids=["counted", "sorted"])
def test_variations_meet_their_slow_twin(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "MAX_COUNTED", most)
    rng = np.random.default_rng(0)
    sizes = (5, 3, 7, 2)
    real, other = (np.stack([rng.integers(0, size, n) for size in sizes]).astype(np.uint16) for n in (200, 130))
    for ways in (1, 2, 3):
        for columns in itertools.combinations(range(4), ways):
            assert joint.variation(real, other, sizes, columns) == pytest.approx(by_hand(real, other, columns))


def test_choices_are_all_or_a_fixed_number_and_the_same_for_everyone() -> None:
    assert joint.choices(4, 2) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    few = joint.choices(30, 3, at_most=200)
    assert len(set(few)) == 200
    assert few == joint.choices(30, 3, at_most=200)
    assert joint.choices(2, 3) == []


def test_middle_bins_have_tails_and_the_upper_end_belongs_inside() -> None:
    """Of 0..1000 the half per cents are 5 and 995: 32 bins of 30.9375 between them."""
    schema = sp.Schema({"x": sp.Real(-10_000, 10_000, nullable=True), "same": sp.Integer(0, 9)})
    real = pl.DataFrame({"x": [*map(float, range(1_001)), None], "same": [7] * 1_002})
    marginals = Marginals(real, schema, cut="middle")
    others = pl.DataFrame(
        {"x": [-50.0, 4.9, 5.0, 35.9, 36.0, 995.0, 995.1, 9_000.0, None], "same": [6, 7, 8, 7, 7, 7, 7, 7, 7]}
    )
    x, same = marginals.cells_of(others).tolist()
    assert x == [0, 0, 1, 1, 2, 32, 33, 33, 34]
    assert same[:3] == [0, 1, 2], "below, at and above the only value are three bins"
    assert marginals.sizes == (35, 3)


def test_queries_count_rows_in_ranges_and_categories() -> None:
    """Every answer is the share that a plain loop counts; every query asks for two or three columns."""
    rng = np.random.default_rng(0)
    sizes = (35, 4, 12)
    cells = np.stack([rng.integers(0, size, 500) for size in sizes]).astype(np.uint16)
    asked = queries.drawn(cells, sizes, (True, False, True), 50, seed=0)
    for columns, taken, answer in zip(asked.columns, asked.taken, asked.answers(cells), strict=True):
        used = columns[columns >= 0]
        assert len(used) in (2, 3)
        assert len(set(used.tolist())) == len(used)
        inside = [all(taken[k, cells[c, row]] for k, c in enumerate(used)) for row in range(500)]
        assert answer == pytest.approx(np.mean(inside))
        for k, column in enumerate(used):
            if column == 1:
                assert taken[k].sum() == 2, "half of the categories"
            else:
                chosen = np.flatnonzero(taken[k])
                assert (np.diff(chosen) == 1).all(), "a range without gaps"
                assert 0.25 < taken[k][cells[column]].mean() < 0.9


def test_correlations_are_pearsons_with_nulls_at_the_mean() -> None:
    schema = sp.Schema(
        {
            "x": sp.Real(0, 10, nullable=True),
            "y": sp.Integer(0, 10),
            "is": sp.Boolean(),
            "kind": sp.Category(("a", "b", "c")),
            "same": sp.Integer(0, 9),
        }
    )
    frame = pl.DataFrame(
        {
            "x": [1.0, 2.0, None, 6.0],
            "y": [2, 4, 6, 12 - 4],
            "is": [False, False, True, True],
            "kind": ["a", "b", "c", "a"],
            "same": [7, 7, 7, 7],
        }
    )
    found = correlations(frame, schema)
    expected = np.corrcoef([[1, 2, 3, 6], [2, 4, 6, 8], [0, 0, 1, 1]])
    assert found.shape == (4, 4), "categories of three values have no correlations"
    np.testing.assert_allclose(found[:3, :3], expected)
    assert (found[3, :3] == 0).all()
    assert correlation_error(found, found) == 0
    assert correlation_error(np.ones((1, 1)), np.ones((1, 1))) is None


# -------------------------------------------------------------------------------------------------------------- results

FIGURES = Figures(0.01, 0.02, 0.01, 0.03, 0.08, 0.01, 0.03, 0.08, 0.003, 0.04, 0.9, 0.91)


def measured(
    table: str = "adult", system: str = "best", epsilon: str = "1", repetition: int = 0, **figures
) -> Measured:
    release = Release(table, system, epsilon, repetition)
    return Measured(release, replace(FIGURES, **figures), 1.0, 0.5, 1.2, "0.1.0")


def test_results_are_read_as_written_and_a_line_cut_off_is_measured_again(tmp_path: Path) -> None:
    store = Results(tmp_path)
    first, second = measured(), measured(repetition=1)
    stopped = Measured(Release("adult", "AIM, private quantiles", "1", 0), None, 9.0, 0.0, 9.0, "0.1.0", "stopped")
    for one in (first, stopped, second):
        store.add(one)
    assert store.read() == [first, stopped, second]
    path = tmp_path / "results.jsonl"
    path.write_text(path.read_text()[:-40])
    assert store.missing([first.release, second.release]) == [second.release]
    store.add(second)
    assert store.read() == [first, stopped, second]


def test_cells_hold_means_and_deviations_over_repetitions() -> None:
    found = [measured(repetition=i, tv2=value) for i, value in enumerate((0.02, 0.04))]
    found.append(measured(system=REAL, epsilon="", correlation=None))
    ours, floor = results.cells(found)
    assert (ours.n_runs, ours.mean("tv2")) == (2, pytest.approx(0.03))
    assert ours.figures["tv2"][1] == pytest.approx(0.01414, abs=1e-4)
    assert ours.mean("fit_seconds") == 1.0
    assert floor.mean("correlation") is None
    assert floor.figures["tv1"][1] is None
    versions, cells = results.from_json(results.to_json(found))
    assert versions == ["0.1.0"]
    assert [(cell.table, cell.system, cell.n_runs) for cell in cells] == [("adult", "best", 2), ("adult", REAL, 1)]
    assert cells[0].mean("tv2") == pytest.approx(0.03)


# -------------------------------------------------------------------------------------------------------------- targets


def verdicts(cells: list[Cell]) -> dict[str, bool]:
    return {line.what: line.is_missed for line in targets.lines(cells)}


def test_adult_is_judged_in_figures_at_every_budget() -> None:
    good = results.cells([measured(tv2=0.0279, query=0.0019, correlation=0.019, auc_lr=0.903, auc_xgb=0.909)])
    assert set(verdicts(good).values()) == {False}
    assert len(verdicts(good)) == 6, "five figures and a time"
    poor = results.cells([measured(tv2=0.0281, query=0.0019, correlation=0.019, auc_lr=0.901, auc_xgb=0.909)])
    missed = [what for what, is_missed in verdicts(poor).items() if is_missed]
    assert missed == ["adult, epsilon 1, best: TV2", "adult, epsilon 1, best: AUC of logistic regression"]
    assert verdicts(results.cells([measured(table="skin")])) == {}


@pytest.mark.parametrize("name", targets.RATIO_TABLES)
def test_six_tables_are_judged_against_what_high_was(name: str) -> None:
    """The baseline is committed, with at least two releases a table at both budgets."""
    before = [cell for cell in targets.baseline() if (cell.table, cell.system, cell.epsilon) == (name, "high", "1")]
    assert len(before) == 1
    assert before[0].n_runs >= 2
    tv2 = before[0].mean("tv2")
    assert tv2 is not None
    what = f"{name}, epsilon 1, best over high of before: TV2"
    assert not verdicts(results.cells([measured(table=name, tv2=0.79 * tv2)]))[what]
    assert verdicts(results.cells([measured(table=name, tv2=0.81 * tv2)]))[what]


def test_releases_that_bought_their_number_of_rows_are_judged_before_those_told() -> None:
    told = measured(tv2=0.01)
    told = replace(told, release=replace(told.release, is_told_rows=True))
    assert not verdicts(results.cells([told]))["adult, epsilon 1, best: TV2"]
    assert verdicts(results.cells([told, measured(tv2=0.05)]))["adult, epsilon 1, best: TV2"]


# -------------------------------------------------------------------------------------------------------------- command


def test_everything_is_asked_for_once() -> None:
    wanted = releases.ours(
        DESCRIPTIONS, ("0.1", "1"), QUALITIES, (False, True), n_runs=2, unit="add-remove", is_told_rows=False
    )
    assert len(DESCRIPTIONS) >= 10
    assert len(wanted) == len(set(wanted)) == len(DESCRIPTIONS) * 2 * (1 + 2 * len(QUALITIES) * 2)


def test_a_small_run_from_end_to_end_and_none_of_it_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Made-up rows, one quality: floors and releases with and without the target, then nothing left to do."""
    arguments = ["--out", str(tmp_path), "--only", "adult", "--epsilon", "1", "--quality", "fast", "--runs", "1"]
    command.main(arguments)
    found = Results(tmp_path).read()
    assert [(one.release.system, one.release.has_target) for one in found] == [
        (REAL, False),
        ("fast", False),
        ("fast", True),
    ]
    assert all(one.figures is not None and one.figures.auc_xgb is not None for one in found)
    floor, ours = found[0].figures, found[1].figures
    assert floor is not None
    assert ours is not None
    assert floor.tv2 < ours.tv2 < 0.5
    assert floor.auc_lr is not None
    assert floor.auc_lr > 0.7
    record = json.loads((tmp_path / "tables.json").read_text())
    assert record["tables"] == {"adult": {"is_held_out": False}}
    assert [line["what"] for line in record["targets"]] == ["adult, epsilon 1, fast: fit"]
    capsys.readouterr()
    command.main(arguments)
    assert "0 of 3 releases to measure" in capsys.readouterr().out
    assert len(Results(tmp_path).read()) == 3
    command.main([*arguments[:-1], "2", "--distances-only", "--target", "none"])
    assert "2 of 4 releases to measure" in capsys.readouterr().out


@pytest.mark.long
def test_several_processes_measure_what_one_does(tmp_path: Path) -> None:
    """As a program of its own, which is how processes find what they run."""
    arguments = ["--only", "adult", "--epsilon", "1", "--quality", "fast", "--runs", "1", "--distances-only"]
    out = ["--target", "none", "--out", str(tmp_path), "--jobs", "2"]
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-m", "benchmarks.tables", *arguments, *out], cwd=root, check=False)
    found = Results(tmp_path).read()
    assert {one.release.system for one in found} == {REAL, "fast"}
    for one in found:
        assert one.figures == releases.measured(one.release, None, has_areas=False).figures


def test_what_cannot_be_measured_is_refused_before_any_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "out")]
    assert command.main([*out, "--data", str(tmp_path), "--only", "covtype"]) == 2
    assert "no covtype.parquet" in capsys.readouterr().err
    assert command.main([*out, "--mbi-python", str(tmp_path / "python")]) == 2
    assert "--mbi-python" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main([*out, "--quality", "splendid"])
    assert "'splendid' is not one of" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main([*out, "--aim"])
    assert "--aim needs --mbi-python" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
