"""`spinney studio`: the whole way from a table to a release in a browser, on this machine alone."""

from __future__ import annotations

import click

from spinney.cli.command import Verb
from spinney.cli.ledger_options import LEDGER


@click.command(
    cls=Verb,
    examples=(
        "spinney studio",
        "spinney studio --root ~/tables --ledger people.ledger",
        "spinney studio --port 8765 --no-browser",
        "spinney studio --root /data/register --workspace ~/register-studio",
    ),
)
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False),
    default=".",
    metavar="FOLDER",
    help="The folder whose tables can be opened; nothing outside of it can be. Default: the current folder.",
)
@click.option(
    "--workspace",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Where drafts, jobs and releases are kept. Default: spinney-studio in the folder of --root.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="NUMBER",
    help="The port on this machine. Default: a free one.",
)
@click.option("--no-browser", is_flag=True, help="Open no browser; print the link only.")
@click.option(
    "--ledger",
    type=LEDGER,
    metavar="LEDGER",
    help="The ledger that is offered first, a file or postgresql://host/name. Default: the one that SPINNEY_LEDGER "
    "names, if any.",
)
def studio(root: str, workspace: str | None, port: int, no_browser: bool, ledger: str | None) -> None:
    """Publish a table in a browser, on this machine.

    Choose a table, state what is public about it, see what an epsilon buys, confirm the charge, and look at the
    release: its report, its synthetic rows, and the ledger that paid for it. No Python is needed, and `Try it with a
    made-up town` needs no table either.

    The studio can be reached from this machine only. It opens with a link that works once, and talks to no other
    machine. Everything is kept in the workspace: after an interruption, start it again and go on.
    """
    from spinney.extras import load_optional

    for module in ("starlette", "uvicorn", "jinja2", "python_multipart"):
        load_optional(module, "the studio", extra="studio")
    from spinney.privacy.accounts.places import default_place
    from spinney.studio.places import Root
    from spinney.studio.server import serve
    from spinney.studio.workspace import Workspace

    try:
        serve(
            Workspace(Root(root), workspace),
            port=port,
            ledger=ledger or default_place(),
            opens_browser=not no_browser,
            say=click.echo,
        )
    except KeyboardInterrupt:  # which is how it is ended
        click.echo("The studio has ended. What is in its workspace is kept, and a fit that has begun goes on.")
