"""`spinney verify`: the guarantee of a release file, computed again from its charges."""

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
    """Compute the guarantee of RELEASE again, and compare it with its card.

    Checks that every number in the file is possible, that its charges cost what the card states, and that numbers which
    occur more than once agree. A forest that holds its noisy counts is fitted to them again, which has to give its
    model, and the weights of regressions that were named before the fit are chosen again. Prints what was checked and
    the guarantee that results. Exits with status 1 and a reason if the file contradicts itself.

    No file can prove that the noise was really drawn, or that sensitivities are right: for that you have to trust
    whoever made the release.
    """
    from spinney.errors import FileError
    from spinney.release.contradictions import ContradictionError
    from spinney.release.storage import load
    from spinney.release.verification import verification

    loaded = load(release)
    try:
        found = verification(loaded, refits=True)
    except ContradictionError as err:
        raise FileError(f"{release!r} is a Spinney release with inconsistent contents: {err}") from err
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
        f"{release}: the card and the released numbers agree. No file can prove that the noise was really drawn.",
        f"  guarantee   {found.guarantee}",
        "  checked",
    ]
    lines += [f"    {check}" for check in found.checks]
    click.echo("\n".join(printable(line) for line in lines))
