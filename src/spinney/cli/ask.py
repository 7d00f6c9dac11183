"""`spinney ask`: answers with error bars from a release, at no cost, and a second opinion that is paid for.

The options of a purchase, and every file that is written, are checked before anything is read or charged. An
answer that was paid for and cannot be written is part of the error message, because buying it again is charged
again.

    answers      answers as a table for people, data for programs, and a table for files
    for people   the layout of the table
    ask          the verb, its checks, and the purchase
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from spinney.cli.command import (
    FILE,
    LEDGER,
    TABLE,
    Verb,
    check_output,
    csv_options,
    json_option,
    message,
    take_csv,
    warn_of_brands,
)
from spinney.release.answers.answer import Answer, Answers, decimals, shown_label, shown_level, shown_number
from spinney.text import aligned, json_text, printable

if TYPE_CHECKING:
    import pyarrow as pa

    from spinney.errors import ParameterError
    from spinney.release.answers.grammar import ParsedQuestion
    from spinney.release.release import Release


# -------------------------------------------------------------------------------------------------------------- answers
# Answers as `spinney ask` prints them: a table for people, plain data for programs, and a table for files.
#
#     mean(income) by region where age in 30..40
#       region   estimate        95 % interval   statement
#       North      41,210   40,180 to 42,240     certified [1]
#       South      38,050                   -    not supported [2]
#
#       [1] ...
#
# What a statement rests on is told once, below the table, however many cells share it.


class Asked(NamedTuple):
    """A question, and what a release says: one answer, those of a table's cells, or None where it gives none."""

    question: ParsedQuestion
    answers: Answer | Answers | None
    refusal: str = ""  # why there is none

    @property
    def by(self) -> list[str]:
        """What the cells of a table stand for: columns, or the coefficients of a regression."""
        return list(self.answers.by if isinstance(self.answers, Answers) else self.question.by)

    @property
    def cells(self) -> list[tuple[tuple[str, ...], Answer]]:
        """Every answer with the values that its cell stands for."""
        if self.answers is None:
            return []
        if isinstance(self.answers, Answer):
            return [((), self.answers)]
        labels = [tuple(map(shown_label, label)) for label in self.answers.labels]
        return list(zip(labels, self.answers, strict=True))


def shown(asked: Sequence[Asked], bought: Answer | None = None) -> str:
    """All answers for people, one block a question; what was bought beside what the release says."""
    return "\n\n".join(_block(one, bought) for one in asked)


def described(asked: Sequence[Asked], bought: Answer | None = None) -> dict[str, Any]:
    """All answers as plain data for JSON."""
    answers = [{"question": one.question.text} | _described(one) for one in asked]
    return {"answers": answers} | ({} if bought is None else {"bought": bought.to_dict() | {"digest": bought.digest}})


def answer_table(asked: Sequence[Asked], bought: Answer | None = None, *, is_text: bool = False) -> pa.Table:
    """All answers as a table, a line each: question, source, the columns of `by`, then the fields of the answer.

    With `is_text` what is not printable is escaped, since text may end on a terminal.
    """
    import pyarrow as pa

    groups = list(dict.fromkeys(name for one in asked for name in one.by))
    lines = [
        {"question": one.question.text, "source": "release"} | dict(zip(one.by, label, strict=True)) | _fields(answer)
        for one in asked
        for label, answer in one.cells
    ]
    if bought is not None:
        lines.append({"question": asked[0].question.text, "source": "bought"} | _fields(bought))
    text, number = pa.string(), pa.float64()
    kinds = {"question": text, "source": text} | dict.fromkeys(groups, text)
    kinds |= dict.fromkeys(("estimate", "low", "high", "level"), number) | dict.fromkeys(
        ("of", "statement", "why"), text
    )
    if is_text:
        lines = [
            {name: printable(value) if isinstance(value, str) else value for name, value in line.items()}
            for line in lines
        ]
    columns = {name: pa.array([line.get(name) for line in lines], kind) for name, kind in kinds.items()}
    return pa.table({printable(name) if is_text else name: column for name, column in columns.items()})


def _fields(answer: Answer) -> dict[str, Any]:
    return {name: value for name, value in answer.to_dict().items() if name != "asked"}


def _described(one: Asked) -> dict[str, Any]:
    answers = one.answers
    if answers is None:
        return {"answer": None, "refusal": one.refusal}
    if isinstance(answers, Answer):
        return {"answer": answers.to_dict()}
    return {"by": list(answers.by), "simultaneous": answers.simultaneous, "cells": answers.to_dict()}


# ----------------------------------------------------------------------------------------------------------- for people
# The table of one question as lines of text, with every reason stated once below it.


