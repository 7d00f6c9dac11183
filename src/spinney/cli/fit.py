"""`spinney fit`: spend epsilon on a table, once, and keep the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from csv import reader as csv_reader
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import click

from spinney.cli.command import (
    FILE,
    TABLE,
    Verb,
    caution,
    check_output,
    csv_options,
    engine_option,
    force_option,
    given_tables,
    json_option,
    ledger_options,
    option,
    options,
    show,
    tables_option,
    take_ledger,
    warn_of_brands,
)
from spinney.cli.sample import PLACEMENTS
from spinney.errors import BudgetError, FileError, ParameterError
from spinney.text import printable

if TYPE_CHECKING:
    from spinney.privacy.accounts.shared import SharedLedger
    from spinney.privacy.ledger import Ledger
    from spinney.release.card import Card
    from spinney.schema.linked import Tables
    from spinney.schema.schema import Schema
    from spinney.synthesizers.method import AnySynthesizer


_PER_COLUMN = ("bins", "bin_width")  # one number, or one for each column

# Options that are parameters of a synthesizer. Numbers stay text up to the library, which reads them exactly.
with_parameters = options(
    option(
        "--method auto|tree|forest|grid|linked",
        "tree: one tree over a few columns of numbers, dates, times or booleans. forest: a model of many and mixed "
        "columns. grid: bins of equal size. linked: persons with all their rows, for a schema that says whose rows "
        "they are. auto: Spinney chooses the method from the schema and the options.",
        default="auto",
    ),
    option(
        "--target NAME",
        "Forest and persons: the column that is to be predicted from the others, such as a label. With --tables, a "
        "column of persons, such as customers.churn.",
    ),
    option(
        "--delta NUMBER",
        "Forest and persons: the failure probability of (epsilon, delta)-differential privacy; 0 is pure epsilon, "
        "with more noise, and not for persons. Default: a tenth of one over the number of rows, at most 1e-6; with "
        "--unit add-remove, of --assumed-rows, or 1e-6.",
    ),
    options(
        option(
            "--unit replace-one|add-remove",
            "The unit of privacy: one row replaced, or one row added or removed; where the schema says whose rows they "
            "are, one person with all their rows. With add-remove the number of rows, or of persons, is private. "
            "Default: replace-one.",
        ),
        option(
            "--assumed-rows N",
            "A public guess of the number of rows, for --unit add-remove. Default: rows are counted with noise, for a "
            "hundredth of epsilon.",
            type=int,
        ),
        option(
            "--assumed-persons N",
            "Linked: a public guess of the number of persons, for --unit add-remove. Default: persons are counted with "
            "noise, for a hundredth of epsilon.",
            type=int,
        ),
        option("--bounds-share SHARE", 'The part of epsilon used to estimate bounds = "private". Default: 0.1.'),
        option(
            "--values-share SHARE",
            'Forest: the part of epsilon and of delta used to find values = "private". Default: 0.1.',
        ),
        option(
            "--utility-share SHARE",
            "The part of the budget that pays for figures of utility, such as 0.02: how far the release is from the "
            "table, with exact noise, so that they may be published. Default: none are measured.",
        ),
        group="Privacy",
    ),
    options(
        option(
            "--quality [fast|high]",
            "Forest and persons: high measures more pairs of columns, and triples; it takes seconds for ten columns "
            "and a minute for a hundred. Default: fast.",
            type=click.Choice(["fast", "high", "best"]),
        ),
        option(
            "--workload NAME,NAME,...",
            "Forest: 1 to 5 columns whose table is measured as stated, without a private choice. May be repeated.",
            multiple=True,
        ),
        option(
            "--analysis FORMULA",
            'Forest: a linear regression such as "hours ~ age + sex", whose sums are measured so that its coefficients '
            "have intervals that hold. May be repeated. `spinney ask` prints them.",
            name="analyses",
            multiple=True,
        ),
        option(
            "--analyses-share SHARE",
            "Forest: the part of the budget that the sums of --analysis get, if there are any. Default: 0.25.",
        ),
        option(
            "--prior FILE",
            "Forest: a public table of the same columns, or an earlier release, which is used where private choices "
            "say that it helps. It must be public: the guarantee does not cover it.",
            type=FILE,
        ),
        option(
            "--relations [find|stated]",
            "Forest: find looks privately for columns that are equal, or fixed parts of each other, in many rows, with "
            "two hundredths of the budget; stated keeps those alone that the schema states. Default: find.",
            type=click.Choice(["find", "stated"]),
        ),
        group="Forests and persons",
    ),
    options(
        option(
            "--rule privtree|paper",
            "Tree: how splits are decided; paper is the tree of the paper's Algorithms 2 and 3. Default: privtree.",
        ),
        option("--max-depth N", "Tree: the depth at which splitting stops; h' in the paper.", type=int),
        option(
            "--fixed-depth N",
            "Tree, --rule paper: h, the number of levels that always split, whatever the data.",
            type=int,
        ),
        option(
            "--smallest-edge NUMBER",
            "Tree, --rule paper: s2, the edge length at which splitting stops; instead of --max-depth.",
        ),
        option(
            "--largest-edge NUMBER",
            "Tree, --rule paper: s1, the longest edge that a bin may have; instead of --fixed-depth.",
        ),
        option("--cutoff NUMBER", "Tree, --rule paper: tau; a node splits if its noisy count is above this."),
        option(
            "--axes boxes|cube",
            "Tree, --rule paper: boxes scales each column to its own bounds; cube makes all edges as long as the "
            "longest. Default: boxes.",
        ),
        option("--tree-share SHARE", "Tree: the part of epsilon for split decisions, between 0 and 1."),
        option(
            "--moments/--no-moments",
            "Tree: leaves release the means of their rows as well as counts, or counts alone. Default: means too, for "
            "up to eight columns.",
            default=None,
        ),
        option(
            "--focus density|small-areas",
            "Tree with moments: what should be most accurate, the table as a whole or counts in small boxes. Default: "
            "density.",
        ),
        option(
            "--bins [NAME=]NUMBER",
            "Grid: the number of bins of every column, or, with NAME=, of one column. May be repeated.",
            multiple=True,
        ),
        option(
            "--bin-width [NAME=]NUMBER",
            "Grid: the width of a bin, or, with NAME=, of one column. May be repeated.",
            multiple=True,
        ),
        option(
            "--threshold NUMBER", "Tree, grid: bins whose noisy count is below this are not released; t in the paper."
        ),
        option(
            f"--placement {PLACEMENTS}",
            "Tree, grid: where sampled rows lie in their leaf. Default: fitted with moments, tilted without.",
        ),
        group="Trees and grids",
    ),
)


@click.command(cls=Verb)
@click.argument("table", type=TABLE, required=False)
@option("--schema FILE", "The TOML file that states what is public.", name="schema_path", type=FILE)
@tables_option
@option("--epsilon NUMBER", "The total privacy budget, as an exact number such as 1, 0.1 or 1/3.", required=True)
@option("--out FILE", "The release file to write.", required=True)
@ledger_options
@force_option
@json_option
@with_parameters
@options(
    engine_option,
    option(
        "--bounds-from-data-not-private",
        "Take bounds that the schema leaves out from the data. VOIDS THE GUARANTEE: for research on public data.",
    ),
    group="Reading the table",
)
@csv_options
def fit(
    table: str | None,
    schema_path: str | None,
    tables_path: str | None,
    epsilon: str,
    out: str,
    engine: str | None,
    method: str,
    bounds_from_data_not_private: bool,
    force: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Spend epsilon on TABLE, or on linked tables, and write the release.

    TABLE is a CSV or Parquet file, a folder or a quoted pattern of such files, or - for CSV on standard input. Files
    are read batch by batch. The output is checked before the table is read, and is written whole or not at all.
    `spinney sample` draws rows from it later, at no cost.

    Spinney chooses the method from the schema. A table of up to eight columns of measurements (coordinates, scores,
    small whole numbers), times or booleans gets a tree, which gives pure epsilon-differential privacy. A table with
    amounts, dates, categories, identifiers, rules, a target or more columns gets a forest, which gives (epsilon,
    delta)-differential privacy, or pure with --delta 0.

    A schema that says whose rows they are, with a table [person], gets a model of persons: the guarantee is for a
    person with all their rows, however many. Several tables about the same persons are fitted together: --tables names
    a file that says where they are, what is public about them, and which rows belong to whom. Their rows are held in
    memory.

    Examples:
        spinney fit people.csv --schema schema.toml --epsilon 1 --out people.spinney
        spinney fit adult.csv --schema adult.toml --target income --epsilon 1 --out adult.spinney
        spinney fit people.csv --schema schema.toml --epsilon 1 --method forest --delta 0 --out people.spinney
        spinney fit people.csv --schema schema.toml --epsilon 1 --workload age,sex,region --out people.spinney
        spinney fit people.csv --schema schema.toml --epsilon 1 --utility-share 0.02 --out people.spinney
        spinney fit people.csv --schema schema.toml --epsilon 0.1 --prior last-year.csv --out people.spinney
        spinney fit people.csv --schema schema.toml --epsilon 1 --no-moments --threshold 5 --out
            people.spinney
        spinney fit people.parquet --schema schema.toml --epsilon 1/3 --rule paper --out people.spinney
        spinney fit 'trips/*.parquet' --schema trips.toml --epsilon 1 --out trips.spinney
        spinney fit people.csv --schema schema.toml --epsilon 1 --method grid --bins 20 --out people.spinney
        spinney fit people.csv --schema schema.toml --epsilon 1 --out people.spinney --ledger people.ledger
        spinney fit people.csv --schema schema.toml --epsilon 0.5 --out people.spinney --ledger
            postgresql://db/ledger --population patients --table visits --purpose 'annual report' --request 12
        spinney fit people.csv --schema schema.toml --delimiter ';' --decimal , --date-format %d/%m/%Y
            --epsilon 1 --out people.spinney
        zcat people.csv.gz | spinney fit - --schema schema.toml --epsilon 0.5 --out people.spinney --json
        spinney fit --tables shop.toml --epsilon 1 --target customers.churn --out shop.spinney
    """
    from spinney.privacy.budget import parse_delta, parse_epsilon
    from spinney.schema.linked import Tables
    from spinney.synthesizers.method import choose, make

    parse_epsilon(epsilon)  # a wrong budget is refused before anything is read
    parse_delta(parameters["delta"] or 0)
    private = given_tables(table, schema_path, tables_path, parameters, bounds_from_data=bounds_from_data_not_private)
    ledger = take_ledger(parameters)
    takes_unit = bool(ledger) and parameters["unit"] is None
    if ledger:  # the unit is the ledger's unless another was asked for
        parameters["unit"] = parameters["unit"] or ledger.unit.of_rows.value
    if out == "-":
        raise click.UsageError("--out - is not possible, because a release is a binary file; name a file")
    paths = [] if engine == "spark" else private.files
    charged = str(ledger.path) if ledger and ledger.path else None
    others = [path for path in (charged, parameters["prior"], schema_path, tables_path) if path is not None]
    check_output(out, force=force, inputs=[*paths, *others, *private.schemas])
    prior = parameters["prior"]
    if prior is not None and Path(prior).resolve() in [Path(path).resolve() for path in paths]:
        raise click.UsageError("--prior is the private table itself; a prior is public, so name another or none")
    schema = private.stated()
    given = given_parameters(parameters)
    choice = choose(schema, given, method=method, spelt=as_option)
    synthesizer = make(choice.method, epsilon, given)
    if not as_json:
        click.echo(f"method {choice.method}: {choice.reason}")
        if ledger and takes_unit:
            click.echo(printable(f"unit {parameters['unit']}: that of the ledger {ledger.address}"))
    card = fit_file(private.frames, schema, synthesizer, out, force=force, ledger=ledger, engine=engine)
    warn_of_brands(card)
    if card.is_empty:
        caution("every noisy count fell below the threshold, so the release is empty", "warning")
    if as_json:
        show(card, as_json=True, **({"ledger": _on_record(ledger)} if ledger else {}))
        return
    click.echo(f"wrote {out}\n{card.essentials}")
    if ledger:
        click.echo(printable(f"  ledger      charged to {ledger.address}; write down its head: {ledger.head}"))
    if not isinstance(schema, Tables):
        _tell_what_was_found(schema, card)


