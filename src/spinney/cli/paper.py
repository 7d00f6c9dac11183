"""`spinney paper`: compute and draw the figures and tables of the paper."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.command import Verb

if TYPE_CHECKING:
    from spinney_paper.experiments.framework import Experiment


@click.command(
    cls=Verb,
    examples=(
        "spinney paper --list",
        "spinney paper fig-size --quick",
        "spinney paper fig-size",
        "spinney paper all --data data/ --out results/",
    ),
)
@click.argument("experiment", required=False)
@click.option("--list", "wants_list", is_flag=True, help="List the experiments and stop.")
@click.option("--quick", is_flag=True, help="Seconds instead of minutes: smaller data, fewer repetitions.")
@click.option(
    "--out",
    default="spinney-paper",
    show_default=True,
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="The folder for results (.json) and pictures (.svg).",
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    metavar="FOLDER",
    help="The folder with creditcard.parquet or creditcard.csv, for the experiments on fraud; without it, the table is "
    "fetched from OpenML.",
)
@click.option("--force", is_flag=True, help="Start again, and replace results that were made with other parameters.")
def paper(experiment: str | None, wants_list: bool, quick: bool, out: str, data: str | None, force: bool) -> None:
    """Compute and draw a figure or table of the paper.

    EXPERIMENT is an id that --list shows, or all. Results are written as they come: an interrupted run continues
    where it stopped, and finished results are only drawn again. The noise is seeded, so that figures can be repeated;
    the data are made up or public. Needs matplotlib and, for some experiments, more: pip install '.[paper]' in a
    checkout.
    """
    from spinney_paper.experiments.catalogue import IDS
    from spinney_paper.experiments.catalogue import experiment as named

    if wants_list:
        for one in map(named, IDS):
            click.echo(f"{one.id:<20} {one.title}" + (" [--data, or a download]" if one.needs_fraud else ""))
        return
    if experiment is None:
        raise click.UsageError(f"name an experiment, or all: {', '.join(IDS)}")
    chosen = [named(one) for one in (IDS if experiment == "all" else [experiment])]
    folder = _ready_folder(Path(out))
    _run_all(chosen, folder, data=None if data is None else Path(data), quick=quick, force=force)


def _ready_folder(folder: Path) -> Path:
    if not folder.parent.is_dir():
        raise click.UsageError(f"the folder {str(folder.parent)!r} does not exist; make it first")
    folder.mkdir(exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise click.UsageError(f"the folder {str(folder)!r} cannot be written to")
    return folder


def _run_all(chosen: list[Experiment], folder: Path, *, data: Path | None, quick: bool, force: bool) -> None:
    """Run the experiments one by one; what lacks its data or an extra is named, the others go on."""
    from spinney.errors import FileError, MissingExtraError
    from spinney_paper.experiments.drawing import check_drawing
    from spinney_paper.experiments.framework import Inputs

    check_drawing()
    skipped = []
    for one in sorted(chosen, key=lambda one: bool(one.reads)):  # those made from others' results come last
        try:
            _run_one(one, folder, Inputs(data), quick=quick, force=force)
        except (FileError, MissingExtraError) as err:
            if len(chosen) == 1:
                raise
            click.echo(f"skipped: {err}", err=True)
            skipped.append(one.id)
    if skipped:
        raise click.ClickException(f"{len(skipped)} of {len(chosen)} experiments were skipped: {', '.join(skipped)}")


def _run_one(one: Experiment, folder: Path, inputs: Any, *, quick: bool, force: bool) -> None:
    from spinney.report.picture import save_figure
    from spinney_paper.experiments.framework import finished, partial_file, run_experiment

    def say(line: str) -> None:
        click.echo(line, err=True)

    click.secho(f"{one.id}: {one.title}", bold=True)
    results = None if force else finished(one, folder, is_quick=quick)
    if results is not None:
        click.echo("  finished before; drawn again")
    else:
        if force:
            one.check_inputs(inputs, is_quick=quick)  # what cannot run throws nothing away
            partial_file(one, folder, is_quick=quick).unlink(missing_ok=True)
        try:
            results = run_experiment(one, folder, inputs=inputs, is_quick=quick, say=say)
        except KeyboardInterrupt:
            say(f"\nfinished tasks of {one.id} are kept in {str(folder)!r}; run the same command again to continue")
            raise
    save_figure(one.draw(results), folder / f"{one.id}.svg", overwrite=True)
    click.echo(f"\n{one.table(results)}\n\n{one.verdict(results)}\n")
    for ending in ("json", "svg"):
        click.echo(f"wrote {folder / f'{one.id}.{ending}'}")
    click.echo()
