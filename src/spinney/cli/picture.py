"""`spinney picture`: the noisy partition of two columns, or the map of a place."""

from __future__ import annotations

import click

from spinney.cli.command import FILE, Verb, check_output, force_option, warn_of_brands


@click.command(
    cls=Verb,
    examples=(
        "spinney picture town.spinney --out partition.svg",
        "spinney picture people.spinney --columns age,income --out partition.png",
        "spinney picture trips.spinney --columns pickup_lon,pickup_lat --out map.png",
        "spinney picture people.spinney --columns '\"income, yearly\",age' --out partition.png",
    ),
)
@click.argument("release", type=FILE)
@click.option("--out", required=True, metavar="FILE", help="An .svg or .png file.")
@click.option(
    "--columns",
    metavar="X,Y",
    help="Two columns; required if the release has more than two, unless it has one place. Put a name that contains a "
    "comma in double quotes.",
)
@force_option
def picture(release: str, out: str, columns: str | None, force: bool) -> None:
    """Draw the noisy partition of RELEASE.

    Bins are drawn as rectangles, shaded by their noisy density. If the release has more than two columns, --columns
    names two of them, and the densities of bins that overlap add up. Of a forest, a place is drawn as a map; --columns
    names its columns if there are several. Longitude and latitude are drawn as long as they are on the ground. The
    picture uses only what was released. It needs matplotlib: pip install matplotlib.
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
