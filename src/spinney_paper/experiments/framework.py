"""What an experiment is, and how it runs: independent tasks, one record each, resumable and repeatable.

A task is a flat dict such as {"n_rows": 1000, "epsilon": "0.1", "method": "paper", "repetition": 3}. Its seed follows
from the experiment's id and the task, so a task comes out the same whatever ran before it and wherever it runs.
Finished records are appended to FOLDER/ID.partial.jsonl as they come (of a quick run to ID.quick.partial.jsonl); a
restart skips them, and at the end FOLDER/ID.json appears whole.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from spinney.errors import FileError
from spinney.progress import progress
from spinney_paper.experiments.results import Params, Record, Results, Task, as_json, versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure


T = TypeVar("T")

FRAUD_FILES = ("creditcard.parquet", "creditcard.csv")


@dataclass(slots=True)
class Inputs:
    """What tasks read: files of the folder given by --data, and anything worth keeping from one task to the next."""

    folder: Path | None = None
    results: Path | None = None  # the folder that finished experiments are in
    _kept: dict[Any, Any] = field(default_factory=dict)

    def keep(self, key: Any, make: Callable[[], T]) -> T:
        """The value that `make` gave when this key was first asked for."""
        if key not in self._kept:
            self._kept[key] = make()
        kept: T = self._kept[key]
        return kept

    def file(self, *names: str) -> Path:
        """The first of these files that the folder holds."""
        if self.folder is not None:
            for name in names:
                if (self.folder / name).is_file():
                    return self.folder / name
        wanted = " or ".join(names)
        if self.folder is None:
            raise FileError(f"this needs {wanted}; name the folder that holds it by --data")
        raise FileError(f"the folder {str(self.folder)!r} does not hold {wanted}")

    def results_of(self, experiment_id: str, *, is_quick: bool) -> Results:
        """Results of another experiment, from the same folder and of the same kind of run."""
        path = None if self.results is None else self.results / f"{experiment_id}.json"
        option = " --quick" if is_quick else ""
        if path is None or not path.exists():
            raise FileError(
                f"this is made from the results of {experiment_id}; run `spinney paper {experiment_id}{option}` first"
            )
        held = Results.read(path)
        if (held.id, held.is_quick) != (experiment_id, is_quick):
            raise FileError(
                f"{str(path)!r} is of another kind of run; run `spinney paper {experiment_id}{option}` again"
            )
        return held


@dataclass(frozen=True, slots=True)
class Experiment:
    """One figure or table of the paper.

    `run` gets its task with the task's "seed" in it and returns a flat, JSON-ready record. `draw`, `table` and
    `verdict` see results alone.
    """

    id: str
    title: str
    paper_says: str
    full: Params
    quick: Params
    tasks: Callable[[Params], list[Task]]
    run: Callable[[Params, Task, Inputs], Record]
    draw: Callable[[Results], Figure]
    table: Callable[[Results], str]
    verdict: Callable[[Results], str]
    needs_fraud: bool = False
    reads: tuple[str, ...] = ()  # ids of the experiments whose results this one is made from; always made anew

    def params(self, *, is_quick: bool) -> Params:
        return self.quick if is_quick else self.full

    def check_inputs(self, inputs: Inputs, *, is_quick: bool = False) -> None:
        """Raise unless the data are there. Asked before any work begins. A quick run makes its own."""
        if self.needs_fraud and not is_quick:
            from spinney_paper.experiments.fraud_data import fraud_rows

            fraud_rows("creditcard", inputs)


def seed_of(experiment_id: str, task: Task) -> int:
    """The seed of a task: 48 bits of a hash of the experiment's id and the task."""
    text = json.dumps([experiment_id, task], sort_keys=True, separators=(",", ":"))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big")


def partial_file(experiment: Experiment, folder: Path, *, is_quick: bool) -> Path:
    """Where records of an unfinished run are; a quick run does not disturb those of a full one."""
    return folder / f"{experiment.id}{'.quick' if is_quick else ''}.partial.jsonl"


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    inputs: Inputs,
    is_quick: bool = False,
    say: Callable[[str], object] = lambda _: None,
) -> Results:
    """Run what is left of an experiment and write FOLDER/ID.json. `say` gets a line about whatever is resumed."""
    inputs.results = folder
    experiment.check_inputs(inputs, is_quick=is_quick)
    params = experiment.params(is_quick=is_quick)
    present = versions()
    head = {"id": experiment.id, "is_quick": is_quick, "parameters": params, "versions": present}
    partial = partial_file(experiment, folder, is_quick=is_quick)
    if experiment.reads:
        partial.unlink(missing_ok=True)
    done = _resume(partial, head, say)
    tasks = experiment.tasks(params)
    with partial.open("a", encoding="utf-8") as file:
        if not file.tell():
            file.write(as_json(head) + "\n")
            file.flush()
        for task in progress(tasks, experiment.id, unit="task"):
            seed = seed_of(experiment.id, task)
            if seed in done:
                continue
            start = time.perf_counter()
            made = experiment.run(params, task | {"seed": seed}, inputs)
            done[seed] = task | {"seed": seed} | made | {"seconds": round(time.perf_counter() - start, 4)}
            file.write(as_json(done[seed]) + "\n")
            file.flush()
    records = [done[seed_of(experiment.id, task)] for task in tasks]
    results = Results(experiment.id, is_quick, params, records, present)
    results.write(folder / f"{experiment.id}.json", overwrite=True)
    partial.unlink()
    return results


def finished(experiment: Experiment, folder: Path, *, is_quick: bool) -> Results | None:
    """The results that the folder holds already, if they are of these parameters; raises if they are of others."""
    path = folder / f"{experiment.id}.json"
    if experiment.reads or not path.exists():
        return None
    held = Results.read(path)
    if (held.id, held.is_quick) == (experiment.id, is_quick) and held.params == _plain(
        experiment.params(is_quick=is_quick)
    ):
        return held
    kind = "a --quick run" if held.is_quick else "a full run"
    raise FileError(
        f"{str(path)!r} holds {kind} with other parameters; choose another --out, or say --force to replace it"
    )


def _resume(partial: Path, head: dict[str, Any], say: Callable[[str], object]) -> dict[int, Record]:
    """Records of an interrupted run by their seeds; a run of other parameters or versions is set aside."""
    if not partial.exists():
        return {}
    lines = partial.read_text(encoding="utf-8").split("\n")
    try:
        is_same = json.loads(lines[0]) == _plain(head)
    except ValueError:
        is_same = False
    if not is_same:
        aside = _free_name(partial)
        partial.rename(aside)
        say(f"{partial.name} is of other parameters or versions; it was set aside as {aside.name}")
        return {}
    whole = lines[:-1]  # what follows the last line break is nothing, or a record cut short
    partial.write_text("".join(line + "\n" for line in whole), encoding="utf-8")
    done = {record["seed"]: record for record in map(json.loads, whole[1:])}
    if done:
        say(f"resuming {head['id']}: {len(done)} tasks were done before")
    return done


def _free_name(partial: Path) -> Path:
    number = 1
    while (aside := partial.with_name(f"{partial.name}.aside-{number}")).exists():
        number += 1
    return aside


def _plain(value: Any) -> Any:
    """A value as it comes back from JSON: tuples as lists."""
    return json.loads(as_json(value))
