"""The fraud experiments: where rows come from, what undersampling promises, and what the tables are made of."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import spinney as sp
from spinney.errors import FileError, InputError, ParameterError
from spinney.metrics import CLASSIFIERS
from spinney.privacy.mechanisms import NotPrivate
from spinney.synthesizers.validation import paper_cutoff
from spinney_paper.experiments import fraud, fraud_data, fraud_methods, fraud_printed, fraud_rival, fraud_wording
from spinney_paper.experiments.catalogue import experiment
from spinney_paper.experiments.framework import Inputs, run_experiment
from spinney_paper.experiments.results import Results


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return fraud_data.made_up_rows(2_000, 60)


def as_table(rows: np.ndarray) -> pa.Table:
    """The file as published: Time first, Class last."""
    named = dict(zip(fraud_data.COLUMNS, rows.T, strict=True))
    is_fraud = pa.array(named.pop("Class").astype(np.int8))
    return pa.table({"Time": np.arange(len(rows)), **named, "Class": is_fraud})


def thin(rows: np.ndarray, place: str, seed: int = 0, rate: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    return fraud_data.undersampled(rows, place, rate=rate, train_share=0.8, entropy=sp.UnsafeSeededEntropy(seed))


def multiset(rows: np.ndarray) -> Counter:
    return Counter(map(tuple, rows.tolist()))


# ------------------------------------------------------------------------------------------------ where rows come from


def test_files_of_both_kinds_give_the_same_rows(tmp_path, rows):
    """Time is left out, Class comes first."""
    parquet.write_table(as_table(rows), tmp_path / "creditcard.parquet")
    csv.write_csv(as_table(rows), tmp_path / "creditcard.csv")
    for name in ("creditcard.parquet", "creditcard.csv"):
        np.testing.assert_array_equal(fraud_data.read_rows(tmp_path / name), rows)
    np.testing.assert_array_equal(fraud_data.fraud_rows("creditcard", Inputs(tmp_path)), rows)


def test_a_folder_without_the_table_is_told_where_to_get_it(tmp_path):
    with pytest.raises(FileError, match=r"does not hold creditcard\.parquet or creditcard\.csv\. .*OpenML.*--data"):
        fraud_data.fraud_rows("creditcard", Inputs(tmp_path))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda table: table.drop_columns(["V7"]), "no column 'V7'"),
        (lambda table: table.set_column(30, "Class", pa.array([2] * len(table))), "both 0 and 1"),
        (lambda table: table.set_column(1, "V1", pa.array([None] + [1.0] * (len(table) - 1))), "missing value"),
        (lambda table: table.set_column(1, "V1", pa.array(["many"] * len(table))), "not a number"),
    ],
)
def test_a_table_of_another_make_is_refused(tmp_path, rows, spoil, message):
    parquet.write_table(spoil(as_table(rows)), tmp_path / "creditcard.parquet")
    with pytest.raises(InputError, match=message):
        fraud_data.read_rows(tmp_path / "creditcard.parquet")


def test_a_file_that_is_no_table_is_refused(tmp_path):
    (tmp_path / "creditcard.parquet").write_text("404: not found")
    with pytest.raises(FileError, match="cannot read"):
        fraud_data.read_rows(tmp_path / "creditcard.parquet")


def test_without_a_folder_the_table_is_fetched_once(monkeypatch, rows):
    calls = []

    def fetch_openml(name: str, **options: object) -> SimpleNamespace:
        calls.append(name)
        order = [*fraud_data.COMPONENTS, "Amount"]
        return SimpleNamespace(data=rows[:, 1:], feature_names=order, target=rows[:, 0].astype(int).astype(str))

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    inputs = Inputs()
    for _ in range(2):
        np.testing.assert_array_equal(fraud_data.fraud_rows("creditcard", inputs), rows)
    assert calls == ["creditcard"]


def test_without_a_network_the_error_says_what_to_do(monkeypatch):
    def fetch_openml(name: str, **options: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    with pytest.raises(FileError, match=r"could not be downloaded.*OpenML.*--data"):
        experiment("tab-fraud-tree").check_inputs(Inputs())
    experiment("tab-fraud-tree").check_inputs(Inputs(), is_quick=True)  # needs no data


def test_only_two_sources_and_two_places_exist(rows):
    with pytest.raises(ParameterError, match="source='kaggle'"):
        fraud_data.fraud_rows("kaggle", Inputs())
    with pytest.raises(ParameterError, match="place='above'"):
        thin(rows, "above")


# ------------------------------------------------------------------------------------------------------- undersampling


def test_outside_keeps_fixed_numbers_and_splits_them(rows):
    """A tenth of 2,000 honest rows and all 60 frauds, four fifths of them to train; nothing twice."""
    train, test = thin(rows, "outside")
    assert (len(train), len(test)) == (208, 52)
    kept = multiset(np.concatenate([train, test]))
    assert max(kept.values()) == 1
    assert kept <= multiset(rows)
    assert sum(row[0] for row in kept) == 60
    assert train[:, 0].any()
    assert test[:, 0].any()


@pytest.mark.parametrize("place", ["outside", "inside"])
def test_the_seed_decides_which_rows_are_kept(rows, place):
    first, again, other = (thin(rows, place, seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert multiset(first) != multiset(other)


def test_inside_keeps_all_frauds_and_honest_rows_at_the_rate(rows):
    train, test = thin(rows, "inside")
    kept = np.concatenate([train, test])
    assert kept[:, 0].sum() == 60

    def fits(n: float, chance: float, count: float) -> bool:
        return abs(count - n * chance) < 4 * math.sqrt(n * chance * (1 - chance))

    n_honest = len(kept) - 60
    assert fits(2000, 0.1, n_honest)
    assert not fits(2000, 0.2, n_honest)
    assert fits(len(kept), 0.8, len(train))
    assert not fits(len(kept), 0.5, len(train))


def furthest(rows: np.ndarray, place: str) -> int:
    """Rows that training tables of neighbours differ by, at most, over replaced rows of both classes and many seeds."""
    most = 0
    for seed, index, turns in itertools.product(range(6), (0, 7, len(rows) - 1), (False, True)):
        neighbour = rows.copy()
        neighbour[index, 1] += 1
        if turns:
            neighbour[index, 0] = 1 - neighbour[index, 0]
        one, two = (multiset(thin(table, place, seed, rate=0.5)[0]) for table in (rows, neighbour))
        assert max((one - two).total(), (two - one).total()) <= 1 or place == "outside"
        most = max(most, (one - two).total() + (two - one).total())
    return most


def test_inside_neighbours_stay_two_steps_apart(rows):
    """A replaced row is at most one removal and one addition; fixed sizes shuffle everything and promise nothing."""
    assert furthest(rows[-200:], "inside") == 2
    assert furthest(rows[-200:], "outside") > 2


def worst_loss(step_epsilon: float, train: float) -> float:
    """Largest log-ratio, over neighbours of three rows, of noisy counts of what thinning leaves; every law in full.

    Rows are honest, a fraud of kind a, or of kind b. Counts of the three get discrete Laplace noise that makes one step
    of add-remove cost `step_epsilon`. Coins are enumerated, `train` being the chance of the second; three noise values
    either side of all counts show every ratio.
    """
    keep, ratio = 0.25, math.exp(-step_epsilon)
    span = np.arange(-3, 7)
    laws = {c: (1 - ratio) / (1 + ratio) * ratio ** np.abs(span - c) for c in range(4)}

    def law(table: tuple[str, ...]) -> np.ndarray:
        total = np.zeros((len(span),) * 3)
        chances = [train * keep if kind == "honest" else train for kind in table]
        for present in itertools.product((False, True), repeat=len(table)):
            weight = math.prod(p if is_in else 1 - p for p, is_in in zip(chances, present, strict=True))
            left = Counter(kind for kind, is_in in zip(table, present, strict=True) if is_in)
            total += weight * np.einsum("i,j,k->ijk", *(laws[left[kind]] for kind in ("honest", "a", "b")))
        return total

    kinds = ("honest", "a", "b")
    held = {table: np.log(law(table)) for table in itertools.product(kinds, repeat=3)}
    return max(
        float(np.abs(held[table] - held[(kind, *table[1:])]).max()) for table, kind in itertools.product(held, kinds)
    )


def test_half_of_epsilon_per_step_keeps_the_promise_and_more_breaks_it():
    """The law of thinning and release together: epsilon = 1 exactly at half per step where all kept rows train."""
    assert worst_loss(0.5, train=1) == pytest.approx(1)
    assert worst_loss(0.5, train=0.8) < 1
    assert worst_loss(0.6, train=1) > 1


# --------------------------------------------------------------------------------------------------------- the methods


def test_every_method_spends_what_its_name_says(rows):
    """Inside: half of epsilon in add-remove. Boxes read off the data are branded, public ones are not."""
    params = fraud.EXPERIMENTS[0].full
    for name, method in fraud_methods.METHODS.items():
        model = method.make("1", params).fit(rows[-300:], method.schema(), entropy=sp.UnsafeSeededEntropy(1))
        card = model.card_
        is_inside = name.endswith("inside")
        assert card.epsilon == (Fraction(1, 2) if is_inside else 1)
        assert card.unit == ("add-remove" if is_inside else "replace-one")
        brands = [event.note for event in card.events if isinstance(event, NotPrivate)]
        assert bool(brands) == (method.schema is fraud_data.data_box_schema)


@pytest.mark.parametrize("epsilon", ["10", "1", "0.01"])
def test_the_low_threshold_lets_about_32_empty_bins_through(epsilon):
    """The smallest t with 2^30 P(noise >= t) <= 32."""
    t = fraud_methods.low_threshold(epsilon, {"fixed_depth": 30, "log2_noise_bins": 5})
    rate = float(epsilon) / 2 / 2

    def expected(t: int) -> float:
        return 2**30 * math.exp(-rate * t) / (1 + math.exp(-rate))

    assert expected(t) <= 32 < expected(t - 1)


def test_the_lemma_leaves_nothing_to_split():
    """Slip 9: at epsilon' = 1 tau is as large as the whole thinned table."""
    tau = paper_cutoff(1533, 30, 60, Fraction(1), sp.privacy.budget.Unit.REPLACE_ONE)
    assert tau == 1524