def _tell_what_was_found(schema: Schema, card: Card) -> None:
    """Lists of values and bounds that the schema leaves to a fit."""
    for name in schema._columns_awaiting_values:
        found = card.schema[name]
        n_found = f"{len(found.listed) - 1:,} found privately; all others count as {getattr(found, 'other', None)!r}"
        click.echo(printable(f"  values      {name}: {n_found}"))
    for name in schema._columns_awaiting_bounds("private"):
        moved = "estimated privately; values outside are moved to the nearest bound"
        click.echo(printable(f"  bounds      {name}: {card.schema[name]!r}, {moved}"))


def _on_record(ledger: SharedLedger) -> dict[str, Any]:
    """Where the release was charged, and the head of that ledger afterwards."""
    return {"address": ledger.address, "population": ledger.population, "head": ledger.head}


def fit_file(
    table: Any,
    schema: Schema | Tables,
    synthesizer: AnySynthesizer,
    out: str,
    *,
    force: bool,
    ledger: Ledger | Literal[False] = False,
    engine: str | None = None,
) -> Card:
    """Fit a table, or linked ones by name, and save the release; returns its card.

    `table` is a path, or a function that gives what the library takes. What comes through a pipe is held in memory.
    """
    from spinney.cli.tables import given_table
    from spinney.synthesizers.paying import kept

    if ledger:
        _require(ledger, synthesizer)
    if engine == "spark":
        start_spark()
    frame = table() if callable(table) else given_table(table)
    model: Any = synthesizer  # which takes tables where tables were given
    with _room_for(out):
        model.fit(frame, schema, ledger=ledger, engine=engine)
    with kept(synthesizer, out, ledger or None):
        synthesizer.save(out, overwrite=force)
    return synthesizer.card_


