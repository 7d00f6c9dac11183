"""All experiments in the order of the paper, each of which loads on first use, and runs of them for `spinney paper`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

from spinney.errors import FileError, MissingExtraError, ParameterError
from spinney.report.pictures import save_figure
from spinney_paper.experiments.drawing import check_drawing
from spinney_paper.experiments.framework import Experiment, Inputs, finished, partial_file, run_experiment

# Id and module; a module lists its experiments in EXPERIMENTS.
_HOME = {
    "fig-partition": "partition",
    "fig-grid-vs-balog": "rivals",
    "fig-tree-vs-balog": "rivals",
    "fig-high-dim": "high_dim",
    "fig-scaling": "scaling",
    "fig-roc-degradation": "fraud",
    "fig-uniform-mixture": "uniform_mixture",
    "fig-size": "size",
    "fig-variance": "variance",
    "tab-fraud-tree": "fraud",
    "tab-fraud-dpmerf": "fraud",
}

IDS = tuple(_HOME)


def experiment(experiment_id: str) -> Experiment:
    """The experiment of this id."""
    if experiment_id not in _HOME:
        raise ParameterError(f"{experiment_id!r} is not an experiment; choose one of {', '.join(IDS)}, or all")
    module = import_module(f"spinney_paper.experiments.{_HOME[experiment_id]}")
    found: Experiment = next(one for one in module.EXPERIMENTS if one.id == experiment_id)
    return found


def run_all(chosen: Sequence[Experiment], folder: Path, *, data: Path | None, quick: bool, force: bool) -> None:
    """Run the experiments one by one; what lacks its data or an extra is named, the others go on."""
    check_drawing()
    skipped = []
    for one in sorted(chosen, key=lambda one: bool(one.reads)):  # those made from others' results come last
        try:
            _run(one, folder, Inputs(data), quick=quick, force=force)
        except (FileError, MissingExtraError) as err:
            if len(chosen) == 1:
                raise
            _say(f"skipped: {err}")
            skipped.append(one.id)
    if skipped:
        raise click.ClickException(f"{len(skipped)} of {len(chosen)} experiments were skipped: {', '.join(skipped)}")


def _run(one: Experiment, folder: Path, inputs: Inputs, *, quick: bool, force: bool) -> None:
    """Run one experiment, or go on with it, and draw it."""
    click.secho(f"{one.id}: {one.title}", bold=True)
    results = None if force else finished(one, folder, is_quick=quick)
    if results is not None:
        click.echo("  finished before; drawn again")
    else:
        if force:
            one.check_inputs(inputs, is_quick=quick)  # what cannot run throws nothing away
            partial_file(one, folder, is_quick=quick).unlink(missing_ok=True)
        try:
            results = run_experiment(one, folder, inputs=inputs, is_quick=quick, say=_say)
        except KeyboardInterrupt:
            _say(f"\nfinished tasks of {one.id} are kept in {str(folder)!r}; run the same command again to continue")
            raise
    save_figure(one.draw(results), folder / f"{one.id}.svg", overwrite=True)
    click.echo(f"\n{one.table(results)}\n\n{one.verdict(results)}\n")
    for ending in ("json", "svg"):
        click.echo(f"wrote {folder / f'{one.id}.{ending}'}")
    click.echo()


def _say(line: str) -> None:
    click.echo(line, err=True)