def test_nothing_is_learnt_from_no_rows_or_one_class(rows):
    params = {"classifiers": ["LDA", "XGBoost"]}
    for synthetic in (rows[:0], rows[:50], rows[-50:]):
        record = fraud_methods.judged(params, rows, rows, synthetic, seed=1)
        assert record["labels"] == record["ranking"] == record["labels: LDA"] == 0.5
    record = fraud_methods.judged(params, rows, rows, rows, seed=1)
    assert record["labels: XGBoost"] > 0.9
    assert record["labels"] == pytest.approx((record["labels: LDA"] + record["labels: XGBoost"]) / 2, abs=1e-6)


# ---------------------------------------------------------------------------------------------- printed and computed


def test_printed_rows_and_averages_agree():
    """The paper's averages are those of its twelve rows, so no figure was mistyped."""
    assert tuple(fraud_printed.PRINTED_TREE) == CLASSIFIERS
    for epsilon, average in fraud_printed.PRINTED_TREE_AVERAGE.items():
        areas = [areas[epsilon] for areas in fraud_printed.PRINTED_TREE.values()]
        assert np.mean(areas) == pytest.approx(average, abs=0.00051)


def quick_results(folder: Path, experiment_id: str, areas: dict[tuple[str, str], float]) -> None:
    records = [
        {"method": method, "epsilon": epsilon, "repetition": 0, "labels": area}
        for (method, epsilon), area in areas.items()
    ]
    results = Results(experiment_id, True, {"source": "made-up", "repetitions": 1}, records, {})
    results.write(folder / f"{experiment_id}.json")


