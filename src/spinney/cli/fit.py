"""`spinney fit`: spend epsilon on a table, once, and keep the release."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.sample import PLACEMENTS
from spinney.cli.verb import FILE, TABLE, Verb, check_output, force_option, json_option, warn_of_brands
from spinney.errors import ParameterError

if TYPE_CHECKING:
    from spinney.privacy.ledger import Ledger
    from spinney.release.card import Card
    from spinney.schema.table import Schema
    from spinney.synthesizers.base import Synthesizer

_TREE_ONLY = (
    "rule",
    "fixed_depth",
    "max_depth",
    "largest_edge",
    "smallest_edge",
    "cutoff",
    "moments",
    "focus",
    "tree_share",
    "axes",
)
_GRID_ONLY = ("bins", "bin_width")

# Options that are parameters of a synthesizer. Numbers stay text up to the library, which reads them exactly.
_PARAMETERS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--method",
        type=click.Choice(["tree", "grid"]),
        default="tree",
        show_default=True,
        help="tree: bins follow the data (KDTreeSynthesizer). grid: equal bins (GridSynthesizer).",
    ),
    click.option(
        "--unit",
        type=click.Choice(["replace-one", "add-remove"]),
        help="What one person may change; with add-remove the number of rows is private. Default: replace-one.",
    ),
    click.option(
        "--rule", type=click.Choice(["privtree", "paper"]), help="Tree: how splits are decided. Default: privtree."
    ),
    click.option("--fixed-depth", type=int, metavar="N", help="Tree: levels that split whatever the data."),
    click.option("--max-depth", type=int, metavar="N", help="Tree: depth at which splitting ends."),
    click.option(
        "--largest-edge", metavar="NUMBER", help="Tree: the largest edge a bin may have; instead of --fixed-depth."
    ),
    click.option(
        "--smallest-edge", metavar="NUMBER", help="Tree: the edge at which splitting ends; instead of --max-depth."
    ),
    click.option("--cutoff", metavar="NUMBER", help="Tree: split where the noisy score is above this."),
    click.option(
        "--moments/--no-moments",
        default=None,
        help="Tree: leaves release the means of their rows too, or counts alone. Default: up to eight columns.",
    ),
    click.option(
        "--focus",
        type=click.Choice(["density", "small areas"]),
        help="Tree with moments: what it shall show best, the table as a whole or little boxes. Default: density.",
    ),
    click.option(
        "--tree-share", metavar="SHARE", help="Tree: the part of epsilon for split decisions, between 0 and 1."
    ),
    click.option(
        "--axes",
        type=click.Choice(["boxes", "cube"]),
        help="Tree: each column on its own scale, or all edges as long as the longest. Default: boxes.",
    ),
    click.option(
        "--bins",
        multiple=True,
        metavar="[NAME=]NUMBER",
        help="Grid: bins per column, or one such option for each column.",
    ),
    click.option(
        "--bin-width",
        multiple=True,
        metavar="[NAME=]NUMBER",
        help="Grid: width of a bin, or one such option for each column.",
    ),
    click.option("--threshold", metavar="NUMBER", help="Bins whose noisy count is below this are not released."),
    click.option(
        "--placement",
        type=click.Choice(PLACEMENTS),
        help="Where sampled rows lie in their leaf. Default: fitted with moments, tilted without.",
    ),
    click.option(
        "--bounds-share", metavar="SHARE", help='The part of epsilon that pays for bounds = "private". Default: 0.1.'
    ),
    click.option(
        "--assumed-rows", type=int, metavar="N", help="A public guess of the number of rows, for --unit add-remove."
    ),
)


def _with_parameters(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_PARAMETERS):
        command = option(command)
    return command


@click.command(
    cls=Verb,
    examples=(
        "spinney fit people.csv --schema schema.toml --epsilon 1 --out people.spinney",
        "spinney fit people.csv --schema schema.toml --epsilon 1 --no-moments --threshold 5 --out people.spinney",
        "spinney fit people.parquet --schema schema.toml --epsilon 1/3 --rule paper --out people.spinney",
        "spinney fit people.csv --schema schema.toml --epsilon 1 --method grid --bins 20 --out people.spinney",
        "spinney fit people.csv --schema schema.toml --epsilon 1 --out people.spinney --ledger people.ledger",
        "zcat people.csv.gz | spinney fit - --schema schema.toml --epsilon 0.5 --out people.spinney --json",
    ),
)
@click.argument("table", type=TABLE)
@click.option(
    "--schema", "schema_path", type=FILE, required=True, metavar="FILE", help="The TOML file that says what is public."
)
@click.option("--epsilon", required=True, metavar="NUMBER", help="The whole budget, exactly: 1, 0.1 or 1/3.")
@click.option("--out", required=True, metavar="FILE", help="The release file to write.")
@click.option(
    "--ledger", "ledger_path", type=FILE, metavar="FILE", help="Charge this ledger, and stop if it has too little left."
)
@_with_parameters
@click.option(
    "--bounds-from-data-not-private",
    is_flag=True,
    help="Read bounds that the schema leaves out off the table. VOIDS THE GUARANTEE: for research on public data.",
)
@force_option
@json_option
def fit(
    table: str,
    schema_path: str,
    epsilon: str,
    out: str,
    ledger_path: str | None,
    method: str,
    bounds_from_data_not_private: bool,
    force: bool,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Spend epsilon on TABLE and write the release.

    TABLE is a CSV or Parquet file, or - for CSV on standard input. The output is checked before the table is read, and
    appears whole or not at all. Rows are drawn later by `spinney sample`, at no cost.
    """
    ledger = None if ledger_path is None else _open_ledger(ledger_path, parameters)
    synthesizer = make_synthesizer(method, epsilon, parameters)
    if out == "-":
        raise click.UsageError("--out - is not possible for a release, which is no text; name a file")
    check_output(out, force=force, inputs=[path for path in (table, schema_path, ledger_path) if path is not None])
    schema = load_schema(schema_path, bounds_from_data=bounds_from_data_not_private)
    card = fit_file(table, schema, synthesizer, out, force=force, ledger=ledger)
    warn_of_brands(card)
    if card.is_empty:
        click.secho(
            "warning: every noisy count fell below the threshold, so the release is empty", err=True, fg="yellow"
        )
    click.echo(card.to_json() if as_json else f"wrote {out}\n{card.essentials}")