def _room_for(out: str) -> IO[bytes]:
    """Room for a file that is to be written; a usage error where there is none."""
    from spinney.synthesizers.paying import reserved

    try:
        return reserved(out)
    except FileError as err:
        raise click.UsageError(str(err)) from err


def start_spark() -> None:
    """A Spark session for the library to find, as spark-submit or the environment configures it."""
    from spinney.machine import load_optional

    session = load_optional("pyspark.sql", "--engine spark", otherwise="leave --engine out").SparkSession
    session.builder.appName("spinney").getOrCreate()


def _require(ledger: Ledger, synthesizer: AnySynthesizer) -> None:
    """Tell of an account that has too little left, before the table is opened."""
    from fractions import Fraction

    epsilon, unit, delta, _ = synthesizer._terms()  # delta None: chosen by the number of rows, which is not known yet
    ledger.require(epsilon, unit=unit)
    if delta != 0 and ledger.delta_limit == 0:
        remedy = "have a delta allowed (spinney ledger raise LEDGER --delta NUMBER --why TEXT)"
        if unit.is_person:
            raise BudgetError(f"a model of persons needs a delta, and the ledger allows none; {remedy}")
        raise BudgetError(
            f"a forest needs a delta, and the ledger allows none; use --delta 0 for pure epsilon, or {remedy}"
        )
    ledger.require(epsilon, unit=unit, delta=delta or Fraction(0))


