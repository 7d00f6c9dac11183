"""The command itself: the verbs in the order of their use, and one way out for every error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from spinney.cli.ask import ask
from spinney.cli.command import WRONG_CALL, exit_status, option, report, told_warnings
from spinney.cli.fit import fit
from spinney.cli.ledger import ledger
from spinney.cli.other import audit, demo, paper, studio, warm_up
from spinney.cli.prepare import check, plan, schema
from spinney.cli.sample import sample
from spinney.cli.show import card, compare, explain, picture
from spinney.cli.show import report as report_verb
from spinney.cli.verify import keygen, sign, verify
from spinney.text import WIDTH


class App(click.Group):
    """A group that reports every error through `command.report`, and lists its verbs in the order given."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(self.commands)

    def main(  # type: ignore[override]  # always exits, whatever `standalone_mode` says
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run a command line and exit."""
        arguments = list(sys.argv[1:] if args is None else args)
        try:
            with told_warnings():
                status = super().main(arguments, prog_name or "spinney", **extra | {"standalone_mode": False})
        except (Exception, KeyboardInterrupt) as err:
            report(err, arguments)
            sys.exit(exit_status(err))
        sys.exit(status or 0)


def _show_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:  # noqa: ARG001  # click's signature
    if wanted and not ctx.resilient_parsing:
        from spinney.files import full_version

        click.echo(f"spinney {full_version()}")
        ctx.exit()


@click.group(
    cls=App,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDTH},
)
@option("--version", "Show the version and exit.", is_eager=True, expose_value=False, callback=_show_version)
@click.pass_context
def app(ctx: click.Context) -> None:
    """Turn a private table into a differentially private synthetic one.

    \b
    spinney schema   write a template of what you must state about the table
    spinney check    list everything that is wrong with the schema or the table
    spinney plan     say what epsilon would buy, without reading the table
    spinney fit      spend epsilon, once, and write a release
    spinney sample   draw rows from the release, as often as you like
    spinney ask      ask the release questions; answers come with error bars

    `spinney studio` does all of it in a browser, on this machine.
    `spinney demo` shows all of it on a made-up town. `spinney warm-up` compiles Spinney's loops ahead of the first fit.
    """  # noqa: D301  # click reads the backspace as "do not re-wrap"
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(WRONG_CALL)


for verb in (
    schema,
    check,
    plan,
    fit,
    sample,
    ask,
    card,
    verify,
    sign,
    keygen,
    explain,
    picture,
    report_verb,
    compare,
    audit,
    ledger,
    studio,
    demo,
    warm_up,
    paper,
):
    app.add_command(verb)


def main() -> NoReturn:
    """Run the `spinney` command."""
    app.main()
