"""`spinney card`: the guarantee of a release, and what it cost; with a ledger, what all releases promise together."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import click

from spinney.cli.command import FILE, Verb, json_option
from spinney.shown import json_text, printable

_WIDTH = 100


@click.command(
    cls=Verb,
    examples=(
        "spinney card people.spinney",
        "spinney card people.spinney --ledger people.ledger",
        "spinney card people.spinney --json | jq .epsilon",
        "spinney card people.spinney --error-bars",
    ),
)
@click.argument("release", type=FILE)
@click.option(
    "--ledger",
    "ledger_path",
    type=FILE,
    metavar="FILE",
    help="The ledger that the release was charged to: say first what all releases on it promise together.",
)
@json_option
@click.option("--error-bars", is_flag=True, help="Also show how far columns and pairs may be off.")
def card(release: str, ledger_path: str | None, as_json: bool, error_bars: bool) -> None:
    """Show the card of RELEASE: its guarantee and what it cost.

    The card lists the guarantee, the charges, the plan and the columns. If the guarantee is void, because bounds were
    taken from the data or the noise was seeded, the card says so first. Its guarantee is of this release alone: other
    releases of the same people add to it. With --ledger the card first says what all releases that were charged to the
    ledger promise together to the people of this one. With --error-bars it goes on with every column's distribution
    and with pairs of columns, each with what kind of statement its interval is. These use only what was released and
    cost nothing; a forest of many columns takes some seconds.
    """
    from spinney.release.in_ledger import find_charge, open_for
    from spinney.release.storage import load
    from spinney.report.promise_part import together_part

    loaded = load(release)
    together = None
    if ledger_path is not None:
        ledger = open_for(ledger_path, loaded)
        together = together_part(loaded.card, ledger, has_this=find_charge(ledger, loaded) is not None)
    bars = loaded.error_bars() if error_bars else None
    if as_json:
        described = loaded.card.to_dict() | ({} if bars is None else {"error_bars": bars.to_dict()})
        click.echo(json_text(({} if together is None else {"together": together}) | described))
        return
    if together is not None:
        click.echo("\n".join([*_together_lines(together), "", "This release alone:"]))
    click.echo(str(loaded.card))
    if bars is not None:
        click.echo(f"\n{bars}")


def _together_lines(together: dict[str, Any]) -> list[str]:
    """What all releases on a ledger promise together, as lines of a card."""
    from spinney.report.promise_part import first_figure

    of = "" if together["population"] is None else f", population {together['population']!r}"
    said = [first_figure(together), *together["in_words"]]
    lines = [line for text in said for line in wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")]
    return [printable(line) for line in [f"All releases on the ledger together{of}:", *lines]]
