"""`spinney card`: the guarantee of a release, and what it cost."""

from __future__ import annotations

import click

from spinney.cli.command import FILE, Verb, json_option


@click.command(
    cls=Verb,
    examples=(
        "spinney card people.spinney",
        "spinney card people.spinney --json | jq .epsilon",
    ),
)
@click.argument("release", type=FILE)
@json_option
def card(release: str, as_json: bool) -> None:
    """Show the card of RELEASE: its guarantee and what it cost.

    The card lists the guarantee, the charges, the plan and the columns. If the guarantee is void, because bounds were
    taken from the data or the noise was seeded, the card says so first.
    """
    from spinney.release.storage import load

    loaded = load(release).card
    click.echo(loaded.to_json() if as_json else str(loaded))
