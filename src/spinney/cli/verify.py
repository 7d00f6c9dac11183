"""`spinney verify`: the promise of a release file, worked out again."""

from __future__ import annotations

import click

from spinney.cli.command import FILE, Verb, json_option, warn_of_brands
from spinney.shown import json_text, printable


@click.command(
    cls=Verb,
    examples=(
        "spinney verify people.spinney",
        "spinney verify people.spinney --json | jq .guarantee",
    ),
)
@click.argument("release", type=FILE)
@json_option
def verify(release: str, as_json: bool) -> None:
    """Work out again what RELEASE promises.

    Checks that every number of the file is possible, that its charges cost what the card says they cost, and that
    numbers which stand in the file more than once agree. Says what was checked and which guarantee it arrives at. Ends
    with status 1, and the reason, where the file does not hold what it promises.

    That the noise was really drawn, and that sensitivities are right, stands in no file: trust in whoever made the
    release is not replaced by this check.
    """
    from spinney.release.storage import load
    from spinney.release.verification import verification

    loaded = load(release)
    found = verification(loaded)
    warn_of_brands(loaded.card)
    if as_json:
        described = {
            "guarantee": found.guarantee,
            "is_private": loaded.card.is_private,
            "epsilon": str(loaded.card.epsilon),
            "delta": str(loaded.card.delta),
            "unit": loaded.card.unit,
            "checks": list(found.checks),
        }
        click.echo(json_text(described))
        return
    lines = [
        f"{release}: the card and what was released agree. That the noise was really drawn stands in no file.",
        f"  guarantee   {found.guarantee}",
        "  checked",
    ]
    lines += [f"    {check}" for check in found.checks]
    click.echo("\n".join(printable(line) for line in lines))
