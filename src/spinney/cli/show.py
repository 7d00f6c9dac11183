"""The verbs that show what a release is worth: `card`, `compare`, `explain`, `picture` and `report`.

What is shown of a release alone is PUBLIC. `compare`, and `report` with the real table, are FOR THE HOLDER
ONLY: their figures are computed without noise, and they say so first.

    card      the guarantee of a release, and what it cost
    compare   how near a synthetic table is to the real one
    explain   what a forest or a model of persons measured
    picture   a partition, a map, or columns and pairs as a file
    report    one page for whoever signs the release off
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spinney.cli.command import (
    CSV_NAMES,
    FILE,
    TABLE,
    Verb,
    alarm,
    check_output,
    check_picture,
    csv_options,
    force_option,
    json_option,
    load_release,
    option,
    show,
    take_csv,
)
from spinney.text import json_text, printable, wrapped

if TYPE_CHECKING:
    import pyarrow as pa

    from spinney.release.release import Release, Report
    from spinney.report.page import ReportContents
    from spinney.schema.schema import Schema


# ----------------------------------------------------------------------------------------------------------------- card
# `spinney card`: the guarantee of a release, and what it cost; with a ledger, what all releases promise together.


@click.command(cls=Verb)
@click.argument("release", type=FILE)
@option(
    "--ledger FILE",
    "The ledger that the release was charged to: say first what all releases on it promise together.",
    name="ledger_path",
    type=FILE,
)
@json_option
@option("--error-bars", "Also show how far columns and pairs may be off.")
def card(release: str, ledger_path: str | None, as_json: bool, error_bars: bool) -> None:
    """Show the card of RELEASE: its guarantee and what it cost.

    The card lists the guarantee, the charges, the plan and the columns. If the guarantee is void, because bounds were
    taken from the data or the noise was seeded, the card says so first. Its guarantee is of this release alone: other
    releases of the same people add to it. With --ledger the card first says what all releases that were charged to the
    ledger promise together to the people of this one. With --error-bars it goes on with every column's distribution
    and with pairs of columns, each with what kind of statement its interval is. These use only what was released and
    cost nothing; a forest of many columns takes some seconds.

    Examples:
        spinney card people.spinney
        spinney card people.spinney --ledger people.ledger
        spinney card people.spinney --json | jq .epsilon
        spinney card people.spinney --error-bars
    """
    from spinney.release.file import load
    from spinney.release.provenance import find_charge, open_for
    from spinney.report.parts import first_figure, together_part

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
        of = "" if together["population"] is None else f", population {together['population']!r}"
        texts = [first_figure(together), *together["in_words"]]
        lines = [f"All releases on the ledger together{of}:", *(line for text in texts for line in wrapped(text, "  "))]
        click.echo("\n".join([*map(printable, lines), "", "This release alone:"]))
    click.echo(str(loaded.card))
    if bars is not None:
        click.echo(f"\n{bars}")


# -------------------------------------------------------------------------------------------------------------- compare
# `spinney compare`: how near a synthetic table is to the real one, for the holder, without charging anything.


@click.command(cls=Verb)
@click.argument("real", type=TABLE)
@click.argument("synthetic", type=TABLE)
@option("--schema FILE", "The TOML file that describes both tables.", name="schema_path", type=FILE)
@option(
    "--release FILE",
    "The release, whose schema is taken instead: needed where bounds were estimated privately.",
    type=FILE,
)
@option("--table NAME", "Which table of a release of linked tables the files are of.")
@option("--ways N", "Up to how many columns are looked at together.", type=click.IntRange(1, 3), default=2)
@option("--bins N", "Bins per column, for total variations.", type=click.IntRange(1), default=16)
@option(
    "--scale quantiles|range",
    "Bins that hold equal shares of the real rows, or equal parts of the bounds.",
    default="quantiles",
)
@csv_options
@json_option
def compare(
    real: str,
    synthetic: str,
    schema_path: str | None,
    release: str | None,
    table: str | None,
    ways: int,
    bins: int,
    scale: str,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Compare a SYNTHETIC table with the REAL one. For the holder only.

    The page is computed from the real table without noise: do not publish it, and do not choose parameters by it. It
    shows for every column the Kolmogorov-Smirnov distance (KS), the total variation (TV), the Wasserstein distance, how
    much of the ten commonest values comes back exactly and how far the share of exact zeros is off, and the total
    variation of pairs of columns. Below that stands what somebody notices who reads single rows: columns that are equal
    or in proportion, round numbers, dates, codes, the commonest values, and a few rows of both tables. Nothing is
    charged, and nothing is released.

    Both tables are held in memory. CSV options describe REAL; SYNTHETIC is read as `spinney sample` writes it.

    Examples:
        spinney compare people.csv synthetic.csv --schema schema.toml
        spinney compare people.parquet synthetic.parquet --release people.spinney --ways 3
        spinney compare people.csv synthetic.csv --schema schema.toml --delimiter ';' --decimal ,
        spinney compare people.csv synthetic.csv --schema schema.toml --scale range --bins 32 --json
        spinney compare customers.parquet shop/customers.parquet --release shop.spinney --table customers
    """
    from spinney.cli.tables import read_all
    from spinney.metrics.compare import compare as compare_tables

    if (schema_path is None) == (release is None):
        raise click.UsageError("give either --schema or --release, which say what the columns are")
    csv = take_csv(real, parameters)
    schema = _schema(schema_path, release, table)
    private = read_all(real, schema, csv)
    if release is not None:  # which has no columns that were ignored
        private = private.select([name for name in private.column_names if name in schema])
    found = compare_tables(
        private,
        read_all(synthetic, schema),
        schema,
        ways=ways,
        bins=bins,
        scale=scale,  # type: ignore[arg-type]  # click has checked it
    )
    show(found, as_json=as_json)