def test_degradation_is_made_from_the_other_two(tmp_path):
    """Ratios to epsilon = 10, and what is left of the advantage over guessing; results of others are asked for."""
    one = experiment("fig-roc-degradation")
    with pytest.raises(FileError, match="run `spinney paper tab-fraud-tree --quick` first"):
        run_experiment(one, tmp_path, inputs=Inputs(), is_quick=True)
    low = "paper, low threshold"
    tree = {(low, "10"): 0.6, (low, "0.1"): 0.5, ("spinney", "10"): 0.9, ("spinney", "0.1"): 0.7}
    quick_results(tmp_path, "tab-fraud-tree", tree)
    quick_results(
        tmp_path,
        "tab-fraud-dpmerf",
        {("dp-merf, published noise", "10"): 0.5, ("dp-merf, published noise", "0.1"): 0.45},
    )
    results = run_experiment(one, tmp_path, inputs=Inputs(), is_quick=True)
    (steady,), (spinney,) = results.where(method=low, epsilon="0.1"), results.where(method="spinney", epsilon="0.1")
    assert (steady["ratio"], steady["advantage_left"]) == (pytest.approx(5 / 6, abs=1e-6), 0)
    assert (spinney["ratio"], spinney["advantage_left"]) == (pytest.approx(7 / 9, abs=1e-6), 0.5)
    assert [record["advantage_left"] for record in results.where(method="dp-merf, published noise")] == [None, None]
    assert "0.778 · 0.500" in one.table(results)
    assert "50% of its advantage" in one.verdict(results)
    assert "20% for paper's tree" not in one.verdict(results)
    assert "MADE-UP" in fraud_wording.ratio_small_print(results)
    assert len(one.draw(results).axes) == 2


