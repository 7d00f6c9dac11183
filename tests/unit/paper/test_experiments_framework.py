"""Experiments resume where they stopped, repeat bit for bit, and keep results that others can read."""

from __future__ import annotations

import json
import math

import pytest

from spinney.errors import FileError
from spinney_paper.experiments.framework import Inputs, finished, run_experiment, seed_of
from spinney_paper.experiments.results import Results
from support.toy_experiment import toy


def without_seconds(results: Results) -> list:
    return [{key: value for key, value in record.items() if key != "seconds"} for record in results.records]


def test_seeds_depend_on_the_experiment_and_the_task_alone():
    """Committed figures can be made again only while these stay as they are."""
    assert seed_of("fig-size", {"a": 1, "b": "0.1"}) == seed_of("fig-size", {"b": "0.1", "a": 1}) == 45382246917971
    assert seed_of("fig-size", {"a": 1, "b": "0.2"}) != seed_of("fig-size", {"a": 1, "b": "0.1"})
    assert seed_of("fig-variance", {"a": 1}) != seed_of("fig-size", {"a": 1})


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    """Finished tasks are not run again, and the results are those of a run in one go."""
    ran, said = [], []
    with pytest.raises(KeyboardInterrupt):
        run_experiment(toy(ran, stop_at=2), tmp_path, inputs=Inputs())
    assert ran == [0, 1]
    assert not (tmp_path / "toy.json").exists()
    resumed = run_experiment(toy(ran), tmp_path, inputs=Inputs(), say=said.append)
    assert ran == [0, 1, 2, 3]
    assert said == ["resuming toy: 2 tasks were done before"]
    assert [path.name for path in tmp_path.iterdir()] == ["toy.json"]

    (tmp_path / "again").mkdir()
    in_one_go = run_experiment(toy(), tmp_path / "again", inputs=Inputs())
    assert (
        without_seconds(resumed) == without_seconds(in_one_go) == without_seconds(Results.read(tmp_path / "toy.json"))
    )


def test_a_record_cut_short_is_run_again(tmp_path):
    """A crash in the middle of a line loses that record only."""
    ran = []
    with pytest.raises(KeyboardInterrupt):
        run_experiment(toy(ran, stop_at=3), tmp_path, inputs=Inputs())
    partial = tmp_path / "toy.partial.jsonl"
    partial.write_text(partial.read_text()[:-9])
    run_experiment(toy(ran), tmp_path, inputs=Inputs())
    assert ran == [0, 1, 2, 2, 3]


def test_a_run_of_other_parameters_is_set_aside(tmp_path):
    """Nothing is mixed and nothing is lost."""
    ran, said = [], []
    with pytest.raises(KeyboardInterrupt):
        run_experiment(toy(stop_at=2), tmp_path, inputs=Inputs())
    run_experiment(toy(ran, n=3), tmp_path, inputs=Inputs(), say=said.append)
    assert ran == [0, 1, 2]
    assert "set aside as toy.partial.jsonl.aside-1" in said[0]
    assert (tmp_path / "toy.partial.jsonl.aside-1").exists()


def test_finished_results_are_recognised(tmp_path):
    """The same parameters: nothing to do. Others: not overwritten in passing."""
    one = toy()
    assert finished(one, tmp_path, is_quick=False) is None
    made = run_experiment(one, tmp_path, inputs=Inputs())
    held = finished(one, tmp_path, is_quick=False)
    assert held is not None
    assert held.records == made.records
    with pytest.raises(FileError, match=r"a full run with other parameters.*--force"):
        finished(one, tmp_path, is_quick=True)


def test_results_that_are_no_numbers_are_refused(tmp_path):
    """Not-a-number has no place in JSON."""
    broken = toy()
    object.__setattr__(broken, "run", lambda *_: {"value": math.nan})
    with pytest.raises(ValueError, match="Out of range float"):
        run_experiment(broken, tmp_path, inputs=Inputs())


def test_missing_data_are_named_before_any_work(tmp_path):
    """An experiment on fraud says which file it wants and where from."""
    ran = []
    with pytest.raises(FileError, match=r"does not hold creditcard.parquet or creditcard.csv.*OpenML.*--data"):
        run_experiment(toy(ran, needs_fraud=True), tmp_path, inputs=Inputs(tmp_path))
    assert ran == []
    assert list(tmp_path.iterdir()) == []


def test_files_come_from_the_folder_of_data(tmp_path):
    """The first name that is there; otherwise the names that would do."""
    with pytest.raises(FileError, match=r"needs a.csv or b.csv; name the folder that holds it by --data"):
        Inputs().file("a.csv", "b.csv")
    (tmp_path / "b.csv").touch()
    assert Inputs(tmp_path).file("a.csv", "b.csv") == tmp_path / "b.csv"


def test_inputs_are_made_once():
    """A data set is made by the first task that asks for it."""
    inputs, made = Inputs(), []
    for _ in range(3):
        assert inputs.keep("x", lambda: made.append(1) or "data") == "data"
    assert made == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "does not hold JSON"),
        ("[]", "is not a file of results"),
        ('{"format": "other"}', "is not a file of results"),
        (
            '{"format": "spinney-experiment", "format_version": 99}',
            "format version 99, this version of Spinney reads 1",
        ),
        ('{"format": "spinney-experiment", "format_version": 1, "id": "x"}', "damaged: 'is_quick' is missing"),
    ],
)
def test_foreign_files_are_refused(tmp_path, text, message):
    """What is not a file of results says so."""
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(FileError, match=message):
        Results.read(tmp_path / "x.json")
    with pytest.raises(FileError, match="cannot read"):
        Results.read(tmp_path / "missing.json")


def test_the_file_is_plain_json(tmp_path):
    """Any reader of JSON gets parameters, versions and one line per record."""
    run_experiment(toy(), tmp_path, inputs=Inputs())
    held = json.loads((tmp_path / "toy.json").read_text())
    assert held["parameters"] == {"shift": 0, "steps": 4, "pair": [1, 2]}
    assert {"python", "spinney", "numpy"} <= set(held["versions"])
    assert [record["step"] for record in held["records"]] == [0, 1, 2, 3]
    assert {"seed", "value", "seconds"} < set(held["records"][0])


def test_selecting_and_averaging():
    """Records are chosen by their values; what is missing gives no number instead of a wrong one."""
    records = [{"m": "a", "v": 1.0}, {"m": "a", "v": 3.0}, {"m": "b", "v": None}]
    results = Results("toy", False, {}, records, {})
    assert results.mean("v", m="a") == 2
    assert results.range("v", m="a") == (1, 3)
    assert math.isnan(results.mean("v", m="b"))
    assert all(map(math.isnan, results.range("v", m="c")))
    assert len(results.where(m="b")) == 1


def test_a_quick_run_leaves_an_interrupted_full_one_alone(tmp_path):
    """Trying an experiment out does not cost the hours that a full run has behind it."""
    ran = []
    with pytest.raises(KeyboardInterrupt):
        run_experiment(toy(ran, stop_at=2), tmp_path, inputs=Inputs())
    run_experiment(toy(), tmp_path, inputs=Inputs(), is_quick=True)
    assert (tmp_path / "toy.partial.jsonl").exists()