def given_parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given, as the library takes them."""
    parameters: dict[str, Any] = {
        name: _number_or_mapping(value, name.replace("_", "-")) if name in _PER_COLUMN else value
        for name, value in options.items()
        if value is not None and value != ()
    }
    if "workload" in parameters:
        parameters["workload"] = tables_of(parameters["workload"])
    if "analyses" in parameters:
        parameters["analyses"] = list(parameters["analyses"])
    return parameters


def as_option(name: str, value: str | None = None) -> str:
    """A parameter as it is written on the command line."""
    option = f"--{name.replace('_', '-')}"
    return option if value is None else f"{option} {value}"


def tables_of(workload: Sequence[str]) -> list[tuple[str, ...]]:
    """The tables of --workload: names with commas between them, quoted as in a CSV file where they hold one."""
    return [tuple(name.strip() for name in names) for names in csv_reader(workload, skipinitialspace=True)]


def _number_or_mapping(values: tuple[str, ...], option: str) -> str | dict[str, str]:
    """("20",) is one number for all columns; ("x=20", "y=10") is one per column."""
    if len(values) == 1 and "=" not in values[0]:
        return values[0]
    pairs = [value.rpartition("=") for value in values]
    if not all(name for name, _, _ in pairs):
        raise ParameterError(f"--{option} takes one number, or NAME=NUMBER for every column; got {' '.join(values)}")
    return {name: number for name, _, number in pairs}
