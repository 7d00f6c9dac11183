"""`spinney warm-up`: compile everything ahead of the first run, and print where the compiled code is cached."""

from __future__ import annotations

import json

import click

from spinney.cli.command import Verb, json_option


@click.command(
    "warm-up",
    cls=Verb,
    examples=(
        "spinney warm-up",
        "NUMBA_CACHE_DIR=/opt/spinney-cache spinney warm-up",
        "spinney warm-up --json",
    ),
)
@json_option
def warm_up(as_json: bool) -> None:
    """Compile Spinney's loops ahead of the first fit.

    The first fit, sample or comparison on a machine compiles the loops that it needs, which takes up to a minute in
    all. This command compiles all of them on made-up tables, and prints where the compiled code is cached: beside the
    sources of Spinney, in the folder NUMBA_CACHE_DIR, or in the user's cache. A second run has nothing to do. The
    command fails if no such folder can be written to. Run it when you build a container.
    """
    from spinney.warming import warm_up as compile_all

    warmth = compile_all()
    click.echo(json.dumps(warmth.to_dict()) if as_json else str(warmth))
