"""`spinney card`: the guarantee of a release, and what it cost."""

from __future__ import annotations

import click

from spinney.cli.command import FILE, Verb, json_option
from spinney.shown import json_text


@click.command(
    cls=Verb,
    examples=(
        "spinney card people.spinney",
        "spinney card people.spinney --json | jq .epsilon",
        "spinney card people.spinney --error-bars",
    ),
)
@click.argument("release", type=FILE)
@json_option
@click.option("--error-bars", is_flag=True, help="Also show how far columns and pairs may be off.")
def card(release: str, as_json: bool, error_bars: bool) -> None:
    """Show the card of RELEASE: its guarantee and what it cost.

    The card lists the guarantee, the charges, the plan and the columns. If the guarantee is void, because bounds were
    taken from the data or the noise was seeded, the card says so first. With --error-bars it goes on with every
    column's distribution and with pairs of columns, each with what kind of statement its interval is. These use only
    what was released and cost nothing; a forest of many columns takes some seconds.
    """
    from spinney.release.storage import load

    loaded = load(release)
    bars = loaded.error_bars() if error_bars else None
    if as_json:
        described = loaded.card.to_dict() | ({} if bars is None else {"error_bars": bars.to_dict()})
        click.echo(json_text(described))
        return
    click.echo(str(loaded.card))
    if bars is not None:
        click.echo(f"\n{bars}")
