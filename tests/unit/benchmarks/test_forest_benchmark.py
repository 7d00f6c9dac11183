"""The forest's benchmark measures what it says: bins, variations, thinning, verdicts, and its rivals' budgets."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from benchmarks.forest import __main__ as command
from benchmarks.forest import mechanisms, peers, tables
from benchmarks.forest.scores import Marginals, mean_area, thinned
from benchmarks.forest.targets import ADULT_AREA, FRAUD_AREAS, Line, limit_lines, markdown, peer_lines, trial_lines
from benchmarks.forest.trials import Setting, Trial

import spinney as sp
from spinney.errors import FileError, InputError
from spinney.metrics import total_variation

SCHEMA = sp.Schema(
    {
        "x": sp.Real(-100, 100, nullable=True),
        "k": sp.Integer(0, 1000),
        "kind": sp.Category(("a", "b", "c"), nullable=True),
        "is": sp.Boolean(),
        "same": sp.Integer(0, 9),
    }
)


def rows(n_rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "x": [None if rng.random() < 0.1 else float(v) for v in rng.normal(0, 3, n_rows)],
            "k": rng.integers(100, 140, n_rows),
            "kind": [(None, "a", "b", "c")[i] for i in rng.integers(0, 4, n_rows)],
            "is": rng.random(n_rows) < 0.3,
            "same": np.full(n_rows, 7),
        }
    )


# ----------------------------------------------------------------------------------------------------------- marginals


def by_hand(real: np.ndarray, other: np.ndarray, ways: int) -> float:
    """The slow twin: dictionaries of joint bins."""
    found = []
    for columns in itertools.combinations(range(len(real)), ways):
        first = Counter(zip(*(real[c].tolist() for c in columns), strict=True))
        second = Counter(zip(*(other[c].tolist() for c in columns), strict=True))
        n, m = real.shape[1], other.shape[1]
        found.append(sum(abs(first[cell] / n - second[cell] / m) for cell in {*first, *second}) / 2)
    return float(np.mean(found))


@pytest.mark.parametrize("cut", ["quantiles", "equal"])
def test_variations_meet_their_slow_twin(cut: str) -> None:
    real, other = rows(300, 1), rows(170, 2)
    marginals = Marginals(real, SCHEMA, cut=cut)
    cells = marginals.cells_of(other)
    found = marginals.distances(cells)
    assert found.tv1 == pytest.approx(by_hand(marginals.cells, cells, 1))
    assert found.tv2 == pytest.approx(by_hand(marginals.cells, cells, 2))
    assert 0 < found.tv1 < found.tv2 < 1


def test_rows_are_no_distance_from_themselves_in_any_order() -> None:
    real = rows(100, 3)
    marginals = Marginals(real, SCHEMA)
    found = marginals.distances(marginals.cells_of(real.reverse()))
    assert (found.tv1, found.tv2) == (0, 0)


def test_bins_are_equal_between_the_extremes_and_nulls_have_their_own() -> None:
    schema = sp.Schema({"x": sp.Real(-100, 100, nullable=True)})
    marginals = Marginals(pl.DataFrame({"x": [0.0, 32.0, None]}), schema, cut="equal")
    others = pl.DataFrame({"x": [-50.0, 0.5, 1.0, 31.5, 32.0, 99.0, None]})
    assert marginals.cells_of(others).tolist() == [[0, 0, 1, 31, 31, 31, 32]]
    assert marginals.sizes == (33,)


def test_bins_at_quantiles_are_those_of_the_metrics() -> None:
    """Of many columns the mean of the library's own total variation, in 32 bins."""
    real, other = rows(300, 1), rows(170, 2)
    marginals = Marginals(real, SCHEMA)
    found = marginals.distances(marginals.cells_of(other))
    for distance, ways in ((found.tv1, 1), (found.tv2, 2)):
        expected = total_variation(real, other, SCHEMA, ways=ways, bins=32)
        assert distance == pytest.approx(np.mean([*expected.values()]))


def test_a_missing_value_in_a_column_without_nulls_is_refused() -> None:
    schema = sp.Schema({"x": sp.Real(0, 1)})
    with pytest.raises(InputError, match="'x' holds a missing value"):
        Marginals(pl.DataFrame({"x": [0.5, None]}), schema)


# --------------------------------------------------------------------------------------------------------- classifiers