def _block(one: Asked, bought: Answer | None) -> str:
    cells = one.cells
    heads = one.by
    if bought is not None:
        heads = ["source"]
        cells = [*((("release",), answer) for _, answer in cells), (("bought",), bought)]
    notes: dict[str, int] = {}
    whose = " of the population" if cells[0][1].of == "population" else ""
    held = " at once" if isinstance(one.answers, Answers) and one.answers.simultaneous else ""
    rows = [[*heads, "estimate", f"{shown_level(cells[0][1].level)} interval{held}{whose}", "statement"]]
    for label, answer in cells:
        number = notes.setdefault(answer.why, len(notes) + 1)
        rows.append([*label, *_numbers(answer), f"{answer.statement} [{number}]"])
    lines = aligned(rows, right=range(len(heads), len(rows[0]) - 1), gap="   ")
    lines += ["", *(f"[{number}] {why}" for why, number in notes.items())]
    lines += [f"the release gives no answer: {one.refusal}"] if one.refusal else []
    return "\n".join([one.question.text, *(f"  {line}".rstrip() for line in lines)])


def _numbers(answer: Answer) -> list[str]:
    if answer.low is None or answer.high is None:
        return [shown_number(answer.estimate), "none"]
    digits = decimals(answer.low, answer.high)
    estimate, low, high = (shown_number(number, digits) for number in (answer.estimate, answer.low, answer.high))
    return [estimate, f"{low} to {high}"]


# ------------------------------------------------------------------------------------------------------------------ ask
# The verb: questions, options of a purchase, and where the answers go.