def _open_ledger(path: str, parameters: dict[str, Any]) -> Ledger:
    """The ledger in a file; the unit is the ledger's unless another was asked for."""
    from spinney.privacy.ledger import Ledger

    ledger = Ledger.open(path)
    parameters["unit"] = parameters["unit"] or ledger.unit.value
    return ledger


def fit_file(
    table: str, schema: Schema, synthesizer: Synthesizer, out: str, *, force: bool, ledger: Ledger | None = None
) -> Card:
    """Read a table, fit it and save the release; returns its card."""
    from spinney.cli.tables import read_table
    from spinney.privacy.budget import Unit, parse_epsilon

    if ledger is not None:  # an exhausted account is told before the table is opened
        ledger.require(parse_epsilon(synthesizer.epsilon), unit=Unit.parse(synthesizer.unit))
    synthesizer.fit(read_table(table, schema), schema, ledger=ledger)
    synthesizer.save(out, overwrite=force)
    return synthesizer.card_


def make_synthesizer(method: str, epsilon: str, parameters: dict[str, Any]) -> Synthesizer:
    """The synthesizer that the options describe; what was not given keeps the library's default."""
    from spinney.privacy.budget import parse_epsilon
    from spinney.synthesizers.grid import GridSynthesizer
    from spinney.synthesizers.tree import KDTreeSynthesizer

    given = {name: value for name, value in parameters.items() if value is not None and value != ()}
    for name in _GRID_ONLY if method == "tree" else _TREE_ONLY:
        if name in given:
            other = "grid" if method == "tree" else "tree"
            raise click.UsageError(f"--{name.replace('_', '-')} is an option of --method {other}, not of {method}")
    parse_epsilon(epsilon)  # a wrong budget is refused before anything is read
    for name in _GRID_ONLY:
        if name in given:
            given[name] = _number_or_mapping(given[name], name.replace("_", "-"))
    return (KDTreeSynthesizer if method == "tree" else GridSynthesizer)(epsilon, **given)


def _number_or_mapping(values: tuple[str, ...], option: str) -> str | dict[str, str]:
    """("20",) is one number for all columns; ("x=20", "y=10") is one per column."""
    if len(values) == 1 and "=" not in values[0]:
        return values[0]
    pairs = [value.rpartition("=") for value in values]
    if not all(name for name, _, _ in pairs):
        raise ParameterError(f"--{option} takes one number, or NAME=NUMBER for every column; got {' '.join(values)}")
    return {name: number for name, _, number in pairs}


def load_schema(path: str, *, bounds_from_data: bool) -> Schema:
    """The schema in a file; on request with bounds that it leaves out marked to be read off the data."""
    import tomllib
    from pathlib import Path

    from spinney.schema.columns import COLUMN_TYPES, Bounded
    from spinney.schema.table import Schema

    if not bounds_from_data:
        return Schema.from_file(path)
    try:
        described = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        entries = list(described["columns"].values())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, AttributeError):
        return Schema.from_file(path)  # which says what is wrong
    for entry in entries:
        kind = COLUMN_TYPES.get(str(entry.get("type"))) if isinstance(entry, dict) else None
        if kind is not None and issubclass(kind, Bounded) and not entry.keys() & {"low", "high", "bounds"}:
            entry["bounds"] = "from-data-not-private"
    return Schema.from_dict(described)