def test_thinning_keeps_the_rare_class_up_to_half() -> None:
    is_rare = np.arange(1000) % 50 == 0
    frame = pl.DataFrame({"y": is_rare, "id": np.arange(1000)})
    few = thinned(frame, "y", 100, 0)
    assert (few.height, few["y"].sum(), few["id"].n_unique()) == (100, 20, 100)
    assert thinned(frame, "y", 30, 0)["y"].sum() == 15
    assert thinned(frame, "y", 1000, 0).equals(frame)


def test_areas_follow_what_the_rows_teach() -> None:
    """The target has three values and is folded into two; rows with the opposite label teach the opposite."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 600)
    frame = pl.DataFrame({"x": np.where(label == 1, 2.0, 0.0) + rng.normal(size=600), "label": label})
    description = tables.Description("label", (1,), {"x": sp.Real(-9, 9)})
    table = tables.described("toy", frame, description)
    train, test = table.split(0)
    names = ("Logistic Regression",)
    assert mean_area(test, train, table, classifiers=names) > 0.85
    opposite = train.with_columns(pl.when(pl.col("label") == 1).then(0).otherwise(1).alias("label"))
    assert mean_area(test, opposite, table, classifiers=names) < 0.15


# -------------------------------------------------------------------------------------------------------------- tables


def test_columns_without_bounds_become_categories() -> None:
    frame = pl.DataFrame({"age": [3, 4], "kind": ["b", "a"], "code": [7, None], "row": [0, 1]})
    description = tables.Description("kind", ("a",), {"age": sp.Integer(0, 120)}, left_out=("row",))
    table = tables.described("toy", frame, description)
    assert table.schema == sp.Schema(
        {"age": sp.Integer(0, 120), "kind": sp.Category(("a", "b")), "code": sp.Category((7,), nullable=True)}
    )


def test_a_table_without_a_described_column_is_refused() -> None:
    with pytest.raises(FileError, match="no column 'age'"):
        tables.described("adult", pl.DataFrame({"x": [1]}), tables.DESCRIPTIONS["adult"])


def test_a_folder_without_a_table_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no covtype\.parquet"):
        command.main(["--data", str(tmp_path), "--only", "covtype"])


def test_splits_are_disjoint_whole_and_differ() -> None:
    table = tables.generated(500, 5)
    numbered = tables.BenchTable("toy", table.frame.with_row_index(), table.schema, "y", (1,))
    train, test = numbered.split(0)
    assert (train.height, test.height) == (400, 100)
    assert {*train["index"], *test["index"]} == {*range(500)}
    assert not numbered.split(1)[1]["index"].equals(test["index"])


# ------------------------------------------------------------------------------------------------------------ verdicts


def trial(table: str, setting: Setting, *, area: float | None, fit_seconds: float = 1.0) -> Trial:
    return Trial(table, setting, 0, fit_seconds, 0.5, 1.0, 0.02, 0.03, 0.018, 0.05, 0.008, 0.04, area)


def verdicts(lines: list[Line]) -> dict[str, str]:
    return {line.what: line.cells()[-1] for line in lines}


def test_targets_judge_the_mean_and_only_where_there_is_one() -> None:
    setting = Setting("1")
    lines = [trial("adult", setting, area=ADULT_AREA + step) for step in (-0.02, 0.03)]
    found = verdicts(trial_lines(lines, 0.91))
    assert found["adult, epsilon 1, fast: AUC of 4"] == "MET"
    assert found["adult, epsilon 1, fast: TV1, equal bins"] == "MET"
    assert found["adult, epsilon 1, fast: TV1"] == found["adult, epsilon 1, fast: KS of the worst column"] == ""
    assert found["adult, real rows: AUC of 4"] == ""
    missed = verdicts(trial_lines([trial("adult", setting, area=ADULT_AREA - 0.01, fit_seconds=3)], 0.91))
    assert missed["adult, epsilon 1, fast: AUC of 4"] == missed["adult, epsilon 1, fast: fit"] == "MISSED"
    assert set(verdicts(trial_lines([trial("covtype", setting, area=0.1)], 0.9)).values()) == {""}
    without = verdicts(trial_lines([trial("adult", setting, area=None)], None))
    assert not [what for what in without if "AUC" in what]


@pytest.mark.parametrize("setting", FRAUD_AREAS, ids=str)
def test_every_budget_of_card_fraud_has_its_target(setting: Setting) -> None:
    wanted = FRAUD_AREAS[setting]
    name = f"creditcard, {setting}: AUC of 12"
    assert verdicts(trial_lines([trial("creditcard", setting, area=wanted + 0.001)], 1))[name] == "MET"
    assert verdicts(trial_lines([trial("creditcard", setting, area=wanted - 0.001)], 1))[name] == "MISSED"


def test_limits_and_peers_are_judged() -> None:
    found = verdicts(limit_lines(1.2, {("no target", 150): 40.0, ("no target", 300): 200.0}))
    assert found["creditcard: peak memory of a process that fits"] == "MET"
    assert found["300 columns x 100,000 rows, no target: fit"] == "MISSED"
    ours = trial("adult", Setting("1"), area=0.9)
    slow, slower = peers.Peer("MST", 149.0, 100.0, 0.01, 0.05), peers.Peer("MST", 151.0, 100.0, 0.01, 0.05)
    name = "adult, epsilon 1, MST: time over ours"
    assert verdicts(peer_lines([slow], ours))[name] == "MISSED"
    assert verdicts(peer_lines([slower], ours))[name] == "MET"
    equal = peers.Peer("MST", 9.0, 9.0, 0.01, 0.05, cut="equal")
    whats = [line.what for line in peer_lines([slower, equal], ours)]
    assert "adult, epsilon 1, MST: TV2, equal bins" in whats
    assert len(whats) == len(set(whats))


def test_pages_and_figures_hold_every_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [trial("diamonds", Setting("1"), area=area) for area in (0.8, 0.9)]
    lines = trial_lines(found, 0.95)
    monkeypatch.setattr(command, "_part", lambda *_, **__: (found, lines))
    assert command.main(["--out", str(tmp_path), "--only", "diamonds"]) == 0
    assert (tmp_path / "forest.md").read_text() == markdown(lines)
    record = json.loads((tmp_path / "forest.json").read_text())
    assert len(record["trials"]) == 2
    area = next(line for line in record["table"] if line["what"].endswith("fast: AUC of 4"))
    assert (area["mean"], area["sd"]) == (pytest.approx(0.85), pytest.approx(0.0707, abs=1e-4))


# --------------------------------------------------------------------------------------------------------------- peers


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-9), (10.0, 1e-5)])
def test_the_zcdp_budget_is_the_largest_that_fits(epsilon: float, delta: float) -> None:
    orders = 1 + np.exp(np.linspace(-9, 12, 200_000))

    def least_delta(rho: float) -> float:
        logs = (orders - 1) * (orders * rho - epsilon) - np.log(orders - 1) + orders * np.log1p(-1 / orders)
        return float(np.exp(logs.min()))

    rho = mechanisms.zcdp_rho(epsilon, delta)
    assert least_delta(rho) <= delta * (1 + 1e-3)
    assert least_delta(1.02 * rho) > delta


def test_a_rich_budget_chooses_the_heaviest_spanning_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = {("a", "b"): 9.0, ("a", "c"): 8.0, ("b", "c"): 7.0, ("a", "d"): 1.0, ("b", "d"): 2.0, ("c", "d"): 3.0}
    monkeypatch.setattr(mechanisms, "_gap", lambda _data, _model, pair: gaps[pair])
    data = SimpleNamespace(domain=("a", "b", "c", "d"))

    def choose(rho: float, seed: int) -> tuple[tuple[str, ...], ...]:
        run = mechanisms._Run(data, rho, np.random.default_rng(seed), 0.0, "replace-one")
        return tuple(run._spanning_tree(data, None))

    assert {choose(1e9, seed) for seed in range(20)} == {(("a", "b"), ("a", "c"), ("c", "d"))}
    assert len({choose(1e-9, seed) for seed in range(20)}) > 10


def test_a_table_costs_twice_as_much_where_a_row_is_replaced() -> None:
    """One row moves a table of counts by 1 if it is added, and by sqrt(2) if it is replaced."""
    added, replaced = (mechanisms._Run(None, 1.0, None, 0.0, unit) for unit in ("add-remove", "replace-one"))
    assert added._price(10.0) == pytest.approx(1 / 200)
    assert replaced._price(10.0) == pytest.approx(2 / 200)
    for run in (added, replaced):
        assert run._price(run._deviation(0.3)) == pytest.approx(0.3)


def test_rare_values_are_pooled_behind_the_others() -> None:
    assert mechanisms._pooled(np.array([False, True, False, True])).tolist() == [0, 2, 1, 2]


def test_what_is_not_installed_is_left_out_and_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(peers, "is_installed", lambda: False)
    assert command.main(["--data", str(tmp_path), "--only", "peers"]) == 0
    assert "pip install mbi" in capsys.readouterr().out


def test_one_run_has_no_deviation_and_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--runs", "1"])
    assert "at least two runs" in capsys.readouterr().err
