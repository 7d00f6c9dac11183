"""`spinney report`: one page on a release, for whoever signs it off; beside the real table, for the holder only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.command import FILE, Verb, check_output, force_option, json_option, warn_of_brands
from spinney.cli.csv_options import CSV_NAMES, csv_options, take_csv

if TYPE_CHECKING:
    import pyarrow as pa

    from spinney.release.model import Release
    from spinney.release.reporting import Report
    from spinney.report.contents import ReportContents
    from spinney.schema.table import Schema


_NAMES_USERS = (
    "with --ledger the report names users of the ledger: who charged this release, when and what for. Leave --ledger "
    "out of a page that is to be published"
)
_LEDGER = (
    "The ledger that the release was charged to. The page then names users of the ledger, those who charged this "
    "release; leave it out of a page that is to be published."
)


@click.command(
    cls=Verb,
    examples=(
        "spinney report people.spinney --out report.html",
        "spinney report people.spinney --out report.html --out report.json",
        'spinney report people.spinney --out report.html --title "Admissions 2024" --ledger people.ledger',
        "spinney report people.spinney --json | jq .promise.guess",
        "spinney report people.spinney --out holder-only.html --against people.csv",
        "spinney report shop.spinney --out holder-only.html --against customers=customers.csv --against sales=s.csv",
    ),
)
@click.argument("release", type=FILE)
@click.option("--out", multiple=True, metavar="FILE", help="An .html or .json file. May be repeated, for both.")
@click.option("--ledger", "ledger_path", type=FILE, metavar="FILE", help=_LEDGER)
@click.option("--title", metavar="TEXT", help="What the table is called; shown as the holder states it.")
@click.option("--purpose", metavar="TEXT", help="What the table was collected and is released for.")
@click.option("--contact", metavar="TEXT", help="Whom readers may ask.")
@click.option("--licence", metavar="TEXT", help="Under which terms the synthetic rows may be used.")
@click.option(
    "--against",
    multiple=True,
    metavar="[NAME=]TABLE",
    help="The real table, shown beside the synthetic one: FOR THE HOLDER ONLY, do not publish. Of linked tables, one "
    "option each, with its name.",
)
@click.option(
    "--unseen",
    metavar="TABLE",
    help="With --against: real rows that the release has not seen, to test classifiers of the target on.",
)
@csv_options
@json_option
@force_option
def report(
    release: str,
    out: tuple[str, ...],
    ledger_path: str | None,
    against: tuple[str, ...],
    unseen: str | None,
    as_json: bool,
    force: bool,
    **parameters: Any,
) -> None:
    """Write a report on RELEASE: one page that needs no network, and its JSON twin.

    The page says in plain words what is promised to whom and what is not, shows every column with error bars, pairs,
    maps, where the budget went and the schema, and answers the questions of NIST SP 800-226 and of a review board, each
    with the source of the answer. It uses only what was released, costs nothing, and may be published with the release.
    It needs jinja2 and matplotlib: pip install jinja2 matplotlib.

    With --ledger it also says who charged the release, when and what for, and sums up what else was charged. Such a
    page names users of the ledger: leave --ledger out of a page that is to be published.

    With --against it shows the real table beside the synthetic one. Such a page is computed from the real table without
    noise: it is for the holder only, says so everywhere, and must not be published. CSV options describe these tables.
    """
    from spinney.release.in_ledger import open_for
    from spinney.release.storage import load
    from spinney.report.contents import HOLDER_ONLY, report_contents
    from spinney.report.page import check_report_path
    from spinney.shown import json_text

    if not out and not as_json:
        raise click.UsageError("say where the report goes: --out report.html, --out report.json, or --json to print it")
    if unseen is not None and not against:
        raise click.UsageError("--unseen is for --against, whose classifiers it tests")
    for path in out:
        check_report_path(path)
        check_output(path, force=force, inputs=[release])
    csv_said = {name: parameters.pop(name) for name in CSV_NAMES}
    loaded = load(release)
    warn_of_brands(loaded.card)
    ledger = None if ledger_path is None else open_for(ledger_path, loaded)
    found = report_contents(loaded, ledger=ledger, **parameters)
    contents: Report = found
    if ledger is not None:
        click.echo(f"note: {_NAMES_USERS}", err=True)
    if against:
        contents = _beside(loaded, found, against, unseen, csv_said)
        click.secho(f"*** {HOLDER_ONLY} ***", err=True, fg="red", bold=True)
    for path in out:
        contents.save(path, overwrite=force)
    if as_json:
        click.echo(json_text(contents.to_dict()))
        return
    for path in out:
        click.echo(f"wrote {path}" + ("" if contents.publishable else " (do not publish)"))


def _beside(
    release: Release,
    contents: ReportContents,
    against: Sequence[str],
    unseen: str | None,
    csv_said: dict[str, Any],
) -> Report:
    """The same report beside the real tables."""
    from spinney.metrics.beside import beside
    from spinney.people.release.model import PeopleRelease
    from spinney.report.columns_part import tables_of
    from spinney.schema.table import Schema

    schemas = tables_of(release)
    places = _named(against, list(schemas))
    if unseen is not None:
        _check_exists(unseen)
    reals = {name: _read(place, schemas[name], csv_said) for name, place in places.items()}
    if isinstance(release, PeopleRelease):
        drawn = release.sample(seed=0, frame="pyarrow")
        synthetic = drawn if isinstance(drawn, dict) else {"": drawn}
    else:
        synthetic = {"": release.sample(max(1, reals[""].num_rows), seed=0, frame="pyarrow")}
    target = contents.model["target"] if isinstance(contents.model["target"], str) else None
    held_back = None
    if unseen is not None:
        home = target.partition(".")[0] if target is not None and "" not in schemas else next(iter(schemas))
        held_back = _read(unseen, schemas.get(home, next(iter(schemas.values()))), csv_said)
    stated = schemas if isinstance(release, PeopleRelease) and "" not in schemas else schemas[""]
    if isinstance(stated, Schema):
        return beside(contents, reals[""], synthetic[""], stated, target=target, unseen=held_back)
    return beside(contents, reals, synthetic, stated, target=target, unseen=held_back)


def _read(place: str, schema: Schema, csv_said: dict[str, Any]) -> pa.Table:
    """A real table, without columns that the release does not have."""
    from spinney.cli.tables import read_all

    table = read_all(place, schema, take_csv(place, dict(csv_said)))
    return table.select([name for name in table.column_names if name in schema])


def _named(against: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Where each real table is; the one table of most releases needs no name."""
    found: dict[str, str] = {}
    for text in against:
        name, sign, place = text.partition("=")
        if names == [""] or not sign:
            name, place = "", text
        if name not in names:
            known = " ".join(f"--against {known}=TABLE" for known in names)
            raise click.UsageError(f"--against {text!r} does not name a table of the release; say {known}")
        if name in found:
            raise click.UsageError(f"--against names the same table twice; leave one out: {text!r}")
        _check_exists(place)
        found[name] = place
    return found


def _check_exists(place: str) -> None:
    from spinney.cli.command import TABLE

    TABLE.convert(place, None, click.get_current_context())
    if Path(place).is_dir() and not any(Path(place).iterdir()):
        raise click.UsageError(f"{place!r} is an empty folder")