@click.command(
    cls=Verb,
    examples=(
        'spinney ask people.spinney "count where age in 30..40 and sex = Male"',
        'spinney ask people.spinney "mean(income) by region where age in 30..40"',
        'spinney ask people.spinney "table by sex, education" --simultaneous --picture table.svg',
        'spinney ask people.spinney "count by age (0..17, 18..64, 65..99), sex"',
        'spinney ask people.spinney "median(age)" "quantile(income, 0.9) where region in (North, South)" --json',
        'spinney ask people.spinney "proportion where income > 50000 given sex = Female" --level 0.99 --population',
        'spinney ask people.spinney "count by region" --certified --out counts.csv',
        'spinney ask people.spinney "regression hours ~ age + sex" --population --picture coefficients.svg',
        'spinney ask shop.spinney "mean(customers.age) where transactions.# >= 5" "count by customers.region"',
        'spinney ask people.spinney "mean(income) where age < 30" --buy 0.05 --table people.csv --ledger people.ledger',
    ),
)
@click.argument("release", type=FILE)
@click.argument("questions", nargs=-1, required=True, metavar="QUESTION...")
@click.option(
    "--level",
    type=float,
    metavar="NUMBER",
    default=0.95,
    show_default=True,
    help="The probability that an interval holds with.",
)
@click.option(
    "--population",
    is_flag=True,
    help="Answer for the population that the rows are a random sample of, instead of the table.",
)
@click.option("--certified", is_flag=True, help="Give certified intervals only, or an error where there is none.")
@click.option("--force", is_flag=True, help="Give an interval also where the release does not support one.")
@click.option("--simultaneous", is_flag=True, help="Widen the intervals of a table so that all of them hold at once.")
@click.option(
    "--out", metavar="FILE", help="Write the answers to a .csv or .parquet file, or - for CSV on standard output."
)
@click.option("--picture", metavar="FILE", help="Draw the answers with error bars into an .svg or .png file.")
@click.option("--overwrite", is_flag=True, help="Overwrite the files of --out and --picture if they exist.")
@click.option(
    "--buy",
    metavar="EPSILON",
    help="Pay this epsilon for a direct answer from the private table; needs --table and --ledger, and one question.",
)
@click.option("--table", type=TABLE, metavar="TABLE", help="The private table that was released, for --buy.")
@click.option(
    "--ledger",
    "ledger_path",
    type=LEDGER,
    metavar="LEDGER",
    help="The ledger that --buy charges, a file or postgresql://host/name. Default: the one that SPINNEY_LEDGER names.",
)
@click.option(
    "--engine",
    type=click.Choice(["polars", "duckdb", "spark", "memory"]),
    help="The library that reads Parquet files for --buy, as for fit.",
)
@csv_options
@json_option
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
    buy: str | None,
    table: str | None,
    ledger_path: str | None,
    engine: str | None,
    as_json: bool,
    **parameters: Any,
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
    """
    from spinney.release.answers.question import check_level
    from spinney.release.file import load

    check_level(level)
    _check_purchase(questions, buy, table, ledger_path)
    if as_json and out == "-":
        raise click.UsageError("--json and --out - both write to standard output; leave one out")
    inputs = [release, *(path for path in (table, ledger_path) if path is not None and os.path.exists(path))]
    _check_files(inputs, out, picture, overwrite=overwrite)
    loaded = load(release)
    if buy is not None and loaded.protects_persons:
        raise click.UsageError("--buy answers questions about rows, and this release is of persons; leave it out")
    warn_of_brands(loaded.card)
    truth = "population" if population else "table"
    options = {
        "level": level,
        "of": truth,
        "statement": "certified" if certified else "auto",
        "force": force,
    }
    asked, refused = _asked_all(loaded, questions, options, simultaneous=simultaneous, may_refuse=buy is not None)
    bought = None
    if buy is not None:
        assert table is not None
        bought = _bought(loaded, asked[0].question, buy, table, ledger_path, level, truth, engine, parameters)
    with _keeping(bought, buy, ledger_path):
        # What was paid for is shown before a file can fail to be written.
        if as_json:
            files = {name: path for name, path in (("out", out), ("picture", picture)) if path is not None}
            rest = {"refused": {text: str(err) for text, err in refused.items()}} if refused else files
            click.echo(json_text(described(asked, bought) | rest))
        elif out != "-" and asked:
            click.echo(printable(shown(asked, bought), keep="\n"))
        if out == "-" or (out is not None and not refused):
            from spinney.cli.tables import write_table
            from spinney.tables.paths import is_parquet

            is_text = not is_parquet(out)
            write_table(answer_table(asked, bought, is_text=is_text), out, overwrite=overwrite)
        if refused:
            raise _refusal(refused, len(questions), [path for path in (out, picture) if path not in (None, "-")])
        if picture is not None:
            from spinney.report.pictures import answers_figure, save_figure

            figure = answers_figure(loaded, [(one.question.text, one.answers) for one in asked], bought)
            save_figure(figure, picture, overwrite=overwrite)
        if not as_json and out != "-":
            for path in (out, picture):
                if path is not None:
                    click.echo(f"wrote {path}")


def _refusal(refused: Mapping[str, ParameterError], n_asked: int, files: Sequence[str | None]) -> ParameterError:
    """The error of questions that were refused, once the answers to the others are printed."""
    from spinney.errors import ParameterError

    many = f"{len(refused)} of {n_asked} questions {'was' if len(refused) == 1 else 'were'} refused"
    unwritten = f", and nothing was written to {' or '.join(map(repr, files))}" if files else ""
    return ParameterError("\n".join([f"{many}{unwritten}:", *(f"{text!r}: {err}" for text, err in refused.items())]))


@contextmanager
def _keeping(bought: Answer | None, epsilon: str | None, ledger: str | None) -> Iterator[None]:
    """Where an answer that was paid for cannot be written, the error holds it, and says what it cost."""
    from spinney.errors import FileError
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
        for option, value in (("--table", table), ("--ledger", ledger)):
            if value is not None:
                raise click.UsageError(f"{option} is for --buy, which pays for an answer; leave it out")
        return
    parse_epsilon(buy, "--buy")
    if table is None or (ledger is None and default_place() is None):
        raise click.UsageError("--buy needs --table, the private table, and --ledger, the account that pays")
    if len(questions) != 1:
        raise click.UsageError("--buy pays for one question at a time; ask one, and the others by themselves")


def _check_files(inputs: list[str], out: str | None, picture: str | None, *, overwrite: bool) -> None:
    """Raise, before anything is read or charged, where a file cannot be written, or is one that is read."""
    if out is not None and out != "-":
        from spinney.cli.tables import check_table_name

        check_table_name(out, "--out")
        check_output(out, force=overwrite, inputs=inputs)
    if picture is not None:
        from spinney.machine import load_optional
        from spinney.report.pictures import check_picture_name

        check_picture_name(picture)
        load_optional("matplotlib.figure", "a picture")
        check_output(picture, force=overwrite, inputs=inputs)


def _asked_all(
    release: Release,
    questions: Sequence[str],
    options: dict[str, Any],
    *,
    simultaneous: bool,
    may_refuse: bool,
) -> tuple[list[Asked], dict[str, ParameterError]]:
    """What the release says to all questions, and why some of several are refused; a single one is refused here."""
    from spinney.errors import ParameterError
    from spinney.release.answers.grammar import parse_question

    asked: list[Asked] = []
    refused: dict[str, ParameterError] = {}
    for text in questions:
        try:
            question = parse_question(text, release.asked_schema)
            asked.append(_asked(release, question, options, simultaneous=simultaneous, may_refuse=may_refuse))
        except ParameterError as err:
            if len(questions) == 1:
                raise
            refused[text] = err
    return asked, refused


def _asked(
    release: Release, question: ParsedQuestion, options: dict[str, Any], *, simultaneous: bool, may_refuse: bool
) -> Asked:
    """What the release says; where an answer is bought beside it, it may also refuse to answer."""
    from spinney.errors import ParameterError
    from spinney.release.answers.ask import answers_to

    try:
        return Asked(question, answers_to(release, question, options, simultaneous=simultaneous))
    except ParameterError as err:
        if not may_refuse:
            raise
        return Asked(question, None, str(err))


def _bought(
    release: Release,
    question: ParsedQuestion,
    epsilon: str,
    table: str,
    ledger: str | None,
    level: float,
    of: str,
    engine: str | None,
    parameters: dict[str, Any],
) -> Answer:
    """The answer that was paid for."""
    from spinney.cli.fit import start_spark
    from spinney.cli.tables import given_table
    from spinney.synthesizers.buy import buy_answer

    frame = given_table(table, take_csv(table, parameters))
    if engine == "spark":
        start_spark()
    return buy_answer(release, question.text, frame, epsilon=epsilon, ledger=ledger, level=level, of=of, engine=engine)
