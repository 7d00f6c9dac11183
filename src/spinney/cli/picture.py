"""`spinney picture`: the noisy partition of two columns, the map of a place, or columns and pairs with error bars."""

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
        "spinney picture people.spinney --error-bars --out bars.png",
    ),
)
@click.argument("release", type=FILE)
@click.option("--out", required=True, metavar="FILE", help="An .svg or .png file.")
@click.option(
    "--columns",
    metavar="X,Y",
    help="Two columns; required if the release has more than two, unless it has one place. With --error-bars, any "
    "number of columns. Put a name that contains a comma in double quotes.",
)
@click.option("--error-bars", is_flag=True, help="Draw columns and pairs with error bars instead.")
@force_option
def picture(release: str, out: str, columns: str | None, error_bars: bool, force: bool) -> None:
    """Draw the noisy partition of RELEASE.

    Bins are drawn as rectangles, shaded by their noisy density. If the release has more than two columns, --columns
    names two of them, and the densities of bins that overlap add up. Of a forest, a place is drawn as a map; --columns
    names its columns if there are several. Longitude and latitude are drawn as long as they are on the ground.

    With --error-bars every column's distribution is drawn with intervals, and a table of pairs is shaded by how far
    their cells may be off; pairs that the release does not support are crossed out.

    The picture uses only what was released. It needs matplotlib: pip install matplotlib.
    """
    from spinney.release.answers.options import csv_fields
    from spinney.release.storage import load
    from spinney.report.picture import check_picture_name, partition_figure, save_figure

    check_picture_name(out)
    check_output(out, force=force, inputs=[release])
    loaded = load(release)
    warn_of_brands(loaded.card)
    chosen = None if columns is None else csv_fields(columns)
    if error_bars:
        from spinney.report.bars import bars_figure

        figure = bars_figure(loaded, loaded.error_bars(chosen))
    else:
        figure = partition_figure(loaded, chosen)
    save_figure(figure, out, overwrite=force)
    click.echo(f"wrote {out}")
