"""`spinney picture`: the noisy partition of two columns."""

from __future__ import annotations

import click

from spinney.cli.command import FILE, Verb, check_output, force_option, warn_of_brands


@click.command(
    cls=Verb,
    examples=(
        "spinney picture town.spinney --out partition.svg",
        "spinney picture people.spinney --columns age,income --out partition.png",
        "spinney picture people.spinney --columns '\"income, yearly\",age' --out partition.png",
    ),
)
@click.argument("release", type=FILE)
@click.option("--out", required=True, metavar="FILE", help="An .svg or .png file.")
@click.option(
    "--columns",
    metavar="X,Y",
    help="Two columns; needed where the release has more than two. A name that holds a comma is quoted, as in a CSV.",
)
@force_option
def picture(release: str, out: str, columns: str | None, force: bool) -> None:
    """Draw the noisy partition of RELEASE.

    Bins are rectangles, shaded by their noisy density. Of more than two columns, two are chosen, and the densities of
    bins that lie over one another add up. Uses only what is released. Needs matplotlib: pip install matplotlib.
    """
    from spinney.cli.conditions import csv_fields
    from spinney.release.storage import load
    from spinney.report.picture import check_picture_name, partition_figure, save_figure

    check_picture_name(out)
    check_output(out, force=force, inputs=[release])
    loaded = load(release)
    warn_of_brands(loaded.card)
    figure = partition_figure(loaded, None if columns is None else csv_fields(columns))
    save_figure(figure, out, overwrite=force)
    click.echo(f"wrote {out}")
