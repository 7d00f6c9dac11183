"""The verbs beside the way from table to release: `audit`, `demo`, `paper`, `studio` and `warm-up`.

Each is a thin verb over a package or room of its own. `audit`, `paper` and `studio` run the applications beside
the product, which are imported on use.

    audit     distinguishing games against the mechanisms, and attacks on rows
    demo      the whole way from a private table to a synthetic one, on a made-up town
    paper     the figures and tables of the paper
    studio    the way from table to release in a browser, on this machine
    warm up   compile the loops ahead of the first run
"""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.command import (
    COULD_NOT_TELL,
    FAILED,
    FILE,
    LEDGER,
    TABLE,
    Verb,
    alarm,
    check_output,
    csv_options,
    force_option,
    json_option,
    option,
    say_error,
    show,
    take_csv,
)

if TYPE_CHECKING:
    from spinney.demo_data import Points


# ---------------------------------------------------------------------------------------------------------------- audit
# `spinney audit`: distinguishing games against our own mechanisms, bounds beside claims, and attacks on rows.


@click.command(cls=Verb)
@click.argument("release", type=FILE, required=False)
@option("--seconds N", "About how long to play.", type=click.FloatRange(1, 86400), default=120)
@option(
    "--family NAME",
    "Play games of this family only, such as counts, decisions, tables, selections, vectors or 'whole forest'; "
    "may be given several times. A wrong name lists all.",
    name="families",
    multiple=True,
)
@option("--black-box", "Look at rows drawn from whole releases, not at their noisy numbers.")
@option("--workers N", "Processes beside each other; by default 2.", type=click.IntRange(1, 64))
@option("--out FILE", "Write the result as one HTML page too.")
@option(
    "--attacks TABLE",
    "Attack rows that are made from half of this private table instead. For its holder only.",
    name="attacked",
    type=TABLE,
)
@option("--schema FILE", "With --attacks: what the columns are.", name="schema_path", type=FILE)
@option("--control TABLE", "With --attacks: rows of other people; by default half of the table.", type=TABLE)
@option("--epsilon EPSILON", "With --attacks: the budget of the fit.  [default: 1]")
@option("--anonymeter PYTHON", "With --attacks: a Python that has anonymeter, in an environment of its own.")
@option("--ledger FILE", "With --attacks: an account of the table to charge.", type=FILE)
@force_option
@csv_options
@json_option
@click.pass_context
def audit(
    ctx: click.Context,
    /,
    release: str | None,
    seconds: float,
    families: tuple[str, ...],
    black_box: bool,
    workers: int | None,
    out: str | None,
    attacked: str | None,
    schema_path: str | None,
    control: str | None,
    epsilon: str | None,
    ledger: str | None,
    anonymeter: str | None,
    force: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Test on this machine how much Spinney's mechanisms leak, at least.

    Runs the real mechanisms on two neighbouring tables, again and again, guesses which of them it was, and prints a
    lower bound of epsilon (or of mu, for parts of a composed charge) beside what is charged. All tables are made up:
    no private table is read and no budget is spent. With RELEASE, the parts have the numbers of its charges.

    With RELEASE, a game of the whole comes first: fits of made-up tables by its method, at its epsilon and delta. Every
    line says which leak the game could have missed. A game that could have missed a leak of four times its claim is
    called too short to tell, and has not passed.

    Exits with status 1 if a bound exceeds its claim, twice in a row: a game that is won is played again. That happens
    to sound mechanisms in fewer than one audit of 400. Exits with status 3 if no game could tell anything, and if
    RELEASE was charged nothing, so that there is none.

    With --attacks, something else is done, for the holder of a private table only: half of the table is fitted, and
    rows drawn from that release are attacked by anonymeter, as if to find out who is in the table. Do not publish the
    result. It is computed from private rows without noise.

    Examples:
        spinney audit
        spinney audit people.spinney --seconds 60
        spinney audit --family tables --family decisions --out audit.html
        spinney audit --black-box --json
        spinney audit --attacks people.csv --schema schema.toml --anonymeter attacks/bin/python
    """
    if attacked is not None:
        attack_options = {"epsilon": 1 if epsilon is None else epsilon, "ledger": ledger, "anonymeter": anonymeter}
        _attack(attacked, schema_path, control, attack_options, as_json=as_json, parameters=parameters)
        return
    given = {"--schema": schema_path, "--control": control, "--epsilon": epsilon, "--ledger": ledger}
    given["--anonymeter"] = anonymeter
    for name in (name for name, value in given.items() if value is not None):
        raise click.UsageError(f"{name} goes with --attacks TABLE; an audit of mechanisms reads no table")
    if out is not None:
        check_output(out, force=force, inputs=[] if release is None else [release])
    from spinney_audit.audit import audit as play

    result = play(release, seconds=seconds, families=families or None, black_box=black_box, workers=workers)
    if out is not None:
        from spinney.files import write_whole

        write_whole(out, result.to_html(), overwrite=force)
    show(result, as_json=as_json)
    if result.failures:
        say_error("a lower bound exceeds its claim: more leaks than is charged; do not publish releases")
        ctx.exit(FAILED)
    if not result.passed:
        remedy = "give more --seconds" if result.verdicts else "the release was charged nothing, so there is none"
        say_error(f"no game could tell anything, so nothing has passed; {remedy}")
        ctx.exit(COULD_NOT_TELL)


def _attack(
    table: str,
    schema_path: str | None,
    control: str | None,
    attack_options: dict[str, Any],
    *,
    as_json: bool,
    parameters: dict[str, Any],
) -> None:
    if schema_path is None:
        raise click.UsageError("--attacks needs --schema FILE, which says what the columns are")
    from spinney.cli.tables import read_table
    from spinney.schema.schema import Schema
    from spinney_audit.attacks import attack

    csv = take_csv(table, parameters)
    schema = Schema.from_file(schema_path)
    private = read_table(table, schema, csv)
    others = None if control is None else read_table(control, schema, csv)
    result = attack(private, schema, control=others, **attack_options)
    alarm("For the holder of the private table only: do not publish these figures.")
    show(result, as_json=as_json)


# ----------------------------------------------------------------------------------------------------------------- demo
# `spinney demo`: the whole way from a private table to a synthetic one, on a made-up town.
#
# Everything is made in a hidden folder and moved to its place at the end, so an interrupted demo leaves nothing
# behind.


FILES = ("town.csv", "schema.toml", "town.spinney", "synthetic.parquet", "town.png")


@click.command(cls=Verb)
@option("--out FOLDER", "The folder for the demo's files.", default="spinney-demo", type=click.Path(file_okay=False))
@option("--force", "Overwrite the demo's files where they exist.")
def demo(out: str, force: bool) -> None:
    """Publish a synthetic map of a made-up town, with a picture.

    Writes the private table, its schema, the release, the synthetic rows and a picture of all three.

    Examples:
        spinney demo
        spinney demo --out /tmp/town --force
    """
    folder = check_folder(out)
    for name in FILES:
        if (folder / name).exists() and not force:
            raise click.UsageError(
                f"{str(folder / name)!r} exists; choose another --out, or say --force to overwrite the demo's files"
            )
    beside = folder if folder.exists() else folder.parent
    with tempfile.TemporaryDirectory(prefix=".spinney-demo.", dir=beside) as scratch:
        _make(Path(scratch), folder)
        folder.mkdir(exist_ok=True)
        for name in FILES:
            if (Path(scratch) / name).exists():
                os.replace(Path(scratch) / name, folder / name)


def check_folder(path: str) -> Path:
    """A folder that is there or can be made; a usage error where nothing can be written to it."""
    folder = Path(path)
    if not folder.parent.is_dir():
        raise click.UsageError(f"the folder {str(folder.parent)!r} does not exist; make it first")
    if not os.access(folder if folder.exists() else folder.parent, os.W_OK):
        raise click.UsageError(f"the folder {str(folder)!r} cannot be written to")
    return folder


def _make(scratch: Path, folder: Path) -> None:
    import numpy as np
    import pyarrow as pa

    from spinney.cli.fit import fit_file
    from spinney.cli.sample import Drawing, sample_file
    from spinney.cli.tables import read_table, write_table
    from spinney.demo_data import make_town, town_schema
    from spinney.release.file import load
    from spinney.synthesizers.tree import KDTreeSynthesizer

    town, schema = make_town(), town_schema()
    here = {name: str(scratch / name) for name in FILES}
    there = {name: shlex.quote(str(folder / name)) for name in FILES}
    write_table(pa.table({"x": town[:, 0], "y": town[:, 1]}), here["town.csv"], overwrite=True)
    schema.to_file(here["schema.toml"])
    click.echo(f"{there['town.csv']}: where {len(town):,} people of a made-up town live. Pretend that it is private.")
    click.echo(f"{there['schema.toml']}: what is public about it. The map is ten kilometres square.\n")

    _show_call("fit", there["town.csv"], "--schema", there["schema.toml"], "--epsilon 1 --out", there["town.spinney"])
    card = fit_file(here["town.csv"], schema, KDTreeSynthesizer(epsilon="1"), here["town.spinney"], force=True)
    click.echo(f"wrote {there['town.spinney']}\n{card.essentials}\n")

    _show_call("sample", there["town.spinney"], f"--rows {len(town)} --out", there["synthetic.parquet"])
    sample_file(here["town.spinney"], here["synthetic.parquet"], Drawing(len(town)), force=True)
    click.echo(f"wrote {len(town):,} synthetic rows to {there['synthetic.parquet']}\n")

    _show_call("card", there["town.spinney"])
    release = load(here["town.spinney"])
    click.echo(f"{release.card}\n")

    drawn = read_table(here["synthetic.parquet"], schema)
    synthetic = np.column_stack([drawn["x"].to_numpy(), drawn["y"].to_numpy()])
    _compare(town, synthetic)
    _draw(release, town, synthetic, here["town.png"], there["town.png"])


def _show_call(*words: str) -> None:
    click.secho(f"$ spinney {' '.join(words)}", bold=True)


def _compare(town: Points, synthetic: Points) -> None:
    """Shares of rows by district. Printing the true ones spends no budget only because the town is made up."""
    from spinney.demo_data import district_shares

    click.echo("Real and synthetic rows compared. The true shares may be shown only because the town is made up:\n")
    click.echo(f"  {'share of rows in':<18} {'true':>7} {'synthetic':>10}")
    true_shares, noisy_shares = district_shares(town), district_shares(synthetic)
    for name, share in true_shares.items():
        click.echo(f"  {name:<18} {share:>7.1%} {noisy_shares[name]:>10.1%}")


def _draw(release: Any, town: Points, synthetic: Points, path: str, shown: str) -> None:
    from spinney.errors import MissingExtraError
    from spinney.report.pictures import comparison_figure, save_figure

    try:
        save_figure(comparison_figure(release, town, synthetic), path, overwrite=True)
    except MissingExtraError as err:
        click.echo(f"\nNo picture was drawn: {err}")
        return
    click.echo(f"\n{shown}: private rows, noisy partition, synthetic rows side by side")


# ---------------------------------------------------------------------------------------------------------------- paper
# `spinney paper`: compute and draw the figures and tables of the paper.


@click.command(cls=Verb)
@click.argument("experiment", required=False)
@option("--list", "List the experiments and stop.", name="wants_list")
@option("--quick", "Seconds instead of minutes: smaller data, fewer repetitions.")
@option(
    "--out FOLDER",
    "The folder for results (.json) and pictures (.svg).",
    default="spinney-paper",
    type=click.Path(file_okay=False),
)
@option(
    "--data FOLDER",
    "The folder with creditcard.parquet or creditcard.csv, for the experiments on fraud; without it, the table "
    "is fetched from OpenML.",
    type=click.Path(exists=True, file_okay=False),
)
@option("--force", "Start again, and replace results that were made with other parameters.")
def paper(experiment: str | None, wants_list: bool, quick: bool, out: str, data: str | None, force: bool) -> None:
    """Compute and draw a figure or table of the paper.

    EXPERIMENT is an id that --list shows, or all. Results are written as they come: an interrupted run continues
    where it stopped, and finished results are only drawn again. The noise is seeded, so that figures can be repeated;
    the data are made up or public. Needs matplotlib and, for some experiments, more: pip install '.[paper]' in a
    checkout.

    Examples:
        spinney paper --list
        spinney paper fig-size --quick
        spinney paper fig-size
        spinney paper all --data data/ --out results/
    """
    from spinney_paper.experiments.catalogue import IDS, run_all
    from spinney_paper.experiments.catalogue import experiment as named

    if wants_list:
        for one in map(named, IDS):
            click.echo(f"{one.id:<20} {one.title}" + (" [--data, or a download]" if one.needs_fraud else ""))
        return
    if experiment is None:
        raise click.UsageError(f"name an experiment, or all: {', '.join(IDS)}")
    chosen = [named(one) for one in (IDS if experiment == "all" else [experiment])]
    folder = check_folder(out)
    folder.mkdir(exist_ok=True)
    run_all(chosen, folder, data=None if data is None else Path(data), quick=quick, force=force)


# --------------------------------------------------------------------------------------------------------------- studio
# `spinney studio`: the whole way from a table to a release in a browser, on this machine alone.


@click.command(cls=Verb)
@option(
    "--root FOLDER",
    "The folder whose tables can be opened; nothing outside of it can be. Default: the current folder.",
    type=click.Path(exists=True, file_okay=False),
    default=".",
    show_default=False,
)
@option(
    "--workspace FOLDER",
    "Where drafts, jobs and releases are kept. Default: spinney-studio in the folder of --root.",
    type=click.Path(file_okay=False),
)
@option(
    "--port NUMBER",
    "The port on this machine. Default: a free one.",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=False,
)
@option("--no-browser", "Open no browser; print the link only.")
@option(
    "--ledger LEDGER",
    "The ledger that is offered first, a file or postgresql://host/name. Default: the one that SPINNEY_LEDGER "
    "names, if any.",
    type=LEDGER,
)
def studio(root: str, workspace: str | None, port: int, no_browser: bool, ledger: str | None) -> None:
    """Publish a table in a browser, on this machine.

    Choose a table, state what is public about it, see what an epsilon buys, confirm the charge, and look at the
    release: its report, its synthetic rows, and the ledger that paid for it. No Python is needed, and `Try it with a
    made-up town` needs no table either.

    The studio can be reached from this machine only. It opens with a link that works once, and talks to no other
    machine. Everything is kept in the workspace: after an interruption, start it again and go on.

    Examples:
        spinney studio
        spinney studio --root ~/tables --ledger people.ledger
        spinney studio --port 8765 --no-browser
        spinney studio --root /data/register --workspace ~/register-studio
    """
    from spinney.machine import load_optional

    for module in ("starlette", "uvicorn", "jinja2", "python_multipart"):
        load_optional(module, "the studio", extra="studio")
    from spinney.privacy.accounts.shared import default_place
    from spinney_studio.server import serve
    from spinney_studio.workspace import Root, Workspace

    try:
        serve(
            Workspace(Root(root), workspace),
            port=port,
            ledger=ledger or default_place(),
            opens_browser=not no_browser,
            say=click.echo,
        )
    except KeyboardInterrupt:  # which is how it is ended
        click.echo("The studio has ended. What is in its workspace is kept, and a fit that has begun goes on.")


# -------------------------------------------------------------------------------------------------------------- warm up
# `spinney warm-up`: compile everything ahead of the first run, and print where the compiled code is cached.


@click.command("warm-up", cls=Verb)
@json_option
def warm_up(as_json: bool) -> None:
    """Compile Spinney's loops ahead of the first fit.

    The first fit, sample or comparison on a machine compiles the loops that it needs, which takes up to a minute in
    all. This command compiles all of them on made-up tables, and prints where the compiled code is cached: beside the
    sources of Spinney, in the folder NUMBA_CACHE_DIR, or in the user's cache. A second run has nothing to do. The
    command fails if no such folder can be written to. Run it when you build a container.

    Examples:
        spinney warm-up
        NUMBA_CACHE_DIR=/opt/spinney-cache spinney warm-up
        spinney warm-up --json
    """
    from spinney.warm_up import warm_up as compile_all

    warmth = compile_all()
    show(warmth, as_json=as_json)