def _schema(schema_path: str | None, release: str | None, table: str | None) -> Schema:
    from spinney.people.release.model import PeopleRelease
    from spinney.release.file import load
    from spinney.schema.schema import Schema

    loaded = None if release is None else load(release)
    tables = loaded.shape.tables if isinstance(loaded, PeopleRelease) else {}
    if table is not None and table not in tables:
        known = f"the release has {', '.join(map(repr, tables))}" if len(tables) > 1 else "leave it out"
        raise click.UsageError(f"--table {table!r} is not a table of a release of linked tables; {known}")
    if tables:
        if len(tables) > 1 and table is None:
            raise click.UsageError(f"the release has several tables; say --table {' or --table '.join(tables)}")
        return tables[table or next(iter(tables))]
    if loaded is not None:
        return loaded.schema
    assert schema_path is not None
    return Schema.from_file(schema_path)


# -------------------------------------------------------------------------------------------------------------- explain
# `spinney explain`: what a forest, or a model of persons, measured, and how its budget was spent.


@click.command(cls=Verb)
@click.argument("release", type=FILE)
@json_option
@option("--picture FILE", "Draw the columns and their dependences into an .svg or .png file.")
@option(
    "--error-bars",
    "Also show how far columns and pairs may be off; `spinney card` does so for every kind of release, and "
    "`spinney picture` draws it.",
)
@force_option
def explain(release: str, as_json: bool, picture: str | None, error_bars: bool, force: bool) -> None:
    """Explain RELEASE, a forest of many columns or a model of persons.

    The page shows which structure was chosen and why no richer one, how the budget was spent, how each column was
    divided, and which columns were counted together, the most dependent first. It uses only what was released and costs
    nothing. A picture needs matplotlib: pip install matplotlib.

    Of persons the page shows how many there are, how alike two rows of a person are, column by column, which columns
    have a hidden level, and what rows depend on. The picture shows the columns of persons.

    Examples:
        spinney explain people.spinney
        spinney explain people.spinney --picture graph.svg
        spinney explain people.spinney --json | jq '.cliques[0]'
        spinney explain people.spinney --error-bars
        spinney explain shop.spinney --json | jq '.rows[0].columns'
    """
    from spinney.forest.release.explain import explain as explain_forest
    from spinney.people.release.model import PeopleRelease
    from spinney.release.file import load

    check_picture(picture, force=force, inputs=[release])
    loaded: Any = load(release)
    is_of_persons = isinstance(loaded, PeopleRelease)
    explanation = (PeopleRelease.explain if is_of_persons else explain_forest)(loaded, error_bars=error_bars)
    if picture is not None:
        from spinney.report.pictures import graph_figure, save_figure

        save_figure(graph_figure(loaded.persons if is_of_persons else loaded), picture, overwrite=force)
    show(explanation, as_json=as_json, **({} if picture is None else {"picture": picture}))
    if picture is not None and not as_json:
        click.echo(f"wrote {picture}")


# -------------------------------------------------------------------------------------------------------------- picture
# `spinney picture`: the noisy partition of two columns, the map of a place, or columns and pairs with error bars.


