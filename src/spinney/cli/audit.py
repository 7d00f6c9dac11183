"""`spinney audit`: distinguishing games against our own mechanisms, bounds beside claims, and attacks on rows."""

from __future__ import annotations

from typing import Any

import click

from spinney.cli.command import FILE, TABLE, Verb, check_output, force_option, json_option
from spinney.cli.csv_options import csv_options, take_csv
from spinney.cli.exit import COULD_NOT_TELL, FAILED
from spinney.shown import json_text, printable


@click.command(
    cls=Verb,
    examples=(
        "spinney audit",
        "spinney audit people.spinney --seconds 60",
        "spinney audit --family tables --family decisions --out audit.html",
        "spinney audit --black-box --json",
        "spinney audit --attacks people.csv --schema schema.toml --anonymeter attacks/bin/python",
    ),
)
@click.argument("release", type=FILE, required=False)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 86_400),
    metavar="N",
    default=120,
    show_default=True,
    help="About how long to play.",
)
@click.option(
    "--family",
    "families",
    multiple=True,
    metavar="NAME",
    help="Play games of this family only, such as counts, decisions, tables, selections, vectors or 'whole forest'; "
    "may be given several times. A wrong name lists all.",
)
@click.option("--black-box", is_flag=True, help="Look at rows drawn from whole releases, not at their noisy numbers.")
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Processes beside each other; by default 2.",
    default=None,
)
@click.option("--out", metavar="FILE", help="Write the result as one HTML page too.")
@click.option(
    "--attacks",
    "attacked",
    type=TABLE,
    metavar="TABLE",
    help="Attack rows that are made from half of this private table instead. For its holder only.",
)
@click.option("--schema", "schema_path", type=FILE, metavar="FILE", help="With --attacks: what the columns are.")
@click.option(
    "--control",
    type=TABLE,
    metavar="TABLE",
    help="With --attacks: rows of other people; by default half of the table.",
)
@click.option("--epsilon", metavar="EPSILON", help="With --attacks: the budget of the fit.  [default: 1]")
@click.option(
    "--anonymeter", metavar="PYTHON", help="With --attacks: a Python that has anonymeter, in an environment of its own."
)
@click.option("--ledger", type=FILE, metavar="FILE", help="With --attacks: an account of the table to charge.")
@force_option
@csv_options
@json_option
@click.pass_context
def audit(
    ctx: click.Context,
    /,
    release: str | None,
    seconds: float,
    families: tuple[str, ...],
    black_box: bool,
    workers: int | None,
    out: str | None,
    attacked: str | None,
    schema_path: str | None,
    control: str | None,
    epsilon: str | None,
    ledger: str | None,
    anonymeter: str | None,
    force: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Test on this machine how much Spinney's mechanisms leak, at least.

    Runs the real mechanisms on two neighbouring tables, again and again, guesses which of them it was, and prints a
    lower bound of epsilon (or of mu, for parts of a composed charge) beside what is charged. All tables are made up:
    no private table is read and no budget is spent. With RELEASE, the parts have the numbers of its charges.

    With RELEASE, a game of the whole comes first: fits of made-up tables by its method, at its epsilon and delta. Every
    line says which leak the game could have missed. A game that could have missed a leak of four times its claim is
    called too short to tell, and has not passed.

    Exits with status 1 if a bound exceeds its claim, twice in a row: a game that is won is played again. That happens
    to sound mechanisms in fewer than one audit of 400. Exits with status 3 if no game could tell anything, and if
    RELEASE was charged nothing, so that there is none.

    With --attacks, something else is done, for the holder of a private table only: half of the table is fitted, and
    rows drawn from that release are attacked by anonymeter, as if to find out who is in the table. Do not publish the
    result. It is computed from private rows without noise.
    """
    if attacked is not None:
        attack_options = {"epsilon": 1 if epsilon is None else epsilon, "ledger": ledger, "anonymeter": anonymeter}
        _attack(attacked, schema_path, control, attack_options, as_json=as_json, parameters=parameters)
        return
    given = {"--schema": schema_path, "--control": control, "--epsilon": epsilon, "--ledger": ledger}
    given["--anonymeter"] = anonymeter
    for option in (name for name, value in given.items() if value is not None):
        raise click.UsageError(f"{option} goes with --attacks TABLE; an audit of mechanisms reads no table")
    if out is not None:
        check_output(out, force=force, inputs=[] if release is None else [release])
    from spinney.auditing.audit import audit as play

    result = play(release, seconds=seconds, families=families or None, black_box=black_box, workers=workers)
    if out is not None:
        from spinney.files import write_whole

        page = result.to_html().encode()
        write_whole(out, lambda file: file.write(page), overwrite=force)
    click.echo(json_text(result.to_dict()) if as_json else printable(str(result), keep="\n"))
    if result.failures:
        click.secho("error: ", err=True, nl=False, fg="red")
        click.echo("a lower bound exceeds its claim: more leaks than is charged; do not publish releases", err=True)
        ctx.exit(FAILED)
    if not result.passed:
        click.secho("error: ", err=True, nl=False, fg="red")
        remedy = "give more --seconds" if result.verdicts else "the release was charged nothing, so there is none"
        click.echo(f"no game could tell anything, so nothing has passed; {remedy}", err=True)
        ctx.exit(COULD_NOT_TELL)


def _attack(
    table: str,
    schema_path: str | None,
    control: str | None,
    attack_options: dict[str, Any],
    *,
    as_json: bool,
    parameters: dict[str, Any],
) -> None:
    if schema_path is None:
        raise click.UsageError("--attacks needs --schema FILE, which says what the columns are")
    from spinney.auditing.attacks import attack
    from spinney.cli.tables import read_table
    from spinney.schema.table import Schema

    csv = take_csv(table, parameters)
    schema = Schema.from_file(schema_path)
    private = read_table(table, schema, csv)
    others = None if control is None else read_table(control, schema, csv)
    result = attack(private, schema, control=others, **attack_options)
    click.secho(
        "For the holder of the private table only: do not publish these figures.", err=True, fg="red", bold=True
    )
    click.echo(json_text(result.to_dict()) if as_json else printable(str(result), keep="\n"))
