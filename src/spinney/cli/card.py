"""`spinney card`: what a release promises and what it cost."""

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
    """Show what RELEASE promises and what it cost.

    The card lists guarantee, charges, plan and columns. A release whose guarantee is void, because
    bounds were read off the data or the noise was seeded, says so first.
    """
    from spinney.release.storage import load

    loaded = load(release).card
    click.echo(loaded.to_json() if as_json else str(loaded))