@click.command(cls=Verb)
@click.argument("release", type=FILE)
@option("--out FILE", "An .svg or .png file.", required=True)
@option(
    "--columns X,Y",
    "Two columns; required if the release has more than two, unless it has one place. With --error-bars, any "
    "number of columns. Put a name that contains a comma in double quotes.",
)
@option("--error-bars", "Draw columns and pairs with error bars instead.")
@force_option
def picture(release: str, out: str, columns: str | None, error_bars: bool, force: bool) -> None:
    """Draw the noisy partition of RELEASE.

    Bins are drawn as rectangles, shaded by their noisy density. If the release has more than two columns, --columns
    names two of them, and the densities of bins that overlap add up. Of a forest, a place is drawn as a map; --columns
    names its columns if there are several. Longitude and latitude are drawn as long as they are on the ground.

    With --error-bars every column's distribution is drawn with intervals, and a table of pairs is shaded by how far
    their cells may be off; pairs that the release does not support are crossed out.

    The picture uses only what was released. It needs matplotlib: pip install matplotlib.

    Examples:
        spinney picture town.spinney --out partition.svg
        spinney picture people.spinney --columns age,income --out partition.png
        spinney picture trips.spinney --columns pickup_lon,pickup_lat --out map.png
        spinney picture people.spinney --columns '"income, yearly",age' --out partition.png
        spinney picture people.spinney --error-bars --out bars.png
    """
    from spinney.release.answers.grammar import csv_fields
    from spinney.report.pictures import partition_figure, save_figure

    check_picture(out, force=force, inputs=[release])
    loaded = load_release(release)
    chosen = None if columns is None else csv_fields(columns)
    if error_bars:
        from spinney.report.pictures import bars_figure

        figure = bars_figure(loaded, loaded.error_bars(chosen))
    else:
        figure = partition_figure(loaded, chosen)
    save_figure(figure, out, overwrite=force)
    click.echo(f"wrote {out}")


# --------------------------------------------------------------------------------------------------------------- report
# `spinney report`: one page on a release, for whoever signs it off; beside the real table, for the holder only.


_NAMES_USERS = (
    "with --ledger the report names users of the ledger: who charged this release, when and what for. Leave --ledger "
    "out of a page that is to be published"
)
_LEDGER = (
    "The ledger that the release was charged to. The page then names users of the ledger, those who charged this "
    "release; leave it out of a page that is to be published."
)


@click.command(cls=Verb)
@click.argument("release", type=FILE)
@option("--out FILE", "An .html or .json file. May be repeated, for both.", multiple=True)
@option("--ledger FILE", _LEDGER, name="ledger_path", type=FILE)
@option("--title TEXT", "What the table is called; shown as the holder states it.")
@option("--purpose TEXT", "What the table was collected and is released for.")
@option("--contact TEXT", "Whom readers may ask.")
@option("--licence TEXT", "Under which terms the synthetic rows may be used.")
@option(
    "--against [NAME=]TABLE",
    "The real table, shown beside the synthetic one: FOR THE HOLDER ONLY, do not publish. Of linked tables, one "
    "option each, with its name.",
    multiple=True,
)
@option(
    "--unseen TABLE", "With --against: real rows that the release has not seen, to test classifiers of the target on."
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

    Examples:
        spinney report people.spinney --out report.html
        spinney report people.spinney --out report.html --out report.json
        spinney report people.spinney --out report.html --title "Admissions 2024" --ledger people.ledger
        spinney report people.spinney --json | jq .promise.guess
        spinney report people.spinney --out holder-only.html --against people.csv
        spinney report shop.spinney --out holder-only.html --against customers=customers.csv --against
            sales=s.csv
    """
    from spinney.release.provenance import open_for
    from spinney.report.page import HOLDER_ONLY, check_report_path, report_contents

    if not out and not as_json:
        raise click.UsageError("say where the report goes: --out report.html, --out report.json, or --json to print it")
    if unseen is not None and not against:
        raise click.UsageError("--unseen is for --against, whose classifiers it tests")
    for path in out:
        check_report_path(path)
        check_output(path, force=force, inputs=[release])
    csv_said = {name: parameters.pop(name) for name in CSV_NAMES}
    loaded = load_release(release)
    ledger = None if ledger_path is None else open_for(ledger_path, loaded)
    found = report_contents(loaded, ledger=ledger, **parameters)
    contents: Report = found
    if ledger is not None:
        click.echo(f"note: {_NAMES_USERS}", err=True)
    if against:
        contents = _beside(loaded, found, against, unseen, csv_said)
        alarm(f"*** {HOLDER_ONLY} ***")
    for path in out:
        contents.save(path, overwrite=force)
    if as_json:
        show(contents, as_json=True)
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
    from spinney.metrics.compare import beside
    from spinney.people.release.model import PeopleRelease
    from spinney.report.columns import tables_of
    from spinney.schema.schema import Schema

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
    TABLE.convert(place, None, click.get_current_context())
    if Path(place).is_dir() and not any(Path(place).iterdir()):
        raise click.UsageError(f"{place!r} is an empty folder")
