"""`spinney ask`: answers with error bars from a release, at no cost, and a second opinion that is paid for.

The options of a purchase, and every file that is written, are checked before anything is read or charged. An
answer that was paid for and cannot be written is part of the error message, because buying it again is charged
again. What answers look like stands in `release/answers/asked.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.command import (
    FILE,
    LEDGER,
    TABLE,
    Verb,
    check_output,
    check_picture,
    csv_options,
    engine_option,
    json_option,
    load_release,
    message,
    option,
    options,
    show,
    take_csv,
)
from spinney.errors import FileError, ParameterError

if TYPE_CHECKING:
    from spinney.release.answers.answer import Answer
    from spinney.release.answers.asked import Replies
    from spinney.release.release import Release


@click.command(cls=Verb)
@click.argument("release", type=FILE)
@click.argument("questions", nargs=-1, required=True, metavar="QUESTION...")
@option("--level NUMBER", "The probability that an interval holds with.", type=float, default=0.95)
@option("--population", "Answer for the population that the rows are a random sample of, instead of the table.")
@option("--certified", "Give certified intervals only, or an error where there is none.")
@option("--force", "Give an interval also where the release does not support one.")
@option("--simultaneous", "Widen the intervals of a table so that all of them hold at once.")
@option("--out FILE", "Write the answers to a .csv or .parquet file, or - for CSV on standard output.")
@option("--picture FILE", "Draw the answers with error bars into an .svg or .png file.")
@option("--overwrite", "Overwrite the files of --out and --picture if they exist.")
@json_option
@options(
    option(
        "--buy EPSILON",
        "Pay this epsilon for a direct answer from the private table; needs --table and --ledger, and one question.",
    ),
    option("--table TABLE", "The private table that was released, for --buy.", type=TABLE),
    option(
        "--ledger LEDGER",
        "The ledger that --buy charges, a file or postgresql://host/name. Default: the one that SPINNEY_LEDGER names.",
        name="ledger",
        type=LEDGER,
    ),
    engine_option,
    group="A direct answer from the table",
)
@csv_options
def ask(
    release: str,
    questions: tuple[str, ...],
    level: float,
    population: bool,
    certified: bool,
    force: bool,
    simultaneous: bool,
    out: str | None,
    picture: str | None,
    overwrite: bool,
    as_json: bool,
    **purchase: Any,
) -> None:
    """Ask RELEASE one or more questions; answers come with error bars.

    A QUESTION is count, proportion, mean(COLUMN), median(COLUMN), quantile(COLUMN, SHARE) or table, then `by` and
    columns, then `where` and conditions: age in 30..40, sex = Male, region in (North, South), income > 1000, end =
    null, joined by `and`. A column after `by` may list its cells in brackets: age (0..17, 18..64). A proportion may go
    on with `given` and conditions. Names and values that hold commas or brackets are put in quotes; dates and times are
    in ISO format. `regression` and a formula, hours ~ age + sex, prints the coefficients of a linear regression that
    `spinney fit --analysis` measured.

    Every answer says what kind of statement it is. Certified: the interval holds with the stated probability over the
    noise, whatever the rows are. Calibrated: noise, placement of rows and misfit were measured. Indicative: part of it
    was not measured; read sign and size, do not test hypotheses. Not supported: the release does not know, and gives no
    interval without --force. Answers use only what was released and cost nothing. Where some of several questions are
    refused, the others are answered, and the exit status is 2; files are then not written.

    A release of persons answers about persons: by columns of theirs, such as customers.age, and by the number of their
    rows, transactions.# (# where there is one table). Questions about rows are refused.

    --buy pays for a direct answer to a count, a proportion or a mean, with exact noise on the private table, and prints
    it beside that of the release. Everything is checked before the ledger is charged. A picture needs matplotlib.

    Examples:
        spinney ask people.spinney "count where age in 30..40 and sex = Male"
        spinney ask people.spinney "mean(income) by region where age in 30..40"
        spinney ask people.spinney "table by sex, education" --simultaneous --picture table.svg
        spinney ask people.spinney "count by age (0..17, 18..64, 65..99), sex"
        spinney ask people.spinney "median(age)" "quantile(income, 0.9) where region in (North, South)" --json
        spinney ask people.spinney "proportion where income > 50000 given sex = Female" --level 0.99
            --population
        spinney ask people.spinney "count by region" --certified --out counts.csv
        spinney ask people.spinney "regression hours ~ age + sex" --population --picture coefficients.svg
        spinney ask shop.spinney "mean(customers.age) where transactions.# >= 5" "count by customers.region"
        spinney ask people.spinney "mean(income) where age < 30" --buy 0.05 --table people.csv --ledger
            people.ledger
    """
    from spinney.release.answers.asked import ask as ask_release
    from spinney.release.answers.question import check_level

    buy, table, ledger = (purchase[name] for name in ("buy", "table", "ledger"))
    check_level(level)
    _check_purchase(questions, buy, table, ledger)
    if as_json and out == "-":
        raise click.UsageError("--json and --out - both write to standard output; leave one out")
    inputs = [release, *(path for path in (table, ledger) if path is not None and os.path.exists(path))]
    if out is not None and out != "-":
        from spinney.cli.tables import check_table_name

        check_table_name(out, "--out")
        check_output(out, force=overwrite, inputs=inputs)
    check_picture(picture, force=overwrite, inputs=inputs)
    loaded = load_release(release)
    if buy is not None and loaded.protects_persons:
        raise click.UsageError("--buy answers questions about rows, and this release is of persons; leave it out")
    about: dict[str, Any] = {"level": level, "of": "population" if population else "table"}
    intervals: dict[str, Any] = {"certified": certified, "force": force, "simultaneous": simultaneous}
    replies = ask_release(loaded, questions, **about, **intervals, may_refuse=buy is not None)
    if buy is not None:
        replies = replies.with_bought(_bought(loaded, replies[0].question, purchase, about))
    with _keeping(replies.bought, buy, ledger):
        _give(loaded, replies, out, picture, overwrite=overwrite, as_json=as_json)


def _give(
    loaded: Release, replies: Replies, out: str | None, picture: str | None, *, overwrite: bool, as_json: bool
) -> None:
    """Print and write the answers; what was paid for is shown before a file can fail to be written."""
    files = {name: path for name, path in (("out", out), ("picture", picture)) if path is not None}
    if as_json:
        show(replies, as_json=True, **({} if replies.refused else files))
    elif out != "-" and replies:
        show(replace(replies, refused={}), as_json=False)  # what was refused is the error
    if out == "-" or (out is not None and not replies.refused):
        from spinney.cli.tables import write_table
        from spinney.tables.paths import is_parquet

        write_table(replies.to_arrow(is_text=not is_parquet(out)), out, overwrite=overwrite)
    if replies.refused:
        raise _refusal(replies, [path for path in files.values() if path != "-"])
    if picture is not None:
        from spinney.report.pictures import answers_figure, save_figure

        figure = answers_figure(loaded, [(reply.question, reply.answer) for reply in replies], replies.bought)
        save_figure(figure, picture, overwrite=overwrite)
    if not as_json and out != "-":
        for path in files.values():
            click.echo(f"wrote {path}")


def _refusal(replies: Replies, files: list[str]) -> ParameterError:
    """The error of questions that were refused, once the answers to the others are printed."""
    refused = replies.refused
    many = f"{len(refused)} of {len(replies) + len(refused)} questions {'was' if len(refused) == 1 else 'were'} refused"
    unwritten = f", and nothing was written to {' or '.join(map(repr, files))}" if files else ""
    return ParameterError("\n".join([f"{many}{unwritten}:", *(f"{text!r}: {why}" for text, why in refused.items())]))


@contextmanager
def _keeping(bought: Answer | None, epsilon: str | None, ledger: str | None) -> Iterator[None]:
    """Where an answer that was paid for cannot be written, the error holds it, and says what it cost."""
    from spinney.privacy.accounts.shared import default_place, store_at

    try:
        yield
    except Exception as err:
        place = ledger or default_place()
        if bought is None or place is None:
            raise
        paid = f"epsilon={epsilon} was charged to {store_at(place).shown}"
        raise FileError(f"{message(err)}; {paid}, and the answer that it bought is: {bought}") from err


def _check_purchase(questions: tuple[str, ...], buy: str | None, table: str | None, ledger: str | None) -> None:
    """Raise a usage error where options of a purchase are missing, or are there without one."""
    from spinney.privacy.accounts.shared import default_place
    from spinney.privacy.budget import parse_epsilon

    if buy is None:
        for name, value in (("--table", table), ("--ledger", ledger)):
            if value is not None:
                raise click.UsageError(f"{name} is for --buy, which pays for an answer; leave it out")
        return
    parse_epsilon(buy, "--buy")
    if table is None or (ledger is None and default_place() is None):
        raise click.UsageError("--buy needs --table, the private table, and --ledger, the account that pays")
    if len(questions) != 1:
        raise click.UsageError("--buy pays for one question at a time; ask one, and the others by themselves")


def _bought(release: Release, question: str, purchase: dict[str, Any], about: Mapping[str, Any]) -> Answer:
    """The answer that was paid for."""
    from spinney.cli.fit import start_spark
    from spinney.cli.tables import given_table
    from spinney.synthesizers.buy import buy_answer

    table, engine, ledger = purchase["table"], purchase["engine"], purchase["ledger"]
    frame = given_table(table, take_csv(table, purchase))
    if engine == "spark":
        start_spark()
    return buy_answer(release, question, frame, epsilon=purchase["buy"], ledger=ledger, engine=engine, **about)
