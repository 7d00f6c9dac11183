"""`spinney demo`: the whole way from a private table to a synthetic one, on a made-up town.

Everything is made in a hidden folder and moved to its place at the end, so an interrupted demo leaves nothing behind.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.command import Verb

if TYPE_CHECKING:
    from spinney.demo_data import Points

FILES = ("town.csv", "schema.toml", "town.spinney", "synthetic.parquet", "town.png")


@click.command(cls=Verb, examples=("spinney demo", "spinney demo --out /tmp/town --force"))
@click.option(
    "--out",
    default="spinney-demo",
    show_default=True,
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="The folder for the demo's files.",
)
@click.option("--force", is_flag=True, help="Overwrite the demo's files where they exist.")
def demo(out: str, force: bool) -> None:
    """Publish a synthetic map of a made-up town, with a picture.

    Writes the private table, its schema, the release, the synthetic rows and a picture of all three.
    """
    folder = Path(out)
    _check_folder(folder, force=force)
    beside = folder if folder.exists() else folder.parent
    with tempfile.TemporaryDirectory(prefix=".spinney-demo.", dir=beside) as scratch:
        _make(Path(scratch), folder)
        folder.mkdir(exist_ok=True)
        for name in FILES:
            if (Path(scratch) / name).exists():
                os.replace(Path(scratch) / name, folder / name)


def _check_folder(folder: Path, *, force: bool) -> None:
    if not folder.parent.is_dir():
        raise click.UsageError(f"the folder {str(folder.parent)!r} does not exist; make it first")
    if not os.access(folder if folder.exists() else folder.parent, os.W_OK):
        raise click.UsageError(f"the folder {str(folder)!r} cannot be written to")
    for name in FILES:
        if (folder / name).exists() and not force:
            raise click.UsageError(
                f"{str(folder / name)!r} exists; choose another --out, or say --force to overwrite the demo's files"
            )


def _make(scratch: Path, folder: Path) -> None:
    import pyarrow as pa

    from spinney.cli.fit import fit_file
    from spinney.cli.sample import sample_file
    from spinney.cli.tables import read_table, write_table
    from spinney.demo_data import make_town, town_schema
    from spinney.release.storage import load
    from spinney.synthesizers.tree import KDTreeSynthesizer

    town, schema = make_town(), town_schema()
    here = {name: str(scratch / name) for name in FILES}
    there = {name: shlex.quote(str(folder / name)) for name in FILES}
    write_table(pa.table({"x": town[:, 0], "y": town[:, 1]}), here["town.csv"], overwrite=True)
    schema.to_file(here["schema.toml"])
    click.echo(f"{there['town.csv']}: where {len(town):,} people of a made-up town live. Pretend that it is private.")
    click.echo(f"{there['schema.toml']}: what is public about it. The map is ten kilometres square.\n")

    _show("fit", there["town.csv"], "--schema", there["schema.toml"], "--epsilon 1 --out", there["town.spinney"])
    card = fit_file(here["town.csv"], schema, KDTreeSynthesizer(epsilon="1"), here["town.spinney"], force=True)
    click.echo(f"wrote {there['town.spinney']}\n{card.essentials}\n")

    _show("sample", there["town.spinney"], f"--rows {len(town)} --out", there["synthetic.parquet"])
    n_rows = sample_file(here["town.spinney"], here["synthetic.parquet"], n_rows=len(town), force=True)
    click.echo(f"wrote {n_rows:,} synthetic rows to {there['synthetic.parquet']}\n")

    _show("card", there["town.spinney"])
    release = load(here["town.spinney"])
    click.echo(f"{release.card}\n")

    synthetic = _points(read_table(here["synthetic.parquet"], schema))
    _compare(town, synthetic)
    _draw(release, town, synthetic, here["town.png"], there["town.png"])


def _show(*words: str) -> None:
    click.secho(f"$ spinney {' '.join(words)}", bold=True)


def _points(table: Any) -> Points:
    import numpy as np

    return np.column_stack([table["x"].to_numpy(), table["y"].to_numpy()])


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
    from spinney.report.picture import comparison_figure, save_figure

    try:
        save_figure(comparison_figure(release, town, synthetic), path, overwrite=True)
    except MissingExtraError as err:
        click.echo(f"\nNo picture was drawn: {err}")
        return
    click.echo(f"\n{shown}: private rows, noisy partition, synthetic rows side by side")
