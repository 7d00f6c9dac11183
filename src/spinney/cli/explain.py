"""`spinney explain`: what a forest, or a model of persons, measured, and how its budget was spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from spinney.cli.command import FILE, Verb, check_output, force_option, json_option
from spinney.shown import json_text

if TYPE_CHECKING:
    from spinney.forest.release.explain import Explanation
    from spinney.people.release.explain import PeopleExplanation


@click.command(
    cls=Verb,
    examples=(
        "spinney explain people.spinney",
        "spinney explain people.spinney --picture graph.svg",
        "spinney explain people.spinney --json | jq '.cliques[0]'",
        "spinney explain people.spinney --error-bars",
        "spinney explain shop.spinney --json | jq '.rows[0].columns'",
    ),
)
@click.argument("release", type=FILE)
@json_option
@click.option("--picture", metavar="FILE", help="Draw the columns and their dependences into an .svg or .png file.")
@click.option(
    "--error-bars",
    is_flag=True,
    help="Also show how far columns and pairs may be off; `spinney card` does so for every kind of release, and "
    "`spinney picture` draws it.",
)
@force_option
def explain(release: str, as_json: bool, picture: str | None, error_bars: bool, force: bool) -> None:
    """Explain RELEASE, a forest of many columns or a model of persons.

    The page shows which structure was chosen and why no richer one, how the budget was spent, how each column was
    divided, and which columns were counted together, the most dependent first. It uses only what was released and costs
    nothing. A picture needs matplotlib: pip install matplotlib.

    Of persons the page shows how many there are, how alike two rows of a person are, column by column, which columns
    have a hidden level, and what rows depend on. The picture shows the columns of persons.
    """
    from spinney.forest.release.explain import explain as explain_forest
    from spinney.people.release.model import PeopleRelease
    from spinney.release.storage import load

    if picture is not None:
        from spinney.report.picture import check_picture_name

        check_picture_name(picture)
        check_output(picture, force=force, inputs=[release])
    loaded = load(release)
    explanation: Explanation | PeopleExplanation
    if isinstance(loaded, PeopleRelease):
        explanation = loaded.explain(error_bars=error_bars)
    else:
        explanation = explain_forest(loaded, error_bars=error_bars)
    if picture is not None:
        from spinney.report.graph import graph_figure
        from spinney.report.picture import save_figure

        save_figure(
            graph_figure(loaded.persons if isinstance(loaded, PeopleRelease) else loaded), picture, overwrite=force
        )
    if as_json:
        described = explanation.to_dict() | ({} if picture is None else {"picture": picture})
        click.echo(json_text(described))
        return
    click.echo(str(explanation))
    if picture is not None:
        click.echo(f"wrote {picture}")