def test_a_quick_run_says_that_its_data_are_made_up(tmp_path):
    one = experiment("tab-fraud-tree")
    results = run_experiment(one, tmp_path, inputs=Inputs(), is_quick=True)
    assert len(results.records) == 20
    assert one.table(results).startswith("Data: MADE-UP")
    figure = one.draw(results)
    assert "MADE-UP" in figure.get_supxlabel()
    # The table's cells are the records' means.
    mean = results.mean("labels", method="spinney", epsilon="10")
    assert f"| Spinney's default tree | {mean:.3f} (" in one.table(results)
    assert f"reaches {mean:.3f} / " in one.verdict(results)


def test_two_half_steps_of_dp_merf_stay_within_epsilon_and_delta():
    """(epsilon/2, delta') twice is (epsilon, (1 + exp(epsilon/2)) delta'), rounded to the safe side and not far off."""
    for epsilon in ("10", "0.1"):
        step = fraud_rival.half_step(epsilon, "1e-5")
        assert 2 * step["epsilon"] == Fraction(epsilon)
        assert step["unit"] == "add-remove"
        whole = (1 + math.exp(step["epsilon"])) * float(step["delta"])
        assert 0.6e-5 < whole <= 1e-5


@pytest.mark.long
def test_dp_merf_runs_quickly_on_made_up_data(tmp_path):
    one = experiment("tab-fraud-dpmerf")
    one = replace(one, quick=one.quick | {"epsilons": ["10"]})
    results = run_experiment(one, tmp_path, inputs=Inputs(), is_quick=True)
    assert [record["method"] for record in results.records] == list(fraud_rival.RIVALS)
    assert one.table(results).startswith("Data: MADE-UP")
    mean = results.mean("labels", method="dp-merf, published noise", epsilon="10")
    assert f"as published reaches {mean:.3f} where" in one.verdict(results)
    assert "MADE-UP" in one.draw(results).get_supxlabel()
